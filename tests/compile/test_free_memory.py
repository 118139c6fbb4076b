"""What the default budget asks: the system, control groups, limits of the process."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from gramgraph.compile import budget, free_memory

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="control groups are a matter of Linux")
MB = 1 << 20


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 {top} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"


@linux_only
def test_a_limit_of_version_two_less_its_use_counts_and_idle_pages_of_files_are_free(tmp_path):
    write(tmp_path, {
        "proc/self/cgroup": "0::/user/job\n",
        "proc/self/mountinfo": V2.format(top="/"),
        "sys/fs/cgroup/user/job/memory.max": f"{500 * MB}\n",
        "sys/fs/cgroup/user/job/memory.current": f"{300 * MB}\n",
        "sys/fs/cgroup/user/job/memory.stat": f"anon 12\ninactive_file {40 * MB}\n",
    })  # fmt: skip
    assert free_memory._group_room(tmp_path) == 240 * MB


@linux_only
def test_the_tightest_group_above_counts(tmp_path):
    write(tmp_path, {
        "proc/self/cgroup": "0::/user/job\n",
        "proc/self/mountinfo": V2.format(top="/"),
        "sys/fs/cgroup/user/job/memory.max": "max\n",
        "sys/fs/cgroup/user/job/memory.current": f"{1 * MB}\n",
        "sys/fs/cgroup/user/memory.max": f"{900 * MB}\n",
        "sys/fs/cgroup/user/memory.high": f"{800 * MB}\n",
        "sys/fs/cgroup/user/memory.current": f"{650 * MB}\n",
    })  # fmt: skip
    assert free_memory._group_room(tmp_path) == 150 * MB


@linux_only
@pytest.mark.parametrize("top, path", [("/", "/"), ("/docker/abc", "/docker/abc"), ("/", "/../outside")])
def test_a_container_sees_its_own_group_at_the_mount(tmp_path, top, path):
    write(tmp_path, {
        "proc/self/cgroup": f"0::{path}\n",
        "proc/self/mountinfo": V2.format(top=top),
        "sys/fs/cgroup/memory.max": f"{64 * MB}\n",
        "sys/fs/cgroup/memory.current": f"{60 * MB}\n",
    })  # fmt: skip
    assert free_memory._group_room(tmp_path) == 4 * MB


@linux_only
def test_a_limit_of_version_one(tmp_path):
    write(tmp_path, {
        "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/docker/abc/job\n0::/\n",
        "proc/self/mountinfo": V1.format(top="/docker/abc"),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{900 * MB}\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{100 * MB}\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{70 * MB}\n",
        "sys/fs/cgroup/memory/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {20 * MB}\n",
    })  # fmt: skip
    assert free_memory._group_room(tmp_path) == 50 * MB


@linux_only
@pytest.mark.parametrize("text", ["", "0::\n", "nonsense", "0::/x\n:::\n4:memory\n"])
def test_broken_files_mean_no_limit(tmp_path, text):
    write(tmp_path, {"proc/self/cgroup": text, "proc/self/mountinfo": "1 2 3\n - cgroup2\n" + V2.format(top="/")})
    assert free_memory._group_room(tmp_path) == float("inf")
    assert free_memory._group_room(tmp_path / "nothing") == float("inf")


@linux_only
def test_limits_of_the_process_count_less_what_it_holds():
    source = Path(free_memory.__file__)
    program = f"""
import resource, runpy
held = runpy.run_path({str(source)!r})
before = held["available_memory"]()
for kind, at in ((resource.RLIMIT_DATA, 1), (resource.RLIMIT_AS, 0)):
    used = held["_in_use"]()[at]
    resource.setrlimit(kind, (int(used + {64 * MB}), -1))
    print(held["available_memory"]() / {MB})
print(before > {64 * MB})
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    *rooms, wide = out.stdout.split()
    assert wide == "True"
    assert all(40 < float(room) <= 64 for room in rooms)


def test_macs_are_asked_for_free_and_inactive_pages():
    class Mach:
        class mach_host_self:
            restype = None

            def __call__(self):
                return 7

        mach_host_self = mach_host_self()

        @staticmethod
        def host_statistics64(host, kind, found, count):
            assert (host.value, kind, count._obj.value) == (7, 4, 38)  # the number of 32-bit words that Mach expects
            found._obj.free, found._obj.inactive, found._obj.active = 10, 5, 99
            return 0

    import os

    assert free_memory._mac_room(Mach) == 15 * os.sysconf("SC_PAGE_SIZE")
    Mach.host_statistics64 = staticmethod(lambda *_: 4)
    with pytest.raises(OSError, match="host_statistics64"):
        free_memory._mac_room(Mach)


def test_windows_is_asked_for_memory_that_is_free_and_may_be_committed():
    class Kernel:
        @staticmethod
        def GlobalMemoryStatusEx(found):
            status = found._obj
            assert status.length == ctypes.sizeof(status) == 64
            status.available, status.available_commit, status.available_addresses = 800, 500, 10**12
            return 1

    assert free_memory._windows_room(Kernel) == 500
    Kernel.GlobalMemoryStatusEx = staticmethod(lambda _: 0)
    with pytest.raises(OSError, match="GlobalMemoryStatusEx"):
        free_memory._windows_room(Kernel)


def test_the_default_budget_is_a_share_of_the_tightest(monkeypatch):
    monkeypatch.setattr(free_memory, "_system_room", lambda: 1e10)
    monkeypatch.setattr(free_memory, "_group_room", lambda: 2e9)
    monkeypatch.setattr(free_memory, "_limit_room", lambda: -5.0)
    assert free_memory.available_memory() == 0.0
    monkeypatch.setattr(free_memory, "_limit_room", lambda: 3e9)
    assert budget.budget_of(None) == pytest.approx(1.2e9)
    assert budget.budget_of(7e8) == 7e8
