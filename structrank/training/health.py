"""Whether training learned anything: the quantities of figures 4 to 6 of the KDD 2008 paper for one model, and warnings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

# An objective this close to that of w = 0 means that nothing was learned, or that C is small.
_VACUOUS_FROM = 0.999
# For a small C the mean directional derivative of R along w is close to that at 0 (ratio 1); for a vacuous criterion it is
# close to 0.
_STEEP_FROM = 0.25
# A part dominates if its gradient norm at 0 is twice that of all other parts together ...
_DOMINANT_FROM = 2 / 3
# ... and deserves a warning if the objective is above this share of that of w = 0.
_STIFF_FROM = 0.95


@dataclass(frozen=True)
class Health:
    """How well w adapted to the data.

    Attributes
    ----------
    objective_ratio : float
        objective / objective(w = 0); 1 means that nothing was learned (Figure 5).
    norm : float
        Norm of w (Figure 6).
    mean_slack : float
        R(w), an upper bound on the mean training loss (Figure 4).
    vacuous : bool
        Whether w = 0 is optimal, or nearly so: the criterion's bound does not react to w on these data.
    parts : dict
        For several criteria: name -> share of the gradient norm at 0 times C_l. Each criterion is measured by itself, also with
        shared slacks: there a criterion that is never the most violated has no influence, whatever its share.
    dominant : str or None
        The part whose gradient norm at 0 is twice that of all other parts together, if there is one.
    column_ratio : float
        Largest standard deviation of a column of X within queries over the smallest, after scaling; of a small sample.
    """

    objective_ratio: float
    norm: float
    mean_slack: float
    vacuous: bool
    parts: dict = field(default_factory=dict)
    dominant: str | None = None
    column_ratio: float = 1.0

    def problems(self, median_length, names):
        """Return descriptions of problems, with advice; an empty list if there are none."""
        found = []
        if self.vacuous and self.objective_ratio == 0.0:  # R(0) = 0
            found.append(
                f"training on {names} has nothing to learn from: no ranking of these queries has a loss. If all have two "
                "documents, the reason is discount='kdd08', which is equal for both ranks: try 'log2', or criterion='map'."
            )
        elif self.vacuous and self.objective_ratio == 1.0:  # exactly, without rounding
            found.append(
                f"training on {names} has learned nothing: documents within each query have identical features. Check that "
                "the columns of X vary within queries, by more than tiny amounts."
            )
        elif self.vacuous:
            found.append(
                f"training on {names} is vacuous on these data: the objective is {self.objective_ratio:.4f} times that of "
                f"w = 0, so the model has learned almost nothing and may rank badly. Criteria with a rank cutoff (ndcg, mrr), "
                f"and all with feature_map='dorm', are vacuous on long lists (here the median is {median_length} documents a "
                "query). Try bound='auto', criterion='auc', 'map' or 'ndcg-nc' with feature_map='po', shorter lists, or a "
                "larger k."
            )
        if self.dominant is not None and self.objective_ratio > _STIFF_FROM:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.parts.items())
            found.append(
                f"one criterion dominates the combination: {self.dominant} (shares of the gradient norm at 0: {shares}), and "
                f"the objective is {self.objective_ratio:.3f} times that of w = 0: the others have little influence. Use a "
                "smaller C_l for it (C=[...], one per criterion) or, for mrr, feature_map='po'."
            )
        return found


def diagnose(risk, zero, result, C):
    """Compute the `Health` of a convex training run; `zero` is the `Point` at w = 0."""
    at_zero, norm = C * zero.risk, float(np.linalg.norm(result.w))
    ratio = (0.5 * norm**2 + C * result.risk) / at_zero if at_zero > 0 else 0.0
    fall = norm * float(np.linalg.norm(zero.slope))
    derivative = (zero.risk - result.risk) / fall if fall > 0 else 0.0
    # By the lower bound: an unfinished training is not vacuous.
    vacuous = result.certificate.dual >= _VACUOUS_FROM * at_zero and derivative <= _STEEP_FROM
    parts = _shares(risk)
    dominant = max(parts, key=parts.get, default=None)
    if dominant is not None and parts[dominant] <= _DOMINANT_FROM:
        dominant = None
    return Health(ratio, norm, result.risk, vacuous, parts, dominant)


def _shares(risk):
    """Return the share of each part of several in the summed gradient norms at 0."""
    if len(risk.parts) < 2:
        return {}
    zero, shares = np.zeros(risk.n_features), {}
    norms = [
        part.weight * float(np.linalg.norm(risk.group_weights @ risk.plane(zero, number).slope))
        for number, part in enumerate(risk.parts)
    ]
    for part, norm in zip(risk.parts, norms, strict=True):
        shares[part.name] = shares.get(part.name, 0.0) + norm / max(sum(norms), 1e-300)
    return shares
