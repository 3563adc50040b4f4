r"""The ramp bound: tighter than the convex one, and not vacuous on long lists.

The convex risk compares the most violated ranking with the ideal ranking; on long lists no w makes the ideal ranking score
well, and the bound stays above 1. The ramp compares it with the ranking that w predicts,

.. math:: \max_y [w \cdot \phi(y) + \Delta(y)] - \max_y w \cdot \phi(y),

which lies between the loss of the prediction and the convex bound. With R(w) the convex risk and
P(w) = max_y w.phi(y) - w.phi(y*), averaged likewise, it is R(w) - P(w), a difference of convex functions. The convex-concave
procedure linearises P, solves the resulting convex problem, and repeats: the objective falls with every round.

The ranking does not depend on |w|, but the bound does: as |w| grows, the bound becomes tighter and less smooth. So there is a
continuation in C, whose second value starts from the w of the first, and the w of smallest training loss of all rounds is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support.saveable import record
from structrank.solvers import CuttingPlanes, Plane, Result

# Chosen by training loss and passes on synthetic data (notebook 15): twice as many gain little and cost twice.
_VALUES_OF_C, _C_FACTOR, _MOST_ROUNDS = 2, 30.0, 2
# A round ends when the objective has fallen by this share of its distance to the bound ...
_ENOUGH = 0.02
# ... and another at the same C follows where it fell by this share of itself.
_WORTH_ANOTHER = 0.1
# Points whose planes the next round starts from; earlier points are too far away to matter.
_KEPT_POINTS = 12


@record
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
        R(w) - P(w), an upper bound on `loss`; with feature map phi_mrr, on the loss of the ranking of largest w.phi instead.
    loss : float
        Mean training loss of the order by scores; relevant documents come after irrelevant documents of the same score.
    norm : float
        Norm of w.
    passes : int
        Passes over the data.
    """

    C: float
    objective: float
    risk: float
    loss: float
    norm: float
    passes: int


class LinearisedRisk:
    """R(w) minus a plane of P, which a round minimises.

    Parameters
    ----------
    risk : Risk
    slope : (n_slacks, n_features) array
        P_s(w) >= -slope_s.w, with equality where the plane was made.
    """

    def __init__(self, risk, slope):
        self.risk, self.slope = risk, slope
        self.weights, self.n_features = risk.weights, risk.n_features
        self.evaluated = []  # (w, plane of R)

    def plane(self, w):
        """Evaluate at w; see `structrank.training.risk.Risk.plane`."""
        self.evaluated.append((w, self.risk.plane(w)))
        return self.linearised(*self.evaluated[-1])

    def linearised(self, w, plane):
        """Return a plane of R as one of this risk."""
        return Plane(plane.slope - self.slope, plane.offset, plane.value + self.slope @ w, plane.seconds)


def train_ramp(risk, start, C, options, max_iter, callback=None):
    """Train on the ramp bound.

    Parameters
    ----------
    risk : Risk
    start : (n_features,) array
        A w that ranks well; not 0, where the ramp is as vacuous as the convex bound.
    C : float
        First C of the continuation.
    options : dict
        Options of `CuttingPlanes` for the convex problems.
    max_iter : int
        Maximum number of passes over the data.
    callback : callable, default None
        Called with each iteration of each convex problem; a true return value stops training.

    Returns
    -------
    result : Result
        Its certificate and history are those of the last convex problem.
    kept : RampRound
        The round that ended at the returned w.
    """
    run = _Run(risk, options, max_iter, callback)
    place = run.evaluate(start)
    rounds = [_describe(place, C, risk.weights, 2)]
    w, kept = place.w, rounds[0]
    try:
        for current_C in (C * _C_FACTOR**number for number in range(_VALUES_OF_C)):
            for reached in run.rounds(place, current_C):
                place = reached
                rounds.append(_describe(place, current_C, risk.weights, run.last_passes))
                if rounds[-1].loss < kept.loss - 1e-9:
                    w, kept = place.w, rounds[-1]
            if run.reason:
                break
    except KeyboardInterrupt:
        if run.last is None:
            raise
        run.reason = "interrupted"
    reason = run.reason or "converged"
    return Result(w, kept.risk, run.last.certificate, run.last.history, reason, tuple(rounds)), kept


@dataclass(frozen=True)
class _Place:
    """A w with the planes of R and of P there."""

    w: np.ndarray
    plane: Plane
    prediction: Plane

    def values(self):
        return self.plane.value - self.prediction.value

    def objective(self, C, weights):
        return 0.5 * float(self.w @ self.w) + C * float(weights @ self.values())


def _describe(place, C, weights, passes):
    risk, loss = float(weights @ place.values()), float(weights @ place.prediction.offset)
    return RampRound(C, place.objective(C, weights), risk, loss, float(np.linalg.norm(place.w)), passes)


class _Run:
    """The rounds of one training."""

    def __init__(self, risk, options, max_iter, callback):
        self.risk, self.options, self.max_iter, self.callback = risk, options, max_iter, callback
        self.known = []  # (w, plane of R)
        self.passes = self.last_passes = 0  # in all, and in the last round
        self.reason = ""
        self.last = None

    def evaluate(self, w):
        """Evaluate R and P at w."""
        plane = self.risk.plane(w)
        self.known.append((w, plane))
        self.passes += 2
        return _Place(w, plane, self.risk.plane(w, "prediction"))

    def rounds(self, place, C):
        """Run rounds for one C until the objective stops falling, or predictions stay the same; yield each place."""
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
        linearised = LinearisedRisk(self.risk, place.prediction.slope)
        driver = CuttingPlanes(linearised, **self.options)
        for w, plane in self.known:
            driver.add(w, linearised.linearised(w, plane))
        start = best = place.objective(C, self.risk.weights)

        def enough(iteration):
            nonlocal best
            best = min(best, iteration.objective)
            if self.callback is not None and self.callback(iteration):
                self.reason = "callback"
            # The next round's plane of P is worth more than the last digits of this round's optimum.
            return self.reason or start - best >= _ENOUGH * (start - iteration.bound)

        self.last = driver.run(C, max(1, self.max_iter - self.passes), callback=enough)
        self.last_passes = len(linearised.evaluated) + 1
        self.passes += self.last_passes
        if self.last.reason == "interrupted" or self.passes >= self.max_iter:
            self.reason = "interrupted" if self.last.reason == "interrupted" else "max_iter"
        evaluated = [*self.known, *linearised.evaluated]
        reached = next(known for known in reversed(evaluated) if known[0] is self.last.w)
        self.known = evaluated[-_KEPT_POINTS:]
        if all(known is not reached for known in self.known):
            self.known[0] = reached  # where the next round starts
        return _Place(*reached, self.risk.plane(self.last.w, "prediction"))
