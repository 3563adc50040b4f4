"""Tests of random walks against powers of the dense matrix, and of the error of truncated walks."""

import numpy as np
import pytest

from structrank import StructRankWarning, load_model
from structrank.clicks import ClickLog, RandomWalkRanker


def random_log(seed, n_queries=7, n_urls=9):
    """Return a log whose first query has no clicks, and its matrix of clicks."""
    rng = np.random.default_rng(seed)
    clicks = rng.integers(0, 4, (n_queries, n_urls)) * (rng.random((n_queries, n_urls)) < 0.4)
    clicks[0] = 0
    sessions = [(q, list(range(n_urls)), []) for q in range(n_queries)]
    sessions += [(q, list(range(n_urls)), [u]) for q, u in np.ndindex(clicks.shape) for _ in range(clicks[q, u])]
    return ClickLog.from_sessions(sessions), clicks.astype(float)


def dense_scores(clicks, direction, steps, stay):
    n_queries, n_urls = clicks.shape
    joined = np.block([[np.zeros((n_queries, n_queries)), clicks], [clicks.T, np.zeros((n_urls, n_urls))]])
    total = joined.sum(axis=1)
    A = np.eye(total.size)  # a node without neighbours keeps its probability
    has = total > 0
    A[has] = stay * np.eye(total.size)[has] + (1 - stay) * joined[has] / total[has, None]
    power = np.linalg.matrix_power(A, steps)
    if direction == "forward":
        return power[:n_queries, n_queries:]
    return (power / power.sum(axis=0))[n_queries:, :n_queries].T


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(("steps", "stay"), [(1, 0.5), (11, 0.9), (4, 0.3), (101, 0.9), (3, 0.0)])
def test_scores_equal_powers_of_the_dense_matrix(direction, steps, stay):
    for seed in range(5):
        log, clicks = random_log(seed)
        model = RandomWalkRanker(direction, steps, stay, tol=0).fit(log)
        query, url = np.divmod(np.arange(clicks.size), clicks.shape[1])
        found = model.predict(query, url).reshape(clicks.shape)
        assert found == pytest.approx(dense_scores(clicks, direction, steps, stay), abs=1e-13)
        assert not found[0].any()


@pytest.mark.filterwarnings("ignore:tol=.* truncates")
def test_truncation_error_is_bounded_by_tol():
    log, clicks = random_log(3, 30, 40)
    query, url = np.divmod(np.arange(clicks.size), clicks.shape[1])
    exact = dense_scores(clicks, "forward", 11, 0.9).reshape(-1)
    missing = []
    for tol in (1e-3, 1e-4, 1e-6):
        found = RandomWalkRanker("forward", tol=tol).fit(log).predict(query, url)
        assert (found <= exact + 1e-13).all()
        assert (exact - found <= 11 * tol * clicks.sum(axis=0)[url] + 1e-13).all()
        missing.append((exact - found).sum())
    assert missing[0] > 2 * missing[1] > 4 * missing[2]


def test_a_url_is_reached_through_other_queries():
    log = ClickLog.from_sessions([("a", ["x", "y"], [0, 1]), ("b", ["y", "z"], [0]), ("c", ["w"], [0])])
    for direction in ("forward", "backward"):
        scores = RandomWalkRanker(direction).fit(log).predict(["b"] * 4, ["y", "x", "z", "w"])
        assert scores[0] > scores[1] > 0
        assert scores[2] == scores[3] == 0


def test_scores_do_not_depend_on_order_repetition_batches_or_threads():
    log, clicks = random_log(1)
    query, url = np.divmod(np.arange(clicks.size), clicks.shape[1])
    model = RandomWalkRanker().fit(log)
    expected = model.predict(query, url)
    shuffled = np.random.default_rng(0).permutation(query.size).repeat(2)
    assert np.array_equal(model.predict(query[shuffled], url[shuffled]), expected[shuffled])
    assert np.array_equal([model.predict([q], [u])[0] for q, u in zip(query, url, strict=True)], expected)
    assert np.array_equal(RandomWalkRanker(n_jobs=3).fit(log).predict(query, url), expected)
    assert model.predict([], []).shape == (0,)


def test_counts_and_logs_give_the_same_scores():
    log, clicks = random_log(2)
    query, url = np.divmod(np.arange(clicks.size), clicks.shape[1])
    scores = [RandomWalkRanker().fit(source).predict(query, url) for source in (log, log.counts())]
    assert np.array_equal(*scores)


def test_a_loaded_model_predicts_the_same(tmp_path):
    log, _ = random_log(4)
    model = RandomWalkRanker("forward", steps=5).fit(log)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.predict(log.query, log.shown[::9]).tobytes() == model.predict(log.query, log.shown[::9]).tobytes()
    assert loaded.get_params() == model.get_params()


def test_unknown_ids_are_counted_and_nan():
    model = RandomWalkRanker().fit(random_log(0)[0])
    with pytest.warns(StructRankWarning, match=r"1 of 2 entries .*\(1 queries, 0 urls\)"):
        assert np.isnan(model.predict(["none", 1], [0, 0])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"direction": "sideways"}, "direction='sideways' is not known"),
        ({"steps": 0}, "steps=0 is not valid"),
        ({"self_transition": 1.0}, "self_transition=1.0 is not valid: at 1 the walk never leaves"),
        ({"self_transition": 0, "steps": 4}, "every walk ends on a query"),
        ({"tol": -1.0}, "tol=-1.0 is not valid"),
        ({"n_jobs": 1.5}, "n_jobs=1.5 is not valid"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomWalkRanker(**parameters).fit(random_log(0)[0])


def test_a_log_without_clicks_is_rejected():
    with pytest.raises(ValueError, match="the log has no clicks"):
        RandomWalkRanker().fit(ClickLog.from_sessions([("q", ["a"], [])]))


def popular(n_others=3000):
    """Return a log with a query that has clicks on a popular url and on a rare one."""
    sessions = [("q", ["hub", "niche"], [0])] * 9 + [("q", ["hub", "niche"], [1])]
    return ClickLog.from_sessions(sessions + [(f"other{n}", ["hub"], [0]) for n in range(n_others)])


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_truncated_walks_warn(direction):
    log = popular()
    pairs = (["q", "q"], ["hub", "niche"])
    exact = RandomWalkRanker(direction, 101, tol=0.0).fit(log).predict(*pairs)
    np.testing.assert_allclose(RandomWalkRanker(direction, 101).fit(log).predict(*pairs), exact, rtol=0.01)
    with pytest.warns(StructRankWarning, match=r"truncates over 1% \(up to \d+%\) of the walk of 1 of 1 queries"):
        RandomWalkRanker(direction, 101, tol=1e-3).fit(log).predict(*pairs)


def test_long_walks_do_not_overflow():
    scores = RandomWalkRanker("forward", 2001).fit(popular(5)).predict(["q"], ["hub"])
    assert 0.0 < scores[0] < 1.0


def test_ranking_no_entries_gives_no_ranks():
    assert RandomWalkRanker().fit(popular(5)).rank([], []).tolist() == []
