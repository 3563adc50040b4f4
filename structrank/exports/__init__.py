"""Linear models for other programs: search engines, ONNX, scikit-learn, SVM^rank and RankLib.

Every function takes a fitted linear model, or a scikit-learn Pipeline of a scaler and one; the models have them as methods.
"""

from structrank.exports.elasticsearch import to_elasticsearch
from structrank.exports.onnx import to_onnx
from structrank.exports.ranklib import read_ranklib, to_ranklib
from structrank.exports.sklearn import to_sklearn
from structrank.exports.solr import to_solr
from structrank.exports.svmrank import read_svmrank, to_svmrank

__all__ = [
    "read_ranklib",
    "read_svmrank",
    "to_elasticsearch",
    "to_onnx",
    "to_ranklib",
    "to_sklearn",
    "to_solr",
    "to_svmrank",
]
