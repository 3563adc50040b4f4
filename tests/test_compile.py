"""Compiled code that is kept on disk: taken again while all sources are the same, and made anew if one has changed."""

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
    """Return the numbers that code prints, in a process of its own."""
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
    """Return g(10), and how many compiled functions were taken from disk."""
    return run("from caller import g; print(g(10), sum(g.stats.cache_hits.values()))", folder)


def test_a_change_in_what_is_called_is_seen(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert call(tmp_path) == [21, 0]
    assert call(tmp_path) == [21, 1]
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=3))
    assert call(tmp_path) == [31, 0]
    assert call(tmp_path) == [31, 1]


def test_without_a_compiler_functions_stay_as_they_are(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert run("from caller import g; print(g(10))", tmp_path, NUMBA_DISABLE_JIT="1") == [21]
