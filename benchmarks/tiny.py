"""Small sizes: a small fit in a warm process, and the time to import."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.timing import Spread, repeat
from structrank import StructRankSVM, datasets

_IMPORTS = {"import structrank": 0.5, "from structrank import StructRankSVM": None}


def run(sizes, folder=None):
    """Return a row for each small fit and import."""
    train = datasets.make_ranking(n_queries=84, n_docs=20, n_features=20, random_state=0).train
    rows = []
    for criterion in ("auc", "map", "ndcg-nc"):
        model = StructRankSVM(criterion)
        model.fit(train.X, train.y, qid=train.qid)
        seconds, _ = repeat(lambda m=model: m.fit(train.X, train.y, qid=train.qid), 10 * sizes.repeats)
        rows.append(_row(f"fit {criterion}, {len(set(train.qid))} queries x 20 documents, warm", seconds, 0.03))
    for statement, aim in _IMPORTS.items():
        rows.append(_row(statement, [_seconds_to(statement) for _ in range(sizes.repeats)], aim))
    return rows


def _row(what, seconds, aim):
    return {"what": what, "seconds": Spread.of(seconds), "at most": aim}


def _seconds_to(statement):
    """Run a statement in a fresh interpreter; return its time, without that of starting Python."""
    code = f"import time; started = time.perf_counter(); {statement}; print(time.perf_counter() - started)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
