"""Counts of kept and skipped entries of a click log."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace

from structrank._support import checks
from structrank._support.text import printable

MALFORMED = ("skip", "error")
MAX_EXAMPLES = 5  # malformed entries that a report quotes


@dataclass(frozen=True)
class LogReport:
    """Counts of kept and skipped sessions, urls and clicks.

    Attributes
    ----------
    sessions, shown, clicks : int
        Number of sessions, urls shown and clicks in the log.
    without_clicks : int
        Sessions without a click. They are kept: their urls count as shown.
    empty : int
        Sessions that show no url. They are skipped.
    repeated_urls : int
        Urls shown more than once in a session. The first occurrence is kept, urls below a removed one move up, and clicks on a
        removed one count for the first.
    repeated_clicks : int
        Clicks on a url that is clicked again later in the same session. Only the last is kept.
    not_shown : int
        Clicks on urls, or at positions, that were not shown. They are skipped.
    without_query : int
        Clicks of a session without a query line (Yandex format only). They are skipped.
    malformed : int
        Lines or sessions that could not be parsed. They are skipped.
    examples : tuple of str
        The first malformed entries: location, what was found and what was expected.

    Examples
    --------
    >>> from structrank.clicks import ClickLog
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org"], [1, 1, 5]), ("news", ["b.org"], [])])
    >>> print(log.report)
    2 sessions, 3 urls shown, 1 click
    kept: 1 session without clicks
    skipped: 1 repeated click, 1 click on a url that was not shown
    """

    sessions: int = 0
    shown: int = 0
    clicks: int = 0
    without_clicks: int = 0
    empty: int = 0
    repeated_urls: int = 0
    repeated_clicks: int = 0
    not_shown: int = 0
    without_query: int = 0
    malformed: int = 0
    examples: tuple[str, ...] = ()

    def __add__(self, other: LogReport) -> LogReport:
        summed = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        return LogReport(**{**summed, "examples": summed["examples"][:MAX_EXAMPLES]})

    def skipped(self) -> LogReport:
        """Return the report without the counts of what is in the log."""
        return replace(self, sessions=0, shown=0, clicks=0, without_clicks=0)

    def __str__(self):
        lines = [f"{_count(self.sessions, 'session')}, {_count(self.shown, 'url')} shown, {_count(self.clicks, 'click')}"]
        if self.without_clicks:
            lines.append(f"kept: {_count(self.without_clicks, 'session')} without clicks")
        skipped = [
            (self.empty, "session", " without urls"),
            (self.repeated_urls, "repeated url", ""),
            (self.repeated_clicks, "repeated click", ""),
            (self.not_shown, "click", " on a url that was not shown"),
            (self.without_query, "click", " without a query"),
            (self.malformed, "malformed entry", ""),
        ]
        counts = [_count(number, what) + rest for number, what, rest in skipped if number]
        if counts:
            lines.append(f"skipped: {', '.join(counts)}")
        return "\n".join([*lines, *map(printable, self.examples)])

    def warn(self):
        """Warn about malformed entries and about clicks without a query line."""
        if self.malformed:
            warnings.warn(
                f"Skipped {_count(self.malformed, 'malformed entry')}. The first: {self.examples[0]} "
                "See the report of the log, or pass malformed='error' to raise.",
                checks.StructRankWarning,
                stacklevel=3,
            )
        if self.without_query:
            warnings.warn(
                f"Skipped {_count(self.without_query, 'click')} in sessions without a query line. The lines of a session "
                "must be consecutive: sort the file by session first, for example with `sort -s -k1,1`.",
                checks.StructRankWarning,
                stacklevel=3,
            )


def _count(number, what):
    plural = what[:-1] + "ies" if what.endswith("entry") else what + "s"
    return f"{number} {what if number == 1 else plural}"
