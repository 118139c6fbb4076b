"""What can be wrong with a network, found in a few passes over all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gramgraph.conditionals import Conditional, Table
from gramgraph.conditionals.base import ROW_TOLERANCE
from gramgraph.exceptions import listing
from gramgraph.variables import Discrete, Var


def domain_faults(variables: Iterable[Var]) -> list[str]:
    """Variables without states, and repeated states."""
    found = []
    for var in variables:
        domain = var.domain
        if not isinstance(domain, Discrete):
            continue
        if not domain.states:
            found.append(f"{var.name} has no states")
        elif len(domain.codes) != len(domain.states):
            twice = [label for i, label in enumerate(domain.states) if domain.codes[label] != i]
            found.append(f"{var.name} has the state {listing(dict.fromkeys(map(repr, twice)))} more than once")
    return found


def cycle_faults(parents: Sequence[Sequence[int]], names: Sequence[str]) -> list[str]:
    """Edges from a node to itself, parents named twice, and a directed cycle."""
    if all(v > p for v, row in enumerate(parents) for p in row) and all(len(set(row)) == len(row) for row in parents):
        return []  # the usual order, parents first: nothing to search for
    from gramgraph.graphs import Digraph, find_cycle

    found = []
    for v, row in enumerate(parents):
        if v in row:
            found.append(f"{names[v]} is its own parent")
        twice = [names[p] for i, p in enumerate(row) if p in row[:i]]
        if twice:
            found.append(f"{names[v]} has the parent {listing(twice)} more than once")
    cycle = find_cycle(Digraph(tuple(tuple(p for p in row if p != v) for v, row in enumerate(parents))))
    if cycle:
        path = " -> ".join(names[v] for v in (*cycle, cycle[0]))
        found.append(f"the edges form a cycle: {path}; remove or turn one of them")
    return found


def family_faults(
    variables: Sequence[Var], parents: Sequence[Sequence[int]], conditionals: Sequence[Conditional | None]
) -> list[str]:
    """Conditionals of another node, or whose parents or states are not those of the network."""
    found = []
    if len(conditionals) != len(variables):
        found.append(f"{len(variables)} variables, but {len(conditionals)} conditionals")
    for var, row, c in zip(variables, parents, conditionals, strict=False):
        if c is None:
            continue
        wanted = [variables[p] for p in row]
        if c.child is var and len(wanted) == len(c.parents) and all(map(_same, c.parents, wanted)):
            continue
        if c.child.name != var.name:
            found.append(f"the conditional at {var.name} is one of {c.child.name}")
        elif [p.name for p in c.parents] != [p.name for p in wanted]:
            there, here = listing(p.name for p in c.parents), listing(p.name for p in wanted)
            found.append(f"the conditional of {var.name} has the parents ({there}), the graph says ({here})")
        else:
            for own, given in zip((var, *wanted), (c.child, *c.parents), strict=True):
                if own != given:
                    there = describe(given)
                    here = listing(own.states) if own.is_discrete and given.is_discrete else describe(own)
                    found.append(f"the conditional of {var.name} has {own.name} with {there}, not {here}")
    return found


def describe(var: Var) -> str:
    """`the states a, b`, or that the variable is real-valued, for messages."""
    return f"the states {listing(var.states)}" if var.is_discrete else f"values in {var.domain!r}"


def _same(a: Var, b: Var) -> bool:
    return a is b


def number_faults(conditionals: Iterable[Conditional | None]) -> list[str]:
    """Rows that are not distributions. All tables are looked at in one pass; only where that finds something does
    each conditional speak for itself."""
    given = [c for c in conditionals if c is not None]
    tables = [c for c in given if type(c) is Table and c.values.size]
    fine = not tables or _all_rows_sum_to_one(tables)
    return [fault for c in given if not (fine and type(c) is Table) for fault in c.faults()]


def _all_rows_sum_to_one(tables: Sequence[Table]) -> bool:
    """Whether all entries are non-negative and all rows sum to one, in O(numbers) without a loop over rows."""
    flat = np.concatenate([c.values.ravel() for c in tables])
    if not flat.min() >= 0.0:  # also where an entry is NaN
        return False
    sizes = np.array([c.values.shape[-1] for c in tables])
    counts = np.array([c.values.size for c in tables]) // sizes
    starts = np.concatenate([[0], np.cumsum(np.repeat(sizes, counts))[:-1]])
    sums = np.add.reduceat(flat, starts)
    return bool(np.abs(sums - 1.0).max() <= ROW_TOLERANCE)  # NaN and infinity fail too
