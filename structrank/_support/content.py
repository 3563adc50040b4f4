"""Descriptions and digests of values by their content, the same in every process."""

import functools
import hashlib
from collections.abc import Mapping

import numpy as np
import scipy.sparse


def add_content(digest, values):
    """Add type, shape and values of an array or sparse matrix to a digest."""
    if scipy.sparse.issparse(values):
        digest.update(str(values.shape).encode())
        for array in (values.data, values.indices, values.indptr):
            add_content(digest, array)
        return
    values = np.asarray(values)
    digest.update(f"{values.dtype.str}{values.shape}".encode())
    values = np.atleast_1d(values)  # a single query may be declared by a number
    step = max(1, 2**20 // max(1, values[:1].size))
    for start in range(0, values.shape[0], step):
        block = values[start : start + step]
        plain = block.dtype.kind in "biufcSU"
        digest.update(np.ascontiguousarray(block).tobytes() if plain else repr(block.tolist()).encode())


def describe(value, leave_out=(), within=()):
    """Describe a value by its content, with the same text in every process.

    `leave_out` names attributes to ignore; `within` has the ids of the objects that contain this one, to detect cycles.
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) or scipy.sparse.issparse(value):
        digest = hashlib.sha256()
        add_content(digest, value)
        return f"array {digest.hexdigest()}"
    if id(value) in within:
        return f"held {len(within) - within.index(id(value))} levels up"
    inner = functools.partial(describe, within=(*within, id(value)))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(inner, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{inner(key)}: {inner(value[key])}' for key in sorted(value, key=inner))}}}"
    if isinstance(value, functools.partial):
        return f"partial{inner([value.func, value.args, value.keywords])}"
    value = getattr(value, "py_func", value)  # of numba
    if hasattr(value, "__code__"):
        code = value.__code__
        inside = (code.co_code, code.co_names, code.co_consts, value.__defaults__, value.__kwdefaults__)
        inside += tuple(cell.cell_contents for cell in value.__closure__ or ())
        if hasattr(value, "__self__"):
            inside += (value.__self__,)
        return f"{value.__module__}.{value.__qualname__}{inner(inside)}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        settings = vars(value)
    else:  # may contain a memory address: then it differs in every process, and its cells are trained again
        return repr(value)
    settings = {name: setting for name, setting in settings.items() if name not in leave_out}
    return f"{describe(type(value))}({inner(settings)})"
