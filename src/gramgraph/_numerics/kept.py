"""Where machine code is kept, and whether it is there for a function as its source is now; without importing Numba."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import stat
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Place", "folders_of", "holds", "processor_features", "read_trusted", "read_whole", "whole"]

_HERE = Path(__file__).resolve().parent
#: Where the code of the library is, as frames name it.
_LIBRARY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
#: How files are opened that others may have put there: links are not followed, and pipes not waited for.
CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: Bytes of a checksum.
_SUM = 4
#: `gramgraph._numerics.room.file`, as this folder writes its imports.
_IMPORTED = re.compile(rb"\bgramgraph\._numerics\.([\w.]+)")

#: The files that tell how all others are compiled.
_COMPILERS = (
    "machine_code",
    "separate",
    "allocating",
    "shortcuts",
    "folding",
    "standing_values",
    "skipping",
    "inferring",
    "renaming",
)


class Place:
    """The files of one function: the beginning of their names, their stamp, and the folders that may hold them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.file = Path(function.__code__.co_filename)
        self.stamp = _stamp(_name_of(self.file))
        self.mark = f"{function.__code__.co_firstlineno}-{platform_mark()}"
        name = f"{self.file.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        self.name = f"{name}-{self.mark}.py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        self.to_write, self.to_read = folders_of(str(self.file.parent))


def holds(function: Callable[..., Any]) -> bool:
    """Whether machine code of this function is kept, made from this source by this Numba for this processor."""
    place = Place(function)
    stamp = place.stamp.encode()
    return any(stamp in (read_whole(Path(folder, f"{place.name}.nbi")) or b"") for folder in place.to_read)


def whole(data: bytes) -> bytes:
    """What is written to a file for `data`: a checksum goes before them."""
    return _sum(data) + data


def read_whole(path: Path) -> bytes | None:
    """The data that were written with a checksum; None where they are damaged, or not to be trusted.

    Machine code that is damaged would not fail but do something else. (The checksum keeps nobody out: owners do.)
    """
    found = read_trusted(path) or b""
    data = found[_SUM:]
    return data if found[:_SUM] == _sum(data) else None


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_SUM, "big")


def read_trusted(path: Path) -> bytes | None:
    """The bytes of a file, unless somebody could have written it who cannot write the library's own files anyway."""
    try:
        with open(path, "rb", opener=_opened) as file:
            found = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(found.st_mode) and _ours(found) else None
    except (OSError, MemoryError):
        return None


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | CAREFUL)


def _ours(found: os.stat_result) -> bool:
    """Whether a file or folder is of this user, of the owner of the library or of root, and closed to others."""
    if not hasattr(os, "geteuid"):  # Windows, where the folders of a user are closed to others
        return True
    return found.st_uid in (os.geteuid(), _owner(), 0) and not found.st_mode & 0o022


@functools.cache
def _owner() -> int:
    return _HERE.stat().st_uid


# ---------------------------------------------------------------------------------------------------- folders


def folders_of(source: str) -> tuple[str | None, list[str]]:
    """(where new machine code is written, where it is looked for) for the functions of files in one folder."""
    try:
        temporary = tempfile.gettempdir()
    except OSError:  # nothing at all can be written to
        temporary = ""
    return _folders(source, os.environ.get("NUMBA_CACHE_DIR", ""), temporary)


@functools.cache
def _folders(source: str, given: str, temporary: str) -> tuple[str | None, list[str]]:
    own = f"{Path(source).name}_{hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()}"
    candidates = [Path(given, own)] if given else []
    if not candidates or not _writable(candidates[0]):
        candidates += [Path(source, "__pycache__"), _user_cache() / "gramgraph" / own]
    to_write = next((str(folder) for folder in candidates if _writable(folder)), None)
    if to_write is None and (private := _temporary_folder(temporary)) is not None:
        to_write = str(Path(private, own))
    to_read = [str(folder) for folder in candidates if folder.is_dir()]
    return to_write, list(dict.fromkeys([*([to_write] if to_write else []), *to_read]))


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _writable(folder: Path) -> bool:
    """Whether files can be written there, after making what is missing of the path."""
    while not folder.exists():
        if folder == folder.parent:
            return False
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


@functools.cache
def _temporary_folder(parent: str) -> str | None:
    """A folder that this user alone can write to, in the folder for temporary files; warns, once, that it is needed.

    Whoever can write to it can run code in our name. So it is taken only if it is a true folder (no link) of this
    user, closed to all others, in a place where others cannot replace it.
    """
    folder = _private_folder(Path(parent)) if parent else None
    stays = f"is kept in {folder}, which may be emptied at any time" if folder else "is lost when the process ends"
    warnings.warn(
        "neither the folder of gramgraph nor the home folder can be written to, so what is compiled "
        f"{stays}. Set NUMBA_CACHE_DIR to a folder of your own to keep it.",
        UserWarning,
        stacklevel=_level_of_user(),
    )
    return folder


def _level_of_user() -> int:
    """How many calls above the caller the nearest one from outside the library stands."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    return level


def _private_folder(parent: Path) -> str | None:
    if not hasattr(os, "geteuid"):  # Windows, where every user has a folder for temporary files and a home
        return None
    user = os.geteuid()
    try:
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


# ----------------------------------------------------------------------------------------------------- stamps


def _name_of(file: Path) -> str:
    """room.file of a file of this folder, its own name elsewhere (tests)."""
    path = file.with_suffix("")
    return ".".join(path.relative_to(_HERE).parts) if path.is_relative_to(_HERE) else str(path)


@functools.cache
def _stamp(name: str) -> str:
    """Digest of a file, of all that it imports from this folder, whose code is compiled into its own, and of the way.

    Numba itself looks at the file of the function only and would keep machine code made of an older callee.
    """
    digest = hashlib.sha256()
    for each in sorted(_closure(name)):
        digest.update(each.encode() + b"\0" + _source(each) + b"\0")
    return digest.hexdigest()


def _closure(name: str) -> set[str]:
    """The files of this folder that `name` imports, directly or through others, itself, and those that compile it."""
    seen = {name, *_COMPILERS}
    waiting = list(seen)
    while waiting:
        for found in _IMPORTED.findall(_source(waiting.pop())):
            if (other := found.decode()) not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


@functools.cache
def _source(name: str) -> bytes:
    path = Path(f"{name}.py") if os.sep in name else _HERE / f"{name.replace('.', '/')}.py"
    try:
        return path.read_bytes()
    except OSError:  # inside an archive
        return b""


@functools.cache
def platform_mark() -> str:
    """Eight letters for this Numba on this processor: other ones keep files of their own."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        numba = f"{version('numba')} {version('llvmlite')} {version('numpy')}"
    except PackageNotFoundError:
        numba = ""
    chosen = [os.environ.get(f"NUMBA_{name}", "") for name in ("CPU_NAME", "CPU_FEATURES", "OPT")]
    parts = (numba, platform.machine(), _processor(), *processor_features(), *chosen)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _processor() -> str:
    """The name of the processor, as the system gives it."""
    wanted = ("vendor_id", "cpu family", "model", "stepping", "CPU ")
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return platform.processor()
    return "\n".join(line for line in first.splitlines() if line.startswith(wanted))


@functools.cache
def processor_features() -> tuple[str, ...]:
    """Names of what this processor can do, as NumPy found out."""
    import numpy._core

    found = getattr(numpy._core, "_multiarray_umath", None)
    found = getattr(found, "__cpu_features__", {})
    return tuple(sorted(name for name, there in found.items() if there))
