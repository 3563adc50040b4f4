"""Relevance from click logs: preference pairs, collaborative ranking, random walks and their hybrid.

Submodules are imported on first use.
"""

from structrank._support.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
