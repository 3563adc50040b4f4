"""Model files with a valid checksum that this package did not write: what compiled code relies on is checked on load."""

import hashlib
import json
import re

import numpy as np
import pytest

from structrank import StructRankSVM, cli, clicks, datasets, learners, load_model, preparation
from structrank.learners import tree_texts
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models import files

TRAIN = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0).train


def fitted(model):
    return model.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)


@pytest.fixture(scope="module")
def log():
    return clicks.ClickLog.from_sessions([("q", ["a", "b"], [0]), ("r", ["b", "c"], [1]), ("q", ["c", "a"], [])] * 4)


def forge(model, path, change):
    """Save a model, let `change` alter the header and the list of arrays, and write it with a valid checksum."""
    model.save(path)
    header, values = files._read(path)
    arrays = files._split(values, header["arrays"])
    change(header, arrays)
    header["arrays"] = [{"dtype": array.dtype.str, "shape": array.shape} for array in arrays]
    text, values = json.dumps(header).encode(), b"".join(array.tobytes() for array in arrays)
    content = b"structrank-model 1 %d %d\n%s%s" % (len(text), len(values), text, values)
    path.write_bytes(content + hashlib.sha256(content).digest())


def find(value, name):
    """Return the value of a name anywhere in a header."""
    if isinstance(value, dict):
        if name in value:
            return value[name]
        value = list(value.values())
    if isinstance(value, list):
        return next((found for item in value if (found := find(item, name)) is not None), None)
    return None


def rejected(model, path, change, message):
    forge(model, path, lambda header, arrays: None)
    load_model(path)
    forge(model, path, change)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(path))} is a model file .*{message}"):
        load_model(path)


def replaced(name, new):
    """Return a change of the array of this name."""

    def change(header, arrays):
        number = find(header["fitted"], name)["array"]
        arrays[number] = np.ascontiguousarray(new(arrays[number]))

    return change


def counts_of(name, new):
    """Return a change of the numbers of a sparse matrix."""

    def change(header, arrays):
        number = find(find(header["fitted"], name), "data")["array"]
        arrays[number] = new(arrays[number])

    return change


def without(name):
    """Return a change that removes the last id of some ids."""
    return lambda header, arrays: find(header["fitted"], name)["Ids"]["values"]["names"].pop()


def parameter(name, value):
    return lambda header, arrays: header["parameters"].update({name: value})


def attribute(name, value):
    return lambda header, arrays: header["fitted"].update({name: value})


GRAPH = [
    (replaced("indptr", lambda a: a[:-1]), "graph_.indptr is an array"),
    (replaced("indptr", lambda a: np.append(a, a[-1])), "graph_.indptr is an array"),
    (replaced("indptr", lambda a: a + np.arange(a.size) * 1000), "indptr|index"),
    (replaced("indptr", lambda a: a.astype(float)), "graph_.indptr is an array of float64"),
    (replaced("indptr", lambda a: np.where(np.arange(a.size) == 1, 10**12, 0)), "graph_.indptr is broken"),  # no edges at all
    (replaced("indptr", lambda a: np.where(np.arange(a.size) == 1, -5, a)), "graph_.indptr is broken"),
    (replaced("url", lambda a: a + 1000), "graph_ has the column index"),
    (replaced("url", lambda a: a - 1000), "graph_ has the column index"),
    (replaced("clicks", lambda a: a.astype(np.float16)), "graph_.clicks has the type float16; expected float64"),
    (replaced("clicks", lambda a: a[:-1]), "graph_.url is an array"),
    (replaced("clicks", lambda a: a * np.nan), "graph_.clicks has nan; expected magnitudes"),
    (replaced("clicks", lambda a: a * 1e200), "graph_.clicks has .*e.200; expected magnitudes"),
    (replaced("clicks", lambda a: a * 0), "graph_.clicks has 0.0; expected magnitudes"),
    (replaced("clicks", lambda a: -a), "graph_.clicks has -.*; expected positive numbers"),
    (without("queries_"), "graph_.indptr is an array"),
    (without("urls_"), "graph_ has 3 urls; expected 2"),
]


@pytest.mark.parametrize(("change", "message"), GRAPH)
def test_the_graph_of_a_walk_fits_its_ids(log, tmp_path, change, message):
    rejected(clicks.RandomWalkRanker(steps=3).fit(log), tmp_path / "m", change, message)


def test_an_indptr_whose_differences_overflow_is_rejected(tmp_path):
    log = clicks.ClickLog.from_sessions([("q", ["a", "b"], [0]), ("r", ["b", "c"], [1]), ("s", ["c"], [])])
    change = replaced("indptr", lambda a: np.array([0, 2**63 - 1, -2, a[-1]]))
    rejected(clicks.RandomWalkRanker(steps=3).fit(log), tmp_path / "m", change, "graph_.indptr is broken")


@pytest.mark.parametrize(
    ("name", "value"),
    [("format", {}), ("format", 1), ("versions", {}), ("versions", []), ("versions", {"structrank": [1]}), ("versions", None)],
)
def test_the_header_names_format_and_versions(log, tmp_path, name, value):
    forge(clicks.MeanPosition().fit(log), tmp_path / "m", lambda header, arrays: header.update({name: value}))
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'm'))} is a model file whose content"):
        files.read_header(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (parameter("steps", 10**12), "steps=1000000000000 is not valid: expected an integer of at least 1 and at most 10000"),
        (parameter("n_jobs", 10**9), "n_jobs=1000000000 is not valid"),
        (parameter("tol", -1), "tol=-1 is not valid"),
        (attribute("queries_", {"names": ["q", "r"]}), "queries_ is a ndarray; expected Ids"),
        (attribute("queries_", {"Ids": {"values": {"objects": [[], 1]}}}), "queries_ has values that are not hashable"),
        (attribute("queries_", {"Ids": {"values": {"names": ["q", "q"]}}}), "queries_ has 2 ids, of which 1 are distinct"),
        (attribute("graph_", None), "graph_ is missing"),
    ],
)
def test_parameters_and_ids_of_a_walk_are_checked(log, tmp_path, change, message):
    rejected(clicks.RandomWalkRanker(steps=3).fit(log), tmp_path / "m", change, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("query_factors_", lambda a: a[:-1]), r"query_factors_ is an array of float32, shape \(1, 2\)"),
        (replaced("url_factors_", lambda a: a[:, :1]), r"url_factors_ is an array of float32, shape \(3, 1\)"),
        (replaced("url_factors_", lambda a: a.ravel()), "url_factors_ is an array"),
        (without("urls_"), "url_factors_ is an array"),
        (replaced("url_factors_", lambda a: a * np.nan), "url_factors_ has nan; expected magnitudes"),
        (replaced("query_factors_", lambda a: a * np.float32(1e30)), "query_factors_ has .*; expected magnitudes"),
        (attribute("history_", [1]), "history_ has an entry that is not an Epoch|n_iter_ is"),
        (attribute("queries_", {"Ids": {"values": {"objects": ["q", {"float": "nan"}]}}}), "queries_ contains nan at row 1"),
        (parameter("query_sd", "1"), "query_sd='1' is not valid"),
    ],
)
def test_factors_fit_their_ids(log, tmp_path, change, message):
    model = clicks.CollaborativeRanker(factors=2, max_iter=2).fit(clicks.preference_pairs(log))
    rejected(model, tmp_path / "m", change, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("mean", lambda a: a[:-1]), "the scale's mean is an array"),
        (replaced("sd", lambda a: a[:, None]), "the scale's sd is an array"),
        (replaced("sd", lambda a: a * 0), "the scale's sd has 0.0; expected magnitudes"),
        (replaced("mean", lambda a: a * np.nan), "the scale's mean has nan; expected magnitudes"),
        (attribute("theta_", 2.0), "theta_=2.0 is not valid"),
        (attribute("theta_", {"float": "nan"}), "theta_=nan is not valid"),
        (attribute("walk_scale_", None), "walk_scale_ is missing"),
        (attribute("theta_", "1"), "theta_ is a str"),
        (attribute("walk_", 1), "walk_ is a int; expected RandomWalkRanker"),
        (GRAPH[0][0], "graph_.indptr is an array"),
    ],
)
def test_the_models_of_a_hybrid_fit_together(log, tmp_path, change, message):
    model = clicks.HybridRanker(clicks.CollaborativeRanker(factors=2, max_iter=2), theta=0.5).fit(log)
    rejected(model, tmp_path / "m", change, message)


def test_the_models_of_a_hybrid_have_the_same_ids(log, tmp_path):
    def change(header, arrays):
        fewer = find(header["fitted"], "collaborative_")["CollaborativeRanker"]["fitted"]
        fewer["urls_"]["Ids"]["values"]["names"].pop()
        number = fewer["url_factors_"]["array"]
        arrays[number] = arrays[number][:-1]

    model = clicks.HybridRanker(clicks.CollaborativeRanker(factors=2, max_iter=2), theta=0.5).fit(log)
    rejected(model, tmp_path / "m", change, "urls_ of the factors has 2 ids; expected at least the 3 of the walk")


@pytest.mark.parametrize("model", [clicks.ClickThroughRate(), clicks.MeanPosition()])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("queries"), "clicks has shape"),
        (counts_of("clicks", lambda a: a * np.nan), "clicks has an entry that is no count"),
        (counts_of("clicks", lambda a: a + 100), "clicks has an entry above that of impressions"),
        (counts_of("impressions", lambda a: -a), "impressions has an entry that is no count"),
        (counts_of("impressions", lambda a: a * 0), "clicks has an entry above that of impressions"),
        (counts_of("positions", lambda a: a * 0), "impressions has an entry above that of positions"),
        (replaced("indices", lambda a: a + 1000), "a sparse matrix has the column index"),
        (replaced("indptr", lambda a: a[::-1]), "index|indptr"),
        (replaced("indptr", lambda a: np.where(np.arange(a.size) == 1, 10**6, 0)), "indptr is broken"),  # no entries at all
    ],
)
def test_counts_fit_their_ids(log, tmp_path, model, change, message):
    rejected(model.fit(log), tmp_path / "m", change, message)


@pytest.mark.parametrize(
    "model",
    [
        StructRankSVM("auc"),
        learners.RankNet(hidden_units=2, max_epochs=1),
        learners.LambdaRank(hidden_units=0, max_epochs=1),
        learners.SPSARanker(max_evaluations=10),
    ],
)
@pytest.mark.parametrize(
    ("new", "message"),
    [
        (lambda a: a[:-1], r"_ has \d+ numbers, which does not fit 3 features"),
        (lambda a: np.append(a, a), r"_ has \d+ numbers, which does not fit 3 features"),
        (lambda a: a[None], r"_ has \d+ numbers, which does not fit 3 features"),
        (lambda a: a.astype(np.float32), "_ has the type float32; expected float64"),
        (lambda a: np.where(np.arange(a.size) == 1, np.nan, a), "_ has nan at 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_weights_fit_the_features(tmp_path, model, new, message):
    if isinstance(model, learners.RankNet) and new(np.zeros(10)).size == 20:
        pytest.skip("twice the weights are those of twice the hidden units")
    name = "coef_" if isinstance(model, StructRankSVM) else "weights_"
    rejected(fitted(model), tmp_path / "m", replaced(name, new), message)
    rejected(fitted(model), tmp_path / "m", lambda header, _: header["fitted"].pop(name), f"{name} is missing")


def field(record, **values):
    """Return a change of fields of the first record of a class."""
    return lambda header, arrays: find(header["fitted"], record).update(values)


NAN, INFINITY = {"float": "nan"}, {"float": "inf"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (field("Certificate", primal="1"), "Certificate.primal is '1'; expected float"),
        (field("Certificate", dual=[1.0]), r"Certificate.dual is \[1.0\]; expected float"),
        (field("Certificate", dual=True), "Certificate.dual is True; expected float"),
        (field("Certificate", dual=NAN), "Certificate.dual=nan is not valid"),
        (field("Certificate", primal=INFINITY), "Certificate.primal=inf is not valid"),
        (field("Certificate", primal=10**400), "Certificate.primal=1000.* is not valid"),
        (field("Certificate", primal=-5.0), "the lower bound .* above the upper bound -5.0"),
        (attribute("certificate_", None), "certificate_ is missing"),
        (field("Health", norm=-1.0), "Health.norm=-1.0 is not valid: expected a number of at least 0"),
        (field("Health", vacuous=1), "Health.vacuous is 1; expected bool"),
        (field("Health", dominant=1), "Health.dominant is 1; expected str or NoneType"),
        (field("Health", parts={"dict": {"MAP": "x"}}), r"Health.parts\['MAP'\]='x' is not valid"),
        (attribute("health_", {"Certificate": {"primal": 1.0, "dual": 1.0}}), "health_ is a Certificate; expected Health"),
        (field("Iteration", iteration=0), "Iteration.iteration=0 is not valid"),
        (field("Iteration", planes=-1), "Iteration.planes=-1 is not valid"),
        (field("Iteration", objective="x"), "Iteration.objective is 'x'; expected float"),
        (field("Iteration", seconds={"dict": {"qp": NAN}}), r"Iteration.seconds\['qp'\]=nan is not valid"),
        (field("Iteration", seconds=1.0), "Iteration.seconds is 1.0; expected dict"),
        (field("Iteration", note=None), "Iteration.note is None; expected str"),
        (attribute("history_", {"History": [1, 2]}), "History holds int; expected one kind of entry"),
        (attribute("history_", {"History": {"dict": {"a": 1}}}), "History holds str; expected one kind of entry"),
        (attribute("history_", {"History": []}), "n_iter_ is .*, but history_ has 0 entries"),
        (attribute("history_", [1]), "n_iter_ is .*, but history_ has 1 entries|history_ is a list"),
        (attribute("n_iter_", -1), "n_iter_ is -1"),
        (attribute("notes_", {"tuple": [1]}), "notes_ has a note that is not a text"),
        (attribute("rounds_", {"tuple": [1]}), "rounds_ has an entry that is not a RampRound"),
        (attribute("stop_reason_", 1), "stop_reason_ is a int; expected str"),
    ],
)
def test_results_of_training_have_the_types_and_ranges_of_their_fields(tmp_path, change, message):
    rejected(fitted(StructRankSVM(["map", "auc"])), tmp_path / "m", change, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (field("Round", round="1"), "Round.round is '1'; expected int"),
        (field("Round", effective_pairs=-1), "Round.effective_pairs=-1 is not valid"),
        (field("Round", seconds=INFINITY), "Round.seconds=inf is not valid"),
    ],
)
def test_rounds_have_the_types_and_ranges_of_their_fields(tmp_path, change, message):
    rejected(fitted(learners.RankNet(hidden_units=0, max_epochs=1)), tmp_path / "m", change, message)


def test_names_of_features_are_texts(tmp_path):
    change = attribute("feature_names_in_", {"objects": ["a", 1, "c"]})
    rejected(fitted(StructRankSVM("auc")), tmp_path / "m", change, "feature_names_in_ has a name that is not a text")


@pytest.mark.parametrize(
    ("name", "value"), [("certificate_", 1), ("certificate_", {"Certificate": {}}), ("health_", {"names": ["x"]})]
)
def test_inspect_rejects_attributes_that_it_cannot_show(tmp_path, capsys, name, value):
    forge(fitted(StructRankSVM("auc")), tmp_path / "m", attribute(name, value))
    assert cli.main(["inspect", str(tmp_path / "m")]) == 2
    assert f"{tmp_path / 'm'} is a model file whose content" in capsys.readouterr().err


# ---- Trees


def reordered(pattern, new, count=1):
    """Return a change of a text of LightGBM, with sizes of the trees that fit."""

    def change(text):
        head, body = text.split("\n\n", 1)
        body, end = body.split("end of trees", 1)
        trees = [f"Tree={tree}" for tree in body.split("Tree=")[1:]]
        trees[0], n = re.subn(pattern, new, trees[0], count=count, flags=re.MULTILINE)
        head, m = re.subn(pattern, new, head, count=count, flags=re.MULTILINE)
        assert n + m > 0
        head = re.sub("tree_sizes=.*", f"tree_sizes={' '.join(str(len(tree)) for tree in trees)}", head)
        return f"{head}\n\n{''.join(trees)}end of trees{end}"

    return change


LIGHTGBM = [
    (reordered(r"^split_feature=1", "split_feature=3"), "split_feature is 3; expected 0 to 2"),
    (reordered(r"^split_feature=1", "split_feature=-1"), "split_feature is -1"),
    (reordered(r"^split_feature=1", "split_feature=1.5"), "split_feature is not a list of integers"),
    (reordered(r"^split_feature=1", "split_feature=1_0"), "split_feature is not a list of numbers"),
    (reordered(r"^left_child=-1", "left_child=99"), "a child is 99"),
    (reordered(r"^left_child=-1", "left_child=-99"), "a child is -99"),
    (reordered(r"^left_child=-1", "left_child=0"), "a child comes before its parent"),
    (reordered(r"^left_child=-1", "left_child=1"), "a node is the child of two nodes"),
    (reordered(r"^left_child=-1", "left_child=-2"), "a node is the child of two nodes"),
    (reordered(r"^left_child=-1 ", "left_child="), "the length of left_child is 1; expected 2"),
    (reordered(r"^num_leaves=3", "num_leaves=2147483647"), "the length of split_feature"),
    (reordered(r"^num_leaves=3", "num_leaves=99999999999999"), "num_leaves is .*expected an integer"),
    (reordered(r"^num_leaves=3", "num_leaves=0"), "it has no leaf"),
    (reordered(r"^num_cat=0", "num_cat=5"), "cat_boundaries is not a list of numbers"),
    (reordered(r"^decision_type=2", "decision_type=1"), "a categorical split has no set of categories"),
    (reordered(r"^decision_type=2", "decision_type=64"), "decision_type is 64"),
    (reordered(r"^leaf_value=\S+", "leaf_value=1 2 3 4 5"), "the length of leaf_value"),
    (reordered(r"^is_linear=0", "is_linear=1"), "num_features is not a list of numbers"),
    (reordered(r"^shrinkage=", "shrinkage=1\nshrinkage="), "which is repeated or not known"),
    (reordered(r"^shrinkage=", "made_up=1\nshrinkage="), "which is repeated or not known"),
    (reordered(r"^max_feature_idx=2", "max_feature_idx=200"), "max_feature_idx is 200; expected 2"),
    (reordered(r"^num_class=1", "num_class=7"), "num_class is 7; expected 1"),
    (lambda text: with_objective(text, ""), "the objective is ''; expected a name"),
    (lambda text: with_objective(text, "="), "the objective is '='; expected a name"),
    (reordered(r"^feature_names=\S+", "feature_names=A B C D"), "the number of feature_names"),
    (lambda text: text.replace("tree_sizes=", "tree_sizes=1", 1), "tree_sizes does not give the place of tree 0"),
    (lambda text: text.replace("tree_sizes=", "tree_sizes=99999999999 ", 1), "tree_sizes is .* expected an integer"),
    (lambda text: re.sub("tree_sizes=.*", "tree_sizes=", text, count=1), "does not end where tree_sizes says"),
    (lambda text: text.replace("end of trees", "no end", 1), "does not end where tree_sizes says"),
    (lambda text: "", "has no header"),
    (lambda text: text[:50] + "\0" + text[50:], "has a zero byte"),
    (lambda text: text[:50] + "\r" + text[50:], "has a return"),
    (lambda text: text.replace("[boosting: gbdt]", "[boosting]", 1), r"have the line '\[boosting\]'; expected \[name: value\]"),
    (lambda text: text.replace("\nend of parameters", "\nx", 1), "have the line 'x'; expected"),
]


def with_objective(text, objective):
    line = f"objective={objective}\n"
    head = re.sub("objective=.*\n", "", text.split("\n\n", 1)[0] + "\n")
    return head + line + "\n" + text.split("\n\n", 1)[1]


@pytest.mark.parametrize(("change", "message"), LIGHTGBM)
def test_texts_of_lightgbm_are_trees(tmp_path, change, message):
    pytest.importorskip("lightgbm")
    for model, name in (
        (LightGBMRanker(n_estimators=2, num_leaves=3), "model_text_"),
        (learners.LambdaMART(n_estimators=2, num_leaves=3), "trees_"),
    ):
        fitted(model)

        def forged(header, arrays, name=name, several=name == "trees_"):
            text = header["fitted"][name]
            header["fitted"][name] = [change(text[0])] if several else change(text)

        rejected(model, tmp_path / "m", forged, message)


@pytest.mark.parametrize("objective", ["multiclass num_class:1000000", "multiclassova num_class:3", "binary num_class:9"])
def test_the_objective_of_lightgbm_has_the_number_of_outputs(tmp_path, objective):
    pytest.importorskip("lightgbm")
    model = fitted(learners.LambdaMART(n_estimators=2, num_leaves=3))

    def change(header, arrays):
        header["fitted"]["trees_"] = [with_objective(header["fitted"]["trees_"][0], objective)]

    rejected(model, tmp_path / "m", change, "does not compute 1 value")


@pytest.mark.parametrize(
    ("change_text", "message"),
    [
        (lambda text: with_objective(text, "made_up"), "Unknown objective"),
        (lambda text: text.replace("[lambda_l2: 0]", "[lambda_l2: nan]"), "Expecting value"),
    ],
)
@pytest.mark.parametrize("model", [LightGBMRanker, learners.LambdaMART])
def test_texts_that_lightgbm_itself_rejects_raise_a_value_error(tmp_path, model, change_text, message):
    pytest.importorskip("lightgbm")
    name = "model_text_" if model is LightGBMRanker else "trees_"

    def change(header, arrays):
        text = header["fitted"][name]
        header["fitted"][name] = change_text(text) if isinstance(text, str) else [change_text(text[0])]

    forge(fitted(model(n_estimators=2, num_leaves=3)), tmp_path / "m", change)
    with pytest.raises(ValueError, match=f"LightGBM cannot read {name}: {message}"):
        load_model(tmp_path / "m").predict(TRAIN.X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (attribute("grades_", {"tuple": [0, 1, 2]}), "grades_ is a tuple"),
        (replaced("grades_", lambda a: np.append(a, 9.0)), "num_class is 2; expected 3"),
        (parameter("classification", "ordinal"), "num_class is 2; expected 1"),
        (attribute("trees_", []), "trees_ has 0 texts; expected 1"),
        (attribute("best_round_", 10**15), "best_round_=1000000000000000 is not valid"),
        (parameter("n_jobs", 10**9), "n_jobs=1000000000 is not valid"),
    ],
)
def test_the_trees_of_mcrank_fit_its_grades(tmp_path, change, message):
    pytest.importorskip("lightgbm")
    rejected(fitted(learners.McRank(n_estimators=2, num_leaves=3)), tmp_path / "m", change, message)


def in_tree(name, place, value):
    def change(model):
        model["learner"]["gradient_booster"]["model"]["trees"][0][name][place] = value

    return change


def in_parameters(name, value, tree=False):
    def change(model):
        booster = model["learner"]["gradient_booster"]["model"]
        part = booster["trees"][0]["tree_param"] if tree else model["learner"]["learner_model_param"]
        part = booster["gbtree_model_param"] if name in booster["gbtree_model_param"] else part
        part[name] = value

    return change


XGBOOST = [
    (in_tree("split_indices", 0, 3), "split_indices is 3; expected 0 to 2"),
    (in_tree("split_indices", 0, -1), "split_indices is -1"),
    (in_tree("split_indices", 0, 2**40), "split_indices has a number out of range"),
    (in_tree("split_indices", 0, 10**30), "split_indices has a number out of range"),
    (in_tree("split_indices", 0, 1.5), "split_indices is not a list of integers"),
    (in_tree("left_children", 0, 99), "a child is 99"),
    (in_tree("left_children", 0, -5), "a child is -5"),
    (in_tree("left_children", 0, -1), "a node has one child"),
    (in_tree("left_children", 0, 0), "a node is the child of two nodes, or of a node below it"),
    (in_tree("left_children", 1, 0), "a node is the child of two nodes, or of a node below it"),
    (in_tree("left_children", 0, 2), "a node is the child of two nodes, or of a node below it"),
    (in_tree("parents", 1, 5), "parents contradicts the children"),
    (in_tree("split_type", 0, 1), "categories_nodes does not list the categorical splits"),
    (in_tree("default_left", 0, 7), "default_left is 7"),
    (in_tree("split_conditions", 0, 1e300), "split_conditions has a number out of range"),
    (in_tree("split_conditions", 0, "1"), "split_conditions is not a list of numbers"),
    (lambda model: model["learner"]["gradient_booster"]["model"]["trees"][0].update(id=1), "id is 1; expected 0"),
    (lambda model: model["learner"]["gradient_booster"]["model"]["trees"][1].update(id=0), "id is 0; expected 1"),
    (lambda model: model["learner"]["gradient_booster"]["model"].update(cats=[]), "no 'cats' in the model"),
    (lambda model: model["learner"].update(feature_names=["x"]), r"feature_names is \['x'\]; expected \[\]"),
    (in_parameters("num_nodes", "2000000000", tree=True), "the length of left_children"),
    (in_parameters("num_nodes", "0", tree=True), "it has no node"),
    (in_parameters("num_nodes", "-1", tree=True), "num_nodes is '-1'; expected an integer"),
    (in_parameters("num_deleted", "3", tree=True), "the number of nodes that no path reaches is 0; expected 3"),
    (in_parameters("num_feature", "100", tree=True), "num_feature is 100; expected 3"),
    (in_parameters("size_leaf_vector", "9", tree=True), "size_leaf_vector is 9"),
    (in_parameters("num_feature", "100"), "num_feature is 100; expected 3"),
    (in_parameters("num_class", "5"), "num_class is 5"),
    (in_parameters("num_target", "5"), "num_target is 5"),
    (in_parameters("base_score", "x"), "base_score is not a number"),
    (in_parameters("num_trees", "9"), "num_trees is 9; expected 2"),
    (in_parameters("num_parallel_tree", "1000000"), "num_parallel_tree is 1000000"),
    (lambda model: model["learner"]["gradient_booster"]["model"].update(tree_info=[0, 5]), "tree_info is 5"),
    (lambda model: model["learner"]["gradient_booster"]["model"].update(iteration_indptr=[0, 9]), "iteration_indptr"),
    (lambda model: model["learner"]["gradient_booster"].update(name="gblinear"), "weights is not a list"),
    (lambda model: model["learner"]["gradient_booster"].update(name="other"), "the booster is 'other'"),
    (lambda model: model["learner"]["objective"].update(name="multi:softprob"), "the objective is not one of ranking"),
    (lambda model: model.update(version=[10**9, 0, 0]), "version is"),
]


@pytest.mark.parametrize(("change", "message"), XGBOOST)
def test_texts_of_xgboost_are_trees(tmp_path, change, message):
    pytest.importorskip("xgboost")
    model = fitted(XGBoostRanker(n_estimators=2, max_depth=2))

    def forged(header, arrays):
        trees = json.loads(header["fitted"]["model_text_"])
        change(trees)
        header["fitted"]["model_text_"] = json.dumps(trees)

    rejected(model, tmp_path / "m", forged, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "repeats a name"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting"),
        ("\ud800", "surrogates"),
        ("7", "no 'learner' in it"),
    ],
)
def test_texts_that_are_not_models_of_xgboost_are_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        tree_texts.check_xgboost_text(text, 3)


@pytest.mark.parametrize(
    "parameters",
    [
        {"linear_tree": True, "min_child_samples": 1},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"boosting_type": "dart"},
        {"min_child_samples": 1000},
        {"categorical_feature": [0], "min_data_per_group": 1, "cat_smooth": 0, "min_child_samples": 1, "cat_l2": 0},
        {"num_leaves": 200, "min_child_samples": 1, "n_estimators": 20},
    ],
)
def test_every_kind_of_model_of_lightgbm_is_accepted(tmp_path, parameters):
    pytest.importorskip("lightgbm")
    X = TRAIN.X.copy()
    X[:, 0] = np.arange(X.shape[0]) % 40 * (TRAIN.y + 1)
    model = LightGBMRanker(**{"n_estimators": 3, **parameters}).fit(X, TRAIN.y, qid=TRAIN.qid)
    if "categorical_feature" in parameters:
        assert re.search("^num_cat=[1-9]", model.model_text_, re.MULTILINE)
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(X).tobytes() == model.predict(X).tobytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear"},
        {"tree_method": "exact", "gamma": 1.0},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"grow_policy": "lossguide", "max_leaves": 9},
        {"objective": "rank:pairwise", "lambdarank_unbiased": True},
        {"feature_types": ["c", "q", "q"], "enable_categorical": True, "max_cat_to_onehot": 1},
        {"min_child_weight": 1e9},
    ],
)
def test_every_kind_of_model_of_xgboost_is_accepted(tmp_path, parameters):
    pytest.importorskip("xgboost")
    X = TRAIN.X.copy()
    X[:, 0] = np.arange(X.shape[0]) % 7 * (TRAIN.y + 1)
    model = XGBoostRanker(**{"n_estimators": 3, **parameters}).fit(X, TRAIN.y, qid=TRAIN.qid)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    if "feature_types" not in parameters:  # XGBoost itself then asks for the types again
        assert loaded.predict(X).tobytes() == model.predict(X).tobytes()


def prepared():
    """Return a model with three features, two of which have indicators."""
    X = TRAIN.X.copy()
    X[::5, 1:] = np.nan
    steps = [
        preparation.Fill("mean", indicator=True),
        preparation.Log([1, 2]),
        preparation.Clip(-20, 20),
        preparation.Deviation(),
    ]
    return StructRankSVM("map", preparation=steps).fit(X, TRAIN.y, qid=TRAIN.qid)


def deviations(new):
    """Return a change of the constants of Deviation."""

    def change(header, arrays):
        number = find(find(header["fitted"], "Deviation"), "scale_")["array"]
        arrays[number] = np.ascontiguousarray(new(arrays[number]))

    return change


def changed(step, **values):
    """Return a change of the fitted attributes of a step in the header of a model file."""
    return lambda header, arrays: find(header["fitted"], step)["fitted"].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("values_", lambda a: a[:-1]), "values_ is an array of float64"),
        (replaced("values_", lambda a: a * np.nan), "values_ of Fill has numbers that no training gives"),
        (deviations(lambda a: -a), "scale_ of Deviation has numbers that no training gives"),
        (deviations(lambda a: a * 0), "scale_ of Deviation has numbers that no training gives"),
        (deviations(lambda a: a[:-1]), "scale_ is an array of float64"),
        (replaced("missing_", lambda a: a + 10), "missing_ of Fill is not within its columns"),
        (replaced("missing_", lambda a: a[:-1]), "X has 4 features, but Log is expecting 5"),
        (replaced("missing_", lambda a: a[:, None]), "missing_ is an array of int64"),
        (replaced("columns_", lambda a: a * 0), "columns_ of Log names a column twice"),
        (replaced("columns_", lambda a: a - 5), "columns_ of Log is not within its 5 columns"),
        (replaced("columns_", lambda a: a.astype(float)), "columns_ is an array of float64"),
        (changed("Log", n_features_in_=3), "X has 5 features, but Log is expecting 3"),
        (changed("Clip", n_features_in_="7"), "n_features_in_ is a str"),
        (changed("Deviation", scale_=None), "scale_ is missing"),
        (attribute("preparation_", {"tuple": []}), "preparation_ is no tuple of steps"),
        (attribute("preparation_", {"tuple": [1]}), "preparation_ is no tuple of steps"),
        (lambda header, _: header["fitted"].pop("preparation_"), "preparation_ is missing"),
        (parameter("preparation", "log"), "preparation='log' is not valid"),
    ],
)
def test_forged_steps_are_rejected(tmp_path, change, message):
    rejected(prepared(), tmp_path / "m", change, message)


@pytest.mark.parametrize("name", ["columns_", "n_features_in_"])
def test_steps_have_all_attributes(tmp_path, name):
    rejected(prepared(), tmp_path / "m", lambda header, _: find(header["fitted"], "Log")["fitted"].pop(name), name)
