"""Readers of click logs in text files: tab-separated, JSON lines, and the Yandex format.

``read_...`` returns a `ClickLog`; ``stream_...`` returns its parts, for logs that are larger than memory: pass the stream to
`preference_pairs` or `click_counts`, or iterate over it once with a `PairCounter` and a `ClickCounter`.

Files may be plain, .gz, .bz2 or .xz; several files are read as one log. ``log.report`` counts what was skipped; see
`LogReport`.
"""

from __future__ import annotations

from collections.abc import Sequence

from structrank._support.typing import Path
from structrank.clicks._text_logs import JsonLines, TsvLines, YandexLines
from structrank.clicks.log import CHUNK, ClickLog, LogStream
from structrank.clicks.stream import stream_files


def stream_tsv(paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0) -> LogStream:
    """Stream a log in tab-separated text in parts; see `read_tsv`.

    Parameters
    ----------
    paths, malformed, verbose
        As for `read_tsv`.
    chunk : int, default 131072
        Approximate number of sessions per part.
    """
    return stream_files(TsvLines(malformed), paths, chunk, verbose)


def read_tsv(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
    r"""Read a log in tab-separated text, one session per line.

    ::

        query TAB urls TAB clicked positions

    Urls are separated by blanks, and so are positions, which start at 0 and are in order of time. The third field is empty or
    missing if nothing was clicked. A query may contain blanks. Ids are int64 if every id is written as an integer, and str
    otherwise; bytes that are not UTF-8 are escaped as ``\xff``.

    Parameters
    ----------
    paths : path-like or list of path-like
        Plain, .gz, .bz2 or .xz; several files form one log.
    malformed : {"skip", "error"}, default "skip"
        How to treat a malformed line: skip it, count it and warn, or raise.
    verbose : int, default 0
        1 shows progress on stderr.

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


def stream_yandex(paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0) -> LogStream:
    """Stream a log in the Yandex format in parts; see `read_yandex`.

    Parameters
    ----------
    paths, chunk, malformed, verbose
        As for `stream_tsv`.
    """
    return stream_files(YandexLines(malformed), paths, chunk, verbose)


def read_yandex(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
    r"""Read a log in the format of the Yandex relevance prediction challenge.

    ::

        SessionID TAB TimePassed TAB Q TAB QueryID TAB RegionID TAB url TAB url ...
        SessionID TAB TimePassed TAB C TAB url

    The lines of a session must be consecutive. Each query line becomes a session of the `ClickLog`; a click belongs to the
    latest query of its session, at its time or before, that showed the url. Regions are ignored. Fields may also be separated
    by blanks. Clicks without such a query are skipped and reported as ``not_shown``, or as ``without_query`` if their session
    has no query line, as happens in a file that is not sorted by session.

    Parameters
    ----------
    paths, malformed, verbose
        As for `read_tsv`; sessions do not continue across files.

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


def stream_jsonl(paths: Path | Sequence[Path], *, chunk: int = CHUNK, malformed: str = "skip", verbose: int = 0) -> LogStream:
    """Stream a log in JSON lines in parts; see `read_jsonl`.

    Parameters
    ----------
    paths, chunk, malformed, verbose
        As for `stream_tsv`.
    """
    return stream_files(JsonLines(malformed), paths, chunk, verbose)


def read_jsonl(paths: Path | Sequence[Path], *, malformed: str = "skip", verbose: int = 0) -> ClickLog:
    r"""Read a log in JSON lines, one session per line.

    ::

        {"query": "paris weather", "urls": ["a.org", "b.org"], "clicks": [1]}

    Clicks are positions from 0, in order of time. Ids are strings or numbers, integers of at most 64 bits, and 1 differs from
    "1". Other keys are ignored.

    Parameters
    ----------
    paths, malformed, verbose
        As for `read_tsv`.

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
