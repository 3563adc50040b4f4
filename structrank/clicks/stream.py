"""Click logs from files, and operations that take a log, a stream of its parts, or sessions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence

from structrank._support import checks
from structrank._support.progress import ProgressLine
from structrank._support.typing import Path
from structrank.clicks.counts import ClickCounter, ClickCounts
from structrank.clicks.log import ClickLog, LogStream
from structrank.clicks.report import LogReport
from structrank.datasets.text_files import read_blocks


def stream_files(lines, paths: Path | Sequence[Path], chunk: int, verbose: int) -> LogStream:
    """Stream the log in text files in parts of about `chunk` sessions.

    `lines` has ``add(path, block)``, ``len`` (buffered sessions) and ``take(end)``, which returns these sessions as a log.
    """
    chunk = checks.check_number("chunk", chunk, at_least=1, integer=True)
    files = _as_paths(paths)

    def parts():
        line = ProgressLine() if verbose else None
        for path in files:
            for block in read_blocks(path):
                lines.add(path, block)
                if line is not None:
                    line.update(f"{path}: {block.read / os.path.getsize(path):.0%} read")
                if len(lines) >= chunk:
                    yield lines.take()
        rest = lines.take(end=True)
        if rest.report != LogReport():
            yield rest
        if line is not None:
            line.finish(f"{', '.join(files)}: read")

    return LogStream(parts(), ", ".join(files))


def _as_paths(paths):
    """Return one or several paths as a list of str; raise if one is not a file."""
    several = isinstance(paths, (list, tuple))
    if not several and not isinstance(paths, (str, os.PathLike)):
        raise ValueError(f"paths={paths!r} is not valid: expected a path or a list of paths.")
    if several and not paths:
        raise ValueError("paths is empty; expected at least one file.")
    for number, path in enumerate(paths if several else []):
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"paths[{number}]={path!r} is not valid: expected a path.")
    found = [os.fspath(path) for path in (paths if several else [paths])]
    for path in found:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} is not a file; expected a click log.")
    return found


def click_counts(log: ClickLog | Iterable | ClickCounts) -> ClickCounts:
    """Count how often each url was shown and clicked for each query.

    Parameters
    ----------
    log : ClickLog, stream of its parts, or ClickCounts
        Counts are returned unchanged. A stream is read once; memory grows with the number of distinct pairs (query, url), not
        with the length of the log.

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


READERS = "read_frame reads a data frame; read_tsv, read_jsonl and read_yandex read files."


def as_stream(log):
    """Return an iterator over the parts of a log, of a stream, or of sessions as for `ClickLog.from_sessions`."""
    if isinstance(log, ClickLog):
        return iter([log])
    if isinstance(log, (str, bytes)) or hasattr(log, "columns") or not hasattr(log, "__iter__"):
        raise ValueError(f"log is a {type(log).__name__}; expected a ClickLog, a stream of its parts, or sessions. {READERS}")
    return _parts(iter(log))


def _parts(entries):
    """Yield the parts of a stream; if the first entry is a session, yield one log of all entries."""
    for first in entries:
        if not isinstance(first, ClickLog):
            yield ClickLog.from_sessions(itertools.chain([first], entries))
            return
        yield first
        yield from entries
