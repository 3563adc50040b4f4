"""The self-contained HTML report of a criterion table.

`contents` collects the data, `page` renders HTML, and ``report.html`` and ``report.js`` are shared by all reports.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from structrank._support import html


def write_report(table: Any, path: str | os.PathLike[str]) -> None:
    """Write the report of a `CriterionTable`, see `CriterionTable.to_report`."""
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
