"""Exports of linear models: search engines, ONNX, scikit-learn, SVM^rank and RankLib.

Every function takes a fitted linear model, or a Pipeline of a StandardScaler or MinMaxScaler and a linear model. If features
were scaled outside a Pipeline before training, pass the fitted `scaler`. Linear models have the functions as methods, too.
"""

from structrank.models.exports.elasticsearch import to_elasticsearch
from structrank.models.exports.onnx import to_onnx
from structrank.models.exports.ranklib import to_ranklib
from structrank.models.exports.sklearn import to_sklearn
from structrank.models.exports.solr import to_solr
from structrank.models.exports.svmrank import to_svmrank

__all__ = ["to_elasticsearch", "to_onnx", "to_ranklib", "to_sklearn", "to_solr", "to_svmrank"]
