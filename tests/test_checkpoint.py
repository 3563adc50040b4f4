"""A run that is killed goes on where it was."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from structrank import StructRankSVM, checkpoint

SCRIPT = """
import sys
import numpy as np
from structrank import StructRankSVM, checkpoint, datasets

checkpoint._SECONDS = 0.0  # at every iteration
train = datasets.make_ranking(n_queries=60, n_docs=12, n_features=8, noise=0.5, random_state=3).train
folder, out, kill_at = sys.argv[1], sys.argv[2], int(sys.argv[3])


def die(iteration):
    if iteration.iteration == kill_at:
        import os, signal

        os.kill(os.getpid(), signal.SIGKILL)


model = StructRankSVM(["map", "auc"], C=300.0, tol=1e-6)
model.fit(train.X, train.y, qid=train.qid, checkpoint=folder, callback=die)
np.save(out, model.coef_)
print(model.n_iter_, len(model.history_))
"""


def run(folder, out, kill_at):
    arguments = [sys.executable, "-c", SCRIPT, str(folder), str(out), str(kill_at)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_killed_again_and_again_it_ends_with_the_same_model_bit_by_bit(tmp_path):
    whole = run(tmp_path / "whole", tmp_path / "whole.npy", -1)
    assert whole.returncode == 0, whole.stderr
    n_iterations = int(whole.stdout.split()[0])
    assert n_iterations > 8
    for kill_at in (2, 5, n_iterations - 1):
        killed = run(tmp_path / "killed", tmp_path / "killed.npy", kill_at)
        assert killed.returncode == -signal.SIGKILL
    resumed = run(tmp_path / "killed", tmp_path / "killed.npy", -1)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == whole.stdout
    assert np.array_equal(np.load(tmp_path / "whole.npy"), np.load(tmp_path / "killed.npy"))
    assert os.listdir(tmp_path / "killed") == ["training.checkpoint"]


def test_a_finished_run_needs_no_more_passes(train, tmp_path):
    first = StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    iterations = []
    again = StructRankSVM("map", C=10.0, n_jobs=2)
    again.fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path, callback=iterations.append)
    assert not iterations
    assert np.array_equal(first.coef_, again.coef_)
    assert again.certificate_ == first.certificate_


def test_more_iterations_go_on_from_where_fewer_ended(train, tmp_path):
    data = (train.X, train.y, train.qid)
    with pytest.warns(match="max_iter=3"):
        StructRankSVM("map", C=100.0, max_iter=3).fit(*data, checkpoint=tmp_path)
    resumed = StructRankSVM("map", C=100.0).fit(*data, checkpoint=tmp_path)
    assert np.array_equal(resumed.coef_, StructRankSVM("map", C=100.0).fit(*data).coef_)


def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(train, tmp_path):
    X, y, qid = train.X, train.y, train.qid
    StructRankSVM("map").fit(X, y, qid=qid, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"checkpoint of another run: its criterion is \"'map'\", here it is \"'auc'\""):
        StructRankSVM("auc").fit(X, y, qid=qid, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="its number of queries is 60, here it is 59"):
        StructRankSVM("map").fit(X[:-8], y[:-8], qid=qid[:-8], checkpoint=tmp_path)
    other = X.copy()
    other[5, 1] += 1e-9
    with pytest.raises(ValueError, match="its digest of the data is"):
        StructRankSVM("map").fit(other, y, qid=qid, checkpoint=tmp_path)
    StructRankSVM("map", verbose=0, n_jobs=2).fit(X, y, qid=qid, checkpoint=tmp_path)


def test_a_folder_that_cannot_be_or_a_file_that_is_damaged_is_an_error(train, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be used as a folder"):
        StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "file")
    StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "run")
    path = tmp_path / "run" / "training.checkpoint"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="damaged"):
        StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "run")


def test_writes_are_spaced_by_time(train, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint.model_file, "save_values", lambda *arguments: written.append(arguments))
    StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert len(written) == 1  # at the end
