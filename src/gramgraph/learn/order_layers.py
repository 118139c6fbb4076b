"""Walks through the sets of variables, layer by layer, that keep the most promising sets of each size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.learn.parent_sets import ParentSets, members
from gramgraph.typing import Array, FloatArray

#: Variables of the largest table of the bound: 2^20 numbers, half a second.
PATTERN = 20
#: Sets that are expanded between two looks at the clock.
CHUNK = 100_000
#: Share of a hash table that may be full.
FULL = 0.7
#: Relative error of sums of scores: sets that close to the best graph are followed.
ROUNDING = 1e-10


class Clock:
    """When to stop: after `limit` seconds, or after Ctrl-C."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.interrupted = False
        self._begin = time.monotonic()

    def over(self) -> bool:
        """Whether the time is over."""
        if self.limit is not None and time.monotonic() - self._begin > self.limit:
            self.interrupted = True
        return self.interrupted


@dataclass(frozen=True, eq=False)
class Layers:
    """Variables of a group in an order, their sets of parents within it (the best first), and tables of the bound."""

    order: list[int]
    masks: Array
    values: FloatArray
    starts: Array
    firsts: Array
    sizes: Array
    patterns: FloatArray
    offsets: Array

    @classmethod
    def of(cls, order: list[int], sets: list[ParentSets]) -> Layers:
        """One table for 20 variables, the first ones or the last, and for the others; the way with the lower bound.

        One large table bounds far better than two of equal size. Cost: O(20 · 2²⁰) sets of parents looked up.
        """
        m = len(order)
        place = {v: i for i, v in enumerate(order)}
        local = [[sum(1 << place[u] for u in members(mask) if u in place) for mask in sets[v].masks] for v in order]
        starts = np.concatenate([[0], np.cumsum([len(found) for found in local])]).astype(np.int64)
        masks = np.array([mask for found in local for mask in found], np.uint64)
        values = np.concatenate([sets[v].values for v in order])
        rest = [PATTERN] * ((m - 1) // PATTERN)
        ways = {(*rest, m - sum(rest)): None, (m - sum(rest), *rest): None}
        made = [cls(order, masks, values, starts, *_tables(sizes, masks, values, starts)) for sizes in ways]
        return min(made, key=lambda layers: layers.root_bound())

    @property
    def bounds(self) -> tuple[Array, Array, FloatArray, Array]:
        """What the functions of the bound take."""
        return self.firsts, self.sizes, self.patterns, self.offsets

    def root_bound(self) -> float:
        """A score that no graph of the group exceeds."""
        return sum(float(self.patterns[o + (1 << int(s)) - 1]) for o, s in zip(self.offsets, self.sizes, strict=True))

    def masks_of(self, added: list[int], sets: list[ParentSets]) -> dict[int, int]:
        """Position → mask of its parents, for variables added in this order."""
        out, state = {}, 0
        for v in added:
            outside = self.masks[self.starts[v] : self.starts[v + 1]] & np.uint64(~state & ((1 << len(added)) - 1))
            out[v] = sets[self.order[v]].masks[int(np.argmax(outside == 0))]
            state |= 1 << v
        return out


def _tables(sizes: tuple[int, ...], masks: Array, values: FloatArray, starts: Array) -> tuple[Array, ...]:
    """(first variable of each table, their numbers of variables, the tables one after the other, where each begins)."""
    from gramgraph._numerics.counts.order_graph import pattern

    firsts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    tables = [pattern(int(f), s, masks, values, starts) for f, s in zip(firsts, sizes, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in tables])])[:-1].astype(np.int64)
    return firsts, np.array(sizes, np.int64), np.concatenate(tables), offsets


@dataclass(frozen=True)
class Walk:
    """The variables in the order in which they were added (None: no way to the end), their score, and a bound."""

    added: list[int] | None
    total: float
    bound: float


class _Table:
    """A hash table of sets of variables with their best totals and the variable added last."""

    def __init__(self, places: int) -> None:
        self.keys, self.sums, self.added = np.zeros(places, np.uint64), np.empty(places), np.empty(places, np.int8)
        self.used = 0

    def items(self) -> tuple[Array, FloatArray, Array]:
        """(sets, totals, variables added last)."""
        here = self.keys != 0
        return self.keys[here], self.sums[here], self.added[here]

    @classmethod
    def with_items(cls, places: int, items: tuple[Array, FloatArray, Array]) -> _Table:
        """The same sets with room for more."""
        from gramgraph._numerics.counts.order_graph import insert

        out = cls(places)
        insert(*items, out.keys, out.sums, out.added)
        out.used = len(items[0])
        return out


@interruptible()
def order_layers(layers: Layers, known: float, width: int, clock: Clock) -> Walk:
    """Walk from no variable to all, with at most `width` sets of each size; `known` is a score to reach.

    The bound is the largest score that sets which were left out could have reached, or those that time left behind.
    """
    from gramgraph._numerics.counts.order_graph import hopes

    m = len(layers.order)
    goal = known - ROUNDING * max(abs(known), 1.0) if math.isfinite(known) else -math.inf
    states, totals = np.zeros(1, np.uint64), np.zeros(1)
    lost, steps = -math.inf, []
    for size in range(m):
        try:
            found = _next_layer(layers, states, totals, m - size, goal, width, clock)
        except KeyboardInterrupt:
            clock.interrupted, found = True, None
        if found is None:
            return Walk(None, -math.inf, max(lost, float(hopes(states, totals, *layers.bounds).max())))
        states, totals, last, here = found
        lost = max(lost, here)
        if not len(states):
            return Walk(None, -math.inf, lost)
        steps.append((states, last))
    added, state = [], (1 << m) - 1
    for states, last in reversed(steps):
        v = int(last[int(np.argmax(states == np.uint64(state)))])
        added.append(v)
        state ^= 1 << v
    return Walk(added[::-1], float(totals[0]), max(lost, float(totals[0])))


def _next_layer(
    layers: Layers, states: Array, totals: FloatArray, ways: int, goal: float, width: int, clock: Clock
) -> tuple[Array, FloatArray, Array, float] | None:
    """(sets with one variable more, totals, added last, best hope of those left out); None when the time is over."""
    from gramgraph._numerics.counts.order_graph import expand

    most = _places(2 * width)
    table = _Table(min(most, _places(min(len(states), CHUNK) * ways)))
    at, lost, least = 0, -math.inf, -math.inf
    while at < len(states):
        check_interrupt()
        if clock.over():
            return None
        end = min(at + CHUNK, len(states))
        room = int(FULL * len(table.keys))
        at, table.used, left = expand(
            states[:end], totals[:end], at, len(layers.order), layers.masks, layers.values, layers.starts,
            *layers.bounds, goal, least, table.keys, table.sums, table.added, table.used, room,
        )  # fmt: skip
        lost = max(lost, left)
        if at < end and len(table.keys) < most:
            table = _Table.with_items(2 * len(table.keys), table.items())
        elif at < end:
            items, least, out = _cut(layers, table.items(), width)
            lost, table = max(lost, out), _Table.with_items(most, items)
    items = table.items()
    if len(items[0]) > width:
        items, _, out = _cut(layers, items, width)
        lost = max(lost, out)
    return *items, lost


def _places(items: int) -> int:
    """Places of a table for so many sets: a power of two."""
    return 1 << max(int(items / FULL) + 64, 1).bit_length()


def _cut(
    layers: Layers, items: tuple[Array, FloatArray, Array], width: int
) -> tuple[tuple[Array, FloatArray, Array], float, float]:
    """(the `width` sets that promise most, what the least of them promises, what the best of the others does)."""
    from gramgraph._numerics.counts.order_graph import hopes

    promise = hopes(items[0], items[1], *layers.bounds)
    order = np.argpartition(-promise, width - 1)
    keep, leave = np.sort(order[:width]), order[width:]
    kept = (items[0][keep], items[1][keep], items[2][keep])
    return kept, float(promise[keep].min()), float(promise[leave].max())
