"""Schedules for the weight of the late objective by boosting round (WWW 2011, section 6.2 and Figure 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support import checks
from structrank._support.saveable import saveable


@dataclass(frozen=True)
class _Schedule:
    """Weights w_m in [0, 1] for the rounds m = 0, 1, ...; a subclass returns the increments in `_steps`."""

    def __post_init__(self):
        checks.check_number("start", self.start, at_least=0, at_most=1)
        checks.check_number("rate", self.rate, at_least=0)

    def weights(self, n_rounds):
        """Return w_0, ..., w_{n_rounds - 1} as an (n_rounds,) array."""
        steps = self._steps(np.arange(1, n_rounds))
        return np.minimum(np.cumsum(np.concatenate([[self.start], steps]))[:n_rounds], 1.0)


@saveable
@dataclass(frozen=True)
class Linear(_Schedule):
    """``w_m = w_{m-1} + rate``, at most 1.

    Parameters
    ----------
    start : float, default 0.1
        w_0, from 0 to 1.
    rate : float, default 0.01
        Increment per round, at least 0.

    Examples
    --------
    >>> Linear(start=0.5, rate=0.25).weights(4).tolist()
    [0.5, 0.75, 1.0, 1.0]
    """

    start: float = 0.1
    rate: float = 0.01

    def _steps(self, rounds):
        return np.full(rounds.shape[0], float(self.rate))


@saveable
@dataclass(frozen=True)
class Exponential(_Schedule):
    """``w_m = w_{m-1} + exp(-rate / m)``, at most 1: slow at first, then accelerating.

    Parameters
    ----------
    start : float, default 0.1
        w_0, from 0 to 1.
    rate : float, default 250
        At least 0; the larger, the later the growth. With 250 the weight reaches 1 after about 80 rounds.

    Examples
    --------
    >>> Exponential(start=0.1, rate=250.0).weights(60)[[0, 20, 59]].round(3).tolist()
    [0.1, 0.1, 0.25]
    """

    start: float = 0.1
    rate: float = 250.0

    def _steps(self, rounds):
        return np.exp(-self.rate / rounds)


_SCHEDULES = {"linear": Linear, "exponential": Exponential}


def parse_schedule(schedule):
    """Return a schedule from its name, with the defaults of its class, or the object itself.

    Parameters
    ----------
    schedule : {"linear", "exponential"}, Linear or Exponential

    Returns
    -------
    Linear or Exponential

    Examples
    --------
    >>> parse_schedule("linear")
    Linear(start=0.1, rate=0.01)
    """
    if isinstance(schedule, _Schedule):
        return schedule
    return _SCHEDULES[checks.check_choice("schedule", schedule, tuple(_SCHEDULES))]()
