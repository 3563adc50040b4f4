"""ONNX, through skl2onnx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structrank._support import checks
from structrank._support.files import replace_file
from structrank.models.exports.sklearn import to_sklearn

if TYPE_CHECKING:
    from structrank._support.typing import Path


def to_onnx(model: Any, path: Path, *, scaler: Any = None, dtype: str = "float64") -> None:
    """Write a linear model as an ONNX file; needs ``pip install structrank[onnx]``.

    The file has one input ``X``, (n_docs, n_features), and returns scores of shape (n_docs, 1).

    Parameters
    ----------
    model, scaler
        As for `to_solr`.
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
    >>> bool(session.run(None, {"X": np.array([[3.0]])})[0] == model.predict([[3.0]]))
    True
    """
    checks.check_choice("dtype", dtype, ("float64", "float32"))
    plain = to_sklearn(model, scaler=scaler)
    try:
        from skl2onnx import to_onnx as convert
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError as error:
        raise ImportError("to_onnx needs skl2onnx: pip install structrank[onnx]") from error
    tensor = DoubleTensorType if dtype == "float64" else FloatTensorType
    converted = convert(plain, initial_types=[("X", tensor([None, plain.n_features_in_]))])
    replace_file(path, converted.SerializeToString(), "the model")
