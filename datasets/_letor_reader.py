"""LETOR files into one Dataset: recognise the kind of lines, collect rows, report errors with their place."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structrank._support.checks import check_choice, check_number
from structrank._support.progress import bytes_progress
from structrank.datasets import _letor_parser as parser
from structrank.datasets._row_store import DenseRows, GrowingArray, Names, QueryIds, SparseRows
from structrank.datasets.containers import Dataset
from structrank.datasets.queries import put_query_minimum
from structrank.datasets.text_files import read_blocks

NULL_POLICIES = {"error": parser.NULL_ERROR, "min": parser.NULL_NAN, "zero": parser.NULL_ZERO, "keep": parser.NULL_NAN}

_LAST_ID = 2**31 - 2  # columns are int32
_PROGRESS_FROM = 50_000_000  # bytes
_MOST_FILLED_IN = 64  # ratio of the sizes of a dense matrix and its text above which it should be sparse
_SMALL = 2**26  # bytes that a dense matrix may always take
_ENOUGH_TO_COMPARE = 10  # equal lines before a shorter, unfinished line counts as truncated
_MISSING_FROM = 1.79e308  # Istella writes the largest double, variously rounded, for a missing value
_FIRST_DOCUMENT = re.compile(rb"^[ \t\r]*[^# \t\r\n].*$", re.MULTILINE)


@dataclass(frozen=True)
class ReadOptions:
    """How the text is read: the parameters of `load_letor` that change its result."""

    null: str = "error"
    sparse: bool = False
    dtype: type = np.float64
    n_features: int | None = None
    zero_based: bool = False

    def __post_init__(self):
        check_choice("null", self.null, NULL_POLICIES)
        if self.dtype not in (np.float32, np.float64, float, "float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not known; choose numpy.float64 or numpy.float32.")
        if self.n_features is not None:
            check_number("n_features", self.n_features, at_least=1, at_most=_LAST_ID, integer=True)

    @property
    def largest(self):
        """The largest value that `dtype` holds."""
        return float(np.finfo(self.dtype).max)

    @property
    def first_id(self):
        """The smallest feature id."""
        return 0 if self.zero_based else 1

    @property
    def last_id(self):
        """The largest feature id."""
        return _LAST_ID if self.n_features is None else self.n_features - 1 + self.first_id


class _LetorLines:
    """``label qid:id feature:value ... # comment``; without qid in LightGBM's files."""

    expected_label = "a label: a finite number of at least 0"

    def __init__(self, options, has_qid):
        self._options, self.has_qid = options, has_qid

    def read(self, text, size, rows):
        o = self._options
        null = NULL_POLICIES[o.null]
        return parser.read_letor(text, size, self.has_qid, o.first_id, o.last_id, null, o.largest, rows)


class _TableLines:
    """``query id, document name, values, label``, separated by tabs."""

    has_qid = True
    expected_label = "a label: an integer of at least 0, in the last column"

    def __init__(self, options, n_columns):
        self._options, self.n_columns = options, n_columns

    def read(self, text, size, rows):
        o = self._options
        return parser.read_table(text, size, self.n_columns, NULL_POLICIES[o.null], o.largest, rows)


class _Store:
    """Storage that all files of a data set are read into."""

    def __init__(self, options):
        rows = SparseRows if options.sparse else DenseRows
        self.X = rows(np.dtype(options.dtype), options.n_features or 0)
        self.labels, self.qids, self.names = GrowingArray(np.float64), QueryIds(), Names()
        self.n_text_bytes = 0
        self._n_groups = 0

    def next_group_ids(self, count):
        """Return ids for queries without ids: consecutive numbers over all files."""
        start, self._n_groups = self._n_groups, self._n_groups + count
        return [str(number) for number in range(start, self._n_groups)]

    def finish(self):
        return Dataset(self.X.finish(), self.labels.finish(), self.qids.finish(), self.names.finish())


class _FileReader:
    """Read one file into the common store."""

    def __init__(self, path, options, store):
        self._path, self._options, self._store = path, options, store
        self._lines = None
        self._n_rows = 0
        self._usual_size, self._all_named = None, True
        self._widest, self._widest_at = 0, ""
        self.query_ids = set()

    def read(self, progress):
        """Read the whole file; `progress` is called with the bytes read so far."""
        rows = None
        for block in read_blocks(self._path):
            if rows is None or rows.names.size < len(block.text):
                rows = parser.rows_for(len(block.text))
            if self._lines is None:
                self._lines = self._recognise(block)
            if self._lines is not None:
                self._read_block(block, rows)
            progress(block.read)
        if self._n_rows == 0:
            raise ValueError(f"{self._path} holds no document; expected lines such as '2 qid:10 1:0.5 2:0.25 #docid = A'.")
        if not self._lines.has_qid:
            self._add_groups()

    def _recognise(self, block):
        """Return the kind of lines, by the first document of the block; None without a document."""
        first = _FIRST_DOCUMENT.search(block.text, 0, block.size)
        if first is None:
            return None
        fields, tokens = first[0].split(b"\t"), first[0].split()
        has_qid = len(tokens) > 1 and tokens[1].startswith(b"qid:")
        beside = side_file(self._path)
        if has_qid or len(fields) < 4 or any(b":" in field for field in fields[2:]):
            # Without a side file a missing qid is an error, which the lines' reader reports with its place.
            return _LetorLines(self._options, has_qid or beside is None)
        place = f"{self._path}:{block.line_of(first.start())}"
        if beside is not None:
            raise ValueError(
                f"{place}: found tab-separated values, and group sizes in {beside.name}; expected LightGBM's "
                "'label feature:value ...' lines with that file, or LETOR 2.0's tab-separated lines without it."
            )
        n_columns, limit = len(fields) - 3, self._options.n_features
        if limit is not None and n_columns > limit:
            raise ValueError(f"{place}: found {n_columns} values, expected at most n_features={limit}.")
        return _TableLines(self._options, n_columns)

    def _read_block(self, block, rows):
        text = np.frombuffer(block.text, dtype=np.uint8)
        outcome = self._lines.read(text, block.size, rows)
        if outcome.problem != parser.GOOD:
            raise self._error(block, outcome.problem, outcome.position)
        if outcome.n_rows == 0:
            return
        self._read_hard_numbers(block, rows, outcome.n_hard)
        row_ends, name_ends = rows.row_ends[: outcome.n_rows], rows.name_ends[: outcome.n_rows]
        self._check_end(block, row_ends, name_ends)
        self._check_width(block, outcome)

        self._n_rows += outcome.n_rows
        store, n_values = self._store, row_ends[-1]
        store.X.append(rows.values[:n_values], rows.columns[:n_values], row_ends, outcome.last_column + 1)
        store.labels.append(rows.labels[: outcome.n_rows])
        store.names.append(rows.names[: name_ends[-1]], name_ends)
        if self._lines.has_qid:
            ids = self._query_ids_of(block, rows, outcome.n_runs)
            self.query_ids.update(ids)
            store.qids.append(ids, np.diff(rows.run_rows[: outcome.n_runs], append=outcome.n_rows))

    def _query_ids_of(self, block, rows, n_runs):
        ids = []
        for start, stop in zip(rows.run_starts[:n_runs].tolist(), rows.run_stops[:n_runs].tolist(), strict=True):
            try:
                ids.append(block.text[start:stop].decode("utf-8"))
            except UnicodeDecodeError:
                raise ValueError(
                    f"{self._path}:{block.line_of(start)}: found {_shown(block.text[start:stop])}, "
                    "expected a query id in UTF-8."
                ) from None
        return ids

    def _read_hard_numbers(self, block, rows, n_hard):
        for place, start, stop in zip(
            rows.hard_places[:n_hard].tolist(),
            rows.hard_starts[:n_hard].tolist(),
            rows.hard_stops[:n_hard].tolist(),
            strict=True,
        ):
            value = float(block.text[start:stop])
            if place >= 0:
                if _MISSING_FROM <= abs(value) < np.inf:
                    value = self._missing_value(block, start)
                elif abs(value) > self._options.largest:
                    raise self._error(block, parser.TOO_LARGE, start)
                rows.values[place] = value
            else:
                if not 0 <= value < np.inf:
                    raise self._error(block, parser.BAD_LABEL, start)
                rows.labels[-1 - place] = abs(value)

    def _missing_value(self, block, start):
        """Return the replacement of a missing value, by the policy for NULL."""
        if self._options.null == "error":
            raise self._error(block, parser.NULL_VALUE, start)
        return 0.0 if self._options.null == "zero" else np.nan

    def _check_end(self, block, row_ends, name_ends):
        """Raise if the last line has no newline and fewer fields than all lines before: the file is truncated."""
        sizes, named = np.diff(row_ends, prepend=0), np.diff(name_ends, prepend=0) > 0
        if not block.cut_short:
            if self._usual_size is None:
                self._usual_size = sizes[0]
            if np.any(sizes != self._usual_size):
                self._usual_size = -1  # no size is usual
            self._all_named = self._all_named and bool(named.all())
        elif self._n_rows >= _ENOUGH_TO_COMPARE:
            if sizes[0] < self._usual_size:
                found, usual = f"{sizes[0]} features", self._usual_size
            elif self._all_named and not named[0]:
                found, usual = "no comment", "one"
            else:
                return
            raise ValueError(
                f"{self._path}:{block.first_line}: the last line ends without a newline and has {found}, "
                f"while each of the {self._n_rows} documents before it has {usual}. The file seems "
                "truncated: download it again, or end the line with a newline if it is complete."
            )

    def _check_width(self, block, outcome):
        """Raise if a dense matrix would be huge and almost empty, as after a mistyped feature id."""
        X, options = self._store.X, self._options
        self._store.n_text_bytes += block.size
        if options.sparse or options.n_features is not None:
            return
        if outcome.last_column >= self._widest:
            self._widest = outcome.last_column + 1
            self._widest_at = f"{self._path}:{block.line_of(outcome.last_column_at)}: found "
            self._widest_at += _token(block, outcome.last_column_at)
        n_columns = max(X.n_columns, self._widest)
        n_bytes = (X.n_rows + outcome.n_rows) * n_columns * np.dtype(options.dtype).itemsize
        if n_bytes > max(_SMALL, _MOST_FILLED_IN * self._store.n_text_bytes):
            raise ValueError(
                f"{self._widest_at}, which makes X {n_columns} columns wide ({n_bytes / 1e6:,.0f} MB by line "
                f"{block.line_of(block.size - 1)}) and almost empty. If the feature id is right, pass "
                f"sparse=True; in Python, n_features={n_columns} keeps X dense."
            )

    def _add_groups(self):
        path = side_file(self._path)
        sizes = _group_sizes(path)
        if sum(sizes) != self._n_rows:
            raise ValueError(
                f"{path}: found group sizes that add up to {sum(sizes)}, expected {self._n_rows}, the number "
                f"of documents in {self._path}."
            )
        ids = self._store.next_group_ids(len(sizes))
        self.query_ids.update(ids)
        self._store.qids.append(ids, sizes)

    def _error(self, block, problem, position):
        options, found = self._options, _token(block, position)
        match problem:
            case parser.BAD_LABEL:
                expected = self._lines.expected_label
            case parser.BAD_QID:
                expected = (
                    "qid:<query id>, an id without blanks or colons, after the label (or, in a file without "
                    f"qid, LightGBM's group sizes in {Path(self._path).name}.query beside it)"
                )
            case parser.BAD_FEATURE:
                expected = "<feature id>:<value>, such as 3:0.25"
            case parser.BAD_ID:
                expected = f"a feature id from {options.first_id} to {options.last_id}"
                if options.n_features is not None:
                    expected += f", as n_features={options.n_features}"
                if not options.zero_based and found.startswith("'0:"):
                    expected += " (pass zero_based=True where ids count from 0)"
            case parser.BAD_VALUE:
                expected = "a finite decimal number as value"
            case parser.NULL_VALUE:
                expected = "a number that is not missing; "
                expected += "pass null='min' to use the query's smallest value, or null='zero'"
            case parser.TOO_LARGE:
                expected = f"a value that {np.dtype(options.dtype).name} holds, at most {options.largest:.3g}"
            case parser.TWICE:
                found, expected = self._repeated(block, position), "each feature id once in a line"
            case parser.BAD_FIELD:
                expected = "query id, document id, values and label, separated by tabs"
            case parser.BAD_COUNT:
                expected = f"{self._lines.n_columns} values and then a label, as in the first line"
        return ValueError(f"{self._path}:{block.line_of(position)}: found {found}, expected {expected}.")

    def _repeated(self, block, position):
        """Describe the feature id that a line has twice."""
        line = block.text[position : block.text.index(b"\n", position)].split(b"#")[0]
        ids = [int(token.split(b":")[0]) for token in line.split()[1 + self._lines.has_qid :]]
        first, second = next((a, b) for a, b in zip(sorted(ids), sorted(ids)[1:], strict=False) if a == b)
        return f"feature id {first} {ids.count(second)} times"


def _token(block, position):
    """Return the token that starts at a position of the text, for a message."""
    return _shown(re.match(rb"[^\s#]*", memoryview(block.text)[position : position + 200])[0])


def _shown(token):
    """Return a token for a message: short and printable."""
    try:
        text = bytes(token).decode("utf-8")
    except UnicodeDecodeError:
        return repr(bytes(token[:40]))
    return repr(text if len(text) <= 40 else f"{text[:40]}...") if text else "the end of the line"


def side_file(path):
    """Return LightGBM's file of group sizes that belongs to a data file, or None."""
    path = Path(path)
    names = [f"{path.name}.query"]
    if path.suffix in (".gz", ".bz2", ".xz"):
        names.append(f"{path.stem}.query")
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def _group_sizes(path):
    sizes = []
    for block in read_blocks(path):
        for number, line in enumerate(block.text[: block.size].splitlines(), start=block.first_line):
            text = line.strip()
            if not re.fullmatch(rb"(0*[1-9][0-9]{0,17})?", text):
                raise ValueError(f"{path}:{number}: found {_shown(text)}, expected a query's number of documents.")
            if text:
                sizes.append(int(text))
    return sizes


def read_letor_files(paths, options, verbose=None):
    """Read files that share no query, one after another, into one Dataset; `verbose` is as in `load_letor`."""
    paths = [os.fspath(path) for path in paths]
    sizes = [os.stat(path).st_size for path in paths]
    shown = sum(sizes) > _PROGRESS_FROM and (sys.stderr.isatty() if verbose is None else verbose > 0)
    store, file_of_query = _Store(options), {}
    with bytes_progress(os.path.basename(paths[0]), sum(sizes), shown) as show:
        for number, path in enumerate(paths):
            before = sum(sizes[:number])
            reader = _FileReader(path, options, store)
            reader.read(lambda done, before=before: show(before + done))
            for query in reader.query_ids & file_of_query.keys():
                raise ValueError(
                    f"query {query!r} is in {file_of_query[query]} and in {path}; files that share queries "
                    "are not one data set. Call load_letor for each file, or load_letor_folds for the folder."
                )
            file_of_query.update(dict.fromkeys(reader.query_ids, path))
    if store.X.n_columns == 0:
        raise ValueError(f"{paths[0]} holds no feature; expected <feature id>:<value> after the query id.")
    data = store.finish()
    if options.null == "min":
        put_query_minimum(data.X, data.qid)
    return data
