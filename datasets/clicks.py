"""Click logs made to order, with the relevance that the clicks came from."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from structrank.datasets.containers import Dataset

_MODELS = ("position", "cascade")


@dataclass(frozen=True, eq=False, repr=False)
class Clicks:
    """Generated sessions and the truth behind them; iterating gives ``(query, urls, clicked positions)``.

    Attributes
    ----------
    query : (n_sessions,) array of int
        The query of each session.
    shown : (n_sessions, n_shown) array of int
        The urls shown, best placed first.
    clicked : (n_sessions, n_shown) array of bool
        Which of them were clicked. Users click from top to bottom.
    documents : Dataset
        All urls that a query can show, one row for each: `qid` is the query, `docid` the url, `y` the true relevance (the
        probability that who looks at it clicks it) and `X` features that a ranker can learn it from.

    Examples
    --------
    >>> from structrank.datasets import make_clicks
    >>> made = make_clicks(n_queries=20, n_urls=60, n_topics=2, n_sessions=100, random_state=0)
    >>> made
    Clicks(100 sessions, 20 queries, 60 urls, 116 clicks)
    >>> query, urls, clicks = next(iter(made))
    >>> len(urls), made.documents.X.shape
    (10, (400, 8))
    """

    query: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray
    documents: Dataset

    def __len__(self) -> int:
        return self.query.shape[0]

    def __iter__(self) -> Iterator[tuple[int, list[int], list[int]]]:
        lists = (self.query.tolist(), self.shown.tolist(), self.clicked)
        for query, urls, clicked in zip(*lists, strict=True):
            yield query, urls, np.flatnonzero(clicked).tolist()

    def __repr__(self):
        n_queries, n_urls = len(np.unique(self.documents.qid)), len(np.unique(self.documents.docid))
        return f"Clicks({len(self)} sessions, {n_queries} queries, {n_urls} urls, {int(self.clicked.sum())} clicks)"


def make_clicks(
    n_queries: int = 1000,
    n_urls: int = 2000,
    n_sessions: int = 10_000,
    *,
    n_topics: int = 20,
    n_factors: int = 8,
    n_docs: int = 20,
    n_shown: int = 10,
    similarity: float = 0.8,
    relevant_share: float = 0.2,
    skew: float = 1.0,
    model: str = "position",
    bias: float = 1.0,
    stop: float = 0.5,
    engine: float = 0.5,
    churn: float = 0.5,
    hubs: float = 0.0,
    authority: float = 1.0,
    feature_noise: float = 0.5,
    random_state: int | np.random.Generator | None = None,
) -> Clicks:
    """Generate a click log from a known relevance, by a click model with position bias.

    **Relevance.** Queries belong to topics, and those of a topic are alike: with standard normal vectors c (of a topic), e (of
    a query) and u (of a url) of `n_factors` entries ::

        q_i = sqrt(similarity) c_topic(i) + sqrt(1 - similarity) e_i,    utility_ij = q_i.u_j / |q_i|
        relevance_ij = 1 / (1 + exp(-3 (utility_ij - t)))

    with t such that a share `relevant_share` of the utilities lies above it, where the relevance is more than 1/2. The urls are
    dealt to the topics in equal parts, and a query draws its `n_docs` candidates from those of its topic, so that queries of a
    topic have urls in common. With `hubs` above 0, `n_docs` of the urls (fewer where topics would run short) are hubs instead,
    sites that every topic has, and a query draws that share of its candidates from the hubs.

    **Lists.** The search engine knows something of it: it ranks by ::

        engine utility_ij + authority [j is a hub] + sqrt(1 - engine^2) (sqrt(1 - churn) g_ij + sqrt(churn) h_ijs)

    with standard normal g, fixed for a query and a url, and h, drawn anew in each session s; it shows the first `n_shown`. Hubs
    are no better than other urls, but stand high and are clicked for it, by queries that have nothing else in common.
    Queries are asked unequally often: query i with probability proportional to ``(1 + i) ** -skew``, each at least once while
    sessions last, so that most queries have few sessions.

    **Clicks.** With ranks from 0, `model` says what users do:

    - "position": they look at rank r with probability ``(1 + r) ** -bias``, whatever else they do, and click what they look at
      with the probability of its relevance;
    - "cascade": they go from top to bottom and click each url with the probability of its relevance. After a click they stop
      with probability `stop`; who has not stopped goes on from rank r to the next with probability
      ``((1 + r) / (2 + r)) ** bias``. Who does not click is as likely to reach a rank as in the other model; ``stop=1`` is the
      cascade of one click.

    **Features.** Of candidate j of query i, ``x_k = q_ik u_jk / |q_i| + feature_noise n_ijk`` with standard normal n: their sum
    is the utility plus noise.

    Parameters
    ----------
    n_queries, n_urls, n_sessions : int
        How many there are. Sparseness is the number of sessions for each query, `n_sessions` / `n_queries`.
    n_topics : int, default 20
        At most `n_queries`, and such that each has at least `n_docs` urls.
    n_factors : int, default 8
        Length of the hidden vectors, and number of features.
    n_docs : int, default 20
        Candidates of each query.
    n_shown : int, default 10
        Length of the lists, at most `n_docs`.
    similarity : float, default 0.8
        From 0, queries of a topic share urls but no taste, to 1, they are the same query.
    relevant_share : float, default 0.2
        Share of the candidates with a relevance above 1/2, between 0 and 1.
    skew : float, default 1.0
        From 0, all queries are equally frequent, upwards.
    model : {"position", "cascade"}, default "position"
    bias : float, default 1.0
        From 0, every rank is looked at, upwards.
    stop : float, default 0.5
        Read by the cascade only, from 0 to 1.
    engine : float, default 0.5
        Correlation of the engine's score with the utility, from 0 to 1.
    churn : float, default 0.5
        Share of the engine's error that changes from session to session, from 0 to 1. At 0 a query always shows the same list,
        and position and relevance cannot be told apart by counting clicks.
    hubs : float, default 0.0
        Share of a query's candidates that are hubs, from 0 to 1.
    authority : float, default 1.0
        By how much the engine prefers hubs, in standard deviations of the utility; at least 0.
    feature_noise : float, default 0.5
        Of the features, at least 0.
    random_state : int, numpy.random.Generator or None, default None
        Seed.

    Returns
    -------
    Clicks

    Examples
    --------
    >>> from structrank.clicks import ClickLog
    >>> made = make_clicks(n_queries=100, n_urls=200, n_topics=5, n_sessions=1000, random_state=0)
    >>> log = ClickLog.from_sessions(made)
    >>> len(log), len(log.queries)
    (1000, 100)
    """
    for name, count, least in (
        ("n_queries", n_queries, 1),
        ("n_sessions", n_sessions, 1),
        ("n_topics", n_topics, 1),
        ("n_factors", n_factors, 1),
        ("n_docs", n_docs, 2),
        ("n_shown", n_shown, 1),
    ):
        _require(isinstance(count, Integral) and count >= least, name, count, f"an integer of at least {least}")
    _require(n_topics <= n_queries, "n_topics", n_topics, f"at most n_queries={n_queries}")
    _require(n_shown <= n_docs, "n_shown", n_shown, f"at most n_docs={n_docs}")
    good = isinstance(n_urls, Integral) and n_urls >= n_topics * n_docs
    _require(good, "n_urls", n_urls, f"an integer of at least n_topics * n_docs = {n_topics * n_docs}")
    shares = {"similarity": similarity, "stop": stop, "engine": engine, "churn": churn, "hubs": hubs}
    for name, value in shares.items():
        _require(isinstance(value, Real) and 0 <= value <= 1, name, value, "a number from 0 to 1")
    good = isinstance(relevant_share, Real) and 0 < relevant_share < 1
    _require(good, "relevant_share", relevant_share, "a number between 0 and 1, both excluded")
    for name, value in {"skew": skew, "bias": bias, "authority": authority, "feature_noise": feature_noise}.items():
        _require(isinstance(value, Real) and 0 <= value < np.inf, name, value, "a finite number of at least 0")
    _require(isinstance(model, str) and model in _MODELS, "model", model, f"one of {', '.join(map(repr, _MODELS))}")

    rng, n_hubs = np.random.default_rng(random_state), round(hubs * n_docs)
    topic = rng.permutation(np.arange(n_queries) % n_topics)
    tastes = np.sqrt(similarity) * rng.standard_normal((n_topics, n_factors))[topic]
    tastes += np.sqrt(1 - similarity) * rng.standard_normal((n_queries, n_factors))
    tastes /= np.linalg.norm(tastes, axis=1, keepdims=True)
    urls = rng.standard_normal((n_urls, n_factors))
    candidates = _draw_candidates(topic, n_urls, n_docs, n_hubs, rng)

    products = tastes[:, None, :] * urls[candidates]
    utility = products.sum(axis=2)
    relevance = 1 / (1 + np.exp(-3 * (utility - np.quantile(utility, 1 - relevant_share))))
    features = products + feature_noise * rng.standard_normal(products.shape)
    documents = Dataset(
        X=features.reshape(-1, n_factors),
        y=relevance.reshape(-1),
        qid=np.repeat(np.arange(n_queries), n_docs),
        docid=candidates.reshape(-1),
    )

    query = _draw_queries(n_queries, n_sessions, skew, rng)
    fixed = engine * utility + np.sqrt((1 - engine**2) * (1 - churn)) * rng.standard_normal(utility.shape)
    fixed[:, :n_hubs] += authority
    score = fixed[query] + np.sqrt((1 - engine**2) * churn) * rng.standard_normal((n_sessions, n_docs))
    places = np.argsort(-score, axis=1, kind="stable")[:, :n_shown]
    attraction = np.take_along_axis(relevance[query], places, axis=1)
    clicked = _position_clicks(attraction, bias, rng) if model == "position" else _cascade_clicks(attraction, bias, stop, rng)
    return Clicks(query, np.take_along_axis(candidates[query], places, axis=1), clicked, documents)


def _draw_candidates(topic, n_urls, n_docs, n_hubs, rng):
    """Give the urls that each query can show, its `n_hubs` hubs first."""
    n_topics, n_own = topic.max() + 1, n_docs - n_hubs
    shared, others = np.split(rng.permutation(n_urls), [min(n_docs, n_urls - n_topics * n_own) if n_hubs else 0])
    pools = np.array_split(others, n_topics)
    drawn = [(rng.choice(shared, n_hubs, replace=False), rng.choice(pools[its], n_own, replace=False)) for its in topic]
    return np.stack([np.concatenate(parts) for parts in drawn])


def _draw_queries(n_queries, n_sessions, skew, rng):
    """Give the query of each session: each once first, then by how frequent it is, in random order."""
    once = rng.permutation(n_queries)[:n_sessions]
    frequency = (1.0 + np.arange(n_queries)) ** -skew
    more = rng.choice(n_queries, n_sessions - once.size, p=frequency / frequency.sum())
    return rng.permutation(np.concatenate([once, more]))


def _position_clicks(attraction, bias, rng):
    looked_at = rng.random(attraction.shape) < (1.0 + np.arange(attraction.shape[1])) ** -bias
    return looked_at & (rng.random(attraction.shape) < attraction)


def _cascade_clicks(attraction, bias, stop, rng):
    clicked = np.zeros(attraction.shape, dtype=bool)
    reading = np.ones(attraction.shape[0], dtype=bool)
    for rank in range(attraction.shape[1]):
        clicked[:, rank] = reading & (rng.random(reading.size) < attraction[:, rank])
        goes_on = (1.0 - stop * clicked[:, rank]) * ((1.0 + rank) / (2.0 + rank)) ** bias
        reading &= rng.random(reading.size) < goes_on
    return clicked


def _require(good, name, value, expected):
    if not good:
        raise ValueError(f"{name}={value!r} is not valid: expected {expected}.")
