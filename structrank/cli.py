"""The command line: ``structrank compare | train | predict | evaluate | inspect``, thin over the API.

Results go to stdout, all else to stderr. Exit codes: 0 done; 2 wrong usage or input, said in one line; 130 interrupted.
Whatever is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import re
import sys
import textwrap
import warnings
from pathlib import Path

import structrank

__all__ = ["main"]

_DONE, _FAILED, _BAD_INPUT, _INTERRUPTED, _PIPE_CLOSED = 0, 1, 2, 130, 141
_MEASURES = ["mrr@10", "ndcg@10", "map"]
_N_SHOWN = 10  # weights, query ids


def main(argv=None):
    """Run a command.

    Parameters
    ----------
    argv : list of str, default None
        What follows ``structrank`` on the command line; None for that of this process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["--version"])
    structrank 0.1.0
    0
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # --help and --version too
        return stop.code
    say = _Speaker(f"structrank {arguments.command}")
    if argv is None:
        _keep_stdout_for_results()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", structrank.StructRankWarning)
            warnings.showwarning = lambda message, *_, **__: say(f"warning: {_as_options(str(message))}")
            _import(arguments.imports)
            arguments.run(arguments, say)
            print(end="", flush=True)
    except KeyboardInterrupt as stop:
        say(f"interrupted; {str(stop) or 'nothing was saved'}")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of stdout, such as head, has seen enough
        _abandon_stdout()
        return _PIPE_CLOSED
    except MemoryError as error:
        say(f"error: not enough memory. {error}")
        return _FAILED
    except ImportError as error:  # of an optional library; what is to be installed is said in it
        say(f"error: {error}")
        return _BAD_INPUT
    except OSError as error:
        if error.filename is None and error.errno is not None:  # stdout itself, on a full disk
            _abandon_stdout()
        say(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
        return _BAD_INPUT
    except ValueError as error:
        say(f"error: {_as_options(str(error))}")
        return _BAD_INPUT
    return _DONE


def _import(names):
    """Import modules of the user, for what they register; the current folder is searched last."""
    if names and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ValueError(f"--import {name}: {error}.") from error


# ---- The commands


def _compare(arguments, say):
    folders = _named_folders(arguments.folders)
    exports = {name: path for name in ("csv", "latex", "html", "report", "runs") if (path := getattr(arguments, name))}
    taken = {}
    for name, path in exports.items():
        first = taken.setdefault(os.path.realpath(path), name)
        if first != name:
            raise ValueError(f"--{first} and --{name} are both to be written to {path}; give each a name of its own.")
        if name != "runs":
            _check_writable(path)
        elif os.path.exists(path) and not os.path.isdir(path):
            raise ValueError(f"--runs {path} is a file; expected a folder, or a new name for one.")
        else:
            os.makedirs(path, exist_ok=True)

    from structrank import comparison, metrics
    from structrank.datasets import load_letor_folds
    from structrank.datasets.folders import find_folds

    settings = _given(arguments, "relevant_from", "discount")
    for measure in arguments.measures:
        metrics.parse(measure, **settings)
    trainers = comparison.as_trainers(arguments.trainers, **settings) | _tree_trainers(arguments)

    files = [file for folder in folders.values() for fold in find_folds(folder) for file in fold.parts()]
    for path in exports.values():
        _check_not_read(path, files)
    data = {name: load_letor_folds(folder, **_reading(arguments)) for name, folder in folders.items()}
    try:
        with _nothing_on_stdout():
            table = comparison.compare(
                data,
                trainers,
                arguments.measures,
                arguments.Cs,
                arguments.results,
                arguments.jobs,
                verbose=1,
                **settings,
            )
    except KeyboardInterrupt:
        kept = f"what was finished is in {arguments.results}, and the same command goes on from there"
        lost = "nothing was kept; with --results FOLDER the same command would go on from here"
        raise KeyboardInterrupt(kept if arguments.results else lost) from None
    try:  # neither the table nor the files should be lost where the others cannot be written
        if arguments.json:
            _print_json(_table_facts(table))
        else:
            print(table, flush=True)
    finally:
        for name, path in exports.items():
            getattr(table, f"to_{name}")(path)
            say(f"wrote {path}")


def _tree_trainers(arguments):
    """Give the rows of boosted trees that were asked for; they see the good and bad documents that all other rows see."""
    if not arguments.trees:
        return {}
    from structrank.trees import LightGBMRanker, XGBoostRanker

    known = {"lightgbm": ("LightGBM", LightGBMRanker), "xgboost": ("XGBoost", XGBoostRanker)}
    least = _given(arguments, "relevant_from").get("relevant_from", 1)
    return {name: ranker(relevant_from=least) for name, ranker in (known[tree] for tree in arguments.trees)}


def _train(arguments, say):
    if len(arguments.C) > 1 and arguments.validation is None:
        raise ValueError("several values of C need --validation FILE, to choose one of them on.")
    _check_writable(arguments.output)
    _check_not_read(arguments.output, [arguments.data, arguments.validation])

    from structrank import StructRankSVM
    from structrank.datasets.letor import conform

    settings = _given(arguments, "k", "discount", "slack", "relevant_from", "tol", "criterion", "feature_map", "bound")
    for name in ("criterion", "feature_map"):
        if len(settings.get(name, [])) == 1:
            (settings[name],) = settings[name]
    model = StructRankSVM(**settings, C=arguments.C[0], n_jobs=arguments.jobs, verbose=1)
    model._check_parameters()

    train = _read_data(arguments, arguments.data)
    Cs, validation = sorted(set(arguments.C)), None
    if arguments.validation is not None:
        train, validation = conform([train, _read_data(arguments, arguments.validation)])
        facts = _data_facts(validation, arguments)
        if len(facts["queries_without_both_kinds"]) == facts["queries"]:
            raise ValueError(f"{arguments.validation}: no query has {_kinds(facts)}, so that C cannot be chosen on it.")
    with _nothing_on_stdout():
        try:
            models = model.fit_path(train.X, train.y, qid=train.qid, Cs=Cs, checkpoint=arguments.checkpoint)
        except ValueError as error:
            raise ValueError(str(error) if "checkpoint" in str(error) else f"{arguments.data}: {error}") from None
    interrupted = len(models) < len(Cs) or any(model.stop_reason_ == "interrupted" for model in models)
    Cs = [model.C for model in models]
    reached = None
    if validation is not None:
        reached = [model.score(validation.X, validation.y, qid=validation.qid) for model in models]
    best = reached.index(max(reached)) if reached else len(models) - 1
    model = models[best].set_params(verbose=0)
    model.save(arguments.output)

    facts = {"model": arguments.output, "C": Cs[best]}
    if reached:
        facts["validation"] = [{"C": C, "score": score} for C, score in zip(Cs, reached, strict=True)]
    facts |= _model_facts(model)
    if arguments.json:
        _print_json(facts)
    else:
        lines = [("model", facts["model"])]
        if reached:
            scores = ", ".join(f"C={C:g}: {score:.4f}" for C, score in zip(Cs, reached, strict=True))
            lines.append(("validation", f"chose C={Cs[best]:g} of {scores}"))
        _print_lines(lines + _model_lines(facts))
    if interrupted:
        raise KeyboardInterrupt(f"the model so far is in {arguments.output}")


def _predict(arguments, say):
    from structrank import runs
    from structrank.data import group_by_query
    from structrank.ranker import ranks_within

    if arguments.json and arguments.format == "trec":
        raise ValueError("--json and --format trec are two formats; give one of them.")
    model = _load_ranker(arguments.model)
    data = _read_data(arguments, arguments.data, model=(arguments.model, model.n_features_in_))
    names = _document_names(data, arguments.data, say)
    scores = model.predict(data.X)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # as evaluate reads it
    if arguments.format == "trec":
        _warn_of_ties(data.qid, scores, say)
        queries = runs.query_names(data)
        if queries != list(map(str, data.qid.tolist())):
            say(f"note: {arguments.data} has query ids with blanks, which a run cannot hold; queries are numbered from 1")
        return sys.stdout.writelines(runs.run_lines(queries, names, scores))
    ranks = ranks_within(scores, group_by_query(data.qid, len(scores)))
    rows = zip(data.qid.tolist(), names, scores.tolist(), ranks.tolist(), strict=True)
    if arguments.json:
        return _print_json([dict(zip(("qid", "docid", "score", "rank"), row, strict=True)) for row in rows])
    print("qid\tdocid\tscore\trank")
    sys.stdout.writelines(f"{qid}\t{docid}\t{score!r}\t{rank}\n" for qid, docid, score, rank in rows)


def _evaluate(arguments, say):
    from structrank import metrics, model_file, runs

    settings = _given(arguments, "gain", "discount", "relevant_from")
    measures = [metrics.parse(measure, **settings) for measure in arguments.measures]
    if model_file.is_model_file(arguments.ranking):
        model = _load_ranker(arguments.ranking)
        data = _read_data(arguments, arguments.data, model=(arguments.ranking, model.n_features_in_))
        scores = model.predict(data.X)
    else:
        data = _read_data(arguments, arguments.data)
        scores = runs.read_scores(arguments.ranking, data, arguments.data)
    conventions = _given(arguments, "ties", "empty")
    means = metrics.evaluate(data.y, scores, data.qid, measures, **conventions)
    each = metrics.evaluate(data.y, scores, data.qid, measures, per_query=True, **conventions) if arguments.per_query else None
    if arguments.json:
        facts = {"queries": means.n_queries, "measures": {}}
        for name, measure in means.measures.items():
            facts["measures"][name] = {
                "mean": means[name], "undefined": means.undefined[name], "settings": measure.settings
            }  # fmt: skip
            if each:
                values = zip(map(str, each.query_ids.tolist()), each[name].tolist(), strict=True)
                facts["measures"][name]["per_query"] = dict(values)
        _print_json(facts)
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


def _inspect(arguments, say):
    from structrank import load_model, model_file

    if not os.path.isdir(arguments.file) and model_file.is_model_file(arguments.file):
        model, header = load_model(arguments.file), model_file.read_header(arguments.file)
        facts = {"model": arguments.file, "format": header["format"], "versions": header["versions"]}
        facts |= _model_facts(model)
        written = f"format {header['format']['version']}, written by structrank {header['versions']['structrank']}"
        lines = [("model", f"{arguments.file} ({written})"), *_model_lines(facts)]
    else:
        facts = _data_facts(_read_data(arguments, arguments.file, folders=True), arguments)
        lines = [("data", arguments.file), *_data_lines(facts)]
        facts = {"data": arguments.file, **facts}
    if arguments.json:
        _print_json(facts)
    else:
        _print_lines(lines)


# ---- What is said of models, data and tables


def _model_facts(model):
    facts = {"class": type(model).__name__, "parameters": model.get_params(deep=False)}
    if hasattr(model, "n_features_in_"):
        facts["features"] = model.n_features_in_
    if hasattr(model, "certificate_"):
        facts |= _training_facts(model)
    return facts


def _training_facts(model):
    """Say what only a structured SVM knows of its training."""
    names = getattr(model, "feature_names_in_", None)
    names = range(1, model.n_features_in_ + 1) if names is None else names.tolist()  # LETOR counts from 1
    weights = sorted(zip(names, model.coef_.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    certificate = model.certificate_
    return {
        "iterations": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "notes": model.notes_,
        "ramp": bool(getattr(model, "rounds_", ())),
        "certificate": {"primal": certificate.primal, "dual": certificate.dual, "gap": certificate.gap},
        "health": vars(model.health_),
        "polish": vars(model.polish_) if hasattr(model, "polish_") else None,
        "weights": [{"feature": name, "weight": weight} for name, weight in weights],
    }


def _model_lines(facts):
    lines = [
        ("class", facts["class"]),
        ("trained", ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items())),
    ]
    if "features" in facts:
        lines.append(("features", facts["features"]))
    return lines + _training_lines(facts) if "certificate" in facts else lines


def _training_lines(facts):
    first, last = facts["certificate"]["dual"], facts["certificate"]["primal"]
    health = facts["health"]
    which = "of the last convex problem solved for the ramp bound: " if facts["ramp"] else ""
    lines = [
        ("iterations", f"{facts['iterations']}, {facts['stop_reason']}"),
        ("certificate", f"{which}objective {last:.6g}; the optimum lies from {first:.6g} to {last:.6g}"),
        (
            "health",
            f"objective {health['objective_ratio']:.4g} times that of w = 0; |w| {health['norm']:.4g}; "
            f"mean slack {health['mean_slack']:.4g}",
        ),
    ]
    if health["parts"]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in health["parts"].items())
        lines.append(("", f"pull of the criteria on w: {shares}"))
    if facts["polish"] and facts["polish"]["steps"]:
        before, after = facts["polish"]["train"]
        text = f"{facts['polish']['measure']} of the training queries {before:.4f} -> {after:.4f}"
        lines.append(("polished", f"{text}; certificate and health are those of the weights before"))
    lines += [("note", text) for text in facts["notes"]]
    shown = facts["weights"][:_N_SHOWN]
    lines.append(("weights", f"the {len(shown)} largest of {len(facts['weights'])}"))
    return lines + [("", f"{entry['weight']:<+13.6g}feature {entry['feature']}") for entry in shown]


def _data_facts(data, arguments):
    import numpy as np

    from structrank import metrics

    settings = _given(arguments, "relevant_from")
    graded = "relevant_from" in settings and settings["relevant_from"] is None
    measure = metrics.PairAccuracy() if graded else metrics.AUC(**settings)
    defined = metrics.evaluate(data.y, np.zeros(len(data)), data.qid, measure, per_query=True)
    (values,) = defined.values()
    sizes = np.unique(data.qid, return_counts=True)[1]
    labels, counts = np.unique(data.y, return_counts=True)
    return {
        "rows": len(data),
        "queries": defined.n_queries,
        "features": data.X.shape[1],
        "labels": {f"{label:g}": count for label, count in zip(labels.tolist(), counts.tolist(), strict=True)},
        "documents_per_query": {"least": sizes.min(), "median": float(np.median(sizes)), "most": sizes.max()},
        "relevant_from": None if graded else measure.relevant_from,
        "queries_without_both_kinds": defined.query_ids[np.isnan(values)].tolist(),
        "document_ids": data.docid is not None,
    }


def _kinds(facts):
    least = facts["relevant_from"]
    return "different labels" if least is None else f"both good (label >= {least:g}) and bad documents"


def _data_lines(facts):
    sizes, without = facts["documents_per_query"], facts["queries_without_both_kinds"]
    shown = ", ".join(map(str, without[:_N_SHOWN])) + (", ..." if len(without) > _N_SHOWN else "")
    return [
        ("rows", facts["rows"]),
        ("queries", f"{facts['queries']}, of {sizes['least']} to {sizes['most']} rows, median {sizes['median']:g}"),
        ("", f"{len(without)} without {_kinds(facts)}" + (f": qid {shown}" if without else "")),
        ("features", facts["features"]),
        ("labels", ", ".join(f"{label}: {count}" for label, count in facts["labels"].items())),
        ("document ids", "yes" if facts["document_ids"] else "no"),
    ]


def _table_facts(table):
    marks, frame = table.marks(), table.to_frame()
    return {
        "cells": [
            {
                "dataset": dataset,
                "measure": measure,
                "trainer": trainer,
                "mean": frame.loc[trainer, (dataset, measure)],
                "mark": marks[trainer, dataset, measure],
                "queries": len(table.query_ids[dataset]),
                "undefined": table.undefined[dataset, measure],
            }
            for dataset in table.datasets
            for measure in table.measures
            for trainer in table.trainers
        ],
        "significance": table.significance().reset_index().to_dict("records"),
        "training": table.details().reset_index().to_dict("records"),
    }


# ---- Input


def _given(arguments, *names):
    """Give the options that the user gave; for the others the API knows what to take."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def _reading(arguments):
    return _given(arguments, "null", "sparse", "zero_based")


def _read_data(arguments, path, model=None, folders=False):
    """Read a file; `model` is the name and number of features of the model that will score it."""
    from structrank import model_file
    from structrank.datasets import load_letor

    if os.path.isdir(path):
        if not folders:
            raise ValueError(f"{path} is a folder; expected a file in LETOR format, such as {os.path.join(path, 'train.txt')}.")
    elif model_file.is_model_file(path):
        raise ValueError(f"{path} is a model file; expected a file in LETOR format.")
    name, n_features = (None, None) if model is None else model
    try:
        return load_letor(path, n_features=n_features, **_reading(arguments))
    except ValueError as error:
        raise ValueError(str(error).replace(f"as n_features={n_features}", f"as {name} has {n_features} features")) from None


def _load_ranker(path):
    from structrank import load_model

    model = load_model(path)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which does not rank documents by their features.")
    return model


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


def _check_not_read(path, inputs):
    """Raise if a file to write is one of those that are read."""
    for file in inputs:
        if file is not None and os.path.exists(file) and os.path.exists(path) and os.path.samefile(path, file):
            raise ValueError(f"{path} would be written over, but holds the data; give another name for what is written.")


def _check_writable(path):
    """Raise now rather than after the work if a file cannot be written."""
    if not path:
        raise ValueError("the name of a file to write is empty; give one.")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; expected the name of a file to write.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    needed = [path] if os.path.exists(path) else []
    if not needed or os.path.isfile(path):
        needed.append(folder)  # files are written beside the earlier ones
    if not all(os.access(place, os.W_OK) for place in needed):
        raise ValueError(f"{path} cannot be written: permission denied.")


def _document_names(data, path, say):
    from structrank import runs

    names, numbered = runs.document_names(data)
    if numbered:
        say(
            f"note: {path} has no document ids that are unique within a query and without blanks; rows are numbered from 1"
        )
    return names


def _warn_of_ties(qid, scores, say):
    """Say where trec_eval will see ties, and what it then does."""
    from structrank import runs

    tied = runs.count_ties(qid, scores)
    if tied:
        say(
            f"note: {tied} of {len(scores)} scores equal another of their query as 32-bit numbers, which is how trec_eval "
            "reads them; it ranks those by document id, where structrank evaluate averages over ties"
        )


# ---- Output


class _Speaker:
    """Says things on stderr, one line each, and knows what it has said."""

    def __init__(self, who):
        self.who, self.said = who, []

    def __call__(self, text):
        self.said.append(text)
        print(f"{self.who}: {' '.join(text.split())}", file=sys.stderr, flush=True)


_OPTION_OF = {"n_jobs": "--jobs", "C": "-C"} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "criterion", "feature_map", "k", "discount", "slack", "relevant_from", "tol", "bound", "gain", "Cs", "null", "sparse",
        "zero_based", "results", "checkpoint", "ties", "empty",
    )
}  # fmt: skip


def _as_options(text):
    """Write the API's parameters in a message as the options of the command line: sparse=True as --sparse."""

    def option(match):
        name, value = _OPTION_OF[match[1]], match[2] or match[3]
        return name if value == "True" else f"{name} {'none' if value == 'None' else value}"

    # What is part of the name of a file is left alone.
    value = r"(?:'([^']*)'|(-?[\w.]*\w))(?![\w/\\]|\.\w)"
    return re.sub(rf"(?<![\w./\\=-])({'|'.join(_OPTION_OF)})={value}", option, text)


def _keep_stdout_for_results():
    """Send what anyone else prints on stdout, such as worker processes, to stderr."""
    if sys.stdout is not None:
        results = os.dup(sys.stdout.fileno())
        os.dup2(2, sys.stdout.fileno())
        sys.stdout = open(results, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)  # noqa: SIM115


def _abandon_stdout():
    """Forget what could not be written, so that Python does not try again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nothing_on_stdout():
    return contextlib.redirect_stdout(sys.stderr)  # OSQP prints when it hears Ctrl-C


def _print_json(facts):
    print(json.dumps(_plain(facts), indent=1, allow_nan=False))


def _plain(value):
    """Give a value as JSON knows it: undefined numbers as null, objects as they print."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def _print_lines(lines):
    wrapper = textwrap.TextWrapper(110, subsequent_indent=" " * 14, break_on_hyphens=False, break_long_words=False)
    for name, value in lines:
        print(wrapper.fill(f"{name:<14}{value}"))


# ---- The options


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message):
        self.exit(_BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def _number(text):
    return int(text) if text.lstrip("+-").isdigit() else float(text)


_number.__name__ = "number"  # in messages of argparse


def _or_none(kind):
    def read(text):
        return None if text.lower() == "none" else kind(text)

    read.__name__ = kind.__name__
    return read


def _parser():
    parser = _Parser(
        "structrank",
        description="Learning to rank with structured SVMs. Data are files in LETOR format, plain or compressed.",
        epilog="structrank COMMAND --help shows the options of a command, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"structrank {structrank.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, run, summary, examples):
        made = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  "),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", default=False, help="print the result as JSON")
        made.add_argument(
            "--import", action="append", default=[], dest="imports", metavar="MODULE",
            help="import a Python module first, such as one that calls structrank.register; may be repeated",
        )  # fmt: skip
        reading = made.add_argument_group("reading data")
        reading.add_argument("--null", metavar="POLICY", help="for missing values (NULL): error, min or zero")
        reading.add_argument("--sparse", action="store_true", help="keep data in memory without their zeros")
        reading.add_argument("--zero-based", action="store_true", help="feature ids count from 0")
        return made

    _add_compare(command)
    _add_train(command)
    _add_predict(command)
    _add_evaluate(command)
    _add_inspect(command)
    return parser


def _add_relevant_from(parser, graded=False):
    kind, text = (_or_none(_number), "(default 1); none for graded labels") if graded else (_number, "(default 1)")
    parser.add_argument("--relevant-from", type=kind, metavar="LABEL", help=f"least label of a good document {text}")


def _add_jobs(parser, what):
    parser.add_argument("--jobs", type=int, default=None, metavar="N", help=f"{what} (default 1; -1 for all cores)")


def _add_compare(command):
    parser = command(
        "compare", _compare, "train on each criterion, test on each measure: which one to train on for yours",
        """
          structrank compare OHSUMED/ --results runs/ --jobs 2
          structrank compare ohsumed=data/OHSUMED td2004=data/TD2004 --measures ndcg@5 map --csv table.csv
          structrank compare MQ2008/ --trainers auc map "mrr (map po)" --Cs 0.1 1 10 --report report.html
          structrank compare MQ2008/ --trees lightgbm xgboost --runs runs/
          structrank compare MQ2008/ --import my_criteria --trainers map precision --measures possible_p@5 map
        """,
    )  # fmt: skip
    parser.add_argument(
        "folders", nargs="+", metavar="[NAME=]FOLDER", help="Fold1, Fold2, ... with train, test and perhaps vali files"
    )
    parser.add_argument("--trainers", nargs="+", default=None, metavar="NAME", help="rows (default: all of the package)")
    parser.add_argument(
        "--trees", nargs="+", default=[], choices=["lightgbm", "xgboost"],
        help="rows of boosted trees beside these, 100 trees each; they need pip install structrank[trees]",
    )  # fmt: skip
    parser.add_argument(
        "--measures", nargs="+", default=_MEASURES, metavar="MEASURE", help=f"columns (default: {' '.join(_MEASURES)})"
    )
    parser.add_argument(
        "--Cs", nargs="+", type=float, default=None, metavar="C", help="to choose from (default: 0.001 to 1000)"
    )
    parser.add_argument(
        "--results", default=None, metavar="FOLDER", help="keep finished work here, to go on from after an interruption"
    )
    _add_jobs(parser, "processes")
    _add_relevant_from(parser)
    parser.add_argument("--discount", metavar="NAME", help="of NDCG: kdd08 (default, the paper's) or log2")
    for name, what in (
        ("csv", "the means as CSV"), ("latex", "the table as LaTeX"), ("html", "the table as HTML"),
        ("report", "a report to open in a browser"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", default=None, metavar="FILE", help=f"write {what}")
    parser.add_argument(
        "--runs", default=None, metavar="FOLDER", help="write a TREC run of each row, and qrels, for other tools"
    )


def _add_train(command):
    parser = command(
        "train", _train, "train a model and save it",
        """
          structrank train train.txt -o map.structrank
          structrank train train.txt --criterion ndcg --k 5 -C 0.1 1 10 100 --validation vali.txt -o ndcg.structrank
          structrank train train.txt --criterion map --criterion ndcg-nc --slack shared -o combo.structrank
          structrank train train.txt --import my_criteria --criterion precision --k 5 -o precision.structrank
        """,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", help="file in LETOR format")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="where to save the model")
    parser.add_argument(
        "--criterion", action="append", metavar="NAME",
        help="auc, map (default), ndcg, ndcg-nc, mrr, dorm, or one that --import registers; repeat it to train on several",
    )  # fmt: skip
    parser.add_argument(
        "-C", nargs="+", type=float, default=[1.0],
        help="weight of the training loss (default 1); of several, --validation chooses",
    )  # fmt: skip
    parser.add_argument(
        "--validation", default=None, metavar="FILE", help="choose C by the criterion's own measure on these data"
    )
    parser.add_argument("--k", type=_or_none(int), help="where ndcg, mrr and dorm clip (default 10); none for nowhere")
    parser.add_argument(
        "--feature-map", action="append", metavar="NAME",
        help="auto (default), po, mrr or dorm; with several criteria one for all, or again for each",
    )  # fmt: skip
    parser.add_argument("--discount", metavar="NAME", help="of ndcg and dorm: kdd08 (default) or log2")
    parser.add_argument("--slack", metavar="KIND", help="of several criteria: separate (default) or shared")
    _add_relevant_from(parser, graded=True)
    parser.add_argument("--tol", type=float, help="stop when the loss is known to this (default 0.001)")
    parser.add_argument(
        "--bound", metavar="NAME", help="convex (default), ramp, or auto: the ramp bound where the convex one is vacuous"
    )
    parser.add_argument(
        "--checkpoint", default=None, metavar="FOLDER", help="keep the state of training here, to go on from after a kill"
    )
    _add_jobs(parser, "threads")


def _add_predict(command):
    parser = command(
        "predict", _predict, "score and rank documents with a model",
        """
          structrank predict map.structrank test.txt > scores.tsv
          structrank predict map.structrank test.txt --format trec > run.txt
        """,
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="file that train has saved")
    parser.add_argument("data", metavar="DATA", help="file in LETOR format; labels play no part")
    parser.add_argument(
        "--format", choices=["tsv", "trec"], default="tsv",
        help="qid, docid, score, rank in the order of the data (default), or a TREC run by rank",
    )  # fmt: skip


def _add_evaluate(command):
    parser = command(
        "evaluate", _evaluate, "measure a ranking",
        """
          structrank evaluate test.txt map.structrank
          structrank evaluate test.txt run.txt --measures ndcg@5 map p@10 --gain linear
          structrank evaluate test.txt scores.tsv --measures map --per-query
        """,
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", help="file in LETOR format, for the labels")
    parser.add_argument(
        "ranking", metavar="RANKING", help="a model, a TREC run, a table as predict writes it, or a score a line"
    )
    parser.add_argument(
        "--measures", nargs="+", default=_MEASURES, metavar="MEASURE",
        help=f"auc, map, mrr@k, ndcg@k, p@k, cndcg@k, pair_accuracy, or one that --import registers "
        f"(default: {' '.join(_MEASURES)})",
    )  # fmt: skip
    parser.add_argument("--gain", metavar="NAME", help="of ndcg: exp2 (default), linear or binary")
    parser.add_argument("--discount", metavar="NAME", help="of ndcg and cndcg: log2 (default) or kdd08")
    _add_relevant_from(parser)
    parser.add_argument("--ties", metavar="RULE", help="of equal scores: average over all orders (default) or stable, by row")
    parser.add_argument(
        "--empty", type=float, metavar="VALUE", help="of a query where a measure is undefined (default: left out of the mean)"
    )
    parser.add_argument(
        "--per-query", action="store_true", default=False, help="a line for each query; nan where undefined"
    )


def _add_inspect(command):
    parser = command(
        "inspect", _inspect, "tell what is in a model or a data file",
        """
          structrank inspect map.structrank
          structrank inspect train.txt --relevant-from 2
        """,
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE", help="a model, or data in LETOR format")
    _add_relevant_from(parser, graded=True)


if __name__ == "__main__":
    sys.exit(main())
