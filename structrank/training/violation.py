"""The most violated ranking of one query, for inspection and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank import criteria
from structrank._support import checks
from structrank.feature_maps import orders_ties
from structrank.oracles import Queries, prediction

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from structrank.criteria import Criterion

_LARGEST_SCORE = 1e300


@dataclass(frozen=True)
class Violation:
    """The ranking that violates the margin most.

    Attributes
    ----------
    ranking : (n_docs,) array of int or None
        Document numbers, best first. None for AUC over graded labels, whose argmax is over pairs.
    loss : float
        Delta(y*, y).
    value : float
        w.(phi(x, y) - phi(x, y*)) + Delta(y*, y); at least 0.
    coefficients : (n_docs,) array
        phi(x, y) - phi(x, y*) = sum_i coefficients_i x_i; tied documents share theirs.
    """

    ranking: np.ndarray | None
    loss: float
    value: float
    coefficients: np.ndarray


def most_violated(
    scores: ArrayLike,
    relevant: ArrayLike,
    criterion: str | Criterion = "map",
    k: int | str | None = "auto",
    feature_map: Any = "auto",
    discount: str = "auto",
    decay: Any = "sqrt",
    relevant_from: float | None = 1,
    gain: Any = "auto",
) -> Violation:
    r"""Find the ranking y of one query that violates the margin most, exactly.

    .. math:: \arg\max_y \; w \cdot (\phi(x, y) - \phi(x, y^*)) + \Delta(y^*, y)

    over all rankings of the documents. Only their scores w.x are needed.

    Parameters
    ----------
    scores : array-like of shape (n_docs,)
        w.x of each document.
    relevant : array-like of shape (n_docs,)
        Labels; documents with at least `relevant_from` are relevant.
    criterion : str or Criterion, default "map"
        "auc", "map", "ndcg@10", "ndcg-nc", "mrr@10", "dorm@10", "err@10", or a criterion registered with
        `structrank.register`; as for `StructRankSVM`.
    k : int, None or "auto", default "auto"
        Rank cutoff of a criterion whose name has none; None for no cutoff, "auto" for the default of the criterion, 10.
    feature_map : str or feature map, default "auto"
        "po", "mrr", "dorm"; "auto" is the criterion's default.
    discount : {"auto", "kdd08", "log2"}, default "auto"
        Of "ndcg", "ndcg-nc" and "dorm" given by name; "auto" is "kdd08".
    decay : str, array-like or callable, default "sqrt"
        Decay of the permutation map, see `structrank.feature_maps.Permutation`.
    relevant_from : number or None, default 1
        Lowest label that counts as relevant; None uses the labels as grades ("auc", "ndcg", "dorm" and "err").
    gain : {"auto", "exp2", "linear"} or array-like, default "auto"
        Gain of grades in "ndcg" and "dorm" given by name: 2^label - 1 ("auto"), label, or a table of gains of labels
        0, 1, ....

    Returns
    -------
    Violation

    Examples
    --------
    >>> from structrank import most_violated
    >>> v = most_violated([0.3, 0.2, 0.1], [0, 1, 0], criterion="map")
    >>> v.ranking.tolist(), v.loss.__round__(4), v.value.__round__(4)
    ([0, 2, 1], 0.6667, 0.6667)
    >>> v = most_violated([0.3, 0.2, 0.1], [0, 1, 2], criterion="ndcg", discount="log2", relevant_from=None)
    >>> v.ranking.tolist(), v.loss.__round__(4), v.value.__round__(4)
    ([0, 1, 2], 0.4131, 0.6798)
    """
    criterion = criteria.parse(criterion, k, discount, gain)
    chosen_map, make_oracle = criteria.find_oracle(criterion, feature_map, relevant_from is None, decay)
    n_docs = checks.as_array(scores, "scores").size
    scores = checks.as_scores(scores, n_docs, against="scores")
    if not np.isfinite(scores).all():
        raise ValueError(f"scores contains inf at row {int(np.argmin(np.isfinite(scores)))}; expected finite numbers.")
    if np.abs(scores).max(initial=0.0) > _LARGEST_SCORE:
        raise ValueError(f"scores has a number beyond {_LARGEST_SCORE:g}, so that sums may overflow; scale the scores down.")
    labels = checks.as_labels(relevant, n_docs, against="scores", name="relevant")
    if relevant_from is None:
        criterion.check_grades(labels)
        n_good, order, one_kind = 0, np.arange(n_docs), np.unique(labels).size < 2
    else:
        good = labels >= checks.check_number("relevant_from", relevant_from)
        n_good, order, one_kind = int(good.sum()), np.argsort(~good, kind="stable"), good.all() or not good.any()
    if one_kind:
        return Violation(np.argsort(-scores, kind="stable"), 0.0, 0.0, np.zeros(n_docs))
    queries = Queries.sort(scores, np.array([0, n_docs]), np.array([n_good]), order, labels)
    found = make_oracle(criterion, chosen_map, n_docs)(queries)
    coefficients, value = np.empty(n_docs), float(found.values[0])
    coefficients[order] = found.coefficients
    if orders_ties(chosen_map):
        ideal = prediction(criterion, chosen_map, n_docs, relevant_from is None, ideal=True)(queries)
        coefficients[order] -= ideal.coefficients
        value = max(value - float(ideal.values[0]), 0.0)
    ranking = None
    ranks, before = getattr(found, "ranks", None), getattr(found, "before", None)
    if ranks is not None:
        ranking = order[np.argsort(ranks)]
    elif before is not None:
        good_order = order[:n_good][::-1] if getattr(chosen_map, "worst_good_first", False) else order[:n_good]
        before = before[:n_good]
        ranking = np.empty(n_docs, dtype=np.int64)
        good_ranks = np.arange(n_good) + before
        is_good = np.zeros(n_docs, dtype=bool)
        is_good[good_ranks] = True
        ranking[is_good] = good_order
        ranking[~is_good] = order[n_good:]
    return Violation(ranking, float(found.losses[0]), value, coefficients)
