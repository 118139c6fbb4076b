"""Join graphs: clusters of bounded size and the arcs between them, from mini-buckets along an elimination order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from gramgraph.typing import Array, IntArray

Scope = tuple[int, ...]
#: Cells of all clusters together, at most.
MOST_CELLS = 1 << 20
#: Cells of one cluster that are tried, the largest first.
LADDER = tuple(1 << k for k in range(18, 5, -1))
#: How far chance varies the rules of elimination: edges added, log size of a clique, log of the weight of added edges.
NOISE = (3.0, 1.0, 1.0)


@dataclass(frozen=True)
class Clusters:
    """Clusters of variables and arcs between them; the clusters and arcs that name a variable form a tree."""

    scopes: tuple[Scope, ...]
    factors: tuple[tuple[int, ...], ...]  # of each cluster
    arcs: tuple[tuple[int, int, Scope], ...]  # from, to, the variables that the arc names; in the order of elimination
    home: tuple[int, ...]  # a cluster of each variable, -1 for none
    cells: int  # of all tables
    most: int  # cells that one cluster was allowed

    @property
    def is_tree(self) -> bool:
        """Whether no bucket had to be split: messages are then exact."""
        return len(self.arcs) + _components(self) == len(self.scopes)


def _components(made: Clusters) -> int:
    root = list(range(len(made.scopes)))

    def top(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for i, j, _ in made.arcs:
        root[top(i)] = top(j)
    return sum(top(i) == i for i in range(len(root)))


def elimination_order(
    scope_ptr: IntArray, scope_idx: IntArray, sizes: IntArray, active: Array, number: int = 0, seed: int = 0
) -> list[int]:
    """A good order in which to sum variables out: the best of three rules, or one that chance varies."""
    from gramgraph._numerics.tree.triangulation import build_adjacency, eliminate
    from gramgraph.graphs import search_order

    keep, logs = active.astype(np.uint8), np.log(sizes)
    rows = build_adjacency(len(sizes), scope_ptr, scope_idx, keep)
    if number == 0:
        best: list[int] = search_order(rows, logs, keep, heuristic="best")[0].tolist()
        return best
    rule = (number - 1) % len(NOISE)
    noise = NOISE[rule] * np.random.default_rng([seed, number]).random(len(sizes))
    found: list[int] = eliminate(rows, logs, keep, rule, noise)[0].tolist()
    return found


class _Item(NamedTuple):
    """What lies in a bucket: a factor, or what a cluster sends there."""

    scope: frozenset[int]
    factor: int  # -1 for a message
    sender: int  # -1 for a factor


def join_clusters(scopes: Sequence[Scope], sizes: Sequence[int], order: Sequence[int], most: int) -> Clusters | None:
    """Clusters of at most `most` cells where the factors allow it; None when all together would pass MOST_CELLS.

    Variable after variable, what holds it is put into as few clusters as fit, joined by arcs that name the variable;
    each cluster sends what is left to the bucket of the variable that is summed out next. A cluster inside the one
    that sends to it is that one. If every bucket fits, this is a junction tree.
    """
    place = {v: i for i, v in enumerate(order)}
    buckets: list[list[_Item]] = [[] for _ in order]
    for f, scope in enumerate(scopes):
        buckets[min(place[v] for v in scope)].append(_Item(frozenset(scope), f, -1))
    made: list[frozenset[int]] = []
    held: list[list[int]] = []
    arcs: list[tuple[int, int, Scope]] = []
    home, cells = [-1] * len(sizes), 0
    for i, v in enumerate(order):
        before = -1
        for union, items in _mini_buckets(buckets[i], sizes, most):
            within = next((item.sender for item in items if item.sender >= 0 and item.scope == union), -1)
            if within < 0:
                within = len(made)
                made.append(union)
                held.append([])
                cells += prod(sizes[u] for u in union)
                if cells > MOST_CELLS:
                    return None
            for item in items:
                if item.factor >= 0:
                    held[within].append(item.factor)
                elif item.sender != within:
                    arcs.append((item.sender, within, _ordered(item.scope, place)))
            if before >= 0 and before != within:
                arcs.append((before, within, (v,)))
            if home[v] < 0:
                home[v] = within
            before, rest = within, union - {v}
            if rest:
                buckets[min(place[u] for u in rest)].append(_Item(rest, -1, within))
        buckets[i] = []
    ordered = tuple(_ordered(scope, place) for scope in made)
    return Clusters(ordered, tuple(map(tuple, held)), tuple(arcs), tuple(home), cells, most)


def _ordered(scope: frozenset[int], place: dict[int, int]) -> Scope:
    return tuple(sorted(scope, key=place.__getitem__))


def _mini_buckets(items: list[_Item], sizes: Sequence[int], most: int) -> list[tuple[frozenset[int], list[_Item]]]:
    """As few groups as fit: the largest first, each into the group that it enlarges least."""
    groups: list[tuple[frozenset[int], list[_Item]]] = []
    weighed = sorted(((prod(sizes[u] for u in item.scope), n) for n, item in enumerate(items)), reverse=True)
    for _, n in weighed:
        item, best, growth = items[n], -1, float("inf")
        for g, (union, _) in enumerate(groups):
            more = prod(sizes[u] for u in item.scope - union)
            if more >= growth:
                continue
            if more == 1 or more * prod(sizes[u] for u in union) <= most:
                best, growth = g, more
        if best < 0:
            groups.append((item.scope, [item]))
        else:
            union, members = groups[best]
            groups[best] = (union | item.scope, [*members, item])
    return groups


def largest_clusters(
    scopes: Sequence[Scope],
    sizes: Sequence[int],
    order: Sequence[int],
    begin: int = LADDER[0],
    stop: Array | None = None,
) -> Clusters | None:
    """The join graph with the largest clusters, from `begin` on, whose cells together stay within MOST_CELLS.

    Once stop[0] is set, the smallest clusters will do.
    """
    for most in LADDER:
        hurried = stop is not None and bool(stop[0])
        if most > (LADDER[-1] if hurried else begin):
            continue
        found = join_clusters(scopes, sizes, order, most)
        if found is not None:
            return found
    return None
