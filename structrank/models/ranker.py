"""Base class of learners that score documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank._support import checks
from structrank._support.typing import ArrayLike, Matrix, NDArray, Path
from structrank.datasets.queries import group_by_query
from structrank.models.fitting import CallbackSupportMixin, complete_fit


def ranks_within(scores, grouping):
    """Return the rank of each row within its query, 1 for the highest score; ties in row order.

    Examples
    --------
    >>> ranks_within(np.array([0.1, 0.9, 0.5]), group_by_query(["a", "a", "b"], 3))
    array([2, 1, 1])
    """
    order = np.lexsort((-scores, grouping.query_of_row()))
    ranks = np.empty(scores.shape[0], dtype=np.int64)
    ranks[order] = np.arange(1, scores.shape[0] + 1) - np.repeat(grouping.indptr[:-1], grouping.sizes)
    return ranks


def checked_features(estimator, X):
    """Return X as `checks.as_matrix` does; raise unless its width and column names are those that the estimator has seen."""
    check_is_fitted(estimator)
    X = checks.as_table(X)
    matrix = checks.as_matrix(X)
    checks.check_column_names(checks.column_names(X))
    validate_data(estimator, X, reset=False, skip_check_array=True)
    checks.check_width(matrix.shape[1], estimator.n_features_in_, type(estimator).__name__)
    return matrix


def check_finished(model):
    """Raise KeyboardInterrupt if training was interrupted, for callers that need a completely trained model."""
    if getattr(model, "stop_reason_", None) == "interrupted":
        raise KeyboardInterrupt
    if hasattr(model, "steps"):  # a Pipeline
        check_finished(model.steps[-1][1])
    elif hasattr(model, "best_estimator_"):  # a search
        check_finished(model.best_estimator_)


class Ranker(CallbackSupportMixin, BaseEstimator):
    """Base class: a scikit-learn estimator whose ``predict(X)`` returns scores, higher is better; adds `rank` and `save`.

    `qid` is the query of each row, or an integer if all rows belong to one query; without it, `fit`, `rank` and `score` raise.
    Under scikit-learn's metadata routing, `fit` and `score` request `qid`: a Pipeline or a search passes it on. `fit` also
    takes LightGBM's `group`, `eval_set` and `eval_group`, see `structrank.models.fitting`.

    Examples
    --------
    >>> class ByFirstFeature(Ranker):
    ...     def predict(self, X):
    ...         return np.asarray(X)[:, 0]
    >>> ByFirstFeature().rank([[0.1], [0.9], [0.5]], qid=["a", "a", "b"])
    array([2, 1, 1])
    """

    # The classes of attributes that several learners have; `check_loaded` checks them in loaded models.
    _loaded_kinds = {"n_iter_": int, "history_": Sequence, "stop_reason_": str, "notes_": Sequence}  # noqa: RUF012

    # Attributes that are computed again when they are missing: neither copied nor pickled.
    _caches: tuple[str, ...] = ()

    # Requested by default, so that users need not call set_fit_request and set_score_request.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    def __init_subclass__(cls, **kwargs):
        for name in ("fit", "fit_path"):
            if name in vars(cls):
                setattr(cls, name, complete_fit(vars(cls)[name]))
        super().__init_subclass__(**kwargs)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name not in self._caches}

    def rank(self, X: Matrix, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> NDArray[np.int64]:
        """Rank documents within their queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
        qid : array-like of shape (n_docs,) or int
            Query of each row; an integer makes all rows one query.
        group : array-like of shape (n_queries,), default None
            In place of `qid`, the number of rows of each query, whose rows are consecutive.

        Returns
        -------
        (n_docs,) array of int
            Rank of each row within its query, 1 is best, in the order of the rows of X; ties in row order.
        """
        scores = self.predict(X)
        if group is not None:
            qid = checks.qid_of_groups(group, scores, qid)
        return ranks_within(scores, group_by_query(qid, scores.shape[0]))

    def save(self, path: Path) -> None:
        """Write the trained model to a file that `structrank.load_model` reads; see `structrank.models.files`.

        Parameters
        ----------
        path : path-like
            An existing file is replaced atomically.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from structrank import StructRankSVM, load_model
        >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=[7, 7])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/m.structrank")
        ...     load_model(f"{folder}/m.structrank").certificate_ == model.certificate_
        True
        """
        from structrank.models import files

        files.save_model(self, path)

    def check_loaded(self):
        """Raise unless the fitted attributes, which may come from a forged file, fit together; `load_model` calls it.

        Compiled code does not check bounds: subclasses check here each relation of lengths and indices that it relies on.
        """
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            checks.check_array("feature_names_in_", names, "O", (self._loaded_width(),))
            if not all(isinstance(name, str) for name in names):
                raise ValueError("feature_names_in_ has a name that is not a text")
        for name, kind in self._loaded_kinds.items():
            if hasattr(self, name):
                checks.check_fitted_attribute(self, name, kind)
        if not all(isinstance(note, str) for note in getattr(self, "notes_", ())):
            raise ValueError("notes_ has a note that is not a text")
        if hasattr(self, "history_") and getattr(self, "n_iter_", len(self.history_)) != len(self.history_):
            raise ValueError(f"n_iter_ is {self.n_iter_!r}, but history_ has {len(self.history_)} entries")

    def _loaded_width(self):
        n = checks.check_fitted_attribute(self, "n_features_in_", int)
        return checks.check_number("n_features_in_", n, at_least=1, integer=True)

    def _check_loaded_weights(self, name, sizes=None):
        """Raise unless an attribute has one weight per feature, or one of the given numbers of weights."""
        n, weights = self._loaded_width(), checks.check_fitted_attribute(self, name, np.ndarray)
        if weights.dtype != np.float64:
            raise ValueError(f"{name} has the type {weights.dtype}; expected float64")
        if weights.ndim != 1 or weights.size not in (sizes or {n}):
            raise ValueError(f"{name} has {weights.size} numbers, which does not fit {n} features")
        if not np.isfinite(weights).all():
            raise ValueError(f"{name} has {weights[~np.isfinite(weights)][0]} at {int(np.argmin(np.isfinite(weights)))}")

    def _check_features(self, X):
        """Return X as `checks.as_matrix` does, after all checks for scoring except for nan and infinity."""
        return checked_features(self, X)
