"""Scores ``X @ w`` and slopes ``X.T @ c`` over rows of a dense or CSR matrix.

A matrix is passed as a tuple: ``(X,)``, or ``(data, indices, indptr)`` of CSR. Sums are accumulated in float64 whatever the
type of X.
"""

import numpy as np
from numba.extending import overload

from structrank._support.compile import REORDER, kernel


@kernel(fastmath=REORDER)
def _dense_scores(X, rows, first, w, out):
    """Write ``X[rows] @ w`` to `out`; without `rows`, those from `first` on."""
    # Row by row, for sequential access: this is where X is read from memory.
    for i in range(out.shape[0]):
        x = X[np.uintp(rows[i] if rows.shape[0] else first + i)]
        total = 0.0
        for j in range(X.shape[1]):
            total += x[j] * w[j]
        out[i] = total


@kernel(inner=True, fastmath=REORDER)
def _dense_slope(X, rows, first, coefficients, numbers, factors, out):
    """Add to `out` the sum of ``coefficients[i] * X[rows[i]]``; `numbers` and `factors` are workspaces."""
    n = 0
    for i in range(coefficients.shape[0]):
        numbers[n] = rows[i] if rows.shape[0] else first + i
        factors[n] = coefficients[i]
        n += coefficients[i] != 0.0
    # Eight rows at a time: the sum is loaded and stored an eighth as often.
    for m in range(n, n + -n % 8):
        numbers[m], factors[m] = numbers[0], 0.0
    for m in range(0, n, 8):
        r, c = numbers[m : m + 8], factors[m : m + 8]
        c0, c1, c2, c3, c4, c5, c6, c7 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        x0, x1, x2, x3 = X[np.uintp(r[0])], X[np.uintp(r[1])], X[np.uintp(r[2])], X[np.uintp(r[3])]
        x4, x5, x6, x7 = X[np.uintp(r[4])], X[np.uintp(r[5])], X[np.uintp(r[6])], X[np.uintp(r[7])]
        for j in range(X.shape[1]):
            first_four = (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
            last_four = (c4 * x4[j] + c5 * x5[j]) + (c6 * x6[j] + c7 * x7[j])
            out[j] += first_four + last_four


# Views of the sparse rows and unsigned columns save bounds checks at every stored entry.
@kernel(fastmath=REORDER)
def _sparse_scores(data, indices, indptr, rows, first, w, out):
    for i in range(out.shape[0]):
        row = rows[i] if rows.shape[0] else first + i
        values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        total = 0.0
        for j in range(values.shape[0]):
            total += values[j] * w[np.uintp(columns[j])]
        out[i] = total


@kernel(inner=True, fastmath=REORDER)
def _sparse_slope(data, indices, indptr, rows, first, coefficients, out):
    for i in range(coefficients.shape[0]):
        coefficient = coefficients[i]
        if coefficient != 0.0:
            row = rows[i] if rows.shape[0] else first + i
            values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
            for j in range(values.shape[0]):
                out[np.uintp(columns[j])] += coefficient * values[j]


def scores(matrix, rows, first, w, out):
    """Write the scores of ``out.shape[0]`` rows to `out`: those in `rows`, or from `first` on if `rows` is empty."""
    write = _dense_scores if len(matrix) == 1 else _sparse_scores
    write(*matrix, rows, first, w, out)


@overload(scores, inline="always")
def _choose_scores(matrix, rows, first, w, out):
    if len(matrix) == 1:
        return lambda matrix, rows, first, w, out: _dense_scores(matrix[0], rows, first, w, out)
    return lambda matrix, rows, first, w, out: _sparse_scores(matrix[0], matrix[1], matrix[2], rows, first, w, out)


def _slope(matrix, rows, first, coefficients, numbers, factors, out):
    raise NotImplementedError  # overloaded by `_choose_slope` in compiled code


@overload(_slope, inline="always")
def _choose_slope(matrix, rows, first, coefficients, numbers, factors, out):
    if len(matrix) == 1:
        return lambda matrix, rows, first, coefficients, numbers, factors, out: _dense_slope(
            matrix[0], rows, first, coefficients, numbers, factors, out
        )
    return lambda matrix, rows, first, coefficients, numbers, factors, out: _sparse_slope(
        matrix[0], matrix[1], matrix[2], rows, first, coefficients, out
    )


@kernel
def add_slopes(matrix, rows, first, coefficients, starts, slots, out):
    """Add to ``out[slots[q]]`` the sum of coefficient times row over the documents of each query q.

    Parameters
    ----------
    matrix, rows, first
        As for `scores`.
    coefficients : (n_docs,) array
        Slopes skip documents of coefficient 0.
    starts : (n_queries + 1,) array
    slots : (n_queries,) array
    out : (n_slots, n_features) array
    """
    n = coefficients.shape[0]
    numbers, factors = np.empty(n + 8, np.int64), np.empty(n + 8)
    q = 0
    while q < slots.shape[0]:
        # Neighbours with the same slot form one sum, which is faster for short queries.
        first_query = q
        while q < slots.shape[0] and slots[q] == slots[first_query]:
            q += 1
        start, stop = starts[first_query], starts[q]
        some_rows = rows[start:stop] if rows.shape[0] else rows
        _slope(matrix, some_rows, first + start, coefficients[start:stop], numbers, factors, out[slots[first_query]])


@kernel(inner=True, fastmath=REORDER)
def _sum_of_zeros(values, zero):
    """Return the sum of 0 times each value: 0, or nan if a value is not finite."""
    total = zero
    for i in range(values.shape[0]):
        total += zero * values[i]
    return total


@kernel
def first_not_finite(values):
    """Return the position of the first nan or infinity in a 1-d array, -1 if there is none."""
    # A sum checks a whole block without a branch per value; only a block that fails is searched.
    zero = values.dtype.type(0)
    for start in range(0, values.shape[0], 4096):
        block = values[start : start + 4096]
        if np.isnan(_sum_of_zeros(block, zero)):
            for i in range(block.shape[0]):
                if not abs(block[i]) < np.inf:
                    return start + i
    return -1
