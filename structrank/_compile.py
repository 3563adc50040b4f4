"""Compiled functions, and where they are kept."""

import contextlib
import functools
import os
import sys

# Of `fastmath`: a sum vectorises only if its terms may be added in another order; nan and inf keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}


def kernel(function=None, **options):
    """Compile a function of plain arrays, by numba: it releases the GIL, and is kept on disk for the next process.

    numba takes what it has kept while the file of the function is the same. But what a function calls is compiled into it, and
    may have changed in another file: so any change of a source invalidates all that was kept for its part of the package,
    solvers, datasets or _kernels. Kernels therefore call none of other parts.
    """
    if function is None:
        return functools.partial(kernel, **options)
    import numba

    compiled = numba.njit(cache=True, nogil=True, **options)(function)
    if compiled is not function:  # NUMBA_DISABLE_JIT gives the function back as it is
        _forget_old(_part_of(function.__code__.co_filename), compiled.stats.cache_path)
    return compiled


def _part_of(path):
    """Return the folder below the package, or below its source tree, that a file belongs to."""
    folder = os.path.dirname(path)
    parent = os.path.dirname(folder)
    while os.path.basename(parent) != "structrank" and os.path.exists(os.path.join(parent, "__init__.py")):
        folder, parent = parent, os.path.dirname(parent)
    return folder


@functools.cache
def _forget_old(folder, kept):
    """Remove what is kept, if it was made from other sources than those in the folder."""
    import hashlib

    with contextlib.suppress(OSError):  # where nothing can be read or written, nothing is kept
        digest = hashlib.sha256()
        sources = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".py")]
        for path in (*sorted(sources), __file__):  # this file has settings of the compiler
            with open(path, "rb") as source:
                digest.update(source.read())
        mark = os.path.join(kept, "structrank.sha256")
        with contextlib.suppress(FileNotFoundError), open(mark) as file:
            if file.read() == digest.hexdigest():
                return
        for name in os.listdir(kept):
            if name.endswith(".nbi"):
                os.remove(os.path.join(kept, name))
        with open(mark, "w") as file:
            file.write(digest.hexdigest())


def provide_cache():
    """Set NUMBA_CACHE_DIR, if numba has nowhere else to go: it refuses to import what it cannot keep.

    It looks in NUMBA_CACHE_DIR, beside the code and in the user's cache folder. Where none of these can be written to, as in
    many containers, a folder of this process is given to it, which goes when the process ends.
    """
    users = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "numba")
    beside = os.path.join(os.path.dirname(__file__), "_kernels", "__pycache__")
    if os.environ.get("NUMBA_CACHE_DIR") or _can_be_written(users) or _can_be_written(beside):
        return
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="structrank-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # it has read its settings
        sys.modules["numba"].config.CACHE_DIR = folder


def _can_be_written(folder):
    """Whether a folder, or where there is none the one to make it in, lets files be made."""
    while not os.path.isdir(folder):
        if os.path.exists(folder) or os.path.dirname(folder) == folder:
            return False
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)
