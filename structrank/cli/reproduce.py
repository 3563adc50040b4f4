"""Compute tables and figures of the papers, beside the printed numbers where the data are the paper's.

structrank reproduce --list
structrank reproduce kdd08 figure9 ohsumed=data/OHSUMED --jobs 2
structrank reproduce www11 --report www11.html
structrank reproduce --all --report papers.html
"""

from __future__ import annotations

import os
import time

from structrank._support.files import check_writable
from structrank.cli.options import READING, add_jobs, given
from structrank.cli.output import print_json, stdout_to_stderr


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument(
        "what",
        nargs="*",
        default=[],
        metavar="PAPER|EXHIBIT|NAME=PATH",
        help="a paper, its tables and figures (default: all of the paper), and data sets of your own, by name; the "
        "printed numbers of a paper stand beside data of the same name, such as ohsumed",
    )
    parser.add_argument("--all", action="store_true", default=False, help="all tables and figures of all papers")
    parser.add_argument("--list", action="store_true", default=False, help="list the tables and figures, and stop")
    parser.add_argument("--full", action="store_true", default=False, help="settings of the paper, not the quick ones")
    parser.add_argument(
        "--results", default=None, metavar="FOLDER", help="folder for finished work of comparisons, so that they can resume"
    )
    parser.add_argument("--report", default=None, metavar="FILE", help="write an HTML page with figures")
    add_jobs(parser, "processes")


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    from structrank import papers

    known = papers.exhibits()
    if arguments.list:
        _print_list(arguments, known)
        return
    chosen, paths = _chosen(arguments, known)
    if arguments.report:
        check_writable(arguments.report)
    results, left_out, data = [], [], {}
    for exhibit in chosen:
        name = f"{exhibit.paper} {exhibit.name}"
        report(f"{name}: {exhibit.title.partition(': ')[2]} ...")
        started = time.perf_counter()
        try:
            with stdout_to_stderr():
                results.append(exhibit.compute(_read(arguments, exhibit, paths, data), **_settings(arguments, exhibit)))
        except ImportError as error:  # an optional library; the other exhibits do without
            if len(chosen) == 1:
                raise
            left_out.append(f"{name} was not computed: {error}")
            report(left_out[-1])
        else:
            report(f"{name}: {time.perf_counter() - started:.1f} s")
    if arguments.json:
        print_json([_facts(result) for result in results])
    else:
        print("\n\n\n".join(map(str, results)), flush=True)
    if arguments.report:
        from structrank.papers.page import write_page

        write_page(results, arguments.report, left_out)
        report(f"wrote {arguments.report}")


def _print_list(arguments, known):
    listed = [exhibit for its in known.values() for exhibit in its.values()]
    if arguments.json:
        print_json([{"paper": one.paper, "exhibit": one.name, "title": one.title, "data": one.data} for one in listed])
        return
    for one in listed:
        print(f"{one.paper:<8}{one.name:<10}{one.title}")


def _chosen(arguments, known):
    """Return the exhibits to compute, and the paths of the data sets by name."""
    words = [word for word in arguments.what if "=" not in word]
    paths = {}
    for entry in arguments.what:
        name, sign, path = entry.partition("=")
        if sign and name in paths:
            raise ValueError(f"two data sets are called {name!r}; name them differently.")
        if sign and not os.path.exists(path):
            raise ValueError(f"{entry}: there is no file or folder {path}.")
        if sign:
            paths[name] = path
    if arguments.all == bool(words):
        raise ValueError("expected a paper, such as kdd08, or --all, and not both; --list shows the papers.")
    if arguments.all:
        return [exhibit for its in known.values() for exhibit in its.values()], paths
    paper, *names = words
    if paper not in known:
        raise ValueError(f"there is no paper {paper!r}; expected one of {', '.join(known)}.")
    for name in names:
        if name not in known[paper]:
            raise ValueError(f"{paper} has no exhibit {name!r}; expected one of {', '.join(known[paper])}.")
    return [known[paper][name] for name in names or known[paper]], paths


def _read(arguments, exhibit, paths, data):
    """Return the data sets of the command line for an exhibit, or None; `data` keeps what was read for other exhibits."""
    from structrank.datasets import load_letor_folds

    if not paths or exhibit.read is None:
        return None
    folders = exhibit.read is load_letor_folds  # other exhibits read click logs, which are files
    fitting = {name: path for name, path in paths.items() if os.path.isdir(path) == folders}
    if not fitting and not arguments.all:
        wanted = "a folder in LETOR format" if folders else "a file with a click log"
        raise ValueError(f"{exhibit.paper} {exhibit.name} reads {wanted}; found {', '.join(paths.values())}.")
    for name, path in fitting.items():
        if (exhibit.read, name) not in data:
            options = given(arguments, *READING) if exhibit.read is load_letor_folds else {}
            data[exhibit.read, name] = exhibit.read(path, **options)
    return {name: data[exhibit.read, name] for name in fitting} or None


def _settings(arguments, exhibit):
    """Return the options that an exhibit has as keyword arguments."""
    options = {"quick": not arguments.full, "n_jobs": arguments.jobs, "results": arguments.results, "verbose": 1}
    return {name: value for name, value in options.items() if name in exhibit.settings and value is not None}


def _facts(result):
    frames = {heading: frame.reset_index().astype(object).to_dict("split") for heading, frame in result.frames().items()}
    return {"paper": result.exhibit.paper, "exhibit": result.exhibit.name, "title": result.exhibit.title} | {
        "texts": result.texts(),
        "tables": {heading: {"columns": split["columns"], "rows": split["data"]} for heading, split in frames.items()},
    }
