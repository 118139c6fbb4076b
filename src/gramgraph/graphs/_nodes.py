"""How the graph functions take nodes and edges: looked at once, at the door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import SupportsIndex, TypeAlias

from gramgraph.exceptions import ModelError, VariableError

Nodes: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
Edge: TypeAlias = tuple[int, int]


def as_nodes(nodes: Nodes, n: int) -> tuple[int, ...]:
    """One node or several as an ascending tuple without repetition; an error names what is not a node."""
    given = nodes if isinstance(nodes, Iterable) else (nodes,)
    try:
        found = sorted({index(v) for v in given})
    except TypeError:
        raise VariableError(f"Expected node numbers 0 to {n - 1}, got {nodes!r}.") from None
    for v in found[:1] + found[-1:]:
        if not 0 <= v < n:
            raise VariableError(f"{v} is not a node of this graph. Nodes: 0 to {n - 1}." if n else f"{v}: no nodes.")
    return tuple(found)


def as_edges(edges: Iterable[tuple[SupportsIndex, SupportsIndex]], n: int) -> Iterator[Edge]:
    """The edges as pairs of plain numbers; an error names what is not a node."""
    for a, b in edges:
        try:
            edge = index(a), index(b)
        except TypeError:
            raise VariableError(f"Expected edges between node numbers 0 to {n - 1}, got ({a!r}, {b!r}).") from None
        if not (0 <= edge[0] < n and 0 <= edge[1] < n):
            as_nodes(edge, n)  # raises
        yield edge


def checked_neighbors(lists: Sequence[Iterable[SupportsIndex]], relation: str) -> tuple[tuple[int, ...], ...]:
    """Sorted neighbor tuples; every fault (self-loop, number out of range) is reported at once."""
    n = len(lists)
    rows = tuple(tuple(sorted({index(u) for u in row})) for row in lists)
    faults = []
    for v, row in enumerate(rows):
        if row and not 0 <= row[0] <= row[-1] < n:
            wrong = [u for u in row if not 0 <= u < n]
            faults.append(f"Node {v} has the {relation} {wrong[0]}, but the nodes are 0 to {n - 1}.")
        if v in row:
            faults.append(f"Node {v} is its own {relation}: self-loops are not allowed.")
    if faults:
        raise ModelError(faults)
    return rows


def flags(nodes: Iterable[int], n: int) -> bytearray:
    """One byte per node, 1 for the given ones."""
    result = bytearray(n)
    for v in nodes:
        result[v] = 1
    return result


def marked(flags: bytearray) -> tuple[int, ...]:
    """The nodes whose flag is set, ascending."""
    return tuple(v for v, flag in enumerate(flags) if flag)
