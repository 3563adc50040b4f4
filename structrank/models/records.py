"""Checks of records in model files, which may be forged: types and ranges of the fields of dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing

from structrank._support import checks

# Least values of fields that are finite numbers, in any class; other numbers are nan where they were not computed.
_LEAST = {
    **dict.fromkeys(("iteration", "round", "epoch"), 1),
    **dict.fromkeys(
        ("planes", "passes", "effective_pairs", "n_queries", "steps", "tried", "n_urls", "norm", "C", "p_value"), 0
    ),
    **dict.fromkeys(("primal", "dual", "objective_ratio", "mean_slack", "seconds", "parts"), None),
}


def check_record(record):
    """Raise unless the fields of a dataclass have the annotated types, numbers are in range, and dicts hold such numbers.

    Examples
    --------
    >>> from structrank.solvers import Certificate
    >>> check_record(Certificate(2.0, 1.0))
    >>> check_record(Certificate(2.0, "1"))
    Traceback (most recent call last):
        ...
    ValueError: Certificate.dual is '1'; expected float
    """
    for name, kinds in _kinds(type(record)).items():
        value, where = getattr(record, name), f"{type(record).__name__}.{name}"
        if not _is_one_of(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{where} is {checks.show(value)}; expected {expected}")
        if name in _LEAST:
            for key, number in value.items() if isinstance(value, dict) else [("", value)]:
                checks.check_number(f"{where}{key and f'[{key!r}]'}", number, at_least=_LEAST[name], integer=kinds == (int,))


@functools.cache
def _kinds(cls):
    """Return the types that each field allows; fields with other annotations are left to the class."""
    hints = typing.get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        if all(isinstance(kind, type) for kind in kinds):
            found[field.name] = kinds
    return found


def _is_one_of(value, kinds):
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))
