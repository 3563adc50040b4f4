"""Checkpoints: an interrupted run resumes, and ends with the same model."""

import functools
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from sklearn.base import clone

from structrank import StructRankSVM, StructRankTrees, StructRankWarning, clicks, compare, datasets, train_for
from structrank._support.content import describe
from structrank.comparison import experiment
from structrank.feature_maps import Permutation
from structrank.training import checkpoint, risk
from structrank.training.run import Training

SCRIPT = """
import sys
import numpy as np
from structrank import StructRankSVM, datasets
from structrank.training import checkpoint

checkpoint._SECONDS = 0.0  # at every iteration
train = datasets.make_ranking(n_queries=60, n_docs=12, n_features=8, noise=0.5, random_state=3).train
folder, out, kill_at = sys.argv[1], sys.argv[2], int(sys.argv[3])


def die(iteration):
    if iteration.iteration == kill_at:
        import os

        os._exit(9)  # as if killed: nothing is flushed or written


model = StructRankSVM(["map", "auc"], C=300.0, tol=1e-6)
model.fit(train.X, train.y, qid=train.qid, checkpoint=folder, callback=die)
np.save(out, model.coef_)
print(model.n_iter_, len(model.history_))
"""


def run(folder, out, kill_at):
    arguments = [sys.executable, "-c", SCRIPT, str(folder), str(out), str(kill_at)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_a_run_killed_twice_ends_with_a_bit_identical_model(tmp_path):
    whole = run(tmp_path / "whole", tmp_path / "whole.npy", -1)
    assert whole.returncode == 0, whole.stderr
    n_iterations = int(whole.stdout.split()[0])
    assert n_iterations > 3
    for kill_at in (2, n_iterations - 1):
        killed = run(tmp_path / "killed", tmp_path / "killed.npy", kill_at)
        assert killed.returncode == 9
    resumed = run(tmp_path / "killed", tmp_path / "killed.npy", -1)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == whole.stdout
    assert np.array_equal(np.load(tmp_path / "whole.npy"), np.load(tmp_path / "killed.npy"))
    names = sorted(os.listdir(tmp_path / "killed"))
    assert names[0] == "training-convex-1.checkpoint"
    assert all(name.startswith("training-convex-") for name in names)


class Killed(Exception):
    """Raised by a callback in place of a kill: nothing is written after it."""


def killed_at(number):
    """Return a callback that raises `Killed` in its call of that number."""
    seen = []

    def callback(iteration):
        seen.append(iteration)
        if len(seen) == number:
            raise Killed

    return callback


def fit(parameters, train, **how):
    return [StructRankSVM(**parameters).fit(train.X, train.y, qid=train.qid, **how)]


def fit_path(parameters, train, **how):
    return StructRankSVM(**parameters).fit_path(train.X, train.y, qid=train.qid, Cs=[0.1, 1.0, 3.0, 30.0, 100.0], **how)


RUNS = {
    "n-slack": (fit, {"criterion": "map", "C": 300.0, "tol": 1e-7, "formulation": "n-slack"}),
    "one-slack": (fit, {"criterion": "ndcg-nc", "C": 30.0, "tol": 1e-5, "formulation": "one-slack"}),
    "ramp": (fit, {"criterion": "mrr", "C": 10.0, "tol": 1e-6, "bound": "ramp"}),
    "path": (fit_path, {"criterion": "map", "tol": 1e-5}),
    "path of ramps": (fit_path, {"criterion": "mrr", "bound": "ramp", "max_iter": 60}),
}


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("name", RUNS)
def test_runs_of_every_kind_resume(name, train, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    run, parameters = RUNS[name]
    iterations = []
    expected = run(parameters, train, callback=iterations.append)
    assert len(iterations) >= 4
    for share in (0.2, 0.5, 0.9):
        number = max(1, int(share * len(iterations)))  # the iterations of a resumed run are repeated
        with pytest.raises(Killed):
            run(parameters, train, checkpoint=tmp_path, callback=killed_at(number))
    for model, whole in zip(run(parameters, train, checkpoint=tmp_path), expected, strict=True):
        assert np.array_equal(model.coef_, whole.coef_)
        assert model.certificate_ == whole.certificate_
        assert model.rounds_ == whole.rounds_
        assert model.n_iter_ == whole.n_iter_


def test_trees_that_await_a_step_resume_too(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    train, model = datasets.load_digits_retrieval().train, StructRankTrees("ndcg", discount="log2", n_estimators=4)
    expected = clone(model).fit(train.X, train.y, qid=train.qid)
    risks = [entry.loss for entry in expected.history_]
    assert risks[0] >= expected.initial_risk_ > risks[1]  # the first step needs two trees
    with pytest.raises(Killed):
        clone(model).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path, callback=killed_at(2))
    resumed = clone(model).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert resumed.trees_ == expected.trees_
    assert [entry.loss for entry in resumed.history_] == risks
    assert np.array_equal(resumed.predict(train.X), expected.predict(train.X))


@pytest.mark.parametrize("combine", ["sum", "prior"])
def test_the_hybrid_resumes_with_the_next_fold(combine, tmp_path, monkeypatch):
    made = datasets.make_clicks(n_queries=30, n_urls=80, n_topics=4, n_sessions=300, random_state=0)
    log = clicks.ClickLog.from_sessions(made)
    model = clicks.HybridRanker(clicks.CollaborativeRanker(factors=3, max_iter=4), combine=combine, folds=3)
    expected = clone(model).fit(log)
    calls, fit = [], clicks.CollaborativeRanker._fit

    def killed(self, *arguments, **settings):
        calls.append(1)
        if len(calls) in (2, 4):
            raise Killed
        return fit(self, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(clicks.CollaborativeRanker, "_fit", killed)
        for _ in range(2):
            with pytest.raises(Killed):
                clone(model).fit(log, checkpoint=tmp_path)
        resumed = clone(model).fit(log, checkpoint=tmp_path)
        if combine == "sum":
            assert len(calls) == 3 + 1 + 2  # folds, the whole log, and the killed fits
    assert (resumed.theta_, resumed.curve_) == (expected.theta_, expected.curve_)
    assert np.array_equal(resumed.collaborative_.query_factors_, expected.collaborative_.query_factors_)
    with pytest.raises(ValueError, match="another run: its digest of log is"):
        clone(model).fit(log.subset(np.arange(len(log)) > 0), checkpoint=tmp_path)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_train_for_keeps_finished_trials(fold, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    arguments, settings = ("map", fold.train), {"Cs": [1.0, 10.0]}
    expected = train_for(*arguments, **settings)
    plane, n_passes = risk.Risk.plane, []

    def killed(self, w, kind="risk"):
        n_passes.append(1)
        if len(n_passes) == 100:
            raise Killed
        return plane(self, w, kind)

    with monkeypatch.context() as patch:
        patch.setattr(risk.Risk, "plane", killed)
        with pytest.raises(Killed):
            train_for(*arguments, **settings, checkpoint=tmp_path)
    finished = [path for path in tmp_path.iterdir() if not (path / "fits").exists()]
    assert 0 < len(finished) < len(list(tmp_path.iterdir()))
    trained, path = [], StructRankSVM.fit_path
    monkeypatch.setattr(StructRankSVM, "fit_path", lambda self, *a, **k: trained.append(self) or path(self, *a, **k))
    resumed = train_for(*arguments, **settings, checkpoint=tmp_path)
    assert np.array_equal(resumed.coef_, expected.coef_)
    assert [(one.name, one.C, one.validation) for one in resumed.selection_.trials] == [
        (one.name, one.C, one.validation) for one in expected.selection_.trials
    ]
    n_trained = len(trained)
    trained.clear()
    train_for(*arguments, **settings, checkpoint=tmp_path)
    assert len(trained) == 1 < n_trained  # the winner, on all queries, from its own checkpoint
    with pytest.raises(ValueError, match="checkpoint of another run: its digest of Cs"):
        train_for(*arguments, Cs=[1.0], checkpoint=tmp_path)


def test_bound_auto_resumes_its_convex_and_its_ramp_run(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    rng = np.random.default_rng(0)  # long lists, on which clipped criteria are vacuous
    X, qid = rng.standard_normal((1200, 4)), np.repeat(np.arange(6), 200)
    y = (X[:, 0] + rng.standard_normal(1200) > 1).astype(int)
    iterations = []
    expected = StructRankSVM("mrr", bound="auto").fit(X, y, qid=qid, callback=iterations.append)
    assert expected.rounds_
    with pytest.raises(Killed):
        StructRankSVM("mrr", bound="auto").fit(X, y, qid=qid, checkpoint=tmp_path, callback=killed_at(len(iterations)))
    assert {path.name for path in tmp_path.iterdir()} >= {"training-convex-1.checkpoint", "training-ramp-1.checkpoint"}
    assert np.array_equal(StructRankSVM("mrr", bound="auto").fit(X, y, qid=qid, checkpoint=tmp_path).coef_, expected.coef_)


@pytest.mark.parametrize("seconds", [0.0, 20.0])
def test_a_finished_ramp_run_is_not_trained_again(seconds, train, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", seconds)
    passes, evaluate = [], risk.Risk.plane

    def counted(self, w, kind="risk"):
        passes.append(kind)
        return evaluate(self, w, kind)

    monkeypatch.setattr(risk.Risk, "plane", counted)
    fit(RUNS["ramp"][1], train, checkpoint=tmp_path)
    assert "prediction" in passes
    files = len(list(tmp_path.glob("training-ramp-*")))
    assert files > 3 if seconds == 0.0 else files == 1
    passes.clear()
    fit(RUNS["ramp"][1], train, checkpoint=tmp_path)
    assert "prediction" not in passes  # the passes left over compare the data with those of the checkpoint


def test_a_cell_of_a_table_resumes(fold, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    monkeypatch.setattr(experiment, "_LARGE", 0)
    trained, train = [], Training.run

    def counted(self, C, *arguments):
        if len(trained) == 4:
            raise Killed
        trained.append(C)
        return train(self, C, *arguments)

    arguments = {"made": experiment.Fold(fold.train, None, fold.test)}, ["MAP"], "map", [0.1, 1.0, 10.0]
    expected = compare(*arguments).to_frame()
    with monkeypatch.context() as patch:
        patch.setattr(Training, "run", counted)
        with pytest.raises(Killed):
            compare(*arguments, results=tmp_path)
    (begun,) = tmp_path.iterdir()
    assert sorted(path.name for path in begun.iterdir()) == ["split-1", "split-2"]
    n_passes, plane = [], risk.Risk.plane
    monkeypatch.setattr(risk.Risk, "plane", lambda self, w, kind="risk": n_passes.append(1) or plane(self, w, kind))
    assert compare(*arguments, results=tmp_path).to_frame().equals(expected)
    resumed = len(n_passes)
    assert {path.suffix for path in tmp_path.iterdir()} == {".cell", ".structrank"}
    n_passes.clear()
    compare(*arguments)
    assert resumed < len(n_passes)


def test_a_finished_run_makes_one_pass_to_compare_the_data(train, tmp_path, monkeypatch):
    first = StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    passes, plane = [], risk.Risk.plane
    monkeypatch.setattr(risk.Risk, "plane", lambda self, w, kind="risk": passes.append(w) or plane(self, w, kind))
    again = StructRankSVM("map", C=10.0, n_jobs=2)
    again.fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert len(passes) == 1
    assert np.array_equal(first.coef_, again.coef_)
    assert again.certificate_ == first.certificate_


def test_a_run_ended_by_max_iter_resumes_with_a_larger_max_iter(train, tmp_path):
    data = (train.X, train.y, train.qid)
    with pytest.warns(match="max_iter=3"):
        StructRankSVM("map", C=100.0, max_iter=3).fit(*data, checkpoint=tmp_path)
    resumed = StructRankSVM("map", C=100.0).fit(*data, checkpoint=tmp_path)
    assert np.array_equal(resumed.coef_, StructRankSVM("map", C=100.0).fit(*data).coef_)


def test_a_checkpoint_of_another_run_is_rejected_and_the_difference_named(train, tmp_path):
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


def test_a_checkpoint_of_another_version_is_rejected(train, tmp_path, monkeypatch):
    fit({}, train, checkpoint=tmp_path)
    monkeypatch.setattr(checkpoint.structrank, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"another run: its version of structrank is '\S+', here it is '9.9'"):
        fit({}, train, checkpoint=tmp_path)
    checkpoint.files.save_values("checkpoint", {"state": {}}, tmp_path / "training-convex-1.checkpoint")
    with pytest.raises(ValueError, match="its version of structrank is None"):
        fit({}, train, checkpoint=tmp_path)


def test_a_checkpoint_of_another_ramp_run_or_path_is_rejected(train, tmp_path):
    X, y, qid = train.X, train.y, train.qid
    StructRankSVM("mrr", bound="ramp").fit(X, y, qid=qid, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"checkpoint of another run: its tol is '0.001', here it is '0.01'"):
        StructRankSVM("mrr", bound="ramp", tol=0.01).fit(X, y, qid=qid, checkpoint=tmp_path)
    for path in {*tmp_path.iterdir()} - {*tmp_path.glob("training-ramp-*")}:  # checkpoints of the starting point
        path.unlink()
    with pytest.raises(ValueError, match=r"training-ramp-1.checkpoint .* another run: its digest of the data is"):
        StructRankSVM("mrr", bound="ramp").fit(2 * X, y, qid=qid, checkpoint=tmp_path)
    StructRankSVM("map").fit_path(X, y, qid=qid, Cs=[1.0, 10.0], checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"path-convex-1.checkpoint is .* its criterion is \"'map'\", here it is \"'auc'\""):
        StructRankSVM("auc").fit_path(X, y, qid=qid, Cs=[1.0, 10.0], checkpoint=tmp_path)


@pytest.mark.parametrize("number", [4, 6, 8])
def test_an_interrupted_run_ends_with_the_same_model(train, tmp_path, monkeypatch, number):
    def model():
        return StructRankSVM("map", C=1000.0, tol=1e-6)

    expected = model().fit(train.X, train.y, qid=train.qid)
    assert expected.n_iter_ > 7
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    plane, visits = risk.Risk.plane, []

    def interrupted(self, w, kind="risk"):
        visits.append(w)
        if len(visits) == number:
            raise KeyboardInterrupt
        return plane(self, w, kind)

    monkeypatch.setattr(risk.Risk, "plane", interrupted)
    with pytest.warns(StructRankWarning, match="interrupted"):
        model().fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    found = model().fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert len(visits) < number + 2 + expected.n_iter_  # 2: a digest of the data in each run
    assert np.array_equal(found.coef_, expected.coef_)


def test_an_unusable_folder_or_a_damaged_file_is_an_error(train, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be used as a folder"):
        StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="checkpoint=5 is not valid: expected the name of a folder"):
        StructRankSVM("map").fit_path(train.X, train.y, qid=train.qid, checkpoint=5)
    StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "run")
    path = tmp_path / "run" / "training-convex-1.checkpoint"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"^the checkpoint cannot be read: .* damaged .* Delete it to train from the start"):
        StructRankSVM("map").fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path / "run")


def test_writes_are_spaced_by_time(train, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint.files, "save_values", lambda *arguments: written.append(arguments))
    StructRankSVM("map", C=10.0).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert len(written) == 1  # at the end


@pytest.mark.parametrize("name", ["decay", "feature_map"])
def test_functions_in_parameters_are_compared_by_content(train, tmp_path, name):
    def model(power):
        decay = functools.partial(lambda rank, power: 1.0 / (1.0 + rank) ** power, power=power)
        return StructRankSVM("dorm", **{name: decay if name == "decay" else Permutation(decay)})

    first = model(0.5).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    again = model(0.5).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert np.array_equal(first.coef_, again.coef_)
    with pytest.raises(ValueError, match=f"checkpoint of another run: its {name}"):
        model(0.6).fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)


def test_descriptions_distinguish_functions_by_content():
    class Decay:
        def __init__(self, power):
            self.power, self.holder = power, self

        def __call__(self, rank):
            return 1.0 / (1.0 + rank) ** self.power

        def decay(self, rank):
            return self(rank)

    def power_of(rank, power=1.0):
        return rank**power

    pairs = [
        (Decay(1.0).decay, Decay(1.0).decay, Decay(2.0).decay),
        (Decay(1.0), Decay(1.0), Decay(2.0)),
        *((functools.partial(power_of, power=one) for one in (1.0, 1.0, 2.0)),),
        *((functools.partial(power_of, one) for one in (1.0, 1.0, 2.0)),),
    ]
    for first, same, other in pairs:
        assert describe(first) == describe(same) != describe(other)
    assert describe(numba.njit(power_of)) == describe(power_of)


MADE = clicks.ClickLog.from_sessions(datasets.make_clicks(n_queries=30, n_urls=80, n_topics=4, n_sessions=300, random_state=0))
FACTORS = clicks.CollaborativeRanker(factors=3, max_iter=4)
LOSSES = {  # what is trained, with the checkpoints in a folder, and returned as weights
    "svm": lambda fold, folder: fit({"criterion": "map", "C": 10.0}, fold.train, checkpoint=folder)[0].coef_,
    "ramp": lambda fold, folder: fit({"criterion": "mrr", "bound": "ramp"}, fold.train, checkpoint=folder)[0].coef_,
    "path": lambda fold, folder: fit_path({"criterion": "map", "tol": 0.1}, fold.train, checkpoint=folder)[-1].coef_,
    "train_for": lambda fold, folder: train_for("map", fold.train, Cs=[1.0], checkpoint=folder).coef_,
    "hybrid": lambda fold, folder: clicks.HybridRanker(FACTORS, folds=3).fit(MADE, checkpoint=folder).theta_,
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_folder_that_is_lost_in_mid_run_costs_one_warning(fold, name, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    folder, save = tmp_path / "run", checkpoint.files.save_values

    def lost(*arguments):
        if folder.is_dir():
            save(*arguments)
            folder.rename(tmp_path / "lost")
            folder.write_text("")  # a file in its place
        save(*arguments)

    expected = LOSSES[name](fold, None)
    monkeypatch.setattr(checkpoint.files, "save_values", lost)
    with pytest.warns(RuntimeWarning) as caught:
        found = LOSSES[name](fold, folder)
    assert folder.is_file()
    assert np.array_equal(found, expected)
    (text,) = [str(one.message) for one in caught if "heckpoint" in str(one.message)]
    assert text.startswith(f"Checkpoints in {folder}")


def test_what_was_not_written_is_written_at_the_next_occasion(train, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    n_tries, save = [], checkpoint.files.save_values

    def full(*arguments):
        n_tries.append(1)
        if len(n_tries) < 4:
            raise OSError(28, "No space left on device")
        save(*arguments)

    monkeypatch.setattr(checkpoint.files, "save_values", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        fit({"criterion": "map"}, train, checkpoint=tmp_path)
    first = checkpoint.files.load_values("checkpoint", tmp_path / "training-convex-1.checkpoint")
    assert len(first["content"]) == 4
