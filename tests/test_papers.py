"""The exhibits of the papers: complete, documented, and computed by one call."""

import pathlib
import re

import pandas as pd
import pytest

from structrank import datasets, papers
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
