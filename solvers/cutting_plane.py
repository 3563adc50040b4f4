r"""Cutting planes for min_w 1/2 |w|^2 + C R(w), R convex, piecewise linear and at least 0.

The driver sees an object with ``plane(w) -> Plane``: the value of R at w and a plane under R that touches it there. R may be a
weighted sum of parts, R = sum_s weight_s R_s, with a slack and a plane for each.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from structrank.solvers import qp
from structrank.solvers.dual import combine
from structrank.solvers.working_set import WorkingSet


@dataclass(frozen=True)
class Plane:
    """A plane under each part of R: R_s(v) >= offset_s - slope_s.v for all v, with equality at the w it was made for.

    Attributes
    ----------
    slope : (n_slacks, n_features) or (n_features,) array
    offset : (n_slacks,) array or float
    value : (n_slacks,) array or float
        R_s(w).
    seconds : float
        How long it took to make.
    """

    slope: np.ndarray
    offset: np.ndarray
    value: np.ndarray
    seconds: float = 0.0


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum the result can be at most.

    Attributes
    ----------
    primal : float
        Objective at the returned w, with R evaluated exactly: an upper bound on the optimum.
    dual : float
        Value of a feasible dual point: a lower bound on the optimum, however roughly the QPs were solved.
    """

    primal: float
    dual: float

    @property
    def gap(self):
        """Upper bound minus lower bound."""
        return self.primal - self.dual

    @property
    def relative_gap(self):
        """Gap as a fraction of the upper bound."""
        return self.gap / self.primal if self.primal > 0 else 0.0


@dataclass(frozen=True)
class Iteration:
    """One line of the history.

    Attributes
    ----------
    iteration : int
    objective : float
        At this iteration's w; where no new one was visited, at the best so far.
    bound : float
        Best lower bound on the optimum so far.
    gap : float
        objective - bound.
    violation : float
        R(w) minus what the planes so far say of it.
    planes : int
        Planes in the working set.
    seconds : dict
        "qp" and "oracle"; that of the oracle is 0 where the QP's bound showed the best point so far to be good enough, and no
        other was visited.
    solver : str
        Who solved the QP; empty where there was none, as the step went back from where the last had ended.
    note : str
        What went wrong in the QP; empty where nothing did.
    """

    iteration: int
    objective: float
    bound: float
    gap: float
    violation: float
    planes: int
    seconds: dict
    solver: str
    note: str


@dataclass(frozen=True)
class Outcome:
    """What a run of cutting planes gives.

    Attributes
    ----------
    w : (n_features,) array
    values : (n_slacks,) array
        R_s(w).
    certificate : Certificate
    history : list of Iteration
    reason : str
        "converged", "max_iter", "callback", "interrupted" or "stalled" (no solver could solve the QP to the accuracy
        asked for).
    """

    w: np.ndarray
    values: np.ndarray
    certificate: Certificate
    history: list
    reason: str


@dataclass(frozen=True)
class Point:
    """A place where R is known.

    Attributes
    ----------
    w : (n_features,) array
    values : (n_slacks,) array
        R_s(w).
    risk : float
        R(w).
    slope : (n_features,) array
        Of the plane that touches R there: R(v) >= R(w) - slope.(v - w).
    """

    w: np.ndarray
    values: np.ndarray
    risk: float
    slope: np.ndarray

    @classmethod
    def of(cls, w, plane, weights):
        """Give the place where a plane was made; `weights` are those of the slacks."""
        slope, value = np.atleast_2d(plane.slope), np.atleast_1d(plane.value)
        return cls(w, value, float(weights @ value), combine(weights, slope))

    def objective(self, C):
        """Compute 1/2 |w|^2 + C R(w)."""
        return 0.5 * float(self.w @ self.w) + C * self.risk

    def steepness(self, C, direction):
        """Compute the derivative of the objective along a direction, as the plane sees it."""
        return float((self.w - C * self.slope) @ direction)

    def curvature_to(self, other):
        """Compute how much the slope of R changes on the way to another point, over the length of the way; 0 if that is 0."""
        way = other.w - self.w
        square = float(way @ way)
        # R is convex, so less than 0 is rounding.
        return max(float((self.slope - other.slope) @ way) / square, 0.0) if square > 0.0 else 0.0


# The QP need not be solved finer than a fraction of what is still missing ...
_QP_SHARE = 0.15
# ... but at the end finer than the tolerance.
_QP_FINEST = 0.1
# Planes that are idle may be dropped where the bound has risen by this share of what was missing. Where it does not, planes are
# too few, and a run that forgets them as fast as it finds new ones would not end.
_RISE_TO_DROP = 0.01
# After so many QPs that were too hard for the dual, it is not asked any more.
_TOO_HARD = 2
# Far from the optimum, solutions by interior points overshoot less: they lie amidst what the planes leave open, those of the
# dual in a corner of it. So the QPs are solved by them while the gap is more than this share of the objective, if features are
# not too many, and C is as many times the one for which the plane at 0, were it all of R, would bring R down to 0.
_CENTRAL_GAP, _CENTRAL_FEATURES, _CENTRAL_FROM = 0.5, 150, 10.0
# New planes are made where the objective should be least on the way from the best point to the solution of the QP, or farther:
# where it should be above that by this share of what is missing. Nearer by there is no news.
_NEWS = 0.04
# Where less than this share of a step would have been enough, and the objective has risen by more than _NEWS of what is
# missing, the next step goes back to where it would have been enough, without a QP.
_TOO_FAR = 0.6
# A first step of which this share was enough says little of how far the second should go: not far, for a large C (as above)
# least of all; if the first was short, farther.
_ABOUT_RIGHT = 0.8
_STRIDE_AFTER_RIGHT, _STRIDE_AFTER_SHORT = 0.1, 0.3
_STRIDE_AFTER_RIGHT_IF_LARGE, _STRIDE_AFTER_SHORT_IF_LARGE = 0.05, 0.1
# While there are few planes, a large C sends w far off to places that no plane knows. So a run that starts from nothing goes
# by way of smaller C, the first so large, measured as above, each next larger by this factor, if C itself is large enough ...
_FIRST_STAGE, _CLIMB, _CLIMB_FROM = 60.0, 10.0, 120.0
# ... until the gap there is this share of the objective, or a step leaves more than that share of the gap.
_CLIMB_GAP, _SLOW = 0.015, 0.3
# Where it is about 1, the first step goes to where the plane meets 0, and R, which bends before, is least on the way.
_ABOUT_ONE, _STRIDE_TO_BEND = (0.4, 4.0), 0.6


class CuttingPlanes:
    """Cutting planes over a risk; `step` for one iteration, `run` for all.

    Far from the optimum the QP's solution overshoots, the more so the larger C. So planes are made between the best point so
    far and the QP's solution, where the objective should be least: how far along, the slopes found at both ends of the last
    step tell (a secant). If that was much too far, the next plane is made where the secant has its zero, which takes no QP. For
    the same reason a run without earlier points climbs to a large C by way of smaller ones.

    Parameters
    ----------
    risk : object
        Has ``plane(w) -> Plane``, ``weights`` of shape (n_slacks,) and ``n_features``.
    C : float
    tol : float
        Stop when the gap is at most C tol.
    solver : str
        "auto", "dual", "interior", "osqp", "cvxpy" or "cvxpy:NAME"; "auto" asks the dual, and the interior-point method where
        C is large and the optimum far, and where a QP is too hard for the dual; after two such for all.
    working_set : WorkingSet, default None
        Planes to start with; it is added to, so that runs with other C can share it.
    points : list of Point, default None
        Where R is known; it is added to likewise. Without any, the first is made at `start`.
    start : (n_features,) array, default None
        Where the first plane is made; None for 0, and for no first plane where there are points.
    foreseen : (n_features,) array, default None
        Where the optimum is thought to be. If the points so far are not good enough, the next is this.

    Examples
    --------
    >>> import numpy as np
    >>> class Hinge:
    ...     weights, n_features = np.ones(1), 1
    ...     def plane(self, w):
    ...         wrong = float(w[0] < 1)
    ...         return Plane(slope=np.array([wrong]), offset=wrong, value=max(0.0, 1 - w[0]))
    >>> result = CuttingPlanes(Hinge(), C=10.0, tol=1e-6).run(max_iter=20)
    >>> round(float(result.w[0]), 4), round(result.certificate.primal, 4)
    (1.0, 0.5)
    """

    def __init__(self, risk, C, tol, solver="auto", working_set=None, points=None, start=None, foreseen=None):
        self.risk, self.C, self.tol, self.solver = risk, C, tol, solver
        self.working_set = WorkingSet(risk.weights, risk.n_features) if working_set is None else working_set
        self.points = [] if points is None else points
        self.bound = 0.0  # R is at least 0
        self.history = []
        if start is not None or not self.points:
            w = np.zeros(risk.n_features) if start is None else np.array(start, dtype=np.float64)
            self._visit(w)
        # The share of the way to the QP's solution where the objective should be least, and the curvature of R on the last way;
        # None where nothing is known of them.
        self._stride, self._curvature = 1.0 if len(self.points) == 1 or foreseen is not None else None, None
        first = self.points[0]
        size = 0.0 if first.w.any() else min(C * float(first.slope @ first.slope) / max(first.risk, 1e-300), 1e300)
        self._large = size > _CENTRAL_FROM
        self._central = self._large and solver == "auto" and risk.n_features <= _CENTRAL_FEATURES
        self._stages = np.array([C])  # the values of C that are still to climb to
        if self._only_zero_and(0):
            if size > _CLIMB_FROM:
                n_climbs = math.ceil(math.log(size / _CLIMB_FROM, _CLIMB))
                self._stages = np.append(C * (_FIRST_STAGE / size) * _CLIMB ** np.arange(n_climbs), C)
            elif _ABOUT_ONE[0] < size < _ABOUT_ONE[1]:
                self._stride = _STRIDE_TO_BEND
        self._stage_bound, self._stage_gap = 0.0, math.inf
        self._best = self._best_for(self._stage_C)
        self._warm, self._foreseen = self._best.w, foreseen
        self._back = None  # where the next step goes back to
        self._n_too_hard = 0
        self._reason = ""

    def _only_zero_and(self, n):
        """Whether R is known at 0 and n other places only."""
        return len(self.points) == 1 + n and not self.points[0].w.any()

    @property
    def _stage_C(self):
        """The C that the run has climbed to."""
        return float(self._stages[0])

    def _best_for(self, C):
        return min(self.points, key=lambda point: point.objective(C))

    @property
    def w(self):
        """The best point so far."""
        return self._best.w

    @property
    def objective(self):
        """The objective there."""
        return self._best.objective(self.C)

    def step(self):
        """Solve the QP and evaluate the risk near its solution, or go back where the last step went too far.

        Returns
        -------
        str
            Empty, or why this was the last step: "converged" or "stalled".
        """
        return self._go_on() if self._back is None else self._go_back()

    @property
    def _tolerated(self):
        """The gap that will do for the C that the run has climbed to."""
        C = self._stage_C
        return C * self.tol if C == self.C else max(C * self.tol, _CLIMB_GAP * self._best.objective(C))

    def _go_on(self):
        """Solve the QP, and evaluate the risk between the best point and its solution."""
        started = time.perf_counter()
        C, best, tolerated = self._stage_C, self._best.objective(self._stage_C), self._tolerated
        missing = best - self._stage_bound
        accuracy = max(_QP_FINEST * tolerated, _QP_SHARE * missing)
        problem = self.working_set.problem(C)
        central = self._central and missing > _CENTRAL_GAP * best
        backend = "interior" if central or self._n_too_hard >= _TOO_HARD else self.solver
        solution = qp.solve(problem, accuracy, (self._warm, self.working_set.multipliers), backend)
        self._n_too_hard += backend == "auto" and solution.backend == "interior"
        n_planes = len(self.working_set)
        self._warm = solution.w
        risen = solution.dual - self._stage_bound >= _RISE_TO_DROP * missing
        self._stage_bound = max(self._stage_bound, solution.dual)
        # A dual point that is feasible for a smaller C is feasible for this one, and may have room to grow.
        dual = solution.dual if C == self.C else problem.at(self.C).feasible_dual(solution.multipliers)[1]
        self.bound = max(self.bound, dual)
        # The new bound may show that the best point is good enough: then there is no need for another, but where it is 0, which
        # has learned nothing.
        to_spare = tolerated - (best - self._stage_bound)
        enough = to_spare >= 0.0 and self._best.w.any()
        towards = solution.w if self._foreseen is None else self._foreseen
        direction = towards - self._best.w
        stride = 0.0 if enough else self._choose_stride(direction)
        w = towards if stride == 1.0 else self._best.w + stride * direction
        if C == self.C and to_spare > 0.0 and not enough and self.history:
            # R is convex: some way from 0 towards the last point, which was worse, is good enough as well.
            last = self.points[-1]
            w = to_spare / max(last.objective(C) - best, to_spare) * last.w
        expected = float(self.risk.weights @ problem.slacks(w))
        self.working_set.record(solution.multipliers, may_drop=risen)  # to drop planes ends the problem
        seconds_qp = time.perf_counter() - started

        point, seconds_oracle = (self._best, 0.0) if enough else self._visit(w)
        self._note(point, expected, n_planes, {"qp": seconds_qp, "oracle": seconds_oracle}, solution.backend, solution.note)
        if self._foreseen is not None:
            self._foreseen = self._stride = None
        elif not enough:
            share = self._learn_stride(point, direction, stride)
            if share < _TOO_FAR and point.objective(C) - best > _NEWS * (best - self._stage_bound):
                self._back = self._best.w + share * (w - self._best.w)
        gap = min(point.objective(C), best) - self._stage_bound
        slow, self._stage_gap = gap > _SLOW * self._stage_gap, gap
        if not self._settle(point, slow) and solution.gap > accuracy and point.risk - expected <= 0.1 * self.tol:
            self._reason = "stalled"
        return self._reason

    def _go_back(self):
        """Evaluate the risk where the last step should have ended."""
        started = time.perf_counter()
        w, self._back = self._back, None
        expected = float(self.risk.weights @ self.working_set.problem(self._stage_C).slacks(w))
        n_planes, seconds = len(self.working_set), time.perf_counter() - started
        point, seconds_oracle = self._visit(w)
        self._note(point, expected, n_planes, {"qp": seconds, "oracle": seconds_oracle}, "", "")
        self._settle(point, slow=False)
        return self._reason

    def _note(self, point, expected, n_planes, seconds, solver, note):
        """Add a line to the history."""
        objective = point.objective(self.C)
        gap, violation = max(objective - self.bound, 0.0), point.risk - expected
        self.history.append(
            Iteration(len(self.history) + 1, objective, self.bound, gap, violation, n_planes, seconds, solver, note)
        )

    def _settle(self, point, slow):
        """Take a point that is better. If it is good enough, or the stage `slow`, go on to a larger C or end, and say so."""
        C = self._stage_C
        reached = point.objective(C) - self._stage_bound <= self._tolerated
        if reached or point.objective(C) <= self._best.objective(C):
            self._best = point
        if C == self.C:
            self._reason = "converged" if reached else ""
        elif self._best_for(self.C).objective(self.C) - self.bound <= self.C * self.tol:
            self._climb(len(self._stages) - 1)  # nothing on the way is of use any more
            return True
        elif reached or slow:
            self._climb(1)
            return True
        return reached

    def _climb(self, n_steps):
        """Go on to a larger C, that many stages on."""
        self._stages = self._stages[n_steps:]
        C, planes = self._stage_C, self.working_set
        self._stage_bound = self.bound if C == self.C else planes.problem(C).feasible_dual(planes.multipliers)[1]
        self._best, self._stage_gap, self._stride, self._back = self._best_for(C), math.inf, None, None

    def state(self):
        """Give all that the further course depends on, as numbers, texts and arrays."""
        points = {
            name: np.stack([getattr(point, name) for point in self.points]) for name in ("w", "values", "slope", "risk")
        }
        return {
            "bound": self.bound,
            "stages": self._stages,
            "stage bound": self._stage_bound,
            "stage gap": self._stage_gap,
            "best": next(number for number, point in enumerate(self.points) if point is self._best),
            "warm": self._warm,
            "stride": self._stride,
            "curvature": self._curvature,
            "foreseen": self._foreseen,
            "back": self._back,
            "too hard": self._n_too_hard,
            "reason": self._reason,
            "history": self.history,
            "points": points,
            "planes": self.working_set.state(),
        }

    def restore(self, state):
        """Take over what `state` gave."""
        self.bound, self._warm, self._foreseen, self._back = (state[name] for name in ("bound", "warm", "foreseen", "back"))
        self._stride, self._curvature = state["stride"], state["curvature"]
        self._stages, self._stage_bound, self._stage_gap = (state[name] for name in ("stages", "stage bound", "stage gap"))
        self._n_too_hard, self._reason, self.history = state["too hard"], state["reason"], list(state["history"])
        points = state["points"]
        self.points[:] = [
            Point(w, values, float(risk), slope)
            for w, values, risk, slope in zip(*(points[name] for name in ("w", "values", "risk", "slope")), strict=True)
        ]
        self._best = self.points[state["best"]]
        self.working_set.restore(state["planes"])

    def run(self, max_iter, callback=None):
        """Step until the tolerance is reached.

        Parameters
        ----------
        max_iter : int
        callback : callable, default None
            Called with each `Iteration`; a true return value stops the run.

        Returns
        -------
        Outcome
        """
        reason = self._reason
        try:
            while not reason and len(self.history) < max_iter:
                reason = self.step()
                if callback is not None and callback(self.history[-1]) and not reason:
                    reason = "callback"
        except KeyboardInterrupt:
            if not self.history:
                raise
            reason = "interrupted"
        self._best = self._best if reason == "converged" else self._best_for(self.C)
        objective = self._best.objective(self.C)
        # The bound may be above the objective by rounding.
        certificate = Certificate(objective, min(self.bound, objective))
        return Outcome(self._best.w, self._best.values, certificate, self.history, reason or "max_iter")

    def _visit(self, w):
        """Evaluate the risk at w, and add what is found to the points and planes."""
        plane = self.risk.plane(w)
        point = Point.of(w, plane, self.risk.weights)
        self.points.append(point)
        self.working_set.add(np.atleast_2d(plane.slope), np.atleast_1d(plane.offset), np.arange(point.values.shape[0]))
        return point, plane.seconds

    def _choose_stride(self, direction):
        """Give how far to go: to where the objective should be least, and at least as far as there is news."""
        best, C, square = self._best, self._stage_C, float(direction @ direction)
        if self._stride is None and self._curvature is None:
            last_other = next((point for point in reversed(self.points) if point is not best), best)
            self._curvature = best.curvature_to(last_other)
        bends = (1.0 + C * self._curvature) * square if self._curvature is not None else 0.0
        if self._stride is None:
            falls = best.steepness(C, direction)
            self._stride = min(-falls / bends, 1.0) if falls < 0.0 else 1.0
        missing = max(best.objective(C) - self._stage_bound, 0.0)
        news = math.sqrt(2.0 * _NEWS * missing / bends) if bends > 0.0 else 0.0
        return min(max(self._stride, news), 1.0)

    def _learn_stride(self, point, direction, stride):
        """Set the stride to where the last step should have ended, by the slopes at both its ends; gives that as its share."""
        at_best = self._best.steepness(self._stage_C, direction)
        at_point = point.steepness(self._stage_C, direction)
        if not (at_best < 0.0 and at_point > at_best):
            self._stride = 1.0
            return 1.0
        share = at_best / (at_best - at_point)
        self._curvature = self._best.curvature_to(point)
        if self._only_zero_and(1) and share > _ABOUT_RIGHT:
            # With two planes a slack the next solution overshoots by most, unless this one did not go far enough.
            if self._large:
                self._stride = _STRIDE_AFTER_RIGHT_IF_LARGE if share <= 1.0 else _STRIDE_AFTER_SHORT_IF_LARGE
            else:
                self._stride = _STRIDE_AFTER_RIGHT if share <= 1.0 else _STRIDE_AFTER_SHORT
        else:
            self._stride = min(stride * share, 1.0)
        return share
