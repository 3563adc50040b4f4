r"""Penalties Omega(w) in min_w Omega(w) + C R(w): what the driver, the working set and the QP backends know of them.

For multipliers alpha of planes R(w) >= b - a.w, with z = sum_t alpha_t a_t, the value of the dual is

.. math:: D(\alpha) = \sum_t \alpha_t b_t + \min_w [\Omega(w) - z \cdot w],

a lower bound on the optimum for any feasible alpha. So a certificate needs only the minimiser at z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from structrank.solvers.vectors import dot

# Halvings of an interval of shares; the bound is flat at its maximum, so that half the digits are enough. With 10 of them, 96
# fits with a penalty had 670 passes in place of 665; with 50 they had 665 and took a tenth longer.
_HALVINGS = 30


@dataclass(frozen=True)
class Program:
    r"""A penalty as part of a QP in x = (w, t), with variables t of its own.

    .. math:: \Omega(w) = \text{const} + \min_t \tfrac12 \sum_i d_i x_i^2 + c \cdot x
              \quad \text{s.t.} \quad l \le G x \le u

    Attributes
    ----------
    diagonal, linear : (n_variables,) array
        d and c.
    rows : (n_rows, n_variables) sparse matrix
        G.
    lower, upper : (n_rows,) array
        l and u; may be infinite.
    """

    diagonal: np.ndarray
    linear: np.ndarray
    rows: scipy.sparse.csc_matrix
    lower: np.ndarray
    upper: np.ndarray


class SeparablePenalty:
    """Base class of penalties that are sums of convex functions of one weight each.

    A subclass has ``value(w)``, infinite where w is not allowed; ``minimiser(z)``, the w of least Omega(w) - z.w; ``rates(z)``,
    the derivative of each weight of the minimiser; and ``derivative(w, direction)``, the one-sided derivative of the value. The
    minimiser must exist for every z and be continuous: where a penalty grows no faster than linearly, the weight needs bounds.
    """

    in_span = False  # whether the minimiser lies in the space that the slopes of the planes span

    def for_columns(self, n_features, names=None, scale=None):
        """Return the penalty for this many columns; raise for scaled columns, which a subclass may support."""
        if scale is not None:
            raise ValueError(f"scale='std' does not support the penalty {type(self).__name__}; scale the features first.")
        return self

    def program(self, n_features):
        """Return the `Program` of the penalty; None if there is none, and CVXPY cannot be used."""

    def nearest(self, w):
        """Return an allowed point near w."""
        return w

    def between(self, start, end, step):
        """Return start + step (end - start), up to no rounding error outside the interval from start to end."""
        if step == 1.0:
            return end
        return np.clip(start + step * (end - start), np.minimum(start, end), np.maximum(start, end))

    def scaled(self, linear, z, limit):
        """Return the scale from 0 to `limit` of multipliers that makes their dual value largest, that value, and its w.

        Parameters
        ----------
        linear : float
            Sum of the multipliers times the offsets of their planes.
        z : (n_features,) array
            Sum of the multipliers times the slopes of their planes.
        limit : float
            Infinite if all multipliers are 0.
        """
        scale = self.best_share(np.zeros_like(z), z, linear, limit if np.isfinite(limit) else 0.0)
        w = self._minimiser(scale * z)
        return scale, scale * linear + self.value(w) - scale * dot(z, w), w

    def best_share(self, z, direction, gain, limit=1.0):
        """Return the share, up to a limit, of a step that makes the value of the dual largest, by bisection.

        The step changes z by `direction` and the sum of the multipliers times the offsets by `gain`.
        """
        low, high, share = 0.0, limit, limit
        for _ in range(_HALVINGS):
            rises = gain > dot(direction, self._minimiser(z + share * direction))
            if rises and share == limit:
                break
            low, high = (share, high) if rises else (low, share)
            share = 0.5 * (low + high)
        return share

    def _minimiser(self, z):
        w = self.minimiser(z)
        if not np.isfinite(w).all() and np.isfinite(z).all():
            raise ValueError(
                f"the penalty {type(self).__name__} has no minimiser for the weight of column {int(np.isfinite(w).argmin())}: "
                "a penalty that grows no faster than linearly needs bounds on the weight."
            )
        return np.ascontiguousarray(w)


class Ridge(SeparablePenalty):
    """1/2 |w|^2: the minimiser is z itself, and so lies in the space that the slopes of the planes span.

    Examples
    --------
    >>> RIDGE.value(np.array([3.0, 4.0]))
    12.5
    """

    in_span = True

    def for_columns(self, n_features, names=None, scale=None):
        """Return the penalty itself: that of scaled columns is 1/2 |scale * w|^2."""
        return self

    def value(self, w):
        """Compute 1/2 |w|^2."""
        return 0.5 * dot(w, w)

    def minimiser(self, z):
        """Return z."""
        return z

    def derivative(self, w, direction):
        """Return w.direction."""
        return dot(w, direction)

    def between(self, start, end, step):
        """Return start + step (end - start)."""
        return start + step * (end - start)

    def scaled(self, linear, z, limit):
        """See the base class; the maximum has a formula."""
        if linear <= 0.0:
            return 0.0, 0.0, np.zeros_like(z)
        quadratic = dot(z, z)
        scale = min(linear / quadratic, limit) if quadratic > 0.0 else limit
        return scale, scale * linear - 0.5 * scale * scale * quadratic, scale * z


RIDGE = Ridge()
