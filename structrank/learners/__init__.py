"""RankNet, LambdaRank, LambdaMART, McRank, StructRankTrees, SPSA training, and diagnostics of trained models.

Names load when first used.
"""

from structrank._support.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
