"""Numba's side of the door: dispatchers, and their machine code in files.

Imported when something is compiled or loaded; what only compiling needs is imported when that begins.

Numba keeps machine code in a folder of its own choice and fails where it finds none to write to. Compiling must not
depend on that: here a missing folder costs time, never the answer.
"""

from __future__ import annotations

import functools
import gc
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite.binding import ffi as llvm_calls
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache, _CacheLocator
from numba.core.runtime import rtsys

from gramgraph._interrupt import held_back
from gramgraph._numerics.kept import CAREFUL, Place, read_whole, whole

try:
    from gramgraph._numerics import standing
except ImportError:  # another Numba, with other inner parts: it compiles as it does by itself
    standing = None  # type: ignore[assignment]

__all__ = ["dispatcher", "numpy_for_compiling"]

#: Seconds to wait for a process that adds to an index, many times what that takes; and the locks for which that was not
#: enough, whose holder may never end.
PATIENCE = 5.0
_GIVEN_UP: set[Path] = set()


def dispatcher(
    function: Callable[..., Any], cache: bool, options: dict[str, Any], prepare: Callable[[], object] | None = None
) -> Any:
    """`numba.njit` whose compilation cannot be interrupted halfway and which works without a folder to write to.

    `prepare()` is called before the function is compiled; loading its machine code needs none of that.
    """
    made = numba.njit(no_cfunc_wrapper=True, **options)(function)  # nobody asks for a pointer to it
    made._compilation_chain_init_hook = _nothing  # extensions of Numba are looked for before something is compiled
    made.compile = functools.partial(_compile, made.compile)
    made._compiler.compile = functools.partial(_compile_anew, made._compiler, made._compiler.compile, prepare)
    made.get_call_template = functools.partial(_call_template, made.get_call_template)
    if cache:
        place = Place(function)
        made._cache = _Cache(function) if place.to_read else NullCache()
    return made


def _compile(compile_one: Callable[[Any], Any], signature: Any) -> Any:
    """Compile or load one signature. An interrupt inside would leave half-made entries in Numba's tables."""
    with held_back(), _UNDISTURBED:
        return compile_one(signature)


def _nothing() -> None:
    pass


def _compile_anew(compiler: Any, compile_one: Callable[..., Any], prepare: Any, *types: Any) -> Any:
    """Compile what no file holds, by our steps."""
    if prepare is not None:
        prepare()
    if (pipeline := _compiling_parts()[0]) is not None:
        compiler.pipeline_class = pipeline
    return compile_one(*types)


def _compiling_parts() -> tuple[Any, Any]:
    """The steps from a function to machine code, None for Numba's own, and what compiled functions see as `np`."""
    if standing is None:
        return None, np
    try:
        from gramgraph._numerics.allocating import NUMPY
        from gramgraph._numerics.separate import Pipeline
    except ImportError:  # another Numba
        return None, np
    return Pipeline, NUMPY


def numpy_for_compiling() -> Any:
    """What compiled functions see as `np`."""
    return _compiling_parts()[1]


class _Undisturbed:
    """Inside, nobody looks for garbage: the compiler makes millions of objects and keeps most of them.

    And Numba is not told of each call of LLVM, which it would time for every function that is being compiled.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._again = threading.Lock(), 0, False
        self._calls: Any = getattr(getattr(llvm_calls, "lib", None), "_lock", None)
        self._told: list[Any] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._again = gc.isenabled()
                gc.disable()
                self._told = self._tell([])
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._tell(self._told)
                if self._again:
                    gc.enable()

    def _tell(self, listeners: list[Any]) -> list[Any]:
        """Let these hear of LLVM's calls, between two of them; those that did so before are returned."""
        if not (hasattr(self._calls, "_cblist") and hasattr(self._calls, "_lock")):  # another llvmlite
            return []
        with self._calls._lock:
            before, self._calls._cblist = self._calls._cblist, listeners
        return list(before)


_UNDISTURBED = _Undisturbed()


def _call_template(make: Callable[..., Any], args: Any, kws: Any) -> Any:
    """The type of a call from compiled code, where a constant is a number like any other.

    Numba would compile the function anew for every constant that it is called with.
    """
    unliteral = numba.types.unliteral
    return make([unliteral(each) for each in args], {name: unliteral(each) for name, each in kws.items()})


class _Locator(_CacheLocator):
    """Our choice of folder, name and stamp."""

    def __init__(self, place: Place, file: str) -> None:
        self.place, self._py_file = place, file

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(Place(py_func), py_file)

    def get_cache_path(self) -> str:
        return self.place.to_write or self.place.to_read[0]

    def get_source_stamp(self) -> str:
        return self.place.stamp

    def get_disambiguator(self) -> str:
        return self.place.mark


class _Impl(CompileResultCacheImpl):
    _locator_classes = (_Locator,)

    def reduce(self, cres: Any) -> Any:
        kept = super().reduce(cres)
        return kept if standing is None else standing.bundle(cres, kept)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        rebuild = super().rebuild
        if standing is None:
            return rebuild(target_context, payload)
        return standing.unbundle(target_context, payload, rebuild)


class _Files(IndexDataCacheFile):
    """Index and data of one function, read only if they are whole and nobody else can have written them.

    Unpickling runs what the bytes say: `read_whole` gives those of trusted owners alone.
    """

    def _load_index(self) -> Any:
        found = read_whole(Path(self._index_path))
        version = pickle.dumps(self._version, protocol=-1)
        if found is None or not found.startswith(version):
            return {}
        try:
            stamp, overloads = pickle.loads(found[len(version) :])
        except Exception:  # written by another state of Numba under the same version
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        found = read_whole(Path(self._data_path(name)))
        return None if found is None else pickle.loads(found)

    def _save_index(self, overloads: Any) -> None:
        version = pickle.dumps(self._version, protocol=-1)
        self._write(self._index_path, version + self._dump((self._source_stamp, overloads)))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), self._dump(data))

    def _write(self, path: str, data: bytes) -> None:
        with self._open_for_write(path) as file:
            file.write(whole(data))
        os.chmod(path, 0o644)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of two processes that add to an index at once, one would lose its entry: they wait for each other.

    Where that is not possible, or takes too long, the entry is at risk and nothing else: files are replaced whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gramgraph.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | CAREFUL, 0o600)
    except OSError:  # a link, or of another user
        yield
        return
    try:
        _wait_for(lock, path)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, path: Path) -> None:
    """Take the lock, which others may hold, or give up; the next time that is done at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    until = time.monotonic() + (0.0 if path in _GIVEN_UP else PATIENCE)
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                _GIVEN_UP.add(path)
                return
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return


class _Cache(FunctionCache):
    """Numba's cache of one function; a broken file or a full disk is a miss."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        place, base = self._impl.locator.place, self._impl.filename_base
        self._cache_file = _Files(self._cache_path, base, place.stamp)
        self._others = [_Files(folder, base, place.stamp) for folder in place.to_read if folder != self._cache_path]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code from the first file that holds it, or None.

        Numba would first tell its compiler of all functions that it knows, a third of what the first load costs. That
        is left to the compiler, which asks for it by itself: code that is only loaded needs the memory of arrays.
        """
        rtsys.initialize(target_context)
        own = self._cache_file
        for files in (own, *self._others):
            self._cache_file = files
            try:
                with self._guard_against_spurious_io_errors():
                    if (found := self._load_overload(sig, target_context)) is not None:
                        return found
            except Exception:  # a file that somebody has changed may raise whatever there is
                continue
            finally:
                self._cache_file = own
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with _alone(Path(self._cache_path)):
                super().save_overload(sig, data)
        except OSError:  # full, or read-only since
            self.disable()
