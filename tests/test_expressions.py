"""Formulas of models: small interpreters and databases compute the scores of `predict` from the exported text alone."""

import contextlib
import math
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankSVM, StructRankWarning, datasets
from structrank.learners import LambdaMART, McRank
from structrank.learners.trees import XGBoostRanker
from structrank.models import exports

NAMES = ["bm25", 'it\'s a "title"', "längd", "back\\slash", "doc.age", "order"]
PLAIN = ["a", "b", "c", "d", "e", "f"]
MODELS = {
    "linear": StructRankSVM("map", C=10.0),
    "linear, columns scaled in training": StructRankSVM("map", scale="std"),
    "linear, standard": make_pipeline(StandardScaler(), StructRankSVM("map")),
    "linear, min-max": make_pipeline(MinMaxScaler(feature_range=(-1, 3)), StructRankSVM("map")),
    "LambdaMART": LambdaMART(n_estimators=10, num_leaves=7),
    "LambdaMART, standard": make_pipeline(StandardScaler(), LambdaMART(n_estimators=10, num_leaves=7)),
    "XGBoost": XGBoostRanker(n_estimators=5, max_depth=3),
    "McRank": McRank(n_estimators=3, num_leaves=5),
    "McRank, ordinal": McRank("ordinal", n_estimators=3, num_leaves=5),
}


@pytest.fixture(scope="module")
def parts():
    fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=6, n_grades=3, noise=0.5, random_state=0)

    def stretch(part):
        X = part.X * [1.0, 10.0, 1e-2, 5.0, 0.5, 1.0] + [0.0, -30.0, 0.03, 7.0, -2.5, 0.1]
        return pd.DataFrame(X, columns=NAMES), part.y, part.qid

    return stretch(fold.train), stretch(fold.test)


@pytest.fixture(scope="module")
def fitted(parts):
    (X, y, qid), _ = parts
    models = {}
    for name, model in MODELS.items():
        if "XGBoost" in name:
            pytest.importorskip("xgboost", reason="XGBoost (extra 'trees') is not installed")
        routed = {f"{model.steps[-1][0]}__qid" if hasattr(model, "steps") else "qid": qid}
        models[name] = model.fit(X, y, **routed)
    return models


# --- databases --------------------------------------------------------------------------------------------------------


def check_ranking(frame, scores, qid):
    """Assert that the rows of a query, in the order of their ids, have the scores and the ranks of the model."""
    frame = frame.sort_values("id")
    assert frame["score"].to_numpy() == pytest.approx(scores, rel=1e-6 if scores.dtype == np.float32 else 1e-12)
    expected = pd.Series(frame["score"].to_numpy()).groupby(qid).rank(method="min", ascending=False)
    assert frame["rank"].tolist() == expected.tolist()
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        order = np.argsort(-frame["score"].to_numpy()[rows], kind="stable")
        assert (np.diff(scores[rows][order]) <= 1e-6).all()


def table_of(X, qid):
    return X.assign(qid=qid, id=np.arange(len(X)))


@pytest.mark.parametrize("name", MODELS)
def test_sqlite_computes_scores_and_ranks(name, parts, fitted):
    _, (X, _, qid) = parts
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        table_of(X, qid).to_sql('the "documents"', database, index=False)
        if "McRank" in name:
            database.create_function("EXP", 1, math.exp)
        frame = pd.read_sql(exports.to_sql(fitted[name], 'the "documents"', shift=3.5), database)
    scores = fitted[name].predict(X) + 3.5
    check_ranking(frame, scores.astype(np.float32) if name == "XGBoost" else scores, qid)


@pytest.mark.parametrize("name", MODELS)
def test_duckdb_computes_scores_and_ranks(name, parts, fitted):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    _, (X, _, qid) = parts
    with contextlib.closing(duckdb.connect()) as database:
        database.register("documents", table_of(X, qid))
        frame = database.execute(exports.to_sql(fitted[name], "documents")).df()
    scores = fitted[name].predict(X)
    check_ranking(frame, scores.astype(np.float32) if name == "XGBoost" else scores, qid)


def in_database(kind, table, statement):
    """Run a statement on a table called documents; return the names of its columns and its rows."""
    connect = sqlite3.connect if kind == "sqlite" else pytest.importorskip("duckdb", reason="DuckDB is not installed").connect
    with contextlib.closing(connect(":memory:")) as database:
        columns = ", ".join('"' + name.replace('"', '""') + '" DOUBLE PRECISION' for name in table)
        database.execute(f"CREATE TABLE documents ({columns})")
        database.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * table.shape[1])})", table.values.tolist())
        cursor = database.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()


DATABASES = pytest.mark.parametrize("kind", ["sqlite", "duckdb"])


@DATABASES
@pytest.mark.parametrize("place", [0, 1, 2])
def test_sql_ranks_whatever_columns_are_called(kind, place):
    names = ["Score", "RANK", "structrank_score", "d", "documents", "order", "a\nb", "\x1b[2J", "'; --", "{x}", "%s ?1 :y"]
    X = np.random.default_rng(0).permutation(12 * len(names)).reshape(12, len(names)) / 7.0
    table = pd.DataFrame(X, columns=names).assign(qid=np.repeat([1, 2], 6))
    features = names[place::3]  # the others are columns that are no features
    model, scores = with_weights(np.arange(1.0, len(features) + 1)), table[features] @ np.arange(1.0, len(features) + 1)
    columns, rows = in_database(kind, table, exports.to_sql(model, "documents", feature_names=features))
    rows.sort(key=lambda row: X[:, 0].tolist().index(row[0]))
    expected = ["structrank_score" if "Score" in features else "score", "structrank_rank" if "RANK" in features else "rank"]
    assert columns[-2:] == expected
    assert [row[-2] for row in rows] == pytest.approx(scores.tolist())
    assert [row[-1] for row in rows] == scores.groupby(table["qid"]).rank(ascending=False).tolist()


@DATABASES
def test_sql_raises_on_a_column_that_is_not_in_the_table(kind):
    table = pd.DataFrame({"qid": [1.0], "bm25": [2.0]})
    for names in ({"feature_names": ["bm52"]}, {"feature_names": ["bm25"], "query": "gid"}):
        with pytest.raises(Exception, match=r"bm52|gid"):
            in_database(kind, table, exports.to_sql(with_weights([1.0]), "documents", **names))


@DATABASES
@pytest.mark.parametrize("name", ["linear", "LambdaMART"])
def test_sql_ranks_documents_with_missing_values_last(kind, name, parts, fitted):
    _, (X, _, qid) = parts
    table = X.assign(qid=qid).astype(object)
    table.iloc[::3, 0] = None
    _, rows = in_database(kind, table, exports.to_sql(fitted[name], "documents"))
    assert all((row[-2] is None) == (row[0] is None) for row in rows)
    for query in np.unique(qid):
        ranks = {row[-1]: row[-2] for row in rows if row[-3] == query}
        assert [ranks[rank] is None for rank in sorted(ranks)] == [False] * (len(ranks) - 1) + [True]


# --- expressions ------------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d[\d.]*(?:e[-+]?\d+)?)
    |(?P<variable>doc\['(?:[^'\\]|\\.)*'\](?:\.value)?|attribute\(\w+\)|(?!if\b|(?:Math\.)?exp\b)[A-Za-z_][\w.]*)
    |(?P<sign>if|(?:Math\.)?exp|<=|[-+*/()?:,]))""",
    re.VERBOSE,
)


class Calculator:
    """Evaluates a formula of numbers, variables, + - * /, exp, `a <= b ? c : d` and `if (a <= b, c, d)`."""

    def __init__(self, text, document):
        self.document = document
        self.tokens = [(found.lastgroup, found[found.lastgroup]) for found in TOKEN.finditer(text)]
        assert "".join("".join(token for _, token in self.tokens).split()) == "".join(text.split())
        self.tokens = [*reversed(self.tokens)]
        self.tokens.insert(0, ("sign", "end"))
        self.result = self.choice()
        assert len(self.tokens) == 1

    def take(self, *expected):
        if self.tokens[-1][1] in expected:
            return self.tokens.pop()[1]
        return None

    def need(self, expected):
        assert self.take(expected), self.tokens[-1]

    def choice(self):
        value = self.comparison()
        if not self.take("?"):
            return value
        yes = self.choice()
        self.need(":")
        no = self.choice()
        return yes if value else no

    def comparison(self):
        left = self.sum()
        return left <= self.sum() if self.take("<=") else left

    def sum(self):
        value = self.product()
        while sign := self.take("+", "-"):
            value += self.product() if sign == "+" else -self.product()
        return value

    def product(self):
        value = self.unary()
        while sign := self.take("*", "/"):
            value = value * self.unary() if sign == "*" else value / self.unary()
        return value

    def unary(self):
        if self.take("-"):
            return -self.unary()
        if self.take("exp", "Math.exp"):
            return math.exp(self.unary())
        if self.take("if"):
            self.need("(")
            value = self.comparison()
            self.need(",")
            yes = self.choice()
            self.need(",")
            no = self.choice()
            self.need(")")
            return yes if value else no
        if self.take("("):
            value = self.choice()
            self.need(")")
            return value
        kind, text = self.tokens.pop()
        return float(text) if kind == "number" else self.document[text]


def in_lucene(name):
    return name if re.fullmatch(r"[A-Za-z_.]\w*(\.\w+)*", name, re.ASCII) else f"doc[{quoted(name)}]"


def quoted(name):
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shift", [0.0, -2.5])
@pytest.mark.parametrize("dialect", ["lucene", "vespa"])
def test_expressions_compute_the_scores(dialect, name, shift, parts, fitted):
    _, (X, _, _) = parts
    X = X[:20]
    names = None if dialect == "lucene" else PLAIN
    text = exports.to_expression(fitted[name], dialect, shift=shift, feature_names=names)
    variables = [in_lucene(name) for name in NAMES] if dialect == "lucene" else [f"attribute({name})" for name in PLAIN]
    found = [Calculator(text, dict(zip(variables, row, strict=True))).result for row in X.to_numpy().tolist()]
    assert found == pytest.approx(fitted[name].predict(X) + shift, rel=1e-6 if name == "XGBoost" else 1e-12, abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_painless_scripts_compute_the_scores(name, parts, fitted):
    _, (X, _, _) = parts
    X = X[:20]
    text = exports.to_expression(fitted[name], "painless", shift=1.5)
    expected = fitted[name].predict(X) + 1.5
    tolerance = 1e-6 if name == "XGBoost" else 1e-12
    fields = [f"doc[{quoted(name)}].value" for name in NAMES]
    for row, score in zip(X.to_numpy().tolist(), expected, strict=True):
        document = dict(zip(fields, row, strict=True))
        if name.startswith("linear"):
            assert Calculator(text, document).result == pytest.approx(score, rel=tolerance)
            continue
        *lines, last = text.splitlines()
        values = {found[1]: document[found[2]] for line in lines if (found := re.fullmatch(r"double (x\d) = (.*);", line))}
        last = re.fullmatch(r"return (.*);", last)[1]
        for line in lines:
            if found := re.fullmatch(r"double (tree\d+)\(([^)]*)\) { return (.*); }", line):
                used = found[2].replace("double ", "")
                assert f"{found[1]}({used})" in last
                value = Calculator(found[3], {variable: values[variable] for variable in used.split(", ")}).result
                last = last.replace(f"{found[1]}({used})", f"({value!r})")
        assert Calculator(last, {}).result == pytest.approx(score, rel=tolerance, abs=1e-6)


# --- numbers and names ------------------------------------------------------------------------------------------------


def with_weights(weights):
    model = StructRankSVM()
    model.coef_, model.n_features_in_ = np.asarray(weights), len(weights)
    return model


@pytest.mark.parametrize("dialect", ["lucene", "vespa", "sql", "painless"])
def test_numbers_read_back_exactly(dialect, rng):
    weights = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200)
    terms = re.split(r" (?=[-+] )", exports.to_expression(with_weights(weights), dialect))
    read = [float(term.split(" * ")[0].replace(" ", "")) for term in terms]
    assert read == weights.tolist()
    if dialect == "sql":  # with an exponent, a number is of type DOUBLE
        assert all("E" in term.split(" * ")[0] for term in terms)


def test_features_of_weight_zero_are_left_out():
    assert exports.to_expression(with_weights([0.0, 2.0]), "lucene") == "2.0 * f2"
    assert exports.to_expression(with_weights([0.0, 0.0]), "lucene") == "0.0"
    assert exports.to_expression(with_weights([0.0, 0.0]), "sql", shift=1.0) == "1.0E0"


def test_names_that_vespa_cannot_hold_are_rejected():
    model = with_weights([1.0, 2.0])
    names = ["bm25(title)", "fieldMatch(title).completeness"]
    assert exports.to_expression(model, "vespa", feature_names=names) == f"1.0 * {names[0]} + 2.0 * {names[1]}"
    with pytest.raises(ValueError, match="feature 'title match' cannot be a field or a rank feature of Vespa"):
        exports.to_expression(model, "vespa", feature_names=["a", "title match"])
    with pytest.raises(ValueError, match="name='my profile' is not valid: expected an identifier"):
        exports.to_vespa(model, "my profile")
    with pytest.raises(ValueError, match="name='default' is not valid"):
        exports.to_vespa(with_weights([1.0]), "default")  # would inherit itself


@pytest.mark.parametrize(
    "name", ["log(price)", "if(a, b, c)", "bm25(a b)", "bm25(a,,b)", "bm25(a\n)", "", "a\n", "é", "x}y", "rank-1"]
)
def test_names_that_vespa_reads_otherwise_are_rejected(name):
    with pytest.raises(ValueError, match=r"cannot be a field or a rank feature of Vespa|is not valid"):
        exports.to_expression(with_weights([1.0]), "vespa", feature_names=[name])


@pytest.mark.parametrize(
    ("dialect", "names"),
    [("sql", ["Age", "aGe"]), ("vespa", ["age", "attribute(age)"]), ("vespa", ["f(a,b)", "f( a, b)"]), ("lucene", ["a", "a"])],
)
def test_names_that_an_engine_takes_for_one_are_rejected(dialect, names):
    with pytest.raises(ValueError, match=r"feature_names has .*; engines identify features by name"):
        exports.to_expression(with_weights([1.0, 1.0]), dialect, feature_names=names)


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="dialect='mysql' is not known"):
        exports.to_expression(with_weights([1.0]), "mysql")
    with pytest.raises(ValueError, match="shift=nan is not valid"):
        exports.to_expression(with_weights([1.0]), "sql", shift=math.nan)
    with pytest.raises(ValueError, match="table='' is not valid"):
        exports.to_sql(with_weights([1.0]), "")


def test_methods_equal_the_functions(fitted):
    model = fitted["linear, standard"]
    assert model[-1].to_expression("sql", scaler=model[0]) == exports.to_expression(model, "sql")
    assert fitted["LambdaMART"].to_expression("lucene") == exports.to_expression(fitted["LambdaMART"], "lucene")


def test_formulas_that_engines_reject_for_their_size_warn(rng):
    X, qid = rng.normal(size=(3000, 3)), np.repeat(np.arange(100), 30)
    model = LambdaMART(n_estimators=75, num_leaves=31, min_child_samples=1).fit(X, rng.integers(0, 2, 3000), qid=qid)
    with pytest.warns(StructRankWarning, match="has 2250 splits; Java limits"):
        model.to_expression("lucene")
    with pytest.warns(StructRankWarning, match="bytes; engines accept 65535"):
        model.to_expression("painless")
