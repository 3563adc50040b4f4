"""Input of the commands: reading data and models, and checking the files to write before any work is done."""

from __future__ import annotations

import os

from structrank.cli.options import READING, given, naming_options


def read_data(arguments, path, model=None, folders=False):
    """Read a file in LETOR format; `model` is the name and the number of features of the model that will score it."""
    from structrank.datasets import load_letor, scale_per_query
    from structrank.models import files

    if os.path.isdir(path):
        if not folders:
            raise ValueError(f"{path} is a folder; expected a file in LETOR format{_file_in(path)}.")
    elif files.is_model_file(path):
        raise ValueError(f"{path} is a model file; expected a file in LETOR format.")
    name, n_features = (None, None) if model is None else model
    try:
        with naming_options(*READING):
            data = load_letor(path, n_features=n_features, **given(arguments, *READING))
    except ValueError as error:
        if model is None or f"n_features={n_features}" not in str(error):
            raise
        raise ValueError(f"{error} ({name} has {n_features} features)") from None
    if not given(arguments, "scale"):
        return data
    try:
        return scale_per_query(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error} (--scale)") from None


def _file_in(folder):
    """Return words on a training file of a folder, or on what is in the folder instead."""
    for names in (("train.txt",), ("Fold1", "train.txt")):
        if os.path.isfile(os.path.join(folder, *names)):
            return f", such as {os.path.join(folder, *names)}"
    files = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    more = f" and {len(files) - 5} more" if len(files) > 5 else ""
    return f"; the folder has {', '.join(files[:5]) or 'no files'}{more}"


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


def check_writable(path):
    """Raise if a file cannot be written, before any work is done."""
    if not path:
        raise ValueError("the name of a file to write is empty.")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; expected the name of a file to write.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    needed = [path] if os.path.exists(path) else []
    if not needed or os.path.isfile(path):
        needed.append(folder)  # a new file is written there, then renamed
    if not all(os.access(place, os.W_OK) for place in needed):
        raise ValueError(f"{path} cannot be written: permission denied.")
