"""Tests of synthetic click labels: correlation with the grades, missing labels, invalid arguments."""

import numpy as np
import pytest
import scipy.sparse

from structrank import datasets
from structrank.datasets import make_click_labels


@pytest.fixture(scope="module")
def train():
    return datasets.make_ranking(n_queries=200, n_docs=(5, 15), n_features=6, n_grades=5, random_state=1).train


def correlation(clicks, y):
    known = ~np.isnan(clicks)
    return np.corrcoef(clicks[known], y[known])[0, 1]


def test_labels_are_rates_above_zero_or_missing(train):
    clicks = make_click_labels(train.X, train.y, train.qid, n_views=10, random_state=0)
    known = clicks[~np.isnan(clicks)]
    assert clicks.shape == train.y.shape
    assert known.min() > 0
    assert known.max() <= 1
    assert np.array_equal(np.round(known * 10), known * 10)


def test_agreement_moves_labels_from_the_taste_to_the_grades(train):
    found = [
        correlation(make_click_labels(train.X, train.y, train.qid, agreement=a, random_state=0), train.y)
        for a in (0.0, 0.5, 0.9)
    ]
    assert found[0] < 0.25
    assert found[0] + 0.15 < found[1] < found[2] - 0.15
    assert found[2] < 0.99


def test_with_full_agreement_and_many_views_rates_follow_the_grades(train):
    clicks = make_click_labels(train.X, train.y, train.qid, agreement=1.0, seen_share=1.0, n_views=10**6, random_state=0)
    for query in np.unique(train.qid)[:20]:
        rows = train.qid == query
        means = [clicks[rows & (train.y == grade)].mean() for grade in np.unique(train.y[rows])]
        assert (np.diff(means) > 0).all()


def test_unseen_documents_have_no_label(train):
    clicks = make_click_labels(train.X, train.y, train.qid, seen_share=0.4, n_views=1000, random_state=0)
    assert 0.3 < np.mean(~np.isnan(clicks)) < 0.5


def test_parts_of_one_seed_share_the_taste_but_not_the_views(train):
    settings = {"agreement": 0.0, "seen_share": 1.0, "random_state": 3}
    first = make_click_labels(train.X, train.y, train.qid, **settings)
    second = make_click_labels(train.X, train.y[::-1], train.qid, **settings)
    both = ~np.isnan(first) & ~np.isnan(second)
    assert np.corrcoef(first[both], second[both])[0, 1] > 0.9
    assert not np.array_equal(first, second, equal_nan=True)


def test_one_seed_gives_the_same_labels_and_another_gives_others(train):
    clicks = make_click_labels(train.X, train.y, train.qid, random_state=0)
    again = make_click_labels(train.X, train.y, train.qid, random_state=0)
    other = make_click_labels(train.X, train.y, train.qid, random_state=1)
    assert np.array_equal(clicks, again, equal_nan=True)
    assert not np.array_equal(clicks, other, equal_nan=True)
    sparse = make_click_labels(scipy.sparse.csr_array(train.X), train.y, train.qid, random_state=0)
    assert np.array_equal(np.isnan(clicks), np.isnan(sparse))
    assert correlation(sparse, clicks) > 0.99


def test_queries_of_identical_documents_have_labels():
    clicks = make_click_labels(np.ones((6, 2)), np.ones(6), np.zeros(6), seen_share=1.0, random_state=0)
    assert np.abs(clicks - 1 / (1 + np.e)).max() < 0.2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"agreement": 1.5}, r"agreement=1\.5 is not valid: expected a number of at least 0 and at most 1"),
        ({"agreement": "all"}, "agreement='all' is not valid"),
        ({"seen_share": 0}, "seen_share=0 is not valid"),
        ({"n_views": 0}, "n_views=0 is not valid: expected an integer of at least 1"),
        ({"n_views": 2.5}, r"n_views=2\.5 is not valid"),
    ],
)
def test_invalid_arguments_raise(train, wrong, message):
    with pytest.raises(ValueError, match=message):
        make_click_labels(train.X, train.y, train.qid, **wrong)


def test_unequal_lengths_raise(train):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make_click_labels(train.X, train.y[:-1], train.qid)
    with pytest.raises(ValueError, match="y contains NaN"):
        make_click_labels(train.X, np.full(len(train.y), np.nan), train.qid)
