"""Comparison with other libraries on the same data in the same run, each on one thread unless stated otherwise."""

from __future__ import annotations

import itertools
import warnings
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.data import made
from benchmarks.timing import Spread, clock, repeat
from benchmarks.training import count_passes
from structrank import StructRankSVM, StructRankWarning, metrics
from structrank.criteria import AUC
from structrank.datasets.queries import group_by_query
from structrank.learners.trees import LightGBMRanker
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.sources import sources_of
from structrank.training.structured_loss import StructuredLoss

NO_DLIB = "dlib is not installed and is left out. `pip install dlib` compiles it in ten minutes or more."


def run(sizes, folder=None):
    """Return a row for each shape and learner: time, and MAP on test queries."""
    rows = []
    C = sizes.peer_Cs[0]
    for shape in sizes.shapes:
        fold = made(shape)
        learners = {
            "StructRank, MAP": partial(_fit, StructRankSVM("map", C=C), fold.train),
            "StructRank, MAP, two threads": partial(_fit, StructRankSVM("map", C=C, n_jobs=2), fold.train),
            "StructRank, AUC": partial(_fit, StructRankSVM("auc", C=C, query_weight="pairs"), fold.train),
            **{f"LinearSVC, {n:,} pairs": partial(_fit_pairs, fold.train, C, n) for n in _pair_counts(fold.train, sizes)},
            "LightGBM, lambdarank": partial(_fit, LightGBMRanker(n_estimators=sizes.n_trees), fold.train),
            "XGBoost, gblinear": partial(_fit_gblinear, fold.train, sizes.n_trees),
        }
        own = None
        for name, learn in learners.items():
            try:
                seconds, model = repeat(learn, sizes.repeats)
            except ImportError as error:
                rows.append({"data": _text(shape), "learner": f"{name}: left out, {error}"})
                continue
            own = own or np.median(seconds)
            scores = model(fold.test.X) if callable(model) else model.predict(fold.test.X)
            rows.append(
                {
                    "data": _text(shape),
                    "learner": name,
                    "seconds": Spread.of(seconds),
                    "times StructRank, MAP": round(float(np.median(seconds) / own), 2),
                    "test MAP": round(metrics.evaluate(fold.test.y, scores, fold.test.qid, "map")["map"], 4),
                }
            )
    return rows


def run_dlib(sizes, folder=None):
    r"""Return a row for each shape, scale and C: dlib's trainer, and StructRank until it reaches dlib's objective.

    Both minimise a mean over all pairs of a relevant document g and an irrelevant document b of one query. StructRank
    minimises 1/2 |w|^2 + C mean max(0, 1 - 2 w.(g - b)). With v = 2 w that is a quarter of
    1/2 |v|^2 + 4 C mean max(0, 1 - v.(g - b)), the objective of dlib for 4 C.
    """
    try:
        import dlib
    except ImportError:
        return [{"note": NO_DLIB}]
    rows = []
    # The same C regularises more if features are small, as in the LETOR data sets.
    scales = {"as made": lambda X: X, "in [0, 1]": lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0)}
    for shape, (scale_name, scaled) in itertools.product(sizes.shapes, scales.items()):
        train = made(shape).train
        train = replace(train, X=scaled(train.X))
        seconds_converting, pairs = clock(lambda t=train: _dlib_pairs(dlib, t))
        for C in sizes.peer_Cs:
            trainer = dlib.svm_rank_trainer()
            trainer.c = 4 * C
            theirs, found = repeat(lambda t=trainer, p=pairs: t.train(p), sizes.repeats)
            goal = _objective(train, 0.5 * np.array(found.weights).ravel(), C)
            for n_threads in (1, 2):
                model = StructRankSVM("auc", C=C, query_weight="pairs", tol=1e-9, n_jobs=n_threads)
                ours, _ = repeat(
                    lambda m=model, t=train, g=goal: _fit(m, t, callback=lambda i: i.objective <= g), sizes.repeats
                )
                rows.append(
                    {
                        "data": _text(shape),
                        "features": scale_name,
                        "C": C,
                        "threads of ours": n_threads,
                        "dlib / ours": round(float(np.median(theirs) / np.median(ours)), 2),
                        "seconds": Spread.of(ours),
                        "seconds of dlib": Spread.of(theirs),
                        "seconds to convert for dlib": round(seconds_converting, 3),
                        "objective": model.certificate_.primal,
                        "objective of dlib": goal,
                        "passes": count_passes(model.history_.to_frame()),
                    }
                )
    return rows


def _text(shape):
    return " x ".join(str(n) for n in shape)


def _fit(model, train, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructRankWarning)
        return model.fit(train.X, train.y, qid=train.qid, **options)


def _objective(train, w, C):
    loss = StructuredLoss.of([AUC()], query_weight="pairs")
    with closing(Risk(InProcess(sources_of(train.X, train.y, train.qid)), loss)) as risk:
        return 0.5 * float(w @ w) + C * float(risk.weights @ risk.plane(w).value)


def _dlib_pairs(dlib, train):
    queries = dlib.ranking_pairs()
    for relevant, irrelevant in zip(*_rows_by_relevance(train), strict=True):
        pair = dlib.ranking_pair()
        for side, rows in ((pair.relevant, relevant), (pair.nonrelevant, irrelevant)):
            for row in train.X[rows].tolist():
                side.append(dlib.vector(row))
        queries.append(pair)
    return queries


def _rows_by_relevance(train):
    """Return the rows of the relevant and of the irrelevant documents of each query."""
    grouping = group_by_query(train.qid, len(train.y))
    rows = np.split(grouping.rows, grouping.indptr[1:-1])
    return [one[train.y[one] > 0] for one in rows], [one[train.y[one] == 0] for one in rows]


def _fit_pairs(train, C, n_pairs):
    """Train LinearSVC on differences of relevant and irrelevant documents; return a function that scores."""
    relevant, irrelevant = sample_pairs(train, n_pairs)
    differences = train.X[relevant] - train.X[irrelevant]
    labels = np.where(np.arange(relevant.size) % 2, 1, -1)
    # The same objective as ours, up to the choice of pairs; it is a sum over pairs there and a mean here.
    model = LinearSVC(C=4 * C / relevant.size, loss="hinge", fit_intercept=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(labels[:, None] * differences, labels)
    return lambda X: X @ model.coef_[0]


def _fit_gblinear(train, n_rounds):
    """Train XGBoost's linear booster; return a function that scores."""
    try:
        import xgboost
    except ImportError as error:
        raise ImportError("needs XGBoost: pip install structrank[trees]") from error
    settings = {"booster": "gblinear", "objective": "rank:pairwise", "nthread": 1}
    # Without weights: this booster uses query weights as row weights, reads past their end and returns NaN.
    rows = xgboost.DMatrix(train.X, train.y, qid=train.qid, nthread=1)
    model = xgboost.train(settings, rows, num_boost_round=n_rounds)
    return lambda X: model.predict(xgboost.DMatrix(X, nthread=1))


def _pair_counts(train, sizes):
    """Return the numbers of pairs to learn from, limited to all pairs."""
    n_all = sum(relevant.size * irrelevant.size for relevant, irrelevant in zip(*_rows_by_relevance(train), strict=True))
    return sorted({min(n, n_all) for n in sizes.n_pairs})


def sample_pairs(train, n_pairs):
    """Draw pairs of a relevant and an irrelevant document of one query uniformly; all pairs if there are few enough.

    Returns
    -------
    relevant, irrelevant : arrays of int
        Rows.
    """
    relevant_rows, irrelevant_rows = _rows_by_relevance(train)
    starts = np.cumsum(
        [0] + [relevant.size * irrelevant.size for relevant, irrelevant in zip(relevant_rows, irrelevant_rows, strict=True)]
    )
    chosen = np.arange(starts[-1])
    if chosen.size > n_pairs:
        chosen = np.sort(np.random.default_rng(0).choice(chosen.size, n_pairs, replace=False))
    relevant, irrelevant = np.empty_like(chosen), np.empty_like(chosen)
    cuts = np.searchsorted(chosen, starts)
    for number, (low, high) in enumerate(itertools.pairwise(cuts)):
        if high > low:
            g, b = np.divmod(chosen[low:high] - starts[number], irrelevant_rows[number].size)
            relevant[low:high], irrelevant[low:high] = relevant_rows[number][g], irrelevant_rows[number][b]
    return relevant, irrelevant
