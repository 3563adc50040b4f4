"""Learning to rank with structured SVMs: exact oracles, certified optima.

Names load when first used, so that ``import structrank`` is quick.
"""

from structrank._support.compile import provide_cache
from structrank._support.lazy import lazy

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy(__name__, __file__)

provide_cache()
