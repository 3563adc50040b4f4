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
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from structrank import datasets
from structrank.datasets import Dataset, Fold, clean, cleaning, scale_per_query
from structrank.datasets.cleaning import PerQueryScaler, Removed, clean_part

SHARED = Path(os.environ.get("STRUCTRANK_DATA") or Path(__file__).parents[2] / "shared" / "data")
WEBIS = SHARED / "webis-clueweb09"

STEPS = [clean, scale_per_query]


def numbered(X, y, qid):
    """Make a Dataset whose document ids are row numbers, so that they tell which rows remain."""
    return Dataset(X, np.asarray(y), np.asarray(qid), np.arange(len(y)))


def kept(X, y, qid, **settings):
    return clean(numbered(X, y, qid), **settings).docid.tolist()


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


SIDES = {"irrelevant": (False,), "relevant": (True,), "both": (False, True)}


@settings(deadline=None)
@given(
    data=ranking_data(low=-1),
    threshold=st.sampled_from([0.5, 0.8, 0.99]),
    relevant_from=st.sampled_from([1, 2]),
    drop=st.sampled_from(list(SIDES)),
)
def test_zero_vectors_and_near_duplicates_and_only_they_are_dropped(data, threshold, relevant_from, drop):
    X, y, qid = data
    if any(abs(cosine(a, b) - threshold) < 1e-9 for a in X for b in X):
        return  # on the edge rounding decides
    zero = {row for row in range(len(y)) if not any(X[row])}
    alike = {
        row
        for g in range(len(y))
        for b in range(len(y))
        if qid[g] == qid[b] and y[g] >= relevant_from > y[b] and cosine(X[g], X[b]) > threshold
        for row in (g, b)
        if (y[row] >= relevant_from) in SIDES[drop]
    }
    gone = sorted(zero | alike)
    left = np.setdiff1d(np.arange(len(y)), gone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "_BLOCK", 2)
        for matrix in (X, scipy.sparse.csr_matrix(X), np.float32(X)):
            how = {"threshold": threshold, "relevant_from": relevant_from, "drop": drop}
            got, removed = clean_part(numbered(matrix, y, qid), **how)
            assert got.docid.tolist() == left.tolist()
            assert np.array_equal(got.X.toarray() if scipy.sparse.issparse(got.X) else got.X, X[left])
            assert got.X.dtype == matrix.dtype
            assert np.array_equal(got.y, y[left])
            assert np.array_equal(got.qid, qid[left])
            assert (removed.documents, removed.left, removed.zero) == (len(y), len(left), len(zero))
            assert (removed.relevant, removed.irrelevant) == (np.sum(y[gone] >= relevant_from), np.sum(y[gone] < relevant_from))
            assert removed.queries == len(set(qid)) - len(set(qid[left]))


def test_stored_zeros_are_zeros():
    X = scipy.sparse.csr_matrix(([0.0, 1.0], ([0, 1], [0, 1])), shape=(3, 2))
    assert kept(X, [0, 1, 0], [1, 1, 1]) == [1]


def test_equal_vectors_of_one_label_or_of_two_queries_are_kept():
    X = [[1.0, 2.0]] * 4
    assert kept(X, [1, 1, 0, 0], [1, 1, 2, 2], drop="both") == [0, 1, 2, 3]
    assert kept(X, [1, 1, 0, 0], [1, 1, 1, 2], drop="both") == [3]


def test_queries_left_without_both_kinds_of_documents_are_counted():
    X, y, qid = [[1, 0], [1, 0], [0, 1], [1, 0], [2, 0]], [1, 0, 0, 1, 0], [1, 1, 1, 2, 2]
    assert clean_part(numbered(X, y, qid), drop="both")[1] == Removed(5, 2, 2, zero=0, queries=1, one_sided=1)
    assert clean_part(numbered(X, y, qid))[1] == Removed(5, 0, 2, zero=0, queries=0, one_sided=1)


def test_folds_and_lists_of_folds_are_cleaned_and_scaled_part_by_part():
    rng = np.random.default_rng(0)
    parts = [
        numbered(rng.integers(0, 3, (40, 2)).astype(float), rng.integers(0, 2, 40), np.repeat(range(8), 5)) for _ in range(5)
    ]
    folds = [Fold(parts[0], None, parts[1]), Fold(*parts[2:])]
    for step in STEPS:
        got = step(folds)
        assert [type(fold) for fold in got] == [Fold, Fold]
        assert got[0].validation is None
        for one, part in zip((got[0].train, got[0].test, got[1].train, got[1].validation, got[1].test), parts, strict=True):
            expected = step(part)
            assert all(np.array_equal(getattr(one, name), getattr(expected, name)) for name in ("X", "y", "qid", "docid"))
        with pytest.raises(ValueError, match=r"data is a int; expected a Dataset"):
            step(3)


def test_names_of_columns_are_kept():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"bm25": [2.0, 4.0, 0.0], "age": [5.0, 7.0, 0.0]})
    data = Dataset(frame, np.array([1, 0, 0]), np.array([1, 1, 1]))
    assert clean(data).X.columns.tolist() == scale_per_query(data).X.columns.tolist() == ["bm25", "age"]
    assert clean(data, threshold=0.999).X.index.tolist() == [0, 1]


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_cosines_do_not_overflow(scale):
    X = np.array([[1.0, 2.0], [2.0, 4.0], [2.0, -1.0]]) * scale
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        assert kept(matrix, [1, 0, 0], [1, 1, 1], drop="both") == [2]


def test_a_query_of_ten_thousand_documents_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 20)), np.arange(10_000) % 2
    X[2001] = 3 * X[4000]
    tracemalloc.start()
    left = kept(X, y, np.zeros(10_000), drop="both")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sorted(set(range(10_000)) - set(left)) == [2001, 4000]
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
        got = scale_per_query(numbered(matrix, y, qid))
        assert np.array_equal(got.X if matrix is X else got.X.toarray(), expected)
        assert np.array_equal(got.y, y)
        assert np.array_equal(got.qid, qid)
        assert got.docid.tolist() == list(range(len(y)))
        scaler = PerQueryScaler().fit(matrix)
        scaler.transform(matrix, qid=qid)
        assert scaler.scaled_.constant == constant
        assert abs(matrix - before).max() == 0


def test_negative_values_are_scaled_if_dense_and_rejected_if_sparse():
    X = np.array([[-1.0, -1.0], [0.0, -3.0]])
    assert scale_per_query(numbered(X, [0, 1], [1, 1])).X.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match=r"column 0 has negative values in query 1 .*X.toarray\(\)"):
        scale_per_query(numbered(scipy.sparse.csr_matrix(X), [0, 1], [1, 1]))


@pytest.mark.parametrize("step", STEPS)
def test_inputs_are_not_changed_and_types_are_kept(step):
    X, y, qid = np.float32([[1, 2], [2, 4.1], [0, 0], [3, 1]]), [1, 0, 0, 1], np.array(["a", "a", "b", "b"])
    before = X.copy()
    got = step(numbered(X, y, qid))
    assert np.array_equal(X, before)
    assert got.X.dtype == np.float32
    assert got.qid.dtype == qid.dtype


@pytest.mark.parametrize("step", STEPS)
def test_invalid_input_is_rejected(step):
    with pytest.raises(ValueError, match="qid has 1 entries but X has 2 rows"):
        step(numbered([[1.0], [2.0]], [1, 0], [1]))
    with pytest.raises(ValueError, match="NaN"):
        step(numbered([[np.nan], [2.0]], [1, 0], [1, 1]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.5}, r"threshold=1.5 is not valid"),
        ({"drop": "all"}, "drop='all' is not known"),
        ({"protocol": "kdd09"}, "protocol='kdd09' is not known"),
    ],
)
def test_wrong_settings_are_rejected(settings, message):
    with pytest.raises(ValueError, match=message):
        kept([[1.0]], [1], [1], **settings)


# scikit-learn estimators


# Objects of scikit-learn's kind


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
    expected = scale_per_query(Dataset(X, y, qid)).X
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
    data = scale_per_query(datasets.load_letor(WEBIS))
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)
    cleaned, removed = clean_part(data)
    assert (removed.relevant, removed.irrelevant, removed.zero) == (6, 4679, 73)
    assert len(cleaned) == removed.left == len(data) - 6 - 4679
    assert clean_part(cleaned)[1].left == len(cleaned)
    both = clean_part(data, drop="both")[1]
    assert both.irrelevant == removed.irrelevant
    assert both.relevant > 2000


def test_the_scaler_keeps_column_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"bm25": [2.0, 4.0], "age": [5.0, 7.0]})
    scaler = cleaning.PerQueryScaler().set_output(transform="pandas")
    assert scaler.fit(frame).transform(frame, qid=[1, 1]).columns.tolist() == ["bm25", "age"]
    assert scaler.__sklearn_tags__().input_tags.sparse
