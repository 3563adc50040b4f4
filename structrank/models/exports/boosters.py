"""Plain model files of LightGBM and XGBoost."""

from __future__ import annotations

from typing import Any

from structrank._support.files import replace_file
from structrank._support.typing import Path
from structrank.models.exports.linear import split_pipeline
from structrank.models.exports.trees import texts_of


def to_lightgbm(model: Any, path: Path) -> None:
    """Write the trees as a file for ``lightgbm.Booster(model_file=path)``, bit for bit as they were trained.

    Parameters
    ----------
    model : LambdaMART, LightGBMRanker or another model with trees of LightGBM
        Fitted. Of `McRank`, with ``classification="plain"`` the file predicts the probability of each grade, with
        ``"ordinal"`` and two grades that of the higher grade; other ordinal models consist of several files.
    path : path-like
        An existing file is replaced atomically.
    """
    texts = _texts(model)
    if texts[0].startswith("{"):
        raise ValueError(f"{type(model).__name__} has trees of XGBoost, not of LightGBM; use to_xgboost.")
    if len(texts) > 1:
        raise ValueError(
            f"{type(model).__name__} has {len(texts)} boosters, one for each threshold between grades; a file holds one. "
            "Write each text of model.trees_ to a file of its own, or export to ONNX."
        )
    replace_file(path, texts[0].encode(), "the trees")


def to_xgboost(model: Any, path: Path) -> None:
    """Write the trees of a `XGBoostRanker` as a JSON file for ``xgboost.Booster(model_file=path)``.

    Parameters
    ----------
    model : XGBoostRanker
        Fitted.
    path : path-like
        An existing file is replaced atomically; XGBoost requires a name that ends in ``.json``.
    """
    texts = _texts(model)
    if not texts[0].startswith("{"):
        raise ValueError(f"{type(model).__name__} has trees of LightGBM, not of XGBoost; use to_lightgbm.")
    replace_file(path, texts[0].encode(), "the trees")


def _texts(model):
    ranker, scaler = split_pipeline(model)
    if scaler is not None:
        raise ValueError(
            "the file of a library holds the trees alone, without the scaler; export the last step of the Pipeline, and scale "
            "features before they are scored."
        )
    return texts_of(ranker)
