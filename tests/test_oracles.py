"""The oracles against exhaustive search over all permutations, and against simple dynamic programmes on longer lists."""

import itertools
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

from structrank import StructRankSVM, most_violated
from structrank._kernels.pairs import are_few
from structrank.criteria import MRR, parse
from structrank.feature_maps import Permutation
from structrank.feature_maps import parse as parse_map
from structrank.training.executor import InProcess
from structrank.training.risk import Risk
from structrank.training.sources import sources_of
from structrank.training.structured_loss import StructuredLoss

PAIRS = [
    ("auc", "po"),
    ("map", "po"),
    ("ndcg", "po"),
    ("ndcg-nc", "po"),
    ("mrr", "mrr"),
    ("mrr", "po"),
    ("dorm", "dorm"),
    ("map", "dorm"),
    ("ndcg-nc", "dorm"),
    ("mrr", "dorm"),
]
CLIPPED = {"ndcg", "mrr", "dorm"}


# --- the definitions of the paper, for many rankings at once; ranks[y, i] is the rank of document i -------------------


def discounts(n, name, k):
    table = 1 / np.log2(2 + np.arange(n)) if name == "log2" else 1 / np.log2(np.maximum(1 + np.arange(n), 2))
    table[n if k is None else k :] = 0.0
    return table


def losses_of(criterion, ranks, labels, k, discount_name, gain=None):
    relevant = labels > 0
    relevant_ranks = np.sort(ranks[:, relevant], axis=1)
    n_relevant, n = relevant.sum(), len(labels)
    if criterion == "auc":
        return (ranks[:, relevant][:, :, None] > ranks[:, ~relevant][:, None, :]).mean(axis=(1, 2))
    if criterion == "map":
        return 1 - ((1 + np.arange(n_relevant)) / (1 + relevant_ranks)).mean(axis=1)
    if criterion == "mrr":
        first = relevant_ranks[:, 0]
        return 1 - np.where(first < (n if k is None else k), 1 / (1 + first), 0.0)
    table = discounts(n, discount_name, None if criterion == "ndcg-nc" else k)
    gain = relevant.astype(float) if gain is None else gain
    return 1 - table[ranks] @ gain / (np.sort(gain)[::-1] @ table)


def phis_of(feature_map, ranks, labels, scores, decay):
    """Compute w.phi of each ranking."""
    relevant = labels > 0
    if feature_map == "po":
        signs = np.where(ranks[:, relevant][:, :, None] < ranks[:, ~relevant][:, None, :], 1.0, -1.0)
        return (signs * (scores[relevant][:, None] - scores[~relevant][None, :])).mean(axis=(1, 2))
    if feature_map == "mrr":
        first_rank = ranks[:, relevant].min(axis=1)[:, None]
        first_score = (np.where(relevant, ranks == first_rank, False) * scores).sum(axis=1)[:, None]
        return (((ranks < first_rank) & ~relevant) * (scores - first_score)).sum(axis=1)
    return decay[ranks] @ scores


def phi_ideal(feature_map, labels, scores, decay):
    """Compute w.phi of the ideal ranking; for the permutation map, the mean over all ideal rankings."""
    if feature_map != "dorm":
        ranks = np.argsort(np.argsort(-labels, kind="stable"))
        return phis_of(feature_map, ranks[None], labels, scores, decay)[0]
    total, start = 0.0, 0
    for grade in sorted(set(labels.tolist()), reverse=True):
        members = np.flatnonzero(labels == grade)
        total += np.mean(decay[start : start + len(members)]) * scores[members].sum()
        start += len(members)
    return total


ALL_RANKS = {n: np.array(list(itertools.permutations(range(n)))) for n in range(2, 8)}


def judge(ranking, criterion, feature_map, labels, scores, k, discount_name, decay, gain=None):
    """Return the best value over all permutations, and the value and loss of the given ranking."""

    def values(ranks):
        losses = losses_of(criterion, ranks, labels, k, discount_name, gain)
        phis = phis_of(feature_map, ranks, labels, scores, decay)
        return phis - phi_ideal(feature_map, labels, scores, decay) + losses, losses

    found_values, found_losses = values(np.argsort(ranking)[None])
    return values(ALL_RANKS[len(scores)])[0].max(), found_values[0], found_losses[0]


def decay_values(n, cut=None):
    values = 1 / np.sqrt(1 + np.arange(n))
    values[n if cut is None else cut :] = 0
    return values


def random_query(rng, n):
    """Draw scores at scales where both loss and score matter, with ties in a third of the queries, and labels."""
    labels = np.zeros(n, int)
    labels[rng.permutation(n)[: rng.integers(1, n)]] = 1
    kind = rng.integers(3)
    scores = rng.integers(-2, 3, n) / 4.0 if kind == 0 else rng.normal(size=n) * 10 ** rng.uniform(-2, 1)
    return scores, labels


# --- the properties ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount_name", ["kdd08", "log2"])
@pytest.mark.parametrize(("criterion", "feature_map"), PAIRS)
def test_the_oracle_equals_exhaustive_search(criterion, feature_map, discount_name):
    rng = np.random.default_rng(sum(map(ord, criterion + feature_map + discount_name)))
    if criterion in ("auc", "map", "mrr") and discount_name == "log2":
        pytest.skip("this criterion has no discount")
    sizes = [2, 3, 4, 5] * 150 + [6] * 150 + [7] * 40
    for n in sizes:
        scores, labels = random_query(rng, n)
        k = int(rng.integers(1, n + 3)) if criterion in CLIPPED else 10
        cut = int(rng.integers(1, n + 2)) if rng.random() < 0.5 else None
        decay = decay_values(n, cut)
        found = most_violated(
            scores, labels, criterion, k, feature_map, discount_name, decay="sqrt" if cut is None else f"sqrt@{cut}"
        )
        arguments = (criterion, feature_map, labels, scores, k, discount_name, decay)
        best, value, delta = judge(found.ranking, *arguments)
        tolerance = 1e-12 * max(1.0, np.abs(scores).max() * n)
        assert found.value == pytest.approx(best, abs=tolerance), (n, k, scores, labels)
        assert found.value == pytest.approx(value, abs=tolerance)
        assert found.loss == pytest.approx(delta, abs=1e-12)
        assert found.value == pytest.approx(found.coefficients @ scores + found.loss, abs=tolerance)


@pytest.mark.parametrize("cut", [None, 2])
def test_graded_dorm_equals_exhaustive_search(cut):
    rng = np.random.default_rng(5)
    for n in [2, 3, 4, 5, 6] * 40:
        scores = random_query(rng, n)[0]
        labels = rng.integers(0, 4, n)
        if np.unique(labels).size == 1:
            labels[0] += 1
        k = int(rng.integers(1, n + 3))
        decay = decay_values(n, cut)
        found = most_violated(
            scores, labels, "dorm", k, decay="sqrt" if cut is None else "sqrt@2", relevant_from=None, discount="log2"
        )
        gain = 2.0**labels - 1
        arguments = ("ndcg", "dorm", labels, scores, k, "log2", decay, gain)
        best, value, delta = judge(found.ranking, *arguments)
        assert found.value == pytest.approx(best, abs=1e-10)
        assert (found.value, found.loss) == pytest.approx((value, delta), abs=1e-10)


def test_graded_auc_is_the_pairwise_hinge():
    rng = np.random.default_rng(6)
    for _ in range(200):
        n = int(rng.integers(2, 30))
        scores, labels = random_query(rng, n)
        labels = labels * rng.integers(1, 6, n)
        pairs = [(i, j) for i in range(n) for j in range(n) if labels[i] > labels[j]]
        hinge = np.mean([max(0.0, 1 - 2 * (scores[i] - scores[j])) for i, j in pairs])
        apart = np.array([scores[i] - scores[j] for i, j in pairs])
        found = most_violated(scores, labels, "auc", relevant_from=None)
        assert found.ranking is None
        assert found.value == pytest.approx(hinge, abs=1e-10)
        # A pair exactly 1/2 apart may count as wrong or not: its value is 0 either way.
        assert np.mean(apart < 0.5 - 1e-9) - 1e-12 <= found.loss <= np.mean(apart < 0.5 + 1e-9) + 1e-12
        assert found.coefficients @ scores + found.loss == pytest.approx(hinge, abs=1e-10)


def full_table(scores, labels, criterion, k, discount_name, greedy=False):
    """Run the dynamic programme of Figure 2 of the paper, for an additive loss and phi_po; `greedy`: with Fact 3.4."""
    relevant, irrelevant = np.sort(scores[labels > 0])[::-1], np.sort(scores[labels == 0])[::-1]
    n_relevant, n_irrelevant = len(relevant), len(irrelevant)
    irrelevant_sums = np.concatenate([[0], np.cumsum(irrelevant)])
    b = np.arange(n_irrelevant + 1)
    k = None if criterion in ("ndcg-nc", "map", "auc") else k
    if criterion == "map":
        credit = lambda g: (1 + g) / (1 + g + b) / n_relevant  # noqa: E731
    elif criterion == "auc":
        credit = lambda g: (1 - b / n_irrelevant) / n_relevant  # noqa: E731
    elif criterion == "mrr":
        credit = lambda g: np.where((g == 0) & (b < k), 1 / (1 + b), 0.0)  # noqa: E731
    else:
        table = discounts(n_relevant + n_irrelevant + 1, discount_name, k)
        credit = lambda g: table[g + b] / table[:n_relevant].sum()  # noqa: E731
    best = np.zeros(n_irrelevant + 1)
    for g in range(n_relevant):
        cell = 2 * (irrelevant_sums - b * relevant[g]) / (n_relevant * n_irrelevant) - credit(g)
        if greedy:  # from the best column of the previous row alone
            best = np.where(b < best.argmax(), -np.inf, cell + best.max()) if g else cell
        else:
            best = cell + (np.maximum.accumulate(best) if g else 0)
    return best.max() + 1


@pytest.mark.parametrize(
    ("n_relevant", "n_irrelevant", "few"),
    [(1, 9, True), (6, 11, True), (300, 5, True), (60, 200, False), (201, 61, False), (600, 650, False)],
)
def test_both_ways_to_count_wrong_pairs_of_auc_are_exact(n_relevant, n_irrelevant, few, rng):
    assert are_few(n_relevant, n_irrelevant) == few
    labels = rng.permutation(np.repeat([1, 0], [n_relevant, n_irrelevant]))
    X = np.round(rng.normal(size=(n_relevant + n_irrelevant, 2)), 1)  # with ties
    w = np.array([0.5 * np.pi, 0.1 * np.sqrt(2)])  # no pair is a half apart
    relevant, irrelevant = X[labels > 0], X[labels == 0]
    wrong = (relevant @ w)[:, None] - (irrelevant @ w)[None] < 0.5
    with closing(Risk(InProcess(sources_of(X, labels, 0)), StructuredLoss.of([parse("auc")]))) as risk:
        plane = risk.plane(w)
    assert plane.offset == pytest.approx([wrong.mean()])
    assert plane.slope[0] == pytest.approx(2 * (wrong.sum(axis=1) @ relevant - wrong.sum(axis=0) @ irrelevant) / wrong.size)
    assert plane.value == pytest.approx(plane.offset - plane.slope @ w)
    assert most_violated(X @ w, labels, "auc").value == pytest.approx(plane.value[0])


@pytest.mark.parametrize("discount_name", ["kdd08", "log2"])
@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "ndcg-nc", "mrr"])
def test_the_oracle_equals_the_full_dynamic_programme_on_long_lists(criterion, discount_name):
    rng = np.random.default_rng(7)
    for _ in range(150):
        n = int(rng.integers(8, 300))
        scores, labels = random_query(rng, n)
        scores = scores / rng.choice([1, 10, 100])
        k = int(rng.integers(1, n + 3))
        found = most_violated(scores, labels, criterion, k, "po", discount_name)
        best = full_table(scores, labels, criterion, k, discount_name)
        assert found.value == pytest.approx(best, abs=1e-10 * max(1, np.abs(scores).max()))


def test_the_greedy_recurrence_of_the_paper_misses_optima_that_the_oracle_finds():
    rng, values = np.random.default_rng(9), []
    for _ in range(500):
        n = int(rng.integers(3, 9))
        (scores, labels), k = random_query(rng, n), int(rng.integers(1, n + 1))
        greedy = full_table(scores, labels, "ndcg", k, "kdd08", greedy=True)
        values.append((greedy, most_violated(scores, labels, "ndcg", k, "po", "kdd08").value))
    greedy, exact = np.array(values).T
    assert (greedy <= exact + 1e-10).all()
    assert (greedy < exact - 1e-10).mean() > 0.01


@pytest.mark.parametrize("criterion", ["dorm", "ndcg-nc", "map"])
@pytest.mark.parametrize("cut", [None, 7])
def test_the_lattice_equals_the_assignment_problem(cut, criterion):
    rng = np.random.default_rng(8)
    for _ in range(60):
        n = int(rng.integers(8, 80))
        scores, labels = random_query(rng, n)
        k = int(rng.integers(1, n + 3))
        lattice, assigned = (
            most_violated(scores, labels, criterion, k, Permutation(cut=cut, assignment=assignment))
            for assignment in ("lattice", "scipy")
        )
        assert lattice.value == pytest.approx(assigned.value, abs=1e-9)
        assert assigned.loss == pytest.approx(parse(criterion, k).loss(assigned.ranking, labels), abs=1e-12)
        assert assigned.value == pytest.approx(scores @ assigned.coefficients + assigned.loss, abs=1e-9)
        if criterion == "dorm":  # two grades are the same problem
            graded = most_violated(scores, labels, criterion, k, Permutation(cut=cut), relevant_from=None)
            assert graded.value == pytest.approx(assigned.value, abs=1e-9)


def test_the_assignment_oracle_trains_the_same_model_and_is_rejected_where_not_exact(train, assert_same_optimum):
    by_lattice, by_assignment = (
        StructRankSVM("dorm", feature_map=Permutation(cut=30, assignment=assignment), tol=1e-5).fit(
            train.X, train.y, qid=train.qid
        )
        for assignment in ("lattice", "scipy")
    )
    assert_same_optimum(by_assignment, by_lattice)
    with pytest.raises(ValueError, match=r"assignment='scipy' is not exact for criterion 'mrr', as its credits fall; use"):
        most_violated([0.1, 0.2], [0, 1], "mrr", feature_map=Permutation(assignment="scipy"))
    with pytest.raises(ValueError, match=r"assignment='hungarian' is not known; choose one of: 'lattice', 'scipy'"):
        Permutation(assignment="hungarian")


@pytest.mark.parametrize("decay", ["sqrt", "log", "sqrt@30"])
@pytest.mark.parametrize("criterion", ["dorm", "map", "ndcg-nc", "mrr"])
def test_the_bounded_lattice_equals_the_whole_one(criterion, decay, rng):
    for n, scale in itertools.product((3, 63, 64, 65, 300), (0.0, 1e-3, 0.03, 1.0, 100.0)):
        relevant = rng.permutation(n) < rng.integers(1, n)
        scores = scale * rng.normal(size=n).round(rng.integers(1, 9))
        found = most_violated(scores, relevant, criterion=criterion, feature_map="dorm", decay=decay)
        one = parse(criterion)
        good, bad = -np.sort(-scores[relevant]), -np.sort(-scores[~relevant])
        weights, table, credits = parse_map("dorm", decay).decays(n), one.discounts(n), one.credits(n)
        worth = credits[: len(good)] / (credits[: len(good)] @ table[: len(good)])
        best = np.full((len(good) + 1, len(bad) + 1), -np.inf)
        best[0, 0] = 0.0
        for g, b in itertools.product(range(len(good) + 1), range(len(bad) + 1)):
            rank = g + b - 1
            if g:
                best[g, b] = best[g - 1, b] + weights[rank] * good[g - 1] - worth[g - 1] * table[rank]
            if b:
                best[g, b] = max(best[g, b], best[g, b - 1] + weights[rank] * bad[b - 1])
        ideal = good.sum() * weights[: len(good)].mean() + bad.sum() * weights[len(good) :].mean()
        assert found.value == pytest.approx(best[-1, -1] - ideal + 1.0, rel=1e-9, abs=1e-9 * max(scale, 1.0))


@pytest.mark.parametrize(("criterion", "feature_map"), PAIRS)
def test_values_and_coefficients_are_invariant_to_row_order_and_shifts(criterion, feature_map):
    rng = np.random.default_rng(9)
    for _ in range(50):
        scores, labels = random_query(rng, 12)
        found = most_violated(scores, labels, criterion, 4, feature_map)
        order = rng.permutation(12)
        permuted = most_violated(scores[order] + 3.0, labels[order], criterion, 4, feature_map)
        assert permuted.value == pytest.approx(found.value, abs=1e-10)
        if np.unique(scores).size == 12:
            assert permuted.coefficients == pytest.approx(found.coefficients[order], abs=1e-10)


@pytest.mark.parametrize(("criterion", "feature_map"), PAIRS)
def test_tied_documents_of_one_label_have_equal_coefficients(criterion, feature_map):
    labels = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0])
    found = most_violated(np.zeros(9), labels, criterion, 4, feature_map)
    for label in (0, 1):
        assert np.ptp(found.coefficients[labels == label]) < 1e-15


@pytest.mark.parametrize(("criterion", "feature_map"), PAIRS)
def test_loss_and_coefficients_are_those_of_the_ranking(criterion, feature_map):
    rng = np.random.default_rng(10)
    for _ in range(50):
        scores, labels = rng.normal(size=10), (rng.random(10) < 0.4).astype(int)
        labels[:2] = (0, 1)
        found = most_violated(scores, labels, criterion, 5, feature_map)
        phi = parse_map(feature_map)
        expected = phi.coefficients(found.ranking, labels) - phi.ideal_coefficients(labels)
        assert found.coefficients == pytest.approx(expected, abs=1e-12)
        assert found.loss == pytest.approx(parse(criterion, k=5).loss(found.ranking, labels), abs=1e-12)


def test_queries_with_one_kind_of_document_have_no_violation():
    for labels in ([1, 1, 1], [0, 0, 0]):
        found = most_violated([0.1, 0.3, 0.2], labels, "ndcg")
        assert (found.loss, found.value, found.ranking.tolist()) == (0.0, 0.0, [1, 2, 0])


@pytest.mark.parametrize("decay", [[3.0, 1.0, 2.0], [1.0, -1.0], lambda r: 1.0 + r, "cube", "sqrt@0", "sqrt@x"])
def test_a_decay_that_rises_or_is_unknown_is_rejected(decay):
    with pytest.raises(ValueError, match="decay"):
        most_violated([0.1, 0.2, 0.3], [1, 0, 0], "dorm", decay=decay)


@pytest.mark.parametrize("decay", [1 / np.sqrt(1 + np.arange(40)), lambda r: 1 / np.sqrt(1 + r)], ids=["array", "callable"])
def test_decays_as_array_and_callable_equal_the_named_decay(decay):
    rng = np.random.default_rng(11)
    scores, labels = random_query(rng, 20)
    assert most_violated(scores, labels, "dorm", decay=decay).value == most_violated(scores, labels, "dorm").value


@pytest.mark.parametrize("criterion", ["auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm"])
def test_scores_whose_sums_overflow_are_rejected(criterion):
    with pytest.raises(ValueError, match=r"scores has a number beyond 1e\+300"):
        most_violated([1e308, 1.5e308, 1.7e308], [0, 1, 0], criterion)
    assert np.isfinite(most_violated([1e300, -1e300, 0.0], [0, 1, 0], criterion).value)


def test_a_pair_without_exact_oracle_is_rejected_with_the_list_of_pairs():
    with pytest.raises(ValueError, match=r"'auc' with feature_map 'dorm' has no exact oracle.*mrr: mrr, po"):
        most_violated([1.0, 2.0], [0, 1], "auc", feature_map="dorm")
    with pytest.raises(ValueError, match=r"graded labels.*relevant_from=None.*auc: po"):
        most_violated([1.0, 2.0], [0, 1], "map", relevant_from=None)


@pytest.mark.parametrize(
    ("criterion", "feature_map"), [("auc", "po"), ("map", "po"), ("ndcg-nc", "po"), ("mrr", "po"), ("mrr", "mrr")]
)
def test_an_outlying_score_does_not_reduce_precision(criterion, feature_map):
    rng = np.random.default_rng(5)
    for n in range(3, 30):
        scores, labels = random_query(rng, n)
        place = int(rng.choice(np.flatnonzero(labels == 0)))
        if (labels == 0).sum() == 1:
            continue
        near, far = np.array(scores), np.array(scores)
        near[place], far[place] = -1e3, -1e16  # last in both cases, also in every most violated ranking
        expected = most_violated(near, labels, criterion, 10, feature_map)
        found = most_violated(far, labels, criterion, 10, feature_map)
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        np.testing.assert_array_equal(found.ranking, expected.ranking)


@pytest.mark.parametrize("feature_map", ["po", "mrr"])
def test_oracles_of_mrr_are_exact_for_other_discounts(feature_map):
    @dataclass(frozen=True)
    class Halved(MRR):
        def discounts(self, n):
            return np.concatenate([[0.5, 0.2, 0.15], np.zeros(n)])[:n]

        def loss(self, ranking, labels):
            return 1 - self.discounts(len(labels))[np.argmax(labels[ranking])] / 0.5

    rng = np.random.default_rng(6)
    for _ in range(200):
        scores, labels = random_query(rng, int(rng.integers(2, 6)))
        criterion = Halved(k=3)
        ranks = np.array(list(itertools.permutations(range(len(labels)))))
        losses = np.array([criterion.loss(np.argsort(one), labels > 0) for one in ranks])
        phi = phis_of(feature_map, ranks, labels, scores, None) - phi_ideal(feature_map, labels, scores, None)
        found = most_violated(scores, labels, criterion, feature_map=feature_map)
        assert found.value == pytest.approx((losses + phi).max(), abs=1e-12 * max(1.0, np.abs(scores).max() * len(labels)))
