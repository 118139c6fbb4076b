"""What Numba compiles: every function and signature with its CPU seconds, callees taken off.

    python -m benchmarks.compilations discrete hmm --top 20     # capabilities of `gramgraph warmup`, in this process

Set NUMBA_CACHE_DIR to an empty folder to see all; what is found in a cache is not compiled.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Compilations", "counting"]


class Compilations:
    """(function, signature) in the order of compilation, and seconds of each."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.seconds: list[float] = []
        self._open: list[tuple[int, float, float]] = []

    def start(self, function: str, signature: str) -> None:
        self.made.append((function, signature))
        self.seconds.append(0.0)
        self._open.append((len(self.made) - 1, time.process_time(), 0.0))

    def end(self) -> None:
        at, started, callees = self._open.pop()
        spent = time.process_time() - started
        self.seconds[at] = spent - callees
        if self._open:
            above, since, below = self._open[-1]
            self._open[-1] = (above, since, below + spent)

    @property
    def own(self) -> list[tuple[str, str]]:
        """Those of gramgraph's functions; the others are Numba's, for what ours call."""
        return [each for each in self.made if each[0].startswith("gramgraph.")]

    def by_function(self) -> list[tuple[str, int, float, float]]:
        """(function, compilations, seconds, seconds of the longest), the dearest first."""
        total: dict[str, float] = defaultdict(float)
        longest: dict[str, float] = defaultdict(float)
        for (name, _), seconds in zip(self.made, self.seconds, strict=True):
            total[name] += seconds
            longest[name] = max(longest[name], seconds)
        times = Counter(name for name, _ in self.made)
        return sorted(((k, times[k], total[k], longest[k]) for k in total), key=lambda row: -row[2])

    def table(self, top: int) -> str:
        """Markdown: the dearest functions."""
        own = f"{len(self.own)} of them of our functions"
        rows = [f"{sum(self.seconds):.1f} s, {len(self.made)} compilations, {own}", ""]
        rows += ["| function | times | seconds | longest |", "|---|--:|--:|--:|"]
        rows += [f"| {name} | {n} | {s:.2f} | {most:.2f} |" for name, n, s, most in self.by_function()[:top]]
        return "\n".join(rows)


@contextmanager
def counting() -> Iterator[Compilations]:
    """Listen to Numba while the block runs."""
    from numba.core import event

    found = Compilations()

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            found.start(f"{function.__module__}.{function.__qualname__}", str(event.data["args"]))

        def on_end(self, event: Any) -> None:
            found.end()

    with event.install_listener("numba:compile", Listener()):
        yield found


def main(argv: Sequence[str] | None = None) -> int:
    os.environ["GRAMGRAPH_TIER"] = "compiled"
    from gramgraph._journeys import CAPABILITIES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.compilations", description=__doc__)
    parser.add_argument("capability", nargs="+", choices=sorted(CAPABILITIES))
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--signatures", default="", help="print the signatures of functions that contain this")
    args = parser.parse_args(argv)
    for name in args.capability:
        started = time.process_time()
        with counting() as found:
            CAPABILITIES[name]()
        print(f"\n## {name}: {time.process_time() - started:.1f} s CPU\n\n{found.table(args.top)}", flush=True)
        for function, signature in found.made:
            if args.signatures and args.signatures in function:
                print(f"  {function} {signature}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
