"""Kernels for click logs: parse text, clean sessions, extract preferences, sum entries with equal keys."""

from typing import NamedTuple

import numpy as np

from structrank._support.compile import kernel

CLICKED_SKIPPED_ABOVE, LAST_CLICK_SKIPPED_ABOVE, CLICKED_SKIPPED_NEXT, CLICKED_EARLIER_CLICKED = range(4)


@kernel
def clean_sessions(query, indptr, shown, click_indptr, clicks, n_urls):
    """Remove repeated urls, repeated clicks, clicks on urls that were not shown, and sessions without urls.

    Returns the cleaned arrays, with the clicks of a session in order of the last click on each url, and the numbers of empty
    sessions, repeated urls, repeated clicks and clicks on urls that were not shown.
    """
    n_sessions = query.shape[0]
    out_query, out_shown = np.empty_like(query), np.empty_like(shown)
    out_indptr, out_click_indptr = np.zeros_like(indptr), np.zeros_like(click_indptr)
    out_clicks = np.empty(clicks.shape[0], dtype=np.int32)
    counts = np.zeros(4, dtype=np.int64)
    place_of_url = np.full(n_urls, -1, dtype=np.int64)  # belongs to this session if it is at least `first`
    longest = 0
    for s in range(n_sessions):
        longest = max(longest, indptr[s + 1] - indptr[s])
    moved_to = np.empty(longest, dtype=np.int64)
    clicked_in = np.full(longest, -1, dtype=np.int64)
    n, n_shown, n_clicks = 0, 0, 0
    for s in range(n_sessions):
        size = indptr[s + 1] - indptr[s]
        if size == 0:
            counts[0] += 1
            counts[3] += click_indptr[s + 1] - click_indptr[s]
            continue
        first = n_shown
        for i in range(size):
            url = shown[indptr[s] + i]
            if place_of_url[url] >= first:
                counts[1] += 1
            else:
                place_of_url[url] = n_shown
                out_shown[n_shown] = url
                n_shown += 1
            moved_to[i] = place_of_url[url] - first
        # Backwards, to keep the last of repeated clicks.
        stop, kept = click_indptr[s + 1], 0
        for c in range(stop - 1, click_indptr[s] - 1, -1):
            if clicks[c] < 0 or clicks[c] >= size:
                counts[3] += 1
                continue
            position = moved_to[clicks[c]]
            if clicked_in[position] == s:
                counts[2] += 1
            else:
                clicked_in[position] = s
                out_clicks[n_clicks + kept] = position
                kept += 1
        for i in range(kept // 2):
            a, b = n_clicks + i, n_clicks + kept - 1 - i
            out_clicks[a], out_clicks[b] = out_clicks[b], out_clicks[a]
        n_clicks += kept
        out_query[n] = query[s]
        n += 1
        out_indptr[n], out_click_indptr[n] = n_shown, n_clicks
    return (
        out_query[:n].copy(),
        out_indptr[: n + 1].copy(),
        out_shown[:n_shown].copy(),
        out_click_indptr[: n + 1].copy(),
        out_clicks[:n_clicks].copy(),
        counts,
    )


@kernel
def extract_pairs(rule, query, indptr, shown, click_indptr, clicks):
    """Return the preferences that a rule extracts, as queries and keys ``winner * 2 ** 32 + loser``."""
    n_pairs, longest = 0, 0
    for s in range(query.shape[0]):
        size, n_clicks = indptr[s + 1] - indptr[s], click_indptr[s + 1] - click_indptr[s]
        longest = max(longest, size)
        if rule == CLICKED_EARLIER_CLICKED:
            n_pairs += n_clicks * (n_clicks - 1) // 2
        elif rule == CLICKED_SKIPPED_NEXT:
            n_pairs += n_clicks
        else:
            for c in range(click_indptr[s], click_indptr[s + 1]):
                if rule == CLICKED_SKIPPED_ABOVE or c == click_indptr[s + 1] - 1:
                    n_pairs += clicks[c]
    pair_query, key = np.empty(n_pairs, dtype=np.int32), np.empty(n_pairs, dtype=np.int64)
    clicked = np.zeros(longest + 1, dtype=np.bool_)
    n = 0
    for s in range(query.shape[0]):
        start, size, its = indptr[s], indptr[s + 1] - indptr[s], clicks[click_indptr[s] : click_indptr[s + 1]]
        clicked[: size + 1] = False
        for position in its:
            clicked[position] = True
        before = n
        for c in range(its.shape[0]):
            winner = np.int64(shown[start + its[c]]) << 32
            if rule == CLICKED_EARLIER_CLICKED:
                for other in its[:c]:
                    key[n] = winner | np.int64(shown[start + other])
                    n += 1
            elif rule == CLICKED_SKIPPED_NEXT:
                below = its[c] + 1
                if below < size and not clicked[below]:
                    key[n] = winner | np.int64(shown[start + below])
                    n += 1
            elif rule == CLICKED_SKIPPED_ABOVE or c == its.shape[0] - 1:
                for above in range(its[c]):
                    if not clicked[above]:
                        key[n] = winner | np.int64(shown[start + above])
                        n += 1
        pair_query[before:n] = query[s]
    return pair_query[:n].copy(), key[:n].copy()


@kernel(inner=True)
def _starts(owner, n_owners):
    """Return where the entries of each owner start if they are sorted by owner; those of -1 do not count."""
    indptr = np.zeros(n_owners + 1, dtype=np.int64)
    for one in owner:
        if one >= 0:
            indptr[one + 1] += 1
    for one in range(n_owners):
        indptr[one + 1] += indptr[one]
    return indptr


@kernel
def sum_by_key(query, key, values, n_queries):
    """Sum the rows of `values` over entries of equal query and key; the result is sorted by query, then key."""
    indptr = _starts(query, n_queries)
    order, filled = np.empty(query.shape[0], dtype=np.int64), indptr[:-1].copy()
    for entry in range(query.shape[0]):
        order[filled[query[entry]]] = entry
        filled[query[entry]] += 1
    out_query, out_key, out_values = np.empty_like(query), np.empty_like(key), np.empty_like(values)
    n = 0
    for q in range(n_queries):
        entries = order[indptr[q] : indptr[q + 1]]
        first = n
        for entry in entries[np.argsort(key[entries], kind="mergesort")]:
            if n > first and out_key[n - 1] == key[entry]:
                for column in range(values.shape[1]):
                    out_values[n - 1, column] += values[entry, column]
            else:
                out_query[n], out_key[n] = q, key[entry]
                for column in range(values.shape[1]):
                    out_values[n, column] = values[entry, column]
                n += 1
    return out_query[:n].copy(), out_key[:n].copy(), out_values[:n].copy()


# --- text -------------------------------------------------------------------------------------------------------------

# Kinds of malformed lines.
NO_URLS, NO_QUERY, BAD_POSITION, TOO_MANY_FIELDS, BAD_TIME, BAD_ACTION, NO_CLICKED_URL, NO_REGION = range(8)

_TAB, _NEWLINE, _RETURN, _SPACE, _MINUS, _ZERO, _NINE, _QUERY_LINE, _CLICK_LINE = b"\t\n\r -09QC"
_LONGEST_INTEGER = 19  # digits of an int64
_IS_HASH = np.uint64(2**63)


class IdTable(NamedTuple):
    """Bidirectional map of texts and numbers: a hash table with linear probing.

    The hash is random, so that no file can be made whose ids share a slot; the numbers do not depend on it.
    """

    seed: tuple  # 4 uint64: random start of the hash of a text; random number and odd factor of the hash of a key; 64 - k
    slots: np.ndarray  # (2 ** k,) int32, numbers of texts, -1 if free; at least 2 max_ids slots
    keys: np.ndarray  # (max_ids,) uint64, the key of each text, see `_key`
    ends: np.ndarray  # (max_ids,) int64; text n is ``text[ends[n - 1]:ends[n]]``
    text: np.ndarray  # (max_bytes,) uint8
    count: np.ndarray  # (1,) int64, the number of texts


@kernel(inner=True)
def _key(text, start, stop, seed):
    """Return the value of an integer, which is unique, or the hash (FNV-1a) of another text, with the top bit set."""
    if 0 < stop - start <= _LONGEST_INTEGER and (text[start] != _ZERO or stop - start == 1):
        value, i = np.uint64(0), start
        while i < stop and _ZERO <= text[i] <= _NINE:
            value = np.uint64(10) * value + np.uint64(text[i] - _ZERO)
            i += 1
        if i == stop and value < _IS_HASH:
            return value
    value = seed[0]
    for i in range(start, stop):
        value = (value ^ np.uint64(text[i])) * np.uint64(1099511628211)
    return value | _IS_HASH


@kernel(inner=True)
def _first_slot(key, seed):
    # Multiply-shift hashing: two keys share one of m slots with a probability of at most 2 / m. The steps before it, which are
    # invertible, prevent that keys in an arithmetic progression cluster.
    key = (key ^ seed[1]) * np.uint64(0x9E3779B97F4A7C15)
    return ((key ^ (key >> np.uint64(32))) * seed[2]) >> seed[3]


@kernel
def fill_slots(seed, slots, keys, count):
    """Enter the first `count` keys into free slots."""
    for number in range(count):
        slot = _first_slot(keys[number], seed)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(slots.shape[0] - 1)
        slots[slot] = number


@kernel(inner=True)
def _is_text(table, number, text, start, stop):
    known = table.ends[number - 1] if number else 0
    if table.ends[number] - known != stop - start:
        return False
    for i in range(stop - start):  # noqa: SIM110 (compiled code has no generators)
        if table.text[known + i] != text[start + i]:
            return False
    return True


@kernel(inner=True)
def _number_of(table, text, start, stop):
    """Return the number of a text; a new text is added, for which the table must have capacity."""
    key, mask = _key(text, start, stop, table.seed), np.uint64(table.slots.shape[0] - 1)
    slot = _first_slot(key, table.seed)
    while table.slots[slot] >= 0:
        number = table.slots[slot]
        if table.keys[number] == key and (key < _IS_HASH or _is_text(table, number, text, start, stop)):
            return number
        slot = (slot + np.uint64(1)) & mask
    count = table.count[0]
    end = table.ends[count - 1] if count else 0
    for i in range(start, stop):
        table.text[end] = text[i]
        end += 1
    table.slots[slot], table.keys[count], table.ends[count] = count, key, end
    table.count[0] = count + 1
    return np.int32(count)


@kernel
def as_integers(ends, text, out):
    """Write the integers to `out`; return whether every text is an int64 without leading zeros."""
    start = 0
    for number in range(ends.shape[0]):
        stop = ends[number]
        valid, out[number] = _integer(text, start, stop)
        first = start + (text[start] == _MINUS)
        if not valid or (text[first] == _ZERO and stop - start > 1):
            return False
        start = stop
    return True


@kernel(inner=True)
def _skip_blanks(text, i, stop):
    while i < stop and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@kernel(inner=True)
def _token_end(text, i, stop):
    while i < stop and text[i] != _SPACE and text[i] != _TAB:
        i += 1
    return i


@kernel(inner=True)
def _find(text, i, stop, byte):
    while i < stop and text[i] != byte:
        i += 1
    return i


@kernel(inner=True)
def _line_end(text, newline, start):
    return newline - 1 if newline > start and text[newline - 1] == _RETURN else newline


@kernel(inner=True)
def _integer(text, start, stop):
    """Return (whether the text is an int64 other than the smallest, its value)."""
    first = start + 1 if text[start] == _MINUS else start
    value = np.int64(0)
    if first == stop or stop - first > _LONGEST_INTEGER:
        return False, value
    for i in range(first, stop):
        if text[i] < _ZERO or text[i] > _NINE:
            return False, value
        value = 10 * value + (np.int64(text[i]) - _ZERO)
    # 19 digits overflow to a negative value: they are below 2**64, so they cannot wrap around to 0.
    return value >= 0, -value if first > start else value


class Lines(NamedTuple):
    """Buffers for the contents of one block of text, int64 if not int32; the readers return how much is filled."""

    query: np.ndarray  # int32
    size: np.ndarray  # number of urls of each query line
    shown: np.ndarray  # int32, urls, line after line
    run: np.ndarray  # session of each query line, in the Yandex format
    time: np.ndarray
    clicks: np.ndarray  # positions, or clicked urls in the Yandex format
    n_clicks: np.ndarray  # of each line; not in the Yandex format
    click_run: np.ndarray  # session of each click, in the Yandex format
    click_time: np.ndarray
    wrong: np.ndarray  # kind of the error in each malformed line
    wrong_at: np.ndarray  # and its byte


@kernel(inner=True)
def _read_urls(text, start, stop, urls, shown):
    """Write the numbers of the urls in a part of a line; return how many there are."""
    n, i = 0, _skip_blanks(text, start, stop)
    while i < stop:
        end = _token_end(text, i, stop)
        shown[n] = _number_of(urls, text, i, end)
        n += 1
        i = _skip_blanks(text, end, stop)
    return n


@kernel
def read_tsv(text, size, queries, urls, lines):
    """Read lines ``query TAB urls TAB positions``; return how many sessions, urls, clicks and malformed lines `lines` holds."""
    n, n_shown, n_clicks, n_wrong = 0, 0, 0, 0
    start = 0
    while start < size:
        newline = _find(text, start, size, _NEWLINE)
        stop = _line_end(text, newline, start)
        if _skip_blanks(text, start, stop) == stop:
            start = newline + 1
            continue
        first_tab = _find(text, start, stop, _TAB)
        second_tab = _find(text, min(first_tab + 1, stop), stop, _TAB)
        third_tab = _find(text, min(second_tab + 1, stop), stop, _TAB)
        query, query_end = _skip_blanks(text, start, first_tab), first_tab
        while query_end > query and text[query_end - 1] == _SPACE:
            query_end -= 1
        problem, at = -1, start
        if query == query_end:
            problem = NO_QUERY
        elif first_tab == stop:
            problem = NO_URLS
        elif _skip_blanks(text, third_tab, stop) < stop:
            problem, at = TOO_MANY_FIELDS, min(third_tab + 1, stop - 1)
        clicks_before = n_clicks
        i = _skip_blanks(text, min(second_tab + 1, stop), stop)
        while problem < 0 and i < stop:
            end = _token_end(text, i, stop)
            valid, value = _integer(text, i, end)
            if not valid:
                problem, at = BAD_POSITION, i
            lines.clicks[n_clicks] = value
            n_clicks += 1
            i = _skip_blanks(text, end, stop)
        if problem >= 0:
            lines.wrong[n_wrong], lines.wrong_at[n_wrong] = problem, at
            n_wrong += 1
            n_clicks = clicks_before
        else:
            lines.query[n] = _number_of(queries, text, query, query_end)
            lines.size[n] = _read_urls(text, first_tab, second_tab, urls, lines.shown[n_shown:])
            lines.n_clicks[n] = n_clicks - clicks_before
            n_shown += lines.size[n]
            n += 1
        start = newline + 1
    return n, n_shown, n_clicks, n_wrong


@kernel
def read_yandex(text, size, queries, urls, lines, session):
    """Read lines ``session time Q query region urls`` and ``session time C url``; return what `read_tsv` does.

    A session is a run of lines with the same id. `session` has the number and key of the session of the previous line, and
    whether the next line starts a new session regardless of its key; it is modified.
    """
    n, n_shown, n_clicks, n_wrong = 0, 0, 0, 0
    start = 0
    while start < size:
        newline = _find(text, start, size, _NEWLINE)
        stop = _line_end(text, newline, start)
        i = _skip_blanks(text, start, stop)
        if i == stop:
            start = newline + 1
            continue
        session_end = _token_end(text, i, stop)
        session_key = _key(text, i, session_end, queries.seed)
        time_start = _skip_blanks(text, session_end, stop)
        time_end = _token_end(text, time_start, stop)
        action = _skip_blanks(text, time_end, stop)
        action_end = _token_end(text, action, stop)
        # A query line continues with the query and the region, a click line with the url.
        first = _skip_blanks(text, action_end, stop)
        first_end = _token_end(text, first, stop)
        second = _skip_blanks(text, first_end, stop)
        valid, time = False, np.int64(0)
        if time_start < time_end:
            valid, time = _integer(text, time_start, time_end)
        is_query = action_end - action == 1 and text[action] == _QUERY_LINE
        is_click = action_end - action == 1 and text[action] == _CLICK_LINE
        problem, at = -1, i
        if not valid:
            problem, at = BAD_TIME, time_start
        elif not is_query and not is_click:
            problem, at = BAD_ACTION, action
        elif first == stop:
            problem, at = NO_QUERY if is_query else NO_CLICKED_URL, first
        elif is_query and second == stop:
            problem, at = NO_REGION, second
        elif is_click and second < stop:
            problem, at = TOO_MANY_FIELDS, second
        if problem >= 0:
            lines.wrong[n_wrong], lines.wrong_at[n_wrong] = problem, at
            n_wrong += 1
            start = newline + 1
            continue
        if session[0] == np.uint64(0) or session[2] == np.uint64(1) or session[1] != session_key:
            session[0] += np.uint64(1)
            session[1] = session_key
            session[2] = 0
        if is_click:
            lines.clicks[n_clicks] = _number_of(urls, text, first, first_end)
            lines.click_run[n_clicks], lines.click_time[n_clicks] = session[0], time
            n_clicks += 1
        else:
            lines.query[n] = _number_of(queries, text, first, first_end)
            lines.run[n], lines.time[n] = session[0], time
            lines.size[n] = _read_urls(text, _token_end(text, second, stop), stop, urls, lines.shown[n_shown:])
            n_shown += lines.size[n]
            n += 1
        start = newline + 1
    return n, n_shown, n_clicks, n_wrong


@kernel(inner=True)
def _attach(q, q_stop, c, c_stop, time, indptr, shown, click_time, click_url, owner, position):
    """Do what `attach_clicks` does for one session, in n log n; return the number of clicks without a query."""
    n = indptr[q_stop] - indptr[q]
    url, query, at = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    filled = 0
    # By time; the last of the entries of a url up to a time is then the one to find. Backwards within a query, because a click
    # on a url that is shown twice is on its first place.
    for candidate in q + np.argsort(time[q:q_stop], kind="mergesort"):
        for i in range(indptr[candidate + 1] - 1, indptr[candidate] - 1, -1):
            url[filled], query[filled], at[filled] = shown[i], candidate, i - indptr[candidate]
            filled += 1
    by_url = np.argsort(url, kind="mergesort")
    not_shown = 0
    for click in range(c, c_stop):
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            entry = by_url[middle]
            later = url[entry] == click_url[click] and time[query[entry]] > click_time[click]
            if url[entry] > click_url[click] or later:
                high = middle
            else:
                low = middle + 1
        if low and url[by_url[low - 1]] == click_url[click]:
            owner[click], position[click] = query[by_url[low - 1]], at[by_url[low - 1]]
        else:
            not_shown += 1
    return not_shown


@kernel
def attach_clicks(run, time, indptr, shown, click_run, click_time, click_url):
    """Assign each click to the latest query of its session, at its time or before, that showed the url.

    Returns where the clicks of each query begin, their positions in order of time, and the numbers of clicks without such a
    query and of clicks in sessions without any query.
    """
    n_queries, n_clicks = run.shape[0], click_run.shape[0]
    owner, position = np.full(n_clicks, -1, dtype=np.int64), np.empty(n_clicks, dtype=np.int64)
    order = np.empty(n_clicks, dtype=np.int64)
    not_shown, without_query = 0, 0
    q, c = 0, 0
    while c < n_clicks:
        session = click_run[c]
        while q < n_queries and run[q] < session:
            q += 1
        q_stop, c_stop = q, c
        while q_stop < n_queries and run[q_stop] == session:
            q_stop += 1
        while c_stop < n_clicks and click_run[c_stop] == session:
            c_stop += 1
        order[c:c_stop] = c + np.argsort(click_time[c:c_stop], kind="mergesort")
        if q == q_stop:
            without_query += c_stop - c
        else:
            not_shown += _attach(q, q_stop, c, c_stop, time, indptr, shown, click_time, click_url, owner, position)
        c = c_stop
        q = q_stop
    click_indptr = _starts(owner, n_queries)
    clicks, filled = np.empty(click_indptr[-1], dtype=np.int64), click_indptr[:-1].copy()
    for c in order:
        if owner[c] >= 0:
            clicks[filled[owner[c]]] = position[c]
            filled[owner[c]] += 1
    return click_indptr, clicks, not_shown, without_query
