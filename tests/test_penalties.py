"""Training with bounds, a prior and an l1 term against CVXPY with all rankings written out; minimisers and lower bounds."""

import inspect
import itertools
import re
from dataclasses import dataclass

import cvxpy
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from structrank import StructRankSVM, StructRankSVMCV, StructRankWarning, criteria, load_model, register
from structrank.datasets import cut_shards
from structrank.feature_maps import PartialOrder
from structrank.penalties import Penalty
from structrank.preparation import Log
from structrank.solvers import WorkingSet
from structrank.solvers.penalties import SeparablePenalty

PARTS = ("bounds", "prior", "l1")
COMBINATIONS = [parts for n in range(4) for parts in itertools.combinations(PARTS, n)]
COMBO = ("map", "ndcg@3", "auc")


def tiny_problem(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 6, size=6)
    X, qid = rng.normal(size=(sizes.sum(), 3)), np.repeat(np.arange(6), sizes)
    y = (X @ rng.normal(size=3) + rng.normal(size=sizes.sum()) > 0.5).astype(int)
    first = np.searchsorted(qid, np.arange(6))
    y[first], y[first + 1] = 1, 0
    return X, y, qid


def all_rankings(X, y, criterion):
    """Return phi(y*) - phi(y) and Delta of every ranking of one query, from the definitions."""
    loss, phi, relevant = criteria.parse(criterion).loss, PartialOrder().coefficients, y > 0
    rankings = [np.array(ranking) for ranking in itertools.permutations(range(len(y)))]
    best = phi(np.argsort(-y), relevant)
    slopes = np.array([(best - phi(ranking, relevant)) @ X for ranking in rankings])
    return slopes, np.array([loss(ranking, y) for ranking in rankings])


def random_penalty(parts, rng, n=3):
    settings = {}
    if "bounds" in parts:
        ends = np.sort(rng.normal(scale=0.7, size=(2, n)), axis=0)
        unbounded = rng.random((2, n)) < 0.3
        settings["lower"] = np.where(unbounded[0], -np.inf, ends[0])
        settings["upper"] = np.where(unbounded[1], np.inf, ends[1])
        if rng.random() < 0.5:
            settings["lower"], settings["upper"] = np.minimum(settings["lower"], 0), np.maximum(settings["upper"], 0)
    if "prior" in parts:
        settings["prior"] = rng.normal(size=n)
    if "l1" in parts:
        settings["l1"] = rng.exponential(scale=0.3, size=n) * (rng.random(n) < 0.8)
    return Penalty(**settings)


def optimum(X, y, qid, names, C, penalty):
    """Return the optimal value, from the definitions."""
    w, risk = cvxpy.Variable(X.shape[1]), 0.0
    queries = np.unique(qid)
    for query, criterion in itertools.product(queries, names):
        slopes, losses = all_rankings(X[qid == query], y[qid == query], criterion)
        risk += cvxpy.pos(cvxpy.max(losses - slopes @ w)) / len(queries)
    columns = penalty.for_columns(X.shape[1])
    omega = 0.5 * cvxpy.sum_squares(w - columns.prior) + columns.l1 @ cvxpy.abs(w)
    bounded = [(w[j] >= low) for j, low in enumerate(columns.lower) if np.isfinite(low)]
    bounded += [(w[j] <= high) for j, high in enumerate(columns.upper) if np.isfinite(high)]
    problem = cvxpy.Problem(cvxpy.Minimize(omega + C * risk), bounded)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def check_optimum(seed, parts, names, C):
    """Check a fit of a random problem; return the model."""
    X, y, qid = tiny_problem(seed)
    penalty = random_penalty(parts, np.random.default_rng(seed))
    best = optimum(X, y, qid, names, C, penalty)
    model = StructRankSVM(list(names), C=C, tol=1e-6, penalty=penalty).fit(X, y, qid=qid)
    scale = max(abs(best), 1e-3)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-4, abs=1e-7), (seed, parts, names, C)
    assert model.certificate_.dual <= best + 1e-7 * scale, (seed, parts, names, C)
    columns = penalty.for_columns(3)
    assert (columns.lower <= model.coef_).all()
    assert (model.coef_ <= columns.upper).all()
    assert not np.signbit(model.coef_[model.coef_ == 0.0]).any()
    return model


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("parts", COMBINATIONS, ids="+".join)
def test_training_reaches_the_optimum_over_all_rankings(parts):
    for seed, names in enumerate([("auc",), ("map",), ("ndcg@3",), COMBO]):
        for C in (0.3, 10.0):
            check_optimum(seed, parts, names, C)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("formulation", ["auto", "one-slack", "grouped", "n-slack"])
@pytest.mark.parametrize("solver", ["auto", "osqp", "dual", "interior", "cvxpy"])
def test_all_solvers_and_formulations_have_the_same_optimum(solver, formulation, assert_same_optimum):
    X, y, qid = tiny_problem(5)
    penalty = Penalty(lower=[-0.2, -np.inf, 0.1], upper=[1.0, 0.3, np.inf], prior=[0.0, 0.5, -1.0], l1=[0.1, 0.2, 0.0])
    for C in (1.0, 50.0):
        models = [
            StructRankSVM(["map", "auc"], C=C, tol=1e-5, penalty=penalty, **settings).fit(X, y, qid=qid)
            for settings in ({}, {"solver": solver, "formulation": formulation})
        ]
        assert_same_optimum(*models)
        assert models[1].stop_reason_ == "converged"


def random_columns(rng, n=6):
    return random_penalty([part for part in PARTS if rng.random() < 0.7], rng, n).for_columns(n)


def test_the_minimiser_is_the_least_and_has_exact_bounds_and_zeros(rng):
    for _ in range(200):
        columns, z = random_columns(rng), rng.normal(scale=2.0, size=6)
        w = columns.minimiser(z)
        least = columns.value(w) - z @ w
        assert np.isfinite(least)
        for other in columns.nearest(w + rng.normal(size=(50, 6)) * 10.0 ** rng.uniform(-4, 1, size=(50, 1))):
            gap = columns.value(other) - z @ other - least
            assert gap >= 0.5 * np.sum((other - w) ** 2) - 1e-12  # strongly convex
        assert not np.signbit(w[w == 0.0]).any()


def test_rates_and_derivatives_are_those_of_differences(rng):
    for _ in range(200):
        columns, z, direction = random_columns(rng), rng.normal(scale=2.0, size=6), rng.normal(size=6)
        w, step = columns.minimiser(z), 1e-7
        assert columns.minimiser(z + step * direction) - w == pytest.approx(columns.rates(z) * step * direction, abs=1e-12)
        towards = columns.nearest(w + direction) - w
        difference = (columns.value(w + step * towards) - columns.value(w)) / step
        if np.isfinite(difference):
            assert columns.derivative(w, towards) == pytest.approx(difference, abs=1e-5)


def test_any_multipliers_have_a_value_below_the_objective_of_any_point(rng):
    for _ in range(100):
        planes = WorkingSet(rng.exponential(size=3), 6, random_columns(rng))
        for _ in range(int(rng.integers(1, 5))):
            planes.add(rng.normal(size=(3, 6)), rng.normal(size=3))
        C = 10 ** rng.uniform(-2, 2)
        multipliers, value, w = planes.feasible_dual(C, rng.normal(size=planes.multipliers.shape) * 10 ** rng.uniform(-2, 2))
        assert (multipliers >= 0).all()
        assert (multipliers.sum(axis=1) <= C * planes.weights * (1 + 1e-12)).all()
        for point in planes.penalty.nearest(rng.normal(size=(20, 6))):
            assert value <= planes.primal(C, point) + 1e-9
        assert value <= planes.primal(C, w) + 1e-9


def test_a_penalty_without_parts_has_the_optimum_of_none(train, assert_same_optimum):
    models = [
        StructRankSVM(C=10.0, tol=1e-5, penalty=penalty).fit(train.X, train.y, train.qid) for penalty in (None, Penalty())
    ]
    assert_same_optimum(*models)


@pytest.mark.parametrize("settings", [{}, {"bound": "ramp"}, {"criterion": "dorm", "feature_map": "dorm(ties=score)"}])
@pytest.mark.parametrize("scale", [None, "std"])
@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_bounds_hold_exactly_for_any_bound_and_scale(train, settings, scale):
    X = train.X * np.array([1.0, 10.0, 0.1, 3.0, 1.0, 7.0])
    free = StructRankSVM(**settings, scale=scale).fit(X, train.y, qid=train.qid).coef_
    lower, upper = -0.3 * np.abs(free), 0.7 * np.abs(free)
    model = StructRankSVM(**settings, scale=scale, penalty=Penalty(lower, upper)).fit(X, train.y, qid=train.qid)
    assert (lower <= model.coef_).all()
    assert (model.coef_ <= upper).all()
    assert np.isin(model.coef_, [lower, upper]).any()


def test_more_l1_means_fewer_features_and_0_in_the_end(train):
    counts = [
        np.count_nonzero(StructRankSVM(penalty=Penalty(l1=l1)).fit(train.X, train.y, train.qid).coef_)
        for l1 in (0.0, 0.1, 0.3, 0.5)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 6 > counts[-2] > 0


@pytest.mark.parametrize("scale", [None, "std"])
def test_a_small_C_keeps_the_prior_and_a_large_C_leaves_it(train, scale):
    prior = StructRankSVM("auc").fit(train.X, train.y, train.qid)
    near, far = (
        StructRankSVM("map", C=C, scale=scale, penalty=Penalty(prior=prior)).fit(train.X, train.y, train.qid).coef_
        for C in (1e-6, 100.0)
    )
    assert near == pytest.approx(prior.coef_, abs=1e-4)
    assert np.abs(far - prior.coef_).max() > 0.1


def test_names_select_features_and_unnamed_features_are_numbered(train):
    frame = pd.DataFrame(train.X, columns=["bm25", "price", "age", "clicks", "length", "rank"])
    named = StructRankSVM(penalty=Penalty(upper={"price": -0.1}, l1={"age": 0.2})).fit(frame, train.y, qid=train.qid)
    numbered = StructRankSVM(penalty=Penalty(upper={"f2": -0.1}, l1={"f3": 0.2})).fit(train.X, train.y, train.qid)
    assert np.array_equal(named.coef_, numbered.coef_)
    assert named.coef_[1] <= -0.1
    stay = StructRankSVM(C=1e-9, penalty=Penalty(prior=named)).fit(frame[frame.columns[::-1]], train.y, qid=train.qid)
    assert stay.coef_[::-1] == pytest.approx(named.coef_, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lower": 1, "upper": 0}, "bounds of all features are empty: lower is 1, upper is 0"),
        ({"lower": {"f2": 1.0}, "upper": 0.5}, "bounds of the feature 'f2' are empty: lower is 1, upper is 0.5"),
        ({"lower": {"price": 0}}, "lower of the penalty names the feature 'price', which X does not have; it has f1, f2"),
        ({"prior": [1.0, 2.0]}, "prior of the penalty has 2 entries, but X has 6 features"),
        ({"prior": {3: 1.0}}, "prior names 3; expected names of features as text"),
        ({"prior": np.nan}, "prior=nan is not valid"),
        ({"l1": -1.0}, "l1=-1.0 is not valid: expected a number of at least 0"),
        ({"l1": np.inf}, "equal bounds of 0 leave a feature out"),
        ({"lower": np.inf}, "lower=inf is not valid"),
        ({"upper": [[1.0]]}, "upper has shape"),
    ],
)
def test_errors_come_before_training(train, settings, message):
    passes = []
    with pytest.raises(ValueError, match=re.escape(message)):
        StructRankSVM(penalty=Penalty(**settings)).fit(train.X, train.y, train.qid, callback=passes.append)
    assert not passes


@pytest.mark.parametrize("penalty", ["positive", 3, Penalty])
def test_what_is_no_penalty_is_refused(penalty):
    with pytest.raises(ValueError, match=r"[Pp]enalty"):
        StructRankSVM(penalty=penalty).check_parameters()


def test_a_model_with_a_penalty_is_cloned_saved_and_resumed(train, tmp_path):
    penalty = Penalty(lower={"f1": 0.0, "f2": -np.inf}, upper=np.full(6, 0.5), prior=0.1, l1=0.01)
    model = clone(StructRankSVM(penalty=penalty)).fit(train.X, train.y, train.qid, checkpoint=tmp_path / "kept")
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.penalty == penalty
    assert np.array_equal(loaded.coef_, model.coef_)
    assert np.array_equal(clone(loaded).fit(train.X, train.y, train.qid, checkpoint=tmp_path / "kept").coef_, model.coef_)
    with pytest.raises(ValueError, match="its penalty is"):
        StructRankSVM(penalty=Penalty(lower=0)).fit(train.X, train.y, train.qid, checkpoint=tmp_path / "kept")


def test_paths_warm_starts_and_shards_keep_the_penalty(train, assert_same_optimum):
    settings = {"tol": 1e-5, "penalty": "nonnegative"}
    models = StructRankSVM(**settings).fit_path(train.X, train.y, train.qid, Cs=[0.1, 10.0])
    alone = StructRankSVM(C=10.0, **settings).fit(train.X, train.y, train.qid)
    assert_same_optimum(models[1], alone)
    warm = StructRankSVM(C=10.0, tol=1e-5, warm_start=True).fit(train.X, train.y, train.qid)  # has negative weights
    assert_same_optimum(warm.set_params(penalty="nonnegative").fit(train.X, train.y, train.qid), alone)
    assert_same_optimum(
        StructRankSVM(C=10.0, **settings).fit(cut_shards(train.X, train.y, train.qid, docs_per_shard=200)), alone
    )
    chosen = StructRankSVMCV(Cs=[0.1, 10.0], **settings).fit(train.X, train.y, train.qid)
    assert (chosen.coef_ >= 0).all()


def test_the_inner_folds_of_a_choice_of_C_know_the_names(train):
    frame = pd.DataFrame(train.X, columns=list("abcdef"))
    model = StructRankSVMCV(Cs=[0.1, 10.0], penalty=Penalty(upper={"b": -0.1})).fit(frame, train.y, qid=train.qid)
    assert model.coef_[1] <= -0.1
    assert model.feature_names_in_.tolist() == list("abcdef")


def test_bounds_and_priors_are_those_of_prepared_columns(train):
    frame = pd.DataFrame(np.abs(train.X), columns=list("abcdef"))
    settings = {"preparation": [Log(["a"])], "C": 1e-6}
    prior = StructRankSVM(preparation=[Log(["a"])]).fit(frame, train.y, qid=train.qid)
    near = StructRankSVM(**settings, penalty=Penalty(prior=prior)).fit(frame, train.y, qid=train.qid)
    assert near.coef_ == pytest.approx(prior.coef_, abs=1e-4)
    bounded = StructRankSVM(**settings, penalty=Penalty(upper={"log(a)": -0.1})).fit(frame, train.y, qid=train.qid)
    assert bounded.coef_[0] == -0.1


def test_a_penalty_that_allows_nothing_useful_is_vacuous(train):
    X, y = np.column_stack([train.y, train.y]) + 0.0, train.y
    with pytest.warns(StructRankWarning, match="vacuous.*The penalty may rule out every better w"):
        model = StructRankSVM(penalty=Penalty(upper=0)).fit(X, y, qid=train.qid)
    assert model.health_.vacuous
    assert np.array_equal(model.coef_, [0.0, 0.0])


@dataclass(frozen=True)
class Huber(SeparablePenalty):
    """Distance from a prior by Huber, which forgives a few large changes, and a little of 1/2 |w|^2."""

    prior: float = 0.0
    knee: float = 0.2
    ridge: float = 0.1

    def value(self, w):
        off = np.abs(w - self.prior)
        huber = np.where(off <= self.knee, 0.5 * off**2, self.knee * (off - 0.5 * self.knee))
        return float(np.sum(huber + 0.5 * self.ridge * w**2))

    def minimiser(self, z):
        inside = (z + self.prior) / (1 + self.ridge)
        return np.where(self._is_inside(z), inside, (z - self.knee * np.sign(inside - self.prior)) / self.ridge)

    def rates(self, z):
        return np.where(self._is_inside(z), 1 / (1 + self.ridge), 1 / self.ridge)

    def derivative(self, w, direction):
        return float((np.clip(w - self.prior, -self.knee, self.knee) + self.ridge * w) @ direction)

    def _is_inside(self, z):
        return np.abs((z + self.prior) / (1 + self.ridge) - self.prior) <= self.knee


def test_another_penalty_takes_one_class_of_30_lines(tmp_path):
    assert len(inspect.getsource(Huber).splitlines()) <= 30
    for seed, C in ((0, 0.3), (1, 3.0), (2, 30.0)):
        X, y, qid = tiny_problem(seed)
        w, risk = cvxpy.Variable(3), 0.0
        for query in np.unique(qid):
            slopes, losses = all_rankings(X[qid == query], y[qid == query], "map")
            risk += cvxpy.pos(cvxpy.max(losses - slopes @ w)) / 6
        omega = 0.5 * cvxpy.sum(cvxpy.huber(w - 0.3, 0.2)) + 0.05 * cvxpy.sum_squares(w)
        best = cvxpy.Problem(cvxpy.Minimize(omega + C * risk)).solve(solver="CLARABEL")
        model = StructRankSVM(C=C, tol=1e-6, penalty=Huber(prior=0.3)).fit(X, y, qid=qid)
        assert model.certificate_.primal == pytest.approx(best, rel=1e-4)
        assert model.certificate_.dual <= best * (1 + 1e-7)
    register(Huber)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").penalty == Huber(prior=0.3)
