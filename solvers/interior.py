r"""The working-set QP by a primal-dual interior-point method.

It takes about a dozen Newton steps however degenerate the QP is, which is where ascent on the dual stalls: slacks that pull
against each other so that w = 0, or a C so large that |w|^2 hardly counts. With z_t = xi_s(t) + a_t.w - b_t, a step solves the
optimality conditions

.. math:: w = \sum_t \alpha_t a_t, \quad C \pi_s = \sum_{t \in s} \alpha_t + \mu_s, \quad
          \alpha_t z_t = \sigma, \quad \mu_s \xi_s = \sigma

for a falling sigma (Mehrotra's predictor and corrector). The slacks are eliminated one by one, so that a system of the size
of w is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import scipy.sparse
from threadpoolctl import ThreadpoolController

# Larger systems are left to OSQP, which keeps them sparse.
_MOST_UNKNOWNS = 1500
_MOST_STEPS = 60
_TO_THE_BOUNDARY = 0.995


def ask_interior():
    """Make a way to ask for the solution by an interior-point method."""

    def ask(problem, accuracy, warm):
        slopes, basis = span(problem.slopes)
        if slopes.shape[1] > _MOST_UNKNOWNS:
            return None, None, "too many features"
        # With w = sqrt(C) v and the objective divided by C, all unknowns are of a size.
        scale = np.sqrt(problem.C)
        # Features of extreme scale overflow here; what comes out is then left to another method.
        with _one_blas_thread(), np.errstate(all="ignore"):
            v, multipliers, n_steps = _solve(
                scale * slopes, problem.offsets, problem.slack_of, problem.weights, 0.3 * accuracy / problem.C
            )
        if not (np.isfinite(v).all() and np.isfinite(multipliers).all()):
            return None, None, "numbers too large"
        w = scale * (v if basis is None else basis @ v)
        return w, problem.C * multipliers, f"{n_steps} steps"

    return ask


@cache
def _blas():
    return ThreadpoolController()


def _one_blas_thread():
    """Keep BLAS to one thread: more would cost these small systems more than they save."""
    return _blas().limit(limits=1, user_api="blas")


def span(slopes):
    """Give the slopes in coordinates of the space they span, and its basis (None for the coordinates as they are).

    The solution w lies in that space, so with fewer planes than features the QP is smaller there.
    """
    if slopes.shape[0] >= slopes.shape[1]:
        return slopes, None
    basis, triangle = np.linalg.qr(slopes.T)
    return triangle.T, basis


@dataclass(frozen=True)
class _State:
    """The unknowns: w and the slacks, the multipliers of the planes and of xi >= 0, and the room z that each plane leaves."""

    w: np.ndarray
    slacks: np.ndarray
    multipliers: np.ndarray
    spare: np.ndarray
    room: np.ndarray

    def products(self, change=None, primal=0.0, dual=0.0):
        """Sum up the products that are to be 0, here or after a step."""
        if change is None:
            return self.multipliers @ self.room + self.spare @ self.slacks
        return (self.multipliers + dual * change.multipliers) @ (self.room + primal * change.room) + (
            self.spare + dual * change.spare
        ) @ (self.slacks + primal * change.slacks)

    def longest(self, change):
        """Give the longest steps, in the primal and in the dual unknowns, that leave all at least 0."""
        return (
            min(_longest(self.slacks, change.slacks), _longest(self.room, change.room)),
            min(_longest(self.multipliers, change.multipliers), _longest(self.spare, change.spare)),
        )


class _Newton:
    """The linear system of one step, factored once for predictor and corrector."""

    def __init__(self, slopes, slack_of, belongs, state, off_w, off_sum):
        self.slopes, self.slack_of, self.belongs = slopes, slack_of, belongs
        self.off_w, self.off_sum = off_w, off_sum
        self.stiffness, self.spare_stiffness = state.multipliers / state.room, state.spare / state.slacks
        weighted = self.stiffness[:, None] * slopes
        self.own = belongs @ self.stiffness + self.spare_stiffness
        self.by_slack = belongs @ weighted
        matrix = slopes.T @ weighted - (self.by_slack / self.own[:, None]).T @ self.by_slack
        matrix[np.diag_indices_from(matrix)] += 1.0
        self.factor = scipy.linalg.cho_factor(matrix, check_finite=False)

    def step(self, pull, spare_pull):
        """Give the step if the multipliers are to change by ``pull - stiffness * (change of room)``."""
        right_sum = self.belongs @ pull + spare_pull - self.off_sum
        right = self.off_w + pull @ self.slopes - (right_sum / self.own) @ self.by_slack
        w = scipy.linalg.cho_solve(self.factor, right, check_finite=False)
        slacks = (right_sum - self.by_slack @ w) / self.own
        room = slacks[self.slack_of] + self.slopes @ w
        return _State(w, slacks, pull - self.stiffness * room, spare_pull - self.spare_stiffness * slacks, room)


def _solve(slopes, offsets, slack_of, weights, accuracy):
    """Solve min 1/2 |w|^2 + weights.xi; gives w, the multipliers and the number of steps."""
    n_planes, n_slacks = offsets.shape[0], weights.shape[0]
    belongs = scipy.sparse.csr_array((np.ones(n_planes), (slack_of, np.arange(n_planes))), shape=(n_slacks, n_planes))
    evenly = weights / (belongs @ np.ones(n_planes) + 1.0)
    slacks = np.full(n_slacks, 1.5 * max(float(np.abs(offsets).max(initial=0.0)), 1e-3))
    state = _State(np.zeros(slopes.shape[1]), slacks, evenly[slack_of], evenly, slacks[slack_of] - offsets)
    for n_steps in range(_MOST_STEPS):
        products = state.products()
        mean = products / (n_planes + n_slacks)
        off_w = state.multipliers @ slopes - state.w
        off_sum = weights - belongs @ state.multipliers - state.spare
        if products <= accuracy and 0.5 * (off_w @ off_w) <= accuracy and np.abs(off_sum).max() <= 1e-9:
            return state.w, state.multipliers, n_steps
        try:
            newton = _Newton(slopes, slack_of, belongs, state, off_w, off_sum)
        except np.linalg.LinAlgError:
            break
        ahead = newton.step(-state.multipliers, -state.spare)
        target = mean * (state.products(ahead, *state.longest(ahead)) / products) ** 3
        change = newton.step(
            (target - ahead.multipliers * ahead.room) / state.room - state.multipliers,
            (target - ahead.spare * ahead.slacks) / state.slacks - state.spare,
        )
        primal, dual = (min(1.0, _TO_THE_BOUNDARY * longest) for longest in state.longest(change))
        w, slacks = state.w + primal * change.w, state.slacks + primal * change.slacks
        state = _State(
            w,
            slacks,
            state.multipliers + dual * change.multipliers,
            state.spare + dual * change.spare,
            np.maximum(slacks[slack_of] + slopes @ w - offsets, 1e-300),  # rounding must not let the two drift apart
        )
    return state.w, state.multipliers, _MOST_STEPS


def _longest(values, changes):
    """Give the longest step, up to 1, that leaves all values at least 0."""
    falls = changes < 0.0
    return min(1.0, float(np.min(-values[falls] / changes[falls]))) if falls.any() else 1.0
