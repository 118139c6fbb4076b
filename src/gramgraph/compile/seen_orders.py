"""The orders of large trees, remembered: a tree with more observed is not larger than those with less."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from gramgraph.compile.ordering import Order, TreeOrder
from gramgraph.typing import Array

#: Of so many trees the order is remembered.
KEPT_ORDERS = 16


class SeenOrder(NamedTuple):
    """What a large tree was made of, and the order in which its variables left."""

    keep: Array  # (variables,) those in the tree
    use: Array  # (factors,) those in use
    order: TreeOrder


class SeenOrders:
    """The orders of the large trees that were made lately of one model."""

    def __init__(self) -> None:
        self._last: deque[SeenOrder] = deque(maxlen=KEPT_ORDERS)
        self.count = 0  # of all, also of those that are forgotten

    def __iter__(self) -> Iterator[SeenOrder]:
        return iter(tuple(self._last))

    def add(self, keep: Array, use: Array, order: TreeOrder) -> None:
        """Remember one more; the oldest is forgotten."""
        self._last.append(SeenOrder(keep, use, order))
        self.count += 1

    def of_less_seen(self, keep: Array, use: Array, since: int = 0) -> list[Order]:
        """Orders of trees with at least these variables and factors, of those that came after the first `since`."""
        new = tuple(self._last)[max(len(self._last) - (self.count - since), 0) :]
        return [one.order.made for one in new if not (keep > one.keep).any() and not (use > one.use).any()]
