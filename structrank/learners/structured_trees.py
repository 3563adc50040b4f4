"""StructRankTrees: boosted trees trained on the structured hinge loss."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.criteria import Criterion
from structrank.learners.boosting import BoostedRanker, Course, as_lightgbm
from structrank.learners.line_search import minimise_along_ray
from structrank.learners.training import TreeParameters
from structrank.metrics import Measure
from structrank.training.data import RankingData
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.structured_loss import LossParameters


@saveable
@dataclass(eq=False, repr=False)
class StructRankTrees(LossParameters, TreeParameters, BoostedRanker):
    r"""Boosted trees trained on the structured hinge loss of a measure of the whole ranking.

    The risk of `StructRankSVM`, as a function of the scores s of all documents,

    .. math:: R(s) = \frac{1}{|Q|} \sum_q \max_y [s_q \cdot (\phi_q(y) - \phi_q(y^*)) + \Delta(y^*_q, y)],

    is minimised by boosting, without a penalty. The exact oracle of the criterion gives its gradient g, one number for each
    document. In each round, LightGBM grows a tree (or scikit-learn, see `LambdaMART`), and all its values follow from the risk:

    - Splits maximise :math:`(\sum g)^2 / (\sum |g| + \text{reg\_lambda})`, summed over both sides, where g is scaled so that
      the mean of :math:`|g|` is 1. R is piecewise linear and has no second derivative; :math:`|g|` takes its place, so that
      documents without a violated margin have no weight.
    - Leaf values are :math:`-\sum g / (\sum |g| + \text{reg\_lambda})` over the training documents in a leaf: the majority of
      the gradient, between -1 and 1.
    - The tree is multiplied by the step that minimises R, found by `structrank.learners.line_search`, and by `learning_rate`.
      R is convex in s, so it falls.
    - R has kinks, the first where all scores are equal. If it does not fall along a tree, the tree is kept as part of the
      direction, and the next tree is fitted to the errors of the direction, as in regression to :math:`-g / |g|` with weights
      :math:`|g|`, until R falls along the sum of these trees.

    Parameters
    ----------
    criterion : str, Criterion, or a list, default "ndcg"
        Delta, as for `StructRankSVM`; a list trains on several at once (COMBO).
    k : int, None or "auto", default "auto"
        Rank cutoff of the criteria whose names have none, as for `StructRankSVM`.
    feature_map, discount, decay, slack, relevant_from, gain
        As for `StructRankSVM`.
    measure : str, Measure or None, default None
        Measure of `score` and of early stopping; None is the measure of the criterion, or of the first of several.
    learning_rate : float, default 0.1
        Share of the step that minimises the risk; at most 1.
    min_child_weight : float, default 1e-3
        Minimum sum of :math:`|g|` in a leaf, in units of its mean over the documents.
    reg_lambda : float, default 0.0
        Added to the sum of :math:`|g|` in a leaf; shrinks its value relative to larger leaves.
    n_estimators, num_leaves, min_child_samples, subsample, colsample_bytree, patience, n_jobs, random_state, verbose
        As for `LambdaMART`; the default of `num_leaves` is 7.
    missing, preparation, normalise
        From raw values to features, as for `StructRankSVM`.

    Attributes
    ----------
    trees_, n_iter_, best_round_, n_features_in_, feature_names_in_
        As for `LambdaMART`.
    history_ : History
        A `structrank.learners.training.Round` per round: the measure on both sets, and the risk R as `loss`.
    initial_risk_ : float
        R before the first tree, where all scores are equal.
    stop_reason_ : str
        "n_estimators", "patience", "callback", "interrupted" (Ctrl-C), "no split" if no further tree could be grown, or
        "minimum" if the gradient of the risk is 0.
    notes_ : tuple of str
        Remarks on training: that trees do not reduce the risk, that grades were reduced to binary relevance, or that
        scikit-learn grew the trees.

    See Also
    --------
    structrank.StructRankSVM : The linear model, with a certified optimum.
    structrank.learners.LambdaMART : Trees fitted to lambdas, which are not the gradient of a loss.

    Examples
    --------
    >>> from structrank import StructRankTrees, datasets
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=3, noise=0.3, random_state=0)
    >>> train, test = fold.train, fold.test
    >>> model = StructRankTrees("ndcg", relevant_from=None, discount="log2", n_estimators=20, patience=5)
    >>> model = model.fit(train.X, train.y, qid=train.qid, validation=fold.validation)
    >>> model.predict(test.X).shape == test.y.shape
    True
    >>> bool(model.history_[-1].loss < model.initial_risk_)
    True
    """

    criterion: str | Criterion | Sequence[str | Criterion] = "ndcg"
    k: int | str | None = "auto"
    feature_map: Any = "auto"
    discount: str = "auto"
    decay: Any = "sqrt"
    slack: str = "separate"
    relevant_from: float | None = 1
    gain: Any = "auto"
    measure: str | Measure | None = None
    _: KW_ONLY
    num_leaves: int = 7

    def parsed_measure(self):
        """Return the measure of `score` and of early stopping."""
        if self.measure is None:
            return self.parsed_criteria()[0].measure(self.relevant_from)
        return super().parsed_measure()

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        self._structured_loss()
        super().check_parameters()
        if self.learning_rate > 1:
            raise ValueError(
                f"learning_rate={self.learning_rate!r} is not valid: expected a share of the step that minimises the risk, "
                "above 0 and at most 1."
            )

    def _course(self, *arguments):
        return _Course(self, *arguments)

    def _grow(self, course):
        with closing(ScoreRisk(course.data, self._structured_loss(), checks.n_threads(self.n_jobs))) as risk:
            course.start(risk)
            course.run(course.grow, None)
        self.initial_risk_ = course.initial_risk

    def _scores(self, outputs):
        return outputs[0]

    def _remarks(self, course):
        remarks = self._structured_loss().remarks(has_grades=np.unique(course.data.labels).size > 2)
        if course.pending:
            names = " + ".join(criterion.name for criterion in self.parsed_criteria())
            text = f"The last {len(course.pending)} of {len(course.rounds.entries)} trees do not reduce the risk of {names}."
            if not course.n_steps:
                text += (
                    " The trees approximate its gradient at equal scores; on long lists, criteria with a rank cutoff can be "
                    "vacuous. Try criterion='auc' or 'map', or a larger n_estimators."
                )
                warnings.warn(text, checks.StructRankWarning, stacklevel=7)
            remarks.append(text)
        return tuple(remarks)


class ScoreRisk:
    r"""The structured risk as a function of the scores of all documents.

    It is the risk of `structrank.training.risk.Risk` over the identity matrix, in which each document is a feature of its own
    and w are the scores.

    Parameters
    ----------
    data : RankingData
        Its features are not used.
    loss : StructuredLoss
    n_threads : int, default 1

    Examples
    --------
    >>> from structrank import StructRankTrees
    >>> data = RankingData([[0.0], [0.0]], [0, 1], qid=0)
    >>> risk = ScoreRisk(data, StructRankTrees("auc")._structured_loss())
    >>> risk(np.array([0.25, 0.0]))
    (1.5, array([ 2., -2.]))
    """

    def __init__(self, data, loss, n_threads=1):
        identity = scipy.sparse.identity(data.labels.shape[0], format="csr")
        queries = RankingData(identity, data.labels, data.grouping.query_of_row(), data.row_weights, check_finite=False)
        self._risk = Risk(InProcess([queries], n_threads), loss, "one-slack")

    def __call__(self, scores):
        """Return R and its gradient, or a subgradient where R has a kink.

        Parameters
        ----------
        scores : (n_docs,) array

        Returns
        -------
        value : float
        gradient : (n_docs,) array
        """
        plane = self._risk.plane(scores)
        return float(self._risk.weights @ plane.value), -(self._risk.weights @ plane.slope)

    def close(self):
        """Release the threads."""
        self._risk.close()


class _Course(Course):
    """Boosting rounds with leaf values and steps that follow from the risk, instead of LightGBM's.

    LightGBM does not update its own scores when leaf values are replaced, so the scores are kept here. `pending` holds the
    leaf values of the trees since the last step; their sum is the next direction.
    """

    def _reset(self):
        super()._reset()
        self._parts = [part for part in (self.data, self._validation) if part is not None]
        self._scores = [np.zeros(part.labels.shape[0]) for part in self._parts]
        self._direction = [np.zeros_like(scores) for scores in self._scores]
        self.pending, self.n_steps, self.initial_risk = [], 0, None

    def state(self):
        """Return what the next round depends on, for a checkpoint."""
        pending = [values.tolist() for values in self.pending]  # their number varies
        kept = {"scores": self._scores, "direction": self._direction, "pending": pending}
        return {**super().state(), **kept, "n_steps": self.n_steps, "initial_risk": self.initial_risk}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        super().restore(state)
        self._scores, self._direction = ([each.copy() for each in state[name]] for name in ("scores", "direction"))
        self.pending = [np.array(values) for values in state["pending"]]
        self.n_steps, self.initial_risk = state["n_steps"], state["initial_risk"]

    def start(self, risk):
        """Prepare the first round, or the round after the checkpoint."""
        self.add_booster(np.zeros(self.data.labels.shape[0]), objective="none")
        self._risk = risk
        self._value, self._gradient = risk(self._scores[0])
        if self.initial_risk is None:
            self.initial_risk = self._value

    def grow(self, _):
        """Add a tree; return the number of pairs with a lambda, 0, or None if there is no gradient or no split."""
        size, rate = np.abs(self._gradient).mean(), self._ranker.learning_rate
        if size == 0.0:
            self.rounds.reason = "minimum"
            return None
        weights = np.abs(self._gradient) / size
        errors = self._gradient / size + weights * self._direction[0]
        if self.boosters[0].update(fobj=lambda *_: (errors, weights)):
            return None
        leaves = [self._leaves(part) for part in self._parts]
        total, weight = np.bincount(leaves[0], errors), np.bincount(leaves[0], weights) + self._ranker.reg_lambda
        values = -rate * np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0)
        self.pending.append(values)
        for direction, leaf in zip(self._direction, leaves, strict=True):
            direction += values[leaf]
        step = self._step(self._direction[0])
        if step > 0.0:
            self._take(rate * step)
        else:  # before the first step all scores are equal, and the direction ranks better than they do
            self._set_leaf_values(1.0 if self.n_steps == 0 else 0.0, self.pending[-1:])
        return 0

    def _step(self, direction):
        """Return the step along a direction that minimises the risk, 0 if none reduces it."""

        def evaluate(step):
            value, gradient = self._risk(self._scores[0] + step * direction)
            return value, float(gradient @ direction)

        return minimise_along_ray(evaluate, self._value, float(self._gradient @ direction))[0]

    def _take(self, step):
        """Move the scores along the direction."""
        self._set_leaf_values(step, self.pending)
        for scores, direction in zip(self._scores, self._direction, strict=True):
            scores += step * direction
            direction[:] = 0.0
        self.pending.clear()
        self.n_steps += 1
        self._value, self._gradient = self._risk(self._scores[0])

    def _set_leaf_values(self, factor, trees):
        """Set the leaf values of the last trees to multiples of the given values."""
        n_later = self.boosters[0].num_trees() - self._n_constant
        n_earlier = max(len(trees) - n_later, 0)  # pending trees that were grown before a checkpoint
        if n_earlier:
            earlier = self._library.Booster(model_str=self._earlier[0])
            _set_outputs(earlier, factor, trees[:n_earlier])
            self._earlier = [earlier.model_to_string()]
        _set_outputs(self.boosters[0], factor, trees[n_earlier:])

    def _leaves(self, part):
        """Return the leaf of each document in the last tree."""
        booster, threads = self.boosters[0], checks.n_threads(self._ranker.n_jobs)
        last = {"start_iteration": booster.num_trees() - 1, "num_iteration": 1}
        return booster.predict(as_lightgbm(part.X), pred_leaf=True, num_threads=threads, **last).reshape(-1).astype(np.int64)

    def _values(self, _):
        scores = self._direction if self.n_steps == 0 else self._scores
        values = {"train": self._on_train(scores[0]), "loss": self._value if self.n_steps else self._risk(scores[0])[0]}
        if self._validation:
            values["validation"] = self._on_validation(scores[1])
        return values


def _set_outputs(booster, factor, trees):
    """Set the leaf values of a booster's last trees to multiples of the given values."""
    for tree, values in enumerate(trees, start=booster.num_trees() - len(trees)):
        for leaf, value in enumerate((factor * values).tolist()):
            booster.set_leaf_output(tree, leaf, value)
