"""Tables of one's own: CSV, TSV and parquet files, or data frames, with columns for label, query and features."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from structrank.datasets import text_files
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.queries import group_by_query

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = {".parquet", ".pq"}
_COMPRESSED = {".gz", ".bz2", ".xz", ".zip"}
_EMPTY = ["", "NULL", "null", "NA", "N/A", "NaN", "nan", "None"]
_DOCID = "docid"  # taken for the document ids if there is such a column
_UNNAMED = "Unnamed: "  # how pandas calls a column without a name


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
    source : path-like, or a frame of pandas or polars
        A file whose name ends with .csv, .tsv or .tab (perhaps followed by .gz, .bz2, .xz or .zip) and whose first line names
        the columns, separated by commas (.csv; or, in all lines, by semicolons or tabs) or by tabs; a .parquet or .pq file
        (extra ``parquet``); or a data frame. Between semicolons, the numbers of a file may have decimal commas.
        Ids are read as texts, so that 007 and 7 are different queries, and are numbers only if all look like numbers.
    label, qid : str, default "label" and "qid"
        Columns of the labels and of the queries; None for a table without labels, which are then 0.
    docid : str, default None
        Column of the document ids; None uses the column "docid" if there is one.
    features : sequence of str, default None
        Columns of the features, in this order; None uses all other columns, which must be numbers. An empty sequence reads the
        labels alone.
    drop : sequence of str, default ()
        Columns that are no features, such as texts and dates; if `features` is None.
    null : {"error", "min", "zero"}, default "error"
        Empty cells of features (in text files also NULL, NA, N/A, NaN, None): an error, the smallest value of the feature in
        the same query (0 if it has none), or 0.

    Returns
    -------
    Dataset
        ``X`` is a data frame of shape (n_docs, n_features), so that models know the names of their features.

    Raises
    ------
    ValueError
        With the file, the column, what was found and what was expected.

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
    if null not in ("error", "min", "zero"):
        raise ValueError(f"null={null!r} is not valid: expected 'error', 'min' or 'zero'.")
    if hasattr(source, "columns"):
        name, frame = "the table", source.to_pandas() if hasattr(source, "to_pandas") else source
    else:
        name, frame = os.fspath(source), _read(source, qid, docid)
    columns = _column_names(frame, name)
    frame = frame.set_axis(columns, axis=1)
    _check_columns(columns, {"label": label, "qid": qid, "docid": docid}, name)
    drop = [drop] if isinstance(drop, str) else list(drop)
    for column in drop:
        _check_columns(columns, {"drop": column}, name)
    if drop and features is not None:
        raise ValueError("features= and drop= are both given; all columns that are not in features= are left out anyway.")
    if docid is None and _DOCID in columns:
        docid = _DOCID
    taken = {label, qid, docid}
    if features is None:
        features = _other_columns(columns, taken.union(drop), name)
    else:
        features = _checked_features(features, columns, taken, name)
    if frame.empty:
        raise ValueError(f"{name} has no rows; expected one document a row.")
    ids = _query_ids(frame[qid], f"{name}, column {qid!r} (qid=)")
    labels = np.zeros(len(frame)) if label is None else _labels(frame[label], f"{name}, column {label!r} (label=)")
    X = _numbers(frame[features], ids, null, name)
    return Dataset(X, labels, ids, None if docid is None else frame[docid].astype(str).to_numpy(dtype=str))


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
    if not 2 <= n_folds <= n_queries:
        raise ValueError(f"n_folds={n_folds!r} is not valid: expected 2 to {n_queries}, the number of queries.")

    def part(rows):
        columns = [None if column is None else np.asarray(column)[rows] for column in (data.y, data.qid, data.docid)]
        return Dataset(_safe_indexing(data.X, rows), *columns)

    splitter = GroupKFold(n_folds, shuffle=True, random_state=random_state)
    return [Fold(part(learn), None, part(check)) for learn, check in splitter.split(query, groups=query)]


def _ending(path):
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1].lower() in _COMPRESSED:
        del suffixes[-1]
    return suffixes[-1].lower() if suffixes else ""


def _read(path, qid, docid):
    """Read a file as a data frame."""
    import pandas as pd

    # Since pandas 3.1 numbers are read as the nearest doubles without asking, and asking is deprecated.
    exact = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
    if not is_table(path):
        raise ValueError(
            f"{os.fspath(path)}: the format of a table is recognised by its name; expected .csv, .tsv, .tab, .parquet or .pq. "
            "load_letor reads LETOR files."
        )
    try:
        if _ending(path) in _PARQUET:
            return pd.read_parquet(path, engine="pyarrow")
        separator, ids = _SEPARATORS[_ending(path)], (qid, docid or _DOCID)
        with _text(path) as text:
            header = pd.read_csv(text, sep=separator, nrows=0).columns
        others = [other for other in (";", "\t") if separator == "," and len(header) == 1 and other in header[0]]
        if others:  # semicolons, as spreadsheets write where the comma is decimal, or tabs
            (separator, *_) = others
            with _text(path) as text:
                header = pd.read_csv(text, sep=separator, nrows=0).columns

        def read(decimal):
            with _text(path) as text:
                return pd.read_csv(
                    text,
                    sep=separator,
                    decimal=decimal,
                    **exact,
                    dtype=dict.fromkeys(ids, str),
                    keep_default_na=False,
                    na_values={column: _EMPTY for column in header if column not in ids},  # NA may be the id of a query
                )

        frame = read(".")
        if separator != ";" or {*_texts(frame)} <= {*ids}:
            return frame
        other = read(",")  # decimal commas, unless that makes texts of other numbers
        return other if {*_texts(other)} < {*_texts(frame)} else frame
    except FileNotFoundError:
        raise
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install structrank[parquet]") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} cannot be read as a table: {error}; expected text in UTF-8.") from None
    except (ValueError, *text_files.DAMAGED) as error:  # parsing errors of pandas and pyarrow are among them
        raise ValueError(f"{os.fspath(path)} cannot be read as a table: {str(error).strip()}") from None


@contextlib.contextmanager
def _text(path):
    """Open a file, which may be compressed. Pandas would ignore all rows after damage between two compressed streams."""
    with open(path, "rb") as file:
        if _ending(path) != Path(path).suffix.lower() == ".zip":
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                if len(names) != 1:
                    raise ValueError(f"the archive holds {len(names)} files; expected 1")
                with archive.open(names[0]) as stream:
                    yield stream
        else:
            with text_files.unpacked(file) as stream:
                yield stream if stream is file else io.BufferedReader(stream)


def _column_names(frame, name):
    columns = [str(column) for column in frame.columns]
    twice = next((column for place, column in enumerate(columns) if column in columns[:place]), None)
    if twice is not None:
        raise ValueError(f"{name} has two columns {twice!r}; expected different names.")
    return columns


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
    for feature in features:
        _check_columns(columns, {"features": feature}, name)
        if feature in taken:
            raise ValueError(f"{name}: column {feature!r} is named in features=, but holds the labels, queries or documents.")
    return list(features)


def _query_ids(column, place):
    """Return the ids as integers if all are written as integers, otherwise as they are."""
    _check_complete((column.isna() | (column == "")).to_numpy(), place)
    ids = column.to_numpy()
    if ids.dtype.kind != "O":
        return ids
    ids = ids.astype(str)
    try:
        numbers = ids.astype(np.int64)
    except (ValueError, OverflowError):
        return ids
    return numbers if (numbers.astype(str) == ids).all() else ids


def _labels(column, place):
    import pandas as pd

    expected = "expected numbers of at least 0, larger is more relevant"
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"{place}: {_first_text(column)}; {expected}.")
    _check_complete(column.isna().to_numpy(), place)
    labels = column.to_numpy(dtype=np.float64)
    wrong = ~(np.isfinite(labels) & (labels >= 0))
    if wrong.any():
        raise ValueError(f"{place}: found {labels[wrong][0]:g} in row {int(wrong.argmax()) + 1}; {expected}.")
    return labels


def _texts(frame):
    """Return the names of the columns that are not numbers."""
    import pandas as pd

    return [column for column in frame.columns if not pd.api.types.is_numeric_dtype(frame[column])]


def _first_text(column):
    """Return words on the first cell of a column that is not a number, and its row below the header."""
    import pandas as pd

    wrong = (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy()
    row = int(wrong.argmax())  # 0 if all are numbers that pandas has kept as texts
    return f"found {column.iloc[row]!r} in row {row + 1}"


def _check_complete(empty, place):
    if empty.any():
        raise ValueError(
            f"{place}: {int(empty.sum())} of {empty.size} cells are empty, the first in row {int(empty.argmax()) + 1}; "
            "expected a value in every row."
        )


def _numbers(frame, ids, null, name):
    """Return the features as float64, without empty cells."""
    texts = _texts(frame)
    if texts:
        others = f" (also in {', '.join(map(repr, texts[1:6]))}{', ...' if len(texts) > 6 else ''})" if texts[1:] else ""
        raise ValueError(
            f"{name}, column {texts[0]!r}: {_first_text(frame[texts[0]])}{others}; expected numbers. Leave out columns "
            "that are no features with drop=, or name the features with features=, and the document ids with docid=; encode "
            "texts that are features."
        )
    frame = frame.astype(np.float64)
    empty = frame.isna()
    if empty.to_numpy().any():
        if null == "error":
            column = empty.any().idxmax()
            raise ValueError(
                f"{name}, column {column!r}: {int(empty[column].sum())} of {len(frame)} cells are empty, the first in row "
                f"{int(empty[column].to_numpy().argmax()) + 1}; pass null='min' for the smallest value in the query, or "
                "null='zero'."
            )
        if null == "min":
            frame = frame.fillna(frame.groupby(ids, sort=False).transform("min"))
        frame = frame.fillna(0.0)
    infinite = np.isinf(frame).any()
    if infinite.any():
        column = frame[infinite.idxmax()]
        row = int(np.isinf(column).to_numpy().argmax())
        raise ValueError(f"{name}, column {column.name!r}: found {column.iloc[row]} in row {row + 1}; expected finite numbers.")
    return frame.reset_index(drop=True)
