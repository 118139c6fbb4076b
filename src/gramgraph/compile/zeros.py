"""What the zeros of tables imply: states ruled out, variables that copy others, tables that fall apart.

Factors of one shape are handled together, as arrays: nothing is compiled, and no Python runs for a single factor. The
product of all factors stays the same function of the states that are possible; what changes is how it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gramgraph.typing import Array, FloatArray, IntArray

#: Zeros are followed, tables split and copies joined this many times at most.
ROUNDS = 30
#: Relative rounding within which a table counts as a product of two: rounding of the tables themselves.
RTOL = 2e-15
#: Logarithms within which products of tables are trusted to stay above the least double.
SAFE = 600.0


class Group(NamedTuple):
    """Factors whose tables have the same shape."""

    scopes: IntArray  # (factors, k)
    tables: FloatArray  # (factors, …) one axis more for each of the k variables


@dataclass(frozen=True, eq=False)
class Rewritten:
    """The factors over what is left, and where each state of each variable went."""

    groups: list[Group]
    sizes: IntArray  # (variables,) states that are left; 1 where nothing is left to choose
    stands_for: IntArray  # (variables,) the variable in whose place it is told
    place: IntArray  # (variables, most states) the state there, -1 where it is impossible
    log_scale: float  # log of what was taken out of the tables
    whole_sizes: IntArray  # (variables,) states before

    def whole_states(self, told: IntArray) -> IntArray:
        """(rows, variables) states before, where the variables that they stand for have the states told[row]."""
        most = self.place.shape[1]
        back = np.argsort(np.where(self.place >= 0, self.place, most), axis=1, kind="stable")
        return back[np.arange(len(back)), told[:, self.stands_for]]


def group_factors(
    scope_ptr: IntArray, scope_idx: IntArray, value_ptr: IntArray, values: FloatArray, sizes: IntArray, use: Array
) -> list[Group]:
    """The factors in use, given in flat arrays, by the shapes of their tables."""
    groups = []
    lengths = np.diff(scope_ptr)
    for k in np.unique(lengths[use]).tolist():
        chosen = np.flatnonzero(use & (lengths == k))
        scopes = scope_idx[scope_ptr[chosen][:, None] + np.arange(k)]
        for shape, rows in _alike(sizes[scopes]):
            cells = value_ptr[chosen[rows]][:, None] + np.arange(int(np.prod(shape)))
            groups.append(Group(scopes[rows], values[cells].reshape(-1, *shape)))
    return groups


def rewrite(groups: list[Group], sizes: IntArray, possible: Array) -> Rewritten | None:
    """A smaller form of the product of all factors; None when their zeros leave some variable no state.

    `possible` (variables, most states) says which states the evidence allows. Cost: a few looks at each entry, for
    every round in which something was found.
    """
    n, most = possible.shape
    inside = np.arange(most) < sizes[:, None]
    state = Rewritten(groups, sizes, np.arange(n), np.where(inside, np.arange(most), -1), 0.0, sizes)
    possible = possible & inside
    for _ in range(ROUNDS):
        if not _follow(state.groups, possible):
            return None
        ruled_out = bool((possible.sum(axis=1) < state.sizes).any())
        state = _without_states(state, possible) if ruled_out else state
        state, fell_apart = _split(state)
        state, joined = _joined(state)
        state = _gathered(state)
        if not (ruled_out or fell_apart or joined):
            break
        possible = np.arange(most) < state.sizes[:, None]
    return state


def _alike(rows: IntArray) -> Iterator[tuple[tuple[int, ...], IntArray]]:
    """The distinct rows of a table of integers, each with the numbers of the rows that are like it."""
    if not rows.shape[1]:
        yield (), np.arange(len(rows))
        return
    kinds, member = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(member.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(member.reshape(-1), minlength=len(kinds)))
    for kind, start, end in zip(kinds.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield tuple(kind), order[start:end]


def _along(values: Array, axis: int, ndim: int) -> Array:
    """(factors, states) with axes of length one, so that the states lie on the given axis of the tables."""
    return values.reshape(len(values), *[-1 if a == axis else 1 for a in range(1, ndim)])


def _others(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(a for a in range(1, ndim) if a != axis)


# --- states that are ruled out ------------------------------------------------------------------------------------


def _follow(groups: list[Group], possible: Array) -> bool:
    """Rule out states, in place, until every one that is left agrees with some positive entry of each table."""
    supports = [group.tables > 0 for group in groups]
    news = np.ones(len(possible), np.bool_)
    while news.any():
        changed = np.zeros(len(possible), np.bool_)
        for (scopes, _), support in zip(groups, supports, strict=True):
            rows = np.flatnonzero(news[scopes].any(axis=1))
            if not len(rows):
                continue
            some, open_ = scopes[rows], support[rows]
            for axis in range(1, open_.ndim):
                open_ &= _along(possible[some[:, axis - 1], : open_.shape[axis]], axis, open_.ndim)
            support[rows] = open_
            for axis in range(1, open_.ndim):
                v, size = some[:, axis - 1], open_.shape[axis]
                left = np.asarray(open_.any(axis=_others(axis, open_.ndim)))
                for i in np.flatnonzero((left < possible[v, :size]).any(axis=1)).tolist():
                    possible[v[i], :size] &= left[i]
                    changed[v[i]] = True
        if not possible.any(axis=1).all():
            return False
        news = changed
    return True


def _without_states(state: Rewritten, possible: Array) -> Rewritten:
    """The same factors over the states that are left; variables with one state leave their scopes."""
    sizes = possible.sum(axis=1)
    kept = np.argsort(~possible, axis=1, kind="stable")
    pieces, log_scale = [], state.log_scale
    for scopes, tables in state.groups:
        for shape, rows in _alike(sizes[scopes]):
            index = [rows.reshape(-1, *[1] * len(shape))]
            for axis, size in enumerate(shape, start=1):
                index.append(_along(kept[scopes[rows, axis - 1], :size], axis, tables.ndim))
            free = [a for a, size in enumerate(shape) if size > 1]
            cut = tables[tuple(index)].reshape(len(rows), *[shape[a] for a in free])
            if free:
                pieces.append(Group(scopes[rows][:, free], cut))
            else:
                log_scale += float(np.log(cut).sum())
    place = np.where(possible, np.cumsum(possible, axis=1) - 1, -1)
    return replace(state, groups=_by_shape(pieces), sizes=sizes, place=_through(state, place), log_scale=log_scale)


def _through(state: Rewritten, new: IntArray) -> IntArray:
    """Places after state s of variable v has become new[v, s]."""
    return np.where(state.place >= 0, np.take_along_axis(new[state.stands_for], state.place.clip(0), axis=1), -1)


def _by_shape(pieces: Iterable[Group]) -> list[Group]:
    """Pieces of the same shape together."""
    found: dict[tuple[int, ...], list[Group]] = {}
    for piece in pieces:
        if len(piece.scopes):
            found.setdefault(piece.tables.shape[1:], []).append(piece)
    return [
        parts[0] if len(parts) == 1 else Group(*(np.concatenate([part[i] for part in parts]) for i in (0, 1)))
        for parts in found.values()
    ]


# --- tables that are products of smaller ones -----------------------------------------------------------------------


def _split(state: Rewritten) -> tuple[Rewritten, bool]:
    """Tables whose dependence on a variable is a factor by itself lose it."""
    todo, done, found = list(state.groups), [], False
    while todo:
        scopes, tables = todo.pop()
        if tables.ndim == 2 or not len(tables):
            done.append(Group(scopes, tables))
            continue
        for axis in range(1, tables.ndim):
            flat = np.moveaxis(tables, axis, 1).reshape(len(tables), tables.shape[axis], -1)
            at, every = flat.reshape(len(flat), -1).argmax(axis=1), np.arange(len(flat))
            row, column = np.divmod(at, flat.shape[2])
            rest = flat[every, row]
            own = flat[every, :, column] / rest[every, column][:, None]
            product = own[:, :, None] * rest[:, None]
            alone = (np.abs(product - flat) <= RTOL * product).all(axis=(1, 2))
            if alone.any():
                found = True
                shape = [size for a, size in enumerate(tables.shape[1:], start=1) if a != axis]
                done.append(Group(scopes[alone, axis - 1 : axis], own[alone]))
                todo.append(Group(np.delete(scopes[alone], axis - 1, axis=1), rest[alone].reshape(-1, *shape)))
                todo.append(Group(scopes[~alone], tables[~alone]))
                break
        else:
            done.append(Group(scopes, tables))
    return replace(state, groups=_by_shape(done)), found


# --- variables that copy others -------------------------------------------------------------------------------------


class _Copies:
    """Which variables are permutations of others: a forest with the permutation to the root."""

    def __init__(self, n: int) -> None:
        self.root = np.arange(n)
        self.to_root: dict[int, IntArray] = {}  # own state → state of the root
        self.members: dict[int, list[int]] = {}

    def join(self, a: int, b: int, to_b: IntArray) -> None:
        """State s of a goes together with state to_b[s] of b alone."""
        top, under = int(self.root[a]), int(self.root[b])
        if top == under:
            return
        every = np.arange(len(to_b))
        own_a, own_b = self.to_root.get(a, every), self.to_root.get(b, every)
        turn = np.empty(len(to_b), np.int64)
        turn[own_b[to_b]] = own_a
        for v in (under, *self.members.pop(under, [])):
            self.to_root[v] = turn[self.to_root.get(v, every)]
            self.root[v] = top
            self.members.setdefault(top, []).append(v)


def _joined(state: Rewritten) -> tuple[Rewritten, bool]:
    """Variables that some table makes copies of others, up to the names of their states, replaced by these."""
    copies = _Copies(len(state.sizes))
    for scopes, tables in state.groups:
        support = tables > 0
        for a, b in combinations(range(1, tables.ndim), 2):
            if tables.shape[a] != tables.shape[b]:
                continue
            pairs = np.asarray(support.any(axis=tuple(x for x in range(1, tables.ndim) if x not in (a, b))))
            for i in np.flatnonzero(((pairs.sum(1) == 1) & (pairs.sum(2) == 1)).all(axis=1)).tolist():
                copies.join(int(scopes[i, a - 1]), int(scopes[i, b - 1]), pairs[i].argmax(axis=1))
    if not copies.to_root:
        return state, False
    every = np.arange(state.place.shape[1])
    to_root = np.tile(every, (len(state.sizes), 1))
    for v, turn in copies.to_root.items():
        to_root[v, : len(turn)] = turn
    place = _through(state, to_root)
    from_root = np.argsort(to_root, axis=1)
    groups = [_renamed(group, copies.root, from_root) for group in state.groups]
    sizes = np.where(copies.root == np.arange(len(copies.root)), state.sizes, 1)
    stands_for = copies.root[state.stands_for]
    return replace(state, groups=_by_shape(_once(groups)), sizes=sizes, stands_for=stands_for, place=place), True


def _renamed(group: Group, root: IntArray, from_root: IntArray) -> Group:
    """The tables as functions of the roots."""
    scopes, tables = group
    for axis in range(1, tables.ndim):
        v = scopes[:, axis - 1]
        if (root[v] != v).any():
            turn = _along(from_root[v, : tables.shape[axis]], axis, tables.ndim)
            tables = np.take_along_axis(tables, turn, axis=axis)
    return Group(root[scopes], tables)


def _once(groups: list[Group]) -> Iterator[Group]:
    """Scopes in which no variable stands twice: of two axes of one variable the diagonal is left."""
    todo = list(groups)
    while todo:
        scopes, tables = todo.pop()
        for a, b in combinations(range(1, tables.ndim), 2):
            twice = scopes[:, a - 1] == scopes[:, b - 1]
            if twice.any():
                both = np.moveaxis(np.diagonal(tables[twice], axis1=a, axis2=b), -1, a)
                todo += [Group(np.delete(scopes[twice], b - 1, axis=1), both), Group(scopes[~twice], tables[~twice])]
                break
        else:
            yield Group(scopes, tables)


def _gathered(state: Rewritten) -> Rewritten:
    """Factors over the same variables multiplied; largest entries are one, and constants go into the scale."""
    sorted_pieces, log_scale = [], state.log_scale
    for scopes, tables in state.groups:
        for turn, rows in _alike(np.argsort(scopes, axis=1)):
            turned = tables[rows].transpose(0, *[1 + a for a in turn])
            sorted_pieces.append(Group(np.sort(scopes[rows], axis=1), turned))
    groups = []
    for scopes, tables in _by_shape(sorted_pieces):
        scopes, tables = _products(scopes, tables)
        every = tuple(range(1, tables.ndim))
        top = tables.max(axis=every)
        top[top == 0.0] = 1.0  # nothing is possible: following the zeros says so
        tables = tables / top.reshape(-1, *[1] * (tables.ndim - 1))
        log_scale += float(np.log(top).sum())
        speaks = tables.min(axis=every) < 1.0
        groups.append(Group(scopes[speaks], tables[speaks]))
    return replace(state, groups=_by_shape(groups), log_scale=log_scale)


def _products(scopes: IntArray, tables: FloatArray) -> Group:
    """One table for each scope, unless a product could be smaller than the least double: zeros must stay what they
    mean."""
    kinds, member = np.unique(scopes, axis=0, return_inverse=True)
    if len(kinds) == len(scopes):
        return Group(scopes, tables)
    member = member.reshape(-1)
    every = tuple(range(1, tables.ndim))
    with np.errstate(divide="ignore"):
        least = np.log(np.where(tables > 0, tables, 1.0).min(axis=every))
        most = np.log(np.where(tables > 0, tables, 1.0).max(axis=every))
    low, high = np.zeros(len(kinds)), np.zeros(len(kinds))
    np.add.at(low, member, np.minimum(least, 0.0))
    np.add.at(high, member, np.maximum(most, 0.0))
    safe = (low > -SAFE) & (high < SAFE)
    product = np.ones((len(kinds), *tables.shape[1:]))
    np.multiply.at(product, member, np.where(safe[member].reshape(-1, *[1] * len(every)), tables, 1.0))
    alone = ~safe[member]
    return Group(np.concatenate([kinds[safe], scopes[alone]]), np.concatenate([product[safe], tables[alone]]))
