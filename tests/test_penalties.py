"""Training with bounds, a prior and an l1 term against CVXPY with all rankings written out; minimisers and lower bounds."""

import itertools

import cvxpy
import numpy as np
import pytest

from structrank import StructRankSVM, criteria
from structrank.feature_maps import PartialOrder
from structrank.penalties import Penalty

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
