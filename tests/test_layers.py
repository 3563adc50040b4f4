"""Few names at the top of the package, imports only from lower layers, no import cycles, private modules stay private."""

import ast
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# Lowest layer first; a module may import its own layer and lower ones. The longest prefix of a module decides its layer. See
# docs/architecture.md.
LAYERS = [
    {"", "_support"},
    {"_kernels", "solvers"},
    {"_support.checks", "plots"},
    {"datasets"},
    {"feature_maps", "oracles", "metrics", "preparation"},
    {"criteria", "penalties"},
    {"models"},
    {"training"},
    {"svm", "distributed"},
    {"learners", "clicks", "models.imports", "comparison.significance"},
    {"selection"},
    {"comparison"},
    {"papers"},
    {"cli", "__main__"},
]


def modules():
    """Return the path of each module by its name below `structrank`."""
    found = {}
    for folder in ("structrank", "solvers", "datasets"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[1:] if folder == "structrank" else parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(path):
    """Yield the modules of the package that a file imports, also inside functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            root, _, module = name.partition(".")
            if root == "structrank":
                yield module if module in MODULES else module.rpartition(".")[0]


GRAPH = {module: set(imports_of(path)) - {module} for module, path in MODULES.items()}


def layer_of(module):
    prefixes = [".".join(module.split(".")[:n]) for n in range(module.count(".") + 1, 0, -1)] + [""]
    return next(number for prefix in prefixes for number, layer in enumerate(LAYERS) if prefix in layer)


def test_every_module_belongs_to_a_layer():
    known = set().union(*LAYERS)
    assert {module.split(".")[0] for module in MODULES} <= {name.split(".")[0] for name in known}


def test_there_is_no_import_cycle():
    graphlib.TopologicalSorter(GRAPH).prepare()  # raises CycleError with the cycle


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_downwards(module):
    above = {other for other in GRAPH[module] if layer_of(other) > layer_of(module)}
    assert not above, f"{module or 'structrank'} imports {', '.join(sorted(above))} from a higher layer"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_private_modules_stay_within_their_package(module):
    for other in GRAPH[module]:
        parts = other.split(".")
        private = next((number for number, part in enumerate(parts) if part.startswith("_")), None)
        if private is not None:
            owner = ".".join(parts[:private])
            assert module == owner or module.startswith(f"{owner}.") or not owner, f"{module} imports {other}"


def test_only_papers_and_the_command_line_import_clicks():
    users = {module.split(".")[0] for module, its in GRAPH.items() if any(f"{other}.".startswith("clicks.") for other in its)}
    assert users == {"clicks", "papers", "cli"}


def test_the_top_of_the_package_has_at_most_19_names():
    names = {path.stem for path in (ROOT / "structrank").iterdir() if not path.name.startswith("__")} - {"py"}
    assert len(names) <= 19, sorted(names)
