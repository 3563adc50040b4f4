"""Write a model in the format of a search engine, database or library.

structrank export map.structrank --to solr --name learned --store products --shift auto --data train.txt > solr.json
structrank export map.structrank --to sql --table products
structrank export map.structrank --to onnx --dtype float32 -o map.onnx
structrank export map.structrank --to elasticsearch --scaler standard --data raw.txt --shift auto
"""

from __future__ import annotations

import json
import os

from structrank._support.files import check_writable, replace_file
from structrank.cli.input import check_exists, check_not_read, load_ranker, read_data
from structrank.cli.options import NUMBER_OR_AUTO, check_agrees, given
from structrank.cli.output import print_json, print_result

_TEXTS = ("solr", "elasticsearch", "opensearch", "lucene", "vespa", "sql", "painless")  # formats that accept a shift
_FILES = ("onnx", "ranklib", "svmrank", "lightgbm", "xgboost")
_WITHOUT_SCALER = ("lightgbm", "xgboost")
# Options that some formats have, with the keyword of the API.
_OWN = {
    "name": ("solr", "elasticsearch", "opensearch", "vespa"),
    "store": ("solr",),
    "table": ("sql",),
    "query": ("sql",),
    "dtype": ("onnx",),
    "feature_names": (*_TEXTS, "onnx"),
}


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file written by train or by model.save")
    parser.add_argument("--to", required=True, choices=[*_TEXTS, *_FILES], help="format")
    parser.add_argument(
        "-o",
        "--output",
        default=None,
        metavar="FILE",
        help=f"file to write; required for {', '.join(_FILES)} (default: stdout)",
    )
    parser.add_argument("--name", help="name of the model in the engine (default: the name of its file)")
    parser.add_argument("--store", help="solr: name of the feature store (default: the name of the model)")
    parser.add_argument("--table", help="sql: name of the table (default documents)")
    parser.add_argument("--query", metavar="COLUMN", help="sql: column with the query of a document (default qid)")
    parser.add_argument("--dtype", choices=["float64", "float32"], help="onnx: type of the input (default float64)")
    parser.add_argument(
        "--feature-names",
        nargs="+",
        metavar="NAME",
        help="names of the features in the engine (default: as trained, or f1 f2 ...)",
    )
    parser.add_argument(
        "--shift",
        type=NUMBER_OR_AUTO,
        metavar="NUMBER",
        help="constant to add to scores (Lucene rejects negative scores); auto: from the lowest score of documents in --data",
    )
    parser.add_argument(
        "--scaler",
        choices=["standard", "min-max"],
        help="the features were scaled before training, by a StandardScaler or MinMaxScaler fitted to the documents in --data",
    )
    parser.add_argument(
        "--data",
        default=None,
        metavar="FILE",
        help="documents before scaling, in LETOR format or as a table, for --shift auto and --scaler",
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    to = arguments.to
    _check_options(arguments)
    check_exists(arguments.model, arguments.data)
    if arguments.output is not None:
        check_writable(arguments.output)
        check_not_read(arguments.output, [arguments.model, arguments.data])

    from structrank.models import exports

    model = load_ranker(arguments.model)
    check_agrees(arguments, arguments.model, model)
    if hasattr(arguments, "scale_data") and not hasattr(model, "preparation_"):
        raise ValueError(
            "--scale query cannot be exported: it is not a part of this model. Train with it: train --scale query."
        )
    scaler, shift = None, getattr(arguments, "shift", None)
    if arguments.data is not None:
        data = read_data(arguments, arguments.data, ranker=(arguments.model, model), labels=False)
        if hasattr(arguments, "scaler"):
            scaler = _fitted(arguments.scaler, data.X)
        if shift == "auto":
            shift = exports.positive_shift(model, data.X, scaler=scaler)
            report(f"note: --shift {shift!r}, from the lowest score of the {len(data)} documents in {arguments.data}")
    settings = given(arguments, *_OWN)
    if to in _OWN["name"]:
        settings.setdefault("name", os.path.splitext(os.path.basename(arguments.model))[0])
    if to == "solr":
        settings.setdefault("store", settings["name"])
    elif to == "sql":
        settings.setdefault("table", "documents")
    if to not in _WITHOUT_SCALER:
        settings["scaler"] = scaler
    if shift is not None:
        settings["shift"] = shift
    if to in _FILES:
        getattr(exports, f"to_{to}")(model, path=arguments.output, **settings)
        _report_file(arguments, shift)
        return
    if to in ("lucene", "painless"):
        content = exports.to_expression(model, to, **settings)
    else:
        export = exports.to_elasticsearch if to == "opensearch" else getattr(exports, f"to_{to}")
        content = export(model, **settings)
    text = content if isinstance(content, str) else json.dumps(content, indent=1, allow_nan=False)
    if arguments.output is not None:
        replace_file(arguments.output, f"{text}\n".encode(), "the export")
        _report_file(arguments, shift)
    elif arguments.json:
        print_json({"to": to, "content": content})
    else:
        print(text)


def _check_options(arguments):
    to = arguments.to
    for option, formats in _OWN.items():
        if hasattr(arguments, option) and to not in formats:
            raise ValueError(f"--{option.replace('_', '-')} is an option of {', '.join(formats)}, not of {to}.")
    if hasattr(arguments, "shift") and to not in _TEXTS:
        raise ValueError(f"--shift: {to} accepts negative scores and has no shift.")
    if hasattr(arguments, "scaler") and to in _WITHOUT_SCALER:
        raise ValueError(f"--scaler: a file of {to} holds the trees alone; scale features before they are scored.")
    asked = {name: getattr(arguments, name, None) for name in ("shift", "scaler")}
    needs = [f"--{name} {value}" for name, value in asked.items() if value in ("auto", "standard", "min-max")]
    if needs and arguments.data is None:
        raise ValueError(f"{' and '.join(needs)} needs --data FILE with documents.")
    if arguments.data is not None and not needs:
        raise ValueError("--data is used by --shift auto and --scaler; give one of them.")
    if to in _FILES and arguments.output is None:
        raise ValueError(f"--to {to} writes a file; name it with -o FILE.")


def _report_file(arguments, shift):
    facts = {"model": arguments.model, "to": arguments.to, "file": arguments.output, "shift": shift}
    print_result(arguments, facts, [("file", f"{arguments.output}, for {arguments.to}")])


def _fitted(name, X):
    import scipy.sparse
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    scaler = StandardScaler() if name == "standard" else MinMaxScaler()
    return scaler.fit(X.toarray() if scipy.sparse.issparse(X) else X)
