"""Run docs/engines.md: its Python code, and its requests to Solr and OpenSearch as printed."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import runpy
import shutil
import subprocess

import engines
import numpy as np

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "engines.md"


def check(suite):
    """Raise unless the last answer of each block of requests lists the documents of the query as `predict` ranks them."""
    if shutil.which("curl") is None:
        raise engines.Skipped("curl is not installed")
    text = PAGE.read_text(encoding="utf-8")
    folder = suite.folder / "page"
    folder.mkdir()
    python, shell = (re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) for kind in ("python", "sh"))
    solr, search = shell
    (folder / "page.py").write_text("\n".join(python), encoding="utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(None):
        names = runpy.run_path("page.py")
    new = names["X_new"][names["qid_new"] == 80]
    expected = new.index[np.argsort(-names["linear"].predict(new), kind="stable")].astype(str).tolist()
    home = suite.folder / "page-solr"
    shutil.copytree(pathlib.Path(__file__).parent / "solr-home", home)
    with engines.server("solr", home) as address:
        answer = _last_answer(solr.replace("http://localhost:8983", address), folder)
    _compare("Solr", [document["id"] for document in answer["response"]["docs"]], expected)
    with engines.server("opensearch", suite.folder / "page-opensearch") as address:
        answer = _last_answer(search.replace("http://localhost:9200", address), folder)
    _compare("OpenSearch", [document["_id"] for document in answer["hits"]["hits"]], expected)


def _last_answer(commands, folder):
    """Run commands of the shell and return the JSON that they print last."""
    done = subprocess.run(["bash", "-e", "-c", commands], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    printed, decoder, answer = done.stdout.strip(), json.JSONDecoder(), None
    while printed:
        answer, end = decoder.raw_decode(printed)
        printed = printed[end:].strip()
    return answer


def _compare(engine, found, expected):
    if found != expected:
        raise AssertionError(f"docs/engines.md, {engine}: documents in the order {found}, expected {expected}")
