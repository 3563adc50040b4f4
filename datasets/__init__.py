"""Data sets: embedded ones that need no download, generators, readers of LETOR files, and their cleaning.

Readers and cleaning load when first used, so that ``import structrank.datasets`` is quick.
"""

import importlib

from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.digits import load_digits_retrieval
from structrank.datasets.synthetic import make_ranking

_HOME = {
    "load_letor": "letor",
    "load_letor_folds": "letor",
    "make_polynomial_ranking": "polynomial",
    "available": "library",
    "load": "library",
    "clean": "cleaning",
    "scale_per_query": "cleaning",
    "PerQueryScaler": "cleaning",
    "make_clicks": "clicks",
    "Clicks": "clicks",
    "make_click_labels": "click_labels",
    "write_shards": "shards",
    "open_shards": "shards",
    "cut_shards": "shards",
    "Shards": "shards",
}

__all__ = ["Dataset", "Fold", "load_digits_retrieval", "make_ranking", *_HOME]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
