"""Shards: files round-trip, training on shards equals training on their rows, and passes hold little memory."""

import json
import os
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from structrank import StructRankSVM, datasets
from structrank.cli import main
from structrank.criteria import MAP
from structrank.datasets import cut_shards, open_shards, write_shards
from structrank.datasets import shards as shards_module
from structrank.training.data import RankingData
from structrank.training.shard import Shard
from structrank.training.sources import sources_of
from structrank.training.structured_loss import StructuredLoss


@pytest.fixture(scope="module")
def rows():
    """Queries of 2 to 9 documents, some without relevant documents, weighted, float32."""
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(60), rng.integers(2, 10, 60))
    X = rng.standard_normal((qid.size, 5)).astype(np.float32)
    y = (X[:, 0] + rng.standard_normal(qid.size) > 0.7).astype(np.int64)
    return {"X": X, "y": y, "qid": qid, "sample_weight": rng.integers(1, 4, 60)[qid].astype(float)}


def write_parquet(folder, shards):
    folder.mkdir()
    for number, shard in enumerate(shards):
        frame = pd.DataFrame(shard.X, columns=[f"f{j}" for j in range(shard.X.shape[1])])
        frame.insert(2, "grade", shard.y)
        frame.assign(query=shard.qid, w=shard.sample_weight).to_parquet(folder / f"part-{number}.parquet", index=False)
    return open_shards(folder, label="grade", qid="query", sample_weight="w")


def same_model(one, other):
    return np.array_equal(one.coef_, other.coef_) and one.certificate_ == other.certificate_


@pytest.mark.parametrize("kind", [np.int64, str, object])
@pytest.mark.parametrize("scattered", [False, True])
def test_shards_round_trip_without_splitting_queries(rows, tmp_path, kind, scattered):
    order = np.random.default_rng(0).permutation(rows["y"].size) if scattered else np.arange(rows["y"].size)
    X, y, weight = rows["X"][order], rows["y"][order], rows["sample_weight"][order]
    qid = rows["qid"][order].astype(str).astype(kind) if kind is object else rows["qid"][order].astype(kind)
    shards = write_shards(tmp_path / "s", X, y, qid, weight, docs_per_shard=40)
    assert all(shard.X.shape[0] <= 40 for shard in shards)
    assert len(shards) < 2 * qid.size / 40
    homes = [set(shard.qid.tolist()) for shard in shards]
    assert sum(map(len, homes)) == len(set.union(*homes)) == 60
    # Queries may have moved, but rows keep their order within each query.
    place = np.argsort(np.unique(qid, return_inverse=True)[1], kind="stable")
    read = {name: np.concatenate([getattr(shard, name) for shard in shards]) for name in rows}
    back = np.argsort(np.unique(read["qid"], return_inverse=True)[1], kind="stable")
    for name, expected in {"X": X, "y": y, "qid": qid, "sample_weight": weight}.items():
        assert np.array_equal(read[name][back], expected[place])
    assert read["X"].dtype == np.float32


def test_a_query_longer_than_a_shard_has_its_own_shard():
    shards = cut_shards(np.eye(9), np.zeros(9), qid=[1, 1, 2, 2, 2, 2, 2, 3, 4], docs_per_shard=3)
    assert [shard.qid.tolist() for shard in shards] == [[1, 1], [2] * 5, [3, 4]]


def test_training_on_files_equals_training_on_their_rows(rows, tmp_path):
    model = StructRankSVM("map", C=10.0)
    cut = cut_shards(**rows, docs_per_shard=40)
    expected = model.fit(cut).coef_.copy()
    written = write_shards(tmp_path / "npy", **rows, docs_per_shard=40)
    assert len(cut) == len(written) > 5
    for shards in (written, write_parquet(tmp_path / "parquet", cut)):
        assert np.array_equal(StructRankSVM("map", C=10.0).fit(shards).coef_, expected)
        assert np.array_equal(StructRankSVM("map", C=10.0, n_jobs=2).fit(shards).coef_, expected)
    assert model.n_features_in_ == 5
    assert model.predict(rows["X"]).shape == rows["y"].shape


@pytest.mark.parametrize("criterion", ["auc", "ndcg-nc", ["map", "mrr"]])
def test_training_on_shards_reaches_the_optimum_of_all_rows(rows, criterion):
    whole = StructRankSVM(criterion, C=5.0).fit(**rows)
    in_shards = StructRankSVM(criterion, C=5.0).fit(cut_shards(**rows, docs_per_shard=40))
    for one, other in ((whole, in_shards), (in_shards, whole)):
        assert one.certificate_.dual <= other.certificate_.primal + 1e-9
    assert same_model(StructRankSVM(criterion, C=5.0).fit(cut_shards(**rows)), whole)


@pytest.mark.parametrize("settings", [{"criterion": "ndcg"}, {"criterion": "err", "bound": "ramp"}, {"criterion": "dorm"}])
def test_graded_labels_can_be_trained_on_shards(rows, settings, tmp_path):
    graded = {**rows, "X": rows["X"].astype(float), "y": rows["y"] * (1 + np.arange(rows["y"].size) % 3)}
    model = StructRankSVM(**settings, k=3, relevant_from=None, C=10.0, tol=1e-4)
    cut = cut_shards(**graded, docs_per_shard=40)
    of_shards = clone(model).fit(cut)
    of_files = clone(model).fit(write_shards(tmp_path / "npy", **graded, docs_per_shard=40))
    assert same_model(of_files, of_shards)
    of_rows = clone(model).fit(**graded)
    if "bound" in settings:
        assert of_shards.rounds_[0].loss == pytest.approx(of_rows.rounds_[0].loss, abs=0.02)
        return
    assert of_shards.certificate_.dual <= of_rows.certificate_.primal
    assert of_rows.certificate_.dual <= of_shards.certificate_.primal
    assert not any("grades" in note for note in of_shards.notes_)
    binary = StructRankSVM("auc").fit(cut)
    assert "relevant_from=None trains on grades" in binary.notes_[-1]


def test_a_path_can_be_trained_on_shards(rows):
    shards = cut_shards(**rows, docs_per_shard=40)
    models = StructRankSVM("auc").fit_path(shards, Cs=[0.1, 10.0])
    assert [model.C for model in models] == [0.1, 10.0]
    assert models[0].certificate_.primal < models[1].certificate_.primal


def test_sparse_shards_give_the_model_of_dense_shards(rows, assert_same_optimum):
    sparse = rows | {"X": scipy.sparse.csr_matrix(np.where(rows["X"] > 0, rows["X"], 0.0))}
    dense = rows | {"X": sparse["X"].toarray()}
    models = [StructRankSVM("auc", C=5.0).fit(cut_shards(**some, docs_per_shard=40)) for some in (sparse, dense)]
    assert_same_optimum(*models)


def test_shards_of_a_memory_map_are_views(rows, tmp_path):
    np.save(tmp_path / "X.npy", rows["X"])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    shards = cut_shards(**rows | {"X": mapped}, docs_per_shard=40)
    assert all(np.shares_memory(shard.X, mapped) for shard in shards)
    assert same_model(StructRankSVM("auc").fit(shards), StructRankSVM("auc").fit(cut_shards(**rows, docs_per_shard=40)))


def test_a_shard_holds_at_most_6_bytes_per_document_between_passes(tmp_path):
    n_docs = 40_000
    rng = np.random.default_rng(0)
    written = write_shards(tmp_path, rng.random((n_docs, 3)), rng.integers(0, 2, n_docs), np.arange(n_docs) // 100)
    (source,) = sources_of(written)
    held = [value for value in vars(Shard(source, StructuredLoss.of([MAP()]))).values() if isinstance(value, np.ndarray)]
    assert sum(value.nbytes for value in held) <= 6 * n_docs
    assert isinstance(source.load(), RankingData)
    assert source.matrix() is not source.matrix()


class Elsewhere:
    """A backend and its executor: functions and items go to another place as bytes, and results may stay there."""

    chunks = map

    def executor(self, *data):
        self.there = []
        self.sources = [self.keep(source) for source in sources_of(*data)]
        return self

    def map(self, function, *lists, keep=False):
        results = [self.run(pickle.dumps((function, items))) for items in zip(*lists, strict=False)]
        return [self.keep(result) for result in results] if keep else results

    def run(self, sent):
        function, items = pickle.loads(sent)
        return function(*(self.there[item.number] if isinstance(item, Kept) else item for item in items))

    def keep(self, result):
        self.there.append(result)
        return Kept(len(self.there) - 1)

    def close(self):
        self.there.clear()


@dataclass(frozen=True)
class Kept:
    number: int


@pytest.mark.parametrize("settings", [{"criterion": "map", "scale": "std"}, {"criterion": "mrr", "bound": "ramp"}])
def test_another_engine_plugs_in_as_an_executor(rows, settings):
    shards, backend = cut_shards(**rows, docs_per_shard=40), Elsewhere()
    assert same_model(StructRankSVM(**settings).fit(shards, backend=backend), StructRankSVM(**settings).fit(shards))
    assert not backend.there


def test_a_pickled_shard_contains_only_its_own_rows(rows):
    frame = pd.DataFrame(rows["X"], columns=list("abcde"))
    shards = cut_shards(**{**rows, "X": frame}, docs_per_shard=40)
    text = pickle.dumps(shards[1])
    assert len(text) < rows["X"].nbytes / 2
    assert pickle.loads(text).columns == tuple("abcde")
    for name in rows:
        assert np.array_equal(getattr(pickle.loads(text), name), getattr(shards[1], name))


def test_folders_and_files_can_be_listed(rows, tmp_path):
    first = rows["qid"] < 30
    for name, chosen in (("a", first), ("b", ~first)):
        write_shards(tmp_path / name, **{key: value[chosen] for key, value in rows.items()}, docs_per_shard=40)
    shards = open_shards([tmp_path / "a", str(tmp_path / "b")])
    assert shards.n_docs == rows["y"].size
    os.remove(tmp_path / "a" / "shards.json")
    assert len(open_shards(tmp_path / "a")) == len(open_shards([tmp_path / "a"]))


def damage(folder, action):
    if action == "missing":
        os.remove(folder / "y-00001.npy")
    elif action == "lost shard":
        os.remove(folder / "X-00002.npy")
    elif action == "short":
        np.save(folder / "qid-00001.npy", np.arange(3))
    elif action in ("altered", "twice"):
        if action == "twice":
            os.remove(folder / "shards.json")
        ids = np.load(folder / "qid-00001.npy")
        ids[0] = 0
        np.save(folder / "qid-00001.npy", ids)
    elif action == "text":
        np.save(folder / "X-00001.npy", np.load(folder / "X-00001.npy").astype(str))
    elif action == "wide":
        os.remove(folder / "shards.json")
        X = np.load(folder / "X-00001.npy")
        np.save(folder / "X-00001.npy", np.hstack([X, X]))
    elif action == "garbage":
        (folder / "X-00001.npy").write_text("garbage")
    elif action == "pickle":
        np.save(folder / "y-00001.npy", np.array([None, 1]), allow_pickle=True)
    elif action == "index":
        (folder / "shards.json").write_text(json.dumps({"format": "other"}))
    elif action == "empty":
        for path in folder.iterdir():
            os.remove(path)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("missing", r"y-00001\.npy is missing"),
        ("lost shard", r"X-00002\.npy is missing"),
        ("short", r"qid-00001\.npy has shape \(3,\); expected \(\d+,\)"),
        ("altered", r"qid-00001\.npy is damaged: its checksum is [0-9a-f]{8}, and shards\.json says [0-9a-f]{8}"),
        ("twice", r"query 0 is in .*X-00000\.npy and in .*X-00001\.npy"),
        ("text", r"X-00001\.npy has dtype <U\d+; expected real numbers"),
        ("wide", r"X-00001\.npy has 10 features but .*X-00000\.npy has 5"),
        ("garbage", r"X-00001\.npy is not a \.npy file"),
        ("pickle", r"y-00001\.npy is not a \.npy file"),
        ("index", r"shards\.json is damaged"),
        ("empty", r"holds no shards; expected X-00000\.npy"),
    ],
)
def test_a_damaged_folder_is_rejected_when_opened(rows, tmp_path, action, message):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    damage(tmp_path, action)
    with pytest.raises(ValueError, match=message):
        open_shards(tmp_path)


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["X", "y", "qid", "weight"])
def test_a_flipped_bit_is_reported_when_the_file_is_read(rows, tmp_path, kind):
    StructRankSVM("auc").fit(write_shards(tmp_path, **rows, docs_per_shard=40))
    flip(tmp_path / f"{kind}-00001.npy", -5)
    with pytest.raises(ValueError, match=rf"{kind}-00001\.npy is damaged: its checksum"):
        StructRankSVM("auc").fit(open_shards(tmp_path))
    assert getattr(open_shards(tmp_path, verify=False)[1], {"weight": "sample_weight"}.get(kind, kind)) is not None


def test_query_ids_and_columns_that_would_merge_are_rejected(tmp_path):
    X, y = np.eye(2), [0, 1]
    with pytest.raises(ValueError, match=r"qid contains 'a\\x00'; .npy files cannot hold texts that end with a null character"):
        write_shards(tmp_path / "a", X, y, ["a\0", "a"])
    with pytest.raises(ValueError, match="X has 2 columns named 'a'"):
        write_shards(tmp_path / "a", pd.DataFrame(X, columns=["a", "a"]), y, [1, 1])
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table([[1], [1], [1], [1]], names=["qid", "label", "x", "label"]), path)
    with pytest.raises(ValueError, match=r"d.parquet has 2 columns named 'label' \(columns 1, 3\)"):
        open_shards(path)
    parquet.write_table(pyarrow.table({"qid": [[1]], "label": [1], "x": [1]}), path)
    with pytest.raises(ValueError, match=r"d.parquet: column 'qid' has type list<.*; expected ids that are texts or numbers"):
        open_shards(path)


@pytest.mark.parametrize("cause", [OSError(28, "No space left on device"), OSError("800 requested and 16 written")])
def test_a_full_disk_is_reported_with_the_file_and_leaves_no_shards(tmp_path, monkeypatch, cause):
    (tmp_path / "notes.txt").touch()

    def save(path, array, save=np.save, **options):
        save(path, array[: len(array) // 2], **options)
        if path.name == "y-00001.npy":
            raise cause

    arrays = np.eye(8), [0, 1] * 4, np.repeat([1, 2], 4)
    with monkeypatch.context() as patch:
        patch.setattr(np, "save", save)
        with pytest.raises(OSError, match=r"(No space left|16 written).* deleted. They need over 0 MB: free as much") as error:
            datasets.write_shards(tmp_path, *arrays, docs_per_shard=4)
    assert error.value.filename == str(tmp_path / "y-00001.npy")
    assert os.listdir(tmp_path) == ["notes.txt"]
    assert datasets.write_shards(tmp_path, *arrays, docs_per_shard=4).n_docs == 8


@pytest.mark.filterwarnings("ignore:Data type alias 'a':DeprecationWarning")  # which a damaged header may name
def test_every_damaged_byte_of_a_header_is_reported(rows, tmp_path):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    path = tmp_path / "y-00001.npy"
    good = path.read_bytes()
    for position in range(128):
        for bit in (1, 8, 64):
            damaged = bytearray(good)
            damaged[position] ^= bit
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"y-00001\.npy"):
                [shard.y for shard in open_shards(tmp_path)]


def test_every_flipped_bit_of_the_index_is_detected(rows, tmp_path):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    content = (tmp_path / "shards.json").read_bytes()
    for position in range(len(content)):
        (tmp_path / "shards.json").write_bytes(content)
        flip(tmp_path / "shards.json", position)
        with pytest.raises(ValueError, match=r"is damaged|is missing"):
            open_shards(tmp_path)


def test_an_index_of_an_earlier_version_is_read_without_checksums(rows, tmp_path):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    index = json.loads((tmp_path / "shards.json").read_text())
    del index["crc32"]
    for entry in index["shards"]:
        del entry["crc32"]
    (tmp_path / "shards.json").write_text(json.dumps(index))
    flip(tmp_path / "X-00001.npy", -5)
    StructRankSVM("auc").fit(open_shards(tmp_path))
    assert open_shards(tmp_path)[0].checksums == ()


def test_a_file_is_compared_with_its_checksum_once(rows, tmp_path, monkeypatch):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    monkeypatch.setattr(shards_module, "_verified", {})
    read = []
    checksum = shards_module._checksum
    monkeypatch.setattr(shards_module, "_checksum", lambda path: read.append(path.name) or checksum(path))
    for _ in range(2):
        StructRankSVM("auc").fit(open_shards(tmp_path))
    assert sorted(read) == sorted(path.name for path in tmp_path.glob("*.npy"))


def test_inspect_verifies_shards(rows, tmp_path, capsys):
    write_shards(tmp_path, **rows, docs_per_shard=40)
    n_files = len(list(tmp_path.glob("*.npy")))
    assert main(["inspect", str(tmp_path)]) == 0
    assert f"{n_files} files agree with their checksums" in capsys.readouterr().out
    flip(tmp_path / "X-00000.npy", -5)
    assert main(["inspect", str(tmp_path)]) != 0
    assert "X-00000.npy is damaged" in capsys.readouterr().err


def test_damaged_parquet_files_are_rejected(tmp_path):
    frame = pd.DataFrame({"label": [0, 1], "qid": [1, 1], "a": [0.5, 1.0], "b": ["x", "y"]})
    path = tmp_path / "one.parquet"
    for change, message in [
        ({}, r"one\.parquet: column 'b' has type .*string; expected numbers"),
        ({"b": [1, 2], "qid": None}, r"has no column 'qid' \(qid=\); it has 'label', 'a', 'b'"),
        ({"b": None, "a": None}, r"has no columns besides 'label', 'qid'"),
    ]:
        changed = frame.assign(**{name: value for name, value in change.items() if value is not None})
        changed.drop(columns=[name for name, value in change.items() if value is None]).to_parquet(path)
        with pytest.raises(ValueError, match=message):
            open_shards(path)
    frame.assign(b=[1, 2]).head(0).to_parquet(path)
    with pytest.raises(ValueError, match="has no rows"):
        open_shards(path)
    path.write_text("garbage")
    with pytest.raises(ValueError, match="is not a parquet file"):
        open_shards(path)
    frame.drop(columns="b").to_parquet(path)
    frame.assign(b=[1, 2], qid=[2, 2]).to_parquet(tmp_path / "two.parquet")
    with pytest.raises(ValueError, match=r"differ in columns \['b'\]"):
        open_shards(tmp_path)
    frame.assign(b=[1, 2])[["label", "qid", "b", "a"]].to_parquet(path)
    with pytest.raises(ValueError, match="differ in the order of their columns"):
        open_shards([path, tmp_path / "two.parquet"])


def test_feature_names_are_preserved(rows, tmp_path):
    names = ["bm25", "pagerank", "age", "clicks", "length"]
    frame, rest = pd.DataFrame(rows["X"], columns=names), {name: rows[name] for name in ("y", "qid", "sample_weight")}
    write_shards(tmp_path / "named", frame, **rest, docs_per_shard=40)
    expected = StructRankSVM("auc").fit(frame, **rest).feature_names_in_
    model = StructRankSVM("auc")
    for shards in (open_shards(tmp_path / "named"), cut_shards(frame, **rest, docs_per_shard=40)):
        assert model.fit(shards).feature_names_in_.tolist() == expected.tolist() == names
    assert write_parquet(tmp_path / "parquet", shards).columns == ("f0", "f1", "f2", "f3", "f4")
    assert not hasattr(model.fit(cut_shards(**rows)), "feature_names_in_")


def test_shards_cannot_be_scored_as_one_table(rows):
    shards = cut_shards(**rows)
    with pytest.raises(ValueError, match="Shards cannot be used as one table; take them one at a time"):
        StructRankSVM("auc").fit(shards).predict(shards)


def test_nan_in_a_file_is_reported_with_its_name(tmp_path):
    frame = pd.DataFrame({"label": [0, 1, 0], "qid": [1, 1, 1], "a": [0.5, np.nan, 1.0]})
    frame.to_parquet(tmp_path / "one.parquet")
    with pytest.raises(ValueError, match=r"one\.parquet: X contains NaN at row 1, column 0"):
        StructRankSVM().fit(open_shards(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"docs_per_shard": 0}, "docs_per_shard=0 is not valid"),
        ({"y": [1, 0]}, r"y has 2 entries but X has \d+ rows"),
        ({"qid": None}, "qid is missing: pass the query of each row"),
        ({"X": np.zeros(4)}, r"X has 1 dimension\(s\); expected 2"),
        ({"X": scipy.sparse.eye(4, format="csr")}, "X is sparse"),
    ],
)
def test_invalid_arrays_are_rejected_before_anything_is_written(rows, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        write_shards(tmp_path / "new", **rows | change)
    assert not (tmp_path / "new").exists()


def test_ids_that_cannot_be_stored_are_rejected(tmp_path):
    ids = np.array([1, "a"], dtype=object)
    with pytest.raises(ValueError, match="qid has dtype object; expected numbers or texts"):
        write_shards(tmp_path / "new", np.eye(2), [0, 1], ids)
    ids[1] = None
    with pytest.raises(ValueError, match="qid contains None at row 1"):
        cut_shards(np.eye(2), [0, 1], ids)


def test_shards_are_not_overwritten(rows, tmp_path):
    write_shards(tmp_path, **rows)
    with pytest.raises(ValueError, match="already holds shards"):
        write_shards(tmp_path, **rows)
    for missing in (tmp_path / "nowhere", tmp_path / "X-99999.npy"):
        with pytest.raises(ValueError, match="does not exist"):
            open_shards(missing)
    with pytest.raises(ValueError, match="source=7 is not valid"):
        open_shards(7)
    with pytest.raises(ValueError, match="no shards"):
        datasets.Shards([])


def test_labels_are_rejected_together_with_shards(rows):
    shards = cut_shards(**rows)
    with pytest.raises(ValueError, match="y, qid given, but X is Shards, which has its own"):
        StructRankSVM().fit(shards, rows["y"], qid=rows["qid"])
    with pytest.raises(ValueError, match=r"backend='dask' is not valid: expected DaskBackend"):
        StructRankSVM().fit(shards, backend="dask")


def test_a_shard_whose_queries_have_weight_0_is_skipped(train, assert_same_optimum):
    weights = np.ones(len(train.y))
    weights[: len(weights) // 2] = 0.0  # whole queries of 8 documents
    counted = weights > 0
    shards = cut_shards(train.X, train.y, qid=train.qid, sample_weight=weights, docs_per_shard=len(weights) // 2)
    model = StructRankSVM("auc").fit(shards)
    alone = StructRankSVM("auc").fit(train.X[counted], train.y[counted], qid=train.qid[counted])
    assert_same_optimum(model, alone)
    unweighted = cut_shards(train.X, train.y, qid=train.qid, sample_weight=0 * weights, docs_per_shard=len(weights) // 2)
    with pytest.raises(ValueError, match="sample_weight is zero for every query"):
        StructRankSVM("auc").fit(unweighted)


def test_the_index_of_a_frame_is_not_a_feature(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame = frame.assign(label=np.tile([0, 1], 20), qid=np.repeat(range(4), 10))
    scattered = frame.sort_values("label").sort_values("qid", kind="stable")  # to_parquet writes its index as a column
    dask = frame.assign(__null_dask_index__=np.arange(40))
    for number, written in enumerate((frame, scattered, frame.set_index("qid"), dask)):
        path = tmp_path / f"{number}.parquet"
        written.to_parquet(path)
        assert open_shards(path).columns == ("a", "b")


def test_a_shard_that_changes_during_training_is_rejected(rng, tmp_path):
    X, qid = rng.normal(size=(400, 3)), np.repeat(range(40), 10)
    write_shards(tmp_path, X, (X[:, 0] > 0).astype(int), qid, docs_per_shard=200)
    shape = r"has changed: it has shape \(10, 3\), but had 200 rows and 3 columns"
    for verify, message in ((False, shape), (True, "is damaged: its checksum")):

        def shorten(iteration):
            np.save(tmp_path / "short.npy", X[:10])
            os.replace(tmp_path / "short.npy", tmp_path / "X-00001.npy")

        with pytest.raises(ValueError, match=rf"X-00001\.npy.* {message}"):
            StructRankSVM("map", C=10.0, tol=1e-6).fit(open_shards(tmp_path, verify=verify), callback=shorten)
        np.save(tmp_path / "X-00001.npy", X[200:])


@pytest.mark.parametrize(
    "qid", [[1] * 20 + ["1"] * 20, [2**53 + 1] * 20 + [2**53] * 10 + [0.5] * 10, [(1, 2)] * 20 + [(1, 3)] * 20]
)
def test_ids_of_several_types_are_distinct(qid, rng):
    X = rng.normal(size=(40, 3))
    y = np.tile([0, 1], 20)
    assert StructRankSVM("map").fit(cut_shards(X, y, qid)).n_queries_ == StructRankSVM("map").fit(X, y, qid=qid).n_queries_


@pytest.mark.parametrize("qid", [[np.int64(7), np.int64(8)], [7, np.int32(8)], [np.float32(7), np.float32(8)], ["7", "8"]])
def test_lists_of_ids_of_one_type_can_be_written(qid, tmp_path):
    shards = write_shards(tmp_path / "shards", np.eye(2), [0, 1], qid)
    assert shards[0].qid.tolist() == np.asarray(qid).tolist()


def test_numbers_in_object_columns_can_be_written(tmp_path):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [True, False], "c": pd.array([1, 2], dtype="Int64")})
    shards = write_shards(tmp_path / "shards", X, pd.Series([0, 1]).astype(object), [1, 1])
    assert shards[0].X.tolist() == [[1.0, 1.0, 1.0], [2.0, 0.0, 2.0]]
    assert shards[0].y.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="y has 'x' at row 1; expected numbers"):
        write_shards(tmp_path / "none", X, np.array([0, "x"], dtype=object), [1, 1])
    assert not (tmp_path / "none").exists()
