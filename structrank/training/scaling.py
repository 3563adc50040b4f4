"""Columns of different scale: a risk over scaled columns, and a warning if scaling is missing.

The penalty 1/2 |w|^2 treats all columns alike: a column of small values needs a large weight, which the penalty suppresses.
Rankings depend on differences of documents of one query only, so the scale of a column is its standard deviation within
queries, and nothing needs to be centred: sparse data stay sparse.
"""

from __future__ import annotations

import numpy as np

from structrank._kernels.variances import add_variances
from structrank.solvers import Plane
from structrank.training.data import NO_ROWS, kernel_matrix

# The sample of a shard: this many queries and documents of each, evenly spaced. A column that is 0 except for one document of
# the sample has a standard deviation of 1/46 of its value there: rare words alone do not make columns far apart.
_SAMPLED_QUERIES, _SAMPLED_DOCS = 100, 20
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

    def of(self, objective):
        """Return the risk of another objective over the same data."""
        return ScaledRisk(self._risk.of(objective), self.scale)


def scale_by_deviation(risk):
    """Return the risk over columns divided by their standard deviation within queries, or by 1 if constant; a pass over X."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.sqrt(risk.variances())
    # Where X is not finite, or its squares are not, the first pass of training raises an error that names the place.
    return ScaledRisk(risk, np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0))


def sample_variances(X, rows, starts):
    """Compute the mean within-query variance of each column of X over a small sample of documents.

    Parameters
    ----------
    X : numpy array or CSR matrix
    rows : (n_docs,) array
        Row of each document, query after query; empty if that is the order of X.
    starts : (n_queries + 1,) array
        Query q holds the documents ``starts[q]`` to ``starts[q + 1]``.

    Examples
    --------
    >>> sample_variances(np.array([[0.0, 7.0], [2.0, 7.0], [0.0, 8.0]]), NO_ROWS, np.array([0, 2, 3]))
    array([0.5, 0. ])
    """
    out = np.zeros(X.shape[1])
    n_queries = starts.shape[0] - 1
    if not n_queries:
        return out
    queries = np.unique(np.linspace(0, n_queries - 1, _SAMPLED_QUERIES).astype(np.int64))
    docs = [
        np.unique(np.linspace(first, last, _SAMPLED_DOCS).astype(np.int64))
        for first, last in zip(starts[queries], starts[queries + 1] - 1, strict=True)
    ]
    sampled = np.concatenate(docs)
    block = X[rows[sampled] if rows.size else sampled]
    matrix = kernel_matrix(block) or (np.ascontiguousarray(block, dtype=np.float64),)
    bounds = np.concatenate([[0], np.cumsum([some.shape[0] for some in docs])])
    add_variances(matrix, 0, NO_ROWS, bounds, np.full(len(docs), 1.0 / len(docs)), out)
    return out


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
