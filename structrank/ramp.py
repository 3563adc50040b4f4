r"""The ramp bound: tighter than the convex one, and not vacuous on long lists.

The convex risk compares the most violated ranking with the ideal one; on long lists no w makes the ideal ranking score well,
and the bound stays above 1. The ramp compares it with what w predicts,

.. math:: \max_y [w \cdot \phi(y) + \Delta(y)] - \max_y w \cdot \phi(y),

which lies between the loss of the prediction and the convex bound. With R(w) the convex risk and
P(w) = max_y w.phi(y) - w.phi(y*), averaged likewise, it is R(w) - P(w), a difference of convex functions. The convex-concave
procedure puts a plane of P in its place, solves the convex rest, and repeats: the objective falls with every round.

The ranking does not depend on the length of w, but the bound does: it tightens as w grows, and becomes rugged. So C climbs,
the second stage starting from where the first ended, and of all rounds the w whose predictions have the least training loss is
kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank.solvers.cutting_plane import CuttingPlanes, Plane, Point
from structrank.solvers.working_set import WorkingSet

# Chosen by training loss and passes on made-up data (see notebook 15): twice the rounds and stages gain little, and cost twice.
_STAGES = 2
_CLIMB = 30.0
_MOST_ROUNDS = 2
# A round ends when the objective has fallen by this share of what the bound says it could ...
_ENOUGH = 0.02
# ... and another at the same C follows where it fell by this share of itself.
_WORTH_ANOTHER = 0.1
# Points whose planes the next round starts from; those of earlier rounds lie too far off to matter.
_KEPT_POINTS = 12


@dataclass(frozen=True)
class RampRound:
    """One round of the convex-concave procedure.

    Attributes
    ----------
    C : float
        Weight of the risk in this round.
    objective : float
        1/2 |w|^2 + C (R(w) - P(w)) after the round; within one C it never rises.
    risk : float
        R(w) - P(w), an upper bound on `loss`; with the map `mrr`, on the loss of the ranking of largest w.phi instead.
    loss : float
        Mean training loss of the order by scores, in which good documents come after bad ones of the same score.
    norm : float
        Length of w.
    passes : int
        Over the data.
    """

    C: float
    objective: float
    risk: float
    loss: float
    norm: float
    passes: int


@dataclass(frozen=True)
class RampOutcome:
    """What training on the ramp bound gives.

    Attributes
    ----------
    w : (n_features,) array
    kept : RampRound
        After which w was what is given here.
    rounds : list of RampRound
        The first is the start, without any round made.
    convex : Outcome
        Of the last convex problem.
    reason : str
        "converged", "max_iter", "callback" or "interrupted".
    """

    w: np.ndarray
    kept: RampRound
    rounds: list
    convex: object
    reason: str


@dataclass(frozen=True)
class _Place:
    """A w with all that is known there: planes of R and of P."""

    w: np.ndarray
    plane: Plane
    prediction: Plane

    def values(self):
        return self.plane.value - self.prediction.value

    def objective(self, C, weights):
        return 0.5 * float(self.w @ self.w) + C * float(weights @ self.values())

    def loss(self, weights):
        return float(weights @ self.prediction.offset)


class TiltedRisk:
    """R(w) with a plane of P taken off: what a round minimises.

    Parameters
    ----------
    risk : Risk
    tilt : (n_slacks, n_features) array
        P_s(w) is at least -tilt_s.w, with equality where the plane was made.
    """

    def __init__(self, risk, tilt):
        self.risk, self.tilt = risk, tilt
        self.weights, self.n_features = risk.weights, risk.n_features
        self.visited = []

    def plane(self, w):
        """Evaluate at w; see `structrank.risk.Risk.plane`."""
        self.visited.append((w, self.risk.plane(w)))
        return self.tilted(*self.visited[-1])

    def tilted(self, w, plane):
        """Give a plane of R as one of this risk."""
        return Plane(plane.slope - self.tilt, plane.offset, plane.value + self.tilt @ w, plane.seconds)


def train_ramp(risk, start, C, tol, solver, max_iter, callback=None):
    """Train on the ramp bound.

    Parameters
    ----------
    risk : Risk
    start : (n_features,) array
        A w that ranks well; not 0, where the ramp is as flat as the convex bound.
    C : float
        Where the climb of C begins.
    tol, solver, max_iter
        Of the convex problems; `max_iter` bounds the passes over the data of all together.
    callback : callable, default None
        Called with each iteration of each convex problem; a true return value stops training.

    Returns
    -------
    RampOutcome
    """
    run = _Run(risk, tol, solver, max_iter, callback)
    place = run.visit(start)
    rounds = [_describe(place, C, risk.weights, 2)]
    w, kept = place.w, rounds[0]
    try:
        for stage in range(_STAGES):
            stage_C = C * _CLIMB**stage
            for reached in run.stage(place, stage_C):
                place = reached
                rounds.append(_describe(place, stage_C, risk.weights, run.last_passes))
                if rounds[-1].loss < kept.loss - 1e-9:
                    w, kept = place.w, rounds[-1]
            if run.reason:
                break
    except KeyboardInterrupt:
        if run.last is None:
            raise
        run.reason = "interrupted"
    return RampOutcome(w, kept, rounds, run.last, run.reason or "converged")


def _describe(place, C, weights, passes):
    risk = float(weights @ place.values())
    return RampRound(C, place.objective(C, weights), risk, place.loss(weights), float(np.linalg.norm(place.w)), passes)


class _Run:
    """The rounds of one training."""

    def __init__(self, risk, tol, solver, max_iter, callback):
        self.risk, self.tol, self.solver, self.max_iter, self.callback = risk, tol, solver, max_iter, callback
        self.known = []  # (w, plane of R)
        self.passes = self.last_passes = 0  # in all, and in the last round
        self.reason = ""
        self.last = None

    def visit(self, w):
        """Evaluate R and P at w."""
        plane = self.risk.plane(w)
        self.known.append((w, plane))
        self.passes += 2
        return _Place(w, plane, self.risk.prediction(w))

    def stage(self, place, C):
        """Make rounds for one C until the objective falls no more, or predictions stay the same; yield each place."""
        for _ in range(_MOST_ROUNDS):
            before, place = place, self._round(place, C)
            start = before.objective(C, self.risk.weights)
            fall = start - place.objective(C, self.risk.weights)
            if fall <= 0.0:
                return
            yield place
            same = np.array_equal(place.prediction.slope, before.prediction.slope)
            if fall <= _WORTH_ANOTHER * start or same or self.reason:
                return

    def _round(self, place, C):
        tilted = TiltedRisk(self.risk, place.prediction.slope)
        weights = self.risk.weights
        working_set, points = WorkingSet(weights, self.risk.n_features), []
        for w, plane in self.known:
            plane = tilted.tilted(w, plane)
            working_set.add(plane.slope, plane.offset, np.arange(weights.shape[0]))
            points.append(Point.of(w, plane, weights))
        driver = CuttingPlanes(tilted, C, self.tol, self.solver, working_set, points)
        start = place.objective(C, weights)

        def enough(iteration):
            if self.callback is not None and self.callback(iteration):
                self.reason = "callback"
            # The next round's plane of P is worth more than the last digits of this one's optimum.
            return self.reason or start - driver.objective >= _ENOUGH * (start - driver.bound)

        self.last = driver.run(max(1, self.max_iter - self.passes), enough)
        self.last_passes = len(tilted.visited) + 1
        self.passes += self.last_passes
        if self.last.reason == "interrupted" or self.passes >= self.max_iter:
            self.reason = "interrupted" if self.last.reason == "interrupted" else "max_iter"
        visited = [*self.known, *tilted.visited]
        reached = next(known for known in reversed(visited) if known[0] is self.last.w)
        self.known = visited[-_KEPT_POINTS:]
        if all(known is not reached for known in self.known):
            self.known[0] = reached  # where the next round starts
        return _Place(*reached, self.risk.prediction(self.last.w))
