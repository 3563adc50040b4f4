"""Training runs over one risk: what they find, they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structrank import criteria
from structrank.checkpoint import KeptPasses, describe_data
from structrank.health import AtZero, Health, diagnose
from structrank.ramp import train_ramp
from structrank.shard import Objective, Part
from structrank.solvers.cutting_plane import Certificate, CuttingPlanes, Point
from structrank.solvers.working_set import WorkingSet

# The ramp is tight where w is long, and so wants a larger C than the convex bound.
_RAMP_FACTOR = 10.0
# It starts where a convex criterion has brought w; only the direction matters, and that is soon found.
_START_TOL = 0.01
# With C |R'(0)|^2 below this times R(0), w is short for want of C: no place to be tight at.
_LEAST_PULL = 10.0
# From one C to the next w has moved by a multiple of how far it had moved to the one before. It is thought to move on by a
# little less than that multiple again, up to a limit.
_MOVES_ON, _MOVES_ON_MOST = 0.8, 2.0
# A w whose objective is larger than this share of that of 0 has hardly learned, and points anywhere.
_LEARNED = 0.99
# Where slopes are steeper, their squares, of which QPs are made, leave the range of float64.
_STEEPEST = 1e100


@dataclass(frozen=True)
class Trained:
    """What a training run gives.

    Attributes
    ----------
    w : (n_features,) array
    history : list of Iteration
    certificate : Certificate
    health : Health
    reason : str
        Why it ended.
    rounds : tuple of RampRound
        Of the ramp bound; empty for the convex one.
    """

    w: np.ndarray
    history: list
    certificate: Certificate
    health: Health
    reason: str
    rounds: tuple = ()


class ConvexTraining:
    """Runs of cutting planes for one C after another; planes and points do not depend on C and are shared.

    Parameters
    ----------
    risk : Risk
    tol, solver, max_iter
        As for `structrank.solvers.cutting_plane.CuttingPlanes`.
    """

    def __init__(self, risk, tol, solver, max_iter):
        self.risk, self.tol, self.solver, self.max_iter = risk, tol, solver, max_iter
        self._working_set = WorkingSet(risk.weights, risk.n_features)
        self._points = []
        self._way = []  # C and w of the runs that have learned

    @cached_property
    def at_zero(self):
        """What the risk is at w = 0; its plane is the first of the working set."""
        with np.errstate(over="ignore"):
            at_zero = AtZero(self.risk)
        plane, weights = at_zero.plane, self.risk.weights
        steepest = float(np.abs(plane.slope).max())
        if not steepest <= _STEEPEST:
            column = int(np.unravel_index(np.abs(plane.slope).argmax(), plane.slope.shape)[-1])
            raise ValueError(
                f"X is of too large a scale to train on: the loss changes by {steepest:.1e} with the weight of column "
                f"{column}, at most {_STEEPEST:.0e} can be computed with. Scale the features first, as with StandardScaler."
            )
        self._working_set.add(plane.slope, plane.offset, np.arange(weights.shape[0]))
        self._points.append(Point.of(np.zeros(self.risk.n_features), plane, weights))
        return at_zero

    @cached_property
    def _facts(self):
        return describe_data(self.risk)

    def run(self, C, callback=None, start=None, checkpoint=None):
        """Train for one C, from `start` where it is given, keeping a `Checkpoint` on the way; gives `Trained`."""
        at_zero = self.at_zero
        driver = CuttingPlanes(
            self.risk, C, self.tol, self.solver, self._working_set, self._points, start, _foresee(self._way, C)
        )
        if checkpoint is None:
            outcome = driver.run(self.max_iter, callback)
        else:
            state = checkpoint.load(self._facts)
            if state is not None:
                driver.restore(state)

            def kept(iteration):
                if checkpoint.is_due():
                    checkpoint.save(self._facts, driver.state())
                return callback is not None and callback(iteration)

            outcome = driver.run(self.max_iter, kept)
            if outcome.reason != "interrupted":  # then the state is one amidst a step, which no run goes through
                checkpoint.save(self._facts, driver.state())
        value = float(self.risk.weights @ outcome.values)
        health = diagnose(at_zero, outcome.w, value, outcome.certificate.dual, C)
        if health.objective_ratio < _LEARNED:
            self._way.append((C, outcome.w))
        return Trained(outcome.w, outcome.history, outcome.certificate, health, outcome.reason)


def _foresee(way, C):
    """Guess w for the next C from the last three, going on as before in steps of log C; None where that cannot be said."""
    if len(way) < 3:
        return None
    (C1, w1), (C2, w2), (C3, w3) = way[-3:]
    before, last = w2 - w1, w3 - w2
    square, product = float(before @ before), float(last @ before)
    if not (C1 < C2 < C3 < C and square > 0.0 and product > 0.0):
        return None
    steps = np.diff(np.log([C1, C2, C3, C]))
    growth = product / square * steps[0] / steps[1]
    return w3 + min(_MOVES_ON * growth, _MOVES_ON_MOST) * steps[2] / steps[1] * last


class RampTraining:
    """Runs of the convex-concave procedure on the ramp bound for one C after another.

    Parameters
    ----------
    risk : Risk
        With labels that are good or bad.
    tol, solver, max_iter
        As for `structrank.ramp.train_ramp`.
    """

    def __init__(self, risk, tol, solver, max_iter):
        self.risk, self._settings = risk, (tol, solver, max_iter)

    def run(self, C, callback=None, start=None, checkpoint=None):
        """Train for one C, from `start`, or by default from a healthy convex criterion; gives `Trained`."""
        C, at_zero = _RAMP_FACTOR * C, self._risk_at_zero
        if start is None or not start.any():
            start, C = self._healthy_start(C, checkpoint)
        risk = self.risk if checkpoint is None else KeptPasses(self.risk, checkpoint.of("ramp"), self._facts)
        outcome = train_ramp(risk, start, C, *self._settings, callback)
        if checkpoint is not None:
            risk.write()
        kept = outcome.kept
        # Where no ranking has a loss that is 0, and exactly 1 where no document can be told from another.
        ratio = kept.objective / (kept.C * at_zero) if at_zero > 0.0 else 0.0
        health = Health(ratio, kept.norm, kept.risk, vacuous=ratio in (0.0, 1.0))
        convex = outcome.convex
        return Trained(outcome.w, convex.history, convex.certificate, health, outcome.reason, tuple(outcome.rounds))

    @cached_property
    def _starters(self):
        """Convex trainings to start from, by name: AUC, then MAP; the other way round for criteria that look at whole lists."""
        objective = self.risk.objective
        tol, solver, max_iter = self._settings
        whole_lists = all(getattr(part.criterion, "k", None) is None for part in self.risk.parts)
        starters = {}
        for criterion in (criteria.MAP(), criteria.AUC()) if whole_lists else (criteria.AUC(), criteria.MAP()):
            part = Part(criterion, *criteria.find_oracle(criterion, "po"))
            risk = self.risk.of(Objective((part,), objective.relevant_from, query_weight=objective.query_weight))
            starters[criterion.name] = ConvexTraining(risk, max(tol, _START_TOL), solver, max_iter)
        return starters

    @cached_property
    def _facts(self):
        return describe_data(self.risk)

    @cached_property
    def _risk_at_zero(self):
        """R(0); the pass for it must be the first, as it is the one that looks for nan in X."""
        return float(self.risk.weights @ self.risk.plane(np.zeros(self.risk.n_features)).value)

    def _healthy_start(self, C, checkpoint):
        """Train the first starter that is not vacuous, or just the first; gives w, and C, raised where w would be short."""
        starts = []
        for name, starter in self._starters.items():
            pull = starter.at_zero.pull**2
            enough_C = max(C, _LEAST_PULL * starter.at_zero.value / pull) if pull > 0.0 else C
            found = starter.run(enough_C, checkpoint=checkpoint and checkpoint.of(f"{name}-{enough_C:g}"))
            if found.reason == "interrupted":  # of the ramp there is nothing yet to give back
                raise KeyboardInterrupt
            starts.append((found.w, enough_C))
            if not found.health.vacuous:
                return starts[-1]
        return starts[0]

    def close(self):
        """Let go of what the starters hold."""
        for training in vars(self).get("_starters", {}).values():
            training.risk.close()
        self.risk.close()


class Training:
    """Runs for one C after another, on the bound that is asked for.

    Parameters
    ----------
    risk : Risk
    ramp_objective : Objective
        What to train on the ramp bound.
    bound : {"convex", "ramp", "auto"}
        "auto" takes the ramp where the convex bound is vacuous.
    tol, solver, max_iter
        As for `structrank.solvers.cutting_plane.CuttingPlanes`.
    """

    def __init__(self, risk, ramp_objective, bound, tol, solver, max_iter):
        self.risk, self._ramp_objective, self.bound = risk, ramp_objective, bound
        self._settings = tol, solver, max_iter
        self._convex = ConvexTraining(risk, *self._settings)

    @cached_property
    def _ramp(self):
        return RampTraining(self.risk.of(self._ramp_objective), *self._settings)

    @property
    def why_ramp(self):
        """What to say where the ramp bound took the place of the convex one."""
        names = " + ".join(part.name for part in self._ramp_objective.parts)
        return f"Trained on the ramp bound of {names}, as the convex bound is vacuous on these data."

    def run(self, C, callback=None, start=None, checkpoint=None):
        """Train for one C, from `start` where it is given, keeping a `Checkpoint` on the way; gives `Trained`."""
        if self.bound != "ramp":
            found = self._convex.run(C, callback, start, checkpoint)
            no_ramp = self.bound == "convex" or self._ramp_objective.relevant_from is None
            if no_ramp or not found.health.vacuous or found.reason != "converged":
                return found
        return self._ramp.run(C, callback, start, checkpoint)

    def close(self):
        """Let go of the data."""
        if "_ramp" in vars(self):
            self._ramp.close()
        self.risk.close()
