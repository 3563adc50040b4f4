"""Compile functions ahead of their first use.

structrank warmup
structrank warmup map ndcg
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings

from structrank.cli.output import print_json


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument(
        "criteria",
        nargs="*",
        default=[],
        metavar="CRITERION",
        help="criteria to train for; default: all, binary and graded, and all other readers, measures and learners",
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    import numpy as np

    from structrank import criteria, train_for
    from structrank._support import compile_time
    from structrank.datasets import Dataset

    for name in arguments.criteria:
        criteria.parse(name)
    started, seconds = time.perf_counter(), {}

    def compile_for(what, function, *arguments, **options):
        before = compile_time.seconds()
        function(*arguments, **options)
        seconds[what] = round(compile_time.seconds() - before, 1)
        report(f"{what}: {seconds[what]} s")

    rng = np.random.default_rng(0)
    X, labels, qid = rng.normal(size=(60, 3)), np.tile([0, 1, 2], 20), np.repeat(np.arange(6), 10)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random data teach nothing
        compile_for("LETOR files", _load_letor, os.path.join(folder, "few.txt"), X, labels, qid)
        for name in arguments.criteria or criteria.CRITERIA:
            compile_for(name, _fit, X, labels, qid, name)
        if not arguments.criteria:
            compile_for("sparse, float32 and mapped data", _fit_other_data, X, labels, qid)
            compile_for("ramp bounds", _fit_bounds, X, labels, qid)
            compile_for("measures", _evaluate, X, labels, qid)
            compile_for("train_for", train_for, "map", Dataset(X, labels, qid), Cs=[1.0])
            compile_for("RankNet, LambdaRank and trees", _fit_learners, X, labels, qid)
            compile_for("clicks", _fit_clicks, os.path.join(folder, "few.tsv"))
    total = time.perf_counter() - started
    if arguments.json:
        print_json({"seconds": total, "compiled": seconds})
    else:
        print(f"done in {total:.0f} s")


def _load_letor(path, X, labels, qid):
    from structrank.datasets import load_letor

    with open(path, "w") as file:
        for x, label, query in zip(X.tolist(), labels.tolist(), qid.tolist(), strict=True):
            values = " ".join(f"{number}:{value:.3f}" for number, value in enumerate(x, start=1))
            file.write(f"{label} qid:{query} {values} # doc\n")
    load_letor(path)


def _fit(X, labels, qid, name):
    """Train for a criterion with each feature map and the labels that it supports, binary and graded; rank the rows."""
    from structrank import StructRankSVM, criteria

    criterion = criteria.parse(name)
    for oracles, relevant_from in ((criterion.oracles, 1), (criterion.graded_oracles, None)):
        for feature_map in oracles:
            model = StructRankSVM(name, feature_map=feature_map, relevant_from=relevant_from).fit(X, labels, qid=qid)
            model.rank(X, qid=qid)
            model.score(X, labels, qid=qid)


def _fit_other_data(X, labels, qid):
    """Train on dense and sparse data, in double and single precision, and on data that is mapped from a file, read-only."""
    import numpy as np
    import scipy.sparse

    for x in (X, X.astype(np.float32)):
        read_only = x.copy()
        sparse, long, mapped = (scipy.sparse.csr_matrix(x) for _ in range(3))
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        for array in (read_only, mapped.data, mapped.indices, mapped.indptr):
            array.setflags(write=False)
        for other in (x, read_only, sparse, long, mapped):
            _fit(other, labels, qid, "map")
        offset = x.copy()
        offset[:, 0] += 1e6  # which passes subtract
        for writeable in (True, False):
            offset.setflags(write=writeable)
            _fit(offset, labels, qid, "map")


def _fit_bounds(X, labels, qid):
    """Train with bounds that are not convex."""
    from structrank import StructRankSVM

    for options in ({"criterion": "auc"}, {"criterion": "ndcg", "relevant_from": None}):
        StructRankSVM(**options, bound="ramp").fit(X, labels, qid=qid)
    StructRankSVM("map", feature_map="dorm(ties=score)").fit(X, labels, qid=qid)


def _evaluate(X, labels, qid):
    from structrank import metrics

    cutoffs = {name: f"{name}@5" for name in ("p", "recall", "success")}
    names = [cutoffs.get(name, name) for name, measure in metrics.MEASURES.items() if measure.__module__ == metrics.__name__]
    metrics.evaluate(labels > 0, X[:, 0], qid, names)


def _fit_learners(X, labels, qid):
    from structrank import learners

    for learner in (learners.RankNet, learners.LambdaRank):
        learner(max_epochs=1).fit(X, labels, qid=qid)
    with contextlib.suppress(ImportError):  # trees need an optional library
        learners.LambdaMART(n_estimators=1, min_child_samples=5).fit(X, labels, qid=qid)


def _fit_clicks(path):
    from structrank import clicks

    with open(path, "w") as file:
        for number in range(40):
            file.write(f"query {number % 4}\ta b c\t{number % 3}\n")
    clicks.HybridRanker().fit(clicks.read_tsv(path)).predict(["query 1"], ["a"])
