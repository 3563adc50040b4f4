"""Smoke test of an installed package: train, save, load, rank, and the command line. Run it outside of the checkout.

With ``--prebuilt``, training must find compiled kernels in the wheel.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import structrank
from structrank import StructRankSVM, datasets, load_model
from structrank._support import compile_time

assert "site-packages" in structrank.__file__, f"not the installed package: {structrank.__file__}"

fold = datasets.make_ranking(n_queries=60, n_docs=8, n_features=4, noise=0.3, random_state=0)
model = StructRankSVM("map", C=10.0).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
assert "--prebuilt" not in sys.argv or compile_time.seconds() == 0, f"compiled for {compile_time.seconds():.1f} s"
assert model.stop_reason_ == "converged"
assert 0 <= model.certificate_.gap <= 10.0 * model.tol
measured = model.score(fold.test.X, fold.test.y, qid=fold.test.qid)
by_chance = structrank.metrics.evaluate(fold.test.y, [0.0] * len(fold.test.y), fold.test.qid, "map")["map"]
assert measured > by_chance, (measured, by_chance)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.structrank")
    model.save(path)
    ranks = load_model(path).rank(fold.test.X, qid=fold.test.qid)
    assert (ranks == model.rank(fold.test.X, qid=fold.test.qid)).all()
    shown = subprocess.run([sys.executable, "-m", "structrank", "inspect", str(path)], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "StructRankSVM" in shown.stdout, shown.stdout

print(f"structrank {structrank.__version__} on Python {sys.version.split()[0]}: MAP {measured:.3f}, by chance {by_chance:.3f}")
