"""The self-contained HTML report of a criterion table.

`contents` collects the data, `page` renders HTML, and ``report.html`` and ``report.js`` are shared by all reports.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from structrank._support import html

__all__ = ["write_report"]


def write_report(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a criterion table as one HTML file that needs no network, no other file and no server.

    The page has the table with its marks (sortable), figures, for any two trainers the queries that gained or lost most
    with both rankings side by side, and a summary of data, settings and versions. For large comparisons it is limited to the
    first 50 documents of a ranking and to the queries on which trainers differ most, and says so.

    Parameters
    ----------
    table : CriterionTable
    path : path-like
        File to write, replaced atomically if it exists. Its folder must exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structrank import compare, datasets
    >>> fold = datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, noise=0.5, random_state=0)
    >>> table = compare({"made": fold}, trainers=["AUC", "MAP"], measures="map", Cs=[1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(table, f"{folder}/report.html")
    ...     pathlib.Path(folder, "report.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    from structrank.comparison.report.contents import gather
    from structrank.comparison.report.page import render

    path = _check_path(path)
    title = f"StructRank report: {', '.join(table.datasets)}"
    body = render(gather(table))
    html.write_page(path, "the report", title, body, script=html.resource("report.js", __name__))


def _check_path(path):
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"path={str(path)!r} is a folder; expected the name of a file, such as 'report.html'.")
    if not path.parent.is_dir():
        raise ValueError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}; make it first.")
    return path
