"""Cross-validation: no query is split, and models are evaluated on held-out queries only."""

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structrank import StructRankSVM, cross_validate, datasets, metrics


class Witness(BaseEstimator):
    """Records the queries it was trained on, and scores documents by their first feature."""

    def fit(self, X, y, qid=None):
        self.seen_ = set(np.asarray(X)[:, 1].tolist())
        return self

    def predict(self, X):
        assert not self.seen_ & set(np.asarray(X)[:, 1].tolist())
        return np.asarray(X)[:, 0]


def witnessed(n_queries, rng):
    """Make documents in random order, with ids of mixed types, whose second feature is the number of the query."""
    query = rng.permutation(np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries)))
    X = np.column_stack([rng.normal(size=query.size), query])
    ids = [int(q) if q % 2 else f"query {q}" for q in query]
    return X, rng.integers(0, 3, query.size), ids, query


@pytest.mark.parametrize("n_splits", [2, 5, 23])
def test_no_query_is_split(n_splits, rng):
    X, y, qid, query = witnessed(23, rng)
    found = cross_validate(Witness(), X, y, qid, "ndcg", n_splits=n_splits)
    held_out = [set(query.tolist()) - {int(q) for q in model.seen_} for model in found.models]
    assert len(found.models) == n_splits
    assert set.union(*held_out) == set(range(23))
    assert sum(map(len, held_out)) == 23  # each query in one fold
    number = {q: place for place, q in enumerate(dict.fromkeys(query.tolist()))}
    for fold, queries in enumerate(held_out):
        assert {found.folds[number[q]] for q in queries} == {fold}
    assert np.array_equal(found.scores, X[:, 0])
    expected = metrics.evaluate(y, X[:, 0], qid, "ndcg", per_query=True)["ndcg"]
    assert np.array_equal(found.per_query["ndcg"], expected, equal_nan=True)
    assert found.means["ndcg"] == pytest.approx(np.nanmean(expected))


def test_cross_validation_equals_a_loop_over_folds(train):
    model = StructRankSVM("map", C=10.0)
    found = cross_validate(model, train.X, train.y, train.qid, ["map", "mrr@3"], n_splits=4)
    fold_of_row = found.folds[np.unique(train.qid, return_inverse=True)[1]]  # ids are in ascending order
    for fold in range(4):
        learn, check = fold_of_row != fold, fold_of_row == fold
        by_hand = StructRankSVM("map", C=10.0).fit(train.X[learn], train.y[learn], qid=train.qid[learn])
        assert np.array_equal(found.models[fold].coef_, by_hand.coef_)
        assert np.array_equal(found.scores[check], by_hand.predict(train.X[check]))
        reached = metrics.evaluate(train.y[check], by_hand.predict(train.X[check]), train.qid[check], ["map", "mrr@3"])
        assert found.to_frame().loc[fold].to_dict() == pytest.approx(dict(reached))
    values = found.per_query["map"]
    defined = values[~np.isnan(values)]
    assert found.standard_errors["map"] == pytest.approx(pd.Series(defined).sem())
    assert not hasattr(model, "coef_")


def test_folds_are_reproducible_by_seed(train):
    def run(seed):
        return cross_validate(StructRankSVM("auc"), train.X, train.y, train.qid, "auc", n_splits=3, random_state=seed)

    first, again, other = run(0), run(0), run(1)
    assert np.array_equal(first.folds, again.folds)
    assert np.array_equal(first.scores, again.scores)
    assert not np.array_equal(first.folds, other.folds)


def test_containers_agree_and_frames_keep_their_names(train):
    def run(X):
        return cross_validate(StructRankSVM("auc"), X, train.y, train.qid, "auc", n_splits=2)

    expected = run(train.X).scores
    frame = pd.DataFrame(train.X, columns=list("abcdef"), index=np.arange(len(train.y))[::-1])
    found = run(frame)
    assert found.models[0].feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(found.scores, expected)
    assert np.array_equal(run(polars.DataFrame(train.X)).scores, expected)
    assert np.array_equal(run(train.X.tolist()).scores, expected)


def test_sparse_matrices_stay_sparse(train):
    class RowSum(BaseEstimator):
        def fit(self, X, y, qid=None):
            assert scipy.sparse.issparse(X)
            return self

        def predict(self, X):
            return np.asarray(X.sum(axis=1)).ravel()

    found = cross_validate(RowSum(), scipy.sparse.csc_matrix(train.X), train.y, train.qid, "auc", n_splits=3)
    assert found.scores == pytest.approx(train.X.sum(axis=1))


def test_pipeline_steps_that_request_qid_receive_it(train):
    scaled = datasets.scale_per_query(train).X
    expected = cross_validate(StructRankSVM("map"), scaled, train.y, train.qid, "map", n_splits=3)
    pipeline = make_pipeline(datasets.PerQueryScaler(), StructRankSVM("map"))
    found = cross_validate(pipeline, train.X, train.y, train.qid, "map", n_splits=3)
    assert np.array_equal(found.scores, expected.scores)
    plain = cross_validate(make_pipeline(StandardScaler(), StructRankSVM("map")), train.X, train.y, train.qid, n_splits=3)
    means = {model[0].mean_[0] for model in plain.models}
    assert len(means) == 3  # each scaler is fitted on its own training part
    assert set(plain.means) == {"map", "ndcg@10"}


def test_only_the_progress_line_is_printed(train, capsys):
    cross_validate(StructRankSVM("auc"), train.X, train.y, train.qid, "auc", n_splits=2)
    assert capsys.readouterr() == ("", "")
    found = cross_validate(StructRankSVM("auc"), train.X, train.y, train.qid, "auc", n_splits=2, verbose=1)
    assert capsys.readouterr() == ("", f"{found!r}\n")
    assert repr(found).startswith(f"CrossValidation(2 folds, {len(set(train.qid))} queries: auc 0.")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_splits": 1}, "n_splits=1 is not valid"),
        ({"n_splits": 4}, "n_splits=4 but there are 3 queries"),
        ({"qid": None}, "qid is missing"),
        ({"qid": 0}, "n_splits=2 but there are 1 queries"),
        ({"qid": [0, 1]}, "qid has 2 entries but X has 6 rows"),
        ({"y": [0, 1, 0, 1, 0, -1]}, "y contains -1 at row 5"),
        ({"y": [0, 1, 0, 1, 0, 2000], "measures": "ndcg"}, "takes labels up to 1000"),
        ({"measures": []}, "measures is empty"),
        ({"measures": "best"}, "best"),
        ({"random_state": None}, "random_state=None is not valid"),
        ({"model": "map"}, "model='map' is not valid"),
        ({"X": np.full((6, 2), np.nan)}, "NaN at row 0"),
    ],
)
def test_invalid_arguments_are_rejected_before_training(changed, message):
    class Untrained(Witness):
        def fit(self, X, y, qid=None):
            raise AssertionError("trained")

    arguments = {
        "model": Untrained(),
        "X": np.ones((6, 2)),
        "y": [0, 1] * 3,
        "qid": [1, 1, 2, 2, 3, 3],
        "measures": "map",
        "n_splits": 2,
    }
    with pytest.raises(ValueError, match=message):
        cross_validate(**{**arguments, **changed})


def test_an_interrupted_fold_interrupts_cross_validation(train):
    class Interrupted(Witness):
        stop_reason_ = "interrupted"

    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), Interrupted().set_fit_request(qid=True))
    for model in (Interrupted(), pipeline):
        with pytest.raises(KeyboardInterrupt):
            cross_validate(model, train.X, train.y, train.qid)
