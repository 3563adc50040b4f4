"""Direct polish: line searches on the measure, starting from a trained w.

Along a line w + t v every score is linear in t, so the ranking of a query changes only where two documents cross, and a measure
is piecewise constant: it changes only at crossings of relevant and irrelevant documents, and a sweep over the crossings finds
the best t exactly. Lines go along features and in random directions. A measure over few queries is easily overfitted, so
validation queries choose the w to keep.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from structrank import criteria, metrics
from structrank._kernels import breakpoints
from structrank._support import checks
from structrank._support.saveable import record
from structrank.preparation import check_no_preparation
from structrank.svm import StructRankSVM
from structrank.training.data import RankingData, score_rows

# Maximum change of scores along a line, relative to their spread. With 20 times longer steps, the test measure of `train_for`
# was lower by 0.0042 (standard error 0.0015) in 60 trainings on synthetic data.
_REACH = 0.05
# A round searches at most this many features, and as many random directions.
_MAX_FEATURES = 100
# Crossings closer than this are merged: a w between them would depend on the last digits of scores.
_MIN_WIDTH = 1e-6
# Pairs of a relevant and an irrelevant document of a query: a line crosses some percent of them, which take 30 bytes each.
_MOST_PAIRS = 10**9


class TooManyPairsError(ValueError):
    """Raised for data with queries that are too long to polish on."""


@record
@dataclass(frozen=True, repr=False)
class Polish:
    """Result of polishing; printing shows a summary.

    Attributes
    ----------
    measure : str
    train, validation : tuple of (float, float)
        The measure before and after; `train` is over all training queries, while that of a `Selection` may average folds.
    steps : int
        Number of moves of w from the given model to the returned one.
    tried : int
        Number of lines searched.
    """

    measure: str
    train: tuple
    validation: tuple
    steps: int
    tried: int

    def __repr__(self):
        moves = [f"{name} {getattr(self, name)[0]:.4f} -> {getattr(self, name)[1]:.4f}" for name in ("train", "validation")]
        steps = "1 step" if self.steps == 1 else f"{self.steps} steps"
        return f"{self.measure}: {', '.join(moves)}; {steps} along {self.tried} lines"


def polish(model, train, validation, measure, *, rounds=5, random_state=0):
    """Improve a trained linear ranker by exact line searches on its evaluation measure.

    A round searches along every feature (at most 100, drawn at random) and as many random directions, and moves w if the
    measure rises on the training queries (both with ties in the worst order and with ties averaged). The w with the best value
    on the validation queries is returned; the given w if none is better. The first round that does not raise this value is the
    last.

    Parameters
    ----------
    model : StructRankSVM
        Trained; it is not modified.
    train, validation : Dataset
        Have ``X``, ``y`` and ``qid``.
    measure : str or Measure
        "map", "mrr[@k]", "ndcg[@k]", or a measure registered with a criterion that discounts ranks (`structrank.register`).
        Measures given by name have the model's `discount`, and the binary gain with its `relevant_from`; its `gain` if it was
        trained on grades (``relevant_from=None``).
    rounds : int, default 5
        Maximum number of rounds.
    random_state : int, default 0
        Seed of the directions.

    Returns
    -------
    StructRankSVM
        A copy of the model with a new `coef_`, and with ``polish_``, a `Polish`. Certificate, health and history are of the
        weights before polishing.

    Notes
    -----
    A line costs a pass over X and O(n log n) for n crossing pairs of relevant and irrelevant documents; for a measure with a
    cutoff, only documents that can rank above it are counted. Relevant and irrelevant documents with the same score along a
    whole line are ranked in the worst order.

    Examples
    --------
    >>> from structrank import StructRankSVM, datasets
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = StructRankSVM("auc").fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> polished = polish(model, fold.train, fold.validation, "map")
    >>> before, after = polished.polish_.validation
    >>> before <= after
    True
    """
    if not isinstance(model, StructRankSVM):
        raise ValueError(f"model={model!r} is not valid: expected a trained StructRankSVM.")
    check_is_fitted(model)
    check_no_preparation(model, "polish")
    ndcg = next((one for one in model.parsed_criteria() if isinstance(one, criteria.NDCG)), None)
    ndcg = ndcg or criteria.parse("ndcg", discount=model.discount, gain=model.gain)
    gain = {"gain": ndcg.gain} if model.relevant_from is None else {"gain": "binary", "relevant_from": model.relevant_from}
    measure = metrics.parse(measure, discount=ndcg.discount, **gain)
    rounds = checks.check_number("rounds", rounds, at_least=1, integer=True)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    if not model.coef_.any():
        raise ValueError("model has w = 0, which cannot be polished; train with a criterion that is not vacuous.")
    parts = {"train": train, "validation": validation}
    for name, part in parts.items():
        checks.check_dataset(name, part)
        model.predict(part.X)  # checks X
        parts[name] = RankingData.of(part)
    search = LineSearch(parts["train"], measure)

    def judge(name, w):
        return parts[name].evaluator(measure)(score_rows(parts[name].X, w))

    rng = np.random.default_rng(random_state)
    w = best = model.coef_
    start = {name: judge(name, w) for name in parts}
    for name, value in start.items():
        if np.isnan(value):
            raise ValueError(f"{measure.name} is undefined for every query of {name}; expected relevant documents in some.")
    best_value, steps, moved = start["validation"], 0, 0
    for _ in range(rounds):
        best_before = best
        for step in search.moves(w, rng):
            w, moved = step, moved + 1
            value = judge("validation", w)
            if value > best_value:
                best, best_value, steps = w, value, moved
        if best is best_before:
            break
    polished = copy.copy(model)
    polished.coef_ = best
    ends = {name: (start[name], judge(name, best)) for name in parts}
    polished.polish_ = Polish(measure.name, ends["train"], ends["validation"], steps, search.n_lines)
    return polished


def is_polishable(measure):
    """Return whether lines can be searched on a measure: its criterion discounts ranks, and it has gains.

    Examples
    --------
    >>> is_polishable(metrics.MAP()), is_polishable(metrics.AUC())
    (True, False)
    """
    return hasattr(criteria.matched_criterion(measure), "credits") and hasattr(measure, "gains")


def scores_by_query(data, w):
    """Compute the scores of documents, grouped by query, and their standard deviation around the mean of the query."""
    grouping = data.grouping
    scores = score_rows(data.X, w)[grouping.rows]
    means = np.add.reduceat(scores, grouping.indptr[:-1]) / grouping.sizes
    return scores, float(np.std(scores - np.repeat(means, grouping.sizes)))


class LineSearch:
    """Exact line searches on one measure over the queries of a data set.

    Parameters
    ----------
    data : RankingData
    measure : Measure
        A measure for which `is_polishable` is true.

    Attributes
    ----------
    n_lines : int
        Lines searched so far.

    Examples
    --------
    >>> data = RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=0)
    >>> w, gain = LineSearch(data, metrics.MRR()).along(np.array([1.0, 0.0]), np.array([0.0, 1.0]), reach=4.0)
    >>> w.tolist(), gain
    ([1.0, 2.5], 0.5)
    """

    def __init__(self, data, measure):
        criterion = criteria.matched_criterion(measure)
        if not is_polishable(measure):
            known = criteria.measures_of(criteria.Discounted)
            raise ValueError(f"measure {measure.name!r} cannot be polished; choose one of: {known}.")
        self._data, grouping = data, data.grouping
        self._evaluator = data.evaluator(measure)
        self._rows, self._starts, self._sizes = grouping.rows, grouping.indptr, grouping.sizes
        self._query_of = np.repeat(np.arange(grouping.n_queries), grouping.sizes)
        longest = int(grouping.sizes.max())
        self._discounts, self._credits = criterion.discounts(longest + 2), criterion.credits(longest + 2)
        self._cut = longest if getattr(criterion, "k", None) is None else criterion.k
        self._layers = self._split(data.labels[grouping.rows], measure)
        for relevant, _ in self._layers:
            n_relevant = np.add.reduceat(relevant, self._starts[:-1], dtype=np.int64)
            most = int((n_relevant * (grouping.sizes - n_relevant)).max())
            if most > _MOST_PAIRS:
                raise TooManyPairsError(
                    f"a query has {most:,} pairs of relevant and irrelevant documents, too many to polish on; at most "
                    f"{_MOST_PAIRS:,} are supported."
                )
        self._scales = np.sqrt(StandardScaler(with_mean=False).fit(data.X).var_)
        self.n_lines = 0
        self._start = None, None, None  # w of the last line, with its scores and their spread

    def _split(self, labels, measure):
        """Return pairs (relevant, factor of each query): a measure with gains is a weighted sum of binary ones.

        For G(l) = sum_m (G_m - G_{m-1}) [l >= label_m] the discounted gain is the same sum of binary ones, and so is the ideal.
        """
        levels = np.unique(labels)
        heights = np.diff(measure.gains(levels), prepend=0.0)
        levels, heights = levels[heights > 0], heights[heights > 0]
        firsts = self._starts[:-1]
        reached = np.concatenate([[0.0], np.cumsum(self._credits * self._discounts)])
        relevant = [labels >= level for level in levels]
        ideal = sum(
            height * reached[np.add.reduceat(mask, firsts, dtype=np.int64)]
            for mask, height in zip(relevant, heights, strict=True)
        ) + np.zeros(firsts.shape[0])
        share = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0) / max(np.count_nonzero(ideal), 1)
        return [(mask, height * share) for mask, height in zip(relevant, heights, strict=True)]

    def moves(self, w, rng):
        """Search along the directions of a round; yield each w that is better than the one before."""
        value = self._averaged(w)
        for direction in self.directions(rng):
            better, gain = self.along(w, direction)
            if gain > 0.0 and (averaged := self._averaged(better)) > value:
                w, value = better, averaged
                yield w

    def _averaged(self, w):
        """Compute the measure with tied documents averaged over their orders."""
        return self._evaluator(score_rows(self._data.X, w))

    def directions(self, rng):
        """Yield the directions of a round: features that vary, in random order, and as many random directions."""
        features = rng.permutation(np.flatnonzero(self._scales > 0.0))[:_MAX_FEATURES]
        for feature in features:
            direction = np.zeros(self._data.n_features)
            direction[feature] = 1.0
            yield direction
        for _ in features:
            direction = rng.normal(size=self._data.n_features)
            yield np.divide(direction, self._scales, out=np.zeros_like(direction), where=self._scales > 0.0)

    def along(self, w, direction, reach=_REACH):
        """Find the best point on the line w + t v.

        Parameters
        ----------
        w, direction : (n_features,) array
        reach : float
            Bound on |t|: the spread of t v.x within queries is at most `reach` times that of w.x.

        Returns
        -------
        w : (n_features,) array
            Midpoint of the best interval, the widest of several; the given w if none is better.
        gain : float
            Increase of the measure.
        """
        self.n_lines += 1
        slopes, spread = scores_by_query(self._data, direction)
        if spread <= 1e-9 * np.abs(slopes).max():  # constant within each query, up to rounding
            return w, 0.0
        if w is not self._start[0]:  # many lines start at the same w
            self._start = w, *scores_by_query(self._data, w)
        _, scores, spread_at_w = self._start
        farthest = reach * spread_at_w / spread
        edges, values = self.profile(scores, slopes, farthest)
        widths = np.diff(edges)
        here = np.searchsorted(edges, 0.0, side="right") - 1
        values = np.where(widths > _MIN_WIDTH * farthest, values - values[here], -np.inf)
        gain = values.max()
        if not gain > 1e-12:
            return w, 0.0
        best = np.flatnonzero(values >= gain - 1e-12)
        best = best[np.argmax(widths[best])]
        return w + 0.5 * (edges[best] + edges[best + 1]) * direction, float(gain)

    def profile(self, scores, slopes, farthest):
        """Compute the measure along scores + t slopes, for t from -farthest to farthest.

        Parameters
        ----------
        scores, slopes : (n_docs,) array
            Grouped by query.
        farthest : float

        Returns
        -------
        edges : (n + 1,) array
            The values of t where the measure may change, and both ends.
        values : (n,) array
            Mean of the measure on each interval, minus that of the first.
        """
        low, high = scores - farthest * slopes, scores + farthest * slopes
        kept = np.empty(scores.shape[0], dtype=bool)
        breakpoints.select(low, high, self._starts, self._cut, kept)
        found = [self._crossings(low, high, kept, *layer) for layer in self._layers]
        times, changes = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.argsort(times, kind="stable")
        edges = np.concatenate([[-farthest], farthest * (2.0 * times[order] - 1.0), [farthest]])
        return edges, np.concatenate([[0.0], np.cumsum(changes[order])])

    def _crossings(self, low, high, kept, relevant, factors):
        """Return the times of crossings from 0 to 1, in order, and the change of the measure at each."""
        n = breakpoints.count_crossings(low, high, self._starts, kept, relevant)
        times, crossing, changes = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n)
        above = np.zeros(low.shape[0], dtype=np.int64)
        breakpoints.find_crossings(low, high, self._starts, kept, relevant, times, crossing, above)
        order = np.argsort(times, kind="stable")
        breakpoints.replay(
            order,
            crossing,
            self._starts,
            self._query_of,
            kept,
            relevant,
            above,
            factors,
            self._discounts,
            self._credits,
            changes,
        )
        return times[order], changes
