"""Training runs over one risk, on the convex bound, the ramp bound, or the ramp bound if the convex bound is vacuous.

In place of the convex bound, that with the ties of ideal rankings ordered by score, for feature maps that order them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from structrank import criteria
from structrank.feature_maps import Permutation
from structrank.solvers import CuttingPlanes
from structrank.solvers.backends import COMPILED
from structrank.solvers.cutting_plane import LARGE_SIZE, ONE_SLACK_PASSES
from structrank.solvers.penalties import RIDGE
from structrank.training.checkpoint import KeptPasses
from structrank.training.health import Health, HealthCheck
from structrank.training.ramp import train_rounds

# The ramp is tight for a large |w|, and so needs a larger C than the convex bound.
_RAMP_FACTOR = 10.0
# Rounds start from the w of a convex criterion. Only the direction matters, so a loose tolerance is enough.
_START_TOL = 0.01
# Squares of larger slopes, which QPs contain, leave the range of float64.
_STEEPEST = 1e100


def slack_passes(formulation, solver):
    """Return the number of passes with one slack: OSQP and CVXPY belong to one slack, the compiled backends to many."""
    if formulation != "auto":
        return math.inf if formulation == "one-slack" else 0
    return ONE_SLACK_PASSES if solver == "auto" else 0 if solver in COMPILED else math.inf


class Training:
    """Runs for one C after another; planes and points do not depend on C and are shared.

    Parameters
    ----------
    risk : Risk
    make_ramp_loss : callable
        Returns the loss of the ramp bound, from that of the risk.
    bound : {"convex", "ramp", "auto"}
        "auto" uses the ramp bound if the convex bound is vacuous.
    tol, solver, max_iter
        See `structrank.solvers.CuttingPlanes`.
    checkpoint : Checkpoint, default None
        Storage of passes, so that a killed run can be resumed.
    penalty : SeparablePenalty, default 1/2 |w|^2
    """

    def __init__(self, risk, make_ramp_loss, bound, tol, solver, max_iter, checkpoint=None, penalty=RIDGE):
        self.checkpoint, self.bound, self.max_iter, self._make_ramp_loss = checkpoint, bound, max_iter, make_ramp_loss
        self._risks = []
        self.start_name = "the last fit"  # whose w the rounds started from
        self.risk = self._keep(risk, "convex")
        n_passes = slack_passes(risk.formulation, solver)
        self.penalty = penalty
        self._options = {"tol": tol, "solver": solver, "one_slack_passes": n_passes, "penalty": penalty}
        # Rounds start with planes at many points, and with groups from the first QP on they take a third fewer passes.
        self._of_rounds = {**self._options, "one_slack_passes": n_passes if n_passes == math.inf else 0}

    def run(self, C, callback=None, start=None):
        """Train for one C, from `start` if given; return `Result` and `Health`."""
        try:
            if self.bound != "ramp":
                if self.risk.loss.orders_ties:
                    result, health_check = self._run_ordered(C, callback, start)
                else:
                    result, health_check = self._convex.run(C, self.max_iter, start, callback), self._health_check
                try:
                    health = health_check(result, C)
                except KeyboardInterrupt:  # the model is finished, but a path of C is to stop here
                    result = replace(result, reason="interrupted")
                    health = health_check(result, C)
                # With identical features no bound learns anything.
                if self.bound == "convex" or not health.vacuous or health.flat or result.reason != "converged":
                    return result, health
            return self._run_ramp(C, callback, start)
        finally:
            if self.checkpoint is not None:
                for risk in self._risks:
                    risk.write()

    def _run_ordered(self, C, callback, start):
        """Train with the ties of ideal rankings ordered by score; return the result and a check of its health."""
        if start is None or not start.any():
            start, _, self.start_name = self._start(C, self.risk)
        result, _, driver = train_rounds("ideal", self.risk, start, C, self._of_rounds, self.max_iter, callback)
        return result, HealthCheck(driver, self.risk)

    def _run_ramp(self, C, callback, start):
        zero = self.penalty.minimiser(np.zeros(self._ramp_risk.n_features))
        # First, because this pass finds nan in X.
        at_zero = float(self._ramp_risk.weights @ self._ramp_risk.plane(zero).value)
        C *= _RAMP_FACTOR
        if start is None or not start.any():
            start, C, self.start_name = self._start(C, self._ramp_risk)
        result, kept, _ = train_rounds("prediction", self._ramp_risk, start, C, self._of_rounds, self.max_iter, callback)
        # The ratio is 0 if no ranking has a loss, and exactly 1 if documents have identical features.
        ratio = kept.objective / (self.penalty.value(zero) + kept.C * at_zero) if at_zero > 0.0 else 0.0
        return result, Health(ratio, kept.norm, kept.risk, vacuous=ratio in (0.0, 1.0), flat=ratio == 1.0)

    @cached_property
    def _convex(self):
        return _started(self.risk, self._options)

    @cached_property
    def _health_check(self):
        return HealthCheck(self._convex, self.risk)

    @cached_property
    def ramp_loss(self):
        """The loss of the ramp bound."""
        return self._make_ramp_loss(self.risk.loss)

    @cached_property
    def _ramp_risk(self):
        return self._keep(self.risk.of(self.ramp_loss), "ramp")

    @cached_property
    def _starters(self):
        """Convex trainings to start the rounds of other bounds from, in order of preference."""
        starters, options = [], {**self._options, "tol": max(self._options["tol"], _START_TOL)}
        for criterion, feature_map in self._start_criteria():
            loss = self.risk.loss.other([criterion], feature_map)
            starters.append(_started(self._keep(self.risk.of(loss), criterion.name), options))
        return starters

    def _start_criteria(self):
        """Return pairs of a criterion and a feature map: AUC, then MAP; MAP first for criteria of whole lists.

        With grades: AUC, and DORM for the first criterion with a cutoff.
        """
        cut = next((one for one in self.risk.loss.criteria if getattr(one, "k", None) is not None), None)
        if not self.risk.loss.graded:
            order = (criteria.MAP(), criteria.AUC()) if cut is None else (criteria.AUC(), criteria.MAP())
            return [(criterion, "po") for criterion in order]
        if cut is None:
            return [(criteria.AUC(), "po")]
        settings = {name: getattr(cut, name) for name in ("discount", "gain") if hasattr(cut, name)}
        # Ranks from k on do not change the loss; without their decay a pass is faster and the bound less often vacuous.
        return [(criteria.AUC(), "po"), (criteria.DORM(cut.k, **settings), Permutation(cut=cut.k))]

    def _start(self, C, risk):
        """Return a w to start rounds over a risk from, its C, and the name of the loss that it was trained on.

        C is raised where it is not large, as the ramp is tight for a large |w|.
        With grades the starter of least training loss; otherwise the first that is not vacuous, or the first of all.
        """
        starts = []
        for starter in self._starters:
            zero = starter.points[0]
            square = float(zero.slope @ zero.slope)
            enough_C = max(C, LARGE_SIZE * zero.risk / square) if square > 0.0 else C
            result = starter.run(enough_C, self.max_iter)
            if result.reason == "interrupted":  # the ramp has nothing to return yet
                raise KeyboardInterrupt
            starts.append((result.w, enough_C, starter.risk.loss.name))
            if not risk.loss.graded and not HealthCheck(starter, starter.risk)(result, enough_C).vacuous:
                return starts[-1]
        if not risk.loss.graded or len(starts) == 1:
            return starts[0]
        return min(starts, key=lambda start: float(risk.weights @ risk.plane(start[0], "prediction").offset))

    def _keep(self, risk, name):
        risk = risk if self.checkpoint is None else KeptPasses(risk, self.checkpoint.of(name))
        self._risks.append(risk)
        return risk


def _started(risk, options):
    """Return a driver with R evaluated at the minimiser of the penalty; raise if the slope is too large to compute with."""
    driver = CuttingPlanes(risk, **options)
    with np.errstate(over="ignore"):
        plane = risk.plane(driver.start)
    steepest = float(np.abs(plane.slope).max())
    if not steepest <= _STEEPEST:
        column = int(np.unravel_index(np.abs(plane.slope).argmax(), plane.slope.shape)[-1])
        raise ValueError(
            f"the scale of X is too large to train on: the derivative of the loss by the weight of column {column} is "
            f"{steepest:.1e}, at most {_STEEPEST:.0e} is supported. Scale the features first, as with StandardScaler."
        )
    driver.add(driver.start, plane)
    return driver
