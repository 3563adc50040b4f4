"""Times, and their spread over repeats."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

# Long calls are repeated less often ...
_MOST_SECONDS = 20.0
# ... and the first of short calls does not count: it may compile or import.
_SHORT = 1.0


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of measured values.

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
        """Return the spread of the values."""
        return cls(float(np.median(values)), float(np.min(values)), float(np.max(values)), len(values))

    def __str__(self):
        return f"{self.median:.3g} ({self.min:.3g} to {self.max:.3g})"


def clock(function):
    """Call once; return the seconds and the result."""
    started = time.perf_counter()
    found = function()
    return time.perf_counter() - started, found


def repeat(function, n):
    """Call n times, fewer if that takes long; return the list of seconds and the last result.

    A short first call is a warm-up and does not count.
    """
    taken, found = clock(function)
    seconds = [taken] if taken > _SHORT else []
    while len(seconds) < n and sum(seconds) < _MOST_SECONDS:
        taken, found = clock(function)
        seconds.append(taken)
    return seconds, found


def race(first, second, arguments, n, pause=0.0):
    """Call both in turns with each argument, n times over, so that other load slows both equally.

    Before each call there may be a pause, in seconds.

    Returns
    -------
    ratios, first_seconds, second_seconds : Spread
        The ratios are those of neighbouring calls.
    """
    first(arguments[0]), second(arguments[0])  # compile
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
