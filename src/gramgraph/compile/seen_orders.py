"""What is remembered of the trees of one model: one with more observed is not larger than those with less."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from gramgraph.compile.ordering import Order, TreeOrder
from gramgraph.typing import Array

#: Of so many trees the order is remembered, and of so many plans what they have told of their memory.
KEPT_ORDERS = 16


class Part(NamedTuple):
    """The part of a model that a tree is made of."""

    keep: Array  # (variables,) those in the tree
    use: Array  # (factors,) those in use

    def holds(self, other: Part) -> bool:
        """Whether the other part lies in this one: there as much or more is observed."""
        return not (other.keep > self.keep).any() and not (other.use > self.use).any()


class Size(NamedTuple):
    """What a plan tells of itself."""

    log_cells: float
    bytes: float


class SeenOrders:
    """The orders of the large trees that were made lately of one model."""

    def __init__(self) -> None:
        self._last: deque[tuple[Part, TreeOrder]] = deque(maxlen=KEPT_ORDERS)
        self._told: deque[tuple[Part, Sequence[tuple[int, ...]], Size]] = deque(maxlen=KEPT_ORDERS)
        self.count = 0  # of all, also of those that are forgotten
        #: Whether small trees are remembered, too: no small one serves every set of observed variables.
        self.every = False

    def __iter__(self) -> Iterator[tuple[Part, TreeOrder]]:
        return iter(tuple(self._last))

    def add(self, part: Part, order: TreeOrder) -> None:
        """Remember one more; the oldest is forgotten."""
        self._last.append((part, order))
        self.count += 1

    def of_less_seen(self, part: Part, since: int = 0, every: bool = False) -> list[Order]:
        """Orders of trees that hold a part, of those that came after the first `since`.

        A tree does not have more cells than those with less observed that came before it, so that it stands for them,
        unless `every` one is wanted.
        """
        new = tuple(self._last)[max(len(self._last) - (self.count - since), 0) :]
        found: list[tuple[Part, TreeOrder]] = []
        for own, order in reversed(new):
            if own.holds(part) and (every or not any(own.holds(other) for other, _ in found)):
                found.append((own, order))
        return [order.made for _, order in found]

    def least_told(self, part: Part, wants: Sequence[tuple[int, ...]]) -> Size:
        """The fewest cells, and the fewest bytes, that a plan for the same tables with no more observed has told."""
        told = [size for own, tables, size in self._told if tables == wants and own.holds(part)]
        return Size(*map(min, zip(*told, strict=True))) if told else Size(inf, inf)

    def tell(self, part: Part, wants: Sequence[tuple[int, ...]], size: Size) -> None:
        """Remember what a plan tells."""
        self._told.append((part, wants, size))
