"""Relevance labels from clicks, for learners that rank by features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structrank._support import checks
from structrank._support.typing import ArrayLike
from structrank.clicks.ids import as_id_pairs, dense_pairs
from structrank.clicks.preferences import Preferences
from structrank.clicks.ranker import ClickRanker
from structrank.datasets.queries import group_by_query


def to_labels(
    source: Preferences | ClickRanker | Callable | ArrayLike, queries: ArrayLike, urls: ArrayLike, n_grades: int = 5
) -> np.ndarray:
    """Derive relevance labels from clicks, for example to train `StructRankSVM` or `LambdaMART`.

    Clicks order the urls of a query but do not show how relevant the best of them is, so the labels are relative to the query.
    If n documents of a query have a score, a document that scores higher than b of them has the label ::

        floor(n_grades * b / n)

    Equal scores get equal labels. If all scores of a query are equal, its labels are 0 and carry no training signal.

    Parameters
    ----------
    source : Preferences, scorer, callable or array-like of shape (n_docs,)
        Source of the scores. For preferences, the score is the weighted fraction of comparisons that a url wins, smoothed so
        that a single win does not reach the maximum: ``(wins + 1) / (wins + losses + 2)``. A scorer has ``predict(queries,
        urls)``, as the learners of `structrank.clicks` do; a callable has the same arguments; an array has the scores.
    queries, urls : array-like of shape (n_docs,)
        Ids of the documents, as in the log.
    n_grades : int, default 5
        Labels are 0 .. n_grades - 1, at least 2. For criteria with binary relevance, 2 makes the better half relevant; with
        more grades, set ``relevant_from``.

    Returns
    -------
    (n_docs,) array of float64
        nan for a url without preferences or with a score of nan. Exclude these rows from training.

    Examples
    --------
    >>> from structrank.clicks import preference_pairs
    >>> pairs = preference_pairs([("q", ["a", "b", "c"], [2]), ("q", ["a", "b", "c"], [1])])
    >>> to_labels(pairs, ["q"] * 4, ["a", "b", "c", "d"], n_grades=3)
    array([ 0.,  1.,  2., nan])
    >>> to_labels([0.3, 0.1, 0.3], ["q", "q", "q"], ["a", "b", "c"], n_grades=2)
    array([0., 0., 0.])
    """
    import pandas as pd

    n_grades = checks.check_number("n_grades", n_grades, at_least=2, integer=True)
    query_ids, url_ids = as_id_pairs(queries, urls)
    n_docs = checks.count_rows(query_ids, "queries")
    scores = checks.as_number_column(
        _scores(source, query_ids, url_ids), n_docs, "scores", "numbers, larger is better", against="queries"
    )
    labels, known = np.full(n_docs, np.nan), np.flatnonzero(~np.isnan(scores))
    if known.size:
        grouping = group_by_query(query_ids[known], known.size, against="queries")
        query = grouping.query_of_row()
        n_below = pd.Series(scores[known]).groupby(query).rank("min").to_numpy() - 1  # entries of the query with a lower score
        labels[known] = n_grades * n_below // grouping.sizes[query]
    return labels


def _scores(source, queries, urls):
    if isinstance(source, Preferences):
        return _win_rates(source, queries, urls)
    score = getattr(source, "predict", source)
    return score(queries, urls) if callable(score) else source


def _win_rates(pairs, queries, urls):
    """Return the smoothed fraction of comparisons that each (query, url) wins, nan if it has none."""
    query, url = dense_pairs(pairs.queries, pairs.urls, queries, urls)
    known = (query >= 0) & (url >= 0)
    n_urls = len(pairs.urls)
    first = pairs.query.astype(np.int64) * n_urls
    keys, place = np.unique(np.concatenate([first + pairs.winner, first + pairs.loser]), return_inverse=True)
    wins = np.bincount(place[: len(pairs)], weights=pairs.weight, minlength=keys.size)
    losses = np.bincount(place[len(pairs) :], weights=pairs.weight, minlength=keys.size)
    rates = np.full(query.shape[0], np.nan)
    if keys.size:
        wanted = query * n_urls + url
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        found = known & (keys[place] == wanted)
        rates[found] = ((wins + 1) / (wins + losses + 2))[place[found]]
    return rates
