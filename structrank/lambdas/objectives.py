"""What boosted trees are trained for: pairwise costs weighted by a measure, and mixtures of these.

An objective is a value object. It breaks down into terms, each with a weight for every round; the lambdas of a round are the
weighted sum of the terms' lambdas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structrank import _validation, metrics
from structrank.lambdas.plans import make_plan, parse_target
from structrank.lambdas.schedules import Exponential, Linear, parse_schedule

__all__ = ["CrossEntropy", "Graded", "IterationDependent", "Sigmoid", "Tier", "parse_objective"]


@dataclass(frozen=True)
class Term:
    """One kind of lambdas, and how much it counts in each round.

    Attributes
    ----------
    measure : Measure or None
        Swapping a pair changes it by the weight of the pair.
    cost : {"cross-entropy", "sigmoid"}
    centre : float
        Of the sigmoid.
    weights : (n_rounds,) array
    source : str or None
        Where its labels come from; None for y.
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
        """Give the term with weights multiplied by a number, or round by round by an array."""
        return replace(self, weights=self.weights * factor)

    def plan(self, labels, indptr, query_weights=None):
        """Plan the term's pairs.

        Parameters
        ----------
        labels : dict
            From sources, None for y, to (n_docs,) arrays, query after query.
        indptr : (n_queries + 1,) array of int
        query_weights : (n_queries,) array, default None

        Returns
        -------
        structrank._kernels.lambdas.Plan
        """
        groups = None
        if self.above:
            # A label that is missing is like no other but a missing one.
            _, groups = np.unique(
                np.stack([_numbered(labels[name]) for name in self.above]), axis=1, return_inverse=True
            )
        return make_plan(
            self.measure, labels[self.source], indptr, groups=groups, query_weights=query_weights, cost=self.cost,
            shift=self.centre,
        )  # fmt: skip


def _numbered(labels):
    return np.unique(labels, return_inverse=True)[1]  # nan equals nan here


class Objective:
    """What LambdaMART is trained for; a subclass is a frozen dataclass with a method ``terms(n_rounds)``."""

    @property
    def sources(self):
        """Names of the label sources besides y, in order."""
        return tuple(dict.fromkeys(term.source for term in self.terms(1) if term.source is not None))

    @property
    def convex(self):
        """Whether second derivatives are never negative, so that Newton steps make sense."""
        return all(term.cost == "cross-entropy" for term in self.terms(1))


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """RankNet's cost of a pair, weighted by what swapping the pair changes in a measure: lambda^(L) of the paper.

    ``lambda_jk = |Delta M| / (1 + exp(s_j - s_k))`` for a document j that is better than k.

    Parameters
    ----------
    measure : str, Measure or None, default "ndcg@30"
        "ndcg", "ndcg@k", "cndcg", "cndcg@k", "map", "mrr", "mrr@k"; None weighs all pairs alike. A cut saves time on long
        lists, and well beyond the ranks that count it costs no accuracy.

    Examples
    --------
    >>> CrossEntropy("map").terms(n_rounds=2)[0].weights
    array([1., 1.])
    """

    measure: str | metrics.Measure | None = "ndcg@30"

    def __post_init__(self):
        parse_target(self.measure)

    def terms(self, n_rounds):
        """Give the single term."""
        return [Term(parse_target(self.measure), "cross-entropy", 0.0, np.ones(n_rounds))]


@dataclass(frozen=True)
class Sigmoid(Objective):
    """A cost that gives up on lost causes: lambda^(S) of the paper (equations 13 to 16), for pairs of close scores.

    ``lambda_jk = |Delta M| e / (1 + e)^2`` with ``e = exp(s_j - s_k + centre)``, for a document j that is better than k. It
    fades on both sides, also where the pair stands in the wrong order and far apart.

    Parameters
    ----------
    measure : str, Measure or None, default "ndcg@30"
        As for `CrossEntropy`; with "ndcg@3" this is the paper's lambda^(S@3).
    centre : float, default 0.0
        The paper's mu; the cost is steepest where k is ahead of j by this.

    Examples
    --------
    >>> Sigmoid("ndcg@3").convex
    False
    """

    measure: str | metrics.Measure | None = "ndcg@30"
    centre: float = 0.0

    def __post_init__(self):
        parse_target(self.measure)
        _validation.check_number("centre", self.centre)

    def terms(self, n_rounds):
        """Give the single term."""
        return [Term(parse_target(self.measure), "sigmoid", float(self.centre), np.ones(n_rounds))]


@dataclass(frozen=True)
class Tier:
    """A measure of lower rank, over labels of its own.

    Parameters
    ----------
    labels : str, default "clicks"
        Name of the label source, as in ``fit(..., labels={"clicks": ...})``.
    measure : str or Measure, default "cndcg@30"
        As for `CrossEntropy`; CNDCG is for labels from 0 to 1.
    weight : float, default 0.15
        How much its lambdas count, above 0 and below 1: the larger, the more this tier gains, and at some point those above
        lose. 0.15 raised CNDCG@10 by 0.014 in the mean of 18 generated data sets and left NDCG@10 where it was.

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
            raise ValueError(
                f"labels={self.labels!r} is not valid: expected the name of a label source, such as 'clicks'."
            )
        parse_target(self.measure)
        if _validation.check_number("weight", self.weight, above=0) >= 1:
            raise ValueError(f"weight={self.weight!r} is not valid: expected a number between 0 and 1, both excluded.")


@dataclass(frozen=True)
class Graded(Objective):
    r"""Several measures in order of rank, each over labels of its own: the graded measure of the paper (section 4).

    .. math:: \lambda = (1 - w) \lambda^{(L)} + w \lambda^{(C)}

    with :math:`\lambda^{(C)}` over pairs that are equal in all tiers above, so that the tiers do not contradict each other. Of
    several lower tiers each has its weight, and the first what is left. A document whose label is nan is left out of that tier;
    in the tiers below it counts as equal to the others that were left out.

    Parameters
    ----------
    tiers : tuple of Tier, default (Tier(),)
        From the second on, in order: clicks by CNDCG@30 with weight 0.15.
    first : str, Measure or Objective, default "ndcg@30"
        For the labels y alone; a measure stands for `CrossEntropy` with it.

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
            raise ValueError(f"first={self.first!r} is not valid: it has tiers of its own; name all in `tiers`, in order.")
        if (
            not isinstance(self.tiers, tuple)
            or not self.tiers
            or not all(isinstance(tier, Tier) for tier in self.tiers)
        ):
            raise ValueError(f"tiers={self.tiers!r} is not valid: expected a tuple of Tier, at least one.")
        names = [tier.labels for tier in self.tiers]
        if len(set(names)) < len(names):
            raise ValueError(f"tiers has a label source twice: {', '.join(names)}. Give each tier labels of its own.")
        total = sum(tier.weight for tier in self.tiers)
        if total >= 1:
            raise ValueError(
                f"tiers have weights that sum to {total:g}; expected less than 1, as the first has the rest."
            )

    def terms(self, n_rounds):
        """Give the terms of the first tier, and one for each other."""
        rest = 1.0 - sum(tier.weight for tier in self.tiers)
        found = [term.scaled(round(rest, 12)) for term in parse_objective(self.first).terms(n_rounds)]
        above = (None,)
        for tier in self.tiers:
            weights = np.full(n_rounds, float(tier.weight))
            found.append(Term(parse_target(tier.measure), "cross-entropy", 0.0, weights, tier.labels, above))
            above = (*above, tier.labels)
        return found


@dataclass(frozen=True)
class IterationDependent(Objective):
    r"""From one objective early in training to another late in it (section 5 of the paper).

    .. math:: \lambda_m = (1 - w_m) \lambda^{(L)} + w_m \lambda^{(S)}

    in round m. Early on, all of a ranking is worth repairing; later, what is left are small moves near the top, and mistakes
    that no model will repair.

    Parameters
    ----------
    early : str, Measure or Objective, default "ndcg@30"
        A measure stands for `CrossEntropy` with it.
    late : str, Measure or Objective, default Sigmoid("ndcg@30")
    schedule : {"exponential", "linear"}, Exponential or Linear, default "exponential"
        How w_m grows, see `structrank.lambdas.schedules`.

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
        """Give the terms of both."""
        weights = parse_schedule(self.schedule).weights(n_rounds)
        early = [term.scaled(1.0 - weights) for term in parse_objective(self.early).terms(n_rounds)]
        return early + [term.scaled(weights) for term in parse_objective(self.late).terms(n_rounds)]


def parse_objective(objective):
    """Give an objective as it is; a measure, or its name, stands for `CrossEntropy` with it.

    Examples
    --------
    >>> parse_objective("map")
    CrossEntropy(measure='map')
    """
    return objective if isinstance(objective, Objective) else CrossEntropy(objective)
