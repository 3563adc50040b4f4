"""Figures of a training run; matplotlib is imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structrank._support import checks
from structrank._support.plotting import COLOURS, HATCHES, Display, limit_decades, styles, time_label, without_crowd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class HistoryDisplay(Display):
    """Plot of the history of a training run.

    Parameters
    ----------
    history : History
        `StructRankSVM.history_`.
    tol : float, default None
        Gap at which training stops, drawn as a line: `tol` of the model times its C.
    rounds : sequence of RampRound, default ()
        `StructRankSVM.rounds_` of a model trained on the ramp bound. They are drawn in place of the history, which has only
        the last of several convex problems.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        From names to the lines drawn; for ``kind="seconds"`` to the areas.

    See Also
    --------
    PathDisplay : Runs for several values of C.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from structrank import StructRankSVM, datasets
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> model = StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid)
    >>> display = HistoryDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel(), sorted(display.lines_)
    ('iteration', ['lower bound', 'objective'])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, history: Any, tol: float | None = None, rounds: Sequence[Any] = ()) -> None:
        self.history, self.tol, self.rounds = history, tol, rounds

    @classmethod
    def from_estimator(cls, estimator: Any, *, kind: str = "bounds", x: str = "iteration", ax: Any = None) -> Self:
        """Draw the history of a fitted model.

        Parameters
        ----------
        estimator : StructRankSVM
            Fitted.
        kind, x, ax
            As for `plot`.

        Returns
        -------
        HistoryDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        tol = float(np.mean(estimator.C)) * estimator.tol
        return cls(estimator.history_, tol, estimator.rounds_).plot(kind, x=x, ax=ax)

    def plot(self, kind: str = "bounds", *, x: str = "iteration", ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        kind : {"bounds", "gap", "seconds"}, default "bounds"
            "bounds": the objective at each iteration's w and the lower bound on the optimum. "gap": their difference, the
            stopping criterion, and the violation, by which R(w) exceeds the model of planes, on a logarithmic scale (without
            zeros). "seconds": cumulative time of the oracle (most violated rankings) and of the QP. Of a model trained on the
            ramp bound only "bounds" is known: the ramp bound and the training loss after each round.
        x : {"iteration", "seconds"}, default "iteration"
            Quantity on the horizontal axis. The ramp bound is drawn by round.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a new figure.
        """
        checks.check_choice("kind", kind, ("bounds", "gap", "seconds"))
        checks.check_choice("x", x, ("iteration", "seconds"))
        if len(self.rounds):
            return self._plot_rounds(kind, x, ax)
        if not len(self.history):
            raise ValueError("history has no iterations; there is nothing to draw.")
        frame = self.history.to_frame()
        spent = frame.filter(regex="^seconds_")
        along = frame.index.to_numpy() if x == "iteration" else spent.sum(axis=1).cumsum().to_numpy()
        ax = self._place(ax, figsize=(6.0, 4.0))
        getattr(self, f"_plot_{kind}")(ax, along, frame)
        ax.set_xlabel("iteration" if x == "iteration" else "time in training (s)")
        if x == "iteration":
            ax.locator_params(axis="x", integer=True)
        return self._finish(ax)

    def _finish(self, ax):
        ax.grid(alpha=0.3)
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, borderaxespad=0.1)
        return self

    def _plot_rounds(self, kind, x, ax):
        for name, value, known in (("kind", kind, "bounds"), ("x", x, "iteration")):
            if value != known:
                raise ValueError(
                    f"{name}={value!r} is not known for a model trained on the ramp bound, whose history has only the last of "
                    f"{len(self.rounds) - 1} convex problems; use {name}={known!r}."
                )
        ax = self._place(ax, figsize=(6.0, 4.0))
        numbers, self.lines_ = range(len(self.rounds)), {}
        for (name, column), style in zip((("ramp bound", "risk"), ("training loss", "loss")), styles(), strict=False):
            values = [getattr(each, column) for each in self.rounds]
            (self.lines_[name],) = ax.plot(numbers, values, label=name, **style)
        names = ["start", *(f"{number}" for number in numbers[1:])]
        ax.set_xticks(numbers, [f"{name}\nC = {each.C:g}" for name, each in zip(names, self.rounds, strict=True)])
        ax.set_xlabel("round")
        ax.set_ylabel("mean over training queries")
        return self._finish(ax)

    def _plot_bounds(self, ax, along, frame):
        self.lines_ = {}
        for (name, column), style in zip((("objective", "objective"), ("lower bound", "bound")), styles(), strict=False):
            (self.lines_[name],) = ax.plot(along, frame[column], label=name, **without_crowd(style, len(along)))
        ax.set_ylabel("objective  ½|w|² + C·R(w)")

    def _plot_gap(self, ax, along, frame):
        self.lines_ = {}
        for name, style in zip(("gap", "violation"), styles(), strict=False):
            values = frame[name].where(frame[name] > 0)
            (self.lines_[name],) = ax.plot(along, values, label=name, **without_crowd(style, len(along)))
        if self.tol is not None:
            self.lines_["tol"] = ax.axhline(self.tol, color="0.3", linestyle=":", label=f"C tol = {self.tol:g}")
        ax.set_yscale("log")
        limit_decades(ax, [self.lines_["gap"], self.lines_["violation"]], lowest=self.tol)
        ax.set_ylabel("gap and violation")

    def _plot_seconds(self, ax, along, frame):
        names = [column.removeprefix("seconds_") for column in frame if column.startswith("seconds_")]
        names.sort(key="qp".__eq__)  # the QP on top of the passes over the data
        summed = [frame[f"seconds_{name}"].cumsum() for name in names]
        areas = ax.stackplot(
            along, summed, labels=[time_label(name) for name in names], colors=COLOURS[: len(names)], edgecolor="white"
        )
        for area, hatch in zip(areas, HATCHES, strict=False):
            area.set_hatch(hatch)
        self.lines_ = dict(zip(names, areas, strict=True))
        ax.set_ylabel("time so far (s)")
