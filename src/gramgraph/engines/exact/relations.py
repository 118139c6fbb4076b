"""Tables of which only the positive rows are kept: joined on what they share, summed by groups, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from gramgraph.compile.budget import readable
from gramgraph.exceptions import BudgetError
from gramgraph.typing import Array, FloatArray, IntArray

#: Keys beyond this are numbered anew, so that they stay whole numbers of 64 bits.
MOST_KEYS = 2**62
#: Up to so many times the number of rows, counts of all keys take the place of a search among sorted ones.
DENSE_KEYS = 4
#: Logarithms within which sums are safe when the largest row of all is taken out.
SAFE = 600.0
#: Bytes that a join takes for each row while it is made, beside what stays.
PASSING = 40


class Relation(NamedTuple):
    """The positive rows of a function of some variables, with the logarithms of its values."""

    scope: tuple[int, ...]
    columns: tuple[Array, ...]  # states of the variables in every row
    logs: FloatArray  # (rows,)
    tag: int = -1  # a number by which its own beliefs are asked for
    origin: IntArray | None = None  # of a tagged one: which of its first rows each row is

    def take(self, rows: Array) -> Relation:
        """Some of the rows, chosen by a mask."""
        origin = None if self.origin is None else self.origin[rows]
        return self._replace(columns=tuple(c[rows] for c in self.columns), logs=self.logs[rows], origin=origin)

    def without(self, gone: Iterable[int]) -> Relation:
        """The same rows without the columns of variables that have one state."""
        out = set(gone)
        kept = [k for k, v in enumerate(self.scope) if v not in out]
        return self._replace(scope=tuple(self.scope[k] for k in kept), columns=tuple(self.columns[k] for k in kept))


def given_state(relations: Iterable[Relation], v: int, state: int) -> list[Relation]:
    """The relations where v has this state."""
    return [
        r.take(r.columns[r.scope.index(v)] == state).without((v,)) if v in r.scope else r for r in relations
    ]  # fmt: skip


def _filtered(relations: Sequence[Relation], sizes: Sequence[int]) -> list[Relation] | None:
    """Rows that agree with some row of every other relation, variable by variable; None where nothing is possible."""
    found = list(relations)
    holders: dict[int, list[int]] = {}
    for i, r in enumerate(found):
        for v in r.scope:
            holders.setdefault(v, []).append(i)
    possible = {v: np.ones(sizes[v], np.bool_) for v in holders}
    todo = dict.fromkeys(range(len(found)))
    while todo:
        i = next(iter(todo))
        del todo[i]
        r = found[i]
        good: Array | None = None
        for v, column in zip(r.scope, r.columns, strict=True):
            if not possible[v].all():
                good = possible[v][column] if good is None else good & possible[v][column]
        if good is not None and not good.all():
            r = found[i] = r.take(good)
        if not len(r.logs):
            return None
        for v, column in zip(r.scope, r.columns, strict=True):
            left = np.bincount(column, minlength=sizes[v]) > 0
            if (left < possible[v]).any():
                possible[v] = possible[v] & left
                todo.update(dict.fromkeys(j for j in holders[v] if j != i))
    return found


def consistent(relations: Sequence[Relation], sizes: Sequence[int]) -> tuple[list[Relation], dict[int, int]] | None:
    """The rows that `_filtered` leaves, without the variables that have one state left, and these states."""
    found = _filtered(relations, sizes)
    if found is None:
        return None
    fixed = {
        v: int(column[0])
        for r in found
        for v, column in zip(r.scope, r.columns, strict=True)
        if (column == column[0]).all()
    }
    return [r.without(fixed) for r in found], fixed


def _keys(
    shared: Sequence[int], each: Sequence[Relation], sizes: Sequence[int]
) -> tuple[list[IntArray], int]:  # fmt: skip
    """A whole number for the states of the shared variables in every row of the relations, and a bound of it."""
    keys = [np.zeros(len(r.logs), np.int64) for r in each]
    total = 1
    for v in shared:
        if total * sizes[v] > MOST_KEYS:
            kinds, member = np.unique(np.concatenate(keys), return_inverse=True)
            keys = np.split(member.reshape(-1), np.cumsum([len(k) for k in keys])[:-1])
            total = len(kinds)
        keys = [k * sizes[v] + r.columns[r.scope.index(v)] for k, r in zip(keys, each, strict=True)]
        total *= sizes[v]
    return keys, total


def _matches(a: IntArray, b: IntArray, n_keys: int) -> tuple[IntArray, IntArray, IntArray]:
    """The rows of b sorted by key; for every row of a where those with its key begin, and how many they are."""
    order = np.argsort(b, kind="stable")
    if n_keys <= DENSE_KEYS * (len(a) + len(b)):
        counts = np.bincount(b, minlength=n_keys)
        return order, (np.cumsum(counts) - counts)[a], counts[a]
    ordered = b[order]
    start = np.searchsorted(ordered, a, "left")
    return order, start, np.searchsorted(ordered, a, "right") - start


class _Joined(NamedTuple):
    """Which rows of two relations the rows of a third are made of."""

    a: int
    b: int
    made: int
    a_rows: IntArray
    b_rows: IntArray


class _Taken(NamedTuple):
    """A variable that was taken out of a relation: for a sum the group of every row and its share of it; for a
    maximum the best row of every group."""

    a: int
    made: int
    v: int
    states: Array
    rows: IntArray
    share: FloatArray


class Tape:
    """Joins and sums of relations, remembered so that beliefs or best states can be read backward.

    A join that would take more than `room` bytes, with all that is held, raises `BudgetError` before it is made; so
    do more than `most` rows of all joins. Without `keep` nothing but log Z is left at the end.
    """

    def __init__(
        self, sizes: Sequence[int], room: float, most: float = np.inf, *, best: bool = False, keep: bool = True
    ) -> None:
        self.sizes, self.room, self.most, self.best, self.keep = sizes, room, most, best, keep or best
        self.log_z = 0.0
        self.rows = 0.0
        self._held = 0.0
        self._lengths: list[int] = []
        self._steps: list[_Joined | _Taken] = []
        self._tagged: list[tuple[int, Relation]] = []

    def run(self, relations: Iterable[Relation], order: Sequence[int]) -> bool:
        """Take all variables away, in this order. False where no row is left: nothing is possible."""
        live: dict[int, Relation] = {}
        holders: dict[int, set[int]] = {v: set() for v in order}

        def enter(r: Relation, number: int) -> None:
            if not r.scope:
                self.log_z += float(r.logs[0])
                return
            live[number] = r
            for v in r.scope:
                holders[v].add(number)

        for r in relations:
            number = self._number(len(r.logs))
            enter(r, number)
            if r.tag >= 0:
                self._tagged.append((number, r))
        for v in order:
            own = [(live.pop(i), i) for i in sorted(holders.pop(v))]
            for r, i in own:
                for u in r.scope:
                    if u != v:
                        holders[u].discard(i)
            found, number = self._all_joined(own)
            if not len(found.logs):
                return False
            enter(*self._without(v, found, number))
        return True

    def _number(self, length: int) -> int:
        self._lengths.append(length)
        return len(self._lengths) - 1

    def _all_joined(self, own: list[tuple[Relation, int]]) -> tuple[Relation, int]:
        """All relations of a variable in one: from the largest on, next the one that leaves the fewest rows."""
        own.sort(key=lambda pair: len(pair[0].logs))
        found, number = own.pop()
        while own:
            inside = set(found.scope)
            at = min(range(len(own)), key=lambda j: self._growth(inside, own[j][0]))
            found, number = self._join(found, number, *own.pop(at))
        return found, number

    def _growth(self, inside: set[int], r: Relation) -> float:
        """The factor by which a join with r is expected to grow."""
        return len(r.logs) / prod(float(self.sizes[v]) for v in r.scope if v in inside)

    def _join(self, a: Relation, a_number: int, b: Relation, b_number: int) -> tuple[Relation, int]:
        inside = set(a.scope)
        shared = [v for v in b.scope if v in inside]
        (a_keys, b_keys), n_keys = _keys(shared, (a, b), self.sizes)
        order, start, counts = _matches(a_keys, b_keys, n_keys)
        n = int(counts.sum())
        self.rows += n
        self._check(n * (len(a.scope) + len(b.scope) - len(shared) + PASSING))
        a_rows = np.repeat(np.arange(len(counts)), counts)
        b_rows = order[np.arange(n) - np.repeat(np.cumsum(counts) - counts - start, counts)]
        own = [k for k, v in enumerate(b.scope) if v not in inside]
        made = Relation(
            (*a.scope, *(b.scope[k] for k in own)),
            (*(c[a_rows] for c in a.columns), *(b.columns[k][b_rows] for k in own)),
            a.logs[a_rows] + b.logs[b_rows],
        )
        number = self._number(n)
        if self.keep:
            self._hold(_Joined(a_number, b_number, number, _narrow(a_rows), _narrow(b_rows)))
        return made, number

    def _without(self, v: int, r: Relation, number: int) -> tuple[Relation, int]:
        """Sums (or maxima) of the rows that differ in v alone; the largest is one, and what that takes is in log Z."""
        self._check(len(r.logs) * PASSING)
        rest = tuple(u for u in r.scope if u != v)
        (keys,), n_keys = _keys(rest, (r,), self.sizes)
        group, n = _groups(keys, n_keys)
        one = np.empty(n, np.int64)
        if self.best:
            upward = np.argsort(r.logs, kind="stable")
            one[group[upward]] = upward  # of several rows the last one stays
            logs = r.logs[one]
        else:
            one[group] = np.arange(len(group))
            logs = _sums(r.logs, group, n)
        made = self._number(n)
        if self.keep:
            share = logs if self.best else np.exp(r.logs - logs[group])
            states = r.columns[r.scope.index(v)]
            self._hold(_Taken(number, made, v, states, _narrow(one if self.best else group), share))
        top = float(logs.max())
        self.log_z += top
        columns = tuple(c[one] for u, c in zip(r.scope, r.columns, strict=True) if u != v)
        return Relation(rest, columns, logs - top), made

    def _hold(self, step: _Joined | _Taken) -> None:
        self._steps.append(step)
        self._held += sum(part.nbytes for part in step if isinstance(part, np.ndarray))

    def _check(self, passing: float) -> None:
        if self._held + passing > self.room or self.rows > self.most:
            raise BudgetError(
                f"exact inference on the positive rows of the tables needs {readable(self._held + passing)} and "
                f"{self.rows:.3g} rows so far, more than the budget of {readable(self.room)} and {self.most:.3g}",
                bytes=self._held + passing,
                remedies=("raise the budget: memory=… (bytes)", "take an approximate answer: engine='bp'"),
            )

    def beliefs(self) -> tuple[dict[int, FloatArray], dict[int, tuple[IntArray, FloatArray]]]:
        """The belief of every variable; and for every tag its relation's first rows with their beliefs."""
        mass: dict[int, FloatArray] = {}
        found: dict[int, FloatArray] = {}
        for step in reversed(self._steps):
            above = mass.pop(step.made, None)
            if isinstance(step, _Joined):
                assert above is not None
                mass[step.a] = totals(step.a_rows, above, self._lengths[step.a])
                mass[step.b] = totals(step.b_rows, above, self._lengths[step.b])
                continue
            mass[step.a] = step.share if above is None else step.share * above[step.rows]
            found[step.v] = totals(step.states, mass[step.a], self.sizes[step.v])
        tagged = {}
        for number, r in self._tagged:
            assert r.origin is not None
            tagged[r.tag] = (r.origin, mass.get(number, np.ones(1)))
        return found, tagged

    def states(self) -> dict[int, int]:
        """The best state of every variable."""
        row: dict[int, int] = {}
        found: dict[int, int] = {}
        for step in reversed(self._steps):
            at = row.get(step.made, 0)
            if isinstance(step, _Joined):
                row[step.a], row[step.b] = int(step.a_rows[at]), int(step.b_rows[at])
            else:
                row[step.a] = int(step.rows[at])
                found[step.v] = int(step.states[row[step.a]])
        return found


def totals(group: Array, weights: FloatArray, n: int) -> FloatArray:
    """Sums of the weights of each of n groups."""
    return np.asarray(np.bincount(group, weights, n), np.float64)


def _narrow(rows: IntArray) -> IntArray:
    """Row numbers in four bytes."""
    return rows.astype(np.int32) if len(rows) < 2**31 else rows


def _groups(keys: IntArray, n_keys: int) -> tuple[IntArray, int]:
    """Numbers of the distinct keys, from zero on without gaps, and how many they are."""
    if n_keys > DENSE_KEYS * len(keys):
        kinds, member = np.unique(keys, return_inverse=True)
        return member.reshape(-1), len(kinds)
    there = np.bincount(keys, minlength=n_keys) > 0
    return (np.cumsum(there) - 1)[keys], int(there.sum())


def _sums(logs: FloatArray, group: IntArray, n: int) -> FloatArray:
    """log Σ exp of the rows of each group."""
    top = float(logs.max())
    if top - float(logs.min()) < SAFE:
        return np.asarray(np.log(totals(group, np.exp(logs - top), n)) + top)
    tops = np.full(n, -np.inf)
    np.maximum.at(tops, group, logs)
    return np.asarray(np.log(totals(group, np.exp(logs - tops[group]), n)) + tops)
