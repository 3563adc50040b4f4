"""Boosted trees without LightGBM: trees of scikit-learn in LightGBM's text format."""

import sys

import numpy as np
import pytest
import scipy.sparse

from structrank import StructRankTrees, StructRankWarning, compare, datasets, load_model, metrics
from structrank.comparison.trainers import Row, default_trainers
from structrank.learners import LambdaMART, McRank
from structrank.learners.plain_trees import Booster, Dataset
from structrank.models.exports.trees import forest_of

SETTINGS = {
    **{"num_leaves": 2, "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0.0, "lambda_l2": 0.0, "seed": 0},
    **{"learning_rate": 0.5, "bagging_fraction": 1.0, "feature_fraction": 1.0},
}
MODELS = {
    "LambdaMART": LambdaMART(n_estimators=8, num_leaves=7),
    "LambdaMART, gradient": LambdaMART(n_estimators=8, leaf_values="gradient", subsample=0.7, colsample_bytree=0.6),
    "McRank": McRank(n_estimators=6, subsample=0.7, colsample_bytree=0.6),
    "McRank, ordinal": McRank("ordinal", n_estimators=6),
    "StructRankTrees": StructRankTrees("map", n_estimators=8),
}


@pytest.fixture(params=MODELS)
def model(request):
    """An untrained model."""
    return MODELS[request.param]


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=60, n_docs=(5, 20), n_features=5, n_grades=4, noise=0.3, random_state=0)


@pytest.fixture
def hidden(monkeypatch):
    """Hide LightGBM from now on."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)


def fit(model, part, X=None, **more):
    return model.__class__(**model.get_params()).fit(part.X if X is None else X, part.y, qid=part.qid, **more)


def test_the_first_split_has_the_largest_gain_and_leaves_take_newton_steps(rng):
    X, gradient, second = rng.normal(size=(60, 4)).round(1), rng.normal(size=60), rng.uniform(0.1, 1.0, size=60)
    booster = Booster({**SETTINGS, "lambda_l2": 2.0, "objective": "none"}, Dataset(X, params=SETTINGS))
    assert not booster.update(fobj=lambda *_: (gradient, second))

    def gain(left):
        return sum(gradient[side].sum() ** 2 / second[side].sum() for side in (left, ~left))

    gains = {}
    for feature in range(4):
        for threshold in np.unique(X[:, feature]):
            left = X[:, feature] <= threshold
            if min(left.sum(), (~left).sum()) >= 5:
                gains[gain(left)] = left
    left = gains[max(gains)]
    expected = np.empty(60)
    for side in (left, ~left):
        expected[side] = -0.5 * gradient[side].sum() / (second[side].sum() + 2.0)
    assert booster.predict(X) == pytest.approx(expected, rel=1e-12)
    total = gradient.sum() ** 2 / second.sum()
    assert booster.feature_importance("gain").sum() == pytest.approx(max(gains) - total, rel=1e-9)


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 61.0)])
def test_classes_are_boosted_from_their_shares_by_the_derivatives_of_the_log_loss(weight, rng):
    X, classes = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    own, weights = np.eye(3)[classes], np.ones(60) if weight is None else weight
    booster = Booster({**SETTINGS, "objective": "multiclass", "num_class": 3}, Dataset(X, classes, weight, params=SETTINGS))
    scores = np.tile(np.log(np.average(own, axis=0, weights=weights)), (60, 1))
    for number in range(4):
        powers = np.exp(scores)
        shares = powers / powers.sum(axis=1, keepdims=True)
        gradient, second = weights[:, None] * (shares - own), weights[:, None] * 1.5 * shares * (1.0 - shares)
        assert not booster.update()
        leaves = booster.predict(X, pred_leaf=True, start_iteration=number, num_iteration=1)
        for grade in range(3):
            for leaf in (0, 1):
                rows = leaves[:, grade] == leaf
                scores[rows, grade] -= 0.5 * gradient[rows, grade].sum() / second[rows, grade].sum()
        assert booster.predict(X, raw_score=True) == pytest.approx(scores, abs=1e-12)


def test_thresholds_separate_numbers_that_32_bits_do_not(hidden):
    X = np.where(np.arange(120) % 2, 1.0 + 1e-12, 1.0).reshape(-1, 1)
    model = LambdaMART(n_estimators=1).fit(X, np.arange(120) % 2, qid=np.repeat(np.arange(12), 10))
    low, high = model.predict([[1.0], [1.0 + 1e-12]])
    assert low < high


def test_models_rank_unseen_documents_and_note_who_grew_the_trees(model, fold, hidden):
    trained = fit(model, fold.train, validation=fold.validation)
    part, measure = fold.test, trained.parsed_measure()
    chance = metrics.evaluate(part.y, np.zeros(len(part.y)), part.qid, measure)[measure.name]
    assert trained.score(part.X, part.y, part.qid) > chance + 0.1
    assert "DecisionTreeRegressor" in trained.notes_[-1]


def test_scores_are_the_same_of_loaded_models_sparse_input_and_any_n_jobs(model, fold, hidden, tmp_path):
    trained = fit(model, fold.train)
    expected = trained.predict(fold.test.X)
    trained.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").predict(fold.test.X), expected)
    sparse = fit(model, fold.train, scipy.sparse.csr_matrix(fold.train.X))
    assert np.array_equal(sparse.predict(scipy.sparse.csr_matrix(fold.test.X)), expected)
    assert np.array_equal(
        fit(model.__class__(**{**model.get_params(), "n_jobs": 2}), fold.train).predict(fold.test.X), expected
    )


def test_interrupted_training_resumes_to_the_same_model(model, fold, hidden, tmp_path):
    expected = fit(model, fold.train)

    def interrupt(entry):
        if entry.round == 3:
            raise KeyboardInterrupt

    with pytest.warns(StructRankWarning, match="Training was interrupted after tree 3"):
        fit(model, fold.train, callback=interrupt, checkpoint=tmp_path)
    resumed = fit(model, fold.train, checkpoint=tmp_path)
    assert resumed.n_iter_ == expected.n_iter_ > 3
    assert np.array_equal(resumed.predict(fold.test.X), expected.predict(fold.test.X))


def test_a_checkpoint_of_lightgbm_is_rejected(fold, monkeypatch, tmp_path):
    pytest.importorskip("lightgbm")
    fit(MODELS["LambdaMART"], fold.train, checkpoint=tmp_path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ValueError, match="version of LightGBM"):
        fit(MODELS["LambdaMART"], fold.train, checkpoint=tmp_path)


def test_either_library_reads_the_trees_of_the_other(model, fold, monkeypatch, tmp_path):
    pytest.importorskip("lightgbm")
    X = np.vstack([fold.test.X, np.zeros((1, 5)), np.full((1, 5), 1e-40), np.full((1, 5), -1e-40)])
    fit(model, fold.train).save(tmp_path / "theirs")
    theirs = load_model(tmp_path / "theirs")
    expected = theirs.predict(X)
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "lightgbm", None)
        read = load_model(tmp_path / "theirs")
        assert read.predict(X) == pytest.approx(expected, rel=1e-12)
        assert read.feature_importances_ == pytest.approx(theirs.feature_importances_, rel=1e-4)  # gains have six digits
        ours = fit(model, fold.train)
        ours.save(tmp_path / "ours")
        expected = ours.predict(X)
    read = load_model(tmp_path / "ours")
    assert read.predict(X) == pytest.approx(expected, rel=1e-12)
    assert read.feature_importances_ == pytest.approx(ours.feature_importances_, rel=1e-4)


def test_exports_hold_the_same_trees(model, fold, hidden, tmp_path):
    trained = fit(model, fold.train)
    assert forest_of(trained).predict(fold.test.X) == pytest.approx(trained.predict(fold.test.X), rel=1e-12)
    if len(trained.trees_) == 1:
        trained.to_lightgbm(tmp_path / "m.txt")
        assert (tmp_path / "m.txt").read_text() == trained.trees_[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("decision_type=2", "decision_type=3"),
        ("decision_type=2", "decision_type=6"),
        ("is_linear=0", "is_linear=1"),
        ("label_index=0\n", "label_index=0\nobjective=cross_entropy\n"),
        ("label_index=0\n", "label_index=0\naverage_output\n"),
    ],
)
def test_trees_of_other_kinds_need_lightgbm(old, new, fold, hidden):
    trained = fit(MODELS["LambdaMART"], fold.train)
    text = trained.trees_[0]
    assert old in text
    with pytest.raises(ImportError, match=r"need LightGBM: pip install structrank\[trees\]"):
        Booster(model_str=text.replace(old, new))


def test_scores_that_overflow_and_features_that_do_not_vary_are_rejected(fold, hidden):
    with pytest.raises(ValueError, match=r"learning_rate=1e\+308 is too large: the scores overflowed"):
        fit(LambdaMART(learning_rate=1e308), fold.train)
    with pytest.raises(ValueError, match="X has no feature that could split"):
        fit(LambdaMART(), fold.train, np.ones_like(fold.train.X))
    with pytest.warns(StructRankWarning, match="No tree could be grown"):
        assert fit(LambdaMART(min_child_weight=1e9), fold.train).n_iter_ == 0


def test_the_default_table_has_all_its_rows_and_notes_who_grew_the_trees(fold, hidden):
    assert {"McRank", "MAP, trees"} < default_trainers().keys()
    table = compare({"made": fold}, ["NDCG", "McRank"], "ndcg@10", Cs=[1.0])
    assert table.trainers == ["NDCG", "McRank"]
    assert str(table).count("The trees are scikit-learn's (DecisionTreeRegressor)") == 1
    assert [name for name, *_ in table.notes] == ["McRank"]


def test_cells_of_either_library_are_told_apart(monkeypatch):
    pytest.importorskip("lightgbm")
    rows = [Row("McRank", McRank()), Row("LambdaMART", LambdaMART())]
    with_it = [row.fingerprint() for row in rows]
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert all(row.fingerprint() != before for row, before in zip(rows, with_it, strict=True))
