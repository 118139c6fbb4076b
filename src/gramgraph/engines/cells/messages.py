"""Sum-product on a tree of tables over cells, for many cases with different evidence at once.

A message to s is a function on the cells of s; t sends R (q_t · product of what it heard). An observed variable sends
the column of R at its value, between two cells; far from all data it is as not observed. Every message is a
matrix product over all cases, 2 m² operations a case and edge; subtrees without evidence send one and are not visited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.cells.axes import Placed
from gramgraph.typing import Array, FloatArray

_MANY = 4  # products of more messages than this are rescaled on the way


@dataclass(frozen=True, eq=False)
class Branches:
    """A forest, roots first: `parent` (−1 at roots), and the table [parent, child] of each edge."""

    order: tuple[int, ...]
    parent: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    q: tuple[Array, ...]  # masses of the cells
    down: tuple[Any, ...]  # (m_parent, m_child) table of the edge above each node, None at roots
    dtype: Any

    @property
    def roots(self) -> tuple[int, ...]:
        """Nodes without a parent."""
        return tuple(v for v in self.order if self.parent[v] < 0)


def branches_of(q: Sequence[FloatArray], edges: Sequence[tuple[int, int, Any]]) -> Branches:
    """From masses and edges (a, b, table[a, b]); every component hangs from its first variable."""
    near: list[list[tuple[int, Any]]] = [[] for _ in q]
    for a, b, R in edges:
        near[a].append((b, R))
        near[b].append((a, R.T))
    parent, down = [-2] * len(q), [None] * len(q)
    order: list[int] = []
    for root in range(len(q)):
        if parent[root] != -2:
            continue
        parent[root] = -1
        queue = [root]
        for v in queue:
            order.append(v)
            for u, R in near[v]:
                if parent[u] == -2:
                    parent[u], down[u] = v, R
                    queue.append(u)
    children: list[list[int]] = [[] for _ in q]
    for v in order:
        if parent[v] >= 0:
            children[parent[v]].append(v)
    dtype = np.float32 if any(R is not None and R.dtype == np.float32 for R in down) else np.float64
    kept = tuple(None if R is None else np.ascontiguousarray(R, dtype=dtype) for R in down)
    masses = tuple(np.asarray(mass, dtype=dtype) for mass in q)
    return Branches(tuple(order), tuple(parent), tuple(map(tuple, children)), masses, kept, dtype)


class _Case:
    """Evidence of one variable in a block of cases.

    An observation at the edge of the data counts with probability `near`, and else the variable is as not observed, so
    that what others say about it passes through: both are mixed by how well they explain the rest.
    """

    def __init__(self, placed: Placed, dtype: Any) -> None:
        self.rows = np.flatnonzero(placed.known)
        at = placed.take(self.rows)
        self.a, self.b = at.a, at.b
        self.f, self.near = at.f.astype(dtype), at.near
        self.far = np.flatnonzero(self.near < 1.0)
        self.all = len(self.rows) == len(placed.known) and not len(self.far)

    def log_value(self, messages: Sequence[Array]) -> FloatArray:
        """log of the product of messages (m, cases) at the observed values: one number an observed case."""
        total = np.zeros(len(self.rows))
        with np.errstate(divide="ignore"):
            for M in messages:
                inside = M[self.a, self.rows] * (1 - self.f) + M[self.b, self.rows] * self.f
                total += np.log(inside, dtype=np.float64)
        return total

    def put(self, G: Array) -> None:
        """Columns of observed cases: all mass at the observed value."""
        block = np.zeros((len(G), len(self.rows)), dtype=G.dtype)
        k = np.arange(len(self.rows))
        block[self.a, k] += 1 - self.f
        block[self.b, k] += self.f
        G[:, self.rows] = block

    def mixed(self, observed: FloatArray, hidden: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of near · observed + (1 − near) · hidden of the far rows, and the share of the first."""
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.log(self.near[self.far]) + observed[self.far]
            total = np.logaddexp(first, np.log1p(-self.near[self.far]) + hidden[self.rows[self.far]])
            return total, np.nan_to_num(np.exp(first - total))

    def settle(self, G: Array, observed: FloatArray, hidden: FloatArray | None) -> FloatArray:
        """Observed columns of G, scaled to one before; log of what each observed case explains."""
        total = observed.copy()
        if not len(self.far):
            self.put(G)
            return total
        assert hidden is not None
        at = self.rows[self.far]
        before = G[:, at].copy()
        self.put(G)
        total[self.far], share = self.mixed(observed, hidden)
        G[:, at] = G[:, at] * share.astype(G.dtype) + before * (1.0 - share).astype(G.dtype)
        return total


@dataclass(eq=False)
class _Pass:
    """The messages of one block of cases."""

    tree: Branches
    cases: int
    seen: dict[int, _Case]
    up: dict[int, Array]  # message of a node to its parent
    log_z: FloatArray

    def product(self, v: int, messages: Sequence[Array]) -> tuple[Array | None, FloatArray | None]:
        """Product of messages at v (None: one), and the log scale that was taken out."""
        if not messages:
            return None, None
        out = messages[0].copy() if len(messages) > 1 else messages[0]
        scale: FloatArray | None = None
        for i, M in enumerate(messages[1:], 1):
            out *= M
            if i % _MANY == 0:
                top = np.maximum(out.max(axis=0), 1e-30)
                out /= top
                scale = np.log(top) if scale is None else scale + np.log(top)
        return out, scale

    def send(self, v: int, messages: Sequence[Array], table: Array, *, count: bool) -> Array:
        """The message of v through `table` after it heard `messages`; with `count` its scale joins log Z."""
        inside, scale = self.product(v, messages)
        q = self.tree.q[v]
        G = np.repeat(q[:, None], self.cases, axis=1) if inside is None else inside * q[:, None]
        case = self.seen.get(v)
        log_scale = None
        if not (case is not None and case.all):
            total = G.sum(axis=0)
            total[~(total > 0)] = 1  # impossible: the zeros stay and are found at the root
            G /= total
            log_scale = np.log(total, dtype=np.float64)
            if scale is not None:
                log_scale = log_scale + scale
        if case is not None:
            observed = case.log_value(messages) if count or len(case.far) else np.zeros(len(case.rows))
            explained = case.settle(G, observed, log_scale)
            if count:
                self.log_z[case.rows] += explained
                if log_scale is not None:
                    log_scale[case.rows] = 0.0
        if count and log_scale is not None:
            self.log_z += log_scale
        return np.asarray(table @ G)

    def finish(self, root: int, messages: Sequence[Array]) -> None:
        """What the root heard joins log Z."""
        if not messages:
            return
        inside, scale = self.product(root, messages)
        assert inside is not None
        case = self.seen.get(root)
        with np.errstate(divide="ignore"):
            value = np.log(self.tree.q[root] @ inside, dtype=np.float64)
        if scale is not None:
            value = value + scale
        if case is not None:
            explained = case.log_value(messages)
            if len(case.far):
                explained[case.far] = case.mixed(explained, value)[0]
            value[case.rows] = explained
        self.log_z += value


def upward(tree: Branches, placed: Mapping[int, Placed], cases: int) -> _Pass:
    """Messages towards the roots, and log p(e) − Σ log p(x_e) of every case."""
    seen = {v: _Case(p, tree.dtype) for v, p in placed.items() if p.known.any()}
    state = _Pass(tree, cases, seen, {}, np.zeros(cases))
    for v in reversed(tree.order):
        heard = [state.up[c] for c in tree.children[v] if c in state.up]
        if tree.parent[v] < 0:
            state.finish(v, heard)
        elif heard or v in seen:
            state.up[v] = state.send(v, heard, tree.down[v], count=True)
    return state


def propagate(
    tree: Branches, placed: Mapping[int, Placed], cases: int, targets: Sequence[int]
) -> tuple[dict[int, Array], FloatArray]:
    """Posterior masses (cases, m) of the targets, and log p(e) − Σ log p(x_e)."""
    state = upward(tree, placed, cases)
    wanted = _towards(tree, targets)
    heard: dict[int, Array] = {}  # what the parent says
    out: dict[int, Array] = {}
    asked = set(targets)
    for v in tree.order:
        if not wanted[v]:
            continue
        above = [heard[v]] if v in heard else []
        below = [c for c in tree.children[v] if c in state.up]
        if v in asked:
            out[v] = _belief(state, v, above + [state.up[c] for c in below])
        _tell(state, v, above, below, wanted, heard)
        heard.pop(v, None)
    return out, state.log_z


def _tell(
    state: _Pass, v: int, above: list[Array], below: list[int], wanted: list[bool], heard: dict[int, Array]
) -> None:
    """Messages of v to those children that lead to a target; all others' messages multiply, never a division."""
    tree = state.tree
    messages = above + [state.up[c] for c in below]
    place = {c: i + len(above) for i, c in enumerate(below)}
    case = state.seen.get(v)
    told = [c for c in tree.children[v] if wanted[c]]
    if case is not None and case.all:
        for c in told:
            heard[c] = state.send(v, [], tree.down[c].T, count=False)
        return
    before, after = _running(messages) if len(told) > 1 and len(messages) > 3 else ([], [])
    for c in told:
        i = place.get(c, -1)
        if before and i >= 0:
            others = [M for M in (before[i], after[i + 1]) if M is not None]
        else:
            others = [M for k, M in enumerate(messages) if k != i]
        if others or case is not None:
            heard[c] = state.send(v, others, tree.down[c].T, count=False)


def _running(messages: list[Array]) -> tuple[list[Any], list[Any]]:
    """Products of the messages before each one, and from each one on, rescaled."""

    def scan(items: list[Array]) -> list[Any]:
        out: list[Any] = [None]
        for M in items:
            new = M if out[-1] is None else out[-1] * M
            if len(out) > 1:
                new = new / np.maximum(new.max(axis=0), 1e-30)
            out.append(new)
        return out

    return scan(messages), scan(messages[::-1])[::-1]


def _belief(state: _Pass, v: int, messages: list[Array]) -> Array:
    inside, _ = state.product(v, messages)
    q = state.tree.q[v]
    G = np.repeat(q[:, None], state.cases, axis=1) if inside is None else inside * q[:, None]
    case = state.seen.get(v)
    if case is not None:
        case.put(G)
    total = G.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.ascontiguousarray((G / total).T)


def _towards(tree: Branches, targets: Sequence[int]) -> list[bool]:
    """Whether a target lies in the subtree of each node."""
    out = [False] * len(tree.parent)
    for v in targets:
        out[v] = True
    for v in reversed(tree.order):
        if out[v] and tree.parent[v] >= 0:
            out[tree.parent[v]] = True
    return out
