"""HybridRanker: latent factors from preference pairs combined with a random walk on clicks."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse
from sklearn.base import clone

from structrank._support import checks
from structrank._support.saveable import record, saveable
from structrank._support.typing import Path
from structrank.clicks.collaborative import CollaborativeRanker, check_pairs
from structrank.clicks.counts import ClickCounts
from structrank.clicks.evaluation import pair_accuracy
from structrank.clicks.log import ClickLog, random_mask
from structrank.clicks.preferences import RULES, Preferences, preference_pairs
from structrank.clicks.ranker import ClickRanker
from structrank.clicks.stream import READERS, click_counts
from structrank.clicks.walks import RandomWalkRanker
from structrank.models.ranker import check_finished
from structrank.training.checkpoint import CheckpointFolder, KeptState

THETAS = tuple(np.linspace(0.0, 1.0, 21).round(2).tolist())
STRENGTHS = (0.0, 0.25, 0.5, 1.0, 2.0)
_WALKS = (("backward", 11), ("backward", 101), ("forward", 11), ("forward", 101))
_FLOOR = 1e-4  # added to the probabilities of a walk before taking the logarithm
_SELECTION_PAIRS = 20_000  # pairs that suffice to compare values of theta
_POOLED = 10  # weight of the pooled variance in the variance of a query, in urls


@record
@dataclass(frozen=True, eq=False)
class QueryScale:
    """Mean and standard deviation of a model's scores over the urls shown for each query."""

    mean: np.ndarray  # (n_queries,), as sd
    sd: np.ndarray

    @classmethod
    def measure(cls, query, scores, n_queries):
        """Estimate the scale of each query; the variance is shrunk towards that of all queries if the urls are few."""
        count = np.bincount(query, minlength=n_queries)
        mean = np.bincount(query, weights=scores, minlength=n_queries) / np.maximum(count, 1)
        squares = np.bincount(query, weights=(scores - mean[query]) ** 2, minlength=n_queries)
        pooled = squares.sum() / max(count.sum(), 1)
        sd = np.sqrt((squares + _POOLED * pooled) / (count + _POOLED))
        return cls(mean, np.where(sd > 0, sd, 1.0))

    def check(self, n_queries):
        """Raise unless there are as many means and deviations as queries."""
        for name, least in (("mean", 0.0), ("sd", checks.WEIGHTS[0])):
            checks.check_array(f"the scale's {name}", getattr(self, name), "f", (n_queries,))
            checks.check_magnitudes(f"the scale's {name}", getattr(self, name), least, checks.WEIGHTS[1])

    def apply(self, query, scores):
        """Standardise scores by the mean and standard deviation of their query."""
        return (scores - self.mean[query]) / self.sd[query]


@saveable
@dataclass(eq=False, repr=False)
class HybridRanker(ClickRanker):
    r"""Score (query, url) by a combination of latent factors and a random walk.

    The factors use skipped urls; the walk ranks urls without clicks low:

    .. math:: r_{qu} = (1 - \theta) \, \tilde r^{collaborative}_{qu} + \theta \, \tilde r^{walk}_{qu}

    where the tilde denotes a score standardised over the urls shown for the query: minus the mean, divided by the standard
    deviation. The score of the walk is the logarithm of its probability.

    Parameters
    ----------
    collaborative : CollaborativeRanker or None, default None
        Model of the factors; None uses the defaults.
    walk : RandomWalkRanker or None, default None
        Model of the walk; None chooses among forward and backward walks of 11 and of 101 steps, or, if theta is given, uses
        the forward walk of 101 steps.
    theta : float or None, default None
        Weight of the walk, from 0 to 1; None chooses it on held-out pairs, by the mean accuracy of a theta and its two
        neighbours, which is less noisy than the accuracy of one theta.
    combine : {"sum", "raw-sum", "prior"}, default "sum"
        "raw-sum" is the sum as in the paper: the scores are not standardised, and that of the walk is its probability.
        "prior" makes the walk the prior of the factors: theta times the standardised score of the walk is the prior mean of R,
        and the factors learn the deviations from it. Then theta may be any number from 0.
    rule : str, default "clicked>skipped-above"
        Rule that extracts pairs from a log, see `preference_pairs`.
    folds : int, default 5
        Number of folds of the sessions (of the pairs, if given) in the cross-validation that chooses the walk, theta and the
        number of passes. It stops early when 20,000 pairs have been evaluated. Both models are then refitted on all data.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    theta_ : float
    curve_ : list of (theta, accuracy)
        Accuracy on the held-out pairs for each theta tried (Figure 4 of the paper); empty if theta was given.
    collaborative_ : CollaborativeRanker
    walk_ : RandomWalkRanker
    collaborative_scale_, walk_scale_ : QueryScale or None
        None where scores are not standardised.

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

    collaborative: CollaborativeRanker | None = None
    walk: RandomWalkRanker | None = None
    theta: float | None = None
    combine: str = "sum"
    rule: str = "clicked>skipped-above"
    folds: int = 5
    random_state: int = 0

    def fit(self, log: ClickLog | ClickCounts, pairs: Preferences | None = None, checkpoint: Path | None = None) -> Self:
        """Fit both models and choose theta.

        Parameters
        ----------
        log : ClickLog or ClickCounts
            With counts, for example of a stream, `pairs` is required.
        pairs : Preferences, default None
            None extracts them from the log. If given, the folds are of pairs, not of sessions: the walk is then evaluated on
            clicks that it was fitted to, and theta is biased upwards.
        checkpoint : path-like, default None
            Folder for finished folds and for the passes of the factors. If training is killed, the same call resumes it and
            ends with the same model, bit for bit; see `structrank.training.checkpoint`.
        """
        self._check_parameters(log, pairs)
        folder = None if checkpoint is None else CheckpointFolder.create(checkpoint)
        factors = CollaborativeRanker() if self.collaborative is None else clone(self.collaborative)
        walks = [RandomWalkRanker(*each) for each in _WALKS] if self.walk is None else [clone(self.walk)]
        walk, theta, curve = walks[-1], self.theta, []
        if theta is None:
            combine = "sum" if self.combine == "prior" else self.combine
            walk, theta, curve, passes = self._choose(combine, factors, walks, log, pairs, folder)
            if self.combine == "prior":  # with the best walk of the sum: trying all four would take four times as long
                walk, theta, curve, passes = self._choose("prior", factors, [walk], log, pairs, folder)
            factors.set_params(max_iter=passes, validation_fraction=0)
        counts = click_counts(log)
        # _check_parameters requires pairs if log is ClickCounts.
        pairs = preference_pairs(log, self.rule) if pairs is None else _over_ids_of(counts, pairs)  # type: ignore[arg-type]
        clicks = _scored_walk(self.combine, walk.fit(counts), counts.impressions)
        expected = clicks.margins(theta) if self.combine == "prior" else None
        factors._fit(pairs, expected=expected, checkpoint=None if folder is None else folder / "factors")
        self.collaborative_, self.walk_, self.walk_scale_ = factors, walk, clicks.scale
        self.collaborative_scale_ = _scored_factors(self.combine, factors, counts.impressions).scale
        self.theta_, self.curve_ = float(theta), curve
        return self

    @property
    def queries_(self):
        """Ids of the queries."""
        return self.walk_.queries_

    @property
    def urls_(self):
        """Ids of the urls."""
        return self.walk_.urls_

    def _scores(self, query, url):
        clicks = _Scored(self.walk_, self.combine != "raw-sum", self.walk_scale_)(query, url)
        scale = self.collaborative_scale_ if self.combine == "sum" else None  # older files have one in any case
        preferred = _Scored(self.collaborative_, scale=scale)(query, url)
        return _mixed(self.combine, self.theta_, preferred, clicks)

    def check_loaded(self):
        """Raise unless both models of a loaded model, which were checked on their own, fit together."""
        super().check_loaded()
        checks.check_choice("combine", self.combine, ("sum", "raw-sum", "prior"))
        theta = checks.check_fitted_attribute(self, "theta_", float)
        checks.check_number("theta_", theta, at_least=0, at_most=None if self.combine == "prior" else 1)
        factors = checks.check_fitted_attribute(self, "collaborative_", CollaborativeRanker)
        walk = checks.check_fitted_attribute(self, "walk_", RandomWalkRanker)
        for name in ("queries_", "urls_"):
            n_factors, n_walk = (len(getattr(model, name)) for model in (factors, walk))
            if n_factors < n_walk:  # `fold_in` adds queries
                raise ValueError(f"{name} of the factors has {n_factors} ids; expected at least the {n_walk} of the walk")
        if self.combine != "raw-sum":
            checks.check_fitted_attribute(self, "walk_scale_", QueryScale).check(len(walk.queries_))
        if self.combine == "sum":
            checks.check_fitted_attribute(self, "collaborative_scale_", QueryScale).check(len(walk.queries_))

    def _check_parameters(self, log, pairs):
        for name, kind in (("collaborative", CollaborativeRanker), ("walk", RandomWalkRanker)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ValueError(f"{name} is a {type(value).__name__}; expected a {kind.__name__} or None.")
        checks.check_choice("combine", self.combine, ("sum", "raw-sum", "prior"))
        if self.theta is not None:
            most = None if self.combine == "prior" else 1
            checks.check_number("theta", self.theta, at_least=0, at_most=most, otherwise=", or None to choose it")
        checks.check_choice("rule", self.rule, tuple(RULES))
        checks.check_number("folds", self.folds, at_least=2, integer=True)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)
        if not isinstance(log, (ClickLog, ClickCounts)):
            raise ValueError(
                f"log is a {type(log).__name__}; expected a ClickLog, or ClickCounts together with pairs. {READERS}"
            )
        if pairs is None and isinstance(log, ClickCounts):
            raise ValueError("log is ClickCounts, from which pairs cannot be extracted; pass pairs=preference_pairs(...) too.")
        if pairs is not None:
            check_pairs(pairs, "pairs")

    def _folds(self, log, pairs):
        """Yield training pairs, training counts and held-out pairs of each fold."""
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

    def _choose(self, combine, factors, walks, log, pairs, folder):
        """Cross-validate; return the best walk and theta, the accuracy of each theta, and the mean number of passes.

        Finished folds are kept in a folder, unless it is None.
        """
        thetas = STRENGTHS if combine == "prior" else THETAS
        agreed, passes = np.zeros((len(walks), len(thetas))), np.zeros(len(thetas))
        weight, n_evaluated, n_folds, n_done = 0.0, 0, 0, 0
        data = {"log": _arrays(log), "pairs": None if pairs is None else _arrays(pairs)}
        kept = KeptState(None if folder is None else folder / f"choice for {combine}", self, data)
        if kept.state is not None:
            kept.check(kept.state["sums"], [agreed, passes])
            agreed, passes = kept.state["sums"]
            weight, n_evaluated, n_folds, n_done = kept.state["counts"]
        for number, (known, counts, held_out) in enumerate(self._folds(log, pairs)):
            if number < n_done or not len(known) or not len(held_out):
                continue
            sample, shown = held_out, counts.impressions
            if combine != "prior":  # a prior needs the margin of every training pair, and so a walk from every query anyway
                sample, shown = _selection_sample(held_out, counts.impressions, self.random_state)
            fitted = [_scored_walk(combine, clone(walk).fit(counts), shown) for walk in walks]
            accuracy, made = _try_thetas(combine, thetas, clone(factors), fitted, known, held_out, sample, shown)
            agreed += sample.weight.sum() * accuracy
            passes += made
            weight += sample.weight.sum()
            n_evaluated += len(sample)
            n_folds += 1
            enough = n_evaluated >= _SELECTION_PAIRS
            counted = [float(weight), n_evaluated, n_folds, self.folds if enough else number + 1]
            kept.finish(functools.partial(dict, sums=[agreed, passes], counts=counted))
            if enough:
                break
        if not n_folds:
            raise ValueError(
                "log has too few preferences to choose theta: every fold lacks training or held-out pairs. Pass theta, for "
                "example theta=0.5, or another rule."
            )
        accuracy = agreed / weight
        # The mean with the neighbours is less noisy than the accuracy of one theta.
        padded = np.pad(accuracy, ((0, 0), (1, 1)), mode="edge")
        smooth = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
        number, best = np.unravel_index(np.argmax(smooth), smooth.shape)
        curve = list(zip(thetas, accuracy[number].tolist(), strict=True))
        return walks[number], thetas[best], curve, max(round(passes[best] / n_folds), 1)


def _arrays(data):
    """Return the content of a log, of counts or of pairs."""
    held = [value for value in vars(data).values() if isinstance(value, np.ndarray) or scipy.sparse.issparse(value)]
    return [*held, data.queries.values, data.urls.values]


def _selection_sample(held_out, impressions, random_state):
    """Return at most `_SELECTION_PAIRS` held-out pairs, and the impressions of their queries.

    A walk takes time per query, and a large log has more queries than the selection needs.
    """
    if len(held_out) <= _SELECTION_PAIRS:
        return held_out, impressions
    sample = held_out.subset(random_mask(len(held_out), _SELECTION_PAIRS / len(held_out), random_state, "pairs"))
    entries = impressions.tocoo()
    wanted = np.isin(entries.row, sample.query)
    kept = (entries.data[wanted], (entries.row[wanted], entries.col[wanted]))
    return sample, scipy.sparse.csr_matrix(kept, shape=impressions.shape)


def _try_thetas(combine, thetas, factors, walks, known, held_out, sample, shown):
    """Return the accuracy on the sample for each walk and theta, and the passes of the factors for each theta."""
    accuracy, passes = np.empty((len(walks), len(thetas))), np.empty(len(thetas))
    clicked = [walk.of_pairs(sample) for walk in walks]
    for number, theta in enumerate(thetas):
        if combine == "prior" or number == 0:  # factors on top of a prior depend on theta
            check_finished(factors._fit(known, held_out, walks[0].margins(theta) if combine == "prior" else None))
            preferred = _scored_factors(combine, factors, shown).of_pairs(sample)
        accuracy[:, number] = [pair_accuracy(sample, _mixed(combine, theta, preferred, each)) for each in clicked]
        passes[number] = factors.n_iter_
    return accuracy, passes


@dataclass(frozen=True)
class _Scored:
    """Scores of a model for dense (query, url), or their logarithm; standardised by the scale of each query if there is one."""

    model: ClickRanker
    logarithm: bool = False
    scale: QueryScale | None = None

    def __call__(self, query, url):
        scores = self.model._scores(query, url)
        if self.logarithm:
            scores = np.log(scores + _FLOOR)
        return scores if self.scale is None else self.scale.apply(query, scores)

    def standardised(self, impressions):
        shown = impressions.tocoo()
        query = shown.row.astype(np.int64)
        return replace(self, scale=QueryScale.measure(query, self(query, shown.col.astype(np.int64)), shown.shape[0]))

    def of_pairs(self, pairs):
        """Return the scores of winners and losers, as for `pair_accuracy`."""
        query = pairs.query.astype(np.int64)
        return np.column_stack([self(query, url.astype(np.int64)) for url in (pairs.winner, pairs.loser)])

    def margins(self, strength):
        """Return the function from pairs to their prior margins."""

        def expected(pairs):
            scores = self.of_pairs(pairs)
            return strength * (scores[:, 0] - scores[:, 1])

        return expected


def _scored_factors(combine, factors, impressions):
    return _Scored(factors).standardised(impressions) if combine == "sum" else _Scored(factors)


def _scored_walk(combine, walk, impressions):
    return _Scored(walk) if combine == "raw-sum" else _Scored(walk, logarithm=True).standardised(impressions)


def _mixed(combine, theta, preferred, clicked):
    return preferred + theta * clicked if combine == "prior" else (1 - theta) * preferred + theta * clicked


def _over_ids_of(counts, pairs):
    """Return the pairs over the ids of counts; ids read from one stream may be equal but distinct objects."""
    if pairs.queries is counts.queries and pairs.urls is counts.urls:
        return pairs
    query, url = counts.queries.index(pairs.queries.values), counts.urls.index(pairs.urls.values)
    columns = query[pairs.query], url[pairs.winner], url[pairs.loser]
    if min(column.min() for column in columns) < 0:
        raise ValueError("pairs have queries or urls that log does not have; expected pairs and log from the same data.")
    return Preferences(counts.queries, counts.urls, *columns, pairs.weight)
