"""Readers of lines of text: buffer the output of the compiled readers and format messages about malformed lines."""

from __future__ import annotations

import json
import re

import numpy as np

from structrank._support import checks
from structrank.clicks import _log_kernels as kernels
from structrank.clicks.ids import TextIds
from structrank.clicks.log import assemble, starts_of
from structrank.clicks.report import MALFORMED, MAX_EXAMPLES, LogReport
from structrank.clicks.sessions import Sessions, abbreviated

_EXPECTED = {
    kernels.NO_QUERY: "a query",
    kernels.NO_URLS: "three fields separated by tabs: query, urls, clicked positions",
    kernels.BAD_POSITION: "a clicked position: an integer from 0",
    kernels.TOO_MANY_FIELDS: "the end of the line",
    kernels.BAD_TIME: "a time: an integer, after the session",
    kernels.BAD_ACTION: "Q (a query) or C (a click), after session and time",
    kernels.NO_CLICKED_URL: "the url that was clicked",
    kernels.NO_REGION: "a region after the query, and then urls",
}
_TYPES = {name: np.int32 if name in ("query", "shown") else np.int64 for name in kernels.Lines._fields}
_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def _int64(text):
    """Return an integer. Those of more bits may share their hashes by design, and then take quadratic time to number."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text} does not fit in 64 bits")
    return value


class JsonLines:
    """Lines ``{"query": ..., "urls": [...], "clicks": [...]}``."""

    def __init__(self, malformed):
        self._sessions = Sessions(malformed)

    def __len__(self):
        return len(self._sessions)

    def add(self, path, block):
        """Read a block of lines."""
        for number, line in enumerate(bytes(block.text[: block.size - 1]).split(b"\n"), start=block.first_line):
            if line.strip():
                self._add_line(line, f"{path}:{number}")

    def _add_line(self, line, place):
        try:
            found = json.loads(line, parse_int=_int64) if _LONG_NUMBER.search(line) else json.loads(line)
            session = (found["query"], found["urls"], found["clicks"])
        except (ValueError, TypeError, KeyError, RecursionError):
            text = line.strip().decode("utf-8", "backslashreplace")
            expected = '{"query": ..., "urls": [...], "clicks": [...]} with integers of at most 64 bits'
            self._sessions.refuse(f"{place}: found {abbreviated(text)}, expected {expected}.")
        else:
            self._sessions.add(session, place)

    def take(self, end=False):
        """Return the sessions read since the last call as a log."""
        return assemble(*self._sessions.take())


class _CompiledLines:
    """Base of the compiled readers: ids, buffers, columns of sessions not yet taken, number of malformed lines.

    Subclasses name the columns with one entry per line and per click, and define ``_read(text, size, queries, urls,
    lines)``, which fills the buffers and returns the numbers of lines, urls, clicks and malformed lines.
    """

    def __init__(self, malformed):
        self._malformed = checks.check_choice("malformed", malformed, MALFORMED)
        self._queries, self._urls = TextIds(), TextIds()
        self._report, self._buffers = LogReport(), None
        self._columns = {name: [np.empty(0, _TYPES[name])] for name in (*self._of_lines, "shown", *self._of_clicks)}

    def __len__(self):
        return sum(map(len, self._columns["query"]))

    def add(self, path, block):
        """Read a block of lines."""
        size = block.size // 2 + 1  # a token and its separator take 2 bytes; untouched pages of np.empty take no memory
        if self._buffers is None or self._buffers.query.shape[0] < size:
            self._buffers = kernels.Lines(*(np.empty(size, _TYPES[name]) for name in kernels.Lines._fields))
        text, lines = np.frombuffer(block.text, dtype=np.uint8), self._buffers
        ids = self._queries.reserve(block.size), self._urls.reserve(block.size)
        *found, n_wrong = self._read(text, block.size, *ids, lines)
        for name, stop in self._ends(*found):
            self._columns[name].append(getattr(lines, name)[:stop].copy())
        if n_wrong:
            few = min(n_wrong, MAX_EXAMPLES)
            wrong = zip(lines.wrong[:few].tolist(), lines.wrong_at[:few].tolist(), strict=True)
            messages = tuple(_message(path, block, kind, at) for kind, at in wrong)
            if self._malformed == "error":
                raise ValueError(messages[0])
            self._report += LogReport(malformed=n_wrong, examples=messages)

    def _ends(self, n, n_shown, n_clicks):
        """Yield each column with its length for these numbers of lines, urls and clicks."""
        for names, stop in ((self._of_lines, n), (("shown",), n_shown), (self._of_clicks, n_clicks)):
            yield from ((name, stop) for name in names)

    def _take_report(self):
        report, self._report = self._report, LogReport()
        return report


def _message(path, block, kind, at):
    """Return the message about a malformed line of a block."""
    found = re.match(rb"[^\t\r\n]*", memoryview(block.text)[at : at + 200])[0].decode("utf-8", "backslashreplace")
    found = repr(found if len(found) <= 40 else f"{found[:40]}...") if found else "the end of the line"
    return f"{path}:{block.line_of(at)}: found {found}, expected {_EXPECTED[kind]}."


class TsvLines(_CompiledLines):
    """Lines ``query TAB urls TAB positions``."""

    _of_lines, _of_clicks = ("query", "size", "n_clicks"), ("clicks",)
    _read = staticmethod(kernels.read_tsv)

    def take(self, end=False):
        """Return the sessions read since the last call as a log."""
        found = {name: np.concatenate(arrays) for name, arrays in self._columns.items()}
        self._columns = {name: [values[:0]] for name, values in found.items()}
        columns = (found[name] for name in ("query", "size", "shown", "n_clicks", "clicks"))
        return assemble(self._queries, self._urls, *columns, self._take_report())


class YandexLines(_CompiledLines):
    """Lines ``session time Q query region urls`` and ``session time C url``."""

    _of_lines, _of_clicks = ("query", "size", "run", "time"), ("clicks", "click_run", "click_time")

    def __init__(self, malformed):
        super().__init__(malformed)
        self._session = np.zeros(3, dtype=np.uint64)  # number and key of the last session; 1 if the next line starts another

    def add(self, path, block):
        """Read a block of lines."""
        if block.first_line == 1:
            self._session[2] = 1  # sessions do not continue across files
        super().add(path, block)

    def _read(self, *arguments):
        return kernels.read_yandex(*arguments, self._session)

    def take(self, end=False):
        """Return the complete sessions as a log; before the `end`, the last session may still get lines."""
        found = {name: np.concatenate(arrays) for name, arrays in self._columns.items()}
        last = int(self._session[0]) + end
        n, n_clicks = np.searchsorted(found["run"], last), np.searchsorted(found["click_run"], last)
        indptr = starts_of(found["size"][:n])
        for name, stop in self._ends(n, indptr[-1], n_clicks):
            found[name], self._columns[name] = found[name][:stop], [found[name][stop:].copy()]
        click_indptr, clicks, not_shown, without_query = kernels.attach_clicks(
            found["run"], found["time"], indptr, found["shown"], found["click_run"], found["click_time"], found["clicks"]
        )
        report = self._take_report() + LogReport(not_shown=not_shown, without_query=without_query)
        columns = (found["query"], found["size"], found["shown"], np.diff(click_indptr), clicks)
        return assemble(self._queries, self._urls, *columns, report)
