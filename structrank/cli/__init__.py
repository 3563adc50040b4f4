"""The command line, ``structrank COMMAND``.

A thin layer over the API. Each command is a module: its docstring is the help, `add_options` adds its options, and `run`, which
imports slow modules only when called, runs it. Results go to stdout, messages to stderr. Exit codes: 0 done; 1 out of memory;
2 wrong usage or input, reported in one line; 130 interrupted; 141 stdout was closed by its reader.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import warnings

import structrank
from structrank.cli import compare, evaluate, explain, export, inspect, predict, reproduce, train, train_for, warmup
from structrank.cli.options import Parser, add_command
from structrank.cli.output import abandon_stdout, keep_stdout_for_results, printable_results, reporting_compilation, say

# In the order of the help.
_COMMANDS = (compare, train, train_for, predict, evaluate, explain, inspect, export, reproduce, warmup)
_DONE, _FAILED, _BAD_INPUT, _INTERRUPTED, _PIPE_CLOSED = 0, 1, 2, 130, 141


def main(argv=None):
    """Run a command.

    Parameters
    ----------
    argv : list of str, default None
        The arguments that follow ``structrank`` on the command line; None for the arguments of this process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["--version"])
    structrank 0.1.0
    0
    """
    parser = _parser()
    try:
        arguments, unknown = parser.parse_known_args(argv)
        if unknown:
            getattr(arguments, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as stop:  # --help and --version too
        return stop.code
    if arguments.command is None:
        parser.print_help()
        return _DONE
    report = functools.partial(say, f"structrank {arguments.command}")
    if argv is None:
        keep_stdout_for_results()
    try:
        with warnings.catch_warnings(), printable_results(), reporting_compilation(report):
            warnings.simplefilter("default", structrank.StructRankWarning)
            warnings.showwarning = lambda message, *_, **__: report(f"warning: {arguments.parser.with_options(str(message))}")
            _import(arguments.imports)
            arguments.run(arguments, report)
            print(end="", flush=True)
    except KeyboardInterrupt as stop:
        report(f"interrupted; {str(stop) or 'nothing was saved'}")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of stdout, such as head, has closed it
        abandon_stdout()
        return _PIPE_CLOSED
    except MemoryError as error:
        report(f"error: not enough memory. {error}")
        return _FAILED
    except OSError as error:
        if error.filename is None and error.errno is not None:  # stdout itself, on a full disk
            abandon_stdout()
        report(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}")
        return _BAD_INPUT
    except (ValueError, ImportError) as error:  # an ImportError names the optional library to install
        report(f"error: {arguments.parser.with_options(str(error))}")
        return _BAD_INPUT
    return _DONE


def _parser():
    parser = Parser(
        "structrank",
        description="Learning to rank with structured SVMs. Data are files in LETOR format or tables (CSV, TSV, parquet).",
        epilog="structrank COMMAND --help shows the options of a command, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"structrank {structrank.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in _COMMANDS:
        add_command(commands, module, reads=module is not warmup)
    return parser


def _import(names):
    """Import modules of the user, which may register criteria and measures; the current folder is searched last."""
    if names and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ValueError(f"--import {name}: {error}.") from error
