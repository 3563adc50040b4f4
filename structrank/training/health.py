r"""Whether training learned anything: the quantities of figures 4 to 6 of the KDD 2008 paper for one model, and notes.

An objective close to that of w = 0 has one of two reasons. Either C is small, or the criterion is *vacuous* on these data: no w
has a risk R(w) much below R(0). Planes do not depend on C, so the dual bound of the driver at a large C* decides:

.. math:: \tfrac12 |w|^2 + C^* R(w) \ge D(C^*) \ge (1 - \epsilon) \, C^* R(0) \quad \text{for all } w

is, divided by C*, a lower bound on R: R(w) >= (1 - eps) R(0) - |w|^2 / (2 C*), which for a growing C* becomes the least value
of the plane model over all w. Multiplied by C / C* <= 1, the same line says that w = 0 is optimal to within the share eps for
every C <= C*. C* is 10^6 R(0) / |R'(0)|^2, which does not depend on the scale of the features: a w whose risk is lower by 1 %
is found if it is at most 130 times as long as R(0) / |R'(0)|, where the plane at 0 reaches the value 0.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from structrank._support.saveable import record
from structrank.solvers.vectors import dot

# Share of the objective of w = 0 from which on nothing, or little, was learned: 1 - eps of the module's docstring.
_NOTHING_FROM = 0.999
# C* |R'(0)|^2 / R(0).
_LARGEST_SIZE = 1e6
# Passes for each of these values of C; without a decision by then, nothing is called vacuous.
_PASSES = 30
# With a smaller C |R'(0)|^2 / R(0), the gradient at 0 is one of rounding: documents of a query are identical, or nearly so.
_LEAST_SIZE = 1e-14
# A part dominates if its gradient norm at 0 is twice that of all other parts together ...
_DOMINANT_FROM = 2 / 3
# ... and deserves a warning if the objective is above this share of that of w = 0.
_STIFF_FROM = 0.95


@record
@dataclass(frozen=True)
class Health:
    """How well w adapted to the data.

    Attributes
    ----------
    objective_ratio : float
        objective / objective(w = 0); 1 means that nothing was learned (Figure 5). With another penalty than ``1/2 |w|^2``, here
        and below its minimiser takes the place of w = 0.
    norm : float
        Norm of w (Figure 6).
    mean_slack : float
        R(w), an upper bound on the mean training loss (Figure 4).
    vacuous : bool
        Whether w = 0 is optimal to within 0.1 % of the objective, for this C and for any other: see `is_vacuous`.
    parts : dict
        For several criteria: name -> share of the gradient norm at 0 times C_l. Each criterion is measured by itself, also with
        shared slacks: there a criterion that is never the most violated has no influence, whatever its share.
    dominant : str or None
        The part whose gradient norm at 0 is twice that of all other parts together, if there is one.
    small_C : bool
        Whether the objective is within 0.1 % of that of w = 0 because C is small: the criterion is not vacuous.
    sole : str or None
        With shared slacks: the part that is the most violated one of every query, if there is one. The model is then that of
        this part alone.
    flat : bool
        Whether the gradient at 0 is 0 up to rounding: documents within each query have identical features.
    column_ratio : float
        Largest standard deviation of a column of X within queries over the smallest, after scaling; of a small sample.
    """

    objective_ratio: float
    norm: float
    mean_slack: float
    vacuous: bool
    parts: dict = field(default_factory=dict)
    dominant: str | None = None
    small_C: bool = False
    sole: str | None = None
    flat: bool = False
    column_ratio: float = 1.0

    def remarks(self, start="w = 0"):
        """Return texts on what is not wrong but good to know; an empty list if there is nothing. `start` names the start."""
        found = []
        if self.small_C:
            found.append(
                f"C is small: the objective is {self.objective_ratio:.6g} times that of {start}, so the model has learned "
                "little beyond the gradient there. The criterion is not vacuous: a larger C fits the training data better."
            )
        if self.sole is not None:
            found.append(
                f"with shared slacks, {self.sole} is the most violated criterion of every query, so that this is the model of "
                f"{self.sole} alone."
            )
        return found

    def problems(self, median_length, names, start="w = 0"):
        """Return descriptions of problems, with advice; an empty list if there are none."""
        found = []
        if self.vacuous and self.objective_ratio == 0.0:  # R(0) = 0
            found.append(
                f"training on {names} has nothing to learn from: no ranking of these queries has a loss. If all have two "
                "documents, the reason is discount='kdd08', which is equal for both ranks: try 'log2', or criterion='map'."
            )
        elif self.flat:
            found.append(
                f"training on {names} has learned nothing: documents within each query have identical features. Check that "
                "the columns of X vary within queries, by more than tiny amounts."
            )
        elif self.vacuous:
            blocked = "" if start == "w = 0" else "The penalty may rule out every better w. "
            found.append(
                f"training on {names} is vacuous on these data: the objective is {self.objective_ratio:.4f} times that of "
                f"{start} and no larger C would help, so the model has learned almost nothing and may rank badly. {blocked}"
                "Criteria with a rank cutoff (ndcg, mrr), and all with feature_map='dorm', are vacuous on long lists (here the "
                f"median is {median_length} documents a query). Try bound='auto', criterion='auc', 'map' or 'ndcg-nc' with "
                "feature_map='po', shorter lists, or a larger k."
            )
        if self.dominant is not None and self.objective_ratio > _STIFF_FROM:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.parts.items())
            found.append(
                f"one criterion dominates the combination: {self.dominant} (shares of the gradient norm at 0: {shares}), and "
                f"the objective is {self.objective_ratio:.3f} times that of {start}: the others have little influence. Use a "
                "smaller C_l for it (C=[...], one per criterion) or, for mrr, feature_map='po'."
            )
        return found


class HealthCheck:
    """Computes the health of convex trainings with one driver.

    Parameters
    ----------
    driver : CuttingPlanes
        Its first point is w = 0, or the minimiser of another penalty than ``1/2 |w|^2``.
    risk : Risk
        The driver's, or the one that the driver's is made of.
    """

    def __init__(self, driver, risk):
        self.driver, self.risk, self._vacuous = driver, risk, None

    def __call__(self, result, C):
        """Return the `Health` of the `Result` of a run with this C."""
        risk, zero, norm = self.risk, self.driver.points[0], float(np.linalg.norm(result.w))
        at_zero, penalty = zero.objective(C), self.driver.penalty
        penalised = 0.5 * norm**2 if penalty.in_span else penalty.value(result.w)
        ratio = (penalised + C * result.risk) / at_zero if at_zero > 0 else 0.0
        # An unfinished training is neither vacuous nor is its C small: it is unfinished.
        no_better = ratio >= _NOTHING_FROM or at_zero <= 0
        if zero.w.any():  # with a prior, say: no w may be better than 0, but a prior without loss is no sign of bad data
            no_better = zero.risk > 0.0 and (no_better or result.risk >= _NOTHING_FROM * self._least_known)
        nothing = result.reason == "converged" and no_better
        flat = not zero.w.any() and at_zero > 0 and C * dot(zero.slope, zero.slope) <= _LEAST_SIZE * zero.risk
        if nothing and not flat and self._vacuous is None:
            self._vacuous = is_vacuous(self.driver, C)
        vacuous = nothing and (flat or self._vacuous)
        parts = _shares(risk)
        dominant = max(parts, key=parts.get, default=None)
        if dominant is not None and parts[dominant] <= _DOMINANT_FROM:
            dominant = None
        small_C, sole = nothing and not vacuous, _sole_part(risk, result.w)
        return Health(ratio, norm, result.risk, vacuous, parts, dominant, small_C, sole, nothing and flat)

    @cached_property
    def _least_known(self):
        return _least_known_risk(self.driver)


def _least_known_risk(driver):
    """Return R at the driver's first point or at w = 0, the smaller one."""
    first = driver.points[0]
    if not first.w.any():
        return first.risk
    return min(first.risk, float(driver.risk.weights @ driver.risk.plane(np.zeros_like(first.w)).value))


def is_vacuous(driver, C):
    """Return whether no C up to a very large one makes the criterion learn anything; see the module's docstring.

    A copy of the driver, with its planes and a slack for each part of R, which take the fewest passes, runs for the C at which
    the plane at 0 reaches the value 0 and for the largest, until there is a w whose objective is below (1 - eps) C R(0), or the
    dual bound shows that there is none.

    Parameters
    ----------
    driver : CuttingPlanes
        Its first point is the minimiser of its penalty.
    C : float
        Value of C for which nothing was learned.

    Returns
    -------
    bool
        False, too, if the passes do not suffice to decide.

    Examples
    --------
    R(w) = max(1 - w, 1 + w) is least at 0; R(w) = max(1 - w, 0) is not, but a small C learns little of it.

    >>> import numpy as np
    >>> from structrank.solvers import CuttingPlanes, Plane
    >>> class Risk:
    ...     weights, n_features = np.ones(1), 1
    ...     def __init__(self, left, right):
    ...         self.planes = [(1.0, 1.0), (left, right)]
    ...     def plane(self, w):
    ...         slope, offset = max(self.planes, key=lambda plane: plane[1] - plane[0] * w[0])
    ...         return Plane(np.array([slope]), offset, offset - slope * w[0])
    >>> drivers = [CuttingPlanes(Risk(*plane), tol=1e-3) for plane in ((-1.0, 1.0), (0.0, 0.0))]
    >>> [driver.run(1e-4).certificate.primal > 0.999e-4 for driver in drivers]
    [True, True]
    >>> [is_vacuous(driver, 1e-4) for driver in drivers]
    [True, False]
    """
    zero = driver.points[0]
    square = dot(zero.slope, zero.slope)
    risk = _least_known_risk(driver)
    if risk <= 0.0 or square == 0.0:
        return True  # no ranking has a loss, or the plane at 0 is level: R(w) >= R(0)
    unit = zero.risk / square
    # A copy, with the planes at hand: which model a later run ends with must not depend on this decision.
    driver = copy.deepcopy(driver, {id(driver.risk): driver.risk})
    driver.tol = 0.5 * (1.0 - _NOTHING_FROM) * zero.risk
    if driver.one_slack_passes < math.inf:
        driver.one_slack_passes = 0
    for one_C in dict.fromkeys((max(C, unit), max(C, _LARGEST_SIZE * unit))):
        level = _NOTHING_FROM * one_C * risk + zero.penalised
        run = driver.run(one_C, _PASSES, callback=lambda one, level=level: one.objective < level or one.bound >= level)
        if run.reason == "interrupted":
            raise KeyboardInterrupt
        if run.certificate.dual < level:  # there is a better w, or none was ruled out
            return False
    return True


def _sole_part(risk, w):
    """Return the name of the part whose inner maximum is the largest of every query at w, with shared slacks."""
    if not risk.loss.shared or not w.any():
        return None
    # The sum of the largest over a group is that of one part only if this part is the largest of each query.
    largest = risk.plane(w).value
    for number, name in enumerate(risk.loss.names):
        if np.allclose(risk.plane(w, number).value, largest, rtol=1e-9, atol=1e-12):
            return name
    return None


def _shares(risk):
    """Return the share of each part of several in the summed gradient norms at 0."""
    if len(risk.loss.criteria) < 2:
        return {}
    zero, shares = np.zeros(risk.n_features), {}
    norms = [
        weight * float(np.linalg.norm(risk.group_weights @ risk.plane(zero, number).slope))
        for number, weight in enumerate(risk.loss.weights)
    ]
    for name, norm in zip(risk.loss.names, norms, strict=True):
        shares[name] = shares.get(name, 0.0) + norm / max(sum(norms), 1e-300)
    return shares
