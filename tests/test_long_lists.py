"""Lists of very many documents: what takes too much time or memory is refused before any work, with the reason."""

import numpy as np
import pytest

from structrank import clicks, learners, most_violated, train_for
from structrank.learners import lambda_gradients
from structrank.learners.cross_entropy import equally_weighted_pairs, mean_cross_entropy
from structrank.learners.trees import LightGBMRanker
from structrank.selection import polish

N = 300_000


@pytest.fixture(scope="module")
def half():
    """One feature, and labels of which half are relevant."""
    y = (np.arange(N) % 2).astype(float)
    return np.random.default_rng(0).normal(size=(N, 1)) + y[:, None], y


@pytest.mark.parametrize(
    "learner", [learners.RankNet(max_epochs=1), learners.LambdaRank("map"), learners.SPSARanker("cross-entropy")]
)
def test_learners_from_all_pairs_refuse_too_many_pairs(learner, half):
    X, y = half
    with pytest.raises(ValueError, match=r"^a query has 22,500,000,000 pairs of documents of different labels.*a cutoff"):
        learner.fit(X, y, qid=0)


def test_few_pairs_of_a_long_list_take_the_time_of_one_pass(half):
    scores, y = half[0][:, 0], np.zeros(N)
    y[::100_000] = 1.0
    plan = equally_weighted_pairs(y, np.array([0, N]), np.ones(1))  # would take N * N steps, minutes, for N - 3 of no pair
    mean = np.mean([np.log1p(np.exp(scores[y == 0] - one)).mean() for one in scores[y == 1]])
    assert mean_cross_entropy(scores, plan) == pytest.approx(mean)
    assert abs(lambda_gradients(scores, y, measure="map").sum()) < 1e-9
    assert lambda_gradients(scores, half[1], measure="ndcg@10").shape == (N,)


def test_permutations_of_many_documents_take_about_the_time_of_sorting_and_too_many_ranks_are_refused(half):
    scores, y = half[0][:, 0], half[1]
    found = most_violated(scores, y, criterion="dorm")  # of a lattice of 22,500,000,000 pairs
    assert sorted(found.ranking) == list(range(N))
    decay, n_relevant = 1.0 / np.sqrt(1.0 + np.arange(N)), int(y.sum())
    ideal = scores[y == 1].sum() * decay[:n_relevant].mean() + scores[y == 0].sum() * decay[n_relevant:].mean()
    assert found.value == pytest.approx(decay @ scores[found.ranking] - ideal + found.loss)
    assert found.value >= decay @ np.sort(scores)[::-1] - ideal  # of the ranking by score, without its loss
    assert most_violated(scores, y, criterion="dorm", decay="sqrt@30").value > 0
    with pytest.raises(ValueError, match="needs an assignment of 300,000 documents to 300,000 ranks; at most"):
        most_violated(scores, y + (scores > 0), criterion="dorm", relevant_from=None)


def test_lightgbm_names_its_limit_before_it_prints(half, capfd):
    pytest.importorskip("lightgbm")
    with pytest.raises(ValueError, match=r"^a query has 300,000 documents; LightGBM supports 10,000. Use XGBoostRanker"):
        LightGBMRanker().fit(*half, qid=0)
    assert capfd.readouterr() == ("", "")


def test_train_for_does_not_polish_on_too_many_pairs(fold, monkeypatch):
    monkeypatch.setattr(polish, "_MOST_PAIRS", 15)
    model = train_for("map", fold.train, Cs=[1.0])
    assert not hasattr(model, "polish_")
    assert model.notes_[-1].startswith("Not polished: a query has 16 pairs of relevant and irrelevant documents, too many")
    with pytest.raises(ValueError, match=r"^a query has 16 pairs .*; at most 15 are supported"):
        polish.polish(model, fold.train, fold.validation, "map")


@pytest.mark.parametrize("rule", ["clicked>skipped-above", "clicked>earlier-clicked"])
def test_sessions_that_state_too_many_preferences_are_named(rule):
    log = clicks.ClickLog.from_sessions([("short", [1, 2], [1]), ("long", range(50_000), range(0, 50_000, 2))])
    with pytest.raises(
        ValueError, match=r"^a session of query 'long' shows 50,000 urls and has 25,000 clicks, which state up to"
    ):
        clicks.preference_pairs(log, rule)
    assert len(clicks.preference_pairs(log, "clicked>skipped-next")) == 25_000
