"""Scores ``X @ w`` and slopes ``X.T @ c`` over rows of a dense or CSR matrix.

A matrix is passed as four arguments: ``X, None, base, rows``, or ``None, (data, indices, indptr), base, rows`` for CSR. numba
leaves out the branch of an argument that is None. Document i is row ``rows[i]``, or ``i - base`` if `rows` is empty. Sums are
accumulated in float64 whatever the type of X.

Columns whose values are large against their differences within queries are *centred*: sums over them would lose the differences
to rounding, and rankings depend on differences within queries only. `centre` extracts such columns, measured from the first
document of each query, `scores` gets a w that is 0 for them, and their parts of the scores and of the slope are added.

Slices take long to compile: functions take whole arrays and the position from which to read.
"""

import numpy as np

from structrank._support.compile import kernel
from structrank._support.lanes import dot


@kernel(inner=True)
def _dense_scores(X, base, rows, first, w, out):
    # Row by row, for sequential access: this is where X is read from memory.
    for i in range(out.shape[0]):
        out[i] = dot(X[np.uintp(rows[first + i] if rows.shape[0] else first + i - base)], w)


@kernel(inner=True)
def _dense_slope(X, base, rows, first, coefficients, start, stop, numbers, factors, out):
    """Add the sum of the rows of the documents from `start` to `stop`, times their coefficients, to `out`."""
    n = 0
    for i in range(start, stop):
        numbers[n] = rows[first + i] if rows.shape[0] else first + i - base
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
@kernel(inner=True)
def _sparse_scores(csr, base, rows, first, w, out):
    data, indices, indptr = csr
    for i in range(out.shape[0]):
        row = rows[first + i] if rows.shape[0] else first + i - base
        values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        n = values.shape[0]
        a = b = c = d = 0.0  # additions of one sum would wait for each other
        for j in range(0, n - 3, 4):
            a += values[j] * w[np.uintp(columns[j])]
            b += values[j + 1] * w[np.uintp(columns[j + 1])]
            c += values[j + 2] * w[np.uintp(columns[j + 2])]
            d += values[j + 3] * w[np.uintp(columns[j + 3])]
        for j in range(n - n % 4, n):
            a += values[j] * w[np.uintp(columns[j])]
        out[i] = (a + b) + (c + d)


@kernel(inner=True)
def _sparse_slope(csr, base, rows, first, coefficients, start, stop, out):
    data, indices, indptr = csr
    for i in range(start, stop):
        coefficient = coefficients[i]
        if coefficient != 0.0:
            row = rows[first + i] if rows.shape[0] else first + i - base
            values, columns = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
            for j in range(values.shape[0]):
                out[np.uintp(columns[j])] += coefficient * values[j]


@kernel(inner=True)
def _dense_centre(X, base, rows, first, starts, columns, out):
    for q in range(starts.shape[0] - 1):
        doc = first + starts[q]
        origin = X[np.uintp(rows[doc] if rows.shape[0] else doc - base)]
        for i in range(starts[q], starts[q + 1]):
            x = X[np.uintp(rows[first + i] if rows.shape[0] else first + i - base)]
            for n in range(columns.shape[0]):
                j = np.uintp(columns[n])
                out[i, n] = np.float64(x[j]) - np.float64(origin[j])


@kernel(inner=True)
def _sparse_centre(csr, base, rows, first, starts, places, out):
    data, indices, indptr = csr
    for q in range(starts.shape[0] - 1):
        for i in range(starts[q], starts[q + 1]):
            for n in range(out.shape[1]):
                out[i, n] = 0.0
            row = rows[first + i] if rows.shape[0] else first + i - base
            for entry in range(indptr[row], indptr[row + 1]):
                n = places[np.uintp(indices[entry])]
                if n >= 0:
                    out[i, n] += data[entry]
        for i in range(starts[q + 1] - 1, starts[q] - 1, -1):
            for n in range(out.shape[1]):
                out[i, n] -= out[starts[q], n]


@kernel
def centre(X, csr, base, rows, first, starts, columns, places, out):
    """Write the centred columns of a block of queries to `out`.

    Parameters
    ----------
    X, csr, base, rows
        See above.
    first : int
        Number of the first document of the block.
    starts : (n_queries + 1,) array
        Start of each query within the block.
    columns : (n_centred,) array of int
    places : (n_features,) array of int
        Place of each column in `columns`, -1 for others.
    out : (n_docs, n_centred) array
    """
    if X is not None:
        _dense_centre(X, base, rows, first, starts, columns, out)
    if csr is not None:
        _sparse_centre(csr, base, rows, first, starts, places, out)


@kernel
def add_centred_scores(centred, w, out):
    """Add the parts of the centred columns to the scores of a block; `w` holds the weights of these columns."""
    for i in range(out.shape[0]):
        for n in range(w.shape[0]):
            out[i] += centred[i, n] * w[n]


@kernel
def add_centred_slopes(centred, coefficients, starts, slots, first_query, out):
    """Do what `add_slopes` does, for the centred columns; `out` has shape (n_slots, n_centred)."""
    for q in range(starts.shape[0] - 1):
        slot = slots[first_query + q]
        for i in range(starts[q], starts[q + 1]):
            for n in range(out.shape[1]):
                out[slot, n] += coefficients[i] * centred[i, n]


@kernel
def scores(X, csr, base, rows, first, w, out):
    """Write the scores of ``out.shape[0]`` documents, from number `first` on, to `out`."""
    if X is not None:
        _dense_scores(X, base, rows, first, w, out)
    if csr is not None:
        _sparse_scores(csr, base, rows, first, w, out)


def make_workspace(n_docs):
    """Allocate the two workspaces of `add_slopes`, for a block of up to n documents."""
    return np.empty(n_docs + 8, np.int64), np.empty(n_docs + 8)


@kernel
def add_slopes(X, csr, base, rows, first, coefficients, starts, slots, first_query, workspace, out):
    """Add the sum of coefficient times row, over the documents of each query of a block, to the slot of the query.

    Parameters
    ----------
    X, csr, base, rows
        See above.
    first : int
        Number of the first document of the block.
    coefficients : (n_docs,) array or longer
        Of the documents of the block. Documents of coefficient 0 are skipped.
    starts : (n_queries + 1,) array
        Start of each query within the block.
    slots : array
        From `first_query` on, the slot of each query.
    workspace
        From `make_workspace`.
    out : (n_slots, n_features) array
    """
    numbers, factors = workspace
    n_queries = starts.shape[0] - 1
    q = 0
    while q < n_queries:
        # Neighbours with the same slot form one sum, which is faster for short queries.
        start, slot = starts[q], slots[first_query + q]
        while q < n_queries and slots[first_query + q] == slot:
            q += 1
        if X is not None:
            _dense_slope(X, base, rows, first, coefficients, start, starts[q], numbers, factors, out[slot])
        if csr is not None:
            _sparse_slope(csr, base, rows, first, coefficients, start, starts[q], out[slot])
