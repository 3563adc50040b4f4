"""The working set: the planes found so far, each with the slack it bounds, and the QP over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from structrank._compile import kernel
from structrank.solvers.dual import add, dot

# A plane counts as in use from this share of its slack's weight on: interior points leave a little on each.
_IN_USE = 1e-3


@dataclass(frozen=True)
class Blocks:
    """The planes of a working set, slack by slack.

    Attributes
    ----------
    members : (n_slacks, capacity) array of int
        The planes of each slack.
    counts : (n_slacks,) array of int
        How many they are.
    """

    members: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, n_slacks, capacity=8):
        """Give blocks without planes."""
        return cls(np.zeros((n_slacks, capacity), np.int64), np.zeros(n_slacks, np.int64))

    def with_room(self, slack_of):
        """Give blocks that have room for planes of these slacks: these, or larger ones with the same content."""
        n_slacks, capacity = self.members.shape
        most = int((self.counts + np.bincount(slack_of, minlength=n_slacks)).max())
        if most <= capacity:
            return self
        larger = Blocks.empty(n_slacks, max(most, 2 * capacity))
        larger.members[:, :capacity] = self.members
        larger.counts[:] = self.counts
        return larger


@kernel
def _enter(slack_of, first, members, counts):
    """Enter the planes from `first` on."""
    for plane in range(first, slack_of.shape[0]):
        s = slack_of[plane]
        members[s, counts[s]] = plane
        counts[s] += 1


@kernel
def _note_use(multipliers, slack_of, weights, patience, idle):
    """Count for how long each plane has been idle; gives the number of those for which that is too long."""
    total = 0.0
    for t in range(multipliers.shape[0]):
        total += multipliers[t]
    share = _IN_USE * max(total, 1e-300) / weights.sum()
    n_idle = 0
    for t in range(multipliers.shape[0]):
        idle[t] = 0 if multipliers[t] > share * weights[slack_of[t]] else idle[t] + 1
        n_idle += idle[t] > patience
    return n_idle


@kernel
def _drop(keep, slopes, offsets, slack_of, multipliers, idle, members, counts):
    """Leave out planes that are not kept, and move the others up; gives their number."""
    number = np.cumsum(keep) - 1
    for plane in range(keep.shape[0]):
        place = number[plane]
        if keep[plane] and place < plane:
            slopes[place] = slopes[plane]
            offsets[place], slack_of[place] = offsets[plane], slack_of[plane]
            multipliers[place], idle[place] = multipliers[plane], idle[plane]
    for s in range(counts.shape[0]):
        n = 0
        for t in range(counts[s]):
            if keep[members[s, t]]:
                members[s, n] = number[members[s, t]]
                n += 1
        counts[s] = n
    return number[-1] + 1


@kernel
def _slacks(slopes, offsets, slack_of, n_slacks, w):
    slacks = np.zeros(n_slacks)
    for t in range(offsets.shape[0]):
        slack = offsets[t] - dot(slopes[t], w)
        if slack > slacks[slack_of[t]] or np.isnan(slack):  # what overflowed must not look like a small slack
            slacks[slack_of[t]] = slack
    return slacks


@kernel
def _primal(slopes, offsets, slack_of, weights, C, w):
    return 0.5 * dot(w, w) + C * dot(weights, _slacks(slopes, offsets, slack_of, weights.shape[0], w))


@kernel
def _feasible_dual(slopes, offsets, slack_of, limits, multipliers):
    feasible = np.zeros(offsets.shape[0])
    sums = np.zeros(limits.shape[0])
    for t in range(offsets.shape[0]):
        if multipliers[t] > 0.0:
            feasible[t] = multipliers[t]
            sums[slack_of[t]] += feasible[t]
    linear, room = 0.0, np.inf
    combined = np.zeros(slopes.shape[1])
    for t in range(offsets.shape[0]):
        if feasible[t] > 0.0:
            total, limit = sums[slack_of[t]], limits[slack_of[t]]
            if total > limit:
                feasible[t] *= limit / total
            room = min(room, max(limit / total, 1.0))
            linear += feasible[t] * offsets[t]
            add(combined, feasible[t], slopes[t])
    if linear <= 0.0:
        return np.zeros_like(feasible), 0.0, np.zeros_like(combined)
    quadratic = dot(combined, combined)
    scale = min(linear / quadratic, room) if quadratic > 0.0 else room
    return scale * feasible, scale * linear - 0.5 * scale**2 * quadratic, scale * combined


@kernel
def _certify(slopes, offsets, slack_of, weights, C, w, multipliers):
    """Give the better of w and the w of the dual point that the multipliers make, that point, its value and the gap."""
    feasible, dual, own_w = _feasible_dual(slopes, offsets, slack_of, C * weights, multipliers)
    primal = _primal(slopes, offsets, slack_of, weights, C, w)
    own_primal = _primal(slopes, offsets, slack_of, weights, C, own_w)
    if own_primal < primal or np.isnan(primal):
        return own_w, feasible, dual, own_primal - dual
    return w, feasible, dual, primal - dual


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
    known_blocks : Blocks or None
        The planes, slack by slack, where someone has them.
    """

    slopes: np.ndarray
    offsets: np.ndarray
    slack_of: np.ndarray
    weights: np.ndarray
    C: float
    known_blocks: Blocks | None = None

    @cached_property
    def blocks(self):
        """The planes, slack by slack."""
        if self.known_blocks is not None:
            return self.known_blocks
        blocks = Blocks.empty(self.weights.shape[0]).with_room(self.slack_of)
        _enter(self.slack_of, 0, blocks.members, blocks.counts)
        return blocks

    def at(self, C):
        """Give the same QP for another C."""
        return replace(self, C=C)

    def slacks(self, w):
        """Compute the least feasible slacks at w."""
        return _slacks(self.slopes, self.offsets, self.slack_of, self.weights.shape[0], w)

    def primal(self, w):
        """Compute the objective at w."""
        return _primal(self.slopes, self.offsets, self.slack_of, self.weights, self.C, w)

    def feasible_dual(self, multipliers):
        """Turn any multipliers into a feasible dual point; return it, its value, a lower bound on the optimum, and its w.

        Multipliers are clipped at 0 and scaled down per slack until they sum to at most C pi_s; then all are scaled together
        to where the bound is largest.
        """
        return _feasible_dual(self.slopes, self.offsets, self.slack_of, self.C * self.weights, multipliers)


@dataclass(frozen=True)
class QPSolution:
    """A solution of the working-set QP with its own certificate.

    Attributes
    ----------
    w : (n_features,) array
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
    multipliers: np.ndarray
    dual: float
    gap: float
    backend: str
    note: str = ""


def certify(problem, w, multipliers, backend):
    """Give a `QPSolution` from whatever w and multipliers a solver came up with: a rough solver's w may be the worse."""
    found = _certify(
        problem.slopes, problem.offsets, problem.slack_of, problem.weights, problem.C, np.ascontiguousarray(w), multipliers
    )
    return QPSolution(*found, backend)


class WorkingSet:
    """Planes R_s(w) >= offset - slope.w, kept while the dual uses them.

    Parameters
    ----------
    weights : (n_slacks,) array
        Weight pi_s of each slack in the risk.
    n_features : int
    patience : int
        A plane may be dropped once it has had no multiplier in this many solutions in a row.

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

    def __init__(self, weights, n_features, patience=8):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.patience = patience
        self._n = 0
        # With room for more planes than there are.
        self._slopes, self._offsets, self._multipliers = np.empty((0, n_features)), np.empty(0), np.empty(0)
        self._slack_of, self._idle = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._blocks = Blocks.empty(self.weights.shape[0])

    def __len__(self):
        return self._n

    @property
    def slopes(self):
        """The slopes of the planes."""
        return self._slopes[: self._n]

    @property
    def offsets(self):
        """Their offsets."""
        return self._offsets[: self._n]

    @property
    def slack_of(self):
        """The slack that each bounds."""
        return self._slack_of[: self._n]

    @property
    def multipliers(self):
        """Those of the last solution."""
        return self._multipliers[: self._n]

    def add(self, slopes, offsets, slack_of):
        """Add planes."""
        new = slice(self._n, self._n + len(offsets))
        if new.stop > self._offsets.shape[0]:
            self._make_room(max(new.stop, 2 * self._n))
        self._slopes[new], self._offsets[new], self._slack_of[new] = slopes, offsets, slack_of
        self._multipliers[new], self._idle[new] = 0.0, 0
        self._n = new.stop
        self._blocks = blocks = self._blocks.with_room(slack_of)
        _enter(self.slack_of, new.start, blocks.members, blocks.counts)

    def _make_room(self, capacity):
        for name in ("_slopes", "_offsets", "_slack_of", "_multipliers", "_idle"):
            column = getattr(self, name)
            larger = np.empty((capacity, *column.shape[1:]), column.dtype)
            larger[: self._n] = column[: self._n]
            setattr(self, name, larger)

    def problem(self, C):
        """Give the QP over the planes; it holds until planes are added or recorded."""
        return QPProblem(self.slopes, self.offsets, self.slack_of, self.weights, C, self._blocks)

    def record(self, multipliers, may_drop=True):
        """Take over a solution's multipliers, and drop planes that have been idle for long, if that may be."""
        self.multipliers[:] = multipliers
        n_idle = _note_use(self.multipliers, self.slack_of, self.weights, self.patience, self._idle)
        if n_idle and may_drop:
            keep = self._idle[: self._n] <= self.patience
            blocks = self._blocks
            self._n = _drop(
                keep, self._slopes, self._offsets, self._slack_of, self._multipliers, self._idle, blocks.members, blocks.counts
            )

    def state(self):
        """Give the planes and what is known of them, as arrays."""
        names = ("slopes", "offsets", "slack_of", "multipliers", "idle")
        return {name: getattr(self, f"_{name}")[: self._n].copy() for name in names}

    def restore(self, state):
        """Take over what `state` gave."""
        self.__init__(self.weights, self._slopes.shape[1], self.patience)
        self.add(state["slopes"], state["offsets"], state["slack_of"])
        self._multipliers[: self._n], self._idle[: self._n] = state["multipliers"], state["idle"]
