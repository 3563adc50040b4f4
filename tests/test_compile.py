"""The cache of compiled functions: reused while all sources are unchanged, and recompiled after a change."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import types

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError

from structrank._kernels import linear
from structrank._support import compile, compile_time, kernel_cache, lanes

ROOT = pathlib.Path(__file__).parent.parent
CALLER = """
from structrank._support.compile import kernel
from callee import f

@kernel
def g(x):
    return f(x) + 1
"""
CALLEE = """
from structrank._support.compile import kernel

@kernel
def f(x):
    return {factor} * x
"""


def run(code, folder, **environment):
    """Run code in a subprocess, with its cache in the folder; return the numbers it prints."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
        env={**inherited, **environment},
    )
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


def call(folder):
    """Return g(10) and the number of cache hits."""
    return run("from caller import g; print(g(10), sum(g.stats.cache_hits.values()))", folder)


def test_a_change_in_a_called_function_recompiles_its_callers(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert call(tmp_path) == [21, 0]
    assert call(tmp_path) == [21, 1]
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=3))
    assert call(tmp_path) == [31, 0]
    assert call(tmp_path) == [31, 1]


def test_kernels_run_as_python_if_jit_is_disabled(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert run("from caller import g; print(g(10))", tmp_path, NUMBA_DISABLE_JIT="1") == [21]


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "another pickle": lambda content: pickle.dumps({"a": 1}),
    "one bit": lambda content: content[:-40] + bytes([content[-40] ^ 1]) + content[-39:],
}


def test_a_damaged_cache_is_compiled_anew_once(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert call(tmp_path) == [21, 0]
    for kind, damage in (("nbi", "another pickle"), ("nbi", "empty"), ("nbc", "truncated"), ("nbc", "one bit")):
        files = list(tmp_path.rglob(f"*.{kind}"))
        assert files
        for path in files:
            path.write_bytes(DAMAGES[damage](path.read_bytes()))
        assert call(tmp_path) == [21, 0], (kind, damage)
    assert call(tmp_path) == [21, 1]


def test_a_read_only_folder_is_read_and_what_is_missing_is_compiled(tmp_path):
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    code = "from callee import f; print(f(10), sum(f.stats.cache_hits.values()), int(f(1.5)))"
    cache = tmp_path / "cache"
    assert run(code.replace("int(f(1.5))", "0"), tmp_path, NUMBA_CACHE_DIR=str(cache)) == [20, 0, 0]
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    if os.access(cache, os.W_OK):
        pytest.skip("this user can write to read-only folders")
    assert run(code, tmp_path, NUMBA_CACHE_DIR=str(cache)) == [20, 1, 3]
    for folder in folders:
        folder.chmod(0o700)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_cache_files_that_changed_places_are_compiled_anew(tmp_path, kind):
    functions = "\n@kernel\ndef add(x):\n    return x + 1\n\n@kernel\ndef double(x):\n    return 2 * x\n"
    (tmp_path / "caller.py").write_text(f"from structrank._support.compile import kernel\n{functions}")
    code = "from caller import add, double; print(add(10), double(10))"
    assert run(code, tmp_path) == [11, 20]
    first, second = tmp_path.rglob(f"*.{kind}")
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    assert run(code, tmp_path) == [11, 20]


ADDRESS = """
from numba import types
from structrank._support.compile import address_of, caller_of, kernel

SIGNATURE = types.float64(types.float64[::1], types.int64)
call = caller_of(SIGNATURE)

@kernel
def pick(values, i):
    if i >= values.shape[0]:
        raise IndexError("too large")
    return values[i]

@kernel
def double(values, i):
    return 2.0 * values[i]

@kernel
def apply(address, values, i):
    return call(address, (values, i)) + 1.0
"""


def test_kernels_call_others_by_address_and_are_compiled_once(tmp_path):
    (tmp_path / "caller.py").write_text(ADDRESS)
    code = """
import numpy as np
from caller import *
values = np.array([1.0, 5.0])
for f in (pick, double):
    print(int(apply(address_of(f, SIGNATURE), values, 1)))
try:
    apply(address_of(pick, SIGNATURE), values, 2)
except IndexError as error:
    print(len(str(error)))
print(len(apply.signatures), sum(sum(f.stats.cache_hits.values()) for f in (pick, double)))
"""
    assert run(code, tmp_path) == [6, 11, 9, 1, 0]
    assert run(code, tmp_path) == [6, 11, 9, 1, 2]


def test_compiling_for_a_second_is_logged_once_and_shown_on_progress_lines(monkeypatch, caplog, capsys):
    clock, times = compile_time._Clock(), iter([0.0, 0.5, 0.9, 1.2, 1.4, 1.6, 1.8, 2.0])
    monkeypatch.setattr(compile_time.time, "perf_counter", lambda: next(times))
    shown = []

    class Line:
        announce = staticmethod(shown.append)

    line, start = Line(), types.SimpleNamespace(data={"dispatcher": linear.add_slopes})
    compile_time.show_on(line)
    with caplog.at_level("INFO", logger="structrank"):
        clock.on_start(start)  # at 0.0, looks at 0.5
        clock.on_start(start)  # 0.9
        assert not shown
        clock.on_end(start)  # 1.2
        clock.on_end(start)
    assert shown == [compile_time.MESSAGE]
    assert [record.getMessage() for record in caplog.records] == shown
    assert clock.total == pytest.approx(1.4)
    assert capsys.readouterr() == ("", "")


def test_kernels_without_an_entry_from_python_raise():
    from structrank._kernels import feature_maps

    with pytest.raises(TypeError, match="partial_order has no entry from Python"):
        feature_maps.partial_order(None)


FITS = """
import hashlib, sys, warnings
import numpy as np, scipy.sparse
from structrank import StructRankSVM, datasets
from structrank._kernels import linear
from structrank.learners import LambdaRank

warnings.simplefilter("ignore")  # some bounds are vacuous
train = datasets.make_ranking(n_queries=30, n_docs=12, n_features=37, noise=0.5, random_state=0).train
y, qid, some = train.y, train.qid, np.random.default_rng(0).random(train.X.shape) < 0.3
matrices = [train.X, scipy.sparse.csr_array(train.X * some), train.X.astype(np.float32)]
models = [(X, y, StructRankSVM(["map", "mrr"])) for X in matrices]  # oracles see scores, whatever the type of X
models += [(train.X, y, StructRankSVM(criterion)) for criterion in ("auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm")]
grades = np.random.default_rng(1).integers(0, 4, y.shape)
models += [(train.X, grades, StructRankSVM(criterion, relevant_from=None)) for criterion in ("ndcg", "err")]
models += [(train.X, y, StructRankSVM("map", C=100.0, solver=solver)) for solver in ("dual", "interior")]
models += [(train.X, y, LambdaRank(hidden_units=units, max_epochs=2, random_state=0)) for units in (0, 3)]
if "reversed" in sys.argv:
    models = models[::-1]
if "called first" in sys.argv:
    for X in matrices:
        csr = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else None
        some = None if csr else X, csr, 0, np.empty(0, np.int64), 0
        linear.scores(*some, np.zeros(X.shape[1]), np.empty(2))
        workspace, slope = linear.make_workspace(2), np.zeros((1, X.shape[1]))
        linear.add_slopes(*some, np.ones(2), np.array([0, 2]), np.zeros(1, np.int64), 0, workspace, slope)
scores = [model.fit(X, labels, qid=qid).predict(X) for X, labels, model in models]
if "reversed" in sys.argv:
    scores = scores[::-1]
for some in scores:
    print(int(hashlib.sha256(some.tobytes()).hexdigest()[:8], 16))
"""


def test_the_bits_of_a_fit_depend_neither_on_what_was_compiled_before_nor_on_the_processor(tmp_path, backend):
    def fit(*argv, **environment):
        return run(f"import sys; sys.argv += {argv}\n{FITS}", tmp_path, **environment)

    bits = fit()  # with whatever is in the cache
    another = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert fit("called first", **another) == bits
    for pattern in ("passes.sweep*", "dual.*", "interior.*"):
        callers = list(pathlib.Path(tmp_path).rglob(pattern))
        assert callers
        for path in callers:
            path.unlink()
    assert fit("reversed", **another) == bits  # callers are compiled, what they call is linked from the cache

    built = tmp_path / "built"  # a package as in a wheel
    for source, target in (("structrank", ""), ("solvers", "solvers"), ("datasets", "datasets")):
        shutil.copytree(ROOT / source, built / "structrank" / target, ignore=shutil.ignore_patterns("__pycache__"))
    compile_for_wheels = "from structrank._support.kernel_cache import compile_for_wheels; compile_for_wheels()"
    assert run(f"{compile_for_wheels}\n{FITS}", built) == bits  # callers first, with what they call
    backend.keep_kernels(built)
    code = f"{FITS}\nfrom structrank._support import compile_time; print(int(compile_time.seconds() > 0))"
    is_compiled = int(kernel_cache.prebuilt_target() is None)
    assert run(code, built.rename(tmp_path / "installed"), NUMBA_CACHE_DIR=str(tmp_path / "empty")) == [*bits, is_compiled]


def test_no_kernel_may_reorder_a_sum():
    for name, module in list(sys.modules.items()):
        if name.startswith("structrank."):
            for function in vars(module).values():
                if isinstance(function, Dispatcher):
                    assert not function.targetoptions.get("fastmath"), function


def test_lanes_sum_in_one_order_and_refuse_strided_arrays(rng):
    @numba.njit
    def call(x, y):
        return lanes.dot(x, y)

    for n in (0, 3, 4, 15, 16, 47):
        x, y = rng.random((2, n))
        products, sums = x * y, np.zeros((4, 4))
        for i in range(n - n % 4):
            sums[i // 4 % 4 if i < n - n % 16 else 0, i % 4] += products[i]
        a, b, c, d = (sums[0] + sums[1]) + (sums[2] + sums[3])
        rest = 0.0
        for product in products[n - n % 4 :]:
            rest += product
        assert call(x, y) == ((a + b) + (c + d)) + rest
        assert call(x.astype(np.float32), y) == call(x.astype(np.float32).astype(float), y)
    with pytest.raises(TypingError, match="contiguous"):
        call(np.ones(8)[::2], np.ones(4))


def test_kernels_work_where_no_folder_can_be_written(monkeypatch):
    def nowhere(*_, **__):
        raise FileNotFoundError("No usable temporary directory found")

    def no_locator(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(compile, "_can_be_written", lambda folder: False)
    monkeypatch.setattr("tempfile.mkdtemp", nowhere)
    compile.provide_cache()
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setattr(kernel_cache, "CheckedCache", no_locator)
    assert compile.kernel(lambda x: x + 1)(1) == 2
