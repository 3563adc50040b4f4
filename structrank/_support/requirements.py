"""Requirements: attributes of each kind of extension, in one table with a check, and values of parameters.

Nothing of the package is imported here, so that every part of it can use the table.
"""

from collections.abc import Mapping

# Arguments after a name describe its calls; a tuple lists alternatives. Attributes that the base classes in `criteria` and
# `metrics` provide are not listed.
REQUIRED = {
    "criterion": ("name", "measure(relevant_from)", ("oracles", "graded_oracles")),
    "measure of a discounted criterion": ("discounts(n)",),
    "criterion of compiled oracles": ("discounts(n)", "credits(n)"),
    "criterion of compiled oracles for graded labels": ("discounts(n)", "gains(labels)"),
    "measure": ("short", "values(ranking)"),
    "discounted measure": ("short", "discounts(n)", "gains(labels)"),
    "feature map": ("name", "coefficients(ranking, relevant)", "ideal_coefficients(relevant)"),
    # Compiled oracles and the ramp bound work on interleavings of sorted documents, which one of the kernels turns into phi.
    "feature map of compiled oracles and the ramp bound": ("kernel",),
    "oracle": ("__call__(queries)",),
    "result of an oracle": ("coefficients", "losses", "values"),
    "penalty": ("value(w)", "minimiser(z)", "rates(z)", "derivative(w, direction)", "for_columns(n_features)"),
    # Returns w, the multipliers of the planes and a status.
    "QP backend": ("__call__(planes, C, accuracy, w)",),
}


def require(valid, name, value, expected):
    """Raise a ValueError unless the value of a parameter is valid.

    Examples
    --------
    >>> require(False, "n_docs", 0, "an integer of at least 1")
    Traceback (most recent call last):
    ...
    ValueError: n_docs=0 is not valid: expected an integer of at least 1.
    """
    if not valid:
        raise ValueError(f"{name}={value!r} is not valid: expected {expected}.")


def check(thing, role, advice=""):
    """Raise a ValueError unless an object has what its role requires.

    Parameters
    ----------
    thing : object
    role : str
        A key of `REQUIRED`.
    advice : str, default ""
        Sentence that ends the message.

    Examples
    --------
    >>> check(len, "oracle")
    >>> check(3.5, "oracle")
    Traceback (most recent call last):
    ...
    ValueError: 3.5 is not usable as an oracle. It must have __call__(queries). Missing: __call__(queries).
    """
    if isinstance(thing, type):
        raise ValueError(f"{thing.__name__} is a class; expected an object of it, such as {thing.__name__}().")
    wanted = [one if isinstance(one, tuple) else (one,) for one in REQUIRED[role]]
    missing = [options for options in wanted if not any(_has(thing, option) for option in options)]
    if missing:
        article = "an" if role[0] in "aeio" else "a"
        raise ValueError(
            f"{_name(thing)} is not usable as {article} {role}. It must have {_join(wanted)}. Missing: {_join(missing)}."
            + (f" {advice}" if advice else "")
        )


def _has(thing, requirement):
    """Return whether an attribute exists, is callable if it is called, and is not an empty mapping."""
    name, called, _ = requirement.partition("(")
    value = getattr(thing, name, None)
    if called:
        return callable(value)
    return value is not None and not (isinstance(value, Mapping) and not value)


def _name(thing):
    """Return the name of a function, the class of an object, or the repr of a plain value."""
    plain = type(thing).__module__ == "builtins"
    return getattr(thing, "__name__", repr(thing) if plain else type(thing).__name__)


def _join(wanted):
    texts = [options[0] if len(options) == 1 else f"({' or '.join(options)})" for options in wanted]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
