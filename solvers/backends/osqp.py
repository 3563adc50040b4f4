"""The working-set QP through OSQP; the only file that imports osqp."""

from __future__ import annotations

import functools
import threading

import numpy as np
import scipy.sparse

from structrank.solvers.backends.interior import span
from structrank.solvers.vectors import combine

# OSQP installs a process-wide handler for Ctrl-C; overlapping solves in threads would leave their handlers behind.
_SOLVE = threading.Lock()
# OSQP treats larger numbers as infinite, and prints errors on matrices it cannot factor.
_INFINITE = 1e30
# Residuals, as a share of the accuracy, and the maximum number of iterations; the second try follows if the first misses.
_TRIES = ((0.1, 4000), (1e-3, 40000))


def solve(planes, C, accuracy, w):
    """Solve the QP in its primal form, in coordinates of the space that the slopes span."""
    for share, max_iter in _TRIES:
        found, multipliers, status = _solve(planes, C, w, min(1e-3, share * accuracy / C), max_iter)
        if found is None or planes.certify(C, found, multipliers)[3] <= accuracy:
            break
    return found, multipliers, status


def _solve(planes, C, w, tolerance, max_iter):
    import osqp

    slopes, basis = span(planes)
    n_slacks, n, n_features = slopes.shape
    # With w = sqrt(C) v and the objective divided by C, primal and dual residuals have the same weight at any C.
    scale = np.sqrt(C)
    slopes = scale * slopes.reshape(n_slacks * n, n_features)
    # A tolerance of 0 is the rounded one of a C below 1e-320.
    if not np.abs(slopes).max(initial=0.0) < _INFINITE or tolerance == 0.0:
        return None, None, "numbers out of range"
    lower = np.concatenate([planes.offsets[:, :n].reshape(-1), np.zeros(n_slacks)])
    solver = osqp.OSQP(algebra="builtin")
    solver.setup(
        _leading_ones(n_features, n_features + n_slacks),
        np.concatenate([np.zeros(n_features), planes.weights]),
        _constraints(slopes, n_slacks),
        lower,
        np.full(lower.shape[0], np.inf),
        verbose=False,
        polishing=False,  # can spoil a solution, and prints
        eps_abs=tolerance,
        eps_rel=tolerance,
        max_iter=max_iter,
    )
    multipliers = planes.multipliers[:, :n] / C
    unused = np.maximum(planes.weights - multipliers.sum(axis=1), 0.0)
    solver.warm_start(
        x=np.concatenate([(w if basis is None else combine(w, np.ascontiguousarray(basis))) / scale, planes.slacks(w)]),
        y=-np.concatenate([multipliers.reshape(-1), unused]),
    )
    with _SOLVE:
        result = solver.solve(raise_error=False)
    if result.info.status_val == osqp.SolverStatus.OSQP_SIGINT:
        raise KeyboardInterrupt  # OSQP consumed the signal; Python has not seen it
    if not (np.isfinite(result.x).all() and np.isfinite(result.y).all()):
        return None, None, result.info.status
    v = result.x[:n_features]
    multipliers = np.zeros_like(planes.multipliers)
    multipliers[:, :n] = -C * result.y[: n_slacks * n].reshape(n_slacks, n)
    return scale * (v if basis is None else combine(v, basis.T)), multipliers, result.info.status


@functools.cache
def _leading_ones(n_ones, n):
    """Return the n x n matrix whose first n_ones diagonal entries are 1, in CSC form."""
    indptr = np.minimum(np.arange(n + 1), n_ones)
    return scipy.sparse.csc_matrix((np.ones(n_ones), np.arange(n_ones), indptr), shape=(n, n))


def _constraints(slopes, n_slacks):
    """Return [[slopes, a 1 in the column of each row's slack], [0, I]] in CSC form, which dominates a small solve."""
    n_planes, n_features = slopes.shape
    own = np.arange(n_planes).reshape(n_slacks, -1)
    # The column of a slack holds the rows of its planes and then the row of its own bound.
    slack_rows = np.column_stack([own, n_planes + np.arange(n_slacks)]).reshape(-1)
    data = np.concatenate([slopes.T.reshape(-1), np.ones(slack_rows.shape[0])])
    indices = np.concatenate([np.tile(np.arange(n_planes), n_features), slack_rows])
    lengths = np.concatenate([np.full(n_features, n_planes), np.full(n_slacks, own.shape[1] + 1)])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return scipy.sparse.csc_matrix((data, indices, indptr), shape=(n_planes + n_slacks, n_features + n_slacks))
