"""Tests of click logs: cleaning as described in LogReport, ids, streams in parts, subsets."""

import warnings

import numpy as np
import pandas as pd
import pytest

from structrank import StructRankWarning
from structrank.clicks.baselines import ClickThroughRate
from structrank.clicks.counts import ClickCounter
from structrank.clicks.ids import GrowingIds, Ids, as_id_array, dense_pairs
from structrank.clicks.log import ClickLog, stream_sessions
from structrank.clicks.report import LogReport
from structrank.clicks.stream import click_counts


def messy_sessions(rng, n=300, n_queries=12, n_urls=9):
    """Return sessions with empty lists, repeated urls, repeated clicks and clicks outside the list."""
    sessions = []
    for _ in range(n):
        size = int(rng.integers(0, 7))
        clicks = rng.integers(-1, size + 2, rng.integers(0, 5)).tolist()
        sessions.append((int(rng.integers(n_queries)), rng.integers(0, n_urls, size).tolist(), clicks))
    return sessions


def cleaned(sessions):
    """Clean sessions in plain Python; return the kept sessions and the counts."""
    kept, counts = [], dict.fromkeys(("empty", "repeated_urls", "repeated_clicks", "not_shown", "without_clicks"), 0)
    for query, urls, clicks in sessions:
        hits = [urls[click] for click in clicks if 0 <= click < len(urls)]
        counts["not_shown"] += len(clicks) - len(hits)
        if not urls:
            counts["empty"] += 1
            continue
        distinct = list(dict.fromkeys(urls))
        last = list(dict.fromkeys(reversed(hits)))[::-1]
        counts["repeated_urls"] += len(urls) - len(distinct)
        counts["repeated_clicks"] += len(hits) - len(last)
        counts["without_clicks"] += not last
        kept.append((query, distinct, [distinct.index(url) for url in last]))
    return kept, counts


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_messy_sessions_are_cleaned_as_the_report_states(rng):
    sessions = messy_sessions(rng)
    kept, counts = cleaned(sessions)
    log = ClickLog.from_sessions(sessions)
    assert list(log) == kept
    assert len(log) == len(kept)
    assert log.report == LogReport(
        sessions=len(kept),
        shown=sum(len(urls) for _, urls, _ in kept),
        clicks=sum(len(clicks) for _, _, clicks in kept),
        **counts,
    )
    assert all(counts.values()), "the sessions must exercise every count"


def test_the_last_of_repeated_clicks_is_kept():
    log = ClickLog.from_sessions([("q", ["a", "b", "c"], [0, 2, 0, 2, 1])])
    assert log[0][2] == [0, 2, 1]
    assert ClickLog.from_sessions([("q", ["a", "b", "a", "c"], [0, 3, 2])])[0] == ("q", ["a", "b", "c"], [2, 0])


def test_clicked_marks_the_clicked_urls(rng):
    log = ClickLog.from_sessions(messy_sessions(rng))
    clicked = np.split(log.clicked(), log.indptr[1:-1])
    assert [np.flatnonzero(its).tolist() for its in clicked] == [sorted(clicks) for _, _, clicks in log]


def test_the_report_is_printed_in_three_lines():
    log = ClickLog.from_sessions([("q", ["a", "b", "a"], [1, 1, 9]), ("q", [], []), ("r", ["a"], [])])
    assert str(log.report).splitlines() == [
        "2 sessions, 3 urls shown, 1 click",
        "kept: 1 session without clicks",
        "skipped: 1 session without urls, 1 repeated url, 1 repeated click, 1 click on a url that was not shown",
    ]


@pytest.mark.parametrize(
    ("session", "message"),
    [
        (("q", ["a"]), r"session 1: found \('q', \['a'\]\), expected \(query, urls, clicked positions\)"),
        (7, r"session 1: found 7, expected \(query, urls, clicked positions\)"),
        (("q", "a.org", [0]), r"session 1: found 'a.org', expected a list of the urls shown"),
        (("q", ["a"], 0), r"session 1: found 0, expected a list of clicked positions"),
        (("q", ["a"], None), r"session 1: found None, expected a list of clicked positions"),
        (("q", ["a"], [0.5]), r"session 1: found 0.5 as a clicked position, expected an integer from 0"),
        (("q", ["a"], [True]), r"session 1: found True as a clicked position"),
        (("q", ["a"], ["0"]), r"session 1: found '0' as a clicked position"),
        ((None, ["a"], [0]), r"session 1: found None as an id"),
        ((float("nan"), ["a"], [0]), r"session 1: found nan as an id"),
        (("q", ["a", pd.NA], [0]), r"session 1: found <NA> as an id"),
        (("q", ["a", ["b"]], [0]), r"session 1: found \['b'\] as an id, expected a number, a string or a tuple of these"),
    ],
    ids=str,
)
def test_malformed_sessions_are_skipped_and_reported(session, message):
    sessions = [("q", ["a", "b"], [0]), session, ("r", ["a", "b"], [1])]
    with pytest.warns(StructRankWarning, match=message):
        log = ClickLog.from_sessions(sessions)
    assert len(log) == 2
    assert log.report.malformed == 1
    assert "malformed entry" in str(log.report)
    assert len(log.queries) == 2, "a skipped session must not add ids"
    with pytest.raises(ValueError, match=message):
        ClickLog.from_sessions(sessions, malformed="error")


def test_the_report_keeps_five_examples_of_malformed_sessions():
    with pytest.warns(StructRankWarning, match="Skipped 100 malformed entries"):
        log = ClickLog.from_sessions([("q", ["a"], [0]), *[None] * 100])
    assert log.report.malformed == 100
    assert len(log.report.examples) == 5


@pytest.mark.parametrize("sessions", [[], [("q", [], [])], iter(())], ids=["none", "nothing shown", "empty iterator"])
def test_a_log_without_sessions_is_rejected(sessions):
    with pytest.raises(ValueError, match="sessions has no sessions that show a url; expected at least one"):
        ClickLog.from_sessions(sessions)


def test_a_log_of_malformed_sessions_is_rejected_with_the_reason():
    with pytest.raises(ValueError, match=r"at least one.*session 0: found 3, expected \(query"):
        ClickLog.from_sessions([3, 4])


@pytest.mark.parametrize("sessions", ["text", 5, None])
def test_sessions_must_be_iterable(sessions):
    with pytest.raises(ValueError, match="expected an iterable of"):
        ClickLog.from_sessions(sessions)


def test_positions_beyond_the_list_count_as_clicks_not_shown():
    log = ClickLog.from_sessions([("q", ["a"], [10**30, -(10**30), 0])])
    assert log[0] == ("q", ["a"], [0])
    assert log.report.not_shown == 2


def test_numpy_arrays_and_generators_are_accepted_as_sessions():
    sessions = ((np.int32(n), np.array([3, 4]), np.array([1])) for n in range(3))
    assert list(ClickLog.from_sessions(sessions)) == [(n, [3, 4], [1]) for n in range(3)]


# --- ids --------------------------------------------------------------------------------------------------------------


def test_ids_of_any_type_are_preserved():
    ids = ["text", 7, ("a", 1), 2.5, "7", b"bytes"]
    log = ClickLog.from_sessions([(query, ids, [0]) for query in ids])
    assert [query for query, _, _ in log] == ids
    assert log[0][1] == ids
    assert log.urls.index([*ids, "unknown", 8]).tolist() == [0, 1, 2, 3, 4, 5, -1, -1]


def test_integer_ids_are_numbered_in_increasing_order():
    log = ClickLog.from_sessions([(2, [30, -10], [0]), (0, [20], []), (1, [20], [])])
    assert log.urls.values.tolist() == [-10, 20, 30]
    assert log.query.tolist() == [2, 0, 1], "ids 0 .. n - 1 keep their numbers"
    assert list(log) == [(2, [30, -10], [0]), (0, [20], []), (1, [20], [])]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_index_finds_integers(dtype):
    ids = Ids(np.array([50, 10, 30]))
    assert ids.index(np.array([30, 50, 11, 10, 200], dtype=dtype)).tolist() == [2, 0, -1, 1, -1]
    assert ids.index(["50", 50, None, 2.5]).tolist() == [-1, 0, -1, -1]
    assert ids.index([]).tolist() == []
    assert Ids(np.empty(0, dtype=np.int64)).index([1, 2]).tolist() == [-1, -1]


def test_index_distinguishes_large_integers():
    ids = Ids(np.array([2**62 + 1, 2**62, -1]))
    for dtype in (np.int64, np.uint64):
        assert ids.index(np.array([2**62, 2**62 + 1, 2**62 + 2], dtype=dtype)).tolist() == [1, 0, -1]
    assert ids.index(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [-1]


def test_index_accepts_series():
    ids = Ids(np.array(["a", "b"], dtype=object))
    assert ids.index(pd.Series(["b", "c"], index=[7, 3])).tolist() == [1, -1]
    assert ids.index(np.array(["b", "a"])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("text", "expected a sequence of ids"),
        (3, "expected a sequence of ids"),
        (np.zeros((2, 2)), "2 dimension"),
        ([1, ["x"]], r"contains \['x'\] at row 1; an id must be hashable"),
    ],
    ids=["text", "number", "table", "list"],
)
def test_invalid_ids_raise(values, message):
    with pytest.raises(ValueError, match=message):
        as_id_array(values, "urls")


def test_pairs_of_unequal_length_are_rejected():
    ids = Ids(np.arange(3))
    with pytest.raises(ValueError, match="urls has 1 entries but queries has 2 rows"):
        dense_pairs(ids, ids, [1, 2], [1])


def test_growing_ids_are_ordered_by_first_appearance_unless_they_are_integers():
    growing = GrowingIds()
    assert growing.add(["b", "a", "b"]) == [0, 1, 0]
    ids, places = growing.settle()
    assert ids.values.tolist() == ["b", "a"]
    assert places is None
    growing.add([2**70])
    assert growing.settle()[0].values.tolist() == ["b", "a", 2**70]


# --- parts ------------------------------------------------------------------------------------------------------------


def same_counts(one, other):
    assert one.queries.values.tolist() == other.queries.values.tolist()
    assert one.urls.values.tolist() == other.urls.values.tolist()
    for name in ("clicks", "impressions", "positions"):
        assert np.array_equal(getattr(one, name).toarray(), getattr(other, name).toarray()), name


def test_counts_equal_counting_by_hand(rng):
    log = ClickLog.from_sessions(messy_sessions(rng))
    shape = (len(log.queries), len(log.urls))
    clicks, impressions, positions = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for query, urls, clicked in log:
        (row,) = log.queries.index([query])
        for place, column in enumerate(log.urls.index(urls)):
            impressions[row, column] += 1
            positions[row, column] += place + 1
            clicks[row, column] += place in clicked
    counts = log.counts()
    assert np.array_equal(counts.clicks.toarray(), clicks)
    assert np.array_equal(counts.impressions.toarray(), impressions)
    assert np.array_equal(counts.positions.toarray(), positions)
    assert counts.clicks.nnz == (clicks > 0).sum()
    assert click_counts(counts) is counts


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("name", [int, str])
def test_a_stream_is_counted_and_gathered_like_a_log(rng, chunk, name):
    sessions = [(name(q), [name(u) for u in urls], clicks) for q, urls, clicks in messy_sessions(rng)]
    whole = ClickLog.from_sessions(sessions)
    gathered = ClickLog.gather(stream_sessions(sessions, chunk=chunk))
    assert list(gathered) == list(whole)
    assert gathered.report == whole.report
    same_counts(click_counts(stream_sessions(sessions, chunk=chunk)), whole.counts())
    same_counts(click_counts(sessions), whole.counts())


def test_partial_sums_give_the_same_counts(rng, monkeypatch):
    sessions = messy_sessions(rng)
    whole = click_counts(sessions)
    monkeypatch.setattr("structrank.clicks.counts._MIN_BUFFERED", 10)
    monkeypatch.setattr("structrank.clicks.counts._SESSIONS_AT_ONCE", 7)
    same_counts(click_counts(ClickLog.from_sessions(sessions)), whole)
    same_counts(click_counts(stream_sessions(sessions, chunk=20)), whole)


def test_a_stream_yields_its_parts_and_has_a_report(rng):
    sessions = messy_sessions(rng, n=50)
    part = next(iter(stream_sessions(sessions, chunk=8)))
    assert part.queries.values[part.queries.index([part[0][0], "unknown"])[0]] == part[0][0]
    assert part.queries.index(["unknown"]).tolist() == [-1]
    stream = stream_sessions(sessions, chunk=8)
    assert [session for part in stream for session in part] == cleaned(sessions)[0]
    assert stream.report == ClickLog.from_sessions(sessions).report


def test_a_stream_is_read_once():
    stream = stream_sessions([("q", ["a"], [0])])
    click_counts(stream)
    with pytest.raises(ValueError, match="the stream of sessions is exhausted; create a new one"):
        click_counts(stream)


def test_a_stream_warns_once_when_it_ends():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        click_counts(stream_sessions([None, ("q", ["a"], [0]), None], chunk=1))
    assert [warning.category for warning in caught] == [StructRankWarning]


def test_logs_that_do_not_share_ids_cannot_be_combined():
    one, other = (ClickLog.from_sessions([("q", [url], [0])]) for url in "ab")
    with pytest.raises(ValueError, match="do not share their ids"):
        click_counts([one, other])
    with pytest.raises(ValueError, match="do not share their ids"):
        ClickLog.gather([one, other])
    with pytest.raises(ValueError, match="has no sessions"):
        ClickCounter().finish()
    with pytest.raises(ValueError, match="expected a ClickLog"):
        click_counts("log.tsv")
    with pytest.raises(ValueError, match="expected a ClickLog"):
        ClickCounter().add([("q", ["a"], [0])])


@pytest.mark.parametrize("chunk", [0, 2.5, "many"])
def test_an_invalid_chunk_is_rejected(chunk):
    with pytest.raises(ValueError, match=r"chunk=.* is not valid"):
        stream_sessions([], chunk=chunk)


# --- subsets ----------------------------------------------------------------------------------------------------------


def test_last_clicks_keeps_the_last_click_in_time_of_each_session():
    shown = ["a", "b", "c"]
    log = ClickLog.from_sessions([("q", shown, [2, 0]), ("q", shown, []), ("r", ["b", "c"], [1]), ("q", shown, [0, 1])])
    last = log.last_clicks()
    assert list(last) == [("q", shown, [0]), ("q", shown, []), ("r", ["b", "c"], [1]), ("q", shown, [1])]
    assert (last.report.sessions, last.report.clicks, last.report.without_clicks) == (4, 3, 1)
    assert len(log.clicks) == 5


def test_a_subset_holds_the_chosen_sessions_over_the_same_ids(rng):
    log = ClickLog.from_sessions(messy_sessions(rng))
    mask = rng.random(len(log)) < 0.3
    part = log.subset(mask)
    assert list(part) == [session for session, chosen in zip(log, mask, strict=True) if chosen]
    assert part.queries is log.queries
    assert part.report == ClickLog.from_sessions(list(part)).report


def test_a_split_puts_every_session_in_one_part():
    sessions = [(n, ["a", "b"], [n % 2]) for n in range(100)]
    log = ClickLog.from_sessions(sessions)
    train, test = log.split(test_size=0.3, random_state=5)
    assert (len(train), len(test)) == (70, 30)
    assert sorted([*train, *test]) == sessions
    assert list(log.split(0.3, 5)[1]) == list(test)
    assert list(log.split(0.3, 6)[1]) != list(test)


@pytest.mark.parametrize("size", [0, 1, -0.5, 0.001, "half", float("nan")])
def test_a_split_with_an_empty_part_is_rejected(size):
    log = ClickLog.from_sessions([(n, ["a"], []) for n in range(10)])
    with pytest.raises(ValueError, match="test_size="):
        log.split(size)


def test_masks_are_checked():
    log = ClickLog.from_sessions([(n, ["a"], []) for n in range(3)])
    with pytest.raises(ValueError, match="mask has 2 entries"):
        log.subset([True, False])
    with pytest.raises(ValueError, match="expected bool"):
        log.subset([0, 1, 2])
    with pytest.raises(IndexError):
        log[3]
    assert log[-1] == (2, ["a"], [])


@pytest.mark.parametrize(
    ("queries", "urls", "message"),
    [
        (["1"], [10], r"queries are texts, such as '1'; those of the log are numbers, such as 1\..*int\(value\)"),
        ([1, 2], np.array(["10", "11"]), r"urls are texts, such as '10'; those of the log are numbers, such as 10\."),
        ([("a", 1)], [10], r"queries are tuple objects, such as \('a', 1\)"),
    ],
)
def test_ids_of_another_type_are_rejected(queries, urls, message):
    model = ClickThroughRate().fit(ClickLog.from_sessions([(1, [10, 11], [0]), (2, [10, 12], [1])]))
    with pytest.raises(ValueError, match=message):
        model.predict(queries, urls)


def test_unknown_ids_of_the_same_type_are_accepted():
    numbers = ClickThroughRate().fit(ClickLog.from_sessions([(1, [10, 11], [0])]))
    assert np.isnan(numbers.predict([1, 3], [12, 10])).all()
    assert numbers.predict(np.array([1.0]), np.array([10], dtype=object)).tolist() == [1.0]
    assert numbers.predict([], []).shape == (0,)
    mixed = ClickThroughRate().fit(ClickLog.from_sessions([(1, ["a", 7], [0])]))
    assert np.isnan(mixed.predict([1, 1], [7, "b"])).tolist() == [False, True]
