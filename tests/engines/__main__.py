"""Run exported models in the engines themselves and compare scores and ranks with `predict`; see `make engines`.

Engines on the Java virtual machine are resolved by Maven (`java/`); Solr and OpenSearch answer HTTP requests on this machine,
the same requests as in docs/engines.md. The table goes to stdout and to the file given by --out. Exit code 1 if any document
changes its rank where its score differs from its neighbour's in 32 bits.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # the folder is no package: pytest does not collect it

import cases
import engines
import page
import report


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make engines", description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="file for the table, as Markdown")
    parser.add_argument("--only", nargs="+", choices=list(engines.ENGINES), help="engines to run (default: all)")
    arguments = parser.parse_args()
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        print(f"make engines: {', '.join(missing)} not found. Install a JDK (17 or later) and Maven, and run it again.")
        return 2
    started, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        suite = cases.Suite(pathlib.Path(folder))
        for name in arguments.only or engines.ENGINES:
            begun = time.monotonic()
            try:
                found = list(engines.ENGINES[name](suite))
            except engines.Skipped as reason:
                print(f"{name}: skipped: {reason}", flush=True)
                continue
            rows += [report.compare(suite, name, *result) for result in found]
            print(f"{name}: {len(found)} models in {time.monotonic() - begun:.0f} s", flush=True)
        if not arguments.only:
            page.check(suite)
            print("docs/engines.md: all requests answered as expected", flush=True)
    table = report.table(rows, suite)
    print(table)
    print(f"{time.monotonic() - started:.0f} s in all")
    if arguments.out:
        out = pathlib.Path(arguments.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(table + "\n", encoding="utf-8")
    wrong = [row for row in rows if row.moved or row.error]
    for row in wrong:
        print(f"FAILED {row.engine}, {row.case}: {row.error or f'{row.moved} ranks differ'}")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
