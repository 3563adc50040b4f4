"""One pass over whole queries: score, sort, find the most violated rankings, sum their planes.

Queries are processed in blocks whose rows stay in the cache, so that X is read from memory once. `sweep` runs compiled oracles;
the results of oracles in Python go through `collect`.
"""

import numpy as np

from structrank._kernels.linear import add_slopes, first_not_finite, scores
from structrank._kernels.oracles import Block, GradedBlock, run, run_graded
from structrank._kernels.sorting import call_sort_queries, call_sort_ties, make_workspace
from structrank._support.compile import kernel


@kernel
def collect(coefficients, losses, values, order, starts, shared, part_weights, factors, slots, by_row, offset, value):
    """Add the offsets and values of a block of queries to their slots, and their coefficients to those of the rows.

    Parameters
    ----------
    coefficients : (n_parts, n_docs) array
        In sorted order. They are subtracted, as a plane's slope is phi(y*) - phi(y).
    losses, values : (n_parts, n_queries) arrays
    order : (n_docs,) array of int
        Position within its query of the document at each sorted position.
    by_row : (1 or n_parts, n_docs) array
        Result, in the order of the rows.

    The other parameters are those of `sweep`.
    """
    n_parts = losses.shape[0]
    by_row[:] = 0.0
    for q in range(factors.shape[0]):
        only = 0
        for part in range(1, n_parts):
            if values[part, q] > values[only, q]:
                only = part
        for part in range(n_parts):
            if shared and part != only:
                continue
            kind = part if slots.shape[0] > 1 else 0
            factor = factors[q] * part_weights[part]
            offset[slots[kind, q]] += factor * losses[part, q]
            value[slots[kind, q]] += factor * values[part, q]
            for i in range(starts[q], starts[q + 1]):
                by_row[kind, starts[q] + order[i]] -= factor * coefficients[part, i]


@kernel
def sweep(
    matrix,
    base,
    rows,
    starts,
    blocks,
    n_relevant,
    order,
    graded,
    sorts,
    steps,
    settings,
    tables,
    for_pairs,
    shared,
    part_weights,
    factors,
    slots,
    w,
    at_zero,
    slope,
    offset,
    value,
):
    """Add the planes of some queries to their slots.

    Parameters
    ----------
    matrix : tuple
        See `structrank._kernels.linear`.
    base : int
        If `rows` is empty, document i is row i - base.
    rows : (n_docs,) array of int
        Row of each document, or empty.
    starts : (n_queries + 1,) array
        Start of the documents of each query.
    blocks : (n_blocks + 1,) array
        Start of the queries of each block; only these queries are processed.
    n_relevant : (n_queries,) array
    order : (n_docs,) array of int32
        See `sort_queries`; changed.
    graded : tuple or None
        None for binary relevance. For graded labels ``grades``, the grade of each document as a number 0, 1, ... within its
        query; ``grade_starts`` of length n_queries + 1; ``gains[part, grade_starts[q] + grade]``; and a lattice for each part.
        The two kinds are compiled separately.
    sorts : (2,) array of int
        Addresses of `sort_queries` and, for graded labels, `sort_ties`.
    steps : (n_parts, n_steps) array of int
        Addresses of the kernels of each oracle, see `structrank._kernels.oracles`; 0 for none.
    settings, tables : (n_parts, 3) and (n_parts, 4, n) arrays
        Settings and tables of the oracles.
    for_pairs : bool
        See `sort_queries`.
    shared : bool
        Whether only the most violated part counts in each query.
    part_weights : (n_parts,) array
    factors : (n_queries,) array
        Factor of each query in its slot.
    slots : (1 or n_parts, n_queries) array
        The slot that each query (of each part) adds to.
    w : (n_features,) array
    at_zero : bool
        Whether w = 0.
    slope, offset, value : (n_slots, n_features), (n_slots,) and (n_slots,) arrays
        Results are added to these arrays.

    Returns
    -------
    bool
        False if w = 0 and some row has nan or infinity; the pass then stops.
    """
    n_parts = settings.shape[0]
    n_kinds = slots.shape[0]  # parts that share their slots share one read of X
    most_docs, most_queries = 0, 0
    for block in range(blocks.shape[0] - 1):
        most_queries = max(most_queries, blocks[block + 1] - blocks[block])
        most_docs = max(most_docs, starts[blocks[block + 1]] - starts[blocks[block]])
    raw = np.empty(most_docs)
    sorted_scores = np.empty(most_docs)
    workspace = make_workspace(raw.shape[0], order.dtype)
    ranking = np.empty(most_docs, np.int64)  # or, for binary relevance, the interleaving
    if graded is not None:
        grades, grade_starts, gains, lattices = graded
        sorted_grades = np.empty(most_docs, np.int32)
        keys = np.empty(most_docs)  # the grades again, as the same type as scores saves compiling another sort
    coefficients = np.empty((n_parts, most_docs))
    by_row = np.empty((n_kinds, most_docs))
    losses = np.empty((n_parts, most_queries))
    values = np.empty((n_parts, most_queries))
    local_starts = np.empty(most_queries + 1, np.int64)
    for block in range(blocks.shape[0] - 1):
        low, high = blocks[block], blocks[block + 1]
        first, stop = starts[low], starts[high]
        n_docs, n_queries = stop - first, high - low
        for q in range(n_queries + 1):
            local_starts[q] = starts[low + q] - first
        here = local_starts[: n_queries + 1]
        n_first = n_relevant[low:high]
        places = order[first:stop]
        some_rows = rows[first:stop] if rows.shape[0] else rows
        scores(matrix, some_rows, first - base, w, raw[:n_docs])
        if at_zero and first_not_finite(raw[:n_docs]) >= 0:  # 0 times a finite number is 0
            return False
        call_sort_queries(sorts[0], (raw[:n_docs], here, n_first, places, sorted_scores[:n_docs], workspace, for_pairs))
        if graded is not None:
            for q in range(n_queries):
                for i in range(here[q], here[q + 1]):
                    keys[i] = grades[first + here[q] + places[i]]
            call_sort_ties(sorts[1], (sorted_scores[:n_docs], here, keys, places, workspace))
            for i in range(n_docs):
                sorted_grades[i] = np.int32(keys[i])
        for part in range(n_parts):
            found = coefficients[part, :n_docs], losses[part, :n_queries], values[part, :n_queries]
            if graded is None:
                some = Block(settings[part], tables[part], sorted_scores[:n_docs], here, n_first, ranking, *found)
                for step in steps[part]:
                    if step != 0:
                        run(step, (some,))
            else:
                some_graded = GradedBlock(
                    settings[part],
                    tables[part],
                    lattices[part],
                    sorted_scores[:n_docs],
                    here,
                    sorted_grades,
                    grade_starts[low : high + 1],
                    gains[part],
                    ranking,
                    *found,
                )
                for step in steps[part]:
                    if step != 0:
                        run_graded(step, (some_graded,))
        collect(
            coefficients,
            losses,
            values,
            places,
            here,
            shared,
            part_weights,
            factors[low:high],
            slots[:, low:high],
            by_row[:, :n_docs],
            offset,
            value,
        )
        for kind in range(n_kinds):
            add_slopes(matrix, some_rows, first - base, by_row[kind, :n_docs], here, slots[kind, low:high], slope)
    return True
