"""Times, and their spread over repeats."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

# What takes long is repeated less often ...
_MOST_SECONDS = 20.0
# ... and what is short has a first call that does not count: it may compile, or import.
_SHORT = 1.0


@dataclass(frozen=True)
class Spread:
    """Median, least and largest of some measured values.

    Examples
    --------
    >>> print(Spread.of([1.0, 1.5, 1.25]))
    1.25 (1 to 1.5)
    """

    median: float
    min: float
    max: float
    n: int

    @classmethod
    def of(cls, values):
        """Give the spread of the values."""
        return cls(float(np.median(values)), float(np.min(values)), float(np.max(values)), len(values))

    def __str__(self):
        return f"{self.median:.3g} ({self.min:.3g} to {self.max:.3g})"


def clock(function):
    """Call once; gives the seconds it took and what it gave."""
    started = time.perf_counter()
    found = function()
    return time.perf_counter() - started, found


def repeat(function, n):
    """Call n times, fewer where that takes long; gives the list of seconds and what the last call gave.

    A short first call is for warming up and does not count.
    """
    taken, found = clock(function)
    seconds = [taken] if taken > _SHORT else []
    while len(seconds) < n and sum(seconds) < _MOST_SECONDS:
        taken, found = clock(function)
        seconds.append(taken)
    return seconds, found


def race(first, second, arguments, n, pause=0.0):
    """Call both in turns with each argument, n times over, so that what else the machine does slows both alike.

    Before each call there may be a pause, in seconds.

    Returns
    -------
    ratios, first_seconds, second_seconds : Spread
        The ratios are those of neighbouring calls.
    """
    first(arguments[0]), second(arguments[0])  # compiles what is not yet compiled
    times = []
    for _ in range(n):
        for argument in arguments:
            pair = []
            for function in (first, second):
                time.sleep(pause)
                pair.append(clock(lambda f=function, a=argument: f(a))[0])
            times.append(pair)
    times = np.array(times)
    return Spread.of(times[:, 0] / times[:, 1]), Spread.of(times[:, 0]), Spread.of(times[:, 1])
