"""Scores ``X @ w`` and slopes ``X.T @ c`` over rows of a dense or CSR matrix.

A matrix is handed on as a tuple: ``(X,)``, or ``(data, indices, indptr)`` of CSR. Sums are accumulated in float64 whatever the
type of X.
"""

import numpy as np
from numba import njit
from numba.extending import overload

from structrank._kernels import REORDER


@njit(cache=True, nogil=True, fastmath=REORDER)
def _dense_scores(X, rows, first, w, out):
    """Write ``X[rows] @ w`` to `out`; without `rows`, those from `first` on."""
    n_features = X.shape[1]
    for i in range(out.shape[0]):
        x = X[rows[i]] if rows.shape[0] else X[first + i]
        total = 0.0
        for j in range(n_features):
            total += x[j] * w[j]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=REORDER)
def _dense_slope(X, rows, first, coefficients, chosen, out):
    """Add to `out` the sum of ``coefficients[i] * X[rows[i]]``; `chosen` is room for the numbers of the rows that count."""
    n_features = X.shape[1]
    n = 0
    for i in range(coefficients.shape[0]):
        chosen[n] = i
        n += coefficients[i] != 0.0
    # Four rows at a time: the sum is loaded and stored a quarter as often.
    whole = n - n % 4
    for m in range(0, whole, 4):
        i0, i1, i2, i3 = chosen[m], chosen[m + 1], chosen[m + 2], chosen[m + 3]
        c0, c1, c2, c3 = coefficients[i0], coefficients[i1], coefficients[i2], coefficients[i3]
        if rows.shape[0]:
            x0, x1, x2, x3 = X[rows[i0]], X[rows[i1]], X[rows[i2]], X[rows[i3]]
        else:
            x0, x1, x2, x3 = X[first + i0], X[first + i1], X[first + i2], X[first + i3]
        for j in range(n_features):
            out[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
    for m in range(whole, n):
        i = chosen[m]
        c = coefficients[i]
        x = X[rows[i]] if rows.shape[0] else X[first + i]
        for j in range(n_features):
            out[j] += c * x[j]


# Of the sparse rows: a view of each, and columns that cannot be below 0, save checks at every stored entry.
@njit(cache=True, nogil=True, fastmath=REORDER)
def _sparse_scores(data, indices, indptr, rows, first, w, out):
    for i in range(out.shape[0]):
        row = rows[i] if rows.shape[0] else first + i
        values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        total = 0.0
        for j in range(values.shape[0]):
            total += values[j] * w[np.uintp(columns[j])]
        out[i] = total


@njit(cache=True, nogil=True, fastmath=REORDER)
def _sparse_slope(data, indices, indptr, rows, first, coefficients, out):
    for i in range(coefficients.shape[0]):
        coefficient = coefficients[i]
        if coefficient != 0.0:
            row = rows[i] if rows.shape[0] else first + i
            values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
            for j in range(values.shape[0]):
                out[np.uintp(columns[j])] += coefficient * values[j]


def _scores(matrix, rows, first, w, out):
    raise NotImplementedError  # for the types that `_choose_scores` knows, in compiled code


def _slope(matrix, rows, first, coefficients, chosen, out):
    raise NotImplementedError


@overload(_scores)
def _choose_scores(matrix, rows, first, w, out):
    if len(matrix) == 1:
        return lambda matrix, rows, first, w, out: _dense_scores(matrix[0], rows, first, w, out)
    return lambda matrix, rows, first, w, out: _sparse_scores(
        matrix[0], matrix[1], matrix[2], rows, first, w, out
    )


@overload(_slope)
def _choose_slope(matrix, rows, first, coefficients, chosen, out):
    if len(matrix) == 1:
        return lambda matrix, rows, first, coefficients, chosen, out: _dense_slope(
            matrix[0], rows, first, coefficients, chosen, out
        )
    return lambda matrix, rows, first, coefficients, chosen, out: _sparse_slope(
        matrix[0], matrix[1], matrix[2], rows, first, coefficients, out
    )


@njit(cache=True, nogil=True)
def scores(matrix, rows, first, w, out):
    """Write the scores of ``out.shape[0]`` rows to `out`: of `rows`, or where that is empty of those from `first` on."""
    _scores(matrix, rows, first, w, out)


@njit(cache=True, nogil=True)
def add_slopes(matrix, rows, first, coefficients, starts, slots, chosen, out):
    """Add to ``out[slots[q]]`` the sum of coefficient times row over the documents of each query q.

    Parameters
    ----------
    matrix, rows, first
        As for `scores`.
    coefficients : (n_docs,) array
        Slopes skip documents of coefficient 0.
    starts : (n_queries + 1,) array
    slots : (n_queries,) array
    chosen : (n_docs,) array of int
        Room to work in.
    out : (n_slots, n_features) array
    """
    for q in range(slots.shape[0]):
        start, stop = starts[q], starts[q + 1]
        some_rows = rows[start:stop] if rows.shape[0] else rows
        _slope(matrix, some_rows, first + start, coefficients[start:stop], chosen, out[slots[q]])


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
