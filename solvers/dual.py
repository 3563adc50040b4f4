r"""The working-set QP by coordinate ascent on its dual, slack by slack.

.. math:: \max_{\alpha \ge 0} \; \sum_t \alpha_t b_t - \tfrac12 \Big|\sum_t \alpha_t a_t\Big|^2
          \quad \text{s.t.} \quad \sum_{t: s(t) = s} \alpha_t \le C \pi_s

Each slack's planes form a block. Within a block, weight moves from the active plane of least slack to the one of most, by an
exact step, on the block's own Gram matrix; w = sum_t alpha_t a_t is brought up to date once a visit. This is the idea of
LaRank and of multi-plane block-coordinate Frank-Wolfe.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def ask_dual(max_sweeps=500):
    """Make a way to ask for the solution by dual ascent."""

    def ask(problem, accuracy, warm):
        n_slacks = problem.weights.shape[0]
        order = np.argsort(problem.slack_of, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(problem.slack_of, minlength=n_slacks))])
        slopes = problem.slopes[order] if n_slacks > 1 else problem.slopes
        multipliers = problem.feasible_dual(warm[1])[0][order]
        w = multipliers @ slopes
        sweeps = _ascend(
            slopes, problem.offsets[order], starts, problem.C * problem.weights, multipliers, w, accuracy, max_sweeps
        )
        unsorted = np.empty_like(multipliers)
        unsorted[order] = multipliers
        return w, unsorted, f"{sweeps} sweeps"

    return ask


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add(x, factor, y):
    for i in range(x.shape[0]):
        x[i] += factor * y[i]


@njit(cache=True, nogil=True)
def _balance_block(gram, gradient, alpha, limit, accuracy, max_steps):
    """Ascend within one block; changes `gradient` and `alpha`.

    Weight that no plane has counts as that of a plane of slope and offset 0.
    """
    n = alpha.shape[0]
    spare = limit
    for t in range(n):
        spare -= alpha[t]
    for _ in range(max_steps):
        to, most = -1, 0.0
        source, least = -1, np.inf
        if spare > 0.0:
            least = 0.0
        used = 0.0
        for t in range(n):
            used += alpha[t] * gradient[t]
            if gradient[t] > most:
                to, most = t, gradient[t]
            if alpha[t] > 0.0 and gradient[t] < least:
                source, least = t, gradient[t]
        if limit * most - used <= accuracy or most <= least:
            return
        curvature = 0.0
        available = spare
        if to >= 0:
            curvature += gram[to, to]
        if source >= 0:
            curvature += gram[source, source]
            available = alpha[source]
        if to >= 0 and source >= 0:
            curvature -= 2.0 * gram[to, source]
        step = available
        if (most - least) < available * curvature:
            step = (most - least) / curvature
        if to >= 0:
            alpha[to] += step
            for t in range(n):
                gradient[t] -= step * gram[t, to]
        else:
            spare += step
        if source >= 0:
            alpha[source] = alpha[source] - step if step < available else 0.0
            for t in range(n):
                gradient[t] += step * gram[t, source]
        else:
            spare = spare - step if step < available else 0.0


@njit(cache=True, nogil=True)
def _gap(slopes, offsets, starts, limits, multipliers, w):
    """Compute objective minus dual value, as the sum over slacks of what their weight could still earn at w."""
    gap = 0.0
    for s in range(limits.shape[0]):
        most = 0.0
        for t in range(starts[s], starts[s + 1]):
            gradient = offsets[t] - _dot(slopes[t], w)
            most = max(most, gradient)
            gap -= multipliers[t] * gradient
        gap += limits[s] * most
    return gap


@njit(cache=True, nogil=True)
def _ascend(slopes, offsets, starts, limits, multipliers, w, accuracy, max_sweeps):
    """Visit the blocks in turn until the gap is at most `accuracy`; changes `multipliers` and `w`."""
    n_slacks = limits.shape[0]
    largest = 0
    cells = 0
    for s in range(n_slacks):
        n = starts[s + 1] - starts[s]
        largest = max(largest, n)
        cells += n * n
    grams = np.empty(cells)
    cell = 0
    for s in range(n_slacks):
        n = starts[s + 1] - starts[s]
        gram = grams[cell : cell + n * n].reshape(n, n)
        cell += n * n
        for t in range(n):
            for u in range(t + 1):
                gram[t, u] = _dot(slopes[starts[s] + t], slopes[starts[s] + u])
                gram[u, t] = gram[t, u]
    gradient = np.empty(largest)
    before = np.empty(largest)
    gap = np.inf
    for sweep in range(max_sweeps):
        gap = 0.0
        cell = 0
        for s in range(n_slacks):
            first, n = starts[s], starts[s + 1] - starts[s]
            gram = grams[cell : cell + n * n].reshape(n, n)
            cell += n * n
            most, used = 0.0, 0.0
            for t in range(n):
                gradient[t] = offsets[first + t] - _dot(slopes[first + t], w)
                most = max(most, gradient[t])
                used += multipliers[first + t] * gradient[t]
                before[t] = multipliers[first + t]
            block_gap = limits[s] * most - used
            gap += block_gap
            if block_gap > 0.1 * accuracy / n_slacks:
                alpha = multipliers[first : first + n]
                _balance_block(
                    gram, gradient[:n], alpha, limits[s], 0.1 * max(accuracy / n_slacks, 0.1 * block_gap), 20 * n
                )
                for t in range(n):
                    if alpha[t] != before[t]:
                        _add(w, alpha[t] - before[t], slopes[first + t])
        if gap <= accuracy and _gap(slopes, offsets, starts, limits, multipliers, w) <= 0.9 * accuracy:
            return sweep + 1
    return max_sweeps
