r"""The working-set QP with a penalty other than 1/2 |w|^2, as a sequence of QPs with 1/2 |w|^2.

The dual of the QP maximises, with z = sum_t alpha_t a_t and w(z) the penalty's minimiser,

.. math:: D(\alpha) = \alpha \cdot b + \Omega(w(z)) - z \cdot w(z), \qquad D' = b_t - a_t \cdot w(z)

Where w(z) is linear in z, as it is between the kinks of a piecewise quadratic penalty, D is the dual of a QP over the weights
that change with z, with the others fixed. A step solves this QP, by any backend, and then maximises D on the line to its
solution: a Newton method on a concave function whose gradient has kinks.
"""

from __future__ import annotations

import copy

import numpy as np

from structrank.solvers.penalties import RIDGE
from structrank.solvers.vectors import combine, dot

# A step that does not raise D ends the search anyway; this ends one that goes on raising it by rounding.
_MOST_STEPS = 50


def solve(backend, planes, C, accuracy):
    """Solve the QP from the multipliers of the last solution on; see `structrank.solvers.backends` for what is returned.

    Parameters
    ----------
    backend : callable
        For QPs with 1/2 |w|^2.
    planes, C, accuracy
        As for a backend.
    """
    penalty, offsets = planes.penalty, _in_use(planes, planes.offsets)
    rows = np.ascontiguousarray(planes.slopes[:, : planes.n]).reshape(offsets.size, -1)
    multipliers, dual, w = planes.feasible_dual(C, planes.multipliers)
    z = combine(_in_use(planes, multipliers), rows)
    n_steps = 0
    while n_steps < _MOST_STEPS and planes.primal(C, w) - dual > accuracy:
        found = _solve_local(backend, planes, C, accuracy, z, multipliers)
        if found is None:
            return None, None, "a step has no solution"
        change = _in_use(planes, found - multipliers)
        share = penalty.best_share(z, combine(change, rows), dot(change, offsets))
        multipliers += share * (found - multipliers)
        z = combine(_in_use(planes, multipliers), rows)
        w = np.ascontiguousarray(penalty.minimiser(z))
        n_steps += 1
        last, dual = dual, dot(_in_use(planes, multipliers), offsets) + penalty.value(w) - dot(z, w)
        if not dual > last:
            break
    return w, multipliers, f"{n_steps} steps"


def _in_use(planes, values):
    """Return what values, of shape (n_slacks, capacity), have for the planes in use, in one dimension."""
    return np.ascontiguousarray(values[:, : planes.n]).reshape(-1)


def _solve_local(backend, planes, C, accuracy, z, multipliers):
    """Return multipliers that solve the QP as if w(z) were linear everywhere; None if the backend fails.

    With rates d, w(z + v) = w(z) + d v: slopes times sqrt(d), and offsets at w(z) - d z, make a QP with 1/2 |v|^2.
    """
    local, n, rates = copy.copy(planes), planes.n, planes.penalty.rates(z)
    free = np.flatnonzero(rates > 0.0)
    if not free.size:
        free = np.zeros(1, dtype=np.int64)  # a QP has a weight, of slope 0 here
    roots = np.sqrt(rates[free])
    local.penalty, local.multipliers = RIDGE, np.ascontiguousarray(multipliers[:, :n])
    local.slopes = np.ascontiguousarray(planes.slopes[:, :n, free] * roots)
    local.offsets = planes.offsets[:, :n] - planes.slopes[:, :n] @ (planes.penalty.minimiser(z) - rates * z)
    _, found, _ = backend(local, C, accuracy, roots * z[free])
    if found is None:
        return None
    result = np.zeros_like(multipliers)
    result[:, :n] = local.feasible_dual(C, found)[0]
    return result
