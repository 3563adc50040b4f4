"""The ramp bound: the bound itself, the descent of its objective, when "auto" uses it, and the estimator."""

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from structrank import StructRankSVM, StructRankWarning, criteria, datasets, load_model, metrics
from structrank.oracles import auc_partial_order
from structrank.training.data import RankingData
from structrank.training.executor import InProcess
from structrank.training.ramp import LinearisedRisk, _Run
from structrank.training.risk import Risk
from structrank.training.run import Training
from structrank.training.structured_loss import StructuredLoss

CRITERIA = [
    criteria.AUC(),
    criteria.MAP(),
    criteria.NDCG(k=2),
    criteria.NDCG(k=None, discount="log2"),
    criteria.MRR(k=2),
    criteria.MRR(k=None),
    criteria.DORM(k=3),
]
PAIRS = [(criterion, name) for criterion in CRITERIA for name in criterion.oracles]
each_pair = pytest.mark.parametrize(("criterion", "map_name"), PAIRS, ids=lambda value: str(value))


def risk_of(criterion, map_name, X, y, qid, formulation="n-slack"):
    return Risk(InProcess([RankingData(X, y, qid)]), StructuredLoss.of([criterion], map_name), formulation)


def small_queries(rng, n_queries=10):
    """Make queries of up to five documents, with relevant and irrelevant documents in each."""
    sizes = rng.integers(2, 6, n_queries)
    y = np.concatenate([rng.permutation([1, 0, *rng.integers(0, 2, n - 2)]) for n in sizes])
    qid = np.repeat(np.arange(n_queries), sizes)
    return rng.normal(size=(y.size, 3)), y, qid


def by_exhaustion(criterion, feature_map, scores, relevant):
    """Return w.(phi(y) - phi(y*)) and the loss of every ranking of a query."""
    ideal = feature_map.ideal_coefficients(relevant)
    rankings = [np.array(order) for order in itertools.permutations(range(len(scores)))]
    leads = np.array([scores @ (feature_map.coefficients(order, relevant) - ideal) for order in rankings])
    return leads, np.array([criterion.loss(order, relevant) for order in rankings])


# --- the bound --------------------------------------------------------------------------------------------------------


@each_pair
def test_prediction_and_ramp_equal_exhaustive_search(criterion, map_name, rng):
    feature_map, _ = criteria.find_oracle(criterion, map_name)
    X, y, qid = small_queries(rng)
    risk = risk_of(criterion, map_name, X, y, qid)
    for scale in (0.1, 1.0, 10.0):
        w = scale * rng.normal(size=3)
        convex, predicted = risk.plane(w), risk.plane(w, "prediction")
        for q in range(qid[-1] + 1):
            leads, losses = by_exhaustion(criterion, feature_map, X[qid == q] @ w, y[qid == q] > 0)
            ramp = convex.value[q] - predicted.value[q]
            assert predicted.value[q] == pytest.approx(leads.max(), abs=1e-9)
            assert convex.value[q] == pytest.approx((leads + losses).max(), abs=1e-9)
            # Between the loss of the ranking of largest w.phi and the convex bound.
            assert losses[leads.argmax()] - 1e-9 <= ramp <= convex.value[q] + 1e-9


@each_pair
def test_the_plane_of_the_prediction_touches_it_from_below(criterion, map_name, rng):
    risk = risk_of(criterion, map_name, *small_queries(rng))
    w = rng.normal(size=3)
    plane = risk.plane(w, "prediction")
    assert -plane.slope @ w == pytest.approx(plane.value, abs=1e-9)
    for v in rng.normal(size=(20, 3)):
        assert (risk.plane(v, "prediction").value >= -plane.slope @ v - 1e-9).all()


@each_pair
def test_the_loss_of_the_prediction_is_that_of_the_sorted_order(criterion, map_name, rng):
    X, y, qid = small_queries(rng)
    w = rng.normal(size=3)
    measure = criterion.measure()
    reached = metrics.evaluate(y, X @ w, qid, measure, per_query=True)[measure.name]
    assert risk_of(criterion, map_name, X, y, qid).plane(w, "prediction").offset == pytest.approx(1 - reached, abs=1e-12)


def test_phi_mrr_predicts_a_ranking_other_than_the_order_by_scores(rng):
    X, y, qid = small_queries(rng, n_queries=30)
    w = rng.normal(size=3)
    predicted = risk_of(criteria.MRR(), "mrr", X, y, qid).plane(w, "prediction").value
    feature_map, differs = criteria.find_oracle(criteria.MRR(), "mrr")[0], 0
    for q in range(30):
        scores = X[qid == q] @ w
        differs += predicted[q] > scores @ feature_map.coefficients(np.argsort(-scores), y[qid == q] > 0) + 0.01
    assert differs > 5


@pytest.mark.parametrize("formulation", ["auto", "one-slack", "n-slack"])
@pytest.mark.parametrize(("criterion", "map_name"), [(criteria.NDCG(k=2), "dorm"), (criteria.MRR(k=2), "mrr")], ids=str)
def test_the_linearised_risk_lies_above_its_planes_and_above_the_ramp(criterion, map_name, formulation, rng):
    risk = risk_of(criterion, map_name, *small_queries(rng), formulation)
    center, w = rng.normal(size=(2, 3))
    linearised = LinearisedRisk(risk, risk.plane(center, "prediction").slope)
    plane = linearised.plane(w)
    assert plane.offset - plane.slope @ w == pytest.approx(plane.value, abs=1e-9)
    for v in (*rng.normal(size=(20, 3)), center):
        value = linearised.plane(v).value
        ramp = risk.plane(v).value - risk.plane(v, "prediction").value
        assert (value >= plane.offset - plane.slope @ v - 1e-9).all()
        assert (value >= ramp - 1e-9).all()
    assert value == pytest.approx(ramp, abs=1e-9)  # at the centre, where P was linearised
    assert linearised.evaluated[0][0] is w


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_lists():
    return make_long_lists(0)


def make_long_lists(seed):
    """Make lists so long, and labels so noisy, that the convex bound of criteria with a rank cutoff stays above 1."""
    return datasets.make_ranking(
        n_queries=60, n_docs=200, n_features=8, noise=2.0, relevant_share=0.1, split=(0.5, 0.1, 0.4), random_state=seed
    )


def fit(part, *arguments, **parameters):
    return StructRankSVM(*arguments, **parameters).fit(part.X, part.y, qid=part.qid)


def measure_of(model, part, name):
    scores = model.predict(part.X)
    return metrics.evaluate(part.y, scores, part.qid, name, gain="binary", discount="kdd08")[name]


@pytest.mark.parametrize(
    ("criterion", "parameters"),
    [
        ("auc", {}),
        ("map", {}),
        ("ndcg", {}),
        ("ndcg", {"feature_map": "po"}),
        ("mrr", {}),
        ("mrr", {"feature_map": "mrr"}),
        (["map", "mrr"], {"formulation": "n-slack"}),
        (["map", "mrr"], {"C": [1.0, 9.0]}),
    ],
    ids=str,
)
def test_the_objective_never_rises_between_rounds_of_one_C(criterion, parameters, long_lists):
    model = fit(long_lists.train, criterion, **{"C": 10.0, "decay": "sqrt@30", "bound": "ramp", **parameters})
    rounds = model.rounds_
    for before, after in itertools.pairwise(rounds):
        assert after.C >= before.C
        if after.C == before.C:
            assert after.objective <= before.objective
    for one in rounds:
        assert one.objective == pytest.approx(0.5 * one.norm**2 + one.C * one.risk)
        if parameters.get("feature_map") != "mrr":  # the ramp of phi_mrr bounds the loss of another ranking
            assert one.loss <= one.risk + 1e-9
    assert model.health_.norm == pytest.approx(np.linalg.norm(model.coef_))
    # The model is the best of all rounds and of the start.
    (kept, *_) = [one for one in rounds if one.norm == pytest.approx(model.health_.norm, rel=1e-12)]
    assert kept.loss <= min(one.loss for one in rounds) + 1e-8
    assert model.health_.mean_slack == kept.risk


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg-nc", "ndcg", "mrr"])
def test_the_bound_approaches_the_training_loss_which_falls(criterion, long_lists):
    rounds = fit(long_lists.train, criterion, C=10.0, bound="ramp").rounds_
    assert rounds[-1].risk <= rounds[-1].loss + 0.02 < rounds[0].risk
    assert min(one.loss for one in rounds) < rounds[0].loss


@each_pair
def test_along_a_ray_the_ramp_is_convex_and_falls(criterion, map_name, rng):
    risk = risk_of(criterion, map_name, *small_queries(rng))
    w = rng.normal(size=3)
    ramps = np.array([risk.plane(s * w).value - risk.plane(s * w, "prediction").value for s in np.linspace(0.1, 5, 30)])
    assert (np.diff(ramps, axis=0) <= 1e-9).all()
    assert (np.diff(ramps, n=2, axis=0) >= -1e-9).all()


def test_rescaling_minimises_the_objective_along_the_ray_up_to_a_factor_of_two(long_lists):
    risk = Risk(InProcess([RankingData.of(long_lists.train)]), StructuredLoss.of([criteria.NDCG()], "dorm"))
    run = _Run(risk, {}, 100, None)
    start = fit(long_lists.train, "auc").coef_
    place = run.rescaled(run.evaluate(start), C=1e4)
    assert place.objective(1e4, risk.weights, run.penalty) == pytest.approx(
        run.evaluate(place.w).objective(1e4, risk.weights, run.penalty)
    )
    objectives = [run.evaluate(2.0**power * start).objective(1e4, risk.weights, run.penalty) for power in range(12)]
    assert place.objective(1e4, risk.weights, run.penalty) == pytest.approx(min(objectives))
    assert np.argmin(objectives) > 1


def test_a_model_that_is_its_start_names_it(rng):
    X, y, qid = rng.normal(size=(60, 1)), rng.integers(0, 2, 60), np.repeat(range(6), 10)
    model = StructRankSVM("map", bound="ramp", warm_start=True).fit(X, y, qid=qid)  # with one feature only its sign matters
    note = "No round of the ramp bound lowered the training loss: the model is its start, the w of "
    assert model.notes_[0] == f"{note}map (phi_po)."
    assert model.fit(X, y, qid=qid).notes_[0] == f"{note}the last fit."
    assert np.sign(model.coef_) == np.sign(StructRankSVM("auc").fit(X, y, qid=qid).coef_)


@pytest.mark.parametrize("criterion", ["ndcg", "mrr"])
def test_ramp_learns_where_the_convex_bound_is_vacuous(criterion):
    name = f"{criterion}@10"
    found = []
    for seed in range(4):
        fold = make_long_lists(seed)
        # Under a vacuous bound w stays near the slope at 0. Mixing the features makes that a poor direction.
        mix = np.random.default_rng(seed).normal(size=(8, 8))
        train, test = (datasets.Dataset(part.X @ mix, part.y, part.qid) for part in (fold.train, fold.test))
        with pytest.warns(StructRankWarning, match="vacuous"):
            convex = fit(train, criterion, C=10.0)
        auc = fit(train, "auc", C=10.0)
        ramp = fit(train, criterion, C=10.0, bound="ramp")
        auto = fit(train, criterion, C=10.0, bound="auto")
        assert convex.health_.vacuous
        assert not auto.health_.vacuous
        assert len(auto.rounds_) > 1
        assert np.array_equal(auto.coef_, ramp.coef_)
        found.append([[measure_of(model, part, name) for model in (auto, convex, auc)] for part in (train, test)])
    on_train, on_test = np.mean(found, axis=0)
    assert on_train[0] > on_train[1] + 0.05
    assert on_test[0] > on_test[1] + 0.05
    assert on_train[0] > on_train[2]


def test_the_number_of_passes_is_exact(long_lists, monkeypatch):
    train, made = long_lists.train, []
    plane = Risk.plane
    monkeypatch.setattr(Risk, "plane", lambda self, *args, **kwargs: made.append(0) or plane(self, *args, **kwargs))
    start = fit(train, "auc", C=10.0).coef_
    skipped = 0
    risk = Risk(InProcess([RankingData.of(train)]), StructuredLoss.of([criteria.NDCG()]))
    for tol in (0.3, 0.1, 0.03, 0.01):
        made.clear()
        run = _Run(risk, {"tol": tol}, 100, None)
        place = run.rescaled(run.evaluate(start), 100.0)
        assert run.describe(place, 100.0).passes == len(made)
        place = run._round(place, 100.0)
        assert run.passes == len(made)
        skipped += run.describe(place, 100.0).passes < len(run.last.history) + 1
    assert skipped  # at least one run ended without a last evaluation


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "mrr", ["map", "ndcg-nc"]])
def test_auto_is_the_convex_bound_where_that_is_healthy(criterion, train):
    convex, auto = (fit(train, criterion, C=3.0, bound=bound) for bound in ("convex", "auto"))
    assert np.array_equal(auto.coef_, convex.coef_)
    assert auto.certificate_ == convex.certificate_
    assert auto.rounds_ == convex.rounds_ == ()


def test_a_warm_start_of_the_ramp_bound_begins_at_the_earlier_model(long_lists):
    model = fit(long_lists.train, "map", C=1.0)
    start = measure_of(model, long_lists.train, "ndcg@10")
    model.set_params(criterion="ndcg", bound="ramp", warm_start=True)
    model.fit(long_lists.train.X, long_lists.train.y, qid=long_lists.train.qid)
    assert model.rounds_[0].loss == pytest.approx(1 - start, abs=1e-9)
    assert measure_of(model, long_lists.train, "ndcg@10") >= start


@pytest.mark.parametrize("feature_map", ["po", "mrr"])
def test_auto_uses_the_feature_map_of_the_ramp_where_the_convex_bound_is_vacuous(feature_map, long_lists):
    auto = fit(long_lists.train, "mrr", feature_map=feature_map, bound="auto")
    assert np.array_equal(auto.coef_, fit(long_lists.train, "mrr", bound="ramp").coef_)
    assert auto.notes_ == ("Trained on the ramp bound of mrr@10 (phi_dorm), as the convex bound is vacuous on these data.",)


def test_the_ramp_starts_from_map_or_with_a_rank_cutoff_from_auc(long_lists):
    train = long_lists.train
    for criterion, starter in (("map", "map"), ("ndcg-nc", "map"), ("ndcg", "auc"), ("mrr", "auc")):
        first = fit(train, criterion, bound="ramp").rounds_[0]
        start = fit(train, starter, C=first.C, tol=0.01)
        assert first.norm == pytest.approx(np.linalg.norm(start.coef_))


def test_a_small_C_is_raised_relative_to_the_scale_of_X(long_lists):
    train = long_lists.train
    C = fit(train, "ndcg", C=1e-4, bound="ramp").rounds_[0].C
    assert fit(train, "ndcg", C=1e-5, bound="ramp").rounds_[0].C == C > 1e-4
    smaller = fit(datasets.Dataset(1e-3 * train.X, train.y, train.qid), "ndcg", C=1e-4, bound="ramp")
    assert pytest.approx(1e6 * C) == smaller.rounds_[0].C


# --- the estimator ----------------------------------------------------------------------------------------------------


def test_a_path_gives_a_model_for_each_C(long_lists):
    train = long_lists.train
    models = StructRankSVM("ndcg", bound="ramp", decay="sqrt@30").fit_path(train.X, train.y, qid=train.qid, Cs=[100.0, 10.0])
    assert [model.C for model in models] == [100.0, 10.0]
    assert pytest.approx(10.0) == models[0].rounds_[0].C / models[1].rounds_[0].C


def test_ramp_models_are_bit_identical_for_any_n_jobs(long_lists):
    X = np.tile(long_lists.train.X, (1, 16))  # wide enough for several chunks
    fits = [
        StructRankSVM("ndcg", bound="ramp", C=10.0, decay="sqrt@30", tol=0.05, n_jobs=n_jobs).fit(
            X, long_lists.train.y, qid=long_lists.train.qid
        )
        for n_jobs in (1, 2)
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].rounds_ == fits[1].rounds_


def test_a_file_keeps_the_rounds(long_lists, tmp_path):
    model = fit(long_lists.train, "mrr", C=10.0, bound="ramp")
    model.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert loaded.rounds_ == model.rounds_
    assert loaded.bound == "ramp"
    assert np.array_equal(loaded.coef_, model.coef_)


def test_the_callback_and_max_iter_stop_training(long_lists):
    train, seen = long_lists.train, []

    def third(iteration):
        seen.append(iteration)
        return len(seen) == 3

    with pytest.warns(StructRankWarning, match="stopped by the callback"):
        stopped = StructRankSVM("ndcg", C=10.0, bound="ramp").fit(train.X, train.y, qid=train.qid, callback=third)
    assert stopped.stop_reason_ == "callback"
    assert len(seen) == 3
    with pytest.warns(StructRankWarning, match="max_iter=8"):
        short = fit(train, "ndcg", C=10.0, bound="ramp", max_iter=8)
    assert sum(one.passes for one in short.rounds_) <= 10


def test_invalid_use_of_the_ramp_bound_is_rejected(train):
    with pytest.raises(ValueError, match="bound='hinge' is not known; choose one of: 'convex', 'ramp', 'auto'"):
        fit(train, "ndcg", bound="hinge")
    with pytest.raises(ValueError, match="nothing to learn from"):
        StructRankSVM("ndcg", bound="ramp").fit(train.X, np.zeros(len(train.y)), qid=train.qid)


def test_a_round_at_a_fixed_point_stays_there(train, monkeypatch):
    from structrank.training import ramp

    monkeypatch.setattr(ramp, "_KEPT_POINTS", 3)

    risk, C = Risk(InProcess([RankingData.of(train)]), StructuredLoss.of([criteria.MAP()]), "one-slack"), 100.0
    w = StructRankSVM("map", C=C).fit(train.X, train.y, qid=train.qid).coef_
    for _ in range(15):  # to a fixed point
        w = ramp.CuttingPlanes(LinearisedRisk(risk, risk.plane(w, "prediction").slope), 1e-10).run(C).w
    run = _Run(risk, {"tol": 1e-6, "one_slack_passes": math.inf}, 1000, None)
    place = run.evaluate(w)
    assert run._round(place, C).w is w
    assert any(known[0] is w for known in run.known)


@pytest.mark.parametrize("criterion", ["dorm", "ndcg", "err"])
def test_auto_uses_the_ramp_bound_for_graded_labels_if_the_convex_bound_is_vacuous(criterion, rng):
    X, y, qid = rng.normal(size=(300, 4)), rng.integers(0, 3, 300), np.repeat(range(5), 60)
    with pytest.warns(StructRankWarning, match="vacuous"):
        assert StructRankSVM(criterion, k=2, relevant_from=None).fit(X, y, qid=qid).health_.vacuous
    model = StructRankSVM(criterion, k=2, relevant_from=None, bound="auto").fit(X, y, qid=qid)
    assert model.rounds_
    assert not model.health_.vacuous
    assert "ramp bound" in model.notes_[0]


@pytest.mark.parametrize("criterion", ["ndcg", "err"])
def test_the_ramp_for_graded_labels_starts_from_the_better_of_auc_and_dorm(criterion, monkeypatch):
    both, mix = Training._start_criteria, np.random.default_rng(0).normal(size=(4, 4))
    # On short lists with little noise DORM ranks better; on long lists with much noise its convex bound is vacuous.
    for n_docs, noise, better in ((40, 0.3, 1), (60, 3.0, 0)):
        part = datasets.make_ranking(n_queries=30, n_docs=n_docs, n_features=4, n_grades=4, noise=noise, random_state=1).train
        losses = []
        for chosen in (slice(0, 1), slice(1, 2), slice(None)):
            monkeypatch.setattr(Training, "_start_criteria", lambda self, chosen=chosen: both(self)[chosen])
            model = StructRankSVM(criterion, k=3, relevant_from=None, bound="ramp").fit(part.X @ mix, part.y, qid=part.qid)
            losses.append(model.rounds_[0].loss)
        assert losses[2] == losses[better] < losses[1 - better]


def test_auto_keeps_the_convex_bound_if_documents_have_identical_features(rng):
    y, qid = rng.integers(0, 3, 300), np.repeat(range(5), 60)
    for relevant_from in (1, None):
        with pytest.warns(StructRankWarning, match="learned nothing"):
            model = StructRankSVM("auc", relevant_from=relevant_from, bound="auto").fit(np.ones((300, 4)), y, qid=qid)
        assert model.rounds_ == ()


@pytest.mark.parametrize("bound", ["convex", "auto", "ramp"])
def test_data_without_training_signal_warn_under_every_bound(bound, rng):
    labels = np.tile([0, 1], 20)
    with pytest.warns(StructRankWarning, match=r"Training on ndcg@10 .* has learned nothing: .* columns of X vary"):
        constant = StructRankSVM("ndcg", bound=bound).fit(np.zeros((40, 2)), labels, qid=np.repeat(range(4), 10))
    assert constant.health_.vacuous
    # With discount kdd08 the first two ranks have the same discount.
    with pytest.warns(StructRankWarning, match=r"no ranking of these queries has a loss.*discount='kdd08'"):
        pairs = StructRankSVM("ndcg", bound=bound).fit(rng.normal(size=(40, 3)), labels, qid=np.repeat(range(20), 2))
    assert pairs.health_.vacuous


def test_ctrl_c_returns_the_best_round_so_far_or_is_raised(monkeypatch):
    train = datasets.make_ranking(n_queries=20, n_docs=10, n_features=3, noise=0.5, random_state=0).train
    passes = []

    def interrupted_in(number):
        def visit(method):
            def wrapped(self, *arguments):
                passes.append(method.__name__)
                if len(passes) == number:
                    raise KeyboardInterrupt
                return method(self, *arguments)

            return wrapped

        passes.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Risk, "plane", visit(Risk.plane))
            return StructRankSVM("ndcg", k=3, bound="ramp").fit(train.X, train.y, qid=train.qid)

    interrupted_in(0)
    n_passes, ends = len(passes), []
    for number in range(1, n_passes + 1):
        try:
            with pytest.warns(StructRankWarning, match="interrupted after"):
                model = interrupted_in(number)
            assert model.stop_reason_ == "interrupted"
            assert model.coef_.any()
            ends.append("model")
        except KeyboardInterrupt:
            ends.append("raised")
    assert ends == sorted(ends, reverse=True), "from the first finished round on, a model is returned"
    assert ends[-1] == "model"


def test_the_warning_of_a_ramp_run_claims_no_distance_to_the_global_optimum():
    train = datasets.make_ranking(n_queries=15, n_docs=20, n_features=3, noise=1.0, random_state=2).train
    with pytest.warns(StructRankWarning, match="that of the last convex problem is within"):
        StructRankSVM("ndcg", bound="ramp", max_iter=6).fit(train.X, train.y, qid=train.qid)


def test_the_loss_of_a_custom_criterion_is_its_own(train):
    @dataclass(frozen=True)
    class SquaredAUC(criteria.Criterion):
        name: ClassVar[str] = "squared"
        oracles: ClassVar[dict] = {"po": lambda *arguments: auc_partial_order(*arguments)}  # inexact, but not used here

        def loss(self, ranking, relevant):
            return criteria.AUC().loss(ranking, relevant) ** 2

        def measure(self, relevant_from=1):
            return metrics.AUC(relevant_from)

    w = np.ones(train.X.shape[1])
    risk = risk_of(SquaredAUC(), "po", train.X, train.y, train.qid)
    losses = []
    for query in np.unique(train.qid):
        here = train.qid == query
        if 0 < train.y[here].sum() < here.sum():
            losses.append(SquaredAUC().loss(np.argsort(-train.X[here] @ w), train.y[here] > 0))
    assert float(risk.weights @ risk.plane(w, "prediction").offset) == pytest.approx(np.mean(losses))
