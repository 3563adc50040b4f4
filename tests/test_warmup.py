"""The command that compiles ahead."""

import json
import subprocess
import sys

from structrank import cli, criteria

# Prints the seconds that a new process spends on compiling.
FIRST_USE = """
import numpy as np, scipy.sparse
from structrank import StructRankSVM, learners
from structrank._support import compile_time
X, y, qid = np.random.default_rng(0).normal(size=(40, 3)), np.tile([0, 1, 2, 1], 10), np.repeat(range(4), 10)
for learner in StructRankSVM("auc"), StructRankSVM("mrr", feature_map="po"), StructRankSVM("err", relevant_from=None):
    learner.fit(X, y, qid=qid).score(X, y, qid=qid)
learners.LambdaRank(max_epochs=2).fit(X, y, qid=qid)
single, mapped = scipy.sparse.csr_array(X.astype(np.float32)), X.copy()
mapped[:, 0] += 1e6  # an offset, which passes subtract
mapped.setflags(write=False)
for other in single, mapped:
    StructRankSVM("map").fit(other, y, qid=qid)
print(compile_time.seconds())
"""


def test_after_a_warmup_without_arguments_a_new_process_compiles_nothing(capsys):
    assert cli.main(["warmup", "--json"]) == 0
    out, err = capsys.readouterr()
    compiled = json.loads(out)["compiled"]
    assert {*criteria.CRITERIA, "LETOR files", "measures", "train_for", "clicks"} <= {*compiled}
    assert len(err.splitlines()) == len(compiled)  # progress: a line for each
    assert float(subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_USE], capture_output=True, check=True).stdout) == 0


def test_warmup_reports_what_it_compiled(capsys):
    assert cli.main(["warmup", "auc", "--json"]) == 0
    out, err = capsys.readouterr()
    assert set(json.loads(out)["compiled"]) == {"LETOR files", "auc"}
    assert err.splitlines()[-1].startswith("structrank warmup: auc: ")


def test_an_unknown_criterion_is_an_error_before_any_work(capsys):
    assert cli.main(["warmup", "auc", "maps"]) == 2
    assert capsys.readouterr().err.startswith("structrank warmup: error: criterion='maps' is not known")
