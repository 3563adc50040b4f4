"""From an interleaving to one coefficient per document: phi(y) - phi(y*) = sum_i coefficient_i x_i.

The arguments `scores`, `starts`, `n_good` and `before` are those of `structrank._kernels.interleavings`; coefficients
stand in the same sorted order.
"""

import numpy as np

from structrank._compile import REORDER, kernel


@kernel
def partial_order(starts, n_good, before, coefficients):
    """Weigh each wrong pair of a good and a bad document by 2 / (n+ n-)."""
    for q in range(n_good.shape[0]):
        n_bad = starts[q + 1] - starts[q] - n_good[q]
        scale = 2.0 / (n_good[q] * n_bad)
        first_bad = starts[q] + n_good[q]
        good, of_good = before[starts[q] : first_bad], coefficients[starts[q] : first_bad]
        passed, of_bad = before[first_bad : starts[q + 1]], coefficients[first_bad : starts[q + 1]]
        # How many good documents have been passed: where the last of them stands, and from there on.
        for b in range(n_bad):
            passed[b] = 0
        for g in range(n_good[q]):
            of_good[g] = -scale * good[g]
            if good[g] < n_bad:
                passed[np.uintp(good[g])] = g + 1
        for b in range(1, n_bad):
            passed[b] = max(passed[b - 1], passed[b])
        for b in range(n_bad):
            of_bad[b] = scale * (n_good[q] - passed[b])


@kernel
def first_relevant(starts, n_good, before, coefficients):
    """Weigh the pairs of the first good document, the one of lowest score, and the bad ones before it by 1."""
    for q in range(n_good.shape[0]):
        first_bad = starts[q] + n_good[q]
        ahead = before[starts[q]]
        for i in range(starts[q], first_bad):
            coefficients[i] = 0.0
        coefficients[first_bad - 1] = -ahead
        for i in range(first_bad, starts[q + 1]):
            coefficients[i] = 1.0 if i - first_bad < ahead else 0.0


@kernel
def permutation(starts, n_good, before, decay, decay_sums, coefficients):
    """Weigh each document by A(its rank) less the mean of A over the ideal ranks of its kind."""
    for q in range(n_good.shape[0]):
        good, n_docs = n_good[q], starts[q + 1] - starts[q]
        good_mean = decay_sums[good] / good
        bad_mean = (decay_sums[n_docs] - decay_sums[good]) / (n_docs - good)
        g = 0
        for b in range(n_docs - good):
            while g < good and before[starts[q] + g] <= b:
                coefficients[starts[q] + g] = decay[g + before[starts[q] + g]] - good_mean
                g += 1
            coefficients[starts[q] + good + b] = decay[g + b] - bad_mean
        while g < good:
            coefficients[starts[q] + g] = decay[g + before[starts[q] + g]] - good_mean
            g += 1


@kernel
def share_ties(scores, starts, n_first, coefficients):
    """Give documents of equal score (within each part of a query) the mean of their coefficients.

    Any order of tied documents is as violated as any other, so their mean is a valid plane too, and it does not depend on
    the order of the rows.
    """
    for q in range(n_first.shape[0]):
        some = scores[starts[q] : starts[q + 1]]
        n_tied = 0
        for i in range(some.shape[0] - 1):
            n_tied += some[i] == some[i + 1]
        if n_tied == 0:
            continue
        for part in range(2):
            start = starts[q] if part == 0 else starts[q] + n_first[q]
            stop = starts[q] + n_first[q] if part == 0 else starts[q + 1]
            while start < stop:
                end = start + 1
                total = coefficients[start]
                while end < stop and scores[end] == scores[start]:
                    total += coefficients[end]
                    end += 1
                if end - start > 1:
                    for i in range(start, end):
                        coefficients[i] = total / (end - start)
                start = end


@kernel(fastmath=REORDER)
def values(scores, starts, coefficients, losses, out):
    """Compute w.(phi(y) - phi(y*)) + loss of each query; never negative, as y* itself has 0."""
    for q in range(losses.shape[0]):
        some, weights = scores[starts[q] : starts[q + 1]], coefficients[starts[q] : starts[q + 1]]
        total = losses[q]
        for i in range(some.shape[0]):
            total += weights[i] * some[i]
        out[q] = max(total, 0.0)
