"""Every notebook runs on the embedded data and on a LETOR folder, and is stored with its outputs."""

import re
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from traitlets.config import Config

from structrank import datasets

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PARAMETERS = 'folder = None  # e.g. "OHSUMED/": your LETOR folder\nquick = False  # True: less data, a few seconds'

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def quick(path, folder=None):
    """Read a notebook, in quick mode and for a folder."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.source == PARAMETERS)
    cell.source = f"folder = {None if folder is None else str(folder)!r}\nquick = True"
    return notebook


def run_here(notebook, monkeypatch, workplace):
    """Run the cells in this process, which is much faster than a kernel for each notebook; return what is not shown there."""
    monkeypatch.setenv("IPYTHONDIR", str(workplace / "ipython"))
    monkeypatch.chdir(workplace)
    matplotlib.use("agg")
    shell = InteractiveShell()
    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)  # as Python does by default
        for cell in notebook.cells:
            if cell.cell_type == "code":
                shell.run_cell(cell.source, store_history=False).raise_error()
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    shell.history_manager.end_session()
    return [str(warning.message) for warning in caught]


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def write_letor(path, part):
    lines = []
    for features, label, query in zip(part.X, part.y, part.qid, strict=True):
        pairs = " ".join(f"{number}:{value:.6f}" for number, value in enumerate(features, start=1))
        lines.append(f"{label:g} qid:{query} {pairs} #docid = D{len(lines)}\n")
    path.write_text("".join(lines))


@pytest.fixture
def letor_folder(tmp_path):
    """Two folds in LETOR format, with graded labels and no validation part."""
    folder = tmp_path / "MINE"
    for number in (1, 2):
        fold = datasets.make_ranking(n_queries=40, n_docs=(6, 14), n_features=5, n_grades=3, noise=0.5, random_state=number)
        (folder / f"Fold{number}").mkdir(parents=True)
        write_letor(folder / f"Fold{number}" / "train.txt", fold.train)
        write_letor(folder / f"Fold{number}" / "test.txt", fold.test)
    return folder


@each_notebook
def test_notebook_runs_on_the_embedded_data(path, tmp_path, monkeypatch, capfd):
    assert run_here(quick(path), monkeypatch, tmp_path) == [], "notebooks must not show warnings"
    out, err = capfd.readouterr()
    assert out
    assert not err
    assert [entry.name for entry in tmp_path.iterdir()] == ["ipython"], "notebooks leave no files"


@each_notebook
def test_notebook_runs_on_a_letor_folder(path, letor_folder, tmp_path, monkeypatch):
    run_here(quick(path, letor_folder), monkeypatch, tmp_path)


def test_a_kernel_runs_a_notebook(tmp_path, monkeypatch):
    notebook = quick(NOTEBOOKS[0])
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("MPLBACKEND")  # the kernel's own backend stores the figures
    with tempfile.TemporaryDirectory() as sockets:
        # Sockets rather than ports, because two kernels that start at the same time may choose the same port. Socket names
        # must be short, and absolute because the kernel runs in another folder.
        settings = {} if sys.platform == "win32" else {"transport": "ipc", "ip": f"{sockets}/kernel"}
        resources = {"metadata": {"path": str(tmp_path)}}
        config = Config({"KernelManager": settings})
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources, config=config).execute()
    assert not [output.text for output in outputs(notebook) if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))


@each_notebook
def test_stored_notebook_has_outputs_and_no_machine_paths(path):
    assert path.stat().st_size < 300_000
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells].count(PARAMETERS) == 1
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "stored as run, from top to bottom"
    kinds = {output.output_type for output in outputs(notebook)}
    assert kinds, "stored with its results"
    assert "error" not in kinds
    assert not [output.text for output in outputs(notebook) if output.get("name") == "stderr"]
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"/(?:work|tmp|home|root|Users|usr)/[^\"\\ ]*|\bat 0x[0-9a-f]{6,}", text)
    assert not found, "absolute paths or memory addresses"


def test_the_readme_has_a_line_for_each_notebook():
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    for path in NOTEBOOKS:
        assert len([line for line in lines if f"({path.name})" in line]) == 1, path.name
    linked = re.findall(r"\(([^)]+\.ipynb)\)", "\n".join(lines))
    assert sorted(linked) == [path.name for path in NOTEBOOKS]
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{number:02d}" for number in range(1, len(NOTEBOOKS) + 1)]


@each_notebook
def test_every_figure_is_described_in_words(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    shown = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    for cell in shown:
        assert len(cell.metadata["mystnb"]["image"]["alt"].split()) > 3, cell.source
