"""The Learning to Rank plugin of Elasticsearch and OpenSearch: a linear model with its feature normalizers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from structrank.models.exports.linear import check_text, linear_function


def to_elasticsearch(
    model: Any, name: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float | None = None
) -> dict[str, Any]:
    """Return a linear model as the JSON that the Learning to Rank plugin of Elasticsearch and OpenSearch takes.

    The plugin computes in 32 bits: documents whose scores differ by less than about 1e-6 of
    their size may trade places; by more where a feature is far from 0 for its spread, such as a time stamp, of which it warns.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and a linear model.
    name : str
        Of the model.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted scaler that was applied to the features before training.
    feature_names : sequence of str, default None
        As in the feature set; None takes the names seen in training, or f1, f2, ...
    shift : float, default None
        A constant to add to all scores, which changes no ranking: Lucene rejects negative scores. The constant is put into
        the normalizer of the feature with the weight of largest absolute value. None adds none, and warns where scores can be
        negative.

    Returns
    -------
    dict
        For ``json.dump``, and ``POST /_ltr/_featureset/<set>/_createmodel``. The definition is a text, as the plugin's
        manual has it: the JSON of a dict from features to weights.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1])
    >>> exported = to_elasticsearch(model, "mine", feature_names=["bm25"])["model"]["model"]
    >>> exported["type"], list(json.loads(exported["definition"]))
    ('model/linear', ['bm25'])
    """
    check_text("name", name)
    function = linear_function(model, scaler, feature_names).for_engine("the plugin", shift)
    definition = dict(zip(function.names, function.weights.tolist(), strict=True))
    content: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(definition)}
    normalizers = {
        name: _normalizer(function.kind, float(centre), float(spread))
        for name, centre, spread, changed in zip(
            function.names, function.centres, function.spreads, function.is_normalised, strict=True
        )
        if changed
    }
    if normalizers:
        content["feature_normalizers"] = normalizers
    return {"model": {"name": name, "model": content}}


def _normalizer(kind, centre, spread):
    if kind == "standard":
        return {"standard": {"mean": centre, "standard_deviation": spread}}
    return {"min_max": {"minimum": centre, "maximum": centre + spread}}
