"""The pages of docs/integrations run where their tools are installed; none of the tools is a dependency."""

import logging
import pathlib
import re
import runpy

import numpy as np
import pytest
import sklearn
import sklearn.model_selection

from structrank import StructRankSVM, StructRankTrees, datasets, metrics
from structrank.learners import LambdaMART, LambdaRank, McRank
from structrank.learners.trees import LightGBMRanker, XGBoostRanker

FOLDER = pathlib.Path(__file__).parent.parent / "docs" / "integrations"
NEEDED = {
    "scikit-learn": ("sklearn.callback", "rich"),
    "data-frames": ("polars", "pyarrow", "datasets"),
    "lightgbm-xgboost": ("lightgbm",),
    "pyterrier": ("pyterrier",),
    "mlflow-skops": ("skops", "mlflow"),
    "optuna": ("optuna", "lightgbm"),
    "shap": ("shap", "lightgbm"),
}


@pytest.fixture(scope="module")
def train():
    return datasets.make_ranking(n_queries=30, n_docs=6, n_features=3, noise=0.5, random_state=0).train


def test_every_page_is_listed_and_run():
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"index"}
    assert pages == set(NEEDED)
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", (FOLDER / "index.md").read_text(encoding="utf-8"))) == pages


@pytest.mark.filterwarnings("ignore:::(?!structrank)")
@pytest.mark.parametrize("page", NEEDED)
def test_the_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    for module in NEEDED[page]:
        pytest.importorskip(module)
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    level = logging.getLogger().level
    try:
        with sklearn.config_context():
            names = runpy.run_path("page.py")
    finally:
        logging.getLogger().setLevel(level)
    if page == "pyterrier":
        by_chance = metrics.evaluate(names["qrels"]["label"], np.zeros(len(names["qrels"])), names["qrels"]["qid"], "map")[
            "map"
        ]
        assert names["measured"] > by_chance
    if page == "optuna":
        states = [trial.state.name for trial in names["study"].trials]
        assert set(states) == {"COMPLETE", "PRUNED"}


# ---- Tables


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "pyarrow", "hugging face"])
@pytest.mark.parametrize("learner", [StructRankSVM("auc"), LambdaRank(max_epochs=2)], ids=lambda one: type(one).__name__)
def test_tables_of_other_libraries_are_read_with_their_names(kind, learner, train):
    library = pytest.importorskip({"polars lazy": "polars", "hugging face": "datasets"}.get(kind, kind))
    columns = dict(zip("abc", train.X.T, strict=True))
    make = {
        "pandas": lambda columns: library.DataFrame(columns),
        "polars": lambda columns: library.DataFrame(columns),
        "polars lazy": lambda columns: library.LazyFrame(columns),
        "pyarrow": lambda columns: library.table(columns),
        "hugging face": lambda columns: library.Dataset.from_dict(columns),
    }[kind]
    table, expected = make(columns), sklearn.clone(learner).fit(train.X, train.y, qid=train.qid)
    model = sklearn.clone(learner).fit(table, train.y, qid=train.qid)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(model.predict(table), expected.predict(train.X))
    assert np.array_equal(model.rank(table, qid=train.qid), expected.rank(train.X, qid=train.qid))
    with pytest.raises(ValueError, match="column 'qid'"):
        sklearn.clone(learner).fit(make({**columns, "qid": train.qid}), train.y, qid=train.qid)
    with pytest.raises(ValueError, match=r"NaN at row 1, column 0 \('a'\)"):
        model.predict(make({**columns, "a": np.where(np.arange(len(train.y)) == 1, np.nan, train.X[:, 0])}))


# ---- scikit-learn's callbacks


class Recorder:
    """A callback that notes its calls, and stops training after `last` iterations."""

    max_propagation_depth = None

    def __init__(self, last=None):
        self.last, self.iterations, self.events, self.fitted = last, 0, [], None

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None, metadata=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "iteration":
            self.iterations += 1
            return self.iterations == self.last
        if fitted_estimator is not None:
            self.fitted = fitted_estimator.predict(X), metadata["qid"]
        return False


def test_each_iteration_is_a_task_of_scikit_learns_callbacks(train):
    pytest.importorskip("sklearn.callback")
    recorder, seen = Recorder(), []
    model = StructRankSVM("auc").set_callbacks(recorder)
    model.fit(train.X, train.y, qid=train.qid, callback=seen.append)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.iterations == len(seen) == model.n_iter_
    scores, qid = recorder.fitted
    assert np.array_equal(scores, model.predict(train.X))
    assert np.array_equal(qid, train.qid)


def test_scikit_learns_monitor_scores_each_fit(train):
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring={"ndcg@3": metrics.scorer("ndcg@3")})
    with sklearn.config_context(enable_metadata_routing=True):
        model = StructRankSVM("auc").set_callbacks(monitor).fit(train.X, train.y, qid=train.qid)
    (fit,) = monitor.get_logs().data
    assert fit["ndcg@3"] == metrics.evaluate(train.y, model.predict(train.X), train.qid, "ndcg@3")["ndcg@3"]


def test_a_callback_of_scikit_learn_can_stop_training(train):
    pytest.importorskip("sklearn.callback")
    model = LambdaRank(max_epochs=20).set_callbacks(Recorder(last=3)).fit(train.X, train.y, qid=train.qid)
    assert (model.n_iter_, model.stop_reason_) == (3, "callback")


def test_callbacks_end_with_a_failed_fit_and_pass_through_a_search(train):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    with pytest.raises(ValueError, match="qid is missing"):
        StructRankSVM("auc").set_callbacks(recorder).fit(train.X, train.y)
    assert recorder.events == ["setup", "begin fit", "teardown"]
    recorder = Recorder()
    with sklearn.config_context(enable_metadata_routing=True):
        search = sklearn.model_selection.GridSearchCV(
            StructRankSVM("auc"), {"C": [0.1, 1.0]}, cv=sklearn.model_selection.GroupKFold(2)
        )
        search.set_callbacks(recorder).fit(train.X, train.y, qid=train.qid, groups=train.qid)
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1
    assert recorder.events.count("begin fit") == recorder.events.count("end fit") == 6  # the search, 4 fits, the refit
    assert recorder.iterations > 5


# ---- What other tools read


@pytest.mark.parametrize(
    "learner",
    [StructRankTrees("auc"), LambdaMART(), McRank(), LightGBMRanker(), XGBoostRanker()],
    ids=lambda one: type(one).__name__,
)
def test_feature_importances_are_shares_of_the_gain(learner, rng):
    pytest.importorskip("xgboost" if isinstance(learner, XGBoostRanker) else "lightgbm")
    X, qid = rng.standard_normal((400, 3)), np.repeat(np.arange(40), 10)
    X[:, 2] = 1.0  # cannot split
    model = learner.set_params(n_estimators=5).fit(X, (X[:, 1] > 0).astype(int), qid=qid)
    shares = model.feature_importances_
    assert shares.shape == (3,)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[2] == 0.0
    assert shares.argmax() == 1


def test_the_intercept_is_0_after_training(train):
    model = StructRankSVM("auc")
    assert not hasattr(model, "intercept_")
    assert model.fit(train.X, train.y, qid=train.qid).intercept_ == 0.0


def test_measures_are_found_in_any_case():
    found = metrics.evaluate([1, 0], [0.5, 1.0], None, ["NDCG@10", "map"])
    assert found["NDCG@10"] == found["ndcg@10"]
    assert found["MAP"] == found.get("Map") == 0.5
    assert "nDCG@10" in found
    assert "mrr" not in found
    assert found.get("mrr", 0.25) == 0.25
    with pytest.raises(KeyError, match=r"'mrr' was not evaluated; it has 'ndcg@10', 'map'"):
        found["mrr"]


def test_fits_are_logged_and_nothing_is_printed(train, caplog, capfd):
    with caplog.at_level("INFO", logger="structrank"):
        StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
        LambdaRank(max_epochs=2).fit(train.X, train.y, qid=train.qid)
    messages = [record.getMessage() for record in caplog.records]
    assert any(re.match(r"C=1 +iteration \d+ .* converged$", text) for text in messages)
    assert any(re.match(r"epoch 2 ", text) for text in messages)
    caplog.clear()
    with caplog.at_level("DEBUG", logger="structrank"):
        model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    assert [record.levelname for record in caplog.records].count("DEBUG") == model.n_iter_
    assert capfd.readouterr() == ("", "")
