"""Tests of the readers against plain Python for any block size, and of the messages about malformed lines."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import polars
import pytest

from structrank import StructRankWarning
from structrank.clicks import _log_kernels as kernels
from structrank.clicks._text_logs import _TYPES
from structrank.clicks.frames import read_frame
from structrank.clicks.ids import TextIds
from structrank.clicks.log import ClickLog
from structrank.clicks.preferences import preference_pairs
from structrank.clicks.readers import read_jsonl, read_tsv, read_yandex, stream_jsonl, stream_tsv, stream_yandex
from structrank.clicks.stream import click_counts


@pytest.fixture
def write(tmp_path):
    def write(text, name="log.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture(params=[32, 2**18], ids=["small blocks", "large blocks"])
def blocks(request, monkeypatch):
    """Set the block size: small enough to cut sessions and lines, and the default."""
    monkeypatch.setattr("structrank.datasets.text_files.BLOCK_BYTES", request.param)


def messy_sessions(rng, n=300):
    """Return sessions with empty lists, repeated urls, repeated clicks and clicks outside the list."""
    sizes = rng.integers(0, 7, n).tolist()
    return [
        (int(rng.integers(12)), rng.integers(0, 9, size).tolist(), rng.integers(-1, size + 2, rng.integers(5)).tolist())
        for size in sizes
    ]


def cleaned(sessions):
    """Return sessions cleaned by ClickLog, which test_click_log.py tests."""
    return list(ClickLog.from_sessions(sessions))


def as_tsv(sessions):
    return "".join(f"{q}\t{' '.join(map(str, urls))}\t{' '.join(map(str, clicks))}\n" for q, urls, clicks in sessions)


def as_jsonl(sessions):
    return "".join(json.dumps({"query": q, "urls": urls, "clicks": clicks}) + "\n" for q, urls, clicks in sessions)


# --- tab-separated text -----------------------------------------------------------------------------------------------


def test_tsv_files_round_trip(rng, write, blocks):
    sessions = messy_sessions(rng)
    log, expected = read_tsv(write(as_tsv(sessions))), ClickLog.from_sessions(sessions)
    assert list(log) == list(expected)
    assert log.report == expected.report


def test_tsv_may_contain_blanks_carriage_returns_and_missing_clicks(write, blocks):
    path = write("paris weather \ta.org   b.org\t 1  0 \r\n\n  \nnews\tc.org\nüber\tä.org\t\n maps\t\t0")
    log = read_tsv(path)
    assert list(log) == [("paris weather", ["a.org", "b.org"], [1, 0]), ("news", ["c.org"], []), ("über", ["ä.org"], [])]
    assert (log.report.empty, log.report.not_shown) == (1, 1)


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        ("alone", "'alone'", "three fields separated by tabs"),
        ("\ta.org\t0", "the end of the line", "a query"),
        ("q\ta.org b.org\t0 x", "'x'", "a clicked position: an integer from 0"),
        ("q\ta.org b.org\t0.5", "'0.5'", "a clicked position: an integer from 0"),
        ("q\ta.org b.org\t-", "'-'", "a clicked position: an integer from 0"),
        ("q\ta.org b.org\t" + "9" * 19, f"'{'9' * 19}'", "a clicked position: an integer from 0"),
        ("q\ta.org\t0\tmore", "'more'", "the end of the line"),
        ("x" * 100, f"'{'x' * 40}...'", "three fields"),
    ],
)
def test_malformed_tsv_lines_are_skipped_and_reported(line, found, expected, write, blocks):
    path = write(f"q\ta.org b.org\t0\n\n{line}\nr\tb.org\t0\n")
    with pytest.warns(StructRankWarning) as caught:
        log = read_tsv(path)
    message = str(caught[0].message)
    assert f"{path}:3: found {found}, expected {expected}" in message
    assert [query for query, _, _ in log] == ["q", "r"]
    assert log.report.malformed == 1
    assert log.urls.values.tolist() == ["a.org", "b.org"]
    with pytest.raises(ValueError, match=":3: found"):
        read_tsv(path, malformed="error")


def test_a_line_may_end_with_a_tab(write):
    log = read_tsv(write("q\ta.org b.org\t1\t\nr\ta.org\t\t\n"))
    assert list(log) == [("q", ["a.org", "b.org"], [1]), ("r", ["a.org"], [])]


def test_ids_in_text_are_integers_only_if_all_are_canonical_integers(write):
    log = read_tsv(write("10\t7 -3 0\t0\n9\t7\t\n"))
    assert log.queries.values.tolist() == [9, 10]
    assert log.urls.values.tolist() == [-3, 0, 7]
    assert list(log) == [(10, [7, -3, 0], [0]), (9, [7], [])]
    longest = 2**63 - 1
    assert list(read_tsv(write(f"1\t{longest} {-longest} {10**18}\t0\n"))) == [(1, [longest, -longest, 10**18], [0])]
    assert set(read_tsv(write(f"1\t{longest + 1} 2\t0\n")).urls.values) == {"2", str(longest + 1)}
    for odd in ("007", "-0", "+7", "7.0", "9" * 19, "\u0667"):
        log = read_tsv(write(f"10\t7 {odd}\t1\n"))
        assert log[0] == (10, ["7", odd], [1])


def test_bytes_that_are_not_text_are_distinct_ids(write):
    log = read_tsv(write(b"q\t\xff \xfe \xff\t1\n"))
    assert log[0] == ("q", ["\\xff", "\\xfe"], [1])


def test_many_ids_are_distinguished(write, rng):
    """Use more ids than the first table holds, with common prefixes and consecutive numbers."""
    names = [f"{kind}{number}" for number in range(30_000) for kind in ("", "u", "http://example.org/a/long/path/")]
    order = rng.permutation(len(names))
    urls = [names[place] for place in [*order, *order[::3]]]
    sessions = [(number, urls[start : start + 50], []) for number, start in enumerate(range(0, len(urls), 50))]
    log = read_tsv(write(as_tsv(sessions)))
    assert list(log) == cleaned(sessions)
    assert len(log.urls) == len(names)


def test_new_text_ids_are_empty():
    assert TextIds().values.tolist() == []
    assert len(TextIds()) == 0


# --- JSON lines -------------------------------------------------------------------------------------------------------


def test_jsonl_files_round_trip(rng, write, blocks):
    sessions = messy_sessions(rng)
    log, expected = read_jsonl(write(as_jsonl(sessions))), ClickLog.from_sessions(sessions)
    assert list(log) == list(expected)
    assert log.report == expected.report


def test_json_numbers_and_texts_are_different_ids(write):
    lines = ['{"query": 1, "urls": [1, "1"], "clicks": [1], "user": "x"}', "", '{"query": "1", "urls": [1], "clicks": []}']
    log = read_jsonl(write("\n".join(lines)))
    assert list(log) == [(1, [1, "1"], [1]), ("1", [1], [])]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1, 2, 3]",
        "7",
        '{"query": 1, "urls": [1]}',
        '{"query": 1, "urls": [1], "clicks": 0}',
        '{"query": 1, "urls": [1], "clicks": ["0"]}',
        '{"query": null, "urls": [1], "clicks": []}',
        '{"query": NaN, "urls": [1], "clicks": []}',
        '{"query": 1, "urls": [true, 1], "clicks": [1]}',
        '{"query": {"a": 1}, "urls": [1], "clicks": []}',
        '{"query": 1, "urls": {"a": 1}, "clicks": []}',
        '{"query": 9223372036854775808, "urls": [1], "clicks": []}',
        '{"query": 1, "urls": [-9223372036854775809], "clicks": []}',
        "[" * 5000,
        b'{"query": "\xff", "urls": [1], "clicks": []}',
    ],
    ids=repr,
)
def test_malformed_json_lines_are_skipped_and_reported(line, write):
    line = line if isinstance(line, bytes) else line.encode()
    path = write(b'{"query": 1, "urls": [1], "clicks": [0]}\n' + line + b"\n")
    with pytest.warns(StructRankWarning, match=":2: found .*, expected"):
        log = read_jsonl(path)
    assert list(log) == [(1, [1], [0])]
    with pytest.raises(ValueError, match=":2: found"):
        read_jsonl(path, malformed="error")


def test_integers_and_texts_of_many_digits_are_ids(write):
    path = write(b'{"query": 9223372036854775807, "urls": [-9223372036854775808, "92233720368547758070"], "clicks": [0]}\n')
    assert list(read_jsonl(path)) == [(2**63 - 1, [-(2**63), "92233720368547758070"], [0])]


# --- Yandex format ----------------------------------------------------------------------------------------------------


def messy_yandex(rng, n_sessions=80):
    """Return lines of sessions with several queries, and clicks at any time and on any url, in file order."""
    lines = []
    for session in range(n_sessions):
        its = []
        for _ in range(rng.integers(1, 8)):
            time = int(rng.integers(0, 9))
            if rng.random() < 0.4:
                urls = rng.integers(0, 8, rng.integers(0, 6)).tolist()
                its.append((session, time, "Q", int(rng.integers(5)), 3, *urls))
            else:
                its.append((session, time, "C", int(rng.integers(0, 10))))
        if session % 3:
            its.sort(key=lambda line: line[1])
        lines += its
    return lines


def sessions_of(lines):
    """Parse Yandex lines in plain Python; return sessions in order, clicks not shown, clicks without a query."""
    sessions, not_shown, without_query = [], 0, 0
    for session in dict.fromkeys(line[0] for line in lines):
        its = [line for line in lines if line[0] == session]
        queries = [line for line in its if line[2] == "Q"]
        clicks = [[] for _ in queries]
        for click in sorted((line for line in its if line[2] == "C"), key=lambda line: line[1]):
            showing = [n for n, line in enumerate(queries) if line[1] <= click[1] and click[3] in line[5:]]
            if showing:
                owner = max(showing, key=lambda n: (queries[n][1], n))
                clicks[owner].append(queries[owner][5:].index(click[3]))
            elif queries:
                not_shown += 1
            else:
                without_query += 1
        sessions += [(line[3], list(line[5:]), its) for line, its in zip(queries, clicks, strict=True)]
    return sessions, not_shown, without_query


def as_yandex(lines, separator="\t"):
    return "".join(separator.join(map(str, line)) + "\n" for line in lines)


@pytest.mark.filterwarnings("ignore::structrank.StructRankWarning")
@pytest.mark.parametrize("chunk", [1, 10, 10_000])
def test_yandex_files_are_read_like_the_plain_python_reference(rng, write, blocks, chunk):
    lines = messy_yandex(rng)
    sessions, not_shown, without_query = sessions_of(lines)
    expected = ClickLog.from_sessions(sessions)
    path = write(as_yandex(lines))
    log = ClickLog.gather(stream_yandex(path, chunk=chunk))
    assert list(log) == list(expected)
    assert log.report.not_shown == not_shown > 0
    assert log.report.without_query == without_query > 0
    for name in ("empty", "repeated_urls", "repeated_clicks", "without_clicks"):
        assert getattr(log.report, name) == getattr(expected.report, name), name
    assert list(read_yandex(write(as_yandex(lines, " "), "blanks.txt"))) == list(expected)


def test_a_click_belongs_to_the_latest_query_that_showed_the_url(write):
    text = "1 0 Q 5 0 10 11\n1 5 Q 6 0 11 12\n1 7 C 10\n1 8 C 11\n1 9 C 12\n2 0 Q 5 0 12\n2 1 C 11\n"
    log = read_yandex(write(text))
    assert list(log) == [(5, [10, 11], [0]), (6, [11, 12], [0, 1]), (5, [12], [])]
    assert log.report.not_shown == 1


def test_clicks_of_an_unsorted_file_warn(write):
    path = write("1\t0\tQ\t5\t0\t10\t11\n2\t0\tQ\t5\t0\t10\t11\n1\t3\tC\t11\n")
    with pytest.warns(StructRankWarning, match="Skipped 1 click in sessions without a query line.*sort the file"):
        log = read_yandex(path)
    assert log.report.without_query == 1
    assert log.report.clicks == 0


def test_a_session_does_not_continue_in_the_next_file(write):
    paths = [write("1\t0\tQ\t5\t0\t10\n", "a.txt"), write("1\t1\tC\t10\n1\t2\tQ\t5\t0\t10\n1\t3\tC\t10\n", "b.txt")]
    log = read_yandex(paths)
    assert list(log) == [(5, [10], []), (5, [10], [0])]
    assert log.report.not_shown == 1


@pytest.mark.parametrize("second", [6, 7, 8])
def test_sessions_of_two_files_are_distinct_for_any_ids(second, write):
    first = write("6\t0\tQ\t1\t0\t10\t11\t12\n", "a.txt")
    files = [first, write(f"{second}\t0\tQ\t2\t0\t20\t21\n{second}\t9\tC\t12\n", "b.txt")]
    log = read_yandex(files)
    assert [(query, list(clicks)) for query, _, clicks in log] == [(1, []), (2, [])]
    assert log.report.not_shown == 1


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        ("2", "the end of the line", "a time: an integer, after the session"),
        ("2\tsoon\tQ\t5\t0\t10", "'soon'", "a time: an integer, after the session"),
        ("2\t3", "the end of the line", r"Q (a query) or C (a click), after session and time"),
        ("2\t3\tM\t5", "'M'", r"Q (a query) or C (a click), after session and time"),
        ("2\t3\tQQ\t5", "'QQ'", r"Q (a query) or C (a click), after session and time"),
        ("2\t3\tQ", "the end of the line", "a query"),
        ("2\t3\tQ\t5", "the end of the line", "a region after the query, and then urls"),
        ("2\t3\tC", "the end of the line", "the url that was clicked"),
        ("2\t3\tC\t10\t11", "'11'", "the end of the line"),
    ],
)
def test_malformed_yandex_lines_are_skipped_and_reported(line, found, expected, write, blocks):
    path = write(f"2\t0\tQ\t5\t0\t10\t11\n{line}\n2\t9\tC\t11\n")
    with pytest.warns(StructRankWarning) as caught:
        log = read_yandex(path)
    assert f"{path}:2: found {found}, expected {expected}." in str(caught[0].message)
    assert list(log) == [(5, [10, 11], [1])]
    with pytest.raises(ValueError, match=":2: found"):
        read_yandex(path, malformed="error")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_files_are_read(rng, write, compress):
    sessions = messy_sessions(rng)
    log = read_tsv(write(compress(as_tsv(sessions).encode())))
    assert list(log) == cleaned(sessions)


@pytest.mark.parametrize(("stream", "as_text"), [(stream_tsv, as_tsv), (stream_jsonl, as_jsonl)], ids=["tsv", "jsonl"])
@pytest.mark.parametrize("chunk", [1, 40, 10_000])
def test_several_files_are_one_log_in_parts_of_any_size(rng, write, blocks, stream, as_text, chunk):
    sessions = messy_sessions(rng)
    paths = [write(as_text(sessions[:100]), "a"), write(as_text(sessions[100:]), "b")]
    whole = ClickLog.from_sessions(sessions)
    assert list(ClickLog.gather(stream(paths, chunk=chunk))) == list(whole)
    pairs, expected = preference_pairs(stream(paths, chunk=chunk)), preference_pairs(whole)
    for name in ("query", "winner", "loser", "weight"):
        assert np.array_equal(getattr(pairs, name), getattr(expected, name)), name
    counts = click_counts(stream(paths, chunk=chunk))
    assert (counts.impressions != whole.counts().impressions).nnz == 0


def test_the_parts_of_a_stream_are_bounded_by_the_chunk_size(write):
    path = write(as_tsv([(n % 5, ["a", "b", "c"], [n % 3]) for n in range(20_000)]))
    stream = stream_tsv(path, chunk=1000)
    sizes = [len(part) for part in stream]
    assert sum(sizes) == 20_000
    assert max(sizes) < 1000 + 2**18 // len("0\ta b c\t0\n")
    assert len(preference_pairs(stream_tsv(path, chunk=1000))) == 15


@pytest.mark.parametrize("read", [read_tsv, read_jsonl, read_yandex])
def test_a_file_without_sessions_is_rejected(read, write):
    with pytest.raises(ValueError, match=r"log.txt has no sessions that show a url; expected at least one\.$"):
        read(write(""))
    with pytest.raises(ValueError, match=r"expected at least one\. First malformed entry: .*log.txt:1: found"):
        read(write("<html>\n"))


@pytest.mark.parametrize("read", [read_tsv, read_jsonl, read_yandex])
def test_invalid_arguments_are_rejected_before_reading(read, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.txt is not a file"):
        read(tmp_path / "missing.txt")
    with pytest.raises(ValueError, match="expected a path or a list of paths"):
        read(7)
    with pytest.raises(ValueError, match="paths is empty"):
        read([])
    with pytest.raises(ValueError, match=r"paths\[1\]=3 is not valid: expected a path"):
        read([__file__, 3])
    with pytest.raises(ValueError, match="malformed='ignore' is not known"):
        read(__file__, malformed="ignore")


def test_binary_files_are_rejected(write):
    with pytest.raises(ValueError, match=":1: found a zero byte"):
        read_tsv(write(b"q\ta\0b\t1\n"))


def test_progress_is_shown_only_if_verbose(write, capsys):
    path = write("q\ta b\t1\n")
    read_tsv(path)
    assert capsys.readouterr() == ("", "")
    read_tsv(path, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("log.txt: read\n")


# --- frames -----------------------------------------------------------------------------------------------------------


def as_rows(sessions):
    rows = []
    for number, (query, urls, clicks) in enumerate(sessions):
        for place, url in enumerate(urls):
            when = clicks.index(place) if place in clicks else np.nan
            rows.append((number, query, url, place + 1, place in clicks, when))
    return pd.DataFrame(rows, columns=["session", "query", "url", "position", "clicked", "when"])


@pytest.mark.parametrize("kind", [int, str])
def test_frames_round_trip(rng, kind):
    sessions = [(kind(q), list(map(kind, urls)), clicks) for q, urls, clicks in cleaned(messy_sessions(rng))]
    frame = as_rows(sessions)
    assert list(read_frame(frame, time="when")) == sessions
    in_order = [(query, urls, sorted(clicks)) for query, urls, clicks in sessions]
    assert list(read_frame(frame)) == in_order
    assert list(read_frame(frame.astype({"clicked": int, "position": float}))) == in_order
    shuffled = frame.sample(frac=1, random_state=0)
    assert sorted(read_frame(shuffled), key=repr) == sorted(in_order, key=repr)


def test_a_session_with_two_queries_gives_two_lists():
    frame = as_rows([("a", [1, 2], [0]), ("b", [1, 3], [1])]).assign(session=7)
    assert list(read_frame(frame)) == [("a", [1, 2], [0]), ("b", [1, 3], [1])]


def test_columns_may_have_other_names_and_frames_may_be_polars():
    frame = as_rows([("a", [1, 2], [0])]).rename(columns={"url": "document", "clicked": "hit"})
    assert list(read_frame(frame, url="document", clicked="hit")) == [("a", [1, 2], [0])]
    columns = {"session": [1, 1], "query": ["a", "a"], "url": ["x", "y"], "position": [1, 0], "clicked": [True, False]}
    assert list(read_frame(polars.DataFrame(columns))) == [("a", ["y", "x"], [1])]


def test_repeated_urls_in_a_frame_are_dropped_and_counted():
    frame = as_rows([("a", [1, 2, 1], [2])])
    log = read_frame(frame)
    assert list(log) == [("a", [1, 2], [0])]
    assert log.report.repeated_urls == 1


@pytest.mark.parametrize("column", ["session", "query", "url", "position", "clicked"])
def test_incomplete_rows_are_skipped_and_reported(column):
    frame = as_rows([("a", [1, 2, 3], [0])]).astype(object)
    frame.loc[1, column] = None
    with pytest.warns(StructRankWarning, match=f"row 1: found no {column}, expected one"):
        log = read_frame(frame)
    assert list(log) == [("a", [1, 3], [0])]
    with pytest.raises(ValueError, match=f"frame, row 1: found no {column}"):
        read_frame(frame, malformed="error")


def test_invalid_frames_raise():
    frame = as_rows([("a", [1, 2], [0])])
    with pytest.raises(ValueError, match=r"frame has no column 'site'; it has 'session', .*Name the column with url="):
        read_frame(frame, url="site")
    with pytest.raises(ValueError, match="frame has 2 columns 'url'"):
        read_frame(pd.concat([frame, frame[["url"]]], axis=1))
    with pytest.raises(ValueError, match="frame is a list; expected a data frame"):
        read_frame([1, 2])
    with pytest.raises(ValueError, match="position has 'first' at row 0; expected numbers"):
        read_frame(frame.assign(position=["first", "second"]))
    with pytest.raises(ValueError, match=r"column 'url' contains .* at row 0; an id must be hashable"):
        read_frame(frame.assign(url=[["x"], ["y"]]))
    with pytest.raises(ValueError, match="frame has no sessions"):
        read_frame(frame[:0])


# --- inputs made to be slow -------------------------------------------------------------------------------------------


def test_the_slots_of_ids_are_random_and_their_numbers_are_not():
    text = np.frombuffer("".join(f"url{n}\t{n} {n * 2**40}\n" for n in range(500)).encode(), dtype=np.uint8)
    seen = []
    for _ in range(2):
        queries, urls = TextIds(), TextIds()
        lines = kernels.Lines(*(np.empty(text.size, _TYPES[name]) for name in kernels.Lines._fields))
        n, n_shown, *_ = kernels.read_tsv(text, text.size, queries.reserve(text.size), urls.reserve(text.size), lines)
        tables = queries.reserve(0), urls.reserve(0)
        seen.append((*(table.slots for table in tables), lines.query[:n].copy(), lines.shown[:n_shown].copy()))
    for first, second in list(zip(*seen, strict=True))[:2]:
        assert not np.array_equal(first, second)
    for first, second in list(zip(*seen, strict=True))[2:]:
        assert np.array_equal(first, second)
    # Half of the slots are free, so that long runs of taken slots have a vanishing probability.
    for slots in seen[0][:2]:
        taken = "".join("01"[int(slot >= 0)] for slot in slots)
        assert max(map(len, taken.split("0"))) < 50


def attached(queries, clicks):
    """Assign clicks to queries as the format describes: the latest query up to the click that showed the url."""
    found = [[] for _ in queries]
    for time, url in sorted(clicks, key=lambda click: click[0]):
        able = [(start, number) for number, (start, urls) in enumerate(queries) if start <= time and url in urls]
        if able:
            number = max(able)[1]
            found[number].append(queries[number][1].index(url))
    return found


@pytest.mark.parametrize("n_queries", [3, 150])
def test_clicks_of_short_and_long_sessions_find_the_latest_query(rng, write, n_queries):
    for _ in range(5):
        times = rng.integers(0, 40, n_queries).tolist()
        queries = [(time, rng.integers(0, 30, rng.integers(1, 6)).tolist()) for time in times]
        clicks = list(zip(rng.integers(0, 45, n_queries).tolist(), rng.integers(0, 40, n_queries).tolist(), strict=True))
        lines = [f"7\t{time}\tQ\t{n}\t0\t" + "\t".join(map(str, urls)) for n, (time, urls) in enumerate(queries)]
        lines += [f"7\t{time}\tC\t{url}" for time, url in clicks]
        log = read_yandex(write("\n".join(rng.permutation(lines).tolist()) + "\n"))
        # The lines of the file are in another order, so the queries are compared in the order in which they were read.
        order = [query for query, _, _ in log]
        expected = attached([queries[n] for n in order], clicks)
        for (_, shown, found), places, n in zip(log, expected, order, strict=True):
            first = [shown.index(queries[n][1][place]) for place in places]
            kept = [place for i, place in enumerate(first) if place not in first[i + 1 :]]
            assert sorted(found) == sorted(kept)
