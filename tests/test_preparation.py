"""Preparation of raw values as a part of the model: formulas, one function in training and serving, hostile data."""

import re
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.metadata_routing import get_routing_for_object

import structrank
from structrank import StructRankSVM, StructRankSVMCV, StructRankTrees, choose_C, datasets, learners, load_model, metrics
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models.explanation import explain
from structrank.models.exports import to_sql
from structrank.penalties import Penalty
from structrank.preparation import Clip, Deviation, Fill, Log, Normalise, fit_steps, prepare


def raw(n_queries=12, n_docs=7, missing=0.1):
    """Return unsorted queries of different lengths, one of a single document, with columns of scales 1 to 1e6."""
    rng = np.random.default_rng(3)
    qid = np.append(rng.integers(0, n_queries, n_queries * n_docs), 999)
    X = rng.normal(size=(qid.size, 4)) * [1.0, 30.0, 1e3, 1e6]
    X[:, 3] = X[:, 3].round(-6)  # ties
    y = (X[:, 0] + X[:, 1] / 30 + rng.normal(size=qid.size) > 0.5).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, 2] = np.nan_to_num(X[:, 2])
    return X, y, qid


X, Y, QID = raw()
FRAME = pd.DataFrame(X, columns=["bm25", "age", "clicks", "price"])
LEARNERS = [
    StructRankSVM("map"),
    StructRankSVMCV("map", Cs=[0.1, 1.0]),
    learners.LambdaRank(max_epochs=3),
    learners.RankNet(max_epochs=3, hidden_units=0),
    learners.LambdaMART(n_estimators=3, min_child_samples=2),
    learners.McRank(n_estimators=3, min_child_samples=2),
    StructRankTrees(n_estimators=3, min_child_samples=2),
    learners.SPSARanker(max_evaluations=20),
    LightGBMRanker(n_estimators=3, min_child_samples=2),
    XGBoostRanker(n_estimators=3),
]
WITHIN = [Fill("query_min"), Log(["clicks"]), Normalise("zscore")]
FIXED = [Fill("mean", indicator=True), Log(["clicks", "price"]), Clip(-20, 20), Deviation()]


def fitted(learner, X, preparation, in_place=False, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", structrank.StructRankWarning)
        return (learner if in_place else clone(learner)).set_params(preparation=preparation).fit(X, Y, qid=QID, **more)


def applied(step, X, qid=QID):
    return fit_steps(step, np.asarray(X, dtype=float), qid, [f"f{number}" for number in range(1, np.shape(X)[1] + 1)])[1]


# ---- Formulas


def by_query(X, of_column):
    """Return the result of a function of one column of one query, for all."""
    out = np.empty(X.shape)
    for query in set(QID.tolist()):
        rows = np.flatnonzero(query == QID)
        for column in range(X.shape[1]):
            out[rows, column] = of_column(X[rows, column].tolist())
    return out


def minmax(values):
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def l2(values):
    norm = sum(value * value for value in values) ** 0.5
    return [value / norm if norm else 0.0 for value in values]


def zscore(values):
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    return [(value - mean) / deviation if len(set(values)) > 1 else 0.0 for value in values]


def reciprocal_rank(values):
    return [1 / (60 + 1 + sum(other > value for other in values)) for value in values]


@pytest.mark.parametrize("formula", [minmax, l2, zscore, reciprocal_rank])
def test_normalisers_are_their_formulas_within_each_query(formula):
    filled = np.nan_to_num(X)
    method = "rank" if formula is reciprocal_rank else formula.__name__
    assert np.allclose(applied(Normalise(method), filled), by_query(filled, formula), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("method", "value"), [("minmax", 0), ("l2", 1 / np.sqrt(3)), ("zscore", 0), ("rank", 1 / 61)])
def test_equal_values_stay_equal(method, value):
    # The mean of three times 0.1 is not 0.1.
    assert np.allclose(applied(Normalise(method), np.full((3, 1), 0.1), qid=0), value, rtol=1e-15, atol=0)


def test_huge_values_do_not_overflow():
    assert np.allclose(applied(Normalise("l2"), [[3e200], [-4e200]], qid=0).ravel(), [0.6, -0.8])


def test_values_are_filled_by_their_rule():
    column = np.array([[1.0], [np.nan], [4.0], [np.nan], [-5.0], [np.nan]])
    qid = ["a", "a", "a", "b", "c", "c"]
    for value, expected in ((7, [7, 7, 7]), ("mean", [0, 0, 0]), ("min", [-5, -5, -5]), ("query_min", [1, 0, -5])):
        assert applied(Fill(value), column, qid)[[1, 3, 5], 0].tolist() == expected


def test_columns_have_rules_of_their_own_by_name_or_number():
    steps, prepared = fit_steps([Fill(5, ["age"]), Fill(-1, [0]), Fill(0)], np.full((1, 3), np.nan), 0, ["bm25", "age", "x"])
    assert prepared.tolist() == [[-1.0, 5.0, 0.0]]
    assert prepare(steps, np.array([[1.0, np.nan, 2.0]]), None, ["bm25", "age", "x"]).tolist() == [[1.0, 5.0, 2.0]]


def test_indicators_mark_what_was_missing():
    steps, prepared = fit_steps(Fill(0, indicator=True), np.array([[1.0, np.nan], [2.0, 3.0]]), 0, ["a", "b"])
    assert prepared.tolist() == [[1.0, 0.0, 1.0], [2.0, 3.0, 0.0]]
    # A column without missing values in training has no indicator.
    assert prepare(steps, np.array([[np.nan, 4.0]]), None, ["a", "b"]).tolist() == [[0.0, 4.0, 0.0]]
    assert steps[0].names_out(["a", "b"]) == ["a", "b", "missing(b)"]


def test_log_is_odd_and_clip_limits_infinity():
    assert np.allclose(applied(Log(), [[-3.0], [0.0], [3.0]], qid=0).ravel(), [-np.log(4), 0, np.log(4)], rtol=1e-15)
    assert applied(Clip(-1, 2), [[-np.inf], [0.5], [np.inf]], qid=0).ravel().tolist() == [-1, 0.5, 2]


def test_deviation_is_that_within_queries():
    filled = np.nan_to_num(X)
    variances = [np.mean([filled[query == QID, j].var() for query in set(QID.tolist())]) for j in range(4)]
    assert np.allclose(applied(Deviation(), filled), filled / np.sqrt(variances), rtol=1e-12)
    assert applied(Deviation(), [[0.1], [0.1], [0.1]], qid=0).tolist() == [[0.1]] * 3


@pytest.mark.parametrize(
    "steps",
    [
        Fill("mean", indicator=True),
        Fill("min"),
        Fill("query_min"),
        [Fill(0), Log([1, 3])],
        [Fill(0), Clip(-5, 5)],
        [Fill(0), Deviation([2, 0])],
        [Fill(0), Normalise("l2")],
        [Fill(0), Log(), Normalise("l2", columns=[3, 1])],
    ],
)
def test_a_sparse_matrix_gives_the_same_and_stays_sparse(steps):
    thin = X * (np.random.default_rng(5).random(X.shape) < 0.5)  # nan * 0 is nan
    names = list("abcd")
    (_, dense), (_, sparse) = (fit_steps(steps, given, QID, names) for given in (thin, scipy.sparse.csr_matrix(thin)))
    assert scipy.sparse.issparse(sparse)
    assert np.allclose(dense, sparse.toarray(), rtol=1e-12, atol=1e-300)


def test_entries_stored_twice_are_added_first():
    twice = scipy.sparse.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 0]), np.array([0, 2, 3])), shape=(2, 1))
    assert fit_steps(Log(), twice, 0, ["a"])[1].toarray().ravel().tolist() == [np.log(4), np.log(6)]
    assert twice.nnz == 3


@pytest.mark.parametrize("step", [Normalise("zscore"), Normalise("rank"), Clip(low=1)])
def test_steps_that_change_zeros_refuse_a_sparse_matrix(step):
    with pytest.raises(ValueError, match=r"changes 0, and a sparse X would no longer be sparse. Pass X.toarray"):
        fit_steps(step, scipy.sparse.identity(3, format="csr"), 0, list("abc"))


# ---- One function in training and serving


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("preparation", [WITHIN, FIXED], ids=["within", "fixed"])
def test_every_learner_serves_the_function_that_it_was_trained_on(learner, preparation, tmp_path):
    model = fitted(learner, FRAME, preparation)
    names = FRAME.columns.tolist()
    prepared = fit_steps(preparation, X, QID, names)[1]
    if not isinstance(learner, StructRankSVMCV):  # there, inner parts have their own constants
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", structrank.StructRankWarning)
            by_hand = clone(learner).fit(prepared, Y, qid=QID)
        assert np.array_equal(model.predict(FRAME, qid=QID), by_hand.predict(prepared))
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == names
    scores = model.predict(FRAME, qid=QID)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    order = np.random.default_rng(1).permutation(len(QID))
    assert loaded.predict(FRAME, qid=QID).tobytes() == scores.tobytes()
    assert np.allclose(loaded.predict(FRAME.iloc[order], qid=QID[order]), scores[order], rtol=1e-9)
    rows = np.flatnonzero(QID[0] == QID)
    assert np.allclose(loaded.predict(FRAME.iloc[rows], qid=0), scores[rows], rtol=1e-9)
    assert np.array_equal(loaded.rank(FRAME, qid=QID), model.rank(FRAME, qid=QID))
    assert loaded.score(FRAME, Y, qid=QID) == model.score(FRAME, Y, qid=QID)
    again = clone(model)
    assert not hasattr(again, "preparation_")
    assert repr(again) == repr(model)


@pytest.mark.parametrize(
    "learner", [LEARNERS[0], LEARNERS[2], LEARNERS[4], LEARNERS[8]], ids=lambda learner: type(learner).__name__
)
def test_a_fit_without_preparation_forgets_the_earlier_one(learner):
    model = fitted(learner, FRAME, FIXED)
    filled = np.nan_to_num(X)
    fitted(model, filled, None, in_place=True)
    plain = fitted(learner, filled, None)
    assert not hasattr(model, "preparation_")
    assert np.array_equal(model.predict(filled), plain.predict(filled))


def test_a_failed_fit_leaves_model_and_parameters():
    model = fitted(StructRankSVM("map"), FRAME, WITHIN)
    before = model.predict(FRAME, qid=QID)
    with pytest.raises(ValueError, match="y has"):
        model.fit(FRAME, Y[:-1], qid=QID)
    assert model.preparation is WITHIN
    assert np.array_equal(model.predict(FRAME, qid=QID), before)


def test_validation_is_prepared_with_the_constants_of_training():
    check = (FRAME.iloc[:40], Y[:40], QID[:40])
    model = fitted(LEARNERS[4], FRAME, FIXED, validation=check)
    steps, prepared = fit_steps(FIXED, X, QID, FRAME.columns.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", structrank.StructRankWarning)
        plain = clone(LEARNERS[4])
        plain.fit(prepared, Y, qid=QID, validation=(prepare(steps, X[:40], QID[:40], FRAME.columns.tolist()), Y[:40], QID[:40]))
    assert [entry.validation for entry in model.history_] == [entry.validation for entry in plain.history_]


def test_each_part_of_the_choice_of_C_has_its_own_constants():
    path = choose_C(FRAME, Y, QID, StructRankSVM("map", preparation=FIXED), Cs=[0.1, 1.0])
    constants = [models[0].preparation_[0].values_ for models in path.models]
    assert len({values.tobytes() for values in constants}) == len(constants) == 3
    held_out = datasets.Dataset(FRAME + 1e9, Y, QID)
    chosen = choose_C(FRAME, Y, QID, StructRankSVM("map", preparation=FIXED), Cs=[0.1, 1.0], validation=held_out)
    assert np.array_equal(chosen.models[0][0].preparation_[0].values_, fit_steps(FIXED[0], X, QID, list("abcd"))[0][0].values_)


def test_the_score_of_an_inner_fold_is_that_of_its_model():
    path = choose_C(
        FRAME, Y, QID, StructRankSVM("map", preparation=WITHIN), Cs=[0.1, 1.0], validation=datasets.Dataset(FRAME, Y, QID)
    )
    model = path.models[0][1]
    assert np.isclose(path.scores[1, 0], metrics.evaluate(Y, model.predict(X, QID), QID, "map")["map"], rtol=1e-12)


def test_explanations_are_of_prepared_columns_and_sum_to_the_score():
    model = fitted(StructRankSVM("map"), FRAME, WITHIN)
    rows = np.flatnonzero(QID[0] == QID)
    explanation = explain(model, FRAME.iloc[rows])
    assert explanation.names == ("zscore(bm25)", "zscore(age)", "zscore(log(clicks))", "zscore(price)")
    assert np.allclose(explanation.scores, model.predict(FRAME.iloc[rows], qid=0), rtol=1e-12)
    assert model.explain(FRAME.iloc[rows], pair=(0, 1)).difference == pytest.approx(
        explanation.scores[0] - explanation.scores[1]
    )


@pytest.mark.parametrize("export", ["to_ranklib", "to_svmrank", "to_solr", "to_elasticsearch", "to_onnx", "to_sklearn"])
def test_an_export_that_cannot_express_a_step_names_it(export, tmp_path):
    model = fitted(StructRankSVM("map"), FRAME, WITHIN)
    arguments = {"to_solr": ("m", "s"), "to_elasticsearch": ("m",), "to_sklearn": ()}.get(export, (tmp_path / "m",))
    with pytest.raises(ValueError, match=r"Normalise\(method='zscore'\).*Pass model.after_preparation\(\)"):
        getattr(model, export)(*arguments)
    assert not (tmp_path / "m").exists()


def test_the_model_of_prepared_columns_can_be_exported():
    model = fitted(StructRankSVM("map"), FRAME, FIXED)
    weights = model.after_preparation().to_solr("m", "s", shift=0.0)["params"]["weights"]
    named = ["bm25", "age", "log(clicks)", "log(price)", "missing(bm25)", "missing(age)", "missing(price)"]
    assert list(weights) == [f"deviation(clip({name}))" for name in named]


# ---- scikit-learn


def test_predict_requests_qid_only_with_a_normaliser():
    with sklearn.config_context(enable_metadata_routing=True):
        for preparation, requested in ((None, set()), (FIXED, set()), (WITHIN, {"qid"}), (Normalise("rank"), {"qid"})):
            request = get_routing_for_object(StructRankSVM(preparation=preparation))
            assert set(request.consumes("predict", ["qid"])) == requested
            assert request.consumes("fit", ["qid"]) == {"qid"}


def test_a_search_over_preparations_finds_a_better_one():
    grid = {"preparation": [Fill(0), [Fill("mean"), Deviation()], WITHIN]}
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", structrank.StructRankWarning)
        search = GridSearchCV(StructRankSVM("map"), grid, cv=3, error_score="raise").fit(FRAME, Y, qid=QID)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert hasattr(search.best_estimator_, "preparation_")


# ---- Input that is refused


def test_a_missing_qid_is_an_error_that_names_the_step():
    model = fitted(StructRankSVM("map"), FRAME, WITHIN)
    for call in (model.predict, model.rank):
        with pytest.raises(ValueError, match=r"qid is missing: .*within the query, by Fill\(value='query_min'\), Normalise"):
            call(FRAME)
    assert fitted(StructRankSVM("map"), FRAME, FIXED).predict(FRAME).shape == Y.shape


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (Log(), r"X contains NaN at row \d+, column \d \('log\(.*'\)"),
        ([Clip(high=1), Normalise("rank")], r"X contains NaN at row \d+, column \d \('clip\("),
        (Fill(0, ["colour"]), "Fill: X has no column 'colour'; it has 4 columns: 'bm25', 'age', 'clicks', 'price'"),
        (Log([4]), "Log: X has no column 4"),
        (Log([-1]), "Log: X has no column -1"),
        (Log([0, "bm25"]), "names a column twice"),
        (Log([]), "is empty"),
        (Log("age"), "columns='age' is not valid"),
        (Fill("median"), "value='median' is not known"),
        (Fill(np.nan), "value=nan is not valid"),
        (Fill(0, indicator=2), "indicator=2 is not valid"),
        (Clip(), "expected one limit"),
        (Clip(2, 1), "low of at most high"),
        (Normalise("softmax"), "method='softmax' is not known"),
        (Normalise("rank", k=-1), "k=-1 is not valid"),
        ([], r"preparation=\[\] is not valid"),
        ("log", "preparation='log' is not valid"),
        ([Log], "is not valid: expected None, or a list of steps"),
    ],
)
def test_what_is_not_valid_is_refused_in_words(preparation, message):
    with pytest.raises(ValueError, match=message):
        StructRankSVM("map", preparation=preparation).fit(FRAME, Y, qid=QID)


def test_labels_are_checked_before_queries():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        StructRankSVM(preparation=Fill(0)).fit(X)
    with pytest.raises(ValueError, match="qid is missing"):
        StructRankSVM(preparation=Fill(0)).fit(X, Y)


def test_rows_of_a_comparison_may_have_a_preparation(fold):
    rows = {"AUC": StructRankSVM("auc", preparation=Normalise("minmax")), "plain": StructRankSVM("auc")}
    table = structrank.compare({"made": fold}, rows, ["map"], [0.1, 1.0])
    scaled = structrank.compare({"made": fold}, {"AUC": rows["plain"]}, ["map"], [0.1, 1.0], scale="query")
    assert table.to_frame().loc["AUC"].tolist() == scaled.to_frame().loc["AUC"].tolist()


def test_train_for_a_measure_takes_raw_values(fold):
    train, test = fold.train, fold.test
    raw_X = train.X.copy()
    raw_X[::7, 1] = np.nan
    steps = [Fill("mean"), Normalise("zscore")]
    model = structrank.train_for("map", datasets.Dataset(raw_X, train.y, train.qid), Cs=[1.0], preparation=steps)
    prepared = fit_steps(steps, raw_X, train.qid, [f"f{number}" for number in range(1, 7)])
    assert np.array_equal(model.preparation_[0].values_, prepared[0][0].values_)
    by_hand = prepare(prepared[0], test.X, test.qid, list("abcdef")) @ model.coef_
    assert np.allclose(model.predict(test.X, qid=test.qid), by_hand, rtol=1e-12)


def test_a_column_without_values_cannot_be_learned():
    empty = FRAME.assign(age=np.nan)
    for value in ("mean", "min"):
        with pytest.raises(ValueError, match=r"column 'age' has no value in the 85 training documents"):
            StructRankSVM("map", preparation=Fill(value)).fit(empty, Y, qid=QID)
    with pytest.raises(ValueError, match="column 'age' has infinite values"):
        StructRankSVM("map", preparation=Fill("mean")).fit(FRAME.assign(age=np.inf), Y, qid=QID)
    assert StructRankSVM("map", preparation=[Fill("query_min"), Normalise()]).fit(empty, Y, qid=QID).coef_[1] == 0.0


def test_infinity_is_refused_where_it_would_spread():
    model = fitted(StructRankSVM("map"), FRAME, [Fill(0), Normalise("zscore")])
    bad = FRAME.copy()
    bad.iloc[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"X contains inf at row 5, column 1 \('age'\)"):
        model.predict(bad, qid=QID)


def test_shards_are_refused():
    shards = datasets.cut_shards(np.eye(4), [0, 1, 0, 1], qid=[7, 7, 8, 8], docs_per_shard=2)
    with pytest.raises(ValueError, match="not to shards or a cluster"):
        StructRankSVM(preparation=Fill(0)).fit(shards)


def test_a_learner_with_its_own_predict_is_refused():
    class Own(StructRankSVM):
        def predict(self, X, qid=None):
            return np.zeros(len(X))

    with pytest.raises(TypeError, match="Own defines predict, which does not prepare X"):
        Own(preparation=Fill(0)).fit(FRAME, Y, qid=QID)


# ---- SQL


def in_sqlite(model, frame, qid):
    """Return score and rank of the rows of a frame by the exported query, in the order of the frame."""
    connection = sqlite3.connect(":memory:")
    table = frame.assign(qid=qid, row=np.arange(len(qid)))
    table.to_sql("documents", connection, index=False)
    found = pd.read_sql(to_sql(model, "documents"), connection)
    found = found.sort_values("row")
    return found["score"].to_numpy(), found["rank"].to_numpy()


@pytest.mark.parametrize(
    "preparation",
    [
        WITHIN,
        FIXED,
        [Fill("min", ["age"]), Fill(3), Clip(high=1e5), Normalise("minmax")],
        [Fill("query_min", indicator=True), Normalise("rank", k=5, columns=["price", 0])],
        [Fill("zero"), Normalise("l2"), Normalise("zscore", columns=["clicks"]), Log()],
    ],
)
@pytest.mark.parametrize("learner", [StructRankSVM("map"), LEARNERS[4]], ids=["linear", "trees"])
def test_sql_computes_the_whole_function(learner, preparation):
    model = fitted(learner, FRAME, preparation)
    scores, ranks = in_sqlite(model, FRAME, QID)
    expected = model.predict(FRAME, qid=QID)
    assert np.allclose(scores, expected, rtol=1e-9, atol=1e-12)
    assert len(np.unique(expected)) > 3
    above = (QID[:, None] == QID) & (expected[:, None] > expected + 1e-9)  # ties may be broken by rounding
    assert (ranks[:, None] < ranks)[above].all()
    assert above.sum() > 100


def test_sql_divides_whole_numbers_as_real_numbers():
    frame = pd.DataFrame({"clicks": [1, 2, 4], "age": [3, 3, 3]})
    model = StructRankSVM("auc", preparation=Normalise("minmax")).fit(frame, [0, 1, 1], qid=0)
    assert np.allclose(in_sqlite(model, frame, np.zeros(3, int))[0], model.predict(frame, qid=0), rtol=1e-12)


# --- the parameters of learners ---------------------------------------------------------------------------------------


def test_missing_and_normalise_are_steps_before_and_after_the_others(rng):
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 2, 40), np.repeat(np.arange(5), 8)
    X[rng.random(X.shape) < 0.1] = np.nan
    for missing, first in (("mean", [Fill("mean")]), ({0: "mean", 1: 0.5, 2: 0.5}, [Fill("mean", [0]), Fill(0.5, [1, 2])])):
        short = StructRankSVM("auc", missing=missing, preparation=Log([1]), normalise="minmax").fit(X, y, qid=qid)
        whole = StructRankSVM("auc", preparation=[*first, Log([1]), Normalise("minmax")]).fit(X, y, qid=qid)
        assert np.array_equal(short.coef_, whole.coef_)
        assert list(map(repr, short.preparation_)) == list(map(repr, whole.preparation_))
        assert np.array_equal(short.predict(X, qid), whole.predict(X, qid))
        assert (short.missing, short.normalise) == (missing, "minmax")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"missing": "median"}, "missing='median' is not valid: value='median' is not known; choose one of: 'zero', 'min'"),
        ({"missing": {"f1": None}}, "missing={'f1': None} is not valid: value=None is not valid: expected a number"),
        ({"normalise": "max"}, "normalise='max' is not valid: method='max' is not known; choose one of: 'minmax'"),
        ({"normalise": {"f9": "rank"}}, "X has no column 'f9'; it has 3 columns: 'f1', 'f2', 'f3'"),
    ],
)
def test_rules_that_are_not_valid_are_named(parameters, message, rng):
    with pytest.raises(ValueError, match=re.escape(message)):
        StructRankSVM("auc", **parameters).fit(rng.normal(size=(4, 3)), [0, 1, 0, 1], qid=0)


def test_columns_without_a_rule_must_have_all_values(rng):
    X = rng.normal(size=(4, 3))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN at row 2, column 1 \('f2'\)"):
        StructRankSVM("auc", missing={"f1": "mean", "f2": "error"}).fit(X, [0, 1, 0, 1], qid=0)


def test_penalties_name_prepared_columns_in_inner_folds_too(rng):
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["price", "bm25"])
    y, qid = (X["price"] + rng.normal(size=80) > 0).astype(int), np.repeat(range(8), 10)
    X.iloc[3, 0] = np.nan
    for normalise, name in ((None, "price"), ("minmax", "minmax(price)")):
        model = StructRankSVM("auc", missing="mean", normalise=normalise, penalty=Penalty(upper={name: 0.0}))
        for table in (X, pytest.importorskip("polars").from_pandas(X)):
            assert model.fit(table, y, qid=qid).coef_[0] == 0.0
        chosen = choose_C(X, y, qid, model, Cs=[1.0, 10.0])
        assert all(one.coef_[0] == 0.0 for models in chosen.models for one in models)
