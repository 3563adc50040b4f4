"""RandomWalkRanker: relevance by walks on the graph of queries and the urls clicked for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse
import scipy.stats
from sklearn.utils.validation import check_is_fitted

from structrank import _validation
from structrank._kernels import clicks as kernels
from structrank._validation import n_threads
from structrank.clicks.collaborative import known_pairs
from structrank.clicks.counts import ClickCounts, click_counts
from structrank.clicks.log import ClickLog
from structrank.clicks.ranker import ClickRanker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# A walk of which more than this was given up is worth a warning.
_MOST_LOST = 0.01


@dataclass(frozen=True, eq=False)
class ClickGraph:
    """The graph whose edges join a query to the urls clicked for it, each as heavy as its clicks.

    Attributes
    ----------
    indptr : (n_queries + 1,) array of int64
        Query i has the edges ``indptr[i]`` to ``indptr[i + 1]``.
    url : (n_edges,) array of int32
    clicks : (n_edges,) array of float64
    n_urls : int

    Examples
    --------
    >>> graph = ClickGraph(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 3)
    >>> graph.url_clicks.tolist(), graph.query_clicks.tolist()
    ([1.0, 5.0, 0.0], [3.0, 3.0])
    """

    indptr: np.ndarray
    url: np.ndarray
    clicks: np.ndarray
    n_urls: int

    @cached_property
    def query_clicks(self):
        """Clicks of each query."""
        return np.asarray(self._matrix.sum(axis=1)).ravel()

    @cached_property
    def url_clicks(self):
        """Clicks of each url."""
        return np.asarray(self._matrix.sum(axis=0)).ravel()

    @cached_property
    def _matrix(self):
        matrix = scipy.sparse.csr_matrix((self.clicks, self.url, self.indptr), shape=(self.indptr.size - 1, self.n_urls))
        matrix.check_format(full_check=True)  # compiled code trusts the numbers, which may come from a file
        return matrix

    @cached_property
    def edges(self):
        """What the kernel reads: edges of queries and their clicks, then those of urls."""
        by_url = self._matrix.T.tocsr()
        wide = [array.astype(np.int64, copy=False) for array in (self.indptr, self.url, by_url.indptr, by_url.indices)]
        return (wide[0], wide[1], self.clicks, self.query_clicks, wide[2], wide[3], by_url.data, self.url_clicks)


class RandomWalkRanker(ClickRanker):
    r"""Score (query, url) by a random walk on the click graph (Craswell and Szummer, SIGIR 2007).

    Queries and urls are nodes, and a query has C_qu clicks on a url. At each step the walk stays where it is with probability
    s, and else moves to a neighbour in proportion to the clicks:

    .. math:: A = s I + (1 - s) D^{-1} \begin{pmatrix} 0 & C \\ C^T & 0 \end{pmatrix}

    with D the clicks of each node. After t steps

    - forward: the score is [A^t]_qu, the probability that a walk from the query ends at the url;
    - backward: the score is [A^t]_uq / sum_v [A^t]_vq, the probability that a walk that has ended at the query started at the
      url, all nodes being equally likely to start from.

    Parameters
    ----------
    direction : {"backward", "forward"}, default "backward"
    steps : int, default 11
        t, at least 1.
    self_transition : float, default 0.9
        s, at least 0 and below 1.
    tol : float, default 1e-7
        A walk is not followed further from a node where it is with a probability of no more than this for each click of the
        node: a move then looks at no more than 1 / tol edges. 0 is exact. `predict` warns where over 1 % of a walk is given up.
    n_jobs : int or None, default None
        Threads: None is 1, -1 all cores. The scores do not depend on it.

    Attributes
    ----------
    queries_, urls_ : Ids
    graph_ : ClickGraph

    See Also
    --------
    HybridRanker : A walk together with latent factors.

    Examples
    --------
    >>> from structrank.clicks import ClickLog, RandomWalkRanker
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org"], [0, 1]), ("headlines", ["b.org", "c.org"], [0])])
    >>> model = RandomWalkRanker(direction="forward", steps=3).fit(log)
    >>> model.predict(["headlines"] * 3, ["a.org", "b.org", "c.org"]).round(5).tolist()  # a.org by way of news
    [0.00025, 0.24375, 0.0]
    """

    def __init__(
        self,
        direction: str = "backward",
        steps: int = 11,
        self_transition: float = 0.9,
        tol: float = 1e-7,
        n_jobs: int | None = None,
    ):
        self.direction = direction
        self.steps = steps
        self.self_transition = self_transition
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, log: ClickLog | Iterable | ClickCounts) -> Self:
        """Take in the clicks.

        Parameters
        ----------
        log : ClickLog, stream of its parts, or ClickCounts

        Returns
        -------
        self
        """
        self._check_parameters()
        counts = click_counts(log)
        clicks = counts.clicks
        if not clicks.nnz:
            raise ValueError("the log has no clicks: there is no graph to walk on.")
        self.queries_, self.urls_ = counts.queries, counts.urls
        self.graph_ = ClickGraph(clicks.indptr.astype(np.int64), clicks.indices, clicks.data, clicks.shape[1])
        return self

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Score urls for queries; higher is better. A query is walked from once, however many urls are asked for.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array
            0 where no walk leads; nan, with a warning that counts them, for ids that the log did not have.
        """
        check_is_fitted(self)
        self._check_parameters()
        query, url, known = known_pairs(self.queries_, self.urls_, queries, urls)
        scores = np.full(known.shape[0], np.nan)
        scores[known] = self._scores(query, url)
        return scores

    def _scores(self, query, url):
        """Score by dense numbers."""
        order = np.argsort(query, kind="stable")
        starts, first = np.unique(query[order], return_index=True)
        indptr = np.append(first, query.shape[0])
        url = url[order]
        found, lost = np.empty(query.shape[0]), np.empty(starts.shape[0])
        chances = scipy.stats.binom.pmf(np.arange(self.steps + 1), self.steps, 1.0 - self.self_transition)

        def walk(part):
            own = slice(indptr[part.start], indptr[part.stop])
            bounds = indptr[part.start : part.stop + 1] - indptr[part.start]
            kernels.walk_scores(
                starts[part], bounds, url[own], chances, float(self.tol), self.direction == "forward", *self.graph_.edges,
                found[own], lost[part],
            )  # fmt: skip

        threads = min(n_threads(self.n_jobs), starts.shape[0])
        bounds = np.linspace(0, starts.shape[0], threads + 1).astype(int).tolist()
        parts = [slice(low, high) for low, high in pairwise(bounds)]
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(walk, parts))
        else:
            for part in parts:
                walk(part)
        n_rough = int((lost > _MOST_LOST).sum())
        if n_rough:
            text = (
                f"Of {starts.shape[0]} queries, {n_rough} had over {_MOST_LOST:.0%} of their walk (up to {lost.max():.0%}) "
                f"given up at popular nodes, as tol={self.tol:g} allows; their scores are rough. A smaller tol follows walks "
                "further, 0 is exact."
            )
            warnings.warn(text, _validation.StructRankWarning, stacklevel=3)
        scores = np.empty_like(found)
        scores[order] = found
        return scores

    def _check_parameters(self):
        _validation.check_choice("direction", self.direction, ("backward", "forward"))
        _validation.check_number("steps", self.steps, at_least=1, integer=True)
        s = _validation.check_number("self_transition", self.self_transition, at_least=0)
        if s >= 1:
            raise ValueError(
                f"self_transition={self.self_transition!r} is not valid: at 1 the walk never leaves the query."
            )
        if s == 0 and self.steps % 2 == 0:
            raise ValueError(
                f"self_transition=0 with steps={self.steps}: every walk ends on a query; use an odd number of steps."
            )
        _validation.check_number("tol", self.tol, at_least=0)
        n_threads(self.n_jobs)
