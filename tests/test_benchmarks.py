"""Every section of the benchmarks runs at toy size. No test depends on timings."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture
def importable(monkeypatch):
    """Make the benchmarks importable; they are not installed."""
    monkeypatch.syspath_prepend(str(ROOT))


def write_fold(folder):
    lines = [
        f"{(row + query) % 3 == 0:d} qid:{query} 1:{(7 * row + query) % 5} 2:{row % 4}\n"
        for query in range(6)
        for row in range(8)
    ]
    for part in ("train.txt", "test.txt"):
        (folder / part).write_text("".join(lines))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "set").mkdir()
    write_fold(folder / "set")
    command = [sys.executable, "-m", "benchmarks", "--smoke", "--out", folder / "bench.json", "--folder", folder / "set"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "bench.json").read_text()), done.stdout


def rows(results, section):
    return results[0]["sections"][section]["rows"]


def is_spread(value):
    return 0 < value["min"] <= value["median"] <= value["max"]


def test_every_section_runs_and_is_printed(results):
    found, printed = results
    assert set(found["sections"]) == {"passes", "training", "paths", "dlib", "peers", "tiny"}
    for section in found["sections"].values():
        assert section["title"] in printed
        assert section["rows"]


def test_the_machine_and_the_versions_are_recorded(results):
    machine = results[0]["machine"]
    assert machine["cores"] >= 1
    assert machine["numpy"].count(".") >= 1
    assert {"date", "processor", "load", "blas", "numba", "lightgbm", "dlib"} <= set(machine)


def test_every_kind_of_pass_is_compared_with_a_reference(results):
    kinds = [row["pass"] for row in rows(results, "passes")]
    assert {"auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm", "combo of three", "map, float32"} <= set(kinds)
    assert {row["threads"] for row in rows(results, "passes")} == {1, 2}
    assert all(is_spread(row["ratio"]) and is_spread(row["seconds"]) for row in rows(results, "passes"))


def test_training_reaches_the_gap_on_every_data_set(results):
    trained = rows(results, "training")
    assert list(dict.fromkeys(row["data"] for row in trained))[-2:] == ["digits", "folder"]
    assert all(row["relative gap"] <= 1e-3 and row["passes"] >= 2 and 0 <= row["qp share"] <= 1 for row in trained)
    assert all(is_spread(row["ratio"]) for row in rows(results, "paths"))


def test_peers_rank_test_queries(results):
    peers = rows(results, "peers")
    assert {"StructRank, MAP", "LinearSVC, 200 pairs", "LightGBM, lambdarank", "XGBoost, gblinear"} <= {
        row["learner"].partition(": left out")[0] for row in peers
    }
    assert all(0 < row["test MAP"] <= 1 for row in peers if "left out" not in row["learner"])
    (first, *_) = rows(results, "dlib")
    if "note" not in first:
        assert first["objective"] <= first["objective of dlib"]


@pytest.mark.usefixtures("importable")
def test_sampled_pairs_are_distinct_and_within_one_query():
    from benchmarks.data import made
    from benchmarks.peers import sample_pairs

    train = made((10, 9, 3)).train
    every = {
        (i, j)
        for i in range(len(train.y))
        for j in range(len(train.y))
        if train.qid[i] == train.qid[j] and train.y[i] > 0 and train.y[j] == 0
    }
    assert set(zip(*(side.tolist() for side in sample_pairs(train, 10**6)), strict=True)) == every
    some = list(zip(*(side.tolist() for side in sample_pairs(train, 50)), strict=True))
    assert len(set(some)) == 50
    assert set(some) < every


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "no-such-folder/bench.json"], "there is no folder no-such-folder"),
        (["--folder", "no-such-folder"], "there is no such folder"),
        (["--repeats", "0"], "expected at least 1"),
        (["--sections", "all"], "invalid choice"),
    ],
)
@pytest.mark.usefixtures("importable")
def test_invalid_arguments_are_rejected_before_anything_is_measured(arguments, message, tmp_path, monkeypatch, capsys):
    from benchmarks.__main__ import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(arguments)
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out
