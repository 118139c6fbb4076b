"""The arrays of a search over clauses, by what they are about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph._numerics.clauses.propagation import COUNTERS

#: Room that is made for each node: for items, for links, and bytes with all else.
ITEMS_PER_NODE, LINKS_PER_NODE, BYTES_PER_NODE = 64, 4, 380
#: How often everything has room in the stack of parts, and for how many nodes once more.
DEEP, NODES_PER_DEPTH = 32, 1000


class Clauses(NamedTuple):
    """Clauses over variables of two states, with room for learned ones behind them."""

    first: np.ndarray  # (clauses + 1,) where the literals of each begin
    literals: np.ndarray
    log_weight: np.ndarray  # (clauses,) -inf where a clause must hold
    log_literal: np.ndarray  # (2 n,)
    leading: np.ndarray  # (n,) how much a variable is to be chosen first
    marks: np.ndarray  # (n + clauses, 2) random numbers


class Assigned(NamedTuple):
    """Which variables have a value, why, and what watches them."""

    value: np.ndarray
    depth: np.ndarray
    reason: np.ndarray
    trail: np.ndarray
    head: np.ndarray
    following: np.ndarray
    seen: np.ndarray
    activity: np.ndarray
    learned: np.ndarray
    units: np.ndarray


class Parts(NamedTuple):
    """A stack of parts, each with its variables and clauses; and room for what telling them apart needs."""

    first_member: np.ndarray
    first_clause: np.ndarray
    members: np.ndarray
    clauses: np.ndarray
    root: np.ndarray
    number: np.ndarray
    left: np.ndarray
    times: np.ndarray


class Depths(NamedTuple):
    """What is known at each depth: the part, the choice in it, and how far everything was when it was made."""

    part: np.ndarray
    base: np.ndarray
    trail: np.ndarray
    literal: np.ndarray
    second: np.ndarray
    total: np.ndarray  # of the value that is tried
    other_total: np.ndarray  # of the value that was tried first
    kept: np.ndarray  # (depths, 3) nodes, items, links
    branch: np.ndarray  # (depths, 6)
    key: np.ndarray  # (depths, 2)


class Sums(NamedTuple):
    """What is remembered: a node for each part that is summed, found by its fingerprint.

    A node has two branches, for both values of the variable chosen: items from … to (literals; 2n + v is an open
    variable in no clause) and the first of its links, each a node below and the next link.
    """

    key: np.ndarray  # (nodes, 2)
    total: np.ndarray
    share: np.ndarray  # (nodes, 2) of both branches: of a small one, the rest of the other would be rounding
    chain: np.ndarray
    branches: np.ndarray  # (nodes, 6)
    buckets: np.ndarray  # a power of two
    items: np.ndarray
    links: np.ndarray  # (links, 2)


def bytes_for(n, n_clauses):
    """Bytes of the arrays of a search: whatever it remembers, and more for each node."""
    stack = 4.0 * (3 * n + n_clauses)
    return DEEP * stack + 200.0 * n, BYTES_PER_NODE + stack / NODES_PER_DEPTH


def room_for(clauses, n_clauses, n_all, nodes):
    """Arrays for a search that remembers so many sums: counters, `Assigned`, `Parts`, `Depths` and `Sums`."""
    n = len(clauses.leading)
    deep = DEEP + nodes // NODES_PER_DEPTH
    assigned = Assigned(
        np.empty(n, np.int8),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(2 * n, np.int32),
        np.empty(2 * len(clauses.first), np.int32),
        np.empty(n, np.bool_),
        np.empty(n),
        np.empty(n + 1, np.int32),
        np.empty(n_all + n, np.int32),
    )
    parts = Parts(
        np.empty(deep * n + 64, np.int32),
        np.empty(deep * n + 64, np.int32),
        np.empty(deep * n, np.int32),
        np.empty(deep * n_clauses, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n_clauses, np.int32),
        np.empty(2 * n, np.int32),
    )
    whole = [np.empty(n + 2, np.int32) for _ in range(4)]
    depths = Depths(
        *whole,
        np.empty(n + 2, np.bool_),
        np.empty(n + 2),
        np.empty(n + 2),
        np.empty((n + 2, 3), np.int64),
        np.zeros((n + 2, 6), np.int32),
        np.empty((n + 2, 2), np.uint64),
    )
    sums = Sums(
        np.empty((nodes, 2), np.uint64),
        np.empty(nodes),
        np.empty((nodes, 2)),
        np.empty(nodes, np.int32),
        np.empty((nodes, 6), np.int32),
        np.empty(1 << max(nodes - 1, 1).bit_length(), np.int32),
        np.empty(ITEMS_PER_NODE * nodes + n, np.int32),
        np.empty((LINKS_PER_NODE * nodes, 2), np.int32),
    )
    return np.zeros(COUNTERS, np.int64), assigned, parts, depths, sums
