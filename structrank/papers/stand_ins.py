"""Generated ranking data in place of private data, and the sentences that compare a statement with its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structrank import datasets
from structrank.datasets.containers import Dataset, Fold

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["artificial", "claim", "described", "first_folds", "noisy", "some_queries"]

_SPLIT = (0.4, 0.2, 0.4)  # 10K, 5K and 10K queries in both papers on LambdaRank


def artificial(n_queries: int, n_docs: int, n_features: int) -> Fold:
    """Generate "Artificial" data as the papers do: graded by a random cubic polynomial, without noise."""
    return datasets.make_polynomial_ranking(n_queries, n_docs, n_features, split=_SPLIT, random_state=0)


def noisy(n_queries: int, n_docs: int, n_features: int) -> Fold:
    """Generate data with five grades and label noise, in place of the data of a web search engine."""
    return datasets.make_ranking(n_queries, n_docs, n_features, n_grades=5, split=_SPLIT, random_state=0)


def first_folds(data: Mapping[str, Any]) -> dict[str, Fold]:
    """Return one fold for each data set: the first where it is a list.

    Examples
    --------
    >>> fold = noisy(10, 5, 3)
    >>> first_folds({"mine": [fold, None]})["mine"] is fold
    True
    """
    return {name: folds[0] if isinstance(folds, (list, tuple)) else folds for name, folds in data.items()}


def some_queries(part: Dataset, n_queries: int) -> Dataset:
    """Return the documents of the first queries.

    Examples
    --------
    >>> some_queries(Dataset(np.eye(3), np.zeros(3), np.array([5, 4, 5])), 1).qid
    array([5, 5])
    """
    ids, first = np.unique(part.qid, return_index=True)
    rows = np.flatnonzero(np.isin(part.qid, ids[np.argsort(first)][:n_queries]))
    return Dataset(part.X[rows], part.y[rows], part.qid[rows])


def described(folds: Mapping[str, Fold]) -> str:
    """Return the names and sizes of data sets."""
    return "; ".join(
        f"{name} ({len(np.unique(fold.train.qid))} training queries, {len(np.unique(fold.test.qid))} test queries, "
        f"{fold.train.X.shape[1]} features)"
        for name, fold in folds.items()
    )


def claim(statement: str, holds: Any, evidence: str) -> str:
    """Return whether a statement of the paper holds here, with the numbers that decide.

    Examples
    --------
    >>> claim("SPSA:4 is below RankNet", 0.8 < 0.7, "0.800, 0.700")
    'SPSA:4 is below RankNet: does not hold here (0.800, 0.700).'
    """
    return f"{statement}: {'holds' if holds else 'does not hold'} here ({evidence})."
