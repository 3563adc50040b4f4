"""Output of the commands: results on stdout, messages on stderr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import textwrap


def say(who, text):
    """Print a message on stderr, in one line."""
    print(f"{who}: {' '.join(text.split())}", file=sys.stderr, flush=True)


def keep_stdout_for_results():
    """Redirect to stderr what other code prints on stdout, such as worker processes."""
    if sys.stdout is not None:
        results = os.dup(sys.stdout.fileno())
        os.dup2(2, sys.stdout.fileno())
        sys.stdout = open(results, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115


def abandon_stdout():
    """Discard buffered output that could not be written, so that Python does not retry when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout_to_stderr():
    """Return a context in which prints go to stderr, as OSQP prints when it is interrupted."""
    return contextlib.redirect_stdout(sys.stderr)


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


def print_lines(lines):
    """Print pairs of a name and a value, one per line, long values wrapped."""
    wrapper = textwrap.TextWrapper(110, subsequent_indent=" " * 14, break_on_hyphens=False, break_long_words=False)
    for name, value in lines:
        print(wrapper.fill(f"{name:<14}{value}"))
