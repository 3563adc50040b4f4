"""Tests of the hybrid: scores, choice of theta, accuracy on synthetic logs, invalid arguments."""

import numpy as np
import pytest

from structrank import StructRankWarning, datasets, load_model
from structrank.clicks import (
    ClickLog,
    ClickThroughRate,
    CollaborativeRanker,
    HybridRanker,
    RandomWalkRanker,
    pair_accuracy,
    preference_pairs,
    stream_sessions,
)
from structrank.clicks.counts import ClickCounter
from structrank.clicks.hybrid import THETAS, QueryScale
from structrank.clicks.preferences import PairCounter, Preferences


@pytest.fixture(scope="module")
def made():
    return datasets.make_clicks(n_queries=100, n_urls=200, n_topics=5, n_sessions=1200, random_state=3)


@pytest.fixture(scope="module")
def log(made):
    return ClickLog.from_sessions(made)


@pytest.fixture(scope="module")
def model(log):
    return HybridRanker().fit(log)


def true_pairs(made, log):
    """Return all pairs of urls of a query, ordered by true relevance."""
    documents = made.documents
    n_queries = np.unique(documents.qid).size
    query, url, relevance = (
        column.reshape(n_queries, -1)
        for column in (log.queries.index(documents.qid), log.urls.index(documents.docid), documents.y)
    )
    first, second = np.triu_indices(url.shape[1], 1)
    better = relevance[:, first] > relevance[:, second]
    winner = np.where(better, url[:, first], url[:, second]).reshape(-1)
    loser = np.where(better, url[:, second], url[:, first]).reshape(-1)
    query = np.repeat(query[:, 0], first.size)
    known = (query >= 0) & (winner >= 0) & (loser >= 0)
    columns = [column[known] for column in (query, winner, loser)]
    return Preferences(log.queries, log.urls, *columns, np.ones(known.sum()))


# --- scores and theta -------------------------------------------------------------------------------------------------


def test_scores_are_the_weighted_sum_of_both_standardised_scores(log, model):
    queries, urls = log.queries.values[log.query[:50]], log.urls.values[log.shown[:500:10]]
    query = log.queries.index(queries)
    counts = log.counts()
    shown = counts.impressions.tocoo()
    all_queries, all_urls = log.queries.values[shown.row], log.urls.values[shown.col]
    parts = []
    for part, change in ((model.collaborative_, lambda x: x), (model.walk_, lambda x: np.log(x + 1e-4))):
        every, own = change(part.predict(all_queries, all_urls)), change(part.predict(queries, urls))
        mean = np.array([every[shown.row == q].mean() for q in query])
        squares = np.array([((every[shown.row == q] - every[shown.row == q].mean()) ** 2).sum() for q in query])
        each = [((every[shown.row == q] - every[shown.row == q].mean()) ** 2).sum() for q in range(len(log.queries))]
        n = np.array([(shown.row == q).sum() for q in query])
        parts.append((own - mean) / np.sqrt((squares + 10 * np.sum(each) / every.size) / (n + 10)))
    expected = (1 - model.theta_) * parts[0] + model.theta_ * parts[1]
    assert model.predict(queries, urls) == pytest.approx(expected, abs=1e-8)


def test_the_raw_sum_weights_the_scores_as_they_are_and_survives_a_file(log, tmp_path):
    model = HybridRanker(CollaborativeRanker(factors=5, max_iter=5), RandomWalkRanker(tol=0), combine="raw-sum").fit(log)
    queries, urls = log.queries.values[log.query[:50]], log.urls.values[log.shown[:500:10]]
    preferred, clicked = (part.predict(queries, urls) for part in (model.collaborative_, model.walk_))
    expected = (1 - model.theta_) * preferred + model.theta_ * clicked
    assert model.predict(queries, urls) == pytest.approx(expected, abs=1e-12)
    assert len(model.curve_) > 1
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(queries, urls).tobytes() == model.predict(queries, urls).tobytes()


@pytest.mark.parametrize(("theta", "part"), [(0.0, "collaborative_"), (1.0, "walk_")])
def test_theta_0_and_1_rank_like_a_single_model(theta, part, log):
    walk = RandomWalkRanker(tol=0)
    model = HybridRanker(CollaborativeRanker(factors=5, max_iter=5), walk, theta=theta).fit(log)
    pairs = preference_pairs(log)
    assert model.theta_ == theta
    assert model.curve_ == []
    assert pair_accuracy(pairs, model) == pytest.approx(pair_accuracy(pairs, getattr(model, part)), abs=1e-3)


def test_the_chosen_theta_is_near_the_maximum_of_the_curve(model):
    thetas, accuracy = np.array(model.curve_).T
    assert tuple(thetas) == THETAS
    assert accuracy[thetas == model.theta_] > accuracy.max() - 0.02
    assert 0 < model.theta_ < 1


def test_theta_can_be_chosen_on_a_sample_of_the_pairs(log, model, monkeypatch):
    monkeypatch.setattr("structrank.clicks.hybrid._SELECTION_PAIRS", 200)
    some = HybridRanker().fit(log)
    (thetas, found), (_, expected) = np.array(some.curve_).T, np.array(model.curve_).T
    assert tuple(thetas) == THETAS
    assert found == pytest.approx(expected, abs=0.1)
    assert not np.array_equal(found, expected), "a sample of the pairs must change the curve"
    assert np.isfinite(some.predict(log.queries.values[log.query[:9]], log.urls.values[log.shown[:90:10]])).all()


def test_repeated_fits_are_bit_identical(log, model):
    again = HybridRanker().fit(log)
    assert again.theta_ == model.theta_
    assert again.curve_ == model.curve_
    assert np.array_equal(again.collaborative_.url_factors_, model.collaborative_.url_factors_)


def test_a_query_with_one_url_is_normalised_by_the_spread_of_others():
    scale = QueryScale.measure(np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 9.0]), 3)
    assert scale.mean.tolist() == [2.0, 9.0, 0.0]
    assert scale.sd == pytest.approx(np.sqrt([(2 + 10 * 0.5) / 13, 10 * 0.5 / 11, 0.5]))
    constant = QueryScale.measure(np.array([0, 0]), np.array([4.0, 4.0]), 1)
    assert constant.apply(np.array([0]), np.array([4.0])).tolist() == [0.0]


def test_counts_and_pairs_of_a_stream_give_the_model_of_the_log(made, log):
    counts, pairs = ClickCounter(), PairCounter()
    for part in stream_sessions(made, chunk=100):
        counts.add(part)
    for part in stream_sessions(made, chunk=100):
        pairs.add(part)
    collaborative = CollaborativeRanker(factors=5, max_iter=10)
    streamed = HybridRanker(collaborative, theta=0.4).fit(counts.finish(), pairs.finish())
    held = HybridRanker(collaborative, theta=0.4).fit(log)
    queries, urls = log.queries.values[log.query[:99]], log.urls.values[log.shown[:990:10]]
    assert streamed.predict(queries, urls) == pytest.approx(held.predict(queries, urls), abs=1e-6)
    assert len(HybridRanker(collaborative).fit(log.counts(), preference_pairs(log)).curve_) == len(THETAS)


def test_with_combine_prior_tight_factors_rank_like_the_walk(log):
    weak = CollaborativeRanker(factors=3, query_mean=0.0, query_sd=1e-3, url_sd=1e-3, max_iter=3)
    model = HybridRanker(weak, RandomWalkRanker(), combine="prior", theta=2.0).fit(log)
    pairs = preference_pairs(log)
    # Factors fixed by tight priors leave the score of the walk, up to the scale of each query.
    assert pair_accuracy(pairs, model) == pytest.approx(pair_accuracy(pairs, model.walk_), abs=0.01)
    free = HybridRanker(CollaborativeRanker(factors=5), RandomWalkRanker(), combine="prior", theta=0.5).fit(log)
    assert pair_accuracy(pairs, free) > pair_accuracy(pairs, model) + 0.05


def test_theta_of_the_prior_is_chosen_on_a_curve():
    made = datasets.make_clicks(n_queries=40, n_urls=80, n_topics=2, n_sessions=400, random_state=0)
    model = HybridRanker(CollaborativeRanker(factors=3), combine="prior", folds=2).fit(ClickLog.from_sessions(made))
    assert [theta for theta, _ in model.curve_] == [0.0, 0.25, 0.5, 1.0, 2.0]
    assert model.theta_ in (0.0, 0.25, 0.5, 1.0, 2.0)


# --- the order of the paper's Table 1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "by_pairs", "by_sessions"),
    [({}, 0.02, 0.003), ({"model": "cascade", "bias": 2.0}, 0.02, 0.015)],
    ids=["position", "cascade"],
)
def test_the_hybrid_is_best_on_logs_with_position_bias(setting, by_pairs, by_sessions):
    """Evaluate on the paper's split, where pairs of a session fall on both sides, and on a split of whole sessions."""
    ahead = []
    for seed in (100, 101):
        made = datasets.make_clicks(random_state=seed, **setting)
        log = ClickLog.from_sessions(made)
        truth, (train, test) = true_pairs(made, log), log.split(0.25, seed)
        known, pairs = preference_pairs(log).split(0.25, seed)
        hybrids = HybridRanker().fit(log, known), HybridRanker().fit(train)
        splits = (log, known, pairs), (train, preference_pairs(train), preference_pairs(test))
        ahead.append([])
        for hybrid, (clicks, pairs_to_learn, judges) in zip(hybrids, splits, strict=True):
            others = [RandomWalkRanker(direction).fit(clicks) for direction in ("forward", "backward")]
            others.append(CollaborativeRanker().fit(pairs_to_learn))
            ahead[-1].append(pair_accuracy(judges, hybrid) - max(pair_accuracy(judges, other) for other in others))
            assert pair_accuracy(truth, hybrid) > pair_accuracy(truth, ClickThroughRate().fit(clicks)) + 0.03
    assert np.min(ahead, axis=0)[0] > 0, "on every log"
    assert (np.mean(ahead, axis=0) > (by_pairs, by_sessions)).all()


def test_the_backward_walk_is_better_on_logs_with_hubs():
    """Hubs are clicked for their high rank, for any query; only the backward walk corrects for that."""

    def backward_ahead(hubs):
        gains = []
        for seed in (100, 101, 102):
            log = ClickLog.from_sessions(datasets.make_clicks(hubs=hubs, authority=2.0, random_state=seed))
            train, test = log.split(0.25, seed)
            walks = [RandomWalkRanker(direction).fit(train) for direction in ("forward", "backward")]
            forward, backward = (pair_accuracy(preference_pairs(test), walk) for walk in walks)
            gains.append(backward - forward)
        return np.mean(gains)

    assert backward_ahead(0.2) > 0.04
    assert backward_ahead(0.0) < -0.04


# --- invalid arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"collaborative": 50}, "collaborative is a int; expected a CollaborativeRanker or None"),
        ({"walk": "forward"}, "walk is a str; expected a RandomWalkRanker or None"),
        ({"theta": 1.5}, "theta=1.5 is not valid: expected a number of at least 0 and at most 1"),
        ({"theta": -0.5, "combine": "prior"}, "theta=-0.5 is not valid"),
        ({"combine": "product"}, "combine='product' is not known"),
        ({"rule": "all"}, "rule='all' is not known"),
        ({"folds": 1}, "folds=1 is not valid"),
        ({"random_state": -1}, "random_state=-1 is not valid"),
        ({"collaborative": CollaborativeRanker(factors=0)}, "factors=0 is not valid"),
        ({"walk": RandomWalkRanker(steps=0)}, "steps=0 is not valid"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message, log):
    with pytest.raises(ValueError, match=message):
        HybridRanker(**parameters).fit(log)


def test_logs_without_usable_pairs_are_rejected(log):
    with pytest.raises(ValueError, match="log is a list; expected a ClickLog, or ClickCounts together with pairs"):
        HybridRanker().fit([("q", ["a"], [0])])
    with pytest.raises(ValueError, match="log is ClickCounts, from which pairs cannot be extracted"):
        HybridRanker().fit(log.counts())
    with pytest.raises(ValueError, match="too few preferences to choose theta"):
        HybridRanker().fit(ClickLog.from_sessions([("q", ["a", "b"], [0])] * 8))
    other = preference_pairs([("q", ["a", "b"], [1])])
    with pytest.raises(ValueError, match="pairs have queries or urls that log does not have"):
        HybridRanker(theta=0.5).fit(log, other)


def test_unknown_ids_are_nan(log, model):
    with pytest.warns(StructRankWarning, match="1 of 1 entries"):
        assert np.isnan(model.predict([max(log.queries.values) + 1], [log.urls.values[0]])).all()


def test_a_loaded_model_predicts_the_same(log, model, tmp_path):
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    queries, urls = log.queries.values[log.query], log.urls.values[log.shown[log.indptr[:-1]]]
    assert loaded.predict(queries, urls).tobytes() == model.predict(queries, urls).tobytes()
    assert (loaded.theta_, loaded.curve_) == (model.theta_, model.curve_)
