"""Compile ahead of the first use: `gg.warmup("discrete", "hmm")` and `gramgraph warmup discrete hmm`.

Workers are processes that run journeys (`_journeys.py`) with everything compiled; what they compile is kept in files,
where later processes find it. Files are replaced whole, so a warm-up can be stopped at any time and run twice at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from gramgraph._numerics.aside import environment
from gramgraph._progress import Progress, reporting
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
        Processes at a time: the cores of the machine by default.

    Examples
    --------
    >>> import gramgraph as gg
    >>> gg.warmup("discrete", background=True).wait()  # doctest: +SKIP
    True
    """
    chosen = _chosen(names)
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
    workers = [_Worker(k, news) for k in range(n_workers)]
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
        for worker in workers:
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
            raise OptionError(f"{name!r} is no capability. There are: {there}, all.{did_you_mean(name, known)}")
    return tuple(name for name in known if name in names) or known


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """A process that runs the journeys whose names it is told, one after the other; it ends when its input ends."""

    def __init__(self, number: int, news: SimpleQueue[Any]) -> None:
        self._number, self._news, self._name = number, news, ""
        self._process: subprocess.Popen[str] | None = None

    def start(self, name: str) -> None:
        """Let it run a journey, beside what this process does."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-W", "ignore", "-m", "gramgraph._journeys"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            threading.Thread(target=self._listen, daemon=True).start()
        self._name, self._since = name, time.perf_counter()
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died: its listener says so
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        process = self._process
        assert process is not None and process.stdout is not None
        for line in process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "compiled":
                self._news.put((self._number, self._name, int(rest), None, ""))
            elif kind in ("done", "failed"):
                count, _, error = rest.partition(" ")
                name, took, self._name = self._name, time.perf_counter() - self._since, ""
                self._news.put((self._number, name, int(count), took, error))
        if self._name:
            took = time.perf_counter() - self._since
            self._news.put((self._number, self._name, 0, took, f"the process ended with {process.wait()}"))

    def stop(self) -> None:
        """End it now; what it has compiled is kept."""
        self._name = ""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
