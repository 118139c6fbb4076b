"""Interrupts that arrive at a bad moment wait for a good one."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any

__all__ = ["held_back"]


class held_back:
    """Signal handlers written in Python wait until the end of the block, so that none can raise inside it.

    Signals that kill the process or are ignored stay as they are. Python runs handlers in the main thread only:
    elsewhere, and inside another such block, there is nothing to do.
    """

    _open = False

    def __enter__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []
        if held_back._open or threading.current_thread() is not threading.main_thread():
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._handlers:
            return
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:  # else somebody set another one meanwhile
                signal.signal(number, handler)
        held_back._open = False
        with ExitStack() as late:  # all of them run, even where the first one raises
            for number in reversed(self._arrived):
                late.callback(self._handlers[number], number, None)
