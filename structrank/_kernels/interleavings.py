"""Most violated rankings of queries whose documents are good or bad.

For the partial-order and the permutation map, swapping two good (or two bad) documents that stand against their scores
never lowers w.phi and leaves the loss alone. So a best ranking keeps the good and the bad documents each in order of
score, and is told by one number per good document: ``before[g]``, how many bad documents stand before it. These
functions find the best such interleaving, exactly. (The first-relevant map differs in one thing, see `mrr_first`.)

Shared arguments, for a block of queries:

scores : (n_docs,) array
    Query q holds ``scores[starts[q]:starts[q + 1]]``: its ``n_good[q]`` good documents by decreasing score, then its bad
    ones likewise. Every query has at least one of each.
before : (n_docs,) array of int
    Result, at ``starts[q] + g``.
discount, credit : arrays of at least as many entries as the longest query has documents, and one more
    All losses but AUC's are ``1 - sum_g credit[g] discount[g + before[g]] / sum_g credit[g] discount[g]``.
"""

import numpy as np

from structrank._compile import REORDER, kernel


@kernel
def discounted_losses(starts, n_good, before, discount, credit, losses):
    """Compute the loss of each query's interleaving."""
    for q in range(n_good.shape[0]):
        reached = 0.0
        ideal = 0.0
        for g in range(n_good[q]):
            reached += credit[g] * discount[g + before[starts[q] + g]]
            ideal += credit[g] * discount[g]
        losses[q] = 1.0 - reached / ideal


@kernel
def pair_losses(starts, n_good, before, losses):
    """Compute the fraction of wrong pairs of each query's interleaving."""
    for q in range(n_good.shape[0]):
        wrong = 0
        for g in range(n_good[q]):
            wrong += before[starts[q] + g]
        losses[q] = wrong / (n_good[q] * (starts[q + 1] - starts[q] - n_good[q]))


# So many bad documents choose side by side, which takes as long as a few that choose one after the other.
_SIDE_BY_SIDE = 64
# Entries that `falls` has in front, and a good document that is better than any bad one.
_PADDING, _NEVER_PASSED = 3, (np.inf, 0.0)


@kernel
def _split_good(good, bad, worth, falls, first_bad, stop_bad, fewest_good, room, split):
    """Choose ``split[j] >= fewest_good``, the number of good documents before bad j, for j from `first_bad` to `stop_bad`.

    Standing before good i earns bad j the amount bad_j - good_i + worth_i falls_(i + j), where falls_r = D(r) - D(r + 1), which
    falls with j where D is convex. So each bad document can choose alone, and the best choices rise with j: that of one halves
    the work for the others.
    """
    stack, amounts, most_earned = room
    stack[0, :] = (first_bad, stop_bad, fewest_good, good.shape[0])
    depth = 1 if first_bad < stop_bad else 0
    while depth > 0:
        depth -= 1
        low, high, fewest, most = stack[depth]
        # Where many have to choose, the one in the middle comes first.
        some = slice(low, high) if high - low <= _SIDE_BY_SIDE else slice((low + high) // 2, (low + high) // 2 + 1)
        _choose_side_by_side(
            good[:most], bad[some], worth, falls[some.start :], fewest, amounts, most_earned, split[some]
        )
        if some.start > low:
            stack[depth, :] = (low, some.start, fewest, split[some.start])
            depth += 1
        if some.stop < high:
            stack[depth, :] = (some.stop, high, split[some.start], most)
            depth += 1


@kernel
def _choose_side_by_side(good, bad, worth, falls, fewest, amounts, most_earned, split):
    """Let each bad document choose for itself; `falls` start with those of the first, after the padding."""
    n = bad.shape[0]
    for j in range(n):
        amounts[j] = most_earned[j] = 0.0
        split[j] = good.shape[0]
    # Four good documents at a time: what was earned so far is loaded and stored a quarter as often.
    for last in range(good.shape[0] - 1, fewest - 1, -4):
        good0, worth0 = good[last], worth[last]
        good1, worth1 = (good[last - 1], worth[last - 1]) if last - 1 >= fewest else _NEVER_PASSED
        good2, worth2 = (good[last - 2], worth[last - 2]) if last - 2 >= fewest else _NEVER_PASSED
        good3, worth3 = (good[last - 3], worth[last - 3]) if last - 3 >= fewest else _NEVER_PASSED
        some = falls[last : last + n + _PADDING]
        for j in range(n):
            amount0 = amounts[j] + (bad[j] - good0 + worth0 * some[j + 3])
            amount1 = amount0 + (bad[j] - good1 + worth1 * some[j + 2])
            amount2 = amount1 + (bad[j] - good2 + worth2 * some[j + 1])
            amount3 = amount2 + (bad[j] - good3 + worth3 * some[j])
            amounts[j] = amount3
            most, choice = most_earned[j], split[j]
            # Selections one by one, which vectorise.
            choice = last if amount0 > most else choice
            most = amount0 if amount0 > most else most
            choice = last - 1 if amount1 > most else choice
            most = amount1 if amount1 > most else most
            choice = last - 2 if amount2 > most else choice
            most = amount2 if amount2 > most else most
            choice = last - 3 if amount3 > most else choice
            most = amount3 if amount3 > most else most
            most_earned[j], split[j] = most, choice


@kernel
def _place_good(split, n_good, before):
    """Turn `split`, which rises, into `before`: the bad documents whose split is at most g."""
    for g in range(n_good):
        before[g] = 0
    # Each overwrites the one before it, without a branch; the split of those behind all good documents is n_good.
    for j in range(split.shape[0]):
        before[np.uintp(split[j])] = j + 1
    for g in range(1, n_good):
        before[g] = max(before[g], before[g - 1])


@kernel(fastmath=REORDER)
def _gain(good, bad_sums, worth, discount, before):
    """Compute the gain over the ideal ranking; `bad_sums` are prefix sums of the bad scores."""
    gain = 0.0
    for g in range(good.shape[0]):
        b = np.uintp(before[g])
        gain += bad_sums[b] - b * good[g] + worth[g] * (discount[g] - discount[g + b])
    return gain


@kernel
def unclipped(scores, starts, n_good, discount, credit, convex_from, before):
    """Find the best interleaving for MAP and NDCG-NC, whose discount is convex from rank `convex_from` (0 or 1) on.

    All gains are in units of what a pair of documents counts in w.phi, 2 / (n+ n-) for a difference of scores of 1.
    """
    longest = 0
    for q in range(n_good.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
    falls = np.zeros(_PADDING + longest)
    falls[_PADDING:] = discount[:longest] - discount[1 : longest + 1]
    worth = np.empty(longest)
    split = np.empty(longest, np.int64)
    bad_first = np.empty(longest, np.int64)
    bad_sums = np.zeros(longest + 1)
    room = np.empty((64, 4), np.int64), np.empty(_SIDE_BY_SIDE), np.empty(_SIDE_BY_SIDE)
    for q in range(n_good.shape[0]):
        good = scores[starts[q] : starts[q] + n_good[q]]
        bad = scores[starts[q] + n_good[q] : starts[q + 1]]
        chosen = before[starts[q] : starts[q + 1]]
        choices = split[: bad.shape[0]]
        ideal = 0.0
        for g in range(good.shape[0]):
            ideal += credit[g] * discount[g]
        for g in range(good.shape[0]):
            worth[g] = 0.5 * good.shape[0] * bad.shape[0] * credit[g] / ideal
        _split_good(good, bad, worth, falls, convex_from, bad.shape[0], 0, room, choices)
        if convex_from == 0:
            _place_good(choices, good.shape[0], chosen)
            continue
        # Rank 0 holds a bad or a good document; either way all other choices see ranks from 1 on, where D is convex.
        choices[0] = 0
        _place_good(choices, good.shape[0], bad_first)
        ahead_of_all = bad_first[0]  # bad documents that would rather stand before the first good one, and now must not
        _split_good(good, bad, worth, falls, 0, ahead_of_all, 1, room, choices)
        _place_good(choices, good.shape[0], chosen)
        for b in range(bad.shape[0]):
            bad_sums[b + 1] = bad_sums[b] + bad[b]
        if _gain(good, bad_sums, worth, discount, bad_first) > _gain(good, bad_sums, worth, discount, chosen):
            chosen[: good.shape[0]] = bad_first[: good.shape[0]]


@kernel
def _sums_and_score_order(good, bad, scale, bad_sums, good_sums, by_score, after_gain):
    """Prepare what the clipped criteria need where no credit is left and the scores alone decide.

    ``by_score[g]`` is the number of bad documents that outscore good g, ``after_gain[g]`` the gain of w.phi over the ideal
    ranking when all good documents from g on stand there; `bad_sums` and `good_sums` are prefix sums.
    """
    bad_sums[0] = 0.0
    for b in range(bad.shape[0]):
        bad_sums[b + 1] = bad_sums[b] + bad[b]
    good_sums[0] = 0.0
    b = 0
    for g in range(good.shape[0]):
        good_sums[g + 1] = good_sums[g] + good[g]
        while b < bad.shape[0] and bad[b] > good[g]:
            b += 1
        by_score[g] = b
    after_gain[good.shape[0]] = 0.0
    for g in range(good.shape[0] - 1, -1, -1):
        after_gain[g] = after_gain[g + 1] + scale * (bad_sums[by_score[g]] - by_score[g] * good[g])


@kernel
def ndcg(scores, starts, n_good, discount, k, before):
    """Find the best interleaving for NDCG@k.

    For each number m of good documents in the top k: the head, a dynamic programme over (g < m, before[g]) with a running
    prefix maximum per row, plus the tail, the other good documents where their scores put them, but not above rank k.
    """
    longest = 0
    rows = 0
    for q in range(n_good.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
        rows = max(rows, min(n_good[q], k))
    bad_sums = np.empty(longest + 1)
    good_sums = np.empty(longest + 1)
    by_score = np.empty(longest + 1, np.int64)
    after_gain = np.empty(longest + 1)
    columns = min(k, longest) + 1
    value = np.empty((rows, columns))
    came_from = np.empty((rows, columns), np.int64)
    for q in range(n_good.shape[0]):
        good = scores[starts[q] : starts[q] + n_good[q]]
        bad = scores[starts[q] + n_good[q] : starts[q + 1]]
        chosen = before[starts[q] : starts[q] + n_good[q]]
        n_bad = bad.shape[0]
        scale = 2.0 / (good.shape[0] * n_bad)
        ideal = 0.0
        for g in range(min(good.shape[0], k)):
            ideal += discount[g]
        _sums_and_score_order(good, bad, scale, bad_sums, good_sums, by_score, after_gain)
        best, best_m, best_b = -np.inf, 0, 0
        free = good.shape[0]  # the first good document, from m on, whose score alone puts it below the top k
        for m in range(min(good.shape[0], k) + 1):
            if m > 0:
                g = m - 1
                prefix_best, prefix_b = (0.0, 0) if g == 0 else (-np.inf, 0)
                head, head_b = -np.inf, 0
                for b in range(min(k - m, n_bad) + 1):
                    if g > 0 and value[g - 1, b] > prefix_best:
                        prefix_best, prefix_b = value[g - 1, b], b
                    value[g, b] = (
                        prefix_best + scale * (bad_sums[b] - b * good[g]) + (discount[g] - discount[g + b]) / ideal
                    )
                    came_from[g, b] = prefix_b
                    if value[g, b] > head:
                        head, head_b = value[g, b], b
            else:
                head, head_b = 0.0, 0
            tail = 0.0
            if m < good.shape[0]:
                floor = k - m  # the bad documents that must fill the top k
                if floor > n_bad:
                    continue
                while free > m and by_score[free - 1] >= floor:
                    free -= 1
                free = max(free, m)
                tail = after_gain[free] + scale * (
                    (free - m) * bad_sums[floor] - floor * (good_sums[free] - good_sums[m])
                )
                for g in range(m, min(good.shape[0], k)):
                    tail += discount[g] / ideal
            if head + tail > best:
                best, best_m, best_b = head + tail, m, head_b
        b = best_b
        for g in range(best_m - 1, -1, -1):
            chosen[g] = b
            b = came_from[g, b]
        for g in range(best_m, good.shape[0]):
            chosen[g] = max(by_score[g], k - best_m)


@kernel
def mrr_partial_order(scores, starts, n_good, discount, k, before):
    """Find the best interleaving for MRR@k with the partial-order map.

    One candidate for each number r < k of bad documents before the first good one, and one for all r >= k; the other good
    documents stand where their scores put them, but not above the first.
    """
    longest = 0
    for q in range(n_good.shape[0]):
        longest = max(longest, starts[q + 1] - starts[q])
    bad_sums = np.empty(longest + 1)
    good_sums = np.empty(longest + 1)
    by_score = np.empty(longest + 1, np.int64)
    after_gain = np.empty(longest + 1)
    for q in range(n_good.shape[0]):
        good = scores[starts[q] : starts[q] + n_good[q]]
        bad = scores[starts[q] + n_good[q] : starts[q + 1]]
        scale = 2.0 / (good.shape[0] * bad.shape[0])
        _sums_and_score_order(good, bad, scale, bad_sums, good_sums, by_score, after_gain)
        best, best_r = -np.inf, 0
        free = 1  # the first good document after good 0 whose score puts r or more bad documents before it
        for r in range(min(k, bad.shape[0]) + 1):
            while free < good.shape[0] and by_score[free] < r:
                free += 1
            gain = scale * (free * bad_sums[r] - r * good_sums[free]) + after_gain[free] + 1.0 - discount[r] / discount[0]
            if r == k and by_score[0] > k:
                gain = after_gain[0] + 1.0
            if gain > best:
                best, best_r = gain, r
        for g in range(good.shape[0]):
            before[starts[q] + g] = max(best_r, by_score[g])
        if best_r < k:
            before[starts[q]] = best_r


@kernel
def mrr_first(scores, starts, n_good, discount, k, before):
    """Find the most violated ranking for MRR@k with the first-relevant map.

    That map sees only the first good document and the bad ones before it, so the good document of lowest score comes
    first: here ``before`` speaks of the good documents from the worst to the best. Those after the first are immaterial
    and follow it at once.
    """
    for q in range(n_good.shape[0]):
        worst = scores[starts[q] + n_good[q] - 1]
        bad = scores[starts[q] + n_good[q] : starts[q + 1]]
        gain, best, best_r = 0.0, 0.0, 0
        for r in range(1, bad.shape[0] + 1):
            if r > k and bad[r - 1] <= worst:
                break
            gain += bad[r - 1] - worst
            if gain + 1.0 - discount[r] / discount[0] > best:
                best, best_r = gain + 1.0 - discount[r] / discount[0], r
        for g in range(n_good[q]):
            before[starts[q] + g] = best_r


@kernel
def permutation(scores, starts, n_good, discount, credit, decay, depth, before):
    """Find the best ranking for the permutation map, `depth` ranks deep (below, decay and discount are 0).

    A ranking is a lattice path: at rank g + b comes good g or bad b. ``value[b]`` is the best over all ways to have placed
    g good and b bad documents; the rows g are worked through one after the other.
    """
    longest = 0
    cells = 0
    for q in range(n_good.shape[0]):
        n_docs = starts[q + 1] - starts[q]
        ranks = min(depth, n_docs)
        longest = max(longest, n_docs)
        cells = max(cells, (min(ranks, n_good[q]) + 1) * (min(ranks, n_docs - n_good[q]) + 1))
    value = np.empty(longest + 1)
    took_good = np.empty(cells, np.bool_)
    for q in range(n_good.shape[0]):
        good = scores[starts[q] : starts[q] + n_good[q]]
        bad = scores[starts[q] + n_good[q] : starts[q + 1]]
        ranks = min(depth, good.shape[0] + bad.shape[0])
        width = min(ranks, bad.shape[0]) + 1
        ideal = 0.0
        for g in range(good.shape[0]):
            ideal += credit[g] * discount[g]
        value[0] = 0.0
        for b in range(1, width):
            value[b] = value[b - 1] + decay[b - 1] * bad[b - 1]
        best, placed = (value[ranks], 0) if ranks < width else (-np.inf, 0)
        for g in range(1, min(ranks, good.shape[0]) + 1):
            score = good[g - 1]
            per_discount = credit[g - 1] / ideal
            left = value[0] + decay[g - 1] * score - per_discount * discount[g - 1]
            value[0] = left
            for b in range(1, min(width - 1, ranks - g) + 1):
                rank = g + b - 1
                with_good = value[b] + decay[rank] * score - per_discount * discount[rank]
                with_bad = left + decay[rank] * bad[b - 1]
                took_good[g * width + b] = with_good > with_bad
                left = with_good if with_good > with_bad else with_bad
                value[b] = left
            if ranks - g < width and value[ranks - g] > best:
                best, placed = value[ranks - g], g
        g, b = placed, ranks - placed
        for rest in range(g, good.shape[0]):
            before[starts[q] + rest] = b
        while g > 0:
            if b == 0 or took_good[g * width + b]:
                g -= 1
                before[starts[q] + g] = b
            else:
                b -= 1


@kernel
def predicted(scores, starts, n_good, before):
    """Find the interleaving that the scores alone choose, the prediction of the partial-order and the permutation map.

    Of equal scores the bad documents stand first, so that a w which ties everything has no part in the credit.
    """
    for q in range(n_good.shape[0]):
        first_bad = starts[q] + n_good[q]
        b = first_bad
        for g in range(starts[q], first_bad):
            while b < starts[q + 1] and scores[b] >= scores[g]:
                b += 1
            before[g] = b - first_bad


@kernel
def predicted_first(scores, starts, n_good, before):
    """Find the ranking that maximises w.phi of the first-relevant map: it is not the sorted order.

    The worst good document stands first among the good ones, behind all bad ones that outscore it.
    """
    for q in range(n_good.shape[0]):
        first_bad = starts[q] + n_good[q]
        ahead = 0
        while first_bad + ahead < starts[q + 1] and scores[first_bad + ahead] > scores[first_bad - 1]:
            ahead += 1
        for g in range(starts[q], first_bad):
            before[g] = ahead
