"""Exports as methods of models."""

from __future__ import annotations

from structrank.models import exports


class ExportMethods:
    """Functions of `structrank.models.exports` as methods of a linear model or of boosted trees, which is their `model`.

    The model must be fitted. If features were scaled before training, pass the `scaler`, a fitted StandardScaler or
    MinMaxScaler, which is exported as well. For a Pipeline, ``pipeline[-1].to_solr(..., scaler=pipeline[0])`` is equivalent to
    ``exports.to_solr(pipeline, ...)``.
    """

    to_solr = exports.to_solr
    to_elasticsearch = exports.to_elasticsearch
    to_expression = exports.to_expression
    to_onnx = exports.to_onnx
    to_ranklib = exports.to_ranklib


class LightGBMMethods(ExportMethods):
    """Exports as methods of a model with trees of LightGBM."""

    to_lightgbm = exports.to_lightgbm
