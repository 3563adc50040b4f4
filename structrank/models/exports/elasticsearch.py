"""The Learning to Rank plugin of Elasticsearch and OpenSearch: a linear model with its feature normalizers, or trees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from structrank.models.exports.linear import LinearFunction, check_text
from structrank.models.exports.trees import function_of


def to_elasticsearch(
    model: Any, name: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float | None = None
) -> dict[str, Any]:
    """Return a linear model or boosted trees as JSON for the Learning to Rank plugin of Elasticsearch and OpenSearch.

    The plugin computes in 32 bits; see `to_solr` for the consequences. A linear model with a scaler or a shift needs a plugin
    for version 7.7 of Elasticsearch or later, or for OpenSearch, because of its `feature_normalizers`. Both kinds of scaler
    are written as "standard" with mean and standard deviation: the plugin rejects "min_max" with a negative minimum, and the
    two compute the same function. Trees have the type "model/xgboost+json", whichever library grew them.

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
        requires: the JSON of a dict from features to weights, or of a list of trees.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> exported = to_elasticsearch(model, "mine", feature_names=["bm25"])["model"]["model"]
    >>> exported["type"], list(json.loads(exported["definition"]))
    ('model/linear', ['bm25'])
    """
    check_text("name", name)
    function = function_of(model, scaler, feature_names)
    if isinstance(function, LinearFunction):
        content = _linear(function.for_engine("the plugin", shift))
    else:
        forest = function.sum_of_trees("the plugin").for_engine("the plugin", shift)
        content = {"type": "model/xgboost+json", "definition": json.dumps(_trees(forest), allow_nan=False)}
    return {"model": {"name": name, "model": content}}


def _linear(function):
    definition = dict(zip(function.names, function.weights.tolist(), strict=True))
    content = {"type": "model/linear", "definition": json.dumps(definition)}
    normalizers = {
        name: {"standard": {"mean": float(centre), "standard_deviation": float(spread)}}
        for name, centre, spread, changed in zip(
            function.names, function.centres, function.spreads, function.is_normalised, strict=True
        )
        if changed
    }
    if normalizers:
        content["feature_normalizers"] = normalizers
    return content


def _trees(forest):
    trees = [_tree(tree, forest.names) for tree in forest.trees]
    return [*trees, {"nodeid": 0, "leaf": forest.constant}] if forest.constant else trees


def _tree(tree, names):
    # The plugin compares x < threshold, in 32 bits.
    limits = np.minimum(np.nextafter(tree.thresholds, np.float32(np.inf)), np.finfo(np.float32).max).tolist()
    depths = [0] * len(limits)
    for node in np.flatnonzero(~tree.is_leaf):
        depths[tree.left[node]] = depths[tree.right[node]] = depths[node] + 1
    values = tree.values.tolist()

    def split(node, left, right):
        yes, no = left["nodeid"], right["nodeid"]
        content = {"nodeid": node, "depth": depths[node], "split": names[tree.features[node]], "split_condition": limits[node]}
        # Documents have all features; "missing" is required by later versions of the plugin.
        return {**content, "yes": yes, "no": no, "missing": yes if limits[node] > 0.0 else no, "children": [left, right]}

    return tree.render(lambda node: {"nodeid": node, "leaf": values[node]}, split)
