"""Preparations as SQL: columns of raw values become prepared columns, in common table expressions that follow one another.

Values within a query are window functions, which cannot be nested: what a window needs is a column of the expression before.
"""

from __future__ import annotations

from structrank.preparation import Clip, Deviation, Fill, Log, Normalise


class PreparedTable:
    """A table with prepared columns.

    Parameters
    ----------
    steps : tuple of Step
        Fitted.
    table, query : str
        Quoted names of the table and of its column of queries.
    columns : sequence of str
        Quoted names of the raw columns, in the order of the model.
    prepared : sequence of str
        Quoted names for the prepared columns.
    number : callable
        Returns a number as a literal.

    Attributes
    ----------
    source : str
        Name of the last expression, which has the columns of the table and the prepared columns.
    with_clause : str
        What stands before SELECT.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank.preparation import fit_steps
    >>> steps, _ = fit_steps(Fill(3), np.array([[1.0]]), 0, ["age"])
    >>> print(PreparedTable(steps, '"documents"', '"qid"', ['"age"'], ['"p"'], repr).with_clause)
    WITH structrank_1 AS (
      SELECT d.*,
        COALESCE(CAST(d."age" AS DOUBLE PRECISION), 3.0) AS "p"
      FROM "documents" AS d
    )
    """

    def __init__(self, steps, table, query, columns, prepared, number):
        self.source, self._window, self._number = table, f"(PARTITION BY d.{query})", number
        self._query, self._expressions = query, []
        self._values = [f"CAST(d.{column} AS DOUBLE PRECISION)" for column in columns]  # of integers, too
        for step in steps:
            self._add(step)
        self._store(range(len(self._values)), prepared)

    @property
    def with_clause(self):
        """The common table expressions."""
        return "WITH " + ",\n".join(self._expressions)

    def _store(self, columns, names=None):
        """Make columns of some values, for which windows can then be asked."""
        stage = len(self._expressions) + 1
        names = names or [f'"structrank_{stage}_{column + 1}"' for column in columns]
        added = ",\n    ".join(f"{self._values[column]} AS {name}" for column, name in zip(columns, names, strict=True))
        self._expressions.append(f"structrank_{stage} AS (\n  SELECT d.*,\n    {added}\n  FROM {self.source} AS d\n)")
        self.source = f"structrank_{stage}"
        for column, name in zip(columns, names, strict=True):
            self._values[column] = f"d.{name}"

    def _add(self, step):
        columns = list(range(len(self._values))) if step.columns_ is None else step.columns_.tolist()
        if step.within_query:
            self._store(columns)
        flags = [f"CASE WHEN {self._values[columns[place]]} IS NULL THEN {self._number(1.0)} ELSE {self._number(0.0)} END"
                 for place in (step.missing_.tolist() if isinstance(step, Fill) else ())]  # fmt: skip
        if isinstance(step, Normalise) and step.method == "zscore":
            for column in columns:
                self._values[column] = self._if_varied(self._values[column], "{x} - AVG({x}) OVER {w}")
            self._store(columns)
        for place, column in enumerate(columns):
            self._values[column] = self._changed(step, place, self._values[column])
        if step.within_query:
            self._store(columns)
        self._values += flags

    def _if_varied(self, value, text):
        """Return a formula of x and its window w where the values of the query differ, and 0 (or NULL) where they do not."""
        formula = text.format(x=value, w=self._window)
        differs = f"MAX({value}) OVER {self._window} > MIN({value}) OVER {self._window}"
        return f"CASE WHEN {differs} THEN {formula} ELSE {self._number(0.0)} * {value} END"

    def _changed(self, step, place, value):
        number, window = self._number, self._window
        if isinstance(step, Fill):
            if step.within_query:
                return f"COALESCE({value}, MIN({value}) OVER {window}, {number(0.0)})"
            return f"COALESCE({value}, {number(float(step.values_[place]))})"
        if isinstance(step, Log):
            one = number(1.0)
            return f"CASE WHEN {value} < {number(0.0)} THEN -LN({one} - {value}) ELSE LN({one} + {value}) END"
        if isinstance(step, Clip):
            limits = [(sign, number(float(limit))) for sign, limit in (("<", step.low), (">", step.high)) if limit is not None]
            cases = " ".join(f"WHEN {value} {sign} {limit} THEN {limit}" for sign, limit in limits)
            return f"CASE {cases} ELSE {value} END"
        if isinstance(step, Deviation):
            return f"({value} / {number(float(step.scale_[place]))})"
        if not isinstance(step, Normalise):
            raise ValueError(f"{step!r} has no form in SQL; export model.after_preparation(), and compute its columns first.")
        if step.method == "minmax":
            least = f"MIN({value}) OVER {window}"
            return self._if_varied(value, f"({{x}} - {least}) / (MAX({{x}}) OVER {{w}} - {least})")
        if step.method == "rank":
            rank = f"RANK() OVER (PARTITION BY d.{self._query} ORDER BY {value} DESC NULLS LAST)"
            return f"CASE WHEN {value} IS NOT NULL THEN {number(1.0)} / ({number(float(step.k))} + {rank}) END"
        mean = "SUM" if step.method == "l2" else "AVG"
        squares = f"{mean}({value} * {value}) OVER {window}"
        return f"CASE WHEN {squares} > {number(0.0)} THEN {value} / SQRT({squares}) ELSE {value} END"
