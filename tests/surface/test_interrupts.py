"""Ctrl-C: loops see it wherever it lands, compilation is not cut in half, other handlers are left alone."""

from __future__ import annotations

import gc
import signal
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._interrupt import check_interrupt, held_back, interruptible
from tests.portions import examples

# ------------------------------------------------------------------------------------------------------- loops


def test_a_loop_ends_at_its_next_look(press_ctrl_c):
    done: list[str] = []

    @interruptible()
    def loop() -> None:
        check_interrupt()
        press_ctrl_c()
        done.append("to the end of the round")
        check_interrupt()
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert done == ["to the end of the round"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_another_library_swallows_is_not_lost(press_ctrl_c):
    """An error inside a callback of the garbage collector is printed and forgotten; a flag stays up."""

    def callback(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and not pressed:
            pressed.append(1)
            press_ctrl_c()

    @interruptible()
    def loop() -> None:
        gc.collect()
        check_interrupt()

    pressed: list[int] = []
    gc.callbacks.append(callback)
    try:
        with pytest.raises(KeyboardInterrupt):
            loop()
    finally:
        gc.callbacks.remove(callback)


def test_the_second_one_does_not_wait(press_ctrl_c):
    done: list[str] = []

    @interruptible()
    def loop() -> None:
        press_ctrl_c()
        done.append("after the first")
        press_ctrl_c()
        done.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert done == ["after the first"]


def test_blocks_within_blocks_and_functions(press_ctrl_c):
    @interruptible()
    def inner(depth: int) -> str:
        if depth:
            return inner(depth - 1)
        press_ctrl_c()
        try:
            check_interrupt()
        except KeyboardInterrupt:
            return "kept"
        return "missed"

    with interruptible():
        assert inner(2) == "kept"
        check_interrupt()  # it was seen: not again
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()  # outside it is as always


def test_one_after_the_last_look_does_not_reach_the_next_loop(press_ctrl_c):
    with interruptible():
        press_ctrl_c()
    with interruptible():
        check_interrupt()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_other_handlers_stay(press_ctrl_c, handler):
    signal.signal(signal.SIGINT, handler)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) == handler
        press_ctrl_c()
        check_interrupt()
    assert signal.getsignal(signal.SIGINT) == handler


def test_other_threads_are_left_alone(press_ctrl_c):
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with interruptible(), held_back():
                check_interrupt()
        except BaseException as error:
            failed.append(error)

    @interruptible()
    def loop() -> None:
        press_ctrl_c()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        check_interrupt()

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert not failed


ASIA = gg.datasets.asia().sample(400, random_state=0)


@settings(max_examples=examples(20))
@given(st.sampled_from(["hill_climb", "tabu", "ges"]), st.integers(1, 8))
def test_a_search_keeps_the_steps_before_ctrl_c(method: str, step: int) -> None:
    """Wherever it is pressed, what is kept is the beginning of the whole search."""

    pressed: list[int] = []

    def tell(done: int, total: int) -> None:
        if done >= step and not pressed:  # arrows that turn together are told of at once
            pressed.append(done)
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = gg.learn_structure(ASIA, method=method, progress=tell).report
    finally:
        signal.signal(signal.SIGINT, before)
    whole = WHOLE.setdefault(method, gg.learn_structure(ASIA, method=method).report)
    assert found.interrupted == bool(pressed) and bool(pressed) == (step <= len(whole.moves))
    assert found.moves == whole.moves[: len(found.moves)] and (pressed == [len(found.moves)] or not found.interrupted)


WHOLE: dict[str, Any] = {}


def test_em_keeps_its_steps(press_ctrl_c):
    gaps = ASIA.astype(object).mask(np.random.default_rng(0).random(ASIA.shape) < 0.2)

    def tell(done: int, total: int) -> None:
        if done == 3:
            press_ctrl_c()

    report = gg.datasets.asia().fit(gaps, max_iter=50, tol=0.0, progress=tell).fit_report
    assert len(report.trace) == 3 and not report.converged
