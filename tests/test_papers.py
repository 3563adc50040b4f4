"""The exhibits of the papers: complete, documented, and computed by one call."""

import json
import pathlib
import re
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special
import scipy.stats

from structrank import StructRankSVM, cli, datasets, papers
from structrank.comparison.plotting import TimeDisplay
from structrank.learners import LambdaMART, McRank
from structrank.papers import kdd08, www11
from structrank.papers.exhibit import Exhibit, Result, number_formats, printed_table
from structrank.plots import BarsDisplay, LinesDisplay, PanelsDisplay

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
    assert re.sub(r"[ ()]", "", exhibit.title.split(":")[0]).lower() == exhibit.name
    assert all((exhibit.question, exhibit.protocol, exhibit.data, exhibit.reported))


@pytest.mark.parametrize(
    ("paper", "numbered"), [("kdd08", {f"Figure {n}" for n in range(1, 11)}), ("www11", {f"Figure {n}" for n in range(1, 8)})]
)
def test_the_page_has_every_figure_of_a_paper(paper, numbered):
    named = {name.partition("(")[0] for section, name, *_ in rows_of_page() if section == paper}
    assert numbered <= named


def tiny_fold(n_grades=2):
    return datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, n_grades=n_grades, noise=0.5, random_state=0)


@pytest.mark.parametrize("name", [name for name in EXHIBITS if name.startswith(("kdd08.", "www11."))])
def test_an_exhibit_comes_from_one_call(name):
    exhibit = EXHIBITS[name]
    result = exhibit(None if exhibit.read is None else {"tiny": tiny_fold(5 if exhibit.paper == "www11" else 2)})
    assert result.exhibit is exhibit
    assert result.ours.select_dtypes("number").notna().to_numpy().any()
    assert result.printed is None
    assert all(sentence.endswith((".", ":")) for sentence in result.findings)
    assert str(result).startswith(f"{exhibit.paper}, {exhibit.title}")
    figure = result.plot().figure_
    assert all(ax.has_data() for ax in figure.axes)
    mpl.pyplot.close(figure)


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


# ---- What the exhibits compute


def test_figure_10_times_the_training_of_mcrank_itself():
    train = tiny_fold(3).train
    booster, seconds = kdd08._boost_mcrank(train, n_rounds=5)
    constants = np.log(np.bincount(train.y.astype(int)) / len(train))
    expected = scipy.special.softmax(booster.predict(train.X, raw_score=True) + constants, axis=1) @ np.arange(3)
    assert expected == pytest.approx(McRank(n_estimators=5).fit(train.X, train.y, qid=train.qid).predict(train.X), abs=1e-12)
    assert seconds["McRank, trees"] + seconds["McRank, boosting"] == pytest.approx(seconds["McRank, total"])


def test_without_its_scale_phi_po_is_a_sum_over_pairs():
    fold = datasets.make_ranking(n_queries=30, n_docs=(4, 12), n_features=3, noise=0.5, random_state=0)
    train = kdd08._times_pairs(fold).train
    model = StructRankSVM("auc", feature_map="po", tol=1e-6).fit(train.X, train.y, qid=train.qid)

    def objective(w):
        slacks = []
        for query in np.unique(fold.train.qid):
            rows = fold.train.qid == query
            scores, relevant = fold.train.X[rows] @ w, fold.train.y[rows] >= 1
            pairs = scores[relevant][:, None] - scores[~relevant]
            # y_gb is 1 or -1: a pair in the wrong order loses 1 / (n+ n-) and changes w.phi by 2 (s_g - s_b).
            slacks.append(np.maximum(1.0 / pairs.size - 2.0 * pairs, 0.0).sum() if pairs.size else np.nan)
        return 0.5 * w @ w + np.nanmean(slacks)

    assert objective(model.coef_) == pytest.approx(model.certificate_.primal, rel=1e-9)
    best = scipy.optimize.minimize(objective, model.coef_, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12})
    assert model.certificate_.dual <= best.fun + 1e-9
    sparse = kdd08._times_pairs(replace(fold, train=replace(fold.train, X=scipy.sparse.csr_matrix(fold.train.X))))
    assert np.array_equal(sparse.train.X.toarray(), train.X)
    assert fold.validation is kdd08._times_pairs(fold).validation


def test_figure_4_of_www11_counts_the_ranks_that_change():
    train = tiny_fold(5).train
    model = LambdaMART(n_estimators=6, min_child_samples=3).fit(train.X, train.y, qid=train.qid)
    shuffled = np.random.default_rng(0).permutation(len(train))
    part = datasets.Dataset(train.X[shuffled], train.y[shuffled], train.qid[shuffled])
    shares = www11._rank_changes(model, part)
    stages = [scores.copy() for scores in model.staged_predict(part.X)]
    for number in range(2, 7):
        changed = []
        for query in np.unique(part.qid):
            rows = np.flatnonzero(part.qid == query)
            before, after = (rows[np.argsort(-stages[at][rows], kind="stable")] for at in (number - 2, number - 1))
            changed.append([np.mean(before != after), np.mean((before != after)[:3])])
        assert shares.loc[number].to_numpy() == pytest.approx(np.mean(changed, axis=0))


def test_figure_5_of_www11_is_the_derivative_of_both_costs():
    ours = papers.www11.figure5().ours
    difference = ours.index.to_numpy()
    assert ours["cross-entropy"].to_numpy() == pytest.approx(1 / (1 + np.exp(difference)))
    assert ours["sigmoid"].to_numpy() == pytest.approx(np.exp(difference) / (1 + np.exp(difference)) ** 2)


@pytest.fixture(scope="module")
def clicked():
    """The sessions of `www11._simulated(60)`: queries, urls shown and whether each has the last click of its session."""
    made = datasets.make_clicks(60, 300, 12_000, n_topics=10, n_docs=30, skew=0.0, model="cascade", random_state=0)
    last = np.where(made.clicked.any(axis=1), made.clicked.shape[1] - 1 - made.clicked[:, ::-1].argmax(axis=1), -1)
    return made, np.arange(10) == last[:, None]


def some_rows(part, made):
    """Yield every 97th row of a part, with its query and url."""
    for row in range(0, len(part.documents), 97):
        (place,) = np.flatnonzero((part.documents.X[row, :-1] == made.documents.X).all(axis=1))
        yield row, made.documents.qid[place], made.documents.docid[place]


def test_click_labels_of_www11_are_shares_of_impressions_with_the_last_click(clicked):
    made, last = clicked
    later = np.arange(len(made)) >= 6000
    parts = www11._simulated(60)
    assert sum(len(part.documents) for part in parts) == 1800
    for part in parts:
        for row, query, url in some_rows(part, made):
            for kind, sessions in (("=", later & (made.query == query)), ("~", later)):
                shown = made.shown[sessions] == url
                ended = shown & last[sessions]
                rate = ended.sum() / shown.sum() if ended.any() else np.nan
                assert part.clicks[kind][row] == pytest.approx(rate, nan_ok=True)


def test_the_click_feature_of_www11_counts_other_training_queries_in_the_earlier_half_of_the_log(clicked):
    made, last = clicked
    parts = www11._simulated(60)
    training, found = np.unique(parts[0].documents.qid), []
    for part in parts:
        for row, query, url in some_rows(part, made):
            counted = (np.arange(len(made)) < 6000) & np.isin(made.query, training) & (made.query != query)
            shown = made.shown[counted] == url
            found.append(part.documents.X[row, -1])
            assert found[-1] == pytest.approx((shown & last[counted]).sum() / max(shown.sum(), 1))
    assert min(found) == 0.0 < max(found)


def test_judges_of_www11_agree_with_users_less_with_more_disagreement():
    def agreement(disagreement):
        documents = [part.documents for part in www11._simulated(60, 0, disagreement)]
        return np.mean([np.corrcoef(part.X[:, :-1].sum(axis=1), part.y)[0, 1] for part in documents])

    assert agreement(0.0) > agreement(0.5) > agreement(2.0)


def test_the_data_of_www11_depend_on_the_seed_alone():
    first, again, other = (www11._simulated(60, seed)[0] for seed in (0, 0, 1))
    assert np.array_equal(first.documents.X, again.documents.X)
    assert np.array_equal(first.clicks["="], again.clicks["="], equal_nan=True)
    assert not np.array_equal(first.documents.X, other.documents.X)


def test_tables_of_www11_pool_the_test_queries_of_all_seeds(monkeypatch):
    generate, make = www11._simulated, www11._mart
    monkeypatch.setattr(www11, "_simulated", lambda n_queries, *settings: generate(60, *settings))
    monkeypatch.setattr(www11, "_mart", lambda **settings: make(**settings).set_params(n_estimators=10))
    for table, rows in (
        (www11.table1, [("=", "Baseline", "NDCG"), ("~", "Graded", "NDCG")]),
        (www11.table2, ["Newton", "Late sigmoid, linear"]),
    ):
        both, *alone = (table(**seeds) for seeds in ({"n_seeds": 2}, {"n_seeds": 1}, {"random_state": 1, "n_seeds": 1}))
        for row in rows:
            assert both.ours.loc[row].to_numpy() == pytest.approx(np.mean([one.ours.loc[row] for one in alone], axis=0))
        for found, parts in zip(both.findings, zip(*(one.findings for one in alone), strict=True), strict=True):
            counts = [re.search(r"higher at (\d+) and lower at (\d+)", part) for part in parts]
            if all(counts):
                ups, downs = zip(*(count.groups() for count in counts), strict=True)
                assert f"(for each seed higher at {', '.join(ups)}, lower at {', '.join(downs)})" in found
        assert "random_state from 0 to 1" in both.data


def test_differences_are_tested_over_the_queries_of_all_seeds(rng):
    before = [{"map": rng.random(40)} for _ in range(3)]
    change = [0.2 + 0.5 * rng.standard_normal(40), np.zeros(40), np.full(40, -0.01)]
    after = [{"map": one["map"] + each} for one, each in zip(before, change, strict=True)]
    pooled = np.concatenate(change)
    p = scipy.stats.ttest_1samp(pooled, 0.0).pvalue
    assert www11._tested(after, before, ["map"]) == (
        f"differs by {100 * pooled.mean():+.2f} to {100 * pooled.mean():+.2f} points; significantly higher at {int(p <= 0.05)} "
        "and lower at 0 of 1 cutoffs (for each seed higher at 1, 0, 0, lower at 0, 0, 1)."
    )


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


# ---- Displays


def test_panels_stand_in_rows_of_two():
    lines = LinesDisplay(pd.DataFrame({"a": [1, 2]}), "round", "NDCG")
    figure = PanelsDisplay(dict.fromkeys("abc", lines)).plot().figure_
    assert [ax.get_title() for ax in figure.axes] == ["a", "b", "c"]
    places = [ax.get_subplotspec().rowspan.start for ax in figure.axes]
    assert places == [0, 0, 1]
    plt.close(figure)


def test_a_legend_does_not_squeeze_the_bars():
    columns = ["McRank, trees", "McRank, boosting", "McRank, total", "NDCG", "MRR (phi_mrr)"]
    frame = pd.DataFrame(np.ones((3, 5)), index=["like ohsumed", "like td2003", "like td2004"], columns=columns)
    for shown in (frame, frame.iloc[:1]):
        display = BarsDisplay(shown, "time (s)").plot()
        display.figure_.canvas.draw()
        place = display.ax_.get_position()
        assert place.width > 0.75
        assert place.height > 0.6
        plt.close(display.figure_)


def test_bars_have_values_inside_the_axes_and_names():
    frame = pd.DataFrame([[0.5, 0.25, 0.8], [1.0, 0.125, 0.3]], index=["x", "y"], columns=list("abc"))
    frame = frame.rename_axis(index="data", columns="trained for")
    for logy, expected in ((False, ["0.500", "1.000", "0.250"]), (True, ["0.50", "1.0", "0.25"])):
        display = BarsDisplay(frame, "time (s)", logy=logy).plot()
        display.figure_.canvas.draw()
        assert [text.get_text() for text in display.ax_.texts][:3] == expected
        frames = [display.ax_.get_window_extent(), *(text.get_window_extent() for text in display.ax_.texts)]
        assert all(box.y1 < frames[0].y1 for box in frames[1:])
        assert display.ax_.get_xlabel() == "data"
        assert display.ax_.get_legend().get_title().get_text() == "trained for"
        plt.close(display.figure_)


def test_a_single_line_needs_no_legend():
    for columns, legend in ((["a"], False), (["a", "b"], True)):
        display = LinesDisplay(pd.DataFrame(1.0, index=[1, 2], columns=columns), "round", "NDCG").plot()
        assert (display.ax_.get_legend() is not None) == legend
        plt.close(display.figure_)


def test_the_legend_of_time_panels_covers_no_value():
    times = pd.DataFrame({"oracle": [1.0, 2.0], "qp": [3.0, 4.0]}, index=["slow", "as slow"])
    display = TimeDisplay(times).plot()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert not any(legend.overlaps(text.get_window_extent()) for text in display.ax_.texts)
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("difference", "p", "sentence"),
    [
        (0.029, 0.17, "d: no significant difference between the maps; phi_mrr is ahead by 0.029 (p = 0.17)."),
        (-0.156, 0.0003, "d: phi_po is significantly better by 0.156 (p = 0.0003)."),
    ],
)
def test_the_finding_on_feature_maps_states_significance_first(difference, p, sentence):
    row = {"difference": difference, "p": p, "vacuous_mrr": 0.0, "vacuous_po": 0.0}
    assert list(kdd08._better_map("d", row)) == [sentence]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 0.25, 0.0], ["0.500", "0.250", "0.000"]),
        ([0.00025, 0.31], ["0.000250", "0.310000"]),
        ([12345.0, 2.25], ["12345.0", "2.2"]),
        ([4.44e-16, 1.0], ["4.44e-16", "1.00e+00"]),
        ([np.nan, 0.5], ["nan", "0.500"]),
    ],
)
def test_the_decimals_of_a_column_align(values, expected):
    frame = pd.DataFrame({"x": values, "n": range(len(values))})
    formats = number_formats(frame)
    assert list(formats) == ["x"]
    assert [formats["x"](value) for value in values] == expected
