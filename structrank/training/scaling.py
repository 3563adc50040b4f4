"""Columns of different scale: a risk over scaled columns, and a warning if scaling is missing.

The penalty 1/2 |w|^2 treats all columns alike: a column of small values needs a large weight, which the penalty suppresses.
Rankings depend on differences of documents of one query only, so the scale of a column is its standard deviation within
queries, and nothing needs to be centred for scaling: sparse data stay sparse. Only in columns in which all documents of a query
share a value that is large against their differences, a pass measures them from one of them, because of rounding.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from structrank._kernels.variances import add_variances
from structrank.solvers import Plane
from structrank.training.data import kernel_matrix

# The sample of a shard: this many queries and documents of each, evenly spaced. A column that is 0 except for one document of
# the sample has a standard deviation of 1/46 of its value there: rare words alone do not make columns far apart.
_SAMPLED_QUERIES, _SAMPLED_DOCS = 100, 20
# Ratio of a column's offset to its differences from which documents are measured from another document of their query. The
# rounding errors of a score are then up to 1e-13 of the differences.
_LARGE_OFFSET = 1e3
_ROWS_AT_A_TIME, _ENTRIES_AT_A_TIME = 2**10, 2**19
# Columns whose scales differ by more than this deserve a note.
_FAR_APART = 1e3


class ScaledRisk:
    """The risk over columns that are divided by their scale, R(v / scale): X itself is not changed.

    Parameters
    ----------
    risk : Risk
    scale : (n_features,) array
        Above 0.
    """

    def __init__(self, risk, scale):
        self._risk, self.scale = risk, scale

    def __getattr__(self, name):
        return getattr(self._risk, name)

    def plane(self, v, kind="risk"):
        """Evaluate at v; see `structrank.training.risk.Risk.plane`."""
        plane = self._risk.plane(v / self.scale, kind)
        return Plane(plane.slope / self.scale, plane.offset, plane.value, plane.seconds)

    def of(self, loss):
        """Return the risk of another loss over the same data."""
        return ScaledRisk(self._risk.of(loss), self.scale)


def scale_by_deviation(risk):
    """Return the risk over columns divided by their standard deviation within queries, or by 1 if constant; a pass over X."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.sqrt(risk.variances())
    # Where X is not finite, or its squares are not, the first pass of training raises an error that names the place.
    return ScaledRisk(risk, np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0))


def sample_columns(X, rows, starts):
    """Look at a small sample of the documents of X, and at the first and the last document of each query.

    Parameters
    ----------
    X : numpy array or CSR matrix
    rows : (n_docs,) array
        Row of each document, query after query; empty if that is the order of X.
    starts : (n_queries + 1,) array
        Query q holds the documents ``starts[q]`` to ``starts[q + 1]``.

    Returns
    -------
    variances : (n_features,) array
        Mean within-query variance of each column.
    suspected : (n_features,) array of bool
        Columns that may have large offsets, for `find_large_offsets`.

    Examples
    --------
    >>> sample_columns(np.array([[0.0, 7e6], [2.0, 7e6], [0.0, 8e6]]), np.arange(3), np.array([0, 2, 3]))
    (array([0.5, 0. ]), array([False,  True]))
    """
    variances = np.zeros(X.shape[1])
    n_queries = starts.shape[0] - 1
    if not n_queries:
        return variances, np.zeros(X.shape[1], dtype=bool)
    queries = np.unique(np.linspace(0, n_queries - 1, _SAMPLED_QUERIES).astype(np.int64))
    lasts = np.diff(starts)[queries] - 1
    grid = lasts[:, None] * np.arange(_SAMPLED_DOCS) // (_SAMPLED_DOCS - 1)
    is_new = np.diff(grid, axis=1, prepend=-1) > 0
    sampled, counts = (starts[queries][:, None] + grid)[is_new], is_new.sum(axis=1)
    block = X[rows[sampled] if rows.size else sampled]
    matrix = kernel_matrix(block) or kernel_matrix(np.ascontiguousarray(block, dtype=np.float64))
    add_variances(matrix, np.concatenate([[0], np.cumsum(counts)]), np.full(counts.shape[0], 1.0 / counts.shape[0]), variances)
    # An offset may be that of a few queries, so all are looked at.
    firsts, lasts = (rows[docs] if rows.size else docs for docs in (starts[:-1], starts[1:] - 1))
    return variances, _are_large(_largest_offsets(X, firsts, lasts), variances)


def find_large_offsets(X, rows, starts, variances, suspected):
    """Return the numbers of the columns whose sums over documents would lose the differences within queries to rounding.

    The offset of a column in a query is the least absolute value there, which all documents share. It is large against the
    column's standard deviation within queries or, for a constant column, against that of the other columns.

    Parameters
    ----------
    X, rows, starts
        As for `sample_columns`.
    variances, suspected
        From `sample_columns`. All documents are looked at, in suspected columns only.

    Examples
    --------
    >>> X, queries = np.array([[0.0, 7e6], [2.0, 7e6], [0.0, 8e6]]), (np.arange(3), np.array([0, 2, 3]))
    >>> find_large_offsets(X, *queries, *sample_columns(X, *queries))
    array([1])
    """
    columns, n_queries = np.flatnonzero(suspected), starts.shape[0] - 1
    exact, offsets, low = np.zeros(columns.size), np.zeros(columns.size), 0
    while low < n_queries and columns.size:
        end = starts[low] + max(1, _ENTRIES_AT_A_TIME // columns.size)
        high = max(int(starts.searchsorted(end, side="right")) - 1, low + 1)
        docs = slice(starts[low], starts[high])
        block = X[rows[docs] if rows.size else docs][:, columns]
        block = block.toarray() if scipy.sparse.issparse(block) else block
        block = np.ascontiguousarray(block, dtype=X.dtype if X.dtype == np.float32 else np.float64)
        local = starts[low : high + 1] - starts[low]
        add_variances(kernel_matrix(block), local, np.full(high - low, 1.0 / n_queries), exact)
        np.maximum(offsets, np.minimum.reduceat(abs(block), local[:-1]).max(axis=0), out=offsets)
        low = high
    found, variances = np.zeros(X.shape[1]), variances.copy()
    found[columns], variances[columns] = offsets, exact
    return np.flatnonzero(_are_large(found, variances))


def _are_large(offsets, variances):
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(variances)
        return offsets > _LARGE_OFFSET * np.where(deviations > 0.0, deviations, deviations.max())


def _largest_offsets(X, firsts, lasts):
    """Return the largest offset of each column, of queries with only these documents; a few rows at a time are copied."""
    largest = np.zeros(X.shape[1])
    for start in range(0, firsts.shape[0], _ROWS_AT_A_TIME):
        one, other = (abs(X[rows[start : start + _ROWS_AT_A_TIME]]) for rows in (firsts, lasts))
        if scipy.sparse.issparse(X):
            found = one.minimum(other).max(axis=0).toarray().ravel()
        else:
            found = np.minimum(one, other).max(axis=0)
        np.maximum(largest, found, out=largest)
    return largest


def column_ratio(deviations):
    """Return the largest standard deviation over the smallest, of the columns that vary; 1 if fewer than two do.

    Examples
    --------
    >>> column_ratio(np.array([2.0, 0.0, 0.5, np.nan]))
    4.0
    """
    varying = deviations[np.isfinite(deviations) & (deviations > 0.0)]
    with np.errstate(over="ignore"):
        return float(varying.max() / varying.min()) if varying.size else 1.0


def scale_problems(deviations, names=None):
    """Return texts on what is wrong and what to try; an empty list if the scales of the columns are close enough.

    Parameters
    ----------
    deviations : (n_features,) array
        Standard deviation of each column within queries.
    names : sequence of str, default None
        Names of the columns; None uses their numbers.

    Examples
    --------
    >>> scale_problems(np.array([1.0, 20.0]))
    []
    """
    ratio = column_ratio(deviations)
    if ratio <= _FAR_APART:
        return []
    varying = np.isfinite(deviations) & (deviations > 0.0)
    smallest, largest = np.where(varying, deviations, np.inf).argmin(), np.where(varying, deviations, 0.0).argmax()
    shown = [number if names is None else repr(str(names[number])) for number in (largest, smallest)]
    return [
        f"columns of X differ in scale by a factor of {ratio:.0e}. Within queries, column {shown[0]} has a standard deviation "
        f"of {deviations[largest]:.1e}, column {shown[1]} of {deviations[smallest]:.1e}; the penalty on |w| suppresses columns "
        "of small scale. Set scale='std', or scale the features first."
    ]
