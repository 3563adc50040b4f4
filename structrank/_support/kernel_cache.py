"""The cache of compiled functions on disk: a damaged file is replaced, never an error."""

import contextlib
import hashlib
import io
import logging
import os

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
    """Files that end with the SHA-256 of their name and content, which numba does not read.

    A damaged file counts as missing, and so does one in the place of another, which would run as another function.
    """

    @contextlib.contextmanager
    def _open_for_write(self, path):
        with super()._open_for_write(path) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + _digest(path, content.getvalue()))

    def _load_index(self):
        return super()._load_index() if self._is_whole(self._index_path) else {}

    def _load_data(self, name):
        # numba takes an OSError for a missing file, and compiles anew
        if not self._is_whole(self._data_path(name)):
            raise FileNotFoundError(name)
        return super()._load_data(name)

    def _is_whole(self, path):
        """Return whether a file ends with the digest of its content; log a file that does not."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:  # there is no cache yet
            return False
        if _digest(path, content[:-_DIGEST_SIZE]) == content[-_DIGEST_SIZE:]:
            return True
        _logger.info("%s is damaged; its function is compiled anew", path)
        return False


def _digest(path, content):
    return hashlib.sha256(os.path.basename(path).encode() + b"\n" + content).digest()
