"""A place for compiled code where there is none: numba refuses to import what it cannot cache.

It looks in NUMBA_CACHE_DIR, beside the code and in the user's cache folder. Where none of these can be written to, as in many
containers, a folder of this process is given to it, which goes when the process ends.
"""

import os
import sys


def provide():
    """Set NUMBA_CACHE_DIR, if numba has nowhere else to go."""
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
