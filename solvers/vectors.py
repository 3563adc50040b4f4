"""Compiled vector operations: BLAS threads would keep cores busy for milliseconds after short calls."""

import numpy as np

from structrank._support import lanes
from structrank._support.compile import kernel


@kernel
def dot(x, y):
    """Return x.y."""
    return lanes.dot(x, y)


@kernel
def add(x, factor, y):
    """Add factor y to x."""
    for i in range(x.shape[0]):
        x[i] += factor * y[i]


@kernel
def squared_distance(x, y):
    """Return |x - y|^2."""
    return lanes.squared_distance(x, y)


@kernel
def combine(factors, rows):
    """Return sum_t factors_t rows_t."""
    total = np.zeros(rows.shape[1])
    for t in range(rows.shape[0]):
        if factors[t] != 0.0:
            add(total, factors[t], rows[t])
    return total
