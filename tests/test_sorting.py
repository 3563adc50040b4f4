"""The sort of the kernels against NumPy's stable sort."""

import numpy as np
import pytest

from structrank._kernels.sorting import make_workspace, sort_descending

LENGTHS = [1, 2, 3, 4, 7, 31, 32, 96, 191, 192, 193, 200, 385, 1000]
KEYS = {
    "far apart": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 5, n).astype(float),
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
