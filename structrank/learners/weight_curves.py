"""Smoothness of a measure as a function of one weight, by number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.typing import ArrayLike, Matrix
from structrank.datasets.queries import group_by_query
from structrank.learners.optimality import measure_of, network_of
from structrank.metrics import Evaluator
from structrank.training.data import RankingData


@dataclass(frozen=True, eq=False)
class Smoothness:
    """Result of `smoothness`.

    Attributes
    ----------
    measure : Measure
    weights : (n_weights,) array of int
        Indices of the weights that were moved.
    shifts : (n_shifts,) array
        Relative changes of a weight.
    curves : dict
        Mapping from numbers of queries to (n_weights, n_shifts) arrays: the measure with one weight moved.

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
        """Compute the mean absolute second difference of the curves."""
        return float(np.abs(np.diff(self.curves[n_queries], n=2, axis=1)).mean())


def smoothness(
    model: Any,
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measure: str | metrics.Measure | None = None,
    *,
    n_queries: Sequence[int] | None = None,
    n_weights: int = 5,
    span: float = 1.0,
    n_shifts: int = 101,
    random_state: int = 0,
) -> Smoothness:
    """Evaluate a measure while one weight at a time is moved, on nested samples of the queries.

    The measure of one query is piecewise constant in a weight; the mean over many queries may look smooth. See section 5.3 of
    Yue and Burges, MSR-TR-2007-115.

    Parameters
    ----------
    model : ranker
        Fitted, as for `local_optimality`.
    X, y, qid
        Data, such as the training set of the model.
    measure : str or Measure, default None
        As for `structrank.metrics.parse`; None for the measure of the model.
    n_queries : sequence of int, default None
        Sizes of the nested samples; None for 1 %, 10 % and all of the queries.
    n_weights : int, default 5
        Number of weights to move, largest first; in a two-layer network, weights of the last layer.
    span : float, default 1.0
        Each weight is changed by -span to span times its value.
    n_shifts : int, default 101
        Points on each curve, at least 3.
    random_state : int, default 0
        Seed of the samples.

    Returns
    -------
    Smoothness

    See Also
    --------
    SmoothnessDisplay : Plot of the curves.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank, smoothness
    >>> train = datasets.make_ranking(n_queries=200, n_docs=10, n_features=5, random_state=0).train
    >>> model = LambdaRank("ndcg", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> found = smoothness(model, train.X, train.y, train.qid, n_queries=[5, 100])
    >>> found.roughness(100) < found.roughness(5)
    True
    """
    n_weights = checks.check_number("n_weights", n_weights, at_least=1, integer=True)
    span = checks.check_number("span", span, above=0)
    n_shifts = checks.check_number("n_shifts", n_shifts, at_least=3, integer=True)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    network, weights = network_of(model)
    target = measure_of(model, measure)
    data = RankingData(X, y, qid)
    checks.check_width(data.n_features, network.n_features, type(model).__name__)
    total = data.grouping.n_queries
    if n_queries is None:
        n_queries = sorted({max(1, total // 100), max(1, total // 10), total})
    sizes = np.atleast_1d(n_queries).tolist()
    sizes = [checks.check_number("n_queries", size, at_least=1, integer=True) for size in sizes]
    if not sizes or max(sizes) > total:
        raise ValueError(
            f"n_queries={n_queries!r} is not valid: expected sizes of samples, at most the number of queries, {total}."
        )

    last = np.arange(network.size)[-(network.n_hidden or network.n_features) :]
    moved = last[np.argsort(-np.abs(weights[last]), kind="stable")][:n_weights]
    shifts = np.linspace(-span, span, n_shifts)
    rank_of_query = np.argsort(np.random.default_rng(random_state).permutation(total))
    query = data.grouping.query_of_row()
    samples = {}
    for size in sizes:
        rows = np.flatnonzero(rank_of_query[query] < size)
        evaluator = Evaluator(target, data.labels[rows], group_by_query(query[rows], rows.shape[0]))
        if np.isnan(evaluator(np.zeros(rows.shape[0]))):
            raise ValueError(f"{target.name} is undefined for every query of a sample of {size}; use larger samples.")
        samples[size] = rows, evaluator
    directions = np.eye(network.size)[moved] * weights[moved][:, None]
    curves = {size: np.empty((moved.shape[0], n_shifts)) for size in sizes}
    for number, path in enumerate(network.paths(data.X, weights, directions)):
        for at, shift in enumerate(shifts):
            scores = path(shift)
            for size, (rows, evaluator) in samples.items():
                curves[size][number, at] = evaluator(scores[rows])
    return Smoothness(target, moved, shifts, curves)
