"""The data preparation of the KDD 2008 paper, section 4.1: drop documents that cause ties, scale features.

Each step is a function ``(X, y, qid) -> (X, y, qid, report)`` and a scikit-learn estimator. Only the
scaling is a transformer, as a step of a scikit-learn Pipeline can change columns but not the number of rows.
The two droppers follow imbalanced-learn's convention instead: ``fit_resample``, which returns the
remaining rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank._support.compile import kernel
from structrank.datasets.queries import group_rows, rows_by_query

_BLOCK = 1024  # rows on each side of a product of relevant and irrelevant documents


@dataclass(frozen=True, eq=False)
class Removed:
    """Documents that a step removed.

    Attributes
    ----------
    kept : (n_kept,) array of int
        Remaining rows, ascending; ``docid[kept]`` are their names.
    good, bad : int
        Relevant and irrelevant documents removed.
    queries : int
        Queries that lost all their documents.
    one_sided : int
        Queries that lost all their relevant or all their irrelevant documents, and so carry no training signal.
    """

    kept: np.ndarray
    good: int
    bad: int
    queries: int
    one_sided: int

    @property
    def documents(self):
        """Number of documents removed."""
        return self.good + self.bad

    def __repr__(self):
        return (
            f"Removed({self.documents} documents: {self.good} good, {self.bad} bad; "
            f"{self.queries} queries whole, {self.one_sided} left with one label)"
        )


@dataclass(frozen=True)
class Scaled:
    """Number of (query, feature) pairs whose constant value, not 0, became 0."""

    constant: int


def drop_zero_vectors(X: Any, y: Any, qid: Any, *, relevant_from: float = 1) -> tuple[Any, Any, Any, Removed]:
    """Drop the documents whose features are all exactly 0.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_docs, n_features)
    y : array-like of shape (n_docs,)
        Labels.
    qid : array-like of shape (n_docs,)
        The query of each row.
    relevant_from : float
        Lowest label that counts as relevant, for the counts of the report.

    Returns
    -------
    X, y, qid : the rows that stay, in the same order
    removed : Removed

    Examples
    --------
    >>> X, y, qid, removed = drop_zero_vectors([[1, 2], [0, 0], [3, 4]], [1, 0, 0], [7, 7, 7])
    >>> X.tolist(), removed
    ([[1.0, 2.0], [3.0, 4.0]], Removed(1 documents: 0 good, 1 bad; 0 queries whole, 0 left with one label))
    """
    X, y, qid = _checked(X, y, qid)
    keep = np.diff((X != 0).indptr) > 0 if scipy.sparse.issparse(X) else (X != 0).any(axis=1)
    return _keep(X, y, qid, keep, relevant_from)


def drop_near_duplicates(
    X: Any, y: Any, qid: Any, *, threshold: float = 0.99, relevant_from: float = 1
) -> tuple[Any, Any, Any, Removed]:
    """Drop near-duplicate relevant and irrelevant documents of a query: both of each pair above a cosine.

    All pairs of the given documents are compared, so that the order of rows does not matter. All-zero
    vectors have no direction and no duplicates; drop them before.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_docs, n_features)
    y : array-like of shape (n_docs,)
        Labels.
    qid : array-like of shape (n_docs,)
        The query of each row.
    threshold : float
        Cosine similarity above which a relevant and an irrelevant document are near-duplicates.
    relevant_from : float
        Lowest label that counts as relevant.

    Returns
    -------
    X, y, qid : the rows that stay, in the same order
    removed : Removed

    Examples
    --------
    >>> X, y, qid, removed = drop_near_duplicates([[1, 2], [2, 4], [3, 0]], [1, 0, 0], [7, 7, 7])
    >>> X.tolist(), removed
    ([[3.0, 0.0]], Removed(2 documents: 1 good, 1 bad; 0 queries whole, 1 left with one label))
    """
    X, y, qid = _checked(X, y, qid)
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold={threshold!r} is not valid: expected a cosine of at least 0 and below 1.")
    keep = np.ones(len(y), dtype=bool)
    for rows in rows_by_query(qid):
        is_good = y[rows] >= relevant_from
        good, bad = rows[is_good], rows[~is_good]
        for some_good in _blocks(good):
            good_directions = _directions(X[some_good])
            for some_bad in _blocks(bad):
                cosines = good_directions @ _directions(X[some_bad]).T
                alike = (cosines.toarray() if scipy.sparse.issparse(cosines) else cosines) > threshold
                keep[some_good[alike.any(axis=1)]] = False
                keep[some_bad[alike.any(axis=0)]] = False
    return _keep(X, y, qid, keep, relevant_from)


def scale_per_query(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any, Scaled]:
    """Scale each feature to [0, 1] within each query: ``(x - min) / (max - min)``, 0 where all are equal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_docs, n_features)
        A sparse X stays sparse; this needs values of at least 0 wherever a query has documents that lack the
        feature.
    y : array-like of shape (n_docs,)
        Labels; not used, present for a common signature.
    qid : array-like of shape (n_docs,)
        The query of each row.

    Returns
    -------
    X : array or CSR matrix of shape (n_docs, n_features)
        A new matrix.
    y, qid : as they came
    scaled : Scaled

    Examples
    --------
    >>> X, y, qid, scaled = scale_per_query([[2, 5], [4, 5], [3, 5]], [1, 0, 0], [7, 7, 7])
    >>> X.tolist(), scaled
    ([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]], Scaled(constant=1))
    """
    X, y, qid = _checked(X, y, qid)
    scale = _scale_sparse if scipy.sparse.issparse(X) else _scale_dense
    X, constant = scale(X, qid)
    return X, y, qid, Scaled(constant)


class ZeroVectorDropper(BaseEstimator):
    """`drop_zero_vectors` as an object, in imbalanced-learn's convention.

    It cannot be a step of a scikit-learn Pipeline, which never changes the number of rows.

    Parameters
    ----------
    relevant_from : float
        Lowest label that counts as relevant, for the counts of the report.

    Attributes
    ----------
    removed_ : Removed
    sample_indices_ : (n_kept,) array of int
        Remaining rows.

    Examples
    --------
    >>> dropper = ZeroVectorDropper()
    >>> X, y, qid = dropper.fit_resample([[1, 2], [0, 0]], [1, 0], qid=[7, 7])
    >>> X.tolist(), dropper.removed_.documents
    ([[1.0, 2.0]], 1)
    """

    def __init__(self, relevant_from=1):
        self.relevant_from = relevant_from

    def fit_resample(self, X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
        """Return X, y and qid without all-zero documents."""
        X, y, qid, self.removed_ = drop_zero_vectors(X, y, qid, relevant_from=self.relevant_from)
        self.sample_indices_ = self.removed_.kept
        return X, y, qid


class NearDuplicateDropper(BaseEstimator):
    """`drop_near_duplicates` as an object, in imbalanced-learn's convention.

    It cannot be a step of a scikit-learn Pipeline, which never changes the number of rows.

    Parameters
    ----------
    threshold : float
        Cosine similarity above which a relevant and an irrelevant document are near-duplicates.
    relevant_from : float
        Lowest label that counts as relevant.

    Attributes
    ----------
    removed_ : Removed
    sample_indices_ : (n_kept,) array of int
        Remaining rows.

    Examples
    --------
    >>> dropper = NearDuplicateDropper()
    >>> X, y, qid = dropper.fit_resample([[1, 2], [2, 4], [3, 0]], [1, 0, 0], qid=[7, 7, 7])
    >>> X.tolist(), dropper.sample_indices_.tolist()
    ([[3.0, 0.0]], [2])
    """

    def __init__(self, threshold=0.99, relevant_from=1):
        self.threshold = threshold
        self.relevant_from = relevant_from

    def fit_resample(self, X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
        """Return X, y and qid without near-duplicate relevant and irrelevant documents."""
        X, y, qid, self.removed_ = drop_near_duplicates(X, y, qid, threshold=self.threshold, relevant_from=self.relevant_from)
        self.sample_indices_ = self.removed_.kept
        return X, y, qid


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

    def fit(self, X: Any, y: Any = None, qid: Any = None) -> "PerQueryScaler":
        """Note the number of features."""
        validate_data(self, X, accept_sparse="csr")
        return self

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Scale X within each query; returns a new matrix of the same shape."""
        check_is_fitted(self)
        if qid is None:
            raise ValueError(
                "qid is missing: documents are scaled within their query. Pass qid=..., and in a Pipeline "
                "enable scikit-learn's metadata routing (sklearn.set_config(enable_metadata_routing=True))."
            )
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        X, _, _, self.scaled_ = scale_per_query(X, np.zeros(X.shape[0]), qid)
        return X

    def fit_transform(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Fit, then scale X."""
        return self.fit(X).transform(X, qid)


def _checked(X, y, qid):
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    y, qid = column_or_1d(y), column_or_1d(qid)
    check_consistent_length(X, y, qid)
    return X, y, qid


def _keep(X, y, qid, keep, relevant_from):
    is_good = y >= relevant_from
    rows, indptr = group_rows(qid)

    def in_query(documents):
        return np.logical_or.reduceat(documents[rows], indptr[:-1])

    left = in_query(keep)
    had_both = in_query(is_good) & in_query(~is_good)
    have_both = in_query(keep & is_good) & in_query(keep & ~is_good)
    queries, one_sided = int((~left).sum()), int((left & had_both & ~have_both).sum())
    good, bad = int(np.sum(~keep & is_good)), int(np.sum(~keep & ~is_good))
    return X[keep], y[keep], qid[keep], Removed(np.flatnonzero(keep), good, bad, queries, one_sided)


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


def _scale_dense(X, qid):
    scaled, constant = np.empty_like(X), 0
    for rows in rows_by_query(qid):
        block = X[rows]
        low, high = block.min(axis=0), block.max(axis=0)
        scaled[rows] = (block - low) / _or_one(high - low)
        constant += int(np.sum((low == high) & (low != 0)))
    return scaled, constant


def _scale_sparse(X, qid):
    scaled = X.copy()
    scaled.sum_duplicates()
    rows, starts = group_rows(qid)
    seen, bounds = np.zeros(X.shape[1], dtype=np.int64), np.empty((3, X.shape[1]), dtype=X.dtype)
    touched = np.empty(X.shape[1], dtype=np.int64)
    constant, query, column = _scale_stored(scaled.data, scaled.indices, scaled.indptr, rows, starts, seen, bounds, touched)
    if query >= 0:
        (name,) = qid[rows[starts[query] : starts[query] + 1]].tolist()
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
