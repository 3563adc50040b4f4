"""The constant that makes scores positive, for engines that reject negative scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from structrank._support import checks
from structrank._support.typing import Matrix
from structrank.models.exports.linear import LinearFunction, linear_function
from structrank.models.exports.trees import GradeForests, forest_of, has_trees


def positive_shift(model: Any, X: Matrix, *, scaler: Any = None) -> float:
    """Return a `shift` with which exported scores of the documents are positive; at least 0.

    The lowest score becomes the difference between the highest and the lowest, a margin for documents that are not in X. A
    larger shift costs digits in 32 bits.

    Parameters
    ----------
    model, scaler
        As for `to_solr`.
    X : array-like or sparse matrix of shape (n_docs, n_features)
        Documents like those that will be ranked, before scaling.

    Examples
    --------
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> model.coef_ = np.array([1.0])
    >>> positive_shift(model, [[-2.0], [0.5]])
    4.5
    """
    matrix = checks.as_matrix(X)
    function = (forest_of if has_trees(model) else linear_function)(model, scaler)
    checks.check_width(matrix.shape[1], len(function.names), type(model).__name__)
    if isinstance(function, LinearFunction):
        scores = matrix @ function.raw_weights + function.constant
    else:
        if isinstance(function, GradeForests) and function.grades.shape[0] == 2:
            function = function.sum_of_trees("an engine")  # log-odds; expected grades are not negative
        scores = function.predict(np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, dtype=np.float64))
    lowest, spread = float(np.min(scores)), float(np.ptp(scores))
    return max(0.0, (spread or 1.0) - lowest)
