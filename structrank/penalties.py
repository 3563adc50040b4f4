r"""Penalties: the last part of training, for weights with bounds, near given weights, or sparse.

.. math:: \min_w \Omega(w) + C R(w)

By default Omega(w) is ``1/2 |w|^2``. `Penalty` adds bounds, a prior and an l1 term for each feature; the optimum stays
certified. A custom penalty is a class derived from `structrank.solvers.penalties.SeparablePenalty`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from structrank._support import checks, requirements
from structrank._support.saveable import saveable
from structrank.solvers.penalties import RIDGE, Program, SeparablePenalty

# Values of features that a dict does not name.
_UNNAMED = {"lower": -np.inf, "upper": np.inf, "prior": 0.0, "l1": 0.0}


@saveable
@dataclass(frozen=True)
class Penalty:
    r"""Bounds, a prior and an l1 term for each weight.

    .. math:: \Omega(w) = \sum_j \tfrac12 (w_j - p_j)^2 + \lambda_j |w_j|
              \quad \text{for} \quad l_j \le w_j \le u_j

    Each parameter is a number for all features; an array with a number for each; or a dict from names of features to numbers.
    The names are f1, f2, ... for data without names, and those of the prepared columns, such as "log(clicks)", if the model
    prepares raw values. A dict leaves other features as they are by default.

    Parameters
    ----------
    lower, upper : float, array-like or dict, default None
        Bounds l and u; None, and -inf and inf, for no bound. They hold exactly. Equal bounds fix a weight.
    prior : float, array-like, dict or fitted linear model, default 0
        The weights p that w stays near, such as those of the model in production. A model that has seen names of features
        counts as a dict, unless it has a preparation: then weights are taken in their order. A small C keeps w near p.
    l1 : float, array-like or dict, default 0
        The weights lambda of the absolute values; larger values make more weights exactly 0.

    Notes
    -----
    With ``scale="std"``, bounds and priors are those of the weights for X as it is, and l1 applies to scaled columns, as the
    squares do. Every feature keeps the squared term: without it the optimum might not exist.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> X, y = [[0.0, 1.0], [1.0, 0.0]], [0, 1]
    >>> StructRankSVM("auc").fit(X, y, qid=0).coef_.round(3)
    array([ 0.25, -0.25])
    >>> StructRankSVM("auc", penalty=Penalty(lower=0)).fit(X, y, qid=0).coef_.round(3)
    array([0.5, 0. ])
    >>> StructRankSVM("auc", penalty=Penalty(upper={"f1": 0.125}, prior={"f2": 0.5})).fit(X, y, qid=0).coef_.round(3)
    array([ 0.125, -0.375])
    """

    lower: Any = None
    upper: Any = None
    prior: Any = 0.0
    l1: Any = 0.0

    def __post_init__(self):
        for name in _UNNAMED:
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        if isinstance(self.lower, float) and isinstance(self.upper, float):
            _check_bounds(np.array([self.lower]), np.array([self.upper]), ["all features"])

    def for_columns(self, n_features, names=None, scale=None):
        """Return the penalty with a number for each column.

        Parameters
        ----------
        n_features : int
        names : sequence of str, default None
            Names of the columns; None for f1, f2, ....
        scale : (n_features,) array, default None
            What columns are divided by: the penalty is that of ``scale * w``.

        Returns
        -------
        ColumnPenalty

        Examples
        --------
        >>> Penalty(upper={"price": 0}).for_columns(2, ["price", "bm25"]).upper
        array([ 0., inf])
        """
        names = [f"f{number}" for number in range(1, n_features + 1)] if names is None else list(names)
        lower, upper, prior, l1 = (_per_column(name, getattr(self, name), names) for name in _UNNAMED)
        _check_bounds(lower, upper, [f"the feature {name!r}" for name in names])
        if scale is not None:
            lower, upper, prior = lower * scale, upper * scale, prior * scale
        return ColumnPenalty(lower + 0.0, upper + 0.0, prior, l1)  # + 0.0 turns -0.0 into 0.0


@dataclass(frozen=True, eq=False)
class ColumnPenalty(SeparablePenalty):
    """`Penalty` with a number for each column.

    Attributes
    ----------
    lower, upper, prior, l1 : (n_features,) array
        See `Penalty`.

    Examples
    --------
    >>> penalty = Penalty(lower=0, prior=[1.0, 0.0], l1=0.5).for_columns(2)
    >>> penalty.minimiser(np.array([2.0, -1.0]))
    array([2.5, 0. ])
    >>> penalty.value(np.array([2.0, 0.0])), penalty.value(np.array([2.0, -1.0]))
    (1.5, inf)
    """

    lower: np.ndarray
    upper: np.ndarray
    prior: np.ndarray
    l1: np.ndarray

    def value(self, w):
        """Compute Omega(w)."""
        if not ((self.lower <= w) & (w <= self.upper)).all():
            return np.inf
        off = w - self.prior
        return 0.5 * float(off @ off) + float(self.l1 @ np.abs(w))

    def minimiser(self, z):
        """Return clip(soft(p + z, lambda), l, u), ``soft(x, lambda) = sign(x) max(|x| - lambda, 0)``."""
        moved = self.prior + z
        return self.nearest(np.sign(moved) * np.maximum(np.abs(moved) - self.l1, 0.0))

    def rates(self, z):
        """Return the derivative of the minimiser: 0 for weights at a bound or at 0, otherwise 1."""
        w = self.minimiser(z)
        return ((self.lower < w) & (w < self.upper) & ((w != 0.0) | (self.l1 == 0.0))).astype(np.float64)

    def nearest(self, w):
        """Return w, clipped to the bounds."""
        return np.clip(w, self.lower, self.upper) + 0.0

    def derivative(self, w, direction):
        """Return the directional derivative."""
        slopes = np.where(w == 0.0, np.abs(direction), np.sign(w) * direction)
        return float((w - self.prior) @ direction + self.l1 @ slopes)

    def program(self, n_features):
        """Return the penalty as part of a QP; a variable ``t >= |w|`` for each weight whose absolute value is not linear."""
        return self._program

    @cached_property
    def _program(self):
        n = self.prior.shape[0]
        # Where the sign is known, |w| is linear.
        sign = np.where(self.lower >= 0.0, 1.0, np.where(self.upper <= 0.0, -1.0, 0.0))
        bent = np.flatnonzero((self.l1 > 0.0) & (sign == 0.0))
        bounded = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        unit, more = scipy.sparse.identity(n, format="csr"), scipy.sparse.identity(bent.size)
        rows = [[unit[bounded], None], [-unit[bent], more], [unit[bent], more]] if bent.size else [[unit[bounded]]]
        unlimited = np.full(2 * bent.size, np.inf)
        return Program(
            np.concatenate([np.ones(n), np.zeros(bent.size)]),
            np.concatenate([sign * self.l1 - self.prior, self.l1[bent]]),
            scipy.sparse.csc_matrix(scipy.sparse.bmat(rows)),
            np.concatenate([self.lower[bounded], np.zeros(2 * bent.size)]),
            np.concatenate([self.upper[bounded], unlimited]),
        )


def parse(penalty: Any) -> Any:
    """Return the object of a penalty, checked.

    Parameters
    ----------
    penalty : None, "nonnegative", Penalty or SeparablePenalty
        None for ``1/2 |w|^2``; a name, or the object itself.

    Examples
    --------
    >>> parse("nonnegative")
    Penalty(lower=0.0, upper=None, prior=0.0, l1=0.0)
    """
    if penalty is None:
        return RIDGE
    if isinstance(penalty, str):
        checks.check_choice("penalty", penalty, ("nonnegative",))
        return Penalty(lower=0.0)
    if not isinstance(penalty, Penalty):
        requirements.check(penalty, "penalty", "Derive it from structrank.solvers.penalties.SeparablePenalty.")
    return penalty


def _checked(name, value):
    """Return a parameter of `Penalty` as a number, a tuple or a dict of numbers, or None; raise if it is none of these."""
    if value is None and name in ("lower", "upper"):
        return None
    if hasattr(value, "coef_"):
        # The names are those of raw columns; after a preparation, weights belong to other columns, in their order.
        names = None if getattr(value, "preparation_", ()) else getattr(value, "feature_names_in_", None)
        value = value.coef_ if names is None else dict(zip(names, value.coef_, strict=True))
    if isinstance(value, Mapping):
        unnamed = [key for key in value if not isinstance(key, str)]
        if unnamed:
            raise ValueError(f"{name} names {unnamed[0]!r}; expected names of features as text, f1, f2, ... if X has none.")
        return {str(key): _number(f"{name} of {key!r}", name, number) for key, number in value.items()}
    if np.ndim(value) == 0:
        return _number(name, name, value)
    if np.ndim(value) != 1:
        raise ValueError(f"{name} has shape {np.shape(value)}; expected a number for each feature.")
    return tuple(_number(f"{name}[{place}]", name, number) for place, number in enumerate(value))


def _number(place, name, value):
    if (name == "lower" and value == -np.inf) or (name == "upper" and value == np.inf):
        return float(value)
    advice = "; equal bounds of 0 leave a feature out" if name == "l1" else ""
    return (
        checks.check_number(place, value, at_least=0, otherwise=advice) if name == "l1" else checks.check_number(place, value)
    )


def _per_column(name, value, names):
    if value is None or isinstance(value, float):
        return np.full(len(names), _UNNAMED[name] if value is None else value)
    if isinstance(value, tuple):
        if len(value) != len(names):
            raise ValueError(f"{name} of the penalty has {len(value)} entries, but X has {len(names)} features.")
        return np.array(value)
    place = {column: number for number, column in enumerate(names)}
    unknown = [column for column in value if column not in place]
    if unknown:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(f"{name} of the penalty names the feature {unknown[0]!r}, which X does not have; it has {shown}.")
    found = np.full(len(names), _UNNAMED[name])
    for column, number in value.items():
        found[place[column]] = number
    return found


def _check_bounds(lower, upper, names):
    if (lower > upper).any():
        place = int((lower > upper).argmax())
        raise ValueError(
            f"the bounds of {names[place]} are empty: lower is {lower[place]:g}, upper is {upper[place]:g}. Expected lower "
            "to be at most upper."
        )
