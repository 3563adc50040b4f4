"""Reader of click logs in data frames in long format."""

from __future__ import annotations

from typing import Any

import numpy as np

from structrank._support import checks
from structrank.clicks.ids import GrowingIds
from structrank.clicks.log import ClickLog, LogStream, assemble, starts_of
from structrank.clicks.report import MALFORMED, MAX_EXAMPLES, LogReport


def read_frame(
    frame: Any,
    *,
    session: str = "session",
    query: str = "query",
    url: str = "url",
    position: str = "position",
    clicked: str = "clicked",
    time: str | None = None,
    malformed: str = "skip",
) -> ClickLog:
    """Read a log from a data frame in long format, with one row per url shown.

    Parameters
    ----------
    frame : pandas.DataFrame or an object with similar columns
        Rows in any order. Rows with the same session and query form one list.
    session, query, url : str
        Names of the columns with the ids, which may be of any hashable type.
    position : str
        Name of the numeric column that orders a list. Rows with equal positions keep their order.
    clicked : str
        Name of the column with clicks: bool, or numbers, where a number above 0 is a click.
    time : str, default None
        Name of the column with the time of the click, of any sortable type; None orders clicks from top to bottom.
    malformed : {"skip", "error"}, default "skip"
        How to treat a row with a missing value: skip it, count it and warn, or raise.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {
    ...         "session": [1, 1, 1, 2],
    ...         "query": ["news", "news", "news", "weather"],
    ...         "url": ["b.org", "a.org", "c.org", "a.org"],
    ...         "position": [2, 1, 3, 1],
    ...         "clicked": [0, 0, 1, 1],
    ...     }
    ... )
    >>> list(read_frame(frame))
    [('news', ['a.org', 'b.org', 'c.org'], [2]), ('weather', ['a.org'], [0])]
    """
    import pandas as pd

    checks.check_choice("malformed", malformed, MALFORMED)
    names = {"session": session, "query": query, "url": url, "position": position, "clicked": clicked}
    if time is not None:
        names["time"] = time
    if not hasattr(frame, "columns"):
        raise ValueError(f"frame is a {type(frame).__name__}; expected a data frame with one row per url shown.")
    for name, column in names.items():
        found = list(frame.columns).count(column)
        if found != 1:
            raise ValueError(
                f"frame has {found or 'no'} column{'s' if found else ''} {column!r}; it has "
                f"{', '.join(map(repr, frame.columns))}. Name the column with {name}=."
            )
    columns = {name: frame[column].to_numpy() for name, column in names.items()}
    missing = np.zeros(len(frame), dtype=bool)
    for name, values in columns.items():
        if name in ("position", "clicked"):
            missing |= pd.isna(values)
        elif name != "time":
            missing |= checks.missing_ids(values, f"column {names[name]!r}")
    report = _missing_rows(columns, missing, malformed)
    columns = {name: values[~missing] for name, values in columns.items()}
    for name in ("position", "clicked"):
        columns[name] = checks.as_number_column(columns[name], (~missing).sum(), names[name], "numbers", "frame")

    queries, query_numbers = _factorised(columns["query"])
    urls, shown = _factorised(columns["url"])
    _, session_numbers = _factorised(columns["session"])
    lists = pd.factorize(session_numbers * len(queries) + query_numbers)[0]
    order = np.lexsort((columns["position"], lists))
    sizes = np.bincount(lists)
    indptr = starts_of(sizes)
    place = np.empty(order.shape[0], dtype=np.int64)
    place[order] = np.arange(order.shape[0]) - np.repeat(indptr[:-1], sizes)

    rows = np.flatnonzero(columns["clicked"] > 0)
    when = place[rows] if time is None else pd.factorize(columns["time"][rows], sort=True, use_na_sentinel=False)[0]
    rows = rows[np.lexsort((place[rows], when, lists[rows]))]
    n_clicks = np.bincount(lists[rows], minlength=sizes.shape[0])
    query_of_list = query_numbers[order[indptr[:-1]]]
    log = assemble(queries, urls, query_of_list, sizes, shown[order], n_clicks, place[rows], report)
    return ClickLog.gather(LogStream(iter([log]), "frame"))


def _missing_rows(columns, missing, malformed):
    """Return a report of the rows with missing values, or raise."""
    rows = np.flatnonzero(missing)
    examples = tuple(
        f"row {row}: found no {next(name for name, values in columns.items() if checks.is_missing(values[row]))}, expected one."
        for row in rows[:MAX_EXAMPLES].tolist()
    )
    if rows.size and malformed == "error":
        raise ValueError(f"frame, {examples[0]}")
    return LogReport(malformed=rows.size, examples=examples)


def _factorised(values):
    """Return the `Ids` of a column, and the dense integer of each row."""
    import pandas as pd

    numbers, distinct = pd.factorize(values)
    growing = GrowingIds()
    growing.add(distinct.tolist())
    ids, places = growing.settle()
    return ids, numbers if places is None else places[numbers]
