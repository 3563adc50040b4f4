"""Extreme and invalid input, failing machines: a correct answer with a valid certificate, or a clear error."""

import contextlib
import errno
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import structrank
from structrank import StructRankSVM, StructRankWarning, cli, compare, metrics
from structrank._support.files import replace_file
from structrank.training import checkpoint, risk

CRITERIA = ("auc", "map", "ndcg", "ndcg-nc", "mrr", "dorm")


def fitted(X, y, qid=0, **parameters):
    """Train without warnings; check the certificate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructRankWarning)
        model = StructRankSVM(**parameters).fit(X, y, qid=qid)
    primal, dual = model.certificate_.primal, model.certificate_.dual
    assert np.isfinite([primal, dual, model.certificate_.gap]).all()
    assert dual <= primal
    assert np.isfinite(model.coef_).all()
    return model


# ---- Extreme scales


@pytest.fixture(scope="module")
def few(train):
    """First twenty training queries."""
    rows = train.qid < np.unique(train.qid)[20]
    return train.X[rows], train.y[rows], train.qid[rows]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-150, 1e-8, 1e8, 1e12, 1e50])
@pytest.mark.parametrize("criterion", ["auc", "ndcg"])
def test_certificates_hold_at_every_scale_of_features(few, scale, criterion):
    X, y, qid = few
    model = fitted(X * scale, y, qid, criterion=criterion)
    assert model.stop_reason_ in (("converged",) if scale <= 1e12 else ("converged", "stalled"))
    if model.stop_reason_ == "stalled":
        assert any("No QP solver reached the accuracy" in note for note in model.notes_)


@pytest.mark.parametrize("scale", [1e101, 1e155, 1e300, 1e307])
@pytest.mark.parametrize("parameters", [{}, {"formulation": "n-slack"}, {"criterion": "ndcg", "bound": "ramp"}], ids=str)
def test_features_of_too_large_a_scale_are_rejected(few, scale, parameters):
    X, y, qid = few
    with pytest.raises(ValueError, match=r"the scale of X is too large to train on.*Scale the features first"):
        StructRankSVM(**parameters).fit(X * scale, y, qid=qid)


def test_a_single_column_of_another_scale_is_named(few):
    X, y, qid = few
    with pytest.raises(ValueError, match="by the weight of column 3 "):
        StructRankSVM().fit(X * [1e-300, 1.0, 1e8, 1e300, 1.0, 1.0], y, qid=qid)
    fitted(X * [1e-300, 1.0, 1e8, 1e-10, 1.0, 1.0], y, qid)


def test_scores_that_overflow_are_rejected(few):
    X, y, qid = few
    model = fitted(X, y, qid)
    model.coef_ = np.full(X.shape[1], 2.0)
    with pytest.raises(ValueError, match="the score of row 1 of X is too large"):
        model.predict([[1.0] * 6, [1.7e308] * 6])


@pytest.mark.parametrize("C", [1e-300, 1e-8, 1e8])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_certificates_hold_at_every_C(few, C, criterion):
    assert fitted(*few, criterion=criterion, C=C).stop_reason_ == "converged"


@pytest.mark.parametrize("criterion", CRITERIA)
def test_constant_features_give_tied_scores(few, criterion):
    X, y, qid = few
    for value in (0.0, 1.0, -3.5e7):
        model = fitted(np.full(X.shape, value), y, qid, criterion=criterion)
        assert np.unique(model.predict(np.full(X.shape, value))).size == 1


@pytest.mark.parametrize("C", [1.0, 1e8])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_separable_data_are_separated(few, C, criterion):
    X, y, qid = few
    X = np.column_stack([np.where(y > 0, 1.0, -1.0), X])
    model = fitted(X, y, qid, criterion=criterion, C=C)
    if C > 1 and not model.health_.vacuous:
        assert model.score(X, y, qid=qid) == pytest.approx(1.0)


COMBOS = ({"criterion": ["map", "auc"]}, {"criterion": ["map", "ndcg-nc"], "slack": "shared"})


@pytest.mark.parametrize("formulation", ["auto", "one-slack", "n-slack"])
@pytest.mark.parametrize("parameters", [*({"criterion": one} for one in CRITERIA), *COMBOS], ids=str)
def test_certificates_hold_for_every_criterion_and_formulation(few, parameters, formulation):
    X, y, qid = few
    separable = np.column_stack([np.where(y > 0, 1.0, -1.0), X])
    cases = [(X * scale, 1.0) for scale in (1e-300, 1e-30, 1e-8, 1e8)] + [(X, C) for C in (1e-8, 1e8)]
    cases += [(np.full(X.shape, -3.5e7), 1.0), (separable, 1.0), (separable, 1e8)]
    for matrix, C in cases:
        model = fitted(matrix, y, qid, C=C, formulation=formulation, **parameters)
        assert model.stop_reason_ == "converged"
        assert model.certificate_.gap <= C * model.tol * (1 + 1e-9)
    with pytest.raises(ValueError, match="the scale of X is too large to train on"):
        StructRankSVM(formulation=formulation, **parameters).fit(X * 1e300, y, qid=qid)
    with pytest.raises(ValueError, match=f"no query has .*n_queries={len(y)}"):
        StructRankSVM(formulation=formulation, **parameters).fit(X, y, qid=np.arange(len(y)))


@pytest.mark.parametrize("formulation", ["auto", "n-slack"])
def test_training_scales_to_many_queries(rng, formulation):
    n = 200_000  # a quadratic step would take hours
    X = rng.standard_normal((2 * n, 2))
    y = (X[:, 0] > 0).astype(int)
    qid = np.repeat(np.arange(n), 2)
    model = fitted(X, y, qid, criterion="auc", formulation=formulation)
    assert model.stop_reason_ == "converged"
    assert model.coef_[0] > 10 * abs(model.coef_[1])
    with pytest.raises(ValueError, match=r"no query has .*n_queries=400000"):
        StructRankSVM(formulation=formulation).fit(X, y, qid=np.arange(2 * n))


@pytest.mark.parametrize("criterion", ["auc", "map"])
def test_training_scales_to_many_documents_in_one_query(rng, criterion):
    X = rng.standard_normal((200_000, 2))
    y = X[:, 0] + 0.5 * rng.standard_normal(200_000) > 1.5
    assert fitted(X, y.astype(int), criterion=criterion, C=10.0).score(X, y.astype(int), qid=0) > 0.7


# ---- Arbitrary input


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.tuples(st.integers(0, 1)),
    st.just(object()),
    st.just([1]),
    st.just({}),
)
DTYPES = ["?", "i1", ">i4", "u8", "f2", ">f4", "f8", "longdouble", "c8", "U3", "S2", "O", "M8[s]", "m8[s]", "V4"]


@st.composite
def arrays(draw, shape):
    """Draw an array of this shape or a similar one, or an object mistaken for such an array."""
    kind = draw(st.sampled_from(["right", "right", "right", "dtype", "cells", "shape", "scalar"]))
    if kind == "scalar":
        return draw(SCALARS)
    if kind == "shape":
        shape = draw(st.sampled_from([(), (0,), (0, 2), (2, 0), (4, 0), (1, 1), (3,), (4, 1), (4, 2, 1), (5, 2)]))
    values = np.array(draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))).astype(float)
    array = np.resize(values, shape)
    if kind == "dtype":
        with contextlib.suppress(TypeError, ValueError):
            return array.astype(draw(st.sampled_from(DTYPES)))
    if kind == "cells" and array.size:
        array = array.astype(object)
        array.flat[draw(st.integers(0, array.size - 1))] = draw(SCALARS)
        return array if draw(st.booleans()) else array.tolist()
    if draw(st.booleans()) and array.ndim == 2:
        return scipy.sparse.csr_matrix(array)
    return array


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(X=arrays((4, 2)), y=arrays((4,)), qid=st.just(0) | arrays((4,)), weight=st.none() | arrays((4,)))
@pytest.mark.filterwarnings("ignore")
def test_any_input_is_trained_on_or_rejected(X, y, qid, weight):
    # TypeError where scikit-learn requires it: for a cell that is not a number.
    with contextlib.suppress(ValueError, TypeError):
        model = StructRankSVM("auc").fit(X, y, qid=qid, sample_weight=weight)
        assert model.certificate_.dual <= model.certificate_.primal
        assert np.isfinite(model.coef_).all()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: SCALARS | st.sampled_from(["map", "auto", "po", "dual", "shared", "log2", 0, -1, 1e308, [], ["map", "auc"]])
            for name in StructRankSVM().get_params()
            if name != "verbose"
        },
    )
)
@pytest.mark.filterwarnings("ignore")
def test_any_parameters_are_used_or_rejected(parameters):
    if parameters.get("n_jobs") not in (None, 0, -1):
        parameters["n_jobs"] = None  # any large number of threads is valid
    with contextlib.suppress(ValueError):
        model = StructRankSVM(**parameters).fit([[0.0], [1.0], [0.5]], [0, 1, 0], qid=0)
        assert model.certificate_.dual <= model.certificate_.primal


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="the fuzzer needs alarms")
def test_the_fuzzer_finds_no_failure():
    fuzzer = Path(__file__).parent / "fuzz.py"
    result = subprocess.run([sys.executable, fuzzer, "200"], capture_output=True, text=True, timeout=300, check=False)
    assert "\n200 inputs, 0 failures" in result.stdout, result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory, few):
    """A folder with data, a model, scores, and invalid files."""
    X, y, qid = few
    folder = tmp_path_factory.mktemp("command-line")
    lines = [
        f"{label} qid:{query} " + " ".join(f"{number}:{value}" for number, value in enumerate(row, 1))
        for row, label, query in zip(X[:24], y[:24], qid[:24], strict=True)
    ]
    (folder / "data").write_text("\n".join(lines))
    fitted(X, y, qid).save(folder / "model")
    (folder / "scores").write_text("0.5\n" * 24)
    (folder / "noise").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    return folder


WORDS = [
    *("train", "predict", "evaluate", "inspect", "compare", "data", "model", "scores", "noise", "empty", "none", ".", ""),
    *("-o", "new", "-C", "1", "nan", "1e400", "-1", "--criterion", "auc", "é", "--k", "none", "--json", "--sparse", "--null"),
    *("min", "--measures", "ndcg@3", "ndcg@0", "--per-query", "--zero-based", "--tol", "--format", "trec", "--slack", "--"),
    *("--relevant-from", "--feature-map", "po", "--validation", "--gain", "linear", "--discount", "--help", "\x00", "-"),
]
BEGINNINGS = [
    [],
    ["train", "data", "-o", "new"],
    ["predict", "model", "data"],
    ["evaluate", "data", "scores"],
    ["inspect", "model"],
]


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(beginning=st.sampled_from(BEGINNINGS), words=st.lists(st.sampled_from(WORDS), max_size=5))
def test_any_command_line_ends_with_a_result_or_an_error_message(folder, beginning, words):
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(folder, place, dirs_exist_ok=True)  # -o may name any of its files
        with contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([*beginning, *words])
    assert code in (0, 2)
    assert out.getvalue() if code == 0 else "error: " in err.getvalue()


# ---- Failing machines


def run(code, *arguments, **settings):
    """Run code in a subprocess."""
    result = subprocess.run(
        [*settings.pop("before", []), sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        **settings,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_if_memory_runs_out_while_saving_the_earlier_file_is_kept(few, tmp_path):
    path = tmp_path / "m"
    fitted(*few).save(path)
    before = path.read_bytes()
    code = """
import resource, sys
import numpy as np
from structrank import load_model
model = load_model(sys.argv[1])
model.coef_ = np.zeros(40_000_000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
try:
    model.save(sys.argv[1])
except MemoryError:
    print("no memory")
"""
    assert run(code, path) == "no memory\n"
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_if_memory_runs_out_in_training_the_earlier_model_is_kept():
    code = """
import resource
import numpy as np
from structrank import StructRankSVM
model = StructRankSVM("auc").fit([[0.0], [1.0]], [0, 1], qid=0)
before = model.coef_.copy()
X, y = np.zeros((4_000_000, 10), dtype=np.int8), np.arange(4_000_000) % 2  # 320 MB as float64
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
try:
    model.fit(X, y, qid=0)
except MemoryError as error:
    print(error)
assert np.array_equal(model.coef_, before)
assert np.array_equal(model.predict([[2.0]]), 2.0 * before)
"""
    assert run(code).startswith("Unable to allocate")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_the_command_line_reports_that_memory_ran_out(folder, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"1 qid:1 1:0.5 2:0.25 30:0.125\n0 qid:1 1:0.25 2:0.5 30:0.75\n" * 500_000)  # 240 MB as float64
    code = """
import resource, sys
from structrank import cli
assert cli.main(["inspect", sys.argv[1]]) == 0  # load the compiled code before the limit
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, used + 2**26))
sys.stderr = sys.stdout
print(cli.main(["inspect", sys.argv[2]]))
"""
    *_, message, status = run(code, folder / "data", path).splitlines()
    assert message.startswith("structrank inspect: error: not enough memory.")
    assert status == "1"


def test_a_run_that_runs_out_of_memory_resumes_from_its_checkpoint(few, tmp_path, monkeypatch):
    X, y, qid = few
    expected = fitted(X, y, qid, C=10.0)
    passes, plane = [], risk.Risk.plane

    def fail(self, w, kind="risk"):
        passes.append(w)
        if len(passes) == 5:
            raise MemoryError("Unable to allocate 1. TiB")
        return plane(self, w, kind)

    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(risk.Risk, "plane", fail)
        with pytest.raises(MemoryError):
            StructRankSVM(C=10.0).fit(X, y, qid=qid, checkpoint=tmp_path)
    assert (tmp_path / "training-convex-1.checkpoint").exists()
    resumed = StructRankSVM(C=10.0).fit(X, y, qid=qid, checkpoint=tmp_path)
    assert np.array_equal(resumed.coef_, expected.coef_)


def test_a_pass_that_runs_out_of_memory_suggests_a_decay_with_a_cutoff(few, monkeypatch):
    def fail(*_):
        raise MemoryError("Allocation failed (probably too large).")

    monkeypatch.setattr("structrank._kernels.passes.sweep", fail)
    X, y, qid = few
    with pytest.raises(MemoryError, match=r'a pass over queries of up to \d+ documents\. .* decay="sqrt@30" limits it'):
        StructRankSVM("dorm").fit(X, y, qid=qid)


def test_if_memory_runs_out_finished_cells_of_a_comparison_are_kept(fold, tmp_path):
    class Hungry:
        def fit(self, X, y, qid):
            np.empty(2**57)

        def predict(self, X):
            return np.zeros(len(X))

    rows = {"AUC": StructRankSVM("auc"), "hungry": Hungry()}
    with pytest.raises(MemoryError, match="Unable to allocate") as caught:
        compare({"made": fold}, rows, "map", Cs=[1.0], results=tmp_path)
    assert caught.value.__notes__ == ["in compare: trainer 'hungry', data set 'made', fold 1"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".cell", ".structrank"}
    assert all(path.name.startswith("made-fold1-AUC-") for path in tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs devices")
def test_devices_are_written_to_and_not_replaced(few, tmp_path):
    fitted(*few).save(os.devnull)
    assert not Path(os.devnull).is_file()
    link = tmp_path / "full"
    if os.path.exists("/dev/full"):
        link.symlink_to("/dev/full")
        with pytest.raises(OSError, match="cannot save the model: No space left on device; nothing was saved: '/dev/full'"):
            fitted(*few).save(link)
        assert link.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are those of Unix")
def test_every_writer_reports_a_file_size_limit_and_keeps_earlier_files_and_no_training_is_lost(tmp_path):
    code = """
import os, resource, sys, warnings
from pathlib import Path
from structrank import StructRankSVM, compare, datasets
from structrank.training import checkpoint
from structrank.comparison import runs

os.chdir(sys.argv[1])
checkpoint._SECONDS = 0.0
fold = datasets.make_ranking(n_queries=30, n_docs=8, n_features=6, noise=0.5, random_state=0)
data = fold.train.X, fold.train.y, fold.train.qid
model = StructRankSVM("map").fit(*data)
table = compare({"made": fold}, ["AUC"], "map", Cs=[1.0])
class First:  # has no model to save
    def fit(self, X, y, qid):
        return self

    def predict(self, X):
        return X[:, 0]


longer = iter([2, 3, 1000, 1000])  # a resumed run has more to write
writers = {
    "the model": lambda: model.save("m.structrank"),
    "the model ": lambda: model.to_svmrank("m.dat"),
    "the model  ": lambda: model.to_ranklib("m.txt"),
    "the run": lambda: runs.write_run("run.txt", fold.train, model.predict(data[0])),
    "the qrels": lambda: runs.write_qrels("qrels.txt", fold.train),
    "the table": lambda: table.to_csv("table.csv"),
    "the report": lambda: table.to_report("report.html"),
}
trainings = {  # which are worth more than what they keep
    "the checkpoint": lambda: StructRankSVM("map", max_iter=next(longer)).fit(*data, checkpoint="run"),
    "the checkpoint ": lambda: StructRankSVM("mrr", bound="ramp", max_iter=next(longer)).fit(*data, checkpoint="ramp"),
    "the cell": lambda: compare({"made": fold}, {"first": First()}, "map", results="cells"),
}
contents = lambda: {path: path.read_bytes() for path in Path(".").rglob("*") if path.is_file()}
for write in [*writers.values(), *trainings.values()]:
    write()
next(Path("cells").iterdir()).unlink()  # otherwise it would be read
before = contents()
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
for what, write in writers.items():
    try:
        write()
        print(what, "was saved")
    except OSError as error:
        assert error.strerror == f"cannot save {what.strip()}: File too large; the earlier file is unchanged", error
        assert error.filename.startswith(os.getcwd())
for what, write in trainings.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write()
    assert f"cannot save {what.strip()}: File too large; nothing was saved" in str(caught[0].message)
    assert all(one.category is not RuntimeWarning for one in caught[1:])
assert contents() == before
print("as before")
"""
    assert run(code, tmp_path) == "as before\n"


def test_on_a_full_disk_finished_cells_of_a_comparison_are_kept(fold, tmp_path, monkeypatch):
    rows, sync, synced = ["AUC", "MAP"], os.fsync, []

    def fill_up(handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):  # not a folder, which is synced on Unix only
            if len(synced) == 2:  # a model and its cell
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            synced.append(handle)
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fill_up)
        with pytest.warns(RuntimeWarning, match="No space left on device.*The comparison goes on without"):
            without = compare({"made": fold}, rows, "map", Cs=[1.0], results=tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(kept) == 2
    table = compare({"made": fold}, rows, "map", Cs=[1.0], results=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert table.to_frame().equals(without.to_frame())


def test_concurrent_fits_in_threads_are_bit_identical(few):
    X, y, qid = few
    alone = [fitted(X, y, qid, criterion=criterion).coef_.tobytes() for criterion in CRITERIA]

    def train(criterion):
        return StructRankSVM(criterion, n_jobs=2).fit(X, y, qid=qid).coef_.tobytes()

    with warnings.catch_warnings(), ThreadPoolExecutor(6) as pool:
        warnings.simplefilter("ignore", StructRankWarning)
        assert list(pool.map(train, CRITERIA * 2)) == alone * 2


@pytest.mark.skipif(sys.platform != "linux", reason="fork is absent on Windows and not safe after BLAS on macOS")
def test_fits_in_forked_and_spawned_processes_are_bit_identical(tmp_path):
    (tmp_path / "fits.py").write_text("""
import multiprocessing
from structrank import StructRankSVM, datasets

def fit(criterion):
    part = datasets.make_ranking(n_queries=20, n_docs=6, n_features=3, random_state=0).train
    return StructRankSVM(criterion, n_jobs=2).fit(part.X, part.y, qid=part.qid).coef_.tobytes()

if __name__ == "__main__":
    alone = [fit("auc"), fit("map")]
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(fit, ["auc", "map"]) == alone, method
    print("same")
""")
    result = subprocess.run([sys.executable, tmp_path / "fits.py"], capture_output=True, text=True, timeout=300, check=False)
    assert result.stdout == "same\n", result.stderr


@pytest.fixture
def read_only_package(tmp_path):
    """A read-only copy of the package."""
    place, without_caches = tmp_path / "read-only", shutil.ignore_patterns("__pycache__")
    for name in ("", "solvers", "datasets"):
        module = getattr(structrank, name) if name else structrank
        copy = place / "structrank" / name
        shutil.copytree(Path(module.__file__).parent, copy, ignore=without_caches, dirs_exist_ok=True)
    folders = [place, *(path for path in place.rglob("*") if path.is_dir())]
    for each in folders:
        each.chmod(0o555)
    yield place
    for each in folders:
        each.chmod(0o755)


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and caches are those of Linux")
def test_the_package_works_with_a_read_only_install_and_home(read_only_package, tmp_path):
    # Root can write everywhere unless that capability is dropped.
    restricted = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if restricted and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    probe = "import os, sys; sys.exit(os.access(sys.argv[1], os.W_OK))"
    if subprocess.run([*restricted, sys.executable, "-c", probe, read_only_package], check=False).returncode:
        pytest.skip("permissions have no effect here")
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
import structrank
assert structrank.__file__.startswith(sys.argv[1])
from structrank._kernels import linear
from structrank.solvers.backends import dual
from structrank.datasets import _letor_parser
assert os.path.isdir(os.environ["NUMBA_CACHE_DIR"])
print(os.environ["NUMBA_CACHE_DIR"])
"""
    environment = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment["HOME"] = str(read_only_package)
    cache = run(code, read_only_package, before=restricted, env=environment, cwd=tmp_path)
    assert not os.path.exists(cache.strip())


# ---- Numbers and files


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_integers_beyond_float64_are_reported_with_their_row(value):
    X, y = [[0.0], [1.0]], [0, 1]
    for use in (
        lambda: StructRankSVM("auc").fit(X, [0, value], qid=0),
        lambda: StructRankSVM("auc").fit([[0], [value]], y, qid=0),
        lambda: StructRankSVM("auc").fit(X, y, qid=0, sample_weight=[1, value]),
        lambda: metrics.evaluate(y, [0, value], [7, 7], "map"),
    ):
        with pytest.raises(ValueError, match=r"(y|X|sample_weight|scores) has -?10000.* at row 1"):
            use()


KILLED = """
import os, signal, sys
from structrank._support import files
if sys.argv[2] == "killed":
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
else:
    os.fsync = lambda handle: (print("writing", flush=True), sys.stdin.readline())
files.replace_file(sys.argv[1], b"new", "the model")
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of files")
def test_files_of_killed_writers_are_removed_and_those_of_running_writers_are_not(tmp_path):
    path = str(tmp_path / "model")
    assert subprocess.run([sys.executable, "-c", KILLED, path, "killed"], check=False).returncode == -9
    (abandoned,) = os.listdir(tmp_path)
    running = subprocess.Popen([sys.executable, "-c", KILLED, path, "runs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout.readline() == b"writing\n"
    (other,) = os.listdir(tmp_path)  # the running writer has removed the abandoned file
    assert other != abandoned
    replace_file(tmp_path / "other", b"1", "the note")
    replace_file(path, b"2", "the model")
    assert sorted(os.listdir(tmp_path)) == sorted([other, "other", "model"])
    running.communicate(b"\n")
    assert running.returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]
    assert (tmp_path / "model").read_bytes() == b"new"
