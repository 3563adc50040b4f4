"""Training on a cluster is bit-identical to training on one machine, even if a worker is killed."""

import gc
import itertools
import logging
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import structrank
from structrank import StructRankSVM
from structrank.datasets import Shards, cut_shards, write_shards
from structrank.datasets.shards import RowShard
from structrank.training import checkpoint

dask = pytest.importorskip("dask", reason="Dask (extra 'dask') is not installed")
distributed = pytest.importorskip("distributed", reason="Dask (extra 'dask') is not installed")

from structrank.distributed import DaskBackend  # noqa: E402

DOCS_PER_SHARD = 90


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(60), rng.integers(3, 12, 60))
    X = rng.standard_normal((qid.size, 6))
    y = (X[:, 0] - X[:, 1] + rng.standard_normal(qid.size) > 0.8).astype(np.int64)
    return {"X": X, "y": y, "qid": qid, "sample_weight": rng.integers(1, 4, 60)[qid].astype(float)}


@pytest.fixture(scope="module")
def expected(rows):
    """The model of one machine; trained first, so that workers find the compiled functions in the cache."""
    return train(cut_shards(**rows, docs_per_shard=DOCS_PER_SHARD))


@pytest.fixture(scope="module")
def client(expected, tmp_path_factory):
    with (
        distributed.LocalCluster(
            n_workers=3,  # two are killed and not waited for; one is enough
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            local_directory=str(tmp_path_factory.mktemp("cluster")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def train(*args, criterion="map", **kwargs):
    return StructRankSVM(criterion, C=5.0).fit(*args, **kwargs)


def assert_same(model, expected):
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.certificate_ == expected.certificate_
    assert model.n_iter_ == expected.n_iter_


def test_training_on_arrays_equals_one_machine(client, rows, expected):
    assert expected.n_iter_ > 3
    model = train(**rows, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    assert_same(model, expected)
    frame = pd.DataFrame(rows["X"], columns=list("abcdef"))
    model = train(**rows | {"X": frame}, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    assert_same(model, expected)
    assert model.feature_names_in_.tolist() == list("abcdef")


def test_columns_are_scaled_there_as_on_one_machine(client, rows):
    given = {**rows, "X": rows["X"] * [1.0, 1e4, 1.0, 1e-4, 1.0, 1.0]}
    expected = StructRankSVM("map", scale="std").fit(cut_shards(**given, docs_per_shard=DOCS_PER_SHARD))
    model = StructRankSVM("map", scale="std").fit(**given, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    assert_same(model, expected)
    assert np.array_equal(model.scale_, expected.scale_)
    assert model.health_ == expected.health_


@pytest.mark.parametrize("settings", [{"criterion": "ndcg"}, {"criterion": "err", "bound": "ramp"}])
def test_graded_labels_are_trained_there_as_on_one_machine(client, rows, settings):
    graded = {**rows, "y": rows["y"] * (1 + np.arange(rows["y"].size) % 3)}
    settings = {**settings, "k": 3, "relevant_from": None, "C": 5.0}
    expected = StructRankSVM(**settings).fit(cut_shards(**graded, docs_per_shard=DOCS_PER_SHARD))
    model = StructRankSVM(**settings).fit(**graded, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    assert_same(model, expected)
    assert model.rounds_ == expected.rounds_
    assert model.notes_ == expected.notes_


def test_a_killed_run_resumes_on_the_cluster_or_on_one_machine(client, rows, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    backend = DaskBackend(client, docs_per_shard=DOCS_PER_SHARD)

    def killed(iteration):
        if iteration.iteration == 3:
            raise RuntimeError("killed")

    def begin(folder):
        with pytest.raises(RuntimeError, match="killed"):
            train(**rows, backend=backend, checkpoint=folder, callback=killed)

    begin(tmp_path / "cluster")
    assert_same(train(**rows, backend=backend, checkpoint=tmp_path / "cluster"), expected)
    begin(tmp_path / "local")
    shards = cut_shards(**rows, docs_per_shard=DOCS_PER_SHARD)
    assert_same(train(shards, checkpoint=tmp_path / "local"), expected)
    with pytest.raises(ValueError, match="another run: its digest of the data is"):
        train(**rows | {"X": rows["X"] + 0.1}, backend=backend, checkpoint=tmp_path / "local")


def test_rows_may_be_in_any_order_and_ids_of_any_type(client, rows):
    order = np.random.default_rng(0).permutation(rows["y"].size)
    mixed = {name: value[order] for name, value in rows.items()}
    mixed["qid"] = [("query", int(query)) for query in mixed["qid"]]
    on_cluster = train(**mixed, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    ids = np.array([f"query {query}" for _, query in mixed["qid"]])
    assert_same(on_cluster, train(cut_shards(**mixed | {"qid": ids}, docs_per_shard=DOCS_PER_SHARD)))


def test_training_on_files_equals_one_machine(client, rows, expected, tmp_path):
    shards = write_shards(tmp_path, **rows, docs_per_shard=DOCS_PER_SHARD)
    assert len(shards) > 4
    assert_same(train(shards, backend=DaskBackend(client)), expected)


def test_a_path_on_the_cluster_equals_one_machine(client, rows):
    shards = cut_shards(**rows, docs_per_shard=DOCS_PER_SHARD)
    model = StructRankSVM(["auc", "mrr"], slack="shared")
    local = model.fit_path(shards, Cs=[1.0, 20.0])
    for found, expected in zip(model.fit_path(shards, Cs=[1.0, 20.0], backend=DaskBackend(client)), local, strict=True):
        assert_same(found, expected)


def test_the_ramp_bound_on_the_cluster_equals_one_machine(client, rows):
    shards = cut_shards(**rows, docs_per_shard=DOCS_PER_SHARD)
    local = StructRankSVM("mrr", bound="ramp", max_iter=200).fit(shards)
    assert_same(StructRankSVM("mrr", bound="ramp", max_iter=200).fit(shards, backend=DaskBackend(client)), local)


def frame_of(rows, partitions):
    import dask.dataframe as dd

    frame = pd.DataFrame(rows["X"], columns=list("abcdef"))
    frame = frame.assign(label=rows["y"], query=rows["qid"], w=rows["sample_weight"])
    parts = [dask.delayed(frame[np.isin(rows["qid"], some)]) for some in partitions]
    return dd.from_delayed(parts, meta=frame.head(0), verify_meta=False)


def columns_of(frame):
    return {"X": frame[list("abcdef")], "y": frame["label"], "qid": frame["query"], "sample_weight": frame["w"]}


def test_training_on_a_dask_frame_equals_training_on_its_partitions(client, rows):
    # The third partition is empty and skipped.
    partitions = [np.arange(20), np.arange(20, 45), np.array([], dtype=int), np.arange(45, 60)]
    filled = [{name: value[np.isin(rows["qid"], some)] for name, value in rows.items()} for some in partitions if some.size]
    local = train(Shards([RowShard(**some, rows=slice(None), name="part") for some in filled]))
    model = train(**columns_of(frame_of(rows, partitions)), backend=DaskBackend(client))
    assert_same(model, local)
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == list("abcdef")


def test_training_on_dask_arrays_equals_training_on_their_chunks(client, rows):
    import dask.array as da

    cuts = np.searchsorted(rows["qid"], [0, 25, 60])
    chunks = tuple(np.diff(cuts).tolist())
    pieces = [slice(low, high) for low, high in itertools.pairwise(cuts)]
    local = train(Shards([RowShard(**{k: v[s] for k, v in rows.items()}, rows=slice(None), name="part") for s in pieces]))
    arrays = {name: da.from_array(value, chunks=(chunks, (2, 4)) if name == "X" else chunks) for name, value in rows.items()}
    assert_same(train(**arrays, backend=DaskBackend(client)), local)


@pytest.mark.parametrize("kind", ["arrays", "files"])
def test_the_model_does_not_change_if_a_worker_is_killed(client, rows, expected, tmp_path, kind):
    backend = DaskBackend(client, docs_per_shard=DOCS_PER_SHARD)
    given = {"X": write_shards(tmp_path, **rows, docs_per_shard=DOCS_PER_SHARD)} if kind == "files" else rows
    killed = []

    def kill(iteration):
        if iteration.iteration == 2:
            held = {address: keys for address, keys in client.has_what().items() if keys}
            victim = max(held, key=lambda address: len(held[address]))
            pid = client.run(os.getpid, workers=[victim])[victim]
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # on Windows, SIGTERM kills
            killed.append(pid)

    model = train(**given, backend=backend, callback=kill)
    assert len(killed) == 1
    assert_same(model, expected)


def test_a_query_in_two_partitions_is_rejected(client, rows):
    frame = frame_of(rows, [np.arange(30), np.arange(29, 60)])
    with pytest.raises(ValueError, match=r"query 29 is in partition 0 and in partition 1; .* shuffle\(on="):
        train(**columns_of(frame), backend=DaskBackend(client))


def test_partitions_of_X_y_and_qid_must_agree(client, rows):
    backend = DaskBackend(client)
    given = columns_of(frame_of(rows, [np.arange(30), np.arange(30, 60)]))
    with pytest.raises(ValueError, match=r"y is a ndarray but X is a dask collection of 2 partitions"):
        train(**given | {"y": rows["y"]}, backend=backend)
    other = columns_of(frame_of(rows, [np.arange(20), np.arange(20, 60)]))
    with pytest.raises(ValueError, match=r"partition [01]: y has \d+ entries but X has \d+ rows"):
        train(**given | {"y": other["y"]}, backend=backend)
    other = columns_of(frame_of(rows, [np.arange(60)]))
    with pytest.raises(ValueError, match=r"qid has 1 partitions but X is a dask collection of 2 partitions"):
        train(**given | {"qid": other["qid"]}, backend=backend)
    empty = columns_of(frame_of(rows, [[], []]))
    with pytest.raises(ValueError, match="X has no rows in any partition"):
        train(**empty, backend=backend)


def test_errors_on_a_worker_are_raised_in_the_caller(client, rows):
    X = rows["X"].copy()
    X[-1, 2] = np.nan
    with pytest.raises(ValueError, match=r"shard \d: X contains NaN at row \d+, column 2"):
        train(**rows | {"X": X}, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    with pytest.raises(ValueError, match="y is None"):
        train(rows["X"], backend=DaskBackend(client))
    with pytest.raises(ValueError, match="y given, but X is Shards"):
        train(cut_shards(**rows), rows["y"], backend=DaskBackend(client))


def test_invalid_settings_are_rejected(client):
    with pytest.raises(ValueError, match="client='tcp://' is not valid"):
        DaskBackend("tcp://")
    with pytest.raises(ValueError, match="docs_per_shard=0 is not valid"):
        DaskBackend(client, docs_per_shard=0)


def test_a_failed_fit_leaves_no_data_on_the_workers(client, rows):
    X = rows["X"].copy()
    X[-1, 0] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            train(**{**rows, "X": X}, backend=DaskBackend(client, docs_per_shard=DOCS_PER_SHARD))
    deadline = time.monotonic() + 30.0
    while any(client.has_what().values()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.1)
    assert not any(client.has_what().values())


def test_a_closed_client_is_rejected(rows):
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1) as closed:
        pass
    with pytest.raises(ValueError, match="client is closed; expected one that is connected"):
        train(**rows, backend=DaskBackend(closed))


def n_tasks(client, n_expected):
    """Return the number of tasks on the scheduler; it learns of released futures with a delay."""
    for _ in range(50):
        n = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if n == n_expected:
            break
        time.sleep(0.1)
    return n


def test_workers_without_structrank_or_with_another_version_are_an_error(client, rows):
    backend, before = DaskBackend(client, docs_per_shard=DOCS_PER_SHARD), n_tasks(client, 0)
    worker = next(iter(client.nthreads()))
    client.run(setattr, structrank, "__version__", "0.0.1", workers=[worker])
    try:
        with pytest.raises(RuntimeError, match=f"worker {worker} has structrank 0.0.1, but this process has"):
            train(**rows, backend=backend)
    finally:
        client.run(setattr, structrank, "__version__", structrank.__version__, workers=[worker])
    hide = lambda: __import__("sys").modules.update(hidden=__import__("structrank"), structrank=None)  # noqa: E731
    client.run(hide, workers=[worker])
    try:
        with pytest.raises(RuntimeError, match=f"worker {worker} cannot import structrank .* Install structrank"):
            train(**rows, backend=backend)
    finally:
        client.run(lambda: __import__("sys").modules.update(structrank=__import__("hidden")), workers=[worker])
    assert n_tasks(client, before) == before


def test_a_cluster_without_workers_is_an_error(rows, monkeypatch):
    monkeypatch.setattr(structrank.distributed, "_WITHOUT_WORKERS", 0.3)
    monkeypatch.setattr(structrank.distributed, "_LOOK_EVERY", 0.1)
    settings = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(n_workers=0, **settings) as cluster, distributed.Client(cluster) as client:
        with pytest.raises(RuntimeError, match=r"no workers for 0.3 seconds. Start workers and call fit again"):
            train(**rows, backend=DaskBackend(client))
        assert n_tasks(client, 0) == 0
        cluster.scale(1)
        client.wait_for_workers(1)
        with pytest.raises(RuntimeError, match="no workers"):
            train(**rows, backend=DaskBackend(client), callback=lambda _: cluster.scale(0))
        assert n_tasks(client, 0) == 0


CLUSTER = """
import logging, sys
import distributed

settings = {"processes": False, "protocol": "tcp", "dashboard_address": None, "silence_logs": logging.CRITICAL}
with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **settings) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_a_lost_scheduler_is_an_error(rows, monkeypatch):
    monkeypatch.setattr(structrank.distributed, "_RECONNECT", 0.5)
    monkeypatch.setattr(structrank.distributed, "_LOOK_EVERY", 0.1)
    command = [sys.executable, "-c", CLUSTER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            with distributed.Client(process.stdout.readline().strip()) as client:
                with pytest.raises(
                    ConnectionError, match=r"connection to the Dask scheduler is lost, .* Start the cluster again"
                ):
                    train(**rows, backend=DaskBackend(client, DOCS_PER_SHARD), callback=lambda _: process.kill())
                with pytest.raises((ConnectionError, ValueError), match=r"lost|client is"):
                    train(**rows, backend=DaskBackend(client, DOCS_PER_SHARD))
        finally:
            process.kill()
