"""Objectives of boosted trees: pairwise costs weighted by a measure, and mixtures of such costs.

An objective is a value object. It consists of terms, each with a weight for every round; the lambdas of a round are the
weighted sum of the terms' lambdas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.learners.plans import make_plan, parse_target
from structrank.learners.schedules import Exponential, Linear, parse_schedule


@dataclass(frozen=True)
class Term:
    """One kind of lambdas, with its weight in each round.

    Attributes
    ----------
    measure : Measure or None
        The weight of a pair is the change of this measure when the pair is swapped.
    cost : {"cross-entropy", "sigmoid"}
    centre : float
        Centre of the sigmoid.
    weights : (n_rounds,) array
    source : str or None
        Name of the label source; None for y.
    above : tuple of str or None
        Sources whose labels must be equal within a pair.
    """

    measure: metrics.Measure | None
    cost: str
    centre: float
    weights: np.ndarray
    source: str | None = None
    above: tuple = ()

    def scaled(self, factor):
        """Return the term with weights multiplied by a number or by an array with one factor per round."""
        return replace(self, weights=self.weights * factor)

    def plan(self, labels, indptr, query_weights=None):
        """Plan the term's pairs.

        Parameters
        ----------
        labels : dict
            Mapping from sources, None for y, to (n_docs,) arrays, grouped by query.
        indptr : (n_queries + 1,) array of int
        query_weights : (n_queries,) array, default None

        Returns
        -------
        structrank._kernels.lambdas.Plan
        """
        groups = None
        if self.above:
            # Missing labels equal each other and no other label.
            _, groups = np.unique(np.stack([_numbered(labels[name]) for name in self.above]), axis=1, return_inverse=True)
        return make_plan(
            self.measure,
            labels[self.source],
            indptr,
            groups=groups,
            query_weights=query_weights,
            cost=self.cost,
            shift=self.centre,
        )


def _numbered(labels):
    return np.unique(labels, return_inverse=True)[1]  # nan equals nan here


class Objective:
    """Base class of the objectives of LambdaMART: frozen dataclasses with a method ``terms(n_rounds)``."""

    @property
    def sources(self):
        """Names of the label sources besides y, in order."""
        return tuple(dict.fromkeys(term.source for term in self.terms(1) if term.source is not None))

    @property
    def convex(self):
        """Whether second derivatives are never negative, as Newton steps require."""
        return all(term.cost == "cross-entropy" for term in self.terms(1))


@saveable
@dataclass(frozen=True)
class CrossEntropy(Objective):
    """RankNet's cost of a pair, weighted by the change of a measure when the pair is swapped: lambda^(L) of the paper.

    ``lambda_jk = |Delta M| / (1 + exp(s_j - s_k))`` for a document j with a larger label than k.

    Parameters
    ----------
    measure : str, Measure or None, default "ndcg@30"
        "ndcg", "ndcg@k", "cndcg", "cndcg@k", "map", "mrr", "mrr@k"; None gives all pairs the same weight. A cutoff
        saves time on long lists, at no loss of accuracy if it is well beyond the ranks that matter.

    Examples
    --------
    >>> CrossEntropy("map").terms(n_rounds=2)[0].weights
    array([1., 1.])
    """

    measure: str | metrics.Measure | None = "ndcg@30"

    def __post_init__(self):
        parse_target(self.measure)

    def terms(self, n_rounds):
        """Return the single term."""
        return [Term(parse_target(self.measure), "cross-entropy", 0.0, np.ones(n_rounds))]


@saveable
@dataclass(frozen=True)
class Sigmoid(Objective):
    """Bounded cost, with small gradients for pairs far apart in score: lambda^(S) of the paper (equations 13 to 16).

    ``lambda_jk = |Delta M| e / (1 + e)^2`` with ``e = exp(s_j - s_k + centre)``, for a document j with a larger label
    than k. It vanishes on both sides, also for pairs far apart in the wrong order.

    Parameters
    ----------
    measure : str, Measure or None, default "ndcg@30"
        As for `CrossEntropy`; with "ndcg@3" this is the paper's lambda^(S@3).
    centre : float, default 0.0
        The paper's mu; the cost is steepest where the score of k exceeds that of j by `centre`.

    Examples
    --------
    >>> Sigmoid("ndcg@3").convex
    False
    """

    measure: str | metrics.Measure | None = "ndcg@30"
    centre: float = 0.0

    def __post_init__(self):
        parse_target(self.measure)
        checks.check_number("centre", self.centre)

    def terms(self, n_rounds):
        """Return the single term."""
        return [Term(parse_target(self.measure), "sigmoid", float(self.centre), np.ones(n_rounds))]


@saveable
@dataclass(frozen=True)
class Tier:
    """A measure of lower priority, with its own labels.

    Parameters
    ----------
    labels : str, default "clicks"
        Name of the label source, as in ``fit(..., labels={"clicks": ...})``.
    measure : str or Measure, default "cndcg@30"
        As for `CrossEntropy`; CNDCG expects labels from 0 to 1.
    weight : float, default 0.15
        Weight of the lambdas, above 0 and below 1: a larger weight favours this tier, eventually at the expense of the tiers
        above. On 18 synthetic data sets 0.15 raised CNDCG@10 by 0.012 on average, 0.3 by 0.023, and neither lowered NDCG@10.

    Examples
    --------
    >>> Tier("clicks", "cndcg", weight=0.3)
    Tier(labels='clicks', measure='cndcg', weight=0.3)
    """

    labels: str = "clicks"
    measure: str | metrics.Measure = "cndcg@30"
    weight: float = 0.15

    def __post_init__(self):
        if not isinstance(self.labels, str):
            raise ValueError(f"labels={self.labels!r} is not valid: expected the name of a label source, such as 'clicks'.")
        parse_target(self.measure)
        checks.check_number("weight", self.weight, above=0, below=1)


@saveable
@dataclass(frozen=True)
class Graded(Objective):
    r"""Several measures in order of priority, each with its own labels: the graded measure of the paper (section 4).

    .. math:: \lambda = (1 - w) \lambda^{(L)} + w \lambda^{(C)}

    with :math:`\lambda^{(C)}` over pairs that are equal in all tiers above, so that the tiers do not contradict each other.
    With several lower tiers, the weight of the first tier is 1 minus their sum. A document whose label is nan is in no pair of
    its tier, and the tiers below treat such documents as equal. With CNDCG they keep their ranks; other measures leave them
    out of the tier's ranking.

    Parameters
    ----------
    tiers : tuple of Tier, default (Tier(),)
        The tiers from the second on, in order; by default clicks by CNDCG@30 with weight 0.15.
    first : str, Measure or Objective, default "ndcg@30"
        Objective for the labels y; a measure stands for `CrossEntropy` with this measure.

    Examples
    --------
    >>> Graded().sources
    ('clicks',)
    >>> several = Graded((Tier("clicks", weight=0.3), Tier("freshness", weight=0.1)))
    >>> [float(term.weights[0]) for term in several.terms(1)]
    [0.6, 0.3, 0.1]
    """

    tiers: tuple = (Tier(),)
    first: str | metrics.Measure | Objective = "ndcg@30"

    def __post_init__(self):
        if parse_objective(self.first).sources:
            raise ValueError(f"first={self.first!r} is not valid: it has tiers itself; list all tiers in `tiers`, in order.")
        if not isinstance(self.tiers, tuple) or not self.tiers or not all(isinstance(tier, Tier) for tier in self.tiers):
            raise ValueError(f"tiers={self.tiers!r} is not valid: expected a tuple of Tier, at least one.")
        names = [tier.labels for tier in self.tiers]
        if len(set(names)) < len(names):
            raise ValueError(f"tiers has a label source twice: {', '.join(names)}. Each tier needs its own labels.")
        total = sum(tier.weight for tier in self.tiers)
        if total >= 1:
            raise ValueError(f"tiers have weights that sum to {total:g}; expected less than 1, to leave some for the first.")

    def terms(self, n_rounds):
        """Return the terms of the first tier and one term for each lower tier."""
        rest = 1.0 - sum(tier.weight for tier in self.tiers)
        found = [term.scaled(round(rest, 12)) for term in parse_objective(self.first).terms(n_rounds)]
        above = (None,)
        for tier in self.tiers:
            weights = np.full(n_rounds, float(tier.weight))
            found.append(Term(parse_target(tier.measure), "cross-entropy", 0.0, weights, tier.labels, above))
            above = (*above, tier.labels)
        return found


@saveable
@dataclass(frozen=True)
class IterationDependent(Objective):
    r"""Transition from one objective early in training to another late in training (section 5 of the paper).

    .. math:: \lambda_m = (1 - w_m) \lambda^{(L)} + w_m \lambda^{(S)}

    in round m. Early rounds improve the whole ranking; in late rounds the remaining gains are small moves near the top, and the
    remaining large errors are often unfixable.

    Parameters
    ----------
    early : str, Measure or Objective, default "ndcg@30"
        A measure stands for `CrossEntropy` with this measure.
    late : str, Measure or Objective, default Sigmoid("ndcg@30")
    schedule : {"exponential", "linear"}, Exponential or Linear, default "exponential"
        How w_m grows, see `structrank.learners.schedules`.

    Examples
    --------
    >>> early, late = IterationDependent(schedule=Linear(start=0.0, rate=0.5)).terms(n_rounds=3)
    >>> early.weights.tolist(), late.weights.tolist()
    ([1.0, 0.5, 0.0], [0.0, 0.5, 1.0])
    """

    early: str | metrics.Measure | Objective = "ndcg@30"
    late: str | metrics.Measure | Objective = Sigmoid()
    schedule: str | Exponential | Linear = "exponential"

    def __post_init__(self):
        parse_objective(self.early)
        parse_objective(self.late)
        parse_schedule(self.schedule)

    def terms(self, n_rounds):
        """Return the terms of both objectives."""
        weights = parse_schedule(self.schedule).weights(n_rounds)
        early = [term.scaled(1.0 - weights) for term in parse_objective(self.early).terms(n_rounds)]
        return early + [term.scaled(weights) for term in parse_objective(self.late).terms(n_rounds)]


def parse_objective(objective):
    """Return an objective unchanged; convert a measure or its name to `CrossEntropy`.

    Examples
    --------
    >>> parse_objective("map")
    CrossEntropy(measure='map')
    """
    return objective if isinstance(objective, Objective) else CrossEntropy(objective)
