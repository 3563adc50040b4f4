"""The cache of compiled functions on disk: a damaged file is replaced, never an error."""

import hashlib
import logging
import os
import pickle

from numba.core.caching import FunctionCache, IndexDataCacheFile

_logger = logging.getLogger("structrank")
_DIGEST_SIZE = hashlib.sha256().digest_size


class CheckedCache(FunctionCache):
    """numba's cache with checksums: machine code with a wrong bit would run."""

    def __init__(self, function):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)


class _CheckedFiles(IndexDataCacheFile):
    """Files of pickles that end with the SHA-256 of their name and content; numba ignores what follows a pickle.

    A damaged file counts as missing, and so does one in the place of another, which would run as another function.
    """

    def _save_index(self, overloads):
        self._name = self._index_name
        super()._save_index(overloads)

    def _save_data(self, name, data):
        self._name = name
        super()._save_data(name, data)

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + _digest(self._name, data)

    def _load_index(self):
        version = pickle.dumps(self._version, protocol=-1)
        return super()._load_index() if self._is_whole(self._index_path, version) else {}

    def _load_data(self, name):
        # numba takes an OSError for a missing file, and compiles anew
        if not self._is_whole(self._data_path(name)):
            raise FileNotFoundError(name)
        return super()._load_data(name)

    def _is_whole(self, path, prefix=b""):
        """Return whether a file has a prefix, content and the digest of the content; log a file that has not."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:  # there is no cache yet
            return False
        data, digest = content[len(prefix) : -_DIGEST_SIZE], content[-_DIGEST_SIZE:]
        if content.startswith(prefix) and _digest(os.path.basename(path), data) == digest:
            return True
        _logger.info("%s is damaged or of another version; its function is compiled anew", path)
        return False


def _digest(name, data):
    return hashlib.sha256(name.encode() + b"\n" + data).digest()
