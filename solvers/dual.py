r"""The working-set QP by ascent on its dual, slack by slack.

.. math:: \max_{\alpha \ge 0} \; \sum_t \alpha_t b_t - \tfrac12 \Big|\sum_t \alpha_t a_t\Big|^2
          \quad \text{s.t.} \quad \sum_{t: s(t) = s} \alpha_t \le C \pi_s

Each slack's planes form a block. Within a block, weight moves from the active plane of least slack to the one of most, by an
exact step, on the block's own Gram matrix; w = sum_t alpha_t a_t is brought up to date once a visit. This is the idea of
LaRank and of multi-plane block-coordinate Frank-Wolfe. Where the blocks pull at each other (many slacks, large C) sweeps over
them close in slowly; conjugate gradients on the face of the multipliers in use then move all blocks together.
"""

from __future__ import annotations

import numpy as np

from structrank._compile import REORDER, kernel

# Steps within a block in one visit.
_BLOCK_STEPS = 3
# Sweeps over the planes in use, with climbs on their face between them, for one over all planes.
_LIVE_SWEEPS = 10
# Work, in sweeps over all planes, in which the gap must halve: other methods are better at what is too hard for this one.
_PATIENCE = 20
_FACE_STEPS = 30


def ask_dual(max_work=1000):
    """Make a way to ask for the solution by dual ascent, within so many sweeps over all planes or work of that size."""

    def ask(problem, accuracy, warm):
        multipliers, _, w = problem.feasible_dual(warm[1])
        blocks = problem.blocks
        work = _ascend(
            problem.slopes, problem.offsets, blocks.members, blocks.counts, blocks.grams, problem.C * problem.weights,
            multipliers, w, accuracy, float(max_work),
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


@kernel
def _balance_block(gram, places, gradient, alpha, limit, accuracy, max_steps):
    """Ascend within one block, among the planes at the given places of it; changes `gradient` and `alpha`.

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
            curvature += gram[places[to], places[to]]
        if source >= 0:
            curvature += gram[places[source], places[source]]
            available = alpha[source]
            if to >= 0:
                curvature -= 2.0 * gram[places[to], places[source]]
        step = available if curvature <= 0.0 else min(available, (most - least) / curvature)
        for t in range(n):
            change = 0.0
            if to >= 0:
                change += gram[places[t], places[to]]
            if source >= 0:
                change -= gram[places[t], places[source]]
            gradient[t] -= step * change
        if to >= 0:
            alpha[to] += step
        else:
            spare += step
        if source >= 0:
            alpha[source] = alpha[source] - step if step < available else 0.0
        else:
            spare = spare - step if step < available else 0.0


@kernel
def _sweep(
    slopes, offsets, members, counts, grams, limits, multipliers, w, accuracy, whole, live, n_live, gradient, alpha, places
):
    """Visit every block once; gives the gap, summed up as the blocks were found, and the number of planes that were read.

    A whole sweep looks at all planes and then names those worth another look: the ones in use and the two best others, as
    ``live[s, : n_live[s]]``, places within the block. Other sweeps look at these only.
    """
    n_slacks = limits.shape[0]
    gap = 0.0
    read = 0
    for s in range(n_slacks):
        n = counts[s] if whole else n_live[s]
        read += n
        most, used = 0.0, 0.0
        for t in range(n):
            places[t] = t if whole else live[s, t]
            plane = members[s, places[t]]
            alpha[t] = multipliers[plane]
            gradient[t] = offsets[plane] - dot(slopes[plane], w)
            most = max(most, gradient[t])
            used += alpha[t] * gradient[t]
        block_gap = limits[s] * most - used
        gap += block_gap
        if block_gap > 0.1 * accuracy / n_slacks:
            _balance_block(grams[s], places, gradient[:n], alpha[:n], limits[s], 0.1 * block_gap, _BLOCK_STEPS)
            for t in range(n):
                plane = members[s, places[t]]
                if alpha[t] != multipliers[plane]:
                    add(w, alpha[t] - multipliers[plane], slopes[plane])
                    multipliers[plane] = alpha[t]
        if whole:
            n_live[s] = 0
            first, second = -1, -1
            for t in range(n):
                if alpha[t] > 0.0:
                    live[s, n_live[s]] = t
                    n_live[s] += 1
                elif first < 0 or gradient[t] > gradient[first]:
                    first, second = t, first
                elif second < 0 or gradient[t] > gradient[second]:
                    second = t
            for t in (first, second):
                if t >= 0:
                    live[s, n_live[s]] = t
                    n_live[s] += 1
    return gap, read


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
def _project(values, active, slack_of, tight, n_active_of):
    """Take off each tight slack's mean, so that a step along the values keeps its sum of multipliers."""
    means = np.zeros(tight.shape[0])
    for m in range(active.shape[0]):
        means[slack_of[m]] += values[m]
    for s in range(tight.shape[0]):
        means[s] = means[s] / n_active_of[s] if tight[s] and n_active_of[s] else 0.0
    for m in range(active.shape[0]):
        values[m] -= means[slack_of[m]]


@kernel
def _ascend_on_face(slopes, offsets, members, counts, limits, multipliers, w, max_steps):
    """Take conjugate gradient steps among the multipliers above 0, until one reaches 0; gives the planes that were read."""
    n_slacks = limits.shape[0]
    n = 0
    for s in range(n_slacks):
        for t in range(counts[s]):
            n += multipliers[members[s, t]] > 0.0
    active = np.empty(n, np.int64)
    slack_of = np.empty(n, np.int64)
    tight = np.zeros(n_slacks, np.bool_)
    spare = limits.copy()
    n_active_of = np.zeros(n_slacks, np.int64)
    m = 0
    for s in range(n_slacks):
        for t in range(counts[s]):
            plane = members[s, t]
            if multipliers[plane] > 0.0:
                active[m], slack_of[m] = plane, s
                spare[s] -= multipliers[plane]
                n_active_of[s] += 1
                m += 1
        tight[s] = spare[s] <= 1e-12 * limits[s]
    residual = np.empty(n)
    direction = np.zeros(n)
    moved = np.empty(w.shape[0])
    growth = np.empty(n_slacks)
    for m in range(n):
        residual[m] = offsets[active[m]] - dot(slopes[active[m]], w)
    _project(residual, active, slack_of, tight, n_active_of)
    norm = dot(residual, residual)
    first_norm, old_norm = norm, 0.0
    for step_number in range(max_steps):
        if norm <= 1e-12 * first_norm or norm == 0.0:
            return n * (2 * step_number + 1)
        factor = norm / old_norm if step_number else 0.0
        moved[:] = 0.0
        growth[:] = 0.0
        for m in range(n):
            direction[m] = residual[m] + factor * direction[m]
            add(moved, direction[m], slopes[active[m]])
            growth[slack_of[m]] += direction[m]
        curvature = dot(moved, moved)
        step = norm / curvature if curvature > 0.0 else np.inf
        room = np.inf
        for m in range(n):
            if direction[m] < 0.0:
                room = min(room, -multipliers[active[m]] / direction[m])
        for s in range(n_slacks):
            if not tight[s] and growth[s] > 0.0:
                room = min(room, spare[s] / growth[s])
        blocked = step >= room
        step = min(step, room)
        if step == np.inf:
            return n * (2 * step_number + 2)
        add(w, step, moved)
        for m in range(n):
            multipliers[active[m]] = max(multipliers[active[m]] + step * direction[m], 0.0)
        if blocked:
            return n * (2 * step_number + 2)
        for s in range(n_slacks):
            spare[s] -= step * growth[s]
        for m in range(n):
            residual[m] -= step * dot(slopes[active[m]], moved)
        _project(residual, active, slack_of, tight, n_active_of)
        old_norm, norm = norm, dot(residual, residual)
    return n * 2 * max_steps


@kernel
def _ascend(slopes, offsets, members, counts, grams, limits, multipliers, w, accuracy, max_work):
    """Sweep, and climb on faces where sweeps are slow, until the gap is at most `accuracy`; changes `multipliers` and `w`.

    Returns
    -------
    float
        Work done, in sweeps over all planes.
    """
    capacity = members.shape[1]
    gradient, alpha, places = np.empty(capacity), np.empty(capacity), np.empty(capacity, np.int64)
    live, n_live = np.empty(members.shape, np.int64), np.zeros(limits.shape[0], np.int64)
    n_planes = max(slopes.shape[0], 1)
    most_read = max_work * n_planes
    read = 0
    looked, gap_then = 0, np.inf
    while read < most_read:
        gap, seen = _sweep(
            slopes, offsets, members, counts, grams, limits, multipliers, w, accuracy, True, live, n_live, gradient, alpha,
            places,
        )  # fmt: skip
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
        before = np.inf
        for _ in range(_LIVE_SWEEPS):
            gap, seen = _sweep(
                slopes, offsets, members, counts, grams, limits, multipliers, w, aim, False, live, n_live, gradient, alpha,
                places,
            )  # fmt: skip
            read += seen
            if gap <= aim:
                break
            if gap > 0.5 * before:
                read += _ascend_on_face(slopes, offsets, members, counts, limits, multipliers, w, _FACE_STEPS)
            before = gap
    return read / n_planes
