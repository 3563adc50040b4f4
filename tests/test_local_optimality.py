"""The local-optimality test and the smoothness study."""

import numpy as np
import pytest

from structrank import StructRankSVM, datasets, metrics
from structrank.learners import LambdaRank, LocalOptimalityDisplay, SmoothnessDisplay, local_optimality, smoothness
from structrank.learners.networks import Network
from structrank.learners.optimality import LocalOptimality

# Few documents reach these labels, so that no model ranks them perfectly.
MEASURES = {"ndcg@10": "ndcg@10", "map": metrics.MAP(relevant_from=2), "mrr": metrics.MRR(relevant_from=3)}


@pytest.fixture(scope="module")
def part():
    return datasets.make_polynomial_ranking(n_queries=400, n_docs=30, n_features=10, random_state=0).train


@pytest.mark.parametrize("hidden_units", [0, 3])
@pytest.mark.parametrize("measure", MEASURES)
def test_hardly_any_direction_leads_up_from_settled_weights_and_many_from_random_ones(measure, hidden_units, part):
    model = LambdaRank(MEASURES[measure], hidden_units=hidden_units, settle=459)
    model.fit(part.X, part.y, qid=part.qid)
    found = local_optimality(model, part.X, part.y, part.qid, steps=(0.2, 0.5, 1.0))
    assert found.value < 0.99  # at 1 there would be nothing to pass
    # No direction of the final phase led up: with 99 % confidence less than 1 % of all directions do.
    assert found.n_better <= 0.01 * 459
    assert not found.better_weights.size
    start = LambdaRank(MEASURES[measure], hidden_units=hidden_units, max_epochs=0).fit(part.X, part.y, qid=part.qid)
    failed = local_optimality(start, part.X, part.y, part.qid, steps=(0.2,), n_directions=50, each_weight=False)
    assert not failed.passed
    assert failed.n_better > 5


def test_an_optimum_is_refuted_by_a_single_weight():
    around = metrics.MAP(), 0.5, np.array([0.1]), np.array([[0.4]]), np.array([-0.1, 0.1])
    found = LocalOptimality(*around, np.array([[0.4, 0.5], [0.3, 0.6]]))
    assert not found.passed
    assert str(found).startswith("not a local optimum of map: 0 of 1 random directions lead above 0.5000; moved alone, 1 of 2")
    assert LocalOptimality(*around, np.array([[0.4, 0.5]])).passed
    assert LocalOptimality(*around).passed


@pytest.mark.parametrize("hidden_units", [0, 3])
def test_the_result_does_not_depend_on_the_norm_of_the_weights(hidden_units, fold):
    train = fold.train
    model = LambdaRank("ndcg", hidden_units=hidden_units, max_epochs=2).fit(train.X, train.y, qid=train.qid)
    found = local_optimality(model, train.X, train.y, train.qid, n_directions=20)
    model.weights_[-(hidden_units or 6) :] *= 8.0  # the last layer; scaling by a power of 2 is exact
    longer = local_optimality(model, train.X, train.y, train.qid, n_directions=20)
    assert longer.curves == pytest.approx(found.curves, abs=1e-12)
    assert longer.weight_curves == pytest.approx(found.weight_curves, abs=1e-12)


@pytest.mark.parametrize("n_hidden", [0, 3])
def test_paths_score_the_moved_weights(n_hidden, rng):
    network, X = Network(4, n_hidden), rng.normal(size=(9, 4))
    weights = rng.normal(size=network.size)
    directions = np.concatenate([rng.normal(size=(3, network.size)), np.eye(network.size)])
    for direction, path in zip(directions, network.paths(X, weights, directions), strict=True):
        for step in (-0.7, 0.0, 1.3):
            assert path(step) == pytest.approx(network.scores(X, weights + step * direction), abs=1e-12)


def test_curves_are_the_measure_at_the_moved_weights(fold):
    train = fold.train
    model = LambdaRank("ndcg", hidden_units=0, max_epochs=2).fit(train.X, train.y, qid=train.qid)
    found = local_optimality(model, train.X, train.y, train.qid, steps=[0.1, 0.5], n_directions=3)
    assert found.value == pytest.approx(model.score(train.X, train.y, qid=train.qid), abs=1e-12)
    assert found.curves.shape == (3, 2)
    assert found.weight_curves.shape == (6, 4)
    moved = model.weights_.copy()
    moved[2] -= 0.5 * np.linalg.norm(moved)
    expected = metrics.evaluate(train.y, train.X @ moved, train.qid, "ndcg")["ndcg"]
    assert found.weight_curves[2, 0] == pytest.approx(expected, abs=1e-9)
    again = local_optimality(model, train.X, train.y, train.qid, steps=[0.1, 0.5], n_directions=3)
    assert np.array_equal(again.curves, found.curves)


def test_459_directions_give_99_percent_confidence(fold):
    train = fold.train
    model = LambdaRank("map", hidden_units=0, max_epochs=1).fit(train.X, train.y, qid=train.qid)
    enough = local_optimality(model, train.X, train.y, train.qid, steps=[1.0], each_weight=False)
    assert enough.curves.shape[0] == 459
    assert enough.confidence >= 0.99
    fewer = local_optimality(model, train.X, train.y, train.qid, steps=[1.0], n_directions=458, each_weight=False)
    assert fewer.confidence < 0.99


def test_any_linear_model_can_be_tested(fold):
    train = fold.train
    model = StructRankSVM("map", C=1.0).fit(train.X, train.y, qid=train.qid)
    found = local_optimality(model, train.X, train.y, train.qid, "map", n_directions=20, each_weight=False)
    assert 0.5 < found.value <= 1
    with pytest.raises(ValueError, match="StructRankSVM has no measure; pass one"):
        local_optimality(model, train.X, train.y, train.qid)


def test_smoothness_grows_with_the_number_of_queries(part):
    model = LambdaRank("ndcg", hidden_units=0, max_epochs=5).fit(part.X, part.y, qid=part.qid)
    found = smoothness(model, part.X, part.y, part.qid, n_queries=[2, 20, 200], n_shifts=41)
    assert found.roughness(2) > found.roughness(20) > found.roughness(200)
    middle = found.curves[200][:, 20]  # the unchanged weights
    assert middle == pytest.approx(model.score(part.X, part.y, qid=part.qid), abs=1e-12)
    assert np.abs(model.weights_[found.weights]).min() >= np.sort(np.abs(model.weights_))[-5]


def test_displays_draw_the_curves(fold):
    import matplotlib

    train = fold.train
    model = LambdaRank("ndcg", max_epochs=2, hidden_units=2).fit(train.X, train.y, qid=train.qid)
    display = LocalOptimalityDisplay.from_estimator(model, train.X, train.y, qid=train.qid, n_directions=9, kind="weights")
    assert len(display.lines_) == 4
    assert display.lines_[0].get_ydata()[10] == display.result.value
    names = [f"weight {number}" for number in range(4)]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [*names, "weights as given"]
    display.plot("directions", n_shown=2)
    assert next(iter(display.lines_.values())).get_xdata()[0] == 0
    for line in display.lines_.values():
        curve = display.result.curves[int(line.get_label().removeprefix("direction "))]
        np.testing.assert_array_equal(line.get_ydata()[1:], curve)
    sweep = SmoothnessDisplay.from_estimator(model, train.X, train.y, qid=train.qid, n_queries=[5, 50], n_shifts=11)
    assert len(sweep.plot(5).lines_) == 2
    names = [f"weight {weight}" for weight in sweep.result.weights]
    assert [text.get_text() for text in sweep.ax_.get_legend().get_texts()] == names
    with pytest.raises(ValueError, match="n_queries=7 is not one of the samples: 5, 50"):
        sweep.plot(7)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": [0.1, -1]}, "steps=-1"),
        ({"steps": []}, "steps is empty"),
        ({"n_directions": 0}, "n_directions=0"),
        ({"measure": "ndgc"}, "'ndgc' is not known"),
        ({"random_state": None}, "random_state=None"),
    ],
)
def test_invalid_settings_are_rejected(settings, message, fold):
    train = fold.train
    model = LambdaRank("map", hidden_units=0, max_epochs=0).fit(train.X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match=message):
        local_optimality(model, train.X, train.y, train.qid, **settings)


def test_invalid_models_and_data_are_rejected(fold):
    from sklearn.dummy import DummyRegressor

    train = fold.train
    model = LambdaRank("map", hidden_units=0, max_epochs=0).fit(train.X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match="X has 2 features, but LambdaRank is expecting 6"):
        local_optimality(model, train.X[:, :2], train.y, train.qid)
    with pytest.raises(ValueError, match="map is undefined for every query"):
        local_optimality(model, train.X, np.zeros(len(train.y)), train.qid)
    model.weights_[:] = 0.0
    with pytest.raises(ValueError, match="a layer of weights that are all 0"):
        local_optimality(model, train.X, train.y, train.qid)
    with pytest.raises(ValueError, match="DummyRegressor has no vector of weights"):
        local_optimality(DummyRegressor().fit(train.X, train.y), train.X, train.y, train.qid, "map")
    with pytest.raises(ValueError, match="n_queries=\\[1000\\] is not valid"):
        smoothness(model, train.X, train.y, train.qid, n_queries=[1000])


@pytest.mark.parametrize("hidden_units", [0, 3])
def test_identical_documents_stay_tied_along_a_path(hidden_units):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 17))
    which = rng.integers(0, 3, 1003)
    network = Network(17, hidden_units)
    for path in network.paths(rows[which], rng.standard_normal(network.size), rng.standard_normal((20, network.size))):
        scores = path(0.3)
        assert all(np.unique(scores[which == number]).size == 1 for number in range(3))


def test_samples_on_which_the_measure_is_undefined_are_rejected(fold):
    y = np.zeros_like(fold.train.y)
    y[fold.train.qid == fold.train.qid[-1]] = fold.train.y[fold.train.qid == fold.train.qid[-1]]
    model = LambdaRank("map", hidden_units=0, max_epochs=1).fit(fold.train.X, y, qid=fold.train.qid)
    with pytest.raises(ValueError, match="map is undefined for every query of a sample of 1"):
        smoothness(model, fold.train.X, y, fold.train.qid, n_queries=[1])
