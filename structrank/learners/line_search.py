"""Minimisation of a convex function along a ray."""

from __future__ import annotations

# A smaller decrease, relative to the value at 0, is rounding.
_ROUNDING = 1e-12


def minimise_along_ray(evaluate, value, slope, tol=0.1, max_evaluations=30):
    """Minimise a convex function f >= 0 over steps t >= 0 by cutting planes in one dimension.

    Each evaluation gives a tangent. While f falls at the largest step so far, the next step is where its tangent reaches 0, the
    lower bound of f; after that, it is where the tangents on both sides of the minimum meet. For a piecewise linear f this
    ends at the minimum.

    Parameters
    ----------
    evaluate : callable
        Function from a step to the value and the slope of f there.
    value, slope : float
        f and its slope at t = 0.
    tol : float, default 0.1
        Stop when f is known to fall by at most this share more than it has fallen.
    max_evaluations : int, default 30

    Returns
    -------
    step, value : float
        The best step, 0 if none reduces f, and f there.

    Examples
    --------
    >>> def f(t):
    ...     return max(3.0 - 2.0 * t, 0.5 * t), -2.0 if 3.0 - 2.0 * t > 0.5 * t else 0.5
    >>> step, value = minimise_along_ray(f, *f(0.0), tol=0.0)
    >>> round(step, 4), round(value, 4)
    (1.2, 0.6)
    """
    start, best, best_step = value, value, 0.0
    left, right = (0.0, value, slope), None
    for _ in range(max_evaluations):
        step, bound = _next_step(left, right)
        if not left[0] < step < (right[0] if right else float("inf")) or best - bound <= tol * (start - best):
            break
        value, slope = evaluate(step)
        if value < best - _ROUNDING * start:
            best, best_step = value, step
        if slope < 0.0:
            left = step, value, slope
        else:
            right = step, value, slope
    return best_step, best


def _next_step(left, right):
    """Return where two tangents meet, or the left one reaches 0, and the height there: a lower bound of the function."""
    step, value, slope = left
    if slope >= 0.0:
        return step, value
    if right is None:
        return step - value / slope, 0.0
    at = (value - right[1] + right[2] * right[0] - slope * step) / (right[2] - slope)
    return at, max(value + slope * (at - step), 0.0)
