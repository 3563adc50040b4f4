"""Learning to rank with structured SVMs: exact oracles, certified optima.

Names load when first used, so that ``import structrank`` is quick.
"""

import importlib

_HOME = {
    "StructRankSVM": "structrank.svm",
    "most_violated": "structrank.violation",
    "compare": "structrank.comparison",
    "load_model": "structrank.model_file",
    "StructRankWarning": "structrank._validation",
}
_MODULES = ("criteria", "datasets", "feature_maps", "metrics", "solvers")

__all__ = [*_HOME, *_MODULES]
__version__ = "0.1.0"


def __getattr__(name):
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"structrank.{name}")
    else:
        raise AttributeError(f"module 'structrank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
