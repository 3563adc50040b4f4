"""Preference pairs from clicks: a clicked url is preferred to a skipped one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from structrank._support import checks
from structrank._support.typing import ArrayLike
from structrank.clicks import _log_kernels as kernels
from structrank.clicks.counts import LogCounter
from structrank.clicks.ids import Ids, settled
from structrank.clicks.log import ClickLog, as_mask, random_mask
from structrank.clicks.stream import as_stream

RULES = {
    "clicked>skipped-above": kernels.CLICKED_SKIPPED_ABOVE,
    "last-click>skipped-above": kernels.LAST_CLICK_SKIPPED_ABOVE,
    "clicked>skipped-next": kernels.CLICKED_SKIPPED_NEXT,
    "clicked>earlier-clicked": kernels.CLICKED_EARLIER_CLICKED,
}

_MOST_PAIRS = 10**8  # of a session; they take 3 GB


@dataclass(frozen=True, eq=False, repr=False)
class Preferences:
    """Pairs of urls, one of which is preferred to the other for a query.

    Attributes
    ----------
    queries, urls : Ids
        Ids of the dense integers.
    query, winner, loser : (n_pairs,) arrays of int32
        For ``query[i]``, ``winner[i]`` is preferred to ``loser[i]``. The triples are distinct and sorted.
    weight : (n_pairs,) array of float64
        Number of sessions that state the preference.

    Examples
    --------
    >>> pairs = preference_pairs([("news", ["a.org", "b.org"], [1]), ("news", ["a.org", "b.org"], [1])])
    >>> pairs
    Preferences(1 pairs, 1 queries, 2 urls)
    >>> pairs.urls.values[pairs.winner], pairs.weight
    (array(['b.org'], dtype=object), array([2.]))
    """

    queries: Ids
    urls: Ids
    query: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return self.query.shape[0]

    def __repr__(self):
        return f"Preferences({len(self)} pairs, {len(self.queries)} queries, {len(self.urls)} urls)"

    def subset(self, mask: ArrayLike) -> Preferences:
        """Return some of the pairs, over the same ids.

        Parameters
        ----------
        mask : array-like of shape (n_pairs,), of bool

        Examples
        --------
        >>> pairs = preference_pairs([("q", ["a", "b", "c"], [2])])
        >>> pairs.subset(pairs.loser == 1).loser
        array([1], dtype=int32)
        """
        taken = as_mask(mask, len(self), "pairs")
        arrays = (self.query, self.winner, self.loser, self.weight)
        return Preferences(self.queries, self.urls, *(array[taken] for array in arrays))

    def split(self, test_size: float = 0.25, random_state: int = 0) -> tuple[Preferences, Preferences]:
        """Split the pairs at random into training and test pairs, as in Cao, Shen, Wang and Yang (AAAI 2010).

        A triple goes to one side with its full weight. To hold out whole sessions, split the log: `ClickLog.split`.

        Parameters
        ----------
        test_size : float, default 0.25
            Fraction of the pairs in the test set, between 0 and 1.
        random_state : int, default 0
            Seed. The split depends on the dense integers of the ids and so, unless ids are integers, on the order of the log.

        Returns
        -------
        train, test : Preferences
            Pairs over the same ids.

        Examples
        --------
        >>> pairs = preference_pairs([("q", ["a", "b", "c", "d", "e"], [4])])
        >>> [len(part) for part in pairs.split()]
        [3, 1]
        """
        held_out = random_mask(len(self), test_size, random_state, "pairs")
        return self.subset(~held_out), self.subset(held_out)


class PairCounter(LogCounter):
    """Counter of the preferences in a log that is read in parts.

    Parameters
    ----------
    rule : str, default "clicked>skipped-above"
        See `preference_pairs`.

    Examples
    --------
    >>> from structrank.clicks import stream_sessions
    >>> counter = PairCounter("clicked>skipped-next")
    >>> for part in stream_sessions([("q", ["a", "b"], [0]), ("q", ["b", "a"], [0])], chunk=1):
    ...     counter.add(part)
    >>> len(counter.finish())
    2
    """

    _n_columns = 1

    def __init__(self, rule: str = "clicked>skipped-above"):
        super().__init__()
        self._rule = RULES[checks.check_choice("rule", rule, tuple(RULES))]

    def _entries(self, part):
        if self._rule in (kernels.CLICKED_SKIPPED_ABOVE, kernels.CLICKED_EARLIER_CLICKED):
            _check_sizes(part)
        query, key = kernels.extract_pairs(self._rule, part.query, part.indptr, part.shown, part.click_indptr, part.clicks)
        return query, key, np.ones((query.shape[0], 1))

    def finish(self) -> Preferences:
        """Return the preferences of all parts."""
        numbers, key, weight = self._finish()
        queries, query = settled(self._first.queries, numbers)
        better, worse = (key >> 32).astype(np.int32), (key & (2**32 - 1)).astype(np.int32)
        (urls, winner), (_, loser) = settled(self._first.urls, better), settled(self._first.urls, worse)
        columns = [query, winner, loser, weight[:, 0]]
        if query is not numbers or winner is not better:  # renumbering has changed the order
            order = np.lexsort((loser, winner, query))
            columns = [column[order] for column in columns]
        return Preferences(queries, urls, *columns)


def _check_sizes(part):
    """Raise if a session states so many preferences that they would not fit into memory."""
    session = np.repeat(np.arange(len(part)), np.diff(part.click_indptr))
    most = np.bincount(session, weights=part.clicks, minlength=1)  # urls above the clicks
    if most.max() > _MOST_PAIRS:
        long = int(most.argmax())
        query, shown, clicks = part[long]
        raise ValueError(
            f"a session of query {query!r} shows {len(shown):,} urls and has {len(clicks):,} clicks, which state up to "
            f"{most[long]:,.0f} preferences; at most {_MOST_PAIRS:,} are supported. Use rule='clicked>skipped-next' or "
            "'last-click>skipped-above', or leave the session out."
        )


def preference_pairs(log: ClickLog | Iterable, rule: str = "clicked>skipped-above") -> Preferences:
    """Extract preferences from clicks, and count the sessions that state each preference.

    Users read from top to bottom, so a url above a click was seen and skipped. Unlike the click itself, this judgement is not
    biased towards high ranks (Joachims 2002; Joachims et al. 2005 compare the rules).

    Parameters
    ----------
    log : ClickLog, stream of its parts, or sessions
        Sessions as for `ClickLog.from_sessions`. A stream is read once; memory grows with the number of distinct pairs, not
        with the length of the log.
    rule : str, default "clicked>skipped-above"
        - "clicked>skipped-above": a clicked url is preferred to each url above it that was not clicked (Joachims 2002);
        - "last-click>skipped-above": the same, but only for the last click in time, which ended the search;
        - "clicked>skipped-next": a clicked url is preferred to the url directly below it, if that was not clicked;
        - "clicked>earlier-clicked": a clicked url is preferred to each url that was clicked before it.

    References
    ----------
    T. Joachims, Evaluating retrieval performance using clickthrough data, 2002. T. Joachims, L. Granka, B. Pan, H. Hembrooke
    and G. Gay, Accurately interpreting clickthrough data as implicit feedback, SIGIR 2005.

    Examples
    --------
    The four queries of Figure 2 of Cao, Shen, Wang and Yang (AAAI 2010), each of which shows urls 1, 2, 3:

    >>> sessions = [("A", [1, 2, 3], [0, 2]), ("B", [1, 2, 3], [0, 1]), ("C", [1, 2, 3], [2]), ("D", [1, 2, 3], [1, 2])]
    >>> pairs = preference_pairs(sessions)
    >>> for query, winner, loser in zip(pairs.query, pairs.winner, pairs.loser):
    ...     print(f"{pairs.queries.values[query]}: {pairs.urls.values[winner]} > {pairs.urls.values[loser]}")
    A: 3 > 2
    C: 3 > 1
    C: 3 > 2
    D: 2 > 1
    D: 3 > 1
    """
    counter = PairCounter(rule)
    for part in as_stream(log):
        counter.add(part)
    return counter.finish()
