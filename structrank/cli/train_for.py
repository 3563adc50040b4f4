"""Train for an evaluation measure: choose criterion, bound and C on validation queries, and save the model.

structrank train-for map train.txt -o map.structrank
structrank train-for ndcg@10 train.txt --validation vali.txt --gain exp2 --discount log2 -o ndcg.structrank
structrank train-for err@10 train.txt --validation vali.txt -o err.structrank
structrank train-for map clicks.csv --label relevance --qid query -o map.structrank
"""

from __future__ import annotations

from structrank._support.files import check_writable
from structrank.cli.descriptions import model_facts
from structrank.cli.input import check_exists, check_not_read, read_parts
from structrank.cli.options import (
    POSITIVE,
    add_measure_settings,
    add_relevant_from,
    add_training,
    given,
    parse_measures,
    preparation_of,
)
from structrank.cli.output import print_json, print_lines, save_trained, stdout_to_stderr


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("measure", metavar="MEASURE", help="auc, map, mrr@k, ndcg@k, err@k, or one that --import registers")
    add_training(parser, "queries to choose on; if there are fewer than 1,000, inner folds of the training queries are added")
    parser.add_argument(
        *("-C", "--Cs"), nargs="+", type=POSITIVE, metavar="C", help="values of C to choose from (default: 0.01 to 100)"
    )
    add_measure_settings(parser)
    add_relevant_from(parser)


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    check_writable(arguments.output)
    check_not_read(arguments.output, [arguments.data, arguments.validation])

    from structrank import train_for

    (measure,) = parse_measures(arguments, arguments.measure)
    check_exists(arguments.data, arguments.validation)
    train, validation = read_parts(arguments, arguments.data, arguments.validation)
    settings = {**given(arguments, "discount", "relevant_from", "Cs", "scale"), "preparation": preparation_of(arguments)}
    with stdout_to_stderr():
        model = train_for(measure, train, validation, checkpoint=arguments.checkpoint, verbose=1, **settings)
    save_trained(model, arguments.output)
    selection, polished = model.selection_, getattr(model, "polish_", None)
    facts = model_facts(model)
    if arguments.json:
        trials = [vars(trial) for trial in selection.trials]
        chosen = {**vars(selection), "trials": trials, "reason": selection.reason}
        print_json({"model": arguments.output, "selection": chosen, **facts})
        return
    print(selection, end="\n\n")
    lines = [("model", arguments.output)]
    if polished is not None:
        lines.append(("polished", repr(polished)))
    print_lines(lines + [("note", text) for text in facts["notes"]])
