"""Input and output of the cutting-plane driver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support.saveable import record


@dataclass(frozen=True)
class Plane:
    """A plane under each part of R: R_s(v) >= offset_s - slope_s.v for all v, with equality at the w it was made for.

    The slope is minus a subgradient of R_s: the mean of phi(y*) - phi(y) over the queries of the part (KDD 2008, section 3.1).

    Attributes
    ----------
    slope : (n_slacks, n_features) or (n_features,) array
    offset : (n_slacks,) array or float
    value : (n_slacks,) array or float
        R_s(w).
    seconds : float
        Time that the evaluation took.
    """

    slope: np.ndarray
    offset: np.ndarray
    value: np.ndarray
    seconds: float = 0.0


@record
@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum.

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


@record
@dataclass(frozen=True)
class Iteration:
    """One line of the history.

    Attributes
    ----------
    iteration : int
    objective : float
        Objective at this iteration's w; at the best w so far if no new w was evaluated.
    bound : float
        Best lower bound on the optimum so far.
    gap : float
        objective - bound.
    violation : float
        R(w) minus the value of the plane model at w.
    planes : int
        Planes in the working set.
    seconds : dict
        "qp" and "oracle"; the latter is 0 if the QP's bound showed that the best w so far is within the tolerance.
    solver : str
        Backend that solved the QP.
    note : str
        Failures of QP backends; empty if there were none.
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
class Result:
    """Result of a training run.

    Attributes
    ----------
    w : (n_features,) array
    risk : float
        R(w).
    certificate : Certificate
    history : list of Iteration
    reason : str
        "converged", "max_iter", "callback", "interrupted" or "stalled" (no backend solved the QP to the accuracy that the
        tolerance requires).
    rounds : tuple
        Rounds of the convex-concave procedure; empty for a convex problem. `certificate` and `history` are those of the
        last convex problem.
    """

    w: np.ndarray
    risk: float
    certificate: Certificate
    history: list
    reason: str
    rounds: tuple = ()
