"""ONNX files of linear models and trees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import structrank
from structrank._support import checks
from structrank._support.files import replace_file
from structrank._support.lazy import optional
from structrank._support.typing import Path
from structrank.models.exports.linear import LinearFunction, last_step
from structrank.models.exports.trees import Forest, function_of

# Versions from 2022, which runtimes since then read.
_IR, _OPSET, _TREE_OPSET = 8, 17, 3


def to_onnx(
    model: Any, path: Path, *, scaler: Any = None, feature_names: Sequence[str] | None = None, dtype: str = "float64"
) -> None:
    """Write a linear model or boosted trees as an ONNX file; needs ``pip install structrank[onnx]``.

    The file has one input ``X``, (n_docs, n_features), and one output ``score``, (n_docs, 1): higher is better. Its metadata
    hold the names of the features in the order of the columns (`feature_names`, as JSON), the class of the model, and the
    version that wrote the file. The operator for trees returns float32, also for an input of float64, whose thresholds are
    compared in float64. Values must not be missing.

    Parameters
    ----------
    model, scaler, feature_names
        As for `to_solr`; `McRank` with any number of grades.
    path : path-like
        An existing file is replaced atomically.
    dtype : {"float64", "float32"}, default "float64"
        Type of the input and of the computation. Some servers require float32, which has six or seven digits.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, onnxruntime
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> with TemporaryDirectory() as folder:
    ...     to_onnx(model, f"{folder}/m.onnx")
    ...     session = onnxruntime.InferenceSession(Path(folder, "m.onnx").read_bytes())
    >>> bool(session.run(["score"], {"X": np.array([[3.0]])})[0] == model.predict([[3.0]]))
    True
    """
    checks.check_choice("dtype", dtype, ("float64", "float32"))
    function = function_of(model, scaler, feature_names)
    onnx = optional("onnx", "to_onnx", "onnx", "onnx")
    graph = _Graph(onnx, np.dtype(dtype))
    if isinstance(function, LinearFunction):
        output_type = graph.dtype
        graph.add_linear(function)
    else:
        output_type = np.dtype(np.float32)
        graph.add_trees(function)
    content = graph.finish(len(function.names), output_type)
    metadata = {
        "feature_names": json.dumps(list(function.names)),
        "model": type(last_step(model)).__name__,
        "score": "higher is better; compare documents of one query",
        "structrank": structrank.__version__,
    }
    onnx.helper.set_model_props(content, metadata)
    replace_file(path, content.SerializeToString(), "the model")


class _Graph:
    """A graph in the making: its nodes and constants."""

    def __init__(self, onnx, dtype):
        self._onnx, self.dtype = onnx, dtype
        self._nodes, self._constants = [], []

    def _constant(self, values, dtype):
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def _add(self, operator, *inputs, output=None, **attributes):
        output = output or f"n{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def add_linear(self, function):
        last = "X"
        if function.is_normalised.any():
            last = self._add("Sub", last, self._constant(function.centres, self.dtype))
            last = self._add("Div", last, self._constant(function.spreads, self.dtype))
        self._add("MatMul", last, self._constant(function.weights[:, np.newaxis], self.dtype), output="score")

    def add_trees(self, function):
        if isinstance(function, Forest):
            self._add_ensemble([function], "score")
            return
        single = np.float32  # of the operator's outputs
        outputs = self._add_ensemble(function.forests, None)
        if function.softmax:
            shares = self._add("Softmax", outputs, axis=1)
            self._add("MatMul", shares, self._constant(function.grades[:, np.newaxis], single), output="score")
        else:
            steps = self._constant(np.diff(function.grades)[:, np.newaxis], single)
            above = self._add("MatMul", self._add("Sigmoid", outputs), steps)
            self._add("Add", above, self._constant(function.grades[:1], single), output="score")

    def _add_ensemble(self, forests, output):
        if self.dtype == np.float32:
            forests = [forest.in_single_precision("float32") for forest in forests]
        trees = [(target, tree) for target, forest in enumerate(forests) for tree in forest.trees]
        nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
        leaves = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        for number, (target, tree) in enumerate(trees):
            is_leaf, n_nodes = tree.is_leaf, tree.features.shape[0]
            nodes["treeids"] += [number] * n_nodes
            nodes["nodeids"] += range(n_nodes)
            nodes["featureids"] += np.maximum(tree.features, 0).tolist()
            nodes["values"] += tree.thresholds.tolist()
            nodes["modes"] += ["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf]
            nodes["truenodeids"] += np.maximum(tree.left, 0).tolist()
            nodes["falsenodeids"] += np.maximum(tree.right, 0).tolist()
            ends = np.flatnonzero(is_leaf)
            leaves["treeids"] += [number] * ends.shape[0]
            leaves["nodeids"] += ends.tolist()
            leaves["ids"] += [target] * ends.shape[0]
            leaves["weights"] += tree.values[ends].tolist()
        attributes = {f"nodes_{name}": values for name, values in nodes.items()}
        attributes |= {f"target_{name}": values for name, values in leaves.items()}
        attributes["base_values"] = [forest.constant for forest in forests]
        if self.dtype == np.float64:  # numbers of 64 bits are tensors
            for name in ("nodes_values", "target_weights", "base_values"):
                tensor = self._onnx.numpy_helper.from_array(np.array(attributes.pop(name), dtype=np.float64), name)
                attributes[f"{name}_as_tensor"] = tensor
        attributes |= {"domain": "ai.onnx.ml", "n_targets": len(forests), "output": output}
        return self._add("TreeEnsembleRegressor", "X", **attributes)

    def finish(self, n_features, output_type):
        """Return the model."""
        helper = self._onnx.helper
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), ["n_docs", width])
            for name, dtype, width in (("X", self.dtype, n_features), ("score", output_type, 1))
        ]
        graph = helper.make_graph(self._nodes, "structrank", values[:1], values[1:], self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _TREE_OPSET)]
        content = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="structrank")
        self._onnx.checker.check_model(content)
        return content
