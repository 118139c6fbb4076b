"""How much memory a plan may take, and the error when it would not fit."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

from gramgraph.compile.free_memory import available_memory
from gramgraph.exceptions import BudgetError, OptionError, listing

__all__ = ["available_memory", "budget_of", "check_budget", "check_memory", "check_planning", "readable"]

#: Plans below this size are never compared with the memory that is free.
SMALL_PLAN = 64e6
SHARE = 0.6


def budget_of(memory: float | None) -> float:
    """Bytes that may be used: `memory`, or 60 % of what is free."""
    return float(memory) if memory is not None else SHARE * available_memory()


def readable(size: float) -> str:
    """A number of bytes in words: 3.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def check_memory(memory: object) -> None:
    """`OptionError` unless `memory` is None or a positive number of bytes."""
    if memory is not None and not (isinstance(memory, Real) and float(memory) > 0):
        raise OptionError(f"memory must be a positive number of bytes (2e9 for 2 GB), not {memory!r}")


def check_planning(n: int, needed: float, memory: float | None) -> None:
    """`BudgetError` when choosing an order of n variables would take more than `memory` (default: 60 % of what is
    free)."""
    check_memory(memory)
    if memory is None and needed < SMALL_PLAN:
        return
    room = budget_of(memory)
    if needed > room:
        raise BudgetError(
            f"exact inference on {n:,} variables needs {readable(needed)} to choose the order of elimination alone, "
            f"more than the budget of {readable(room)}",
            bytes=needed,
            remedies=(
                "ask for fewer targets, so that barren parts of the network can be left out",
                "raise the budget: memory=… (bytes)",
                "take an approximate answer: engine='bp' (exact where the graph is a tree)",
            ),
        )


def check_budget(needed: float, memory: float | None, clique: Sequence[str], cells: float) -> None:
    """Raise `BudgetError` when `needed` bytes exceed `memory` (default: 60 % of what is free)."""
    check_memory(memory)
    if memory is None and needed < SMALL_PLAN:
        return
    memory = budget_of(memory)
    if needed <= memory:
        return
    raise BudgetError(
        f"exact inference needs {readable(needed)}, more than the budget of {readable(memory)}. The largest table has "
        f"{cells:.3g} cells over {len(clique)} variables: {listing(clique)}.",
        clique=clique,
        bytes=needed,
        remedies=(
            "observe or fix variables of that table: observed variables leave the tree",
            "ask for fewer targets, so that barren parts of the network can be left out",
            "raise the budget: memory=… (bytes)",
            "take an approximate answer: engine='bp' (or budget='10s' with engine='auto')",
        ),
    )
