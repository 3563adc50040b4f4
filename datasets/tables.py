"""Tables of one's own: CSV, TSV and parquet files, or data frames, with columns for label, query and features."""

from __future__ import annotations

import numbers
import os
import reprlib
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from structrank._support.checks import as_table, check_choice, check_column_names, check_number
from structrank.datasets._delimited import COMPRESSED, DelimitedFile
from structrank.datasets._row_store import QueryIds, text_array
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.queries import group_by_query, put_query_minimum
from structrank.datasets.shards import import_parquet

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = {".parquet", ".pq"}
_DOCID = "docid"  # taken for the document ids if there is such a column
_UNNAMED = "Unnamed: "  # how pandas calls a column without a name
_LABELS = "expected numbers of at least 0, larger is more relevant"
# An id is one of these, and all ids of a column are the same one: 7 and "7", or 1 and True, would be one query.
_ID_KINDS = {
    "text": str,
    "truth value": (bool, np.bool_),
    "integer": numbers.Integral,
    "number": numbers.Real,
    "time": datetime,
    "date": date,
}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a table by the ending of its name: .csv, .tsv, .tab (perhaps compressed), .parquet or .pq.

    Tab-separated files of LETOR 2.0 have no header line and other endings; `structrank.datasets.load_letor` reads them.

    Examples
    --------
    >>> is_table("train.csv.gz"), is_table("train.parquet"), is_table("train.txt")
    (True, True, False)
    """
    return _ending(path) in {*_SEPARATORS, *_PARQUET}


def load_table(
    source: Any,
    *,
    label: str | None = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    null: str = "error",
) -> Dataset:
    r"""Read a table with one document a row.

    Parameters
    ----------
    source : path-like, or a frame of pandas or polars, a pyarrow Table or a Hugging Face Dataset
        A file whose name ends with .csv, .tsv or .tab (perhaps followed by .gz, .bz2, .xz or .zip) and whose first line names
        the columns, separated by commas (.csv; or, in all lines, by semicolons or tabs) or by tabs; a .parquet or .pq file
        (extra ``parquet``); or a data frame. Between semicolons, the numbers of a file may have decimal commas. Named levels
        of the index of a frame are columns, but features only if `features` names them.
        Ids are read as texts, so that 007 and 7 are different queries, and are numbers only if all look like numbers. Fields
        are quoted as in RFC 4180; every row has as many as the header, and blank lines are skipped.
    label, qid : str, default "label" and "qid"
        Columns of the labels and of the queries; None for a table without labels, which are then 0.
    docid : str, default None
        Column of the document ids; None uses the column "docid" if there is one and `drop` does not name it.
    features : sequence of str, default None
        Columns of the features, in this order; None uses all other columns, which must be numbers. An empty sequence reads the
        labels alone.
    drop : sequence of str, default ()
        Columns that are no features, such as texts and dates; if `features` is None.
    null : {"error", "min", "zero", "keep"}, default "error"
        Empty cells of features (in text files also NULL, NA, N/A, NaN, None): an error, the smallest value of the feature in
        the same query (0 if it has none), 0, or nan, for a model that fills them (`structrank.preparation`).

    Returns
    -------
    Dataset
        ``X`` is a data frame of shape (n_docs, n_features), so that models know the names of their features.

    Raises
    ------
    ValueError
        With the file, the row and the column, unless the table can be read exactly: if ids are missing, of several types, or
        neither texts nor numbers nor dates, two columns have one name, features are no real numbers, or a row has more or fewer
        fields than the header.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "clicks.csv")
    ...     _ = path.write_text("query,relevance,bm25,age\nshoes,1,7.5,3\nshoes,0,2.5,1\n")
    ...     data = load_table(path, label="relevance", qid="query")
    >>> data
    Dataset(2 documents, 1 queries, 2 features, labels 0: 1, 1: 1)
    >>> data.X.columns.tolist()
    ['bm25', 'age']
    """
    import pandas as pd

    check_choice("null", null, ("error", "min", "zero", "keep"))
    name, table = _open(source)
    columns = table.columns
    check_column_names(columns, name)
    _check_columns(columns, {"label": label, "qid": qid, "docid": docid}, name)
    drop = [drop] if isinstance(drop, str) else list(drop)
    for column in drop:
        _check_columns(columns, {"drop": column}, name)
    if drop and features is not None:
        raise ValueError("features= and drop= are both given; all columns that are not in features= are left out anyway.")
    if docid is None and _DOCID in columns and _DOCID not in drop:
        docid = _DOCID
    id_columns = {"qid": qid} if docid is None else {"qid": qid, "docid": docid}
    labelled = [] if label is None else [label]
    taken = [*id_columns.values(), *labelled]
    if len({*taken}) < len(taken):
        raise ValueError(f"label={label!r}, qid={qid!r} and docid={docid!r} name a column twice; expected different columns.")
    if features is None:
        features = _other_columns(columns, {*taken, *drop, *table.index}, name)
    else:
        features = _checked_features(features, columns, taken, name)
    ids, values, wrong = table.read([*id_columns.values()], [*labelled, *features])
    places = {column: f"{name}, column {column!r} ({option}=)" for option, column in {**id_columns, "label": label}.items()}
    if label in wrong:
        row, found = wrong[label]
        raise ValueError(f"{places[label]}: found {reprlib.repr(found)} in row {row + 1}; {_LABELS}.")
    if wrong:
        _raise_not_numbers(wrong, name)
    if values.shape[0] == 0:
        raise ValueError(f"{name} has no rows; expected one document a row.")
    query_of_row = _query_ids(ids[0], places[qid])
    docids = None if docid is None else _document_ids(ids[1], places[docid])
    y = np.zeros(values.shape[0]) if label is None else _labels(values[:, 0], places[label])
    X = _without_gaps(np.ascontiguousarray(values[:, len(labelled) :]), features, query_of_row, null, name)
    return Dataset(pd.DataFrame(X, columns=features, copy=False), y, query_of_row, docids)


def query_folds(data: Dataset, n_folds: int = 5, random_state: int = 0) -> list[Fold]:
    """Split a data set into folds of whole queries, for `structrank.compare`.

    Parameters
    ----------
    data : Dataset
    n_folds : int, default 5
        Each fold tests on one part of the queries and trains on all others.
    random_state : int, default 0
        Seed of the assignment of queries to parts.

    Returns
    -------
    list of Fold
        Without validation parts: `structrank.compare` chooses C on inner folds of the training queries.

    Examples
    --------
    >>> from structrank.datasets import Dataset, query_folds
    >>> data = Dataset(np.eye(6), np.array([0, 1] * 3), np.array([7, 7, 8, 8, 9, 9]))
    >>> [fold.test.qid.tolist() for fold in query_folds(data, 3)]
    [[9, 9], [8, 8], [7, 7]]
    """
    from sklearn.model_selection import GroupKFold
    from sklearn.utils import _safe_indexing

    query = group_by_query(data.qid, len(data)).query_of_row()
    n_queries = int(query.max()) + 1
    check_number("n_folds", n_folds, at_least=2, at_most=n_queries, integer=True, otherwise=", the number of queries")

    def part(rows):
        columns = [None if column is None else np.asarray(column)[rows] for column in (data.y, data.qid, data.docid)]
        return Dataset(_safe_indexing(data.X, rows), *columns)

    splitter = GroupKFold(n_folds, shuffle=True, random_state=random_state)
    return [Fold(part(learn), None, part(check)) for learn, check in splitter.split(query, groups=query)]


def _ending(path):
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1].lower() in COMPRESSED:
        del suffixes[-1]
    return suffixes[-1].lower() if suffixes else ""


def _open(source):
    """Return the name of a table for messages, and an object with `columns` and `read`."""
    import pandas as pd

    if not isinstance(source, (str, os.PathLike)):
        frame = as_table(source)
        frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"source is a {type(source).__name__}; expected the path of a file, or a data frame.")
        return "the table", _Frame(frame)
    name = os.fspath(source)
    if not is_table(source):
        raise ValueError(
            f"{name}: the format of a table is recognised by its name; expected .csv, .tsv, .tab, .parquet or .pq. "
            "load_letor reads LETOR files."
        )
    if _ending(source) in _PARQUET:
        return name, _Frame(_read_parquet(name))
    return name, DelimitedFile(source, _SEPARATORS[_ending(source)])


def _read_parquet(name):
    import pandas as pd

    parquet = import_parquet()
    import pyarrow

    try:
        # pandas would not say which column a file has twice; a folder of files has no schema of its own.
        columns = parquet.read_schema(name).names if os.path.isfile(name) else []
        frame = (
            pd.read_parquet(name, engine="pyarrow", page_checksum_verification=True)
            if len({*columns}) == len(columns)
            else None
        )
    except FileNotFoundError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, OSError, pyarrow.ArrowException) as error:  # forged metadata
        raise ValueError(f"{name} cannot be read as a table: {str(error).strip()}") from None
    check_column_names(columns, name)
    return frame


class _Frame:
    """The columns of a data frame, with the interface of `DelimitedFile`.

    Named levels of its index, which pandas makes of columns of some parquet files, are columns at the end.
    """

    def __init__(self, frame):
        levels = [level for level, name in enumerate(frame.index.names) if name is not None]
        self._columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
        self._columns += [frame.index.get_level_values(level).to_series() for level in levels]
        self.index = [str(frame.index.names[level]) for level in levels]
        self.columns = [*map(str, frame.columns), *self.index]

    def _column(self, name):
        return self._columns[self.columns.index(name)]

    def read(self, ids, numbers):
        """Return lists of ids, None where missing; numbers, nan where missing; and the first other cell of each column."""
        cells = [
            [None if missing else cell for cell, missing in zip(column.tolist(), column.isna(), strict=True)]
            for column in map(self._column, ids)
        ]
        values, wrong = np.empty((len(self._columns[0]), len(numbers))), {}
        for place, name in enumerate(numbers):
            column = self._column(name)
            row = _copy_numbers(column, values[:, place])
            if row is not None:
                wrong[name] = row, column.iloc[[row]].tolist()[0]
        return cells, values, wrong


def _copy_numbers(column, out):
    """Copy a column of numbers, nan where missing; return the row of the first cell that is no real number, or None."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) and column.dtype.kind != "c":
        out[:] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return None
    for row, (cell, missing) in enumerate(zip(column.tolist(), column.isna(), strict=True)):
        if missing:
            out[row] = np.nan
        elif isinstance(cell, (numbers.Real, Decimal, np.bool_)) and not isinstance(cell, np.timedelta64):  # a np.integer
            out[row] = _nearest(cell)
        else:
            return row
    return None


def _nearest(number):
    try:
        return float(number)
    except OverflowError:
        return np.inf


def _check_columns(columns, asked, name):
    for option, column in asked.items():
        if column is not None and column not in columns:
            # Blanks and tabs around a name would not be seen.
            shown = [column if column == " ".join(column.split()) else repr(column) for column in columns[:20]]
            shown = ", ".join(shown) + (", ..." if len(columns) > 20 else "")
            raise ValueError(f"{name} has no column {column!r} ({option}=); it has: {shown}.")


def _other_columns(columns, taken, name):
    """Return the columns that are features because they are nothing else."""
    features = [column for column in columns if column not in taken]
    if not features:
        raise ValueError(f"{name} has no columns besides {', '.join(columns)}; expected features.")
    unnamed = next((column for column in features if column.startswith(_UNNAMED)), None)
    if unnamed is not None:
        raise ValueError(
            f"{name}: column {columns.index(unnamed) + 1} has no name, as the row numbers that pandas writes without "
            f"index=False; leave it out with drop={unnamed!r}."
        )
    return features


def _checked_features(features, columns, taken, name):
    if isinstance(features, str):
        features = [features]
    features = list(features)
    for place, feature in enumerate(features):
        _check_columns(columns, {"features": feature}, name)
        if feature in taken:
            raise ValueError(f"{name}: column {feature!r} is named in features=, but holds the labels, queries or documents.")
        if feature in features[:place]:
            raise ValueError(f"features= names {feature!r} twice; expected different names.")
    return features


def _query_ids(ids, place):
    """Return the ids as an array; texts that are all written as integers as integers."""
    kind = _kind_of_ids(ids, place)
    if kind == "text":
        store = QueryIds()
        store.append(ids, np.ones(len(ids), dtype=np.int64))
        return store.finish()
    if kind == "integer":
        fits = all(-(2**63) <= value < 2**63 for value in ids)
        return np.array(ids, dtype=np.int64 if fits else object)
    return np.array(ids, dtype=object if kind in ("time", "date") else None)


def _document_ids(ids, place):
    _kind_of_ids(ids, place)
    return text_array([str(value) for value in ids])


def _kind_of_ids(ids, place):
    """Return what all ids are; raise if some are missing, or if ids that differ could become equal."""
    _check_complete(np.array([value is None or (isinstance(value, str) and not value) for value in ids]), place)
    rows = {}
    for row, value in enumerate(ids):
        rows.setdefault(type(value), row)
    kinds = {}
    for row in rows.values():
        kind = next((kind for kind, classes in _ID_KINDS.items() if isinstance(ids[row], classes)), None)
        if kind is None or isinstance(ids[row], np.timedelta64):  # a np.integer
            found = f"{reprlib.repr(ids[row])}, a {type(ids[row]).__name__},"
            raise ValueError(
                f"{place}: found {found} in row {row + 1}; expected texts or numbers, as column.astype(str) makes."
            )
        kinds.setdefault(kind, row)
    (kind, row), *others = kinds.items()
    for other, other_row in others:
        raise ValueError(
            f"{place}: found {reprlib.repr(ids[row])} in row {row + 1}, which is of type {kind}, and "
            f"{reprlib.repr(ids[other_row])} in row {other_row + 1}, of type {other}; expected ids of one type."
        )
    if kind == "number":
        _check_complete(np.array([value != value for value in ids]), place)
    if kind == "text" and "\0" in "".join(ids):
        row = next(row for row, value in enumerate(ids) if "\0" in value)
        raise ValueError(f"{place}: found {reprlib.repr(ids[row])} in row {row + 1}; expected a text without zero bytes.")
    return kind


def _labels(labels, place):
    _check_complete(np.isnan(labels), place)
    wrong = ~(np.isfinite(labels) & (labels >= 0))
    if wrong.any():
        raise ValueError(f"{place}: found {labels[wrong][0]:g} in row {int(wrong.argmax()) + 1}; {_LABELS}.")
    return labels.copy()


def _check_complete(empty, place):
    if empty.any():
        raise ValueError(
            f"{place}: {int(empty.sum())} of {empty.size} cells are empty, the first in row {int(empty.argmax()) + 1}; "
            "expected a value in every row."
        )


def _raise_not_numbers(wrong, name):
    (column, (row, found)), *others = wrong.items()
    also = (
        f" (also in {', '.join(repr(other) for other, _ in others[:5])}{', ...' if len(others) > 5 else ''})" if others else ""
    )
    raise ValueError(
        f"{name}, column {column!r}: found {reprlib.repr(found)} in row {row + 1}{also}; expected numbers. Leave out columns "
        "that are no features with drop=, or name the features with features=, and the document ids with docid=; encode "
        "texts that are features."
    )


def _without_gaps(X, features, ids, null, name):
    """Fill empty cells of X, in place, by the rule `null`; raise if any number is infinite."""
    empty = np.isnan(X)
    if empty.any():
        column = int(empty.any(axis=0).argmax())
        if null == "error":
            raise ValueError(
                f"{name}, column {features[column]!r}: {int(empty[:, column].sum())} of {len(X)} cells are empty, the first "
                f"in row {int(empty[:, column].argmax()) + 1}; pass null='min' for the smallest value in the query, or "
                "null='zero', or null='keep' if the model fills them."
            )
        if null == "min":
            put_query_minimum(X, ids)
        elif null == "zero":
            X[empty] = 0.0
    infinite = np.isinf(X)
    if infinite.any():
        column = int(infinite.any(axis=0).argmax())
        row = int(infinite[:, column].argmax())
        raise ValueError(
            f"{name}, column {features[column]!r}: found {X[row, column]} in row {row + 1}; expected finite numbers."
        )
    return X
