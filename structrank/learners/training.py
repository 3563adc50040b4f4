"""Code shared by the learners of this package: checks, evaluation, early stopping and history."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import validate_data

from structrank import metrics
from structrank._support import checks
from structrank._support.progress import ProgressLine
from structrank.datasets import Dataset
from structrank.metrics import Evaluator
from structrank.models.ranker import Ranker
from structrank.training.data import RankingData
from structrank.training.history import History

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structrank._support.typing import Matrix


_LOG = logging.getLogger(__name__)


class MeasureRanker(Ranker):
    """Base class of rankers that are trained for a measure and scored by it.

    A subclass has a parameter `measure` or defines ``parsed_measure()``. Its ``predict(X)`` begins with `_check_features`; its
    ``fit(X, y, qid, sample_weight, validation)`` ends with `_keep_course` if it is trained in rounds here, and then accepts
    `callback` and `checkpoint`, too.

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

    def _keep_course(self, X, data, reporter, reason, best_round):
        """Set the fitted attributes; called at the end of a successful `fit`."""
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = data.n_features
        self.n_iter_ = len(reporter.rounds)
        self.best_round_ = best_round
        self.history_ = reporter.history
        self.stop_reason_ = reason
        reporter.finish(reason)
        if reason == "interrupted":
            text = f"Training was interrupted after {reporter.name} {self.n_iter_}; the model is the best so far."
            warnings.warn(text, checks.StructRankWarning, stacklevel=4)

    def _check_features(self, X):
        """Return X converted by `checks.as_matrix`, after all checks that scoring needs."""
        matrix = super()._check_features(X)
        checks.check_finite_matrix(matrix, checks.column_names(X))
        return matrix


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
    """Return what a model depends on besides its parameters, for `structrank.training.checkpoint.KeptState`."""
    facts = {"X": data.X, "y": data.labels, "qid": data.grouping.rows, "queries": data.grouping.indptr}
    facts |= {"sample_weight": data.query_weights, **more}
    if validation is not None:
        facts["validation"] = list(training_facts(validation, None).values())
    return facts


class EarlyStopping:
    """Stopping rule: stop when a measure has not risen for a number of rounds.

    Parameters
    ----------
    patience : int or None
        Number of rounds without a new best value; None disables early stopping.

    Attributes
    ----------
    best_round : int
        Counted from 1; 0 before the first update.
    best_value : float

    Examples
    --------
    >>> stopping = EarlyStopping(patience=2)
    >>> [stopping.update(value) for value in (0.5, 0.6, 0.6, 0.5)], stopping.best_round, stopping.best_value
    ([False, False, False, True], 2, 0.6)
    """

    def __init__(self, patience):
        self.patience = checks.check_cut("patience", patience, "no early stopping")
        self.best_round, self.best_value = 0, -math.inf
        self._rounds = 0

    def update(self, value):
        """Record the value of the next round; return whether to stop. nan is never the best."""
        self._rounds += 1
        if value > self.best_value:
            self.best_round, self.best_value = self._rounds, float(value)
        return self.patience is not None and self._rounds - self.best_round >= self.patience


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


class RoundReporter:
    """Store the rounds, show a progress line, log, and call the user's callback.

    Parameters
    ----------
    callback : callable or None
        Called with each `Round`; a true return value stops training.
    verbose : int
        1 shows the progress line; 0 prints nothing.
    name : str, default "epoch"
        Word for a round in the progress line.

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
        self._line = ProgressLine() if verbose else None
        self.resume([])

    def resume(self, rounds):
        """Set the rounds before the next one."""
        self.rounds = list(rounds)
        self._seconds = sum(entry.seconds for entry in self.rounds)

    def __call__(self, entry):
        """Record the next round; return whether the callback requests to stop."""
        self.rounds.append(entry)
        self._seconds += entry.seconds
        if self._line is not None:
            self._line.update(self._text(entry))
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s", self._text(entry))
        return self.callback is not None and bool(self.callback(entry))

    def finish(self, reason):
        """Show and log the last round and the reason for stopping."""
        if not self.rounds:
            return
        text = f"{self._text(self.rounds[-1])}  {reason}"
        _LOG.info("%s", text)
        if self._line is not None:
            self._line.finish(text)

    @property
    def history(self):
        """The rounds so far."""
        return History(self.rounds)

    def _text(self, entry):
        shown = {"train": entry.train, "validation": entry.validation, "loss": entry.loss}
        values = "  ".join(f"{name} {value:.4f}" for name, value in shown.items() if not math.isnan(value))
        return f"{self.name} {entry.round}  {values}  pairs {entry.effective_pairs}  {self._seconds:.1f} s"
