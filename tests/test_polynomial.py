"""Synthetic data graded by a random polynomial."""

import numpy as np
import pytest

from structrank import datasets


def test_grades_have_the_requested_shares_and_data_are_reproducible():
    fold = datasets.make_polynomial_ranking(n_queries=100, n_docs=30, n_features=6, random_state=0)
    y = np.concatenate([fold.train.y, fold.validation.y, fold.test.y])
    assert np.bincount(y) / len(y) == pytest.approx([0.52, 0.32, 0.13, 0.02, 0.01], abs=1e-3)
    assert fold.train.X.shape == (1500, 6)
    assert np.array_equal(np.unique(fold.test.qid), np.arange(75, 100))
    again = datasets.make_polynomial_ranking(n_queries=100, n_docs=30, n_features=6, random_state=0)
    assert np.array_equal(again.train.X, fold.train.X)
    assert np.array_equal(again.test.y, fold.test.y)


def test_a_cubic_polynomial_explains_the_order_and_a_linear_one_most_of_it():
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import PolynomialFeatures

    shares = (0.01,) * 100  # a hundred grades: nearly the utility itself
    fits = []
    for seed in range(5):
        fold = datasets.make_polynomial_ranking(n_queries=60, n_docs=50, n_features=5, grade_shares=shares, random_state=seed)
        for degree in (1, 3):
            made = PolynomialFeatures(degree)
            model = LinearRegression().fit(made.fit_transform(fold.train.X), fold.train.y)
            fits.append(model.score(made.transform(fold.test.X), fold.test.y))
    linear, cubic = np.mean(fits[::2]), np.mean(fits[1::2])
    assert 0.4 < linear < cubic - 0.05
    assert cubic > 0.85


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"n_queries": 2}, "n_queries"),
        ({"n_docs": 1}, "n_docs"),
        ({"n_features": 0}, "n_features"),
        ({"grade_shares": (0.5, 0.6)}, "grade_shares"),
        ({"grade_shares": (1.0,)}, "grade_shares"),
        ({"grade_shares": 0.5}, "grade_shares"),
        ({"grade_shares": ("a", "b")}, "grade_shares"),
        ({"split": (1, 0, 0)}, "split"),
    ],
)
def test_invalid_settings_are_rejected(settings, name):
    with pytest.raises(ValueError, match=f"{name}="):
        datasets.make_polynomial_ranking(**settings)
