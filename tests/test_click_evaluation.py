"""Pair accuracy, the baselines, the displays and the labels, each against its definition."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from structrank import datasets
from structrank.clicks import (
    ClickLog,
    ClickThroughRate,
    CollaborativeRanker,
    FactorsDisplay,
    HybridRanker,
    MeanPosition,
    ThetaDisplay,
    pair_accuracy,
    preference_pairs,
    stream_sessions,
    to_labels,
)


@pytest.fixture(scope="module")
def made():
    return datasets.make_clicks(60, 120, 1500, n_topics=3, bias=1.0, random_state=0)


@pytest.fixture(scope="module")
def log(made):
    return ClickLog.from_sessions(made)


@pytest.fixture(scope="module")
def pairs(log):
    return preference_pairs(log)


# --- pair accuracy ----------------------------------------------------------------------------------------------------


def test_accuracy_counts_weights_and_half_of_ties(pairs, rng):
    scores = rng.integers(0, 3, (len(pairs), 2)).astype(float)
    won = [1.0 if w > s else 0.5 if w == s else 0.0 for w, s in scores]
    assert pair_accuracy(pairs, scores) == pytest.approx(np.average(won, weights=pairs.weight), abs=1e-12)
    by_query = pair_accuracy(pairs, scores, per_query=True)
    assert by_query.shape == (len(pairs.queries),)
    for query in range(len(pairs.queries)):
        its = pairs.query == query
        if its.any():
            assert by_query[query] == pytest.approx(np.average(np.array(won)[its], weights=pairs.weight[its]), abs=1e-12)
        else:
            assert np.isnan(by_query[query])


def test_scorers_callables_and_arrays_agree(log, pairs):
    model = ClickThroughRate().fit(log)
    queries, urls = pairs.queries.values[pairs.query], pairs.urls.values
    scores = np.column_stack([model.predict(queries, urls[pairs.winner]), model.predict(queries, urls[pairs.loser])])
    assert pair_accuracy(pairs, model) == pair_accuracy(pairs, model.predict) == pair_accuracy(pairs, scores)
    assert pair_accuracy(pairs, lambda queries, urls: np.zeros(len(urls))) == 0.5


def test_a_score_of_nan_is_a_tie(pairs):
    scores = np.tile([2.0, 1.0], (len(pairs), 1))
    assert pair_accuracy(pairs, scores) == 1.0
    scores[:, 1] = np.nan
    assert pair_accuracy(pairs, scores) == 0.5
    assert pair_accuracy(pairs, np.tile([np.inf, -np.inf], (len(pairs), 1))) == 1.0


def test_no_pairs_have_no_accuracy(pairs):
    none = pairs.subset(np.zeros(len(pairs), dtype=bool))
    assert np.isnan(pair_accuracy(none, np.empty((0, 2))))
    assert np.isnan(pair_accuracy(none, np.empty((0, 2)), per_query=True)).all()


def test_scores_of_the_wrong_shape_or_type_are_rejected(pairs):
    with pytest.raises(ValueError, match=rf"scores has shape \(3,\); expected \({len(pairs)}, 2\)"):
        pair_accuracy(pairs, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="scores has 1 entries"):
        pair_accuracy(pairs, lambda queries, urls: [1.0])
    with pytest.raises(ValueError, match="expected numbers, larger is better"):
        pair_accuracy(pairs, lambda queries, urls: ["high"] * len(urls))
    with pytest.raises(ValueError, match="pairs is a list; expected Preferences"):
        pair_accuracy([1, 2], [1.0, 2.0])


# --- baselines --------------------------------------------------------------------------------------------------------


def test_baselines_equal_counting_by_hand(made, log):
    documents = made.documents
    rates, places = (model.fit(log).predict(documents.qid, documents.docid) for model in (ClickThroughRate(), MeanPosition()))
    for row in range(0, len(documents), 37):
        there = [
            (urls.index(documents.docid[row]), clicks)
            for query, urls, clicks in log
            if query == documents.qid[row] and documents.docid[row] in urls
        ]
        if not there:
            assert np.isnan(rates[row])
            assert np.isnan(places[row])
        else:
            assert rates[row] == pytest.approx(np.mean([place in clicks for place, clicks in there]))
            assert places[row] == pytest.approx(-np.mean([place + 1 for place, _ in there]))


@pytest.mark.parametrize("model", [ClickThroughRate, MeanPosition])
def test_baselines_accept_logs_streams_and_counts(model, log):
    ids = log.queries.values[log.query[:50]], log.urls.values[log.shown[log.indptr[:50]]]
    expected = model().fit(log).predict(*ids)
    assert np.array_equal(model().fit(log.counts()).predict(*ids), expected)
    assert np.array_equal(model().fit(stream_sessions(list(log), chunk=100)).predict(*ids), expected)
    assert not np.isnan(expected).any()
    with pytest.raises(NotFittedError):
        model().predict(*ids)


def test_ranks_of_a_baseline_are_those_of_its_scores():
    log = ClickLog.from_sessions([("q", ["a", "b", "c"], [1]), ("q", ["a", "b", "c"], [1, 2]), ("r", ["c"], [])])
    assert ClickThroughRate().fit(log).rank(["q", "q", "r", "q"], ["a", "b", "c", "c"]).tolist() == [3, 1, 1, 2]


def true_accuracy(documents, rows, scores):
    """Return the fraction of pairs of documents of a query, among these rows, that scores order as the true relevance does."""
    better, worse = np.nonzero(
        (documents.qid[rows][:, None] == documents.qid[rows]) & (documents.y[rows][:, None] > documents.y[rows])
    )
    return np.mean(scores[better] > scores[worse]) + np.mean(scores[better] == scores[worse]) / 2


def test_position_bias_misleads_the_click_through_rate():
    """With bias, clicks follow the position, and the rate orders fewer pairs correctly."""
    found = []
    for bias in (0.0, 2.0):
        made = datasets.make_clicks(100, 200, 20_000, n_topics=5, bias=bias, skew=0.0, churn=0.1, random_state=0)
        documents = made.documents
        scores = ClickThroughRate().fit(ClickLog.from_sessions(made)).predict(documents.qid, documents.docid)
        rows = np.flatnonzero(~np.isnan(scores))
        found.append(true_accuracy(documents, rows, scores[rows]))
    assert found[0] > 0.85
    assert found[1] < found[0] - 0.1


# --- displays ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ax():
    yield Figure().add_subplot()
    assert not plt.get_fignums(), "plot(ax=) must not create figures"


def test_accuracy_is_drawn_against_the_number_of_factors(pairs, ax):
    train, test = pairs.split()
    display = FactorsDisplay.from_estimator(CollaborativeRanker(max_iter=3), train, test, factors=(2, 4), ax=ax)
    assert display.ax_ is ax
    drawn = display.lines_["CoRank"]
    assert drawn.get_xdata().tolist() == [2, 4]
    for k, accuracy in zip((2, 4), drawn.get_ydata(), strict=True):
        assert accuracy == pair_accuracy(test, CollaborativeRanker(factors=k, max_iter=3).fit(train))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of factors", "pair accuracy")


def test_accuracy_is_drawn_against_theta(log, ax):
    model = HybridRanker(CollaborativeRanker(factors=4, max_iter=3)).fit(log)
    display = ThetaDisplay.from_estimator(model, ax=ax)
    drawn = np.column_stack(display.lines_["hybrid"].get_data())
    assert np.array_equal(drawn, np.array(model.curve_))
    assert ax.lines[-1].get_xdata()[0] == model.theta_
    with pytest.raises(NotFittedError):
        ThetaDisplay.from_estimator(HybridRanker(), ax=ax)
    given = HybridRanker(CollaborativeRanker(factors=4, max_iter=3), theta=0.5).fit(log)
    with pytest.raises(ValueError, match="fit it with theta=None"):
        ThetaDisplay.from_estimator(given, ax=ax)


def test_several_curves_are_named(ax):
    curves = {"seed 0": ([1, 2], [0.5, 0.6]), "seed 1": ([1, 2], [0.4, 0.7])}
    display = FactorsDisplay(curves).plot(ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(curves)
    assert display.figure_ is ax.figure
    with pytest.raises(ValueError, match="accuracy has 1 entries but x has 2 rows"):
        FactorsDisplay({"seed 0": ([1, 2], [0.5])})
    with pytest.raises(ValueError, match="factors=0 is not valid"):
        FactorsDisplay.from_estimator(CollaborativeRanker(), None, None, factors=[0], ax=ax)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_labels_grade_each_query_by_its_scores(n_grades, rng):
    queries, scores = rng.integers(0, 8, 200), rng.integers(0, 6, 200).astype(float)
    scores[rng.random(200) < 0.1] = np.nan
    labels = to_labels(scores, queries, np.arange(200), n_grades)
    for row in range(200):
        its = scores[(queries == queries[row]) & ~np.isnan(scores)]
        expected = np.floor(n_grades * np.sum(its < scores[row]) / its.size)
        assert labels[row] == expected or (np.isnan(labels[row]) and np.isnan(scores[row]))


def test_labels_of_preferences_follow_the_share_of_wins(pairs, made):
    documents = made.documents
    labels = to_labels(pairs, documents.qid, documents.docid, 3)
    wins, losses = np.zeros(len(documents)), np.zeros(len(documents))
    row = {pair: n for n, pair in enumerate(zip(documents.qid.tolist(), documents.docid.tolist(), strict=True))}
    queries, urls = pairs.queries.values[pairs.query], pairs.urls.values
    for side, counts in ((pairs.winner, wins), (pairs.loser, losses)):
        for query, url, weight in zip(queries.tolist(), urls[side].tolist(), pairs.weight, strict=True):
            counts[row[query, url]] += weight
    known = wins + losses > 0
    assert np.array_equal(np.isnan(labels), ~known)
    rates = np.where(known, (wins + 1) / (wins + losses + 2), np.nan)
    assert np.array_equal(labels, to_labels(rates, documents.qid, documents.docid, 3), equal_nan=True)


def test_labels_of_a_model_are_those_of_its_scores(log, made):
    documents, model = made.documents, ClickThroughRate().fit(log)
    expected = to_labels(model.predict(documents.qid, documents.docid), documents.qid, documents.docid)
    for source in (model, model.predict):
        assert np.array_equal(to_labels(source, documents.qid, documents.docid), expected, equal_nan=True)


def test_unknown_urls_have_no_label(pairs):
    assert np.isnan(to_labels(pairs, ["unknown", 0], [1, "unknown"])).all()
    none = pairs.subset(np.zeros(len(pairs), dtype=bool))
    assert np.isnan(to_labels(none, [0, 1], [1, 2])).all()


def test_a_ranker_learns_the_truth_from_labels(made, pairs):
    """Training by least squares uses only features and clicks; the true relevance serves for evaluation."""
    documents = made.documents
    labels = to_labels(pairs, documents.qid, documents.docid, 2)
    train = np.flatnonzero((documents.qid < 40) & ~np.isnan(labels))
    test = np.flatnonzero(documents.qid >= 40)
    means = np.array([labels[train][documents.qid[train] == query].mean() for query in documents.qid[train]])
    weights = np.linalg.lstsq(documents.X[train], labels[train] - means, rcond=None)[0]
    assert true_accuracy(documents, test, documents.X[test] @ weights) > 0.65


def test_invalid_arguments_of_to_labels_raise(pairs):
    with pytest.raises(ValueError, match="n_grades=1 is not valid: expected an integer of at least 2"):
        to_labels(pairs, [1], [1], 1)
    with pytest.raises(ValueError, match="urls has 1 entries but queries has 2 rows"):
        to_labels(pairs, [1, 2], [1])
    with pytest.raises(ValueError, match="scores has 3 entries but queries has 2 rows"):
        to_labels([1.0, 2.0, 3.0], [1, 2], [1, 2])
    with pytest.raises(ValueError, match="queries has 0 rows"):
        to_labels(pairs, [], [])
