"""Elimination orders of large graphs: what needs no search goes first, on lists of neighbors; the rest is searched."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gramgraph.compile.budget import budget_of, check_planning
from gramgraph.typing import Array, FloatArray, IntArray

#: Up to this many nodes the graph is rows of bits from the start.
FEW_NODES = 1024
#: So many nodes that need a search are searched as rows of bits, with restarts; more of them on lists of neighbors.
DENSE_CORE = 16_384
#: Beyond this log size no order helps: the cliques that are left count as one.
HOPELESS_LOG_SIZE = 64.0
#: Bytes that planning takes at its peak, measured on chains, random trees and grids: a variable, a pair inside a scope.
BYTES_PER_NODE = 420
BYTES_PER_PAIR = 24


class Order(NamedTuple):
    """An elimination order with its cliques in CSR, and the rule that found it."""

    order: IntArray
    ptr: IntArray
    idx: IntArray
    rule: int
    restarted: bool

    def among(self, keep: Array) -> Order:
        """The same order of some of the nodes: no clique becomes larger, and none is new.

        The last clique may stand for several nodes that are not in the order: it stays while one of them is kept.
        """
        kept = keep[self.idx] > 0
        inside = np.concatenate([[0], np.cumsum(kept)])
        order = self.order
        last = self.idx[self.ptr[-2] :] if len(order) else order
        if len(last) > 1 and not keep[order[-1]] and keep[last].any():
            order = np.append(order[:-1], last[keep[last] > 0][:1])
        own = keep[order] > 0
        starts, ends = inside[self.ptr[:-1]][own], inside[self.ptr[1:]][own]
        members = self.idx[kept & np.repeat(own, np.diff(self.ptr))]
        return self._replace(order=order[own], ptr=np.concatenate([[0], np.cumsum(ends - starts)]), idx=members)

    @classmethod
    def of_tree(cls, clique_ptr: IntArray, clique_idx: IntArray, parent: IntArray, topo: IntArray) -> Order:
        """An order that gives these cliques, which form a junction tree: from its leaves on.

        A variable leaves with the clique nearest to the root that holds it: its neighbors that are left are the members
        behind it, where each clique lists its leaving variables first.
        """
        widths = np.diff(clique_ptr)
        place = np.empty(len(topo), np.int64)
        place[topo] = np.arange(len(topo))  # parents first
        depth = np.repeat(place, widths)
        deepest_first = np.argsort(-depth, kind="stable")
        top = np.empty(clique_idx.max(initial=-1) + 1, np.int64)
        top[clique_idx[deepest_first]] = depth[deepest_first]  # the last one stays
        leaves = depth == top[clique_idx]
        by_clique = np.lexsort((~leaves, -depth))
        members, leaves = clique_idx[by_clique], leaves[by_clique]
        ends = np.repeat(np.cumsum(widths[topo[::-1]]), widths[topo[::-1]])
        first = np.flatnonzero(leaves)
        lengths = ends[first] - first
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        inside = np.repeat(first - ptr[:-1], lengths) + np.arange(ptr[-1])
        return cls(members[first], ptr, members[inside], 0, False)

    def log_cells(self, log_sizes: FloatArray) -> float:
        """Log of the number of cells of the cliques that lie in no other one."""
        m = len(self.order)
        if not m:
            return -np.inf
        step = np.full(len(log_sizes), m)
        step[self.order] = np.arange(m)
        widths = np.diff(self.ptr)
        later = np.where(step[self.idx] > np.repeat(np.arange(m), widths), step[self.idx], m)
        parent = np.minimum.reduceat(later, self.ptr[:-1])
        inside = np.append(widths, 0)[parent] == widths - 1  # the parent of the clique lies in it
        maximal = np.ones(m + 1, np.bool_)
        maximal[parent[inside]] = False
        logs = np.add.reduceat(log_sizes[self.idx], self.ptr[:-1])
        return float(np.logaddexp.reduce(logs[maximal[:m]]))


class TreeOrder:
    """The order of a tree (`Order.of_tree`), made when it is first asked for: most trees are never compared."""

    def __init__(self, clique_ptr: IntArray, clique_idx: IntArray, parent: IntArray, topo: IntArray) -> None:
        self._tree = clique_ptr, clique_idx, parent, topo

    @cached_property
    def made(self) -> Order:
        """The order."""
        return Order.of_tree(*self._tree)


def planning_bytes(n: int, scope_ptr: IntArray) -> float:
    """About how much memory choosing an order takes, before any of it is taken."""
    lengths = np.diff(scope_ptr).astype(np.float64)
    return float(BYTES_PER_NODE * n + BYTES_PER_PAIR * (lengths * (lengths - 1.0)).sum())


def sparse_order(
    scope_ptr: IntArray,
    scope_idx: IntArray,
    log_sizes: FloatArray,
    keep: Array,
    cases: int,
    seconds_per_cell: float,
    memory: float | None = None,
) -> Order:
    """The order that `_numerics.tree.search.search_order` finds, on lists of neighbors; `BudgetError` before they
    would take more than `memory` bytes.

    Nodes whose neighbors are all linked add no edge, whatever else is decided: a tree has no others. What is left when
    they are gone is searched: as rows of bits, or by the three rules on lists where it is large.
    """
    from gramgraph._numerics.tree import sparse_elimination as sparse
    from gramgraph._numerics.tree.clique_forests import total_log_size

    n = len(log_sizes)
    check_planning(n, planning_bytes(n, scope_ptr), memory)
    ptr, idx = sparse.neighbor_lists(n, scope_ptr, scope_idx, keep)
    end, order, clique_ptr, clique_idx = sparse.eliminate_sparse(ptr, idx, log_sizes, keep, 0, True, np.inf, 0)
    first = Order(order, clique_ptr, clique_idx, 0, False)
    if end == sparse.ALL_GONE:
        return first
    left = keep.astype(np.uint8)
    left[order] = 0
    nodes = np.flatnonzero(left)
    if len(nodes) <= DENSE_CORE:
        before = total_log_size(clique_ptr, clique_idx, log_sizes)
        return _joined(first, nodes, _dense(ptr, idx, nodes, log_sizes, before, cases, seconds_per_cell))
    return _joined(first, nodes, _sparse(ptr, idx, nodes, log_sizes, budget_of(memory)))


def searched_order(
    scope_ptr: IntArray,
    scope_idx: IntArray,
    log_sizes: FloatArray,
    keep: Array,
    cases: int,
    seconds_per_cell: float,
    memory: float | None = None,
) -> Order:
    """The order of the tree that `plan_tree` makes of these scopes."""
    from gramgraph._numerics.tree.search import search_order
    from gramgraph._numerics.tree.triangulation import build_adjacency

    n = len(log_sizes)
    if n > FEW_NODES:
        return sparse_order(scope_ptr, scope_idx, log_sizes, keep, cases, seconds_per_cell, memory)
    rows = build_adjacency(n, scope_ptr, scope_idx, keep)
    return Order(*search_order(rows, log_sizes, keep, np.arange(n), n, -np.inf, cases, seconds_per_cell))


def _dense(
    ptr: IntArray,
    idx: Array,
    nodes: IntArray,
    log_sizes: FloatArray,
    before: float,
    cases: int,
    seconds_per_cell: float,
) -> Order:
    """The search on rows of bits among `nodes`, which are counted anew."""
    from gramgraph._numerics.tree.search import search_order
    from gramgraph._numerics.tree.triangulation import build_adjacency

    n, k = len(log_sizes), len(nodes)
    inner_ptr, inner_idx = _inside(ptr, idx, nodes)
    ends = np.empty((len(inner_idx), 2), np.int64)  # each link as a scope of two
    ends[:, 0] = np.repeat(np.arange(k), np.diff(inner_ptr))
    ends[:, 1] = inner_idx
    keep = np.ones(k, np.uint8)
    rows = build_adjacency(k, np.arange(0, ends.size + 1, 2, dtype=np.int64), ends.reshape(-1), keep)
    del ends
    return Order(*search_order(rows, log_sizes[nodes], keep, nodes, n, before, cases, seconds_per_cell))


def _sparse(ptr: IntArray, idx: Array, nodes: IntArray, log_sizes: FloatArray, room: float) -> Order:
    """The best of the three rules on lists of neighbors among `nodes`, which are counted anew."""
    from gramgraph._numerics.tree import sparse_elimination as sparse
    from gramgraph._numerics.tree.clique_forests import total_log_size

    inner_ptr, inner_idx = _inside(ptr, idx, nodes)
    logs, keep = log_sizes[nodes], np.ones(len(nodes), np.uint8)
    most = int(max(room / 8.0, 2.0 * len(inner_idx) + 64.0))  # entries of four bytes, and a copy while they grow
    best: Order | None = None
    best_size = np.inf
    for rule in range(3):
        end, order, clique_ptr, clique_idx = sparse.eliminate_sparse(
            inner_ptr, inner_idx, logs, keep, rule, False, HOPELESS_LOG_SIZE, most
        )
        found = Order(order, clique_ptr, clique_idx, rule, False)
        if end != sparse.ALL_GONE:
            found = _with_rest(found, len(nodes))
        size = total_log_size(found.ptr, found.idx, logs)
        if best is None or size < best_size - 1e-9:
            best, best_size = found, size
        if size > HOPELESS_LOG_SIZE:  # no rule makes up for that
            break
    assert best is not None
    return best


def _inside(ptr: IntArray, idx: Array, nodes: IntArray) -> tuple[IntArray, Array]:
    """The lists of neighbors among `nodes`, by their place there."""
    place = np.full(len(ptr) - 1, -1, np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    inner = place[idx]
    inner[np.repeat(place < 0, np.diff(ptr))] = -1  # lists of nodes that are gone
    kept = inner >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[ptr]
    return np.concatenate([[0], np.cumsum(np.diff(ends)[nodes])]), inner[kept]


def _with_rest(found: Order, n: int) -> Order:
    """The order ended by one clique of all nodes that are left: a table far too large, but a sound tree."""
    left = np.ones(n, np.bool_)
    left[found.order] = False
    rest = np.flatnonzero(left)
    return Order(
        np.append(found.order, rest[:1]),
        np.append(found.ptr, found.ptr[-1] + len(rest)),
        np.concatenate([found.idx, rest]),
        found.rule,
        False,
    )


def _joined(first: Order, nodes: IntArray, then: Order) -> Order:
    """The order that begins with `first` and goes on with `then`, whose nodes are places in `nodes`."""
    return Order(
        np.concatenate([first.order, nodes[then.order]]),
        np.concatenate([first.ptr, first.ptr[-1] + then.ptr[1:]]),
        np.concatenate([first.idx, nodes[then.idx]]),
        then.rule,
        then.restarted,
    )
