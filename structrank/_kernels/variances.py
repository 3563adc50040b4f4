"""Variances of the columns of a dense or CSR matrix within queries.

A matrix is passed as in `structrank._kernels.linear`. Values are measured from one value of their query, so that
large offsets cost no accuracy; a column that varies by rounding errors only is constant.
"""

import numpy as np

from structrank._support.compile import kernel

# Standard deviations up to this many units in the last place are rounding errors.
_NOISE = 4.0


@kernel(inner=True)
def _variance(square, total, n, origin, eps):
    """Return the variance of n values from sums of their differences to `origin` and of the squares of these; 0 if noise."""
    variance = (square - total * total / n) / n
    return variance if variance > (_NOISE * eps * origin) ** 2 else 0.0


@kernel
def _dense(X, base, rows, starts, shares, eps, total, square, out):
    for q in range(shares.shape[0]):
        n = starts[q + 1] - starts[q]
        total[:] = 0.0
        square[:] = 0.0
        origin = X[rows[starts[q]] if rows.shape[0] else starts[q] - base]
        for doc in range(starts[q] + 1, starts[q + 1]):
            x = X[rows[doc] if rows.shape[0] else doc - base]
            for j in range(X.shape[1]):
                difference = np.float64(x[j]) - np.float64(origin[j])
                total[j] += difference
                square[j] += difference * difference
        for j in range(X.shape[1]):
            out[j] += shares[q] * _variance(square[j], total[j], n, np.float64(origin[j]), eps)


@kernel
def _sparse(data, indices, indptr, base, rows, starts, shares, eps, total, square, origin, stored, columns, out):
    # `columns` are those with a stored value in the query.
    for q in range(shares.shape[0]):
        n = starts[q + 1] - starts[q]
        n_columns = 0
        for doc in range(starts[q], starts[q + 1]):
            row = rows[doc] if rows.shape[0] else doc - base
            for entry in range(indptr[row], indptr[row + 1]):
                j = indices[entry]
                if stored[j] == 0:
                    origin[j], total[j], square[j] = data[entry], 0.0, 0.0
                    columns[n_columns] = j
                    n_columns += 1
                stored[j] += 1
                difference = np.float64(data[entry]) - origin[j]
                total[j] += difference
                square[j] += difference * difference
        for number in range(n_columns):
            j = columns[number]
            zeros = n - stored[j]  # of all other documents
            sum_of_all = total[j] - zeros * origin[j]
            square_of_all = square[j] + zeros * origin[j] * origin[j]
            out[j] += shares[q] * _variance(square_of_all, sum_of_all, n, origin[j], eps)
            stored[j] = 0


def add_variances(matrix, starts, shares, out):
    """Add to ``out[j]`` the variance of column j within each query, times the share of the query.

    Parameters
    ----------
    matrix : tuple
        X, csr, base and rows, see `structrank._kernels.linear`.
    starts : (n_queries + 1,) array
        Query q holds the documents ``starts[q]`` to ``starts[q + 1]``.
    shares : (n_queries,) array
    out : (n_features,) array
    """
    X, csr, base, rows = matrix
    n, eps = out.shape[0], float(np.finfo((csr[0] if X is None else X).dtype).eps)
    # Compiled allocations would take longer to compile.
    sums = np.empty(n), np.empty(n)
    if csr is None:
        _dense(X, base, rows, starts, shares, eps, *sums, out)
    else:
        of_columns = np.empty(n), np.zeros(n, np.int64), np.empty(n, np.int64)
        _sparse(*csr, base, rows, starts, shares, eps, *sums, *of_columns, out)
