r"""The working-set QP by a primal-dual interior-point method.

It takes few Newton steps even for degenerate QPs, on which ascent on the dual stalls: slacks that work against each other so
that w = 0, or a C so large that |w|^2 is negligible. With z_st = xi_s + a_st.w - b_st, a step solves the optimality conditions

.. math:: w = \sum_{st} \alpha_{st} a_{st}, \quad C \pi_s = \sum_t \alpha_{st} + \mu_s, \quad
          \alpha_{st} z_{st} = \sigma, \quad \mu_s \xi_s = \sigma

for a falling sigma (Mehrotra's predictor and corrector). The slacks are eliminated one by one, which leaves a system of the
size of w. Most planes of a working set are inactive: the QP is solved over the planes in use and the next best of each
slack, and again if the solution violates others.
"""

from __future__ import annotations

import functools
import threading

import numpy as np

from structrank._support.compile import REORDER, kernel
from structrank.solvers.vectors import add, combine, dot

# Up to this many unknowns a Newton step takes milliseconds, so that this backend may be tried first, not only as a fallback.
_CHEAP_UNKNOWNS = 400
# With more work, features times unknowns squared, a step or a change of coordinates takes longer than many passes.
_MOST_WORK = 4e8
_MOST_STEPS = 60
_MOST_ROUNDS = 20
_TO_THE_BOUNDARY = 0.995
# Planes with this share of their slack's weight are in use; the next best join them, from the third round on twice as many
# in each round: few slacks and many features need many planes each.
_IN_USE, _NEXT_BEST = 0.01, 2
# The number of BLAS threads is global to the process: a thread that changes it must restore it before another does.
_ONE_THREAD = threading.Lock()
# Weight, in the initial multipliers, of multipliers in balance with the slacks; the rest is the last solution.
_BALANCED = 0.3


def solve(planes, C, accuracy, w):
    """Solve the QP from the multipliers of the last solution on."""
    n_features = planes.slopes.shape[2]
    if n_features * min(n_features, len(planes)) ** 2 > _MOST_WORK:
        return None, None, "too many unknowns"
    slopes, basis = span(planes)
    # With w = sqrt(C) v and the objective divided by C, all unknowns have the same order of magnitude.
    scale = np.sqrt(C)
    multipliers = planes.feasible_dual(C, planes.multipliers)[0] / C
    v, n_steps = _solve(slopes, planes.offsets, planes.n, planes.weights, scale, accuracy / C, multipliers)
    if not (np.isfinite(v).all() and np.isfinite(multipliers).all()):
        return None, None, "numbers too large"
    return scale * (v if basis is None else combine(v, basis.T)), C * multipliers, f"{n_steps} steps"


def is_cheap(planes):
    """Return whether the QP has few enough features to try this backend first."""
    return planes.slopes.shape[2] <= _CHEAP_UNKNOWNS


def span(planes):
    """Return the slopes in coordinates of the space they span, and its basis (None for unchanged coordinates).

    The solution w lies in that space, so with far fewer planes than features the QP is smaller there.
    """
    n_slacks, _, n_features = planes.slopes.shape
    if 2 * len(planes) >= n_features:
        return planes.slopes, None
    # One thread: on a busy machine, two threads that wait for each other took up to 100 times as long.
    with _ONE_THREAD, _blas().limit(limits=1, user_api="blas"):
        basis, triangle = np.linalg.qr(planes.slopes[:, : planes.n].reshape(-1, n_features).T)
    return np.ascontiguousarray(triangle.T).reshape(n_slacks, planes.n, -1), np.asfortranarray(basis)


@functools.cache
def _blas():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# The kernels are called from Python one by one: compiled into one another, each would be compiled again in its callers.
def _solve(slopes, offsets, n, weights, scale, accuracy, multipliers):
    """Solve min 1/2 |v|^2 + weights.xi, xi_s >= b - scale a.v, from `multipliers`, which are changed.

    Returns
    -------
    v : (n_features,) array
    n_steps : int
    """
    n_slacks, n_features = weights.shape[0], slopes.shape[2]
    gradient, chosen = np.empty((n_slacks, n)), np.zeros((n_slacks, n), dtype=bool)
    v = np.zeros(n_features)
    _combine_planes(slopes, n, scale, multipliers, v)
    gap = _evaluate(slopes, offsets, weights, scale, v, multipliers, gradient)
    n_steps = 0
    for number in range(_MOST_ROUNDS):
        if not _choose(weights, gradient, multipliers, chosen, _NEXT_BEST << max(number - 1, 0)):
            break
        n_steps += _solve_chosen(slopes, weights, scale, 0.5 * accuracy, chosen, gap, v, multipliers, gradient)
        gap = _evaluate(slopes, offsets, weights, scale, v, multipliers, gradient)
        if gap <= 0.9 * accuracy:
            break
    return v, n_steps


def _solve_chosen(slopes, weights, scale, accuracy, chosen, gap, v, multipliers, gradient):
    """Solve the QP over the chosen planes, from v and the multipliers on, which are changed; return the number of steps."""
    (n_slacks, n_planes), n_features = chosen.shape, v.shape[0]
    planes = np.nonzero(chosen)[1]
    first = np.append(0, np.cumsum(chosen.sum(axis=1)))
    # The slopes as columns, in the order of their slacks: with many more planes than features, loops along rows are long and
    # fast. The last columns, one for each slack, are filled in every step.
    columns = np.empty((n_features, planes.shape[0] + n_slacks))
    sizes = n_features, n_slacks, planes.shape[0]
    primals, duals = _make_primals(*sizes), _make_duals(*sizes)
    (_, _, own_v, slacks, margin), (_, alpha, spare) = primals, duals
    own_v[:] = v
    _begin(
        slopes, weights, scale, max(gap, accuracy), planes, first, multipliers, gradient, columns, slacks, alpha, spare, margin
    )
    changes = _make_primals(*sizes), _make_duals(*sizes)
    stiff = np.empty_like(columns), np.empty(columns.shape[1]), np.empty(n_slacks), np.empty(n_slacks)
    matrix, residuals = np.empty((n_features, n_features)), (np.empty(n_features), np.empty(n_slacks))
    rhs = np.empty(planes.shape[0]), np.empty(n_slacks)
    n_steps = _newton_steps(columns, first, weights, accuracy, primals, duals, *changes, matrix, stiff, residuals, *rhs)
    v[:] = own_v
    multipliers[:, :n_planes] = 0.0
    multipliers[:, :n_planes][chosen] = alpha
    return n_steps


def _make_primals(n_features, n_slacks, n_planes):
    """Allocate v, slacks and margins; they are views of an array, which comes first, and the last two of its end, the next."""
    everything = np.empty(n_features + n_slacks + n_planes)
    return everything, everything[n_features:], *np.split(everything, [n_features, n_features + n_slacks])


def _make_duals(n_features, n_slacks, n_planes):
    """Allocate a number for each plane and for each slack; they are views of an array, which comes first."""
    everything = np.empty(n_planes + n_slacks)
    return everything, *np.split(everything, [n_planes])


@kernel
def _combine_planes(slopes, n, scale, multipliers, v):
    """Add the slopes to v, times `scale` and their multipliers."""
    for s in range(slopes.shape[0]):
        for t in range(n):
            if multipliers[s, t] > 0.0:
                add(v, scale * multipliers[s, t], slopes[s, t])


@kernel
def _evaluate(slopes, offsets, weights, scale, v, multipliers, gradient):
    """Write b - scale a.v of all planes to `gradient`; return objective minus dual value."""
    objective = 0.5 * dot(v, v)
    dual = 0.0
    combined = np.zeros(v.shape[0])
    for s in range(gradient.shape[0]):
        slack = 0.0
        for t in range(gradient.shape[1]):
            gradient[s, t] = offsets[s, t] - scale * dot(slopes[s, t], v)
            slack = max(slack, gradient[s, t])
            if multipliers[s, t] > 0.0:
                dual += multipliers[s, t] * offsets[s, t]
                add(combined, scale * multipliers[s, t], slopes[s, t])
        objective += weights[s] * slack
    return objective - dual + 0.5 * dot(combined, combined)


@kernel
def _choose(weights, gradient, multipliers, chosen, n_best):
    """Choose the planes in use and the `n_best` next best of each slack; return whether any is new."""
    any_new = False
    for s in range(chosen.shape[0]):
        for t in range(chosen.shape[1]):
            if not chosen[s, t] and multipliers[s, t] > _IN_USE * weights[s]:
                chosen[s, t] = any_new = True
        for _ in range(min(n_best, chosen.shape[1])):
            best = -1
            for t in range(chosen.shape[1]):
                if not chosen[s, t] and (best < 0 or gradient[s, t] > gradient[s, best]):
                    best = t
            if best < 0:
                break
            chosen[s, best] = any_new = True
    return any_new


@kernel(error_model="numpy")
def _begin(slopes, weights, scale, more_slack, planes, first, multipliers, gradient, columns, slacks, alpha, spare, margin):
    """Fill the columns with the slopes of the chosen planes, and the unknowns with initial values inside their bounds."""
    for s in range(weights.shape[0]):
        slacks[s] = 0.0
        for m in range(first[s], first[s + 1]):
            slacks[s] = max(slacks[s], gradient[s, planes[m]])
            slope = slopes[s, planes[m]]
            for i in range(columns.shape[0]):
                columns[i, m] = scale * slope[i]
        slacks[s] += more_slack
        inverses = 1.0 / slacks[s]
        for m in range(first[s], first[s + 1]):
            margin[m] = slacks[s] - gradient[s, planes[m]]
            inverses += 1.0 / margin[m]
        # In balance all products of a slack are equal, and its multipliers sum to its weight.
        balanced = _BALANCED * weights[s] / inverses
        spare[s] = weights[s]
        for m in range(first[s], first[s + 1]):
            alpha[m] = (1.0 - _BALANCED) * multipliers[s, planes[m]] + balanced / margin[m]
            spare[s] -= alpha[m]
        spare[s] = max(spare[s], balanced / slacks[s])


@kernel(error_model="numpy")
def _newton_steps(
    columns, first, weights, accuracy, primals, duals, d_primals, d_duals, matrix, stiff, residuals, rhs, spare_rhs
):
    """Take predictor and corrector steps until the products of the pairs are small; changes the unknowns.

    Primals and duals are tuples of `_make_primals` and `_make_duals`. The arguments after them are workspaces. Allocated here,
    or cut from larger arrays here, they would take longer to compile; so would a call for each array.

    The matrix is the product of the columns, of planes and of slacks, with the same columns times their stiffness.
    """
    (all_primals, bounded, v, slacks, margin), (all_duals, alpha, spare) = primals, duals
    (all_d_primals, d_bounded, d_v, d_slacks, d_margin), (all_d_duals, d_alpha, d_spare) = d_primals, d_duals
    stiff_columns, stiffness, spare_stiffness, own = stiff
    off_v, off_sum = residuals  # of the two linear equations
    n, n_slacks, n_features = alpha.shape[0], weights.shape[0], v.shape[0]
    primal = dual = 0.0  # longest steps
    for i in range(n_features):
        off_v[i] = dot(columns[i, :n], alpha) - v[i]
    for s in range(n_slacks):
        off_sum[s] = weights[s] - spare[s]
        for m in range(first[s], first[s + 1]):
            off_sum[s] -= alpha[m]
    for n_steps in range(_MOST_STEPS):
        products = dot(spare, slacks) + dot(alpha, margin)
        if products <= accuracy and 0.5 * dot(off_v, off_v) <= accuracy and _are_small(off_sum):
            return n_steps
        for s in range(n_slacks):
            own[s] = spare_stiffness[s] = spare[s] / slacks[s]
            for m in range(first[s], first[s + 1]):
                stiffness[m] = alpha[m] / margin[m]
                own[s] += stiffness[m]
            stiffness[n + s] = -1.0 / own[s]
        for i in range(n_features):
            column, stiff_column = columns[i], stiff_columns[i]
            for m in range(n):
                stiff_column[m] = stiffness[m] * column[m]
            for s in range(n_slacks):
                total = 0.0
                for m in range(first[s], first[s + 1]):
                    total += stiff_column[m]
                column[n + s] = total
                stiff_column[n + s] = stiffness[n + s] * column[n + s]
        _multiply(stiff_columns, columns, matrix)
        if not _factor(matrix):
            return n_steps
        for corrector in range(2):
            if corrector:
                ahead = 0.0
                for m in range(n):
                    ahead += (alpha[m] + dual * d_alpha[m]) * (margin[m] + primal * d_margin[m])
                for s in range(n_slacks):
                    ahead += (spare[s] + dual * d_spare[s]) * (slacks[s] + primal * d_slacks[s])
                target = products / (n + n_slacks) * (ahead / products) ** 3
                for m in range(n):
                    rhs[m] = (target - d_alpha[m] * d_margin[m]) / margin[m] - alpha[m]
                for s in range(n_slacks):
                    spare_rhs[s] = (target - d_spare[s] * d_slacks[s]) / slacks[s] - spare[s]
            else:
                for m in range(n):
                    rhs[m] = -alpha[m]
                for s in range(n_slacks):
                    spare_rhs[s] = -spare[s]
            # The multipliers are to change by rhs - stiffness * (change of margin).
            for s in range(n_slacks):
                d_slacks[s] = spare_rhs[s] - off_sum[s]
                for m in range(first[s], first[s + 1]):
                    d_slacks[s] += rhs[m]
            for i in range(n_features):
                d_v[i] = off_v[i] + dot(columns[i, :n], rhs) + dot(stiff_columns[i, n:], d_slacks)
            _substitute(matrix, d_v)
            d_margin[:] = 0.0
            for i in range(n_features):
                add(d_margin, d_v[i], columns[i, :n])
                add(d_slacks, -d_v[i], columns[i, n:])
            for s in range(n_slacks):
                d_slacks[s] /= own[s]
                d_spare[s] = spare_rhs[s] - spare_stiffness[s] * d_slacks[s]
                for m in range(first[s], first[s + 1]):
                    d_margin[m] += d_slacks[s]
                    d_alpha[m] = rhs[m] - stiffness[m] * d_margin[m]
            primal = _longest_step(bounded, d_bounded)
            dual = _longest_step(all_duals, all_d_duals)
        primal, dual = min(1.0, _TO_THE_BOUNDARY * primal), min(1.0, _TO_THE_BOUNDARY * dual)
        add(all_primals, primal, all_d_primals)
        add(all_duals, dual, all_d_duals)
        for i in range(n_features):
            off_v[i] = (1.0 - dual) * off_v[i] + (dual - primal) * d_v[i]
        for s in range(n_slacks):
            off_sum[s] *= 1.0 - dual
    return _MOST_STEPS


@kernel(inner=True)
def _are_small(residuals):
    """Return whether all residuals are at most 1e-9, and none is nan."""
    for s in range(residuals.shape[0]):  # noqa: SIM110 (compiled code has no generators)
        if not abs(residuals[s]) <= 1e-9:
            return False
    return True


@kernel(inner=True, fastmath=REORDER, error_model="numpy")
def _longest_step(values, changes):
    """Return the longest step, up to 1/0.995, that leaves all values at least 0."""
    shrinks = _TO_THE_BOUNDARY
    for i in range(values.shape[0]):
        shrinks = max(shrinks, -changes[i] / values[i])
    return 1.0 / shrinks


@kernel(inner=True, fastmath=REORDER)
def _multiply(left, right, matrix):
    """Put the lower half of I + left right^T into the matrix, three rows by four at a time."""
    n_rows, n = left.shape
    last = n_rows - 1
    for i in range(0, n_rows, 3):
        i1, i2 = min(i + 1, last), min(i + 2, last)
        x0, x1, x2 = left[i], left[i1], left[i2]
        for j in range(0, i2 + 1, 4):
            j1, j2, j3 = min(j + 1, last), min(j + 2, last), min(j + 3, last)
            y0, y1, y2, y3 = right[j], right[j1], right[j2], right[j3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = 0.0
            for m in range(n):
                a0 += x0[m] * y0[m]
                a1 += x0[m] * y1[m]
                a2 += x0[m] * y2[m]
                a3 += x0[m] * y3[m]
                b0 += x1[m] * y0[m]
                b1 += x1[m] * y1[m]
                b2 += x1[m] * y2[m]
                b3 += x1[m] * y3[m]
                c0 += x2[m] * y0[m]
                c1 += x2[m] * y1[m]
                c2 += x2[m] * y2[m]
                c3 += x2[m] * y3[m]
            matrix[i, j], matrix[i, j1], matrix[i, j2], matrix[i, j3] = a0, a1, a2, a3
            matrix[i1, j], matrix[i1, j1], matrix[i1, j2], matrix[i1, j3] = b0, b1, b2, b3
            matrix[i2, j], matrix[i2, j1], matrix[i2, j2], matrix[i2, j3] = c0, c1, c2, c3
    for i in range(n_rows):
        matrix[i, i] += 1.0


@kernel(inner=True, error_model="numpy")
def _factor(matrix):
    """Replace the lower half by the Cholesky factor; return whether there is one."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = (matrix[i, j] - dot(matrix[i, :j], matrix[j, :j])) / matrix[j, j]
        square = matrix[i, i] - dot(matrix[i, :i], matrix[i, :i])
        if not square > 0.0:
            return False
        matrix[i, i] = np.sqrt(square)
    return True


@kernel(inner=True, error_model="numpy")
def _substitute(factor, x):
    """Solve factor factor^T x = x."""
    n = x.shape[0]
    for i in range(n):
        x[i] = (x[i] - dot(factor[i, :i], x[:i])) / factor[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= factor[i, i]
        add(x[:i], -x[i], factor[i, :i])
