"""Sorting by decreasing key: stable, guaranteed n log n, without allocation per query."""

import numpy as np

from structrank._compile import kernel
from structrank._kernels.pairs import are_few

_RUN = 192  # short enough for counting to beat merging


@kernel
def make_room(n, index_type):
    """Give room to sort up to n keys with an index of some type."""
    return np.empty(n), np.empty(n, index_type), np.empty(_RUN + 3, np.float32), np.empty(_RUN, np.int32)


@kernel
def _sort_run(keys, index, room):
    """Sort a short run by counting, for each key, those that come before it: many comparisons, no branch to mispredict.

    Keys are compared in single precision, twice as many at a time. Rounding keeps their order, and where two become equal,
    which shows in the counts, they are compared as they are.
    """
    key_buffer, index_buffer, rough, places = room
    n = keys.shape[0]
    for i in range(n):
        rough[i] = keys[i]
        places[i] = 0
    rough[n] = rough[n + 1] = rough[n + 2] = -np.inf  # before none
    # Four keys at a time: the counts are loaded and stored a quarter as often.
    for j in range(0, n, 4):
        key0, key1, key2, key3 = rough[j], rough[j + 1], rough[j + 2], rough[j + 3]
        for i in range(n):
            key = rough[i]
            places[i] += np.int32(key0 > key) + np.int32(key1 > key) + np.int32(key2 > key) + np.int32(key3 > key)
    counted = 0
    for i in range(n):
        counted += places[i]
    if 2 * counted != n * (n - 1):  # equal keys want the same place
        for i in range(n):
            place = 0
            for j in range(i):
                place += keys[j] >= keys[i]
            for j in range(i + 1, n):
                place += keys[j] > keys[i]
            places[i] = place
            key_buffer[i], index_buffer[i] = keys[i], index[i]  # nan has no place of its own: no other query may fill the gap
    for i in range(n):
        place = np.uintp(places[i])
        key_buffer[place], index_buffer[place] = keys[i], index[i]
    for i in range(n):
        keys[i], index[i] = key_buffer[i], index_buffer[i]


@kernel
def sort_descending(keys, index, start, stop, room):
    """Sort ``keys[start:stop]`` in place, largest first, and carry `index` along; equal keys keep their order."""
    for low in range(start, stop, _RUN):
        high = min(low + _RUN, stop)
        for i in range(low + 1, high):
            if keys[i - 1] < keys[i]:
                _sort_run(keys[low:high], index[low:high], room)
                break
    key_buffer, index_buffer, _, _ = room
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


@kernel
def _middle(a, b, c):
    """Give the middle one of three numbers."""
    low, high = (a, b) if a < b else (b, a)
    return low if c < low else high if c > high else c


@kernel
def _centre(values):
    """Give one of the values that is amidst them: the median of the medians of three times three.

    Unlike the mean it stays there, and keeps their digits, where a few are far off.
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
    """Arrange the documents of each query for `sort_queries`: those that are chosen, then the others, both as they come."""
    for q in range(n_first.shape[0]):
        first, second = starts[q], starts[q] + n_first[q]
        for i in range(starts[q], starts[q + 1]):
            # Without a branch, as which comes next is anyone's guess.
            order[np.uintp(first if chosen[i] else second)] = i - starts[q]
            first += chosen[i]
            second += not chosen[i]


@kernel
def sort_queries(scores, starts, n_first, order, sorted_scores, room, for_pairs=False):
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
        Result: the scores in that order, less one from their midst. No criterion sees a shift of a whole query, and sums
        of small numbers keep more digits.
    room : tuple
        Of `make_room`, for the longest query and the type of `order`.
    for_pairs : bool
        Whether pairs of both parts are all that is wanted: then first parts alone are sorted, and not where pairs are few.
    """
    for q in range(n_first.shape[0]):
        start, stop = starts[q], starts[q + 1]
        centre = _centre(scores[start:stop])
        for i in range(start, stop):
            sorted_scores[i] = scores[start + order[i]] - centre
        middle = start + n_first[q]
        if for_pairs and are_few(n_first[q], stop - middle):
            continue
        sort_descending(sorted_scores, order, start, middle, room)
        if for_pairs:
            continue
        sort_descending(sorted_scores, order, middle, stop, room)
        if n_first[q] == 0:
            # Tied documents of different grades must stand by row, not as the last w left them.
            tied = False
            for i in range(start + 1, stop):
                tied |= sorted_scores[i - 1] == sorted_scores[i]
            if tied:
                for i in range(start, stop):
                    order[i] = i - start
                    sorted_scores[i] = scores[i] - centre
                sort_descending(sorted_scores, order, start, stop, room)
