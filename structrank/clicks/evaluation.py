"""Agreement of scores with preferences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

import numpy as np

from structrank._support import checks
from structrank._support.typing import ArrayLike
from structrank.clicks.preferences import Preferences
from structrank.clicks.ranker import ClickRanker


@overload
def pair_accuracy(
    pairs: Preferences, scores: ClickRanker | Callable | ArrayLike, per_query: Literal[False] = False
) -> float: ...


@overload
def pair_accuracy(pairs: Preferences, scores: ClickRanker | Callable | ArrayLike, per_query: bool) -> float | np.ndarray: ...


def pair_accuracy(
    pairs: Preferences, scores: ClickRanker | Callable | ArrayLike, per_query: bool = False
) -> float | np.ndarray:
    """Compute the weighted fraction of preferences that scores agree with; ties count half.

    ::

        sum_i weight_i ([s_i(winner) > s_i(loser)] + [s_i(winner) = s_i(loser)] / 2) / sum_i weight_i

    A pair with a score of nan counts as a tie.

    Parameters
    ----------
    pairs : Preferences
    scores : scorer, callable or array-like of shape (n_pairs, 2)
        A scorer has ``predict(queries, urls)``, as the learners of `structrank.clicks` do; a callable takes the same ids and
        returns one score per entry. An array has the scores of winner and loser.
    per_query : bool, default False
        Return one value per query.

    Returns
    -------
    float, or (n_queries,) array
        nan if there are no pairs. Values per query are in the order of ``pairs.queries``.

    Examples
    --------
    >>> from structrank.clicks import preference_pairs
    >>> pairs = preference_pairs([("q", ["a", "b", "c"], [2]), ("r", ["a", "b"], [1])])
    >>> pair_accuracy(pairs, [[2.0, 1.0], [0.0, 0.0], [1.0, 2.0]])
    0.5
    >>> pair_accuracy(pairs, lambda queries, urls: [url == "c" for url in urls], per_query=True)
    array([1. , 0.5])
    """
    if not isinstance(pairs, Preferences):
        raise ValueError(f"pairs is a {type(pairs).__name__}; expected Preferences, as returned by preference_pairs.")
    both = _pair_scores(pairs, scores)
    won = (both[:, 0] > both[:, 1]).astype(np.float64)
    won[(both[:, 0] == both[:, 1]) | np.isnan(both).any(axis=1)] = 0.5
    query = pairs.query if per_query else np.zeros(len(pairs), dtype=np.int64)
    n_values = len(pairs.queries) if per_query else 1
    agreed = np.bincount(query, weights=won * pairs.weight, minlength=n_values)
    total = np.bincount(query, weights=pairs.weight, minlength=n_values)
    values = np.divide(agreed, total, out=np.full(n_values, np.nan), where=total > 0)
    return values if per_query else float(values[0])


def _pair_scores(pairs, scores):
    """Return the scores of winners and losers as an array of shape (n_pairs, 2)."""
    score = getattr(scores, "predict", scores)
    if not callable(score):
        scores = checks.as_array(scores, "scores")
        if scores.shape != (len(pairs), 2):
            raise ValueError(
                f"scores has shape {scores.shape}; expected {(len(pairs), 2)}: the scores of winner and loser of each pair."
            )
        flat = scores.reshape(-1)
    else:
        queries = pairs.queries.values[np.repeat(pairs.query, 2)]
        urls = pairs.urls.values[np.column_stack([pairs.winner, pairs.loser]).reshape(-1)]
        flat = score(queries, urls)
    flat = checks.as_number_column(flat, 2 * len(pairs), "scores", "numbers, larger is better", against="pairs")
    return flat.reshape(-1, 2)
