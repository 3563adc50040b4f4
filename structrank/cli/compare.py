"""Train on each criterion, test on each measure: which criterion to train on for a measure.

structrank compare OHSUMED/ --results runs/ --jobs 2
structrank compare OHSUMED/ --trainers paper --scale query --clean kdd08 --latex figure9.tex
structrank compare ohsumed=data/OHSUMED td2004=data/TD2004 --measures ndcg@5 map --csv table.csv
structrank compare MQ2008/ --trainers auc map "mrr (phi_po)" --Cs 0.1 1 10 --report report.html
structrank compare MQ2008/ --gain exp2 --discount log2 --select ndcg@10
structrank compare MQ2008/ --trees lightgbm xgboost --runs runs/
structrank compare clicks.csv --label relevance --qid query --docid url --report report.html
structrank compare MQ2008/ --import my_criteria --trainers map precision --measures possible_p@5 map
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from structrank._support.files import check_writable
from structrank.cli.input import check_exists, check_not_read, read_data
from structrank.cli.options import (
    MEASURES,
    POSITIVE,
    READING,
    add_clean,
    add_jobs,
    add_measure_settings,
    add_relevant_from,
    given,
    parse_measures,
)
from structrank.cli.output import print_json, stdout_to_stderr

_CONVENTIONS = ("relevant_from", "discount")


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="[NAME=]DATA",
        help="folder with Fold1, Fold2, ..., which hold train, test and perhaps vali files in LETOR format; or one file, LETOR "
        "or table, whose queries are dealt into five folds",
    )
    parser.add_argument(
        "--trainers",
        nargs="+",
        default=None,
        metavar="NAME",
        help="rows; paper: all rows of the KDD 2008 paper (default: these, then ramp bounds and rows trained for a measure)",
    )
    parser.add_argument(
        "--trees",
        nargs="+",
        default=[],
        choices=["lightgbm", "xgboost", "extra-trees"],
        help="additional rows of 100 trees each: boosted (pip install structrank[trees]), or scikit-learn's extremely "
        "randomised trees, a regression to the labels",
    )
    parser.add_argument(
        "--measures", nargs="+", default=MEASURES, metavar="MEASURE", help=f"columns (default: {' '.join(MEASURES)})"
    )
    parser.add_argument(
        *("-C", "--Cs"),
        nargs="+",
        type=POSITIVE,
        default=None,
        metavar="C",
        help="values of C to choose from (default: 0.01 to 100)",
    )
    parser.add_argument(
        "--results", default=None, metavar="FOLDER", help="folder for finished work, so that an interrupted run can resume"
    )
    add_jobs(parser, "processes")
    add_relevant_from(parser)
    add_clean(parser)
    add_measure_settings(parser)
    parser.add_argument(
        "--select", metavar="MEASURE", help="choose C of all rows by this measure (default: by each row's own criterion)"
    )
    for name, what in (
        ("csv", "the means as CSV"),
        ("latex", "the table as LaTeX"),
        ("html", "the table as HTML"),
        ("report", "a report to open in a browser"),
    ):
        parser.add_argument(f"--{name}", default=None, metavar="FILE", help=f"write {what}")
    parser.add_argument(
        "--runs", default=None, metavar="FOLDER", help="write a TREC run of each row, and qrels, for other tools"
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    folders = _named_folders(arguments.folders)
    exports = {name: path for name in ("csv", "latex", "html", "report", "runs") if (path := getattr(arguments, name))}
    taken = {}
    for name, path in exports.items():
        first = taken.setdefault(os.path.realpath(path), name)
        if first != name:
            raise ValueError(f"--{first} and --{name} would both be written to {path}; use different names.")
        if name != "runs":
            check_writable(path)
        elif os.path.exists(path) and not os.path.isdir(path):
            raise ValueError(f"--runs {path} is a file; expected a folder, or a new name for one.")
        else:
            os.makedirs(path, exist_ok=True)

    from structrank import metrics
    from structrank.comparison import experiment
    from structrank.comparison.trainers import as_trainers

    conventions = given(arguments, *_CONVENTIONS)
    measures = parse_measures(arguments, *arguments.measures)
    select = {name: parse_measures(arguments, measure)[0] for name, measure in given(arguments, "select").items()}
    for_rows = {**conventions, "measures": metrics.parse_all(measures, **conventions)}
    # None and names go to compare as they are: it notes which default rows are left out.
    trainers = arguments.trainers
    if arguments.trees:
        trainers = as_trainers(trainers, **for_rows, Cs=arguments.Cs) | _tree_trainers(arguments)
    else:
        as_trainers(trainers, **for_rows)

    check_exists(*folders.values())
    files = [file for path in folders.values() for file in _files(path)]
    for path in exports.values():
        check_not_read(path, files)
    data = {name: _read_folds(arguments, path) for name, path in folders.items()}
    try:
        with stdout_to_stderr():
            table = experiment.compare(
                data,
                trainers,
                measures,
                arguments.Cs,
                arguments.results,
                arguments.jobs,
                verbose=1,
                **select,
                **given(arguments, *_CONVENTIONS, "clean"),
                scale=getattr(arguments, "scale_data", None),
            )
    except KeyboardInterrupt:
        kept = f"finished work is in {arguments.results}; rerun the same command to resume"
        lost = "nothing was kept; with --results FOLDER the same command could resume"
        raise KeyboardInterrupt(kept if arguments.results else lost) from None
    try:  # a failure to print the table must not lose the files
        if arguments.json:
            print_json(_table_facts(table))
        else:
            print(table, flush=True)
    finally:
        for name, path in exports.items():
            getattr(table, f"to_{name}")(path)
            report(f"wrote {path}")


def _files(path):
    """Return the files of a data set."""
    from structrank.datasets.folders import find_folds

    return [file for fold in find_folds(path) for file in fold.parts()] if os.path.isdir(path) else [path]


def _read_folds(arguments, path):
    """Read the folds of a folder, or deal the queries of a file into folds."""
    from structrank.datasets import load_letor_folds, query_folds

    if not os.path.isdir(path):
        data = read_data(arguments, path, scaled=False)
        try:
            return query_folds(data)
        except ValueError:
            n_queries = len(set(data.qid.tolist()))
            raise ValueError(f"{path} has {n_queries} queries; expected at least 5, to deal them into five folds.") from None
    return load_letor_folds(path, **given(arguments, *READING))


def _tree_trainers(arguments):
    """Return the requested rows of trees, with the same relevant documents as all other rows."""
    from sklearn.ensemble import ExtraTreesRegressor

    from structrank.comparison.trainers import Pointwise
    from structrank.learners.trees import LightGBMRanker, XGBoostRanker

    known = {
        "lightgbm": ("LightGBM", LightGBMRanker),
        "xgboost": ("XGBoost", XGBoostRanker),
        "extra-trees": ("ExtraTrees (pointwise)", functools.partial(Pointwise, ExtraTreesRegressor(random_state=0))),
    }
    lowest = given(arguments, "relevant_from").get("relevant_from", 1)
    return {name: ranker(relevant_from=lowest) for name, ranker in (known[tree] for tree in arguments.trees)}


def _named_folders(entries):
    folders = {}
    for entry in entries:
        name, sign, folder = entry.partition("=")
        if not sign or os.path.exists(entry):
            name, folder = Path(entry).resolve().name, entry
        if name in folders:
            raise ValueError(f"two data sets are called {name!r}; name them, as in first={folders[name]}.")
        folders[name] = folder
    return folders


def _table_facts(table):
    from structrank.comparison.rendering import explanations

    marks = table.marks()
    return {
        "cells": [
            {
                "dataset": dataset,
                "measure": measure,
                "trainer": trainer,
                "mean": table.means[trainer, dataset, measure],
                "mark": marks[trainer, dataset, measure],
                "vacuous_folds": table.vacuous[trainer, dataset],
                "below_rule": table.trainers.index(trainer) >= table.n_above,
                "queries": len(table.query_ids[dataset]),
                "undefined": table.undefined[dataset, measure],
            }
            for dataset in table.datasets
            for measure in table.measures
            for trainer in table.trainers
        ],
        "legend": explanations(table),
        "significance": table.significance().reset_index().to_dict("records"),
        "training": table.details().reset_index().to_dict("records"),
    }
