"""Synthetic click logs with known relevance."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from structrank._support.checks import check_choice, check_number
from structrank._support.requirements import require
from structrank.datasets.containers import Dataset

_MODELS = ("position", "cascade")


@dataclass(frozen=True, eq=False, repr=False)
class Clicks:
    """Synthetic sessions and the true relevance; iterating yields ``(query, urls, clicked positions)``.

    Attributes
    ----------
    query : (n_sessions,) array of int
        Query of each session.
    shown : (n_sessions, n_shown) array of int
        Urls shown, in order of rank.
    clicked : (n_sessions, n_shown) array of bool
        Whether each url was clicked. Users click from top to bottom.
    documents : Dataset
        All candidate urls of all queries, one per row: `qid` is the query, `docid` the url, `y` the true relevance (the
        probability of a click given that the user looks at the url) and `X` features that predict the relevance.

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
    """Generate a synthetic click log from a known relevance, by a click model with position bias.

    **Relevance.** Queries belong to topics, and queries of a topic are similar: with standard normal vectors c (of a topic), e
    (of a query) and u (of a url) of `n_factors` entries ::

        q_i = sqrt(similarity) c_topic(i) + sqrt(1 - similarity) e_i,    utility_ij = q_i.u_j / |q_i|
        relevance_ij = 1 / (1 + exp(-3 (utility_ij - t)))

    with t such that a fraction `relevant_share` of the utilities exceeds it, that is, has a relevance above 1/2. The urls are
    divided equally among the topics, and a query draws its `n_docs` candidates from the urls of its topic, so that queries of
    a topic share urls. With `hubs` above 0, `n_docs` of the urls (fewer if topics would run short) are hubs that belong to
    every topic, and a query draws a fraction `hubs` of its candidates from the hubs.

    **Lists.** The search engine ranks by a noisy estimate of the utility ::

        engine utility_ij + authority [j is a hub] + sqrt(1 - engine^2) (sqrt(1 - churn) g_ij + sqrt(churn) h_ijs)

    with standard normal g, fixed for a query and a url, and h, drawn in each session s, and shows the first `n_shown`. Hubs are
    no more relevant than other urls, but are clicked more often because they rank high, for otherwise unrelated queries.
    Query i has a probability proportional to ``(1 + i) ** -skew``, and each query occurs at least once if there are enough
    sessions, so that most queries have few sessions.

    **Clicks.** With ranks from 0, `model` determines the behaviour of users:

    - "position": users look at rank r with probability ``(1 + r) ** -bias``, independently of other ranks, and click a url that
      they look at with the probability of its relevance;
    - "cascade": users go from top to bottom and click each url with the probability of its relevance. After a click they stop
      with probability `stop`; users who have not stopped continue from rank r to the next with probability
      ``((1 + r) / (2 + r)) ** bias``. A user who does not click reaches a rank with the same probability as in the position
      model; ``stop=1`` is the cascade model with at most one click.

    **Features.** Candidate j of query i has ``x_k = q_ik u_jk / |q_i| + feature_noise n_ijk`` with standard normal n: their sum
    is the utility plus noise.

    Parameters
    ----------
    n_queries, n_urls, n_sessions : int
        Numbers of queries, urls and sessions. `n_sessions` / `n_queries` controls the sparsity.
    n_topics : int, default 20
        Number of topics, at most `n_queries` and at most `n_urls` / `n_docs`.
    n_factors : int, default 8
        Length of the hidden vectors, and number of features.
    n_docs : int, default 20
        Candidates per query.
    n_shown : int, default 10
        Length of the lists, at most `n_docs`.
    similarity : float, default 0.8
        From 0 (queries of a topic share urls but no preferences) to 1 (they are identical).
    relevant_share : float, default 0.2
        Fraction of the candidates with a relevance above 1/2, between 0 and 1.
    skew : float, default 1.0
        Skew of the query frequencies, at least 0; at 0 all queries are equally frequent.
    model : {"position", "cascade"}, default "position"
    bias : float, default 1.0
        Position bias, at least 0; at 0 users look at every rank.
    stop : float, default 0.5
        Probability to stop after a click, from 0 to 1; used by the cascade model only.
    engine : float, default 0.5
        Correlation of the engine's score with the utility, from 0 to 1.
    churn : float, default 0.5
        Fraction of the variance of the engine's error that changes between sessions, from 0 to 1. At 0 a query always shows the
        same list, and counts of clicks cannot separate position from relevance.
    hubs : float, default 0.0
        Fraction of a query's candidates that are hubs, from 0 to 1.
    authority : float, default 1.0
        Bonus of hubs in the score of the engine, in standard deviations of the utility; at least 0.
    feature_noise : float, default 0.5
        Standard deviation of the noise in the features, at least 0.
    random_state : int, numpy.random.Generator or None, default None
        Seed.

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
        check_number(name, count, at_least=least, integer=True)
    require(n_topics <= n_queries, "n_topics", n_topics, f"at most n_queries={n_queries}")
    require(n_shown <= n_docs, "n_shown", n_shown, f"at most n_docs={n_docs}")
    check_number("n_urls", n_urls, at_least=0, integer=True)
    require(n_urls >= n_topics * n_docs, "n_urls", n_urls, f"at least n_topics * n_docs = {n_topics * n_docs}")
    shares = {"similarity": similarity, "stop": stop, "engine": engine, "churn": churn, "hubs": hubs}
    for name, value in shares.items():
        check_number(name, value, at_least=0, at_most=1)
    check_number("relevant_share", relevant_share, above=0, below=1)
    for name, value in {"skew": skew, "bias": bias, "authority": authority, "feature_noise": feature_noise}.items():
        check_number(name, value, at_least=0)
    check_choice("model", model, _MODELS)

    rng, n_hubs = np.random.default_rng(random_state), round(hubs * n_docs)
    topic = rng.permutation(np.arange(n_queries) % n_topics)
    query_vectors = np.sqrt(similarity) * rng.standard_normal((n_topics, n_factors))[topic]
    query_vectors += np.sqrt(1 - similarity) * rng.standard_normal((n_queries, n_factors))
    query_vectors /= np.linalg.norm(query_vectors, axis=1, keepdims=True)
    urls = rng.standard_normal((n_urls, n_factors))
    candidates = _draw_candidates(topic, n_urls, n_docs, n_hubs, rng)

    products = query_vectors[:, None, :] * urls[candidates]
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
    """Return the candidate urls of each query, its `n_hubs` hubs first."""
    n_topics, n_own = topic.max() + 1, n_docs - n_hubs
    shared, others = np.split(rng.permutation(n_urls), [min(n_docs, n_urls - n_topics * n_own) if n_hubs else 0])
    pools = np.array_split(others, n_topics)
    drawn = [(rng.choice(shared, n_hubs, replace=False), rng.choice(pools[its], n_own, replace=False)) for its in topic]
    return np.stack([np.concatenate(parts) for parts in drawn])


def _draw_queries(n_queries, n_sessions, skew, rng):
    """Draw the query of each session: each query once, the rest by frequency, in random order."""
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
        continues = (1.0 - stop * clicked[:, rank]) * ((1.0 + rank) / (2.0 + rank)) ** bias
        reading &= rng.random(reading.size) < continues
    return clicked
