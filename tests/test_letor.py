"""LETOR readers: exact values, folder layouts, the cache, and rejection of malformed files with file and line."""

import bz2
import functools
import gzip
import lzma
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from structrank import datasets
from structrank.datasets import _letor_reader, text_files
from structrank.datasets import cache as cache_module
from structrank.datasets._decimals import EXACT, HARD, read_number

SHARED = Path(os.environ.get("STRUCTRANK_DATA") or Path(__file__).parents[2] / "shared" / "data")
WEBIS = SHARED / "webis-clueweb09"
needs_webis = pytest.mark.skipif(
    not WEBIS.is_dir(), reason=f"{WEBIS} is not there; STRUCTRANK_DATA may name the folder that holds it"
)
quick = settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))

zipped = functools.partial(gzip.compress, mtime=0)  # reproducible bytes, so that test names are the same in every run

LINES = [
    b"2 qid:10 1:0.5 2:0.25 3:-1e-3 #docid = GX1 inc = 1 prob = 0.08",
    b"0 qid:10 1:0.125 3:7 #docid = GX2",
    b"1 qid:11 2:1 #docid = GX3",
]
SMALL = b"".join(line + b"\n" for line in LINES)
X = [[0.5, 0.25, -1e-3], [0.125, 0, 7], [0, 1, 0]]


@pytest.fixture
def write(tmp_path):
    def write(content, name="train.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def same(a, b):
    """Return whether two data sets are bit-identical."""
    dense = [d.X.toarray() if hasattr(d.X, "toarray") else d.X for d in (a, b)]
    names = [None if d.docid is None else d.docid.tolist() for d in (a, b)]
    return np.array_equal(*dense) and np.array_equal(a.y, b.y) and a.qid.tolist() == b.qid.tolist() and names[0] == names[1]


# Numbers


def number(token):
    return read_number(np.frombuffer(token.encode() + b"\n", dtype=np.uint8), 0)


def check_number(token):
    status, value, stop = number(token)
    assert stop == len(token)
    if status == HARD:
        return False
    assert status == EXACT
    assert struct.pack("d", value) == struct.pack("d", float(token)), token
    return True


@quick
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,4})?", fullmatch=True).filter(
            str.isascii
        ),
    )
)
def test_every_decimal_is_read_as_the_nearest_double_or_left_to_float(token):
    check_number(token)


def test_decimals_of_up_to_17_digits_are_read_by_compiled_code():
    rng = random.Random(0)
    for digits in range(1, 18):
        for _ in range(500):
            assert check_number(f"{rng.random():.{digits}f}")
            assert check_number(f"{rng.lognormvariate(0, 3):.{digits}g}")


def test_doubles_half_way_between_neighbours_round_to_even():
    rng = random.Random(0)
    for _ in range(2000):
        odd, power = rng.randrange(2**53, 2**54) | 1, rng.randrange(4)
        check_number(f"{odd * 5**power}e-{power}")
        check_number(f"{odd * 4 + 1}")


@pytest.mark.parametrize("token", ["nan", "inf", "", "-", "+", ".", "-.", "e5", "1e", "1e+", "NaN", "_1"])
def test_tokens_that_are_not_decimals_are_not_read(token):
    assert number(token)[2] == 0


# Contents of files


def test_all_fields_of_a_file_are_read(write):
    d = datasets.load_letor(write(SMALL))
    assert d.X.tolist() == X
    assert d.X.dtype == np.float64
    assert d.X.flags.c_contiguous
    assert d.y.tolist() == [2, 0, 1]
    assert d.qid.tolist() == [10, 10, 11]
    assert d.qid.dtype == np.int64
    assert d.docid.tolist() == ["GX1", "GX2", "GX3"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text.replace(b" ", b"\t"),
        lambda text: text.replace(b" ", b"   "),
        lambda text: text.replace(b" #", b"#"),
        lambda text: text.replace(b"\n", b" \n\n  \n# remark\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"1:0.5 2:0.25 3:-1e-3", b"3:-0.00100 1:+.5 2:25e-2"),
        lambda text: text.replace(b"1:0.125", b"1:0.125 2:0.0"),
        lambda text: text.replace(b"2 qid", b"2.0 qid"),
    ],
    ids=[
        "CRLF",
        "no-last-newline",
        "tabs",
        "blanks",
        "hash-at-value",
        "blank-lines",
        "BOM",
        "unordered",
        "zeros",
        "float-label",
    ],
)
def test_equivalent_notations_give_the_same_data(write, change):
    changed = change(SMALL)
    assert changed != SMALL
    assert same(datasets.load_letor(write(changed)), datasets.load_letor(write(SMALL, "plain.txt")))


@pytest.mark.parametrize("compress", [zipped, bz2.compress, lzma.compress])
def test_compression_is_recognised_by_content(write, compress):
    plain = datasets.load_letor(write(SMALL))
    assert same(datasets.load_letor(write(compress(SMALL), "any-name.txt")), plain)


@pytest.mark.parametrize("compress", [zipped, bz2.compress, lzma.compress])
@pytest.mark.parametrize("block", [50, 1 << 18])
def test_streams_that_follow_one_another_are_one_file(write, compress, block, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", block)
    plain = datasets.load_letor(write(SMALL * 300))
    assert same(datasets.load_letor(write(compress(SMALL * 100) + compress(b"") + compress(SMALL * 200))), plain)


@pytest.mark.parametrize("compress", [zipped, bz2.compress, lzma.compress])
def test_a_long_compressed_line_is_copied_a_few_times_only(write, compress, monkeypatch):
    reads = []
    monkeypatch.setattr(text_files, "_read_into", lambda *rest, read=text_files._read_into: reads.append(1) or read(*rest))
    name = np.random.default_rng(0).bytes(2**19).hex()
    assert datasets.load_letor(write(compress(b"1 qid:1 1:0.5 #" + name.encode()))).docid.tolist() == [name]
    assert len(reads) == 5  # blocks of 2^18, 2^18, 2^19, the rest, the end


@pytest.mark.parametrize("compress", [zipped, bz2.compress, lzma.compress])
def test_files_that_expand_out_of_proportion_are_rejected(write, compress, monkeypatch):
    path = write(compress(b"0 qid:1 1:0\n" * 100_000))
    assert len(datasets.load_letor(path)) == 100_000  # small enough
    monkeypatch.setattr(text_files, "_SMALL", 1_000_000)
    monkeypatch.setattr(text_files, "_MOST_EXPANDED", 100)
    with pytest.raises(ValueError, match=r"train.txt expands to over 1 MB, over 100 times its size"):
        datasets.load_letor(path)
    path.write_bytes(b"0 qid:1 1:0\n" * 100_000)
    assert len(datasets.load_letor(path)) == 100_000


@pytest.mark.parametrize("compress", [zipped, bz2.compress, lzma.compress])
def test_no_flipped_bit_of_a_later_stream_loses_rows(write, compress):
    first, second = compress(SMALL * 2), compress(SMALL * 3)
    plain = datasets.load_letor(write(SMALL * 5, "plain.txt"))
    path = write(first + second)
    for position in range(len(first), len(first + second)):
        content = bytearray(first + second)
        content[position] ^= 1 << position % 8
        path.write_bytes(content)
        try:
            found = datasets.load_letor(path)
        except ValueError as error:
            assert "damaged or truncated" in str(error)  # noqa: PT017 (some flips, as of gzip's time, change no data)
        else:
            assert same(found, plain)


@pytest.mark.parametrize("between", [b"", lzma.compress(SMALL)])
@pytest.mark.parametrize("zeros", [4, 8, 20_000])
def test_the_padding_of_xz_streams_is_accepted(write, between, zeros):
    plain = datasets.load_letor(write(SMALL * (2 if between else 1)))
    assert same(datasets.load_letor(write(lzma.compress(SMALL) + bytes(zeros) + between)), plain)


def test_the_zero_padding_of_gzip_files_is_accepted(write):
    plain = datasets.load_letor(write(SMALL * 2))
    assert same(datasets.load_letor(write(zipped(SMALL) + bytes(7) + zipped(SMALL) + bytes(20_000))), plain)


@pytest.mark.parametrize(
    ("compress", "after"),
    [
        (zipped, b"garbage"),
        (zipped, b"\x1f"),
        (bz2.compress, b"garbage"),
        (bz2.compress, b"\0\0\0\0"),
        (bz2.compress, b"BZ"),
        (bz2.compress, b"BZh9"),
        (lzma.compress, b"garbage"),
        (lzma.compress, bytes(3)),
        (lzma.compress, bytes(9)),
        (lzma.compress, bytes(4) + b"\xfd7zXZ"),
        (lzma.compress, lzma.compress(SMALL, format=lzma.FORMAT_ALONE)),
    ],
)
def test_anything_else_after_a_stream_is_an_error(write, compress, after):
    with pytest.raises(ValueError, match="damaged or truncated"):
        datasets.load_letor(write(compress(SMALL) + after))


def test_sparse_and_float32_hold_the_same_values(write):
    path = write(SMALL)
    sparse = datasets.load_letor(path, sparse=True, dtype=np.float32)
    assert sparse.X.dtype == np.float32
    assert sparse.X.nnz == 6
    assert np.array_equal(sparse.X.toarray(), np.float32(X))
    assert np.array_equal(datasets.load_letor(path, dtype="float32").X, np.float32(X))


def test_n_features_sets_the_width(write):
    path = write(SMALL)
    assert datasets.load_letor(path, n_features=5).X.shape == (3, 5)
    assert datasets.load_letor(path, n_features=5, sparse=True).X.shape == (3, 5)
    with pytest.raises(ValueError, match=r"train.txt:1: found '3:-1e-3'.*from 1 to 2, as n_features=2"):
        datasets.load_letor(path, n_features=2)


def test_ids_may_count_from_zero(write):
    d = datasets.load_letor(write(b"0 qid:1 0:3 1:4\n"), zero_based=True)
    assert d.X.tolist() == [[3, 4]]


def test_later_rows_may_have_more_features(write):
    lines = [b"0 qid:1 %d:%d\n" % (j, j) for j in (1, 3, 2, 70, 5)]
    d = datasets.load_letor(write(b"".join(lines)))
    expected = np.zeros((5, 70))
    expected[range(5), [0, 2, 1, 69, 4]] = [1, 3, 2, 70, 5]
    assert np.array_equal(d.X, expected)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["3", "-4"], [3, -4]),
        (["9223372036854775807", "0"], [2**63 - 1, 0]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["1" * 5000, "1"], ["1" * 5000, "1"]),
        (["007", "7"], ["007", "7"]),
        (["1.5", "+1"], ["1.5", "+1"]),
        (["\u00e9t\u00e9", "a"], ["\u00e9t\u00e9", "a"]),
    ],
)
def test_query_ids_are_integers_or_text(write, ids, expected):
    d = datasets.load_letor(write("".join(f"0 qid:{name} 1:1\n" for name in ids).encode()))
    assert d.qid.tolist() == expected


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        (b"#docid = A-1 inc = 1", "A-1"),
        (b"#  docid=A", "A"),
        (b"# my document ", "my document"),
        (b"#docid", "docid"),
        (b"#docid =", "docid ="),
        (b"# caf\xc3\xa9", "caf\u00e9"),
        (b"# caf\xe9", "caf\u00e9"),
        (b"# 1:2 # 3", "1:2 # 3"),
        (b"", ""),
        (b"#", ""),
        (b"# " + b"x" * 5_000_000, "x" * 5_000_000),
    ],
)
def test_comments_become_document_names(write, comment, name):
    others = b"".join(b"0 qid:1 1:0 #%d\n" % n for n in range(20))
    d = datasets.load_letor(write(b"0 qid:1 1:1 " + comment + b"\r\n" + others))
    assert d.docid[0] == name
    assert d.docid[1:].tolist() == [str(n) for n in range(20)]


def test_files_without_comments_have_no_document_names(write):
    assert datasets.load_letor(write(b"0 qid:1 1:1\n0 qid:1 1:2 #\n")).docid is None


@pytest.mark.parametrize("sparse", [False, True])
def test_null_values_follow_the_policy(write, sparse):
    path = write(b"0 qid:1 1:NULL 2:5\n0 qid:2 1:9 2:NULL\n0 qid:1 1:3 2:NULL\n0 qid:1 1:-2 2:6 3:1\n")

    def load(policy):
        X = datasets.load_letor(path, null=policy, sparse=sparse).X
        return X.toarray().tolist() if sparse else X.tolist()

    assert load("zero") == [[0, 5, 0], [9, 0, 0], [3, 0, 0], [-2, 6, 1]]
    assert load("min") == [[-2, 5, 0], [9, 0, 0], [3, 5, 0], [-2, 6, 1]]
    with pytest.raises(ValueError, match=r"train.txt:1: found '1:NULL', expected a number that is not missing; pass null="):
        load("error")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("marker", ["1.79769313486e+308", "1.7976931348623157E308", "-1.79769313486231570e+308"])
def test_the_largest_double_is_a_missing_value_as_istella_writes_it(write, marker, dtype, sparse):
    path = write(f"0 qid:1 1:{marker} 2:5\n0 qid:1 1:3 2:{marker}\n0 qid:1 1:2 2:6\n".encode())

    def load(**policy):
        X = datasets.load_letor(path, **policy, sparse=sparse, dtype=dtype).X
        assert X.dtype == dtype
        return X.toarray().tolist() if sparse else X.tolist()

    assert load(null="zero") == [[0, 5], [3, 0], [2, 6]]
    assert load(null="min") == [[2, 5], [3, 5], [2, 6]]
    with pytest.raises(ValueError, match=re.escape(f"train.txt:1: found '{marker}', expected a number that is not missing")):
        load()


def test_missing_values_in_tab_separated_files_follow_the_policy(write):
    path = write(b"10\tA\t1.79769313486e+308\t1\t2\n10\tB\t4\t2\t0\n10\tC\t3\tNULL\t0\n")
    assert datasets.load_letor(path, null="min").X.tolist() == [[3, 1], [4, 2], [3, 1]]
    path = write(b"10\tA\t1.79769313486e+308\t1\t2\n")
    with pytest.raises(ValueError, match=r"train.txt:1: found '1.79769313486e\+308', expected a number that is not missing"):
        datasets.load_letor(path)


def test_values_below_the_largest_double_are_not_missing(write):
    assert datasets.load_letor(write(b"0 qid:1 1:1.78e308 2:-1.78e308\n")).X.tolist() == [[1.78e308, -1.78e308]]
    with pytest.raises(ValueError, match="a value that float64 holds"):
        datasets.load_letor(write(b"0 qid:1 1:1e400\n"))


def test_missing_features_count_as_zero_in_the_minimum(write):
    path = write(b"0 qid:1 1:NULL\n0 qid:1 1:4\n0 qid:1 2:4\n")
    for sparse in (False, True):
        X = datasets.load_letor(path, null="min", sparse=sparse).X
        assert (X.toarray() if sparse else X)[0, 0] == 0


def test_tab_separated_files_of_letor_2_are_read(write):
    d = datasets.load_letor(write(b"10\tGX1\t0.5\t 2.5e1 \t2\r\n10\tGX 2\t0\t-1\t0\n7\tGX3\t1\t2\t1"))
    assert d.X.tolist() == [[0.5, 25], [0, -1], [1, 2]]
    assert d.y.tolist() == [2, 0, 1]
    assert d.qid.tolist() == [10, 10, 7]
    assert d.docid.tolist() == ["GX1", "GX 2", "GX3"]


@pytest.mark.parametrize("name", ["rank.train", "rank.train.gz"])
def test_queries_are_read_from_the_query_file_of_lightgbm(write, name):
    lines = b"1 1:0.5\n0 2:1\n0 1:2\n"
    write(b"2\n1\n", "rank.train.query")
    d = datasets.load_letor(write(zipped(lines) if name.endswith("gz") else lines, name))
    assert d.qid.tolist() == [0, 0, 1]
    assert d.X.tolist() == [[0.5, 0], [0, 1], [2, 0]]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (b"2\n2\n", r"add up to 4, expected 3, the number of documents"),
        (b"2\nx\n", r"query:2: found 'x', expected a query's number"),
        (b"3\n0\n", r"query:2: found '0'"),
        (b"-3\n", r"query:1: found '-3'"),
    ],
)
def test_invalid_group_sizes_are_rejected(write, sizes, message):
    path = write(b"1 1:0.5\n0 2:1\n0 1:2\n")
    write(sizes, "train.txt.query")
    with pytest.raises(ValueError, match=message):
        datasets.load_letor(path)


def test_tab_separated_values_with_group_sizes_are_rejected(write):
    path = write(b"1\t0.5\t0.25\t3\n")
    write(b"1\n", "train.txt.query")
    with pytest.raises(ValueError, match="tab-separated values, and group sizes"):
        datasets.load_letor(path)


# Malformed files


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        (b"nan qid:1 1:1", "'nan'", "a label"),
        (b"inf qid:1 1:1", "'inf'", "a label"),
        (b"-1 qid:1 1:1", "'-1'", "a label"),
        (b"-1.00000000000000000000001 qid:1 1:1", "'-1.000", "a label"),
        (b"1e999 qid:1 1:1", "'1e999'", "a label"),
        (b"x qid:1 1:1", "'x'", "a label"),
        (b"qid:1 1:1", "'qid:1'", "a label"),
        (b"1", "the end of the line", "qid:"),
        (b"1 # no more", "the end of the line", "qid:"),
        (b"1 1:1", "'1:1'", "qid:"),
        (b"1 qid: 1:1", "'qid:'", "qid:"),
        (b"1 qid:", "'qid:'", "qid:"),
        (b"1 qid:11:0.5", "'qid:11:0.5'", "qid:"),
        (b"1 qid:\xff\xfe 1:1", r"b'\\xff", "UTF-8"),
        (b"1 qid:1 qid:2", "'qid:2'", "<feature id>:<value>"),
        (b"1 qid:1 1", "'1'", "<feature id>:<value>"),
        (b"1 qid:1 1:1 \x01", r"'\\x01'", "<feature id>:<value>"),
        (b"1 qid:1 1:1\r 2:1", "a return without a newline", "lines that end"),
        (b"1 qid:1 1:1 # one\rtwo", "a return without a newline", "lines that end"),
        (b"1 qid:1 -1:1", "'-1:1'", "<feature id>:<value>"),
        (b"1 qid:1 0:1", "'0:1'", "a feature id from 1 .*zero_based=True"),
        (b"1 qid:1 4000000000:1", "'4000000000:1'", "a feature id from 1 to 2147483646"),
        (b"1 qid:1 99999999999999999999999:1", "'9999", "a feature id"),
        (b"1 qid:1 1:", "'1:'", "a finite decimal number"),
        (b"1 qid:1 1: 2", "'1:'", "a finite decimal number"),
        (b"1 qid:1 1:nan", "'1:nan'", "a finite decimal number"),
        (b"1 qid:1 1:-inf", "'1:-inf'", "a finite decimal number"),
        (b"1 qid:1 1:1e999", "'1e999'", "a value that float64 holds"),
        (b"1 qid:1 1:0x10", "'1:0x10'", "a finite decimal number"),
        (b"1 qid:1 1:1_000", "'1:1_000'", "a finite decimal number"),
        (b"1 qid:1 1:1,5", "'1:1,5'", "a finite decimal number"),
        (b"1 qid:1 1:NULLS", "'1:NULLS'", "a number"),
        (b"1 qid:1 1:0.5 3:1 1:0.5", "feature id 1 2 times", "each feature id once"),
        (b"1 qid:1 2:1 2:1", "feature id 2 2 times", "each feature id once"),
        (b"1 qid:1 1:1 ", "a zero byte", "text"),
    ],
)
def test_a_malformed_line_is_reported_with_what_was_expected(write, line, found, expected):
    zero = b"\0" if found == "a zero byte" else b""
    path = write(SMALL + b"\n# remark\n" + line + zero + b"\n" + SMALL)
    message = rf"{re.escape(str(path))}:6: found .*{found}.*expected .*{expected}"
    with pytest.raises(ValueError, match=message):
        datasets.load_letor(path)


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        (b"10\tGX2\t1\t2", "'2'", "2 values and then a label"),
        (b"10\tGX2\t1\t2\t3\t0", "'0'", "2 values and then a label"),
        (b"10\tGX2\t1\t\t0", "the end of the line", "a finite decimal number"),
        (b"10\tGX2\tnan\t1\t0", "'nan'", "a finite decimal number"),
        (b"10\t\t1\t1\t0", "the end of the line", "query id, document id"),
        (b"10", "'10'", "query id, document id"),
        (b"10\tGX2\t1\t2\t0.5", "'0.5'", "a label: an integer"),
        (b"10\tGX2\t1\t2\tnan", "'nan'", "a label: an integer"),
        (b"10\tGX2\t1\t2\t-1", "'-1'", "a label: an integer"),
    ],
)
def test_a_malformed_tab_separated_line_is_reported(write, line, found, expected):
    path = write(b"10\tGX1\t0.5\t2\t2\n" + line + b"\n")
    with pytest.raises(ValueError, match=rf"train.txt:2: found {found}, expected {expected}"):
        datasets.load_letor(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no document"),
        (b"\n\n# only a comment\n", "holds no document"),
        (zipped(b""), "holds no document"),
        (b"1 qid:1\n0 qid:1\n", "holds no feature"),
        (SMALL.decode().encode("utf-16"), "is UTF-16 text"),
        (SMALL.decode().encode("utf-16-le"), "train.txt:1: found a zero byte"),
        (SMALL.decode().encode("utf-32-be"), "train.txt:1: found a zero byte"),
        (SMALL.decode().encode("cp037"), "train.txt:1: found .*expected a label"),
        (b"\x7fELF\x02\x01\x01" + bytes(50), "zero byte"),
        (bytes(3_000_000), "zero byte"),
        (b"\x89PNG\r\n\x1a\n\x01\x02", "train.txt:1: found"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"Rar!\x1a\x07", "rar archive"),
        (zipped(SMALL * 1000)[:-500], "damaged or truncated"),
        (zipped(SMALL)[:5], "damaged or truncated"),
        (zipped(SMALL)[:-8] + b"12345678", "damaged or truncated"),
        (bz2.compress(SMALL)[:-5], "damaged or truncated"),
        (b"BZh9 no bzip2 at all", "damaged or truncated"),
        (lzma.compress(SMALL)[:-5], "damaged or truncated"),
        (b"a,b,c\n1,2,3\n", "train.txt:1: found 'a,b,c', expected a label"),
        (SMALL.replace(b"\n", b"\r"), "train.txt:1: found a return"),
    ],
)
def test_files_that_are_not_letor_text_are_rejected(write, content, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_letor(write(content))


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="pipes have no names here")
def test_a_pipe_is_rejected_because_it_cannot_be_read_twice():
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(ValueError, match=f"/dev/fd/{reading} is a pipe; write its content to a file first"):
        datasets.load_letor(f"/dev/fd/{reading}")
    os.close(reading)


@pytest.mark.parametrize("cut", range(1, 27))
def test_a_file_truncated_in_its_last_line_is_rejected(write, cut):
    line = b"1 qid:1 1:0.25 2:0.125 #docid = A\n"
    with pytest.raises(ValueError, match=r"train.txt:13: "):
        datasets.load_letor(write(line * 12 + line[:-cut][: len(line) - 11]))


def test_a_complete_last_line_needs_no_newline(write):
    line = b"1 qid:1 1:0.25 2:0.125 #docid = A\n"
    assert len(datasets.load_letor(write(line * 12 + line[:-1]))) == 13
    assert len(datasets.load_letor(write(line * 12 + b"1 qid:1 1:0.25\n"))) == 13


def test_values_beyond_float32_are_rejected_only_for_float32(write):
    path = write(b"1 qid:1 1:1e39\n")
    assert datasets.load_letor(path).X[0, 0] == 1e39
    with pytest.raises(ValueError, match="a value that float32 holds"):
        datasets.load_letor(path, dtype=np.float32)


def test_a_mistyped_feature_id_is_rejected_before_memory_is_allocated(write):
    path = write(SMALL + b"1 qid:12 200000000:1\n")
    with pytest.raises(ValueError, match=r"train.txt:4: found '200000000:1', which makes X 200000000 columns wide"):
        datasets.load_letor(path)
    assert datasets.load_letor(path, sparse=True).X.shape == (4, 200000000)


def test_many_short_rows_after_a_wide_one_are_rejected_before_memory_is_allocated(write, monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1000)
    path = write(b"1 qid:1 1000000:1\n" + b"0 qid:1 1:1\n" * 5000)
    with pytest.raises(ValueError, match=r"train.txt:1: found '1000000:1', which makes X"):
        datasets.load_letor(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"null": "mean"}, "null='mean' is not known"),
        ({"dtype": int}, "dtype=.*is not known"),
        ({"n_features": 0}, "n_features=0 is not valid"),
    ],
)
def test_invalid_options_are_rejected_before_the_file_is_opened(options, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_letor("no-such-file", **options)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        datasets.load_letor(tmp_path / "nothing-here")


# Arbitrary bytes, against a slow reference reader

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LETOR_LINE = re.compile(
    rb"[ \t]*(%s)[ \t]+qid:([^\x00-\x20#:\x7f]+)((?:[ \t]+[0-9]+:%s)*)[ \t]*(?:#([^\n]*))?" % (NUMBER, NUMBER)
)


class RefusedError(Exception):
    pass


def finite(token):
    value = float(token)
    if not np.isfinite(value):
        raise RefusedError
    return value


def not_missing(token):
    value = finite(token)
    if abs(value) >= 1.79e308:
        raise RefusedError
    return value


def decoded(name):
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("latin-1")


def reference_letor_row(line):
    match = LETOR_LINE.fullmatch(line)
    if match is None:
        raise RefusedError
    label, qid, features, comment = match.groups()
    values = {}
    for token in features.split():
        column, value = token.split(b":")
        if int(column) in values or not 1 <= int(column) <= 2**31 - 2:
            raise RefusedError
        values[int(column)] = not_missing(value)
    name = (comment or b"").lstrip(b" \t").rstrip(b" \t\r")
    if docid := re.match(rb"docid[ \t]*=[ \t]*([^ \t]+)", name):
        name = docid[1]
    return finite(label), qid, values, name


def reference_table_row(line, n_columns):
    fields = [field.strip(b" ") for field in line.rstrip(b" \t").split(b"\t")]
    if len(fields) != n_columns + 3 or not all(re.fullmatch(NUMBER, field) for field in fields[2:]):
        raise RefusedError
    if any(not field or re.search(rb"[\x00-\x1f\x7f]", field) for field in fields[:2]):
        raise RefusedError
    if not re.fullmatch(rb"[0-9]{1,18}", fields[-1]):
        raise RefusedError
    return float(fields[-1]), fields[0], {j + 1: not_missing(value) for j, value in enumerate(fields[2:-1])}, fields[1]


def reference(content):
    """Read the documented format step by step; raise RefusedError if the content is malformed."""
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
    if b"\0" in content or re.search(rb"\r(?!\n|\Z)", content):
        raise RefusedError
    lines = [line.removesuffix(b"\r") for line in content.split(b"\n")]
    documents = [n for n, line in enumerate(lines) if line.strip(b" \t") and not line.lstrip(b" \t").startswith(b"#")]
    if not documents:
        raise RefusedError
    first = lines[documents[0]]
    fields, tokens = first.split(b"\t"), first.split()
    is_letor = len(tokens) > 1 and tokens[1].startswith(b"qid:")
    if is_letor or len(fields) < 4 or any(b":" in field for field in fields[2:]):
        rows = [reference_letor_row(lines[n]) for n in documents]
    else:
        rows = [reference_table_row(lines[n], len(fields) - 3) for n in documents]
    labels, qids, values, names = zip(*rows, strict=True)
    if min(labels) < 0 or not any(values):
        raise RefusedError
    if documents[-1] == len(lines) - 1 and len(rows) > 10:  # the last line has no newline
        sizes = set(map(len, values[:-1]))
        if len(sizes) == 1 and len(values[-1]) < min(sizes):
            raise RefusedError
        if all(names[:-1]) and not names[-1]:
            raise RefusedError
    try:
        qids = [qid.decode() for qid in qids]
    except UnicodeDecodeError:
        raise RefusedError from None
    if all(re.fullmatch("0|-?[1-9][0-9]*", qid) and -(2**63) <= int(qid) < 2**63 for qid in qids):
        qids = [int(qid) for qid in qids]
    names = [decoded(name) for name in names]
    return list(labels), qids, list(values), names if any(names) else None


def agrees_with_reference(content, path):
    path.write_bytes(content)
    try:
        labels, qids, values, names = reference(content)
    except RefusedError:
        with pytest.raises(ValueError, match=re.escape(str(path))):
            datasets.load_letor(path, sparse=True)
        return
    d = datasets.load_letor(path, sparse=True)
    assert d.y.tolist() == labels
    assert d.qid.tolist() == qids
    assert (None if d.docid is None else d.docid.tolist()) == names
    found = [dict(zip((row.indices + 1).tolist(), row.data.tolist(), strict=True)) for row in d.X]
    assert found == [{j: v for j, v in row.items() if v != 0} for row in values]
    assert d.X.shape[1] == max(max(row, default=0) for row in values)
    if d.X.shape[1] < 1000:
        assert same(datasets.load_letor(path), d)


@pytest.fixture(scope="module")
def any_path(tmp_path_factory):
    return tmp_path_factory.mktemp("any") / "any.txt"


COMPRESSED_OR_ARCHIVE = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7z",
    b"PK\x03\x04",
    b"Rar!",
    b"7z\xbc",
    b"\x28\xb5",
    b"\xff\xfe",
    b"\xfe\xff",
)
PIECES = [
    *(b" ", b" ", b"\t", b"\n", b"\n", b"\r\n", b"\r", b"#", b":", b"1", b"0", b"2:", b"1:", b"3:1e5", b"qid:"),
    *(b"0 qid:1 1:1", b"1 qid:2 1:0.5 2:7\n", b"qid:7", b"-", b"+", b".", b"e", b"nan", b"NULL", b"inf", b"\x0b"),
    *(b"docid = A", b"#docid", b"=", b"99999999999999999999", b"0.1000000000000000055511151231257827", b"\xe9"),
    *(b"7\tA\t0.5\t1\n", b"\t0\n", b"\xef\xbb\xbf", b"1e-400", b"1e400"),
]


@quick
@given(content=st.binary(max_size=400))
def test_arbitrary_bytes_are_read_like_the_reference(any_path, content):
    assume(not content.startswith(COMPRESSED_OR_ARCHIVE))
    agrees_with_reference(content, any_path)


@quick
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30))
def test_arbitrary_pieces_of_letor_are_read_like_the_reference(any_path, pieces):
    agrees_with_reference(b"".join(pieces), any_path)


@quick
@given(data=st.data())
def test_damaged_files_are_read_like_the_reference(any_path, data):
    table = b"".join(b"%d\tA%d\t0.5\t%d\t1\n" % (n // 5, n, n) for n in range(14))
    content = data.draw(st.sampled_from([SMALL, SMALL * 5, table]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.one_of(st.just(start), st.integers(start, min(start + 30, len(content))), st.just(len(content))))
        piece = data.draw(st.one_of(st.sampled_from([*PIECES, b""]), st.binary(max_size=3)))
        content = content[:start] + piece + content[stop:]
    assume(not content.startswith(COMPRESSED_OR_ARCHIVE))
    agrees_with_reference(content, any_path)


@quick
@given(content=st.binary(max_size=200), compress=st.sampled_from([zipped, bz2.compress, lzma.compress]))
def test_damaged_compressed_files_are_rejected(any_path, content, compress):
    packed = compress(SMALL * 20)
    any_path.write_bytes(packed[: len(packed) // 2] + content)
    with pytest.raises(ValueError, match=re.escape(str(any_path))):
        datasets.load_letor(any_path)


@quick
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(-5, 5),
            # Larger numbers are read as missing values.
            st.dictionaries(st.integers(1, 30), st.floats(min_value=-1.78e308, max_value=1.78e308), max_size=8),
        ),
        min_size=1,
        max_size=12,
    ),
    block=st.sampled_from([8, 30, 200, 1 << 20]),
)
def test_rows_are_read_like_the_reference_for_any_block_size(any_path, rows, block):
    assume(any(values for _, _, values in rows))
    lines = [f"{y} qid:{q} {' '.join(f'{j}:{v!r}' for j, v in values.items())}\n" for y, q, values in rows]
    content = "".join(lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK_BYTES", block)
        agrees_with_reference(content, any_path)


# Folders


def part(queries, n_features=2):
    """Return LETOR text with two documents a query."""
    return "".join(
        f"{y} qid:{q} " + " ".join(f"{j}:{q + j + y}" for j in range(1, n_features + 1)) + f" #docid = D{q}{y}\n"
        for q in queries
        for y in (1, 0)
    ).encode()


LAYOUTS = {
    "letor-2.0": ("OHSUMED/Data/Fold{}/", ("trainingset.TXT", "validationset.txt", "testset.txt")),
    "letor-3.0": ("OHSUMED/QueryLevelNorm/Fold{}/", ("trainingset.txt", "validationset.txt", "testset.txt")),
    "letor-4.0": ("MQ2008/Fold{}/", ("train.txt", "vali.txt", "test.txt")),
    "mslr": ("MSLR-WEB10K/Fold{}/", ("train.txt", "vali.txt", "test.txt")),
    "webis": ("webis/Fold{}/", ("train.txt", None, "test.txt")),
    "upper-case": ("SET/FOLD{}/", ("TRAIN.TXT", "Vali.txt", "Test.txt")),
    "compressed": ("set/fold_{}/", ("train.txt.gz", "vali.txt.bz2", "test.txt.xz")),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folds_of_every_layout_are_found(write, tmp_path, layout):
    folder, names = LAYOUTS[layout]
    for fold in (1, 2, 10):
        for name, queries in zip(names, ([fold, fold + 20], [fold + 40], [fold + 60]), strict=True):
            if name:
                pack = {".gz": zipped, ".bz2": bz2.compress, ".xz": lzma.compress}.get(name[name.rfind(".") :], bytes)
                write(pack(part(queries)), folder.format(fold) + name)
    write(b"read me", folder.format(1) + "train_readme.md")
    folds = datasets.load_letor_folds(tmp_path)
    assert [sorted(set(fold.train.qid)) for fold in folds] == [[1, 21], [2, 22], [10, 30]]
    assert [sorted(set(fold.test.qid)) for fold in folds] == [[61], [62], [70]]
    if names[1]:
        assert [sorted(set(fold.validation.qid)) for fold in folds] == [[41], [42], [50]]
    else:
        assert [fold.validation for fold in folds] == [None] * 3
    whole = datasets.load_letor(tmp_path)
    assert list(dict.fromkeys(whole.qid)) == [1, 21, *[41] * bool(names[1]), 61]


def test_letor_3_defaults_to_the_query_level_normalised_version(write, tmp_path):
    for version, query in (("Feature-null", 1), ("QueryLevelNorm", 2), ("Feature-min", 3)):
        for name in ("trainingset.txt", "testset.txt"):
            write(part([query]), f"OHSUMED/{version}/Fold1/{name}")
    assert set(datasets.load_letor_folds(tmp_path / "OHSUMED")[0].train.qid) == {2}
    assert set(datasets.load_letor_folds(tmp_path / "OHSUMED" / "Feature-min")[0].train.qid) == {3}


@pytest.mark.parametrize("sparse", [False, True])
def test_all_parts_have_the_same_features_and_type_of_query_ids(write, tmp_path, sparse):
    write(part([1], n_features=3), "Fold1/train.txt")
    write(part([2], n_features=5), "Fold1/vali.txt")
    write(part([3], n_features=2).replace(b"qid:3", b"qid:q3"), "Fold1/test.txt")
    (fold,) = datasets.load_letor_folds(tmp_path, sparse=sparse)
    parts = fold.train, fold.validation, fold.test
    assert [p.X.shape for p in parts] == [(2, 5)] * 3
    assert [p.qid[0] for p in parts] == ["1", "2", "q3"]
    assert fold.train.X[0].sum() == 1 * 3 + 1 + 2 + 3 + 3


def test_lightgbm_folders_are_read(write, tmp_path):
    for name, sizes in (("train", b"1\n2\n"), ("test", b"3\n")):
        write(b"1 1:1\n0 1:2\n0 1:3\n", f"rank.{name}")
        write(sizes, f"rank.{name}.query")
    (fold,) = datasets.load_letor_folds(tmp_path)
    assert fold.train.qid.tolist() == [0, 1, 1]
    assert fold.test.qid.tolist() == [0, 0, 0]
    assert datasets.load_letor(tmp_path).qid.tolist() == [0, 1, 1, 2, 2, 2]


def test_parts_that_share_queries_cannot_be_read_as_one_data_set(write, tmp_path):
    write(part([1, 2]), "Fold1/train.txt")
    write(part([2, 3]), "Fold1/test.txt")
    with pytest.raises(ValueError, match=r"query '2' is in .*train.txt and in .*test.txt"):
        datasets.load_letor(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no folds: found nothing; expected Fold1"),
        (["notes.txt"], "holds no folds: found notes.txt; expected Fold1"),
        (["Fold1/train.txt"], "Fold1 has no test file: found train.txt"),
        (["Fold1/train.txt", "Fold1/train.txt.gz", "Fold1/test.txt"], "2 files for the train part"),
        (["A/Fold1/train.txt", "B/Fold1/train.txt"], "holds 2 data sets; name one of: .*A, .*B"),
    ],
)
def test_ambiguous_or_incomplete_folders_are_rejected(write, tmp_path, files, message):
    for name in files:
        write(part([1]), name)
    with pytest.raises(ValueError, match=message):
        datasets.load_letor_folds(tmp_path)


# Data sets by name


def test_data_sets_are_found_by_name(write, tmp_path, monkeypatch):
    places = ("OHSUMED/QueryLevelNorm", "OHSUMED/Feature-min", "Gov/QueryLevelNorm/2003_td_dataset", "MSLR-WEB10K")
    for number, place in enumerate(places):
        write(part([number]), f"{place}/Fold1/train.txt")
        write(part([number + 50]), f"{place}/Fold1/test.txt")
    monkeypatch.setenv("STRUCTRANK_DATA", str(tmp_path))
    assert datasets.available() == ["mslr-web10k", "ohsumed", "td2003"]
    assert datasets.available(tmp_path / "Gov") == ["td2003"]
    for name, query in (("ohsumed", 0), ("OHSUMED", 0), ("td2003", 2), ("MSLR_WEB10K", 3)):
        assert datasets.load(name)[0].train.qid[0] == query
    assert datasets.load("td2003", data_home=tmp_path / "Gov", sparse=True)[0].train.X.nnz == 4


def test_the_error_for_a_missing_data_set_names_its_folder_and_its_source(tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTRANK_DATA", str(tmp_path))
    assert datasets.available() == []
    expected = re.escape(str(tmp_path / "OHSUMED" / "Fold1" / "train.txt"))
    with pytest.raises(FileNotFoundError, match=rf"(?s)Expected: {expected}.*LETOR.*Microsoft Research"):
        datasets.load("ohsumed")
    with pytest.raises(ValueError, match="does not exist"):
        datasets.load("ohsumed", data_home=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="Found there: no data set"):
        datasets.load("my own")


def test_an_ambiguous_name_is_rejected(write, tmp_path):
    for version in ("LETOR2", "LETOR3"):
        write(part([1]), f"{version}/OHSUMED/Fold1/train.txt")
    with pytest.raises(ValueError, match="'ohsumed' exists 2 times"):
        datasets.load("ohsumed", data_home=tmp_path)


# The cache


@pytest.fixture
def no_parsing(monkeypatch):
    def refuse():
        def fail(*args):
            raise AssertionError("parsed again")

        monkeypatch.setattr("structrank.datasets.letor.read_letor_files", fail)

    return refuse


@pytest.mark.parametrize("sparse", [False, True])
def test_the_second_load_is_read_from_the_cache(write, tmp_path, no_parsing, sparse):
    path, cache = write(SMALL), tmp_path / "deep" / "cache"
    first = datasets.load_letor(path, cache=cache, sparse=sparse)
    no_parsing()
    moved = path.rename(tmp_path / "other-name.txt")
    second = datasets.load_letor(moved, cache=cache, sparse=sparse, dtype="float64")
    assert same(first, second)
    assert same(first, datasets.load_letor(moved, cache=cache, sparse=sparse))
    assert type(second.X if not sparse else second.X.data) is np.ndarray


def test_writing_to_mapped_data_does_not_change_the_cache(write, tmp_path):
    path = write(SMALL)
    datasets.load_letor(path, cache=tmp_path / "cache").X[:] = 77
    assert datasets.load_letor(path, cache=tmp_path / "cache").X.tolist() == X


def test_the_cache_depends_on_content_and_options(write, tmp_path):
    path, cache = write(SMALL), tmp_path / "cache"
    datasets.load_letor(path, cache=cache)
    assert datasets.load_letor(path, cache=cache, dtype=np.float32).X.dtype == np.float32
    assert datasets.load_letor(path, cache=cache, n_features=4).X.shape == (3, 4)
    write(SMALL.replace(b"0.25", b"0.26"))
    assert datasets.load_letor(path, cache=cache).X[0, 1] == 0.26
    write(b"1 1:1\n0 1:2\n")
    write(b"2\n", "train.txt.query")
    assert datasets.load_letor(path, cache=cache).qid.tolist() == [0, 0]
    write(b"1\n1\n", "train.txt.query")
    assert datasets.load_letor(path, cache=cache).qid.tolist() == [0, 1]


@pytest.mark.parametrize("file", ["X.npy", "y.npy", "docid.npy", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "garbage", "gone"])
def test_a_damaged_cache_entry_is_rewritten(write, tmp_path, no_parsing, file, damage):
    path, cache = write(SMALL), tmp_path / "cache"
    datasets.load_letor(path, cache=cache)
    first = datasets.load_letor(path)
    (victim,) = cache.glob(f"*/{file}")
    content = bytearray(victim.read_bytes())
    if damage == "cut":
        victim.write_bytes(content[:-5])
    elif damage == "flip":
        content[-3] ^= 1
        victim.write_bytes(content)
    elif damage == "garbage":
        victim.write_bytes(b"garbage")
    else:
        victim.unlink()
    assert same(datasets.load_letor(path, cache=cache), first)
    no_parsing()
    assert same(datasets.load_letor(path, cache=cache), first)


def test_data_are_read_where_no_cache_can_be_kept(write, tmp_path):
    path = write(SMALL)
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="The parse cache in .*file was not written: .* (exists|directory)") as caught:
        data = datasets.load_letor(path, cache=tmp_path / "file")
    assert len(caught) == 1
    assert same(data, datasets.load_letor(path))


@pytest.mark.parametrize(("module", "function"), [("np", "save"), ("tempfile", "mkdtemp")])
def test_a_failed_write_leaves_no_cache_entry(module, function, write, tmp_path, monkeypatch):
    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    path, cache = write(SMALL), tmp_path / "cache"
    monkeypatch.setattr(getattr(cache_module, module), function, full_disk)
    with pytest.warns(RuntimeWarning, match="was not written: .*No space left"):
        assert datasets.load_letor(path, cache=cache).X.tolist() == X
    assert list(cache.iterdir()) == []


def test_nothing_is_written_without_a_cache(write, tmp_path):
    path = write(SMALL)
    datasets.load_letor(path)
    assert list(tmp_path.iterdir()) == [path]


# Progress and memory


@pytest.mark.parametrize(("verbose", "shown"), [(1, True), (0, False), (None, False)])
def test_progress_is_shown_for_large_files_if_verbose(write, monkeypatch, capfd, verbose, shown):
    path = write(SMALL)
    datasets.load_letor(path, verbose=1)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(_letor_reader, "_PROGRESS_FROM", 10)
    datasets.load_letor(path, verbose=verbose)
    out, err = capfd.readouterr()
    assert out == ""
    assert ("train.txt: 100%|##########|" in err) == shown
    assert bool(err) == shown


def dense_rows(n_rows, n_features=46):
    rng = np.random.default_rng(0)
    return "".join(
        f"{rng.integers(3)} qid:{n // 100} "
        + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(rng.random(n_features), start=1))
        + f" #docid = GX{n:03d}-00-0000000 inc = 1 prob = 0.5\n"
        for n in range(n_rows)
    ).encode()


def test_dense_rows_are_read_like_scikit_learn(write):
    from sklearn.datasets import load_svmlight_file

    path = write(dense_rows(1000))
    theirs, labels, queries = load_svmlight_file(str(path), query_id=True)
    ours = datasets.load_letor(path)
    assert np.array_equal(theirs.toarray(), ours.X)
    assert np.array_equal(labels, ours.y)
    assert np.array_equal(queries, ours.qid)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc on Linux")
def test_peak_memory_is_below_1_5_times_the_array(write):
    path = write(dense_rows(2000) * 60)
    script = f"""
import re
from pathlib import Path
from structrank import datasets
def kilobytes(what):
    return int(re.search(what + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
datasets.load_letor({str(write(SMALL, "small.txt"))!r})  # load the compiled code
before = kilobytes("VmRSS")
d = datasets.load_letor({str(path)!r})
print(1024 * (kilobytes("VmHWM") - before) / d.X.nbytes, d.X.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ratio, n_bytes = map(float, done.stdout.split())
    assert n_bytes == 120_000 * 46 * 8
    assert ratio < 1.5


# Real data


@needs_webis
def test_all_documents_of_webis_are_read():
    folds = datasets.load("webis-clueweb09", data_home=SHARED)
    assert len(folds) == 5
    tests = [set(fold.test.qid) for fold in folds]
    assert sum(map(len, tests)) == len(set.union(*tests)) == 61
    whole = datasets.load_letor(WEBIS)
    assert whole.X.shape == (26646, 42)
    assert dict(zip(*np.unique(whole.y, return_counts=True), strict=True)) == {0: 21808, 1: 3274, 2: 1242, 3: 172, 4: 150}
    assert whole.X.min() == 0
    assert whole.X.max() == 1
    for fold in folds:
        assert fold.validation is None
        assert not set(fold.train.qid) & set(fold.test.qid)
        assert len(fold.train) + len(fold.test) == 26646
        assert sorted([*fold.train.docid, *fold.test.docid]) == sorted(whole.docid)


@needs_webis
def test_webis_agrees_with_the_reference_and_scikit_learn():
    from sklearn.datasets import load_svmlight_file

    path = WEBIS / "Fold1" / "test.txt"
    d = datasets.load_letor(path)
    labels, qids, values, names = reference(path.read_bytes())
    assert d.y.tolist() == labels
    assert d.qid.tolist() == qids
    assert d.docid.tolist() == names
    assert d.X.tolist() == [[row.get(j, 0.0) for j in range(1, 43)] for row in values]
    theirs, _ = load_svmlight_file(str(path))
    assert np.array_equal(d.X, theirs.toarray())


@pytest.mark.parametrize("move", [lambda ids: [*ids[1:], ids[0]], lambda ids: [*ids[:-1], ids[500]]], ids=["last", "twice"])
def test_long_lines_with_one_id_out_of_order_are_read_or_rejected(write, move):
    ids = move(list(range(1, 100_001)))
    path = write(b"1 qid:1 " + b" ".join(b"%d:%d" % (i, i) for i in ids) + b"\n")
    if len(set(ids)) < len(ids):
        with pytest.raises(ValueError, match="found feature id 501 2 times"):
            datasets.load_letor(path, sparse=True)
    else:
        assert np.array_equal(datasets.load_letor(path, sparse=True).X.toarray()[0], np.arange(1, 100_001))


@pytest.mark.parametrize("zeros", [10**6, 3 * 10**6])
@pytest.mark.parametrize("text", ["0.{zeros}25e{n}", "25{zeros}e-{n}", "-0.{zeros}25e{n}"])
def test_numbers_with_millions_of_digits_are_the_nearest_doubles(write, zeros, text):
    text = text.format(zeros="0" * zeros, n=zeros + 1)
    assert abs(float(text)) == 2.5
    assert datasets.load_letor(write(b"1 qid:1 1:" + text.encode() + b"\n")).X[0, 0] == float(text)
