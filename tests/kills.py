"""Kill checkpointed training at random moments: ``python tests/kills.py 200``.

Each run is killed (SIGKILL) one to three times, at moments drawn uniformly from its duration, and then allowed to finish. The
result must be bit-identical to that of an uninterrupted run, and every file that a kill leaves must be readable. Of training on
Dask, the client is killed, and the cluster stays. Shards that a killed `write_shards` leaves must be complete or not open.
A different first seed: ``python tests/kills.py 200 1000``.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from distributed import Client

from structrank import StructRankSVM, StructRankTrees, StructRankWarning, clicks, compare, datasets, train_for
from structrank.comparison import experiment
from structrank.distributed import DaskBackend
from structrank.learners import LambdaMART, LambdaRank, McRank, RankNet, SPSARanker
from structrank.models import files
from structrank.training import checkpoint

DATA = datasets.make_ranking(n_queries=80, n_docs=30, n_features=12, noise=0.5, random_state=3)
GRADED = datasets.make_ranking(n_queries=80, n_docs=30, n_features=12, n_grades=3, noise=0.5, random_state=3)
CLICKS = datasets.make_clicks(n_queries=500, n_urls=1000, n_topics=10, n_sessions=4000, random_state=0)
LOG = clicks.ClickLog.from_sessions(CLICKS)
PAIRS = clicks.preference_pairs(LOG)
PLACE = tempfile.TemporaryDirectory()
SHARDS = Path(PLACE.name, "shards")
ADDRESS = Path(PLACE.name, "scheduler")  # of the cluster that runs this program:
CLUSTER = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def fit(**parameters):
    def train(folder):
        train = DATA.train
        return StructRankSVM(**parameters).fit(train.X, train.y, qid=train.qid, checkpoint=folder).coef_

    return train


def write_shards(folder):
    train = DATA.train
    return datasets.write_shards(folder, train.X, train.y, train.qid, docs_per_shard=300)


def written_shards(folder):
    """Write shards unless a killed run wrote all; return their rows."""
    try:
        shards = datasets.open_shards(folder)
    except ValueError:
        shutil.rmtree(folder, ignore_errors=True)
        shards = write_shards(folder)
    return np.concatenate([np.column_stack([shard.qid, shard.y, shard.X]) for shard in shards])


def fit_shards(folder):
    return StructRankSVM("map", C=100.0, tol=1e-5).fit(datasets.open_shards(SHARDS), checkpoint=folder).coef_


def fit_on_dask(folder):
    with Client(ADDRESS.read_text()) as client:
        model = StructRankSVM("map", C=100.0, tol=1e-5)
        return model.fit(datasets.open_shards(SHARDS), backend=DaskBackend(client), checkpoint=folder).coef_


def fit_path(**parameters):
    def train(folder):
        train = DATA.train
        models = StructRankSVM(**parameters).fit_path(train.X, train.y, train.qid, [0.1, 3.0, 100.0], checkpoint=folder)
        return np.array([model.coef_ for model in models])

    return train


def table(folder):
    """Fill a table, with a checkpoint in each cell."""
    rows = {"MAP": StructRankSVM("map"), "MRR": StructRankSVM("mrr", bound="auto")}
    return compare({"made": DATA}, rows, ["map", "mrr@10"], Cs=[0.1, 1.0, 3.0, 30.0], results=folder).to_frame().to_numpy()


def fit_rounds(learner, **parameters):
    """Train a learner with rounds; return its scores, and the measure on both sets after each round."""

    def train(folder):
        train = GRADED.train
        data = {"qid": train.qid, "validation": GRADED.validation, "checkpoint": folder}
        model = learner(**parameters).fit(train.X, train.y, **data)
        rounds = [value for entry in model.history_ for value in (entry.train, entry.validation)]
        return np.concatenate([model.predict(GRADED.test.X), rounds])

    return train


def fit_factors(**parameters):
    def train(folder):
        model = clicks.CollaborativeRanker(**parameters).fit(PAIRS, checkpoint=folder)
        return np.concatenate([model.query_factors_, model.url_factors_])

    return train


def fit_hybrid(folder):
    model = clicks.HybridRanker(clicks.CollaborativeRanker(factors=10, max_iter=15)).fit(LOG, checkpoint=folder)
    scores = model.predict(LOG.queries.values[LOG.query], LOG.urls.values[LOG.shown[LOG.indptr[:-1]]])
    return np.concatenate([scores, [model.theta_]])


def matched(folder):
    return train_for("map", DATA.train, DATA.validation, Cs=[0.1, 1.0, 10.0], checkpoint=folder).coef_


RUNS = {
    "AUC": fit(criterion="auc", C=1000.0, tol=1e-6),
    "MAP, n-slack": fit(criterion="map", C=100.0, tol=1e-5, formulation="n-slack"),
    "NDCG-NC, one-slack": fit(criterion="ndcg-nc", C=30.0, tol=1e-4, formulation="one-slack"),
    "DORM, OSQP": fit(criterion="dorm", C=3.0, solver="osqp"),
    "COMBO": fit(criterion=["map", "auc"], C=300.0, tol=1e-5, solver="interior"),
    "COMBO, shared": fit(criterion=["map", "ndcg-nc"], C=100.0, tol=1e-5, slack="shared"),
    "MRR, ramp": fit(criterion="mrr", C=10.0, bound="ramp"),
    "NDCG, ramp, one-slack": fit(criterion="ndcg", C=10.0, bound="ramp", formulation="one-slack"),
    "MRR, auto": fit(criterion="mrr", k=3, C=10.0, bound="auto"),
    "path of MAP": fit_path(criterion="map", tol=1e-5),
    "path of MRR, ramp": fit_path(criterion="mrr", bound="ramp"),
    "table": table,
    "train_for": matched,
    "RankNet": fit_rounds(RankNet, max_epochs=60, patience=10, restarts=5),
    "RankNet, full batch": fit_rounds(RankNet, batch="full", optimizer="sgd", max_epochs=100, patience=None),
    "LambdaRank": fit_rounds(LambdaRank, max_epochs=60, patience=None),
    "SPSA": fit_rounds(SPSARanker, max_evaluations=2000),
    "LambdaMART": fit_rounds(LambdaMART, n_estimators=60, patience=30),
    "LambdaMART, sampled": fit_rounds(LambdaMART, n_estimators=40, subsample=0.6, colsample_bytree=0.5),
    "McRank": fit_rounds(McRank, n_estimators=30, subsample=0.6, colsample_bytree=0.5),
    "McRank, ordinal": fit_rounds(McRank, classification="ordinal", n_estimators=30),
    "StructRankTrees": fit_rounds(StructRankTrees, criterion="auc", n_estimators=40, subsample=0.6, colsample_bytree=0.5),
    "factors, sgd": fit_factors(factors=20, max_iter=40, patience=40),
    "factors, adam": fit_factors(factors=20, max_iter=40, solver="adam", patience=40),
    "hybrid": fit_hybrid,
    "factors, batch": fit_factors(factors=20, max_iter=40, solver="batch", patience=40),
    "writing shards": written_shards,
    "shards": fit_shards,
    "Dask": fit_on_dask,
}


def start(train, folder, out):
    """Train in a child process; return its id."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            np.save(out, train(folder))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def is_killed(child, after):
    """Kill a child after some seconds; return whether it was still running."""
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def unreadable(folder):
    """Return the errors of reading the files that a kill left."""
    found = []
    for kind in ("checkpoint", "cell"):
        for path in folder.rglob(f"*.{kind}"):
            try:
                files.load_values(kind, path)
            except ValueError as error:
                found.append(str(error))
    return found


def main(n_runs, first=0):
    """Kill and resume runs; return the number of failures."""
    warnings.simplefilter("ignore", StructRankWarning)
    checkpoint._SECONDS = 0.0  # at every pass
    experiment._LARGE = 0
    write_shards(SHARDS)
    expected, seconds = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, train in RUNS.items():
            if train is not fit_on_dask:  # the threads of its client would not survive the forks
                train(Path(folder, name, "compiles"))
            began = time.perf_counter()
            os.waitpid(start(train, Path(folder, name, "whole"), Path(folder, "out.npy")), 0)
            seconds[name] = time.perf_counter() - began
            expected[name] = np.load(Path(folder, "out.npy"))
    n_kills = n_failures = 0
    for number in range(first, first + n_runs):
        rng = random.Random(number)
        name = list(RUNS)[number % len(RUNS)]
        with tempfile.TemporaryDirectory() as place:
            folder, out = Path(place, "run"), Path(place, "out.npy")
            kills, wanted, problems = 0, rng.randint(1, 3), []
            while kills < wanted and not problems:
                if is_killed(start(RUNS[name], folder, out), rng.uniform(0, seconds[name])):
                    kills += 1
                    problems = unreadable(folder)
                else:  # the run ended before the drawn moment: start over
                    problems = [] if out.exists() else ["failed before it was killed"]
                    shutil.rmtree(folder, ignore_errors=True)
                    kills = 0
            status = os.waitpid(start(RUNS[name], folder, out), 0)[1]
            if status or not np.array_equal(np.load(out), expected[name]):
                problems.append("failed" if status else "ended with different numbers")
        n_kills += kills
        n_failures += bool(problems)
        for problem in problems:
            print(f"run {number}, {name}: {problem}")
    print(f"{n_runs} runs, {n_kills} kills, {n_failures} failures")
    return n_failures


if __name__ == "__main__":
    cluster = subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ADDRESS.write_text(cluster.stdout.readline().strip())
        failed = main(*map(int, sys.argv[1:])) > 0
    finally:
        cluster.kill()
    sys.exit(failed)
