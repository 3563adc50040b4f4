"""The HTML report: contents, self-containedness, escaping of names, writing, and behaviour in a browser."""

import base64
import hashlib
import html.parser
import itertools
import json
import math
import os
import re
import shutil

import numpy as np
import pytest

from structrank import StructRankSVM, compare, metrics
from structrank._support.text import printable_output
from structrank.comparison.cells import Cell
from structrank.comparison.report import contents
from structrank.comparison.report.page import write_report
from structrank.comparison.table import CriterionTable
from structrank.datasets import Dataset, Fold, make_ranking

HOSTILE = '</script><img src=x onerror="window.broken=1"><b>&amp;\u2028$data'
MINUS = "\N{MINUS SIGN}"
MEASURES = [metrics.parse(name, gain="binary", discount="kdd08") for name in ("mrr@10", "ndcg@10", "map")]


class Feature:
    """A trainer from outside the package: ranks by one feature, and has no C."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y, qid):
        return self

    def predict(self, X):
        return X[:, self.column]


def named(fold, prefix="doc-"):
    """Return a fold with named test documents and one test query without a relevant document."""
    test = fold.test
    y = np.where(test.qid == test.qid[0], 0, test.y)
    docid = np.array([f"{prefix}{row}" for row in range(len(y))])
    return Fold(fold.train, fold.validation, Dataset(test.X, y, test.qid, docid))


@pytest.fixture(scope="module")
def folds():
    settings = {"n_queries": 60, "n_docs": (30, 70), "n_features": 5, "noise": 3.0}
    return {
        "made": [named(make_ranking(**settings, random_state=seed)) for seed in range(2)],
        "other": [make_ranking(n_queries=30, n_docs=8, n_features=5, n_grades=4, random_state=2)],
    }


@pytest.fixture(scope="module")
def table(folds):
    trainers = {"first feature": Feature(0), "second feature": Feature(1), "third feature": Feature(2)}
    ours = {"AUC": StructRankSVM("auc"), "DORM": StructRankSVM("dorm", decay="sqrt@30")}  # the second warns
    cells = compare(folds, trainers=ours, Cs=[0.1, 10.0]).cells + compare(folds, trainers=trainers).cells
    settings = {"Cs": [0.1, 10.0], "select": "own", "preparation": "", "trainers": {"AUC": "StructRankSVM('auc')"}}
    return CriterionTable(cells, folds, MEASURES, settings=settings)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    table.to_report(path)
    return path


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def small_table(scores, y, qid, docid=None, dataset="d", trainers=None, notes=(), settings=None):
    """Return a table of one fold from the scores of each trainer."""
    part = Dataset(np.zeros((len(y), 2)), np.asarray(y), np.asarray(qid), docid)
    trainers = [f"t{number}" for number in range(len(scores))] if trainers is None else trainers
    cells = [
        Cell(dataset, 0, name, None, None, 0.1, notes, np.asarray(some, dtype=float))
        for name, some in zip(trainers, scores, strict=True)
    ]
    return CriterionTable(cells, {dataset: [Fold(part, None, part)]}, MEASURES, settings=settings)


def written(table, tmp_path):
    table.to_report(tmp_path / "report.html")
    return Page((tmp_path / "report.html").read_text(encoding="utf-8"))


class Page(html.parser.HTMLParser):
    """The elements of a page before its script runs."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.raw, self.elements, self.tables, self.scripts, self.styles, self.texts = text, [], {}, [], [], []
        self._inside, self._in_cell = [], False
        self.feed(text)
        self.close()
        self.text = " ".join(" ".join(self.texts).split())
        (self.data,) = [json.loads(text) for attributes, text in self.scripts if attributes.get("id") == "contents"]

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if tag in ("script", "style"):
            self._inside.append((tag, attributes))
            (self.scripts if tag == "script" else self.styles).append((attributes, ""))
        elif tag == "table":
            self.rows = self.tables.setdefault(attributes.get("id", len(self.tables)), [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append({**attributes, "text": ""})
            self._in_cell = True

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside.pop()
        elif tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, text):
        if self._inside:
            found = self.scripts if self._inside[-1][0] == "script" else self.styles
            found[-1] = (found[-1][0], found[-1][1] + text)
            return
        self.texts.append(text)
        if self._in_cell:
            self.rows[-1][-1]["text"] += text


def ranking_by_hand(table, folds, dataset, fold, query, trainer):
    """Return the (docid or row, label, score) of a query's documents, the best first."""
    test = folds[dataset][fold].test
    (cell,) = [cell for cell in table.cells if (cell.dataset, cell.fold, cell.trainer) == (dataset, fold, trainer)]
    rows = [row for row in range(len(test.y)) if str(test.qid[row]) == query]
    rows.sort(key=lambda row: -cell.scores[row])
    names = rows if test.docid is None else [test.docid[row] for row in rows]
    return [(name, test.y[row], cell.scores[row]) for name, row in zip(names, rows, strict=True)]


# Contents


def test_numbers_and_marks_equal_the_table(table, page):
    frame, marks = table.to_frame(), table.marks()
    _, heads, *rows = page.tables["criterion-table"]
    assert [head["text"] for head in heads] == ["Trained on", *(measure for _, measure in frame.columns)]
    assert [row[0]["text"].removesuffix(" !") for row in rows] == frame.index.tolist()
    for row in rows:
        name = row[0]["text"].removesuffix(" !")
        for cell, column in zip(row[1:], frame.columns, strict=True):
            assert float(cell["data-value"]) == frame.loc[name, column]
            assert cell["text"] == f"{frame.loc[name, column]:.3f}"
            classes, mark = cell["class"].split(), marks[name, *column]
            assert ("best" in classes, "second" in classes) == (mark.startswith("**"), mark.rstrip("<v") == "*")
            assert ("below" in classes, "vacuous" in classes) == ("<" in mark, "v" in mark)
    assert "<" in "".join(marks.values()), "the data should have a row that is significantly below"


def test_the_legend_explains_marks_correction_conventions_and_undefined_queries(table, page):
    assert table.undefined["made", "map"] == 2
    for text in (
        "best of its column",
        "second best",
        "significantly below the best",
        "p ≤ 0.05",
        "paired randomisation test",
        "Holm's correction over the rows of the column",
        "ndcg@10 (gain=binary, discount=kdd08, relevant_from=1)",
        "made map: 2 of 24",
    ):
        assert text in page.text


def test_every_paired_test_is_listed(table, page):
    frame = table.significance()
    (rows,) = [rows[1:] for rows in page.tables.values() if rows[0][0]["text"] == "Data set"]
    assert [tuple(cell["text"] for cell in row[:4]) for row in rows] == [
        (*place, best) for place, best in zip(frame.index, frame["best"], strict=True)
    ]
    values = np.array([[float(cell["data-value"]) for cell in row[4:]] for row in rows])
    columns = ["difference", "p_t", "p_t_holm", "p_randomisation", "p_randomisation_holm"]
    np.testing.assert_array_equal(values, frame[columns].to_numpy())


def test_values_of_queries_equal_the_table(table, page):
    assert page.data["trainers"] == table.trainers
    for dataset in page.data["datasets"]:
        assert dataset["ids"] == [str(value) for value in table.query_ids[dataset["name"]]]
        for measure, values in zip(table.measures, dataset["values"], strict=True):
            for name, row in zip(table.trainers, values, strict=True):
                row = [math.nan if value is None else value for value in row]
                np.testing.assert_allclose(row, table.per_query[name, dataset["name"], measure], atol=1e-6)


def test_gains_and_losses_are_counted_over_all_queries(table, page):
    made, j = page.data["datasets"][0], table.trainers.index("AUC")
    for i, name in enumerate(table.trainers):
        difference = table.per_query["AUC", "made", "map"] - table.per_query[name, "made", "map"]
        assert made["counts"][2][i][j] == [int((difference > 1e-6).sum()), int((difference < -1e-6).sum())]
    assert made["undefined"] == [2, 2, 2]


def test_rankings_follow_the_scores(table, folds, page):
    for dataset in page.data["datasets"]:
        for query, fold, ranking in zip(dataset["ids"], dataset["folds"], dataset["rankings"], strict=True):
            for number, trainer in enumerate(table.trainers):
                expected = ranking_by_hand(table, folds, dataset["name"], fold, query, trainer)
                assert ranking["nDocs"] == len(expected)
                assert ranking["nRelevant"] == sum(label >= 1 for _, label, _ in expected)
                order, expected = ranking["orders"][number], expected[: contents.N_TOP]
                assert [ranking["docs"][place] for place in order] == [name for name, _, _ in expected]
                assert [ranking["labels"][place] for place in order] == [label for _, label, _ in expected]
                np.testing.assert_allclose(ranking["scores"][number], [score for *_, score in expected], rtol=1e-4)


def test_documents_of_equal_score_are_marked_as_tied(tmp_path):
    table = small_table([[3, 3, 1, 0, 0, 0], range(6)], [1, 0, 0, 1, 0, 0], [1] * 6)
    (ranking,) = written(table, tmp_path).data["datasets"][0]["rankings"]
    assert ranking["ties"] == [[1, 4, 5], []]
    assert ranking["docs"] == [0, 1, 2, 3, 4, 5], "documents without names are shown by their row"


def test_data_settings_versions_and_notes_are_listed(table, folds, page):
    for text in (
        "measure ndcg@10",
        "Cs 0.1, 10",
        "select own",
        "preparation none",
        "StructRankSVM('auc')",
        f"numpy {np.__version__}",
    ):
        assert text in page.text
    (rows,) = [rows for rows in page.tables.values() if rows[0][0]["text"] == "Fold" and len(rows) == 7]
    heads = [cell["text"] for cell in rows[0]]
    for row, (number, name) in zip(rows[1:], [(n, p) for n in range(2) for p in ("train", "validation", "test")], strict=True):
        part, found = getattr(folds["made"][number], name), dict(zip(heads, row, strict=True))
        values = {head: float(cell["data-value"]) for head, cell in found.items() if "data-value" in cell}
        assert (found["Fold"]["text"], found["Part"]["text"]) == (str(number + 1), name)
        assert values == {
            "Documents": len(part.y),
            "Queries": len(set(part.qid)),
            "Features": 5,
            "Label 0": (part.y == 0).sum(),
            "Label 1": (part.y == 1).sum(),
            "Queries of one kind": 1 if name == "test" else 0,
        }
    assert table.notes
    for texts in table.notes.values():
        for text in texts:
            assert " ".join(text.split()) in page.text


def test_large_reports_omit_queries_on_which_trainers_agree_and_mention_it(tmp_path, monkeypatch):
    n_queries, n_docs = 40, 60
    rng = np.random.default_rng(0)
    y, qid = rng.integers(2, size=n_queries * n_docs), np.repeat(np.arange(n_queries), n_docs)
    scores = rng.normal(size=y.shape)
    table = small_table([scores, np.where(qid < 8, -scores, scores)], y, qid)
    monkeypatch.setattr(contents, "_MOST_VALUES", 30 * 2 * 3)
    monkeypatch.setattr(contents, "_MOST_RANKED", 5 * 2 * contents.N_TOP)
    page = written(table, tmp_path)
    (dataset,) = page.data["datasets"]
    assert len(dataset["ids"]) == 30
    assert set(map(str, range(8))) <= set(dataset["ids"])
    held = {id for id, ranking in zip(dataset["ids"], dataset["rankings"], strict=True) if ranking is not None}
    assert len(held) == 5
    assert held < set(map(str, range(8)))
    assert dataset["nQueries"] == 40
    assert "holds the values of 30 of 40 test queries" in page.text
    assert "holds the rankings of 5 of 40 test queries" in page.text
    assert "Rankings are cut after 50 documents." in page.text


def test_infinite_scores_and_columns_without_any_value_are_shown(tmp_path):
    table = small_table([[math.inf, -math.inf, 0], [1, 2, 3]], [0, 0, 0], ["a"] * 3)
    page = written(table, tmp_path)
    assert page.data["datasets"][0]["rankings"][0]["scores"][0] == ["∞", 0, f"{MINUS}∞"]
    *_, row = page.tables["criterion-table"]
    assert [(cell["text"], cell["data-value"]) for cell in row[1:]] == [("\N{EN DASH}", "")] * 3


# Self-containedness


def test_the_page_is_self_contained(page):
    assert not re.search(r"https?:|//[a-z]|@import|url\(", re.sub(r"(?m)^ *//.*$", "", page.raw))
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "srcset", "style"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_targets_of_links_exist(page):
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = {attributes["href"][1:] for tag, attributes in page.elements if tag == "a"}
    assert links
    assert links <= ids


def test_the_content_security_policy_allows_only_the_scripts_of_the_page(page):
    (policy,) = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    (script,) = [text for attributes, text in page.scripts if attributes.get("type") != "application/json"]
    ((_, style),) = page.styles
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes[0]}'; base-uri 'none'; script-src 'sha256-{hashes[1]}'"
    )
    assert "innerHTML" not in script
    assert "insertAdjacent" not in script
    assert "document.write" not in script


def hostile_table():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(2, size=40), rng.normal(size=(2, 40))
    ids = np.repeat([f"{HOSTILE}{number}" for number in range(4)], 10)
    docid = np.array([f"{HOSTILE}{row}" for row in range(40)])
    return small_table(
        scores,
        y,
        ids,
        docid,
        HOSTILE,
        [HOSTILE, f"{HOSTILE}2"],
        notes=(f"{HOSTILE}!",),
        settings={HOSTILE: HOSTILE, "trainers": {HOSTILE: HOSTILE}},
    )


def test_names_from_the_data_are_escaped(tmp_path):
    table = hostile_table()
    page = written(table, tmp_path)
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert len(page.scripts) == 2
    (dataset,) = page.data["datasets"]
    assert dataset["name"] == page.data["trainers"][0] == HOSTILE
    assert dataset["rankings"][0]["docs"][0].startswith(HOSTILE)
    assert page.tables["criterion-table"][2][0]["text"].startswith(printable_output(HOSTILE))


def test_names_that_are_not_valid_unicode_are_written(tmp_path):
    table = small_table([[1, 2], [2, 1]], [0, 1], ["a\udc80"] * 2, np.array(["\udcff", "é"]))
    assert written(table, tmp_path).data["datasets"][0]["ids"] == ["a\udc80"]


def test_control_characters_of_names_are_written_as_escapes(tmp_path):
    name = "\x1b[2J\x85\u202e\x00"
    table = small_table([[1, 2], [2, 1]], [0, 1], [name] * 2, np.array(["a", "b"]), name, [name, "b"])
    assert written(table, tmp_path).data["trainers"] == [name, "b"]
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert r"<span>\x1b[2J\x85\u202e\x00</span>" in text


# Writing


def test_a_failed_write_keeps_the_earlier_report(table, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            table.to_report(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]
    table.to_report(path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_invalid_paths_are_rejected_before_the_report_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "gather", None)
    with pytest.raises(ValueError, match="is a folder; expected the name of a file"):
        write_report(None, tmp_path)
    with pytest.raises(ValueError, match=r"there is no folder .*missing\."):
        write_report(None, tmp_path / "missing" / "report.html")
    with pytest.raises(TypeError):
        write_report(None, 3)


# Behaviour in a browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("there is no chromium on this machine (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, timeout=120_000)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file in a new window; assert at the end that there was no error and no request other than the file."""
    opened = []

    def visit(path, width=1200, link="", color_scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=color_scheme)
        window, troubles, requests = context.new_page(), [], []
        window.set_default_timeout(60_000)
        window.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
        window.on("pageerror", lambda error: troubles.append(str(error)))
        window.on("dialog", lambda dialog: troubles.append(f"dialog {dialog.message}"))
        window.on("request", lambda request: requests.append(request.url))
        window.goto(f"{path.as_uri()}{link}")
        opened.append((context, path, troubles, requests))
        return window

    yield visit
    for context, path, troubles, requests in opened:
        context.close()
        assert troubles == []
        assert [url.partition("#")[0] for url in requests] == [path.as_uri()]


def rows_of(window):
    return window.locator("#criterion-table tbody th span").all_inner_texts()


def choose(window, **labels):
    for name, label in labels.items():
        window.locator(f"#choose-{name}").select_option(label=label)


def documents(window, side):
    """Return (rank, document, label, score) of all rows of one of the two rankings."""
    rows = window.locator(".ranking").nth(side).locator("tbody tr")
    cells = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    return [tuple(row[:4]) for row in cells]


def overflow(window):
    return window.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_the_table_can_be_sorted_with_mouse_and_keyboard(visit, path, table):
    window = visit(path)
    frame = table.to_frame()
    heads = window.locator("#criterion-table th[aria-sort]")
    assert rows_of(window) == table.trainers
    for number, column in enumerate(frame.columns, start=1):
        heads.nth(number).locator("button").click()
        assert heads.nth(number).get_attribute("aria-sort") == "descending"
        assert frame.loc[rows_of(window), column].is_monotonic_decreasing
    assert heads.nth(1).get_attribute("aria-sort") == "none"
    heads.nth(1).locator("button").focus()
    window.keyboard.press("Enter")
    assert frame.loc[rows_of(window), frame.columns[0]].is_monotonic_decreasing
    window.keyboard.press("Enter")
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    assert frame.loc[rows_of(window), frame.columns[0]].is_monotonic_increasing
    window.keyboard.press("Space")
    assert rows_of(window) == table.trainers
    heads.nth(0).locator("button").click()
    assert rows_of(window) == sorted(table.trainers, key=str.lower)


def test_the_explorer_shows_the_largest_changes_and_both_rankings(visit, path, table, folds):
    window = visit(path)
    choose(window, dataset="made", measure="ndcg@10", **{"from": "first feature", "to": "AUC"})
    before, after = (table.per_query[name, "made", "ndcg@10"] for name in ("first feature", "AUC"))
    change = after - before
    order = np.argsort(-np.nan_to_num(change), kind="stable")
    gained, lost = int((change > 0).sum()), int((change < 0).sum())
    overview = window.locator("#overview p").inner_text()
    assert f"gain for {gained} queries, loss for {lost}, " in overview
    assert "undefined for 2" in overview
    amounts = window.locator('[data-kind="gain"] .amount').all_inner_texts()
    assert amounts == [f"+{value:.3f}" for value in change[order][: min(10, gained)]]

    window.locator('[data-kind="gain"] button').first.click()
    n_first = len(set(folds["made"][0].test.qid))
    query, fold = str(table.query_ids["made"][order[0]]), int(order[0] >= n_first)
    assert window.locator(".detail h3").inner_text() == f"Query {query}, fold {fold + 1}"
    for side, trainer in enumerate(("first feature", "AUC")):
        expected = ranking_by_hand(table, folds, "made", fold, query, trainer)[:50]
        shown = documents(window, side)
        assert [int(rank) for rank, *_ in shown] == list(range(1, len(expected) + 1))
        assert [doc for _, doc, *_ in shown] == [doc for doc, *_ in expected]
        assert [int(label) for *_, label, _ in shown] == [label for _, label, _ in expected]
        scores = [float(score.replace(MINUS, "-")) for *_, score in shown]
        largest = max(abs(score) for *_, score in expected)
        np.testing.assert_allclose(scores, [score for *_, score in expected], atol=1e-3 * largest)
        relevant = window.locator(".ranking").nth(side).locator("tbody tr.relevant .doc").all_text_contents()
        assert relevant == [doc for doc, label, _ in expected if label >= 1]
    assert window.locator(".ranking tbody tr:visible").count() == 2 * min(20, len(expected))
    window.get_by_role("button", name="Show the first").click()
    assert window.locator(".ranking tbody tr:visible").count() == 2 * len(expected)

    window.locator("#swap").click()
    assert window.locator(".rankings h4").all_inner_texts() == ["AUC", "first feature"]
    assert window.locator('[data-kind="loss"] .amount').first.inner_text() == f"{MINUS}{change[order[0]]:.3f}"


def test_queries_can_be_chosen_by_keyboard(visit, path):
    window = visit(path)
    window.locator('[data-kind="gain"] button').first.focus()
    window.keyboard.press("Enter")
    assert window.evaluate("document.activeElement.textContent").startswith("Query ")
    assert window.locator(".ranking").count() == 2


def test_figures_have_a_mark_for_every_trainer(visit, path, table):
    window = visit(path)
    assert window.locator("#means svg").count() == len(table.to_frame().columns)
    for number in range(len(table.to_frame().columns)):
        assert window.locator("#means svg").nth(number).locator("circle").count() == len(table.trainers)
    assert window.locator("#training svg").count() == 2 * len(table.datasets)
    assert window.locator("#training").get_by_text("has no C").count() == 3 * 2
    assert window.locator("#training rect.bar").count() == len(table.trainers) * 2


@pytest.mark.parametrize("width", [390, 1280])
def test_the_numbers_on_axes_do_not_touch(visit, tmp_path, width):
    # MRR of 1 for some queries and of 1/2 for the others: means from 0.855 to 0.985, where 0.86, 0.88, ... are round numbers.
    y, qid = np.tile([1, 0], 400), np.repeat(np.arange(400), 2)
    scores = [np.where(qid < n_first, y, 1 - y) for n_first in (300, 380)]
    written(small_table(scores, y, qid, trainers=["a trainer with a very long name", "another one"]), tmp_path)
    window = visit(tmp_path / "report.html", width)
    panels = window.locator("#means svg")
    for number in range(panels.count()):
        boxes = [tick.bounding_box() for tick in panels.nth(number).locator("text.tick").all()]
        assert len(boxes) > 1
        assert all(left["x"] + left["width"] < right["x"] for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize("width", [390, 1280])
def test_marks_stay_in_their_cells(visit, path, width):
    window = visit(path, width)
    widths = window.locator("#criterion-table td.number").first.evaluate("""cell => {
        cell.classList.add("below", "vacuous");
        const mark = getComputedStyle(cell, "::after");
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = `italic ${mark.fontSize} ${mark.fontFamily}`;
        return [pen.measureText(JSON.parse(mark.content)).width, parseFloat(getComputedStyle(cell).paddingRight)];
    }""")
    assert 0 < widths[0] < widths[1], "between the number and the next cell"


@pytest.mark.parametrize("width", [360, 768])
def test_the_page_fits_narrow_screens(visit, path, width):
    window = visit(path, width)
    assert overflow(window) == 0
    window.locator('[data-kind="gain"] button').first.click()
    window.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert overflow(window) == 0
    assert window.locator(".ranking").nth(1).bounding_box()["x"] > window.locator(".ranking").nth(0).bounding_box()["x"]


def test_names_from_the_data_are_not_executed_in_a_browser(visit, tmp_path):
    table = hostile_table()
    path = tmp_path / "report.html"
    table.to_report(path)
    window = visit(path, 360)
    window.locator("#changes button").first.click()
    assert documents(window, 0)[0][1].startswith("</script><img src=x")
    assert window.locator("img").count() == 0
    assert window.evaluate("window.broken") is None
    assert overflow(window) == 0


def test_a_single_trainer_or_missing_rankings_are_shown_without_error(visit, table, tmp_path, monkeypatch):
    alone = small_table([[1, 2, 3]], [0, 1, 0], [1, 1, 1])
    alone.to_report(tmp_path / "alone.html")
    assert "Only one trainer" in visit(tmp_path / "alone.html").locator("#explorer").inner_text()
    monkeypatch.setattr(contents, "_MOST_RANKED", 0)
    table.to_report(tmp_path / "report.html")
    window = visit(tmp_path / "report.html")
    window.locator("#changes button").first.click()
    assert "rankings of this query are not in this report" in window.locator(".detail").inner_text()


def test_relevance_follows_relevant_from_of_the_measures(tmp_path):
    fold = make_ranking(n_queries=20, n_docs=8, n_features=2, n_grades=3, random_state=0)
    measures = [metrics.MAP(relevant_from=2), metrics.AUC(relevant_from=2)]
    table = compare({"made": fold}, {"f": Feature()}, measures)
    page = written(table, tmp_path)
    assert page.data["relevantFrom"] == 2
    relevant = [ranking["nRelevant"] for ranking in page.data["datasets"][0]["rankings"]]
    assert relevant == [int((fold.test.y[fold.test.qid == query] >= 2).sum()) for query in table.query_ids["made"]]


def test_documents_within_their_tie_are_not_shown_as_moved(visit, tmp_path):
    table = small_table([np.zeros(5), [5, 4, 3, 2, 1]], [0, 0, 0, 1, 0], [1] * 5, trainers=["flat", "steep"])
    written(table, tmp_path)
    window = visit(tmp_path / "report.html")
    choose(window, measure=table.measures[0], **{"from": "flat", "to": "steep"})
    window.locator("#overview rect").first.click()
    moved = window.locator(".ranking").nth(1).locator("tbody .move").all_text_contents()
    assert moved == ["", *(f"▼{number}" for number in range(1, 5))]


# Queries: search and links


def test_a_query_is_found_by_a_part_of_its_id_and_opened_with_enter(visit, tmp_path):
    ids = [f"web-{number}" for number in range(1, 25)] + ["2"]
    scores = np.tile([2.0, 1.0], len(ids))
    written(small_table([scores, scores], [1, 0] * len(ids), np.repeat(ids, 2)), tmp_path)
    window = visit(tmp_path / "report.html")
    found = window.locator('[data-kind="found"] .id')
    window.locator("#find").fill("WEB-2")
    assert [text.split("\n")[0] for text in found.all_inner_texts()] == [f"Query web-{end}" for end in (2, 20, 21, 22, 23, 24)]
    window.locator("#find").fill("web-")
    assert found.count() == 10
    assert window.locator("#found p").inner_text() == "24 queries found; the first 10, type more to see others."
    window.locator("#find").fill("2")
    window.keyboard.press("Enter")
    assert window.locator(".detail h3").inner_text() == "Query 2", "an equal id comes first, also without any change"
    window.locator("#find").fill("nothing")
    assert window.locator("#found p").inner_text() == "0 queries found."


def test_an_opened_query_can_be_linked_to(visit, path, table):
    window = visit(path)
    choose(window, dataset="made", measure="map", **{"from": "second feature", "to": "AUC"})
    window.locator('[data-kind="loss"] button').first.click()
    link = window.evaluate("location.hash")
    assert re.fullmatch(r"#query-\d+&data=made&fold=[12]&measure=map&from=second%20feature&to=AUC", link)
    assert window.locator(".permalink").get_attribute("href") == link
    title, shown = window.locator(".detail h3").inner_text(), [documents(window, side) for side in (0, 1)]
    other = visit(path, link=link)
    assert other.locator(".detail h3").inner_text() == title
    assert [documents(other, side) for side in (0, 1)] == shown
    assert other.evaluate("document.activeElement.textContent") == title
    other.locator('[data-kind="gain"] button').first.click()
    assert other.locator(".detail h3").inner_text() != title
    other.go_back()
    assert other.locator(".detail h3").inner_text() == title
    other.locator("#swap").click()
    assert other.evaluate("location.hash").endswith("&from=AUC&to=second%20feature")


def test_a_link_to_a_query_that_is_not_in_the_report_is_reported(visit, path):
    window = visit(path, link="#query-none")
    assert window.get_by_role("status").inner_text() == "The query of this link is not in this report."
    assert window.locator(".ranking").count() == 0


@pytest.mark.parametrize("query", [HOSTILE, "a/b&c=d#e%f", "half \udc80"])
def test_any_id_can_be_linked_to(visit, tmp_path, query):
    table = small_table([[1.0, 2, 3, 4], [4, 3, 2, 1]], [1, 0, 1, 0], [query, query, "other", "other"])
    written(table, tmp_path)
    window = visit(tmp_path / "report.html")
    window.locator('[data-place="0"]').last.click()
    title = window.locator(".detail h3").inner_text()
    other = visit(tmp_path / "report.html", link=window.evaluate("location.hash"))
    assert other.locator(".detail h3").inner_text() == title


# Scores, narrow screens and print


def test_the_decimals_of_scores_align(visit, tmp_path):
    scores = [[0.5, 0.25, -0.125, 12.0], [1e-7, -2.5e-7, 2e-7, 0.0]]
    written(small_table(scores, [1, 0, 0, 1], ["q"] * 4), tmp_path)
    window = visit(tmp_path / "report.html", link="#query-q&from=t0&to=t1")
    assert [score for *_, score in documents(window, 0)] == ["12.00", "0.50", "0.25", f"{MINUS}0.13"]
    assert [score for *_, score in documents(window, 1)] == ["2.000", "1.000", "0.000", f"{MINUS}2.500"]
    heads = window.locator(".ranking th.score").all_inner_texts()
    assert heads == ["Score", "Score \N{MULTIPLICATION SIGN}10⁻⁷"]


@pytest.mark.parametrize("width", [390, 1280])
def test_rankings_have_column_heads_at_any_width(visit, path, width):
    window = visit(path, width)
    window.locator('[data-kind="gain"] button').first.click()
    for side, names in enumerate((["Rank", "Document", "Label", "Score"], ["Rank", "Document", "Label", "Score", "Moved"])):
        heads = window.locator(".ranking").nth(side).locator("th")
        assert [text.split(" ")[0] for text in heads.all_inner_texts()] == names
        first = window.locator(".ranking").nth(side).locator("tbody tr").first.locator("td")
        for number in range(len(names)):
            assert heads.nth(number).is_visible()
            head, cell = heads.nth(number).bounding_box(), first.nth(number).bounding_box()
            assert abs(head["x"] - cell["x"]) < 1, "a head stands above its cells"
            assert abs(head["width"] - cell["width"]) < 1


def test_the_best_and_the_second_best_look_different(visit, path):
    window = visit(path)
    looks = [
        window.locator(f"td.{name}").first.evaluate(
            "cell => [getComputedStyle(cell).backgroundColor, getComputedStyle(cell).color]"
        )
        for name in ("best", "second")
    ]
    assert looks[0][0] != looks[1][0]
    assert looks[0][1] != looks[1][1]


def test_paper_is_white_and_no_table_is_cut(visit, path):
    window = visit(path, width=700, color_scheme="dark")
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    dark = window.evaluate(colours)
    assert overflow(window) == 0
    window.emulate_media(media="print")
    background, text = window.evaluate(colours)
    assert not window.get_by_text("Click a column header").is_visible(), "paper cannot be clicked"
    assert background == "rgb(255, 255, 255)" != dark[0]
    assert text == "rgb(29, 33, 38)" != dark[1]
    window.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    sizes = window.locator(".scroll").evaluate_all("all => all.map(box => [box.scrollWidth, box.clientWidth])")
    assert len(sizes) > 3
    assert all(inside <= outside for inside, outside in sizes), sizes
