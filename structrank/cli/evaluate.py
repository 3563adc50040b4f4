"""Measure a ranking.

structrank evaluate test.txt map.structrank
structrank evaluate test.txt run.txt --measures ndcg@5 map p@10 --gain linear
structrank evaluate test.txt scores.tsv --measures map --per-query
"""

from __future__ import annotations

from structrank.cli.input import check_exists, load_ranker, model_first, read_data
from structrank.cli.options import DISCOUNTS, GAINS, MEASURES, add_relevant_from, given
from structrank.cli.output import print_json


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("data", metavar="DATA", help="file in LETOR format, or a table, for the labels")
    parser.add_argument(
        "ranking", metavar="RANKING", help="a model, a TREC run, a table written by predict, or one score per line"
    )
    parser.add_argument(
        "--measures",
        nargs="+",
        default=MEASURES,
        metavar="MEASURE",
        help="auc, map, mrr@k, ndcg@k, p@k, cndcg@k, pair_accuracy, err@k, dcg@k, rbp, recall@k, success@k, rprec, bpref, "
        "settings of one measure in parentheses, as in 'rbp(p=0.95)', or one that --import registers "
        f"(default: {' '.join(MEASURES)})",
    )
    parser.add_argument("--gain", choices=GAINS, help="gain of ndcg and dcg (default exp2)")
    parser.add_argument("--discount", choices=DISCOUNTS, help="discount of ndcg, dcg and cndcg (default log2)")
    add_relevant_from(parser)
    parser.add_argument(
        "--ties", choices=["average", "stable"], help="equal scores: average over all orders (default), or stable in row order"
    )
    parser.add_argument(
        "--empty",
        type=float,
        metavar="VALUE",
        help="value of a query where a measure is undefined (default: skip the query in the mean)",
    )
    parser.add_argument(
        "--per-query", action="store_true", default=False, help="print a line for each query; nan where undefined"
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    from structrank import metrics
    from structrank.comparison import runs
    from structrank.models import files

    check_exists(arguments.data, arguments.ranking)
    arguments.ranking, arguments.data = model_first(arguments.ranking, arguments.data)
    settings = given(arguments, "gain", "discount", "relevant_from")
    measures = [metrics.parse(measure, **settings) for measure in arguments.measures]
    if files.is_model_file(arguments.ranking):
        model = load_ranker(arguments.ranking)
        data = read_data(arguments, arguments.data, ranker=(arguments.ranking, model))
        scores = metrics.predict(model, data.X, data.qid)
    else:
        data = read_data(arguments, arguments.data, features=False)
        scores = runs.read_scores(arguments.ranking, data, arguments.data)
    conventions = given(arguments, "ties", "empty")
    means = metrics.evaluate(data.y, scores, data.qid, measures, **conventions)
    each = metrics.evaluate(data.y, scores, data.qid, measures, per_query=True, **conventions) if arguments.per_query else None
    if arguments.json:
        facts = {"queries": means.n_queries, "measures": {}}
        for name, measure in means.measures.items():
            facts["measures"][name] = {"mean": means[name], "undefined": means.undefined[name], "settings": measure.settings}
            if each:
                values = zip(map(str, each.query_ids.tolist()), each[name].tolist(), strict=True)
                facts["measures"][name]["per_query"] = dict(values)
        print_json(facts)
    elif each:
        print("qid", *means, sep="\t")
        for qid, *values in zip(each.query_ids.tolist(), *each.values(), strict=True):
            print(qid, *(f"{value:.6f}" for value in values), sep="\t")
        print("mean", *(f"{value:.6f}" for value in means.values()), sep="\t")
        print("undefined", *means.undefined.values(), sep="\t")
    else:
        print("measure", "mean", "queries", "undefined", "settings", sep="\t")
        for name, measure in means.measures.items():
            numbers = f"{means[name]:.6f}", means.n_queries, means.undefined[name]
            print(name, *numbers, measure.settings or "-", sep="\t")
