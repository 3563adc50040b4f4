"""Columns of different scale: noted where they hurt, and of no consequence with scale="std"."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from structrank import StructRankSVM, StructRankWarning, load_model
from structrank.criteria import AUC
from structrank.datasets import Dataset, cut_shards
from structrank.training import checkpoint, run
from structrank.training.data import RankingData
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.scaling import column_ratio, find_large_offsets, sample_columns
from structrank.training.structured_loss import StructuredLoss

FACTORS = 2.0 ** np.array([0, 13, 0, -13, 2, 0])  # powers of 2 change no bit of a mantissa, so fits take the same path


def plain_variances(X, y, qid, query_weights=None):
    """Mean over the queries with relevant and irrelevant documents of the variance of each column."""
    variances, weights = [], []
    for number, query in enumerate(dict.fromkeys(qid.tolist())):
        rows = qid == query
        if 0 < (y[rows] >= 1).sum() < rows.sum():
            variances.append(X[rows].var(axis=0))
            weights.append(1.0 if query_weights is None else query_weights[number])
    return np.average(variances, axis=0, weights=weights)


FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.int64),
    "sparse": scipy.sparse.csr_array,
    "sparse float32": lambda X: scipy.sparse.csr_matrix(X, dtype=np.float32),
    "all stored": lambda X: scipy.sparse.csr_array((X.ravel(), np.tile(np.arange(4), len(X)), np.arange(0, X.size + 1, 4))),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("in_order", [True, False])
def test_variances_within_queries_are_those_of_numpy(rng, form, in_order):
    qid = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    qid = qid if in_order else rng.permutation(qid)
    X = (rng.integers(-3, 4, (qid.size, 4)) * rng.integers(0, 2, (qid.size, 4))).astype(float)
    X[:, 0] += 1e5  # which must not cost accuracy
    X[:, 3] = 7.0 * (1 + qid % 3)
    y, weights = rng.integers(0, 2, qid.size), rng.integers(1, 4, 40).astype(float)
    for data, given in (
        ((form(X), y, qid, weights[qid]), weights[list(dict.fromkeys(qid.tolist()))]),
        ((form(X), y, qid), None),
    ):
        found = Risk(InProcess([RankingData(*data)]), StructuredLoss.of([AUC()])).variances()
        assert found == pytest.approx(plain_variances(X, y, qid, given), rel=1e-12)
        assert found[3] == 0.0


def fitted(X, train, **settings):
    return StructRankSVM(**{"criterion": "map", "C": 1.0, "scale": "std", **settings}).fit(X, train.y, qid=train.qid)


SETTINGS = [
    {},
    {"criterion": "ndcg", "formulation": "n-slack"},
    {"criterion": ["map", "mrr"], "C": [1.0, 2.0]},
    {"criterion": "auc", "relevant_from": None, "query_weight": "pairs"},
    {"criterion": "ndcg", "bound": "ramp"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_multiplied_columns_give_the_same_ranking_and_the_inverse_weights(fold, settings, form):
    train, test = fold.train, fold.test
    plain, multiplied = fitted(form(train.X), train, **settings), fitted(form(train.X * FACTORS), train, **settings)
    assert np.array_equal(multiplied.coef_ * FACTORS, plain.coef_)
    assert np.array_equal(multiplied.scale_, plain.scale_ * FACTORS)
    ranks = [model.rank(X, qid=test.qid) for model, X in ((plain, test.X), (multiplied, test.X * FACTORS))]
    assert np.array_equal(*ranks)
    assert multiplied.notes_ == plain.notes_
    with pytest.warns(StructRankWarning, match="differ in scale"):
        unscaled = fitted(train.X * FACTORS, train, **settings, scale=None)
    assert not np.array_equal(unscaled.rank(test.X * FACTORS, qid=test.qid), ranks[0]), "the factors matter without scale"


def test_it_is_the_problem_of_columns_divided_by_their_deviation(train, assert_same_optimum):
    model = fitted(train.X, train, tol=1e-6)
    assert model.scale_ == pytest.approx(np.sqrt(plain_variances(train.X, train.y, train.qid)))
    by_hand = fitted(train.X / model.scale_, train, tol=1e-6, scale=None)
    assert by_hand.scale_ is None
    assert_same_optimum(model, by_hand)
    penalty = 0.5 * np.sum((model.scale_ * model.coef_) ** 2)
    assert model.certificate_.primal == pytest.approx(penalty + model.health_.mean_slack)


def test_a_column_of_small_values_is_learned_only_with_scaling(rng):
    qid = np.repeat(np.arange(100), 10)
    X = rng.standard_normal((qid.size, 6))
    data = Dataset(X, (X[:, 3] + 0.3 * rng.standard_normal(qid.size) > 0.8).astype(int), qid)
    with pytest.warns(StructRankWarning, match="differ in scale"):
        unscaled = fitted(X * FACTORS, data, criterion="auc", scale=None)
    plain = fitted(X, data, criterion="auc", scale=None).score(X, data.y, qid=qid)
    assert unscaled.score(X * FACTORS, data.y, qid=qid) < 0.6 < 0.95 < plain
    assert fitted(X * FACTORS, data, criterion="auc").score(X * FACTORS, data.y, qid=qid) == pytest.approx(plain, abs=0.01)


def test_a_path_has_the_models_of_single_fits(train, assert_same_optimum):
    models = StructRankSVM("map", scale="std", tol=1e-6).fit_path(train.X * FACTORS, train.y, qid=train.qid, Cs=[0.1, 10.0])
    for model in models:
        alone = fitted(train.X * FACTORS, train, C=model.C, tol=1e-6)
        assert np.array_equal(model.scale_, alone.scale_)
        assert_same_optimum(model, alone)


def test_threads_change_no_bit(rng):
    qid = np.repeat(np.arange(2000), 12)
    X = rng.standard_normal((qid.size, 60)) * 10.0 ** rng.integers(-3, 4, 60)  # several chunks
    y = (X[:, 0] / X[:, 0].std() + rng.standard_normal(qid.size) > 1).astype(int)
    models = [StructRankSVM("auc", scale="std", n_jobs=n_jobs).fit(X, y, qid=qid) for n_jobs in (1, 3)]
    assert np.array_equal(models[0].scale_, models[1].scale_)
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert models[0].health_ == models[1].health_


def test_shards_are_scaled_as_one(train, assert_same_optimum):
    whole = fitted(train.X * FACTORS, train, tol=1e-6)
    shards = cut_shards(train.X * FACTORS, train.y, qid=train.qid, docs_per_shard=80)
    assert len(shards) > 3
    model = StructRankSVM("map", scale="std", tol=1e-6).fit(shards)
    assert model.scale_ == pytest.approx(whole.scale_, rel=1e-12)
    assert_same_optimum(model, whole)


def test_a_killed_run_resumes_to_the_same_bits(train, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    model = StructRankSVM("map", C=100.0, tol=1e-6, scale="std")
    rows = {"X": train.X * FACTORS, "y": train.y, "qid": train.qid}
    whole = model.fit(**rows)
    coef, numbers = whole.coef_, itertools.count()

    class Killed(BaseException):
        pass

    def kill(_):
        if next(numbers) == 3:
            raise Killed

    with pytest.raises(Killed):
        model.fit(**rows, checkpoint=tmp_path, callback=kill)
    assert np.array_equal(model.fit(**rows, checkpoint=tmp_path).coef_, coef)
    with pytest.raises(ValueError, match=r"checkpoint of another run: its scale is \"'std'\", here it is 'None'"):
        model.set_params(scale=None).fit(**rows, checkpoint=tmp_path)


def test_a_warm_start_takes_the_weights_of_unscaled_columns(train, monkeypatch):
    model = fitted(train.X * FACTORS, train, warm_start=True)
    coef, starts = model.coef_, []
    run_before = run.Training.run
    monkeypatch.setattr(
        run.Training, "run", lambda self, C, callback, start: starts.append(start) or run_before(self, C, callback, start)
    )
    model.fit(train.X * FACTORS, train.y, qid=train.qid)
    assert np.array_equal(starts[0], coef * model.scale_)
    assert model.n_iter_ <= 2


def test_files_and_exports_carry_the_scale_along(train, tmp_path):
    X = train.X * FACTORS
    model = fitted(X, train)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.scale_, model.scale_)
    assert loaded.health_ == model.health_
    assert model.to_sklearn().predict(X) == pytest.approx(model.predict(X), rel=1e-12)
    weights = model.to_solr("m", "store", shift=0.0)["params"]["weights"]
    assert X @ np.array(list(weights.values())) == pytest.approx(model.predict(X), rel=1e-12)


# ---- The note


def test_columns_far_apart_are_noted_by_name(train):
    frame = pd.DataFrame(train.X * FACTORS, columns=list("abcdef"))
    text = (
        r"Columns of X differ in scale by a factor of \de\+0[78]\. Within queries, column 'b' has .* column 'd' .*scale='std'"
    )
    with pytest.warns(StructRankWarning, match=text):
        model = fitted(frame, train, scale=None)
    assert 1e7 < model.health_.column_ratio < 1e9
    assert len(model.notes_) == 1
    with pytest.warns(StructRankWarning, match="column 1 has .* column 3 of"):
        fitted(train.X * FACTORS, train, scale=None)


def test_no_note_on_columns_that_are_alike_constant_or_rounding_errors(train, rng):
    constant, noise = np.full(len(train.y), 1e9), 0.1 * (1 + np.finfo(float).eps * rng.integers(-2, 3, len(train.y)))
    X = np.column_stack([train.X * [1, 10, 1, 0.1, 1, 1], constant, noise])
    model = fitted(X, train, scale=None)
    assert model.notes_ == ()
    assert 50 < model.health_.column_ratio < 300
    assert fitted(X, train).scale_[-2:].tolist() == [1.0, 1.0]


def test_no_note_on_rare_words(rng):
    qid = np.repeat(np.arange(300), 20)
    X = scipy.sparse.random(qid.size, 400, density=0.001, random_state=rng, format="csr", data_rvs=lambda n: np.ones(n))
    X = scipy.sparse.hstack([rng.standard_normal((qid.size, 1)), X]).tocsr()
    y = (X[:, [0]].toarray().ravel() + rng.standard_normal(qid.size) > 1).astype(int)
    assert StructRankSVM("auc").fit(X, y, qid=qid).notes_ == ()


def test_the_sample_is_small_and_sees_every_column(rng):
    seen = []

    class Watched(np.ndarray):
        def __getitem__(self, rows):
            seen.append(len(rows))
            return np.asarray(super().__getitem__(rows))

    X = rng.standard_normal((50_000, 3)) * [1.0, 1e3, 1e-3]
    for starts in (np.arange(0, 50_001, 10), np.array([0, 50_000])):
        found = np.sqrt(sample_columns(X.view(Watched), np.empty(0, dtype=np.int64), starts)[0])
        assert found == pytest.approx([1.0, 1e3, 1e-3], rel=0.5)
    assert max(seen) <= 2000
    assert column_ratio(np.zeros(3)) == 1.0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("in_order", [True, False])
def test_an_offset_is_a_large_value_that_all_documents_of_a_query_share(form, in_order, rng):
    starts = np.arange(0, 6001, 20)
    X = np.rint(100 * rng.standard_normal((6000, 4)))
    X[:, 1] += 1e7
    X[2000:2020, 2] += 1e7  # one query, which the sample misses
    X[:, 3] = np.where(np.arange(6000) % 20 == 0, 1e7, 0.0)  # one document a query
    rows = np.empty(0, dtype=np.int64) if in_order else rng.permutation(6000)
    if not in_order:
        X[rows] = X.copy()
    X = form(X)
    columns = find_large_offsets(X, rows, starts, *sample_columns(X, rows, starts))
    assert columns.tolist() == [1, 2]


def test_a_column_is_suspected_by_a_sample_and_cleared_by_all_documents():
    X = np.zeros((40_000, 2))
    X[:, 0] = np.arange(40_000) % 5
    X[:, 1] = 1.0 + 1e-5 * X[:, 0]
    X[1::400, 1] = 4e2  # of the 400 documents of a query, the sample has those that are multiples of 21
    starts, rows = np.arange(0, 40_001, 400), np.empty(0, dtype=np.int64)
    variances, suspected = sample_columns(X, rows, starts)
    assert suspected.tolist() == [False, True]
    assert find_large_offsets(X, rows, starts, variances, suspected).size == 0


# ---- Errors


def test_wrong_values_are_named_as_without_scaling(train):
    X = train.X.copy()
    X[17, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 17, column 2"):
        fitted(X, train)
    with pytest.raises(ValueError, match="scale of X is too large"):
        fitted(train.X * 1e200, train)
    with pytest.raises(ValueError, match=r"scale='minmax' is not known; choose one of: 'std'\."):
        fitted(train.X, train, scale="minmax")
