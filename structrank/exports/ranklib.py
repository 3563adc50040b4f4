"""Linear model files of RankLib, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structrank import _validation
from structrank._files import replace_file
from structrank.exports.linear import linear_function
from structrank.exports.weight_text import as_model, format_weights, parse_weights, read_lines

if TYPE_CHECKING:
    from structrank._typing import Path
    from structrank.svm import StructRankSVM

_LINEAR = ("Coordinate Ascent", "Linear Regression")


def to_ranklib(model: Any, path: Path, *, scaler: Any = None) -> None:
    """Write a linear model as RankLib writes one of its own, of Coordinate Ascent; feature i is column i of X, from 1.

    The scaler is worked into the weights: the file is for features as they are. Such a file has no place for a constant, so
    scores may differ by one from those of the model; rankings do not.

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
    ...     to_ranklib(model, f"{folder}/model.txt")
    ...     read_ranklib(f"{folder}/model.txt").coef_ == model.coef_
    array([ True])
    """
    weights = linear_function(model, scaler).raw_weights
    replace_file(path, f"## {_LINEAR[0]}\n{format_weights(weights)}\n".encode("ascii"), "the model")


def read_ranklib(path: Path, *, n_features: int | None = None) -> StructRankSVM:
    r"""Read a linear model of RankLib: Coordinate Ascent or Linear Regression.

    Parameters
    ----------
    path : path-like
    n_features : int, default None
        Of the data that will be scored; None takes the last feature that has a weight.

    Returns
    -------
    StructRankSVM
        With `coef_`, to predict, rank, save, export and explain; what else training leaves is not there. The constant of a
        regression is left out, which changes no ranking.

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
    lines = [line.strip() for line in read_lines(path)]
    kind = lines[0].removeprefix("##").strip() if lines and lines[0].startswith("##") else None
    if kind not in _LINEAR:
        found = "is empty" if not lines else f"begins with {lines[0][:40]!r}"
        raise ValueError(f"{path} {found}; expected '## {_LINEAR[0]}' or '## {_LINEAR[1]}', RankLib's linear models.")
    content = [(number, line) for number, line in enumerate(lines, start=1) if line and not line.startswith("##")]
    if len(content) != 1:
        raise ValueError(f"{path} has {len(content)} lines of weights; expected one, such as '1:0.25 2:0.75'.")
    number, line = content[0]
    where = f"{path}:{number}"
    weights = parse_weights(line.partition("#")[0].split(), where)
    constant = weights.pop(0, None)
    if constant is not None and kind == _LINEAR[0]:
        raise ValueError(f"{where}: feature 0; features of {kind} count from 1.")
    if not weights:
        raise ValueError(f"{where}: no feature has a weight; expected at least one, such as '1:0.25'.")
    last = max(weights)
    if n_features is None:
        n_features = last
    elif _validation.check_number("n_features", n_features, at_least=1, integer=True) < last:
        raise ValueError(f"n_features={n_features}: {where} has a weight for feature {last}.")
    return as_model(weights, n_features)
