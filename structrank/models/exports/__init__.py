"""Exports of linear models and boosted trees: search engines, SQL, ONNX, scikit-learn, SVM^rank, RankLib, LightGBM, XGBoost.

Every function takes a fitted model, or a Pipeline of a StandardScaler or MinMaxScaler and a model. If features were scaled
outside a Pipeline before training, pass the fitted `scaler`. Models have the functions as methods, too.
"""

from structrank.models.exports.boosters import to_lightgbm, to_xgboost
from structrank.models.exports.elasticsearch import to_elasticsearch
from structrank.models.exports.expressions import to_expression, to_sql, to_vespa
from structrank.models.exports.onnx import to_onnx
from structrank.models.exports.ranklib import to_ranklib
from structrank.models.exports.shift import positive_shift
from structrank.models.exports.sklearn import to_sklearn
from structrank.models.exports.solr import to_solr
from structrank.models.exports.svmrank import to_svmrank

__all__ = [
    "positive_shift",
    "to_elasticsearch",
    "to_expression",
    "to_lightgbm",
    "to_onnx",
    "to_ranklib",
    "to_sklearn",
    "to_solr",
    "to_sql",
    "to_svmrank",
    "to_vespa",
    "to_xgboost",
]


class ExportMethods:
    """Functions of `structrank.models.exports` as methods of a linear model or of boosted trees, which is their `model`.

    The model must be fitted. If features were scaled before training, pass the `scaler`, a fitted StandardScaler or
    MinMaxScaler, which is exported as well. For a Pipeline, ``pipeline[-1].to_solr(..., scaler=pipeline[0])`` is equivalent to
    ``to_solr(pipeline, ...)``.
    """

    to_solr = to_solr
    to_elasticsearch = to_elasticsearch
    to_expression = to_expression
    to_onnx = to_onnx
    to_ranklib = to_ranklib


class LightGBMMethods(ExportMethods):
    """Exports as methods of a model with trees of LightGBM."""

    to_lightgbm = to_lightgbm
