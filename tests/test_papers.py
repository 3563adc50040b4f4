"""The exhibits of the papers: complete, documented, and computed by one call."""

import json
import pathlib
import re

import matplotlib as mpl
import pandas as pd
import pytest

mpl.use("Agg")

from structrank import cli, datasets, papers
from structrank.papers.exhibit import Exhibit, Result, printed_table

PAGE = (pathlib.Path(__file__).parent.parent / "docs" / "reproduction.md").read_text()
EXHIBITS = {f"{paper}.{name}": exhibit for paper, its in papers.exhibits().items() for name, exhibit in its.items()}


def rows_of_page():
    """Yield the paper, the name ("Figure 9"), the outcome and the call of each row of docs/reproduction.md."""
    paper = None
    for line in PAGE.splitlines():
        if line.startswith("## "):
            paper = line[3:].partition(":")[0]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "exhibit":
            assert len(cells) == 5, line
            yield paper, cells[0], cells[1], cells[4]


def test_the_page_lists_each_exhibit_and_no_other():
    calls = re.findall(r"`papers\.(\w+\.\w+)\(", "\n".join(call for *_, call in rows_of_page()))
    assert sorted(calls) == sorted(EXHIBITS)


def test_the_page_states_an_outcome_for_each_exhibit():
    assert {outcome for _, _, outcome, _ in rows_of_page()} <= {"comes out", "in part", "does not"}


@pytest.mark.parametrize("name", EXHIBITS)
def test_an_exhibit_says_what_was_asked_how_and_on_which_data(name):
    exhibit = EXHIBITS[name]
    assert isinstance(exhibit, Exhibit)
    assert f"{exhibit.paper}.{exhibit.name}" == name
    assert exhibit.title.split(":")[0].lower().replace(" ", "") in exhibit.name
    assert all((exhibit.question, exhibit.protocol, exhibit.data, exhibit.reported))


def tiny_fold():
    return datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, noise=0.5, random_state=0)


def test_printed_numbers_stand_beside_ours_only_for_the_data_of_the_paper():
    result = papers.kdd08.figure9({"OHSUMED": tiny_fold(), "mine": tiny_fold()})
    assert set(result.printed.columns.get_level_values(0)) == {"ohsumed"}
    place = "AUC", ("ohsumed", "map")
    assert result.difference.loc[place] == pytest.approx(result.ours.loc[place] - 0.582)
    assert "mine" in result.ours.columns.get_level_values(0)


def test_a_difference_is_taken_over_common_rows_and_columns():
    ours = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["x", "y"])
    printed = pd.DataFrame({"b": [1.0, 1.0], "c": [0.0, 0.0]}, index=["y", "z"])
    difference = Result(ours, None, "data", printed=printed).difference
    assert difference.to_dict() == {"b": {"y": 3.0}}


def test_a_printed_table_has_no_value_where_the_paper_has_none():
    frame = printed_table("row  a  b\nx y  1  -")
    assert frame.loc["x y", "a"] == 1
    assert frame["b"].isna().all()


# ---- The command


def run(capfd, line):
    code = cli.main(["reproduce", *line.split()])
    return code, *capfd.readouterr()


def test_the_command_lists_every_exhibit(capfd):
    code, out, err = run(capfd, "--list")
    assert code == 0
    assert not err
    assert [".".join(line.split()[:2]) for line in out.splitlines()] == list(EXHIBITS)


def test_the_command_reports_progress_on_stderr_and_results_on_stdout(capfd, tmp_path):
    code, out, err = run(capfd, f"kdd08 figure3 --report {tmp_path}/page.html")
    assert code == 0
    assert out.startswith("kdd08, Figure 3")
    assert "figure3: the most violated" in err
    assert f"wrote {tmp_path}/page.html" in err


def test_the_command_reads_data_by_name_and_sets_print_beside_it(capfd, tmp_path):
    for number, fold in enumerate([tiny_fold(), tiny_fold()], start=1):
        for part, name in ((fold.train, "train"), (fold.validation, "vali"), (fold.test, "test")):
            lines = [
                f"{label} qid:{qid} " + " ".join(f"{column}:{value}" for column, value in enumerate(row, start=1))
                for row, label, qid in zip(part.X, part.y, part.qid, strict=True)
            ]
            folder = tmp_path / "data" / f"Fold{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    code, out, _ = run(capfd, f"kdd08 figure7 ohsumed={tmp_path}/data --json")
    (facts,) = json.loads(out)
    assert code == 0
    assert facts["texts"]["Data here"] == "ohsumed (2 folds, 12 test queries)"
    assert facts["tables"]["Printed"] == {"columns": ["index", "mrr"], "rows": [["ohsumed", 0.795]]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "expected a paper, such as kdd08, or --all"),
        ("kdd08 --all", "expected a paper, such as kdd08, or --all, and not both"),
        ("kdd09", "there is no paper 'kdd09'; expected one of kdd08"),
        ("kdd08 figure11", "kdd08 has no exhibit 'figure11'; expected one of figure1"),
        ("kdd08 figure9 a=none", "a=none: there is no file or folder none"),
    ],
)
def test_the_command_says_what_it_expected(capfd, line, message):
    code, out, err = run(capfd, line)
    assert (code, out) == (2, "")
    assert message in err


def test_the_page_is_self_contained_and_escapes_names(tmp_path):
    from structrank.papers.page import write_page

    fold = tiny_fold()
    write_page([papers.kdd08.figure7({"<b>mine</b>": fold}, Cs=[1.0])], tmp_path / "page.html", ["x < y was left out."])
    page = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;mine" in page
    assert "<b>mine" not in page
    assert "x &lt; y was left out." in page
    assert page.count("data:image/png;base64,") == 1
    assert not re.search(r"(src|href)=\"(?!data:image/png|#)", page)
    assert "style=" not in page
