"""Ctrl-C at a moment of our choice: long loops look at a flag, and what must not be cut in half is not.

Python raises `KeyboardInterrupt` between any two instructions of the main thread, also inside another library's
callbacks, where it may be lost, or in the middle of an update, which it then leaves half done.
"""

from __future__ import annotations

import signal
import threading
from contextlib import ContextDecorator, ExitStack
from types import FrameType
from typing import Any

__all__ = ["check_interrupt", "held_back", "interruptible"]


def _in_main_thread() -> bool:
    """Python runs the handlers of signals there and nowhere else."""
    return threading.current_thread() is threading.main_thread()


class _Flag:
    """Whether Ctrl-C came and nobody has looked yet."""

    up = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal. Who presses twice does not want to wait: the second one raises as usual."""
        if self.up:
            self.up = False
            raise KeyboardInterrupt
        self.up = True


_FLAG = _Flag()
_note = _FLAG.note


class interruptible(ContextDecorator):
    """Inside, Ctrl-C is what `check_interrupt` raises, and nothing else before it is pressed a second time.

    A loop that keeps what it has calls `check_interrupt()` in every round and catches `KeyboardInterrupt` around it.
    Whoever has a handler of his own for the signal, or ignores it, keeps it. One that comes after the last look is
    dropped: everything there is has been kept.
    """

    _ours = False

    def _recreate_cm(self) -> interruptible:  # a decorator is one object for all calls
        return interruptible()

    def __enter__(self) -> None:
        self._ours = _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._ours:
            _FLAG.up = False
            signal.signal(signal.SIGINT, _note)

    def __exit__(self, *error: object) -> None:
        if self._ours and signal.getsignal(signal.SIGINT) is _note:  # else somebody set another one meanwhile
            signal.signal(signal.SIGINT, signal.default_int_handler)


def check_interrupt() -> None:
    """Raise `KeyboardInterrupt` if Ctrl-C came since the last look of an `interruptible` block."""
    if _FLAG.up and _in_main_thread():
        _FLAG.up = False
        raise KeyboardInterrupt


class held_back:
    """Handlers of signals written in Python wait until the end of the block, so that none of them raises inside.

    Signals that kill the process or are ignored stay as they are. In other threads, and inside another such block,
    there is nothing to do.
    """

    _open = False

    def __enter__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []
        self._ours = not held_back._open and _in_main_thread()
        if not self._ours:
            return
        held_back._open = True
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler) and not isinstance(handler, signal.Handlers):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._arrived:
            self._arrived.append(number)

    def __exit__(self, *error: object) -> None:
        if not self._ours:
            return
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:  # else somebody set another one meanwhile
                signal.signal(number, handler)
        held_back._open = False
        with ExitStack() as late:  # all of them run, even where the first one raises
            for number in reversed(self._arrived):
                late.callback(self._handlers[number], number, None)
