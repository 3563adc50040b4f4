"""Documents grouped by query, in the caller's own memory and row order."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
import scipy.sparse

from structrank._kernels import linear
from structrank._support import checks
from structrank.datasets.queries import group_by_query
from structrank.metrics import Evaluator


class RankingData:
    """Documents, labels and query ids, checked and grouped; the matrix is not copied.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_docs, n_features)
        numpy array, memory map, pandas or polars frame, or scipy sparse matrix. float32 and float64 in row order and
        CSR are used in place; anything else is converted a block of rows at a time.
    y : array-like of shape (n_docs,)
        Labels, at least 0; larger is more relevant.
    qid : array-like of shape (n_docs,) or int
        The query of each row, in any order, of any hashable type; an integer makes all rows one query.
    sample_weight : array-like of shape (n_docs,), default None
        Weight of each row's query; constant within a query.
    is_part : bool, default False
        Whether the data are one of several parts; then all weights may be 0.
    name : str, default "X"
        Name of X in messages.
    check_finite : bool, default True
        Whether to look for nan and infinity in X, which takes about as long as a pass over the data.

    Attributes
    ----------
    X : numpy array or CSR matrix
    name : str
    column_names : sequence or None
        Columns of X if it is a frame.
    table : X as it was given
    labels : (n_docs,) array, in the caller's row order
    grouping : Grouping
    query_weights : (n_queries,) array
    weighted : bool
        Whether weights were given.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], qid=["b", "a", "b"])
    >>> data.grouping.n_queries, data.grouping.sizes.tolist()
    (2, [2, 1])
    """

    def __init__(self, X, y, qid, sample_weight=None, is_part=False, name="X", check_finite=True):
        X = checks.as_table(X)
        self.name, self.table, self.column_names, self._evaluators = name, X, getattr(X, "columns", None), []
        checks.check_qid_is_no_feature(self.column_names)  # first: ids are often texts, which are no matrix
        checks.check_column_names(self.column_names)
        self.X = checks.as_matrix(X)
        n_docs = self.X.shape[0]
        self.labels = checks.as_labels(y, n_docs)
        self.grouping = group_by_query(qid, n_docs)
        self.weighted = sample_weight is not None
        if sample_weight is None:
            self.query_weights = np.ones(self.grouping.n_queries)
        else:
            grouping = self.grouping
            self.query_weights = checks.check_row_weights(sample_weight, grouping.rows, grouping.indptr, grouping.ids)
            checks.check_some_weight(is_part or self.query_weights.any())
        if check_finite:
            checks.check_finite_matrix(self.X, self.column_names, name)

    @classmethod
    def of(cls, part):
        """Return a data set with `X`, `y`, `qid` and perhaps `sample_weight` as `RankingData`; such data unchanged."""
        return part if isinstance(part, cls) else cls(part.X, part.y, part.qid, getattr(part, "sample_weight", None))

    def take(self, rows):
        """Return the data of some rows, all of each of their queries.

        Examples
        --------
        >>> RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], ["b", "a", "b"]).take([0, 2]).grouping.sizes.tolist()
        [2]
        """
        query, weights = self.grouping.query_of_row(), self.row_weights[rows] if self.weighted else None
        data = RankingData(self.X[rows], self.labels[rows], query[rows], weights, name=self.name, check_finite=False)
        data.column_names = self.column_names
        return data

    def with_matrix(self, X, names=None):
        """Return the same documents with other features, which need no check; `names` are those of the columns.

        Examples
        --------
        >>> RankingData([[1.0], [2.0]], [0, 1], qid=0).with_matrix(np.array([[3.0], [4.0]])).X.tolist()
        [[3.0], [4.0]]
        """
        data = copy.copy(self)
        data.X = data.table = X
        data.column_names = names
        return data

    def usable(self, relevant_from):
        """Return a mask of queries with a weight, and relevant and irrelevant documents (different labels, if None)."""
        labels = self.labels[self.grouping.rows]
        kinds = labels if relevant_from is None else labels >= relevant_from
        firsts = self.grouping.indptr[:-1]
        varied = np.maximum.reduceat(kinds, firsts) > np.minimum.reduceat(kinds, firsts)
        return varied & (self.query_weights > 0)

    def evaluator(self, measure):
        """Return the `Evaluator` of a measure, made once; its mean is weighted as the queries are."""
        known = [one for one in self._evaluators if one.measure == measure]
        if not known:
            known = [Evaluator(measure, self.labels, self.grouping, self.query_weights)]
            self._evaluators += known
        return known[0]

    def load(self):
        """Return the data: they are their own source, see `structrank.training.sources`."""
        return self

    def matrix(self):
        """Return X."""
        return self.X

    @property
    def n_features(self):
        """Number of columns of X."""
        return self.X.shape[1]

    def check_columns(self, training):
        """Raise unless the columns are those of the training data."""
        checks.check_width(self.n_features, training.n_features, "training")
        names = [data.column_names for data in (self, training)]
        # As in scikit-learn, only if all names are strings.
        if any(some is None or not all(isinstance(name, str) for name in some) for some in names):
            return
        for number, (found, expected) in enumerate(zip(*names, strict=True)):
            if found != expected:
                raise ValueError(
                    f"column {number} of X is {found!r}, but {expected!r} in training; expected the same columns in the same "
                    "order."
                )

    def counted(self):
        """Return the data without queries of weight 0, with the other weights divided by their mean, and the remaining rows.

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
        data.query_weights, data._evaluators = self.query_weights / mean, []
        return data, rows

    @property
    def row_weights(self):
        """The weight of each row's query, in the caller's row order."""
        weights = np.empty(self.labels.shape[0])
        weights[self.grouping.rows] = np.repeat(self.query_weights, self.grouping.sizes)
        return weights

    @cached_property
    def rows_in_order(self):
        """Whether the rows of each query are consecutive."""
        rows = self.grouping.rows
        return bool(rows.size == 0 or (rows[0] == 0 and (np.diff(rows) == 1).all()))


NO_ROWS = np.empty(0, dtype=np.int64)


def kernel_matrix(X, base=0, rows=NO_ROWS):
    """Return a matrix as compiled functions take it, without a copy; None if it must be converted first.

    Returns
    -------
    X, csr, base, rows
        See `structrank._kernels.linear`.
    """
    if scipy.sparse.issparse(X):
        return None, (X.data, X.indices, X.indptr), base, rows
    if X.flags.c_contiguous and X.dtype in (np.float32, np.float64) and X.dtype.isnative:
        return np.asarray(X), None, base, rows
    return None


def score_rows(X, w):
    """Compute ``X @ w`` in float64; X is converted a block of rows at a time if necessary.

    Examples
    --------
    >>> score_rows(np.array([[1, 2], [3, 4]]), np.array([10.0, 1.0]))
    array([12., 34.])
    """
    scores = np.empty(X.shape[0])
    matrix = kernel_matrix(X)
    if matrix is not None:
        linear.scores(*matrix, 0, w, scores)
        return scores
    step = max(1, 2**18 // max(X.shape[1], 1))
    for start in range(0, X.shape[0], step):
        block = np.ascontiguousarray(X[start : start + step], dtype=np.float64)
        linear.scores(*kernel_matrix(block), 0, w, scores[start : start + step])
    return scores
