"""Learning to rank with structured SVMs: exact oracles, certified optima.

Names load when first used, so that ``import structrank`` is quick.
"""

from structrank import _compile
from structrank._lazy import names_of

_HOME = {
    "StructRankSVM": "svm",
    "most_violated": "violation",
    "compare": "comparison",
    "cross_validate": "model_selection",
    "train_for": "selection",
    "load_model": "model_file",
    "register": "criteria",
    "StructRankWarning": "_validation",
    **dict.fromkeys(("clicks", "criteria", "datasets", "feature_maps", "lambdas", "metrics", "solvers")),
}

__all__ = list(_HOME)
__version__ = "0.1.0"
__getattr__, __dir__ = names_of(globals(), _HOME)

_compile.provide_cache()
