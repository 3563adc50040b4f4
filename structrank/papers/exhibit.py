"""An exhibit: a table or figure of a paper, with what the paper printed and a function that computes ours."""

from __future__ import annotations

import functools
import inspect
import io
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank._support.text import printable_output
from structrank.datasets import load_letor_folds

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Exhibit", "Result", "exhibit", "number_formats", "printed_table"]

_MOST_ROWS = 25
# The arguments of exhibits, apart from `data` and `quick`.
_ARGUMENTS = {
    **dict.fromkeys(("Cs", "n_jobs", "results", "verbose"), "As for `structrank.compare`."),
    "clean": "Prepare the data as the paper does (section 4.1).",
    "disagreement": "Standard deviation of the judges' feature weights around 1, the weight for users; at 0, clicks follow the "
    "relevance that is graded.",
    "factors": "Numbers of factors.",
    "k": "Rank cutoff, in training and in testing; None for no cutoff.",
    "n_directions": "Number of random directions.",
    "n_runs": "Number of runs, with different directions and initial weights.",
    "n_seeds": "Number of seeds, of generated data and of initial weights.",
    "random_state": "Seed of the synthetic data, or of the clicks on data given.",
    "settled": "Also test weights that have settled at a local optimum of the measure, which is not part of the paper.",
    "thetas": "Values of theta, with 0 and 1.",
}


@dataclass(frozen=True, eq=False)
class Result:
    """What an exhibit computed, beside what the paper printed.

    Parameters
    ----------
    ours : pandas.DataFrame
        The numbers computed here.
    display : object with ``plot(ax=None)``
        Draws them.
    data : str
        Data they were computed on.
    printed : pandas.DataFrame, default None
        The paper's numbers on the same data, with row and column labels of `ours`; None or empty where the data are not
        the paper's or the paper prints no numbers.
    findings : sequence of str, default ()
        Sentences on the outcome, computed from `ours`, such as where it contradicts the paper.
    exhibit : Exhibit
        The table or figure; set by `Exhibit.compute`.
    reduced : str
        What quick settings reduced; set by `Exhibit.compute`.

    Examples
    --------
    >>> import pandas as pd
    >>> ours = pd.DataFrame({"map": [0.5, 0.25]}, index=["AUC", "MAP"])
    >>> Result(ours, None, "digits", printed=pd.DataFrame({"map": [0.25]}, index=["AUC"])).difference
          map
    AUC  0.25
    """

    ours: pd.DataFrame
    display: Any
    data: str
    _: KW_ONLY
    printed: pd.DataFrame | None = None
    findings: Sequence[str] = ()
    exhibit: Any = None
    reduced: str = ""

    def __post_init__(self):
        if self.printed is not None and self.printed.empty:
            object.__setattr__(self, "printed", None)

    @property
    def difference(self) -> pd.DataFrame | None:
        """Ours - printed, for the rows and columns of both; None where nothing printed is comparable."""
        if self.printed is None:
            return None
        rows, columns = (
            [label for label in getattr(self.printed, axis) if label in getattr(self.ours, axis)]
            for axis in ("index", "columns")
        )
        return self.ours.loc[rows, columns] - self.printed.loc[rows, columns]

    def plot(self, ax: Any = None) -> Any:
        """Draw the exhibit on matplotlib axes, or a new figure, and return its display."""
        return self.display.plot(ax=ax)

    def texts(self) -> dict[str, str]:
        """Return what there is to say in words, by heading."""
        about = self.exhibit
        found = {
            "Question": about.question,
            "Protocol": about.protocol,
            "Paper's data": about.data,
            "Data here": self.data,
            "The paper reports": about.reported,
            "Reduced": self.reduced,
            "Outcome": " ".join(self.findings),
            "Likely reason of differences": about.reason if self.printed is not None or self.findings else "",
        }
        return {heading: text for heading, text in found.items() if text}

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables, by heading: ours, printed, and the difference where the data are the paper's."""
        if self.printed is None:
            of_other_data = self.exhibit.printed
            return {"Ours": self.ours} | ({} if of_other_data is None else {"Printed (other data)": of_other_data})
        return {"Ours": self.ours, "Printed": self.printed, "Ours - printed": self.difference}

    def excerpts(self) -> dict[str, pd.DataFrame]:
        """Return the tables, by heading, with at most 25 rows of each: evenly spaced ones, the first and the last included."""
        shown = {}
        for heading, frame in self.frames().items():
            n_rows = len(frame)
            rows = [round(place * (n_rows - 1) / (_MOST_ROWS - 1)) for place in range(_MOST_ROWS)]
            text = f"{heading} ({_MOST_ROWS} of {n_rows} rows)" if n_rows > _MOST_ROWS else heading
            shown[text] = frame.iloc[rows] if n_rows > _MOST_ROWS else frame
        return shown

    def __str__(self) -> str:
        fill = functools.partial(textwrap.fill, width=110, subsequent_indent="  ", break_on_hyphens=False)
        title = f"{self.exhibit.paper}, {self.exhibit.title}"
        words = [fill(f"{heading}: {text}") for heading, text in self.texts().items()]
        tables = [
            f"{heading}:\n{frame.to_string(formatters=number_formats(frame))}" for heading, frame in self.excerpts().items()
        ]
        return printable_output("\n".join([title, *words, *("\n" + table for table in tables)]))


@dataclass(eq=False)
class Exhibit:
    """A table or figure of a paper; calling it computes it.

    Made by the decorator `exhibit` from a function ``f(data=None, *, ...)`` that returns a `Result`. A function that would take
    more than a minute has an argument ``quick=True`` that reduces it.

    Parameters
    ----------
    function : callable
        Computes the exhibit; its name and docstring become those of the exhibit.
    title : str
        Number and subject.
    question : str
        What the authors asked.
    protocol : str
        How they answered it, and how it is answered here.
    data : str
        Data of the paper, and the data used here where none are given.
    reported : str
        What the paper reports, in words.
    printed : pandas.DataFrame, default None
        Numbers of the paper; None where it prints only curves.
    reduced : str, default ""
        What ``quick=True`` reduces.
    reason : str, default ""
        Likely reason where ours differ from print.
    read : callable, default load_letor_folds
        Reads a data set from the path given on the command line; None where the exhibit takes no data.
    """

    function: Callable[..., Result]
    _: KW_ONLY
    title: str
    question: str
    protocol: str
    data: str
    reported: str
    printed: pd.DataFrame | None = None
    reduced: str = ""
    reason: str = ""
    read: Callable[[str], Any] | None = load_letor_folds

    def __post_init__(self):
        functools.update_wrapper(self, self.function)
        text, heading, examples = inspect.getdoc(self.function).partition("\nExamples\n")
        texts = {"data": self._about_data(), "quick": f"Less than the paper: {self.reduced}"} | _ARGUMENTS
        lines = [text.rstrip(), "", "Parameters", "----------"]
        for name, parameter in inspect.signature(self.function).parameters.items():
            lines += [f"{name} : default {parameter.default!r}", f"    {texts[name]}"]
        self.__doc__ = "\n".join([*lines, "", "Returns", "-------", "Result", heading + examples])

    def _about_data(self):
        if self.read is None:
            return "Not used."
        kind = (
            "`structrank.datasets.Fold`, or a list of them" if self.read is load_letor_folds else "`structrank.clicks.ClickLog`"
        )
        return f"From names to a {kind}; None for embedded or generated data."

    @property
    def paper(self) -> str:
        """Name of the paper's module."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def name(self) -> str:
        """Name within the paper's module."""
        return self.function.__name__

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the keyword arguments of `compute`."""
        return tuple(inspect.signature(self.function).parameters)[1:]

    def compute(self, data: Any = None, **settings: Any) -> Result:
        """Compute the exhibit.

        Parameters
        ----------
        data : dict, default None
            From names to data sets; None for embedded or generated data. Printed numbers stand beside ours for data sets that
            have the name of one of the paper's.
        **settings
            The other arguments of the function, such as ``quick=False`` for the settings of the paper.

        Returns
        -------
        Result
        """
        result = self.function(data, **settings)
        return replace(result, exhibit=self, reduced=self.reduced if settings.get("quick", True) else "")

    __call__ = compute

    def __repr__(self) -> str:
        return f"<{self.paper}.{self.name}: {self.title}>"


def exhibit(**about: Any) -> Callable[[Callable[..., Result]], Exhibit]:
    """Return a decorator that makes an `Exhibit` of a function; arguments as for `Exhibit`."""
    return lambda function: Exhibit(function, **about)


def number_formats(frame: pd.DataFrame) -> dict[Any, Callable[[float], str]]:
    """Return how to write the numbers of each column of a table: with the same digits after the point, so that they align.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"map": [0.5, 0.25], "time": [0.00025, 0.3], "error": [4e-16, 0.0]})
    >>> print(frame.to_string(formatters=number_formats(frame)))
        map     time    error
    0 0.500 0.000250 4.00e-16
    1 0.250 0.300000 0.00e+00
    """
    return {name: _number_format(values) for name, values in frame.items() if values.dtype.kind == "f"}


def _number_format(values):
    sizes = values.abs()
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
    if low < 1e-6 or high >= 1e6:
        return "{:.2e}".format
    digits = min(6, max(3, 2 - math.floor(math.log10(low)))) if high < 1000 else 1
    return f"{{:.{digits}f}}".format


def printed_table(text: str, columns: Any = None) -> pd.DataFrame:
    """Return a table of a paper from its text: a line for each row, two blanks or more between cells, "-" for no value.

    Parameters
    ----------
    text : str
        The first line names the columns, starting with the name of the row labels; without it where `columns` is given.
    columns : index of pandas, default None
        The columns.

    Examples
    --------
    >>> printed_table('''
    ...     criterion  map    mrr@10
    ...     AUC        0.582  0.799
    ...     McRank     0.527  -
    ... ''')
                 map  mrr@10
    criterion
    AUC        0.582   0.799
    McRank     0.527     NaN
    """
    import pandas as pd

    lines = io.StringIO("\n".join(line.strip() for line in text.strip().splitlines()))
    header = 0 if columns is None else None
    frame = pd.read_csv(lines, sep=r"\s{2,}", engine="python", index_col=0, na_values="-", header=header)
    return frame if columns is None else frame.rename_axis(None).set_axis(columns, axis=1)
