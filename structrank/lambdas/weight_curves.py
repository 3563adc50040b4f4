"""How smooth a measure is as a function of one weight, and how this grows with the number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank import _validation, metrics
from structrank._validation import check_width
from structrank.data import RankingData, group_by_query
from structrank.lambdas.optimality import measure_of, weights_of
from structrank.lambdas.training import Yardstick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from structrank._typing import Matrix


@dataclass(frozen=True, eq=False)
class Smoothness:
    """What `smoothness` gives.

    Attributes
    ----------
    measure : Measure
    weights : (n_weights,) array of int
        Which weights were moved.
    shifts : (n_shifts,) array
        By which share of itself a weight was moved.
    curves : dict
        From numbers of queries to (n_weights, n_shifts) arrays: the measure with one weight moved.

    Examples
    --------
    >>> found = Smoothness(metrics.MAP(), np.array([0]), np.arange(4), {10: np.array([[0.0, 0.1, 0.2, 0.3]])})
    >>> round(found.roughness(10), 10)  # a straight line
    0.0
    """

    measure: metrics.Measure
    weights: np.ndarray
    shifts: np.ndarray
    curves: dict

    def roughness(self, n_queries):
        """Give the mean absolute second difference of the curves: what is left of a step when its neighbours are taken off."""
        return float(np.abs(np.diff(self.curves[n_queries], n=2, axis=1)).mean())


def smoothness(
    model: Any, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, measure: str | metrics.Measure | None = None, *,
    n_queries: Sequence[int] | None = None, n_weights: int = 5, span: float = 1.0, n_shifts: int = 101, random_state: int = 0,
) -> Smoothness:  # fmt: skip
    """Measure a ranking while one weight at a time is moved, on growing samples of the queries.

    A measure of one query is flat or jumps wherever a weight moves; the mean over many queries may look smooth. Section 5.3 of
    Yue and Burges, MSR-TR-2007-115.

    Parameters
    ----------
    model : ranker
        Fitted, as for `local_optimality`.
    X, y, qid
        Data, such as those that the model was trained on.
    measure : str or Measure, default None
        As `structrank.metrics.parse` takes it; None for the model's own.
    n_queries : sequence of int, default None
        Sizes of the samples, which contain each other; None for a hundredth, a tenth and all of the queries.
    n_weights : int, default 5
        So many weights are moved, the largest ones; of a network with two layers, the largest of the last.
    span : float, default 1.0
        Each is moved from -span to span times its value.
    n_shifts : int, default 101
        Points on each curve, at least 3.
    random_state : int, default 0
        Seed of the samples.

    Returns
    -------
    Smoothness

    See Also
    --------
    SmoothnessDisplay : Draws the curves.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.lambdas import LambdaRank, smoothness
    >>> train = datasets.make_ranking(n_queries=200, n_docs=10, n_features=5, random_state=0).train
    >>> model = LambdaRank("ndcg", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> found = smoothness(model, train.X, train.y, train.qid, n_queries=[5, 100])
    >>> found.roughness(100) < found.roughness(5)
    True
    """
    n_weights = _validation.check_number("n_weights", n_weights, at_least=1, integer=True)
    span = _validation.check_number("span", span, above=0)
    n_shifts = _validation.check_number("n_shifts", n_shifts, at_least=3, integer=True)
    random_state = _validation.check_number("random_state", random_state, at_least=0, integer=True)
    network, weights = weights_of(model)
    target = measure_of(model, measure)
    data = RankingData(X, y, qid)
    check_width(data.n_features, network.n_features, type(model).__name__)
    total = data.grouping.n_queries
    if n_queries is None:
        n_queries = sorted({max(1, total // 100), max(1, total // 10), total})
    sizes = np.atleast_1d(n_queries).tolist()
    sizes = [_validation.check_number("n_queries", size, at_least=1, integer=True) for size in sizes]
    if not sizes or max(sizes) > total:
        raise ValueError(
            f"n_queries={n_queries!r} is not valid: expected sizes of samples, up to the {total} queries there are."
        )

    last = np.arange(network.size)[-(network.n_hidden or network.n_features) :]
    moved = last[np.argsort(-np.abs(weights[last]), kind="stable")][:n_weights]
    shifts = np.linspace(-span, span, n_shifts)
    rank_of_query = np.argsort(np.random.default_rng(random_state).permutation(total))
    query = data.grouping.query_of_row()
    samples = {}
    for size in sizes:
        rows = np.flatnonzero(rank_of_query[query] < size)
        yardstick = Yardstick(target, data.labels[rows], group_by_query(query[rows], rows.shape[0]))
        if np.isnan(yardstick(np.zeros(rows.shape[0]))):
            raise ValueError(f"{target.name} is undefined for every query of a sample of {size}; expected larger samples.")
        samples[size] = rows, yardstick
    directions = np.eye(network.size)[moved] * weights[moved][:, None]
    curves = {size: np.empty((moved.shape[0], n_shifts)) for size in sizes}
    for number, path in enumerate(network.paths(data.X, weights, directions)):
        for at, shift in enumerate(shifts):
            scores = path(shift)
            for size, (rows, yardstick) in samples.items():
                curves[size][number, at] = yardstick(scores[rows])
    return Smoothness(target, moved, shifts, curves)
