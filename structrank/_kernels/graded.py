"""AUC over graded labels: all pairs of documents with different labels, the pairwise hinge of RankSVM."""

import numpy as np

from structrank._support.compile import kernel


@kernel
def _add(tree, grade):
    """Count one more document of `grade` in a Fenwick tree."""
    i = grade + 1
    while i < tree.shape[0]:
        tree[i] += 1
        i += i & -i


@kernel
def _count_below(tree, grade):
    """Count the documents of grades below `grade`."""
    total = 0
    i = grade
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@kernel
def auc(scores, starts, grades, coefficients, losses):
    """Find the most violated pair assignment: a pair is wrong if its scores are less than 1/2 apart.

    Two sweeps by score count for each document the wrong pairs with lower and with higher grades; O(n log grades).

    Parameters
    ----------
    scores : (n_docs,) array
        By decreasing score within each query.
    grades : (n_docs,) array of int
        Labels of the same documents as numbers 0, 1, ... within each query.
    """
    for q in range(losses.shape[0]):
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
                _add(tree, grades[reached])
                reached += 1
            worse = _count_below(tree, grades[i])
            coefficients[i] = -worse
            wrong += worse
        tree[:] = 0
        reached = stop - 1
        added = 0
        for i in range(stop - 1, start - 1, -1):
            while reached >= start and scores[reached] - scores[i] < 0.5:
                _add(tree, grades[reached])
                added += 1
                reached -= 1
            better = added - _count_below(tree, grades[i] + 1)
            coefficients[i] = (coefficients[i] + better) * 2.0 / pairs
        losses[q] = wrong / pairs
