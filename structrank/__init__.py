"""Learning to rank with structured SVMs: exact oracles, certified optima.

Names load when first used, so that ``import structrank`` is quick.
"""

from structrank._support.compile import provide_cache
from structrank._support.lazy import names_of

_HOME = {
    "StructRankSVM": "svm",
    "StructRankTrees": "learners.structured_trees",
    "most_violated": "training.violation",
    "compare": "comparison.experiment",
    "cross_validate": "selection.cross_validation",
    "train_for": "selection.matching",
    "load_model": "models.files",
    "register": "criteria",
    "StructRankWarning": "_support.checks",
    **dict.fromkeys(("clicks", "criteria", "datasets", "feature_maps", "learners", "metrics", "papers", "solvers")),
}

__all__ = list(_HOME)
__version__ = "0.1.0"
__getattr__, __dir__ = names_of(globals(), _HOME)

provide_cache()
