"""The data preparation of the KDD 2008 paper, against pair-by-pair checks."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

from structrank import datasets
from structrank.datasets import cleaning
from structrank.datasets.cleaning import (
    NearDuplicateDropper,
    PerQueryScaler,
    ZeroVectorDropper,
    drop_near_duplicates,
    drop_zero_vectors,
    scale_per_query,
)

SHARED = Path(os.environ.get("STRUCTRANK_DATA") or Path(__file__).parents[2] / "shared" / "data")
WEBIS = SHARED / "webis-clueweb09"

STEPS = [drop_zero_vectors, drop_near_duplicates, scale_per_query]


@st.composite
def ranking_data(draw, low=0):
    """Draw small integers, so that zero, equal and parallel vectors are common; rows of a query in any order."""
    n_docs, n_features = draw(st.integers(1, 14)), draw(st.integers(1, 4))
    value = st.integers(low, 2).map(float)
    X = draw(st.lists(st.lists(value, min_size=n_features, max_size=n_features), min_size=n_docs, max_size=n_docs))
    y = draw(st.lists(st.integers(0, 2), min_size=n_docs, max_size=n_docs))
    qid = draw(st.lists(st.integers(0, 2), min_size=n_docs, max_size=n_docs))
    return np.array(X), np.array(y), np.array(qid)


def cosine(a, b):
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / norm if norm else 0.0


@settings(deadline=None)
@given(ranking_data(low=-1))
def test_exactly_the_zero_vectors_are_dropped(data):
    X, y, qid = data
    kept = [row for row in range(len(y)) if any(X[row])]
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        got, labels, ids, removed = drop_zero_vectors(matrix, y, qid)
        assert removed.kept.tolist() == kept
        assert np.array_equal(got if matrix is X else got.toarray(), X[kept])
        assert np.array_equal(labels, y[kept])
        assert np.array_equal(ids, qid[kept])
        gone = np.setdiff1d(np.arange(len(y)), kept)
        assert (removed.good, removed.bad) == (np.sum(y[gone] >= 1), np.sum(y[gone] < 1))
        assert removed.queries == len(set(qid)) - len(set(qid[kept]))


def test_explicit_zeros_of_sparse_matrices_count_as_zeros():
    X = scipy.sparse.csr_matrix(([0.0, 1.0], ([0, 1], [0, 1])), shape=(3, 2))
    assert drop_zero_vectors(X, [0, 1, 0], [1, 1, 1])[3].kept.tolist() == [1]


@settings(deadline=None)
@given(data=ranking_data(low=-1), threshold=st.sampled_from([0.5, 0.8, 0.99]), relevant_from=st.sampled_from([1, 2]))
def test_both_documents_of_a_near_duplicate_pair_of_different_relevance_are_dropped(data, threshold, relevant_from):
    X, y, qid = data
    close = [abs(cosine(a, b) - threshold) < 1e-9 for a in X for b in X]
    if any(close):
        return  # rounding decides at the threshold
    gone = {
        row
        for g in range(len(y))
        for b in range(len(y))
        if qid[g] == qid[b] and y[g] >= relevant_from > y[b] and cosine(X[g], X[b]) > threshold
        for row in (g, b)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "_BLOCK", 2)
        for matrix in (X, scipy.sparse.csr_matrix(X), np.float32(X)):
            got, labels, ids, removed = drop_near_duplicates(matrix, y, qid, threshold=threshold, relevant_from=relevant_from)
            assert set(range(len(y))) - set(removed.kept) == gone
            assert removed.documents == len(gone)
            assert got.shape[0] == len(labels) == len(ids) == len(removed.kept)
            assert got.dtype == matrix.dtype


def test_equal_vectors_of_one_label_or_of_two_queries_are_kept():
    X = [[1.0, 2.0]] * 4
    assert drop_near_duplicates(X, [1, 1, 0, 0], [1, 1, 2, 2])[3].documents == 0
    assert drop_near_duplicates(X, [1, 1, 0, 0], [1, 1, 1, 2])[3].kept.tolist() == [3]


def test_queries_left_without_both_kinds_of_documents_are_counted():
    X, y, qid = [[1, 0], [1, 0], [0, 1], [1, 0], [2, 0]], [1, 0, 0, 1, 0], [1, 1, 1, 2, 2]
    removed = drop_near_duplicates(X, y, qid)[3]
    assert (removed.good, removed.bad, removed.queries, removed.one_sided) == (2, 2, 1, 1)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_cosines_do_not_overflow(scale):
    X = np.array([[1.0, 2.0], [2.0, 4.0], [2.0, -1.0]]) * scale
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        assert drop_near_duplicates(matrix, [1, 0, 0], [1, 1, 1])[3].kept.tolist() == [2]


def test_a_query_of_ten_thousand_documents_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 20)), np.arange(10_000) % 2
    X[2001] = 3 * X[4000]
    tracemalloc.start()
    removed = drop_near_duplicates(X, y, np.zeros(10_000))[3]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(set(range(10_000)) - set(removed.kept)) == [2001, 4000]
    assert peak < 50e6  # 5,000 x 5,000 doubles are 200 MB


@settings(deadline=None)
@given(ranking_data())
def test_each_query_is_scaled_by_its_own_minima_and_maxima(data):
    X, y, qid = data
    expected, constant = np.zeros_like(X), 0
    for query in set(qid):
        for j in range(X.shape[1]):
            column = X[qid == query, j]
            if column.min() < column.max():
                expected[qid == query, j] = (column - column.min()) / (column.max() - column.min())
            elif column[0] != 0:
                constant += 1
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        before = matrix.copy()
        got, labels, ids, scaled = scale_per_query(matrix, y, qid)
        assert np.array_equal(got if matrix is X else got.toarray(), expected)
        assert scaled.constant == constant
        assert np.array_equal(labels, y)
        assert np.array_equal(ids, qid)
        assert abs(matrix - before).max() == 0


def test_negative_values_are_scaled_if_dense_and_rejected_if_sparse():
    X = np.array([[-1.0, -1.0], [0.0, -3.0]])
    assert scale_per_query(X, [0, 1], [1, 1])[0].tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match=r"column 0 has negative values in query 1 .*X.toarray\(\)"):
        scale_per_query(scipy.sparse.csr_matrix(X), [0, 1], [1, 1])


@pytest.mark.parametrize("step", STEPS)
def test_inputs_are_not_changed_and_types_are_kept(step):
    X, y, qid = np.float32([[1, 2], [2, 4.1], [0, 0], [3, 1]]), [1, 0, 0, 1], np.array(["a", "a", "b", "b"])
    before = X.copy()
    got, _, ids, _ = step(X, y, qid)
    assert np.array_equal(X, before)
    assert got.dtype == np.float32
    assert ids.dtype == qid.dtype


@pytest.mark.parametrize("step", STEPS)
def test_invalid_input_is_rejected(step):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        step([[1.0], [2.0]], [1, 0], [1])
    with pytest.raises(ValueError, match="NaN"):
        step([[np.nan], [2.0]], [1, 0], [1, 1])


def test_a_threshold_that_is_not_a_cosine_is_rejected():
    with pytest.raises(ValueError, match=r"threshold=1.5 is not valid"):
        drop_near_duplicates([[1.0]], [1], [1], threshold=1.5)


# scikit-learn estimators


def test_droppers_equal_the_functions():
    X, y, qid = [[1, 2], [2, 4], [0, 0], [3, 0]], [1, 0, 0, 1], [7, 7, 7, 7]
    for dropper, function in ((ZeroVectorDropper(), drop_zero_vectors), (NearDuplicateDropper(), drop_near_duplicates)):
        got, expected = clone(dropper).fit_resample(X, y, qid=qid), function(X, y, qid)
        assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=False))
    dropper = NearDuplicateDropper(threshold=0.5, relevant_from=2).fit_resample
    assert dropper(X, y, qid)[1].tolist() == y


class QueryMean(BaseEstimator):
    """A final step that stores its input."""

    def fit(self, X, y):
        self.X_ = X
        return self

    def predict(self, X):
        return X.sum(axis=1)


def test_the_scaler_receives_qid_inside_a_pipeline():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(30, 4)), rng.integers(0, 2, 30), rng.integers(0, 5, 30)
    expected = scale_per_query(X, y, qid)[0]
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(PerQueryScaler(), QueryMean())
        pipeline.fit(X, y, qid=qid)
        assert np.array_equal(pipeline[-1].X_, expected)
        assert np.array_equal(pipeline.predict(X, qid=qid), expected.sum(axis=1))


def test_the_scaler_transforms_with_qid_and_rejects_other_input():
    X, qid = np.array([[2.0, 5.0], [4.0, 5.0], [3.0, 5.0]]), [1, 1, 2]
    scaler = PerQueryScaler().fit(X)
    assert scaler.n_features_in_ == 2
    assert scaler.transform(X, qid=qid).tolist() == [[0, 0], [1, 0], [0, 0]]
    assert scaler.scaled_.constant == 3
    with pytest.raises(ValueError, match="qid is missing"):
        scaler.transform(X)
    with pytest.raises(ValueError, match="X has 1 features"):
        scaler.transform(X[:, :1], qid=qid)


@pytest.mark.skipif(not WEBIS.is_dir(), reason=f"{WEBIS} is not there; STRUCTRANK_DATA may name its folder")
def test_webis_after_cleaning_has_no_near_duplicates_of_different_relevance():
    d = datasets.load_letor(WEBIS)
    X, y, qid, zeros = drop_zero_vectors(d.X, d.y, d.qid)
    X, y, qid, duplicates = drop_near_duplicates(X, y, qid)
    assert (zeros.good, zeros.bad) == (4, 11)
    assert (duplicates.good, duplicates.bad) == (2797, 4687)
    assert len(y) == len(d) - zeros.documents - duplicates.documents
    assert drop_near_duplicates(X, y, qid)[3].documents == 0
    names = d.docid[zeros.kept][duplicates.kept]
    assert len(names) == len(y)
    scaled = scale_per_query(X, y, qid)[0]
    assert scaled.min() == 0
    assert scaled.max() == 1


def test_the_scaler_keeps_column_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"bm25": [2.0, 4.0], "age": [5.0, 7.0]})
    scaler = cleaning.PerQueryScaler().set_output(transform="pandas")
    assert scaler.fit(frame).transform(frame, qid=[1, 1]).columns.tolist() == ["bm25", "age"]
    assert scaler.__sklearn_tags__().input_tags.sparse
