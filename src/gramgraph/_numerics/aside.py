"""Compiling aside: for programs that must answer while something is compiled, such as a server.

Numba holds the interpreter while it compiles, up to half a minute for the loops of trees. Within `with aside:` a loop
that is worth compiling is described to a process of its own, which compiles it into files; a thread of this process
loads it from there, and until then calls are interpreted.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from gramgraph._numerics import compiling, kept, prices

__all__ = ["Aside", "environment"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Interpreted seconds of a group after which it is compiled aside: nobody waits for it, so it may be earlier than where
#: somebody does.
SOON = 1.0
#: Seconds without work after which the process ends.
IDLE = 60.0


def environment() -> dict[str, str]:
    """For processes that compile: everything compiled, one thread, the package found where this process found it."""
    here = str(Path(__file__).resolve().parent.parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {"GRAMGRAPH_TIER": "compiled", "PYTHONPATH": os.pathsep.join(paths), **dict.fromkeys(_THREADS, "1")}
    return {**os.environ, **ours}


class Aside:
    """Takes the compiling of its threads (`with aside.here():`) to another process; `close()` ends that."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Any, str] | None] = SimpleQueue()
        self._taken: dict[tuple[Any, str], bool] = {}  # whether it is on its way, or failed
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    @contextmanager
    def here(self) -> Iterator[None]:
        """In this thread, nothing is compiled while others wait."""
        with compiling.taken_by(self):
            yield

    def due(self, door: Any, seconds: float) -> bool:
        """Whether a loop that would take so many seconds interpreted is worth being compiled, or loaded."""
        if compiling.spent(door.group) + seconds > SOON:
            return True
        return compiling.spent() + seconds > prices.LOAD_FIRST and bool(door.kept())

    def takes(self, door: Any, seconds: float, args: Any, kwargs: Any) -> bool:
        """Whether a call of so many seconds is interpreted meanwhile: not where that takes longer than the compiler."""
        loading = prices.LOAD_NEXT if "numba" in sys.modules else prices.LOAD_FIRST
        if self._closed or kwargs or seconds > (loading if door.kept() else prices.price_of(door.group)):
            return False
        try:
            job = (door, json.dumps([_described(value) for value in args]))
        except TypeError:
            return False
        with self._lock:
            if job not in self._taken:
                self._taken[job] = door.keeps and kept.Place(door.py_func).to_write is not None
                if self._taken[job]:
                    self._begin(job)
            return self._taken[job]

    def _begin(self, job: tuple[Any, str]) -> None:
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the process; what it has compiled is kept."""
        self._closed = True
        self._jobs.put(None)
        self._rest()

    def _rest(self) -> None:
        """No process until there is work again."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was left to write to it
                    pipe.close()  # type: ignore[union-attr]

    def _work(self) -> None:
        while not self._closed:
            try:
                job = self._jobs.get(timeout=IDLE if self._process is not None else None)
            except Empty:
                self._rest()
                continue
            if job is None:
                break
            try:
                made = job[0].kept() or self._compiled(job)
                if made:
                    _load(*job)
                self._taken[job] = made
            except Exception:  # whatever it is, the next call that needs it compiles it where it stands
                self._taken[job] = False

    def _compiled(self, job: tuple[Any, str]) -> bool:
        """Whether the other process has compiled it, and its files are there."""
        door, text = job
        process = self._running()
        if process is None or process.stdin is None or process.stdout is None:
            return False
        with suppress(OSError):  # it has died
            process.stdin.write(f"{door.__module__} {door.__name__} {text}\n")
            process.stdin.flush()
            return process.stdout.readline() == "done\n" and bool(door.kept(anew=True))
        return False

    def _running(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._process is None and not self._closed:
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-m", "gramgraph._numerics.aside"],
                    env=environment(),
                    stdin=pipe,
                    stdout=pipe,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the one who started it
                )
            return self._process


# ------------------------------------------------------------------------------------- types of arguments, as text


def _described(value: Any) -> Any:
    """The type of an argument, as Numba tells types apart."""
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        if value.dtype.names or value.dtype.hasobject:
            raise TypeError
        return ["array", value.dtype.str, value.ndim, layout, flags.writeable]
    if kind in (bool, int, float, complex, str) or value is None:
        return kind.__name__
    if isinstance(value, np.generic):
        return ["scalar", value.dtype.str]
    if kind is tuple:
        return ["tuple", [_described(item) for item in value]]
    if isinstance(value, tuple):  # one with names
        return ["named", kind.__module__, kind.__qualname__, [_described(item) for item in value]]
    raise TypeError


def _type(told: Any) -> Any:
    """Numba's type of a description."""
    import numba
    from numba import types

    if isinstance(told, str):
        example = {"bool": True, "int": 1, "float": 1.0, "complex": 1j, "str": "", "NoneType": None}
        return numba.typeof(example[told])
    kind, *rest = told
    if kind == "array":
        dtype, ndim, layout, writeable = rest
        return types.Array(numba.from_dtype(np.dtype(dtype)), ndim, layout, readonly=not writeable)
    if kind == "scalar":
        return numba.from_dtype(np.dtype(rest[0]))
    if kind == "tuple":
        return types.BaseTuple.from_types(tuple(map(_type, rest[0])))
    module, name, items = rest
    return types.BaseTuple.from_types(tuple(map(_type, items)), getattr(importlib.import_module(module), name))


def _load(door: Any, text: str) -> None:
    """Compile the door's function for arguments of these types, or load it where it is kept."""
    from numba import types

    given = [_type(told) for told in json.loads(text)]
    defaults = door.py_func.__defaults__ or ()
    missing = door.py_func.__code__.co_argcount - len(given)
    left = [types.Omitted(value) for value in defaults[len(defaults) - missing :]]
    door.compiled.compile(tuple(given + left))


def _serve() -> None:
    """Lines come in, `module name types`; each is compiled, and answered by a line."""
    if hasattr(os, "nice"):
        os.nice(10)
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        module, name, text = line.split(" ", 2)
        try:
            function = getattr(importlib.import_module(module), name)
            _load(getattr(function, "door", function), text)
            said = "done"
        except Exception as error:
            said = f"failed {type(error).__name__}"
        out.write(f"{said}\n")
        out.flush()


if __name__ == "__main__":
    _serve()
