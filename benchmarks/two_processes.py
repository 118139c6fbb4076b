"""What a second core is worth on this machine: the same loop in one process alone, and in two processes at once.

Threads cannot gain more than that. Two processes share nothing of Python: what they lose is clock rate, cache and
memory, or that the two cores are two threads of one.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

__all__ = ["KINDS", "rounds"]

#: Kind of loop → how it is told.
KINDS = {
    "multiply": "multiply and add in the cache, compiled",
    "stream": "adding arrays of 128 MB, compiled",
    "python": "plain Python",
}
#: Seconds of one stretch of work, about.
STRETCH = 0.3


def rounds(kind: str, repeats: int) -> list[tuple[float, float]]:
    """(wall of one process, wall of two processes that each do the same), measured in turns."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_started(kind)) for _ in range(2)]
        times, _ = (_answer(worker) for worker in workers)  # of the first: both do the same
        found = []
        for _ in range(repeats + 1):
            found.append((_wall(workers[:1], times), _wall(workers, times)))
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
    return found[1:]


def _started(kind: str) -> subprocess.Popen[str]:
    root, pipe = Path(__file__).resolve().parents[1], subprocess.PIPE
    command = [sys.executable, "-m", "benchmarks.two_processes", kind]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root)


def _answer(worker: subprocess.Popen[str]) -> int:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError("a process ended early")
    return int(line)


def _wall(workers: list[subprocess.Popen[str]], times: int) -> float:
    """Seconds until all of them have done it."""
    start = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{times}\n")
        worker.stdin.flush()
    for worker in workers:
        _answer(worker)
    return time.perf_counter() - start


# --- the other process --------------------------------------------------------------------------------------------


def _multiply() -> Callable[[int], object]:
    import numpy as np
    from numba import njit

    @njit
    def loop(x, y, times):
        for _ in range(times):
            for i in range(len(x)):
                x[i] = x[i] * 0.999 + y[i]

    x, y = np.ones(1024), np.ones(1024)
    return lambda times: loop(x, y, 100 * times)


def _stream() -> Callable[[int], object]:
    import numpy as np

    x, y, z = (np.ones(1 << 24) for _ in range(3))

    def add(times: int) -> None:
        for _ in range(times):
            np.add(x, y, out=z)

    return add


def _python() -> Callable[[int], object]:
    def loop(times: int) -> int:
        total = 0
        for i in range(10_000 * times):
            total = (total + i * i) & 0xFFFF
        return total

    return loop


def _serve(kind: str) -> None:
    """How often the work fits into a stretch, in a line; then, for each line with a number, so much of it."""
    work = {"multiply": _multiply, "stream": _stream, "python": _python}[kind]()
    work(1)
    print(_times(work), flush=True)
    for line in sys.stdin:
        work(int(line))
        print(0, flush=True)


def _times(work: Callable[[int], object]) -> int:
    times, taken = 1, 0.0
    while taken < STRETCH / 2:
        times *= 2
        start = time.perf_counter()
        work(times)
        taken = time.perf_counter() - start
    return max(1, round(times * STRETCH / taken))


if __name__ == "__main__":
    _serve(sys.argv[1])
