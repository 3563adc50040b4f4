"""Results of exhibits as one HTML page that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import io
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from structrank._support.files import replace_file
from structrank.papers.exhibit import number_formats
from structrank.plots import pyplot

if TYPE_CHECKING:
    from structrank._support.typing import Path
    from structrank.papers.exhibit import Result

__all__ = ["write_page"]

_DOTS_PER_INCH = 110
# Panels side by side scroll on a phone, where they would be too small to read.
_STYLE = """
img { display: block; max-width: 100%; height: auto; }
.dataframe td, .dataframe thead th { text-align: right; font-variant-numeric: tabular-nums; }
.dataframe thead th:first-child { text-align: left; }
@media screen { .scroll > img { min-width: 44rem; } }
"""
_WIDE = 8.0  # inches


def write_page(results: Iterable[Result], path: Path, left_out: Iterable[str] = ()) -> None:
    """Write results to an HTML file.

    Parameters
    ----------
    results : iterable of Result
        As returned by exhibits, in the order of the page.
    path : path-like
        File to write.
    left_out : iterable of str, default ()
        Sentences on exhibits that could not be computed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structrank import papers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page([papers.kdd08.figure3()], f"{folder}/papers.html")
    ...     pathlib.Path(folder, "papers.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    results = list(results)
    style = importlib.resources.files("structrank.comparison.report").joinpath("report.css").read_text(encoding="utf-8")
    style += _STYLE
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    links = "\n".join(f'<a href="#{_anchor(result)}">{escape(_heading(result))}</a>' for result in results)
    missing = "".join(f"<p>{escape(text)}</p>" for text in left_out)
    sections = "\n".join(_section(result) for result in results)
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="StructRank">
<title>StructRank: the papers</title>
<style>{style}</style>
</head>
<body>
<header>
<p class="quiet">StructRank</p>
<h1>Tables and figures of the papers</h1>
<p>Computed here, beside the printed numbers where the data are the paper's.</p>
{missing}
<nav aria-label="Exhibits">
{links}
</nav>
</header>
<main>
{sections}
</main>
</body>
</html>
"""
    replace_file(path, page.encode("utf-8", "xmlcharrefreplace"), "the page")


def _anchor(result):
    return f"{result.exhibit.paper}-{result.exhibit.name}"


def _heading(result):
    return f"{result.exhibit.paper} {result.exhibit.title.partition(':')[0]}"


def _section(result):
    title = escape(f"{result.exhibit.paper}, {result.exhibit.title}")
    pairs = "".join(f"<div><dt>{escape(heading)}</dt><dd>{escape(text)}</dd></div>" for heading, text in result.texts().items())
    tables = "".join(
        f'<h3>{escape(heading)}</h3><div class="scroll" role="region" tabindex="0" aria-label="{escape(heading)}">'
        f"{_table(frame)}</div>"
        for heading, frame in result.excerpts().items()
    )
    parts = f'<h2>{title}</h2><dl class="pairs">{pairs}</dl>{_figure(result, title)}{tables}'
    return f'<section id="{_anchor(result)}">{parts}</section>'


def _table(frame):
    # Pandas aligns heads by inline styles, which the policy of the page forbids.
    page = frame.to_html(formatters=number_formats(frame), na_rep="", border=0)
    return page.replace(' style="text-align: right;"', "")


def _figure(result, title):
    figure, file = result.plot().figure_, io.BytesIO()
    figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    pyplot().close(figure)
    image = f'<img alt="{title}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
    if figure.get_figwidth() > _WIDE:
        image = f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">{image}</div>'
    return f"<figure>{image}</figure>"
