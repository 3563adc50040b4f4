"""LightGBM and XGBoost rankers with the interface of this package, as baselines for comparison."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank import criteria
from structrank._support import checks
from structrank._support.lazy import optional
from structrank._support.saveable import saveable
from structrank._support.typing import ArrayLike, Matrix, NDArray
from structrank.datasets import Dataset
from structrank.learners.training import MeasureRanker, TrainingSets, shares
from structrank.learners.tree_texts import check_lightgbm_text, check_xgboost_text
from structrank.models import exports
from structrank.models.exports import ExportMethods, LightGBMMethods
from structrank.preparation import PARAMETERS

_OWN_PARAMETERS = "relevant_from", "n_jobs", "random_state", *PARAMETERS  # the others are the library's
_LARGEST_GRADE = 30  # both libraries tabulate the gain 2 ** grade - 1, up to grade 30 or 31


class TreeRanker(ExportMethods, MeasureRanker):
    """Base class of both rankers: input, labels, and the text of a trained model.

    Subclasses define `_library` (display name and module name), ``_error(library)``, the library's error class,
    ``_train(library, part, query_weights, other)``, which returns the text of a model trained on a `_Part` and stopped on
    another, or None, ``_check_text(text, n_features)``, which raises unless a text from a file is valid,
    ``_read(library, text)``, which returns a model, ``_predict(library, model, X)``, and ``_gains(model)``, the total gain of
    the splits of each feature.
    """

    def __init__(
        self,
        *,
        relevant_from: float | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
        missing: Any = "error",
        preparation: Any = None,
        normalise: Any = None,
        **parameters: Any,
    ) -> None:
        self.relevant_from = relevant_from
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing = missing
        self.preparation = preparation
        self.normalise = normalise
        self.parameters = parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, including the parameters of the library."""
        own = {name: getattr(self, name) for name in _OWN_PARAMETERS}
        return {**own, **self.parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        for name, value in params.items():
            if name in _OWN_PARAMETERS:
                setattr(self, name, value)
            else:
                self.parameters = {**self.parameters, name: value}
        return self

    def parsed_measure(self):
        """Return the measure of `score`: NDCG@10, as on the validation set, of binary relevance if it is trained on that."""
        return criteria.NDCG(10, discount="log2").measure(self.relevant_from)

    def fit(
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: Dataset | tuple | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X, qid, sample_weight
            As for `StructRankSVM.fit`.
        y : array-like of shape (n_docs,)
            Grades, integers from 0 to 30; with `relevant_from` any numbers of at least 0.
        validation : tuple (X, y, qid) or Dataset, default None
            Queries on which the library's NDCG@10 is measured; the trees after the best round are dropped.
        """
        self.check_parameters()
        sets = TrainingSets(X, y, qid, sample_weight, validation)
        for part in [sets.given] if sets.validation is None else [sets.given, sets.validation]:
            self.check_labels(part.labels)
            if part.grouping.sizes.max() > self._most_docs:
                raise ValueError(
                    f"a query has {part.grouping.sizes.max():,} documents; {self._library[0]} supports {self._most_docs:,}. "
                    "Use XGBoostRanker, LambdaMART or StructRankTrees."
                )
        data = sets.data  # the libraries do not ignore rows of weight 0
        library = self._import()
        try:
            other = None if sets.validation is None else self._part(sets.validation)
            text = self._train(library, self._part(data), data.query_weights, other)
        except (TypeError, ValueError, self._error(library)) as error:
            raise ValueError(f"{self._library[0]} failed to train: {_first_line(error)}") from error
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = data.n_features
        self.model_text_ = text
        self._model = None
        return self

    _caches = ("_model",)
    _most_docs = 2**31 - 1  # of a query

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of the splits; sums to 1, or is 0 if no tree has a split."""
        check_is_fitted(self)
        return shares(self._gains(self._loaded()))

    def _score_documents(self, X):
        matrix = self._check_features(X)
        library, model = self._import(), self._loaded()
        try:
            return self._predict(library, model, matrix).astype(np.float64)
        except self._error(library) as error:
            raise ValueError(f"{self._library[0]} failed to predict: {_first_line(error)}") from error

    def _loaded(self):
        """Return the model of the library, read from its text if it comes from a file, which holds only the text."""
        if getattr(self, "_model", None) is None:
            library = self._import()
            try:
                self._model = self._read(library, self.model_text_)
            except (self._error(library), ValueError, RecursionError) as error:
                raise ValueError(f"{self._library[0]} cannot read model_text_: {_first_line(error)}") from error
        return self._model

    def check_loaded(self):
        """Raise unless the trees of a loaded model can be evaluated; see `structrank.learners.tree_texts`."""
        super().check_loaded()
        checks.n_threads(self.n_jobs)
        self._check_text(checks.check_fitted_attribute(self, "model_text_", str), self._loaded_width())

    def _import(self):
        name, module = self._library
        return optional(module, type(self).__name__, name, "trees")

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data, or the library is not installed."""
        if self.relevant_from is not None:
            checks.check_number("relevant_from", self.relevant_from)
        checks.n_threads(self.n_jobs)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)
        self._import()

    def check_labels(self, labels):
        """Raise if training does not support the labels."""
        if self.relevant_from is not None:
            return
        wrong = np.flatnonzero((labels != np.floor(labels)) | (labels > _LARGEST_GRADE))
        if wrong.size:
            row = int(wrong[0])
            raise ValueError(
                f"y contains {labels[row]:g} at row {row} ({wrong.size} such label(s) in all); {self._library[0]} takes "
                f"grades, integers from 0 to {_LARGEST_GRADE}. Map labels to grades first, or set relevant_from to train on "
                "binary relevance."
            )

    def _part(self, data):
        labels = data.labels if self.relevant_from is None else data.labels >= self.relevant_from
        rows = data.grouping.rows
        return _Part(data.X if data.rows_in_order else data.X[rows], labels[rows].astype(np.int64), data.grouping.sizes)

    def _settings(self, **ours):
        n_jobs = 1 if self.n_jobs is None else self.n_jobs
        return {**ours, "n_jobs": n_jobs, "random_state": self.random_state, **self.parameters}


@dataclass(frozen=True)
class _Part:
    """Rows sorted by query, as the libraries take them."""

    X: Any
    labels: np.ndarray
    sizes: np.ndarray

    @property
    def numbers(self):
        """Number of the query of each row."""
        return np.repeat(np.arange(self.sizes.shape[0]), self.sizes)


@saveable
class LightGBMRanker(LightGBMMethods, TreeRanker):
    """Boosted trees of LightGBM, trained by its lambdarank.

    ``lightgbm.LGBMRanker`` with the interface of this package: queries in any order, bit-identical results for any `n_jobs`,
    files without pickle. Requires ``pip install structrank[trees]``.

    Parameters
    ----------
    relevant_from : float or None, default None
        Lowest label that counts as relevant, to train on binary relevance; None trains on the grades.
    n_jobs : int or None, default None
        Threads: None is 1, -1 all cores.
    random_state : int, default 0
        Seed.
    missing, preparation, normalise
        From raw values to features, as for `StructRankSVM`.
    **parameters
        Parameters of ``lightgbm.LGBMRanker``, such as ``n_estimators=100``, ``learning_rate=0.1``, ``num_leaves=31``, and other
        parameters of LightGBM, such as ``lambdarank_truncation_level=30``. LightGBM ignores unknown names.

    Attributes
    ----------
    model_text_ : str
        The trees in LightGBM's text format: ``lightgbm.Booster(model_str=model.model_text_)`` reads them.
    n_features_in_ : int
    feature_names_in_ : (n_features,) array
        Defined if X has string column names.

    See Also
    --------
    structrank.compare : Accepts this ranker as a row of the table.

    Examples
    --------
    >>> from structrank import datasets
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
    >>> model = LightGBMRanker(n_estimators=10).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.predict(fold.test.X).shape == fold.test.y.shape
    True
    """

    _library = ("LightGBM", "lightgbm")
    _most_docs = 10_000

    def _error(self, library):
        return library.basic.LightGBMError

    def _train(self, library, part, query_weights, other):
        # The order of summation then does not depend on the number of threads.
        settings = self._settings(verbose=-1, deterministic=True, force_row_wise=True)
        model, watched = library.LGBMRanker(**settings), {}
        if other is not None:
            never = np.iinfo(np.int32).max  # the best round is noted, and training goes on to the last
            watched = {"eval_set": [(other.X, other.labels)], "eval_group": [other.sizes], "eval_at": [10]}
            watched["callbacks"] = [library.early_stopping(never, verbose=False)]
        with warnings.catch_warnings():
            # The names that replace it are not in all versions that setup.cfg allows.
            warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
            model.fit(part.X, part.labels, group=part.sizes, sample_weight=np.repeat(query_weights, part.sizes), **watched)
        return model.booster_.model_to_string(num_iteration=model.best_iteration_ if watched else None)

    _check_text = staticmethod(check_lightgbm_text)

    def _read(self, library, text):
        return library.Booster(model_str=text)

    def _gains(self, model):
        return model.feature_importance("gain")

    def _predict(self, library, model, X):
        return model.predict(X, num_threads=self._settings()["n_jobs"])


@saveable
class XGBoostRanker(TreeRanker):
    """Boosted trees of XGBoost, trained by its LambdaMART (``objective="rank:ndcg"``).

    ``xgboost.XGBRanker`` with the interface of this package: queries in any order, files without pickle. Requires
    ``pip install structrank[trees]``. Values are rounded to float32, and sparse matrices are made dense, because XGBoost
    treats entries that are not stored as missing, not as 0.

    Parameters
    ----------
    relevant_from, n_jobs, random_state, missing, preparation, normalise
        As for `LightGBMRanker`.
    **parameters
        Parameters of ``xgboost.XGBRanker``, such as ``n_estimators=100``, ``learning_rate=0.3``, ``max_depth=6``. XGBoost warns
        about unknown names.

    Attributes
    ----------
    model_text_ : str
        The trees in XGBoost's JSON format: ``xgboost.Booster(model_file=bytearray(model.model_text_.encode()))`` reads
        them.
    n_features_in_ : int
    feature_names_in_ : (n_features,) array
        Defined if X has string column names.

    See Also
    --------
    structrank.compare : Accepts this ranker as a row of the table.

    Examples
    --------
    >>> from structrank import datasets
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
    >>> model = XGBoostRanker(n_estimators=10, max_depth=3).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.predict(fold.test.X).shape == fold.test.y.shape
    True
    """

    _library = ("XGBoost", "xgboost")

    def _error(self, library):
        return library.core.XGBoostError

    def _train(self, library, part, query_weights, other):
        settings, watched = self._settings(), {}
        if other is not None:
            never = np.iinfo(np.int32).max  # the best round is noted, and training goes on to the last
            settings = {"eval_metric": "ndcg@10", "early_stopping_rounds": never, **settings}
            watched = {"eval_set": [(_dense(other.X), other.labels)], "eval_qid": [other.numbers], "verbose": False}
        model, weights = library.XGBRanker(**settings), query_weights if np.ptp(query_weights) else None
        model.fit(_dense(part.X), part.labels, qid=part.numbers, sample_weight=weights, **watched)
        booster = model.get_booster()[: model.best_iteration + 1] if watched else model.get_booster()
        return bytes(booster.save_raw("json")).decode()

    _check_text = staticmethod(check_xgboost_text)

    def _read(self, library, text):
        return library.Booster(model_file=bytearray(text.encode()))

    def _gains(self, model):
        gains = model.get_score(importance_type="total_gain")  # only of features with a split
        return np.array([gains.get(f"f{number}", 0.0) for number in range(self.after_preparation().n_features_in_)])

    def _predict(self, library, model, X):
        return model.predict(library.DMatrix(_dense(X), nthread=self._settings()["n_jobs"]))

    to_xgboost = exports.to_xgboost


def _first_line(error):
    """Return the first line of a message, without the C++ stack trace."""
    return str(error).strip().splitlines()[0]


def _dense(X):
    """Convert a matrix to native float32, as XGBoost ignores the byte order; raise on overflow."""
    with np.errstate(over="ignore"):
        dense = np.ascontiguousarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=np.float32)
    place = checks.first_not_finite(dense.reshape(-1))
    if place >= 0:
        row, column = divmod(place, dense.shape[1])
        raise ValueError(
            f"X has {X[row, column]:g} in column {column}; XGBoost computes in float32, whose largest number is 3.4e38. Scale "
            "the feature first."
        )
    return dense
