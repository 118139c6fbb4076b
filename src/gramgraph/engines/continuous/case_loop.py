"""How cases are worked through: one group after the other, or on threads, with a report of how many are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from gramgraph._progress import Report
from gramgraph.data.map_reduce import in_order

__all__ = ["ONE_BY_ONE", "Work"]

Found = TypeVar("Found")


@dataclass(frozen=True)
class Work:
    """Threads, and whom to tell. Results come in the order of the items and do not depend on the threads.

    >>> Work(n_jobs=2).each(lambda item: item**2, [1, 2, 3])
    [1, 4, 9]
    """

    n_jobs: int = 1
    report: Report | None = None

    def each(
        self, function: Callable[[Any], Found], items: Iterable[Any], size: Callable[[Any], int] = lambda item: 1
    ) -> list[Found]:
        """function(item) of every item; `size` says how many cases an item stands for."""
        if self.n_jobs == 1 and self.report is None:
            return [function(item) for item in items]
        listed = list(items)
        out: list[Found] = []
        done = 0
        for item, found in zip(listed, in_order(function, listed, n_jobs=self.n_jobs), strict=True):
            out.append(found)
            done += size(item)
            if self.report is not None:
                self.report(done)
        return out


#: No threads, no reports.
ONE_BY_ONE = Work()
