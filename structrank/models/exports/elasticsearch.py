"""The Learning to Rank plugin of Elasticsearch and OpenSearch: a linear model with its feature normalizers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from structrank.models.exports.linear import check_text, linear_function


def to_elasticsearch(
    model: Any, name: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float | None = None
) -> dict[str, Any]:
    """Return a linear model as JSON for the Learning to Rank plugin of Elasticsearch and OpenSearch.

    The plugin computes in 32 bits; see `to_solr` for the consequences.

    Parameters
    ----------
    name : str
        Name of the model.
    model, scaler, feature_names, shift
        As for `to_solr`; names as in the feature set.

    Returns
    -------
    dict
        Content for ``json.dump`` and ``POST /_ltr/_featureset/<set>/_createmodel``. The definition is a text, as the plugin
        requires: the JSON of a dict from features to weights.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
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
