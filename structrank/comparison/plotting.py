"""Figures of comparisons; matplotlib is imported when something is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from structrank._support import checks
from structrank._support.typing import DataFrame
from structrank.comparison.significance import SIGNIFICANT
from structrank.comparison.table import CriterionTable
from structrank.plots import Display, add_legend, brief_seconds, legend_above, plain, width_of

# Distance from the best of a column from which on colours of the table do not change.
_WORST = 0.1


class PathDisplay(Display):
    """Adaptation of trainers to the data as C grows: Figures 4 to 6 of the KDD 2008 paper.

    Parameters
    ----------
    path : pandas.DataFrame
        As returned by `structrank.comparison.diagnostics.health_path`: index (trainer, C).
    quantity : str, default "mean_slack"
        A column of the path: "mean_slack" (Figure 4), "objective_ratio" (Figure 5; 1 means that nothing was learned), "norm" or
        "relative_norm" (Figure 6), "iterations", "seconds", or a measure. The mean slack of several criteria with separate
        slacks is a sum over these.

    Examples
    --------
    >>> from structrank import StructRankSVM, datasets
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train
    >>> display = PathDisplay.from_estimator(StructRankSVM("auc"), train.X, train.y, qid=train.qid, Cs=[0.1, 1.0, 10.0])
    >>> display.lines_["auc"].get_xdata().tolist()
    [0.1, 1.0, 10.0]
    >>> _ = display.plot("norm", ax=display.figure_.add_subplot())
    """

    _LABELS = {  # noqa: RUF012
        "mean_slack": "mean slack  R(w)",
        "objective_ratio": "objective / objective(w = 0)",
        "norm": "norm of w",
        "relative_norm": "norm of w / norm at the largest C",
        "iterations": "iterations",
        "seconds": "time (s)",
    }
    _LOGARITHMIC = ("norm", "relative_norm", "iterations", "seconds")

    def __init__(self, path: DataFrame, quantity: str = "mean_slack") -> None:
        self.path, self.quantity = path, quantity

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, qid: Any = None, Cs: Sequence[float] | None = None, **settings: Any
    ) -> PathDisplay:
        """Train a `StructRankSVM`, or several in a dict by name, for many C (to 1000), and draw; settings as for `plot`."""
        from structrank.comparison.diagnostics import health_path
        from structrank.datasets import Dataset

        given: dict[str, Any] = {} if Cs is None else {"Cs": Cs}
        return cls(health_path(Dataset(X, y, qid), estimator, **given)).plot(**settings)

    def plot(self, quantity: str | None = None, *, ax: Any = None, legend: bool = True) -> PathDisplay:
        """Draw one quantity against C, a line for each trainer.

        Parameters
        ----------
        quantity : str, default None
            None for that of the display.
        ax : matplotlib Axes, default None
            Where to draw; None makes a new figure.
        legend : bool, default True
            Name the trainers, beside the axes if there are more than four.

        Notes
        -----
        Logarithmic axes show six decades. A norm below is rounding error around w = 0, the optimum of a vacuous bound; the
        legend names lines that leave the axes.
        """
        quantity = self.quantity if quantity is None else quantity
        checks.check_choice("quantity", quantity, tuple(self.path.select_dtypes(["number"]).columns))
        columns = self.path[quantity].groupby(level="trainer", sort=False)
        sorted_rows = {trainer: rows.droplevel("trainer").sort_index() for trainer, rows in columns}
        ax = self._lines(
            ax,
            {trainer: (rows.index.to_numpy(), rows.to_numpy()) for trainer, rows in sorted_rows.items()},
            "C",
            self._LABELS.get(quantity, quantity),
            size=(7.5, 4.2),
            logx=True,
            logy=quantity in self._LOGARITHMIC,
            highest=10.0 if quantity == "relative_norm" else None,
        )
        if quantity == "objective_ratio":
            ax.axhline(1.0, color="0.3", linewidth=1, zorder=0)
        if legend:
            add_legend(ax)
        return self


class CriterionTableDisplay(Display):
    """The train-vs-test criterion table as a heat map: Figure 9 of the KDD 2008 paper.

    Parameters
    ----------
    table : CriterionTable
        As returned by `structrank.compare`.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        Colours: distance of each mean from the best of its column.
    text_ : (n_trainers, n_columns) array of matplotlib Text
        The means, with the marks of `CriterionTable.marks`.
    colorbar_ : matplotlib Colorbar

    Examples
    --------
    >>> from structrank import compare, datasets
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
    >>> table = compare({"made": fold}, trainers=["AUC", "MAP"], measures=["mrr@10", "map"], Cs=[1.0])
    >>> display = CriterionTableDisplay.from_table(table)
    >>> display.text_.shape, display.ax_.get_ylabel()
    ((2, 2), 'trained on')
    """

    def __init__(self, table: CriterionTable) -> None:
        self.table = table

    @classmethod
    def from_table(cls, table: CriterionTable, **settings: Any) -> CriterionTableDisplay:
        """Draw a table; settings as for `plot`."""
        return cls(table).plot(**settings)

    def plot(self, *, ax: Any = None) -> CriterionTableDisplay:
        """Draw the means as numbers; the colour is the distance from the best of the column. Vacuous cells are hatched."""
        means = self.table.to_frame()
        n_rows, n_columns = means.shape
        n_datasets = len(self.table.datasets)
        wide = max(1.05 * n_columns, n_datasets * width_of(self.table.datasets)) if n_datasets > 1 else 1.05 * n_columns
        ax = self._place(ax, (max(5.0, 2.6 + wide), max(2.8, 1.6 + 0.36 * n_rows)))
        best = np.fmax.reduce(means.to_numpy(), axis=0)
        distances = means.to_numpy() - best
        largest = -np.fmin.reduce(distances, axis=None)
        worst = min(_WORST, largest) if largest > 0 else _WORST
        self.image_ = ax.imshow(distances, aspect="auto", cmap="cividis", vmin=-worst, vmax=0.0)
        self.text_ = self._write(ax, means)
        self._name_columns(ax, list(means.columns))
        ax.set_yticks(range(n_rows), [plain(name) for name in means.index])
        ax.set_ylabel("trained on")
        ax.tick_params(length=0)
        if self.table.n_above < n_rows:
            ax.axhline(self.table.n_above - 0.5, color="white", linewidth=3)
        extend = "min" if largest > worst else "neither"
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, extend=extend, label="below the best")
        return self

    def _write(self, ax, means):
        import matplotlib.patches

        marks = self.table.marks()
        texts = np.empty(means.shape, dtype=object)
        colours = self.image_.to_rgba(self.image_.get_array())
        light = 1.0 - colours[..., 3] * (1.0 - colours[..., :3] @ [0.299, 0.587, 0.114]) > 0.5
        for (row, trainer), (column, place) in itertools.product(enumerate(means.index), enumerate(means.columns)):
            mean, mark = means.iloc[row, column], marks[trainer, *place]
            texts[row, column] = ax.text(
                column,
                row,
                f"{mean:.3f} {mark}".strip(),
                ha="center",
                va="center",
                color="black" if light[row, column] else "white",
                fontweight="bold" if mark.startswith("**") else "normal",
            )
            if "v" in mark:
                colour = texts[row, column].get_color()
                box = {"fill": False, "hatch": "//", "linewidth": 0, "edgecolor": colour, "alpha": 0.35}
                ax.add_patch(matplotlib.patches.Rectangle((column - 0.5, row - 0.5), 1, 1, **box))
        return texts

    def _name_columns(self, ax, columns):
        """Write the measures below and the data sets above, with lines between the data sets."""
        ax.set_xticks(range(len(columns)), [measure for _, measure in columns])
        between = "   " if len(columns) > 2 else "\n"
        legend = ["** best of its column", "* second best", "< significantly below the best"]
        legend += ["v vacuous"] if any(self.table.vacuous.values()) else []
        ax.set_xlabel(f"tested by\n{between.join(legend)}")
        first = 0
        for dataset, its in itertools.groupby(columns, key=lambda column: column[0]):
            width = len(list(its))
            ax.text(
                first + (width - 1) / 2,
                1.01,
                plain(dataset),
                ha="center",
                va="bottom",
                fontweight="bold",
                transform=ax.get_xaxis_transform(),
            )
            first += width
            if first < len(columns):
                ax.axvline(first - 0.5, color="white", linewidth=3)


class MapComparisonDisplay(Display):
    """MRR with the feature maps phi_mrr and phi_po, by data set: Figure 7 of the KDD 2008 paper.

    Parameters
    ----------
    comparison : pandas.DataFrame
        Index data set, columns ``mrr`` and ``po`` (test MRR with that map) and ``p``, as computed by
        `structrank.papers.kdd08.figure7`.

    Examples
    --------
    >>> import pandas as pd
    >>> display = MapComparisonDisplay(pd.DataFrame({"mrr": 0.6, "po": 0.5, "p": 0.2}, index=["made"])).plot()
    >>> [len(bars) for bars in display.bars_.values()], display.ax_.get_ylabel()
    ([1, 1], 'test MRR')
    """

    def __init__(self, comparison: DataFrame) -> None:
        self.comparison = comparison

    def plot(self, *, ax: Any = None) -> MapComparisonDisplay:
        """Draw two bars for each data set, and a star where the two differ with p <= 0.05."""
        shown, p = self.comparison[["mrr", "po"]], self.comparison["p"].to_numpy()
        names = [plain(name).replace(", ", "\n") for name in shown.index]
        width = max(1.1, width_of(line for name in names for line in name.split("\n"))) * len(shown)
        ax = self._bars(ax, shown, names, ("phi_mrr", "phi_po"), size=(max(4.0, 1.8 + width), 3.6))
        for place in np.flatnonzero(p <= SIGNIFICANT):
            ax.text(place, shown.iloc[place].max(), "*", ha="center", va="bottom", fontweight="bold")
        ax.margins(y=0.1)  # the star of the highest bar stays inside
        ax.set_xlabel(f"data set   (* p <= {SIGNIFICANT:g})")
        ax.set_ylabel("test MRR")
        legend_above(ax, 2)
        return self


class TimeDisplay(Display):
    """Training time in oracle and QP, by trainer: Figure 8 of the KDD 2008 paper.

    Parameters
    ----------
    times : pandas.DataFrame
        As returned by `structrank.comparison.diagnostics.time_breakdown`: index trainer.

    Examples
    --------
    >>> from structrank import datasets
    >>> from structrank.comparison.diagnostics import time_breakdown
    >>> train = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, noise=0.2, random_state=0).train
    >>> display = TimeDisplay(time_breakdown(train)).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['DORM (Hungarian)', 'DORM (lattice)', 'NDCG']
    """

    def __init__(self, times: DataFrame) -> None:
        self.times = times

    def plot(self, *, ax: Any = None, legend: bool = True) -> TimeDisplay:
        """Draw two bars for each trainer, the time in the oracle and in the QP, on a logarithmic axis; `legend` names both."""
        shown = self.times[["oracle", "qp"]]
        names, size = [plain(name) for name in shown.index], (6.0, 1.2 + 0.6 * len(shown))
        ax = self._bars(ax, shown, names, ("oracle", "QP"), size=size, horizontal=True, text=brief_seconds)
        ax.set_ylim(len(shown) + 0.2, -0.6)  # the first trainer on top, as in the frame, and the legend below the bars
        spent = shown.to_numpy()
        if (spent > 0).any():  # bars would be invisible beside one of 100 times their length
            ax.set_xscale("log")
            ax.set_xlim(spent[spent > 0].min() / 3, 3 * spent.max())
        ax.set_xlabel("time in all passes (s)")
        ax.set_ylabel("trained on")
        if legend:
            ax.legend(loc="lower right", ncols=2, frameon=False)
        return self
