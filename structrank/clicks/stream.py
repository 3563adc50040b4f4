"""A click log in parts, and the files that the parts are read from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from structrank import _validation
from structrank._progress import ProgressLine
from structrank.clicks.log import ClickLog, LogReport
from structrank.datasets._text_files import read_blocks

if TYPE_CHECKING:
    from structrank._typing import Path

CHUNK = 2**17


class LogStream:
    """A click log in parts, to be gone through once.

    Attributes
    ----------
    report : LogReport
        Of the parts so far.

    Examples
    --------
    >>> from structrank.clicks import stream_sessions
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
            raise ValueError(f"the stream of {self._name} has been read; make a new one to read it again.")
        parts, self._parts = self._parts, None
        for part in parts:
            self.report += part.report
            yield part
        if not self.report.sessions:
            why = f" The first that was not understood: {self.report.examples[0]}" if self.report.examples else ""
            raise ValueError(f"{self._name} holds no session that shows a url; expected at least one.{why}")
        self.report.warn()


def stream_files(lines, paths: Path | Sequence[Path], chunk: int, verbose: int) -> LogStream:
    """Give the log in files of text in parts.

    Parameters
    ----------
    lines : reader of lines
        With ``add(path, block)``, ``len`` (sessions that wait) and ``take(end)``, which gives them as a log.
    paths : path-like, or list of these
    chunk : int
        Sessions of a part, about.
    verbose : int

    Returns
    -------
    LogStream
    """
    chunk = _validation.check_number("chunk", chunk, at_least=1, integer=True)
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
