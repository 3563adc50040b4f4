"""``structrank warmup``: compile functions ahead of their first use."""

from __future__ import annotations

import os
import tempfile
import time
import warnings

from structrank.cli.options import add_command, naming_options
from structrank.cli.output import print_json


def add_warmup(commands):
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "warmup",
        run,
        "compile functions ahead of their first use",
        """
          structrank warmup
          structrank warmup map ndcg
        """,
        reads=False,
    )
    parser.add_argument(
        "criteria", nargs="*", metavar="CRITERION", help="criteria to train for; default all, binary and graded"
    )


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    import numpy as np

    from structrank import criteria
    from structrank._support import compile_time

    with naming_options(("criterion", "CRITERION")):
        for name in arguments.criteria:
            criteria.parse(name)
    started, seconds = time.perf_counter(), {}

    def compile_for(what, function, *arguments, **options):
        before = compile_time.seconds()
        function(*arguments, **options)
        seconds[what] = round(compile_time.seconds() - before, 1)
        report(f"{what}: {seconds[what]} s")

    rng = np.random.default_rng(0)
    X, labels, qid = rng.normal(size=(60, 3)), np.tile([0, 1, 2], 20), np.repeat(np.arange(6), 10)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random data teach nothing
        compile_for("LETOR files", _load_letor, os.path.join(folder, "few.txt"), X, labels, qid)
        if not arguments.criteria:
            compile_for("TSV files of clicks", _read_tsv, os.path.join(folder, "few.tsv"), qid)
        for name in arguments.criteria or criteria.CRITERIA:
            compile_for(name, _fit, X, labels, qid, name)
    total = time.perf_counter() - started
    if arguments.json:
        print_json({"seconds": total, "compiled": seconds})
    else:
        print(f"done in {total:.0f} s")


def _load_letor(path, X, labels, qid):
    from structrank.datasets import load_letor

    with open(path, "w") as file:
        for x, label, query in zip(X.tolist(), labels.tolist(), qid.tolist(), strict=True):
            values = " ".join(f"{number}:{value:.3f}" for number, value in enumerate(x, start=1))
            file.write(f"{label} qid:{query} {values} # doc\n")
    load_letor(path)


def _read_tsv(path, qid):
    from structrank.clicks import read_tsv

    with open(path, "w") as file:
        for number, query in enumerate(qid.tolist()):
            file.write(f"{query}\tdocument {number}\t1\n")
    read_tsv(path)


def _fit(X, labels, qid, name):
    """Train for a criterion with the labels that it supports, binary and graded; score the rows."""
    from structrank import StructRankSVM, criteria

    criterion = criteria.parse(name)
    if criterion.oracles:
        StructRankSVM(name).fit(X, labels, qid=qid).predict(X)
    if criterion.graded_oracles:
        StructRankSVM(name, relevant_from=None).fit(X, labels, qid=qid).predict(X)
