"""Ties of ideal rankings ordered by score: the bound against all rankings, its training, and where it is not supported."""

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from structrank import StructRankSVM, StructRankTrees, StructRankWarning, criteria, datasets, load_model, most_violated
from structrank.cli.descriptions import model_facts, model_lines
from structrank.feature_maps import PartialOrder, Permutation, parse
from structrank.training.data import RankingData
from structrank.training.executor import InProcess
from structrank.training.plotting import HistoryDisplay
from structrank.training.ramp import LinearisedRisk
from structrank.training.risk import Risk
from structrank.training.structured_loss import StructuredLoss

ORDERED = Permutation("sqrt", ties="score")
NOTE = "Trained with the ties of ideal rankings ordered by score, so the bound is not convex: certificate_ is that of the last"


def make_queries(rng, n_grades, n_queries=12):
    """Make queries of two to five documents, with two different labels in each; a third have documents of equal features."""
    X, y, qid = [], [], []
    for number, n in enumerate(rng.integers(2, 6, n_queries)):
        X.append(rng.integers(-1, 2, (n, 3)) / 2.0 if number % 3 == 0 else rng.normal(size=(n, 3)))
        y.append(rng.permutation([n_grades - 1, 0, *rng.integers(0, n_grades, n - 2)]))
        qid.append(np.full(n, number))
    return np.concatenate(X), np.concatenate(y), np.concatenate(qid)


def risk_of(criterion, feature_map, data, relevant_from=1, formulation="n-slack"):
    loss = StructuredLoss.of([criterion], feature_map, relevant_from=relevant_from)
    return Risk(InProcess([RankingData(*data)]), loss, formulation)


def by_exhaustion(criterion, decay, scores, labels, relevant_from):
    """Return the bound, with the largest w.phi of the ideal rankings, and the loss of the order by scores."""
    rankings = [np.array(order) for order in itertools.permutations(range(len(scores)))]
    phis = np.array([scores[order] @ decay for order in rankings])
    losses = np.array([criterion.loss(order, labels, relevant_from) for order in rankings])
    grades = labels if relevant_from is None else labels >= relevant_from
    is_ideal = [(np.diff(grades[order].astype(float)) <= 0).all() for order in rankings]
    worst_first = np.lexsort((grades, -scores))
    return (phis + losses).max() - phis[is_ideal].max(), criterion.loss(worst_first, labels, relevant_from)


@pytest.mark.parametrize("n_grades", [2, 4])
def test_only_the_permutation_map_depends_on_which_ideal_ranking_is_compared_with(n_grades, rng):
    depends = dict.fromkeys(("po", "mrr", "dorm"), False)
    for _ in range(20):
        labels = rng.permutation([n_grades - 1, 0, *rng.integers(0, n_grades, 3)])
        rankings = [np.array(order) for order in itertools.permutations(range(len(labels)))]
        ideal = [order for order in rankings if (np.diff(labels[order]) <= 0).all()]
        for name in depends:
            feature_map = parse(name)
            of_each = np.array([feature_map.coefficients(order, labels) for order in ideal])
            depends[name] |= bool((np.ptp(of_each, axis=0) > 0).any())
            assert of_each.mean(axis=0) == pytest.approx(feature_map.ideal_coefficients(labels))
    assert depends == {"po": False, "mrr": False, "dorm": True}


def test_a_name_stands_for_the_map(tmp_path):
    assert parse("dorm(ties=score)", decay="log@5") == Permutation("log", cut=5, ties="score")
    train = make_lists()
    named = fit(train, "dorm", feature_map="dorm(ties=score)", decay="sqrt@30")
    assert np.array_equal(named.coef_, fit(train, "dorm", feature_map=Permutation("sqrt@30", ties="score")).coef_)
    named.save(tmp_path / "m.structrank")
    assert load_model(tmp_path / "m.structrank").feature_map == "dorm(ties=score)"


SETTINGS = [
    (criteria.DORM(k=2), 1, "lattice"),
    (criteria.DORM(k=3), 1, "scipy"),
    (criteria.MAP(), 1, "lattice"),
    (criteria.MRR(k=2), 1, "lattice"),
    (criteria.DORM(k=3), None, "scipy"),
    (criteria.NDCG(k=None, gain="linear"), None, "scipy"),
]


@pytest.mark.parametrize(("criterion", "relevant_from", "assignment"), SETTINGS, ids=str)
@pytest.mark.parametrize("cut", [None, 2])
def test_the_bound_equals_exhaustive_search(criterion, relevant_from, assignment, cut, rng):
    feature_map = Permutation("log", cut=cut, assignment=assignment, ties="score")
    X, y, qid = make_queries(rng, n_grades=3)
    risk = risk_of(criterion, feature_map, (X, y, qid), relevant_from)
    for scale in (0.1, 1.0, 10.0):
        w = scale * rng.normal(size=3)
        convex, ideal, predicted = (risk.plane(w, kind) for kind in ("risk", "ideal", "prediction"))
        bound = convex.value - ideal.value
        for q in range(qid[-1] + 1):
            scores, labels = X[qid == q] @ w, y[qid == q]
            expected, loss = by_exhaustion(criterion, feature_map.decays(len(labels)), scores, labels, relevant_from)
            found = most_violated(scores, labels, criterion, feature_map=feature_map, relevant_from=relevant_from)
            assert bound[q] == pytest.approx(expected, abs=1e-9)
            assert found.value == pytest.approx(expected, abs=1e-9)
            assert found.value == pytest.approx(found.coefficients @ scores + found.loss, abs=1e-9)
            assert ideal.offset[q] == pytest.approx(loss, abs=1e-9)
            assert loss - 1e-9 <= convex.value[q] - predicted.value[q] <= expected + 1e-9 <= convex.value[q] + 2e-9


@pytest.mark.parametrize("relevant_from", [1, None])
@pytest.mark.parametrize("formulation", ["auto", "n-slack"])
def test_the_linearised_risk_lies_above_the_bound_and_touches_it(relevant_from, formulation, rng):
    risk = risk_of(criteria.DORM(k=3), ORDERED, make_queries(rng, 3), relevant_from, formulation)
    center = rng.normal(size=3)
    linearised = LinearisedRisk(risk, risk.plane(center, "ideal").slope)
    for w in (*rng.normal(size=(20, 3)), center):
        value, bound = linearised.plane(w).value, risk.plane(w).value - risk.plane(w, "ideal").value
        assert (value >= bound - 1e-9).all()
    assert value == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("feature_map", [PartialOrder(), Permutation()], ids=["po", "mean"])
def test_the_other_feature_maps_are_compared_as_before(feature_map, rng):
    data = make_queries(rng, 2)
    parts = [(criteria.MAP(), feature_map), (criteria.DORM(k=3), ORDERED)]
    combined = Risk(
        InProcess([RankingData(*data)]), StructuredLoss.of(*map(list, zip(*parts, strict=True)), weights=[1.0, 3.0]), "n-slack"
    )
    ordered, w = risk_of(*parts[1], data), rng.normal(size=3)
    n = ordered.weights.shape[0]
    for name in ("slope", "value"):
        found, expected = getattr(combined.plane(w, "ideal"), name), getattr(ordered.plane(w, "ideal"), name)
        assert not found[:n].any()
        assert np.array_equal(found[n:], expected)
        assert expected.any()


def make_lists(noise=0.7, n_grades=2, n_docs=60):
    return datasets.make_ranking(
        n_queries=40, n_docs=n_docs, n_features=8, noise=noise, relevant_share=0.3, n_grades=n_grades, random_state=0
    ).train


def fit(part, *arguments, **parameters):
    return StructRankSVM(*arguments, **parameters).fit(part.X, part.y, qid=part.qid)


@pytest.mark.parametrize("relevant_from", [1, None])
def test_training_learns_where_the_bound_of_the_mean_is_vacuous(relevant_from):
    settings, slacks = {"relevant_from": relevant_from, "tol": 1e-3}, []
    train = make_lists(*((0.7, 2) if relevant_from else (0.2, 3, 20)))
    for C in (0.1, 1.0, 100.0):
        model = fit(train, "dorm", C=C, feature_map=ORDERED, **settings)
        rounds = model.rounds_
        assert all(after.objective < before.objective for before, after in itertools.pairwise(rounds))
        assert {(one.C, one.kind) for one in rounds} == {(C, "ideal")}
        for one in rounds:
            assert one.objective == pytest.approx(0.5 * one.norm**2 + C * one.risk)
            assert one.loss <= one.risk + 1e-9
        assert rounds[-1].norm == pytest.approx(np.linalg.norm(model.coef_))
        assert model.health_.mean_slack == rounds[-1].risk
        assert not model.health_.vacuous
        assert model.stop_reason_ == "converged"
        # That of the last convex problem, which lies above the bound.
        assert rounds[-1].objective - C * 1e-3 <= model.certificate_.primal <= rounds[-2].objective + 1e-9
        assert model.certificate_.gap <= C * 1e-3
        assert any(note.startswith(NOTE) for note in model.notes_)
        slacks.append(model.health_.mean_slack)
    assert slacks[0] > slacks[1] > slacks[2]
    assert slacks[2] < 0.9
    if relevant_from:
        with pytest.warns(StructRankWarning, match="vacuous"):
            assert fit(train, "dorm", C=100.0, feature_map=Permutation(), **settings).health_.mean_slack > 0.95


def test_a_model_that_cannot_learn_is_called_vacuous_and_auto_uses_the_ramp():
    train = make_lists(noise=3.0)
    with pytest.warns(StructRankWarning, match="vacuous"):
        ordered = fit(train, "dorm", C=10.0, feature_map=ORDERED)
    assert ordered.health_.vacuous
    assert ordered.health_.objective_ratio <= 1.0 + 2e-3
    auto = fit(train, "dorm", C=10.0, feature_map=ORDERED, bound="auto")
    assert {one.kind for one in auto.rounds_} == {"prediction"}
    assert auto.notes_[0].startswith("Trained on the ramp bound")


def test_the_ramp_bound_is_the_same_for_both():
    train = make_lists()
    ramps = [fit(train, "dorm", C=1.0, feature_map=one, bound="ramp") for one in (ORDERED, Permutation("sqrt"))]
    assert np.array_equal(ramps[0].coef_, ramps[1].coef_)


def test_models_are_bit_identical_for_any_n_jobs_along_a_path_and_after_a_resumed_run(tmp_path):
    train = make_lists()
    expected = fit(train, "dorm", C=1.0, feature_map=ORDERED)
    assert np.array_equal(fit(train, "dorm", C=1.0, feature_map=ORDERED, n_jobs=2).coef_, expected.coef_)
    model = StructRankSVM("dorm", C=1.0, feature_map=ORDERED)
    for _ in range(2):  # the second run reads the passes of the first
        model.fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
        assert np.array_equal(model.coef_, expected.coef_)
    path = model.fit_path(train.X, train.y, qid=train.qid, Cs=[1.0, 10.0])
    assert path[0].rounds_[-1].objective == pytest.approx(expected.rounds_[-1].objective, abs=2e-3)


def test_a_warm_start_begins_at_the_earlier_model():
    train = make_lists()
    model = fit(train, "dorm", C=1.0, feature_map=ORDERED, warm_start=True)
    last = model.rounds_[-1]
    model.fit(train.X, train.y, qid=train.qid)
    assert model.rounds_[0].risk == pytest.approx(last.risk)


def test_a_file_keeps_the_option_and_the_rounds(tmp_path):
    model = fit(make_lists(), "dorm", C=1.0, feature_map=ORDERED)
    model.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert loaded.feature_map == ORDERED
    assert loaded.rounds_ == model.rounds_
    lines = dict(model_lines(model_facts(loaded)))
    assert lines["certificate"].startswith("of the last convex problem solved: objective")
    assert HistoryDisplay.from_estimator(loaded, ax=Figure().subplots()).lines_.keys() == {"bound", "training loss"}


def test_max_iter_ends_training_with_a_warning():
    with pytest.warns(StructRankWarning, match=r"max_iter=9; that of the last convex problem is within"):
        model = fit(make_lists(), "dorm", C=100.0, feature_map=ORDERED, max_iter=9)
    assert model.stop_reason_ == "max_iter"


def test_what_is_not_supported_is_rejected():
    with pytest.raises(ValueError, match="ties='median' is not known; choose one of: 'mean', 'score'"):
        Permutation(ties="median")
    with pytest.raises(ValueError, match=r"a slack for each criterion; use slack='separate'"):
        StructRankSVM(["map", "dorm"], feature_map=["po", ORDERED], slack="shared").check_parameters()
    with pytest.raises(ValueError, match="StructRankTrees does not support ties='score'"):
        StructRankTrees("dorm", feature_map=ORDERED).check_parameters()
