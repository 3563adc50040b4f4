"""Lambdas and swap gains against brute force: re-evaluated measures and finite differences of the cost."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from structrank import metrics
from structrank._kernels import lambdas as kernels
from structrank.datasets.queries import group_by_query
from structrank.learners import lambda_gradients, swap_gains
from structrank.learners.cross_entropy import equally_weighted_pairs, mean_cross_entropy
from structrank.learners.plans import CONSTRUCTIONS, MARGIN, make_plan

MEASURES = [
    "ndcg",
    "ndcg@3",
    metrics.NDCG(k=4, discount="kdd08"),
    metrics.NDCG(gain="linear"),
    "map",
    "mrr",
    "mrr@2",
    metrics.MAP(relevant_from=2),
    metrics.MRR(k=3, relevant_from=2),
    metrics.CNDCG(),
    metrics.CNDCG(k=4),
]
CLICKS = [0.0, 0.25, 0.5, 1.0, np.nan, np.nan]


def value_of(labels_by_rank, measure):
    n_docs = len(labels_by_rank)
    labels = np.array(labels_by_rank, dtype=np.float64)
    return metrics.Evaluator(metrics.parse(measure), labels, group_by_query(0, n_docs)).per_query(-np.arange(n_docs))[0]


def random_queries(rng, n, labels=None):
    for _ in range(n):
        n_docs = rng.integers(1, 8)
        drawn = rng.integers(0, rng.integers(2, 6), n_docs) if labels is None else rng.choice(labels, n_docs)
        yield drawn, rng.normal(scale=2.0, size=n_docs)


def labels_for(measure):
    return CLICKS if isinstance(measure, metrics.CNDCG) else None


def normaliser(labels, measure):
    """Return Z, the divisor of the measure."""
    if isinstance(measure, metrics.MAP):
        return max(1, np.count_nonzero(labels >= measure.relevant_from))
    if isinstance(measure, metrics.MRR):
        return 1.0
    ranks = np.arange(len(labels))
    discounts = {"log2": 1 / np.log2(2 + ranks), "kdd08": 1 / np.log2(1 + np.maximum(ranks, 1))}[measure.discount]
    discounts[measure.k or len(labels) :] = 0
    if isinstance(measure, metrics.CNDCG):
        gains = 2.0 ** (4 * np.nan_to_num(labels)) - 1
    else:
        gains = {"exp2": 2.0**labels - 1, "linear": labels.astype(float)}[measure.gain]
    return np.sort(gains)[::-1] @ discounts


def pairs_of(construction, labels, order, measure):
    """List (better, worse, weight) by document for the ranking `order`, from swap gains by brute force."""
    grades = labels >= measure.relevant_from if isinstance(measure, (metrics.MAP, metrics.MRR)) else labels
    grades = np.nan_to_num(np.asarray(grades, dtype=float), nan=-1.0)  # without clicks: last, and without pairs
    base, n = value_of(labels[order], measure), len(labels)

    def gain(a, b):
        swapped = labels[order].copy()
        swapped[a], swapped[b] = swapped[b], swapped[a]
        return abs(value_of(swapped, measure) - base)

    Z = normaliser(labels, measure)
    if construction in ("ranknet-weight-pairs", "spring-smooth"):
        ranks = [(a, b) for a in range(n) for b in range(a + 1, n)]
    elif construction in ("local-gradient", "local-cost"):
        ranks = [(a, a + 1) for a in range(n - 1)]
    else:
        by_rank = grades[order]
        ideal = np.sort(by_rank)[::-1]
        ranks = []
        for grade in np.unique(by_rank):
            free = [r for r in range(n) if ideal[r] == grade and by_rank[r] != grade]
            misplaced = [r for r in range(n) if by_rank[r] == grade and ideal[r] != grade]
            ranks += list(zip(misplaced, free, strict=True))
    found = []
    for a, b in ranks:
        i, j = order[a], order[b]
        if grades[i] == grades[j] or min(grades[i], grades[j]) < 0:
            continue
        if grades[i] < grades[j]:
            i, j = j, i
        weight = gain(a, b)
        if construction == "spring-smooth":
            weight = max(1.0, Z * weight) / Z
        if construction == "discrete-bounded":
            weight = min(1.0, Z * weight) / Z
        found.append((i, j, weight))
    return found


def cost_of(construction, scores, pairs):
    total = 0.0
    for i, j, weight in pairs:
        o = scores[i] - scores[j]
        if construction == "local-gradient":
            total -= np.sign(o) * weight * np.log1p(abs(o) / MARGIN)
        elif construction == "discrete-bounded":
            total -= weight * o
        else:
            total += weight * np.logaddexp(0.0, -o)
    return total


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_swap_gains_equal_differences_of_the_measure(measure, rng):
    for labels, _ in random_queries(rng, 15, labels_for(measure)):
        gains, base = swap_gains(labels, measure), value_of(labels, measure)
        if np.isnan(base):
            assert not gains.any()
            continue
        for i in range(len(labels)):
            for j in range(len(labels)):
                swapped = labels.copy()
                swapped[i], swapped[j] = swapped[j], swapped[i]
                assert gains[i, j] == pytest.approx(value_of(swapped, measure) - base, abs=1e-12)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_lambdas_are_minus_the_gradient_of_the_implicit_cost_with_ranks_fixed(measure, construction, rng):
    parsed = metrics.parse(measure)
    for labels, scores in random_queries(rng, 5, labels_for(parsed)):
        lambdas = lambda_gradients(scores, labels, measure, construction)
        assert abs(lambdas.sum()) < 1e-12
        if np.isnan(value_of(labels, parsed)):
            assert not lambdas.any()
            continue
        pairs = pairs_of(construction, labels, np.argsort(-scores), parsed)
        step = 1e-6
        for i in range(len(labels)):
            up, down = scores.copy(), scores.copy()
            up[i] += step
            down[i] -= step
            slope = (cost_of(construction, up, pairs) - cost_of(construction, down, pairs)) / (2 * step)
            assert lambdas[i] == pytest.approx(-slope, abs=1e-6)


@pytest.mark.parametrize("spread", [0.1, 5.0, 1000.0])
def test_the_cross_entropy_is_the_mean_over_pairs(spread, rng):
    labels, scores, indptr = rng.integers(0, 3, 90), spread * rng.normal(size=90), np.array([0, 50, 60, 90])
    expected = []
    for first, stop in pairwise(indptr):
        y, s = labels[first:stop], scores[first:stop]
        expected.append(np.logaddexp(0.0, s - s[:, None])[y[:, None] > y].mean())
    plan = equally_weighted_pairs(labels.astype(float), indptr, np.ones(3))
    assert mean_cross_entropy(scores, plan) == pytest.approx(np.mean(expected), rel=1e-12)


def test_ranknet_weights_all_pairs_of_different_labels_equally(rng):
    for labels, scores in random_queries(rng, 20):
        better = labels[:, None] > labels[None, :]
        forces = better / (1 + np.exp(scores[:, None] - scores[None, :]))
        assert lambda_gradients(scores, labels, None) == pytest.approx(forces.sum(1) - forces.sum(0), abs=1e-12)


@pytest.mark.parametrize("cost", ["cross-entropy", "sigmoid"])
def test_forces_are_first_and_curvatures_second_derivatives(cost):
    scores, labels = np.array([0.3, -0.4]), np.array([1.0, 0.0])
    plan = make_plan(metrics.NDCG(), labels, np.array([0, 2]), cost=cost, shift=0.7)

    def force(gap):
        lambdas, curvatures = np.zeros(2), np.zeros(2)
        kernels.add_lambdas(np.array([gap, 0.0]), plan, 1.0, lambdas, curvatures)
        return lambdas[0], curvatures[0]

    gap, step, weight = scores[0] - scores[1], 1e-5, swap_gains([1, 0], "ndcg")[0, 1]
    expected = {"cross-entropy": lambda o: np.log1p(np.exp(-o)), "sigmoid": lambda o: 1 / (1 + np.exp(o + 0.7))}[cost]
    slope = (expected(gap + step) - expected(gap - step)) / (2 * step)
    assert force(gap)[0] == pytest.approx(-abs(weight) * slope, abs=1e-9)
    assert force(gap)[1] == pytest.approx((force(gap - step)[0] - force(gap + step)[0]) / (2 * step), abs=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_click_lambdas_are_of_clicked_pairs_of_a_group_at_their_ranks_in_the_whole_list(grouped, rng):
    for clicks, scores in random_queries(rng, 20, CLICKS):
        n, order, expected, n_pairs = len(clicks), np.argsort(-scores), np.zeros(len(clicks)), 0
        grades = rng.integers(0, 2, n) if grouped else np.zeros(n)
        for a, b in combinations(range(n), 2):
            swapped = order.copy()
            swapped[[a, b]] = order[[b, a]]
            change = value_of(clicks[swapped], "cndcg@4") - value_of(clicks[order], "cndcg@4")
            i, j = sorted(order[[a, b]], key=lambda document: -clicks[document])
            if clicks[i] > clicks[j] and grades[i] == grades[j] and abs(change) > 1e-12:
                expected[[i, j]] += np.array([1.0, -1.0]) * abs(change) / (1 + np.exp(scores[i] - scores[j]))
                n_pairs += 1
        lambdas, plan = np.zeros(n), make_plan(metrics.CNDCG(4), clicks, np.array([0, n]), groups=grades)
        assert kernels.add_lambdas(scores, plan, 1.0, lambdas, np.zeros(n)) == n_pairs
        assert lambdas == pytest.approx(expected, abs=1e-12)


def test_queries_are_independent_and_weighted(rng):
    labels, scores = rng.integers(0, 4, 30).astype(float), rng.normal(size=30)
    indptr = np.array([0, 7, 8, 20, 30])
    plan = make_plan(metrics.NDCG(k=5), labels, indptr, query_weights=np.array([1.0, 1.0, 0.0, 2.0]))
    lambdas = np.zeros(30)
    kernels.add_lambdas(scores, plan, 0.5, lambdas, np.zeros(30))
    for q, weight in enumerate((1.0, 1.0, 0.0, 2.0)):
        part = slice(indptr[q], indptr[q + 1])
        expected = 0.5 * weight * lambda_gradients(scores[part], labels[part], "ndcg@5")
        assert lambdas[part] == pytest.approx(expected, abs=1e-14)


def test_effective_pairs_are_the_pairs_whose_swap_changes_the_measure():
    labels = np.array([0.0, 1, 0, 1, 0, 0])  # by rank
    scores, indptr = -np.arange(6.0), np.array([0, 6])

    def effective(measure):
        plan = make_plan(metrics.parse(measure) if measure else None, labels, indptr)
        return kernels.add_lambdas(scores, plan, 1.0, np.zeros(6), np.zeros(6))

    assert effective(None) == effective("ndcg") == effective("map") == 8
    assert effective("ndcg@1") == 2  # the first document with each relevant one
    assert effective("mrr") == 2 + 3  # and the first relevant document with each irrelevant one below
    plan = make_plan(None, labels, indptr)
    assert kernels.count_pairs(plan).tolist() == [8]


def test_scaling_by_deviation_gives_each_query_deviation_one(rng):
    lambdas = np.concatenate([rng.normal(size=5), np.zeros(3), 10 * rng.normal(size=4)])
    kernels.scale_by_deviation(lambdas, np.array([0, 5, 8, 12]))
    assert lambdas[:5].std() == pytest.approx(1.0)
    assert not lambdas[5:8].any()
    assert lambdas[8:].std() == pytest.approx(1.0)


def test_large_score_differences_do_not_overflow():
    with np.errstate(all="raise"):
        lambdas = lambda_gradients([-1e4, 1e4, 0.0], [2, 0, 1], "ndcg")
    assert np.isfinite(lambdas).all()
    assert abs(lambdas.sum()) < 1e-12
    assert lambdas[0] > 0 > lambdas[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1.0], "labels": [0, 1]}, "scores has 1 entries but labels has 2 rows"),
        ({"scores": [1.0, np.inf], "labels": [0, 1]}, "scores contains inf at row 1"),
        ({"scores": [1.0, 2.0], "labels": [0, -1]}, "labels contains -1 at row 1"),
        ({"scores": ["a", 2.0], "labels": [0, 1]}, "scores has 'a' at row 0"),
        ({"scores": [], "labels": []}, "labels has 0 rows"),
        ({"scores": [1.0, 2.0], "labels": [0, 1], "measure": "auc"}, "'auc' has no lambdas"),
        ({"scores": [1.0, 2.0], "labels": [0, 1], "measure": "ndgc"}, "measure 'ndgc' is not known"),
        ({"scores": [1.0, 2.0], "labels": [0, 1], "construction": "springs"}, "construction='springs' is not known"),
        ({"scores": [1.0, 2.0], "labels": [0, 2], "measure": "cndcg"}, "click labels must lie in"),
    ],
)
def test_invalid_input_is_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        lambda_gradients(**arguments)


def test_swap_gains_need_a_measure():
    with pytest.raises(ValueError, match="measure=None"):
        swap_gains([1, 0], None)
