"""Readers of linear models of other programs: SVM^rank (or SVM^light with a linear kernel) and RankLib."""

from __future__ import annotations

import numpy as np

from structrank._support import checks
from structrank._support.text import printable
from structrank._support.typing import Path
from structrank.models.exports.ranklib import LINEAR
from structrank.models.exports.svmrank import HEADER
from structrank.models.exports.weight_text import parse_count, parse_number, parse_weights, read_lines
from structrank.svm import StructRankSVM

__all__ = ["read_ranklib", "read_svmrank"]


def read_svmrank(path: Path) -> StructRankSVM:
    """Read a linear model of SVM^rank, or of SVM^light.

    Parameters
    ----------
    path : path-like
        File written by ``svm_rank_learn``.

    Returns
    -------
    StructRankSVM
        Model with `coef_`, to predict, rank, save, export and explain; other fitted attributes are not set. Scores
        equal those of ``svm_rank_classify`` up to the threshold, which changes no ranking (0 for SVM^rank).

    Raises
    ------
    ValueError
        If the file is not such a model, is truncated, or its kernel is not linear.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from structrank import StructRankSVM
    >>> with TemporaryDirectory() as folder:
    ...     StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0).to_svmrank(f"{folder}/model.dat")
    ...     read_svmrank(f"{folder}/model.dat").rank([[1.0], [2.0]], qid=0)
    array([2, 1])
    """
    lines, path = read_lines(path), printable(str(path))
    if not lines or not lines[0].startswith("SVM-light Version"):
        begin = lines[0][:40] if lines else ""
        raise ValueError(f"{path} begins with {begin!r}; expected 'SVM-light Version', as svm_rank_learn writes it.")
    header = _read_header(path, lines)
    if header["kernel type"] != "0":
        raise ValueError(f"{path}:2: kernel type {header['kernel type']!r}; expected 0, a linear kernel.")
    n_features = parse_count(header["highest feature index"], f"{path}:8")
    parse_number(header[HEADER[-1]], f"{path}:{len(HEADER) + 1}")
    n_vectors = parse_count(header["number of support vectors plus 1"], f"{path}:10") - 1
    vectors = [(number, line) for number, line in enumerate(lines, start=1) if number > len(HEADER) + 1 and line.strip()]
    if len(vectors) != n_vectors:
        raise ValueError(f"{path} has {len(vectors)} support vectors; its header says {n_vectors}. It may be truncated.")
    total: dict[int, float] = {}
    for number, line in vectors:
        where = f"{path}:{number}"
        content, end, _ = line.partition("#")
        factor, *tokens = content.split() or [""]
        if not end:
            raise ValueError(f"{where}: no '#' ends the support vector; the file may be truncated.")
        factor = parse_number(factor, where)
        for feature, value in parse_weights([token for token in tokens if not token.startswith("qid:")], where).items():
            if not 1 <= feature <= n_features:
                raise ValueError(f"{where}: feature {feature} is not one of 1 to {n_features}, the features in the header.")
            total[feature] = total.get(feature, 0.0) + factor * value
    if n_features == 0 or not np.isfinite(list(total.values())).all():
        what = "has no features" if n_features == 0 else "has weights that overflow"
        raise ValueError(f"{path} {what}; expected at least one, all finite.")
    return _as_model(total, n_features)


def _read_header(path, lines):
    found = {}
    for number, what in enumerate(HEADER, start=2):
        value, mark, name = (lines[number - 1] if number <= len(lines) else "").partition("#")
        if not mark or not name.strip().startswith(what.partition(",")[0]):
            shown = lines[number - 1][:60] if number <= len(lines) else "the end of the file"
            raise ValueError(f"{path}:{number}: found {shown!r}; expected a value and '# {what}'.")
        found[what] = value.strip()
    return found


def read_ranklib(path: Path, *, n_features: int | None = None) -> StructRankSVM:
    r"""Read a linear model of RankLib: Coordinate Ascent or Linear Regression.

    Parameters
    ----------
    path : path-like
    n_features : int, default None
        Number of features of the data to score; None uses the last feature with a weight.

    Returns
    -------
    StructRankSVM
        Model with `coef_`, to predict, rank, save, export and explain; other fitted attributes are not set. The
        constant of a regression is dropped, which changes no ranking.

    Raises
    ------
    ValueError
        If the file is not such a model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "model.txt")
    ...     _ = file.write_text("## Coordinate Ascent\n## Restart = 5\n1:0.25 3:0.75")
    ...     read_ranklib(file).coef_.tolist()
    [0.25, 0.0, 0.75]
    """
    lines, path = [line.strip() for line in read_lines(path)], printable(str(path))
    kind = lines[0].removeprefix("##").strip() if lines and lines[0].startswith("##") else None
    if kind not in LINEAR:
        found = "is empty" if not lines else f"begins with {lines[0][:40]!r}"
        raise ValueError(f"{path} {found}; expected '## {LINEAR[0]}' or '## {LINEAR[1]}', RankLib's linear models.")
    content = [(number, line) for number, line in enumerate(lines, start=1) if line and not line.startswith("##")]
    if len(content) != 1:
        raise ValueError(f"{path} has {len(content)} lines of weights; expected one, such as '1:0.25 2:0.75'.")
    number, line = content[0]
    where = f"{path}:{number}"
    weights = parse_weights(line.partition("#")[0].split(), where)
    constant = weights.pop(0, None)
    if constant is not None and kind == LINEAR[0]:
        raise ValueError(f"{where}: feature 0; features of {kind} count from 1.")
    if not weights:
        raise ValueError(f"{where}: no feature has a weight; expected at least one, such as '1:0.25'.")
    last = max(weights)
    if n_features is None:
        n_features = last
    elif checks.check_number("n_features", n_features, at_least=1, integer=True) < last:
        raise ValueError(f"n_features={n_features}: {where} has a weight for feature {last}.")
    return _as_model(weights, n_features)


def _as_model(weights, n_features):
    """Return a fitted `StructRankSVM` with the given weights, a dict from feature numbers to weights."""
    # The objective of RankSVM, in case training is continued.
    model = StructRankSVM("auc", relevant_from=None, query_weight="pairs")
    model.coef_ = np.zeros(n_features)
    for number, weight in weights.items():
        model.coef_[number - 1] = weight
    model.n_features_in_ = n_features
    return model
