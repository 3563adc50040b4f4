"""What happened during training, as data."""

from __future__ import annotations

from collections.abc import Sequence


class History(Sequence):
    """The iterations of a training run, in order; `structrank.solvers.cutting_plane.Iteration` each.

    Examples
    --------
    >>> from structrank.solvers.cutting_plane import Iteration
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
        last = self._iterations[-1]
        return f"History({len(self)} iterations, objective {last.objective:.6g}, gap {last.gap:.2g})"

    def to_frame(self):
        """Give a pandas frame, one row an iteration; seconds become columns ``seconds_qp`` and so on."""
        import pandas as pd

        rows = []
        for iteration in self._iterations:
            row = dict(vars(iteration))
            seconds = row.pop("seconds")
            notes = {name: row.pop(name) for name in ("solver", "note")}
            rows.append({**row, **{f"seconds_{name}": value for name, value in seconds.items()}, **notes})
        return pd.DataFrame(rows).set_index("iteration") if rows else pd.DataFrame()
