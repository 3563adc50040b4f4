"""Boosting with trees of scikit-learn, for where LightGBM is not installed.

The names are those of LightGBM, as far as `structrank.learners.boosting` uses them, and so is the text format of the trees:
models are saved, resumed and exported like those of LightGBM. Trees grow leaf by leaf, by LightGBM's criterion, except that
`lambda_l2` shrinks the leaves and does not count in the choice of splits. A threshold may lie between any two values of a
feature, not only between 255 bins, and all features are held as a dense matrix, so that training takes more time and memory.
"""

from __future__ import annotations

import copy
import re

import numpy as np
import scipy.sparse
import scipy.special
import sklearn
from sklearn.tree import DecisionTreeRegressor

from structrank.learners.tree_texts import OF_LEAVES, OF_SPLITS
from structrank.models.exports.trees import LIGHTGBM_ZERO, fields_of

__version__ = f"none; trees of scikit-learn {sklearn.__version__}"
NOTES = (
    "The trees are scikit-learn's (DecisionTreeRegressor), because LightGBM is not installed: pip install structrank[trees].",
)

_BLOCK = 4096  # rows that are dense at a time
_INTEGERS = ("split_feature", "decision_type", "left_child", "right_child", "leaf_count", "internal_count")
_NO_MISSING = 2  # decision_type of a split at a threshold


class basic:
    """Stands for the module of LightGBM that has its errors."""

    class LightGBMError(Exception):
        """Never raised here."""


class Dataset:
    """Features as ranks among the distinct values of their column, targets, weights and first scores.

    Ranks lose nothing when scikit-learn rounds features to 32 bits.
    """

    def __init__(self, data, label=None, weight=None, init_score=None, params=None):
        self.X, self.label, self.weight, self.init_score = data, label, weight, init_score
        self._least = params["min_data_in_leaf"]
        self.ranks = np.empty(data.shape, dtype=np.float32, order="F")
        self.distinct = []
        columns = data.tocsc() if scipy.sparse.issparse(data) else data
        for feature in range(data.shape[1]):
            distinct, self.ranks[:, feature] = np.unique(_dense(columns[:, [feature]])[:, 0], return_inverse=True)
            self.distinct.append(distinct.astype(np.float64))

    def construct(self):
        """Return the data: nothing is deferred."""
        return self

    def feature_num_bin(self, feature):
        """Return the number of distinct values of a feature; 1 if no split leaves enough documents on both sides."""
        below = np.cumsum(np.bincount(self.ranks[:, feature].astype(np.int64)))
        fits = (below >= self._least) & (below[-1] - below >= self._least)
        return below.size if fits.any() else 1

    def subset(self, _, params=None):
        """Return the same rows, for other targets."""
        return copy.copy(self)

    def set_label(self, label):
        """Set the targets."""
        self.label = label

    def set_weight(self, weight):
        """Set the weights."""
        self.weight = weight

    def set_init_score(self, init_score):
        """Set the scores that boosting starts from."""
        self.init_score = init_score

    def create_valid(self, data, init_score=None, params=None):
        """Return what `Booster.add_valid` takes."""
        return data, init_score

    def threshold(self, feature, rank):
        """Return a number between the values of a feature with the ranks below and above `rank`."""
        low, high = self.distinct[feature][int(rank)], self.distinct[feature][int(rank) + 1]
        middle = low / 2 + high / 2
        return middle if low < middle < high and abs(middle) > LIGHTGBM_ZERO else low


class _Scored:
    """Documents with their current scores, one column for each output."""

    def __init__(self, X, init_score, start):
        self.X = X
        self.scores = np.zeros((X.shape[0], start.size)) + (
            start if init_score is None else np.reshape(init_score, (-1, start.size))
        )


class Booster:
    """Boosted trees: new ones from settings and a `Dataset`, or trained ones from a text.

    A tree is a dict of arrays with the names of LightGBM's text format; `left_child` and `right_child` are numbers of splits,
    or -1 minus the number of a leaf.

    Examples
    --------
    >>> X, y = np.arange(8.0).reshape(-1, 1), np.repeat([0, 1], 4)
    >>> settings = {"num_leaves": 2, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0, "lambda_l2": 0.0, "seed": 0}
    >>> settings |= {"learning_rate": 1.0, "bagging_fraction": 1.0, "feature_fraction": 1.0, "min_gain_to_split": 0.0}
    >>> booster = Booster({**settings, "objective": "binary"}, Dataset(X, y, params=settings))
    >>> booster.update(), booster.predict(X).round(2)  # no split? the log-odds of both leaves move by 2
    (False, array([0.12, 0.12, 0.12, 0.12, 0.88, 0.88, 0.88, 0.88]))
    >>> np.array_equal(Booster(model_str=booster.model_to_string()).predict(X), booster.predict(X))
    True
    """

    def __init__(self, params=None, train_set=None, model_str=None):
        self.trees = []
        if model_str is not None:
            self._read(model_str)
            return
        self._params, self._data, self.n_features = {"min_gain_to_split": 0.0, **params}, train_set, train_set.X.shape[1]
        self._kind, self._n_outputs = params["objective"], params.get("num_class", 1)
        self._rng = np.random.default_rng(params["seed"])
        weights = np.ones(train_set.X.shape[0]) if train_set.weight is None else np.asarray(train_set.weight, dtype=np.float64)
        self._weights, self._targets = weights, _targets(self._kind, train_set.label, self._n_outputs)
        self._start = np.zeros(self._n_outputs)
        if train_set.init_score is None and self._targets is not None:
            shares = np.clip(weights @ self._targets / weights.sum(), 1e-15, 1 - 1e-15)
            self._start = np.log(shares) if self._kind == "multiclass" else scipy.special.logit(shares)
        self._train, self._valid = _Scored(train_set.X, train_set.init_score, self._start), None
        low, high = ([float(distinct[end]) for distinct in train_set.distinct] for end in (0, -1))
        self._infos = " ".join(f"[{a!r}:{b!r}]" for a, b in zip(low, high, strict=True))

    def add_valid(self, data, name):
        """Keep the scores of further documents up to date."""
        self._valid = _Scored(*data, self._start)

    def reset_parameter(self, params):
        """Change settings."""
        self._params |= params

    def update(self, fobj=None):
        """Grow a tree for each output; return whether there is no split, in which case only the first round adds trees."""
        gradient, second = self._derivatives() if fobj is None else fobj(_squeezed(self._train.scores), None)
        gradient, second = (np.reshape(each, (-1, self._n_outputs)) for each in (gradient, second))
        n_docs, share = gradient.shape[0], self._params["bagging_fraction"]
        bag = np.sort(self._rng.choice(n_docs, max(int(share * n_docs), 1), replace=False)) if share < 1 else slice(None)
        grown = [self._grow(bag, gradient[bag, output], second[bag, output]) for output in range(self._n_outputs)]
        first = self._start if not self.trees else np.zeros(self._n_outputs)
        if not any(grown) and self.trees:
            return True
        for output, tree in enumerate(tree or _constant() for tree in grown):
            for part in (self._train, self._valid):
                if part is not None:
                    part.scores[:, output] += tree["leaf_value"][_leaves(tree, part.X)]
            tree["leaf_value"] = first[output] + tree["leaf_value"]
            self.trees.append(tree)
        return not any(grown)

    def _derivatives(self):
        p = self._converted(self._train.scores).reshape(self._targets.shape)
        factor = self._n_outputs / (self._n_outputs - 1) if self._kind == "multiclass" else 1.0  # as in LightGBM
        weights = self._weights[:, None]
        return weights * (p - self._targets), weights * factor * p * (1.0 - p)

    def _grow(self, bag, gradient, second):
        """Return a tree with the sum of gradients over the sum of second derivatives in its leaves; None without a split."""
        chosen = self._draw_features()
        total, settings = second.sum(), self._params
        if settings["min_gain_to_split"] > 0 or not total > 0 or 2 * settings["min_sum_hessian_in_leaf"] > total:
            return None
        # The squared error of steps -g / h, weighted by h, decreases by the gain of LightGBM.
        steps = np.divide(-gradient, second, out=np.zeros_like(gradient), where=second > 0)
        found = DecisionTreeRegressor(
            max_leaf_nodes=settings["num_leaves"],
            min_samples_leaf=settings["min_data_in_leaf"],
            min_weight_fraction_leaf=settings["min_sum_hessian_in_leaf"] / total,
            random_state=settings["seed"] % 2**32,
        )
        found = found.fit(self._data.ranks[bag][:, chosen], steps, sample_weight=second / total).tree_
        if found.node_count == 1:
            return None
        return self._converted_tree(found, chosen, total, bag, gradient, second)

    def _draw_features(self):
        share = self._params["feature_fraction"]
        if share == 1:
            return np.arange(self.n_features)
        return np.sort(self._rng.choice(self.n_features, max(round(share * self.n_features), 1), replace=False))

    @np.errstate(over="ignore")  # the caller checks scores
    def _converted_tree(self, found, chosen, total, bag, gradient, second):
        """Return a tree of scikit-learn as one of LightGBM."""
        is_leaf = found.children_left < 0
        number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
        inner, left, right = ~is_leaf, found.children_left[~is_leaf], found.children_right[~is_leaf]
        weight = total * found.weighted_n_node_samples
        error = weight * found.impurity
        features = chosen[found.feature[inner]]
        ranks = found.threshold[inner]
        tree = {
            "split_feature": features,
            "split_gain": np.maximum(error[inner] - error[left] - error[right], 0.0),
            "threshold": np.array([self._data.threshold(*each) for each in zip(features, ranks, strict=True)]),
            "decision_type": np.full(features.size, _NO_MISSING),
            "left_child": number[left],
            "right_child": number[right],
            "internal_value": self._params["learning_rate"] * found.value[inner, 0, 0],
            "internal_weight": weight[inner],
            "internal_count": found.n_node_samples[inner],
            "leaf_weight": weight[is_leaf],
            "leaf_count": found.n_node_samples[is_leaf],
        }
        leaves = _leaves(tree, self._data.X[bag])
        sums = [np.bincount(leaves, each, minlength=features.size + 1) for each in (-gradient, second)]
        shrunk = sums[1] + self._params["lambda_l2"]
        values = np.divide(sums[0], shrunk, out=np.zeros_like(shrunk), where=shrunk > 0)
        return {**tree, "leaf_value": self._params["learning_rate"] * values}

    def _converted(self, scores):
        """Return probabilities of classes, if the objective has them, or else scores."""
        if self._kind == "multiclass":
            return scipy.special.softmax(scores, axis=1)
        return _squeezed(scipy.special.expit(scores) if self._kind == "binary" else scores)

    def eval_train(self, feval):
        """Call `feval` with the outputs for the training data."""
        feval(self._converted(self._train.scores), self._train)

    def eval_valid(self, feval):
        """Call `feval` with the outputs for the data of `add_valid`."""
        feval(self._converted(self._valid.scores), self._valid)

    def predict(self, X, raw_score=False, pred_leaf=False, start_iteration=0, num_iteration=None, num_threads=None):
        """Return the outputs of some rounds, or the leaf of each of their trees."""
        per_round = self._n_outputs
        end = None if num_iteration is None else (start_iteration + num_iteration) * per_round
        trees = self.trees[start_iteration * per_round : end]
        if pred_leaf:
            return np.stack([_leaves(tree, X) for tree in trees], axis=1)
        scores = np.zeros((X.shape[0], per_round))
        for place, tree in enumerate(trees):
            scores[:, place % per_round] += tree["leaf_value"][_leaves(tree, X)]
        if raw_score:
            return _squeezed(scores)
        return self._converted(scores)

    def num_trees(self):
        """Return the number of trees of all outputs."""
        return len(self.trees)

    def num_model_per_iteration(self):
        """Return the number of trees of a round."""
        return self._n_outputs

    def set_leaf_output(self, tree_id, leaf_id, value):
        """Replace the value of a leaf; scores of training are not updated."""
        self.trees[tree_id]["leaf_value"][leaf_id] = value

    def feature_importance(self, importance_type):
        """Return the total gain of the splits at each feature."""
        gains = np.zeros(self.n_features)
        for tree in self.trees:
            np.add.at(gains, tree["split_feature"], tree["split_gain"])
        return gains

    def model_to_string(self, num_iteration=None):
        """Return the trees of the first rounds, by default of all, in LightGBM's text format."""
        trees = self.trees[: num_iteration * self._n_outputs] if num_iteration else self.trees
        blocks = [_as_text(number, tree) for number, tree in enumerate(trees)]
        objective = self._objectives()[self._kind]
        head = [
            *("tree", "version=v4", f"num_class={self._n_outputs}", f"num_tree_per_iteration={self._n_outputs}"),
            *("label_index=0", f"max_feature_idx={self.n_features - 1}"),
            *([f"objective={objective}"] if objective else []),
            "feature_names=" + " ".join(f"Column_{feature}" for feature in range(self.n_features)),
            f"feature_infos={self._infos}",
            "tree_sizes=" + " ".join(str(len(block)) for block in blocks),
        ]
        return "\n".join(head) + "\n\n" + "".join(blocks) + "end of trees\n\npandas_categorical:null\n"

    def _read(self, text):
        header, *blocks = re.split(r"^Tree=\d+$", text.split("\nend of trees")[0], flags=re.MULTILINE)
        known = fields_of(header)
        self._n_outputs, self.n_features = int(known["num_tree_per_iteration"]), int(known["max_feature_idx"]) + 1
        kinds = {objective: kind for kind, objective in self._objectives().items()}
        objective = known.get("objective", "")
        if objective not in kinds or "average_output" in header.splitlines():
            raise ImportError(f"trees with the objective {objective!r} need LightGBM: pip install structrank[trees]")
        self._kind, self._infos = kinds[objective], known["feature_infos"]
        self.trees = [_read_tree(fields_of(block)) for block in blocks]

    def _objectives(self):
        """Return the objectives in LightGBM's text format, by name."""
        return {"none": "", "multiclass": f"multiclass num_class:{self._n_outputs}", "binary": "binary sigmoid:1"}


def _targets(kind, label, n_classes):
    """Return the targets of classification, one column for each output; None for an objective of derivatives."""
    if kind == "multiclass":
        return (np.asarray(label)[:, None] == np.arange(n_classes)).astype(np.float64)
    return np.asarray(label, dtype=np.float64)[:, None] if kind == "binary" else None


def _squeezed(scores):
    """Return the only column of scores as a vector, or several as they are."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _dense(rows):
    """Return rows as a dense array in which what LightGBM takes for 0 is 0."""
    rows = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    return np.where(np.abs(rows) <= LIGHTGBM_ZERO, 0.0, rows)


def _leaves(tree, X):
    """Return the leaf of each document."""
    found = np.zeros(X.shape[0], dtype=np.int64)
    if not tree["split_feature"].size:
        return found
    for start in range(0, X.shape[0], _BLOCK):
        rows = _dense(X[start : start + _BLOCK])
        node, inside = np.zeros(rows.shape[0], dtype=np.int64), np.arange(rows.shape[0])
        while inside.size:
            at = node[inside]
            goes_left = rows[inside, tree["split_feature"][at]] <= tree["threshold"][at]
            node[inside] = np.where(goes_left, tree["left_child"][at], tree["right_child"][at])
            inside = inside[node[inside] >= 0]
        found[start : start + _BLOCK] = ~node
    return found


def _constant():
    """Return a tree without splits, of value 0."""
    empty = {name: np.empty(0, dtype=np.int64 if name in _INTEGERS else np.float64) for name in OF_SPLITS}
    return {**empty, "leaf_value": np.zeros(1), "leaf_weight": np.zeros(1), "leaf_count": np.zeros(1, dtype=np.int64)}


def _as_text(number, tree):
    lines = [f"Tree={number}", f"num_leaves={tree['leaf_value'].size}", "num_cat=0"]
    lines += [f"{name}=" + " ".join(map(repr, tree[name].tolist())) for name in (*OF_SPLITS, *OF_LEAVES)]
    return "\n".join([*lines, "is_linear=0", "shrinkage=1", "", "", ""])


def _read_tree(lines):
    tree = _constant()
    for name in tree:
        if name in lines:  # LightGBM writes few of them for a tree without splits
            tree[name] = np.array(lines[name].split(), dtype=np.int64 if name in _INTEGERS else np.float64)
    by_category, zero_is_missing = tree["decision_type"] & 1, (tree["decision_type"] >> 2 & 3) == 1
    if lines.get("is_linear", "0") != "0" or by_category.any() or zero_is_missing.any():
        raise ImportError(
            "trees with splits by category, linear functions in leaves or 0 as a missing value need LightGBM: "
            "pip install structrank[trees]"
        )
    return tree
