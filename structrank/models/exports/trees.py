"""Sums of decision trees, the common form of all exports of boosted trees."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank.models.exports.linear import (
    check_names,
    column_scaling,
    feature_names_of,
    last_step,
    linear_function,
    split_pipeline,
    warn_of_negative_scores,
)

_MISSING_IS_ZERO = 1  # LightGBM's zero_as_missing, in bits 2 and 3 of decision_type
LIGHTGBM_ZERO = 1.0000000180025095e-35  # LightGBM's threshold between 0 and positive numbers; smaller numbers are 0 to it


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree with nodes numbered from the root, 0, each node before its children.

    Attributes
    ----------
    features : (n_nodes,) array of int
        Column that a node compares; -1 in a leaf.
    thresholds : (n_nodes,) array
        A document goes left if its value is at most the threshold.
    left, right : (n_nodes,) array of int
        Children; -1 in a leaf.
    values : (n_nodes,) array
        Output of a leaf; 0 elsewhere.
    """

    features: np.ndarray
    thresholds: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray

    @property
    def is_leaf(self):
        """Whether a node is a leaf, (n_nodes,) of bool."""
        return self.features < 0

    def predict(self, X):
        """Return the output for each row of a dense matrix."""
        nodes = np.zeros(X.shape[0], dtype=np.int64)
        rows = np.arange(X.shape[0])
        while (inner := ~self.is_leaf[nodes]).any():
            at, row = nodes[inner], rows[inner]
            goes_left = X[row, self.features[at]] <= self.thresholds[at]
            nodes[inner] = np.where(goes_left, self.left[at], self.right[at])
        return self.values[nodes]

    def render(self, leaf, split):
        """Return the tree in another form, built from the leaves up.

        Parameters
        ----------
        leaf : callable
            ``leaf(node)`` returns a leaf in the other form.
        split : callable
            ``split(node, left, right)`` returns a node from its number and its children in the other form.
        """
        made = [None] * self.features.shape[0]
        for node in reversed(range(len(made))):  # children come after their parents
            if self.features[node] < 0:
                made[node] = leaf(node)
            else:
                made[node] = split(node, made[self.left[node]], made[self.right[node]])
        return made[0]


@dataclass(frozen=True, eq=False)
class Forest:
    """The sum of the outputs of trees and of a constant.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    trees : tuple of Tree
    constant : float

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaMART
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, random_state=0)
    >>> model = LambdaMART(n_estimators=5).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> forest = forest_of(model)
    >>> len(forest.trees), bool(np.allclose(forest.predict(fold.test.X), model.predict(fold.test.X), rtol=1e-12))
    (5, True)
    """

    names: tuple
    trees: tuple
    constant: float

    @property
    def used(self):
        """Columns that the trees compare, sorted."""
        return sorted({column for tree in self.trees for column in tree.features[~tree.is_leaf].tolist()})

    def predict(self, X):
        """Return the score of each row of a dense matrix, in 64 bits."""
        return sum((tree.predict(X) for tree in self.trees), start=np.full(X.shape[0], self.constant))

    def sum_of_trees(self, engine):
        """Return the forest itself; see `GradeForests.sum_of_trees`."""
        return self

    def for_engine(self, engine, shift):
        """Return the forest with thresholds and leaves of 32 bits, and the shift in its constant, after checks.

        A value of 32 bits goes left in the returned forest if and only if it goes left in this forest.
        """
        if shift is not None:
            forest = replace(self, constant=self.constant + checks.check_number("shift", shift))
        else:
            forest = self
            if self.constant + sum(float(tree.values[tree.is_leaf].min()) for tree in self.trees) < 0.0:
                warn_of_negative_scores(engine)
        return forest.in_single_precision(engine)

    def in_single_precision(self, engine):
        """Return the forest with thresholds and leaves of 32 bits; warn if this merges thresholds of a feature."""
        trees = []
        for tree in self.trees:
            with np.errstate(over="ignore"):
                values = tree.values.astype(np.float32)
            if not np.isfinite(values).all():
                raise ValueError(
                    f"a leaf has the value {tree.values[~np.isfinite(values)][0]:g}; {engine} computes in 32 bits."
                )
            tiny = (tree.thresholds >= 0.0) & (tree.thresholds <= LIGHTGBM_ZERO)
            thresholds = np.where(tiny, 0.0, tree.thresholds)
            trees.append(replace(tree, thresholds=round_down_to_single(thresholds), values=values))
        for feature, name in enumerate(self.names):
            before = np.unique(_thresholds_of(self.trees, feature))
            merged = np.diff(round_down_to_single(before)) == 0.0
            # LightGBM splits on both sides of 0; a scaler can turn these thresholds into neighbours with nothing between.
            if (merged & (np.diff(before) > 4 * np.spacing(np.abs(before[1:])))).any():
                text = (
                    f"{engine} rounds feature {name!r} to 32 bits, in which different thresholds of the trees are equal; "
                    "documents between them may swap. Subtract a constant from that feature, or scale it, and train again."
                )
                warnings.warn(text, checks.StructRankWarning, stacklevel=5)
        return replace(self, trees=tuple(trees))


@dataclass(frozen=True, eq=False)
class GradeForests:
    """Expected grades from several forests, as `McRank` computes them.

    Attributes
    ----------
    forests : tuple of Forest
        One for each grade (`softmax`), or one for each grade but the lowest.
    grades : (n_grades,) array
    softmax : bool
        Whether the outputs are logits of the grades; otherwise each is the log-odds of reaching its grade.
    """

    forests: tuple
    grades: np.ndarray
    softmax: bool

    @property
    def names(self):
        """Names of the features."""
        return self.forests[0].names

    @property
    def used(self):
        """Columns that the trees compare, sorted."""
        return sorted({column for forest in self.forests for column in forest.used})

    def predict(self, X):
        """Return the expected grade of each row of a dense matrix."""
        outputs = np.stack([forest.predict(X) for forest in self.forests], axis=1)
        if self.softmax:
            powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
            return powers @ self.grades / powers.sum(axis=1)
        return self.grades[0] + (1.0 / (1.0 + np.exp(-outputs))) @ np.diff(self.grades)

    def sum_of_trees(self, engine):
        """Return the log-odds of the higher grade, which rank as the expected grades do; raise for more than two grades."""
        if self.grades.shape[0] > 2:
            raise ValueError(
                f"McRank with {self.grades.shape[0]} grades computes an expected grade, which is not a sum of trees, the only "
                f"form that {engine} accepts. Export to ONNX or as an expression, or train with relevant_from= for two grades."
            )
        if not self.softmax:
            return self.forests[0]
        low, high = self.forests
        negated = tuple(replace(tree, values=-tree.values) for tree in low.trees)
        return Forest(low.names, high.trees + negated, high.constant - low.constant)


def has_trees(model):
    """Return whether a model, or the model of a Pipeline, consists of trees."""
    last = last_step(model)
    return hasattr(last, "trees_") or hasattr(last, "model_text_")


def texts_of(model):
    """Return the texts of the boosters of a fitted model."""
    check_is_fitted(model)
    texts = [model.model_text_] if hasattr(model, "model_text_") else getattr(model, "trees_", None)
    if not texts:
        raise ValueError(f"{type(model).__name__} has no trees in trees_ or model_text_; expected boosted trees.")
    return texts


def function_of(model, scaler=None, feature_names=None):
    """Return what a fitted model computes, a `Forest`, `GradeForests` or `LinearFunction` of features with checked names."""
    function = (forest_of if has_trees(model) else linear_function)(model, scaler, feature_names)
    check_names(function.names)
    return function


def forest_of(model, scaler=None, feature_names=None):
    """Return the `Forest` (of McRank, the `GradeForests`) that a fitted model computes from features before scaling.

    Parameters
    ----------
    model : tree model or Pipeline
        Fitted: `LambdaMART`, `McRank`, `LightGBMRanker`, `XGBoostRanker` and the like, with trees in LightGBM's text format
        in `trees_`, or in the format of LightGBM or XGBoost in `model_text_`.
    scaler, feature_names
        As for `structrank.models.exports.to_solr`.
    """
    model, scaler = split_pipeline(model, scaler)
    texts = texts_of(model)
    names = feature_names_of(model, scaler, feature_names)
    forests = [forest for text in texts for forest in (_read_xgboost if text.startswith("{") else _read_lightgbm)(text, names)]
    if scaler is not None:
        scale = column_scaling(scaler, len(names))
        forests = [replace(forest, trees=tuple(_unscaled(tree, scale) for tree in forest.trees)) for forest in forests]
    if hasattr(model, "grades_"):
        return GradeForests(tuple(forests), model.grades_, softmax=len(texts) == 1 and len(forests) > 1)
    (forest,) = forests
    return forest


def round_down_to_single(values):
    """Return the largest 32-bit numbers that are at most the values.

    Examples
    --------
    >>> float(round_down_to_single(np.array([0.1]))[0]) < 0.1
    True
    """
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return np.where(single > values, np.nextafter(single, np.float32(-np.inf)), single)


def _thresholds_of(trees, feature):
    return np.concatenate([tree.thresholds[tree.features == feature] for tree in trees] or [np.empty(0)])


def _ordered(features, thresholds, left, right, values):
    """Return a Tree of the nodes that the root, node 0, reaches, in an order with parents before children."""
    order, pending = [], [0]
    while pending:
        node = pending.pop()
        order.append(node)
        if left[node] >= 0:
            pending += [right[node], left[node]]
    place = np.full(len(left), -1)
    place[order] = np.arange(len(order))
    leaf = left[order] < 0
    return Tree(
        np.where(leaf, -1, features[order]),
        np.where(leaf, 0.0, thresholds[order]),
        np.where(leaf, -1, place[left[order]]),
        np.where(leaf, -1, place[right[order]]),
        np.where(leaf, values[order], 0.0),
    )


def _unscaled(tree, scale):
    """Return the tree for features before scaling, exact in every bit.

    A scaler does not decrease, also in floating-point arithmetic: bisection over the 64-bit numbers finds the largest one
    whose scaled value is at most the threshold.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    columns, wanted = tree.features[inner], tree.thresholds[inner]
    highest = int(np.finfo(np.float64).max.view(np.int64))
    low, high = np.full(inner.size, -highest), np.full(inner.size, highest)  # numbers in their order, as integers
    for _ in range(65):
        middle = (low >> 1) + (high >> 1) + (low & high & 1) + ((low ^ high) & 1)  # rounded up, without overflow
        with np.errstate(over="ignore"):
            fits = scale(_number_at(middle), columns) <= wanted
        low, high = np.where(fits, middle, low), np.where(fits, high, np.maximum(middle - 1, low))
    thresholds = tree.thresholds.copy()
    thresholds[inner] = _number_at(low)
    return replace(tree, thresholds=thresholds)


def _number_at(places):
    """Return the 64-bit numbers at places in their order, 0 for zero, 1 for the smallest positive number."""
    return np.copysign(np.abs(places).view(np.float64), places)


# ---- The formats of the libraries


def fields_of(text):
    """Return the lines ``name=value`` of a part of LightGBM's text format as a dict."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _read_lightgbm(text, names):
    """Return the forests of a model in LightGBM's text format, one for each output."""
    header, *blocks = text.split("\nend of trees")[0].split("\nTree=")
    known = fields_of(header)
    trees = [_read_lightgbm_tree(block) for block in blocks]
    n_outputs = int(known["num_tree_per_iteration"])
    if "average_output" in header.splitlines() and trees:  # a random forest
        trees = [replace(tree, values=tree.values * n_outputs / len(trees)) for tree in trees]
    return [Forest(names, tuple(trees[output::n_outputs]), 0.0) for output in range(n_outputs)]


def _read_lightgbm_tree(block):
    lines = fields_of(block)
    values = np.array(lines["leaf_value"].split(), dtype=np.float64)
    if lines.get("is_linear", "0") != "0" or lines["num_cat"] != "0":
        raise ValueError(
            "the trees have linear functions in their leaves or splits by category (linear_tree, categorical_feature); an "
            "export supports constant leaves and splits at thresholds."
        )
    n_inner = values.shape[0] - 1
    if n_inner == 0:
        return _ordered(np.array([-1]), np.zeros(1), np.array([-1]), np.array([-1]), values)
    columns = {name: np.array(lines[name].split(), dtype=np.int64) for name in ("split_feature", "decision_type")}
    children = [np.array(lines[name].split(), dtype=np.int64) for name in ("left_child", "right_child")]
    if ((columns["decision_type"] >> 2 & 3) == _MISSING_IS_ZERO).any():
        raise ValueError("the trees treat 0 as missing (zero_as_missing=True), which cannot be exported.")
    ends, zeros = np.full(values.shape[0], -1), np.zeros(n_inner)
    left, right = (np.append(np.where(child < 0, n_inner + ~child, child), ends) for child in children)
    thresholds = np.append(_around_zero(np.array(lines["threshold"].split(), dtype=np.float64)), np.zeros(values.shape[0]))
    return _ordered(np.append(columns["split_feature"], ends), thresholds, left, right, np.append(zeros, values))


def _around_zero(thresholds):
    """Return thresholds that send the numbers that LightGBM takes for 0 to the side of 0."""
    above, below = LIGHTGBM_ZERO, np.nextafter(-LIGHTGBM_ZERO, -np.inf)
    return np.where(np.abs(thresholds) <= above, np.where(thresholds < 0.0, below, above), thresholds)


def _read_xgboost(text, names):
    """Return the forest of a model in XGBoost's JSON format, as a list."""
    learner = json.loads(text)["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        raise ValueError(f"the booster of XGBoost is {booster['name']!r}; an export supports 'gbtree'.")
    trees = []
    for tree in booster["model"]["trees"]:
        if any(tree["split_type"]):
            raise ValueError("the trees have splits by category; an export supports splits at thresholds.")
        conditions = np.array(tree["split_conditions"], dtype=np.float32)  # the value, in a leaf
        children = (np.array(tree[side], dtype=np.int64) for side in ("left_children", "right_children"))
        columns = np.array(tree["split_indices"], dtype=np.int64)
        trees.append(_ordered(columns, _last_below(conditions), *children, conditions.astype(np.float64)))
    base = learner["learner_model_param"]["base_score"].strip("[]")
    return [Forest(names, tuple(trees), float(np.float32(base)))]


def _last_below(limits):
    """Return the largest 64-bit numbers that are below the limits after rounding to 32 bits, as XGBoost compares them."""
    below = np.nextafter(limits, np.float32(-np.inf)).astype(np.float64)
    middle = below + (limits.astype(np.float64) - below) / 2
    return np.where(middle.astype(np.float32) < limits, middle, np.nextafter(middle, -np.inf))
