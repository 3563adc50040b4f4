"""What the learners of this package share: checks, measuring, early stopping, and the report of each round."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import validate_data

from structrank import _validation, metrics
from structrank._kernels.measures import discounted_gains
from structrank._progress import ProgressLine
from structrank.data import RankingData
from structrank.datasets import Dataset
from structrank.history import History
from structrank.ranker import Ranker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structrank._typing import Matrix


class MeasureRanker(Ranker):
    """A ranker that is trained for a measure and scored by it; subclasses have a parameter `measure`.

    A subclass writes ``fit(X, y, qid, sample_weight, validation, callback)``, which ends with `_keep_course`, and
    ``predict(X)``, which begins with `_check_features`.

    Examples
    --------
    >>> class ByFirstFeature(MeasureRanker):
    ...     def __init__(self, measure="ndcg@10"):
    ...         self.measure = measure
    ...     def fit(self, X, y, qid=None):
    ...         self._keep_course(X, RankingData(X, y, qid), RoundReporter(None, verbose=0), "done", best_round=0)
    ...         return self
    ...     def predict(self, X):
    ...         return self._check_features(X)[:, 0]
    >>> ByFirstFeature("mrr").fit([[2.0], [1.0]], [0, 1]).score([[2.0], [1.0]], [0, 1])
    0.5
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def score(
        self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Measure the ranking by the learner's own measure: higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
        y : array-like of shape (n_docs,)
        qid : array-like of shape (n_docs,), default None
        sample_weight : array-like of shape (n_docs,), default None
            Weights of the queries, given by row and constant within a query.

        Returns
        -------
        float
            Mean over the queries for which the measure is defined.
        """
        measure = metrics.parse(self.measure)
        return metrics.evaluate(y, self.predict(X), qid, measure, sample_weight=sample_weight)[measure.name]

    def _keep_course(self, X, data, reporter, reason, best_round):
        """Note the features and how training went; `fit` calls it when it has succeeded."""
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = data.n_features
        self.n_iter_ = len(reporter.rounds)
        self.best_round_ = best_round
        self.history_ = reporter.history
        self.stop_reason_ = reason
        reporter.finish(reason)
        if reason == "interrupted":
            text = f"Training was interrupted after {reporter.name} {self.n_iter_}; the model is the best so far."
            warnings.warn(text, _validation.StructRankWarning, stacklevel=3)

    def _check_features(self, X):
        """Give X as `_validation.as_matrix` does, after all checks that scoring needs."""
        matrix = super()._check_features(X)
        _validation.check_finite_matrix(matrix, getattr(X, "columns", None))
        return matrix


def as_validation(validation, training):
    """Give a validation set as checked `RankingData`.

    Parameters
    ----------
    validation : None, tuple (X, y, qid), or Dataset
    training : RankingData
        Whose columns it must have.

    Returns
    -------
    RankingData or None

    Examples
    --------
    >>> as_validation(([[0.0], [1.0]], [0, 1], ["a", "a"]), RankingData([[2.0]], [1])).labels
    array([0., 1.])
    """
    if validation is None:
        return None
    if isinstance(validation, Dataset):
        parts = (validation.X, validation.y, validation.qid)
    elif isinstance(validation, (tuple, list)) and len(validation) == 3:
        parts = validation
    else:
        found = f"{len(validation)} things" if isinstance(validation, (tuple, list)) else type(validation).__name__
        raise ValueError(f"validation is {found}; expected a tuple (X, y, qid), a datasets.Dataset, or None.")
    try:
        data = RankingData(*parts)
        data.check_columns(training)
    except (ValueError, TypeError) as error:
        raise type(error)(f"validation: {error}") from None
    return data


class Yardstick:
    """The mean of a measure over fixed queries, for scores that change: labels are judged and sorted once.

    Parameters
    ----------
    measure : Measure
    labels : (n_docs,) array
        In the caller's row order; a document whose label is nan is left out.
    grouping : structrank.data.Grouping
    query_weights : (n_queries,) array, default None
        None for queries that count alike.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 1], qid=["a", "a", "b"])
    >>> yardstick = Yardstick(metrics.MRR(), data.labels, data.grouping)
    >>> yardstick(np.array([2.0, 1.0, 0.0])), yardstick.per_query(np.array([2.0, 1.0, 0.0]))
    (0.75, array([0.5, 1. ]))
    """

    def __init__(self, measure, labels, grouping, query_weights=None):
        measure.check_labels(labels)
        self.measure = measure
        known = ~np.isnan(labels[grouping.rows])
        rows = grouping.rows[known]
        self._indptr = np.concatenate([[0], np.cumsum(known)])[grouping.indptr]
        # Sorted by label first, tied documents are added up in the same order however the rows came.
        by_label, self._ideal = metrics._sorted(labels[rows], self._indptr, np.arange(rows.shape[0]))
        self._rows = rows[by_label]
        self._weights = np.ones(grouping.n_queries) if query_weights is None else query_weights
        # The value of an ideal ranking is the most of the work for discounted gains, and does not change either.
        self._gains = None
        if isinstance(measure, metrics.Discounted):
            ranking = metrics.Ranking(self._ideal, metrics._untied(rows.shape[0]), self._ideal, self._indptr)
            self._discounts = measure.discounts(ranking.n_ranks(getattr(measure, "k", None)))
            self._best = ranking.discounted_gains(measure.gains, self._discounts)[1]
            self._gains = measure.gains(self._ideal)

    def per_query(self, scores):
        """Give the measure of each query, nan where undefined; `scores` in the caller's row order, without nan."""
        order, ranked = metrics._sorted(scores[self._rows], self._indptr, np.arange(self._rows.shape[0]))
        if self._gains is not None:
            values = np.empty(self._weights.shape[0])
            discounted_gains(ranked, self._indptr, self._gains[order], self._discounts, values)
            return np.minimum(values / self._best, 1.0)
        return self.measure.values(metrics.Ranking(self._ideal[order], ranked, self._ideal, self._indptr))

    def __call__(self, scores):
        """Give the mean over the queries for which the measure is defined."""
        return metrics._mean(self.per_query(scores), self._weights)


def training_yardstick(measure, data):
    """Give the yardstick of training queries; raises where the measure is defined for none of them."""
    yardstick = Yardstick(measure, data.labels, data.grouping, data.query_weights)
    if np.isnan(yardstick(np.zeros(data.labels.shape[0]))):
        raise ValueError(
            f"{measure.name} is undefined for every query, so there is nothing to learn from; check y, qid and the "
            "measure's relevant_from."
        )
    return yardstick


def validation_yardstick(measure, validation):
    """Give the yardstick of validation queries, None where there are none; raises likewise."""
    if validation is None:
        return None
    yardstick = Yardstick(measure, validation.labels, validation.grouping)
    if np.isnan(yardstick(np.zeros(validation.labels.shape[0]))):
        raise ValueError(f"validation: {measure.name} is defined for none of its queries; it cannot guide training.")
    return yardstick


class EarlyStopping:
    """Say when a measure has not risen for a number of rounds.

    Parameters
    ----------
    patience : int or None
        Rounds without a new best after which to stop; None never stops.

    Attributes
    ----------
    best_round : int
        From 1; 0 before the first.
    best_value : float

    Examples
    --------
    >>> stopping = EarlyStopping(patience=2)
    >>> [stopping.update(value) for value in (0.5, 0.6, 0.6, 0.5)], stopping.best_round, stopping.best_value
    ([False, False, False, True], 2, 0.6)
    """

    def __init__(self, patience):
        self.patience = _validation.check_cut("patience", patience, "no early stopping")
        self.best_round, self.best_value = 0, -math.inf
        self._rounds = 0

    def update(self, value):
        """Take the value of the next round; true means stop. nan is never the best."""
        self._rounds += 1
        if value > self.best_value:
            self.best_round, self.best_value = self._rounds, float(value)
        return self.patience is not None and self._rounds - self.best_round >= self.patience


@dataclass(frozen=True)
class Round:
    """One epoch, tree or step of training, as it stands in ``history_``.

    Attributes
    ----------
    round : int
        From 1.
    train, validation : float
        The measure on either set; nan where it was not computed.
    effective_pairs : int
        Pairs of documents that had a non-zero lambda.
    loss : float
        Where the learner has one; nan else.
    learning_rate : float
    seconds : float
        Spent in this round.
    """

    round: int
    train: float = math.nan
    validation: float = math.nan
    effective_pairs: int = 0
    loss: float = math.nan
    learning_rate: float = math.nan
    seconds: float = 0.0


class RoundReporter:
    """Keep the rounds, show a line of progress and call the user's callback.

    Parameters
    ----------
    callback : callable or None
        Called with each `Round`; a true return value stops training.
    verbose : int
        1 shows the line; 0 prints nothing.
    name : str, default "epoch"
        What a round is called in the line of progress.

    Examples
    --------
    >>> reporter = RoundReporter(callback=lambda entry: entry.round == 2, verbose=0)
    >>> [reporter(Round(1, train=0.5)), reporter(Round(2, train=0.6))], len(reporter.history)
    ([False, True], 2)
    """

    def __init__(self, callback, verbose, name="epoch"):
        if callback is not None and not callable(callback):
            raise ValueError(f"callback={callback!r} is not valid: expected a function of one round, or None.")
        self.callback, self.name = callback, name
        self.rounds = []
        self._line = ProgressLine() if verbose else None
        self._seconds = 0.0

    def __call__(self, entry):
        """Take the next round; true means that the callback wants to stop."""
        self.rounds.append(entry)
        self._seconds += entry.seconds
        if self._line is not None:
            self._line.update(self._text(entry))
        return self.callback is not None and bool(self.callback(entry))

    def finish(self, reason):
        """Show the last round and why training ended."""
        if self._line is not None and self.rounds:
            self._line.finish(f"{self._text(self.rounds[-1])}  {reason}")

    @property
    def history(self):
        """The rounds so far."""
        return History(self.rounds)

    def _text(self, entry):
        shown = {"train": entry.train, "validation": entry.validation, "loss": entry.loss}
        values = "  ".join(f"{name} {value:.4f}" for name, value in shown.items() if not math.isnan(value))
        return f"{self.name} {entry.round}  {values}  pairs {entry.effective_pairs}  {self._seconds:.1f} s"
