"""Compiled structures and working memory kept beside the model that they belong to, within bounds."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

MAX_KEPT = 128
#: Of trees with more numbers than this only a few are kept: their tables may hold hundreds of megabytes.
LARGE_CELLS = 1e6
MAX_LARGE = 4
#: And of trees with more than this, which take hundreds of megabytes each, only the last one.
HUGE_CELLS = 2e7


def remember(model: GraphicalModel, key: tuple[Any, ...], value: Any, *, cells: float = 0.0) -> Any:
    """Keep `value` under `key`; when there are too many, the oldest go (the lowered model always stays)."""
    with model.lock:
        plans = model.plans
        if len(plans) >= MAX_KEPT:
            for old in [k for k in plans if k[0] not in ("lowered", "memory")][: MAX_KEPT // 2]:
                del plans[old]
        if cells > LARGE_CELLS:
            large = _large(plans, LARGE_CELLS)
            for old in large[: max(len(large) - MAX_LARGE + 1, 0)]:
                del plans[old]
        if cells > HUGE_CELLS:
            for old in _large(plans, HUGE_CELLS):
                del plans[old]
        plans[key] = value
    return value


def forget_large(model: GraphicalModel) -> None:
    """Let go of all large trees, so that a new one has their room."""
    with model.lock:
        for old in _large(model.plans, LARGE_CELLS):
            del model.plans[old]
        if ("memory",) in model.plans:
            model.plans[("memory",)].clear()


def _large(plans: dict[Any, Any], numbers: float) -> list[Any]:
    """Keys of the trees that hold more numbers, the oldest first."""
    return [key for key, value in plans.items() if getattr(value, "numbers", 0.0) > numbers]


class MemoryPool:
    """Large buffers that the trees of one model lend each other: fresh memory costs as much as using it."""

    MAX_ARRAYS = 4
    MAX_BYTES = 2 << 30

    def __init__(self) -> None:
        self._free: list[FloatArray] = []
        self._lock = Lock()

    def borrow(self, size: int) -> FloatArray:
        """An array of at least `size` numbers (and not many more)."""
        with self._lock:
            for i, array in enumerate(self._free):
                if size <= len(array) <= 4 * size:
                    return self._free.pop(i)
        return np.empty(size)

    def give_back(self, array: FloatArray) -> None:
        """Return an array; the oldest ones are dropped when there is too much."""
        with self._lock:
            self._free.append(array)
            while len(self._free) > self.MAX_ARRAYS or sum(a.nbytes for a in self._free) > self.MAX_BYTES:
                self._free.pop(0)

    def clear(self) -> None:
        """Drop all arrays."""
        with self._lock:
            self._free.clear()


def memory_pool(model: GraphicalModel) -> MemoryPool:
    """The model's pool of buffers."""
    found: MemoryPool | None = model.plans.get(("memory",))
    return found if found is not None else model.plans.setdefault(("memory",), MemoryPool())
