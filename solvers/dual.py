r"""The working-set QP by ascent on its dual, slack by slack.

.. math:: \max_{\alpha \ge 0} \; \sum_t \alpha_t b_t - \tfrac12 \Big|\sum_t \alpha_t a_t\Big|^2
          \quad \text{s.t.} \quad \sum_{t: s(t) = s} \alpha_t \le C \pi_s

Each slack's planes form a block. A visit to it moves weight from its active plane of least slack to the one of most, by an
exact step, and brings w = sum_t alpha_t a_t up to date. This is the idea of LaRank and of multi-plane block-coordinate
Frank-Wolfe. Where the blocks pull at each other (many slacks, large C) sweeps over them close in slowly: the gap then does not
fall as it should, and other methods are asked.
"""

from __future__ import annotations

import numpy as np

from structrank._compile import REORDER, kernel

# Sweeps over the planes in use for one over all planes.
_LIVE_SWEEPS = 8
# Work, in sweeps over all planes, in which the gap must halve: other methods are better at what is too hard for this one.
_PATIENCE = 20


def ask_dual(max_work=1000):
    """Make a way to ask for the solution by dual ascent, within so many sweeps over all planes or work of that size."""

    def ask(problem, accuracy, warm):
        multipliers, _, w = problem.feasible_dual(warm[1])
        blocks = problem.blocks
        work = _ascend(
            problem.slopes, problem.offsets, blocks.members, blocks.counts, problem.C * problem.weights, multipliers, w,
            accuracy, float(max_work),
        )  # fmt: skip
        return w, multipliers, f"{work:.0f} sweeps"

    return ask


@kernel(fastmath=REORDER)
def dot(x, y):
    """Give x.y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel(fastmath=REORDER)
def add(x, factor, y):
    """Add factor y to x."""
    for i in range(x.shape[0]):
        x[i] += factor * y[i]


@kernel
def combine(factors, rows):
    """Give sum_t factors_t rows_t, without BLAS: its threads keep cores busy for milliseconds after they are done."""
    total = np.zeros(rows.shape[1])
    for t in range(rows.shape[0]):
        if factors[t] != 0.0:
            add(total, factors[t], rows[t])
    return total


@kernel(fastmath=REORDER)
def _square_of_difference(x, y):
    """Give |x - y|^2."""
    total = 0.0
    for i in range(x.shape[0]):
        total += (x[i] - y[i]) ** 2
    return total


@kernel
def _sweep(slopes, offsets, members, counts, limits, multipliers, w, accuracy, whole, live, n_live, gradient):
    """Visit every block once; gives the gap, summed up as the blocks were found, and the number of planes that were read.

    A whole sweep looks at all planes and then names those worth another look: the ones in use and the two best others, as
    ``live[s, : n_live[s]]``. Other sweeps look at these only. `gradient` is room for those of a block.
    """
    n_slacks = limits.shape[0]
    gap = 0.0
    read = 0
    for s in range(n_slacks):
        planes = members[s, : counts[s]] if whole else live[s, : n_live[s]]
        read += planes.shape[0]
        # Weight that no plane has counts as that of a plane of slope and offset 0.
        to, most = -1, 0.0
        source, least = -1, np.inf
        used, spare = 0.0, limits[s]
        for t in range(planes.shape[0]):
            plane = planes[t]
            weight = multipliers[plane]
            gradient[t] = value = offsets[plane] - dot(slopes[plane], w)
            used += weight * value
            spare -= weight
            if value > most:
                to, most = plane, value
            if weight > 0.0 and value < least:
                source, least = plane, value
        if spare > 1e-12 * limits[s] and least > 0.0:  # less is rounding, and cannot be moved
            source, least = -1, 0.0
        block_gap = limits[s] * most - used
        gap += block_gap
        if block_gap > 0.1 * accuracy / n_slacks and most > least:
            _move(slopes, multipliers, w, to, source, multipliers[source] if source >= 0 else spare, most - least)
        if whole:
            n_live[s] = _choose_live(planes, multipliers, gradient, live[s])
    return gap, read


@kernel
def _move(slopes, multipliers, w, to, source, available, difference):
    """Move weight from one plane to another, as much as is best; -1 stands for the plane of slope 0."""
    if to >= 0 and source >= 0:
        curvature = _square_of_difference(slopes[to], slopes[source])
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


@kernel
def _choose_live(planes, multipliers, gradient, live):
    """Write the planes of a block that are in use, and the two best others; gives their number."""
    n = 0
    first, second = -1, -1
    for t in range(planes.shape[0]):
        if multipliers[planes[t]] > 0.0:
            live[n] = planes[t]
            n += 1
        elif first < 0 or gradient[t] > gradient[first]:
            first, second = t, first
        elif second < 0 or gradient[t] > gradient[second]:
            second = t
    for t in (first, second):
        if t >= 0:
            live[n] = planes[t]
            n += 1
    return n


@kernel
def _gap(slopes, offsets, members, counts, limits, multipliers, w):
    """Compute objective minus dual value, as the sum over slacks of what their weight could still earn at w."""
    gap = 0.0
    for s in range(limits.shape[0]):
        most = 0.0
        for t in range(counts[s]):
            plane = members[s, t]
            gradient = offsets[plane] - dot(slopes[plane], w)
            most = max(most, gradient)
            gap -= multipliers[plane] * gradient
        gap += limits[s] * most
    return gap


@kernel
def _ascend(slopes, offsets, members, counts, limits, multipliers, w, accuracy, max_work):
    """Sweep until the gap is at most `accuracy`, or falls too slowly; changes `multipliers` and `w`.

    Returns
    -------
    float
        Work done, in sweeps over all planes.
    """
    gradient, live, n_live = np.empty(members.shape[1]), np.empty_like(members), np.zeros_like(counts)
    n_planes = max(slopes.shape[0], 1)
    most_read = max_work * n_planes
    read = 0
    looked, gap_then = 0, np.inf
    while read < most_read:
        gap, seen = _sweep(slopes, offsets, members, counts, limits, multipliers, w, accuracy, True, live, n_live, gradient)
        read += seen
        if gap <= accuracy:
            # That was summed up while w moved; what counts is the gap at w as it is now.
            gap = _gap(slopes, offsets, members, counts, limits, multipliers, w)
            read += n_planes
            if gap <= 0.9 * accuracy:
                break
        if read >= looked + _PATIENCE * n_planes:
            if gap > 0.5 * gap_then:
                break
            looked, gap_then = read, gap
        aim = 0.3 * min(gap, accuracy) if gap < 3.0 * accuracy else 0.1 * gap
        for _ in range(_LIVE_SWEEPS):
            gap, seen = _sweep(slopes, offsets, members, counts, limits, multipliers, w, aim, False, live, n_live, gradient)
            read += seen
            if gap <= aim:
                break
    return read / n_planes
