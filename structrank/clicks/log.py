"""A click log in memory: who asked what, what was shown, what was clicked; and what had to be left out."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from structrank import _validation
from structrank._kernels import click_logs as kernels
from structrank.clicks.ids import Ids

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structrank.clicks.counts import ClickCounts

MALFORMED = ("skip", "error")
MOST_EXAMPLES = 5  # of malformed entries, that a report keeps


@dataclass(frozen=True)
class LogReport:
    """What a log holds and what was done to it.

    Attributes
    ----------
    sessions, shown, clicks : int
        What is kept: sessions, urls shown in these, clicks on these.
    without_clicks : int
        Sessions that nobody clicked in. They are kept: their urls count as shown.
    empty : int
        Sessions that show no url. They are left out.
    repeated_urls : int
        Urls shown more than once in a session. The first place stays, the others are left out and the urls below them move
        up; clicks on them count for the first.
    repeated_clicks : int
        Clicks on a url that the same session clicks again later. Only the last is kept.
    not_shown : int
        Clicks on urls, or at positions, that were not shown. They are left out.
    without_query : int
        Clicks of a session that has no query line (of Yandex's layout). They are left out.
    malformed : int
        Lines or sessions that could not be understood. They are left out.
    examples : tuple of str
        The first of these, with their place, what was found and what was expected.

    Examples
    --------
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org"], [1, 1, 5]), ("news", ["b.org"], [])])
    >>> print(log.report)
    2 sessions, 3 urls shown, 1 click
    kept: 1 session without clicks
    left out: 1 repeated click, 1 click on what was not shown
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
        return LogReport(**{**summed, "examples": summed["examples"][:MOST_EXAMPLES]})

    def __str__(self):
        lines = [
            f"{_count(self.sessions, 'session')}, {_count(self.shown, 'url')} shown, {_count(self.clicks, 'click')}"
        ]
        if self.without_clicks:
            lines.append(f"kept: {_count(self.without_clicks, 'session')} without clicks")
        left_out = [
            (self.empty, "session", " without urls"),
            (self.repeated_urls, "repeated url", ""),
            (self.repeated_clicks, "repeated click", ""),
            (self.not_shown, "click", " on what was not shown"),
            (self.without_query, "click", " without a query"),
            (self.malformed, "malformed entry", ""),
        ]
        said = [_count(number, what) + rest for number, what, rest in left_out if number]
        if said:
            lines.append(f"left out: {', '.join(said)}")
        return "\n".join([*lines, *self.examples])

    def warn(self):
        """Warn of what may make a log mean something else than its owner thinks."""
        if self.malformed:
            warnings.warn(
                f"{_count(self.malformed, 'malformed entry')} left out of the log, the first being {self.examples[0]} "
                "Its report has more; malformed='error' stops at the first.",
                _validation.StructRankWarning,
                stacklevel=3,
            )
        if self.without_query:
            warnings.warn(
                f"{_count(self.without_query, 'click')} left out, of sessions without a query line. The lines of a session "
                "must follow each other: sort the file by session first, as `sort -s -k1,1` does.",
                _validation.StructRankWarning,
                stacklevel=3,
            )


def _count(number, what):
    plural = what[:-1] + "ies" if what.endswith("entry") else what + "s"
    return f"{number} {what if number == 1 else plural}"


class ClickLog:
    """Sessions: a query, the urls shown for it in order, and the positions clicked in order of time.

    Ids are dense integers here; `queries` and `urls` translate. Integer ids are numbered in increasing order, others in order
    of first appearance. Build a log with `from_sessions`, or with a reader (`read_tsv`, `read_jsonl`, `read_frame`,
    `read_yandex`).

    Attributes
    ----------
    queries, urls : Ids
    query : (n_sessions,) array of int32
        The query of each session.
    indptr : (n_sessions + 1,) array of int64
        Session s shows ``shown[indptr[s]:indptr[s + 1]]``.
    shown : (n_shown,) array of int32
        Urls, each once in a session.
    click_indptr : (n_sessions + 1,) array of int64
        Session s has the clicks ``clicks[click_indptr[s]:click_indptr[s + 1]]``.
    clicks : (n_clicks,) array of int32
        Positions within the session, from 0, in order of time; each once in a session.
    report : LogReport
        What is in the log, and what was left out.

    Examples
    --------
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org", "c.org"], [2, 0]), ("weather", ["b.org"], [])])
    >>> log
    ClickLog(2 sessions, 2 queries, 3 urls, 2 clicks)
    >>> log[0]
    ('news', ['a.org', 'b.org', 'c.org'], [2, 0])
    """

    def __init__(self, queries, urls, query, indptr, shown, click_indptr, clicks, report):
        self.queries, self.urls = queries, urls
        self.query, self.indptr, self.shown = query, indptr, shown
        self.click_indptr, self.clicks, self.report = click_indptr, clicks, report

    @classmethod
    def from_sessions(
        cls, sessions: Iterable[tuple[Hashable, Iterable[Hashable], Iterable[int]]], *, malformed: str = "skip"
    ) -> ClickLog:
        """Build a log from sessions in memory.

        Parameters
        ----------
        sessions : iterable of (query, urls, clicked positions)
            Ids of any hashable type; positions count from 0 and are in order of time.
        malformed : {"skip", "error"}, default "skip"
            What to do with a session that is no such triple: leave it out, count it and warn, or raise.

        Returns
        -------
        ClickLog

        Examples
        --------
        >>> log = ClickLog.from_sessions([(7, [30, 10], [1]), (7, [10, 20], [0])])
        >>> log.urls.values.tolist(), log.shown.tolist(), log.clicks.tolist()
        ([10, 20, 30], [2, 0, 0, 1], [1, 0])
        """
        from structrank.clicks.sessions import stream_sessions

        return cls.gather(stream_sessions(sessions, malformed=malformed))

    @classmethod
    def gather(cls, stream: Iterable[ClickLog]) -> ClickLog:
        """Put the parts that a stream gives into one log.

        Parameters
        ----------
        stream : iterable of ClickLog
            As ``stream_tsv`` and its like give it; or logs over the same ids.

        Returns
        -------
        ClickLog

        Examples
        --------
        >>> from structrank.clicks import stream_sessions
        >>> stream = stream_sessions([("a", [1, 2], [0]), ("b", [2, 3], [])], chunk=1)
        >>> ClickLog.gather(stream)
        ClickLog(2 sessions, 2 queries, 3 urls, 1 clicks)
        """
        parts: list[ClickLog] = []
        for part in stream:
            shared_ids(parts[0] if parts else part, part)
            parts.append(part)
        if not parts:
            raise ValueError("the log holds no session; expected at least one.")
        report = sum((part.report for part in parts), LogReport())
        queries, query = settled(parts[0].queries, np.concatenate([part.query for part in parts]))
        urls, shown = settled(parts[0].urls, np.concatenate([part.shown for part in parts]))
        clicks = np.concatenate([part.clicks for part in parts])
        indptr = _joined([part.indptr for part in parts])
        click_indptr = _joined([part.click_indptr for part in parts])
        return cls(queries, urls, query, indptr, shown, click_indptr, clicks, report)

    def __len__(self) -> int:
        return self.query.shape[0]

    def __repr__(self):
        return (
            f"ClickLog({len(self)} sessions, {len(self.queries)} queries, {len(self.urls)} urls, "
            f"{self.clicks.shape[0]} clicks)"
        )

    def __getitem__(self, session: int) -> tuple[Hashable, list, list[int]]:
        number = range(len(self))[session]
        return self._session(number, self.queries.values, self.urls.values)

    def __iter__(self) -> Iterator[tuple[Hashable, list, list[int]]]:
        queries, urls = self.queries.values, self.urls.values
        return (self._session(number, queries, urls) for number in range(len(self)))

    def _session(self, number, queries, urls):
        shown = self.shown[self.indptr[number] : self.indptr[number + 1]]
        clicks = self.clicks[self.click_indptr[number] : self.click_indptr[number + 1]]
        (query,) = queries[self.query[number : number + 1]].tolist()
        return query, urls[shown].tolist(), clicks.tolist()

    def clicked(self) -> np.ndarray:
        """Tell for each entry of `shown` whether it was clicked.

        Returns
        -------
        (n_shown,) array of bool

        Examples
        --------
        >>> ClickLog.from_sessions([("q", ["a", "b", "c"], [2, 0])]).clicked()
        array([ True, False,  True])
        """
        clicked = np.zeros(self.shown.shape[0], dtype=bool)
        clicked[np.repeat(self.indptr[:-1], np.diff(self.click_indptr)) + self.clicks] = True
        return clicked

    def counts(self) -> ClickCounts:
        """Count clicks and impressions of each query and url; see `click_counts`.

        Returns
        -------
        ClickCounts
        """
        from structrank.clicks.counts import click_counts

        return click_counts(self)

    def subset(self, mask: ArrayLike) -> ClickLog:
        """Give some of the sessions as a log over the same ids.

        Parameters
        ----------
        mask : array-like of shape (n_sessions,), of bool

        Returns
        -------
        ClickLog
            Its report has only the counts that can be told from the sessions.

        Examples
        --------
        >>> log = ClickLog.from_sessions([("a", [1, 2], [0]), ("b", [2, 3], [])])
        >>> log.subset([False, True])[0]
        ('b', [2, 3], [])
        """
        taken = as_mask(mask, len(self), "sessions")
        shown, clicks = np.diff(self.indptr), np.diff(self.click_indptr)
        report = LogReport(
            sessions=int(taken.sum()),
            shown=int(shown[taken].sum()),
            clicks=int(clicks[taken].sum()),
            without_clicks=int((clicks[taken] == 0).sum()),
        )
        return ClickLog(
            self.queries,
            self.urls,
            self.query[taken],
            starts_of(shown[taken]),
            self.shown[np.repeat(taken, shown)],
            starts_of(clicks[taken]),
            self.clicks[np.repeat(taken, clicks)],
            report,
        )

    def split(self, test_size: float = 0.25, random_state: int = 0) -> tuple[ClickLog, ClickLog]:
        """Split the sessions at random into a log to learn from and one to test on.

        Parameters
        ----------
        test_size : float, default 0.25
            Share of the sessions that is held out, between 0 and 1.
        random_state : int, default 0
            Seed.

        Returns
        -------
        train, test : ClickLog
            Over the same ids.

        Examples
        --------
        >>> log = ClickLog.from_sessions([("q", ["a", "b"], [n % 2]) for n in range(8)])
        >>> train, test = log.split()
        >>> len(train), len(test)
        (6, 2)
        """
        held_out = random_mask(len(self), test_size, random_state, "sessions")
        return self.subset(~held_out), self.subset(held_out)


def assemble(queries, urls, query, sizes, shown, n_clicks, clicks, report):
    """Make a log from raw arrays: apply the policies that `LogReport` states, and count.

    Parameters
    ----------
    queries, urls : Ids, or ids that still grow
    query, shown, clicks : arrays
        As in `ClickLog`, but urls and clicks may repeat, lists may be empty, and positions may lie outside the list.
    sizes, n_clicks : (n_sessions,) arrays
        How many urls and clicks each session has.
    report : LogReport
        What was counted before.

    Returns
    -------
    ClickLog
    """
    lists = (query.astype(np.int32), starts_of(sizes), shown.astype(np.int32))
    *clean, counts = kernels.clean_sessions(*lists, starts_of(n_clicks), clicks.astype(np.int64), len(urls))
    names = ("empty", "repeated_urls", "repeated_clicks", "not_shown", "without_clicks")
    report = report + LogReport(
        sessions=clean[0].shape[0],
        shown=clean[2].shape[0],
        clicks=clean[4].shape[0],
        **dict(zip(names, counts.tolist(), strict=True)),
    )
    return ClickLog(queries, urls, *clean, report)


def settled(ids, numbers):
    """Give growing ids as `Ids`, and the numbers that were given out as dense integers of these."""
    if isinstance(ids, Ids):
        return ids, numbers
    ids, places = ids.settle()
    return ids, numbers if places is None else places[numbers].astype(numbers.dtype)


def shared_ids(first, other):
    """Raise unless two parts of a log have the same ids."""
    if not isinstance(other, ClickLog):
        raise ValueError(f"expected a ClickLog or a stream of parts of one; found {type(other).__name__}.")
    if first.queries is not other.queries or first.urls is not other.urls:
        raise ValueError(
            "the logs have ids of their own, so that one number means two queries; read them together, as in "
            "read_tsv([first, second])."
        )


def as_mask(mask, size, what):
    """Give a mask as an array of `size` bools."""
    array = _validation.as_column(mask, size, "mask", against=what)
    if array.dtype != bool:
        raise ValueError(f"mask has dtype {array.dtype}; expected bool: whether to take each of the {what}.")
    return array


def random_mask(size, share, random_state, what):
    """Give a mask that is true for a share of `size` entries, drawn at random; at least one is true and one is not."""
    share = _validation.check_number("test_size", share, above=0)
    random_state = _validation.check_number("random_state", random_state, at_least=0, integer=True)
    count = round(share * size)
    if not 0 < count < size:
        raise ValueError(
            f"test_size={share!r} is not valid: of {size} {what} it leaves nothing to train or nothing to test on; "
            f"expected a share between 0 and 1 that makes 1 to {size - 1} of them."
        )
    mask = np.zeros(size, dtype=bool)
    mask[np.random.default_rng(random_state).choice(size, count, replace=False)] = True
    return mask


def starts_of(sizes):
    """Give where each of consecutive runs starts, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(indptrs):
    return starts_of(np.concatenate([np.diff(indptr) for indptr in indptrs]))
