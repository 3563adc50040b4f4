"""The cache of compiled functions on disk: a damaged file is replaced, never an error."""

import contextlib
import hashlib
import logging
import os
import pickle

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator

_logger = logging.getLogger("structrank")
_DIGEST_SIZE = hashlib.sha256().digest_size


class _ProvidedFolder(UserProvidedCacheLocator):
    """The folder NUMBA_CACHE_DIR, which may be read-only; numba would skip it then."""

    def ensure_cache_path(self):
        if not os.path.isdir(self.get_cache_path()):
            super().ensure_cache_path()


class _Functions(CompileResultCacheImpl):
    _locator_classes = [_ProvidedFolder, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012 (as in the base class)


class CheckedCache(FunctionCache):
    """numba's cache with checksums: machine code with a wrong bit would run."""

    _impl_class = _Functions

    def __init__(self, function):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig, data):
        """Save a compiled function, if the folder can be written."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class _CheckedFiles(IndexDataCacheFile):
    """Files of pickles that end with their SHA-256; numba ignores what follows a pickle. A damaged file counts as missing."""

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

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
        if content.startswith(prefix) and hashlib.sha256(data).digest() == digest:
            return True
        _logger.info("%s is damaged or of another version; its function is compiled anew", path)
        return False
