"""The working set: the planes found so far, slack by slack, and the QP over them."""

from __future__ import annotations

import numpy as np

from structrank._support.compile import kernel
from structrank.solvers.penalties import RIDGE
from structrank.solvers.vectors import add, dot

# Share of its length below which the part of a slope outside the span of others is rounding.
_DEPENDENT = 1e-12


class WorkingSet:
    r"""Planes R_s(w) >= b - a.w under each part s of R, and the QP over them.

    .. math:: \min_{w, \xi \ge 0} \Omega(w) + C \sum_s \pi_s \xi_s
              \quad \text{s.t.} \quad \xi_s \ge b_{st} - a_{st} \cdot w

    Every slack has the same number of planes, as each evaluation of R adds one to each.

    Parameters
    ----------
    weights : (n_slacks,) array
        Weight pi_s of each slack in the risk.
    n_features : int
    penalty : SeparablePenalty, default ``1/2 |w|^2``
        Omega.

    Attributes
    ----------
    n : int
        Planes of each slack.
    slopes : (n_slacks, capacity, n_features) array
        a_st; the first `n` of each slack are in use.
    offsets : (n_slacks, capacity) array
        b_st.
    multipliers : (n_slacks, capacity) array
        Dual variables of the last solution, 0 for newer planes.

    Examples
    --------
    >>> import numpy as np
    >>> planes = WorkingSet(np.ones(1), n_features=2)
    >>> planes.add(np.array([[1.0, 0.0]]), np.array([1.0]))
    >>> len(planes), planes.primal(10.0, np.zeros(2))
    (1, 10.0)
    """

    def __init__(self, weights, n_features, penalty=RIDGE):
        self.penalty, self.weights = penalty, np.asarray(weights, dtype=np.float64)
        n_slacks, self.n = self.weights.shape[0], 0
        self.slopes = np.empty((n_slacks, 0, n_features))
        self.offsets, self.multipliers = np.empty((n_slacks, 0)), np.empty((n_slacks, 0))

    def __len__(self):
        return self.n * self.weights.shape[0]

    def add(self, slopes, offsets):
        """Add a plane to each slack; `slopes` has shape (n_slacks, n_features), `offsets` (n_slacks,)."""
        if self.n == self.offsets.shape[1]:
            capacity = max(8, 2 * self.n)
            for name in ("slopes", "offsets", "multipliers"):
                old = getattr(self, name)
                larger = np.zeros((old.shape[0], capacity, *old.shape[2:]))
                larger[:, : self.n] = old
                setattr(self, name, larger)
        self.slopes[:, self.n], self.offsets[:, self.n], self.multipliers[:, self.n] = slopes, offsets, 0.0
        self.n += 1

    def span(self):
        """Return the slopes in coordinates of the space that they span, and its basis; None for unchanged coordinates.

        With the penalty ``1/2 |w|^2`` the solution of the QP lies in that space, so with far fewer planes than features the QP
        is smaller there.

        Returns
        -------
        slopes : (n_slacks, capacity, n_coordinates) array
            The first `n` of each slack are in use.
        basis : (n_coordinates, n_features) array or None
            Orthonormal rows, or 0: slopes = coordinates @ basis.
        """
        n_slacks, _, n_features = self.slopes.shape
        if 2 * len(self) >= n_features:
            return self.slopes, None
        basis = self.slopes[:, : self.n].reshape(-1, n_features).copy()
        coordinates = np.zeros((len(self), len(self)))
        _orthonormalise(basis, coordinates)
        return coordinates.reshape(n_slacks, self.n, -1), basis

    def slacks(self, w):
        """Return the smallest feasible slacks at w."""
        return _slacks(self.slopes, self.offsets, self.n, w)

    def primal(self, C, w):
        """Return the objective at w."""
        return self.penalty.value(w) + C * dot(self.weights, self.slacks(w))

    def feasible_dual(self, C, multipliers):
        """Turn any multipliers into a feasible dual point; return it, its value, a lower bound on the optimum, and its w.

        Multipliers are clipped at 0 and scaled down per slack until they sum to at most C pi_s; then all are scaled together
        to where the bound is largest.
        """
        feasible, z = np.zeros(multipliers.shape), np.zeros(self.slopes.shape[2])
        linear, largest_scale = _scale_down(self.slopes, self.offsets, self.n, C * self.weights, multipliers, feasible, z)
        scale, dual, w = self.penalty.scaled(linear, z, largest_scale)
        return scale * feasible, dual, w

    def certify(self, C, w, multipliers):
        """Return the better of w and the w of the dual point, the dual point, its value and the duality gap.

        Only with the penalty ``1/2 |w|^2`` is there a choice: the w of the dual point satisfies bounds exactly and has exact
        zeros.
        """
        w = np.ascontiguousarray(w)
        feasible, dual, own_w = self.feasible_dual(C, multipliers)
        primal, own_primal = self.primal(C, w), self.primal(C, own_w)
        if own_primal < primal or np.isnan(primal) or not self.penalty.in_span:
            return own_w, feasible, dual, own_primal - dual
        return w, feasible, dual, primal - dual


@kernel
def _orthonormalise(rows, coordinates):
    """Turn rows into an orthonormal basis of what they span, by Gram and Schmidt, and write their coordinates in it.

    A row in the span of those before it, up to rounding, becomes 0. LAPACK's threads take a hundred times as long where they
    wait for each other on a busy machine, and are slower for a few rows.
    """
    for t in range(rows.shape[0]):
        row = rows[t]
        total = dot(row, row)
        for _ in range(2):  # twice is enough: what is left by rounding after once is gone
            for i in range(t):
                part = dot(rows[i], row)
                coordinates[t, i] += part
                add(row, -part, rows[i])
        norm = np.sqrt(dot(row, row))
        if norm > _DEPENDENT * np.sqrt(total):
            coordinates[t, t] = norm
            row /= norm
        else:
            row[:] = 0.0


@kernel
def _slacks(slopes, offsets, n, w):
    slacks = np.zeros(slopes.shape[0])
    for s in range(slopes.shape[0]):
        for t in range(n):
            slack = offsets[s, t] - dot(slopes[s, t], w)
            if slack > slacks[s] or np.isnan(slack):  # an overflow must not pass for a small slack
                slacks[s] = slack
    return slacks


@kernel
def _scale_down(slopes, offsets, n, limits, multipliers, feasible, w):
    """Write multipliers within the limits to `feasible`, and add their combination of the slopes to w.

    Returns
    -------
    linear : float
        Sum of offset times multiplier.
    largest_scale : float
        Factor by which all multipliers can grow and remain within the limits.
    """
    linear, largest_scale = 0.0, np.inf
    for s in range(slopes.shape[0]):
        total = 0.0
        for t in range(n):
            total += max(multipliers[s, t], 0.0)
        if total > 0.0:
            scale = min(limits[s] / total, 1.0)
            largest_scale = min(largest_scale, max(limits[s] / total, 1.0))
            for t in range(n):
                if multipliers[s, t] > 0.0:
                    feasible[s, t] = scale * multipliers[s, t]
                    linear += feasible[s, t] * offsets[s, t]
                    add(w, feasible[s, t], slopes[s, t])
    return linear, largest_scale
