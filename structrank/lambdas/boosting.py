"""Rounds of LightGBM's trees: what LambdaMART and McRank share."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from structrank import _validation, metrics
from structrank._validation import n_threads
from structrank.data import RankingData
from structrank.lambdas.training import (
    EarlyStopping,
    MeasureRanker,
    Round,
    RoundReporter,
    Yardstick,
    as_validation,
    validation_yardstick,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structrank._typing import Matrix


class BoostedRanker(MeasureRanker):
    """A ranker of boosted trees: its checks, its predictions, and the trees as LightGBM's own text.

    A subclass has the parameters that `_check_parameters` checks, makes a `Course` in ``fit``, hands it to `_keep_trees` when
    it has run, and turns the outputs of its boosters, a list with one array for each, into scores in ``_scores(outputs)``.
    """

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """Score documents; higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)

        Returns
        -------
        (n_docs,) array
        """
        return self._scores(self._outputs(X))

    def _outputs(self, X, **chosen):
        """Give the output of each booster; `chosen` may name the rounds, as LightGBM's ``predict`` takes them."""
        matrix = _as_lightgbm(self._check_features(X))
        # Not there in a model that was loaded from a file: the texts are all that is saved.
        if getattr(self, "_boosters", None) is None:
            library = _import_lightgbm(type(self).__name__)
            self._boosters = [library.Booster(model_str=text) for text in self.trees_]
        threads = n_threads(self.n_jobs)
        return [booster.predict(matrix, num_threads=threads, **chosen) for booster in self._boosters]

    def _check_parameters(self):
        """Check what does not depend on data."""
        metrics.parse(self.measure)
        _validation.check_cut("patience", self.patience, "no early stopping")
        n_threads(self.n_jobs)
        for name in ("n_estimators", "min_child_samples"):
            _validation.check_number(name, getattr(self, name), at_least=1, integer=True)
        _validation.check_number("num_leaves", self.num_leaves, at_least=2, integer=True)
        _validation.check_number("learning_rate", self.learning_rate, above=0)
        for name in ("min_child_weight", "reg_lambda"):
            _validation.check_number(name, getattr(self, name), at_least=0)
        for name in ("subsample", "colsample_bytree"):
            share = getattr(self, name)
            if _validation.check_number(name, share, above=0) > 1:
                raise ValueError(f"{name}={share!r} is not valid: expected a share above 0 and at most 1.")
        _validation.check_number("random_state", self.random_state, at_least=0, integer=True)

    def _settings(self, **more):
        """Give LightGBM's parameters. Sums are formed in one order, however many threads there are."""
        return {
            "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_child_samples,
            "min_sum_hessian_in_leaf": self.min_child_weight,
            "lambda_l2": self.reg_lambda,
            "bagging_fraction": self.subsample,
            "bagging_freq": 1 if self.subsample < 1 else 0,
            "feature_fraction": self.colsample_bytree,
            "seed": self.random_state,
            "num_threads": n_threads(self.n_jobs),
            "deterministic": True,
            "force_row_wise": True,
            "metric": "None",
            "verbosity": -1,
            **more,
        }

    def _keep_trees(self, course):
        """Take over the trees that were grown; warn where there are none."""
        counts = course.tree_counts[course.best_round - 1] if course.tree_counts else [0] * len(course.boosters)
        self.trees_ = [
            booster.model_to_string(num_iteration=count) for booster, count in zip(course.boosters, counts, strict=True)
        ]
        self._boosters = None
        if not course.reporter.rounds:
            text = (
                "No tree could be grown, so all documents get the same score: no split leaves at least "
                f"min_child_samples={self.min_child_samples} documents and min_child_weight={self.min_child_weight:g} in each "
                "leaf and is any better than none. Lower these, or see whether the features tell anything."
            )
            warnings.warn(text, _validation.StructRankWarning, stacklevel=3)


class Course:
    """One course of training, from checked data to grown trees.

    Parameters
    ----------
    ranker : BoostedRanker
    X, y, qid, sample_weight, validation, callback
        As the user gave them.

    Attributes
    ----------
    given : RankingData
        As the user gave it.
    data : RankingData
        Without queries of weight 0, and with weights whose mean is 1.
    rows : array of int
        The rows of `given` that it has.
    boosters : list of lightgbm.Booster
    tree_counts : list of list of int
        For each round, how many rounds of trees each booster has: one that finds no split where others do falls behind.
    reporter : RoundReporter
    stopping : EarlyStopping
    reason : str
        Why training ended.
    """

    def __init__(self, ranker, X, y, qid, sample_weight, validation, callback):
        self._ranker = ranker
        self._library = _import_lightgbm(type(ranker).__name__)
        self.reporter = RoundReporter(callback, ranker.verbose, name="tree")
        self.given = RankingData(X, y, qid, sample_weight)
        self._validation = as_validation(validation, self.given)
        # LightGBM counts rows of weight 0 as others, and knows weights to 32 bits only.
        self.data, self.rows = self.given.counted()
        self.stopping = EarlyStopping(ranker.patience if self._validation else None)
        measure = metrics.parse(ranker.measure)
        self._on_train = Yardstick(measure, self.data.labels, self.data.grouping, self.data.query_weights)
        self._on_validation = validation_yardstick(measure, self._validation)
        self._binned = None
        self.boosters = []
        self.tree_counts = []

    @property
    def best_round(self):
        """Rounds to keep: up to the best on the validation set, or all."""
        return self.stopping.best_round or len(self.reporter.rounds)

    def add_booster(self, target, weight=None, **settings):
        """Add a booster with targets of its own; features are put into bins once for all."""
        settings = self._ranker._settings(**settings)
        X = _as_lightgbm(self.data.X)
        if self._binned is None:
            rows = self._library.Dataset(X, target, weight=weight, params=settings)
        else:  # a copy of the bins, which takes a fraction of the time to find them
            rows = self._binned.subset(np.arange(X.shape[0], dtype=np.int32), params=settings)
            rows.construct().set_label(target)
            rows.set_weight(weight)
        if not any(rows.construct().feature_num_bin(feature) > 1 for feature in range(X.shape[1])):
            raise ValueError(
                f"X has no feature that could split its {X.shape[0]} documents into leaves of at least "
                f"min_child_samples={self._ranker.min_child_samples}; lower that, or see whether the features vary."
            )
        booster = self._library.Booster(settings, rows)
        if self._validation:
            other = rows.create_valid(
                _as_lightgbm(self._validation.X), params=settings
            )  # the last one sets the threads of all
            booster.add_valid(other, "validation")
        self._binned = self._binned or rows
        self.boosters.append(booster)

    def run(self, grow, scores):
        """Grow trees round by round until they are enough.

        Parameters
        ----------
        grow : callable
            ``grow(number)``, from 0, adds a tree to each booster; gives the number of effective pairs, or None where no tree
            could be grown.
        scores : callable
            Turns the boosters' outputs, a list of arrays, into scores.
        """
        self.reason = "n_estimators"
        try:
            for number in range(self._ranker.n_estimators):
                reason = self._round(number, grow, scores)
                if reason is not None:
                    self.reason = reason
                    break
        except KeyboardInterrupt:
            if not self.reporter.rounds:
                raise
            self.reason = "interrupted"

    def _round(self, number, grow, scores):
        """Make one round; give why training should end, or None."""
        started = time.perf_counter()
        try:
            pairs = grow(number)
        except self._library.basic.LightGBMError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"LightGBM failed to grow a tree ({reason}). Try a larger min_child_weight.") from error
        if pairs is None:
            return "no split"
        self.tree_counts.append([booster.current_iteration() for booster in self.boosters])
        values = {"train": self._on_train(scores([_current_outputs(booster.eval_train) for booster in self.boosters]))}
        if self._validation:
            outputs = [_current_outputs(booster.eval_valid) for booster in self.boosters]
            values["validation"] = self._on_validation(scores(outputs))
        seconds = time.perf_counter() - started
        rate = self._ranker.learning_rate
        entry = Round(number + 1, **values, effective_pairs=pairs, learning_rate=rate, seconds=seconds)
        enough = self.stopping.update(entry.validation)
        if self.reporter(entry):
            return "callback"
        return "patience" if enough else None


def _import_lightgbm(who):
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError(f"{who} needs LightGBM: pip install structrank[trees]") from error
    return lightgbm


def _current_outputs(evaluate):
    """Give a booster's outputs for the rows it is trained or validated on, which it keeps up to date by itself."""
    kept = []

    def keep(outputs, _):
        kept.append(outputs)
        return "kept", 0.0, True

    evaluate(keep)
    return kept[0]


def _as_lightgbm(matrix):
    """Give a matrix in a type that LightGBM reads without loss."""
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.csr_matrix(matrix)
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
