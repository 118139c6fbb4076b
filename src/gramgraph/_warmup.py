"""Compile ahead of the first use: `gg.warmup("discrete", "hmm")` and `gramgraph warmup discrete hmm`.

Workers are processes that run journeys (`_journeys.py`) with everything compiled; what they compile is kept in files,
where later processes find it. Files are replaced whole, so a warm-up can be stopped at any time and run twice at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any

from gramgraph._numerics.aside import environment
from gramgraph._progress import Progress, reporting
from gramgraph._validation import check_count
from gramgraph.exceptions import GramGraphError, OptionError, did_you_mean

__all__ = ["Warmup", "capabilities", "run", "warmup"]

#: (capability, functions compiled so far, seconds when it is done, error or "").
Tell = Callable[[str, int, float | None, str], object]


@dataclass(frozen=True)
class Warmup:
    """What a warm-up compiles, and its process where it goes on in the background."""

    capabilities: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def running(self) -> bool:
        """Whether it still goes on."""
        return self.process is not None and self.process.poll() is None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether all went well."""
        return self.process is None or self.process.wait(timeout) == 0


def capabilities() -> tuple[str, ...]:
    """The names of all that can be compiled ahead.

    >>> capabilities()[:2]
    ('discrete', 'approximate')
    """
    from gramgraph._journeys import CAPABILITIES

    return tuple(CAPABILITIES)


def warmup(*names: str, background: bool = False, progress: Progress = True, n_jobs: int | None = None) -> Warmup:
    """Compile what these capabilities need, so that their first use in later processes is as quick as the next.

    Parameters
    ----------
    *names
        Capabilities: "discrete", "hmm", "svm", …; all of them by default, or with "all".
    background
        Start it as a process of its own and return at once. (Of itself only the explorer compiles so.)
    progress
        True shows a bar on a terminal or in a notebook; a function is called with (done, total).
    n_jobs
        Processes at a time, at least 1: the cores of the machine by default.

    Examples
    --------
    >>> import gramgraph as gg
    >>> gg.warmup("discrete", background=True).wait()  # doctest: +SKIP
    True
    """
    chosen = _chosen(names)
    if n_jobs is not None:
        check_count("n_jobs", n_jobs)
    if background:
        command = [sys.executable, "-m", "gramgraph", "warmup", *chosen, *([f"--jobs={n_jobs}"] if n_jobs else [])]
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            command, env=environment(), start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere
        )
        return Warmup(chosen, {}, process)
    with reporting(progress, len(chosen), "capabilities") as report:
        seconds: dict[str, float] = {}

        def tell(name: str, count: int, took: float | None, error: str) -> None:
            if took is not None:
                seconds[name] = took
                if report is not None:
                    report(len(seconds))

        run(chosen, tell, n_jobs=n_jobs)
    return Warmup(chosen, seconds)


def run(names: Iterable[str], tell: Tell, *, n_jobs: int | None = None) -> None:
    """Compile these capabilities on several workers; `tell` hears of every step, in this thread."""
    from gramgraph._journeys import AFTER

    chosen = _chosen(tuple(names))
    n_workers = max(1, min(n_jobs or _cores(), len(chosen)))
    waiting = list(chosen)
    news: SimpleQueue[tuple[int, str, int, float | None, str]] = SimpleQueue()
    workers = _begun(n_workers, news)
    idle = set(range(n_workers))
    busy: dict[int, str] = {}
    failed: dict[str, str] = {}
    try:
        while waiting or busy:
            for name in [n for n in waiting if not set(AFTER.get(n, ())) & {*waiting, *busy.values()} - {n}]:
                if idle:
                    waiting.remove(name)
                    idle.remove(k := min(idle))  # the one that ran what the others follow, if it is free
                    busy[k] = name
                    workers[k].start(name)
            k, name, count, took, error = news.get()
            tell(name, count, took, error)
            if took is not None:
                idle.add(k)
                del busy[k]
                if error:
                    failed[name] = error
    finally:
        for worker in reversed(workers):  # the first one waits for its copies
            worker.stop()
    if failed:
        raise GramGraphError("; ".join(f"{name} could not be compiled ahead: {why}" for name, why in failed.items()))


def _chosen(names: tuple[str, ...]) -> tuple[str, ...]:
    known = capabilities()
    if "all" in names:
        return known
    for name in names:
        if name not in known:
            there = ", ".join(known)
            raise OptionError(f"{name!r} is not a capability. There are: {there}, all.{did_you_mean(name, known)}")
    return tuple(name for name in known if name in names) or known


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begun(n: int, news: SimpleQueue[Any]) -> list[_Worker]:
    """So many workers. Where a process can be copied safely all are copies of the first one, which has imported what
    they need; elsewhere each begins with its first journey."""
    workers = [_Worker(k, news) for k in range(n)]
    if sys.platform == "linux":
        workers[0].begin(workers[1:])
    return workers


class _Worker:
    """A process that runs the journeys whose names it is told, one after the other; it ends when its input ends."""

    def __init__(self, number: int, news: SimpleQueue[Any]) -> None:
        self._number, self._news, self._name = number, news, ""
        self._lock = threading.Lock()
        self._input: IO[str] | None = None  # None before it begins and after its end
        self._process: subprocess.Popen[str] | None = None  # None where it is a copy of another one
        self._pid = 0

    def begin(self, others: Sequence[_Worker] = ()) -> IO[str]:
        """Start the process, and in copies of it the others; its input."""
        pipes = [(os.pipe(), os.pipe()) for _ in others]
        theirs = [number for hears, says in pipes for number in (hears[0], says[1])]
        command = [sys.executable, "-W", "ignore", "-m", "gramgraph._journeys"]
        command += [f"{hears[0]}:{says[1]}" for hears, says in pipes]
        pipe = subprocess.PIPE
        self._process = process = subprocess.Popen(
            command,
            env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, pass_fds=theirs,
        )  # fmt: skip
        for number in theirs:
            os.close(number)
        assert process.stdin is not None and process.stdout is not None
        self._pid = process.pid
        self._hear(process.stdin, process.stdout)
        for other, (hears, says) in zip(others, pipes, strict=True):
            other._hear(os.fdopen(hears[1], "w"), os.fdopen(says[0]))
        return process.stdin

    def _hear(self, tell: IO[str], told: IO[str]) -> None:
        self._input = tell
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def start(self, name: str) -> None:
        """Let it run a journey, beside what this process does."""
        with self._lock:  # its end is reported, or it is seen here
            self._name, self._since = name, time.perf_counter()
            tell = self._input
        tell = tell or self.begin()
        with suppress(OSError):  # it has died: its listener says so
            tell.write(f"{name}\n")
            tell.flush()

    def _listen(self, told: IO[str]) -> None:
        with told:
            for line in told:
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind == "process":
                    self._pid = int(rest)
                elif kind == "compiled":
                    self._news.put((self._number, self._name, int(rest), None, ""))
                elif kind in ("done", "failed"):
                    count, _, error = rest.partition(" ")
                    name, took, self._name = self._name, time.perf_counter() - self._since, ""
                    self._news.put((self._number, name, int(count), took, error))
        process, self._process = self._process, None
        why = "its process ended" if process is None else f"the process ended with {process.wait()}"
        with self._lock:
            self._input, name = None, self._name
        if name:
            self._news.put((self._number, name, 0, time.perf_counter() - self._since, why))

    def stop(self) -> None:
        """End it, now if it is at work; what it has compiled is kept."""
        busy, self._name = self._name, ""
        process, tell = self._process, self._input
        with suppress(OSError):
            if busy and self._pid:
                os.kill(self._pid, signal.SIGTERM)
            if tell is not None:
                tell.close()
        if process is not None:
            process.wait()
