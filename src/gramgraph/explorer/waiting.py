"""Whether somebody still waits for an answer: slow work looks between its steps, and stops where nobody does."""

from __future__ import annotations

from collections.abc import Callable

#: Whether the one who asked is still there.
Waiting = Callable[[], bool]


class Abandoned(Exception):
    """The page has asked something newer: nobody waits for this answer."""


def always() -> bool:
    """Of those who cannot leave, such as a notebook."""
    return True


def go_on(waiting: Waiting) -> None:
    """Stop here where nobody waits any more.

    >>> go_on(always)
    >>> go_on(lambda: False)
    Traceback (most recent call last):
    ...
    gramgraph.explorer.waiting.Abandoned
    """
    if not waiting():
        raise Abandoned
