"""RankNet's cost: the cross entropy of pairs."""

import numpy as np

from structrank._kernels import lambdas as kernels
from structrank.lambdas.plans import make_plan


def pairs_alike(labels, indptr, query_weights):
    """Plan all pairs of different label, those of one query to weigh together what the query weighs in the mean over queries.

    Parameters
    ----------
    labels : (n_docs,) array
        Query after query.
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
            f"none of the {pairs.shape[0]} queries has documents of different labels: there is nothing to learn from "
            f"(n_samples = {labels.shape[0]}, none usable). Check y, qid and sample_weight."
        )
    return plan._replace(scales=shares / (shares.sum() * np.maximum(pairs, 1)))


def mean_cross_entropy(scores, plan):
    """Give the mean over queries of the mean over their pairs of ``log(1 + exp(-(s_i - s_j)))``, i the better document.

    Parameters
    ----------
    scores : (n_docs,) array
        Query after query.
    plan : Plan
        As `pairs_alike` gives it.

    Returns
    -------
    float

    Examples
    --------
    >>> plan = pairs_alike(np.array([1.0, 0.0]), np.array([0, 2]), np.ones(1))
    >>> round(mean_cross_entropy(np.zeros(2), plan), 4)  # log 2
    0.6931
    """
    values = np.empty(plan.scales.shape[0])
    kernels.cross_entropies(scores, plan, values)
    return float(values.sum())
