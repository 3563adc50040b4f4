"""AUC with binary relevance: a pair is right if its scores are at least 1/2 apart, independently of other pairs.

With few relevant (or few irrelevant) documents, comparing all pairs beats sorting the relevant documents. The arguments
are those of `structrank._kernels.interleavings`, except that irrelevant documents need not be sorted.
"""

import numpy as np

from structrank._support.compile import kernel

# Searching the position of a document takes about as long as comparing this many pairs.
_PAIRS_PER_DOCUMENT = 40


@kernel
def are_few(n_relevant, n_irrelevant):
    """Return whether comparing all pairs of a query is faster than sorting."""
    return n_relevant * n_irrelevant <= _PAIRS_PER_DOCUMENT * (n_relevant + n_irrelevant)


@kernel(inner=True)
def _count(relevant, irrelevant, of_relevant, of_irrelevant):
    """Count the wrong pairs of each document; return their total."""
    total = 0.0
    of_irrelevant[:] = 0.0
    # Four relevant documents at a time: the irrelevant scores are loaded a quarter as often.
    whole = relevant.shape[0] - relevant.shape[0] % 4
    for g in range(0, whole, 4):
        s0, s1, s2, s3 = relevant[g], relevant[g + 1], relevant[g + 2], relevant[g + 3]
        n0 = n1 = n2 = n3 = 0.0
        for b in range(irrelevant.shape[0]):
            wrong0 = 1.0 if s0 - irrelevant[b] < 0.5 else 0.0
            wrong1 = 1.0 if s1 - irrelevant[b] < 0.5 else 0.0
            wrong2 = 1.0 if s2 - irrelevant[b] < 0.5 else 0.0
            wrong3 = 1.0 if s3 - irrelevant[b] < 0.5 else 0.0
            n0 += wrong0
            n1 += wrong1
            n2 += wrong2
            n3 += wrong3
            of_irrelevant[b] += (wrong0 + wrong1) + (wrong2 + wrong3)
        of_relevant[g], of_relevant[g + 1], of_relevant[g + 2], of_relevant[g + 3] = n0, n1, n2, n3
        total += (n0 + n1) + (n2 + n3)
    for g in range(whole, relevant.shape[0]):
        n = 0.0
        for b in range(irrelevant.shape[0]):
            wrong = 1.0 if relevant[g] - irrelevant[b] < 0.5 else 0.0
            n += wrong
            of_irrelevant[b] += wrong
        of_relevant[g] = n
        total += n
    return total


@kernel(inner=True)
def _search(relevant, irrelevant, first, of_relevant, of_irrelevant):
    """Count as `_count` does, for sorted relevant documents: the last ones form wrong pairs with an irrelevant document.

    The first of them is found by bisection, for all irrelevant documents in a branchless loop. `first` is a workspace with one
    entry per document.
    """
    n_relevant, n_irrelevant = relevant.shape[0], irrelevant.shape[0]
    places = first[n_relevant:]
    for b in range(n_irrelevant):
        places[b] = 0
    length = n_relevant
    while length > 1:
        half = length // 2
        for b in range(n_irrelevant):
            places[b] += half * np.int64(relevant[np.uintp(places[b] + half - 1)] - irrelevant[b] >= 0.5)
        length -= half
    for b in range(n_irrelevant):
        places[b] += np.int64(relevant[np.uintp(places[b])] - irrelevant[b] >= 0.5)
        of_irrelevant[b] = n_relevant - places[b]
    # Count the irrelevant documents by position; the last count, after all relevant ones, overwrites places[0].
    place = places[0]
    for g in range(n_relevant + 1):
        first[g] = 0
    first[place] = 1
    for b in range(1, n_irrelevant):
        first[np.uintp(places[b])] += 1
    total, n = 0, 0
    for g in range(n_relevant):
        n += first[g]
        of_relevant[g] = n
        total += n
    return total


@kernel(by_address=True)
def auc(block):
    """Find the most violated interleaving for AUC, with its coefficients in phi_po.

    Queries with few pairs need not be sorted.
    """
    scores, starts, n_relevant, before = block.scores, block.starts, block.n_relevant, block.before
    coefficients, losses = block.coefficients, block.losses
    for q in range(n_relevant.shape[0]):
        first_irrelevant = starts[q] + n_relevant[q]
        relevant, irrelevant = scores[starts[q] : first_irrelevant], scores[first_irrelevant : starts[q + 1]]
        of_relevant, of_irrelevant = coefficients[starts[q] : first_irrelevant], coefficients[first_irrelevant : starts[q + 1]]
        if are_few(relevant.shape[0], irrelevant.shape[0]):
            n_wrong = _count(relevant, irrelevant, of_relevant, of_irrelevant)
        else:
            n_wrong = _search(relevant, irrelevant, before[starts[q] : starts[q + 1]], of_relevant, of_irrelevant)
        n_pairs = relevant.shape[0] * irrelevant.shape[0]
        losses[q] = n_wrong / n_pairs
        scale = 2.0 / n_pairs
        for g in range(relevant.shape[0]):
            before[starts[q] + g] = int(of_relevant[g])
            of_relevant[g] *= -scale
        for b in range(irrelevant.shape[0]):
            of_irrelevant[b] *= scale
