"""Measures against other tools: equal under equal conventions; docs/measures.md lists the differences."""

import pathlib

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RBP, RR, SDCG, Bpref, P, R, Rprec, Success, nDCG
from sklearn.metrics import dcg_score, ndcg_score

from structrank import metrics

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "measures.md"
LABELS, SCORES = np.array([0, 2, 1, 0, 1]), np.array([3.0, 3.0, 2.0, 1.0, 0.5])


def by_ir_measures(y, scores, qid, measures):
    """Return per-query values by ir_measures (based on trec_eval), as measure -> {query: value}."""
    labelled = [(i, q, label) for i, (q, label) in enumerate(zip(qid, y, strict=True)) if not np.isnan(label)]
    qrels = [ir_measures.Qrel(str(q), f"d{i:04d}", int(label)) for i, q, label in labelled]
    run = [ir_measures.ScoredDoc(str(q), f"d{i:04d}", s) for i, (q, s) in enumerate(zip(qid, scores, strict=True))]
    found = {measure: {} for measure in measures}
    for one in ir_measures.iter_calc(measures, qrels, run):
        found[one.measure][one.query_id] = one.value
    return found


def test_measures_equal_ir_measures_without_ties():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), rng.integers(3, 30, 60))
    y = rng.integers(0, 5, qid.size)
    y[np.unique(qid, return_index=True)[1]] = 2  # every query has a relevant document
    scores = rng.permutation(qid.size).astype(float)
    gains = {label: 2**label - 1 for label in range(5)}
    pairs = {
        "ndcg@10": nDCG(gains=gains) @ 10,
        "ndcg": nDCG(gains=gains),
        "map": AP,
        "mrr": RR,
        "mrr@10": RR @ 10,
        "p@5": P @ 5,
        "recall@5": R @ 5,
        "success@1": Success @ 1,
        "success@3": Success @ 3,
        "rprec": Rprec,
        "bpref": Bpref,
    }
    ours = metrics.evaluate(y, scores, qid, list(pairs), per_query=True)
    theirs = by_ir_measures(y, scores, qid, list(pairs.values()))
    for name, measure in pairs.items():
        expected = [theirs[measure][str(query)] for query in ours.query_ids]
        assert ours[name] == pytest.approx(expected, abs=1e-12), name
    linear = metrics.evaluate(y, scores, qid, ["ndcg@10"], gain="linear", per_query=True)["ndcg@10"]
    plain = by_ir_measures(y, scores, qid, [nDCG @ 10])[nDCG @ 10]
    assert linear == pytest.approx([plain[str(query)] for query in ours.query_ids], abs=1e-12)
    strict = metrics.evaluate(y, scores, qid, ["map"], relevant_from=3, empty=0.0, per_query=True)["map"]
    other = by_ir_measures(y, scores, qid, [AP(rel=3)])[AP(rel=3)]
    assert strict == pytest.approx([other.get(str(query), 0.0) for query in ours.query_ids], abs=1e-12)


def test_rbp_and_dcg_equal_cwl_eval():
    if not ir_measures.cwl_eval.is_available():
        pytest.skip("cwl-eval, which ir_measures uses for RBP and scaled DCG, is not installed")
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(30), rng.integers(12, 30, 30))
    y, scores = rng.integers(0, 5, qid.size), rng.permutation(qid.size).astype(float)
    theirs = by_ir_measures(y, scores, qid, [RBP(p=0.8, rel=2), RBP(p=0.5, rel=2), SDCG(max_rel=4) @ 10])
    scale = 4 * (1 / np.log2(2 + np.arange(10))).sum()  # scaled DCG has gains label / max_rel, and is at most 1
    pairs = [
        (metrics.RBP(relevant_from=2), RBP(p=0.8, rel=2), 1.0),
        (metrics.RBP(p=0.5, relevant_from=2), RBP(p=0.5, rel=2), 1.0),
        (metrics.DCG(10, gain="linear"), SDCG(max_rel=4) @ 10, scale),
    ]
    for measure, other, factor in pairs:
        ours = metrics.evaluate(y, scores, qid, measure, per_query=True)
        expected = [factor * theirs[other][str(query)] for query in ours.query_ids]
        assert ours[measure.name] == pytest.approx(expected, abs=1e-12)


def test_bpref_equals_trec_eval_where_documents_are_not_judged():
    rng = np.random.default_rng(4)
    qid = np.repeat(np.arange(60), rng.integers(3, 30, 60))
    y, scores = rng.integers(0, 3, qid.size).astype(float), rng.permutation(qid.size).astype(float)
    y[np.unique(qid, return_index=True)[1]] = 1.0
    y[rng.random(qid.size) < 0.4] = np.nan
    ours = metrics.evaluate(y, scores, qid, "bpref", per_query=True, empty=0.0)
    theirs = by_ir_measures(y, scores, qid, [Bpref])[Bpref]
    assert ours["bpref"] == pytest.approx([theirs.get(str(query), 0.0) for query in ours.query_ids], abs=1e-12)


def test_err_equals_gdeval_to_its_five_digits():
    measure = ir_measures.ERR @ 10
    if not ir_measures.gdeval.is_available():
        pytest.skip("gdeval, which ir_measures runs for ERR, needs perl")
    rng = np.random.default_rng(2)
    qid = np.repeat(np.arange(60), rng.integers(3, 30, 60))
    y, scores = rng.integers(0, 5, qid.size), rng.permutation(qid.size).astype(float)
    ours = metrics.evaluate(y, scores, qid, "err@10", per_query=True, empty=0.0)
    theirs = by_ir_measures(y, scores, qid, [measure])[measure]
    assert ours["err@10"] == pytest.approx([theirs[str(query)] for query in ours.query_ids], abs=5.1e-6)


def test_ndcg_equals_scikit_learn_with_ties_and_cutoffs():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(2, 15))
        y, scores = rng.integers(0, 4, n), rng.integers(0, 4, n).astype(float)
        y[0] = max(y[0], 1)
        k = int(rng.integers(1, n + 3))
        ours = metrics.evaluate(y, scores, None, [f"ndcg@{k}"], gain="linear")[f"ndcg@{k}"]
        assert ours == pytest.approx(ndcg_score([y], [scores], k=k), abs=1e-12)
        dcg = metrics.evaluate(y, scores, None, metrics.DCG(k, gain="linear"))[f"dcg@{k}"]
        assert dcg == pytest.approx(dcg_score([y], [scores], k=k), abs=1e-12)


def by_lightgbm(labels, scores):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM (extra 'trees') is not installed")
    X = np.zeros((len(labels), 1))
    data = lightgbm.Dataset(X, labels, group=[len(labels)], init_score=scores, free_raw_data=False)
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbose": -1}
    found = {}
    lightgbm.train(parameters, data, num_boost_round=1, valid_sets=[data], callbacks=[lightgbm.record_evaluation(found)])
    return found["training"]["ndcg@10"][0]


def ours(measure, labels=LABELS, **conventions):
    return metrics.evaluate(labels, SCORES, None, [measure], **conventions)[measure]


def cells(heading):
    """Return the rows of the page's table under a heading, as {first cell: other cells}."""
    lines = PAGE.read_text().split(f"## {heading}")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_the_page_shows_the_values_of_the_tools():
    rows = cells("One query, four tools")
    qid = np.zeros(5, int)
    none = np.zeros(5, int)
    trec = by_ir_measures(LABELS, SCORES, qid, [nDCG @ 10, AP])
    shown = {
        "NDCG@10": [
            f"{ours('ndcg@10'):.4f}",
            f"{ndcg_score([LABELS], [SCORES], k=10):.4f}",
            f"{trec[nDCG @ 10]['0']:.4f}",
            f"{by_lightgbm(LABELS, SCORES):.4f}",
        ],
        "average precision": [f"{ours('map'):.4f}", "-", f"{trec[AP]['0']:.4f}", "-"],
        "NDCG@10, no relevant document": [
            str(ours("ndcg@10", none)),
            f"{ndcg_score([none], [SCORES], k=10):.1f}",
            f"{by_ir_measures(none, SCORES, qid, [nDCG @ 10])[nDCG @ 10]['0']:.1f}",
            f"{by_lightgbm(none, SCORES):.1f}",
        ],
    }
    for name, expected in shown.items():
        assert rows[name] == expected, name


def test_the_settings_on_the_page_reproduce_the_other_tools():
    rows = cells("Reproducing the numbers of other tools")
    assert rows["scikit-learn `ndcg_score`"][0] == '`gain="linear", empty=0.0`'
    assert ours("ndcg@10", gain="linear", empty=0.0) == pytest.approx(ndcg_score([LABELS], [SCORES], k=10), abs=1e-12)
    assert rows["LightGBM"][0] == '`ties="stable", empty=1.0`'
    assert ours("ndcg@10", ties="stable", empty=1.0) == pytest.approx(by_lightgbm(LABELS, SCORES), abs=1e-12)
    assert rows["trec_eval"][0] == '`gain="linear", empty=0.0`, for scores without ties'
    broken = SCORES + np.arange(5) * 1e-9  # trec_eval puts the larger document id first
    found = metrics.evaluate(LABELS, broken, None, ["ndcg@10", "map"], gain="linear")
    trec = by_ir_measures(LABELS, SCORES, np.zeros(5, int), [nDCG @ 10, AP])
    assert found["ndcg@10"] == pytest.approx(trec[nDCG @ 10]["0"], abs=1e-12)
    assert found["map"] == pytest.approx(trec[AP]["0"], abs=1e-12)
