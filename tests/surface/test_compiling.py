"""Compiling works without a folder to write to, with broken cache files, and after interrupts."""

from __future__ import annotations

import importlib.util
import os
import signal
import stat
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from numba import config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, NullCache

from gramgraph._numerics import compiling

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
    if config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(config, "CACHE_DIR", "")
    (tmp_path / "loops.py").write_text(SOURCE)

    def module(name: str = "loops") -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, tmp_path / "loops.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, made)
        spec.loader.exec_module(made)
        return made

    return module


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
        with compiling.held_back(), compiling.held_back():
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
    only_given = [c for c in CompileResultCacheImpl._locator_classes if c.__name__.endswith("UserProvidedCacheLocator")]
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", only_given)
    (tmp_path / "temporary").mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    compiling._temporary_folder.cache_clear()
    yield tmp_path / "temporary"
    compiling._temporary_folder.cache_clear()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users of Windows have a home")
def test_without_a_home_a_private_folder_serves(load, nowhere):
    with pytest.warns(UserWarning, match="can be written to.*NUMBA_CACHE_DIR") as told:
        loops = load()
    assert len(told) == 1  # for all functions together
    assert loops.sum_of_squares(3) == 5.0
    folder = nowhere / f"gramgraph-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and list(folder.rglob("*.nbi"))
    again = load()
    assert again.sum_of_squares(3) == 5.0 and hits(again.sum_of_squares) == 1
    assert config.CACHE_DIR == ""  # other users of Numba in the process see nothing of it


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
    with pytest.warns(UserWarning, match="is lost when the process ends"):
        loops = load()
    assert loops.sum_of_squares(3) == 5.0
    assert isinstance(loops.square._cache, NullCache) and not list(nowhere.rglob("*.nb?"))


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


def test_a_full_disk_costs_no_answer(load, monkeypatch):
    loops = load()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(loops.square._cache._cache_file), "_save_index", full)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loops.sum_of_squares(3) == 5.0


def test_a_change_of_a_callee_in_another_file_is_noticed(monkeypatch):
    assert {"tree.steps", "vector8", "tree.lanes"} <= compiling._closure("tree.runner")
    before = {name: compiling._stamp(name) for name in ("tree.runner", "vector8", "tree.heaps")}
    plain = compiling._source
    monkeypatch.setattr(compiling, "_source", lambda name: plain(name) + (b"#" if name == "vector8" else b""))
    compiling._stamp.cache_clear()
    after = {name: compiling._stamp(name) for name in before}
    compiling._stamp.cache_clear()
    assert [name for name in before if before[name] != after[name]] == ["tree.runner", "vector8"]
