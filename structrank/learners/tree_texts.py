"""Checks of the texts of trained trees from model files.

LightGBM and XGBoost trust the text that they read: a child or feature out of range makes them read other memory, and a cycle
never ends. Texts from a file are therefore checked before either library sees them.
"""

from __future__ import annotations

import json
import re

import numpy as np

_LARGEST = 2**31 - 1
_INTEGER = re.compile(r"(0|[1-9][0-9]{0,9})")
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf|nan)"
_NUMBERS = re.compile(rf" *(?:{_NUMBER}(?: +{_NUMBER})*)? *")
_OBJECTIVE = re.compile(r"[a-z_0-9]+( [a-z_]+(:\S+)?)*")
_PARAMETER = re.compile(r"\[[a-z0-9_]+: .*\]|parameters:")

# Arrays of LightGBM's trees: with one entry per split, and per leaf.
OF_SPLITS = (
    *("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"),
    *("internal_value", "internal_weight", "internal_count"),
)
OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_OF_LINEAR_LEAVES = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
_TREE_KEYS = {*OF_SPLITS, *OF_LEAVES, *_OF_LINEAR_LEAVES, "num_leaves", "num_cat", "cat_boundaries", "cat_threshold"}
_TREE_KEYS |= {"is_linear", "shrinkage"}

# Arrays of XGBoost's trees with one entry per node.
_INTEGERS_OF_NODES = ("left_children", "right_children", "parents", "split_indices", "split_type", "default_left")
_OF_NODES = (*_INTEGERS_OF_NODES, "split_conditions", "base_weights", "loss_changes", "sum_hessian")
_MOST_CATEGORY_BITS = 2**31  # XGBoost allocates a bit for each category up to the largest of a split


def check_lightgbm_text(text, n_features, n_outputs=1):
    r"""Raise unless a text is a model of LightGBM whose trees are trees over these features.

    Parameters
    ----------
    text : str
    n_features : int
    n_outputs : int, default 1
        Number of values that the model computes for a document.

    Examples
    --------
    >>> check_lightgbm_text("tree\nnum_class=1", 3)
    Traceback (most recent call last):
        ...
    ValueError: the text of LightGBM's trees has no header
    """
    content = _as_bytes(text, "LightGBM")
    if b"\r" in content:
        raise ValueError("the text of LightGBM's trees has a return, where LightGBM would end the line")
    head, separator, body = content.partition(b"\n\n")
    if not separator or not head.startswith(b"tree\n"):
        raise ValueError("the text of LightGBM's trees has no header")
    header = _lines(head.decode().split("\n")[1:], "the header of LightGBM's trees")
    for name in ("num_class", "num_tree_per_iteration"):
        _check_equal(name, _integer(header, name), n_outputs)
    _check_equal("max_feature_idx", _integer(header, "max_feature_idx"), n_features - 1)
    for name in ("feature_names", "feature_infos"):
        _check_equal(f"the number of {name}", len(header.get(name, "").split(" ")), n_features)
    if "objective" in header:
        _check_objective(header["objective"], n_outputs)
    sizes = [_as_integer(size, "tree_sizes") for size in header.get("tree_sizes", "").split()]
    if len(sizes) % n_outputs:
        raise ValueError(f"there are {len(sizes)} trees, which are not rounds of {n_outputs}")
    start = 0
    for number, size in enumerate(sizes):
        block = body[start : start + size].decode()
        if not block.startswith(f"Tree={number}\n") or not block.endswith("\n\n"):
            raise ValueError(f"tree_sizes does not give the place of tree {number}")
        try:
            _check_lightgbm_tree(_lines(block.strip("\n").split("\n")[1:], "it", _TREE_KEYS), n_features)
        except ValueError as error:
            raise ValueError(f"tree {number} of LightGBM is not valid: {error}") from None
        start += size
    end = b"end of trees\n"
    if not body.startswith(end, start):
        raise ValueError("the text of LightGBM's trees does not end where tree_sizes says")
    _check_lightgbm_parameters(body[start + len(end) :].decode())


def _check_lightgbm_parameters(text):
    """Raise unless the lines of LightGBM's own parameters have a name and a value, which it does not check."""
    _, _, listed = f"\n{text}".partition("\nparameters:\n")
    for line in listed.partition("\nend of parameters")[0].split("\n"):
        if line and not _PARAMETER.fullmatch(line):
            raise ValueError(f"the parameters of LightGBM have the line {line[:40]!r}; expected [name: value]")


def _check_objective(objective, n_outputs):
    """Raise unless LightGBM's conversion of outputs has a name, and matches their number; it checks neither."""
    if not _OBJECTIVE.fullmatch(objective):
        raise ValueError(f"the objective is {objective!r}; expected a name and its parameters")
    words = objective.split(" ")
    classes = [word for word in words if word.startswith("num_class:")]
    if classes != ([f"num_class:{n_outputs}"] if words[0].startswith("multiclass") else []):
        raise ValueError(f"the objective {objective!r} does not compute {n_outputs} value(s)")


def _check_lightgbm_tree(tree, n_features):
    n_leaves, n_categorical = _integer(tree, "num_leaves"), _integer(tree, "num_cat")
    if n_leaves < 1:
        raise ValueError("it has no leaf")
    n = n_leaves - 1
    for name in OF_SPLITS:
        _check_equal(f"the length of {name}", _array(tree, name).size, n)
    for name in OF_LEAVES:
        found = _array(tree, name).size
        if found != n_leaves and (n or name == "leaf_value" or found):  # a single leaf needs nothing but its value
            raise ValueError(f"the length of {name} is {found}; expected {n_leaves}")
    _check_range("split_feature", _integers(tree, "split_feature"), 0, n_features - 1)
    kind = _integers(tree, "decision_type")
    _check_range("decision_type", kind, 0, 11)  # a bit each for categories and for missing values, and the kind of the latter
    # Splits are numbered in order of growth, so that no child comes before its parent.
    left, right = _integers(tree, "left_child"), _integers(tree, "right_child")
    children = np.concatenate([left, right])
    _check_range("a child", children, -n_leaves, n - 1)
    inner = children >= 0
    if np.any(children[inner] <= np.tile(np.arange(n), 2)[inner]):
        raise ValueError("a child comes before its parent")
    if n and not np.array_equal(np.sort(children), np.concatenate([np.arange(-n_leaves, 0), np.arange(1, n)])):
        raise ValueError("a node is the child of two nodes")
    _check_categories(tree, n_categorical, _array(tree, "threshold")[kind % 2 == 1])
    linear = tree.get("is_linear", "0")
    if linear not in ("0", "1"):
        raise ValueError(f"is_linear is {linear!r}; expected 0 or 1")
    if linear == "1":
        counts = _integers(tree, "num_features")
        _check_equal("the length of num_features", counts.size, n_leaves)
        _check_equal("the length of leaf_const", _array(tree, "leaf_const").size, n_leaves)
        _check_range("num_features", counts, 0, n_features)
        _check_range("leaf_features", _integers(tree, "leaf_features"), 0, n_features - 1)
        for name in ("leaf_features", "leaf_coeff"):
            _check_equal(f"the length of {name}", _array(tree, name).size, counts.sum())
    _check_equal("the length of shrinkage", _array(tree, "shrinkage").size, 1)


def _check_categories(tree, n_categorical, thresholds):
    """Raise unless the sets of categories are complete, and each categorical split has one."""
    if np.any((thresholds != np.floor(thresholds)) | (thresholds < 0) | (thresholds >= n_categorical)):
        raise ValueError("a categorical split has no set of categories")
    if n_categorical:
        bounds, sets = _integers(tree, "cat_boundaries"), _integers(tree, "cat_threshold", 2**32 - 1)
        _check_equal("the length of cat_boundaries", bounds.size, n_categorical + 1)
        if bounds[0] != 0 or np.any(np.diff(bounds) < 0) or bounds[-1] != sets.size:
            raise ValueError("cat_boundaries does not divide cat_threshold")
        _check_range("cat_threshold", sets, 0, 2**32 - 1)


def check_xgboost_text(text, n_features):
    """Raise unless a text is a ranking model of XGBoost, in JSON, whose trees are trees over these features.

    Examples
    --------
    >>> check_xgboost_text('{"learner": 1}', 3)
    Traceback (most recent call last):
        ...
    ValueError: the text of XGBoost's trees has no 'learner' in it
    """
    content = _as_bytes(text, "XGBoost")
    try:
        model = json.loads(content, object_pairs_hook=_without_repetition)
    except RecursionError:
        raise ValueError("the text of XGBoost's trees is nested too deeply") from None
    learner = _part(model, "learner", "it")
    booster, parameters = _part(learner, "gradient_booster", "learner"), _part(learner, "learner_model_param", "learner")
    version = model.get("version")
    if not isinstance(version, list) or len(version) != 3 or not all(type(n) is int and 0 <= n < 1000 for n in version):
        raise ValueError(f"version is {version!r}; expected three numbers")
    _check_equal("num_feature", _integer(parameters, "num_feature"), n_features)
    _check_range("num_class", _integer(parameters, "num_class"), 0, 1)
    if "num_target" in parameters:
        _check_equal("num_target", _integer(parameters, "num_target"), 1)
    if not re.fullmatch(rf"{_NUMBER}|\[{_NUMBER}\]", str(parameters.get("base_score"))):
        raise ValueError("base_score is not a number")
    _check_equal("feature_names", learner.get("feature_names", []), [])  # its rankers are trained on arrays
    if not str(_part(learner, "objective", "learner").get("name")).startswith("rank:"):
        raise ValueError("the objective is not one of ranking")
    kind = booster.get("name")
    if kind == "gblinear":
        weights = _numbers_of(_part(booster, "model", "gradient_booster"), "weights")
        _check_equal("the length of weights", weights.size, n_features + 1)
        return
    if kind == "dart":
        dropped, booster = _numbers_of(booster, "weight_drop"), _part(booster, "gbtree", "gradient_booster")
        _check_equal("the length of weight_drop", dropped.size, _check_xgboost_trees(booster, n_features))
    elif kind == "gbtree":
        _check_xgboost_trees(booster, n_features)
    else:
        raise ValueError(f"the booster is {kind!r}; expected gbtree, dart or gblinear")


def _check_xgboost_trees(booster, n_features):
    """Raise unless the trees are valid; return their number."""
    model = _part(booster, "model", "gradient_booster")
    trees, parameters = model.get("trees"), _part(model, "gbtree_model_param", "the model")
    if not isinstance(trees, list):
        raise ValueError("the text of XGBoost's trees has no 'trees'")
    _check_equal("num_trees", _integer(parameters, "num_trees"), len(trees))
    _check_range("num_parallel_tree", _integer(parameters, "num_parallel_tree"), 0, max(len(trees), 1))
    groups = _numbers_of(model, "tree_info", integer=True)
    _check_equal("the length of tree_info", groups.size, len(trees))
    _check_range("tree_info", groups, 0, 0)
    if "iteration_indptr" in model:
        rounds = _numbers_of(model, "iteration_indptr", integer=True)
        if not rounds.size or rounds[0] != 0 or rounds[-1] != len(trees) or np.any(np.diff(rounds) < 0):
            raise ValueError("iteration_indptr does not divide the trees into rounds")
    if "cats" in model and any(_part(model, "cats", "the model").values()):
        raise ValueError("cats holds categories, which no ranker of structrank has")
    for number, tree in enumerate(trees):
        try:
            _check_xgboost_tree(tree, number, n_features)
        except ValueError as error:
            raise ValueError(f"tree {number} of XGBoost is not valid: {error}") from None
    return len(trees)


def _check_xgboost_tree(tree, number, n_features):
    parameters = _part(tree, "tree_param", "it")
    _check_equal("id", tree.get("id"), number)  # its place in the array that XGBoost fills
    n, n_deleted = _integer(parameters, "num_nodes"), _integer(parameters, "num_deleted")
    _check_equal("num_feature", _integer(parameters, "num_feature"), n_features)
    _check_range("size_leaf_vector", _integer(parameters, "size_leaf_vector"), 0, 1)
    if n < 1:
        raise ValueError("it has no node")
    arrays = {name: _numbers_of(tree, name, integer=name in _INTEGERS_OF_NODES) for name in _OF_NODES}
    for name, array in arrays.items():
        _check_equal(f"the length of {name}", array.size, n)
    for name in ("split_type", "default_left"):
        _check_range(name, arrays[name], 0, 1)
    left, right = arrays["left_children"], arrays["right_children"]
    for children in (left, right):
        _check_range("a child", children, -1, n - 1)
    if np.any((left < 0) != (right < 0)):
        raise ValueError("a node has one child")
    parents, split = np.full(n, _LARGEST), np.flatnonzero(left >= 0)
    seen, level = np.zeros(n, dtype=bool), np.zeros(1, dtype=np.int64)
    seen[0] = True
    while level.size:
        level = level[left[level] >= 0]
        below = np.concatenate([left[level], right[level]])
        if np.any(seen[below]) or np.unique(below).size < below.size:
            raise ValueError("a node is the child of two nodes, or of a node below it")
        seen[below] = True
        parents[below] = np.tile(level, 2)
        level = below
    _check_equal("the number of nodes that no path reaches", int(n - seen.sum()), n_deleted)
    _check_range("split_indices", arrays["split_indices"][seen], 0, n_features - 1)  # deleted nodes have another value
    if np.any((arrays["parents"] != parents)[seen]):
        raise ValueError("parents contradicts the children")
    _check_xgboost_categories(tree, split[arrays["split_type"][split] == 1], n)
    if np.any(arrays["split_type"][left < 0]):
        raise ValueError("a leaf has categories")


def _check_xgboost_categories(tree, splits, n_nodes):
    names = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    nodes, starts, sizes, categories = (_numbers_of(tree, name, integer=True) for name in names)
    if not np.array_equal(nodes, splits):
        raise ValueError("categories_nodes does not list the categorical splits")
    _check_equal("the length of categories_segments", starts.size, nodes.size)
    _check_equal("the length of categories_sizes", sizes.size, nodes.size)
    _check_range("categories_sizes", sizes, 1, _LARGEST)
    if not np.array_equal(starts, np.cumsum(sizes) - sizes) or sizes.sum() != categories.size:
        raise ValueError("categories_segments does not divide categories")
    _check_range("categories", categories, 0, _LARGEST)
    if nodes.size and np.maximum.reduceat(categories, starts).sum() > _MOST_CATEGORY_BITS:
        raise ValueError("categories are too large")


# ---- Values


def _as_bytes(text, library):
    if not isinstance(text, str):
        raise ValueError(f"the text of {library}'s trees is a {type(text).__name__}")
    if "\0" in text:
        raise ValueError(f"the text of {library}'s trees has a zero byte, where the library would stop reading")
    return text.encode()


def _lines(lines, where, known=None):
    """Return the lines ``key=value`` as a dict; raise if a key is repeated or not known."""
    found = {}
    for line in lines:
        key, _, value = line.partition("=")
        if key in found or (known is not None and key not in known):
            raise ValueError(f"{where} has the line {line[:40]!r}, which is repeated or not known")
        found[key] = value
    return found


def _as_integer(value, name):
    if not isinstance(value, str) or not _INTEGER.fullmatch(value) or int(value) > _LARGEST:
        raise ValueError(f"{name} is {str(value)[:40]!r}; expected an integer")
    return int(value)


def _integer(values, name):
    return _as_integer(values.get(name), name)


def _array(tree, name):
    value = tree.get(name)
    if value is None or not _NUMBERS.fullmatch(value):
        raise ValueError(f"{name} is not a list of numbers")
    return np.array(value.split(), dtype=np.float64)


def _integers(tree, name, largest=_LARGEST):
    values = _array(tree, name)
    if not np.all((values == np.floor(values)) & (np.abs(values) <= largest)):
        raise ValueError(f"{name} is not a list of integers")
    return values.astype(np.int64)


def _part(value, name, where):
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"the text of XGBoost's trees has no {name!r} in {where}")
    return found


def _numbers_of(part, name, integer=False):
    """Return a list of numbers as an array."""
    values = part.get(name)
    if not isinstance(values, list):
        raise ValueError(f"{name} is not a list")
    if not set(map(type, values)) <= ({int, bool} if integer else {int, float}):
        raise ValueError(f"{name} is not a list of {'integers' if integer else 'numbers'}")
    try:
        array = np.array(values, dtype=np.int64 if integer else np.float64)
    except OverflowError:
        array = np.array([np.inf])
    if np.any(np.abs(array) > (_LARGEST if integer else np.finfo(np.float32).max)):  # categorical splits have the threshold nan
        raise ValueError(f"{name} has a number out of range")
    return array


def _without_repetition(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the text of XGBoost's trees repeats a name")
    return found


def _check_equal(name, found, expected):
    if found != expected:
        raise ValueError(f"{name} is {found}; expected {expected}")


def _check_range(name, values, least, most):
    values = np.asarray(values)
    if np.any((values < least) | (values > most)):
        wrong = values[(values < least) | (values > most)].flat[0]
        raise ValueError(f"{name} is {wrong}; expected {least} to {most}")
