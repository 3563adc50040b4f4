"""The program behind `make engines`: what counts as a changed rank, and what it says without a JDK."""

import importlib.util
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parent / "engines"


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("engines_report", FOLDER / "report.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_a_swap_within_a_query_is_counted(report):
    qid = np.array([1, 1, 1, 2, 2])
    expected = np.array([3.0, 2.0, 1.0, 5.0, 4.0])
    assert report.ranks_that_differ(expected, expected * 7.0 - 3.0, qid) == 0
    assert report.ranks_that_differ(expected, np.array([3.0, 1.0, 2.0, 5.0, 4.0]), qid) == 2
    assert report.ranks_that_differ(expected, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), qid) == 4
    assert report.ranks_that_differ(expected, np.array([0.2, 0.1, 0.0, 0.0, 0.0]), qid) == 0  # a tie contains both orders


@pytest.mark.parametrize("scores", [np.full(4, np.nan), np.full(4, 2.0), np.array([4.0, 3.0, 2.0, 1.001])])
def test_scores_that_differ_are_an_error_also_where_ranks_do_not(report, scores):
    suite, case = SimpleNamespace(qid=np.zeros(4)), SimpleNamespace(name="model", expected=np.array([4.0, 3.0, 2.0, 1.0]))
    assert report.compare(suite, "engine", "1", case, case.expected + 1e-6, False).error is None
    assert report.compare(suite, "engine", "1", case, scores, False).error.startswith("a score differs by")
    assert report.compare(suite, "engine", "1", case, case.expected - 3.0, True).error is None


def test_scores_that_are_equal_in_32_bits_may_swap(report):
    qid, expected = np.zeros(3, dtype=int), np.array([1.0, 1.0 - 1e-9, 0.5])
    assert report.ranks_that_differ(expected, np.array([1.0, 1.1, 0.5]), qid) == 0
    assert report.ranks_that_differ(np.array([1.0, 1.0 - 1e-6, 0.5]), np.array([1.0, 1.1, 0.5]), qid) == 2


def test_without_a_jdk_it_says_so_and_stops(tmp_path):
    done = subprocess.run([sys.executable, FOLDER], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert "java, javac, mvn not found. Install a JDK (17 or later) and Maven" in done.stdout
