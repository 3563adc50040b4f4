"""Data sets: embedded data that need no download, generators, readers of LETOR files and tables, cleaning and shards.

Readers and cleaning load when first used, so that ``import structrank.datasets`` is quick.
"""

from structrank._support.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
