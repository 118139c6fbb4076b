"""Measuring: CPU and wall time, peak memory, a child process that can be stopped.

A *cell* is one contestant doing one task on one row of a table. All cells run in the same child process (same
data, one thread); a cell that exceeds its limit costs that process, and the next cell gets a new one.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import multiprocessing
import os
import platform
import resource
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cell", "Failure", "Measurement", "PeakMemory", "Runner", "measure", "one_thread", "versions"]

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
#: A timed stretch is at least this long, so that the clock's resolution does not show.
SHORTEST_STRETCH = 0.004
#: For memory figures: glibc maps every array on its own, so that none hides in pages that were used before.
MMAP_ALL = {"MALLOC_MMAP_THRESHOLD_": "32768"}
#: Failures after which the child process is not used again.
OUT_OF_MEMORY = ("MemoryError", "ImportError", "BudgetError")
#: Address space of the child process: a peer that wants more fails there and does not take the machine with it.
ADDRESS_SPACE = 14 << 30


@dataclass(frozen=True)
class Cell:
    """One contestant, one task, one row; `module` is the benchmark module whose `run_cell` does it."""

    module: str
    row: str
    task: str
    contestant: str
    budget: float  # seconds to spend on repeats
    limit: float  # seconds on the wall after which the process is stopped
    fresh: bool = False  # in a new process, for memory figures
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """Seconds per unit (one case, one file) of the best repeat, and what the contestant answered."""

    cpu: float
    wall: float
    repeats: int
    units: int
    peak: int | None = None  # bytes: growth of the resident set while the work ran once more
    note: str = ""
    answers: tuple[NDArray[np.float64], ...] = ()  # compared between contestants; one array a case
    values: dict[str, float] = field(default_factory=dict)  # anything else worth printing


@dataclass(frozen=True)
class Failure:
    """Why there is no figure.

    `limit` when the time ran out: CPU seconds that the whole cell had used when it was stopped (the clock on the wall
    also counts what other processes take). `tried` is False where nothing was asked of the contestant, which is no
    failure of its: it is not installed, or does not offer the task.
    """

    reason: str
    limit: float | None = None
    detail: str = ""
    tried: bool = True


NOT_INSTALLED = Failure("not installed", tried=False)
NOT_ASKED = Failure("not asked", tried=False)


def one_thread() -> None:
    """Ask every numeric library for one thread; must come before they are imported (the child inherits it)."""
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"


def versions(names: Iterable[str]) -> str:
    """Installed versions, and the machine, in one line."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join([f"Python {platform.python_version()}", *found, f"{platform.machine()} {platform.system()}"])


def installed(module: str) -> bool:
    """Whether a peer can be imported; looked up without importing it."""
    return importlib.util.find_spec(module) is not None


# --- time ---------------------------------------------------------------------------------------------------------


def measure(
    call: Callable[[], object], *, budget: float, units: int = 1, most: int = 1000, least: int = 1, warm: bool = True
) -> tuple[float, float, int]:
    """(CPU, wall) seconds per unit of the best repeat by CPU time, and the number of repeats.

    `call` does `units` units of work. It runs until `budget` seconds are spent, at least `least` times; calls
    shorter than the clock can tell are grouped.
    """
    if warm:
        call()
    start = time.perf_counter()
    group = 1
    best_cpu = best_wall = float("inf")
    repeats = 0
    while repeats < most:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(group):
            call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if wall < SHORTEST_STRETCH and group < 1 << 20:
            group *= max(2, int(1.2 * SHORTEST_STRETCH / max(wall, 1e-7)))
            continue
        repeats += 1
        if cpu / group < best_cpu:
            best_cpu, best_wall = cpu / group, wall / group
        if repeats >= least and time.perf_counter() - start > budget:
            break
    return best_cpu / units, best_wall / units, repeats


# --- memory -------------------------------------------------------------------------------------------------------


class PeakMemory:
    """Growth of the resident set inside a `with` block, in bytes: `memory.peak`.

    Linux keeps the high-water mark (VmHWM) and lets it be reset through `clear_refs`; elsewhere a thread samples
    the resident set every millisecond (with psutil), or the growth of `ru_maxrss` is taken. What earlier work left
    in the allocator is given back first, as it would hide the growth.
    """

    peak: int = 0

    def __enter__(self) -> PeakMemory:
        gc.collect()
        _give_back()
        self._exact = _reset_high_water()
        self._stop = threading.Event()
        self._before = _resident()
        self._top = self._before
        self._thread: threading.Thread | None = None
        if not self._exact and self._before:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        elif not self._exact:
            self._before = _max_resident()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            top = max(self._top, _resident())
        else:
            top = _status_bytes("VmHWM") if self._exact else _max_resident()
        self.peak = max(0, top - self._before)

    def _sample(self) -> None:
        while not self._stop.wait(0.001):
            self._top = max(self._top, _resident())


def _give_back() -> None:
    """Return free pages of the C allocator to the system (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _status_bytes(key: str) -> int:
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _reset_high_water() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return _status_bytes("VmHWM") > 0


def _resident() -> int:
    found = _status_bytes("VmRSS")
    if not found and installed("psutil"):
        import psutil

        found = int(psutil.Process().memory_info().rss)
    return found


def _max_resident() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if platform.system() == "Darwin" else peak * 1024)


# --- the child process --------------------------------------------------------------------------------------------


def _cpu_of(pid: int) -> float | None:
    """CPU seconds of a running process so far, where the system tells them."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(pipe: Any) -> None:
    """Work of the child: cells in, measurements out. Cells of one row share `context`."""
    if platform.system() == "Linux":
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))
    row: tuple[str, str] | None = None
    context: dict[str, Any] = {}
    while True:
        cell: Cell | None = pipe.recv()
        if cell is None:
            return
        if (cell.module, cell.row) != row:
            context, row = {}, (cell.module, cell.row)
            gc.collect()
        try:
            module = importlib.import_module(f"benchmarks.{cell.module}")
            result: Measurement | Failure = module.run_cell(cell, context)
        except ImportError as error:
            absent = isinstance(error, ModuleNotFoundError) and error.name == cell.contestant.split()[0]
            result = NOT_INSTALLED if absent else Failure("ImportError", detail=f"{error}")
        except NotImplementedError as error:  # a peer that does not offer the task did not fail at it
            result = Failure("not offered", detail=f"{error}", tried=cell.contestant.split()[0] == "gramgraph")
        except Exception as error:  # a peer may fail in any way; the table says how
            result = Failure(f"{type(error).__name__}", detail=f"{error}\n{traceback.format_exc(limit=-4)}")
        pipe.send(result)


class Runner:
    """Runs cells one after the other in a child process, and replaces the child when a cell has to be stopped."""

    def __init__(self) -> None:
        one_thread()
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._pipe: Any = None
        self.records: list[tuple[Cell, Measurement | Failure]] = []  # what was measured so far
        self.rows: Collection[str] | None = None  # if given, no other row is run

    def run(self, cell: Cell) -> Measurement | Failure:
        """The measurement of one cell, or why there is none; kept in `records` if it was asked for."""
        if self.rows is not None and cell.row not in self.rows:
            return NOT_ASKED
        result = self._measure(cell)
        self.records.append((cell, result))
        return result

    def _measure(self, cell: Cell) -> Measurement | Failure:
        if cell.contestant != "gramgraph" and not installed(cell.contestant.split()[0]):
            return NOT_INSTALLED
        if cell.fresh:
            self.close()
        if self._process is None or not self._process.is_alive():
            self._start(MMAP_ALL if cell.fresh else {})
        before = _cpu_of(self._process.pid)
        self._pipe.send(cell)
        if not self._pipe.poll(cell.limit):
            after = _cpu_of(self._process.pid)
            self.close()
            spent = cell.limit if before is None or after is None else min(after - before, cell.limit)
            return Failure(f"> {spent:.3g} s", limit=spent)
        try:
            result: Measurement | Failure = self._pipe.recv()
        except (EOFError, ConnectionError):
            code = self._process.join(5) or self._process.exitcode
            self.close()
            return Failure(f"died (exit code {code})")
        if cell.fresh or (isinstance(result, Failure) and result.reason in OUT_OF_MEMORY):
            self.close()
        return result

    def _start(self, environment: dict[str, str]) -> None:
        self._pipe, other = self._context.Pipe()
        # Not a daemon: those may not begin processes, as some work on two cores does.
        self._process = self._context.Process(target=_serve, args=(other,))
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)  # the child reads it when it starts
        self._process.start()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        other.close()

    def close(self) -> None:
        """Stop the child."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None


@contextmanager
def runner() -> Iterator[Runner]:
    """A `Runner` that is closed at the end."""
    made = Runner()
    try:
        yield made
    finally:
        made.close()
