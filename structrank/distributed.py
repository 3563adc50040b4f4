"""Training on a Dask cluster: shards live on the workers, each pass sends w out and gets planes back."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import scipy.sparse

import structrank
from structrank._support import checks
from structrank.datasets.shards import DOCS_PER_SHARD, RowShard, Shards, check_whole_queries, cut_shards, query_ids
from structrank.training.sources import ShardSource, check_alone, is_dask

# Dask's own limit on reruns of a task whose worker died.
_MOST_LOSSES = 3
# Seconds between two looks at the cluster while tasks run, and limits on how long a scheduler may be unreachable and a cluster
# may be without workers. Dask itself would wait forever.
_LOOK_EVERY, _RECONNECT, _WITHOUT_WORKERS = 2.0, 20.0, 45.0
_LOST = (
    "the connection to the Dask scheduler is lost, and with it the data on the workers. Start the cluster again and call fit "
    "with a new client; with a checkpoint it resumes."
)


class DaskBackend:
    """Train on the workers of a Dask cluster: ``model.fit(X, y, qid=qid, backend=DaskBackend(client))``.

    The model is bit-identical to that of `fit` on one machine for the same shards, for any number of workers. Training survives
    the death of a worker: Dask rebuilds its shards elsewhere, from files or from the graph of a collection; arrays of this
    process are sent again. It ends with an error if the scheduler is lost, if no worker is left, or if a worker has no
    structrank or another version when training starts; with a checkpoint, the same call resumes it.

    `fit` accepts as X:

    - `structrank.datasets.Shards` of files that this process and the workers can read; no y and qid.
    - A dask DataFrame or Array, with y, qid and sample_weight as dask Series or Arrays with the same partitions. Each
      partition is a shard. A query in two partitions is an error; ``frame.shuffle(on=...)`` brings its rows together.
    - Arrays of this process. They are cut into shards and sent to the workers;
      ``fit(datasets.cut_shards(X, y, qid, docs_per_shard=...))`` returns the same model without a cluster.

    Parameters
    ----------
    client : distributed.Client
    docs_per_shard : int, default 131072
        Maximum number of documents of a shard, for arrays.
    """

    def __init__(self, client: Any, docs_per_shard: int = DOCS_PER_SHARD) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ImportError("DaskBackend needs Dask: pip install structrank[dask]") from error
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise ValueError(f"client={client!r} is not valid: expected a distributed.Client that is not asynchronous.")
        self.client = client
        self.docs_per_shard = checks.check_number("docs_per_shard", docs_per_shard, at_least=1, integer=True)

    def executor(self, X: Any, y: Any, qid: Any, sample_weight: Any) -> ClusterExecutor:
        """Return the executor of a training set on the cluster, see `structrank.training.executor`."""
        if self.client.status != "running":
            raise ValueError(f"client is {self.client.status}; expected one that is connected to a cluster.")
        checks.check_qid_is_no_feature(checks.column_names(X))
        checks.check_column_names(checks.column_names(X))
        with _losses_named(self.client):
            _check_workers(self.client)
            return ClusterExecutor(self.client, self._sources(X, y, qid, sample_weight))

    def _sources(self, X, y, qid, sample_weight):
        if is_dask(X):
            return self._partitions(X, y, qid, sample_weight)
        if isinstance(X, Shards):
            check_alone(X, y, qid, sample_weight)
        else:
            X = self._cut(X, y, qid, sample_weight)
        # Workers open files themselves; arrays must be sent.
        sources = [(shard, ShardSource(shard)) for shard in X]
        return [_Sent(self.client, source) if isinstance(shard, RowShard) else source for shard, source in sources]

    def _cut(self, X, y, qid, sample_weight):
        X = checks.as_matrix(X)
        n_docs = X.shape[0]
        y = checks.as_labels(y, n_docs)
        qid = checks.as_query_ids(qid, n_docs)
        if sample_weight is not None:
            sample_weight = checks.as_column(sample_weight, n_docs, "sample_weight")
        return cut_shards(X, y, qid, sample_weight, self.docs_per_shard)

    def _partitions(self, X, y, qid, sample_weight):
        """Make each partition that has rows a shard; return their origins."""
        from dask import delayed

        if hasattr(X, "rechunk") and X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        columns = {"X": X, "y": y, "qid": qid}
        if sample_weight is not None:
            columns["sample_weight"] = sample_weight
        for name, value in columns.items():
            if not is_dask(value) or value.npartitions != X.npartitions:
                found = f"has {value.npartitions} partitions" if is_dask(value) else f"is a {type(value).__name__}"
                raise ValueError(
                    f"{name} {found} but X is a dask collection of {X.npartitions} partitions; expected {name} to have "
                    "the same partitions."
                )
        parts = zip(*(np.ravel(value.to_delayed()) for value in columns.values()), strict=True)
        sources = self.client.compute([delayed(_partition)(number, *part) for number, part in enumerate(parts)])
        asked = [self.client.submit(_query_ids, source, pure=False) for source in sources]
        try:
            _wait(self.client, asked)
            found = self.client.gather(asked)
        except BaseException:
            _release(sources)
            raise
        finally:
            _release(asked)
        ids = {number: some for number, some in enumerate(found) if len(some)}
        if not ids:
            raise ValueError("X has no rows in any partition; expected documents.")
        names = [f"partition {number}" for number in ids]
        check_whole_queries(list(ids.values()), names, "Bring the rows of each query together with shuffle(on=...)")
        return [sources[number] for number in ids]


class ClusterExecutor:
    """Functions of shards as tasks of a cluster; see `structrank.training.executor`.

    Workers hold only results of tasks: Dask places them, recomputes the results of a dead worker, and releases them with the
    futures here. Results are gathered in the order of the shards.
    """

    chunks = map

    def __init__(self, client, sources):
        self._client, self.sources, self._kept = client, sources, []

    def map(self, function, *lists, keep=False):
        """Run the function on the items of the lists; return the results, or with `keep` what stands for them."""
        tasks = [_Task(self._client, function, items) for items in zip(*lists, strict=False)]
        if keep:
            self._kept += tasks
        with _losses_named(self._client):
            for task in tasks:
                task.renew()
            if keep:
                return tasks
            try:
                return self._gather(tasks)
            finally:
                _release(tasks)

    def _gather(self, tasks):
        losses = [0] * len(tasks)
        while True:
            futures = [task.future for task in tasks]
            try:
                _wait(self._client, futures)
                return self._client.gather(futures)
            except CancelledError:
                _check_connection(self._client)
                _await_workers(self._client)
                # Dask cannot recompute data sent from this process; it cancels the tasks that depend on them.
                lost = [number for number, future in enumerate(futures) if future.cancelled()]
                for number in lost:
                    losses[number] += 1
                    if losses[number] > _MOST_LOSSES:
                        raise
                    for made in dict.fromkeys(tasks[number].chain()):
                        made.renew()
                if not lost:
                    raise

    def close(self):
        """Release what the workers hold."""
        _release([*self._kept, *(source for source in self.sources if hasattr(source, "release"))])
        self.sources.clear()  # a traceback may hold the list


def _check_workers(client):
    """Raise unless there are workers, and all have this version of structrank."""
    probe = client.submit(os.getpid, pure=False)  # a cluster that adapts starts its workers for a task
    try:
        _await_workers(client)
    finally:
        probe.release()
    # Functions of this package cannot be sent to workers that do not have it, and functions of other modules can.
    found = client.run(importlib.import_module, "structrank", on_error="return")
    for worker, error in found.items():
        if isinstance(error, ImportError):
            raise RuntimeError(
                f"the worker {worker} cannot import structrank ({type(error).__name__}: {error}). Install structrank "
                f"{structrank.__version__}, the version of this process, on all workers."
            )
    versions = client.run(_version, on_error="return")
    for worker, version in versions.items():
        if isinstance(version, str) and version != structrank.__version__:
            raise RuntimeError(
                f"the worker {worker} has structrank {version}, but this process has {structrank.__version__}. Install the "
                "same version on all workers."
            )


def _await_workers(client):
    since = time.monotonic()
    while not client.nthreads():
        _check_alone(since)
        time.sleep(0.1)


def _check_alone(since):
    if time.monotonic() - since > _WITHOUT_WORKERS:
        raise RuntimeError(
            f"the cluster has had no workers for {_WITHOUT_WORKERS:g} seconds. Start workers and call fit again; with a "
            "checkpoint it resumes."
        )


def _wait(client, futures):
    """Wait until tasks have ended; raise if the scheduler is lost or no worker is left."""
    from distributed import wait

    since = time.monotonic()
    while True:
        try:
            wait(futures, timeout=_LOOK_EVERY)
            return
        except TimeoutError:
            _check_connection(client)
            if client.nthreads():
                since = time.monotonic()
            _check_alone(since)


def _check_connection(client):
    """Raise unless the client is connected to its scheduler, or soon is again."""
    since = time.monotonic()
    while client.status != "running":
        if client.status != "connecting" or time.monotonic() - since > _RECONNECT:
            raise ConnectionError(_LOST)
        time.sleep(0.1)


@contextlib.contextmanager
def _losses_named(client):
    """Raise an error of a lost scheduler as a ConnectionError that says so."""
    try:
        yield
    except (OSError, CancelledError) as error:
        if str(error) == _LOST:
            raise
        since = time.monotonic()
        while client.status == "running":  # a broken connection is noticed by a request first, and then by the client
            if time.monotonic() - since > 1.0:
                raise
            time.sleep(0.05)
        raise ConnectionError(_LOST) from error


def _release(futures):
    """Release results on the workers now: a future holds its error, whose traceback holds other futures."""
    for future in futures:
        future.release()


class _Sent:
    """An object that was sent from this process, and is sent again after a loss; Dask rebuilds other sources itself."""

    def __init__(self, client, sent):
        self._client, self._sent = client, sent
        self.renew()

    def renew(self):
        self.future = self._client.scatter(self._sent, hash=False)

    def chain(self):
        yield self

    def release(self):
        self.future.release()


class _Task:
    """A function of items, some of which are on the cluster; submitted by `renew`, and again after a loss."""

    future = None

    def __init__(self, client, function, items):
        self._client, self._function, self._items = client, function, items

    def renew(self):
        arguments = [item.future if isinstance(item, (_Sent, _Task)) else item for item in self._items]
        self.future = self._client.submit(self._function, *arguments, pure=False)

    def chain(self):
        """Yield what this was made of, the first first, and this."""
        for item in self._items:
            if isinstance(item, (_Sent, _Task)):
                yield from item.chain()
        yield self

    def release(self):
        if self.future is not None:
            self.future.release()


# Tasks of the workers.


def _version():
    return structrank.__version__


def _partition(number, X, y, qid, sample_weight=None):
    name = f"partition {number}"
    try:
        if len(X):
            X = checks.as_matrix(X)
            X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
        n_docs = X.shape[0]
        y, qid = checks.as_column(y, n_docs, "y"), checks.as_column(qid, n_docs, "qid")
        if sample_weight is not None:
            sample_weight = checks.as_column(sample_weight, n_docs, "sample_weight")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return ShardSource(RowShard(X, y, qid, sample_weight, slice(None), name))


def _query_ids(source):
    return query_ids(source.shard.qid)
