"""Compiled code that is kept on disk: taken again while all sources are the same, and made anew if one has changed."""

import subprocess
import sys

CALLER = """
from structrank._compile import kernel
from callee import f

@kernel
def g(x):
    return f(x) + 1
"""
CALLEE = """
from structrank._compile import kernel

@kernel
def f(x):
    return {factor} * x
"""


def call(folder):
    """Give g(10), and how many compiled functions were taken from disk."""
    code = "from caller import g; print(g(10), sum(g.stats.cache_hits.values()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


def test_a_change_in_what_is_called_is_seen(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=2))
    assert call(tmp_path) == [21, 0]
    assert call(tmp_path) == [21, 1]
    (tmp_path / "callee.py").write_text(CALLEE.format(factor=3))
    assert call(tmp_path) == [31, 0]
    assert call(tmp_path) == [31, 1]
