"""Steps of a climb behind arrows that turn around for free.

Where equivalent graphs score the same, the direction of a first arrow is chance, and a climb that keeps it never sees
what the other direction would allow. An arrow a → b is loose when it can be turned within the class of the graph:
apart from a, the parents of b are parents of a, and of a's own parents at most one is none of b's, by an arrow that is
loose itself. Turning that chain of arrows from its top leaves the score as it is. Then b has its other parents C, and a
has C and b: what an arrow more or less at these two would gain is not more than a look at two families.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.learn.ties import first_best, slack
from gramgraph.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.learn.search import Search

#: Gain, kind, parent, child.
Taken = tuple[float, str, int, int]
#: Gain of a step behind a turned arrow, its kind, parent and child.
NOTHING: Taken = (-np.inf, "", -1, -1)


class Turns:
    """The loose arrow into every node, and the best step behind it.

    A node has at most one such arrow, as its parent is the child of all others. What is kept is looked for anew where
    parents changed, or where an arrow that went away may have freed a step; a step that has become illegal since is
    found out when its turn comes.
    """

    def __init__(self, search: Search) -> None:
        self.search = search
        n = len(search.parents)
        self.children: list[set[int]] = [set() for _ in range(n)]
        for child, parents in enumerate(search.parents):
            for p in parents:
                self.children[p].add(child)
        self._related = [self._relatives(v) for v in range(n)]
        self._rows: dict[tuple[int, tuple[int, ...]], FloatArray] = {}
        self._loose = [-1] * n  # b → a
        self._top = np.full(n, -1, np.int64)  # b → the first node of the chain that ends with the loose arrow into b
        self._gains = np.full(n, -np.inf)
        self._steps: list[Taken] = [NOTHING] * n
        self._stale: set[int] = set()
        self.changed(range(n))

    def _relatives(self, v: int) -> IntArray:
        """The columns that tell something of v by themselves: others are not tried as parents behind a turned arrow."""
        search = self.search
        if search.parents[v]:
            others = np.delete(np.arange(len(search.parents)), v)
            gains = np.asarray(search.additions(v, (), others)) - search.scores.family(v, ())
            return np.asarray(others[gains > search.least], np.int64)
        return np.flatnonzero(search.gain[v] > search.least)

    def changed(self, nodes: Sequence[int] | range) -> None:
        """The parents of these nodes are others than before."""
        waiting = list(nodes)
        self._stale.update(waiting)
        for v in waiting:  # grows
            self._loose[v] = self._loose_parent(v)
            for child in self.children[v]:
                if self._loose[child] != (now := self._loose_parent(child)):
                    self._loose[child] = now
                    self._stale.add(child)
                    waiting.append(child)

    def freed(self, above: IntArray) -> None:
        """These nodes may reach less than before."""
        self._stale.update(np.flatnonzero(np.isin(self._top, above)).tolist())

    def _loose_parent(self, b: int) -> int:
        search = self.search
        into = set(search.parents[b])
        for a in into:
            rest = into - {a}
            others = set(search.parents[a])
            if rest <= others and len(others - rest) <= 1 and others - rest <= {self._loose[a]}:
                bound = search.constraints.required[a, b] or search.constraints.forbidden[b, a]
                return -1 if bound else a
        return -1

    def best(self, least: float) -> list[Taken] | None:
        """The steps that turn a chain of arrows and end with a gain above `least`, the largest and the first of equals;
        None if none has."""
        for b in self._stale:
            self._look(b)
        self._stale.clear()
        more = least + slack(least, self.search.least)
        while len(self._gains) and self._gains.max() > more:
            b = first_best(self._gains, self.search.least)
            chain = self._chain(b)
            gain, kind, parent, child = step = self._steps[b]
            if kind == "remove" or not self._beyond(b, chain, child)[parent]:
                flips = [(0.0, "reverse", p, c) for c, p in pairwise(chain)][::-1]
                return [*flips, step]
            self._look(b)
        return None

    def _chain(self, b: int) -> list[int]:
        """b, its loose parent a, and so on while the arrow above has to be turned first."""
        found, parents = [b], self.search.parents
        while True:
            at = found[-1]
            above = self._loose[at]
            found.append(above)
            if len(parents[above]) < len(parents[at]):
                return found

    def _beyond(self, b: int, chain: list[int], child: int) -> Array:
        """Which nodes `child` (b, or its parent in the chain) reaches when the chain has been turned."""
        below = self.search.below
        out = below[b].copy() if child == b else np.zeros(len(below), bool)
        out[chain[1:]] = True
        for before, v in pairwise(chain):
            for other in self.children[v]:
                if other != before:
                    out |= below[other]
        return out

    def _look(self, b: int) -> None:
        """The best step behind the loose arrow into b."""
        a = self._loose[b]
        self._gains[b], self._steps[b], self._top[b] = -np.inf, NOTHING, -1
        if a < 0:
            return
        chain = self._chain(b)
        self._top[b] = chain[-1]
        rest = tuple(p for p in self.search.parents[b] if p != a)
        found = self._better(self._step(b, chain, a, (*rest, b)), self._step(b, chain, b, rest))
        self._gains[b], self._steps[b] = found[0], found

    def _better(self, first: Taken, second: Taken) -> Taken:
        """The one that gains more, the first of equals."""
        return second if second[0] > first[0] and second[0] > first[0] + slack(second[0], self.search.least) else first

    def _step(self, b: int, chain: list[int], child: int, given: tuple[int, ...]) -> Taken:
        """The best arrow more or less into `child`, whose parents are `given`."""
        search, best = self.search, NOTHING
        gains, related = self._row(child, given), self._related[child]
        if len(gains) and gains.max() > search.least:
            legal = np.where(self._beyond(b, chain, child)[related], -np.inf, gains)
            at = first_best(legal, search.least)
            best = (float(legal[at]), "add", int(related[at]), child)
        if child == b or len(given) > 1:
            now = search.scores.family(child, given)
            for p in sorted(given):
                if p != b and not search.constraints.required[p, child]:
                    gain = search.scores.family(child, tuple(x for x in given if x != p)) - now
                    best = self._better(best, (gain, "remove", p, child))
        return best

    def _row(self, child: int, given: tuple[int, ...]) -> FloatArray:
        """The gain of each related column as a parent of `child` beside `given`."""
        key = (child, tuple(sorted(given)))
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._fresh_row(child, key[1])
        return found

    def _fresh_row(self, child: int, given: tuple[int, ...]) -> FloatArray:
        search, related = self.search, self._related[child]
        row = np.full(len(related), -np.inf)
        free = ~search.constraints.forbidden[related, child] & ~np.isin(related, given)
        if len(given) < search.constraints.max_parents and free.any():
            row[free] = search.additions(child, given, related[free])
            row[free] -= search.scores.family(child, given)
        return row
