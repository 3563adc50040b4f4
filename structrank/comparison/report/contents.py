"""The content of the report as plain data: lists, dicts, numbers and texts."""

from __future__ import annotations

import importlib.metadata
import itertools
import math
import platform
import re
import sys
from dataclasses import dataclass

import numpy as np

from structrank.datasets.queries import group_by_query

# Limits of one file: documents of a ranking, ranked documents in total, and values (query x trainer x measure) in total. The
# last two are about 3 MB and 2 MB.
N_TOP = 50
_MOST_RANKED = 250_000
_MOST_VALUES = 250_000

_PACKAGES = ("structrank", "numpy", "scipy", "numba", "osqp", "cvxpy", "scikit-learn", "pandas")
_PACKAGES_OF_TRAINERS = ("lightgbm", "xgboost")


@dataclass(frozen=True)
class Contents:
    """The content of a report."""

    table: object  # CriterionTable
    parts: list  # of `_describe`, for each part of each fold
    relevant_from: float | None  # lowest label of a document shown as relevant; None for any label above 0
    settings: dict  # from names to texts
    trainer_settings: dict  # from names of trainers to texts
    versions: dict
    data: dict  # for the script of the page, ready for JSON


def gather(table):
    """Collect the content of the report of a criterion table."""
    settings = dict(table.settings)
    trainer_settings = settings.pop("trainers", {})
    relevant_from = _relevant_from(table)
    return Contents(
        table=table,
        parts=[
            {"data set": dataset, "fold": number, "part": name, **_describe(part, relevant_from)}
            for dataset, its_folds in table.folds.items()
            for number, fold in enumerate(its_folds)
            for name in ("train", "validation", "test")
            if (part := getattr(fold, name)) is not None
        ],
        relevant_from=relevant_from,
        settings={str(name): _text(value) for name, value in settings.items()},
        trainer_settings={str(name): _text(value) for name, value in dict(trainer_settings).items()},
        versions=_versions(),
        data={
            "trainers": table.trainers,
            "measures": table.measures,
            "relevantFrom": relevant_from,
            "nTop": N_TOP,
            "columns": _columns(table),
            "cells": [
                {
                    **{name: getattr(cell, name) for name in ("dataset", "fold", "trainer", "C", "seconds")},
                    "vacuous": bool(cell.vacuous),
                }
                for cell in table.cells
            ],
            "datasets": _queries(table, relevant_from),
        },
    )


def _relevant_from(table):
    """Find the lowest label that counts as relevant: what all measures have, else as set, else the lowest of a measure."""
    found = [re.search(r"relevant_from=([^,;\s]+)", text) for text in table.measure_settings.values()]
    of_measures = {float(match[1]) for match in found if match}
    if len(of_measures) != 1 and table.settings.get("relevant_from") is not None:
        return float(table.settings["relevant_from"])
    return min(of_measures, default=None)


def _is_relevant(labels, relevant_from):
    return labels > 0 if relevant_from is None else labels >= relevant_from


def _text(value):
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={_text(setting)}" for name, setting in value.items())
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _versions():
    versions = {"Python": platform.python_version()}
    for name in (*_PACKAGES, *(name for name in _PACKAGES_OF_TRAINERS if name in sys.modules)):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    versions["platform"] = platform.platform()
    return versions


# ---- Data


def _describe(part, relevant_from):
    """Return the sizes of a part, the number of each label, and of queries without both relevant and irrelevant documents."""
    labels = _as_labels(part)
    grouping = group_by_query(part.qid, labels.shape[0])
    n_relevant = np.add.reduceat(_is_relevant(labels[grouping.rows], relevant_from).astype(np.int64), grouping.indptr[:-1])
    values, counts = np.unique(labels, return_counts=True)
    return {
        "n_docs": labels.shape[0],
        "n_queries": grouping.n_queries,
        "n_features": int(np.shape(part.X)[1]),
        "labels": dict(zip(values.tolist(), counts.tolist(), strict=True)),
        "one_kind": int(((n_relevant == 0) | (n_relevant == grouping.sizes)).sum()),
    }


def _as_labels(part):
    return np.asarray(part.y, dtype=np.float64).reshape(-1)


# ---- Columns


def _columns(table):
    """Return, for each column and trainer, the mean, its interval over queries, and the mark."""
    marks = table.marks()

    def row(*key):
        return {"mean": _number(table.means[key]), "margin": _margin(table.per_query[key]), "mark": marks[key]}

    return [
        {"dataset": dataset, "measure": measure, "rows": [row(name, dataset, measure) for name in table.trainers]}
        for dataset, measure in table.columns
    ]


def _margin(values):
    """Return half the width of the 95 % interval of the mean, by Student's t; None for fewer than two values."""
    import scipy.stats

    values = values[~np.isnan(values)]
    if values.size < 2:
        return None
    return float(scipy.stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size))


def _number(value, digits=None):
    """Return a number that JSON has, rounded if asked; None for nan, a text for infinity."""
    value = float(value)
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    return value if digits is None else float(f"{value:.{digits}g}")


# ---- Queries


class _TestPart:
    """The test part of one fold, with the scores of each trainer."""

    def __init__(self, table, dataset, fold, test):
        docid = getattr(test, "docid", None)
        self.labels, self.docid = _as_labels(test), None if docid is None else np.asarray(docid)
        self.grouping = group_by_query(test.qid, self.labels.shape[0])
        self.scores = {cell.trainer: cell.scores for cell in table.cells if (cell.dataset, cell.fold) == (dataset, fold)}

    def ranking(self, query, trainers, relevant_from):
        """Return the first documents of a query by each trainer; documents are listed once, rankings are places there."""
        rows = self.grouping.rows[self.grouping.indptr[query] : self.grouping.indptr[query + 1]]
        places, orders, scores, ties = {}, [], [], []
        for name in trainers:
            of_docs = self.scores[name][rows]
            order = np.argsort(-of_docs, kind="stable")
            ranked = of_docs[order]
            orders.append([places.setdefault(row, len(places)) for row in rows[order[:N_TOP]].tolist()])
            scores.append([_number(score, 5) for score in ranked[:N_TOP]])
            # Ranks, from 0, of documents with the score of the one before; N_TOP is the first that is not shown.
            ties.append((np.flatnonzero(ranked[1:] == ranked[:-1])[:N_TOP] + 1).tolist())
        shown = list(places)
        return {
            "nDocs": rows.shape[0],
            "nRelevant": int(_is_relevant(self.labels[rows], relevant_from).sum()),
            "docs": shown if self.docid is None else [_name(self.docid[row]) for row in shown],
            "labels": [_number(label) for label in self.labels[shown]],
            "orders": orders,
            "scores": scores,
            "ties": ties,
        }


def _queries(table, relevant_from):
    """Return, for each data set, the queries that the page shows, within the limits of a file."""
    parts = {
        dataset: [_TestPart(table, dataset, number, fold.test) for number, fold in enumerate(its_folds)]
        for dataset, its_folds in table.folds.items()
    }
    # For each pooled query, its fold, its place in the fold and its number of documents.
    homes = {
        dataset: [(fold, *query) for fold, part in enumerate(its) for query in enumerate(part.grouping.sizes.tolist())]
        for dataset, its in parts.items()
    }
    valued, ranked = _choose(table, homes)
    found = []
    for dataset in table.datasets:
        kept = sorted(place for name, place in valued if name == dataset)
        rankings = [None] * len(kept)
        for number, place in enumerate(kept):
            if (dataset, place) in ranked:
                fold, query, _ = homes[dataset][place]
                rankings[number] = parts[dataset][fold].ranking(query, table.trainers, relevant_from)
        found.append(
            {
                "name": dataset,
                "nFolds": table.n_folds[dataset],
                "nQueries": len(table.query_ids[dataset]),
                "ids": [_name(table.query_ids[dataset][place]) for place in kept],
                "folds": [homes[dataset][place][0] for place in kept],
                "named": all(part.docid is not None for part in parts[dataset]),
                "values": [
                    [[_number(value) for value in row[kept]] for row in _values(table, dataset, measure)]
                    for measure in table.measures
                ],
                "counts": [_counts(table, dataset, measure) for measure in table.measures],
                "undefined": [table.undefined[dataset, measure] for measure in table.measures],
                "rankings": rankings,
            }
        )
    return found


def _name(value):
    return str(value.item() if isinstance(value, np.generic) else value)


def _choose(table, homes):
    """Choose queries within the limits of a file, first those on which trainers differ most.

    Returns two sets of (data set, place): queries with values, and the subset with rankings.
    """
    queries = []
    for dataset in table.datasets:
        spread = np.max([_spread(table, dataset, measure) for measure in table.measures], axis=0)
        queries += [(-spread[place], dataset, place, size) for place, (_, _, size) in enumerate(homes[dataset])]
    queries.sort(key=lambda query: query[0])
    queries = queries[: max(1, _MOST_VALUES // (len(table.trainers) * len(table.measures)))]
    totals = itertools.accumulate(min(size, N_TOP) * len(table.trainers) for *_, size in queries)
    valued = {(dataset, place) for _, dataset, place, _ in queries}
    return valued, {query[1:3] for query, total in zip(queries, totals, strict=True) if total <= _MOST_RANKED}


def _values(table, dataset, measure):
    """Return the (n_trainers, n_queries) values, rounded as on the page; values that are equal there count as equal."""
    return np.round([table.per_query[name, dataset, measure] for name in table.trainers], 6)


def _spread(table, dataset, measure):
    """Return the spread of the trainers on each query; -1 where the measure is undefined."""
    values = _values(table, dataset, measure)
    return np.nan_to_num(values.max(axis=0) - values.min(axis=0), nan=-1.0)


def _counts(table, dataset, measure):
    """Return, for each pair of trainers, the number of queries on which the second is better, and on which it is worse."""
    values = _values(table, dataset, measure)
    return [[[int((row > base).sum()), int((row < base).sum())] for row in values] for base in values]
