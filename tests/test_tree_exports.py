"""Exports of trees: files of the libraries, and what an engine cannot hold."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structrank import StructRankWarning, datasets, load_model
from structrank.learners import LambdaMART, McRank
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models import exports
from structrank.models.exports.trees import forest_of

pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")
pytest.importorskip("xgboost", reason="XGBoost (extra 'trees') is not installed")

NAMES = ["bm25", "title match", "few values", "tiny"]
MODELS = {
    "LambdaMART": LambdaMART(n_estimators=10, num_leaves=15),
    "LightGBM": LightGBMRanker(n_estimators=10, num_leaves=15),
    "XGBoost": XGBoostRanker(n_estimators=10, max_depth=4),
}


def as_frame(X):
    return pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=3, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(fold):
    return {name: model.fit(as_frame(fold.train.X), fold.train.y, qid=fold.train.qid) for name, model in MODELS.items()}


def test_thresholds_that_are_equal_in_32_bits_warn(rng):
    X = np.column_stack([1e9 + rng.permutation(600), rng.normal(size=600)])
    model = LambdaMART(n_estimators=5).fit(
        X, (X[:, 0] > 1e9 + 300).astype(int) + (X[:, 0] % 7 > 3), qid=np.repeat(np.arange(20), 30)
    )
    with pytest.warns(StructRankWarning, match="Solr rounds feature 'f1' to 32 bits, in which different thresholds"):
        model.to_solr("m", "s", shift=1.0)


# --- McRank -----------------------------------------------------------------------------------------------------------


def test_mcrank_with_more_grades_is_no_sum_of_trees(fold, tmp_path):
    train = fold.train
    plain, ordinal = (McRank(kind, n_estimators=3).fit(train.X, train.y, qid=train.qid) for kind in ("plain", "ordinal"))
    for model in (plain, ordinal):
        assert forest_of(model).predict(fold.test.X) == pytest.approx(model.predict(fold.test.X), abs=1e-12)
        for export in (model.to_solr, lambda *names, model=model, **options: model.to_elasticsearch("m", **options)):
            with pytest.raises(
                ValueError, match="McRank with 3 grades computes an expected grade, which is not a sum of trees"
            ):
                export("m", "s", shift=0.0)
        with pytest.raises(ValueError, match="the only form that RankLib accepts"):
            model.to_ranklib(tmp_path / "m.txt")
    plain.to_lightgbm(tmp_path / "m.txt")
    with pytest.raises(ValueError, match="McRank has 2 boosters, one for each threshold"):
        ordinal.to_lightgbm(tmp_path / "m.txt")


# --- the libraries ----------------------------------------------------------------------------------------------------


def test_files_of_the_libraries_are_bit_identical(fitted, fold, tmp_path):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X = as_frame(fold.test.X)
    for name in ("LambdaMART", "LightGBM"):
        fitted[name].to_lightgbm(tmp_path / "m.txt")
        assert np.array_equal(lightgbm.Booster(model_file=tmp_path / "m.txt").predict(X), fitted[name].predict(X))
    model = fitted["XGBoost"]
    model.to_xgboost(tmp_path / "m.json")
    found = xgboost.Booster(model_file=tmp_path / "m.json").predict(xgboost.DMatrix(X.to_numpy()))
    assert np.array_equal(found, model.predict(X))
    with pytest.raises(ValueError, match="XGBoostRanker has trees of XGBoost, not of LightGBM; use to_xgboost"):
        exports.to_lightgbm(model, tmp_path / "m.txt")
    with pytest.raises(ValueError, match="LambdaMART has trees of LightGBM, not of XGBoost; use to_lightgbm"):
        exports.to_xgboost(fitted["LambdaMART"], tmp_path / "m.json")
    with pytest.raises(ValueError, match="holds the trees alone, without the scaler"):
        exports.to_lightgbm(make_pipeline(StandardScaler().fit(fold.train.X), fitted["LambdaMART"]), tmp_path / "m.txt")


# --- what cannot be exported ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:categorical_feature keyword")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LightGBMRanker(n_estimators=2, linear_tree=True), "linear functions in their leaves or splits by category"),
        (LightGBMRanker(n_estimators=2, categorical_feature=[2]), "linear functions in their leaves or splits by category"),
        (LightGBMRanker(n_estimators=2, zero_as_missing=True), "treat 0 as missing"),
        (XGBoostRanker(n_estimators=2, booster="dart"), "the booster of XGBoost is 'dart'; an export supports 'gbtree'"),
    ],
)
def test_other_kinds_of_trees_are_rejected(model, message, fold):
    X = np.abs(np.round(fold.train.X))
    model.fit(X, fold.train.y, qid=fold.train.qid)
    with pytest.raises(ValueError, match=message):
        model.to_solr("m", "s", shift=0.0)


def test_a_loaded_model_exports_the_same(fitted, tmp_path):
    model = fitted["LambdaMART"]
    model.save(tmp_path / "m.structrank")
    assert load_model(tmp_path / "m.structrank").to_solr("m", "s", shift=0.0) == model.to_solr("m", "s", shift=0.0)
