"""The working-set QP through CVXPY, the reference; the only file that imports cvxpy."""

from __future__ import annotations

import warnings

import numpy as np


def installed_solvers():
    """List the names of the solvers that CVXPY finds installed."""
    import cvxpy

    return cvxpy.installed_solvers()


def ask_cvxpy(name="CLARABEL"):
    """Make a way to ask CVXPY, with the named solver; the default is an interior-point method, which OSQP is not."""

    def ask(problem, accuracy, warm):
        import cvxpy

        n_features = problem.slopes.shape[1]
        # Divided by C, and in w / sqrt(C), for the same reason as in `structrank.solvers.qp`.
        scale = np.sqrt(problem.C)
        v = cvxpy.Variable(n_features)
        slacks = cvxpy.Variable(problem.weights.shape[0], nonneg=True)
        cuts = slacks[problem.slack_of] >= problem.offsets - (scale * problem.slopes) @ v
        program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(v) + problem.weights @ slacks), [cuts])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an answer counts by its own gap
                program.solve(solver=name)
        except cvxpy.SolverError as error:
            return None, None, str(error)
        if v.value is None or cuts.dual_value is None:
            return None, None, program.status
        return scale * v.value, problem.C * np.asarray(cuts.dual_value).reshape(-1), program.status

    return ask
