"""Exported trees: evaluated as the engines do, from the exported file alone, they score as the model does."""

import itertools
import json
import xml.etree.ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankWarning, datasets, load_model
from structrank.learners import LambdaMART, McRank, StructRankTrees
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models import exports
from structrank.models.exports.trees import forest_of

pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")
pytest.importorskip("xgboost", reason="XGBoost (extra 'trees') is not installed")

NAMES = ["bm25", "title match", "few values", "tiny"]
SCALES, OFFSETS = [1.0, 100.0, 1.0, 1e-3], [0.0, 40.0, 0.0, 0.0]
MODELS = {
    "LambdaMART": lambda: LambdaMART(n_estimators=10, num_leaves=15),
    "StructRankTrees": lambda: StructRankTrees("auc", relevant_from=None, n_estimators=10, num_leaves=15),
    "LightGBM": lambda: LightGBMRanker(n_estimators=10, num_leaves=15),
    "random forest": lambda: LightGBMRanker(n_estimators=5, boosting_type="rf", bagging_freq=1, bagging_fraction=0.5),
    "XGBoost": lambda: XGBoostRanker(n_estimators=10, max_depth=4),
}
SCALERS = {"none": None, "standard": StandardScaler(), "min-max": MinMaxScaler(feature_range=(-1, 3))}
KINDS = list(itertools.product(MODELS, SCALERS))


def stretch(X):
    """Return a frame of features of several scales; one has the values -1, 0 and 1 only."""
    X = X * SCALES + OFFSETS
    X[:, 2] = np.clip(np.round(X[:, 2]), -1, 1)
    return pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=60, n_docs=20, n_features=4, n_grades=3, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(fold):
    models, train = {}, fold.train
    for name, scaler in KINDS:
        model = MODELS[name]()
        pipeline = (
            model
            if SCALERS[scaler] is None
            else make_pipeline(SCALERS[scaler].__class__(**SCALERS[scaler].get_params()), model)
        )
        key = "qid" if pipeline is model else f"{pipeline.steps[-1][0]}__qid"
        models[name, scaler] = pipeline.fit(stretch(train.X), train.y, **{key: train.qid})
    return models


def borders(model, rng, n=300):
    """Return documents whose values are thresholds and the next larger numbers, in 64 bits, and all in 32 bits."""
    forest = forest_of(model)
    columns = []
    for feature in range(len(NAMES)):
        found = np.concatenate([tree.thresholds[tree.features == feature] for tree in forest.trees])
        # Near 0, Solr's slack moves thresholds by 1e-13, and LightGBM takes numbers below 1e-35 for 0.
        found = found[(np.abs(found) < 1e30) & (np.abs(found) > 1e-6)]
        columns.append(rng.choice(np.concatenate([found, np.nextafter(found, np.inf), [0.0]]), n))
    return np.column_stack(columns)


@pytest.mark.parametrize(("name", "scaler"), KINDS)
def test_the_common_form_sends_each_document_to_its_leaf(name, scaler, fitted, fold, rng):
    model = fitted[name, scaler]
    for X in (stretch(fold.test.X).to_numpy(), borders(model, rng)):
        expected = model.predict(pd.DataFrame(X, columns=NAMES))
        assert forest_of(model).predict(X) == pytest.approx(expected, abs=1e-6 if name == "XGBoost" else 1e-12)


# --- engines in 32 bits -----------------------------------------------------------------------------------------------


def by_solr(model, document):
    """Score by the JSON of MultipleAdditiveTreesModel, which adds 1e-6 to thresholds, in 32 bits."""

    def leaf(node):
        while "feature" in node:
            threshold = np.float32(node["threshold"]) + np.float32(1e-6)
            node = node["left"] if document[node["feature"]] <= threshold else node["right"]
        return np.float32(node["value"])

    return sum((np.float32(tree["weight"]) * leaf(tree["root"]) for tree in model["params"]["trees"]), start=np.float32(0.0))


def by_plugin(model, document):
    """Score by the JSON of "model/xgboost+json", which compares x < split_condition, in 32 bits."""
    assert model["model"]["model"]["type"] == "model/xgboost+json"

    def leaf(node, depth=0):
        while "leaf" not in node:
            assert node["depth"] == depth
            assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
            assert node["missing"] in (node["yes"], node["no"])
            goes_left = document[node["split"]] < np.float32(node["split_condition"])
            node, depth = node["children"][0 if goes_left else 1], depth + 1
        return np.float32(node["leaf"])

    return sum(map(leaf, json.loads(model["model"]["model"]["definition"])), start=np.float32(0.0))


def by_ranklib(text, values):
    """Score by the XML of a LambdaMART model of RankLib, in 32 bits."""

    def leaf(split):
        while split.find("feature") is not None:
            value = values[int(split.find("feature").text) - 1]
            side = "left" if value <= np.float32(split.find("threshold").text) else "right"
            split = next(child for child in split.findall("split") if child.get("pos") == side)
        return np.float32(split.find("output").text)

    trees = xml.etree.ElementTree.fromstring(text).findall("tree")
    return sum((np.float32(tree.get("weight")) * leaf(tree.find("split")) for tree in trees), start=np.float32(0.0))


def in_32_bits(X):
    return X.astype(np.float32)


@pytest.mark.parametrize(("name", "scaler"), KINDS)
def test_engines_score_documents_in_32_bits_as_the_model(name, scaler, fitted, fold, rng, tmp_path):
    model = fitted[name, scaler]
    X = np.concatenate([in_32_bits(borders(model, rng, 60)), in_32_bits(stretch(fold.test.X).to_numpy()[:60])])
    expected = model.predict(pd.DataFrame(X.astype(np.float64), columns=NAMES))
    solr = json.loads(json.dumps(exports.to_solr(model, "m", "s", shift=2.5)))
    plugin = json.loads(json.dumps(exports.to_elasticsearch(model, "m", shift=2.5)))
    exports.to_ranklib(model, tmp_path / "m.txt")
    first, *_, ensemble = (tmp_path / "m.txt").read_text().split("\n", 3)
    assert first == "## LambdaMART"
    documents = [dict(zip(NAMES, row, strict=True)) for row in X]
    tolerance = 1e-5 * (1.0 + np.abs(expected).max())
    assert [by_solr(solr, document) for document in documents] == pytest.approx(expected + 2.5, abs=tolerance)
    assert [by_plugin(plugin, document) for document in documents] == pytest.approx(expected + 2.5, abs=tolerance)
    assert [by_ranklib(ensemble, row) for row in X] == pytest.approx(expected, abs=tolerance)


def test_solr_keeps_0_on_its_side_of_tiny_thresholds(rng):
    X = rng.choice([-1.0, 0.0, 1.0], size=(600, 2))
    y = (X[:, 0] == 0.0).astype(int) + (X[:, 1] > 0.0)
    model = LambdaMART(n_estimators=5, num_leaves=8).fit(X, y, qid=np.repeat(np.arange(30), 20))
    assert any((np.abs(tree.thresholds[~tree.is_leaf]) < 1e-30).any() for tree in forest_of(model).trees)
    exported = model.to_solr("m", "s", shift=0.0)
    found = [by_solr(exported, {"f1": np.float32(a), "f2": np.float32(b)}) for a, b in X[:60]]
    assert found == pytest.approx(model.predict(X[:60]), abs=1e-5)


def test_thresholds_that_are_equal_in_32_bits_warn(rng):
    X = np.column_stack([1e9 + rng.permutation(600), rng.normal(size=600)])
    model = LambdaMART(n_estimators=5).fit(
        X, (X[:, 0] > 1e9 + 300).astype(int) + (X[:, 0] % 7 > 3), qid=np.repeat(np.arange(20), 30)
    )
    with pytest.warns(StructRankWarning, match="Solr rounds feature 'f1' to 32 bits, in which different thresholds"):
        model.to_solr("m", "s", shift=1.0)


def test_negative_scores_warn_and_can_be_shifted(fitted, fold):
    model, X = fitted["LambdaMART", "none"], stretch(fold.test.X)
    with pytest.warns(StructRankWarning, match=r"can be negative.*positive_shift"):
        model.to_solr("m", "s")
    shift = exports.positive_shift(model, X)
    spread = np.ptp(model.predict(X))
    assert shift == pytest.approx(spread - model.predict(X).min())
    exported = model.to_solr("m", "s", shift=shift)
    assert min(by_solr(exported, document) for document in in_32_bits(X).to_dict("records")) == pytest.approx(spread, abs=1e-5)


# --- McRank -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classification", ["plain", "ordinal"])
def test_mcrank_with_two_grades_is_exported_as_log_odds(classification, fold):
    train, X = fold.train, stretch(fold.test.X)
    model = McRank(classification, n_estimators=5, num_leaves=7, relevant_from=1).fit(stretch(train.X), train.y, qid=train.qid)
    shift = exports.positive_shift(model, X)
    exported = model.to_solr("m", "s", shift=shift)
    scores = np.array([by_solr(exported, document) for document in in_32_bits(X).to_dict("records")], dtype=np.float64)
    assert scores.min() == pytest.approx(np.ptp(scores), abs=1e-5)
    assert 1.0 / (1.0 + np.exp(shift - scores)) == pytest.approx(model.predict(X), abs=1e-5)


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


# --- ONNX and the libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*MODELS, "McRank", "McRank, ordinal"])
def test_onnxruntime_scores_trees(name, dtype, fitted, fold, rng, tmp_path):
    pytest.importorskip("onnx", reason="onnx (extra 'onnx') is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime (extra 'onnx') is not installed")
    X = stretch(fold.test.X).to_numpy()
    if name in MODELS:
        model = fitted[name, "min-max"]
        X = np.concatenate([X, borders(model, rng)]) if dtype == "float64" else X
    else:
        model = McRank("ordinal" if "ordinal" in name else "plain", n_estimators=3).fit(
            stretch(fold.train.X), fold.train.y, qid=fold.train.qid
        )
    exports.to_onnx(model, tmp_path / "m.onnx", dtype=dtype)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    (found,) = session.run(["score"], {"X": X.astype(dtype)})
    X = X.astype(dtype).astype(np.float64)
    assert found.shape == (len(X), 1)
    assert found[:, 0] == pytest.approx(model.predict(pd.DataFrame(X, columns=NAMES)), abs=1e-5)
    known = session.get_modelmeta().custom_metadata_map
    assert json.loads(known["feature_names"]) == NAMES
    assert known["model"] == type(model[-1] if hasattr(model, "steps") else model).__name__


def test_files_of_the_libraries_are_bit_identical(fitted, fold, tmp_path):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X = stretch(fold.test.X)
    for name in ("LambdaMART", "LightGBM"):
        fitted[name, "none"].to_lightgbm(tmp_path / "m.txt")
        assert np.array_equal(lightgbm.Booster(model_file=tmp_path / "m.txt").predict(X), fitted[name, "none"].predict(X))
    model = fitted["XGBoost", "none"]
    model.to_xgboost(tmp_path / "m.json")
    found = xgboost.Booster(model_file=tmp_path / "m.json").predict(xgboost.DMatrix(X.to_numpy()))
    assert np.array_equal(found, model.predict(X))
    with pytest.raises(ValueError, match="XGBoostRanker has trees of XGBoost, not of LightGBM; use to_xgboost"):
        exports.to_lightgbm(model, tmp_path / "m.txt")
    with pytest.raises(ValueError, match="LambdaMART has trees of LightGBM, not of XGBoost; use to_lightgbm"):
        exports.to_xgboost(fitted["LambdaMART", "none"], tmp_path / "m.json")
    with pytest.raises(ValueError, match="holds the trees alone, without the scaler"):
        exports.to_lightgbm(fitted["LambdaMART", "standard"], tmp_path / "m.txt")


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
    model = fitted["LambdaMART", "none"]
    model.save(tmp_path / "m.structrank")
    assert load_model(tmp_path / "m.structrank").to_solr("m", "s", shift=0.0) == model.to_solr("m", "s", shift=0.0)
