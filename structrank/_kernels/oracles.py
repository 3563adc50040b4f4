"""Compiled oracles: kernels that run one after another on a block of sorted queries and find its most violated rankings.

The kernels of an oracle (search, loss, coefficients, value) take one argument, a `Block` or a `GradedBlock`. A pass over the
data calls them by their addresses. So each is compiled by itself, when an oracle first needs it, and the pass is compiled once
for all oracles.
"""

from collections import namedtuple

import numpy as np
from numba import types

from structrank._support.compile import address_of, caller_of, kernel

Block = namedtuple("Block", "settings table scores starts n_relevant before coefficients losses values")
Block.__doc__ = """Queries with binary relevance.

Attributes
----------
settings : (3,) array of int
    Cut (the k of a loss, the depth of the lattice), the rank from which the discount is convex, and whether the oracle finds
    the predicted ranking, whose value does not include the loss.
table : (4, n) array
    Discount and credit of the loss, decay of phi_dorm and its sums; n is at least 2 more than the longest query.
scores, starts, n_relevant : arrays
    As for `structrank._kernels.interleavings`; for AUC as for `structrank._kernels.pairs`.
before, coefficients : (n_docs,) arrays
    Results: see `interleavings` and `feature_maps`.
losses, values : (n_queries,) arrays
    Results: the loss, and w.(phi(y) - phi(y*)) + loss.
"""

GradedBlock = namedtuple(
    "GradedBlock",
    "settings table scores starts grades grade_starts gains ranking coefficients losses values "
    "block_sizes block_firsts block_previous cell_ends cell_counts cell_sources cell_discounts",
)
GradedBlock.__doc__ = """Queries with graded labels.

Attributes
----------
settings : (3,) array of int
    As for `Block`, but the second number is whether the loss is a cascade.
table : (4, n) array
scores, starts, grades, ranking : arrays
    As for `structrank._kernels.graded`; AUC has no ranking.
grade_starts : (n_queries + 1,) array
    Start of the entries of `gains` of each query.
gains : (n_grades,) array
    Gain of each grade of each query.
coefficients, losses, values
    As for `Block`.
block_sizes, ..., cell_discounts : arrays
    From `structrank._kernels.counts.make_lattice`, or `NO_LATTICE`.
"""

# What oracles other than that of counts have as lattice.
NO_LATTICE = (
    *(np.empty((0, 0), np.int64), np.empty(0, np.int64), np.empty((0, 0), np.int32)),
    *(np.empty(0, np.int64), np.empty((0, 0), np.int32), np.empty((0, 0), np.int32), np.empty((0, 0))),
)

_INTS, _FLOATS, _TABLE = types.int64[::1], types.float64[::1], types.float64[:, ::1]
_PLACES = types.int32[:, ::1]
_LATTICE = (types.int64[:, ::1], _INTS, _PLACES, _INTS, _PLACES, _PLACES, _TABLE)
_BLOCK = types.NamedTuple((_INTS, _TABLE, _FLOATS, _INTS, _INTS, _INTS, _FLOATS, _FLOATS, _FLOATS), Block)
_GRADED = types.NamedTuple(
    (_INTS, _TABLE, _FLOATS, _INTS, types.int32[::1], _INTS, _FLOATS, _INTS, _FLOATS, _FLOATS, _FLOATS, *_LATTICE), GradedBlock
)

run = caller_of(types.none(_BLOCK))
run_graded = caller_of(types.none(_GRADED))


def addresses(kernels, graded):
    """Return the addresses of the kernels of an oracle as an array, compiled if necessary."""
    return np.array([address_of(function, types.none(_GRADED if graded else _BLOCK)) for function in kernels])


def call(kernels, block):
    """Call kernels of an oracle from Python."""
    is_graded = isinstance(block, GradedBlock)
    (_call_graded if is_graded else _call)(addresses(kernels, is_graded), block)


@kernel
def _call(steps, block):
    for step in steps:
        run(step, (block,))


@kernel
def _call_graded(steps, block):
    for step in steps:
        run_graded(step, (block,))


def make_block(**known):
    """Make a `Block`; arrays that are not given are empty."""
    empty = {name: np.empty(0) for name in Block._fields}
    integers = {name: np.empty(0, np.int64) for name in ("starts", "n_relevant", "before")}
    return Block(**{**empty, **integers, "settings": np.zeros(3, np.int64), "table": np.empty((4, 0)), **known})
