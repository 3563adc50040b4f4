"""Discounts and gains, shared by the criteria and the measures so that both mean the same."""

import numpy as np


def _kdd08(ranks):
    # The paper gives ranks 0 and 1 the same discount.
    return 1.0 / np.log2(1.0 + np.maximum(ranks, 1))


def _log2(ranks):
    return 1.0 / np.log2(2.0 + ranks)


DISCOUNTS = {"log2": _log2, "kdd08": _kdd08}
GAINS = ("exp2", "linear", "binary")


def discounts(name, n):
    """Return D(0), ..., D(n - 1).

    Examples
    --------
    >>> discounts("kdd08", 4).round(4)
    array([1.    , 1.    , 0.6309, 0.5   ])
    """
    return DISCOUNTS[name](np.arange(n))


def reciprocal_ranks(n, k=None):
    """Return 1, 1/2, ..., 1/n, 0 from rank k on."""
    values = 1.0 / np.arange(1.0, n + 1)
    if k is not None:
        values[k:] = 0.0
    return values


def gains(name, labels, relevant_from=1):
    """Return the gain of each label: 2^l - 1, l, 1 from `relevant_from` on, or entry l of a table.

    Examples
    --------
    >>> gains("exp2", np.array([0.0, 1.0, 2.0]))
    array([0., 1., 3.])
    >>> gains((0.0, 1.0, 5.0), np.array([2.0, 0.0]))
    array([5., 0.])
    """
    if isinstance(name, tuple):
        unknown = labels[~np.isin(labels, np.arange(len(name)))]
        if unknown.size:
            raise ValueError(
                f"label {unknown[0]:g} has no entry in gain={name}; expected integer labels from 0 to {len(name) - 1}."
            )
        return np.array(name)[labels.astype(np.int64)]
    if name == "exp2":
        return np.exp2(labels) - 1.0
    return labels.copy() if name == "linear" else (labels >= relevant_from).astype(np.float64)
