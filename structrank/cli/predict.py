"""Score and rank documents with a model.

structrank predict map.structrank test.txt > scores.tsv
structrank predict map.structrank test.txt --format trec > run.txt
structrank predict map.structrank documents.csv --qid query --docid url > scores.tsv
"""

from __future__ import annotations

import sys

from structrank.cli.input import read_model_and_data
from structrank.cli.output import print_json


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file written by train")
    parser.add_argument("data", metavar="DATA", help="file in LETOR format, or a table; labels are ignored")
    parser.add_argument(
        "--format",
        choices=["tsv", "trec"],
        default="tsv",
        help="qid, docid, score, rank in the order of the data (default), or a TREC run by rank",
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    from structrank import metrics
    from structrank.comparison import runs
    from structrank.datasets.queries import group_by_query
    from structrank.datasets.tables import is_table
    from structrank.models.ranker import ranks_within

    if arguments.json and arguments.format == "trec":
        raise ValueError("--json and --format trec are two formats; choose one.")
    model, data = read_model_and_data(arguments)
    names, numbered = runs.document_names(data)
    if numbered:
        lacking = f"{arguments.data} has no document ids that are unique within a query and without blanks"
        named = "; --docid names their column" if is_table(arguments.data) and not hasattr(arguments, "docid") else ""
        report(f"note: {lacking}{named}; rows are numbered from 1")
    scores = metrics.predict(model, data.X, data.qid)
    if arguments.format == "trec":
        tied = runs.count_ties(data.qid, scores)
        if tied:
            report(
                f"note: {tied} of {len(scores)} scores equal another of their query as 32-bit numbers, which is how trec_eval "
                "reads them; it ranks tied documents by document id, while structrank evaluate averages over ties"
            )
        queries = runs.query_names(data)
        if queries != list(map(str, data.qid.tolist())):
            report(f"note: {arguments.data} has query ids with blanks, which a run cannot hold; queries are numbered from 1")
        return sys.stdout.writelines(runs.run_lines(queries, names, scores))
    ranks = ranks_within(scores, group_by_query(data.qid, len(scores)))
    rows = zip(data.qid.tolist(), names, scores.tolist(), ranks.tolist(), strict=True)
    if arguments.json:
        return print_json([dict(zip(("qid", "docid", "score", "rank"), row, strict=True)) for row in rows])
    print("qid\tdocid\tscore\trank")
    sys.stdout.writelines(f"{qid}\t{docid}\t{score!r}\t{rank}\n" for qid, docid, score, rank in rows)
