"""Tests of make_clicks against the model in its docstring."""

import numpy as np
import pytest

from structrank.clicks.log import ClickLog
from structrank.datasets import make_clicks


def attraction(made):
    """Return the true relevance of each url shown."""
    documents = made.documents
    relevance = dict(zip(zip(documents.qid.tolist(), documents.docid.tolist(), strict=True), documents.y, strict=True))
    return np.array(
        [[relevance[query, url] for url in urls] for query, urls in zip(made.query.tolist(), made.shown.tolist(), strict=True)]
    )


@pytest.mark.parametrize("bias", [0.0, 1.0, 2.0])
def test_the_position_model_examines_ranks_with_the_stated_probability(bias):
    made = make_clicks(200, 400, 20_000, bias=bias, random_state=0)
    examined = made.clicked.mean(axis=0) / attraction(made).mean(axis=0)
    assert examined == pytest.approx((1.0 + np.arange(10)) ** -bias, abs=0.05)


def test_examined_urls_are_clicked_with_probability_relevance():
    made = make_clicks(200, 400, 20_000, bias=0.0, random_state=0)
    true, clicked = attraction(made).ravel(), made.clicked.ravel()
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (true >= low) & (true < low + 0.2)
        assert clicked[inside].mean() == pytest.approx(true[inside].mean(), abs=0.02)


def test_the_cascade_stops_with_the_stated_probability():
    made = make_clicks(200, 400, 20_000, model="cascade", bias=0.0, stop=1.0, random_state=0)
    assert made.clicked.sum(axis=1).max() == 1
    true = attraction(made)
    reached = np.cumprod(np.column_stack([np.ones(len(true)), 1 - true[:, :-1]]), axis=1)
    assert made.clicked.mean(axis=0) == pytest.approx((reached * true).mean(axis=0), abs=0.01)

    made = make_clicks(200, 400, 20_000, model="cascade", bias=1.0, stop=0.5, random_state=0)
    true = attraction(made)
    continues = (1 - 0.5 * true) * ((1.0 + np.arange(10)) / (2.0 + np.arange(10)))
    reached = np.cumprod(np.column_stack([np.ones(len(true)), continues[:, :-1]]), axis=1)
    assert made.clicked.mean(axis=0) == pytest.approx((reached * true).mean(axis=0), abs=0.01)


def test_a_cascade_that_never_stops_is_the_position_model_without_bias():
    made = make_clicks(200, 400, 20_000, model="cascade", bias=0.0, stop=0.0, random_state=0)
    assert made.clicked.mean(axis=0) == pytest.approx(attraction(made).mean(axis=0), abs=0.015)


def utilities(made):
    """Return the utilities, recovered from the relevance, by query and url; nan if a url is not a candidate."""
    documents = made.documents
    found = np.full((documents.qid.max() + 1, documents.docid.max() + 1), np.nan)
    found[documents.qid, documents.docid] = np.log(documents.y / (1 - documents.y))
    return found


@pytest.mark.parametrize(("similarity", "low", "high"), [(0.0, -0.1, 0.1), (0.8, 0.6, 0.9), (1.0, 0.999, 1.001)])
def test_queries_of_a_topic_are_as_similar_as_specified(similarity, low, high):
    made = make_clicks(60, 60, 100, n_topics=3, n_docs=20, similarity=similarity, random_state=1)
    matrix, correlations = utilities(made), []
    for one in range(60):
        for other in range(one):
            common = ~np.isnan(matrix[one]) & ~np.isnan(matrix[other])
            assert common.sum() in (0, 20), "topics do not share urls"
            if common.any():
                correlations.append(np.corrcoef(matrix[one, common], matrix[other, common])[0, 1])
    assert low < np.mean(correlations) < high


def test_the_engine_ranks_by_relevance_as_well_as_specified():
    def mean_at_top(engine):
        true = attraction(make_clicks(200, 400, 2000, engine=engine, random_state=0))
        return true[:, 0].mean(), true[:, -1].mean()

    top, bottom = mean_at_top(0.0)
    assert top == pytest.approx(bottom, abs=0.05)
    assert mean_at_top(0.5)[0] > mean_at_top(0.5)[1] + 0.1
    perfect = attraction(make_clicks(200, 400, 2000, engine=1.0, random_state=0))
    assert (np.diff(perfect, axis=1) <= 1e-12).all()


def test_lists_change_as_much_as_specified():
    def first_urls(churn):
        made = make_clicks(10, 200, 1000, n_topics=2, churn=churn, random_state=0)
        return [len(np.unique(made.shown[made.query == query, 0])) for query in range(10)]

    assert max(first_urls(0.0)) == 1
    assert min(first_urls(0.5)) > 1


def test_a_share_of_the_candidates_is_relevant():
    documents = make_clicks(500, 1000, 500, relevant_share=0.3, random_state=0).documents
    assert (documents.y > 0.5).mean() == pytest.approx(0.3, abs=0.001)
    assert ((documents.y > 0) & (documents.y < 1)).all()


def test_hubs_are_candidates_of_every_topic_and_not_more_relevant():
    documents = make_clicks(300, 1000, 300, n_topics=10, hubs=0.25, random_state=0).documents
    uses = np.bincount(documents.docid, minlength=1000)
    hubs = np.argsort(-uses)[:20]
    assert uses[hubs].min() > 4 * np.delete(uses, hubs).max()
    is_hub = np.isin(documents.docid, hubs)
    assert (np.bincount(documents.qid, weights=is_hub) == 5).all(), "a quarter of 20 candidates"
    assert documents.y[is_hub].mean() == pytest.approx(documents.y[~is_hub].mean(), abs=0.1)
    few = make_clicks(10, 40, 10, n_topics=2, hubs=0.25, random_state=0).documents
    assert np.unique(few.docid).size <= 40, "fewer hubs if topics would run short"


def test_the_engine_prefers_hubs_as_much_as_specified():
    def mean_rank(authority):
        made = make_clicks(300, 1000, 3000, n_topics=10, hubs=0.25, authority=authority, engine=0.0, random_state=0)
        hubs = np.argsort(-np.bincount(made.documents.docid, minlength=1000))[:20]
        return np.where(np.isin(made.shown, hubs))[1].mean()

    assert mean_rank(0.0) == pytest.approx(4.5, abs=0.3)
    assert 2 < mean_rank(1.0) < 4
    assert mean_rank(10.0) == 2.0


def test_every_query_occurs_and_some_more_often():
    even = np.bincount(make_clicks(100, 400, 10_000, skew=0.0, random_state=0).query, minlength=100)
    assert even.min() > 60
    skewed = np.bincount(make_clicks(100, 400, 10_000, skew=1.0, random_state=0).query, minlength=100)
    assert skewed[0] > 1500
    assert np.median(skewed) < 60
    sparse = np.bincount(make_clicks(100, 400, 100, skew=1.0, random_state=0).query, minlength=100)
    assert (sparse == 1).all()


def test_features_sum_to_the_utility_up_to_noise():
    def correlation(noise):
        documents = make_clicks(100, 400, 100, feature_noise=noise, random_state=0).documents
        return np.corrcoef(documents.X.sum(axis=1), np.log(documents.y / (1 - documents.y)))[0, 1]

    assert correlation(0.0) == pytest.approx(1.0, abs=1e-9)
    assert 0.4 < correlation(0.5) < 0.8


def test_synthetic_clicks_can_be_read_as_a_log():
    made = make_clicks(50, 400, 300, random_state=0)
    log = ClickLog.from_sessions(made)
    assert (len(log), log.report.shown, log.report.clicks) == (300, 3000, made.clicked.sum())
    assert log.report.repeated_urls == log.report.not_shown == 0
    assert log[7] == (made.query[7], made.shown[7].tolist(), np.flatnonzero(made.clicked[7]).tolist())
    documents = made.documents
    assert len(documents) == 50 * 20
    assert set(zip(documents.qid.tolist(), documents.docid.tolist(), strict=True)) >= {
        (query, url) for query, urls, _ in log for url in urls
    }


def test_synthetic_clicks_are_reproducible_by_seed():
    one, same, other = (make_clicks(20, 400, 50, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.clicked, same.clicked)
    assert np.array_equal(one.shown, same.shown)
    assert np.array_equal(one.documents.X, same.documents.X)
    assert not np.array_equal(one.shown, other.shown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 0}, "n_queries=0 is not valid: expected an integer of at least 1"),
        ({"n_queries": 5}, "n_topics=20 is not valid: expected at most n_queries=5"),
        ({"n_urls": 100}, r"n_urls=100 is not valid: expected at least n_topics \* n_docs = 400"),
        ({"n_sessions": 1.5}, "n_sessions=1.5"),
        ({"n_shown": 30}, "n_shown=30 is not valid: expected at most n_docs=20"),
        ({"similarity": 1.1}, "similarity=1.1 is not valid: expected a number of at least 0 and at most 1"),
        ({"relevant_share": 0}, "relevant_share=0"),
        ({"bias": -1}, "bias=-1 is not valid: expected a number of at least 0"),
        ({"skew": float("inf")}, "skew=inf"),
        ({"model": "dcm"}, "model='dcm' is not known; choose one of: 'position', 'cascade'"),
        ({"churn": "much"}, "churn='much'"),
        ({"hubs": 1.5}, "hubs=1.5 is not valid: expected a number of at least 0 and at most 1"),
        ({"authority": -1}, "authority=-1 is not valid: expected a number of at least 0"),
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_clicks(**arguments)
