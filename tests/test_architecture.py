"""What the tree promises: who imports whom, what importing costs, that examples run."""

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


@pytest.mark.parametrize("folder", ["solvers", "datasets", "structrank/_kernels"])
def test_solvers_data_sets_and_kernels_know_only_themselves_and_what_all_share(folder):
    own = f"structrank.{folder.rpartition('/')[2]}"
    for path in (ROOT / folder).rglob("*.py"):
        for name in imports_of(path):
            if name.split(".")[0] == "structrank":
                assert name.startswith((own, "structrank._support")), f"{path.name} imports {name}"


def test_the_table_of_requirements_can_be_imported_from_everywhere():
    names = {name.split(".")[0] for name in imports_of(ROOT / "structrank" / "_support" / "requirements.py")}
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(("library", "home"), [("osqp", "solvers/backends/osqp.py"), ("cvxpy", "solvers/backends/cvxpy.py")])
def test_each_solver_library_has_one_home(library, home):
    for folder in ("structrank", "solvers", "datasets"):
        for path in (ROOT / folder).rglob("*.py"):
            if library in (name.split(".")[0] for name in imports_of(path)):
                assert path.relative_to(ROOT).as_posix() == home


def test_importing_is_light():
    code = (
        "import sys, structrank; "
        "heavy = {'cvxpy', 'osqp', 'pandas', 'matplotlib', 'sklearn', 'numba', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "from structrank import StructRankSVM; "
        "heavy = {'cvxpy', 'osqp', 'matplotlib', 'tqdm'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there_and_documented():
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
