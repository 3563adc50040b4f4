"""Where the shards of a training set are, and how functions of them run there.

An executor has the sources of the shards and maps functions over lists that belong to them. `InProcess` does it here;
`structrank.distributed.DaskBackend` makes one for a cluster, and an object with a method ``executor(X, y, qid, sample_weight)``
that returns another is a backend of `StructRankSVM.fit` as well:

- ``sources``: a list with a source for each shard, see `structrank.training.sources`, or what `map` replaces by one;
- ``map(function, *lists, keep=False)``: the results of the function for the items of the lists, in order. With `keep` they may
  stay where they were computed; what is returned for them is only passed to `map` again;
- ``chunks``: what maps a function over the chunks of one shard where it is, such as the builtin `map`;
- ``close()``: releases what was kept.
"""

from __future__ import annotations

from structrank._support.threads import Threads


class InProcess:
    """Shards in this process, one after another, with the chunks of each in threads.

    Parameters
    ----------
    sources : list
        Objects with ``load() -> RankingData`` and ``matrix()``, see `structrank.training.sources`.
    n_threads : int, default 1

    Examples
    --------
    >>> executor = InProcess(["a", "b"])
    >>> executor.map(str.upper, executor.sources)
    ['A', 'B']
    """

    def __init__(self, sources, n_threads=1):
        self.sources = sources
        self._threads = Threads(n_threads) if n_threads > 1 else None
        self.chunks = map if self._threads is None else self._threads.map

    def map(self, function, *lists, keep=False):
        """Return the results of the function for the items of the lists."""
        return list(map(function, *lists))

    def close(self):
        """End the threads."""
        if self._threads is not None:
            self._threads.close()
