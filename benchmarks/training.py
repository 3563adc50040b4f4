"""Whole trainings: passes, time and the QP's share of it, for one C and for a path."""

from __future__ import annotations

import warnings

from benchmarks.data import named
from benchmarks.timing import Spread, race, repeat
from structrank import StructRankSVM, StructRankWarning

_GAP = 1e-3
_CRITERIA = ("auc", "map")


def run(sizes, folder=None):
    """Give a row for each data set, criterion and C: from scratch to a relative gap of 1e-3."""
    rows = []
    for name, make in named(sizes, folder):
        train = make().train
        for criterion in _CRITERIA:
            for C in sizes.Cs:
                seconds, model = repeat(lambda c=criterion, C=C, t=train: _fit(_model(c, C), t), sizes.repeats)
                parts = model.history_.to_frame()[["seconds_qp", "seconds_oracle"]].sum()
                rows.append(
                    {
                        "data": name, "criterion": criterion, "C": C,
                        "passes": model.n_iter_ + 1,  # the one at w = 0 is not an iteration
                        "seconds": Spread.of(seconds),
                        "qp share": round(float(parts["seconds_qp"] / parts.sum()), 3),
                        "relative gap": float(f"{model.certificate_.relative_gap:.2g}"),
                    }
                )  # fmt: skip
    return rows


def run_paths(sizes, folder=None):
    """Give a row for each data set and criterion: a path of many C against its largest alone."""
    rows = []
    for name, make in named(sizes, folder):
        train = make().train
        for criterion in _CRITERIA:
            model = _model(criterion, sizes.path[-1])
            ratio, *seconds = race(
                lambda Cs, m=model, t=train: _quietly(m.fit_path, t.X, t.y, qid=t.qid, Cs=Cs, callback=close_enough),
                lambda _, m=model, t=train: _fit(m, t),
                [sizes.path],
                sizes.repeats,
            )
            rows.append(
                {
                    "data": name, "criterion": criterion, "values of C": len(sizes.path), "ratio": ratio, "at most": 1.5,
                    "seconds": seconds[0], "seconds of the largest": seconds[1],
                }
            )  # fmt: skip
    return rows


def close_enough(iteration):
    """Say whether the relative gap is small enough, as a callback of `fit`."""
    return iteration.gap <= _GAP * iteration.objective


def _model(criterion, C):
    # The tolerance is out of reach: it is the callback that stops.
    return StructRankSVM(criterion, C=C, tol=1e-9)


def _fit(model, train):
    return _quietly(model.fit, train.X, train.y, qid=train.qid, callback=close_enough)


def _quietly(function, *arguments, **options):
    """Call without the warnings that a callback stopped training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructRankWarning)
        return function(*arguments, **options)
