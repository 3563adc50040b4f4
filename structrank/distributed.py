"""Training on a Dask cluster: shards live on the workers, each pass sends w out and gets planes back."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import structrank
from structrank._support import checks
from structrank.datasets.shards import DOCS_PER_SHARD, RowShard, Shards, check_whole_queries, cut_shards, query_ids
from structrank.training.risk import Risk
from structrank.training.shard import Objective, Shard
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

    def risk(self, X: Any, y: Any, qid: Any, sample_weight: Any, objective: Objective, formulation: str) -> ClusterRisk:
        """Return the risk of an objective over a training set, on the cluster; see `structrank.training.risk.Risk`."""
        if self.client.status != "running":
            raise ValueError(f"client is {self.client.status}; expected one that is connected to a cluster.")
        checks.check_qid_is_no_feature(checks.column_names(X))
        with _losses_named(self.client):
            _check_workers(self.client)
            return self._risk(X, y, qid, sample_weight, objective, formulation)

    def _risk(self, X, y, qid, sample_weight, objective, formulation):
        if is_dask(X):
            sources = self._partitions(X, y, qid, sample_weight)
        elif isinstance(X, Shards):
            check_alone(X, y, qid, sample_weight)
            sources = [self._origin(shard) for shard in X]
        else:
            sources = [self._origin(shard) for shard in self._cut(X, y, qid, sample_weight)]
        try:
            return ClusterRisk(sources, objective, formulation, self.client)
        except BaseException:
            sources.clear()  # the traceback holds them, and they hold data on the workers
            raise

    def _origin(self, shard):
        # Workers open files themselves; arrays must be sent.
        source = ShardSource(shard)
        return _Sent(self.client, source) if isinstance(shard, RowShard) else _Kept(source)

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
        return [_Kept(sources[number]) for number in ids]


class ClusterRisk(Risk):
    """R(w) over shards on the workers of a cluster.

    Workers hold only results of tasks: Dask places them, recomputes the results of a dead worker, and releases them with the
    futures here. Results are gathered in the order of the shards.
    """

    def __init__(self, sources, objective, formulation, client):
        self._client = client
        try:
            super().__init__(sources, objective, formulation)
        except BaseException:
            self.close()
            raise

    def of(self, objective):
        """Return the risk of another objective over the same data."""
        return ClusterRisk(self._sources, objective, self.formulation, self._client)

    def _open(self):
        self._shards = [_RemoteShard(self._client, source, self.objective) for source in self._sources]
        return self._run(_attribute, "facts")

    def _prepare(self, plans):
        for shard, plan in zip(self._shards, plans, strict=True):
            shard.prepare(plan)
        return self._run(_attribute, "weights")

    def _planes(self, w, kind):
        return self._run(_planes, w, kind)

    def _variances(self):
        return self._run(_variances)

    def close(self):
        """Release the shards on the workers."""
        self._shards, self._sources = [], []

    def _run(self, function, *arguments):
        """Run a task on each shard; return the results."""
        with _losses_named(self._client):
            futures = [shard.run(function, *arguments) for shard in self._shards]
            try:
                return self._gather(futures, function, *arguments)
            finally:
                _release(futures)

    def _gather(self, futures, function, *arguments):
        losses = [0] * len(futures)
        while True:
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
                    self._shards[number].build_again()
                    futures[number] = self._shards[number].run(function, *arguments)
                if not lost:
                    raise


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


@dataclass
class _Kept:
    """A source that Dask can rebuild after a loss: files, by name, or a partition, by its graph."""

    source: object

    def renew(self):
        pass


class _Sent:
    """A source that was sent from this process, and is sent again after a loss."""

    def __init__(self, client, source):
        self._client, self._here = client, source
        self.renew()

    def renew(self):
        self.source = self._client.scatter(self._here, hash=False)


class _RemoteShard:
    """One shard on the cluster, as futures."""

    def __init__(self, client, origin, objective):
        self._client, self._origin, self._objective = client, origin, objective
        self._shard = self._submit(_open, origin.source, objective)
        self._plan = None

    def build_again(self):
        self._origin.renew()
        self._shard = self._submit(_open, self._origin.source, self._objective)
        if self._plan is not None:
            self.prepare(self._plan)

    def prepare(self, plan):
        self._plan = plan
        self._shard = self._submit(_prepare, self._shard, plan)

    def run(self, function, *arguments):
        return self._submit(function, self._shard, self._origin.source, *arguments)

    def _submit(self, function, *arguments):
        return self._client.submit(function, *arguments, pure=False)


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


def _open(source, objective):
    return Shard(source.load(), objective)


def _prepare(shard, plan):
    shard.prepare(*plan)
    return shard


def _attribute(shard, source, name):
    return getattr(shard, name)


def _variances(shard, source):
    return shard.variances(source.matrix())


def _planes(shard, source, w, kind):
    # A writable copy: compiled functions would be compiled again for a read-only array.
    return shard.planes(source.matrix(), np.array(w), kind)
