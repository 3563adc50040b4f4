"""Generated ranking data in place of private data, and the sentences that compare a statement with its outcome."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from structrank import datasets
from structrank.datasets.containers import Dataset, Fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from structrank.learners import LambdaRank, RankNet

__all__ = ["described", "first_folds", "sentences", "some_queries", "train_with_rates"]

_SPLIT = (0.4, 0.2, 0.4)  # 10K, 5K and 10K queries in both papers on LambdaRank


# "artificial" as the papers make it: graded by a random cubic polynomial, without noise; "noisy", with five grades, in place of
# the data of a web search engine.
_MAKE: dict[str, Any] = {
    "artificial": datasets.make_polynomial_ranking,
    "noisy": functools.partial(datasets.make_ranking, n_grades=5),
}


def first_folds(
    data: Mapping[str, Any] | None, names: Iterable[str] = (), size: tuple[int, ...] = (), random_state: int = 0
) -> dict[str, Fold]:
    """Return one fold for each data set, the first where it is a list; without data, generated ones.

    Parameters
    ----------
    data : dict or None
    names : iterable of {"artificial", "noisy"}
        Data to generate.
    size : tuple of int
        Queries, documents a query and features of generated data.
    random_state : int, default 0

    Examples
    --------
    >>> fold = first_folds(None, ["noisy"], (10, 5, 3))["noisy"]
    >>> first_folds({"mine": [fold, None]})["mine"] is fold
    True
    """
    if data is None:
        return {name: _MAKE[name](*size, split=_SPLIT, random_state=random_state) for name in names}
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


def train_with_rates(
    ranker: LambdaRank | RankNet, rates: Iterable[float], part: Dataset, validation: Dataset | None, start: Any = None
) -> LambdaRank | RankNet:
    """Train by gradient steps, as both papers on LambdaRank do, with each learning rate; return the best model.

    Parameters
    ----------
    ranker : LambdaRank or RankNet
        Not modified.
    rates : iterable of float
    part : Dataset
        Training queries.
    validation : Dataset or None
        Queries whose measure chooses the epoch and the rate; None for the training queries.
    start : array, default None
        Initial weights, see ``fit`` of the ranker.

    Examples
    --------
    >>> from structrank.learners import LambdaRank
    >>> fold = first_folds(None, ["noisy"], (20, 5, 3))["noisy"]
    >>> ranker = LambdaRank("map", hidden_units=0, max_epochs=5)
    >>> train_with_rates(ranker, [0.001, 0.01], fold.train, fold.validation).optimizer
    'sgd'
    """
    judge = part if validation is None else validation
    models = [clone(ranker).set_params(optimizer="sgd", learning_rate=rate) for rate in rates]
    for model in models:
        model.fit(part.X, part.y, qid=part.qid, validation=validation, start=start)
    return max(models, key=lambda model: model.score(judge.X, judge.y, qid=judge.qid))


def described(folds: Mapping[str, Fold]) -> str:
    """Return the names and sizes of data sets."""
    return "; ".join(
        f"{name} ({len(np.unique(fold.train.qid))} training queries, {len(np.unique(fold.test.qid))} test queries, "
        f"{fold.train.X.shape[1]} features)"
        for name, fold in folds.items()
    )


def sentences(outcomes: Mapping[str, Mapping[str, tuple[Any, str]]]) -> list[str]:
    """Return a sentence for each statement of a paper: on which data it holds here, and the numbers that decide.

    Parameters
    ----------
    outcomes : dict
        From statements to dicts from data sets to (whether it holds, the numbers).

    Examples
    --------
    >>> sentences({"a > b": {"web": (True, "0.8, 0.7"), "news": (False, "0.6, 0.7")}})
    ['a > b: holds on web (0.8, 0.7); does not hold on news (0.6, 0.7).']
    """
    texts = []
    for statement, cases in outcomes.items():
        parts = []
        for verb, wanted in (("holds", True), ("does not hold", False)):
            named = [f"{name} ({evidence})" for name, (holds, evidence) in cases.items() if bool(holds) == wanted]
            parts += [f"{verb} on {', '.join(named)}"] if named else []
        texts.append(f"{statement}: {'; '.join(parts)}.")
    return texts
