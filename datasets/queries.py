"""Grouping of rows by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support import checks


def rows_by_query(qid):
    """Return the row numbers of each query, ascending, as a list of arrays in order of first appearance.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_query(np.array([7, 8, 7]))]
    [[0, 2], [1]]
    """
    rows, indptr = group_rows(qid)
    return np.split(rows, indptr[1:-1])


def group_rows(qid):
    """Return the rows query after query, in order of first appearance, and the bounds of the queries.

    Examples
    --------
    >>> [part.tolist() for part in group_rows(np.array([7, 8, 7]))]
    [[0, 2, 1], [0, 2, 3]]
    """
    n_rows = qid.shape[0]
    # Rows mostly come in runs of one query: look at the heads of the runs only.
    heads = np.flatnonzero(np.concatenate([[True], np.asarray(qid[1:] != qid[:-1], dtype=bool)]))
    # Increasing ids are all different: no lookup is needed.
    if qid.dtype.kind in "iuf" and (qid[heads[1:]] > qid[heads[:-1]]).all():
        return np.arange(n_rows), np.append(heads, n_rows)
    numbers = {}
    query_of_run = np.array([numbers.setdefault(value, len(numbers)) for value in qid[heads].tolist()])
    if len(numbers) == heads.size:
        return np.arange(n_rows), np.append(heads, n_rows)
    query = np.repeat(query_of_run, np.diff(np.append(heads, n_rows)))
    return np.argsort(query, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(query))])


def put_query_minimum(X, qid):
    """Replace nan, in place, by the column's smallest value in the query; by 0 if the query has none."""
    dense = isinstance(X, np.ndarray)
    if not np.isnan(np.min(X if dense else X.data, initial=0.0)):
        return
    for rows in rows_by_query(qid):
        if dense:
            block = X[rows]
            missing = np.isnan(block)
            if missing.any():
                X[rows] = np.where(missing, np.nan_to_num(np.fmin.reduce(block, axis=0)), block)
            continue
        places = np.concatenate([np.arange(X.indptr[row], X.indptr[row + 1]) for row in rows])
        missing = places[np.isnan(X.data[places])]
        if missing.size:
            columns, at = np.unique(X.indices[missing], return_inverse=True)
            minimum = np.fmin.reduce(X[rows][:, columns].toarray(), axis=0)  # entries that are not stored count as 0
            X.data[missing] = np.nan_to_num(minimum)[at]
    if not dense:
        X.eliminate_zeros()


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
        """Return the number of the query of each row, in the caller's row order."""
        query = np.empty(self.rows.shape[0], dtype=np.int64)
        query[self.rows] = np.repeat(np.arange(self.n_queries), self.sizes)
        return query


def group_by_query(qid, n_rows, against="X"):
    """Group rows by query id, in any order and of any hashable type; return a `Grouping`.

    An integer makes all rows one query; None is an error. `against` names the array with `n_rows` rows that `qid` must match,
    for error messages.

    Examples
    --------
    >>> grouping = group_by_query(["b", "a", "b"], 3)
    >>> grouping.ids.tolist(), grouping.rows.tolist(), grouping.indptr.tolist()
    (['b', 'a'], [0, 2, 1], [0, 2, 3])
    """
    qid = checks.as_query_ids(qid, n_rows, against)
    rows, indptr = group_rows(qid)
    return Grouping(rows, indptr, qid[rows[indptr[:-1]]])
