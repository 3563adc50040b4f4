"""What the learners must beat: the click-through rate, and the order in which urls were shown anyway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank.clicks.counts import ClickCounts, click_counts
from structrank.clicks.ids import dense_pairs
from structrank.clicks.log import ClickLog
from structrank.clicks.ranker import ClickRanker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class _Counted(ClickRanker):
    """Scores that are a ratio of counts; subclasses have ``_numerator(counts)``."""

    def fit(self, log: ClickLog | Iterable | ClickCounts) -> Self:
        """Count.

        Parameters
        ----------
        log : ClickLog, stream of its parts, or ClickCounts

        Returns
        -------
        self
        """
        self.counts_ = click_counts(log)
        return self

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Give scores, higher is better.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array of float64
            nan where the url was never shown for the query.
        """
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


class ClickThroughRate(_Counted):
    """Score by the share of sessions that showed the url for the query and clicked it.

    It takes the position at which a url was shown for its merit, and of few sessions it makes extreme rates.

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


class MeanPosition(_Counted):
    """Score by minus the mean position, from 1, at which the url was shown for the query: the order there was.

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
