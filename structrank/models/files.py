"""Model files: a header in JSON, arrays as plain bytes, a checksum over everything; no pickle.

A file consists of

- a line ``structrank-model 1 <bytes of the header> <bytes of the arrays>``, where 1 is the version of the format;
- the header: class, parameters and fitted attributes of the model, versions of packages, types and shapes of the arrays;
- the arrays, little-endian;
- the SHA-256 digest of the above, 32 bytes.

None, numbers, text and lists are stored in the header as they are, all other values as ``{kind: content}``, such as
``{"array": 0}`` or ``{"MRR": {"k": 10}}``. Reading creates only objects of the classes of the package that are `saveable`, and
of classes registered with `structrank.register`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
from typing import Any

import numpy as np
import scipy.sparse

import structrank
from structrank import criteria
from structrank._support.checks import check_sparse
from structrank._support.files import replace_file
from structrank._support.lazy import import_public
from structrank._support.saveable import RECORDS
from structrank._support.text import printable
from structrank._support.typing import Path
from structrank.models.records import check_record

_VERSION = 1
_READABLE = (1,)
_MAGIC = b"structrank-model "
_FIRST_LINE = re.compile(rb"structrank-model ([1-9]\d{0,8}) ([1-9]\d{0,14}) (0|[1-9]\d{0,14})\n")
_LONGEST_FIRST_LINE = len(_MAGIC) + 9 + 15 + 15 + 3
_DIGEST_SIZE = hashlib.sha256().digest_size
_DTYPES = {np.dtype(letter).newbyteorder("<").str: np.dtype(letter) for letter in "?bBhHiIqQefd"}
_CUT_AT_START = "is truncated in its first line"
_NOT_FINITE = ("nan", "inf", "-inf")
_PACKAGES = ("numpy", "scipy", "numba", "osqp", "scikit-learn")


def save_model(model: Any, path: Path) -> None:
    """Write a trained model to a file, atomically: a crash leaves the earlier file or the complete new one.

    Parameters
    ----------
    model : learner
        Trained.
    path : path-like
        An existing file is replaced.

    Raises
    ------
    ValueError
        If a parameter, such as a function, cannot be saved; nothing is written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/m.structrank")
    ...     load_model(f"{folder}/m.structrank").coef_ == model.coef_
    array([ True])
    """
    from sklearn.utils.validation import check_is_fitted

    if _name_of(model) is None or not hasattr(model, "get_params"):
        raise ValueError(f"{type(model).__name__} is not a learner that model files know; see structrank.register.")
    check_is_fitted(model)
    arrays: list[np.ndarray] = []
    _write(path, {"class": type(model).__name__, **_encode_learner(model, "", arrays)}, arrays, "the model")


def load_model(path: Path) -> Any:
    """Load a model written by ``model.save(path)``. Nothing in the file is executed.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    learner
        Model with bit-identical predictions and its certificate, health and history.

    Raises
    ------
    ValueError
        If the file is not a model file, is truncated or altered, or has a later format version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM, load_model
    >>> with TemporaryDirectory() as folder:
    ...     StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0).save(f"{folder}/m.structrank")
    ...     load_model(f"{folder}/m.structrank")
    StructRankSVM(criterion='auc')
    """
    header, values = _read(path)
    if isinstance(header, dict) and "kind" in header:
        text = f"{path} holds a {header['kind']}, not a model; repeat the call that started training to resume it."
        raise ValueError(printable(text))
    with errors_named(path, header):
        arrays = _split(values, header["arrays"])
        return _decode_learner(_class_named(header["class"]), header, arrays, must_be_fitted=True)


def save_values(kind, values, path):
    """Write a dict of values of some kind, such as "checkpoint", to a file of the same format, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_values("state", {"w": np.ones(2)}, f"{folder}/s")
    ...     load_values("state", f"{folder}/s")
    {'w': array([1., 1.])}
    """
    arrays = []
    _write(path, {"kind": kind, "values": _encode(values, kind, arrays)}, arrays, f"the {kind}")


def load_values(kind, path):
    """Read values written by `save_values`; raise if the file is of another kind."""
    header, values = _read(path)
    with errors_named(path, header):
        found = header.get("kind") or header.get("class")
        content = dict(_decode(header["values"], _split(values, header["arrays"]))) if found == kind else None
    if content is None:
        raise ValueError(printable(f"{path} is not a {kind}; it holds {found}."))
    return content


def read_header(path: Path) -> dict[str, Any]:
    """Read the header of a model file without creating the model; the file is checked as by `load_model`.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict
        "format", "class", "parameters", "fitted", "versions", "arrays"; see `structrank.models.files`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> with TemporaryDirectory() as folder:
    ...     StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0).save(f"{folder}/m.structrank")
    ...     header = read_header(f"{folder}/m.structrank")
    >>> header["format"], header["parameters"]["criterion"]
    ({'name': 'structrank-model', 'version': 1}, 'auc')
    """
    header = _read(path)[0]
    with errors_named(path, header):
        if header["format"] != {"name": _MAGIC.decode().strip(), "version": _VERSION}:
            raise ValueError(f"format is {header['format']!r}")
        versions = header["versions"]
        if "structrank" not in versions or not all(isinstance(text, str) for text in versions.values()):
            raise ValueError(f"versions is {versions!r}")
    return header


def is_model_file(path: Path) -> bool:
    """Return whether a file starts like a model file of any version; False for a pipe, which could be read only once.

    Examples
    --------
    >>> is_model_file(__file__)
    False
    """
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@contextlib.contextmanager
def errors_named(path, header):
    """Re-raise any error as a ValueError that names the file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # with a valid checksum: written by another program or a later version
        problem = f"{error} is missing" if isinstance(error, KeyError) else error or type(error).__name__
        versions = header.get("versions") if isinstance(header, dict) else None
        written = versions.get("structrank") if isinstance(versions, dict) else None
        text = (
            f"{path} is a model file whose content structrank {structrank.__version__} does not understand: "
            f"{problem}. It was written by structrank {written or 'of unknown version'}."
        )
        raise ValueError(printable(text)) from error


# ---- Values


def _is_fitted_name(name):
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _class_named(name):
    if name not in criteria.classes_in_files():
        import_public(name)
    known = criteria.classes_in_files()
    if name not in known:
        name = name.rpartition(".")[2]
        raise ValueError(
            f"the class {name} is not known here; import the module that registers it: a criterion and its "
            f"measure with structrank.register(CRITERION, MEASURE), all others with structrank.register({name})"
        )
    return known[name]


def _name_of(value):
    """Return the name of this class in files; None if its objects cannot be saved."""
    cls = type(value)
    return next(
        (name for name in (cls.__name__, f"metrics.{cls.__name__}") if criteria.classes_in_files().get(name) is cls), None
    )


def _encode(value, where, arrays):
    """Convert a value to types of JSON; arrays are added to `arrays`, and `where` names the value in errors."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, list):
        return [_encode(item, f"{where}[{number}]", arrays) for number, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _encode(list(value), where, arrays)}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(item, f"{where}[{key!r}]", arrays) for key, item in value.items()}}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU" and value.ndim == 1 and all(isinstance(item, str) for item in value):
            return {"names": value.tolist()}
        if value.dtype.kind == "O" and value.ndim == 1:
            return {"objects": _encode(value.tolist(), where, arrays)}
        little = value.astype(value.dtype.newbyteorder("<"), order="C")
        if little.dtype.str in _DTYPES:
            arrays.append(little)
            return {"array": len(arrays) - 1}
    if isinstance(value, scipy.sparse.csr_matrix):
        parts = {"shape": value.shape, "data": value.data, "indices": value.indices, "indptr": value.indptr}
        return {"csr": _encode(parts, where, arrays)}
    name = _name_of(value)
    if name is not None:
        if name == "History":
            return {name: _encode(list(value), where, arrays)}
        if hasattr(value, "get_params"):
            return {name: _encode_learner(value, f"{where}.", arrays)}
        fields = [field.name for field in dataclasses.fields(value)]
        return {name: {field: _encode(getattr(value, field), f"{where}.{field}", arrays) for field in fields}}
    if callable(value):
        raise ValueError(
            f"{where} is a function, which a model file cannot hold. Pass its values instead: decay=[A(0), A(1), ...]."
        )
    raise ValueError(
        f"{where} is an object of class {type(value).__name__}, which a model file cannot hold. Register a custom "
        "criterion, measure or other dataclass with structrank.register."
    )


def _encode_learner(model, where, arrays):
    """Return parameters and fitted attributes of a learner; `where` begins their names in errors."""
    fitted = {name: value for name, value in vars(model).items() if _is_fitted_name(name)}
    parameters = model.get_params(deep=False)
    return {
        "parameters": {name: _encode(value, where + name, arrays) for name, value in parameters.items()},
        "fitted": {name: _encode(value, where + name, arrays) for name, value in fitted.items()},
    }


def _decode_learner(cls, content, arrays, must_be_fitted=False):
    model = cls(**{name: _decode(value, arrays) for name, value in content["parameters"].items()})
    for name, value in content["fitted"].items():
        if not _is_fitted_name(name):
            raise ValueError(f"{name!r} is not the name of a fitted attribute")
        setattr(model, name, _decode(value, arrays))
    is_fitted = must_be_fitted or content["fitted"]  # a parameter may be a learner that is not
    if is_fitted and hasattr(model, "check_loaded"):  # a registered learner need not be a Ranker
        model.check_loaded()
    return model


def _decode(value, arrays):
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "names":
        return np.array(content, dtype=object)
    if kind == "float" and content in _NOT_FINITE:
        return float(content)
    if kind == "tuple":
        return tuple(_decode(content, arrays))
    if kind == "objects":
        objects = np.empty(len(content), dtype=object)
        objects[:] = _decode(content, arrays)
        return objects
    if kind == "csr":
        parts = _decode(content, arrays)
        matrix = scipy.sparse.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
        check_sparse(matrix, "a sparse matrix")
        return matrix
    if kind == "History":
        return _history(_decode(content, arrays))
    if kind != "dict" and hasattr(_class_named(kind), "get_params"):
        return _decode_learner(_class_named(kind), content, arrays)
    content = {key: _decode(item, arrays) for key, item in content.items()}
    if kind == "dict":
        return content
    value = _class_named(kind)(**content)
    if type(value) in RECORDS:
        check_record(value)
    return value


def _history(entries):
    kinds = {type(entry).__name__ for entry in entries}
    if len(kinds) > 1 or not kinds <= {"Iteration", "Round", "Epoch"}:
        raise ValueError(f"History holds {', '.join(sorted(kinds))}; expected one kind of entry")
    return _class_named("History")(entries)


# ---- Bytes


def _split(values, listed):
    """Return the arrays that lie one after another in `values`."""
    arrays, start = [], 0
    for entry in listed:
        dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
        stop = start + math.prod(shape) * dtype.itemsize
        little = np.frombuffer(values[start:stop], dtype=dtype.newbyteorder("<"))
        arrays.append(little.reshape(shape).astype(dtype))
        start = stop
    if start != len(values):
        raise ValueError(f"the arrays take {start} bytes, and there are {len(values)}")
    return arrays


def _read(path):
    """Return the header and the bytes of the arrays, after all checks."""
    with open(os.fspath(path), "rb") as file:
        path = printable(str(path))
        start = file.read(_LONGEST_FIRST_LINE)
        if not start.startswith(_MAGIC):
            _raise_foreign(path, start)
        version = re.match(rb"([1-9]\d{0,8})[ \n]", start[len(_MAGIC) :])
        if version and int(version[1]) not in _READABLE:
            raise ValueError(
                f"{path} is a model file of format version {int(version[1])}; structrank {structrank.__version__} reads "
                f"version {', '.join(map(str, _READABLE))}. Update structrank to load it."
            )
        first_line = _FIRST_LINE.match(start)
        actual = os.fstat(file.fileno()).st_size
        if first_line is None:
            raise _damaged(path, "was altered: its first line is not valid" if b"\n" in start else _CUT_AT_START)
        header_size, values_size = int(first_line[2]), int(first_line[3])
        expected = first_line.end() + header_size + values_size + _DIGEST_SIZE
        if actual != expected:
            what = "is truncated" if actual < expected else "has extra bytes"
            raise _damaged(path, f"{what}, with {actual} bytes where its first line says {expected}")
        content = start + file.read()
    content, digest = memoryview(content)[:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
    if hashlib.sha256(content).digest() != digest:
        raise _damaged(path, "was altered, as its checksum does not fit its content")
    text = content[first_line.end() : first_line.end() + header_size]
    try:
        header = json.loads(bytes(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is a model file whose header is not JSON ({error}).") from None
    return header, content[first_line.end() + header_size :]


def _damaged(path, what):
    return ValueError(f"{path} is a damaged model file: it {what}. Download it again, or train again.")


def _raise_foreign(path, start):
    if not start:
        raise ValueError(f"{path} is empty; expected a model file.")
    if _MAGIC.startswith(start):
        raise _damaged(path, _CUT_AT_START)
    raise ValueError(
        f"{path} is not a model file of structrank: it begins with {start[:24]!r}, expected {_MAGIC!r}. "
        "Model files are written by model.save(path) or the command structrank train."
    )


@functools.cache
def _package_versions():
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def _write(path, header, arrays, what):
    """Write a header, completed by format, versions and list of arrays, and the arrays."""
    header = {
        "format": {"name": _MAGIC.decode().strip(), "version": _VERSION},
        **header,
        "versions": {"structrank": structrank.__version__, "python": platform.python_version(), **_package_versions()},
        "arrays": [{"dtype": array.dtype.str, "shape": array.shape} for array in arrays],
    }
    text = json.dumps(header, indent=1, allow_nan=False).encode("ascii")
    values = b"".join(array.tobytes() for array in arrays)
    content = b"%s%d %d %d\n%s%s" % (_MAGIC, _VERSION, len(text), len(values), text, values)
    replace_file(path, content + hashlib.sha256(content).digest(), what)
