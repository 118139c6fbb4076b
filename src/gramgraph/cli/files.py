"""`convert` and `warmup`: files in other formats, and compiling ahead of the first question."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from gramgraph._show import clean
from gramgraph.cli import common

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    convert = commands.add_parser("convert", help="read a model in one format, write it in another")
    common.add_file(convert)
    convert.add_argument("out", metavar="OUT", help="the new file; its suffix says the format")
    convert.add_argument("--to", metavar="FORMAT", help="format of OUT where its suffix does not say it")
    convert.set_defaults(run=_convert)

    warmup = commands.add_parser("warmup", help="compile what queries need, once after installation")
    warmup.set_defaults(run=_warmup)


def _convert(args: argparse.Namespace) -> int:
    import gramgraph as gg

    model = common.load(args.file, format=args.format)
    gg.write(model, args.out, format=args.to)
    sys.stdout.write(f"{len(model)} variables written to {clean(args.out)}\n")
    return 0


def _warmup(args: argparse.Namespace) -> int:
    from gramgraph.questions.warmup import warmup

    started = time.perf_counter()
    warmup()
    sys.stdout.write(f"compiled in {time.perf_counter() - started:.1f} s; later runs find it in the cache\n")
    return 0
