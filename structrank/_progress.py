"""One line of progress on stderr: rewritten in place on a terminal, now and then elsewhere."""

from __future__ import annotations

import sys
import time


class ProgressLine:
    """Show a changing line of text at most ten times a second (once in ten seconds where stderr is no terminal).

    Parameters
    ----------
    stream : text stream, default None
        stderr, looked up when the line is made.
    """

    def __init__(self, stream=None):
        self._stream = sys.stderr if stream is None else stream
        self._terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._interval = 0.1 if self._terminal else 10.0
        self._shown = time.perf_counter() if not self._terminal else 0.0
        self._width = 0

    def update(self, text):
        """Show the text if it is time to."""
        now = time.perf_counter()
        if now - self._shown >= self._interval:
            self._shown = now
            self._write(text, "" if self._terminal else "\n")

    def finish(self, text):
        """Show the last text, whatever the time."""
        self._write(text, "\n")

    def _write(self, text, end):
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._width) + end)
            self._width = len(text)
        else:
            self._stream.write(text + end)
        self._stream.flush()
