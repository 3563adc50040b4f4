"""Sorting by decreasing key: stable, O(n log n), without allocation per query."""

import numpy as np
from numba import types

from structrank._kernels.pairs import are_few
from structrank._support.compile import caller_of, kernel

_RUN = 192  # counting is faster than merging up to this length


def make_workspace(n, index_type):
    """Allocate a workspace to sort up to n keys with an index of the given type; not compiled, which would take longer."""
    return np.empty(n), np.empty(n, index_type), np.empty(_RUN + 3, np.float32), np.empty(_RUN, np.int32)


@kernel(inner=True)
def _sort_run(keys, index, workspace):
    """Sort a short run by counting the larger keys for each key: many comparisons, but no branch mispredictions.

    Keys are compared in single precision, twice as many at a time. Rounding is monotonic; if it makes two keys equal, which
    the counts reveal, an insertion sort in double precision follows, in which few keys move.
    """
    key_buffer, index_buffer, rough, places = workspace
    n = keys.shape[0]
    for i in range(n):
        rough[i] = keys[i]
        places[i] = 0
    rough[n] = rough[n + 1] = rough[n + 2] = -np.inf  # counted before no key
    # Four keys at a time: the counts are loaded and stored a quarter as often.
    for j in range(0, n, 4):
        key0, key1, key2, key3 = rough[j], rough[j + 1], rough[j + 2], rough[j + 3]
        for i in range(n):
            key = rough[i]
            places[i] += np.int32(key0 > key) + np.int32(key1 > key) + np.int32(key2 > key) + np.int32(key3 > key)
    counted = 0
    for i in range(n):
        counted += places[i]
    tied = 2 * counted != n * (n - 1)  # equal keys have the same count
    if tied:
        for i in range(n):
            rough[i] = 0.0
            key_buffer[i], index_buffer[i] = keys[i], index[i]  # nan leaves gaps, which must not keep keys of another query
        for i in range(n):  # and take the places from there on, in their order
            place = places[i]
            places[i] = place + np.int32(rough[place])
            rough[place] += np.float32(1.0)
    for i in range(n):
        place = np.uintp(places[i])
        key_buffer[place], index_buffer[place] = keys[i], index[i]
    for i in range(n):
        keys[i], index[i] = key_buffer[i], index_buffer[i]
    if tied:
        for i in range(1, n):  # keys that are equal in single precision only
            key, number = keys[i], index[i]
            j = i
            while j > 0 and keys[j - 1] < key:
                keys[j], index[j] = keys[j - 1], index[j - 1]
                j -= 1
            keys[j], index[j] = key, number


@kernel
def sort_descending(keys, index, start, stop, workspace):
    """Sort ``keys[start:stop]`` in place, largest first, and carry `index` along; equal keys keep their order."""
    for low in range(start, stop, _RUN):
        high = min(low + _RUN, stop)
        for i in range(low + 1, high):
            if keys[i - 1] < keys[i]:
                _sort_run(keys[low:high], index[low:high], workspace)
                break
    key_buffer, index_buffer, _, _ = workspace
    width = _RUN
    while width < stop - start:
        for low in range(start, stop - width, 2 * width):
            middle = low + width
            high = min(low + 2 * width, stop)
            if keys[middle - 1] >= keys[middle]:
                continue
            first = low  # element of the left run that has to move
            while keys[first] >= keys[middle]:
                first += 1
            # Only the left run moves to the buffer; the merge then fills the gap from the left.
            moved = middle - first
            for i in range(moved):
                key_buffer[i] = keys[first + i]
                index_buffer[i] = index[first + i]
            left, right, target = 0, middle, first
            while left < moved and right < high:
                if key_buffer[left] >= keys[right]:
                    keys[target] = key_buffer[left]
                    index[target] = index_buffer[left]
                    left += 1
                else:
                    keys[target] = keys[right]
                    index[target] = index[right]
                    right += 1
                target += 1
            while left < moved:
                keys[target] = key_buffer[left]
                index[target] = index_buffer[left]
                left += 1
                target += 1
        width *= 2


@kernel(inner=True)
def _middle(a, b, c):
    """Return the median of three numbers."""
    low, high = (a, b) if a < b else (b, a)
    return low if c < low else high if c > high else c


@kernel(inner=True)
def _centre(values):
    """Return a central value: the median of three medians of three values.

    Unlike the mean it is robust to outliers, so that the other values keep their digits.
    """
    n = values.shape[0]
    if n < 9:
        return _middle(values[0], values[n // 2], values[n - 1])
    third, step = n // 3, n // 9
    a = _middle(values[0], values[step], values[2 * step])
    b = _middle(values[third], values[third + step], values[third + 2 * step])
    c = _middle(values[n - 1 - 2 * step], values[n - 1 - step], values[n - 1])
    return _middle(a, b, c)


@kernel
def put_first(chosen, starts, n_first, order):
    """Arrange the documents of each query for `sort_queries`: chosen documents first, then the others, in row order."""
    for q in range(n_first.shape[0]):
        first, second = starts[q], starts[q] + n_first[q]
        for i in range(starts[q], starts[q + 1]):
            # Branchless, as the branch would be unpredictable.
            order[np.uintp(first if chosen[i] else second)] = i - starts[q]
            first += chosen[i]
            second += not chosen[i]


@kernel
def sort_queries(scores, starts, n_first, order, tie_ranks, sorted_scores, workspace, for_pairs):
    """Sort the documents of each query by decreasing score, its two parts separately.

    Parameters
    ----------
    scores : (n_docs,) array
    starts : (n_queries + 1,) array
        Query q holds the positions ``starts[q]`` to ``starts[q + 1]``.
    n_first : (n_queries,) array
        Number of documents in the first part of a query (the relevant documents); 0 sorts the query as a whole.
    order : (n_docs,) array of int
        Positions within the query. On entry any arrangement that has each document in its part, on exit the sorted one.
        Passing the order of similar scores saves most of the work.
    tie_ranks : (n_docs,) array of int
        For queries that are sorted as a whole, the rank of each document among documents of equal score, whatever the scores
        of the previous w. Unused for other queries.
    sorted_scores : (n_docs,) array
        Result: the scores in sorted order, centred. Criteria are invariant to a shift of a whole query, and sums of small
        numbers keep more digits.
    workspace : tuple
        From `make_workspace`, for the longest query and the type of `order`.
    for_pairs : bool
        Whether only pairs across the parts are needed: then only first parts are sorted, and none if pairs are few.
    """
    for q in range(n_first.shape[0]):
        start, stop = starts[q], starts[q + 1]
        centre = _centre(scores[start:stop])
        for i in range(start, stop):
            sorted_scores[i] = scores[start + order[i]] - centre
        middle = start + n_first[q]
        if for_pairs and are_few(n_first[q], stop - middle):
            continue
        low, high, score, is_tie = start, middle if n_first[q] else stop, 0.0, False
        while True:
            sort_descending(sorted_scores, order, low, high, workspace)  # the one call: each call would be compiled
            if n_first[q]:
                if high == stop or for_pairs:
                    break
                low, high = middle, stop
                continue
            if is_tie:
                for i in range(low, high):
                    sorted_scores[i] = score
            low, is_tie = high if is_tie else start, True
            while low + 1 < stop and sorted_scores[low] != sorted_scores[low + 1]:
                low += 1
            if low + 1 >= stop:
                break
            # Tied documents are sorted by their ranks, which take the place of their score.
            high, score = low, sorted_scores[low]
            while high < stop and sorted_scores[high] == score:
                sorted_scores[high] = -tie_ranks[start + order[high]]
                high += 1


_FLOATS, _INTS, _PLACES = types.float64[::1], types.int64[::1], types.int32[::1]
_WORKSPACE = types.Tuple((_FLOATS, _PLACES, types.float32[::1], _PLACES))
# `sort_queries` as passes call it, by its address.
SORT_QUERIES = types.none(_FLOATS, _INTS, _INTS, _PLACES, _PLACES, _FLOATS, _WORKSPACE, types.boolean)
call_sort_queries = caller_of(SORT_QUERIES)
