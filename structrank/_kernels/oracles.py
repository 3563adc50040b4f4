"""The compiled oracles: the most violated ranking of each sorted query, by the number of a method.

An oracle is encoded as a row of settings and a table, so that one compiled function serves any mixture of criteria:

settings : (4,) array of int
    Method, feature map, cut (the k of a loss, the depth of the lattice) and the rank from which the discount is convex.
table : (4, n) array
    Discount and credit of the loss, decay of phi_dorm and its sums; n is at least 2 more than the longest query.
"""

from structrank._kernels import feature_maps, graded, interleavings, pairs
from structrank._support.compile import kernel

# Methods that find the ranking.
AUC, UNCLIPPED, NDCG, MRR_PARTIAL_ORDER, MRR_FIRST, LATTICE, GRADED_AUC, PREDICTED = range(8)
# Feature maps.
PARTIAL_ORDER, FIRST_RELEVANT, PERMUTATION = range(3)


@kernel
def find(settings, table, scores, starts, n_relevant, grades, before, coefficients, losses, values):
    """Find the most violated ranking of each query of a block.

    Parameters
    ----------
    scores, starts, n_relevant
        As for `structrank._kernels.interleavings`; for `AUC` as for `structrank._kernels.pairs`.
    grades : (n_docs,) array of int
        For `GRADED_AUC`: the labels in the order of `scores`, as numbers 0, 1, ... within each query.
    before, coefficients : (n_docs,) arrays
        Results: see `interleavings` and `feature_maps`.
    losses, values : (n_queries,) arrays
        Results: the loss, and w.(phi(y) - phi(y*)) + loss. For `PREDICTED` the loss of the
        sorted order, and the value without it.
    """
    method, feature_map, cut, convex_from = settings[0], settings[1], settings[2], settings[3]
    discount, credit, decay, decay_sums = table[0], table[1], table[2], table[3]
    if method in (AUC, GRADED_AUC):
        # Tied documents have the same wrong pairs and so equal coefficients.
        if method == AUC:
            pairs.auc(scores, starts, n_relevant, before, coefficients, losses)
        else:
            graded.auc(scores, starts, grades, coefficients, losses)
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
