"""Solr Learning To Rank: a LinearModel with its normalizers, or a MultipleAdditiveTreesModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structrank.models.exports.linear import LinearFunction, check_text
from structrank.models.exports.trees import function_of

_SLACK = np.float32(1e-6)  # which Solr adds to thresholds


def to_solr(
    model: Any,
    name: str,
    store: str,
    *,
    scaler: Any = None,
    feature_names: Sequence[str] | None = None,
    shift: float | None = None,
) -> dict[str, Any]:
    """Return a linear model or boosted trees as JSON for Solr's model store.

    Solr computes in 32 bits, so documents whose scores differ by less than about 1e-6 of their size may swap ranks. Larger
    differences are affected if a feature is far from 0 relative to its spread, such as a timestamp; the export then warns.
    Solr also adds 1e-6 to the thresholds of trees; the export subtracts it. `McRank` can be exported with two grades; its
    exported scores are log-odds, which rank as the expected grades do.

    Parameters
    ----------
    model : linear model, tree model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and such a model.
    name, store : str
        Names of the model and of its feature store.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted scaler that was applied to the features before training.
    feature_names : sequence of str, default None
        Names as in the feature store; None uses the names seen in training, or f1, f2, ...
    shift : float, default None
        Constant to add to all scores, which changes no ranking: Lucene rejects negative scores. It becomes part of the
        normalizer of the feature with the weight of largest absolute value, or is a tree of its own. None adds none, and
        warns if scores can be negative.

    Returns
    -------
    dict
        Content for ``json.dump`` and ``PUT /solr/<collection>/schema/model-store``.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> exported = to_solr(model, "mine", "products", feature_names=["bm25"])
    >>> exported["features"], list(exported["params"]["weights"])
    ([{'name': 'bm25'}], ['bm25'])
    """
    check_text("name", name)
    check_text("store", store)
    function = function_of(model, scaler, feature_names)
    if not isinstance(function, LinearFunction):
        forest = function.sum_of_trees("Solr").for_engine("Solr", shift)
        roots = [_root(tree, forest.names) for tree in forest.trees]
        if forest.constant:
            roots.append({"value": repr(forest.constant)})
        return {
            "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
            "name": name,
            "store": store,
            "features": [{"name": feature} for feature in forest.names],
            "params": {"trees": [{"weight": "1", "root": root} for root in roots]},
        }
    function = function.for_engine("Solr", shift)
    return {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": name,
        "store": store,
        "features": [_feature(function, place) for place in range(len(function.names))],
        "params": {"weights": dict(zip(function.names, function.weights.tolist(), strict=True))},
    }


def _feature(function, place):
    feature = {"name": function.names[place]}
    if function.is_normalised[place]:
        centre, spread = float(function.centres[place]), float(function.spreads[place])
        if function.kind == "standard":
            normalizer, parameters = "StandardNormalizer", {"avg": centre, "std": spread}
        else:
            normalizer, parameters = "MinMaxNormalizer", {"min": centre, "max": centre + spread}
        feature["norm"] = {
            "class": f"org.apache.solr.ltr.norm.{normalizer}",
            "params": {key: repr(value) for key, value in parameters.items()},
        }
    return feature


def _root(tree, names):
    thresholds = _without_slack(tree.thresholds)
    return tree.render(
        lambda node: {"value": str(tree.values[node])},
        lambda node, left, right: {
            "feature": names[tree.features[node]],
            "threshold": str(thresholds[node]),
            "left": left,
            "right": right,
        },
    )


def _without_slack(thresholds):
    """Return 32-bit numbers that are closest to the thresholds after Solr has added its slack, in most cases equal to them.

    Only near 0, where 32-bit numbers lie closer together than at the slack, the sum differs, by about 1e-13; it is negative
    if and only if the threshold is, so that 0 stays on its side.
    """
    near = thresholds - _SLACK
    candidates = np.stack([near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))])
    sums = candidates + _SLACK
    errors = np.where((sums < 0.0) == (thresholds < 0.0), np.abs(sums - thresholds), np.inf)
    chosen = np.argmin(errors, axis=0)
    return np.take_along_axis(candidates, chosen[np.newaxis], axis=0)[0]
