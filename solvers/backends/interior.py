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

import numpy as np

from structrank._support.compile import kernel
from structrank._support.lanes import load, sum_lanes, zeros
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
# Weight, in the initial multipliers, of multipliers in balance with the slacks; the rest is the last solution.
_BALANCED = 0.3


def solve(planes, C, accuracy, w):
    """Solve the QP from the multipliers of the last solution on."""
    n_features = planes.slopes.shape[2]
    if n_features * min(n_features, len(planes)) ** 2 > _MOST_WORK:
        return None, None, "too many unknowns"
    slopes, basis = planes.span()
    # With w = sqrt(C) v and the objective divided by C, all unknowns have the same order of magnitude.
    scale = np.sqrt(C)
    multipliers = planes.feasible_dual(C, planes.multipliers)[0] / C
    with np.errstate(all="ignore"):
        v, n_steps = _solve(slopes, planes.offsets, planes.n, planes.weights, scale, accuracy / C, multipliers)
    if not (np.isfinite(v).all() and np.isfinite(multipliers).all()):
        return None, None, "numbers too large"
    return scale * (v if basis is None else combine(v, basis)), C * multipliers, f"{n_steps} steps"


def is_cheap(planes):
    """Return whether the QP has few enough features to try this backend first."""
    return planes.slopes.shape[2] <= _CHEAP_UNKNOWNS


def _solve(slopes, offsets, n, weights, scale, accuracy, multipliers):
    """Solve min 1/2 |v|^2 + weights.xi, xi_s >= b - scale a.v, from `multipliers`, which are changed.

    Returns
    -------
    v : (n_features,) array
    n_steps : int
    """
    alpha = multipliers[:, :n]
    chosen = np.zeros(alpha.shape, dtype=bool)
    gradient, v = np.empty(alpha.shape), np.zeros(slopes.shape[2])
    gap = _evaluate(slopes, offsets, weights, scale, multipliers, True, v, gradient)
    n_steps = 0
    for number in range(_MOST_ROUNDS):
        if not _choose(weights, gradient, alpha, chosen, _NEXT_BEST << max(number - 1, 0)):
            break
        of_chosen, steps = _solve_chosen(slopes[:, :n], weights, scale, 0.5 * accuracy, chosen, gap, v, alpha, gradient)
        alpha[:] = 0.0
        alpha[chosen] = of_chosen
        n_steps += steps
        gap = _evaluate(slopes, offsets, weights, scale, multipliers, False, v, gradient)
        if gap <= 0.9 * accuracy:
            break
    return v, n_steps


@kernel
def _evaluate(slopes, offsets, weights, scale, multipliers, at_dual, v, gradient):
    """Write b - scale a.v of all planes to `gradient`; return objective minus dual value. `at_dual` sets v to the dual's."""
    dual = 0.0
    combined = np.zeros(v.shape[0])
    for s in range(gradient.shape[0]):
        for t in range(gradient.shape[1]):
            if multipliers[s, t] > 0.0:
                dual += multipliers[s, t] * offsets[s, t]
                add(combined, scale * multipliers[s, t], slopes[s, t])
    if at_dual:  # v is 0
        add(v, 1.0, combined)
    objective = 0.5 * dot(v, v)
    for s in range(gradient.shape[0]):
        slack = 0.0
        for t in range(gradient.shape[1]):
            gradient[s, t] = offsets[s, t] - scale * dot(slopes[s, t], v)
            slack = max(slack, gradient[s, t])
        objective += weights[s] * slack
    return objective - dual + 0.5 * dot(combined, combined)


def _choose(weights, gradient, alpha, chosen, n_best):
    """Choose the planes in use and the `n_best` next best of each slack; return whether any is new."""
    n_chosen, slacks = np.count_nonzero(chosen), np.arange(weights.shape[0])
    chosen |= alpha > _IN_USE * weights[:, None]
    others = np.where(chosen, -np.inf, gradient)
    for _ in range(min(n_best, chosen.shape[1])):
        best = others.argmax(axis=1)
        chosen[slacks, best], others[slacks, best] = True, -np.inf
    return np.count_nonzero(chosen) > n_chosen


def _solve_chosen(slopes, weights, scale, accuracy, chosen, gap, v, alpha, gradient):
    """Solve the QP over the chosen planes, from v, which is changed, and the multipliers on; return these, and the steps.

    Vectors with a number for each chosen plane and then for each slack: `primal` are the margins z_st and the slacks xi_s,
    `dual` the multipliers alpha_st and mu_s.
    """
    slack_of, _ = np.nonzero(chosen)
    first = np.searchsorted(slack_of, np.arange(weights.shape[0] + 1))  # plane of each slack; every slack has one
    n, rows, gradient = slack_of.shape[0], scale * slopes[chosen], gradient[chosen]
    # Initial values inside their bounds. In balance all products of a slack are equal, and its multipliers sum to its weight.
    slacks = np.maximum(np.maximum.reduceat(gradient, first[:-1]), 0.0) + max(gap, accuracy)
    primal = np.concatenate([slacks[slack_of] - gradient, slacks])
    inverse = 1.0 / primal
    balanced = _BALANCED * weights / (inverse[n:] + np.add.reduceat(inverse[:n], first[:-1]))
    started = (1.0 - _BALANCED) * alpha[chosen] + balanced[slack_of] * inverse[:n]
    spare = weights - np.add.reduceat(started, first[:-1])
    dual = np.concatenate([started, np.maximum(spare, balanced * inverse[n:])])
    # The slopes as columns, in the order of their slacks: with many more planes than features, loops along rows are long and
    # fast. The last columns, one for each slack, are filled in every step.
    columns = np.empty((v.shape[0], primal.shape[0]))
    columns[:, :n] = rows.T
    off_sum = weights - dual[n:] - np.add.reduceat(dual[:n], first[:-1])
    n_steps = _newton_steps(columns, first, accuracy, v, primal, dual, off_sum, _make_workspace(columns, off_sum))
    return dual[:n], n_steps


def _make_workspace(columns, off_sum):
    """Allocate the workspaces of `_newton_steps`; compiled allocations would take longer to compile."""
    n_features, n = columns.shape
    return (
        *(np.empty(n_features), np.empty(n_features), np.empty(n), np.empty(n), np.empty_like(off_sum)),
        np.empty((n_features, n_features)),
        np.empty_like(columns),
        np.empty(n),
        np.empty(n),
        np.empty_like(off_sum),
    )


@kernel(error_model="numpy")
def _newton_steps(columns, first, accuracy, v, primal, dual, off_sum, workspace):
    """Take predictor and corrector steps until the products of the pairs are small; changes v, primal and dual.

    `off_sum`, and `off_v`, are the residuals of the two linear equations. The matrix in the workspace is the product
    of the columns, of planes and of slacks, with the same columns times their stiffness.
    """
    off_v, d_v, d_primal, d_dual, d_slacks, matrix, stiff_columns, stiffness, rhs, own = workspace
    n_slacks, n_features = off_sum.shape[0], v.shape[0]
    n = primal.shape[0] - n_slacks
    for i in range(n_features):
        off_v[i] = dot(columns[i, :n], dual) - v[i]
    primal_step = dual_step = 0.0
    for n_steps in range(_MOST_STEPS):
        products = dot(primal, dual)
        if products <= accuracy and 0.5 * dot(off_v, off_v) <= accuracy and _are_small(off_sum):
            return n_steps
        for i in range(n + n_slacks):
            stiffness[i] = dual[i] / primal[i]
        for s in range(n_slacks):
            own[s] = stiffness[n + s]
            for m in range(first[s], first[s + 1]):
                own[s] += stiffness[m]
        for i in range(n_features):
            column, stiff_column = columns[i], stiff_columns[i]
            for m in range(n):
                stiff_column[m] = stiffness[m] * column[m]
            for s in range(n_slacks):
                total = 0.0
                for m in range(first[s], first[s + 1]):
                    total += stiff_column[m]
                column[n + s] = total
                stiff_column[n + s] = -total / own[s]
        _multiply(stiff_columns, columns, matrix)
        if not _factor(matrix):
            return n_steps
        for corrector in range(2):
            if corrector:
                ahead = 0.0
                for i in range(n + n_slacks):
                    ahead += (dual[i] + dual_step * d_dual[i]) * (primal[i] + primal_step * d_primal[i])
                target = products / (n + n_slacks) * (ahead / products) ** 3
                for i in range(n + n_slacks):
                    rhs[i] = (target - d_dual[i] * d_primal[i]) / primal[i] - dual[i]
            else:
                for i in range(n + n_slacks):
                    rhs[i] = -dual[i]
            # The multipliers are to change by rhs - stiffness * (change of margin).
            for s in range(n_slacks):
                d_slacks[s] = rhs[n + s] - off_sum[s]
                for m in range(first[s], first[s + 1]):
                    d_slacks[s] += rhs[m]
            for i in range(n_features):
                d_v[i] = off_v[i] + dot(columns[i, :n], rhs) + dot(stiff_columns[i, n:], d_slacks)
            _substitute(matrix, d_v)
            d_primal[:] = 0.0
            for i in range(n_features):
                add(d_primal, d_v[i], columns[i])
            for s in range(n_slacks):
                d_primal[n + s] = (d_slacks[s] - d_primal[n + s]) / own[s]
                for m in range(first[s], first[s + 1]):
                    d_primal[m] += d_primal[n + s]
            for i in range(n + n_slacks):
                d_dual[i] = rhs[i] - stiffness[i] * d_primal[i]
            primal_step = _longest_step(primal, d_primal)
            dual_step = _longest_step(dual, d_dual)
        primal_step, dual_step = min(1.0, _TO_THE_BOUNDARY * primal_step), min(1.0, _TO_THE_BOUNDARY * dual_step)
        add(v, primal_step, d_v)
        add(primal, primal_step, d_primal)
        add(dual, dual_step, d_dual)
        for i in range(n_features):
            off_v[i] = (1.0 - dual_step) * off_v[i] + (dual_step - primal_step) * d_v[i]
        for s in range(n_slacks):
            off_sum[s] *= 1.0 - dual_step
    return _MOST_STEPS


@kernel(inner=True)
def _are_small(residuals):
    """Return whether all residuals are at most 1e-9, and none is nan."""
    for s in range(residuals.shape[0]):  # noqa: SIM110 (compiled code has no generators)
        if not abs(residuals[s]) <= 1e-9:
            return False
    return True


@kernel(inner=True, error_model="numpy")
def _longest_step(values, changes):
    """Return the longest step, up to 1/0.995, that leaves all values at least 0."""
    shrinks = _TO_THE_BOUNDARY
    for i in range(values.shape[0]):
        shrinks = max(shrinks, -changes[i] / values[i])
    return 1.0 / shrinks


@kernel(inner=True)
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
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = zeros()
            for m in range(0, n - 3, 4):
                left0, left1, left2 = load(x0, m), load(x1, m), load(x2, m)
                some = load(y0, m)
                a0 += left0 * some
                b0 += left1 * some
                c0 += left2 * some
                some = load(y1, m)
                a1 += left0 * some
                b1 += left1 * some
                c1 += left2 * some
                some = load(y2, m)
                a2 += left0 * some
                b2 += left1 * some
                c2 += left2 * some
                some = load(y3, m)
                a3 += left0 * some
                b3 += left1 * some
                c3 += left2 * some
            matrix[i, j], matrix[i, j1] = sum_lanes(a0), sum_lanes(a1)
            matrix[i, j2], matrix[i, j3] = sum_lanes(a2), sum_lanes(a3)
            matrix[i1, j], matrix[i1, j1] = sum_lanes(b0), sum_lanes(b1)
            matrix[i1, j2], matrix[i1, j3] = sum_lanes(b2), sum_lanes(b3)
            matrix[i2, j], matrix[i2, j1] = sum_lanes(c0), sum_lanes(c1)
            matrix[i2, j2], matrix[i2, j3] = sum_lanes(c2), sum_lanes(c3)
    for i in range(n_rows):
        for j in range(i + 1):
            for m in range(n - n % 4, n):
                matrix[i, j] += left[i, m] * right[j, m]
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
