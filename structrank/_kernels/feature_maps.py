"""Coefficients of an interleaving, one per document: phi(y) - phi(y*) = sum_i coefficient_i x_i.

The argument is a block of queries, see `structrank._kernels.oracles`; coefficients are in the sorted order of its documents.
"""

import numpy as np

from structrank._support.compile import kernel
from structrank._support.lanes import dot

PARTIAL_ORDER, FIRST_RELEVANT, PERMUTATION = range(3)


@kernel(by_address=True)
def partial_order(block):
    """Weight each wrong pair of a relevant and an irrelevant document by 2 / (n+ n-)."""
    starts, n_relevant, before, coefficients = block.starts, block.n_relevant, block.before, block.coefficients
    for q in range(n_relevant.shape[0]):
        n_irrelevant = starts[q + 1] - starts[q] - n_relevant[q]
        scale = 2.0 / (n_relevant[q] * n_irrelevant)
        first_irrelevant = starts[q] + n_relevant[q]
        relevant, of_relevant = before[starts[q] : first_irrelevant], coefficients[starts[q] : first_irrelevant]
        passed, of_irrelevant = before[first_irrelevant : starts[q + 1]], coefficients[first_irrelevant : starts[q + 1]]
        # Number of relevant documents before each irrelevant one: set after the last of them, then propagated.
        for b in range(n_irrelevant):
            passed[b] = 0
        for g in range(n_relevant[q]):
            of_relevant[g] = -scale * relevant[g]
            if relevant[g] < n_irrelevant:
                passed[np.uintp(relevant[g])] = g + 1
        for b in range(1, n_irrelevant):
            passed[b] = max(passed[b - 1], passed[b])
        for b in range(n_irrelevant):
            of_irrelevant[b] = scale * (n_relevant[q] - passed[b])


@kernel(by_address=True)
def first_relevant(block):
    """Weight the pairs of the first relevant document, that of lowest score, and the irrelevant ones before it by 1."""
    starts, n_relevant, before, coefficients = block.starts, block.n_relevant, block.before, block.coefficients
    for q in range(n_relevant.shape[0]):
        first_irrelevant = starts[q] + n_relevant[q]
        ahead = before[starts[q]]
        for i in range(starts[q], first_irrelevant):
            coefficients[i] = 0.0
        coefficients[first_irrelevant - 1] = -ahead
        for i in range(first_irrelevant, starts[q + 1]):
            coefficients[i] = 1.0 if i - first_irrelevant < ahead else 0.0


@kernel(by_address=True)
def permutation(block):
    """Weight each document by A(rank) minus the mean of A over the ideal ranks of its relevance."""
    starts, n_relevant, before, coefficients = block.starts, block.n_relevant, block.before, block.coefficients
    decay, decay_sums = block.table[2], block.table[3]
    for q in range(n_relevant.shape[0]):
        n_first, n_docs = n_relevant[q], starts[q + 1] - starts[q]
        relevant_mean = decay_sums[n_first] / n_first
        irrelevant_mean = (decay_sums[n_docs] - decay_sums[n_first]) / (n_docs - n_first)
        g = 0
        for b in range(n_docs - n_first):
            while g < n_first and before[starts[q] + g] <= b:
                coefficients[starts[q] + g] = decay[g + before[starts[q] + g]] - relevant_mean
                g += 1
            coefficients[starts[q] + n_first + b] = decay[g + b] - irrelevant_mean
        while g < n_first:
            coefficients[starts[q] + g] = decay[g + before[starts[q] + g]] - relevant_mean
            g += 1


@kernel(by_address=True)
def share_ties(block):
    """Replace the coefficients of tied documents (within each part of a query) by their mean.

    All orders of tied documents are equally violated, so their mean is also a valid plane, and it does not depend on the
    order of the rows.
    """
    scores, starts, n_first, coefficients = block.scores, block.starts, block.n_relevant, block.coefficients
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


@kernel(by_address=True)
def values(block):
    """Compute w.(phi(y) - phi(y*)) + loss (none for predictions) of each query; never negative, as y* itself has 0."""
    scores, starts, coefficients, losses = block.scores, block.starts, block.coefficients, block.losses
    for q in range(starts.shape[0] - 1):
        some, weights = scores[starts[q] : starts[q + 1]], coefficients[starts[q] : starts[q + 1]]
        block.values[q] = max((0.0 if block.settings[2] else losses[q]) + dot(weights, some), 0.0)
