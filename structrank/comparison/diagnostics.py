"""What the KDD 2008 paper shows about training itself (Figures 4 to 6 and 8), as frames that `comparison.plotting` draws."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from structrank import metrics
from structrank._support import checks
from structrank._support.typing import DataFrame
from structrank.comparison.trainers import as_trainers, paper_trainers
from structrank.feature_maps import Permutation
from structrank.selection.choosing_c import fit_whole_path
from structrank.svm import StructRankSVM
from structrank.training.data import RankingData

_CS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def health_path(
    data: Any,
    trainers: Any = None,
    Cs: Sequence[float] = _CS,
    test: Any = None,
    measures: Any = ("map",),
    relevant_from: float = 1,
) -> DataFrame:
    """Train on each criterion for many C, and return how well w adapted (Figures 4 to 6 of the KDD 2008 paper).

    Parameters
    ----------
    data : Dataset
        Training data; any object with ``X``, ``y`` and ``qid``.
    trainers : dict, list of names, StructRankSVM, or None
        From names to untrained `StructRankSVM`; a list has names of rows of `structrank.compare` or of registered criteria;
        None is for all structured rows of `structrank.comparison.trainers.paper_trainers`. Arguments are not modified.
    Cs : sequence of float
        The values of C.
    test : Dataset, default None
        Data on which each model is also measured.
    measures : str, Measure, or a list of them, default ("map",)
        Measures on `test`; measures given by name follow the paper's conventions (binary gain, discount "kdd08").
    relevant_from : float, default 1
        Lowest label that counts as relevant, for the default trainers and for measures given by name.

    Returns
    -------
    pandas.DataFrame
        Index (trainer, C), in the order given. Columns:

        - ``mean_slack``: R(w), an upper bound on the mean training loss (Figure 4);
        - ``objective_ratio``: objective / objective(w = 0), 1 if nothing was learned (Figure 5);
        - ``norm``: norm of w; ``relative_norm``: the same over the norm at the largest C, as in Figure 6;
        - ``vacuous``, ``iterations``, ``seconds`` (in QP and oracle), ``note`` (the notes of the model;
          warnings are not raised);
        - with `test`, one column for each measure.

    Examples
    --------
    >>> from structrank import datasets
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, noise=0.2, random_state=0)
    >>> path = health_path(fold.train, ["AUC", "MAP"], Cs=[0.1, 10.0], test=fold.test)
    >>> path[["objective_ratio", "map"]].shape
    (4, 2)
    >>> bool((path.loc["AUC", "mean_slack"].diff().dropna() < 0).all())   # a larger C leaves less slack
    True
    """
    import pandas as pd

    frames = {}
    for name, trainer in _as_trainers(trainers, relevant_from).items():
        models = fit_whole_path(clone(trainer), RankingData.of(data), list(Cs))
        frames[name] = health_table(models)
        for measure, values in _measured(models, test, measures, relevant_from).items():
            frames[name][measure] = values
    return pd.concat(frames, names=["trainer"])


def health_table(models: Sequence[StructRankSVM]) -> DataFrame:
    """Return the health of fitted models by C, as `health_path` does.

    Parameters
    ----------
    models : list of StructRankSVM
        Models of one trainer, as returned by `StructRankSVM.fit_path`.

    Returns
    -------
    pandas.DataFrame
        Index C; the columns of `health_path`, but for the measures.

    Examples
    --------
    >>> from structrank import StructRankSVM, datasets
    >>> train = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, noise=0.2, random_state=0).train
    >>> models = StructRankSVM("auc", tol=1e-5).fit_path(train.X, train.y, qid=train.qid, Cs=[0.1, 10.0])
    >>> health_table(models)[["relative_norm"]].round(1)
          relative_norm
    C
    0.1             0.3
    10.0            1.0
    """
    import pandas as pd

    rows = [
        {
            "mean_slack": model.health_.mean_slack,
            "objective_ratio": model.health_.objective_ratio,
            "norm": model.health_.norm,
            "vacuous": model.health_.vacuous,
            "iterations": model.n_iter_,
            "seconds": sum(sum(iteration.seconds.values()) for iteration in model.history_),
            "note": " ".join(model.notes_),
        }
        for model in models
    ]
    # A list of C, one for each criterion, is represented by its mean.
    frame = pd.DataFrame(rows, index=pd.Index([float(np.mean(model.C)) for model in models], name="C"))
    longest = frame["norm"].iloc[int(frame.index.argmax())]
    frame.insert(3, "relative_norm", frame["norm"] / longest if longest > 0 else np.nan)
    return frame


def time_breakdown(
    data: Any,
    trainers: Any = None,
    C: float = 1.0,
    k: int | None = 10,
    decay: Any = "sqrt@30",
    relevant_from: float = 1,
    repeats: int = 1,
) -> DataFrame:
    """Train, and return the time in the oracle and in the QP (Figure 8 of the KDD 2008 paper).

    By default, three trainers for the same measure, NDCG@k: DORM with the Hungarian method, as in the paper; DORM with the
    lattice path, which finds the same rankings; and NDCG. DORM compares with the ideal ranking that orders ties by score, as
    the row DORM of `structrank.compare` does, and solves a sequence of convex problems, of which all count.

    Parameters
    ----------
    data : Dataset
        Training data; any object with ``X``, ``y`` and ``qid``.
    trainers : dict, list of names, StructRankSVM, or None
        Trainers with the convex bound, instead of these three; as for `health_path`.
    C : float, default 1.0
        C of the default trainers.
    k, decay
        Parameters of the default trainers, see `StructRankSVM`; the paper cuts the decay after 30 ranks, which makes
        DORM faster.
    relevant_from : float, default 1
        Lowest label that counts as relevant, for the default trainers and those given by name.
    repeats : int, default 1
        Number of runs, of which the fastest is returned.

    Returns
    -------
    pandas.DataFrame
        Index trainer; columns ``oracle`` (most violated rankings, with scores and slopes), ``qp``
        and ``total`` (all of training, for DORM that of the criterion that it starts from, too) in seconds, ``passes`` over the
        data, ``oracle_per_pass`` in seconds, and ``objective`` (of the last convex problem). Compiling is not counted.

    Examples
    --------
    >>> from structrank import datasets
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, noise=0.2, random_state=0).train
    >>> times = time_breakdown(train)
    >>> times.index.tolist()
    ['DORM (Hungarian)', 'DORM (lattice)', 'NDCG']
    >>> bool(abs(times.objective.iloc[0] - times.objective.iloc[1]) < 0.002)   # the same optimum, to the tolerance
    True
    """
    import pandas as pd

    checks.check_number("relevant_from", relevant_from)
    checks.check_number("repeats", repeats, at_least=1, integer=True)
    if trainers is None:
        make = functools.partial(StructRankSVM, C=C, k=k, relevant_from=relevant_from)
        trainers = {
            "DORM (Hungarian)": make("dorm", feature_map=Permutation(decay, assignment="scipy", ties="score")),
            "DORM (lattice)": make("dorm", feature_map=Permutation(decay, ties="score")),
            "NDCG": make("ndcg"),
        }
    rows = {}
    for name, trainer in _as_trainers(trainers, relevant_from).items():
        if trainer.bound != "convex":
            raise ValueError(f"trainer {name!r} has bound={trainer.bound!r}; expected 'convex'.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", checks.StructRankWarning)  # models have their texts in `notes_`
            clone(trainer).set_params(max_iter=1).fit(data.X, data.y, qid=data.qid)  # compiles
            runs = [_timed(clone(trainer), data) for _ in range(repeats)]
        rows[name] = min(runs, key=lambda row: row["total"])
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("trainer")


def _timed(trainer, data):
    steps = []  # of all convex problems, where `history_` has the last one
    started = time.perf_counter()
    trainer.fit(data.X, data.y, qid=data.qid, callback=steps.append)
    total = time.perf_counter() - started
    qp = sum(step.seconds["qp"] for step in steps)
    oracle = sum(step.seconds["oracle"] for step in steps)
    passes = sum(step.seconds["oracle"] > 0.0 for step in steps)
    return {
        "oracle": oracle,
        "qp": qp,
        "total": total,
        "passes": passes,
        "oracle_per_pass": oracle / passes,
        "objective": trainer.certificate_.primal,
    }


def _as_trainers(trainers, relevant_from):
    if isinstance(trainers, StructRankSVM):
        trainers = {name_of(trainers): trainers}
    if trainers is None:
        trainers = [name for name, trainer in paper_trainers().items() if isinstance(trainer, StructRankSVM)]
    chosen = as_trainers(trainers, relevant_from)
    for name, trainer in chosen.items():
        if not isinstance(trainer, StructRankSVM):
            raise ValueError(f"trainer {name!r} is {trainer!r}; expected a StructRankSVM.")
    return chosen


def name_of(trainer):
    """Return the names of a trainer's criteria."""
    return " + ".join(criterion.name for criterion in trainer.parsed_criteria())


def _measured(models, test, measures, relevant_from):
    """Return the value of each measure for each model on the test queries."""
    if test is None:
        return {}
    chosen = [measures] if isinstance(measures, (str, metrics.Measure)) else measures
    conventions = {"gain": "binary", "discount": "kdd08", "relevant_from": relevant_from}
    results = [
        metrics.evaluate(test.y, metrics.predict(model, test.X, test.qid), test.qid, chosen, **conventions) for model in models
    ]
    return {name: [result[name] for result in results] for name in results[0]}
