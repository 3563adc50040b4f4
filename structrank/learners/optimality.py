"""Monte-Carlo test, with one-sided error, of whether the weights of a ranker are a local optimum of a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.progress import ProgressLine
from structrank._support.typing import ArrayLike, Matrix
from structrank.learners.networks import Network
from structrank.metrics import Evaluator
from structrank.models.exports.linear import weights_of
from structrank.preparation import check_no_preparation
from structrank.training.data import RankingData

_STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SHARE = 0.01  # of ascent directions that the test may miss
TINY = 1e-12  # bound on the rounding error of a mean


@dataclass(frozen=True, eq=False, repr=False)
class LocalOptimality:
    """Result of `local_optimality`: the measure around the weights, and the verdict.

    Attributes
    ----------
    measure : Measure
    value : float
        The measure at the weights.
    steps : (n_steps,) array
        Step sizes relative to the norm of the weights.
    curves : (n_directions, n_steps) array
        The measure at the weights moved by each step in each random direction.
    weight_steps : (2 n_steps,) array
        The steps with both signs, in increasing order.
    weight_curves : (n_weights, 2 n_steps) array or None
        The measure with one weight moved by each of `weight_steps`, all others fixed; None if ``each_weight=False``.

    Examples
    --------
    >>> found = LocalOptimality(metrics.MAP(), 0.5, np.array([0.1]), np.array([[0.4], [0.6]]), np.array([-0.1, 0.1]))
    >>> found
    not a local optimum of map: 1 of 2 random directions lead above 0.5000
    >>> found.passed, found.n_better_at_step.tolist()
    (False, [1])
    """

    measure: metrics.Measure
    value: float
    steps: np.ndarray
    curves: np.ndarray
    weight_steps: np.ndarray
    weight_curves: np.ndarray | None = None

    @property
    def better(self):
        """(n_directions,) array of bool: whether a direction exceeds the value at any step."""
        return (self.curves > self.value + TINY).any(axis=1)

    @property
    def n_better(self):
        """Number of random directions that exceed the value."""
        return int(self.better.sum())

    @property
    def n_better_at_step(self):
        """(n_steps,) array: number of random directions that exceed the value at each step."""
        return (self.curves > self.value + TINY).sum(axis=0)

    @property
    def passed(self):
        """Whether no random direction exceeds the value, and no single-weight move, if these were tried."""
        return self.n_better == 0 and (self.better_weights is None or not self.better_weights.size)

    @property
    def confidence(self):
        """Probability of a failed test if 1 % of all directions were ascent directions; meaningless if the test failed."""
        return 1.0 - (1.0 - _SHARE) ** self.curves.shape[0]

    @property
    def better_weights(self):
        """Indices of the weights that, moved alone, exceed the value; None if ``each_weight=False``."""
        if self.weight_curves is None:
            return None
        return np.flatnonzero((self.weight_curves > self.value + TINY).any(axis=1))

    def __repr__(self):
        n_directions = self.curves.shape[0]
        if self.passed:
            text = (
                f"local optimum of {self.measure.name} with {self.confidence:.1%} confidence: none of {n_directions} random "
                f"directions leads above {self.value:.4f}"
            )
        else:
            text = (
                f"not a local optimum of {self.measure.name}: {self.n_better} of {n_directions} random directions lead above "
                f"{self.value:.4f}"
            )
        if self.weight_curves is not None:
            text += f"; moved alone, {self.better_weights.size} of {self.weight_curves.shape[0]} weights do"
        return text


def local_optimality(
    model: Any,
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measure: str | metrics.Measure | None = None,
    *,
    steps: Sequence[float] = _STEPS,
    n_directions: int = 459,
    each_weight: bool = True,
    random_state: int = 0,
    verbose: int = 0,
) -> LocalOptimality:
    """Test whether the weights of a ranker are a local optimum of a measure.

    The weights are moved by each step in directions drawn uniformly from the sphere. One direction with a larger value, at any
    step, refutes the optimum. If none of n directions has one, then either less than 1 % of all directions do, or an event of
    probability at most 0.99 ** n occurred: with 459 directions, the verdict has a confidence of 99 %. The test is that of
    section 5 of Donmez, Svore and Burges, On the local optimality of LambdaRank, SIGIR 2009.

    Rankings do not depend on the norm of linear weights, so steps are relative to this norm: a step of 0.1 turns w by six
    degrees, a step of 1 by 45. In a two-layer network, each layer is moved by the step times its own norm. (The paper uses
    absolute steps and does not state the norm of its weights.) With few queries the measure is a rugged function, in which
    small enough steps find a larger value by chance, so the verdict holds for the given steps only.

    Parameters
    ----------
    model : ranker
        Fitted, with weights in ``weights_`` (`RankNet`, `LambdaRank`, `SPSARanker`) or ``coef_`` (a linear model such as
        `structrank.StructRankSVM`).
    X, y, qid
        The data that the model was trained on.
    measure : str or Measure, default None
        As for `structrank.metrics.parse`; None for the measure of the model.
    steps : sequence of float, default 0.1, 0.2, ..., 1.0
        Step sizes, above 0, relative to the norm of the weights.
    n_directions : int, default 459
        Number of random directions.
    each_weight : bool, default True
        Also move one weight at a time, by each step up and down, relative to the norm of its layer. At a local optimum no such
        move raises the measure.
    random_state : int, default 0
        Seed of the directions.
    verbose : int, default 0
        1 shows a progress line on stderr.

    Returns
    -------
    LocalOptimality
        ``.passed`` and ``.confidence`` are the verdict; printing it shows both.

    See Also
    --------
    LocalOptimalityDisplay : Plot of the curves.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank, local_optimality
    >>> train = datasets.make_ranking(n_queries=100, n_docs=10, n_features=5, n_grades=3, random_state=0).train
    >>> start = LambdaRank("ndcg", hidden_units=0, max_epochs=0).fit(train.X, train.y, qid=train.qid)
    >>> local_optimality(start, train.X, train.y, train.qid, n_directions=50).passed  # random weights
    False
    """
    lengths = np.array(
        [checks.check_number("steps", step, above=0) for step in np.atleast_1d(checks.as_array(steps, "steps")).tolist()]
    )
    if not lengths.size:
        raise ValueError("steps is empty; expected at least one step, such as 0.1.")
    n_directions = checks.check_number("n_directions", n_directions, at_least=1, integer=True)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    check_no_preparation(model, "local_optimality")
    network, weights = network_of(model)
    target = measure_of(model, measure)
    units = network.layer_lengths(weights)
    if not units.all():
        name = type(model).__name__
        raise ValueError(f"{name} has a layer of weights that are all 0; steps relative to its norm do not move it.")
    data = RankingData(X, y, qid)
    checks.check_width(data.n_features, network.n_features, type(model).__name__)
    evaluator = Evaluator(target, data.labels, data.grouping)
    value = evaluator(network.scores(data.X, weights))
    if np.isnan(value):
        raise ValueError(f"{target.name} is undefined for every query; check y, qid and relevant_from.")

    (directions, _), (axes, weight_steps) = moves_around(
        network, weights, n_directions, np.random.default_rng(random_state), lengths
    )
    line = ProgressLine() if verbose else None
    curves = _follow(network, weights, directions, lengths, data.X, evaluator, line, "direction")
    weight_curves = None
    if each_weight:
        weight_curves = _follow(network, weights, axes, weight_steps, data.X, evaluator, line, "weight")
    return LocalOptimality(target, value, lengths, curves, weight_steps, weight_curves)


def moves_around(network, weights, n_directions, rng, steps=_STEPS):
    """Return the moves that the test tries, as two pairs (directions, steps): all weights together, and one at a time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> (directions, _), (axes, steps) = moves_around(Network(2, 0), np.array([3.0, 4.0]), 7, rng, steps=[0.1])
    >>> np.linalg.norm(directions, axis=1).round(12)
    array([5., 5., 5., 5., 5., 5., 5.])
    >>> axes, steps
    (array([[5., 0.],
           [0., 5.]]), array([-0.1,  0.1]))
    """
    units, steps = network.layer_lengths(weights), np.asarray(steps)
    directions = rng.standard_normal((n_directions, network.size))
    directions *= units / np.array([network.layer_lengths(direction) for direction in directions])
    return (directions, steps), (np.diag(units), np.concatenate([-steps[::-1], steps]))


def network_of(model):
    """Return the network of a fitted ranker and its weights."""
    weights = weights_of(model, "a RankNet, LambdaRank, SPSARanker or a linear model")
    return Network.of(model.n_features_in_, weights), weights


def measure_of(model, measure):
    """Parse a measure; None for the measure of the model."""
    if measure is None and not hasattr(model, "measure"):
        raise ValueError(f"measure=None: {type(model).__name__} has no measure; pass one, such as 'ndcg@10'.")
    return metrics.parse(model.measure if measure is None else measure)


def _follow(network, weights, directions, steps, X, evaluator, line, what):
    """Evaluate the measure at every step in every direction."""
    curves = np.empty((directions.shape[0], steps.shape[0]))
    for number, path in enumerate(network.paths(X, weights, directions)):
        for at, step in enumerate(steps):
            curves[number, at] = evaluator(path(step))
        if line is not None:
            line.update(f"{what} {number + 1} of {directions.shape[0]}")
    if line is not None:
        line.finish(f"{directions.shape[0]} {what}s")
    return curves
