r"""Cutting planes for min_w 1/2 |w|^2 + C R(w), R convex, piecewise linear and at least 0.

The driver sees an object with ``plane(w) -> Plane``: the value of R at w and a plane under R that touches it there. R may be a
weighted sum of parts, R = sum_s weight_s R_s, with a slack and a plane for each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from structrank.solvers import qp
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
    seconds : mapping from str to float
        Where the time went; goes into the history.
    """

    slope: np.ndarray
    offset: np.ndarray
    value: np.ndarray
    seconds: Mapping[str, float] = field(default_factory=dict)


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
        At this iteration's w.
    bound : float
        Best lower bound on the optimum so far.
    gap : float
        objective - bound.
    violation : float
        R(w) minus what the planes so far say of it; training stops when this is at most tol.
    planes : int
        Planes in the working set.
    seconds : dict
        "qp", and what the risk reports: "scoring", "oracle".
    solver : str
        Who solved the QP.
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


# While there are few planes, a large C sends w far off to places that no plane knows. So C climbs by this factor, each time
# the planes describe R to the tolerance; in trials that took half the passes, and a fifteenth where it mattered most.
_CLIMB = 4.0


class CuttingPlanes:
    """Cutting planes over a risk; `step` for one iteration, `run` for all.

    Parameters
    ----------
    risk : object
        Has ``plane(w) -> Plane``, ``weights`` of shape (n_slacks,) and ``n_features``.
    C : float
    tol : float
        Stop when R(w) exceeds what the planes say of it by at most this.
    solver : str
        "osqp", "dual", "cvxpy" or "cvxpy:NAME".
    working_set : WorkingSet, default None
        Planes to start with; it is added to, so that runs with other C can share it.
    start : (n_features,) array, default None
        Where the first plane is made; None for 0, and for no first plane where the working set has some.
    climb_from : float, default None
        A C for which the working set is known to be good; None to start as low as one plane makes sense of.

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

    def __init__(self, risk, C, tol, solver="osqp", working_set=None, start=None, climb_from=None):
        self.risk, self.C, self.tol, self.solver = risk, C, tol, solver
        self.working_set = WorkingSet(risk.weights, risk.n_features) if working_set is None else working_set
        self.w = np.zeros(risk.n_features) if start is None else np.array(start, dtype=np.float64)
        self.bound = 0.0  # R is at least 0
        self.history = []
        if start is not None or not len(self.working_set):
            self._add(self._plane(self.w))
        # Many slacks have many planes: they describe R well enough from the start.
        climbs = risk.weights.shape[0] == 1
        self._stage_C = min(C, _CLIMB * climb_from if climb_from is not None else self._least_C()) if climbs else C
        self._expected_violation = 1.0
        self._best = None

    def step(self):
        """Solve the QP, evaluate the risk at its solution, add the new planes.

        Returns
        -------
        str
            Empty, or why this was the last step: "converged" or "stalled".
        """
        # A QP solved much finer than the planes describe R is wasted work; at the end it must be finer than tol.
        finest = 0.1 * self.tol
        accuracy = max(finest, 0.1 * self._expected_violation)
        started = time.perf_counter()
        problem, warm = self.working_set.problem(self._stage_C), (self.w, self.working_set.multipliers)
        tolerated = self._stage_C * max(finest, 0.3 * self._expected_violation)
        solution = qp.solve(problem, self._stage_C * accuracy, warm, self.solver, tolerated)
        seconds_qp = time.perf_counter() - started
        n_planes = len(self.working_set)
        self.working_set.record(solution.multipliers)

        self.w = solution.w
        plane = self._plane(self.w)
        value = float(self.risk.weights @ plane.value)
        violation = value - float(self.risk.weights @ solution.slacks)
        objective = 0.5 * float(self.w @ self.w) + self.C * value
        # A dual point that is feasible for a smaller C is feasible for this one, and may have room to grow.
        self.bound = max(self.bound, problem.at(self.C).feasible_dual(solution.multipliers)[1])
        self.history.append(
            Iteration(
                len(self.history) + 1, objective, self.bound, max(objective - self.bound, 0.0), violation, n_planes,
                {"qp": seconds_qp, **plane.seconds}, solution.backend, solution.note,
            )
        )  # fmt: skip
        if self._best is None or objective <= self._best[0]:
            self._best = (objective, self.w, plane.value)

        if violation > self.tol:
            self._expected_violation = violation
        elif self._stage_C < self.C:
            self._stage_C = min(self.C, _CLIMB * self._stage_C)
            self._expected_violation = 1.0
        elif solution.gap <= self.C * finest:
            self._best = (objective, self.w, plane.value)
            return "converged"
        elif accuracy > finest:
            self._expected_violation = 0.0
        else:
            return "stalled"
        # Without a margin, rounding would add planes that are there already.
        self._add(plane, plane.value > solution.slacks + 0.01 * self.tol)
        return ""

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
        reason = ""
        try:
            while not reason and len(self.history) < max_iter:
                reason = self.step()
                if callback is not None and callback(self.history[-1]) and not reason:
                    reason = "callback"
        except KeyboardInterrupt:
            if self._best is None:
                raise
            reason = "interrupted"
        objective, w, values = self._best
        # The bound may be above the objective by rounding.
        certificate = Certificate(objective, min(self.bound, objective))
        return Outcome(w, values, certificate, self.history, reason or "max_iter")

    def _plane(self, w):
        plane = self.risk.plane(w)
        return Plane(np.atleast_2d(plane.slope), np.atleast_1d(plane.offset), np.atleast_1d(plane.value), plane.seconds)

    def _add(self, plane, chosen=slice(None)):
        slacks = np.arange(plane.value.shape[0])
        self.working_set.add(plane.slope[chosen], plane.offset[chosen], slacks[chosen])

    def _least_C(self):
        """Give the C from which on the QP over the planes so far, taken as one, has no slack left."""
        share = self.risk.weights[self.working_set.slack_of]
        slope = share @ self.working_set.slopes
        least = float(share @ self.working_set.offsets) / max(float(slope @ slope), 1e-300)
        return max(least, 1e-9 * self.C)
