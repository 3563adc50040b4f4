"""One pass over whole queries: score, sort, find the most violated rankings, sum their planes.

Queries are processed in blocks whose rows stay in the cache, so that X is read from memory once. `sweep` runs compiled oracles;
the results of oracles in Python go through `collect`.
"""

import numpy as np

from structrank._kernels import linear, sorting
from structrank._kernels.linear import add_centred_scores, add_centred_slopes, add_slopes, centre, scores
from structrank._kernels.oracles import Block, GradedBlock, run, run_graded
from structrank._kernels.sorting import call_sort_queries
from structrank._support.compile import kernel


@kernel
def collect(found, order, starts, shared, part_weights, factors, slots, first_query, by_row, offset, value):
    """Add the offsets and values of a block of queries to their slots, and their coefficients to those of the rows.

    Parameters
    ----------
    found : tuple
        ``coefficients``, (n_parts, n_docs), in sorted order: they are subtracted, as a plane's slope is phi(y*) - phi(y); and
        ``losses`` and ``values``, (n_parts, n_queries).
    order : (n_docs,) array of int
        Position within its query of the document at each sorted position.
    starts : (n_queries + 1,) array
        Start of each query within the block.
    first_query : int
        Place of the first query of the block in `factors` and `slots`.
    by_row : (1 or n_parts, n_docs) array
        Result, in the order of the rows.

    The other parameters are those of `sweep`.
    """
    coefficients, losses, values = found
    n_parts = losses.shape[0]
    for kind in range(by_row.shape[0]):
        for i in range(starts[-1]):
            by_row[kind, i] = 0.0
    for q in range(starts.shape[0] - 1):
        only = 0
        for part in range(1, n_parts):
            if values[part, q] > values[only, q]:
                only = part
        for part in range(n_parts):
            if shared and part != only:
                continue
            kind = part if slots.shape[0] > 1 else 0
            slot, factor = slots[kind, first_query + q], factors[first_query + q] * part_weights[part]
            offset[slot] += factor * losses[part, q]
            value[slot] += factor * values[part, q]
            for i in range(starts[q], starts[q + 1]):
                by_row[kind, starts[q] + order[i]] -= factor * coefficients[part, i]


def make_workspace(n_docs, n_queries, n_parts, n_kinds):
    """Allocate the workspaces of `sweep` for blocks of up to so many documents and queries.

    Not in `sweep`, where they would take longer to compile.
    """
    return (
        np.empty(n_docs),  # scores
        np.empty(n_docs),  # the same, sorted
        np.empty(n_docs, np.int32),  # grades, sorted
        np.empty(n_docs, np.int64),  # ranking or, for binary relevance, interleaving
        np.empty((n_parts, n_docs)),  # coefficients, sorted
        np.empty((n_kinds, n_docs)),  # the same by row
        np.empty((n_parts, n_queries)),  # losses
        np.empty((n_parts, n_queries)),  # values
        np.empty(n_queries + 1, np.int64),  # starts within the block
        sorting.make_workspace(n_docs, np.int32),
        linear.make_workspace(n_docs),
    )


@kernel
def sweep(matrix, queries, graded, oracles, shared, part_weights, blocks, w, at_zero, centring, workspace, sums):
    """Add the planes of the queries of some blocks to their slots.

    Parameters
    ----------
    matrix : tuple
        X, csr, base and rows, see `structrank._kernels.linear`.
    queries : tuple
        ``starts``, (n_queries + 1,): start of the documents of each query; ``n_first``, (n_queries,), ``order`` and
        ``tie_ranks``, (n_docs,): see `sort_queries`, which changes ``order``; ``factors``, (n_queries,): factor of each query
        in its slot; and ``slots``, (1 or n_parts, n_queries): the slot that each query (of each part) adds to.
    graded : tuple or None
        None for binary relevance: numba leaves out the branch of an argument that is None, or of one that is not. For graded
        labels ``grades``, the grade of each document as a number 0, 1, ... within its query; ``grade_starts`` of length
        n_queries + 1; ``gains[part, grade_starts[q] + grade]``; and a lattice for each part.
    oracles : tuple
        ``sort``, the address of `sort_queries`; ``for_pairs``, see there; ``steps``, (n_parts, n_steps): addresses of the
        kernels of each oracle, see `structrank._kernels.oracles`, 0 for none; ``settings`` and ``tables``, (n_parts, 3) and
        (n_parts, 4, n).
    shared : bool
        Whether only the most violated part counts in each query.
    part_weights : (n_parts,) array
    blocks : (n_blocks + 1,) array
        Start of the queries of each block; only these queries are processed.
    w : (n_features,) array
        0 for centred columns.
    at_zero : bool
        Whether w = 0, that of centred columns included.
    centring : tuple or None
        None if no column is centred; otherwise ``columns`` and ``places``, see `structrank._kernels.linear`; the weights of
        these columns; a workspace for them, (n_docs, n_centred); and an array to add their slopes to, (n_slots, n_centred).
    workspace : tuple
        From `make_workspace`.
    sums : tuple
        Arrays to add slopes, offsets and values to, (n_slots, n_features), (n_slots,) and (n_slots,). The slopes of centred
        columns are meaningless.

    Returns
    -------
    bool
        False if w = 0 and some row has nan or infinity; the pass then stops.
    """
    X, csr, base, rows = matrix
    starts, n_first, order, tie_ranks, factors, slots = queries
    sort, for_pairs, steps, settings, tables = oracles
    raw, sorted_scores, sorted_grades, ranking, coefficients, by_row, losses, values, local, for_sort, for_slopes = workspace
    slope, offset, value = sums
    if centring is not None:
        columns, places_of_columns, centred_w, centred, centred_slope = centring
    finite = True
    if graded is not None:
        grades, grade_starts, gains, lattices = graded
    for block in range(blocks.shape[0] - 1):
        low, high = blocks[block], blocks[block + 1]
        first, stop = starts[low], starts[high]
        n_docs, n_queries = stop - first, high - low
        for q in range(n_queries + 1):
            local[q] = starts[low + q] - first
        here, some_first, places = local[: n_queries + 1], n_first[low:high], order[first:stop]
        scores(X, csr, base, rows, first, w, raw[:n_docs])
        if centring is not None:
            centre(X, csr, base, rows, first, here, columns, places_of_columns, centred)
            add_centred_scores(centred, centred_w, raw[:n_docs])
        if at_zero:
            total = 0.0
            for i in range(n_docs):
                total += raw[i]
            if total != 0.0:  # nan: only 0 times a finite number is 0
                finite = False
                break  # a second return would be compiled, too
        call_sort_queries(sort, (raw, here, some_first, places, tie_ranks[first:stop], sorted_scores, for_sort, for_pairs))
        if graded is None:
            for part in range(settings.shape[0]):
                results = coefficients[part], losses[part], values[part]
                some = Block(settings[part], tables[part], sorted_scores, here, some_first, ranking, *results)
                for step in range(steps.shape[1]):
                    if steps[part, step] != 0:
                        run(steps[part, step], (some,))
        else:
            for q in range(n_queries):
                for i in range(here[q], here[q + 1]):
                    sorted_grades[i] = grades[first + here[q] + places[i]]
            for part in range(settings.shape[0]):
                labels = sorted_grades, grade_starts[low : high + 1], gains[part]
                results = coefficients[part], losses[part], values[part]
                some_graded = GradedBlock(
                    settings[part], tables[part], sorted_scores, here, *labels, ranking, *results, *lattices[part]
                )
                for step in range(steps.shape[1]):
                    if steps[part, step] != 0:
                        run_graded(steps[part, step], (some_graded,))
        found = coefficients, losses, values
        collect(found, places, here, shared, part_weights, factors, slots, low, by_row, offset, value)
        for kind in range(slots.shape[0]):  # parts that share their slots share one read of X
            add_slopes(X, csr, base, rows, first, by_row[kind], here, slots[kind], low, for_slopes, slope)
            if centring is not None:
                add_centred_slopes(centred, by_row[kind], here, slots[kind], low, centred_slope)
    return finite
