"""Construction of the plan of pairs that the kernels use, from labels and a measure."""

from __future__ import annotations

import numpy as np

from structrank import metrics
from structrank._kernels import lambdas as kernels
from structrank._kernels.lambdas import Plan
from structrank._support import checks

CONSTRUCTIONS = {
    "ranknet-weight-pairs": kernels.WEIGHT_PAIRS,
    "spring-smooth": kernels.SPRING_SMOOTH,
    "local-gradient": kernels.LOCAL_GRADIENT,
    "local-cost": kernels.LOCAL_COST,
    "discrete-bounded": kernels.DISCRETE_BOUNDED,
}
COSTS = {"cross-entropy": kernels.CROSS_ENTROPY, "sigmoid": kernels.SIGMOID}
# Added to the score differences that LOCAL_GRADIENT divides by.
MARGIN = 0.1
_OF_ALL_PAIRS = kernels.WEIGHT_PAIRS, kernels.SPRING_SMOOTH
_MOST_PAIRS = 10**10  # of a query; a pass over them takes about a minute


def parse_target(measure):
    """Parse the measure that lambdas optimise; None for RankNet.

    Examples
    --------
    >>> parse_target("NDCG@10"), parse_target(None)
    (ndcg@10, None)
    """
    if measure is None:
        return None
    parsed = metrics.parse(measure)
    if not isinstance(parsed, (metrics.NDCG, metrics.CNDCG, metrics.MAP, metrics.MRR)):
        raise ValueError(
            f"measure {parsed.name!r} has no lambdas; choose one of: 'ndcg', 'ndcg@k', 'cndcg', 'cndcg@k', 'map', 'mrr', "
            "'mrr@k', or None for RankNet's."
        )
    return parsed


def make_plan(
    measure,
    labels,
    indptr,
    *,
    groups=None,
    query_weights=None,
    construction="ranknet-weight-pairs",
    cost="cross-entropy",
    shift=0.0,
):
    """Plan the pairs of a data set and their weights.

    Parameters
    ----------
    measure : Measure or None
        From `parse_target`. None gives all pairs of different label the same weight, as in RankNet.
    labels : (n_docs,) array
        Grouped by query. Documents with the label nan have no pairs; if the measure `ranks_unlabelled`, they keep their rank,
        with gain 0, otherwise they are left out of the ranking.
    indptr : (n_queries + 1,) array of int
        Query q holds ``labels[indptr[q]:indptr[q + 1]]``.
    groups : (n_docs,) array, default None
        Only documents of the same group form pairs, such as documents of the same human grade; None for one group.
    query_weights : (n_queries,) array, default None
        Factors of the queries.
    construction : str, default "ranknet-weight-pairs"
        A key of `CONSTRUCTIONS`; see `structrank.learners.lambda_gradients`.
    cost : {"cross-entropy", "sigmoid"}, default "cross-entropy"
        Cost of a pair, ``log(1 + exp(-o))`` or ``1 / (1 + exp(o + shift))``, for a lead o of the better document.
    shift : float, default 0.0
        Centre of the sigmoid.

    Returns
    -------
    Plan
        For ``structrank._kernels.lambdas.add_lambdas``.

    Examples
    --------
    >>> plan = make_plan(metrics.NDCG(k=2), np.array([0.0, 2.0, 1.0]), np.array([0, 3]))
    >>> lambdas, curvatures = np.zeros(3), np.zeros(3)
    >>> kernels.add_lambdas(np.array([3.0, 2.0, 1.0]), plan, 1.0, lambdas, curvatures)
    3
    >>> lambdas.round(3)
    array([-0.466,  0.316,  0.149])
    """
    checks.check_choice("construction", construction, tuple(CONSTRUCTIONS))
    checks.check_choice("cost", cost, tuple(COSTS))
    shift = checks.check_number("shift", shift)
    indptr = np.ascontiguousarray(indptr, dtype=np.int64)
    sizes = np.diff(indptr)
    longest = int(sizes.max())
    query = np.repeat(np.arange(sizes.shape[0]), sizes)
    known = ~np.isnan(labels)
    if measure is not None and measure.ranks_unlabelled:
        groups = np.where(known, 0.0 if groups is None else groups, np.inf)  # a group of equal labels has no pairs
        labels, known = np.where(known, labels, 0.0), np.ones_like(known)
    binary = isinstance(measure, (metrics.MAP, metrics.MRR))
    grades = (labels >= measure.relevant_from).astype(np.float64) if binary else labels
    cut = getattr(measure, "k", None) or longest

    kind, gains, by_rank = kernels.NONE, np.zeros_like(labels), np.zeros(longest)
    scales = np.ones(sizes.shape[0])
    if binary:
        kind = kernels.PRECISION if isinstance(measure, metrics.MAP) else kernels.RECIPROCAL
        gains = np.where(known, grades, 0.0)
        by_rank = 1.0 / (1.0 + np.arange(longest))
        n_relevant = np.bincount(query, weights=gains, minlength=sizes.shape[0])
        scales = _reciprocals(n_relevant) if kind == kernels.PRECISION else (n_relevant > 0).astype(np.float64)
    elif measure is not None:
        kind = kernels.DISCOUNTED
        gains = np.where(known, measure.gains(np.where(known, labels, 0.0)), 0.0)
        by_rank = measure.discounts(longest)
        _, ideal = metrics.sort_queries(gains, indptr)
        rank = np.arange(gains.shape[0]) - indptr[query]
        seen = np.where(rank < cut, by_rank[rank], 0.0)
        scales = _reciprocals(np.bincount(query, weights=ideal * seen, minlength=sizes.shape[0]))
    by_rank[cut:] = 0.0
    if query_weights is not None:
        scales = scales * query_weights
    segments, starts, segment_groups = _segments(query, grades, groups, known, sizes.shape[0])
    plan = Plan(
        kind,
        CONSTRUCTIONS[construction],
        COSTS[cost],
        int(cut),
        shift,
        MARGIN if construction == "local-gradient" else 0.0,
        by_rank,
        indptr,
        gains,
        segments,
        starts,
        segment_groups,
        scales,
    )
    # MRR has no pairs below its first relevant document.
    all_pairs = cut >= longest and kind != kernels.RECIPROCAL and plan.construction in _OF_ALL_PAIRS
    if all_pairs and longest**2 > _MOST_PAIRS:
        _check_pairs(plan)
    return plan


def _check_pairs(plan):
    """Raise if a query has so many pairs that one pass over them takes minutes."""
    pairs = int(kernels.count_pairs(plan).max())
    if pairs > _MOST_PAIRS:
        raise ValueError(
            f"a query has {pairs:,} pairs of documents of different labels, and each pass visits all of them; at most "
            f"{_MOST_PAIRS:,} are supported. Use a measure with a cutoff, as in LambdaRank('ndcg@10'), or StructRankSVM, which "
            "takes n log n for n documents."
        )


def _reciprocals(values):
    """Return 1 / value, 0 where the value is 0."""
    return np.divide(1.0, values, out=np.zeros(values.shape[0]), where=values > 0)


def _segments(query, grades, groups, known, n_queries):
    """Assign numbers to the distinct pairs of group and grade within each query, best grade of a group first."""
    groups = np.zeros(query.shape[0]) if groups is None else np.asarray(groups, dtype=np.float64)
    segments = np.full(query.shape[0], -1, dtype=np.int64)
    places = np.flatnonzero(known)
    order = places[np.lexsort((-grades[places], groups[places], query[places]))]
    query, group, grade = query[order], groups[order], grades[order]
    new_group = np.concatenate([[True], (group[1:] != group[:-1]) | (query[1:] != query[:-1])])[: order.shape[0]]
    new = new_group | np.concatenate([[True], grade[1:] != grade[:-1]])[: order.shape[0]]
    counts = np.bincount(query[new], minlength=n_queries)
    starts = np.concatenate([[0], np.cumsum(counts)])
    segments[order] = np.cumsum(new) - 1 - starts[query]
    return segments, starts, np.cumsum(new_group)[new]
