"""Progress on stderr, by tqdm: rewritten in place on a terminal, a widget in a notebook, occasional lines elsewhere."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import warnings

from structrank._support.text import printable

_LOG = logging.getLogger(__name__)


class ProgressLine:
    """Show a changing line of text at most ten times a second (every ten seconds if stderr is not a terminal).

    The last text is always shown.
    """

    def __init__(self):
        self._bar = None
        # Imported here: reading numba takes as long as many commands.
        from structrank._support import compile_time

        compile_time.show_on(self)

    def update(self, text):
        """Show the text, unless another text was shown just before."""
        self._set(text)
        self._bar.update()

    def announce(self, text):
        """Show the text at once, whatever was shown just before."""
        self._set(text)
        self._bar.refresh()

    def finish(self, text):
        """Show the last text and end the line; a later text begins another."""
        self._set(text)
        self._bar.ncols = None  # do not trim the text to the width of the terminal
        self._bar.close()
        self._bar = None

    def _set(self, text):
        text = printable(text)
        if self._bar is None:
            self._bar = _open_bar(desc=text if _is_live() else "", bar_format="{desc}")
        self._bar.set_description_str(text, refresh=False)


class Reporter:
    """Report training: show and log the entries of its history, and pass them to the user's callback.

    Parameters
    ----------
    text : callable
        Returns the text of an entry.
    line : ProgressLine or None
        None shows nothing.
    callback : callable or None
        Called with each entry; a true return value stops training.

    Examples
    --------
    >>> report = Reporter(str, line=None, callback=lambda entry: entry == 2)
    >>> report(1), report(2)
    (False, True)
    """

    def __init__(self, text, line, callback):
        if callback is not None and not callable(callback):
            raise ValueError(f"callback={callback!r} is not valid: expected a function of one entry of history_, or None.")
        self._text, self._line, self._callback = text, line, callback

    def __call__(self, entry):
        """Report the next entry; return whether the callback requests to stop."""
        if self._line is not None:
            self._line.update(self._text(entry))
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s", self._text(entry))
        return self._callback is not None and bool(self._callback(entry))

    def finish(self, entry, reason):
        """Report the last entry and the reason for stopping."""
        text = f"{self._text(entry)}  {reason}"
        _LOG.info("%s", text)
        if self._line is not None:
            self._line.finish(text)


@contextlib.contextmanager
def bytes_progress(title, total, shown):
    """Yield a function that shows on a bar how many of `total` bytes are done; it does nothing unless `shown`."""
    if not shown:
        yield lambda done: None
        return
    with _open_bar(desc=printable(title), total=total, unit="B", unit_scale=True) as bar:
        yield lambda done: bar.update(done - bar.n)


def _open_bar(**options):
    live = _is_live()
    stream = sys.stderr if live else _Lines(sys.stderr)
    bar = _bar_class()(file=stream, mininterval=0.1 if live else 10.0, miniters=1, position=0, **options)
    for name in ("ncols", "nrows"):
        # Pseudo-terminals may have the size 0 x 0, on which tqdm shows nothing; None is unlimited.
        size = getattr(bar, name, None)
        if isinstance(size, int) and size <= 0:
            setattr(bar, name, None)
    return bar


def _is_live():
    """Return whether the output can be rewritten: on a terminal or in a notebook."""
    return sys.stderr.isatty() or any(base.__module__ == "tqdm.notebook" for base in _bar_class().__mro__)


@functools.cache
def _bar_class():
    # Imported when progress is first shown. Notebooks without ipywidgets get text; tqdm's warning about it is suppressed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    class Bar(tqdm):
        monitor_interval = 0  # no thread: it would only adapt miniters, which is fixed

        def __del__(self):
            """Do nothing: tqdm would repeat an unfinished line below the traceback of an error."""

    return Bar


class _Lines:
    """A stream that turns the carriage returns of tqdm into lines."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        text = text.strip()
        if text:
            self._stream.write(f"{text}\n")

    def flush(self):
        self._stream.flush()
