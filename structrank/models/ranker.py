"""Base class of learners that score documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank._support import checks
from structrank._support.typing import ArrayLike, Matrix, NDArray, Path
from structrank.datasets.queries import group_by_query
from structrank.models.fitting import CallbackSupportMixin, complete_fit, names_of_columns
from structrank.preparation import PARAMETERS, check_loaded_steps, names_of, needs_qid, parameters_of, prepare, steps_of


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


def raw_names(model):
    """Return the names of the raw columns of a fitted model: those seen in training, or f1, f2, ..."""
    return names_of_columns(getattr(model, "feature_names_in_", None), model.n_features_in_)


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
        if group is not None:
            X = checks.as_table(X)
            qid = checks.qid_of_groups(group, X, qid)
        scores = self._scores_of_queries(X, qid)
        return ranks_within(scores, group_by_query(qid, scores.shape[0]))

    def _scores_of_queries(self, X, qid):
        """Return scores, by a `predict` that may have no parameter `qid`."""
        return self.predict(X)

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
            checks.check_array("feature_names_in_", names, "O", (self._raw_width(),))
            if not all(isinstance(name, str) for name in names):
                raise ValueError("feature_names_in_ has a name that is not a text")
        for name, kind in self._loaded_kinds.items():
            if hasattr(self, name):
                checks.check_fitted_attribute(self, name, kind)
        if not all(isinstance(note, str) for note in getattr(self, "notes_", ())):
            raise ValueError("notes_ has a note that is not a text")
        if hasattr(self, "history_") and getattr(self, "n_iter_", len(self.history_)) != len(self.history_):
            raise ValueError(f"n_iter_ is {self.n_iter_!r}, but history_ has {len(self.history_)} entries")

    def _raw_width(self):
        n = checks.check_fitted_attribute(self, "n_features_in_", int)
        return checks.check_number("n_features_in_", n, at_least=1, integer=True)

    def _loaded_width(self):
        """Return the number of features that the learner weights."""
        return self._raw_width()

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


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureRanker(Ranker):
    """Base class of learners that score documents by their features, after steps of preparation.

    A subclass defines ``_score_documents(X)``, which begins with `_check_features`. Its ``fit(X, y, qid)`` is called with
    prepared features, see `structrank.preparation`; `n_features_in_`, `feature_names_in_` and the X of all other methods
    are those before the preparation.

    Parameters
    ----------
    missing : {"error", "zero", "min", "mean", "query_min"}, number or dict, default "error"
        Rule for missing values, or a rule for each name or number of a column; columns that a dict leaves out must have all
        values. See `structrank.preparation.Fill`.
    preparation : Step, sequence of Step, or None, default None
        Steps after that, see `structrank.preparation`.
    normalise : {"minmax", "l2", "zscore", "rank"}, dict or None, default None
        Normaliser within the query, after all other steps, or one for each column; makes `qid` necessary in `predict`. See
        `structrank.preparation.Normalise`. What is learned is a part of the model.

    Attributes
    ----------
    preparation_ : tuple of Step
        The fitted steps; not defined without steps.

    Examples
    --------
    >>> from structrank.preparation import Fill
    >>> class Sum(FeatureRanker):
    ...     def fit(self, X, y, qid=None):
    ...         self.n_features_in_ = np.shape(X)[1]
    ...         return self
    ...     def _score_documents(self, X):
    ...         return self._check_features(X).sum(axis=1)
    >>> Sum(preparation=Fill("mean")).fit([[1.0], [2.0]], [0, 1], qid=0).predict([[np.nan], [5.0]])
    array([1.5, 5. ])
    """

    missing: Any = "error"
    preparation: Any = None
    normalise: Any = None

    _prepares_itself = False  # whether `fit` fits the preparation, or passes it on to other learners

    __metadata_request__predict = {"qid": False}  # noqa: RUF012

    def _get_metadata_request(self):
        request = super()._get_metadata_request()
        if needs_qid(steps_of(**parameters_of(self))):  # so that users need not call set_predict_request
            request.predict.add_request(param="qid", alias=True)
        return request

    def predict(self, X: Matrix, qid: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score documents; higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
        qid : array-like of shape (n_docs,) or int, default None
            Query of each row, an integer for one query; used, and then required, only by a preparation within queries.

        Returns
        -------
        (n_docs,) array
        """
        learner, X = self._prepared(X, qid)
        scores = learner._score_documents(X)
        if learner is not self:
            self.__dict__ |= {name: value for name, value in vars(learner).items() if name in self._caches}
        return scores

    def _score_documents(self, X):
        raise NotImplementedError(f"{type(self).__name__} defines neither predict nor _score_documents.")

    def _scores_of_queries(self, X, qid):
        return self.predict(X, qid) if hasattr(self, "preparation_") else self.predict(X)

    def after_preparation(self) -> Self:
        """Return the model of prepared features: without preparation itself, otherwise a view of its fitted attributes."""
        if not hasattr(self, "preparation_"):
            return self
        names = names_of(self.preparation_, raw_names(self))
        learner = object.__new__(type(self))
        learner.__dict__ |= {name: value for name, value in vars(self).items() if name != "preparation_"}
        learner.__dict__ |= {**PARAMETERS, "n_features_in_": len(names)}
        learner.feature_names_in_ = np.array(names, dtype=object)
        return learner

    def _prepared(self, X, qid):
        """Return the model of prepared features, and X as it takes it."""
        if not hasattr(self, "preparation_"):
            return self, X
        if needs_qid(self.preparation_) and qid is None:
            within = ", ".join(repr(step) for step in self.preparation_ if step.within_query)
            raise ValueError(
                f"qid is missing: the model prepares features within the query, by {within}. Pass the query of each row, as in "
                "model.predict(X, qid=qid), or qid=0 if all rows are of one query."
            )
        matrix, learner = checked_features(self, X), self.after_preparation()
        vars(learner).pop("feature_names_in_")  # the prepared matrix has no names
        return learner, prepare(self.preparation_, matrix, qid, raw_names(self))

    def check_loaded(self):
        """Raise unless the fitted attributes, which may come from a forged file, fit together; `load_model` calls it."""
        if hasattr(self, "preparation_"):
            steps_of(**parameters_of(self))
            check_loaded_steps(self.preparation_, self._raw_width())
        elif steps_of(**parameters_of(self)):
            raise ValueError("preparation_ is missing; expected the fitted steps of missing, preparation and normalise")
        super().check_loaded()

    def _loaded_width(self):
        """Return the number of prepared features."""
        return self._raw_width() + sum(step.n_added for step in getattr(self, "preparation_", ()))
