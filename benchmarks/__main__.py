"""`python -m benchmarks [module] [--quick] [--rows NAME …] [--json]`; `python -m benchmarks page` (see `page.py`)."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import page
from benchmarks.harness import runner
from benchmarks.networks import data_folder
from benchmarks.page_rows import modules_shown, rows_shown
from benchmarks.records import busy, write_json
from benchmarks.tables import write

MODULES = (
    "approximate",
    "approximate_marginals",
    "approximate_map",
    "boosting",
    "cold_start",
    "counting",
    "crf",
    "curves",
    "deterministic",
    "embeddings",
    "exact_discrete",
    "families",
    "file_counts",
    "file_questions",
    "gaussian_networks",
    "gp",
    "gp_classifier",
    "graphical_lasso",
    "hill_climbing",
    "hmm",
    "image_fields",
    "kernel_loops",
    "kernel_machines",
    "kernel_networks",
    "kernel_trees",
    "learning",
    "machines",
    "mixtures",
    "rvm",
    "sequences",
    "small_networks",
    "svm",
    "threads",
    "topics",
    "vision",
    "wide_tables",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named modules (all by default); 1 when answers disagree or our own part fails, 2 without data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "module",
        nargs="*",
        help=f"one of {', '.join(MODULES)} (default: all), or page: rewrite docs/benchmarks.md from docs/measured",
    )
    parser.add_argument("--quick", action="store_true", help="short budget and limit a cell")
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="only these networks")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="only these tasks, e.g. batch warm")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="only these rows, by their whole names")
    parser.add_argument("--page", action="store_true", help="only the modules and rows that the pages show")
    parser.add_argument("--peers", nargs="*", help="peers to run (none: ours alone; default: all of a module)")
    parser.add_argument("--budget", type=float, help="seconds of repeats a cell")
    parser.add_argument("--limit", type=float, help="seconds after which a cell is stopped")
    parser.add_argument("--out", type=Path, help="folder for the report (default: benchmarks/results)")
    parser.add_argument("--json", action="store_true", help="write every figure to MODULE.json beside the report, too")
    args = parser.parse_args(argv)
    if args.module == ["page"]:
        return page.main()
    unknown = [name for name in args.module if name not in MODULES]
    if unknown:
        parser.error(f"no such module: {', '.join(unknown)}. There are: {', '.join(MODULES)}")
    names = args.module or (modules_shown() if args.page else MODULES)
    if "exact_discrete" in names and data_folder() is None:
        print("no data: set GRAMGRAPH_DATA to the folder that holds bn/ and bn_bnrep/", file=sys.stderr)
        return 2
    peers = {} if args.peers is None else {"with_peers": args.peers}
    faults: list[str] = []
    with runner() as made:
        for name in names:
            made.records.clear()
            made.rows = rows_shown(name) if args.page else args.rows
            load, stopped = busy(), False
            try:
                text, found = importlib.import_module(f"benchmarks.{name}").report(
                    made,
                    networks=args.networks,
                    tasks=args.tasks,
                    quick=args.quick,
                    budget=args.budget,
                    limit=args.limit,
                    **peers,
                )
            except KeyboardInterrupt:  # what was measured until then is worth keeping
                text, found, stopped = f"# {name}\n\nInterrupted.\n", ["interrupted: not all was measured"], True
            print(text)
            print(f"written to {write(name, text, folder=args.out)}", file=sys.stderr)
            if args.json:
                written = write_json(name, made.records, text, found, load=load, folder=args.out)
                print(f"and {written}", file=sys.stderr)
            faults += found
            if stopped:
                break
    for fault in faults:
        print(f"FAULT {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
