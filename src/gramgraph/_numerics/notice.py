"""One line for whoever has to wait for the compiler."""

from __future__ import annotations

import logging
import sys

__all__ = ["say"]

_SAID: list[float] = []


def say(seconds: float) -> None:
    """Tell once per process that about so many seconds of compiling are ahead, and what helps."""
    if _SAID:
        return
    _SAID.append(seconds)
    text = (
        f"gramgraph: compiling loops for larger work, about {max(round(seconds), 2)} seconds, once on this machine "
        "(`gramgraph warmup` does it ahead)."
    )
    if _watched():
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    else:
        logging.getLogger("gramgraph").info(text)


def _watched() -> bool:
    """Whether somebody sees the standard error: a terminal, or a notebook."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stream, or closed
        return False
