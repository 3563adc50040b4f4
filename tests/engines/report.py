"""Comparison of scores and ranks with `predict`, and the table."""

from __future__ import annotations

import datetime
import platform
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

TOLERANCE = 1e-5  # of the largest score; 32 bits have seven digits


@dataclass(frozen=True)
class Row:
    """The result of one model in one engine."""

    engine: str
    version: str
    case: str
    difference: float | None
    moved: int
    error: str | None


def compare(suite, engine, version, case, scores, constant):
    """Return the `Row` of a result.

    Parameters
    ----------
    scores : (n_docs,) array or str
        Scores by the engine, or its error.
    constant : bool
        Whether the scores may differ from those of `predict` by a constant.
    """
    if isinstance(scores, str):
        return Row(engine, version, case.name, None, 0, scores)
    expected = case.expected
    if constant:
        scores = scores + (expected[0] - scores[0])
    difference = float(np.abs(scores - expected).max())
    error = None if difference <= TOLERANCE * np.abs(expected).max() else f"a score differs by {difference:g}"
    return Row(engine, version, case.name, difference, ranks_that_differ(expected, scores, suite.qid), error)


def ranks_that_differ(expected, scores, qid):
    """Count the documents whose rank within their query differs, where scores that are equal in 32 bits may swap.

    The rank of a document must lie between the best and the worst rank of the documents whose expected scores are equal to
    its own in 32 bits.
    """
    count, single = 0, expected.astype(np.float32)
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        first, last = (rankdata(-single[rows], method=method) for method in ("min", "max"))
        best, worst = (rankdata(-scores[rows], method=method) for method in ("min", "max"))
        count += int(((worst < first) | (best > last)).sum())
    return count


def table(rows, suite):
    """Return the results as Markdown, one line for each engine."""
    lines = [
        f"{datetime.date.today().isoformat()}, Python {platform.python_version()}: {len(suite.cases)} models, "
        f"{len(suite.documents)} documents of {np.unique(suite.qid).size} queries, scores up to "
        f"{max(case.expected.max() for case in suite.cases):.0f}.",
        "",
        "| engine | version | models | largest difference of scores, linear | trees | ranks that differ |",
        "|---|---|---|---|---|---|",
    ]
    for engine in dict.fromkeys(row.engine for row in rows):
        own = [row for row in rows if row.engine == engine]
        linear, trees = (_largest(own, is_linear) for is_linear in (True, False))
        lines.append(f"| {engine} | {own[0].version} | {len(own)} | {linear} | {trees} | {sum(row.moved for row in own)} |")
    return "\n".join(lines)


def _largest(rows, is_linear):
    differences = [row.difference for row in rows if row.case.startswith(("StructRankSVM", "RankNet")) == is_linear]
    differences = [difference for difference in differences if difference is not None]
    return f"{max(differences):.0e}".replace("0e+00", "0") if differences else ""
