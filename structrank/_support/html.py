"""HTML: pages that need no other file and no network, tables, lists."""

import base64
import hashlib
import importlib.resources
from html import escape

from structrank._support.files import replace_file
from structrank._support.text import printable_output

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="StructRank">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def write_page(path, what, title, body, style="", script=""):
    """Write a page, called `what` in errors, from HTML; a browser may load only its own style, script and images."""
    style = resource("page.css") + style
    policy = f"default-src 'none'; img-src data:; style-src '{_sha256(style)}'; base-uri 'none'"
    if script:
        policy += f"; script-src '{_sha256(script)}'"
        body += f"\n<script>{script}</script>"
    page = _PAGE.format(policy=policy, title=escape(title), style=style, body=body)
    # Names may contain control characters, and halves of surrogate pairs (undecodable bytes), which UTF-8 cannot encode.
    replace_file(path, printable_output(page).encode(), what)


def resource(name, package="structrank._support"):
    """Return the text of a file of a package."""
    return importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _sha256(text):
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def table(heads, body, attributes="", caption=""):
    """Return a table from rows, each a list of cells in HTML or a whole row; attributes as in HTML."""

    def joined(rows):
        return "".join(row if isinstance(row, str) else f"<tr>{''.join(row)}</tr>" for row in rows)

    caption = caption and f"<caption>{escape(caption)}</caption>"
    return f"<table{attributes}>{caption}<thead>{joined(heads)}</thead><tbody>{joined(body)}</tbody></table>"


def items(texts):
    """Return a list of texts."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def pairs(texts):
    """Return a list of names and texts, from a dict."""
    inside = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text or 'none')}</dd></div>" for name, text in texts.items())
    return f'<dl class="pairs">{inside}</dl>'


def scroll(label, inside):
    """Put wide content into a box that scrolls, so that the page does not."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">{inside}</div>'
