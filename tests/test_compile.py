"""The cache of compiled functions: reused while all sources are unchanged, and recompiled after a change."""

import os
import subprocess
import sys

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
    """Run code in a subprocess; return the numbers it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
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
