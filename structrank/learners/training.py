"""Code shared by the learners of this package: checks, evaluation and entries of the history."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import validate_data

from structrank import metrics
from structrank._support import checks
from structrank._support.saveable import record
from structrank._support.typing import ArrayLike, Matrix, Path
from structrank.datasets import Dataset
from structrank.models.ranker import FeatureRanker
from structrank.training.data import RankingData


class MeasureRanker(FeatureRanker):
    """Base class of rankers that are trained for a measure and scored by it.

    A subclass has a parameter `measure` or defines ``parsed_measure()``.

    Examples
    --------
    >>> class ByFirstFeature(MeasureRanker):
    ...     def __init__(self, measure="ndcg@10"):
    ...         self.measure = measure
    ...     def fit(self, X, y, qid=None):
    ...         self.n_features_in_ = RankingData(X, y, qid).n_features
    ...         return self
    ...     def _score_documents(self, X):
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
        measure, scores = self.parsed_measure(), self._scores_of_queries(X, qid)
        qid = checks.as_query_ids(qid, scores.shape[0])
        return metrics.evaluate(y, scores, qid, measure, sample_weight=sample_weight)[measure.name]

    def parsed_measure(self):
        """Return the measure of `score` and of early stopping."""
        return metrics.parse(self.measure)

    def _check_features(self, X):
        """Return X converted by `checks.as_matrix`, after all checks that scoring needs."""
        matrix = super()._check_features(X)
        checks.check_finite_matrix(matrix, checks.column_names(X))
        return matrix


class RoundsRanker(MeasureRanker):
    """Base class of rankers that are trained in rounds.

    A subclass defines ``check_parameters()``, and ``_train(sets, callback, checkpoint)``, which takes `TrainingSets`, sets what
    scoring needs, and returns the `structrank.training.rounds.Rounds` and the number of the best round.
    """

    def fit(
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: Dataset | tuple | None = None,
        callback: Callable[[Round], object] | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, qid, sample_weight
            As for `StructRankSVM.fit`.
        y : array-like of shape (n_docs,)
            Labels, at least 0; larger is more relevant. McRank takes them as grades, at most 64 distinct values.
        validation : tuple (X, y, qid) or datasets.Dataset, default None
            Queries on which the measure selects the best round (epoch, tree or iteration) and decides when to stop early. None
            for the training set; trees are then all kept.
        callback : callable, default None
            Called with each round's entry of the history; a true return value stops training.
        checkpoint : path-like, default None
            Folder for checkpoints, as for `StructRankSVM.fit`.
        """
        return self._fit(X, y, qid, sample_weight, validation, callback, checkpoint)

    def _fit(self, X, y, qid, sample_weight, validation, callback, checkpoint, **more):
        self.check_parameters()
        sets = TrainingSets(X, y, qid, sample_weight, validation)
        rounds, self.best_round_ = self._train(sets, callback, checkpoint, **more)
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = sets.data.n_features
        rounds.store(self)
        return self


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


class TrainingSets:
    """The training and the validation set of a ranker, checked.

    Parameters
    ----------
    X, y, qid, sample_weight, validation
        The arguments of ``fit``.

    Attributes
    ----------
    given : RankingData
        The training set passed by the user.
    data : RankingData
        The training set without queries of weight 0, with weights scaled to mean 1: LightGBM counts rows of weight 0 towards
        min_data_in_leaf, and stores weights as float32.
    rows : array of int
        The rows of `given` that are in `data`.
    validation : RankingData or None
    """

    def __init__(self, X, y, qid, sample_weight, validation):
        self.given = RankingData(X, y, qid, sample_weight)
        self.validation = as_validation(validation, self.given)
        self.data, self.rows = self.given.counted()

    def evaluators(self, measure, needs_signal=True):
        """Return the evaluators of a measure on both sets, None without validation; raise if it is undefined for all queries.

        `needs_signal` is whether the training queries must have a defined value, because they are trained on the measure.
        """
        on_train, on_validation = self.data.evaluator(measure), None
        if needs_signal and np.isnan(on_train(np.zeros(self.data.labels.shape[0]))):
            raise ValueError(
                f"{measure.name} is undefined for every query, so there is no training signal; check y, qid and the "
                "measure's relevant_from."
            )
        if self.validation is not None:
            on_validation = self.validation.evaluator(measure)
            if np.isnan(on_validation(np.zeros(self.validation.labels.shape[0]))):
                raise ValueError(f"validation: {measure.name} is undefined for every query; it cannot guide training.")
        return on_train, on_validation

    def facts(self, **more):
        """Return what a model depends on besides its parameters, for `structrank.training.rounds.Rounds`."""
        facts = {**_content(self.data), **more}
        return facts if self.validation is None else {**facts, "validation": list(_content(self.validation).values())}


def _content(data):
    grouping = data.grouping
    content = {"X": data.X, "y": data.labels, "qid": grouping.rows, "queries": grouping.indptr}
    return {**content, "sample_weight": data.query_weights}


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
