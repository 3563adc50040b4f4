"""Lines of text into parts of a log: gathers what the compiled readers find, and words what is wrong with a line."""

from __future__ import annotations

import re

import numpy as np

from structrank._kernels import click_logs as kernels
from structrank.clicks.ids import TextIds
from structrank.clicks.log import MOST_EXAMPLES, LogReport, assemble, starts_of

_EXPECTED = {
    kernels.NO_QUERY: "a query",
    kernels.NO_URLS: "three fields separated by tabs: query, urls, clicked positions",
    kernels.BAD_POSITION: "a clicked position: an integer, from 0",
    kernels.TOO_MANY_FIELDS: "the end of the line",
    kernels.BAD_TIME: "a time: an integer, after the session",
    kernels.BAD_ACTION: "Q (a query) or C (a click), after session and time",
    kernels.NO_CLICKED_URL: "the url that was clicked",
    kernels.NO_REGION: "a region after the query, and then urls",
}


_TYPES = {name: np.int32 if name in ("query", "shown") else np.int64 for name in kernels.Lines._fields}


class _TextLines:
    """What the readers of lines share: ids, buffers, columns that wait to be taken, the count of malformed lines.

    Parameters
    ----------
    malformed : {"skip", "error"}
    """

    def __init__(self, malformed):
        self._malformed = malformed
        self._queries, self._urls = TextIds(), TextIds()
        self._report, self._lines = LogReport(), None
        self._clear()

    def _clear(self):
        self._waiting = {name: [np.empty(0, dtype)] for name, dtype in _TYPES.items()}

    def __len__(self):
        return sum(map(len, self._waiting["query"]))

    def add(self, path, block):
        """Read a block of lines."""
        lines = self._buffers(block.size)
        text = np.frombuffer(block.text, dtype=np.uint8)
        queries, urls = self._queries.room(block.size), self._urls.room(block.size)
        n_wrong = self._read(text, block.size, queries, urls, lines)
        if n_wrong:
            few = min(n_wrong, MOST_EXAMPLES)
            wrong = zip(lines.wrong[:few].tolist(), lines.wrong_at[:few].tolist(), strict=True)
            messages = tuple(_worded(path, block, kind, at) for kind, at in wrong)
            if self._malformed == "error":
                raise ValueError(messages[0])
            self._report += LogReport(malformed=n_wrong, examples=messages)

    def _buffers(self, n_bytes):
        """Give buffers that no text of `n_bytes` can overfill; what stays unused costs no memory."""
        size = n_bytes // 2 + 1
        if self._lines is None or self._lines.query.shape[0] < size:
            self._lines = kernels.Lines(*(np.empty(size, _TYPES[name]) for name in kernels.Lines._fields))
        return self._lines

    def _keep(self, columns):
        for name, values in columns.items():
            self._waiting[name].append(values.copy())

    def _take_columns(self):
        columns = {name: np.concatenate(arrays) for name, arrays in self._waiting.items()}
        self._clear()
        return columns

    def _take_report(self):
        report, self._report = self._report, LogReport()
        return report


def _worded(path, block, kind, at):
    """Say what is wrong at a byte of a block."""
    found = re.match(rb"[^\t\r\n]*", memoryview(block.text)[at : at + 200])[0].decode("utf-8", "backslashreplace")
    found = repr(found if len(found) <= 40 else f"{found[:40]}...") if found else "the end of the line"
    return f"{path}:{block.line_of(at)}: found {found}, expected {_EXPECTED[kind]}."


class TsvLines(_TextLines):
    """Lines ``query TAB urls TAB positions``."""

    def _read(self, text, size, queries, urls, lines):
        n, n_shown, n_clicks, n_wrong = kernels.read_tsv(text, size, queries, urls, lines)
        ends = {"query": n, "size": n, "shown": n_shown, "n_clicks": n, "clicks": n_clicks}
        self._keep({name: getattr(lines, name)[:end] for name, end in ends.items()})
        return n_wrong

    def take(self):
        """Give what was read since the last time as a log."""
        its = self._take_columns()
        return assemble(
            self._queries,
            self._urls,
            its["query"],
            starts_of(its["size"]),
            its["shown"],
            starts_of(its["n_clicks"]),
            its["clicks"],
            self._take_report(),
        )

    take_rest = take


class YandexLines(_TextLines):
    """Lines ``session time Q query region urls`` and ``session time C url``."""

    def __init__(self, malformed):
        super().__init__(malformed)
        self._session = np.zeros(2, dtype=np.uint64)

    def add(self, path, block):
        """Read a block of lines."""
        if block.first_line == 1:
            self._session[1] ^= np.uint64(1)  # no session goes on from the file before
        super().add(path, block)

    def _read(self, text, size, queries, urls, lines):
        *filled, n_wrong = kernels.read_yandex(text, size, queries, urls, lines, self._session)
        ends = self._ends(*filled)
        self._keep({name: getattr(lines, name)[:end] for name, end in ends.items()})
        return n_wrong

    @staticmethod
    def _ends(n, n_shown, n_clicks):
        """Give how much of each column belongs to the first `n` query lines, which show `n_shown`, and `n_clicks` clicks."""
        of_queries, of_clicks = ("query", "size", "run", "time"), ("clicks", "click_run", "click_time")
        return {**dict.fromkeys(of_queries, n), "shown": n_shown, **dict.fromkeys(of_clicks, n_clicks)}

    def take(self):
        """Give the sessions that are complete as a log; lines of the last one may still come."""
        return self._take(before=int(self._session[0]))

    def take_rest(self):
        """Give all that is left as a log."""
        return self._take(before=int(self._session[0]) + 1)

    def _take(self, before):
        its = self._take_columns()
        n, n_clicks = np.searchsorted(its["run"], before), np.searchsorted(its["click_run"], before)
        indptr = starts_of(its["size"][:n])
        ends = self._ends(n, indptr[-1], n_clicks)
        self._keep({name: its[name][end:] for name, end in ends.items()})
        its = {name: its[name][:end] for name, end in ends.items()}
        click_indptr, clicks, not_shown, without_query = kernels.attach_clicks(
            its["run"], its["time"], indptr, its["shown"], its["click_run"], its["click_time"], its["clicks"]
        )
        report = self._take_report() + LogReport(not_shown=not_shown, without_query=without_query)
        return assemble(self._queries, self._urls, its["query"], indptr, its["shown"], click_indptr, clicks, report)
