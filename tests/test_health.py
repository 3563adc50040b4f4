"""Vacuous whatever C is, or a small C: what an objective close to that of w = 0 means."""

import numpy as np
import pytest
from scipy.optimize import linprog

from structrank import StructRankSVM, StructRankWarning, datasets
from structrank.solvers import CuttingPlanes, Plane
from structrank.training import checkpoint, health, run
from structrank.training.health import is_vacuous

SMALL_CS = [1e-3, 1e-2, 1e-1]


class Planes:
    """R(w) = max_t b_t - a_t.w and at least 0, for given planes."""

    weights = np.ones(1)

    def __init__(self, slopes, offsets):
        self.slopes = np.vstack([slopes, np.zeros(slopes.shape[1])])
        self.offsets, self.n_features = np.append(offsets, 0.0), slopes.shape[1]

    def plane(self, w):
        values = self.offsets - self.slopes @ w
        best = int(np.argmax(values))
        return Plane(self.slopes[best], self.offsets[best], values[best])

    def least(self):
        """Return the least value over all w, by linear programming."""
        n = self.n_features
        rows = np.column_stack([-self.slopes, -np.ones(len(self.offsets))])
        return linprog(np.eye(n + 1)[n], A_ub=rows, b_ub=-self.offsets, bounds=[(None, None)] * (n + 1)).fun


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_decision_is_that_of_the_least_value_over_all_w(scale):
    rng = np.random.default_rng(0)
    verdicts = []
    for case in range(60):
        slopes = scale * rng.normal(size=(rng.integers(2, 9), 3))
        offsets = 1.0 - 0.02 * rng.random(len(slopes))
        offsets[0] = 1.0  # R(0)
        if case % 3 == 0:  # planes whose convex combination is level
            slopes[1], offsets[1] = -slopes[0], 1.0 - 1e-4 * rng.random()
        risk = Planes(slopes, offsets)
        driver = CuttingPlanes(risk, tol=1e-3)
        driver.add(np.zeros(3), risk.plane(np.zeros(3)))
        least = risk.least()
        if 0.9985 < least < 0.9995:
            continue  # too close to the threshold
        assert is_vacuous(driver, 1e-6 / scale**2) == (least > 0.999)
        verdicts.append(least > 0.999)
    assert 10 < sum(verdicts) < len(verdicts) - 10  # else this would show nothing


def test_the_bound_holds_for_every_smaller_C():
    # D(C*) >= (1 - eps) C* R(0) implies the same for every C <= C*: R(w) = 1 + |w_1| is least at 0 whatever C is.
    risk = Planes(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones(2))
    for C in (1e-4, 1.0, 1e4):
        result = CuttingPlanes(risk, tol=1e-6).run(C)
        assert result.certificate.dual >= 0.999 * C


@pytest.mark.parametrize(("criterion", "feature_map"), [("ndcg", "po"), ("mrr", "po")])
def test_on_digits_a_small_C_is_not_called_vacuous(criterion, feature_map):
    train = datasets.load_digits_retrieval().train
    path = StructRankSVM(criterion, feature_map=feature_map).fit_path(train.X, train.y, qid=train.qid, Cs=[*SMALL_CS, 10.0])
    for model in path[:3]:
        assert model.health_.objective_ratio > 0.999
        assert not model.health_.vacuous
        assert model.health_.small_C
        assert len(model.notes_) == 1
        assert model.notes_[0].startswith("C is small: the objective is")
    assert not path[3].health_.small_C
    assert path[3].notes_ == ()
    alone = StructRankSVM(criterion, feature_map=feature_map, bound="auto", C=0.1).fit(train.X, train.y, qid=train.qid)
    assert alone.rounds_ == ()  # no reason for the ramp


@pytest.mark.parametrize(("criterion", "feature_map"), [("mrr", "mrr"), ("dorm", "dorm")])
@pytest.mark.filterwarnings("ignore:.*is vacuous")
def test_on_digits_vacuous_is_vacuous_for_every_C(criterion, feature_map):
    train = datasets.load_digits_retrieval().train
    path = StructRankSVM(criterion, feature_map=feature_map).fit_path(
        train.X, train.y, qid=train.qid, Cs=[*SMALL_CS, 10.0, 1e3]
    )
    assert all(model.health_.vacuous and not model.health_.small_C for model in path)
    assert all("no larger C would help" in model.notes_[0] for model in path)


def test_the_decision_does_not_change_the_path(monkeypatch):
    train = datasets.load_digits_retrieval().train
    model = StructRankSVM("ndcg")
    with_decision = model.fit_path(train.X, train.y, qid=train.qid, Cs=[1e-3, 1.0, 100.0])
    monkeypatch.setattr(health, "is_vacuous", lambda driver, C: False)
    without = model.fit_path(train.X, train.y, qid=train.qid, Cs=[1e-3, 1.0, 100.0])
    for one, other in zip(with_decision, without, strict=True):
        assert np.array_equal(one.coef_, other.coef_)


def test_it_is_decided_once_a_path_and_only_where_nothing_was_learned(monkeypatch):
    train = datasets.load_digits_retrieval().train
    decided = []
    monkeypatch.setattr(health, "is_vacuous", lambda driver, C: decided.append(C))
    StructRankSVM("ndcg").fit_path(train.X, train.y, qid=train.qid, Cs=[1.0, 10.0])
    assert decided == []
    monkeypatch.setattr(health, "is_vacuous", lambda driver, C: decided.append(C) or False)
    StructRankSVM("ndcg").fit_path(train.X, train.y, qid=train.qid, Cs=SMALL_CS)
    assert decided == [1e-3]


def test_passes_of_the_decision_are_kept_in_the_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    train = datasets.load_digits_retrieval().train
    model = StructRankSVM("mrr", feature_map="po", C=1e-3)
    whole = model.fit(train.X, train.y, qid=train.qid).coef_.copy()
    passes, real = [], run.KeptPasses.plane

    def counted(self, w, kind="risk"):
        passes.append(self._read is None)  # whether it is computed
        return real(self, w, kind)

    monkeypatch.setattr(run.KeptPasses, "plane", counted)
    model.fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    first, passes[:] = list(passes), []
    again = model.fit(train.X, train.y, qid=train.qid, checkpoint=tmp_path)
    assert np.array_equal(again.coef_, whole)
    assert len(passes) == len(first) > 3
    assert any(first)
    assert not any(passes)


def test_ctrl_c_during_the_decision_keeps_the_model(monkeypatch):
    train = datasets.load_digits_retrieval().train

    def pressed(driver, C):
        raise KeyboardInterrupt

    monkeypatch.setattr(health, "is_vacuous", pressed)
    with pytest.warns(StructRankWarning, match="interrupted"):
        models = StructRankSVM("ndcg").fit_path(train.X, train.y, qid=train.qid, Cs=[1e-3, 1.0])
    assert [model.stop_reason_ for model in models] == ["interrupted"]
    assert not models[0].health_.vacuous
    assert not models[0].health_.small_C


def test_a_part_that_decides_alone_is_named(assert_same_optimum):
    train = datasets.load_digits_retrieval().train
    combo = {"criterion": ["map", "ndcg-nc", "mrr"], "feature_map": "po", "C": 10.0, "tol": 1e-5}
    shared = StructRankSVM(**combo, slack="shared").fit(train.X, train.y, qid=train.qid)
    assert shared.health_.sole == "mrr@10 (phi_po)"
    assert "mrr@10 (phi_po) alone" in shared.notes_[0]
    alone = StructRankSVM("mrr", feature_map="po", C=10.0, tol=1e-5).fit(train.X, train.y, qid=train.qid)
    assert_same_optimum(shared, alone)
    assert StructRankSVM(**combo).fit(train.X, train.y, qid=train.qid).health_.sole is None
    made = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0).train
    mixed = StructRankSVM(["map", "auc"], slack="shared", C=10.0).fit(made.X, made.y, qid=made.qid)
    assert mixed.health_.sole is None
