"""Lambda gradients and swap gains of one query, for inspection and for custom learners."""

from __future__ import annotations

import numpy as np

from structrank import metrics
from structrank._kernels import lambdas as kernels
from structrank._support import checks
from structrank._support.typing import ArrayLike, NDArray
from structrank.learners.plans import make_plan, parse_target
from structrank.metrics import Measure


def lambda_gradients(
    scores: ArrayLike, labels: ArrayLike, measure: str | Measure | None = "ndcg@10", construction: str = "ranknet-weight-pairs"
) -> NDArray[np.float64]:
    r"""Compute the lambdas of the documents of one query: positive moves a document up, negative down.

    Every construction is a sum of equal and opposite forces between a better document i and a worse one j,

    .. math:: \lambda_i = \sum_{j: i \succ j} \lambda_{ij} - \sum_{j: j \succ i} \lambda_{ji}

    so that the lambdas of a query sum to 0. With :math:`o = s_i - s_j`, :math:`\Delta` the swap gain (how much the measure
    changes if i and j are swapped in the ranking by score) and Z the normaliser of the measure (ideal DCG; number of relevant
    documents; 1 for MRR), the force is

    - "ranknet-weight-pairs": :math:`|\Delta| / (1 + e^{o})`, the gradient of RankNet's cost times the swap gain;
    - "spring-smooth": :math:`\max(1, Z|\Delta|) / (Z (1 + e^{o}))`, the same with the gain, before it is divided by Z,
      bounded from below by 1, so that every pair of different label has a force;
    - "local-gradient": :math:`|\Delta| / (|o| + 0.1)` between neighbours in the ranking: change of the measure over change
      of score, with a margin for small differences;
    - "local-cost": :math:`|\Delta| / (1 + e^{o})` between neighbours in the ranking;
    - "discrete-bounded": :math:`\min(1, Z|\Delta|) / Z` between a document and the document at its ideal rank,
      whatever their scores.

    With the ranks held fixed, each is minus the gradient of a cost, a sum over the same pairs of, in this order,
    :math:`|\Delta| \log(1 + e^{-o})`; the same with the bounded gain; :math:`-\mathrm{sign}(o) |\Delta| \log(1 + |o|/0.1)`;
    :math:`|\Delta| \log(1 + e^{-o})`; and minus the force times o.

    Parameters
    ----------
    scores : array-like of shape (n_docs,)
        Finite; documents are ranked by decreasing score, equal scores in the order given.
    labels : array-like of shape (n_docs,)
        At least 0; larger is more relevant. For "cndcg", nan is a document without clicks: it keeps its rank and has no pairs.
    measure : str, Measure or None, default "ndcg@10"
        "ndcg", "ndcg@k", "cndcg", "cndcg@k", "map", "mrr", "mrr@k", or an object such as ``metrics.MAP(relevant_from=2)``.
        None gives all pairs of different label the weight 1: the gradient of RankNet.
    construction : str, default "ranknet-weight-pairs"
        A construction listed above (Donmez, Svore and Burges, On the local optimality of LambdaRank, SIGIR 2009, section 7.1).

    Returns
    -------
    (n_docs,) array
        In the order given; all 0 if the measure is undefined.

    See Also
    --------
    swap_gains : The weights of all pairs.

    Examples
    --------
    >>> lambda_gradients([2.0, 1.0, 0.0], [0, 2, 1], measure="ndcg").round(3)
    array([-0.344,  0.242,  0.102])
    >>> lambda_gradients([2.0, 1.0, 0.0], [0, 1, 1], measure="mrr").round(3)
    array([-0.806,  0.366,  0.44 ])
    """
    target = parse_target(measure)
    n_docs = checks.count_rows(labels, "labels")
    grades = _as_labels(labels, n_docs, target, "labels")
    values = checks.as_number_column(scores, n_docs, "scores", "numbers, larger ranks higher", "labels")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise ValueError(f"scores contains {values[wrong[0]]:g} at row {wrong[0]}; lambdas need finite scores.")
    plan = make_plan(target, grades, np.array([0, n_docs]), construction=construction)
    lambdas = np.zeros(n_docs)
    kernels.add_lambdas(values, plan, 1.0, lambdas, np.zeros(n_docs))
    return lambdas


def swap_gains(labels_by_rank: ArrayLike, measure: str | Measure = "ndcg@10") -> NDArray[np.float64]:
    r"""Compute the change of a measure when two documents of one query are swapped, for all pairs.

    Each pair costs O(1), from counts; the measure is not evaluated again. For ranks a < b from 0, relevances z, gains G and
    discounts D, with :math:`c_r` relevant documents down to rank r,

    - NDCG: :math:`(G_b - G_a)(D_a - D_b) / Z`;
    - MAP: :math:`\pm\left(\frac{c_a + 1 - z_a}{1 + a} - \frac{c_b}{1 + b} + \sum_{a < r < b} \frac{z_r}{1 + r}\right) / n_+`
      where :math:`z_a \ne z_b`, plus if b is the relevant one;
    - MRR: the reciprocal of the new first relevant rank less that of the old.

    Parameters
    ----------
    labels_by_rank : array-like of shape (n_docs,)
        Labels, at least 0, in the order of the ranking, best first. For "cndcg", a document without clicks (nan) gains nothing.
    measure : str or Measure, default "ndcg@10"
        As for `lambda_gradients`.

    Returns
    -------
    (n_docs, n_docs) array
        Symmetric: entry (i, j) is the measure after ranks i and j were swapped, less the measure before. All 0
        if the measure is undefined.

    Examples
    --------
    >>> swap_gains([0, 1, 1], measure="mrr")
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0. ],
           [0.5, 0. , 0. ]])
    >>> round(float(swap_gains([1, 0, 1], measure="map")[1, 2]), 4)  # from (1 + 2/3) / 2 to 1
    0.1667
    """
    measure = parse_target(measure)
    if measure is None:
        raise ValueError("measure=None is not valid: expected a measure, such as 'ndcg@10', 'map' or 'mrr'.")
    n_docs = checks.count_rows(labels_by_rank, "labels_by_rank")
    labels = _as_labels(labels_by_rank, n_docs, measure, "labels_by_rank")
    plan = make_plan(measure, labels, np.array([0, n_docs]))
    upper, lower = np.zeros(n_docs), np.zeros(n_docs)
    reach = kernels.prepare_swaps(plan.kind, plan.cut, plan.discounts, plan.gains, n_docs, upper, lower)
    rises = plan.gains[None, :] - plan.gains[:, None]
    steps = np.maximum(upper[:, None] - lower[None, :], 0.0)
    steps[reach:] = 0.0
    gains = np.triu(rises * steps, 1) * plan.scales[0]
    return gains + gains.T


def _as_labels(labels, n_docs, measure, name):
    if isinstance(measure, metrics.CNDCG):
        labels = checks.as_number_column(labels, n_docs, name, "numbers from 0 to 1", name)
    else:
        labels = checks.as_labels(labels, n_docs, against=name, name=name)
    if measure is not None:
        measure.check_labels(labels)
    return labels
