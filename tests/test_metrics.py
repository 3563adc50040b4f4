"""Measures against their definitions: ties, undefined queries, settings, names and invalid input."""

import functools
import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest

from structrank.datasets.queries import group_by_query
from structrank.metrics import (
    AUC,
    CNDCG,
    DCG,
    ERR,
    MAP,
    MRR,
    NDCG,
    RBP,
    Bpref,
    Evaluator,
    P,
    PairAccuracy,
    Recall,
    RPrecision,
    Success,
    evaluate,
    parse,
)

NAN = math.nan


# Every measure from its definition, for the labels of one query in ranked order.


def relevant_ranks(labels, m):
    return [r for r, label in enumerate(labels) if label >= m.relevant_from]


def plain_auc(labels, m):
    relevant = relevant_ranks(labels, m)
    irrelevant = [r for r in range(len(labels)) if r not in relevant]
    return np.mean([i < j for i in relevant for j in irrelevant]) if relevant and irrelevant else NAN


def plain_map(labels, m):
    relevant = relevant_ranks(labels, m)
    return np.mean([(1 + i) / (1 + r) for i, r in enumerate(relevant)]) if relevant else NAN


def plain_mrr(labels, m):
    relevant = relevant_ranks(labels, m)
    if not relevant:
        return NAN
    return 1 / (1 + relevant[0]) if m.k is None or relevant[0] < m.k else 0.0


def plain_p(labels, m):
    relevant = relevant_ranks(labels, m)
    return sum(r < m.k for r in relevant) / m.k if relevant else NAN


def plain_recall(labels, m):
    good = [label >= m.relevant_from for label in labels]
    return sum(good[: m.k]) / sum(good) if any(good) else NAN


def plain_success(labels, m):
    good = [label >= m.relevant_from for label in labels]
    return float(any(good[: m.k])) if any(good) else NAN


def plain_r_precision(labels, m):
    good = [label >= m.relevant_from for label in labels]
    return sum(good[: sum(good)]) / sum(good) if any(good) else NAN


def plain_rbp(labels, m):
    good = [label >= m.relevant_from for label in labels]
    return (1 - m.p) * sum(m.p**r for r, one in enumerate(good[: m.k]) if one) if any(good) else NAN


def plain_bpref(labels, m):
    good = [label >= m.relevant_from for label in labels if not math.isnan(label)]
    n_good, n_bad = sum(good), len(good) - sum(good)
    above = [good[:r].count(False) for r, one in enumerate(good) if one]
    return np.mean([1 - min(bad, n_good) / min(n_bad, n_good) if bad else 1.0 for bad in above]) if above else NAN


def plain_dcg(labels, m, gain):
    def discount(r):
        if m.discount == "log2":
            return 1 / math.log2(2 + r)
        return 1.0 if r <= 1 else 1 / math.log2(1 + r)

    value = sum(gain(label) * discount(r) for r, label in enumerate(labels[: m.k]))
    return value if any(map(gain, labels)) else NAN


def plain_discounted(labels, m, gain):
    return plain_dcg(labels, m, gain) / plain_dcg(sorted(labels, reverse=True), m, gain)


def gain_of(m):
    return {"exp2": lambda x: 2**x - 1, "linear": lambda x: x, "binary": lambda x: float(x >= m.relevant_from)}[m.gain]


def plain_cndcg(labels, m):
    return plain_discounted([0.0 if math.isnan(c) else c for c in labels], m, lambda c: 2 ** (4 * c) - 1)


def plain_pairs(labels, m):
    pairs = [a > b for a, b in itertools.combinations(labels, 2) if a != b]
    return np.mean(pairs) if pairs else NAN


def plain_err(labels, m):
    value, reached = 0.0, 1.0
    for r, label in enumerate(labels[: m.k]):
        stops = (2**label - 1) / 2**m.max_grade
        value += reached * stops / (1 + r)
        reached *= 1 - stops
    return value if any(labels) else NAN


PLAIN = {
    AUC: plain_auc,
    MAP: plain_map,
    MRR: plain_mrr,
    NDCG: lambda labels, m: plain_discounted(labels, m, gain_of(m)),
    DCG: lambda labels, m: plain_dcg(labels, m, gain_of(m)),
    P: plain_p,
    CNDCG: plain_cndcg,
    PairAccuracy: plain_pairs,
    ERR: plain_err,
    RBP: plain_rbp,
    Recall: plain_recall,
    Success: plain_success,
    RPrecision: plain_r_precision,
    Bpref: plain_bpref,
}


@functools.cache
def possible_orders(labels, scores):
    """Return a Counter of the labels in every order that the scores allow."""
    groups = [
        [label for label, s in zip(labels, scores, strict=True) if s == score] for score in sorted(set(scores), reverse=True)
    ]
    orders = itertools.product(*map(itertools.permutations, groups))
    return Counter(tuple(itertools.chain(*order)) for order in orders)


def brute_force(labels, scores, measure):
    """Return the mean over all orders that the scores allow."""
    counts = possible_orders(tuple(labels), tuple(scores))
    values = [PLAIN[type(measure)](list(order), measure) for order in counts]
    return np.average(values, weights=list(counts.values()))


def random_queries(rng, n_queries, labels, max_docs=6):
    """Return y, scores and qid of small queries with many ties, in random row order."""
    sizes = rng.integers(1, max_docs + 1, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries), sizes))
    n_levels = rng.integers(1, 5, n_queries)
    return rng.choice(labels, qid.size), rng.integers(0, n_levels[qid]).astype(float), qid


def by_query(y, scores, qid):
    for query in dict.fromkeys(qid.tolist()):
        yield y[qid == query].tolist(), scores[qid == query].tolist()


GRADES = [0, 0, 1, 2, 3]
CLICKS = [0.0, 0.25, 0.7, 1.0, NAN]
EVERY = [
    (AUC(), GRADES),
    (AUC(relevant_from=2), GRADES),
    (MAP(), GRADES),
    (MAP(relevant_from=2), GRADES),
    *[(MRR(k), GRADES) for k in (None, 1, 2, 4)],
    (MRR(3, relevant_from=2), GRADES),
    *[(P(k), GRADES) for k in (1, 3, 10)],
    *[
        (NDCG(k, gain, discount, relevant_from=2), GRADES)
        for k in (None, 1, 3)
        for gain in ("exp2", "linear", "binary")
        for discount in ("log2", "kdd08")
    ],
    *[(CNDCG(k, discount), CLICKS) for k in (None, 2) for discount in ("log2", "kdd08")],
    (PairAccuracy(), GRADES),
    *[(ERR(k, max_grade), GRADES) for k in (None, 1, 3) for max_grade in (4, 4.5)],
    *[
        (DCG(k, gain, discount, relevant_from=2), GRADES)
        for k, gain, discount in [(None, "exp2", "log2"), (3, "linear", "kdd08"), (2, "binary", "log2")]
    ],
    *[(RBP(k, p, relevant_from=2), GRADES) for k, p in [(None, 0.8), (3, 0.5)]],
    *[(Recall(k, relevant_from=2), GRADES) for k in (1, 3, 10)],
    *[(Success(k, relevant_from=2), GRADES) for k in (1, 3)],
    (RPrecision(relevant_from=2), GRADES),
    (Bpref(relevant_from=2), [*GRADES, NAN]),
]
every_measure = pytest.mark.parametrize(("measure", "labels"), EVERY, ids=[f"{m}({m.settings})" for m, _ in EVERY])


@every_measure
def test_tie_average_is_the_mean_over_all_orders(measure, labels):
    y, scores, qid = random_queries(np.random.default_rng(0), 300, labels)
    found = evaluate(y, scores, qid, measure, per_query=True)[measure.name]
    expected = [brute_force(*query, measure) for query in by_query(y, scores, qid)]
    assert 0 < np.isnan(expected).sum() < 200
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@every_measure
def test_stable_ties_keep_the_row_order(measure, labels):
    y, scores, qid = random_queries(np.random.default_rng(1), 100, labels, max_docs=40)
    found = evaluate(y, scores, qid, measure, per_query=True, ties="stable")[measure.name]
    expected = [
        PLAIN[type(measure)]([labels[i] for i in np.argsort(-np.array(scores), kind="stable")], measure)
        for labels, scores in by_query(y, scores, qid)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@every_measure
def test_values_are_bit_identical_for_any_row_order(measure, labels):
    rng = np.random.default_rng(2)
    y, scores, qid = random_queries(rng, 50, labels, max_docs=60)
    if not isinstance(measure, CNDCG):
        y = y + rng.choice([0.1, 0.2, 0.7], y.size)  # rounded sums of such gains depend on their order
    weights = rng.random(50)[qid]
    shuffled = rng.permutation(y.size)
    expected = evaluate(y, scores, qid, measure, sample_weight=weights)
    found = evaluate(y[shuffled], scores[shuffled], qid[shuffled], measure, sample_weight=weights[shuffled])
    assert dict(found) == dict(expected)
    assert found.undefined == expected.undefined
    # The row order matters if ties are broken by it.
    if measure.name not in ("auc", "pair_accuracy"):
        stable = [evaluate(y[rows], scores[rows], qid[rows], measure, ties="stable") for rows in (np.arange(y.size), shuffled)]
        assert stable[0] != stable[1]


def test_values_of_a_small_example_computed_by_hand():
    # Ranked labels of query a: 0 2 1 0; of query b: 1 0.
    y, qid = [2, 0, 1, 0, 1, 0], ["a", "a", "b", "b", "a", "a"]
    scores = [3, 4, 9, 8, 2, 1]
    result = evaluate(y, scores, qid, ["auc", "map", "mrr", "mrr@1", "p@3", "ndcg@2", "ndcg", "pair_accuracy"], per_query=True)
    assert result["auc"].tolist() == [0.5, 1.0]
    assert result["map"] == pytest.approx([(1 / 2 + 2 / 3) / 2, 1.0])
    assert result["mrr"].tolist() == [0.5, 1.0]
    assert result["mrr@1"].tolist() == [0.0, 1.0]
    assert result["p@3"] == pytest.approx([2 / 3, 1 / 3])
    log3 = math.log2(3)
    assert result["ndcg@2"] == pytest.approx([(3 / log3) / (3 + 1 / log3), 1.0])
    assert result["ndcg"] == pytest.approx([(3 / log3 + 1 / 2) / (3 + 1 / log3), 1.0])
    assert result["pair_accuracy"] == pytest.approx([3 / 5, 1.0])


def test_the_kdd08_discount_of_the_first_two_ranks_is_1():
    measure = NDCG(gain="linear", discount="kdd08")
    y = np.eye(5)
    values = [evaluate(row, [5, 4, 3, 2, 1], None, measure)["ndcg"] for row in y]
    assert values == pytest.approx([1, 1, 1 / math.log2(3), 1 / 2, 1 / math.log2(5)])


def test_err_of_a_long_tie_is_the_mean_over_random_orders():
    y = np.repeat([1.0], 500)
    expected = sum((15 / 16) ** r / 16 / (1 + r) for r in range(500))
    assert evaluate(y, np.zeros(500), None, "err")["err"] == pytest.approx(expected, abs=1e-14)
    rng = np.random.default_rng(11)
    y = rng.integers(0, 5, 200)
    untied = [evaluate(y, rng.random(200), None, "err@20")["err@20"] for _ in range(2000)]
    spread = np.std(untied) / math.sqrt(len(untied))
    assert evaluate(y, np.zeros(200), None, "err@20")["err@20"] == pytest.approx(np.mean(untied), abs=4 * spread)


def test_cndcg_has_the_gain_of_the_paper_and_ranks_documents_without_clicks():
    y, scores = [0.5, NAN, 1.0, 0.0], [4.0, 3.0, 2.0, 1.0]
    log3 = math.log2(3)
    found = evaluate(y, scores, None, ["cndcg@2", "cndcg@3"])
    assert found["cndcg@2"] == pytest.approx(3 / (15 + 3 / log3))
    assert found["cndcg@3"] == pytest.approx((3 + 15 / 2) / (15 + 3 / log3))
    assert math.isnan(evaluate([NAN, NAN], [1, 2], None, "cndcg")["cndcg"])


def test_clicks_at_the_last_ranks_gain_nothing_before_the_cutoff():
    y, scores = [NAN] * 8 + [0.5, 1.0], -np.arange(10.0)
    assert dict(evaluate(y, scores, None, ["cndcg@3", "cndcg@8"])) == {"cndcg@3": 0.0, "cndcg@8": 0.0}
    assert evaluate(y, scores, None, "cndcg@9")["cndcg@9"] > 0


def test_measures_of_one_call_rank_unlabelled_documents_as_each_defines():
    y, scores = [NAN, 0.0, 1.0], [3.0, 2.0, 1.0]
    found = evaluate(y, scores, None, ["cndcg", "bpref"])
    assert found["cndcg"] == 0.5  # third of three
    assert found["bpref"] == 0.0  # last of the two that are judged


@pytest.mark.parametrize(
    ("name", "judge", "n_levels"),
    [("auc", "roc_auc_score", 8), ("auc", "roc_auc_score", 10**9), ("map", "average_precision_score", 10**9)],
)
def test_binary_measures_agree_with_sklearn(name, judge, n_levels):
    judge = getattr(pytest.importorskip("sklearn.metrics"), judge)
    rng = np.random.default_rng(4)
    y, scores = rng.integers(0, 2, (40, 50)), rng.integers(0, n_levels, (40, 50)).astype(float)
    found = evaluate(y.ravel(), scores.ravel(), np.repeat(np.arange(40), 50), name, per_query=True)[name]
    np.testing.assert_allclose(found, [judge(y[i], scores[i]) for i in range(40)], rtol=0, atol=1e-12)


def test_pair_accuracy_of_many_grades_equals_the_count_over_all_pairs():
    rng = np.random.default_rng(5)
    y, scores = rng.integers(0, 100, 500) / 7, rng.integers(0, 60, 500).astype(float)
    better = y[:, None] > y[None, :]
    credit = (np.sign(scores[:, None] - scores[None, :]) + 1) / 2
    assert evaluate(y, scores, None, "pair_accuracy")["pair_accuracy"] == pytest.approx(credit[better].mean(), abs=1e-13)


def test_pair_accuracy_of_two_labels_is_auc():
    y, scores, qid = random_queries(np.random.default_rng(6), 200, [0, 1], max_docs=20)
    result = evaluate(y, scores, qid, ["auc", "pair_accuracy"], per_query=True)
    np.testing.assert_array_equal(result["auc"], result["pair_accuracy"])


NOT_NORMALISED = P, ERR, DCG, RBP, Recall  # the ideal ranking has a value below 1


@pytest.mark.parametrize("measure", [m for m, _ in EVERY if not isinstance(m, (*NOT_NORMALISED, CNDCG))], ids=repr)
@pytest.mark.parametrize("tied", [False, True])
def test_perfect_ranking_is_exactly_one(measure, tied):
    y = np.sort(np.random.default_rng(7).integers(0, 5, 1000))[::-1]
    scores = y if tied else -np.arange(1000)
    assert evaluate(y, scores, None, measure)[measure.name] == 1.0


@pytest.mark.parametrize("measure", [NDCG(gain="linear"), NDCG(), CNDCG()], ids=lambda m: m.settings)
def test_fractional_labels_do_not_lift_a_measure_above_one(measure):
    rng = np.random.default_rng(8)
    y = np.sort(rng.choice([0.1, 0.3, 0.7], 3000))[::-1]
    qid = rng.integers(0, 300, 3000)
    untied = evaluate(y, -np.arange(3000), qid, measure, per_query=True)[measure.name]
    assert set(untied) == {1.0}
    tied = evaluate(y, y, qid, measure, per_query=True)[measure.name]
    assert tied.max() <= 1.0
    np.testing.assert_allclose(tied, 1.0, rtol=0, atol=1e-14)


# Undefined queries


@pytest.fixture
def three_queries():
    """Only irrelevant documents in query a, both kinds in b, only relevant documents in c."""
    return [0, 0, 1, 0, 1, 1], [6.0, 5.0, 3.0, 4.0, 2.0, 1.0], ["a", "a", "b", "b", "c", "c"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("map", [NAN, 0.5, 1.0]),
        ("mrr", [NAN, 0.5, 1.0]),
        ("mrr@1", [NAN, 0.0, 1.0]),
        ("p@1", [NAN, 0.0, 1.0]),
        ("ndcg@1", [NAN, 0.0, 1.0]),
        ("cndcg@1", [NAN, 0.0, 1.0]),
        ("auc", [NAN, 0.0, NAN]),
        ("pair_accuracy", [NAN, 0.0, NAN]),
        ("err@1", [NAN, 0.0, 1 / 16]),
        ("dcg@1", [NAN, 0.0, 1.0]),
        ("rbp@1", [NAN, 0.0, 1 - 0.8]),
        ("recall@1", [NAN, 0.0, 0.5]),
        ("success@1", [NAN, 0.0, 1.0]),
        ("rprec", [NAN, 0.0, 1.0]),
        ("bpref", [NAN, 0.0, 1.0]),
    ],
)
def test_undefined_queries_are_nan_skipped_and_counted(three_queries, name, expected):
    per_query = evaluate(*three_queries, name, per_query=True)
    np.testing.assert_array_equal(per_query[name], expected)
    mean = evaluate(*three_queries, name)
    assert mean[name] == np.nanmean(expected)
    assert mean.undefined == per_query.undefined == {name: int(np.isnan(expected).sum())}


@pytest.mark.parametrize("empty", [0, 1.0, np.float32(0.5)])
def test_empty_replaces_undefined_values_which_stay_counted(three_queries, empty):
    result = evaluate(*three_queries, ["auc", "map"], empty=empty)
    assert dict(result) == {"auc": pytest.approx(2 * empty / 3), "map": pytest.approx((1.5 + empty) / 3)}
    assert result.undefined == {"auc": 2, "map": 1}
    assert evaluate(*three_queries, "auc", empty=empty, per_query=True)["auc"].tolist() == [empty, 0, empty]


def test_mean_over_no_defined_query_is_nan():
    result = evaluate([0, 0], [1.0, 2.0], None, "map")
    assert math.isnan(result["map"])
    assert result.undefined == {"map": 1}


def test_printing_shows_settings_and_undefined_queries(three_queries):
    result = evaluate(*three_queries, ["ndcg@1", "auc", "pair_accuracy", "cndcg"], gain="binary", discount="kdd08")
    assert repr(result).splitlines()[1:] == [
        "3 queries",
        "ndcg@1: gain=binary, discount=kdd08, relevant_from=1; undefined for 1",
        "auc: relevant_from=1; undefined for 2",
        "pair_accuracy: undefined for 2",
        "cndcg: discount=kdd08; undefined for 1",
    ]
    assert repr(result).startswith(repr(dict(result)))
    assert repr(evaluate([1, 0], [2.0, 1.0], None, "ndcg")).endswith("\n1 query\nndcg: gain=exp2, discount=log2")


# Shape of the result


def test_per_query_values_follow_the_first_appearance_of_the_ids():
    qid = ["z", "a", "z", 3, 3, "a"]
    result = evaluate([1, 1, 0, 0, 1, 0], [2, 1, 1, 3, 2, 4], qid, "mrr", per_query=True)
    assert result.query_ids.tolist() == ["z", "a", 3]
    assert result["mrr"].tolist() == [1.0, 0.5, 0.5]
    assert result.n_queries == 3


def test_without_qid_all_rows_are_one_query():
    result = evaluate([0, 1, 0], [3.0, 2.0, 1.0], None, ["mrr"])
    assert result == {"mrr": 0.5}
    assert type(result["mrr"]) is float
    assert result.n_queries == 1


def test_sample_weight_weights_the_mean_over_defined_queries(three_queries):
    weights = [7, 7, 3, 3, 1, 1]
    assert evaluate(*three_queries, "map", sample_weight=weights)["map"] == (3 * 0.5 + 1 * 1.0) / 4
    assert evaluate(*three_queries, "map", sample_weight=weights, empty=0)["map"] == pytest.approx(2.5 / 11)
    assert math.isnan(evaluate(*three_queries, "auc", sample_weight=[1, 1, 0, 0, 1, 1])["auc"])


def test_names_objects_and_settings_mix():
    y, scores = [0, 2, 1], [3.0, 2.0, 1.0]
    result = evaluate(y, scores, None, ["NDCG@2", MAP(), "map", NDCG(3)], gain="linear", discount="kdd08")
    assert list(result) == ["ndcg@2", "map", "ndcg@3"]
    assert result["ndcg@2"] == pytest.approx(2 / 3)
    # The object keeps its own settings.
    assert result["ndcg@3"] == evaluate(y, scores, None, "ndcg@3")["ndcg@3"]
    assert evaluate(y, scores, None, "mrr", relevant_from=2) == {"mrr": 0.5}
    assert evaluate(y, scores, None, "mrr", relevant_from=0.5) == {"mrr": 0.5}
    assert evaluate(y, scores, None, "mrr", relevant_from=0) == {"mrr": 1.0}


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, object])
def test_types_and_memory_of_the_input_do_not_matter(dtype):
    y, scores, qid = random_queries(np.random.default_rng(9), 30, [0, 1])
    scores %= 2
    names = ["map", "ndcg", "auc"]
    table = np.column_stack([y, scores]).astype(dtype)
    table.flags.writeable = False
    assert evaluate(table[:, 0], table[:, 1], qid, names) == evaluate(y, scores, qid, names)


def test_data_frames_are_accepted_and_not_changed():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": [0, 1, 1], "s": [1.0, 1.0, 0.0], "q": ["b", "a", "b"]}, index=[7, 8, 9])
    before = frame.copy()
    assert evaluate(frame["y"], frame["s"], frame["q"], "mrr") == {"mrr": 0.75}
    pandas.testing.assert_frame_equal(frame, before)


def test_infinite_scores_rank_first_and_last():
    y, scores = [1, 0, 0, 1], [-np.inf, np.inf, np.inf, 0.0]
    assert evaluate(y, scores, None, "map")["map"] == (1 / 3 + 2 / 4) / 2


def test_per_query_values_of_a_grouping_equal_evaluate():
    y, scores, qid = random_queries(np.random.default_rng(10), 30, GRADES)
    grouping = group_by_query(qid, qid.size)
    for ties in ("average", "stable"):
        found = Evaluator(NDCG(2), y, grouping).per_query(scores, ties)
        expected = evaluate(y, scores, qid, "ndcg@2", per_query=True, ties=ties)["ndcg@2"]
        np.testing.assert_array_equal(found, expected)


# Value objects and their names


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("auc", AUC()),
        ("MAP", MAP()),
        ("mrr", MRR()),
        ("MRR@10", MRR(10)),
        ("ndcg", NDCG()),
        ("nDCG@10", NDCG(10)),
        ("p@5", P(5)),
        ("P@5", P(k=5)),
        ("cndcg@3", CNDCG(3)),
        ("pair_accuracy", PairAccuracy()),
        ("DCG@10", DCG(10)),
        ("recall@10", Recall(10)),
        ("success@1", Success(1)),
        ("Rprec", RPrecision()),
        ("bpref", Bpref()),
    ],
)
def test_parse_reads_the_printed_name(text, measure):
    assert parse(text) == measure
    assert hash(parse(text)) == hash(measure)
    assert repr(measure) == str(measure) == measure.name == text.lower()
    assert parse(measure) is measure


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("err", ERR()),
        ("err@10", ERR(10)),
        ("ERR@10(max_grade=2)", ERR(10, max_grade=2)),
        ("rbp", RBP()),
        ("rbp(p=0.95)", RBP(p=0.95)),
        (" rbp@5 ( p = .5 ) ", RBP(5, 0.5)),
    ],
)
def test_parse_reads_settings_in_parentheses_as_they_are_printed(text, measure):
    assert parse(text) == measure == parse(repr(measure))


def test_parse_passes_settings_to_the_measures_that_have_them():
    settings = {"gain": "binary", "discount": "kdd08", "relevant_from": 2}
    assert parse("ndcg@10", **settings) == NDCG(10, "binary", "kdd08", relevant_from=2) != NDCG(10)
    assert parse("cndcg", **settings) == CNDCG(discount="kdd08")
    assert parse("map", **settings) == MAP(relevant_from=2) != MAP()
    assert parse("pair_accuracy", **settings) == PairAccuracy()


def test_measures_are_frozen():
    with pytest.raises(AttributeError):
        NDCG(10).k = 5


CHOICES = (
    "choose one of: auc, map, mrr[@k], ndcg[@k], p@k, cndcg[@k], pair_accuracy, err[@k], dcg[@k], rbp[@k], recall@k, "
    "success@k, rprec, bpref."
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse("dgc@10"), f"measure 'dgc@10' is not known; {CHOICES}"),
        (lambda: parse(10), f"measure 10 is not known; {CHOICES}"),
        (lambda: parse("ndcg@0"), "measure 'ndcg@0': the cutoff '0' is not valid; expected an integer of at least 1"),
        (lambda: parse("ndcg@x"), "measure 'ndcg@x': the cutoff 'x' is not valid; expected an integer of at least 1"),
        (lambda: parse("mrr@-1"), "the cutoff '-1' is not valid"),
        (lambda: parse("mrr@"), "the cutoff '' is not valid"),
        (lambda: parse("mrr@1.5"), "the cutoff '1.5' is not valid"),
        (lambda: parse("auc@10"), "measure 'auc@10': auc has no cutoff; write 'auc'."),
        (lambda: parse("MAP@10"), "measure 'MAP@10': map has no cutoff; write 'map'."),
        (lambda: parse("p"), "measure 'p' needs a cutoff, as in 'p@10'."),
        (lambda: parse("map", gain="exp"), "gain='exp' is not known; choose one of: 'exp2', 'linear', 'binary'."),
        (lambda: parse("map", discount="log"), "discount='log' is not known; choose one of: 'log2', 'kdd08'."),
        (lambda: parse("map", relevant_from="1"), "relevant_from='1' is not valid: expected a number."),
        (lambda: NDCG(0), "k=0 is not valid: expected an integer of at least 1, or None for no cut."),
        (lambda: MRR(2.5), "k=2.5 is not valid: expected an integer of at least 1, or None for no cut."),
        (lambda: P(None), "k=None is not valid: expected an integer of at least 1."),
        (lambda: NDCG(gain=None), "gain=None is not known"),
        (lambda: CNDCG(discount="no"), "discount='no' is not known"),
        (lambda: ERR(max_grade=0), "max_grade=0 is not valid: expected a number above 0 and at most 1000."),
        (lambda: ERR(max_grade=1001), "max_grade=1001 is not valid: expected a number above 0 and at most 1000."),
        (lambda: RBP(p=1), "p=1 is not valid: expected a number above 0 and below 1."),
        (lambda: Recall(None), "k=None is not valid: expected an integer of at least 1."),
        (lambda: parse("success"), "measure 'success' needs a cutoff, as in 'success@10'."),
        (lambda: parse("rbp(q=0.5)"), "measure 'rbp(q=0.5)': rbp has no setting 'q'; expected p."),
        (lambda: parse("map(p=0.5)"), "measure 'map(p=0.5)': map has no setting 'p'; write 'map'."),
        (lambda: parse("rbp(p=high)"), "measure 'rbp(p=high)': p='high' is not a number."),
        (lambda: parse("rbp(0.5)"), "measure 'rbp(0.5)': '(0.5)' is not valid; expected settings as in 'rbp(p=0.8)'."),
        (lambda: parse("rbp(p=0.5"), "measure 'rbp(p=0.5': '(p=0.5' is not valid; expected settings as in 'rbp(p=0.8)'."),
        (lambda: parse("rbp(p=1.5)"), "p=1.5 is not valid: expected a number above 0 and below 1."),
        (lambda: AUC(relevant_from=NAN), "relevant_from=nan is not valid: expected a number."),
    ],
)
def test_invalid_measures_are_rejected(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [0, NAN, 1]}, "y contains NaN at row 1"),
        ({"y": [0, -1, 1]}, "y contains -1 at row 1 (1 such value(s) in all); labels must be finite and at least 0"),
        ({"y": ["0", "high", "1"]}, "at row 1; expected numbers, larger is more relevant."),
        ({"y": []}, "y has 0 rows; expected one value per document, for at least one document."),
        ({"y": None}, "y is None; expected one value per document"),
        ({"y": [[0, 1], [1, 0], [1, 1]]}, "y has 2 dimension(s); expected 1"),
        ({"scores": [1, 2]}, "scores has 2 entries but y has 3 rows; they must have the same length."),
        ({"scores": [1, NAN, 2]}, "scores contains NaN at row 1"),
        ({"qid": [1, 5]}, "qid has 2 entries but y has 3 rows"),
        ({"qid": [1, None, 2]}, "qid contains None at row 1"),
        ({"measures": []}, "measures is empty; expected at least one, such as 'ndcg@10'."),
        ({"measures": ["map", "ndgc"]}, f"measure 'ndgc' is not known; {CHOICES}"),
        ({"measures": "map", "gain": "x"}, "gain='x' is not known"),
        ({"ties": "first"}, "ties='first' is not known; choose one of: 'average', 'stable'."),
        ({"empty": "0"}, "empty='0' is not valid: expected a number, or nan to skip such queries."),
        ({"empty": math.inf}, "empty=inf is not valid"),
        ({"sample_weight": [1, 1]}, "sample_weight has 2 entries but y has 3 rows"),
        ({"sample_weight": [1, 2, 1]}, ": 1 at row 0, 2 at row 1. A query has one weight"),
        ({"y": [0, 1, 1001]}, "y contains 1001 at row 2 (1 such value(s) in all); gain='exp2' is 2 ** label - 1"),
        ({"y": [0, 1.5, 1], "measures": "cndcg"}, "y contains 1.5 at row 1 (1 such value(s) in all); click labels"),
        ({"y": [0, 1, -0.5], "measures": "cndcg"}, "y contains -0.5 at row 2"),
        ({"y": [0, 5, 1], "measures": "err"}, "y contains 5 at row 1 (1 such value(s) in all); err with max_grade=4 takes"),
        ({"y": [0, NAN, -1], "measures": "bpref"}, "y contains -1 at row 2"),
        ({"y": [0, NAN, 1], "measures": ["bpref", "map"]}, "y contains NaN at row 1"),
        ({"y": [0, NAN, 1], "measures": ["cndcg", "map"]}, "y contains NaN at row 1"),
    ],
)
def test_invalid_input_is_rejected_with_its_place(changed, message):
    arguments = {"y": [0, 1, 0], "scores": [3, 2, 1], "qid": ["a", "a", "b"], "measures": ["ndcg", "map"], **changed}
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluate(**arguments)


def test_large_labels_are_accepted_unless_gains_overflow():
    y, scores = [1000, 999, 5000], [3.0, 2.0, 1.0]
    assert evaluate(y[:2], scores[:2], None, "ndcg")["ndcg"] == 1.0
    assert evaluate(y, scores, None, ["ndcg@1", "map"], gain="linear") == {"ndcg@1": 0.2, "map": 1.0}


def test_both_conventions_of_ndcg_have_names_that_differ():
    y, scores = [0, 2, 1], [3.0, 2.0, 1.0]
    both = evaluate(y, scores, None, ["ndcg@2", NDCG(k=2)], gain="binary", discount="kdd08")
    assert dict(both) == {
        "ndcg@2": evaluate(y, scores, None, NDCG(k=2, gain="binary", discount="kdd08"))["ndcg@2"],
        "ndcg@2 (gain=exp2, discount=log2)": evaluate(y, scores, None, NDCG(k=2))["ndcg@2"],
    }
    neither = evaluate(y, scores, None, [NDCG(gain="linear"), NDCG(gain="binary")])
    assert list(neither) == ["ndcg (gain=linear)", "ndcg (gain=binary, relevant_from=1)"]


def test_repr_says_what_is_not_the_default():
    assert repr(NDCG(k=10)) == "ndcg@10"
    assert repr(NDCG(k=10, gain="binary", discount="kdd08")) == "ndcg@10(gain='binary', discount='kdd08')"
    assert repr(MAP(relevant_from=2)) == "map(relevant_from=2)"
