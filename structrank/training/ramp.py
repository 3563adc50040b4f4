r"""Bounds that are differences of convex functions: the ramp bound, and the bound with ties of ideal rankings ordered by score.

The convex risk compares the most violated ranking with the ideal ranking; on long lists no w makes the ideal ranking score
well, and the bound stays above 1. The ramp compares it with the ranking that w predicts,

.. math:: \max_y [w \cdot \phi(y) + \Delta(y)] - \max_y w \cdot \phi(y),

which lies between the loss of the prediction and the convex bound. With R(w) the convex risk and
P(w) = max_y w.phi(y) - w.phi(y*), averaged likewise, it is R(w) - P(w), a difference of convex functions. The convex-concave
procedure linearises P, solves the resulting convex problem, and repeats: the objective falls with every round.

The ranking does not depend on |w|, but the bound does. With the predicted y the ramp of s w is the largest, over rankings, of
functions that fall linearly in s: convex, falling, and the loss for s -> infinity. A round that starts from a small |w| lowers
the bound mostly by a larger |w|, whatever this does to the ranking. So there is a continuation: for each C, rounds start from
the w of least training loss so far, with the |w| that minimises the objective, and what they gain comes from the direction. C
grows until the bound is close to the loss. The w of least training loss of all rounds is returned.

With the permutation map there are many ideal rankings, and the convex risk compares with the mean of their phi, so w pays for
every score difference between documents of the same grade. ``Permutation(ties="score")`` compares with the ideal ranking that
orders the documents of each grade by score,

.. math:: \max_y [w \cdot \phi(y) + \Delta(y)] - \max_{y^* \text{ ideal}} w \cdot \phi(y^*)

As the decay does not increase, this order makes w.phi(y*) largest among the ideal rankings (rearrangement inequality). A
maximum of linear functions is convex, so with P(w) = max_{y*} w.phi(y*) - w.phi(mean of y*) >= 0 the bound is R(w) - P(w) as
well. It lies between the ramp bound, whose second maximum is over more rankings, and the convex bound.

C is the given one. Each convex problem is solved to the tolerance, and rounds end when the objective falls by no more than the
tolerance: a local optimum, to which the certificate of the last convex problem belongs. The plane of P at w = 0 is level, and a
round from there solves the problem of the convex bound; so the first round starts from the w of another criterion. Only the
direction of this w counts. Planes of P contain the origin, so a round ends no higher than w = 0, to within the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from structrank._support.saveable import record
from structrank.solvers import CuttingPlanes, Plane, Result
from structrank.solvers.penalties import RIDGE

# Of the ramp bound: C grows by decades until the bound is this close to the loss. With phi_mrr it may stay away from it. Mean
# training loss and passes of 128 models on webis-clueweb09 and synthetic data, with at most six rounds for each C: 0.4111 and
# 159 for 0.01, 0.4118 and 131 for 0.03; 0.4102 and 212 with C growing by factors of 4.
_CLOSE, _MOST_DECADES = 0.02, 12
# A round of the ramp bound ends when the objective has fallen by this share of its distance to the bound. In the same trial,
# 0.4114 and 163 for 0.8; with C growing by factors of 30, 0.4171 and 104 for 0.02 in place of 0.4142 and 147.
_ENOUGH = 0.5
# Points whose planes the next round starts from; earlier points are too far away to matter.
_KEPT_POINTS = 12
# Losses that differ by less are equal.
_ROUNDING = 1e-9


@record
@dataclass(frozen=True)
class RampRound:
    """One round of the convex-concave procedure.

    Attributes
    ----------
    C : float
        Weight of the risk in this round.
    objective : float
        1/2 |w|^2, or another penalty, + C (R(w) - P(w)) after the round; within one C it never rises.
    risk : float
        R(w) - P(w), an upper bound on `loss`; with feature map phi_mrr, on the loss of the ranking of largest w.phi instead.
    loss : float
        Mean training loss of the order by scores; relevant documents come after irrelevant documents of the same score.
    norm : float
        Norm of w.
    passes : int
        Passes over the data.
    kind : str
        "prediction" for the ramp bound, "ideal" for that with the ties of ideal rankings ordered by score: the rankings of P.
    """

    C: float
    objective: float
    risk: float
    loss: float
    norm: float
    passes: int
    kind: str = "prediction"


def kept_start(rounds):
    """Return whether no round of the ramp bound lowered the training loss, so that the model is its start."""
    return min(one.loss for one in rounds) >= rounds[0].loss - _ROUNDING


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


def train_rounds(kind, risk, start, C, options, max_iter, callback=None):
    """Train on a bound that is a difference of convex functions.

    Parameters
    ----------
    kind : {"prediction", "ideal"}
        Rankings of P, see `structrank.training.risk.Risk.plane`.
    risk : Risk
    start : (n_features,) array
        A w that ranks well; not 0, where the bound is as vacuous as the convex one.
    C : float
        For the ramp bound, the first C of the continuation.
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
    driver : CuttingPlanes
        That of the last convex problem.
    """
    run = _Run(risk, options, max_iter, callback, kind)
    best = run.evaluate(start)
    kept = run.describe(best, C)
    rounds, last_risk = [kept], math.inf
    try:
        for decade in range(_MOST_DECADES if kind == "prediction" else 1):
            current_C = C * 10.0**decade
            for place in run.rounds(best if kind == "ideal" else run.rescaled(best, current_C), current_C):
                rounds.append(run.describe(place, current_C))
                # The order by scores has a loss for any |w|; with one C the objective has fallen.
                if kind == "ideal" or rounds[-1].loss < kept.loss - _ROUNDING:
                    best, kept = place, rounds[-1]
            if run.reason or rounds[-1].risk - rounds[-1].loss <= _CLOSE:
                break
            # Bounds may keep w too small for a bound close to the loss.
            if not run.penalty.in_span and last_risk - rounds[-1].risk <= options["tol"]:
                break
            last_risk = rounds[-1].risk
    except KeyboardInterrupt:
        if run.last is None:
            raise
        run.reason = "interrupted"
    reason = run.reason or "converged"
    return Result(best.w, kept.risk, run.last.certificate, run.last.history, reason, tuple(rounds)), kept, run.driver


@dataclass(frozen=True)
class _Place:
    """A w with the planes of R and of P there."""

    w: np.ndarray
    plane: Plane
    compared: Plane

    def values(self):
        return self.plane.value - self.compared.value

    def objective(self, C, weights, penalty=RIDGE):
        penalised = 0.5 * float(self.w @ self.w) if penalty.in_span else penalty.value(self.w)
        return penalised + C * float(weights @ self.values())


class _Run:
    """The rounds of one training."""

    def __init__(self, risk, options, max_iter, callback, kind="prediction"):
        self.risk, self.options, self.max_iter, self.callback, self.kind = risk, options, max_iter, callback, kind
        self.first, self.known = [], []  # (w, plane of R): at w = 0, and the last ones
        self.passes = self.described = 0  # in all, and in the rounds that were described
        self.penalty = options.get("penalty", RIDGE)
        self.reason = ""
        self.last = self.driver = None
        if kind == "ideal":  # health is relative to w = 0, or the minimiser of another penalty
            zero = self.penalty.minimiser(np.zeros(risk.n_features))
            self.first.append((zero, risk.plane(zero)))
            self.passes += 1

    def evaluate(self, w):
        """Evaluate R and P at w."""
        plane = self.risk.plane(w)
        self.known.append((w, plane))
        self.passes += 2
        return _Place(w, plane, self.risk.plane(w, self.kind))

    def describe(self, place, C):
        """Describe a round that ended at a place, with the passes since the last one."""
        risk, loss = float(self.risk.weights @ place.values()), float(self.risk.weights @ place.compared.offset)
        passes, self.described = self.passes - self.described, self.passes
        objective, norm = place.objective(C, self.risk.weights, self.penalty), float(np.linalg.norm(place.w))
        return RampRound(C, objective, risk, loss, norm, passes, self.kind)

    def rescaled(self, place, C):
        """Double w while the objective of the ramp falls, which is convex in |w|; return the last place."""
        while True:
            w, compared = 2.0 * place.w, place.compared
            self.known.append((w, self.risk.plane(w)))
            self.passes += 1
            doubled = _Place(*self.known[-1], replace(compared, value=2.0 * compared.value))  # the same ranking
            if doubled.objective(C, self.risk.weights, self.penalty) >= place.objective(C, self.risk.weights, self.penalty):
                return place
            place = doubled

    def rounds(self, place, C):
        """Run rounds for one C until the objective stops falling, or predictions stay the same; yield each place."""
        fall = math.inf
        while fall > C * self.options["tol"] and not self.reason:
            before, place = place, self._round(place, C)
            fall = before.objective(C, self.risk.weights, self.penalty) - place.objective(C, self.risk.weights, self.penalty)
            if fall > 0.0:
                yield place
            if np.array_equal(place.compared.slope, before.compared.slope):
                return

    def _round(self, place, C):
        linearised = LinearisedRisk(self.risk, place.compared.slope)
        self.driver = driver = CuttingPlanes(linearised, **self.options)
        for w, plane in (*self.first, *self.known):
            driver.add(w, linearised.linearised(w, plane))
        start = best = place.objective(C, self.risk.weights, self.penalty)
        loose = self.kind == "prediction"

        def enough(iteration):
            nonlocal best
            best = min(best, iteration.objective)
            if self.callback is not None and self.callback(iteration):
                self.reason = "callback"
            # The next round's plane of P is worth more than the last digits of this round's optimum.
            return self.reason or (loose and start - best >= _ENOUGH * (start - iteration.bound))

        self.last = driver.run(C, max(1, self.max_iter - self.passes), callback=enough)
        self.passes += len(linearised.evaluated) + 1
        if self.last.reason == "interrupted" or self.passes >= self.max_iter:
            self.reason = "interrupted" if self.last.reason == "interrupted" else "max_iter"
        elif self.last.reason == "stalled" and not loose:
            self.reason = "stalled"
        evaluated = [*self.known, *linearised.evaluated]
        reached = next(known for known in (*reversed(evaluated), *self.first) if known[0] is self.last.w)
        self.known = evaluated[-_KEPT_POINTS:]
        if all(known is not reached for known in self.known):
            self.known[0] = reached  # where the next round starts
        return _Place(*reached, self.risk.plane(self.last.w, self.kind))
