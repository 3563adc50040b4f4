"""Training runs over one risk: what they find, they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structrank import criteria
from structrank.health import AtZero, Health, diagnose
from structrank.ramp import train_ramp
from structrank.shard import Objective, Part
from structrank.solvers.cutting_plane import Certificate, CuttingPlanes, Point
from structrank.solvers.working_set import WorkingSet

# The ramp starts where a convex criterion has brought w; with little regularisation, as the direction alone matters.
_START_FACTOR = 10.0
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

    @cached_property
    def at_zero(self):
        """What the risk is at w = 0; its plane is the first of the working set."""
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
        zero = np.zeros(self.risk.n_features)
        self._points.append(Point(zero, plane.value, at_zero.value, weights @ plane.slope))
        return at_zero

    def run(self, C, callback=None, start=None, checkpoint=None):
        """Train for one C, from `start` where it is given, keeping a `Checkpoint` on the way; gives `Trained`."""
        at_zero = self.at_zero
        driver = CuttingPlanes(self.risk, C, self.tol, self.solver, self._working_set, self._points, start)
        if checkpoint is None:
            outcome = driver.run(self.max_iter, callback)
        else:
            checkpoint.resume(driver, self.risk)

            def kept(iteration):
                checkpoint.keep(driver)
                return callback is not None and callback(iteration)

            outcome = driver.run(self.max_iter, kept)
            checkpoint.keep(driver, now=True)
        value = float(self.risk.weights @ outcome.values)
        health = diagnose(at_zero, outcome.w, value, outcome.certificate.dual, C)
        return Trained(outcome.w, outcome.history, outcome.certificate, health, outcome.reason)


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

    def run(self, C, callback=None, start=None):
        """Train for one C, from `start`, or by default from a healthy convex criterion; gives `Trained`."""
        if start is None or not start.any():
            start = self._healthy_start(_START_FACTOR * C)
        outcome = train_ramp(self.risk, start, C, *self._settings, callback)
        kept = next(one for one in reversed(outcome.rounds) if one.C == outcome.C)
        at_zero = float(self.risk.weights @ self.risk.plane(np.zeros(self.risk.n_features)).value)
        ratio = kept.objective / (outcome.C * at_zero)
        health = Health(ratio, float(np.linalg.norm(outcome.w)), float(self.risk.weights @ outcome.values), False)
        convex = outcome.convex
        return Trained(outcome.w, convex.history, convex.certificate, health, outcome.reason, tuple(outcome.rounds))

    @cached_property
    def _starters(self):
        objective = self.risk.objective
        parts = [Part(criterion, *criteria.find_oracle(criterion, "po")) for criterion in (criteria.AUC(), criteria.MAP())]
        objectives = [
            Objective((part,), objective.relevant_from, query_weight=objective.query_weight) for part in parts
        ]
        return [ConvexTraining(self.risk.of(objective), *self._settings) for objective in objectives]

    def _healthy_start(self, C):
        """Train on AUC, and where that is vacuous on MAP."""
        auc = self._starters[0].run(C)
        if not auc.health.vacuous:
            return auc.w
        other = self._starters[1].run(C)
        return auc.w if other.health.vacuous else other.w

    def close(self):
        """Let go of what the starters hold."""
        for training in vars(self).get("_starters", ()):
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

    def run(self, C, callback=None, start=None, checkpoint=None):
        """Train for one C; gives `Trained`. The rounds of the ramp bound are short, and have no checkpoint."""
        if self.bound != "ramp":
            found = self._convex.run(C, callback, start, checkpoint)
            if self.bound == "convex" or not found.health.vacuous or found.reason != "converged":
                return found
        return self._ramp.run(C, callback, start)

    def close(self):
        """Let go of the data."""
        if "_ramp" in vars(self):
            self._ramp.close()
        self.risk.close()
