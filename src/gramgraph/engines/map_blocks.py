"""The exact best of many variables at once, given the others: elimination of a part that is narrow enough."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from gramgraph.engines.map_problem import MapProblem
from gramgraph.typing import Array, IntArray

__all__ = ["block_move", "choose_block", "neighbor_sets"]


def neighbor_sets(problem: MapProblem) -> list[set[int]]:
    """The free variables that share a factor with each variable."""
    part, free = problem.part, set(problem.free.tolist())
    out: list[set[int]] = [set() for _ in problem.sizes]
    ptr, idx = part.scope_ptr.tolist(), part.scope_idx.tolist()
    for a, b in pairwise(ptr):
        members = [v for v in idx[a:b] if v in free]
        for v in members:
            out[v].update(members)
    for v, found in enumerate(out):
        found.discard(v)
    return out


def choose_block(
    problem: MapProblem,
    neighbors: list[set[int]],
    limit: float,
    rng: np.random.Generator,
    loose: float = 0.0,
    among: Array | None = None,
) -> list[int]:
    """An elimination order of part of the free variables in which no table has more than 2^limit cells.

    Smallest tables first, ties at random; where none is small enough, a variable with many neighbors is left where it
    stands. `loose` is the share of variables that are left at once, at random; `among` (variables,) marks those that
    may be taken.
    """
    free = problem.free
    bits = np.log2(problem.sizes).tolist()
    noise = rng.random(len(problem.sizes)).tolist()
    graph = {v: set(neighbors[v]) for v in free.tolist()}
    for v in free[(rng.random(len(free)) < loose) | (False if among is None else ~among[free])].tolist():
        for u in graph.pop(v):
            graph[u].discard(v)

    def cost(v: int) -> float:
        return float(bits[v] + sum(bits[u] for u in graph[v]))

    current = {v: cost(v) for v in graph}
    heap = [(c, noise[v], v) for v, c in current.items()]
    heapify(heap)
    order: list[int] = []
    while heap:
        c, _, v = heappop(heap)
        if current.get(v) != c:
            continue
        around = graph[v]
        if c > limit:  # the smallest table is too large
            out = max(sorted(around | {v}), key=lambda u: len(graph[u]) + 3.0 * noise[u])
            touched = graph.pop(out)
            del current[out]
            for u in touched:
                graph[u].discard(out)
        else:
            order.append(v)
            touched = around
            del graph[v], current[v]
            for u in around:
                mine = graph[u]
                mine |= around
                mine.discard(u)
                mine.discard(v)
        for u in touched:
            changed = cost(u)
            if changed != current[u]:
                current[u] = changed
                heappush(heap, (changed, noise[u], u))
    return order


def block_move(problem: MapProblem, order: list[int], state: IntArray) -> IntArray:
    """`state` with the variables of `order` on their best states given all others. Cost: the tables of the order."""
    place = {v: i for i, v in enumerate(order)}
    buckets = _fill(problem, place, state)
    sizes, kept = problem.sizes, []
    at = problem.cases.unary_ptr
    for i, v in enumerate(order):
        scopes = sorted({u for scope, _ in buckets[i] for u in scope} | {i}, reverse=True)  # i comes last
        total: Any = problem.log_unary[at[v] : at[v + 1]].reshape([1] * (len(scopes) - 1) + [-1])
        for scope, table in sorted(buckets[i], key=lambda item: item[1].size):
            inside = set(scope)
            total = total + table.reshape([sizes[order[u]] if u in inside else 1 for u in scopes])
        buckets[i] = []
        rest = tuple(scopes[:-1])
        kept.append((rest, total.argmax(axis=-1)))
        if rest:
            buckets[rest[-1]].append((rest, total.max(axis=-1)))
    out = state.copy()
    for i in range(len(order) - 1, -1, -1):
        rest, best = kept[i]
        out[order[i]] = best[tuple(out[order[u]] for u in rest)]
    return out


def _fill(problem: MapProblem, place: dict[int, int], state: Array) -> list[list[tuple[tuple[int, ...], Any]]]:
    """Every factor, cut at the fixed variables, where its first variable is eliminated; axes in the reverse order."""
    part, logs = problem.part, problem.logs
    sizes, fixed = problem.sizes.tolist(), state.tolist()
    buckets: list[list[tuple[tuple[int, ...], Any]]] = [[] for _ in place]
    ptr, idx, value_ptr = part.scope_ptr.tolist(), part.scope_idx.tolist(), part.value_ptr.tolist()
    for f in range(len(ptr) - 1):
        members = idx[ptr[f] : ptr[f + 1]]
        places = [place[v] for v in members if v in place]
        if not places:
            continue
        table = logs[value_ptr[f] : value_ptr[f + 1]].reshape([sizes[v] for v in members])
        if len(places) < len(members):
            table = table[tuple(slice(None) if v in place else fixed[v] for v in members)]
        by_place = sorted(range(len(places)), key=places.__getitem__, reverse=True)
        scope = tuple(places[j] for j in by_place)
        buckets[scope[-1]].append((scope, table.transpose(by_place)))
    return buckets
