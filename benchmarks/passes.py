"""One pass over the data against one product X @ w, and the scaling of passes with the number of queries."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from benchmarks.data import made
from benchmarks.timing import race
from structrank import criteria
from structrank.datasets import Dataset
from structrank.solvers import CuttingPlanes
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.sources import sources_of
from structrank.training.structured_loss import StructuredLoss

_SINGLE = ("auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm")
_COMBO = ("map", "ndcg-nc", "auc")
_DENSITY = 0.1
# BLAS threads keep cores busy for up to 0.1 s after a call.
_BLAS_IDLE = 0.15
# Passes start from the order of the previous pass, so they are timed at the points of a training run.
_TRAIL_C, _TRAIL_STEPS = 100.0, 6


def run(sizes, folder=None):
    """Return a row for each kind of pass."""
    train = made(sizes.shapes[-1]).train
    trail = _trail(train)

    def against_product(what, names, aim, X=train.X, n_threads=1):
        # A product in single precision needs a w in single precision.
        rounded = X.dtype.type
        with closing(_risk(train, names, X, n_threads)) as risk, threadpool_limits(n_threads, user_api="blas"):
            pause = 0.0 if n_threads == 1 else _BLAS_IDLE
            ratio, *seconds = race(risk.plane, lambda w: X @ w.astype(rounded), trail, sizes.repeats, pause)
        return _row(what, "X @ w", n_threads, aim, ratio, *seconds)

    def against_pass(what, risk, against, other, aim):
        with closing(risk), closing(other):
            ratio, *seconds = race(risk.plane, other.plane, trail, sizes.repeats)
        return _row(what, against, 1, aim, ratio, *seconds)

    rows = [against_product(name, (name,), 1.5) for name in _SINGLE]
    rows.append(against_product("combo of three", _COMBO, 2.0))
    rows += [against_product(name, (name,), 1.5, n_threads=2) for name in ("auc", "map")]

    single, whole = train.X.astype(np.float32), _risk(train, ("map",))
    rows.append(against_product("map, float32", ("map",), None, single))
    rows.append(against_pass("map, float32", _risk(train, ("map",), single), "map, float64", whole, 0.7))
    del single

    stored = np.random.default_rng(0).random(train.X.shape) < _DENSITY
    sparse, what = scipy.sparse.csr_array(np.where(stored, train.X, 0.0)), f"map, sparse with {_DENSITY:.0%} stored"
    rows.append(against_product(what, ("map",), None, sparse))
    rows.append(against_pass(what, _risk(train, ("map",), sparse), "map, dense", whole, None))

    first = train.qid < np.unique(train.qid)[len(np.unique(train.qid)) // 10]
    tenth = Dataset(train.X[first], train.y[first], train.qid[first])
    rows.append(against_pass("map", whole, "map, 10% of the queries", _risk(tenth, ("map",)), 11.0))
    return rows


def _row(what, against, n_threads, aim, ratio, ours, other):
    return {
        "pass": what,
        "against": against,
        "threads": n_threads,
        "ratio": ratio,
        "at most": aim,
        "seconds": ours,
        "seconds of the other": other,
    }


def _risk(train, names, X=None, n_threads=1):
    loss = StructuredLoss.of([criteria.parse(name) for name in names], decay="sqrt@30")
    sources = sources_of(train.X if X is None else X, train.y, train.qid)
    return Risk(InProcess(sources, n_threads), loss)


def _trail(train):
    """Return the points of the first iterations of training for AUC, except w = 0."""
    with closing(_risk(train, ("auc",))) as risk:
        driver = CuttingPlanes(risk, tol=1e-9)
        driver.run(_TRAIL_C, _TRAIL_STEPS)
    return [point.w for point in driver.points[1:]]
