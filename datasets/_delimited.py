"""Tables in text files: read exactly as RFC 4180 defines them, or rejected with the row."""

from __future__ import annotations

import contextlib
import csv
import errno
import itertools
import os
import re
import struct
import zipfile
from operator import itemgetter
from pathlib import Path

import numpy as np

from structrank.datasets import text_files

COMPRESSED = {".gz", ".bz2", ".xz", ".zip"}

_CELLS_AT_ONCE = 2**16  # as many texts as stay in cache until they are converted
_NOT_NUMBERS = {
    **dict.fromkeys(("", "NULL", "null", "NA", "N/A", "NaN", "nan", "None"), np.nan),
    **dict.fromkeys(("True", "TRUE", "true"), 1.0),
    **dict.fromkeys(("False", "FALSE", "false"), 0.0),
}
_DECIMAL_COMMA = str.maketrans(",.", ".?")
_BAD_ARCHIVE = (zipfile.BadZipFile, NotImplementedError, RuntimeError, struct.error)  # RuntimeError: encrypted


class DelimitedFile:
    """A text file with one document a line, below a header.

    Parameters
    ----------
    path : path-like
    separator : {",", tab}
        Character between the fields. With ",", a header without commas may have semicolons or tabs instead, as spreadsheets
        write where the comma is decimal.

    Attributes
    ----------
    columns : list of str
        Names in the header; the first column is "Unnamed: 0" if it has none, as in pandas.
    index : tuple
        Empty: no column is the index of a frame.
    """

    index = ()

    def __init__(self, path, separator):
        self._path = path
        self._separator = self._separator_of_header() if separator == "," else separator
        header = next(self._records(), None)
        if header is None:
            raise self._error("it is empty; expected a header of column names.")
        self.columns = [name or f"Unnamed: {place}" for place, name in enumerate(header)]

    def read(self, ids, numbers):
        """Read columns, named in two lists, as texts and as numbers.

        Returns
        -------
        ids : list of list of str
        numbers : array of shape (n_docs, len(numbers))
            nan stands for an empty cell.
        wrong : dict
            Row, from 0, and content of the first cell that is not a number, for each column with such a cell in the first block
            of rows that has one; the file is read up to there.
        """
        texts, blocks, wrong = [[] for _ in ids], [], {}
        cells_of_ids, cells_of_numbers = ([itemgetter(self.columns.index(name)) for name in names] for names in (ids, numbers))
        parse = _NumberParser(decimal_comma=self._separator == ";")
        n_rows = 0
        for rows in self._blocks(max(1, _CELLS_AT_ONCE // len(self.columns))):
            for column, cell in zip(texts, cells_of_ids, strict=True):
                column.extend(map(cell, rows))
            cells = list(itertools.chain.from_iterable(map(cell, rows) for cell in cells_of_numbers))
            values, not_numbers = parse(cells)
            blocks.append(values.reshape(len(numbers), len(rows)).T)
            for place in not_numbers:
                column, row = divmod(place, len(rows))
                wrong.setdefault(numbers[column], (n_rows + row, cells[place]))
            if wrong:
                break
            n_rows += len(rows)
        return texts, np.concatenate(blocks) if blocks else np.empty((0, len(numbers))), wrong

    def _separator_of_header(self):
        with self._stream() as stream:
            header = next((line for line in self._decoded(stream) if line.strip("\r\n")), "")
        header = re.sub('"[^"]*"', "", header)
        return next((separator for separator in (",", ";", "\t") if separator in header), ",")

    def _blocks(self, rows_at_once):
        """Yield the rows below the header in lists."""
        records = itertools.islice(self._records(), 1, None)
        while rows := list(itertools.islice(records, rows_at_once)):
            yield rows

    def _records(self):
        """Yield the fields of the header and of each row, without blank lines; raise with the row if they are wrong."""
        with self._stream() as stream:
            yield from self._checked(csv.reader(self._decoded(stream), delimiter=self._separator, strict=True))

    def _checked(self, reader):
        row = n_columns = 0
        while True:
            line = reader.line_num + 1
            try:
                fields = next(reader, None)
            except csv.Error as error:
                raise self._error_at(
                    row,
                    line,
                    f"{error}; expected fields as in RFC 4180: a quote that opens a field is closed before the next "
                    f"{self._separator!r}, quotes inside are doubled, and lines end with a newline, or return and newline.",
                ) from None
            if fields is None:
                return
            if not fields:
                continue
            if self._separator == "\t" and reader.line_num > line:
                problem = "a quoted field continues on the next line; between tabs, expected a line for each document. "
                raise self._error_at(row, line, f"{problem}A field that starts with a quote needs another at its end.")
            n_columns = n_columns or len(fields)
            if len(fields) != n_columns:
                raise self._error_at(row, line, f"found {len(fields)} fields, expected {n_columns}, as the header has.")
            yield fields
            row += 1

    @contextlib.contextmanager
    def _stream(self):
        """Open the file, which may be compressed."""
        with open(self._path, "rb") as file:
            try:
                with self._unpacked(file) as stream:
                    yield stream
            except (*text_files.DAMAGED, *_BAD_ARCHIVE) as error:
                if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                    raise  # the disk, not the data, which may name impossible positions
                raise self._error(error) from None

    def _unpacked(self, file):
        if Path(self._path).suffix.lower() != ".zip":
            return text_files.unpacked(file)
        try:
            archive = zipfile.ZipFile(file)
            names = archive.namelist()
            member = archive.open(names[0]) if len(names) == 1 else None
        except ValueError as error:  # from damaged names and positions
            raise self._error(error) from None
        if member is None:
            raise self._error(f"the archive holds {len(names)} files; expected 1")
        return text_files.in_proportion(member, file)

    def _decoded(self, stream):
        """Yield the lines of a stream as texts."""
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise self._error(f"line {number}: {error}; expected text in UTF-8.") from None

    def _error(self, problem):
        return ValueError(f"{os.fspath(self._path)} cannot be read as a table: {problem}")

    def _error_at(self, row, line, problem):
        return ValueError(f"{os.fspath(self._path)}, {f'row {row}' if row else 'header'} (line {line}): {problem}")


class _NumberParser:
    """Convert cells to numbers, block by block; all have decimal points, or else all have decimal commas."""

    def __init__(self, decimal_comma):
        self._decided, self._comma = not decimal_comma, False

    def __call__(self, cells):
        """Return the numbers (nan for empty cells) and the places of cells that are neither."""
        joined = "".join(cells)
        if not self._decided:
            self._decided, self._comma = "." in joined or "," in joined, "." not in joined and "," in joined
        if self._comma:
            cells = [cell.translate(_DECIMAL_COMMA) for cell in cells]
        if _is_plain(joined):
            with contextlib.suppress(ValueError):
                return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells)), []
        values = [_number(cell) for cell in cells]
        return np.array(values, dtype=np.float64), [place for place, value in enumerate(values) if value is None]


def _is_plain(text):
    """Return whether no part of a text is a number for `float` alone, such as 1_000 and the digits of other scripts."""
    return text.isascii() and "_" not in text


def _number(cell):
    if _is_plain(cell):
        with contextlib.suppress(ValueError):
            return float(cell)
    return _NOT_NUMBERS.get(cell)
