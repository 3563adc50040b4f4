"""SPSARanker: a linear ranker that maximises a measure with gradients estimated from function values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.learners.cross_entropy import equally_weighted_pairs, mean_cross_entropy
from structrank.learners.networks import Network, moments
from structrank.learners.training import Round, RoundsRanker
from structrank.metrics import Measure
from structrank.models.linear import LinearMethods
from structrank.solvers.spsa import FDSA, SPSA, Steps, step
from structrank.training.rounds import Rounds

_METHODS = ("spsa:2", "spsa:4", "spsa:8", "fdsa")


@saveable
@dataclass(eq=False, repr=False)
class SPSARanker(LinearMethods, RoundsRanker):
    r"""Linear ranker trained on a measure directly, by stochastic approximation of its gradient.

    The mean NDCG over many queries is piecewise constant in the weights, with small steps. SPSA estimates its gradient from
    two values, at w + cδ and w - cδ for random signs δ, whatever the number of weights; FDSA perturbs one weight at a time.
    The method is that of Yue and Burges, On using simultaneous perturbation stochastic approximation for learning to rank, and
    the empirical optimality of LambdaRank, MSR-TR-2007-115, who found it worse than `LambdaRank` on web search data.

    Parameters
    ----------
    objective : {"measure", "cross-entropy"}, default "measure"
        Function to maximise: the measure, or minus RankNet's mean cross entropy of pairs, which is smooth.
    measure : str or Measure, default "ndcg@10"
        Any measure of `structrank.metrics`; also used by `score`.
    method : {"spsa:2", "spsa:4", "spsa:8", "fdsa"}, default "spsa:4"
        How the gradient is estimated; the number is the number of evaluations per gradient.
    step, perturbation : float, default 10.0 and 0.1
        The constants a and c of the steps a / (50 + k^0.602) and perturbations c / k^0.101 of iteration k. Features are
        standardised for training, so both constants are independent of the scale of the features.
    max_evaluations : int, default 2000
        Maximum number of evaluations of the objective for gradients.
    patience : int or None, default None
        Stop after this many iterations without a new best value of the measure.
    random_state : int, default 0
        Seed of the directions and of the initial weights.
    verbose : int, default 0
        1 shows a progress line; 0 prints nothing.
    missing, preparation, normalise
        From raw values to features, as for `StructRankSVM`.

    Attributes
    ----------
    weights_ : (n_features,) array
        Weights of the best iteration by the measure, on the validation set if given.
    n_iter_ : int
        Number of iterations.
    n_evaluations_ : int
        Number of evaluations of the objective in these iterations.
    best_round_ : int
        The iteration whose weights were kept, from 1.
    history_ : History
        A `structrank.learners.training.Round` per iteration; its loss is the cross entropy if that is the objective.
    stop_reason_ : str
        "max_evaluations", "patience", "callback" or "interrupted" (Ctrl-C).
    n_features_in_ : int

    See Also
    --------
    structrank.solvers.spsa.minimize : The same method for any function.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import SPSARanker
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = SPSARanker(max_evaluations=400).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.n_iter_, model.history_[-1].train > model.history_[0].train
    (100, True)
    """

    objective: str = "measure"
    measure: str | Measure = "ndcg@10"
    method: str = "spsa:4"
    step: float = 10.0
    perturbation: float = 0.1
    max_evaluations: int = 2000
    patience: int | None = None
    random_state: int = 0
    verbose: int = 0

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        checks.check_choice("objective", self.objective, ("measure", "cross-entropy"))
        checks.check_choice("method", self.method, _METHODS)
        for name in ("step", "perturbation"):
            checks.check_number(name, getattr(self, name), above=0)
        checks.check_number("max_evaluations", self.max_evaluations, at_least=1, integer=True)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)
        checks.check_cut("patience", self.patience, "no early stopping")
        self.parsed_measure()

    def _train(self, sets, callback, checkpoint):
        steps = Steps(a=float(self.step), c=float(self.perturbation))
        method = FDSA() if self.method == "fdsa" else SPSA(int(self.method.partition(":")[2]))
        cost = method.evaluations_of(sets.data.n_features)
        if cost > self.max_evaluations:
            raise ValueError(
                f"max_evaluations={self.max_evaluations} is not enough for one gradient: {self.method} with "
                f"{sets.data.n_features} features needs {cost}."
            )
        descent = _Descent(self, sets, np.random.default_rng(self.random_state))
        limits = "max_evaluations", "iteration", callback, checkpoint, self.max_evaluations // cost
        rounds = Rounds(self, descent, sets.facts(), *limits)
        with rounds:
            for number in rounds:
                descent.weights = step(descent.loss, descent.weights, number, method, steps, descent.rng)
                given = descent.weights * descent.scale
                train, validated, loss = descent.values(given)
                watched = train if sets.validation is None else validated
                if watched > rounds.best_value:
                    descent.best = given
                rounds.end(Round(number, train, validated, 0, loss, steps.at(number)[0], rounds.lap()), watched)
        self.weights_ = descent.best
        self.n_evaluations_ = len(rounds.entries) * cost
        return rounds, rounds.best_round

    def check_loaded(self):
        """Raise unless a loaded model has one weight per feature."""
        super().check_loaded()
        self._check_loaded_weights("weights_")

    def _score_documents(self, X):
        matrix = self._check_features(X)
        return Network(self.n_features_in_, 0).scores(matrix, self.weights_)


class _Descent:
    """The weights for standardised features, the best so far for the features as given, and the objective."""

    def __init__(self, ranker, sets, rng):
        data = sets.data
        self.data, self.validation = data, sets.validation
        self.network = Network(data.n_features, 0)
        _, self.scale = moments(data)
        self.evaluator, self.other = sets.evaluators(ranker.parsed_measure())
        self.pairs = None
        if ranker.objective == "cross-entropy":
            self.pairs = equally_weighted_pairs(data.labels[data.grouping.rows], data.grouping.indptr, data.query_weights)
        self.rng, self.best = rng, self.network.random_weights(rng) * self.scale
        self.weights = self.best / np.where(self.scale > 0, self.scale, 1.0)

    def state(self):
        """Return what the next iteration depends on, for a checkpoint."""
        return {"weights": self.weights, "best": self.best, "rng": self.rng.bit_generator.state}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        self.weights, self.best, self.rng.bit_generator.state = state["weights"], state["best"], state["rng"]

    def loss(self, w):
        """Compute the function to minimise."""
        scores = self.network.scores(self.data.X, w * self.scale)
        return -self.evaluator(scores) if self.pairs is None else self._entropy(scores)

    def _entropy(self, scores):
        return mean_cross_entropy(scores[self.data.grouping.rows], self.pairs)

    def values(self, given):
        """Compute the measure on both sets and the cross entropy; nan for a value that does not apply."""
        scores = self.network.scores(self.data.X, given)
        validated = np.nan if self.other is None else self.other(self.network.scores(self.validation.X, given))
        return self.evaluator(scores), validated, np.nan if self.pairs is None else self._entropy(scores)
