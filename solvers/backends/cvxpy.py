"""The working-set QP through CVXPY, the reference; the only file that imports cvxpy."""

from __future__ import annotations

import warnings

import numpy as np


def installed_solvers():
    """Return the names of the solvers that CVXPY finds installed."""
    import cvxpy

    return cvxpy.installed_solvers()


def solve(planes, C, accuracy, w, name="CLARABEL"):
    """Solve the QP with the named solver of CVXPY; the default is an interior-point method, unlike OSQP."""
    import cvxpy

    program = None if planes.penalty.in_span else planes.penalty.program(planes.slopes.shape[2])
    if program is None and not planes.penalty.in_span:
        return None, None, f"{type(planes.penalty).__name__} has no program"
    n_slacks, n = planes.weights.shape[0], planes.n
    # Divided by C, and in w / sqrt(C), primal and dual residuals have the same weight at any C.
    scale = np.sqrt(C)
    slopes = scale * planes.slopes[:, :n].reshape(n_slacks * n, -1)
    v, slacks = cvxpy.Variable(slopes.shape[1]), cvxpy.Variable(n_slacks, nonneg=True)
    cuts = slacks[np.repeat(np.arange(n_slacks), n)] >= planes.offsets[:, :n].reshape(-1) - slopes @ v
    penalty, constraints = _penalty(program, v, scale)
    problem = cvxpy.Problem(cvxpy.Minimize(penalty + planes.weights @ slacks), [cuts, *constraints])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # solutions are judged by their duality gap
            problem.solve(solver=name)
    except cvxpy.SolverError as error:
        return None, None, str(error)
    if v.value is None or cuts.dual_value is None:
        return None, None, problem.status
    multipliers = np.zeros_like(planes.multipliers)
    multipliers[:, :n] = C * np.asarray(cuts.dual_value).reshape(n_slacks, n)
    return scale * v.value, multipliers, problem.status


def _penalty(program, v, scale):
    """Return Omega(scale v) / scale^2 up to a constant, and its constraints; 1/2 |v|^2 without a program."""
    import cvxpy

    if program is None:
        return 0.5 * cvxpy.sum_squares(v), []
    x = cvxpy.hstack([v, cvxpy.Variable(program.linear.shape[0] - v.shape[0])])
    value = 0.5 * cvxpy.sum_squares(cvxpy.multiply(np.sqrt(program.diagonal), x)) + (program.linear / scale) @ x
    constraints = []
    for sign, bounds in ((1.0, program.upper), (-1.0, -program.lower)):
        finite = np.flatnonzero(np.isfinite(bounds))
        if finite.size:
            constraints.append(sign * (program.rows.tocsr()[finite] @ x) <= bounds[finite] / scale)
    return value, constraints
