"""Run the benchmarks: ``python -m benchmarks --out bench.json``."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path

import pandas as pd

from benchmarks import machine, passes, peers, tiny, training
from benchmarks.data import FULL, SMOKE

SECTIONS = {
    "passes": ("One pass over the data", passes.run),
    "training": ("Training to a relative gap of 1e-3", training.run),
    "paths": ("A path of many C against the largest alone", training.run_paths),
    "dlib": ("dlib.svm_rank_trainer at equal objective", peers.run_dlib),
    "peers": ("Other learners", peers.run),
    "tiny": ("Small fits and imports", tiny.run),
}


def main(arguments=None):
    """Run the requested sections, print each, and write all as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition(":")[0])
    parser.add_argument("--out", type=Path, help="file for the results, as JSON; by default results are only printed")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--folder", help="additional data set in LETOR format")
    parser.add_argument("--repeats", type=int, help="number of repeats of each measurement")
    parser.add_argument("--smoke", action="store_true", help="toy sizes for a smoke test; the numbers mean nothing")
    options = parser.parse_args(arguments)
    if options.out is not None and not options.out.absolute().parent.is_dir():
        parser.error(f"--out {options.out}: there is no folder {options.out.parent}; make it first.")
    if options.folder is not None and not Path(options.folder).is_dir():
        parser.error(f"--folder {options.folder}: there is no such folder; expected one with Fold1, Fold2, ...")
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats {options.repeats}: expected at least 1.")
    sizes = SMOKE if options.smoke else FULL
    if options.repeats is not None:
        sizes = replace(sizes, repeats=options.repeats)

    results = {"machine": machine.facts(), "sections": {}}
    for name, value in results["machine"].items():
        print(f"{name}: {value}")
    print("\nValues are medians (minimum to maximum of the repeats); loads are averages over 1, 5 and 15 minutes.")
    for name in options.sections:
        title, measure = SECTIONS[name]
        print(f"measuring: {name} ...", file=sys.stderr)
        rows = measure(sizes, options.folder)
        load = machine.load()
        results["sections"][name] = {"title": title, "rows": rows, "load after": load}
        print(f"\n{title} (load {load})")
        print(pd.DataFrame(rows).to_string(index=False, na_rep="", max_colwidth=None), flush=True)
        # Write after each section, so that its results are kept if a later section is interrupted.
        if options.out is not None:
            options.out.write_text(json.dumps(results, indent=1, default=_plain) + "\n")


def _plain(value):
    """Convert a dataclass for JSON."""
    if is_dataclass(value):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


if __name__ == "__main__":
    main()
