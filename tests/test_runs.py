"""Run files: other tools compute the same measures from them, scores round-trip, invalid files are rejected."""

import gzip
import math
from collections import defaultdict

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, nDCG

from structrank import StructRankWarning, compare, datasets, metrics
from structrank.comparison import runs
from structrank.datasets import Dataset, Fold


def dataset(y, qid, docid=None):
    y = np.asarray(y)
    return Dataset(np.zeros((len(y), 1)), y, np.asarray(qid), None if docid is None else np.asarray(docid))


class Guess:
    """A trainer with reproducible random scores."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y, qid):
        return self

    def predict(self, X):
        return np.random.default_rng(self.seed).normal(size=X.shape[0])


class Constant(Guess):
    def predict(self, X):
        return np.zeros(X.shape[0])


@pytest.fixture(scope="module")
def folds():
    """Three folds with graded labels, document ids, distinct queries, and one query without a relevant document."""
    made = []
    for number in range(3):
        fold = datasets.make_ranking(n_queries=30, n_docs=(4, 15), n_features=3, n_grades=4, random_state=number)
        test = fold.test
        y = np.where(test.qid == test.qid[0], 0, test.y) if number == 1 else test.y
        names = np.array([f"clueweb-{number}-{row}" for row in range(len(y))])
        made.append(Fold(fold.train, None, Dataset(test.X, y, test.qid + 1000 * number, names)))
    return made


@pytest.fixture(scope="module")
def table(folds):
    trainers = {"first guess": Guess(1), "second (guess)": Guess(2)}
    return compare({"made set": folds}, trainers, ["mrr@10", "ndcg@10", "map", "p@5"])


# ---- The files of a comparison


def by_hand(run, qrels, gain, discount):
    """Compute NDCG@10 of each query from the text of a run."""
    labels, ranked = defaultdict(dict), defaultdict(list)
    for line in qrels.read_text().splitlines():
        query, zero, document, label = line.split()
        assert zero == "0"
        labels[query][document] = int(label)
    for line in run.read_text().splitlines():
        query, _, document, rank, _, _ = line.split()
        ranked[query].append((int(rank), document))
    values = {}
    for query, its in ranked.items():
        assert sorted(rank for rank, _ in its) == list(range(1, len(labels[query]) + 1))
        gains = [gain(labels[query][document]) for _, document in sorted(its)]
        ideal = sorted(gains, reverse=True)
        total = sum(g * discount(rank) for rank, g in enumerate(ideal[:10], 1))
        values[query] = sum(g * discount(rank) for rank, g in enumerate(gains[:10], 1)) / total if total else math.nan
    return values


def test_a_plain_script_computes_the_same_ndcg_from_the_files(table, tmp_path):
    paths = table.to_runs(tmp_path / "runs")
    for trainer in table.trainers:
        values = by_hand(
            paths[trainer, "made set"],
            tmp_path / "runs" / "made-set" / "qrels.txt",
            gain=lambda label: float(label >= 1),
            discount=lambda rank: 1.0 if rank <= 2 else 1 / math.log2(rank),
        )
        assert list(values) == [str(qid) for qid in table.query_ids["made set"]]
        ours = table.per_query[trainer, "made set", "ndcg@10"]
        np.testing.assert_allclose(list(values.values()), ours, rtol=0, atol=1e-12)
        assert np.isnan(ours).sum() == 1


def test_ir_measures_computes_the_same_measures_from_the_files(table, tmp_path):
    paths = table.to_runs(tmp_path)
    theirs = {"map": AP, "p@5": P @ 5, "mrr@10": RR @ 10}
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "made-set" / "qrels.txt")))
    relevant = {qrel.query_id for qrel in qrels if qrel.relevance > 0}
    for trainer in table.trainers:
        found = defaultdict(dict)
        run = list(ir_measures.read_trec_run(str(paths[trainer, "made set"])))
        for metric in ir_measures.iter_calc(theirs.values(), qrels, run):
            found[metric.measure][metric.query_id] = metric.value
        for name, measure in theirs.items():
            ours = table.per_query[trainer, "made set", name]
            for query, value in zip(table.query_ids["made set"], ours, strict=True):
                if str(query) in relevant:
                    assert found[measure][str(query)] == pytest.approx(value, abs=1e-12)
                else:
                    assert np.isnan(value)


def test_ir_measures_computes_the_same_graded_ndcg_from_the_files(folds, tmp_path):
    graded = metrics.NDCG(k=10)
    table = compare({"d": folds}, {"g": Guess(3)}, graded)
    paths = table.to_runs(tmp_path)
    measure = nDCG(gains={label: 2**label - 1 for label in range(4)}) @ 10
    found = {
        metric.query_id: metric.value
        for metric in ir_measures.iter_calc(
            [measure],
            ir_measures.read_trec_qrels(str(tmp_path / "d" / "qrels.txt")),
            ir_measures.read_trec_run(str(paths["g", "d"])),
        )
    }
    for query, value in zip(table.query_ids["d"], table.per_query["g", "d", "ndcg@10"], strict=True):
        assert found[str(query)] == pytest.approx(0.0 if np.isnan(value) else value, abs=1e-12)


def test_scores_round_trip_bit_for_bit(table, folds, tmp_path):
    paths = table.to_runs(tmp_path)
    pooled = runs.pool([fold.test for fold in folds])
    for trainer in table.trainers:
        written = np.concatenate([cell.scores for cell in table.cells if cell.trainer == trainer])
        np.testing.assert_array_equal(runs.read_scores(paths[trainer, "made set"], pooled), written)


def test_names_that_map_to_the_same_file_name_have_separate_files(folds, tmp_path):
    names = ["a b", "A-B", "a (b)", "ü", "?"]
    table = compare({"x y": folds[:1], "x-y": folds[1:2]}, {name: Guess(3) for name in names}, "map")
    paths = table.to_runs(tmp_path)
    assert len(set(paths.values())) == 10
    found = sorted(path.relative_to(tmp_path).as_posix().lower() for path in tmp_path.rglob("*.run"))
    assert len(set(found)) == 10
    tags = {path.read_text().split()[5] for path in paths.values()}
    assert tags == {"a-b", "A-B-2", "a-b-3", "unnamed", "unnamed-2"}


def test_a_query_of_several_folds_is_named_by_fold(folds, tmp_path):
    table = compare({"d": [folds[0], folds[0]]}, {"g": Guess(3)}, "map")
    path = table.to_runs(tmp_path)["g", "d"]
    queries = list(dict.fromkeys(line.split()[0] for line in path.read_text().splitlines()))
    each = [str(qid) for qid in dict.fromkeys(folds[0].test.qid.tolist())]
    assert queries == [f"fold{number}-{qid}" for number in (1, 2) for qid in each]
    qrels = (tmp_path / "d" / "qrels.txt").read_text().splitlines()
    assert len(qrels) == 2 * len(folds[0].test) == len(path.read_text().splitlines())


def test_ties_warn_because_other_tools_break_them(folds, tmp_path):
    trainers = {"g": Guess(3), "flat": Constant()}
    table = compare({"d": folds}, trainers, "map")
    with pytest.warns(StructRankWarning, match=r"^1 of 2 runs have .* \(most in flat on d: 100.0% of the documents"):
        table.to_runs(tmp_path)


def test_runs_do_not_overwrite_a_file(table, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match=r"file' is a file; expected a folder"):
        table.to_runs(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


# ---- One run


def test_a_run_is_sorted_by_rank_within_queries_in_their_order(tmp_path):
    data = dataset([0, 1, 2, 0, 1], ["b", "a", "b", "b", "a"], ["x", "y", "z", "w", "x"])
    runs.write_run(tmp_path / "run", data, [0.1, -5, 0.1, 1e-300, -4], tag="me")
    assert (tmp_path / "run").read_text().splitlines() == [
        "b Q0 x 1 0.1 me",
        "b Q0 z 2 0.1 me",
        "b Q0 w 3 1e-300 me",
        "a Q0 x 1 -4.0 me",
        "a Q0 y 2 -5.0 me",
    ]
    runs.write_qrels(tmp_path / "qrels", data)
    assert (tmp_path / "qrels").read_text().splitlines() == ["b 0 x 0", "a 0 y 1", "b 0 z 2", "b 0 w 0", "a 0 x 1"]


def test_fractional_labels_round_trip(tmp_path):
    runs.write_qrels(tmp_path / "qrels", dataset([0.25, 3.0, 1e300], [1, 1, 1]))
    assert [float(line.split()[3]) for line in (tmp_path / "qrels").read_text().splitlines()] == [0.25, 3.0, 1e300]


@pytest.mark.parametrize(
    ("qid", "names"),
    [
        ([3, 3, 12], ["3", "3", "12"]),
        (["a b", "a b", "c"], ["1", "1", "2"]),
        ([("x", 1), ("x", 1), ("y", 2)], ["1", "1", "2"]),
        ([1, "1", 1], ["1", "2", "1"]),
        (["", "q", "q"], ["1", "2", "2"]),
        (["a\0", "q", "q"], ["1", "2", "2"]),  # files with zero bytes are taken for binary files
        (["\ufeffa", "q", "q"], ["1", "2", "2"]),  # a byte order mark at the start of a file is skipped
    ],
)
def test_query_names_are_distinct_and_without_blanks(qid, names):
    ids = np.empty(3, dtype=object)
    ids[:] = qid
    assert runs.query_names(Dataset(None, [0, 1, 0], ids)) == names


@pytest.mark.parametrize("docid", [None, ["a", "a", "b"], ["a", "b c", "d"], ["a", "", "d"]])
def test_documents_without_unique_ids_are_numbered(docid):
    data = dataset([0, 1, 0], [7, 7, 7], docid)
    assert runs.document_names(data) == (["1", "2", "3"], True)


def test_a_document_may_occur_in_several_queries():
    assert runs.document_names(dataset([0, 1], [7, 8], ["a", "a"])) == (["a", "a"], False)


def test_invalid_scores_and_tags_are_rejected_before_writing(tmp_path):
    data = dataset([0, 1], [7, 7])
    with pytest.raises(ValueError, match="scores contains NaN at row 1"):
        runs.write_run(tmp_path / "run", data, [0.0, np.nan])
    with pytest.raises(ValueError, match="scores has 3 entries but the data has 2 rows"):
        runs.write_run(tmp_path / "run", data, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="tag='my run' is not valid: expected a text without blanks"):
        runs.write_run(tmp_path / "run", data, [0.0, 1.0], tag="my run")
    with pytest.raises(ValueError, match="y contains NaN"):
        runs.write_qrels(tmp_path / "qrels", dataset([0, np.nan], [7, 7]))
    assert not list(tmp_path.iterdir())


def test_infinite_scores_round_trip(tmp_path):
    data = dataset([0, 1, 0], [7, 7, 7])
    runs.write_run(tmp_path / "run", data, [-np.inf, np.inf, 0.0])
    assert runs.read_scores(tmp_path / "run", data).tolist() == [-np.inf, np.inf, 0.0]
    assert (tmp_path / "run").read_text().splitlines()[0] == "7 Q0 2 1 inf structrank"


def test_a_document_that_is_not_in_the_data_is_reported(tmp_path):
    (tmp_path / "run").write_text("7 Q0 GX1 1 0.5 x\n")
    with pytest.raises(ValueError, match=r"run:1: found document 'GX1' of query '7', which is not in the data, whose rows"):
        runs.read_scores(tmp_path / "run", dataset([0], [7]))
    with pytest.raises(ValueError, match=r"run:1: found document 'GX1' of query '7', which is not in test\.txt\.$"):
        runs.read_scores(tmp_path / "run", dataset([0], [7], ["GX2"]), "test.txt")


def test_ties_are_counted_by_query_for_ids_of_any_type():
    assert runs.count_ties([(1, 2), (1, 2), (3, 4)], [1.0, 1.0, 1.0]) == 2
    assert runs.count_ties([1, "1"], [0.5, 0.5]) == 0
    assert runs.count_ties([1, 1, 1, 1], [1e300, 2e300, 0.0, -0.0]) == 4
    assert runs.count_ties([1] * 8, np.zeros(8)) == 8


def test_document_ids_must_match_the_number_of_rows():
    for docid in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=rf"docid has {len(docid)} entries but y has 2 rows"):
            runs.document_names(dataset([0, 1], [7, 7], docid))


def test_a_run_may_mix_tabs_and_blanks(tmp_path):
    data = dataset([0, 1], [7, 7], ["a", "b"])
    (tmp_path / "run").write_text("7 Q0\ta 1 0.5 me\t\n7\tQ0\tb\t2\t0.25\tme\n")
    assert runs.read_scores(tmp_path / "run", data).tolist() == [0.5, 0.25]


def test_tab_separated_runs_may_have_blanks_in_the_tag_or_no_tag(tmp_path):
    data = dataset([0, 1], [7, 7], ["a", "b"])
    (tmp_path / "run").write_text("7\tQ0\ta\t1\t0.5\tmy run\n7\tQ0\tb\t2\t0.25\t\n")
    assert runs.read_scores(tmp_path / "run", data).tolist() == [0.5, 0.25]


@pytest.mark.parametrize("score", ["1_000", "\u0661", "\uff11", "+inf", "-Infinity", "nan", "0x10", "1e999", "1e", "."])
def test_scores_are_decimal_numbers_in_range(tmp_path, score):
    (tmp_path / "run").write_text(f"0.5\n{score}\n", "utf-8")
    with pytest.raises(ValueError, match=r"run:2: found .*, expected a score"):
        runs.read_scores(tmp_path / "run", dataset([0, 1], [7, 7], ["a", "b"]))


@pytest.mark.parametrize(("text", "score"), [("+1.", 1.0), (".5e-1", 0.05), ("-0", 0.0), ("1E+2", 100.0)])
def test_scores_may_have_any_decimal_notation(tmp_path, text, score):
    (tmp_path / "run").write_text(f"0.5\n{text}\n")
    assert runs.read_scores(tmp_path / "run", dataset([0, 1], [7, 7], ["a", "b"]))[1] == score


def test_damaged_archives_are_reported_with_the_line(tmp_path):
    (tmp_path / "run.gz").write_bytes(gzip.compress(b"0.5\n" * 1000)[:-20])
    with pytest.raises(ValueError, match=r"run.gz:\d+: the compressed data is damaged or truncated"):
        runs.read_scores(tmp_path / "run.gz", dataset([0, 1], [7, 7], ["a", "b"]))
