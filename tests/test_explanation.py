"""Explanations: exact contributions of features, as numbers, as a frame and as a plot."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankSVM
from structrank.learners import RankNet
from structrank.models.explanation import Explanation, ExplanationDisplay, explain

NAMES = ["bm25", "title", "age", "clicks", "length", "rank"]


@pytest.fixture(scope="module")
def model(train):
    return StructRankSVM("map", C=10.0).fit(pd.DataFrame(train.X, columns=NAMES), train.y, qid=train.qid)


@pytest.fixture
def documents(fold):
    return pd.DataFrame(fold.test.X[:8], columns=NAMES)


@pytest.fixture
def pictures():
    yield
    plt.close("all")


@pytest.mark.parametrize("container", [pd.DataFrame, np.asarray, scipy.sparse.csr_matrix, lambda X: X.to_numpy().tolist()])
def test_contributions_of_a_document_add_up_to_its_score(container, model, documents):
    found = model.explain(container(documents))
    expected = model.predict(documents)
    assert found.names == tuple(NAMES)
    assert found.scores == pytest.approx(expected, abs=1e-12)
    assert found.contributions == pytest.approx(model.coef_ * documents.to_numpy(), abs=1e-15)
    assert found.ranks.tolist() == model.rank(documents, qid=0).tolist()


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(feature_range=(-1, 2))])
def test_contributions_include_the_scaler_of_a_pipeline(scaler, train, documents):
    X = pd.DataFrame(train.X * 50.0 + 9.0, columns=NAMES)
    pipeline = make_pipeline(scaler, StructRankSVM("auc")).fit(X, train.y, structranksvm__qid=train.qid)
    found = explain(pipeline, documents)
    assert found.names == tuple(NAMES)
    assert found.scores == pytest.approx(pipeline.predict(documents), abs=1e-10)
    assert np.array_equal(found.values, documents.to_numpy())  # before scaling
    same = pipeline[-1].explain(documents, scaler=pipeline[0])
    assert np.array_equal(same.contributions, found.contributions)


def test_contributions_to_a_pair_equal_the_effect_of_exchanging_each_feature(model, documents):
    why = model.explain(documents, pair=(2, 5))
    rows = documents.to_numpy()
    for place, name in enumerate(NAMES):
        exchanged = rows[2].copy()
        exchanged[place] = rows[5][place]
        lost = model.predict(pd.DataFrame([rows[2], exchanged], columns=NAMES))
        assert why.to_frame().loc[name, "contribution"] == pytest.approx(lost[0] - lost[1], abs=1e-12)
    scores = model.predict(documents)
    assert why.difference == pytest.approx(scores[2] - scores[5], abs=1e-12)
    assert np.array_equal(model.explain(documents, pair=(5, 2)).contributions, -why.contributions)


def test_frames_are_sorted_by_rank_or_by_contribution(model, documents):
    frame = model.explain(documents).to_frame()
    assert list(frame.columns) == ["rank", "score", *NAMES]  # a feature may be called rank, too
    assert frame.iloc[:, 0].tolist() == list(range(1, 9))
    assert frame["score"].is_monotonic_decreasing
    expected = (model.coef_ * documents.to_numpy())[np.argsort(-model.predict(documents))]
    assert frame.iloc[:, 2:].to_numpy() == pytest.approx(expected, abs=1e-15)
    assert frame.index.tolist() == np.argsort(-model.predict(documents)).tolist()
    pair = model.explain(documents, pair=(0, 1)).to_frame()
    assert pair["contribution"].abs().is_monotonic_decreasing
    assert pair["above"].to_dict() == documents.iloc[0].to_dict()
    assert pair["below"].to_dict() == documents.iloc[1].to_dict()


def test_the_repr_of_a_pair_names_the_document_above():
    whole = Explanation(("a", "b"), np.zeros((3, 2)), np.array([[1.0, 0.5], [2.0, 0.0], [2.0, 0.0]]))
    assert repr(whole.pair(1, 0)) == "Document 1 is above document 0 by 0.5: a +1, b -0.5."
    assert repr(whole.pair(0, 1)) == "Document 0 is below document 1 by 0.5: a -1, b +0.5."
    assert repr(whole.pair(1, 2)) == "Documents 1 and 2 are tied: no feature differs."
    many = Explanation(tuple("abcdefg"), np.zeros((2, 7)), np.array([np.arange(7.0), np.zeros(7)]))
    assert repr(many.pair(0, 1)) == "Document 0 is above document 1 by 21: g +6, f +5, e +4, d +3, c +2, and 1 more."


@pytest.mark.usefixtures("pictures")
def test_the_bars_of_a_pair_add_up_to_the_difference(model, documents):
    why = model.explain(documents, pair=(2, 5))
    display = why.plot(n_features=3)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert display.shown_ == [*why.to_frame().index[:3], "3 others"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.shown_
    assert widths[:3] == pytest.approx(why.to_frame()["contribution"].tolist()[:3])
    assert sum(widths) == pytest.approx(why.difference)
    _, ax = plt.subplots()
    assert ExplanationDisplay(why).plot(ax=ax).ax_ is ax
    assert len(ax.patches) == 6


@pytest.mark.usefixtures("pictures")
def test_the_colours_of_a_heat_map_span_the_contributions_of_single_features():
    added = np.zeros((2, 12))
    added[0] = [2.0, *np.full(11, 1.0)]
    whole = Explanation(tuple("abcdefghijkl"), np.zeros((2, 12)), added)
    for n_features, highest, extend in ((1, 1.0, "both"), (12, 1.0, "neither")):
        image = whole.plot(n_features=n_features).ax_.images[0]
        assert image.get_clim() == (-highest, highest)
        assert image.colorbar.extend == extend


@pytest.mark.usefixtures("pictures")
def test_the_heat_map_shows_documents_by_rank_relative_to_their_mean(model, documents):
    found = model.explain(documents)
    display = ExplanationDisplay.from_estimator(model, documents, n_features=2)
    shown = np.asarray(display.ax_.images[0].get_array())
    order = np.argsort(-found.scores)
    places = [NAMES.index(name) for name in display.shown_[:2]]
    apart = found.contributions - found.contributions.mean(axis=0)
    assert display.shown_[2:] == ["4 others"]
    assert shown[:, :2] == pytest.approx(apart[order][:, places])
    assert shown.sum(axis=1) == pytest.approx((found.scores - found.scores.mean())[order])
    deviations = found.contributions.std(axis=0)
    assert sorted(places) == sorted(np.argsort(-deviations)[:2].tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": (0, 8)}, "below=8 is not valid: X has 8 rows"),
        ({"pair": (-1, 0)}, "above=-1 is not valid"),
        ({"pair": (0, 1.5)}, "below=1.5 is not valid"),
        ({"pair": 3}, "pair=3 is not valid"),
        ({"pair": (1, 2, 3)}, r"pair=\(1, 2, 3\) is not valid"),
        ({"feature_names": ["one"]}, "feature_names has 1 entries"),
    ],
)
def test_invalid_arguments_are_rejected(options, message, model, documents):
    with pytest.raises(ValueError, match=message):
        model.explain(documents, **options)


def test_invalid_documents_and_models_are_rejected(model, documents):
    with pytest.raises(ValueError, match="feature names should match"):
        model.explain(documents[["bm25", "age"]])
    with pytest.raises(ValueError, match="X has 2 features, but StructRankSVM is expecting 6"):
        model.explain(documents[["bm25", "age"]].to_numpy())
    missing = documents.copy()
    missing.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 1"):
        model.explain(missing)
    with pytest.raises(ValueError, match="not fitted"):
        StructRankSVM().explain(documents)
    network = RankNet(hidden_units=1)
    network.weights_, network.n_features_in_ = np.ones(6 + 2), 6
    with pytest.raises(ValueError, match="hidden_units=1; expected a linear model"):
        explain(network, documents)
    with pytest.raises(ValueError, match="n_features=0 is not valid"):
        model.explain(documents).plot(n_features=0)


def test_columns_must_be_those_of_training_and_in_their_order(train):
    names = [f"f{number}" for number in range(train.X.shape[1])]
    frame = pd.DataFrame(train.X, columns=names)
    reversed_columns = frame[names[::-1]]
    plain = StructRankSVM("auc").fit(frame, train.y, qid=train.qid)
    piped = make_pipeline(StandardScaler().set_output(transform="pandas"), StructRankSVM("auc"))
    piped = piped.fit(frame, train.y, structranksvm__qid=train.qid)
    for model in (plain, piped):
        np.testing.assert_allclose(explain(model, frame).scores, model.predict(frame))
        with pytest.raises(ValueError, match="feature names should match"):
            explain(model, reversed_columns)
