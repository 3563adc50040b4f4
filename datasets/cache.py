"""A folder of parsed data sets, so that text is parsed once: .npy files, with a hash of the text as key."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse

from structrank.datasets.containers import Dataset

_VERSION = 2  # of the reader and of the file format; a new version invalidates all entries
_SEGMENT_BYTES = 1 << 22
_MAPPED = ("X", "values", "columns")


def content_key(paths, settings):
    """Return a key of the bytes of files (names and dates do not matter) and of the repr of `settings`."""
    digest = hashlib.sha256(f"{_VERSION} {settings!r}".encode())
    with ThreadPoolExecutor() as pool:  # hashing lets other threads run
        for path in paths:
            size = os.stat(path).st_size
            digest.update(f" {size}".encode())
            starts = range(0, size, _SEGMENT_BYTES)
            for part in pool.map(_segment_digest, [path] * len(starts), starts):
                digest.update(part)
    return digest.hexdigest()[:32]


def _segment_digest(path, start):
    with open(path, "rb") as file:
        file.seek(start)
        return hashlib.sha256(file.read(_SEGMENT_BYTES)).digest()


class ParseCache:
    """Data sets in a folder, one subfolder each.

    Parameters
    ----------
    folder : path-like
        Created if missing; its content may be deleted at any time.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ParseCache(folder)
    ...     cache.save("key", Dataset(np.eye(2), np.array([0.0, 1.0]), np.array([7, 7])))
    ...     print(cache.load("key"), cache.load("other"))
    Dataset(2 documents, 1 queries, 2 features, labels 0: 1, 1: 1) None
    """

    def __init__(self, folder):
        self._folder = Path(folder)

    def load(self, key):
        """Return the data set stored under `key`, with X mapped from disk; None if it is missing or damaged.

        The map is private: writing to X changes memory only.
        """
        folder = self._folder / key
        try:
            manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
            arrays = {}
            for name in manifest["checksums"]:
                mode = "c" if name in _MAPPED else None
                arrays[name] = np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False).view(np.ndarray)
            if {name: zlib.crc32(array) for name, array in arrays.items()} != manifest["checksums"]:
                return None
            if "X" in arrays:
                X = arrays["X"]
            else:
                parts = arrays["values"], arrays["columns"], arrays["indptr"]
                X = scipy.sparse.csr_matrix(parts, shape=manifest["shape"])
            return Dataset(X, arrays["y"], arrays["qid"], arrays.get("docid"))
        except (OSError, ValueError, KeyError, TypeError, EOFError):
            return None

    def save(self, key, data):
        """Store a data set under `key`, atomically: it is written to a temporary folder, then renamed."""
        arrays = {"y": data.y, "qid": data.qid}
        if data.docid is not None:
            arrays["docid"] = data.docid
        if scipy.sparse.issparse(data.X):
            arrays |= {"values": data.X.data, "columns": data.X.indices, "indptr": data.X.indptr}
        else:
            arrays["X"] = data.X
        if any(array.dtype == object for array in arrays.values()):
            return  # ids of absurd length; object arrays cannot be written without pickle
        aside = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=self._folder))
            for name, array in arrays.items():
                np.save(aside / f"{name}.npy", array, allow_pickle=False)
            checksums = {name: zlib.crc32(array) for name, array in arrays.items()}
            manifest = {"shape": data.X.shape, "checksums": checksums}
            (aside / "manifest.json").write_text(json.dumps(manifest), "utf-8")
            shutil.rmtree(self._folder / key, ignore_errors=True)  # a damaged entry
            with contextlib.suppress(OSError):  # another process was faster
                aside.rename(self._folder / key)
        except OSError as error:
            # The data set itself is not affected. The same text for each file of a folder, so that Python shows it once.
            text = f"The parse cache in {self._folder} was not written: {error.strerror or error}."
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        finally:
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)
