"""Show the contents of a model or data file, and verify checksums.

structrank inspect map.structrank
structrank inspect train.txt --relevant-from 2
"""

from __future__ import annotations

import os

from structrank.cli.descriptions import data_facts, data_lines, model_facts, model_lines, shard_facts, shard_lines
from structrank.cli.input import check_exists, read_data
from structrank.cli.options import add_relevant_from
from structrank.cli.output import print_result


def add_options(parser):
    """Add the options of the command."""
    parser.add_argument(
        "file", metavar="FILE", help="a model, or data: a file in LETOR format, a table, or a folder of LETOR files or shards"
    )
    add_relevant_from(parser, graded=True)


def run(arguments, report):
    """Run the command; `report` prints a line on stderr."""
    from structrank import load_model
    from structrank.datasets.shards import has_shards
    from structrank.models import files

    check_exists(arguments.file)
    if not os.path.isdir(arguments.file) and files.is_model_file(arguments.file):
        model, header = load_model(arguments.file), files.read_header(arguments.file)
        facts = {"model": arguments.file, "format": header["format"], "versions": header["versions"]}
        written = f"format {header['format']['version']}, written by structrank {header['versions']['structrank']}"
        with files.errors_named(arguments.file, header):  # attributes that no prediction needs may be of any type
            facts |= model_facts(model)
            lines = [("model", f"{arguments.file} ({written})"), *model_lines(facts)]
    elif has_shards(arguments.file):
        facts = shard_facts(arguments.file)
        lines = [("shards", arguments.file), *shard_lines(facts)]
        facts = {"shards": arguments.file, **facts}
    else:
        facts = data_facts(read_data(arguments, arguments.file, folders=True), arguments)
        lines = [("data", arguments.file), *data_lines(facts)]
        facts = {"data": arguments.file, **facts}
    print_result(arguments, facts, lines)
