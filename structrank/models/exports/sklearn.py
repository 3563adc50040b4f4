"""Plain scikit-learn models."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank.models.exports.linear import linear_function, split_pipeline

if TYPE_CHECKING:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline


def to_sklearn(model: Any, *, scaler: Any = None) -> LinearRegression | Pipeline:
    """Return a plain scikit-learn model that predicts the same scores.

    Parameters
    ----------
    model, scaler
        As for `to_solr`.

    Returns
    -------
    LinearRegression, or a Pipeline of the scaler and a LinearRegression

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> plain = to_sklearn(model)
    >>> plain, bool(plain.predict([[3.0]]) == model.predict([[3.0]]))
    (LinearRegression(), True)
    """
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    function = linear_function(model, scaler)
    ours, scaler = split_pipeline(model, scaler)
    plain = LinearRegression()
    plain.coef_, plain.intercept_ = np.array(function.weights), np.float64(0.0)
    plain.n_features_in_ = function.weights.shape[0]
    if hasattr(ours, "feature_names_in_"):
        plain.feature_names_in_ = ours.feature_names_in_
    return plain if scaler is None else make_pipeline(copy.deepcopy(scaler), plain)
