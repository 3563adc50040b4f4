"""Models as formulas: Lucene expressions, Vespa ranking expressions, SQL and Painless."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Sequence
from typing import Any

from structrank._support import checks
from structrank.models.exports.linear import LinearFunction, check_distinct, check_names, check_text, feature_names_of
from structrank.models.exports.preparation import PreparedTable
from structrank.models.exports.trees import Forest, function_of

# Lucene 9.12 compiled 70 trees of 30 splits into a method of at most 64 KiB, the limit of Java, and rejected 80.
_LUCENE_SPLITS = 2100
_PAINLESS_BYTES = 65_535  # default of script.max_size_in_bytes


def to_expression(
    model: Any, dialect: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float = 0.0
) -> str:
    r"""Return the score of a document as a formula in the language of an engine.

    The scaler is part of the formula, :math:`\sum_i (w_i / d_i) (x_i - c_i)`. Numbers have the digits to read back as the same
    64-bit numbers, and splits of trees send each 64-bit value to the side to which `predict` sends it.

    Parameters
    ----------
    model : linear model, tree model or Pipeline
        As for `to_solr`; `McRank` with any number of grades.
    dialect : {"lucene", "vespa", "sql", "painless"}
        "lucene"
            Lucene expression, for ``JavascriptCompiler``. A feature is a variable of its name, such as ``bm25``; one whose name
            is not an identifier is written ``doc['title match']``, which is the name to bind.
        "vespa"
            Ranking expression of Vespa. A feature ``bm25`` is ``attribute(bm25)``; a name that is a rank feature, such as
            ``bm25(title)`` or ``query(age)``, is used as it is.
        "sql"
            Standard SQL, a number of type DOUBLE PRECISION. A feature is a column, always in double quotes; NULL in a column
            that the model uses makes the score NULL. SQLite takes such a name for a text if there is no such column; `to_sql`
            names the table as well, so that it raises an error.
        "painless"
            Script of Elasticsearch and OpenSearch. A feature is a numeric field, ``doc['bm25'].value``.
    scaler, feature_names
        As for `to_solr`.
    shift : float, default 0.0
        Constant to add to all scores, as Lucene and its engines reject negative scores.

    See Also
    --------
    to_sql : A complete query, with ranks.
    to_vespa : A complete rank profile.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], qid=0)
    >>> model.coef_ = np.array([0.5, -0.5])
    >>> to_expression(model, "lucene", feature_names=["bm25", "title match"], shift=1.0)
    "1.0 + 0.5 * bm25 - 0.5 * doc['title match']"
    >>> to_expression(model, "sql")
    '0.5E0 * "f1" - 0.5E0 * "f2"'
    """
    checks.check_choice("dialect", dialect, tuple(_DIALECTS))
    text = _DIALECTS[dialect]().formula(function_of(model, scaler, feature_names), checks.check_number("shift", shift))
    _warn_of_size(text, dialect)
    return text


def to_sql(
    model: Any,
    table: str,
    *,
    query: str = "qid",
    scaler: Any = None,
    feature_names: Sequence[str] | None = None,
    shift: float = 0.0,
) -> str:
    """Return a SQL query that scores and ranks the documents of a table within their queries.

    Standard SQL with a window function: it runs in PostgreSQL, DuckDB, SQLite (3.30 or later) and others. The result has the
    columns of the table and, after them, ``score`` and ``rank``; documents of equal scores have equal ranks. Documents with
    NULL in a column that the model uses have the score NULL and are ranked last.

    Parameters
    ----------
    model, scaler, feature_names, shift
        As for `to_expression`; names of columns, which may not differ by case alone, as most databases ignore it. A column
        that the table lacks is an error.
    table : str
        Name of the table.
    query : str, default "qid"
        Column with the query of a document.

    Notes
    -----
    A preparation of the model is part of the query, as common table expressions. The result then has, between the columns of
    the table and the score, columns of its steps, the last of which are called as in ``prepared zscore(log(age))``. ``LN`` and
    ``SQRT`` are functions of SQLite since 3.35. Where `predict` raises because of a missing value that no step fills, the score
    is NULL.

    If a feature or the query column is called "score" or "rank", in upper or lower case, the column of the result is
    ``structrank_score`` or ``structrank_rank``. If another column of the table is called so, the result has two columns of the
    name, the last of which is this one.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> model.coef_ = np.array([1.0])
    >>> print(to_sql(model, "documents"))
    SELECT d.*,
      1.0E0 * d."f1" AS "score",
      RANK() OVER (PARTITION BY d."qid" ORDER BY 1.0E0 * d."f1" DESC NULLS LAST) AS "rank"
    FROM "documents" AS d
    """
    steps, raw, source, clause = getattr(model, "preparation_", ()), (), _quoted(check_text("table", table)), ""
    if steps:
        if scaler is not None:
            raise ValueError("scaler is given, but the model has a preparation, which is exported; pass no scaler.")
        names = feature_names_of(model, None, feature_names)
        check_distinct(names, [name.lower() for name in check_names(names)])
        model, raw = model.after_preparation(), names
        # Columns that no step changes keep their name, which the table has, too.
        feature_names = [f"prepared {name}" for name in model.feature_names_in_]
    function = function_of(model, scaler, feature_names)
    if steps:
        columns, prepared = ([_quoted(name) for name in some] for some in (raw, function.names))
        made = PreparedTable(steps, source, _quoted(check_text("query", query)), columns, prepared, _SQL().number)
        source, clause = made.source, f"{made.with_clause}\n"
    # The rank repeats the formula: the name "score" could be another column of the table, without an error in some databases.
    formula = _SQL("d.").formula(function, checks.check_number("shift", shift))
    taken = {name.lower() for name in (*raw, *function.names, check_text("query", query))}
    score, rank = (_unused(name, taken) for name in ("score", "rank"))
    return (
        f'{clause}SELECT d.*,\n  {formula} AS "{score}",\n'
        f'  RANK() OVER (PARTITION BY d.{_quoted(query)} ORDER BY {formula} DESC NULLS LAST) AS "{rank}"\n'
        f"FROM {source} AS d"
    )


def _unused(name, taken):
    while name in taken:
        name = f"structrank_{name}"
    return name


def to_vespa(
    model: Any, name: str, *, scaler: Any = None, feature_names: Sequence[str] | None = None, shift: float = 0.0
) -> str:
    """Return a rank profile for a schema of Vespa.

    Parameters
    ----------
    model, scaler, feature_names, shift
        As for `to_expression`.
    name : str
        Name of the rank profile, an identifier.

    Examples
    --------
    >>> import numpy as np
    >>> from structrank import StructRankSVM
    >>> model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
    >>> model.coef_ = np.array([1.0])
    >>> print(to_vespa(model, "learned", feature_names=["bm25(title)"]))
    rank-profile learned inherits default {
        first-phase {
            expression {
                1.0 * bm25(title)
            }
        }
    }
    """
    if not _IDENTIFIER.fullmatch(check_text("name", name)) or name == "default":
        raise ValueError(f"name={name!r} is not valid: expected an identifier, such as 'learned'.")
    formula = to_expression(model, "vespa", scaler=scaler, feature_names=feature_names, shift=shift)
    lines = ["first-phase {", "    expression {", f"        {formula}", "    }", "}"]
    return "\n".join([f"rank-profile {name} inherits default {{", *(f"    {line}" for line in lines), "}"])


def _warn_of_size(text, dialect):
    n_splits, n_bytes = text.count("<="), len(text.encode())
    if dialect == "lucene" and n_splits > _LUCENE_SPLITS:
        problem = f"has {n_splits} splits; Java limits the code of an expression to 64 KiB, about {_LUCENE_SPLITS} splits"
    elif dialect == "painless" and n_bytes > _PAINLESS_BYTES:
        problem = f"has {n_bytes} bytes; engines accept {_PAINLESS_BYTES}, unless script.max_size_in_bytes is set"
    else:
        return
    text = f"The formula {problem}. Train a smaller model, or use the learning-to-rank module or plugin of the engine."
    warnings.warn(text, checks.StructRankWarning, stacklevel=3)


# ---- Languages


class _Language:
    """Lucene's expressions; other languages override what they write differently."""

    exp = "exp"

    def number(self, value):
        return repr(value)

    def signed(self, value):
        return f"{'-' if value < 0.0 else '+'} {self.number(abs(value))}"

    def variable(self, name):
        return name if _LUCENE_VARIABLE.fullmatch(name) else f"doc[{_in_quotes(name)}]"

    def choice(self, variable, threshold, yes, no):
        return f"({variable} <= {threshold} ? {yes} : {no})"

    def formula(self, function, shift):
        """Return the formula of a `LinearFunction`, `Forest` or `GradeForests`, plus a constant."""
        variables = [self.variable(name) for name in function.names]
        check_distinct(function.names, map(self.key, variables))
        return (self.linear if isinstance(function, LinearFunction) else self.trees)(function, variables, shift)

    def key(self, variable):
        """Return what two variables share if they are the same to the engine."""
        return variable

    def linear(self, function, variables, shift):
        terms = [(shift, "")] if shift else []
        for variable, weight, centre in zip(variables, function.raw_weights.tolist(), function.centres.tolist(), strict=True):
            if weight:
                terms.append((weight, f" * ({variable} {self.signed(-centre)})" if centre else f" * {variable}"))
        if not terms:
            return self.number(0.0)
        (first, text), *others = terms
        return self.number(first) + text + "".join(f" {self.signed(number)}{text}" for number, text in others)

    def trees(self, function, variables, shift):
        if isinstance(function, Forest):
            formula = self.forest(function, variables)
        else:
            formula = self.expected_grade([self.forest(forest, variables) for forest in function.forests], function)
        return f"{self.number(shift)} + {formula}" if shift else formula

    def forest(self, forest, variables):
        trees = [self.tree(tree, variables) for tree in forest.trees]
        constant = [self.number(forest.constant)] if forest.constant or not trees else []
        return " + ".join(constant + trees)

    def tree(self, tree, variables):
        thresholds, values = tree.thresholds.tolist(), tree.values.tolist()
        return tree.render(
            lambda node: self.number(values[node]),
            lambda node, yes, no: self.choice(variables[tree.features[node]], self.number(thresholds[node]), yes, no),
        )

    def expected_grade(self, outputs, function):
        grades = function.grades.tolist()
        if function.softmax:
            powers = [f"{self.exp}({output})" for output in outputs]
            weighted = " + ".join(f"{self.number(grade)} * {power}" for grade, power in zip(grades, powers, strict=True))
            return f"({weighted}) / ({' + '.join(powers)})"
        one = self.number(1.0)
        steps = [high - low for low, high in itertools.pairwise(grades)]
        shares = [
            f"{self.number(step)} / ({one} + {self.exp}(-({output})))" for step, output in zip(steps, outputs, strict=True)
        ]
        return " + ".join([self.number(grades[0]), *shares])


class _Vespa(_Language):
    def variable(self, name):
        if _IDENTIFIER.fullmatch(name):
            return f"attribute({name})"
        if _RANK_FEATURE.fullmatch(name) and not _VESPA_FUNCTION.fullmatch(name.partition("(")[0]):
            return name
        raise ValueError(
            f"feature {name!r} cannot be a field or a rank feature of Vespa; pass feature_names= with names such as 'age', "
            "'bm25(title)' or 'query(age)'."
        )

    def key(self, variable):
        return "".join(variable.split())

    def choice(self, variable, threshold, yes, no):
        return f"if ({variable} <= {threshold}, {yes}, {no})"


class _SQL(_Language):
    exp = "EXP"

    def __init__(self, table=""):
        self.table = table

    def number(self, value):
        # With an exponent, a literal is a DOUBLE in standard SQL; without one, it is a DECIMAL.
        text = repr(value).upper()
        return text if "E" in text else f"{text}E0"

    def variable(self, name):
        return self.table + _quoted(name)

    def key(self, variable):
        return variable.lower()

    def trees(self, function, variables, shift):
        # A comparison with NULL is not true, so that a document without a value would go to the right.
        known = " AND ".join(f"{variables[column]} IS NOT NULL" for column in function.used)
        formula = super().trees(function, variables, shift)
        return f"CASE WHEN {known} THEN {formula} END" if known else formula

    def choice(self, variable, threshold, yes, no):
        return f"CASE WHEN {variable} <= {threshold} THEN {yes} ELSE {no} END"


class _Painless(_Language):
    """Painless: each tree is a function, as the code of a method of the Java virtual machine has at most 64 KiB."""

    exp = "Math.exp"

    def __init__(self):
        self.functions, self.loads = [], {}

    def variable(self, name):
        return f"doc[{_in_quotes(name)}].value"

    def trees(self, function, variables, shift):
        formula = super().trees(function, variables, shift)
        return "\n".join([*self.functions, *self.loads.values(), f"return {formula};"])

    def tree(self, tree, variables):
        columns = sorted(set(tree.features[~tree.is_leaf].tolist()))
        for column in columns:
            self.loads[column] = f"double x{column + 1} = {variables[column]};"
        name = f"tree{len(self.functions) + 1}"
        parameters = ", ".join(f"double x{column + 1}" for column in columns)
        formula = super().tree(tree, [f"x{column + 1}" for column in range(len(variables))])
        self.functions.append(f"double {name}({parameters}) {{ return {formula}; }}")
        return f"{name}({parameters.replace('double ', '')})"


def _in_quotes(name):
    """Quote a text as JavaScript and Painless do."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(name):
    """Quote an identifier of SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LUCENE_VARIABLE = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*")
_WORD = "[A-Za-z0-9_.]+"
_RANK_FEATURE = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*(\( *({_WORD}( *, *{_WORD})*)? *\))?(\.[A-Za-z_][A-Za-z0-9_.]*)?")
# What Vespa reads as a function of its expressions, not as a rank feature.
_VESPA_FUNCTION = re.compile(
    "abs|acos|asin|atan2?|avg|bit|ceil|cosh?|count|elu|erf|exp|fabs|floor|fmod|hamming|if|isNan|ldexp|log(10)?|max|median|min|pow|"
    "prod|relu|round|sigmoid|sign|sinh?|sqrt|square|sum|tanh?"
)
_DIALECTS = {"lucene": _Language, "vespa": _Vespa, "sql": _SQL, "painless": _Painless}
