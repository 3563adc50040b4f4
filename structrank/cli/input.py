"""Input of the commands: reading data and models, and checking the files to write before any work is done."""

from __future__ import annotations

import argparse
import errno
import os
from dataclasses import replace
from pathlib import Path

from structrank.cli.options import LETOR, READING, TABLE, check_agrees, given, preparation_of


def read_data(arguments, path, ranker=None, folders=False, labels=True, features=True, scaled=True, raw=False):
    """Read a LETOR file or a table, or a folder of LETOR files if `folders`.

    The data must have the features of `ranker`, the name of a model file and the model, if given; they need no `labels` or
    `features` where these are False. --scale is applied if `scaled`. Values are left to a model that prepares them, and to
    training if `raw`: missing values are nan then.
    """
    from structrank.datasets import scale_per_query
    from structrank.datasets.tables import is_table
    from structrank.models import files

    if ranker is not None:
        check_agrees(arguments, *ranker)
    steps = getattr(ranker[1], "preparation_", None) if ranker else (preparation_of(arguments) if raw else None)
    if steps is not None:
        keeps = any(type(step).__name__ == "Fill" for step in steps)
        arguments = argparse.Namespace(**{**vars(arguments), **({"null": "keep"} if keeps else {})})
    else:
        for option, here in (("null", ("error", "min", "zero")), ("scale_data", ("query",))):
            if getattr(arguments, option, here[0]) not in here:
                flag = f"--{'scale' if option == 'scale_data' else option} {getattr(arguments, option)}"
                raise ValueError(f"{flag} is a part of a model: use it with train and train-for, and leave it out elsewhere.")
    if os.path.isdir(path):
        if not folders:
            raise ValueError(f"{path} is a folder; expected a table, or a file in LETOR format{_file_in(path)}.")
    elif files.is_model_file(path):
        raise ValueError(f"{path} is a model file; expected a file in LETOR format, or a table.")
    if is_table(path) and not os.path.isdir(path):
        data = _read_table(arguments, path, ranker, labels, features)
    else:
        data = _read_letor(arguments, path, ranker)
    if steps is not None or not (scaled and features and given(arguments, "scale_data")):
        return data
    try:
        return scale_per_query(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error} (--scale)") from None


def read_model_and_data(arguments):
    """Load the model, and read the documents that it ranks; the two may be given in either order."""
    check_exists(arguments.model, arguments.data)
    arguments.model, arguments.data = model_first(arguments.model, arguments.data)
    model = load_ranker(arguments.model)
    return model, read_data(arguments, arguments.data, ranker=(arguments.model, model), labels=False)


def read_parts(arguments, path, validation):
    """Read raw training data and, unless its path is None, validation data with the same features."""
    from structrank.datasets.letor import conform

    train = read_data(arguments, path, raw=True)
    if validation is None:
        return train, None
    checked = read_data(arguments, validation, raw=True)
    columns = [getattr(data.X, "columns", None) for data in (train, checked)]
    if columns[0] is None and columns[1] is None:
        return conform([train, checked])
    if columns[0] is None or columns[1] is None:
        table, other = (path, validation) if columns[1] is None else (validation, path)
        raise ValueError(f"{table} is a table and {other} is in LETOR format; expected two files of the same kind.")
    if {*columns[0]} != {*columns[1]}:
        raise ValueError(f"{path} and {validation} differ in their features; name the columns of both with --features.")
    return train, replace(checked, X=checked.X[columns[0]])


def _read_table(arguments, path, ranker, labels, features):
    from structrank.datasets import load_table

    _refuse(given(arguments, *LETOR), path, "a table")
    options = given(arguments, "null", *TABLE)
    names = getattr(ranker[1], "feature_names_in_", None) if ranker else None
    if names is not None and not labels:
        options["label"] = None
    if names is not None or not features:  # no other columns are read, so that none must be dropped, as in training
        options.pop("drop", None)
        options["features"] = options.get("features", names.tolist()) if features else []
    data = load_table(path, **options)
    if ranker and data.X.shape[1] != ranker[1].n_features_in_:
        named = ", ".join(data.X.columns[:8]) + (", ..." if data.X.shape[1] > 8 else "")
        raise ValueError(
            f"{path} has {data.X.shape[1]} features ({named}); {ranker[0]} has {ranker[1].n_features_in_}. Name the columns of "
            "its features, in their order, with --features."
        )
    if ranker and names is None:  # a model of a LETOR file knows no names
        data = replace(data, X=data.X.to_numpy())
    return data


def _read_letor(arguments, path, ranker):
    from structrank.datasets import load_letor

    _refuse(given(arguments, *TABLE), path, "in LETOR format")
    options = given(arguments, *READING)
    try:
        data = load_letor(path, **options)
    except ValueError as error:
        if not (str(error).startswith(f"{Path(path)}:1: ") and "expected a label" in str(error)):
            raise
        raise ValueError(f"{error} Tables are recognised by their names: .csv, .tsv, .tab, .parquet or .pq.") from None
    if ranker is None:
        return data
    name, expected = ranker[0], ranker[1].n_features_in_
    if data.X.shape[1] > expected:
        try:
            load_letor(path, **options | {"n_features": expected})  # names the place of the first other feature
        except ValueError as error:
            found = str(error).removesuffix(f", as n_features={expected}.")
            raise ValueError(f"{found}: {name} has {expected} features.") from None
    if data.X.shape[1] < expected:
        raise ValueError(
            f"{path} has {data.X.shape[1]} features; {name} has {expected}. If the others are 0 in all rows, and so not in the "
            f"file, say --n-features {expected}."
        )
    return data


def _refuse(options, path, kind):
    """Raise if an option was given that does not apply to the kind of file."""
    for name in options:
        raise ValueError(f"--{name.replace('_', '-')} does not apply to {path}, which is {kind}.")


def check_exists(*paths):
    """Raise if an input file is missing, before any work is done; None is skipped."""
    for path in paths:
        if path is not None and not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _file_in(folder):
    """Return words on a training file of a folder, or on what is in the folder instead."""
    for names in (("train.txt",), ("Fold1", "train.txt")):
        if os.path.isfile(os.path.join(folder, *names)):
            return f", such as {os.path.join(folder, *names)}"
    files = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    more = f" and {len(files) - 5} more" if len(files) > 5 else ""
    return f"; the folder has {', '.join(files[:5]) or 'no files'}{more}"


def model_first(first, second):
    """Return two paths, the model file first: the files tell which is which, so that commands accept both orders."""
    from structrank.models import files

    if files.is_model_file(second) and not files.is_model_file(first):
        return second, first
    return first, second


def load_ranker(path):
    """Load a model; raise unless it ranks documents by their features."""
    from structrank import load_model

    model = load_model(path)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which does not rank documents by their features.")
    return model


def check_not_read(path, inputs):
    """Raise if the file to write is one of the input files."""
    for file in inputs:
        if file is not None and os.path.exists(file) and os.path.exists(path) and os.path.samefile(path, file):
            raise ValueError(f"{path} would be overwritten, but holds the data; choose another name for the output.")
