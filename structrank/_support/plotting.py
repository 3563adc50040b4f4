"""Shared code of the Display classes: axes, and distinguishable colours, markers and dashes."""

from __future__ import annotations

import itertools

import numpy as np

from structrank._support.text import printable

# Okabe and Ito's colours without the yellow, which is faint on white: distinguishable with any kind of colour vision. Markers
# and dashes repeat the distinction; with more lines than colours only the dashes differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "//", "..")
_DECADES = 1e-6


def styles():
    """Yield line styles, the first 28 of which differ in colour or dashes; of equal lines, the markers below stay visible."""
    for number in itertools.count():
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": _MARKERS[number % len(_MARKERS)],
            "linestyle": _DASHES[number // len(COLOURS) % len(_DASHES)],
            "markersize": 7.0 - 0.5 * (number % len(COLOURS)),
        }


def width_of(names):
    """Return the width in inches of the longest name, with a gap to the next."""
    return 0.1 * (max(map(len, names)) + 2)


def pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib, which is not installed: pip install structrank[plot]") from error
    return plt


class Display:
    """Base class of the displays: keeps the axes as `ax_` and the figure as `figure_`."""

    def _place(self, ax, figsize):
        if ax is None:
            _, ax = pyplot().subplots(figsize=figsize, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def plain(name):
    """Escape a name for figures: a dollar does not start mathematics, and legends show names with a leading underscore."""
    text = printable(str(name)).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text  # zero-width space


def without_crowd(style, n_points):
    """Mark about ten points if there are too many to distinguish, each line at other points."""
    if n_points <= 40:
        return style
    step = n_points // 10
    return {**style, "markevery": (step * _MARKERS.index(style["marker"]) // len(_MARKERS), step)}


def label_decades(axis):
    """Write plain numbers on a logarithmic axis of less than three decades, where powers of ten are few or overlap.

    Parameters
    ----------
    axis : matplotlib Axis
        With its final limits.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = sorted(axis.get_view_interval())
    if high < 1000 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 1.5, 2, 3, 4, 5, 6, 8)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def add_legend(ax):
    """Name the lines, beside the axes if there are more than four, which a legend would cover."""
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**(beside if len(ax.get_legend_handles_labels()[1]) > 4 else {}))


def limit_decades(ax, lines, highest=None, lowest=None):
    """Limit a logarithmic y-axis to six decades, so that rounding errors around 0 do not stretch it.

    Lines that leave the axes are named so in the legend.

    Parameters
    ----------
    ax : matplotlib Axes
    lines : iterable of matplotlib Line2D
    highest : float, default None
        Values above are outside; None for the largest value.
    lowest : float, default None
        A value that is inside, however small.
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


def brief_seconds(seconds):
    """Return seconds with two digits, as "0.0050", "1.0" or "120"."""
    return f"{seconds:#.2g}" if seconds < 10 else f"{seconds:.0f}"


def time_label(part):
    """Return the name of a part of the training time in figures."""
    return "QP" if part == "qp" else part
