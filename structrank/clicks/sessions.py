"""Sessions as Python has them, ``(query, urls, clicked positions)``, made a log."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable

import numpy as np

from structrank import _validation
from structrank.clicks.ids import GrowingIds
from structrank.clicks.log import MALFORMED, LogReport, assemble
from structrank.clicks.stream import CHUNK, LogStream


class Sessions:
    """Raw sessions in lists, until they are made a log."""

    def __init__(self, malformed):
        self._malformed = _validation.check_choice("malformed", malformed, MALFORMED)
        self._queries, self._urls = GrowingIds(), GrowingIds()
        self._clear()

    def _clear(self):
        self._query, self._shown, self._clicks = [], [], []
        self._sizes, self._n_clicks = [], []
        self._report = LogReport()

    def __len__(self):
        return len(self._query)

    def add(self, session, place):
        """Add a session, or count it as malformed; `place` names it in messages."""
        try:
            query, urls, clicks = _checked(session)
        except _MalformedError as error:
            self.refuse(f"{place}: {error}")
            return
        self._query += self._queries.add([query])
        self._shown += self._urls.add(urls)
        self._clicks += clicks
        self._sizes.append(len(urls))
        self._n_clicks.append(len(clicks))

    def refuse(self, message):
        """Count a malformed session, or raise."""
        if self._malformed == "error":
            raise ValueError(message)
        self._report += LogReport(malformed=1, examples=(message,))

    def take(self):
        """Give what was added since the last time as a log."""
        columns = (self._query, self._sizes, self._shown, self._n_clicks, self._clicks)
        log = assemble(self._queries, self._urls, *map(_as_numbers, columns), self._report)
        self._clear()
        return log


def _as_numbers(values):
    return np.array(values, dtype=np.int64)


class _MalformedError(Exception):
    """What is wrong with a session."""


def _checked(session):
    """Give (query, list of urls, list of positions) of a session."""
    try:
        query, urls, clicks = session
    except (TypeError, ValueError):
        raise _MalformedError(f"found {abbreviated(session)}, expected (query, urls, clicked positions).") from None
    urls, clicks = _as_list(urls, "the urls shown"), _as_list(clicks, "clicked positions")
    query, *urls = (_checked_id(value) for value in (query, *urls))
    for click in clicks:
        if type(click) is not int and (not isinstance(click, numbers.Integral) or isinstance(click, (bool, np.bool_))):
            raise _MalformedError(f"found {abbreviated(click)} as a clicked position, expected an integer, from 0.")
    return query, urls, [min(max(int(click), -1), _FARTHEST) for click in clicks]


_FARTHEST = 2**31  # position of no url; larger ones mean the same


def _as_list(values, expected):
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
        raise _MalformedError(f"found {abbreviated(values)}, expected a list of {expected}.")
    return list(values)


def _checked_id(value):
    if type(value) is str or type(value) is int:
        return value
    value = value.item() if isinstance(value, np.generic) else value
    try:
        hash(value)
        missing = value is None or bool(value != value)
    except TypeError:  # not hashable, or pandas' NA, which is neither equal to itself nor not
        missing = True
    if missing:
        raise _MalformedError(f"found {abbreviated(value)} as an id, expected a number, a text or a tuple of these.")
    return value


def abbreviated(value):
    """Give the repr of a value, as much of it as a message has room for."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def stream_sessions(
    sessions: Iterable[tuple[Hashable, Iterable[Hashable], Iterable[int]]], *, chunk: int = CHUNK, malformed: str = "skip"
) -> LogStream:
    """Give sessions in memory, or from a generator, as a log in parts.

    Parameters
    ----------
    sessions : iterable of (query, urls, clicked positions)
        As for `ClickLog.from_sessions`.
    chunk : int, default 131072
        Sessions of a part.
    malformed : {"skip", "error"}, default "skip"
        What to do with a session that is no such triple: leave it out, count it and warn, or raise.

    Returns
    -------
    LogStream

    Examples
    --------
    >>> from structrank.clicks import preference_pairs
    >>> preference_pairs(stream_sessions((n, ["a", "b"], [1]) for n in range(1000)))
    Preferences(1000 pairs, 1000 queries, 2 urls)
    """
    chunk = _validation.check_number("chunk", chunk, at_least=1, integer=True)
    if isinstance(sessions, (str, bytes)) or not hasattr(sessions, "__iter__"):
        raise ValueError(
            f"sessions is a {type(sessions).__name__}; expected an iterable of (query, urls, clicked positions)."
        )
    waiting = Sessions(malformed)

    def parts():
        for number, session in enumerate(sessions):
            waiting.add(session, f"session {number}")
            if len(waiting) >= chunk:
                yield waiting.take()
        rest = waiting.take()
        if rest.report != LogReport():
            yield rest

    return LogStream(parts(), "sessions")
