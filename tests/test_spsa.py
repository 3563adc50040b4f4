"""Stochastic approximation: gradients, step sizes, and the ranker that optimises a measure directly."""

import numpy as np
import pytest

from structrank import datasets, load_model, metrics
from structrank.learners import SPSARanker
from structrank.solvers.spsa import FDSA, SPSA, Steps, minimize


def test_step_sizes_follow_the_paper():
    steps = Steps(a=3.0, c=0.2)
    for k in (1, 7, 100):
        assert steps.at(k) == (3.0 / (50 + k**0.602), 0.2 / k**0.101)


def test_finite_differences_of_a_quadratic_equal_its_gradient(rng):
    A, b, w = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=4)
    gradient = FDSA().gradient(lambda v: v @ A @ v + b @ v, w, 0.3, rng)
    assert gradient == pytest.approx((A + A.T) @ w + b, abs=1e-9)


def test_simultaneous_perturbations_are_unbiased_for_a_linear_function(rng):
    b, w, calls = rng.normal(size=5), rng.normal(size=5), []

    def function(v):
        calls.append(v)
        return b @ v

    mean = np.mean([SPSA(8).gradient(function, w, 0.1, rng) for _ in range(2000)], axis=0)
    assert len(calls) == 8 * 2000
    assert np.abs(np.abs(calls[0] - w) - 0.1).max() < 1e-12  # all weights move by c, up or down
    assert mean == pytest.approx(b, abs=0.15)  # standard error below 0.03


@pytest.mark.parametrize("method", [SPSA(2), SPSA(4), SPSA(8), FDSA()], ids=str)
def test_minimize_counts_evaluations_and_finds_the_minimum(method):
    calls = []

    def function(w):
        calls.append(1)
        return (w - 2.0) @ (w - 2.0)

    found = minimize(function, np.zeros(3), method=method, steps=Steps(a=5.0), max_evaluations=803)
    assert found.evaluations == len(calls) <= 803
    assert found.evaluations == found.iterations * method.evaluations_of(3)
    assert found.w == pytest.approx(np.full(3, 2.0), abs=0.05)


def test_a_callback_stops_the_descent():
    found = minimize(lambda w: w @ w, [1.0], callback=lambda iteration, evaluations, w: evaluations >= 6)
    assert (found.iterations, found.evaluations) == (3, 6)


@pytest.mark.parametrize("method", ["spsa:2", "spsa:4", "spsa:8"])
def test_spsa_needs_fewer_evaluations_than_fdsa_for_the_same_cross_entropy(method):
    train = datasets.make_polynomial_ranking(n_queries=60, n_docs=20, n_features=50, random_state=0).train

    def evaluations(method, cost):
        settings = {"objective": "cross-entropy", "step": 10.0, "max_evaluations": 1500, "random_state": 0}

        def reached(entry):
            return entry.loss <= 0.45

        model = SPSARanker(method=method, **settings).fit(train.X, train.y, qid=train.qid, callback=reached)
        assert model.stop_reason_ == "callback"
        return model.n_iter_ * cost

    assert evaluations(method, int(method[-1])) < evaluations("fdsa", 100)


def test_the_ranker_keeps_its_best_weights_and_is_reproducible(fold):
    train, test = fold.train, fold.test
    model = SPSARanker(measure="ndcg@5", max_evaluations=800).fit(train.X, train.y, qid=train.qid)
    assert model.n_evaluations_ == 800
    assert model.score(test.X, test.y, qid=test.qid) > 0.7
    best = model.score(train.X, train.y, qid=train.qid)
    assert best == pytest.approx(max(entry.train for entry in model.history_), abs=1e-12)
    assert model.history_[model.best_round_ - 1].train == pytest.approx(best, abs=1e-12)
    again = SPSARanker(measure="ndcg@5", max_evaluations=800).fit(train.X, train.y, qid=train.qid)
    assert np.array_equal(again.weights_, model.weights_)


def test_the_ranker_stops_by_patience_or_interruption_and_can_be_saved(fold, tmp_path):
    train = fold.train
    model = SPSARanker(patience=5, measure=metrics.MAP()).fit(train.X, train.y, qid=train.qid, validation=fold.validation)
    assert model.stop_reason_ == "patience"
    assert model.n_iter_ == model.best_round_ + 5
    model.save(tmp_path / "m.structrank")
    assert np.array_equal(load_model(tmp_path / "m.structrank").predict(train.X), model.predict(train.X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "loss"}, "objective='loss' is not known"),
        ({"method": "spsa:3"}, "method='spsa:3' is not known"),
        ({"step": -1.0}, "step=-1.0"),
        ({"perturbation": 0}, "perturbation=0"),
        ({"measure": "ndgc"}, "'ndgc' is not known"),
        ({"max_evaluations": 11, "method": "fdsa"}, "max_evaluations=11 is not enough for one gradient: fdsa .* needs 12"),
        ({"patience": -2}, "patience=-2"),
    ],
)
def test_invalid_parameters_of_the_ranker_are_rejected(settings, message, train):
    with pytest.raises(ValueError, match=message):
        SPSARanker(**settings).fit(train.X, train.y, qid=train.qid)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SPSA(3), "evaluations=3"),
        (lambda: Steps(a=0.0), "a=0.0"),
        (lambda: Steps(gamma=-1), "gamma=-1"),
        (lambda: minimize(len, [[1.0]]), "start has shape"),
        (lambda: minimize(3, [1.0]), "function=3"),
        (lambda: minimize(sum, [1.0], method="spsa"), "method='spsa'"),
        (lambda: minimize(sum, [1.0], steps=0.1), "steps=0.1"),
        (lambda: minimize(sum, [1.0], max_evaluations=0), "max_evaluations=0"),
        (lambda: minimize(lambda w: np.nan, [1.0]), "the function returned nan"),
    ],
)
def test_invalid_input_of_the_solver_is_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_without_pairs_are_rejected():
    with pytest.raises(ValueError, match="ndcg@10 is undefined for every query"):
        SPSARanker().fit([[1.0], [2.0]], [0, 0], qid=0)
    with pytest.raises(ValueError, match="no query has documents of different labels"):
        SPSARanker(objective="cross-entropy").fit([[1.0], [2.0]], [1, 1], qid=0)
