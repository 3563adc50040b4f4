"""StructRankTrees: gradient against finite differences, a risk that falls, early stopping, files, and invalid input."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import structrank
from structrank import StructRankTrees, StructRankWarning, datasets, load_model, metrics, most_violated
from structrank.learners.line_search import minimise_along_ray
from structrank.learners.structured_trees import ScoreRisk
from structrank.training.data import RankingData

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")

GRADED = {"criterion": "ndcg", "relevant_from": None, "discount": "log2", "k": 5}
LOSSES = [
    {"criterion": "map"},
    {"criterion": "mrr", "feature_map": "mrr"},
    {"criterion": "dorm", "k": 5},
    {"criterion": ["map", "ndcg"], "slack": "separate"},
    {"criterion": ["map", "ndcg"], "slack": "shared"},
    GRADED,
    {"criterion": ["auc", "ndcg", "err"], "relevant_from": None, "k": 3},
]


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(
        n_queries=60, n_docs=(5, 12), n_features=5, n_grades=4, noise=0.3, relevant_share=0.4, random_state=0
    )


def fit(part, validation=None, callback=None, sample_weight=None, **parameters):
    model = StructRankTrees(**{"n_estimators": 8, "min_child_samples": 5, **parameters})
    options = {"validation": validation, "callback": callback, "sample_weight": sample_weight}
    return model.fit(part.X, part.y, qid=part.qid, **options)


def risk_of(part, weights=None, **loss):
    return ScoreRisk(RankingData(part.X, part.y, part.qid, weights), StructRankTrees(**loss)._structured_loss())


# --- risk and line search ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_gradient_equals_finite_differences_of_the_risk(loss, fold, rng):
    risk = risk_of(fold.train, **loss)
    scores, step = rng.standard_normal(fold.train.y.shape[0]), 1e-6
    _, gradient = risk(scores)
    largest = np.argsort(-np.abs(gradient))[:10]
    for document in [*largest, *rng.choice(scores.shape[0], 10)]:
        moved = np.zeros_like(scores)
        moved[document] = step
        difference = (risk(scores + moved)[0] - risk(scores - moved)[0]) / (2 * step)
        assert difference == pytest.approx(gradient[document], abs=1e-7)


def test_the_risk_is_the_weighted_mean_of_most_violated_values(fold, rng):
    part = fold.train
    scores, queries = rng.standard_normal(part.y.shape[0]), np.unique(part.qid)
    of_query = dict(zip(queries, rng.uniform(0.5, 2.0, queries.shape[0]), strict=True))
    values, weights = [], []
    for query in queries:
        rows = part.qid == query
        if np.unique(part.y[rows]).size > 1:
            found = most_violated(scores[rows], part.y[rows], "ndcg", 5, discount="log2", relevant_from=None)
            values.append(found.value)
            weights.append(of_query[query])
    risk = risk_of(part, np.array([of_query[query] for query in part.qid]), **GRADED)
    assert risk(scores)[0] == pytest.approx(np.average(values, weights=weights), rel=1e-12)


def test_the_line_search_finds_the_minimum_of_piecewise_linear_functions(rng):
    for _ in range(50):
        slopes, offsets = rng.normal(size=20), rng.uniform(0.0, 1.0, 20)
        slopes[0], slopes[1] = -2.0, 0.1

        def evaluate(step, slopes=slopes, offsets=offsets):
            lines = offsets + slopes * step
            return max(lines.max(), 0.0), slopes[lines.argmax()] if lines.max() > 0 else 0.0

        step, value = minimise_along_ray(evaluate, *evaluate(0.0), tol=0.0)
        lines = offsets + np.linspace(0.0, 20.0, 20_001)[:, None] * slopes
        assert value <= max(lines.max(axis=1).min(), 0.0) + 1e-12
        assert value == evaluate(step)[0]


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_risk_falls_in_every_round_and_belongs_to_the_predicted_scores(loss, fold):
    model = fit(fold.train, **loss)
    risks = [model.initial_risk_, *(entry.loss for entry in model.history_)]
    assert len(risks) == 9
    assert (np.diff(risks) < 0.0).all()
    assert risk_of(fold.train, **loss)(model.predict(fold.train.X))[0] == pytest.approx(risks[-1], rel=1e-9)


def test_a_full_step_reduces_the_risk_most(fold):
    first = [fit(fold.train, **GRADED, n_estimators=1, learning_rate=rate).history_[0].loss for rate in (0.1, 0.5, 1.0)]
    assert first == sorted(first, reverse=True)


def test_nonlinear_grades_are_learned_better_than_by_a_linear_model(rng):
    X = rng.uniform(-1.0, 1.0, (4000, 4))
    utility = np.abs(X[:, 0]) + (X[:, 1] * X[:, 2] > 0) + 0.1 * rng.standard_normal(4000)
    y, qid = np.digitize(utility, np.quantile(utility, [0.4, 0.7, 0.9])), np.repeat(np.arange(400), 10)
    train, test = qid < 200, qid >= 200
    measure = metrics.NDCG(k=10)
    linear = structrank.StructRankSVM("ndcg", relevant_from=None, discount="log2").fit(X[train], y[train], qid=qid[train])
    trees = StructRankTrees("ndcg", relevant_from=None, discount="log2", n_estimators=40)
    trees.fit(X[train], y[train], qid=qid[train])
    values = [metrics.evaluate(y[test], m.predict(X[test]), qid[test], measure)[measure.name] for m in (linear, trees)]
    assert values[1] > values[0] + 0.1
    assert trees.score(X[test], y[test], qid=qid[test]) == pytest.approx(values[1])
    assert trees.feature_importances_.sum() == pytest.approx(1.0)
    assert trees.feature_importances_.argmin() == 3


def test_validation_keeps_the_rounds_up_to_the_best_and_patience_stops(fold):
    model = fit(fold.train, fold.validation, **GRADED, measure="map", n_estimators=60, patience=3)
    values = [entry.validation for entry in model.history_]
    assert model.best_round_ == int(np.argmax(values)) + 1
    assert model.stop_reason_ == "patience"
    assert model.n_iter_ == model.best_round_ + 3
    part = fold.validation
    assert model.score(part.X, part.y, qid=part.qid) == pytest.approx(max(values), abs=1e-12)
    fewer = fit(fold.train, **GRADED, n_estimators=model.best_round_)
    np.testing.assert_array_equal(fewer.predict(part.X), model.predict(part.X))


def test_the_measure_is_by_default_that_of_the_first_criterion(fold):
    assert StructRankTrees(["map", "ndcg"]).parsed_measure() == metrics.parse("map")
    assert StructRankTrees(**GRADED).parsed_measure() == metrics.NDCG(k=5)
    assert StructRankTrees("map", measure="mrr@3").parsed_measure() == metrics.parse("mrr@3")


def test_training_is_deterministic_and_independent_of_row_order_container_and_threads(fold, rng):
    part, sampled = fold.train, {**GRADED, "subsample": 0.7, "colsample_bytree": 0.6}
    scores = fit(part, **sampled).predict(part.X)
    np.testing.assert_array_equal(fit(part, **sampled).predict(part.X), scores)
    assert not np.array_equal(fit(part, **sampled, random_state=1).predict(part.X), scores)
    scores = fit(part, **GRADED).predict(part.X)
    np.testing.assert_array_equal(fit(part, **GRADED, n_jobs=2).predict(part.X), scores)
    sparse = datasets.Dataset(scipy.sparse.csr_matrix(part.X), part.y, part.qid)
    np.testing.assert_array_equal(fit(sparse, **GRADED).predict(sparse.X), scores)
    order = rng.permutation(part.y.shape[0])
    shuffled = datasets.Dataset(part.X[order], part.y[order], part.qid[order])
    np.testing.assert_allclose(fit(shuffled, **GRADED).predict(part.X), scores, rtol=1e-6, atol=1e-9)


def test_query_weights_change_the_model_and_queries_of_weight_0_do_not_count(fold):
    part = fold.train
    some = np.unique(part.qid)[::2]
    weights = np.where(np.isin(part.qid, some), 2.0, 0.0)
    kept = weights > 0
    only = datasets.Dataset(part.X[kept], part.y[kept], part.qid[kept])
    expected = fit(only, **GRADED).predict(part.X)
    np.testing.assert_array_equal(fit(part, sample_weight=weights, **GRADED).predict(part.X), expected)
    assert not np.array_equal(fit(part, **GRADED).predict(part.X), expected)


@pytest.mark.parametrize("loss", [GRADED, {"criterion": ["map", "mrr"], "feature_map": ["po", "mrr"]}], ids=str)
def test_loaded_models_equal_the_saved_models(loss, fold, tmp_path):
    model = fit(fold.train, fold.validation, **loss)
    model.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert loaded.get_params() == model.get_params()
    assert list(loaded.history_) == list(model.history_)
    assert (loaded.notes_, loaded.initial_risk_, loaded.trees_) == (model.notes_, model.initial_risk_, model.trees_)
    np.testing.assert_array_equal(loaded.predict(fold.test.X), model.predict(fold.test.X))
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)


def test_clones_are_unfitted_and_have_the_same_parameters(fold):
    model = fit(fold.train, **GRADED, patience=3, measure="ndcg@3")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "trees_")


def test_reduced_grades_are_noted_as_by_the_linear_model_where_grades_could_be_used(fold):
    (note,) = fit(fold.train, criterion="auc", n_estimators=1).notes_
    assert "relevant_from=None trains on grades" in note
    assert note in structrank.StructRankSVM("auc").fit(fold.train.X, fold.train.y, qid=fold.train.qid).notes_
    for loss in (GRADED, {"criterion": "map"}, {"criterion": "auc", "relevant_from": 2}):
        assert fit(fold.train, **loss, n_estimators=1).notes_ == ()


def test_training_stops_where_the_risk_is_0():
    X, y = np.tile([[0.0], [1.0]], (20, 1)), np.tile([0, 1], 20)
    part = datasets.Dataset(X, y, np.repeat(np.arange(20), 2))
    model = fit(part, criterion="auc", learning_rate=1.0)
    assert (model.n_iter_, model.stop_reason_, model.history_[-1].loss) == (1, "minimum", 0.0)
    assert model.score(X, y, qid=part.qid) == 1.0


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_trees_add_up_to_a_direction_where_none_of_them_reduces_the_risk_alone():
    part, loss = datasets.load_digits_retrieval().train, {"criterion": "ndcg", "discount": "log2"}
    model = fit(part, **loss, n_estimators=10)
    risks = [entry.loss for entry in model.history_]
    assert risks[0] >= model.initial_risk_ > risks[5] > risks[-1]
    assert model.notes_ == ()
    for n_trees in (1, 10):  # before and after the first step
        scores = fit(part, **loss, n_estimators=n_trees).predict(part.X)
        assert risk_of(part, **loss)(scores)[0] == pytest.approx(risks[n_trees - 1], rel=1e-9)


def test_a_vacuous_risk_warns_and_the_trees_still_rank(rng):
    y, qid = np.tile(np.arange(40) == 0, 20).astype(int), np.repeat(np.arange(20), 40)
    X = rng.standard_normal((800, 2)) + np.column_stack([y, np.zeros(800)])
    with pytest.warns(StructRankWarning, match="The last 8 of 8 trees do not reduce the risk of ndcg"):
        model = fit(datasets.Dataset(X, y, qid), criterion="ndcg", k=1, measure="auc")
    assert model.notes_[0].startswith("The last 8 of 8 trees")
    assert model.history_[-1].loss >= model.initial_risk_
    assert model.score(X, y, qid=qid) > 0.7


# --- invalid input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "err"}, "relevant_from=None"),
        ({"criterion": []}, "criterion is an empty list"),
        ({"criterion": ["map", "mrr"], "feature_map": ["po"]}, "feature_map has 1 entries but criterion has 2"),
        ({"slack": "some"}, "slack='some'"),
        ({"k": 0}, "k=0"),
        ({"learning_rate": 1.5}, "learning_rate=1.5 is not valid: expected a share"),
        ({"measure": "f1"}, "f1"),
        ({"num_leaves": 1}, "num_leaves=1"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message, fold):
    with pytest.raises(ValueError, match=message):
        fit(fold.train, **parameters)


def test_data_without_training_signal_are_rejected(fold):
    with pytest.raises(ValueError, match="no query has different labels"):
        fit(datasets.Dataset(fold.train.X, np.ones_like(fold.train.y), fold.train.qid), **GRADED)


def test_a_data_set_in_place_of_its_parts_is_an_error_that_names_them(fold):
    with pytest.raises(ValueError, match=r"X is a Dataset; expected a table.*fit\(train.X, train.y, qid=train.qid\)"):
        StructRankTrees("auc").fit(fold.train)
