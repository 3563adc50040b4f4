"""Columns of different scale: a risk over scaled columns, and a warning if scaling is missing.

The penalty 1/2 |w|^2 treats all columns alike: a column of small values needs a large weight, which the penalty suppresses.
Rankings depend on differences of documents of one query only, so the scale of a column is its standard deviation within
queries, and nothing needs to be centred for scaling: sparse data stay sparse. Only where values are large against their
differences, a pass measures them from one document of their query, because of rounding.
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
# Ratio of a column's values to its differences from which documents are measured from another document of their query. The
# rounding errors of a score are then up to 1e-13 of the differences; a pass over such data takes up to twice the time.
_LARGE_OFFSET = 1e3
_ROWS_AT_A_TIME = 2**10
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
    """Look at a small sample of the documents of X, and at the first document of each query.

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
    offset : (n_features,) array of bool
        Columns with values that are large against their differences within queries (for a constant column, against those of
        the other columns): sums over their values would lose these differences to rounding.

    Examples
    --------
    >>> variances, offset = sample_columns(np.array([[0.0, 7e6], [2.0, 7e6], [0.0, 8e6]]), np.arange(3), np.array([0, 2, 3]))
    >>> variances, offset
    (array([0.5, 0. ]), array([False,  True]))
    """
    out = np.zeros(X.shape[1])
    n_queries = starts.shape[0] - 1
    if not n_queries:
        return out, np.zeros(X.shape[1], dtype=bool)
    queries = np.unique(np.linspace(0, n_queries - 1, _SAMPLED_QUERIES).astype(np.int64))
    docs = [
        np.unique(np.linspace(first, last, _SAMPLED_DOCS).astype(np.int64))
        for first, last in zip(starts[queries], starts[queries + 1] - 1, strict=True)
    ]
    sampled = np.concatenate(docs)
    block = X[rows[sampled] if rows.size else sampled]
    matrix = kernel_matrix(block) or kernel_matrix(np.ascontiguousarray(block, dtype=np.float64))
    bounds = np.concatenate([[0], np.cumsum([some.shape[0] for some in docs])])
    add_variances(matrix, bounds, np.full(len(docs), 1.0 / len(docs)), out)
    # An offset may be that of a few queries, so all are looked at.
    firsts = rows[starts[:-1]] if rows.size else starts[:-1]
    largest = np.maximum(_largest(block), _largest(X, firsts))
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(out)
        return out, largest > _LARGE_OFFSET * np.where(deviations > 0.0, deviations, deviations.max())


def _largest(X, rows=None):
    """Return the largest absolute value of each column, in some rows; a few rows at a time are copied."""
    largest = np.zeros(X.shape[1])
    for start in range(0, X.shape[0] if rows is None else rows.shape[0], _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        found = abs(X[part if rows is None else rows[part]]).max(axis=0)
        np.maximum(largest, found.toarray().ravel() if scipy.sparse.issparse(found) else found, out=largest)
    return largest


def centre_queries(block, starts, columns):
    """Return a copy of rows in float64, measured from one document of each query.

    Rankings depend on differences within queries only, and differences to a value of similar size are exact. In a CSR matrix
    that is at most a quarter full, only the given columns are centred, in queries in which all documents have a stored value.

    Parameters
    ----------
    block : numpy array or CSR matrix
    starts : (n_queries + 1,) array
    columns : (n_features,) array of bool

    Examples
    --------
    >>> centre_queries(np.array([[1e6], [1e6 + 2], [5.0]]), np.array([0, 2, 3]), np.array([True])).ravel()
    array([0., 2., 0.])
    """
    sizes = np.diff(starts)
    if scipy.sparse.issparse(block) and 4 * block.nnz > block.shape[0] * block.shape[1]:  # faster, and not much larger
        block = block.toarray()
    if not scipy.sparse.issparse(block):
        block = np.array(block, dtype=np.float64, order="C")
        with np.errstate(invalid="ignore"):  # infinite values are reported by the pass
            block -= np.repeat(block[starts[:-1]], sizes, axis=0)
        return block
    block = scipy.sparse.csr_matrix(block, dtype=np.float64, copy=True)
    block.sum_duplicates()
    entries = np.flatnonzero(columns[block.indices])
    query = np.repeat(np.arange(sizes.shape[0]), np.diff(block.indptr[starts]))[entries]
    n_columns = int(columns.sum())
    places = query * n_columns + (np.cumsum(columns) - 1)[block.indices[entries]]
    origins = np.zeros(sizes.shape[0] * n_columns)
    origins[places] = block.data[entries]
    origins[np.bincount(places, minlength=origins.shape[0]) < np.repeat(sizes, n_columns)] = 0.0
    block.data[entries] -= origins[places]
    return block


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
