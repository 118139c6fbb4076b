"""Fixtures and settings that every test may use."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Deterministic examples: a red test is red again at the next run. `HYPOTHESIS_PROFILE=explore` draws new ones, and
# `whole` (of `make test-all`) four times as many as the default; laws with a number of their own use `tests.portions`.
settings.register_profile(
    "whole", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("default", settings.get_profile("whole"), max_examples=25)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_finish() -> None:
    """All tests and what they import stay until the end: no collection of garbage need look at them again.

    What tests and the compiler make is looked at less often than by default: a process of tests makes much of both.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with reference networks and answers: GRAMGRAPH_DATA, else ../shared/data beside the repository."""
    path = Path(os.environ.get("GRAMGRAPH_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"reference data not found at {path}: set GRAMGRAPH_DATA to its folder")
    return path


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator, new for every test."""
    return np.random.default_rng(20240229)


#: Interpreted seconds of a loop in one test after which it may be compiled, whatever that changes.
PATIENCE = 3.0


@pytest.fixture(autouse=True)
def steady_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that was interpreted in a test stays so until its end: many tests compare bits of two calls, which round
    differently where a loop is compiled between them. Tests of just that choice are marked `tiers`."""
    if request.node.get_closest_marker("tiers") is None:
        from gramgraph._numerics.compiling import Door, spent

        interpreted: dict[Door, float] = {}
        is_due = Door.is_due

        def is_due_in_this_test(door: Door, seconds: float) -> bool:
            since = interpreted.get(door)
            if since is not None and spent(door.group) - since + seconds < PATIENCE:
                return False
            found = is_due(door, seconds)
            if not found:
                interpreted.setdefault(door, spent(door.group))
            return found

        monkeypatch.setattr(Door, "is_due", is_due_in_this_test)


@pytest.fixture
def compiled_loops() -> Iterator[None]:
    """Every loop is compiled at its first call: for tests that compare bits of two fits, which sum in other orders
    where a loop is interpreted in the first one and compiled before the second."""
    from gramgraph._numerics.compiling import tier

    with tier("compiled"):
        yield


@pytest.fixture
def press_ctrl_c() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C. The handler is Python's own, also where the tests run with the signal ignored (nohup, &)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
