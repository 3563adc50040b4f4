"""Comparisons: numbers and choice of C, stored cells, marks and significance, exports, invalid input."""

import csv
import html
import io
import math
import os
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

import structrank
from structrank import StructRankSVM, compare, datasets, load_model, metrics, train_for
from structrank.comparison import trainers
from structrank.comparison.cells import Cell
from structrank.comparison.table import CriterionTable
from structrank.comparison.trainers import Pointwise, as_trainers, default_trainers
from structrank.datasets import Dataset, Fold, make_ranking
from structrank.learners import LambdaRank, RankNet
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.selection import choosing_c
from structrank.training.data import RankingData

WEBIS = Path(os.environ.get("STRUCTRANK_DATA") or Path(__file__).parents[2] / "shared" / "data") / "webis-clueweb09"
CONVENTIONS = {"gain": "binary", "discount": "kdd08", "relevant_from": 1}


class Feature:
    """A trainer from outside the package: ranks by one feature; each fit adds a line to the file `log`, if any."""

    def __init__(self, column=0, log=None):
        self.column, self.log = column, log

    def fit(self, X, y, qid):
        if self.log is not None:
            with open(self.log, "a") as file:
                file.write(f"{self.column}\n")
        self.fitted_ = True
        return self

    def predict(self, X):
        return X[:, self.column]


def small_folds(n=2, **settings):
    settings = {"n_queries": 25, "n_docs": 8, "n_features": 4, "noise": 0.5, **settings}
    return [make_ranking(**settings, random_state=seed) for seed in range(n)]


def without_validation(fold):
    return Fold(fold.train, None, fold.test)


def same_numbers(a, b):
    assert a.per_query.keys() == b.per_query.keys()
    for key in a.per_query:
        np.testing.assert_array_equal(a.per_query[key], b.per_query[key])
    assert [cell.C for cell in a.cells] == [cell.C for cell in b.cells]
    assert str(a) == str(b)


def n_lines(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


# Contents of the table


PAPER = [
    "RankSVM",
    "AUC",
    "MAP",
    "NDCG",
    "NDCG-NC",
    "MRR (phi_mrr)",
    "MRR (phi_po)",
    "COMBO (separate slacks)",
    "COMBO (shared slacks)",
    "DORM",
    "McRank",
]
BEYOND = ["MRR, ramp", "NDCG, ramp", "trained for MRR@10", "trained for NDCG@10", "trained for MAP", "MAP, trees"]


def test_default_rows_are_those_of_the_paper_and_below_a_rule_those_that_are_not_in_it():
    table = compare({"made": small_folds(1)[0]}, Cs=[0.1, 10.0])
    assert table.trainers == PAPER + BEYOND
    frame = table.to_frame()
    assert frame.index.tolist() == table.trainers
    assert frame.columns.tolist() == [("made", "mrr@10"), ("made", "ndcg@10"), ("made", "map")]
    assert ((frame > 0) & (frame <= 1)).all(axis=None)
    lines = str(table).splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) == {"-"})
    assert lines[rule - 1].startswith("McRank")
    assert lines[rule + 1].startswith("MRR, ramp")
    latex = table.to_latex().splitlines()
    assert latex[latex.index(r"\midrule", latex.index(r"\midrule") + 1) + 1].startswith("MRR, ramp")
    assert "border-top" in table.to_html().split("<tr")[3 + len(PAPER)]


def test_rows_are_what_they_are_called():
    rows = default_trainers(relevant_from=2, discount="log2")
    for name in PAPER[:-1]:
        assert rows[name].bound == "convex"
    assert {name: row.relevant_from for name, row in rows.items() if row.relevant_from != 2} == {"RankSVM": None}
    ranksvm = rows["RankSVM"].get_params()
    assert (ranksvm["criterion"], ranksvm["query_weight"]) == ("auc", "pairs")
    for name in ("COMBO (separate slacks)", "COMBO (shared slacks)"):
        combo = rows[name].get_params()
        assert (combo["criterion"], combo["feature_map"]) == (["map", "ndcg-nc", "mrr"], "po")
        assert combo["slack"] == name.split("(")[1].split()[0]
    assert [rows[name].bound for name in BEYOND[:2]] == ["ramp", "ramp"]
    assert [rows[name].measure for name in BEYOND[2:5]] == ["mrr@10", "ndcg@10", "map"]
    assert list(as_trainers("paper")) == [name for name in rows if name in PAPER]


def test_columns_that_distinguish_grades_have_rows_that_are_trained_for_them():
    graded = {"ndcg@10": metrics.NDCG(k=10), "err@5": metrics.ERR(k=5), "map": metrics.MAP(), "dcg@5": metrics.DCG(k=5)}
    rows = default_trainers(measures=graded)
    added = ["trained for MRR@10", "trained for NDCG@10", "trained for MAP", "trained for ERR@5"]
    assert list(rows)[-5:] == [*added, "MAP, trees"]
    assert [rows[f"trained for {name}"].measure for name in ("MRR@10", "NDCG@10", "MAP", "ERR@5")] == [
        "mrr@10",
        metrics.NDCG(k=10),
        "map",
        metrics.ERR(k=5),
    ]
    fold = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, n_grades=4, noise=0.7, random_state=0)
    columns = ["ndcg@5", metrics.NDCG(k=5)]
    name = "trained for NDCG@5 (gain=exp2, discount=log2)"
    table = compare({"made": fold}, ["AUC", "NDCG", name], columns, Cs=[1.0])
    expected = train_for(metrics.NDCG(k=5), fold.train, fold.validation, Cs=[1.0]).predict(fold.test.X)
    found = table.to_frame().loc[name, ("made", "ndcg@5 (gain=exp2, discount=log2)")]
    assert found == pytest.approx(metrics.evaluate(fold.test.y, expected, fold.test.qid, metrics.NDCG(k=5))["ndcg@5"])
    assert table.n_above == 2
    # The legend says once that the other rows do not use grades; the rows do not.
    assert str(table).count("Labels have more than two grades") == 1
    assert not any("grades" in note for notes in table.notes.values() for note in notes)
    two = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, noise=0.7, random_state=0)
    assert "grades" not in str(compare({"made": two}, ["AUC"], columns, Cs=[1.0]))


def test_rows_are_ordered_by_several_columns_of_a_data_set():
    folds = {"one": small_folds(1)[0], "two": small_folds(1, noise=2.0)[0]}
    trainers = {f"{number}": Feature(number % 2) for number in range(4)}
    table = compare(folds, trainers, ["mrr@1", "map"])
    means = table.to_frame()["two"]
    expected = means.sort_values(["mrr@1", "map"], ascending=False, kind="stable").index.tolist()
    assert table.order(["mrr@1", "map"], "two") == expected
    assert (
        table.order("map", "one") == table.to_frame()["one"].sort_values("map", ascending=False, kind="stable").index.tolist()
    )
    with pytest.raises(ValueError, match="the table has 2 data sets; pass dataset="):
        table.order("map")
    with pytest.raises(ValueError, match="measures='ndcg' is not known; choose one of: 'mrr@1', 'map'"):
        table.order(["ndcg"], "two")
    with pytest.raises(ValueError, match="measures is empty"):
        table.order([], "two")


def test_means_equal_those_of_the_pooled_test_queries():
    folds = small_folds(3)
    measures = ["mrr@10", "ndcg@10", "map", metrics.NDCG(k=3, gain="linear")]
    table = compare({"made": folds}, trainers={"first": Feature(0)}, measures=measures)
    y = np.concatenate([fold.test.y for fold in folds])
    scores = np.concatenate([fold.test.X[:, 0] for fold in folds])
    qid = np.concatenate([fold.test.qid + 1000 * number for number, fold in enumerate(folds)])
    by_hand = metrics.evaluate(y, scores, qid, measures, **CONVENTIONS)
    assert dict(by_hand) == {name: table.to_frame().loc["first", ("made", name)] for name in by_hand}
    per_query = metrics.evaluate(y, scores, qid, measures, per_query=True, **CONVENTIONS)
    for name, values in per_query.items():
        np.testing.assert_array_equal(table.per_query["first", "made", name], values)
    np.testing.assert_array_equal(table.query_ids["made"], per_query.query_ids % 1000)


def pooled(fold, trainer, Cs, judge):
    """Compute the mean over validation queries and those of three inner folds, for each C; return it and the models."""
    train, (X, y, qid) = fold.train, (fold.train.X, fold.train.y, fold.train.qid)
    models = trainer.fit_path(X, y, qid=qid, Cs=Cs)
    values = [np.unique(fold.validation.qid).size * np.array([judge(model, fold.validation) for model in models])]
    for learn, check in GroupKFold(3, shuffle=True, random_state=0).split(X, groups=qid):
        inner = trainer.fit_path(X[learn], y[learn], qid=qid[learn], Cs=Cs)
        part = Dataset(X[check], y[check], qid[check])
        values.append(np.unique(part.qid).size * np.array([judge(model, part) for model in inner]))
    return np.sum(values, axis=0) / (np.unique(fold.validation.qid).size + np.unique(train.qid).size), models


def own(model, part):
    return model.score(part.X, part.y, qid=part.qid)


def test_a_row_is_the_model_of_the_C_that_does_best_by_its_own_criterion_on_validation_and_inner_folds():
    folds = small_folds(2, n_queries=40, n_features=8)
    Cs = [0.001, 0.1, 10.0]
    table = compare({"made": folds}, trainers=["AUC", "COMBO (separate slacks)"], Cs=Cs)
    alone = []
    for cell in table.cells:
        fold = folds[cell.fold]
        reached, models = pooled(fold, default_trainers()[cell.trainer], Cs, own)
        best = int(np.argmax(reached))
        assert (cell.C, cell.validation) == (Cs[best], pytest.approx(reached[best]))
        np.testing.assert_array_equal(cell.scores, models[best].predict(fold.test.X))
        alone.append(Cs[int(np.argmax([own(model, fold.validation) for model in models]))])
    assert len({cell.C for cell in table.cells}) > 1  # the choice of C matters
    assert [cell.C for cell in table.cells] != alone


def test_many_validation_queries_choose_C_alone(monkeypatch):
    (fold,) = small_folds(1, noise=2.0)
    monkeypatch.setattr(choosing_c, "FEW_QUERIES", np.unique(fold.validation.qid).size)
    (cell,) = compare({"made": fold}, trainers=["AUC"], Cs=[0.001, 0.1, 10.0]).cells
    models = StructRankSVM("auc").fit_path(fold.train.X, fold.train.y, qid=fold.train.qid, Cs=[0.001, 0.1, 10.0])
    assert cell.validation == pytest.approx(max(own(model, fold.validation) for model in models))


def test_select_sets_the_measure_by_which_C_is_chosen():
    (fold,) = small_folds(1, noise=2.0)
    table = compare({"made": fold}, trainers=["AUC"], Cs=[0.001, 0.1, 10.0], select="mrr@3")
    (cell,) = table.cells

    def mrr(model, part):
        return metrics.evaluate(part.y, model.predict(part.X), part.qid, "mrr@3")["mrr@3"]

    reached, _ = pooled(fold, StructRankSVM("auc"), [0.001, 0.1, 10.0], mrr)
    assert cell.validation == pytest.approx(max(reached))


def test_validation_goes_to_every_row_that_takes_it():
    class Curious(Feature):
        def fit(self, X, y, qid, validation=None):
            self.notes_ = (f"Saw {len(validation.y)} rows.",)
            return super().fit(X, y, qid)

    (fold,) = small_folds(1)
    table = compare({"made": fold}, {"curious": Curious(), "deaf": Feature()}, "map")
    assert table.notes == {("curious", "made", 0): (f"Saw {len(fold.validation.y)} rows.",)}
    rows = [default_trainers()[name] for name in ("McRank", *BEYOND[2:])]
    rows += [LightGBMRanker(), XGBoostRanker(), LambdaRank(), RankNet()]
    assert all(trainers.Row("row", row).takes_validation for row in rows)


def test_without_a_validation_part_C_is_chosen_on_inner_folds():
    fold = without_validation(small_folds(1, noise=1.5)[0])
    table = compare({"made": fold}, trainers=["MAP"], Cs=[1e-3, 1.0])
    (cell,) = table.cells
    train, reached = fold.train, []
    for learn, check in GroupKFold(3, shuffle=True, random_state=0).split(train.X, groups=train.qid):
        models = StructRankSVM("map").fit_path(train.X[learn], train.y[learn], qid=train.qid[learn], Cs=[1e-3, 1.0])
        reached.append([model.score(train.X[check], train.y[check], train.qid[check]) for model in models])
    assert cell.validation == pytest.approx(np.mean(reached, axis=0).max())
    assert [1e-3, 1.0][int(np.mean(reached, axis=0).argmax())] == cell.C
    model = StructRankSVM("map", C=cell.C).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    np.testing.assert_array_equal(cell.scores, model.predict(fold.test.X))


def test_inner_folds_split_by_query_and_skip_queries_without_training_signal():
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(["a", "b", "c", "d", "only relevant", "only irrelevant"], 5))
    y = rng.integers(0, 2, 30)
    for name, labels in {"only relevant": 1, "only irrelevant": 0}.items():
        y[qid == name] = labels
    for name in "abcd":
        y[np.flatnonzero(qid == name)[:2]] = (0, 1)
    part = RankingData(np.arange(30.0)[:, None], y, qid)
    seen = []
    for learn, check in choosing_c.inner_folds(part, 1, random_state=0):
        learned, checked = (set(qid[some.X[:, 0].astype(int)]) for some in (learn, check))
        assert not learned & checked
        assert learned | checked == set("abcd")
        assert len(check.labels) == 5 * len(checked)
        seen += checked
    assert sorted(seen) == list("abcd")


def test_queries_without_a_relevant_document_are_counted_and_excluded():
    fold = small_folds(1)[0]
    y = fold.test.y.copy()
    y[fold.test.qid == fold.test.qid[0]] = 0
    fold = Fold(fold.train, fold.validation, Dataset(fold.test.X, y, fold.test.qid))
    table = compare({"made": fold}, trainers={"first": Feature()}, measures="map")
    assert table.undefined == {("made", "map"): 1}
    assert math.isnan(table.per_query["first", "made", "map"][0])
    assert not math.isnan(table.to_frame().iloc[0, 0])
    assert "Undefined test queries, excluded from the means: made map: 1 of 5" in str(table)
    assert "made (4 test queries)" in str(table)  # those that count


def test_a_column_undefined_for_all_queries_is_nan_and_unmarked():
    fold = small_folds(1)[0]
    fold = Fold(fold.train, None, Dataset(fold.test.X, np.zeros(len(fold.test.y)), fold.test.qid))
    table = compare({"made": fold}, trainers={"a": Feature(0), "b": Feature(1)}, measures="map")
    assert table.to_frame().isna().all(axis=None)
    assert set(table.marks().values()) == {""}
    assert "nan" in str(table)


def test_warnings_of_the_chosen_models_become_notes_and_are_not_shown():
    # Lists of 200 documents with random labels: MRR with a rank cutoff has no training signal.
    rng = np.random.default_rng(0)
    X, y, qid = rng.random((2000, 3)), np.tile(np.arange(200) < 2, 10).astype(int), np.repeat(np.arange(10), 200)
    parts = [Dataset(X[rows], y[rows], qid[rows]) for rows in (qid < 5, (qid >= 5) & (qid < 8), qid >= 8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainers = {"AUC": StructRankSVM("auc"), "MRR (phi_mrr)": StructRankSVM("mrr")}
        table = compare({"random": Fold(*parts)}, trainers=trainers, Cs=[0.1, 1.0])
    assert list(table.notes) == [("MRR (phi_mrr)", "random", 0)]
    assert "vacuous" in table.notes["MRR (phi_mrr)", "random", 0][0]
    text = str(table)
    assert re.search(r"^MRR \(phi_mrr\) ! ", text, re.MULTILINE)
    assert "MRR (phi_mrr) on random: Training on mrr@10 (phi_mrr) is vacuous" in text
    assert "is vacuous" in table.to_html()
    (note,) = table.details().loc[("random", 0, "MRR (phi_mrr)"), "notes"]
    assert "vacuous" in note


def test_a_vacuous_cell_is_marked_in_every_output(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    from structrank.comparison.plotting import CriterionTableDisplay

    rng = np.random.default_rng(0)
    X, y, qid = rng.random((2000, 3)), np.tile(np.arange(200) < 2, 10).astype(int), np.repeat(np.arange(10), 200)
    parts = [Dataset(X[rows], y[rows], qid[rows]) for rows in (qid < 5, (qid >= 5) & (qid < 8), qid >= 8)]
    table = compare({"random": Fold(*parts)}, ["AUC", "MRR (phi_mrr)"], measures=["mrr@10", "map"], Cs=[0.1, 1.0])
    assert table.vacuous == {("AUC", "random"): 0, ("MRR (phi_mrr)", "random"): 1}
    marks = table.marks()
    for measure in table.measures:
        assert marks["MRR (phi_mrr)", "random", measure].endswith("v")
        assert "v" not in marks["AUC", "random", measure]
    texts = str(table).splitlines()
    assert next(line for line in texts if line.startswith("MRR (phi_mrr) !")).count("v") == 2
    assert any(line.startswith("v  vacuous: ") for line in texts)
    assert next(line for line in table.to_latex().splitlines() if line.startswith(r"MRR (phi\_mrr)")).count("v}$") == 2
    assert table.to_html().count("v</sup>") == 2
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["random vacuous folds"] for row in rows] == ["0", "1"]
    table.to_report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().count('vacuous" data-value') + (tmp_path / "report.html").read_text().count(
        "vacuous start"
    ) == 2
    display = CriterionTableDisplay.from_table(table)
    assert [text.get_text()[-1] for text in display.text_[1]] == ["v", "v"]
    assert len(display.ax_.patches) == 2
    assert "v vacuous" in display.ax_.get_xlabel()
    matplotlib.pyplot.close(display.figure_)


def test_rows_that_rank_alike_are_named():
    folds = {"a": small_folds(2), "b": small_folds(1, n_queries=30)}
    table = compare(folds, {"first": Feature(0), "again": Feature(0), "other": Feature(1)}, "map")
    assert table.identical == [("a", ["first", "again"]), ("b", ["first", "again"])]
    assert "Identical rankings on a: first = again" in str(table)


def test_scaling_and_cleaning_are_those_of_the_data_sets_and_counted_in_the_legend():
    folds = small_folds(2)
    for part in (folds[0].test, folds[1].test):
        part.X[:2] = 0.0
    ready = datasets.clean(datasets.scale_per_query(folds), "kdd08")
    table = compare({"made": folds}, ["AUC"], "map", Cs=[1.0], scale="query", clean="kdd08")
    by_hand = compare({"made": ready}, ["AUC"], "map", Cs=[1.0])
    np.testing.assert_array_equal(table.per_query["AUC", "made", "map"], by_hand.per_query["AUC", "made", "map"])
    before, after = (sum(len(fold.test) for fold in some) for some in (folds, ready))
    assert after < before
    legend = " ".join(str(table).split())
    assert f"Cleaned (kdd08), made: test {before} to {after} documents" in legend
    assert "Features are scaled to [0, 1] within each query" in legend
    for wrong in ({"scale": "all"}, {"clean": "kdd09"}):
        with pytest.raises(ValueError, match="is not known"):
            compare({"made": folds}, ["AUC"], **wrong)


def test_both_conventions_of_ndcg_are_columns_of_one_table():
    (fold,) = [make_ranking(n_queries=25, n_docs=8, n_features=4, n_grades=4, noise=0.5, random_state=0)]
    table = compare({"made": fold}, {"first": Feature()}, ["ndcg@3", metrics.NDCG(k=3)])
    assert table.measures == ["ndcg@3", "ndcg@3 (gain=exp2, discount=log2)"]
    test = fold.test
    for name, measure in zip(table.measures, (metrics.NDCG(3, "binary", "kdd08"), metrics.NDCG(3)), strict=True):
        expected = metrics.evaluate(test.y, test.X[:, 0], test.qid, measure)["ndcg@3"]
        assert table.means["first", "made", name] == expected
    assert "ndcg@3 (gain=binary, discount=kdd08, relevant_from=1); ndcg@3 (gain=exp2, discount=log2)" in " ".join(
        str(table).split()
    )


@pytest.mark.parametrize("keep_validation", [True, False])
def test_a_small_chosen_C_is_not_called_vacuous(keep_validation):
    fold = small_folds(1)[0] if keep_validation else without_validation(small_folds(1)[0])
    chosen = {"Cs": [1e-5, 10.0], "select": metrics.MRR(relevant_from=0)}  # 1 for any ranking: ties go to the smallest C
    table = compare({"made": fold}, ["AUC"], **chosen)
    assert table.cells[0].C == 1e-5
    assert not table.cells[0].vacuous
    (note,) = table.cells[0].notes
    assert note.startswith("C is small")


def test_notes_belong_to_the_chosen_model():
    train = small_folds(1)[0].train
    models = choosing_c.fit_whole_path(StructRankSVM("auc", max_iter=2), RankingData.of(train), (1e-5, 100.0))
    assert [note[:10] for note in models[0].notes_] == ["C is small"]
    assert "max_iter=2" in models[1].notes_[0]
    table = compare({"made": small_folds(1)}, {"AUC": StructRankSVM("auc", max_iter=2)}, Cs=[100.0])
    assert "max_iter=2" in table.cells[0].notes[0]


def test_details_list_the_chosen_C_and_the_time_of_each_cell():
    table = compare({"made": small_folds(2)}, trainers={"AUC": StructRankSVM("auc"), "first": Feature()}, Cs=[1.0])
    details = table.details()
    assert details.index.tolist() == [("made", fold, name) for fold in (0, 1) for name in ("AUC", "first")]
    assert details.loc[("made", 1, "AUC"), "C"] == 1.0
    assert math.isnan(details.loc[("made", 1, "first"), "C"])
    assert (details["seconds"] >= 0).all()


# Any trainer, any data


def test_trainers_are_copied_and_never_trained_themselves():
    structured, foreign = StructRankSVM("auc"), Feature()
    compare({"made": small_folds(1)}, trainers={"a": structured, "b": foreign}, Cs=[1.0])
    assert vars(structured) == vars(StructRankSVM("auc"))
    assert vars(foreign) == {"column": 0, "log": None}


def test_scikit_learn_regressors_can_be_compared_through_an_adapter():
    from sklearn.linear_model import Ridge

    class RidgeRanker(Ridge):
        def fit(self, X, y, qid=None):
            return super().fit(X, y)

    table = compare({"made": small_folds(1)}, trainers={"ridge": RidgeRanker(alpha=0.1)}, measures="map")
    assert table.to_frame().iloc[0, 0] > 0.5
    assert table.cells[0].C is None


def test_sparse_frames_and_text_ids_give_the_same_table():
    pd = pytest.importorskip("pandas")
    folds = small_folds(1)
    table = compare({"made": folds}, trainers=["MAP"], Cs=[0.1, 1.0])

    def changed(change_X, change_qid):
        parts = (getattr(folds[0], name) for name in ("train", "validation", "test"))
        return Fold(*(Dataset(change_X(part.X), part.y, change_qid(part.qid)) for part in parts))

    def named(X):
        return pd.DataFrame(X, columns=list("abcd"))

    def text(qid):
        return np.array([f"query {number}" for number in qid])

    sparse = compare({"made": changed(scipy.sparse.csr_matrix, text)}, trainers=["MAP"], Cs=[0.1, 1.0])
    framed = compare({"made": changed(named, list)}, trainers=["MAP"], Cs=[0.1, 1.0])
    np.testing.assert_allclose(sparse.to_frame(), table.to_frame(), atol=1e-9)
    same_numbers(framed, table)


def test_tables_are_bit_identical_for_any_n_jobs():
    # joblib memory-maps parts above 1 MB.
    fold = make_ranking(n_queries=60, n_docs=200, n_features=20, random_state=0)
    data = {"small": [without_validation(fold) for fold in small_folds(1)], "large": fold}
    settings = {"trainers": ["AUC", "NDCG", "COMBO (separate slacks)"], "Cs": [0.01, 1.0]}
    same_numbers(compare(data, **settings, n_jobs=1), compare(data, **settings, n_jobs=2))


# Interrupt and resume


def test_a_second_call_reads_all_finished_cells(tmp_path):
    log, runs = tmp_path / "log", tmp_path / "runs"
    data = {"made": small_folds(2)}
    trainers = {"first": Feature(0, log), "second": Feature(1, log), "AUC": StructRankSVM("auc")}
    table = compare(data, trainers, Cs=[0.1, 1.0], results=runs)
    assert n_lines(log) == 4
    assert len(list(runs.glob("*.cell"))) == 6
    for cell in table.cells[2::3]:  # those of AUC, whose models are kept
        (path,) = runs.glob(f"made-fold{cell.fold + 1}-AUC-*.structrank")
        model = load_model(path)
        assert (model.criterion, model.C) == ("auc", cell.C)
        np.testing.assert_array_equal(model.predict(data["made"][cell.fold].test.X), cell.scores)
    again = compare(data, trainers, Cs=[0.1, 1.0], results=runs)
    assert n_lines(log) == 4
    same_numbers(table, again)
    assert again.details().equals(table.details())  # seconds too: nothing was trained


def test_after_a_crash_only_unfinished_cells_are_trained(tmp_path):
    log, runs = tmp_path / "log", tmp_path / "runs"
    data = {"made": small_folds(2)}

    class Crash(Feature):
        def fit(self, X, y, qid):
            raise MemoryError("simulated")

    trainers = {"first": Feature(0, log), "second": Feature(1, log)}
    with pytest.raises(MemoryError) as caught:
        compare(data, {**trainers, "crash": Crash()}, results=runs)
    assert caught.value.__notes__ == ["in compare: trainer 'crash', data set 'made', fold 1"]
    assert n_lines(log) == 2
    compare(data, trainers, results=runs)
    assert n_lines(log) == 4


def test_a_killed_comparison_loses_only_the_running_cell(tmp_path):
    log, runs, marker = tmp_path / "log", tmp_path / "runs", tmp_path / "table"
    program = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from deadly_ranker import Deadly
        from structrank import compare, datasets
        folds = [datasets.make_ranking(n_queries=10, n_docs=5, n_features=3, random_state=seed) for seed in range(6)]
        table = compare({{"made": folds}}, {{"deadly": Deadly({str(log)!r})}}, results={str(runs)!r})
        open({str(marker)!r}, "w").write(str(table))
        """
    )
    # The environment sets the moment of the kill, because it is not part of the key of a cell.
    (tmp_path / "deadly_ranker.py").write_text(
        textwrap.dedent(
            """
            import os
            class Deadly:
                def __init__(self, log):
                    self.log = log
                def fit(self, X, y, qid):
                    with open(self.log, "a") as file:
                        file.write("fit\\n")
                    if len(open(self.log).readlines()) == int(os.environ["DIE_AT"]):
                        os._exit(9)  # as if killed
                def predict(self, X):
                    return X[:, 0]
            """
        )
    )

    def run(die_at):
        return subprocess.run([sys.executable, "-c", program], env={**os.environ, "DIE_AT": str(die_at)}).returncode

    assert run(die_at=3) == 9
    assert (n_lines(log), len(list(runs.glob("*.cell")))) == (3, 2)
    assert run(die_at=0) == 0
    assert n_lines(log) == 3 + 4, "the two finished cells are not trained again"
    text = marker.read_text()
    runs.rename(tmp_path / "old")
    assert run(die_at=0) == 0
    assert marker.read_text() == text


def test_an_interrupted_model_is_not_stored(tmp_path):
    class Interrupted(StructRankSVM):
        def fit_path(self, *args, **settings):
            def interrupt(iteration):
                raise KeyboardInterrupt

            return super().fit_path(*args, **settings, callback=interrupt)

    with pytest.raises(KeyboardInterrupt):
        compare({"made": small_folds(1)}, {"stopped": Interrupted("auc")}, Cs=[1.0], results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_cell_is_trained_again(tmp_path):
    log, runs = tmp_path / "log", tmp_path / "runs"
    data = {"made": small_folds(1, n_queries=10)}
    trainers = {"first": Feature(0, log)}
    table = compare(data, trainers, results=runs)
    (file,) = runs.iterdir()
    whole = file.read_bytes()
    damages = [b"", b"not a cell", whole[: len(whole) // 2], whole[:-1], whole + whole[:7], b"\0" * len(whole)]
    for place in range(0, len(whole), 41):
        damages.append(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    for damage in damages:
        file.write_bytes(damage)
        same_numbers(compare(data, trainers, results=runs), table)
    assert list(runs.iterdir()) == [file]


def test_stored_cells_are_distinguished_by_data_trainer_and_settings(tmp_path):
    log = tmp_path / "log"
    folds = small_folds(1)
    other = Fold(folds[0].train, folds[0].validation, small_folds(2)[1].test)

    def fits(data, trainer, **settings):
        before = n_lines(log)
        compare({"made": data}, {"it": trainer}, results=tmp_path / "runs", **settings)
        return n_lines(log) - before

    class Counted(StructRankSVM):
        def fit_path(self, *arguments, **settings):
            with open(log, "a") as file:
                file.write("fit\n")
            return super().fit_path(*arguments, **settings)

    assert fits(folds, Feature(0, log)) == 1
    assert fits(folds, Feature(1, log)) == 1
    assert fits(other, Feature(0, log)) == 1
    assert fits(folds, Feature(0, log), Cs=[1.0], select="map", measures="auc") == 0  # it has no C, and scores are stored
    assert fits(folds, Counted("auc"), Cs=[1.0, 2.0]) == 4  # and three inner folds
    assert fits(folds, Counted("auc"), Cs=[2.0, 1.0, 1.0]) == 0
    assert fits(folds, Counted("auc", n_jobs=2), Cs=[1.0, 2.0]) == 0
    assert fits(folds, Counted("auc", tol=1e-2), Cs=[1.0, 2.0]) == 4
    assert fits(folds, Counted("auc"), Cs=[1.0]) == 1
    assert fits(folds, Counted("auc"), Cs=[1.0, 2.0], select="map") == 4
    assert fits(folds, Counted("dorm", decay=lambda ranks: 1 / (1.0 + ranks)), Cs=[1.0]) == 1
    assert fits(folds, Counted("dorm", decay=lambda ranks: 1 / (2.0 + ranks)), Cs=[1.0]) == 1


def test_names_that_map_to_the_same_file_name_have_separate_cells(tmp_path):
    folds = small_folds(1)
    data = {"a b": folds, "a_b": folds}
    trainers = {"x+": Feature(0), "x-": Feature(0)}
    for _ in range(2):
        table = compare(data, trainers, results=tmp_path)
        assert [(cell.dataset, cell.trainer) for cell in table.cells] == [(d, t) for d in data for t in trainers]


def test_the_results_folder_must_not_be_a_file(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(ValueError, match="runs' is a file; expected a folder"):
        compare({"made": small_folds(1)}, {"first": Feature()}, results=tmp_path / "runs")


# Rendering


def made_table(per_query, trainers=None):
    """Return a table from the rank of the only relevant document among ten, for each trainer and query."""
    n_queries = len(next(iter(per_query.values())))
    y = np.tile(np.arange(10) == 0, n_queries).astype(int)
    test = Dataset(np.zeros((10 * n_queries, 1)), y, np.repeat(np.arange(n_queries), 10))
    cells = []
    for name, ranks in per_query.items():
        scores = np.concatenate([[-rank + 0.5, *-np.arange(1.0, 10.0)] for rank in ranks])
        cells.append(Cell("made", 0, name, None, None, 0.0, (), scores))
    return CriterionTable(cells, {"made": [Fold(test, None, test)]}, [metrics.MRR()])


def test_marks_show_the_best_two_and_rows_significantly_below():
    table = made_table(
        {"fair": [1, 2] * 20, "best": [1] * 40, "second": [1] * 39 + [2], "poor": [2, 3] * 20, "close": [1] * 37 + [2] * 3}
    )
    marks = {name: mark for (name, _, _), mark in table.marks().items()}
    assert marks == {"fair": "<", "best": "**", "second": "*", "poor": "<", "close": ""}
    lines = [line.split() for line in str(table).splitlines()]
    assert ["best", "1.000", "**"] in lines
    assert ["second", "0.988", "*"] in lines
    assert ["fair", "0.750", "<"] in lines
    assert ["close", "0.963"] in lines


def test_rows_of_equal_mean_share_a_mark():
    marks = made_table({"a": [1, 2], "b": [2, 1], "c": [2, 2]}).marks()
    assert list(marks.values()) == ["**", "**", ""]
    marks = made_table({"a": [1, 1], "b": [2, 1], "c": [1, 2]}).marks()
    assert list(marks.values()) == ["**", "*", "*"]


def test_the_second_best_can_be_significantly_below_the_best():
    marks = made_table({"a": [1] * 20, "b": [2] * 20}).marks()
    assert list(marks.values()) == ["**", "*<"]


def test_significance_compares_with_the_best_and_corrects_within_the_column():
    from structrank.comparison.significance import holm, paired_randomisation_test, paired_t_test, standard_error_ratio

    table = made_table({"a": [1, 2, 2, 1, 3, 1], "b": [2, 2, 2, 2, 3, 2], "c": [4, 3, 5, 2, 3, 6]})
    frame = table.significance()
    assert frame.index.tolist() == [("made", "mrr", "b"), ("made", "mrr", "c")]
    assert frame.columns.tolist() == [
        "best",
        "difference",
        "standard_error_ratio",
        "p_t",
        "p_t_holm",
        "p_randomisation",
        "p_randomisation_holm",
    ]
    a, b, c = (table.per_query[name, "made", "mrr"] for name in "abc")
    assert frame["best"].tolist() == ["a", "a"]
    assert frame["difference"].tolist() == pytest.approx([b.mean() - a.mean(), c.mean() - a.mean()])
    assert frame["standard_error_ratio"].tolist() == [standard_error_ratio(b, a), standard_error_ratio(c, a)]
    for name, test in {"p_t": paired_t_test, "p_randomisation": paired_randomisation_test}.items():
        raw = [test(b, a), test(c, a)]
        assert frame[name].tolist() == raw
        assert frame[f"{name}_holm"].tolist() == holm(raw).tolist()


def test_exports_contain_the_numbers_and_escape_the_names(tmp_path):
    fold = small_folds(1)[0]
    trainers = {"50% <b> & _x_": Feature(0), "second": Feature(1), "third": Feature(2)}
    table = compare({"a&b_1": fold, "other": fold}, trainers, measures=["mrr@10", "map"])
    frame = table.to_frame()
    numbers = [f"{value:.3f}" for value in frame.to_numpy().ravel()]

    rows = list(csv.reader(io.StringIO(table.to_csv(tmp_path / "t.csv"))))
    counts = ["a&b_1 vacuous folds", "other vacuous folds"]
    assert rows[0] == ["trained on", "a&b_1 mrr@10", "a&b_1 map", "other mrr@10", "other map", *counts]
    assert [[float(value) for value in row[1:-2]] for row in rows[1:]] == frame.to_numpy().tolist()
    assert {(*row[-2:],) for row in rows[1:]} == {("0", "0")}
    assert rows[1][0] == "50% <b> & _x_"
    assert (tmp_path / "t.csv").read_text() == table.to_csv()

    latex = table.to_latex(tmp_path / "t.tex")
    body = latex[latex.index("\\midrule") :]
    assert re.findall(r"\d\.\d{3}", body) == numbers
    assert r"50\% \textless{}b\textgreater{} \& \_x\_" in latex
    assert r"\multicolumn{2}{c}{a\&b\_1}" in latex
    assert body.count(r"\textbf{") == 4
    assert all(line.count("&") - line.count(r"\&") == 4 for line in body.splitlines() if line.endswith(r"\\"))

    page = table.to_html(tmp_path / "t.html")
    assert re.findall(r"<td>(?:<[bu]>)?(\d\.\d{3})", page) == numbers
    assert html.escape("50% <b> & _x_") in page
    assert "<b> &" not in page
    assert page == table._repr_html_()

    lines = str(table).splitlines()
    assert re.findall(r"\d\.\d{3}", "\n".join(line for line in lines if line.startswith(tuple(trainers)))) == numbers


def test_wide_tables_are_printed_in_blocks():
    fold = small_folds(1)[0]
    table = compare({f"data set {number}": fold for number in range(5)}, {"first": Feature()})
    text = str(table)
    assert max(map(len, text.splitlines())) <= 110
    assert text.count("\nfirst ") == 3


def test_conventions_of_the_measures_are_printed():
    table = compare({"made": small_folds(1)}, {"first": Feature()})
    text = " ".join(str(table).split())
    assert "ndcg@10 (gain=binary, discount=kdd08, relevant_from=1)" in text
    assert "randomisation test over queries, with Holm's correction" in text


def test_nothing_is_printed_unless_verbose(capfd):
    data = {"made": small_folds(2)}
    compare(data, trainers=["AUC"], Cs=[1.0], n_jobs=2)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    compare(data, {"first": Feature()}, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "2 of 2 cells" in err


# Invalid input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": {}}, "expected a dict from names to folds, with at least one"),
        ({"datasets": {"made": []}}, "data set 'made' has no folds"),
        ({"datasets": "folder"}, r"datasets is 'folder'; expected a dict .*\{'mine': datasets.load_letor_folds\('folder'\)\}"),
        ({"datasets": small_folds(1)[0]}, r"datasets is a Fold; expected a dict from names to folds.*such as \{'mine': fold\}"),
        ({"datasets": {"made": "folder"}}, r"data set 'made' holds 'folder'; expected a Fold.*load_letor_folds\('folder'\)"),
        ({"datasets": {"made": [small_folds(1)[0].train]}}, r"data set 'made' holds a Dataset; expected a Fold.*Fold\(train, "),
        ({"trainers": {}}, "trainers is empty"),
        (
            {"trainers": StructRankSVM("auc")},
            r"without a name; name the row, as in \{'mine': StructRankSVM\(criterion='auc'\)\}",
        ),
        ({"trainers": ["MAPP"]}, "trainer='MAPP' is not known; choose one of: 'paper', 'RankSVM', 'AUC', 'MAP', .*'DORM'"),
        ({"trainers": {"x": object()}}, r"trainer 'x' is .*missing: fit, predict"),
        ({"trainers": {"x": StructRankSVM}}, "trainer 'x' is the class StructRankSVM; expected an object"),
        ({"trainers": {"x": StructRankSVM("mapp")}}, "trainer 'x': criterion='mapp' is not known"),
        ({"measures": ["map", "mapp"]}, "measure 'mapp' is not known"),
        ({"measures": []}, "measures is empty"),
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": 1.0}, "Cs=1.0 is not valid: expected a list of values of C"),
        ({"Cs": [1.0, -1.0]}, "Cs=-1.0 is not valid"),
        ({"select": "best"}, "measure 'best' is not known"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"random_state": None}, "random_state=None is not valid"),
        ({"discount": "log"}, "discount='log' is not known"),
        ({"relevant_from": None}, "relevant_from=None is not valid"),
    ],
)
def test_invalid_arguments_are_rejected_before_training(arguments, message, tmp_path):
    log = tmp_path / "log"
    arguments = {"datasets": {"made": small_folds(1)}, "trainers": {"first": Feature(0, log)}, **arguments}
    with pytest.raises(ValueError, match=message):
        compare(**arguments)
    assert n_lines(log) == 0


def test_errors_in_data_name_the_data_set_and_the_fold(tmp_path):
    log = tmp_path / "log"
    valid, other = small_folds(2)

    def changed(part, **changes):
        values = {"X": part.X, "y": part.y, "qid": part.qid, **changes}
        return Dataset(**values)

    train, validation, test = valid.train, valid.validation, valid.test
    X = test.X.copy()
    X[3, 1] = np.nan
    irrelevant = changed(train, y=np.zeros(len(train.y)))
    one_usable = changed(train, y=np.where(train.qid == train.qid[0], train.y, 0))
    invalid = {
        "fold 2 of 2: no query of the train part has both relevant": Fold(irrelevant, None, test),
        "fold 2 of 2: no query of the validation part": Fold(train, changed(validation, y=np.zeros(len(validation.y))), test),
        "fold 2 of 2: only one query of the train part": Fold(one_usable, None, test),
        "fold 2 of 2, test part: X has 3 features, but training is expecting 4": Fold(
            train, None, changed(test, X=test.X[:, :3])
        ),
        "fold 2 of 2, test part: X contains NaN at row 3, column 1": Fold(train, None, changed(test, X=X)),
        "fold 2 of 2, train part: qid has 1 entries": Fold(changed(train, qid=[1]), None, test),
    }
    trainers = {"first": Feature(0, log), "AUC": StructRankSVM("auc")}
    for message, fold in invalid.items():
        with pytest.raises(ValueError, match=f"data set 'made', {message}"):
            compare({"made": [other, fold]}, trainers)
    assert n_lines(log) == 0


def test_a_trainer_that_predicts_nan_is_named():
    class PredictsNaN(Feature):
        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match="scores contains NaN at row 0") as caught:
        compare({"made": small_folds(1)}, {"nan": PredictsNaN()})
    assert "trainer 'nan', data set 'made', fold 1" in caught.value.__notes__[0]


# The command


def test_the_default_data_of_the_command_have_all_parts(monkeypatch, capsys):
    from structrank import __main__ as command

    seen = {}

    def quick(folds, **settings):
        seen.update(folds)
        return compare(folds, {"first": Feature()})

    monkeypatch.setattr(structrank, "compare", quick)
    command.main()
    out, err = capsys.readouterr()
    assert list(seen) == ["digits", "synthetic"]
    assert all(fold.validation is not None for fold in seen.values())
    assert "trained on" in out
    assert err == ""


@pytest.mark.skipif(not WEBIS.is_dir(), reason=f"{WEBIS} is not there")
def test_webis_folds_fill_the_table():
    folds = datasets.load_letor_folds(WEBIS)[:1]
    table = compare({"webis": folds}, trainers=["AUC", "MAP"], Cs=[0.1, 10.0])
    assert (table.to_frame() > 0.2).all(axis=None)


# ---- Edge cases


def test_a_measure_undefined_on_all_validation_queries_cannot_choose_C():
    fold = small_folds(1)[0]
    by_twos = {"measures": "map", "Cs": [0.001, 1.0], "select": metrics.MAP(relevant_from=2)}
    with pytest.raises(ValueError, match=r"map \(relevant_from=2\) is undefined for all queries of the validation part"):
        compare({"made": fold}, ["MAP"], **by_twos)
    with pytest.raises(ValueError, match=r"is undefined for all queries of the train part, so C cannot be chosen"):
        compare({"made": without_validation(fold)}, ["MAP"], **by_twos)
    y = np.array(fold.train.y)
    y[np.argmax(y)] = 2  # defined in one query, so in one of three inner folds
    table = compare({"made": Fold(Dataset(fold.train.X, y, fold.train.qid), None, fold.test)}, ["MAP"], **by_twos)
    assert 0.0 < table.cells[0].validation <= 1.0
    assert table.settings["select"] == "map (relevant_from=2)"


def test_stored_cells_depend_on_column_names(tmp_path):
    pd = pytest.importorskip("pandas")
    fold = small_folds(1)[0]

    def named(*names):
        return Fold(
            *(
                Dataset(pd.DataFrame(part.X, columns=names), part.y, part.qid)
                for part in (fold.train, fold.validation, fold.test)
            )
        )

    class ByName(Feature):
        def predict(self, X):
            return X["best"].to_numpy()

    first = compare({"d": named("best", "b", "c", "d")}, {"by name": ByName()}, "map", results=tmp_path)
    second = compare({"d": named("a", "best", "c", "d")}, {"by name": ByName()}, "map", results=tmp_path)
    columns = [compare({"d": fold}, {"by name": Feature(column)}, "map").to_frame().iloc[0, 0] for column in (0, 1)]
    assert [table.to_frame().iloc[0, 0] for table in (first, second)] == columns
    assert columns[0] != columns[1]


def test_cells_of_data_of_one_query_can_be_stored(tmp_path):
    parts = [Dataset(part.X, part.y, 0) for part in (lambda fold: (fold.train, fold.test))(small_folds(1)[0])]
    fold = Fold(parts[0], None, parts[1])
    kept = compare({"d": fold}, {"f": Feature()}, "map", results=tmp_path)
    same_numbers(kept, compare({"d": fold}, {"f": Feature()}, "map"))


def test_a_measure_named_twice_is_one_column(tmp_path):
    table = compare({"made": small_folds(1)}, {"f": Feature()}, ["map", "MAP"])
    assert table.measures == ["map"]
    table.to_report(tmp_path / "r.html")


def test_duplicate_names_are_rejected_and_unusual_names_can_be_exported(tmp_path):
    fold = small_folds(1)[0]
    with pytest.raises(ValueError, match="two data sets are called '1'"):
        compare({1: fold, "1": fold}, {"f": Feature()})
    with pytest.raises(ValueError, match="two trainers are called '1'"):
        compare({"d": fold}, {1: Feature(), "1": Feature(1)})
    table = compare({"caf\udce9": fold}, {"[*] \udce9": Feature()}, "map")
    assert table.datasets == [r"caf\udce9"]
    for name in ("csv", "html", "latex", "report", "runs"):
        getattr(table, f"to_{name}")(tmp_path / name)
    assert r"{[}{*}] " in (tmp_path / "latex").read_text()


def test_labels_may_start_at_one():
    fold = small_folds(1)[0]
    above = Fold(*(Dataset(part.X, part.y + 1, part.qid) for part in (fold.train, fold.validation, fold.test)))
    trainers = {"svm": StructRankSVM("map", relevant_from=2), "feature": Feature()}
    table = compare({"d": above}, trainers, metrics.MAP(relevant_from=2), Cs=[1.0])
    assert not table.to_frame().isna().any().any()
    with pytest.raises(ValueError, match=r"relevant \(label >= 1\) and irrelevant .* Is relevant_from right\?"):
        compare({"d": above}, ["MAP"], Cs=[1.0])


def test_a_learner_that_reports_an_interruption_is_not_stored(tmp_path):
    class Interrupted(Feature):
        stop_reason_ = "interrupted"

    with pytest.raises(KeyboardInterrupt):
        compare({"made": small_folds(1)}, {"f": Interrupted()}, "map", results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_significance_of_a_single_row_is_empty():
    frame = compare({"made": small_folds(1)}, {"f": Feature()}, "map").significance()
    assert frame.empty
    assert "p_randomisation_holm" in frame.columns


def test_notes_shared_by_data_sets_omit_the_numbers():
    folds = {name: small_folds(1) for name in ("a", "b")}
    notes = {"a": "It dominates: 93 % of |w|.", "b": "It dominates: 86 % of |w|."}
    cells = [Cell(name, 0, "t", None, None, 0.0, (notes[name],), folds[name][0].test.X[:, 0]) for name in folds]
    text = str(CriterionTable(cells, folds, [metrics.MAP()]))
    assert "t on a, b: It dominates." in text
    assert "93" not in text.partition("Notes")[2]
    assert "93 %" in str(CriterionTable(cells[:1], {"a": folds["a"]}, [metrics.MAP()]))


@pytest.mark.parametrize("relevant_from", [None, 2])
def test_a_pointwise_row_is_the_regressor_on_labels_or_relevance(relevant_from):
    fold = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, n_grades=4, random_state=0)
    regressor = Ridge()
    row = Pointwise(regressor, relevant_from).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    target = fold.train.y if relevant_from is None else fold.train.y >= relevant_from
    assert np.array_equal(row.predict(fold.test.X), Ridge().fit(fold.train.X, target).predict(fold.test.X))
    assert not hasattr(regressor, "coef_")
    table = compare({"made": fold}, {"AUC": StructRankSVM("auc"), "ridge": Pointwise(regressor)}, measures="map", Cs=[1.0])
    assert table.to_frame().loc["ridge"].item() > 0.3
