"""Files that are written atomically, and checked before."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
import zlib

try:
    import fcntl
except ImportError:  # Windows, where files of killed writers stay
    fcntl = None  # type: ignore[assignment]


def replace_file(path, content, what):
    """Write to a temporary file in the same folder, sync it to disk, and rename it.

    If the writer is killed, readers see the earlier file or the complete new one. Links are followed; devices and pipes are
    written to directly. Temporary files of killed writers of the same path are removed. An OSError
    names the file, `what` it is (such as "the model"), the cause and the current state.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     replace_file(f"{folder}/a.txt", b"new", "the note")
    ...     Path(folder, "a.txt").read_text(), os.listdir(folder)
    ('new', ['a.txt'])
    """
    path = os.path.realpath(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "wb") as file:
                file.write(content)
        else:
            _write_and_move(path, content)
    except OSError as error:  # would name the temporary file
        now = "the earlier file is unchanged" if os.path.isfile(path) else "nothing was saved"
        raise OSError(error.errno, f"cannot save {what}: {error.strerror or error}; {now}", path) from None


def _lock(file, wait=False):
    """Lock a file until it is closed, or its process ends; return whether that succeeded."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _locked(temporary):
    """Create and lock a temporary file; again if another writer removed it before it was locked."""
    while True:
        file = open(temporary, "xb")  # noqa: SIM115 (the caller closes it)
        if _lock(file, wait=True) and not os.fstat(file.fileno()).st_nlink:
            file.close()
            continue
        return file


def _remove_abandoned(folder, start):
    """Remove the temporary files of writers of the same path that were killed: those that no process has locked."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start) and name.endswith(".tmp"):
                with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                    if _lock(file):
                        os.unlink(file.name)


def _write_and_move(path, content):
    folder, name = os.path.split(path)
    start = f".structrank-{zlib.crc32(os.fsencode(name)):08x}-"
    _remove_abandoned(folder, start)
    temporary = os.path.join(folder, f"{start}{secrets.token_hex(8)}.tmp")
    try:
        with _locked(temporary) as file:
            if os.path.exists(path):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))  # keep the permissions
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # the file itself is synced even if its folder cannot be
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path):
    """Raise if a file cannot be written, before any work is done."""
    if not path:
        raise ValueError("the name of a file to write is empty.")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; expected the name of a file to write.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    needed = [path] if os.path.exists(path) else []
    if not needed or os.path.isfile(path):
        needed.append(folder)  # a new file is written there, then renamed
    if not all(os.access(place, os.W_OK) for place in needed):
        raise ValueError(f"{path} cannot be written: permission denied.")
    if folder in needed:
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error.strerror}.") from None
