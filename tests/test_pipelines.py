"""The learners as steps of a scikit-learn Pipeline: routing of qid, feature names, nested parameters."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.metadata_routing import get_routing_for_object

from structrank import StructRankSVM, datasets, metrics
from structrank.learners import LambdaMART, RankNet
from structrank.learners.trees import LightGBMRanker

NAMES = list("abcdef")


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def standard(model):
    return Pipeline([("scale", StandardScaler()), ("rank", model)])


def per_query(model):
    return Pipeline([("scale", datasets.PerQueryScaler()), ("rank", model)])


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize("learner", [StructRankSVM(), RankNet(), LambdaMART(), LightGBMRanker()])
def test_every_learner_requests_qid(learner):
    requests = get_routing_for_object(learner)
    assert requests.consumes("fit", ["qid", "sample_weight"]) == {"qid"}
    assert requests.consumes("score", ["qid"]) == {"qid"}
    assert not requests.consumes("predict", ["qid"])


@pytest.mark.usefixtures("routed")
def test_qid_is_routed_to_the_model_by_default(fold):
    train, test, learner = fold.train, fold.test, StructRankSVM("map")
    order = np.random.default_rng(1).permutation(len(train.y))  # without qid the model would differ
    pipeline = standard(clone(learner)).fit(train.X[order], train.y[order], qid=train.qid[order])
    scaler = StandardScaler().fit(train.X[order])
    by_hand = clone(learner).fit(scaler.transform(train.X[order]), train.y[order], qid=train.qid[order])
    assert np.array_equal(pipeline.predict(test.X), by_hand.predict(scaler.transform(test.X)))
    expected = by_hand.score(scaler.transform(test.X), test.y, qid=test.qid)
    assert pipeline.score(test.X, test.y, qid=test.qid) == expected
    assert expected != by_hand.score(scaler.transform(test.X), test.y, qid=0)


@pytest.mark.usefixtures("routed")
def test_the_per_query_scaler_receives_qid_in_fit_and_predict(fold):
    train, test = fold.train, fold.test
    pipeline = per_query(StructRankSVM("map")).fit(train.X, train.y, qid=train.qid)
    by_hand = StructRankSVM("map").fit(datasets.scale_per_query(train).X, train.y, qid=train.qid)
    scaled = datasets.scale_per_query(test).X
    assert np.array_equal(pipeline.predict(test.X, qid=test.qid), by_hand.predict(scaled))
    assert pipeline.score(test.X, test.y, qid=test.qid) == by_hand.score(scaled, test.y, qid=test.qid)
    with pytest.raises(ValueError, match="qid is missing"):
        pipeline.predict(test.X)


def test_without_routing_qid_is_passed_by_step_name(train):
    named = standard(StructRankSVM("auc")).fit(train.X, train.y, rank__qid=train.qid)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = standard(StructRankSVM("auc")).fit(train.X, train.y, qid=train.qid)
    assert np.array_equal(named[-1].coef_, routed[-1].coef_)


@pytest.mark.usefixtures("routed")
def test_weights_are_routed_if_requested(train):
    weights = 1.0 + (train.qid % 3)
    model = StructRankSVM("auc").set_fit_request(sample_weight=True)
    pipeline = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("rank", model)])
    pipeline.fit(train.X, train.y, qid=train.qid, sample_weight=weights)
    scaled = StandardScaler().fit_transform(train.X)
    expected = StructRankSVM("auc").fit(scaled, train.y, qid=train.qid, sample_weight=weights)
    assert np.array_equal(pipeline[-1].coef_, expected.coef_)


@pytest.mark.usefixtures("routed")
def test_a_search_over_a_pipeline_never_splits_a_query(train):
    search = GridSearchCV(per_query(StructRankSVM("map")), {"rank__C": [0.01, 10.0]}, cv=GroupKFold(3))
    search.fit(train.X, train.y, qid=train.qid, groups=train.qid)
    scaled = datasets.scale_per_query(train).X
    expected = []
    for learn, check in GroupKFold(3).split(train.X, groups=train.qid):
        model = StructRankSVM("map", C=10.0).fit(scaled[learn], train.y[learn], qid=train.qid[learn])
        expected.append(model.score(scaled[check], train.y[check], qid=train.qid[check]))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize("wrap", [clone, standard, per_query])
def test_a_scorer_measures_each_fold_by_its_queries(train, wrap):
    model, order = wrap(StructRankSVM("map")), np.random.default_rng(2).permutation(len(train.y))
    X, y, qid = train.X[order], train.y[order] * (1 + train.qid[order] % 2), train.qid[order]  # grades 0, 1, 2
    measure = metrics.NDCG(k=3, gain="linear")
    found = cross_val_score(
        model, X, y, scoring=metrics.scorer("ndcg@3", gain="linear"), cv=GroupKFold(3), params={"qid": qid, "groups": qid}
    )
    expected = []
    for learn, check in GroupKFold(3).split(X, groups=qid):
        fitted = clone(model).fit(X[learn], y[learn], qid=qid[learn])
        scores = metrics.predict(fitted, X[check], qid[check])
        expected.append(metrics.evaluate(y[check], scores, qid[check], measure)["ndcg@3"])
    assert found.tolist() == expected
    assert metrics.scorer(measure)(fitted, X[check], y[check], qid=qid[check]) == expected[-1]


@pytest.mark.usefixtures("routed")
def test_a_search_selects_by_scorers_and_their_weights(train):
    weights = 1.0 + (train.qid % 3)
    scoring = {"ndcg": metrics.scorer("ndcg@3"), "err": metrics.scorer("err@3")}
    search = GridSearchCV(
        StructRankSVM("map").set_fit_request(sample_weight=True),
        {"C": [1e-3, 10.0]},
        scoring=scoring,
        cv=GroupKFold(3),
        refit="err",
    )
    search.fit(train.X, train.y, qid=train.qid, groups=train.qid, sample_weight=weights)
    learn, check = next(iter(GroupKFold(3).split(train.X, groups=train.qid)))
    for row, C in enumerate([1e-3, 10.0]):
        model = StructRankSVM("map", C=C).fit(
            train.X[learn], train.y[learn], qid=train.qid[learn], sample_weight=weights[learn]
        )
        for name, measure in (("ndcg", "ndcg@3"), ("err", "err@3")):
            own = {"qid": train.qid[check], "measures": measure, "sample_weight": weights[check]}
            expected = metrics.evaluate(train.y[check], model.predict(train.X[check]), **own)[measure]
            assert search.cv_results_[f"split0_test_{name}"][row] == expected
    assert search.best_params_["C"] == [1e-3, 10.0][int(np.argmax(search.cv_results_["mean_test_err"]))]


def test_a_scorer_without_routing_asks_for_qid(train):
    with pytest.raises(ValueError, match=r"qid is missing: .*enable_metadata_routing=True.* params="):
        metrics.scorer("map")(StructRankSVM("auc").fit(train.X, train.y, qid=train.qid), train.X, train.y)


def test_parameters_can_be_set_through_the_pipeline(train):
    pipeline = standard(StructRankSVM("map", C=3.0))
    assert pipeline.get_params()["rank__C"] == 3.0
    pipeline.set_params(rank__C=0.5, rank__criterion="auc", scale__with_mean=False)
    assert (pipeline[-1].C, pipeline[-1].criterion) == (0.5, "auc")
    pipeline.fit(train.X, train.y, rank__qid=train.qid)
    copy = clone(pipeline)
    assert copy.get_params()["rank__C"] == 0.5
    assert not hasattr(copy[-1], "coef_")
    with pytest.raises(ValueError, match="Invalid parameter 'K'"):
        pipeline.set_params(rank__K=5)


def test_feature_names_are_passed_through(train):
    X = pd.DataFrame(train.X, columns=NAMES)
    pipeline = standard(StructRankSVM("auc")).set_output(transform="pandas").fit(X, train.y, rank__qid=train.qid)
    assert pipeline.feature_names_in_.tolist() == NAMES
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert np.array_equal(pipeline[:1].get_feature_names_out(), NAMES)
    with pytest.raises(ValueError, match="feature names"):
        pipeline.predict(X[NAMES[::-1]])


def test_notebooks_show_the_pipeline_before_and_after_training(train):
    pipeline = standard(StructRankSVM("map", C=7.0))
    before = estimator_html_repr(pipeline)
    after = estimator_html_repr(pipeline.fit(train.X, train.y, rank__qid=train.qid))
    for page in (before, after):
        assert "StandardScaler" in page
        assert "StructRankSVM" in page
        assert "7.0" in page
    assert "Not fitted" in before
    assert "Not fitted" not in after
