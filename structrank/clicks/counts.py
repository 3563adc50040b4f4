"""How often each url was shown and clicked for each query; gathered part by part, so that no log need be held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from structrank._kernels import click_logs as kernels
from structrank.clicks.ids import Ids
from structrank.clicks.log import ClickLog, settled, shared_ids

_FEW_ENTRIES = 2**21  # that wait to be summed up, whatever has been so far
_SESSIONS_AT_ONCE = 2**17


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
        Sum of the positions, from 1, at which it was shown.

    Examples
    --------
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


class KeySums:
    """Rows of numbers summed over equal (query, key), in memory that follows the distinct ones.

    Parameters
    ----------
    n_columns : int
    """

    def __init__(self, n_columns):
        self._summed = (np.empty(0, np.int32), np.empty(0, np.int64), np.empty((0, n_columns)))
        self._waiting, self._n_waiting = [], 0

    def add(self, query, key, values):
        """Add entries."""
        self._waiting.append((query, key, values))
        self._n_waiting += query.shape[0]
        if self._n_waiting >= max(_FEW_ENTRIES, self._summed[0].shape[0]):
            self.sums()

    def sums(self):
        """Give (query, key, values) of the distinct entries so far, sorted by query, then key."""
        if self._waiting:
            query, key, values = (np.concatenate(arrays) for arrays in zip(self._summed, *self._waiting, strict=True))
            self._waiting, self._n_waiting = [], 0
            self._summed = kernels.sum_by_key(query, key, values, int(query.max(initial=-1)) + 1)
        return self._summed


class ClickCounter:
    """Counts clicks and impressions of a log that comes in parts.

    Examples
    --------
    >>> from structrank.clicks import stream_sessions
    >>> counter = ClickCounter()
    >>> for part in stream_sessions([("q", ["a", "b"], [1]), ("q", ["b", "a"], [0])], chunk=1):
    ...     counter.add(part)
    >>> counter.finish()
    ClickCounts(1 queries, 2 urls, 4 impressions, 2 clicks)
    """

    def __init__(self):
        self._sums = KeySums(3)
        self._first: ClickLog | None = None

    def add(self, log: ClickLog) -> None:
        """Count the sessions of a part.

        Parameters
        ----------
        log : ClickLog
            Parts must share their ids, as those of one stream do.
        """
        shared_ids(self._first or log, log)
        self._first = self._first or log
        for part in parts_of(log):
            sizes = np.diff(part.indptr)
            position = np.arange(part.shown.shape[0]) - np.repeat(part.indptr[:-1], sizes) + 1
            values = np.column_stack([part.clicked(), np.ones(part.shown.shape[0]), position])
            self._sums.add(np.repeat(part.query, sizes), part.shown.astype(np.int64), values)

    def finish(self) -> ClickCounts:
        """Give what was counted.

        Returns
        -------
        ClickCounts
        """
        if self._first is None:
            raise ValueError("the log holds no session; expected at least one.")
        query, url, values = self._sums.sums()
        queries, query = settled(self._first.queries, query)
        urls, url = settled(self._first.urls, url)
        shape = (len(queries), len(urls))
        matrices = [scipy.sparse.csr_matrix((column, (query, url)), shape=shape) for column in values.T]
        matrices[0].eliminate_zeros()
        return ClickCounts(queries, urls, *matrices)


def click_counts(log: ClickLog | Iterable | ClickCounts) -> ClickCounts:
    """Count how often each url was shown and clicked for each query.

    Parameters
    ----------
    log : ClickLog, stream of its parts, or ClickCounts
        Counts are given back as they are. A stream is read once and not held; what is kept grows with the number of distinct
        pairs of query and url.

    Returns
    -------
    ClickCounts

    Examples
    --------
    >>> from structrank.clicks import stream_sessions
    >>> sessions = [("q", ["a", "b"], [1]), ("q", ["b", "a"], [0])]
    >>> click_counts(stream_sessions(sessions, chunk=1)).clicks.toarray()
    array([[0., 2.]])
    """
    if isinstance(log, ClickCounts):
        return log
    counter = ClickCounter()
    for part in as_stream(log):
        counter.add(part)
    return counter.finish()


def as_stream(log):
    """Give a log, a stream of its parts, or sessions as `ClickLog.from_sessions` takes them, as a stream of parts."""
    if isinstance(log, ClickLog):
        return iter([log])
    if isinstance(log, (str, bytes)) or not hasattr(log, "__iter__"):
        raise ValueError(f"log is a {type(log).__name__}; expected a ClickLog, a stream of its parts, or sessions.")
    return _parts(iter(log))


def _parts(entries):
    """Yield the parts of a stream; where the first entry is a session, make one log of all entries."""
    for first in entries:
        if not isinstance(first, ClickLog):
            yield ClickLog.from_sessions(_chain(first, entries))
            return
        yield first
        yield from entries


def _chain(first, rest):
    yield first
    yield from rest


def parts_of(log):
    """Yield a log in pieces so small that arrays as long as what they show cost little."""
    for start in range(0, len(log), _SESSIONS_AT_ONCE):
        stop = min(start + _SESSIONS_AT_ONCE, len(log))
        rows, clicks = log.indptr[start : stop + 1], log.click_indptr[start : stop + 1]
        yield ClickLog(
            log.queries,
            log.urls,
            log.query[start:stop],
            rows - rows[0],
            log.shown[rows[0] : rows[-1]],
            clicks - clicks[0],
            log.clicks[clicks[0] : clicks[-1]],
            log.report,
        )
