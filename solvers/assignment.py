"""The assignment problem: assign rows to columns so that the total benefit is largest."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def best_assignment(benefit):
    """Assign each column to a different row; number the remaining rows after the last column.

    Parameters
    ----------
    benefit : (n_rows, n_columns) array, n_rows >= n_columns
        Benefit of assigning a row to a column; rows without a column contribute 0.

    Returns
    -------
    (n_rows,) array of int
        Column of each row; rows without a column are numbered n_columns, n_columns + 1, ... in row order.

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
