"""Imports between packages, the cost of importing, and docstrings with running examples."""

import ast
import doctest
import importlib
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import structrank

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = ["structrank", "structrank.clicks", "structrank.datasets"]


def modules():
    yield "structrank"
    for module in pkgutil.walk_packages(structrank.__path__, "structrank."):
        if not module.name.endswith("__main__"):
            yield module.name
    for part in ("solvers", "datasets"):
        yield from (module.name for module in pkgutil.walk_packages([str(ROOT / part)], f"structrank.{part}."))


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", sorted(set(modules())))
def test_examples_in_docstrings_run(module):
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("folder", ["solvers", "datasets", "structrank/_kernels"])
def test_solvers_datasets_and_kernels_import_only_themselves_and_support(folder):
    own = f"structrank.{folder.rpartition('/')[2]}"
    for path in (ROOT / folder).rglob("*.py"):
        for name in imports_of(path):
            if name.split(".")[0] == "structrank":
                assert name.startswith((own, "structrank._support")), f"{path.name} imports {name}"


def test_requirements_imports_only_the_standard_library():
    names = {name.split(".")[0] for name in imports_of(ROOT / "structrank" / "_support" / "requirements.py")}
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(("library", "home"), [("osqp", "solvers/backends/osqp.py"), ("cvxpy", "solvers/backends/cvxpy.py")])
def test_each_solver_library_is_imported_in_one_file(library, home):
    for folder in ("structrank", "solvers", "datasets"):
        for path in (ROOT / folder).rglob("*.py"):
            if library in (name.split(".")[0] for name in imports_of(path)):
                assert path.relative_to(ROOT).as_posix() == home


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        *((f"import {name}", "cvxpy osqp pandas matplotlib sklearn numba scipy") for name in PACKAGES),
        ("import structrank.metrics", "pandas sklearn"),
        ("import structrank.comparison.plotting, structrank.comparison.diagnostics", "matplotlib"),
        ("from structrank import StructRankSVM", "cvxpy osqp matplotlib tqdm"),
    ],
)
def test_imports_are_light(statement, heavy):
    code = f"{statement}; import sys; print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_every_public_name_exists_and_is_documented():
    for name in structrank.__all__:
        value = getattr(structrank, name)
        assert value.__doc__, name
    assert set(structrank.__all__) <= set(dir(structrank))
    with pytest.raises(AttributeError, match="no attribute 'StructRank'"):
        structrank.StructRank  # noqa: B018


@pytest.mark.parametrize(
    "module", ["criteria", "feature_maps", "metrics", "svm", "training.violation", "training.history", "training.data"]
)
def test_every_public_class_and_function_has_a_docstring_with_an_example(module):
    module = importlib.import_module(f"structrank.{module}")
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__ or not callable(value):
            continue
        assert value.__doc__, name
        if name not in ("Violation", "Criterion", "Measure", "register", "kernel_matrix"):
            assert ">>>" in value.__doc__ or any(
                ">>>" in (getattr(method, "__doc__", None) or "") for method in vars(value).values()
            ), f"{module.__name__}.{name} has no example"
