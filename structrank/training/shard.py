"""A shard: whole queries of one matrix, and one pass over them.

The training set is one shard, or many: files, or parts on the workers of a cluster. A shard returns `Facts` about its data,
groups its queries by a plan, and then returns planes for one w after another.
"""

from __future__ import annotations

import functools
import itertools
import time
from typing import NamedTuple

import numpy as np
import scipy.sparse

from structrank import oracles
from structrank._kernels import linear, passes, sorting
from structrank._kernels.variances import add_variances
from structrank._support import checks
from structrank._support.compile import address_of
from structrank.training.data import NO_ROWS, kernel_matrix
from structrank.training.scaling import find_large_offsets, sample_columns

# A block of rows is scored, ranked and summed while it is in the second-level cache, so that X is read from memory once.
_BLOCK_BYTES = 2**18
# The chunks that threads work on, and so all sums, are the same for any number of threads. Small data do not justify a second
# thread.
_MOST_CHUNKS = 32
_LEAST_CHUNK_BYTES = 2**22


class Facts(NamedTuple):
    """Sizes and weights of a shard; or a tuple of these of all shards for each.

    Attributes
    ----------
    n_features, n_rows, n_queries : int
        Sizes of the whole shard.
    n_docs : int
        Documents of the usable queries.
    n_entries : int
        Entries of X; stored entries if X is sparse.
    lengths : (n_used,) array of int32
        Documents of each usable query, which has relevant and irrelevant documents (different labels, if graded) and a
        weight above 0.
    total_weight : float
        Weight of the usable queries.
    any_weight : bool
        Whether some query of the shard has a weight above 0.
    sampled_variances : (n_features,) array
        Mean within-query variance of each column over a small sample of the usable queries.
    some_labels : set of float
        The lowest and the highest label of the shard, and a third if there is one.
    """

    n_features: int
    n_rows: int
    n_queries: int
    n_docs: int
    n_entries: int
    lengths: np.ndarray
    total_weight: float
    any_weight: bool
    sampled_variances: np.ndarray
    some_labels: set


class Shard:
    """Whole queries, ready for one pass after another.

    Parameters
    ----------
    source : object
        With ``load() -> RankingData``, and ``matrix()``, which every pass calls, so that the matrix may be read from a file.
    loss : StructuredLoss

    Attributes
    ----------
    facts : Facts
    weights : (n_groups,) array
        Share of each group in the risk, once prepared.
    """

    def __init__(self, source, loss):
        self._source, self._loss = source, loss
        data = source.load()
        self._names = data.column_names, data.name
        self._select_queries(data)
        if scipy.sparse.issparse(data.X):
            n_entries, entry_bytes = data.X.nnz, 12
        else:
            n_entries, entry_bytes = data.X.size, data.X.dtype.itemsize
        self._row_bytes = max(entry_bytes * n_entries // data.X.shape[0], 1)
        lengths = np.diff(self._starts).astype(np.int32)
        variances, suspected = sample_columns(data.X, self._rows, self._starts)
        self._centred = find_large_offsets(data.X, self._rows, self._starts, variances, suspected)
        self._places = np.full(data.n_features if self._centred.size else 0, -1)
        self._places[self._centred] = np.arange(self._centred.size)
        self.facts = Facts(
            data.n_features,
            data.X.shape[0],
            data.grouping.n_queries,
            int(self._starts[-1]),
            n_entries,
            lengths,
            float(self._query_weights.sum()),
            bool(data.query_weights.any()),
            variances,
            _some_labels(data.labels),
        )
        self._sweeps = {}

    def _select_queries(self, data):
        grouping, relevant_from = data.grouping, self._loss.relevant_from
        labels = data.labels if data.rows_in_order else data.labels[grouping.rows]
        sizes, firsts = grouping.sizes, grouping.indptr[:-1]
        if relevant_from is None:
            self._loss.check_labels(data.labels)
            usable = np.maximum.reduceat(labels, firsts) > np.minimum.reduceat(labels, firsts)
            good, n_good = np.zeros(labels.shape[0], dtype=bool), np.zeros(sizes.shape[0], dtype=np.int64)
        else:
            good = labels >= relevant_from
            n_good = np.add.reduceat(good, firsts, dtype=np.int64)
            usable = (n_good > 0) & (n_good < sizes)
        usable &= data.query_weights > 0
        if usable.all():
            self._rows = NO_ROWS if data.rows_in_order else grouping.rows
        else:
            chosen = np.repeat(usable, sizes)
            self._check_finite(data.X, grouping.rows[~chosen])  # no pass will see these
            self._rows, labels, good = grouping.rows[chosen], labels[chosen], good[chosen]
        self._starts = np.concatenate([[0], np.cumsum(sizes[usable])])
        self._n_good = n_good[usable]
        self._labels = labels if relevant_from is None else None
        self._grades = oracles.Grades.of(labels, self._starts) if relevant_from is None else None
        weights = data.query_weights[usable]
        if self._loss.query_weight == "pairs":
            weights = weights * self._count_pairs()
        self._query_weights = weights
        # Relevant documents first; from then on each pass starts from the order of the previous pass.
        if relevant_from is None:
            self._tie_ranks = oracles.ranks_by_label(labels, self._starts).astype(np.int32)
            self._order = (np.arange(labels.shape[0]) - np.repeat(self._starts[:-1], np.diff(self._starts))).astype(np.int32)
        else:
            self._tie_ranks, self._order = np.empty(0, dtype=np.int32), np.empty(labels.shape[0], dtype=np.int32)
            sorting.put_first(good, self._starts, self._n_good, self._order)

    def _check_finite(self, X, rows=None):
        """Raise if X holds nan or infinity; skip the rest of X if all of `rows` are finite."""
        matrix = kernel_matrix(X, 0, rows)
        if rows is not None and matrix is not None:
            zeros = np.empty(rows.shape[0])
            linear.scores(*matrix, 0, np.zeros(X.shape[1]), zeros)
            if not np.isnan(zeros).any():
                return
        checks.check_finite_matrix(X, *self._names)

    def _count_pairs(self):
        sizes = np.diff(self._starts)
        if self._labels is None:
            return self._n_good * (sizes - self._n_good)
        query = np.repeat(np.arange(sizes.shape[0]), sizes)
        first_grade = self._grades.starts[:-1]
        counts = np.bincount(first_grade[query] + self._grades.numbers)
        return (sizes**2 - np.add.reduceat(counts**2, first_grade)) / 2

    def prepare(self, total_weight, longest, n_groups, own_slacks):
        """Form groups of neighbouring queries, each with a slack, and chunks of groups.

        Parameters
        ----------
        total_weight : float
            Weight of the queries of all shards.
        longest : int
            Documents of the longest query of all shards.
        n_groups : int
        own_slacks : bool
            Whether each part has slacks of its own.

        Returns
        -------
        self
        """
        self._longest, self._total_weight = longest, total_weight
        self._kinds = len(self._loss.criteria) if own_slacks else 1
        n_groups = min(n_groups, self._n_good.shape[0])
        shares = self._query_weights / total_weight
        bounds = _even_cuts(self._starts, n_groups)
        self.weights = np.add.reduceat(shares, bounds[:-1]) if n_groups else np.empty(0)
        group_of = np.repeat(np.arange(n_groups), np.diff(bounds))
        self._factors = shares / self.weights[group_of]
        most = max(1, min(_MOST_CHUNKS, n_groups, self.facts.n_docs * self._row_bytes // _LEAST_CHUNK_BYTES))
        cuts = _even_cuts(self._starts[bounds], min(most, n_groups))
        # A chunk is what one thread works on at a time: whole groups, and the blocks of their queries.
        self._chunks = [
            (slice(low, high), self._cut_into_blocks(bounds[low], bounds[high]))
            for low, high in itertools.pairwise(cuts.tolist())
        ]
        # Slots count from the first of their chunk, so that a chunk's sums are small arrays.
        self._slots = np.empty((self._kinds, group_of.shape[0]), dtype=np.int64)
        for groups, _ in self._chunks:
            queries = slice(bounds[groups.start], bounds[groups.stop])
            own = group_of[queries] - groups.start
            for kind in range(self._kinds):
                self._slots[kind, queries] = own + kind * (groups.stop - groups.start)
        return self

    def _cut_into_blocks(self, first, last):
        rows_per_block = max(1, _BLOCK_BYTES // self._row_bytes)
        firsts = [int(first)]
        while firsts[-1] < last:
            end = self._starts[firsts[-1]] + rows_per_block
            firsts.append(max(int(self._starts.searchsorted(end, side="right")) - 1, firsts[-1] + 1))
        firsts[-1] = int(last)
        return np.array(firsts)

    def planes(self, w, kind="risk", chunks=map):
        """Pass over the queries. A pass at w = 0 raises a ValueError if X holds nan or infinity.

        Parameters
        ----------
        w : (n_features,) array
        kind : str or int
            "risk", "prediction", "ideal" or the number of a part, see `structrank.training.risk.Risk.plane`.
        chunks : callable, default map
            Maps a function over the chunks.

        Returns
        -------
        slope, offset, value : (n_kinds, n_groups, n_features), (n_kinds, n_groups) and (n_kinds, n_groups) arrays
            One plane per group; n_kinds is 1, or the number of parts for a "risk" whose parts have their own slacks.
        seconds : float
        """
        started = time.perf_counter()
        X, w = self._source.matrix(), np.require(w, requirements="W")  # kernels would be compiled again for a read-only array
        if X.shape != (self.facts.n_rows, self.facts.n_features):
            expected = f"{self.facts.n_rows} rows and {self.facts.n_features} columns when training began"
            raise ValueError(f"{self._names[1]} has changed: it has shape {X.shape}, but had {expected}. Train again.")
        if kind not in self._sweeps:
            self._sweeps[kind] = self._make_sweep(kind)
        n_kinds, sweep = self._sweeps[kind]
        shape = (n_kinds, self.weights.shape[0])
        planes = np.zeros((*shape, w.shape[0])), np.zeros(shape), np.zeros(shape)
        try:
            sums = chunks(functools.partial(self._sum, n_kinds, sweep, X, w), self._chunks)
            for (groups, _), found in zip(self._chunks, sums, strict=True):
                for total, summed in zip(planes, found, strict=True):
                    total[:, groups] = summed.reshape((n_kinds, -1, *summed.shape[1:]))
        except MemoryError as error:
            raise MemoryError(
                f"not enough memory for a pass over queries of up to {self._longest} documents. The permutation map keeps "
                'up to n sqrt(n) numbers for a query of n documents; decay="sqrt@30" limits it to the top.'
            ) from error
        return *planes, time.perf_counter() - started

    def variances(self, chunks=map):
        """Return the sum over queries of the variance of each column within the query, times the query's share in the risk.

        Parameters
        ----------
        chunks
            As for `planes`.

        Returns
        -------
        (n_features,) array
        """
        sums = chunks(functools.partial(self._sum_variances, self._source.matrix()), self._chunks)
        return sum(sums, np.zeros(self.facts.n_features))

    def _sum_variances(self, X, chunk):
        total = np.zeros(self.facts.n_features)
        for matrix, blocks in self._readable(X, chunk[1]):
            queries = slice(blocks[0], blocks[-1])
            shares = self._query_weights[queries] / self._total_weight
            add_variances(matrix, self._starts[blocks[0] : blocks[-1] + 1], shares, total)
        return total

    def _sum(self, n_kinds, sweep, X, w, chunk):
        """Sum the planes of a chunk's queries; return slopes, offsets and values."""
        groups, blocks = chunk
        n_slots = n_kinds * (groups.stop - groups.start)
        slope, *_ = sums = np.zeros((n_slots, w.shape[0])), np.zeros(n_slots), np.zeros(n_slots)
        centring, uncentred, columns = None, w, self._centred
        if columns.size:
            uncentred = w.copy()
            uncentred[columns] = 0.0
            most_docs = np.diff(self._starts[blocks]).max()
            centring = columns, self._places, w[columns], np.empty((most_docs, columns.size)), np.zeros((n_slots, columns.size))
        for matrix, some_blocks in self._readable(X, blocks):
            if not sweep(matrix, some_blocks, uncentred, not w.any(), centring, sums):
                self._check_finite(X)
        if columns.size:
            slope[:, columns] = centring[-1]
        return sums

    def _make_sweep(self, kind):
        """Return the number of planes of each group and a function that adds the planes of some blocks to sums."""
        made, shared, weights = self._loss.sweep(kind, self._longest)
        slots = self._slots if isinstance(kind, str) else self._slots[:1]
        if slots.shape[0] > 1:
            weights = np.ones(len(made))
        if not all(isinstance(oracle, oracles.CompiledOracle) for oracle in made):
            return slots.shape[0], functools.partial(self._sweep_in_python, made, shared, weights, slots)
        settings, tables = np.stack([oracle.settings for oracle in made]), np.stack([oracle.table for oracle in made])
        addresses = [oracle.addresses() for oracle in made]
        steps = np.zeros((len(made), max(map(len, addresses))), dtype=np.int64)
        for own, address in zip(steps, addresses, strict=True):
            own[: len(address)] = address
        for_pairs = len(made) == 1 and made[0].for_pairs
        graded = None
        if self._grades is not None:
            gains = np.stack([oracle.gains_of(self._grades) for oracle in made])
            lattices = tuple(oracle.lattice_of(self._grades) for oracle in made)
            graded = self._grades.numbers, self._grades.starts, gains, lattices

        queries = self._starts, self._n_good, self._order, self._tie_ranks, self._factors, slots
        oracle = address_of(sorting.sort_queries, sorting.SORT_QUERIES), for_pairs, steps, settings, tables

        def sweep(matrix, blocks, w, at_zero, centring, sums):
            most_queries, most_docs = np.diff(blocks).max(), np.diff(self._starts[blocks]).max()
            workspace = passes.make_workspace(most_docs, most_queries, len(made), slots.shape[0])
            return passes.sweep(matrix, queries, graded, oracle, shared, weights, blocks, w, at_zero, centring, workspace, sums)

        return slots.shape[0], sweep

    def _readable(self, X, blocks):
        """Yield X in a form for the kernels and its blocks: unchanged, or converted one block at a time."""
        matrix = kernel_matrix(X, 0, self._rows)
        if matrix is not None:
            yield matrix, blocks
            return
        for low, high in itertools.pairwise(blocks.tolist()):
            docs = slice(int(self._starts[low]), int(self._starts[high]))
            block = np.ascontiguousarray(X[self._rows[docs] if self._rows.size else docs], dtype=np.float64)
            yield kernel_matrix(block, docs.start), np.array([low, high])

    def _sweep_in_python(self, made, shared, weights, slots, matrix, blocks, w, at_zero, centring, sums):
        """Do what `passes.sweep` does, with oracles that are Python functions."""
        slope, *sums = sums
        if centring is not None:
            columns, places, centred_w, centred, centred_slope = centring
        for low, high in itertools.pairwise(blocks.tolist()):
            first, stop = int(self._starts[low]), int(self._starts[high])
            starts = self._starts[low : high + 1] - first
            order = self._order[first:stop]
            raw = np.empty(stop - first)
            linear.scores(*matrix, first, w, raw)
            if centring is not None:
                linear.centre(*matrix, first, starts, columns, places, centred)
                linear.add_centred_scores(centred, centred_w, raw)
            if at_zero and np.isnan(raw).any():
                return False
            labels = None if self._labels is None else self._labels[first:stop]
            queries = oracles.Queries.sort(raw, starts, self._n_good[low:high], order, labels)
            found = [oracle(queries) for oracle in made]
            stacked = tuple(np.stack([getattr(one, name) for one in found]) for name in ("coefficients", "losses", "values"))
            by_row = np.empty((slots.shape[0], stop - first))
            passes.collect(stacked, order, starts, shared, weights, self._factors, slots, low, by_row, *sums)
            workspace = linear.make_workspace(stop - first)
            for kind in range(slots.shape[0]):
                linear.add_slopes(*matrix, first, by_row[kind], starts, slots[kind], low, workspace, slope)
                if centring is not None:
                    linear.add_centred_slopes(centred, by_row[kind], starts, slots[kind], low, centred_slope)
        return True


def _even_cuts(starts, n):
    """Cut items that start at the given positions into n nonempty runs of about equal length; return the n + 1 cuts."""
    last = starts.shape[0] - 1
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n + 1))
    cuts[0], cuts[-1] = 0, last
    # Separate equal cuts, from the left and then from the right: no run may be empty.
    cuts = np.maximum.accumulate(cuts - np.arange(n + 1)) + np.arange(n + 1)
    return np.minimum(cuts, last - np.arange(n, -1, -1))


def _some_labels(labels):
    low, high = labels.min(), labels.max()
    return {float(label) for label in (low, high, *labels[(labels != low) & (labels != high)][:1])}
