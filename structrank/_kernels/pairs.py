"""AUC over good and bad documents: every pair is right or wrong by itself, if its scores are at least 1/2 apart or not.

With few good (or few bad) documents it takes less time to look at all pairs than to sort the good ones. The arguments are those
of `structrank._kernels.interleavings`, but that bad documents need not be sorted.
"""

import numpy as np

from structrank._compile import REORDER, kernel

# To search for a document's place among those of the other kind takes about as long as looking at this many pairs of it.
_PAIRS_PER_DOCUMENT = 40


@kernel
def are_few(n_good, n_bad):
    """Say whether all pairs of a query are to be looked at."""
    return n_good * n_bad <= _PAIRS_PER_DOCUMENT * (n_good + n_bad)


@kernel(fastmath=REORDER)
def _count(good, bad, of_good, of_bad):
    """Count the wrong pairs of each document; gives their number."""
    total = 0.0
    of_bad[:] = 0.0
    # Four good documents at a time: the bad ones are loaded a quarter as often.
    whole = good.shape[0] - good.shape[0] % 4
    for g in range(0, whole, 4):
        s0, s1, s2, s3 = good[g], good[g + 1], good[g + 2], good[g + 3]
        n0 = n1 = n2 = n3 = 0.0
        for b in range(bad.shape[0]):
            wrong0 = 1.0 if s0 - bad[b] < 0.5 else 0.0
            wrong1 = 1.0 if s1 - bad[b] < 0.5 else 0.0
            wrong2 = 1.0 if s2 - bad[b] < 0.5 else 0.0
            wrong3 = 1.0 if s3 - bad[b] < 0.5 else 0.0
            n0 += wrong0
            n1 += wrong1
            n2 += wrong2
            n3 += wrong3
            of_bad[b] += (wrong0 + wrong1) + (wrong2 + wrong3)
        of_good[g], of_good[g + 1], of_good[g + 2], of_good[g + 3] = n0, n1, n2, n3
        total += (n0 + n1) + (n2 + n3)
    for g in range(whole, good.shape[0]):
        n = 0.0
        for b in range(bad.shape[0]):
            wrong = 1.0 if good[g] - bad[b] < 0.5 else 0.0
            n += wrong
            of_bad[b] += wrong
        of_good[g] = n
        total += n
    return total


@kernel
def _search(good, bad, first, of_good, of_bad):
    """Do what `_count` does with good documents that are sorted: beside each bad one, it is the last of them that are wrong.

    The first of these is searched for by halves, for all bad documents side by side, without a branch. `first` is room for
    each document.
    """
    n_good, n_bad = good.shape[0], bad.shape[0]
    places = first[n_good:]
    for b in range(n_bad):
        places[b] = 0
    length = n_good
    while length > 1:
        half = length // 2
        for b in range(n_bad):
            places[b] += half * np.int64(good[np.uintp(places[b] + half - 1)] - bad[b] >= 0.5)
        length -= half
    for b in range(n_bad):
        places[b] += np.int64(good[np.uintp(places[b])] - bad[b] >= 0.5)
        of_bad[b] = n_good - places[b]
    # How many bad documents have each place; the last, behind all good ones, is counted where that of the first stood.
    place = places[0]
    for g in range(n_good + 1):
        first[g] = 0
    first[place] = 1
    for b in range(1, n_bad):
        first[np.uintp(places[b])] += 1
    total, n = 0, 0
    for g in range(n_good):
        n += first[g]
        of_good[g] = n
        total += n
    return total


@kernel
def auc(scores, starts, n_good, before, coefficients, losses):
    """Find the most violated interleaving for AUC, with its coefficients in the partial-order map.

    Queries with few pairs need not be sorted.
    """
    for q in range(n_good.shape[0]):
        first_bad = starts[q] + n_good[q]
        good, bad = scores[starts[q] : first_bad], scores[first_bad : starts[q + 1]]
        of_good, of_bad = coefficients[starts[q] : first_bad], coefficients[first_bad : starts[q + 1]]
        if are_few(good.shape[0], bad.shape[0]):
            n_wrong = _count(good, bad, of_good, of_bad)
        else:
            n_wrong = _search(good, bad, before[starts[q] : starts[q + 1]], of_good, of_bad)
        n_pairs = good.shape[0] * bad.shape[0]
        losses[q] = n_wrong / n_pairs
        scale = 2.0 / n_pairs
        for g in range(good.shape[0]):
            before[starts[q] + g] = int(of_good[g])
            of_good[g] *= -scale
        for b in range(bad.shape[0]):
            of_bad[b] *= scale
