"""Scoring functions trained by lambdas: linear, and two layers with tanh.

Weights form one vector. Without hidden units it is w, and a document scores w.x; with h of them it holds W (n_features, h),
b (h,) and v (h,), and a document scores v.tanh(W^T x + b). X is dense, float64, in row order.
"""

from typing import NamedTuple

import numpy as np

from structrank._kernels.lambdas import make_workspace, query_lambdas
from structrank._support.compile import kernel
from structrank._support.lanes import dot

# Constants of Adam, as published: decay of the two running means, and the term that keeps the quotient finite.
_DECAY, _DECAY_OF_SQUARES, _EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """State of Adam (Kingma and Ba, ICLR 2015): running means of the gradient and its square, and the number of steps, (1,).

    The means have a number for each weight, or none for plain gradient ascent.
    """

    mean: np.ndarray
    square: np.ndarray
    n_steps: np.ndarray


@kernel
def ascend(weights, gradient, rate, adam):
    """Move the weights by one step of Adam, or by ``rate * gradient``."""
    if adam.mean.shape[0] == 0:
        for j in range(weights.shape[0]):
            weights[j] += rate * gradient[j]
        return
    adam.n_steps[0] += 1
    scale = rate / (1.0 - _DECAY ** adam.n_steps[0])
    bias = 1.0 - _DECAY_OF_SQUARES ** adam.n_steps[0]
    for j in range(weights.shape[0]):
        adam.mean[j] += (1.0 - _DECAY) * (gradient[j] - adam.mean[j])
        adam.square[j] += (1.0 - _DECAY_OF_SQUARES) * (gradient[j] * gradient[j] - adam.square[j])
        weights[j] += scale * adam.mean[j] / (np.sqrt(adam.square[j] / bias) + _EPSILON)


@kernel
def forward(X, weights, n_hidden, hidden, scores):
    """Write the scores of all rows; the hidden units' values go to `hidden`, (n_docs, n_hidden)."""
    n_features = X.shape[1]
    bias = n_features * n_hidden
    for i in range(X.shape[0]):
        if n_hidden == 0:
            scores[i] = dot(X[i], weights)
        else:
            units = hidden[i]
            for k in range(n_hidden):
                units[k] = weights[bias + k]
            for j in range(n_features):
                value = X[i, j]
                row = weights[j * n_hidden : (j + 1) * n_hidden]
                for k in range(n_hidden):
                    units[k] += value * row[k]
            for k in range(n_hidden):
                units[k] = np.tanh(units[k])
            scores[i] = dot(units, weights[bias + n_hidden :])


@kernel
def backward(X, hidden, forces, weights, n_hidden, gradient):
    """Add to `gradient` the derivative of ``forces @ scores`` by the weights."""
    n_features = X.shape[1]
    bias = n_features * n_hidden
    slopes = np.empty(n_hidden)
    for i in range(X.shape[0]):
        force = forces[i]
        if force == 0.0:
            continue
        if n_hidden == 0:
            for j in range(n_features):
                gradient[j] += force * X[i, j]
        else:
            for k in range(n_hidden):
                unit = hidden[i, k]
                slopes[k] = force * weights[bias + n_hidden + k] * (1.0 - unit * unit)
                gradient[bias + k] += slopes[k]
                gradient[bias + n_hidden + k] += force * unit
            for j in range(n_features):
                value = X[i, j]
                row = gradient[j * n_hidden : (j + 1) * n_hidden]
                for k in range(n_hidden):
                    row[k] += value * slopes[k]


def train_by_query(X, starts, queries, plan, weights, n_hidden, rate, adam):
    """Move the weights after each query, see `ascend`; return the number of effective pairs.

    Rows ``starts[p]`` to ``starts[p + 1]`` of X are the documents of query ``queries[p]`` of the plan.
    """
    longest = np.diff(starts).max(initial=0)
    of_query = make_workspace(longest), np.empty((longest, n_hidden)), np.empty((3, longest)), np.empty(weights.shape[0])
    return _train_by_query(X, starts, queries, plan, weights, n_hidden, rate, adam, of_query)


@kernel
def _train_by_query(X, starts, queries, plan, weights, n_hidden, rate, adam, of_query):
    buffers, hidden, by_doc, gradient = of_query
    scores, forces, bends = by_doc[0], by_doc[1], by_doc[2]
    pairs = 0
    for p in range(queries.shape[0]):
        rows = X[starts[p] : starts[p + 1]]
        n = rows.shape[0]
        forward(rows, weights, n_hidden, hidden, scores)
        forces[:n] = 0.0
        gradient[:] = 0.0
        pairs += query_lambdas(scores[:n], plan, queries[p], 1.0, forces[:n], bends[:n], buffers)
        backward(rows, hidden, forces, weights, n_hidden, gradient)
        ascend(weights, gradient, rate, adam)
    return pairs
