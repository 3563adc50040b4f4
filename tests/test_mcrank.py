"""McRank: expected grades from LightGBM's probabilities, plain and ordinal."""

import numpy as np
import pytest
import scipy.sparse

from structrank import datasets, load_model, metrics
from structrank.learners import McRank

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")

BOTH = pytest.mark.parametrize("classification", ["plain", "ordinal"])


@pytest.fixture(scope="module")
def fold():
    made = datasets.make_ranking(
        n_queries=80, n_docs=(5, 20), n_features=5, n_grades=4, noise=0.3, relevant_share=0.4, random_state=0
    )
    assert set(made.train.y) == {0, 1, 2, 3}
    return made


def fit(part, *arguments, validation=None, callback=None, **parameters):
    model = McRank(*arguments, **{"n_estimators": 10, **parameters})
    return model.fit(part.X, part.y, qid=part.qid, validation=validation, callback=callback)


@BOTH
def test_scores_order_unseen_documents_well(classification, fold):
    model = fit(fold.train, classification, n_estimators=30)
    reached = model.score(fold.test.X, fold.test.y, qid=fold.test.qid)
    chance = metrics.evaluate(fold.test.y, np.zeros(len(fold.test.y)), fold.test.qid, "ndcg@10")["ndcg@10"]
    assert reached > chance + 0.15
    scores = model.predict(fold.test.X)
    assert scores.min() >= 0
    assert scores.max() <= 3


def settings():
    return {"n_estimators": 10, "n_jobs": 1, "verbose": -1, "deterministic": True, "force_row_wise": True}


def test_plain_scores_are_expected_grades_of_lightgbms_classifier(fold):
    grades = fold.train.y * 2.5  # grades need not be integers
    model = McRank(n_estimators=10).fit(fold.train.X, grades, qid=fold.train.qid)
    classifier = lightgbm.LGBMClassifier(**settings()).fit(fold.train.X, fold.train.y)
    expected = classifier.predict_proba(fold.test.X) @ (2.5 * classifier.classes_)
    assert model.grades_.tolist() == [0.0, 2.5, 5.0, 7.5]
    assert model.predict(fold.test.X) == pytest.approx(expected, abs=1e-9)


def test_ordinal_scores_are_expected_grades_of_lightgbms_thresholds(fold):
    values = np.array([0.0, 1.0, 4.0, 5.0])
    model = McRank("ordinal", n_estimators=10).fit(fold.train.X, values[fold.train.y], qid=fold.train.qid)
    above = [
        lightgbm.LGBMClassifier(**settings()).fit(fold.train.X, fold.train.y >= k).predict_proba(fold.test.X)[:, 1]
        for k in (1, 2, 3)
    ]
    at_least = np.stack([np.ones(len(fold.test.y)), *above, np.zeros(len(fold.test.y))])
    assert model.predict(fold.test.X) == pytest.approx(values @ -np.diff(at_least, axis=0), abs=1e-9)


@BOTH
def test_validation_keeps_the_rounds_up_to_the_best_and_patience_stops(classification, fold):
    model = fit(fold.train, classification, n_estimators=200, patience=4, validation=fold.validation, learning_rate=0.3)
    followed = model.history_.to_frame()["validation"]
    assert model.stop_reason_ == "patience"
    assert model.n_iter_ == model.best_round_ + 4 < 200
    assert followed.idxmax() == model.best_round_
    part = fold.validation
    assert model.score(part.X, part.y, qid=part.qid) == pytest.approx(followed.max(), abs=1e-12)


@BOTH
def test_loaded_models_threads_and_sparse_input_give_the_same_scores(classification, fold, tmp_path):
    model = fit(fold.train, classification, subsample=0.8)
    model.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    expected = model.predict(fold.test.X)
    assert np.array_equal(loaded.predict(fold.test.X), expected)
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(fit(fold.train, classification, subsample=0.8, n_jobs=2).predict(fold.test.X), expected)
    sparse = McRank(classification, n_estimators=10, subsample=0.8)
    sparse.fit(scipy.sparse.csr_matrix(fold.train.X), fold.train.y, qid=fold.train.qid)
    assert np.array_equal(sparse.predict(scipy.sparse.csr_matrix(fold.test.X)), expected)


@BOTH
def test_query_weights_change_the_model(classification, fold):
    part = fold.train
    weight = np.where(part.qid < np.median(part.qid), 1.0, 1e-9)
    model = McRank(classification, n_estimators=10).fit(part.X, part.y, qid=part.qid, sample_weight=weight)
    scores = model.predict(part.X)
    error = (scores - part.y) ** 2
    assert error[weight == 1].mean() < error[weight < 1].mean()
    assert not np.allclose(scores, fit(part, classification).predict(part.X))


def test_a_callback_stops_training(fold):
    assert fit(fold.train, callback=lambda entry: entry.round == 3).n_iter_ == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classification": "binary"}, "classification='binary' is not known; choose one of: 'plain', 'ordinal'"),
        ({"measure": "accuracy"}, "measure 'accuracy' is not known"),
        ({"n_estimators": 0}, "n_estimators=0 is not valid"),
        ({"colsample_bytree": 0}, "colsample_bytree=0 is not valid"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message, fold):
    with pytest.raises(ValueError, match=message):
        fit(fold.train, **parameters)


def test_too_few_or_too_many_different_labels_are_rejected(fold, rng):
    X, qid = fold.train.X, fold.train.qid
    with pytest.raises(ValueError, match=r"y has 1 different label\(s\); McRank .* accepts 2 to 64"):
        McRank().fit(X, np.ones(len(X)), qid=qid)
    with pytest.raises(ValueError, match=f"y has {len(X)} different label"):
        McRank().fit(X, rng.random(len(X)), qid=qid)
    with pytest.raises(ValueError, match="qid has 3 entries but X has"):
        McRank().fit(X, fold.train.y, qid=qid[:3])


def test_the_best_round_is_restored_if_thresholds_have_different_numbers_of_trees():
    rng = np.random.default_rng(3)
    X, qid = rng.normal(size=(120, 3)), np.repeat(np.arange(12), 10)
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=120) + 0.5), 0, 3)
    model = McRank("ordinal", n_estimators=12, min_child_samples=3, subsample=0.2, random_state=16, num_leaves=3)
    model.fit(X[:60], y[:60], qid=qid[:60], validation=(X[60:], y[60:], qid[60:]))
    reached = model.history_[model.best_round_ - 1].validation
    assert model.score(X[60:], y[60:], qid=qid[60:]) == pytest.approx(reached, abs=1e-12)


def test_errors_of_lightgbm_are_raised_with_advice(rng, monkeypatch):
    def fail(self):
        raise lightgbm.basic.LightGBMError("Check failed:\nleft_count")

    monkeypatch.setattr(lightgbm.Booster, "update", fail)
    X, qid = rng.normal(size=(120, 3)), np.repeat(np.arange(12), 10)
    with pytest.raises(ValueError, match=r"LightGBM failed .* \(Check failed: left_count\)\. Try a larger min_child_weight"):
        McRank().fit(X, rng.integers(0, 3, 120), qid=qid)
