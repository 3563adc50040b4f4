"""Documents grouped by query, in the caller's own memory and row order."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from structrank import _validation
from structrank._kernels import linear
from structrank.datasets._queries import group_rows


@dataclass(frozen=True)
class Grouping:
    """Which rows belong to which query.

    Attributes
    ----------
    rows : (n_docs,) array of int
        Row numbers, query after query; within a query in the caller's order.
    indptr : (n_queries + 1,) array of int
        Query q holds ``rows[indptr[q]:indptr[q + 1]]``.
    ids : (n_queries,) array
        The query ids, in order of first appearance.
    """

    rows: np.ndarray
    indptr: np.ndarray
    ids: np.ndarray

    @property
    def n_queries(self):
        """Number of queries."""
        return self.indptr.shape[0] - 1

    @property
    def sizes(self):
        """Number of documents of each query."""
        return np.diff(self.indptr)

    def query_of_row(self):
        """Give the number of the query of each row, in the caller's row order."""
        query = np.empty(self.rows.shape[0], dtype=np.int64)
        query[self.rows] = np.repeat(np.arange(self.n_queries), self.sizes)
        return query


def group_by_query(qid, n_rows, against="X"):
    """Group rows by query id, in any order and of any hashable type.

    Parameters
    ----------
    qid : array-like of shape (n_rows,), or None
        The query of each row; None makes all rows one query.
    n_rows : int
        How many rows there must be.
    against : str
        What `qid` is measured against, for error messages.

    Returns
    -------
    Grouping

    Examples
    --------
    >>> grouping = group_by_query(["b", "a", "b"], 3)
    >>> grouping.ids.tolist(), grouping.rows.tolist(), grouping.indptr.tolist()
    (['b', 'a'], [0, 2, 1], [0, 2, 3])
    """
    if qid is None:
        return Grouping(np.arange(n_rows), np.array([0, n_rows]), np.array([0]))
    qid = _validation.as_query_ids(qid, n_rows, against)
    rows, indptr = group_rows(qid)
    return Grouping(rows, indptr, qid[rows[indptr[:-1]]])


class RankingData:
    """Documents, labels and query ids, checked and grouped; the matrix stays where and as it is.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_docs, n_features)
        numpy array, memory map, pandas or polars frame, or scipy sparse matrix. float32 and float64 in row order and
        CSR are used in place; anything else is converted a block of rows at a time.
    y : array-like of shape (n_docs,)
        Labels, at least 0; larger is more relevant.
    qid : array-like of shape (n_docs,), default None
        The query of each row, in any order, of any hashable type; None makes all rows one query.
    sample_weight : array-like of shape (n_docs,), default None
        Weight of each row's query; constant within a query.
    is_part : bool, default False
        Whether there are other parts, so that all weights of this one may be 0.
    name : str, default "X"
        What X is called in messages.
    check_finite : bool, default True
        Whether to look for nan and infinity in X; to look at all of X takes about as long as a pass over it.

    Attributes
    ----------
    X : numpy array or CSR matrix
    name : str
    column_names : sequence or None
        Where X is a frame.
    labels : (n_docs,) array, in the caller's row order
    grouping : Grouping
    query_weights : (n_queries,) array

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], qid=["b", "a", "b"])
    >>> data.grouping.n_queries, data.grouping.sizes.tolist()
    (2, [2, 1])
    """

    def __init__(self, X, y, qid=None, sample_weight=None, is_part=False, name="X", check_finite=True):
        self.name, self.column_names = name, getattr(X, "columns", None)
        self.X = _validation.as_matrix(X)
        if self.column_names is not None:
            _validation.check_column_names(self.column_names)
        n_docs = self.X.shape[0]
        self.labels = _validation.as_labels(y, n_docs)
        self.grouping = group_by_query(qid, n_docs)
        if sample_weight is None:
            self.query_weights = np.ones(self.grouping.n_queries)
        else:
            grouping = self.grouping
            self.query_weights = _validation.check_row_weights(
                sample_weight, grouping.rows, grouping.indptr, grouping.ids
            )
            _validation.check_some_weight(is_part or self.query_weights.any())
        if check_finite:
            _validation.check_finite_matrix(self.X, self.column_names, name)

    @property
    def n_features(self):
        """Number of columns of X."""
        return self.X.shape[1]

    def check_columns(self, training):
        """Raise unless the columns are those of the training data."""
        _validation.check_width(self.n_features, training.n_features, "training")
        names = [data.column_names for data in (self, training)]
        # As scikit-learn does, where all names are texts.
        if any(some is None or not all(isinstance(name, str) for name in some) for some in names):
            return
        for number, (found, expected) in enumerate(zip(*names, strict=True)):
            if found != expected:
                raise ValueError(
                    f"column {number} of X is {found!r}, but {expected!r} in training; expected the same columns in the same "
                    "order."
                )

    def counted(self):
        """Give the data without queries of weight 0, the other weights over their mean, and the rows that are left.

        Examples
        --------
        >>> data, rows = RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], ["a", "b", "b"], [0.0, 5.0, 5.0]).counted()
        >>> data.X.tolist(), data.query_weights.tolist(), rows.tolist()
        ([[2.0], [3.0]], [1.0], [1, 2])
        """
        weights = self.row_weights
        rows, mean = np.flatnonzero(weights > 0.0), self.query_weights[self.query_weights > 0.0].mean()
        if rows.size < weights.size:
            query = self.grouping.query_of_row()
            return RankingData(
                self.X[rows], self.labels[rows], query[rows], weights[rows] / mean, name=self.name, check_finite=False
            ), rows
        data = copy.copy(self)
        data.query_weights = self.query_weights / mean
        return data, rows

    @property
    def row_weights(self):
        """The weight of each row's query, in the caller's row order."""
        weights = np.empty(self.labels.shape[0])
        weights[self.grouping.rows] = np.repeat(self.query_weights, self.grouping.sizes)
        return weights

    @cached_property
    def rows_in_order(self):
        """Whether the rows already stand query after query."""
        rows = self.grouping.rows
        return bool(rows.size == 0 or (rows[0] == 0 and (np.diff(rows) == 1).all()))


NO_ROWS = np.empty(0, dtype=np.int64)


def kernel_matrix(X):
    """Give a matrix as the tuple that compiled functions take, without copying it; None where it must be converted first."""
    if scipy.sparse.issparse(X):
        return X.data, X.indices, X.indptr
    if X.flags.c_contiguous and X.dtype in (np.float32, np.float64) and X.dtype.isnative:
        return (np.asarray(X),)
    return None


def score_rows(X, w):
    """Compute ``X @ w`` in float64; a matrix that must be converted is so a block of rows at a time.

    Examples
    --------
    >>> score_rows(np.array([[1, 2], [3, 4]]), np.array([10.0, 1.0]))
    array([12., 34.])
    """
    scores = np.empty(X.shape[0])
    matrix = kernel_matrix(X)
    if matrix is not None:
        linear.scores(matrix, NO_ROWS, 0, w, scores)
        return scores
    step = max(1, 2**18 // max(X.shape[1], 1))
    for start in range(0, X.shape[0], step):
        block = np.ascontiguousarray(X[start : start + step], dtype=np.float64)
        linear.scores((block,), NO_ROWS, 0, w, scores[start : start + step])
    return scores
