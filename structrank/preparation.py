"""From raw values to the features of a learner: steps that are a part of the model.

A learner with ``missing="mean"``, ``preparation=Log(["clicks"])`` and ``normalise="zscore"``, or with the list of steps
``preparation=[Fill("mean"), Log(["clicks"]), Normalise("zscore")]``, learns the constants of the steps from the
training documents, is trained on their result, and applies them in `predict`, `rank`, `score` and `explain`. The model is the
whole function from raw values to scores, in files, too. X is not changed; its prepared copy is a matrix of float64, sparse if X
is sparse.

A step acts on all columns, or on `columns`, a list of names or numbers of the raw columns. Steps are applied one after another.
Missing values are nan; what is left of them after the last step is an error that names row and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone

from structrank._kernels.variances import add_variances
from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.datasets.cleaning import scale_within_queries
from structrank.datasets.queries import group_by_query, put_query_minimum


class Step(BaseEstimator):
    """Base class of steps.

    A subclass defines ``_apply(X, grouping)``, which returns a new matrix for its columns, and perhaps
    ``_learn_columns(X, grouping, names)``, which sets its constants as fitted attributes. `columns_` are the numbers of the
    columns, None for all.
    """

    within_query = False  # whether the result depends on the other documents of the query
    columns: Sequence[str | int] | None = None

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        if self.columns is not None and (isinstance(self.columns, str) or not hasattr(self.columns, "__iter__")):
            raise ValueError(f"columns={self.columns!r} is not valid: expected a list of names or numbers, or None for all.")

    def learn(self, X, grouping, names):
        """Learn from the training documents, a matrix of float64 with these names of columns, and return self."""
        self.columns_ = None if self.columns is None else _find_columns(self.columns, names, type(self).__name__)
        self.n_features_in_ = X.shape[1]
        part = X if self.columns_ is None else X[:, self.columns_]
        self._learn_columns(part, grouping, names if self.columns_ is None else [names[number] for number in self.columns_])
        return self

    def transform(self, X, grouping, names):
        """Return a new matrix in which the columns are transformed; `names`, those of the columns, are for errors."""
        if self.columns_ is None:
            return self._apply(X, grouping)
        return _with_columns(X, self.columns_, self._apply(X[:, self.columns_], grouping))

    def names_out(self, names):
        """Return the names of the columns after the step."""
        chosen = range(len(names)) if self.columns_ is None else set(self.columns_.tolist())
        return [f"{self._label}({name})" if number in chosen else name for number, name in enumerate(names)]

    def check_loaded(self):
        """Raise unless the fitted attributes, which may come from a forged file, fit together."""
        self.check_parameters()
        n = checks.check_fitted_attribute(self, "n_features_in_", int)
        checks.check_number("n_features_in_", n, at_least=1, integer=True)
        if self.columns_ is not None:
            checks.check_array("columns_", self.columns_, "i", (np.size(self.columns_),))
            if not self.columns_.size or self.columns_.min() < 0 or self.columns_.max() >= n:
                raise ValueError(f"columns_ of {type(self).__name__} is not within its {n} columns")
            if np.unique(self.columns_).size < self.columns_.size:
                raise ValueError(f"columns_ of {type(self).__name__} names a column twice")

    @property
    def n_added(self):
        """Number of columns that a fitted step appends."""
        return 0

    @property
    def _width(self):
        return self.n_features_in_ if self.columns_ is None else self.columns_.shape[0]

    @property
    def _label(self):
        return type(self).__name__.lower()

    def _learn_columns(self, X, grouping, names):
        pass

    def _check_loaded_constants(self, name, least):
        """Raise unless an attribute has one finite number for each column of the step."""
        values = checks.check_fitted_attribute(self, name, np.ndarray)
        checks.check_array(name, values, "f", (self._width,))
        if not np.isfinite(values).all() or (values < least).any():
            raise ValueError(f"{name} of {type(self).__name__} has numbers that no training gives")


@saveable
class Fill(Step):
    """Fill missing values, which are nan.

    Parameters
    ----------
    value : {"zero", "min", "mean", "query_min"} or float, default "zero"
        "min" and "mean" are those of the column over all training documents that have a value; "query_min" is the smallest
        value in the document's query, 0 if no document has one.
    columns : sequence of str or int, default None
        Names or numbers; None for all. With another rule for some columns, put their step first:
        ``[Fill("mean", ["age"]), Fill("zero")]``.
    indicator : bool, default False
        Whether to append a column ``missing(name)``, 1 where the value was missing, for each column with missing values in
        training.

    Attributes
    ----------
    values_ : (n_columns,) array or None
        The value of each column; None for "query_min".
    missing_ : (n_indicators,) array of int
        Places, among the columns of the step, of those with an indicator.
    """

    def __init__(self, value="zero", columns=None, indicator=False):
        self.value = value
        self.columns = columns
        self.indicator = indicator

    @property
    def within_query(self):
        """Whether the value depends on the other documents of the query."""
        return self.value == "query_min"

    @property
    def n_added(self):
        """Number of indicators."""
        return self.missing_.shape[0]

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        super().check_parameters()
        if isinstance(self.value, str):
            checks.check_choice("value", self.value, ("zero", "min", "mean", "query_min"))
        else:
            checks.check_number("value", self.value, otherwise=", or one of 'zero', 'min', 'mean', 'query_min'")
        if not isinstance(self.indicator, (bool, np.bool_)):
            raise ValueError(f"indicator={self.indicator!r} is not valid: expected True or False.")

    def transform(self, X, grouping, names):
        """Return a new matrix without missing values in the columns, and with the indicators at its end."""
        filled = super().transform(X, grouping, names)
        if not self.missing_.size:
            return filled
        places = self.missing_ if self.columns_ is None else self.columns_[self.missing_]
        if scipy.sparse.issparse(X):
            flags = X[:, places]
            flags.data = np.isnan(flags.data).astype(np.float64)
            flags.eliminate_zeros()
            return scipy.sparse.hstack([filled, flags], format="csr")
        return np.hstack([filled, np.isnan(X[:, places])])

    def names_out(self, names):
        """Return the names of the columns after the step."""
        places = self.missing_ if self.columns_ is None else self.columns_[self.missing_]
        return [*names, *(f"missing({names[place]})" for place in places)]

    def check_loaded(self):
        """Raise unless the constants are finite, and the indicators those of columns of the step."""
        super().check_loaded()
        if self.within_query:
            if self.values_ is not None:
                raise ValueError("values_ of Fill('query_min') is not None")
        else:
            self._check_loaded_constants("values_", -np.inf)
        checks.check_array("missing_", self.missing_, "i", (np.size(self.missing_),))
        if self.missing_.size and (self.missing_.min() < 0 or self.missing_.max() >= self._width):
            raise ValueError("missing_ of Fill is not within its columns")

    def _learn_columns(self, X, grouping, names):
        n_missing, n_docs = _count_missing(X), X.shape[0]
        self.missing_ = np.flatnonzero(n_missing) if self.indicator else np.empty(0, dtype=np.int64)
        self.values_ = None
        if not isinstance(self.value, str) or self.value == "zero":
            self.values_ = np.full(X.shape[1], 0.0 if self.value == "zero" else float(self.value))
        elif self.value != "query_min":
            if (n_missing == n_docs).any():
                name = names[int(np.argmax(n_missing == n_docs))]
                raise ValueError(
                    f"column {name!r} has no value in the {n_docs} training documents, so Fill({self.value!r}) has nothing to "
                    "learn from; drop the column, or fill it with a number."
                )
            self.values_ = (_least if self.value == "min" else _mean)(X)
            if not np.isfinite(self.values_).all():
                name = names[int(np.argmin(np.isfinite(self.values_)))]
                raise ValueError(
                    f"column {name!r} has infinite values, so Fill({self.value!r}) cannot be learned; clip it first."
                )

    def _apply(self, X, grouping):
        filled = X.copy()
        if self.within_query:
            put_query_minimum(filled, grouping.query_of_row())
        elif scipy.sparse.issparse(X):
            missing = np.isnan(filled.data)
            filled.data[missing] = self.values_[filled.indices[missing]]
        else:
            np.copyto(filled, self.values_, where=np.isnan(X))
        return filled


@saveable
class Log(Step):
    """Compress large values: ``sign(x) log(1 + |x|)``, which is odd, rises everywhere, and keeps 0.

    Parameters
    ----------
    columns : sequence of str or int, default None
        Names or numbers; None for all.
    """

    def __init__(self, columns=None):
        self.columns = columns

    def _apply(self, X, grouping):
        def log(values):
            return np.sign(values) * np.log(1.0 + np.abs(values))

        return _map_stored(X, log) if scipy.sparse.issparse(X) else log(X)


@saveable
class Clip(Step):
    """Limit values: min(max(x, low), high). Infinite values are limited, too.

    Parameters
    ----------
    low, high : float or None, default None
        None for no limit.
    columns : sequence of str or int, default None
        Names or numbers; None for all.
    """

    def __init__(self, low=None, high=None, columns=None):
        self.low = low
        self.high = high
        self.columns = columns

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        super().check_parameters()
        given = [checks.check_number(name, getattr(self, name)) for name in ("low", "high") if getattr(self, name) is not None]
        if not given or given != sorted(given):
            raise ValueError(f"low={self.low!r}, high={self.high!r} is not valid: expected one limit, or low of at most high.")

    def _apply(self, X, grouping):
        if not scipy.sparse.issparse(X):
            return np.clip(X, self.low, self.high)
        if np.clip(0.0, self.low, self.high) != 0.0:
            raise ValueError(f"{self!r} changes 0, and a sparse X would no longer be sparse. Pass X.toarray().")
        return _map_stored(X, lambda values: np.clip(values, self.low, self.high))


@saveable
class Deviation(Step):
    """Divide each column by its standard deviation within queries, averaged over the training queries as squares.

    Nothing is subtracted: a constant does not change a ranking by a linear model, and sparse data stay sparse.

    Parameters
    ----------
    columns : sequence of str or int, default None
        Names or numbers; None for all.

    Attributes
    ----------
    scale_ : (n_columns,) array
        The standard deviations; 1 for a constant column.
    """

    def __init__(self, columns=None):
        self.columns = columns

    def check_loaded(self):
        """Raise unless there is one positive number for each column."""
        super().check_loaded()
        self._check_loaded_constants("scale_", np.finfo(np.float64).tiny)

    def _learn_columns(self, X, grouping, names):
        checks.check_finite_matrix(X, names)
        variances = np.zeros(X.shape[1])
        shares = np.full(grouping.n_queries, 1.0 / grouping.n_queries)
        arrays = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else None
        dense = None if arrays else np.ascontiguousarray(X)
        add_variances((dense, arrays, 0, grouping.rows), grouping.indptr, shares, variances)
        scale = np.sqrt(variances)
        self.scale_ = np.where((scale >= np.finfo(np.float64).tiny) & np.isfinite(scale), scale, 1.0)

    def _apply(self, X, grouping):
        if not scipy.sparse.issparse(X):
            return X / self.scale_
        divided = X.copy()
        divided.data /= self.scale_[divided.indices]
        return divided


_METHODS = ("minmax", "l2", "zscore", "rank")


@saveable
class Normalise(Step):
    r"""Normalise each column within the query of a document, so that `predict` needs `qid`.

    With x the values of a column over the n documents of a query:

    ==========  =========================================================  ============================
    method      value                                                      if all values are equal
    ==========  =========================================================  ============================
    "minmax"    (x - min) / (max - min)                                    0
    "l2"        :math:`x / \sqrt{\sum x^2}`, 0 if all values are 0         1 / sqrt(n), or its negative
    "zscore"    (x - mean) / sd, :math:`sd^2 = \sum (x - mean)^2 / n`       0
    "rank"      1 / (k + rank), rank 1 for the largest value               1 / (k + 1)
    ==========  =========================================================  ============================

    Equal values have equal ranks: 1 plus the number of documents of the query with a larger value.

    Parameters
    ----------
    method : {"minmax", "l2", "zscore", "rank"}, default "minmax"
        A sparse X takes "l2", and "minmax" if its values are at least 0.
    k : float, default 60
        Constant of "rank", as in reciprocal rank fusion.
    columns : sequence of str or int, default None
        Names or numbers; None for all.
    """

    within_query = True

    def __init__(self, method="minmax", k=60, columns=None):
        self.method = method
        self.k = k
        self.columns = columns

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data."""
        super().check_parameters()
        checks.check_choice("method", self.method, _METHODS)
        checks.check_number("k", self.k, at_least=0)

    def transform(self, X, grouping, names):
        """Return a new matrix in which the columns are normalised; raise if X is not finite there."""
        # nan would spread to the other documents of the query, and an error no longer name its place.
        chosen = X if self.columns_ is None else X[:, self.columns_]
        checks.check_finite_matrix(chosen, names if self.columns_ is None else [names[number] for number in self.columns_])
        return super().transform(X, grouping, names)

    @property
    def _label(self):
        return self.method

    def _apply(self, X, grouping):
        if self.method == "minmax":
            return scale_within_queries(X, grouping)[0]
        if scipy.sparse.issparse(X):
            if self.method != "l2":
                raise ValueError(
                    f"Normalise({self.method!r}) changes 0, and a sparse X would no longer be sparse. Pass X.toarray()."
                )
            return _l2_sparse(X, grouping.query_of_row())
        normalised = np.empty_like(X)
        with np.errstate(over="ignore", invalid="ignore"):
            parts = _PARTS[self.method](X[grouping.rows], grouping, self.k)
        normalised[grouping.rows] = parts
        return normalised


def _l2(X, grouping, k):
    """Divide by the norm of each column in each query; the largest value comes first, so that no square overflows."""
    firsts, sizes = grouping.indptr[:-1], grouping.sizes
    largest = np.maximum.reduceat(np.abs(X), firsts, axis=0)
    X = X / np.repeat(_or_one(largest), sizes, axis=0)
    return X / np.repeat(_or_one(np.sqrt(np.add.reduceat(X * X, firsts, axis=0))), sizes, axis=0)


def _z_score(X, grouping, k):
    firsts, sizes = grouping.indptr[:-1], grouping.sizes
    counts = sizes[:, None]
    centred = X - np.repeat(np.add.reduceat(X, firsts, axis=0) / counts, sizes, axis=0)
    deviation = np.sqrt(np.add.reduceat(centred * centred, firsts, axis=0) / counts)
    # The mean of equal values may differ from them by rounding.
    constant = np.maximum.reduceat(X, firsts, axis=0) == np.minimum.reduceat(X, firsts, axis=0)
    centred[np.repeat(constant, sizes, axis=0)] = 0.0
    return centred / np.repeat(_or_one(deviation), sizes, axis=0)


def _reciprocal_rank(X, grouping, k):
    firsts, n_docs = np.repeat(grouping.indptr[:-1], grouping.sizes), X.shape[0]
    ranks = np.empty(X.shape)
    for number, column in enumerate(X.T):
        order = np.lexsort((-column, firsts))
        values, query = column[order], firsts[order]
        is_new = np.append(True, (values[1:] != values[:-1]) | (query[1:] != query[:-1]))
        ranks[order, number] = np.maximum.accumulate(np.where(is_new, np.arange(n_docs), 0)) - query + 1
    return 1.0 / (k + ranks)


_PARTS = {"l2": _l2, "zscore": _z_score, "rank": _reciprocal_rank}


def _l2_sparse(X, query):
    """Divide the stored values by the norm of their column in their query."""
    X = X.copy()
    X.sum_duplicates()
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    _, pair = np.unique(query[row] * X.shape[1] + X.indices, return_inverse=True)
    largest = np.zeros(int(pair.max(initial=-1)) + 1)
    np.maximum.at(largest, pair, np.abs(X.data))
    X.data /= _or_one(largest)[pair]
    X.data /= _or_one(np.sqrt(np.bincount(pair, X.data**2, minlength=largest.shape[0])))[pair]
    return X


# ---- Lists of steps


def as_steps(preparation):
    """Return the steps of a parameter `preparation`, a step, a sequence of steps, or None, as a tuple; raise if not valid.

    Examples
    --------
    >>> as_steps(None), as_steps(Log())
    ((), (Log(),))
    """
    if preparation is None:
        return ()
    steps = (preparation,) if isinstance(preparation, Step) else preparation
    if not isinstance(steps, (list, tuple)) or not steps or not all(isinstance(step, Step) for step in steps):
        raise ValueError(
            f"preparation={preparation!r} is not valid: expected None, or a list of steps of structrank.preparation, "
            "such as [Fill('mean'), Log(['clicks']), Normalise('minmax')]."
        )
    for step in steps:
        step.check_parameters()
    return tuple(steps)


# The parameters of learners from which `steps_of` makes steps, and their defaults: none.
PARAMETERS = {"missing": "error", "preparation": None, "normalise": None}


def parameters_of(model):
    """Return the parameters of a learner from which `steps_of` makes steps, by name."""
    return {name: getattr(model, name, default) for name, default in PARAMETERS.items()}


def steps_of(missing="error", preparation=None, normalise=None):
    """Return the steps that parameters of a learner stand for, in this order; raise if one is not valid.

    Examples
    --------
    >>> steps_of({"age": "mean", "clicks": 0}, Log(["clicks"]), "minmax")
    (Fill(columns=['age'], value='mean'), Fill(columns=['clicks'], value=0), Log(columns=['clicks']), Normalise())
    """
    return (
        *_by_column("missing", missing, "error", Fill),
        *as_steps(preparation),
        *_by_column("normalise", normalise, None, Normalise),
    )


def _by_column(name, rule, nothing, kind):
    """Return a step of a kind for all columns, or for each rule of a dict a step for its columns; none for `nothing`."""
    if not isinstance(rule, dict):
        steps = [] if _is(rule, nothing) else [kind(rule)]
    else:
        rules = [one for place, one in enumerate(rule.values()) if one not in list(rule.values())[:place]]
        steps = [kind(one, columns=[key for key in rule if rule[key] == one]) for one in rules if not _is(one, nothing)]
    for step in steps:
        try:
            step.check_parameters()
        except ValueError as error:
            raise ValueError(f"{name}={rule!r} is not valid: {error}") from None
    return steps


def _is(rule, nothing):
    return rule is None if nothing is None else isinstance(rule, str) and rule == nothing


def needs_qid(steps):
    """Return whether the result of some step depends on the other documents of the query."""
    return any(step.within_query for step in steps)


def fit_steps(preparation, X, qid, names):
    """Learn the constants of steps; return the fitted steps, a tuple, and the prepared matrix.

    Parameters
    ----------
    preparation : a step or a sequence of steps
        Not changed.
    X : numpy array or CSR matrix
        As of `checks.as_matrix`.
    qid : array-like of shape (n_docs,) or int
    names : sequence of str
        Of the columns.

    Examples
    --------
    >>> steps, X = fit_steps([Fill("mean"), Normalise("rank", k=0)], np.array([[1.0], [np.nan], [5.0]]), 0, ["age"])
    >>> X.ravel().tolist(), names_of(steps, ["age"]), prepare(steps, np.array([[np.nan]]), 7, ["age"]).tolist()
    ([0.3333333333333333, 0.5, 1.0], ['rank(age)'], [[1.0]])
    """
    steps = tuple(clone(step) for step in as_steps(preparation))
    X, grouping = _as_double(X), group_by_query(qid, X.shape[0])
    raw, shown = list(names), list(names)  # steps find their columns by the raw names
    for step in steps:
        X = step.learn(X, grouping, raw).transform(X, grouping, shown)
        raw, shown = [*raw, *step.names_out(raw)[len(raw) :]], step.names_out(shown)
    checks.check_finite_matrix(X, shown)
    return steps, X


def prepare(steps, X, qid, names):
    """Apply fitted steps to a matrix; `qid` may be None if no step depends on the query."""
    X = _as_double(X)
    grouping = group_by_query(qid, X.shape[0]) if needs_qid(steps) else None
    for step in steps:
        X = step.transform(X, grouping, names)
        names = step.names_out(names)
    checks.check_finite_matrix(X, names)
    return X


def names_of(steps, names):
    """Return the names of the columns that fitted steps make of columns with these names."""
    for step in steps:
        names = step.names_out(names)
    return list(names)


def describe(steps, names):
    """Return the text and the learned constants, by name of the column, of each fitted step, as dicts.

    Examples
    --------
    >>> steps, _ = fit_steps([Fill("mean"), Log()], np.array([[1.0], [np.nan], [5.0]]), 0, ["age"])
    >>> describe(steps, ["age"])
    [{'step': "Fill(value='mean')", 'constants': {'age': 3.0}}, {'step': 'Log()', 'constants': {}}]
    """
    found, names = [], list(names)
    for step in steps:
        chosen = names if step.columns_ is None else [names[number] for number in step.columns_]
        constants = next((values for name in ("values_", "scale_") if (values := getattr(step, name, None)) is not None), ())
        found.append(
            {"step": " ".join(repr(step).split()), "constants": dict(zip(chosen, map(float, constants), strict=False))}
        )
        names = step.names_out(names)
    return found


def check_no_preparation(model, what):
    """Raise if a model has a preparation; `what`, such as "to_onnx", does not support it."""
    steps = getattr(model, "preparation_", ())
    if steps:
        raise ValueError(
            f"{what} does not support the preparation of the model, {', '.join(map(repr, steps))}. Pass "
            "model.after_preparation(), whose features are the prepared columns, and compute these columns first."
        )


def check_loaded_steps(steps, n_features):
    """Raise unless the steps of a loaded model take this number of features, one after another."""
    if not isinstance(steps, tuple) or not steps or not all(isinstance(step, Step) for step in steps):
        raise ValueError("preparation_ is no tuple of steps")
    for step in steps:
        step.check_loaded()
        checks.check_width(n_features, step.n_features_in_, type(step).__name__)
        n_features += step.n_added


def _find_columns(columns, names, step):
    """Return the numbers of columns given by name or number."""
    places = {name: place for place, name in enumerate(names)}
    found = []
    for column in columns:
        if isinstance(column, Integral) and not isinstance(column, bool) and 0 <= column < len(names):
            found.append(int(column))
        elif isinstance(column, str) and column in places:
            found.append(places[column])
        else:
            shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise ValueError(f"{step}: X has no column {column!r}; it has {len(names)} columns: {shown}.")
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{step}: columns={columns!r} is empty or names a column twice.")
    return np.array(found, dtype=np.int64)


def _with_columns(X, columns, part):
    """Return a new matrix with some columns replaced."""
    if scipy.sparse.issparse(X):
        others = np.setdiff1d(np.arange(X.shape[1]), columns)
        order = np.argsort(np.concatenate([others, columns]))
        return scipy.sparse.hstack([X[:, others], part], format="csr")[:, order]
    X = X.copy()
    X[:, columns] = part
    return X


def _map_stored(X, function):
    changed = X.copy()
    changed.data = function(changed.data)
    return changed


def _as_double(X):
    """Return a matrix as float64: in row order, so that sums do not depend on the order, or with one value for each place."""
    if not scipy.sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    X = X.astype(np.float64, copy=False)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _or_one(values):
    return np.where(values > 0.0, values, 1.0)


def _count_missing(X):
    if not scipy.sparse.issparse(X):
        return np.isnan(X).sum(axis=0)
    return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1])


def _least(X):
    """Return the least value of each column; values that are not stored are 0."""
    if not scipy.sparse.issparse(X):
        return np.fmin.reduce(X, axis=0)
    least = np.where(np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0], 0.0, np.inf)
    np.fmin.at(least, X.indices, X.data)
    return least


def _mean(X):
    known = X.shape[0] - _count_missing(X)
    if not scipy.sparse.issparse(X):
        return np.where(np.isnan(X), 0.0, X).sum(axis=0) / known
    return np.bincount(X.indices, np.where(np.isnan(X.data), 0.0, X.data), minlength=X.shape[1]) / known
