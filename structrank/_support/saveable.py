"""The classes of the package whose objects model files may hold: they declare themselves here."""

SAVEABLE: dict[str, type] = {}
RECORDS: set[type] = set()


def saveable(cls):
    """Allow the objects of a class in model files; a decorator.

    A learner has ``get_params``, fitted attributes that end in "_" and ``check_loaded``; all other classes are dataclasses, or
    sequences made from a list.
    """
    SAVEABLE[cls.__name__] = cls
    return cls


def record(cls):
    """Declare a dataclass of results as `saveable`, whose fields are checked by their types when a model is loaded."""
    RECORDS.add(cls)
    return saveable(cls)
