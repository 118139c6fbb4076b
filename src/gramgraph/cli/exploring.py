"""`explore`: the explorer as a page of this machine."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gramgraph._show import clean
from gramgraph.cli import common

TABLES = (".csv", ".parquet", ".csv.gz", ".tsv")


def add_commands(commands: Any) -> None:
    """Add the subcommand of this module."""
    explore = commands.add_parser("explore", help="click the evidence, watch the beliefs: a page of this machine")
    explore.add_argument("file", metavar="FILE", nargs="?", help="a model, dataset:NAME, or a table to learn from")
    explore.add_argument("--format", help="format of FILE where its suffix does not say it (bif, xmlbif, uai, …)")
    explore.add_argument("--port", type=int, default=0, help="port (default: any free one)")
    explore.add_argument("--no-browser", action="store_true", help="open no browser; the address is printed")
    explore.add_argument("--host", default="127.0.0.1", help="address; one that others can reach needs --token")
    explore.add_argument("--token", help="the secret of the page, at least 16 characters with --host (default: random)")
    explore.add_argument("--max-upload", type=common.parse_size, default=200e6, help="largest upload (default: 200MB)")
    explore.add_argument("--static", metavar="HTML", help="write one self-contained file and stop")
    explore.set_defaults(run=_explore)


def _explore(args: argparse.Namespace) -> int:
    from gramgraph import explorer

    view = _view(args)
    if args.static:
        explorer.explore(view, static=args.static)
        print(f"wrote {args.static}")
        return 0
    with explorer.serve(view, args.port, host=args.host, token=args.token, max_upload=int(args.max_upload)) as running:
        try:
            sys.stdout.write(f"{clean(running.url)}\nCtrl-C ends it.\n")
            sys.stdout.flush()
            if not args.no_browser:
                import webbrowser

                webbrowser.open(running.url)
            running.wait()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
    return 0


def _view(args: argparse.Namespace) -> Any:
    from pathlib import Path

    from gramgraph.explorer.workbench import Workbench

    if args.file is None:
        return Workbench()
    if args.file.lower().endswith(TABLES) and args.format is None:
        bench = Workbench()
        bench.load_table(Path(args.file), Path(args.file).name)
        bench.learn_now()
        return bench
    model = common.load(args.file, format=args.format)
    name = args.file.removeprefix("dataset:")
    source = f"gg.datasets.{name}()" if args.file.startswith("dataset:") else f"gg.read({args.file!r})"
    title = getattr(model, "name", "") or Path(name).name.partition(".")[0]
    return Workbench(model, title=title, source=source)
