"""Training for a measure: the candidates, the choice among them, its explanation, and polish."""

import itertools
import types
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from structrank import StructRankSVM, StructRankWarning, compare, datasets, load_model, metrics, train_for
from structrank.comparison.significance import standard_error_ratio
from structrank.criteria import matched_criterion
from structrank.datasets import Dataset, Fold
from structrank.feature_maps import Permutation
from structrank.selection import matching
from structrank.selection.candidates import binary_candidates, graded_candidates
from structrank.selection.choosing_c import inner_folds
from structrank.selection.matching import MeasureMatched, Selection, Trial
from structrank.training.data import RankingData

CS = [0.1, 10.0]


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=60, n_docs=12, n_features=5, noise=0.7, random_state=1)


@pytest.fixture(scope="module")
def chosen(fold):
    return train_for("ndcg@5", fold.train, fold.validation, Cs=CS)


def per_query(model, part, measure):
    return metrics.evaluate(part.y, model.predict(part.X), part.qid, measure, per_query=True)[measure.name]


def value_of(model, part, measure):
    return np.nanmean(per_query(model, part, measure))


@pytest.mark.parametrize(
    "measure",
    [
        metrics.AUC(),
        metrics.MAP(),
        metrics.MRR(),
        metrics.MRR(k=2),
        metrics.NDCG(gain="binary"),
        metrics.NDCG(k=3, gain="binary", discount="kdd08"),
    ],
    ids=lambda measure: f"{measure.name} {measure.settings}",
)
def test_the_loss_of_the_matched_criterion_is_one_minus_the_measure(measure, rng):
    criterion = matched_criterion(measure)
    for _ in range(20):
        y = np.concatenate([[0, 1], rng.integers(0, 2, 6)])
        scores = rng.normal(size=8)
        found = metrics.evaluate(y, scores, None, measure)[measure.name]
        assert criterion.loss(np.argsort(-scores), y > 0) == pytest.approx(1 - found, abs=1e-12)


def test_the_matched_criterion_is_chosen_unless_another_is_better_by_a_standard_error():
    fold = datasets.make_ranking(n_queries=1600, n_docs=8, n_features=5, noise=0.7, split=(0.05, 0.7, 0.25), random_state=1)
    measure = metrics.NDCG(k=5, gain="binary", discount="kdd08")
    chosen = train_for("ndcg@5", fold.train, fold.validation, Cs=CS)
    selection = chosen.selection_
    names = [trial.name for trial in selection.trials]
    assert sorted(names) == ["AUC", "AUC + MAP + NDCG-NC", "MAP", "NDCG-NC", "NDCG@5", "NDCG@5, ramp"]
    values = [trial.validation for trial in selection.trials]
    assert values == sorted(values, reverse=True)
    assert selection.n_queries == np.unique(fold.validation.qid).size
    assert not selection.inner_folds
    assert 0 < selection.p_value <= 1
    # Each trial is the best model of its path.
    trainers = {name: StructRankSVM(name.lower()) for name in ("AUC", "MAP", "NDCG-NC")}
    trainers |= {"NDCG@5": StructRankSVM("ndcg", k=5, feature_map="po")}
    best = {}
    for trial in selection.trials:
        if trial.name not in trainers:
            continue
        path = trainers[trial.name].fit_path(fold.train.X, fold.train.y, qid=fold.train.qid, Cs=CS)
        by_C = [value_of(model, fold.validation, measure) for model in path]
        assert trial.validation == pytest.approx(max(by_C), abs=1e-12)
        assert CS[int(np.argmax(by_C))] == trial.C
        best[trial.name] = path[int(np.argmax(by_C))]
    assert names[0] in best
    lead = standard_error_ratio(*(per_query(best[name], fold.validation, measure) for name in (names[0], "NDCG@5")))
    assert selection.winner == (names[0] if lead > 1 else "NDCG@5")
    # Polish starts from the winner.
    before = best[selection.winner]
    assert chosen.polish_.train == pytest.approx([value_of(model, fold.train, measure) for model in (before, chosen)])
    assert chosen.polish_.validation == pytest.approx([value_of(model, fold.validation, measure) for model in (before, chosen)])
    assert chosen.polish_.train[1] >= chosen.polish_.train[0]
    assert chosen.polish_.validation[1] >= chosen.polish_.validation[0]
    assert np.array_equal(chosen.coef_, before.coef_) == (chosen.polish_.steps == 0)


def test_another_criterion_is_chosen_if_it_is_clearly_better(monkeypatch, fold):
    from structrank.selection import matching

    original = matching._try

    def halved(name, *arguments):
        tried = original(name, *arguments)
        return replace(tried, values=0.5 * tried.values) if "NDCG@5" in name else tried

    monkeypatch.setattr(matching, "_try", halved)
    model = train_for("ndcg@5", fold.train, fold.validation, Cs=CS)
    assert "NDCG@5" not in model.selection_.winner


@pytest.mark.parametrize("lead", [1.0, -1.0])
def test_a_ramp_candidate_is_dropped_if_another_is_better_by_a_standard_error(monkeypatch, fold, lead):
    original, tried = matching._try, {}

    def shifted(name, *arguments):
        tried[name] = original(name, *arguments)
        # Not all by the same, so that the difference has a standard error.
        change = lead * np.linspace(0.9, 1.1, tried[name].values.size)
        return tried[name] if "NDCG@5" in name else replace(tried[name], values=tried[name].values + change)

    monkeypatch.setattr(matching, "_try", shifted)
    selection = train_for("ndcg@5", fold.train, fold.validation, Cs=CS).selection_
    ramp, convex = tried["NDCG@5, ramp"], tried["NDCG@5"]
    assert list(tried)[-1] == ramp.trial.name
    assert len(convex.models) == 4
    if lead < 0.0:
        assert len(ramp.models) == 4
        assert not any(trial.dropped for trial in selection.trials)
        return
    assert len(ramp.models) == 1
    assert ramp.values.size == 12  # the queries of one of three folds
    assert ramp.trial.validation == pytest.approx(np.mean(ramp.values))
    assert [trial.name for trial in selection.trials if trial.dropped] == [selection.trials[-1].name] == [ramp.trial.name]
    assert selection.winner not in (ramp.trial.name, convex.trial.name)
    assert selection.to_frame()["dropped"].sum() == 1
    assert f"{ramp.trial.validation:.4f}" not in str(selection).split("\n\n")[1]


def test_the_ramp_bound_starts_from_the_C_of_its_convex_bound_or_from_every_second(monkeypatch, fold):
    original, given = matching._try, {}

    def recorded(name, trainer, splits, Cs, *arguments):
        given[name] = Cs
        tried = original(name, trainer, splits, Cs, *arguments)
        return replace(tried, trial=replace(tried.trial, vacuous=name == "MAP" and vacuous))

    monkeypatch.setattr(matching, "_try", recorded)
    for vacuous in (False, True):
        trials = train_for("map", fold.train, fold.validation, Cs=[0.1, 1.0, 10.0, 100.0]).selection_.trials
        (convex,) = (trial for trial in trials if trial.name == "MAP")
        assert given["MAP, ramp"] == ([1.0, 100.0] if vacuous else [convex.C])


def test_the_selection_is_printed_with_all_trials_and_the_reason(chosen):
    selection = chosen.selection_
    frame = selection.to_frame()
    assert frame.columns.tolist() == ["bound", "C", "train", "validation", "vacuous", "seconds", "dropped"]
    assert frame.loc["NDCG@5, ramp", "bound"] == "ramp"
    text = str(selection)
    assert text.startswith("Chosen by ndcg@5 on 48 queries (with inner folds of the training queries).")
    assert all(trial.name in text for trial in selection.trials)
    assert text.endswith(selection.reason)


def test_the_reason_distinguishes_chance_ties_and_significant_differences():
    def reason(first, second, p, winner="A"):
        trials = tuple(Trial(name, "convex", 1.0, 0.5, value, False, 0.1) for name, value in (("A", first), ("B", second)))
        return Selection("map", winner, trials, 20, False, p).reason

    assert reason(0.6, 0.5, 0.01) == "A is ahead of B by 0.1000 (p = 0.010), unlikely to be chance."
    assert reason(0.6, 0.5, 0.4) == "A is ahead of B by 0.1000 (p = 0.400), which may be chance: either is a reasonable choice."
    assert reason(0.5, 0.5, 1.0) == "A and B are tied; the first by order of preference is chosen."
    assert reason(0.6, 0.5, 0.4, winner="B") == (
        "B is behind A by 0.1000, less than the standard error of the difference (p = 0.400); it is preferred because "
        "it optimises the measure directly."
    )


def test_few_validation_queries_are_supplemented_by_inner_folds(fold, chosen):
    n_train, n_validation = (np.unique(part.qid).size for part in (fold.train, fold.validation))
    assert chosen.selection_.inner_folds
    assert chosen.selection_.n_queries == n_train + n_validation


@pytest.fixture
def unaveraged(monkeypatch):
    """Leave the models of inner folds out of the mean."""
    monkeypatch.setattr(matching, "_mean_of", lambda weights, data: weights[-1])


@pytest.mark.parametrize("has_validation", [True, False])
def test_the_weights_are_the_mean_of_those_of_all_splits_with_equal_spread(fold, has_validation):
    model = train_for("auc", fold.train, fold.validation if has_validation else None, Cs=[1.0])
    trainer = binary_candidates(metrics.AUC(), 1, "kdd08")[model.selection_.winner].set_params(C=1.0)
    data = RankingData.of(fold.train)
    parts = [part for part, _ in inner_folds(data, 1, 0)]
    weights = [trainer.fit(part).coef_ for part in (*parts, data)]
    scores = [fold.train.X @ w for w in weights]
    spreads = [
        np.sqrt(np.mean([np.var(one[fold.train.qid == query]) for query in np.unique(fold.train.qid)])) for one in scores
    ]
    expected = np.mean([w / spread for w, spread in zip(weights, spreads, strict=True)], axis=0) * spreads[-1]
    assert len(weights) == 4
    assert model.coef_ == pytest.approx(expected)
    assert model.coef_ != pytest.approx(weights[-1])


def test_weights_without_spread_do_not_count_in_the_mean():
    data = RankingData([[1.0, 5.0], [2.0, 5.0]], [0, 1], qid=0)
    assert matching._mean_of([np.array([0.0, 3.0]), np.array([4.0, 0.0]), np.array([2.0, 0.0])], data).tolist() == [2.0, 0.0]
    assert matching._mean_of([np.array([0.0, 3.0]), np.array([0.0, 1.0])], data).tolist() == [0.0, 1.0]


def test_without_a_validation_part_the_choice_is_made_on_inner_folds(fold, unaveraged):
    model = train_for("map", fold.train, Cs=CS)
    selection = model.selection_
    assert selection.inner_folds
    assert selection.n_queries == np.unique(fold.train.qid).size
    assert sorted(trial.name for trial in selection.trials) == ["AUC", "AUC + MAP + NDCG-NC", "MAP", "MAP, ramp", "NDCG-NC"]
    (C,) = (trial.C for trial in selection.trials if trial.name == selection.winner)
    before = clone(model).set_params(C=C).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    measure = metrics.MAP()
    assert model.polish_.train == pytest.approx([value_of(one, fold.train, measure) for one in (before, model)])
    assert np.array_equal(before.coef_, model.coef_) == (model.polish_.steps == 0)
    repeated = train_for("map", fold.train, Cs=CS)
    assert np.array_equal(repeated.coef_, model.coef_)
    assert [trial.name for trial in repeated.selection_.trials] == [trial.name for trial in selection.trials]


def test_the_seconds_of_trials_are_without_compiling(fold, monkeypatch):
    moments, compiled = itertools.count(), itertools.count(step=0.75)  # of every second, three quarters
    monkeypatch.setattr(matching, "time", types.SimpleNamespace(perf_counter=lambda: float(next(moments))))
    monkeypatch.setattr(matching, "compile_time", types.SimpleNamespace(seconds=lambda: next(compiled)))
    model = train_for("auc", fold.train, fold.validation, Cs=[1.0])
    assert {trial.seconds for trial in model.selection_.trials} == {0.25}


def test_auc_is_not_polished(fold):
    model = train_for("auc", fold.train, fold.validation, Cs=[1.0])
    assert model.selection_.measure == "auc"
    assert not hasattr(model, "polish_")


def test_the_chosen_model_is_not_vacuous_on_long_lists():
    fold = datasets.make_ranking(n_queries=50, n_docs=150, n_features=6, noise=2.0, relevant_share=0.1, random_state=0)
    # Under a vacuous bound w stays near the slope at 0. Mixing the features makes that a poor direction.
    mix = np.random.default_rng(0).normal(size=(6, 6))
    train, validation = (Dataset(part.X @ mix, part.y, part.qid) for part in (fold.train, fold.validation))
    model = train_for("mrr@10", train, validation, Cs=[1.0])
    trials = {trial.name: trial for trial in model.selection_.trials}
    assert trials["MRR@10"].vacuous
    assert not trials["MRR@10, ramp"].vacuous
    assert not model.health_.vacuous
    assert trials["MRR@10"].validation < model.selection_.trials[0].validation - 0.1


def test_candidates_for_mrr_are_compared_by_map_on_unseen_queries():
    fold = datasets.make_ranking(n_queries=1600, n_docs=8, n_features=5, noise=0.7, split=(0.05, 0.7, 0.25), random_state=1)
    model = train_for("mrr@5", fold.train, fold.validation, Cs=CS)
    assert str(model.selection_).startswith("Chosen for mrr@5 by map on ")
    path = StructRankSVM("auc").fit_path(fold.train.X, fold.train.y, qid=fold.train.qid, Cs=CS)
    values = [value_of(one, fold.validation, metrics.MAP()) for one in path]
    (trial,) = (trial for trial in model.selection_.trials if trial.name == "AUC")
    assert (trial.C, trial.validation) == (CS[int(np.argmax(values))], pytest.approx(max(values)))
    assert model.polish_.train[1] == pytest.approx(value_of(model, fold.train, metrics.MRR(k=5)))


def test_measures_with_graded_gains_are_polished_as_they_are(unaveraged):
    fold = datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, n_grades=4, noise=0.5, random_state=0)
    measure = metrics.NDCG(k=5)
    model = train_for(measure, fold.train, fold.validation, Cs=[1.0])
    assert model.selection_.measure == "ndcg@5 (gain=exp2, discount=log2)"
    assert "Chosen by ndcg@5 (gain=exp2, discount=log2) on " in repr(model.selection_)
    assert model.polish_.measure == "ndcg@5"
    assert model.polish_.train[1] == pytest.approx(value_of(model, fold.train, measure), abs=1e-12)


def test_the_selection_is_stored_in_model_files(chosen, tmp_path):
    chosen.save(tmp_path / "m.structrank")
    assert load_model(tmp_path / "m.structrank").selection_ == chosen.selection_


def test_the_estimator_equals_train_for_and_can_be_compared(fold, chosen, tmp_path):
    ranker = MeasureMatched("ndcg@5", Cs=CS)
    ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.validation)
    assert np.array_equal(ranker.predict(fold.test.X), chosen.predict(fold.test.X))
    assert ranker.rank(fold.test.X, qid=fold.test.qid).min() == 1
    ranker.save(tmp_path / "m.structrank")
    assert np.array_equal(load_model(tmp_path / "m.structrank").coef_, ranker.model_.coef_)
    rows = {"AUC": StructRankSVM("auc"), "for ndcg@5": MeasureMatched("ndcg@5", Cs=CS)}
    table = compare({"made": fold}, rows, measures="ndcg@5", Cs=CS)
    expected = train_for("ndcg@5", fold.train, fold.validation, Cs=CS)
    measure = metrics.NDCG(k=5, gain="binary", discount="kdd08")
    assert table.to_frame().loc["for ndcg@5"].item() == pytest.approx(value_of(expected, fold.test, measure), abs=1e-9)


def test_progress_is_shown_only_if_verbose(fold, capsys):
    for verbose, lines in ((0, 0), (1, 1)):
        train_for("map", fold.train, fold.validation, Cs=[1.0], verbose=verbose)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count(" criteria  ") >= lines
        assert bool(captured.err) == bool(verbose)


@pytest.fixture(scope="module")
def graded():
    return datasets.make_ranking(n_queries=40, n_docs=10, n_features=4, n_grades=4, noise=0.7, random_state=2)


def test_a_measure_of_grades_has_candidates_on_grades_with_its_own_settings(graded):
    data = RankingData(graded.train.X, graded.train.y, graded.train.qid)
    measure = metrics.NDCG(k=3, gain=(0, 1, 2, 5), discount="kdd08")
    found = graded_candidates(measure, data, 1)
    assert list(found) == ["graded AUC", "graded DORM@3", "graded NDCG@3", "graded NDCG@3, ramp"]
    assert [model.bound for model in found.values()] == ["convex", "convex", "convex", "ramp"]
    for name, model in found.items():
        assert model.relevant_from is None
        (criterion,) = model.parsed_criteria()
        if name != "graded AUC":
            assert (criterion.k, criterion.gain, criterion.discount) == (3, (0, 1, 2, 5), "kdd08")
            assert criterion.measure(None) == measure
    # Binary candidates stand beside them.
    names = [trial.name for trial in train_for(measure, graded.train, graded.validation, Cs=[1.0]).selection_.trials]
    assert set(found) | {"AUC", "MAP", "NDCG-NC", "AUC + MAP + NDCG-NC", "NDCG@3", "NDCG@3, ramp"} == set(names)
    assert len(names) == 10


def test_err_is_trained_on_grades(graded):
    model = train_for(metrics.ERR(k=5), graded.train, graded.validation, Cs=[1.0])
    names = {trial.name for trial in model.selection_.trials}
    assert {"graded ERR@5", "graded ERR@5, ramp", "graded DORM@5", "graded AUC", "AUC", "MAP"} <= names
    assert not hasattr(model, "polish_")
    (winner,) = (trial for trial in model.selection_.trials if trial.name == model.selection_.winner)
    assert winner.validation <= model.selection_.trials[0].validation


def test_two_grades_are_trained_once_as_binary_relevance(fold):
    selection = train_for(metrics.NDCG(k=5), fold.train, fold.validation, Cs=[1.0]).selection_
    assert len(selection.trials) == 6
    assert not any(trial.name.startswith("graded") for trial in selection.trials)
    behind = replace(selection, winner=[trial.name for trial in selection.trials if not trial.dropped][-1])
    assert behind.reason.endswith("preferred because it optimises the measure directly.")
    data = RankingData(fold.train.X, fold.train.y, fold.train.qid)
    assert list(graded_candidates(metrics.ERR(k=5), data, 1)) == ["graded ERR@5", "graded ERR@5, ramp"]


def test_the_best_candidate_on_grades_is_chosen_unless_a_binary_one_is_clearly_better(monkeypatch, graded):
    from structrank.selection import matching

    original = matching._try

    def shifted(gain):
        def shift(name, *arguments):
            tried = original(name, *arguments)
            if name != "MAP":
                return tried
            values = tried.values + gain * np.arange(tried.values.size)
            return replace(tried, values=values, trial=replace(tried.trial, validation=2.0))

        monkeypatch.setattr(matching, "_try", shift)
        return train_for(metrics.NDCG(k=5), graded.train, graded.validation, Cs=[1.0]).selection_

    assert shifted(1.0).winner == "MAP"
    selection = shifted(-1.0)
    assert selection.winner == next(trial.name for trial in selection.trials if trial.name.startswith("graded"))
    assert "is behind MAP by " in selection.reason
    assert selection.reason.endswith("preferred because it is trained on grades, which the measure uses.")


def test_labels_without_irrelevant_documents_are_trained_on_grades_alone(graded):
    train, validation = (Dataset(part.X, part.y + 1, part.qid) for part in (graded.train, graded.validation))
    selection = train_for(metrics.NDCG(k=5), train, validation, Cs=[1.0]).selection_
    assert {trial.name.split()[0] for trial in selection.trials} == {"graded"}


def test_a_cutoff_beyond_the_lattice_uses_the_permutation_map(rng):
    data = RankingData(rng.normal(size=(80, 2)), np.arange(80) % 5, np.repeat([0, 1], 40))
    found = graded_candidates(metrics.NDCG(k=30), data, 1)
    assert list(found) == ["graded AUC", "graded NDCG@30", "graded NDCG@30, ramp"]
    assert [found[name].feature_map for name in list(found)[1:]] == [Permutation(cut=30)] * 2
    few = RankingData(data.X, np.minimum(data.labels, 2), np.repeat([0, 1], 40))
    assert graded_candidates(metrics.NDCG(k=30), few, 1)["graded NDCG@30"].feature_map == "po"


def test_notes_say_once_that_binary_gains_do_not_use_grades(graded):
    named = train_for("ndcg@5", graded.train, graded.validation, Cs=[1.0])
    (note,) = (note for note in named.notes_ if note.startswith("Labels have more than two grades"))
    assert note.endswith("; metrics.NDCG(k=5, gain='exp2') uses grades.")
    for measure in (metrics.NDCG(k=5), "map"):
        notes = train_for(measure, graded.train, graded.validation, Cs=[1.0]).notes_
        assert not any(note.startswith("Labels") for note in notes)


def test_invalid_arguments_of_train_for_are_rejected(fold):
    train, validation = fold.train, fold.validation
    with pytest.raises(ValueError, match=r"choose one of: 'auc', .*'map', 'mrr\[@k\]', 'ndcg\[@k\]'"):
        train_for("p@5", train, validation)
    with pytest.raises(ValueError, match="validation part: 0 of its queries have different labels; expected at least 1"):
        train_for("err@5", train, Dataset(validation.X, np.ones(len(validation.y)), validation.qid))
    with pytest.raises(ValueError, match="measure 'precision' is not known"):
        train_for("precision", train, validation)
    with pytest.raises(ValueError, match="Cs is empty"):
        train_for("map", train, validation, Cs=[])
    with pytest.raises(ValueError, match="Cs=-1 is not valid"):
        train_for("map", train, validation, Cs=[-1])
    with pytest.raises(ValueError, match=r"train is a NoneType; expected a Dataset, such as structrank\.datasets\.Dataset"):
        train_for("map", None)
    with pytest.raises(ValueError, match=r"train is a Fold; expected a Dataset, such as fold\.train"):
        train_for("map", Fold(train, None, validation))
    with pytest.raises(ValueError, match="validation is a int; expected a Dataset"):
        train_for("map", train, 3)
    with pytest.raises(ValueError, match="validation part: X has 2 features, but training is expecting 5"):
        train_for("map", train, Dataset(validation.X[:, :2], validation.y, validation.qid))
    with pytest.raises(ValueError, match="validation part: 0 of its queries have both relevant"):
        train_for("map", train, Dataset(validation.X, np.zeros(len(validation.y)), validation.qid))
    with pytest.raises(ValueError, match="validation part: y contains NaN at row 0"):
        train_for("map", train, Dataset(validation.X, np.full(len(validation.y), np.nan), validation.qid))
    first = train.qid == train.qid[0]
    with pytest.raises(ValueError, match=r"train part: 1 of its queries .* or a validation part"):
        train_for("map", Dataset(train.X[first], train.y[first], train.qid[first]))


def test_relevant_from_is_taken_from_the_measure():
    fold = datasets.make_ranking(n_queries=30, n_docs=15, n_features=4, n_grades=4, noise=0.7, random_state=0)
    for measure, relevant_from in ((metrics.NDCG(k=5, gain="binary", relevant_from=3), 3), (metrics.MAP(relevant_from=2), 2)):
        assert train_for(measure, fold.train, fold.validation, Cs=[1.0]).relevant_from == relevant_from
    unused = metrics.NDCG(k=5, gain="exp2", relevant_from=3)
    assert train_for(unused, fold.train, fold.validation, Cs=[1.0]).relevant_from in (None, 1)


def test_data_without_training_signal_warn():
    constant = Dataset(np.ones((40, 2)), np.tile([0, 1], 20), np.repeat(range(4), 10))
    with pytest.warns(StructRankWarning, match="has learned nothing"):
        train_for("map", constant, Cs=[1.0])


def test_columns_in_another_order_are_rejected(fold):
    pd = pytest.importorskip("pandas")
    train, validation = (
        Dataset(pd.DataFrame(part.X, columns=list("abcde")), part.y, part.qid) for part in (fold.train, fold.validation)
    )
    reordered = Dataset(validation.X[list("edcba")], validation.y, validation.qid)
    with pytest.raises(ValueError, match="validation part: column 0 of X is 'e', but 'a' in training"):
        train_for("map", train, reordered, Cs=CS)


def test_refitting_removes_the_selection_and_the_polish(fold):
    model = train_for("map", fold.train, fold.validation, Cs=CS)
    assert hasattr(model, "polish_")
    model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    assert not hasattr(model, "polish_")
    assert not hasattr(model, "selection_")
