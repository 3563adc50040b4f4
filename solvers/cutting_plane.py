r"""Cutting planes for min_w Omega(w) + C R(w), R convex, piecewise linear and at least 0 (KDD 2008, section 2.3).

The driver sees an object with ``plane(w) -> Plane``: the value of R at w and a plane under R that touches it there. R may be
a weighted sum of parts, R = sum_s weight_s R_s, with a slack and a plane for each. The penalty Omega is 1/2 |w|^2 or another
of `structrank.solvers.penalties`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structrank.solvers.backends import interior, solve
from structrank.solvers.penalties import RIDGE, SeparablePenalty
from structrank.solvers.results import Certificate, Iteration, Result
from structrank.solvers.vectors import combine, dot
from structrank.solvers.working_set import WorkingSet

# Notebook 16 measures passes and time without each rule. The size of C is C |R'(0)|^2 / R(0), with the gradient at w = 0.
ONE_SLACK_PASSES = 16  # passes with one slack before a run goes over to many; a third of them if it is hard
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
    penalty : SeparablePenalty
        Omega.
    """

    w: np.ndarray
    risk: float
    slope: np.ndarray
    penalty: SeparablePenalty = RIDGE

    def objective(self, C):
        """Compute Omega(w) + C R(w)."""
        return self.penalised + C * self.risk

    @cached_property
    def penalised(self):
        """Omega(w)."""
        return self.penalty.value(self.w)

    def derivative(self, C, direction):
        """Compute the directional derivative of the objective, by the plane."""
        return self.penalty.derivative(self.w, direction) - C * dot(self.slope, direction)


class CuttingPlanes:
    """Cutting planes over a risk, for one C after another: points and planes do not depend on C and are shared.

    The QPs have one slack for all of R at first, and in a long or hard run a slack for each part of R.

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
        the continuation, or the penalty's own minimiser, as w = 0, is still the best point.
    penalty : SeparablePenalty, default ``1/2 |w|^2``
        Omega.

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

    def __init__(self, risk, tol, solver="auto", one_slack_passes=ONE_SLACK_PASSES, penalty=RIDGE):
        self.risk, self.tol, self.solver, self.one_slack_passes = risk, tol, solver, one_slack_passes
        self.penalty, self.points = penalty, []
        self.merged, self.separate = (WorkingSet(one, risk.n_features, penalty) for one in (np.ones(1), risk.weights))

    def run(self, C, max_iter=1000, start=None, callback=None):
        """Minimise ``Omega(w) + C R(w)``.

        Parameters
        ----------
        C : float
        max_iter : int
        start : (n_features,) array, default None
            First point at which to evaluate R; None for the minimiser of Omega, or for the points so far if there are any.
        callback : callable, default None
            Called with each `Iteration`; a true return value stops the run.

        Returns
        -------
        Result
        """
        if start is not None or not self.points:
            w = self.start if start is None else start
            self.add(w, self.risk.plane(w))
        run = Run(self, C, max_iter, callback)
        try:
            for current_C in run.continuation():
                run.descend(current_C)
                if run.reason:
                    break
        except KeyboardInterrupt:
            if not run.history:
                raise
            run.reason = "interrupted"
        return run.result()

    @cached_property
    def start(self):
        """The minimiser of Omega."""
        return self.penalty.minimiser(np.zeros(self.risk.n_features))

    def add(self, w, plane):
        """Add the value and the plane of R at w to the points and working sets; return the `Point`."""
        weights, slope = self.risk.weights, np.atleast_2d(plane.slope)
        offset, value = np.atleast_1d(plane.offset), np.atleast_1d(plane.value)
        self.points.append(Point(w, float(weights @ value), combine(weights, slope), self.penalty))
        self.merged.add(self.points[-1].slope[None], np.array([weights @ offset]))
        if self.one_slack_passes < math.inf:
            self.separate.add(slope, offset)
        return self.points[-1]

    def best(self, C):
        """Return the point of least objective."""
        return min(self.points, key=lambda point: point.objective(C))


class Run:
    """A run for one C: its best point, its lower bound on the optimum, its history, and why it ended."""

    def __init__(self, driver, C, max_iter, callback):
        self.driver, self.C, self.max_iter, self.callback = driver, C, max_iter, callback
        self.planes, self.history, self.reason = driver.merged, [], ""
        self.bound = driver.penalty.value(driver.start)  # R is at least 0
        zero = driver.points[0]
        self.size = 0.0 if self._has_moved(zero) else min(C * dot(zero.slope, zero.slope) / max(zero.risk, 1e-300), 1e300)

    def continuation(self):
        """Return the values of C to solve for: a large C is reached through smaller ones, unless points are known already."""
        n_smaller = 0
        if len(self.driver.points) == 1 and self.size > FIRST_SIZE:
            n_smaller = round(math.log(self.size / FIRST_SIZE, C_FACTOR))
        return [*(self.C * FIRST_SIZE / self.size * C_FACTOR**i for i in range(n_smaller)), self.C]

    def descend(self, C):
        """Evaluate R between the best point and the solution of the QP, until the gap is small or falls too slowly.

        Far from the optimum that solution overshoots, more so for a larger C. So R is evaluated where the directional
        derivatives at both ends of the last step predict the minimum (a secant).
        """
        self.best, step, last_gap = self.driver.best(C), None, math.inf
        w, planes = self.best.w, self._choose_planes()
        bound = max(planes.feasible_dual(C, planes.multipliers)[1], self.bound if C == self.C else 0.0)
        while not self.reason and len(self.history) < self.max_iter:
            started, last_planes, planes = time.perf_counter(), planes, self._choose_planes()
            solution = self._solve(C, bound, w)
            improved, bound, w = solution.dual > bound, max(bound, solution.dual), solution.w
            direction = w - self.best.w
            if step is None or planes is not last_planes:
                step = self._first_step(C, direction)
            point = self._evaluate(self.driver.penalty.between(self.best.w, w, step), solution, started)
            lower = point.objective(C) < self.best.objective(C)
            informative = lower or self.history[-1].violation > QP_SHARE * self.driver.tol
            step = self._next_step(step, point, C, direction, informative)
            stuck = not (informative or improved or solution.accurate)
            self._judge(point, C, stuck and C == self.C)
            gap = self.best.objective(C) - bound
            reached = point.objective(C) - bound <= LOOSE_GAP * self.best.objective(C)
            if C < self.C and (stuck or reached or gap > SLOW_GAP_RATIO * last_gap):
                break
            last_gap = gap

    def result(self):
        """Return the best point with its certificate."""
        best = self.best if self.reason == "converged" else self.driver.best(self.C)
        objective = best.objective(self.C)
        certificate = Certificate(objective, min(self.bound, objective))  # the bound may exceed it by rounding
        return Result(best.w, best.risk, certificate, self.history, self.reason or "max_iter")

    def _choose_planes(self):
        """Return the planes of one slack, or of many from some number of passes on, a third of it if the run is hard."""
        hard = self.size > FIRST_SIZE or not self._has_moved(self.best)
        if len(self.driver.points) > self.driver.one_slack_passes / (3 if hard else 1):
            self.planes = self.driver.separate
        return self.planes

    def _solve(self, C, bound, w):
        """Solve the QP to an accuracy proportional to the gap, and raise the bound of the run."""
        driver, objective, backend = self.driver, self.best.objective(C), self.driver.solver
        gap = objective - bound
        if backend == "auto":
            central = self.size > LARGE_SIZE and gap > CENTRAL_GAP * objective and interior.is_cheap(self.planes)
            backend = "osqp" if self.planes is driver.merged else "interior" if central else "dual"
        solution = solve(self.planes, C, QP_SHARE * max(gap, C * driver.tol), w, backend)
        self.planes.multipliers[:] = solution.multipliers
        # A dual point that is feasible for a smaller C is feasible for the C of the run, and can be scaled up.
        dual = solution.dual if C == self.C else self.planes.feasible_dual(self.C, solution.multipliers)[1]
        self.bound = max(self.bound, dual)
        return solution

    def _evaluate(self, target, solution, started):
        """Evaluate R at the target, unless the best point is within the tolerance; add to the history, return the point."""
        point, left, seconds = self.best, self._left(self.best), 0.0
        if left > 0.0 and self.history and self._is_tied(point):
            target = self._near_zero(left)
        expected, n_planes = float(self.planes.weights @ self.planes.slacks(target)), len(self.planes)
        qp_seconds = time.perf_counter() - started
        if left < 0.0 or self._is_tied(point):
            plane = self.driver.risk.plane(target)
            point, seconds = self.driver.add(target, plane), plane.seconds
        objective = point.objective(self.C)
        gap, seconds = max(objective - self.bound, 0.0), {"qp": qp_seconds, "oracle": seconds}
        rest = point.risk - expected, n_planes, seconds, solution.backend, solution.note
        self.history.append(Iteration(len(self.history) + 1, objective, self.bound, gap, *rest))
        return point

    def _judge(self, point, C, stalled):
        """Keep the point if it is the best, or within the tolerance; decide whether the run has ended."""
        if self._left(point) >= 0.0 or point.objective(C) <= self.best.objective(C):
            self.best = point
        # At w = 0 all documents are tied: if it is within the tolerance, so are other points.
        if self._left(self.best) >= 0.0 and (self.best is point or not self._is_tied(self.best)):
            self.reason = "converged"
        elif stalled:
            self.reason = "stalled"
        if self.callback is not None and self.callback(self.history[-1]):
            self.reason = self.reason or "callback"

    def _has_moved(self, point):
        return not np.array_equal(point.w, self.driver.start)

    def _is_tied(self, point):
        """Return whether w = 0 at a point, unless the penalty makes zeros: then w = 0 is a result as others are."""
        return self.driver.penalty.in_span and not point.w.any()

    def _left(self, point):
        """Return how much of the tolerance the gap of a point leaves."""
        return self.C * self.driver.tol - (point.objective(self.C) - self.bound)

    def _near_zero(self, left):
        """Return the longest w that R's convexity shows to be within the tolerance, as w = 0 is."""
        points, zero = self.driver.points, self.best
        shares = [left / max(point.objective(self.C) - zero.objective(self.C), left) for point in points]
        return max((share * point.w for share, point in zip(shares, points, strict=True)), key=lambda w: dot(w, w))

    def _first_step(self, C, direction):
        """Return the step size that minimises a parabola with the curvature between the last two points, 1 at most."""
        best = self.best
        other = next((point for point in reversed(self.driver.points) if point is not best), best)
        difference, curvature = other.w - best.w, 0.0
        if difference.any():
            curvature = max(dot(best.slope - other.slope, difference) / dot(difference, difference), 0.0)  # < 0 is rounding
        slope, second_derivative = best.derivative(C, direction), (1.0 + C * curvature) * dot(direction, direction)
        return min(-slope / second_derivative, 1.0) if slope < 0.0 and second_derivative > 0.0 else 1.0

    def _next_step(self, step, point, C, direction, informative):
        """Return the step size at which the secant predicts the minimum; 1 after an uninformative step."""
        start, end = self.best.derivative(C, direction), point.derivative(C, direction)
        if not informative or not start < end or start >= 0.0:
            return 1.0
        share = start / (start - end)
        if len(self.driver.points) == 2 and share > STEP_CONFIRMED:
            # With two planes the next solution overshoots most; less so if this step was too short.
            return SECOND_STEP * (1 if self.size > LARGE_SIZE else 2) * (2 if share > 1.0 else 1)
        return min(step * share, 1.0)
