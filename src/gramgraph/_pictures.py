"""The door to pictures: values and models draw themselves, and what draws them stands above them.

Nothing else below `plot` and `explorer` imports these; they are loaded at the first picture.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["explorer", "pictures"]


@cache
def pictures() -> Any:
    """The functions of `gramgraph.plot`."""
    from gramgraph import plot

    return plot


@cache
def explorer() -> Any:
    """The functions of `gramgraph.explorer`."""
    from gramgraph import explorer

    return explorer
