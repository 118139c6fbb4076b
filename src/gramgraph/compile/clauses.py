"""Tables as clauses over variables of two states: what is forbidden, and what has another weight than usual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from gramgraph.compile.lower import Lowered
from gramgraph.compile.tree import Tree
from gramgraph.exceptions import BudgetError
from gramgraph.typing import Array, FloatArray, IntArray

#: States of a table that all have one weight: for each of its variables the states, and log(weight / usual weight).
Box = tuple[tuple[tuple[int, ...], ...], float]
#: Cells of tables that differ, and clauses, that are worked through at most.
MOST_CELLS, MOST_CLAUSES = 200_000, 400_000
#: Tables of so many variables at most are searched for several boxes around each zero: more is implied by them.
FEW_AXES = 4
#: How much the tree leads the choice of variables at most; it leads less the wider it is.
MOST_LEADING = 1e7


@dataclass(frozen=True, eq=False)
class Encoded:
    """A product of tables as clauses: log Z is `log_scale` more than theirs.

    A variable of two states is one variable here (`place`), true for its second state; of others there is one for
    each state. Clauses from `n_clauses` on say that no two of these hold.
    """

    sizes: IntArray
    place: IntArray  # (variables + 1,)
    joints: tuple[IntArray, ...]  # for every joint that is wanted, a variable for each of its states
    n: int
    n_clauses: int
    first: IntArray
    literals: IntArray
    log_weight: FloatArray
    log_literal: FloatArray
    log_scale: float

    @property
    def n_all(self) -> int:
        """The number of all clauses."""
        return len(self.first) - 1

    def belief(self, v: int, p: FloatArray) -> FloatArray:
        """The belief of a variable, from the probabilities of all literals."""
        at = 2 * int(self.place[v])
        return p[at : at + 2] if self.sizes[v] == 2 else p[at + 1 : 2 * int(self.place[v + 1]) : 2]


def boxes(table: FloatArray) -> tuple[list[Box], float]:
    """Boxes that cover all zeros (-inf) and, each once, all entries that differ from the most frequent positive one;
    and the logarithm of that. A table of zeros has neither, and the logarithm is -inf.

    >>> found, usual = boxes(np.array([[0.0, 0.25], [0.25, 0.5]]))
    >>> [box for box, _ in found], np.exp([weight for _, weight in found]).tolist(), float(np.exp(usual))
    ([((0,), (0,)), ((1,), (1,))], [0.0, 2.0], 0.25)
    """
    zero = table == 0.0
    if zero.all():
        return [], -np.inf
    out: list[Box] = []
    covered = np.zeros(table.shape, np.bool_)
    turns = table.ndim if table.ndim <= FEW_AXES else 1
    for cell in map(tuple, np.argwhere(zero).tolist()):
        if not covered[cell]:
            found = dict.fromkeys(_grown(zero, cell, turn) for turn in range(turns))
            for box in found:
                covered[np.ix_(*box)] = True
            out += [(box, -np.inf) for box in found]
    kinds, counts = np.unique(table[~zero], return_counts=True)
    usual = kinds[counts.argmax()]
    done = zero | (table == usual)
    for cell in map(tuple, np.argwhere(~done).tolist()):
        if not done[cell]:  # zeros are forbidden anyway: a box may hold some
            box = _grown(zero | ((table == table[cell]) & ~done), cell, 0)
            done[np.ix_(*box)] = True
            out.append((box, float(np.log(table[cell]) - np.log(usual))))
    return out, float(np.log(usual))


def _grown(good: Array, cell: tuple[int, ...], turn: int) -> tuple[tuple[int, ...], ...]:
    """A box of good entries around one of them, made longer along one axis after the other, from axis `turn` on."""
    box: list[Sequence[int]] = [(state,) for state in cell]
    for k in range(good.ndim):
        axis = (k + turn) % good.ndim
        index = [*box[:axis], range(good.shape[axis]), *box[axis + 1 :]]
        others = tuple(a for a in range(good.ndim) if a != axis)
        box[axis] = np.flatnonzero(good[np.ix_(*index)].all(axis=others)).tolist()
    return tuple(map(tuple, box))


def encode(low: Lowered, joints: Sequence[tuple[int, ...]] = ()) -> Encoded:
    """The clauses of a model in which nothing is observed; `BudgetError` where they are too many.

    Every joint that is wanted brings a variable for each of its states, which is true with it alone.
    """
    sizes = low.sizes
    place = np.concatenate([[0], np.cumsum(np.where(sizes == 2, 1, np.where(sizes > 2, sizes, 0)))])
    n = int(place[-1])
    made: list[list[int]] = []
    log_weight: list[float] = []
    log_scale = low.log_scale
    log_states = [np.zeros(size) for size in sizes.tolist()]
    known: dict[tuple[tuple[int, ...], bytes], tuple[list[Box], float]] = {}
    cells = 0
    for v in np.flatnonzero(sizes > 2).tolist():
        made.append([2 * i + 1 for i in range(place[v], place[v + 1])])
        log_weight.append(-np.inf)
    for f in range(low.n_factors):
        scope = low.scope_idx[low.scope_ptr[f] : low.scope_ptr[f + 1]].tolist()
        table = low.values[low.value_ptr[f] : low.value_ptr[f + 1]].reshape([int(sizes[v]) for v in scope])
        if len(scope) == 1:
            with np.errstate(divide="ignore"):
                log_states[scope[0]] = log_states[scope[0]] + np.log(table)
            continue
        key = (table.shape, table.tobytes())
        if key not in known:
            cells += table.size
            if cells > MOST_CELLS or len(made) > MOST_CLAUSES:
                raise BudgetError("the tables are too large to be written as clauses", bytes=8.0 * len(low.values))
            known[key] = boxes(table)
        found, usual = known[key]
        log_scale += usual
        for box, weight in found:
            made.append([x for v, states in zip(scope, box, strict=True) for x in _outside(v, states, sizes, place)])
            log_weight.append(weight)
    if log_scale == -np.inf and n:  # nothing is possible: two clauses that contradict each other end the search at once
        made += [[0], [1]]
        log_weight += [-np.inf] * 2
    numbers = []
    for members in joints:
        shape = tuple(int(sizes[v]) for v in members)
        numbers.append(np.arange(n, n + int(np.prod(shape))))
        for row, states in enumerate(np.ndindex(*shape)):
            out = [_outside(v, (s,), sizes, place)[0] for v, s in zip(members, states, strict=True)]
            made += [[2 * (n + row), x ^ 1] for x in out] + [[2 * (n + row) + 1, *out]]
            log_weight += [-np.inf] * (len(out) + 1)
        n += len(numbers[-1])
    n_clauses = len(made)
    for v in np.flatnonzero(sizes > 2).tolist():
        made += [[2 * a, 2 * b] for a in range(place[v], place[v + 1]) for b in range(place[v], a)]
    first = np.cumsum([0, *map(len, made)])
    literals = np.fromiter((x for clause in made for x in clause), np.int64, first[-1])
    log_literal = np.zeros(2 * n)
    for v, logs in enumerate(log_states):
        at = 2 * int(place[v])
        if len(logs) == 2:
            log_literal[at : at + 2] = logs
        elif len(logs) > 2:
            log_literal[at + 1 : 2 * int(place[v + 1]) : 2] = logs
        else:
            log_scale += float(logs.sum())
    return Encoded(
        sizes, place, tuple(numbers), n, n_clauses, first, literals,
        log_weight=np.array(log_weight), log_literal=log_literal, log_scale=log_scale,
    )  # fmt: skip


def _outside(v: int, states: Sequence[int], sizes: IntArray, place: IntArray) -> list[int]:
    """Literals one of which is true where the variable has none of the states; none where it has no others."""
    size, at = int(sizes[v]), int(place[v])
    if len(states) == size:
        return []
    if size == 2:
        return [2 * at + 1 - states[0]]
    if len(states) == 1:
        return [2 * (at + states[0])]
    held = set(states)
    return [2 * (at + s) + 1 for s in range(size) if s not in held]


def leading(tree: Tree, n: int) -> FloatArray:
    """How much each of n variables is to be chosen first: those in the middle of the tree take it apart."""
    k = len(tree.parent)
    out = np.zeros(n)
    if not k:
        return out
    parent, topo = tree.parent.tolist(), tree.topo.tolist()
    widths = np.diff(tree.clique_ptr)
    below = widths.astype(np.float64)
    for c in reversed(topo):
        if parent[c] >= 0:
            below[parent[c]] += below[c]
    root = list(range(k))
    heaviest = np.zeros(k)  # of the pieces that a clique leaves
    for c in topo:
        if parent[c] >= 0:
            root[c] = root[parent[c]]
            heaviest[parent[c]] = max(heaviest[parent[c]], below[c])
    middle: dict[int, int] = {}
    for c in topo:
        heaviest[c] = max(heaviest[c], below[root[c]] - below[c])
        if heaviest[c] <= heaviest[middle.setdefault(root[c], c)]:
            middle[root[c]] = c
    depth = np.full(k, k)
    for c in middle.values():  # from the middle up to the root, then down to all others
        step = 0
        while c >= 0:
            depth[c] = step
            c, step = parent[c], step + 1
    for c in topo:
        if parent[c] >= 0:
            depth[c] = min(depth[c], depth[parent[c]] + 1)
    nearest = np.full(n, k)
    np.minimum.at(nearest, tree.clique_idx, np.repeat(depth, widths))
    weight = min(100.0 * exp(min(n / max(int(widths.max()) - 1, 1), 20.0)) / n, MOST_LEADING)
    out[:] = weight * (1.0 - np.minimum(nearest, depth.max() + 1) / (depth.max() + 1.0))
    return out
