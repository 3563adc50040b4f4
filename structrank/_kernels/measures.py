"""Ranking measures over all queries at once, averaged exactly over the orders of tied documents.

Every measure reads documents query after query, each query by decreasing score; query q holds the positions
``indptr[q]`` to ``indptr[q + 1]``. Neighbours of equal score form a tie group, and the value is the mean over
all orders of every tie group (McSherry and Najork, Computing information retrieval performance measures
efficiently in the presence of tied scores, ECIR 2008), from counts per group: one pass after the sort. Scores
without equal neighbours disable the averaging.
"""

import numpy as np

from structrank._kernels.graded import add_to_tree, count_below
from structrank._kernels.sorting import sort_descending
from structrank._support.compile import kernel


@kernel
def rank_queries(keys, indptr, order, sorted_keys, workspace):
    """Sort each query by decreasing key, equal keys in the order of `order`; write the sorted keys.

    `workspace` is from `structrank._kernels.sorting.make_workspace`.
    """
    for place in range(order.shape[0]):
        sorted_keys[place] = keys[order[place]]
    for q in range(indptr.shape[0] - 1):
        sort_descending(sorted_keys, order, indptr[q], indptr[q + 1], workspace)


@kernel(inner=True)
def _tie_group(scores, values, start, end):
    """Return the end of the tie group that begins at `start`, and the sum of its values."""
    stop, total = start + 1, values[start] + 0  # a number, also for truth values
    while stop < end and scores[stop] == scores[start]:
        total += values[stop]
        stop += 1
    return stop, total


@kernel
def discounted_gains(scores, indptr, gains, discounts, out):
    """Write the sum of ``discounts[rank] * gain`` of each query, 0 for ranks past the end of `discounts`."""
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        cut = first + discounts.shape[0]
        total = 0.0
        start = first
        while start < min(end, cut):
            stop, gain = _tie_group(scores, gains, start, end)
            # Each document of the group is equally likely at each of its ranks.
            gain /= stop - start
            for place in range(start, min(stop, cut)):
                total += gain * discounts[place - first]
            start = stop
        out[q] = total


@kernel
def average_precisions(scores, indptr, relevant, out):
    """Write the mean over relevant documents of the precision at their rank; nan where there are none."""
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        total = 0.0
        n_relevant = 0
        start = first
        while start < end:
            stop, tied_relevant = _tie_group(scores, relevant, start, end)
            if tied_relevant:
                # A position of the group is relevant with probability `chance`; given that, each position above it in the
                # group is relevant with probability `others`.
                chance = tied_relevant / (stop - start)
                others = (tied_relevant - 1) / max(stop - start - 1, 1)
                for place in range(start, stop):
                    total += chance * (n_relevant + 1 + (place - start) * others) / (1 + place - first)
            n_relevant += tied_relevant
            start = stop
        out[q] = total / n_relevant if n_relevant else np.nan


@kernel
def first_relevant(scores, indptr, relevant, divisors, out):
    """Write 1 / divisors[rank of the first relevant document], 0 past the end of `divisors`; nan where there is none."""
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        start = first
        stop = first
        n_relevant = 0
        while stop < end and not n_relevant:
            start = stop
            stop, n_relevant = _tie_group(scores, relevant, start, end)
        if not n_relevant:
            out[q] = np.nan
            continue
        # Walk down the group: `none_yet` is the probability of no relevant document above the position.
        total = 0.0
        none_yet = 1.0
        for place in range(start, min(stop, first + divisors.shape[0])):
            chance = n_relevant / (stop - place)
            total += none_yet * chance / divisors[place - first]
            none_yet *= 1.0 - chance
        out[q] = total


@kernel
def ordered_pairs(scores, indptr, grades, n_grades, out):
    """Write the fraction of pairs of different grade in the right order, ties half; nan where there is none.

    Grades are integers from 0 to ``n_grades - 1``, higher is better. ``above`` counts the documents of higher
    score by grade in a Fenwick tree, so that a query of n documents costs n log(n_grades).
    """
    above = np.zeros(n_grades + 1, np.int64)
    count = np.zeros(n_grades, np.int64)
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        pairs = 0
        right_less_wrong = 0
        start = first
        while start < end:
            stop = start
            while stop < end and scores[stop] == scores[start]:
                grade = grades[stop]
                pairs += stop - first - count[grade]
                count[grade] += 1
                # A document above is in the right order if its grade is higher, in the wrong order if it is lower.
                right_less_wrong += start - first - count_below(above, grade) - count_below(above, grade + 1)
                stop += 1
            for place in range(start, stop):
                add_to_tree(above, grades[place], 1)
            start = stop
        for place in range(first, end):
            count[grades[place]] = 0
            add_to_tree(above, grades[place], -1)
        # right + wrong + tied = pairs, hence right + tied / 2 = (pairs + right - wrong) / 2.
        out[q] = (pairs + right_less_wrong) / (2 * pairs) if pairs else np.nan


@kernel
def recalls(scores, indptr, relevant, cut, out):
    """Write the share of the relevant documents in the first `cut` ranks; nan where there are none.

    A cut of 0 stands for as many ranks as the query has relevant documents.
    """
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        n_relevant = 0
        for place in range(first, end):
            n_relevant += relevant[place]
        top = first + min(cut if cut else n_relevant, end - first)
        found = 0.0
        start = first
        while start < top:
            stop, tied_relevant = _tie_group(scores, relevant, start, end)
            found += tied_relevant * (min(stop, top) - start) / (stop - start)
            start = stop
        out[q] = found / n_relevant if n_relevant else np.nan


@kernel
def binary_preferences(scores, indptr, relevant, out):
    """Write 1 less the mean over relevant documents of the irrelevant ones above, bounded and scaled by the number of relevant.

    A query with R relevant and N irrelevant documents has the mean of ``1 - min(above, R) / min(N, R)``, nan where R is 0.
    """
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        n_relevant = 0
        for place in range(first, end):
            n_relevant += relevant[place]
        least = min(n_relevant, end - first - n_relevant)
        above = 0
        lost = 0.0
        start = first
        while start < end:
            stop, tied_relevant = _tie_group(scores, relevant, start, end)
            tied_irrelevant = stop - start - tied_relevant
            if tied_relevant:
                # Any number of the irrelevant documents of the group, 0 included, is equally likely above a relevant one.
                counted = 0
                for more in range(tied_irrelevant + 1):
                    counted += min(above + more, n_relevant)
                lost += tied_relevant * counted / (tied_irrelevant + 1)
            above += tied_irrelevant
            start = stop
        out[q] = 1.0 - lost / (n_relevant * max(least, 1)) if n_relevant else np.nan


@kernel
def expected_reciprocal_ranks(scores, indptr, stops, cut, out):
    """Write the mean of 1 / (1 + rank) where a reader stops, 0 from rank `cut` on; nan where nothing ever stops the reader.

    ``stops`` holds the probability that the reader stops at a document once the reader sees it. The mean over all orders of a
    tie group needs, for each t, the mean over all sets of t of its documents of the probability to pass all of them. These
    elementary symmetric means follow from one document after another: the last of i documents is in a share t / i of the sets.
    A group of g documents costs g min(g, cut).
    """
    longest = 0
    for q in range(out.shape[0]):
        longest = max(longest, indptr[q + 1] - indptr[q])
    passed = np.empty(min(longest, cut) + 1)
    for q in range(out.shape[0]):
        first, end = indptr[q], indptr[q + 1]
        total = 0.0
        reached = 1.0
        some = False
        start = first
        while start < end:
            stop = start
            while stop < end and scores[stop] == scores[start]:
                some = some or stops[stop] > 0.0
                stop += 1
            n_ranks = min(stop, first + cut) - start
            if n_ranks > 0:
                passed[0] = 1.0
                passed[1 : n_ranks + 1] = 0.0
                for i in range(1, stop - start + 1):
                    passes = 1.0 - stops[start + i - 1]
                    for t in range(min(i, n_ranks), 0, -1):
                        passed[t] += t / i * (passes * passed[t - 1] - passed[t])
                for t in range(n_ranks):
                    total += reached * (passed[t] - passed[t + 1]) / (1 + start + t - first)
                reached *= passed[n_ranks]  # unused if the cutoff divides the group
            start = stop
        out[q] = total if some else np.nan
