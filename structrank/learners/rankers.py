"""RankNet and LambdaRank: scoring functions trained by gradient descent on lambdas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from structrank._kernels import lambdas as lambda_kernels
from structrank._kernels import networks as kernels
from structrank._support import checks
from structrank._support.saveable import saveable
from structrank._support.typing import ArrayLike, Matrix, Path
from structrank.datasets import Dataset
from structrank.learners.cross_entropy import equally_weighted_pairs, mean_cross_entropy
from structrank.learners.networks import Network, blocks, dense_rows, moments
from structrank.learners.optimality import TINY, moves_around
from structrank.learners.plans import CONSTRUCTIONS, make_plan, parse_target
from structrank.learners.training import Round, RoundsRanker
from structrank.metrics import Measure
from structrank.models.linear import LinearMethods
from structrank.training.rounds import Rounds

# When the training measure falls, the learning rate decays by this factor with this probability (SIGIR 2009 paper).
_RATE_DECAY, _DECAY_PROBABILITY = 0.8, 0.3
# A larger rate comes closer to an optimum of the training measure; a smaller one passes more candidates for early stopping.
_RATE, _ADAM_RATE_WITH_VALIDATION = 0.01, 0.001
# Initial scores are small, so that weights of features without signal do not disturb the ranking.
_SPREAD = 0.1
# Range of step lengths along the lambdas of a query while weights settle, relative to the norm of the weights.
_SHORTEST, _LONGEST = 0.01, 0.3


@dataclass(eq=False, repr=False)
class _GradientRanker(LinearMethods, RoundsRanker):
    """Training shared by RankNet and LambdaRank, which differ in the plan of pairs."""

    measure: str | Measure = "ndcg@10"
    _: KW_ONLY
    hidden_units: int = 10
    batch: str = "query"
    optimizer: str = "adam"
    learning_rate: float | None = None
    max_epochs: int = 200
    patience: int | None = 50
    restarts: int = 0
    random_state: int = 0
    verbose: int = 0

    settle = 0  # settling needs the lambdas of a measure

    def fit(  # type: ignore[override]  # `start` stands before the last argument of the other learners
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: Dataset | tuple | None = None,
        callback: Callable[[Round], object] | None = None,
        start: ArrayLike | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, y, qid, sample_weight, validation, callback, checkpoint
            As for `SPSARanker.fit`.
        start : array-like of shape (n_weights,), default None
            Initial weights in the layout of `weights_`, such as the `weights_` of a ranker trained for another measure. None
            for random weights. Restarts are from random weights.
        """
        return self._fit(X, y, qid, sample_weight, validation, callback, checkpoint, start=start)

    def _train(self, sets, callback, checkpoint, start):
        run = _Run(self, self.parsed_measure(), sets, start)
        rounds = Rounds(self, run, sets.facts(start=start), "max_epochs", "epoch", callback, checkpoint)
        run.train(rounds)
        self.weights_ = run.best_weights
        return rounds, run.best_round

    def _score_documents(self, X):
        matrix = self._check_features(X)
        return Network.of(self.n_features_in_, self.weights_).scores(matrix, self.weights_)

    def check_loaded(self):
        """Raise unless a loaded model has the weights of a linear function or of a network of these features."""
        super().check_loaded()
        n, weights = self._loaded_width(), checks.check_fitted_attribute(self, "weights_", np.ndarray)
        self._check_loaded_weights("weights_", {n, max(weights.size // (n + 2), 1) * (n + 2)})

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        checks.check_number("hidden_units", self.hidden_units, at_least=0, integer=True)
        checks.check_choice("batch", self.batch, ("query", "full"))
        checks.check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        if self.learning_rate is not None:
            checks.check_number("learning_rate", self.learning_rate, above=0)
        checks.check_number("max_epochs", self.max_epochs, at_least=0, integer=True)
        checks.check_cut("patience", self.patience, "no early stopping")
        checks.check_number("restarts", self.restarts, at_least=0, integer=True)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)
        self.parsed_measure()


@saveable
class RankNet(_GradientRanker):
    r"""Ranker trained on the cross entropy of pairs (Burges et al., Learning to rank using gradient descent, ICML 2005).

    .. math:: C = \frac{1}{|Q|} \sum_q \frac{1}{|P_q|} \sum_{(i, j) \in P_q} \log(1 + e^{-(s_i - s_j)})

    over the pairs (i, j) of documents of a query in which i has the larger label. The score s is linear or a two-layer network,
    :math:`v \cdot \tanh(W^T x + b)`. Features are standardised for training; the fitted weights apply to the original
    features.

    Parameters
    ----------
    measure : str or Measure, default "ndcg@10"
        Measure of `score` and of the comparison of epochs; the training loss does not depend on it.
    hidden_units : int, default 10
        0 for a linear scoring function.
    batch : {"query", "full"}, default "query"
        Update the weights after each query, in random order, or once per epoch.
    optimizer : {"adam", "sgd"}, default "adam"
        "sgd" is the gradient method of the papers: steps of the learning rate times the gradient; when the measure on the
        training set falls, the learning rate is multiplied by 0.8 with probability 0.3. It needs a learning rate chosen for
        the data. "adam" does not depend on the scale of the gradient, which grows with the number of documents per query.
    learning_rate : float or None, default None
        Initial learning rate; None for 0.01, or 0.001 for "adam" with a validation set, where smaller steps allow to stop
        earlier.
    max_epochs : int, default 200
        Maximum number of passes over the data; 0 keeps the random initial weights.
    patience : int or None, default 50
        After this many epochs without a new best value of the measure, training restarts from new random weights, or ends
        if no restarts are left. None for neither.
    restarts : int, default 0
        Maximum number of restarts.
    random_state : int, default 0
        Seed of the random weights and of the order of the queries.
    verbose : int, default 0
        1 shows a progress line; 0 prints nothing.
    missing, preparation, normalise
        From raw values to features, as for `StructRankSVM`.

    Attributes
    ----------
    weights_ : (n_weights,) array
        Weights of the best epoch by the measure, on the validation set if given: w, or W (n_features, hidden_units), b and
        v, concatenated.
    n_iter_ : int
        Number of epochs.
    best_round_ : int
        The epoch whose weights were kept, from 1; 0 for the weights in `start`.
    history_ : History
        A `structrank.learners.training.Round` per epoch, with the cross entropy as its loss.
    stop_reason_ : str
        "max_epochs", "patience", "callback" or "interrupted" (Ctrl-C).
    n_features_in_ : int

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import RankNet
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = RankNet(hidden_units=0, max_epochs=20).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.history_[-1].loss < model.history_[0].loss
    True
    """

    def _plan(self, measure, labels, indptr, query_weights):
        plan = equally_weighted_pairs(labels, indptr, query_weights)
        # The gradient of a batch is a sum over its queries, not a mean over all.
        return plan._replace(scales=plan.scales * (indptr.shape[0] - 1))

    def _loss(self, scores, plan):
        return mean_cross_entropy(scores, plan) / plan.scales.shape[0]


@saveable
@dataclass(eq=False, repr=False)
class LambdaRank(_GradientRanker):
    r"""Ranker trained on lambdas: gradients weighted by the change of a measure when two documents are swapped.

    .. math:: \lambda_i = \sum_{j: i \succ j} \lambda_{ij} - \sum_{j: j \succ i} \lambda_{ji}, \qquad
              \lambda_{ij} = |\Delta_{ij}| \frac{1}{1 + e^{s_i - s_j}}

    with :math:`\Delta_{ij}` the swap gain of the measure in the current ranking; the weights follow
    :math:`\sum_i \lambda_i \, \partial s_i / \partial w`. The score s is linear or a two-layer network,
    :math:`v \cdot \tanh(W^T x + b)`. Features are standardised for training; the fitted weights apply to the original
    features.

    Parameters
    ----------
    measure : str or Measure, default "ndcg@10"
        Measure to optimise: "ndcg", "ndcg@k", "map", "mrr" or "mrr@k", or an object such as ``metrics.MAP(relevant_from=2)``.
    construction : str, default "ranknet-weight-pairs"
        Construction of the lambdas: "ranknet-weight-pairs", "spring-smooth", "local-gradient", "local-cost" or
        "discrete-bounded"; see `lambda_gradients`.
    hidden_units, batch, optimizer, learning_rate, max_epochs, patience, restarts
        As for `RankNet`, with up to 700 epochs.
    settle : int, default 0
        Not part of the papers: number of random directions of a final phase that leads to a local optimum of the measure on
        the training set, which a zero of the lambdas need not be. The best weights take steps along the lambdas of one query
        at a time, of 1 to 30 % of the norm of the weights, and keep the steps that raise the measure. When none does, the
        moves of `local_optimality` are tried: that many random directions, and each weight alone. The phase ends if none of
        these moves raises the measure, after `max_epochs` further epochs at the latest. If 459 directions fail, less than 1 %
        of all directions lead up, with 99 % confidence. 0 skips the phase, and so does a validation set.
    random_state, verbose, missing, preparation, normalise
        As for `RankNet`.

    Attributes
    ----------
    weights_, n_iter_, best_round_, n_features_in_
        As for `RankNet`.
    history_ : History
        A `structrank.learners.training.Round` per epoch, with the number of effective pairs: pairs with a non-zero lambda.
    stop_reason_ : str
        "settled", "patience", "max_epochs", "callback" or "interrupted" (Ctrl-C).

    See Also
    --------
    local_optimality : Test whether the fitted weights are a local optimum of the measure.

    References
    ----------
    Burges, Ragno and Le, Learning to rank with nonsmooth cost functions, NIPS 2006; Donmez, Svore and Burges, On the local
    optimality of LambdaRank, SIGIR 2009.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = LambdaRank("map", hidden_units=0, max_epochs=20).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.7
    True
    >>> model.history_[0].effective_pairs > 0
    True
    """

    construction: str = "ranknet-weight-pairs"
    _: KW_ONLY
    max_epochs: int = 700
    settle: int = 0

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        if self.measure is None:
            raise ValueError("measure=None is not valid: LambdaRank optimises a measure. Use RankNet to train without one.")
        checks.check_choice("construction", self.construction, tuple(CONSTRUCTIONS))
        checks.check_number("settle", self.settle, at_least=0, integer=True)
        super().check_parameters()
        parse_target(self.measure)

    def _plan(self, measure, labels, indptr, query_weights):
        measure.check_labels(labels)
        return make_plan(measure, labels, indptr, query_weights=query_weights, construction=self.construction)

    def _loss(self, scores, plan):
        return np.nan  # only the gradient is defined


class _Run:
    """One training run: the data in the layout of the kernels, the current weights and the best."""

    def __init__(self, ranker, measure, sets, start):
        self.ranker, self.data, self.validation = ranker, sets.data, sets.validation
        data, grouping = sets.data, sets.data.grouping
        self.plan = ranker._plan(measure, data.labels[grouping.rows], grouping.indptr, data.query_weights)
        usable = (self.plan.scales > 0) & (lambda_kernels.count_pairs(self.plan) > 0)
        self.queries = np.flatnonzero(usable)
        if not self.queries.size:
            raise ValueError(
                f"no query has documents that {measure.name} distinguishes, so there is no training signal (n_queries = "
                f"{grouping.n_queries}, n_samples = {data.labels.shape[0]}). Check y, qid, sample_weight and the measure's "
                "relevant_from."
            )
        self.evaluator, self.other = sets.evaluators(measure)
        self.watched = "train" if self.validation is None else "validation"
        self.mean, self.scale = moments(data)
        self.network = Network(data.n_features, ranker.hidden_units)

        self.rng = np.random.default_rng(ranker.random_state)
        self.restarts, self.settles = ranker.restarts, False
        self._begin(self._initial(start))
        # Random weights may do well on a small validation set by chance, so they are not a candidate.
        value = -np.inf if start is None else self._measure(self.weights, 0)[self.watched]
        self._keep(self._as_given(self.weights), 0, value)

    def state(self):
        """Return what the next epoch depends on, for a checkpoint."""
        best = "best_weights", "best_round", "best_value"
        names = "weights", "rate", "adam", "previous", "restarts", "settles", *best
        return {**{name: getattr(self, name) for name in names}, "rng": self.rng.bit_generator.state}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        self.rng.bit_generator.state = state["rng"]
        vars(self).update({**state, "adam": kernels.Adam(*state["adam"]), "rng": self.rng})

    def train(self, rounds):
        """Follow the gradient, and then settle if the ranker does."""
        with rounds:
            for epoch in rounds:
                if self.settles:
                    self._settle(epoch, rounds)
                    continue
                self._ascend(epoch, rounds)
                if rounds.reason == "patience" and self.restarts:
                    self.restarts -= 1
                    self._begin(self.network.random_weights(self.rng, _SPREAD))
                    rounds.go_on()
                if self.ranker.settle and self.other is None and rounds.reason in ("patience", "max_epochs"):
                    self.settles, rounds.most, rounds.patience = True, epoch + self.ranker.max_epochs, None
                    rounds.go_on()
        if self.best_round > len(rounds.entries):  # found in the epoch that was interrupted
            rounds.entries.append(Round(self.best_round, **self._measure(self._standardised(), self.best_round)))

    def _initial(self, start):
        """Return random weights, or the weights of the user for standardised features."""
        if start is None:
            return self.network.random_weights(self.rng, _SPREAD)
        given = checks.as_array(start, "start")
        given = checks.as_number_column(given, given.size, "start", "finite weights", "the network")
        if given.shape != (self.network.size,) or not np.isfinite(given).all():
            raise ValueError(
                f"start has shape {given.shape}; expected {self.network.size} finite weights in one dimension, for "
                f"{self.network.n_features} features and hidden_units={self.network.n_hidden}, as in weights_."
            )
        return self.network.standardise(given, self.mean, self.scale)

    def _keep(self, given, epoch, value):
        self.best_weights, self.best_round, self.best_value = given, epoch, value

    def _initial_rate(self):
        if self.ranker.learning_rate is not None:
            return float(self.ranker.learning_rate)
        return _ADAM_RATE_WITH_VALIDATION if self.ranker.optimizer == "adam" and self.other is not None else _RATE

    def _begin(self, weights):
        """Begin the ascent from given weights."""
        self.weights, self.rate, self.previous = weights, self._initial_rate(), -np.inf
        self.adam = _adam_state(self.network.size if self.ranker.optimizer == "adam" else 0)

    def _ascend(self, epoch, rounds):
        """Follow the gradient for one epoch."""
        ranker, rate = self.ranker, self.rate
        if ranker.batch == "query":
            pairs = self._by_query(self.weights, rate, self.adam, self.rng.permutation(self.queries))
        else:
            pairs = self._at_once(self.weights, rate, self.adam)
        values = self._measure(self.weights, epoch)
        if values[self.watched] > self.best_value:
            self._keep(self._as_given(self.weights), epoch, values[self.watched])
        if ranker.optimizer == "sgd" and values["train"] < self.previous and self.rng.random() < _DECAY_PROBABILITY:
            self.rate *= _RATE_DECAY
        self.previous = values["train"]
        entry = Round(epoch, **values, effective_pairs=int(pairs), learning_rate=rate, seconds=rounds.lap())
        rounds.end(entry, values[self.watched])

    def _settle(self, epoch, rounds):
        """Step along the lambdas of single queries from the best weights, and where that fails in directions of the test."""
        before, pairs = self.best_value, 0
        for query in self.rng.permutation(self.queries):
            weights, n_pairs = self._stepped(query)
            pairs += n_pairs
            self._keep_if_better(self._as_given(weights), epoch)
        if self.best_value == before:
            self._search_directions(epoch)
        values = self._measure(self._standardised(), epoch)
        entry = Round(epoch, **values, effective_pairs=int(pairs), seconds=rounds.lap())
        rounds.end(entry, stop="settled" if self.best_value == before else None)

    def _stepped(self, query):
        """Return the best weights moved along the lambdas of one query by a random length, and the number of pairs."""
        share = _SHORTEST * (_LONGEST / _SHORTEST) ** self.rng.random()
        best = self._standardised()
        moved = best.copy()
        pairs = self._by_query(moved, 1.0, _adam_state(0), np.array([query]))
        step = moved - best
        length = np.linalg.norm(step)
        if length > 0.0:
            step *= share * np.linalg.norm(best) / length
        return best + step, pairs

    def _search_directions(self, epoch):
        """Move the best weights to the first larger value that `local_optimality` would find."""
        network, weights = self.network, self.best_weights
        for directions, steps in moves_around(network, weights, self.ranker.settle, self.rng):
            for direction, path in zip(directions, network.paths(self.data.X, weights, directions), strict=True):
                for step in steps:
                    if self.evaluator(path(step)) > self.best_value + TINY:
                        self._keep_if_better(weights + step * direction, epoch)
                        return

    def _keep_if_better(self, given, epoch):
        value = self.evaluator(self.network.scores(self.data.X, given))
        if value > self.best_value:
            self._keep(given, epoch, value)

    def _as_given(self, weights):
        return self.network.rescale(weights, self.mean, self.scale)

    def _standardised(self):
        """Return the best weights for standardised features."""
        return self.network.standardise(self.best_weights, self.mean, self.scale)

    def _measure(self, weights, epoch):
        """Return what the history stores of weights."""
        weights = self._as_given(weights)
        if not np.isfinite(weights).all():
            raise ValueError(
                f"learning_rate={self.ranker.learning_rate!r} is too large: the weights overflowed in epoch {epoch}. "
                "Use a smaller learning_rate."
            )
        scores = self.network.scores(self.data.X, weights)
        loss = self.ranker._loss(scores[self.data.grouping.rows], self.plan)
        validation = np.nan if self.other is None else self.other(self.network.scores(self.validation.X, weights))
        return {"train": self.evaluator(scores), "validation": validation, "loss": loss}

    def _rows(self, rows):
        return (dense_rows(self.data.X, rows) - self.mean) * self.scale

    def _by_query(self, weights, rate, adam, queries):
        """Update the weights after each query; return the number of effective pairs."""
        grouping, pairs = self.data.grouping, 0
        for chunk in self._chunks(queries):
            starts = np.concatenate([[0], np.cumsum(grouping.sizes[chunk])])
            rows = np.concatenate([grouping.rows[grouping.indptr[q] : grouping.indptr[q + 1]] for q in chunk])
            pairs += kernels.train_by_query(
                self._rows(rows), starts, chunk, self.plan, weights, self.network.n_hidden, rate, adam
            )
        return pairs

    def _chunks(self, order):
        """Split the queries into chunks that are made dense one at a time."""
        sizes = np.cumsum(self.data.grouping.sizes[order])
        n_blocks = len(list(blocks(int(sizes[-1]), self.network.n_features)))
        return [
            chunk
            for chunk in np.split(order, np.searchsorted(sizes, sizes[-1] * np.arange(1, n_blocks) / n_blocks))
            if chunk.size
        ]

    def _at_once(self, weights, rate, adam):
        """Update the weights by the gradient of all queries; return the number of effective pairs."""
        rows, n_hidden = self.data.grouping.rows, self.network.n_hidden
        pieces = list(blocks(rows.shape[0], self.network.n_features))
        scores, forces = np.empty(rows.shape[0]), np.zeros(rows.shape[0])
        for piece in pieces:
            X = self._rows(rows[piece])
            kernels.forward(X, weights, n_hidden, np.empty((X.shape[0], n_hidden)), scores[piece])
        pairs = lambda_kernels.add_lambdas(scores, self.plan, 1.0, forces, np.zeros(rows.shape[0]))
        gradient = np.zeros(self.network.size)
        for piece in pieces:
            X = self._rows(rows[piece])
            hidden = np.empty((X.shape[0], n_hidden))
            kernels.forward(X, weights, n_hidden, hidden, np.empty(X.shape[0]))
            kernels.backward(X, hidden, forces[piece], weights, n_hidden, gradient)
        kernels.ascend(weights, gradient, rate, adam)
        return pairs


def _adam_state(n_weights):
    """Return the initial state of Adam; of plain gradient ascent for no weights."""
    return kernels.Adam(np.zeros(n_weights), np.zeros(n_weights), np.zeros(1, np.int64))
