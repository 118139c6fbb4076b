"""The command line: `gramgraph info | check | plan | query | map | sample | convert | warmup | demo`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code: 0 done, 1 the answer is "no", 2 usage or an unreadable file.

    >>> main(["info", "dataset:asia", "--json"])  # doctest: +ELLIPSIS
    {...}
    0
    """
    try:
        from gramgraph.cli.app import run
    except ValueError as error:  # a variable of the environment that says nothing
        print(f"gramgraph: {error}", file=sys.stderr)
        return 2
    return run(argv)
