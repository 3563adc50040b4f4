"""A progress bar on standard error."""

import sys
import time


class ProgressBar:
    """Shows how much of a total is done; use as a context manager.

    Parameters
    ----------
    title : str
    total : int
        What `update` counts towards.
    shown : bool
        False writes nothing.
    """

    def __init__(self, title, total, shown):
        self._title, self._total, self._shown = title, max(total, 1), shown
        self._next = 0.0

    def __enter__(self):
        return self

    def update(self, done):
        """Redraw, at most ten times a second."""
        if self._shown and (time.monotonic() >= self._next or done >= self._total):
            self._next = time.monotonic() + 0.1
            share = min(done / self._total, 1.0)
            bar = ("#" * round(30 * share)).ljust(30, ".")
            sys.stderr.write(f"\r{self._title} [{bar}] {share:4.0%}")
            sys.stderr.flush()

    def __exit__(self, *exception):
        if self._shown:
            sys.stderr.write("\n")
            sys.stderr.flush()
