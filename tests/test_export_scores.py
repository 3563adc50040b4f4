"""Every export, evaluated by other programs or small interpreters of its format, gives the scores of `predict`."""

import contextlib
import functools
import json
import math
import pathlib
import re
import runpy
import sqlite3
import xml.etree.ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankSVM, StructRankWarning, datasets
from structrank.learners import LambdaMART, McRank, RankNet, StructRankTrees
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models import exports, imports
from structrank.models.exports.linear import last_step, linear_function
from structrank.models.exports.trees import forest_of, has_trees

# Columns of results, quotes, a line end, a terminal escape, letters outside ASCII, words and placeholders of languages.
NAMES = ["score", 'it\'s "a" title', "back\\slash\n\x1b[2J", "längd {x} %s :y", "doc.age", "order"]
PLAIN = ["a", "b", "c", "d", "e", "f"]
SCALES, OFFSETS = [1.0, 10.0, 1e-2, 1.0, 0.5, 0.0], [0.0, -30.0, 0.03, 0.0, -2.5, 7.0]
TREES = {"n_estimators": 8, "num_leaves": 7}
MODELS = {
    "linear": StructRankSVM("map", C=10.0, scale="std"),
    "linear, standard": make_pipeline(StandardScaler(), StructRankSVM("map")),
    "linear, no mean": make_pipeline(StandardScaler(with_mean=False), StructRankSVM("map")),
    "linear, no deviation": make_pipeline(StandardScaler(with_std=False), StructRankSVM("map", scale="std")),
    "linear, min-max": make_pipeline(MinMaxScaler(feature_range=(-1, 3)), StructRankSVM("map")),
    "RankNet": make_pipeline(StandardScaler(), RankNet(hidden_units=0, max_epochs=2)),
    "LambdaMART": LambdaMART(**TREES),
    "LambdaMART, standard": make_pipeline(StandardScaler(), LambdaMART(**TREES)),
    "LambdaMART, min-max": make_pipeline(MinMaxScaler(feature_range=(-1, 3)), LambdaMART(**TREES)),
    "StructRankTrees": StructRankTrees("auc", relevant_from=None, **TREES),
    "random forest": LightGBMRanker(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, **TREES),
    "XGBoost": XGBoostRanker(n_estimators=5, max_depth=3),
    "XGBoost, standard": make_pipeline(StandardScaler(), XGBoostRanker(n_estimators=5, max_depth=3)),
    "McRank": McRank(n_estimators=3, num_leaves=5),
    "McRank, ordinal": McRank("ordinal", n_estimators=3, num_leaves=5),
    "McRank, two grades": McRank(n_estimators=3, num_leaves=5, relevant_from=1),
    "McRank, ordinal, two grades": McRank("ordinal", n_estimators=3, num_leaves=5, relevant_from=1),
}

LINEAR = [name for name in MODELS if name.startswith(("linear", "RankNet"))]
GRADED = ["McRank", "McRank, ordinal"]  # whose scores are no sums of trees


def with_weights(weights):
    model = StructRankSVM()
    model.coef_, model.n_features_in_ = np.asarray(weights), len(weights)
    return model


@pytest.fixture(scope="module")
def parts():
    """Training data and held-out documents: features of different scales, one of few values, one constant."""
    fold = datasets.make_ranking(n_queries=60, n_docs=20, n_features=6, n_grades=3, noise=0.5, random_state=0)

    def stretch(part):
        X = part.X * SCALES + OFFSETS
        X[:, 3] = np.clip(np.round(X[:, 3]), -1, 1)
        return pd.DataFrame(X, columns=NAMES), part.y, part.qid

    return stretch(fold.train), stretch(fold.test)


@pytest.fixture(scope="module")
def fitted(parts):
    """Return a function that trains the model of a name once."""
    (X, y, qid), _ = parts

    @functools.cache
    def fit(name):
        model = MODELS[name]
        if name not in LINEAR:
            for library in ("lightgbm", "xgboost"):
                pytest.importorskip(library, reason=f"{library} (extra 'trees') is not installed")
        return model.fit(X, y, **{f"{model.steps[-1][0]}__qid" if hasattr(model, "steps") else "qid": qid})

    return fit


# --- the other programs -----------------------------------------------------------------------------------------------
# Each takes a model, documents, a shift and a folder, and returns the scores.


def in_database(kind, table, statement):
    """Run a statement on a table called documents; return the names of its columns and its rows."""
    connect = sqlite3.connect if kind == "sqlite" else pytest.importorskip("duckdb", reason="DuckDB is not installed").connect
    with contextlib.closing(connect(":memory:")) as database:
        if kind == "sqlite":
            database.create_function("EXP", 1, math.exp)
        columns = ", ".join('"' + name.replace('"', '""') + '" DOUBLE PRECISION' for name in table)
        database.execute(f"CREATE TABLE documents ({columns})")
        database.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * table.shape[1])})", table.values.tolist())
        cursor = database.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()


def by_database(kind):
    def score(model, X, shift, folder):
        _, rows = in_database(kind, X.assign(qid=1.0, id=np.arange(len(X))), exports.to_sql(model, "documents", shift=shift))
        rows.sort(key=lambda row: row[-3])
        scores, ranks = (np.array([row[place] for row in rows]) for place in (-2, -1))
        assert ranks.tolist() == pd.Series(scores).rank(method="min", ascending=False).tolist()
        return scores

    return score


TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d[\d.]*(?:e[-+]?\d+)?)
    |(?P<variable>doc\['(?:[^'\\]|\\.)*'\](?:\.value)?|attribute\(\w+\)|(?!if\b|(?:Math\.)?exp\b)[A-Za-z_][\w.]*)
    |(?P<sign>if|(?:Math\.)?exp|<=|[-+*/()?:,]))""",
    re.VERBOSE,
)


class Calculator:
    """Evaluates a formula of numbers, variables, + - * /, exp, `a <= b ? c : d` and `if (a <= b, c, d)` for all documents."""

    def __init__(self, text, variables):
        self.variables = variables
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
        return np.where(value, yes, self.choice())

    def comparison(self):
        left = self.sum()
        return left <= self.sum() if self.take("<=") else left

    def sum(self):
        value = self.product()
        while sign := self.take("+", "-"):
            value = value + self.product() if sign == "+" else value - self.product()
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
            return np.exp(self.unary())
        if self.take("if"):
            self.need("(")
            value = self.comparison()
            self.need(",")
            yes = self.choice()
            self.need(",")
            no = self.choice()
            self.need(")")
            return np.where(value, yes, no)
        if self.take("("):
            value = self.choice()
            self.need(")")
            return value
        kind, text = self.tokens.pop()
        return float(text) if kind == "number" else self.variables[text]


def quoted(name):
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_lucene(name):
    return name if re.fullmatch(r"[A-Za-z_.]\w*(\.\w+)*", name, re.ASCII) else f"doc[{quoted(name)}]"


def by_lucene(model, X, shift, folder):
    text = exports.to_expression(model, "lucene", shift=shift)
    return Calculator(text, dict(zip(map(in_lucene, NAMES), X.to_numpy().T, strict=True))).result


def by_vespa(model, X, shift, folder):
    text = exports.to_expression(model, "vespa", shift=shift, feature_names=PLAIN)
    return Calculator(text, dict(zip([f"attribute({name})" for name in PLAIN], X.to_numpy().T, strict=True))).result


def by_painless(model, X, shift, folder):
    text = exports.to_expression(model, "painless", shift=shift)
    fields = dict(zip([f"doc[{quoted(name)}].value" for name in NAMES], X.to_numpy().T, strict=True))
    if not has_trees(model):
        return Calculator(text, fields).result
    loads = re.findall(r"^double (x\d) = (doc\['(?:[^'\\]|\\.)*'\]\.value);$", text, re.MULTILINE)
    values = {variable: fields[field] for variable, field in loads}
    trees = {}
    for name, parameters, formula in re.findall(r"^double (tree\d+)\(([^)]*)\) { return (.*); }$", text, re.MULTILINE):
        used = parameters.replace("double ", "")
        trees[name] = Calculator(formula, {variable: values[variable] for variable in used.split(", ")}).result
        text = text.replace(f"{name}({used})", name)
    return Calculator(re.search(r"^return (.*);$", text, re.MULTILINE)[1], trees).result


def in_solr(model, document):
    """Score in 32 bits by the JSON of a model; LinearModel, or MultipleAdditiveTreesModel, which adds 1e-6 to thresholds."""
    score = np.float32(0.0)

    def leaves(node):
        if "value" in node:
            return np.float32(node["value"])
        goes_left = document[node["feature"]] <= np.float32(node["threshold"]) + np.float32(1e-6)
        return np.where(goes_left, leaves(node["left"]), leaves(node["right"]))

    for tree in model["params"].get("trees", ()):
        score = score + np.float32(tree["weight"]) * leaves(tree["root"])
    for name, weight in model["params"].get("weights", {}).items():
        (feature,) = (feature for feature in model["features"] if feature["name"] == name)
        norm = feature.get("norm", {"class": "StandardNormalizer", "params": {"avg": "0", "std": "1"}})
        first, second = map(np.float32, norm["params"].values())
        spread = second if norm["class"].endswith("StandardNormalizer") else second - first
        score = score + np.float32(weight) * ((document[name] - first) / spread)
    return score


def by_solr(model, X, shift, folder):
    model = json.loads(json.dumps(exports.to_solr(model, "m", "s", shift=shift), allow_nan=False))
    return in_solr(model, {name: X[name].to_numpy().astype(np.float32) for name in X})


def in_plugin(model, document):
    """Score in 32 bits by the JSON of "model/linear" or "model/xgboost+json", which compares x < split_condition."""
    content = model["model"]["model"]
    definition, score = json.loads(content["definition"]), np.float32(0.0)

    def leaves(node, depth=0):
        if "leaf" in node:
            return np.float32(node["leaf"])
        assert node["depth"] == depth
        assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
        assert node["missing"] in (node["yes"], node["no"])
        goes_left = document[node["split"]] < np.float32(node["split_condition"])
        return np.where(goes_left, *(leaves(child, depth + 1) for child in node["children"]))

    if content["type"] == "model/xgboost+json":
        return sum(map(leaves, definition), start=score)
    for name, weight in definition.items():
        norm = content.get("feature_normalizers", {}).get(name, {"standard": {"mean": 0.0, "standard_deviation": 1.0}})[
            "standard"
        ]
        value = (document[name] - np.float32(norm["mean"])) / np.float32(norm["standard_deviation"])
        score = score + np.float32(weight) * value
    return score


def by_plugin(model, X, shift, folder):
    model = json.loads(json.dumps(exports.to_elasticsearch(model, "m", shift=shift), allow_nan=False))
    return in_plugin(model, {name: X[name].to_numpy().astype(np.float32) for name in X})


def weighted(tokens, X):
    """Return the scores by weights such as ``1:0.5``."""
    weights = {int(number): float(weight) for number, weight in (token.split(":") for token in tokens)}
    return sum(weight * X.iloc[:, number - 1].to_numpy() for number, weight in weights.items())


def by_ranklib(model, X, shift, folder):
    """Score by Coordinate Ascent, which has no constant, or by LambdaMART in 32 bits."""
    exports.to_ranklib(model, folder / "m.txt")
    first, rest = (folder / "m.txt").read_text().split("\n", 1)
    if first == "## Coordinate Ascent":
        read = imports.read_ranklib(folder / "m.txt")
        assert read.coef_ == pytest.approx(linear_function(model).raw_weights, rel=1e-15)
        return weighted(rest.split(), X) + linear_function(model).constant + shift
    assert first == "## LambdaMART"

    def leaves(split):
        if split.find("feature") is None:
            return np.float32(split.find("output").text)
        value = X.iloc[:, int(split.find("feature").text) - 1].to_numpy().astype(np.float32)
        sides = {child.get("pos"): leaves(child) for child in split.findall("split")}
        return np.where(value <= np.float32(split.find("threshold").text), sides["left"], sides["right"])

    trees = xml.etree.ElementTree.fromstring(rest.partition("\n\n")[2]).findall("tree")
    return sum(np.float32(tree.get("weight")) * leaves(tree.find("split")) for tree in trees) + np.float32(shift)


def by_svmrank(model, X, shift, folder):
    exports.to_svmrank(model, folder / "m.dat")
    lines = (folder / "m.dat").read_text().splitlines()
    factor, *tokens, end = lines[11].split()
    assert (end, len(lines)) == ("#", 12)
    read = imports.read_svmrank(folder / "m.dat")
    scores, threshold = float(factor) * weighted(tokens, X), float(lines[10].split("#")[0])
    assert read.predict(X.to_numpy()) == pytest.approx(scores, rel=1e-9, abs=1e-9 * np.abs(scores).max())
    return scores - threshold + shift


def by_onnx(dtype):
    def score(model, X, shift, folder):
        pytest.importorskip("onnx", reason="onnx (extra 'onnx') is not installed")
        onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime (extra 'onnx') is not installed")
        exports.to_onnx(model, folder / "m.onnx", dtype=dtype)
        session = onnxruntime.InferenceSession(str(folder / "m.onnx"))
        (found,) = session.run(["score"], {"X": X.to_numpy().astype(dtype)})
        known = session.get_modelmeta().custom_metadata_map
        assert json.loads(known["feature_names"]) == NAMES
        assert known["model"] == type(last_step(model)).__name__
        assert found.shape == (len(X), 1)
        assert [path.name for path in folder.iterdir()] == ["m.onnx"]
        return found[:, 0].astype(np.float64) + shift

    return score


def by_sklearn(model, X, shift, folder):
    plain = exports.to_sklearn(model)
    assert type(last_step(plain)).__module__.startswith("sklearn.")
    assert plain.feature_names_in_.tolist() == NAMES
    return plain.predict(X) + shift


# The function, the bits of its numbers, and the models that it can compute.
PROGRAMS = {
    "SQLite": (by_database("sqlite"), 64, MODELS),
    "DuckDB": (by_database("duckdb"), 64, MODELS),
    "Lucene": (by_lucene, 64, MODELS),
    "Vespa": (by_vespa, 64, MODELS),
    "Painless": (by_painless, 64, MODELS),
    "Solr": (by_solr, 32, [name for name in MODELS if name not in GRADED]),
    "plugin": (by_plugin, 32, [name for name in MODELS if name not in GRADED]),
    "RankLib": (by_ranklib, 32, [name for name in MODELS if name not in GRADED]),
    "SVM^rank": (by_svmrank, 64, LINEAR),
    "ONNX, 64 bits": (by_onnx("float64"), 64, MODELS),
    "ONNX, 32 bits": (by_onnx("float32"), 32, MODELS),
    "scikit-learn": (by_sklearn, 64, LINEAR),
}
CASES = [(program, name) for program, (_, _, names) in PROGRAMS.items() for name in names]


def hostile(model, program, bits, X, rng):
    """Return held-out documents, some twice, and documents of extreme values and of values around the thresholds of trees."""
    tiny, large = (1e-300, 1e200) if bits == 64 else (1e-30, 1e20)
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.1, tiny, -tiny, large, -large, np.finfo(f"f{bits // 8}").smallest_subnormal])
    columns = np.tile(special, (X.shape[1], 1))
    if has_trees(model) and program != "SQLite":  # which may read a number of a statement as the next one
        function = forest_of(model)
        trees = [tree for forest in getattr(function, "forests", [function]) for tree in forest.trees]
        columns = []
        for feature in range(X.shape[1]):
            found = np.concatenate([tree.thresholds[tree.features == feature] for tree in trees])
            if program == "Solr":  # whose slack moves thresholds near 0 by 1e-13
                found, special = (values[(np.abs(values) > 1e-6) | (values == 0.0)] for values in (found, special))
            if bits == 32:
                found = found[np.abs(found) < 1e30]
            columns.append(np.concatenate([special, found, np.nextafter(found, np.inf), np.nextafter(found, -np.inf)]))
    if "XGBoost" in str(model):  # computes in 32 bits
        columns = [np.clip(column, -1e30, 1e30) for column in columns]
    rows = np.concatenate([X[:40], X[:5], np.stack([rng.choice(column, 60) for column in columns], axis=1)])
    return pd.DataFrame(rows.astype(f"f{bits // 8}").astype(np.float64), columns=NAMES)


def in_engines(name, scores):
    """Return scores as engines compute them: the log-odds, for two grades, which rank alike."""
    return np.log(scores / (1.0 - scores)) if "two grades" in name else scores


@pytest.mark.parametrize(("program", "name"), CASES)
def test_the_export_alone_gives_the_scores_of_the_model(program, name, parts, fitted, tmp_path, rng):
    score, bits, _ = PROGRAMS[program]
    model, shift = fitted(name), 2.5
    X = hostile(model, program, bits, parts[1][0].to_numpy(), rng)
    expected = model.predict(X).astype(np.float64)
    if program in ("Solr", "plugin", "RankLib"):
        expected = in_engines(name, expected)
    sizes = 1.0 + np.abs(expected)
    if not has_trees(model):
        function = linear_function(model)
        sizes += np.abs(function.raw_weights * (np.abs(X.to_numpy()) + np.abs(function.centres))).sum(axis=1)
    in_single = bits == 32 or "XGBoost" in name or ("ONNX" in program and has_trees(model))
    errors = np.abs(score(model, X, shift, tmp_path) - (expected + shift))
    assert (errors <= (1e-5 if in_single else 1e-12) * sizes).all()


# --- databases --------------------------------------------------------------------------------------------------------


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
    _, rows = in_database(kind, table, exports.to_sql(fitted(name), "documents"))
    assert all((row[-2] is None) == (row[0] is None) for row in rows)
    for query in np.unique(qid):
        ranks = {row[-1]: row[-2] for row in rows if row[-3] == query}
        assert [ranks[rank] is None for rank in sorted(ranks)] == [False] * (len(ranks) - 1) + [True]


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear, standard", "LambdaMART", "McRank, two grades", "McRank, ordinal, two grades"])
@pytest.mark.parametrize(
    ("export", "score"),
    [
        (lambda model, **shift: exports.to_solr(model, "m", "s", **shift), in_solr),
        (lambda model, **shift: exports.to_elasticsearch(model, "m", **shift), in_plugin),
    ],
)
def test_negative_scores_warn_and_can_be_shifted(export, score, name, parts, fitted):
    _, (X, _, _) = parts
    model, documents = fitted(name), {column: X[column].to_numpy().astype(np.float32) for column in X}
    with pytest.warns(StructRankWarning, match=r"can be negative.*shift=.*positive_shift"):
        plain = export(model)
    assert plain == export(model, shift=0.0)  # without a warning, which pytest would raise as an error
    assert score(plain, documents).min() < 0.0
    spread = np.ptp(in_engines(name, model.predict(X)))
    shifted = score(export(model, shift=exports.positive_shift(model, X)), documents)
    assert (shifted.min(), np.ptp(shifted)) == (pytest.approx(spread, rel=1e-4), pytest.approx(spread, rel=1e-4))


def test_solr_keeps_0_on_its_side_of_tiny_thresholds(rng):
    pytest.importorskip("lightgbm", reason="lightgbm (extra 'trees') is not installed")
    X = rng.choice([-1.0, 0.0, 1.0], size=(600, 2))
    y = (X[:, 0] == 0.0).astype(int) + (X[:, 1] > 0.0)
    model = LambdaMART(n_estimators=5, num_leaves=8).fit(X, y, qid=np.repeat(np.arange(30), 20))
    assert any((np.abs(tree.thresholds[~tree.is_leaf]) < 1e-30).any() for tree in forest_of(model).trees)
    found = in_solr(model.to_solr("m", "s", shift=0.0), dict(zip(["f1", "f2"], X.astype(np.float32).T, strict=True)))
    assert found == pytest.approx(model.predict(X), abs=1e-5)


def test_the_page_on_engines_runs_from_top_to_bottom(tmp_path, monkeypatch):
    for library in ("lightgbm", "onnx"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    text = (pathlib.Path(__file__).parent.parent / "docs/engines.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    page = runpy.run_path("page.py")
    new, qid = page["X_new"], page["qid_new"]
    scores = pd.Series(page["linear"].predict(new))
    expected = scores.groupby(qid).rank(ascending=False).tolist()
    for file, score in (("linear.json", in_solr), ("plugin.json", in_plugin)):
        exported = json.loads((tmp_path / file).read_text())
        found = score(exported, {name: new[name].to_numpy().astype(np.float32) for name in new})
        assert found.min() > 0.0
        assert found - found.mean() == pytest.approx(scores - scores.mean(), abs=1e-5)
    assert page["moved_over"].rank(new.to_numpy(), qid=qid).tolist() == expected
    best = page["ranked"][page["ranked"]["rank"] == 1]
    assert best["score"].max() == pytest.approx(page["trees"].predict(new).max())
