"""The solvers alone: a driver that knows nothing of ranking, and a QP whose answers are never taken on trust."""

import contextlib
import itertools
import threading
import time

import numpy as np
import pytest

from structrank.solvers import CuttingPlanes, Plane, WorkingSet, interior, qp, reference
from structrank.solvers.assignment import best_assignment
from structrank.solvers.cutting_plane import Point
from structrank.solvers.dual import _ascend
from structrank.solvers.interior import ask_interior
from structrank.solvers.working_set import QPProblem


class Hinges:
    """R(w) = sum_s weight_s mean_i max(0, 1 - x_i.w) over the rows of each part."""

    def __init__(self, parts, weights):
        self.parts, self.weights, self.n_features = parts, np.array(weights), parts[0].shape[1]
        self.seen = []

    def plane(self, w):
        self.seen.append(w)
        wrong = [(X @ w < 1).astype(float) for X in self.parts]
        slopes = np.array([z @ X / len(X) for z, X in zip(wrong, self.parts, strict=True)])
        offsets = np.array([z.mean() for z in wrong])
        return Plane(slopes, offsets, offsets - slopes @ w)


def hinges(seed=0, n_parts=3):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=4)
    parts = []
    for _ in range(n_parts):
        X = rng.normal(size=(30, 4))
        parts.append(X * np.sign(X @ direction + rng.normal(size=30))[:, None])
    return Hinges(parts, [0.5, 0.3, 0.2][:n_parts])


def test_the_driver_minimises_any_risk_with_one_or_many_slacks():
    import cvxpy

    many = hinges()
    stacked = Hinges([np.concatenate(many.parts)], [1.0])
    stacked.weights = np.ones(1)
    for risk in (many, stacked):
        w = cvxpy.Variable(4)
        terms = [
            weight * cvxpy.sum(cvxpy.pos(1 - X @ w)) / len(X)
            for weight, X in zip(risk.weights, risk.parts, strict=True)
        ]
        problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + 20.0 * cvxpy.sum(terms)))
        problem.solve(solver="CLARABEL")
        outcome = CuttingPlanes(risk, C=20.0, tol=1e-6).run(max_iter=500)
        assert outcome.reason == "converged"
        assert outcome.certificate.primal == pytest.approx(problem.value, rel=1e-5)
        assert outcome.certificate.dual <= problem.value * (1 + 1e-9)
        assert outcome.w == pytest.approx(w.value, abs=1e-2)


def solvers_of(history):
    """Give who solved the QPs; steps back have none."""
    return {one.solver for one in history if one.solver}


def test_one_step_at_a_time_equals_a_run():
    driver = CuttingPlanes(hinges(), C=5.0, tol=1e-4)
    while not driver.step():
        pass
    outcome = CuttingPlanes(hinges(), C=5.0, tol=1e-4).run(max_iter=500)
    assert np.array_equal(driver.w, outcome.w)
    assert len(driver.history) == len(outcome.history)


def test_given_planes_save_evaluations():
    risk = hinges()
    planes, points = WorkingSet(risk.weights, 4), []
    CuttingPlanes(risk, 5.0, 1e-5, working_set=planes, points=points).run(500)
    cold = len(risk.seen)
    risk.seen.clear()
    again = CuttingPlanes(risk, 5.0, 1e-5, working_set=planes, points=points).run(500)
    assert again.reason == "converged"
    assert len(risk.seen) <= 3 < cold


def test_a_given_start_is_where_the_first_plane_is_made():
    risk = hinges()
    start = np.array([1.0, 2.0, 3.0, 4.0])
    CuttingPlanes(risk, 5.0, 1e-3, start=start).run(500)
    assert np.array_equal(risk.seen[0], start)


def test_the_bound_holds_for_any_multipliers_however_wrong():
    rng = np.random.default_rng(1)
    problem = QPProblem(rng.normal(size=(12, 3)), rng.random(12), rng.integers(0, 4, 12), rng.random(4) + 0.1, 3.0)
    solution = qp.solve(problem, 1e-9, (np.zeros(3), np.zeros(12)))
    assert solution.gap <= 1e-9
    for _ in range(200):
        multipliers, value, w = problem.feasible_dual(rng.normal(size=12) * 10 ** rng.uniform(-3, 3))
        assert value <= problem.primal(solution.w) + 1e-12
        assert (multipliers >= 0).all()
        np.testing.assert_allclose(w, multipliers @ problem.slopes, atol=1e-9)
        sums = np.bincount(problem.slack_of, weights=multipliers, minlength=4)
        assert (sums <= problem.C * problem.weights * (1 + 1e-12)).all()
        assert value == pytest.approx(
            problem.offsets @ multipliers - 0.5 * np.sum((multipliers @ problem.slopes) ** 2), abs=1e-9
        )


@pytest.mark.parametrize("n_planes", [1, 3, 40])
def test_all_backends_solve_the_same_qp(n_planes):
    rng = np.random.default_rng(2)
    for C in (1e-3, 1.0, 1e4):
        problem = QPProblem(
            rng.normal(size=(n_planes, 10)), rng.random(n_planes), rng.integers(0, 2, n_planes), np.array([0.7, 0.3]), C
        )
        best = qp.solve(problem, 1e-8 * C, (np.zeros(10), np.zeros(n_planes)), "cvxpy")
        for backend in ("osqp", "dual", "interior", "cvxpy"):
            found = qp.solve(problem, 1e-6 * C, (np.zeros(10), np.zeros(n_planes)), backend)
            assert found.backend == backend or C == 1e4  # the hardest may be handed on
            assert found.gap <= 1e-6 * C
            assert problem.primal(found.w) == pytest.approx(problem.primal(best.w), abs=2e-6 * C)


def stall(real, times):
    """A backend that gives rubbish the first times it is asked."""
    asked = []

    def make(*arguments):
        ask = real(*arguments)

        def faulty(problem, accuracy, warm):
            asked.append(problem)
            if len(asked) <= times:
                return np.full(problem.slopes.shape[1], 1e6), np.zeros(problem.offsets.shape[0]), "stalled"
            return ask(problem, accuracy, warm)

        return faulty

    return make


def test_a_qp_that_stalls_is_retried_tighter_then_handed_on_and_the_history_says_so(monkeypatch):
    expected = CuttingPlanes(hinges(), 5.0, 1e-5, "osqp").run(500)
    monkeypatch.setattr(qp, "_ask_osqp", stall(qp._ask_osqp, 1))
    retried = CuttingPlanes(hinges(), 5.0, 1e-5, "osqp").run(500)
    assert retried.history[0].solver == "osqp, tighter"
    assert retried.history[0].note.startswith("osqp: stalled, gap ")
    monkeypatch.setattr(qp, "_ask_osqp", stall(qp._ask_osqp, 10**9))
    handed_on = CuttingPlanes(hinges(), 5.0, 1e-5, "osqp").run(500)
    assert solvers_of(handed_on.history) == {"cvxpy"}
    assert "osqp, tighter: stalled" in handed_on.history[0].note
    monkeypatch.setattr(reference, "ask_cvxpy", stall(reference.ask_cvxpy, 10**9))
    compiled = CuttingPlanes(hinges(), 5.0, 1e-5, "osqp").run(500)
    assert solvers_of(compiled.history) <= {"dual", "interior"}
    for outcome in (retried, handed_on, compiled):
        assert outcome.reason == "converged"
        assert outcome.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-4)


def test_auto_stays_with_the_interior_point_method_after_the_dual_has_stalled_twice(monkeypatch):
    asked = []

    def watched():
        def ask(problem, accuracy, warm):
            asked.append("dual")
            return np.full(4, 1e6), np.zeros(problem.offsets.shape[0]), "stalled"

        return ask

    monkeypatch.setattr(qp, "ask_dual", watched)
    outcome = CuttingPlanes(hinges(), 5.0, 1e-5).run(500)
    assert outcome.reason == "converged"
    assert solvers_of(outcome.history) == {"interior"}
    assert asked == ["dual", "dual"]

    stopped = CuttingPlanes(hinges(), 5.0, 1e-5)
    stopped.run(2)
    resumed = CuttingPlanes(hinges(), 5.0, 1e-5)
    resumed.restore(stopped.state())
    asked.clear()
    assert np.array_equal(resumed.run(500).w, outcome.w)
    assert asked == []


def test_a_run_goes_on_from_any_of_its_steps_as_if_it_had_not_stopped():
    whole = CuttingPlanes(hinges(), 1e4, 1e-5).run(500)
    for n_steps in range(1, len(whole.history)):
        stopped, resumed = CuttingPlanes(hinges(), 1e4, 1e-5), CuttingPlanes(hinges(), 1e4, 1e-5)
        for _ in range(n_steps):
            stopped.step()
        resumed.restore(stopped.state())
        outcome = resumed.run(500)
        assert np.array_equal(outcome.w, whole.w)
        assert [one.objective for one in outcome.history] == [one.objective for one in whole.history]


def test_no_pass_is_made_once_the_bound_shows_the_best_point_to_be_good_enough():
    risk, visited = hinges(), []
    make = risk.plane
    risk.plane = lambda w: visited.append(w) or make(w)
    spared = 0
    for C in (0.5, 5.0, 50.0):
        for tol in (1e-2, 1e-3, 1e-4):
            visited.clear()
            outcome = CuttingPlanes(risk, C, tol).run(500)
            assert outcome.reason == "converged"
            assert outcome.certificate.gap <= C * tol
            iterations = len(outcome.history)
            assert len(visited) in (iterations, 1 + iterations)  # one at 0
            if len(visited) == iterations:
                last = outcome.history[-1]
                assert last.seconds["oracle"] == 0.0
                assert last.objective == outcome.certificate.primal == min(one.objective for one in outcome.history[:-1])
                spared += 1
    assert spared


def test_0_is_not_good_enough_however_small_C():
    risk = hinges()
    outcome = CuttingPlanes(risk, 1e-6, 1e-1).run(500)
    assert outcome.w.any()


@pytest.mark.parametrize(("C", "n_stages"), [(1.0, 0), (1e4, 2), (1e5, 3)])
def test_a_large_C_alone_is_reached_by_way_of_smaller_ones(C, n_stages, monkeypatch):
    solve, seen = qp.solve, []
    at_zero = Point.of(np.zeros(4), hinges().plane(np.zeros(4)), hinges().weights)
    first = 60.0 * at_zero.risk / (at_zero.slope @ at_zero.slope)  # whatever the last is

    def watched(problem, *arguments):
        seen.append(problem.C)
        return solve(problem, *arguments)

    monkeypatch.setattr(qp, "solve", watched)
    outcome = CuttingPlanes(hinges(), C, 1e-5).run(500)
    assert outcome.reason == "converged"
    assert [one for one, _ in itertools.groupby(seen)] == pytest.approx([*(first * 10.0 ** np.arange(n_stages)), C])


def test_a_stage_ends_where_its_gap_is_small_or_falls_slowly():
    steps = []

    class Watched(CuttingPlanes):
        def _settle(self, point, slow):
            C, bound, best = self._stage_C, self._stage_bound, self._best.objective(self._stage_C)
            here = point.objective(C)
            ended = super()._settle(point, slow)
            steps.append((C, bool(self.history[-1].solver), min(best, here) - bound, here - bound <= 0.015 * best, ended))
            return ended

    for C in (1e3, 1e4, 1e5):
        assert Watched(hinges(), C, 1e-5).run(500).reason == "converged"
        ends = set()
        for stage, members in itertools.groupby(steps, key=lambda step: step[0]):
            before = np.inf
            for _, solved, gap, small, ended in members:
                if stage < C:
                    slow = solved and gap > 0.3 * before
                    assert ended == (small or slow)
                    ends |= {"small"} if small else {"slow"} if slow else set()
                before = gap if solved else before
        assert "slow" in ends
        steps.clear()


def test_a_step_that_went_much_too_far_is_followed_by_one_back_without_a_qp(monkeypatch):
    solve, solved = qp.solve, []
    monkeypatch.setattr(qp, "solve", lambda *arguments: solved.append(1) or solve(*arguments))
    for C in (1e2, 1e4, 1e5):
        solved.clear()
        driver, n_back = CuttingPlanes(hinges(), C, 1e-5), 0
        while not driver.step():
            if driver.history[-1].solver:
                continue
            n_back += 1
            before, here = driver.points[-2], driver.points[-1]
            assert driver.history[-2].solver  # never twice in a row
            assert here.objective(driver._stage_C) < before.objective(driver._stage_C)
        assert n_back
        assert len(solved) + n_back == len(driver.history)


def test_planes_are_made_far_enough_from_the_best_point_for_news():
    # Where the objective bends by b |d|^2 / 2 along d, it is above its least by 4 % of what is missing at this share of d.
    driver = CuttingPlanes(hinges(), 100.0, 1e-5)
    driver._stride, driver._curvature = 1e-9, 0.3
    direction = np.full(4, 2.0)
    missing = driver._best.objective(100.0)
    bends = (1.0 + 100.0 * 0.3) * 16.0
    share = driver._choose_stride(direction)
    assert 0.5 * bends * share**2 == pytest.approx(0.04 * missing)
    driver._stride = 0.9
    assert driver._choose_stride(direction) == 0.9


def test_while_climbing_no_bound_is_above_what_it_bounds():
    driver, climbed = CuttingPlanes(hinges(), 1e7, 1e-5), []
    while not driver.step():
        C = driver._stage_C
        climbed.append(C)
        optimum = CuttingPlanes(hinges(), C, 1e-6).run(500).certificate.primal
        assert driver._stage_bound <= optimum
    assert len(set(climbed)) > 3


def test_what_is_foreseen_is_visited_first_unless_it_is_known_to_be_needless():
    exact, C = CuttingPlanes(hinges(), 50.0, 1e-9).run(500).w, 50.0

    def after_smaller_C(tol, foreseen):
        """Train for C / 10, then for C; gives the outcome and what the second run visited."""
        risk, points = hinges(), []
        first = CuttingPlanes(risk, C / 10, tol, points=points)
        first.run(500)
        n = len(risk.seen)
        outcome = CuttingPlanes(risk, C, tol, working_set=first.working_set, points=points, foreseen=foreseen).run(500)
        assert outcome.reason == "converged"
        return outcome, risk.seen[n:]

    _, plain = after_smaller_C(1e-4, None)
    good, visited = after_smaller_C(1e-4, exact)
    assert np.array_equal(visited[0], exact)
    assert len(visited) < len(plain)
    bad, visited = after_smaller_C(1e-4, -10 * exact)
    assert np.array_equal(visited[0], -10 * exact)
    assert bad.certificate.primal == pytest.approx(good.certificate.primal, abs=1e-4 * C)
    outcome, visited = after_smaller_C(10.0, exact)
    assert visited == []
    assert not np.array_equal(outcome.w, exact)


@pytest.mark.parametrize("C", [100.0, 1e5])
def test_no_bound_is_taken_from_planes_that_were_dropped(C):
    class Shredding(WorkingSet):
        def record(self, multipliers, may_drop):
            super().record(multipliers, may_drop)
            self._slopes[len(self) :] = np.nan

    risk = hinges()
    planes = Shredding(risk.weights, risk.n_features, patience=0)
    history = CuttingPlanes(risk, C, 1e-6, working_set=planes).run(500).history
    assert any(after.planes < before.planes + risk.weights.shape[0] for before, after in itertools.pairwise(history))
    assert np.isfinite([one.violation for one in history]).all()
    best = min(one.objective for one in history)
    assert all(0.0 <= one.bound <= best * (1 + 1e-12) for one in history)


@pytest.mark.parametrize("C", [1.0, 1e5])
def test_the_interior_point_method_solves_what_makes_the_dual_stall(C):
    # Slacks that pull against each other: w is nearly 0, and the multipliers are far from unique.
    rng = np.random.default_rng(3)
    slopes = rng.normal(size=(60, 4))
    slopes = np.concatenate([slopes, -slopes])
    problem = QPProblem(slopes, np.ones(120), np.arange(120) // 6, np.full(20, 0.05), C)
    found = qp.solve(problem, 1e-9 * C, (np.zeros(4), np.zeros(120)), "interior")
    assert found.backend == "interior"
    assert found.gap <= 1e-9 * C


def test_when_every_solver_fails_the_certificate_stays_true(monkeypatch):
    best = CuttingPlanes(hinges(), 5.0, 1e-6).run(500).certificate
    homes = {"ask_dual": qp, "ask_interior": qp, "_ask_osqp": qp, "ask_cvxpy": reference}
    for name, home in homes.items():
        monkeypatch.setattr(home, name, stall(getattr(home, name), 10**9))
    outcome = CuttingPlanes(hinges(), 5.0, 1e-6).run(20)
    assert outcome.reason in ("stalled", "max_iter")
    assert outcome.certificate.dual <= best.primal
    assert outcome.certificate.primal >= best.dual

    def silent(*_):
        return lambda *_: (None, None, "dead")

    for name, home in homes.items():
        monkeypatch.setattr(home, name, silent)
    with pytest.raises(RuntimeError, match=r"no QP solver gave an answer.*dual: dead"):
        CuttingPlanes(hinges(), 5.0, 1e-6).run(20)


def test_ctrl_c_inside_osqp_is_not_swallowed(monkeypatch):
    import osqp

    class Interrupted:
        def __init__(self, *_, **__):
            pass

        def setup(self, *_, **__):
            pass

        warm_start = setup

        def solve(self, **_):
            info = type("Info", (), {"status_val": osqp.SolverStatus.OSQP_SIGINT, "status": "interrupted"})
            return type("Result", (), {"info": info, "x": None, "y": None})

    driver = CuttingPlanes(hinges(), 5.0, 1e-6, "osqp")
    driver.step()
    monkeypatch.setattr(osqp, "OSQP", Interrupted)
    assert driver.run(100).reason == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        CuttingPlanes(hinges(), 5.0, 1e-6, "osqp").run(100)  # nothing to give back yet


def test_idle_planes_are_dropped_and_active_ones_kept():
    planes = WorkingSet(np.ones(1), n_features=1, patience=2)
    planes.add(np.array([[1.0], [2.0]]), np.array([1.0, 1.0]), np.array([0, 0]))
    for _ in range(3):
        planes.record(np.array([0.0, 0.5]))
    assert planes.slopes.tolist() == [[2.0]]
    assert planes.multipliers.tolist() == [0.5]


def test_what_a_working_set_knows_of_its_planes_survives_adding_and_dropping():
    rng = np.random.default_rng(4)
    planes = WorkingSet(np.array([0.5, 0.3, 0.2]), n_features=3, patience=1)
    for _ in range(12):
        n = int(rng.integers(1, 9))
        planes.add(rng.normal(size=(n, 3)), rng.random(n), rng.integers(0, 3, n))
        planes.record(rng.random(len(planes)) * (rng.random(len(planes)) < 0.5))
        blocks = planes.problem(1.0).blocks
        assert blocks.counts.sum() == len(planes)
        for s in range(3):
            members = blocks.members[s, : blocks.counts[s]]
            assert sorted(members) == np.flatnonzero(planes.slack_of == s).tolist()


def test_rows_beyond_the_last_column_come_after_it():
    benefit = np.array([[0.0, 5.0], [4.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert best_assignment(benefit).tolist() == [1, 0, 2, 3]


# --- how far the driver steps ---------------------------------------------------------------------------------------------


class Parabola:
    """R(w) = 10 + 1/2 (w - 1)^2, whose slope changes evenly."""

    weights, n_features = np.ones(1), 1

    def plane(self, w):
        slope = 1.0 - w[0]
        value = 10.0 + 0.5 * slope**2
        return Plane(np.array([[slope]]), np.array([value + slope * w[0]]), np.array([value]))


def test_the_first_step_for_a_new_C_ends_where_an_even_curvature_has_its_least():
    planes, points = WorkingSet(np.ones(1), 1), []
    for start in ([0.0], [0.5]):
        CuttingPlanes(Parabola(), 1.0, 1e-3, working_set=planes, points=points, start=start)
    CuttingPlanes(Parabola(), 5.0, 1e-3, working_set=planes, points=points).step()
    assert points[2].w == pytest.approx([5 / 6], abs=1e-9)  # the QP says 5/2


@pytest.mark.parametrize(("C", "first"), [(1.0, "dual"), (200.0, "interior")])
def test_the_first_qps_of_a_large_C_are_solved_by_interior_points_unless_another_is_asked_for(C, first):
    found = CuttingPlanes(Parabola(), C, 1e-3).run(50)
    assert found.history[0].solver == first
    assert found.reason == "converged"
    assert CuttingPlanes(Parabola(), C, 1e-3, "dual").run(50).history[0].solver == "dual"


def test_weight_that_is_left_by_rounding_does_not_stop_the_dual():
    multipliers = np.array([0.75, np.nextafter(0.25, 0.0)])
    left = 1.0 - multipliers[0] - multipliers[1]
    assert left > 0.0
    assert multipliers[0] + left == multipliers[0]
    slopes, w = np.array([[0.0], [1.0]]), multipliers[1:].copy()
    _ascend(slopes, np.ones(2), np.array([[0, 1]]), np.array([2]), np.ones(1), multipliers, w, 1e-6, 100.0)
    assert multipliers == pytest.approx([1.0, 0.0])
    assert w == pytest.approx([0.0])


def test_interior_points_are_soon_done_where_a_slack_has_many_planes():
    # They touch a parabola.
    rng = np.random.default_rng(0)
    n_features = 120
    places = rng.normal(size=(1500, n_features)) / np.sqrt(n_features)
    target = rng.normal(size=n_features) / np.sqrt(n_features)
    slopes = target - places
    offsets = 1.0 + np.sum(slopes * places, axis=1) + 0.5 * np.sum((places - target) ** 2, axis=1)
    problem = QPProblem(slopes, offsets, np.zeros(len(offsets), np.int64), np.ones(1), 1e4)
    w, multipliers, status = ask_interior()(problem, 1e-3, (np.zeros(n_features), np.zeros(len(offsets))))
    assert problem.primal(w) - problem.feasible_dual(multipliers)[1] <= 1e-3
    assert int(status.removesuffix(" steps")) < 50  # two more planes a round took 71


def test_threads_do_not_change_the_number_of_blas_threads_at_the_same_time(monkeypatch, rng):
    inside, most = [], []

    class Blas:
        @contextlib.contextmanager
        def limit(self, limits, user_api):
            inside.append(limits)
            most.append(len(inside))
            time.sleep(0.01)
            yield
            inside.pop()

    monkeypatch.setattr(interior, "_blas", Blas)
    slopes = rng.normal(size=(3, 20))
    threads = [threading.Thread(target=interior.span, args=(slopes,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
