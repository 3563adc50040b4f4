"""Names from files and users, with control characters and formulas, in everything that the package prints or writes."""

import csv
import functools
import io
import re
import sys
from pathlib import Path

import matplotlib.pyplot
import pandas as pd
import pytest

from structrank import StructRankSVM, StructRankWarning, compare, datasets, load_model
from structrank._support.progress import ProgressLine
from structrank.cli.output import print_lines, printable_results, say
from structrank.clicks.report import LogReport
from structrank.comparison import runs
from structrank.models import imports
from structrank.models.ranker import Ranker


def test_control_characters_are_shown_as_escapes(capsys):
    evil = "a\x1b]0;title\x07\u202eb\x9bc\udcffd"
    say("structrank", evil)
    print_lines([("note", evil)])
    line = ProgressLine()
    line.finish(evil)
    out, err = capsys.readouterr()
    for text in (out, err):
        assert "a\\x1b]0;title\\x07\\u202eb\\x9bc\\udcffd" in text
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\x9b", "\udcff"}


def test_results_are_escaped_on_a_terminal_alone(monkeypatch):
    for is_terminal, expected in ((True, "\\x1b[2J\n\\x1b[2J"), (False, "\x1b[2J\n\x1b[2J")):
        stream = io.StringIO()
        stream.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, "stdout", stream)
        with printable_results():
            print("\x1b[2J")
            sys.stdout.writelines(["\x1b[2J"])
        assert stream.getvalue() == expected


def test_texts_in_csv_do_not_start_formulas():
    fold = datasets.make_ranking(n_queries=8, n_docs=5, n_features=2, random_state=0)
    names = ["+cmd", "\n=cmd", "\t-1", "  @x", "\r\n\ufeff=1", "\uff1d1", "\nmap", "map", "phi-1"]
    table = compare({"=d": [fold]}, trainers={name: StructRankSVM("auc") for name in names}, measures="map", Cs=[0.1])
    head, *rows = csv.reader(io.StringIO(table.to_csv()))
    assert head[1].startswith("'=d ")
    assert [row[0].startswith("'") for row in rows] == [True] * 7 + [False] * 2
    assert [float(row[1]) for row in rows] == table.to_frame().iloc[:, 0].tolist()


# Escapes of terminals, ends of lines and paragraphs, marks of direction, and an undecodable byte of a file name.
EVIL = "a\x1b[2J\r\n\n\n\tb\x9b\u202e\u2028\u2029\x00\udcff"
SHOWN = EVIL.encode("unicode_escape").decode()


class Grumbling(Ranker):
    """A trainer whose models have a note."""

    def fit(self, X, y, qid=None):
        self.n_features_in_, self.notes_ = X.shape[1], (f"Trained on {EVIL}. More.",)
        return self

    def predict(self, X):
        return X[:, 0]


def check_shown(text, n_lines=None):
    assert SHOWN[:-6] in text
    assert not set(text) & set(EVIL) - set("a[2Jb\t\n")
    if n_lines is not None:
        assert len(text.splitlines()) == n_lines


def test_names_cannot_change_a_table(tmp_path):
    fold = datasets.make_ranking(n_queries=8, n_docs=5, n_features=2, random_state=0)

    def made(dataset, trainer):
        return compare({dataset: [fold]}, {trainer: Grumbling(), f"{trainer} 2": Grumbling()}, measures=["map", "mrr@5"])

    table, plain = made(EVIL, EVIL), made("d", "t")
    check_shown(str(table))
    for write in ("to_csv", "to_latex", "to_html"):
        path = tmp_path / write
        text, usual = getattr(table, write)(path), getattr(plain, write)()
        assert path.read_bytes() == text.encode()
        if write == "to_latex":
            assert not set(text) & set(EVIL) - set("a[2Jb\n")
            assert len(text.splitlines()) == len(usual.splitlines())
        else:
            check_shown(text, len(usual.splitlines()))
    paths = table.to_runs(tmp_path / "runs")
    assert [path.name for path in paths.values()] == ["a-2J-b-udcff.run", "a-2J-b-udcff-2.run"]


def test_names_cannot_change_other_outputs(tmp_path):
    frame = pd.DataFrame([[0.0, 1.0], [1.0, 3.0]], columns=[EVIL[:-1], "b"])  # pandas rejects undecodable bytes
    model = StructRankSVM("auc").fit(frame, [0, 1], qid=0)
    explanation = model.explain(frame)
    check_shown(repr(explanation), 1)
    check_shown(repr(explanation.pair(0, 1)), 1)
    for one in (explanation, explanation.pair(0, 1)):
        ax = one.plot().ax_
        check_shown("".join(label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())), 1)
        matplotlib.pyplot.close(ax.figure)
    check_shown(str(StructRankWarning(f"Skipped {EVIL}.")), 1)
    check_shown(str(LogReport(malformed=1, examples=(f"{EVIL}:1: found a",))), 3)
    data = datasets.Dataset(None, [0, 1], [EVIL, EVIL], ["a", "\ud800"])
    runs.write_run(tmp_path / "run.txt", data, [0.5, 0.25])
    assert (tmp_path / "run.txt").read_text() == "1 Q0 1 1 0.5 structrank\n1 Q0 2 2 0.25 structrank\n"
    path = str(tmp_path / "m\x1b\x9b\n")
    Path(path).write_text("\xff 1:a")
    readers = (imports.read_ranklib, imports.read_svmrank, functools.partial(runs.read_scores, data=data), load_model)
    for read in readers:
        with pytest.raises(ValueError, match=re.escape(r"m\x1b\x9b\n")) as caught:
            read(path)
        assert str(caught.value).isprintable()
    with pytest.raises(ValueError, match=r"tag='\\udcff' is not valid"):
        runs.write_run(tmp_path / "run.txt", data, [0.5, 0.25], tag="\udcff")
