"""The cache of compiled functions on disk: a damaged file is replaced, never an error.

A wheel contains the functions that ``structrank warmup`` compiles, compiled for the processors of `target`. They are in the
folder ``prebuilt`` beside their source file, which is only read, and are loaded wherever the processor has the instructions.
Everything else is compiled for the processor at hand, and cached in the folder that numba chooses.
"""

import contextlib
import functools
import hashlib
import io
import os

import llvmlite
import numba
from llvmlite import binding
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator

_DIGEST_SIZE = hashlib.sha256().digest_size
_X86_64_V3 = (
    *("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf"),
    *("sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
)


def target():
    """Return the processor that wheels for this machine are compiled for, as LLVM names it, and the instructions it must have.

    ARM processors are alike in what kernels need: vectors of two doubles.
    """
    machine = binding.get_process_triple().partition("-")[0]
    return ("x86-64-v3", _X86_64_V3) if machine in ("x86_64", "amd64") else ("generic", ())


def compile_for_wheels():
    """Compile for the processors of wheels from now on; to be called before any function is compiled."""
    config.CPU_NAME, config.CPU_FEATURES = target()[0], ""


@functools.cache
def prebuilt_target():
    """Return the processor of wheels if its code runs here, else None, also if the user compiles for a certain processor."""
    name, instructions = target()
    here = binding.get_host_cpu_features()
    chosen = config.CPU_NAME is not None or config.CPU_FEATURES is not None
    return None if chosen or not all(here.get(instruction) for instruction in instructions) else name


class _ProvidedFolder(UserProvidedCacheLocator):
    """The folder NUMBA_CACHE_DIR, which may be read-only; numba would skip it then."""

    def ensure_cache_path(self):
        if not os.path.isdir(self.get_cache_path()):
            super().ensure_cache_path()


class _Functions(CompileResultCacheImpl):
    _locator_classes = [_ProvidedFolder, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012 (as in the base class)


class CheckedCache(FunctionCache):
    """numba's cache with checksums: machine code with a wrong bit would run.

    A function is reused while the content of all source files of its part of the package is the same; their times change when
    a wheel is installed.
    """

    _impl_class = _Functions

    def __init__(self, function):
        super().__init__(function)
        source = function.__code__.co_filename
        stamp, name = _stamp(_part_of(source)), self._impl.filename_base
        self._cache_file = _CheckedFiles(self._cache_path, name, stamp)
        self._prebuilt = _CheckedFiles(os.path.join(os.path.dirname(source), "prebuilt"), name, stamp)

    def save_overload(self, sig, data):
        """Save a compiled function, if the folder can be written."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    def _load_overload(self, sig, target_context):
        signature, (triple, *_), code = self._index_key(sig, target_context.codegen())
        processor = prebuilt_target()
        data = processor and self._prebuilt.load((signature, (triple, processor, ""), code))
        return self._impl.rebuild(target_context, data) if data else super()._load_overload(sig, target_context)

    def _index_key(self, sig, codegen):
        signature, (triple, *processor), code = super()._index_key(sig, codegen)
        return signature, (triple.rstrip("0123456789."), *processor), code  # on macOS it ends with the version of the system


def _part_of(path):
    """Return the folder below the package, or below its source tree, that a file belongs to."""
    folder = os.path.dirname(path)
    parent = os.path.dirname(folder)
    while os.path.basename(parent) != "structrank" and os.path.exists(os.path.join(parent, "__init__.py")):
        folder, parent = parent, os.path.dirname(parent)
    return folder


@functools.cache
def _stamp(folder):
    """Return the digest of the sources in a folder, of the settings of compiling, and of the versions of numba and llvmlite.

    That of Python is part of the name of each file.
    """
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    sources = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".py")]
    settings = [os.path.join(os.path.dirname(__file__), name) for name in ("compile.py", "kernel_cache.py", "lanes.py")]
    for path in (*sorted(sources), *settings):
        with open(path, "rb") as source:
            digest.update(source.read())
    return digest.hexdigest()


class _CheckedFiles(IndexDataCacheFile):
    """Files that end with the SHA-256 of the stamp, their name and content, which numba does not read.

    A damaged file counts as missing, and so do an old one, whose types may not exist any more, and one in the place of another,
    which would run as another function.
    """

    @contextlib.contextmanager
    def _open_for_write(self, path):
        with super()._open_for_write(path) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + self._digest(path, content.getvalue()))

    def _load_index(self):
        return super()._load_index() if self._is_valid(self._index_path) else {}

    def _load_data(self, name):
        # numba takes an OSError for a missing file, and compiles anew
        if not self._is_valid(self._data_path(name)):
            raise FileNotFoundError(name)
        return super()._load_data(name)

    def _is_valid(self, path):
        """Return whether a file ends with its digest."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:  # there is no cache yet
            return False
        return self._digest(path, content[:-_DIGEST_SIZE]) == content[-_DIGEST_SIZE:]

    def _digest(self, path, content):
        name = f"{self._source_stamp}\n{os.path.basename(path)}\n"
        return hashlib.sha256(name.encode() + content).digest()
