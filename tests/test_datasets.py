"""The embedded data sets: no leakage between parts, correct labels, and the requested difficulty."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from structrank.datasets import Dataset, Fold, load_digits_retrieval, make_ranking


def parts(fold):
    return fold.train, fold.validation, fold.test


def queries(dataset):
    return [np.flatnonzero(dataset.qid == q) for q in np.unique(dataset.qid)]


def share_relevant(dataset):
    return np.mean(dataset.y >= 1)


def mean_over_queries(measure, dataset, scores):
    return np.mean([measure(dataset.y[rows] >= 1, scores[rows]) for rows in queries(dataset)])


def separating_direction(dataset):
    """Return a w that ranks every query without error, or None if there is none, by a linear programme."""
    pairs = [(i, j) for rows in queries(dataset) for i in rows for j in rows if dataset.y[i] > dataset.y[j]]
    better, worse = np.transpose(pairs)
    differences = dataset.X[better] - dataset.X[worse]
    n_features = dataset.X.shape[1]
    answer = linprog(np.zeros(n_features), -differences, -np.ones(len(pairs)), bounds=(None, None))
    assert answer.status in (0, 2)
    return answer.x if answer.status == 0 else None


def assert_same(first, second):
    for a, b in zip(parts(first), parts(second), strict=True):
        for field in ("X", "y", "qid", "docid"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


# Containers


def test_repr_shows_documents_queries_features_and_labels():
    d = Dataset(scipy.sparse.csr_array((5, 7)), y=np.array([0, 0, 2, 1, 0.0]), qid=np.array(list("aabbc")))
    assert repr(d) == "Dataset(5 documents, 3 queries, 7 features, labels 0: 3, 1: 1, 2: 1)"


def test_repr_stays_short_with_many_labels():
    d = Dataset(np.zeros((100, 1)), y=np.arange(100), qid=np.zeros(100))
    assert len(repr(d)) < 150
    assert "(100 values)" in repr(d)


def test_the_length_of_sparse_data_is_the_number_of_rows():
    assert len(Dataset(scipy.sparse.csr_array((5, 7)), np.zeros(5), np.zeros(5))) == 5


def test_construction_does_not_copy_arrays():
    X, y, qid = np.eye(2), np.array([0, 1]), np.array([1, 1])
    d = Dataset(X, y, qid)
    assert d.X is X
    assert d.y is y
    assert d.qid is qid
    assert d.docid is None


def test_containers_are_frozen():
    d = Dataset(np.eye(2), np.zeros(2), np.zeros(2))
    with pytest.raises(AttributeError):
        d.y = np.ones(2)
    with pytest.raises(AttributeError):
        Fold(d, None, d).validation = d


# Digits


@pytest.fixture(scope="module")
def digits():
    return load_digits_retrieval()


def test_digits_have_the_requested_sizes():
    fold = load_digits_retrieval(n_queries=(5, 3, 4), n_docs=9)
    for part, n_queries in zip(parts(fold), (5, 3, 4), strict=True):
        assert part.X.shape == (n_queries * 9, 64)
        assert [len(rows) for rows in queries(part)] == [9] * n_queries


def test_no_digit_image_is_in_two_parts(digits):
    images = [set(part.qid) | set(part.docid) for part in parts(digits)]
    assert sum(map(len, images)) == len(set.union(*images))


def test_digits_documents_of_a_query_are_distinct_and_not_the_query(digits):
    for part in parts(digits):
        assert not np.any(part.qid == part.docid)
        for rows in queries(part):
            assert len(set(part.docid[rows])) == len(rows)


def test_digits_labels_and_features_follow_from_the_images(digits):
    images = load_digits()
    for part in parts(digits):
        np.testing.assert_array_equal(part.y, images.target[part.qid] == images.target[part.docid])
        expected = np.abs(images.data[part.qid] - images.data[part.docid]) / 16
        np.testing.assert_allclose(part.X, expected)
        assert part.X.min() == 0
        assert part.X.max() == 1


@pytest.mark.parametrize("n_docs", [2, 7, 598])
def test_every_digits_query_has_relevant_and_irrelevant_documents(n_docs):
    for part in parts(load_digits_retrieval(n_queries=(40, 20, 20), n_docs=n_docs, random_state=1)):
        for rows in queries(part):
            assert 0 < part.y[rows].sum() < n_docs


def test_about_10_percent_of_the_digits_documents_are_relevant(digits):
    for part in parts(digits):
        assert 0.08 < share_relevant(part) < 0.13


def test_the_row_order_of_digits_does_not_reveal_the_label():
    # Each query is forced to have a relevant document; it must not always be the first row.
    part = load_digits_retrieval(n_queries=(300, 1, 1), n_docs=4).train
    share_by_position = part.y.reshape(-1, 4).mean(axis=0)
    assert np.ptp(share_by_position) < 0.15


def test_digits_are_learnable_but_not_solved_by_a_linear_model(digits):
    model = LogisticRegression(C=0.1, max_iter=1000).fit(digits.train.X, digits.train.y)
    scores = model.decision_function(digits.test.X)
    learned = mean_over_queries(average_precision_score, digits.test, scores)
    distance = mean_over_queries(average_precision_score, digits.test, -digits.test.X.sum(axis=1))
    assert distance < learned
    assert 0.6 < learned < 0.8


def test_digits_are_reproducible_by_seed(digits):
    assert_same(digits, load_digits_retrieval())
    other = load_digits_retrieval(random_state=1)
    assert not np.array_equal(digits.train.qid, other.train.qid)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 60}, r"n_queries=60 .*three integers from 1 to 599"),
        ({"n_queries": (60, 0, 60)}, r"n_queries=\(60, 0, 60\)"),
        ({"n_queries": (60, 40, 600)}, r"n_queries=\(60, 40, 600\)"),
        ({"n_queries": (60, 40.5, 60)}, r"n_queries=\(60, 40.5, 60\)"),
        ({"n_docs": 1}, r"n_docs=1 .*of at least 2 and at most 598"),
        ({"n_docs": 599}, r"n_docs=599"),
        ({"n_docs": 10.0}, r"n_docs=10.0"),
    ],
)
def test_digits_errors_name_argument_value_and_expectation(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_digits_retrieval(**arguments)


# Synthetic


def test_synthetic_queries_are_split_by_the_requested_shares():
    fold = make_ranking(n_queries=20, split=(0.5, 0.2, 0.3), random_state=0)
    found = [np.unique(part.qid).tolist() for part in parts(fold)]
    assert [len(ids) for ids in found] == [10, 4, 6]
    assert [q for ids in found for q in ids] == list(range(20))


def test_synthetic_numbers_of_documents_cover_the_range():
    fold = make_ranking(n_docs=(3, 7), random_state=0)
    assert {len(rows) for part in parts(fold) for rows in queries(part)} == {3, 4, 5, 6, 7}


def test_synthetic_number_of_documents_can_be_fixed():
    fold = make_ranking(n_queries=10, n_docs=4, n_features=3, random_state=0)
    assert fold.train.X.shape == (24, 3)
    assert {len(rows) for part in parts(fold) for rows in queries(part)} == {4}


@pytest.mark.parametrize("relevant_share", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("n_grades", [2, 5])
def test_share_of_relevant_documents_is_near_the_request(relevant_share, n_grades):
    fold = make_ranking(n_queries=500, n_docs=(30, 50), random_state=0, relevant_share=relevant_share, n_grades=n_grades)
    assert share_relevant(fold.train) == pytest.approx(relevant_share, abs=0.02)


def test_number_of_relevant_documents_varies_across_queries():
    part = make_ranking(random_state=0).train
    assert len({int(np.sum(part.y[rows])) for rows in queries(part)}) > 3


@pytest.mark.parametrize("relevant_share", [0.001, 0.999])
def test_every_synthetic_query_has_relevant_and_irrelevant_documents(relevant_share):
    for part in parts(make_ranking(n_docs=(2, 4), relevant_share=relevant_share, random_state=0)):
        for rows in queries(part):
            assert 0 < np.sum(part.y[rows] >= 1) < len(rows)


def test_relevant_grades_are_equally_frequent():
    part = make_ranking(n_queries=300, n_docs=100, n_grades=4, relevant_share=0.3, random_state=0).train
    counts = np.bincount(part.y)
    assert len(counts) == 4
    np.testing.assert_allclose(counts[1:] / counts[1:].sum(), 1 / 3, atol=0.03)


def test_features_of_different_queries_are_shifted():
    part = make_ranking(n_queries=200, n_docs=50, random_state=0).train
    means = np.array([part.X[rows].mean(axis=0) for rows in queries(part)])
    assert means.std() == pytest.approx(1.0, abs=0.1)  # 1/sqrt(50) = 0.14 without offsets


@pytest.mark.parametrize("n_grades", [2, 4])
def test_without_noise_a_linear_ranker_is_perfect_and_generalises(n_grades):
    fold = make_ranking(n_queries=200, n_docs=15, n_features=5, n_grades=n_grades, noise=0, random_state=0)
    w = separating_direction(fold.train)
    assert w is not None
    assert mean_over_queries(roc_auc_score, fold.test, fold.test.X @ w) > 0.99
    assert separating_direction(fold.test) is not None


def test_with_noise_no_linear_ranker_is_perfect():
    assert separating_direction(make_ranking(n_features=5, noise=1.0, random_state=0).train) is None


def test_more_noise_lowers_the_auc_of_the_true_direction():
    made = [make_ranking(n_features=5, noise=noise, random_state=0).train for noise in (0, 0.3, 1, 3, 100)]
    w = separating_direction(made[0])
    aucs = [mean_over_queries(roc_auc_score, part, part.X @ w) for part in made]
    assert aucs[0] == 1
    assert np.all(np.diff(aucs) < -0.02)
    assert aucs[-1] == pytest.approx(0.5, abs=0.05)


def test_noise_changes_only_the_labels():
    quiet, loud = (make_ranking(noise=noise, random_state=3).train for noise in (0, 2))
    np.testing.assert_array_equal(quiet.X, loud.X)
    assert not np.array_equal(quiet.y, loud.y)


def test_synthetic_data_are_reproducible_by_seed():
    assert_same(make_ranking(random_state=5), make_ranking(random_state=5))
    assert_same(make_ranking(random_state=5), make_ranking(random_state=np.random.default_rng(5)))
    assert not np.array_equal(make_ranking(random_state=5).train.X, make_ranking(random_state=6).train.X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 2}, r"n_queries=2 .*at least 3"),
        ({"n_queries": 10.0}, r"n_queries=10.0"),
        ({"n_docs": 1}, r"n_docs=1 .*at least 2"),
        ({"n_docs": (1, 5)}, r"n_docs=1 .*at least 2"),
        ({"n_docs": (5, 4)}, r"n_docs=4 .*at least 5"),
        ({"n_docs": (5, 6, 7)}, r"n_docs=\(5, 6, 7\)"),
        ({"n_features": 0}, r"n_features=0 .*at least 1"),
        ({"n_grades": 1}, r"n_grades=1 .*at least 2"),
        ({"noise": -0.1}, r"noise=-0.1 .*at least 0"),
        ({"noise": float("nan")}, r"noise=nan"),
        ({"relevant_share": 0}, r"relevant_share=0 .*above 0 and below 1"),
        ({"relevant_share": 20}, r"relevant_share=20"),
        ({"split": (0.8, 0.2)}, r"split=\(0.8, 0.2\) .*sum to 1"),
        ({"split": (0.6, 0.2, 0.3)}, r"split=\(0.6, 0.2, 0.3\)"),
        ({"split": (0.8, 0.0, 0.2)}, r"split=\(0.8, 0.0, 0.2\) .*positive"),
        ({"n_queries": 5, "split": (0.9, 0.05, 0.05)}, r"split=.* at least one of the 5 queries"),
    ],
)
def test_synthetic_errors_name_argument_value_and_expectation(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_ranking(**arguments)
