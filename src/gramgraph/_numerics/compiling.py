"""The door to Numba: every loop of this folder is compiled, and its machine code kept, through `njit` from here.

Numba keeps machine code in a folder of its own choice and fails where it finds none to write to. Compiling must not
depend on that: here a missing folder costs time, never the answer.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from gramgraph._interrupt import held_back

__all__ = ["njit"]

_HERE = Path(__file__).resolve().parent
#: `from gramgraph._numerics.room.file import …`, as this folder writes its imports.
_IMPORTED = re.compile(rb"\bgramgraph\._numerics\.([\w.]+)")


def njit(function: Callable[..., Any] | None = None, *, cache: bool = False, **options: Any) -> Any:
    """`numba.njit` whose compilation cannot be interrupted halfway and which works without a folder to write to."""
    if function is None:
        return functools.partial(njit, cache=cache, **options)
    compiled = numba.njit(**options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    compiled.compile = functools.partial(_compile, compiled.compile)
    if cache:
        compiled._cache = _cache_of(function)
    return compiled


def _compile(compile_one: Callable[[Any], Any], signature: Any) -> Any:
    """Compile or load one signature. An interrupt inside would leave half-made entries in Numba's tables."""
    with held_back():
        return compile_one(signature)


# ------------------------------------------------------------------------------------------- machine code in files


class _Cache(FunctionCache):
    """Numba's cache of one function; a broken file or a full disk is a miss, and other files' changes are noticed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = self._cache_file
        file._source_stamp = (file._source_stamp, _stamp(_name_of(function)))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, *_UNREADABLE):
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            try:
                super().save_overload(sig, data)
            except _UNREADABLE:  # an index cut short by a crash: start a new one
                self.flush()
                super().save_overload(sig, data)
        except OSError:  # full, or read-only since
            self.disable()


#: What unpickling a file that was cut short or overwritten raises.
_UNREADABLE = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
)


def _name_of(function: Callable[..., Any]) -> str:
    """room.file of a function of this folder, its file's own name elsewhere (tests)."""
    path = Path(function.__code__.co_filename).with_suffix("")
    return ".".join(path.relative_to(_HERE).parts) if path.is_relative_to(_HERE) else path.name


@functools.cache
def _stamp(name: str) -> str:
    """Digest of a file of this folder and of all that it imports from it: their code is compiled into its own.

    Numba itself looks at the file of the function only and would keep machine code made of an older callee.
    """
    digest = hashlib.sha256()
    for each in sorted(_closure(name)):
        digest.update(each.encode() + b"\0" + _source(each) + b"\0")
    return digest.hexdigest()


def _closure(name: str) -> set[str]:
    """The files of this folder that `name` imports, directly or through others, and itself."""
    seen = {name}
    waiting = [name]
    while waiting:
        for found in _IMPORTED.findall(_source(waiting.pop())):
            if (other := found.decode()) not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


@functools.cache
def _source(name: str) -> bytes:
    try:
        return (_HERE / f"{name.replace('.', '/')}.py").read_bytes()
    except OSError:  # inside an archive: Numba then looks at the whole of it
        return b""


def _cache_of(function: Callable[..., Any]) -> Any:
    """Where the machine code of `function` is kept: Numba's folders, else a temporary one of our own, else nowhere."""
    try:
        return _Cache(function)
    except RuntimeError:  # "no locator available": neither beside the source nor in the home
        folder = _temporary_folder()
    before = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = folder or before
        return _Cache(function)
    except RuntimeError:
        return numba.core.caching.NullCache()
    finally:
        numba.config.CACHE_DIR = before


@functools.cache
def _temporary_folder() -> str | None:
    """A folder that this user alone can write to, in the folder for temporary files; warns, once, that it is needed.

    Whoever can write to it can run code in our name. So it is taken only if it is a true folder (no link) of this
    user, closed to all others, in a place where others cannot replace it.
    """
    folder = _private_folder()
    kept = f"is kept in {folder}, which may be emptied at any time" if folder else "is lost when the process ends"
    warnings.warn(
        "neither the folder of gramgraph nor the home folder can be written to, so what is compiled "
        f"{kept}. Set NUMBA_CACHE_DIR to a folder of your own to keep it.",
        UserWarning,
        stacklevel=2,
    )
    return folder


def _private_folder() -> str | None:
    if not hasattr(os, "geteuid"):  # Windows, where every user has a folder for temporary files and a home
        return None
    user = os.geteuid()
    try:
        parent = Path(tempfile.gettempdir())
        folder = parent / f"gramgraph-{user}"
        above = parent.stat()
        if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
            return None
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return str(folder) if ours and above.st_uid in (0, user) else None
