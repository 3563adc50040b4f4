"""Text from files and users, made safe to print."""

from __future__ import annotations

import html
import re

# Control characters, marks that reverse the direction of text, and halves of surrogate pairs, which UTF-8 cannot encode.
_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_OUTPUT, _IN_LINE = re.compile(f"[{_OBEYED}]"), re.compile(f"[{_OBEYED}\t\n]")
# Spreadsheets skip blanks before a formula, and read full-width signs as signs.
_FORMULA = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200b-\u200f\ufeff]*[=+@\uff1d\uff0b\uff20\uff0d-]|[\t\r\n]")


def printable(text):
    r"""Return a name, or a line with names, in which characters that a terminal would obey are shown as escapes.

    Examples
    --------
    >>> printable("\x1b[2J\tdocument"), printable("two\nlines")
    ('\\x1b[2J\\tdocument', 'two\\nlines')
    """
    return _IN_LINE.sub(_escape, text)


def printable_output(text):
    r"""Return output of several lines or columns, with line ends and tabs, as `printable` does a line.

    Examples
    --------
    >>> printable_output("\x1b[2J\tdocument\n")
    '\\x1b[2J\tdocument\n'
    """
    return _IN_OUTPUT.sub(_escape, text)


def _escape(match):
    return match[0].encode("unicode_escape").decode()


def as_html(text):
    r"""Return a name as HTML.

    Examples
    --------
    >>> as_html("\x1b<b>")
    '\\x1b&lt;b&gt;'
    """
    return html.escape(printable(text))


def as_csv_text(value):
    r"""Return a text for a cell of CSV: spreadsheets run cells that begin with =, +, - or @, and show them after an apostrophe.

    Examples
    --------
    >>> as_csv_text("=1+1"), as_csv_text("\n =1+1"), as_csv_text("map")
    ("'=1+1", "'\\n =1+1", 'map')
    """
    return f"'{printable(value)}" if _FORMULA.match(value) else printable(value)
