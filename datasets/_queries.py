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
    numbers = {}
    query = np.array([numbers.setdefault(value, len(numbers)) for value in qid.tolist()], dtype=np.int64)
    order = np.argsort(query, kind="stable")
    return np.split(order, np.cumsum(np.bincount(query))[:-1])
