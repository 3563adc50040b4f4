"""RankNet and LambdaRank: learning, invariance, early stopping, model files and invalid input."""

import importlib.util
import inspect
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from structrank import StructRankWarning, compare, datasets, load_model, metrics
from structrank._kernels import networks as kernels
from structrank.learners import LambdaRank, RankNet, SPSARanker, TrainingDisplay, local_optimality
from structrank.learners.networks import Network
from structrank.learners.plans import CONSTRUCTIONS
from structrank.learners.rankers import _Run
from structrank.metrics import Evaluator
from structrank.training.data import RankingData

QUICK = {"max_epochs": 8, "patience": None}


def fit(model, part, **settings):
    return model.fit(part.X, part.y, qid=part.qid, **settings)


@pytest.mark.parametrize("hidden_units", [0, 4])
@pytest.mark.parametrize("batch", ["query", "full"])
@pytest.mark.parametrize("make", [RankNet, LambdaRank])
def test_training_ranks_unseen_queries_well(make, batch, hidden_units, fold):
    model = make("map", hidden_units=hidden_units, batch=batch, max_epochs=100)
    fit(model, fold.train)
    start = fit(clone(model).set_params(max_epochs=0), fold.train)
    assert model.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.75
    assert model.score(fold.train.X, fold.train.y, qid=fold.train.qid) > start.score(
        fold.train.X, fold.train.y, qid=fold.train.qid
    )


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_construction_raises_the_measure(construction, train):
    model = LambdaRank("map", construction, hidden_units=0, **QUICK)
    start = fit(clone(model).set_params(max_epochs=0), train)
    assert fit(model, train).history_[-1].train > start.score(train.X, train.y, qid=train.qid)


@pytest.mark.parametrize("n_hidden", [0, 3])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(n_hidden, rng):
    network, X, forces = Network(4, n_hidden), rng.normal(size=(6, 4)), rng.normal(size=6)
    weights = rng.normal(size=network.size)
    hidden, scores, gradient = np.empty((6, n_hidden)), np.empty(6), np.zeros(network.size)
    kernels.forward(X, weights, n_hidden, hidden, scores)
    kernels.backward(X, hidden, forces, weights, n_hidden, gradient)
    step = 1e-6
    for j in range(network.size):
        shift = step * np.eye(network.size)[j]
        slope = forces @ (network.scores(X, weights + shift) - network.scores(X, weights - shift)) / (2 * step)
        assert gradient[j] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("n_hidden", [0, 3])
def test_rescaled_weights_apply_to_unscaled_features(n_hidden, rng):
    network, X = Network(4, n_hidden), rng.normal(size=(6, 4))
    weights, mean, scale = rng.normal(size=network.size), rng.normal(size=4), np.array([2.0, 0.5, 0.0, 1.0])
    expected = network.scores((X - mean) * scale, weights)
    found = network.scores(X, network.rescale(weights, mean, scale))
    assert np.diff(found) == pytest.approx(np.diff(expected), abs=1e-12)


@pytest.mark.parametrize("make", [RankNet, LambdaRank])
def test_models_do_not_depend_on_the_scale_of_features(make, train):
    scale, shift = np.array([1.0, 100.0, 1e-3, 1.0, 7.0, 1.0]), np.array([0.0, 5.0, 1.0, -2.0, 0.0, 0.0])
    one = fit(make(hidden_units=3, **QUICK), train)
    other = make(hidden_units=3, **QUICK).fit(train.X * scale + shift, train.y, qid=train.qid)
    assert other.predict(train.X * scale + shift) == pytest.approx(one.predict(train.X), abs=1e-6)


def test_every_container_gives_the_same_model(train):
    def weights(X, y=train.y, qid=train.qid):
        return LambdaRank(hidden_units=2, **QUICK).fit(X, y, qid=qid).weights_

    expected = weights(train.X)
    assert np.array_equal(weights(train.X), expected)
    assert np.array_equal(weights(np.asfortranarray(train.X)), expected)
    assert np.array_equal(weights(pd.DataFrame(train.X), pd.Series(train.y), pd.Series(train.qid)), expected)
    assert np.array_equal(weights(scipy.sparse.csr_matrix(train.X)), expected)
    assert np.array_equal(weights(train.X.tolist(), train.y.tolist(), [f"query {q}" for q in train.qid]), expected)


def test_queries_of_weight_0_do_not_change_the_model(train):
    first = train.qid < np.median(train.qid)
    weight = np.where(first, 2.0, 0.0)
    model = fit(LambdaRank("map", hidden_units=0, batch="full", **QUICK), train, sample_weight=weight)
    values = np.where(first, 1.0, 0.0)
    scaled = fit(LambdaRank("map", hidden_units=0, batch="full", **QUICK), train, sample_weight=values)
    assert model.weights_ == pytest.approx(scaled.weights_, abs=1e-12)
    scored = model.score(train.X, train.y, qid=train.qid, sample_weight=weight)
    assert scored == pytest.approx(model.score(train.X[first], train.y[first], qid=train.qid[first]))
    assert scored == pytest.approx(max(entry.train for entry in model.history_))


def test_history_has_an_entry_for_each_epoch(fold):
    model = fit(RankNet(hidden_units=0, **QUICK), fold.train, validation=fold.validation)
    frame = model.history_.to_frame()
    assert frame.index.tolist() == list(range(1, 9))
    assert frame["loss"].iloc[-1] < frame["loss"].iloc[0] < np.log(2) * 3
    assert (frame["effective_pairs"] > 0).all()
    assert frame["validation"].idxmax() == model.best_round_
    best = model.score(fold.validation.X, fold.validation.y, qid=fold.validation.qid)
    assert best == pytest.approx(frame["validation"].max(), abs=1e-12)
    assert "8 rounds" in repr(model.history_)
    assert sorted(TrainingDisplay.from_estimator(model).lines_) == ["train", "validation"]


def test_measures_with_a_cutoff_have_fewer_effective_pairs():
    train = datasets.make_polynomial_ranking(n_queries=20, n_docs=30, n_features=5, random_state=0).train
    names = (metrics.NDCG(), metrics.NDCG(k=3), metrics.MAP(relevant_from=2), metrics.MRR(relevant_from=2))
    pairs = [fit(LambdaRank(measure, hidden_units=0, max_epochs=1), train).history_[0].effective_pairs for measure in names]
    assert pairs[0] > pairs[1] > 0
    assert pairs[0] > pairs[2] > pairs[3] > 0


def test_the_learning_rate_never_rises(train):
    model = LambdaRank(hidden_units=0, optimizer="sgd", learning_rate=1.0, max_epochs=30, patience=None)
    history = fit(model, train).history_
    rates = [entry.learning_rate for entry in history]
    assert rates[-1] < rates[0] == 1.0
    for before, after in pairwise(history):
        assert after.learning_rate <= before.learning_rate


def test_restarts_continue_after_patience_runs_out(train):
    stopped = fit(LambdaRank("mrr", hidden_units=0, max_epochs=200, patience=3, settle=0), train)
    again = fit(LambdaRank("mrr", hidden_units=0, max_epochs=200, patience=3, restarts=2, settle=0), train)
    assert stopped.stop_reason_ == again.stop_reason_ == "patience"
    assert again.n_iter_ > stopped.n_iter_
    assert [entry.train for entry in again.history_[: stopped.n_iter_]] == [entry.train for entry in stopped.history_]
    best = again.score(train.X, train.y, qid=train.qid)
    assert best == pytest.approx(max(entry.train for entry in again.history_), abs=1e-12)


def train_by_plain_adam(part, hidden_units, weigh, n_epochs=40, rate=0.01):
    """Train as a textbook does: one step of Adam per query, gradients from all pairs. Return the best NDCG of any epoch."""
    rng = np.random.default_rng(0)
    X = (part.X - part.X.mean(axis=0)) / part.X.std(axis=0)
    queries = [np.flatnonzero(part.qid == query) for query in np.unique(part.qid)]
    shapes = [(X.shape[1], hidden_units), (hidden_units,), (hidden_units,)] if hidden_units else [(X.shape[1],)]
    layers = [rng.uniform(-1, 1, shape) / np.sqrt(shape[0]) for shape in shapes]
    means, squares = [0.0 for _ in layers], [0.0 for _ in layers]
    best, n_steps = 0.0, 0
    for _ in range(n_epochs):
        for rows in rng.permutation(len(queries)):
            inputs, labels = X[queries[rows]], part.y[queries[rows]]
            hidden = np.tanh(inputs @ layers[0] + layers[1]) if hidden_units else inputs
            scores = hidden @ layers[-1]
            pushes = np.where(labels[:, None] > labels, 1 / (1 + np.exp(scores[:, None] - scores)), 0.0)
            if weigh:
                discount = np.empty(len(scores))
                discount[np.argsort(-scores)] = 1 / np.log2(2 + np.arange(len(scores)))
                ideal = np.sort(2**labels - 1)[::-1] @ np.sort(discount)[::-1]
                pushes *= np.abs(np.subtract.outer(2**labels, 2**labels) * np.subtract.outer(discount, discount)) / ideal
            forces = pushes.sum(axis=1) - pushes.sum(axis=0)
            gradients = [hidden.T @ forces]
            if hidden_units:
                slopes = forces[:, None] * layers[2] * (1 - hidden**2)
                gradients = [inputs.T @ slopes, slopes.sum(axis=0), *gradients]
            n_steps += 1
            for at, gradient in enumerate(gradients):
                means[at] = 0.9 * means[at] + 0.1 * gradient
                squares[at] = 0.999 * squares[at] + 0.001 * gradient**2
                corrected = np.sqrt(squares[at] / (1 - 0.999**n_steps))
                layers[at] = layers[at] + rate * means[at] / (1 - 0.9**n_steps) / (corrected + 1e-8)
        hidden = np.tanh(X @ layers[0] + layers[1]) if hidden_units else X
        best = max(best, metrics.evaluate(part.y, hidden @ layers[-1], part.qid, "ndcg")["ndcg"])
    return best


@pytest.mark.parametrize("make", [RankNet, LambdaRank])
def test_training_is_as_good_as_plain_adam_and_hidden_units_help(make):
    part = datasets.make_ranking(n_queries=30, n_docs=150, n_features=10, n_grades=5, noise=1.0, random_state=0).train
    linear, layered = (
        fit(make("ndcg", hidden_units=units, max_epochs=100), part).score(part.X, part.y, qid=part.qid) for units in (0, 10)
    )
    assert linear > train_by_plain_adam(part, 0, weigh=make is LambdaRank) - 0.005
    assert layered > train_by_plain_adam(part, 10, weigh=make is LambdaRank) - 0.005
    assert layered > linear


@pytest.mark.parametrize("hidden_units", [0, 3])
def test_training_goes_on_from_given_weights(hidden_units, train):
    X = np.column_stack([train.X * 10.0 + 3.0, np.full(len(train.y), 7.0)])  # the last column is constant
    other = RankNet(hidden_units=hidden_units, **QUICK).fit(X, train.y, qid=train.qid)
    weights = other.weights_.copy()
    weights[-1 if hidden_units == 0 else (X.shape[1] - 1) * hidden_units] = 0.5  # a weight of the constant column
    none = LambdaRank("map", hidden_units=hidden_units, max_epochs=0).fit(X, train.y, qid=train.qid, start=weights)
    other.weights_ = weights
    assert np.diff(none.predict(X)) == pytest.approx(np.diff(other.predict(X)), abs=1e-9)
    more = LambdaRank("map", hidden_units=hidden_units, **QUICK).fit(X, train.y, qid=train.qid, start=weights)
    assert more.score(X, train.y, qid=train.qid) >= none.score(X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match=r"start has shape \(3,\); expected"):
        LambdaRank("map", hidden_units=hidden_units).fit(X, train.y, qid=train.qid, start=[0.0, 1.0, 2.0])


@pytest.mark.parametrize("hidden_units", [0, 3])
def test_hardly_any_direction_leads_up_from_settled_weights(hidden_units, fold):
    def ranker(settle, max_epochs=200):
        return LambdaRank("map", hidden_units=hidden_units, patience=3, max_epochs=max_epochs, settle=settle)

    part = fold.train
    before, after = fit(ranker(0), part), fit(ranker(459), part)
    assert (before.stop_reason_, after.stop_reason_) == ("patience", "settled")
    rounds = [entry.train for entry in after.history_]
    assert rounds[: before.n_iter_] == [entry.train for entry in before.history_]
    settling = rounds[before.n_iter_ :]
    assert settling == sorted(settling)
    assert settling[-1] > max(rounds[: before.n_iter_])
    assert after.score(part.X, part.y, qid=part.qid) == pytest.approx(settling[-1], abs=1e-12)
    data = part.X, part.y, part.qid
    assert not local_optimality(before, *data, random_state=1).passed
    found = local_optimality(after, *data, random_state=1)
    assert found.n_better <= 0.01 * 459
    assert not found.better_weights.size
    assert fit(ranker(459, max_epochs=1), part).stop_reason_ == "max_epochs"
    assert fit(ranker(459), part, validation=fold.validation).stop_reason_ == "patience"
    last = before.n_iter_ + 1
    assert fit(ranker(459), part, callback=lambda entry: entry.round == last).stop_reason_ == "callback"


@pytest.mark.parametrize(
    "model",
    [RankNet(**QUICK), LambdaRank(metrics.NDCG(k=3, gain="linear"), hidden_units=2, **QUICK)],
    ids=["ranknet", "lambdarank"],
)
def test_saved_models_predict_the_same(model, train, tmp_path):
    fit(model, train).save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert np.array_equal(loaded.predict(train.X), model.predict(train.X))
    assert loaded.get_params() == model.get_params()
    assert next(iter(loaded.history_)).train == model.history_[0].train


def test_they_can_be_compared_in_the_criterion_table(fold):
    rows = {"LambdaRank": LambdaRank("map", hidden_units=0, **QUICK), "RankNet": RankNet(hidden_units=0, **QUICK)}
    table = compare({"made": fold}, trainers=rows, measures=["map"])
    assert (table.to_frame().to_numpy() > 0.6).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measure": "auc"}, "'auc' has no lambdas"),
        ({"measure": None}, "measure=None"),
        ({"construction": "springs"}, "construction='springs' is not known"),
        ({"hidden_units": -1}, "hidden_units=-1"),
        ({"hidden_units": 2.5}, "hidden_units=2.5"),
        ({"batch": "some"}, "batch='some' is not known"),
        ({"optimizer": "newton"}, "optimizer='newton' is not known"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"max_epochs": -1}, "max_epochs=-1"),
        ({"patience": 0}, "patience=0"),
        ({"restarts": None}, "restarts=None"),
        ({"settle": -1}, "settle=-1"),
        ({"random_state": "a"}, "random_state='a'"),
    ],
)
def test_invalid_parameters_are_rejected_before_the_data_are_read(settings, message):
    with pytest.raises(ValueError, match=message):
        LambdaRank(**settings).fit([["not read"]], None)


def test_invalid_data_are_rejected(train):
    with pytest.raises(ValueError, match="no query has documents that map distinguishes"):
        LambdaRank("map").fit([[1.0], [2.0]], [0, 0], qid=0)
    with pytest.raises(ValueError, match="no query has documents of different labels"):
        RankNet().fit([[1.0], [2.0]], [1, 1], qid=0)
    with pytest.raises(ValueError, match="validation is of length 2"):
        fit(LambdaRank(), train, validation=(train.X, train.y))
    with pytest.raises(ValueError, match="validation: X has 1 features"):
        fit(LambdaRank(), train, validation=(train.X[:, :1], train.y, train.qid))
    with pytest.raises(ValueError, match="callback=3 is not valid"):
        fit(LambdaRank(), train, callback=3)
    model = fit(LambdaRank(**QUICK), train)
    with pytest.raises(ValueError, match="X has 2 features, but LambdaRank is expecting 6"):
        model.predict(train.X[:, :2])
    with pytest.raises(ValueError, match="contains NaN at row 1, column 0"):
        model.predict([[0.0] * 6, [np.nan] + [0.0] * 5])
    with pytest.raises(ValueError, match="learning_rate=1e\\+308 is too large"):
        fit(LambdaRank(learning_rate=1e308), train)
    with pytest.raises(ValueError, match=r"learning_rate=\d+ is too large"):
        fit(LambdaRank(learning_rate=10**308), train)


class OfOneQuery(RankNet):
    """A learner of data without ids, which scikit-learn's checks pass."""

    def fit(self, X, y, qid=0, sample_weight=None):
        return super().fit(X, y, qid, sample_weight)

    def score(self, X, y, qid=0):
        return super().score(X, y, qid)


def test_scikit_learns_own_checks_pass():
    reason = "weights belong to queries, and these checks put all rows in one query"
    not_applicable = {
        "check_sample_weights_not_overwritten": reason,
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
    check_estimator(OfOneQuery(hidden_units=2, max_epochs=2), expected_failed_checks=not_applicable)


# --- common parts of the learners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "map", "mrr@2", "auc", "p@2", "pair_accuracy"])
def test_the_evaluator_equals_evaluate(measure, rng):
    labels, scores = rng.integers(0, 4, 60).astype(float), rng.normal(size=60).round(1)
    qid = rng.integers(0, 9, 60)
    data = RankingData(np.zeros((60, 1)), labels, qid)
    evaluator = Evaluator(metrics.parse(measure), data.labels, data.grouping)
    assert evaluator(scores) == metrics.evaluate(labels, scores, qid, measure)[measure]


def test_the_evaluator_ranks_documents_without_clicks(rng):
    clicks, scores, qid = rng.random(40), rng.normal(size=40), rng.integers(0, 5, 40)
    clicks[::3] = np.nan
    data = RankingData(np.zeros((40, 1)), np.zeros(40), qid)
    expected = metrics.evaluate(clicks, scores, qid, "cndcg@5")["cndcg@5"]
    assert Evaluator(metrics.CNDCG(k=5), clicks, data.grouping)(scores) == expected
    assert expected == metrics.evaluate(np.nan_to_num(clicks), scores, qid, "cndcg@5")["cndcg@5"]


@pytest.mark.parametrize("ranker", [RankNet, LambdaRank, SPSARanker])
def test_a_measure_that_is_undefined_everywhere_is_an_error(ranker, rng):
    X, qid = rng.normal(size=(60, 3)), np.repeat(range(6), 10)
    y = (X[:, 0] > 0).astype(int)
    irrelevant = (X[:10], np.zeros(10), np.zeros(10))
    with pytest.raises(ValueError, match=r"validation: ndcg@10 is undefined for every query"):
        ranker().fit(X, y, qid=qid, validation=irrelevant)
    with pytest.raises(ValueError, match=r"there is no training signal"):
        ranker(measure=metrics.MAP(relevant_from=5)).fit(X, y, qid=qid)


def test_ranknet_needs_a_measure_that_is_defined(rng):
    X = rng.normal(size=(60, 3))
    with pytest.raises(ValueError, match="auc is undefined for every query"):
        RankNet("auc").fit(X, 1 + (X[:, 0] > 0), qid=np.repeat(range(6), 10))


@pytest.mark.parametrize("ranker", [RankNet(hidden_units=0, max_epochs=5), SPSARanker(max_evaluations=50)])
def test_constant_columns_warn_and_huge_columns_are_used(ranker, rng):
    X, qid = rng.normal(size=(60, 3)), np.repeat(range(6), 10)
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(StructRankWarning, match="No column of X varies"):
        clone(ranker).fit(np.ones_like(X), y, qid=qid)
    expected = clone(ranker).fit(X, y, qid=qid).predict(X)
    assert clone(ranker).fit(X * 2.0**530, y, qid=qid).predict(X * 2.0**530) == pytest.approx(expected, rel=1e-9)


def test_features_are_scaled_by_queries_of_positive_weight(rng):
    X, qid = rng.normal(size=(60, 3)), np.repeat(range(6), 10)
    y = (X[:, 0] > 0).astype(int)
    without = RankNet(hidden_units=0, max_epochs=5).fit(X, y, qid=qid)
    more = RankNet(hidden_units=0, max_epochs=5).fit(
        np.vstack([X, np.full((2, 3), 1e6)]),
        np.append(y, [0, 1]),
        qid=np.append(qid, [9, 9]),
        sample_weight=np.append(np.ones(60), [0, 0]),
    )
    assert more.score(X, y, qid=qid) == pytest.approx(without.score(X, y, qid=qid), abs=0.02)


def learners():
    from structrank.learners import LambdaMART, McRank, StructRankTrees

    trees = {"n_estimators": 5, "min_child_samples": 3}
    yield from (LambdaRank(hidden_units=0, **QUICK), RankNet(hidden_units=2, **QUICK), SPSARanker(max_evaluations=50))
    if importlib.util.find_spec("lightgbm"):
        yield from (LambdaMART(**trees), McRank(**trees), StructRankTrees(**trees))


def test_queries_of_weight_0_are_ignored_and_only_ratios_of_weights_matter(train):
    rng = np.random.default_rng(0)
    of_query = dict(zip(np.unique(train.qid), rng.choice([0.0, 1.0, 2.0], len(np.unique(train.qid))), strict=True))
    weight = np.array([of_query[query] for query in train.qid])
    some = weight > 0
    for learner in learners():
        whole = clone(learner).fit(train.X, train.y, train.qid, sample_weight=weight).predict(train.X)
        rest = clone(learner).fit(train.X[some], train.y[some], train.qid[some], sample_weight=weight[some])
        np.testing.assert_array_equal(rest.predict(train.X), whole)
        tiny = clone(learner).fit(train.X, train.y, train.qid, sample_weight=weight * 2.0**-100)
        np.testing.assert_allclose(tiny.predict(train.X), whole, rtol=1e-9)


def test_label_sources_of_queries_of_weight_0_are_ignored(train):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")
    assert lightgbm
    from structrank.learners import Graded, LambdaMART

    some = train.qid != train.qid[0]
    clicks = np.random.default_rng(0).random(len(train.y))
    model = LambdaMART(Graded(), n_estimators=3, min_child_samples=3)
    whole = clone(model).fit(train.X, train.y, train.qid, some.astype(float), labels={"clicks": clicks})
    rest = clone(model).fit(train.X[some], train.y[some], train.qid[some], labels={"clicks": clicks[some]})
    np.testing.assert_array_equal(whole.predict(train.X), rest.predict(train.X))


def test_validation_columns_in_another_order_are_rejected(train):
    names = [f"f{number}" for number in range(train.X.shape[1])]
    frame = pd.DataFrame(train.X, columns=names)
    for learner in learners():
        with pytest.raises(ValueError, match=rf"validation: column 0 of X is '{names[-1]}', but 'f0' in training"):
            learner.fit(frame, train.y, train.qid, validation=(frame[names[::-1]], train.y, train.qid))


def test_the_history_includes_an_interrupted_epoch(train, monkeypatch):
    ranker = LambdaRank(hidden_units=0, patience=2, settle=200, learning_rate=0.01)
    finished = fit(ranker, train)
    assert finished.stop_reason_ == "settled"
    kept = _Run._keep

    def keep_and_interrupt(self, weights, epoch, value):
        kept(self, weights, epoch, value)
        if inspect.stack()[1].function == "_keep_if_better":
            raise KeyboardInterrupt

    monkeypatch.setattr(_Run, "_keep", keep_and_interrupt)
    with pytest.warns(StructRankWarning, match="interrupted"):
        model = fit(ranker, train)
    assert model.n_iter_ == model.best_round_
    assert model.history_[model.best_round_ - 1].train == pytest.approx(model.score(train.X, train.y, qid=train.qid))


@pytest.mark.parametrize("ranker", [LambdaRank, RankNet, SPSARanker])
def test_a_data_set_in_place_of_its_parts_is_rejected_with_advice(ranker, fold):
    with pytest.raises(ValueError, match=r"X is a Dataset.*fit\(train.X, train.y, qid=train.qid\)"):
        ranker().fit(fold.train)
