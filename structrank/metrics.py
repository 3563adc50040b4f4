"""Measures of a ranking, computed per query and averaged.

Documents of a query are ranked by decreasing score; ranks count from 0. Tied scores are averaged exactly over
all orders of the tied documents. The value of a query for which a measure is undefined is nan; such queries
are skipped in the mean and counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from structrank._kernels import measures as kernels
from structrank._support import checks, requirements
from structrank._support.discounts import discounts, gains
from structrank.datasets.queries import group_by_query

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "AUC",
    "CNDCG",
    "MAP",
    "MRR",
    "NDCG",
    "Binary",
    "Discounted",
    "Evaluation",
    "Evaluator",
    "Measure",
    "P",
    "PairAccuracy",
    "Ranking",
    "evaluate",
    "parse",
]


@dataclass(frozen=True)
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
    >>> one_query = Ranking(np.array([0.0, 2.0]), np.array([5.0, 4.0]), np.array([2.0, 0.0]), np.array([0, 2]))
    >>> reached, ideal = one_query.discounted_gains(lambda labels: labels, np.array([1.0, 0.5]))
    >>> reached.tolist(), ideal.tolist()
    ([1.0], [2.0])
    """

    labels: np.ndarray
    scores: np.ndarray
    ideal: np.ndarray
    indptr: np.ndarray

    def n_ranks(self, k):
        """Return the number of ranks above the cutoff `k` (None: no cutoff) in the longest query."""
        longest = int(np.diff(self.indptr).max())
        return longest if k is None else min(k, longest)

    def values(self, kernel, *arguments):
        """Run a kernel that writes one value per query."""
        out = np.empty(self.indptr.shape[0] - 1)
        kernel(self.scores, self.indptr, *arguments, out)
        return out

    def discounted_gains(self, gain, discount):
        """Return the discounted gain of each query, and that of its ideal ranking, nan if 0.

        Parameters
        ----------
        gain : callable
            Function from an array of labels to their gains.
        discount : (n_ranks,) array
            Discount of each rank, 0 beyond.
        """
        by_label = replace(self, labels=self.ideal, scores=_untied(self.ideal.shape[0]))
        ranked = self.values(kernels.discounted_gains, gain(self.labels), discount)
        ideal = by_label.values(kernels.discounted_gains, gain(by_label.labels), discount)
        ideal[ideal == 0] = np.nan
        return ranked, ideal


def _rank(y, scores, grouping, ties, measures):
    """Check the input of `measures` and sort it, once for all of them."""
    checks.check_choice("ties", ties, ("average", "stable"))
    n_rows = grouping.rows.shape[0]
    labels = checks.as_number_column(y, n_rows, "y", "numbers, larger is more relevant", "qid")
    scores = checks.as_scores(scores, n_rows)
    for measure in measures:
        measure.check_labels(labels)

    labels, scores, indptr = labels[grouping.rows], scores[grouping.rows], grouping.indptr
    known = ~np.isnan(labels)
    if not known.all():
        labels, scores = labels[known], scores[known]
        indptr = np.concatenate([[0], np.cumsum(known)])[indptr]

    by_row = np.arange(labels.shape[0])
    by_label, ideal = sort_queries(labels, indptr, by_row)
    if ties == "stable":
        order, _ = sort_queries(scores, indptr, by_row)
        return Ranking(labels[order], _untied(labels.shape[0]), ideal, indptr)
    # Sorting by label first makes sums over tied documents independent of the row order.
    order, ranked_scores = sort_queries(scores, indptr, by_label)
    return Ranking(labels[order], ranked_scores, ideal, indptr)


def _untied(n_docs):
    """Return scores without ties for documents in ranked order."""
    return np.arange(n_docs, dtype=np.float64)


def sort_queries(keys, indptr, start):
    """Sort each query by decreasing key, ties in the order of `start`; return the order and the sorted keys.

    Examples
    --------
    >>> sort_queries(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 3]), np.arange(3))
    (array([1, 0, 2]), array([3., 1., 2.]))
    """
    order, sorted_keys = start.copy(), np.empty_like(keys)
    kernels.rank_queries(keys, indptr, order, sorted_keys)
    return order, sorted_keys


class Measure:
    """A measure of a ranking: a value object that compares by its settings and prints as its name and what is not the default.

    A subclass is a frozen dataclass that defines `short`, the name without the cutoff, and ``values(ranking)``, which
    returns one value per query, nan where undefined. Fields named `k`, `gain`, `discount` and `relevant_from` have the
    same meaning as in `NDCG`; additional fields need a default. `structrank.register` makes it available by name.

    Examples
    --------
    >>> NDCG(k=10), MAP(), NDCG(k=5, gain="linear")
    (ndcg@10, map, ndcg@5(gain='linear'))
    >>> NDCG(k=10) == parse("NDCG@10"), isinstance(MAP(), Measure)
    (True, True)
    """

    short: ClassVar[str]

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

    def per_query(self, labels, scores, grouping, ties="average"):
        """Compute the measure for each query.

        Parameters
        ----------
        labels, scores : array-like of shape (n_docs,)
            In the caller's row order.
        grouping : structrank.training.data.Grouping
            Which rows belong to which query.
        ties : {"average", "stable"}, default "average"
            See `evaluate`.

        Returns
        -------
        (n_queries,) array
            In the order of ``grouping.ids``; nan where the measure is undefined.

        Examples
        --------
        >>> from structrank.datasets.queries import group_by_query
        >>> MRR().per_query([0, 1, 0], [3.0, 2.0, 1.0], group_by_query(["a", "a", "b"], 3)).tolist()
        [0.5, nan]
        """
        return self.values(_rank(labels, scores, grouping, ties, [self]))


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """Base class of the measures that depend only on whether ``label >= relevant_from``.

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
    n- irrelevant documents b of a query; undefined where either is missing.

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
        """Compute the measure of each query, nan where undefined."""
        relevant = (ranking.labels >= self.relevant_from).astype(np.int64)
        return ranking.values(kernels.ordered_pairs, relevant, 2)


@dataclass(frozen=True, repr=False)
class PairAccuracy(Measure):
    """Fraction of the pairs of different label in the right order; tied scores count half.

    ``sum_{i,j: l_i > l_j} ([s_i > s_j] + [s_i = s_j] / 2) / #{i,j: l_i > l_j}`` over the documents of a
    query; undefined where all labels are equal. With two labels this is `AUC`.

    Examples
    --------
    >>> evaluate([2, 1, 0], [2.0, 3.0, 1.0], None, PairAccuracy())["pair_accuracy"]  # two pairs of three
    0.6666666666666666
    """

    short: ClassVar[str] = "pair_accuracy"

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        distinct, grades = np.unique(ranking.labels, return_inverse=True)
        return ranking.values(kernels.ordered_pairs, grades, distinct.shape[0])


@dataclass(frozen=True, repr=False)
class MAP(Binary):
    """Average precision: the mean over relevant documents of the precision at their rank, over all ranks.

    ``AP = 1/n+ sum_g (number of relevant documents at or above g) / (1 + rank_g)`` over the n+ relevant
    documents g of a query; undefined where there are none.

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
        """Compute the measure of each query, nan where undefined."""
        return ranking.values(kernels.average_precisions, ranking.labels >= self.relevant_from)


@dataclass(frozen=True, repr=False)
class MRR(Binary):
    """Reciprocal rank of the first relevant document.

    ``RR@k = 1 / (1 + r)`` with r the rank of the first relevant document of a query, 0 if r >= k; undefined
    where there is no relevant document at all.

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
        """Compute the measure of each query, nan where undefined."""
        relevant = ranking.labels >= self.relevant_from
        return ranking.values(kernels.reciprocal_ranks, relevant, ranking.n_ranks(self.k))


@dataclass(frozen=True, repr=False)
class P(Binary):
    """Precision in the first k ranks.

    ``P@k = (number of relevant documents of rank below k) / k``, also where a query has fewer than k
    documents; undefined where there is no relevant document at all.

    Parameters
    ----------
    k : int
        Rank cutoff.
    relevant_from : float, default 1
        Documents with a label of at least this are relevant.

    Examples
    --------
    >>> dict(evaluate([1, 0, 1], [3.0, 2.0, 1.0], None, [P(2), P(4)]))
    {'p@2': 0.5, 'p@4': 0.5}
    """

    short: ClassVar[str] = "p"
    k: int

    def __post_init__(self):
        checks.check_number("k", self.k, at_least=1, integer=True)
        super().__post_init__()

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        found, findable = ranking.discounted_gains(self.gains, np.ones(ranking.n_ranks(self.k)))
        return np.where(np.isnan(findable), np.nan, found / self.k)


class Discounted(Measure):
    """Base class of the measures that are a discounted gain over that of the ideal ranking.

    ``sum_{i: r_i < k} G(l_i) D(r_i)``, divided by the same sum for the ideal ranking, over the documents i of a
    query with label l_i and rank r_i, counted from 0. Undefined where the ideal is 0.

    A subclass defines ``discounts(n)``, which returns D(0), ..., D(n - 1), and ``gains(labels)``, which returns G;
    `Binary` as a second base class provides ``gains``. A field `k`, if any, is the rank cutoff.

    Examples
    --------
    Rank-biased precision, normalised:

    >>> @dataclass(frozen=True, repr=False)
    ... class RBP(Discounted, Binary):
    ...     short: ClassVar[str] = "rbp"
    ...     p: float = 0.8
    ...
    ...     def discounts(self, n):
    ...         return self.p ** np.arange(n)
    >>> evaluate([0, 1, 0], [3.0, 2.0, 1.0], None, RBP(p=0.5))
    {'rbp': 0.5}
    1 query
    rbp: relevant_from=1, p=0.5
    """

    def values(self, ranking):
        """Compute the measure of each query, nan where undefined."""
        discount = self.discounts(ranking.n_ranks(getattr(self, "k", None)))
        ranked, ideal = ranking.discounted_gains(self.gains, discount)
        return np.minimum(ranked / ideal, 1.0)  # the mean of a tie group may round up


@dataclass(frozen=True, repr=False)
class NDCG(Discounted):
    """Normalised discounted cumulative gain.

    ``NDCG@k = DCG@k / ideal DCG@k``, ``DCG@k = sum_{i: r_i < k} G(l_i) D(r_i)`` over the documents i of a
    query with label l_i and rank r_i, counted from 0; the ideal ranks by label. Undefined where the ideal is
    0.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    gain : {"exp2", "linear", "binary"}, default "exp2"
        ``G(l) = 2 ** l - 1``, ``G(l) = l`` or ``G(l) = [l >= relevant_from]``.
    discount : {"log2", "kdd08"}, default "log2"
        ``D(r) = 1 / log2(2 + r)``, or ``D(0) = 1`` and ``D(r) = 1 / log2(1 + r)`` from rank 1 on: 1, 1, 0.63,
        0.5 ...
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
    k: int | None = None
    gain: str = "exp2"
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
class CNDCG(Discounted):
    """NDCG over labels c in [0, 1] that are derived from clicks, such as click-through rates.

    ``CNDCG@k = 1/N sum_{i: r_i < k} (2 ** (4 c_i) - 1) D(r_i)`` with N the same sum for the ideal ranking
    (Svore, Volkovs and Burges, Learning to rank with multiple objective functions, WWW 2011, equation 9). The
    factor 4 scales c to the range of five human grades, so that values are comparable with `NDCG`. A document
    without clicks may be irrelevant or merely unseen: documents with the label nan are removed before the
    others are ranked. Undefined where no click label is above 0.

    Parameters
    ----------
    k : int, default None
        Rank cutoff; None for none.
    discount : {"log2", "kdd08"}, default "log2"
        As for `NDCG`; the paper uses "log2".

    Examples
    --------
    >>> clicks = [0.25, float("nan"), 0.5]
    >>> round(evaluate(clicks, [3.0, 2.0, 1.0], None, CNDCG())["cndcg"], 4)  # 1 + 3/1.585 over 3 + 1/1.585
    0.7967
    """

    short: ClassVar[str] = "cndcg"
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


MEASURES = {measure.short: measure for measure in (AUC, MAP, MRR, NDCG, P, CNDCG, PairAccuracy)}


def parse(name: str | Measure, *, gain: str = "exp2", discount: str = "log2", relevant_from: float = 1) -> Measure:
    """Parse a measure from its name: "auc", "map", "mrr", "mrr@10", "ndcg", "ndcg@10", "p@10", "cndcg@10" ...

    Parameters
    ----------
    name : str or Measure
        Case-insensitive; the cutoff follows the "@". A `Measure` is returned unchanged.
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
    short, at, cut = name.lower().partition("@") if isinstance(name, str) else (None, "", "")
    if short not in MEASURES:
        choices = ", ".join(map(usage, MEASURES))
        raise ValueError(f"measure {name!r} is not known; choose one of: {choices}.")
    if at:
        if "@" not in usage(short):
            raise ValueError(f"measure {name!r}: {short} has no cutoff; write {short!r}.")
        if not (cut.isascii() and cut.isdigit() and int(cut) > 0):
            raise ValueError(
                f"measure {name!r}: the cutoff {cut!r} is not valid; expected an integer of at least 1, as in '{short}@10'."
            )
        given["k"] = int(cut)
    elif usage(short) == f"{short}@k":
        raise ValueError(f"measure {name!r} needs a cutoff, as in '{short}@10'.")
    return checks.make(MEASURES[short], given)


def register(measure):
    """Register a measure by name; called by `structrank.register`, which has an example."""
    checks.check_name_is_free(measure.short, measure, MEASURES)
    MEASURES[measure.short] = measure


def usage(short):
    """Return the name of a measure with its cutoff, as in user input.

    Examples
    --------
    >>> [usage(short) for short in ("auc", "ndcg", "p")]
    ['auc', 'ndcg[@k]', 'p@k']
    """
    default = {setting.name: setting.default for setting in fields(MEASURES[short])}
    if "k" not in default:
        return short
    return f"{short}@k" if default["k"] is MISSING else f"{short}[@k]"


class Evaluation(dict):
    """Result of `evaluate`: a dict from names of measures to means, or to arrays of one value per query.

    Printing also shows the settings of each measure and the number of queries for which it is undefined.

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
    qid : array-like of shape (n_docs,), or None
        The query of each row, in any order, of any hashable type; None makes all rows one query.
    measures : str, Measure, or a list of them
        Names as `parse` reads them, or value objects such as ``NDCG(k=10, gain="linear")``.
    gain : {"exp2", "linear", "binary"}, default "exp2"
        Gain of the "ndcg" given by name; see `NDCG`.
    discount : {"log2", "kdd08"}, default "log2"
        Discount of the "ndcg" and "cndcg" given by name; see `NDCG`.
    relevant_from : float, default 1
        Documents with a label of at least this are relevant, for the binary measures given by name.
    per_query : bool, default False
        Return one value per query instead of the mean.
    ties : {"average", "stable"}, default "average"
        "average": exact mean over all orders of documents of equal score (McSherry and Najork 2008), independent
        of the order of the rows. "stable": documents of equal score rank in the order of the rows, as in some
        other tools.
    empty : float, default nan
        Value of a query for which a measure is undefined. nan excludes it from the mean; other tools use 0 or
        1.
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
    grouping = group_by_query(qid, checks.count_rows(y, "y"), against="y")
    weights = np.ones(grouping.n_queries)
    if sample_weight is not None:
        weights = checks.check_row_weights(sample_weight, grouping.rows, grouping.indptr, grouping.ids, against="y")
        checks.check_some_weight(weights.any())
    ranking = _rank(y, scores, grouping, ties, chosen.values())
    values, undefined = {}, {}
    for name, measure in chosen.items():
        value = measure.values(ranking)
        missing = np.isnan(value)
        undefined[name] = int(missing.sum())
        value[missing] = empty
        values[name] = value if per_query else _mean(value, weights)
    return Evaluation(values, chosen, grouping.ids, undefined)


def parse_all(measures, **settings):
    """Return measures as a dict by name; names that several share are told apart by the settings that are not the call's.

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
        In the caller's row order; documents with the label nan are skipped.
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
        self.measure = measure
        known = ~np.isnan(labels[grouping.rows])
        rows = grouping.rows[known]
        self._indptr = np.concatenate([[0], np.cumsum(known)])[grouping.indptr]
        # Sorting by label first makes sums over tied documents independent of the row order.
        by_label, self._ideal = sort_queries(labels[rows], self._indptr, np.arange(rows.shape[0]))
        self._rows = rows[by_label]
        self._weights = np.ones(grouping.n_queries) if query_weights is None else query_weights
        # The ideal value is the largest part of the work for discounted gains, and is constant.
        self._gains = None
        if isinstance(measure, Discounted):
            ranking = Ranking(self._ideal, _untied(rows.shape[0]), self._ideal, self._indptr)
            self._discounts = measure.discounts(ranking.n_ranks(getattr(measure, "k", None)))
            self._best = ranking.discounted_gains(measure.gains, self._discounts)[1]
            self._gains = measure.gains(self._ideal)

    def per_query(self, scores):
        """Compute the measure of each query, nan where undefined; `scores` in the caller's row order, without nan."""
        order, ranked = sort_queries(scores[self._rows], self._indptr, np.arange(self._rows.shape[0]))
        if self._gains is not None:
            values = np.empty(self._weights.shape[0])
            kernels.discounted_gains(ranked, self._indptr, self._gains[order], self._discounts, values)
            return np.minimum(values / self._best, 1.0)
        return self.measure.values(Ranking(self._ideal[order], ranked, self._ideal, self._indptr))

    def __call__(self, scores):
        """Compute the mean over the queries for which the measure is defined."""
        return _mean(self.per_query(scores), self._weights)


def _mean(values, weights):
    """Compute the weighted mean of the values that are not nan; nan if their weights sum to 0."""
    defined = ~np.isnan(values)
    total = math.fsum(weights[defined])  # exact sums do not depend on the order of the queries
    return math.fsum((weights * values)[defined]) / total if total else math.nan
