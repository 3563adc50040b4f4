"""Exact oracles: the most violated ranking of each query of a block, for one criterion and one feature map.

An oracle is made once for a training set (`criterion`, `feature_map`, length of the longest query) and then called with
one block of sorted queries after another. The loss and the coefficients are computed from the ranking that it finds, so that a
value is always attained by an actual ranking. Any function from `Queries` to `Violated` is accepted; a `CompiledOracle` can
also be run by the compiled pass over the data, without calls to Python.

The KDD 2008 paper writes good / bad for relevant / irrelevant, hence `n_good` and the indices g and b.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structrank._kernels import counts, graded, interleavings, pairs
from structrank._kernels import feature_maps as maps
from structrank._kernels import oracles as compiled
from structrank._kernels.sorting import make_workspace, sort_queries
from structrank._support import checks, requirements
from structrank.solvers.assignment import best_assignment


@dataclass
class Queries:
    """Queries with relevant documents first, then irrelevant documents, each sorted by decreasing score.

    Attributes
    ----------
    scores : (n_docs,) array
        In sorted order, centred: minus one of the middle scores of the query.
    starts : (n_queries + 1,) array of int
    n_good : (n_queries,) array of int
        Number of relevant documents; 0 if labels are graded: then a query is sorted as a whole.
    labels : (n_docs,) array or None
        Graded labels, in sorted order.
    """

    scores: np.ndarray
    starts: np.ndarray
    n_good: np.ndarray
    labels: np.ndarray | None = None

    @classmethod
    def sort(cls, scores, starts, n_good, order, labels=None):
        """Sort a block of queries by its new scores.

        `order` holds positions within each query; it is the initial order and is sorted in place. Tied documents are sorted by
        decreasing label.
        """
        sorted_scores, workspace = np.empty_like(scores), make_workspace(scores.shape[0], order.dtype)
        tie_ranks = order if labels is None else ranks_by_label(labels, starts).astype(order.dtype)
        sort_queries(scores, starts, n_good, order, tie_ranks, sorted_scores, workspace, False)
        if labels is not None:
            labels = labels[np.repeat(starts[:-1], np.diff(starts)) + order]
        return cls(sorted_scores, starts, n_good, labels)


def ranks_by_label(labels, starts):
    """Return the rank of each document within its query, counted from 0, by decreasing label; equal labels keep their order.

    Examples
    --------
    >>> ranks_by_label(np.array([0, 2, 2, 1, 3]), np.array([0, 3, 5]))
    array([2, 0, 1, 1, 0])
    """
    query = np.repeat(np.arange(starts.shape[0] - 1), np.diff(starts))
    ranks = np.empty_like(query)
    ranks[np.lexsort((-labels, query))] = np.arange(query.shape[0]) - starts[query]
    return ranks


@dataclass
class Violated:
    """The most violated ranking of each query of a block.

    Attributes
    ----------
    coefficients : (n_docs,) array
        phi(y) - phi(y*) = sum_i coefficients_i x_i, in sorted order; tied documents have equal coefficients.
    losses, values : (n_queries,) arrays
        Delta(y*, y) and w.(phi(y) - phi(y*)) + Delta(y*, y).
    before : (n_docs,) array of int or None
        Number of irrelevant documents before each relevant one; None if labels are graded.
    ranks : (n_docs,) array of int or None
        Rank of each document, in sorted order, if the oracle computes it.
    """

    coefficients: np.ndarray
    losses: np.ndarray
    values: np.ndarray
    before: np.ndarray | None = None
    ranks: np.ndarray | None = None


@dataclass(frozen=True)
class CompiledOracle:
    """An oracle of compiled functions, see `structrank._kernels.oracles`.

    Attributes
    ----------
    kernels : tuple
        Called one after another: search, loss, coefficients, value.
    settings : (3,) array of int
    table : (4, longest + 2) array
    graded : bool
        Whether labels are grades.
    gains : callable or None
        For graded labels: function from labels to gains; None if the loss has none.
    """

    kernels: tuple
    settings: np.ndarray
    table: np.ndarray
    graded: bool = False
    gains: Callable | None = None

    @classmethod
    def of(cls, kernels, feature_map, longest, criterion=None, cut=0, convex_from=0, predicts=False):
        """Make the oracle of some kernels for a feature map and, for discounted losses, a criterion."""
        table = _table(feature_map, longest)
        if criterion is not None:
            requirements.check(criterion, "criterion of compiled oracles")
            table[0], table[1] = (_by_rank(criterion, name, longest + 2) for name in ("discounts", "credits"))
        return cls((*kernels, maps.values), np.array([cut, convex_from, predicts]), table)

    @classmethod
    def of_search(cls, search, feature_map, longest, criterion, **settings):
        """Make the oracle of a discounted loss that searches the best interleaving by a kernel."""
        kernels = (search, interleavings.discounted_losses, _weigh(feature_map), maps.share_ties)
        return cls.of(kernels, feature_map, longest, criterion, **settings)

    @classmethod
    def of_grades(cls, kernels, feature_map, longest, criterion=None, predicts=False):
        """Make the oracle of some kernels for graded labels; `criterion` has gains and discounts, None for AUC."""
        table = _table(feature_map, longest)
        settings = np.array([longest, False, predicts])
        if criterion is None:
            return cls((*kernels, maps.values), settings, table, graded=True)
        requirements.check(criterion, "criterion of compiled oracles for graded labels")
        k = getattr(criterion, "k", None)
        settings[:2] = min(k or longest, longest), getattr(criterion, "cascade", False)
        table[0] = _by_rank(criterion, "discounts", longest + 2)
        return cls((*kernels, maps.values), settings, table, True, criterion.gains)

    @property
    def for_pairs(self):
        """Whether the oracle needs no sorted documents, see `structrank._kernels.pairs`."""
        return self.kernels[0] is pairs.auc

    def addresses(self):
        """Compile the kernels and return their addresses."""
        return compiled.addresses(self.kernels, self.graded)

    def lattice_of(self, grades):
        """Make the lattice over counts of grades; an empty one if the oracle has no use for it."""
        if self.kernels[0] is not counts.find:
            return compiled.NO_LATTICE
        return counts.make_lattice(grades.most, self.settings[0], self.table[0])

    def __call__(self, queries):
        """Find the most violated ranking of each query."""
        n_docs, n_queries = queries.scores.shape[0], queries.n_good.shape[0]
        found = Violated(np.empty(n_docs), np.empty(n_queries), np.empty(n_queries))
        out = found.coefficients, found.losses, found.values
        if self.graded:
            grades, ranking = Grades.of(queries.labels, queries.starts), np.empty(n_docs, dtype=np.int64)
            of_grades = grades.numbers, grades.starts, self.gains_of(grades)
            lattice = self.lattice_of(grades)
            block = compiled.GradedBlock(
                self.settings, self.table, queries.scores, queries.starts, *of_grades, ranking, *out, *lattice
            )
        else:
            found.before = np.zeros(n_docs, dtype=np.int64)
            block = compiled.Block(
                self.settings, self.table, queries.scores, queries.starts, queries.n_good, found.before, *out
            )
        compiled.call(self.kernels, block)
        if self.graded and self.kernels[0] is not graded.auc:
            found.ranks = np.empty(n_docs, dtype=np.int64)
            first = np.repeat(queries.starts[:-1], np.diff(queries.starts))
            found.ranks[first + ranking] = np.arange(n_docs) - first
        return found

    def gains_of(self, grades):
        """Return the gain of each of the grades; raise if the lattice would be too large."""
        if self.gains is None:
            return np.zeros(grades.labels.shape[0])
        if self.kernels[0] is counts.find:
            _check_size(grades.most, int(self.settings[0]))
        return np.asarray(self.gains(grades.labels), dtype=np.float64)


@dataclass(frozen=True)
class Grades:
    """Graded labels, with the distinct labels of each query as numbers 0, 1, ..., in increasing order.

    Attributes
    ----------
    numbers : (n_docs,) array of int32
    labels : (n_grades,) array
        The distinct labels of all queries, query after query.
    starts : (n_queries + 1,) array of int
        Start of the labels of each query.

    Examples
    --------
    >>> grades = Grades.of(np.array([0.0, 4.0, 1.0, 3.0, 3.0]), np.array([0, 2, 5]))
    >>> grades.numbers.tolist(), grades.labels.tolist(), grades.starts.tolist()
    ([0, 1, 0, 1, 1], [0.0, 4.0, 1.0, 3.0], [0, 2, 4])
    """

    numbers: np.ndarray
    labels: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, labels, starts):
        """Return the grades of queries that start at the given positions."""
        query = np.repeat(np.arange(starts.shape[0] - 1), np.diff(starts))
        by_label = np.lexsort((labels, query))
        is_new = np.diff(labels[by_label], prepend=np.nan) != 0
        is_new[starts[:-1]] = True
        counted = np.cumsum(is_new) - 1
        numbers = np.empty(labels.shape[0], dtype=np.int32)
        numbers[by_label] = counted - counted[starts[:-1]][query]
        grade_starts = np.append(counted[starts[:-1]], is_new.sum())
        return cls(numbers, labels[by_label][is_new], grade_starts)

    @property
    def most(self):
        """Number of grades of the query with the most."""
        return int(np.diff(self.starts).max(initial=2))


# Steps of the lattice over counts, the cost of one query: about 1 ms.
_MOST_STEPS = 300_000
# Documents times ranks of an assignment problem: the matrix takes 2 GB.
_MOST_ENTRIES = 2**28


def has_lattice(n_grades, k):
    """Return whether the lattice over the counts of grades in the top k has few enough steps.

    Examples
    --------
    >>> has_lattice(5, 20), has_lattice(5, 21)
    (True, False)
    """
    return n_grades * math.comb(k + n_grades, k) <= _MOST_STEPS


def _check_size(n_grades, k):
    """Raise if the lattice over the counts of grades in the top k has too many steps."""
    if has_lattice(n_grades, k):
        return
    largest = k - 1
    while not has_lattice(n_grades, largest):
        largest -= 1
    advice = f"Use k={largest} or less" if largest else "Map the labels to fewer grades"
    raise ValueError(
        f"k={k} is too large for a query with {n_grades} different labels: the exact oracle takes m C(k + m, m) steps for m "
        f"labels, here {n_grades * math.comb(k + n_grades, k):,}, and at most {_MOST_STEPS:,} are supported. {advice}, or set "
        "relevant_from to train on binary relevance."
    )


def _weigh(feature_map):
    """Return the kernel that turns interleavings into coefficients."""
    requirements.check(feature_map, "feature map of compiled oracles and the ramp bound")
    return (maps.partial_order, maps.first_relevant, maps.permutation)[feature_map.kernel]


def _weigh_grades(feature_map):
    """Return the kernel that turns rankings of graded documents into coefficients."""
    requirements.check(feature_map, "feature map of compiled oracles and the ramp bound")
    return graded.partial_order if feature_map.kernel == maps.PARTIAL_ORDER else graded.permutation


def _table(feature_map, longest):
    """Make the table of a compiled oracle, with the decay of the feature map if it has one."""
    table = np.zeros((4, longest + 2))
    if hasattr(feature_map, "decays"):
        table[2] = feature_map.decays(longest + 2)
        table[3, 1:] = np.cumsum(table[2])[:-1]
    return table


def _by_rank(criterion, name, n):
    """Return the first n discounts or credits of a criterion, checked."""
    found = np.asarray(getattr(criterion, name)(n), dtype=np.float64)
    if found.shape != (n,) or not (np.isfinite(found) & (found >= 0)).all() or found[0] == 0:
        raise ValueError(
            f"{name}({n}) of criterion {criterion.name!r} has shape {found.shape} and begins with {found[:5]}; expected {n} "
            "finite numbers of at least 0, the first above 0."
        )
    if name == "discounts":
        checks.check_falling(found, f"the discount of criterion {criterion.name!r}", "D")
    return found


def make(maker, criterion, feature_map, longest):
    """Make the oracle of a criterion and a feature map, a function from `Queries` to `Violated`; its results are checked.

    `maker` is a function of `criterion`, `feature_map` and `longest`, the number of documents of the longest query.
    """
    oracle = maker(criterion, feature_map, longest)
    whose = f"criterion {criterion.name!r} with feature_map {feature_map.name!r}"
    requirements.check(oracle, "oracle", f"It was made for {whose}.")
    if isinstance(oracle, CompiledOracle):
        return oracle

    def checked(queries):
        found = oracle(queries)
        requirements.check(found, "result of an oracle", f"It was returned for {whose}.")
        n_docs, n_queries = queries.scores.shape[0], queries.n_good.shape[0]
        for name, n, each in (
            ("coefficients", n_docs, "document"),
            ("losses", n_queries, "query"),
            ("values", n_queries, "query"),
        ):
            shape = np.shape(getattr(found, name))
            if shape != (n,):
                raise ValueError(f"the oracle of {whose} returned {name} of shape {shape}; expected ({n},): one per {each}.")
        return found

    return checked


def auc_partial_order(criterion, feature_map, longest):
    """Make the oracle for AUC with phi_po: O(n log n+) after the sort."""
    return CompiledOracle.of((pairs.auc,), feature_map, longest)


def discounted_partial_order(criterion, feature_map, longest):
    """Make the oracle for discounted losses with phi_po.

    With a cutoff `k`, as NDCG@k: O(k^2 + n) after the sort. Without, as MAP and NDCG-NC: O(n- + n+ log n-).
    """
    k, convex_from = getattr(criterion, "k", None), getattr(criterion, "convex_from", 0)
    if k is None:
        oracle = CompiledOracle.of_search(interleavings.unclipped, feature_map, longest, criterion, convex_from=convex_from)
        bends = np.diff(oracle.table[0, convex_from:], 2)
        exact = convex_from in (0, 1) and (bends >= -_ROUNDING * oracle.table[0, 0]).all()
        condition = f"its discount is not convex from rank {convex_from} on"
    else:
        oracle = CompiledOracle.of_search(interleavings.ndcg, feature_map, longest, criterion, cut=min(k, longest + 1))
        exact = not oracle.table[0, k:].any() and np.ptp(oracle.table[1]) == 0.0
        condition = f"its discount is not 0 from rank k={k} on, or its credits differ"
    if not exact:
        raise ValueError(
            f"criterion {criterion.name!r} has no exact oracle with feature_map 'po', as {condition}; use feature_map='dorm'."
        )
    return oracle


def mrr_partial_order(criterion, feature_map, longest):
    """Make the oracle for MRR@k with phi_po: O(n) after the sort."""
    cut = longest + 1 if criterion.k is None else min(criterion.k, longest + 1)
    return CompiledOracle.of_search(interleavings.mrr_partial_order, feature_map, longest, criterion, cut=cut)


def mrr_first_relevant(criterion, feature_map, longest):
    """Make the oracle for MRR@k with phi_mrr: O(n) after the sort."""
    cut = longest + 1 if criterion.k is None else min(criterion.k, longest + 1)
    return CompiledOracle.of_search(interleavings.mrr_first, feature_map, longest, criterion, cut=cut)


# Tolerance for negative second differences of a convex discount, relative to D(0).
_ROUNDING = 1e-12


def _depth(discount, decay):
    """Return the number of ranks down to the last non-zero discount or decay."""
    seen = np.flatnonzero((discount != 0) | (decay != 0))
    return int(seen[-1]) + 1 if seen.size else 1


def permutation(criterion, feature_map, longest):
    """Make the oracle for any discounted loss with phi_dorm, for binary relevance.

    By a lattice path: O(n+ n-) at worst, and O(n log n) where bounds leave few cells, as for scores that are tied or far apart;
    O(cut^2) if discount and decay both have a cutoff. If the map has ``assignment="scipy"``, by an assignment of documents to
    ranks, for non-decreasing credits.
    """
    if feature_map.assignment == "scipy":
        return _binary_assignment(criterion, feature_map, longest)
    requirements.check(criterion, "criterion of compiled oracles")
    depth = _depth(_by_rank(criterion, "discounts", longest + 2), feature_map.decays(longest + 2))
    return CompiledOracle.of_search(interleavings.permutation, feature_map, longest, criterion, cut=depth)


def prediction(criterion, feature_map, longest, of_grades=False, ideal=False):
    """Make the oracle that finds the predicted ranking, which maximises w.phi; its value does not include the loss.

    With `ideal`, the maximum is over the ideal rankings, and the loss is still that of the order by scores.
    """
    if of_grades:
        gaining = criterion if hasattr(criterion, "gains") else None
        loss = graded.pair_losses if gaining is None else graded.top_losses
        best = (graded.ideal,) if ideal else ()
        kernels = (graded.predicted, loss, *best, _weigh_grades(feature_map), graded.share_ties)
        return CompiledOracle.of_grades(kernels, feature_map, longest, gaining, predicts=True)
    requirements.check(feature_map, "feature map of compiled oracles and the ramp bound")
    discounted = criterion if hasattr(criterion, "discounts") else None
    loss = interleavings.pair_losses if discounted is None else interleavings.discounted_losses
    if ideal:
        best = (interleavings.ideal,)
    else:  # the prediction of phi_mrr is not the order by score
        best = (interleavings.predicted_first,) if feature_map.kernel == maps.FIRST_RELEVANT else ()
    kernels = (interleavings.predicted, loss, *best, _weigh(feature_map), maps.share_ties)
    by_score = CompiledOracle.of(kernels, feature_map, longest, discounted, predicts=True)
    if discounted is not None or auc_partial_order in criterion.oracles.values():
        return by_score

    def oracle(queries):
        """Compute the loss of each ranking by ``criterion.loss``."""
        found = by_score(queries)
        for q in range(found.losses.shape[0]):
            scores = queries.scores[queries.starts[q] : queries.starts[q + 1]]
            relevant, irrelevant = np.split(scores, [queries.n_good[q]])
            mask = np.zeros(scores.shape[0], dtype=bool)
            mask[np.arange(relevant.shape[0]) + np.searchsorted(-irrelevant, -relevant, side="right")] = True
            found.losses[q] = criterion.loss(np.arange(scores.shape[0]), mask)
        return found

    return oracle


def graded_auc_partial_order(criterion, feature_map, longest):
    """Make the oracle for AUC over all pairs with different labels: O(n log n).

    The maximum is over pair assignments, which with three or more grades need not form a ranking.
    """
    return CompiledOracle.of_grades((graded.auc,), feature_map, longest)


def graded_partial_order(criterion, feature_map, longest):
    """Make the oracle for NDCG@k and ERR@k with phi_po and graded labels.

    The criterion has ``discounts(n)``, ``gains(labels)``, a cutoff `k`, and optionally ``cascade = True``: then a reader stops
    at a document with probability gain, and a rank counts by the probability that a reader gets there. With m grades in a
    query, O(n log n + m C(k + m, m)), see `structrank._kernels.counts`.
    """
    kernels = (counts.find, graded.top_losses, _weigh_grades(feature_map), graded.share_ties)
    return CompiledOracle.of_grades(kernels, feature_map, longest, criterion)


def graded_ndcg_permutation(criterion, feature_map, longest):
    """Make the oracle for NDCG@k with phi_dorm and graded gains: an assignment of documents to ranks."""
    return _assignment(criterion, feature_map, longest, lambda queries: (queries.labels, criterion.gains(queries.labels)))


def _binary_assignment(criterion, feature_map, longest):
    """Make the oracle that assigns relevant and irrelevant documents to ranks."""
    credits = _by_rank(criterion, "credits", longest + 2)
    if (np.diff(credits) < 0).any():
        # The i-th relevant document by score earns credit i at any rank, so the assignment would rank it after the next one.
        raise ValueError(
            f"assignment='scipy' is not exact for criterion {criterion.name!r}, as its credits fall; use assignment='lattice'."
        )

    def labels_and_credits(queries):
        sizes = np.diff(queries.starts)
        place = np.arange(queries.scores.shape[0]) - np.repeat(queries.starts[:-1], sizes)
        relevant = place < np.repeat(queries.n_good, sizes)
        return relevant.astype(np.float64), np.where(relevant, credits[place], 0.0)

    return _assignment(criterion, feature_map, longest, labels_and_credits)


def _assignment(criterion, feature_map, longest, labels_and_credits):
    """Make an oracle that solves an assignment problem for each query.

    `labels_and_credits` is a function of the queries; it returns the label and the credit of each document. Documents of one
    label are in order of score.
    """
    decay = feature_map.decays(longest + 2)
    discount = _by_rank(criterion, "discounts", longest + 2)
    depth = _depth(discount, decay)

    def oracle(queries):
        starts, scores = queries.starts, queries.scores
        labels, credit = labels_and_credits(queries)
        query = np.repeat(np.arange(starts.shape[0] - 1), np.diff(starts))
        place = np.arange(scores.shape[0]) - starts[query]
        by_grade = np.lexsort((-labels, query))
        grade, size = _runs(query, labels[by_grade])
        # The mean of A over the ranks of a grade, as of `Permutation.ideal_coefficients`.
        c_ideal, is_head = np.empty(scores.shape[0]), np.empty(scores.shape[0], dtype=bool)
        c_ideal[by_grade] = (np.bincount(grade, decay[place]) / size)[grade]
        # Of a grade, the documents of highest score come first: no more of them than there are ranks that count.
        is_head[by_grade] = np.arange(scores.shape[0]) - (np.cumsum(size) - size)[grade] < depth
        ideal = np.bincount(query, credit[by_grade] * discount[place])
        share, ranks = credit / ideal[query], np.full(scores.shape[0], scores.shape[0])
        heads = np.flatnonzero(is_head)
        n_ranks, bounds = np.minimum(np.diff(starts), depth), np.searchsorted(heads, starts)
        for q, n in enumerate(n_ranks.tolist()):
            head = heads[bounds[q] : bounds[q + 1]]
            if head.size * n > _MOST_ENTRIES:
                raise ValueError(
                    f"a query of {starts[q + 1] - starts[q]:,} documents needs an assignment of {head.size:,} documents to "
                    f"{n:,} ranks; at most {_MOST_ENTRIES:,} pairs are supported. Use decay='sqrt@30' and a k, which limit it "
                    "to the top, or relevant_from, which trains on binary relevance."
                )
            ranks[head] = best_assignment(scores[head, None] * decay[:n] - share[head, None] * discount[:n])
        # The others follow in the order of the documents.
        n_ranks = n_ranks[query]
        tail = np.flatnonzero(ranks >= n_ranks)
        ranks[tail] = n_ranks[tail] + np.arange(tail.shape[0]) - np.searchsorted(tail, starts)[query[tail]]
        losses = 1.0 - np.bincount(query, share * discount[ranks])
        # Documents of equal grade and score are interchangeable: they get the mean of their coefficients.
        alike = np.lexsort((scores, labels, query))
        group, size = _runs(query, labels[alike], scores[alike])
        coefficients = np.empty(scores.shape[0])
        coefficients[alike] = (np.bincount(group, (decay[ranks] - c_ideal)[alike]) / size)[group]
        result = Violated(coefficients, losses, np.empty_like(losses), ranks=ranks)
        block = compiled.make_block(
            scores=scores, starts=starts, coefficients=coefficients, losses=losses, values=result.values
        )
        compiled.call((maps.values,), block)
        return result

    return oracle


def _runs(*keys):
    """Return the number of the run of equal keys that each item is in, and the length of each run."""
    is_new = np.any([np.diff(key, prepend=np.nan) != 0 for key in keys], axis=0)
    numbers = np.cumsum(is_new) - 1
    return numbers, np.bincount(numbers)
