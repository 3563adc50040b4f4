"""Synthetic second label source: click-through rates that are correlated with the grades."""

import zlib

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from structrank._support.checks import check_number
from structrank.datasets.cleaning import _checked
from structrank.datasets.queries import rows_by_query


def make_click_labels(
    X: ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray,
    y: ArrayLike,
    qid: ArrayLike,
    *,
    agreement: float = 0.5,
    seen_share: float = 0.7,
    n_views: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.float64]:
    """Generate click-through rates for judged documents: correlated with the grades, but different from them.

    The preference of users combines the grade with a taste that is a function of the features. Document i of query q is
    clicked in a view with probability ::

        p_qi = 1 / (1 + exp(1 - 2 a_qi)),     a_qi = agreement * g_qi + sqrt(1 - agreement ** 2) * t_qi

    where g is the grade and t = v.x the taste, for one hidden v, both with mean 0 and standard deviation 1 within each
    query (0 if all documents of a query have equal values). The label is the fraction of `n_views` views with a click. Users
    see a document with probability `seen_share`. A document without clicks has the label nan, because clicks alone do not
    show whether it was seen.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_docs, n_features)
    y : array-like of shape (n_docs,)
        Grades; higher is more relevant.
    qid : array-like of shape (n_docs,)
        Query of each row, in any order.
    agreement : float, default=0.5
        Weight of the grade in the preference of users, from 0 to 1.
    seen_share : float, default=0.7
        Fraction of documents that users see, above 0 and at most 1.
    n_views : int, default=100
        Views per seen document, at least 1; fewer views make noisier labels.
    random_state : int, numpy.random.Generator or None, default=None
        Seed. An int yields the same taste v for all data with the same number of features, such as the parts of a fold, but
        different views for each of them.

    Returns
    -------
    (n_docs,) array
        Labels above 0 and at most 1, or nan for documents without clicks.

    Examples
    --------
    >>> from structrank.datasets import make_click_labels, make_ranking
    >>> train = make_ranking(n_queries=50, n_docs=10, n_grades=5, random_state=0).train
    >>> clicks = make_click_labels(train.X, train.y, train.qid, random_state=0)
    >>> known = ~np.isnan(clicks)
    >>> bool(0.5 < known.mean() < 0.8), bool(0.2 < np.corrcoef(train.y[known], clicks[known])[0, 1] < 0.8)
    (True, True)
    """
    check_number("agreement", agreement, at_least=0, at_most=1)
    check_number("seen_share", seen_share, above=0, at_most=1)
    check_number("n_views", n_views, at_least=1, integer=True)
    features, labels, query = _checked(X, y, qid)
    grades = check_array(labels, ensure_2d=False, dtype=np.float64, input_name="y")

    rng = np.random.default_rng(random_state)
    taste = features @ rng.standard_normal(features.shape[1])
    # The seed of the views depends on the grades, so that parts generated from one seed share only the taste.
    rng = np.random.default_rng([int(rng.integers(2**32)), zlib.crc32(grades.tobytes())])
    queries = rows_by_query(query)
    liking = agreement * _standardised(grades, queries) + np.sqrt(1 - agreement**2) * _standardised(taste, queries)
    seen = rng.random(len(grades)) < seen_share
    clicks = rng.binomial(n_views, 1 / (1 + np.exp(1 - 2 * liking)))
    return np.where(seen & (clicks > 0), clicks / n_views, np.nan)


def _standardised(values, queries):
    """Shift and scale to mean 0 and standard deviation 1 within each query."""
    result = np.empty(len(values))
    for rows in queries:
        centred = values[rows] - values[rows].mean()
        spread = centred.std()
        result[rows] = centred / spread if spread > 1e-12 * (1 + np.abs(values[rows]).max()) else 0.0
    return result
