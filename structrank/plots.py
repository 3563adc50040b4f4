"""Plots: lines, bars, heat maps and panels of plots, with distinguishable colours, markers and dashes.

A Display keeps its data and draws them by ``plot(ax=)``. Matplotlib is imported when a figure is drawn; ``pip install
structrank[plot]`` installs it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from structrank._support.lazy import optional
from structrank._support.text import printable

# Okabe and Ito's colours without the yellow, which is faint on white: distinguishable with any kind of colour vision. Markers
# and dashes repeat the distinction; with more lines than colours only the dashes differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
HATCHES = ("", "//", "..")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES = ("-", "--", ":", "-.")
_DECADES = 1e-6


class Display:
    """Base class of plots.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_, bars_ : dict
        Lines or bars drawn, by name.
    """

    ax_: Any
    figure_: Any
    lines_: dict[Any, Any]
    bars_: dict[Any, Any]

    def _place(self, ax, size):
        if ax is None:
            _, ax = pyplot().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _lines(
        self, ax, curves, xlabel, ylabel, *, size=(6.0, 4.0), label=None, logx=False, logy=False, highest=None, lowest=None
    ):
        """Draw a line for each of ``{name: (x, y)}``; the other arguments as for `LinesDisplay` and `limit_decades`."""
        ax = self._place(ax, size)
        self.lines_ = {}
        for (name, (x, y)), style in zip(curves.items(), _styles(), strict=False):
            text = plain(_joined(name)) if label is None else label(name)
            (self.lines_[name],) = ax.plot(x, y, label=text, **_without_crowd(style, len(x)))
        if logx:
            ax.set_xscale("log")
            _label_decades(ax.xaxis)
        if logy:
            ax.set_yscale("log")
            _limit_decades(ax, self.lines_.values(), highest, lowest)
            _label_decades(ax.yaxis)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        ax.grid(alpha=0.3)
        return ax

    def _bars(self, ax, frame, names, labels, *, size, horizontal=False, errors=None, text=None, rotation=0):
        """Draw a group of bars for each row of a frame, one for each column, with `text` of its values."""
        ax = self._place(ax, size)
        places, width = np.arange(len(frame)), 0.8 / frame.shape[1]
        draw, error = (ax.barh, "xerr") if horizontal else (ax.bar, "yerr")
        self.bars_ = {}
        for number, (column, label) in enumerate(zip(frame, labels, strict=True)):
            self.bars_[column] = draw(
                places + (number - (frame.shape[1] - 1) / 2) * width,
                frame[column],
                width,
                color=COLOURS[number % len(COLOURS)],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="white",
                label=label,
                **{error: None if errors is None else errors[column]},
            )
            if text is not None:
                padding = 2 if horizontal else 3
                ax.bar_label(self.bars_[column], map(text, frame[column]), padding=padding, fontsize="small", rotation=rotation)
        (ax.set_yticks if horizontal else ax.set_xticks)(places, names)
        return ax


class LinesDisplay(Display):
    """Lines.

    Parameters
    ----------
    curves : pandas.DataFrame or dict
        A line for each column against the index, without missing values; or ``{name: (x, y)}``.
    xlabel, ylabel : str
    logx, logy : bool, default False
        Logarithmic axes.
    label : callable, default None
        From names to texts of the legend; None for the names.

    Examples
    --------
    >>> import pandas as pd
    >>> display = LinesDisplay(pd.DataFrame({"a": [1, 2], "b": [2, 3]}), "round", "NDCG").plot()
    >>> sorted(display.lines_)
    ['a', 'b']
    """

    def __init__(self, curves, xlabel, ylabel, *, logx=False, logy=False, label=None):
        if hasattr(curves, "columns"):
            columns = {name: curves[name].dropna() for name in curves}
            curves = {name: (values.index.to_numpy(), values.to_numpy()) for name, values in columns.items()}
        self.curves, self._labels = curves, (xlabel, ylabel)
        self._settings = {"logx": logx, "logy": logy, "label": label}

    def plot(self, *, ax: Any = None) -> Any:
        """Draw on matplotlib axes; None creates a figure."""
        ax = self._lines(ax, self.curves, *self._labels, size=(8.0 if len(self.curves) > 4 else 6.0, 4.0), **self._settings)
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

    Examples
    --------
    >>> import pandas as pd
    >>> display = BarsDisplay(pd.DataFrame({"a": [1, 2], "b": [2, 3]}, index=["x", "y"]), "time (s)").plot()
    >>> [text.get_text() for text in display.ax_.get_xticklabels()]
    ['x', 'y']
    """

    def __init__(self, frame, ylabel, *, logy=False, errors=None):
        self.frame, self.ylabel, self.logy, self.errors = frame, ylabel, logy, errors

    def plot(self, *, ax: Any = None) -> Any:
        """Draw on matplotlib axes; None creates a figure."""
        frame = self.frame
        n_bars = frame.shape[1]
        names = [plain(_joined(name)) for name in frame.index]
        width = max(6.0, 1.5 + max(0.3 * n_bars, width_of(names)) * len(frame))
        # Above the bars, with as many columns as there is space for; each row of the legend makes the figure taller.
        n_columns = max(1, int((width - 1.0) / (0.5 + 0.8 * width_of(map(str, frame.columns)))))
        narrow = 0.8 / n_bars * (width - 1.0) / len(frame) < 0.45  # inches, for a value of five characters
        ax = self._bars(
            ax,
            frame,
            names,
            map(plain, frame),
            size=(width, 3.8 + 0.22 * -(-n_bars // n_columns)),
            errors=self.errors,
            text=brief_seconds if self.logy else "{:.3f}".format,
            rotation=90 if narrow else 0,
        )
        if self.logy:
            ax.set_yscale("log")
            _label_decades(ax.yaxis)
        ax.margins(y=0.22 if narrow else 0.12)  # the value of the highest bar stays inside
        ax.set_xlabel(", ".join(name for name in frame.index.names if name is not None))
        ax.set_ylabel(self.ylabel)
        legend_above(ax, n_columns, title=frame.columns.name, alignment="left")
        return self


class HeatMapDisplay(Display):
    """Entries of a matrix of zeros and ones, filled where they are not 0.

    Parameters
    ----------
    frame : pandas.DataFrame
    """

    def __init__(self, frame):
        self.frame = frame

    def plot(self, *, ax: Any = None) -> Any:
        """Draw on matplotlib axes; None creates a figure."""
        values = self.frame.to_numpy()
        ax = self._place(ax, (4.0, 2.6))
        ax.pcolormesh(values, cmap="Blues", vmin=0, vmax=1.5, edgecolors="0.6", linewidth=1)
        ax.set_xticks(np.arange(values.shape[1]) + 0.5, list(self.frame))
        ax.set_yticks(np.arange(values.shape[0]) + 0.5, [f"{self.frame.index.name} {name}" for name in self.frame.index])
        for (row, column), value in np.ndenumerate(values):
            ax.text(column + 0.5, row + 0.5, f"{value}", ha="center", va="center", color="white" if value else "black")
        ax.invert_yaxis()
        return self


class PanelsDisplay(Display):
    """Displays in rows of two, each below its title.

    Parameters
    ----------
    panels : dict
        From titles to displays.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = LinesDisplay(pd.DataFrame({"a": [1, 2]}), "round", "NDCG")
    >>> display = PanelsDisplay({"(a)": lines, "(b)": lines}).plot()
    >>> [ax.get_title() for ax in display.figure_.axes]
    ['(a)', '(b)']
    """

    def __init__(self, panels):
        self.panels = dict(panels)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw on as many matplotlib axes as there are panels; None creates a figure."""
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


def pyplot():
    """Return matplotlib's interface for figures."""
    return optional("matplotlib.pyplot", "Drawing", "matplotlib", "plot")


def plain(name):
    """Escape a name for figures: a dollar does not start mathematics, and legends show names with a leading underscore."""
    text = printable(str(name)).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text  # zero-width space


def _joined(name):
    return ", ".join(map(str, name)) if isinstance(name, tuple) else name


def width_of(names):
    """Return the width in inches of the longest name, with a gap to the next."""
    return 0.1 * (max(map(len, names)) + 2)


def brief_seconds(seconds):
    """Return seconds with two digits, as "0.0050", "1.0" or "120"."""
    return f"{seconds:#.2g}" if seconds < 10 else f"{seconds:.0f}"


def add_legend(ax):
    """Name the lines, beside the axes if there are more than four, which a legend would cover."""
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**(beside if len(ax.get_legend_handles_labels()[1]) > 4 else {}))


def legend_above(ax, n_columns, **settings):
    """Name the lines or bars above the axes."""
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.1}
    ax.legend(ncols=n_columns, frameon=False, **place, **settings)


def _styles():
    """Yield line styles, the first 28 of which differ in colour or dashes; of equal lines, the markers below stay visible."""
    for number in itertools.count():
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": _MARKERS[number % len(_MARKERS)],
            "linestyle": _DASHES[number // len(COLOURS) % len(_DASHES)],
            "markersize": 7.0 - 0.5 * (number % len(COLOURS)),
        }


def _without_crowd(style, n_points):
    """Mark about ten points if there are too many to distinguish, each line at other points."""
    if n_points <= 40:
        return style
    step = n_points // 10
    return {**style, "markevery": (step * _MARKERS.index(style["marker"]) // len(_MARKERS), step)}


def _label_decades(axis):
    """Write plain numbers on a logarithmic axis of less than three decades, where powers of ten are few or overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = sorted(axis.get_view_interval())
    if high < 1000 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 1.5, 2, 3, 4, 5, 6, 8)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _limit_decades(ax, lines, highest=None, lowest=None):
    """Limit a logarithmic y-axis to six decades, so that rounding errors around 0 do not stretch it.

    Values above `highest` are outside, and `lowest` is inside, however small. Lines that leave the axes are named so in the
    legend.
    """
    lines = list(lines)
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in lines])
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return
    top = values.max() if highest is None else min(highest, values.max())
    bottom = min(_DECADES * top, np.inf if lowest is None else lowest)
    for line in lines:
        drawn = np.asarray(line.get_ydata(), dtype=np.float64)
        if (drawn > top).any() or (drawn < bottom).any():
            line.set_label(f"{line.get_label()}\n(leaves the axes)")
    if values.max() > top or values.min() < bottom:
        ax.set_ylim(max(bottom, values.min()) / 2, 2 * top)
