"""Grouping of rows by query, scores and slopes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from structrank import StructRankSVM, datasets, learners
from structrank._kernels import linear
from structrank.datasets.queries import group_by_query
from structrank.training.data import RankingData, kernel_matrix, score_rows


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


def test_an_integer_makes_all_rows_one_query():
    grouping = group_by_query(7, 4)
    assert (grouping.sizes.tolist(), grouping.ids.tolist()) == ([4], [7])


@pytest.mark.parametrize("kind", ["C", "F", "float32", "int", "csr", "rows of a larger array"])
def test_every_kind_of_matrix_is_scored(kind, rng):
    X = rng.integers(-3, 4, size=(20, 5)).astype(float)
    matrix = {
        "C": X,
        "F": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "int": X.astype(np.int16),
        "csr": scipy.sparse.csr_matrix(X),
        "rows of a larger array": np.repeat(X, 2, axis=0)[::2],
    }[kind]
    w = rng.normal(size=5)
    assert score_rows(matrix, w) == pytest.approx(X @ w)
    assert (kernel_matrix(matrix) is None) == (kind in ("F", "int", "rows of a larger array"))


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("n_docs", [1, 3, 8, 11])
def test_slopes_are_sums_of_rows_query_by_query(kind, n_docs, rng):
    X = rng.normal(size=(30, 5))
    rows = rng.permutation(30)[: 2 * n_docs]
    coefficients = rng.normal(size=2 * n_docs) * (rng.random(2 * n_docs) < 0.7)
    starts, slots = np.array([0, n_docs, 2 * n_docs]), np.array([2, 0])
    matrix = X if kind == "dense" else scipy.sparse.csr_matrix(X)
    chosen = kernel_matrix(matrix, 0, rows)
    out = np.zeros((3, 5))
    workspace = linear.make_workspace(2 * n_docs)
    linear.add_slopes(*chosen, 0, coefficients, starts, slots, 0, workspace, out)
    assert out[2] == pytest.approx(X[rows[:n_docs]].T @ coefficients[:n_docs])
    assert out[0] == pytest.approx(X[rows[n_docs:]].T @ coefficients[n_docs:])
    assert not out[1].any()
    out[:] = 0.0
    linear.add_slopes(*kernel_matrix(matrix), 5, coefficients, starts, slots, 0, workspace, out)
    assert out[2] == pytest.approx(X[5 : 5 + n_docs].T @ coefficients[:n_docs])
    before = out.copy()
    linear.add_slopes(*chosen, 0, np.zeros(2 * n_docs), starts, slots, 0, workspace, out)
    assert np.array_equal(out, before)


def test_matrices_are_not_copied(tmp_path):
    X = np.ones((10, 3), dtype=np.float32)
    assert np.shares_memory(RankingData(X, np.arange(10), qid=0).X, X)
    assert kernel_matrix(X)[0] is X
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(4, 2))
    assert isinstance(RankingData(mapped, [0, 1, 0, 1], qid=0).X, np.memmap)
    assert np.shares_memory(kernel_matrix(mapped)[0], mapped)
    sparse = scipy.sparse.csr_matrix(X)
    assert RankingData(sparse, np.arange(10), qid=0).X.data is sparse.data


def test_column_names_are_compared_if_both_have_names():
    X = np.arange(6.0).reshape(2, 3)

    def data(columns=None):
        return RankingData(X if columns is None else pd.DataFrame(X, columns=list(columns)), [0, 1], qid=0)

    data("abc").check_columns(data("abc"))
    for other in (data(), data([0, 1, 2]), data(["a", "b", "c"])):
        other.check_columns(data("abc"))
        data("abc").check_columns(other)
    with pytest.raises(ValueError, match="column 1 of X is 'c', but 'b' in training"):
        data("acb").check_columns(data("abc"))


def broken_sparse():
    """Yield broken sparse matrices of shape (4, 3) with the messages expected."""
    good = scipy.sparse.csr_matrix(np.arange(12.0).reshape(4, 3) + 1)
    for name, message in (("csr", "column index"), ("csc", "row index"), ("bsr", "column index"), ("coo", "index")):
        for wrong in (-1, 4, 2**30):
            matrix = good.asformat(name).copy()
            (matrix.col if name == "coo" else matrix.indices)[5] = wrong
            yield f"{name}-{wrong}", matrix, rf"X has the .*{message} {wrong} at entry 5; expected 0 to"
        if name != "coo":
            for what, change in (
                ("rise", lambda a: a.__setitem__(1, 10**6)),
                ("fall", lambda a: a.__setitem__(1, -3)),
                ("start", lambda a: a.__setitem__(0, 1)),
                ("end", lambda a: a.__setitem__(-1, 10**6)),
            ):
                matrix = good.asformat(name).copy()
                change(matrix.indptr)
                yield f"{name}-{what}", matrix, r"X.indptr is broken: expected"
    for name in ("csr", "csc"):
        for part in ("indptr", "indices"):
            for what, new in (("float", lambda a: a.astype(float)), ("2-d", lambda a: a[:, None])):
                matrix = good.asformat(name).copy()
                setattr(matrix, part, new(getattr(matrix, part)))
                yield f"{name}-{part}-{what}", matrix, rf"X\.{part} has type .*; expected integers, 1-d"
        matrix = good.asformat(name).copy()
        matrix.data = matrix.data[:, None]
        yield f"{name}-data-2-d", matrix, r"X\.data has shape \(12, 1\)"
    for wrong in ([0, 99], [-7, 1]):
        matrix = good.tolil()
        matrix.rows[0], matrix.data[0] = wrong, [1.0, 2.0]
        yield f"lil-{wrong}", matrix, "X has the column index .*; expected 0 to 2"
    matrix = good.tolil()
    matrix.data[1] = [1.0]
    yield "lil-short", matrix, r"X\.rows and X\.data differ"
    matrix = good.todia()
    matrix.data = matrix.data[:1]
    yield "dia-short", matrix, r"X\.data has shape \(1, 3\); expected a row for each of 6 offsets"


@pytest.mark.parametrize(("matrix", "message"), [pytest.param(*rest, id=name) for name, *rest in broken_sparse()])
def test_broken_sparse_matrices_are_rejected_by_every_entrance(matrix, message):
    y, qid = [0, 1, 0, 1], [0, 0, 1, 1]
    model = StructRankSVM("auc").fit(np.eye(4, 3), y, qid=qid)
    for use in (
        lambda: StructRankSVM("auc").fit(matrix, y, qid=qid),
        lambda: model.predict(matrix),
        lambda: learners.LambdaRank(max_epochs=1).fit(matrix, y, qid=qid),
        lambda: datasets.cut_shards(matrix, y, qid),
        lambda: datasets.scale_per_query(datasets.Dataset(matrix, y, qid)),
        lambda: datasets.clean(datasets.Dataset(matrix, y, qid), protocol="kdd08"),
        lambda: datasets.PerQueryScaler().fit(matrix),
        lambda: datasets.PerQueryScaler().fit(np.eye(4, 3)).transform(matrix, qid),
    ):
        with pytest.raises(ValueError, match=message):
            use()
