"""Polish: the line search is exact, and only steps that improve the measure on validation queries are kept."""

import numpy as np
import pytest
import scipy.sparse

from structrank import StructRankSVM, datasets, load_model, metrics
from structrank.datasets import Dataset
from structrank.selection.polish import LineSearch, polish
from structrank.training.data import RankingData, score_rows

MEASURES = {
    "map": metrics.MAP(),
    "mrr": metrics.MRR(),
    "mrr@2": metrics.MRR(k=2),
    "ndcg@3, kdd08": metrics.NDCG(k=3, gain="binary", discount="kdd08"),
    "ndcg, relevant from 2": metrics.NDCG(gain="binary", relevant_from=2),
    "ndcg@4, exp2": metrics.NDCG(k=4),
    "ndcg@3, linear": metrics.NDCG(k=3, gain="linear"),
}


def random_part(rng, n_queries, n_features=3, n_grades=3, longest=9):
    sizes = rng.integers(2, longest + 1, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    return Dataset(rng.normal(size=(qid.size, n_features)), rng.integers(0, n_grades, qid.size), qid)


def mean_of(measure, part, scores):
    return metrics.evaluate(part.y, scores, part.qid, measure)[measure.name]


@pytest.mark.parametrize("name", MEASURES)
def test_the_profile_of_a_line_equals_the_measure_along_it(name):
    rng = np.random.default_rng(1)
    for _ in range(30):
        part = random_part(rng, n_queries=4)
        scores, slopes = rng.normal(size=(2, len(part.y)))
        edges, values = LineSearch(RankingData(part.X, part.y, part.qid), MEASURES[name]).profile(scores, slopes, 1.5)
        assert edges[0] == -1.5
        assert edges[-1] == 1.5
        assert (np.diff(edges) >= 0).all()
        wide = np.flatnonzero(np.diff(edges) > 1e-9)
        middles = 0.5 * (edges[wide] + edges[wide + 1])
        found = [mean_of(MEASURES[name], part, scores + t * slopes) for t in middles]
        assert values[wide] - values[wide[0]] == pytest.approx(np.array(found) - found[0], abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_no_point_of_a_dense_grid_is_better_than_the_line_search(name):
    rng = np.random.default_rng(2)
    gains = []
    for _ in range(5):
        part = random_part(rng, n_queries=6)
        data = RankingData(part.X, part.y, part.qid)
        w, direction = rng.normal(size=(2, 3))
        before = mean_of(MEASURES[name], part, part.X @ w)
        found, gain = LineSearch(data, MEASURES[name]).along(w, direction, reach=1.0)
        assert mean_of(MEASURES[name], part, part.X @ found) == pytest.approx(before + gain, abs=1e-12)
        assert (found is w) == (gain == 0.0)
        gains.append(gain)
        centred = part.X - np.array([part.X[part.qid == q].mean(axis=0) for q in part.qid])
        spread = np.std(centred @ w), np.std(centred @ direction)
        grid = np.linspace(-1, 1, 301) * spread[0] / spread[1]
        best = max(mean_of(MEASURES[name], part, part.X @ (w + t * direction)) for t in grid)
        assert before + gain >= best - 1e-9
    assert max(gains) > 0.01


def test_skipping_documents_that_cannot_reach_the_cutoff_changes_nothing():
    rng = np.random.default_rng(3)
    part = random_part(rng, n_queries=5, longest=60)
    scores, slopes = rng.normal(size=(2, len(part.y)))
    for measure, uncut in ((metrics.MRR(k=3), metrics.MRR()), (metrics.NDCG(k=3), metrics.NDCG())):
        data = RankingData(part.X, part.y, part.qid)
        edges, values = LineSearch(data, measure).profile(scores, slopes, 0.1)
        all_edges, _ = LineSearch(data, uncut).profile(scores, slopes, 0.1)
        assert edges.size < 0.5 * all_edges.size
        found = mean_of(measure, part, scores + 0.1 * slopes) - mean_of(measure, part, scores - 0.1 * slopes)
        assert values[-1] == pytest.approx(found, abs=1e-12)


def test_queries_without_relevant_or_irrelevant_documents_count_as_the_measure_counts_them():
    rng = np.random.default_rng(4)
    part = random_part(rng, n_queries=8)
    part.y[np.isin(part.qid, [0, 3])] = 0
    part.y[part.qid == 5] = 2
    scores, slopes = rng.normal(size=(2, len(part.y)))
    for measure in MEASURES.values():
        _, values = LineSearch(RankingData(part.X, part.y, part.qid), measure).profile(scores, slopes, 1.0)
        found = mean_of(measure, part, scores + slopes) - mean_of(measure, part, scores - slopes)
        assert values[-1] == pytest.approx(found, abs=1e-12)


def test_rows_in_any_order_and_sparse_matrices_give_the_same_line():
    rng = np.random.default_rng(5)
    part = random_part(rng, n_queries=10)
    w, direction = rng.normal(size=(2, 3))
    order = rng.permutation(len(part.y))

    def along(X, y, qid):
        return LineSearch(RankingData(X, y, qid), metrics.MAP()).along(w, direction)

    expected, gain = along(part.X, part.y, part.qid)
    assert gain > 0
    for found, other in (
        along(part.X[order], part.y[order], part.qid[order]),
        along(scipy.sparse.csr_matrix(part.X), part.y, part.qid),
    ):
        assert found == pytest.approx(expected, abs=1e-9)
        assert other == pytest.approx(gain, abs=1e-12)


def test_a_direction_constant_within_each_query_is_not_searched():
    rng = np.random.default_rng(6)
    part = random_part(rng, n_queries=10)
    X = np.column_stack([part.X, (rng.normal(size=10) * 1e3 + 0.1)[part.qid]])
    w = np.append(rng.normal(size=3), 0.0)
    found, gain = LineSearch(RankingData(X, part.y, part.qid), metrics.MAP()).along(w, np.array([0.0, 0.0, 0.0, 1.0]))
    assert found is w
    assert gain == 0.0


@pytest.fixture(scope="module")
def noisy():
    """A fold with few training queries, on which polish can improve and overfit."""
    return datasets.make_ranking(n_queries=60, n_docs=12, n_features=6, noise=1.0, random_state=3)


@pytest.fixture(scope="module")
def model(noisy):
    return StructRankSVM("auc", C=0.01).fit(noisy.train.X, noisy.train.y, qid=noisy.train.qid)


def test_polish_raises_the_measure_and_does_not_change_its_input(noisy, model):
    before = model.coef_.copy()
    polished = polish(model, noisy.train, noisy.validation, "ndcg@5")
    record, measure = polished.polish_, metrics.NDCG(k=5, gain="binary", discount="kdd08")
    assert np.array_equal(model.coef_, before)
    assert not hasattr(model, "polish_")
    assert record.train == pytest.approx([mean_of(measure, noisy.train, m.predict(noisy.train.X)) for m in (model, polished)])
    assert record.validation == pytest.approx(
        [mean_of(measure, noisy.validation, m.predict(noisy.validation.X)) for m in (model, polished)]
    )
    assert record.validation[1] > record.validation[0]
    assert record.train[1] > record.train[0]
    assert 0 < record.steps <= record.tried
    assert str(record).startswith("ndcg@5: train 0.")


def test_a_model_of_grades_is_polished_by_its_own_gain():
    fold = datasets.make_ranking(n_queries=60, n_docs=12, n_features=6, n_grades=4, noise=1.0, random_state=3)
    gain = (0, 1, 1.5, 9)
    model = StructRankSVM("ndcg", k=5, relevant_from=None, gain=gain, C=0.01)
    model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    measure = metrics.NDCG(k=5, gain=gain, discount="kdd08")
    for given in ("ndcg@5", measure):
        polished = polish(model, fold.train, fold.validation, given)
        for part, ends in ((fold.train, polished.polish_.train), (fold.validation, polished.polish_.validation)):
            assert ends == pytest.approx([mean_of(measure, part, one.predict(part.X)) for one in (model, polished)])
        assert polished.polish_.steps > 0


def test_polish_keeps_the_model_if_no_step_improves_validation(noisy, model):
    part = noisy.validation
    perfect = Dataset(part.X, (model.rank(part.X, qid=part.qid) <= 3).astype(float), part.qid)
    polished = polish(model, noisy.train, perfect, "map")
    assert polished.polish_.tried > 0
    assert np.array_equal(polished.coef_, model.coef_)
    assert polished.polish_.steps == 0
    assert polished.polish_.validation == (1.0, 1.0)


def test_polish_is_the_same_for_the_same_seed_and_survives_a_file(noisy, model, tmp_path):
    first, second = (polish(model, noisy.train, noisy.validation, "mrr", random_state=7) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    first.save(tmp_path / "m.structrank")
    loaded = load_model(tmp_path / "m.structrank")
    assert loaded.polish_ == first.polish_
    assert np.array_equal(loaded.predict(noisy.test.X), first.predict(noisy.test.X))


def test_invalid_arguments_of_polish_are_rejected(noisy, model):
    for measure in ("auc", "p@5", metrics.PairAccuracy()):
        with pytest.raises(ValueError, match=r"'map', 'mrr\[@k\]', 'ndcg\[@k\]'"):
            polish(model, noisy.train, noisy.validation, measure)
    with pytest.raises(ValueError, match="validation is a NoneType; expected a Dataset"):
        polish(model, noisy.train, None, "map")
    with pytest.raises(ValueError, match="map is undefined for every query of validation"):
        polish(model, noisy.train, Dataset(noisy.train.X, 0 * noisy.train.y, noisy.train.qid), "map")
    with pytest.raises(ValueError, match="model='auc' is not valid: expected a trained StructRankSVM"):
        polish("auc", noisy.train, noisy.validation, "map")
    with pytest.raises(ValueError, match="rounds=0 is not valid"):
        polish(model, noisy.train, noisy.validation, "map", rounds=0)
    with pytest.raises(ValueError, match="is expecting 6 features"):
        polish(model, Dataset(noisy.train.X[:, :2], noisy.train.y, noisy.train.qid), noisy.validation, "map")
    nothing = polish(model, noisy.train, noisy.validation, "map", rounds=1)
    nothing.coef_ = np.zeros(6)
    with pytest.raises(ValueError, match="w = 0"):
        polish(nothing, noisy.train, noisy.validation, "map")


def test_the_measure_never_falls_where_scores_tie():
    rng = np.random.default_rng(0)
    for _ in range(60):
        part = random_part(rng, n_queries=8, n_features=4, n_grades=2)
        part = Dataset((part.X > 0).astype(float), part.y, part.qid)
        search = LineSearch(RankingData(part.X, part.y, part.qid), metrics.MAP())
        points = [np.ones(4), *search.moves(np.ones(4), rng)]
        values = [mean_of(metrics.MAP(), part, score_rows(part.X, w)) for w in points]
        assert (np.diff(values) > 0).all()
