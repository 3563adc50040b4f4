"""The pages: their code runs, their links lead somewhere, and the reference lists every public name."""

import importlib
import inspect
import pathlib
import re
import runpy
import shlex
import shutil
import types

import pytest

from structrank import cli

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "notebooks" / "README.md"]
)
# A block after this comment is not run; the reason stands on the page.
NOT_RUN = "<!-- not run: "
BLOCK = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>python|sh)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
ELSEWHERE = ("docs/engines.md", "docs/production.md", "docs/integrations/")  # test_exports.py, test_integrations.py


def blocks(page, also_not_run=False):
    """Yield the language and the text of the blocks of a page that are run."""
    for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        if also_not_run or not match["before"].startswith(NOT_RUN):
            yield match["language"], match["code"]


def commands(code):
    """Yield the arguments of the commands of structrank in a block."""
    for line in code.splitlines():
        if line.startswith("structrank "):
            yield shlex.split(line.partition(" > ")[0], comments=True)[1:]


SHOWN = [
    (page, words)
    for page in PAGES
    for kind, code in blocks(page, also_not_run=True)
    if kind == "sh"
    for words in commands(code)
]
TESTED = [page for page in PAGES if not page.startswith(ELSEWHERE) and "python" in dict(blocks(page))]


def run_page(page, with_commands):
    """Run the code of a page from top to bottom in the current folder; `with_commands` adds those of structrank."""
    names = {}
    for number, (language, code) in enumerate(blocks(page)):
        if language == "python":
            path = pathlib.Path(f"block{number}.py")
            path.write_text(code, encoding="utf-8")
            names = runpy.run_path(str(path), init_globals=names)
        elif with_commands:
            for words in commands(code):
                assert cli.main(words) == 0, words
    return names


@pytest.mark.parametrize("page", TESTED)
@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_pages_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, with_commands=page == "docs/tutorial.md")


@pytest.mark.parametrize(("page", "words"), SHOWN)
def test_commands_have_the_options_that_pages_show(page, words):
    if words == ["--version"]:  # prints and exits
        words = []
    cli._parser().parse_args(words)  # an error exits


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        place, _, heading = target.partition("#")
        file = (ROOT / page).parent / place if place else ROOT / page
        assert file.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in headings], target


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for body in re.findall(r"```{toctree}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
            for line in body.splitlines():
                if line and not line.startswith(":") and "*" not in line:
                    name = re.sub(r".* <(.*)>", r"\1", line)  # perhaps with a title of its own
                    file = ((ROOT / page).parent / f"{name}.md").resolve()
                    assert file.exists(), line
                    listed.add(file.relative_to(ROOT).as_posix())
    pages = {page for page in PAGES if page.startswith("docs/")} - {"docs/index.md"}
    assert pages <= listed


def entries_of_the_reference():
    current = None
    for line in (ROOT / "docs" / "api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            current = line.split(":: ")[1]
        elif re.fullmatch(r"   [\w.]+", line):
            yield f"{current}.{line.strip()}"


ENTRIES = sorted(set(entries_of_the_reference()))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_the_reference_exists_and_describes_its_parameters(entry):
    place, _, name = entry.rpartition(".")
    entry = getattr(importlib.import_module(place), name)
    text = inspect.getdoc(entry)
    assert len(text) > 60
    if not (inspect.isclass(entry) and issubclass(entry, Warning)) and inspect.signature(entry).parameters:
        assert re.search(r"^(Parameters|Attributes)\n---", text, re.MULTILINE)


@pytest.mark.parametrize(
    "module", ["", ".datasets", ".metrics", ".learners", ".clicks", ".solvers", ".models.exports", ".models.imports"]
)
def test_the_reference_lists_every_public_name(module):
    module = importlib.import_module(f"structrank{module}")
    rooms = {
        "clicks",
        "criteria",
        "datasets",
        "feature_maps",
        "learners",
        "metrics",
        "papers",
        "penalties",
        "selection",
        "solvers",
    }
    assert {f"{module.__name__}.{name}" for name in module.__all__ if name not in rooms} <= set(ENTRIES)


@pytest.fixture(scope="module")
def settings():
    pytest.importorskip("docutils")
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


def test_the_gallery_has_a_card_for_each_notebook(settings, tmp_path):
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    source = ["# Notebooks\n"]
    settings["_add_gallery"](types.SimpleNamespace(srcdir=tmp_path), "docs/notebooks", source)
    names = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert re.findall(r"^:link: ../notebooks/(.*)$", source[0], re.MULTILINE) == names
    shown = re.findall(r"^:img-bottom: ../notebooks/(.*)$", source[0], re.MULTILINE)
    assert shown
    assert all((tmp_path / "notebooks" / name).read_bytes().startswith(b"\x89PNG") for name in shown)


def test_names_of_measures_are_not_links_to_electronic_mail(settings):
    core = importlib.import_module("docutils.core")
    document = core.publish_doctree("Measures: mrr@10, ndcg@10 and questions@example.org.")
    settings["_unlink_measures"](None, document)
    (link,) = document.findall(importlib.import_module("docutils.nodes").reference)
    assert link.astext() == "questions@example.org"
    assert document.astext() == "Measures: mrr@10, ndcg@10 and questions@example.org."
