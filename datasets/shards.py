"""Data sets in shards: parts of whole queries that are read one after another, for data larger than memory."""

import contextlib
import errno
import json
import os
import tokenize
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from structrank._support import checks
from structrank._support.files import replace_file
from structrank._support.lazy import optional
from structrank.datasets.queries import group_rows

_INDEX = "shards.json"
_FORMAT = "structrank shards 1"
_NESTED = "list", "large_list", "fixed_size_list", "struct", "map"  # types of parquet columns
DOCS_PER_SHARD = 2**17
_COLUMNS_AT_ONCE, _ROWS_AT_ONCE = 8, 1024
_verified: dict[str, tuple] = {}  # checksum, size and time of change of files that were compared with their checksum


def write_shards(
    folder: str | os.PathLike[str], X: Any, y: Any, qid: Any, sample_weight: Any = None, docs_per_shard: int = DOCS_PER_SHARD
) -> "Shards":
    """Write a data set as a folder of .npy files that are later mapped from disk.

    Shard 0 is ``X-00000.npy``, ``y-00000.npy``, ``qid-00000.npy`` and, with weights, ``weight-00000.npy``; ``shards.json``
    lists them with a checksum of each file. Each holds whole queries.

    Parameters
    ----------
    folder : path-like
        Created if missing; must not contain shards.
    X : array of shape (n_docs, n_features)
        numpy array, memory map, or a pandas or polars frame; the type of its numbers is kept.
    y : array-like of shape (n_docs,)
        Labels.
    qid : array-like of shape (n_docs,)
        Query of each row, in any order: numbers or texts.
    sample_weight : array-like of shape (n_docs,), default=None
        Weight of each row's query.
    docs_per_shard : int, default=131072
        Maximum number of documents per shard; a longer query forms a shard of its own.

    Raises
    ------
    OSError
        With the file that cannot be written, as on a full disk; all files written before are deleted.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = write_shards(folder, np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    ...     sorted(os.listdir(folder))[:2], shards
    (['X-00000.npy', 'X-00001.npy'], Shards(2 shards, 4 documents, 4 features))
    """
    if scipy.sparse.issparse(X):
        raise ValueError("X is sparse; shards are dense .npy files. Train on the matrix itself, or on X.toarray().")
    shards = cut_shards(X, y, qid, sample_weight, docs_per_shard)
    checks.check_column_names(shards.columns)
    columns = [_storable(shard.qid) for shard in shards]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / _INDEX).exists() or any(folder.glob("X-*.npy")):
        raise ValueError(f"folder={str(folder)!r} already holds shards; name another folder, or delete the shards first.")
    listed: list[dict[str, Any]] = [{"number": f"{i:05d}", "n_docs": len(shard.y)} for i, shard in enumerate(shards)]
    index = {"format": _FORMAT, "n_features": shards.n_features, "weighted": sample_weight is not None, "shards": listed}
    if shards.columns is not None:
        index["columns"] = shards.columns
    written = [folder / _INDEX]
    try:
        # The index comes first: if writing is interrupted, opening the folder names the missing files.
        (folder / _INDEX).write_text(json.dumps(index), "utf-8")
        for entry, shard, ids in zip(listed, shards, columns, strict=True):
            arrays = {"X": shard.X, "y": shard.y, "qid": ids}
            if sample_weight is not None:
                arrays["weight"] = shard.sample_weight
            entry["crc32"] = {}
            for kind, array in arrays.items():
                path = folder / f"{kind}-{entry['number']}.npy"
                written.append(path)
                np.save(path, array, allow_pickle=False)
                entry["crc32"][kind] = _checksum(path)
        index["crc32"] = _checksum_of_index(index)
        replace_file(folder / _INDEX, json.dumps(index).encode(), "the list of shards")
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        n_bytes = shards.n_docs * shards.n_features * shards[0].X.itemsize
        raise OSError(
            error.errno or errno.ENOSPC,  # numpy reports a short write without its cause
            f"cannot write the shards: {error.strerror or error}; all shards written so far are deleted. They need over "
            f"{n_bytes / 1e6:,.0f} MB: free as much, or name a folder on another disk",
            error.filename or str(written[-1]),
        ) from None
    return open_shards(folder)


def open_shards(
    source: Any, label: str = "label", qid: str = "qid", sample_weight: str | None = None, verify: bool = True
) -> "Shards":
    """Open shards on disk: a folder that `write_shards` wrote, or parquet files (extra ``parquet``).

    .npy files are mapped, and only the parts used by a pass over the data are read. A parquet file is read as a whole in each
    pass, and must fit in memory. In a folder without ``shards.json``, all files with the names that `write_shards` uses are
    opened.

    Parameters
    ----------
    source : path-like or list of path-like
        Folders, or parquet files; each parquet file holds whole queries.
    label, qid : str, default="label" and "qid"
        Columns of parquet files. All others are features.
    sample_weight : str or None, default=None
        Column of parquet files with the weights of the queries.
    verify : bool, default=True
        Compare each .npy file with its checksum (CRC-32) in ``shards.json`` when it is first read in a process, which costs one
        more read of the file. With False, a file that was damaged on disk or in transfer can train another model without an
        error. Folders without checksums, as earlier versions and other programs write them, are read without comparison.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_shards(folder, np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    ...     [shard.qid.tolist() for shard in open_shards(folder)]
    [[7, 7], [8, 8]]
    """
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise ValueError(f"source={source!r} is not valid: expected a path, or a list of paths.")
    columns = {"label": label, "qid": qid, "sample_weight": sample_weight}
    return Shards([shard for path in paths for shard in _open(Path(path).absolute(), columns, verify)])


def cut_shards(X: Any, y: Any, qid: Any, sample_weight: Any = None, docs_per_shard: int = DOCS_PER_SHARD) -> "Shards":
    """Cut arrays into shards of whole queries, without copying them if the rows of each query are consecutive.

    Useful for a memory map that is larger than memory: training then works on one shard at a time.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_docs, n_features)
    y, qid, sample_weight, docs_per_shard
        As for `write_shards`; the rows of scattered queries are gathered in each pass.

    Examples
    --------
    >>> shards = cut_shards(np.eye(5), [0, 1, 0, 1, 1], qid=["a", "a", "b", "b", "b"], docs_per_shard=3)
    >>> [shard.qid.tolist() for shard in shards]
    [['a', 'a'], ['b', 'b', 'b']]
    """
    checks.check_number("docs_per_shard", docs_per_shard, at_least=1, integer=True)
    columns, X = column_names(X), checks.as_matrix(X)
    if not scipy.sparse.issparse(X):
        X = np.asarray(X)  # parts of a memory map would be maps, too
    n_docs = X.shape[0]
    y, qid = checks.as_labels(y, n_docs), checks.as_query_ids(qid, n_docs)
    if sample_weight is not None:
        sample_weight = checks.as_number_column(sample_weight, n_docs, "sample_weight", "numbers of at least 0")
    order, indptr = group_rows(qid)
    if (order[1:] > order[:-1]).all():
        order = None  # shards are parts of the arrays
    ends = indptr[1:]
    shards: list[RowShard] = []
    start = 0
    while start < X.shape[0]:
        fitting = np.searchsorted(ends, start + docs_per_shard, side="right") - 1
        stop = int(ends[max(fitting, np.searchsorted(ends, start, side="right"))])
        rows = slice(start, stop) if order is None else order[start:stop]
        shards.append(RowShard(X, y, qid, sample_weight, rows, f"shard {len(shards)}", columns))
        start = stop
    return Shards(shards)


class Shards:
    """Parts of a data set, each of whole queries; ``fit(shards)`` trains on them one after another.

    Parameters
    ----------
    shards : list
        Objects with `X`, `y`, `qid`, `sample_weight` (or None), `shape` of X, a `name` for messages, and perhaps `columns`.

    Attributes
    ----------
    n_features, n_docs : int
    columns : tuple of str, or None
        Names of the features, if known.

    Examples
    --------
    >>> shards = cut_shards(np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    >>> len(shards), shards[1].y.tolist(), shards
    (2, [0.0, 1.0], Shards(2 shards, 4 documents, 4 features))
    """

    def __init__(self, shards):
        self._shards = list(shards)
        if not self._shards:
            raise ValueError("there are no shards; expected at least one.")
        first = self._shards[0]
        named = [shard for shard in self._shards if getattr(shard, "columns", None) is not None]
        self.columns = named[0].columns if named else None
        for shard in named:
            if shard.columns != self.columns:
                odd = sorted({*shard.columns} ^ {*self.columns})
                differ = f"columns {odd}" if odd else "the order of their columns"
                raise ValueError(f"{shard.name} and {named[0].name} differ in {differ}; all shards must have the same columns.")
        for shard in self._shards:
            if shard.shape[1] != first.shape[1]:
                raise ValueError(
                    f"{shard.name} has {shard.shape[1]} features but {first.name} has {first.shape[1]}; "
                    "all shards must have the same."
                )
        check_whole_queries(
            [query_ids(shard.qid) for shard in self._shards],
            [shard.name for shard in self._shards],
            "Write the data again with write_shards",
        )
        self.n_features = first.shape[1]
        self.n_docs = sum(shard.shape[0] for shard in self._shards)

    def __len__(self):
        return len(self._shards)

    def __iter__(self):
        return iter(self._shards)

    def __getitem__(self, number):
        return self._shards[number]

    def __array__(self, dtype=None, copy=None):
        raise ValueError(
            "Shards cannot be used as one table; take them one at a time, as in [model.predict(shard.X) for shard in shards]."
        )

    def __repr__(self):
        return f"Shards({len(self)} shards, {self.n_docs} documents, {self.n_features} features)"


def column_names(X):
    """Return the column names of a frame as a tuple, or None if there are none or not all are strings.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"bm25": [1.0]})), column_names(np.eye(2))
    (('bm25',), None)
    """
    names = checks.column_names(X)
    return None if names is None or not all(isinstance(name, str) for name in names) else tuple(names)


def query_ids(qid):
    """Return the different query ids of a shard."""
    import pandas as pd

    return pd.unique(qid)


def check_whole_queries(ids, names, advice):
    """Raise if a query is in two shards.

    `ids` has the different query ids of each shard, `names` the names of the shards; `advice` ends the message.
    """
    import pandas as pd  # imported here and below: training on arrays does not need pandas

    codes, queries = pd.factorize(np.concatenate(ids), use_na_sentinel=False)
    if len(queries) == len(codes):
        return
    home = np.repeat(np.arange(len(ids)), [len(some) for some in ids])
    code = codes[np.flatnonzero(pd.Index(codes).duplicated())[0]]
    first, second = (names[number] for number in home[codes == code][:2])
    query = queries[code].item() if isinstance(queries[code], np.generic) else queries[code]
    raise ValueError(f"query {query!r} is in {first} and in {second}; a shard must hold whole queries. {advice}.")


def _array(kind, description):
    return property(lambda self: self._read(kind), doc=description)


class _Shard:
    """Base class of shards: arrays that ``_read(kind)`` returns when they are used, kind in "X", "y", "qid" and "weight"."""

    X = _array("X", "Features.")
    y = _array("y", "Labels.")
    qid = _array("qid", "Query of each row.")
    sample_weight = _array("weight", "Weight of each row's query, or None.")


class RowShard(_Shard):
    """Some rows of arrays in memory, or of a memory map.

    Parameters
    ----------
    X, y, qid, sample_weight
        The whole arrays, as for `cut_shards`.
    rows : slice or array of int
    name : str
    columns : tuple of str or None, default=None
        Names of the features.
    """

    def __init__(self, X, y, qid, sample_weight, rows, name, columns=None):
        self._arrays, self._rows = {"X": X, "y": y, "qid": qid, "weight": sample_weight}, rows
        self.name, self.columns = name, columns
        n_docs = len(range(*rows.indices(X.shape[0]))) if isinstance(rows, slice) else len(rows)
        self.shape = n_docs, X.shape[1]

    def __reduce__(self):
        # Only these rows are sent to another process.
        return RowShard, (self.X, self.y, self.qid, self.sample_weight, slice(None), self.name, self.columns)

    def _read(self, kind):
        return None if self._arrays[kind] is None else self._arrays[kind][self._rows]


@dataclass(frozen=True)
class NpyShard(_Shard):
    """One shard in .npy files, mapped from disk on access; writes to the arrays change memory only.

    Parameters
    ----------
    folder : str
    number : str
        As in the names of the files.
    weighted : bool
    columns : tuple of str or None, default=None
        Names of the features.
    checksums : tuple of (kind, int), default=()
        CRC-32 of the files, with which they are compared when they are first read in a process.
    """

    folder: str
    number: str
    weighted: bool
    columns: tuple | None = None
    checksums: tuple = ()

    @property
    def name(self):
        """Path of the features."""
        return str(self._path("X"))

    @property
    def shape(self):
        """Shape of X."""
        return self._map("X").shape

    def _path(self, kind):
        return Path(self.folder) / f"{kind}-{self.number}.npy"

    def verify(self):
        """Raise unless the files have the checksums of the index; each file is read once in a process, unless it changes."""
        for kind, _ in self.checksums:
            self._verify(kind)

    def _verify(self, kind):
        expected, path = dict(self.checksums).get(kind), self._path(kind)
        if expected is None or not path.exists():
            return
        status = path.stat()
        state = expected, status.st_size, status.st_mtime_ns
        if _verified.get(str(path)) == state:
            return
        found = _checksum(path)
        if found != expected:
            raise ValueError(
                f"{path} is damaged: its checksum is {found:08x}, and {_INDEX} says {expected:08x}. Copy the file again, or "
                "write the shards again with write_shards."
            )
        _verified[str(path)] = state

    def _read(self, kind):
        if kind == "weight" and not self.weighted:
            return None
        self._verify(kind)
        return self._map(kind)

    def _map(self, kind):
        path = self._path(kind)
        try:
            # Mapped privately: compiled functions would be compiled again for read-only arrays.
            return np.load(path, mmap_mode="c", allow_pickle=False).view(np.ndarray)
        except FileNotFoundError:
            raise ValueError(f"{path} is missing.") from None
        except (ValueError, EOFError, OSError, SyntaxError, tokenize.TokenError) as error:  # the header is Python source
            raise ValueError(f"{path} is not a .npy file of numbers or texts that can be mapped: {error}.") from None

    def check(self):
        """Raise unless the files fit together."""
        X = self._map("X")
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"{self.name} has shape {X.shape}; expected one row per document, one column per feature.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"{self.name} has dtype {X.dtype}; expected real numbers.")
        for kind in ("y", "qid", "weight")[: 3 if self.weighted else 2]:
            found = self._map(kind).shape
            if found != X.shape[:1]:
                raise ValueError(
                    f"{self._path(kind)} has shape {found}; expected {X.shape[:1]}, one entry per row of {self.name}."
                )


@dataclass(frozen=True)
class ParquetShard(_Shard):
    """One shard in a parquet file, read again on every access.

    Parameters
    ----------
    path : str
    label_column, qid_column : str
    weight_column : str or None
    columns : tuple of str
        Names of the features. X has type float32 if all of them do.
    """

    path: str
    label_column: str
    qid_column: str
    weight_column: str | None
    columns: tuple

    @property
    def name(self):
        """Path of the file."""
        return self.path

    @property
    def shape(self):
        """Shape of X."""
        return self._file().metadata.num_rows, len(self.columns)

    def _file(self):
        return import_parquet().ParquetFile(self.path)

    def _read(self, kind):
        if kind == "X":
            return self._read_features()
        name = {"y": self.label_column, "qid": self.qid_column, "weight": self.weight_column}[kind]
        return None if name is None else self._file().read(columns=[name], use_threads=False).column(name).to_numpy()

    def _read_features(self):
        file = self._file()
        types = {str(file.schema_arrow.field(name).type) for name in self.columns}
        X = np.empty(self.shape, dtype=np.float32 if types == {"float"} else np.float64)
        # A few columns at a time, so that little more than X itself is held; written by blocks of rows that stay in cache.
        for first in range(0, len(self.columns), _COLUMNS_AT_ONCE):
            names = list(self.columns[first : first + _COLUMNS_AT_ONCE])
            table = file.read(columns=names, use_threads=False)
            columns = [table.column(name).to_numpy() for name in names]
            for start in range(0, X.shape[0], _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                for number, column in enumerate(columns, first):
                    X[rows, number] = column[rows]
        return X

    def check(self):
        """Raise unless the file holds documents with numbers as features."""
        schema = self._file().schema_arrow
        found = str(schema.field(self.qid_column).type)
        if found.startswith(_NESTED):
            raise ValueError(
                f"{self.path}: column {self.qid_column!r} has type {found}; expected ids that are texts or numbers."
            )
        for name in self.columns:
            found = str(schema.field(name).type)
            if not found.startswith(("int", "uint", "float", "halffloat", "double", "bool")):
                raise ValueError(f"{self.path}: column {name!r} has type {found}; expected numbers. Encode or drop it first.")
        if self.shape[0] == 0:
            raise ValueError(f"{self.path} has no rows; remove it.")


def has_shards(folder):
    """Return whether a folder has the index that `write_shards` writes."""
    return (Path(folder) / _INDEX).is_file()


def _checksum(path):
    """Return the CRC-32 of a file: the fastest of the standard library, and any one damaged run of 32 bits is detected."""
    found, buffer = 0, bytearray(2**20)
    with open(path, "rb", buffering=0) as file:
        while n := file.readinto(buffer):
            found = zlib.crc32(memoryview(buffer)[:n], found)
    return found


def _checksum_of_index(index):
    content = {name: value for name, value in index.items() if name != "crc32"}
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _open(path, columns, verify):
    if path.is_dir():
        shards = _open_npy(path, verify) or [_open_parquet(file, columns) for file in sorted(path.glob("*.parquet"))]
        if not shards:
            raise ValueError(f"{path} holds no shards; expected X-00000.npy, ... as write_shards writes them, or *.parquet.")
    elif path.is_file():
        shards = [_open_parquet(path, columns)]
    else:
        raise ValueError(f"{path} does not exist; expected a folder of shards or a parquet file.")
    for shard in shards:
        shard.check()
    return shards


def _open_npy(folder, verify):
    if not (folder / _INDEX).exists():
        numbers = sorted(path.stem.removeprefix("X-") for path in folder.glob("X-*.npy"))
        return [NpyShard(str(folder), number, (folder / f"weight-{number}.npy").exists()) for number in numbers]
    try:
        index = json.loads((folder / _INDEX).read_text("utf-8"))
        if index["format"] != _FORMAT:
            raise ValueError(index["format"])
        n_features, columns = index["n_features"], index.get("columns")
        columns = None if columns is None else tuple(columns)
        checked = "crc32" in index or any("crc32" in entry for entry in index["shards"])
        if checked and index["crc32"] != _checksum_of_index(index):
            raise ValueError(index["crc32"])
        listed = []
        for entry in index["shards"]:
            checksums = tuple(entry["crc32"].items()) if checked and verify else ()
            listed.append((NpyShard(str(folder), entry["number"], index["weighted"], columns, checksums), entry["n_docs"]))
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / _INDEX} is damaged, or not written by write_shards.") from None
    for shard, n_docs in listed:
        if shard.shape != (n_docs, n_features):
            raise ValueError(f"{shard.name} has shape {shard.shape}; {_INDEX} says {(n_docs, n_features)}.")
    return [shard for shard, _ in listed]


def _open_parquet(path, columns):
    try:
        schema = import_parquet().ParquetFile(path).schema_arrow
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a parquet file: {error}.") from None
    names = schema.names
    checks.check_column_names(names, str(path))
    for kind, name in columns.items():
        if name not in names and not (kind == "sample_weight" and name is None):
            raise ValueError(f"{path} has no column {name!r} ({kind}=); it has {', '.join(map(repr, names))}.")
    # pandas stores the index of a frame among the columns, and its readers do not return it as a column either.
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    index = {"__null_dask_index__", *(name for name in index if isinstance(name, str))}
    features = tuple(name for name in names if name not in columns.values() and name not in index)
    if not features:
        raise ValueError(f"{path} has no columns besides {', '.join(map(repr, names))}; expected features.")
    return ParquetShard(str(path), columns["label"], columns["qid"], columns["sample_weight"], features)


def import_parquet():
    """Return pyarrow's module for parquet files."""
    return optional("pyarrow.parquet", "a parquet file", "pyarrow", "parquet")


def _storable(qid):
    """Return ids in a type that .npy files hold without pickle."""
    if qid.dtype.kind == "O" and all(isinstance(value, str) for value in qid):
        cut = next((value for value in qid if value.endswith("\0")), None)  # by numpy
        if cut is not None:
            raise ValueError(f"qid contains {cut!r}; .npy files cannot hold texts that end with a null character.")
        return qid.astype(str)
    if qid.dtype.kind not in "iufbUS":
        raise ValueError(f"qid has dtype {qid.dtype}; expected numbers or texts, which .npy files can hold.")
    return qid
