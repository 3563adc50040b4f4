"""The data preparation of the KDD 2008 paper, section 4.1: scale features per query, drop documents that cause ties.

`scale_per_query` and `clean` act on a Dataset, a Fold or a list of folds and return the same kind; document ids are kept. The
paper's order is to scale first: ``clean(scale_per_query(folds))``. `PerQueryScaler` is the scaling as a step of a scikit-learn
Pipeline; there is none for `clean`, as a step can change columns but not the number of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank._support import checks
from structrank._support.compile import kernel
from structrank.datasets.containers import Dataset, Fold
from structrank.datasets.queries import group_by_query, group_rows, rows_by_query

PROTOCOLS = ("kdd08",)
_BLOCK = 1024  # rows on each side of a product of relevant and irrelevant documents


@dataclass(frozen=True)
class Removed:
    """Counts of what `clean` removed; the sum of two is that of both data sets.

    Attributes
    ----------
    documents : int
        Documents before cleaning.
    relevant, irrelevant : int
        Relevant and irrelevant documents removed.
    zero : int
        Those of them that were all-zero vectors; the others were near-duplicates.
    queries : int
        Queries that lost all their documents.
    one_sided : int
        Queries that lost all their relevant or all their irrelevant documents, and so carry no training signal.

    Examples
    --------
    >>> Removed(10, 0, 3, 1, 0, 0) + Removed(20, 1, 1, 0, 0, 1)
    Removed(documents=30, relevant=1, irrelevant=4, zero=1, queries=0, one_sided=1)
    """

    documents: int
    relevant: int
    irrelevant: int
    zero: int
    queries: int
    one_sided: int

    def __add__(self, other):
        return Removed(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def left(self):
        """Number of documents after cleaning."""
        return self.documents - self.relevant - self.irrelevant


def scale_per_query(data: Any) -> Any:
    """Scale each feature to [0, 1] within each query: ``(x - min) / (max - min)``, 0 where all are equal.

    Parameters
    ----------
    data : Dataset, Fold, or list of these
        A sparse X stays sparse; this needs values of at least 0 wherever a query has documents that lack the feature.

    Returns
    -------
    Dataset, Fold, or list of these
        With a new X; labels, queries and document ids are those of the data.

    Examples
    --------
    >>> from structrank import datasets
    >>> data = datasets.Dataset(np.array([[2, 5], [4, 5], [3, 5]]), np.array([1, 0, 0]), np.array([7, 7, 7]))
    >>> datasets.scale_per_query(data).X.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    return _each_part(data, _scale_part)


def clean(
    data: Any, protocol: str = "kdd08", *, drop: str = "irrelevant", threshold: float = 0.99, relevant_from: float = 1
) -> Any:
    """Drop all-zero vectors, and near-duplicates with different relevance.

    All-zero vectors, and relevant and irrelevant documents that are nearly parallel, get (nearly) the same score from every
    linear model, so that chance orders them. All pairs of a relevant and an irrelevant document of a query are compared; the
    order of rows does not matter.

    Parameters
    ----------
    data : Dataset, Fold, or list of these
        Scaled before, see `scale_per_query`, as in the paper.
    protocol : {"kdd08"}, default "kdd08"
        The KDD 2008 paper's, section 4.1: "we eliminated all-zero feature vectors and good and bad vectors whose cosine
        similarity was above 0.99".
    drop : {"irrelevant", "relevant", "both"}, default "irrelevant"
        Which document of a near-duplicate pair is dropped. The paper does not say; on OHSUMED, "irrelevant" gives the test
        accuracies of its Figure 9, "both" gives lower ones.
    threshold : float, default 0.99
        Cosine similarity above which a relevant and an irrelevant document are near-duplicates.
    relevant_from : float, default 1
        Lowest label that counts as relevant.

    Returns
    -------
    Dataset, Fold, or list of these
        The rows that remain, in the same order, with their document ids.

    See Also
    --------
    clean_part : Also returns the counts of what was removed.

    Examples
    --------
    >>> from structrank import datasets
    >>> X, docid = np.array([[1, 2], [2, 4], [3, 0], [0, 0]]), np.array(["a", "b", "c", "d"])
    >>> data = datasets.Dataset(X, np.array([1, 0, 0, 0]), np.array([7, 7, 7, 7]), docid)
    >>> datasets.clean(data).docid.tolist(), datasets.clean(data, drop="both").docid.tolist()
    (['a', 'c'], ['c'])
    """
    change = functools.partial(clean_part, protocol=protocol, drop=drop, threshold=threshold, relevant_from=relevant_from)
    return _each_part(data, lambda part: change(part)[0])


def clean_part(
    data: Dataset, protocol: str = "kdd08", *, drop: str = "irrelevant", threshold: float = 0.99, relevant_from: float = 1
) -> tuple[Dataset, Removed]:
    """Clean one Dataset; arguments as for `clean`.

    Returns
    -------
    cleaned : Dataset
    removed : Removed
        Counts of what was removed.

    Examples
    --------
    >>> data = Dataset(np.array([[1, 2], [2, 4], [0, 0]]), np.array([1, 0, 0]), np.array([7, 7, 7]))
    >>> clean_part(data)[1]
    Removed(documents=3, relevant=0, irrelevant=2, zero=1, queries=0, one_sided=1)
    """
    checks.check_choice("protocol", protocol, PROTOCOLS)
    checks.check_choice("drop", drop, ("irrelevant", "relevant", "both"))
    checks.check_number("relevant_from", relevant_from)
    checks.check_number("threshold", threshold, at_least=0, below=1)
    X, y, qid = _checked(data.X, data.y, data.qid)
    is_relevant = y >= relevant_from
    zero = np.diff((X != 0).indptr) == 0 if scipy.sparse.issparse(X) else ~(X != 0).any(axis=1)
    alike = _near_duplicates(X, qid, is_relevant, threshold)  # all-zero vectors have no direction, and so no duplicates
    dropped = {"irrelevant": ~is_relevant, "relevant": is_relevant, "both": np.ones(len(y), dtype=bool)}[drop]
    keep = ~(zero | (alike & dropped))
    rows = np.flatnonzero(keep)
    given: dict[str, Any] = {name: getattr(data, name, None) for name in ("y", "qid", "docid")}
    columns: dict[str, Any] = {name: None if column is None else np.asarray(column)[rows] for name, column in given.items()}
    return Dataset(_safe_indexing(data.X, rows), **columns), _count(qid, is_relevant, keep, zero)


@dataclass(frozen=True)
class Scaled:
    """Number of (query, feature) pairs whose constant value, not 0, became 0."""

    constant: int


class PerQueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """`scale_per_query` as a scikit-learn transformer.

    Nothing is learned: the documents of a query are scaled by their own range, in training and prediction,
    so `qid` is always needed. A Pipeline passes it on if scikit-learn's metadata routing is enabled; the request
    for `qid` is set.

    Attributes
    ----------
    n_features_in_ : int
    scaled_ : Scaled
        Of the last transform.

    Examples
    --------
    >>> PerQueryScaler().fit_transform([[2, 5], [4, 5], [3, 5]], qid=[7, 7, 7]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """

    # Requested by default, so that users need not call set_fit_request and set_transform_request.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, qid: Any = None) -> PerQueryScaler:
        """Note the number of features."""
        checks.check_sparse(X)
        validate_data(self, X, accept_sparse="csr")
        return self

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Scale X within each query; returns a new matrix of the same shape."""
        check_is_fitted(self)
        checks.check_sparse(X)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
        X, constant = scale_within_queries(X, group_by_query(qid, X.shape[0]))
        self.scaled_ = Scaled(constant)
        return X

    def fit_transform(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Fit, then scale X."""
        return self.fit(X).transform(X, qid)


def _each_part(data: Any, change: Callable[[Dataset], Dataset]) -> Any:
    """Apply a change of data sets to a Dataset, to the parts of a Fold, or to each of a list."""
    if isinstance(data, (list, tuple)):
        return [_each_part(one, change) for one in data]
    if hasattr(data, "train") and hasattr(data, "test"):
        validation = None if data.validation is None else change(data.validation)
        return Fold(change(data.train), validation, change(data.test))
    if not all(hasattr(data, name) for name in ("X", "y", "qid")):
        raise ValueError(f"data is a {type(data).__name__}; expected a Dataset (X, y, qid), a Fold or a list of folds.")
    return change(data)


def _checked(X, y, qid):
    checks.check_sparse(X)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    y = column_or_1d(y)
    check_consistent_length(X, y)
    qid = column_or_1d(checks.as_query_ids(qid, len(y)))
    return X, y, qid


def _scale_part(data):
    X, _, qid = _checked(data.X, data.y, data.qid)
    scaled, _ = scale_within_queries(X, group_by_query(qid, len(qid)))
    if hasattr(data.X, "iloc"):  # pandas: columns keep their names
        scaled = type(data.X)(scaled, index=data.X.index, columns=data.X.columns)
    return replace(data, X=scaled)


def scale_within_queries(X, grouping):
    """Scale a matrix as `scale_per_query` does; return it, and the number of (query, feature) pairs whose constant became 0."""
    return (_scale_sparse if scipy.sparse.issparse(X) else _scale_dense)(X, grouping)


def _near_duplicates(X, qid, is_relevant, threshold):
    """Return a mask of the documents with a cosine above the threshold to one of the other kind in their query."""
    alike = np.zeros(len(qid), dtype=bool)
    for rows in rows_by_query(qid):
        for relevant in _blocks(rows[is_relevant[rows]]):
            directions = _directions(X[relevant])
            for irrelevant in _blocks(rows[~is_relevant[rows]]):
                cosines = directions @ _directions(X[irrelevant]).T
                above = (cosines.toarray() if scipy.sparse.issparse(cosines) else cosines) > threshold
                alike[relevant[above.any(axis=1)]] = True
                alike[irrelevant[above.any(axis=0)]] = True
    return alike


def _count(qid, is_relevant, keep, zero):
    rows, indptr = group_rows(qid)

    def in_query(documents):
        return np.logical_or.reduceat(documents[rows], indptr[:-1])

    left = in_query(keep)
    had_both = in_query(is_relevant) & in_query(~is_relevant)
    have_both = in_query(keep & is_relevant) & in_query(keep & ~is_relevant)
    counted = (~keep & is_relevant, ~keep & ~is_relevant, zero, ~left, left & had_both & ~have_both)
    return Removed(len(keep), *(int(mask.sum()) for mask in counted))


def _blocks(rows):
    return [rows[start : start + _BLOCK] for start in range(0, rows.size, _BLOCK)]


def _directions(X):
    """Scale rows to norm 1, except all-zero rows; first by the largest entry, so that no square overflows."""
    X = X.astype(np.float64)
    if scipy.sparse.issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, row, np.abs(X.data))
        X.data /= _or_one(largest)[row]
        X.data /= _or_one(np.sqrt(np.bincount(row, X.data**2, minlength=X.shape[0])))[row]
    else:
        X /= _or_one(np.abs(X).max(axis=1, keepdims=True))
        X /= _or_one(np.linalg.norm(X, axis=1, keepdims=True))
    return X


def _or_one(values):
    return np.where(values > 0, values, 1)


def _scale_dense(X, grouping):
    scaled, constant = np.empty_like(X), 0
    for rows in np.split(grouping.rows, grouping.indptr[1:-1]):
        block = X[rows]
        low, high = block.min(axis=0), block.max(axis=0)
        scaled[rows] = (block - low) / _or_one(high - low)
        constant += int(np.sum((low == high) & (low != 0)))
    return scaled, constant


def _scale_sparse(X, grouping):
    scaled = X.copy()
    scaled.sum_duplicates()
    rows, starts = grouping.rows, grouping.indptr
    seen, bounds = np.zeros(X.shape[1], dtype=np.int64), np.empty((3, X.shape[1]), dtype=X.dtype)
    touched = np.empty(X.shape[1], dtype=np.int64)
    constant, query, column = _scale_stored(scaled.data, scaled.indices, scaled.indptr, rows, starts, seen, bounds, touched)
    if query >= 0:
        (name,) = grouping.ids[query : query + 1].tolist()
        raise ValueError(
            f"column {column} has negative values in query {name!r} and is not "
            "stored for all its documents: the others would be above 0, and X no longer sparse. "
            "Pass X.toarray()."
        )
    scaled.eliminate_zeros()
    return scaled, constant


@kernel
def _scale_stored(values, columns, indptr, rows, starts, seen, bounds, touched):
    """Scale the stored values in place; return the number of constant pairs, and the query and column that cannot be scaled."""
    low, high, width = bounds[0], bounds[1], bounds[2]
    constant = 0
    for q in range(starts.shape[0] - 1):
        n, n_touched, wrong = starts[q + 1] - starts[q], 0, -1
        for r in range(starts[q], starts[q + 1]):
            for place in range(indptr[rows[r]], indptr[rows[r] + 1]):
                c, value = columns[place], values[place]
                if seen[c] == 0:
                    low[c] = high[c] = value
                    touched[n_touched] = c
                    n_touched += 1
                else:
                    low[c], high[c] = min(low[c], value), max(high[c], value)
                seen[c] += 1
        for t in range(n_touched):
            c = touched[t]
            if seen[c] < n:  # the value of the other documents is 0
                if low[c] < 0 and (wrong < 0 or c < wrong):
                    wrong = c
                low[c], high[c] = min(low[c], 0), max(high[c], 0)
            constant += low[c] == high[c] and low[c] != 0
            width[c] = high[c] - low[c]
            if width[c] <= 0:
                width[c] = 1
            seen[c] = 0
        if wrong >= 0:
            return constant, q, wrong
        for r in range(starts[q], starts[q + 1]):
            for place in range(indptr[rows[r]], indptr[rows[r] + 1]):
                c = columns[place]
                values[place] = (values[place] - low[c]) / width[c]
    return constant, -1, -1
