"""Exports and explanations as methods of linear models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from structrank.models import explanation, exports
from structrank.models.methods import ExportMethods

if TYPE_CHECKING:
    from structrank._support.typing import Matrix, Path
    from structrank.models.explanation import Explanation, PairExplanation


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

    def to_sklearn(self, *, scaler: Any = None) -> Any:
        """Return a plain scikit-learn model with the same scores; see `structrank.models.exports.to_sklearn`."""
        return exports.to_sklearn(self, scaler=scaler)

    def to_svmrank(self, path: Path, *, scaler: Any = None) -> None:
        """Write a model file of SVM^rank; see `structrank.models.exports.to_svmrank`."""
        exports.to_svmrank(self, path, scaler=scaler)

    def explain(
        self, X: Matrix, *, pair: tuple[int, int] | None = None, scaler: Any = None, feature_names: Sequence[str] | None = None
    ) -> Explanation | PairExplanation:
        """Compute the contributions of features to scores; see `structrank.models.explanation.explain`."""
        return explanation.explain(self, X, pair=pair, scaler=scaler, feature_names=feature_names)
