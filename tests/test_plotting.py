"""Displays: the drawn data, axes and figures, unchanged matplotlib settings; and the frames of the diagnostics."""

import dataclasses
import sys
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from structrank import StructRankSVM, StructRankWarning, compare, datasets, metrics
from structrank.comparison import diagnostics
from structrank.comparison.plotting import CriterionTableDisplay, MapComparisonDisplay, PathDisplay, TimeDisplay
from structrank.comparison.trainers import default_trainers
from structrank.datasets import Dataset
from structrank.models.explanation import ExplanationDisplay
from structrank.papers import kdd08
from structrank.training.history import History
from structrank.training.plotting import HistoryDisplay

CS = [0.1, 1.0, 10.0]
MAPS = pd.DataFrame(
    {"mrr": [0.5, 0.9, 0.7], "po": [0.8, 0.6, 0.7], "p": [0.05, 0.001, 0.6]},
    index=pd.Index(["first", "made, 8 docs", "third"], name="data set"),
)
TIMES = pd.DataFrame(
    {"oracle": [3.0, 0.5], "qp": [1.0, 0.25], "total": [5.0, 1.0]}, index=pd.Index(["slow", "fast"], name="trainer")
)


@pytest.fixture(scope="module")
def model(train):
    return StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid)


@pytest.fixture(scope="module")
def path(train, fold):
    return diagnostics.health_path(train, ["AUC", "MAP", "NDCG"], CS, test=fold.test, measures=["map", "mrr@10"])


@pytest.fixture(scope="module")
def table(fold):
    other = datasets.make_ranking(n_queries=60, n_docs=8, n_features=6, noise=0.5, random_state=1)
    trainers = {"AUC": StructRankSVM("auc"), "MAP": StructRankSVM("map"), "nonsense": Reversed()}
    return compare({"first": fold, "second": other}, trainers, ["mrr@10", "map"], Cs=[1.0])


class Reversed:
    """A trainer that ranks in reverse, so that one row is significantly below the best."""

    def fit(self, X, y, qid=None):
        self.coef_ = -np.linalg.lstsq(X, y, rcond=None)[0]

    def predict(self, X):
        return X @ self.coef_


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(autouse=True)
def pyplot_is_left_as_it_was():
    assert not plt.get_fignums()
    settings = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == settings
    plt.close("all")


DRAW = {
    "history": lambda m, p, t, ax: HistoryDisplay.from_estimator(m, ax=ax),
    "history, seconds": lambda m, p, t, ax: HistoryDisplay.from_estimator(m, kind="seconds", x="seconds", ax=ax),
    "path": lambda m, p, t, ax: PathDisplay(p).plot(ax=ax),
    "table": lambda m, p, t, ax: CriterionTableDisplay.from_table(t, ax=ax),
    "maps": lambda m, p, t, ax: MapComparisonDisplay(MAPS).plot(ax=ax),
    "times": lambda m, p, t, ax: TimeDisplay(TIMES).plot(ax=ax),
}


# --- axes and figures ---


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_a_display_draws_on_the_given_axes_only(draw, model, path, table, ax):
    display = draw(model, path, table, ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.has_data()
    assert not plt.get_fignums()


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_without_axes_a_display_makes_one_figure(draw, model, path, table):
    display = draw(model, path, table, None)
    assert plt.get_fignums() == [display.figure_.number]
    assert display.ax_.has_data()


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_drawing_on_given_axes_does_not_change_the_current_axes(draw, model, path, table, ax):
    _, current = plt.subplots()
    draw(model, path, table, ax)
    assert plt.gca() is current
    assert not current.has_data()


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_axes_are_labelled_and_nothing_is_cut_off(draw, model, path, table):
    display = draw(model, path, table, None)
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel()
    figure = display.figure_
    figure.canvas.draw()
    inside = figure.get_tightbbox().padded(-0.05)
    width, height = figure.get_size_inches()
    assert inside.x0 >= 0
    assert inside.y0 >= 0
    assert inside.x1 <= width
    assert inside.y1 <= height


def test_names_are_not_interpreted_as_mathtext(train, path, tmp_path):
    names = ["price_$", "$x_{$", "_c", "d", "e", "f"]
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    drawn = ExplanationDisplay.from_estimator(model, train.X[:5], feature_names=names)
    drawn.figure_.savefig(tmp_path / "explanation.png")
    plt.close(drawn.figure_)
    odd = path.rename(index={"AUC": "_AUC", "MAP": "$M_{$"}, level="trainer")
    drawn = PathDisplay(odd).plot()
    drawn.figure_.savefig(tmp_path / "path.png")
    assert len(drawn.ax_.get_legend().get_texts()) == 3
    plt.close(drawn.figure_)


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"structrank\[plot\]"):
        HistoryDisplay.from_estimator(model)


# --- history ---


def test_the_drawn_bounds_equal_the_history(model, ax):
    display = HistoryDisplay.from_estimator(model, ax=ax)
    frame = model.history_.to_frame()
    for name, column in {"objective": "objective", "lower bound": "bound"}.items():
        np.testing.assert_array_equal(display.lines_[name].get_xdata(), frame.index)
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), frame[column])
    assert ax.get_xlabel() == "iteration"
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"objective", "lower bound"}


def test_the_gap_is_drawn_on_a_logarithmic_scale_with_the_tolerance(model, ax):
    display = HistoryDisplay.from_estimator(model, kind="gap", ax=ax)
    frame = model.history_.to_frame()
    assert ax.get_yscale() == "log"
    for name in ("gap", "violation"):
        positive = frame[name].to_numpy() > 0
        drawn = np.asarray(display.lines_[name].get_ydata(), dtype=float)
        np.testing.assert_array_equal(drawn[positive], frame[name].to_numpy()[positive])
        assert np.isnan(drawn[~positive]).all()
    assert set(display.lines_["tol"].get_ydata()) == {model.C * model.tol}
    assert frame["gap"].iloc[-1] <= model.C * model.tol, "training stops at this line"


def test_stacked_seconds_sum_to_the_training_time(model, ax):
    display = HistoryDisplay.from_estimator(model, kind="seconds", x="seconds", ax=ax)
    frame = model.history_.to_frame()
    top = display.lines_["qp"].get_paths()[0].vertices
    total = frame.filter(like="seconds_").to_numpy().sum()
    names = {column.removeprefix("seconds_") for column in frame if column.startswith("seconds_")}
    assert set(display.lines_) == names >= {"oracle", "qp"}
    assert list(display.lines_)[-1] == "qp", "on top"
    assert top[:, 1].max() == pytest.approx(total)
    assert top[:, 0].max() == pytest.approx(total)
    below = next(iter(display.lines_))
    first = display.lines_[below].get_paths()[0].vertices
    assert first[:, 1].max() == pytest.approx(frame[f"seconds_{below}"].sum())
    assert "(s)" in ax.get_xlabel()
    assert "(s)" in ax.get_ylabel()


def test_long_histories_have_few_markers_at_different_places(model, ax):
    def lines(n):
        history = History([dataclasses.replace(model.history_[0], iteration=number) for number in range(1, n + 1)])
        return HistoryDisplay(history).plot("gap", ax=ax).lines_

    assert lines(20)["gap"].get_markevery() is None
    drawn = lines(180)
    assert [drawn[name].get_marker() for name in ("gap", "violation")] == ["o", "s"]
    assert [drawn[name].get_markevery() for name in ("gap", "violation")] == [(0, 18), (2, 18)]


def test_invalid_arguments_of_the_history_display_are_rejected(model):
    with pytest.raises(NotFittedError):
        HistoryDisplay.from_estimator(StructRankSVM())
    with pytest.raises(ValueError, match="kind"):
        HistoryDisplay.from_estimator(model, kind="bond")
    with pytest.raises(ValueError, match="x"):
        HistoryDisplay.from_estimator(model, x="time")
    with pytest.raises(ValueError, match="no iterations"):
        HistoryDisplay(model.history_[:0]).plot()
    assert not plt.get_fignums(), "rejected before a figure is created"


def test_rounds_of_the_ramp_bound_are_drawn_instead_of_the_last_convex_problem(train, ax):
    model = StructRankSVM("map", C=10.0, bound="ramp").fit(train.X, train.y, qid=train.qid)
    display = HistoryDisplay.from_estimator(model, ax=ax)
    assert len(model.rounds_) > 1
    assert display.lines_["ramp bound"].get_ydata().tolist() == [each.risk for each in model.rounds_]
    assert display.lines_["training loss"].get_ydata().tolist() == [each.loss for each in model.rounds_]
    assert len(ax.get_xticklabels()) == len(model.rounds_)
    assert ax.get_xlabel() == "round"
    for wrong in ({"kind": "gap"}, {"kind": "seconds"}, {"x": "seconds"}):
        with pytest.raises(ValueError, match="trained on a bound that is not convex"):
            HistoryDisplay.from_estimator(model, **wrong)


def test_a_gap_of_rounding_errors_does_not_stretch_the_axis(model, ax):
    last = dataclasses.replace(model.history_[-1], gap=1e-16, violation=1e-17)
    display = HistoryDisplay(History([*model.history_, last]), tol=1e-3).plot("gap", ax=ax)
    low, high = ax.get_ylim()
    assert 1e-7 < low <= 1e-3 < high
    assert display.lines_["gap"].get_ydata()[-1] == 1e-16, "drawn, outside of the axes"
    assert "gap\n(leaves the axes)" in {text.get_text() for text in ax.get_legend().get_texts()}


# --- path ---


@pytest.mark.parametrize("quantity", ["mean_slack", "objective_ratio", "norm", "relative_norm", "iterations", "mrr@10"])
def test_the_lines_of_a_path_equal_the_columns_of_the_frame(path, quantity, ax):
    display = PathDisplay(path).plot(quantity, ax=ax)
    assert list(display.lines_) == ["AUC", "MAP", "NDCG"]
    for trainer, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_xdata(), CS)
        np.testing.assert_array_equal(line.get_ydata(), path.loc[trainer, quantity])
    assert ax.get_xlabel() == "C"
    assert ax.get_xscale() == "log"
    assert ax.get_ylabel()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["AUC", "MAP", "NDCG"]


@pytest.mark.parametrize("quantity", ["norm", "relative_norm"])
def test_a_norm_of_rounding_errors_does_not_stretch_the_axis(path, quantity, ax):
    vacuous = path.loc[["AUC"]].rename(index={"AUC": "flat"}, level="trainer")
    vacuous["norm"] = [1.0, 1e-8, 1e-16]
    vacuous["relative_norm"] = vacuous["norm"] / vacuous["norm"].iloc[-1]
    display = PathDisplay(pd.concat([path, vacuous])).plot(quantity, ax=ax)
    low, high = ax.get_ylim()
    assert high / low <= 1e7
    for line in list(display.lines_.values())[:3]:
        assert low <= min(line.get_ydata()) <= max(line.get_ydata()) <= high
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["AUC", "MAP", "NDCG", "flat\n(leaves the axes)"]


def test_a_short_logarithmic_axis_has_plain_numbers(path, ax):
    few = path.copy()
    few["iterations"] = np.linspace(2, 60, len(few)).astype(int)
    PathDisplay(few).plot("iterations", ax=ax)
    low, high = ax.get_ylim()
    shown = {text.get_text() for text in ax.get_yticklabels() if low <= text.get_position()[1] <= high}
    assert shown == {"2", "5", "10", "20", "50"}
    assert not any(text.get_text() for text in ax.get_yticklabels(minor=True))


def test_markers_of_equal_lines_are_all_visible(path, ax):
    equal = pd.concat(dict.fromkeys(("one", "two", "three"), path.loc["AUC"]), names=["trainer"])
    sizes = [line.get_markersize() for line in PathDisplay(equal).plot(ax=ax).lines_.values()]
    assert sizes[0] > sizes[1] > sizes[2], "the first line is drawn first"


def test_a_path_is_drawn_by_increasing_C(path, ax):
    shuffled = path.sample(frac=1.0, random_state=0)
    line = PathDisplay(shuffled).plot("norm", ax=ax).lines_["MAP"]
    assert list(line.get_xdata()) == CS
    np.testing.assert_array_equal(line.get_ydata(), path.loc["MAP", "norm"])


def test_all_lines_have_distinct_styles(ax):
    rows = {
        f"trainer {number}": pd.DataFrame({"norm": [1.0, 2.0]}, index=pd.Index([1.0, 2.0], name="C")) for number in range(20)
    }
    display = PathDisplay(pd.concat(rows, names=["trainer"])).plot("norm", ax=ax)
    assert len({(line.get_color(), line.get_linestyle()) for line in display.lines_.values()}) == 20


def test_the_legend_can_be_omitted(path, ax):
    assert PathDisplay(path).plot(ax=ax, legend=False).ax_.get_legend() is None


def test_the_path_of_an_estimator_equals_fit_path(train, ax):
    estimator = StructRankSVM("auc")
    display = PathDisplay.from_estimator(estimator, train.X, train.y, qid=train.qid, Cs=CS, ax=ax, quantity="norm")
    models = StructRankSVM("auc").fit_path(train.X, train.y, qid=train.qid, Cs=CS)
    np.testing.assert_allclose(display.lines_["auc"].get_ydata(), [np.linalg.norm(one.coef_) for one in models])
    assert not hasattr(estimator, "n_features_in_"), "the estimator is not fitted"


def test_unknown_quantities_of_a_path_are_rejected(path):
    with pytest.raises(ValueError, match=r"quantity.*mean_slack"):
        PathDisplay(path).plot("slack")
    with pytest.raises(ValueError, match="quantity"):
        PathDisplay(path).plot("note")
    assert not plt.get_fignums()


# --- table ---


def test_the_drawn_table_has_the_numbers_marks_and_names_of_the_table(table, ax):
    display = CriterionTableDisplay.from_table(table, ax=ax)
    means, marks = table.to_frame(), table.marks()
    assert display.text_.shape == means.shape
    assert {"**", "<"} <= set(marks.values())
    for (row, column), text in np.ndenumerate(display.text_):
        mark = marks[means.index[row], *means.columns[column]]
        assert text.get_text() == f"{means.iloc[row, column]:.3f} {mark}".strip()
        assert text.get_position() == (column, row)
        assert (text.get_fontweight() == "bold") == (mark == "**")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["AUC", "MAP", "nonsense"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["mrr@10", "map", "mrr@10", "map"]
    titles = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert (titles["first"], titles["second"]) == (0.5, 2.5)


def test_table_colours_show_the_distance_from_the_best_of_the_column(table, ax):
    display = CriterionTableDisplay.from_table(table, ax=ax)
    means = table.to_frame()
    np.testing.assert_allclose(display.image_.get_array(), means - means.max())
    assert display.colorbar_.ax.get_ylabel()
    assert len(ax.figure.axes) == 2
    for (row, column), text in np.ndenumerate(display.text_):
        shade = np.dot(display.image_.to_rgba(display.image_.get_array()[row, column])[:3], [0.299, 0.587, 0.114])
        letters = 1.0 if text.get_color() == "white" else 0.0
        assert abs(shade - letters) >= 0.45, "text must contrast with its background"


def test_table_colours_span_the_differences_of_the_table_up_to_a_tenth(table, fold):
    means = table.to_frame()
    assert (means.max() - means).to_numpy().max() > 0.1, "one row ranks in reverse"
    far = CriterionTableDisplay.from_table(table, ax=Figure().add_subplot())
    assert (far.image_.get_clim(), far.colorbar_.extend) == ((-0.1, 0.0), "min")
    near = compare({"d": fold}, ["AUC", "MAP"], ["mrr@10", "map"], Cs=[1.0])
    largest = (near.to_frame().max() - near.to_frame()).to_numpy().max()
    assert 0 < largest < 0.1
    drawn = CriterionTableDisplay.from_table(near, ax=Figure().add_subplot())
    assert (drawn.image_.get_clim(), drawn.colorbar_.extend) == ((-largest, 0.0), "neither")


def test_table_with_undefined_means_is_drawn(ax):
    fold = datasets.make_ranking(n_queries=20, n_docs=6, n_features=3, random_state=0)
    irrelevant = Dataset(fold.test.X, np.zeros(len(fold.test)), fold.test.qid)
    table = compare({"d": datasets.Fold(fold.train, None, irrelevant)}, ["AUC", "MAP"], "map", Cs=[1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = CriterionTableDisplay.from_table(table, ax=ax)
    assert {text.get_text() for text in display.text_.flat} == {"nan"}
    assert {text.get_color() for text in display.text_.flat} == {"black"}


# --- maps and times ---


def test_the_bars_of_the_feature_maps_equal_the_means_of_the_frame(ax):
    display = MapComparisonDisplay(MAPS).plot(ax=ax)
    for name, bars in display.bars_.items():
        assert [bar.get_height() for bar in bars] == MAPS[name].tolist()
    left, right = (np.array([bar.get_x() for bar in bars]) for bars in display.bars_.values())
    np.testing.assert_allclose(right - left, 0.4, err_msg="side by side")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["first", "made\n8 docs", "third"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["phi_mrr", "phi_po"]


def test_stars_mark_significant_differences(ax):
    MapComparisonDisplay(MAPS).plot(ax=ax)
    stars = [text for text in ax.texts if text.get_text() == "*"]
    assert [star.get_position() for star in stars] == [(0, 0.8), (1, 0.9)]
    assert "* p <= 0.05" in ax.get_xlabel()
    assert ax.get_ylim()[1] > 0.95, "the star above the highest bar must be inside the axes"


def test_oracle_and_qp_have_bars_of_their_own_on_a_logarithmic_axis(ax):
    display = TimeDisplay(TIMES).plot(ax=ax)
    assert list(display.bars_) == ["oracle", "qp"]
    assert [bar.get_width() for bar in display.bars_["oracle"]] == [3.0, 0.5]
    assert [bar.get_width() for bar in display.bars_["qp"]] == [1.0, 0.25]
    assert ax.get_xscale() == "log"
    upper, lower = (bars[0].get_y() for bars in display.bars_.values())
    assert lower - upper == pytest.approx(0.4), "side by side"
    assert [text.get_text() for text in ax.texts] == ["3.0", "0.50", "1.0", "0.25"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["oracle", "QP"]
    low, high = ax.get_ylim()
    assert low > high, "the first trainer is on top"
    assert "(s)" in ax.get_xlabel()


def test_bars_on_shared_axes_keep_the_first_trainer_on_top():
    axes = Figure().subplots(1, 2, sharey=True)
    for each in axes:
        TimeDisplay(TIMES).plot(ax=each, legend=False)
        low, high = each.get_ylim()
        assert low > high
        assert each.get_legend() is None


def test_displays_accept_the_frames_of_the_diagnostics(fold, ax):
    frame = kdd08.figure7({"d": fold}, Cs=[1.0], clean=False).ours
    bars = MapComparisonDisplay(frame).plot(ax=ax).bars_
    assert [bars[name][0].get_height() for name in ("mrr", "po")] == frame.loc["d", ["mrr", "po"]].tolist()
    times = diagnostics.time_breakdown(fold.train)
    bars = TimeDisplay(times).plot(ax=Figure().add_subplot()).bars_
    assert [bar.get_width() for bar in bars["oracle"]] == times["oracle"].tolist()


# --- the frames ---


def test_health_path_equals_the_health_of_the_models(train, fold, path):
    for name in ("AUC", "NDCG"):
        models = default_trainers()[name].fit_path(train.X, train.y, qid=train.qid, Cs=CS)
        for C, one in zip(CS, models, strict=True):
            row = path.loc[(name, C)]
            assert row["mean_slack"] == pytest.approx(one.health_.mean_slack)
            assert row["norm"] == pytest.approx(np.linalg.norm(one.coef_))
            assert row["iterations"] == one.n_iter_
            objective = 0.5 * one.coef_ @ one.coef_ + C * one.health_.mean_slack
            at_zero = StructRankSVM(one.criterion, C=1e-12).fit(train.X, train.y, qid=train.qid).health_.mean_slack
            assert row["objective_ratio"] == pytest.approx(objective / (C * at_zero), rel=1e-6)
            assert row["mrr@10"] == metrics.evaluate(fold.test.y, one.predict(fold.test.X), fold.test.qid, "mrr@10")["mrr@10"]
    assert (path["relative_norm"].xs(10.0, level="C") == 1.0).all()
    assert path.loc[("MAP", 1.0), "relative_norm"] == path.loc[("MAP", 1.0), "norm"] / path.loc[("MAP", 10.0), "norm"]


def test_a_larger_C_gives_less_slack_and_a_larger_norm(path):
    for _, rows in path.groupby(level="trainer"):
        assert rows["mean_slack"].is_monotonic_decreasing
        assert rows["norm"].is_monotonic_increasing


def test_the_order_and_repetition_of_Cs_are_preserved(train):
    path = diagnostics.health_path(train, "AUC", [10.0, 0.1, 10.0])
    assert path.index.get_level_values("C").tolist() == [10.0, 0.1, 10.0]
    assert path["relative_norm"].iloc[0] == path["relative_norm"].iloc[2] == 1.0 > path["relative_norm"].iloc[1]


def test_vacuous_training_is_noted_in_the_frame_without_warnings():
    long_lists = datasets.make_ranking(n_queries=20, n_docs=300, n_features=5, relevant_share=0.1, random_state=0).train
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = diagnostics.health_path(long_lists, ["AUC", "NDCG"], [100.0])
    assert path["vacuous"].tolist() == [False, True]
    assert "vacuous" in path.loc[("NDCG", 100.0), "note"]
    assert path.loc[("AUC", 100.0), "note"] == ""
    with pytest.warns(StructRankWarning, match="vacuous"):
        StructRankSVM("ndcg", C=100.0).fit(long_lists.X, long_lists.y, qid=long_lists.qid)


def test_health_path_accepts_names_dicts_and_single_trainers(train):
    alone = diagnostics.health_path(train, StructRankSVM(["map", "ndcg-nc"], C=[1.0, 3.0]), [4.0])
    assert alone.index.tolist() == [("map + ndcg-nc", 4.0)]
    assert diagnostics.health_path(train, {"x": StructRankSVM("auc")}, [1.0]).index.tolist() == [("x", 1.0)]
    with pytest.raises(ValueError, match=r"'RankNet'.*AUC"):
        diagnostics.health_path(train, ["RankNet"], [1.0])
    with pytest.raises(ValueError, match=r"'x'.*expected a StructRankSVM"):
        diagnostics.health_path(train, {"x": Reversed()}, [1.0])
    with pytest.raises(ValueError, match="empty"):
        diagnostics.health_path(train, {}, [1.0])
    with pytest.raises(ValueError, match="Cs is empty"):
        diagnostics.health_path(train, "AUC", [])


def test_labels_from_relevant_from_on_are_relevant():
    fold = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, n_grades=3, noise=0.3, random_state=0)
    halves = [Dataset(part.X, (part.y >= 2).astype(int), part.qid) for part in (fold.train, fold.test)]
    graded = diagnostics.health_path(fold.train, "MAP", [1.0], test=fold.test, relevant_from=2)
    binary = diagnostics.health_path(halves[0], "MAP", [1.0], test=halves[1])
    assert graded[["mean_slack", "norm", "map"]].equals(binary[["mean_slack", "norm", "map"]])
    first = diagnostics.time_breakdown(fold.train, relevant_from=2)["objective"]
    assert first.equals(diagnostics.time_breakdown(halves[0])["objective"])


def test_an_interrupted_path_raises(train, monkeypatch):
    fit_path = StructRankSVM.fit_path

    def ctrl_c(iteration):
        raise KeyboardInterrupt

    def stopped(self, *args, **kwargs):
        return fit_path(self, *args, **kwargs, callback=ctrl_c)

    monkeypatch.setattr(StructRankSVM, "fit_path", stopped)
    with pytest.raises(KeyboardInterrupt):
        diagnostics.health_path(train, "MAP", [0.1, 100.0])


def test_the_comparison_of_mrr_feature_maps_equals_separate_fits(fold):
    frame = kdd08.figure7({"d": fold}, Cs=[1.0], clean=False).ours
    for name in ("mrr", "po"):
        one = StructRankSVM("mrr", feature_map=name).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        assert frame.loc["d", name] == pytest.approx(one.score(fold.test.X, fold.test.y, qid=fold.test.qid))
    assert frame.loc["d", "difference"] == pytest.approx(frame.loc["d", "mrr"] - frame.loc["d", "po"])
    assert 0 <= frame.loc["d", "p"] <= 1
    assert frame.loc["d", "queries"] == len(np.unique(fold.test.qid))
    assert frame.loc["d", ["vacuous_mrr", "vacuous_po"]].tolist() == [0.0, 0.0]


def test_the_comparison_of_mrr_feature_maps_reports_the_vacuous_share():
    folds = [
        datasets.make_ranking(n_queries=30, n_docs=n_docs, n_features=5, relevant_share=0.1, noise=noise, random_state=0)
        for n_docs, noise in ((200, 1.0), (6, 0.1))
    ]
    shares = kdd08.figure7({"both": folds}, Cs=[100.0], clean=False).ours.loc["both"]
    assert shares["vacuous_mrr"] == 0.5


def test_times_are_consistent_and_both_dorm_oracles_reach_the_same_objective():
    train = datasets.make_ranking(n_queries=20, n_docs=60, n_features=4, relevant_share=0.1, noise=0.2, random_state=0).train
    times = diagnostics.time_breakdown(train, C=10.0, repeats=2)
    assert times.index.tolist() == ["DORM (Hungarian)", "DORM (lattice)", "NDCG"]
    assert (times[["oracle", "qp"]] > 0).all(axis=None)
    assert (times[["oracle", "qp"]].sum(axis=1) <= times["total"]).all()
    np.testing.assert_allclose(times["oracle_per_pass"] * times["passes"], times["oracle"])
    by_hungarian, by_lattice, _ = times["objective"]
    assert abs(by_hungarian - by_lattice) <= 2 * 10.0 * 1e-3


def test_any_trainer_can_be_timed(train):
    times = diagnostics.time_breakdown(train, {"a": StructRankSVM("auc", C=0.5)})
    assert times.index.tolist() == ["a"]
    one = StructRankSVM("auc", C=0.5).fit(train.X, train.y, qid=train.qid)
    assert times.loc["a", "objective"] == one.certificate_.primal
    assert times.loc["a", "passes"] == (one.history_.to_frame()["seconds_oracle"] > 0).sum()


def test_the_times_of_dorm_count_all_of_its_convex_problems():
    train = datasets.make_ranking(n_queries=20, n_docs=60, n_features=4, relevant_share=0.3, noise=0.2, random_state=0).train
    one = StructRankSVM("dorm", C=10.0, feature_map="dorm(ties=score)", decay="sqrt@30")
    one.fit(train.X, train.y, qid=train.qid)
    passes = diagnostics.time_breakdown(train, C=10.0).loc["DORM (lattice)", "passes"]
    assert len(one.rounds_) > 2
    assert passes > one.rounds_[-1].passes
    # The first entry is the start, and one pass of each round is that of the ideal rankings.
    assert passes == sum(each.passes - 1 for each in one.rounds_[1:])


def test_only_convex_bounds_are_timed(train):
    for bound in ("ramp", "auto"):
        with pytest.raises(ValueError, match=rf"trainer 'mrr' has bound='{bound}'; expected 'convex'"):
            diagnostics.time_breakdown(train, {"mrr": StructRankSVM("mrr", bound=bound)})
    as_lists = datasets.Dataset(train.X.tolist(), (train.y + 1).tolist(), train.qid.tolist())
    assert diagnostics.time_breakdown(as_lists, ["AUC"], relevant_from=2).index.tolist() == ["AUC"]


def test_models_that_learned_nothing_are_counted_as_vacuous(fold):
    constant = datasets.Dataset(np.repeat([[1.0, 2.0]], len(fold.train.y), axis=0), fold.train.y, fold.train.qid)
    test = datasets.Dataset(fold.test.X[:, :2], fold.test.y, fold.test.qid)
    frame = kdd08.figure7({"constant": datasets.Fold(constant, None, test)}, Cs=[1.0], clean=False).ours
    assert frame.loc["constant", ["vacuous_mrr", "vacuous_po"]].tolist() == [1.0, 1.0]
