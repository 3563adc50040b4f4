"""Text from files and users, made safe to print."""

from __future__ import annotations

import re

# Control characters, and marks that reverse the direction of text; newlines and tabs are harmless.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text):
    r"""Return text in which characters that a terminal would obey are shown as escapes.

    Examples
    --------
    >>> printable("\x1b[2J\tdocument")
    '\\x1b[2J\tdocument'
    """
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def as_csv_text(value):
    """Return a text for a cell of CSV: spreadsheets run cells that begin with =, +, - or @, and show them after an apostrophe.

    Examples
    --------
    >>> as_csv_text("=1+1"), as_csv_text("map")
    ("'=1+1", 'map')
    """
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
