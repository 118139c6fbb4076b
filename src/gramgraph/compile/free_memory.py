"""How much memory a process may still take: what the system has, and what control groups and limits leave of it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Where nothing can be asked.
UNKNOWN = 4e9
#: Limits from here on mean that there is none (version 1 writes the largest multiple of a page).
NO_LIMIT = 2.0**60
ROOT = Path("/")


def available_memory() -> float:
    """Bytes that this process can take without swapping: the least of what the system, the control groups it runs in
    (containers, batch systems) and its own limits (`ulimit -v`, `ulimit -d`) leave."""
    return max(min(_system_room(), _group_room(), _limit_room()), 0.0)


# ------------------------------------------------------------------------------------------------- the system


def _system_room() -> float:
    try:
        if sys.platform == "win32":
            return _windows_room(ctypes.windll.kernel32)
        if sys.platform == "darwin":
            return _mac_room(ctypes.CDLL(None))
        return _linux_room()
    except (OSError, ValueError, AttributeError):
        return _half_of_all()


def _linux_room(root: Path = ROOT) -> float:
    for line in (root / "proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    raise ValueError("no line MemAvailable")


class _VmStatistics(ctypes.Structure):
    """`vm_statistics64` of Mach: counts of pages and, between them, of events."""

    _fields_ = (
        ("free", ctypes.c_uint32), ("active", ctypes.c_uint32), ("inactive", ctypes.c_uint32),
        ("wired", ctypes.c_uint32), ("events", ctypes.c_uint64 * 9), ("purgeable", ctypes.c_uint32),
        ("speculative", ctypes.c_uint32), ("compressions", ctypes.c_uint64 * 4), ("compressor", ctypes.c_uint32),
        ("throttled", ctypes.c_uint32), ("external", ctypes.c_uint32), ("internal", ctypes.c_uint32),
        ("uncompressed", ctypes.c_uint64),
    )  # fmt: skip


HOST_VM_INFO64 = 4


def _mac_room(library: Any) -> float:
    """Free and inactive pages, as the activity monitor counts what is available."""
    found = _VmStatistics()
    count = ctypes.c_uint32(ctypes.sizeof(found) // 4)
    library.mach_host_self.restype = ctypes.c_uint32
    failed = library.host_statistics64(
        ctypes.c_uint32(library.mach_host_self()), HOST_VM_INFO64, ctypes.byref(found), ctypes.byref(count)
    )
    if failed:
        raise OSError(failed, "host_statistics64")
    return float((found.free + found.inactive) * os.sysconf("SC_PAGE_SIZE"))


class _MemoryStatus(ctypes.Structure):
    """`MEMORYSTATUSEX` of Windows."""

    _fields_ = (
        ("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64), ("total_commit", ctypes.c_uint64), ("available_commit", ctypes.c_uint64),
        ("total_addresses", ctypes.c_uint64), ("available_addresses", ctypes.c_uint64), ("reserved", ctypes.c_uint64),
    )  # fmt: skip


def _windows_room(kernel: Any) -> float:
    """Physical memory that is free, within what may still be committed and addressed."""
    found = _MemoryStatus()
    found.length = ctypes.sizeof(found)
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(found)):
        raise OSError("GlobalMemoryStatusEx")
    return float(min(found.available, found.available_commit, found.available_addresses))


def _half_of_all() -> float:
    try:
        return 0.5 * float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return UNKNOWN


# ------------------------------------------------------------------------------------------------- control groups


def _group_room(root: Path = ROOT) -> float:
    """What the memory control groups of this process, and all groups above them, leave; infinite without limits."""
    if not sys.platform.startswith("linux"):
        return float("inf")
    return min((_left_in(folder) for folder in _groups(root)), default=float("inf"))


def _groups(root: Path) -> Iterator[Path]:
    """The folders of the groups, from the process's own up to the mounted root; of versions 1 and 2."""
    mounts = _mounts(root)
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        top, mounted = mounts.get("memory" if controllers else "", ("/", ""))
        if not mounted:
            continue
        # inside a container the mount shows a part of the tree only: the path is counted from there
        below = path[len(top.rstrip("/")) :] if path == top or path.startswith(top.rstrip("/") + "/") else ""
        base = root / mounted.lstrip("/")
        folder = base / below.strip("/")
        if ".." in folder.parts or not folder.is_dir():
            folder = base
        yield folder
        while folder != base:
            folder = folder.parent
            yield folder


def _mounts(root: Path) -> dict[str, tuple[str, str]]:
    """("" for version 2, "memory" for version 1) → (what part of the tree is mounted, where)."""
    found: dict[str, tuple[str, str]] = {}
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("", (fields[3], fields[4]))
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            found.setdefault("memory", (fields[3], fields[4]))
    return found


def _left_in(folder: Path) -> float:
    """Limit less use of one group; pages of files that are not in use count as free, as for the kernel."""
    limits = [_number(folder / name) for name in ("memory.max", "memory.high", "memory.limit_in_bytes")]
    limit = min((value for value in limits if value is not None), default=NO_LIMIT)
    if limit >= NO_LIMIT:
        return float("inf")
    used = _number(folder / "memory.current")
    if used is None:
        used = _number(folder / "memory.usage_in_bytes") or 0.0
    stat = dict(line.split()[:2] for line in _lines(folder / "memory.stat") if len(line.split()) >= 2)
    idle = stat.get("total_inactive_file", stat.get("inactive_file", "0"))
    return limit - used + min(float(idle) if idle.isdecimal() else 0.0, used)


def _number(path: Path) -> float | None:
    """The number that a file holds; None where there is no file, or it says "max"."""
    text = "".join(_lines(path)[:1]).strip()
    return float(text) if text.isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


# ------------------------------------------------------------------------------------------------- limits


def _limit_room() -> float:
    """What RLIMIT_AS and RLIMIT_DATA leave; infinite without limits."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    room = float("inf")
    addresses, data = _in_use()
    for kind, used in (("RLIMIT_AS", addresses), ("RLIMIT_DATA", data)):
        limit = resource.getrlimit(getattr(resource, kind))[0] if hasattr(resource, kind) else resource.RLIM_INFINITY
        if limit != resource.RLIM_INFINITY and limit >= 0:
            room = min(room, float(limit) - used)
    return room


def _in_use() -> tuple[float, float]:
    """Bytes of addresses and of data that this process holds; where the system does not say, its largest memory."""
    fields = "".join(_lines(ROOT / "proc/self/statm")).split()
    if len(fields) > 5:
        page = float(os.sysconf("SC_PAGE_SIZE"))
        return float(fields[0]) * page, float(fields[5]) * page
    import resource

    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
    return peak, peak
