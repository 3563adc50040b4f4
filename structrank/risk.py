"""R(w) over a data set: the averaged loss-augmented maximum, as the cutting-plane driver sees it."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from structrank._kernels.feature_maps import add_in_row_order
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
        return f"{self.criterion.name} ({self.feature_map.name})"


@dataclass(frozen=True)
class _Block:
    """Whole queries that are worked on together: numbers of its first and last query, places of its documents."""

    queries: slice
    docs: slice
    starts: np.ndarray


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
        self.n_features = data.n_features
        self._n_threads = n_threads
        self._pool = None
        self._select_queries(relevant_from, query_weight)
        lengths = np.diff(self._starts)
        self.median_length = int(np.median(lengths))
        longest = int(lengths.max())
        self._oracles = [part.make_oracle(part.criterion, part.feature_map, longest) for part in parts]
        separate = len(parts) > 1 and slack == "separate"
        self._slots_per_query = len(parts) if separate else 1
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
                f"none of the {grouping.n_queries} queries has {wanted}, so there is nothing to learn from. "
                "Check qid, the labels and relevant_from."
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
        row_bytes = self.n_features * 8
        if hasattr(self.data.X, "nnz"):
            row_bytes = max(1, 12 * self.data.X.nnz // self.data.X.shape[0])
        rows_per_block = max(1, _BLOCK_BYTES // row_bytes)
        blocks = []
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(self._starts, self._starts[first] + rows_per_block, side="right")) - 1
            last = min(max(last, first + 1), self.n_queries)
            docs = slice(int(self._starts[first]), int(self._starts[last]))
            blocks.append(_Block(slice(first, last), docs, self._starts[first : last + 1] - docs.start))
            self._order[docs] -= docs.start
            first = last
        bounds = np.linspace(0, len(blocks), min(len(blocks), _MOST_CHUNKS) + 1).astype(int)
        return [blocks[low:high] for low, high in itertools.pairwise(bounds)]

    def alone(self, part):
        """Give the risk of one part only, over the same queries, with one slack."""
        other = object.__new__(Risk)
        other.__dict__.update(self.__dict__)
        number = self.parts.index(part)
        other.parts, other._oracles = [part], [self._oracles[number]]
        other.formulation, other.weights = "one-slack", np.ones(1)
        other._slots_per_query, other._part_weights = 1, [1.0]
        return other

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
            results = self._pool.map(self._chunk_plane, self._chunks, [w] * len(self._chunks))
        else:
            results = (self._chunk_plane(chunk, w) for chunk in self._chunks)
        slope = np.zeros((self.weights.shape[0], self.n_features))
        offset = np.zeros(self.weights.shape[0])
        value = np.zeros(self.weights.shape[0])
        seconds = np.zeros(2)
        started = time.perf_counter()
        for slots, chunk_slope, chunk_offset, chunk_value, chunk_seconds in results:
            slope[slots] += chunk_slope
            offset[slots] += chunk_offset
            value[slots] += chunk_value
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
        """Sum the planes of a chunk's queries; gives the slots they belong to, slopes, offsets, values and times."""
        first, last = chunk[0].queries.start, chunk[-1].queries.stop
        one_slack = self.formulation == "one-slack"
        if one_slack:
            slots = slice(0, 1)
            n_slots = 1
        else:
            slots = np.concatenate(
                [np.arange(first, last) + number * self.n_queries for number in range(self._slots_per_query)]
            )
            n_slots = slots.shape[0]
        slope = np.zeros((n_slots, self.n_features))
        offset, value = np.zeros(n_slots), np.zeros(n_slots)
        scoring = oracle_time = 0.0
        for block in chunk:
            started = time.perf_counter()
            features = self.data.block(self._rows[block.docs])
            scores = np.empty(block.docs.stop - block.docs.start)
            features.scores(w, scores)
            scored = time.perf_counter()
            queries = Queries.sort(
                scores, block.starts, self._n_good[block.queries], self._order[block.docs],
                None if self._labels is None else self._labels[block.docs],
            )  # fmt: skip
            found = [oracle(queries) for oracle in self._oracles]
            factors = self._factors(found, block, one_slack)
            targets = []
            if one_slack:
                targets.append((range(len(found)), np.zeros(block.starts.shape[0] - 1, dtype=np.int64)))
            else:
                local = np.arange(block.queries.start, block.queries.stop) - first
                for number in range(self._slots_per_query):
                    used = range(len(found)) if self._slots_per_query == 1 else [number]
                    targets.append((used, local + number * (last - first)))
            summed = []
            for used, target in targets:
                coefficients = np.zeros(scores.shape[0])
                for number in used:
                    add_in_row_order(
                        found[number].coefficients, queries.order, block.starts, -factors[number], coefficients
                    )
                    np.add.at(offset, target, factors[number] * found[number].losses)
                    np.add.at(value, target, factors[number] * found[number].values)
                summed.append((coefficients, target))
            judged = time.perf_counter()
            for coefficients, target in summed:
                features.add_slopes(coefficients, block.starts, target, slope)
            oracle_time += judged - scored
            scoring += scored - started + time.perf_counter() - judged
        return slots, slope, offset, value, np.array([scoring, oracle_time])

    def _factors(self, found, block, one_slack):
        """Give, for each part, the factor with which each query's plane enters its slot."""
        n = block.starts.shape[0] - 1
        base = self._query_weights[block.queries] if one_slack else np.ones(n)
        if len(found) == 1:
            return [base]
        if self.slack == "shared":
            chosen = np.argmax([violated.values for violated in found], axis=0)
            return [np.where(chosen == number, base, 0.0) for number in range(len(found))]
        return [base * weight for weight in self._part_weights] if one_slack else [base] * len(found)
