"""Figures of a training run; matplotlib is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structrank._support import checks
from structrank.plots import COLOURS, HATCHES, Display, legend_above


class HistoryDisplay(Display):
    """Plot of the history of a training run.

    Parameters
    ----------
    history : History
        `StructRankSVM.history_`.
    tol : float, default None
        Gap at which training stops, drawn as a line: `tol` of the model times its C.
    rounds : sequence of RampRound, default ()
        `StructRankSVM.rounds_` of a model trained on a bound that is not convex. They are drawn in place of the history, which
        has only the last of several convex problems.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        From names to the lines drawn; for ``kind="seconds"`` to the areas.

    See Also
    --------
    structrank.comparison.plotting.PathDisplay : Runs for several values of C.

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
    def from_estimator(cls, estimator: Any, *, kind: str = "bounds", x: str = "iteration", ax: Any = None) -> HistoryDisplay:
        """Draw the history of a fitted `StructRankSVM`; other parameters as for `plot`."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "history_")
        tol = float(np.mean(estimator.C)) * estimator.tol
        return cls(estimator.history_, tol, estimator.rounds_).plot(kind, x=x, ax=ax)

    def plot(self, kind: str = "bounds", *, x: str = "iteration", ax: Any = None) -> HistoryDisplay:
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
            ax = self._plot_rounds(kind, x, ax)
        elif not len(self.history):
            raise ValueError("history has no iterations; there is nothing to draw.")
        else:
            frame = self.history.to_frame()
            along = frame.index if x == "iteration" else frame.filter(regex="^seconds_").sum(axis=1).cumsum()
            xlabel = "iteration" if x == "iteration" else "time in training (s)"
            ax = (self._plot_seconds if kind == "seconds" else self._plot_values)(kind, ax, along.to_numpy(), frame, xlabel)
            if x == "iteration":
                ax.locator_params(axis="x", integer=True)
        legend_above(ax, 3)
        return self

    def _plot_rounds(self, kind, x, ax):
        for name, value, known in (("kind", kind, "bounds"), ("x", x, "iteration")):
            if value != known:
                raise ValueError(
                    f"{name}={value!r} is not known for a model trained on a bound that is not convex, whose history has only "
                    f"the last of {len(self.rounds) - 1} convex problems; use {name}={known!r}."
                )
        numbers = range(len(self.rounds))
        name = "ramp bound" if self.rounds[0].kind == "prediction" else "bound"
        columns = {name: "risk", "training loss": "loss"}
        curves = {name: (numbers, [getattr(each, column) for each in self.rounds]) for name, column in columns.items()}
        ax = self._lines(ax, curves, "round", "mean over training queries")
        names = ["start", *map(str, numbers[1:])]
        ax.set_xticks(numbers, [f"{name}\nC = {each.C:g}" for name, each in zip(names, self.rounds, strict=True)])
        return ax

    def _plot_values(self, kind, ax, along, frame, xlabel):
        if kind == "bounds":
            curves = {"objective": (along, frame["objective"]), "lower bound": (along, frame["bound"])}
            return self._lines(ax, curves, xlabel, "objective  ½|w|² + C·R(w)")
        curves = {name: (along, frame[name].where(frame[name] > 0)) for name in ("gap", "violation")}
        ax = self._lines(ax, curves, xlabel, "gap and violation", logy=True, lowest=self.tol)
        if self.tol is not None:
            self.lines_["tol"] = ax.axhline(self.tol, color="0.3", linestyle=":", label=f"C tol = {self.tol:g}")
        return ax

    def _plot_seconds(self, _, ax, along, frame, xlabel):
        names = [column.removeprefix("seconds_") for column in frame if column.startswith("seconds_")]
        names.sort(key="qp".__eq__)  # the QP on top of the passes over the data
        ax = self._lines(ax, {}, xlabel, "time so far (s)")
        summed = [frame[f"seconds_{name}"].cumsum() for name in names]
        labels = ["QP" if name == "qp" else name for name in names]
        areas = ax.stackplot(along, summed, labels=labels, colors=COLOURS[: len(names)], edgecolor="white")
        for area, hatch in zip(areas, HATCHES, strict=False):
            area.set_hatch(hatch)
        self.lines_ = dict(zip(names, areas, strict=True))
        return ax
