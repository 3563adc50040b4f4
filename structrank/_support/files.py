"""Files that are written atomically."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat


def replace_file(path, content, what):
    """Write to a temporary file in the same folder, sync it to disk, and rename it.

    If the writer is killed, readers see the earlier file or the complete new one. Links are followed; devices and pipes are
    written to directly. An OSError names the file, `what` it is (such as "the model"), the cause and the current state.

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


def _write_and_move(path, content):
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".structrank-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
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
