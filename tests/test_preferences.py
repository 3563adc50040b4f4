"""Tests of the rules against plain Python and the example of the paper, and of splits."""

from collections import Counter

import numpy as np
import pytest

from structrank.clicks.log import ClickLog, stream_sessions
from structrank.clicks.preferences import RULES, PairCounter, preference_pairs

URLS = ["url 1", "url 2", "url 3"]
# Figure 2 of Cao, Shen, Wang and Yang (AAAI 2010): clicks on the list url 1, url 2, url 3.
FIGURE_2 = [("A", URLS, [0, 2]), ("B", URLS, [0, 1]), ("C", URLS, [2]), ("D", URLS, [1, 2])]


def random_sessions(rng, n=200):
    sessions = []
    for _ in range(n):
        urls = rng.permutation(8)[: rng.integers(1, 7)].tolist()
        clicks = rng.permutation(len(urls))[: rng.integers(0, len(urls) + 1)].tolist()
        sessions.append((int(rng.integers(10)), urls, clicks))
    return sessions


def by_hand(sessions, rule):
    """Count (query, winner, loser) by the definition of each rule."""
    counts = Counter()
    for query, urls, clicks in sessions:
        skipped = [place for place in range(len(urls)) if place not in clicks]
        if rule == "clicked>skipped-above":
            pairs = [(w, s) for w in clicks for s in skipped if s < w]
        elif rule == "last-click>skipped-above":
            pairs = [(w, s) for w in clicks[-1:] for s in skipped if s < w]
        elif rule == "clicked>skipped-next":
            pairs = [(w, w + 1) for w in clicks if w + 1 in skipped]
        else:
            pairs = [(later, earlier) for n, later in enumerate(clicks) for earlier in clicks[:n]]
        counts.update((query, urls[winner], urls[loser]) for winner, loser in pairs)
    return counts


def as_counts(pairs):
    """Return preferences as {(query, winner, loser): weight}, with the ids of the log."""
    queries, urls = pairs.queries.values, pairs.urls.values
    triples = zip(queries[pairs.query].tolist(), urls[pairs.winner].tolist(), urls[pairs.loser].tolist(), strict=True)
    return dict(zip(triples, pairs.weight.tolist(), strict=True))


# --- rules ------------------------------------------------------------------------------------------------------------


def test_pairs_of_the_papers_example():
    assert as_counts(preference_pairs(FIGURE_2)) == {
        ("A", "url 3", "url 2"): 1,
        ("C", "url 3", "url 2"): 1,
        ("C", "url 3", "url 1"): 1,
        ("D", "url 3", "url 1"): 1,
        ("D", "url 2", "url 1"): 1,
    }


def test_pairs_of_the_other_rules_on_the_papers_example():
    assert set(as_counts(preference_pairs(FIGURE_2, "last-click>skipped-above"))) == {
        ("A", "url 3", "url 2"),
        ("C", "url 3", "url 2"),
        ("C", "url 3", "url 1"),
        ("D", "url 3", "url 1"),
    }
    assert set(as_counts(preference_pairs(FIGURE_2, "clicked>skipped-next"))) == {
        ("A", "url 1", "url 2"),
        ("B", "url 2", "url 3"),
    }
    assert set(as_counts(preference_pairs(FIGURE_2, "clicked>earlier-clicked"))) == {
        ("A", "url 3", "url 1"),
        ("B", "url 2", "url 1"),
        ("D", "url 3", "url 2"),
    }


@pytest.mark.parametrize("rule", RULES)
def test_rules_equal_their_definition(rule, rng):
    sessions = random_sessions(rng)
    counts = by_hand(sessions, rule)
    pairs = preference_pairs(ClickLog.from_sessions(sessions), rule)
    assert as_counts(pairs) == counts
    assert max(counts.values()) > 1, "the sessions must repeat some pairs"


def test_the_order_of_clicks_matters_for_rules_on_the_order_only():
    one, other = [("q", URLS, [0, 2])], [("q", URLS, [2, 0])]
    for rule in RULES:
        same = as_counts(preference_pairs(one, rule)) == as_counts(preference_pairs(other, rule))
        assert same == (rule in ("clicked>skipped-above", "clicked>skipped-next")), rule


def test_pairs_are_distinct_and_sorted(rng):
    pairs = preference_pairs(random_sessions(rng))
    triples = list(zip(pairs.query.tolist(), pairs.winner.tolist(), pairs.loser.tolist(), strict=True))
    assert triples == sorted(set(triples))
    assert (pairs.query.dtype, pairs.winner.dtype, pairs.weight.dtype) == (np.int32, np.int32, np.float64)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", [int, str])
def test_a_stream_gives_the_same_pairs(rule, name, rng, monkeypatch):
    sessions = [(name(q), list(map(name, urls)), clicks) for q, urls, clicks in random_sessions(rng)]
    whole = preference_pairs(ClickLog.from_sessions(sessions), rule)
    monkeypatch.setattr("structrank.clicks.counts._MIN_BUFFERED", 20)
    monkeypatch.setattr("structrank.clicks.counts._SESSIONS_AT_ONCE", 9)
    for pairs in (preference_pairs(stream_sessions(sessions, chunk=30), rule), preference_pairs(sessions, rule)):
        assert pairs.queries.values.tolist() == whole.queries.values.tolist()
        assert pairs.urls.values.tolist() == whole.urls.values.tolist()
        for column in ("query", "winner", "loser", "weight"):
            assert np.array_equal(getattr(pairs, column), getattr(whole, column)), column


def test_a_log_without_preferences_gives_no_pairs():
    pairs = preference_pairs([("q", URLS, [0]), ("q", URLS, [])])
    assert len(pairs) == 0
    assert (len(pairs.queries), len(pairs.urls)) == (1, 3)


def test_unknown_rules_and_empty_logs_are_rejected():
    with pytest.raises(ValueError, match=r"rule='clicked' is not known; choose one of: 'clicked>skipped-above', "):
        preference_pairs(FIGURE_2, "clicked")
    with pytest.raises(ValueError, match="has no sessions"):
        preference_pairs([])
    with pytest.raises(ValueError, match="has no sessions"):
        PairCounter().finish()


def test_pairs_of_held_out_sessions_share_their_ids(rng):
    train, test = ClickLog.from_sessions(random_sessions(rng)).split()
    assert preference_pairs(train).queries is preference_pairs(test).queries
    whole = Counter(by_hand(list(train), "clicked>skipped-above")) + by_hand(list(test), "clicked>skipped-above")
    both = Counter(as_counts(preference_pairs(train))) + Counter(as_counts(preference_pairs(test)))
    assert both == whole


# --- splits -----------------------------------------------------------------------------------------------------------


def test_a_split_puts_every_pair_in_one_part(rng):
    pairs = preference_pairs(random_sessions(rng))
    train, test = pairs.split(test_size=0.2, random_state=3)
    assert len(test) == round(0.2 * len(pairs))
    assert {**as_counts(train), **as_counts(test)} == as_counts(pairs)
    assert len(train) + len(test) == len(pairs)
    again = pairs.split(0.2, 3)[1]
    assert as_counts(again) == as_counts(test)
    assert as_counts(pairs.split(0.2, 4)[1]) != as_counts(test)


def test_subsets_and_splits_are_checked():
    pairs = preference_pairs(FIGURE_2)
    assert as_counts(pairs.subset(pairs.query == 0)) == {("A", "url 3", "url 2"): 1}
    with pytest.raises(ValueError, match="mask has 1 entries"):
        pairs.subset([True])
    with pytest.raises(ValueError, match=r"test_size=0.01 is not valid: one side of the split of 5 pairs would be empty"):
        pairs.split(0.01)
    with pytest.raises(ValueError, match="random_state=None is not valid"):
        pairs.split(random_state=None)
