"""Output of the commands: results on stdout, messages on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
import tempfile
import textwrap
import warnings

from structrank._support.text import printable, printable_output


def say(who, text):
    """Print a message on stderr, in one line."""
    print(printable(f"{who}: {' '.join(text.split())}"), file=sys.stderr, flush=True)


def keep_stdout_for_results():
    """Redirect to stderr what other code prints on stdout, such as worker processes.

    Results in files and pipes are UTF-8, as all commands read it; on Windows, Python's default there cannot write all ids.
    """
    if sys.stdout is not None:
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        results = os.dup(sys.stdout.fileno())
        os.dup2(2, sys.stdout.fileno())
        sys.stdout = open(results, "w", encoding=encoding, errors=sys.stdout.errors)  # noqa: SIM115


def abandon_stdout():
    """Discard buffered output that could not be written, so that Python does not retry when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout_to_stderr():
    """Return a context in which prints go to stderr, as OSQP prints when it is interrupted."""
    return contextlib.redirect_stdout(sys.stderr)


class _Printable:
    """A stream that shows control characters in ids and names as escapes."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        return self._stream.write(printable_output(text))

    def writelines(self, lines):
        self._stream.writelines(map(printable_output, lines))


def printable_results():
    """Return a context in which results are safe to show; in files and pipes they remain as they are, to be read again."""
    if sys.stdout is not None and sys.stdout.isatty():
        return contextlib.redirect_stdout(_Printable(sys.stdout))
    return contextlib.nullcontext()


@contextlib.contextmanager
def reporting_compilation(report):
    """Report on a terminal that functions are compiled, which can take a minute, unless a progress line shows it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    logger, handler = logging.getLogger("structrank"), logging.Handler(logging.INFO)
    handler.emit = lambda record: report(record.getMessage())
    handler.addFilter(lambda record: not getattr(record, "shown", True))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextlib.contextmanager
def collecting_warnings():
    """Yield a set to which the texts of warnings are added when they are shown."""
    texts = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def collect(message, *args, **kwargs):
            texts.add(str(message))
            show(message, *args, **kwargs)

        warnings.showwarning = collect
        yield texts


def save_trained(model, path):
    """Save a model; if that fails, save it in a temporary folder, which the error names: training may have taken hours."""
    try:
        model.save(path)
    except OSError as error:
        rescued = os.path.join(tempfile.mkdtemp(prefix="structrank-"), "model.structrank")
        model.save(rescued)
        raise OSError(error.errno, f"{error.strerror}; the model is in {rescued}", error.filename) from None


def print_json(facts):
    """Print a result as JSON."""
    print(json.dumps(_plain(facts), indent=1, allow_nan=False))


def _plain(value):
    """Convert a value to types of JSON: undefined numbers to null, other objects to their repr."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def print_result(arguments, facts, lines):
    """Print a result: its facts as JSON if --json is given, else its lines."""
    if arguments.json:
        print_json(facts)
    else:
        print_lines(lines)


def print_lines(lines):
    """Print pairs of a name and a value, one per line, long values wrapped."""
    wrapper = textwrap.TextWrapper(110, subsequent_indent=" " * 14, break_on_hyphens=False, break_long_words=False)
    for name, value in lines:
        print(printable_output(wrapper.fill(f"{name:<14}{value}")))
