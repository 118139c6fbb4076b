"""Compiling ahead: what a warm-up compiles is found by the next process, and the number of compilations stays small."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

import gramgraph as gg
from gramgraph import _warmup
from gramgraph._journeys import AFTER, CAPABILITIES

ROOT = Path(__file__).parents[2]
#: The most compilations (function and signature; Numba's own included) that a journey may make from an empty cache.
MOST = {
    "discrete": 105,
    "approximate": 290,
    "learn": 190,
    "gaussian": 200,
    "hmm": 36,
    "kalman": 58,
    "crf": 50,
    "svm": 75,
    "gp": 14,
    "rvm": 36,
    "kernel": 24,
    "topics": 45,
    "mixtures": 8,
    "boosting": 20,
    "vision": 40,
}
#: Journeys that `make test` can afford.
QUICK = ("crf",)
ALL = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CAPABILITIES]
COUNT = """
import sys
from benchmarks.compilations import counting
from gramgraph._journeys import CAPABILITIES
with counting() as found:
    CAPABILITIES[sys.argv[1]]()
texts = any("raise_with_shape_context" in function for function, _ in found.made)
print(len(found.made), len(set(found.own)) == len(found.own), texts, file=sys.stderr)
"""


def count(name: str, cache: Path) -> tuple[int, bool, bool]:
    """Compilations of a journey in a new process, whether none of ours came twice, and whether error texts did."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "GRAMGRAPH_TIER": "compiled", "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths}
    env.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COUNT, name], env=env, capture_output=True, text=True, check=True
    )
    number, once, texts = done.stderr.split()[-3:]
    return int(number), once == "True", texts == "True"


@pytest.mark.parametrize("name", ALL)
def test_a_journey_compiles_little_and_the_next_process_nothing(name: str, tmp_path: Path) -> None:
    number, once, texts = count(name, tmp_path)
    assert 0 < number <= MOST[name], f"{name}: see `python -m benchmarks.compilations {name}`"
    assert once, f"{name} compiles a function twice for the same types"
    assert not texts, f"{name} assigns an array to a part of another one, see _numerics/copies.py"
    assert count(name, tmp_path)[0] == 0


def test_every_capability_has_its_bound_and_comes_after_known_ones() -> None:
    assert set(MOST) == set(CAPABILITIES)
    for name, before in AFTER.items():
        order = list(CAPABILITIES)
        assert name in order and set(before) <= set(order)
        assert name not in before and not any(name in AFTER.get(each, ()) for each in before), "a circle"


@pytest.mark.slow
def test_two_warmups_at_once_leave_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first = gg.warmup("crf", background=True)
    told: list[tuple[int, int]] = []
    second = gg.warmup("crf", "kernel", progress=lambda done, total: told.append((done, total)), n_jobs=2)
    assert first.wait(600) and not first.running
    assert told == [(1, 2), (2, 2)] and set(second.seconds) == {"crf", "kernel"}
    assert count("crf", tmp_path)[0] == 0


def test_an_unknown_capability_names_those_there_are() -> None:
    with pytest.raises(gg.OptionError, match="'dicsrete' is not a capability.*Did you mean 'discrete'"):
        gg.warmup("dicsrete")


@pytest.mark.parametrize("n_jobs", [0, -3, 1.5])
@pytest.mark.parametrize("background", [False, True])
def test_a_number_of_processes_is_at_least_one(
    n_jobs: float, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers(monkeypatch, "raise SystemExit")
    with pytest.raises(gg.OptionError, match="n_jobs must be a whole number of at least 1"):
        gg.warmup("crf", background=background, n_jobs=n_jobs)  # type: ignore[arg-type]


def test_everything_is_compiled_ahead_unless_capabilities_are_named() -> None:
    assert _warmup._chosen(()) == _warmup.capabilities()
    assert _warmup._chosen(("topics", "discrete")) == ("discrete", "topics")
    assert _warmup._chosen(("all",)) == _warmup.capabilities()


def workers(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let workers run this program in the place of journeys."""
    start = subprocess.Popen
    monkeypatch.setattr(
        _warmup.subprocess,
        "Popen",
        lambda command, **more: start([sys.executable, "-c", program, *command[5:]], **more),
    )


def test_a_journey_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "'failed 3 no room' if 'svm' in line else 'compiled 1\\ndone 2'"
    workers(monkeypatch, f"import sys\nfor line in sys.stdin: print({answer}, flush=True)")
    told: list[tuple[str, int, bool, str]] = []
    with pytest.raises(gg.GramGraphError, match="svm could not be compiled ahead: no room"):
        _warmup.run(("svm", "gp"), lambda n, c, s, e: told.append((n, c, s is not None, e)), n_jobs=1)
    assert told == [("svm", 3, True, "no room"), ("gp", 1, False, ""), ("gp", 2, True, "")]


def test_a_worker_that_dies_is_reported_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    workers(monkeypatch, "import sys\nline = input()\nif 'svm' in line: sys.exit(7)\nprint('done 0', flush=True)")
    with pytest.raises(gg.GramGraphError, match="svm could not be compiled ahead: the process ended with 7"):
        _warmup.run(("svm", "gp"), lambda *_: None, n_jobs=1)


COPIED = """
import os, sys, time
from gramgraph import _journeys

def journey(name):
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{name} {os.getpid()} {os.getppid()}\\n")
    if name == "gp":
        os._exit(7)
    time.sleep(WAIT)

_journeys._make_ready = lambda: None
for name in ("svm", "gp", "rvm"):
    _journeys.CAPABILITIES[name] = lambda name=name: journey(name)
_journeys._work(sys.argv[1:])
"""


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return tmp_path / "pids"


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended may still wait for somebody to ask how."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="workers are copies of each other on Linux")
def test_workers_are_copies_and_one_that_dies_is_replaced(pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers(monkeypatch, COPIED.replace("WAIT", "1.0"))
    told: list[tuple[str, bool]] = []
    with pytest.raises(gg.GramGraphError, match="gp could not be compiled ahead: its process ended$"):
        _warmup.run(("svm", "gp", "rvm"), lambda n, c, s, e: told.append((n, s is not None)), n_jobs=2)
    assert {name for name, done in told if done} == {"svm", "gp", "rvm"}
    lines = {line.split()[0]: [int(k) for k in line.split()[1:]] for line in pids.read_text().splitlines()}
    assert lines["gp"][1] == lines["svm"][0]  # a copy
    assert not any(is_there(pid) for pid, _ in lines.values())


@pytest.mark.skipif(sys.platform != "linux", reason="workers are copies of each other on Linux")
def test_an_interrupt_ends_the_workers(pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers(monkeypatch, COPIED.replace("WAIT", "600").replace('if name == "gp"', "if False"))

    def note(*_: object) -> None:
        raise AssertionError("nothing is done")

    def interrupt() -> bool:
        if len(pids.read_text().splitlines() if pids.exists() else ()) < 2:
            return False
        raise KeyboardInterrupt

    class News(SimpleQueue):  # type: ignore[type-arg]
        def get(self) -> object:  # type: ignore[override]
            while not interrupt():
                time.sleep(0.01)
            return None

    monkeypatch.setattr(_warmup, "SimpleQueue", News)
    with pytest.raises(KeyboardInterrupt):
        _warmup.run(("svm", "gp"), note, n_jobs=2)
    ended = [int(line.split()[1]) for line in pids.read_text().splitlines()]
    deadline = time.monotonic() + 20
    while any(map(is_there, ended)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ended) == 2 and not any(map(is_there, ended))
