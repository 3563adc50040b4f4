"""The working-set QP through OSQP, asked again or handed on where it stalls; the only file that imports osqp."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import scipy.sparse

from structrank.solvers import reference
from structrank.solvers.dual import ask_dual
from structrank.solvers.interior import ask_interior, span
from structrank.solvers.working_set import certify

# OSQP catches Ctrl-C by a handler for the whole process; solves that overlap in threads would leave theirs behind.
_SOLVE = threading.Lock()
# From here on OSQP takes numbers for infinite; what it cannot factor it prints.
_INFINITE = 1e30


def solve(problem, accuracy, warm, backend="auto"):
    """Solve a working-set QP to a duality gap of about `accuracy`.

    A backend whose answer misses the accuracy is followed by the others, OSQP also by itself, tighter. No solver's
    status is believed: an answer counts by its own gap, and the best one is returned with a note of what happened.

    Parameters
    ----------
    problem : QPProblem
    accuracy : float
        Wanted gap between the objective at w and the value of a feasible dual point.
    warm : tuple (w, multipliers)
        Where to start.
    backend : str
        "auto" (the dual first), "dual", "interior", "osqp", "cvxpy" or "cvxpy:NAME" with the name of a solver that CVXPY has
        installed.

    Returns
    -------
    QPSolution
    """
    best, notes = None, []
    for name, ask in _attempts(backend):
        w, multipliers, status = ask(problem, accuracy, warm)
        if w is not None:
            solution = certify(problem, w, multipliers, name)
            if best is None or solution.gap < best.gap:
                best = solution
            if best.gap <= accuracy:
                break
            status = f"{status}, gap {solution.gap:.1e} for {accuracy:.1e}"
        notes.append(f"{name}: {status}")
    if best is None:
        raise RuntimeError(f"no QP solver gave an answer ({'; '.join(notes)}); scale the features or lower C.")
    return replace(best, note="; ".join(notes))


def _attempts(backend):
    """List the ways to solve a QP, in the order to try them."""
    osqp_attempts = [("osqp", _ask_osqp(1.0, 4000)), ("osqp, tighter", _ask_osqp(1e-2, 40000))]
    compiled = [("dual", ask_dual()), ("interior", ask_interior())]
    if backend == "osqp":
        return [*osqp_attempts, ("cvxpy", reference.ask_cvxpy()), *compiled]
    if backend.startswith("cvxpy"):
        return [(backend, reference.ask_cvxpy(backend.partition(":")[2] or "CLARABEL")), *osqp_attempts, *compiled]
    if backend == "interior":
        compiled.reverse()
    return [*compiled, *osqp_attempts, ("cvxpy", reference.ask_cvxpy())]


def _ask_osqp(factor, max_iter):
    """Make a way to ask OSQP, at a fraction of the tolerance that should do."""

    def ask(problem, accuracy, warm):
        import osqp

        slopes, basis = span(problem.slopes)
        n = slopes.shape[1]
        n_planes, n_slacks = problem.offsets.shape[0], problem.weights.shape[0]
        # With w = sqrt(C) v and the objective divided by C, primal and dual residuals count alike at any C.
        scale = np.sqrt(problem.C)
        if not scale * np.abs(slopes).max(initial=0.0) < _INFINITE:
            return None, None, "numbers too large"
        lower = np.concatenate([problem.offsets, np.zeros(n_slacks)])
        tolerance = factor * min(1e-3, 0.1 * accuracy / problem.C)
        solver = osqp.OSQP(algebra="builtin")
        solver.setup(
            _diagonal(n, n + n_slacks),
            np.concatenate([np.zeros(n), problem.weights]),
            _constraints(scale * slopes, problem.slack_of, n_slacks),
            lower,
            np.full(lower.shape[0], np.inf),
            # Polishing can spoil a solved answer, and prints.
            verbose=False, polishing=False, eps_abs=tolerance, eps_rel=tolerance, max_iter=max_iter,
        )  # fmt: skip
        w, multipliers = warm
        multipliers = multipliers / problem.C
        unused = problem.weights - np.bincount(problem.slack_of, weights=multipliers, minlength=n_slacks)
        solver.warm_start(
            x=np.concatenate([(w if basis is None else w @ basis) / scale, problem.slacks(w)]),
            y=-np.concatenate([multipliers, np.maximum(unused, 0.0)]),
        )
        with _SOLVE:
            result = solver.solve(raise_error=False)
        if result.info.status_val == osqp.SolverStatus.OSQP_SIGINT:
            raise KeyboardInterrupt  # OSQP took the signal; Python has not seen it
        if not (np.isfinite(result.x).all() and np.isfinite(result.y).all()):
            return None, None, result.info.status
        v = result.x[:n]
        return scale * (v if basis is None else basis @ v), -problem.C * result.y[:n_planes], result.info.status

    return ask


def _diagonal(n_ones, n):
    """Give the n x n matrix with ones in the first places of the diagonal, in CSC form."""
    indptr = np.minimum(np.arange(n + 1), n_ones)
    return scipy.sparse.csc_matrix((np.ones(n_ones), np.arange(n_ones), indptr), shape=(n, n))


def _constraints(slopes, slack_of, n_slacks):
    """Give [[slopes, one 1 a row for its slack], [0, I]] in CSC form; assembled by hand, which is most of a small solve."""
    n_planes, n = slopes.shape
    by_slack = np.argsort(slack_of, kind="stable")
    planes_of_slack = np.bincount(slack_of, minlength=n_slacks)
    # A slack's column holds its planes' rows and then the row of its own bound.
    slack_rows = np.insert(by_slack, np.cumsum(planes_of_slack), n_planes + np.arange(n_slacks))
    data = np.concatenate([slopes.T.reshape(-1), np.ones(slack_rows.shape[0])])
    indices = np.concatenate([np.tile(np.arange(n_planes), n), slack_rows])
    counts = np.concatenate([np.full(n, n_planes), planes_of_slack + 1])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return scipy.sparse.csc_matrix((data, indices, indptr), shape=(n_planes + n_slacks, n + n_slacks))
