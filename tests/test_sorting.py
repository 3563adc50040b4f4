"""The sort of the kernels against NumPy's stable sort."""

import itertools

import numpy as np
import pytest

from structrank._kernels.sorting import make_workspace, sort_descending, sort_queries

LENGTHS = [1, 2, 3, 4, 7, 31, 32, 96, 191, 192, 193, 200, 385, 1000]
KEYS = {
    "far apart": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "a tenth tied": lambda rng, n: rng.normal(size=n)[np.where(rng.random(n) < 0.1, rng.integers(0, n, n), np.arange(n))],
    "equal in single precision": lambda rng, n: 1.0 + 1e-12 * rng.integers(0, 50, n),
    "beyond single precision": lambda rng, n: rng.choice([1e300, 2e300, -1e300, 1e-300, 0.0, -0.0, np.inf, -np.inf], n),
    "sorted but for one": lambda rng, n: np.roll(-np.arange(n, dtype=float), 1),
    "all the same": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", KEYS)
def test_sorting_is_stable_and_exact(kind, n, index_type, rng):
    keys = KEYS[kind](rng, n)
    expected = np.argsort(-keys, kind="stable")
    # Entries outside the range must not change.
    padded, index = np.concatenate([[9.0], keys, [9.0]]), np.arange(-1, n + 1, dtype=index_type)
    sort_descending(padded, index, 1, n + 1, make_workspace(n, index.dtype))
    assert index.tolist() == [-1, *expected, n]
    assert padded.tolist() == [9.0, *keys[expected], 9.0]


def test_keys_with_nan_keep_their_own_indices(rng):
    workspace = make_workspace(192, np.dtype(np.int32))
    sort_descending(rng.normal(size=192), np.arange(192, dtype=np.int32), 0, 192, workspace)
    for n in (2, 5, 40):
        keys = rng.choice([np.nan, 1.0, 2.0, np.inf], n)
        index = np.arange(n, dtype=np.int32)
        sort_descending(keys, index, 0, n, workspace)
        assert index.min() >= 0
        assert index.max() < n


@pytest.mark.parametrize("n_levels", [1, 5, 100, 10_000])
def test_whole_queries_are_sorted_by_score_and_ties_by_their_ranks_from_any_order(n_levels, rng):
    starts = np.concatenate([[0], np.cumsum([1, 2, 30, 192, 500])])
    scores = rng.integers(0, n_levels, starts[-1]).astype(float)  # integers, which are centred exactly
    queries = [slice(start, stop) for start, stop in itertools.pairwise(starts)]
    ranks, order = (np.concatenate([rng.permutation(scores[q].size) for q in queries]).astype(np.int32) for _ in range(2))
    found, workspace = np.empty(scores.shape[0]), make_workspace(500, np.dtype(np.int32))
    sort_queries(scores, starts, np.zeros(5, dtype=np.int64), order, ranks, found, workspace, False)
    for q in queries:
        assert order[q].tolist() == np.lexsort((ranks[q], -scores[q])).tolist()
        assert np.ptp(found[q] - scores[q][order[q]]) == 0.0
