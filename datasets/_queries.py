"""The rows of each query."""

import numpy as np


def rows_by_query(qid):
    """Give the rows of each query, in order of first appearance.

    Parameters
    ----------
    qid : array of shape (n_docs,)
        In any order, of any hashable type.

    Returns
    -------
    list of arrays of int
        Row numbers, ascending.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_query(np.array([7, 8, 7]))]
    [[0, 2], [1]]
    """
    rows, indptr = group_rows(qid)
    return np.split(rows, indptr[1:-1])


def group_rows(qid):
    """Give the rows query after query, in order of first appearance, and where each query starts and the last ends.

    Examples
    --------
    >>> [part.tolist() for part in group_rows(np.array([7, 8, 7]))]
    [[0, 2, 1], [0, 2, 3]]
    """
    n_rows = qid.shape[0]
    # Rows mostly come in runs of one query: look at the heads of the runs only.
    heads = np.flatnonzero(np.concatenate([[True], np.asarray(qid[1:] != qid[:-1], dtype=bool)]))
    # Ids that rise are all different: no need to look each up.
    if qid.dtype.kind in "iuf" and (qid[heads[1:]] > qid[heads[:-1]]).all():
        return np.arange(n_rows), np.append(heads, n_rows)
    numbers = {}
    query_of_run = np.array([numbers.setdefault(value, len(numbers)) for value in qid[heads].tolist()])
    if len(numbers) == heads.size:
        return np.arange(n_rows), np.append(heads, n_rows)
    query = np.repeat(query_of_run, np.diff(np.append(heads, n_rows)))
    return np.argsort(query, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(query))])
