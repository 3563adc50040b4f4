"""Tables of the user: files and frames with named columns, read by the API and by the command line."""

import bz2
import gzip
import itertools
import json
import lzma
import random
import re
import zipfile
from datetime import datetime
from decimal import Decimal

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
        ("qid,label,x\n1,1,1,4,5\n1,1\n", {"null": "maybe"}, r"null='maybe' is not known"),
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
    with pytest.raises(ValueError, match=r"n_folds=99 is not valid: expected an integer of at least 2 and at most \d+,"):
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
    assert "narrow.csv has no column 'title match' (features=)" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("docid", ["document-1", None], r"column 'docid' \(docid=\): 1 of 2 cells are empty, the first in row 2"),
        ("docid", [1, None], r"column 'docid' \(docid=\): 1 of 2 cells are empty, the first in row 2"),
        ("docid", ["a", ""], r"column 'docid' \(docid=\): 1 of 2 cells are empty, the first in row 2"),
        ("qid", [b"a", b"b"], r"column 'qid' \(qid=\): found b'a', a bytes, in row 1; expected texts or numbers"),
        ("qid", [[1], [2]], r"column 'qid' \(qid=\): found .*\[1\]\)?, a \w+, in row 1; expected texts or numbers"),
        ("qid", [{"a": 1}, {"a": 2}], r"column 'qid' \(qid=\): found {'a': 1}, a dict, in row 1; expected texts or numbers"),
        ("qid", [None, 7.5], r"column 'qid' \(qid=\): 1 of 2 cells are empty, the first in row 1"),
        ("qid", [0.5, float("nan")], r"column 'qid' \(qid=\): 1 of 2 cells are empty, the first in row 2"),
        ("qid", ["a\0", "a"], r"column 'qid' \(qid=\): found 'a\\x00' in row 1; expected a text without zero bytes"),
        ("docid", ["a", "a\0"], r"column 'docid' \(docid=\): found 'a\\x00' in row 2; expected a text without zero bytes"),
        ("label", ["0", "1"], r"column 'label' \(label=\): found '0' in row 1; expected numbers of at least 0"),
        ("x", [None, datetime(2020, 1, 1)], r"column 'x': found Timestamp.* in row 2; expected numbers"),
        ("x", [[1.0], [2.0]], r"column 'x': found .* in row 1; expected numbers"),
        ("x", [None, True], r"column 'x': 1 of 2 cells are empty, the first in row 1; pass null='min'"),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "arrow types", "polars", "lazy", "parquet"])
def test_frames_are_read_exactly_or_rejected(tmp_path, kind, column, values, message):
    columns = {"qid": ["a", "b"], "label": [0, 1], "x": [1, 2], column: values}
    name = tmp_path / "d.parquet" if kind == "parquet" else "the table"
    with pytest.raises(ValueError, match=f"^{re.escape(str(name))}, {message}"):
        load_table(frame_of(kind, columns, tmp_path))


def frame_of(kind, columns, folder):
    if kind == "pandas":
        return pd.DataFrame(columns)
    table = pytest.importorskip("pyarrow").table(columns)
    if kind == "arrow types":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, folder / "d.parquet")
        return folder / "d.parquet"
    polars = pytest.importorskip("polars")
    return polars.LazyFrame(columns) if kind == "lazy" else polars.DataFrame(columns)


@pytest.mark.parametrize("kind", ["pandas", "arrow types", "polars", "lazy", "parquet"])
def test_types_of_frames_do_not_change_the_data(tmp_path, kind):
    columns = {
        "qid": [2**40 + 1, 7],
        "label": [True, False],
        "x": [None, 2],
        "y": [Decimal("1.5"), None],
        "docid": ["long-1", "2"],
    }
    data = load_table(frame_of(kind, columns, tmp_path), null="zero")
    assert (data.qid.tolist(), data.y.tolist(), data.docid.tolist()) == ([2**40 + 1, 7], [1, 0], ["long-1", "2"])
    assert data.X.to_dict("list") == {"x": [0, 2], "y": [1.5, 0]}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "qid",
            [7, "7"],
            r"found 7 in row 1, which is of type integer, and '7' in row 2, of type text; expected ids of one type",
        ),
        ("qid", [1, True], r"found 1 in row 1, which is of type integer, and True in row 2, of type truth value"),
        ("qid", [(1, 2), (1, 3)], r"found \(1, 2\), a tuple, in row 1; expected texts or numbers"),
        ("qid", [Decimal(1), Decimal("NaN")], r"column 'qid' \(qid=\): 1 of 2 cells are empty"),
        ("x", [1, 2 + 1j], r"column 'x': found \(2\+1j\) in row 2; expected numbers"),
        ("x", np.array([1j, 2]), r"column 'x': found 1j in row 1; expected numbers"),
        ("x", [1, 10**400], r"column 'x': found inf in row 2; expected finite numbers"),
        ("x", ["1.5", 2], r"column 'x': found '1.5' in row 1; expected numbers"),
        ("x", [1, np.timedelta64(5, "s")], r"column 'x': found .*timedelta64.* in row 2; expected numbers"),
        ("qid", [np.timedelta64(5, "s")] * 2, r"column 'qid' \(qid=\): found .*, a timedelta64, in row 1; expected texts"),
    ],
)
def test_columns_of_objects_are_read_exactly_or_rejected(column, values, message):
    frame = pd.DataFrame({"qid": [1, 2], "label": [0, 1], "x": [1, 2]})
    frame[column] = pd.Series(values, dtype=None if isinstance(values, np.ndarray) else object)
    with pytest.raises(ValueError, match=message):
        load_table(frame)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pd.Categorical(["a", "b"]), ["a", "b"]),
        (pd.array([1, 2], dtype="Int64"), [1, 2]),
        (pd.Series([2**70, -1], dtype=object), [2**70, -1]),
        (pd.Series([2**63, 1], dtype="uint64"), [2**63, 1]),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), [pd.Timestamp(2020, 1, 1), pd.Timestamp(2020, 1, 2)]),
        ([0.5, 1.5], [0.5, 1.5]),
    ],
)
def test_query_ids_of_frames_keep_their_values_and_can_be_trained_on(ids, expected):
    rows = [0, 1] * 2
    frame = pd.DataFrame({"qid": pd.Series(ids)[rows].to_numpy(), "label": [0, 0, 1, 1], "x": pd.Categorical([1, 2, 3, 4])})
    data = load_table(frame)
    assert data.qid.tolist() == [expected[row] for row in rows]
    StructRankSVM().fit(data.X, data.y, qid=data.qid)


def test_columns_with_one_name_are_rejected(tmp_path):
    (tmp_path / "d.csv").write_text("qid,label,x,label\n1,1,1,1\n")
    with pytest.raises(ValueError, match=r"d.csv has 2 columns named 'label' \(columns 1, 3\); expected different names"):
        load_table(tmp_path / "d.csv")
    frame = pd.DataFrame([[1, 1, 1, 1]], columns=["qid", "label", 1, "1"])
    with pytest.raises(ValueError, match=r"the table has 2 columns named '1'"):
        load_table(frame)
    with pytest.raises(ValueError, match=r"features= names '1' twice"):
        load_table(frame.iloc[:, :3], features=["1", "1"])
    with pytest.raises(ValueError, match=r"label='qid', qid='qid' and docid=None name a column twice"):
        load_table(frame.iloc[:, :3], label="qid")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table([[1]] * 4, names=["qid", "label", "x", "label"]), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match=r"d.parquet has 2 columns named 'label' \(columns 1, 3\); expected different names"):
        load_table(tmp_path / "d.parquet")


def test_named_levels_of_an_index_are_columns_but_no_features(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 1], "x": [1, 2, 3], "y": [4, 5, 6], "docid": list("abc")})
    indexed = frame.iloc[[0, 1]].set_index(["docid", "x"])
    indexed.to_parquet(tmp_path / "d.parquet")
    for source in (indexed, tmp_path / "d.parquet"):
        data = load_table(source)
        assert (data.docid.tolist(), data.X.to_dict("list")) == (["a", "b"], {"y": [4, 5]})
        assert load_table(source, features=["y", "x"]).X.to_dict("list") == {"y": [4, 5], "x": [1, 2]}
    frame.iloc[1:].to_parquet(tmp_path / "d.parquet")  # with a column for the row numbers, which have no name
    assert load_table(tmp_path / "d.parquet").X.columns.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"the table has 2 columns named 'x' \(columns 2, 5\)"):
        load_table(frame.set_index("x", drop=False))


def test_parquet_files_with_checksums_are_read_exactly_or_rejected(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"qid": [1, 1, 2], "label": [0, 1, 1], "x": [0.0, 1234.5678, 2000.0]})
    parquet.write_table(table, tmp_path / "d.parquet", write_page_checksum=True, use_dictionary=False, compression="none")
    load_table(tmp_path / "d.parquet")
    content = bytearray((tmp_path / "d.parquet").read_bytes())
    content[content.index(np.float64(1234.5678).tobytes())] ^= 1
    (tmp_path / "d.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"d.parquet cannot be read as a table: .*checksum"):
        load_table(tmp_path / "d.parquet")


def test_document_ids_that_are_dropped_may_be_missing():
    frame = pd.DataFrame({"qid": [1, 2], "label": [0, 1], "x": [1, 2], "docid": ["a", None]})
    assert load_table(frame, drop="docid").docid is None


@pytest.mark.parametrize("source", [{"qid": [1]}, np.eye(3), None, b"d.csv"])
def test_sources_that_are_no_tables_are_rejected(source):
    with pytest.raises(ValueError, match=r"source is a \w+; expected the path of a file, or a data frame"):
        load_table(source)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.csv", "qid,label,x\n1,1,1,\n1,0,2,\n", r"row 1 \(line 2\): found 4 fields, expected 3, as the header has"),
        ("d.csv", "qid,label,x\n\n1,1,1\n1,0\n", r"row 2 \(line 4\): found 2 fields, expected 3, as the header has"),
        (
            "d.tsv",
            'qid\tlabel\tx\tt\n1\t1\t1\t"a\n1\t0\t2\tb"\n',
            r"row 1 \(line 2\): a quoted field continues on the next line",
        ),
        (
            "d.csv",
            'qid,label,x\n1,1,1\n"1,1,2\n1,0,1\n',
            r"row 2 \(line 3\): unexpected end of data; expected fields as in RFC",
        ),
        ("d.csv", 'qid,label,x\n1,1,1\n"1"2,0,2\n', r"row 2 \(line 3\): ',' expected after '\"'"),
        ("d.csv", f'qid,label,x\n1,1,"{"1" * 200_000}"\n', r"row 1 \(line 2\): field larger than field limit \(131072\)"),
        ("d.csv", "qid,label,x\r1,1,1\r", r"header \(line 1\): new-line character seen in unquoted field"),
        ("d.csv", "qid,label,x\n1,1,1\na\0,0,2\n", r"column 'qid' \(qid=\): found 'a\\x00' in row 2; expected a text"),
        ("d.csv", "qid,label,x\n1,1,1\n2,0,1_0\n", r"column 'x': found '1_0' in row 2; expected numbers"),
        ("d.csv", "qid;label;x\n1;1;1.5\n2;0;1.234,5\n", r"column 'x': found '1.234,5' in row 2; expected numbers"),
    ],
)
def test_damaged_texts_are_rejected_with_the_row(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, newline="")
    with pytest.raises(ValueError, match=rf"{name}, {message}"):
        load_table(tmp_path / name, null="zero")


def test_damaged_encrypted_and_expanding_archives_are_rejected_by_name(tmp_path, monkeypatch):
    path = tmp_path / "d.csv.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d.csv", "qid,label,x\n" + "1,0,1\n" * 10_000)
    content = path.read_bytes()
    assert len(load_table(path)) == 10_000
    monkeypatch.setattr("structrank.datasets.text_files._SMALL", 20_000)
    monkeypatch.setattr("structrank.datasets.text_files._MOST_EXPANDED", 100)
    with pytest.raises(ValueError, match=f"{path} expands to over 0 MB, over 100 times its size"):
        load_table(path)
    directory = content.index(b"PK\1\2")
    for position, value in [
        (6, 1),
        (8, 99),
        (40, 0),
        (directory + 8, 1),
        (directory + 10, 99),
        (directory + 46, 255),
        (-6, 255),
    ]:
        damaged = bytearray(content)
        damaged[position] = value
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"^{path} "):
            load_table(path)
    path.write_bytes(content[:-30])
    with pytest.raises(ValueError, match=f"^{path} cannot be read as a table: File is not a zip file"):
        load_table(path)


def slow_records(text, separator):
    """Return the records of RFC 4180, blank lines left out; None if a quoted field does not end as it should.

    Beyond the RFC, lines may end with a newline alone, and quotes inside a field that does not start with one are characters.
    """
    records, fields, place = [], [], 0
    end_of_line = re.compile(r"\r*\n|\r*\Z")
    while place < len(text):
        if not fields and (blank := end_of_line.match(text, place)):
            place = blank.end()
            continue
        if text[place : place + 1] == '"':
            quoted = re.compile('"((?:[^"]|"")*)"').match(text, place)
            if quoted is None or (separator == "\t" and "\n" in quoted[1]):
                return None
            field, place = quoted[1].replace('""', '"'), quoted.end()
        else:
            unquoted = re.compile(f"[^{separator}\r\n]*").match(text, place)
            field, place = unquoted[0], unquoted.end()
        fields.append(field)
        if text[place : place + 1] == separator:
            place += 1
            if place < len(text):
                continue
            fields.append("")
        end = end_of_line.match(text, place)
        if end is None:
            return None
        records.append(fields)
        fields, place = [], end.end()
    return [*records, fields] if fields else records


def slow_number(cell, decimal_mark):
    """Return a number, nan for an empty cell, None for anything else."""
    if cell in ("", "NULL", "null", "NA", "N/A", "None"):
        return np.nan
    if cell in ("True", "TRUE", "true", "False", "FALSE", "false"):
        return float(cell.lower() == "true")
    cell = cell.strip(" \t\n\r\v\f")
    if re.fullmatch(r"[+-]?(nan|inf(inity)?)", cell, re.IGNORECASE):
        return float(cell)
    number = rf"[+-]?([0-9]+{decimal_mark}?[0-9]*|{decimal_mark}[0-9]+)([eE][+-]?[0-9]+)?"
    return float(cell.replace(",", ".")) if re.fullmatch(number, cell) else None


def slow_table(content, ending, null):
    """Read a table with columns qid, label, docid (perhaps), title (not used) and features; return None if it is wrong."""
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    header = re.sub('"[^"]*"', "", next((line for line in text.split("\n") if line.strip("\r")), ""))
    separator = "\t" if ending == "tsv" else next((mark for mark in ",;\t" if mark in header), ",")
    records = slow_records(text, separator)
    if not records or {len(record) for record in records} != {len(records[0])}:
        return None
    names, *rows = records
    features = [name for name in names if name not in ("qid", "label", "docid", "title")]
    if len({*names}) < len(names) or not {"qid", "label", "title"} <= {*names} or not rows or not features:
        return None
    if any(name == "" or name.startswith("Unnamed: ") for name in features):
        return None
    column = dict(zip(names, zip(*rows, strict=True), strict=True))
    cells = "".join(itertools.chain(column["label"], *(column[name] for name in features)))
    decimal_mark = "," if separator == ";" and "," in cells else "[.]"
    labels, *values = ([slow_number(cell, decimal_mark) for cell in column[name]] for name in ["label", *features])
    ids = [*column["qid"], *column.get("docid", ())]
    if "" in ids or "\0" in "".join(ids) or not all(y is not None and 0 <= y < np.inf for y in labels):
        return None
    if any(value is None or np.isinf(value) for value in itertools.chain(*values)):
        return None
    for feature in values:
        for row, value in enumerate(feature):
            if np.isnan(value):
                if null == "error":
                    return None
                same = [x for x, qid in zip(feature, column["qid"], strict=True) if qid == column["qid"][row] and x == x]
                feature[row] = min(same, default=0.0) if null == "min" else 0.0
    integers = all(re.fullmatch("0|-?[1-9][0-9]{0,17}", qid) for qid in column["qid"])
    return {
        "qid": [int(qid) if integers else qid for qid in column["qid"]],
        "y": labels,
        "X": dict(zip(features, values, strict=True)),
        "docid": list(column["docid"]) if "docid" in column else None,
    }


TABLES = [
    ("csv", b'qid,label,bm25,docid,age,title\n1,1,0.5,A1,3,"a, b"\n1,0,-1e-3,A2,,"say ""x"""\n2,2,.25,A3,NULL,"two\nlines"\n'),
    ("csv", b'qid;label;bm25;age;title\r\n007;1;0,5;3;a\r\n7;0;1,25;4;b\r\n7;1;2;5;c 12"\r\n'),
    ("csv", b"title\tlabel\tqid\tx\na\t1\tq1\t1\nb\t0\tq1\tTrue\nc\t0\tq 2\t3.5\n"),
    ("tsv", b'docid\tqid\tlabel\tx\ty\ttitle\nd1\t1\t1\t1.5\t2\tscrew 5"\nd2\t1\t0\t2\t3\t"a\tb"\nd3\t2\t3\t4\t5\t\n'),
]
PIECES = [
    *(b'"', b'""', b",", b";", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", "\u0661".encode(), b" ", b"."),
    *(b"NULL", b"nan", b"-inf", b"1e400", b"1_0", b"0x1", b"True", b"-", b"1,5", b"1.5", b"\x1c", b"\xc2\xa0", b"7", b"007"),
    *(b"label", b"qid", b"docid", b"title", b"Unnamed: 0", b'"a\nb"', b"1\n", b",1", b"\t1", b"12345678901234567890"),
]


def damaged(content, rng, pieces):
    """Delete, insert, duplicate and replace bytes, one to four times."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(content))
        stop = rng.choice([start, min(start + rng.randint(0, 30), len(content)), len(content)])
        piece = rng.choice([rng.choice(pieces), rng.randbytes(rng.randint(0, 3)), content[start:stop] * 2, b""])
        content = content[:start] + piece + content[stop:]
    return content


def damaged_table(rng):
    """Return the ending and the content of a table with pieces inserted, moved, and taken away."""
    ending, content = rng.choice(TABLES)
    if rng.random() < 0.3:  # in all rows
        one, other = rng.choice(
            [(b"\n", b",\n"), (b"\n", b",1\n"), (b"\n", b"\r\n"), (b"\n", b"\r"), (b"\n", b"\n\n"), (b"\t", b";")]
        )
        return ending, content.replace(one, other)
    if rng.random() < 0.5:  # in one place
        place = rng.randrange(len(content))
        return ending, content[:place] + rng.choice(PIECES) + content[place + rng.randint(0, 2) :]
    return ending, damaged(content, rng, PIECES)


def agrees_with_slow_table(rng, folder):
    """Read a damaged table; return whether it is a table."""
    ending, content = damaged_table(rng)
    path, null = folder / f"d.{ending}", rng.choice(["error", "zero", "min"])
    path.write_bytes(content)
    expected = slow_table(content, ending, null)
    if expected is None:
        with pytest.raises(
            ValueError, match=r"row \d|line \d|no column|\d columns named|no columns|no rows|no name|is empty"
        ) as error:
            load_table(path, drop="title", null=null)
        assert str(error.value).startswith(str(path))
        return False
    data = load_table(path, drop="title", null=null)
    found = {"qid": data.qid.tolist(), "y": data.y.tolist(), "X": data.X.to_dict("list")}
    assert found | {"docid": None if data.docid is None else data.docid.tolist()} == expected, content
    return True


def test_damaged_tables_are_read_as_by_a_slow_reader_or_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("structrank.datasets._delimited._CELLS_AT_ONCE", 10)  # so that tables have several blocks
    outcomes = [agrees_with_slow_table(random.Random(number), tmp_path) for number in range(500)]
    assert 50 < sum(outcomes) < 450  # both kinds are tried
