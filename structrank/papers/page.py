"""Results of exhibits as one HTML page that needs no other file."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from structrank._support import html
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
    links = "\n".join(f'<a href="#{_anchor(result)}">{escape(_heading(result))}</a>' for result in results)
    body = f"""<header>
<p class="quiet">StructRank</p>
<h1>Tables and figures of the papers</h1>
<p>Computed here, beside the printed numbers where the data are the paper's.</p>
{"".join(f"<p>{escape(text)}</p>" for text in left_out)}
<nav aria-label="Exhibits">
{links}
</nav>
</header>
<main>
{chr(10).join(map(_section, results))}
</main>"""
    html.write_page(path, "the page", "StructRank: the papers", body, _STYLE)


def _anchor(result):
    return f"{result.exhibit.paper}-{result.exhibit.name}"


def _heading(result):
    return f"{result.exhibit.paper} {result.exhibit.title.partition(':')[0]}"


def _section(result):
    title = f"{result.exhibit.paper}, {result.exhibit.title}"
    tables = "".join(
        f"<h3>{escape(heading)}</h3>{html.scroll(heading, _table(frame))}" for heading, frame in result.excerpts().items()
    )
    parts = f"<h2>{escape(title)}</h2>{html.pairs(result.texts())}{_figure(result, title)}{tables}"
    return f'<section id="{_anchor(result)}">{parts}</section>'


def _table(frame):
    # Pandas aligns heads by inline styles, which the policy of the page forbids.
    page = frame.to_html(formatters=number_formats(frame), na_rep="", border=0)
    return page.replace(' style="text-align: right;"', "")


def _figure(result, title):
    figure, file = result.plot().figure_, io.BytesIO()
    figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    pyplot().close(figure)
    image = f'<img alt="{escape(title)}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
    if figure.get_figwidth() > _WIDE:
        image = html.scroll(title, image)
    return f"<figure>{image}</figure>"
