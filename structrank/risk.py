"""R(w) over a data set: the averaged loss-augmented maximum, as the cutting-plane driver sees it."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from structrank._kernels.feature_maps import add_planes
from structrank.oracles import Queries
from structrank.solvers.cutting_plane import Plane

# A block of rows is scored, ranked and summed while it is in the second-level cache, so that X is read from memory once.
_BLOCK_BYTES = 2**21
# The chunks that threads work on are the same for any number of threads, and so is every sum over them.
_MOST_CHUNKS = 32


@dataclass(frozen=True)
class Part:
    """One criterion of the risk.

    Attributes
    ----------
    criterion : Criterion
    feature_map : feature map
    make_oracle : callable
        From `structrank.oracles`.
    weight : float
        C_l / C where slacks are separate.
    """

    criterion: object
    feature_map: object
    make_oracle: object
    weight: float = 1.0

    @property
    def name(self):
        """Criterion and feature map, for people."""
        k = getattr(self.criterion, "k", None)
        return f"{self.criterion.name}{'' if k is None else f'@{k}'} ({self.feature_map.name})"


@dataclass(frozen=True)
class _Block:
    """Whole queries that are worked on together.

    Attributes
    ----------
    queries, docs : slice
        Of all queries, and of all their documents.
    starts : (n_queries + 1,) array
        Where each query's documents start, within the block.
    slots : (slots_per_query, n_queries) array
        Which of its chunk's planes each query adds to.
    """

    queries: slice
    docs: slice
    starts: np.ndarray
    slots: np.ndarray


@dataclass(frozen=True)
class _Chunk:
    """The blocks that one thread works on, and the slacks that its planes belong to."""

    blocks: list
    slacks: np.ndarray | slice
    n_slots: int


class Risk:
    r"""The averaged loss-augmented maximum over all queries with good and bad documents.

    .. math:: R(w) = \sum_q u_q \max_y [w \cdot \phi(x_q, y) - w \cdot \phi(x_q, y^*_q) + \Delta(y^*_q, y)],
              \quad \sum_q u_q = 1

    With several criteria: the largest of their maxima for each query (shared slacks), or the weighted sum of their
    risks (separate slacks).

    Parameters
    ----------
    data : RankingData
    parts : list of Part
    relevant_from : float or None
        Least label of a good document; None takes labels as grades.
    slack : {"separate", "shared"}
    formulation : {"one-slack", "n-slack"}
        One slack and plane for all, or one per query (and criterion, where separate).
    query_weight : {"equal", "pairs"}
        Whether a query counts as 1 or by its number of pairs with different labels; either is multiplied by its weight.
    n_threads : int

    Attributes
    ----------
    weights : (n_slacks,) array
    n_features, n_queries : int
        Queries that count: with good and bad documents (different labels, where graded) and a weight above 0.
    median_length : int
        Documents in a typical query that counts.
    """

    def __init__(
        self, data, parts, relevant_from=1, slack="separate", formulation="one-slack", query_weight="equal", n_threads=1
    ):
        self.data, self.parts, self.slack, self.formulation = data, parts, slack, formulation
        self.relevant_from, self.query_weight = relevant_from, query_weight
        self.n_features = data.n_features
        self._n_threads = n_threads
        self._pool = None
        self._select_queries(relevant_from, query_weight)
        if relevant_from is None:
            for part in parts:
                part.criterion.check_grades(data.labels)
        lengths = np.diff(self._starts)
        self.median_length = int(np.median(lengths))
        longest = int(lengths.max())
        self._oracles = [part.make_oracle(part.criterion, part.feature_map, longest) for part in parts]
        separate = len(parts) > 1 and slack == "separate"
        self._slots_per_query = len(parts) if separate and formulation == "n-slack" else 1
        self._part_weights = [part.weight if separate else 1.0 for part in parts]
        if formulation == "one-slack":
            self.weights = np.ones(1)
        else:
            self.weights = np.outer(self._part_weights[: self._slots_per_query], self._query_weights).reshape(-1)
        self._chunks = self._cut_into_chunks()

    def _select_queries(self, relevant_from, query_weight):
        grouping = self.data.grouping
        labels = self.data.labels[grouping.rows]
        sizes = grouping.sizes
        firsts = grouping.indptr[:-1]
        if relevant_from is None:
            usable = np.maximum.reduceat(labels, firsts) > np.minimum.reduceat(labels, firsts)
            good = np.zeros(labels.shape[0], dtype=bool)
        else:
            good = labels >= relevant_from
            n_good = np.add.reduceat(good, firsts, dtype=np.int64)
            usable = (n_good > 0) & (n_good < sizes)
        usable &= self.data.query_weights > 0
        if not usable.any():
            wanted = (
                "different labels"
                if relevant_from is None
                else (f"both good (label >= {relevant_from:g}) and bad documents")
            )
            raise ValueError(
                f"none of the {grouping.n_queries} queries (n_samples={labels.shape[0]}) has {wanted}: there is nothing to "
                "learn from. Check qid, the labels and relevant_from."
            )  # fmt: skip
        chosen = np.repeat(usable, sizes)
        self.n_queries = int(usable.sum())
        self._rows = grouping.rows if usable.all() else grouping.rows[chosen]
        self._labels = labels[chosen]
        good = good[chosen]
        self._starts = np.concatenate([[0], np.cumsum(sizes[usable])])
        firsts = self._starts[:-1]
        self._n_good = np.add.reduceat(good, firsts, dtype=np.int64)
        weights = self.data.query_weights[usable]
        if query_weight == "pairs":
            weights = weights * self._count_pairs(graded=relevant_from is None)
        self._query_weights = weights / weights.sum()
        # Good documents first; from then on each pass starts from the order of the one before.
        query = np.repeat(np.arange(self.n_queries), np.diff(self._starts))
        self._order = np.argsort(2 * query + ~good, kind="stable").astype(np.int32)
        if relevant_from is not None:
            self._labels = None

    def _count_pairs(self, graded):
        sizes = np.diff(self._starts)
        if not graded:
            return self._n_good * (sizes - self._n_good)
        pairs = np.empty(self.n_queries)
        for q in range(self.n_queries):
            counts = np.unique(self._labels[self._starts[q] : self._starts[q + 1]], return_counts=True)[1]
            pairs[q] = (sizes[q] ** 2 - (counts**2).sum()) / 2
        return pairs

    def _cut_into_chunks(self):
        sparse = scipy.sparse.issparse(self.data.X)
        row_bytes = 12 * self.data.X.nnz // self.data.X.shape[0] if sparse else 8 * self.n_features
        rows_per_block = _BLOCK_BYTES // max(row_bytes, 1)
        firsts = [0]
        while firsts[-1] < self.n_queries:
            end = self._starts[firsts[-1]] + rows_per_block
            firsts.append(max(int(np.searchsorted(self._starts, end, side="right")) - 1, firsts[-1] + 1))
        bounds = np.linspace(0, len(firsts) - 1, min(len(firsts) - 1, _MOST_CHUNKS) + 1).astype(int)
        return [self._chunk(firsts[low : high + 1]) for low, high in itertools.pairwise(bounds)]

    def _chunk(self, firsts):
        """Make a chunk of the blocks that start at the given queries; the last number ends the last block."""
        n_queries = firsts[-1] - firsts[0]
        per_query = np.arange(self._slots_per_query)[:, None]
        one_slack = self.formulation == "one-slack"
        blocks = []
        for first, last in itertools.pairwise(firsts):
            docs = slice(int(self._starts[first]), int(self._starts[last]))
            slots = per_query * n_queries + np.arange(first, last) - firsts[0]
            if one_slack:
                slots = np.zeros((1, last - first), dtype=np.int64)
            blocks.append(_Block(slice(first, last), docs, self._starts[first : last + 1] - docs.start, slots))
            self._order[docs] -= docs.start
        if one_slack:
            return _Chunk(blocks, slice(0, 1), 1)
        slacks = per_query * self.n_queries + np.arange(firsts[0], firsts[-1])
        return _Chunk(blocks, slacks.reshape(-1), slacks.size)

    def alone(self, part):
        """Give the risk of one part only, over the same queries, with one slack and one thread."""
        return Risk(self.data, [part], self.relevant_from, query_weight=self.query_weight)

    def plane(self, w):
        """Evaluate R at w and give a plane (n-slack: one for each slack) that touches it there.

        Parameters
        ----------
        w : (n_features,) array

        Returns
        -------
        Plane
        """
        if self._n_threads > 1 and len(self._chunks) > 1:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._n_threads)
            results = self._pool.map(self._chunk_plane, self._chunks, itertools.repeat(w))
        else:
            results = (self._chunk_plane(chunk, w) for chunk in self._chunks)
        slope = np.zeros((self.weights.shape[0], self.n_features))
        offset = np.zeros(self.weights.shape[0])
        value = np.zeros(self.weights.shape[0])
        seconds = np.zeros(2)
        started = time.perf_counter()
        for chunk, (chunk_slope, chunk_offset, chunk_value, chunk_seconds) in zip(self._chunks, results, strict=True):
            slope[chunk.slacks] += chunk_slope
            offset[chunk.slacks] += chunk_offset
            value[chunk.slacks] += chunk_value
            seconds += chunk_seconds
        # Threads overlap: what the clock on the wall saw is shared out by the time each kind of work took.
        seconds *= (time.perf_counter() - started) / max(seconds.sum(), 1e-12)
        return Plane(slope, offset, value, {"scoring": float(seconds[0]), "oracle": float(seconds[1])})

    def close(self):
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _chunk_plane(self, chunk, w):
        """Sum the planes of a chunk's queries; gives slopes, offsets, values and the seconds in scoring and oracle."""
        slope = np.zeros((chunk.n_slots, self.n_features))
        offset, value = np.zeros(chunk.n_slots), np.zeros(chunk.n_slots)
        seconds = np.zeros(2)
        for block in chunk.blocks:
            started = time.perf_counter()
            features = self.data.block(self._rows[block.docs])
            scores = np.empty(block.docs.stop - block.docs.start)
            features.scores(w, scores)
            scored = time.perf_counter()
            labels = None if self._labels is None else self._labels[block.docs]
            queries = Queries.sort(scores, block.starts, self._n_good[block.queries], self._order[block.docs], labels)
            found = [oracle(queries) for oracle in self._oracles]
            # Parts that share their slots share one read of X.
            coefficients = np.zeros((block.slots.shape[0], scores.shape[0]))
            for number, (violated, factors) in enumerate(zip(found, self._factors(found, block), strict=True)):
                own = min(number, block.slots.shape[0] - 1)
                add_planes(
                    violated.coefficients, violated.losses, violated.values, queries.order, block.starts, factors,
                    block.slots[own], coefficients[own], offset, value,
                )  # fmt: skip
            judged = time.perf_counter()
            for own in range(block.slots.shape[0]):
                features.add_slopes(coefficients[own], block.starts, block.slots[own], slope)
            seconds += (scored - started + time.perf_counter() - judged, judged - scored)
        return slope, offset, value, seconds

    def _factors(self, found, block):
        """Give, for each part, the factor with which each query's plane enters its slot."""
        one_slack = self.formulation == "one-slack"
        base = self._query_weights[block.queries] if one_slack else np.ones(block.slots.shape[1])
        if len(found) == 1:
            return [base]
        if self.slack == "shared":
            chosen = np.argmax([violated.values for violated in found], axis=0)
            return [np.where(chosen == number, base, 0.0) for number in range(len(found))]
        # In n-slack form the weights of the parts are those of their slacks.
        return [base * weight for weight in self._part_weights] if one_slack else [base] * len(found)
