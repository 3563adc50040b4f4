"""The engines: each function runs the models of a suite and yields the arguments of `report.compare`."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pandas as pd

from structrank.models import exports

JAVA = pathlib.Path(__file__).parent / "java"
POSTGRES = pathlib.Path("/usr/lib/postgresql")
PLAIN = [f"f{number}" for number in range(1, 7)]  # names that every engine accepts as a field


class Skipped(Exception):
    """An engine that is not installed here."""


def is_sum_of_trees(case):
    """Return whether a model can be exported as a sum of trees or a linear function."""
    return not case.name.startswith("McRank, three")


def _comparable(case, scores, shift):
    """Return scores that equal those of `predict`, where a sum of trees holds the log-odds of McRank with two grades."""
    if not case.name.startswith("McRank, two") or isinstance(scores, str):
        return scores
    return 1.0 / (1.0 + np.exp(shift - scores)) + case.shift


@functools.cache
def _compiled():
    subprocess.run(["mvn", "-q", "-B", "-f", str(JAVA), "compile"], check=True)


def _class_path(module):
    _compiled()
    return f"{JAVA / module / 'target/classes'}{os.pathsep}{JAVA / module / 'target/lib'}/*"


def _version(module, artifact):
    (jar,) = (JAVA / module / "target/lib").glob(f"{artifact}-[0-9]*.jar")
    return jar.stem.removeprefix(f"{artifact}-")


# ---- Libraries on the Java virtual machine


def _library(suffix, artifact, write, chosen=lambda case: True):
    """Return an engine whose models `write(case, path)` writes to files."""

    def run(suite):
        folder = suite.folder / suffix
        folder.mkdir()
        suite.documents.to_csv(suite.folder / "documents.tsv", sep="\t", index=False, quoting=3)
        cases = [case for case in suite.cases if chosen(case)]
        for number, case in enumerate(cases):
            write(case, folder / f"{number}.{suffix}")
        command = ["java", "-cp", _class_path("others"), "Scores", suite.folder / "documents.tsv", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for number, case in enumerate(cases):
            error = folder / f"{number}.{suffix}.error"
            scores = error.read_text() if error.exists() else np.loadtxt(folder / f"{number}.{suffix}.scores")
            if suffix == "ranklib":  # has no shift, and no constant in linear models
                scores = _comparable(case, scores, 0.0)
                constant = not case.name.startswith("McRank")
            else:
                constant = False
            yield _version("others", artifact), case, scores, constant

    return run


def _write_lucene(case, path):
    path.write_text(exports.to_expression(case.model, "lucene", shift=case.shift))


def _write_vespa(case, path):
    path.write_text(exports.to_expression(case.model, "vespa", feature_names=PLAIN, shift=case.shift))


# ---- Servers


@contextlib.contextmanager
def server(module, home):
    """Start a server; yield its address."""
    log = open(home.parent / f"{module}.log", "w")  # noqa: SIM115
    command = ["java", "-cp", _class_path(module), "Server", str(home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    with log, process:
        try:
            port = next((found[1] for line in process.stdout if (found := re.match(r"port (\d+)$", line))), None)
            if port is None:
                raise RuntimeError(f"{module} did not start: {pathlib.Path(log.name).read_text()[-2000:]}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stdin.close()


def request(method, address, content=None):
    """Send JSON, or lines of JSON, and return the answer."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    kind = "application/x-ndjson" if isinstance(content, str) else "application/json"
    message = urllib.request.Request(
        address, data=None if text is None else text.encode(), method=method, headers={"Content-Type": kind}
    )
    try:
        with urllib.request.urlopen(message, timeout=120) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {address}: {error.code} {error.read().decode()[:1000]}") from None


def _documents(suite):
    """Return documents with ids, queries, and features in fields with plain names."""
    frame = suite.documents.set_axis(PLAIN, axis=1)
    frame.insert(0, "qid", suite.qid)
    frame.insert(0, "id", np.arange(len(frame)))
    return frame.to_dict("records")


def solr(suite):
    """Solr with its learning-to-rank module: features, models, and re-ranking by HTTP requests."""
    home = suite.folder / "solr"
    shutil.copytree(pathlib.Path(__file__).parent / "solr-home", home)
    with server("solr", home) as address:
        core = f"{address}/solr/documents"
        request("POST", f"{core}/update?commit=true", _documents(suite))
        for number, case in enumerate(filter(is_sum_of_trees, suite.cases)):
            store, name = f"store{number}", f"model{number}"
            features = [
                {
                    "store": store,
                    "name": feature,
                    "class": "org.apache.solr.ltr.feature.FieldValueFeature",
                    "params": {"field": field},
                }
                for feature, field in zip(suite.documents.columns, PLAIN, strict=True)
            ]
            request("PUT", f"{core}/schema/feature-store", features)
            request("PUT", f"{core}/schema/model-store", exports.to_solr(case.model, name, store, shift=case.shift))
            scores = np.full(len(suite.documents), np.nan)
            for query in np.unique(suite.qid):
                asked = f"q=qid:{query}&rq=%7B!ltr%20model={name}%20reRankDocs=1000%7D&fl=id,score&rows=1000"
                for document in request("GET", f"{core}/select?{asked}")["response"]["docs"]:
                    scores[int(document["id"])] = document["score"]
            yield _version("solr", "solr-ltr"), case, _comparable(case, scores, case.shift), False


def opensearch(suite):
    """OpenSearch in one process: Painless scripts in script_score queries, by HTTP requests."""
    with server("opensearch", suite.folder / "opensearch") as address:
        names = list(suite.documents.columns)
        # A dot in the name of a field makes it an object, so that field gets another name.
        fields = [name.replace(".", "_") for name in names]
        mapping = {"qid": {"type": "keyword"}, **{field: {"type": "float"} for field in fields}}
        request("PUT", f"{address}/documents", {"mappings": {"properties": mapping}})
        lines = []
        for document in _documents(suite):
            content = dict(zip(fields, (document[name] for name in PLAIN), strict=True))
            lines += [json.dumps({"index": {"_id": str(document["id"])}}), json.dumps({"qid": document["qid"], **content})]
        answer = request("POST", f"{address}/documents/_bulk?refresh=true", "\n".join(lines) + "\n")
        assert not answer["errors"], answer
        version = request("GET", address)["version"]["number"]
        for case in suite.cases:
            script = exports.to_expression(case.model, "painless", feature_names=fields, shift=case.shift)
            scores = np.full(len(suite.documents), np.nan)
            try:
                for query in np.unique(suite.qid):
                    matched = {"term": {"qid": str(query)}}
                    asked = {"script_score": {"query": matched, "script": {"source": script}}}
                    answer = request("POST", f"{address}/documents/_search", {"size": 1000, "_source": False, "query": asked})
                    for hit in answer["hits"]["hits"]:
                        scores[int(hit["_id"])] = hit["_score"]
            except RuntimeError as error:
                scores = str(error)
            yield version, case, scores, False


# ---- ONNX Runtime, LightGBM, XGBoost


def _onnx(dtype):
    def run(suite):
        onnxruntime = _import("onnxruntime")
        for number, case in enumerate(suite.cases):
            path = suite.folder / f"{number}.{dtype}.onnx"
            exports.to_onnx(case.model, path, dtype=dtype)
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            (scores,) = session.run(["score"], {"X": suite.documents.to_numpy().astype(dtype)})
            yield onnxruntime.__version__, case, scores[:, 0].astype(np.float64) + case.shift, False

    return run


def _import(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped(f"the Python package {name} is not installed") from None


def _booster(name, class_name, write, read):
    def run(suite):
        library = _import(name)
        for number, case in enumerate(suite.cases):
            if type(case.model).__name__ in class_name:
                path = suite.folder / f"{number}.{name}.json"
                write(case.model, path)
                yield library.__version__, case, read(library, path, suite.documents.to_numpy()) + case.shift, False

    return run


# ---- Databases


def _ranked(case, frame):
    """Return scores in the order of the documents, after a check of the ranks that the database computed."""
    frame = frame.sort_values("id")
    scores, ranks = frame.iloc[:, -2], frame.iloc[:, -1]  # the table has a score of its own
    best = scores.groupby(frame["qid"]).rank(method="min", ascending=False)
    return scores.to_numpy() if (best == ranks).all() else "the ranks do not follow from the scores"


def _table(suite):
    frame = suite.documents.copy()
    frame.insert(0, "qid", suite.qid)
    frame.insert(0, "id", np.arange(len(frame)))
    return frame.assign(Score=0)


def sqlite(suite):
    """SQLite, as Python ships it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        _table(suite).to_sql("my documents", database, index=False)
        for case in suite.cases:
            try:
                frame = pd.read_sql(exports.to_sql(case.model, "my documents", shift=case.shift), database)
            except pd.errors.DatabaseError as error:
                yield sqlite3.sqlite_version, case, str(error)[-200:], False
            else:
                yield sqlite3.sqlite_version, case, _ranked(case, frame), False


def duckdb(suite):
    """DuckDB."""
    library = _import("duckdb")
    with contextlib.closing(library.connect()) as database:
        database.register("frame", _table(suite))
        database.execute('CREATE TABLE "my documents" AS SELECT * FROM frame')
        for case in suite.cases:
            frame = database.execute(exports.to_sql(case.model, "my documents", shift=case.shift)).df()
            yield library.__version__, case, _ranked(case, frame), False


def postgresql(suite):
    """PostgreSQL: a new cluster in the temporary folder, reached by a socket."""
    folders = sorted(POSTGRES.glob("*/bin/initdb"))
    if not folders:
        raise Skipped(f"no server in {POSTGRES}: apt-get install postgresql")
    programs = folders[-1].parent
    home = suite.folder / "postgresql"
    home.mkdir()
    # The server refuses to run as root.
    account = {"user": "postgres"} if os.geteuid() == 0 else {}
    if account:
        suite.folder.chmod(0o755)
        shutil.chown(home, "postgres")

    def run(program, *options, **settings):
        return subprocess.run(
            [programs / program, *options], check=True, stdout=subprocess.PIPE, text=True, cwd=home, **account, **settings
        ).stdout

    run("initdb", "-D", home / "data", "-A", "trust", "--encoding=UTF8", "--no-locale")
    run("pg_ctl", "-D", home / "data", "-w", "-l", home / "log", "-o", f"-k {home} -c listen_addresses=", "start")
    try:
        query = functools.partial(run, "psql", "-h", home, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "--csv", "-q")
        columns = ", ".join('"' + name.replace('"', '""') + '" DOUBLE PRECISION' for name in suite.documents.columns)
        text = _table(suite).to_csv(index=False)
        query("-c", f'CREATE TABLE "my documents" (id INTEGER, qid INTEGER, {columns}, "Score" INTEGER)')
        query("-c", r'\copy "my documents" FROM STDIN WITH (FORMAT csv, HEADER)', input=text)
        version = run("postgres", "--version").split()[2]
        for number, case in enumerate(suite.cases):
            path = suite.folder / f"{number}.sql"
            path.write_text(exports.to_sql(case.model, "my documents", shift=case.shift))
            answer = query("-f", path)
            frame = pd.read_csv(pd.io.common.StringIO(answer), float_precision="round_trip")
            yield version, case, _ranked(case, frame), False
    finally:
        run("pg_ctl", "-D", home / "data", "-m", "immediate", "stop")


ENGINES = {
    "Lucene expressions": _library("lucene", "lucene-expressions", _write_lucene),
    "Vespa ranking expressions": _library("vespa", "searchlib", _write_vespa),
    "RankLib": _library("ranklib", "RankyMcRankFace", lambda case, path: exports.to_ranklib(case.model, path), is_sum_of_trees),
    "Solr": solr,
    "OpenSearch, Painless": opensearch,
    "ONNX Runtime, float64": _onnx("float64"),
    "ONNX Runtime, float32": _onnx("float32"),
    "LightGBM": _booster(
        "lightgbm",
        ("LambdaMART", "LightGBMRanker", "StructRankTrees"),
        exports.to_lightgbm,
        lambda library, path, X: library.Booster(model_file=path).predict(X),
    ),
    "XGBoost": _booster(
        "xgboost",
        ("XGBoostRanker",),
        exports.to_xgboost,
        lambda library, path, X: library.Booster(model_file=path).predict(library.DMatrix(X)).astype(np.float64),
    ),
    "SQLite": sqlite,
    "DuckDB": duckdb,
    "PostgreSQL": postgresql,
}
