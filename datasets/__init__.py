"""Data sets: embedded data that need no download, generators, readers of LETOR files and tables, cleaning and shards.

Readers and cleaning load when first used, so that ``import structrank.datasets`` is quick.
"""

from structrank._support.lazy import names_of
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.digits import load_digits_retrieval
from structrank.datasets.synthetic import make_ranking

_HOME = {
    **dict.fromkeys(("load_letor", "load_letor_folds"), "letor"),
    **dict.fromkeys(("load_table", "query_folds"), "tables"),
    "make_polynomial_ranking": "polynomial",
    **dict.fromkeys(("available", "load"), "library"),
    **dict.fromkeys(("clean", "scale_per_query", "PerQueryScaler"), "cleaning"),
    **dict.fromkeys(("make_clicks", "Clicks"), "clicks"),
    "make_click_labels": "click_labels",
    **dict.fromkeys(("write_shards", "open_shards", "cut_shards", "Shards"), "shards"),
}

__all__ = ["Dataset", "Fold", "load_digits_retrieval", "make_ranking", *_HOME]
__getattr__, __dir__ = names_of(globals(), _HOME)
