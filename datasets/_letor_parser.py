"""Compiled readers of LETOR lines: text in, rows out. Python provides the buffers and writes the messages."""

from typing import NamedTuple

import numpy as np

from structrank._support.compile import kernel
from structrank.datasets._decimals import EXACT, HARD, NINE, NOT_A_NUMBER, ZERO, read_number

# Errors at a position of the text.
GOOD, BAD_LABEL, BAD_QID, BAD_FEATURE, BAD_ID, BAD_VALUE = range(6)
NULL_VALUE, TOO_LARGE, TWICE, BAD_FIELD, BAD_COUNT = range(6, 11)

# Treatment of NULL.
NULL_ERROR, NULL_ZERO, NULL_NAN = range(3)

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _COLON, _EQUALS, _DELETE = b"\t\n\r #:=\x7f"
_QID, _NULL, _DOCID = (np.frombuffer(word, dtype=np.uint8) for word in (b"qid:", b"NULL", b"docid"))


class Rows(NamedTuple):
    """The documents of one block of text.

    Attributes
    ----------
    labels : (max_rows,) array
    values, columns : (max_values,) arrays
        The features of row r are at ``row_ends[r - 1]:row_ends[r]``, in the order of the file; columns count from 0.
    row_ends : (max_rows,) array of int
    run_rows, run_starts, run_stops : (max_rows,) arrays of int
        Runs of rows with the same query id: the first row, and where in the text its id is.
    names : (n_bytes,) array of uint8
        The document names, one after another; that of row r ends at ``name_ends[r]``.
    name_ends : (max_rows,) array of int
    hard_places, hard_starts, hard_stops : (max_values + max_rows,) arrays of int
        Numbers that ``float()`` must read: place p is ``values[p]``, place -1 - r is ``labels[r]``.
    """

    labels: np.ndarray
    values: np.ndarray
    columns: np.ndarray
    row_ends: np.ndarray
    run_rows: np.ndarray
    run_starts: np.ndarray
    run_stops: np.ndarray
    names: np.ndarray
    name_ends: np.ndarray
    hard_places: np.ndarray
    hard_starts: np.ndarray
    hard_stops: np.ndarray


class Outcome(NamedTuple):
    """Result of a reader: the error and its position, and how much of `Rows` is filled."""

    problem: int
    position: int
    n_rows: int
    n_runs: int
    n_hard: int
    last_column: int
    last_column_at: int


def rows_for(n_bytes):
    """Return buffers that no text of `n_bytes` can overfill; unused parts cost no memory."""
    max_rows = max_values = n_bytes // 2 + 1  # "0\n" is the shortest row, "0\t" the shortest value

    def integers(size):
        return np.empty(size, dtype=np.int64)

    return Rows(
        labels=np.empty(max_rows),
        values=np.empty(max_values),
        columns=np.empty(max_values, dtype=np.int32),
        row_ends=integers(max_rows),
        run_rows=integers(max_rows),
        run_starts=integers(max_rows),
        run_stops=integers(max_rows),
        names=np.empty(n_bytes, dtype=np.uint8),
        name_ends=integers(max_rows),
        hard_places=integers(max_rows + max_values),
        hard_starts=integers(max_rows + max_values),
        hard_stops=integers(max_rows + max_values),
    )


@kernel(inner=True)
def _wrong(problem, position):
    return Outcome(problem, position, 0, 0, 0, 0, 0)


@kernel(inner=True)
def _skip_blanks(text, i):
    """Return the position of the next non-blank byte; the return of a return-newline is a blank."""
    while text[i] == _SPACE or text[i] == _TAB or (text[i] == _RETURN and text[i + 1] == _NEWLINE):
        i += 1
    return i


@kernel(inner=True)
def _ends_token(text, i):
    return text[i] in (_SPACE, _NEWLINE, _TAB, _HASH) or (text[i] == _RETURN and text[i + 1] == _NEWLINE)


@kernel(inner=True)
def _starts_with(text, i, word):
    """Return whether `word` is at `i`; the newline that ends the text differs from any word."""
    for j in range(word.shape[0]):  # noqa: SIM110 (compiled code has no generators)
        if text[i + j] != word[j]:
            return False
    return True


@kernel(inner=True)
def _read_value(text, i, null, largest):
    """Return (problem, status, value, stop) of a feature's value, which may be NULL."""
    status, value, stop = read_number(text, i)
    if status == NOT_A_NUMBER:
        if not _starts_with(text, i, _NULL):
            return BAD_VALUE, status, value, i
        if null == NULL_ERROR:
            return NULL_VALUE, status, value, i
        return GOOD, EXACT, 0.0 if null == NULL_ZERO else np.nan, i + _NULL.shape[0]
    if abs(value) > largest:
        return TOO_LARGE, status, value, i
    return GOOD, status, value, stop


@kernel(inner=True)
def _add_run(text, start, stop, row, n_runs, rows):
    """Add `row` to the last run if the query id is the same, otherwise start a new run."""
    if n_runs > 0:
        before = rows.run_starts[n_runs - 1]
        if rows.run_stops[n_runs - 1] - before == stop - start:
            same = True
            for j in range(stop - start):
                if text[before + j] != text[start + j]:
                    same = False
                    break
            if same:
                return n_runs
    rows.run_rows[n_runs], rows.run_starts[n_runs], rows.run_stops[n_runs] = row, start, stop
    return n_runs + 1


@kernel(inner=True)
def _add_hard(place, start, stop, n_hard, rows):
    rows.hard_places[n_hard], rows.hard_starts[n_hard], rows.hard_stops[n_hard] = place, start, stop
    return n_hard + 1


@kernel(inner=True)
def _add_name(text, start, stop, row, rows):
    end = rows.name_ends[row - 1] if row > 0 else 0
    for j in range(start, stop):
        rows.names[end] = text[j]
        end += 1
    rows.name_ends[row] = end


@kernel(inner=True)
def _name_in_comment(text, i):
    """Return start and stop of the name in a comment, X of "docid = X ..." or all of it, and the line's end."""
    start = _skip_blanks(text, i)
    newline = start
    while text[newline] != _NEWLINE:
        newline += 1
    stop = newline
    while stop > start and (text[stop - 1] == _SPACE or text[stop - 1] == _TAB or text[stop - 1] == _RETURN):
        stop -= 1
    if _starts_with(text, start, _DOCID):
        j = _skip_blanks(text, start + _DOCID.shape[0])
        if text[j] == _EQUALS:
            j = _skip_blanks(text, j + 1)
            if j < stop:
                start = j
                while j < stop and text[j] != _SPACE and text[j] != _TAB:
                    j += 1
                stop = j
    return start, stop, newline


@kernel(inner=True)
def _repeated(columns):
    """Return whether a column appears twice."""
    # A merge sort: numba's quicksort takes quadratic time for columns of which all but one are in order, and its merge sort
    # two seconds to compile.
    n, width = columns.shape[0], 1
    ordered, merged = np.empty(n, columns.dtype), np.empty(n, columns.dtype)
    for j in range(n):
        ordered[j] = columns[j]
    while width < n:
        for low in range(0, n, 2 * width):
            left, right = low, low + width
            middle, high = min(low + width, n), min(low + 2 * width, n)
            for target in range(low, high):
                if right >= high or (left < middle and ordered[left] <= ordered[right]):
                    merged[target] = ordered[left]
                    left += 1
                else:
                    merged[target] = ordered[right]
                    right += 1
        ordered, merged = merged, ordered
        width *= 2
    for j in range(1, n):  # noqa: SIM110 (compiled code has no generators)
        if ordered[j] == ordered[j - 1]:
            return True
    return False


@kernel
def read_letor(text, size, has_qid, first_id, last_id, null, largest, rows):
    """Read lines ``label qid:id feature:value ... # comment``; blank lines and lines of comment are skipped.

    Parameters
    ----------
    text : (n,) array of uint8
        The first `size` bytes are whole lines.
    size : int
    has_qid : bool
        False reads ``label feature:value ...``.
    first_id, last_id : int
        Range of valid feature ids.
    null : int
        `NULL_ERROR`, `NULL_ZERO` or `NULL_NAN`.
    largest : float
        Largest absolute value that is accepted.
    rows : Rows
        Filled with the documents.

    Returns
    -------
    Outcome
        With `TWICE` the position is that of the line, otherwise that of the wrong token.
    """
    row = n_values = n_runs = n_hard = i = np.int64(0)  # a literal as argument would compile functions of its own
    top, top_at = -1, 0
    while i < size:
        i = _skip_blanks(text, i)
        line = i
        if text[i] == _NEWLINE:
            i += 1
            continue
        if text[i] == _HASH:
            while text[i] != _NEWLINE:
                i += 1
            continue

        status, label, stop = read_number(text, i)
        if status == NOT_A_NUMBER or label < 0 or not _ends_token(text, stop):
            return _wrong(BAD_LABEL, i)
        if status == HARD:
            n_hard = _add_hard(-1 - row, i, stop, n_hard, rows)
        rows.labels[row] = abs(label)
        i = _skip_blanks(text, stop)

        if has_qid:
            if not _starts_with(text, i, _QID):
                return _wrong(BAD_QID, i)
            start = stop = i + _QID.shape[0]
            while not _ends_token(text, stop):
                if text[stop] < _SPACE or text[stop] == _COLON or text[stop] == _DELETE:
                    return _wrong(BAD_QID, i)
                stop += 1
            if stop == start:
                return _wrong(BAD_QID, i)
            n_runs = _add_run(text, start, stop, row, n_runs, rows)
            i = _skip_blanks(text, stop)

        first_value, before, in_order = n_values, -1, True
        while text[i] != _NEWLINE and text[i] != _HASH:
            token, column = i, 0
            while ZERO <= text[i] <= NINE:
                column = min(10 * column + (np.int64(text[i]) - ZERO), 1 << 40)
                i += 1
            if i == token or text[i] != _COLON:
                return _wrong(BAD_FEATURE, token)
            if column < first_id or column > last_id:
                return _wrong(BAD_ID, token)
            column -= first_id
            problem, status, value, stop = _read_value(text, i + 1, null, largest)
            if problem != GOOD:
                return _wrong(problem, token)
            if not _ends_token(text, stop):
                return _wrong(BAD_VALUE, token)
            if status == HARD:
                n_hard = _add_hard(n_values, i + 1, stop, n_hard, rows)
            in_order &= column > before
            before = column
            if column > top:
                top, top_at = column, token
            rows.values[n_values] = value
            rows.columns[n_values] = column
            n_values += 1
            i = _skip_blanks(text, stop)
        if not in_order and _repeated(rows.columns[first_value:n_values]):
            return _wrong(TWICE, line)
        rows.row_ends[row] = n_values

        if text[i] == _HASH:
            start, stop, i = _name_in_comment(text, i + 1)
            _add_name(text, start, stop, row, rows)
        else:
            _add_name(text, i, i, row, rows)
        row += 1
        i += 1
    return Outcome(GOOD, 0, row, n_runs, n_hard, top, top_at)


@kernel(inner=True)
def _read_field(text, i):
    """Return start and stop of a text field, without surrounding blanks, and of its tab; start = stop if it is malformed."""
    while text[i] == _SPACE:
        i += 1
    end = i
    while text[end] >= _SPACE and text[end] != _DELETE:
        end += 1
    stop = end
    while stop > i and text[stop - 1] == _SPACE:
        stop -= 1
    if text[end] != _TAB:
        stop = i
    return i, stop, end


@kernel
def read_table(text, size, n_columns, null, largest, rows):
    """Read LETOR 2.0's tab-separated lines: ``query id, document name, n_columns values, label``.

    Parameters and result are those of `read_letor`. Every line must have all columns, and labels are integers.
    """
    row = n_values = n_runs = n_hard = i = np.int64(0)  # a literal as argument would compile functions of its own
    top, top_at = n_columns - 1, 0
    while i < size:
        line = _skip_blanks(text, i)
        if text[line] == _NEWLINE:
            i = line + 1
            continue
        if text[line] == _HASH:
            i = line
            while text[i] != _NEWLINE:
                i += 1
            continue

        start, stop, i = _read_field(text, i)
        if stop == start:
            return _wrong(BAD_FIELD, start)
        n_runs = _add_run(text, start, stop, row, n_runs, rows)
        start, stop, i = _read_field(text, i + 1)
        if stop == start:
            return _wrong(BAD_FIELD, start)
        _add_name(text, start, stop, row, rows)

        for column in range(n_columns):
            i += 1
            while text[i] == _SPACE:
                i += 1
            problem, status, value, stop = _read_value(text, i, null, largest)
            if problem != GOOD:
                return _wrong(problem, i)
            if status == HARD:
                n_hard = _add_hard(n_values, i, stop, n_hard, rows)
            rows.values[n_values] = value
            rows.columns[n_values] = column
            n_values += 1
            start = i
            i = stop
            while text[i] == _SPACE:
                i += 1
            if text[i] != _TAB:
                if text[i] == _NEWLINE or text[i] == _RETURN:
                    return _wrong(BAD_COUNT, start)
                return _wrong(BAD_VALUE, start)
        rows.row_ends[row] = n_values

        i += 1
        while text[i] == _SPACE:
            i += 1
        label, stop = 0, i
        while ZERO <= text[stop] <= NINE and stop - i < 18:
            label = 10 * label + (np.int64(text[stop]) - ZERO)
            stop += 1
        if stop == i or not _ends_token(text, stop):
            return _wrong(BAD_LABEL, i)
        after = _skip_blanks(text, stop)
        if text[after] != _NEWLINE:
            return _wrong(BAD_COUNT, after)
        rows.labels[row] = label
        row += 1
        i = after + 1
    return Outcome(GOOD, 0, row, n_runs, n_hard, top, top_at)
