"""Measures of a ranking, computed per query and averaged.

Documents of a query are ranked by decreasing score; ranks count from 0. Tied scores are averaged exactly over all orders of the
tied documents. The value of a query for which a measure is undefined is nan; such queries are skipped in the mean and counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from structrank._kernels import measures as kernels
from structrank._kernels.sorting import make_workspace
from structrank._support import checks, requirements
from structrank._support.discounts import discounts, gains
from structrank._support.typing import ArrayLike
from structrank.datasets.queries import group_by_query

__all__ = [
    "AUC",
    "CNDCG",
    "DCG",
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "Binary",
    "Bpref",
    "Discounted",
    "Evaluation",
    "Evaluator",
    "Measure",
    "P",
    "PairAccuracy",
    "RPrecision",
    "Ranking",
    "Recall",
    "Scorer",
    "Success",
    "evaluate",
    "parse",
    "scorer",
]


class SortedLabels:
    """The labels of all queries, the largest of each query first; sorted once for many rankings.

    Parameters
    ----------
    labels : (n_docs,) array
        In the caller's row order.
    grouping : structrank.datasets.queries.Grouping
    ranks_unlabelled : bool, default False
        Whether documents with the label nan are ranked, as documents of label 0; otherwise they are left out.

    Attributes
    ----------
    labels : (n_ranked,) array
        The labels of each query, largest first; equal ones in the caller's order.
    indptr : (n_queries + 1,) array of int
        Query q holds the positions ``indptr[q]`` to ``indptr[q + 1]``.

    Examples
    --------
    >>> by_label = SortedLabels(np.array([0.0, 2.0, 1.0]), group_by_query(["a", "a", "b"], 3))
    >>> by_label.labels.tolist(), by_label.rank(np.array([5.0, 4.0, 3.0])).labels.tolist()
    ([2.0, 0.0, 1.0], [0.0, 2.0, 1.0])
    """

    def __init__(self, labels, grouping, ranks_unlabelled=False):
        if ranks_unlabelled:
            labels = np.where(np.isnan(labels), 0.0, labels)
        known = ~np.isnan(labels[grouping.rows])
        rows = grouping.rows[known]
        self.indptr = np.concatenate([[0], np.cumsum(known)])[grouping.indptr]
        self._by_label, self.labels = sort_queries(labels[rows], self.indptr)
        self._rows = rows[self._by_label]
        self._gained = {}

    def rank(self, scores, ties="average"):
        """Return the `Ranking` by scores in the caller's row order, without nan."""
        scores = scores[self._rows]
        if ties == "average":  # from the order by label, so that sums over tied documents do not depend on the row order
            return Ranking(self, *sort_queries(scores, self.indptr))
        by_row = np.empty_like(self._by_label)
        by_row[self._by_label] = np.arange(scores.shape[0])
        return Ranking(self, sort_queries(scores, self.indptr, by_row)[0], _untied(scores.shape[0]))

    def gained(self, measure, discount):
        """Return the gain of each label, and the discounted gain of each ideal ranking, nan if 0; kept for each measure."""
        if id(measure) not in self._gained:
            gains = measure.gains(self.labels)
            ideal = Ranking(self, slice(None), _untied(gains.shape[0])).values(kernels.discounted_gains, gains, discount)
            ideal[ideal == 0] = np.nan
            self._gained[id(measure)] = measure, gains, ideal
        return self._gained[id(measure)][1:]


class Ranking:
    """The labels of all queries, each query by decreasing score: the input of every measure.

    Attributes
    ----------
    labels : (n_docs,) array
        By decreasing score.
    scores : (n_docs,) array
        In the same order; neighbours of equal score are tied.
    ideal : (n_docs,) array
        The labels of each query, largest first.
    indptr : (n_queries + 1,) array of int
        Query q holds the positions ``indptr[q]`` to ``indptr[q + 1]``.

    Examples
    --------
    >>> ranking = SortedLabels(np.array([0.0, 2.0]), group_by_query(0, 2)).rank(np.array([5.0, 4.0]))
    >>> reached, ideal = ranking.discounted_gains(NDCG(gain="linear"), np.array([1.0, 0.5]))
    >>> reached.tolist(), ideal.tolist()
    ([1.0], [2.0])
    """

    def __init__(self, by_label, order, scores):
        self._by_label, self._order, self.scores = by_label, order, scores
        self.ideal, self.indptr = by_label.labels, by_label.indptr

    @cached_property
    def labels(self):
        """Labels by decreasing score."""
        return self.ideal[self._order]

    def n_ranks(self, k):
        """Return the number of ranks above the cutoff `k` (None: no cutoff) in the longest query."""
        longest = int(np.diff(self.indptr).max())
        return longest if k is None else min(k, longest)

    def values(self, kernel, *arguments):
        """Run a kernel that writes one value per query."""
        out = np.empty(self.indptr.shape[0] - 1)
        kernel(self.scores, self.indptr, *arguments, out)
        return out

    def discounted_gains(self, measure, discount):
        """Return the discounted gain of each query, and that of its ideal ranking; both are nan if the latter is 0.

        Parameters
        ----------
        measure : Measure
            Its method `gains` returns the gains of an array of labels.
        discount : (n_ranks,) array
            Discount of each rank, 0 beyond; always the same for a measure.
        """
        gains, ideal = self._by_label.gained(measure, discount)
        reached = self.values(kernels.discounted_gains, gains[self._order], discount)
        return np.where(np.isnan(ideal), np.nan, reached), ideal


def _untied(n_docs):
    """Return scores without ties for documents in ranked order."""
    return np.arange(n_docs, dtype=np.float64)


def sort_queries(keys, indptr, start=None):
    """Sort each query by decreasing key, ties in the order of `start`, or as given; return the order and the sorted keys.

    Examples
    --------
    >>> sort_queries(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 3]))
    (array([1, 0, 2]), array([3., 1., 2.]))
    """
    order, sorted_keys = np.arange(keys.shape[0]) if start is None else start.copy(), np.empty_like(keys)
    longest = np.diff(indptr).max(initial=0)
    kernels.rank_queries(keys, indptr, order, sorted_keys, make_workspace(longest, order.dtype))
    return order, sorted_keys


class Measure:
    """A measure of a ranking: a value object that compares by its settings and prints as its name and what is not the default.

    A subclass is a frozen dataclass that defines `short`, the name without the cutoff, and ``values(ranking)``, which
    returns one value per query, nan if undefined. Fields named `k`, `gain`, `discount` and `relevant_from` have the
    same meaning as in `NDCG`; additional fields need a default. `structrank.register` makes it available by name.

    A measure whose ``check_labels`` accepts nan sees the ranking without such documents, or, if its class variable
    `ranks_unlabelled` is True, with their label as 0.

    Examples
    --------
    >>> NDCG(k=10), MAP(), NDCG(k=5, gain="linear")
    (ndcg@10, map, ndcg@5(gain='linear'))
    >>> NDCG(k=10) == parse("NDCG@10"), isinstance(MAP(), Measure)
    (True, True)
    """

    short: ClassVar[str]
    ranks_unlabelled: ClassVar[bool] = False

    def __post_init__(self):
        checks.check_settings(self)

    @property
    def name(self):
        """The short name, such as ``"ndcg@10"``; `parse` reads it."""
        k = getattr(self, "k", None)
        return self.short if k is None else f"{self.short}@{k}"

    @property
    def settings(self):
        """All settings except the cutoff, as text."""
        return ", ".join(f"{s.name}={getattr(self, s.name)}" for s in fields(self) if s.name != "k")

    def __repr__(self):
        unused = ("k", "relevant_from") if getattr(self, "gain", "binary") != "binary" else ("k",)
        usual = {f.name: f.default for f in fields(self) if f.name in checks.SETTINGS}
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in unused}
        shown = [f"{name}={value!r}" for name, value in values.items() if name not in usual or value != usual[name]]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    def check_labels(self, labels: np.ndarray) -> None:
        """Raise if the measure does not support the labels; by default they must be finite and at least 0."""
        checks.as_labels(labels, labels.shape[0])


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """Base class of the measures that depend only on whether ``label >= relevant_from``.

    Parameters
    ----------
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> MAP(relevant_from=2).gains(np.array([0.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """

    relevant_from: float = field(default=1, kw_only=True)

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return 1 for relevant and 0 for irrelevant documents."""
        return gains("binary", labels, self.relevant_from)


@dataclass(frozen=True, repr=False)
class AUC(Binary):
    """Fraction of (relevant, irrelevant) pairs in the right order; tied scores count half.

    ``AUC = 1 / (n+ n-) sum_{g,b} ([s_g > s_b] + [s_g = s_b] / 2)`` over the n+ relevant documents g and the
    n- irrelevant documents b of a query; undefined if either is missing.

    Parameters
    ----------
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> evaluate([1, 0, 0, 1], [4.0, 3.0, 2.0, 2.0], None, AUC())["auc"]
    0.625
    """

    short: ClassVar[str] = "auc"

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        relevant = (ranking.labels >= self.relevant_from).astype(np.int64)
        return ranking.values(kernels.ordered_pairs, relevant, 2)


@dataclass(frozen=True, repr=False)
class PairAccuracy(Measure):
    """Fraction of the pairs of different label in the right order; tied scores count half.

    ``sum_{i,j: l_i > l_j} ([s_i > s_j] + [s_i = s_j] / 2) / #{i,j: l_i > l_j}`` over the documents of a
    query; undefined if all labels are equal. With two labels this is `AUC`.

    Examples
    --------
    >>> evaluate([2, 1, 0], [2.0, 3.0, 1.0], None, PairAccuracy())["pair_accuracy"]  # two pairs of three
    0.6666666666666666
    """

    short: ClassVar[str] = "pair_accuracy"

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        distinct, grades = np.unique(ranking.labels, return_inverse=True)
        return ranking.values(kernels.ordered_pairs, grades, distinct.shape[0])


@dataclass(frozen=True, repr=False)
class MAP(Binary):
    """Average precision: the mean over relevant documents of the precision at their rank, over all ranks.

    ``AP = 1/n+ sum_g (number of relevant documents at or above g) / (1 + rank_g)`` over the n+ relevant
    documents g of a query; undefined if there are none.

    Parameters
    ----------
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> evaluate([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], None, MAP())["map"]  # (1/1 + 2/3) / 2
    0.8333333333333333
    """

    short: ClassVar[str] = "map"

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        return ranking.values(kernels.average_precisions, ranking.labels >= self.relevant_from)


@dataclass(frozen=True, repr=False)
class MRR(Binary):
    """Reciprocal rank of the first relevant document.

    ``RR@k = 1 / (1 + r)`` with r the rank of the first relevant document of a query, 0 if r >= k; undefined
    if there is no relevant document.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> dict(evaluate([0, 1, 1], [3.0, 2.0, 1.0], None, [MRR(), MRR(k=1)]))
    {'mrr': 0.5, 'mrr@1': 0.0}
    """

    short: ClassVar[str] = "mrr"
    k: int | None = None

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        relevant = ranking.labels >= self.relevant_from
        return ranking.values(kernels.first_relevant, relevant, 1.0 + np.arange(ranking.n_ranks(self.k)))


@dataclass(frozen=True, repr=False)
class _Top(Binary):
    """Base class of the binary measures that need a rank cutoff."""

    k: int

    def __post_init__(self):
        checks.check_number("k", self.k, at_least=1, integer=True)
        super().__post_init__()


@dataclass(frozen=True, repr=False)
class P(_Top):
    """Precision in the first k ranks.

    ``P@k = (number of relevant documents of rank below k) / k``, also where a query has fewer than k
    documents; undefined if there is no relevant document.

    Parameters
    ----------
    k, relevant_from
        As for `MRR`, but the cutoff is needed.

    Examples
    --------
    >>> dict(evaluate([1, 0, 1], [3.0, 2.0, 1.0], None, [P(2), P(4)]))
    {'p@2': 0.5, 'p@4': 0.5}
    """

    short: ClassVar[str] = "p"

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        return ranking.discounted_gains(self, np.ones(ranking.n_ranks(self.k)))[0] / self.k


class Discounted(Measure):
    """Base class of the measures that are a discounted gain over that of the ideal ranking.

    ``sum_{i: r_i < k} G(l_i) D(r_i)``, divided by the same sum for the ideal ranking, over the documents i of a
    query with label l_i and rank r_i, counted from 0. Undefined if the ideal is 0.

    A subclass defines ``discounts(n)``, which returns D(0), ..., D(n - 1), and ``gains(labels)``, which returns G;
    `Binary` as a second base class provides ``gains``. A field `k`, if any, is the rank cutoff.

    Examples
    --------
    Rank-biased precision, normalised:

    >>> @dataclass(frozen=True, repr=False)
    ... class NRBP(Discounted, Binary):
    ...     short: ClassVar[str] = "nrbp"
    ...     p: float = 0.8
    ...
    ...     def discounts(self, n):
    ...         return self.p ** np.arange(n)
    >>> evaluate([0, 1, 0], [3.0, 2.0, 1.0], None, NRBP(p=0.5))
    {'nrbp': 0.5}
    1 query
    nrbp: relevant_from=1, p=0.5
    """

    def values(self, ranking):
        """Compute the measure of each query, nan if undefined."""
        discount = self.discounts(ranking.n_ranks(getattr(self, "k", None)))
        ranked, ideal = ranking.discounted_gains(self, discount)
        return np.minimum(ranked / ideal, 1.0)  # the mean of a tie group may round up


@dataclass(frozen=True, repr=False)
class _DiscountedGains(Measure):
    """Settings of `NDCG` and `DCG`."""

    k: int | None = None
    gain: str | tuple[float, ...] = "exp2"
    discount: str = "log2"
    relevant_from: float = field(default=1, kw_only=True)

    @property
    def settings(self):
        """Gain and discount, as text."""
        text = f"gain={self.gain}, discount={self.discount}"
        return f"{text}, relevant_from={self.relevant_from}" if self.gain == "binary" else text

    def check_labels(self, labels):
        """Raise if the gain does not support the labels."""
        super().check_labels(labels)
        if self.gain == "exp2":
            checks.check_exp2_labels(labels)

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return G of each label."""
        return gains(self.gain, labels, self.relevant_from)

    def discounts(self, n: int) -> np.ndarray:
        """Return D of the first n ranks."""
        return discounts(self.discount, n)


@dataclass(frozen=True, repr=False)
class NDCG(Discounted, _DiscountedGains):
    """Normalised discounted cumulative gain.

    ``NDCG@k = DCG@k / ideal DCG@k``, ``DCG@k = sum_{i: r_i < k} G(l_i) D(r_i)`` over the documents i of a query with label l_i
    and rank r_i, counted from 0; the ideal ranks by label. Undefined if the ideal is 0.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    gain : {"exp2", "linear", "binary"}, default "exp2"
        ``G(l) = 2 ** l - 1``, ``G(l) = l`` or ``G(l) = [l >= relevant_from]``.
    discount : {"log2", "kdd08"}, default "log2"
        ``D(r) = 1 / log2(2 + r)``, or ``D(0) = 1`` and ``D(r) = 1 / log2(1 + r)`` from rank 1 on: 1, 1, 0.63, 0.5 ...
    relevant_from : float, default 1
        Used by the gain "binary" only.

    Examples
    --------
    >>> y, scores = [0, 2, 1], [3.0, 2.0, 1.0]
    >>> round(evaluate(y, scores, None, NDCG(k=2))["ndcg@2"], 4)  # 3/log2(3) over 3 + 1/log2(3)
    0.5213
    >>> evaluate(y, scores, None, NDCG(gain="binary", discount="kdd08"))["ndcg"]  # (1 + 0.63) over (1 + 1)
    0.8154648767857288
    """

    short: ClassVar[str] = "ndcg"


@dataclass(frozen=True, repr=False)
class CNDCG(Discounted):
    """NDCG over labels c in [0, 1] that are derived from clicks, such as click-through rates.

    ``CNDCG@k = 1/N sum_{i: r_i < k} (2 ** (4 c_i) - 1) D(r_i)`` with N the same sum for the ideal ranking (Svore, Volkovs and
    Burges, Learning to rank with multiple objective functions, WWW 2011, equation 9). The factor 4 scales c to the range of
    five human grades, so that values are comparable with `NDCG`. The label nan marks a document without clicks: it keeps its
    rank and has gain 0. As it may be irrelevant or merely unseen, no pair of the lambdas has such a document (see
    `structrank.learners.Graded`); a label 0 has the same gain, but forms pairs. Undefined if no click label is above 0.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    discount : {"log2", "kdd08"}, default "log2"
        As for `NDCG`; the paper uses "log2".

    Examples
    --------
    >>> clicks = [0.25, float("nan"), 0.5]
    >>> round(evaluate(clicks, [3.0, 2.0, 1.0], None, CNDCG())["cndcg"], 4)  # 1 + 3/2 over 3 + 1/1.585
    0.6885
    """

    short: ClassVar[str] = "cndcg"
    ranks_unlabelled: ClassVar[bool] = True
    k: int | None = None
    discount: str = "log2"

    def check_labels(self, labels):
        """Raise unless every label lies in [0, 1] or is nan."""
        checks.check_click_labels(labels)

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return 2 ** (4 c) - 1 for each click label c."""
        return np.exp2(4 * labels) - 1

    def discounts(self, n: int) -> np.ndarray:
        """Return D of the first n ranks."""
        return discounts(self.discount, n)


@dataclass(frozen=True, repr=False)
class ERR(Measure):
    """Expected reciprocal rank: the mean of 1 / (1 + rank) where a reader of the list stops.

    ``ERR@k = sum_{r < k} 1 / (1 + r) R(l_r) prod_{j < r} (1 - R(l_j))`` with l_r the label at rank r, counted from 0, and
    ``R(l) = (2 ** l - 1) / 2 ** max_grade`` the probability that a document of label l satisfies the reader, who stops there
    (Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009). Not normalised: the ideal
    ranking has a value below 1. Undefined where all labels are 0.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    max_grade : float, default 4
        Highest grade of the labelling scheme, at most 1000. Labels above it are an error; values with different `max_grade` are
        not comparable.

    Examples
    --------
    >>> y, scores = [1, 2, 0], [3.0, 2.0, 1.0]
    >>> evaluate(y, scores, None, ERR(max_grade=2))["err"]  # 1/4 + 1/2 3/4 3/4
    0.53125
    """

    short: ClassVar[str] = "err"
    k: int | None = None
    max_grade: float = 4

    def __post_init__(self):
        super().__post_init__()
        checks.check_number("max_grade", self.max_grade, above=0, at_most=1000)

    def check_labels(self, labels):
        """Raise if a label is above the highest grade."""
        super().check_labels(labels)
        checks.check_highest_label(labels, self.max_grade)

    def stops(self, labels: np.ndarray) -> np.ndarray:
        """Return R, the probability that a document satisfies the reader, of each label."""
        return gains("exp2", labels) / 2.0**self.max_grade

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return ranking.values(kernels.expected_reciprocal_ranks, self.stops(ranking.labels), ranking.n_ranks(self.k))


@dataclass(frozen=True, repr=False)
class DCG(_DiscountedGains):
    """Discounted cumulative gain, not normalised.

    ``DCG@k = sum_{i: r_i < k} G(l_i) D(r_i)`` over the documents i of a query with label l_i and rank r_i, counted from 0.
    Undefined where the gain of the ideal ranking is 0. Queries with more relevant documents weigh more in the mean; `NDCG`
    divides by the value of the ideal ranking instead.

    Parameters
    ----------
    k, gain, discount, relevant_from
        As for `NDCG`.

    Examples
    --------
    >>> evaluate([1, 2, 1], [3.0, 2.0, 1.0], None, DCG(k=3, gain="linear"))["dcg@3"]  # 1 + 2 / log2(3) + 1 / 2
    2.761859507142915
    """

    short: ClassVar[str] = "dcg"

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return ranking.discounted_gains(self, self.discounts(ranking.n_ranks(self.k)))[0]


@dataclass(frozen=True, repr=False)
class RBP(Binary):
    """Rank-biased precision: rate at which a reader finds relevant documents who continues past each rank with probability p.

    ``RBP@k = (1 - p) sum_{r < k} [l_r >= relevant_from] p ** r`` with l_r the label at rank r, counted from 0 (Moffat and
    Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 2008). Not normalised: only an infinite list
    of relevant documents has the value 1. Undefined where there is no relevant document at all.

    Parameters
    ----------
    k, relevant_from
        As for `MRR`.
    p : float, default 0.8
        Persistence of the reader, above 0 and below 1.

    Examples
    --------
    >>> evaluate([0, 1, 1], [3.0, 2.0, 1.0], None, RBP(p=0.5))["rbp"]  # (1 - 0.5) (0.5 + 0.25)
    0.375
    """

    short: ClassVar[str] = "rbp"
    k: int | None = None
    p: float = 0.8

    def __post_init__(self):
        super().__post_init__()
        checks.check_number("p", self.p, above=0, below=1)

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return (1 - self.p) * ranking.discounted_gains(self, self.p ** np.arange(ranking.n_ranks(self.k)))[0]


@dataclass(frozen=True, repr=False)
class Recall(_Top):
    """Share of the relevant documents in the first k ranks.

    ``recall@k = (number of relevant documents of rank below k) / n+`` with n+ the number of relevant documents of the query;
    undefined where there are none. Relevant documents that are missing from the data are not counted.

    Parameters
    ----------
    k, relevant_from
        As for `MRR`, but the cutoff is needed.

    Examples
    --------
    >>> dict(evaluate([1, 0, 1], [3.0, 2.0, 1.0], None, [Recall(2), Recall(10)]))
    {'recall@2': 0.5, 'recall@10': 1.0}
    """

    short: ClassVar[str] = "recall"

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return ranking.values(kernels.recalls, ranking.labels >= self.relevant_from, self.k)


@dataclass(frozen=True, repr=False)
class Success(_Top):
    """Whether there is a relevant document in the first k ranks.

    ``success@k = 1`` if a relevant document has a rank below k, else 0; undefined where there is no relevant document at all.
    With ties: the share of the orders of the tied documents for which it is 1.

    Parameters
    ----------
    k, relevant_from
        As for `MRR`, but the cutoff is needed.

    Examples
    --------
    >>> dict(evaluate([0, 1, 1], [3.0, 2.0, 1.0], None, [Success(1), Success(2)]))
    {'success@1': 0.0, 'success@2': 1.0}
    """

    short: ClassVar[str] = "success"

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        relevant = ranking.labels >= self.relevant_from
        reached = ranking.values(kernels.first_relevant, relevant, np.ones(ranking.n_ranks(self.k)))
        return np.minimum(reached, 1.0)  # probabilities of a tie group may sum to a little more


@dataclass(frozen=True, repr=False)
class RPrecision(Binary):
    """Precision in the first n+ ranks, n+ the number of relevant documents of the query.

    ``R-precision = (number of relevant documents of rank below n+) / n+``, which is recall there as well; undefined where n+ is
    0.

    Parameters
    ----------
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> evaluate([1, 0, 1], [3.0, 2.0, 1.0], None, RPrecision())["rprec"]
    0.5
    """

    short: ClassVar[str] = "rprec"

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return ranking.values(kernels.recalls, ranking.labels >= self.relevant_from, 0)


@dataclass(frozen=True, repr=False)
class Bpref(Binary):
    """Binary preference: based on the number of judged irrelevant documents above each relevant one.

    ``bpref = 1/n+ sum_g (1 - min(a_g, n+) / min(n-, n+))`` over the n+ relevant documents g of a query, a_g the number of
    irrelevant documents above g and n- their number in all, as in trec_eval (Buckley and Voorhees, Retrieval evaluation with
    incomplete information, SIGIR 2004). Documents with the label nan are unjudged: they are removed before the others are
    ranked. Undefined where there is no relevant document; 1 where there is no irrelevant one.

    Parameters
    ----------
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> y, scores = [0, 1, float("nan"), 0, 1], [5.0, 4.0, 3.0, 2.0, 1.0]
    >>> evaluate(y, scores, None, Bpref())["bpref"]  # ((1 - 1/2) + (1 - 2/2)) / 2
    0.25
    """

    short: ClassVar[str] = "bpref"

    def check_labels(self, labels):
        """Raise unless labels are nan, or finite and at least 0."""
        super().check_labels(np.where(np.isnan(labels), 0.0, labels))

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        return ranking.values(kernels.binary_preferences, ranking.labels >= self.relevant_from)


MEASURES: dict[str, type[Measure]] = {
    measure.short: measure
    for measure in (AUC, MAP, MRR, NDCG, P, CNDCG, PairAccuracy, ERR, DCG, RBP, Recall, Success, RPrecision, Bpref)
}


def parse(name: str | Measure, *, gain: str = "exp2", discount: str = "log2", relevant_from: float = 1) -> Measure:
    """Parse a measure from its name: "auc", "map", "mrr@10", "ndcg", "ndcg@10", "p@10", "err@10", "recall@100" ...

    Parameters
    ----------
    name : str or Measure
        Case-insensitive; the cutoff follows the "@", settings that only this measure has follow in parentheses, as in
        "err@10(max_grade=2)" and "rbp(p=0.95)". A `Measure` is returned unchanged.
    gain, discount, relevant_from
        Settings of the measures that have them; see `NDCG`.

    Returns
    -------
    Measure

    Examples
    --------
    >>> parse("ndcg@10", gain="linear") == NDCG(k=10, gain="linear")
    True
    >>> parse("MAP", relevant_from=2).relevant_from
    2
    """
    if isinstance(name, Measure):
        requirements.check(name, "discounted measure" if isinstance(name, Discounted) else "measure")
        return name
    given: dict[str, Any] = {"gain": gain, "discount": discount, "relevant_from": relevant_from}
    NDCG(**given)  # checks all settings, also those that the measure does not use
    short, settings = parse_name(f"measure {name!r}", name, MEASURES)
    return checks.make(MEASURES[short], given | settings)


def parse_name(said, name, classes, uncut=(), advice=""):
    """Return the short name of a measure or criterion, and the settings that its name contains.

    Parameters
    ----------
    said : str
        Begins errors.
    name : str
    classes : dict
        From short names to classes.
    uncut : collection of str
        Short names that take no cutoff although their class has one.
    advice : str
        Ends the error for an unknown name.

    Examples
    --------
    >>> parse_name("measure", "ERR@5(max_grade=2)", MEASURES)
    ('err', {'k': 5, 'max_grade': 2})
    """
    text, bracket, own = name.lower().partition("(") if isinstance(name, str) else ("", "", "")
    short, at, cut = map(str.strip, text.partition("@"))
    if short not in classes:
        known = ", ".join(one if one in uncut else usage(one, cls) for one, cls in classes.items())
        raise ValueError(f"{said} is not known; choose one of: {known}.{advice}")
    form, settings = short if short in uncut else usage(short, classes[short]), {}
    if at:
        if "@" not in form:
            raise ValueError(f"{said}: {short} has no cutoff; write {short!r}.")
        if not (cut.isascii() and cut.isdigit() and int(cut) > 0):
            raise ValueError(f"{said}: the cutoff {cut!r} is not valid; expected an integer of at least 1, as in '{short}@10'.")
        settings["k"] = int(cut)
    elif form == f"{short}@k":
        raise ValueError(f"{said} needs a cutoff, as in '{short}@10'.")
    return short, settings | (_parse_own(said, short, classes[short], bracket + own) if bracket else {})


def _parse_own(said, short, cls, text):
    """Read settings of one kind of measure or criterion only, such as "(p=0.5)"."""
    own = {setting.name: setting.default for setting in fields(cls) if setting.name not in checks.SETTINGS}
    found = {}
    for item in text.strip("() ").split(","):
        setting, equals, value = map(str.strip, item.partition("="))
        if not (equals and text.rstrip().endswith(")")):
            example = ", ".join(f"{one}={default}" for one, default in own.items()) or "setting=1"
            raise ValueError(f"{said}: {text!r} is not valid; expected settings as in '{short}({example})'.")
        if setting not in own:
            known = f"expected {' or '.join(own)}" if own else f"write {short!r}"
            raise ValueError(f"{said}: {short} has no setting {setting!r}; {known}.")
        try:
            found[setting] = int(value) if value.isdigit() else float(value)
        except ValueError:
            raise ValueError(f"{said}: {setting}={value!r} is not a number.") from None
    return found


def usage(short, cls):
    """Return the name of a measure or criterion with its cutoff, as in user input.

    Examples
    --------
    >>> [usage(measure.short, measure) for measure in (AUC, NDCG, P)]
    ['auc', 'ndcg[@k]', 'p@k']
    """
    default = {setting.name: setting.default for setting in fields(cls)}
    if "k" not in default:
        return short
    return f"{short}@k" if default["k"] is MISSING else f"{short}[@k]"


class Evaluation(dict):
    """Result of `evaluate`: a dict from names of measures to means, or to arrays of one value per query.

    Names are found in any case. Printing also shows the settings of each measure and the number of queries for which it is
    undefined.

    Attributes
    ----------
    measures : dict
        The measure of each name.
    n_queries : int
    query_ids : (n_queries,) array
        In order of first appearance.
    undefined : dict
        For each name the number of queries for which the measure is undefined.

    Examples
    --------
    >>> evaluate([1, 0, 0], [3.0, 2.0, 1.0], ["a", "a", "b"], ["ndcg@10", "map"])
    {'ndcg@10': 1.0, 'map': 1.0}
    2 queries
    ndcg@10: gain=exp2, discount=log2; undefined for 1
    map: relevant_from=1; undefined for 1
    """

    def __init__(self, values, measures, query_ids, undefined):
        super().__init__(values)
        self.measures = measures
        self.query_ids = query_ids
        self.undefined = undefined

    @property
    def n_queries(self):
        """Number of queries."""
        return len(self.query_ids)

    def __missing__(self, name):
        """Look the name up in any case, as `parse` reads it."""
        for known in self:
            if known.lower() == str(name).lower():
                return self[known]
        raise KeyError(f"{name!r} was not evaluated; it has {', '.join(map(repr, self))}.")

    def __contains__(self, name):
        return str(name).lower() in (known.lower() for known in self)

    def get(self, name, default=None):
        """Return the value of a measure, its name in any case, or `default` if it was not evaluated."""
        try:
            return self[name]
        except KeyError:
            return default

    def __repr__(self):
        lines = [super().__repr__(), "1 query" if self.n_queries == 1 else f"{self.n_queries} queries"]
        for name, measure in self.measures.items():
            undefined = self.undefined[name]
            notes = [measure.settings, f"undefined for {undefined}" if undefined else ""]
            if any(notes):
                lines.append(f"{name}: {'; '.join(filter(None, notes))}")
        return "\n".join(lines)


def evaluate(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None,
    measures: str | Measure | Sequence[str | Measure],
    *,
    gain: str = "exp2",
    discount: str = "log2",
    relevant_from: float = 1,
    per_query: bool = False,
    ties: str = "average",
    empty: float = math.nan,
    sample_weight: ArrayLike | None = None,
) -> Evaluation:
    """Compute measures of a ranking by scores, per query or averaged over queries.

    Parameters
    ----------
    y : array-like of shape (n_docs,)
        Labels, at least 0; larger is more relevant.
    scores : array-like of shape (n_docs,)
        Documents are ranked by decreasing score.
    qid : array-like of shape (n_docs,), int or None
        The query of each row, in any order, of any hashable type; an integer or None makes all rows one query.
    measures : str, Measure, or a list of them
        Names as `parse` reads them, or value objects such as ``NDCG(k=10, gain="linear")``.
    gain : {"exp2", "linear", "binary"}, default "exp2"
        Gain of the "ndcg" and "dcg" given by name; see `NDCG`.
    discount : {"log2", "kdd08"}, default "log2"
        Discount of the "ndcg", "dcg" and "cndcg" given by name; see `NDCG`.
    relevant_from : float, default 1
        Documents with a label of at least this are relevant, for the binary measures given by name.
    per_query : bool, default False
        Return one value per query instead of the mean.
    ties : {"average", "stable"}, default "average"
        "average": exact mean over all orders of documents of equal score (McSherry and Najork 2008), independent of the order
        of the rows. "stable": documents of equal score rank in the order of the rows, as in some other tools.
    empty : float, default nan
        Value of a query for which a measure is undefined. nan excludes it from the mean; other tools use 0 or 1.
    sample_weight : array-like of shape (n_docs,), default None
        Weight of each row's query in the mean; constant within a query.

    Returns
    -------
    Evaluation
        A dict from the name of each measure to its mean over queries (nan if it is defined for none), or with
        `per_query` to a (n_queries,) array in order of first appearance of the queries. ``.undefined`` counts
        the undefined queries of each measure.

    Examples
    --------
    >>> y, scores, qid = [1, 0, 0, 1, 0], [0.9, 0.4, 0.8, 0.3, 0.1], ["a", "a", "b", "b", "c"]
    >>> result = evaluate(y, scores, qid, ["mrr@10", "auc"])
    >>> dict(result), result.undefined
    ({'mrr@10': 0.75, 'auc': 0.5}, {'mrr@10': 1, 'auc': 1})
    >>> evaluate(y, scores, qid, "mrr@10", empty=0.0)["mrr@10"]
    0.5
    >>> evaluate(y, scores, qid, "mrr@10", per_query=True)["mrr@10"].tolist()
    [1.0, 0.5, nan]
    """
    chosen = parse_all(measures, gain=gain, discount=discount, relevant_from=relevant_from)
    empty = checks.check_empty(empty)
    grouping = group_by_query(0 if qid is None else qid, checks.count_rows(y, "y"), against="y")
    weights = np.ones(grouping.n_queries)
    if sample_weight is not None:
        weights = checks.check_row_weights(sample_weight, grouping.rows, grouping.indptr, grouping.ids, against="y")
        checks.check_some_weight(weights.any())
    checks.check_choice("ties", ties, ("average", "stable"))
    n_rows = grouping.rows.shape[0]
    labels = checks.as_number_column(y, n_rows, "y", "numbers, larger is more relevant", "qid")
    scores = checks.as_scores(scores, n_rows)
    for measure in chosen.values():
        measure.check_labels(labels)
    rankings = {
        ranks_unlabelled: SortedLabels(labels, grouping, ranks_unlabelled).rank(scores, ties)
        for ranks_unlabelled in {measure.ranks_unlabelled for measure in chosen.values()}
    }
    values, undefined = {}, {}
    for name, measure in chosen.items():
        value = measure.values(rankings[measure.ranks_unlabelled])
        missing = np.isnan(value)
        undefined[name] = int(missing.sum())
        value[missing] = empty
        values[name] = value if per_query else mean_of_defined(value, weights)
    return Evaluation(values, chosen, grouping.ids, undefined)


def parse_all(measures, **settings):
    """Return measures as a dict by name; measures that share a name get their settings that differ from this call's added.

    Examples
    --------
    >>> parse_all(["map", "ndcg@5"])["ndcg@5"].k
    5
    >>> list(parse_all(["ndcg@5", NDCG(k=5)], gain="binary"))
    ['ndcg@5', 'ndcg@5 (gain=exp2)']
    """
    if isinstance(measures, (str, Measure)):
        measures = [measures]
    distinct: list[Measure] = []
    for measure in measures:
        measure = parse(measure, **settings)
        if measure not in distinct:
            distinct.append(measure)
    if not distinct:
        raise ValueError("measures is empty; expected at least one, such as 'ndcg@10'.")
    names = [measure.name for measure in distinct]
    chosen = {}
    for measure in distinct:
        name = full_name(measure, **settings) if names.count(measure.name) > 1 else measure.name
        if name in chosen:
            raise ValueError(
                f"measures contains two named {name!r}: {chosen[name]!r} and {measure!r}; evaluate them separately."
            )
        chosen[name] = measure
    return chosen


def full_name(measure, **settings):
    """Return the name of a measure, with the settings in which it differs from the measure of that name in a call.

    Parameters
    ----------
    measure : Measure
    **settings
        Settings of the call for measures given by name: gain, discount, relevant_from.

    Examples
    --------
    >>> full_name(NDCG(k=10)), full_name(NDCG(k=10), gain="binary", discount="kdd08")
    ('ndcg@10', 'ndcg@10 (gain=exp2, discount=log2)')
    """
    usual = parse(measure.name, **settings).settings.split(", ") if measure.short in MEASURES else []
    other = [text for text in measure.settings.split(", ") if text and text not in usual]
    return f"{measure.name} ({', '.join(other)})" if other else measure.name


class Evaluator:
    """Mean of a measure over fixed queries for varying scores; labels are checked and sorted once.

    Parameters
    ----------
    measure : Measure
    labels : (n_docs,) array
        In the caller's row order; nan only where the measure supports it.
    grouping : structrank.datasets.queries.Grouping
    query_weights : (n_queries,) array, default None
        None for equal weights.

    Examples
    --------
    >>> evaluator = Evaluator(MRR(), np.array([0.0, 1.0, 1.0]), group_by_query(["a", "a", "b"], 3))
    >>> evaluator(np.array([2.0, 1.0, 0.0])), evaluator.per_query(np.array([2.0, 1.0, 0.0]))
    (0.75, array([0.5, 1. ]))
    """

    def __init__(self, measure, labels, grouping, query_weights=None):
        measure.check_labels(labels)
        self.measure, self._by_label = measure, SortedLabels(labels, grouping, measure.ranks_unlabelled)
        self._weights = np.ones(grouping.n_queries) if query_weights is None else query_weights

    def per_query(self, scores, ties="average"):
        """Compute the measure of each query, nan if undefined; `scores` in the caller's row order, without nan."""
        return self.measure.values(self._by_label.rank(scores, ties))

    def __call__(self, scores):
        """Compute the mean over the queries for which the measure is defined."""
        return mean_of_defined(self.per_query(scores), self._weights)


@dataclass(frozen=True)
class Scorer:
    """Scorer for scikit-learn: the mean of a measure over queries; see `scorer`.

    Parameters
    ----------
    measure : Measure

    Examples
    --------
    >>> scorer("mrr@10")
    Scorer(measure=mrr@10)
    """

    measure: Measure

    def __call__(self, estimator, X, y, qid=None, sample_weight=None):
        """Compute the mean of the measure over the queries for which it is defined; weights are constant within a query."""
        qid = checks.as_query_ids(qid, checks.count_rows(y, "y"), against="y")
        scores = predict(estimator, X, qid)
        return evaluate(y, scores, qid, self.measure, sample_weight=sample_weight)[self.measure.name]

    def get_metadata_routing(self):
        """Request `qid`, and `sample_weight` where there is one, from scikit-learn."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name in ("qid", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request


def scorer(measure: str | Measure, *, gain: str = "exp2", discount: str = "log2", relevant_from: float = 1) -> Scorer:
    """Return a scorer for `cross_val_score`, `GridSearchCV` and similar functions of scikit-learn.

    Needs ``sklearn.set_config(enable_metadata_routing=True)``, so that scikit-learn splits `qid` with the rows and passes it
    on; a `sample_weight`, where one is passed, is used as well. Queries stay whole with ``cv=GroupKFold()`` and the queries as
    `groups`.

    Parameters
    ----------
    measure : str or Measure
    gain, discount, relevant_from
        Settings of a measure given by name, as for `parse`.

    Returns
    -------
    Scorer
        Called as ``scorer(model, X, y, qid=qid, sample_weight=None)``.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from structrank import StructRankSVM, datasets
    >>> train = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, random_state=0).train
    >>> model, by_query = StructRankSVM("auc"), {"qid": train.qid, "groups": train.qid}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(
    ...         model, train.X, train.y, scoring=scorer("ndcg@10", gain="exp2"), cv=GroupKFold(3), params=by_query
    ...     )
    >>> scores.shape
    (3,)
    """
    return Scorer(parse(measure, gain=gain, discount=discount, relevant_from=relevant_from))


def predict(model, X, qid):
    """Score rows by a model that may be a Pipeline of scikit-learn with steps that need qid in predict.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> predict(LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0]), [[2.0]], qid=["a"])
    array([4.])
    """
    import sklearn
    from sklearn.utils.metadata_routing import get_routing_for_object

    with sklearn.config_context(enable_metadata_routing=True):
        needs_qid = get_routing_for_object(model).consumes("predict", ["qid"])
        return model.predict(X, qid=qid) if needs_qid else model.predict(X)


def mean_of_defined(values, weights=1.0):
    """Compute the mean of the values that are not nan, with the weights of queries; nan if these sum to 0.

    Examples
    --------
    >>> mean_of_defined(np.array([1.0, np.nan, 0.0]))
    0.5
    """
    weights = np.broadcast_to(weights, values.shape)
    defined = ~np.isnan(values)
    total = math.fsum(weights[defined])  # exact sums do not depend on the order of the queries
    return math.fsum((weights * values)[defined]) / total if total else math.nan
