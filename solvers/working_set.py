"""The working set: the planes found so far, each with the slack it bounds, and the QP over them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class QPProblem:
    r"""The working-set QP.

    .. math:: \min_{w, \xi \ge 0} \tfrac12 |w|^2 + C \sum_s \pi_s \xi_s
              \quad \text{s.t.} \quad \xi_{s(t)} \ge b_t - a_t \cdot w

    Attributes
    ----------
    slopes : (n_planes, n_features) array
        The a_t.
    offsets : (n_planes,) array
        The b_t.
    slack_of : (n_planes,) array of int
        The s(t).
    weights : (n_slacks,) array
        The pi_s.
    C : float
    """

    slopes: np.ndarray
    offsets: np.ndarray
    slack_of: np.ndarray
    weights: np.ndarray
    C: float

    def at(self, C):
        """Give the same QP for another C."""
        return replace(self, C=C)

    def slacks(self, w):
        """Compute the least feasible slacks at w."""
        slacks = np.zeros(self.weights.shape[0])
        np.maximum.at(slacks, self.slack_of, self.offsets - self.slopes @ w)
        return slacks

    def primal(self, w):
        """Compute the objective at w."""
        return 0.5 * (w @ w) + self.C * (self.weights @ self.slacks(w))

    def feasible_dual(self, multipliers):
        """Turn any multipliers into a feasible dual point; return it and its value, a lower bound on the optimum.

        Multipliers are clipped at 0 and scaled down per slack until they sum to at most C pi_s; then all are scaled together
        to where the bound is largest.
        """
        multipliers = np.maximum(multipliers, 0.0)
        sums = np.bincount(self.slack_of, weights=multipliers, minlength=self.weights.shape[0])
        limits = self.C * self.weights
        factors = np.ones_like(sums)
        over = sums > limits
        factors[over] = limits[over] / sums[over]
        multipliers = multipliers * factors[self.slack_of]
        used = sums > 0
        room = float(np.min(limits[used] / (sums * factors)[used], initial=np.inf))
        linear = float(self.offsets @ multipliers)
        combined = multipliers @ self.slopes
        quadratic = float(combined @ combined)
        if linear <= 0.0:
            return np.zeros_like(multipliers), 0.0
        scale = min(linear / quadratic, room) if quadratic > 0.0 else room
        return scale * multipliers, scale * linear - 0.5 * scale**2 * quadratic


@dataclass(frozen=True)
class QPSolution:
    """A solution of the working-set QP with its own certificate.

    Attributes
    ----------
    w : (n_features,) array
    slacks : (n_slacks,) array
        The least feasible ones at w.
    multipliers : (n_planes,) array
        A feasible dual point.
    dual : float
        Its value: a lower bound on the optimum of the QP, and so on that of the whole problem.
    gap : float
        Objective at w minus `dual`.
    backend : str
        Who solved it.
    note : str
        What went wrong on the way; empty where nothing did.
    """

    w: np.ndarray
    slacks: np.ndarray
    multipliers: np.ndarray
    dual: float
    gap: float
    backend: str
    note: str = ""


def certify(problem, w, multipliers, backend):
    """Give a `QPSolution` from whatever w and multipliers a solver came up with."""
    multipliers, dual = problem.feasible_dual(multipliers)
    # The dual point has a w of its own; a rough solver's may be worse than that.
    candidates = [np.ascontiguousarray(w), multipliers @ problem.slopes]
    objectives = [problem.primal(candidate) for candidate in candidates]
    best = int(np.argmin(objectives))
    w = candidates[best]
    return QPSolution(w, problem.slacks(w), multipliers, dual, objectives[best] - dual, backend)


class WorkingSet:
    """Planes R_s(w) >= offset - slope.w, kept while the dual uses them.

    Parameters
    ----------
    weights : (n_slacks,) array
        Weight pi_s of each slack in the risk.
    n_features : int
    patience : int
        A plane is dropped once it has had no multiplier in this many solutions in a row.

    Attributes
    ----------
    slopes : (n_planes, n_features) array
    offsets : (n_planes,) array
    slack_of : (n_planes,) array of int
    multipliers : (n_planes,) array
        Those of the last solution, 0 for newer planes.

    Examples
    --------
    >>> import numpy as np
    >>> planes = WorkingSet(np.ones(1), n_features=2)
    >>> planes.add(np.array([[1.0, 0.0]]), np.array([1.0]), np.array([0]))
    >>> len(planes)
    1
    """

    def __init__(self, weights, n_features, patience=25):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.patience = patience
        self.slopes = np.empty((0, n_features))
        self.offsets = np.empty(0)
        self.slack_of = np.empty(0, dtype=np.int64)
        self.multipliers = np.empty(0)
        self._idle = np.empty(0, dtype=np.int64)

    def __len__(self):
        return self.offsets.shape[0]

    def add(self, slopes, offsets, slack_of):
        """Add planes."""
        self.slopes = np.concatenate([self.slopes, slopes])
        self.offsets = np.concatenate([self.offsets, offsets])
        self.slack_of = np.concatenate([self.slack_of, slack_of])
        self.multipliers = np.concatenate([self.multipliers, np.zeros(len(offsets))])
        self._idle = np.concatenate([self._idle, np.zeros(len(offsets), dtype=np.int64)])

    def problem(self, C):
        """Give the QP over the planes."""
        return QPProblem(self.slopes, self.offsets, self.slack_of, self.weights, C)

    def record(self, multipliers):
        """Take note of a solution's multipliers, and drop planes that have been idle for long."""
        limits = self.weights[self.slack_of]
        used = multipliers > 1e-9 * limits * max(multipliers.sum(), 1e-300) / self.weights.sum()
        self.multipliers = multipliers
        self._idle = np.where(used, 0, self._idle + 1)
        if (self._idle > self.patience).any():
            keep = self._idle <= self.patience
            self.slopes, self.offsets, self.slack_of = self.slopes[keep], self.offsets[keep], self.slack_of[keep]
            self.multipliers, self._idle = self.multipliers[keep], self._idle[keep]
