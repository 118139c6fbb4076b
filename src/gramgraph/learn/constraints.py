"""What the user knows of a graph: required and forbidden edges, tiers, a start; names in, masks out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from gramgraph.exceptions import OptionError
from gramgraph.learn.search import Constraints
from gramgraph.models import BayesianNetwork
from gramgraph.typing import IntArray
from gramgraph.variables import Var

__all__ = ["count", "read_constraints", "start_graph", "tier_ranks"]


class Named(Protocol):
    """A table with named columns."""

    @property
    def variables(self) -> tuple[Var, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def position(self, name: str) -> int: ...


def count(given: Any, what: str) -> int:
    """A count from 0 on."""
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 0:
        raise OptionError(f"{what} is a count from 0, not {given!r}")
    return int(given)


def tier_ranks(table: Named, tiers: Sequence[Iterable[str]]) -> IntArray:
    """The tier of every column, -1 where it has none."""
    ranks = np.full(len(table.variables), -1)
    for level, names in enumerate(tiers):
        for name in [names] if isinstance(names, str) else names:
            ranks[table.position(name)] = level
    return ranks


def read_constraints(
    table: Named,
    required: Iterable[tuple[str, str]],
    forbidden: Iterable[tuple[str, str]],
    tiers: Sequence[Iterable[str]] | None,
    max_parents: int | None,
) -> Constraints:
    """Constraints from names; contradictions are named."""
    n = len(table.variables)
    must, never = np.zeros((n, n), bool), np.eye(n, dtype=bool)
    for a, b in edges_of(required, "required"):
        must[table.position(a), table.position(b)] = True
    for a, b in edges_of(forbidden, "forbidden"):
        never[table.position(a), table.position(b)] = True
    if tiers is not None:
        ranks = tier_ranks(table, tiers)
        never |= (ranks[:, np.newaxis] > ranks) & (ranks >= 0)
    if (must & never).any():
        a, b = np.argwhere(must & never)[0]
        raise OptionError(f"the edge {table.names[a]} -> {table.names[b]} is both required and forbidden")
    refuse_cycles([tuple(np.flatnonzero(must[:, v]).tolist()) for v in range(n)], table.names)
    limit = n if max_parents is None else count(max_parents, "max_parents")
    if int(must.sum(axis=0).max(initial=0)) > limit:
        raise OptionError(f"{table.names[int(must.sum(axis=0).argmax())]} has more required parents than max_parents")
    return Constraints(must, never, limit)


def edges_of(edges: Iterable[tuple[str, str]], what: str) -> list[tuple[str, str]]:
    """Edges as pairs of names."""
    found = list(edges)
    for edge in found:
        if isinstance(edge, str) or len(edge) != 2:
            raise OptionError(f"{what} is a list of pairs (parent, child), got {edge!r}")
    return [(a, b) for a, b in found]


def start_graph(
    table: Named, start: BayesianNetwork | Iterable[tuple[str, str]], constraints: Constraints
) -> list[tuple[int, ...]]:
    """Parents in the graph that a search begins with: required edges, and those of `start`."""
    edges = start.edges if isinstance(start, BayesianNetwork) else edges_of(start, "start")
    chosen = constraints.required.copy()
    for a, b in edges:
        chosen[table.position(a), table.position(b)] = True
    parents = [tuple(np.flatnonzero(chosen[:, v]).tolist()) for v in range(len(table.variables))]
    if (chosen & constraints.forbidden).any() or max(map(len, parents), default=0) > constraints.max_parents:
        raise OptionError("the start has forbidden edges, or more parents than max_parents")
    refuse_cycles(parents, table.names)
    return parents


def refuse_cycles(parents: list[tuple[int, ...]], names: tuple[str, ...]) -> None:
    """`OptionError` that names the variables of a cycle."""
    left = set(range(len(parents)))
    while left:
        free = [v for v in sorted(left) if not left.intersection(parents[v])]
        if not free:
            raise OptionError(
                f"the required edges (with the start) have a cycle among {', '.join(names[v] for v in sorted(left))}"
            )
        left.difference_update(free)
