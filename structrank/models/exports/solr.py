"""Solr Learning To Rank: a LinearModel with its normalizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structrank.models.exports.linear import check_text, linear_function


def to_solr(
    model: Any,
    name: str,
    store: str,
    *,
    scaler: Any = None,
    feature_names: Sequence[str] | None = None,
    shift: float | None = None,
) -> dict[str, Any]:
    """Return a linear model as JSON for Solr's model store.

    Solr computes in 32 bits, so documents whose scores differ by less than about 1e-6 of their size may swap ranks. Larger
    differences are affected if a feature is far from 0 relative to its spread, such as a timestamp; the export then warns.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and a linear model.
    name, store : str
        Names of the model and of its feature store.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted scaler that was applied to the features before training.
    feature_names : sequence of str, default None
        Names as in the feature store; None uses the names seen in training, or f1, f2, ...
    shift : float, default None
        Constant to add to all scores, which changes no ranking: Lucene rejects negative scores. It becomes part of the
        normalizer of the feature with the weight of largest absolute value. None adds none, and warns if scores can be
        negative.

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
    function = linear_function(model, scaler, feature_names).for_engine("Solr", shift)
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
