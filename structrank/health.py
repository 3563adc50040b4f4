"""Whether training had something to hold on to: the figures 4 to 6 of the KDD 2008 paper for one model, in words too."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

# An objective this close to that of w = 0 means that nothing was learned, or that C is small ...
_VACUOUS_FROM = 0.999
# ... and then R falls along w nearly as steeply as at 0 (1 here), while it hardly falls where a criterion is vacuous.
_STEEP_FROM = 0.25
# A part of several that pulls w from 0 twice as hard as all the others together dominates them ...
_DOMINANT_FROM = 2 / 3
# ... and is worth a warning where w hardly adapts.
_STIFF_FROM = 0.95


@dataclass(frozen=True)
class Health:
    """How well w adapted to the data.

    Attributes
    ----------
    objective_ratio : float
        objective / objective(w = 0); 1 means that nothing was learned (Figure 5).
    norm : float
        Length of w (Figure 6).
    mean_slack : float
        R(w), an upper bound on the mean training loss (Figure 4).
    vacuous : bool
        Whether w = 0 is optimal, or as good as: the criterion's bound does not react to w on these data.
    parts : dict
        For several criteria: name -> its share in the pull on w, the length of its slope at w = 0 times C_l. Each is measured
        by itself, also where slacks are shared: there one that is never the most violated has no say, whatever its pull.
    dominant : str or None
        The part that pulls twice as hard as all the others together, if there is one.
    """

    objective_ratio: float
    norm: float
    mean_slack: float
    vacuous: bool
    parts: dict = field(default_factory=dict)
    dominant: str | None = None

    def problems(self, median_length, names):
        """Say in words what is wrong and what to try; an empty list where nothing is."""
        found = []
        if self.vacuous and self.objective_ratio == 0.0:  # R(0) = 0
            found.append(
                f"training on {names} has nothing to learn from: no ranking of these queries has a loss. If all have two "
                "documents, that is due to discount='kdd08', to which both ranks are alike: try 'log2', or criterion='map'."
            )
        elif self.vacuous and self.objective_ratio == 1.0:  # exactly: not even rounding tells w from 0
            found.append(
                f"training on {names} has learned nothing: to it the documents of each query are all alike. Check that the "
                "columns of X vary within queries, by more than tiny amounts."
            )
        elif self.vacuous:
            found.append(
                f"training on {names} is vacuous on these data: the objective is {self.objective_ratio:.4f} times that of "
                f"w = 0, so the model has learned next to nothing and may rank badly. Clipped criteria (ndcg, mrr), and all "
                f"with the map 'dorm', do this on long lists (here the median is {median_length} documents a query). "
                "Try bound='auto', criterion='auc', 'map' or 'ndcg-nc' with the map 'po', shorter lists, or a larger k."
            )
        if self.dominant is not None and self.objective_ratio > _STIFF_FROM:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.parts.items())
            found.append(
                f"one criterion dominates the combination: {self.dominant} (shares of the pull on w: {shares}), and the "
                f"objective is {self.objective_ratio:.3f} times that of w = 0: the others have little say. Give it a "
                "smaller C_l (C=[...], one per criterion) or, for mrr, feature_map 'po'."
            )
        return found


def diagnose(risk, zero, result, C):
    """Compute the health of a convex training.

    Parameters
    ----------
    risk : Risk
    zero : Point
        R at w = 0.
    result : Result
    C : float

    Returns
    -------
    Health
    """
    at_zero, norm = C * zero.risk, float(np.linalg.norm(result.w))
    ratio = (0.5 * norm**2 + C * result.risk) / at_zero if at_zero > 0 else 0.0
    fall = norm * float(np.linalg.norm(zero.slope))
    steepness = (zero.risk - result.risk) / fall if fall > 0 else 0.0
    # By the lower bound: an unfinished training is not vacuous.
    vacuous = result.certificate.dual >= _VACUOUS_FROM * at_zero and steepness <= _STEEP_FROM
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
