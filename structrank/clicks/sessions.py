"""Checks of sessions given as Python objects ``(query, urls, clicked positions)``."""

from __future__ import annotations

import numbers

import numpy as np

from structrank._support import checks
from structrank.clicks.ids import GrowingIds
from structrank.clicks.report import MALFORMED, LogReport


class Sessions:
    """Buffer of checked sessions; `take` returns them as arrays."""

    def __init__(self, malformed):
        self._malformed = checks.check_choice("malformed", malformed, MALFORMED)
        self._queries, self._urls = GrowingIds(), GrowingIds()
        self._clear()

    def _clear(self):
        self._query, self._shown, self._clicks = [], [], []
        self._sizes, self._n_clicks = [], []
        self._report = LogReport()

    def __len__(self):
        return len(self._query)

    def add(self, session, place):
        """Add a session, or count it as malformed; `place` is its location in messages."""
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
        """Return the sessions added since the last call, as the arguments of `assemble`."""
        columns = (self._query, self._sizes, self._shown, self._n_clicks, self._clicks)
        taken = (self._queries, self._urls, *map(_as_numbers, columns), self._report)
        self._clear()
        return taken


def _as_numbers(values):
    return np.array(values, dtype=np.int64)


class _MalformedError(Exception):
    """Raised for a malformed session; the message states why."""


def _checked(session):
    """Return (query, list of urls, list of positions) of a session; raise if it is malformed."""
    try:
        query, urls, clicks = session
    except (TypeError, ValueError):
        raise _MalformedError(f"found {abbreviated(session)}, expected (query, urls, clicked positions).") from None
    urls, clicks = _as_list(urls, "the urls shown"), _as_list(clicks, "clicked positions")
    query, *urls = (_checked_id(value) for value in (query, *urls))
    for click in clicks:
        if type(click) is not int and (not isinstance(click, numbers.Integral) or isinstance(click, (bool, np.bool_))):
            raise _MalformedError(f"found {abbreviated(click)} as a clicked position, expected an integer from 0.")
    return query, urls, [min(max(int(click), -1), _MAX_POSITION) for click in clicks]


_MAX_POSITION = 2**31  # beyond any list, so larger positions can be clipped to fit an int64


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
        missing = checks.is_missing(value) or isinstance(value, bool)  # True would be 1
    except TypeError:
        missing = True
    if missing:
        raise _MalformedError(f"found {abbreviated(value)} as an id, expected a number, a string or a tuple of these.")
    return value


def abbreviated(value):
    """Return the repr of a value, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
