"""The compiled oracles: the most violated ranking of each sorted query, by the number of a method.

An oracle is encoded as a row of settings and a table, so that one compiled function serves any mixture of criteria:

settings : (4,) array of int
    Method, feature map, cut (the k of a loss, the depth of the lattice), and the rank from which the discount is convex or,
    for graded labels, whether the loss is a cascade.
table : (4, n) array
    Discount and credit of the loss, decay of phi_dorm and its sums; n is at least 2 more than the longest query.
"""

from structrank._kernels import counts, feature_maps, graded, interleavings, pairs
from structrank._support.compile import kernel

# Methods that find the ranking.
AUC, UNCLIPPED, NDCG, MRR_PARTIAL_ORDER, MRR_FIRST, LATTICE, PREDICTED, COUNTS = range(8)
# Feature maps.
PARTIAL_ORDER, FIRST_RELEVANT, PERMUTATION = range(3)


@kernel
def find(settings, table, scores, starts, n_relevant, before, coefficients, losses, values):
    """Find the most violated ranking of each query of a block, for binary relevance.

    Parameters
    ----------
    scores, starts, n_relevant
        As for `structrank._kernels.interleavings`; for `AUC` as for `structrank._kernels.pairs`.
    before, coefficients : (n_docs,) arrays
        Results: see `interleavings` and `feature_maps`.
    losses, values : (n_queries,) arrays
        Results: the loss, and w.(phi(y) - phi(y*)) + loss. For `PREDICTED` the loss of the
        sorted order, and the value without it.
    """
    method, feature_map, cut, convex_from = settings[0], settings[1], settings[2], settings[3]
    discount, credit, decay, decay_sums = table[0], table[1], table[2], table[3]
    if method == AUC:
        # Tied documents have the same wrong pairs and so equal coefficients.
        pairs.auc(scores, starts, n_relevant, before, coefficients, losses)
        feature_maps.values(scores, starts, coefficients, losses, values)
        return
    if method == UNCLIPPED:
        interleavings.unclipped(scores, starts, n_relevant, discount, credit, convex_from, before)
    elif method == NDCG:
        interleavings.ndcg(scores, starts, n_relevant, discount, cut, before)
    elif method == MRR_PARTIAL_ORDER:
        interleavings.mrr_partial_order(scores, starts, n_relevant, discount, cut, before)
    elif method == MRR_FIRST:
        interleavings.mrr_first(scores, starts, n_relevant, discount, cut, before)
    elif method == LATTICE:
        interleavings.permutation(scores, starts, n_relevant, discount, credit, decay, cut, before)
    else:
        interleavings.predicted(scores, starts, n_relevant, before)
    if method == PREDICTED and discount[0] == 0.0:  # AUC
        interleavings.pair_losses(starts, n_relevant, before, losses)
    else:
        interleavings.discounted_losses(starts, n_relevant, before, discount, credit, losses)
    if method == PREDICTED and feature_map == FIRST_RELEVANT:
        interleavings.predicted_first(scores, starts, n_relevant, before)
    if feature_map == PARTIAL_ORDER:
        feature_maps.partial_order(starts, n_relevant, before, coefficients)
    elif feature_map == FIRST_RELEVANT:
        feature_maps.first_relevant(starts, n_relevant, before, coefficients)
    else:
        feature_maps.permutation(starts, n_relevant, before, decay, decay_sums, coefficients)
    feature_maps.share_ties(scores, starts, n_relevant, coefficients)
    if method == PREDICTED:
        values[:] = 0.0
        feature_maps.values(scores, starts, coefficients, values, values)
    else:
        feature_maps.values(scores, starts, coefficients, losses, values)


@kernel
def prepare_graded(settings, table, longest, n_grades):
    """Make the lattice and the workspace of `find_graded`; the smallest possible for methods that do not use them."""
    k = settings[2] if settings[0] == COUNTS else 1
    n_grades = n_grades if settings[0] == COUNTS else 2
    lattice = counts.make_lattice(n_grades, k, table[0])
    return lattice, counts.make_workspace(longest, n_grades, k, lattice)


@kernel
def find_graded(settings, table, prepared, scores, starts, grades, grade_starts, gains, ranking, coefficients, losses, values):
    """Find the most violated ranking of each query of a block, for graded labels.

    Parameters
    ----------
    prepared : tuple
        From `prepare_graded`.
    scores, starts, grades, grade_starts, gains, ranking
        As for `structrank._kernels.counts.find`; there is no ranking for `AUC`.
    coefficients, losses, values
        As for `find`.
    """
    method, feature_map, k, cascade = settings[0], settings[1], settings[2], settings[3] == 1
    discount, decay, decay_sums = table[0], table[2], table[3]
    if method == AUC:
        graded.auc(scores, starts, grades, coefficients, losses)
        feature_maps.values(scores, starts, coefficients, losses, values)
        return
    if method == COUNTS:
        lattice, workspace = prepared
        counts.find(scores, starts, grades, grade_starts, gains, discount, k, cascade, lattice, workspace, ranking)
    else:
        graded.predicted(scores, starts, ranking)
    if discount[0] == 0.0:  # the prediction of AUC
        graded.pair_losses(starts, grades, grade_starts, ranking, losses)
    else:
        graded.top_losses(starts, grades, grade_starts, gains, ranking, discount, k, cascade, losses)
    if feature_map == PARTIAL_ORDER:
        graded.partial_order(starts, grades, grade_starts, ranking, coefficients)
    else:
        graded.permutation(starts, grades, grade_starts, ranking, decay, decay_sums, coefficients)
    graded.share_ties(scores, starts, grades, coefficients)
    if method == PREDICTED:
        values[:] = 0.0
        feature_maps.values(scores, starts, coefficients, values, values)
    else:
        feature_maps.values(scores, starts, coefficients, losses, values)
