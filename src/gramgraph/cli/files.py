"""`convert` and `warmup`: files in other formats, and compiling ahead of the first question."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from gramgraph._show import clean
from gramgraph._validation import check_count
from gramgraph._warmup import capabilities, run
from gramgraph.cli import common


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    convert = commands.add_parser("convert", help="read a model in one format, write it in another")
    common.add_file(convert)
    convert.add_argument("out", metavar="OUT", help="the new file; its suffix says the format")
    convert.add_argument("--to", metavar="FORMAT", help="format of OUT where its suffix does not say it")
    convert.set_defaults(run=_convert)

    warmup = commands.add_parser(
        "warmup",
        help="compile ahead, once after installation",
        description="Compile what these capabilities need, so that their first use is as quick as the next. "
        "It can be stopped at any time: what is compiled is kept.",
    )
    warmup.add_argument("capability", nargs="*", help=f"of {', '.join(capabilities())}, or all (the default)")
    warmup.add_argument("--jobs", type=int, metavar="N", help="processes at a time (default: the cores)")
    warmup.set_defaults(run=_warmup)


def _convert(args: argparse.Namespace) -> int:
    import gramgraph as gg

    model = common.load(args.file, format=args.format)
    gg.write(model, args.out, format=args.to)
    sys.stdout.write(f"{len(model)} variables written to {clean(args.out)}\n")
    return 0


def _warmup(args: argparse.Namespace) -> int:
    if args.jobs is not None:
        check_count("--jobs", args.jobs)
    live = sys.stderr.isatty()
    under_way: dict[str, int] = {}
    started = time.perf_counter()

    def tell(name: str, count: int, seconds: float | None, error: str) -> None:
        under_way[name] = count
        if live:
            sys.stderr.write("\r\x1b[K")
        if seconds is not None:
            del under_way[name]
            sys.stdout.write(f"{name:12} {count:4} compiled {seconds:6.1f} s{'  failed' if error else ''}\n")
            sys.stdout.flush()
        if live:
            sys.stderr.write(", ".join(f"{each}: {n} compiled" for each, n in under_way.items()))
            sys.stderr.flush()

    run(args.capability, tell, n_jobs=args.jobs)
    sys.stdout.write(f"ready after {time.perf_counter() - started:.1f} s; later processes find it in the cache\n")
    return 0
