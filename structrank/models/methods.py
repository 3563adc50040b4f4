"""Exports as methods of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from structrank.models import exports

if TYPE_CHECKING:
    from structrank._support.typing import Path


class ExportMethods:
    """Exports as methods of a linear model or of boosted trees; see `structrank.models.exports`.

    The model must be fitted. If features were scaled before training, pass the `scaler`, a fitted StandardScaler or
    MinMaxScaler, which is exported as well. For a Pipeline, ``pipeline[-1].to_solr(..., scaler=pipeline[0])`` is equivalent to
    ``exports.to_solr(pipeline, ...)``.
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

    def to_expression(
        self, dialect: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float = 0.0
    ) -> str:
        """Return the score as a formula for Lucene, Vespa, SQL or Painless; see `exports.to_expression`."""
        return exports.to_expression(self, dialect, scaler=scaler, feature_names=feature_names, shift=shift)

    def to_onnx(
        self, path: Path, *, scaler: Any = None, feature_names: Sequence[str] | None = None, dtype: str = "float64"
    ) -> None:
        """Write an ONNX file; see `structrank.models.exports.to_onnx`."""
        exports.to_onnx(self, path, scaler=scaler, feature_names=feature_names, dtype=dtype)

    def to_ranklib(self, path: Path, *, scaler: Any = None) -> None:
        """Write a model file of RankLib; see `structrank.models.exports.to_ranklib`."""
        exports.to_ranklib(self, path, scaler=scaler)


class LightGBMMethods(ExportMethods):
    """Exports as methods of a model with trees of LightGBM."""

    def to_lightgbm(self, path: Path) -> None:
        """Write the trees for ``lightgbm.Booster(model_file=path)``; see `structrank.models.exports.to_lightgbm`."""
        exports.to_lightgbm(self, path)
