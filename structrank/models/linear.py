"""Exports and explanations as methods of linear models."""

from __future__ import annotations

from structrank.models import explanation, exports
from structrank.models.exports import ExportMethods


class LinearMethods(ExportMethods):
    """Exports and explanations as methods of a linear model; see `models.exports` and `models.explanation`.

    The model must be fitted and linear: with `coef_`, or with `weights_` and no hidden units.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> class Fixed(LinearMethods, BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.coef_, self.n_features_in_ = np.array([2.0, 1.0]), 2
    ...         return self
    >>> Fixed().fit(None, None).to_solr("fixed", "products")["params"]
    {'weights': {'f1': 2.0, 'f2': 1.0}}
    """

    to_sklearn = exports.to_sklearn
    to_svmrank = exports.to_svmrank
    explain = explanation.explain
