"""Sorting by decreasing key: stable, guaranteed n log n, without allocation per query."""

from numba import njit

from structrank._kernels import REORDER
from structrank._kernels.pairs import are_few

_RUN = 96  # short enough for counting to beat merging


@njit(cache=True, nogil=True)
def _sort_run(keys, index, low, high, key_buffer, index_buffer):
    """Sort a short run by counting, for each key, those that come before it: many comparisons, no branch to mispredict."""
    n = high - low
    run = keys[low:high]
    counted = 0
    # Four keys at a time: the others are loaded a quarter as often.
    for i in range(0, n - n % 4, 4):
        key0, key1, key2, key3 = run[i], run[i + 1], run[i + 2], run[i + 3]
        place0 = place1 = place2 = place3 = 0
        for j in range(n):
            place0 += run[j] > key0
            place1 += run[j] > key1
            place2 += run[j] > key2
            place3 += run[j] > key3
        for key, place, number in ((key0, place0, i), (key1, place1, i + 1), (key2, place2, i + 2), (key3, place3, i + 3)):
            key_buffer[low + place] = key
            index_buffer[low + place] = index[low + number]
            counted += place
    for i in range(n - n % 4, n):
        place = 0
        for j in range(n):
            place += run[j] > run[i]
        key_buffer[low + place] = run[i]
        index_buffer[low + place] = index[low + i]
        counted += place
    if 2 * counted != n * (n - 1):  # equal keys want the same place
        for i in range(n):
            place = 0
            for j in range(i):
                place += run[j] >= run[i]
            for j in range(i + 1, n):
                place += run[j] > run[i]
            key_buffer[low + place] = run[i]
            index_buffer[low + place] = index[low + i]
    for i in range(low, high):
        keys[i] = key_buffer[i]
        index[i] = index_buffer[i]


@njit(cache=True, nogil=True)
def sort_descending(keys, index, start, stop, key_buffer, index_buffer):
    """Sort ``keys[start:stop]`` in place, largest first, and carry `index` along; equal keys keep their order."""
    for low in range(start, stop, _RUN):
        high = min(low + _RUN, stop)
        for i in range(low + 1, high):
            if keys[i - 1] < keys[i]:
                _sort_run(keys, index, low, high, key_buffer, index_buffer)
                break
    width = _RUN
    while width < stop - start:
        for low in range(start, stop - width, 2 * width):
            middle = low + width
            high = min(low + 2 * width, stop)
            if keys[middle - 1] >= keys[middle]:
                continue
            first = low  # of the left run that has to move
            while keys[first] >= keys[middle]:
                first += 1
            # Only the left run moves to the buffer; the merge then fills the gap from the left.
            for i in range(first, middle):
                key_buffer[i] = keys[i]
                index_buffer[i] = index[i]
            left, right, target = first, middle, first
            while left < middle and right < high:
                if key_buffer[left] >= keys[right]:
                    keys[target] = key_buffer[left]
                    index[target] = index_buffer[left]
                    left += 1
                else:
                    keys[target] = keys[right]
                    index[target] = index[right]
                    right += 1
                target += 1
            while left < middle:
                keys[target] = key_buffer[left]
                index[target] = index_buffer[left]
                left += 1
                target += 1
        width *= 2


@njit(cache=True, nogil=True, fastmath=REORDER)
def _mean(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total / values.shape[0]


@njit(cache=True, nogil=True)
def put_first(chosen, starts, n_first, order):
    """Arrange the documents of each query for `sort_queries`: those that are chosen, then the others, both as they come."""
    for q in range(n_first.shape[0]):
        first, second = starts[q], starts[q] + n_first[q]
        for i in range(starts[q], starts[q + 1]):
            if chosen[i]:
                order[first] = i - starts[q]
                first += 1
            else:
                order[second] = i - starts[q]
                second += 1


@njit(cache=True, nogil=True)
def sort_queries(scores, starts, n_first, order, sorted_scores, key_buffer, index_buffer, leave_few=False):
    """Sort the documents of each query by decreasing score, the first part of each apart from the second.

    Parameters
    ----------
    scores : (n_docs,) array
    starts : (n_queries + 1,) array
        Query q holds the places ``starts[q]`` to ``starts[q + 1]``.
    n_first : (n_queries,) array
        How many of a query's places form the first part (the good documents); 0 sorts the query as a whole.
    order : (n_docs,) array of int
        Positions within the query. On entry any arrangement that has each document in its part, on exit the sorted one.
        Handing in the order of similar scores saves most of the work.
    sorted_scores : (n_docs,) array
        Result: the scores in that order, less the mean of their query. No criterion sees a shift of a whole query, and
        sums of small numbers keep more digits.
    key_buffer, index_buffer : (n_docs,) arrays
        Room to work in, of the types of `scores` and `order`.
    leave_few : bool
        Whether queries with few pairs of both parts are left in the order given.
    """
    for q in range(n_first.shape[0]):
        start, stop = starts[q], starts[q + 1]
        mean = _mean(scores[start:stop])
        for i in range(start, stop):
            sorted_scores[i] = scores[start + order[i]] - mean
        middle = start + n_first[q]
        if leave_few and are_few(n_first[q], stop - middle):
            continue
        sort_descending(sorted_scores, order, start, middle, key_buffer, index_buffer)
        sort_descending(sorted_scores, order, middle, stop, key_buffer, index_buffer)
        if n_first[q] == 0:
            # Tied documents of different grades must stand by row, not as the last w left them.
            tied = False
            for i in range(start + 1, stop):
                tied |= sorted_scores[i - 1] == sorted_scores[i]
            if tied:
                for i in range(start, stop):
                    order[i] = i - start
                    sorted_scores[i] = scores[i] - mean
                sort_descending(sorted_scores, order, start, stop, key_buffer, index_buffer)
