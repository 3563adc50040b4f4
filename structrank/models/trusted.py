"""The types that skops creates when it loads a model of this package."""

from __future__ import annotations

import scipy.sparse

from structrank import criteria
from structrank._support.lazy import import_public


def trusted_types() -> list[str]:
    """Return the names of the types that a trained model may contain, for ``skops.io.load(path, trusted=trusted_types())``.

    These are the classes that a model file of this package may contain: learners, their results, criteria and measures, and
    those registered by `structrank.register`; and sparse matrices, which skops does not trust by itself. Creating them runs no
    code of the file.

    Examples
    --------
    >>> "structrank.svm.StructRankSVM" in trusted_types()
    True
    """
    import_public()
    classes = {*criteria.classes_in_files().values(), scipy.sparse.csr_matrix}
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in classes)
