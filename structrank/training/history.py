"""The history of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structrank._support.saveable import saveable

if TYPE_CHECKING:
    import pandas as pd


@saveable
class History(Sequence):
    """The iterations of a training run, in order; `structrank.solvers.Iteration` each.

    Learners that train in rounds keep a `structrank.learners.training.Round` or `structrank.clicks.collaborative.Epoch` each.

    Parameters
    ----------
    iterations : sequence

    Examples
    --------
    >>> from structrank.solvers import Iteration
    >>> history = History([Iteration(1, 0.9, 0.5, 0.4, 0.1, 1, {"qp": 0.001}, "osqp", "")])
    >>> len(history), history[0].gap
    (1, 0.4)
    >>> history.to_frame()[["objective", "seconds_qp"]]
               objective  seconds_qp
    iteration
    1                0.9       0.001
    """

    def __init__(self, iterations):
        self._iterations = list(iterations)

    def __len__(self):
        return len(self._iterations)

    def __getitem__(self, index):
        return self._iterations[index]

    def __repr__(self):
        if not self._iterations:
            return "History(0 iterations)"
        last = vars(self._iterations[-1])
        shown = {"objective": ".6g", "gap": ".2g", "train": ".4f", "validation": ".4f"}
        values = [f"{name} {last[name]:{form}}" for name, form in shown.items() if name in last]
        return f"History({', '.join([f'{len(self)} {next(iter(last))}s', *values])})"

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per iteration; `seconds` becomes the columns ``seconds_qp`` and so on."""
        import pandas as pd

        rows = []
        for iteration in self._iterations:
            row = dict(vars(iteration))
            if isinstance(row["seconds"], dict):
                seconds = {f"seconds_{name}": value for name, value in row.pop("seconds").items()}
                notes = {name: row.pop(name) for name in ("solver", "note")}
                row = {**row, **seconds, **notes}
            rows.append(row)
        return pd.DataFrame(rows).set_index(next(iter(rows[0]))) if rows else pd.DataFrame()
