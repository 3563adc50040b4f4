"""The assignment problem: rows to columns so that the summed benefit is largest."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def best_assignment(benefit):
    """Assign every row a column of its own, rows beyond the last column the places after it.

    Parameters
    ----------
    benefit : (n_rows, n_columns) array, n_rows >= n_columns
        What it brings to give a row a column; a row without one brings 0.

    Returns
    -------
    (n_rows,) array of int
        The column of each row; rows without one are numbered n_columns, n_columns + 1, ... in their own order.

    Examples
    --------
    >>> import numpy as np
    >>> best_assignment(np.array([[1.0, 0.0], [3.0, 1.0], [0.5, 0.5]]))
    array([2, 0, 1])
    """
    rows, columns = linear_sum_assignment(benefit, maximize=True)
    places = np.full(benefit.shape[0], -1)
    places[rows] = columns
    free = np.flatnonzero(places < 0)
    places[free] = benefit.shape[1] + np.arange(free.shape[0])
    return places
