"""Kernels for latent factors from preference pairs, and for random walks on the click graph.

A pair has the margin x = expected + q . (u_winner - u_loser); training maximises log(1 / (1 + exp(-x))).
"""

from typing import NamedTuple

import numpy as np

from structrank._support.compile import kernel
from structrank._support.lanes import dot, dot_of_difference, squared_distance


class Pairs(NamedTuple):
    """Preference pairs sorted by query; query i has the pairs ``indptr[i]`` to ``indptr[i + 1]``.

    A negative weight marks a pair that is held out, and skipped by training; separate arrays would double the memory.
    """

    query: np.ndarray  # (n_pairs,) int32, as winner and loser: rows of the factors
    winner: np.ndarray
    loser: np.ndarray
    weight: np.ndarray  # (n_pairs,) float32
    expected: np.ndarray  # (n_pairs,) float32, the margins that the margins of the factors are added to; empty for none
    indptr: np.ndarray  # (n_queries + 1,) int64


class Step(NamedTuple):
    """Step size, and the prior: a query is shrunk towards (query_mean, 0, 0, ...), a url towards 0; all float32."""

    rate: float
    query_mean: float
    query_decay: float
    url_decay: float


@kernel
def pair_margins(query_factors, url_factors, pairs, out):
    """Write the margin of each pair, without `expected`, to `out`."""
    for p in range(pairs.query.shape[0]):
        out[p] = _margin(query_factors, url_factors, pairs, p)


@kernel(inner=True)
def _margin(query_factors, url_factors, pairs, p):
    return dot_of_difference(query_factors[pairs.query[p]], url_factors[pairs.winner[p]], url_factors[pairs.loser[p]])


@kernel
def held_out_likelihood(query_factors, url_factors, pairs):
    """Return the log-likelihood of the held-out pairs, weighted by -weight, and the sum of these weights."""
    total, total_weight = 0.0, 0.0
    for p in range(pairs.query.shape[0]):
        if pairs.weight[p] >= 0:
            continue
        margin = _margin(query_factors, url_factors, pairs, p)
        if pairs.expected.shape[0]:
            margin += pairs.expected[p]
        total -= pairs.weight[p] * (min(margin, 0.0) - np.log1p(np.exp(-abs(margin))))
        total_weight -= pairs.weight[p]
    return total, total_weight


@kernel
def add_query_gradients(slopes, url_factors, pairs, out):
    """Add to the row of each query the sum of ``slopes[p] * (u_winner - u_loser)`` over its pairs p."""
    for p in range(pairs.query.shape[0]):
        row, u, v = out[pairs.query[p]], url_factors[pairs.winner[p]], url_factors[pairs.loser[p]]
        for f in range(row.shape[0]):
            row[f] += slopes[p] * (u[f] - v[f])


@kernel
def add_url_gradients(slopes, query_factors, pairs, out):
    """Add ``slopes[p] * q`` to the row of the winner of each pair p, and subtract it from the row of the loser."""
    for p in range(pairs.query.shape[0]):
        q, u, v = query_factors[pairs.query[p]], out[pairs.winner[p]], out[pairs.loser[p]]
        for f in range(q.shape[0]):
            u[f] += slopes[p] * q[f]
            v[f] -= slopes[p] * q[f]


@kernel
def count_uses(pairs, query_uses, url_uses):
    """Add to each query and url the number of its pairs of weight above 0."""
    for p in range(pairs.query.shape[0]):
        if pairs.weight[p] > 0:
            query_uses[pairs.query[p]] += 1
            url_uses[pairs.winner[p]] += 1
            url_uses[pairs.loser[p]] += 1


@kernel(inner=True)
def _likelihood_and_slope(q, u, v, pairs, p):
    """Return the weighted log-likelihood of a pair, and its derivative by the margin, in float32."""
    zero, one = np.float32(0.0), np.float32(1.0)
    margin = np.float32(dot_of_difference(q, u, v)) + (pairs.expected[p] if pairs.expected.shape[0] else zero)
    small = np.exp(-abs(margin))
    slope = pairs.weight[p] * (small if margin > zero else one) / (one + small)
    return pairs.weight[p] * (min(margin, zero) - np.log1p(small)), slope


@kernel
def sgd(query_factors, url_factors, visits, pairs, query_uses, url_uses, step, likelihood, query_squares, url_squares):
    """Visit queries in order, and take a gradient step for each of their pairs.

    The step size of a row is the rate over the root of its sum of squared gradients, kept in `query_squares` and
    `url_squares` (Adagrad, with one number per row). The gradient of the prior is divided equally among the uses of the row
    in an epoch, and applied by implicit steps, which are stable at any rate. ``likelihood[query]`` gets the log-likelihood of
    its pairs, each evaluated when it is visited.
    """
    one, tiny = np.float32(1.0), np.float32(1e-6)
    for i in visits:
        q = query_factors[i]
        total = 0.0
        for p in range(pairs.indptr[i], pairs.indptr[i + 1]):
            if pairs.weight[p] <= np.float32(0.0):
                continue
            j, k = pairs.winner[p], pairs.loser[p]
            u, v = url_factors[j], url_factors[k]
            gain, slope = _likelihood_and_slope(q, u, v, pairs, p)
            total += gain
            apart, length = np.float32(squared_distance(u, v)), np.float32(dot(q, q))
            query_squares[i] += slope * slope * apart
            url_squares[j] += slope * slope * length
            url_squares[k] += slope * slope * length
            q_rate = step.rate / np.sqrt(query_squares[i] + tiny)
            u_rate = step.rate / np.sqrt(url_squares[j] + tiny)
            v_rate = step.rate / np.sqrt(url_squares[k] + tiny)
            q_keep = one / (one + q_rate * step.query_decay / query_uses[i])
            u_keep = one / (one + u_rate * step.url_decay / url_uses[j])
            v_keep = one / (one + v_rate * step.url_decay / url_uses[k])
            for f in range(q.shape[0]):
                q_f, u_f, v_f = q[f], u[f], v[f]
                q[f] = q_keep * (q_f + q_rate * slope * (u_f - v_f))
                u[f] = u_keep * (u_f + u_rate * slope * q_f)
                v[f] = v_keep * (v_f - v_rate * slope * q_f)
            q[0] += (one - q_keep) * step.query_mean
        likelihood[i] = total


@kernel
def adam(query_factors, url_factors, visits, pairs, query_uses, url_uses, step, likelihood, query_moments, url_moments):
    """Visit queries as `sgd` does, with Adam steps; a pair updates only its own rows.

    Row i has ``moments[i, 0]`` (mean of the gradient), ``moments[i, 1]`` (mean of its square) and, in
    ``moments[i, 2, 0]``, the number of its steps.
    """
    gradient_q, gradient_u, gradient_v = np.empty((3, query_factors.shape[1]), np.float32)
    for i in visits:
        q = query_factors[i]
        total = 0.0
        for p in range(pairs.indptr[i], pairs.indptr[i + 1]):
            if pairs.weight[p] <= np.float32(0.0):
                continue
            j, k = pairs.winner[p], pairs.loser[p]
            u, v = url_factors[j], url_factors[k]
            gain, slope = _likelihood_and_slope(q, u, v, pairs, p)
            total += gain
            for f in range(q.shape[0]):
                gradient_q[f] = slope * (u[f] - v[f]) - step.query_decay / query_uses[i] * q[f]
                gradient_u[f] = slope * q[f] - step.url_decay / url_uses[j] * u[f]
                gradient_v[f] = -slope * q[f] - step.url_decay / url_uses[k] * v[f]
            gradient_q[0] += step.query_decay / query_uses[i] * step.query_mean
            _adam_step(q, gradient_q, query_moments[i], step.rate)
            _adam_step(u, gradient_u, url_moments[j], step.rate)
            _adam_step(v, gradient_v, url_moments[k], step.rate)
        likelihood[i] = total


@kernel(inner=True)
def _adam_step(row, gradient, moments, rate):
    moments[2, 0] += np.float32(1.0)
    steps = moments[2, 0]
    mean_share = np.float32(1.0) - np.float32(0.9) ** steps
    square_share = np.float32(1.0) - np.float32(0.999) ** steps
    for f in range(row.shape[0]):
        g = gradient[f]
        moments[0, f] += np.float32(0.1) * (g - moments[0, f])
        moments[1, f] += np.float32(0.001) * (g * g - moments[1, f])
        row[f] += rate * (moments[0, f] / mean_share) / (np.sqrt(moments[1, f] / square_share) + np.float32(1e-8))


@kernel
def split_by_urls(visits, starts, pairs, owner, thread, n_threads):
    """Assign the queries of each chunk of visits to threads such that no two threads share a url in a chunk.

    Queries connected by shared urls form a group (union-find), and each group goes to the thread that has the fewest pairs
    so far. Chunk c is ``visits[starts[c]:starts[c + 1]]``; `owner` has one entry per url, initially negative.
    """
    load = np.empty(n_threads, np.int64)
    for c in range(starts.shape[0] - 1):
        first, n = starts[c], starts[c + 1] - starts[c]
        parent = np.arange(n)
        sizes = np.zeros(n, np.int64)
        for place in range(n):
            i = visits[first + place]
            for p in range(pairs.indptr[i], pairs.indptr[i + 1]):
                for url in (pairs.winner[p], pairs.loser[p]):
                    if owner[url] < first:
                        owner[url] = first + place
                    else:
                        a, b = _root(parent, place), _root(parent, owner[url] - first)
                        parent[max(a, b)] = min(a, b)
        for place in range(n):
            i = visits[first + place]
            sizes[_root(parent, place)] += pairs.indptr[i + 1] - pairs.indptr[i]
        load[:] = 0
        for place in range(n):
            root = _root(parent, place)
            if root == place:  # the root is the first query of its group
                least = np.argmin(load)
                load[least] += sizes[place]
                thread[first + place] = least
            else:
                thread[first + place] = thread[first + root]


@kernel(inner=True)
def _root(parent, node):
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


class Side(NamedTuple):
    """Edges of the click graph by their nodes on one side: node n has ``ends[indptr[n]:indptr[n + 1]]`` on the other."""

    indptr: np.ndarray
    ends: np.ndarray
    clicks: np.ndarray
    total: np.ndarray  # clicks of each node


@kernel
def walk_scores(queries, indptr, urls, probabilities, tol, forward, by_query, by_url, out, lost):
    """Write the scores of ``urls[indptr[n]:indptr[n + 1]]`` for ``queries[n]``, and the truncated fraction of the walk.

    The walk makes k moves with probability ``probabilities[k]`` (it stays in all other steps), and is then at a query if k
    is even and at a url if k is odd. It is truncated at a node where the probability of later moves is at most `tol` per
    click of the node, so that a move visits at most 1 / tol edges.

    The graph is undirected, so the probability of a walk from u to q is that of a walk from q to u times clicks of q /
    clicks of u: the same walk from q serves both directions.
    """
    on_query, on_url = np.zeros(by_query.total.shape[0]), np.zeros(by_url.total.shape[0])
    reached = np.zeros(by_url.total.shape[0])
    here, there = np.empty(64, np.int64), np.empty(64, np.int64)
    all_reached = np.empty(64, np.int64)
    for n in range(queries.shape[0]):
        start = queries[n]
        on_query[start] = 1.0
        here[0] = start
        n_here, n_reached = 1, 0
        later, norm = 1.0, 0.0
        lost[n] = 0.0
        for k in range(probabilities.shape[0]):
            later = max(later - probabilities[k], 0.0) if k + 1 < probabilities.shape[0] else 0.0
            side, mass, other = (by_url, on_url, on_query) if k % 2 else (by_query, on_query, on_url)
            n_there = 0
            for place in range(n_here):
                node = here[place]
                probability = mass[node]
                mass[node] = 0.0
                if k % 2:
                    if reached[node] == 0.0:
                        all_reached = _append(all_reached, n_reached, node)
                        n_reached += 1
                    reached[node] += probabilities[k] * probability
                if side.total[node] == 0.0:
                    continue
                norm += probabilities[k] * probability / side.total[node]
                if probability * later <= tol * side.total[node]:
                    lost[n] += probability * later
                    continue
                for edge in range(side.indptr[node], side.indptr[node + 1]):
                    end = side.ends[edge]
                    if other[end] == 0.0:
                        there = _append(there, n_there, end)
                        n_there += 1
                    other[end] += probability * side.clicks[edge] / side.total[node]
            here, there = there, here
            n_here = n_there
        for p in range(indptr[n], indptr[n + 1]):
            score = reached[urls[p]]
            if not forward and score > 0.0:
                score /= by_url.total[urls[p]] * norm
            out[p] = score
        for place in range(n_reached):
            reached[all_reached[place]] = 0.0


@kernel(inner=True)
def _append(values, n, value):
    if n == values.shape[0]:
        longer = np.empty(2 * n, values.dtype)
        for place in range(n):
            longer[place] = values[place]
        values = longer
    values[n] = value
    return values
