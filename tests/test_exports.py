"""Exports of linear models: documented formats, invalid arguments, and files that are read back or rejected."""

import json
import math
import pathlib
import re
import runpy
import warnings

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from structrank import StructRankSVM, StructRankWarning, datasets, load_model
from structrank.learners import RankNet
from structrank.models import exports, imports

NUMBER_AS_TEXT = {"type": "string", "pattern": r"^-?\d+(\.\d+)?(e[-+]?\d+)?$"}


def closed(properties, optional=()):
    """Return the schema of an object that has these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def solr_norm(name, *parameters):
    return closed(
        {"class": {"const": f"org.apache.solr.ltr.norm.{name}"}, "params": closed(dict.fromkeys(parameters, NUMBER_AS_TEXT))}
    )


# From the Solr reference guide and the Javadoc of LinearModel, StandardNormalizer and MinMaxNormalizer.
SOLR = closed(
    {
        "class": {"const": "org.apache.solr.ltr.model.LinearModel"},
        "name": {"type": "string", "minLength": 1},
        "store": {"type": "string", "minLength": 1},
        "features": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "name": {"type": "string", "minLength": 1},
                    "norm": {
                        "oneOf": [solr_norm("StandardNormalizer", "avg", "std"), solr_norm("MinMaxNormalizer", "min", "max")]
                    },
                },
                optional=["norm"],
            ),
        },
        "params": closed({"weights": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}}),
    }
)
# From "Uploading a trained model" and "Creating a model with feature normalization" in the plugin's manual; its normalizer
# "min_max" rejects a negative minimum, so "standard" stands for both kinds of scaler.
NUMBER = {"type": "number"}
STANDARD = closed({"standard": closed({"mean": NUMBER, "standard_deviation": {"type": "number", "exclusiveMinimum": 0}})})
ELASTICSEARCH = closed(
    {
        "model": closed(
            {
                "name": {"type": "string", "minLength": 1},
                "model": closed(
                    {
                        "type": {"const": "model/linear"},
                        "definition": {"type": "string"},
                        "feature_normalizers": {"type": "object", "minProperties": 1, "additionalProperties": STANDARD},
                    },
                    optional=["feature_normalizers"],
                ),
            }
        )
    }
)
DEFINITION = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}


SCALERS = {
    "none": None,
    "standard": StandardScaler(),
    "no mean": StandardScaler(with_mean=False),
    "no deviation": StandardScaler(with_std=False),
    "min-max": MinMaxScaler(),
    "min-max -1 to 3": MinMaxScaler(feature_range=(-1, 3)),
}
NAMES = ["bm25", "title match", "age", "clicks", "längd", "score"]


@pytest.fixture(scope="module")
def parts():
    """Training and held-out documents as frames, with features of very different scales, one of them constant."""
    fold = datasets.make_ranking(n_queries=100, n_docs=8, n_features=6, noise=0.5, random_state=0)

    def stretch(part):
        X = part.X * [1.0, 100.0, 1e-3, 5.0, 0.0, 1.0] + [0.0, 1e4, 3.0, -7.0, 2.5, 0.1]
        return pd.DataFrame(X, columns=NAMES), part.y, part.qid

    return stretch(fold.train), stretch(fold.test)


@pytest.fixture(scope="module")
def fitted(parts):
    """A fitted Pipeline (or model) for each scaler."""
    (X, y, qid), _ = parts
    models = {}
    for name, scaler in SCALERS.items():
        svm = StructRankSVM("map", C=10.0)
        if scaler is None:
            models[name] = svm.fit(X / [1.0, 100.0, 1e-3, 5.0, 1.0, 1.0], y, qid=qid)
        else:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Columns of X differ in scale")  # of "no deviation"
                models[name] = make_pipeline(scaler, svm).fit(X, y, structranksvm__qid=qid)
    return models


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("shift", [0.0, 12.5])
def test_exports_match_the_documented_schemas(scaler, shift, fitted):
    solr = json.loads(json.dumps(exports.to_solr(fitted[scaler], "mine", "store", shift=shift)))
    jsonschema.validate(solr, SOLR)
    assert [feature["name"] for feature in solr["features"]] == NAMES
    assert list(solr["params"]["weights"]) == NAMES  # every feature has a weight
    plugin = json.loads(json.dumps(exports.to_elasticsearch(fitted[scaler], "mine", shift=shift)))
    jsonschema.validate(plugin, ELASTICSEARCH)
    definition = json.loads(plugin["model"]["model"]["definition"])
    jsonschema.validate(definition, DEFINITION)
    assert list(definition) == NAMES
    if scaler == "none" and shift == 0.0:
        assert not any("norm" in feature for feature in solr["features"])
        assert "feature_normalizers" not in plugin["model"]["model"]


def test_methods_of_a_model_equal_the_exports_of_its_pipeline(fitted):
    pipeline = fitted["standard"]
    scaler, model = pipeline[0], pipeline[-1]
    assert model.to_solr("m", "s", scaler=scaler, shift=1.0) == exports.to_solr(pipeline, "m", "s", shift=1.0)
    assert model.to_elasticsearch("m", scaler=scaler, shift=1.0) == exports.to_elasticsearch(pipeline, "m", shift=1.0)


def test_features_without_names_are_numbered_from_one_and_can_be_named(parts):
    (X, y, qid), _ = parts
    model = StructRankSVM("auc", scale="std").fit(X.to_numpy(), y, qid=qid)
    assert list(model.to_solr("m", "s", shift=0.0)["params"]["weights"]) == ["f1", "f2", "f3", "f4", "f5", "f6"]
    assert list(model.to_solr("m", "s", shift=0.0, feature_names=NAMES)["params"]["weights"]) == NAMES


# --- negative scores --------------------------------------------------------------------------------------------------


def test_no_warning_where_scores_cannot_be_negative():
    model = StructRankSVM("auc").fit([[0.0, 0.0], [1.0, 2.0]], [0, 1], qid=0)
    assert (model.coef_ > 0).all()
    assert model.to_solr("m", "s") == model.to_solr("m", "s", shift=0.0)
    scaler = MinMaxScaler().fit([[0.0, 0.0], [1.0, 2.0]])
    assert model.to_solr("m", "s", scaler=scaler) == model.to_solr("m", "s", scaler=scaler, shift=0.0)
    with pytest.warns(StructRankWarning, match="can be negative"):
        model.to_solr("m", "s", scaler=StandardScaler().fit([[0.0, 0.0], [1.0, 2.0]]))


# --- invalid arguments ------------------------------------------------------------------------------------------------


def with_weights(*weights):
    model = StructRankSVM()
    model.coef_, model.n_features_in_ = np.array(weights), len(weights)
    return model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "name='' is not valid"),
        ({"name": 3}, "name=3 is not valid"),
        ({"store": None}, "store=None is not valid"),
        ({"feature_names": ["a"]}, "feature_names has 1 entries; the model has 2"),
        ({"feature_names": ["a", "a"]}, "feature_names has 'a' twice"),
        ({"feature_names": ["a", "b\0"]}, r"feature_names\[1\]='b\\x00' is not valid: engines cannot store"),
        ({"feature_names": ["a", "\ud800"]}, r"feature_names\[1\]='\\ud800' is not valid: engines cannot store"),
        ({"name": "\udcff"}, r"name='\\udcff' is not valid: engines cannot store"),
        ({"feature_names": ["a", 3]}, r"feature_names\[1\]=3 is not valid"),
        ({"feature_names": "ab"}, "feature_names='ab' is not valid"),
        ({"feature_names": 5}, "feature_names=5 is not valid"),
        ({"shift": "much"}, "shift='much' is not valid"),
        ({"shift": math.nan}, "shift=nan is not valid"),
        ({"scaler": StandardScaler()}, "not fitted"),
        ({"scaler": StandardScaler().fit(np.eye(3))}, "the scaler has 3 features, the model 2"),
        ({"scaler": MinMaxScaler(clip=True).fit(np.eye(2))}, "clip=True"),
        ({"scaler": RobustScaler().fit(np.eye(2))}, "RobustScaler; expected a StandardScaler or a MinMaxScaler"),
        ({"scaler": datasets.PerQueryScaler().fit(np.eye(2))}, "PerQueryScaler; expected"),
    ],
)
def test_invalid_arguments_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        with_weights(1.0, 2.0).to_solr(**{"name": "m", "store": "s", **options})


def test_names_seen_in_training_are_checked_where_the_export_has_names(tmp_path):
    X = pd.DataFrame(np.eye(2), columns=["a", " "])
    model = StructRankSVM("auc").fit(X, [0, 1], qid=0)
    with pytest.raises(ValueError, match=r"feature_names\[1\]=' ' is not valid: expected a text that is not empty"):
        model.to_solr("m", "s", shift=0.0)
    assert list(model.to_solr("m", "s", shift=0.0, feature_names=["a", "b"])["params"]["weights"]) == ["a", "b"]
    model.to_ranklib(tmp_path / "m.txt")  # whose features have numbers
    assert exports.positive_shift(model, X) > 0.0


def test_models_that_are_not_linear_or_not_fitted_are_rejected(parts):
    (X, y, qid), _ = parts
    with pytest.raises(ValueError, match="not fitted"):
        StructRankSVM().to_solr("m", "s")
    network = RankNet(hidden_units=2)
    network.weights_, network.n_features_in_ = np.ones(2 * (6 + 2)), 6
    with pytest.raises(ValueError, match="RankNet has hidden_units=2; expected a linear model"):
        exports.to_solr(network, "m", "s")
    two = make_pipeline(StandardScaler(), MinMaxScaler(), StructRankSVM()).fit(X, y, structranksvm__qid=qid)
    with pytest.raises(ValueError, match="StandardScaler, MinMaxScaler before the model"):
        exports.to_solr(two, "m", "s")
    with pytest.raises(ValueError, match="scaler is given together with a Pipeline"):
        exports.to_solr(two, "m", "s", scaler=two[0])
    with pytest.raises(ValueError, match="dtype='int' is not known"):
        with_weights(1.0).to_onnx("m.onnx", dtype="int")
    with pytest.raises(ValueError, match="all weights of the model are 0"):
        with_weights(0.0, 0.0).to_solr("m", "s", shift=1.0)


@pytest.mark.parametrize("weight", [1e39, 1e-50])
def test_numbers_out_of_the_range_of_32_bits_are_rejected_with_the_feature(weight):
    with pytest.raises(ValueError, match=r"feature 'f2' has weight .* Solr computes in 32 bits"):
        with_weights(1.0, weight).to_solr("m", "s", shift=0.0)
    narrow = MinMaxScaler().fit([[0.0, 1e9], [1.0, 1e9 + 1]])  # equal as 32-bit numbers: division by zero
    with pytest.raises(ValueError, match="feature 'f2' has weight 1, centre 1e"):
        with_weights(1.0, 1.0).to_solr("m", "s", scaler=narrow, shift=0.0)
    narrow.scale_[1] = 1e300
    with pytest.raises(ValueError, match=r"feature 'f2' has weight 1e\+100 and spread 1e-300; the quotient is not a finite"):
        exports.to_expression(with_weights(1.0, 1e100), "sql", scaler=narrow)


# --- SVM^rank and RankLib ---------------------------------------------------------------------------------------------


def test_svmrank_files_have_the_format_of_svm_rank_learn(tmp_path):
    with_weights(0.5, 0.0, -2.0).to_svmrank(tmp_path / "model.dat")
    assert (tmp_path / "model.dat").read_text() == (
        "SVM-light Version V6.20\n"
        "0 # kernel type \n3 # kernel parameter -d \n1 # kernel parameter -g \n1 # kernel parameter -s \n"
        "1 # kernel parameter -r \nempty# kernel parameter -u \n3 # highest feature index \n"
        "0 # number of training documents \n2 # number of support vectors plus 1 \n"
        "0.0 # threshold b, each following line is a SV (starting with alpha*y)\n"
        "1 1:0.5 2:0.0 3:-2.0 #\n"
    )


SVMRANK = (
    "SVM-light Version V6.20\n0 # kernel type\n3 # kernel parameter -d \n1 # kernel parameter -g \n"
    "1 # kernel parameter -s \n1 # kernel parameter -r \nempty# kernel parameter -u \n5 # highest feature index \n"
    "12 # number of training documents \n3 # number of support vectors plus 1 \n"
    "0.25 # threshold b, each following line is a SV (starting with alpha*y)\n"
    "0.5 1:2 3:-1.5e-1 #\n-2 qid:7 3:1 5:0.25 #doc\n"
)


def test_support_vectors_are_summed(tmp_path):
    (tmp_path / "model.dat").write_text(SVMRANK)
    model = imports.read_svmrank(tmp_path / "model.dat")
    assert model.coef_ == pytest.approx([1.0, 0.0, -2.075, 0.0, -0.5], abs=1e-15)
    model.save(tmp_path / "m.structrank")
    assert np.array_equal(load_model(tmp_path / "m.structrank").predict(np.eye(5)), model.predict(np.eye(5)))


def test_weights_round_trip_bit_for_bit(tmp_path, rng):
    model = with_weights(*rng.normal(size=40) * 10.0 ** rng.integers(-300, 300, 40))
    model.to_svmrank(tmp_path / "model.dat")
    model.to_ranklib(tmp_path / "model.txt")
    assert np.array_equal(imports.read_svmrank(tmp_path / "model.dat").coef_, model.coef_)
    assert np.array_equal(imports.read_ranklib(tmp_path / "model.txt").coef_, model.coef_)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SVM-light", "SVM-heavy", "begins with 'SVM-heavy"),
        (SVMRANK, "", "begins with ''"),
        ("0 # kernel type", "2 # kernel type", ":2: kernel type '2'; expected 0"),
        ("# kernel parameter -s", "# kernel parameter -t", ":5: found '1 # kernel parameter -t"),
        ("5 # highest", "4 # highest", ":13: feature 5 is not one of 1 to 4"),
        ("5 # highest", "99999999999999 # highest", ":8: '99999999999999' is not valid"),
        ("5 # highest", "many # highest", ":8: 'many' is not valid"),
        ("3 # number", "4 # number", "has 2 support vectors; its header says 3"),
        ("0.25 # thr", "nan # thr", ":11: 'nan' is not valid"),
        ("1:2", "1:2_0", ":12: '2_0' is not valid"),
        ("1:2", "1:inf", ":12: 'inf' is not valid"),
        ("1:2", "3:2", ":12: feature 3 has two weights"),
        ("1:2", "0:2", ":12: feature 0 is not one of"),
        ("1:2", "-1:2", ":12: '-1' is not valid"),
        ("1:2", "two", ":12: 'two' is not valid: expected feature:weight"),
        ("0.5 1:2", "half 1:2", ":12: 'half' is not valid"),
        ("1:2", "1:1e200 2:1", None),
        ("0.5 1:2", "1e200 1:1e200", "weights that overflow"),
        ("1:2", "1:ä", "expected a model as text"),
    ],
)
def test_damaged_svmrank_files_are_rejected_with_the_line(old, new, message, tmp_path):
    assert old in SVMRANK
    (tmp_path / "model.dat").write_text(SVMRANK.replace(old, new, 1), encoding="utf-8")
    if message is None:
        assert np.isfinite(imports.read_svmrank(tmp_path / "model.dat").coef_).all()
    else:
        with pytest.raises(ValueError, match=message):
            imports.read_svmrank(tmp_path / "model.dat")


def test_truncated_svmrank_files_are_rejected(tmp_path):
    end = SVMRANK.rindex("#")
    for length in range(end + 1):
        (tmp_path / "model.dat").write_text(SVMRANK[:length])
        with pytest.raises(ValueError, match=r"model\.dat"):
            imports.read_svmrank(tmp_path / "model.dat")


def test_ranklib_files_of_both_linear_learners_are_read(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("## Coordinate Ascent\n## Restart = 5\n## Slack = 0.001\n\n2:0.5 1:-1.5E-3")
    assert imports.read_ranklib(path).coef_.tolist() == [-0.0015, 0.5]
    assert imports.read_ranklib(path, n_features=4).coef_.tolist() == [-0.0015, 0.5, 0.0, 0.0]
    path.write_text("## Linear Regression\n## Lambda = 1.0E-10\n0:7.0 1:1.0 3:2.0 # comment\n")
    assert imports.read_ranklib(path).coef_.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty; expected '## Coordinate Ascent'"),
        ("## LambdaMART\n<ensemble>", {}, "begins with '## LambdaMART'"),
        ("1:2", {}, "begins with '1:2'"),
        ("## Coordinate Ascent\n", {}, "has 0 lines of weights"),
        ("## Coordinate Ascent\n1:2\n2:3", {}, "has 2 lines of weights"),
        ("## Coordinate Ascent\n0:2 1:3", {}, ":2: feature 0; features of Coordinate Ascent count from 1"),
        ("## Linear Regression\n0:2", {}, ":2: no feature has a weight"),
        ("## Coordinate Ascent\n1:", {}, ":2: '' is not valid"),
        ("## Coordinate Ascent\n3:1", {"n_features": 2}, "n_features=2: .*:2 has a weight for feature 3"),
        ("## Coordinate Ascent\n3:1", {"n_features": "all"}, "n_features='all' is not valid"),
    ],
)
def test_invalid_ranklib_files_are_rejected(text, options, message, tmp_path):
    (tmp_path / "model.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        imports.read_ranklib(tmp_path / "model.txt", **options)


def test_a_failed_export_keeps_the_earlier_file(tmp_path):
    with pytest.raises(OSError, match="cannot save the model"):
        with_weights(1.0).to_svmrank(tmp_path / "nowhere" / "model.dat")
    with_weights(1.0).to_ranklib(tmp_path / "model.txt")
    with pytest.raises(ValueError, match="clip"):
        with_weights(2.0).to_ranklib(tmp_path / "model.txt", scaler=MinMaxScaler(clip=True).fit([[0.0], [1.0]]))
    assert imports.read_ranklib(tmp_path / "model.txt").coef_ == [1.0]


# --- the pages --------------------------------------------------------------------------------------------------------


def test_the_page_on_production_runs_from_top_to_bottom(tmp_path, monkeypatch):
    text = (pathlib.Path(__file__).parent.parent / "docs/production.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 7
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("page.py")


def test_features_of_large_mean_and_small_spread_warn(rng):
    X = np.column_stack([1.7e9 + 3600 * rng.random(200), rng.random(200)])
    y, qid = (X[:, 1] > 0.5).astype(int), np.repeat(np.arange(20), 10)
    model = make_pipeline(StandardScaler(), StructRankSVM("auc")).fit(X, y, structranksvm__qid=qid)
    with pytest.warns(StructRankWarning, match=r"Feature 'f1' is around 1.7e\+09 .* Solr rounds it to 32 bits"):
        exports.to_solr(model, "m", "s", shift=0.0)


def test_the_plain_scikit_learn_model_is_a_copy(parts, fitted):
    (X, y, _), (others, _, _) = parts
    model = next(model for model in fitted.values() if hasattr(model, "steps"))
    before = model.predict(others)
    exports.to_sklearn(model).fit(7.0 * X, y)
    np.testing.assert_array_equal(model.predict(others), before)
