"""Base class of learners that score (query, url)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structrank.clicks.ids import as_id_array
from structrank.datasets.queries import group_by_query
from structrank.models.ranker import Ranker, ranks_within

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class ClickRanker(Ranker):
    """Base class of learners whose ``predict(queries, urls)`` returns one score per entry; higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> class ByLength(ClickRanker):
    ...     def predict(self, queries, urls):
    ...         return np.array([-len(url) for url in urls])
    >>> ByLength().rank(["news", "news", "maps"], ["long.org", "b.org", "c.org"])
    array([2, 1, 1])
    """

    def rank(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:  # type: ignore[override]
        """Rank urls within their queries.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array of int
            Rank of each entry within its query, 1 is best; ties are ranked in order of entry.
        """
        scores = self.predict(queries, urls)
        if not scores.shape[0]:
            return np.empty(0, dtype=np.int64)
        return ranks_within(scores, group_by_query(as_id_array(queries, "queries"), scores.shape[0], against="urls"))
