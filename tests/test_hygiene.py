"""The claims of SECURITY.md, and agreement of setup.cfg, type stubs, CITATION.cff and CHANGELOG.md with the package."""

import ast
import configparser
import importlib.metadata
import inspect
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

import structrank
from structrank import criteria, datasets, metrics
from structrank.models import files

ROOT = pathlib.Path(__file__).parent.parent
FILES = sorted(path for folder in ("structrank", "solvers", "datasets") for path in (ROOT / folder).rglob("*.py"))
TREES = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]

FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "dbm", "runpy", "code", "codeop"),
    *("socket", "_socket", "socketserver", "ssl", "urllib", "urllib3", "http", "requests", "httpx", "aiohttp"),
    *("ftplib", "smtplib", "telnetlib", "xmlrpc", "subprocess", "webbrowser"),
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
FORBIDDEN_METHODS = {"read_pickle", "to_pickle", "eval", "system", "popen", "urlopen", "urlretrieve"}


@pytest.fixture(scope="module")
def setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def imported(tree):
    """Yield the top-level names of the modules that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = isinstance(node.args[0], ast.Constant)
            yield node.args[0].value.split(".")[0] if named else "structrank"  # computed names are modules of structrank


def unsafe_places(tree):
    """Yield the places where a file evaluates text, unpickles, uses the network or starts programs."""
    for name in imported(tree):
        if name in FORBIDDEN_MODULES:
            yield f"imports {name}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield f"line {node.lineno} calls {node.func.id}"
        if isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN_METHODS:
            yield f"line {node.lineno} calls .{node.func.attr}"
        for keyword in node.keywords:
            if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False:
                yield f"line {node.lineno} allows pickle"


@pytest.mark.parametrize(
    "text",
    [
        *("import pickle", "from urllib.request import urlopen", "def f():\n    import socket", "import http.client as c"),
        *("eval('1')", "exec(text)", "x = __import__('os')", "frame.eval('a + b')", "np.load(f, allow_pickle=True)"),
        *("np.load(f, allow_pickle=flag)", "importlib.import_module('pickle')", "os.system('ls')"),
    ],
)
def test_unsafe_code_is_found(text):
    assert list(unsafe_places(ast.parse(text)))


def test_the_package_contains_no_unsafe_code():
    assert len(TREES) > 50
    assert {path.name: places for path, tree in TREES if (places := list(unsafe_places(tree)))} == {}


# Audit hooks also see the calls of libraries.
WATCHED = """
import sys

events = []

def watch(event, arguments):
    if event.startswith(PREFIXES):
        events.append((event, str(arguments)[:200]))

PREFIXES = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "os.system", "os.exec")
"""


def run(code, *arguments):
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True, timeout=300)


def test_importing_training_and_predicting_open_no_connection(tmp_path):
    code = """
sys.addaudithook(watch)
import structrank
from structrank import StructRankSVM, datasets, load_model, metrics
fold = datasets.make_ranking(n_queries=20, n_docs=6, n_features=3, random_state=0)
model = StructRankSVM("map", n_jobs=2).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
model.save(sys.argv[1])
scores = load_model(sys.argv[1]).predict(fold.test.X)
metrics.evaluate(fold.test.y, scores, fold.test.qid, ["map", "ndcg@10"])
for name in structrank.__all__:
    getattr(structrank, name)
assert not events, events
"""
    run(WATCHED + code, tmp_path / "m")


def test_loading_a_model_executes_no_code_and_opens_no_other_file(tmp_path):
    path = tmp_path / "m"
    structrank.StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0).save(path)
    code = """
import os
from structrank import load_model
load_model(sys.argv[1])  # imports modules
PREFIXES = (*PREFIXES, "exec", "compile", "import", "open", "ctypes.", "pickle.", "marshal.", "os.", "code.", "subprocess.")
sys.addaudithook(watch)
load_model(sys.argv[1])
found = list(events)
assert [event for event, _ in found] == ["open"], found
assert repr(sys.argv[1]) in found[0][1], found
"""
    run(WATCHED + code, path)


# ---- Installation


def requirements(setup):
    extras = setup["options.extras_require"]
    listed = {"": setup["options"]["install_requires"], **{extra: extras.get(extra, raw=True) for extra in extras}}
    for extra, text in listed.items():
        for line in text.split("\n"):
            if line.strip() and not line.startswith("%"):
                yield extra, line.strip()


def test_every_requirement_has_a_lower_bound_and_no_upper_one(setup):
    for _, requirement in requirements(setup):
        assert re.fullmatch(r"[A-Za-z0-9_-]+>=[0-9.]+", requirement), requirement


def test_every_imported_library_is_required(setup):
    names = {re.split(">=", line)[0].lower().replace("_", "-") for extra, line in requirements(setup) if extra != "test"}
    names.add("joblib")  # a dependency of scikit-learn that is part of its public interface
    homes = importlib.metadata.packages_distributions()
    for path, tree in TREES:
        for name in set(imported(tree)) - set(sys.stdlib_module_names) - {"structrank"}:
            distributions = {home.lower().replace("_", "-") for home in homes.get(name, [name])}
            assert distributions & names, f"{path.relative_to(ROOT)} imports {name}, which setup.cfg does not require"


def test_every_package_and_file_of_the_tree_is_installed(setup):
    homes = {"structrank": ROOT / "structrank"}
    homes |= {f"structrank.{name}": ROOT / name for name in ("solvers", "datasets")}
    found = {
        ".".join([package, *path.parent.relative_to(home).parts])
        for package, home in homes.items()
        for path in home.rglob("__init__.py")
    }
    assert set(setup["options"]["packages"].split()) == found
    data = {package: re.split(r",\s*", text) for package, text in setup["options.package_data"].items()}
    for package, home in homes.items():
        for path in home.rglob("*"):
            if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__":
                inside = ".".join([package, *path.parent.relative_to(home).parts])
                assert any(path.match(pattern) for pattern in data.get(inside, [])), f"{path} is not in package_data"


# ---- Types


PUBLIC = [
    *(structrank.compare, structrank.cross_validate, structrank.train_for, structrank.most_violated, structrank.load_model),
    *(structrank.register, criteria.matched_criterion, criteria.parse),
    *(metrics.evaluate, metrics.parse, files.save_model, files.read_header),
    *(datasets.load_letor, datasets.load_letor_folds, datasets.load, datasets.available),
    *(datasets.make_ranking, datasets.load_digits_retrieval),
    *(getattr(structrank.StructRankSVM, name) for name in ("__init__", "fit", "fit_path", "predict", "score", "rank", "save")),
]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_public_signatures_are_typed(function):
    signature = inspect.signature(function)
    untyped = [name for name, one in signature.parameters.items() if name != "self" and one.annotation is one.empty]
    assert not untyped
    assert signature.return_annotation is not signature.empty


@pytest.mark.parametrize("package", ["structrank", "clicks", "datasets", "learners", "papers", "selection"])
def test_every_name_of_a_stub_exists_and_no_import_of_a_stub_is_overlooked(package):
    module = structrank if package == "structrank" else getattr(structrank, package)
    stub = ast.parse(pathlib.Path(module.__file__).with_suffix(".pyi").read_text())
    names = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names} - {None}
    assert names == set(module.__all__) - {"exhibits"}
    assert names <= set(dir(module))
    for name in names:
        assert getattr(module, name).__name__.rpartition(".")[2] == name
    assert (ROOT / "structrank" / "py.typed").exists()


# ---- Files about the package


def test_versions_agree(setup):
    version = structrank.__version__
    assert setup["metadata"]["version"] == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    headings = re.findall(r"^## (\S+), ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version


def test_the_citation_has_the_required_fields():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)


def test_documented_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    text = "".join((ROOT / name).read_text() for name in ("SECURITY.md", "CHANGELOG.md", "README.md"))
    for target in set(re.findall(r"make (\w+)", text)) & {"table", "test", "types", "fuzz", "kills", "audit", "lowest"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_docstrings_are_in_the_imperative():
    others = [
        (path, ast.parse(path.read_text())) for folder in ("benchmarks", "tests") for path in (ROOT / folder).glob("*.py")
    ]
    for path, tree in TREES + others:
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                first = (ast.get_docstring(node) or "").split(" ")[0]
                assert first not in ("Give", "Gives", "Tell", "Tells", "Say", "Says"), f"{path}: {first} ..."
