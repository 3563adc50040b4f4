"""Work shared between threads."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor


class Threads:
    """The caller's thread and helper threads, which take pieces of work in turn.

    A pass may take less than a millisecond, and waking a thread 10 % of that. So the caller works, too, and does not wait for
    helpers that wake up after the last piece.

    Parameters
    ----------
    n_threads : int
        Number of threads, including the caller's.

    Examples
    --------
    >>> with Threads(2) as threads:
    ...     threads.map(abs, [-1, 2, -3])
    [1, 2, 3]
    """

    def __init__(self, n_threads):
        self._n_helpers = n_threads - 1
        self._pool = ThreadPoolExecutor(self._n_helpers) if self._n_helpers else None

    def map(self, function, pieces):
        """Return the results of the function for the pieces, in order."""
        results = [None] * len(pieces)
        numbers = itertools.count()  # `next` is atomic

        def work():
            while (number := next(numbers)) < len(pieces):
                results[number] = function(pieces[number])

        helpers = [self._pool.submit(work) for _ in range(min(self._n_helpers, len(pieces) - 1))]
        try:
            work()
        finally:
            late = [helper for helper in helpers if not helper.cancel()]
            for helper in late:
                helper.exception()  # waits: the helper still uses the caller's data
        for helper in late:
            helper.result()
        return results

    def close(self):
        """End the helpers."""
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
