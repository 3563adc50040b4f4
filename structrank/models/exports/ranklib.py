"""Model files of RankLib: linear models as Coordinate Ascent, trees as LambdaMART."""

from __future__ import annotations

from typing import Any

from structrank._support.files import replace_file
from structrank._support.typing import Path
from structrank.models.exports.linear import linear_function
from structrank.models.exports.trees import forest_of, has_trees
from structrank.models.exports.weight_text import format_weights

LINEAR = ("Coordinate Ascent", "Linear Regression")


def to_ranklib(model: Any, path: Path, *, scaler: Any = None) -> None:
    """Write a linear model as a Coordinate Ascent model of RankLib, trees as LambdaMART; feature i is column i of X, from 1.

    The scaler is folded into the weights or thresholds: the file expects unscaled features. Coordinate Ascent has no constant
    term, so scores may differ from those of a linear model by a constant; rankings do not. RankLib reads features, thresholds
    and leaves in 32 bits; see `to_solr` for the consequences and for `McRank`.

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
    if has_trees(model):
        forest = forest_of(model, scaler).sum_of_trees("RankLib").in_single_precision("RankLib")
        text = f"## LambdaMART\n## No. of trees = {len(forest.trees)}\n\n{_ensemble(forest)}"
    else:
        text = f"## {LINEAR[0]}\n{format_weights(linear_function(model, scaler).raw_weights)}"
    replace_file(path, f"{text}\n".encode("ascii"), "the model")


def _ensemble(forest):
    roots = [
        tree.render(
            lambda node, values=tree.values: f"<output> {values[node]} </output>\n",
            lambda node, left, right, tree=tree: (
                f"<feature> {tree.features[node] + 1} </feature>\n<threshold> {tree.thresholds[node]} </threshold>\n"
                f'<split pos="left">\n{left}</split>\n<split pos="right">\n{right}</split>\n'
            ),
        )
        for tree in forest.trees
    ]
    if forest.constant:
        roots.append(f"<output> {forest.constant!r} </output>\n")
    trees = [
        f'<tree id="{number}" weight="1.0">\n<split>\n{root}</split>\n</tree>\n' for number, root in enumerate(roots, start=1)
    ]
    return f"<ensemble>\n{''.join(trees)}</ensemble>"
