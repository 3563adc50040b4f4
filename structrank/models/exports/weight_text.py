"""Weights as text, ``1:0.5 3:-2.0`` with features from 1, as in the files of SVM^rank and RankLib."""

from __future__ import annotations

import math
import os

from structrank._support.text import printable

_MOST = 10_000_000  # features or support vectors; more would be a mistake, and might not fit into memory


def read_lines(path):
    """Return the lines of a text file without line ends; raise if it is not ASCII text."""
    with open(os.fspath(path), "rb") as file:
        content = file.read()
    try:
        return content.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        path = printable(str(path))
        raise ValueError(f"{path} has byte {content[error.start]:#x} at {error.start}; expected a model as text.") from None


def parse_count(text, where):
    """Parse a count or the number of a feature; `where` is file:line, for errors."""
    count = int(text) if text.isdigit() and len(text) < 10 else -1
    if not 0 <= count <= _MOST:
        raise ValueError(f"{where}: {text[:40]!r} is not valid: expected an integer from 0 to {_MOST}.")
    return count


def parse_number(text, where):
    """Parse a finite number; `where` is file:line, for errors."""
    try:
        number = math.nan if "_" in text else float(text)  # Python accepts underscores, the programs do not
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: {text[:40]!r} is not valid: expected a finite number.")
    return number


def parse_weights(tokens, where):
    """Parse weights; return a dict from feature numbers to weights.

    Examples
    --------
    >>> parse_weights(["1:0.5", "3:-2"], "model.txt:12")
    {1: 0.5, 3: -2.0}
    """
    weights = {}
    for token in tokens:
        feature, colon, weight = token.partition(":")
        if not colon:
            raise ValueError(f"{where}: {token[:40]!r} is not valid: expected feature:weight.")
        number = parse_count(feature, where)
        if number in weights:
            raise ValueError(f"{where}: feature {number} has two weights.")
        weights[number] = parse_number(weight, where)
    return weights


def format_weights(weights):
    """Format weights as text with enough digits to read back the same numbers; `parse_weights` reads it."""
    return " ".join(f"{number}:{weight!r}" for number, weight in enumerate(weights.tolist(), start=1))
