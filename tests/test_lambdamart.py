"""LambdaMART: lambdas against brute force, accuracy against LightGBM's lambdarank, several objectives, and invalid input."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from structrank import StructRankWarning, datasets, load_model, metrics
from structrank.comparison.significance import paired_t_test
from structrank.learners import (
    LambdaAgreementDisplay,
    LambdaContributionDisplay,
    LambdaMART,
    TopLabelsDisplay,
    labels_at_top,
    lambda_agreement,
    lambda_contribution,
)
from structrank.learners.mart import _Lambdas
from structrank.learners.objectives import CrossEntropy, Graded, IterationDependent, Sigmoid, Tier
from structrank.learners.schedules import Exponential, Linear
from structrank.training.data import RankingData

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(
        n_queries=80, n_docs=(5, 20), n_features=5, n_grades=4, noise=0.3, relevant_share=0.4, random_state=0
    )


@pytest.fixture(scope="module")
def clicks(fold):
    return datasets.make_click_labels(fold.train.X, fold.train.y, fold.train.qid, random_state=0)


def fit(part, *arguments, labels=None, validation=None, callback=None, sample_weight=None, **parameters):
    model = LambdaMART(*arguments, **{"n_estimators": 10, **parameters})
    options = {"labels": labels, "validation": validation, "callback": callback, "sample_weight": sample_weight}
    return model.fit(part.X, part.y, qid=part.qid, **options)


def ndcg(part, scores, per_query=False):
    return metrics.evaluate(part.y, scores, part.qid, "ndcg@10", per_query=per_query)["ndcg@10"]


# --- lambdas ----------------------------------------------------------------------------------------------------------


def brute_force(scores, labels, qid, measure, margin, cost, equal=None):
    """Compute lambdas and second derivatives pair by pair, re-evaluating the measure of the whole list after each swap."""
    force, bend = np.zeros(len(scores)), np.zeros(len(scores))
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        order = rows[np.argsort(-scores[rows], kind="stable")]
        places = -np.arange(len(order), dtype=float)
        before = metrics.evaluate(labels[order], places, None, measure)[measure]
        for a in range(len(order)):
            for b in range(len(order)):
                i, j = order[a], order[b]
                if not labels[i] > labels[j] or (equal is not None and equal[i] != equal[j]):
                    continue
                swapped = order.copy()
                swapped[[a, b]] = swapped[[b, a]]
                weight = abs(metrics.evaluate(labels[swapped], places, None, measure)[measure] - before)
                o = scores[i] - scores[j]
                if margin is not None:
                    weight /= margin + abs(o)
                p = 1 / (1 + np.exp(o))
                first, second = (p, p * (1 - p)) if cost == "cross-entropy" else (p * (1 - p), p * (1 - p) * (1 - 2 * p))
                force[[i, j]] += weight * first, -weight * first
                bend[[i, j]] += weight * second
    return np.nan_to_num(force), np.nan_to_num(bend)


@pytest.mark.parametrize("margin", [None, 0.01])
@pytest.mark.parametrize(
    ("objective", "cost"),
    [
        (CrossEntropy("ndcg@3"), "cross-entropy"),
        (CrossEntropy("map"), "cross-entropy"),
        (CrossEntropy("mrr"), "cross-entropy"),
        (Sigmoid("ndcg"), "sigmoid"),
    ],
)
def test_gradients_equal_brute_force_over_pairs(objective, cost, margin, rng):
    qid = rng.permutation(np.repeat([0, 1, 2], 7))
    labels, scores = rng.integers(0, 3, 21).astype(float), rng.normal(size=21)
    lambdas = _Lambdas(objective, RankingData(np.zeros((21, 1)), labels, qid), {}, 1, True, margin)
    gradient, second = lambdas(scores, 0)
    force, bend = brute_force(scores, labels, qid, objective.measure, margin, cost)
    assert gradient == pytest.approx(-force, abs=1e-12)
    assert second == pytest.approx(bend, abs=1e-12)
    for query in range(3):
        assert abs(gradient[qid == query].sum()) < 1e-12


@pytest.mark.parametrize("margin", [None, 0.01])
def test_lambdas_of_a_tier_are_of_pairs_tied_in_the_tiers_above(margin, rng):
    n, weight = 24, 0.3
    qid, labels, scores = np.repeat([0, 1], 12), rng.integers(0, 3, n).astype(float), rng.normal(size=n)
    clicks = np.where(rng.random(n) < 0.7, rng.integers(1, 5, n) / 4, np.nan)
    fresh = rng.random(n)
    data = RankingData(np.zeros((n, 1)), labels, qid)
    first, _ = brute_force(scores, labels, qid, "ndcg", margin, "cross-entropy")
    second, _ = brute_force(scores, clicks, qid, "cndcg", margin, "cross-entropy", equal=labels)
    two = Graded((Tier("clicks", "cndcg", weight),), first="ndcg")
    gradient, _ = _Lambdas(two, data, {"clicks": clicks}, 1, True, margin)(scores, 0)
    assert gradient == pytest.approx(-((1 - weight) * first + weight * second), abs=1e-12)

    pairs = list(zip(labels, np.nan_to_num(clicks, nan=-1.0), strict=True))
    both = np.array([pairs.index(pair) for pair in pairs])
    third, _ = brute_force(scores, fresh, qid, "cndcg@5", margin, "cross-entropy", equal=both)
    assert np.abs(third).max() > 0
    three = Graded((Tier("clicks", "cndcg", weight), Tier("fresh", "cndcg@5", 0.1)), first="ndcg")
    gradient, _ = _Lambdas(three, data, {"clicks": clicks, "fresh": fresh}, 1, True, margin)(scores, 0)
    assert gradient == pytest.approx(-(0.6 * first + weight * second + 0.1 * third), abs=1e-12)


def test_normalised_lambdas_have_the_weight_of_the_query_as_standard_deviation(fold, rng):
    data = RankingData(fold.train.X, fold.train.y, fold.train.qid, np.where(fold.train.qid % 2, 1.0, 3.0))
    scores = rng.normal(size=len(fold.train.y))
    gradient, second = _Lambdas(CrossEntropy(), data, {}, 1, False, None)(scores, 0)
    plain, _ = _Lambdas(CrossEntropy(), data, {}, 1, True, None)(scores, 0)
    for query in np.unique(fold.train.qid):
        rows, weight = fold.train.qid == query, 1.0 if query % 2 else 3.0
        assert (second[rows] == weight).all()
        assert gradient[rows].std() == pytest.approx(weight)
        assert gradient[rows] / weight == pytest.approx(plain[rows] / plain[rows].std())


@pytest.mark.parametrize("leaf_values", ["newton", "gradient"])
def test_leaves_hold_newton_steps_or_mean_lambdas(leaf_values, fold):
    part = fold.train
    model = fit(part, leaf_values=leaf_values, n_estimators=1, learning_rate=0.5, num_leaves=3)
    data = RankingData(part.X, part.y, part.qid)
    gradient, second = _Lambdas(CrossEntropy(), data, {}, 1, leaf_values == "newton", 0.01)(np.zeros(len(part.y)), 0)
    scores = model.predict(part.X)
    assert np.unique(scores).size == 3
    for value in np.unique(scores):
        leaf = scores == value
        assert value == pytest.approx(-0.5 * gradient[leaf].sum() / second[leaf].sum(), rel=1e-4)


# --- learning ---------------------------------------------------------------------------------------------------------


def generated(seed, n_queries=500, split=(0.4, 0.05, 0.55)):
    return datasets.make_ranking(
        n_queries=n_queries,
        n_docs=(10, 40),
        n_features=12,
        n_grades=5,
        noise=0.5,
        relevant_share=0.4,
        split=split,
        random_state=seed,
    )


def test_lambdamart_with_lightgbms_margin_is_as_accurate_as_its_lambdarank():
    differences = []
    for seed in range(4):
        made = generated(seed)
        sizes = np.unique(made.train.qid, return_counts=True)[1]
        theirs = lightgbm.LGBMRanker(n_estimators=60, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True)
        theirs.fit(made.train.X, made.train.y, group=sizes)
        ours = fit(made.train, n_estimators=60, margin=0.01)
        differences.append(ndcg(made.test, ours.predict(made.test.X)) - ndcg(made.test, theirs.predict(made.test.X)))
    assert abs(np.mean(differences)) < 0.005


def test_the_graded_objective_raises_cndcg_without_lowering_ndcg():
    clicked = ([], [])
    graded = ([], [])
    for seed in range(3):
        made = generated(seed, n_queries=800)
        train, test = made.train, made.test
        on_train, on_test = (datasets.make_click_labels(part.X, part.y, part.qid, random_state=seed) for part in (train, test))
        plain = fit(train, n_estimators=60).predict(test.X)
        both = fit(train, Graded(), labels={"clicks": on_train}, n_estimators=60).predict(test.X)
        for scores, by_clicks, by_grades in zip((plain, both), clicked, graded, strict=True):
            by_clicks.append(metrics.evaluate(on_test, scores, test.qid, "cndcg@10", per_query=True)["cndcg@10"])
            by_grades.append(ndcg(test, scores, per_query=True))
    plain, both = (np.concatenate(values) for values in clicked)
    assert np.nanmean(both) > np.nanmean(plain)
    assert paired_t_test(both, plain) < 0.01
    plain, both = (np.concatenate(values) for values in graded)
    assert np.nanmean(both) > np.nanmean(plain) - 0.005


@pytest.mark.parametrize("objective", ["ndcg", "map", "mrr@10", None, Sigmoid(), IterationDependent()])
def test_every_objective_learns(objective, fold):
    model = fit(fold.train, objective, n_estimators=30, min_child_samples=5)
    assert ndcg(fold.test, model.predict(fold.test.X)) > ndcg(fold.test, np.zeros(len(fold.test.y))) + 0.08
    assert model.score(fold.test.X, fold.test.y, qid=fold.test.qid) == ndcg(fold.test, model.predict(fold.test.X))


def test_iteration_dependent_lambdas_interpolate_between_two_objectives(fold):
    def scores(objective):
        return fit(fold.train, objective, leaf_values="gradient").predict(fold.train.X)

    late = Sigmoid("ndcg@3")
    assert np.array_equal(scores(IterationDependent("map", late, Linear(0.0, 0.0))), scores("map"))
    assert np.array_equal(scores(IterationDependent("map", late, Linear(1.0, 0.0))), scores(late))
    between = scores(IterationDependent("map", late, Linear(0.0, 0.2)))
    assert not np.array_equal(between, scores("map"))
    assert not np.array_equal(between, scores(late))


def test_schedules_follow_their_recursion():
    for schedule, step in ((Exponential(0.1, 50.0), lambda m: np.exp(-50.0 / m)), (Linear(0.25, 0.01), lambda m: 0.01)):
        weight, expected = schedule.start, []
        for m in range(1, 101):
            expected.append(min(weight, 1.0))
            weight += step(m)
        assert schedule.weights(100) == pytest.approx(expected, abs=1e-12)
        assert schedule.weights(100)[-1] == 1.0
        assert schedule.weights(1).tolist() == [schedule.start]


# --- training -----------------------------------------------------------------------------------------------------------


def test_validation_keeps_the_rounds_up_to_the_best_and_patience_stops(fold):
    model = fit(fold.train, n_estimators=200, patience=5, validation=fold.validation, learning_rate=0.3)
    followed = model.history_.to_frame()["validation"]
    assert model.stop_reason_ == "patience"
    assert model.n_iter_ == len(followed) == model.best_round_ + 5 < 200
    assert followed.idxmax() == model.best_round_
    part = fold.validation
    assert model.score(part.X, part.y, qid=part.qid) == pytest.approx(followed.max(), abs=1e-12)
    shorter = fit(fold.train, n_estimators=model.best_round_, learning_rate=0.3)
    assert np.array_equal(shorter.predict(part.X), model.predict(part.X))
    assert shorter.history_[-1].train == pytest.approx(shorter.score(fold.train.X, fold.train.y, qid=fold.train.qid), abs=1e-12)


def test_history_counts_pairs_and_a_callback_stops(fold):
    model = fit(fold.train, objective=None, callback=lambda entry: entry.round == 3)
    assert model.stop_reason_ == "callback"
    labels = [fold.train.y[fold.train.qid == query] for query in np.unique(fold.train.qid)]
    pairs = sum(int((of[:, None] > of[None]).sum()) for of in labels)
    assert [entry.effective_pairs for entry in model.history_] == [pairs] * 3


def test_staged_predictions_equal_those_of_fewer_trees(fold):
    model = fit(fold.train)
    staged = list(model.staged_predict(fold.test.X))
    assert len(staged) == 10
    assert staged[-1] == pytest.approx(model.predict(fold.test.X), abs=1e-12)
    assert staged[3] == pytest.approx(fit(fold.train, n_estimators=4).predict(fold.test.X), abs=1e-12)


def test_the_order_of_rows_does_not_change_the_model(fold, rng):
    X, y, qid = fold.train.X, fold.train.y, fold.train.qid
    expected = LambdaMART(n_estimators=10).fit(X, y, qid=qid).predict(fold.test.X)
    for order in (np.lexsort((-y, qid)), np.lexsort((y, qid)), rng.permutation(len(y))):
        model = LambdaMART(n_estimators=10).fit(X[order], y[order], qid=qid[order])
        np.testing.assert_allclose(model.predict(fold.test.X), expected, rtol=1e-9)


def test_containers_and_threads_do_not_change_the_model(fold):
    part = fold.train
    expected = fit(part).predict(fold.test.X)
    names = [f"f{i}" for i in range(5)]
    frame = LambdaMART(n_estimators=10).fit(pd.DataFrame(part.X, columns=names), part.y, qid=part.qid.astype(str))
    assert np.array_equal(frame.predict(pd.DataFrame(fold.test.X, columns=names)), expected)
    assert frame.feature_names_in_.tolist() == names
    sparse = LambdaMART(n_estimators=10).fit(scipy.sparse.csr_array(part.X), part.y, qid=part.qid)
    assert np.array_equal(sparse.predict(scipy.sparse.coo_matrix(fold.test.X)), expected)
    assert np.array_equal(fit(part, n_jobs=2).predict(fold.test.X), expected)
    rank = np.concatenate([np.arange(size) for size in np.unique(part.qid, return_counts=True)[1]])
    order = np.lexsort((part.qid, rank))  # the first row of every query, then the second, ...
    mixed = LambdaMART(n_estimators=10).fit(part.X[order], part.y[order], qid=part.qid[order])
    assert mixed.predict(fold.test.X) == pytest.approx(expected, abs=1e-6)


def test_query_weights_change_the_model(fold):
    part = fold.train
    plain = fit(part, reg_lambda=0.0, min_child_weight=0.0)
    double = fit(part, sample_weight=np.full(len(part.y), 2.0), min_child_weight=0.0)
    assert double.predict(part.X) == pytest.approx(plain.predict(part.X), abs=1e-6)
    half = np.where(part.qid < np.median(part.qid), 1.0, 1e-6)
    uneven = fit(part, sample_weight=half, min_child_weight=0.0)
    assert not np.allclose(uneven.predict(part.X), plain.predict(part.X))


def test_sampling_is_reproducible_by_seed(fold):
    drawn = [fit(fold.train, subsample=0.5, colsample_bytree=0.6, random_state=seed).predict(fold.test.X) for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_data_that_no_tree_can_split_raise_or_warn(fold):
    with pytest.raises(ValueError, match="X has no feature that could split its 3 documents into leaves of at least min_c"):
        LambdaMART().fit([[0.0], [1.0], [2.0]], [0, 1, 2], qid=0)
    with pytest.raises(ValueError, match="X has no feature that could split"):
        LambdaMART().fit(np.ones_like(fold.train.X), fold.train.y, qid=fold.train.qid)
    with pytest.warns(StructRankWarning, match="No tree could be grown.*min_child_weight=1e\\+09"):
        model = fit(fold.train, min_child_weight=1e9)
    assert model.stop_reason_ == "no split"
    assert not model.predict(fold.test.X).any()


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective",
    ["map", Graded((Tier("clicks", weight=0.2),)), IterationDependent(late=Sigmoid("ndcg@3", 0.5), schedule=Linear())],
)
def test_loaded_models_equal_the_saved_models(objective, fold, clicks, tmp_path):
    labels = {"clicks": clicks} if isinstance(objective, Graded) else None
    model = fit(fold.train, objective, labels=labels)
    model.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict(fold.test.X), model.predict(fold.test.X))
    assert loaded.history_.to_frame().equals(model.history_.to_frame())
    model.to_lightgbm(tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert booster.num_trees() == 10
    assert np.array_equal(booster.predict(fold.test.X), model.predict(fold.test.X))


def test_clones_have_the_same_parameters():
    model = LambdaMART(Graded(), measure="map", learning_rate=0.2)
    assert clone(model).get_params() == model.get_params()


# --- invalid arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"objective": "p@10"}, "measure 'p@10' has no lambdas"),
        ({"objective": "best"}, "measure 'best' is not known"),
        ({"measure": "best"}, "measure 'best' is not known"),
        ({"leaf_values": "median"}, "leaf_values='median' is not known"),
        ({"objective": Sigmoid(), "leaf_values": "newton"}, "choose 'gradient' or 'auto'"),
        ({"margin": 0}, "margin=0 is not valid"),
        ({"n_estimators": 0}, "n_estimators=0 is not valid"),
        ({"num_leaves": 1}, "num_leaves=1 is not valid"),
        ({"num_leaves": 2**31}, "num_leaves=2147483648 is not valid: .* at most 131072"),
        ({"learning_rate": "fast"}, "learning_rate='fast' is not valid"),
        ({"learning_rate": 1e308}, r"learning_rate=1e\+308 is too large: the scores overflowed"),
        ({"min_child_samples": 2**31}, "min_child_samples=2147483648 is not valid: .* at most 2147483647"),
        ({"min_child_samples": 2.5}, r"min_child_samples=2\.5 is not valid"),
        ({"reg_lambda": -1}, "reg_lambda=-1 is not valid"),
        ({"subsample": 1e-9}, "subsample=1e-09 of .* documents is less than one"),
        ({"subsample": 1.5}, r"subsample=1\.5 is not valid: expected a number above 0 and at most 1"),
        ({"patience": 0}, "patience=0 is not valid"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"random_state": None}, "random_state=None is not valid"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message, fold):
    with pytest.raises(ValueError, match=message):
        fit(fold.train, **parameters)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IterationDependent(schedule="cosine"), "schedule='cosine' is not known; choose one of: 'linear', 'expo"),
        (lambda: IterationDependent(early="speed"), "measure 'speed' is not known"),
        (lambda: Linear(start=1.5), r"start=1\.5 is not valid"),
        (lambda: Exponential(rate=-1), "rate=-1 is not valid"),
        (lambda: Sigmoid(centre="middle"), "centre='middle' is not valid"),
        (lambda: Tier(labels=3), "labels=3 is not valid"),
        (lambda: Tier(weight=1.0), r"weight=1\.0 is not valid"),
        (lambda: Tier(measure="auc"), "measure 'auc' has no lambdas"),
        (lambda: Graded(()), r"tiers=\(\) is not valid"),
        (lambda: Graded("clicks"), "tiers='clicks' is not valid"),
        (lambda: Graded((Tier(), Tier())), "label source twice"),
        (lambda: Graded((Tier(weight=0.6), Tier("b", weight=0.4))), "sum to 1; expected less than 1"),
    ],
)
def test_invalid_objectives_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def with_value(clicks, row, value):
    changed = clicks.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda c: None, "labels has no 'clicks', which the objective needs"),
        (lambda c: {"click": c}, "labels has no 'clicks'"),
        (lambda c: {"clicks": c, "dwell": c}, "labels has 'dwell', which the objective does not read"),
        (lambda c: c, "labels is a ndarray; expected a dict"),
        (lambda c: {"clicks": c[:-1]}, r"labels\['clicks'\] has \d+ entries but X has"),
        (lambda c: {"clicks": with_value(c, 7, 1.5)}, r"labels\['clicks'\] contains 1\.5 at row 7 .* must lie in \[0, 1\]"),
        (lambda c: {"clicks": with_value(c, 7, -0.1)}, r"labels\['clicks'\] contains -0\.1 at row 7"),
        (lambda c: {"clicks": with_value(c, 7, np.inf)}, r"labels\['clicks'\] contains inf at row 7"),
        (lambda c: {"clicks": np.full(c.shape, np.nan)}, r"labels\['clicks'\] is nan at every row"),
        (lambda c: {"clicks": ["many"] * len(c)}, r"labels\['clicks'\] has 'many' at row 0"),
    ],
)
def test_invalid_label_sources_are_rejected(labels, message, fold, clicks):
    with pytest.raises(ValueError, match=message):
        fit(fold.train, Graded(), labels=labels(clicks))


def test_unused_label_sources_are_rejected(fold, clicks):
    with pytest.raises(ValueError, match="labels has 'clicks', which the objective does not read; it reads none"):
        fit(fold.train, labels={"clicks": clicks})


def test_data_without_training_signal_and_invalid_validation_are_rejected(fold):
    part = fold.train
    with pytest.raises(ValueError, match="no query carries a training signal"):
        LambdaMART().fit(part.X, np.ones(len(part.y)), qid=part.qid)
    with pytest.raises(ValueError, match="validation: X has 4 features"):
        fit(part, validation=(part.X[:, :4], part.y, part.qid))
    with pytest.raises(ValueError, match="validation: ndcg@10 is undefined for every query"):
        fit(part, validation=(part.X, np.zeros(len(part.y)), part.qid))
    with pytest.raises(ValueError, match="callback=3 is not valid"):
        fit(part, callback=3)
    with pytest.raises(ValueError, match="X has 4 features, but LambdaMART is expecting 5"):
        fit(part).predict(part.X[:, :4])


def test_a_failed_fit_does_not_change_the_earlier_model(fold):
    model = fit(fold.train)
    before = model.predict(fold.test.X)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(fold.train.X, np.full(len(fold.train.y), np.nan), qid=fold.train.qid)
    assert np.array_equal(model.predict(fold.test.X), before)


# --- diagnostics ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    """A few short queries and a model trained on them."""
    part = datasets.make_ranking(
        n_queries=8, n_docs=8, n_features=3, n_grades=4, relevant_share=0.6, split=(0.5, 0.25, 0.25), random_state=2
    ).train
    return part, fit(part, min_child_samples=2, n_estimators=5)


def test_agreement_equals_brute_force(small):
    part, model = small
    clicks = datasets.make_click_labels(part.X, part.y, part.qid, random_state=0)
    found = lambda_agreement(model, part.X, part.y, part.qid, {"clicks": clicks}, every=2)
    assert found.index.tolist() == [1, 3, 5]
    y = part.y.astype(float)
    for number, scores in enumerate(model.staged_predict(part.X), start=1):
        if number not in found.index:
            continue
        first, _ = brute_force(scores, y, part.qid, "ndcg@30", None, "cross-entropy")
        for name, labels, equal in (
            ("clicks, all pairs", np.nan_to_num(clicks), None),
            ("clicks, pairs equal above", clicks, y),
        ):
            second, _ = brute_force(scores, labels, part.qid, "cndcg@30", None, "cross-entropy", equal)
            expected = np.mean((second == 0) | (np.sign(second) == np.sign(first)))
            assert found.loc[number, name] == pytest.approx(expected, abs=1e-12)


def test_contributions_equal_brute_force(small):
    part, model = small
    found = lambda_contribution(model, part.X, part.y, part.qid)
    assert found.columns.tolist() == sorted(set(part.y.tolist()))
    scores = list(model.staged_predict(part.X))[2]
    y = part.y.astype(float)
    high = np.unique(y)[-2]
    shares = []
    for document in np.flatnonzero(y >= high):
        rows = np.flatnonzero(part.qid == part.qid[document])
        order = rows[np.argsort(-scores[rows], kind="stable")]
        discount = dict(zip(order, 1 / np.log2(2 + np.arange(len(order))), strict=True))
        forces = dict.fromkeys(np.unique(y), 0.0)
        for other in rows[y[rows] != y[document]]:
            better, worse = (document, other) if y[document] > y[other] else (other, document)
            gain = (2 ** y[better] - 2 ** y[worse]) * abs(discount[better] - discount[worse])
            forces[y[other]] += gain / (1 + np.exp(scores[better] - scores[worse]))
        shares.append(np.array(list(forces.values())) / sum(forces.values()))
    assert found.loc[3].to_numpy() == pytest.approx(np.mean(shares, axis=0), abs=1e-12)


def test_shares_of_labels_at_the_top_are_exact(small):
    part, model = small
    found = labels_at_top(model, part.X, part.y, part.qid, k=2)
    scores = model.predict(part.X)
    ranks = model.rank(part.X, qid=part.qid)
    assert len(scores) > 8
    expected = [np.mean(part.y[ranks <= 2] == grade) for grade in found.columns]
    assert found.loc[5].to_numpy() == pytest.approx(expected)


def test_displays_draw_a_line_for_each_column(small):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib (extra 'plot') is not installed")
    part, model = small
    clicks = datasets.make_click_labels(part.X, part.y, part.qid, random_state=0)
    arguments = {"model": model, "X": part.X, "y": part.y, "qid": part.qid}
    agreement = LambdaAgreementDisplay.from_estimator(**arguments, labels={"clicks": clicks})
    assert list(agreement.lines_) == ["clicks, all pairs", "clicks, pairs equal above"]
    contribution = LambdaContributionDisplay.from_estimator(**arguments)
    drawn = contribution.lines_[0.0].get_ydata()
    assert drawn == pytest.approx(100 * lambda_contribution(**arguments)[0.0].to_numpy())
    _, ax = plt.subplots()
    top = TopLabelsDisplay.from_estimator(**arguments, k=2, ax=ax)
    assert top.ax_ is ax
    assert ax.get_ylabel() == "share of the first ranks (%)"
    plt.close("all")


def test_invalid_arguments_of_diagnostics_are_rejected(small):
    part, model = small
    with pytest.raises(ValueError, match="expected a Graded"):
        lambda_agreement(model, part.X, part.y, part.qid, objective=CrossEntropy())
    with pytest.raises(ValueError, match="labels has no 'clicks'"):
        lambda_agreement(model, part.X, part.y, part.qid)
    with pytest.raises(ValueError, match="high=9 is above every label"):
        lambda_contribution(model, part.X, part.y, part.qid, high=9)
    with pytest.raises(ValueError, match="every=0 is not valid"):
        labels_at_top(model, part.X, part.y, part.qid, every=0)


def test_agreement_uses_the_schedule_of_the_first_tier(fold):
    part = fold.train
    clicks = {"clicks": datasets.make_click_labels(part.X, part.y, part.qid, random_state=0)}
    model = LambdaMART(n_estimators=4, min_child_samples=3).fit(part.X, part.y, qid=part.qid)
    never = Graded(first=IterationDependent(late=Sigmoid("ndcg@3"), schedule=Linear(0.0, 0.0)))
    found = [lambda_agreement(model, part.X, part.y, part.qid, clicks, one) for one in (Graded(), never)]
    assert found[0].equals(found[1])


def test_graded_objectives_cannot_be_nested():
    with pytest.raises(ValueError, match="it has tiers itself; list all tiers in `tiers`"):
        Graded(first=Graded())
