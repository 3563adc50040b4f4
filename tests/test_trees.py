"""The wrappers of LightGBM and XGBoost: equal to the libraries, for queries in any order."""

import pickle
import sys
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xgboost
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ndcg_score

from structrank import compare, datasets, load_model, metrics
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models.ranker import Ranker

SMALL = {"n_estimators": 8, "max_depth": 3}
both = pytest.mark.parametrize("cls", [LightGBMRanker, XGBoostRanker])


@pytest.fixture(scope="module")
def graded():
    return datasets.make_ranking(n_queries=60, n_docs=(8, 20), n_features=5, n_grades=4, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def mixed(graded):
    """The training part in random row order, with ids whose sort order differs from their first appearance."""
    order = np.random.default_rng(1).permutation(len(graded.train))
    ids = np.array([f"q{7919 * query % 1000}" for query in graded.train.qid])
    return graded.train.X[order], graded.train.y[order], ids[order]


def sorted_by_query(X, y, qid):
    """Return rows and query numbers, grouped by query in order of first appearance."""
    number = {name: place for place, name in enumerate(dict.fromkeys(qid.tolist()))}
    queries = np.array([number[name] for name in qid.tolist()])
    order = np.argsort(queries, kind="stable")
    return X[order], y[order].astype(int), queries[order]


def test_lightgbm_scores_equal_the_library(graded, mixed):
    X, y, queries = sorted_by_query(*mixed)
    theirs = lightgbm.LGBMRanker(**SMALL, n_jobs=1, verbose=-1, random_state=0)
    theirs.fit(X, y, group=np.bincount(queries))
    ours = LightGBMRanker(**SMALL).fit(*mixed[:2], qid=mixed[2])
    np.testing.assert_allclose(ours.predict(graded.test.X), theirs.predict(graded.test.X), rtol=1e-9)
    again = lightgbm.Booster(model_str=ours.model_text_)
    np.testing.assert_array_equal(ours.predict(graded.test.X), again.predict(graded.test.X))


def test_xgboost_scores_equal_the_library(graded, mixed):
    X, y, queries = sorted_by_query(*mixed)
    theirs = xgboost.XGBRanker(**SMALL, n_jobs=1, random_state=0).fit(X, y, qid=queries)
    ours = XGBoostRanker(**SMALL).fit(*mixed[:2], qid=mixed[2])
    np.testing.assert_allclose(ours.predict(graded.test.X), theirs.predict(graded.test.X), rtol=1e-6)
    again = xgboost.Booster(model_file=bytearray(ours.model_text_.encode()))
    np.testing.assert_array_equal(ours.predict(graded.test.X), again.predict(xgboost.DMatrix(graded.test.X)))


@both
@pytest.mark.parametrize("relevant_from", [None, 2])
def test_score_is_the_ndcg_that_is_monitored(cls, relevant_from, graded):
    train, test = graded.train, graded.test
    model = cls(**SMALL, relevant_from=relevant_from).fit(train.X, train.y, qid=train.qid)
    gains, scores = 2**test.y - 1 if relevant_from is None else (test.y >= relevant_from) * 1.0, model.predict(test.X)
    queries = [test.qid == query for query in np.unique(test.qid)]
    values = [ndcg_score([gains[rows]], [scores[rows]], k=10) for rows in queries if gains[rows].any()]
    assert model.score(test.X, test.y, qid=test.qid) == pytest.approx(np.mean(values))


@both
def test_relevant_documents_score_higher_and_ranks_follow_scores(cls, graded):
    train, test = graded.train, graded.test
    model = cls(**SMALL).fit(train.X, train.y, qid=train.qid)
    assert isinstance(model, Ranker)
    scores = model.predict(test.X)
    assert scores.dtype == np.float64
    order = np.argsort(-scores[test.qid == test.qid[0]], kind="stable")
    ranks = model.rank(test.X, qid=test.qid)[test.qid == test.qid[0]]
    np.testing.assert_array_equal(np.argsort(ranks), order)
    assert scores[test.y >= 2].mean() > scores[test.y == 0].mean() + 0.1


@both
def test_repeated_fits_are_bit_identical(cls, mixed):
    X, y, qid = mixed
    assert len({cls(**SMALL).fit(X, y, qid=qid).predict(X).tobytes() for _ in range(3)}) == 1


def test_lightgbm_models_are_bit_identical_for_any_n_jobs(mixed):
    X, y, qid = mixed
    models = [LightGBMRanker(**SMALL, n_jobs=n_jobs).fit(X, y, qid=qid) for n_jobs in (None, 1, 2)]
    assert len({model.predict(X).tobytes() for model in models}) == 1


@both
def test_sparse_matrices_and_frames_give_the_same_scores(cls, graded):
    X = np.where(graded.train.X > 0, graded.train.X, 0.0)
    y, qid = graded.train.y, graded.train.qid
    dense = cls(**SMALL).fit(X, y, qid=qid).predict(X)
    sparse = scipy.sparse.csr_matrix(X)
    np.testing.assert_array_equal(cls(**SMALL).fit(sparse, y, qid=qid).predict(sparse), dense)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = cls(**SMALL).fit(frame, y, qid=qid)
    np.testing.assert_array_equal(model.predict(frame), dense)
    assert model.feature_names_in_.tolist() == list("abcde")


@both
def test_relevant_from_makes_labels_binary(cls, graded):
    train = graded.train
    by_label = cls(**SMALL, relevant_from=2).fit(train.X, train.y, qid=train.qid)
    by_hand = cls(**SMALL).fit(train.X, (train.y >= 2).astype(int), qid=train.qid)
    np.testing.assert_array_equal(by_label.predict(train.X), by_hand.predict(train.X))
    halves = cls(**SMALL, relevant_from=1.0).fit(train.X, train.y / 2, qid=train.qid)
    np.testing.assert_array_equal(halves.predict(train.X), by_hand.predict(train.X))


@both
def test_parameters_are_passed_on_cloned_and_shown(cls):
    model = cls(n_estimators=7, learning_rate=0.5)
    assert model.get_params()["n_estimators"] == 7
    copied = clone(model).set_params(n_estimators=3, relevant_from=2, max_depth=2)
    assert (copied.get_params()["n_estimators"], copied.relevant_from) == (3, 2)
    assert model.get_params()["n_estimators"] == 7, "the clone is independent"
    assert repr(model) == f"{cls.__name__}(learning_rate=0.5, n_estimators=7)"
    fold = datasets.make_ranking(n_queries=20, n_docs=30, n_features=3, noise=0.2, random_state=0).train
    few, many = (cls(n_estimators=n).fit(fold.X, fold.y, qid=fold.qid) for n in (2, 20))
    assert len(few.model_text_) < len(many.model_text_) / 3


@both
def test_models_are_saved_as_text_and_predict_the_same(cls, graded, tmp_path):
    train, test = graded.train, graded.test
    model = cls(**SMALL, relevant_from=2).fit(train.X, train.y, qid=train.qid)
    model.save(tmp_path / "trees.structrank")
    loaded = load_model(tmp_path / "trees.structrank")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(test.X), model.predict(test.X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(test.X), model.predict(test.X))


@both
def test_refitting_replaces_the_earlier_trees(cls, graded):
    train = graded.train
    model = cls(**SMALL).fit(train.X, train.y, qid=train.qid)
    before = model.predict(train.X)
    after = model.fit(-train.X, train.y, qid=train.qid).predict(train.X)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, cls(**SMALL).fit(-train.X, train.y, qid=train.qid).predict(train.X))


def test_trees_can_be_compared_in_the_table(graded, tmp_path):
    trainers = {"LightGBM": LightGBMRanker(**SMALL), "XGBoost": XGBoostRanker(**SMALL, n_jobs=2)}
    table = compare({"made": graded}, trainers, "ndcg@10", results=tmp_path)
    for name, trainer in trainers.items():
        model = clone(trainer)
        model.fit(graded.train.X, graded.train.y, qid=graded.train.qid, validation=graded.validation)
        (cell,) = (cell for cell in table.cells if cell.trainer == name)
        np.testing.assert_array_equal(cell.scores, model.predict(graded.test.X))
        assert (cell.C, cell.notes) == (None, ())
        assert not hasattr(trainer, "model_text_"), "trainers themselves are not trained"
    files = {path.name for path in tmp_path.iterdir()}
    again = {"LightGBM": LightGBMRanker(**SMALL, n_jobs=2), "XGBoost": XGBoostRanker(**SMALL)}
    compare({"made": graded}, again, "ndcg@10", results=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == files, "stored cells do not depend on n_jobs"


@both
def test_a_missing_library_is_reported_before_training(cls, graded, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, cls._library[1], None)
    wanted = rf"{cls.__name__} needs {cls._library[0]}: pip install structrank\[trees\]"
    with pytest.raises(ImportError, match=wanted):
        cls().fit(graded.train.X, graded.train.y, qid=graded.train.qid)
    with pytest.raises(ImportError, match=wanted):
        compare({"made": graded}, {"AUC": Refusing(), "trees": cls()}, results=tmp_path / "cells")
    assert not (tmp_path / "cells").exists()


class Refusing:
    def fit(self, X, y, qid):
        raise AssertionError("nothing should be trained")

    def predict(self, X):
        raise AssertionError("nothing should be trained")


@both
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"relevant_from": "x"}, "relevant_from='x' is not valid"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid: expected None"),
        ({"n_jobs": 1.5}, r"n_jobs=1\.5 is not valid"),
        ({"random_state": None}, "random_state=None is not valid"),
        ({"learning_rate": "fast"}, "failed to train: "),
        ({"n_estimators": "many"}, "failed to train: "),
    ],
)
def test_invalid_parameters_are_rejected(cls, parameters, message, graded):
    with pytest.raises(ValueError, match=message):
        cls(**parameters).fit(graded.train.X, graded.train.y, qid=graded.train.qid)


@both
def test_invalid_grades_are_rejected_before_training(cls, graded):
    train = graded.train
    for wrong in (0.5, 31.0):
        y = train.y.astype(float)
        y[3] = wrong
        wanted = rf"y contains {wrong:g} at row 3 \(1 such label.*integers from 0 to 30.*relevant_from"
        with pytest.raises(ValueError, match=wanted):
            cls().fit(train.X, y, qid=train.qid)
        fold = datasets.Fold(datasets.Dataset(train.X, y, train.qid), None, graded.test)
        with pytest.raises(ValueError, match=rf"'made', fold 1 of 1, train part, trainer 'trees': {wanted}"):
            compare({"made": fold}, {"AUC": Refusing(), "trees": cls()})


@both
def test_invalid_input_is_rejected(cls, graded):
    train = graded.train
    with pytest.raises(NotFittedError):
        cls().predict(train.X)
    with pytest.raises(ValueError, match="y has 3 entries"):
        cls().fit(train.X, train.y[:3], qid=train.qid)
    with pytest.raises(ValueError, match="contains NaN at row 0, column 1"):
        cls().fit(np.where(np.arange(5) == 1, np.nan, train.X), train.y, qid=train.qid)
    model = cls(**SMALL).fit(train.X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match=rf"X has 4 features, but {cls.__name__} is expecting 5"):
        model.predict(train.X[:, :4])
    with pytest.raises(ValueError, match="contains inf at row 0"):
        model.predict(np.full((1, 5), np.inf))


@both
def test_training_prints_nothing_and_does_not_warn(cls, graded, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(n_estimators=50).fit(graded.train.X[:40], graded.train.y[:40], qid=graded.train.qid[:40])
        model.predict(graded.test.X)
    assert capfd.readouterr() == ("", "")


@both
def test_big_endian_input_gives_the_same_model(cls, graded):
    part = graded.train
    model = cls(n_estimators=5).fit(part.X, part.y, qid=part.qid)
    swapped = part.X.astype(">f8")
    np.testing.assert_array_equal(model.predict(swapped), model.predict(part.X))
    np.testing.assert_array_equal(cls(n_estimators=5).fit(swapped, part.y, qid=part.qid).predict(part.X), model.predict(part.X))


def test_numbers_too_large_for_xgboost_are_reported(graded):
    part = graded.train
    model = XGBoostRanker(n_estimators=2).fit(part.X, part.y, qid=part.qid)
    X = np.array(part.X)
    X[3, 1] = 1e39
    with pytest.raises(ValueError, match=r"X has 1e\+39 in column 1; XGBoost computes in float32"):
        model.predict(X)


@both
def test_queries_of_weight_0_are_ignored(cls, graded):
    part = graded.train
    weight = np.where(np.isin(part.qid, np.unique(part.qid)[:4]), 0.0, 3.0)
    some = weight > 0
    whole = cls(n_estimators=5).fit(part.X, part.y, qid=part.qid, sample_weight=weight)
    rest = cls(n_estimators=5).fit(part.X[some], part.y[some], qid=part.qid[some])
    np.testing.assert_array_equal(whole.predict(part.X), rest.predict(part.X))


@both
def test_trees_after_the_best_round_on_validation_queries_are_dropped(cls):
    fold = datasets.make_ranking(n_queries=60, n_docs=12, n_features=6, noise=1.5, random_state=0)
    train, other = fold.train, fold.validation
    chosen = cls(n_estimators=30).fit(train.X, train.y, qid=train.qid, validation=other)
    by_rounds = [cls(n_estimators=n).fit(train.X, train.y, qid=train.qid) for n in range(1, 31)]
    reached = [
        metrics.evaluate(other.y, one.predict(other.X), other.qid, "ndcg@10", ties="stable")["ndcg@10"] for one in by_rounds
    ]
    same = [number for number, one in enumerate(by_rounds) if np.array_equal(one.predict(other.X), chosen.predict(other.X))]
    assert len(same) == 1  # it is one of them,
    assert reached[same[0]] == pytest.approx(max(reached), abs=0.02)  # the best, but for ties
    assert same[0] < 29
