"""Boosting rounds with LightGBM or its stand-in, shared by LambdaMART, McRank and StructRankTrees."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank._support.typing import NDArray
from structrank.learners.training import Round, RoundsRanker, shares
from structrank.learners.tree_texts import check_lightgbm_text
from structrank.models.exports import LightGBMMethods
from structrank.training.rounds import Rounds

# A gain that no split has.
_UNREACHABLE = 1e300
# Limits of LightGBM.
_MOST_LEAVES, _MOST_SAMPLES = 2**17, 2**31 - 1


class BoostedRanker(LightGBMMethods, RoundsRanker):
    """Base class of rankers with boosted trees: parameter checks, prediction, and the trees in LightGBM's text format.

    A subclass has the parameters that `check_parameters` checks. Its ``_grow(course)`` runs a `Course`; ``_scores(outputs)``
    turns the outputs of the boosters, a list of one array per booster, into scores.
    """

    _caches = ("_boosters",)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of the splits; sums to 1, or is 0 if no tree has a split."""
        check_is_fitted(self)
        return shares(sum(booster.feature_importance("gain") for booster in self._loaded()))

    def _train(self, sets, callback, checkpoint):
        course = self._course(sets, callback, checkpoint)
        self._grow(course)
        return self._keep_trees(course)

    def _course(self, *arguments):
        return Course(self, *arguments)

    def _score_documents(self, X):
        return self._scores(self._outputs(X))

    def _outputs(self, X, **chosen):
        """Return the output of each booster; `chosen` selects rounds with the keywords of LightGBM's ``predict``."""
        matrix, threads = as_lightgbm(self._check_features(X)), checks.n_threads(self.n_jobs)
        return [booster.predict(matrix, num_threads=threads, **chosen) for booster in self._loaded()]

    def _loaded(self):
        """Return the boosters, read from their texts if the model comes from a file, which holds only these."""
        if getattr(self, "_boosters", None) is None:
            library = tree_library()
            try:
                self._boosters = [library.Booster(model_str=text) for text in self.trees_]
            except (library.basic.LightGBMError, ValueError, RecursionError) as error:
                raise ValueError(f"LightGBM cannot read trees_: {error}") from error
        return self._boosters

    def check_loaded(self):
        """Raise unless the trees of a loaded model can be evaluated; see `structrank.learners.tree_texts`."""
        super().check_loaded()
        checks.n_threads(self.n_jobs)
        best, n_rounds = (checks.check_fitted_attribute(self, *each) for each in (("best_round_", int), ("history_", Sequence)))
        checks.check_number("best_round_", best, at_least=0, at_most=len(n_rounds), integer=True)
        texts = checks.check_fitted_attribute(self, "trees_", list)
        n_texts, n_outputs = self._loaded_outputs()
        if len(texts) != n_texts:
            raise ValueError(f"trees_ has {len(texts)} texts; expected {n_texts}")
        for text in texts:
            check_lightgbm_text(text, self._loaded_width(), n_outputs)

    def _loaded_outputs(self):
        """Return the number of boosters of a loaded model, and the number of outputs of each."""
        return 1, 1

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        self.parsed_measure()
        checks.check_cut("patience", self.patience, "no early stopping")
        checks.n_threads(self.n_jobs)
        checks.check_number("n_estimators", self.n_estimators, at_least=1, integer=True)
        checks.check_number("min_child_samples", self.min_child_samples, at_least=1, at_most=_MOST_SAMPLES, integer=True)
        checks.check_number("num_leaves", self.num_leaves, at_least=2, at_most=_MOST_LEAVES, integer=True)
        checks.check_number("learning_rate", self.learning_rate, above=0)
        for name in ("min_child_weight", "reg_lambda"):
            checks.check_number(name, getattr(self, name), at_least=0)
        for name in ("subsample", "colsample_bytree"):
            checks.check_number(name, getattr(self, name), above=0, at_most=1)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)

    def _remarks(self, course):
        """Return remarks on training for `notes_`, besides that on the library."""
        return ()

    def _settings(self, **more):
        """Return LightGBM's parameters. The order of summation does not depend on the number of threads."""
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
            "num_threads": checks.n_threads(self.n_jobs),
            "deterministic": True,
            "force_row_wise": True,
            "metric": "None",
            "verbosity": -1,
            **more,
        }

    def _keep_trees(self, course):
        """Store the trees as text, and warn if there are none; return the rounds and the number of the best."""
        self.trees_ = course.texts(course.best_round)
        self.notes_ = self._remarks(course) + library_notes()
        self._boosters = None
        if not course.rounds.entries:
            text = (
                "No tree could be grown, so all documents get the same score: no split leaves at least "
                f"min_child_samples={self.min_child_samples} documents and min_child_weight={self.min_child_weight:g} in each "
                "leaf and reduces the loss. Lower these parameters, or check whether the features are informative."
            )
            warnings.warn(text, checks.StructRankWarning, stacklevel=6)
        return course.rounds, course.best_round


class Course:
    """One training run, from checked data to grown trees.

    Parameters
    ----------
    ranker : BoostedRanker
    sets : TrainingSets
    callback, checkpoint
        The arguments of ``fit``.
    more
        What else the model depends on, by name.

    Attributes
    ----------
    data : RankingData
        The training set, of `sets`.
    boosters : list of lightgbm.Booster
    tree_counts : list of list of int
        For each round, the number of rounds with a tree in each booster; a booster that finds no split adds none after its
        first round.
    rounds : Rounds
    """

    def __init__(self, ranker, sets, callback, checkpoint, **more):
        self._ranker, self.data, self._validation = ranker, sets.data, sets.validation
        self._library = tree_library()
        if ranker.subsample * self.data.X.shape[0] < 1:
            raise ValueError(
                f"subsample={ranker.subsample!r} of {self.data.X.shape[0]} documents is less than one; use a larger share."
            )
        self._on_train, self._on_validation = sets.evaluators(ranker.parsed_measure(), needs_signal=False)
        self._binned, self._n_constant = None, 0
        self.boosters = []
        self._reset()
        more["version of LightGBM"] = self._library.__version__
        self.rounds = Rounds(ranker, self, sets.facts(**more), "n_estimators", "tree", callback, checkpoint)

    def _reset(self):
        """Set what `restore` sets to its values before the first round."""
        self._earlier, self.tree_counts = [], []

    def state(self):
        """Return what the next round depends on, for a checkpoint."""
        return {"trees": self.texts(len(self.tree_counts)), "tree_counts": self.tree_counts}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        self._earlier, self.tree_counts = state["trees"], state["tree_counts"]
        self._n_earlier = len(self.tree_counts)

    @property
    def best_round(self):
        """Number of rounds to keep: up to the best on the validation set, or all."""
        return self.rounds.best_round or len(self.rounds.entries)

    def add_booster(self, target, weight=None, **settings):
        """Add a booster with its own targets; all boosters share the binned features."""
        settings = self._ranker._settings(**settings)
        X = as_lightgbm(self.data.X)
        if self._binned is None:
            rows = self._library.Dataset(X, target, weight=weight, params=settings)
        else:  # copying the bins is faster than computing them again
            rows = self._binned.subset(np.arange(X.shape[0], dtype=np.int32), params=settings)
            rows.construct().set_label(target)
            rows.set_weight(weight)
        rows.set_init_score(self._earlier_scores(X))
        if not any(rows.construct().feature_num_bin(feature) > 1 for feature in range(X.shape[1])):
            raise ValueError(
                f"X has no feature that could split its {X.shape[0]} documents into leaves of at least "
                f"min_child_samples={self._ranker.min_child_samples}; lower it, or check whether the features vary."
            )
        booster = self._library.Booster({**settings, "min_gain_to_split": _UNREACHABLE if self._earlier else 0.0}, rows)
        if self._validation:
            # The last dataset sets the number of threads of all.
            matrix = as_lightgbm(self._validation.X)
            other = rows.create_valid(matrix, init_score=self._earlier_scores(matrix), params=settings)
            booster.add_valid(other, "validation")
        self._binned = self._binned or rows
        self.boosters.append(booster)

    def _earlier_scores(self, matrix):
        """Return the scores that the next booster resumes from, None at the start.

        LightGBM computes them with the same sums as in training, bit for bit.
        """
        if not self._earlier:
            return None
        earlier = self._library.Booster(model_str=self._earlier[len(self.boosters)])
        return earlier.predict(matrix, raw_score=True, num_threads=checks.n_threads(self._ranker.n_jobs))

    def run(self, grow, scores):
        """Grow trees round by round until a stopping rule applies.

        Parameters
        ----------
        grow : callable
            ``grow(number)``, from 0, adds a tree to each booster and returns the number of effective pairs, or None if no
            tree could be grown; it may set another reason than "no split" for that.
        scores : callable
            Turns the boosters' outputs, a list of arrays, into scores.
        """
        if self.rounds.reason is None:  # not a finished run
            self._skip(len(self.rounds.entries), grow)
        with self.rounds:
            for number in self.rounds:
                self._round(number, grow, scores)

    def _skip(self, n_rounds, grow):
        """Bring LightGBM's random generators to where they are after some rounds, by rounds in which no split is possible.

        Subsamples are drawn in each round. `reset_parameter` draws features once, so all runs call it once.
        """
        if self._earlier:
            sampled = self._ranker.subsample < 1 or self._ranker.colsample_bytree < 1
            for number in range(n_rounds if sampled else 1):
                grow(number)
            self._n_constant = 1  # LightGBM keeps one round without splits
        if self._earlier or self._ranker.colsample_bytree < 1:
            for booster in self.boosters:
                booster.reset_parameter({"min_gain_to_split": 0.0})

    def texts(self, n_rounds):
        """Return the trees of the first rounds in LightGBM's text format, one text per booster."""
        counts = self.tree_counts[n_rounds - 1] if n_rounds else [0] * len(self.boosters)
        if not self._earlier:
            pairs = zip(self.boosters, counts, strict=True)
            return [booster.model_to_string(num_iteration=count) for booster, count in pairs]
        found = []
        for booster, text, count in zip(self.boosters, self._earlier, counts, strict=True):
            head, trees, rest = _split(text)
            n_per_round = booster.num_model_per_iteration()
            if self._n_constant:  # not a finished run
                head, later, rest = _split(booster.model_to_string())
                trees = trees + later[self._n_constant * n_per_round :]
            kept = "".join(f"Tree={number}{tree}" for number, tree in enumerate(trees[: count * n_per_round or None]))
            # LightGBM completes the text: sizes of trees and importances of features.
            found.append(self._library.Booster(model_str=f"{head}{kept}{rest}").model_to_string())
        return found

    def _count(self, number):
        """Return the number of rounds with a tree of a booster, with earlier ones."""
        booster = self.boosters[number]
        count = booster.num_trees() // booster.num_model_per_iteration()
        if self._earlier:
            count += self.tree_counts[self._n_earlier - 1][number] - self._n_constant
        return count

    def _round(self, number, grow, scores):
        try:
            pairs = grow(number - 1)
        except self._library.basic.LightGBMError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"LightGBM failed to grow a tree ({reason}). Try a larger min_child_weight.") from error
        if pairs is None:
            self.rounds.reason = self.rounds.reason or "no split"
            return
        self.tree_counts.append([self._count(number) for number in range(len(self.boosters))])
        values = {**self._values(scores), "effective_pairs": pairs, "learning_rate": self._ranker.learning_rate}
        entry = Round(number, **values, seconds=self.rounds.lap())
        self.rounds.end(entry, entry.validation)

    def _values(self, scores):
        """Return what the history stores of the current scores."""
        values = {
            "train": self._on_train(self._finite(scores([_current_outputs(booster.eval_train) for booster in self.boosters])))
        }
        if self._validation:
            outputs = [_current_outputs(booster.eval_valid) for booster in self.boosters]
            values["validation"] = self._on_validation(self._finite(scores(outputs)))
        return values

    def _finite(self, scores):
        if not np.isfinite(scores).all():
            rate = self._ranker.learning_rate
            raise ValueError(f"learning_rate={rate!r} is too large: the scores overflowed. Use a smaller learning_rate.")
        return scores


def _split(text):
    """Split LightGBM's text format into its head, without the sizes of the trees, the trees, and the rest."""
    head, *trees = re.split(r"^Tree=\d+$", text, flags=re.MULTILINE)
    last, end, rest = (trees or [head])[-1].partition("end of trees")
    if trees:
        trees[-1] = last
    else:
        head = last
    return re.sub(r"^tree_sizes=.*\n", "", head, flags=re.MULTILINE), trees, end + rest


def tree_library():
    """Return the library that grows trees and predicts: LightGBM, or its stand-in where it is not installed."""
    try:
        import lightgbm
    except ImportError:
        from structrank.learners import plain_trees

        return plain_trees
    return lightgbm


def library_notes():
    """Return a remark, in a tuple, if trees are not grown by LightGBM."""
    return getattr(tree_library(), "NOTES", ())


def _current_outputs(evaluate):
    """Return a booster's outputs for its training or validation rows, which LightGBM keeps up to date."""
    kept = []

    def keep(outputs, _):
        kept.append(outputs)
        return "kept", 0.0, True

    evaluate(keep)
    return kept[0]


def as_lightgbm(matrix):
    """Convert a matrix to a type that LightGBM reads without loss."""
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.csr_matrix(matrix)
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
