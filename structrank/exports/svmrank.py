"""Model files of SVM^rank (and SVM^light with a linear kernel), read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structrank._files import replace_file
from structrank.exports.linear import linear_function
from structrank.exports.weight_text import (
    as_model,
    format_weights,
    parse_count,
    parse_number,
    parse_weights,
    read_lines,
)

if TYPE_CHECKING:
    from structrank._typing import Path
    from structrank.svm import StructRankSVM

_FIRST_LINE = "SVM-light Version V6.20"  # what svm_rank_classify asks for
_HEADER = (
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

    The scaler is worked into weights and threshold: the file is for features as they are. ``svm_rank_classify`` keeps numbers
    in 32 bits.

    Parameters
    ----------
    model : linear model or Pipeline
        Fitted; a Pipeline of a StandardScaler or MinMaxScaler and a linear model.
    path : path-like
        An existing file is replaced, in one step.
    scaler : StandardScaler or MinMaxScaler, default None
        Fitted: what the features went through before the model saw them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1])
    >>> with TemporaryDirectory() as folder:
    ...     to_svmrank(model, f"{folder}/model.dat")
    ...     read_svmrank(f"{folder}/model.dat").coef_ == model.coef_
    array([ True])
    """
    function = linear_function(model, scaler)
    weights, threshold = function.raw_weights, -function.constant + 0.0  # not "-0.0"
    values = ["0 ", "3 ", "1 ", "1 ", "1 ", "empty", f"{weights.shape[0]} ", "0 ", "2 ", f"{threshold!r} "]
    # Its own files have a space before the ends of all lines of the header but the last.
    header = [f"{value}# {what} " for value, what in zip(values, _HEADER, strict=True)]
    lines = [_FIRST_LINE, *header[:-1], header[-1].rstrip(), f"1 {format_weights(weights)} #"]
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"), "the model")


def read_svmrank(path: Path) -> StructRankSVM:
    """Read a linear model of SVM^rank, or of SVM^light.

    Parameters
    ----------
    path : path-like
        As ``svm_rank_learn`` writes it.

    Returns
    -------
    StructRankSVM
        With `coef_`, to predict, rank, save, export and explain; what else training leaves is not there. Scores are those of
        ``svm_rank_classify`` but for the threshold, which changes no ranking (SVM^rank's is 0).

    Raises
    ------
    ValueError
        If the file is not such a model, is cut short, or its kernel is not linear.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> with TemporaryDirectory() as folder:
    ...     StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1]).to_svmrank(f"{folder}/model.dat")
    ...     read_svmrank(f"{folder}/model.dat").rank([[1.0], [2.0]])
    array([2, 1])
    """
    lines = read_lines(path)
    if not lines or not lines[0].startswith("SVM-light Version"):
        begin = lines[0][:40] if lines else ""
        raise ValueError(f"{path} begins with {begin!r}; expected 'SVM-light Version', as svm_rank_learn writes it.")
    header = _read_header(path, lines)
    if header["kernel type"] != "0":
        raise ValueError(f"{path}:2: kernel type {header['kernel type']!r}; expected 0, a linear kernel.")
    n_features = parse_count(header["highest feature index"], f"{path}:8")
    parse_number(header[_HEADER[-1]], f"{path}:{len(_HEADER) + 1}")
    n_vectors = parse_count(header["number of support vectors plus 1"], f"{path}:10") - 1
    vectors = [(number, line) for number, line in enumerate(lines, start=1) if number > len(_HEADER) + 1 and line.strip()]
    if len(vectors) != n_vectors:
        raise ValueError(f"{path} has {len(vectors)} support vectors; its header says {n_vectors}. It may be cut short.")
    total: dict[int, float] = {}
    for number, line in vectors:
        where = f"{path}:{number}"
        content, end, _ = line.partition("#")
        factor, *tokens = content.split() or [""]
        if not end:
            raise ValueError(f"{where}: no '#' ends the support vector; the file may be cut short.")
        factor = parse_number(factor, where)
        for feature, value in parse_weights([token for token in tokens if not token.startswith("qid:")], where).items():
            if not 1 <= feature <= n_features:
                raise ValueError(f"{where}: feature {feature} is not one of 1 to {n_features}, of which the header speaks.")
            total[feature] = total.get(feature, 0.0) + factor * value
    if n_features == 0 or not np.isfinite(list(total.values())).all():
        what = "has no features" if n_features == 0 else "has weights that leave the range of numbers"
        raise ValueError(f"{path} {what}; expected at least one, all finite.")
    return as_model(total, n_features)


def _read_header(path, lines):
    found = {}
    for number, what in enumerate(_HEADER, start=2):
        value, mark, name = (lines[number - 1] if number <= len(lines) else "").partition("#")
        if not mark or not name.strip().startswith(what.partition(",")[0]):
            shown = lines[number - 1][:60] if number <= len(lines) else "the end of the file"
            raise ValueError(f"{path}:{number}: found {shown!r}; expected a value and '# {what}'.")
        found[what] = value.strip()
    return found
