"""HybridRanker: latent factors from what was preferred, together with a walk on what was clicked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from structrank import _validation
from structrank.clicks.collaborative import CollaborativeRanker, check_pairs, known_pairs
from structrank.clicks.counts import ClickCounts, click_counts
from structrank.clicks.evaluation import pair_accuracy
from structrank.clicks.log import ClickLog, random_mask
from structrank.clicks.preferences import RULES, Preferences, preference_pairs
from structrank.clicks.ranker import ClickRanker
from structrank.clicks.walks import RandomWalkRanker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

THETAS = tuple(np.linspace(0.0, 1.0, 21).round(2).tolist())
STRENGTHS = (0.0, 0.25, 0.5, 1.0, 2.0)
_WALKS = (("backward", 11), ("backward", 101), ("forward", 11), ("forward", 101))
_FLOOR = 1e-4  # what is added to the probabilities of a walk before their logarithm is taken
_ENOUGH = 20_000  # pairs, to tell one theta from another
_POOLED = 10  # as many urls of an average query stand by each query when its spread is estimated


@dataclass(frozen=True, eq=False)
class QueryScale:
    """Mean and spread of a model's scores over the urls that each query was shown.

    Attributes
    ----------
    mean, sd : (n_queries,) arrays

    Examples
    --------
    >>> scale = QueryScale.measure(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), 2)
    >>> scale.mean.tolist()
    [2.0, 5.0]
    """

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def measure(cls, query, scores, n_queries):
        """Measure the scores of each query; the spread leans on that of all queries where the urls are few."""
        count = np.bincount(query, minlength=n_queries)
        mean = np.bincount(query, weights=scores, minlength=n_queries) / np.maximum(count, 1)
        squares = np.bincount(query, weights=(scores - mean[query]) ** 2, minlength=n_queries)
        pooled = squares.sum() / max(count.sum(), 1)
        sd = np.sqrt((squares + _POOLED * pooled) / (count + _POOLED))
        return cls(mean, np.where(sd > 0, sd, 1.0))

    def apply(self, query, scores):
        """Give scores as numbers of spreads above their query's mean."""
        return (scores - self.mean[query]) / self.sd[query]


class HybridRanker(ClickRanker):
    r"""Score (query, url) by latent factors and a random walk together.

    The factors know what was passed over, the walk knows that what nobody clicked is likely irrelevant:

    .. math:: r_{qu} = (1 - \theta) \, \tilde r^{collaborative}_{qu} + \theta \, \tilde r^{walk}_{qu}

    where the tilde takes from a score its mean over the urls that the query was shown, and divides it by their spread; the walk
    enters by the logarithm of its probability.

    Parameters
    ----------
    collaborative : CollaborativeRanker or None, default None
        Parameters of the factors; None takes the defaults.
    walk : RandomWalkRanker or None, default None
        Parameters of the walk; None takes the best of forward and backward ones of 11 and of 101 steps, and the longer forward
        one where theta is given.
    theta : float or None, default None
        Weight of the walk, from 0 to 1; None chooses on pairs held out, by the mean accuracy of a theta and its neighbours: one
        alone may be best by luck.
    combine : {"sum", "prior"}, default "sum"
        "prior" makes the walk the prior of the factors: R is expected to be theta times the walk's normalised score, and the
        factors learn where the pairs say otherwise. Then theta may be any number from 0.
    rule : str, default "clicked>skipped-above"
        How pairs are read from a log, see `preference_pairs`.
    folds : int, default 5
        Walk, theta and the number of passes are chosen by cross-validation over so many parts of the sessions (of the pairs,
        where these are given), which stops early when 20,000 pairs have been judged. Both models are then trained on
        everything.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    theta_ : float
    curve_ : list of (theta, accuracy)
        Pair accuracy on what was held out, for each theta tried (Figure 4 of the paper); empty where theta was given.
    collaborative_ : CollaborativeRanker
    walk_ : RandomWalkRanker
    collaborative_scale_, walk_scale_ : QueryScale

    References
    ----------
    B. Cao, D. Shen, K. Wang and Q. Yang, Clickthrough log analysis by collaborative ranking, AAAI 2010.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.clicks import ClickLog, HybridRanker, pair_accuracy, preference_pairs
    >>> made = datasets.make_clicks(n_queries=100, n_urls=200, n_topics=5, n_sessions=1000, random_state=0)
    >>> train, test = ClickLog.from_sessions(made).split()
    >>> model = HybridRanker().fit(train)
    >>> bool(0 < model.theta_ < 1)
    True
    >>> bool(pair_accuracy(preference_pairs(test), model) > 0.6)
    True
    """

    def __init__(
        self,
        collaborative: CollaborativeRanker | None = None,
        walk: RandomWalkRanker | None = None,
        theta: float | None = None,
        combine: str = "sum",
        rule: str = "clicked>skipped-above",
        folds: int = 5,
        random_state: int = 0,
    ):
        self.collaborative = collaborative
        self.walk = walk
        self.theta = theta
        self.combine = combine
        self.rule = rule
        self.folds = folds
        self.random_state = random_state

    def fit(self, log: ClickLog | ClickCounts, pairs: Preferences | None = None) -> Self:
        """Train both models, and choose theta.

        Parameters
        ----------
        log : ClickLog or ClickCounts
            Of counts, which a stream of a large log gives, the pairs must be given too.
        pairs : Preferences, default None
            None reads them from the log. If given, the folds are of pairs, not of sessions: the walk has then seen the clicks
            that it is judged by, and theta comes out somewhat large.

        Returns
        -------
        self
        """
        self._check_parameters(log, pairs)
        factors = CollaborativeRanker() if self.collaborative is None else clone(self.collaborative)
        walks = [RandomWalkRanker(*each) for each in _WALKS] if self.walk is None else [clone(self.walk)]
        walk, theta, curve = walks[-1], self.theta, []
        if theta is None:
            walk, theta, curve, passes = self._choose("sum", factors, walks, log, pairs)
            if self.combine == "prior":  # of the walk that serves the sum best: trying all would take four times as long
                walk, theta, curve, passes = self._choose("prior", factors, [walk], log, pairs)
            factors.set_params(max_iter=passes, validation_fraction=0)
        counts = click_counts(log)
        # Of counts, pairs were given: that has been checked.
        pairs = preference_pairs(log, self.rule) if pairs is None else _over_ids_of(counts, pairs)  # type: ignore[arg-type]
        clicks = _Normalised.walk(walk.fit(counts), counts.impressions)
        factors._fit(pairs, expected=clicks.margins(theta) if self.combine == "prior" else None)
        self.collaborative_, self.walk_, self.walk_scale_ = factors, walk, clicks.scale
        self.collaborative_scale_ = _Normalised.factors(factors, counts.impressions).scale
        self.theta_, self.curve_ = float(theta), curve
        return self

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Score urls for queries; higher is better.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array
            nan, with a warning that counts them, for ids that the log did not have.
        """
        check_is_fitted(self)
        query, url, known = known_pairs(self.walk_.queries_, self.walk_.urls_, queries, urls)
        clicks = _Normalised(_log_of(self.walk_), self.walk_scale_)(query, url)
        if self.combine == "sum":
            preferred = _Normalised(self.collaborative_._scores, self.collaborative_scale_)(query, url)
        else:
            preferred = self.collaborative_._scores(query, url)
        scores = np.full(known.shape[0], np.nan)
        scores[known] = _mixed(self.combine, self.theta_, preferred, clicks)
        return scores

    def _check_parameters(self, log, pairs):
        for name, kind in (("collaborative", CollaborativeRanker), ("walk", RandomWalkRanker)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ValueError(f"{name} is a {type(value).__name__}; expected a {kind.__name__} or None.")
        _validation.check_choice("combine", self.combine, ("sum", "prior"))
        if self.theta is not None:
            theta = _validation.check_number("theta", self.theta, at_least=0)
            if theta > 1 and self.combine == "sum":
                raise ValueError(
                    f"theta={self.theta!r} is not valid: expected a number from 0 to 1, or None to choose it."
                )
        _validation.check_choice("rule", self.rule, tuple(RULES))
        _validation.check_number("folds", self.folds, at_least=2, integer=True)
        _validation.check_number("random_state", self.random_state, at_least=0, integer=True)
        if not isinstance(log, (ClickLog, ClickCounts)):
            raise ValueError(f"log is a {type(log).__name__}; expected a ClickLog, or ClickCounts together with pairs.")
        if pairs is None and isinstance(log, ClickCounts):
            raise ValueError(
                "log is ClickCounts, from which pairs cannot be read; give pairs=preference_pairs(...) too."
            )
        if pairs is not None:
            check_pairs(pairs, "pairs")

    def _folds(self, log, pairs):
        """Yield pairs and counts to learn from, and pairs to choose by."""
        rng = np.random.default_rng(self.random_state)
        if pairs is None:
            part = rng.permutation(len(log)) % self.folds
            for number in range(self.folds):
                known, held_out = log.subset(part != number), log.subset(part == number)
                yield preference_pairs(known, self.rule), known.counts(), preference_pairs(held_out, self.rule)
        else:
            counts = click_counts(log)
            pairs = _over_ids_of(counts, pairs)
            part = rng.permutation(len(pairs)) % self.folds
            for number in range(self.folds):
                yield pairs.subset(part != number), counts, pairs.subset(part == number)

    def _choose(self, combine, factors, walks, log, pairs):
        """Cross-validate; give the best walk and theta, the accuracy of each theta, and the passes that the factors took."""
        thetas, attempt = (THETAS, _try_sums) if combine == "sum" else (STRENGTHS, _try_priors)
        agreed, passes = np.zeros((len(walks), len(thetas))), np.zeros(len(thetas))
        weight, judged, n_folds = 0.0, 0, 0
        for known, counts, held_out in self._folds(log, pairs):
            if not len(known) or not len(held_out):
                continue
            judges, shown = held_out, counts.impressions
            if combine == "sum":  # a prior is asked for every pair to learn from, and so walks from every query anyway
                judges, shown = _enough(held_out, counts.impressions, self.random_state)
            fitted = [_Normalised.walk(clone(walk).fit(counts), shown) for walk in walks]
            accuracy, made = attempt(thetas, clone(factors), fitted, known, held_out, judges, shown)
            agreed += judges.weight.sum() * np.array(accuracy)
            passes += made
            weight += judges.weight.sum()
            judged += len(judges)
            n_folds += 1
            if judged >= _ENOUGH:
                break
        if not n_folds:
            raise ValueError(
                "log states too few preferences to choose theta: no pairs are left to learn from, or none to judge by. Give "
                "theta, 0.5 for example, or another rule."
            )
        accuracy = agreed / weight
        # One theta alone may be best by luck.
        padded = np.pad(accuracy, ((0, 0), (1, 1)), mode="edge")
        smooth = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
        number, best = np.unravel_index(np.argmax(smooth), smooth.shape)
        curve = list(zip(thetas, accuracy[number].tolist(), strict=True))
        return walks[number], thetas[best], curve, max(round(passes[best] / n_folds), 1)


def _enough(held_out, impressions, random_state):
    """Give as many of the pairs held out as are needed to judge by, and the impressions of their queries.

    Walks take time for each query, and a large log has more of them than it takes to choose.
    """
    if len(held_out) <= _ENOUGH:
        return held_out, impressions
    judges = held_out.subset(random_mask(len(held_out), _ENOUGH / len(held_out), random_state, "pairs"))
    entries = impressions.tocoo()
    asked = np.isin(entries.row, judges.query)
    kept = (entries.data[asked], (entries.row[asked], entries.col[asked]))
    return judges, scipy.sparse.csr_matrix(kept, shape=impressions.shape)


def _try_sums(thetas, factors, walks, known, held_out, judges, shown):
    """Give the accuracy on the judges for each walk and theta, and the passes that the factors took for each theta."""
    preferred = _Normalised.factors(factors._fit(known, held_out), shown).of_pairs(judges)
    clicked = [walk.of_pairs(judges) for walk in walks]
    accuracy = [[pair_accuracy(judges, _mixed("sum", theta, preferred, each)) for theta in thetas] for each in clicked]
    return accuracy, factors.n_iter_


def _try_priors(thetas, factors, walks, known, held_out, judges, shown):
    """Do what `_try_sums` does, with factors that are trained upon the walk for each theta."""
    accuracy, passes = [], []
    (walk,) = walks
    clicked = walk.of_pairs(judges)
    for theta in thetas:
        factors._fit(known, held_out, walk.margins(theta))
        accuracy.append(pair_accuracy(judges, _mixed("prior", theta, _of_pairs(factors._scores, judges), clicked)))
        passes.append(factors.n_iter_)
    return [accuracy], passes


@dataclass(frozen=True)
class _Normalised:
    """A function that scores dense (query, url), and the scale of each query."""

    score: Callable
    scale: QueryScale

    @classmethod
    def factors(cls, model, impressions):
        return cls._measured(model._scores, impressions)

    @classmethod
    def walk(cls, model, impressions):
        return cls._measured(_log_of(model), impressions)

    @classmethod
    def _measured(cls, score, impressions):
        shown = impressions.tocoo()
        query = shown.row.astype(np.int64)
        return cls(score, QueryScale.measure(query, score(query, shown.col.astype(np.int64)), shown.shape[0]))

    def __call__(self, query, url):
        return self.scale.apply(query, self.score(query, url))

    def of_pairs(self, pairs):
        return _of_pairs(self, pairs)

    def margins(self, strength):
        """Give the function from pairs to the margins that are expected of them."""

        def expected(pairs):
            scores = self.of_pairs(pairs)
            return strength * (scores[:, 0] - scores[:, 1])

        return expected


def _log_of(walk):
    return lambda query, url: np.log(walk._scores(query, url) + _FLOOR)


def _of_pairs(score, pairs):
    """Give the scores of winners and losers, as `pair_accuracy` takes them."""
    query = pairs.query.astype(np.int64)
    return np.column_stack([score(query, url.astype(np.int64)) for url in (pairs.winner, pairs.loser)])


def _mixed(combine, theta, preferred, clicked):
    return (1 - theta) * preferred + theta * clicked if combine == "sum" else preferred + theta * clicked


def _over_ids_of(counts, pairs):
    """Give pairs over the ids of counts: those of one stream are equal, but not the same objects."""
    if pairs.queries is counts.queries and pairs.urls is counts.urls:
        return pairs
    query, url = counts.queries.index(pairs.queries.values), counts.urls.index(pairs.urls.values)
    columns = query[pairs.query], url[pairs.winner], url[pairs.loser]
    if min(column.min() for column in columns) < 0:
        raise ValueError("pairs have queries or urls that log does not have; expected both to come from the same log.")
    return Preferences(counts.queries, counts.urls, *columns, pairs.weight)
