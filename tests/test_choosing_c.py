"""The choice of C: each held-out query counts once, ties go to the smallest C, and every caller follows the same rule."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score

from structrank import (
    StructRankSVM,
    StructRankSVMCV,
    StructRankWarning,
    choose_C,
    compare,
    cross_validate,
    datasets,
    load_model,
    metrics,
)
from structrank.datasets import Dataset
from structrank.selection.graded import graded_order

CS = (0.01, 1.0, 100.0)


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=60, n_docs=10, n_features=8, noise=1.0, random_state=2)


def data_of(part):
    return part.X, part.y, part.qid


def values_by_hand(fold, measure):
    """Return the measure of each C and query: validation queries, then each query by the models not trained on it."""
    train, found = fold.train, []
    rows = np.arange(len(train))
    splits = [(rows, fold.validation), *GroupKFold(3, shuffle=True, random_state=0).split(rows, groups=train.qid)]
    for learn, check in splits:
        part = check if isinstance(check, Dataset) else Dataset(train.X[check], train.y[check], train.qid[check])
        models = StructRankSVM("map").fit_path(train.X[learn], train.y[learn], qid=train.qid[learn], Cs=CS)
        scores = [model.predict(part.X) for model in models]
        evaluated = [metrics.evaluate(part.y, one, part.qid, measure, per_query=True)[measure] for one in scores]
        found.append(np.array(evaluated))
    return found


@pytest.mark.parametrize("measure", ["map", "mrr@3"])
def test_each_held_out_query_counts_once(fold, measure):
    values = values_by_hand(fold, measure)
    path = choose_C(*data_of(fold.train), measure=measure, Cs=CS[::-1], validation=fold.validation)
    assert path.means == pytest.approx(np.concatenate(values, axis=1).mean(axis=1), rel=1e-12)
    assert path.scores == pytest.approx(np.column_stack([one.mean(axis=1) for one in values]), rel=1e-12)
    assert CS[int(np.argmax(path.means))] == path.C
    assert path.to_frame().columns.tolist() == ["validation", "fold 1", "fold 2", "fold 3", "mean"]
    alone = choose_C(*data_of(fold.train), measure=measure, Cs=CS)
    assert alone.means == pytest.approx(np.concatenate(values[1:], axis=1).mean(axis=1), rel=1e-12)
    assert alone.trained is None


def test_ties_go_to_the_smallest_C(fold):
    assert choose_C(*data_of(fold.train), measure=metrics.MRR(relevant_from=0), Cs=[10.0, 0.1]).C == 0.1


def test_of_several_measures_the_next_decides_where_means_are_equal():
    fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=8, noise=0.4, random_state=0)
    columns = np.column_stack([np.concatenate(values_by_hand(fold, name), axis=1).mean(axis=1) for name in ("mrr@1", "map")])
    assert np.isclose(columns[:, 0], columns[:, 0].max()).sum() > 1
    expected = max(range(len(CS)), key=lambda row: tuple(columns[row].round(12)))
    how = {"Cs": CS, "validation": fold.validation}
    path = choose_C(*data_of(fold.train), measure=["mrr@1", "map"], **how)
    assert path.C == CS[expected] != choose_C(*data_of(fold.train), measure="mrr@1", **how).C
    assert path.means == pytest.approx(columns[:, 0], rel=1e-12)
    model = StructRankSVMCV(Cs=CS, measure=["mrr@1", "map"]).fit(*data_of(fold.train), validation=fold.validation)
    assert path.C == model.C_
    with pytest.raises(ValueError, match="measure is an empty list"):
        choose_C(*data_of(fold.train), measure=[])


def test_graded_order_is_lexicographic(rng):
    values = rng.integers(0, 3, size=(40, 3)) / 3
    assert graded_order(values).tolist() == sorted(range(40), key=lambda row: tuple(-values[row]))
    values[5] = values[7] = values.max(axis=0)
    values[7, 1] += 1e-14  # equal on paper
    assert graded_order(values[[7, 5]]).tolist() == graded_order(values[[5, 7]]).tolist() == [0, 1]
    assert graded_order([[np.nan, 1.0], [0.0, 0.0]]).tolist() == [1, 0]


def test_the_estimator_comparison_and_function_choose_the_same_model(fold):
    path = choose_C(*data_of(fold.train), "map", validation=fold.validation, Cs=CS)
    model = StructRankSVMCV("map", Cs=CS).fit(*data_of(fold.train), validation=fold.validation)
    (cell,) = compare({"made": fold}, {"row": StructRankSVM("map")}, "map", CS).cells
    assert path.C == model.C_ == cell.C
    assert np.array_equal(path.trained.coef_, model.coef_)
    assert np.array_equal(cell.scores, model.predict(fold.test.X))
    (row,) = compare({"made": fold}, {"row": StructRankSVMCV("map", Cs=CS)}, "map", [5.0]).cells
    assert row.C is None  # of its own Cs, with the validation part
    assert np.array_equal(row.scores, model.predict(fold.test.X))


def test_the_estimator_is_trained_on_all_queries_with_the_chosen_C(fold, tmp_path):
    model = StructRankSVMCV("ndcg@5", Cs=CS, cv=4).fit(*data_of(fold.train))
    plain = StructRankSVM("ndcg@5", C=model.C_).fit(*data_of(fold.train))
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.certificate_ == plain.certificate_
    assert model.scores_.shape == (3, 4)
    assert model.Cs_[np.argmax(model.mean_scores_)] == model.C_
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert (loaded.C_, repr(loaded)) == (model.C_, repr(model))
    assert loaded.score(*data_of(fold.test)) == model.score(*data_of(fold.test))


def test_without_refit_there_are_scores_but_no_model(fold):
    model = StructRankSVMCV("auc", Cs=CS).fit(*data_of(fold.train))
    model.set_params(refit=False).fit(*data_of(fold.train))
    assert model.C_ in CS
    with pytest.raises(NotFittedError):
        model.predict(fold.test.X)


def test_the_estimator_works_with_the_tools_of_sklearn(fold):
    model = StructRankSVMCV(["map", "ndcg@5"], Cs=CS, relevant_from=2, scale="std")
    assert clone(model).get_params() == model.get_params()
    assert {"C", "warm_start"} == set(StructRankSVM().get_params()) - set(model.get_params())
    model = StructRankSVMCV("map", Cs=CS)
    train = fold.train
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(model, train.X, train.y, cv=GroupKFold(2), params={"qid": train.qid, "groups": train.qid})
    assert ((scores > 0) & (scores < 1)).all()
    assert len(cross_validate(model, *data_of(train), n_splits=2).models) == 2


def test_weights_count_in_training_and_in_the_choice(fold):
    train = fold.train
    ignored = np.unique(train.qid)[::2]
    weights = np.where(np.isin(train.qid, ignored), 0.0, 2.0)
    kept = weights > 0
    with_weights = choose_C(*data_of(train), Cs=CS, sample_weight=weights)
    without = choose_C(train.X[kept], train.y[kept], train.qid[kept], Cs=CS)
    assert with_weights.means == pytest.approx(without.means, abs=1e-12)


def test_an_interrupted_choice_resumes_from_its_checkpoints(fold, tmp_path, monkeypatch):
    expected = StructRankSVMCV("map", Cs=CS).fit(*data_of(fold.train))
    fit, finished = StructRankSVM.fit_path, []

    def interrupted(self, *arguments, **settings):
        if len(finished) == 2:
            raise KeyboardInterrupt
        finished.append(settings["checkpoint"])
        return fit(self, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(StructRankSVM, "fit_path", interrupted)
        with pytest.raises(KeyboardInterrupt):
            StructRankSVMCV("map", Cs=CS).fit(*data_of(fold.train), checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["split-1", "split-2"]
    model = StructRankSVMCV("map", Cs=CS).fit(*data_of(fold.train), checkpoint=tmp_path)
    assert np.array_equal(model.coef_, expected.coef_)


def test_a_choice_on_a_validation_part_survives_ctrl_c(fold, monkeypatch):
    whole = choose_C(*data_of(fold.train), Cs=CS, validation=fold.validation)
    fit = StructRankSVM.fit_path

    def interrupted(self, X, *arguments, **settings):
        if X.labels.size < len(fold.train):
            raise KeyboardInterrupt
        return fit(self, X, *arguments, **settings)

    monkeypatch.setattr(StructRankSVM, "fit_path", interrupted)
    with pytest.warns(StructRankWarning, match=r"The choice of C was interrupted: .*chose C = .* on 12 queries"):
        path = choose_C(*data_of(fold.train), Cs=CS, validation=fold.validation)
    assert path.interrupted
    assert np.array_equal(path.scores[:, 0], whole.scores[:, 0])
    with pytest.raises(KeyboardInterrupt):
        compare({"made": fold}, {"row": StructRankSVM("map")}, "map", CS)


def test_invalid_input_is_rejected(fold):
    one = fold.train.qid == fold.train.qid[0]
    data = fold.train.X[one], fold.train.y[one], fold.train.qid[one]
    for arguments, text in (
        ({"Cs": []}, "Cs is empty"),
        ({"cv": 1}, "cv=1 is not valid"),
        ({"random_state": -1}, "random_state=-1 is not valid"),
        ({"validation": "vali.txt"}, "validation is a str; expected a Dataset"),
        ({"model": "mapp"}, "criterion='mapp' is not known"),
        ({"measure": "mapp"}, "measure 'mapp' is not known"),
        ({}, "1 queries to learn from are too few to choose C on inner folds; expected at least 2"),
    ):
        with pytest.raises(ValueError, match=text):
            choose_C(*data, **arguments)
    with pytest.raises(ValueError, match="the measure is undefined for all held-out queries"):
        choose_C(*data_of(fold.train), measure=metrics.MAP(relevant_from=9)).C  # noqa: B018
