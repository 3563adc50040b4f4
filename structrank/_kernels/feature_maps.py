"""From an interleaving to one coefficient per document: phi(y) - phi(y*) = sum_i coefficient_i x_i.

The arguments `scores`, `starts`, `n_good` and `before` are those of `structrank._kernels.interleavings`; coefficients
stand in the same sorted order.
"""

from numba import njit

from structrank._kernels import REORDER


@njit(cache=True, nogil=True)
def partial_order(starts, n_good, before, coefficients):
    """Weigh each wrong pair of a good and a bad document by 2 / (n+ n-)."""
    for q in range(n_good.shape[0]):
        first_bad = starts[q] + n_good[q]
        scale = 2.0 / (n_good[q] * (starts[q + 1] - first_bad))
        after = n_good[q]  # good documents behind the bad one in hand
        g = starts[q]
        for i in range(first_bad, starts[q + 1]):
            while g < first_bad and before[g] <= i - first_bad:
                coefficients[g] = -scale * before[g]
                g += 1
                after -= 1
            coefficients[i] = scale * after
        while g < first_bad:
            coefficients[g] = -scale * before[g]
            g += 1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def share_ties(scores, starts, n_first, coefficients):
    """Give documents of equal score (within each part of a query) the mean of their coefficients.

    Any order of tied documents is as violated as any other, so their mean is a valid plane too, and it does not depend on
    the order of the rows.
    """
    for q in range(n_first.shape[0]):
        tied = False
        for i in range(starts[q] + 1, starts[q + 1]):
            tied |= scores[i - 1] == scores[i]
        if not tied:
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


@njit(cache=True, nogil=True, fastmath=REORDER)
def values(scores, starts, coefficients, losses, out):
    """Compute w.(phi(y) - phi(y*)) + loss of each query; never negative, as y* itself has 0."""
    for q in range(losses.shape[0]):
        total = losses[q]
        for i in range(starts[q], starts[q + 1]):
            total += coefficients[i] * scores[i]
        out[q] = max(total, 0.0)
