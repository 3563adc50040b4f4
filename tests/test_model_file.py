"""Model files: models round-trip, and damaged, forged or foreign files are rejected."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import pathlib
import pickle
import re
import stat
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import structrank
from structrank import StructRankSVM, criteria, datasets, feature_maps, load_model
from structrank._support.lazy import import_public
from structrank._support.saveable import SAVEABLE
from structrank.models import files, imports
from structrank.models.trusted import trusted_types

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def small():
    """A model with a small file."""
    return StructRankSVM("auc", C=0.1).fit([[0.0, 1.0], [1.0, 0.5], [0.25, 0.0]], [0, 1, 0], qid=0)


@pytest.fixture(scope="module")
def saved(small, tmp_path_factory):
    """A file of the small model, and its content."""
    path = tmp_path_factory.mktemp("saved") / "m"
    small.save(path)
    return path, path.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.structrank"


def forge(path, header, values=b""):
    """Write a file with a valid checksum and any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = b"structrank-model 1 %d %d\n%s%s" % (len(text), len(values), text, values)
    path.write_bytes(content + hashlib.sha256(content).digest())


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.tobytes() == b.tobytes() and a.shape == b.shape
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


# ---- Round trips


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"criterion": "mrr", "k": None, "feature_map": "po"},
        {"criterion": criteria.NDCG(k=5, discount="log2")},
        {"criterion": criteria.DORM(k=3), "decay": "sqrt@4"},
        {"criterion": "dorm", "decay": np.array([1.0, 0.5, 0.25])},
        {"criterion": "dorm", "feature_map": feature_maps.Permutation([1.0, 0.5], cut=2)},
        {"criterion": "mrr", "feature_map": feature_maps.FirstRelevant(), "formulation": "n-slack"},
        {"criterion": ["map", criteria.AUC()], "C": [1.0, np.float32(0.1)], "feature_map": ["po", "auto"]},
        {"criterion": ("map", criteria.MRR(k=None)), "feature_map": feature_maps.PartialOrder(), "slack": "shared"},
        {"criterion": "auc", "relevant_from": None, "query_weight": "pairs", "tol": np.float64(1e-4), "n_jobs": 2},
    ],
    ids=lambda parameters: ", ".join(parameters) or "defaults",
)
@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_a_loaded_model_equals_the_saved_model(parameters, fold, path):
    train, test = fold.train, fold.test
    model = StructRankSVM(**parameters).fit(train.X, train.y, qid=train.qid)
    model.save(path)
    loaded = load_model(path)
    assert type(loaded) is StructRankSVM
    saved, found = model.get_params(), loaded.get_params()
    assert list(saved) == list(found)
    assert all(same(saved[name], found[name]) for name in saved)
    assert set(vars(loaded)) == set(vars(model))
    assert loaded.predict(test.X).tobytes() == model.predict(test.X).tobytes()
    assert (loaded.rank(test.X, qid=test.qid) == model.rank(test.X, qid=test.qid)).all()
    assert loaded.score(test.X, test.y, qid=test.qid) == model.score(test.X, test.y, qid=test.qid)
    assert loaded.certificate_ == model.certificate_
    assert loaded.health_ == model.health_
    assert loaded.n_iter_ == model.n_iter_
    assert list(loaded.history_) == list(model.history_)
    assert loaded.history_.to_frame().equals(model.history_.to_frame())


def test_a_loaded_model_can_be_trained_and_saved_again(fold, path, tmp_path):
    train = fold.train
    StructRankSVM("map", warm_start=True).fit(train.X, train.y, qid=train.qid).save(path)
    loaded = load_model(path)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    loaded.fit(train.X, train.y, qid=train.qid)
    assert loaded.coef_.flags.writeable


def test_feature_names_are_stored_and_checked(fold, path):
    frame = pd.DataFrame(fold.train.X, columns=["bm25", "längd", *"cdef"])
    StructRankSVM().fit(frame, fold.train.y, qid=fold.train.qid).save(str(path))
    loaded = load_model(str(path))
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert loaded.feature_names_in_.dtype == object
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"bm25": "tf"}))


def test_numbers_that_json_lacks_round_trip(small, path):
    model = load_and_change(small, path, tol=float("inf"), verbose=np.int8(3), decay=(-0.0, float("nan")))
    assert model.tol == float("inf")
    assert type(model.verbose) is int
    assert np.signbit(model.decay[0])
    assert np.isnan(model.decay[1])


@pytest.mark.parametrize("dtype", ["?", "b", "<u2", ">i4", "<f2", ">f8"])
def test_arrays_of_any_type_and_order_round_trip(small, path, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)[:, ::-1]
    loaded = load_and_change(small, path, decay=array).decay
    assert loaded.dtype == array.dtype.newbyteorder("=")
    assert (loaded == array).all()


def load_and_change(model, path, **parameters):
    changed = StructRankSVM(**{**model.get_params(), **parameters})
    vars(changed).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    changed.save(path)
    return load_model(path)


def test_the_header_is_readable_json(small, path):
    small.save(path)
    first_line, rest = path.read_bytes().split(b"\n", 1)
    assert first_line.split()[:2] == [b"structrank-model", b"1"]
    header = json.loads(rest[: int(first_line.split()[2])])
    assert header == files.read_header(path)
    assert header["format"] == {"name": "structrank-model", "version": 1}
    assert header["class"] == "StructRankSVM"
    assert header["parameters"]["criterion"] == "auc"
    assert header["fitted"]["n_features_in_"] == 2
    assert header["fitted"]["certificate_"]["Certificate"]["primal"] == small.certificate_.primal
    assert {"structrank", "python", "numpy", "osqp"} <= set(header["versions"])


def test_files_of_version_1_load():
    # Written by structrank 0.1.0; see test_a_loaded_model_equals_the_saved_model for the requirements.
    model = load_model(DATA / "model-v1.structrank")
    frame = pd.DataFrame([[0.5, 0.25, 1.0], [0.0, 1.0, 0.75]], columns=["bm25", "pagerank", "length"])
    assert model.predict(frame) == pytest.approx([0.30424235195478133, 0.12337021175915207], rel=1e-14)
    assert model.parsed_criteria() == [criteria.MAP(), criteria.NDCG(k=None), criteria.MRR(k=None)]
    assert model.feature_map == ["po", feature_maps.Permutation((1.0, 0.5, 0.25), cut=3), feature_maps.PartialOrder()]
    assert model.C == [1.0, 2.0, 0.5]
    assert model.decay.tolist() == [1.0, 0.5]
    assert model.n_iter_ == len(model.history_)
    assert model.certificate_.gap >= 0
    assert list(model.health_.parts) == ["map (po)", "ndcg-nc (dorm)", "mrr (po)"]


# ---- Models that cannot be saved


def test_a_function_as_decay_is_rejected_before_anything_is_written(small, path, tmp_path):
    small.save(path)
    before = path.read_bytes()
    for parameters, where in (
        ({"decay": lambda ranks: 1 / (1 + ranks)}, "decay"),
        ({"feature_map": feature_maps.Permutation(np.cos)}, "feature_map.decay"),
        ({"feature_map": ["po", feature_maps.Permutation(np.cos)]}, "feature_map[1].decay"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(where)} is a function, which a model file cannot hold. Pass"):
            load_and_change(small, path, **parameters)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_untrained_models_and_unregistered_classes_are_rejected(path):
    with pytest.raises(NotFittedError):
        StructRankSVM().save(path)
    with pytest.raises(ValueError, match="LinearRegression is not a learner that model files know"):
        files.save_model(LinearRegression().fit([[0.0], [1.0]], [0, 1]), path)

    class Mine(StructRankSVM):
        pass

    with pytest.raises(ValueError, match=r"Mine is not a learner that model files know; see structrank.register"):
        Mine().fit([[0.0], [1.0]], [0, 1], qid=0).save(path)
    assert not path.exists()


def test_custom_classes_can_be_registered(small, path):
    @dataclasses.dataclass(frozen=True)
    class MyAUC(criteria.AUC):
        weight: float = 0.5
        name = "my-auc"

    class MySVM(StructRankSVM):
        pass

    with pytest.raises(ValueError, match=r"criterion is an object of class MyAUC.*structrank.register"):
        load_and_change(small, path, criterion=MyAUC())
    structrank.register(MyAUC)
    assert load_and_change(small, path, criterion=MyAUC(0.25)).criterion == MyAUC(0.25)
    structrank.register(MySVM)(criterion=[MyAUC()]).fit([[0.0], [1.0]], [0, 1], qid=0).save(path)
    assert type(load_model(path)) is MySVM
    del criteria.CRITERIA["my-auc"]
    with pytest.raises(ValueError, match=r"class MyAUC is not known here.* structrank.register\(MyAUC\)"):
        load_model(path)
    del SAVEABLE["MySVM"]
    with pytest.raises(ValueError, match="MAP is the name of a class of structrank"):
        structrank.register(type("MAP", (), {}))
    with pytest.raises(ValueError, match="neither a dataclass nor a learner"):
        structrank.register(type("Plain", (), {}))


# ---- Damaged and foreign files


def test_every_flipped_bit_is_detected(small, path):
    small.save(path)
    content = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for position, byte in enumerate(content):
            # The first line is read before the checksum, so all byte values are tried there.
            for mask in range(1, 256) if position <= content.index(b"\n") else (1 << position % 8, 0xFF):
                file.seek(position)
                file.write(bytes([byte ^ mask]))
                with pytest.raises(ValueError, match="model file"):
                    load_model(path)
            file.seek(position)
            file.write(bytes([byte]))
    assert load_model(path).coef_.tobytes() == small.coef_.tobytes()


def test_every_truncation_is_detected(small, path):
    small.save(path)
    content = path.read_bytes()
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        with pytest.raises(ValueError, match=r"truncated|is empty"):
            load_model(path)
    path.write_bytes(content + b"\n")
    with pytest.raises(ValueError, match=r"has extra bytes, with \d+ bytes where its first line says \d+"):
        load_model(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "m.structrank is empty; expected a model file."),
        (b"2 qid:10 1:0.5\n", "m.structrank is not a model file of structrank: it begins with b'2 qid:10 1:0.5\\n'"),
        (pickle.dumps({"a": 1}), "m.structrank is not a model file of structrank: it begins with b'\\x80\\x04"),
        (b"\x00" * 100_000, "is not a model file of structrank"),
        (b"structrank-mod", "m.structrank is a damaged model file: it is truncated in its first line"),
        (b"structrank-model 1 x y\n", "it was altered: its first line is not valid"),
        (b"structrank-model 1 " + b"9" * 99, "damaged model file"),
        (b"structrank-model 1 999999999999999 0\nabc", "it is truncated, with 40 bytes where its first line says"),
        (
            b"structrank-model 7 10 10\n",
            "m.structrank is a model file of format version 7; structrank 0.1.0 reads version 1. Update structrank",
        ),
        (b"structrank-model 12 in some new way\n", "format version 12; structrank 0.1.0 reads version 1"),
    ],
)
def test_files_that_are_not_models_are_rejected_with_the_reason(content, message, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        load_model(path)


def test_missing_files_and_folders_raise_the_errors_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")
    with pytest.raises((IsADirectoryError, PermissionError)):  # the latter on Windows
        load_model(tmp_path)


class TestForgedFiles:
    """Files with a valid checksum whose header was not written by this package; nothing in them is executed."""

    @pytest.fixture
    def header(self, small, path):
        small.save(path)
        header = files.read_header(path)
        return json.loads(json.dumps(header))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"class": "Popen"}, "the class Popen is not known here"),
            ({"class": "structrank.svm.StructRankSVM"}, "is not known here"),
            ({"class": ["StructRankSVM"]}, "does not understand"),
            ({"parameters": {"n_estimators": 10}}, "unexpected keyword argument 'n_estimators'"),
            ({"parameters": {"criterion": {"Popen": {"args": "true"}}}}, "the class Popen is not known here"),
            ({"parameters": {"criterion": {"NDCG": {"k": -1}}}}, "k=-1 is not valid"),
            ({"parameters": {"criterion": {"MAP": {}, "AUC": {}}}}, "does not understand"),
            ({"parameters": {"decay": {"array": 99}}}, "does not understand"),
            ({"parameters": None}, "does not understand"),
            ({"fitted": {"predict": 1}}, "'predict' is not the name of a fitted attribute"),
            ({"fitted": {"__class__": 1}}, "'__class__' is not the name of a fitted attribute"),
            ({"arrays": [{"dtype": "|O", "shape": [1]}]}, "does not understand"),
            ({"arrays": [{"dtype": "<f8", "shape": [10**9]}]}, "does not understand"),
            ({"arrays": []}, "the arrays take 0 bytes, and there are 16"),
            ({"fitted": {"coef_": {"array": 0}, "n_features_in_": 9}}, "coef_ has 2 numbers, which does not fit 9 features"),
            ({"fitted": {"coef_": {"array": 0}}}, "the fitted attribute n_features_in_ is missing"),
            ({"fitted": {"n_features_in_": 2}}, "the fitted attribute coef_ is missing"),
            ({"fitted": {"coef_": 1.0, "n_features_in_": 1}}, "the fitted attribute coef_ is a float; expected ndarray"),
        ],
    )
    def test_invalid_content_is_rejected(self, header, change, message, path):
        forge(path, header | change, b"\0" * 16)
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            load_model(path)
        assert str(caught.value).startswith(f"{path} is a model file whose content structrank 0.1.0 does not understand")
        assert str(caught.value).endswith("It was written by structrank 0.1.0.")

    @pytest.mark.parametrize(
        "text", [b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b"null", b"[]", b'"x"', b"{}", b'{"versions": []}']
    )
    def test_invalid_headers_are_rejected(self, text, path):
        forge(path, text)
        with pytest.raises(ValueError, match=r"is a model file whose (header is not JSON|content .* not understand)"):
            load_model(path)

    @settings(max_examples=100, deadline=None)
    @given(data=st.data())
    def test_any_change_of_the_header_is_rejected_or_gives_a_model(self, saved, data):
        path, content = saved
        path.write_bytes(content)
        header, values = files._read(path)
        places = list(_places(header))
        place = data.draw(st.sampled_from(places))
        scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
        keys = st.sampled_from(["array", "names", "float", "tuple", "dict", "MRR", "History", "Health", "x"])
        value = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner), max_leaves=5)
        _put(header, place, data.draw(value))
        forge(path, header, bytes(values))
        with contextlib.suppress(ValueError):
            assert isinstance(load_model(path), StructRankSVM)


def _places(value, place=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from _places(item, (*place, key))


def _put(value, place, new):
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] = new


# ---- Writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_keeps_the_earlier_file_and_leaves_no_other(small, path, tmp_path, monkeypatch, step):
    small.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "some temporary name")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match=f"No space left on device; the earlier file is unchanged: {re.escape(repr(str(path)))}"):
        small.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_missing_folder_is_named(small, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot save the model: .*none.+m.structrank"):
        small.save(tmp_path / "none" / "m.structrank")


def test_links_are_followed_and_permissions_are_the_default(small, path, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(path)
    small.save(link)
    assert link.is_symlink()
    load_model(path)
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_the_size_of_a_large_file_is_nearly_that_of_its_arrays(path):
    data = datasets.make_ranking(n_queries=5, n_docs=6, n_features=20_000, random_state=0).train
    model = StructRankSVM("auc", C=1e-3).fit(data.X, data.y, qid=data.qid)
    model.save(path)
    assert path.stat().st_size < 8 * 20_000 + 8_000
    assert load_model(path).coef_.tobytes() == model.coef_.tobytes()


# ---- Every learner


import_public()
LEARNERS = [name for name, cls in SAVEABLE.items() if hasattr(cls, "fit")]
QUICK = {
    **{name: {"n_estimators": 3} for name in ("LightGBMRanker", "XGBoostRanker", "LambdaMART", "McRank", "StructRankTrees")},
    "RankNet": {"max_epochs": 2},
    "LambdaRank": {"max_epochs": 2, "hidden_units": 2},
    "SPSARanker": {"max_evaluations": 20},
    "CollaborativeRanker": {"factors": 2, "max_iter": 3},
    "HybridRanker": {"theta": 0.5},
}


@pytest.fixture(scope="module")
def clicks():
    made = datasets.make_clicks(n_queries=30, n_urls=60, n_topics=3, n_sessions=300, random_state=0)
    return structrank.clicks.ClickLog.from_sessions(made)


@pytest.fixture(scope="module", params=LEARNERS)
def learner(request, train, clicks):
    """A trained model of each class, and what it can score."""
    name = request.param
    model = SAVEABLE[name](**QUICK.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", structrank.StructRankWarning)
        if SAVEABLE[name].__module__.startswith("structrank.clicks"):
            pairs = structrank.clicks.preference_pairs(clicks)
            model.fit(pairs if name == "CollaborativeRanker" else clicks)
            return model, (clicks.queries.values[pairs.query], clicks.urls.values[pairs.winner])
        return model.fit(train.X, train.y, qid=train.qid), (train.X,)


def test_every_learner_round_trips(learner, path, tmp_path):
    model, to_score = learner
    model.save(path)
    loaded = load_model(path)
    assert type(loaded) is type(model)
    assert loaded.predict(*to_score).tobytes() == model.predict(*to_score).tobytes()
    assert {key for key in vars(model) if key.endswith("_")} == {key for key in vars(loaded) if key.endswith("_")}
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_trusted_types_suffice_for_skops(learner):
    io = pytest.importorskip("skops.io")
    model, to_score = learner
    loaded = io.loads(io.dumps(model), trusted=trusted_types())
    assert loaded.predict(*to_score).tobytes() == model.predict(*to_score).tobytes()


def test_every_learner_of_the_package_is_registered_for_model_files():
    rankers = set()
    for package in (structrank.learners, structrank.clicks):
        found = (getattr(package, name) for name in package.__all__)
        rankers |= {cls.__name__ for cls in found if hasattr(cls, "fit") and hasattr(cls, "predict")}
    assert rankers
    assert rankers <= set(LEARNERS)


@pytest.mark.parametrize("read", [load_model, files.is_model_file, imports.read_svmrank, imports.read_ranklib])
def test_a_number_is_no_path(read):
    """To `open`, it is an open file, such as 1 for the standard output, which would be closed."""
    handle = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(TypeError, match="not int"):
        read(handle)
    os.close(handle)
