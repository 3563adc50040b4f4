"""Return types of the loaders: a Dataset of rows, a Fold of data sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Documents of several queries, one row per document.

    Nothing is copied, sorted or checked at construction: learners check their input.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_docs, n_features)
        Features of the documents.
    y : array of shape (n_docs,)
        Labels: 0 is irrelevant, larger is better.
    qid : array of shape (n_docs,)
        Query of each row.
    docid : array of shape (n_docs,), optional
        Name of each document; None if the data set has no names.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank.datasets import Dataset
    >>> d = Dataset(X=np.eye(3), y=np.array([0, 1, 0]), qid=np.array([7, 7, 8]))
    >>> d
    Dataset(3 documents, 2 queries, 3 features, labels 0: 2, 1: 1)
    >>> len(d)
    3
    """

    X: Any
    y: np.ndarray
    qid: np.ndarray
    docid: np.ndarray | None = None

    def __len__(self):
        return self.X.shape[0]

    def __repr__(self):
        labels, counts = np.unique(self.y, return_counts=True)
        shown = [f"{label:g}: {count}" for label, count in zip(labels[:6], counts[:6], strict=True)]
        if len(labels) > 6:
            shown.append(f"... ({len(labels)} values)")
        return (
            f"Dataset({len(self)} documents, {len(np.unique(self.qid))} queries, "
            f"{self.X.shape[1]} features, labels {', '.join(shown) or 'none'})"
        )


@dataclass(frozen=True, eq=False)
class Fold:
    """One split by query: fit on `train`, choose parameters on `validation`, measure on `test`.

    Parameters
    ----------
    train, test : Dataset
        Parts that share no query.
    validation : Dataset or None
        None if the data set has no validation part.

    Examples
    --------
    >>> from structrank.datasets import make_ranking
    >>> fold = make_ranking(n_queries=10, n_docs=5, n_features=3, random_state=0)
    >>> len(fold.train), len(fold.validation), len(fold.test)
    (30, 10, 10)
    """

    train: Dataset
    validation: Dataset | None
    test: Dataset
