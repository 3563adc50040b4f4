"""Model files of SVM^rank (and SVM^light with a linear kernel)."""

from __future__ import annotations

from typing import Any

from structrank._support.files import replace_file
from structrank._support.typing import Path
from structrank.models.exports.linear import linear_function
from structrank.models.exports.weight_text import format_weights

_FIRST_LINE = "SVM-light Version V6.20"  # required by svm_rank_classify
HEADER = (
    "kernel type",
    "kernel parameter -d",
    "kernel parameter -g",
    "kernel parameter -s",
    "kernel parameter -r",
    "kernel parameter -u",
    "highest feature index",
    "number of training documents",
    "number of support vectors plus 1",
    "threshold b, each following line is a SV (starting with alpha*y)",
)


def to_svmrank(model: Any, path: Path, *, scaler: Any = None) -> None:
    """Write a linear model as a file that ``svm_rank_classify`` reads; feature i is column i of X, from 1.

    The scaler is folded into weights and threshold: the file expects unscaled features. ``svm_rank_classify`` uses 32 bits.

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
    >>> from structrank.models.imports import read_svmrank
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> with TemporaryDirectory() as folder:
    ...     to_svmrank(model, f"{folder}/model.dat")
    ...     read_svmrank(f"{folder}/model.dat").coef_ == model.coef_
    array([ True])
    """
    function = linear_function(model, scaler)
    weights, threshold = function.raw_weights, -function.constant + 0.0  # not "-0.0"
    values = ["0 ", "3 ", "1 ", "1 ", "1 ", "empty", f"{weights.shape[0]} ", "0 ", "2 ", f"{threshold!r} "]
    # Its own files have a space at the end of all header lines except the last.
    header = [f"{value}# {what} " for value, what in zip(values, HEADER, strict=True)]
    lines = [_FIRST_LINE, *header[:-1], header[-1].rstrip(), f"1 {format_weights(weights)} #"]
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"), "the model")
