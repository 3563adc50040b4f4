"""Learners that train in rounds: what all of them share, by one loop."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from structrank import StructRankTrees, StructRankWarning, clicks, datasets
from structrank.clicks import CollaborativeRanker
from structrank.learners import LambdaMART, LambdaRank, McRank, RankNet, SPSARanker
from structrank.learners.boosting import BoostedRanker
from structrank.learners.training import Round
from structrank.training import checkpoint
from structrank.training.rounds import Rounds

GRADED = datasets.make_ranking(n_queries=30, n_docs=12, n_features=6, n_grades=3, noise=0.5, random_state=1)
SESSIONS = datasets.make_clicks(n_queries=30, n_urls=80, n_topics=4, n_sessions=200, random_state=0)
PAIRS = clicks.preference_pairs(clicks.ClickLog.from_sessions(SESSIONS))
ONE_OF_EACH = {
    "RankNet": RankNet(hidden_units=3, max_epochs=8),
    "LambdaRank": LambdaRank("map", batch="full", max_epochs=8),
    "SPSA": SPSARanker(max_evaluations=40),
    "LambdaMART": LambdaMART(n_estimators=8, min_child_samples=5, num_leaves=5),
    "McRank": McRank(n_estimators=6, min_child_samples=5, subsample=0.6, colsample_bytree=0.5),
    "StructRankTrees": StructRankTrees("ndcg", relevant_from=None, n_estimators=8, min_child_samples=5),
    "factors": CollaborativeRanker(factors=3, max_iter=6, patience=6),
}
VARIANTS = {
    **ONE_OF_EACH,
    "RankNet, sgd, restarts": RankNet(
        hidden_units=0, optimizer="sgd", learning_rate=0.5, max_epochs=12, patience=2, restarts=2
    ),
    "LambdaRank, settle": LambdaRank("map", hidden_units=0, max_epochs=4, settle=5),
    "FDSA, cross entropy": SPSARanker("cross-entropy", method="fdsa", max_evaluations=120, patience=4),
    "LambdaMART, sampled": LambdaMART(n_estimators=8, min_child_samples=5, subsample=0.6, colsample_bytree=0.5),
    "LambdaMART, patience": LambdaMART(n_estimators=30, min_child_samples=5, patience=2, num_leaves=20),
    "StructRankTrees, sampled": StructRankTrees(
        "map", n_estimators=8, min_child_samples=5, subsample=0.6, colsample_bytree=0.5, n_jobs=2
    ),
    "StructRankTrees, patience": StructRankTrees("auc", n_estimators=30, min_child_samples=5, patience=2, learning_rate=1.0),
    "McRank, ordinal": McRank("ordinal", n_estimators=6, min_child_samples=5, subsample=0.4),
    "factors, adam": CollaborativeRanker(factors=3, max_iter=6, patience=6, solver="adam"),
    "factors, batch": CollaborativeRanker(factors=3, max_iter=6, patience=6, solver="batch"),
}
LIMITS = ("max_epochs", "max_evaluations", "n_estimators", "max_iter")


class Killed(Exception):
    """Raised in place of a kill: nothing is written after it."""


@pytest.fixture(params=ONE_OF_EACH)
def learner(request):
    return ONE_OF_EACH[request.param]


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture
def ends(monkeypatch):
    """Count the rounds, and raise errors at the end of some: a dict from counts to errors."""
    errors, end = SimpleNamespace(at={}, count=0), Rounds.end

    def counted(self, *arguments, **settings):
        end(self, *arguments, **settings)
        errors.count += 1
        if len(self.entries) in errors.at:
            raise errors.at.pop(len(self.entries))

    monkeypatch.setattr(Rounds, "end", counted)
    return errors


def fit(model, data=GRADED.train, **how):
    model = clone(model)
    if isinstance(model, CollaborativeRanker):
        return model.fit(PAIRS, **how)
    if getattr(model, "patience", None) and isinstance(model, BoostedRanker):
        how["validation"] = GRADED.validation
    return model.fit(data.X, data.y, qid=data.qid, **how)


def assert_same_model(model, expected):
    if isinstance(model, CollaborativeRanker):
        assert np.array_equal(model.query_factors_, expected.query_factors_)
        assert np.array_equal(model.url_factors_, expected.url_factors_)
    else:
        assert np.array_equal(model.predict(GRADED.test.X), expected.predict(GRADED.test.X))
    for one, other in zip(model.history_, expected.history_, strict=True):
        assert np.array_equal([*vars(one).values()][:-1], [*vars(other).values()][:-1], equal_nan=True)  # not the seconds
    for name in ("best_round_", "n_iter_", "n_evaluations_", "trees_", "initial_risk_", "notes_"):
        assert getattr(model, name, None) == getattr(expected, name, None), name


def test_a_killed_run_resumes_with_the_next_round(variant, ends, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    expected = fit(variant)
    assert expected.n_iter_ >= 5
    ends.count = 0
    for number in (2, expected.n_iter_ - 2):
        ends.at = {number: Killed()}
        with pytest.raises(Killed):
            fit(variant, checkpoint=tmp_path)
    resumed = fit(variant, checkpoint=tmp_path)
    # Only the rounds in which training was killed are repeated.
    assert ends.count == expected.n_iter_ + 2
    for model in (resumed, fit(variant, checkpoint=tmp_path)):
        assert_same_model(model, expected)
        assert model.stop_reason_ == expected.stop_reason_
    assert ends.count == expected.n_iter_ + 2  # a finished run is not trained again


def test_ctrl_c_ends_training_after_the_rounds_so_far_and_the_run_can_resume(learner, ends, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    (limit,) = [name for name in LIMITS if hasattr(learner, name)]
    ends.at = {3: KeyboardInterrupt()}
    with pytest.warns(StructRankWarning, match=r"interrupted after \w+ 3; the model is that of the rounds so far") as warned:
        model = fit(learner, checkpoint=tmp_path)
    assert warned[0].filename == __file__
    assert model.stop_reason_ == "interrupted"
    cost = getattr(model, "n_evaluations_", 3) // 3
    assert_same_model(model, fit(clone(learner).set_params(**{limit: 3 * cost})))
    assert_same_model(fit(learner, checkpoint=tmp_path), fit(learner))


def test_ctrl_c_before_the_first_round_has_ended_raises(learner, monkeypatch):
    monkeypatch.setattr(Rounds, "lap", lambda self: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        fit(learner)


@pytest.mark.filterwarnings("ignore:Training was interrupted")
@pytest.mark.parametrize("combine", ["sum", "prior"])
def test_theta_of_the_hybrid_is_never_chosen_from_interrupted_factors(combine, ends, tmp_path):
    log = clicks.ClickLog.from_sessions(SESSIONS)
    hybrid = clicks.HybridRanker(CollaborativeRanker(factors=3, max_iter=4), combine=combine, folds=3)
    expected = clone(hybrid).fit(log)
    ends.at = {2: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        clone(hybrid).fit(log, checkpoint=tmp_path)
    resumed = clone(hybrid).fit(log, checkpoint=tmp_path)
    assert (resumed.theta_, resumed.curve_) == (expected.theta_, expected.curve_)
    assert_same_model(resumed.collaborative_, expected.collaborative_)


@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH if name != "factors"])
def test_a_callback_sees_each_round_and_stops_training(name, tmp_path):
    learner, seen = ONE_OF_EACH[name], []
    model = fit(learner, callback=lambda entry: seen.append(entry) or entry.round == 3, checkpoint=tmp_path)
    assert (model.n_iter_, model.stop_reason_) == (3, "callback")
    assert seen == list(model.history_)
    with pytest.raises(ValueError, match="callback='x' is not valid"):
        fit(learner, callback="x")
    assert fit(learner, checkpoint=tmp_path).stop_reason_ != "callback"  # this run was not finished


def test_progress_is_shown_only_if_verbose(learner, capfd):
    fit(learner)
    assert capfd.readouterr() == ("", "")
    model = fit(clone(learner).set_params(verbose=1))
    shown = capfd.readouterr()
    assert shown.out == ""
    assert f" {model.n_iter_}  " in shown.err
    assert shown.err.rstrip().endswith(model.stop_reason_)
    assert "nan" not in shown.err


def rounds_of(values, patience):
    """Return rounds after watching the values."""
    trained = SimpleNamespace(state=dict, restore=None)
    rounds = Rounds(RankNet(max_epochs=len(values), patience=patience), trained, {}, "max_epochs", "epoch")
    for number in rounds:
        rounds.end(Round(number), watched=values[number - 1])
    return rounds


def test_training_stops_early_without_a_new_best_value_and_ignores_nan():
    rounds = rounds_of([np.nan, 0.1, np.nan, np.nan, 0.2], patience=2)
    assert (len(rounds.entries), rounds.best_round, rounds.best_value, rounds.reason) == (4, 2, 0.1, "patience")
    rounds = rounds_of([np.nan] * 5, patience=2)  # nothing to watch
    assert (len(rounds.entries), rounds.best_round, rounds.reason) == (5, 0, "max_epochs")
    rounds = rounds_of([0.1, 0.1, 0.2], patience=None)
    assert (len(rounds.entries), rounds.best_round, rounds.reason) == (3, 3, "max_epochs")
    assert rounds_of([], patience=2).reason == "max_epochs"


def test_rounds_that_go_on_await_a_new_best_value():
    rounds = rounds_of([0.5, 0.4, 0.3, 0.2, 0.1], patience=1)
    assert (len(rounds.entries), rounds.reason) == (2, "patience")
    rounds.go_on()
    for number in rounds:
        rounds.end(Round(number), watched=[0.3, 0.3, 0.1][number - 3])
    assert (len(rounds.entries), rounds.best_round, rounds.reason) == (4, 3, "patience")


def test_a_checkpoint_of_another_run_is_rejected_and_the_difference_named(tmp_path, monkeypatch):
    model, train = ONE_OF_EACH["SPSA"], GRADED.train
    fit(model, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another run: its max_evaluations is '40', here it is '80'"):
        fit(SPSARanker(max_evaluations=80), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another run: its learner is \"'SPSARanker'\", here it is \"'RankNet'\""):
        fit(RankNet(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"its digest of X is '\w+', here it is '\w+'\. Use the same"):
        model.fit(2 * train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="its digest of validation is None"):
        fit(model, checkpoint=tmp_path, validation=GRADED.validation)
    factors = ONE_OF_EACH["factors"]
    fit(factors, checkpoint=tmp_path / "factors")
    with pytest.raises(ValueError, match="another run: its digest of pairs is"):
        factors.fit(PAIRS.subset(np.arange(len(PAIRS)) > 0), checkpoint=tmp_path / "factors")
    monkeypatch.setattr(checkpoint.structrank, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"another run: its version of structrank is '\S+', here it is '9.9'"):
        fit(model, checkpoint=tmp_path)


@pytest.mark.parametrize("name", ["RankNet", "SPSA", "StructRankTrees", "factors"])
@pytest.mark.parametrize("damage", ["another shape", "another name"])
def test_a_checkpoint_of_another_form_is_rejected(name, damage, tmp_path):
    learner = ONE_OF_EACH[name]
    fit(learner, checkpoint=tmp_path)
    (path,) = tmp_path.iterdir()
    values = checkpoint.files.load_values("checkpoint", path)
    if damage == "another name":
        values["content"]["rounds"] = values["content"].pop("entries")
    else:
        trained = values["content"]["trained"]
        key = next(key for key in ("weights", "query_factors", "scores") if key in trained)
        array = trained[key]
        trained[key] = [array[0][:-1]] if isinstance(array, list) else array[:-1]
    checkpoint.files.save_values("checkpoint", values, path)
    with pytest.raises(ValueError, match=r"training.checkpoint does not fit this run: .* Delete it"):
        fit(learner, checkpoint=tmp_path)


def test_states_are_written_by_time(learner, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint.files, "save_values", lambda *arguments: written.append(arguments))
    fit(learner, checkpoint=tmp_path)
    assert len(written) == 1  # at the end


def test_a_folder_that_is_lost_in_mid_run_costs_one_warning(learner, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    folder, save = tmp_path / "run", checkpoint.files.save_values

    def lost(*arguments):
        if folder.is_dir():
            save(*arguments)
            folder.rename(tmp_path / "lost")
            folder.write_text("")  # a file in its place
        save(*arguments)

    monkeypatch.setattr(checkpoint.files, "save_values", lost)
    with pytest.warns(RuntimeWarning, match=f"Checkpoints in {folder}") as caught:
        model = fit(learner, checkpoint=folder)
    assert len([one for one in caught if issubclass(one.category, RuntimeWarning)]) == 1
    assert_same_model(model, fit(learner))
