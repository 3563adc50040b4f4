"""The estimator: learning, invariance, rejected input, and scikit-learn compatibility."""

import io
import signal
import subprocess
import sys
import warnings
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import check_estimator

from structrank import StructRankSVM, StructRankWarning, datasets, metrics, svm
from structrank._support import compile_time
from structrank.criteria import NDCG
from structrank.training.sources import sources_of

ALL = ["auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm"]


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "ndcg-nc", "mrr", ["map", "ndcg-nc"]])
def test_training_ranks_unseen_queries_well(criterion, fold):
    model = StructRankSVM(criterion, C=10.0).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    found = metrics.evaluate(fold.test.y, model.predict(fold.test.X), fold.test.qid, ["map", "auc"])
    chance = metrics.evaluate(fold.test.y, np.zeros(len(fold.test.y)), fold.test.qid, ["map", "auc"])
    assert found["auc"] > 0.85
    assert found["map"] > chance["map"] + 0.3


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "ndcg-nc", "mrr"])
def test_score_is_one_minus_the_loss_of_the_predicted_ranking(criterion, train):
    model = StructRankSVM(criterion, C=10.0, k=3).fit(train.X, train.y, qid=train.qid)
    parsed = model.parsed_criteria()[0]
    scores = model.predict(train.X)
    losses = [parsed.loss(np.argsort(-scores[train.qid == q]), train.y[train.qid == q] > 0) for q in np.unique(train.qid)]
    assert model.score(train.X, train.y, qid=train.qid) == pytest.approx(1 - np.mean(losses), abs=1e-12)
    assert model.health_.mean_slack >= np.mean(losses)  # R bounds the training loss


def test_rank_numbers_each_query_from_one_in_row_order(rng):
    model = StructRankSVM("auc").fit([[0.0], [1.0], [2.0], [0.5]], [0, 1, 1, 0], qid=0)
    assert model.coef_[0] > 0
    X = np.array([[3.0], [1.0], [2.0], [7.0], [5.0]])
    assert model.rank(X, qid=["b", "a", "b", "a", "b"]).tolist() == [2, 2, 3, 1, 1]
    assert model.rank(X, qid=0).tolist() == [3, 5, 4, 1, 2]


def test_ranking_data_with_graded_labels_trains_auc_and_dorm(rng):
    fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, n_grades=4, noise=0.3, random_state=1)
    for criterion in ("auc", "dorm"):
        model = StructRankSVM(criterion, C=10.0, relevant_from=None, decay="sqrt@5").fit(
            fold.train.X, fold.train.y, qid=fold.train.qid
        )
        ndcg = metrics.evaluate(fold.test.y, model.predict(fold.test.X), fold.test.qid, ["ndcg@5"])["ndcg@5"]
        assert ndcg > 0.8
        assert 0 < model.score(fold.test.X, fold.test.y, qid=fold.test.qid) <= 1


# --- invariance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "ndcg-nc", "mrr", ["map", "mrr"]])
def test_row_order_names_and_shifts_of_queries_do_not_matter(criterion, train, rng):
    C, tol = 3.0, 1e-7

    def fit(X, y, qid):
        return StructRankSVM(criterion, C=C, tol=tol).fit(X, y, qid=qid).coef_

    expected = fit(train.X, train.y, train.qid)
    scale = np.abs(expected).max()
    apart = 2.0 * np.sqrt(2.0 * C * tol)  # largest distance of two points within C tol of the optimum (1-strong convexity)
    assert apart < 0.01 * scale
    order = rng.permutation(len(train.y))
    names = np.array([f"query {q}" for q in train.qid])
    shift = rng.normal(size=(train.qid.max() + 1, train.X.shape[1]))[train.qid]
    assert fit(train.X[order], train.y[order], train.qid[order]) == pytest.approx(expected, abs=apart)
    assert fit(train.X, train.y, names) == pytest.approx(expected, abs=1e-12 * scale)
    assert fit(train.X + shift, train.y, train.qid) == pytest.approx(expected, abs=apart)


@pytest.mark.parametrize("formulation", ["auto", "one-slack", "n-slack"])
def test_models_are_bit_identical_for_any_n_jobs(formulation):
    fold = datasets.make_ranking(n_queries=600, n_docs=(5, 60), n_features=40, random_state=3)
    train = fold.train
    fits = [
        StructRankSVM(["map", "ndcg"], C=1.0, formulation=formulation, tol=0.05, n_jobs=n_jobs).fit(
            train.X, train.y, qid=train.qid
        )
        for n_jobs in (1, 2, 2, -1)
    ]
    assert len(fits[0].history_) > 2
    for model in fits[1:]:
        assert np.array_equal(model.coef_, fits[0].coef_)
        assert [i.objective for i in model.history_] == [i.objective for i in fits[0].history_]


def test_every_container_gives_the_same_model(train, tmp_path, rng):
    mapped = np.memmap(tmp_path / "X.bin", dtype=np.float64, mode="w+", shape=train.X.shape)
    mapped[:] = train.X
    shuffled = rng.permutation(len(train.y))
    unshuffle = np.argsort(shuffled)
    X = np.where(np.abs(train.X) < 0.2, 0.0, train.X)

    def fit(X, y=train.y, qid=train.qid):
        return StructRankSVM("map", tol=1e-5).fit(X, y, qid=qid).coef_

    expected = fit(train.X)
    assert np.array_equal(fit(np.asfortranarray(train.X)), expected)
    assert np.array_equal(fit(pd.DataFrame(train.X), pd.Series(train.y), pd.Series(train.qid)), expected)
    assert np.array_equal(
        fit(polars.DataFrame(train.X), polars.Series(train.y), polars.Series(train.qid.astype(str))), expected
    )
    assert np.array_equal(fit(mapped), expected)
    assert np.array_equal(fit(train.X.tolist(), train.y.tolist(), train.qid.tolist()), expected)
    assert np.array_equal(fit(train.X.astype(">f8")), expected)
    assert fit(train.X.astype(np.float32)) == pytest.approx(expected, abs=1e-3)
    assert fit(train.X[shuffled][unshuffle]) == pytest.approx(expected, abs=1e-12)
    sparse = scipy.sparse.csr_matrix(X)
    assert fit(sparse) == pytest.approx(fit(X), abs=1e-3)
    assert fit(scipy.sparse.csc_array(X)) == pytest.approx(fit(X), abs=1e-3)
    whole = np.round(train.X * 3).astype(np.int8)
    assert np.array_equal(fit(whole), fit(whole.astype(float)))


def test_predictions_do_not_depend_on_the_container(train):
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    expected = train.X @ model.coef_
    frame = pd.DataFrame(train.X)
    for X in (train.X, np.asfortranarray(train.X), scipy.sparse.csr_array(train.X), frame, train.X.tolist()):
        assert model.predict(X) == pytest.approx(expected, abs=1e-12)


def test_inputs_and_parameters_are_not_changed(train):
    X, y, qid = train.X.copy(), train.y.copy(), train.qid.copy()
    model = StructRankSVM(["map", "mrr"], C=[1.0, 0.1])
    before = dict(model.get_params())
    for array in (X, y, qid):
        array.setflags(write=False)
    model.fit(X, y, qid=qid)
    assert model.get_params() == before


def test_queries_without_training_signal_change_nothing(train):
    extra = np.ones((7, train.X.shape[1]))
    X = np.concatenate([train.X, extra])
    y = np.concatenate([train.y, [1, 1, 1, 0, 0, 0, 1]])
    qid = np.concatenate([train.qid, [900, 900, 901, 902, 902, 902, 903]])
    model = StructRankSVM("map", tol=1e-5).fit(X, y, qid=qid)
    expected = StructRankSVM("map", tol=1e-5).fit(train.X, train.y, qid=train.qid)
    assert np.array_equal(model.coef_, expected.coef_)


def test_weights_equal_repeated_queries(train, assert_same_optimum):
    weights = np.where(train.qid % 3 == 0, 2.0, 1.0)
    repeated = train.qid % 3 == 0
    X = np.concatenate([train.X, train.X[repeated]])
    y = np.concatenate([train.y, train.y[repeated]])
    qid = np.concatenate([train.qid, train.qid[repeated] + 1000])
    expected = StructRankSVM("map", C=5.0, tol=1e-6).fit(X, y, qid=qid)
    model = StructRankSVM("map", C=5.0, tol=1e-6).fit(train.X, train.y, qid=train.qid, sample_weight=weights)
    assert_same_optimum(model, expected)
    zero = np.where(train.qid % 3 == 0, 0.0, 1.0)
    without = StructRankSVM("map", tol=1e-6).fit(train.X[~repeated], train.y[~repeated], qid=train.qid[~repeated])
    assert_same_optimum(StructRankSVM("map", tol=1e-6).fit(train.X, train.y, qid=train.qid, sample_weight=zero), without)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("criterion", ALL)
def test_degenerate_data_give_finite_weights_and_constant_data_give_0(criterion):
    X = np.array([[1.0, 5.0], [1.0, 5.0], [2.0, 5.0], [2.0, 5.0], [1.0, 5.0], [1.0, 5.0]])  # duplicates, a constant
    model = StructRankSVM(criterion).fit(X, [1, 0, 1, 0, 0, 1], qid=[1, 1, 1, 1, 2, 2])
    assert np.isfinite(model.coef_).all()
    constant = StructRankSVM(criterion).fit(np.ones((4, 3)), [1, 0, 0, 1], qid=0)
    assert constant.coef_ == pytest.approx(np.zeros(3), abs=1e-9)
    assert 0 <= constant.certificate_.gap <= 1e-3


# --- the path over C, warm starts, interruption -----------------------------------------------------------------------


def test_fit_path_equals_single_fits(train):
    Cs = [10.0, 0.1, 1.0, 10.0]
    models = StructRankSVM("map", tol=1e-5).fit_path(train.X, train.y, qid=train.qid, Cs=Cs)
    assert [model.C for model in models] == Cs
    for C, model in zip(Cs, models, strict=True):
        single = StructRankSVM("map", C=C, tol=1e-5).fit(train.X, train.y, qid=train.qid)
        assert model.certificate_.primal == pytest.approx(single.certificate_.primal, abs=3e-5 * C)
        assert model.certificate_.dual <= single.certificate_.primal + 1e-12
        assert model.predict(train.X).shape == train.y.shape
    with pytest.raises(ValueError, match="Cs is empty"):
        StructRankSVM().fit_path(train.X, train.y, qid=train.qid, Cs=[])
    with pytest.raises(ValueError, match=r"Cs=1\.0 is not valid: expected a list"):
        StructRankSVM().fit_path(train.X, train.y, qid=train.qid, Cs=1.0)


def test_fit_path_keeps_the_ratios_of_several_C(train):
    models = StructRankSVM(["map", "auc"], C=[3.0, 1.0]).fit_path(train.X, train.y, qid=train.qid, Cs=[1.0, 4.0])
    assert [model.C for model in models] == [[1.5, 0.5], [6.0, 2.0]]


def test_a_warm_start_saves_passes_and_reaches_the_same_objective(train):
    cold = StructRankSVM("map", C=30.0, tol=1e-4).fit(train.X, train.y, qid=train.qid)
    warm = StructRankSVM("map", C=30.0, tol=1e-4, warm_start=True).fit(train.X, train.y, qid=train.qid)
    first = warm.n_iter_
    warm.fit(train.X, train.y, qid=train.qid)
    assert warm.n_iter_ < first == cold.n_iter_
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-3)
    with pytest.raises(ValueError, match="warm_start: the last fit had 6 features, X has 5"):
        warm.fit(train.X[:, :5], train.y, qid=train.qid)


def test_max_iter_warns_and_bounds_the_distance_to_the_optimum(train):
    with pytest.warns(StructRankWarning, match=r"max_iter=2.*within .*% of the optimum.*Raise max_iter"):
        model = StructRankSVM("map", C=100.0, max_iter=2).fit(train.X, train.y, qid=train.qid)
    assert model.n_iter_ == 2
    assert model.certificate_.gap > 0


def test_the_callback_sees_every_iteration_and_can_stop(train):
    seen = []
    model = StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, callback=seen.append)
    assert seen == list(model.history_)
    with pytest.warns(StructRankWarning, match="stopped by the callback after 3 iterations"):
        model = StructRankSVM("map", C=10.0).fit(
            train.X, train.y, qid=train.qid, callback=lambda iteration: iteration.iteration == 3
        )
    assert model.n_iter_ == 3


def test_ctrl_c_returns_the_model_so_far(train):
    def press(iteration):
        if iteration.iteration == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(StructRankWarning, match="interrupted after 4 iterations; the model is the best so far"):
        model = StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, callback=press)
    assert np.isfinite(model.predict(train.X)).all()
    assert model.certificate_.dual <= model.certificate_.primal


def test_ctrl_c_in_a_path_returns_the_models_so_far(train):
    def press(iteration):
        if len(finished) == 2:
            signal.raise_signal(signal.SIGINT)
        if iteration.iteration == 1:
            finished.append(iteration)

    finished = []
    with pytest.warns(StructRankWarning) as caught:
        models = StructRankSVM("map").fit_path(train.X, train.y, qid=train.qid, Cs=[100.0, 1.0, 10.0], callback=press)
    assert [model.C for model in models] == [1.0, 10.0]
    assert models[1].stop_reason_ == "interrupted"
    assert any("the models for C = 100 are missing" in str(one.message) for one in caught)


def test_the_bounds_in_the_history_tighten(train):
    model = StructRankSVM("map", C=10.0, tol=1e-5).fit(train.X, train.y, qid=train.qid)
    frame = model.history_.to_frame()
    assert (frame["bound"].diff().dropna() >= 0).all()
    assert (frame["gap"] >= -1e-12).all()
    assert frame["gap"].iloc[-1] == pytest.approx(model.certificate_.gap)
    assert frame["violation"].iloc[-1] <= 1e-5
    assert (frame["seconds_qp"] > 0).all()
    assert (frame["seconds_oracle"].iloc[:-1] > 0).all()  # after the last QP the bound may certify the best point


# --- health -----------------------------------------------------------------------------------------------------------


def test_vacuous_training_warns_and_suggests_alternatives(rng):
    X = rng.normal(size=(1200, 3))
    y = (rng.random(1200) < 0.1).astype(int)
    with pytest.warns(
        StructRankWarning, match=r"ndcg@10 \(phi_po\) is vacuous.*300 documents.*Try bound='auto', criterion='auc'"
    ):
        model = StructRankSVM("ndcg", C=10.0).fit(X, y, qid=np.repeat(range(4), 300))
    assert model.health_.vacuous
    assert model.health_.objective_ratio > 0.999


def test_identical_feature_vectors_are_reported_as_the_cause(train):
    with pytest.warns(StructRankWarning, match=r"learned nothing: .* columns of X vary within queries"):
        StructRankSVM("map").fit(np.full_like(train.X, 0.1), train.y, qid=train.qid)


def test_a_small_C_alone_is_not_vacuous(train):
    model = StructRankSVM("auc", C=1e-6).fit(train.X, train.y, qid=train.qid)
    assert model.health_.objective_ratio > 0.999
    assert not model.health_.vacuous
    assert model.score(train.X, train.y, qid=train.qid) > 0.8


def test_health_reports_the_quantities_of_the_paper(train):
    model = StructRankSVM("auc", C=10.0).fit(train.X, train.y, qid=train.qid)
    health = model.health_
    assert not health.vacuous
    assert health.norm == pytest.approx(np.linalg.norm(model.coef_))
    assert model.certificate_.primal == pytest.approx(0.5 * health.norm**2 + 10.0 * health.mean_slack)
    assert health.objective_ratio == pytest.approx(model.certificate_.primal / 10.0)  # R(0) = 1 for AUC
    assert health.parts == {}


def test_a_dominant_criterion_is_reported(train, rng):
    healthy = StructRankSVM(["map", "mrr"], C=10.0).fit(train.X, train.y, qid=train.qid)
    assert sum(healthy.health_.parts.values()) == pytest.approx(1.0)
    assert healthy.health_.dominant == "mrr@10 (phi_mrr)"  # phi_mrr is not normalised; harmless on short lists
    balanced = StructRankSVM(["map", "mrr"], C=10.0, feature_map="po").fit(train.X, train.y, qid=train.qid)
    assert balanced.health_.dominant is None
    X = rng.normal(size=(1200, 3))
    y = (X @ [1.0, 1.0, 0.0] + rng.normal(size=1200) > 2).astype(int)
    with pytest.warns(StructRankWarning) as caught:
        StructRankSVM(["map", "mrr"]).fit(X, y, qid=np.repeat(range(4), 300))
    assert any("One criterion dominates the combination: mrr@10 (phi_mrr)" in str(one.message) for one in caught)


# --- invalid input: rejected before training, with place, finding and expectation --------------------------------------


def wrong(X=None, y=None, qid=None, weight=None, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2)) if X is None else X
    y = [1, 0, 0, 1, 0, 0] if y is None else y
    qid = [0, 0, 0, 1, 1, 1] if qid is None else qid
    return lambda: StructRankSVM(**parameters).fit(X, y, qid=qid, sample_weight=weight)


def with_value(value, row=3, column=1, **how):
    X = np.ones((6, 2), **how)
    X[row, column] = value
    return X


MADE = datasets.make_ranking(n_queries=5, n_docs=3, n_features=1, random_state=0)
INVALID_INPUT = {
    "nan in X": (wrong(with_value(np.nan)), r"X contains NaN at row 3, column 1"),
    "inf in X": (wrong(with_value(-np.inf)), r"X contains inf at row 3, column 1"),
    "nan in column order": (wrong(with_value(np.nan, order="F")), r"X contains NaN at row 3, column 1"),
    "nan in sparse X": (wrong(scipy.sparse.csr_matrix(with_value(np.nan))), r"X contains NaN at row 3, column 1"),
    "named column": (wrong(pd.DataFrame(with_value(np.nan), columns=["bm25", "pagerank"])), r"column 1 \('pagerank'\)"),
    "text in X": (wrong(np.array([["1", "a"]] * 6, dtype=object)), r"X has 'a' at row 0, column 1: no number"),
    "text in a frame": (wrong(pd.DataFrame({"bm25": [1.0] * 6, "url": ["a"] * 6})), r"X has 'a' at row 0, column 1 \('url'\)"),
    "nan label": (wrong(y=[1, 0, np.nan, 1, 0, 0]), r"y contains NaN at row 2"),
    "negative label": (wrong(y=[1, 0, 0, 1, 0, -1]), r"y contains -1 at row 5"),
    "label is text": (wrong(y=["1", "0", "x", "1", "0", "0"]), r"y has 'x' at row 2; expected numbers"),
    "labels are texts of numbers": (wrong(y=["1", "0", "0", "1", "0", "0"]), r"y has '1' at row 0"),
    "label is a date": (wrong(y=np.array(["2024-01-01"] * 6, dtype="datetime64[D]")), r"y has .*2024.* at row 0"),
    "X is text": (wrong("abc"), r"X is a str; expected a table.*datasets.load_letor"),
    "X is a data set": (wrong(MADE.train), r"X is a Dataset; expected a table.*fit\(train.X, train.y, qid=train.qid\)"),
    "X is a fold": (wrong(MADE), r"X is a Fold; expected a table.*fit\(fold.train.X, fold.train.y, qid=fold.train.qid\)"),
    "y is a data set": (wrong(y=MADE.train), r"y is a Dataset; expected one value per row of X"),
    "qid is the name of a column": (wrong(qid="qid"), r"qid is the text 'qid'; expected the query of each row.*frame\['qid'\]"),
    "qid is a list": (wrong(qid=[[1], [1], [1], [2], [2], [2]]), r"qid contains \[1\] at row 0; an id must be hashable"),
    "qid is NA": (wrong(qid=pd.array(["a", "a", None, "b", "b", "b"], dtype="string")), r"qid contains .* at row 2"),
    "unused discount": (wrong(criterion="map", discount="ln"), r"discount='ln' is not known"),
    "unused decay": (wrong(criterion="map", decay="cube"), r"decay='cube' is not known"),
    "huge grades": (
        wrong(y=[2000, 0, 0, 1, 0, 0], criterion="dorm", relevant_from=None),
        r"y contains 2000 at row 0.*up to 1000",
    ),
    "tiny grade": (wrong(y=[1e-17, 0, 0, 1, 0, 0], criterion="dorm", relevant_from=None), r"y contains 1e-17 at row 0, whose"),
    "short y": (wrong(y=[1, 0]), r"y has 2 entries but X has 6 rows"),
    "short qid": (wrong(qid=[1]), r"qid has 1 entries but X has 6 rows"),
    "sizes for qid": (wrong(qid=[2, 4]), r"qid has 2 entries that sum up to the 6 rows of X, as sizes of groups do"),
    "short weights": (wrong(weight=[1.0]), r"sample_weight has 1 entries but X has 6 rows"),
    "missing qid": (wrong(qid=[0, 0, None, 1, 1, 1]), r"qid contains None at row 2"),
    "nan qid": (wrong(qid=[0, 0, np.nan, 1, 1, 1]), r"qid contains nan at row 2"),
    "only relevant": (wrong(y=[1, 1, 1, 2, 3, 1]), r"no query has both relevant \(label >= 1\) and irrelevant"),
    "one grade": (wrong(y=[1] * 6, criterion="auc", relevant_from=None), r"no query has different labels"),
    "criterion": (wrong(criterion="ndgc"), r"criterion='ndgc' is not known; choose one of: auc, map, ndcg\[@k\], ndcg-nc,"),
    "criterion with a cutoff it lacks": (wrong(criterion="map@5"), r"criterion='map@5': map has no cutoff; write 'map'"),
    "no criterion without a cutoff": (wrong(criterion="ndcg-nc@5"), r"criterion='ndcg-nc@5': ndcg-nc has no cutoff"),
    "cutoff": (
        wrong(criterion="ndcg@0"),
        r"criterion='ndcg@0': the cutoff '0' is not valid; expected an integer of at least 1",
    ),
    "two cutoffs": (wrong(criterion="ndcg@5", k=10), r"k=10 contradicts criterion='ndcg@5', whose k is 5"),
    "cutoff of an object": (
        wrong(criterion=["map", NDCG(k=5)], k=None),
        r"k=None contradicts criterion=NDCG\(k=5, discount='kdd08', gain='exp2'\), whose k is 5; set it in one place",
    ),
    "discount of an object": (wrong(criterion=NDCG(), discount="log2"), r"discount='log2' contradicts criterion=NDCG"),
    "no criterion": (wrong(criterion=[]), r"criterion is an empty list"),
    "map": (wrong(feature_map="pairs"), r"feature_map='pairs' is not known; choose one of: 'auto', 'po'"),
    "pair": (wrong(criterion="map", feature_map="mrr"), r"'map' with feature_map 'mrr' has no exact oracle.*mrr: mrr, po"),
    "graded": (
        wrong(criterion="map", relevant_from=None),
        r"Set relevant_from=1, or another lowest label that counts as relevant",
    ),
    "maps": (wrong(criterion=["map", "auc"], feature_map=["po"]), r"feature_map has 1 entries but criterion has 2"),
    "discount": (wrong(criterion="ndcg", discount="ln"), r"discount='ln' is not known; choose one of: 'log2', 'kdd08'"),
    "slack": (wrong(slack="both"), r"slack='both' is not known; choose one of: 'separate', 'shared'"),
    "formulation": (wrong(formulation="two-slack"), r"formulation='two-slack' is not known"),
    "query_weight": (wrong(query_weight="docs"), r"query_weight='docs' is not known"),
    "solver": (wrong(solver="gurobi"), r"solver='gurobi' is not known; choose one of: 'auto', 'osqp', 'dual', 'interior'"),
    "cvxpy solver": (wrong(solver="cvxpy:NONE"), r"CVXPY has no solver 'NONE' installed; it has .*CLARABEL"),
    "C": (wrong(C=0), r"C=0 is not valid: expected a number above 0"),
    "C negative in list": (wrong(criterion=["map", "auc"], C=[1, -1]), r"C=-1 is not valid"),
    "C list length": (wrong(criterion=["map", "auc"], C=[1.0]), r"C has 1 entries but criterion has 2"),
    "C list shared": (wrong(criterion=["map", "auc"], C=[1, 2], slack="shared"), r"takes one C, not a list"),
    "C nan": (wrong(C=float("nan")), r"C=nan is not valid"),
    "k": (wrong(criterion="ndcg", k=0), r"k=0 is not valid: expected an integer of at least 1"),
    "tol": (wrong(tol=0.0), r"tol=0.0 is not valid: expected a number above 0"),
    "max_iter": (wrong(max_iter=0), r"max_iter=0 is not valid: expected an integer of at least 1"),
    "n_jobs": (wrong(n_jobs=0), r"n_jobs=0 is not valid"),
    "relevant_from": (wrong(relevant_from="1"), r"relevant_from='1' is not valid"),
    "weights differ": (wrong(weight=[1, 1, 2, 1, 1, 1]), r"sample_weight differs within query 0: 1 at row 0, 2 at row 2"),
    "weights negative": (wrong(weight=[-1] * 6), r"sample_weight contains -1 at row 0"),
    "weights zero": (wrong(weight=[0] * 6), r"sample_weight is zero for every query"),
    "weights tiny": (wrong(weight=[5e-324] * 6), r"sample_weight contains 4\.94\d*e-324 at row 0 .*; weights must be 0"),
    "weights huge": (
        wrong(weight=[1e308] * 6),
        r"sample_weight contains 1e\+308 at row 0 .*; weights must be 0, or from 1e-100",
    ),
}


@pytest.mark.parametrize("case", INVALID_INPUT)
def test_invalid_input_is_rejected_before_training(case, monkeypatch):
    fit, message = INVALID_INPUT[case]

    def no_work(*_):
        raise AssertionError("training started before the input was checked")

    monkeypatch.setattr("structrank.solvers.cutting_plane.CuttingPlanes.run", no_work)
    with pytest.raises(ValueError, match=message):
        fit()


def test_predict_rejects_other_features_and_unfitted_models(train):
    with pytest.raises(sklearn.exceptions.NotFittedError):
        StructRankSVM().predict(train.X)
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match="X has 2 features, but StructRankSVM is expecting 6 features"):
        model.predict(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X contains NaN at row 1, column 0"):
        model.predict(np.where(np.arange(6 * 6).reshape(6, 6) == 6, np.nan, 1.0))
    named = StructRankSVM("auc").fit(pd.DataFrame(train.X, columns=list("abcdef")), train.y, qid=train.qid)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(pd.DataFrame(train.X, columns=list("abcdeg")))


@pytest.mark.parametrize("invalid", ["X", "y", "unfitted"])
def test_a_failed_fit_does_not_change_the_earlier_model(invalid, train):
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    coef = model.coef_.copy()
    if invalid == "X":
        with pytest.raises(ValueError, match="X contains NaN"):
            model.fit(np.full((len(train.y), 2), np.nan), train.y, qid=train.qid)
    elif invalid == "y":
        with pytest.raises(ValueError, match="nothing to learn from"):
            model.fit(train.X[:, :2], np.zeros(len(train.y)), qid=train.qid)
    else:
        new = StructRankSVM("auc")
        new.fit_path(train.X, train.y, qid=train.qid, Cs=[1.0])
        with pytest.raises(sklearn.exceptions.NotFittedError):
            new.predict(train.X)
    assert np.array_equal(model.coef_, coef)
    assert model.predict(train.X).shape == train.y.shape


# --- output -----------------------------------------------------------------------------------------------------------


def test_nothing_is_printed_at_verbose_0_even_by_compiled_code():
    code = (
        "from structrank import StructRankSVM, datasets\n"
        "t = datasets.make_ranking(n_queries=40, n_docs=8, n_features=4, random_state=0).train\n"
        "for solver in ('osqp', 'cvxpy'): StructRankSVM('map', C=100.0, solver=solver).fit(t.X, t.y, qid=t.qid)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout + result.stderr == ""


@pytest.mark.parametrize("call", ["fit", "fit_path"])
def test_verbose_1_shows_that_functions_are_compiled_for_preparing_data(train, monkeypatch, capsys, call):
    def compiled_sources(*args):
        for line in tuple(compile_time._lines):
            line.announce(compile_time.MESSAGE)
        return sources_of(*args)

    monkeypatch.setattr(svm, "sources_of", compiled_sources)
    getattr(StructRankSVM("auc", verbose=1), call)(train.X, train.y, qid=train.qid)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == compile_time.MESSAGE
    assert len(others) == (1 if call == "fit" else 5)  # one for each C
    assert all(line.endswith("converged") for line in others)


def test_verbose_1_shows_objective_gap_and_rate_on_stderr(train, monkeypatch, capsys):
    StructRankSVM("map", C=10.0, verbose=1).fit(train.X, train.y, qid=train.qid)
    out, err = capsys.readouterr()
    assert out == ""
    assert "C=10  iteration" in err
    assert "gap" in err
    assert "it/s  converged" in err

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    StructRankSVM("map", C=10.0, verbose=1).fit(train.X, train.y, qid=train.qid)
    assert terminal.getvalue().startswith("\r")
    assert terminal.getvalue().endswith("converged\n")


# --- scikit-learn -----------------------------------------------------------------------------------------------------

WEIGHTS = "weights belong to queries: different weights within a query are rejected"
ALL_RELEVANT = "the check's labels are all at least 1, so with relevant_from=1 no document is irrelevant"


class OfOneQuery(StructRankSVM):
    """A learner of data without ids, which scikit-learn's checks pass."""

    def fit(self, X, y=None, qid=0, sample_weight=None):
        return super().fit(X, y, qid, sample_weight)

    def score(self, X, y, qid=0):
        return super().score(X, y, qid)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "not_applicable"),
    [
        (
            OfOneQuery("auc", relevant_from=None),
            {
                "check_sample_weights_not_overwritten": WEIGHTS,
                "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
                "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
            },
        ),
        (
            OfOneQuery(),
            {
                "check_sample_weights_not_overwritten": WEIGHTS,
                "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
                "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
                "check_estimators_dtypes": ALL_RELEVANT,
                "check_sample_weights_pandas_series": ALL_RELEVANT,
                "check_sample_weights_not_an_array": ALL_RELEVANT,
                "check_sample_weights_shape": ALL_RELEVANT,
                "check_fit2d_1feature": ALL_RELEVANT,
            },
        ),
    ],
    ids=["graded", "default"],
)
def test_scikit_learns_own_checks_pass(model, not_applicable):
    results = check_estimator(model, expected_failed_checks=not_applicable)
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(not_applicable)


def test_grid_search_routes_qid_and_never_splits_a_query(train):
    with sklearn.config_context(enable_metadata_routing=True):
        model = StructRankSVM("map").set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=GroupKFold(3))
        search.fit(train.X, train.y, qid=train.qid, groups=train.qid)
        expected = []
        for rest, held_out in GroupKFold(3).split(train.X, train.y, train.qid):
            assert not set(train.qid[rest]) & set(train.qid[held_out])
            fitted = StructRankSVM("map", C=1.0).fit(train.X[rest], train.y[rest], qid=train.qid[rest])
            expected.append(fitted.score(train.X[held_out], train.y[held_out], qid=train.qid[held_out]))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))
    assert search.best_estimator_.score(train.X, train.y, qid=train.qid) > 0.5


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("ndcg@3", [{"criterion": "NDCG", "k": 3}, {"criterion": NDCG(k=3)}, {"criterion": NDCG(k=3), "k": 3}]),
        (["map", "mrr@2"], [{"criterion": ["map", "mrr"], "k": 2}]),
        ("dorm", [{"criterion": "dorm@10"}, {"criterion": "dorm", "k": 10, "discount": "kdd08", "gain": "exp2"}]),
    ],
)
def test_a_criterion_is_the_same_by_name_by_parameters_and_as_an_object(train, name, same):
    expected = clone(StructRankSVM(name)).fit(train.X, train.y, qid=train.qid)
    for parameters in same:
        model = clone(StructRankSVM(**parameters)).fit(train.X, train.y, qid=train.qid)
        assert np.array_equal(model.coef_, expected.coef_)
        assert model.parsed_criteria() == expected.parsed_criteria()


def test_criteria_of_one_name_are_distinguished_by_their_settings(train):
    several = [NDCG(k=1), NDCG(k=5), NDCG(k=5, discount="log2")]
    model = StructRankSVM(several, C=10.0).fit(train.X, train.y, qid=train.qid)
    assert set(model.health_.parts) == {"ndcg@1 (phi_po)", "ndcg@5 (phi_po)"}
    assert sum(model.health_.parts.values()) == pytest.approx(1.0)
    assert 0.5 < model.score(train.X, train.y, qid=train.qid) <= 1.0


def test_unfinished_training_is_not_called_vacuous(train):
    with pytest.warns(StructRankWarning) as caught:
        model = StructRankSVM("map", C=1000.0, formulation="n-slack", max_iter=1).fit(train.X, train.y, qid=train.qid)
    assert not model.health_.vacuous
    assert len(caught) == 1


def test_fits_in_threads_do_not_change_the_handling_of_ctrl_c():
    code = (
        "import signal, threading\n"
        "from structrank import StructRankSVM, datasets\n"
        "t = datasets.make_ranking(n_queries=60, n_docs=8, n_features=6, random_state=0).train\n"
        "fit = lambda: StructRankSVM('map', C=100.0).fit(t.X, t.y, qid=t.qid)\n"
        "threads = [threading.Thread(target=fit) for _ in range(3)]\n"
        "[one.start() for one in threads]; [one.join() for one in threads]\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    print('heard')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "heard\n"


def test_score_accepts_query_weights(train):
    model = StructRankSVM("map").fit(train.X, train.y, qid=train.qid)
    weights = (train.qid % 2).astype(float)
    odd = train.qid % 2 == 1
    assert model.score(train.X, train.y, qid=train.qid, sample_weight=weights) == pytest.approx(
        model.score(train.X[odd], train.y[odd], qid=train.qid[odd])
    )


def test_healthy_data_give_no_warning(train):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for criterion in ("auc", "map", "ndcg-nc"):
            StructRankSVM(criterion, C=10.0).fit(train.X, train.y, qid=train.qid)


@pytest.mark.parametrize("criterion", ["auc", "dorm"])
def test_planes_of_graded_labels_do_not_depend_on_earlier_evaluations(criterion, rng):
    X = rng.integers(0, 3, size=(60, 2)).astype(float)  # many ties
    y, qid = rng.integers(0, 3, 60), np.repeat(range(6), 10)
    w = np.array([1.0, 1.0])
    planes = []
    for earlier in ([], [np.array([-1.0, 0.5]), np.array([0.0, -1.0])]):
        model = StructRankSVM(criterion, relevant_from=None)
        with closing(model._executor(X, y, qid, None, None)) as executor:
            risk = model._training(executor, model.check_parameters()[1], None).risk
            for other in earlier:
                risk.plane(other)
            planes.append(risk.plane(w))
    assert np.array_equal(planes[0].slope, planes[1].slope)
    assert np.array_equal(planes[0].value, planes[1].value)


@pytest.mark.parametrize(("n_cells", "n_slacks"), [(10**9, 5), (40, 12), (1, 20)])
def test_larger_data_have_more_slacks_within_limits(n_cells, n_slacks, monkeypatch):
    from structrank.training import risk

    monkeypatch.setattr(risk, "_ENTRIES_PER_GROUP", n_cells)
    monkeypatch.setattr(risk, "_LEAST_GROUPS", 5)
    monkeypatch.setattr(risk, "_MOST_GROUPS", 20)
    X = np.arange(480.0).reshape(160, 3) % 7  # 40 queries of 4 documents, 480 entries
    model = StructRankSVM("auc", formulation="grouped").fit(X, np.tile([1, 0, 0, 0], 40), qid=np.repeat(np.arange(40), 4))
    assert model.history_.to_frame()["planes"].iloc[0] == n_slacks


def test_sparse_data_have_fewer_slacks_the_wider_they_are(rng):
    n_slacks = []
    for n_features in (10, 2**12, 2**17):
        rows, columns = np.arange(160), rng.integers(n_features, size=160)
        X = scipy.sparse.csr_matrix((rng.random(160), (rows, columns)), shape=(160, n_features))
        model = StructRankSVM("auc", formulation="grouped").fit(X, np.tile([1, 0, 0, 0], 40), qid=np.repeat(np.arange(40), 4))
        n_slacks.append(model.history_.to_frame()["planes"].iloc[0])
    assert 40 == n_slacks[0] > n_slacks[1] > n_slacks[2] == 1


@pytest.mark.parametrize("kind", [np.asarray, np.float32, np.asfortranarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("settings", [{}, {"bound": "ramp"}, {"criterion": "dorm", "relevant_from": None}])
def test_the_first_pass_finds_nan_in_every_row(kind, settings, rng):
    X, qid = rng.normal(size=(24, 3)), rng.permutation(np.repeat(range(4), 6))
    y = np.where(qid == 2, 0, rng.permutation(24) % 2)  # no pass reads query 2
    for row in range(24):
        spoilt = X.copy()
        spoilt[row, row % 3] = rng.choice([np.nan, np.inf, -np.inf])
        with pytest.raises(ValueError, match=f"X contains (NaN|inf) at row {row}, column {row % 3};"):
            StructRankSVM(**settings).fit(kind(spoilt), y, qid=qid)


def test_a_warm_start_with_many_features_converges():
    # It did not when planes were dropped after a few QPs without a multiplier.
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(27), rng.integers(2, 30, 27))
    X = rng.normal(size=(qid.size, 149))
    y = (X @ rng.normal(size=149) / np.sqrt(149) + 0.5 * rng.normal(size=qid.size) > 1).astype(int)
    model = StructRankSVM("dorm", C=100.0, k=3, decay="sqrt@5", max_iter=200, warm_start=True)
    for _ in range(2):
        model.fit(1000 * X, y, qid=qid)
        assert model.stop_reason_ == "converged"


@pytest.mark.filterwarnings("ignore:.*is vacuous")
@pytest.mark.parametrize("formulation", ["one-slack", "auto"])
@pytest.mark.parametrize(("criterion", "k", "tol"), [("mrr", 10, 0.1), ("ndcg", 1, 1.0)])
def test_weights_are_not_0_even_where_0_is_within_the_tolerance(criterion, k, tol, formulation):
    rng = np.random.default_rng(0)
    qid = np.repeat(range(20), 60)
    X, y = 100 * rng.normal(size=(1200, 30)), (rng.random(1200) < 0.05).astype(int)
    y[::60] = 1
    model = StructRankSVM(criterion, k=k, C=1e5, tol=tol, formulation=formulation, max_iter=100).fit(X, y, qid=qid)
    assert model.stop_reason_ == "converged"
    assert model.coef_.any()
    assert model.certificate_.gap <= 1e5 * tol


def test_a_warm_start_on_the_ramp_bound_finds_nan(rng):
    X, y, qid = rng.normal(size=(24, 3)), np.tile([1, 0, 0], 8), np.repeat(range(4), 6)
    model = StructRankSVM("mrr", bound="ramp", warm_start=True).fit(X, y, qid=qid)
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 7, column 1"):
        model.fit(X, y, qid=qid)


def test_column_names_are_checked_before_training(train):
    frame = pd.DataFrame(train.X, columns=["a", 0, *(f"f{number}" for number in range(train.X.shape[1] - 2))])
    with pytest.raises(TypeError, match="X has the column names 'a' and 0, a text and a int; expected all to be texts"):
        StructRankSVM().fit(frame, train.y, qid=train.qid, callback=lambda _: pytest.fail("trained"))


@pytest.mark.parametrize("criterion", ["ndcg", "mrr", "dorm"])
def test_a_cutoff_beyond_every_list_equals_none(criterion, train):
    found = [StructRankSVM(criterion, k=k).fit(train.X, train.y, qid=train.qid).coef_ for k in (None, sys.maxsize)]
    np.testing.assert_array_equal(*found)


def test_fractions_are_accepted_and_huge_integers_rejected(train):
    assert StructRankSVM(C=Fraction(1, 2)).fit(train.X, train.y, qid=train.qid).certificate_.gap >= 0.0
    for parameters in ({"C": 10**400}, {"max_iter": 10**30}, {"k": 10**30}):
        with pytest.raises(ValueError, match="is not valid: expected"):
            StructRankSVM(**parameters).fit(train.X, train.y, qid=train.qid)


def test_a_C_so_small_that_the_tolerance_rounds_to_0_is_solved_silently(capfd):
    with pytest.warns(StructRankWarning, match="has learned nothing"):
        model = StructRankSVM("auc", C=5e-324).fit([[0.0], [1.0]], [0, 1], qid=[7, 7])
    assert model.coef_ == pytest.approx([0.0])
    assert model.certificate_.gap >= 0
    assert capfd.readouterr() == ("", "")
