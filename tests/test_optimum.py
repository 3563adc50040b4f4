"""Training against CVXPY's optimum of eq. (1) with all rankings of all queries written out as constraints."""

import itertools

import cvxpy
import numpy as np
import pytest
import scipy.sparse

from structrank import StructRankSVM, most_violated

SINGLE = ["auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm"]
COMBO = ["map", "ndcg", "mrr"]
K = 3


def tiny_problem(seed):
    rng = np.random.default_rng(seed)
    X, y, qid = [], [], []
    direction = rng.normal(size=3)
    for query in range(int(rng.integers(5, 9))):
        n = int(rng.integers(4, 7))
        documents = rng.normal(size=(n, 3))
        labels = (documents @ direction + rng.normal(size=n) > 0.5).astype(int)
        labels[:2] = (1, 0)
        X.append(documents)
        y.append(labels)
        qid.append(np.full(n, query))
    return np.concatenate(X), np.concatenate(y), np.concatenate(qid)


def all_rankings(X, y, criterion, feature_map):
    """Return phi(y*) - phi(y) and Delta of every ranking of one query, from the definitions."""
    relevant, irrelevant = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    n = len(y)
    decay = 1 / np.sqrt(1 + np.arange(n))
    mean_decay = np.where(y > 0, decay[: len(relevant)].mean(), decay[len(relevant) :].mean())
    rows = set()
    for ranking in itertools.permutations(range(n)):
        ranks = np.argsort(ranking)
        relevant_ranks = np.sort(ranks[relevant])
        if criterion == "auc":
            loss = (ranks[relevant][:, None] > ranks[irrelevant][None, :]).mean()
        elif criterion == "map":
            loss = 1 - ((1 + np.arange(len(relevant))) / (1 + relevant_ranks)).mean()
        elif criterion == "mrr":
            loss = 1 - (1 / (1 + relevant_ranks[0]) if relevant_ranks[0] < K else 0)
        else:
            discount = 1 / np.log2(np.maximum(1 + np.arange(n), 2))
            discount[n if criterion == "ndcg-nc" else K :] = 0
            loss = 1 - discount[relevant_ranks].sum() / discount[: len(relevant)].sum()
        c = np.zeros(n)  # phi(y) - phi(y*) = sum c_i x_i
        if feature_map == "po":
            for g, b in itertools.product(relevant, irrelevant):
                if ranks[b] < ranks[g]:
                    c[[g, b]] += np.array([-2.0, 2.0]) / (len(relevant) * len(irrelevant))
        elif feature_map == "mrr":
            first = relevant[np.argmin(ranks[relevant])]
            ahead = irrelevant[ranks[irrelevant] < ranks[first]]
            c[ahead] += 1
            c[first] -= len(ahead)
        else:
            c = decay[ranks] - mean_decay
        rows.add((*np.round(-c @ X, 12), round(loss, 12)))
    rows = np.array(sorted(rows))
    return rows[:, :-1], rows[:, -1]


MAP_OF = {"mrr": "mrr", "dorm": "dorm"}


def optimum(X, y, qid, criteria, Cs, slack, query_weights=None):
    """Return the optimal value, and a function that computes the objective at any w."""
    queries = np.unique(qid)
    weights = np.ones(len(queries)) if query_weights is None else query_weights
    weights = weights / weights.sum()
    tables = [
        [all_rankings(X[qid == q], y[qid == q], criterion, MAP_OF.get(criterion, "po")) for criterion in criteria]
        for q in queries
    ]

    def objective(w):
        total = 0.5 * w @ w
        for weight, of_query in zip(weights, tables, strict=True):
            maxima = [(losses - slopes @ w).max() for slopes, losses in of_query]
            total += weight * (Cs[0] * max(maxima) if slack == "shared" else np.dot(Cs, maxima))
        return total

    w = cvxpy.Variable(X.shape[1])
    slacks = cvxpy.Variable((len(queries), 1 if slack == "shared" else len(criteria)))
    constraints = [
        slacks[i, 0 if slack == "shared" else l] >= losses - slopes @ w
        for i, of_query in enumerate(tables)
        for l, (slopes, losses) in enumerate(of_query)  # noqa: E741
    ]
    costs = np.outer(weights, [Cs[0]] if slack == "shared" else Cs)
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + cvxpy.sum(cvxpy.multiply(costs, slacks))), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return objective(w.value), objective


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("formulation", ["auto", "one-slack", "n-slack"])
@pytest.mark.parametrize("criterion", SINGLE)
def test_training_reaches_the_optimum_over_all_rankings(criterion, formulation):
    for seed, C in [(0, 0.3), (1, 3.0), (2, 30.0)]:
        X, y, qid = tiny_problem(seed)
        best, objective = optimum(X, y, qid, [criterion], [C], "separate")
        solver = "osqp" if seed else "dual"
        model = StructRankSVM(criterion, C=C, k=K, formulation=formulation, solver=solver, tol=1e-6).fit(X, y, qid=qid)
        assert objective(model.coef_) == pytest.approx(best, rel=1e-4)
        assert model.certificate_.primal == pytest.approx(objective(model.coef_), rel=1e-9)
        assert model.certificate_.dual <= best * (1 + 1e-8)
        assert best <= model.certificate_.primal * (1 + 1e-8)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("formulation", ["auto", "one-slack", "n-slack"])
@pytest.mark.parametrize(
    ("slack", "Cs"), [("separate", [2.0, 2.0, 2.0]), ("separate", [4.0, 1.0, 0.1]), ("shared", [2.0, 2.0, 2.0])]
)
def test_combo_reaches_the_optimum_over_all_rankings(slack, Cs, formulation):
    X, y, qid = tiny_problem(3)
    best, objective = optimum(X, y, qid, COMBO, Cs, slack)
    C = Cs if slack == "separate" else Cs[0]
    model = StructRankSVM(COMBO, C=C, k=K, slack=slack, formulation=formulation, tol=1e-6).fit(X, y, qid=qid)
    assert objective(model.coef_) == pytest.approx(best, rel=1e-4)
    assert model.certificate_.dual <= best * (1 + 1e-8)
    assert best <= model.certificate_.primal * (1 + 1e-8)


def test_an_offset_of_a_single_query_is_found(assert_same_optimum):
    rng = np.random.default_rng(0)
    X, qid = rng.standard_normal((4000, 3)), np.repeat(np.arange(400), 10)
    y = (X[:, 0] + rng.standard_normal(4000) > 0.5).astype(int)
    X[qid == 150] += 2.0**30
    differences = X - X[np.searchsorted(qid, qid)]
    found, expected = (StructRankSVM("map", C=1e4).fit(data, y, qid=qid) for data in (X, differences))
    assert_same_optimum(found, expected)
    scores = differences @ found.coef_
    queries = [qid == query for query in range(400) if 0 < y[qid == query].sum() < 10]
    risk = np.mean([most_violated(scores[rows], y[rows], criterion="map").value for rows in queries])
    assert found.certificate_.primal == pytest.approx(0.5 * found.coef_ @ found.coef_ + 1e4 * risk, rel=1e-9)


def beside_zeros(X):
    """Return a sparse matrix with columns of zeros, so that it is mostly empty."""
    return scipy.sparse.csr_matrix(np.hstack([X, np.zeros((X.shape[0], 4 * X.shape[1]))]))


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize(
    ("criterion", "form"),
    [(name, np.asarray) for name in SINGLE]
    + [("map", form) for form in (np.asfortranarray, scipy.sparse.csr_matrix, beside_zeros)],
)
def test_the_certificate_encloses_the_optimum_at_large_offsets(criterion, form):
    X, y, qid = tiny_problem(5)
    X = X + np.array([1e9, -3e8, 0.0]) + 1e8 * qid[:, None]
    differences = X - X[np.searchsorted(qid, qid)]  # exact, as the values are close
    best, objective = optimum(differences, y, qid, [criterion], [300.0], "separate")
    model = StructRankSVM(criterion, C=300.0, k=K, tol=1e-6).fit(form(X), y, qid=qid)
    assert not model.coef_[3:].any()
    assert model.certificate_.primal == pytest.approx(objective(model.coef_[:3]), rel=1e-9)
    assert model.certificate_.dual <= best * (1 + 1e-8)
    assert best <= model.certificate_.primal * (1 + 1e-8)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_query_weights_enter_the_objective():
    X, y, qid = tiny_problem(4)
    weights = np.arange(1.0, len(np.unique(qid)) + 1)
    best, objective = optimum(X, y, qid, ["map"], [5.0], "separate", weights)
    model = StructRankSVM("map", C=5.0, tol=1e-6).fit(X, y, qid=qid, sample_weight=weights[qid])
    assert objective(model.coef_) == pytest.approx(best, rel=1e-4)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-2])
@pytest.mark.parametrize("criterion", SINGLE)
def test_the_certificate_encloses_the_optimum_at_loose_tolerances(criterion, tol):
    for seed in range(3):
        X, y, qid = tiny_problem(seed + 10)
        best, _ = optimum(X, y, qid, [criterion], [10.0], "separate")
        for max_iter in (1, 2, 1000):
            model = StructRankSVM(criterion, C=10.0, k=K, tol=tol, max_iter=max_iter).fit(X, y, qid=qid)
            assert model.certificate_.dual <= best * (1 + 1e-8)
            assert best <= model.certificate_.primal * (1 + 1e-8)
            assert model.certificate_.gap >= 0


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("solver", ["dual", "interior", "osqp", "cvxpy", "cvxpy:CLARABEL", "cvxpy:SCS"])
def test_every_solver_gives_the_same_model(solver, assert_same_optimum):
    X, y, qid = tiny_problem(5)
    expected = StructRankSVM("map", C=3.0, tol=1e-5).fit(X, y, qid=qid)
    model = StructRankSVM("map", C=3.0, tol=1e-5, solver=solver).fit(X, y, qid=qid)
    assert_same_optimum(model, expected)
    assert model.certificate_.relative_gap < 1e-3
    assert model.history_[0].solver == solver


def test_graded_auc_with_pairs_as_weights_is_rank_svm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.clip(np.round(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=60)), 0, 3)
    qid = np.repeat(np.arange(6), [4, 6, 8, 12, 14, 16])
    pairs = [(i, j) for i in range(60) for j in range(60) if qid[i] == qid[j] and y[i] > y[j]]
    difference = np.array([X[i] - X[j] for i, j in pairs])
    w = cvxpy.Variable(4)
    hinge = cvxpy.sum(cvxpy.pos(1 - 2 * difference @ w)) / len(pairs)
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + 5.0 * hinge))
    problem.solve(solver="CLARABEL")
    model = StructRankSVM("auc", C=5.0, relevant_from=None, query_weight="pairs", tol=1e-6).fit(X, y, qid=qid)
    assert model.certificate_.primal == pytest.approx(problem.value, rel=1e-4)
    assert model.coef_ == pytest.approx(w.value, abs=1e-2)
