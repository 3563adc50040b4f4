"""Exports and explanations as methods of linear models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from structrank.models import explanation, exports

if TYPE_CHECKING:
    from structrank._support.typing import Matrix, Path
    from structrank.models.explanation import Explanation, PairExplanation


class LinearMethods:
    """Exports and explanations as methods of a linear model; see `models.exports` and `models.explanation`.

    The model must be fitted and linear: with `coef_`, or with `weights_` and no hidden units. If features were scaled before
    training, pass the `scaler`, a fitted StandardScaler or MinMaxScaler, which is exported as well. For a Pipeline,
    ``pipeline[-1].to_solr(..., scaler=pipeline[0])`` is equivalent to ``exports.to_solr(pipeline, ...)``.

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

    def to_solr(
        self,
        name: str,
        store: str,
        *,
        scaler: Any = None,
        feature_names: Sequence[str] | None = None,
        shift: float | None = None,
    ) -> dict[str, Any]:
        """Return the JSON for Solr's model store, as a dict; see `structrank.models.exports.to_solr`."""
        return exports.to_solr(self, name, store, scaler=scaler, feature_names=feature_names, shift=shift)

    def to_elasticsearch(
        self, name: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float | None = None
    ) -> dict[str, Any]:
        """Return the JSON for the plugin of Elasticsearch or OpenSearch, as a dict; see `exports.to_elasticsearch`."""
        return exports.to_elasticsearch(self, name, scaler=scaler, feature_names=feature_names, shift=shift)

    def to_onnx(self, path: Path, *, scaler: Any = None, dtype: str = "float64") -> None:
        """Write an ONNX file; see `structrank.models.exports.to_onnx`."""
        exports.to_onnx(self, path, scaler=scaler, dtype=dtype)

    def to_sklearn(self, *, scaler: Any = None) -> Any:
        """Return a plain scikit-learn model with the same scores; see `structrank.models.exports.to_sklearn`."""
        return exports.to_sklearn(self, scaler=scaler)

    def to_svmrank(self, path: Path, *, scaler: Any = None) -> None:
        """Write a model file of SVM^rank; see `structrank.models.exports.to_svmrank`."""
        exports.to_svmrank(self, path, scaler=scaler)

    def to_ranklib(self, path: Path, *, scaler: Any = None) -> None:
        """Write a model file of RankLib; see `structrank.models.exports.to_ranklib`."""
        exports.to_ranklib(self, path, scaler=scaler)

    def explain(
        self, X: Matrix, *, pair: tuple[int, int] | None = None, scaler: Any = None, feature_names: Sequence[str] | None = None
    ) -> Explanation | PairExplanation:
        """Compute the contributions of features to scores; see `structrank.models.explanation.explain`."""
        return explanation.explain(self, X, pair=pair, scaler=scaler, feature_names=feature_names)
