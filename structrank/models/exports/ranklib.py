"""Linear model files of RankLib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structrank._support.files import replace_file
from structrank.models.exports.linear import linear_function
from structrank.models.exports.weight_text import format_weights

if TYPE_CHECKING:
    from structrank._support.typing import Path

LINEAR = ("Coordinate Ascent", "Linear Regression")


def to_ranklib(model: Any, path: Path, *, scaler: Any = None) -> None:
    """Write a linear model as a Coordinate Ascent model of RankLib; feature i is column i of X, from 1.

    The scaler is folded into the weights: the file expects unscaled features. The format has no constant term, so scores may
    differ from those of the model by a constant; rankings do not.

    Parameters
    ----------
    model, scaler
        As for `to_solr`.
    path : path-like
        An existing file is replaced atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> from structrank.models.imports import read_ranklib
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> with TemporaryDirectory() as folder:
    ...     to_ranklib(model, f"{folder}/model.txt")
    ...     read_ranklib(f"{folder}/model.txt").coef_ == model.coef_
    array([ True])
    """
    weights = linear_function(model, scaler).raw_weights
    replace_file(path, f"## {LINEAR[0]}\n{format_weights(weights)}\n".encode("ascii"), "the model")
