"""Diagnostics of lambdas by boosting round: Figures 2 and 3 of the WWW 2011 paper, as data and as plots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structrank._kernels.lambdas import add_lambdas
from structrank._support import checks
from structrank._support.typing import ArrayLike, DataFrame, Matrix
from structrank.learners.mart import LambdaMART, check_label_sources
from structrank.learners.objectives import CrossEntropy, Graded
from structrank.metrics import Measure
from structrank.training.data import RankingData


def lambda_agreement(
    model: LambdaMART,
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    labels: dict[str, Any] | None = None,
    objective: Graded | None = None,
    every: int = 1,
) -> DataFrame:
    """Compute the share of documents whose lambdas of a lower tier agree with the lambdas of the first: Figure 2.

    A document agrees if both lambdas have the same sign or that of the lower tier is 0. Each lower tier is evaluated twice:
    over all pairs of its labels, with missing labels counted as 0, and over the pairs that `Graded` trains on: pairs with
    labels in the tier and equal labels in the tiers above.

    Parameters
    ----------
    model : LambdaMART
        Trained; lambdas are computed at its scores after each round.
    X, y, qid
        As for ``model.fit``.
    labels : dict
        Mapping from names of label sources to columns, as for ``model.fit``.
    objective : Graded, default None
        The tiers; None for ``Graded()``, clicks below grades. The model may have been trained for another objective.
    every : int, default 1
        Interval between the rounds that are evaluated.

    Returns
    -------
    pandas.DataFrame
        Index "round", one column per lower tier and kind of pairs, with shares of documents from 0 to 1.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaMART
    >>> train = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=5, random_state=0).train
    >>> clicks = datasets.make_click_labels(train.X, train.y, train.qid, random_state=0)
    >>> model = LambdaMART(n_estimators=10).fit(train.X, train.y, qid=train.qid)
    >>> shares = lambda_agreement(model, train.X, train.y, train.qid, {"clicks": clicks})
    >>> shares.columns.tolist(), len(shares)
    (['clicks, all pairs', 'clicks, pairs equal above'], 10)
    """
    import pandas as pd

    objective = Graded() if objective is None else objective
    if not isinstance(objective, Graded):
        raise ValueError(f"objective={objective!r} is not valid: expected a Graded objective.")
    data = RankingData(X, y, qid)
    rows, indptr = data.grouping.rows, data.grouping.indptr
    found = {None: data.labels, **check_label_sources(labels, objective, data)}
    found = {name: values[rows] for name, values in found.items()}
    terms = objective.terms(model.n_estimators)
    first = [(term.plan(found, indptr), term.weights) for term in terms if term.source is None]
    lower = {}
    for term in terms:
        if term.source is not None:
            known = {**found, term.source: np.nan_to_num(found[term.source])}
            lower[f"{term.source}, all pairs"] = replace(term, above=()).plan(known, indptr)
            lower[f"{term.source}, pairs equal above"] = term.plan(found, indptr)
    shares = {}
    for number, scores in _stages(model, X, every, qid):
        direction = np.sign(_lambdas([(plan, weights[number - 1]) for plan, weights in first], scores[rows]))
        below = {name: np.sign(_lambdas([(plan, 1.0)], scores[rows])) for name, plan in lower.items()}
        shares[number] = {name: np.mean((signs == 0) | (signs == direction)) for name, signs in below.items()}
    return pd.DataFrame.from_dict(shares, orient="index").rename_axis("round")


def lambda_contribution(
    model: LambdaMART,
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measure: str | Measure = "ndcg",
    high: float | None = None,
    every: int = 1,
) -> DataFrame:
    r"""Compute the share of each grade in the forces on highly relevant documents: Figure 3(a), equation 11.

    .. math:: \frac1H \sum_{j\ \text{high}} \frac{\sum_{k: y_k = v} |\lambda_{jk}|}{\sum_k |\lambda_{jk}|}

    for each grade v, over the H documents of high grade with a non-zero force.

    Parameters
    ----------
    model : LambdaMART
        Trained; lambdas are computed at its scores after each round.
    X, y, qid
        As for ``model.fit``.
    measure : str or Measure, default "ndcg"
        Measure of the `CrossEntropy` lambdas.
    high : float, default None
        Lowest label that counts as highly relevant; None for the second largest.
    every : int, default 1
        Interval between the rounds that are evaluated.

    Returns
    -------
    pandas.DataFrame
        Index "round", one column per grade; rows sum to 1.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaMART
    >>> train = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=5, random_state=0).train
    >>> model = LambdaMART(n_estimators=10).fit(train.X, train.y, qid=train.qid)
    >>> shares = lambda_contribution(model, train.X, train.y, train.qid)
    >>> shares.columns.tolist(), bool(np.allclose(shares.sum(axis=1), 1))
    ([0.0, 1.0, 2.0, 3.0, 4.0], True)
    """
    import pandas as pd

    data = RankingData(X, y, qid)
    rows, indptr = data.grouping.rows, data.grouping.indptr
    labels = data.labels[rows]
    grades = np.unique(labels)
    if grades.shape[0] < 2:
        raise ValueError(f"every label in y is {grades[0]:g}; expected at least two grades.")
    (term,) = CrossEntropy(measure).terms(1)
    high = grades[-2] if high is None else checks.check_number("high", high)
    if high > grades[-1]:
        raise ValueError(f"high={high:g} is above every label; the largest is {grades[-1]:g}.")

    plans = {}
    for own in grades[grades >= high]:
        for other in grades[grades != own]:
            # The two grades share a group, so they form all pairs; the other documents keep their ranks.
            apart = np.where(np.isin(labels, (own, other)), -1.0, labels)
            plans[own, other] = replace(term, above=("apart",)).plan({None: labels, "apart": apart}, indptr)
    shares = {}
    for number, scores in _stages(model, X, every, qid):
        forces = np.zeros((grades.shape[0], rows.shape[0]))
        for (own, other), plan in plans.items():
            forces[grades == other] += np.where(labels == own, np.abs(_lambdas([(plan, 1.0)], scores[rows])), 0.0)
        total = forces.sum(axis=0)
        shares[number] = dict(zip(grades, (forces[:, total > 0] / total[total > 0]).mean(axis=1), strict=True))
    return pd.DataFrame.from_dict(shares, orient="index").rename_axis("round")


def labels_at_top(
    model: LambdaMART, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, k: int = 3, every: int = 1
) -> DataFrame:
    """Compute the share of each grade in the first k ranks: Figure 3(b).

    Parameters
    ----------
    model : LambdaMART
        Trained.
    X, y, qid
        As for ``model.fit``.
    k : int, default 3
    every : int, default 1
        Interval between the rounds that are evaluated.

    Returns
    -------
    pandas.DataFrame
        Index "round", one column per grade; rows sum to 1.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaMART
    >>> train = datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=5, random_state=0).train
    >>> model = LambdaMART(n_estimators=10).fit(train.X, train.y, qid=train.qid)
    >>> shares = labels_at_top(model, train.X, train.y, train.qid, every=5)
    >>> shares.index.tolist(), bool(shares.loc[10, 4] > shares.loc[10, 1])
    ([1, 6, 10], True)
    """
    import pandas as pd

    k = checks.check_number("k", k, at_least=1, integer=True)
    data = RankingData(X, y, qid)
    query = data.grouping.query_of_row()
    rank = np.arange(query.shape[0]) - np.repeat(data.grouping.indptr[:-1], data.grouping.sizes)
    grades, classes = np.unique(data.labels, return_inverse=True)
    shares = {}
    for number, scores in _stages(model, X, every, qid):
        top = np.lexsort((-scores, query))[rank < k]
        counts = np.bincount(classes[top], minlength=grades.shape[0])
        shares[number] = dict(zip(grades, counts / counts.sum(), strict=True))
    return pd.DataFrame.from_dict(shares, orient="index").rename_axis("round")


def _stages(model, X, every, qid):
    """Yield every `every`-th round number with the scores after it, and the last round."""
    every = checks.check_number("every", every, at_least=1, integer=True)
    for number, scores in enumerate(model.staged_predict(X, qid), start=1):
        if (number - 1) % every == 0 or number == model.best_round_:
            yield number, scores


def _lambdas(weighted_plans, scores):
    lambdas, curvatures = np.zeros(scores.shape[0]), np.zeros(scores.shape[0])
    for plan, weight in weighted_plans:
        add_lambdas(scores, plan, weight, lambdas, curvatures)
    return lambdas
