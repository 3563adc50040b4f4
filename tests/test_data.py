"""Grouping by query and blocks of rows."""

import numpy as np
import pytest
import scipy.sparse

from structrank.data import RankingData, block_of, group_by_query


@pytest.mark.parametrize(
    "qid",
    [
        np.array([3, 3, 1, 1, 1, 2]),
        np.array([3, 1, 3, 2, 1, 3]),
        ["b", "b", "a", "c", "a", "b"],
        [(1, "x"), (2, "y"), (1, "x"), (1, "x"), (3, "z"), (2, "y")],
        [1, "1", 1.5, "1", 1, 1.5],
        ["z", (1, 2), "z", (1, 2), None.__class__, "z"],
        np.array([1.5, 2.5, 1.5, 1.5, 2.5, 2.5]),
        np.array(["2024-01-01", "2024-01-02"] * 3, dtype="datetime64[D]"),
    ],
    ids=["grouped", "mixed order", "text", "tuples", "mixed types", "tuples and text", "floats", "dates"],
)
def test_rows_are_grouped_by_id_in_order_of_appearance(qid):
    grouping = group_by_query(qid, 6)
    values = list(qid)
    expected_ids = list(dict.fromkeys(values))
    assert list(grouping.ids) == expected_ids
    for number, one in enumerate(expected_ids):
        rows = grouping.rows[grouping.indptr[number] : grouping.indptr[number + 1]]
        assert rows.tolist() == [row for row, value in enumerate(values) if value == one]
    assert [expected_ids[q] for q in grouping.query_of_row()] == values


def test_no_ids_make_one_query():
    grouping = group_by_query(None, 4)
    assert grouping.sizes.tolist() == [4]


@pytest.mark.parametrize("kind", ["C", "F", "float32", "int", "csr", "rows of a larger array"])
def test_blocks_score_and_sum_the_chosen_rows(kind, rng):
    X = rng.integers(-3, 4, size=(20, 5)).astype(float)
    given = {
        "C": X,
        "F": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "int": X.astype(np.int16),
        "csr": scipy.sparse.csr_matrix(X),
        "rows of a larger array": np.repeat(X, 2, axis=0)[::2],
    }[kind]
    rows = np.array([4, 5, 6, 0, 19, 7])
    w = rng.normal(size=5)
    scores = np.empty(6)
    block = block_of(given, rows)
    block.scores(w, scores)
    assert scores == pytest.approx(X[rows] @ w)
    out = np.zeros((3, 5))
    coefficients = np.array([1.0, -2.0, 0.0, 0.5, 3.0, 1.0])
    block.add_slopes(coefficients, np.array([0, 2, 5, 6]), np.array([0, 2, 2]), out)
    assert out[0] == pytest.approx(X[[4, 5]].T @ coefficients[:2])
    assert out[1] == pytest.approx(np.zeros(5))
    assert out[2] == pytest.approx(X[rows[2:]].T @ coefficients[2:])


def test_a_matrix_that_can_be_used_in_place_is_not_copied(tmp_path):
    X = np.ones((10, 3), dtype=np.float32)
    assert np.shares_memory(RankingData(X, np.arange(10)).X, X)
    assert block_of(X, np.arange(3)).X is X
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(4, 2))
    assert isinstance(RankingData(mapped, [0, 1, 0, 1]).X, np.memmap)
    sparse = scipy.sparse.csr_matrix(X)
    assert RankingData(sparse, np.arange(10)).X.data is sparse.data
