"""Tables of the user: files and frames with named columns, read by the API and by the command line."""

import bz2
import gzip
import json
import lzma
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from structrank import StructRankSVM, cli, datasets, load_model
from structrank.datasets import load_table, query_folds


@pytest.fixture(scope="module")
def frame():
    fold = datasets.make_ranking(n_queries=40, n_docs=6, n_features=3, noise=0.5, random_state=0)
    frame = pd.DataFrame(fold.train.X, columns=["bm25", "title match", "age"])
    frame.insert(0, "url", [f"u{row}" for row in range(len(frame))])
    return frame.assign(query=[f"q{qid}" for qid in fold.train.qid], relevance=fold.train.y.astype(int))


COLUMNS = {"label": "relevance", "qid": "query", "docid": "url"}


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d;.csv", "d.tab.csv", "d.tsv", "d.tab.xz", "d.csv.zip", "d.parquet"])
def test_every_format_gives_the_same_data(frame, tmp_path, name):
    if name.startswith(("d.tab", "d;")):
        frame.to_csv(tmp_path / name, index=False, sep=";" if ";" in name else "\t")
    else:
        write(frame, tmp_path / name)
    data = load_table(tmp_path / name, **COLUMNS)
    assert data.X.columns.tolist() == ["bm25", "title match", "age"]
    np.testing.assert_array_equal(data.X, frame[data.X.columns])  # to the last bit
    assert data.y.tolist() == frame["relevance"].tolist()
    assert data.qid.tolist() == frame["query"].tolist()
    assert data.docid.tolist() == frame["url"].tolist()


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_between_semicolons_may_have_decimal_commas(frame, tmp_path, decimal):
    frame.assign(note="1,5 or 1.5").to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=decimal)
    data = load_table(tmp_path / "d.csv", **COLUMNS, drop="note")
    np.testing.assert_array_equal(data.X, frame[data.X.columns])  # to the last bit


def test_commas_are_not_guessed_to_be_decimal_beside_points(tmp_path):
    (tmp_path / "d.csv").write_text("qid;label;x;y\n1;0;1,234;0.5\n1;1;2,345;1.5\n")
    with pytest.raises(ValueError, match="column 'x': found '1,234' in row 1; expected numbers"):
        load_table(tmp_path / "d.csv")


def test_columns_that_are_no_features_are_dropped(frame, tmp_path, capsys):
    path, model = write(frame.assign(title="a title"), tmp_path / "d.csv"), tmp_path / "m"
    assert load_table(path, **COLUMNS, drop=["title", "age"]).X.columns.tolist() == ["bm25", "title match"]
    with pytest.raises(ValueError, match=r"has no column 'titel' \(drop=\); it has: url, bm25"):
        load_table(path, **COLUMNS, drop=["titel"])
    with pytest.raises(ValueError, match="features= and drop= are both given"):
        load_table(path, **COLUMNS, features=["age"], drop=["title"])
    names = ["--label", "relevance", "--qid", "query", "--docid", "url", "--drop", "title"]
    assert cli.main(["train", str(path), "-o", str(model), *names]) == 0
    assert load_model(model).feature_names_in_.tolist() == ["bm25", "title match", "age"]
    assert cli.main(["evaluate", str(path), str(model), *names]) == 0  # the same options are accepted with a model
    capsys.readouterr()
    assert cli.main(["predict", str(model), str(path), *names]) == 0
    scores = tmp_path / "scores.tsv"
    scores.write_text(capsys.readouterr().out)
    assert cli.main(["evaluate", str(path), str(scores), *names]) == 0


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_no_row_of_a_damaged_compressed_table_is_lost(tmp_path, ending, compress):
    path = tmp_path / f"d.csv.{ending}"
    first, second = compress(b"qid,label,x\n1,0,1\n1,1,2\n"), compress(b"2,0,3\n2,1,4\n")
    path.write_bytes(first + second)
    assert load_table(path).X["x"].tolist() == [1, 2, 3, 4]
    for place in (len(first), len(first) + 1, len(first) + len(second) // 2, len(first) + len(second) - 5):
        damaged = bytearray(first + second)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))} cannot be read as a table"):
            load_table(path)
    path.write_bytes((first + second)[:-3])
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} cannot be read as a table"):
        load_table(path)


def test_an_archive_of_several_tables_is_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "d.csv.zip", "w") as archive:
        archive.writestr("a.csv", "qid,label,x\n1,0,1\n")
        archive.writestr("b.csv", "qid,label,x\n1,0,1\n")
    with pytest.raises(ValueError, match="the archive holds 2 files; expected 1"):
        load_table(tmp_path / "d.csv.zip")


def test_frames_are_left_as_they_are(frame):
    before = frame.copy()
    load_table(frame, **COLUMNS)
    pd.testing.assert_frame_equal(frame, before)
    polars = pytest.importorskip("polars")
    np.testing.assert_array_equal(load_table(polars.from_pandas(frame), **COLUMNS).X, load_table(frame, **COLUMNS).X)


def test_query_ids_keep_their_spelling(tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,x\n007,1,1\n7,0,2\nNA,0,3\n")
    assert load_table(tmp_path / "d.csv").qid.tolist() == ["007", "7", "NA"]
    (tmp_path / "d.csv").write_text("qid,label,x\n8,1,1\n7,0,2\n")
    assert load_table(tmp_path / "d.csv").qid.tolist() == [8, 7]


def test_features_are_taken_by_name_and_in_the_order_given(frame):
    assert load_table(frame, **COLUMNS, features=["age", "bm25"]).X.columns.tolist() == ["age", "bm25"]


def test_empty_cells_are_errors_or_filled(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("qid,label,x\na,1,5\na,0,NULL\nb,1,\n")
    with pytest.raises(ValueError, match=r"d.csv, column 'x': 2 of 3 cells are empty, the first in row 2; pass null='min'"):
        load_table(path)
    assert load_table(path, null="min").X["x"].tolist() == [5.0, 5.0, 0.0]
    assert load_table(path, null="zero").X["x"].tolist() == [5.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("q,label,x\n1,1,1\n", {}, r"d.csv has no column 'qid' \(qid=\); it has: q, label, x."),
        (
            "qid,label,x\n1,1,a\n",
            {},
            r"d.csv, column 'x': found 'a' in row 1; expected numbers. Leave out columns that are no features with drop=, or",
        ),
        ("qid,label,x,y\n1,1,5,b\n1,0,-,c\n", {}, r"column 'x': found '-' in row 2 \(also in 'y'\); expected numbers"),
        (
            "qid,label,x\n1,good,1\n",
            {},
            r"d.csv, column 'label' \(label=\): found 'good' in row 1; expected numbers of at least 0",
        ),
        ("qid,label,x\n1,1,1\n1,?,1\n", {}, r"column 'label' \(label=\): found '\?' in row 2; expected numbers"),
        ("qid,label,x\n1,1,1\n1,-1,1\n", {}, r"column 'label' \(label=\): found -1 in row 2; expected numbers of at least 0"),
        ("qid,label,x\n1,,1\n1,,2\n", {}, r"\(label=\): 2 of 2 cells are empty, the first in row 1; expected a value in every"),
        ("qid,label,x\n1,1,1\n,1,1\n", {}, r"column 'qid' \(qid=\): 1 of 2 cells are empty, the first in row 2"),
        (
            ",qid,label,x\n0,1,1,1\n",
            {},
            r"d.csv: column 1 has no name, as the row numbers that pandas writes without index=False",
        ),
        ("qid, label,x\n1,1,1\n", {}, r"d.csv has no column 'label' \(label=\); it has: qid, ' label', x."),
        ("qid,label,x\n1,1,1\n1,0,-inf\n", {}, r"d.csv, column 'x': found -inf in row 2; expected finite numbers."),
        ("qid,label\n1,1\n", {}, r"d.csv has no columns besides qid, label; expected features."),
        ("qid,label,x\n", {}, r"d.csv has no rows; expected one document a row."),
        ("qid,label,x\n1,1,1\n", {"features": ["y"]}, r"d.csv has no column 'y' \(features=\)"),
        ("qid,label,x\n1,1,1\n", {"features": ["qid"]}, r"column 'qid' is named in features=, but holds"),
        ("qid,label,x\n1,1,1,4,5\n1,1\n", {"null": "maybe"}, r"null='maybe' is not valid"),
        ("", {}, r"d.csv cannot be read as a table: "),
    ],
)
def test_errors_name_the_file_and_the_column(tmp_path, text, options, message):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_table(tmp_path / "d.csv", **options)


def test_texts_in_another_encoding_are_errors(tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,x\n1,1,1\n", encoding="utf-16")
    with pytest.raises(ValueError, match=r"d.csv cannot be read as a table: .*; expected text in UTF-8."):
        load_table(tmp_path / "d.csv")


def test_labels_are_read_without_features(frame):
    data = load_table(frame.assign(title="shoes"), **COLUMNS, features=[])
    assert data.X.shape == (len(frame), 0)
    assert data.y.tolist() == frame["relevance"].tolist()


def test_names_without_a_known_ending_are_errors(tmp_path):
    with pytest.raises(ValueError, match=r"expected .csv, .tsv, .tab, .parquet or .pq. load_letor reads LETOR files."):
        load_table(tmp_path / "d.txt")


def test_folds_partition_the_queries(frame):
    data = load_table(frame, **COLUMNS)
    folds = query_folds(data, 4)
    assert sorted(np.concatenate([fold.test.docid for fold in folds])) == sorted(data.docid)
    for fold in folds:
        assert not {*fold.train.qid} & {*fold.test.qid}
        assert len(fold.train) + len(fold.test) == len(data)
        assert fold.train.X.columns.tolist() == data.X.columns.tolist()
    with pytest.raises(ValueError, match=r"n_folds=99 is not valid: expected 2 to \d+, the number of queries."):
        query_folds(data, 99)


def test_from_a_csv_file_to_scores_on_the_command_line(frame, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(frame, tmp_path / "train.csv")
    names = ["--qid", "query", "--docid", "url"]
    assert cli.main(["train", "train.csv", "--label", "relevance", *names, "-o", "m"]) == 0
    model = load_model("m")
    assert model.feature_names_in_.tolist() == ["bm25", "title match", "age"]
    assert (
        model.coef_ == StructRankSVM().fit(frame[model.feature_names_in_], frame["relevance"], qid=frame["query"]).coef_
    ).all()
    # Documents to rank have no labels, and their columns may be in another order.
    write(frame[["age", "url", "bm25", "query", "title match"]], tmp_path / "new.tsv")
    capsys.readouterr()
    assert cli.main(["predict", "m", "new.tsv", *names, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["score"] for row in rows] == model.predict(frame[model.feature_names_in_]).tolist()
    assert [row["docid"] for row in rows] == frame["url"].tolist()
    assert cli.main(["evaluate", "train.csv", "m", "--label", "relevance", *names]) == 0
    assert cli.main(["explain", "m", "new.tsv", *names, "--query", "q3"]) == 0
    assert "title match" in capsys.readouterr().out
    assert cli.main(["predict", "m", "new.tsv", *names, "--sparse"]) == 2
    assert capsys.readouterr().err == "structrank predict: error: --sparse does not apply to new.tsv, which is a table.\n"
    write(frame[["url", "bm25", "query"]], tmp_path / "narrow.csv")
    assert cli.main(["predict", "m", "narrow.csv", *names]) == 2
    assert "narrow.csv has no column 'title match' (--features)" in capsys.readouterr().err


def test_a_file_is_compared_on_folds_of_its_queries(frame, tmp_path, capsys):
    path = write(frame, tmp_path / "d.csv")
    options = ["--label", "relevance", "--qid", "query", "--docid", "url", "--trainers", "map", "--Cs", "1", "--json"]
    assert cli.main(["compare", str(path), *options]) == 0
    (cell, *_) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["dataset"], cell["queries"]) == ("d.csv", frame["query"].nunique())


def test_a_search_for_folds_does_not_walk_the_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr("structrank.datasets.folders._MOST_FOLDERS", 5)
    for number in range(6):
        (tmp_path / str(number)).mkdir()
    with pytest.raises(ValueError, match=r"holds over 5 folders; name the folder of one data set"):
        datasets.load_letor(tmp_path)
