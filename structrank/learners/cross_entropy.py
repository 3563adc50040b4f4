"""RankNet's cost: the cross entropy of pairs."""

import numpy as np

from structrank._kernels import lambdas as kernels
from structrank.learners.plans import make_plan


def equally_weighted_pairs(labels, indptr, query_weights):
    """Plan all pairs of different label; the weights of a query's pairs sum to the weight of the query in the mean.

    Parameters
    ----------
    labels : (n_docs,) array
        Grouped by query.
    indptr : (n_queries + 1,) array of int
    query_weights : (n_queries,) array

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If no query has documents of different label.
    """
    plan = make_plan(None, labels, indptr)
    pairs = kernels.count_pairs(plan)
    shares = np.where(pairs > 0, query_weights, 0.0)
    if not shares.any():
        raise ValueError(
            "no query has documents of different labels, so there is no training signal "
            f"(n_queries = {pairs.shape[0]}, n_samples = {labels.shape[0]}). Check y, qid and sample_weight."
        )
    return plan._replace(scales=shares / (shares.sum() * np.maximum(pairs, 1)))


def mean_cross_entropy(scores, plan):
    """Compute the mean over queries of the mean over pairs of ``log(1 + exp(-(s_i - s_j)))``, where i has the larger label.

    Parameters
    ----------
    scores : (n_docs,) array
        Grouped by query.
    plan : Plan
        From `equally_weighted_pairs`.

    Examples
    --------
    >>> plan = equally_weighted_pairs(np.array([1.0, 0.0]), np.array([0, 2]), np.ones(1))
    >>> round(mean_cross_entropy(np.zeros(2), plan), 4)  # log 2
    0.6931
    """
    values = np.empty(plan.scales.shape[0])
    kernels.cross_entropies(scores, plan, values)
    return float(values.sum())
