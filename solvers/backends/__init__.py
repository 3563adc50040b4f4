"""Backends for the working-set QP, behind one function.

A backend is a function ``solve(planes, C, accuracy, w) -> w, multipliers, status``: `planes` is a `WorkingSet` (its
multipliers and `w` are a warm start), `accuracy` the requested duality gap. A backend that fails returns None for w and
multipliers; `status` is a short text for the history. Multipliers have shape (n_slacks, capacity), of which the first
`planes.n` columns are in use. To add a backend, write the function and register it.

Backends solve the QP with the penalty 1/2 |w|^2; `structrank.solvers.backends.penalised` solves the QP with another penalty by
any of them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from structrank._support.requirements import check
from structrank.solvers.backends import cvxpy, dual, interior, osqp, penalised

BACKENDS = {"osqp": osqp.solve, "dual": dual.solve, "interior": interior.solve, "cvxpy": cvxpy.solve}
# Backends for many slacks; they are also tried, in this order, after a backend that misses the accuracy.
COMPILED = ("dual", "interior")
# A gap of up to this many times the accuracy is accepted: the next pass gains more than the last digits do.
_NEAR_MISS = 2.0


@dataclass(frozen=True)
class QPSolution:
    """A solution of the working-set QP with its own certificate.

    Attributes
    ----------
    w : (n_features,) array
    multipliers : (n_slacks, capacity) array
        A feasible dual point.
    dual : float
        Value of the dual point: a lower bound on the optimum of the QP, and so on that of the whole problem.
    gap : float
        Objective at w minus `dual`.
    accurate : bool
        Whether the gap is as small as requested.
    backend : str
        Name of the backend.
    note : str
        Failures of the backends tried before; empty if there were none.
    """

    w: np.ndarray
    multipliers: np.ndarray
    dual: float
    gap: float
    accurate: bool
    backend: str
    note: str


def register(name, solve):
    """Make a backend available as ``solver=name``.

    Parameters
    ----------
    name : str
    solve : callable
        ``solve(planes, C, accuracy, w) -> w, multipliers, status``: `planes` is a `WorkingSet`, whose multipliers and `w` are a
        warm start, and `accuracy` the requested duality gap. None for w and multipliers reports a failure, `status` is a
        short text for the history.

    Examples
    --------
    >>> from structrank.solvers.backends import dual
    >>> register("ascent", dual.solve)
    >>> "ascent" in BACKENDS
    True
    """
    check(solve, "QP backend", "See structrank.solvers.backends.")
    BACKENDS[name] = solve


def solve(planes, C, accuracy, w, backend):
    """Solve the QP over a working set to a duality gap of about `accuracy`.

    If a backend misses the accuracy, the compiled ones are tried. The status of a solver is ignored: solutions are
    judged by their duality gap, and the best one is returned with a note on the failures.

    Parameters
    ----------
    planes : WorkingSet
    C : float
    accuracy : float
        Requested gap between the objective at w and the value of a feasible dual point.
    w : (n_features,) array
        Starting point.
    backend : str
        A name of `BACKENDS`, or "cvxpy:NAME" with the name of a solver that CVXPY has installed.

    Returns
    -------
    QPSolution
    """
    best, notes = None, []
    for name in dict.fromkeys([backend, *COMPILED]):
        base, _, option = name.partition(":")
        function = functools.partial(BACKENDS[base], **({"name": option} if option else {}))
        if planes.penalty.in_span or base == "cvxpy":
            found, multipliers, status = function(planes, C, accuracy, w)
        else:
            found, multipliers, status = penalised.solve(function, planes, C, accuracy)
        if found is not None:
            certified = planes.certify(C, found, multipliers)
            accurate = certified[-1] <= _NEAR_MISS * accuracy
            if best is None or certified[-1] < best.gap:
                best = QPSolution(*certified, accurate, name, "; ".join(notes))
            if accurate:
                return best
            status = f"{status}, gap {certified[-1]:.1e} for {accuracy:.1e}"
        notes.append(f"{name}: {status}")
    if best is None:
        raise RuntimeError(f"no QP solver found a solution ({'; '.join(notes)}); scale the features or lower C.")
    return replace(best, note="; ".join(notes))
