"""Cross-validation that never splits a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.progress import ProgressLine
from structrank._support.typing import ArrayLike, DataFrame, Matrix
from structrank.metrics import Measure
from structrank.training.data import RankingData


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Result of cross-validation; each query is evaluated with the model that was not trained on it.

    Attributes
    ----------
    per_query : structrank.metrics.Evaluation
        Mapping from names of measures to (n_queries,) arrays, nan where undefined; ``.query_ids`` has the queries.
    folds : (n_queries,) array of int
        Fold in which each query was held out, from 0.
    scores : (n_docs,) array
        Score of each document, by the model not trained on its query; comparable within a query only.
    models : tuple of learners
        The fitted models, in order of the folds.

    Examples
    --------
    >>> values = metrics.evaluate([1, 0, 1, 0], [2.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"], "mrr", per_query=True)
    >>> CrossValidation(values, folds=np.array([0, 1]), scores=np.zeros(4), models=(None, None))
    CrossValidation(2 folds, 2 queries: mrr 0.7500 ± 0.2500)
    """

    per_query: metrics.Evaluation
    folds: np.ndarray
    scores: np.ndarray
    models: tuple

    @property
    def means(self):
        """Mean over the queries for which a measure is defined, by its name."""
        return {name: _over(np.mean, values) for name, values in self.per_query.items()}

    @property
    def standard_errors(self):
        """Standard error of each mean, from the spread over queries."""
        return {name: _over(_standard_error, values) for name, values in self.per_query.items()}

    def to_frame(self) -> DataFrame:
        """Return a pandas frame of means, one row per fold and one column per measure."""
        import pandas as pd

        frame = pd.DataFrame(dict(self.per_query)).groupby(self.folds).mean()
        return frame.rename_axis("fold")

    def __repr__(self):
        errors = self.standard_errors
        values = ", ".join(f"{name} {mean:.4f} ± {errors[name]:.4f}" for name, mean in self.means.items())
        return f"CrossValidation({len(self.models)} folds, {self.per_query.n_queries} queries: {values})"


def cross_validate(
    model: Any,
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike,
    measures: str | Measure | Sequence[str | Measure] = ("map", "ndcg@10"),
    *,
    n_splits: int = 5,
    random_state: int = 0,
    verbose: int = 0,
) -> CrossValidation:
    """Train and evaluate on folds of whole queries.

    Parameters
    ----------
    model : learner or Pipeline
        With ``fit(X, y, qid=)`` and ``predict(X)``; it is cloned for each fold and left unchanged. A Pipeline passes qid to
        the steps that request it, as the learners of this package and `structrank.datasets.PerQueryScaler` do.
    X : array-like or sparse matrix of shape (n_docs, n_features)
    y : array-like of shape (n_docs,)
        Labels, at least 0; larger is more relevant.
    qid : array-like of shape (n_docs,)
        Query of each row: any order, any hashable type.
    measures : str, Measure, or a list of them, default ("map", "ndcg@10")
        As for `structrank.metrics.evaluate`.
    n_splits : int, default 5
        Number of folds, with about the same number of queries in each.
    random_state : int, default 0
        Seed of the assignment of queries to folds; it depends on their order of first appearance.
    verbose : int, default 0
        1 shows a progress line; 0 prints nothing.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> from structrank import StructRankSVM, cross_validate, datasets
    >>> train = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, noise=0.1, random_state=0).train
    >>> found = cross_validate(StructRankSVM("map"), train.X, train.y, train.qid, ["map"], n_splits=3)
    >>> found.means["map"] > 0.8, found.to_frame().shape
    (True, (3, 1))
    """
    import sklearn
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold
    from sklearn.utils import _safe_indexing

    from structrank.models.ranker import check_finished

    if not hasattr(model, "fit") or not hasattr(model, "predict"):
        raise ValueError(f"model={model!r} is not valid: expected a learner with fit and predict.")
    checks.check_number("n_splits", n_splits, at_least=2, integer=True)
    checks.check_number("random_state", random_state, at_least=0, integer=True)
    chosen = list(metrics.parse_all(measures).values())
    data = RankingData(X, y, qid)
    for measure in chosen:
        measure.check_labels(data.labels)
    if data.grouping.n_queries < n_splits:
        raise ValueError(
            f"n_splits={n_splits} but there are {data.grouping.n_queries} queries; a query is never split. "
            "Pass qid, more queries, or fewer folds."
        )
    query = data.grouping.query_of_row()
    rows = X if hasattr(X, "columns") else data.X  # data frames keep their column names
    scores, folds, models = np.empty(query.shape[0]), np.empty(data.grouping.n_queries, dtype=np.int64), []
    line = ProgressLine() if verbose else None
    splitter = GroupKFold(n_splits, shuffle=True, random_state=random_state)
    # A Pipeline passes qid on only with metadata routing.
    with sklearn.config_context(enable_metadata_routing=True):
        for number, (learn, check) in enumerate(splitter.split(query, groups=query)):
            fitted = clone(model).fit(_safe_indexing(rows, learn), data.labels[learn], qid=query[learn])
            check_finished(fitted)
            found = metrics.predict(fitted, _safe_indexing(rows, check), query[check])
            scores[check] = checks.as_scores(found, check.size, against="the fold")
            folds[query[check]] = number
            models.append(fitted)
            if line is not None:
                line.update(f"fold {number + 1} of {n_splits}")
    values = metrics.evaluate(data.labels, scores, qid, chosen, per_query=True)
    result = CrossValidation(values, folds, scores, tuple(models))
    if line is not None:
        line.finish(repr(result))
    return result


def _over(statistic, values):
    defined = values[~np.isnan(values)]
    return float(statistic(defined)) if defined.size else np.nan


def _standard_error(values):
    return values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
