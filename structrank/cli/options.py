"""The parser, and the options that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import math
import textwrap

DISCOUNTS = ["kdd08", "log2"]
GAINS = ["exp2", "linear", "binary"]
MEASURES = ["mrr@10", "ndcg@10", "map"]
LETOR = ("sparse", "zero_based", "n_features")  # options for files in LETOR format
READING = ("null", *LETOR)
# Rules for missing values and normalisers within queries, with the steps of a model that they name.
FILL = {"min": "query_min", "zero": "zero", "mean": "mean", "column-min": "min"}
NORMALISE = {"query": "minmax", "l2": "l2", "zscore": "zscore", "rank": "rank"}
LEARNER = ("criterion", "feature_map", "k", "discount", "slack", "relevant_from", "tol", "bound")  # parameters of a learner
TABLE = ("label", "qid", "docid", "features", "drop")  # options for tables


class Parser(argparse.ArgumentParser):
    """Parser that reports an error in one line. The options of a parameter of the API have its name as `dest`."""

    def error(self, message):
        """Exit with code 2 and one line on stderr."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def with_options(self, message):
        """Return a message of the API, and which options of another name set the parameters that it names.

        Examples
        --------
        >>> parser = Parser()
        >>> _ = parser.add_argument("--relevant-from")
        >>> parser.with_options("bound='ramp' needs relevant documents; set relevant_from=1.")
        "bound='ramp' needs relevant documents; set relevant_from=1. [relevant_from is --relevant-from]"
        """
        named = {word.partition("=")[0].strip("`") for word in message.replace("(", " ").split() if "=" in word}
        flags = {action.dest: action.option_strings[-1] for action in self._actions if action.option_strings}
        options = [f"{name} is {flag}" for name, flag in flags.items() if name in named and name != flag.lstrip("-")]
        return f"{message} [{', '.join(options)}]" if options else message


def add_command(commands, module, reads):
    """Add the command of a module, whose docstring is a sentence and examples; `reads` adds the options for data."""
    summary, _, examples = (module.__doc__ or "").partition("\n\n")  # python -OO drops docstrings
    parser = commands.add_parser(
        module.__name__.rpartition(".")[2].replace("_", "-"),
        help=summary,
        description=summary,
        epilog=f"examples:\n{textwrap.indent(examples, '  ')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.set_defaults(run=module.run, parser=parser)
    module.add_options(parser)
    parser.add_argument("--json", action="store_true", default=False, help="print the result as JSON")
    parser.add_argument(
        "--import",
        action="append",
        default=[],
        dest="imports",
        metavar="MODULE",
        help="import a Python module first, such as one that calls structrank.register; may be repeated",
    )
    if not reads:
        return
    reading = parser.add_argument_group("reading data")
    reading.add_argument(
        "--null",
        choices=["error", *FILL],
        help="missing values (NULL): error (default), min in the query, zero, or those of training: mean, column-min",
    )
    reading.add_argument("--label", metavar="COLUMN", help="tables: column of the labels (default label)")
    reading.add_argument("--qid", metavar="COLUMN", help="tables: column of the query ids (default qid)")
    reading.add_argument(
        "--docid", metavar="COLUMN", help="tables: column of the document ids (default docid, if there is one)"
    )
    reading.add_argument(
        "--features", nargs="+", metavar="COLUMN", help="tables: columns of the features (default: all other columns)"
    )
    reading.add_argument("--drop", nargs="+", metavar="COLUMN", help="tables: columns that are no features, such as texts")
    reading.add_argument("--sparse", action="store_true", help="LETOR: store the data as a sparse matrix")
    reading.add_argument("--zero-based", action="store_true", help="LETOR: feature ids count from 0")
    reading.add_argument(
        "--n-features", type=COUNT, metavar="N", help="LETOR: number of features; those that the file lacks are 0"
    )
    reading.add_argument(
        "--scale",
        dest="scale_data",
        choices=[*NORMALISE],
        help="normalise each feature within each query: query to [0, 1], or by the l2 norm, z-score or reciprocal rank",
    )


def add_relevant_from(parser, graded=False):
    """Add --relevant-from, which accepts none where graded labels are possible."""
    kind, text = (LABEL_OR_NONE, "(default 1); none for graded labels") if graded else (LABEL, "(default 1)")
    parser.add_argument("--relevant-from", type=kind, metavar="LABEL", help=f"lowest label that counts as relevant {text}")


def add_measure_settings(parser):
    """Add --gain and --discount of the measures that a command trains for."""
    parser.add_argument("--gain", choices=GAINS, help="gain of ndcg by label, for labels with grades (default binary)")
    parser.add_argument("--discount", choices=DISCOUNTS, help="discount of ndcg; default kdd08, the paper's")


def parse_measures(arguments, *names):
    """Return measures from their names, by the conventions of `structrank.compare` and the options that were given."""
    from structrank import metrics

    settings = {"gain": "binary", "discount": "kdd08", **given(arguments, "gain", "discount", "relevant_from")}
    return [metrics.parse(name, **settings) for name in names]


def add_clean(parser):
    """Add --clean, which drops documents before training."""
    text = "drop all-zero vectors and irrelevant near-duplicates of relevant documents, after --scale (KDD 2008, section 4.1)"
    parser.add_argument("--clean", choices=["kdd08"], help=text)


def add_training(parser, validation):
    """Add the files of a command that trains a model, and how it scales columns; `validation` is the help on that file."""
    parser.add_argument("data", metavar="DATA", help="file in LETOR format, or a table: .csv, .tsv or .parquet")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file for the model")
    parser.add_argument("--validation", default=None, metavar="FILE", help=validation)
    parser.add_argument(
        "--checkpoint", default=None, metavar="FOLDER", help="folder for checkpoints, so that an interrupted run can resume"
    )
    parser.add_argument(
        "--scale-columns",
        dest="scale",
        choices=["std"],
        default=None,
        help="std: divide columns by their standard deviation within queries while training (default: as they are)",
    )
    add_log(parser)


def add_log(parser):
    """Add --log of commands that train."""
    parser.add_argument(
        "--log", nargs="*", metavar="COLUMN", help="compress columns by sign(x) log(1 + |x|): those named, or all without names"
    )


def preparation_of(arguments):
    """Return the steps that the options for missing values, logarithms and normalisers name, None for none."""
    from structrank.preparation import Fill, Log, Normalise

    options, steps = given(arguments, "null", "log", "scale_data"), []
    if options.get("null", "error") != "error":
        steps.append(Fill(FILL[options["null"]]))
    if "log" in options:
        steps.append(Log([int(name) if name.isdigit() else name for name in options["log"]] or None))
    if "scale_data" in options:
        steps.append(Normalise(NORMALISE[options["scale_data"]]))
    return steps or None


def check_agrees(arguments, name, model):
    """Raise if an option contradicts the preparation of a model; `name` is that of its file."""
    fitted = getattr(model, "preparation_", None)
    if fitted is None:
        return
    shown = ", ".join(map(repr, fitted))
    if getattr(arguments, "null", None) == "error" and any(repr(step).startswith("Fill") for step in fitted):
        raise ValueError(f"--null error contradicts {name}, which prepares values by {shown}. Leave the option out.")
    for option, steps in (("null", FILL), ("scale_data", NORMALISE)):
        if hasattr(arguments, option) and getattr(arguments, option) in steps:
            (step,) = preparation_of(type(arguments)(**{option: getattr(arguments, option)}))
            if repr(step) not in map(repr, fitted):
                flag = f"--{'scale' if option == 'scale_data' else option} {getattr(arguments, option)}"
                raise ValueError(f"{flag} contradicts {name}, which prepares values by {shown}. Leave the option out.")


def add_penalty(parser):
    """Add the options of the penalty, see `penalty_of`."""
    penalty = parser.add_argument_group("penalty", "features of LETOR files are called f1, f2, ...")
    penalty.add_argument("--nonnegative", action="store_true", help="allow no weight below 0")
    penalty.add_argument(
        "--bounds", nargs="+", type=BOUNDS, metavar="NAME:LOW:HIGH", help="bounds on weights, such as price:-inf:0"
    )
    penalty.add_argument("--prior", metavar="MODEL", help="model file of a linear model; weights stay near its weights")
    penalty.add_argument("--l1", type=POSITIVE, metavar="NUMBER", help="weight of the absolute values, for sparse models")


def penalty_of(arguments):
    """Return the penalty that the options describe; None without any."""
    options = given(arguments, "nonnegative", "bounds", "prior", "l1")
    if not options:
        return None
    if "nonnegative" in options and "bounds" in options:
        raise ValueError("--nonnegative and --bounds exclude each other: name all features with --bounds, such as price:0:inf.")

    from structrank.models.files import load_model
    from structrank.penalties import Penalty

    settings = given(arguments, "l1")
    if "nonnegative" in options:
        settings["lower"] = 0.0
    for name, low, high in options.get("bounds", ()):
        for parameter, value in (("lower", low), ("upper", high)):
            settings.setdefault(parameter, {})[name] = value
    if "prior" in options:
        settings["prior"] = load_model(arguments.prior)
        if not hasattr(settings["prior"], "coef_"):
            raise ValueError(f"--prior {arguments.prior} holds a {type(settings['prior']).__name__}; expected a linear model.")
    return Penalty(**settings)


def add_jobs(parser, what):
    """Add --jobs, the number of processes or threads."""
    parser.add_argument("--jobs", type=JOBS, default=None, metavar="N", help=f"{what} (default 1; -1 for all cores)")


def given(arguments, *names):
    """Return the options that were given as a dict; the API defines the defaults of all others."""
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


# ---- Types of options


def _checked(convert, is_valid, expected):
    """Return a type for argparse that converts a text and checks the value; `expected` describes valid values in errors."""

    def read(text):
        with contextlib.suppress(ValueError):
            value = convert(text)
            if is_valid(value):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not valid: expected {expected}")

    return read


def _or_none(read):
    return lambda text: None if text.lower() == "none" else read(text)


def _number(text):
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _bounds(text):
    name, low, high = text.rsplit(":", 2)
    return name, float(low), float(high)


BOUNDS = _checked(_bounds, lambda bounds: bounds[0] and bounds[1] <= bounds[2], "NAME:LOW:HIGH with LOW at most HIGH")
NUMBER_OR_AUTO = _checked(
    lambda text: text if text == "auto" else float(text),
    lambda number: number == "auto" or math.isfinite(number),
    "a number, or auto",
)
POSITIVE = _checked(float, lambda value: 0 < value < math.inf, "a number above 0")
JOBS = _checked(int, lambda jobs: jobs >= 1 or jobs == -1, "an integer of at least 1, or -1 for all cores")
COUNT = _checked(int, lambda n: n >= 1, "an integer of at least 1")
CUTOFF = _or_none(_checked(int, lambda k: 1 <= k < 2**63, "an integer of at least 1, or none for no cutoff"))
LABEL = _checked(_number, math.isfinite, "a number")
LABEL_OR_NONE = _or_none(_checked(_number, math.isfinite, "a number, or none"))
