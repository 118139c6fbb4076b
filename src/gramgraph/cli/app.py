"""The parser with its subcommands, and the one place where errors become a line on stderr and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from gramgraph import __version__
from gramgraph._show import clean
from gramgraph.cli import asking, demos, describing, exploring, files, learning
from gramgraph.exceptions import (
    BudgetError,
    GramGraphError,
    ImpossibleEvidenceError,
    ModelError,
    OptionError,
)

DONE, NO, USAGE = 0, 1, 2

_EPILOG = """\
FILE is a model in BIF, XMLBIF, UAI, Hugin NET, GeNIe XDSL or gramgraph JSON (also .gz), or dataset:NAME.

examples:
  gramgraph query dataset:asia --evidence smoke=yes --evidence 'xray!=no' --target lung
  gramgraph query alarm.bif --cases cases.csv --out posteriors.csv --target LVFAILURE
  gramgraph plan munin.bif --memory 4GB
  gramgraph learn survey.csv --score bic --out net.bif
  gramgraph explore alarm.bif
  gramgraph demo

exit codes: 0 done; 1 the answer is no (invalid model, impossible evidence, over budget); 2 usage or unreadable file
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole grammar of the command line; every module of commands adds its own."""
    parser = argparse.ArgumentParser(
        prog="gramgraph",
        description="Ask graphical models.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gramgraph {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (describing, asking, files, learning, exploring, demos):
        module.add_commands(commands)
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn errors into one readable line."""
    _never_fail_on_a_letter(sys.stdout)
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as stop:  # argparse has already said why
        return int(stop.code or 0)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: int = args.run(args)
            sys.stdout.flush()
        return code
    except OptionError as error:
        return _complain(error, USAGE)
    except (ModelError, ImpossibleEvidenceError, BudgetError) as error:
        return _complain(error, NO)
    except (GramGraphError, ImportError) as error:
        return _complain(error, USAGE)
    except BrokenPipeError:  # the reader of a pipe had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}", USAGE)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)


def _complain(error: object, code: int) -> int:
    lines = [clean(line) for line in str(error).splitlines()] or [type(error).__name__]
    sys.stderr.write("gramgraph: " + "\n".join(lines) + "\n")
    return code


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"gramgraph: warning: {clean(message)}\n")


def _never_fail_on_a_letter(stream: Any) -> None:
    """A terminal without Unicode shows ? for a bar instead of stopping the program."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
