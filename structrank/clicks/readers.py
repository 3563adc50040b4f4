"""Click logs in files of text: tab-separated, JSON lines, and Yandex's layout.

``read_...`` gives a `ClickLog`; ``stream_...`` gives it in parts, for logs that are larger than memory: hand the stream to
`preference_pairs` or `click_counts`, or go through it once with a `PairCounter` and a `ClickCounter`.

Files may be plain, .gz, .bz2 or .xz, and several are read as one log. What each reader leaves out, and why, is counted in
``log.report``; see `LogReport`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structrank.clicks._text_logs import JsonLines, TsvLines, YandexLines
from structrank.clicks.log import ClickLog
from structrank.clicks.stream import CHUNK, LogStream, stream_files

if TYPE_CHECKING:
    from structrank._typing import Path


def stream_tsv(
    paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0
) -> LogStream:
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
    return stream_files(TsvLines(malformed), paths, chunk, verbose)


def read_tsv(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
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


def stream_yandex(
    paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0
) -> LogStream:
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
    return stream_files(YandexLines(malformed), paths, chunk, verbose)


def read_yandex(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
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


def stream_jsonl(
    paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0
) -> LogStream:
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
    return stream_files(JsonLines(malformed), paths, chunk, verbose)


def read_jsonl(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
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
