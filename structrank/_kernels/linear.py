"""Scores ``X @ w`` and slopes ``X.T @ c`` over chosen rows of a dense or CSR matrix.

A pass over the data calls the two on the same block of rows, one after the other, so that the second read of X comes
from cache. Sums are accumulated in float64 whatever the type of X.
"""

import numpy as np
from numba import njit

# A dot product vectorises only if its terms may be added in another order; nan and inf keep their meaning.
_REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_REORDER)
def dense_scores(X, rows, w, out):
    """Write ``X[rows] @ w`` to `out`."""
    n_features = X.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        total = 0.0
        for j in range(n_features):
            total += X[row, j] * w[j]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=_REORDER)
def dense_slopes(X, rows, coefficients, starts, slots, out):
    """Add to ``out[slots[q]]`` the sum of ``coefficients[i] * X[rows[i]]`` over the documents i of query q."""
    n_features = X.shape[1]
    for q in range(slots.shape[0]):
        slope = out[slots[q]]
        for i in range(starts[q], starts[q + 1]):
            coefficient = coefficients[i]
            if coefficient != 0.0:
                row = rows[i]
                for j in range(n_features):
                    slope[j] += coefficient * X[row, j]


@njit(cache=True, nogil=True)
def sparse_scores(data, indices, indptr, rows, w, out):
    """Write ``X[rows] @ w`` to `out` for X in CSR form."""
    for i in range(rows.shape[0]):
        row = rows[i]
        total = 0.0
        for position in range(indptr[row], indptr[row + 1]):
            total += data[position] * w[indices[position]]
        out[i] = total


@njit(cache=True, nogil=True)
def sparse_slopes(data, indices, indptr, rows, coefficients, starts, slots, out):
    """Do what `dense_slopes` does, for X in CSR form."""
    for q in range(slots.shape[0]):
        slope = out[slots[q]]
        for i in range(starts[q], starts[q + 1]):
            coefficient = coefficients[i]
            if coefficient != 0.0:
                row = rows[i]
                for position in range(indptr[row], indptr[row + 1]):
                    slope[indices[position]] += coefficient * data[position]


@njit(cache=True, nogil=True)
def first_not_finite(values):
    """Give the position of the first nan or infinity in a 1-d array, -1 if there is none."""
    # Counting clears a whole block without a branch per value; only a block that fails is searched.
    for start in range(0, values.shape[0], 4096):
        stop = min(start + 4096, values.shape[0])
        finite = 0
        for i in range(start, stop):
            finite += abs(values[i]) < np.inf
        if finite != stop - start:
            for i in range(start, stop):
                if not abs(values[i]) < np.inf:
                    return i
    return -1
