"""Graded measures: several measures in order of importance, compared lexicographically."""

from __future__ import annotations

import numpy as np

from structrank._support.typing import ArrayLike, NDArray

__all__ = ["graded_order"]

_DIGITS = 12  # means that are equal on paper may differ in their last digits


def graded_order(values: ArrayLike) -> NDArray[np.int64]:
    r"""Order models by a graded measure, the best first (section 1 of Svore, Volkovs and Burges, WWW 2011).

    Measures A, B, C, ... are compared in this order, so that a later one decides only where all before it are equal:

    .. math::

        (A_1, B_1, \ldots) \ge (A_2, B_2, \ldots) \Leftrightarrow
        A_1 > A_2 \text{ or } A_1 = A_2 \text{ and } (B_1, \ldots) \ge (B_2, \ldots)

    Values that agree in 12 decimals are equal; nan comes last, and models with equal values keep their order.

    Parameters
    ----------
    values : array-like of shape (n_models, n_measures)
        The means of the measures, in order of importance.

    Returns
    -------
    (n_models,) array of int
        Rows of `values`.

    See Also
    --------
    structrank.choose_C : Chooses C by several measures in this way.
    structrank.comparison.table.CriterionTable.order : Orders rows of a table.

    Examples
    --------
    >>> graded_order([[0.8, 0.5], [0.9, 0.2], [0.9, 0.3]]).tolist()
    [2, 1, 0]
    """
    columns = np.round(np.asarray(values, dtype=np.float64), _DIGITS).T
    return np.lexsort(-columns[::-1])
