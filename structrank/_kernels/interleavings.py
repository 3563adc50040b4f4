"""Most violated rankings of queries with binary relevance.

For phi_po and phi_dorm, swapping two relevant (or two irrelevant) documents into the order of their scores never lowers w.phi
and does not change the loss. A best ranking therefore has the relevant and the irrelevant documents each in order of score, and
is given by one number per relevant document: ``before[g]``, the number of irrelevant documents before it. These functions find
the best such interleaving, exactly. (phi_mrr needs another order of the relevant documents, see `mrr_first`.)

Shared arguments, for a block of queries:

scores : (n_docs,) array
    Query q holds ``scores[starts[q]:starts[q + 1]]``: its ``n_relevant[q]`` relevant documents by decreasing score,
    then its irrelevant documents by decreasing score. Every query has at least one of each.
before : (n_docs,) array of int
    Result, at ``starts[q] + g``.
discount, credit : arrays with at least one entry more than the longest query has documents
    All losses except that of AUC are ``1 - sum_g credit[g] discount[g + before[g]] / sum_g credit[g] discount[g]``.
"""

import numpy as np

from structrank._support.compile import kernel


@kernel(by_address=True)
def discounted_losses(block):
    """Compute the loss of each query's interleaving."""
    starts, n_relevant, before, losses = block.starts, block.n_relevant, block.before, block.losses
    discount, credit = block.table[0], block.table[1]
    for q in range(n_relevant.shape[0]):
        reached = 0.0
        ideal = 0.0
        for g in range(n_relevant[q]):
            reached += credit[g] * discount[g + before[starts[q] + g]]
            ideal += credit[g] * discount[g]
        losses[q] = 1.0 - reached / ideal


@kernel(by_address=True)
def pair_losses(block):
    """Compute the fraction of wrong pairs of each query's interleaving."""
    starts, n_relevant, before, losses = block.starts, block.n_relevant, block.before, block.losses
    for q in range(n_relevant.shape[0]):
        wrong = 0
        for g in range(n_relevant[q]):
            wrong += before[starts[q] + g]
        losses[q] = wrong / (n_relevant[q] * (starts[q + 1] - starts[q] - n_relevant[q]))


# This many irrelevant documents are processed in a vectorised loop, which takes as long as a few in sequence.
_SIDE_BY_SIDE = 64
# Of the lattice for phi_dorm the values of every n-th rank are kept, with n at least this. So few ranks are not bounded.
_LEAST_KEPT = 64
# Padding in front of `falls`, and (score, worth) of a relevant document that no irrelevant one passes.
_PADDING, _NEVER_PASSED = 3, (np.inf, 0.0)


@kernel(inner=True)
def _split_relevant(relevant, irrelevant, worth, falls, start, stop, fewest, workspace, split):
    """Choose ``split[j] >= fewest``, the number of relevant documents before irrelevant j, for j from `start` to `stop`.

    Ranking irrelevant j before relevant i gains irrelevant_j - relevant_i + worth_i falls_(i + j). For a convex D,
    falls_r = D(r) - D(r + 1) decreases with r. So the choices are independent and non-decreasing in j, and
    the choice of the middle document halves the work for the others.
    """
    stack, amounts, largest = workspace
    lows, highs, least, mosts = stack[0], stack[1], stack[2], stack[3]
    lows[0], highs[0], least[0], mosts[0] = start, stop, fewest, relevant.shape[0]
    depth = 1 if start < stop else 0
    while depth > 0:
        depth -= 1
        low, high, few, most = lows[depth], highs[depth], least[depth], mosts[depth]
        # A long range is split at its middle document.
        some = slice(low, high) if high - low <= _SIDE_BY_SIDE else slice((low + high) // 2, (low + high) // 2 + 1)
        _choose_side_by_side(relevant[:most], irrelevant[some], worth, falls[some.start :], few, amounts, largest, split[some])
        if some.start > low:
            lows[depth], highs[depth], least[depth], mosts[depth] = low, some.start, few, split[some.start]
            depth += 1
        if some.stop < high:
            lows[depth], highs[depth], least[depth], mosts[depth] = some.stop, high, split[some.start], most
            depth += 1


@kernel(inner=True)
def _choose_side_by_side(relevant, irrelevant, worth, falls, fewest, amounts, largest, split):
    """Choose independently for each irrelevant document; `falls` starts with the entries of the first, after the padding."""
    n = irrelevant.shape[0]
    for j in range(n):
        amounts[j] = largest[j] = 0.0
        split[j] = relevant.shape[0]
    # Four relevant documents at a time: the amounts are loaded and stored a quarter as often.
    for last in range(relevant.shape[0] - 1, fewest - 1, -4):
        relevant0, worth0 = relevant[last], worth[last]
        relevant1, worth1 = (relevant[last - 1], worth[last - 1]) if last - 1 >= fewest else _NEVER_PASSED
        relevant2, worth2 = (relevant[last - 2], worth[last - 2]) if last - 2 >= fewest else _NEVER_PASSED
        relevant3, worth3 = (relevant[last - 3], worth[last - 3]) if last - 3 >= fewest else _NEVER_PASSED
        some = falls[last : last + n + _PADDING]
        for j in range(n):
            amount0 = amounts[j] + (irrelevant[j] - relevant0 + worth0 * some[j + 3])
            amount1 = amount0 + (irrelevant[j] - relevant1 + worth1 * some[j + 2])
            amount2 = amount1 + (irrelevant[j] - relevant2 + worth2 * some[j + 1])
            amount3 = amount2 + (irrelevant[j] - relevant3 + worth3 * some[j])
            amounts[j] = amount3
            most, choice = largest[j], split[j]
            # Separate selections, which vectorise.
            choice = last if amount0 > most else choice
            most = amount0 if amount0 > most else most
            choice = last - 1 if amount1 > most else choice
            most = amount1 if amount1 > most else most
            choice = last - 2 if amount2 > most else choice
            most = amount2 if amount2 > most else most
            choice = last - 3 if amount3 > most else choice
            most = amount3 if amount3 > most else most
            largest[j], split[j] = most, choice


@kernel(inner=True)
def _place_relevant(split, n_relevant, before):
    """Convert the non-decreasing `split` to `before`: the number of irrelevant documents whose split is at most g."""
    for g in range(n_relevant):
        before[g] = 0
    # Later entries overwrite earlier ones, without a branch; a split after all relevant documents is n_relevant.
    for j in range(split.shape[0]):
        before[np.uintp(split[j])] = j + 1
    for g in range(1, n_relevant):
        before[g] = max(before[g], before[g - 1])


@kernel(inner=True)
def _gain(relevant, irrelevant_sums, worth, discount, before):
    """Compute the gain over the ideal ranking; `irrelevant_sums` are prefix sums of the irrelevant scores."""
    gain = 0.0
    for g in range(relevant.shape[0]):
        b = np.uintp(before[g])
        gain += irrelevant_sums[b] - b * relevant[g] + worth[g] * (discount[g] - discount[g + b])
    return gain


@kernel(by_address=True)
def unclipped(block):
    """Find the best interleaving for MAP and NDCG-NC, whose discount is convex from rank `convex_from` (0 or 1) on.

    All gains are in units of 2 / (n+ n-), the weight of a pair in w.phi.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    discount, credit, convex_from = block.table[0], block.table[1], block.settings[1]
    longest = 0
    for q in range(n_relevant.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
    falls = np.zeros(_PADDING + longest)
    for rank in range(longest):
        falls[_PADDING + rank] = discount[rank] - discount[rank + 1]
    worth = np.empty(longest)
    split = np.empty(longest, np.int64)
    irrelevant_first = np.empty(longest, np.int64)
    irrelevant_sums = np.zeros(longest + 1)
    none = np.int64(0)  # a literal 0 or 1 as argument would have a compiled function of its own
    workspace = np.empty((4, 64), np.int64), np.empty(_SIDE_BY_SIDE), np.empty(_SIDE_BY_SIDE)
    for q in range(n_relevant.shape[0]):
        relevant = scores[starts[q] : starts[q] + n_relevant[q]]
        irrelevant = scores[starts[q] + n_relevant[q] : starts[q + 1]]
        chosen = before[starts[q] : starts[q + 1]]
        choices = split[: irrelevant.shape[0]]
        ideal = 0.0
        for g in range(relevant.shape[0]):
            ideal += credit[g] * discount[g]
        for g in range(relevant.shape[0]):
            worth[g] = 0.5 * relevant.shape[0] * irrelevant.shape[0] * credit[g] / ideal
        _split_relevant(relevant, irrelevant, worth, falls, convex_from, irrelevant.shape[0], none, workspace, choices)
        if convex_from == 0:
            _place_relevant(choices, relevant.shape[0], chosen)
            continue
        # With rank 0 fixed as irrelevant or relevant, all other choices concern ranks from 1 on, where D is convex.
        choices[0] = 0
        _place_relevant(choices, relevant.shape[0], irrelevant_first)
        ahead_of_all = irrelevant_first[0]  # irrelevant documents to be moved after the first relevant one
        _split_relevant(relevant, irrelevant, worth, falls, none, ahead_of_all, convex_from, workspace, choices)
        _place_relevant(choices, relevant.shape[0], chosen)
        for b in range(irrelevant.shape[0]):
            irrelevant_sums[b + 1] = irrelevant_sums[b] + irrelevant[b]
        gain = _gain(relevant, irrelevant_sums, worth, discount, chosen)
        if _gain(relevant, irrelevant_sums, worth, discount, irrelevant_first) > gain:
            for g in range(relevant.shape[0]):
                chosen[g] = irrelevant_first[g]


@kernel(inner=True)
def _sums_and_score_order(relevant, irrelevant, scale, irrelevant_sums, relevant_sums, by_score, after_gain):
    """Prepare the ranks beyond the cutoff, where only the scores matter.

    ``by_score[g]`` counts the irrelevant documents with a higher score than relevant g, ``after_gain[g]`` the gain of w.phi
    over the ideal ranking if all relevant documents from g on are ranked there; `*_sums` are prefix sums.
    """
    irrelevant_sums[0] = 0.0
    for b in range(irrelevant.shape[0]):
        irrelevant_sums[b + 1] = irrelevant_sums[b] + irrelevant[b]
    relevant_sums[0] = 0.0
    b = 0
    for g in range(relevant.shape[0]):
        relevant_sums[g + 1] = relevant_sums[g] + relevant[g]
        while b < irrelevant.shape[0] and irrelevant[b] > relevant[g]:
            b += 1
        by_score[g] = b
    after_gain[relevant.shape[0]] = 0.0
    for g in range(relevant.shape[0] - 1, -1, -1):
        after_gain[g] = after_gain[g + 1] + scale * (irrelevant_sums[by_score[g]] - by_score[g] * relevant[g])


@kernel(by_address=True)
def ndcg(block):
    """Find the best interleaving for NDCG@k.

    For each number m of relevant documents in the top k: the head, a dynamic programme over (g < m, before[g]) with a running
    prefix maximum per row, plus the tail, the other relevant documents ranked by score, but not above rank k.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    discount, k = block.table[0], block.settings[0]
    longest = 0
    rows = 0
    for q in range(n_relevant.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
        rows = max(rows, min(n_relevant[q], k))
    irrelevant_sums = np.empty(longest + 1)
    relevant_sums = np.empty(longest + 1)
    by_score = np.empty(longest + 1, np.int64)
    after_gain = np.empty(longest + 1)
    columns = min(k, longest) + 1
    value = np.empty((rows, columns))
    came_from = np.empty((rows, columns), np.int64)
    for q in range(n_relevant.shape[0]):
        relevant = scores[starts[q] : starts[q] + n_relevant[q]]
        irrelevant = scores[starts[q] + n_relevant[q] : starts[q + 1]]
        chosen = before[starts[q] : starts[q] + n_relevant[q]]
        n_irrelevant = irrelevant.shape[0]
        scale = 2.0 / (relevant.shape[0] * n_irrelevant)
        ideal = 0.0
        for g in range(min(relevant.shape[0], k)):
            ideal += discount[g]
        _sums_and_score_order(relevant, irrelevant, scale, irrelevant_sums, relevant_sums, by_score, after_gain)
        best, best_m, best_b = -np.inf, 0, 0
        free = relevant.shape[0]  # first relevant document, from m on, below the top k by score
        for m in range(min(relevant.shape[0], k) + 1):
            if m > 0:
                g = m - 1
                prefix_best, prefix_b = (0.0, 0) if g == 0 else (-np.inf, 0)
                head, head_b = -np.inf, 0
                for b in range(min(k - m, n_irrelevant) + 1):
                    if g > 0 and value[g - 1, b] > prefix_best:
                        prefix_best, prefix_b = value[g - 1, b], b
                    value[g, b] = prefix_best + scale * (irrelevant_sums[b] - b * relevant[g])
                    value[g, b] += (discount[g] - discount[g + b]) / ideal
                    came_from[g, b] = prefix_b
                    if value[g, b] > head:
                        head, head_b = value[g, b], b
            else:
                head, head_b = 0.0, 0
            tail = 0.0
            if m < relevant.shape[0]:
                floor = k - m  # irrelevant documents needed to fill the top k
                if floor > n_irrelevant:
                    continue
                while free > m and by_score[free - 1] >= floor:
                    free -= 1
                free = max(free, m)
                tail = after_gain[free] + scale * (
                    (free - m) * irrelevant_sums[floor] - floor * (relevant_sums[free] - relevant_sums[m])
                )
                for g in range(m, min(relevant.shape[0], k)):
                    tail += discount[g] / ideal
            if head + tail > best:
                best, best_m, best_b = head + tail, m, head_b
        b = best_b
        for g in range(best_m - 1, -1, -1):
            chosen[g] = b
            b = came_from[g, b]
        for g in range(best_m, relevant.shape[0]):
            chosen[g] = max(by_score[g], k - best_m)


@kernel(by_address=True)
def mrr_partial_order(block):
    """Find the best interleaving for MRR@k with phi_po.

    One candidate for each number r < k of irrelevant documents before the first relevant one, and one for all r >= k; the other
    relevant documents are ranked by score, but not above the first.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    discount, k = block.table[0], block.settings[0]
    longest = 0
    for q in range(n_relevant.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
    irrelevant_sums = np.empty(longest + 1)
    relevant_sums = np.empty(longest + 1)
    by_score = np.empty(longest + 1, np.int64)
    after_gain = np.empty(longest + 1)
    for q in range(n_relevant.shape[0]):
        relevant = scores[starts[q] : starts[q] + n_relevant[q]]
        irrelevant = scores[starts[q] + n_relevant[q] : starts[q + 1]]
        scale = 2.0 / (relevant.shape[0] * irrelevant.shape[0])
        _sums_and_score_order(relevant, irrelevant, scale, irrelevant_sums, relevant_sums, by_score, after_gain)
        best, best_r = -np.inf, 0
        free = 1  # first relevant document after relevant 0 with r or more irrelevant documents before it by score
        for r in range(min(k, irrelevant.shape[0]) + 1):
            while free < relevant.shape[0] and by_score[free] < r:
                free += 1
            gain = (
                scale * (free * irrelevant_sums[r] - r * relevant_sums[free])
                + after_gain[free]
                + 1.0
                - discount[r] / discount[0]
            )
            if r == k and by_score[0] > k:
                gain = after_gain[0] + 1.0
            if gain > best:
                best, best_r = gain, r
        for g in range(relevant.shape[0]):
            before[starts[q] + g] = max(best_r, by_score[g])
        if best_r < k:
            before[starts[q]] = best_r


@kernel(by_address=True)
def mrr_first(block):
    """Find the most violated ranking for MRR@k with phi_mrr.

    phi_mrr depends only on the first relevant document and the irrelevant ones before it, so the relevant document of lowest
    score comes first: here ``before`` lists the relevant documents by increasing score. The order after the first does not
    matter; they follow it directly.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    discount, k = block.table[0], block.settings[0]
    for q in range(n_relevant.shape[0]):
        worst = scores[starts[q] + n_relevant[q] - 1]
        irrelevant = scores[starts[q] + n_relevant[q] : starts[q + 1]]
        gain, best, best_r = 0.0, 0.0, 0
        for r in range(1, irrelevant.shape[0] + 1):
            if r > k and irrelevant[r - 1] <= worst:
                break
            gain += irrelevant[r - 1] - worst
            if gain + 1.0 - discount[r] / discount[0] > best:
                best, best_r = gain + 1.0 - discount[r] / discount[0], r
        for g in range(n_relevant[q]):
            before[starts[q] + g] = best_r


@kernel(inner=True)
def _bound_lattice(relevant, irrelevant, worth, decay, discount, workspace, lows, highs):
    """Bound the number of relevant documents before each rank in a best ranking for phi_dorm.

    Ranking irrelevant b before relevant g, at r = g + b and the next rank, changes the value by

        (A(r) - A(r + 1)) (irrelevant_b - relevant_g) + worth_g (D(r) - D(r + 1)),

    and the value of a ranking is that of the ideal one plus the changes of all its pairs in this order. With such a pair, it
    has all pairs of relevant documents from g on and irrelevant ones up to b. If all of these gain, a best ranking has them. If
    none of the pairs of relevant documents up to g and irrelevant ones from b on gains, a best ranking has none of them.
    """
    least, largest, least_worth, most = workspace[0], workspace[1], workspace[2], workspace[3]
    ranks = relevant.shape[0] + irrelevant.shape[0]
    small, large = np.inf, 0.0  # fall of D over that of A, over all ranks from one on
    for rank in range(ranks - 1, -1, -1):
        fall, of_discount = decay[rank] - decay[rank + 1], discount[rank] - discount[rank + 1]
        if fall > 0.0:
            small, large = min(small, of_discount / fall), max(large, of_discount / fall)
        elif of_discount > 0.0:
            large = np.inf
        least[rank], largest[rank] = small, large
    small, large = np.inf, 0.0
    for g in range(relevant.shape[0] - 1, -1, -1):
        small = min(small, worth[g])
        least_worth[g] = small
    fewest, many, high = 0, 0, 0
    for g in range(relevant.shape[0]):
        large = max(large, worth[g])
        gain = least_worth[g] * least[g] if least_worth[g] > 0.0 else 0.0
        while fewest < irrelevant.shape[0] and irrelevant[fewest] - relevant[g] + gain > 0.0:
            fewest += 1
        while many < irrelevant.shape[0]:
            if relevant[g] - irrelevant[many] >= (large * largest[many] if large > 0.0 else 0.0):
                break
            many += 1
        most[g] = max(fewest, many)
        for rank in range(high, g + fewest + 1):  # ranks before which relevant g cannot be
            highs[rank] = g
        high = max(high, g + fewest + 1)
    for rank in range(high, ranks + 1):
        highs[rank] = relevant.shape[0]
    low = 0
    for rank in range(ranks + 1):
        while low < relevant.shape[0] and low + most[low] < rank:
            low += 1
        lows[rank] = low


@kernel(inner=True, forceinline=True)
def _next_rank(value, rank, low, high, relevant, irrelevant, worth, decay, discount, out, took_relevant):
    """Compute the best values with g = `low` to `high` relevant documents in the first ``rank + 1`` ranks from those in `rank`.

    Values are at ``g + 1``, and minus infinity beside those that were computed.
    """
    if low == 0:
        out[1] = value[1] + decay[rank] * irrelevant[rank]
    if high == rank + 1:
        out[high + 1] = value[high] + decay[rank] * relevant[rank] - worth[rank] * discount[rank]
        took_relevant[high - low] = True
    weight, discounted = decay[rank], discount[rank]
    # Independent of each other, so that the loop vectorises; unsigned positions need no check of their sign.
    for g in range(max(low, 1), min(high, rank) + 1):
        own = np.uintp(g - 1)
        with_relevant = value[np.uintp(g)] + weight * relevant[own] - worth[own] * discounted
        with_irrelevant = value[np.uintp(g + 1)] + weight * irrelevant[np.uintp(rank - g)]
        took_relevant[np.uintp(g - low)] = with_relevant > with_irrelevant
        out[np.uintp(g + 1)] = with_relevant if with_relevant > with_irrelevant else with_irrelevant
    out[low] = out[high + 2] = -np.inf


@kernel(by_address=True)
def permutation(block):
    """Find the best ranking for phi_dorm, `depth` ranks deep (below, decay and discount are 0).

    A ranking is a lattice path: rank g + b holds relevant g or irrelevant b. The best value over all orders of the first g
    relevant and ``rank - g`` irrelevant documents is updated rank by rank, for those g that bounds leave. To trace the best
    path back, the values of every n-th rank are kept, with n about the root of the number of ranks, and those between are
    computed again.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    discount, credit, decay, depth = block.table[0], block.table[1], block.table[2], block.settings[0]
    longest = 0
    for q in range(n_relevant.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
    value, other, worth = np.empty(longest + 3), np.empty(longest + 3), np.empty(longest)
    workspace, bounds = np.empty((4, longest)), np.empty((2, longest + 1), np.int64)
    lows, highs = bounds[0], bounds[1]
    kept, took_relevant = np.empty(0), np.empty(0, np.bool_)
    for q in range(n_relevant.shape[0]):
        relevant = scores[starts[q] : starts[q] + n_relevant[q]]
        irrelevant = scores[starts[q] + n_relevant[q] : starts[q + 1]]
        ranks = min(depth, relevant.shape[0] + irrelevant.shape[0])
        ideal = 0.0
        for g in range(relevant.shape[0]):
            ideal += credit[g] * discount[g]
        for g in range(relevant.shape[0]):
            worth[g] = credit[g] / ideal
        if ranks <= _LEAST_KEPT or ranks < relevant.shape[0] + irrelevant.shape[0]:  # the lattice is small
            for rank in range(ranks + 1):
                lows[rank], highs[rank] = max(0, rank - irrelevant.shape[0]), min(rank, relevant.shape[0])
        else:
            _bound_lattice(relevant, irrelevant, worth, decay, discount, workspace, lows, highs)
        width = 1
        for rank in range(ranks + 1):
            width = max(width, highs[rank] - lows[rank] + 1)
        n = max(_LEAST_KEPT, int(np.sqrt(ranks)))
        if kept.shape[0] < (ranks // n + 1) * width:
            kept = np.empty((ranks // n + 1) * width)
        if took_relevant.shape[0] < n * width:
            took_relevant = np.empty(n * width, np.bool_)
        value[0], value[1], value[2] = -np.inf, 0.0, -np.inf
        # Forwards to the last rank, then backwards by n ranks at a time.
        first, stop, placed, is_forward = 0, ranks, relevant.shape[0], True
        while stop > 0:
            for rank in range(first, stop):
                low, high = lows[rank + 1], min(highs[rank + 1], placed)
                if is_forward and rank % n == 0:
                    for g in range(lows[rank], highs[rank] + 1):
                        kept[rank // n * width + g - lows[rank]] = value[g + 1]
                steps = took_relevant[rank % n * width :]
                _next_rank(value, rank, low, high, relevant, irrelevant, worth, decay, discount, other, steps)
                value, other = other, value
            if is_forward:
                best, is_forward, first = -np.inf, False, (ranks - 1) // n * n
                for g in range(lows[ranks], highs[ranks] + 1):
                    if value[g + 1] > best:
                        best, placed = value[g + 1], g
                for rest in range(placed, relevant.shape[0]):
                    before[starts[q] + rest] = ranks - placed
            for rank in range(stop - 1, first - 1, -1):
                if placed > 0 and took_relevant[rank % n * width + placed - lows[rank + 1]]:
                    placed -= 1
                    before[starts[q] + placed] = rank - placed
            stop, first = first, first - n
            if stop > 0:
                for g in range(lows[first], min(highs[first], placed) + 1):
                    value[g + 1] = kept[first // n * width + g - lows[first]]
                value[lows[first]] = value[min(highs[first], placed) + 2] = -np.inf


@kernel(by_address=True)
def predicted(block):
    """Find the interleaving by score, the prediction of phi_po and phi_dorm.

    Ties go to irrelevant documents, so that a w that ties all documents earns no credit.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    for q in range(n_relevant.shape[0]):
        first_irrelevant = starts[q] + n_relevant[q]
        b = first_irrelevant
        for g in range(starts[q], first_irrelevant):
            while b < starts[q + 1] and scores[b] >= scores[g]:
                b += 1
            before[g] = b - first_irrelevant


@kernel(by_address=True)
def ideal(block):
    """Rank relevant documents before irrelevant ones, both by score: the ideal ranking of largest w.phi_dorm."""
    for q in range(block.n_relevant.shape[0]):
        for g in range(block.starts[q], block.starts[q] + block.n_relevant[q]):
            block.before[g] = 0


@kernel(by_address=True)
def predicted_first(block):
    """Find the ranking that maximises w.phi_mrr: it is not the sorted order.

    The relevant document of lowest score comes first among the relevant ones, after all irrelevant ones with a higher score.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    for q in range(n_relevant.shape[0]):
        first_irrelevant = starts[q] + n_relevant[q]
        ahead = 0
        while first_irrelevant + ahead < starts[q + 1] and scores[first_irrelevant + ahead] > scores[first_irrelevant - 1]:
            ahead += 1
        for g in range(starts[q], first_irrelevant):
            before[g] = ahead
