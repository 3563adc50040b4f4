"""Graded labels: AUC over all pairs with different labels, and losses and coefficients of rankings.

Shared arguments, for a block of queries:

scores, grades : (n_docs,) arrays
    By decreasing score within each query, tied documents by decreasing grade. Grades are numbers 0, 1, ... within each query.
ranking : (n_docs,) array of int
    Positions within the query, best first.
coefficients : (n_docs,) array
    Result: phi(y) - phi(y*) = sum_i coefficient_i x_i, in sorted order.
"""

import numpy as np

from structrank._kernels.counts import ideal_credit
from structrank._support.compile import kernel


@kernel(inner=True)
def add_to_tree(tree, grade, change):
    """Change the number of documents of `grade` in a Fenwick tree."""
    i = grade + 1
    while i < tree.shape[0]:
        tree[i] += change
        i += i & -i


@kernel(inner=True)
def count_below(tree, grade):
    """Count the documents of grades below `grade`."""
    total = 0
    i = grade
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@kernel(by_address=True)
def auc(block):
    """Find the most violated pair assignment: a pair is wrong if its scores are less than 1/2 apart.

    Two sweeps by score count for each document the wrong pairs with lower and with higher grades; O(n log grades).

    Parameters
    ----------
    scores : (n_docs,) array
        By decreasing score within each query.
    grades : (n_docs,) array of int
        Labels of the same documents as numbers 0, 1, ... within each query.
    """
    scores, starts, grades, coefficients, losses = block.scores, block.starts, block.grades, block.coefficients, block.losses
    for q in range(starts.shape[0] - 1):
        start, stop = starts[q], starts[q + 1]
        n_grades = 0
        for i in range(start, stop):
            n_grades = max(n_grades, grades[i] + 1)
        counts = np.zeros(n_grades, np.int64)
        for i in range(start, stop):
            counts[grades[i]] += 1
        pairs = (stop - start) ** 2
        for grade in range(n_grades):
            pairs -= counts[grade] ** 2
        pairs //= 2
        tree = np.zeros(n_grades + 1, np.int64)
        reached = start
        wrong = 0
        for i in range(start, stop):
            while reached < stop and scores[i] - scores[reached] < 0.5:
                add_to_tree(tree, grades[reached], 1)
                reached += 1
            worse = count_below(tree, grades[i])
            coefficients[i] = -worse
            wrong += worse
        tree[:] = 0
        reached = stop - 1
        added = 0
        for i in range(stop - 1, start - 1, -1):
            while reached >= start and scores[reached] - scores[i] < 0.5:
                add_to_tree(tree, grades[reached], 1)
                added += 1
                reached -= 1
            better = added - count_below(tree, grades[i] + 1)
            coefficients[i] = (coefficients[i] + better) * 2.0 / pairs
        losses[q] = wrong / pairs


@kernel(by_address=True)
def predicted(block):
    """Rank by score; of tied documents the lowest grade comes first, so that a w that ties all documents earns no credit."""
    scores, starts, ranking = block.scores, block.starts, block.ranking
    for q in range(starts.shape[0] - 1):
        start, stop = starts[q], starts[q + 1]
        first = start
        while first < stop:
            end = first + 1
            while end < stop and scores[end] == scores[first]:
                end += 1
            for i in range(first, end):
                ranking[i] = first + end - 1 - i - start
            first = end


@kernel(by_address=True)
def ideal(block):
    """Rank by grade, equal grades by score: the ideal ranking of largest w.phi_dorm."""
    starts, grades, grade_starts, ranking = block.starts, block.grades, block.grade_starts, block.ranking
    counts = _make_counts(grade_starts)
    for q in range(starts.shape[0] - 1):
        start, stop = starts[q], starts[q + 1]
        _count_grades(grades, start, stop, grade_starts[q + 1] - grade_starts[q], counts)
        for i in range(start, stop):
            ranking[start + counts[1, grades[i]]] = i - start
            counts[1, grades[i]] += 1


@kernel(inner=True)
def _make_counts(grade_starts):
    """Allocate counts for the query with the most grades."""
    most = 0
    for q in range(grade_starts.shape[0] - 1):
        most = max(most, grade_starts[q + 1] - grade_starts[q])
    return np.empty((2, most), np.int64)


@kernel(inner=True)
def _count_grades(grades, start, stop, n_grades, counts):
    """Count the documents of each grade and of all higher grades; return the number of pairs with different grades."""
    for g in range(n_grades):
        counts[0, g] = 0
    for i in range(start, stop):
        counts[0, grades[i]] += 1
    pairs, above = 0, 0
    for g in range(n_grades - 1, -1, -1):
        counts[1, g] = above
        pairs += above * counts[0, g]
        above += counts[0, g]
    return pairs


@kernel(by_address=True)
def top_losses(block):
    """Compute the loss of each ranking: 1 - credit in the top k / credit of the ideal ranking.

    The credit is the sum of ``gain discount[rank]``, in a cascade times the chance that a reader gets to the rank.
    """
    starts, grades, grade_starts, ranking = block.starts, block.grades, block.grade_starts, block.ranking
    gains, losses, discount, k, cascade = block.gains, block.losses, block.table[0], block.settings[0], block.settings[1] == 1
    counts = _make_counts(grade_starts)
    for q in range(starts.shape[0] - 1):
        start, first_gain, n_grades = starts[q], grade_starts[q], grade_starts[q + 1] - grade_starts[q]
        depth = min(k, starts[q + 1] - start)
        _count_grades(grades, start, starts[q + 1], n_grades, counts)
        credit, reach = 0.0, 1.0
        for rank in range(depth):
            gain = gains[first_gain + grades[start + ranking[start + rank]]]
            credit += gain * discount[rank] * reach
            if cascade:
                reach *= 1.0 - gain
        losses[q] = 1.0 - credit / ideal_credit(counts, n_grades, gains, first_gain, discount, depth, cascade)


@kernel(by_address=True)
def pair_losses(block):
    """Compute the fraction of wrong pairs of different grades of each ranking."""
    starts, grades, grade_starts, ranking = block.starts, block.grades, block.grade_starts, block.ranking
    losses = block.losses
    counts = _make_counts(grade_starts)
    for q in range(starts.shape[0] - 1):
        start, stop, n_grades = starts[q], starts[q + 1], grade_starts[q + 1] - grade_starts[q]
        pairs = _count_grades(grades, start, stop, n_grades, counts)
        tree = np.zeros(n_grades + 1, np.int64)
        wrong = 0
        for place in range(start, stop):
            grade = grades[start + ranking[place]]
            wrong += count_below(tree, grade)
            add_to_tree(tree, grade, 1)
        losses[q] = wrong / pairs


@kernel(by_address=True)
def partial_order(block):
    """Weight each wrong pair of different grades by 2 / N, with N the number of such pairs.

    A document has higher grades after it and lower grades before it. Their difference falls by 1 with every document of
    another grade, from the number of documents of higher grades.
    """
    starts, grades, grade_starts, ranking = block.starts, block.grades, block.grade_starts, block.ranking
    coefficients = block.coefficients
    counts = _make_counts(grade_starts)
    for q in range(starts.shape[0] - 1):
        start, stop, n_grades = starts[q], starts[q + 1], grade_starts[q + 1] - grade_starts[q]
        scale = 2.0 / _count_grades(grades, start, stop, n_grades, counts)
        for rank in range(stop - start):
            i = start + ranking[start + rank]
            coefficients[i] = scale * (counts[1, grades[i]] - rank)
            counts[1, grades[i]] += 1  # a document of the same grade does not count


@kernel(by_address=True)
def permutation(block):
    """Weight each document by A(rank) minus the mean of A over the ideal ranks of its grade."""
    starts, grades, grade_starts, ranking = block.starts, block.grades, block.grade_starts, block.ranking
    decay, decay_sums, coefficients = block.table[2], block.table[3], block.coefficients
    counts = _make_counts(grade_starts)
    for q in range(starts.shape[0] - 1):
        start, stop, n_grades = starts[q], starts[q + 1], grade_starts[q + 1] - grade_starts[q]
        _count_grades(grades, start, stop, n_grades, counts)
        for rank in range(stop - start):
            i = start + ranking[start + rank]
            own, above = counts[0, grades[i]], counts[1, grades[i]]
            coefficients[i] = decay[rank] - (decay_sums[above + own] - decay_sums[above]) / own


@kernel(by_address=True)
def share_ties(block):
    """Replace the coefficients of documents of equal score and grade by their mean, see `feature_maps.share_ties`."""
    scores, starts, grades, coefficients = block.scores, block.starts, block.grades, block.coefficients
    for q in range(starts.shape[0] - 1):
        start = starts[q]
        while start < starts[q + 1]:
            end, total = start + 1, coefficients[start]
            while end < starts[q + 1] and scores[end] == scores[start] and grades[end] == grades[start]:
                total += coefficients[end]
                end += 1
            if end - start > 1:
                coefficients[start:end] = total / (end - start)
            start = end
