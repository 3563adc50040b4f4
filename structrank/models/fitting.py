"""What every learner's `fit` accepts besides its own arguments: LightGBM's group sizes, and scikit-learn's callbacks."""

from __future__ import annotations

import functools
import inspect
import logging

from structrank._support import checks

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn below 1.9 has no callbacks: nothing can be set, and nothing is called

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Base class without `set_callbacks`."""

    with_callbacks = None

_LOG = logging.getLogger(__name__)
_LIGHTGBM = {"group": "ArrayLike | None", "eval_set": "Any", "eval_group": "Any"}


def complete_fit(fit):
    """Return a method `fit` of a learner that also takes `group`, `eval_set` and `eval_group`, and runs callbacks.

    `group` are the sizes of consecutive queries, in place of `qid`. ``eval_set=[(X, y)]`` with ``eval_group=[sizes]`` is the
    validation set; it is ignored, with an entry in the log, by learners that have no parameter `validation`. Each iteration is
    a task of scikit-learn's callbacks (scikit-learn 1.9 or newer), see ``set_callbacks``.

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
        if getattr(self, "_skl_callbacks", None):
            return _fit_with_callbacks(self, fit, given)
        return fit(*given.args, **given.kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    others = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in _LIGHTGBM.items()]
    # Keyword-only parameters come before **kwargs.
    completed.__signature__ = own.replace(parameters=sorted([*own.parameters.values(), *others], key=lambda one: one.kind))
    return completed


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
