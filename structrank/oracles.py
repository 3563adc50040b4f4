"""Exact oracles: the most violated ranking of each query of a block, for one criterion and one feature map.

An oracle is made once for a training set (`criterion`, `feature_map`, length of the longest query) and then called with
one block of sorted queries after another. It chooses; the criterion's loss and the feature map's coefficients then judge
and weigh the chosen ranking, so that a value is always that of a real ranking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structrank._kernels import graded, interleavings
from structrank._kernels.feature_maps import share_ties, values
from structrank._kernels.sorting import sort_queries
from structrank.solvers.assignment import best_assignment


@dataclass
class Queries:
    """Queries whose documents are sorted by decreasing score, the good ones before the bad ones.

    Attributes
    ----------
    scores : (n_docs,) array
        In sorted order, less the mean of the query.
    starts : (n_queries + 1,) array of int
    n_good : (n_queries,) array of int
        0 where labels are graded: then a query is sorted as a whole.
    order : (n_docs,) array of int
        Position, within the block, of the document at each sorted place.
    labels : (n_docs,) array or None
        Graded labels, in the order of the rows.
    """

    scores: np.ndarray
    starts: np.ndarray
    n_good: np.ndarray
    order: np.ndarray
    labels: np.ndarray | None = None

    @classmethod
    def sort(cls, scores, starts, n_good, order, labels=None):
        """Sort a block of queries by its new scores; `order` is a starting point and is changed in place."""
        sorted_scores = np.empty_like(scores)
        sort_queries(scores, starts, n_good, order, sorted_scores)
        return cls(sorted_scores, starts, n_good, order, labels)


@dataclass
class Violated:
    """The most violated ranking of each query of a block.

    Attributes
    ----------
    coefficients : (n_docs,) array
        phi(y) - phi(y*) = sum_i coefficients_i x_i, in sorted order; ties share theirs.
    losses, values : (n_queries,) arrays
        Delta(y*, y) and w.(phi(y) - phi(y*)) + Delta(y*, y).
    before : (n_docs,) array of int or None
        Number of bad documents before each good one; None where labels are graded.
    ranks : (n_docs,) array of int or None
        Rank of each document, in sorted order, where the oracle gives it directly.
    """

    coefficients: np.ndarray
    losses: np.ndarray
    values: np.ndarray
    before: np.ndarray | None = None
    ranks: np.ndarray | None = None


def _judged(queries, coefficients, losses, before=None, ranks=None):
    result = Violated(coefficients, losses, np.empty_like(losses), before, ranks)
    share_ties(queries.scores, queries.starts, queries.n_good, coefficients)
    values(queries.scores, queries.starts, coefficients, losses, result.values)
    return result


def _discounted(criterion, feature_map, longest, choose):
    """Make an oracle from ``choose(scores, starts, n_good, discount, credit, before)`` for a loss of the discounted kind."""
    discount, credit = criterion.discounts(longest + 2), criterion.credits(longest + 2)
    weigh = feature_map.prepare(longest)

    def oracle(queries):
        before = np.empty(queries.scores.shape[0], dtype=np.int64)
        losses = np.empty(queries.n_good.shape[0])
        coefficients = np.empty(queries.scores.shape[0])
        choose(queries.scores, queries.starts, queries.n_good, discount, credit, before)
        interleavings.discounted_losses(queries.starts, queries.n_good, before, discount, credit, losses)
        weigh(queries.starts, queries.n_good, before, coefficients)
        return _judged(queries, coefficients, losses, before)

    return oracle


def auc_partial_order(criterion, feature_map, longest):
    """Make the oracle for AUC with the partial-order map: O(n) after the sort."""
    weigh = feature_map.prepare(longest)

    def oracle(queries):
        before = np.empty(queries.scores.shape[0], dtype=np.int64)
        losses = np.empty(queries.n_good.shape[0])
        coefficients = np.empty(queries.scores.shape[0])
        interleavings.auc(queries.scores, queries.starts, queries.n_good, before, losses)
        weigh(queries.starts, queries.n_good, before, coefficients)
        return _judged(queries, coefficients, losses, before)

    return oracle


def unclipped_partial_order(criterion, feature_map, longest):
    """Make the oracle for MAP and NDCG-NC with the partial-order map: O(n- + n+ log n-) after the sort."""

    def choose(scores, starts, n_good, discount, credit, before):
        interleavings.unclipped(scores, starts, n_good, discount, credit, criterion.convex_from, before)

    return _discounted(criterion, feature_map, longest, choose)


def ndcg_partial_order(criterion, feature_map, longest):
    """Make the oracle for NDCG@k with the partial-order map: O(k^2 + n) after the sort."""
    if criterion.k is None:
        return unclipped_partial_order(criterion, feature_map, longest)
    k = min(criterion.k, longest + 1)

    def choose(scores, starts, n_good, discount, credit, before):
        interleavings.ndcg(scores, starts, n_good, discount, k, before)

    return _discounted(criterion, feature_map, longest, choose)


def mrr_partial_order(criterion, feature_map, longest):
    """Make the oracle for MRR@k with the partial-order map: O(n) after the sort."""
    k = longest + 1 if criterion.k is None else min(criterion.k, longest + 1)

    def choose(scores, starts, n_good, discount, credit, before):
        interleavings.mrr_partial_order(scores, starts, n_good, discount, k, before)

    return _discounted(criterion, feature_map, longest, choose)


def mrr_first_relevant(criterion, feature_map, longest):
    """Make the oracle for MRR@k with the first-relevant map: O(n) after the sort."""
    k = longest + 1 if criterion.k is None else min(criterion.k, longest + 1)

    def choose(scores, starts, n_good, discount, credit, before):
        interleavings.mrr_first(scores, starts, n_good, discount, k, before)

    return _discounted(criterion, feature_map, longest, choose)


def _depth(discount, decay):
    """Give the number of ranks at which a document's place still matters."""
    seen = np.flatnonzero((discount != 0) | (decay != 0))
    return int(seen[-1]) + 1 if seen.size else 1


def ndcg_permutation(criterion, feature_map, longest):
    """Make the oracle for NDCG@k with the permutation map, labels good or bad: O(n+ n-), O(cut^2) with a cut decay."""
    decay = feature_map.decays(longest + 2)
    depth = _depth(criterion.discounts(longest + 2), decay)

    def choose(scores, starts, n_good, discount, credit, before):
        interleavings.permutation(scores, starts, n_good, discount, decay, depth, before)

    return _discounted(criterion, feature_map, longest, choose)


def graded_auc_partial_order(criterion, feature_map, longest):
    """Make the oracle for AUC over all pairs with different labels: O(n log n).

    Its argmax is over pair assignments, which with three or more grades need not form a ranking.
    """

    def oracle(queries):
        losses = np.empty(queries.n_good.shape[0])
        coefficients = np.empty(queries.scores.shape[0])
        grades = np.empty(queries.scores.shape[0], dtype=np.int64)
        for q in range(losses.shape[0]):
            span = slice(queries.starts[q], queries.starts[q + 1])
            grades[span] = np.unique(queries.labels[queries.order[span]], return_inverse=True)[1]
        graded.auc(queries.scores, queries.starts, grades, coefficients, losses)
        result = Violated(coefficients, losses, np.empty_like(losses))
        values(queries.scores, queries.starts, coefficients, losses, result.values)
        return result

    return oracle


def graded_ndcg_permutation(criterion, feature_map, longest):
    """Make the oracle for NDCG@k with the permutation map and graded gains: an assignment of documents to ranks."""
    decay = feature_map.decays(longest + 2)
    discount = criterion.discounts(longest + 2)
    depth = _depth(discount, decay)

    def oracle(queries):
        coefficients = np.empty(queries.scores.shape[0])
        losses = np.empty(queries.n_good.shape[0])
        all_ranks = np.empty(queries.scores.shape[0], dtype=np.int64)
        for q in range(losses.shape[0]):
            span = slice(queries.starts[q], queries.starts[q + 1])
            scores, labels = queries.scores[span], queries.labels[queries.order[span]]
            n_ranks = min(depth, scores.shape[0])
            credit = criterion.gains(labels)
            ideal = np.sort(credit)[::-1] @ discount[: credit.shape[0]]
            ranks = best_assignment(np.outer(scores, decay[:n_ranks]) - np.outer(credit / ideal, discount[:n_ranks]))
            losses[q] = 1.0 - credit @ discount[ranks] / ideal
            c = decay[ranks] - feature_map.ideal_coefficients(labels)
            # Documents of one grade and one score are interchangeable: they share their coefficients.
            _, group = np.unique(np.stack([scores, labels]), axis=1, return_inverse=True)
            group = group.reshape(-1)
            coefficients[span] = (np.bincount(group, weights=c) / np.bincount(group))[group]
            all_ranks[span] = ranks
        result = Violated(coefficients, losses, np.empty_like(losses), ranks=all_ranks)
        values(queries.scores, queries.starts, coefficients, losses, result.values)
        return result

    return oracle
