"""Crossings of documents as scores move along a line, and the changes of a measure there.

Each score moves linearly from `low` to `high`; query q holds the positions ``starts[q]`` to
``starts[q + 1]``. Relevant and irrelevant documents cross at times from 0 to 1, and a binary measure changes only there. The
numbers of irrelevant documents above each relevant one determine the order of labels: sorted, these numbers are those of the
first relevant document, the second, and so on.
"""

import numpy as np

from structrank._support.compile import kernel


@kernel
def select(low, high, starts, cut, kept):
    """Mark the documents that may enter the first `cut` ranks; skip those with `cut` better documents along the whole line."""
    for q in range(starts.shape[0] - 1):
        first, stop = starts[q], starts[q + 1]
        least = -np.inf
        if stop - first > cut:
            least = np.sort(np.minimum(low[first:stop], high[first:stop]))[stop - first - cut]
        for i in range(first, stop):
            kept[i] = max(low[i], high[i]) >= least


@kernel
def count_crossings(low, high, starts, kept, relevant):
    """Count the pairs of kept relevant and irrelevant documents that change their order."""
    count = 0
    for q in range(starts.shape[0] - 1):
        for g in range(starts[q], starts[q + 1]):
            if kept[g] and relevant[g]:
                for b in range(starts[q], starts[q + 1]):
                    if kept[b] and not relevant[b]:
                        count += (low[g] <= low[b]) != (high[g] <= high[b])
    return count


@kernel
def find_crossings(low, high, starts, kept, relevant, times, crossing, above):
    """Write the time and relevant document g (``~g`` if it falls) of each crossing, and the irrelevant ones above at time 0.

    Tied irrelevant documents count as above.
    """
    n = 0
    for q in range(starts.shape[0] - 1):
        for g in range(starts[q], starts[q + 1]):
            if kept[g] and relevant[g]:
                for b in range(starts[q], starts[q + 1]):
                    if kept[b] and not relevant[b]:
                        beaten, will_be = low[g] <= low[b], high[g] <= high[b]
                        above[g] += beaten
                        if beaten != will_be:
                            lead = low[g] - low[b]
                            times[n] = lead / (lead - (high[g] - high[b]))
                            crossing[n] = g if beaten else ~g
                            n += 1


@kernel
def replay(order, crossing, starts, query_of, kept, relevant, above, factors, discounts, credits, changes):
    """Write the change of the measure at each crossing, in order of time.

    The measure of query q is ``factors[q] * sum_i credits[i] * discounts[rank of the i-th relevant document]``.
    """
    # up_to[starts[q] + q + v]: number of relevant documents with at most v irrelevant ones above. A move from v to v + 1
    # changes the entry of v only.
    up_to = np.zeros(above.shape[0] + starts.shape[0], np.int64)
    for i in range(above.shape[0]):
        if kept[i] and relevant[i]:
            up_to[starts[query_of[i]] + query_of[i] + above[i]] += 1
    for q in range(starts.shape[0] - 1):
        for place in range(starts[q] + q + 1, starts[q + 1] + q + 1):
            up_to[place] += up_to[place - 1]
    for n in range(order.shape[0]):
        g = crossing[order[n]]
        falls = g < 0
        if falls:
            g = ~g
        q = query_of[g]
        upper = above[g] if falls else above[g] - 1
        place = starts[q] + q + upper
        # Relevant documents between the same two irrelevant ones are interchangeable: count the last as the one that moves.
        number = up_to[place] - 1 if falls else up_to[place]
        rank = number + upper
        step = factors[q] * credits[number] * (discounts[rank] - discounts[rank + 1])
        changes[n] = -step if falls else step
        up_to[place] += -1 if falls else 1
        above[g] += 1 if falls else -1
