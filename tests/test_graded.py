"""Graded NDCG@k and ERR@k with phi_po: against exhaustive search, against CVXPY, and through training."""

import itertools
from contextlib import closing

import cvxpy
import numpy as np
import pytest
import scipy.sparse

from structrank import StructRankSVM, metrics, most_violated
from structrank.criteria import ERR, NDCG, parse
from structrank.feature_maps import PartialOrder
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.sources import sources_of
from structrank.training.structured_loss import StructuredLoss

ALL_RANKINGS = {n: np.array(list(itertools.permutations(range(n)))) for n in range(2, 8)}
TABLE = (0.0, 1.0, 1.5, 4.0, 20.0)


# --- the definitions, written again, for many rankings at once; rankings[y, r] is the document at rank r ---


def losses_of(criterion, rankings, labels, k, discount, gain="exp2"):
    n, ideal = len(labels), np.argsort(-labels, kind="stable")[None]
    in_top = np.arange(n) < k
    if criterion == "err":
        stops = (2.0**labels - 1) / 2.0**4

        def credit(some):
            passed = np.cumprod(np.concatenate([np.ones((len(some), 1)), 1 - stops[some][:, :-1]], axis=1), axis=1)
            return (stops[some] * passed * in_top / (1 + np.arange(n))).sum(axis=1)
    else:
        gains = {"exp2": 2.0**labels - 1, "linear": labels.astype(float), TABLE: np.array(TABLE)[labels]}[gain]
        ranks = 1 + np.arange(n)
        table = in_top / np.log2(1 + ranks if discount == "log2" else np.maximum(ranks, 2))

        def credit(some):
            return gains[some] @ table

    return 1 - credit(rankings) / credit(ideal)


def margins_of(rankings, labels, scores):
    """w.(phi(y) - phi(y*)): twice the mean over pairs of the score difference of those in the wrong order."""
    sorted_labels, sorted_scores = labels[rankings], scores[rankings]
    upper = np.triu(np.ones((len(labels),) * 2, bool), 1)
    wrong = (sorted_labels[:, :, None] < sorted_labels[:, None, :]) & upper
    n_pairs = (labels[:, None] > labels[None, :]).sum()
    return 2 / n_pairs * (wrong * (sorted_scores[:, :, None] - sorted_scores[:, None, :])).sum(axis=(1, 2))


def random_query(rng, n, n_grades):
    """Scores at scales where neither loss nor score decides alone; a third of the queries have ties."""
    labels = rng.integers(0, n_grades, n)
    labels[:2] = rng.permutation(n_grades)[:2]
    scores = rng.integers(-2, 3, n) / 4.0 if rng.integers(3) == 0 else rng.normal(size=n) * 10 ** rng.uniform(-2, 1)
    return scores, labels


CASES = [("ndcg", "log2", "exp2"), ("ndcg", "kdd08", "linear"), ("ndcg", "kdd08", TABLE), ("err", "log2", "exp2")]


@pytest.mark.parametrize(("criterion", "discount", "gain"), CASES)
@pytest.mark.parametrize("n_grades", [2, 3, 4, 5])
def test_the_oracle_equals_exhaustive_search(criterion, discount, gain, n_grades):
    rng = np.random.default_rng(n_grades + len(CASES) * len(criterion))
    for n in [2, 3, 4, 5] * 60 + [6] * 40 + [7] * 12:
        scores, labels = random_query(rng, n, n_grades)
        k = int(rng.integers(1, n + 2))
        found = most_violated(scores, labels, criterion, k, discount=discount, gain=gain, relevant_from=None)
        arguments = labels, k, discount, gain
        losses = losses_of(criterion, ALL_RANKINGS[n], *arguments)
        best = (losses + margins_of(ALL_RANKINGS[n], labels, scores)).max()
        own_loss = losses_of(criterion, found.ranking[None], *arguments)[0]
        tolerance = 1e-12 * max(1.0, np.abs(scores).max() * n)
        assert found.value == pytest.approx(best, abs=tolerance), (k, scores, labels)
        assert found.loss == pytest.approx(own_loss, abs=1e-12)
        assert found.value == pytest.approx(own_loss + margins_of(found.ranking[None], labels, scores)[0], abs=tolerance)
        assert found.value == pytest.approx(found.coefficients @ scores + found.loss, abs=tolerance)


def lattice_by_recursion(scores, labels, k, credit):
    """The best value over the orders of the top k, with the tail by score; `credit(grade, rank, counts)`."""
    grades = [np.sort(scores[labels == label])[::-1] for label in np.unique(labels)]
    scale = 2 / sum(len(a) * len(b) for a, b in itertools.combinations(grades, 2))
    best = {(0,) * len(grades): 0.0}
    for rank in range(min(k, len(scores))):
        reached = {}
        for counts, value in best.items():
            for g, some in enumerate(grades):
                if counts[g] < len(some):
                    passed = sum((some[counts[g]] - grades[h][counts[h] :]).sum() for h in range(g + 1, len(grades)))
                    key = (*counts[:g], counts[g] + 1, *counts[g + 1 :])
                    candidate = value + scale * passed - credit(g, rank, counts)
                    reached[key] = max(reached.get(key, -np.inf), candidate)
        best = reached

    def tail(counts):
        left = [some[c:] for some, c in zip(grades, counts, strict=True)]
        return scale * sum(np.maximum(low[:, None] - high[None], 0).sum() for low, high in itertools.combinations(left, 2))

    return 1 + max(value + tail(counts) for counts, value in best.items())


@pytest.mark.parametrize("criterion", ["ndcg", "err"])
def test_the_oracle_equals_a_plain_recursion_on_long_lists(criterion):
    rng = np.random.default_rng(3)
    for n_grades, k in [(2, 30), (3, 10), (4, 6), (5, 5), (7, 3)] * 2:
        scores, labels = random_query(rng, int(rng.integers(8, 60)), n_grades)
        if criterion == "err":
            labels = np.minimum(labels, 4)
        distinct = np.unique(labels)
        gains = (2.0**distinct - 1) / (16 if criterion == "err" else 1)
        ordered = np.sort(labels)[::-1][:k]
        if criterion == "err":
            reach = np.cumprod(np.concatenate([[1], 1 - (2.0**ordered - 1) / 16]))[:-1]
            ideal = (reach * (2.0**ordered - 1) / 16 / (1 + np.arange(len(ordered)))).sum()

            def credit(g, rank, counts, gains=gains, ideal=ideal):
                return gains[g] * np.prod((1 - gains) ** np.array(counts)) / (1 + rank) / ideal
        else:
            ideal = ((2.0**ordered - 1) / np.log2(2 + np.arange(len(ordered)))).sum()

            def credit(g, rank, counts, gains=gains, ideal=ideal):
                return gains[g] / np.log2(2 + rank) / ideal

        found = most_violated(scores, labels, criterion, k, discount="log2", relevant_from=None)
        expected = lattice_by_recursion(scores, labels, k, credit)
        assert found.value == pytest.approx(expected, abs=1e-10 * max(1, np.abs(scores).max()))


@pytest.mark.parametrize("discount", ["kdd08", "log2"])
def test_two_grades_agree_with_the_oracle_for_binary_relevance(discount):
    rng = np.random.default_rng(4)
    for _ in range(100):
        scores, labels = random_query(rng, int(rng.integers(2, 200)), 2)
        k = int(rng.integers(1, 20))
        graded = most_violated(scores, labels, "ndcg", k, discount=discount, relevant_from=None)
        binary = most_violated(scores, labels, "ndcg", k, "po", discount)
        assert graded.value == pytest.approx(binary.value, abs=1e-10 * max(1, np.abs(scores).max()))


@pytest.mark.parametrize("criterion", ["ndcg", "err"])
def test_row_order_and_shifts_change_nothing_and_ties_share_coefficients(criterion):
    rng = np.random.default_rng(5)
    for _ in range(40):
        labels, order = rng.integers(0, 5, 14), rng.permutation(14)
        labels[:2] = (0, 3)
        scores = rng.integers(-2, 3, 14) / 4.0
        found = most_violated(scores, labels, criterion, 4, relevant_from=None)
        again = most_violated(scores[order] + 2.0, labels[order], criterion, 4, relevant_from=None)
        assert again.value == pytest.approx(found.value, abs=1e-12)
        assert again.coefficients == pytest.approx(found.coefficients[order], abs=1e-12)
        for label, score in set(zip(labels.tolist(), scores.tolist(), strict=True)):
            assert np.ptp(found.coefficients[(labels == label) & (scores == score)]) < 1e-15


def test_ranking_explains_loss_and_coefficients_through_the_public_objects(rng):
    for criterion in (NDCG(k=4), NDCG(k=3, gain="linear", discount="log2"), ERR(k=5)):
        scores, labels = rng.normal(size=12), np.arange(12) % 5
        found = most_violated(scores, labels, criterion, relevant_from=None)
        phi = PartialOrder()
        expected = phi.coefficients(found.ranking, labels) - phi.ideal_coefficients(labels)
        assert found.coefficients == pytest.approx(expected, abs=1e-12)
        assert found.loss == pytest.approx(criterion.loss(found.ranking, labels, relevant_from=None), abs=1e-12)


def test_k_beyond_the_limit_of_steps_is_refused_with_the_largest_k():
    scores, labels = np.arange(60.0), np.arange(60) % 5
    assert most_violated(scores, labels, "ndcg", 20, relevant_from=None).value > 0
    with pytest.raises(
        ValueError, match=r"k=30 is too large.*5 different labels.*at most 300,000 are supported. Use k=20 or less"
    ):
        most_violated(scores, labels, "ndcg", 30, relevant_from=None)
    with pytest.raises(ValueError, match="k=60 is too large"):
        most_violated(scores, labels, "ndcg-nc", feature_map="po", relevant_from=None)


@pytest.mark.parametrize("gain", [[0, 1, 1, 3, 4], [0.0], [-1.0, 1.0], "binary", "exp3"])
def test_a_gain_that_does_not_rise_or_is_unknown_is_refused(gain):
    with pytest.raises(ValueError, match="gain"):
        most_violated([1.0, 2.0], [0, 1], "ndcg", relevant_from=None, gain=gain)


def test_labels_without_gain_and_err_of_binary_relevance_are_refused():
    with pytest.raises(ValueError, match=r"label 3 has no entry in gain=\(0.0, 1.0\); expected integer labels from 0 to 1"):
        most_violated([1.0, 2.0], [0, 3], "ndcg", relevant_from=None, gain=[0, 1])
    with pytest.raises(ValueError, match=r"'err'.*no exact oracle for binary relevance\. Set relevant_from=None"):
        most_violated([1.0, 2.0], [0, 1], "err")
    with pytest.raises(ValueError, match="5"):
        most_violated([1.0, 2.0], [0, 5], "err", relevant_from=None)


# --- training ---------------------------------------------------------------------------------------------------------


def graded_problem(seed, n_queries=7, most=6, n_features=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, most, n_queries)
    X = rng.normal(size=(sizes.sum(), n_features))
    qid = np.repeat(np.arange(n_queries), sizes)
    y = np.clip(np.round(1.5 + X @ rng.normal(size=n_features) + rng.normal(size=len(X))), 0, 4).astype(int)
    y[np.cumsum(sizes) - 1], y[np.cumsum(sizes) - 2] = 4, 0
    return X, y, qid


def optimum(X, y, qid, criteria, C, k, shared=False):
    """The optimum of eq. (1) by CVXPY, with every ranking of every query as a constraint."""
    tables = []
    for q in np.unique(qid):
        some, labels = X[qid == q], y[qid == q]
        rankings = ALL_RANKINGS[len(labels)]
        slopes = np.stack([margins_of(rankings, labels, column) for column in some.T], axis=1)
        tables.append([(slopes, losses_of(criterion, rankings, labels, k, "log2")) for criterion in criteria])
    w, slacks = cvxpy.Variable(X.shape[1]), cvxpy.Variable((len(tables), 1 if shared else len(criteria)))
    constraints = [
        slacks[q, 0 if shared else part] >= slopes @ w + losses
        for q, parts in enumerate(tables)
        for part, (slopes, losses) in enumerate(parts)
    ]
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C / len(tables) * cvxpy.sum(slacks)), constraints)
    return problem.solve(solver="CLARABEL")


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("criteria", [["ndcg"], ["err"], ["ndcg", "err"]], ids=" + ".join)
@pytest.mark.parametrize("slack", ["separate", "shared"])
def test_training_reaches_the_optimum_over_all_rankings(criteria, slack):
    if slack == "shared" and len(criteria) == 1:
        pytest.skip("one criterion has nothing to share")
    for seed, C, formulation in [(0, 1.0, "auto"), (1, 30.0, "n-slack")]:
        X, y, qid = graded_problem(seed)
        best = optimum(X, y, qid, criteria, C, 3, slack == "shared")
        model = StructRankSVM(
            criteria, C=C, k=3, discount="log2", relevant_from=None, slack=slack, formulation=formulation, tol=1e-6
        ).fit(X, y, qid=qid)
        assert model.certificate_.primal == pytest.approx(best, rel=1e-4)
        assert model.certificate_.dual <= best * (1 + 1e-6)


@pytest.mark.parametrize("form", ["float64", "float32", "sparse", "integer", "shuffled"])
def test_the_fused_pass_sums_the_violations_of_the_queries(form, rng):
    X, y, qid = graded_problem(3, n_queries=40, most=40)
    X = np.round(4 * X)  # with ties
    X = {"float32": X.astype(np.float32), "sparse": scipy.sparse.csr_matrix(X), "integer": X.astype(int)}.get(form, X)
    order = rng.permutation(len(y)) if form == "shuffled" else np.arange(len(y))
    w = np.array([0.125, -0.25, 0.5])  # exact, so that ties are ties in any order of summation
    for name in ("ndcg", "err"):
        criterion = parse(name, k=4, discount="log2")
        loss = StructuredLoss.of([criterion], relevant_from=None)
        with closing(Risk(InProcess(sources_of(X[order], y[order], qid[order])), loss)) as risk:
            plane, prediction = risk.plane(w), risk.plane(w, "prediction")
        scores = np.asarray(X @ w).ravel()
        found = [most_violated(scores[qid == q], y[qid == q], criterion, relevant_from=None) for q in range(40)]
        coefficients = np.zeros(len(y))
        for q, one in enumerate(found):
            coefficients[qid == q] = one.coefficients / 40
        assert risk.group_weights @ plane.value == pytest.approx(np.mean([one.value for one in found]))
        assert risk.group_weights @ plane.offset == pytest.approx(np.mean([one.loss for one in found]))
        assert risk.group_weights @ plane.slope == pytest.approx(-(X.T @ coefficients), abs=1e-9)
        # The prediction: the order by score, with the lowest grade first among equal scores.
        worst = [np.lexsort((y[qid == q], -scores[qid == q])) for q in range(40)]
        losses = [losses_of(name, one[None], y[qid == q], 4, "log2")[0] for q, one in enumerate(worst)]
        margins = [margins_of(one[None], y[qid == q], scores[qid == q])[0] for q, one in enumerate(worst)]
        assert risk.group_weights @ prediction.offset == pytest.approx(np.mean(losses))
        assert risk.group_weights @ prediction.value == pytest.approx(np.mean(margins))
        assert -(risk.group_weights @ prediction.slope @ w) == pytest.approx(np.mean(margins))


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("criterion", ["ndcg", "err", "auc"])
def test_the_ramp_lies_between_the_loss_and_the_convex_bound_and_does_not_raise_the_loss(criterion):
    X, y, qid = graded_problem(5, n_queries=40, most=30)
    settings = {"k": 5, "discount": "log2", "relevant_from": None}
    model = StructRankSVM(criterion, bound="ramp", **settings).fit(X, y, qid=qid)
    for one in model.rounds_:
        assert one.loss <= one.risk + 1e-9
    assert min(one.loss for one in model.rounds_) <= model.rounds_[0].loss
    parsed = parse(criterion, k=5, discount="log2")
    with closing(Risk(InProcess(sources_of(X, y, qid)), StructuredLoss.of([parsed], relevant_from=None))) as risk:
        prediction = risk.plane(model.coef_, "prediction")
        convex = risk.group_weights @ risk.plane(model.coef_).value
    loss = float(risk.group_weights @ prediction.offset)
    assert loss == pytest.approx(min(one.loss for one in model.rounds_), abs=1e-8)
    assert loss <= convex - risk.group_weights @ prediction.value + 1e-9 <= convex + 2e-9
    if criterion != "err":  # no scores are tied, so the loss is one minus the measure
        assert model.score(X, y, qid) == pytest.approx(1 - loss)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_a_path_and_a_resumed_checkpoint_give_the_model_of_one_fit(tmp_path):
    X, y, qid = graded_problem(6, n_queries=30, most=20)
    model = StructRankSVM("ndcg", k=5, relevant_from=None, gain=TABLE, C=10.0)
    alone = model.fit(X, y, qid=qid, checkpoint=tmp_path)
    again = StructRankSVM("ndcg", k=5, relevant_from=None, gain=TABLE, C=10.0).fit(X, y, qid=qid, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.coef_, alone.coef_)
    _, of_path = StructRankSVM("ndcg", k=5, relevant_from=None, gain=TABLE).fit_path(X, y, qid=qid, Cs=[1.0, 10.0])
    assert of_path.certificate_.dual <= alone.certificate_.primal
    assert alone.certificate_.dual <= of_path.certificate_.primal
    assert alone.score(X, y, qid) == metrics.evaluate(y, alone.predict(X), qid, metrics.NDCG(5, TABLE, "kdd08"))["ndcg@5"]
