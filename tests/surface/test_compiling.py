"""Compiling works without a folder to write to, with broken or foreign cache files, and after interrupts."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib.util
import io
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from importlib import metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba.core import event
from numba.core.caching import NullCache

from gramgraph._interrupt import held_back
from gramgraph._numerics import compiling, kept, machine_code, notice, standing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

pytestmark = pytest.mark.tiers

SOURCE = """
from gramgraph._numerics.compiling import njit

@njit(cache=True)
def square(x):
    return x * x

@njit(cache=True)
def sum_of_squares(n):
    total = 0.0
    for i in range(n):
        total += square(float(i))
    return total
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import the functions above from a file, anew at every call, as another process would."""
    if compiling.disabled():
        pytest.skip("nothing is compiled")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a folder for it would serve for machine code too
    kept._folders.cache_clear()
    (tmp_path / "loops.py").write_text(SOURCE)

    def module(name: str = "loops") -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, tmp_path / "loops.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, made)
        spec.loader.exec_module(made)
        return made

    with compiling.tier("compiled"):
        yield module
    kept._folders.cache_clear()


def hits(function) -> int:
    return sum(function.stats.cache_hits.values())


# --------------------------------------------------------------------------------------------------- interrupts


class Pressing(event.Listener):
    """Presses Ctrl-C at one of the steps of the compiler, counted from 1."""

    def __init__(self, step: int = 0) -> None:
        self.step, self.steps = step, 0

    def on_start(self, event: event.Event) -> None:
        self.steps += 1
        if self.steps == self.step:
            signal.raise_signal(signal.SIGINT)

    on_end = on_start


def test_an_interrupted_compilation_is_finished_first(load, press_ctrl_c):
    watch = Pressing()
    with event.install_listener("numba:run_pass", watch):
        assert load().sum_of_squares(4) == 14.0
    assert watch.steps > 50
    for step in range(1, watch.steps + 1, max(watch.steps // 3, 1)):
        for file in Path(load().__file__).parent.glob("__pycache__/*.nb*"):
            file.unlink()
        loops, pressing = load(), Pressing(step)
        with event.install_listener("numba:run_pass", pressing), pytest.raises(KeyboardInterrupt):
            loops.sum_of_squares(4)
        assert pressing.steps >= watch.steps  # it went on to the end …
        assert len(loops.sum_of_squares.signatures) == 1
        assert loops.sum_of_squares(4) == 14.0 and loops.square(3.0) == 9.0
        again = load()
        assert again.sum_of_squares(4) == 14.0 and hits(again.sum_of_squares) == 1  # … and was kept


def test_every_handler_waits(press_ctrl_c):
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        with held_back(), held_back():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            assert not came
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ------------------------------------------------------------------------------------------------------- folders


@pytest.fixture
def nowhere(load, monkeypatch, tmp_path):
    """Neither the folder of the source nor the home can be written to; temporary files go to a folder of the test."""
    monkeypatch.setattr(kept, "_writable", lambda folder: False)
    (tmp_path / "temporary").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    kept._temporary_folder.cache_clear()
    yield tmp_path / "temporary"
    kept._temporary_folder.cache_clear()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users of Windows have a home")
def test_without_a_home_a_private_folder_serves(load, nowhere):
    loops = load()
    with pytest.warns(UserWarning, match="can be written to.*NUMBA_CACHE_DIR") as told:
        assert loops.sum_of_squares(3) == 5.0
    assert len(told) == 1 and told[0].filename == __file__  # for all functions together, and where they were called
    folder = nowhere / f"gramgraph-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and list(folder.rglob("*.nbi"))
    again = load()
    assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 1


def test_where_not_even_temporary_files_can_be_written_nothing_is_kept(load, nowhere, monkeypatch):
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    loops = load()
    with pytest.warns(UserWarning, match="is lost when the process ends"):
        assert loops.sum_of_squares(3) == 5.0
    assert not kept.holds(loops.square.py_func)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users of Windows have a home")
@pytest.mark.parametrize("trap", ["link", "open to all", "a file", "open parent", "of another user"])
def test_a_folder_that_others_can_write_to_is_not_used(load, nowhere, trap):
    folder = nowhere / f"gramgraph-{os.geteuid()}"
    if trap == "link":
        (nowhere / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(nowhere / "elsewhere")
    elif trap == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif trap == "a file":
        folder.touch(mode=0o600)
    elif trap == "open parent":
        nowhere.chmod(0o777)
    elif os.geteuid() == 0:
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
    else:
        pytest.skip("only root gives folders to others")
    loops = load()
    with pytest.warns(UserWarning, match="is lost when the process ends"):
        assert loops.sum_of_squares(3) == 5.0
    assert isinstance(loops.sum_of_squares._cache, NullCache) and not list(nowhere.rglob("*.nb?"))


# --------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_broken_cache_files_are_replaced(load, suffix, kept):
    first = load()
    assert first.sum_of_squares(3) == 5.0
    files = [f for f in Path(first.__file__).parent.glob("__pycache__/*") if f.suffix == suffix]
    assert len(files) == 2
    for file in files:
        data = file.read_bytes()
        file.write_bytes(data[: int(kept * len(data))])
    second, third = load(), load()
    assert second.sum_of_squares(3) == 5.0 and hits(second.sum_of_squares) == 0
    assert third.sum_of_squares(3) == 5.0 and hits(third.sum_of_squares) == 1


#: Bytes that Python's pickle fails on in ways of its own: without memory, too deep, with errors of what they name.
STRANGE = {
    "room for 2**56 bytes": b"\x80\x04\x8e" + b"\xff" * 6 + b"\x00\x00x",
    "letters that are none": b"\x80\x04\x8c\x02\xff\xfe.",
    "no such module": b"cno_such_module\nname\n.",
    "a call that fails": b"cos\nstat\n(S'/no/such/file'\ntR.",
    "a deep call": b"csys\nsetrecursionlimit\n(I1\ntR.",
    "division by zero": b"coperator\ntruediv\n(I1\nI0\ntR.",
    "nothing": b"",
}


@pytest.mark.parametrize("sums", [False, True], ids=["damaged", "written so"])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_whatever_bytes_stand_in_a_cache_file_it_is_replaced(load, suffix, sums):
    first = load()
    assert first.sum_of_squares(3) == 5.0
    files = list(Path(first.__file__).parent.glob(f"__pycache__/*{suffix}"))
    version = pickle.dumps(first.square._cache._cache_file._version, protocol=-1) if suffix == ".nbi" else b""
    for strange in STRANGE.values():
        for file in files:
            file.write_bytes(kept.whole(version + strange) if sums else version + strange)
        again = load()
        assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 0
    last = load()
    assert last.sum_of_squares(3) == 5.0 and hits(last.sum_of_squares) == 1


def test_a_bit_that_flipped_in_machine_code_is_noticed(load):
    first = load()
    assert first.sum_of_squares(3) == 5.0
    for file in Path(first.__file__).parent.glob("__pycache__/*.nbc"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        assert kept.read_whole(file) is None and kept.read_trusted(file) == data
    again = load()
    assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_is_neither_waited_for_nor_followed(load, tmp_path, kind):
    first = load()
    assert first.sum_of_squares(3) == 5.0
    (index,) = tmp_path.glob("__pycache__/*sum_of_squares*.nbi")
    index.rename(tmp_path / "elsewhere.nbi")
    if kind == "pipe":
        os.mkfifo(index, 0o600)
    elif kind == "link":
        index.symlink_to(tmp_path / "elsewhere.nbi")
    else:
        index.mkdir()
    found: list[object] = []
    asked = (lambda: kept.read_trusted(index), lambda: load().sum_of_squares(3))
    thread = threading.Thread(target=lambda: found.extend(ask() for ask in asked), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [None, 5.0]


@pytest.mark.skipif(fcntl is None, reason="Windows has no such locks")
@pytest.mark.parametrize("lock", ["held for ever", "a link", "a pipe", "a folder"])
def test_without_the_lock_all_goes_on(load, tmp_path, monkeypatch, lock):
    monkeypatch.setattr(machine_code, "PATIENCE", 0.1)
    monkeypatch.setattr(machine_code, "_GIVEN_UP", set())
    path, precious = tmp_path / "__pycache__" / "gramgraph.lock", tmp_path / "precious"
    path.parent.mkdir()
    precious.write_text("all I have")
    if lock == "a link":
        path.symlink_to(precious)
    elif lock == "a pipe":
        os.mkfifo(path, 0o600)
    elif lock == "a folder":
        path.mkdir()
    else:
        path.write_text("")
    with contextlib.ExitStack() as stack:
        if lock == "held for ever":
            fcntl.flock(stack.enter_context(path.open()), fcntl.LOCK_EX)
        answers: list[float] = []
        thread = threading.Thread(target=lambda: answers.append(load().sum_of_squares(3)), daemon=True)
        thread.start()
        thread.join(60)
        assert answers == [5.0]
    again = load()
    assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 1  # kept nevertheless
    assert precious.read_text() == "all I have"
    assert (path in machine_code._GIVEN_UP) == (lock == "held for ever")


@pytest.mark.skipif(fcntl is None, reason="Windows has no such locks")
def test_a_lock_that_becomes_free_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "_GIVEN_UP", set())
    path = tmp_path / "gramgraph.lock"
    with path.open("w") as another, path.open() as third:
        fcntl.flock(another, fcntl.LOCK_EX)
        end = threading.Timer(0.1, fcntl.flock, (another, fcntl.LOCK_UN))
        end.start()
        with machine_code._alone(tmp_path), pytest.raises(BlockingIOError):
            fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
        end.join()
        fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not machine_code._GIVEN_UP


def test_a_full_disk_costs_no_answer(load, monkeypatch):
    loops = load()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(loops.square._cache._cache_file), "_save_index", full)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loops.sum_of_squares(3) == 5.0


def test_a_change_of_a_callee_in_another_file_is_noticed(monkeypatch):
    assert {"tree.steps", "vector8", "tree.lanes"} <= kept._closure("tree.runner")
    before = {name: kept._stamp(name) for name in ("tree.runner", "vector8", "tree.heaps")}
    plain = kept._source
    monkeypatch.setattr(kept, "_source", lambda name: plain(name) + (b"#" if name == "vector8" else b""))
    kept._stamp.cache_clear()
    after = {name: kept._stamp(name) for name in before}
    kept._stamp.cache_clear()
    assert [name for name in before if before[name] != after[name]] == ["tree.runner", "vector8"]


def test_a_folder_that_was_given_is_the_only_one(load, monkeypatch, tmp_path):
    first = load()
    assert first.sum_of_squares(3) == 5.0  # kept beside the source
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "own"))
    second, third = load(), load()
    assert second.sum_of_squares(3) == 5.0 and hits(second.sum_of_squares) == 0
    assert third.sum_of_squares(3) == 5.0 and hits(third.sum_of_squares) == 1
    assert list((tmp_path / "own").rglob("*.nbi"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("how", ["of another user", "open to all"])
def test_files_that_others_could_have_written_are_not_loaded(load, monkeypatch, how):
    first = load()
    assert first.sum_of_squares(3) == 5.0
    monkeypatch.setattr(kept, "_owner", lambda: 0)
    for file in Path(first.__file__).parent.glob("__pycache__/*.nb?"):
        if how == "open to all":
            file.chmod(0o666)
        else:
            os.chown(file, 65534, 65534)
    second = load()
    assert not kept.holds(second.sum_of_squares.py_func)
    assert second.sum_of_squares(3) == 5.0 and hits(second.sum_of_squares) == 0


@pytest.mark.parametrize("change", ["another Numba", "another processor"])
def test_an_upgrade_or_another_processor_keeps_files_of_its_own(load, change):
    first = load()
    assert first.sum_of_squares(3) == 5.0 and kept.holds(first.sum_of_squares.py_func)
    with pytest.MonkeyPatch.context() as patch:
        if change == "another Numba":
            patch.setattr(metadata, "version", lambda name: "99.0")
        else:
            patch.setattr(kept, "_processor", lambda: "model name: another one")
        patch.setattr(kept, "platform_mark", kept.platform_mark.__wrapped__)
        second, third = load(), load()
        assert not kept.holds(second.sum_of_squares.py_func)
        assert second.sum_of_squares(3) == 5.0 and hits(second.sum_of_squares) == 0
        assert third.sum_of_squares(3) == 5.0 and hits(third.sum_of_squares) == 1
    again = load()
    assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 1  # the first files are still there


READ_ONLY = """
import sys
from pathlib import Path
from gramgraph._numerics import compiling, kept
kept._writable = lambda folder: False
sys.path.insert(0, sys.argv[1])
with compiling.tier("compiled"):
    import loops
    print(loops.sum_of_squares(3), sum(loops.sum_of_squares.stats.cache_hits.values()))
"""


def test_what_was_compiled_when_a_container_was_built_is_found_where_nothing_can_be_written(load, tmp_path):
    assert load().sum_of_squares(3) == 5.0
    source = Path(compiling.__file__).parents[2]
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME")}
    env |= {"PYTHONPATH": str(source), "TMPDIR": str(tmp_path / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ_ONLY, str(tmp_path)], env=env, capture_output=True, text=True
    )
    assert done.stdout.split() == ["5.0", "1"], done.stderr


# ------------------------------------------------------------------------------------------------- large functions

LARGE = """
import numpy as np
from gramgraph._numerics.compiling import njit

@njit(cache=True, no_cpython_wrapper=True)
def deepest(x, n):
    if n > 99:
        raise ValueError("too many")
    total = np.zeros(3)
    for i in range(n):
        total[i % 3] += {terms}
    return total

@njit(cache=True)
def middle(x, n):
    total = deepest(x, n)
    for i in range(n):
        total[(i + 1) % 3] -= {terms}
    return total

@njit(cache=True)
def top(x, n):
    return middle(x, n).sum() + deepest(x, n)[1]
""".format(terms=" + ".join(f"x[(i * {k}) % x.shape[0]] * (x[{k}] > i)" for k in range(3, 15)))


@pytest.fixture
def load_large(load, tmp_path):
    (tmp_path / "loops.py").write_text(LARGE)
    return load


def code_of(function) -> str:
    return next(iter(function.inspect_llvm().values()))


def test_a_large_function_is_compiled_once_and_called_where_it_is(load_large):
    loops, x = load_large(), np.arange(20.0)
    with compiling.tier("plain"):
        expected = loops.top(x, 7)
    assert loops.top(x, 7) == expected
    heads = [line for line in code_of(loops.top).splitlines() if "5loops6middle" in line and not line.startswith(" ")]
    assert heads and all(line.startswith("declare") for line in heads)


def test_what_tells_how_to_compile_is_part_of_the_stamp():
    assert {"machine_code", "separate", "standing", "becoming", "compiling"} <= kept._closure("vector8")


def said_by(program: str, folder: Path) -> list[str]:
    """The words that a program says in a process of its own, which finds `loops` and its machine code in the folder."""
    source = Path(compiling.__file__).parents[2]
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(source)}
    call = [sys.executable, "-W", "ignore", "-c", program, str(folder)]
    done = subprocess.run(call, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("lost", ["nothing", "what it calls"])
def test_machine_code_in_a_file_comes_with_all_that_it_calls(load_large, lost, tmp_path):
    loops, x = load_large(), np.arange(20.0)
    expected = loops.top(x, 7)
    if lost == "what it calls":
        for file in [*tmp_path.glob("__pycache__/loops.middle*"), *tmp_path.glob("__pycache__/loops.deepest*")]:
            file.unlink()
    value, found, error, lower, from_outside = said_by(ANOTHER, tmp_path)
    assert (float(value), found, error, from_outside) == (expected, "1", "many", "True")
    assert lower == ("1" if lost == "nothing" else "0")


ANOTHER = """
import sys
import numba
import numpy as np
from gramgraph._numerics import compiling
sys.path.insert(0, sys.argv[1])
with compiling.tier("compiled"):
    import loops
    x = np.arange(20.0)
    print(loops.top(x, 7), sum(loops.top.stats.cache_hits.values()))
    try:
        loops.top(x, 100)
    except ValueError as error:  # raised in the deepest one
        print(str(error).split()[-1])
    inside = loops.middle(x, 7)
    print(sum(loops.middle.stats.cache_hits.values()))
    middle = loops.middle

    @numba.njit
    def by_numba_alone(x):
        return middle(x, 7)

    print((by_numba_alone(x) == inside).all())
"""


LOADING = """
import sys
import numpy as np
from gramgraph._numerics import compiling
sys.path.insert(0, sys.argv[1])
with compiling.tier("compiled"):
    import loops
    x = np.arange(20.0)
    value = loops.top(x, 7)
    unneeded = {"gramgraph._numerics.separate", "gramgraph._numerics.allocating"}
    print(value, sum(loops.top.stats.cache_hits.values()), len(unneeded & set(sys.modules)))
    print(loops.top(x.astype(np.float32), 7), sum(loops.top.stats.cache_misses.values()))
"""


def test_loading_machine_code_imports_nothing_that_compiling_needs(load_large, tmp_path):
    loops, x = load_large(), np.arange(20.0)
    expected = loops.top(x, 7)
    value, found, unneeded, of_floats, compiled = said_by(LOADING, tmp_path)
    assert (float(value), found, unneeded) == (expected, "1", "0")
    assert float(of_floats) == pytest.approx(expected) and compiled == "1"  # and it still compiles what is not there


def test_a_symbol_that_stands_for_other_code_in_this_process_is_a_miss(load_large, monkeypatch):
    first, x = load_large(), np.arange(20.0)
    expected = first.top(x, 7)
    for symbol, each in list(standing._STANDING.items()):
        if "5loops6middle" in symbol:
            monkeypatch.setitem(standing._STANDING, symbol, dataclasses.replace(each, code=b"other"))
    again = load_large()
    assert again.top(x, 7) == expected and hits(again.top) == 0


TWO = """
import numpy as np
from gramgraph._numerics.compiling import njit

@njit(nogil=True)
def first(n):
    return np.argmax(np.zeros(n, np.uint16))

@njit(boundscheck=False)
def second(n):
    return np.argmax(np.zeros(n, np.uint16))
"""


class Listing(event.Listener):
    """The names of what is compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event: event.Event) -> None:
        pass


def test_numbas_own_functions_are_compiled_once_for_ours_whatever_their_options(load, tmp_path):
    (tmp_path / "loops.py").write_text(TWO)
    loops, listing = load(), Listing()
    with event.install_listener("numba:compile", listing):
        assert loops.first(3) == loops.second(3) == 0
    assert sum("array_argmax_impl_generic" in name for name in listing.names) == 1


def test_without_numbas_inner_parts_everything_is_compiled_as_numba_does(load_large, monkeypatch):
    monkeypatch.setattr(machine_code, "standing", None)
    loops, x = load_large(), np.arange(20.0)
    with compiling.tier("plain"):
        expected = loops.top(x, 7)
    assert loops.top(x, 7) == expected
    heads = [line for line in code_of(loops.top).splitlines() if "5loops6middle" in line and not line.startswith(" ")]
    assert any(line.startswith("define linkonce_odr") for line in heads)
    again = load_large()
    assert again.top(x, 7) == expected and hits(again.top) == 1


# ---------------------------------------------------------------------------------------------------------- the door


def test_what_a_loop_took_tells_what_the_next_call_will_take(load):
    slow = load().sum_of_squares
    slow._work = lambda n: 1.0  # an estimate that is far too low
    with compiling.tier("auto"):
        before = slow.rate
        slow(200_000)  # some milliseconds: less tells nothing
    assert slow.rate > 10 * before and not slow.in_memory()


def test_a_form_in_numpy_runs_until_the_loop_is_compiled(load):
    def squares(n):
        return float((np.arange(n) ** 2.0).sum()) + 0.25

    source = load().sum_of_squares.py_func
    door = compiling.njit(cache=False, plain=squares)(source)
    with compiling.tier("plain"):
        assert door(3) == 5.25
    with compiling.tier("compiled"):
        assert door(3) == 5.0


def test_threads_that_ask_at_once_get_one_compiled_function(load):
    loops = load()
    start, found = threading.Barrier(4), []

    def ask() -> None:
        start.wait()
        found.append((loops.sum_of_squares(5), loops.square(3.0)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(30.0, 9.0)] * 4
    assert len(loops.sum_of_squares.signatures) == 1
    assert type(loops.sum_of_squares).__name__ == "CPUDispatcher"  # and it stands in the module


def test_interpreted_seconds_of_all_threads_are_counted():
    state = compiling._State()
    threads = [threading.Thread(target=lambda: [state.note("room.file", 0.5) for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.spent == {"room.file": 4000.0} and state.total == 4000.0


# -------------------------------------------------------------------------------------------------------- the notice


class Stream(io.StringIO):
    """A standard error that is a terminal, or none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("where", ["terminal", "notebook", "logging"])
def test_long_compilations_are_announced_once(monkeypatch, caplog, where):
    monkeypatch.setattr(notice, "_SAID", [])
    stream = Stream(where == "terminal")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if where == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with caplog.at_level("INFO", logger="gramgraph"):
        notice.say(8.0)
        notice.say(5.0)
    told = [record.getMessage() for record in caplog.records] if where == "logging" else stream.getvalue().splitlines()
    assert len(told) == 1 and (not caplog.records or where == "logging")
    assert "about 8 seconds" in told[0] and "once on this machine" in told[0] and "gramgraph warmup" in told[0]


@pytest.mark.parametrize("tier", ["auto", "compiled"])
def test_the_door_announces_what_is_dear_and_not_in_a_file(load, monkeypatch, tier):
    said: list[float] = []
    monkeypatch.setattr(notice, "say", said.append)
    monkeypatch.setattr(compiling.prices, "price_of", lambda group: 7.0)
    for _ in range(2):
        loops = load()
        with compiling.tier(tier):
            loops.sum_of_squares.rate = 1e9  # far more work than compiling
            loops.sum_of_squares._work = lambda n: 1.0
            assert loops.sum_of_squares(3) == 5.0
    assert said == [7.0]  # the second time it was found in its file


# ---------------------------------------------------------------------------------------------------- new arrays

ARRAYS = """
import numpy as np
from gramgraph._numerics.compiling import njit

@njit
def arrays(n, x):
    whole = np.zeros(n), np.zeros((2, n), dtype=np.uint8), np.ones((n, 2), np.bool_), np.ones(n)
    return whole, np.full(n, -1, np.int64), np.full((n, n), 0.5), np.full(3, 2, np.float32), np.zeros(x.shape, x.dtype)

@njit(error_model="numpy")
def expressions(x):
    rows = [i * 2 for i in range(3)]
    return (np.exp(x) + 1.0) / (x * x), np.array([1.0, 2.0]), rows[2], np.empty((2, x.size), x.dtype).shape
"""


def test_new_arrays_and_expressions_of_arrays_are_those_of_numpy(load, tmp_path):
    (tmp_path / "loops.py").write_text(ARRAYS)
    made, x = load(), np.array([[1.0, 2.0]], np.float32)
    for function, arguments in ((made.arrays, (4, x)), (made.expressions, (x[0].astype(np.float64),))):
        plain = function.plain(*arguments)
        found = function(*arguments)
        for ours, theirs in zip(_leaves(found), _leaves(plain), strict=True):
            assert np.shape(ours) == np.shape(theirs) and np.asarray(ours).dtype == np.asarray(theirs).dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    with pytest.raises(ValueError, match="negative dimensions"):
        made.arrays(-1, x)


def _leaves(value):
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, tuple) else [value]


def test_new_arrays_need_no_function_of_numba_for_each_kind(load, tmp_path):
    if machine_code.standing is None:
        pytest.skip("this Numba compiles by itself")
    (tmp_path / "loops.py").write_text(ARRAYS)
    made, names = load(), []

    class Names(event.Listener):
        def on_start(self, event: event.Event) -> None:
            names.append(event.data["dispatcher"].py_func.__qualname__)

        def on_end(self, event: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Names()):
        made.arrays(4, np.ones((1, 2)))
    assert "arrays" in names and not [name for name in names if "np_empty" in name or "np_zeros" in name]


def test_garbage_is_looked_for_again_after_compiling(load):
    assert gc.isenabled()
    inside = []

    class Look(event.Listener):
        def on_start(self, event: event.Event) -> None:
            inside.append(gc.isenabled())

        def on_end(self, event: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Look()):
        assert load().sum_of_squares(3) == 5.0
    assert inside and not any(inside) and gc.isenabled()


# ---------------------------------------------------------------------------------------- loops, indices, names

LOOPS = """
import numpy as np
from gramgraph._numerics.compiling import njit

@njit
def numbers(a, b, step):
    total, rounds, last = 0, 0, -7
    for i in range(a):
        total += 3 * i + 1
        last = i
    for i in range(a, b):
        if i % 5 == 3:
            continue
        if i > 40:
            break
        total -= i
        for j in range(i, i + 3):
            total += i * j
            rounds += 1
    for i in range(b, a, step):
        total += 100 * i
        last = i
    for i in range(np.int32(a)):
        total += i
    for i in range(2, -2):
        total += 10_000
    return total, rounds, last, len(range(a, b))

@njit
def items(x, y, k):
    found = 0.0
    for i in range(x.shape[0]):
        found += x[i] * x[-i - 1] + x[i * 0 + 1] - x[k]
        for j in range(1, y.shape[1]):
            found += y[i, j] - y[-1, j - 2] * y[i, -j]
    for i in range(-3, 0):
        found += x[i] * y[i, i]
        y[i, i + 1] = found
    for i in range(k, k + 2):
        x[i] += 1.0
    return found, x, y

@njit
def either(n, x):
    if n > 3:
        value, other = 1, x[0]
    elif n < 0:
        value, other = 2.5, x[1]
    else:
        value, other = n, 0.25
        while value < 10:
            value = 2 * value + 1
            if value == 7:
                other = value
                break
    for value_of in x:
        value += value_of
    return value, other
"""


def test_loops_over_ranges_count_as_pythons_do(load, tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    numbers = load().numbers
    for given in [(0, 0, 1), (5, 2, 1), (-4, 7, -1), (3, 60, -2), (7, -3, 3), (-2, -9, 2)]:
        assert numbers(*given) == numbers.plain(*given)


def test_indices_count_from_the_end_where_they_are_negative(load, tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    items, rng = load().items, np.random.default_rng(0)
    x, y = rng.normal(size=5), rng.normal(size=(5, 4))
    for k in (0, 1, -3):
        for ours, theirs in zip(items(x.copy(), y.copy(), k), items.plain(x.copy(), y.copy(), k), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_variable_has_the_value_that_was_given_last(load, tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    either, x = load().either, np.array([0.5, 4.0])
    for n in (-1, 0, 1, 2, 3, 9):
        assert either(n, x) == pytest.approx(either.plain(n, x))


def test_variables_are_renamed_as_numba_renames_them(load, tmp_path):
    from numba.core import ssa
    from numba.core.compiler import run_frontend

    from gramgraph._numerics import renaming
    from gramgraph._numerics.tree import triangulation

    (tmp_path / "loops.py").write_text(LOOPS)
    made = load()
    for function in (made.numbers, made.either, triangulation.eliminate):
        ours, theirs = run_frontend(function.py_func).blocks, run_frontend(function.py_func).blocks
        ours, theirs = renaming._renamed(ours), ssa._run_ssa(theirs)
        assert list(ours) == list(theirs)
        for at, block in theirs.items():
            assert [str(each) for each in ours[at].body] == [str(each) for each in block.body]
