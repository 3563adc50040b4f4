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
# Residuals, as a share of the accuracy, that mostly give it, and the iterations after which other backends are tried. A larger
# share saved less than a tenth of the iterations.
_SHARE, _MOST_RESIDUAL, _MOST_ITERATIONS = 0.1, 1e-3, 4000


def solve(planes, C, accuracy, w):
    """Solve the QP in its primal form, in coordinates of the space that the slopes span."""
    import osqp

    slopes, basis = planes.span()
    (n_slacks, _, n_features), n = slopes.shape, planes.n
    # With w = sqrt(C) v and the objective divided by C, primal and dual residuals have the same weight at any C.
    scale, tolerance = np.sqrt(C), min(_MOST_RESIDUAL, _SHARE * accuracy / C)
    # The last plane of each slack, of slope and offset 0, stands for xi >= 0, and has the rest of the slack's weight.
    rows, offsets = np.zeros((n_slacks, n + 1, n_features)), np.zeros((n_slacks, n + 1))
    rows[:, :n], offsets[:, :n] = scale * slopes[:, :n], planes.offsets[:, :n]
    # A tolerance of 0 is the rounded one of a C below 1e-320.
    if not np.abs(rows).max(initial=0.0) < _INFINITE or tolerance == 0.0:
        return None, None, "numbers out of range"
    shares = np.zeros_like(offsets)
    shares[:, :n] = planes.multipliers[:, :n] / C
    shares[:, n] = np.maximum(planes.weights - shares.sum(axis=1), 0.0)
    solver = _set_up(rows, offsets, planes.weights, tolerance)
    v = (w if basis is None else np.einsum("ij,j->i", basis, w)) / scale
    solver.warm_start(np.concatenate([v, planes.slacks(w)]), -shares.reshape(-1))
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
    multipliers[:, :n] = -C * y.reshape(n_slacks, n + 1)[:, :n]
    return scale * (v if basis is None else combine(v, basis)), multipliers, info.status


def _set_up(rows, offsets, weights, tolerance):
    """Return a solver of min 1/2 |v|^2 + weights.xi, xi_s >= offsets_st - rows_st.v.

    `osqp.OSQP` is left out: it splits, copies and checks the matrices of every QP, which takes far longer than to solve it.
    """
    from osqp import ext_builtin as compiled

    n_slacks, n_planes, n_features = rows.shape
    settings = compiled.OSQPSettings()
    compiled.osqp_set_default_settings(settings)
    settings.verbose = False
    settings.polishing = False  # can spoil a solution, and prints
    settings.eps_abs = settings.eps_rel = tolerance
    settings.max_iter = _MOST_ITERATIONS
    return compiled.OSQPSolver(
        compiled.CSC(_leading_ones(n_features, n_features + n_slacks)),
        np.concatenate([np.zeros(n_features), weights]),
        compiled.CSC(_constraints(rows)),
        offsets.reshape(-1),
        np.full(n_slacks * n_planes, compiled.OSQP_INFTY),
        n_slacks * n_planes,
        n_features + n_slacks,
        settings,
    )


@functools.cache
def _leading_ones(n_ones, n):
    """Return the n x n matrix whose first n_ones diagonal entries are 1, in CSC form."""
    indptr = np.minimum(np.arange(n + 1), n_ones)
    return scipy.sparse.csc_matrix((np.ones(n_ones), np.arange(n_ones), indptr), shape=(n, n))


def _constraints(rows):
    """Return the rows of all slacks, followed by a column for each slack with 1 in its rows, in CSC form."""
    n_slacks, n_planes, n_features = rows.shape
    n_rows = n_slacks * n_planes
    data = np.concatenate([rows.reshape(n_rows, n_features).T.reshape(-1), np.ones(n_rows)])
    indices = np.tile(np.arange(n_rows, dtype=np.int32), n_features + 1)  # the columns of the slacks hold each row once
    ends = np.arange(n_features * n_rows, data.shape[0] + 1, n_planes, dtype=np.int32)
    indptr = np.concatenate([np.arange(n_features, dtype=np.int32) * n_rows, ends])
    return scipy.sparse.csc_matrix((data, indices, indptr), shape=(n_rows, n_features + n_slacks))
