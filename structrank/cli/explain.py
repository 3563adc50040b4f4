"""Show how the features add up to the scores of a query's documents.

structrank explain map.structrank test.txt --query 17
structrank explain map.structrank test.txt --query 17 --pair GX012 GX345
"""

from __future__ import annotations

from structrank._support.text import printable, printable_output
from structrank.cli.input import read_model_and_data
from structrank.cli.options import COUNT
from structrank.cli.output import print_json


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="file of a linear model")
    parser.add_argument("data", metavar="DATA", help="file in LETOR format, or a table; labels are ignored")
    parser.add_argument("--query", required=True, metavar="ID", help="query whose documents are explained")
    parser.add_argument(
        "--pair",
        nargs=2,
        default=None,
        metavar="DOCUMENT",
        help="two documents to compare, by their ids, or by their rows within the query from 1 if there are no ids",
    )
    parser.add_argument("--top", type=COUNT, default=5, metavar="N", help="features to show (default 5)")


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    import numpy as np
    from sklearn.utils import _safe_indexing

    from structrank.comparison import runs
    from structrank.models.explanation import explain

    model, data = read_model_and_data(arguments)
    ids = data.qid.astype(str)
    rows = np.flatnonzero(ids == arguments.query)
    if not rows.size:
        known = list(dict.fromkeys(ids.tolist()))
        shown = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
        raise ValueError(f"{arguments.data} has no query {arguments.query!r} (--query); it has {shown}.")
    names, numbered = runs.document_names(data)
    names = [str(place) if numbered else names[row] for place, row in enumerate(rows, 1)]
    try:
        explanation = explain(model, _safe_indexing(data.X, rows))
    except ValueError as error:
        raise ValueError(f"{arguments.model}: {error}") from None
    if arguments.pair is None:
        frame = explanation.to_frame()
        frame.index = [names[row] for row in frame.index]
        leading = [2 + explanation.names.index(name) for name in explanation.largest(arguments.top)]
        # A feature may be called as one of the other columns.
        frame.columns = ["rank", "score", *(_apart("feature", name, "document", "rank", "score") for name in explanation.names)]
        _show(arguments, frame.iloc[:, [0, 1, *leading]].rename_axis("document"))
        others = len(explanation.names) - len(leading)
        if others > 0:
            report(f"note: {others} more features; --top {len(explanation.names)} shows all")
        return
    for name in arguments.pair:
        if name not in names:
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"query {arguments.query} has no document {name!r} (--pair); it has {shown}.")
    pair = explanation.pair(*(names.index(name) for name in arguments.pair))
    relation = "above" if pair.difference >= 0 else "below"
    if not arguments.json:
        print(f"{arguments.pair[0]} is {relation} {arguments.pair[1]} by {abs(pair.difference):.6g}")
    frame = pair.to_frame().head(arguments.top)
    documents = [_apart("document", name, "feature", "contribution") for name in arguments.pair]
    _show(arguments, frame.rename(columns=dict(zip(("above", "below"), documents, strict=True))))


def _apart(kind, name, *columns):
    return f"{kind} {name}" if name in columns else name


def _show(arguments, frame):
    if arguments.json:
        print_json(frame.reset_index().to_dict("records"))
    else:
        frame = frame.reset_index().rename(columns=printable)
        print(printable_output(frame.to_string(index=False, float_format="{:.6g}".format)))
