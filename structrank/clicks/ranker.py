"""Base class of learners that score (query, url)."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank._support.typing import ArrayLike
from structrank.clicks.ids import as_id_array, dense_pairs
from structrank.datasets.queries import group_by_query
from structrank.models.ranker import Ranker, ranks_within


class ClickRanker(Ranker):
    """Base class of learners whose ``predict(queries, urls)`` returns one score per entry; higher is better.

    Subclasses override `predict`, or define ``_scores(query, url)`` on dense integers and set `queries_` and `urls_`.

    Examples
    --------
    >>> import numpy as np
    >>> class ByLength(ClickRanker):
    ...     def predict(self, queries, urls):
    ...         return np.array([-len(url) for url in urls])
    >>> ByLength().rank(["news", "news", "maps"], ["long.org", "b.org", "c.org"])
    array([2, 1, 1])
    """

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Score urls for queries; higher is better.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array
            nan, with a warning, for ids that are not in the log.
        """
        check_is_fitted(self)
        query, url = dense_pairs(self.queries_, self.urls_, queries, urls)
        known = (query >= 0) & (url >= 0)
        if not known.all():
            examples = [ids.values[:1].tolist()[0] for ids in (self.queries_, self.urls_)]
            warnings.warn(
                f"{(~known).sum()} of {known.shape[0]} entries have a query or url that the model does not have "
                f"({(query < 0).sum()} queries, {(url < 0).sum()} urls); their scores are nan. Examples of known ids: query "
                f"{examples[0]!r}, url {examples[1]!r}.",
                checks.StructRankWarning,
                stacklevel=2,
            )
        scores = np.full(known.shape[0], np.nan)
        scores[known] = self._scores(query[known], url[known])
        return scores

    def rank(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:  # type: ignore[override]
        """Rank urls within their queries.

        Parameters
        ----------
        queries, urls
            As for `predict`.

        Returns
        -------
        (n,) array of int
            Rank of each entry within its query, 1 is best; ties are ranked in order of entry.
        """
        scores = self.predict(queries, urls)
        if not scores.shape[0]:
            return np.empty(0, dtype=np.int64)
        return ranks_within(scores, group_by_query(as_id_array(queries, "queries"), scores.shape[0], against="urls"))
