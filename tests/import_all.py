"""Import every module of the package, as `make lowest` does with the oldest versions of all requirements."""

import importlib
import pathlib

ROOT = pathlib.Path(__file__).parent.parent

for folder, package in (("structrank", "structrank"), ("solvers", "structrank.solvers"), ("datasets", "structrank.datasets")):
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT / folder).with_suffix("").parts
        if parts[-1] != "__main__":  # runs the command line
            importlib.import_module(".".join((package, *(part for part in parts if part != "__init__"))))
