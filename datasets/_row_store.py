"""Rows that arrive block by block, gathered in arrays that grow in place."""

import re

import numpy as np
import scipy.sparse

from structrank._support.compile import kernel

_WIDEST_PADDING = 8  # times the text itself; with more, strings are Python objects
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class GrowingArray:
    """A 1-d array that is appended to; memory beyond its content is at most an eighth of it."""

    def __init__(self, dtype):
        self._array = np.empty(0, dtype=dtype)
        self.size = 0

    def extend(self, count):
        """Append `count` entries and return a view of them, valid until the array grows again."""
        needed = self.size + count
        if needed > self._array.size:
            # Callers no longer use earlier views, so no reference can dangle.
            self._array.resize(max(needed, self._array.size * 9 // 8), refcheck=False)
        self.size = needed
        return self._array[needed - count : needed]

    def append(self, values):
        """Append a copy of `values`."""
        self.extend(len(values))[:] = values

    def all(self):
        """Return the entries so far, for use before the next append."""
        return self._array[: self.size]

    def finish(self):
        """Return the array, cut to its content; nothing may be appended after."""
        self._array.resize(self.size, refcheck=False)
        return self._array


@kernel
def _scatter(values, columns, row_ends, out):
    start = 0
    for row in range(row_ends.shape[0]):
        out[row, :] = 0
        for place in range(start, row_ends[row]):
            out[row, columns[place]] = values[place]
        start = row_ends[row]


@kernel
def _widen(flat, n_rows, old, new):
    """Change the width of the rows in `flat` in place: the last row first, so that none is overwritten."""
    for row in range(n_rows - 1, -1, -1):
        for column in range(old - 1, -1, -1):
            flat[row * new + column] = flat[row * old + column]
        for column in range(old, new):
            flat[row * new + column] = 0


class DenseRows:
    """A matrix that grows by rows, and by columns where a later row has more."""

    def __init__(self, dtype, n_columns=0):
        self._flat = GrowingArray(dtype)
        self.n_rows, self.n_columns = 0, n_columns

    def append(self, values, columns, row_ends, n_columns):
        """Append rows given by their entries; `n_columns` is the width that these rows need."""
        if n_columns > self.n_columns:
            self._flat.extend(self.n_rows * (n_columns - self.n_columns))
            _widen(self._flat.all(), self.n_rows, self.n_columns, n_columns)
            self.n_columns = n_columns
        n_rows = row_ends.shape[0]
        out = self._flat.extend(n_rows * self.n_columns).reshape(n_rows, self.n_columns)
        _scatter(values, columns, row_ends, out)
        self.n_rows += n_rows

    def finish(self):
        """Return the matrix of shape (n_rows, n_columns)."""
        return self._flat.finish().reshape(self.n_rows, self.n_columns)


class SparseRows:
    """A CSR matrix that grows by rows; zeros are not stored."""

    def __init__(self, dtype, n_columns=0):
        self._values, self._columns = GrowingArray(dtype), GrowingArray(np.int32)
        self._row_sizes = GrowingArray(np.int32)
        self.n_columns = n_columns

    def append(self, values, columns, row_ends, n_columns):
        """Append rows given by their entries; `n_columns` is the width that these rows need."""
        stored = values.astype(self._values.all().dtype) != 0
        ends = np.concatenate([[0], np.cumsum(stored)])[row_ends]
        self._values.append(values[stored])
        self._columns.append(columns[stored])
        self._row_sizes.append(np.diff(ends, prepend=0))
        self.n_columns = max(self.n_columns, n_columns)

    def finish(self):
        """Return the matrix of shape (n_rows, n_columns), columns in order within each row."""
        values, columns, row_sizes = self._values.finish(), self._columns.finish(), self._row_sizes.finish()
        indptr = np.zeros(row_sizes.size + 1, dtype=np.int32 if values.size < 2**31 else np.int64)
        np.cumsum(row_sizes, out=indptr[1:])
        X = scipy.sparse.csr_matrix((values, columns, indptr), shape=(row_sizes.size, self.n_columns))
        X.sort_indices()
        return X


class QueryIds:
    """Query ids, run by run."""

    def __init__(self):
        self._numbers, self._runs, self._run_sizes = {}, GrowingArray(np.int64), GrowingArray(np.int64)

    def append(self, ids, run_sizes):
        """Append runs of rows, each with the id (str) of its query."""
        numbers = self._numbers
        self._runs.append([numbers.setdefault(name, len(numbers)) for name in ids])
        self._run_sizes.append(run_sizes)

    def finish(self):
        """Return one id per row: int64 if every id is an integer as Python prints it and fits, otherwise text."""
        names = list(self._numbers)
        if all(map(_INTEGER.fullmatch, names)) and all(-(2**63) <= int(name) < 2**63 for name in names):
            ids = np.array(list(map(int, names)), dtype=np.int64)
        else:
            ids = text_array(names)
        return np.repeat(ids[self._runs.finish()], self._run_sizes.finish())


class Names:
    """Document names, kept as bytes until all are read."""

    def __init__(self):
        self._bytes, self._ends = GrowingArray(np.uint8), GrowingArray(np.int64)

    def append(self, names, ends):
        """Append the names that end at `ends` of `names`."""
        self._ends.append(ends + self._bytes.size)
        self._bytes.append(names)

    def finish(self):
        """Return one name (str) per row, or None if all are empty; decoded as UTF-8, or else as Latin-1."""
        content, ends = self._bytes.finish(), self._ends.finish()
        if content.size == 0:
            return None
        starts = np.concatenate([[0], ends[:-1]])
        longest, step = int((ends - starts).max()), 4096
        if _wasteful(ends.size, longest, content.size):
            names = np.empty(ends.size, dtype=object)
        else:
            names = np.empty(ends.size, dtype=f"U{longest}")
        for first in range(0, ends.size, step):
            rows = slice(first, first + step)
            offset = starts[first]
            text = content[offset : ends[rows][-1]].tobytes()
            bounds = zip((starts[rows] - offset).tolist(), (ends[rows] - offset).tolist(), strict=True)
            names[rows] = [_decode(text[start:stop]) for start, stop in bounds]
        return names


def _decode(name):
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _wasteful(count, longest, total):
    """Return whether strings of one width would be mostly padding, as when one of them is very long."""
    return count * longest > _WIDEST_PADDING * total + 2**20


def text_array(texts):
    """Return strings as a fixed-width array, or as objects if one is so long that padding would be wasteful."""
    lengths = list(map(len, texts))
    wasteful = _wasteful(len(texts), max(lengths), sum(lengths))
    return np.array(texts, dtype=object if wasteful else np.str_)
