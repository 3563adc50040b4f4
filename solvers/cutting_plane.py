r"""Cutting planes for min_w 1/2 |w|^2 + C R(w), R convex, piecewise linear and at least 0 (KDD 2008, section 2.3).

The driver sees an object with ``plane(w) -> Plane``: the value of R at w and a plane under R that touches it there. R may be
a weighted sum of parts, R = sum_s weight_s R_s, with a slack and a plane for each.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from structrank.solvers.backends import interior, solve
from structrank.solvers.results import Certificate, Iteration, Result
from structrank.solvers.vectors import combine, dot
from structrank.solvers.working_set import WorkingSet

# Notebook 16 measures passes and time without each rule. The size of C is C |R'(0)|^2 / R(0), with the gradient at w = 0.
ONE_SLACK_PASSES = 16  # passes with one slack before a run switches to many; a third of them if the run is hard
QP_SHARE = 0.15  # accuracy of a QP, as a share of the gap
FIRST_SIZE = 60.0  # size of the first C of the continuation
C_FACTOR = 10.0  # ratio of consecutive values of C
LOOSE_GAP = 0.015  # relative gap at which the next C follows
SLOW_GAP_RATIO = 0.3  # the next C follows, too, if a step leaves more than this share of the gap
LARGE_SIZE = 10.0  # size from which C is large
CENTRAL_GAP = 0.5  # relative gap above which QPs of a large C are solved by interior points
STEP_CONFIRMED = 0.8  # share of the first step that the secant must confirm for SECOND_STEP to apply
SECOND_STEP = 0.05  # step size after such a first step


@dataclass(frozen=True)
class Point:
    """A point at which R was evaluated.

    Attributes
    ----------
    w : (n_features,) array
    risk : float
        R(w).
    slope : (n_features,) array
        Slope of the plane that touches R there: R(v) >= R(w) - slope.(v - w).
    """

    w: np.ndarray
    risk: float
    slope: np.ndarray

    def objective(self, C):
        """Compute 1/2 |w|^2 + C R(w)."""
        return 0.5 * dot(self.w, self.w) + C * self.risk

    def derivative(self, C, direction):
        """Compute the directional derivative of the objective, by the plane."""
        return dot(self.w, direction) - C * dot(self.slope, direction)


class CuttingPlanes:
    """Cutting planes over a risk, for one C after another: points and planes do not depend on C and are shared.

    Far from the optimum the solution of the QP overshoots, more so for a larger C. So R is evaluated between the best point
    so far and that solution, at the minimum predicted by the directional derivatives at both ends of the last step (a secant).
    For the same reason a large C is reached by continuation from smaller values.

    Parameters
    ----------
    risk : object
        Has ``plane(w) -> Plane``, ``weights`` of shape (n_slacks,) and ``n_features``.
    tol : float
        Stop when the gap is at most C tol.
    solver : str, default "auto"
        Backend for the QPs, see `structrank.solvers.backends`. "auto" is OSQP for one slack and the compiled backends for many.
    one_slack_passes : int or float, default 16
        Evaluations of R before the QP gets a slack for each part of R instead of one for all: 0 for many slacks from the
        start, ``math.inf`` for always one slack. A hard run switches after a third of them: C is larger than the first C of
        the continuation, or w = 0 is still the best point.

    Attributes
    ----------
    points : list of Point
        Points at which R was evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank.solvers import CuttingPlanes, Plane
    >>> class Hinge:
    ...     weights, n_features = np.ones(1), 1
    ...     def plane(self, w):
    ...         wrong = float(w[0] < 1)
    ...         return Plane(slope=np.array([wrong]), offset=wrong, value=max(0.0, 1 - w[0]))
    >>> result = CuttingPlanes(Hinge(), tol=1e-6).run(C=10.0)
    >>> round(float(result.w[0]), 4), round(result.certificate.primal, 4), result.history[0].solver
    (1.0, 0.5, 'osqp')
    """

    def __init__(self, risk, tol, solver="auto", one_slack_passes=ONE_SLACK_PASSES):
        self.risk, self.tol, self.solver, self.one_slack_passes = risk, tol, solver, one_slack_passes
        self.points = []
        self._merged, self._separate = WorkingSet(np.ones(1), risk.n_features), WorkingSet(risk.weights, risk.n_features)

    def run(self, C, max_iter=1000, start=None, callback=None):
        """Minimise ``1/2 |w|^2 + C R(w)``.

        Parameters
        ----------
        C : float
        max_iter : int
        start : (n_features,) array, default None
            First point at which to evaluate R; None for 0, or for the points so far if there are any.
        callback : callable, default None
            Called with each `Iteration`; a true return value stops the run.

        Returns
        -------
        Result
        """
        if start is not None or not self.points:
            w = np.zeros(self.risk.n_features) if start is None else start
            self.add(w, self.risk.plane(w))
        size, values = self._continuation(C)
        large, planes = size > LARGE_SIZE, self._merged
        bound, history, reason = 0.0, [], ""  # R is at least 0, and so is the optimum
        try:
            for current_C in values:
                if reason:
                    break
                best, step, last_gap, ended = self._best(current_C), None, math.inf, False
                w, planes = best.w, self._working_set(planes, best, size)
                current_bound = max(planes.feasible_dual(current_C, planes.multipliers)[1], bound if current_C == C else 0.0)
                while not (ended or reason or len(history) >= max_iter):
                    started, previous_set = time.perf_counter(), planes
                    planes = self._working_set(planes, best, size)
                    # Solve the working-set QP to an accuracy proportional to the gap.
                    gap = best.objective(current_C) - current_bound
                    accuracy = QP_SHARE * max(gap, current_C * self.tol)
                    central = large and gap > CENTRAL_GAP * best.objective(current_C) and interior.is_cheap(planes)
                    solution = solve(planes, current_C, accuracy, w, self._backend(planes, central))
                    planes.multipliers[:] = solution.multipliers
                    bound_improved, current_bound = solution.dual > current_bound, max(solution.dual, current_bound)
                    # A dual point that is feasible for a smaller C is feasible for C, and can be scaled up.
                    bound = max(bound, solution.dual if current_C == C else planes.feasible_dual(C, solution.multipliers)[1])
                    # Step from the best point towards the solution.
                    direction, w = solution.w - best.w, solution.w
                    if step is None or planes is not previous_set:
                        step = self._first_step(best, current_C, direction)
                    target, tolerance_left = best.w + step * direction, C * self.tol - (best.objective(C) - bound)
                    if tolerance_left > 0.0 and history and not best.w.any():
                        target = self._near_zero(best, C, tolerance_left)
                    expected, n_planes = float(planes.weights @ planes.slacks(target)), len(planes)
                    seconds = {"qp": time.perf_counter() - started, "oracle": 0.0}
                    # Add the planes of R there, the most violated constraints, unless the best point is within the tolerance.
                    point = best
                    if tolerance_left < 0.0 or not best.w.any():
                        plane = self.risk.plane(target)
                        point, seconds["oracle"] = self.add(target, plane), plane.seconds
                    objective, violation = point.objective(C), point.risk - expected
                    entry = Iteration(
                        iteration=len(history) + 1,
                        objective=objective,
                        bound=bound,
                        gap=max(objective - bound, 0.0),
                        violation=violation,
                        planes=n_planes,
                        seconds=seconds,
                        solver=solution.backend,
                        note=solution.note,
                    )
                    history.append(entry)
                    uninformative = violation <= QP_SHARE * self.tol and point.objective(current_C) >= best.objective(current_C)
                    step = self._next_step(step, best, point, current_C, direction, large, uninformative)
                    # Stop by the certified gap.
                    good_enough = objective - bound <= C * self.tol
                    if good_enough or point.objective(current_C) <= best.objective(current_C):
                        best = point
                    gap = best.objective(current_C) - current_bound
                    if good_enough or (best.w.any() and best.objective(C) - bound <= C * self.tol):
                        reason = "converged"
                    stuck = uninformative and not (bound_improved or solution.accurate)
                    reason = reason or ("stalled" if stuck and current_C == C else "")
                    if callback is not None and callback(entry):
                        reason = reason or "callback"
                    reached = point.objective(current_C) - current_bound <= LOOSE_GAP * best.objective(current_C)
                    ended, last_gap = current_C < C and (stuck or reached or gap > SLOW_GAP_RATIO * last_gap), gap
        except KeyboardInterrupt:
            if not history:
                raise
            reason = "interrupted"
        best = best if reason == "converged" else self._best(C)
        certificate = Certificate(best.objective(C), min(bound, best.objective(C)))  # the bound may exceed it by rounding
        return Result(best.w, best.risk, certificate, history, reason or "max_iter")

    def add(self, w, plane):
        """Add the value and the plane of R at w to the points and working sets; return the `Point`."""
        weights, slope = self.risk.weights, np.atleast_2d(plane.slope)
        offset, value = np.atleast_1d(plane.offset), np.atleast_1d(plane.value)
        self.points.append(Point(w, float(weights @ value), combine(weights, slope)))
        self._merged.add(self.points[-1].slope[None], np.array([weights @ offset]))
        if self.one_slack_passes < math.inf:
            self._separate.add(slope, offset)
        return self.points[-1]

    def _best(self, C):
        return min(self.points, key=lambda point: point.objective(C))

    def _near_zero(self, zero, C, tolerance_left):
        """Return the longest w that R's convexity shows to be within the tolerance, as w = 0 is, which ties all documents."""
        shares = [tolerance_left / max(point.objective(C) - zero.objective(C), tolerance_left) for point in self.points]
        return max((share * point.w for share, point in zip(shares, self.points, strict=True)), key=lambda w: dot(w, w))

    def _working_set(self, planes, best, size):
        """Return the planes of one slack, or of many once the run is hard."""
        hard = size > FIRST_SIZE or not best.w.any()
        stay = planes is self._merged and len(self.points) <= self.one_slack_passes / (3 if hard else 1)
        return self._merged if stay else self._separate

    def _backend(self, planes, central):
        if self.solver != "auto":
            return self.solver
        return "osqp" if planes is self._merged else "interior" if central else "dual"

    def _continuation(self, C):
        """Return the size of C and the values of C of the continuation: only the last if there is more than one point."""
        zero = self.points[0]
        size = 0.0 if zero.w.any() else min(C * dot(zero.slope, zero.slope) / max(zero.risk, 1e-300), 1e300)
        n_smaller = 0
        if len(self.points) == 1 and size > FIRST_SIZE:
            n_smaller = round(math.log(size / FIRST_SIZE, C_FACTOR))
        return size, [*(C * FIRST_SIZE / size * C_FACTOR**i for i in range(n_smaller)), C]

    def _first_step(self, best, C, direction):
        """Return the step size that minimises a parabola with the curvature between the last two points, 1 at most."""
        other = next((point for point in reversed(self.points) if point is not best), best)
        difference, curvature = other.w - best.w, 0.0
        if difference.any():
            curvature = max(dot(best.slope - other.slope, difference) / dot(difference, difference), 0.0)  # < 0 is rounding
        slope, second_derivative = best.derivative(C, direction), (1.0 + C * curvature) * dot(direction, direction)
        return min(-slope / second_derivative, 1.0) if slope < 0.0 and second_derivative > 0.0 else 1.0

    def _next_step(self, step, best, point, C, direction, large, uninformative):
        """Return the step size at which the secant predicts the minimum; 1 after an uninformative step."""
        start, end = best.derivative(C, direction), point.derivative(C, direction)
        if uninformative or not start < end or start >= 0.0:
            return 1.0
        share = start / (start - end)
        if len(self.points) == 2 and share > STEP_CONFIRMED:
            # With two planes the next solution overshoots most; less so if this step was too short.
            return SECOND_STEP * (1 if large else 2) * (2 if share > 1.0 else 1)
        return min(step * share, 1.0)
