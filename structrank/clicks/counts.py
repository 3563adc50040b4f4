"""Counts of impressions and clicks by query and url, accumulated part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from structrank._support.saveable import record
from structrank.clicks import _log_kernels as kernels
from structrank.clicks.ids import Ids, settled, shared_ids

_MIN_BUFFERED = 2**21  # entries that are buffered before they are summed
_SESSIONS_AT_ONCE = 2**17  # bounds the temporary arrays


@record
@dataclass(frozen=True, eq=False, repr=False)
class ClickCounts:
    """Sums over all sessions, by query (rows) and url (columns).

    Attributes
    ----------
    queries, urls : Ids
    clicks : CSR matrix of shape (n_queries, n_urls)
        Sessions in which the url was clicked.
    impressions : CSR matrix of shape (n_queries, n_urls)
        Sessions in which the url was shown.
    positions : CSR matrix of shape (n_queries, n_urls)
        Sum of the positions, from 1, at which the url was shown.

    Examples
    --------
    >>> from structrank.clicks import ClickLog
    >>> log = ClickLog.from_sessions([("q", ["a", "b"], [1]), ("q", ["b", "a"], [0])])
    >>> counts = log.counts()
    >>> counts.clicks.toarray(), counts.impressions.toarray()
    (array([[0., 2.]]), array([[2., 2.]]))
    """

    queries: Ids
    urls: Ids
    clicks: scipy.sparse.csr_matrix
    impressions: scipy.sparse.csr_matrix
    positions: scipy.sparse.csr_matrix

    def __repr__(self):
        return (
            f"ClickCounts({len(self.queries)} queries, {len(self.urls)} urls, {self.impressions.sum():.0f} impressions, "
            f"{self.clicks.sum():.0f} clicks)"
        )


class LogCounter:
    """Sums of values over equal (query, key), for a log that is read in parts; memory grows with the distinct pairs.

    Subclasses set `_n_columns`, the number of values, and return queries, keys and values of a part by ``_entries(part)``.
    """

    _n_columns: int
    _entries: Callable

    def __init__(self):
        self._summed = (np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, self._n_columns)))
        self._buffered, self._n_buffered = [], 0
        self._first = None

    def add(self, log: Any) -> None:
        """Count a part of the log.

        Parameters
        ----------
        log : ClickLog
            All parts must share their ids, as the parts of one stream do.
        """
        shared_ids(self._first or log, log)
        self._first = self._first or log
        for start in range(0, len(log), _SESSIONS_AT_ONCE):
            self._buffered.append(self._entries(log._between(start, start + _SESSIONS_AT_ONCE)))
            self._n_buffered += self._buffered[-1][0].shape[0]
            if self._n_buffered >= max(_MIN_BUFFERED, self._summed[0].shape[0]):
                self._sum()

    def _sum(self):
        query, key, values = (np.concatenate(arrays) for arrays in zip(self._summed, *self._buffered, strict=True))
        self._buffered, self._n_buffered = [], 0
        self._summed = kernels.sum_by_key(query, key, values, int(query.max(initial=-1)) + 1)

    def _finish(self):
        """Return queries, keys and values of the sums, sorted by query, then key; raise if no part was added."""
        if self._first is None:
            raise ValueError("the log has no sessions; expected at least one.")
        if self._buffered:
            self._sum()
        return self._summed


class ClickCounter(LogCounter):
    """Counter of clicks and impressions for a log that is read in parts.

    Examples
    --------
    >>> from structrank.clicks import stream_sessions
    >>> counter = ClickCounter()
    >>> for part in stream_sessions([("q", ["a", "b"], [1]), ("q", ["b", "a"], [0])], chunk=1):
    ...     counter.add(part)
    >>> counter.finish()
    ClickCounts(1 queries, 2 urls, 4 impressions, 2 clicks)
    """

    _n_columns = 3

    def _entries(self, part):
        sizes = np.diff(part.indptr)
        position = np.arange(part.shown.shape[0]) - np.repeat(part.indptr[:-1], sizes) + 1
        values = np.column_stack([part.clicked(), np.ones(part.shown.shape[0]), position])
        return np.repeat(part.query, sizes), part.shown.astype(np.int64), values

    def finish(self) -> ClickCounts:
        """Return the counts of all parts."""
        query, url, values = self._finish()
        queries, query = settled(self._first.queries, query)
        urls, url = settled(self._first.urls, url)
        shape = (len(queries), len(urls))
        matrices = [scipy.sparse.csr_matrix((column, (query, url)), shape=shape) for column in values.T]
        matrices[0].eliminate_zeros()
        return ClickCounts(queries, urls, *matrices)
