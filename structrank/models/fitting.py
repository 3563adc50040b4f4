"""What the `fit` of every learner accepts besides its own arguments: group sizes, callbacks of scikit-learn, raw values."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging

import numpy as np

from structrank._support import checks
from structrank.datasets.shards import Shards
from structrank.preparation import PARAMETERS, fit_steps, names_of, parameters_of, prepare, steps_of

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn below 1.9 has no callbacks: nothing can be set, and nothing is called

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Base class without `set_callbacks`."""

    with_callbacks = None

_LOG = logging.getLogger(__name__)
_LIGHTGBM = {"group": "ArrayLike | None", "eval_set": "Any", "eval_group": "Any"}


def complete_fit(fit):
    """Return a method `fit` of a learner that also takes `group`, `eval_set` and `eval_group`, prepares X, and runs callbacks.

    `group` are the sizes of consecutive queries, in place of `qid`. ``eval_set=[(X, y)]`` with ``eval_group=[sizes]`` is the
    validation set; it is ignored, with an entry in the log, by learners that have no parameter `validation`. Each iteration is
    a task of scikit-learn's callbacks (scikit-learn 1.9 or newer), see ``set_callbacks``. With a preparation, its
    steps are fitted to X, and the method itself is called with prepared features.

    Parameters
    ----------
    fit : function
        With parameters `X`, `y`, `qid`, and perhaps `validation` and `callback`. Returned unchanged without `qid`, and if it
        takes `group` itself.

    Examples
    --------
    >>> class Learner:
    ...     @complete_fit
    ...     def fit(self, X, y, qid=None):
    ...         return qid
    >>> Learner().fit([[0.5], [1.5], [2.5]], [0, 1, 0], group=[2, 1])
    array([0, 0, 1])
    """
    own = inspect.signature(fit)
    if "qid" not in own.parameters or "group" in own.parameters:
        return fit

    @functools.wraps(fit)
    def completed(self, *args, group=None, eval_set=None, eval_group=None, **kwargs):
        try:
            given = own.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.fit() {error}") from None
        given.arguments["X"] = checks.as_table(given.arguments["X"])
        if group is not None:
            given.arguments["qid"] = checks.qid_of_groups(group, given.arguments["X"], given.arguments.get("qid"))
        if eval_set is not None:
            validation = _as_validation(eval_set, eval_group)
            if "validation" in own.parameters:
                given.arguments["validation"] = validation
            else:
                _LOG.info("%s does not use eval_set: its training has no validation.", type(self).__name__)
        with _preparing(self, given.arguments) as finish:
            if getattr(self, "_skl_callbacks", None):
                return finish(_fit_with_callbacks(self, fit, given))
            return finish(fit(*given.args, **given.kwargs))

    keyword = inspect.Parameter.KEYWORD_ONLY
    others = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in _LIGHTGBM.items()]
    # Keyword-only parameters come before **kwargs.
    completed.__signature__ = own.replace(parameters=sorted([*own.parameters.values(), *others], key=lambda one: one.kind))
    return completed


@contextlib.contextmanager
def _preparing(estimator, arguments):
    """Prepare the arguments of `fit`, and yield a function that completes what it returns: a model, or a list of models.

    In between, the estimator has no preparation: training sees a learner of prepared features.
    """
    prepares_itself = getattr(estimator, "_prepares_itself", False)
    parameters = parameters_of(estimator)
    given = () if prepares_itself else steps_of(**parameters)
    if prepares_itself or not (given or hasattr(estimator, "preparation_")):
        yield lambda fitted: fitted
        return
    if not given:
        yield lambda fitted: _without_earlier_steps(estimator, fitted)
        return
    name = type(estimator).__name__
    if "predict" in vars(type(estimator)):
        raise TypeError(f"{name} defines predict, which does not prepare X; rename it to _score_documents to use preparation=.")
    X, validation = arguments["X"], arguments.get("validation")
    if arguments.get("backend") is not None or isinstance(X, Shards) or hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"{', '.join(map(repr, given))} is fitted to data in the memory of this process, not to shards or a cluster. "
            "Prepare the values before they are written, or pass X as one matrix."
        )
    names = checks.column_names(X)
    checks.check_qid_is_no_feature(names)
    checks.check_column_names(names)
    grouped = hasattr(X, "with_matrix")  # RankingData, which has its own qid
    matrix = X.X if grouped else checks.as_matrix(X)
    if not grouped:
        checks.as_labels(arguments.get("y"), matrix.shape[0])  # as without preparation, an error of y comes before that of qid
    qid = X.grouping.query_of_row() if grouped else arguments.get("qid")
    raw = names_of_columns(names, matrix.shape[1])
    steps, prepared = fit_steps(given, matrix, qid, raw)
    columns = None if names is None else names_of(steps, raw)  # penalties and warnings name them
    arguments["X"] = X.with_matrix(prepared, columns) if grouped else _named(prepared, columns)
    if validation is not None:
        arguments["validation"] = _prepared_validation(validation, steps, names, raw)

    def finish(fitted):
        for model in fitted if isinstance(fitted, list) else [fitted]:
            keep_steps(model, parameters, steps, matrix.shape[1], names)
        return fitted

    vars(estimator).update(PARAMETERS)
    try:
        yield finish
    finally:
        vars(estimator).update(parameters)


def keep_steps(model, parameters, steps, n_features, names):
    """Make fitted steps a part of a model that was trained on prepared features.

    Parameters
    ----------
    model : FeatureRanker
    parameters : dict
        Those of `structrank.preparation.steps_of`.
    steps : tuple of Step
        Fitted.
    n_features : int
        Number of raw columns.
    names : sequence or None
        Their names; those that are no texts are ignored, as in scikit-learn.
    """
    vars(model).update(parameters)
    model.preparation_, model.n_features_in_ = steps, n_features
    vars(model).pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.array(list(names), dtype=object)


def _named(prepared, columns):
    if columns is None:
        return prepared
    import pandas as pd

    return pd.DataFrame(prepared, columns=columns)


def _without_earlier_steps(estimator, fitted):
    """Delete the fitted steps of an earlier fit."""
    vars(estimator).pop("preparation_", None)
    return fitted


def _prepared_validation(validation, steps, names, raw):
    """Return a validation set, a tuple (X, y, qid) or a Dataset, with prepared features."""
    parts = (
        validation if isinstance(validation, (tuple, list)) else [getattr(validation, part, None) for part in ("X", "y", "qid")]
    )
    if len(parts) != 3 or parts[0] is None:
        return validation
    X, y, qid = parts
    X = checks.as_table(X)
    try:
        matrix, given = checks.as_matrix(X), checks.column_names(X)
        checks.check_width(matrix.shape[1], len(raw), "training")
        if given is not None and names is not None and list(given) != list(names):
            raise ValueError("the columns of X are not those of training, in the same order.")
        return prepare(steps, matrix, qid, raw), y, qid
    except (ValueError, TypeError) as error:
        raise type(error)(f"validation: {error}") from None


def names_of_columns(names, n_columns):
    """Return names of columns as texts: f1, f2, ... for None and for names that are no texts.

    Examples
    --------
    >>> names_of_columns(None, 2), names_of_columns(["age"], 1)
    (['f1', 'f2'], ['age'])
    """
    if names is None or not all(isinstance(name, str) for name in names):
        return [f"f{number}" for number in range(1, n_columns + 1)]
    return list(names)


def _as_validation(eval_set, eval_group):
    """Return the validation set that LightGBM's arguments describe, as a tuple (X, y, qid)."""
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    groups = [] if eval_group is None else list(eval_group)
    if len(sets) != 1 or len(groups) != 1:
        raise ValueError(
            f"eval_set has {len(sets)} set(s) and eval_group {len(groups)}; expected one of each: eval_set=[(X, y)], "
            "eval_group=[sizes]."
        )
    return (*sets[0], checks.qid_of_groups(groups[0], sets[0][0], name="eval_group"))


def _fit_with_callbacks(estimator, fit, given):
    """Run a fit as a task of scikit-learn's callbacks, each of its iterations as a subtask."""
    data = {"X": given.arguments["X"], "y": given.arguments["y"], "metadata": {"qid": given.arguments.get("qid")}}
    callback = given.arguments.get("callback")
    iterates = "callback" in inspect.signature(fit).parameters and (callback is None or callable(callback))

    @with_callbacks
    def run(estimator):
        # The number of iterations is unknown: training stops when it has converged.
        whole = estimator._init_callback_context(max_subtasks=None if iterates else 0)
        whole.call_on_fit_task_begin(estimator=estimator, **data)

        def report(entry):
            task = whole.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=estimator, **data)
            stop = task.call_on_fit_task_end(estimator=estimator, **data)
            return (callback is not None and callback(entry)) or stop

        if iterates:
            given.arguments["callback"] = report
        fitted = fit(*given.args, **given.kwargs)
        # No attributes are missing for a copy that predicts: the estimator itself is fitted.
        whole.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **data)
        return fitted

    return run(estimator)
