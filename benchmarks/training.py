"""Whole trainings: passes, time and the QP's share of it, for one C and for a path."""

from __future__ import annotations

import warnings

from benchmarks.data import named
from benchmarks.timing import Spread, race, repeat
from structrank import StructRankSVM, StructRankWarning

_GAP = 1e-3
_CRITERIA = ("auc", "map")


def run(sizes, folder=None):
    """Return a row for each data set, criterion and C: from scratch to a relative gap of 1e-3."""
    rows = []
    for name, make in named(sizes, folder):
        train = make().train
        for criterion in _CRITERIA:
            for C in sizes.Cs:
                model = _model(criterion, C, train)
                seconds, model = repeat(lambda m=model, t=train: _quietly(m.fit, t.X, t.y, qid=t.qid), sizes.repeats)
                history = model.history_.to_frame()
                rows.append(
                    {
                        "data": name,
                        "criterion": criterion,
                        "C": C,
                        "passes": count_passes(history),
                        "seconds": Spread.of(seconds),
                        "qp share": round(float(history["seconds_qp"].sum()) / seconds[-1], 3),
                        "relative gap": float(f"{model.certificate_.relative_gap:.2g}"),
                    }
                )
    return rows


def run_paths(sizes, folder=None):
    """Return a row for each data set and criterion: a path of many C against its largest alone, both to the default `tol`."""
    rows = []
    for name, make in named(sizes, folder):
        train = make().train
        for criterion in _CRITERIA:
            model = StructRankSVM(criterion, C=sizes.path[-1])
            ratio, *seconds = race(
                lambda Cs, m=model, t=train: _quietly(m.fit_path, t.X, t.y, qid=t.qid, Cs=Cs),
                lambda _, m=model, t=train: _quietly(m.fit, t.X, t.y, qid=t.qid),
                [sizes.path],
                sizes.repeats,
            )
            rows.append(
                {
                    "data": name,
                    "criterion": criterion,
                    "values of C": len(sizes.path),
                    "ratio": ratio,
                    "at most": 1.5,
                    "seconds": seconds[0],
                    "seconds of the largest": seconds[1],
                }
            )
    return rows


def count_passes(history):
    """Return the number of passes of a training run: that at w = 0 and one for each iteration that made a pass."""
    return 1 + int((history["seconds_oracle"] > 0).sum())


def _model(criterion, C, train):
    """Return a learner whose tolerance is a relative gap of 1e-3 of an objective that is computed first."""

    def close_enough(iteration):
        return iteration.gap <= _GAP * iteration.objective

    found = StructRankSVM(criterion, C=C, tol=1e-9)
    _quietly(found.fit, train.X, train.y, qid=train.qid, callback=close_enough)
    return StructRankSVM(criterion, C=C, tol=_GAP * found.certificate_.primal / C)


def _quietly(function, *arguments, **options):
    """Call without warnings, as of a callback that stopped training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructRankWarning)
        return function(*arguments, **options)
