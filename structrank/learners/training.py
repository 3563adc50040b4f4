"""Code shared by the learners of this package: checks, evaluation and entries of the history."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import validate_data

from structrank import metrics
from structrank._support import checks
from structrank._support.saveable import record
from structrank._support.typing import ArrayLike, Matrix
from structrank.datasets import Dataset
from structrank.metrics import Evaluator
from structrank.models.ranker import Ranker
from structrank.training.data import RankingData


class MeasureRanker(Ranker):
    """Base class of rankers that are trained for a measure and scored by it.

    A subclass has a parameter `measure` or defines ``parsed_measure()``. Its ``predict(X)`` begins with `_check_features`; its
    ``fit(X, y, qid, sample_weight, validation)`` ends with `_keep_rounds` if it is trained in rounds here, and then accepts
    `callback` and `checkpoint`, too.

    Examples
    --------
    >>> class ByFirstFeature(MeasureRanker):
    ...     def __init__(self, measure="ndcg@10"):
    ...         self.measure = measure
    ...     def fit(self, X, y, qid=None):
    ...         self.n_features_in_ = RankingData(X, y, qid).n_features
    ...         return self
    ...     def predict(self, X):
    ...         return self._check_features(X)[:, 0]
    >>> ByFirstFeature("mrr").fit([[2.0], [1.0]], [0, 1], qid=0).score([[2.0], [1.0]], [0, 1], qid=0)
    0.5
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def score(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Compute the learner's measure of the ranking; higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
        y : array-like of shape (n_docs,)
        qid : array-like of shape (n_docs,) or int
        sample_weight : array-like of shape (n_docs,), default None
            Weights of the queries, given by row and constant within a query.

        Returns
        -------
        float
            Mean over the queries for which the measure is defined.
        """
        measure, scores = self.parsed_measure(), self.predict(X)
        qid = checks.as_query_ids(qid, scores.shape[0])
        return metrics.evaluate(y, scores, qid, measure, sample_weight=sample_weight)[measure.name]

    def parsed_measure(self):
        """Return the measure of `score` and of early stopping."""
        return metrics.parse(self.measure)

    def _keep_rounds(self, X, data, rounds, best_round):
        """Set the fitted attributes; called at the end of a successful `fit`."""
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = data.n_features
        self.best_round_ = best_round
        rounds.store(self)

    def _check_features(self, X):
        """Return X converted by `checks.as_matrix`, after all checks that scoring needs."""
        matrix = super()._check_features(X)
        checks.check_finite_matrix(matrix, checks.column_names(X))
        return matrix


@dataclass(eq=False, repr=False, kw_only=True)
class TreeParameters:
    """The parameters of all learners that boost trees; `LambdaMART` describes them."""

    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    min_child_weight: float = 1e-3
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    reg_lambda: float = 0.0
    patience: int | None = None
    n_jobs: int | None = None
    random_state: int = 0
    verbose: int = 0


def as_validation(validation, training):
    """Convert a validation set to checked `RankingData`.

    Parameters
    ----------
    validation : None, tuple (X, y, qid), or Dataset
    training : RankingData
        Training data, with the same columns.

    Returns
    -------
    RankingData or None

    Examples
    --------
    >>> as_validation(([[0.0], [1.0]], [0, 1], ["a", "a"]), RankingData([[2.0]], [1], qid=0)).labels
    array([0., 1.])
    """
    if validation is None:
        return None
    if isinstance(validation, Dataset):
        parts = (validation.X, validation.y, validation.qid)
    elif isinstance(validation, (tuple, list)) and len(validation) == 3:
        parts = validation
    else:
        found = f"of length {len(validation)}" if isinstance(validation, (tuple, list)) else type(validation).__name__
        raise ValueError(f"validation is {found}; expected a tuple (X, y, qid), a datasets.Dataset, or None.")
    try:
        data = RankingData(*parts)
        data.check_columns(training)
    except (ValueError, TypeError) as error:
        raise type(error)(f"validation: {error}") from None
    return data


def shares(gains):
    """Divide gains by their sum; return zeros if all are 0.

    Examples
    --------
    >>> shares(np.array([3.0, 1.0])).tolist(), shares(np.zeros(2)).tolist()
    ([0.75, 0.25], [0.0, 0.0])
    """
    total = gains.sum()
    return gains / total if total > 0 else np.zeros(gains.shape[0])


def training_evaluator(measure, data):
    """Return the evaluator of the training queries; raise if the measure is undefined for all of them."""
    evaluator = Evaluator(measure, data.labels, data.grouping, data.query_weights)
    if np.isnan(evaluator(np.zeros(data.labels.shape[0]))):
        raise ValueError(
            f"{measure.name} is undefined for every query, so there is no training signal; check y, qid and the "
            "measure's relevant_from."
        )
    return evaluator


def validation_evaluator(measure, validation):
    """Return the evaluator of the validation queries, or None; raise if the measure is undefined for all of them."""
    if validation is None:
        return None
    evaluator = Evaluator(measure, validation.labels, validation.grouping)
    if np.isnan(evaluator(np.zeros(validation.labels.shape[0]))):
        raise ValueError(f"validation: {measure.name} is undefined for every query; it cannot guide training.")
    return evaluator


def training_facts(data, validation, **more):
    """Return what a model depends on besides its parameters, for `structrank.training.rounds.Rounds`."""
    facts = {"X": data.X, "y": data.labels, "qid": data.grouping.rows, "queries": data.grouping.indptr}
    facts |= {"sample_weight": data.query_weights, **more}
    if validation is not None:
        facts["validation"] = list(training_facts(validation, None).values())
    return facts


@record
@dataclass(frozen=True)
class Round:
    """Entry of ``history_`` for one epoch, tree or step of training.

    Attributes
    ----------
    round : int
        From 1.
    train, validation : float
        The measure on each set; nan if not computed.
    effective_pairs : int
        Number of document pairs with a non-zero lambda.
    loss : float
        Training loss; nan if the learner has none.
    learning_rate : float
    seconds : float
        Time spent in this round.
    """

    round: int
    train: float = math.nan
    validation: float = math.nan
    effective_pairs: int = 0
    loss: float = math.nan
    learning_rate: float = math.nan
    seconds: float = 0.0
