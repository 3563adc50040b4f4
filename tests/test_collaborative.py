"""Tests of collaborative ranking: gradients, solvers, learning, new queries, model files, invalid arguments."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from structrank import StructRankWarning, datasets, load_model
from structrank.clicks import ClickLog, CollaborativeRanker, pair_accuracy, preference_pairs
from structrank.clicks.factorization import (
    BatchAscent,
    Priors,
    StochasticAscent,
    best_query_factors,
    group_pairs,
    log_posterior,
    margins,
    query_gradient,
    url_gradient,
)
from structrank.clicks.preferences import Preferences

PRIORS = [Priors(0.0, 1.0, 1.0), Priors(1.0, 0.5, 2.0)]


@pytest.fixture(scope="module")
def log():
    made = datasets.make_clicks(n_queries=60, n_urls=120, n_topics=4, n_sessions=900, random_state=7)
    return ClickLog.from_sessions(made)


@pytest.fixture(scope="module")
def pairs(log):
    return preference_pairs(log)


def random_problem(seed, expected=False, n_queries=5, n_urls=8, n_factors=3, n_pairs=40):
    rng = np.random.default_rng(seed)
    query = rng.integers(0, n_queries, n_pairs)
    winner = rng.integers(0, n_urls, n_pairs)
    loser = (winner + rng.integers(1, n_urls, n_pairs)) % n_urls
    prior = rng.normal(size=n_pairs) if expected else None
    grouped = group_pairs(query, winner, loser, rng.integers(1, 4, n_pairs), n_queries, prior)
    return rng.normal(size=(n_queries, n_factors)), rng.normal(size=(n_urls, n_factors)), grouped


# --- the objective ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", PRIORS)
@pytest.mark.parametrize("expected", [False, True])
def test_gradients_equal_finite_differences(priors, expected):
    Q, U, grouped = random_problem(0, expected)
    step = 1e-6
    for factors, gradient in ((Q, query_gradient(Q, U, grouped, priors)), (U, url_gradient(Q, U, grouped, priors))):
        for place in np.ndindex(factors.shape):
            kept = factors[place]
            factors[place] = kept + step
            above = log_posterior(Q, U, grouped, priors)
            factors[place] = kept - step
            below = log_posterior(Q, U, grouped, priors)
            factors[place] = kept
            assert gradient[place] == pytest.approx((above - below) / (2 * step), abs=1e-6)


def test_the_objective_is_the_papers_formula_pair_by_pair():
    Q, U, grouped = random_problem(1)
    expected = 0.0
    for i, j, k, weight in zip(grouped.query, grouped.winner, grouped.loser, grouped.weight, strict=True):
        expected += weight * np.log(1 / (1 + np.exp(-(Q[i] @ U[j] - Q[i] @ U[k]))))
    expected -= (Q**2).sum() / 2 / 0.7**2 + (U**2).sum() / 2 / 1.3**2
    assert log_posterior(Q, U, grouped, Priors(0.0, 0.7, 1.3)) == pytest.approx(expected, rel=1e-6)


def test_large_margins_do_not_overflow():
    Q, U, grouped = random_problem(2)
    for scale in (1e3, 1e150):
        Q_large = Q * scale
        assert np.isfinite(query_gradient(Q_large, U, grouped, PRIORS[0])).all()
        assert np.isfinite(url_gradient(Q_large, U, grouped, PRIORS[0])).all()
    assert log_posterior(Q * 1e3, U, grouped, PRIORS[0]) < -1000


# --- the ascents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", PRIORS)
def test_algorithm_1_with_a_small_rate_increases_the_posterior_at_every_step(priors):
    Q, U, grouped = random_problem(3)
    ascent = BatchAscent(Q, U, grouped, priors, rate=0.01)
    before = ascent.objective
    for _ in range(100):
        expected_Q = ascent.query_factors + 0.01 * query_gradient(ascent.query_factors, ascent.url_factors, grouped, priors)
        expected_U = ascent.url_factors + 0.01 * url_gradient(expected_Q, ascent.url_factors, grouped, priors)
        ascent.epoch()
        assert np.array_equal(ascent.query_factors, expected_Q)
        assert np.array_equal(ascent.url_factors, expected_U)
        assert ascent.objective > before
        before = ascent.objective
    assert ascent.rate == 0.01


def test_the_rate_is_halved_until_a_step_does_not_decrease_the_posterior():
    Q, U, grouped = random_problem(4)
    ascent = BatchAscent(Q, U, grouped, PRIORS[0], rate=1000.0)
    values = [ascent.objective]
    for _ in range(30):
        ascent.epoch()
        values.append(ascent.objective)
    assert ascent.rate < 1000.0
    assert (np.diff(values) >= 0).all()
    assert values[-1] > values[0] + 1


def test_the_batch_reaches_a_stationary_point():
    Q, U, grouped = random_problem(5)
    ascent = BatchAscent(Q, U, grouped, PRIORS[0], rate=0.05)
    for _ in range(3000):
        ascent.epoch()
    Q, U = ascent.query_factors, ascent.url_factors
    assert np.abs(query_gradient(Q, U, grouped, PRIORS[0])).max() < 1e-3
    assert np.abs(url_gradient(Q, U, grouped, PRIORS[0])).max() < 1e-3


@pytest.mark.parametrize(("solver", "passes"), [("sgd", 60), ("adam", 100)])
def test_stochastic_steps_come_close_to_the_optimum_of_the_batch(solver, passes, pairs):
    parameters = {"factors": 5, "validation_fraction": 0}
    model = CollaborativeRanker(solver=solver, max_iter=passes, **parameters).fit(pairs)
    batch = CollaborativeRanker(solver="batch", learning_rate=0.02, max_iter=400, **parameters).fit(pairs)
    grouped = group_pairs(pairs.query, pairs.winner, pairs.loser, pairs.weight, len(pairs.queries))
    at_start = log_posterior(np.eye(1, 5).repeat(60, axis=0), np.zeros((len(pairs.urls), 5)), grouped, model._priors())
    best = log_posterior(batch.query_factors_, batch.url_factors_, grouped, model._priors())
    found = log_posterior(model.query_factors_, model.url_factors_, grouped, model._priors())
    assert found > best - 0.1 * (best - at_start)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_results_are_bit_identical_for_any_number_of_threads(solver):
    # Few queries share a url, so that every thread has work; several chunks.
    made = datasets.make_clicks(n_queries=3000, n_urls=30_000, n_topics=1000, n_sessions=6000, random_state=0)
    pairs = preference_pairs(ClickLog.from_sessions(made))
    fits = [CollaborativeRanker(factors=4, solver=solver, max_iter=3, n_jobs=n_jobs).fit(pairs) for n_jobs in (1, 2, 3, 2)]
    for model in fits[1:]:
        assert np.array_equal(model.query_factors_, fits[0].query_factors_)
        assert np.array_equal(model.url_factors_, fits[0].url_factors_)
        assert [e.likelihood for e in model.history_] == [e.likelihood for e in fits[0].history_]


def test_no_two_threads_share_a_url_in_a_chunk():
    made = datasets.make_clicks(n_queries=3000, n_urls=30_000, n_topics=1000, n_sessions=6000, random_state=1)
    pairs = preference_pairs(ClickLog.from_sessions(made))
    grouped = group_pairs(pairs.query, pairs.winner, pairs.loser, pairs.weight, len(pairs.queries))
    Q, U = np.ones((len(pairs.queries), 2), np.float32), np.zeros((len(pairs.urls), 2), np.float32)
    ascent = StochasticAscent(Q, U, grouped, PRIORS[0], 0.1, np.random.default_rng(0), n_threads=3)
    visits = np.random.default_rng(1).permutation(ascent._visits)
    starts = np.append(np.arange(0, visits.size, 500), visits.size)
    thread = ascent._assign_threads(visits, starts)
    assert np.bincount(thread, minlength=3).min() > 0.2 * visits.size
    for first, end in pairwise(starts):
        met = {}
        for query, number in zip(visits[first:end], thread[first:end], strict=True):
            own = slice(grouped.indptr[query], grouped.indptr[query + 1])
            for url in (*grouped.winner[own], *grouped.loser[own]):
                assert met.setdefault(url, number) == number


# --- what is learned --------------------------------------------------------------------------------------------------


def test_queries_learn_from_similar_queries():
    # Two kinds of queries rank the same urls in opposite order; each query reveals a part of its order.
    rng = np.random.default_rng(0)
    sessions, held_out = [], []
    for query in range(80):
        order = list(range(12)) if query % 2 else list(range(12))[::-1]
        for _ in range(12):
            a, b = sorted(rng.choice(12, 2, replace=False), key=order.index)
            sessions.append((query, [b, a], [1]))
        a, b = sorted(rng.choice(12, 2, replace=False), key=order.index)
        held_out.append((query, [b, a], [1]))
    pairs = preference_pairs(sessions)
    model = CollaborativeRanker(factors=4, query_mean=0.0, query_sd=1.0, url_sd=1.0).fit(pairs)
    assert pair_accuracy(preference_pairs(held_out), model) > 0.85


def test_history_has_the_likelihood_and_training_stops_early(pairs):
    model = CollaborativeRanker(factors=20, query_mean=0.0, query_sd=10.0, url_sd=10.0, max_iter=200).fit(pairs)
    assert model.stop_reason_ == "converged"
    assert model.n_iter_ == len(model.history_) < 200
    held_out = [epoch.held_out for epoch in model.history_]
    assert int(np.argmax(held_out)) == len(held_out) - 1 - model.patience
    assert model.history_[-1].likelihood > model.history_[0].likelihood
    capped = CollaborativeRanker(factors=2, max_iter=2, validation_fraction=0).fit(pairs)
    assert capped.stop_reason_ == "max_iter"
    assert np.isnan(capped.history_[0].held_out)


def test_validation_pairs_are_accepted(log):
    known, rest = log.split(0.2)
    model = CollaborativeRanker(factors=3, max_iter=5).fit(preference_pairs(known), validation=preference_pairs(rest))
    assert np.isfinite(model.history_[0].held_out)
    other = preference_pairs([("q", ["a", "b"], [1])])
    with pytest.raises(ValueError, match="validation does not share the ids of pairs"):
        CollaborativeRanker().fit(preference_pairs(known), validation=other)


def test_a_warm_start_continues_from_the_last_fit(pairs):
    model = CollaborativeRanker(factors=5, solver="batch", learning_rate=0.02, max_iter=30, warm_start=True)
    model.set_params(validation_fraction=0)
    first = model.fit(pairs).history_[-1].likelihood
    second = model.fit(pairs).history_
    assert second[0].likelihood > first - 1e-4
    assert second[-1].likelihood > first
    with pytest.raises(ValueError, match="the last fit had 5 factors, and factors=6"):
        model.set_params(factors=6).fit(pairs)


def test_the_batch_solver_does_not_depend_on_the_order_of_pairs(pairs):
    shuffled = np.random.default_rng(0).permutation(len(pairs))
    columns = (pairs.query, pairs.winner, pairs.loser, pairs.weight)
    other = Preferences(pairs.queries, pairs.urls, *(column[shuffled] for column in columns))
    fits = [
        CollaborativeRanker(factors=3, solver="batch", max_iter=5, validation_fraction=0).fit(each) for each in (pairs, other)
    ]
    assert fits[0].query_factors_ == pytest.approx(fits[1].query_factors_, abs=1e-5)


# --- new queries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priors", PRIORS)
def test_newtons_method_agrees_with_a_general_solver(priors):
    rng = np.random.default_rng(6)
    differences, weight = rng.normal(size=(15, 4)), rng.integers(1, 5, 15).astype(float)

    def cost(q):
        deviation = priors.centred(q)
        return weight @ np.logaddexp(0, -(differences @ q)) + deviation @ deviation / (2 * priors.query_sd**2)

    expected = minimize(cost, np.zeros(4), tol=1e-12).x
    assert best_query_factors(differences, weight, priors) == pytest.approx(expected, abs=1e-5)
    separable = best_query_factors(np.full((3, 2), 1e4), np.full(3, 1e6), priors)
    assert np.isfinite(separable).all()


def test_a_folded_in_query_has_nearly_the_factors_of_training(log):
    pairs = preference_pairs(log)
    model = CollaborativeRanker(factors=4, solver="batch", learning_rate=0.02, max_iter=600, validation_fraction=0).fit(pairs)
    number = int(np.bincount(pairs.query).argmax())
    name = log.queries.values[number]
    trained = model.query_factors_[number].copy()
    model.query_factors_[number] = 0
    model.fold_in(pairs.subset(pairs.query == number))
    assert model.predict([name] * 3, log.urls.values[:3]).shape == (3,)
    cosine = trained @ model.query_factors_[number] / np.linalg.norm(trained) / np.linalg.norm(model.query_factors_[number])
    assert cosine > 0.99


def test_fold_in_adds_queries_and_changes_no_other_factors(pairs):
    model = CollaborativeRanker(factors=3, max_iter=5).fit(pairs)
    before, urls = model.query_factors_.copy(), model.url_factors_.copy()
    shown = pairs.urls.values[:3].tolist()
    model.fold_in(preference_pairs([("new", shown, [2]), ("newer", shown, [1])]))
    assert np.array_equal(model.query_factors_[: before.shape[0]], before)
    assert np.array_equal(model.url_factors_, urls)
    scores = model.predict(["new"] * 3, shown)
    at_mean = urls[:3, 0]  # scores of a query without pairs
    assert np.logaddexp(0, scores[:2] - scores[2]).sum() < np.logaddexp(0, at_mean[:2] - at_mean[2]).sum() - 1e-3
    assert len(model.queries_) == before.shape[0] + 2
    with pytest.warns(StructRankWarning, match="1 of 1 pairs have a url that the model does not have"):
        model.fold_in(preference_pairs([("newest", ["x", "y"], [1])]))


# --- predictions, files, invalid arguments ----------------------------------------------------------------------------


def test_scores_are_products_of_factors_and_unknown_ids_are_counted(pairs):
    model = CollaborativeRanker(factors=3, max_iter=5).fit(pairs)
    queries, urls = pairs.queries.values[:4], pairs.urls.values[:4]
    assert model.predict(queries, urls) == pytest.approx((model.query_factors_[:4] * model.url_factors_[:4]).sum(axis=1))
    with pytest.warns(StructRankWarning, match=r"2 of 3 entries .*\(1 queries, 1 urls\); their scores are nan"):
        scores = model.predict([queries[0], -5, queries[1]], [urls[0], urls[1], "none"])
    assert np.isnan(scores).tolist() == [False, True, True]
    assert model.predict([], []).shape == (0,)
    with pytest.raises(ValueError, match="urls has 1 entries but queries has 2"):
        model.predict(queries[:2], urls[:1])


def test_urls_without_pairs_score_zero(pairs):
    query = pairs.query[0]
    model = CollaborativeRanker(factors=3, max_iter=3, validation_fraction=0).fit(pairs.subset(pairs.query == query))
    unused = np.setdiff1d(np.arange(len(pairs.urls)), np.append(model.url_factors_.any(axis=1).nonzero()[0], -1))
    assert unused.size
    assert not model.predict(pairs.queries.values[[query]], pairs.urls.values[unused[:1]]).any()


@pytest.mark.parametrize("name", [str, int])
def test_a_loaded_model_predicts_the_same(name, tmp_path):
    sessions = [(name(q), [name(u) for u in range(5)], [(q + 3) % 5]) for q in range(9)]
    log = ClickLog.from_sessions(sessions)
    model = CollaborativeRanker(factors=2, max_iter=4).fit(preference_pairs(log))
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    queries, urls = log.queries.values[log.query], log.urls.values[log.shown[::5]]
    assert loaded.predict(queries, urls).tobytes() == model.predict(queries, urls).tobytes()
    assert list(loaded.history_) == list(model.history_)
    assert loaded.get_params() == model.get_params()
    loaded.fold_in(preference_pairs([(name(77), [name(0), name(1)], [1])]))


def test_ids_of_mixed_types_can_be_saved_and_unsupported_types_are_named(tmp_path):
    model = CollaborativeRanker(factors=2, max_iter=2).fit(preference_pairs([(("a", 1), ["u", 7], [1])]))
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict([("a", 1)], [7]) == model.predict([("a", 1)], [7])
    model = CollaborativeRanker(factors=2, max_iter=2).fit(preference_pairs([(frozenset("a"), ["u", "v"], [1])]))
    with pytest.raises(ValueError, match="an object of class frozenset, which a model file cannot hold"):
        model.save(tmp_path / "n")
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"factors": 0}, "factors=0 is not valid"),
        ({"solver": "lbfgs"}, "solver='lbfgs' is not known; choose one of: 'sgd', 'adam', 'batch'"),
        ({"learning_rate": 0}, "learning_rate=0 is not valid"),
        ({"query_mean": "x"}, "query_mean='x' is not valid"),
        ({"query_sd": -1.0}, "query_sd=-1.0 is not valid"),
        ({"query_sd": 1e-300}, "query_sd=1e-300 is not valid: expected a number of at least 1e-09"),
        ({"url_sd": 1e300}, r"url_sd=1e\+300 is not valid: .* at most 1000000000.0"),
        (
            {"learning_rate": 1e30, "solver": "adam"},
            r"learning_rate=1e\+30 or query_mean=1 is too large: the factors overflowed",
        ),
        ({"url_sd": float("nan")}, "url_sd=nan is not valid"),
        ({"max_iter": 1.5}, "max_iter=1.5 is not valid"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0 is not valid"),
        ({"patience": 0}, "patience=0 is not valid"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"random_state": None}, "random_state=None is not valid"),
    ],
)
def test_invalid_parameters_are_rejected(parameters, message, pairs):
    with pytest.raises(ValueError, match=message):
        CollaborativeRanker(**parameters).fit(pairs)


def test_anything_but_pairs_is_rejected(log):
    with pytest.raises(ValueError, match="pairs is a ClickLog; expected Preferences"):
        CollaborativeRanker().fit(log)
    with pytest.raises(ValueError, match="pairs has no pairs to learn from"):
        CollaborativeRanker().fit(preference_pairs([("q", ["a", "b"], [0])]))


def test_margins_include_the_expected_margins():
    Q, U, grouped = random_problem(8, expected=True)
    plain = group_pairs(grouped.query, grouped.winner, grouped.loser, grouped.weight, Q.shape[0])
    assert margins(Q, U, grouped) == pytest.approx(margins(Q, U, plain) + grouped.expected)
