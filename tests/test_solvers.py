"""The cutting-plane driver on risks that have nothing to do with ranking, and the certified QP backends."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from structrank.solvers import CuttingPlanes, Plane, WorkingSet, backends, cutting_plane
from structrank.solvers.assignment import best_assignment
from structrank.solvers.backends import BACKENDS, dual, interior, solve

SLACKS = [0, cutting_plane.ONE_SLACK_PASSES, math.inf]  # passes with one slack: none, the default, all


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


def working_set(slopes, offsets, weights):
    """Make a working set from (n_slacks, n, n_features) slopes and (n_slacks, n) offsets."""
    planes = WorkingSet(weights, slopes.shape[2])
    for t in range(slopes.shape[1]):
        planes.add(slopes[:, t], offsets[:, t])
    return planes


def random_planes(rng, n_slacks, n, n_features):
    weights = rng.random(n_slacks) + 0.1
    return working_set(rng.normal(size=(n_slacks, n, n_features)), rng.random((n_slacks, n)), weights)


def optimum(risk, C):
    import cvxpy

    w = cvxpy.Variable(risk.n_features)
    terms = [weight * cvxpy.sum(cvxpy.pos(1 - X @ w)) / len(X) for weight, X in zip(risk.weights, risk.parts, strict=True)]
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C * cvxpy.sum(terms)))
    problem.solve(solver="CLARABEL")
    return problem.value, w.value


# --- the driver -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_slack_passes", SLACKS)
@pytest.mark.parametrize("C", [0.1, 20.0, 1e4])
def test_the_driver_minimises_any_risk_with_one_or_many_slacks(C, one_slack_passes):
    value, w = optimum(hinges(), C)
    result = CuttingPlanes(hinges(), 1e-6, one_slack_passes=one_slack_passes).run(C)
    assert result.reason == "converged"
    assert result.certificate.gap <= C * 1e-6
    assert result.certificate.primal == pytest.approx(value, rel=1e-5)
    assert result.certificate.dual <= value * (1 + 1e-8)
    assert result.w == pytest.approx(w, abs=1e-2)
    assert 0.5 * result.w @ result.w + C * result.risk == pytest.approx(result.certificate.primal)


def test_the_bound_holds_at_every_iteration_of_a_continuation_in_C():
    for C in (1.0, 1e3, 1e7):
        best = CuttingPlanes(hinges(), 1e-9, one_slack_passes=0).run(C).certificate.primal
        bounds = [one.bound for one in CuttingPlanes(hinges(), 1e-6).run(C).history]
        assert bounds == sorted(bounds)
        assert bounds[0] >= 0.0
        assert bounds[-1] <= best * (1 + 1e-8)


def solvers_of(result):
    return [one.solver for one in result.history]


def test_a_run_starts_with_one_slack_and_osqp_and_switches_to_many_slacks_if_it_is_hard():
    easy = CuttingPlanes(hinges(), 1e-2).run(1.0)
    assert set(solvers_of(easy)) == {"osqp"}
    assert [one.planes for one in easy.history] == list(range(1, len(easy.history) + 1))
    hard = CuttingPlanes(hinges(), 1e-7).run(1e3)
    n = solvers_of(hard).count("osqp")
    assert 0 < n <= cutting_plane.ONE_SLACK_PASSES
    assert set(solvers_of(hard)[:n]) == {"osqp"}
    assert set(solvers_of(hard)[n:]) <= {"dual", "interior"}
    # No plane is dropped: every evaluation so far has one plane in each of the three slacks.
    assert [one.planes for one in hard.history[n:]] == [3 * k for k in range(n + 1, len(hard.history) + 1)]


def test_a_named_solver_is_used_throughout():
    for solver, one_slack_passes in itertools.product(("osqp", "dual", "interior", "cvxpy", "cvxpy:SCS"), SLACKS):
        result = CuttingPlanes(hinges(), 1e-3, solver, one_slack_passes).run(5.0)
        assert result.reason == "converged"
        assert set(solvers_of(result)) == {solver}


def test_a_large_C_is_reached_by_continuation_from_smaller_values(monkeypatch):
    seen = []

    def watched(planes, C, *arguments):
        seen.append(C)
        return solve(planes, C, *arguments)

    monkeypatch.setattr(cutting_plane, "solve", watched)
    CuttingPlanes(hinges(), 1e-3).run(1.0)
    assert set(seen) == {1.0}
    seen.clear()
    CuttingPlanes(hinges(), 1e-3).run(1e5)
    assert seen == sorted(seen)
    assert seen[-1] == 1e5
    assert len(set(seen)) > 2


def test_planes_and_points_are_shared_between_values_of_C():
    risk = hinges()
    driver = CuttingPlanes(risk, 1e-5)
    first = driver.run(5.0)
    cold = len(risk.seen)
    again = driver.run(5.0)
    assert again.reason == "converged"
    assert len(risk.seen) < 2 * cold
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-4)
    path = driver.run(50.0)
    alone = CuttingPlanes(hinges(), 1e-5).run(50.0)
    assert path.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-4)
    assert len(path.history) < len(alone.history)


def test_a_given_start_is_where_the_risk_is_evaluated_first():
    risk, start = hinges(), np.array([1.0, 2.0, 3.0, 4.0])
    CuttingPlanes(risk, 1e-3).run(5.0, start=start)
    assert np.array_equal(risk.seen[0], start)


def test_repeated_runs_are_bit_identical():
    runs = [CuttingPlanes(hinges(), 1e-5).run(1e3) for _ in range(2)]
    assert np.array_equal(runs[0].w, runs[1].w)
    assert [one.objective for one in runs[0].history] == [one.objective for one in runs[1].history]


def test_the_last_evaluation_is_skipped_if_the_bound_certifies_the_best_point():
    skipped = 0
    for C, tol in itertools.product((0.5, 5.0, 50.0), (1e-2, 1e-3, 1e-4)):
        risk = hinges()
        result = CuttingPlanes(risk, tol).run(C)
        assert result.certificate.gap <= C * tol
        iterations = len(result.history)
        assert len(risk.seen) in (iterations, 1 + iterations)  # one at 0
        if len(risk.seen) == iterations:
            last = result.history[-1]
            assert last.seconds["oracle"] == 0.0
            assert last.objective == result.certificate.primal == min(one.objective for one in result.history)
            skipped += 1
    assert skipped


def test_the_solution_is_not_0_for_a_small_C():
    result = CuttingPlanes(hinges(), 1e-1).run(1e-6)
    assert result.reason == "converged"
    assert result.w.any()


@pytest.mark.parametrize("one_slack_passes", SLACKS)
def test_a_run_whose_optimum_is_0_converges_to_a_point_near_it(one_slack_passes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) * [10.0, 1.0, 1.0, 1.0]
    risk = Hinges([np.concatenate([X, -X])], [1.0])  # for every row its opposite: R(w) is at least 1
    result = CuttingPlanes(risk, 1e-3, one_slack_passes=one_slack_passes).run(100.0)
    assert result.reason == "converged"
    assert result.w.any()
    assert result.certificate.primal <= 100.1


def test_the_callback_sees_every_iteration_and_can_stop():
    seen = []
    result = CuttingPlanes(hinges(), 1e-6).run(50.0, callback=lambda iteration: seen.append(iteration) or len(seen) == 3)
    assert result.reason == "callback"
    assert result.history == seen
    assert result.certificate.primal == min(one.objective for one in [*seen, hinges_at_zero(50.0)])
    assert CuttingPlanes(hinges(), 1e-6).run(50.0, max_iter=2).reason == "max_iter"


def hinges_at_zero(C):
    class Line:
        objective = C * float(hinges().weights @ hinges().plane(np.zeros(4)).value)

    return Line


def test_ctrl_c_returns_the_best_point_so_far():
    risk = hinges()
    evaluate, seen = risk.plane, []

    def interrupted(w):
        seen.append(w)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return evaluate(w)

    risk.plane = interrupted
    result = CuttingPlanes(risk, 1e-6).run(50.0)
    assert result.reason == "interrupted"
    assert len(result.history) == 2
    assert result.certificate.gap >= 0.0
    seen[:] = [None] * 3
    with pytest.raises(KeyboardInterrupt):
        CuttingPlanes(risk, 1e-6).run(50.0)  # no iteration is finished yet


def test_ctrl_c_inside_osqp_is_not_swallowed(monkeypatch):
    from osqp import SolverStatus, ext_builtin

    class Interrupted:
        solution = None
        info = SimpleNamespace(status_val=SolverStatus.OSQP_SIGINT, status="interrupted")

        def __init__(self, *_):
            pass

        def solve(self, *_):
            pass

        warm_start = solve

    monkeypatch.setattr(ext_builtin, "OSQPSolver", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        CuttingPlanes(hinges(), 1e-6).run(5.0)


# --- the working-set QP ---------------------------------------------------------------------------------------------------


def test_the_bound_holds_for_arbitrary_multipliers():
    rng = np.random.default_rng(1)
    planes, C = random_planes(rng, 4, 3, 3), 3.0
    best = solve(planes, C, 1e-9, np.zeros(3), "dual")
    assert best.gap <= 2e-9
    for _ in range(200):
        multipliers, value, w = planes.feasible_dual(C, rng.normal(size=planes.multipliers.shape) * 10 ** rng.uniform(-3, 3))
        assert value <= planes.primal(C, best.w) + 1e-12
        assert (multipliers >= 0).all()
        assert (multipliers.sum(axis=1) <= C * planes.weights * (1 + 1e-12)).all()
        expected = np.tensordot(multipliers, planes.slopes)
        np.testing.assert_allclose(w, expected, atol=1e-9)
        assert value == pytest.approx((planes.offsets * multipliers).sum() - 0.5 * expected @ expected, abs=1e-9)


@pytest.mark.parametrize(("n_slacks", "n"), [(1, 1), (1, 12), (2, 3), (20, 4)])
def test_all_backends_solve_the_same_qp(n_slacks, n):
    rng = np.random.default_rng(2)
    for C in (1e-3, 1.0, 1e4):
        planes = random_planes(rng, n_slacks, n, 10)
        best = solve(planes, C, 1e-8 * C, np.zeros(10), "cvxpy")
        for backend in ("osqp", "dual", "interior", "cvxpy"):
            found = solve(planes, C, 1e-6 * C, np.zeros(10), backend)
            assert found.accurate
            assert found.gap <= 2e-6 * C
            assert found.backend == backend or found.note  # another backend may have to finish a hard QP
            assert planes.primal(C, found.w) == pytest.approx(planes.primal(C, best.w), abs=3e-6 * C)
            planes.multipliers[:] = found.multipliers  # the next starts from there


def test_compiled_backends_replace_one_that_misses_its_accuracy(monkeypatch):
    expected = CuttingPlanes(hinges(), 1e-5).run(5.0)

    def rubbish(planes, C, accuracy, w):
        return np.full(4, 1e6), np.zeros_like(planes.multipliers), "stalled"

    monkeypatch.setitem(BACKENDS, "osqp", rubbish)
    handed_on = CuttingPlanes(hinges(), 1e-5).run(5.0)
    assert handed_on.reason == "converged"
    assert set(solvers_of(handed_on)) <= {"dual", "interior"}
    assert handed_on.history[0].note.startswith("osqp: stalled, gap ")
    assert handed_on.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-4)


def test_a_gap_of_up_to_twice_the_accuracy_is_accepted(monkeypatch):
    planes = random_planes(np.random.default_rng(3), 2, 3, 3)
    exact = solve(planes, 1.0, 1e-12, np.zeros(3), "dual")

    def rough(share):
        return lambda planes, C, accuracy, w: (exact.w, share * exact.multipliers, "rough")

    def missed(share):
        monkeypatch.setitem(BACKENDS, "rough", rough(share))
        return planes.certify(1.0, exact.w, share * exact.multipliers)[-1]

    gap = missed(0.0)
    assert solve(planes, 1.0, 0.6 * gap, np.zeros(3), "rough").backend == "rough"
    handed_on = solve(planes, 1.0, 0.4 * gap, np.zeros(3), "rough")
    assert handed_on.backend == "dual"
    assert handed_on.note.startswith("rough: rough, gap ")


def test_the_certificate_stays_valid_if_every_backend_fails(monkeypatch):
    best = CuttingPlanes(hinges(), 1e-6).run(5.0).certificate
    for name in ("dual", "interior", "osqp"):
        monkeypatch.setitem(BACKENDS, name, lambda planes, *_: (np.full(4, 1e6), np.zeros_like(planes.multipliers), "stalled"))
    result = CuttingPlanes(hinges(), 1e-6).run(5.0, max_iter=20)
    assert result.reason in ("stalled", "max_iter")
    assert result.certificate.dual <= best.primal
    assert result.certificate.primal >= best.dual
    for name in ("dual", "interior", "osqp"):
        monkeypatch.setitem(BACKENDS, name, lambda *_: (None, None, "dead"))
    with pytest.raises(RuntimeError, match=r"no QP solver found a solution.*osqp: dead; dual: dead"):
        CuttingPlanes(hinges(), 1e-6).run(5.0)


def test_a_registered_backend_solves_every_qp(monkeypatch):
    monkeypatch.setattr(backends, "BACKENDS", dict(BACKENDS))
    solved = []

    def custom(planes, C, accuracy, w):
        solved.append(C)
        return dual.solve(planes, C, accuracy, w)

    backends.register("custom", custom)
    result = CuttingPlanes(hinges(), 1e-4, "custom", math.inf).run(5.0)
    assert result.reason == "converged"
    assert set(solvers_of(result)) == {"custom"}
    assert len(solved) == len(result.history)


@pytest.mark.parametrize("C", [1.0, 1e5])
def test_the_interior_point_method_solves_degenerate_qps(C):
    # Opposite slopes: w is nearly 0, the multipliers are far from unique, and dual ascent stalls.
    slopes = np.random.default_rng(3).normal(size=(10, 6, 4))
    planes = working_set(np.concatenate([slopes, -slopes]), np.ones((20, 6)), np.full(20, 0.05))
    found = solve(planes, C, 1e-9 * C, np.zeros(4), "interior")
    assert found.backend == "interior"
    assert found.gap <= 2e-9 * C


def test_wide_problems_are_solved_by_the_dual_backend():
    planes = random_planes(np.random.default_rng(0), 30, 20, 1500)
    w, multipliers, status = interior.solve(planes, 1.0, 1e-3, np.zeros(1500))
    assert (w, multipliers, status) == (None, None, "too many unknowns")
    assert solve(planes, 1.0, 1e-3, np.zeros(1500), "interior").backend == "dual"


def test_weight_lost_to_rounding_does_not_stop_the_dual_ascent():
    multipliers = np.array([[0.75, np.nextafter(0.25, 0.0)]])
    left = 1.0 - multipliers[0, 0] - multipliers[0, 1]
    assert left > 0.0
    assert multipliers[0, 0] + left == multipliers[0, 0]
    slopes, w = np.array([[[0.0], [1.0]]]), multipliers[0, 1:].copy()
    dual._ascend(slopes, np.ones((1, 2)), 2, np.ones(1), multipliers, w, 1e-6)
    assert multipliers[0] == pytest.approx([1.0, 0.0])
    assert w == pytest.approx([0.0])


def test_interior_points_converge_where_a_slack_has_many_planes():
    # The planes touch a parabola.
    rng = np.random.default_rng(0)
    n_features = 120
    places = rng.normal(size=(1500, n_features)) / np.sqrt(n_features)
    target = rng.normal(size=n_features) / np.sqrt(n_features)
    slopes = target - places
    offsets = 1.0 + np.sum(slopes * places, axis=1) + 0.5 * np.sum((places - target) ** 2, axis=1)
    planes = working_set(slopes[None], offsets[None], np.ones(1))
    w, multipliers, _ = interior.solve(planes, 1e4, 1e-3, np.zeros(n_features))
    assert planes.certify(1e4, w, multipliers)[-1] <= 1e-3


def test_slopes_in_coordinates_of_their_span_are_the_same_slopes(rng):
    planes = random_planes(rng, 2, 4, 40)
    planes.slopes[1, 0] = planes.slopes[0, 1] + 1e-9 * planes.slopes[0, 2]  # dependent slopes, which take no coordinate
    planes.slopes[1, 2] = 0.0
    planes.slopes[1, 3] *= 1e8
    coordinates, basis = planes.span()
    lengths = np.linalg.norm(basis, axis=1)
    assert sorted(lengths.round(12)) == [0.0, 0.0, *[1.0] * 6]
    np.testing.assert_allclose(basis @ basis.T, np.diag(lengths), atol=1e-12)
    slopes = planes.slopes[:, : planes.n]
    scale = np.maximum(np.linalg.norm(slopes, axis=2, keepdims=True), 1.0)
    np.testing.assert_allclose(coordinates @ basis / scale, slopes / scale, atol=1e-12)
    few = random_planes(rng, 2, 4, 15)
    assert few.span() == (few.slopes, None)


def test_rows_in_excess_of_columns_are_assigned_the_last_ranks():
    benefit = np.array([[0.0, 5.0], [4.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert best_assignment(benefit).tolist() == [1, 0, 2, 3]
