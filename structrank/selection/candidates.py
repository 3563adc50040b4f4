"""The candidates of `structrank.train_for`: criteria and bounds, on binary relevance and on grades."""

from __future__ import annotations

import functools

import numpy as np

from structrank import oracles
from structrank.criteria import DORM, has_criterion, matched_criterion
from structrank.feature_maps import Permutation
from structrank.svm import StructRankSVM

# First word of the names of candidates that are trained on grades, and end of those with the ramp bound.
GRADED, RAMP = "graded", ", ramp"


def uses_grades(measure):
    """Return whether a measure distinguishes grades and has a criterion to train on.

    Examples
    --------
    >>> from structrank import metrics
    >>> [uses_grades(measure) for measure in (metrics.NDCG(), metrics.NDCG(gain="binary"), metrics.DCG(), metrics.ERR())]
    [True, False, False, True]
    """
    if not has_criterion(measure):
        return False
    own = matched_criterion(measure)
    return bool(own.graded_oracles) and (getattr(measure, "gain", "binary") != "binary" or not own.oracles)


def binary_candidates(measure, relevant_from, discount):
    """Return untrained models by name; the last two are the measure's own criterion, convex and ramp, if it has a binary one.

    Examples
    --------
    >>> from structrank import metrics
    >>> list(binary_candidates(metrics.MAP(), 1, "kdd08"))
    ['AUC', 'NDCG-NC', 'AUC + MAP + NDCG-NC', 'MAP', 'MAP, ramp']
    """
    own, name = matched_criterion(measure), measure.name.upper()
    make = functools.partial(StructRankSVM, relevant_from=relevant_from)
    others = {
        "AUC": make("auc"),
        "MAP": make("map"),
        "NDCG-NC": make("ndcg-nc", discount=discount),
        "AUC + MAP + NDCG-NC": make(["auc", "map", "ndcg-nc"], discount=discount),
    }
    if not own.oracles:
        return others
    convex = others.pop(name, None) or make(own, feature_map="po" if "po" in own.oracles else "auto")
    return {**others, name: convex, f"{name}{RAMP}": make(own, bound="ramp")}


def graded_candidates(measure, data, relevant_from):
    """Return untrained models by name, trained on grades as `measure` has them; none if they equal the binary candidates.

    Parameters
    ----------
    measure : Measure
        With `uses_grades`.
    data : RankingData
        The training queries.
    relevant_from : float
        Lowest relevant label of the binary candidates.

    Examples
    --------
    >>> from structrank import metrics
    >>> from structrank.training.data import RankingData
    >>> list(graded_candidates(metrics.NDCG(k=10), RankingData([[1.0], [2.0], [3.0]], [0, 1, 2], 0), 1))
    ['graded AUC', 'graded DORM@10', 'graded NDCG@10', 'graded NDCG@10, ramp']
    >>> graded_candidates(metrics.NDCG(k=10), RankingData([[1.0], [2.0]], [0, 1], 0), 1)
    {}
    """
    own, name = matched_criterion(measure), measure.name.upper()
    make = functools.partial(StructRankSVM, relevant_from=None)
    levels, sizes = np.unique(data.labels), data.grouping.sizes
    longest = int(sizes.max())
    most_grades = oracles.Grades.of(data.labels[data.grouping.rows], data.grouping.indptr).most
    found = {}
    if levels.size > 2 or levels[0] > 0 or levels[-1] < relevant_from:
        found[f"{GRADED} AUC"] = make("auc")
    elif own.oracles:
        return {}
    # Ranks from k on do not change the loss; without their decay a pass is faster and the bound less often vacuous.
    permutation, phi_po = Permutation(cut=own.k), "po"
    if "dorm" in own.graded_oracles and not oracles.has_lattice(most_grades, min(own.k or longest, longest)):
        phi_po = permutation
    elif found:
        like_own = {name: value for name, value in vars(own).items() if name in ("discount", "gain")}
        dorm = DORM(own.k, **like_own)
        found[f"{GRADED} {dorm.name.upper()}{'' if own.k is None else f'@{own.k}'}"] = make(dorm, feature_map=permutation)
    bounds = {"": "convex", RAMP: "ramp"}
    return found | {f"{GRADED} {name}{end}": make(own, feature_map=phi_po, bound=bound) for end, bound in bounds.items()}
