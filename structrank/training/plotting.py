"""Figures of a training run; matplotlib is imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structrank._support import checks
from structrank._support.plotting import COLOURS, HATCHES, Display, styles, time_label, without_crowd

if TYPE_CHECKING:
    from typing import Self


class HistoryDisplay(Display):
    """Plot of the history of a training run.

    Parameters
    ----------
    history : History
        `StructRankSVM.history_`.
    tol : float, default None
        Gap at which training stops, drawn as a line: `tol` of the model times its C.

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

    def __init__(self, history: Any, tol: float | None = None) -> None:
        self.history, self.tol = history, tol

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
        return cls(estimator.history_, tol=float(np.mean(estimator.C)) * estimator.tol).plot(kind, x=x, ax=ax)

    def plot(self, kind: str = "bounds", *, x: str = "iteration", ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        kind : {"bounds", "gap", "seconds"}, default "bounds"
            "bounds": the objective at each iteration's w and the lower bound on the optimum. "gap": their difference, the
            stopping criterion, and the violation, by which R(w) exceeds the model of planes, on a logarithmic scale (without
            zeros). "seconds": cumulative time of the oracle (most violated rankings) and of the QP.
        x : {"iteration", "seconds"}, default "iteration"
            Quantity on the horizontal axis.
        ax : matplotlib Axes, default None
            Axes to draw on; None creates a new figure.
        """
        checks.check_choice("kind", kind, ("bounds", "gap", "seconds"))
        checks.check_choice("x", x, ("iteration", "seconds"))
        if not len(self.history):
            raise ValueError("history has no iterations; there is nothing to draw.")
        frame = self.history.to_frame()
        spent = frame.filter(regex="^seconds_")
        along = frame.index.to_numpy() if x == "iteration" else spent.sum(axis=1).cumsum().to_numpy()
        ax = self._place(ax, figsize=(6.0, 4.0))
        getattr(self, f"_plot_{kind}")(ax, along, frame)
        ax.set_xlabel("iteration" if x == "iteration" else "time in training (s)")
        if x == "iteration":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(alpha=0.3)
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, borderaxespad=0.1)
        return self

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
