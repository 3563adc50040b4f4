"""The command line: results of the API on stdout; notes and errors in one line each on stderr, with an exit code."""

import gzip
import json
import logging
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, RR, P, nDCG
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankSVM, choose_C, cli, datasets, load_model, metrics, register, train_for
from structrank._support.saveable import SAVEABLE
from structrank.cli.output import reporting_compilation
from structrank.comparison import experiment
from structrank.comparison.trainers import default_trainers
from structrank.datasets import load_letor
from structrank.learners.trees import LightGBMRanker
from structrank.models import exports, imports
from structrank.models.ranker import Ranker
from structrank.penalties import Penalty
from structrank.selection import choosing_c
from structrank.solvers import CuttingPlanes
from structrank.training import risk

COMMANDS = ("compare", "train", "train-for", "predict", "evaluate", "explain", "inspect", "export", "reproduce", "warmup")
pytestmark = pytest.mark.usefixtures("inside")


def words_of(command):
    """Split a command, which may name files of Windows, in whose names a backslash is no escape."""
    return shlex.split(command if os.sep == "/" else command.replace(os.sep, 2 * os.sep))


def write_letor(path, data, names=True):
    with open(path, "w", encoding="utf-8") as file:
        for row, (x, y, qid) in enumerate(zip(data.X.tolist(), data.y, data.qid, strict=True)):
            features = " ".join(f"{number}:{value!r}" for number, value in enumerate(x, 1))
            file.write(f"{y:g} qid:{qid} {features}" + (f" #docid = D{row}" if names else "") + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's data files and a model."""
    folder = tmp_path_factory.mktemp("user")
    fold = datasets.make_ranking(n_queries=50, n_docs=8, n_features=5, noise=0.5, random_state=3)
    test = fold.test
    # Grades for NDCG, and one query without a relevant document, for which most measures are undefined.
    graded = np.where(test.qid == test.qid[-1], 0, test.y * (1 + np.arange(len(test.y)) % 2))
    test = datasets.Dataset(test.X, graded, test.qid)
    for name, part in (("train", fold.train), ("vali", fold.validation), ("test", test)):
        write_letor(folder / f"{name}.txt", part)
    write_letor(folder / "nameless.txt", test, names=False)
    (folder / "malformed.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:abc\n")
    (folder / "flat.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:0.25\n")
    (folder / "wide.txt").write_text("1 qid:1 1:0.5 6:1\n0 qid:1 1:0.25\n")
    for number in (1, 2):
        fold = datasets.make_ranking(n_queries=20, n_docs=6, n_features=3, noise=0.3, random_state=number)
        (folder / "made" / f"Fold{number}").mkdir(parents=True)
        write_letor(folder / "made" / f"Fold{number}" / "train.txt", fold.train)
        write_letor(folder / "made" / f"Fold{number}" / "test.txt", fold.test)
    data = load_letor(folder / "train.txt")
    StructRankSVM("map").fit(data.X, data.y, qid=data.qid).save(folder / "map.structrank")
    return folder


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture
def run(capsys):
    """Run a command in this process; return its exit code, stdout and stderr."""

    def run(command):
        code = cli.main(words_of(command) if isinstance(command, str) else command)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def result(run):
    """Run a command that must succeed; return its JSON output."""

    def result(command):
        code, out, err = run(f"{command} --json")
        assert code == 0, err
        return json.loads(out)

    return result


# ---- As a program


PROGRAM = os.path.join(os.path.dirname(sys.executable), "structrank")


def program(command):
    return subprocess.run([PROGRAM, *words_of(command)], capture_output=True, text=True)


def test_the_installed_program_trains_predicts_and_evaluates(tmp_path):
    model, run_file = tmp_path / "m.structrank", tmp_path / "run.txt"
    trained = program(f"train train.txt --criterion ndcg-nc -C 10 -o {model}")
    assert trained.returncode == 0, trained.stderr
    assert "iteration" in trained.stderr
    assert trained.stdout.startswith(f"model         {model}\n")
    predicted = program(f"predict {model} test.txt --format trec")
    assert (predicted.returncode, predicted.stderr) == (0, "")
    run_file.write_text(predicted.stdout)
    evaluated = program(f"evaluate test.txt {run_file}")
    assert (evaluated.returncode, evaluated.stderr) == (0, "")
    assert evaluated.stdout.startswith("measure\tmean\tqueries\tundefined\tsettings\nmrr@10\t")


def test_results_in_files_are_utf8_whatever_the_encoding_of_the_machine(tmp_path):
    row = "1:1 2:0 3:0 4:0 5:0 #docid = \N{GREEK SMALL LETTER ALPHA}"
    (tmp_path / "d.txt").write_text(f"1 qid:\N{GREEK SMALL LETTER BETA} {row}\n", encoding="utf-8")
    (tmp_path / "s.txt").write_text("0.5\n")
    for command, found in (
        (
            ["predict", "map.structrank", tmp_path / "d.txt", "--format", "trec"],
            "\N{GREEK SMALL LETTER BETA} Q0 \N{GREEK SMALL LETTER ALPHA} ",
        ),
        (
            ["evaluate", tmp_path / "d.txt", tmp_path / "s.txt", "--measures", "p@1", "--per-query"],
            "\N{GREEK SMALL LETTER BETA}\t1",
        ),
    ):
        done = subprocess.run([PROGRAM, *command], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"})
        assert (done.returncode, done.stderr) == (0, b"")
        assert found in done.stdout.decode("utf-8")


def test_python_m_structrank_runs_the_program():
    done = subprocess.run([sys.executable, "-m", "structrank", "inspect", "none.txt"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "structrank inspect: error: none.txt: No such file or directory\n"


def test_errors_print_one_line_and_exit_with_code_2():
    for command in ("inspect malformed.txt", "inspect", "frobnicate"):
        done = program(command)
        assert (done.returncode, done.stdout) == (2, ""), command
        assert re.fullmatch(r"structrank( inspect)?: error: .+\n", done.stderr), command


@pytest.mark.skipif(os.name != "posix", reason="pipes of Unix")
def test_a_closed_pipe_prints_no_error():
    command = [PROGRAM, "predict", "map.structrank", "test.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141  # 128 + SIGPIPE, as the shell reports for other programs


full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")


@full_device
def test_a_full_disk_is_reported_in_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "inspect", "test.txt"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "structrank inspect: error: [Errno 28] No space left on device\n")


@full_device
@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("command", ["train train.txt -C 1 -o /dev/full", "train-for map train.txt -C 1 -o /dev/full"])
def test_a_model_that_cannot_be_saved_is_rescued(run, command):
    code, _, err = run(command)
    assert code == 2
    (path,) = re.findall(r"/dev/full: cannot save the model: .*; the model is in (/\S+)\n", err)
    assert isinstance(load_model(path), StructRankSVM)
    shutil.rmtree(os.path.dirname(path))


@pytest.mark.usefixtures("inside")
@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="there is no /proc here")
def test_a_place_where_no_file_can_be_created_is_named_before_training(run, monkeypatch):
    monkeypatch.setattr(StructRankSVM, "fit_path", None)
    code, _, err = run("train train.txt -o /proc/m")
    assert (code, "/proc/m cannot be written: No such file or directory." in err) == (2, True)


def test_ctrl_c_saves_the_model_so_far(tmp_path):
    path = tmp_path / "m.structrank"
    # Ctrl-C comes at the first iteration of the second C.
    code = """
import signal, sys
from structrank import cli
from structrank._support import progress

update = progress.ProgressLine.update

def interrupted(self, text):
    update(self, text)
    if text.startswith("C=10 "):
        signal.raise_signal(signal.SIGINT)

progress.ProgressLine.update = interrupted
sys.exit(cli.main())
"""
    command = f"train train.txt -C 0.001 10 --validation vali.txt -o {path}"
    done = subprocess.run([sys.executable, "-c", code, *words_of(command)], capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    assert done.stdout.startswith(f"model         {path}\n")
    assert done.stderr.endswith(f"structrank train: interrupted; the model so far is in {path}\n")
    assert load_model(path).coef_.any()


def test_help_and_version_import_no_heavy_library():
    code = (
        "import sys; from structrank.cli import main; assert main(['--version']) == main(['train', '--help']) == 0; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("structrank 0.1.0\nusage: structrank train")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_valid_examples(run, command):
    code, out, _ = run(f"{command} --help")
    assert code == 0
    examples = re.findall(rf"^  (structrank {command}(?: .*)?)$", out.split("examples:\n")[1], re.MULTILINE)
    assert len(examples) >= 2
    for example in examples:
        words = shlex.split(example.split(" > ")[0])
        assert cli._parser().parse_args(words[1:]).command == command


# ---- train


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("", {}),
        ("--criterion auc -C 0.1 --relevant-from none", {"criterion": "auc", "C": 0.1, "relevant_from": None}),
        ("--criterion ndcg --k 5 --discount log2", {"criterion": "ndcg", "k": 5, "discount": "log2"}),
        ("--criterion mrr --k none --feature-map po", {"criterion": "mrr", "k": None, "feature_map": "po"}),
        ("--criterion dorm --feature-map dorm(ties=score)", {"criterion": "dorm", "feature_map": "dorm(ties=score)"}),
        ("--criterion auc --scale-columns std", {"criterion": "auc", "scale": "std"}),
        ("--criterion dorm --tol 0.01 --jobs 2", {"criterion": "dorm", "tol": 0.01, "n_jobs": 2}),
        (
            "--criterion map --criterion mrr --feature-map po --slack shared",
            {"criterion": ["map", "mrr"], "feature_map": "po", "slack": "shared"},
        ),
        (
            "--criterion map --criterion mrr --feature-map auto --feature-map mrr --relevant-from 0.5",
            {"criterion": ["map", "mrr"], "feature_map": ["auto", "mrr"], "relevant_from": 0.5},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
def test_training_equals_the_api(result, tmp_path, options, parameters):
    path = tmp_path / "m.structrank"
    facts = result(f"train train.txt -o {path} {options}")
    data, loaded = load_letor("train.txt"), load_model(path)
    expected = StructRankSVM(**parameters).fit(data.X, data.y, qid=data.qid)
    assert loaded.get_params() == expected.get_params()
    assert loaded.coef_.tobytes() == expected.coef_.tobytes()
    assert facts["certificate"]["primal"] == expected.certificate_.primal
    assert facts["iterations"] == expected.n_iter_
    assert facts["weights"][0]["weight"] == max(expected.coef_, key=abs)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("--nonnegative", {"lower": 0.0}),
        (
            "--bounds f1:-inf:0 f3:-0.2:-0.1 --l1 0.02",
            {"lower": {"f1": -np.inf, "f3": -0.2}, "upper": {"f1": 0.0, "f3": -0.1}, "l1": 0.02},
        ),
        ("--prior MODEL --nonnegative", {"lower": 0.0, "prior": "MODEL"}),
    ],
)
def test_penalties_equal_those_of_the_api(result, tmp_path, options, parameters):
    production, path = tmp_path / "production.structrank", tmp_path / "m.structrank"
    result(f"train train.txt -o {production}")
    if "prior" in parameters:
        parameters = {**parameters, "prior": load_model(production)}
    result(f"train train.txt -C 0.5 -o {path} {options.replace('MODEL', str(production))}")
    data, loaded = load_letor("train.txt"), load_model(path)
    expected = StructRankSVM(C=0.5, penalty=Penalty(**parameters)).fit(data.X, data.y, qid=data.qid)
    assert loaded.penalty == expected.penalty
    assert loaded.coef_.tobytes() == expected.coef_.tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--nonnegative --bounds f1:0:1", "--nonnegative and --bounds exclude each other"),
        ("--bounds f1:1:0", "'f1:1:0' is not valid: expected NAME:LOW:HIGH"),
        ("--bounds price:0:1", "names the feature 'price', which X does not have; it has f1, f2"),
        ("--prior missing.structrank", "missing.structrank"),
    ],
)
def test_an_invalid_penalty_is_one_line(run, tmp_path, options, message):
    code, _, errors = run(f"train train.txt -o {tmp_path / 'm.structrank'} {options}")
    assert code != 0
    assert message in errors


def test_the_best_C_on_validation_data_is_used(result, run, tmp_path):
    path = tmp_path / "m.structrank"
    command = f"train train.txt --criterion map -C 100 0.001 1 --validation vali.txt -o {path}"
    facts = result(command)
    train, vali = load_letor("train.txt"), load_letor("vali.txt")
    data = train.X, train.y, train.qid
    chosen, models = choose_C(*data, validation=vali, Cs=[0.001, 1, 100]), StructRankSVM("map").fit_path(*data, [0.001, 1, 100])
    scores = chosen.means.tolist()
    assert facts["held_out"] == [{"C": C, "score": score} for C, score in zip([0.001, 1, 100], scores, strict=True)]
    assert facts["C"] == load_model(path).C == models[int(np.argmax(scores))].C
    assert np.array_equal(load_model(path).coef_, models[int(np.argmax(scores))].coef_)
    _, out, _ = run(command)
    assert f"chose C={facts['C']:g} of C=0.001: {scores[0]:.4f}, C=1: {scores[1]:.4f}" in out


def test_training_resumes_from_a_checkpoint(result, tmp_path, monkeypatch):
    command = f"train train.txt -C 100 -o {tmp_path}/m --checkpoint {tmp_path}/run"
    first = result(command)
    passes, plane = [], risk.Risk.plane
    monkeypatch.setattr(risk.Risk, "plane", lambda self, w, kind="risk": passes.append(w) or plane(self, w, kind))
    assert result(command) == first
    assert len(passes) == 1  # to compare the data with the checkpoint


def test_the_certificate_of_the_ramp_bound_names_its_problem(run, tmp_path):
    run(f"train train.txt --criterion mrr --bound ramp -o {tmp_path}/m")
    _, out, _ = run(f"inspect {tmp_path}/m")
    assert "certificate   of the last convex problem solved for the ramp bound: objective " in out
    assert "certificate   objective " in run("inspect map.structrank")[1]


def test_warnings_of_training_are_lines_on_stderr(run, tmp_path):
    (tmp_path / "same.txt").write_text("1 qid:1 1:1\n0 qid:1 1:1\n")  # identical feature vectors
    code, out, err = run(f"train {tmp_path / 'same.txt'} -o {tmp_path / 'm'}")
    assert code == 0
    assert "\nstructrank train: warning: Training on map (phi_po) has learned nothing: " in err
    assert "learned nothing" not in out  # said once
    assert load_model(tmp_path / "m").notes_[0].startswith("Training on map (phi_po) has learned nothing")


def test_an_interrupted_choice_of_C_uses_the_finished_models(run, tmp_path, monkeypatch):
    path = tmp_path / "m.structrank"
    run_for_C = CuttingPlanes.run

    def interrupted(self, C, *arguments):
        def press(iteration):
            if C == 100 and iteration.iteration == 2:
                raise KeyboardInterrupt

        return run_for_C(self, C, *arguments[:-1], press)

    monkeypatch.setattr(CuttingPlanes, "run", interrupted)
    code, out, err = run(f"train train.txt -C 0.01 100 1000 --tol 1e-6 --validation vali.txt -o {path}")
    assert code == 130
    assert "warning: The choice of C was interrupted: ScoredPath(chose C = " in err
    assert err.endswith(f"structrank train: interrupted; the model so far is in {path}\n")
    assert re.search(r"held out      chose C=\S+ of C=0.01: 0.\d{4}, C=100: 0.\d{4}\n", out)
    assert load_model(path).C in (0.01, 100)


def test_an_interruption_before_training_saves_nothing(run, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("structrank.datasets.load_letor", interrupt)
    code, out, err = run(f"train train.txt -o {tmp_path / 'm'}")
    assert (code, out, err) == (130, "", "structrank train: interrupted; nothing was saved\n")
    assert os.listdir(tmp_path) == []


# ---- predict and evaluate


def test_predictions_equal_the_model_and_keep_the_order_of_the_data(run, result):
    data, model = load_letor("test.txt"), load_model("map.structrank")
    code, out, err = run("predict map.structrank test.txt")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head == "qid\tdocid\tscore\trank"
    columns = list(zip(*(line.split("\t") for line in lines), strict=True))
    assert [int(qid) for qid in columns[0]] == data.qid.tolist()
    assert list(columns[1]) == data.docid.tolist()
    assert [float(score) for score in columns[2]] == model.predict(data.X).tolist()
    assert [int(rank) for rank in columns[3]] == model.rank(data.X, qid=data.qid).tolist()
    listed = result("predict map.structrank test.txt")
    assert [tuple(map(str, document.values())) for document in listed] == list(zip(*columns, strict=True))


def test_a_trec_run_measured_by_ir_measures_agrees_with_ours(run, result, tmp_path):
    data = load_letor("test.txt")
    _, out, err = run("predict map.structrank test.txt --format trec")
    assert err == ""  # no ties, which trec_eval breaks by document id
    assert [line.split()[3] for line in out.splitlines()][:8] == [str(rank) for rank in range(1, 9)]
    path = tmp_path / "run.txt"
    path.write_text(out)
    qrels = [
        ir_measures.Qrel(str(qid), docid, int(label)) for qid, docid, label in zip(data.qid, data.docid, data.y, strict=True)
    ]
    theirs = {
        "ndcg@5": nDCG(gains={0: 0, 1: 1, 2: 3}) @ 5,
        "ndcg": nDCG(gains={0: 0, 1: 1, 2: 3}),
        "map": AP,
        "mrr": RR,
        "p@3": P @ 3,
    }
    measures = result(f"evaluate test.txt {path} --per-query --measures {' '.join(theirs)}")["measures"]
    found = list(ir_measures.iter_calc(theirs.values(), qrels, ir_measures.read_trec_run(str(path))))
    by_measure = {measure: name for name, measure in theirs.items()}
    defined = {str(qid) for qid, label in zip(data.qid, data.y, strict=True) if label > 0}
    assert len({metric.query_id for metric in found}) == len(defined) + 1 == 10
    for metric in found:
        ours = measures[by_measure[metric.measure]]["per_query"][metric.query_id]
        if metric.query_id in defined:
            assert ours == pytest.approx(metric.value, abs=1e-9)
        else:
            assert ours is None
    for name, measure in theirs.items():
        values = [metric.value for metric in found if metric.measure == measure and metric.query_id in defined]
        assert measures[name]["mean"] == pytest.approx(np.mean(values), abs=1e-9)
        assert measures[name]["undefined"] == 1


def test_every_format_of_a_ranking_gives_the_same_measures(run, result, tmp_path):
    data, model = load_letor("test.txt"), load_model("map.structrank")
    measures = ["ndcg@3", "map", "auc", "pair_accuracy", "err@3(max_grade=3)", "rbp(p=0.5)", "recall@2"]
    settings = {"gain": "linear", "discount": "kdd08", "relevant_from": 2}
    expected = metrics.evaluate(data.y, model.predict(data.X), data.qid, measures, **settings)
    forms = {"model": "map.structrank"}
    for name, command in (("tsv", "predict map.structrank test.txt"), ("run", "predict map.structrank test.txt --format trec")):
        forms[name] = tmp_path / name
        forms[name].write_text(run(command)[1])
    forms["shuffled"] = tmp_path / "shuffled"
    forms["shuffled"].write_text("".join(sorted(forms["run"].read_text().splitlines(keepends=True), reverse=True)))
    forms["scores"] = tmp_path / "scores"
    forms["scores"].write_text("".join(f"{score!r}\r\n" for score in model.predict(data.X).tolist()), newline="")
    for name, path in forms.items():
        options = f"--measures {shlex.join(measures)} --gain linear --discount kdd08 --relevant-from 2"
        facts = result(f"evaluate test.txt {path} {options}")
        assert facts["queries"] == 10
        assert {measure: found["mean"] for measure, found in facts["measures"].items()} == dict(expected), name
        assert {measure: found["undefined"] for measure, found in facts["measures"].items()} == expected.undefined
        assert facts["measures"]["ndcg@3"]["settings"] == "gain=linear, discount=kdd08"


def test_undefined_queries_are_counted_and_shown(run):
    _, out, _ = run("evaluate test.txt map.structrank --measures map pair_accuracy")
    assert re.fullmatch(
        r"measure\tmean\tqueries\tundefined\tsettings\n"
        r"map\t0\.\d{6}\t10\t1\trelevant_from=1\n"
        r"pair_accuracy\t0\.\d{6}\t10\t1\t-\n",
        out,
    )
    _, out, _ = run("evaluate test.txt map.structrank --measures map p@2 --per-query")
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["qid", "map", "p@2"]
    assert lines[-3][1:] == ["nan", "nan"]
    assert [line[0] for line in lines[-2:]] == ["mean", "undefined"]
    assert lines[-1][1:] == ["1", "1"]
    assert float(lines[-2][1]) == pytest.approx(np.nanmean([float(line[1]) for line in lines[1:-2]]), abs=1e-6)


def test_ties_and_undefined_queries_follow_the_options(result, tmp_path):
    data, path = load_letor("test.txt"), tmp_path / "scores"
    path.write_text("1.0\n" * len(data))
    for options, settings in (("--ties stable", {"ties": "stable"}), ("--empty 1", {"empty": 1.0}), ("", {})):
        facts = result(f"evaluate test.txt {path} --measures map {options}")
        expected = metrics.evaluate(data.y, np.ones(len(data)), data.qid, "map", **settings)
        assert facts["measures"]["map"]["mean"] == expected["map"]


def test_documents_without_ids_are_numbered(run, result, tmp_path):
    code, out, err = run("predict map.structrank nameless.txt --format trec")
    assert code == 0
    assert err == (
        "structrank predict: note: nameless.txt has no document ids that are unique within a query and without blanks; "
        "rows are numbered from 1\n"
    )
    path = tmp_path / "run.txt"
    path.write_text(out)
    assert {int(line.split()[2]) for line in out.splitlines()} == set(range(1, 81))
    assert result(f"evaluate nameless.txt {path}") == result("evaluate test.txt map.structrank")


def test_scores_that_trec_eval_would_tie_are_noted(run, tmp_path):
    path = tmp_path / "tied.txt"
    path.write_text("".join(f"{label} qid:1 1:{value} #docid = D{value}\n" for label, value in ((1, 0.5), (0, 0.5000000001))))
    code, out, err = run(f"predict map.structrank {path} --format trec --n-features 5")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "note: 2 of 2 scores equal another of their query as 32-bit numbers, which is how trec_eval reads them" in err


def test_data_with_fewer_features_than_the_model_need_their_number(run, result, tmp_path):
    path = tmp_path / "narrow.txt"
    path.write_text("1 qid:a 1:0.5 #docid = A\n0 qid:a 2:1 #docid = B\n")
    code, _, err = run(f"predict map.structrank {path}")
    assert (code, err) == (
        2,
        f"structrank predict: error: {path} has 2 features; map.structrank has 5. If the others are 0 in all rows, and so not "
        "in the file, say --n-features 5.\n",
    )
    coef = load_model("map.structrank").coef_
    for options in ("--n-features 5", "--n-features 5 --sparse"):
        assert [row["score"] for row in result(f"predict map.structrank {path} {options}")] == [0.5 * coef[0], coef[1]]


def test_without_arguments_the_help_is_shown(run):
    code, out, _ = run("")
    assert code == 0
    assert all(command in out for command in COMMANDS)


def test_several_C_without_validation_are_compared_on_inner_folds(result, run, tmp_path):
    facts = result(f"train train.txt -C 0.1 1 10 -o {tmp_path / 'm'}")
    data = load_letor("train.txt")
    chosen = choose_C(data.X, data.y, data.qid, Cs=[0.1, 1.0, 10.0])
    assert [entry["score"] for entry in facts["held_out"]] == chosen.means.tolist()
    assert facts["C"] == chosen.C == load_model(tmp_path / "m").C


@pytest.mark.parametrize(("sign", "chosen", "beyond"), [(1, "10", "larger"), (-1, "0.1", "smaller"), (0, "0.1", None)])
def test_a_C_at_the_edge_of_its_grid_is_noted(run, tmp_path, monkeypatch, sign, chosen, beyond):
    monkeypatch.setattr(choosing_c, "_means", lambda values, weights: sign * np.arange(len(values)))
    _, out, err = run(f"train train.txt -C 0.1 1 10 --validation vali.txt -o {tmp_path / 'm'}")
    assert f"chose C={chosen} " in out
    note = f"note: C={chosen} is at the edge of the values given with -C; a {beyond} one may be better"
    assert note in err if beyond else "at the edge" not in err  # a tie says nothing of other values


@pytest.mark.parametrize("command", ["predict", "explain --query 40", "evaluate --measures map"])
def test_a_model_and_data_are_accepted_in_both_orders(run, command):
    words = command.split()
    first, second = (
        run([words[0], *files, *words[1:]]) for files in (("map.structrank", "test.txt"), ("test.txt", "map.structrank"))
    )
    assert first == second
    assert (first[0], first[2]) == (0, "")


def test_an_impossible_criterion_names_the_option_to_set(run, tmp_path):
    _, _, err = run(f"train train.txt --relevant-from none -o {tmp_path}/m")
    assert "Set relevant_from=1, or another lowest label that counts as relevant" in err
    assert err.endswith("[relevant_from is --relevant-from]\n")


def test_train_for_scales_columns(result, run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1e6, 1.0]
    write_letor(tmp_path / "far.txt", datasets.Dataset(X, (X[:, 1] > 0.5).astype(int), np.repeat(np.arange(20), 10)))
    _, out, _ = run(f"train-for map {tmp_path}/far.txt -C 1 -o {tmp_path}/m")
    assert "Set scale='std', or scale the features first." in " ".join(out.split())
    facts = result(f"train-for map {tmp_path}/far.txt -C 1 --scale-columns std -o {tmp_path}/m")
    assert facts["notes"] == []
    assert (facts["parameters"]["scale"], load_model(tmp_path / "m").scale) == ("std", "std")


def test_a_query_is_explained_by_contributions_that_add_up_to_its_scores(result, run):
    rows = result("explain map.structrank test.txt --query 40 --top 5")
    scores = {row["docid"]: row["score"] for row in result("predict map.structrank test.txt") if row["qid"] == 40}
    assert {row["document"]: pytest.approx(row["score"]) for row in rows} == scores
    assert all(sum(row[f"f{n}"] for n in range(1, 6)) == pytest.approx(row["score"]) for row in rows)
    best, second = rows[0]["document"], rows[1]["document"]
    code, out, _ = run(f"explain map.structrank test.txt --query 40 --pair {best} {second}")
    assert code == 0
    assert out.startswith(f"{best} is above {second} by ")
    assert "has no query '7777'" in run("explain map.structrank test.txt --query 7777")[2]
    assert (
        "query 40 has no document 'none' (--pair); it has D"
        in run(f"explain map.structrank test.txt --query 40 --pair {best} none")[2]
    )


def test_features_may_be_called_as_columns_of_an_explanation(result, tmp_path):
    names = ["score", "rank", "document", "b"]
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 5.0]], columns=names)
    model = StructRankSVM("auc").fit(frame, [0, 1], qid=[7, 7])
    model.save(tmp_path / "m")
    frame.assign(label=[0, 1], qid=7, id=["contribution", "feature"]).to_csv(tmp_path / "d.csv", index=False)
    command = f"explain {tmp_path}/m {tmp_path}/d.csv --label label --qid qid --docid id --query 7"
    found = model.explain(frame)
    first = result(command)[0]
    assert first["score"] == pytest.approx(found.scores.max())
    shown = [first[name] for name in ("feature score", "feature rank", "feature document", "b")]
    assert shown == pytest.approx(found.contributions[1].tolist())
    pair = {row["feature"]: row for row in result(f"{command} --pair feature contribution")}
    for place, name in enumerate(names):
        values = [pair[name][key] for key in ("document feature", "document contribution", "contribution")]
        expected = [*found.values[::-1, place], found.contributions[1, place] - found.contributions[0, place]]
        assert values == pytest.approx(expected)


def test_options_of_the_reader_are_passed_on_and_named_in_errors(result, run, tmp_path):
    path = tmp_path / "null.txt"
    path.write_text("1 qid:1 0:NULL 1:2\n0 qid:1 0:3 1:1\n")
    assert result(f"inspect {path} --null min --zero-based")["features"] == 2
    assert (
        "(pass zero_based=True where ids count from 0). [zero_based is --zero-based]\n" in run(f"inspect {path} --null min")[2]
    )
    assert "or null='zero'.\n" in run(f"inspect {path} --zero-based")[2]


# ---- train-for


def test_train_for_equals_the_api_and_prints_the_selection(run, result):
    train, validation = load_letor("test.txt"), load_letor("vali.txt")  # the first has grades
    files = "test.txt --validation vali.txt --Cs 1 10 -o for.structrank"
    code, out, err = run(f"train-for ndcg@5 {files} --gain exp2 --discount log2")
    assert code == 0
    assert err.count("criteria") >= 1
    measure = metrics.NDCG(k=5)
    expected = train_for(measure, train, validation, Cs=[1.0, 10.0], discount="log2")
    model = load_model("for.structrank")
    assert np.array_equal(model.coef_, expected.coef_)
    assert out.startswith("Chosen by ndcg@5 (gain=exp2) on ")
    assert expected.selection_.reason in out
    assert "graded NDCG@5, ramp" in out
    assert "model         for.structrank" in out
    assert f"polished      {expected.polish_}" in " ".join(out.split("\n")).replace(" " * 15, " ")
    facts = result(f"train-for err@5 {files}")
    assert facts["selection"]["winner"] in [trial["name"] for trial in facts["selection"]["trials"]]
    assert facts["selection"]["reason"].startswith(facts["selection"]["winner"])
    _, out, _ = run(f"train-for ndcg@5 {files}")
    note = "Labels have more than two grades, but ndcg@5 with gain='binary' uses binary relevance (label >= 1); "
    assert f"{note}metrics.NDCG(k=5, gain='exp2') uses grades." in " ".join(out.split())
    assert run(f"train-for p@5 {files}")[0] == 2


def test_train_notes_that_labels_are_binarised(run):
    _, out, _ = run("train test.txt --criterion ndcg -o n.structrank")
    assert "relevant_from=None trains on grades." in " ".join(out.split())
    _, out, _ = run("train test.txt --criterion ndcg --relevant-from none -o n.structrank")
    assert "trains on grades" not in " ".join(out.split())


def test_compare_passes_gain_discount_and_select(run, monkeypatch):
    seen = {}

    def record(data, trainers, measures, *_, **settings):
        seen.update(settings, measures=measures)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "compare", record)
    run("compare made --measures ndcg@5 err@5 --gain exp2 --discount log2 --select ndcg@3 --trainers auc 'trained for err@5'")
    assert seen["measures"] == [metrics.NDCG(k=5), metrics.ERR(k=5)]
    assert seen["select"] == metrics.NDCG(k=3)
    assert seen["discount"] == "log2"
    seen.clear()
    run("compare made --measures ndcg@5")
    assert seen["measures"] == [metrics.NDCG(k=5, gain="binary", discount="kdd08")]
    assert "select" not in seen


# ---- inspect


def test_inspecting_a_model_shows_its_contents(run, result):
    model = load_model("map.structrank")
    facts = result("inspect map.structrank")
    assert facts["class"] == "StructRankSVM"
    assert facts["format"] == {"name": "structrank-model", "version": 1}
    assert facts["parameters"]["criterion"] == "map"
    assert facts["certificate"]["gap"] == model.certificate_.gap
    assert facts["health"]["mean_slack"] == model.health_.mean_slack
    assert {entry["feature"]: entry["weight"] for entry in facts["weights"]} == dict(enumerate(model.coef_, 1))
    _, out, err = run("inspect map.structrank")
    assert err == ""
    assert "model         map.structrank (format 1, written by structrank 0.1.0)" in out
    assert f"; the optimum lies between {model.certificate_.dual:.6g} and {model.certificate_.primal:.6g}" in out
    best = int(np.argmax(abs(model.coef_)))
    assert re.search(rf"weights +the 5 largest of 5\n +\{model.coef_[best]:+.6g} +feature {best + 1}\n", out)


def test_inspecting_a_polished_model_shows_the_polish(run, result, tmp_path):
    fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    model = train_for("map", fold.train, fold.validation)
    model.save(tmp_path / "m")
    assert model.polish_.steps > 0
    _, out, _ = run(f"inspect {tmp_path}/m")
    assert f"polished      map of the training queries {model.polish_.train[0]:.4f} -> {model.polish_.train[1]:.4f}; " in out
    assert result(f"inspect {tmp_path}/m")["polish"]["steps"] == model.polish_.steps
    assert "polished" not in run("inspect map.structrank")[1]


def test_models_of_other_learners_can_be_inspected_and_applied(run, result, tmp_path):
    data, path = load_letor("train.txt"), tmp_path / "trees.structrank"
    model = LightGBMRanker(n_estimators=3, relevant_from=1).fit(data.X, data.y, qid=data.qid)
    model.save(path)
    code, out, _ = run(f"inspect {path}")
    assert code == 0
    assert "class         LightGBMRanker" in out
    assert "n_estimators=3" in out
    assert result(f"inspect {path}")["features"] == 5
    found = [document["score"] for document in result(f"predict {path} test.txt")]
    assert found == model.predict(load_letor("test.txt").X).tolist()


def test_a_model_without_features_cannot_rank_documents(run, tmp_path):
    Featureless = type("Featureless", (Ranker,), {"fit": lambda self: self})
    model = register(Featureless)()
    model.fitted_ = 1
    path = tmp_path / "m.structrank"
    model.save(path)
    message = f"error: {path} holds a Featureless, which does not rank documents by their features.\n"
    assert run(f"predict {path} test.txt") == (2, "", f"structrank predict: {message}")
    assert run(f"evaluate test.txt {path}") == (2, "", f"structrank evaluate: {message}")
    assert run(f"inspect {path}")[0] == 0
    del SAVEABLE["Featureless"]


def test_inspecting_data_shows_their_contents(run, result):
    facts = result("inspect test.txt")
    assert facts["rows"] == 80
    assert facts["queries"] == 10
    assert facts["features"] == 5
    data = load_letor("test.txt")
    assert facts["labels"] == {str(label): int((data.y == label).sum()) for label in (0, 1, 2)}
    assert facts["documents_per_query"] == {"least": 8, "median": 8.0, "most": 8}
    assert facts["queries_without_both_kinds"] == [int(data.qid[-1])]
    assert result("inspect test.txt --relevant-from 3")["queries_without_both_kinds"] == list(dict.fromkeys(data.qid.tolist()))
    _, out, _ = run("inspect test.txt")
    assert f"1 without both relevant (label >= 1) and irrelevant documents: qid {data.qid[-1]}\n" in out
    assert "1 without different labels" in run("inspect test.txt --relevant-from none")[1]
    assert result("inspect made")["queries"] == 16  # all folds of a folder


# ---- compare


def test_comparing_prints_writes_and_resumes(run, tmp_path, monkeypatch):
    command = f"compare made --trainers auc MAP --measures map p@2 --Cs 0.1 10 --results {tmp_path / 'runs'}"
    exports = {name: tmp_path / f"table.{name}" for name in ("csv", "latex", "html")}
    code, out, err = run(command + "".join(f" --{name} {path}" for name, path in exports.items()))
    assert code == 0
    assert re.search(r"^AUC +\d\.\d{3}", out, re.MULTILINE)
    assert "made (8 test queries)" in out
    assert "4 of 4 cells" in err
    assert exports["csv"].read_text().startswith("trained on,made map,made p@2,made vacuous folds\nAUC,")
    assert r"\begin{tabular}" in exports["latex"].read_text()
    assert "<table" in exports["html"].read_text()
    monkeypatch.setattr(StructRankSVM, "fit_path", None)  # nothing is trained again
    code, again, err = run(command)
    assert (code, again) == (0, out)
    assert "(4 kept from earlier)" in err


def test_comparing_gives_the_table_of_the_api(result):
    facts = result("compare one=made two=made/Fold2 --trainers 'mrr (phi_po)' auc --Cs 1 --measures ndcg@3")
    folds = datasets.load_letor_folds("made")
    table = experiment.compare({"one": folds, "two": folds[1:]}, ["MRR (phi_po)", "AUC"], ["ndcg@3"], [1.0])
    frame = table.to_frame()
    assert len(facts["cells"]) == 4
    for cell in facts["cells"]:
        assert cell["mean"] == frame.loc[cell["trainer"], (cell["dataset"], cell["measure"])]
        assert cell["undefined"] == table.undefined[cell["dataset"], cell["measure"]]
    assert [record["C"] for record in facts["training"]] == [1.0] * 6


def test_comparing_scales_and_cleans_as_the_api_does(result):
    facts = result("compare made --trainers auc --Cs 1 --measures map --scale query --clean kdd08")
    folds = datasets.load_letor_folds("made")
    table = experiment.compare({"made": folds}, ["AUC"], ["map"], [1.0], scale="query", clean="kdd08")
    (cell,) = facts["cells"]
    assert cell["mean"] == table.to_frame().iloc[0, 0]
    assert (cell["vacuous_folds"], cell["below_rule"]) == (0, False)
    assert any(line.startswith("Cleaned (kdd08), made: test ") for line in facts["legend"])


def test_vacuous_cells_and_rows_below_the_rule_are_marked_in_json(result, monkeypatch):
    real = experiment.Cell
    monkeypatch.setattr(experiment, "Cell", lambda *fields: real(*fields[:-1], vacuous=True))
    facts = result("compare made --trainers auc 'mrr, ramp' --Cs 1 --measures map")
    assert [cell["vacuous_folds"] for cell in facts["cells"]] == [2, 2]
    assert [cell["mark"][-1] for cell in facts["cells"]] == ["v", "v"]
    assert [cell["below_rule"] for cell in facts["cells"]] == [False, True]


def test_training_and_scoring_scale_alike(result, run, tmp_path):
    path = tmp_path / "scaled.structrank"
    code, _, err = run(f"train made/Fold1/train.txt --criterion auc -C 1 --scale query --clean kdd08 -o {path}")
    assert code == 0
    assert "cleaned: " in err
    fold = datasets.load_letor_folds("made")[0]
    train = datasets.clean(datasets.scale_per_query(fold.train))
    model = StructRankSVM("auc").fit(train.X, train.y, qid=train.qid)
    assert np.array_equal(load_model(path).coef_, model.coef_)
    facts = result(f"evaluate made/Fold1/test.txt {path} --measures map --scale query")
    test = datasets.scale_per_query(fold.test)
    expected = metrics.evaluate(test.y, model.predict(test.X), test.qid, "map")["map"]
    assert facts["measures"]["map"]["mean"] == pytest.approx(expected)
    assert run(f"train made/Fold1/train.txt --relevant-from none --criterion auc --clean kdd08 -o {path}")[0] == 2


def test_comparing_writes_a_report(run, tmp_path):
    path = tmp_path / "report.html"
    code, _, err = run(f"compare made --trainers auc --Cs 1 --report {path}")
    assert code == 0
    assert f"structrank compare: wrote {path}\n" in err
    assert "</html>" in path.read_text(encoding="utf-8")


def test_comparing_with_trees_and_written_runs(run, tmp_path):
    command = (
        f"compare made --trainers auc --trees lightgbm xgboost extra-trees --measures map --Cs 1 --runs {tmp_path / 'runs'}"
    )
    code, out, err = run(command)
    assert code == 0
    assert f"structrank compare: wrote {tmp_path / 'runs'}\n" in err
    assert [line.split()[0] for line in out.splitlines()[4:8]] == ["AUC", "LightGBM", "XGBoost", "ExtraTrees"]
    folder = tmp_path / "runs" / "made"
    assert sorted(path.name for path in folder.iterdir()) == [
        "AUC.run",
        "ExtraTrees-pointwise.run",
        "LightGBM.run",
        "XGBoost.run",
        "qrels.txt",
    ]
    n_rows = sum(len(fold.test) for fold in datasets.load_letor_folds("made"))
    assert len((folder / "LightGBM.run").read_text().splitlines()) == n_rows


def test_trees_use_the_relevant_from_of_the_other_rows(run, monkeypatch):
    seen = {}

    def record(data, trainers, *_, **__):
        seen.update(trainers)
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "compare", record)
    for option, expected in (("", 1), ("--relevant-from 2", 2)):
        run(f"compare made --trees xgboost extra-trees {option}")
        assert list(seen) == [*default_trainers(), "XGBoost", "ExtraTrees (pointwise)"]
        assert seen.pop("RankSVM").relevant_from is None  # by definition
        assert {trainer.relevant_from for trainer in seen.values()} == {expected}
        seen.clear()


def test_runs_are_not_written_over_a_file(run):
    assert run("compare made --runs test.txt") == (
        2,
        "",
        "structrank compare: error: --runs test.txt is a file; expected a folder, or a new name for one.\n",
    )


def test_a_missing_tree_library_is_named_with_the_command_to_install_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert run("compare made --trees lightgbm") == (
        2,
        "",
        "structrank compare: error: LightGBMRanker needs LightGBM: pip install structrank[trees]\n",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--results runs", "finished work is in runs; rerun the same command to resume"),
        ("", "nothing was kept; with --results FOLDER the same command could resume"),
    ],
)
def test_an_interrupted_comparison_names_the_results_kept(run, monkeypatch, options, message):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "compare", interrupt)
    assert run(f"compare made {options}") == (130, "", f"structrank compare: interrupted; {message}\n")


# ---- Errors


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("inspect none.txt", "none.txt: No such file or directory"),
        ("inspect malformed.txt", "malformed.txt:2: found '1:abc', expected a finite decimal number as value."),
        ("train malformed.txt -o m", "malformed.txt:2: found '1:abc', expected a finite decimal number as value."),
        (
            "train flat.txt -o m",
            "flat.txt: no query has both relevant (label >= 1) and irrelevant documents (n_queries=1, n_samples=2): there is "
            "nothing to learn from. Check the query ids, the labels and relevant_from=. [relevant_from is --relevant-from]\n",
        ),
        ("train none.txt -o m --criterion foo", "criterion='foo' is not known; choose one of: auc, map, ndcg[@k]"),
        ("train none.txt -o m --criterion auc --feature-map dorm", "criterion 'auc' with feature_map 'dorm' has no exact"),
        (
            "train none.txt -o m --k 0",
            "argument --k: '0' is not valid: expected an integer of at least 1, or none for no cutoff",
        ),
        ("train none.txt -o m --k ten", "argument --k: 'ten' is not valid: expected an integer of at least 1, or none"),
        ("train none.txt -o m -C -1", "argument -C: '-1' is not valid: expected a number above 0; see structrank train --help"),
        ("train none.txt -o m --criterion ndcg@5 --k 3", "k=3 contradicts criterion='ndcg@5', whose k is 5; set it in one"),
        ("train none.txt -o m --bound tight", "argument --bound: invalid choice: 'tight' (choose from "),
        (
            "train made/Fold1 -o m",
            "made/Fold1 is a folder; expected a table, or a file in LETOR format, such as made/Fold1/train.txt.",
        ),
        ("train made -o m", "made is a folder; expected a table, or a file in LETOR format, such as made/Fold1/train.txt."),
        ("train none.txt -o m --tol 0", "argument --tol: '0' is not valid: expected a number above 0"),
        ("train none.txt -o m --jobs 0", "argument --jobs: '0' is not valid: expected an integer of at least 1, or -1 for all"),
        ("train none.txt -o m --relevant-from none", "criterion 'map' with feature_map 'po' has no exact oracle for graded"),
        ("predict map.structrank none.txt", "none.txt: No such file or directory"),
        ("train flat.txt -o m -C 1 10", "flat.txt: 0 queries to learn from are too few to choose C on inner folds"),
        ("train train.txt -o m --label y", "--label does not apply to train.txt, which is in LETOR format."),
        (
            "train train.txt -o m -C 1 10 --validation flat.txt",
            "flat.txt: no query has both relevant (label >= 1) and irrelevant",
        ),
        ("train none.txt -o no/m", "no/m cannot be written: there is no folder "),
        ("train none.txt -o made", "made is a folder; expected the name of a file to write."),
        ("train train.txt -o ./train.txt", "./train.txt would be overwritten, but holds the data; choose another name"),
        ("train train.txt --validation vali.txt -o vali.txt", "vali.txt would be overwritten, but holds the data"),
        ("train train.txt", "the following arguments are required: -o/--output; see structrank train --help"),
        ("train map.structrank -o m", "map.structrank is a model file; expected a file in LETOR format, or a table."),
        (
            "evaluate map.structrank map.structrank",
            "map.structrank is a model file; expected a file in LETOR format, or a table.",
        ),
        ("predict train.txt test.txt", "train.txt is not a model file of structrank: it begins with b'"),
        ("predict none map.structrank", "none: No such file or directory"),
        (
            "predict map.structrank wide.txt",
            "wide.txt:1: found '6:1', expected a feature id from 1 to 5: map.structrank has 5 features.\n",
        ),
        ("predict map.structrank test.txt --json --format trec", "--json and --format trec are two formats; choose one."),
        ("evaluate test.txt map.structrank --ties foo", "argument --ties: invalid choice: 'foo' (choose from "),
        ("predict map.structrank test.txt --format csv", "argument --format: invalid choice: 'csv' (choose from "),
        ("evaluate train.txt test.txt", "test.txt:1: found 10 columns, expected a TREC run (qid Q0 docid rank score"),
        ("evaluate test.txt map.structrank --measures foo", "measure 'foo' is not known; choose one of: auc, map, mrr[@k]"),
        ("evaluate test.txt map.structrank --measures p", "measure 'p' needs a cutoff, as in 'p@10'."),
        ("evaluate test.txt map.structrank --gain foo", "argument --gain: invalid choice: 'foo' (choose from "),
        (
            "evaluate test.txt map.structrank --relevant-from none",
            "argument --relevant-from: 'none' is not valid: expected a number",
        ),
        ("compare none", "none: No such file or directory"),
        ("compare made made", "two data sets are called 'made'; name them, as in first=made."),
        ("compare none --trainers foo", "trainer='foo' is not known; choose one of: 'paper', 'RankSVM', 'AUC', 'MAP', 'NDCG'"),
        ("compare none --measures foo", "measure 'foo' is not known; choose one of: auc"),
        ("compare none --csv no/table.csv", "no/table.csv cannot be written: there is no folder "),
        ("compare made --csv made/Fold2/test.txt", "made/Fold2/test.txt would be overwritten, but holds the data"),
        ("compare made --Cs -1", "argument -C/--Cs: '-1' is not valid: expected a number above 0"),
        (
            "compare made --results train.txt --Cs 1",
            "results='train.txt' is a file; expected a folder, or a new name for one.\n",
        ),
        ("compare", "the following arguments are required: [NAME=]DATA; see structrank compare --help"),
    ],
)
def test_invalid_input_is_reported_in_one_line(run, folder, command, message):
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert err.startswith(f"structrank {command.split()[0]}: error: {message}")
    assert err.count("\n") == 1
    assert not (folder / "m").exists()


def test_a_folder_without_training_data_is_listed(run, tmp_path):
    assert run(f"train {tmp_path} -o m")[2].endswith("a table, or a file in LETOR format; the folder has no files.\n")
    for name in "fedcba":
        (tmp_path / name).touch()
    assert run(f"train {tmp_path} -o m")[2].endswith("; the folder has a, b, c, d, e and 1 more.\n")


def test_unknown_arguments_lead_to_the_help_of_their_command(run):
    expected = "structrank train: error: unrecognized arguments: --colour red; see structrank train --help\n"
    assert run("train train.txt -o m --colour red") == (2, "", expected)
    assert run("warmup --sparse")[2].endswith("unrecognized arguments: --sparse; see structrank warmup --help\n")


def test_tables_need_the_ending_of_a_table(run, tmp_path):
    (tmp_path / "d.txt").write_text("qid,label,x\n1,1,1\n")
    assert "d.txt:1: found 'qid,label,x', expected a label" in (message := run(f"inspect {tmp_path}/./d.txt")[2])
    assert message.endswith("Tables are recognised by their names: .csv, .tsv, .tab, .parquet or .pq.\n")


def test_a_table_and_a_letor_file_are_not_trained_on_together(run, tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,x\n1,1,1\n1,0,2\n")
    message = run(f"train train.txt --validation {tmp_path}/d.csv -o m")[2]
    assert message.endswith("d.csv is a table and train.txt is in LETOR format; expected two files of the same kind.\n")


def test_too_few_queries_for_five_folds_are_counted(run, tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,x\n1,1,1\n1,0,2\n2,0,1\n")
    message = run(f"compare {tmp_path}/d.csv --trainers map")[2]
    assert message.endswith("d.csv has 2 queries; expected at least 5, to deal them into five folds.\n")


def test_scores_are_evaluated_without_features(run, tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,docid,title\n1,1,a,shoes\n1,0,b,socks\n")
    (tmp_path / "s.tsv").write_text("qid\tdocid\tscore\trank\n1\ta\t2.0\t1\n1\tb\t1.0\t2\n")
    code, out, _ = run(f"evaluate {tmp_path}/d.csv {tmp_path}/s.tsv --measures map")
    assert code == 0
    assert out.splitlines()[1].startswith("map\t1.000000\t1\t0")


def test_compiling_is_reported_on_a_terminal_without_a_progress_line(monkeypatch):
    said, logger = [], logging.getLogger("structrank")
    level = logger.level
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with reporting_compilation(said.append):
        logger.info("compiling", extra={"shown": False})
        logger.info("compiling, as the progress line shows", extra={"shown": True})
        logger.info("another remark")
    logger.info("compiling", extra={"shown": False})
    assert said == ["compiling"]
    assert logger.level == level


def test_an_unusable_checkpoint_folder_is_named(run, tmp_path):
    code, out, err = run(f"train train.txt -o {tmp_path}/m --checkpoint vali.txt")
    assert (code, out) == (2, "")
    assert err.startswith("structrank train: error: checkpoint='vali.txt' cannot be used as a folder: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{path} has 0 scores, but test.txt has 80 rows; expected one each."),
        ("0.5\n0.25\n", "{path} has 2 scores, but test.txt has 80 rows; expected one each."),
        ("0.5\nnan\n", "{path}:2: found 'nan', expected a score; the file should be a TREC run (qid"),
        ("1 2\n", "{path}:1: found 2 columns, expected a TREC run (qid Q0 docid rank score tag), a table as predict"),
        ("40 Q0 D0 1 0.5 x\n40 Q0 D1 2 0.25\n", "{path}:2: found 5 columns, expected 6 as in the lines before."),
        ("40 Q0 D0 1 high x\n", "{path}:1: found 'high', expected a score"),
        ("40 Q0 D0 1 0.5 x\n\n40 Q0 D0 2 0.4 x\n", "{path}:3: found document 'D0' of query '40' a second time."),
        ("40 Q0 D99 1 0.5 x\n", "{path}:1: found document 'D99' of query '40', which is not in test.txt."),
        ("41 Q0 D0 1 0.5 x\n", "{path}:1: found document 'D0' of query '41', which is not in test.txt."),
        (
            "qid\tdocid\tscore\trank\n40\tD0\t0.5\t1\n",
            "{path} lacks document 'D1' of query '40' and 78 others; expected a score for every row of test.txt.",
        ),
        ("\x00\x01\x02", "{path}:1: found a zero byte, expected text."),
    ],
)
def test_invalid_rankings_are_reported_in_one_line(run, tmp_path, content, message):
    path = tmp_path / "run.txt"
    path.write_text(content)
    code, out, err = run(f"evaluate test.txt {path}")
    assert (code, out) == (2, "")
    assert err.startswith(f"structrank evaluate: error: {message.format(path=path)}")
    assert err.count("\n") == 1


def test_a_damaged_model_is_rejected(run, tmp_path, folder):
    path = tmp_path / "m.structrank"
    path.write_bytes((folder / "map.structrank").read_bytes()[:-1])
    for command in (f"predict {path} test.txt", f"evaluate test.txt {path}", f"inspect {path}"):
        code, out, err = run(command)
        assert (code, out) == (2, "")
        assert f"error: {path} is a damaged model file: it is truncated, with " in err


def test_a_memory_error_is_reported_with_code_1(run, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 10 TiB")

    monkeypatch.setattr("structrank.datasets.load_letor", fail)
    assert run("inspect test.txt") == (1, "", "structrank inspect: error: not enough memory. Unable to allocate 10 TiB\n")


# ---- Files and options


def test_query_ids_with_blanks_can_be_predicted_and_evaluated(run, tmp_path):
    rows = ["hot dog\tGX1\t0.5\t0.2\t1", "hot dog\tGX2\t0.1\t0.2\t0", "cat\tGX3\t0.5\t0.2\t1", "cat\tGX4\t0.3\t0.9\t0"]
    (tmp_path / "tab.txt").write_text("\n".join(rows) + "\n")
    assert run(f"train {tmp_path}/tab.txt -o {tmp_path}/m")[0] == 0
    for form in ("", "--format trec"):
        code, out, err = run(f"predict {tmp_path}/m {tmp_path}/tab.txt {form}")
        assert code == 0
        assert ("note" in err and "query ids with blanks" in err) == bool(form)
        (tmp_path / "ranking").write_text(out)
        (tmp_path / "ranking.gz").write_bytes(gzip.compress(out.encode()))
        for name in ("ranking", "ranking.gz"):
            code, out_, err = run(f"evaluate {tmp_path}/tab.txt {tmp_path}/{name} --measures map")
            assert (code, out_.splitlines()[1].split()[:2]) == (0, ["map", "1.000000"]), err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_rejected(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("0.5\n"))
    writer.start()
    code, _, err = run(f"evaluate test.txt {tmp_path}/pipe --measures map")
    writer.join()
    assert code == 2
    assert "pipe is a pipe; write its content to a file first." in err


def test_validation_files_may_have_more_features_than_training_files(run, tmp_path):
    code, _, err = run(f"train train.txt --validation wide.txt -C 1 10 -o {tmp_path}/m")
    assert code == 0, err
    assert load_model(tmp_path / "m").n_features_in_ == 6


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train train.txt -o ''", "the name of a file to write is empty"),
        ("train train.txt -o C=10/nofolder/m", "C=10/nofolder/m cannot be written"),
        ("train train.txt -o m --k 99999999999999999999", "argument --k: '99999999999999999999' is not valid"),
        ("compare made --csv t.out --html t.out", "--csv and --html would both be written to t.out"),
    ],
)
def test_invalid_options_are_reported_before_training(run, command, message):
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert message in err


def test_errors_about_checkpoints_name_the_file(run, tmp_path):
    assert run(f"train train.txt -o {tmp_path}/m --checkpoint {tmp_path}/ck -C 1")[0] == 0
    (file,) = (tmp_path / "ck").iterdir()
    code, _, err = run(f"train vali.txt -o {tmp_path}/m --checkpoint {tmp_path}/ck -C 1")
    assert code == 2
    assert err.splitlines()[-1].startswith(f"structrank train: error: {file} is the checkpoint of another run")
    code, _, err = run(f"inspect {file}")
    assert code == 2
    assert "holds a checkpoint, not a model" in err


@pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
def test_an_overwritten_file_keeps_its_permissions(run, tmp_path):
    model = tmp_path / "m"
    model.touch()
    model.chmod(0o600)
    assert run(f"train train.txt -o {model}")[0] == 0
    assert model.stat().st_mode & 0o777 == 0o600


def test_warnings_say_what_to_set(run, tmp_path):
    (tmp_path / "same.txt").write_text("".join(f"{n % 2} qid:{n // 2} 1:1\n" for n in range(20)))
    code, out, err = run(f"train {tmp_path}/same.txt -o {tmp_path}/m --criterion ndcg")
    assert code == 0
    (warning,) = (line for line in err.splitlines() if line.startswith("structrank train: warning: "))
    assert "the reason is discount='kdd08', which is equal for both ranks: try 'log2', or criterion='map'." in warning
    _, out, _ = run(f"inspect {tmp_path}/m")
    assert "try 'log2', or criterion='map'." in " ".join(out.split())


@full_device
def test_files_are_written_even_if_stdout_is_closed_or_full(tmp_path):
    command = f"{sys.executable} -m structrank compare made --trainers auc --Cs 1 --csv {tmp_path}/t.csv"
    for reader in ("| true", "> /dev/full"):
        subprocess.run(f"{command} {reader}", shell=True, check=False, capture_output=True)
        assert (tmp_path / "t.csv").read_text().startswith("trained on")
        (tmp_path / "t.csv").unlink()


@pytest.mark.parametrize("name", ["k=3.txt", "C=0.1/train.txt"])
def test_file_names_that_look_like_parameters_are_not_rewritten_in_errors(run, name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x:1\n")
    code, _, err = run(f"train {path} -o {tmp_path}/m")
    assert code == 2
    assert f"{path}:1: found" in err


# --- export -----------------------------------------------------------------------------------------------------------


def test_exports_to_stdout_are_those_of_the_api(run):
    model = load_model("map.structrank")
    X = load_letor("train.txt").X
    shift = exports.positive_shift(model, X)
    code, out, err = run("export map.structrank --to solr --name learned --store products --shift auto --data train.txt")
    assert (code, json.loads(out)) == (0, model.to_solr("learned", "products", shift=shift))
    assert err == f"structrank export: note: --shift {shift!r}, from the lowest score of the {len(X)} documents in train.txt\n"
    for to in ("elasticsearch", "opensearch"):
        assert json.loads(run(f"export map.structrank --to {to} --shift 2.5")[1]) == model.to_elasticsearch("map", shift=2.5)
    for to in ("lucene", "painless"):
        assert run(f"export map.structrank --to {to} --shift 2.5")[1] == model.to_expression(to, shift=2.5) + "\n"
    assert run("export map.structrank --to vespa --name learned")[1] == exports.to_vespa(model, "learned") + "\n"
    assert run("export map.structrank --to sql --table t --query q")[1] == exports.to_sql(model, "t", query="q") + "\n"
    code, out, _ = run("export map.structrank --to lucene --feature-names a b c d e --json")
    expected = model.to_expression("lucene", feature_names=list("abcde"))
    assert (code, json.loads(out)) == (0, {"to": "lucene", "content": expected})


def test_an_export_that_Lucene_may_reject_is_warned_of(run):
    _, _, err = run("export map.structrank --to solr")
    assert "Pass shift=, a constant to add, which positive_shift() computes from documents; shift=0.0 " in err


def test_the_scaler_of_an_export_is_fitted_to_the_data(run):
    model, X = load_model("map.structrank"), load_letor("train.txt").X
    for name, scaler in (("standard", StandardScaler()), ("min-max", MinMaxScaler())):
        shift = exports.positive_shift(model, X, scaler=scaler.fit(X))
        code, out, _ = run(f"export map.structrank --to elasticsearch --scaler {name} --shift auto --data train.txt")
        assert (code, json.loads(out)) == (0, model.to_elasticsearch("map", scaler=scaler, shift=shift))


def test_exports_to_files(run, tmp_path):
    model = load_model("map.structrank")
    code, out, _ = run(f"export map.structrank --to ranklib -o {tmp_path / 'm.txt'}")
    assert (code, out.split()) == (0, ["file", f"{tmp_path / 'm.txt'},", "for", "ranklib"])
    assert imports.read_ranklib(tmp_path / "m.txt").coef_.tolist() == model.coef_.tolist()
    code, out, _ = run(f"export map.structrank --to svmrank --json -o {tmp_path / 'm.dat'}")
    assert (code, json.loads(out)["file"]) == (0, str(tmp_path / "m.dat"))
    assert imports.read_svmrank(tmp_path / "m.dat").coef_.tolist() == model.coef_.tolist()
    assert run(f"export map.structrank --to lucene -o {tmp_path / 'm.lucene'}")[0] == 0
    assert (tmp_path / "m.lucene").read_text() == model.to_expression("lucene") + "\n"
    data = load_letor("train.txt")
    LightGBMRanker(n_estimators=2, min_child_samples=5).fit(data.X, data.y, qid=data.qid).save(tmp_path / "trees.structrank")
    assert run(f"export {tmp_path / 'trees.structrank'} --to lightgbm -o {tmp_path / 'trees.txt'}")[0] == 0
    assert (tmp_path / "trees.txt").read_text() == load_model(tmp_path / "trees.structrank").model_text_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--to onnx", "--to onnx writes a file; name it with -o FILE"),
        ("--to solr --shift auto", "--shift auto needs --data FILE"),
        ("--to solr --scaler standard", "--scaler standard needs --data FILE"),
        ("--to solr --data train.txt", "--data is used by --shift auto and --scaler"),
        ("--to solr --shift much", "'much' is not valid: expected a number, or auto"),
        ("--to lucene --table t", "--table is an option of sql, not of lucene"),
        ("--to ranklib --shift 1 -o m.txt", "--shift: ranklib accepts negative scores"),
        ("--to solr --scale query", "--scale query cannot be exported"),
        ("--to xgboost -o m.json", "StructRankSVM has no trees"),
        ("--to lucene -o map.structrank", "map.structrank would be overwritten"),
        ("--to lucene --feature-names a", "feature_names has 1 entries; the model has 5 features"),
        ("--to solr --shift auto --data wide.txt", "map.structrank has 5 features"),
    ],
)
def test_wrong_options_of_export_are_reported_in_one_line(run, options, message):
    code, out, err = run(f"export map.structrank {options}")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def raw_table(path, n_docs, seed):
    """Write a CSV of unsorted queries, with texts, missing values and columns of scales 1 to 1e6."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"query": [f"q {number}" for number in rng.integers(0, n_docs // 10, n_docs)]})
    frame["url"] = [f"u{number}" for number in range(n_docs)]
    frame["bm25"], frame["age"] = rng.normal(size=n_docs), rng.normal(size=n_docs) * 30
    frame["clicks"], frame["price"] = rng.exponential(1e3, n_docs).round(), rng.normal(size=n_docs) * 1e6
    frame["relevance"] = (frame.bm25 + frame.age / 30 + np.log1p(frame.clicks) / 3 + rng.normal(size=n_docs) > 2.5).astype(int)
    for name in ("bm25", "age", "price"):
        frame.loc[rng.random(n_docs) < 0.1, name] = np.nan
    frame["title"] = "a text, with a comma"
    frame.to_csv(path, index=False)
    return frame


COLUMNS = "--label relevance --qid query --docid url"


@pytest.mark.parametrize("command", ["train", "train-for map"])
@pytest.mark.parametrize(
    "options", ["--null mean --log clicks --scale zscore", "--null min --scale query", "--null zero --log"]
)
def test_raw_values_are_ranked_alike_by_every_command(run, result, tmp_path, command, options):
    path = tmp_path / "m"
    raw_table(tmp_path / "train.csv", 400, 1)
    frame = raw_table(tmp_path / "test.csv", 200, 2)
    code, _, err = run(f"{command} {tmp_path}/train.csv {COLUMNS} --drop title {options} -C 1 -o {path}")
    assert code == 0, err
    model = load_model(path)
    X, qid = frame[["bm25", "age", "clicks", "price"]], frame["query"].to_numpy()
    scores = model.predict(X, qid=qid)
    rows = result(f"predict {path} {tmp_path}/test.csv {COLUMNS}")
    assert [row["score"] for row in rows] == scores.tolist()
    expected = metrics.evaluate(frame.relevance, scores, qid, "map")["map"]
    assert result(f"evaluate {tmp_path}/test.csv {path} --measures map {COLUMNS}")["measures"]["map"]["mean"] == expected
    shown = result(f"explain {path} {tmp_path}/test.csv {COLUMNS} --query '{qid[0]}'")
    assert {row["document"]: row["rank"] for row in shown} == {
        row["docid"]: row["rank"] for row in rows if row["qid"] == qid[0]
    }
    connection = sqlite3.connect(":memory:")
    frame.to_sql("documents", connection, index=False)
    query = result(f"export {path} --to sql --query query")["content"]
    found = pd.read_sql(query, connection).set_index("url").loc[frame.url]
    assert np.allclose(found["score"], scores, rtol=1e-9, atol=1e-12)
    assert result(f"inspect {path}")["parameters"]["preparation"][0].startswith("Fill")
    # An option that agrees is accepted, and one that contradicts is not.
    assert run(f"evaluate {tmp_path}/test.csv {path} {COLUMNS} {options.split(' --log')[0]}")[0] == 0
    for wrong in ("--null error", "--scale rank", "--null column-min"):
        code, out, err = run(f"evaluate {tmp_path}/test.csv {path} {COLUMNS} {wrong}")
        assert (code, out) == (2, "")
        assert f"{wrong} contradicts {path}, which prepares values by Fill(" in err


def test_what_training_learns_needs_a_model(run, tmp_path):
    raw_table(tmp_path / "t.csv", 100, 1)
    for option in ("--null mean", "--scale rank"):
        code, _, err = run(f"inspect {tmp_path}/t.csv {COLUMNS} --drop title {option}")
        assert code == 2
        assert f"{option} is a part of a model: use it with train and train-for" in err
