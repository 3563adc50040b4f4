"""Lambdas of the documents of each query: equal and opposite forces on the better and the worse document of each pair.

Documents are grouped by query; query q holds the positions ``indptr[q]`` to ``indptr[q + 1]`` of every array. A `Plan` defines
the pairs and their weights; it depends on labels only and is made once, while scores change. A positive lambda moves a document
up: it is minus the derivative of the implicit cost, with the ranks held fixed.

The entry points are ::

    add_lambdas(scores, plan, factor, lambdas, curvatures) -> effective pairs
    scale_by_deviation(lambdas, indptr)
    count_pairs(plan) -> pairs of each query
    cross_entropies(scores, plan, out)

where ``add_lambdas`` adds ``factor`` times the lambdas and the second derivatives of the cost (Newton weights) to
``lambdas`` and ``curvatures``, so that several plans can be mixed. Loops over queries call ``query_lambdas``.

Swap gains. All measures here share one form: if the documents at ranks a < b, of gains G, are swapped, the measure
changes by ::

    |G_a - G_b| max(0, upper[a] - lower[b])     over the query's normaliser

where `upper` and `lower` are filled in one pass; the change is 0 for a >= reach. A pair costs O(1), and only pairs with a
document above `reach` are visited: O(n k) for a measure with cutoff k.
"""

from typing import NamedTuple

import numpy as np

from structrank._kernels import sorting
from structrank._kernels.sorting import sort_descending
from structrank._support.compile import kernel

# Kinds of measures: none (all pairs have weight 1), discounted gains, average precision, reciprocal rank.
NONE, DISCOUNTED, PRECISION, RECIPROCAL = range(4)
# Constructions.
WEIGHT_PAIRS, SPRING_SMOOTH, LOCAL_GRADIENT, LOCAL_COST, DISCRETE_BOUNDED = range(5)
# Costs of a pair with score difference o: log(1 + exp(-o)), or 1 / (1 + exp(o + shift)).
CROSS_ENTROPY, SIGMOID = range(2)
# Exponentials of score differences below this do not underflow.
_SHORT = 100.0


class Plan(NamedTuple):
    """The pairs of a data set and their weights.

    Documents of one *segment* have the same grade; segments of a query are numbered from 0, group by
    group, best grade first. Pairs are formed between different segments of the same group.

    Attributes
    ----------
    kind, construction, cost : int
        See the constants.
    cut : int
        Rank cutoff of the measure; at least the length of the longest query for none.
    shift : float
        Shift of the sigmoid cost.
    margin : float
        Forces are divided by the margin plus the absolute score difference, for LOCAL_GRADIENT, and for WEIGHT_PAIRS unless it
        is 0; otherwise unused.
    discounts : (longest query,) array
        D(r) for DISCOUNTED and 1 / (1 + r) for RECIPROCAL, 0 from `cut` on; otherwise unused.
    indptr : (n_queries + 1,) array of int64
    gains : (n_docs,) array
        0 and 1 for PRECISION and RECIPROCAL.
    segments : (n_docs,) array of int64
        -1 excludes a document, also from the ranking.
    segment_starts : (n_queries + 1,) array of int64
        Query q has the segments ``segment_starts[q]`` to ``segment_starts[q + 1]`` of `segment_groups`.
    segment_groups : (n_segments,) array of int64
    scales : (n_queries,) array
        Factor of each query, 1 / normaliser; a query with 0 is skipped.
    """

    kind: int
    construction: int
    cost: int
    cut: int
    shift: float
    margin: float
    discounts: np.ndarray
    indptr: np.ndarray
    gains: np.ndarray
    segments: np.ndarray
    segment_starts: np.ndarray
    segment_groups: np.ndarray
    scales: np.ndarray


@kernel
def prepare_swaps(kind, cut, discounts, gains, n, upper, lower):
    """Fill `upper` and `lower` for the gains by rank of a query of n documents; return `reach`."""
    if kind == DISCOUNTED:
        for rank in range(n):
            upper[rank] = discounts[rank]
            lower[rank] = discounts[rank]
        return min(cut, n)
    if kind == PRECISION:
        # A relevant document that moves up from b to a < b replaces the precision at b by that at a, and adds
        # 1 / (1 + r) to the precision at each relevant rank r between them: a difference of prefix sums.
        n_relevant = 0.0
        between = 0.0
        for rank in range(n):
            relevant = gains[rank]
            n_relevant += relevant
            lower[rank] = n_relevant / (1 + rank) - between
            between += relevant / (1 + rank)
            upper[rank] = (n_relevant + 1 - relevant) / (1 + rank) - between
        return n
    if kind == RECIPROCAL:
        first = 0
        while first < n and gains[first] == 0:
            first += 1
        if first == n:
            return 0
        second = first + 1
        while second < n and gains[second] == 0:
            second += 1
        # The first relevant rank changes if a relevant document moves above it, or if its own document moves down: then to the
        # new rank, or to the second relevant rank if that is higher.
        for rank in range(n):
            upper[rank] = discounts[rank] if rank <= first else 0.0
            lower[rank] = discounts[first] if gains[rank] > 0 else discounts[min(rank, second)]
        return min(first + 1, cut)
    for rank in range(n):
        upper[rank] = 1.0
        lower[rank] = 0.0
    return n


def make_workspace(longest):
    """Allocate the workspace of one query: numbers, integers, and a workspace for sorting."""
    return np.empty((7, longest)), np.empty((4, longest + 1), np.int64), sorting.make_workspace(longest, np.int64)


@kernel(inner=True)
def _push_by_tail(plan, difference, tail, weight):
    """Return force and second derivative for a pair in which the better document leads by `difference` in score.

    `tail` is 1 / (1 + exp(difference + shift)), with the shift for the sigmoid cost only.
    """
    if plan.construction == LOCAL_GRADIENT:
        distance = abs(difference) + plan.margin
        return weight / distance, np.sign(difference) * weight / (distance * distance)
    if plan.construction == DISCRETE_BOUNDED:
        return weight, 0.0
    slope = weight * tail * (1.0 - tail)
    if plan.cost == SIGMOID:
        return slope, slope * (1.0 - 2.0 * tail)
    return weight * tail, slope


@kernel(inner=True)
def _push(plan, difference, weight):
    """Return the result of `_push_by_tail`, with the tail computed from the difference."""
    shift = plan.shift if plan.cost == SIGMOID else 0.0
    return _push_by_tail(plan, difference, 1.0 / (1.0 + np.exp(difference + shift)), weight)


@kernel
def query_lambdas(scores, plan, q, factor, lambdas, curvatures, buffers):
    """Add ``factor`` times the lambdas of query q; arrays hold its documents only. Return the number of effective pairs."""
    scale = factor * plan.scales[q]
    if scale == 0.0:
        return 0
    numbers, integers, sort_buffers = buffers
    # Row by row: unpacking would lose that rows are contiguous, and compile `sort_descending` again for such arrays.
    keys, gains, upper, lower = numbers[0], numbers[1], numbers[2], numbers[3]
    force, bend, powers = numbers[4], numbers[5], numbers[6]
    order, places, starts, spare = integers[0], integers[1], integers[2], integers[3]
    first = plan.indptr[q]
    n = none = np.int64(0)  # literals as arguments would have compiled functions of their own
    for i in range(scores.shape[0]):
        if plan.segments[first + i] >= 0:
            keys[n] = scores[i]
            order[n] = i
            n += 1
    sort_descending(keys, order, none, n, sort_buffers)
    for rank in range(n):
        gains[rank] = plan.gains[first + order[rank]]
        force[rank] = 0.0
        bend[rank] = 0.0
    reach = prepare_swaps(plan.kind, plan.cut, plan.discounts, gains, n, upper, lower)

    groups = plan.segment_groups[plan.segment_starts[q] : plan.segment_starts[q + 1]]
    starts[: groups.shape[0] + 1] = 0
    for rank in range(n):
        starts[plan.segments[first + order[rank]] + 1] += 1
    for segment in range(groups.shape[0]):
        starts[segment + 1] += starts[segment]

    if plan.construction == WEIGHT_PAIRS or plan.construction == SPRING_SMOOTH:
        pairs = _push_pairs(
            plan, first, n, reach, groups, keys, powers, gains, upper, lower, force, bend, order, places, starts, spare
        )
    elif plan.construction == DISCRETE_BOUNDED:
        pairs = _push_to_ideal(plan, first, n, groups, gains, upper, lower, force, order, places, starts, spare)
    else:
        pairs = _push_neighbours(plan, first, n, groups, keys, gains, upper, lower, force, bend, order)
    for rank in range(n):
        lambdas[order[rank]] += scale * force[rank]
        curvatures[order[rank]] += scale * bend[rank]
    return pairs


@kernel(inner=True)
def _push_pairs(plan, first, n, reach, groups, keys, powers, gains, upper, lower, force, bend, order, places, starts, spare):
    """Push all pairs of different segments; the ranks of each segment are listed in increasing order."""
    shift = plan.shift if plan.cost == SIGMOID else 0.0
    # 1 / (1 + exp(s_i - s_j)) = e_j / (e_j + e_i) takes one exp per document instead of one per pair, if none underflows.
    short = n > 0 and keys[0] - keys[n - 1] < _SHORT and abs(shift) < _SHORT
    lift = np.exp(shift) if short else 0.0
    if short:
        for rank in range(n):
            powers[rank] = np.exp(keys[rank] - keys[0])
    smooth = plan.construction == SPRING_SMOOTH
    by_distance = not smooth and plan.margin > 0.0
    if smooth:
        reach = n
    for segment in range(groups.shape[0]):
        spare[segment] = starts[segment]
    for rank in range(n):
        segment = plan.segments[first + order[rank]]
        places[spare[segment]] = rank
        spare[segment] += 1
    pairs = 0
    for better in range(groups.shape[0]):
        worse = better + 1
        while worse < groups.shape[0] and groups[worse] == groups[better]:
            start, stop = starts[worse], starts[worse + 1]
            near = start  # end of the ranks of the worse segment that lie above reach
            while near < stop and places[near] < reach:
                near += 1
            for at in range(starts[better], starts[better + 1]):
                i = places[at]
                own_force = 0.0
                own_bend = 0.0
                for other in range(start, stop if i < reach else near):
                    j = places[other]
                    weight = 1.0
                    if plan.kind != NONE:
                        step = upper[i] - lower[j] if i < j else upper[j] - lower[i]
                        weight = abs(gains[i] - gains[j]) * step
                        if smooth:
                            weight = max(weight, 1.0)
                    if weight > 0.0:
                        difference = keys[i] - keys[j]
                        if by_distance:
                            weight /= plan.margin + abs(difference)
                        tail = powers[j] / (powers[j] + lift * powers[i]) if short else 1.0 / (1.0 + np.exp(difference + shift))
                        pushed, bent = _push_by_tail(plan, difference, tail, weight)
                        own_force += pushed
                        own_bend += bent
                        force[j] -= pushed
                        bend[j] += bent
                        pairs += 1
                force[i] += own_force
                bend[i] += own_bend
            worse += 1
    return pairs


@kernel(inner=True)
def _push_neighbours(plan, first, n, groups, keys, gains, upper, lower, force, bend, order):
    """Push documents that are neighbours in the ranking."""
    pairs = 0
    for rank in range(n - 1):
        above, below = plan.segments[first + order[rank]], plan.segments[first + order[rank + 1]]
        if above == below or groups[above] != groups[below]:
            continue
        weight = 1.0
        if plan.kind != NONE:
            weight = abs(gains[rank] - gains[rank + 1]) * (upper[rank] - lower[rank + 1])
        if weight > 0.0:
            better, worse = (rank, rank + 1) if above < below else (rank + 1, rank)
            pushed, bent = _push(plan, keys[better] - keys[worse], weight)
            force[better] += pushed
            force[worse] -= pushed
            bend[better] += bent
            bend[worse] += bent
            pairs += 1
    return pairs


@kernel(inner=True)
def _push_to_ideal(plan, first, n, groups, gains, upper, lower, force, order, places, starts, spare):
    """Push each document against the document at its ideal rank, by at most 1.

    With the segments in order, ``starts`` are the ranks at which each grade begins in the ideal ranking. Documents within
    the ranks of their grade stay there; the others get the free ranks from the top.
    """
    for rank in range(n):
        places[rank] = plan.segments[first + order[rank]]
    for segment in range(groups.shape[0]):
        spare[segment] = starts[segment]
    pairs = 0
    for rank in range(n):
        own = places[rank]
        if starts[own] <= rank < starts[own + 1]:
            continue
        target = spare[own]
        while places[target] == own:
            target += 1
        spare[own] = target + 1
        if groups[places[target]] != groups[own]:
            continue
        weight = 1.0
        if plan.kind != NONE:
            low, high = min(rank, target), max(rank, target)
            weight = min(1.0, abs(gains[low] - gains[high]) * (upper[low] - lower[high]))
        if weight > 0.0:
            better, worse = (rank, target) if own < places[target] else (target, rank)
            force[better] += weight
            force[worse] -= weight
            pairs += 1
    return pairs


def add_lambdas(scores, plan, factor, lambdas, curvatures):
    """Add ``factor`` times the lambdas of all queries; return the number of effective pairs."""
    longest = np.diff(plan.indptr).max(initial=0)
    return _add_lambdas(scores, plan, factor, lambdas, curvatures, make_workspace(longest))


@kernel
def _add_lambdas(scores, plan, factor, lambdas, curvatures, buffers):
    pairs = 0
    for q in range(plan.scales.shape[0]):
        start, stop = plan.indptr[q], plan.indptr[q + 1]
        pairs += query_lambdas(scores[start:stop], plan, q, factor, lambdas[start:stop], curvatures[start:stop], buffers)
    return pairs


@kernel
def scale_by_deviation(lambdas, indptr):
    """Divide the lambdas of each query by their standard deviation; a query without lambdas is unchanged."""
    for q in range(indptr.shape[0] - 1):
        n = indptr[q + 1] - indptr[q]
        mean = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            mean += lambdas[i] / n
        variance = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            variance += (lambdas[i] - mean) ** 2 / n
        if variance > 0.0:
            deviation = np.sqrt(variance)
            for i in range(indptr[q], indptr[q + 1]):
                lambdas[i] /= deviation


@kernel
def count_pairs(plan):
    """Return the number of pairs of each query, whatever their weight."""
    out = np.zeros(plan.scales.shape[0], np.int64)
    for q in range(out.shape[0]):
        groups = plan.segment_groups[plan.segment_starts[q] : plan.segment_starts[q + 1]]
        counts = np.zeros(groups.shape[0], np.int64)
        for i in range(plan.indptr[q], plan.indptr[q + 1]):
            if plan.segments[i] >= 0:
                counts[plan.segments[i]] += 1
        above = 0
        for segment in range(groups.shape[0]):
            if segment and groups[segment] != groups[segment - 1]:
                above = 0
            out[q] += above * counts[segment]
            above += counts[segment]
    return out


@kernel
def cross_entropies(scores, plan, out):
    """Write the pairwise cross entropy of each query, the sum of log(1 + exp(-o)) over pairs, times its scale."""
    powers = np.empty(scores.shape[0])
    for q in range(out.shape[0]):
        total = 0.0
        first, stop = plan.indptr[q], plan.indptr[q + 1]
        starts, last = plan.segment_starts[q], plan.segment_starts[q + 1] - 1
        if plan.scales[q] != 0.0:
            largest = np.max(scores[first:stop])
            # The logarithm of a product takes one exp per document and few logarithms, if nothing overflows.
            short = largest - np.min(scores[first:stop]) < _SHORT
            powers[first:stop] = np.exp(scores[first:stop] - largest)
            for i in range(first, stop):
                product = 1.0
                # No document is worse than those of the last segment, most of a long list.
                for j in range(first, stop if starts + plan.segments[i] < last else first):
                    better, worse = plan.segments[i], plan.segments[j]
                    if 0 <= better < worse and plan.segment_groups[starts + better] == plan.segment_groups[starts + worse]:
                        if short:
                            product *= 1.0 + powers[j] / powers[i]
                            if product > 1e200:
                                total += np.log(product)
                                product = 1.0
                        else:
                            difference = scores[i] - scores[j]
                            total += max(-difference, 0.0) + np.log1p(np.exp(-abs(difference)))
                total += np.log(product)
        out[q] = total * plan.scales[q]
