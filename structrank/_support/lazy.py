"""Names that load when first used, so that importing a package is quick."""

import importlib


def names_of(package, homes):
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : dict
        ``globals()`` of the package.
    homes : dict
        From names to the modules of the package that they live in; a module itself has the home None.
    """

    def load(name):
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        home = homes[name]
        module = importlib.import_module(f"{package['__name__']}.{home or name}")
        package[name] = value = getattr(module, name) if home else module
        return value

    return load, lambda: sorted({*package, *homes})
