"""Checks of input. Every message names the value found, its place, and the expected value."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import numbers
import os
import re

import numpy as np
import scipy.sparse

from structrank._support.discounts import DISCOUNTS, GAINS
from structrank._support.text import printable

# Range of nonzero query weights: sums and shares of weights neither overflow nor underflow.
WEIGHTS = 1e-100, 1e100
_NO_NUMBERS = np.bool_, np.timedelta64  # of numpy's scalars; it registers timedelta64 as an integer
_MOST_THREADS = 1024  # more than any machine runs well, and few enough that OpenMP can start them


class StructRankWarning(UserWarning):
    """Something the user should know about a result that is not an error."""

    def __str__(self):
        return printable(super().__str__())  # names and paths come from files


def show(value):
    """Return the repr of a value, with numpy scalars as Python numbers."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_choice(name, value, choices):
    """Raise unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known; choose one of: {', '.join(map(repr, choices))}.")
    return value


def check_number(name, value, *, above=None, below=None, at_least=None, at_most=None, integer=False, otherwise=""):
    """Raise unless `value` is a finite number (an integer if requested) within the bounds; `otherwise` ends the error."""
    kind = numbers.Integral if integer else numbers.Real
    what = "an integer" if integer else "a number"
    bound = f" above {above}" if above is not None else f" of at least {at_least}" if at_least is not None else ""
    bound += f" and below {below}" if below is not None else f" and at most {at_most}" if at_most is not None else ""
    good = isinstance(value, kind) and not isinstance(value, (bool, *_NO_NUMBERS)) and _in_range(value, integer)
    too_low = good and ((above is not None and value <= above) or (at_least is not None and value < at_least))
    too_high = good and ((below is not None and value >= below) or (at_most is not None and value > at_most))
    if not good or too_low or too_high:
        raise ValueError(f"{name}={value!r} is not valid: expected {what}{bound}{otherwise}.")
    return int(value) if integer else float(value)


def _in_range(value, integer):
    """Return whether a number is finite, also as int64 or float64."""
    try:
        return math.isfinite(value) and (not integer or -(2**63) <= value < 2**63)
    except OverflowError:
        return False


def check_fitted_attribute(model, name, kind):
    """Return a fitted attribute of a loaded model; raise if it is missing or not of this class."""
    value = getattr(model, name, None)
    if not isinstance(value, kind):
        found = "is missing" if value is None else f"is a {type(value).__name__}"
        raise ValueError(f"the fitted attribute {name} {found}; expected {kind.__name__}")
    return value


def check_array(name, value, kinds, shape):
    """Raise unless `value` is an array of one of these kinds of numpy types, and of this shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.shape != shape:
        found = f"an array of {value.dtype}, shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"{name} is {found}; expected an array of shape {shape}")
    return value


def check_magnitudes(name, values, least, most):
    """Raise unless the absolute values of an array, of a loaded model, lie in a range."""
    wrong = ~((np.abs(values) >= least) & (np.abs(values) <= most))
    if wrong.any():
        raise ValueError(f"{name} has {values[wrong][0]}; expected magnitudes from {least:g} to {most:g}")


def check_column_names(names, owner="X"):
    """Raise if column names repeat, or some are strings and others are not: scikit-learn rejects both, after training."""
    if names is None:
        return
    names, seen = list(names), set()
    repeated = [name for name in names if name in seen or seen.add(name)]
    if repeated:
        places = [str(place) for place, name in enumerate(names) if name == repeated[0]]
        raise ValueError(
            f"{owner} has {len(places)} columns named {repeated[0]!r} (columns {', '.join(places)}); expected different names. "
            "Rename or drop them first."
        )
    texts = [name for name in names if isinstance(name, str)]
    if texts and len(texts) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f"{owner} has the column names {texts[0]!r} and {other!r}, a text and a {type(other).__name__}; expected all to "
            "be texts (X.columns = X.columns.astype(str)), or none."
        )


def check_Cs(Cs):
    """Return values of C as a list, in the given order; raise unless there is at least one and all are above 0."""
    if as_array(Cs, "Cs").ndim == 0:
        raise ValueError(f"Cs={Cs!r} is not valid: expected a list of values of C.")
    Cs = [check_number("Cs", C, above=0) for C in Cs]
    if not Cs:
        raise ValueError("Cs is empty; expected at least one value of C.")
    return Cs


def check_cut(name, value, none="no cut"):
    """Raise unless `value` is an integer of at least 1, or None, whose meaning `none` describes."""
    return None if value is None else check_number(name, value, at_least=1, integer=True, otherwise=f", or None for {none}")


def check_gain(name, value):
    """Return a gain: the name of one, or a table of the gains of labels 0, 1, ... as a tuple."""
    if isinstance(value, str) or as_array(value, name).ndim == 0:
        return check_choice(name, value, GAINS)
    table = tuple(check_number(name, one, at_least=0) for one in value)
    if len(table) < 2 or any(low >= high for low, high in itertools.pairwise(table)):
        raise ValueError(f"{name}={value!r} is not valid: expected the gains of labels 0, 1, ..., which must rise.")
    return table


# The fields of criteria and measures that mean the same in all of them.
SETTINGS = {
    "k": check_cut,
    "gain": check_gain,
    "discount": lambda name, value: check_choice(name, value, tuple(DISCOUNTS)),
    "relevant_from": check_number,
}


def check_settings(thing):
    """Check the fields of a criterion or measure that `SETTINGS` lists."""
    for setting in dataclasses.fields(thing):
        if setting.name in SETTINGS:
            checked = SETTINGS[setting.name](setting.name, getattr(thing, setting.name))
            if isinstance(checked, tuple):  # can be hashed, unlike a list
                object.__setattr__(thing, setting.name, checked)


def make(cls, settings):
    """Create an object of a dataclass from the settings that are its fields."""
    names = {setting.name for setting in dataclasses.fields(cls) if setting.init}
    return cls(**{name: value for name, value in settings.items() if name in names})


def check_extension(cls, base, always_given=()):
    """Raise unless `cls` is a frozen dataclass derived from `base` whose fields, except those always given, have defaults."""
    if not isinstance(cls, type) or not issubclass(cls, base):
        found = f"the class {cls.__name__}" if isinstance(cls, type) else f"{cls!r}"
        raise ValueError(f"{found} is not valid: expected a class derived from {base.__module__}.{base.__name__}.")
    parameters = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise ValueError(f"{cls.__name__} is not a frozen dataclass; write @dataclass(frozen=True) above the class.")
    for field in dataclasses.fields(cls):
        if field.default is field.default_factory is dataclasses.MISSING and field.name not in always_given:
            raise ValueError(f"{cls.__name__} has no default for {field.name!r}, which is needed to create it by name.")


def check_name_is_free(name, cls, taken):
    """Raise if a name, or that of the class, belongs to another class; the same class may be defined again.

    `taken` is a dict from names to their classes.
    """
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_-]*", name):
        raise ValueError(
            f"{cls.__name__} has the name {name!r}; expected lowercase letters, digits, '-' and '_', with a letter first."
        )
    for other_name, other in taken.items():
        if (other.__module__, other.__qualname__) == (cls.__module__, cls.__qualname__):
            continue
        for what, one, another in (("name", name, other_name), ("class name", cls.__name__, other.__name__)):
            if one == another:
                raise ValueError(
                    f"the {what} {one!r} is taken by {other.__module__}.{other.__qualname__}; choose "
                    f"another for {cls.__module__}.{cls.__qualname__}."
                )


def check_falling(values, what, symbol):
    """Raise unless values by rank are finite, at least 0, and never rise.

    `what` and `symbol` name them in the error, as in "decay has A(1) = 2 after A(0) = 1".
    """
    wrong = np.flatnonzero(~(values >= 0) | ~np.isfinite(values) | (np.diff(values, prepend=np.inf) > 0))
    if wrong.size:
        r = int(wrong[0])
        raise ValueError(
            f"{what} has {symbol}({r}) = {values[r]:g}"
            + (f" after {symbol}({r - 1}) = {values[r - 1]:g}" if r else "")
            + "; expected finite values of at least 0 that never rise with the rank."
        )


def check_empty(value):
    """Raise unless `value`, which stands for an undefined query, is a finite number or nan."""
    if isinstance(value, numbers.Real) and np.isnan(value):
        return float(value)
    return check_number("empty", value, otherwise=", or nan to skip such queries")


def count_rows(values, name):
    """Return the number of rows of the array that others must match; raise if there are none."""
    shape = as_array(values, name).shape
    if not shape or shape[0] == 0:
        found = "has 0 rows" if shape else f"is {values!r}"
        raise ValueError(f"{name} {found}; expected one value per document, for at least one document.")
    return shape[0]


def check_dataset(name, part):
    """Raise unless `part` has X, y and qid."""
    if not all(hasattr(part, attribute) for attribute in ("X", "y", "qid")):
        example = f"fold.{name}" if hasattr(part, name) else "structrank.datasets.Dataset(X, y, qid)"
        if isinstance(part, (str, os.PathLike)):
            example = "that of datasets.load_table or datasets.load_letor"
        raise ValueError(f"{name} is a {type(part).__name__}; expected a Dataset, such as {example}.")


def check_sparse(X, name="X"):
    """Raise unless the arrays of a sparse matrix fit its shape: neither SciPy nor compiled code checks them."""
    if not scipy.sparse.issparse(X) or X.ndim != 2:
        return
    axes = []
    if X.format == "coo":
        axes = list(zip((X.row, X.col), X.shape, ("row", "column"), strict=True))
        _check_parts(name, X.data, row=X.row, col=X.col)
    elif X.format in ("csr", "csc", "bsr"):
        n_lines, n_places = X.shape[:: -1 if X.format == "csc" else 1]
        block = X.blocksize if X.format == "bsr" else (1, 1)
        indptr, expected = X.indptr, (n_lines // block[0] + 1,)
        _check_parts(name, indptr=indptr, indices=X.indices)
        if indptr.shape != expected or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]) or indptr[-1] > X.indices.shape[0]:
            raise ValueError(
                f"{name}.indptr is broken: expected {expected[0]} numbers that start at 0, never fall and end at no more than "
                f"{X.indices.shape[0]}, the number of indices. Build the matrix again, for example from {name}.tocoo()."
            )
        if X.data.ndim != (3 if X.format == "bsr" else 1) or X.data.shape[0] < indptr[-1]:
            raise ValueError(f"{name}.data has shape {X.data.shape}; {name}.indptr ends at {indptr[-1]}.")
        axes = [(X.indices[: indptr[-1]], n_places // block[1], "row" if X.format == "csc" else "column")]
    elif X.format == "lil":
        if X.rows.shape != X.shape[:1] or X.data.shape != X.shape[:1] or [*map(len, X.rows)] != [*map(len, X.data)]:
            raise ValueError(f"{name}.rows and {name}.data differ in their lengths; expected a column index for each value.")
        axes = [(np.array([*itertools.chain.from_iterable(X.rows)]), X.shape[1], "column")]
    elif X.format == "dia" and X.data.shape[:-1] != X.offsets.shape:
        raise ValueError(f"{name}.data has shape {X.data.shape}; expected a row for each of {X.offsets.size} offsets.")
    for indices, n, what in axes:
        if indices.size and not 0 <= indices.min() <= indices.max() < n:
            place = int(np.argmax((indices < 0) | (indices >= n)))
            raise ValueError(f"{name} has the {what} index {indices[place]} at entry {place}; expected 0 to {n - 1}.")


def _check_parts(name, data=None, **parts):
    """Raise unless the parts of a sparse matrix are 1-d arrays of integers, as many as there are data."""
    for part, values in parts.items():
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ValueError(f"{name}.{part} has type {values.dtype} and {values.ndim} dimension(s); expected integers, 1-d.")
        if data is not None and values.shape != data.shape:
            raise ValueError(f"{name}.{part} has {values.shape[0]} entries; {name}.data has shape {data.shape}.")


def as_array(values, name):
    r"""Convert an array-like argument to a numpy array; every one passes here before it is used.

    Raises if a value is masked, since a mask would be ignored, and if rows differ in length. np.matrix becomes a plain array,
    and texts that end with a null character, which numpy would cut off, an array of objects.

    Examples
    --------
    >>> as_array([1, 2], "y"), as_array(["a", "a\0"], "qid")
    (array([1, 2]), array(['a', 'a\x00'], dtype=object))
    """
    if hasattr(values, "to_numpy"):  # pandas, polars, arrays of other libraries
        with contextlib.suppress(TypeError, ValueError):  # pyarrow refuses to copy
            values = values.to_numpy()
    _check_no_mask(values, name)
    if isinstance(values, np.ndarray) and not isinstance(values, (np.matrix, np.ma.MaskedArray)):
        return values  # a memory map stays one
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} {_ragged(values) or f'is a {type(values).__name__} that is no array ({error})'}.") from None
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        texts = np.array(values, dtype=object)
        if any(isinstance(text, (str, bytes)) and text[-1:] in ("\0", b"\0") for text in texts.flat):
            return texts
    return array


def _check_no_mask(values, name):
    masked = np.argwhere(np.ma.getmaskarray(values)) if isinstance(values, np.ma.MaskedArray) else ()
    if isinstance(values, (list, tuple)):
        masked = [(row,) for row, value in enumerate(values) if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)]
    if len(masked):
        place = ", ".join(f"{what} {number}" for what, number in zip(("row", "column"), masked[0], strict=False))
        raise ValueError(
            f"{name} has a masked value at {place or 'its only place'} ({len(masked)} in all); masks are not used. Drop these "
            f"rows first, or fill them, as in {name}.filled(0)."
        )


def _ragged(values):
    """Return which rows of nested sequences differ in length; None if none do."""
    lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, (str, bytes)) else None for row in values]
    other = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if other is None:
        return None
    first, second = ("a single value" if length is None else f"{length} values" for length in (lengths[0], lengths[other]))
    return f"has {first} in row 0 and {second} in row {other}; expected as many in each row"


def as_matrix(X, name="X", check_indices=True):
    """Return a 2-d numpy array (the caller's own memory where possible) or a CSR matrix; values are not checked.

    `check_indices` is False for a matrix that has been checked before.
    """
    if scipy.sparse.issparse(X) and X.ndim == 2:
        if check_indices:
            check_sparse(X, name)
        X = X.tocsr()
        _check_real(X.data, name)
        if X.dtype not in (np.float32, np.float64):
            try:
                X = X.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"{name} has dtype {X.dtype} with values that are no numbers; expected numbers.") from None
    else:
        X = _as_dense(X, name)
    if X.ndim != 2:
        raise ValueError(
            f"{name} has {X.ndim} dimension(s); expected 2: one row per document, one column per feature. "
            f"Reshape your data with {name}.reshape(-1, 1) if it has a single feature, or {name}.reshape(1, -1) "
            "if it is a single document."
        )
    if X.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def as_table(X):
    """Return a table of a lazy or columnar library as a data frame with `columns` and `to_numpy`; other X unchanged."""
    if hasattr(X, "to_numpy"):  # pandas, polars, arrays of other libraries
        return X
    if hasattr(X, "collect_schema"):  # polars LazyFrame
        return X.collect()
    return X.to_pandas() if hasattr(X, "to_pandas") else X  # pyarrow Table, Hugging Face Dataset


def column_names(X):
    """Return the column names of a table; None if X has none."""
    if hasattr(X, "collect_schema"):  # polars, also lazy
        return X.collect_schema().names()
    names = getattr(X, "column_names", None)  # pyarrow, whose `columns` are the values, and Hugging Face
    return getattr(X, "columns", None) if names is None else names


def _as_dense(X, name):
    given = as_table(X)
    X = as_array(given, name)
    if X.ndim == 0:
        raise ValueError(f"{name} is a {type(X.item()).__name__}; expected a table: one row per document.{_advice(given)}")
    _check_real(X, name)
    if X.dtype.kind not in "fiub":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            place = _first_not_number(X, getattr(given, "columns", None))
            kind = ValueError if isinstance(error, OverflowError) else type(error)
            raise kind(
                f"{name} {place}: no number (argument must be a string that float() reads, or a real number). "
                "Encode or drop such columns first."
            ) from None
    return X


def _check_real(values, name):
    objects = values.flat if values.dtype == object else ()
    if values.dtype.kind == "c" or any(isinstance(value, (complex, np.complexfloating)) for value in objects):
        raise ValueError(f"Complex data not supported: {name} has dtype {values.dtype}; expected real numbers.")
    if values.dtype.kind in "mMV":
        raise ValueError(f"{name} has dtype {values.dtype}; expected real numbers.")


def _first_not_number(values, column_names=None):
    for place, value in np.ndenumerate(values):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            where = f"row {place[0]}" + (f", column {_column(place[1], column_names)}" if len(place) > 1 else "")
            return f"has {_cut(show(value))} at {where}"
    return f"has dtype {values.dtype}"


def _cut(text):
    return text if len(text) <= 60 else f"{text[:60]}..."


def _column(number, names):
    return f"{number} ({names[number]!r})" if names is not None else str(number)


def first_not_finite(values):
    """Return the position of the first nan or infinity in a 1-d array, -1 if there is none."""
    for start in range(0, values.shape[0], 2**16):  # results of one block stay in the cache
        finite = np.isfinite(values[start : start + 2**16])
        if not finite.all():
            return start + int(np.argmin(finite))
    return -1


def check_finite_matrix(X, column_names=None, name="X"):
    """Raise if X, as returned by `as_matrix`, holds nan or infinity; the error names row and column."""
    if scipy.sparse.issparse(X):
        position = first_not_finite(X.data)
        if position >= 0:
            row = int(np.searchsorted(X.indptr, position, side="right")) - 1
            _raise_not_finite(name, X.data[position], row, int(X.indices[position]), column_names)
    elif X.dtype.kind == "f":
        whole = X.dtype in (np.float32, np.float64) and X.dtype.isnative and X.flags.c_contiguous
        step = X.shape[0] if whole else max(1, 2**16 // X.shape[1])
        for start in range(0, X.shape[0], step):
            block = X[start : start + step]
            if not whole:
                block = np.ascontiguousarray(block, dtype=np.float64)
            position = first_not_finite(np.asarray(block).reshape(-1))
            if position >= 0:
                row, column = divmod(position, X.shape[1])
                _raise_not_finite(name, block[row, column], start + row, column, column_names)


def _raise_not_finite(name, value, row, column, column_names):
    what = "NaN" if np.isnan(value) else "inf"
    raise ValueError(
        f"{name} contains {what} at row {row}, column {_column(column, column_names)}; every feature must be a finite number. "
        "Fill or drop missing values first."
    )


def _advice(given):
    """Return what to pass instead of an object that is no table; empty if unknown."""
    if isinstance(given, (str, os.PathLike)):
        return " datasets.load_table, datasets.load_letor and datasets.open_shards read files."
    if all(hasattr(given, part) for part in ("X", "y", "qid")):
        return " Pass its parts, as in fit(train.X, train.y, qid=train.qid) or predict(test.X)."
    if all(hasattr(given, part) for part in ("train", "test")):
        return " Pass one of its parts, as in fit(fold.train.X, fold.train.y, qid=fold.train.qid) or predict(fold.test.X)."
    return ""


def as_column(values, n_rows, name, against="X"):
    """Return a 1-d numpy array of `n_rows` entries, of any type."""
    array = as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0:
        expected = f"expected one value per row of {against}"
        if isinstance(values, str):
            raise ValueError(f"{name}={values!r} is a text; {expected}, such as the column of a frame: frame[{values!r}].")
        raise ValueError(f"{name} is a {type(values).__name__}; {expected}.")
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimension(s); expected 1: one value per row of {against}.")
    if array.shape[0] != n_rows:
        raise ValueError(
            f"{name} has {array.shape[0]} entries but {against} has {n_rows} rows; they must have the same length."
        )
    return array


def as_number_column(values, n_rows, name, expected, against="X"):
    """Return a 1-d float64 array of `n_rows` entries; `expected` describes the values in errors."""
    array = as_column(values, n_rows, name, against)
    if array.dtype.kind == "O":
        plain = set(map(type, array.tolist())) <= {int, float, bool}
        wrong = []
        if not plain:
            wrong = [row for row, value in enumerate(array) if not _is_number(value)]
    else:
        wrong = [] if array.dtype.kind in "fiub" or not array.size else [0]
    if wrong:
        # The second of [1, "x"], which numpy converts to two strings.
        place = "has dtype" if array.dtype.kind in "Oc" else _first_not_number(array)
        if place.startswith("has dtype"):
            place = f"has {_cut(show(array[wrong[0]]))} at row {wrong[0]}"
        raise ValueError(f"{name} {place}; expected {expected}.")
    try:
        with np.errstate(over="raise"):  # of long doubles
            return array.astype(np.float64, copy=False)
    except (OverflowError, FloatingPointError):
        raise ValueError(f"{name} {_first_not_number(array)}, which is too large for float64; expected {expected}.") from None


def _is_number(value):
    return isinstance(value, (numbers.Real, np.bool_)) and not isinstance(value, np.timedelta64)


def as_labels(y, n_rows, against="X", name="y"):
    """Return labels as float64: finite, not negative."""
    if y is None:
        raise ValueError("y is None; this estimator requires y to be passed, but the target y is None: one label per row.")
    labels = as_number_column(y, n_rows, name, "numbers, larger is more relevant", against)
    valid = (labels >= 0) & (labels < np.inf)
    _check_each(labels, valid, "labels must be finite and at least 0, larger is more relevant", name)
    return labels


def _check_each(values, valid, rule, name="y"):
    """Raise unless all values of a column are valid; the error names the first that is not, and the rule."""
    wrong = np.flatnonzero(~valid)
    if wrong.size:
        row = int(wrong[0])
        value = "NaN" if np.isnan(values[row]) else f"{values[row]:g}"
        raise ValueError(f"{name} contains {value} at row {row} ({wrong.size} such value(s) in all); {rule}.")


def check_exp2_labels(labels):
    """Raise if ``2 ** label - 1`` would leave the range of float64."""
    rule = "gain='exp2' is 2 ** label - 1 and takes labels up to 1000. Use gain='linear', or map labels to grades first"
    _check_each(labels, ~(labels > 1000), rule)


def check_highest_label(labels, highest):
    """Raise if a label is above the highest grade of the labelling scheme."""
    rule = f"err with max_grade={highest:g} takes labels up to {highest:g}. Set max_grade to the highest grade of the labels"
    _check_each(labels, ~(labels > highest), f"{rule}, as in 'err@10(max_grade={labels.max():g})'")


def check_click_labels(labels):
    """Raise unless every label lies in [0, 1] or is nan, which means that the document has no clicks."""
    valid = np.isnan(labels) | ((labels >= 0) & (labels <= 1))
    _check_each(labels, valid, "click labels must lie in [0, 1], or be nan if a document has no clicks")


def as_scores(scores, n_rows, against="y") -> np.ndarray:
    """Return scores as float64 without nan; infinities are valid and rank first or last."""
    array = as_number_column(scores, n_rows, "scores", "numbers, larger ranks higher", against)
    _check_each(array, ~np.isnan(array), "every document needs a score to be ranked", "scores")
    return array


_QID_MISSING = (
    "qid is missing: pass the query of each row, as in model.fit(X, y, qid=qid) and model.rank(X, qid=qid), or qid=0 if all "
    "rows belong to one query. Searches of scikit-learn pass it on after sklearn.set_config(enable_metadata_routing=True): "
    "search.fit(X, y, qid=qid), cross_val_score(model, X, y, params={'qid': qid})."
)


def check_qid_is_no_feature(column_names):
    """Raise if a table has a column "qid": XGBoost reads the queries from it, here it would become a feature."""
    if column_names is not None and "qid" in column_names:
        raise ValueError(
            "X has a column 'qid', which would become a feature. Pass it as the queries and drop it: "
            "fit(X.drop(columns='qid'), y, qid=X['qid']) in pandas, fit(X.drop('qid'), y, qid=X['qid']) in polars. If it is a "
            "feature, rename it."
        )


def qid_of_groups(group, X, qid=None, name="group"):
    """Return the query of each row of X for LightGBM's `group`: the sizes of the queries, whose rows are consecutive.

    Raises if the sizes do not sum up to the number of rows (if X is no table, other checks say so), and if `qid` is given too.

    Examples
    --------
    >>> qid_of_groups([2, 1], np.zeros((3, 5)))
    array([0, 0, 1])
    """
    if qid is not None:
        raise ValueError(f"qid and {name} are both given; pass one of them.")
    sizes = as_array(group, name)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"{name}={group!r} is not valid: expected the number of rows of each query, in the order of the rows.")
    n_rows = len(X) if isinstance(X, (list, tuple)) else next(iter(getattr(X, "shape", ())), None)
    total = sum(sizes.tolist())  # a sum in int64 may overflow to the number of rows
    if n_rows not in (None, total):
        raise ValueError(f"{name} has {sizes.shape[0]} sizes, which sum up to {total}, but X has {n_rows} rows.")
    return np.repeat(np.arange(sizes.shape[0]), sizes)


def as_query_ids(qid, n_rows, against="X"):
    """Return query ids as a 1-d array of any hashable type; an integer is the id of all rows. Raise if an id is missing."""
    if qid is None:
        raise ValueError(_QID_MISSING)
    if isinstance(qid, str):
        raise ValueError(
            f"qid is the text {qid!r}; expected the query of each row, such as qid=frame[{qid!r}], or qid=0 if all rows belong "
            "to one query."
        )
    if isinstance(qid, numbers.Integral) and not isinstance(qid, (bool, np.timedelta64)):
        return np.full(n_rows, qid)
    if isinstance(qid, (list, tuple)):
        kinds = {type(value) for value in qid}
        if len(kinds) != 1 or kinds == {int} or not issubclass(*kinds, (str, numbers.Real)):
            # numpy would make a table of tuples, strings of [1, "a"], and floats of very large integers.
            qid = objects(qid)
    qid = as_array(qid, "qid")
    if qid.shape != (n_rows,):
        sizes = qid
        if sizes.ndim == 1 and sizes.dtype.kind in "iu" and sizes.sum() == n_rows:
            raise ValueError(
                f"qid has {sizes.shape[0]} entries that sum up to the {n_rows} rows of {against}, as sizes of groups do; "
                "expected the query of each row: np.repeat(np.arange(len(sizes)), sizes)."
            )
    ids = as_column(qid, n_rows, "qid", against)
    check_ids(ids, "qid", "every row needs the id of its query")
    return ids


def objects(values):
    """Return a list of ids as int64 if all are such integers, as a 1-d array of objects otherwise; tuples stay tuples."""
    array, kinds = np.fromiter(values, dtype=object, count=len(values)), set(map(type, values))
    whole = kinds and all(issubclass(kind, numbers.Integral) and not issubclass(kind, (bool, *_NO_NUMBERS)) for kind in kinds)
    whole = whole and all(-(2**63) < value < 2**63 for value in values)
    return array.astype(np.int64) if whole else array


def check_ids(ids, name, rule):
    """Raise if an id of a 1-d array is missing or not hashable."""
    missing = np.flatnonzero(missing_ids(ids, name))
    if missing.size:
        row = int(missing[0])
        raise ValueError(f"{name} contains {show(ids[row])} at row {row}; {rule}.")


def missing_ids(ids, name):
    """Return for each id of a 1-d array whether it is missing; raise if one is not hashable.

    Examples
    --------
    >>> missing_ids(np.array([7, ("a", math.nan), None, "b"], dtype=object), "qid")
    array([False,  True,  True, False])
    """
    if ids.dtype.kind in "fcmM":
        return ids != ids
    if ids.dtype.kind not in "OV":
        return np.zeros(ids.shape[0], dtype=bool)
    values = ids.tolist()
    for row, value in enumerate(values) if not set(map(type, values)) <= {str, int, bytes, float} else ():
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"{name} contains {value!r} at row {row}; an id must be hashable: a number, a text or a tuple of these."
            ) from None
    return np.fromiter((type(value) is not str and is_missing(value) for value in values), dtype=bool, count=len(values))


def is_missing(value):
    """Return whether an id is None, NA, NaT or a nan of any type, or a tuple that holds one: no such id equals itself.

    Examples
    --------
    >>> is_missing(None), is_missing((7, math.nan)), is_missing((7, "a"))
    (True, True, False)
    """
    if isinstance(value, (tuple, frozenset)):
        return any(map(is_missing, value))
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def check_row_weights(sample_weight, rows, indptr, query_ids, against="X"):
    """Return one weight per query from row weights, which must be constant within each query."""
    weights = as_number_column(sample_weight, rows.shape[0], "sample_weight", "numbers of at least 0", against)
    least, most = WEIGHTS
    valid = (weights == 0) | ((weights >= least) & (weights <= most))
    _check_each(weights, valid, f"weights must be 0, or from {least:g} to {most:g}", "sample_weight")
    weights = weights[rows]
    per_query = weights[indptr[:-1]]
    differs = np.flatnonzero(weights != np.repeat(per_query, np.diff(indptr)))
    if differs.size:
        place = int(differs[0])
        query = int(np.searchsorted(indptr, place, side="right")) - 1
        raise ValueError(
            f"sample_weight differs within query {show(query_ids[query])}: {per_query[query]:g} at row {rows[indptr[query]]}, "
            f"{weights[place]:g} at row {rows[place]}. A query has one weight; use the same for all its rows."
        )
    return per_query


def check_some_weight(any_weight):
    """Raise unless some query has a weight above 0."""
    if not any_weight:
        raise ValueError("sample_weight is zero for every query; at least one query needs a positive weight.")


def n_threads(n_jobs):
    """Return the number of threads or processes for `n_jobs`: None is 1, -1 all cores."""
    if n_jobs is None:
        return 1
    valid = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool) and -1 <= n_jobs <= _MOST_THREADS
    if not valid or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r} is not valid: expected None, an integer from 1 to {_MOST_THREADS}, or -1 for all cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_width(found, expected, who):
    """Raise unless the number of features is that of training."""
    if found != expected:
        raise ValueError(f"X has {found} features, but {who} is expecting {expected} features as input.")
