"""Derivative-free descent: simultaneous perturbation (SPSA) and finite differences (FDSA).

Both estimate the gradient g_k(w) from function values and step against it, w <- w - a_k g_k(w), with step sizes and
perturbations that shrink as ::

    a_k = a / (A + k ** alpha),     c_k = c / k ** gamma,     k = 1, 2, ...

(Spall, Multivariate stochastic approximation using a simultaneous perturbation gradient approximation, IEEE Transactions on
Automatic Control 37, 1992). FDSA perturbs one weight at a time and needs 2 d values for d weights; SPSA perturbs all weights
at once, in a random direction of signs, and needs 2 values for any d.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from structrank._support.requirements import require


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(value))


@dataclass(frozen=True)
class Steps:
    """The sequences of steps a_k and of perturbations c_k.

    Attributes
    ----------
    a, c : float
        Initial lengths, above 0; `a` is divided by about `A`.
    A : float
        Damps the first steps, at least 0.
    alpha, gamma : float
        Rates of decay. Convergence needs a_k, c_k -> 0, the sum of a_k infinite and that of (a_k / c_k) ** 2 finite:
        alpha <= 1 and alpha - gamma > 1/2, as 0.602 and 0.101 do.

    Examples
    --------
    >>> Steps(a=51.0, c=0.1).at(1)
    (1.0, 0.1)
    """

    a: float = 10.0
    c: float = 0.1
    A: float = 50.0
    alpha: float = 0.602
    gamma: float = 0.101

    def __post_init__(self):
        for name in ("a", "c"):
            require(_is_number(getattr(self, name)) and getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for name in ("A", "alpha", "gamma"):
            require(_is_number(getattr(self, name)) and getattr(self, name) >= 0, name, getattr(self, name), "at least 0")

    def at(self, k):
        """Return a_k and c_k, k from 1."""
        return self.a / (self.A + k**self.alpha), self.c / k**self.gamma


@dataclass(frozen=True)
class SPSA:
    """Gradients from simultaneous perturbations, averaged over ``evaluations / 2`` random directions of signs.

    Attributes
    ----------
    evaluations : int
        Values of the function for one gradient, an even number. SPSA:2 is the standard method.

    Examples
    --------
    >>> SPSA(evaluations=4).gradient(lambda w: w @ w, np.array([1.0]), 0.1, np.random.default_rng(0)).round(6)
    array([2.])
    """

    evaluations: int = 2

    def __post_init__(self):
        value = self.evaluations
        valid = isinstance(value, Integral) and not isinstance(value, bool) and value >= 2 and value % 2 == 0
        require(valid, "evaluations", value, "an even integer of at least 2")

    def evaluations_of(self, n_weights):
        """Return the number of function values of one gradient."""
        return self.evaluations

    def gradient(self, function, w, c, rng):
        """Estimate the gradient at w with perturbations of size c in every weight."""
        total = np.zeros(w.shape[0])
        for _ in range(self.evaluations // 2):
            signs = 2.0 * rng.integers(0, 2, size=w.shape[0]) - 1.0  # 1 / sign is the sign
            total += signs * ((function(w + c * signs) - function(w - c * signs)) / (2 * c))
        return total / (self.evaluations // 2)


@dataclass(frozen=True)
class FDSA:
    """Gradients from finite differences, one weight at a time: two values for each.

    Examples
    --------
    >>> FDSA().gradient(lambda w: w @ w, np.array([1.0, 3.0]), 0.1, None).round(6)
    array([2., 6.])
    """

    def evaluations_of(self, n_weights):
        """Return the number of function values of one gradient."""
        return 2 * n_weights

    def gradient(self, function, w, c, rng):
        """Estimate the gradient at w with perturbations of size c."""
        gradient, moved = np.empty(w.shape[0]), w.copy()
        for i in range(w.shape[0]):
            moved[i] = w[i] + c
            above = function(moved)
            moved[i] = w[i] - c
            gradient[i] = (above - function(moved)) / (2 * c)
            moved[i] = w[i]
        return gradient


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of `minimize`.

    Attributes
    ----------
    w : (n_weights,) array
        Final weights.
    iterations : int
    evaluations : int
        Function values computed for the gradients.
    """

    w: np.ndarray
    iterations: int
    evaluations: int


_PLAIN, _USUAL = SPSA(), Steps()


def minimize(
    function: Callable[[np.ndarray], float],
    start: ArrayLike,
    *,
    method: SPSA | FDSA = _PLAIN,
    steps: Steps = _USUAL,
    max_evaluations: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    callback: Callable[[int, int, np.ndarray], object] | None = None,
) -> Descent:
    """Descend on a function of a vector by estimated gradients.

    Parameters
    ----------
    function : callable
        From a (n_weights,) array to a finite number; it may be noisy.
    start : array-like of shape (n_weights,)
    method : SPSA or FDSA, default SPSA()
        How gradients are estimated.
    steps : Steps, default Steps()
    max_evaluations : int, default 1000
        Budget of function values for the gradients; an iteration that would exceed it is not started.
    random_state : int, numpy.random.Generator or None, default 0
        Seed of the directions.
    callback : callable, default None
        Called after each iteration with the iteration from 1, the number of evaluations so far and the weights; a true return
        value ends the descent.

    Examples
    --------
    >>> found = minimize(lambda w: (w - 3.0) @ (w - 3.0), np.zeros(5), steps=Steps(a=5.0), max_evaluations=400)
    >>> found.w.round(2), found.iterations, found.evaluations
    (array([3., 3., 3., 3., 3.]), 200, 400)
    """
    w = np.array(start, dtype=np.float64)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all():
        raise ValueError(f"start has shape {w.shape}; expected a vector of at least one weight, all finite.")
    require(callable(function), "function", function, "a function of a vector")
    require(isinstance(method, (SPSA, FDSA)), "method", method, "SPSA(evaluations) or FDSA()")
    require(isinstance(steps, Steps), "steps", steps, "Steps(a, c, A, alpha, gamma)")
    valid = isinstance(max_evaluations, Integral) and not isinstance(max_evaluations, bool) and max_evaluations >= 1
    require(valid, "max_evaluations", max_evaluations, "an integer of at least 1")
    cost = method.evaluations_of(w.shape[0])
    rng = np.random.default_rng(random_state)
    iteration = 0
    while (iteration + 1) * cost <= max_evaluations:
        iteration += 1
        w = step(function, w, iteration, method, steps, rng)
        if callback is not None and callback(iteration, iteration * cost, w):
            break
    return Descent(w, iteration, iteration * cost)


def step(function, w, k, method, steps, rng):
    """Return the weights after iteration k of `minimize`, from 1.

    Examples
    --------
    >>> step(lambda w: w @ w, np.array([3.0]), 1, SPSA(), Steps(a=51.0), np.random.default_rng(0)).round(6)
    array([-3.])
    """

    def checked(weights):
        value = function(weights)
        if not np.isfinite(value):
            raise ValueError(f"the function returned {value!r}; descent needs finite values. Reduce a or c.")
        return float(value)

    a, c = steps.at(k)
    return w - a * method.gradient(checked, w, c, rng)
