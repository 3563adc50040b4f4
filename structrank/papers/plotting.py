"""Displays that several exhibits share: lines, bars, and panels of other displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structrank._support.plotting import (
    COLOURS,
    HATCHES,
    Display,
    add_legend,
    brief_seconds,
    label_decades,
    limit_decades,
    plain,
    pyplot,
    styles,
    width_of,
    without_crowd,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    import pandas as pd

__all__ = ["BarsDisplay", "LinesDisplay", "PanelsDisplay"]


class LinesDisplay(Display):
    """A line for each column of a frame, against its index.

    Parameters
    ----------
    frame : pandas.DataFrame
        The index is the x-axis; missing values are left out.
    xlabel, ylabel : str
    logx, logy : bool, default False
        Logarithmic axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict
        Mapping from columns to the lines drawn.

    Examples
    --------
    >>> import matplotlib, pandas as pd
    >>> matplotlib.use("Agg")
    >>> display = LinesDisplay(pd.DataFrame({"a": [1, 2], "b": [2, 3]}), "round", "NDCG").plot()
    >>> sorted(display.lines_)
    ['a', 'b']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, frame: pd.DataFrame, xlabel: str, ylabel: str, *, logx: bool = False, logy: bool = False) -> None:
        self.frame, self.xlabel, self.ylabel, self.logx, self.logy = frame, xlabel, ylabel, logx, logy

    def plot(self, ax: Any = None) -> Self:
        """Draw the lines on matplotlib axes; None creates a figure."""
        ax = self._place(ax, figsize=(8.0 if self.frame.shape[1] > 4 else 6.0, 4.0))
        self.lines_ = {}
        for name, style in zip(self.frame, styles(), strict=False):
            values = self.frame[name].dropna()
            label = ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
            style = without_crowd(style, len(values))
            (self.lines_[name],) = ax.plot(values.index.to_numpy(), values.to_numpy(), label=plain(label), **style)
        if self.logx:
            ax.set_xscale("log")
            label_decades(ax.xaxis)
        if self.logy:
            ax.set_yscale("log")
            limit_decades(ax, self.lines_.values())
            label_decades(ax.yaxis)
        ax.set_xlabel(self.xlabel)
        ax.set_ylabel(self.ylabel)
        ax.grid(alpha=0.3)
        if len(self.lines_) > 1:
            add_legend(ax)
        return self


class BarsDisplay(Display):
    """A group of bars for each row of a frame, one for each column, with their values.

    Parameters
    ----------
    frame : pandas.DataFrame
        The name of its index labels the x-axis, the name of its columns the legend.
    ylabel : str
    logy : bool, default False
        Logarithmic axis, of seconds.
    errors : pandas.DataFrame, default None
        Half lengths of error bars, with the rows and columns of `frame`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict
        Mapping from columns to the bars drawn.

    Examples
    --------
    >>> import matplotlib, pandas as pd
    >>> matplotlib.use("Agg")
    >>> display = BarsDisplay(pd.DataFrame({"a": [1, 2], "b": [2, 3]}, index=["x", "y"]), "time (s)").plot()
    >>> [text.get_text() for text in display.ax_.get_xticklabels()]
    ['x', 'y']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, frame: pd.DataFrame, ylabel: str, *, logy: bool = False, errors: pd.DataFrame | None = None) -> None:
        self.frame, self.ylabel, self.logy, self.errors = frame, ylabel, logy, errors

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars on matplotlib axes; None creates a figure."""
        frame = self.frame
        n_bars = frame.shape[1]
        names = [plain(", ".join(map(str, name)) if isinstance(name, tuple) else name) for name in frame.index]
        size = max(6.0, 1.5 + max(0.3 * n_bars, width_of(names)) * len(frame))
        # Above the bars, with as many columns as there is space for; each row of the legend makes the figure taller.
        n_columns = max(1, int((size - 1.0) / (0.5 + 0.8 * width_of(map(str, frame.columns)))))
        ax = self._place(ax, figsize=(size, 3.8 + 0.22 * -(-n_bars // n_columns)))
        self.bars_, width = {}, 0.8 / n_bars
        narrow = width * (size - 1.0) / len(frame) < 0.45  # inches, for a value of five characters
        for number, column in enumerate(frame):
            self.bars_[column] = ax.bar(
                np.arange(len(frame)) + (number - (n_bars - 1) / 2) * width,
                frame[column],
                width,
                yerr=None if self.errors is None else self.errors[column],
                color=COLOURS[number % len(COLOURS)],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="white",
                label=plain(column),
            )
            texts = [brief_seconds(value) if self.logy else f"{value:.3f}" for value in frame[column]]
            ax.bar_label(self.bars_[column], texts, padding=3, fontsize="small", rotation=90 if narrow else 0)
        if self.logy:
            ax.set_yscale("log")
            label_decades(ax.yaxis)
        ax.margins(y=0.22 if narrow else 0.12)  # the value of the highest bar stays inside
        ax.set_xticks(range(len(frame)), names)
        ax.set_xlabel(", ".join(name for name in frame.index.names if name is not None))
        ax.set_ylabel(self.ylabel)
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=n_columns,
            frameon=False,
            borderaxespad=0.1,
            title=frame.columns.name,
            alignment="left",
        )
        return self


class PanelsDisplay:
    """Displays in rows of two, each below its title.

    Parameters
    ----------
    panels : dict
        From titles to displays.

    Attributes
    ----------
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib, pandas as pd
    >>> matplotlib.use("Agg")
    >>> lines = LinesDisplay(pd.DataFrame({"a": [1, 2]}), "round", "NDCG")
    >>> display = PanelsDisplay({"(a)": lines, "(b)": lines}).plot()
    >>> [ax.get_title() for ax in display.figure_.axes]
    ['(a)', '(b)']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, panels: Mapping[str, Any]) -> None:
        self.panels = dict(panels)

    def plot(self, ax: Any = None) -> Self:
        """Draw the panels on as many matplotlib axes; None creates a figure."""
        if ax is None:
            n_columns = min(2, len(self.panels))
            n_rows = -(-len(self.panels) // n_columns)
            size = (6.0 * n_columns, 4.0 * n_rows)
            places = pyplot().subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)[1].ravel()
            for empty in places[len(self.panels) :]:
                empty.remove()
            ax = places[: len(self.panels)]
        for (title, display), place in zip(self.panels.items(), ax, strict=True):
            display.plot(ax=place)
            place.set_title(title)
        self.figure_ = ax[0].figure
        return self
