"""RandomWalkRanker: relevance from random walks on the click graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse
import scipy.stats

from structrank._support import checks
from structrank._support.saveable import record, saveable
from structrank._support.threads import Threads
from structrank.clicks import _kernels as kernels
from structrank.clicks.counts import ClickCounts
from structrank.clicks.ids import check_loaded_ids
from structrank.clicks.log import ClickLog
from structrank.clicks.ranker import ClickRanker
from structrank.clicks.stream import click_counts

_MOST_STEPS = 10_000  # a walk visits the whole graph in each step; the papers take 11 and 101
_MAX_LOST = 0.01  # truncated fraction of a walk above which `predict` warns


@record
@dataclass(frozen=True, eq=False)
class ClickGraph:
    """Bipartite graph of queries and clicked urls; the weight of an edge is its number of clicks."""

    indptr: np.ndarray  # (n_queries + 1,) int64; query i has the edges ``indptr[i]`` to ``indptr[i + 1]``
    url: np.ndarray  # (n_edges,) int32
    clicks: np.ndarray  # (n_edges,) float64
    n_urls: int

    def check(self, n_queries, n_urls):
        """Raise unless this is a graph of these numbers of queries and urls, with positive numbers of clicks."""
        checks.check_array("graph_.indptr", self.indptr, "i", (n_queries + 1,))
        checks.check_array("graph_.url", self.url, "i", np.shape(self.clicks))
        checks.check_array("graph_.clicks", self.clicks, "f", np.shape(self.url)[:1])
        if self.clicks.dtype != np.float64:
            raise ValueError(f"graph_.clicks has the type {self.clicks.dtype}; expected float64")
        if self.n_urls != n_urls:
            raise ValueError(f"graph_ has {self.n_urls} urls; expected {n_urls}, as in urls_")
        checks.check_magnitudes("graph_.clicks", self.clicks, *checks.WEIGHTS)
        if np.any(self.clicks < 0):
            raise ValueError(f"graph_.clicks has {self.clicks.min()}; expected positive numbers")
        checks.check_sparse(self._matrix, "graph_")

    @cached_property
    def _matrix(self):
        return scipy.sparse.csr_matrix((self.clicks, self.url, self.indptr), shape=(self.indptr.size - 1, self.n_urls))

    @cached_property
    def sides(self):
        """The edges by query and by url, for the kernel."""
        by_node = (self._matrix, 1), (self._matrix.T.tocsr(), 0)
        return [
            kernels.Side(
                edges.indptr.astype(np.int64), edges.indices.astype(np.int64), edges.data, self._matrix.sum(axis=axis).A1
            )
            for edges, axis in by_node
        ]


@saveable
@dataclass(eq=False, repr=False)
class RandomWalkRanker(ClickRanker):
    r"""Score (query, url) by a random walk on the click graph (Craswell and Szummer, SIGIR 2007).

    Queries and urls are nodes, and a query has C_qu clicks on a url. At each step the walk stays at its node with
    probability s, and otherwise moves to a neighbour with probability proportional to the clicks:

    .. math:: A = s I + (1 - s) D^{-1} \begin{pmatrix} 0 & C \\ C^T & 0 \end{pmatrix}

    where D is the diagonal matrix of the clicks of each node. After t steps

    - forward: the score is [A^t]_qu, the probability that a walk from the query ends at the url;
    - backward: the score is [A^t]_uq / sum_v [A^t]_vq, the probability that a walk that ended at the query started at the
      url, if all start nodes are equally likely.

    The score is 0 for urls that the walk does not reach.

    Parameters
    ----------
    direction : {"backward", "forward"}, default "backward"
    steps : int, default 11
        t, from 1 to 10,000.
    self_transition : float, default 0.9
        s, at least 0 and below 1.
    tol : float, default 1e-7
        Truncation threshold: a walk ends at a node where its probability per click of the node is at most `tol`, so that a
        move visits at most 1 / tol edges. 0 is exact. `predict` warns if over 1 % of a walk is truncated.
    n_jobs : int or None, default None
        Threads: None is 1, -1 all cores. Scores are bit-identical for any `n_jobs`.

    Attributes
    ----------
    queries_, urls_ : Ids
    graph_ : ClickGraph

    See Also
    --------
    HybridRanker : Combines a random walk with latent factors.

    Examples
    --------
    >>> from structrank.clicks import ClickLog, RandomWalkRanker
    >>> log = ClickLog.from_sessions([("news", ["a.org", "b.org"], [0, 1]), ("headlines", ["b.org", "c.org"], [0])])
    >>> model = RandomWalkRanker(direction="forward", steps=3).fit(log)
    >>> model.predict(["headlines"] * 3, ["a.org", "b.org", "c.org"]).round(5).tolist()  # a.org is reached through news
    [0.00025, 0.24375, 0.0]
    """

    direction: str = "backward"
    steps: int = 11
    self_transition: float = 0.9
    tol: float = 1e-7
    n_jobs: int | None = None

    def fit(self, log: ClickLog | Iterable | ClickCounts) -> Self:
        """Build the click graph.

        Parameters
        ----------
        log : ClickLog, stream of its parts, or ClickCounts
        """
        self._check_parameters()
        counts = click_counts(log)
        clicks = counts.clicks
        if not clicks.nnz:
            raise ValueError("the log has no clicks, so the click graph is empty.")
        self.queries_, self.urls_ = counts.queries, counts.urls
        self.graph_ = ClickGraph(clicks.indptr.astype(np.int64), clicks.indices, clicks.data, clicks.shape[1])
        return self

    def _scores(self, query, url):
        """Score dense integers (query, url); each distinct query takes one walk."""
        self._check_parameters()
        order = np.argsort(query, kind="stable")
        starts, first = np.unique(query[order], return_index=True)
        indptr = np.append(first, query.shape[0])
        url = url[order]
        found, lost = np.empty(query.shape[0]), np.empty(starts.shape[0])
        probabilities = scipy.stats.binom.pmf(np.arange(self.steps + 1), self.steps, 1.0 - self.self_transition)

        def walk(part):
            own = slice(indptr[part.start], indptr[part.stop])
            bounds = indptr[part.start : part.stop + 1] - indptr[part.start]
            settings = probabilities, float(self.tol), self.direction == "forward"
            kernels.walk_scores(starts[part], bounds, url[own], *settings, *self.graph_.sides, found[own], lost[part])

        threads = max(1, min(checks.n_threads(self.n_jobs), starts.shape[0]))
        bounds = np.linspace(0, starts.shape[0], threads + 1).astype(int).tolist()
        parts = [slice(low, high) for low, high in pairwise(bounds)]
        with Threads(threads) as pool:
            pool.map(walk, parts)
        n_truncated = int((lost > _MAX_LOST).sum())
        if n_truncated:
            text = (
                f"tol={self.tol:g} truncates over {_MAX_LOST:.0%} (up to {lost.max():.0%}) of the walk of {n_truncated} of "
                f"{starts.shape[0]} queries, at nodes with many clicks; their scores are inaccurate. Decrease tol; 0 is exact."
            )
            warnings.warn(text, checks.StructRankWarning, stacklevel=3)
        scores = np.empty_like(found)
        scores[order] = found
        return scores

    def check_loaded(self):
        """Raise unless the graph of a loaded model has the nodes of its ids: the kernel does not check bounds."""
        super().check_loaded()
        self._check_parameters()
        n_queries, n_urls = (len(check_loaded_ids(self, name)) for name in ("queries_", "urls_"))
        checks.check_fitted_attribute(self, "graph_", ClickGraph).check(n_queries, n_urls)

    def _check_parameters(self):
        checks.check_choice("direction", self.direction, ("backward", "forward"))
        checks.check_number("steps", self.steps, at_least=1, at_most=_MOST_STEPS, integer=True)
        s = checks.check_number("self_transition", self.self_transition, at_least=0)
        if s >= 1:
            raise ValueError(f"self_transition={self.self_transition!r} is not valid: at 1 the walk never leaves the query.")
        if s == 0 and self.steps % 2 == 0:
            raise ValueError(
                f"self_transition=0 with steps={self.steps}: every walk ends on a query; use an odd number of steps."
            )
        checks.check_number("tol", self.tol, at_least=0)
        checks.n_threads(self.n_jobs)
