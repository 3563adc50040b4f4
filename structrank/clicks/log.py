"""A click log, in memory (`ClickLog`) or in parts (`LogStream`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from structrank._support import checks
from structrank._support.typing import ArrayLike
from structrank.clicks import _log_kernels as kernels
from structrank.clicks.counts import ClickCounter, ClickCounts
from structrank.clicks.ids import settled, shared_ids
from structrank.clicks.report import LogReport
from structrank.clicks.sessions import Sessions

CHUNK = 2**17
_NOTHING = LogReport()


class ClickLog:
    """Sessions: a query, the urls shown in order of rank, and the clicked positions in order of time.

    The arrays hold dense integers, which `queries` and `urls` map to ids. Integer ids are numbered in increasing order, other
    ids in order of first appearance. Build a log with `from_sessions` or a reader (`read_tsv`, `read_jsonl`, `read_frame`,
    `read_yandex`).

    Attributes
    ----------
    queries, urls : Ids
    query : (n_sessions,) array of int32
        Query of each session.
    indptr : (n_sessions + 1,) array of int64
        Session s shows ``shown[indptr[s]:indptr[s + 1]]``.
    shown : (n_shown,) array of int32
        Urls shown, distinct within a session.
    click_indptr : (n_sessions + 1,) array of int64
        Session s has the clicks ``clicks[click_indptr[s]:click_indptr[s + 1]]``.
    clicks : (n_clicks,) array of int32
        Clicked positions, from 0, in order of time; distinct within a session.
    report : LogReport
        Counts of kept and skipped entries.

    Examples
    --------
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org", "c.org"], [2, 0]), ("weather", ["b.org"], [])])
    >>> log
    ClickLog(2 sessions, 2 queries, 3 urls, 2 clicks)
    >>> log[0]
    ('news', ['a.org', 'b.org', 'c.org'], [2, 0])
    """

    def __init__(self, queries, urls, query, indptr, shown, click_indptr, clicks, skipped=_NOTHING):
        self.queries, self.urls = queries, urls
        self.query, self.indptr, self.shown = query, indptr, shown
        self.click_indptr, self.clicks = click_indptr, clicks
        n_without = int((np.diff(click_indptr) == 0).sum())
        self.report = skipped + LogReport(len(self), shown.shape[0], clicks.shape[0], without_clicks=n_without)

    @classmethod
    def from_sessions(
        cls, sessions: Iterable[tuple[Hashable, Iterable[Hashable], Iterable[int]]], *, malformed: str = "skip"
    ) -> ClickLog:
        """Build a log from sessions in memory.

        Parameters
        ----------
        sessions : iterable of (query, urls, clicked positions)
            Ids of any hashable type; positions start at 0 and are in order of time.
        malformed : {"skip", "error"}, default "skip"
            How to treat a session that is not such a triple: skip it, count it and warn, or raise.

        Examples
        --------
        >>> log = ClickLog.from_sessions([(7, [30, 10], [1]), (7, [10, 20], [0])])
        >>> log.urls.values.tolist(), log.shown.tolist(), log.clicks.tolist()
        ([10, 20, 30], [2, 0, 0, 1], [1, 0])
        """
        return cls.gather(stream_sessions(sessions, malformed=malformed))

    @classmethod
    def gather(cls, stream: Iterable[ClickLog]) -> ClickLog:
        """Concatenate the parts of a stream into one log.

        Parameters
        ----------
        stream : iterable of ClickLog
            Stream, for example from ``stream_tsv``, or logs over the same ids.

        Examples
        --------
        >>> stream = stream_sessions([("a", [1, 2], [0]), ("b", [2, 3], [])], chunk=1)
        >>> ClickLog.gather(stream)
        ClickLog(2 sessions, 2 queries, 3 urls, 1 clicks)
        """
        parts: list[ClickLog] = []
        for part in stream:
            shared_ids(parts[0] if parts else part, part)
            parts.append(part)
        if not parts:
            raise ValueError("the log has no sessions; expected at least one.")
        skipped = sum((part.report.skipped() for part in parts), LogReport())
        queries, query = settled(parts[0].queries, np.concatenate([part.query for part in parts]))
        urls, shown = settled(parts[0].urls, np.concatenate([part.shown for part in parts]))
        clicks = np.concatenate([part.clicks for part in parts])
        indptr = starts_of(np.concatenate([np.diff(part.indptr) for part in parts]))
        click_indptr = starts_of(np.concatenate([np.diff(part.click_indptr) for part in parts]))
        return cls(queries, urls, query, indptr, shown, click_indptr, clicks, skipped)

    def __len__(self) -> int:
        return self.query.shape[0]

    def __repr__(self):
        return (
            f"ClickLog({len(self)} sessions, {len(self.queries)} queries, {len(self.urls)} urls, {self.clicks.shape[0]} clicks)"
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
        """Return for each entry of `shown` whether it was clicked.

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
        """Count clicks and impressions by query and url; see `click_counts`."""
        counter = ClickCounter()
        counter.add(self)
        return counter.finish()

    def subset(self, mask: ArrayLike) -> ClickLog:
        """Return some of the sessions as a log over the same ids.

        Parameters
        ----------
        mask : array-like of shape (n_sessions,), of bool

        Returns
        -------
        ClickLog
            Its report has only the counts of sessions, urls shown and clicks.

        Examples
        --------
        >>> log = ClickLog.from_sessions([("a", [1, 2], [0]), ("b", [2, 3], [])])
        >>> log.subset([False, True])[0]
        ('b', [2, 3], [])
        """
        taken = as_mask(mask, len(self), "sessions")
        shown, clicks = np.diff(self.indptr), np.diff(self.click_indptr)
        lists = self.query[taken], starts_of(shown[taken]), self.shown[np.repeat(taken, shown)]
        clicked = starts_of(clicks[taken]), self.clicks[np.repeat(taken, clicks)]
        return ClickLog(self.queries, self.urls, *lists, *clicked)

    def _between(self, start, stop):
        """Return consecutive sessions as a log over the same ids, without copying them."""
        rows, clicks = self.indptr[start : stop + 1], self.click_indptr[start : stop + 1]
        lists = self.query[start:stop], rows - rows[0], self.shown[rows[0] : rows[-1]]
        return ClickLog(self.queries, self.urls, *lists, clicks - clicks[0], self.clicks[clicks[0] : clicks[-1]])

    def last_clicks(self) -> ClickLog:
        """Return the log with only the last click of each session, over the same ids.

        A user who stops after a click is more likely satisfied than one who clicks on. Click-through rates of last clicks
        are the click labels of Svore, Volkovs and Burges (WWW 2011, section 6).

        Returns
        -------
        ClickLog
            Its report has only the counts of sessions, urls shown and clicks.

        Examples
        --------
        >>> from structrank.clicks import ClickThroughRate
        >>> log = ClickLog.from_sessions([("q", ["a", "b"], [0, 1]), ("q", ["a", "b"], [1]), ("q", ["a", "b"], [])])
        >>> ClickThroughRate().fit(log.last_clicks()).predict(["q", "q"], ["a", "b"]).round(2)
        array([0.  , 0.67])
        """
        ended = np.diff(self.click_indptr) > 0
        clicks = self.clicks[self.click_indptr[1:][ended] - 1]
        return ClickLog(self.queries, self.urls, self.query, self.indptr, self.shown, starts_of(ended), clicks)

    def split(self, test_size: float = 0.25, random_state: int = 0) -> tuple[ClickLog, ClickLog]:
        """Split the sessions at random into a training log and a test log.

        Parameters
        ----------
        test_size : float, default 0.25
            Fraction of the sessions in the test log, between 0 and 1.
        random_state : int, default 0
            Seed.

        Returns
        -------
        train, test : ClickLog
            Logs over the same ids.

        Examples
        --------
        >>> log = ClickLog.from_sessions([("q", ["a", "b"], [n % 2]) for n in range(8)])
        >>> train, test = log.split()
        >>> len(train), len(test)
        (6, 2)
        """
        held_out = random_mask(len(self), test_size, random_state, "sessions")
        return self.subset(~held_out), self.subset(held_out)


class LogStream:
    """A click log in parts, which can be iterated over once.

    Attributes
    ----------
    report : LogReport
        Report on the parts read so far.

    Examples
    --------
    >>> stream = stream_sessions([("a", [1, 2], [0]), ("b", [2, 3], [7])], chunk=1)
    >>> [len(part) for part in stream]
    [1, 1]
    >>> stream.report.not_shown
    1
    """

    def __init__(self, parts: Iterable[ClickLog], name: str):
        self._parts: Iterable[ClickLog] | None = parts
        self._name = name
        self.report = LogReport()

    def __iter__(self) -> Iterator[ClickLog]:
        if self._parts is None:
            raise ValueError(f"the stream of {self._name} is exhausted; create a new one to read it again.")
        parts, self._parts = self._parts, None
        for part in parts:
            self.report += part.report
            yield part
        if not self.report.sessions:
            why = f" First malformed entry: {self.report.examples[0]}" if self.report.examples else ""
            raise ValueError(f"{self._name} has no sessions that show a url; expected at least one.{why}")
        self.report.warn()


def stream_sessions(
    sessions: Iterable[tuple[Hashable, Iterable[Hashable], Iterable[int]]], *, chunk: int = CHUNK, malformed: str = "skip"
) -> LogStream:
    """Stream sessions from memory or a generator as parts of a log.

    Parameters
    ----------
    sessions : iterable of (query, urls, clicked positions)
        As for `ClickLog.from_sessions`.
    chunk : int, default 131072
        Sessions per part.
    malformed : {"skip", "error"}, default "skip"
        How to treat a session that is not such a triple: skip it, count it and warn, or raise.

    Examples
    --------
    >>> from structrank.clicks import preference_pairs
    >>> preference_pairs(stream_sessions((n, ["a", "b"], [1]) for n in range(1000)))
    Preferences(1000 pairs, 1000 queries, 2 urls)
    """
    chunk = checks.check_number("chunk", chunk, at_least=1, integer=True)
    if isinstance(sessions, (str, bytes)) or not hasattr(sessions, "__iter__"):
        raise ValueError(f"sessions is a {type(sessions).__name__}; expected an iterable of (query, urls, clicked positions).")
    waiting = Sessions(malformed)

    def parts():
        for number, session in enumerate(sessions):
            waiting.add(session, f"session {number}")
            if len(waiting) >= chunk:
                yield assemble(*waiting.take())
        rest = assemble(*waiting.take())
        if rest.report != LogReport():
            yield rest

    return LogStream(parts(), "sessions")


def assemble(queries, urls, query, sizes, shown, n_clicks, clicks, skipped):
    """Build a log from raw arrays: clean the sessions as described in `LogReport`, besides what the reader has `skipped`.

    `query`, `shown` and `clicks` are as in `ClickLog`, but urls and clicks may repeat, lists may be empty, and positions may
    lie outside the list. `sizes` and `n_clicks` are the numbers of urls and of clicks of each session.
    """
    lists = (query.astype(np.int32), starts_of(sizes), shown.astype(np.int32))
    *clean, counts = kernels.clean_sessions(*lists, starts_of(n_clicks), clicks.astype(np.int64), len(urls))
    names = ("empty", "repeated_urls", "repeated_clicks", "not_shown")
    return ClickLog(queries, urls, *clean, skipped + LogReport(**dict(zip(names, counts.tolist(), strict=True))))


def as_mask(mask, size, what):
    """Convert a mask to an array of `size` bools; raise if it is not one."""
    array = checks.as_column(mask, size, "mask", against=what)
    if array.dtype != bool:
        raise ValueError(f"mask has dtype {array.dtype}; expected bool: whether to select each of the {what}.")
    return array


def random_mask(size, share, random_state, what):
    """Return a random mask that is true for a fraction of `size` entries, at least one and not all."""
    share = checks.check_number("test_size", share, above=0)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    count = round(share * size)
    if not 0 < count < size:
        raise ValueError(
            f"test_size={share!r} is not valid: one side of the split of {size} {what} would be empty; "
            f"expected a fraction between 0 and 1 that selects 1 to {size - 1} of them."
        )
    mask = np.zeros(size, dtype=bool)
    mask[np.random.default_rng(random_state).choice(size, count, replace=False)] = True
    return mask


def starts_of(sizes):
    """Return the start of each of consecutive runs, and the end of the last."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
