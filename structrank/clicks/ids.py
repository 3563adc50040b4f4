"""Map ids of any hashable type to dense integers and back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structrank._support import checks
from structrank._support.saveable import record
from structrank.clicks import _log_kernels as kernels


@record
@dataclass(frozen=True, eq=False, repr=False)
class Ids:
    """Distinct ids. The dense integer of an id is its index in `values`.

    Parameters
    ----------
    values : (n,) array
        int64, or objects of any hashable type.

    Examples
    --------
    >>> ids = Ids(np.array(["weather", "news"], dtype=object))
    >>> ids.index(["news", "sports"])
    array([ 1, -1])
    >>> len(ids), ids.values[1]
    (2, 'news')
    """

    values: np.ndarray

    def __len__(self):
        return self.values.shape[0]

    def __repr__(self):
        shown = ", ".join(repr(value) for value in self.values[:3].tolist())
        return f"Ids({len(self)}: {shown}{', ...' if len(self) > 3 else ''})"

    def index(self, values):
        """Return the dense integers of ids, an array of int64; -1 for unknown ids."""
        values = as_id_array(values, "values")
        if self.values.dtype.kind == "i" and values.dtype.kind in "iu":
            fits = values <= np.iinfo(np.int64).max  # a larger uint64 cannot be one of these int64 ids
            return np.where(fits, self._index_integers(values.astype(np.int64)), -1)
        numbers = self._numbers
        return np.array([numbers.get(value, -1) for value in values.tolist()], dtype=np.int64)

    def _index_integers(self, values):
        if not len(self):
            return np.full(values.shape, -1)
        order = self._order
        place = np.searchsorted(self.values, values, sorter=order)
        place = order[np.minimum(place, len(self) - 1)]
        return np.where(self.values[place] == values, place, -1)

    def check_kinds(self, values, name):
        """Raise if no value can be one of these ids, as they are of other types: 7 and "7" are different ids."""
        given = _kinds(values)
        if len(self) and given and not given & self._kinds:
            found, own = values[:1].tolist()[0], self.values[:1].tolist()[0]
            raise ValueError(
                f"{name} are {' and '.join(sorted(given))}, such as {found!r}; those of the log are "
                f"{' and '.join(sorted(self._kinds))}, such as {own!r}. Convert them first, as in "
                f"[{type(own).__name__}(value) for value in {name}]."
            )

    @cached_property
    def _kinds(self):
        return _kinds(self.values)

    @cached_property
    def _order(self):
        return np.argsort(self.values, kind="stable")

    @cached_property
    def _numbers(self):
        return {value: number for number, value in enumerate(self.values.tolist())}


def _kinds(values):
    """Return the kinds of ids: numbers, texts, or the names of other types."""
    if values.dtype.kind in "iufb":
        return {"numbers"} if values.size else set()
    kinds = set()
    for one in set(map(type, values.tolist())):
        is_number = issubclass(one, (int, float, np.number, np.bool_))
        kinds.add("numbers" if is_number else "texts" if issubclass(one, str) else f"{one.__name__} objects")
    return kinds


def check_loaded_ids(model, name):
    """Return ids of a loaded model; raise unless they are distinct ids of hashable types."""
    ids = checks.check_fitted_attribute(model, name, Ids)
    values = checks.check_array(f"{name}.values", ids.values, "iO", np.shape(ids.values)[:1])
    try:
        n_distinct = len(set(values.tolist()))
    except TypeError:
        raise ValueError(f"{name} has values that are not hashable") from None
    if not 0 < n_distinct == values.size:
        raise ValueError(f"{name} has {values.size} ids, of which {n_distinct} are distinct")
    checks.check_ids(values, name, "an id is never missing")
    return ids


def as_id_array(values, name):
    """Convert ids of any hashable type to a 1-d array; tuples stay tuples, and 1 and "1" stay distinct."""
    if not isinstance(values, np.ndarray) and not hasattr(values, "to_numpy"):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise ValueError(f"{name}={values!r} is not valid: expected a sequence of ids.")
        values = checks.objects(list(values))
    array = checks.as_array(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimension(s); expected 1: one id per entry.")
    checks.missing_ids(array, name)  # raises if one is not hashable
    return array


def as_id_pairs(queries, urls):
    """Convert the queries and urls passed to ``predict`` to arrays; raise if their lengths differ or an id is missing."""
    queries, urls = as_id_array(queries, "queries"), as_id_array(urls, "urls")
    urls = checks.as_column(urls, queries.shape[0], "urls", against="queries")
    for name, ids in (("queries", queries), ("urls", urls)):
        checks.check_ids(ids, name, "every entry needs an id")
    return queries, urls


def dense_pairs(query_ids, url_ids, queries, urls):
    """Return the dense integers of pairs, -1 for unknown ids; raise if no known query or url is of the type of those given."""
    queries, urls = as_id_pairs(queries, urls)
    query_ids.check_kinds(queries, "queries")
    url_ids.check_kinds(urls, "urls")
    return query_ids.index(queries), url_ids.index(urls)


class GrowingIds:
    """Ids numbered in order of first appearance; `settle` converts them to `Ids`."""

    def __init__(self):
        self._numbers, self._settled = {}, None

    def __len__(self):
        return len(self._numbers)

    def add(self, values):
        """Return the number of each id; new ids get the next numbers."""
        numbers = self._numbers
        return [numbers.setdefault(value, len(numbers)) for value in values]

    @property
    def values(self):
        """Ids added so far, by number."""
        return as_id_array(self._numbers, "ids")

    def index(self, values):
        """Return the numbers of ids, -1 for unknown ids; see `Ids.index`."""
        return Ids(self.values).index(values)

    def settle(self):
        """Return the ids added so far as `Ids`, integers in increasing order, and the new number of each (None if unchanged).

        Calls return the same objects until an id is added, so that all results from one stream share their ids.
        """
        if self._settled is None or len(self._settled[0]) < len(self):
            self._settled = _in_order(self.values)
        return self._settled


def _in_order(values):
    """Return `Ids` with integers in increasing order and other values unchanged, and the new index of each value."""
    if values.dtype.kind != "i" or np.all(values[:-1] < values[1:]):
        return Ids(values), None
    order = np.argsort(values)
    places = np.empty_like(order)
    places[order] = np.arange(order.shape[0])
    return Ids(values[order]), places


class TextIds(GrowingIds):
    """Growing ids of the compiled readers of text; `settle` converts them to int64 if each is written as an integer."""

    def __init__(self):
        self._settled = None
        self._table = kernels.IdTable(
            seed=tuple(map(np.uint64, (secrets.randbits(64), secrets.randbits(64), secrets.randbits(64) | 1, 63))),
            slots=np.full(2, -1, dtype=np.int32),
            keys=np.empty(0, dtype=np.uint64),
            ends=np.empty(0, dtype=np.int64),
            text=np.empty(0, dtype=np.uint8),
            count=np.zeros(1, dtype=np.int64),
        )

    def __len__(self):
        return int(self._table.count[0])

    def reserve(self, n_bytes):
        """Return the table, with capacity for every id that `n_bytes` of text can contain."""
        table, count = self._table, len(self)
        n_ids, used = count + n_bytes // 2 + 1, int(table.ends[count - 1]) if count else 0
        seed, slots, keys = table.seed, table.slots, _grown(table.keys, n_ids)
        if slots.shape[0] < 2 * n_ids:
            bits = (2 * n_ids).bit_length()
            seed, slots = (*seed[:3], np.uint64(64 - bits)), np.full(2**bits, -1, dtype=np.int32)
            kernels.fill_slots(seed, slots, keys, count)
        ends, text = _grown(table.ends, n_ids), _grown(table.text, used + n_bytes)
        self._table = kernels.IdTable(seed, slots, keys, ends, text, table.count)
        return self._table

    @property
    def values(self):
        """Ids added so far, by number."""
        ends = self._table.ends[: len(self)]
        integers = np.empty(ends.shape[0], dtype=np.int64)
        if kernels.as_integers(ends, self._table.text, integers):
            return integers
        text, texts, start = self._table.text[: ends[-1]].tobytes(), np.empty(ends.shape[0], dtype=object), 0
        for number, stop in enumerate(ends.tolist()):
            texts[number] = text[start:stop].decode("utf-8", errors="backslashreplace")
            start = stop
        return texts


def _grown(array, size):
    """Return `array`, copied into a larger array if it has fewer than `size` entries."""
    if array.shape[0] >= size:
        return array
    larger = np.empty(max(size, array.shape[0] * 3 // 2), dtype=array.dtype)
    larger[: array.shape[0]] = array
    return larger


def settled(ids, numbers):
    """Convert growing ids to `Ids`, and their numbers to dense integers of these `Ids`."""
    if isinstance(ids, Ids):
        return ids, numbers
    ids, places = ids.settle()
    return ids, numbers if places is None else places[numbers].astype(numbers.dtype)


def shared_ids(first, other):
    """Raise if `other` is not a `ClickLog` over the ids of `first`."""
    if not hasattr(other, "click_indptr"):  # not isinstance: ClickLog is built on this module
        raise ValueError(f"expected a ClickLog or a stream of its parts; found {type(other).__name__}.")
    if first.queries is not other.queries or first.urls is not other.urls:
        raise ValueError(
            "the logs do not share their ids: the same number can mean two queries. Read the files together, as in "
            "read_tsv([first, second])."
        )
