"""Pictures of the lambda family, as Display classes in the manner of `structrank.plotting`."""

from __future__ import annotations

import numpy as np

from structrank import _validation
from structrank.lambdas.optimality import local_optimality
from structrank.lambdas.weight_curves import smoothness
from structrank.plotting import _Display, _styles, _without_crowd

__all__ = ["LocalOptimalityDisplay", "SmoothnessDisplay", "TrainingDisplay"]


class LocalOptimalityDisplay(_Display):
    """The measure around the weights of a ranker: Figures 1 to 4 and 6 of Donmez, Svore and Burges (SIGIR 2009).

    Parameters
    ----------
    result : LocalOptimality
        As `local_optimality` gives it.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from structrank import datasets
    >>> from structrank.lambdas import LambdaRank
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = LambdaRank("map", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> display = LocalOptimalityDisplay.from_estimator(model, train.X, train.y, qid=train.qid, n_directions=20)
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('step', 4)
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, X, y, *, qid=None, measure=None, kind="directions", n_shown=4, ax=None, **settings):
        """Test a fitted ranker and draw.

        Parameters
        ----------
        estimator, X, y, qid, measure, settings
            As for `local_optimality`.
        kind, n_shown, ax
            As for `plot`.

        Returns
        -------
        LocalOptimalityDisplay
        """
        settings.setdefault("each_weight", kind == "weights")
        return cls(local_optimality(estimator, X, y, qid, measure, **settings)).plot(kind, n_shown=n_shown, ax=ax)

    def plot(self, kind="directions", *, n_shown=4, ax=None):
        """Draw the measure against the step.

        Parameters
        ----------
        kind : {"directions", "weights"}, default "directions"
            Random directions, from step 0 on, or one weight at a time, down and up.
        n_shown : int, default 4
            So many curves: of the directions those that reach highest, of the weights the first.
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        _validation.check_choice("kind", kind, ("directions", "weights"))
        _validation.check_number("n_shown", n_shown, at_least=1, integer=True)
        result = self.result
        if kind == "weights" and result.weight_curves is None:
            raise ValueError("the result has no curves of single weights; test with each_weight=True.")
        ax = self._place(ax, figsize=(5.0, 3.6))
        if kind == "directions":
            highest = np.argsort(-result.curves.max(axis=1), kind="stable")[:n_shown]
            along = np.concatenate([[0.0], result.steps])
            curves = np.column_stack([np.full(highest.size, result.value), result.curves[highest]])
        else:
            middle = result.steps.size
            along = np.insert(result.weight_steps, middle, 0.0)
            curves = np.insert(result.weight_curves[:n_shown], middle, result.value, axis=1)
        self.lines_ = []
        for curve, style in zip(curves, _styles(), strict=False):
            self.lines_ += ax.plot(along, curve, **_without_crowd(style, along.size))
        ax.axhline(result.value, color="0.3", linestyle=":", linewidth=1)
        ax.set_xlabel("step")
        ax.set_ylabel(f"mean {result.measure.name}")
        ax.grid(alpha=0.3)
        return self


class SmoothnessDisplay(_Display):
    """The measure against one weight: Figures 2 to 5 of Yue and Burges (MSR-TR-2007-115).

    Parameters
    ----------
    result : Smoothness
        As `structrank.lambdas.smoothness` gives it.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from structrank import datasets
    >>> from structrank.lambdas import LambdaRank
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = LambdaRank("ndcg", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> display = SmoothnessDisplay.from_estimator(model, train.X, train.y, qid=train.qid)
    >>> display.ax_.get_ylabel(), len(display.lines_)
    ('mean ndcg', 3)
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, X, y, *, qid=None, measure=None, ax=None, **settings):
        """Move weights of a fitted ranker and draw.

        Parameters
        ----------
        estimator, X, y, qid, measure, settings
            As for `structrank.lambdas.smoothness`.
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        SmoothnessDisplay
        """
        return cls(smoothness(estimator, X, y, qid, measure, **settings)).plot(ax=ax)

    def plot(self, n_queries=None, *, ax=None):
        """Draw a curve for each weight.

        Parameters
        ----------
        n_queries : int, default None
            On which sample of the queries; None for the largest.
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        curves = self.result.curves
        n_queries = max(curves) if n_queries is None else n_queries
        if n_queries not in curves:
            raise ValueError(f"n_queries={n_queries!r} is not one of the samples: {', '.join(map(str, curves))}.")
        ax = self._place(ax, figsize=(5.0, 3.6))
        self.lines_ = []
        for weight, curve, style in zip(self.result.weights, curves[n_queries], _styles(), strict=False):
            style = _without_crowd(style, curve.size)
            self.lines_ += ax.plot(100 * self.result.shifts, curve, label=f"weight {weight}", **style)
        ax.set_xlabel("change of the weight (%)")
        ax.set_ylabel(f"mean {self.result.measure.name}")
        ax.set_title(f"{n_queries} queries" if n_queries > 1 else "1 query", fontsize="medium")
        ax.grid(alpha=0.3)
        return self


class TrainingDisplay(_Display):
    """How training by rounds went: the measure on the training and on the validation set.

    Parameters
    ----------
    history : History
        ``history_`` of a learner of `structrank.lambdas`.
    measure : Measure or str
        Its measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        From names to the lines drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from structrank import datasets
    >>> from structrank.lambdas import LambdaRank
    >>> fold = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0)
    >>> model = LambdaRank(max_epochs=5).fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.validation)
    >>> display = TrainingDisplay.from_estimator(model)
    >>> sorted(display.lines_)
    ['train', 'validation']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, history, measure):
        self.history, self.measure = history, measure

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the history of a fitted learner.

        Parameters
        ----------
        estimator : learner
            Fitted.
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        TrainingDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        return cls(estimator.history_, estimator.measure).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        if not len(self.history):
            raise ValueError("history has no rounds; there is nothing to draw.")
        frame = self.history.to_frame()
        ax = self._place(ax, figsize=(5.0, 3.6))
        self.lines_ = {}
        for name, style in zip(("train", "validation"), _styles(), strict=False):
            if frame[name].notna().any():
                (self.lines_[name],) = ax.plot(frame.index, frame[name], label=name, **_without_crowd(style, len(frame)))
        ax.set_xlabel("round")
        ax.set_ylabel(f"mean {self.measure}")
        ax.grid(alpha=0.3)
        ax.legend()
        return self
