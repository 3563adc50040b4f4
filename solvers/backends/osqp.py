"""The working-set QP through OSQP; the only file that imports osqp."""

from __future__ import annotations

import functools
import threading

import numpy as np
import scipy.sparse

from structrank.solvers.vectors import combine

# OSQP installs a process-wide handler for Ctrl-C; overlapping solves in threads would leave their handlers behind.
_SOLVE = threading.Lock()
# OSQP treats larger numbers as infinite, and prints errors on matrices it cannot factor.
_INFINITE = 1e30
# Residuals, as a share of the accuracy, that mostly give it, and the iterations after which other backends are tried.
_SHARE, _MOST_RESIDUAL, _MOST_ITERATIONS = 0.1, 1e-3, 4000


def solve(planes, C, accuracy, w):
    """Solve the QP in its primal form, in coordinates of the space that the slopes span."""
    import osqp

    slopes, basis = planes.span()
    (n_slacks, _, n_features), n = slopes.shape, planes.n
    # With w = sqrt(C) v and the objective divided by C, primal and dual residuals have the same weight at any C.
    scale, tolerance = np.sqrt(C), min(_MOST_RESIDUAL, _SHARE * accuracy / C)
    slopes = scale * slopes[:, :n].reshape(n_slacks * n, n_features)
    # A tolerance of 0 is the rounded one of a C below 1e-320.
    if not np.abs(slopes).max(initial=0.0) < _INFINITE or tolerance == 0.0:
        return None, None, "numbers out of range"
    solver = _set_up(slopes, planes.offsets[:, :n].reshape(-1), planes.weights, tolerance)
    multipliers = planes.multipliers[:, :n] / C
    unused = np.maximum(planes.weights - multipliers.sum(axis=1), 0.0)
    v = (w if basis is None else np.einsum("ij,j->i", basis, w)) / scale
    solver.warm_start(np.concatenate([v, planes.slacks(w)]), -np.concatenate([multipliers.reshape(-1), unused]))
    with _SOLVE:
        solver.solve()
    solution, info = solver.solution, solver.info
    if info.status_val == osqp.SolverStatus.OSQP_SIGINT:
        raise KeyboardInterrupt  # OSQP consumed the signal; Python has not seen it
    x, y = solution.x, solution.y
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None, None, info.status
    v = x[:n_features]
    multipliers = np.zeros_like(planes.multipliers)
    multipliers[:, :n] = -C * y[: n_slacks * n].reshape(n_slacks, n)
    return scale * (v if basis is None else combine(v, basis)), multipliers, info.status


def _set_up(slopes, offsets, weights, tolerance):
    """Return a solver of min 1/2 |v|^2 + weights.xi, xi_s >= offset - slope.v, xi >= 0.

    `osqp.OSQP` is left out: it splits, copies and checks the matrices of every QP, which takes far longer than to solve it.
    """
    from osqp import ext_builtin as compiled

    (n_planes, n_features), n_slacks = slopes.shape, weights.shape[0]
    settings = compiled.OSQPSettings()
    compiled.osqp_set_default_settings(settings)
    settings.verbose = False
    settings.polishing = False  # can spoil a solution, and prints
    settings.eps_abs = settings.eps_rel = tolerance
    settings.max_iter = _MOST_ITERATIONS
    return compiled.OSQPSolver(
        compiled.CSC(_leading_ones(n_features, n_features + n_slacks)),
        np.concatenate([np.zeros(n_features), weights]),
        compiled.CSC(_constraints(slopes, n_slacks)),
        np.concatenate([offsets, np.zeros(n_slacks)]),
        np.full(n_planes + n_slacks, compiled.OSQP_INFTY),
        n_planes + n_slacks,
        n_features + n_slacks,
        settings,
    )


@functools.cache
def _leading_ones(n_ones, n):
    """Return the n x n matrix whose first n_ones diagonal entries are 1, in CSC form."""
    indptr = np.minimum(np.arange(n + 1), n_ones)
    return scipy.sparse.csc_matrix((np.ones(n_ones), np.arange(n_ones), indptr), shape=(n, n))


def _constraints(slopes, n_slacks):
    """Return [[slopes, a 1 in the column of each row's slack], [0, I]] in CSC form, which dominates a small solve."""
    n_planes, n_features = slopes.shape
    own = np.arange(n_planes, dtype=np.int32).reshape(n_slacks, -1)
    # The column of a slack holds the rows of its planes and then the row of its own bound.
    slack_rows = np.column_stack([own, np.arange(n_planes, n_planes + n_slacks, dtype=np.int32)]).reshape(-1)
    data = np.concatenate([slopes.T.reshape(-1), np.ones(slack_rows.shape[0])])
    indices = np.concatenate([np.tile(own.reshape(-1), n_features), slack_rows])
    lengths = np.concatenate([[0], np.full(n_features, n_planes), np.full(n_slacks, own.shape[1] + 1)])
    indptr = np.cumsum(lengths, dtype=np.int32)
    return scipy.sparse.csc_matrix((data, indices, indptr), shape=(n_planes + n_slacks, n_features + n_slacks))
