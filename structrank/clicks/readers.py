"""Readers of click logs: sessions in memory, tab-separated text, JSON lines, data frames, and Yandex's layout.

``read_...`` gives a `ClickLog`; ``stream_...`` gives it in parts, for logs that are larger than memory: hand the stream to
`preference_pairs` or `click_counts`, or go through it once with a `PairCounter` and a `ClickCounter`.

Files may be plain, .gz, .bz2 or .xz, and several are read as one log. What each reader leaves out, and why, is counted in
``log.report``; see `LogReport`.
"""

from __future__ import annotations

import json
import numbers
import os

import numpy as np

from structrank import _validation
from structrank._progress import ProgressLine
from structrank.clicks._text_logs import TsvLines, YandexLines
from structrank.clicks.ids import GrowingIds
from structrank.clicks.log import MALFORMED, MOST_EXAMPLES, ClickLog, LogReport, assemble, starts_of
from structrank.datasets._text_files import read_blocks

_CHUNK = 2**17


class LogStream:
    """A click log in parts, to be gone through once.

    Attributes
    ----------
    report : LogReport
        Of the parts so far.

    Examples
    --------
    >>> stream = stream_sessions([("a", [1, 2], [0]), ("b", [2, 3], [7])], chunk=1)
    >>> [len(part) for part in stream]
    [1, 1]
    >>> stream.report.not_shown
    1
    """

    def __init__(self, parts, name):
        self._parts, self._name = parts, name
        self.report = LogReport()

    def __iter__(self):
        if self._parts is None:
            raise ValueError(f"the stream of {self._name} has been read; make a new one to read it again.")
        parts, self._parts = self._parts, None
        for part in parts:
            self.report += part.report
            yield part
        if not self.report.sessions:
            why = f" The first that was not understood: {self.report.examples[0]}" if self.report.examples else ""
            raise ValueError(f"{self._name} holds no session that shows a url; expected at least one.{why}")
        self.report.warn()


class _Sessions:
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
        log = assemble(
            self._queries,
            self._urls,
            np.array(self._query, dtype=np.int32),
            starts_of(self._sizes),
            np.array(self._shown, dtype=np.int32),
            starts_of(self._n_clicks),
            np.array(self._clicks, dtype=np.int64),
            self._report,
        )
        self._clear()
        return log


class _MalformedError(Exception):
    """What is wrong with a session."""


def _checked(session):
    """Give (query, list of urls, list of positions) of a session."""
    try:
        query, urls, clicks = session
    except (TypeError, ValueError):
        raise _MalformedError(f"found {_shown(session)}, expected (query, urls, clicked positions).") from None
    urls, clicks = _as_list(urls, "the urls shown"), _as_list(clicks, "clicked positions")
    query, *urls = (_checked_id(value) for value in (query, *urls))
    for click in clicks:
        if type(click) is not int and (not isinstance(click, numbers.Integral) or isinstance(click, (bool, np.bool_))):
            raise _MalformedError(f"found {_shown(click)} as a clicked position, expected an integer, from 0.")
    return query, urls, [min(max(int(click), -1), _FARTHEST) for click in clicks]


_FARTHEST = 2**31  # position of no url; larger ones mean the same


def _as_list(values, expected):
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
        raise _MalformedError(f"found {_shown(values)}, expected a list of {expected}.")
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
        raise _MalformedError(f"found {_shown(value)} as an id, expected a number, a text or a tuple of these.")
    return value


def _shown(value):
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def stream_sessions(sessions, *, chunk=_CHUNK, malformed="skip"):
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
    buffer = _Sessions(malformed)

    def parts():
        for number, session in enumerate(sessions):
            buffer.add(session, f"session {number}")
            if len(buffer) >= chunk:
                yield buffer.take()
        rest = buffer.take()
        if rest.report != LogReport():
            yield rest

    return LogStream(parts(), "sessions")


def read_frame(
    frame, *, session="session", query="query", url="url", position="position", clicked="clicked", time=None, malformed="skip"
):
    """Read a log from a data frame in long form, a row for each url shown.

    Parameters
    ----------
    frame : pandas.DataFrame, or what has columns as it has
        Rows in any order. Rows of the same session and the same query are one list.
    session, query, url : str
        Names of the columns with these ids, of any hashable type.
    position : str
        Name of the column by which a list is ordered; numbers. Rows of equal position stay in their order.
    clicked : str
        Name of the column that says whether the url was clicked: bool, or numbers, above 0 for yes.
    time : str, default None
        Name of the column with the time of the click, in any type that sorts; None takes clicks from top to bottom.
    malformed : {"skip", "error"}, default "skip"
        What to do with a row that lacks one of these: leave it out, count it and warn, or raise.

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {
    ...         "session": [1, 1, 1, 2],
    ...         "query": ["news", "news", "news", "weather"],
    ...         "url": ["b.org", "a.org", "c.org", "a.org"],
    ...         "position": [2, 1, 3, 1],
    ...         "clicked": [0, 0, 1, 1],
    ...     }
    ... )
    >>> list(read_frame(frame))
    [('news', ['a.org', 'b.org', 'c.org'], [2]), ('weather', ['a.org'], [0])]
    """
    import pandas as pd

    _validation.check_choice("malformed", malformed, MALFORMED)
    names = {"session": session, "query": query, "url": url, "position": position, "clicked": clicked}
    if time is not None:
        names["time"] = time
    if not hasattr(frame, "columns"):
        raise ValueError(f"frame is a {type(frame).__name__}; expected a data frame, a row for each url shown.")
    for name, column in names.items():
        found = list(frame.columns).count(column)
        if found != 1:
            raise ValueError(
                f"frame has {found or 'no'} column{'s' if found else ''} {column!r}; it has "
                f"{', '.join(map(repr, frame.columns))}. Name the column with {name}=."
            )
    columns = {name: frame[column].to_numpy() for name, column in names.items()}
    missing = np.zeros(len(frame), dtype=bool)
    for name, values in columns.items():
        if name != "time":
            missing |= pd.isna(values)
    report = _missing_rows(columns, missing, malformed)
    columns = {name: values[~missing] for name, values in columns.items()}
    for name in ("position", "clicked"):
        columns[name] = _validation.as_number_column(columns[name], (~missing).sum(), names[name], "numbers", "frame")

    queries, query_numbers = _factorised(columns["query"], names["query"])
    urls, shown = _factorised(columns["url"], names["url"])
    _, session_numbers = _factorised(columns["session"], names["session"])
    lists = pd.factorize(session_numbers * len(queries) + query_numbers)[0]
    order = np.lexsort((columns["position"], lists))
    sizes = np.bincount(lists)
    indptr = starts_of(sizes)
    place = np.empty(order.shape[0], dtype=np.int64)
    place[order] = np.arange(order.shape[0]) - np.repeat(indptr[:-1], sizes)

    rows = np.flatnonzero(columns["clicked"] > 0)
    when = place[rows] if time is None else pd.factorize(columns["time"][rows], sort=True, use_na_sentinel=False)[0]
    rows = rows[np.lexsort((place[rows], when, lists[rows]))]
    log = assemble(
        queries,
        urls,
        query_numbers[order[indptr[:-1]]],
        indptr,
        shown[order],
        starts_of(np.bincount(lists[rows], minlength=sizes.shape[0])),
        place[rows],
        report,
    )
    return ClickLog.gather(LogStream(iter([log]), "frame"))


def _missing_rows(columns, missing, malformed):
    """Report the rows that lack something, or raise."""
    import pandas as pd

    rows = np.flatnonzero(missing)
    examples = tuple(
        f"row {row}: found no {next(name for name, values in columns.items() if pd.isna(values[row]))}, expected one."
        for row in rows[:MOST_EXAMPLES].tolist()
    )
    if rows.size and malformed == "error":
        raise ValueError(f"frame, {examples[0]}")
    return LogReport(malformed=rows.size, examples=examples)


def _factorised(values, name):
    """Give a column of ids as `Ids`, and the dense integer of each row."""
    import pandas as pd

    try:
        numbers, distinct = pd.factorize(values)
    except TypeError as error:
        raise ValueError(f"column {name!r} has ids that are not hashable ({error}); expected numbers or texts.") from None
    growing = GrowingIds()
    growing.add(distinct.tolist())
    ids, places = growing.settle()
    return ids, numbers if places is None else places[numbers]


def stream_tsv(paths, *, chunk=_CHUNK, malformed="skip", verbose=0):
    r"""Give a log in tab-separated text in parts; see `read_tsv`.

    Parameters
    ----------
    paths : path-like, or list of these
    chunk : int, default 131072
        Sessions of a part, about.
    malformed, verbose
        As for `read_tsv`.

    Returns
    -------
    LogStream

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from structrank.clicks import preference_pairs
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.tsv"
    ...     _ = path.write_text("paris weather\ta.org b.org\t1\nnews\tc.org a.org\t1 0\n")
    ...     preference_pairs(stream_tsv(path))
    Preferences(1 pairs, 2 queries, 3 urls)
    """
    return _stream_lines(TsvLines, paths, chunk, malformed, verbose)


def read_tsv(paths, *, malformed="skip", verbose=0):
    r"""Read a log in tab-separated text, a session a line.

    ::

        query TAB urls TAB clicked positions

    Urls are separated by blanks; so are positions, which count from 0 and are in order of time. The third field may be empty
    or missing: nothing was clicked. A query may hold blanks. Ids are int64 where each is written as an integer, and text
    otherwise; bytes that are no UTF-8 are shown as ``\xff``.

    Parameters
    ----------
    paths : path-like, or list of these
        Plain, .gz, .bz2 or .xz; several are one log.
    malformed : {"skip", "error"}, default "skip"
        What to do with a line that is not so: leave it out, count it and warn, or raise.
    verbose : int, default 0
        1 shows progress on stderr.

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.tsv"
    ...     _ = path.write_text("paris weather\ta.org b.org\t1\nnews\tc.org a.org\t1 0\n")
    ...     log = read_tsv(path)
    >>> log[0]
    ('paris weather', ['a.org', 'b.org'], [1])
    """
    return ClickLog.gather(stream_tsv(paths, malformed=malformed, verbose=verbose))


def stream_yandex(paths, *, chunk=_CHUNK, malformed="skip", verbose=0):
    r"""Give a log in Yandex's layout in parts; see `read_yandex`.

    Parameters
    ----------
    paths : path-like, or list of these
    chunk : int, default 131072
        Sessions of a part, about.
    malformed, verbose
        As for `read_yandex`.

    Returns
    -------
    LogStream

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from structrank.clicks import click_counts
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "Clicklog.txt"
    ...     _ = path.write_text("7\t0\tQ\t174\t0\t50\t51\t52\n7\t30\tC\t51\n")
    ...     click_counts(stream_yandex(path)).clicks.toarray()
    array([[0., 1., 0.]])
    """
    return _stream_lines(YandexLines, paths, chunk, malformed, verbose)


def read_yandex(paths, *, malformed="skip", verbose=0):
    r"""Read a log in the layout of Yandex's relevance prediction challenge.

    ::

        SessionID TAB TimePassed TAB Q TAB QueryID TAB RegionID TAB url TAB url ...
        SessionID TAB TimePassed TAB C TAB url

    The lines of a session follow each other. Each of its query lines becomes a session of the `ClickLog`; a click goes to the
    latest query of its session, at its time or before, that showed the url. Regions are not used. Fields may also be separated
    by blanks. Clicks that belong to no query are counted in the report, as ``not_shown``, or as ``without_query`` where their
    session has no query line at all, as happens in a file that is not sorted by session.

    Parameters
    ----------
    paths : path-like, or list of these
        Plain, .gz, .bz2 or .xz; several are one log, but no session goes on from one file to the next.
    malformed : {"skip", "error"}, default "skip"
        What to do with a line that is not so: leave it out, count it and warn, or raise.
    verbose : int, default 0
        1 shows progress on stderr.

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "Clicklog.txt"
    ...     _ = path.write_text("7\t0\tQ\t174\t0\t50\t51\t52\n7\t30\tC\t51\n7\t41\tC\t99\n")
    ...     log = read_yandex(path)
    >>> log[0], log.report.not_shown
    ((174, [50, 51, 52], [1]), 1)
    """
    return ClickLog.gather(stream_yandex(paths, malformed=malformed, verbose=verbose))


def stream_jsonl(paths, *, chunk=_CHUNK, malformed="skip", verbose=0):
    """Give a log in JSON lines in parts; see `read_jsonl`.

    Parameters
    ----------
    paths : path-like, or list of these
    chunk : int, default 131072
        Sessions of a part, about.
    malformed, verbose
        As for `read_jsonl`.

    Returns
    -------
    LogStream
    """
    return _stream_lines(_JsonLines, paths, chunk, malformed, verbose)


def read_jsonl(paths, *, malformed="skip", verbose=0):
    r"""Read a log in JSON lines, a session a line.

    ::

        {"query": "paris weather", "urls": ["a.org", "b.org"], "clicks": [1]}

    Clicks are positions from 0, in order of time. Ids are numbers or texts, and 1 is not "1". Other keys are not read.

    Parameters
    ----------
    paths : path-like, or list of these
        Plain, .gz, .bz2 or .xz; several are one log.
    malformed : {"skip", "error"}, default "skip"
        What to do with a line that is not so: leave it out, count it and warn, or raise.
    verbose : int, default 0
        1 shows progress on stderr.

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.jsonl"
    ...     _ = path.write_text('{"query": "news", "urls": ["a.org", "b.org"], "clicks": [1]}')
    ...     read_jsonl(path)[0]
    ('news', ['a.org', 'b.org'], [1])
    """
    return ClickLog.gather(stream_jsonl(paths, malformed=malformed, verbose=verbose))


class _JsonLines:
    """Lines ``{"query": ..., "urls": [...], "clicks": [...]}``."""

    def __init__(self, malformed):
        self._sessions = _Sessions(malformed)
        self.take = self.take_rest = self._sessions.take

    def __len__(self):
        return len(self._sessions)

    def add(self, path, block):
        """Read a block of lines."""
        for number, line in enumerate(bytes(block.text[: block.size - 1]).split(b"\n"), start=block.first_line):
            if line.strip():
                self._add_line(line, f"{path}:{number}")

    def _add_line(self, line, place):
        try:
            found = json.loads(line)
            session = (found["query"], found["urls"], found["clicks"])
        except (ValueError, TypeError, KeyError, RecursionError):
            text = line.strip().decode("utf-8", "backslashreplace")
            expected = '{"query": ..., "urls": [...], "clicks": [...]}'
            self._sessions.refuse(f"{place}: found {_shown(text)}, expected {expected}.")
        else:
            self._sessions.add(session, place)


def _stream_lines(kind, paths, chunk, malformed, verbose):
    """Give the log in files of lines that `kind` reads, in parts."""
    chunk = _validation.check_number("chunk", chunk, at_least=1, integer=True)
    _validation.check_choice("malformed", malformed, MALFORMED)
    paths = _as_paths(paths)
    lines = kind(malformed)

    def parts():
        line = ProgressLine() if verbose else None
        for path in paths:
            for block in read_blocks(path):
                lines.add(path, block)
                if line is not None:
                    line.update(f"{path}: {block.read / os.path.getsize(path):.0%} read")
                if len(lines) >= chunk:
                    yield lines.take()
        rest = lines.take_rest()
        if rest.report != LogReport():
            yield rest
        if line is not None:
            line.finish(f"{', '.join(paths)}: read")

    return LogStream(parts(), ", ".join(paths))


def _as_paths(paths):
    """Give one or several paths as a list of texts; each must be a file."""
    several = isinstance(paths, (list, tuple))
    if not several and not isinstance(paths, (str, os.PathLike)):
        raise ValueError(f"paths={paths!r} is not valid: expected a path, or a list of these.")
    if several and not paths:
        raise ValueError("paths is empty; expected at least one file.")
    for number, path in enumerate(paths if several else []):
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"paths[{number}]={path!r} is not valid: expected a path.")
    found = [os.fspath(path) for path in (paths if several else [paths])]
    for path in found:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} is no file; expected a click log.")
    return found
