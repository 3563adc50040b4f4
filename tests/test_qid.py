"""qid cannot be forgotten silently: every call without it names the line to write."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from structrank import StructRankSVM, compare, datasets, metrics, train_for
from structrank.clicks import ClickThroughRate, HybridRanker, RandomWalkRanker
from structrank.learners import LambdaMART, LambdaRank, McRank, SPSARanker
from structrank.learners.trees import LightGBMRanker, XGBoostRanker

LEARNERS = {
    "StructRankSVM": StructRankSVM("auc"),
    "LambdaRank": LambdaRank(max_epochs=1),
    "SPSARanker": SPSARanker(max_evaluations=50),
    "LambdaMART": LambdaMART(n_estimators=2),
    "McRank": McRank(n_estimators=2),
    "LightGBMRanker": LightGBMRanker(n_estimators=2),
    "XGBoostRanker": XGBoostRanker(n_estimators=2),
}
LINE = r"qid is missing: .*model\.fit\(X, y, qid=qid\).*model\.rank\(X, qid=qid\).*qid=0 if all rows"


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=30, n_docs=6, n_features=3, noise=0.5, random_state=0)


@pytest.fixture(params=LEARNERS)
def learner(request):
    if request.param in ("LambdaMART", "McRank", "LightGBMRanker"):
        pytest.importorskip("lightgbm")
    elif request.param == "XGBoostRanker":
        pytest.importorskip("xgboost")
    return sklearn.clone(LEARNERS[request.param])


def test_every_learner_asks_for_qid_and_accepts_group_sizes(learner, fold):
    train = fold.train
    with pytest.raises(ValueError, match=LINE):
        learner.fit(train.X, train.y)
    sizes = np.unique(train.qid, return_counts=True)[1]
    expected = sklearn.clone(learner).fit(train.X, train.y, qid=train.qid)
    model = learner.fit(train.X, train.y, group=sizes)
    assert np.array_equal(model.predict(train.X), expected.predict(train.X))
    with pytest.raises(ValueError, match=LINE):
        model.rank(train.X)
    assert np.array_equal(model.rank(train.X, group=sizes), expected.rank(train.X, qid=train.qid))
    if hasattr(model, "score"):
        with pytest.raises(ValueError, match=LINE):
            model.score(train.X, train.y)


def test_one_query_is_declared_by_an_integer(fold):
    X, y = fold.train.X[:20], fold.train.y[:20]
    model = StructRankSVM("auc").fit(X, y, qid=0)
    assert np.array_equal(model.coef_, StructRankSVM("auc").fit(X, y, qid=np.zeros(20)).coef_)
    assert sorted(model.rank(X, qid=0)) == list(range(1, 21))
    assert model.score(X, y, qid=7) == metrics.evaluate(y, model.predict(X), None, "auc")["auc"]


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("qid", [None, 0, "column"])
def test_a_column_qid_never_becomes_a_feature(qid, kind, fold):
    frame = pd.DataFrame(fold.train.X, columns=["a", "b", "c"]).assign(qid=fold.train.qid.astype(kind))
    with pytest.raises(ValueError, match=r"column 'qid'.*fit\(X\.drop\(columns='qid'\), y, qid=X\['qid'\]\)"):
        StructRankSVM("auc").fit(frame, fold.train.y, qid=frame["qid"] if qid == "column" else qid)
    model = StructRankSVM("auc").fit(frame.drop(columns="qid"), fold.train.y, qid=frame["qid"])
    with pytest.raises(ValueError, match="qid"):
        model.predict(frame)


def test_searches_without_qid_fail_with_the_line_to_write(fold):
    X, y = fold.train.X, fold.train.y
    line = r"set_config\(enable_metadata_routing=True\): search\.fit\(X, y, qid=qid\), cross_val_score\(model, X, y, params="
    with pytest.raises(ValueError, match=line):
        GridSearchCV(StructRankSVM("auc"), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    with pytest.raises(ValueError, match=line):
        cross_val_score(StructRankSVM("auc"), X, y, cv=2)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match=line):
            GridSearchCV(StructRankSVM("auc"), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
        scores = cross_val_score(
            StructRankSVM("auc"), X, y, cv=GroupKFold(2), params={"qid": fold.train.qid, "groups": fold.train.qid}
        )
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"qid": "qid"}, r"qid is the text 'qid'.*qid=frame\['qid'\]"),
        ({"qid": [1, 1, 2], "group": [2, 1]}, "both given"),
        ({"group": [2, 2]}, "group has 2 sizes, which sum up to 4, but X has 3 rows"),
        ({"group": [2.0, 1.0]}, "number of rows of each query"),
        ({"group": [3, 0]}, "number of rows of each query"),
        ({"qid": 0, "eval_set": [([[1.0]], [1])]}, r"eval_set has 1 set\(s\) and eval_group 0"),
        ({"qid": 0, "sizes": [3]}, "sizes"),
    ],
)
def test_wrong_queries_are_rejected(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StructRankSVM("auc").fit([[0.0], [1.0], [0.5]], [0, 1, 0], **arguments)


def test_ranks_are_of_qid_or_of_groups(fold):
    train = fold.train
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    with pytest.raises(ValueError, match="qid and group are both given"):
        model.rank(train.X, qid=train.qid, group=[len(train)])
    with pytest.raises(ValueError, match=f"group has 1 sizes, which sum up to 3, but X has {len(train)} rows"):
        model.rank(train.X, group=[3])


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda path: StructRankSVM().fit(path, None), "datasets.load_table, datasets.load_letor"),
        (lambda path: train_for("map", path), "train is a str; expected a Dataset, such as that of datasets.load_table"),
        (lambda path: compare(path), r"\{'mine': datasets.query_folds\(datasets.load_table\('train.csv'\)\)\}"),
        (lambda path: compare({"mine": path}), r"datasets.query_folds\(datasets.load_table\('train.csv'\)\)"),
        (lambda path: ClickThroughRate().fit(path), "log is a str; .* read_frame reads a data frame; read_tsv"),
        (lambda path: HybridRanker().fit(path), "log is a str; .* read_frame reads a data frame; read_tsv"),
        (lambda path: RandomWalkRanker().fit(pd.DataFrame()), "log is a DataFrame; .* read_frame reads a data frame"),
    ],
)
def test_the_name_of_a_file_gets_the_reader_to_call(call, advice):
    with pytest.raises(ValueError, match=advice):
        call("train.csv")


def test_eval_set_is_the_validation_set(fold, caplog):
    train, other = fold.train, fold.validation
    sizes = [np.unique(part.qid, return_counts=True)[1] for part in (train, other)]
    given = {"group": sizes[0], "eval_set": [(other.X, other.y)], "eval_group": [sizes[1]]}
    ours = LambdaRank(max_epochs=5).fit(train.X, train.y, qid=train.qid, validation=other)
    theirs = LambdaRank(max_epochs=5).fit(train.X, train.y, **given)
    assert [entry.validation for entry in theirs.history_] == [entry.validation for entry in ours.history_]
    with caplog.at_level("INFO", logger="structrank"):
        StructRankSVM("auc").fit(train.X, train.y, **given)
    assert "StructRankSVM does not use eval_set" in caplog.text


def test_a_subclass_may_pass_keywords_on(fold):
    class OneQuery(StructRankSVM):
        def fit(self, X, y, qid=0, **more):
            return super().fit(X, y, qid=qid, **more)

    seen = []
    model = OneQuery("auc").fit(fold.train.X, fold.train.y, callback=seen.append)
    assert len(seen) == model.n_iter_
    assert list(inspect.signature(OneQuery.fit).parameters)[-4:] == ["group", "eval_set", "eval_group", "more"]
