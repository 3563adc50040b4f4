"""Compiled functions and their cache."""

import contextlib
import functools
import os
import sys


def kernel(function=None, *, inner=False, by_address=False, **options):
    """Compile a function of plain arrays with numba; it releases the GIL and is cached on disk for other processes.

    An `inner` function is called by other kernels alone, never from Python: it gets no entry from Python and no cache of its
    own, which saves a third of the time to compile it. A function that is called `by_address`, see `address_of`, gets no entry
    from Python either.

    numba reuses a cached function while its source file is the same. But the functions that it calls are compiled into it, and
    may have changed in another file. So any change of a source file invalidates the whole cache of its part of the package:
    solvers, datasets or _kernels. Kernels therefore call no kernels of other parts. Wheels contain compiled functions, see
    `structrank._support.kernel_cache`.
    """
    if function is None:
        return functools.partial(kernel, inner=inner, by_address=by_address, **options)
    import numba

    from structrank._support import compile_time  # noqa: F401  listens from the first kernel on
    from structrank._support.kernel_cache import CheckedCache

    entry = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner or by_address}
    compiled = numba.njit(nogil=True, **entry, **options)(function)
    if compiled is not function and entry["no_cpython_wrapper"]:
        compiled.__class__ = _without_entry(type(compiled))
    if compiled is not function and not inner:  # with NUMBA_DISABLE_JIT the function is unchanged
        # Without a folder that can be written, even for temporary files, or without read access to the sources, no cache.
        with contextlib.suppress(RuntimeError, OSError):
            compiled._cache = CheckedCache(function)
    return compiled


@functools.cache
def _without_entry(dispatcher):
    """Return a class of kernels that raise if they are called from Python, where numba would end the process."""

    def refuse(self, *_, **__):
        raise TypeError(f"{self.__name__} has no entry from Python: it is called by other kernels.")

    return type(dispatcher.__name__, (dispatcher,), {"__call__": refuse})


@functools.cache  # each fit asks, and LLVM takes a fifth of a millisecond to answer
def address_of(function, signature):
    """Compile a kernel for a signature, or load it from the cache, and return its address, for `caller_of`."""
    if signature.args not in function.overloads:
        function.compile(signature.args)
    compiled = function.overloads[signature.args]
    if compiled.signature.return_type != signature.return_type:  # the call would read another type from memory
        raise TypeError(f"{function.__name__} returns {compiled.signature.return_type}; expected {signature.return_type}.")
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def caller_of(signature):
    """Return a function for use in kernels that calls the kernel at an address.

    A kernel that calls another by name contains its code, and is compiled anew for another callee. One that calls by address
    is not. The second argument is the tuple of the arguments.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def call(typing_context, address, arguments):
        def generate(context, builder, _, values):
            convention = context.call_conv
            function_type = convention.get_function_type(signature.return_type, signature.args)
            function = builder.inttoptr(values[0], function_type.as_pointer())
            unpacked = cgutils.unpack_tuple(builder, values[1], len(signature.args))
            status, result = convention.call_function(builder, function, signature.return_type, signature.args, unpacked)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return signature.return_type(types.int64, types.Tuple(signature.args)), generate

    return call


def provide_cache():
    """Set NUMBA_CACHE_DIR if numba has no writable cache folder, without which importing kernels fails.

    numba tries NUMBA_CACHE_DIR, the folder of the code and the user's cache folder. If none is writable, as in many containers,
    it gets a temporary folder, which is removed when the process ends. If that cannot be created either, nothing is cached.
    """
    users = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "numba")
    beside = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_kernels", "__pycache__")
    if os.environ.get("NUMBA_CACHE_DIR") or _can_be_written(users) or _can_be_written(beside):
        return
    import atexit
    import shutil
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="structrank-")
    except OSError:
        return
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # it has read its settings
        sys.modules["numba"].config.CACHE_DIR = folder


def _can_be_written(folder):
    """Return whether files can be created in a folder, or in its first existing parent."""
    while not os.path.isdir(folder):
        if os.path.exists(folder) or os.path.dirname(folder) == folder:
            return False
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)
