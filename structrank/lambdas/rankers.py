"""RankNet and LambdaRank: scoring functions trained by gradient descent on lambdas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from structrank import _validation, metrics
from structrank._kernels import lambdas as lambda_kernels
from structrank._kernels import networks as kernels
from structrank.data import RankingData
from structrank.lambdas.cross_entropy import mean_cross_entropy, pairs_alike
from structrank.lambdas.networks import Network, blocks, dense_rows, moments
from structrank.lambdas.plans import CONSTRUCTIONS, make_plan, parse_target
from structrank.lambdas.training import (
    EarlyStopping,
    MeasureRanker,
    Round,
    RoundReporter,
    as_validation,
    training_yardstick,
    validation_yardstick,
)
from structrank.linear_methods import LinearMethods

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from structrank._typing import Matrix
    from structrank.datasets import Dataset
    from structrank.metrics import Measure

# When the training measure falls, the learning rate is multiplied by this, so often: the rule of the SIGIR 2009 paper.
_SLOWER, _OFTEN = 0.8, 0.3
# While weights settle, a step is at least and at most this times as long as they are.
_SHORTEST, _LONGEST = 0.01, 0.3


class _GradientRanker(LinearMethods, MeasureRanker):
    """Training that RankNet and LambdaRank share; they differ in the plan of pairs."""

    settle = 0  # only lambdas of the measure are worth following there

    def fit(
        self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
        validation: Dataset | tuple | None = None, callback: Callable[[Round], object] | None = None,
    ) -> Self:  # fmt: skip
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
            numpy, memory map, pandas, polars or scipy sparse.
        y : array-like of shape (n_docs,)
            Labels, at least 0; larger is more relevant.
        qid : array-like of shape (n_docs,), default None
            Query of each row: any order, any hashable type. None makes all rows one query.
        sample_weight : array-like of shape (n_docs,), default None
            Weights of the queries, given by row and constant within a query.
        validation : tuple (X, y, qid) or Dataset, default None
            Where the measure decides which epoch's weights are kept and when to stop; None for the training set itself.
        callback : callable, default None
            Called with each epoch's entry of the history; a true return value stops training.

        Returns
        -------
        self
        """
        measure = self._check_parameters()
        reporter = RoundReporter(callback, self.verbose)
        data = RankingData(X, y, qid, sample_weight)
        validation = as_validation(validation, data)
        data, _ = data.counted()
        run = _Run(self, measure, data, validation)
        reason = run.descend(reporter)
        self.weights_ = run._as_given(run.best_weights)
        self._keep_course(X, data, reporter, reason, run.best_round)
        return self

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """Score documents; higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)

        Returns
        -------
        (n_docs,) array
        """
        matrix = self._check_features(X)
        return Network.of(self.n_features_in_, self.weights_).scores(matrix, self.weights_)

    def _check_parameters(self):
        """Check what does not depend on data; give the measure."""
        _validation.check_number("hidden_units", self.hidden_units, at_least=0, integer=True)
        _validation.check_choice("batch", self.batch, ("query", "full"))
        _validation.check_number("learning_rate", self.learning_rate, above=0)
        _validation.check_number("max_epochs", self.max_epochs, at_least=0, integer=True)
        _validation.check_cut("patience", self.patience, "no early stopping")
        _validation.check_number("restarts", self.restarts, at_least=0, integer=True)
        _validation.check_number("random_state", self.random_state, at_least=0, integer=True)
        return metrics.parse(self.measure)


class RankNet(_GradientRanker):
    r"""Ranker trained on the cross entropy of pairs (Burges et al., Learning to rank using gradient descent, ICML 2005).

    .. math:: C = \frac{1}{|Q|} \sum_q \frac{1}{|P_q|} \sum_{(i, j) \in P_q} \log(1 + e^{-(s_i - s_j)})

    over the pairs of documents of a query of which i has the larger label. The score s is linear or a network of two layers,
    :math:`v \cdot \tanh(W^T x + b)`. Features are brought to mean 0 and deviation 1 for training; the weights that come out
    are for features as they are.

    Parameters
    ----------
    measure : str or Measure, default "ndcg@10"
        By which epochs are compared and the model is scored; training itself does not see it.
    hidden_units : int, default 10
        0 for a linear scoring function.
    batch : {"query", "full"}, default "query"
        Move the weights after each query, in random order, or once an epoch.
    learning_rate : float, default 0.1
        Factor of the gradient, which is summed over the queries of the batch. When the measure on the training set has fallen,
        it is multiplied by 0.8 with a probability of 0.3, and training goes on from the best weights so far.
    max_epochs : int, default 200
        Passes over the data; 0 leaves the random weights that training starts from.
    patience : int or None, default 50
        Epochs without a new best value of the measure after which training starts again from new random weights, or ends
        where there are no more restarts. None for neither.
    restarts : int, default 0
        How often training may start again.
    random_state : int, default 0
        Seed of the random weights and of the order of the queries.
    verbose : int, default 0
        1 shows a line of progress; 0 prints nothing.

    Attributes
    ----------
    weights_ : (n_weights,) array
        Of the best epoch by the measure, on the validation set where there is one. w, or W (n_features, hidden_units), b and
        v one after another.
    n_iter_ : int
        Epochs made.
    best_round_ : int
        The epoch whose weights were kept, from 1.
    history_ : History
        A `structrank.lambdas.training.Round` for each epoch, with the cross entropy as its loss.
    stop_reason_ : str
        "max_epochs", "patience", "callback" or "interrupted" (Ctrl-C).
    n_features_in_ : int

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.lambdas import RankNet
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = RankNet(hidden_units=0, max_epochs=20).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.history_[-1].loss < model.history_[0].loss
    True
    """

    def __init__(
        self, measure: str | Measure = "ndcg@10", hidden_units: int = 10, batch: str = "query", learning_rate: float = 0.1,
        max_epochs: int = 200, patience: int | None = 50, restarts: int = 0, random_state: int = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        self.measure = measure
        self.hidden_units = hidden_units
        self.batch = batch
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.patience = patience
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self, measure, labels, indptr, query_weights):
        plan = pairs_alike(labels, indptr, query_weights)
        # The gradient of a batch is a sum over its queries, not a mean over all.
        return plan._replace(scales=plan.scales * (indptr.shape[0] - 1))

    def _loss(self, scores, plan):
        return mean_cross_entropy(scores, plan) / plan.scales.shape[0]


class LambdaRank(_GradientRanker):
    r"""Ranker trained on lambdas, gradients that know what a measure gains when two documents trade places.

    .. math:: \lambda_i = \sum_{j: i \succ j} \lambda_{ij} - \sum_{j: j \succ i} \lambda_{ji}, \qquad
              \lambda_{ij} = |\Delta_{ij}| \frac{1}{1 + e^{s_i - s_j}}

    with :math:`\Delta_{ij}` the swap gain of the measure in the current ranking; the weights climb
    :math:`\sum_i \lambda_i \, \partial s_i / \partial w`. The score s is linear or a network of two layers,
    :math:`v \cdot \tanh(W^T x + b)`. Features are brought to mean 0 and deviation 1 for training; the weights that come out
    are for features as they are.

    Parameters
    ----------
    measure : str or Measure, default "ndcg@10"
        What to train for: "ndcg", "ndcg@k", "map", "mrr" or "mrr@k", or an object such as ``metrics.MAP(relevant_from=2)``.
    construction : str, default "ranknet-weight-pairs"
        How lambdas are made: this, "spring-smooth", "local-gradient", "local-cost" or "discrete-bounded"; see
        `lambda_gradients`.
    hidden_units : int, default 10
        0 for a linear scoring function.
    batch : {"query", "full"}, default "query"
        Move the weights after each query, in random order, or once an epoch.
    learning_rate : float, default 0.1
        Factor of the gradient, which is summed over the queries of the batch. When the measure on the training set has fallen,
        it is multiplied by 0.8 with a probability of 0.3, and training goes on from the best weights so far.
    max_epochs : int, default 700
        Passes over the data; 0 leaves the random weights that training starts from.
    patience : int or None, default 50
        Epochs without a new best value of the measure after which training starts again from new random weights, or settles
        where there are no more restarts. None for neither.
    restarts : int, default 0
        How often training may start again.
    settle : int, default 459
        Then the best weights take steps along the lambdas of one query at a time, from 1 to 30 % of their own length, and keep
        those that raise the measure, until so many in a row did not: with 99 % confidence, less than 1 % of all such steps
        would. This is where weights come to a local optimum of the training measure, which the point where lambdas cancel out
        need not be. 0 leaves it out; and with a validation set, whose measure decides, there is none of it.
    random_state : int, default 0
        Seed of the random weights and of the order of the queries.
    verbose : int, default 0
        1 shows a line of progress; 0 prints nothing.

    Attributes
    ----------
    weights_ : (n_weights,) array
        Of the best epoch by the measure, on the validation set where there is one. w, or W (n_features, hidden_units), b and
        v one after another.
    n_iter_ : int
        Epochs made.
    best_round_ : int
        The epoch whose weights were kept, from 1.
    history_ : History
        A `structrank.lambdas.training.Round` for each epoch, with the number of effective pairs: those with a lambda.
    stop_reason_ : str
        "settled", "patience", "max_epochs", "callback" or "interrupted" (Ctrl-C).
    n_features_in_ : int

    See Also
    --------
    local_optimality : Whether the weights that came out are a local optimum of the measure.

    References
    ----------
    Burges, Ragno and Le, Learning to rank with nonsmooth cost functions, NIPS 2006; Donmez, Svore and Burges, On the local
    optimality of LambdaRank, SIGIR 2009.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.lambdas import LambdaRank
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = LambdaRank("map", hidden_units=0, max_epochs=20).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.7
    True
    >>> model.history_[0].effective_pairs > 0
    True
    """

    def __init__(
        self, measure: str | Measure = "ndcg@10", construction: str = "ranknet-weight-pairs", hidden_units: int = 10,
        batch: str = "query", learning_rate: float = 0.1, max_epochs: int = 700, patience: int | None = 50, restarts: int = 0,
        settle: int = 459, random_state: int = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        self.measure = measure
        self.construction = construction
        self.hidden_units = hidden_units
        self.batch = batch
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.patience = patience
        self.restarts = restarts
        self.settle = settle
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self):
        if self.measure is None:
            raise ValueError("measure=None is not valid: LambdaRank trains for a measure. RankNet trains without one.")
        _validation.check_choice("construction", self.construction, tuple(CONSTRUCTIONS))
        _validation.check_number("settle", self.settle, at_least=0, integer=True)
        return parse_target(super()._check_parameters())

    def _plan(self, measure, labels, indptr, query_weights):
        measure.check_labels(labels)
        return make_plan(measure, labels, indptr, query_weights=query_weights, construction=self.construction)

    def _loss(self, scores, plan):
        return np.nan  # only the gradient is defined


class _Run:
    """One training run: the data as the kernels take them, the current weights and the best."""

    def __init__(self, ranker, measure, data, validation):
        self.ranker, self.data, self.validation = ranker, data, validation
        grouping = data.grouping
        self.plan = ranker._plan(measure, data.labels[grouping.rows], grouping.indptr, data.query_weights)
        can_teach = (self.plan.scales > 0) & (lambda_kernels.count_pairs(self.plan) > 0)
        self.queries = np.flatnonzero(can_teach)
        if not self.queries.size:
            raise ValueError(
                f"none of the {grouping.n_queries} queries has documents that {measure.name} tells apart: there is nothing to "
                f"learn from (n_samples = {data.labels.shape[0]}, none usable). Check y, qid, sample_weight and the measure's "
                "relevant_from."
            )
        self.yardstick = training_yardstick(measure, data)
        self.other = validation_yardstick(measure, validation)
        self.mean, self.scale = moments(data)
        self.network = Network(data.n_features, ranker.hidden_units)

    def descend(self, reporter):
        """Train; give the reason for which it ended."""
        rng = np.random.default_rng(self.ranker.random_state)
        self._keep(self.network.random_weights(rng), 0, -np.inf)
        try:
            reason = self._climb(reporter, rng)
            if reason == "patience" and self.ranker.settle and self.other is None and self.best_value < 1.0:
                reason = self._settle(reporter, rng)
        except KeyboardInterrupt:
            if not reporter.rounds:
                raise
            if self.best_round > len(reporter.rounds):  # found in the epoch that was interrupted
                reporter(self._measure(self.best_weights, self.best_round, 0, np.nan, time.perf_counter())[0])
            reason = "interrupted"
        return reason

    def _keep(self, weights, epoch, value):
        self.best_weights, self.best_round, self.best_value = weights.copy(), epoch, value

    def _climb(self, reporter, rng):
        """Follow the gradient, epoch by epoch."""
        ranker, weights = self.ranker, self.best_weights.copy()
        stopping, restarts = EarlyStopping(ranker.patience), ranker.restarts
        rate, previous, highest = ranker.learning_rate, -np.inf, -np.inf
        for epoch in range(1, ranker.max_epochs + 1):
            started = time.perf_counter()
            if ranker.batch == "query":
                pairs = self._by_query(weights, rate, rng.permutation(self.queries))
            else:
                pairs = self._at_once(weights, rate)
            entry, watched = self._measure(weights, epoch, pairs, rate, started)
            if watched > self.best_value:
                self._keep(weights, epoch, watched)
            if entry.train > highest:
                highest, summit = entry.train, weights.copy()
            fallen, previous = entry.train < previous, entry.train
            if fallen and rng.random() < _OFTEN:
                rate *= _SLOWER
                weights[:], previous = summit, highest
            if reporter(entry):
                return "callback"
            if stopping.update(watched):
                if not restarts:
                    return "patience"
                restarts -= 1
                weights = self.network.random_weights(rng)
                stopping, rate = EarlyStopping(ranker.patience), ranker.learning_rate
                previous = highest = -np.inf
        return "max_epochs"

    def _settle(self, reporter, rng):
        """Step along the lambdas of single queries from the best weights, until no step raises the measure any more."""
        enough, in_vain = self.ranker.settle, 0
        for epoch in range(len(reporter.rounds) + 1, self.ranker.max_epochs + 1):
            started, pairs = time.perf_counter(), 0
            for query in rng.permutation(self.queries):
                weights, n_pairs = self._stepped(query, rng)
                pairs += n_pairs
                value = self.yardstick(self.network.scores(self.data.X, self._as_given(weights)))
                in_vain += 1
                if value > self.best_value:
                    self._keep(weights, epoch, value)
                    in_vain = 0
                if in_vain == enough:
                    break
            entry, _ = self._measure(self.best_weights, epoch, pairs, np.nan, started)
            if reporter(entry):
                return "callback"
            if in_vain == enough:
                return "settled"
        return "max_epochs"

    def _stepped(self, query, rng):
        """Give the best weights moved along the lambdas of one query, by a random length; and the number of pairs."""
        share = _SHORTEST * (_LONGEST / _SHORTEST) ** rng.random()
        weights = self.best_weights.copy()
        pairs = self._by_query(weights, 1.0, np.array([query]))
        step = weights - self.best_weights
        length = np.linalg.norm(step)
        if length > 0.0:
            step *= share * np.linalg.norm(self.best_weights) / length
        return self.best_weights + step, pairs

    def _as_given(self, weights):
        return self.network.rescale(weights, self.mean, self.scale)

    def _measure(self, weights, epoch, pairs, rate, started):
        """Give the entry of the history and the value by which epochs are compared."""
        weights = self._as_given(weights)
        if not np.isfinite(weights).all():
            raise ValueError(
                f"learning_rate={self.ranker.learning_rate!r} is too large: the weights left the range of numbers in epoch "
                f"{epoch}. Take a smaller one."
            )
        scores = self.network.scores(self.data.X, weights)
        train = self.yardstick(scores)
        loss = self.ranker._loss(scores[self.data.grouping.rows], self.plan)
        validation = np.nan if self.other is None else self.other(self.network.scores(self.validation.X, weights))
        seconds = time.perf_counter() - started
        entry = Round(epoch, train, validation, int(pairs), loss, rate, seconds)
        return entry, train if self.other is None else validation

    def _rows(self, rows):
        return (dense_rows(self.data.X, rows) - self.mean) * self.scale

    def _by_query(self, weights, rate, queries):
        """Move the weights after each query; give the number of effective pairs."""
        grouping, pairs = self.data.grouping, 0
        for chunk in self._chunks(queries):
            starts = np.concatenate([[0], np.cumsum(grouping.sizes[chunk])])
            rows = np.concatenate([grouping.rows[grouping.indptr[q] : grouping.indptr[q + 1]] for q in chunk])
            pairs += kernels.train_by_query(
                self._rows(rows), starts, chunk, self.plan, weights, self.network.n_hidden, rate
            )
        return pairs

    def _chunks(self, order):
        """Cut the queries into pieces of rows that are made dense at a time."""
        sizes = np.cumsum(self.data.grouping.sizes[order])
        n_blocks = len(list(blocks(int(sizes[-1]), self.network.n_features)))
        return [chunk for chunk in np.split(order, np.searchsorted(sizes, sizes[-1] * np.arange(1, n_blocks) / n_blocks))
                if chunk.size]  # fmt: skip

    def _at_once(self, weights, rate):
        """Move the weights by the gradient of all queries; give the number of effective pairs."""
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
        weights += rate * gradient
        return pairs
