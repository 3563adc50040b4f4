"""Scikit-learn's own linear model, for whatever takes one."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline

from structrank.models.exports.linear import linear_function, split_pipeline


def to_sklearn(model: Any, *, scaler: Any = None) -> LinearRegression | Pipeline:
    """Return a plain scikit-learn model that predicts the same scores.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and a linear model.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted scaler that was applied to the features before training.

    Returns
    -------
    LinearRegression, or a Pipeline of the scaler and one

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1])
    >>> plain = to_sklearn(model)
    >>> plain, bool(plain.predict([[3.0]]) == model.predict([[3.0]]))
    (LinearRegression(), True)
    """
    function = linear_function(model, scaler)
    ours, scaler = split_pipeline(model, scaler)
    plain = LinearRegression()
    plain.coef_, plain.intercept_ = np.array(function.weights), np.float64(0.0)
    plain.n_features_in_ = function.weights.shape[0]
    if hasattr(ours, "feature_names_in_"):
        plain.feature_names_in_ = ours.feature_names_in_
    return plain if scaler is None else make_pipeline(copy.deepcopy(scaler), plain)
