"""Where rankings change as scores move along a line, and by how much that changes a measure.

Scores go from `low` to `high`, each document's at its own even pace; query q holds the places ``starts[q]`` to
``starts[q + 1]``. Good and bad documents cross at times from 0 to 1, and only there does a measure of good and bad documents
change. The number of bad documents above each good one says all about the order of labels: sorted, these numbers are those of
the first good document, the second, and so on.
"""

import numpy as np

from structrank._compile import kernel


@kernel
def select(low, high, starts, cut, kept):
    """Mark the documents that may come into the first `cut` ranks: not those that `cut` others beat all the way."""
    for q in range(starts.shape[0] - 1):
        first, stop = starts[q], starts[q + 1]
        least = -np.inf
        if stop - first > cut:
            least = np.sort(np.minimum(low[first:stop], high[first:stop]))[stop - first - cut]
        for i in range(first, stop):
            kept[i] = max(low[i], high[i]) >= least


@kernel
def count_crossings(low, high, starts, kept, relevant):
    """Count the pairs of a good and a bad document that change their order, of those that are kept."""
    count = 0
    for q in range(starts.shape[0] - 1):
        for g in range(starts[q], starts[q + 1]):
            if kept[g] and relevant[g]:
                for b in range(starts[q], starts[q + 1]):
                    if kept[b] and not relevant[b]:
                        count += (low[g] <= low[b]) != (high[g] <= high[b])
    return count


@kernel
def find_crossings(low, high, starts, kept, relevant, times, good, above):
    """Write when pairs cross and which good document does, as ``~g`` where it falls; and the bad above each at time 0.

    A tie is a good document beaten.
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
                            good[n] = g if beaten else ~g
                            n += 1


@kernel
def replay(order, good, starts, query_of, kept, relevant, above, factors, discounts, credits, changes):
    """Write the change of the measure at each crossing, in order of time.

    The measure of query q is ``factors[q] * sum_i credits[i] * discounts[rank of the i-th good document]``.
    """
    # up_to[starts[q] + q + v]: good documents with at most v bad ones above. A good document that moves from v to v + 1
    # changes the entry of v alone.
    up_to = np.zeros(above.shape[0] + starts.shape[0], np.int64)
    for i in range(above.shape[0]):
        if kept[i] and relevant[i]:
            up_to[starts[query_of[i]] + query_of[i] + above[i]] += 1
    for q in range(starts.shape[0] - 1):
        for place in range(starts[q] + q + 1, starts[q + 1] + q + 1):
            up_to[place] += up_to[place - 1]
    for n in range(order.shape[0]):
        g = good[order[n]]
        falls = g < 0
        if falls:
            g = ~g
        q = query_of[g]
        upper = above[g] if falls else above[g] - 1
        place = starts[q] + q + upper
        # Of the good documents between the same two bad ones, it is the last that changes its rank.
        number = up_to[place] - 1 if falls else up_to[place]
        rank = number + upper
        step = factors[q] * credits[number] * (discounts[rank] - discounts[rank + 1])
        changes[n] = -step if falls else step
        up_to[place] += -1 if falls else 1
        above[g] += 1 if falls else -1
