"""Names that load when first used, listed in the stub of a package, ``__init__.pyi``; and libraries that may be missing."""

import importlib
import os

_HOMES: dict[str, dict[str, str]] = {}


def lazy(package, file):
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, for the imports in its stub.

    Examples
    --------
    >>> from structrank import papers
    >>> load, _, names = lazy("structrank.papers", papers.__file__)
    >>> names[-1], load("kdd08").__name__
    ('www11', 'structrank.papers.kdd08')
    """
    with open(os.path.splitext(file)[0] + ".pyi", encoding="utf-8") as stub:
        imports = [line.split() for line in stub if line.startswith("from ") and " as " in line]
    homes = _HOMES[package] = {words[3]: words[1] for words in imports}

    def load(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(importlib.import_module(package), name, value)
        return value

    return load, lambda: sorted({*vars(importlib.import_module(package)), *homes}), list(homes)


def import_public(name=None):
    """Import the home of a public name of structrank or of one of its packages, if there is one; None imports all."""
    packages = (f"structrank.{public}" for public, home in _HOMES["structrank"].items() if home == "structrank")
    for package in ("structrank", *packages):
        module = importlib.import_module(package)
        for public in _HOMES.get(package, ()):
            if name in (None, public):
                getattr(module, public)


def optional(module, user, library, extra):
    """Import a module of a library that an extra of the package installs; raise with the command if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{user} needs {library}: pip install structrank[{extra}]") from error
