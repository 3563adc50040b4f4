"""Direct polish: search on the measure itself, from a trained w.

Along a line w + t v every score is linear in t, so the ranking of a query changes only where two documents cross, and a measure
is piecewise constant. Between neighbouring crossings of good and bad documents nothing changes, so that a sweep over them finds
the best t of a line exactly. Lines go along features and in random directions. A measure over few queries is soon fitted to
their noise, so validation queries decide what is kept.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from structrank import _validation, criteria, metrics
from structrank._kernels import breakpoints
from structrank.data import RankingData, score_rows
from structrank.lambdas.training import Yardstick
from structrank.svm import StructRankSVM

# Along a line scores change by at most this times their own spread. On made-up data, steps ten times as long gained no more on
# training queries, and lost on others now and then.
_REACH = 0.05
# A round tries at most this many features, and as many random directions.
_MOST_FEATURES = 100
# Crossings of a line this close together are one: a w between them would hang on the last digits of scores.
_LEAST_WIDTH = 1e-6


@dataclass(frozen=True, repr=False)
class Polish:
    """What polishing did; printing it says so in words.

    Attributes
    ----------
    measure : str
    train, validation : tuple of (float, float)
        The measure before and after; `train` is of all training queries, where that of a `Selection` may be a mean over folds.
    steps : int
        Lines along which w was moved, of those that led to the model that was kept.
    tried : int
        Lines that were searched.
    """

    measure: str
    train: tuple
    validation: tuple
    steps: int
    tried: int

    def __repr__(self):
        moves = [
            f"{name} {getattr(self, name)[0]:.4f} -> {getattr(self, name)[1]:.4f}" for name in ("train", "validation")
        ]
        return f"{self.measure}: {', '.join(moves)}; {self.steps} steps along {self.tried} lines"


def polish(model, train, validation, measure, *, rounds=5, random_state=0):
    """Improve a trained linear ranker by exact line searches on the measure that it is judged by.

    A round searches along every feature (at most 100, drawn at random) and as many random directions, and moves w wherever the
    measure rises on the training queries (by the order that is worst where scores are equal, and by their average too). The w
    with the best value on the validation queries is kept: the given one, if none is better. A round that does not raise that
    value is the last.

    Parameters
    ----------
    model : StructRankSVM
        Trained; it is left as it is.
    train, validation : Dataset
        Have ``X``, ``y`` and ``qid``.
    measure : str or Measure
        "map", "mrr[@k]", "ndcg[@k]", or one registered with a criterion that discounts ranks (`structrank.register`). Those
        given by name have the conventions of `structrank.compare`: binary gain, and the model's `discount` and `relevant_from`.
    rounds : int, default 5
        Most rounds.
    random_state : int, default 0
        Seed of the directions.

    Returns
    -------
    StructRankSVM
        A copy of the model with another `coef_`, and with ``polish_``, a `Polish`. Its certificate, health and history are
        those of the training before.

    Notes
    -----
    A line costs a pass over X and n log n in the number n of pairs of good and bad documents that cross; of a measure with a
    cut, only documents count that may come above it. Good and bad documents with the same score all along a line count in the
    worst order.

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
    relevant_from = 1 if model.relevant_from is None else model.relevant_from
    measure = metrics.parse(measure, gain="binary", discount=model.discount, relevant_from=relevant_from)
    rounds = _validation.check_number("rounds", rounds, at_least=1, integer=True)
    random_state = _validation.check_number("random_state", random_state, at_least=0, integer=True)
    if not model.coef_.any():
        raise ValueError(
            "model has w = 0, from which no direction leads anywhere; train it on a criterion that learns."
        )
    parts = {"train": train, "validation": validation}
    for name, part in parts.items():
        _validation.check_dataset(name, part)
        model.predict(part.X)  # judges X
    search = LineSearch(RankingData(train.X, train.y, train.qid), measure)

    def judge(name, w):
        part = parts[name]
        (value,) = metrics.evaluate(part.y, score_rows(_validation.as_matrix(part.X), w), part.qid, measure).values()
        return value

    rng = np.random.default_rng(random_state)
    w = best = model.coef_
    start = {name: judge(name, w) for name in parts}
    for name, value in start.items():
        if np.isnan(value):
            raise ValueError(
                f"{measure.name} is undefined for every query of {name}; expected relevant documents in some."
            )
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


class LineSearch:
    """Exact line searches on one measure over the queries of a data set.

    Parameters
    ----------
    data : RankingData
    measure : Measure
        For which `is_polishable` is true.

    Attributes
    ----------
    n_lines : int
        Lines searched so far.

    Examples
    --------
    >>> data = RankingData([[1.0, 0.0], [0.0, 1.0]], [0, 1])
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
        self._yardstick = Yardstick(measure, data.labels, grouping)
        measure.check_labels(data.labels)
        self._rows, self._starts = grouping.rows, grouping.indptr
        self._query_of = np.repeat(np.arange(grouping.n_queries), grouping.sizes)
        longest = int(grouping.sizes.max())
        self._discounts, self._credits = criterion.discounts(longest + 2), criterion.credits(longest + 2)
        self._cut = longest if getattr(criterion, "k", None) is None else criterion.k
        self._layers = self._split(data.labels[grouping.rows], measure)
        self._scales = np.sqrt(StandardScaler(with_mean=False).fit(data.X).var_)
        self.n_lines = 0

    def _split(self, labels, measure):
        """Give (relevant, factor of each query) pairs: a measure with gains is a weighted sum over the least label that counts.

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
        """Give the measure itself, which averages over the orders of documents with the same score."""
        return self._yardstick(score_rows(self._data.X, w))

    def directions(self, rng):
        """Give the directions of a round: features that vary, in random order, and as many random ones."""
        features = rng.permutation(np.flatnonzero(self._scales > 0.0))[:_MOST_FEATURES]
        for feature in features:
            direction = np.zeros(self._data.n_features)
            direction[feature] = 1.0
            yield direction
        for _ in features:
            direction = rng.normal(size=self._data.n_features)
            yield np.divide(direction, self._scales, out=np.zeros_like(direction), where=self._scales > 0.0)

    def along(self, w, direction, reach=_REACH):
        """Find the best place on the line w + t v.

        Parameters
        ----------
        w, direction : (n_features,) array
        reach : float
            How far t goes either way: as far as the spread of t v.x within queries is at most this times that of w.x.

        Returns
        -------
        w : (n_features,) array
            The middle of the best stretch, the widest of several; the very w given, where none is better.
        gain : float
            By which the measure is higher there.
        """
        self.n_lines += 1
        scores, slopes = (score_rows(self._data.X, one)[self._rows] for one in (w, direction))
        spread = self._spread(slopes)
        if spread <= 1e-9 * np.abs(slopes).max():  # the same for all documents of a query, but for rounding
            return w, 0.0
        farthest = reach * self._spread(scores) / spread
        edges, values = self.profile(scores, slopes, farthest)
        widths = np.diff(edges)
        here = np.searchsorted(edges, 0.0, side="right") - 1
        values = np.where(widths > _LEAST_WIDTH * farthest, values - values[here], -np.inf)
        gain = values.max()
        if not gain > 1e-12:
            return w, 0.0
        best = np.flatnonzero(values >= gain - 1e-12)
        best = best[np.argmax(widths[best])]
        return w + 0.5 * (edges[best] + edges[best + 1]) * direction, float(gain)

    def profile(self, scores, slopes, farthest):
        """Give the measure along scores + t slopes, for t from -farthest to farthest.

        Parameters
        ----------
        scores, slopes : (n_docs,) array
            Query after query.
        farthest : float

        Returns
        -------
        edges : (n + 1,) array
            Where it may change, and both ends.
        values : (n,) array
            The mean of the measure on each stretch, less that of the first.
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
        """Give the times of crossings from 0 to 1, in order, and the change of the measure at each."""
        n = breakpoints.count_crossings(low, high, self._starts, kept, relevant)
        times, good, changes = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n)
        above = np.zeros(low.shape[0], dtype=np.int64)
        breakpoints.find_crossings(low, high, self._starts, kept, relevant, times, good, above)
        order = np.argsort(times, kind="stable")
        breakpoints.replay(
            order, good, self._starts, self._query_of, kept, relevant, above, factors, self._discounts, self._credits,
            changes,
        )  # fmt: skip
        return times[order], changes

    def _spread(self, scores):
        """Give the standard deviation of scores around the mean of their query."""
        sizes = np.diff(self._starts)
        means = np.add.reduceat(scores, self._starts[:-1]) / sizes
        return float(np.std(scores - np.repeat(means, sizes)))
