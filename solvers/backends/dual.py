r"""The working-set QP by ascent on its dual, slack by slack.

.. math:: \max_{\alpha \ge 0} \; \sum_{st} \alpha_{st} b_{st} - \tfrac12 \Big|\sum_{st} \alpha_{st} a_{st}\Big|^2
          \quad \text{s.t.} \quad \sum_t \alpha_{st} \le C \pi_s

A visit to a slack moves weight from its active plane of smallest gradient to the plane of largest gradient, by an exact step,
and updates w = sum_st alpha_st a_st, as LaRank and multi-plane block-coordinate Frank-Wolfe do. With many slacks
that work against each other and a large C, the gap falls slowly, and the ascent stops early.
"""

from __future__ import annotations

import numpy as np

from structrank._support.compile import kernel
from structrank.solvers.vectors import add, dot, squared_distance

# Sweeps over the planes in use for each sweep over all planes.
_LIVE_SWEEPS = 8
# Work, in sweeps over all planes, in which the gap must halve, and the most work in all.
_PATIENCE, _MOST_WORK = 20, 1000


def solve(planes, C, accuracy, w):
    """Solve the QP from the multipliers of the last solution on."""
    multipliers, _, w = planes.feasible_dual(C, planes.multipliers)
    work = _ascend(planes.slopes, planes.offsets, planes.n, C * planes.weights, multipliers, w, accuracy)
    return w, multipliers, f"{work:.0f} sweeps"


def _ascend(slopes, offsets, n, limits, multipliers, w, accuracy):
    """Sweep until the gap is at most `accuracy`, or falls too slowly; changes `multipliers` and `w`.

    Returns
    -------
    float
        Work done, in sweeps over all planes.
    """
    # Live planes of each slack, see `_sweep`, and the gradients of the slack being visited; compiled allocations would add to
    # the time to compile.
    live = np.empty((limits.shape[0], n), np.int64), np.zeros(limits.shape[0], np.int64), np.empty(n)
    return _run_sweeps(slopes, offsets, np.arange(n), limits, multipliers, w, accuracy, *live)


@kernel
def _run_sweeps(slopes, offsets, everything, limits, multipliers, w, accuracy, live, n_live, gradient):
    n_slacks, n = limits.shape[0], everything.shape[0]
    n_planes = max(n_slacks * n, 1)
    read, looked, gap_then = 0, 0, np.inf
    aim = accuracy
    partial_sweeps = 0  # that are left before the next whole sweep
    while partial_sweeps > 0 or read < _MOST_WORK * n_planes:
        whole = partial_sweeps == 0
        # The one call of `_sweep`: each call would be compiled.
        gap, seen = _sweep(slopes, offsets, everything, limits, multipliers, w, aim, whole, live, n_live, gradient)
        read += seen
        if not whole:
            partial_sweeps = 0 if gap <= aim else partial_sweeps - 1
            if partial_sweeps == 0:
                aim = accuracy
            continue
        if gap <= accuracy:
            # This gap was summed while w moved; recompute it at the final w.
            gap = _gap(slopes, offsets, n, limits, multipliers, w)
            read += n_planes
            if gap <= 0.9 * accuracy:
                break
        if read >= looked + _PATIENCE * n_planes:
            if gap > 0.5 * gap_then:
                break
            looked, gap_then = read, gap
        aim = 0.3 * min(gap, accuracy) if gap < 3.0 * accuracy else 0.1 * gap
        partial_sweeps = _LIVE_SWEEPS
    return read / n_planes


@kernel(inner=True)
def _sweep(slopes, offsets, everything, limits, multipliers, w, accuracy, whole, live, n_live, gradient):
    """Visit every slack once; return the gap, summed during the sweep, and the number of planes read.

    A whole sweep reads all planes and lists the planes in use and the two best others as ``live[s, : n_live[s]]``; other
    sweeps read only the live planes.
    """
    n_slacks = limits.shape[0]
    gap = 0.0
    read = 0
    for s in range(n_slacks):
        planes = everything if whole else live[s, : n_live[s]]
        read += planes.shape[0]
        # Unassigned weight belongs to a plane of slope and offset 0, numbered -1.
        to, most = np.int64(-1), 0.0  # a literal as argument would compile `_move` twice
        source, least = np.int64(-1), np.inf
        used, spare = 0.0, limits[s]
        for i in range(planes.shape[0]):
            t = planes[i]
            weight = multipliers[s, t]
            gradient[i] = value = offsets[s, t] - dot(slopes[s, t], w)
            used += weight * value
            spare -= weight
            if value > most:
                to, most = t, value
            if weight > 0.0 and value < least:
                source, least = t, value
        if spare > 1e-12 * limits[s] and least > 0.0:  # less is rounding
            source, least = np.int64(-1), 0.0
        slack_gap = limits[s] * most - used
        gap += slack_gap
        if slack_gap > 0.1 * accuracy / n_slacks and most > least:
            _move(slopes[s], multipliers[s], w, to, source, multipliers[s, source] if source >= 0 else spare, most - least)
        if whole:
            n_live[s] = _choose_live(multipliers[s], gradient, live[s])
    return gap, read


@kernel(inner=True)
def _move(slopes, multipliers, w, to, source, available, difference):
    """Move the best amount of weight from one plane of a slack to another; -1 stands for the plane of slope 0."""
    if to >= 0 and source >= 0:
        curvature = squared_distance(slopes[to], slopes[source])
    else:
        only = slopes[max(to, source)]
        curvature = dot(only, only)
    step = available if curvature * available <= difference else difference / curvature
    if to >= 0:
        multipliers[to] += step
        add(w, step, slopes[to])
    if source >= 0:
        multipliers[source] = multipliers[source] - step if step < available else 0.0
        add(w, -step, slopes[source])


@kernel(inner=True)
def _choose_live(multipliers, gradient, live):
    """Write the planes of a slack that are in use and the two best others; return their number."""
    n_live = 0
    first, second = -1, -1
    for t in range(gradient.shape[0]):
        if multipliers[t] > 0.0:
            live[n_live] = t
            n_live += 1
        elif first < 0 or gradient[t] > gradient[first]:
            first, second = t, first
        elif second < 0 or gradient[t] > gradient[second]:
            second = t
    if first >= 0:
        live[n_live] = first
        n_live += 1
    if second >= 0:
        live[n_live] = second
        n_live += 1
    return n_live


@kernel(inner=True)
def _gap(slopes, offsets, n, limits, multipliers, w):
    """Compute objective minus dual value, as the sum over slacks of the largest possible gain at w."""
    gap = 0.0
    for s in range(limits.shape[0]):
        most = 0.0
        for t in range(n):
            gradient = offsets[s, t] - dot(slopes[s, t], w)
            most = max(most, gradient)
            gap -= multipliers[s, t] * gradient
        gap += limits[s] * most
    return gap
