"""Lambdas of boosted trees, with larger weights for pairs of close scores."""

import numpy as np

from structrank._kernels.lambdas import NONE, _push, prepare_swaps
from structrank._kernels.sorting import make_workspace, sort_descending
from structrank._support.compile import kernel


@kernel
def add_near_lambdas(scores, plan, factor, lambdas, curvatures):
    """Add ``factor`` times the lambdas of all queries, each pair's divided by ``plan.margin`` + its score difference.

    As ``structrank._kernels.lambdas.add_lambdas``, for the construction WEIGHT_PAIRS. Second derivatives are of the cost with
    these weights held fixed. Return the number of effective pairs.
    """
    longest = np.max(np.diff(plan.indptr))
    keys, gains, upper, lower, force, bend = np.empty((6, longest))
    order, segments = np.empty((2, longest), np.int64)
    workspace = make_workspace(longest, np.int64)
    pairs = 0
    for q in range(plan.scales.shape[0]):
        scale = factor * plan.scales[q]
        if scale == 0.0:
            continue
        n = 0
        for i in range(plan.indptr[q], plan.indptr[q + 1]):
            if plan.segments[i] >= 0:
                keys[n] = scores[i]
                order[n] = i
                n += 1
        sort_descending(keys, order, 0, n, workspace)
        for rank in range(n):
            gains[rank] = plan.gains[order[rank]]
            segments[rank] = plan.segments[order[rank]]
            force[rank] = 0.0
            bend[rank] = 0.0
        reach = prepare_swaps(plan.kind, plan.cut, plan.discounts, gains, n, upper, lower)
        groups = plan.segment_groups[plan.segment_starts[q] : plan.segment_starts[q + 1]]
        for i in range(min(reach, n - 1)):
            for j in range(i + 1, n):
                if segments[i] == segments[j] or groups[segments[i]] != groups[segments[j]]:
                    continue
                weight = (abs(gains[i] - gains[j]) if plan.kind != NONE else 1.0) * (upper[i] - lower[j])
                if weight > 0.0:
                    better, worse = (i, j) if segments[i] < segments[j] else (j, i)
                    weight /= plan.margin + keys[i] - keys[j]
                    pushed, bent = _push(plan, keys[better] - keys[worse], weight)
                    force[better] += pushed
                    force[worse] -= pushed
                    bend[i] += bent
                    bend[j] += bent
                    pairs += 1
        for rank in range(n):
            lambdas[order[rank]] += scale * force[rank]
            curvatures[order[rank]] += scale * bend[rank]
    return pairs
