"""Baselines: click-through rate and mean position."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank._support.saveable import saveable
from structrank._support.typing import ArrayLike
from structrank.clicks.counts import ClickCounts
from structrank.clicks.ids import check_loaded_ids, dense_pairs
from structrank.clicks.log import ClickLog
from structrank.clicks.ranker import ClickRanker
from structrank.clicks.stream import click_counts


class _CountRatio(ClickRanker):
    """Scorer by a ratio of counts; subclasses define ``_numerator(counts)``."""

    def fit(self, log: ClickLog | Iterable | ClickCounts) -> Self:
        """Count clicks and impressions.

        Parameters
        ----------
        log : ClickLog, stream of its parts, or ClickCounts
        """
        self.counts_ = click_counts(log)
        return self

    def check_loaded(self):
        """Raise unless the counts of a loaded model are matrices over its ids."""
        super().check_loaded()
        counts = checks.check_fitted_attribute(self, "counts_", ClickCounts)
        shape = tuple(len(check_loaded_ids(counts, name)) for name in ("queries", "urls"))
        for name in ("clicks", "impressions", "positions"):
            matrix = checks.check_fitted_attribute(counts, name, scipy.sparse.csr_matrix)
            if matrix.shape != shape:
                raise ValueError(f"{name} has shape {matrix.shape}; expected {shape}, one row per query, one column per url")
            if not np.all((matrix.data >= 0) & (matrix.data < np.inf)):
                raise ValueError(f"{name} has an entry that is no count: a negative number, nan or infinity")
        for less, more in (("clicks", "impressions"), ("impressions", "positions")):
            if (getattr(counts, less) > getattr(counts, more)).nnz:
                raise ValueError(f"{less} has an entry above that of {more}")

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Score urls for queries, see `ClickRanker.predict`; nan, without a warning, if a url was not shown for a query."""
        check_is_fitted(self)
        counts = self.counts_
        query, url = dense_pairs(counts.queries, counts.urls, queries, urls)
        known = (query >= 0) & (url >= 0)
        scores = np.full(query.shape[0], np.nan)
        if known.any():
            place = query[known], url[known]
            impressions, numerator = _entries(counts.impressions, *place), _entries(self._numerator(counts), *place)
            with np.errstate(invalid="ignore"):
                scores[known] = numerator / impressions
        return scores


def _entries(matrix, rows, columns):
    return np.asarray(matrix[rows, columns]).ravel()


@saveable
class ClickThroughRate(_CountRatio):
    """Score by clicks / impressions of the url for the query.

    The rate is biased towards urls shown at high ranks, and is extreme for urls with few impressions.

    Attributes
    ----------
    counts_ : ClickCounts

    Examples
    --------
    >>> from structrank.clicks import ClickLog
    >>> log = ClickLog.from_sessions([("q", ["a", "b"], [0]), ("q", ["a", "b"], [0, 1]), ("q", ["a", "c"], [])])
    >>> ClickThroughRate().fit(log).predict(["q", "q", "q", "r"], ["a", "b", "d", "a"]).round(2)
    array([0.67, 0.5 ,  nan,  nan])
    """

    def _numerator(self, counts):
        return counts.clicks


@saveable
class MeanPosition(_CountRatio):
    """Score by minus the mean position, from 1, at which the url was shown for the query: the order in the log.

    Attributes
    ----------
    counts_ : ClickCounts

    Examples
    --------
    >>> from structrank.clicks import ClickLog
    >>> log = ClickLog.from_sessions([("q", ["a", "b"], [0]), ("q", ["b", "a"], [])])
    >>> MeanPosition().fit(log).predict(["q", "q"], ["a", "b"])
    array([-1.5, -1.5])
    """

    def _numerator(self, counts):
        return -counts.positions
