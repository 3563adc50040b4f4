"""Plots for the lambda family, as Display classes similar to `structrank.comparison.plotting`."""

from __future__ import annotations

import numpy as np

from structrank._support import checks
from structrank._support.plotting import Display, add_legend, styles, without_crowd
from structrank.learners.optimality import local_optimality
from structrank.learners.weight_curves import smoothness

__all__ = ["LocalOptimalityDisplay", "SmoothnessDisplay", "TrainingDisplay"]


class LocalOptimalityDisplay(Display):
    """The measure around the weights of a ranker: Figures 1 to 4 and 6 of Donmez, Svore and Burges (SIGIR 2009).

    Parameters
    ----------
    result : LocalOptimality
        Result of `local_optimality`.

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
    >>> from structrank.learners import LambdaRank
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = LambdaRank("map", hidden_units=0, max_epochs=5).fit(train.X, train.y, qid=train.qid)
    >>> display = LocalOptimalityDisplay.from_estimator(model, train.X, train.y, qid=train.qid, n_directions=20)
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('step / |w|', 4)
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
        """Draw the measure against the step, relative to the norm of the weights.

        Parameters
        ----------
        kind : {"directions", "weights"}, default "directions"
            Random directions, from step 0 on, or single weights, moved down and up.
        n_shown : int, default 4
            Number of curves: the directions with the highest values, or the first weights.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.

        Returns
        -------
        self
        """
        checks.check_choice("kind", kind, ("directions", "weights"))
        checks.check_number("n_shown", n_shown, at_least=1, integer=True)
        result = self.result
        if kind == "weights" and result.weight_curves is None:
            raise ValueError("the result has no curves of single weights; call local_optimality with each_weight=True.")
        ax = self._place(ax, figsize=(6.0, 3.6))
        if kind == "directions":
            shown = np.argsort(-result.curves.max(axis=1), kind="stable")[:n_shown]
            along = np.concatenate([[0.0], result.steps])
            curves = np.column_stack([np.full(shown.size, result.value), result.curves[shown]])
        else:
            shown = np.arange(min(n_shown, result.weight_curves.shape[0]))
            middle = result.steps.size
            along = np.insert(result.weight_steps, middle, 0.0)
            curves = np.insert(result.weight_curves[shown], middle, result.value, axis=1)
        self.lines_ = []
        noun = {"directions": "direction", "weights": "weight"}[kind]
        for number, curve, style in zip(shown, curves, styles(), strict=False):
            self.lines_ += ax.plot(along, curve, label=f"{noun} {number}", **without_crowd(style, along.size))
        ax.axhline(result.value, color="0.3", linestyle=":", linewidth=1, label="weights as given")
        ax.set_xlabel("step / |w|")
        ax.set_ylabel(f"mean {result.measure.name}")
        ax.grid(alpha=0.3)
        add_legend(ax)
        return self


class SmoothnessDisplay(Display):
    """The measure against one weight: Figures 2 to 5 of Yue and Burges (MSR-TR-2007-115).

    Parameters
    ----------
    result : Smoothness
        Result of `structrank.learners.smoothness`.

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
    >>> from structrank.learners import LambdaRank
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
        """Compute the smoothness of a fitted ranker and draw.

        Parameters
        ----------
        estimator, X, y, qid, measure, settings
            As for `structrank.learners.smoothness`.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.

        Returns
        -------
        SmoothnessDisplay
        """
        return cls(smoothness(estimator, X, y, qid, measure, **settings)).plot(ax=ax)

    def plot(self, n_queries=None, *, ax=None):
        """Draw one curve per weight.

        Parameters
        ----------
        n_queries : int, default None
            Size of the sample of queries to show; None for the largest.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.

        Returns
        -------
        self
        """
        curves = self.result.curves
        n_queries = max(curves) if n_queries is None else n_queries
        if n_queries not in curves:
            raise ValueError(f"n_queries={n_queries!r} is not one of the samples: {', '.join(map(str, curves))}.")
        ax = self._place(ax, figsize=(6.0, 3.6))
        self.lines_ = []
        for weight, curve, style in zip(self.result.weights, curves[n_queries], styles(), strict=False):
            style = without_crowd(style, curve.size)
            self.lines_ += ax.plot(100 * self.result.shifts, curve, label=f"weight {weight}", **style)
        ax.set_xlabel("change of the weight (%)")
        ax.set_ylabel(f"mean {self.result.measure.name}")
        ax.set_title(f"{n_queries} queries" if n_queries > 1 else "1 query", fontsize="medium")
        ax.grid(alpha=0.3)
        add_legend(ax)
        return self


class TrainingDisplay(Display):
    """The measure on the training and the validation set by round.

    Parameters
    ----------
    history : History
        ``history_`` of a learner of `structrank.learners`.
    measure : Measure or str
        Measure of the learner.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        Mapping from names to the lines drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from structrank import datasets
    >>> from structrank.learners import LambdaRank
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
            Axes to draw on; None creates a figure.

        Returns
        -------
        TrainingDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        return cls(estimator.history_, estimator.parsed_measure().name).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the history.

        Parameters
        ----------
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a figure.

        Returns
        -------
        self
        """
        if not len(self.history):
            raise ValueError("history is empty; there is nothing to draw.")
        frame = self.history.to_frame()
        ax = self._place(ax, figsize=(5.0, 3.6))
        self.lines_ = {}
        for name, style in zip(("train", "validation"), styles(), strict=False):
            if frame[name].notna().any():
                (self.lines_[name],) = ax.plot(frame.index, frame[name], label=name, **without_crowd(style, len(frame)))
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("round")
        ax.set_ylabel(f"mean {self.measure}")
        ax.grid(alpha=0.3)
        ax.legend()
        return self
