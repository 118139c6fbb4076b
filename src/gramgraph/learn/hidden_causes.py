"""Fast causal inference: what independence tests say when common causes may be hidden."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gramgraph._validation import check_fraction
from gramgraph.learn.constraint_based import Separators, skeleton_of
from gramgraph.learn.constraints import count, tier_ranks
from gramgraph.learn.independence import IndependenceTester, choose_tester
from gramgraph.learn.rows import read_rows
from gramgraph.learn.search import Constraints
from gramgraph.models.pag import PAG
from gramgraph.typing import Array, IntArray

__all__ = ["PAG", "fci", "fci_marks"]

NONE, CIRCLE, ARROW, TAIL = 0, 1, 2, 3
_MARK = {CIRCLE: "o", ARROW: ">", TAIL: "-"}


def fci(
    data: Any,
    *,
    test: str = "auto",
    alpha: float = 0.05,
    max_given: int = 3,
    tiers: Sequence[Iterable[str]] | None = None,
    weights: Any = None,
    keep: Iterable[str] = (),
    missing: str = "rows",
) -> PAG:
    """The partial ancestral graph of a frame, where hidden common causes are possible.

    Pairs are tested given ever more neighbors, as in PC, then given nodes that a path with colliders may join
    (possible d-separators); colliders and the rules R1–R4 and R8–R10 of Zhang (2008) put the marks: all that follow
    where the rows are not selected by a common effect. `test`, `alpha`, `max_given` and `keep` are as in
    `learn_structure(method="pc")`; a node of a later tier is never a cause of one of an earlier tier. Other constraints
    are not taken. Cost: for sparse graphs a polynomial number of tests, at worst exponential in `max_given`.
    Sources: P. Spirtes, C. Glymour, R. Scheines, 2000; J. Zhang, Artificial Intelligence 172, 2008.

    Parameters
    ----------
    data : a frame, a dict of columns, a path or a stream.
    test : name of the independence test.
    alpha : level of the tests.
    max_given : most columns in a condition; None for all.
    tiers : groups of columns in the order of time, or None.
    weights : of the rows; None for equal ones.
    keep : whether the separating sets are kept.
    missing : what to do with rows that have gaps.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.sprinkler().sample(20_000, random_state=0)
    >>> gg.learn.fci(frame, alpha=0.001).mark("rain", "wet")
    '>'
    """
    check_fraction("alpha", alpha)
    table = read_rows(data, weights, missing, keep=keep)
    n = len(table.names)
    later = None
    if tiers is not None:
        ranks = tier_ranks(table, tiers)
        later = (ranks[:, np.newaxis] > ranks) & (ranks >= 0)
    marks = fci_marks(choose_tester(table, test), n, alpha=alpha, max_given=count(max_given, "max_given"), later=later)
    edges = [
        (table.names[a], _MARK[int(marks[b, a])], _MARK[int(marks[a, b])], table.names[b])
        for a in range(n)
        for b in range(a + 1, n)
        if marks[a, b]
    ]
    return PAG(table.names, tuple(edges))


def fci_marks(
    tester: IndependenceTester, n: int, *, alpha: float, max_given: int, later: Array | None = None
) -> IntArray:
    """Entry [a, b]: the mark at b of the edge between a and b (0: no edge, 1: circle, 2: arrowhead, 3: tail).

    `later[a, b]`: a comes after b and cannot be its cause.
    """
    near, separators = skeleton_of(tester, Constraints.none(n), alpha=alpha, max_given=max_given)
    marks = _colliders(near, separators, n)
    for a in range(n):
        for b in sorted(near[a]):
            if a < b and _separate(tester, marks, a, b, alpha, max_given, separators):
                near[a].discard(b)
                near[b].discard(a)
    marks = _colliders(near, separators, n)
    if later is not None:
        marks[(marks > 0) & later.T] = ARROW  # [b, a] is the mark at the later node a
    _Rules(marks, separators).run()
    return marks


def _colliders(near: list[set[int]], separators: Separators, n: int) -> IntArray:
    """Circles everywhere, arrowheads at nodes that are not among what separates two of their neighbors."""
    marks = np.zeros((n, n), np.int64)
    for a in range(n):
        for b in near[a]:
            marks[a, b] = CIRCLE
    for c in range(n):
        for a, b in combinations(sorted(near[c]), 2):
            if b not in near[a] and c not in separators.get((a, b), (c,)):
                marks[a, c] = marks[b, c] = ARROW
    return marks


def _possible_separators(marks: IntArray, start: int) -> list[int]:
    """Nodes that a path joins to `start` on which each inner node is a collider, or closes a triangle."""
    found: dict[int, None] = {}
    queue = deque((start, int(b)) for b in np.flatnonzero(marks[start]))
    seen = set(queue)
    while queue:
        a, b = queue.popleft()
        found[b] = None
        for c in np.flatnonzero(marks[b]).tolist():
            if c in (a, start) or (b, c) in seen:
                continue
            if (marks[a, b] == ARROW and marks[c, b] == ARROW) or marks[a, c]:
                seen.add((b, c))
                queue.append((b, c))
    return sorted(found)


def _separate(
    tester: IndependenceTester, marks: IntArray, a: int, b: int, alpha: float, max_given: int, separators: Separators
) -> bool:
    """Look for a set of possible separators that makes two neighbors independent."""
    for x, y in ((a, b), (b, a)):
        nodes = [v for v in _possible_separators(marks, x) if v not in (x, y)]
        for size in range(min(max_given, len(nodes)) + 1):
            for given in combinations(nodes, size):
                if tester(a, b, given).separates(alpha, given):
                    separators[a, b] = given
                    return True
    return False


class _Rules:
    """Zhang's rules on a matrix of marks; each puts marks in the place of circles."""

    def __init__(self, marks: IntArray, separators: Separators) -> None:
        self.m, self.separators, self.n = marks, separators, len(marks)

    def run(self) -> None:
        """Until nothing changes."""
        rules = (self._r1, self._r2, self._r3, self._r4, self._r8, self._r9, self._r10)
        changed = True
        while changed:
            changed = False
            for rule in rules:
                while rule():
                    changed = True

    def _set(self, a: int, b: int, mark: int) -> bool:
        """Put a mark at b; whether there was a circle."""
        if self.m[a, b] != CIRCLE:
            return False
        self.m[a, b] = mark
        return True

    def _near(self, a: int) -> list[int]:
        return np.flatnonzero(self.m[a]).tolist()

    def _r1(self) -> bool:
        """a *-> b o-* c, a and c apart: b --> c."""
        changed = False
        for b in range(self.n):
            for a, c in _ordered_pairs(self._near(b)):
                if self.m[a, b] == ARROW and self.m[c, b] == CIRCLE and not self.m[a, c]:
                    changed |= self._set(c, b, TAIL)
                    changed |= self._set(b, c, ARROW)
        return changed

    def _r2(self) -> bool:
        """a --> b *-> c or a *-> b --> c, with a *-o c: an arrowhead at c."""
        changed = False
        for b in range(self.n):
            for a, c in _ordered_pairs(self._near(b)):
                if self.m[a, b] == ARROW and self.m[b, c] == ARROW and self.m[a, c] == CIRCLE:
                    if self.m[b, a] == TAIL or self.m[c, b] == TAIL:
                        changed |= self._set(a, c, ARROW)
        return changed

    def _r3(self) -> bool:
        """a *-> b <-* c, a *-o d o-* c, a and c apart, d *-o b: an arrowhead at b."""
        changed = False
        for b in range(self.n):
            for a, c in combinations(self._near(b), 2):
                if self.m[a, b] == ARROW and self.m[c, b] == ARROW and not self.m[a, c]:
                    for d in self._near(b):
                        if self.m[a, d] == CIRCLE and self.m[c, d] == CIRCLE and self.m[d, b] == CIRCLE:
                            changed |= self._set(d, b, ARROW)
        return changed

    def _r4(self) -> bool:
        """A path that discriminates b, next to c: b --> c if b separates its ends, else a <-> b <-> c."""
        for b in range(self.n):
            for c in self._near(b):
                if self.m[c, b] != CIRCLE:
                    continue
                for a in self._near(b):
                    if a == c or self.m[b, a] != ARROW or self.m[a, c] != ARROW or self.m[c, a] != TAIL:
                        continue
                    end = self._discriminating(a, b, c)
                    if end is None:
                        continue
                    if b in self.separators.get((min(end, c), max(end, c)), ()):
                        self.m[c, b], self.m[b, c] = TAIL, ARROW
                    else:
                        self.m[a, b] = self.m[b, a] = self.m[b, c] = self.m[c, b] = ARROW
                    return True
        return False

    def _discriminating(self, a: int, b: int, c: int) -> int | None:
        """The far end of a path … a, b, c whose inner nodes before b are colliders and parents of c."""
        queue: deque[tuple[int, tuple[int, ...]]] = deque([(a, (a, b))])
        while queue:
            v, path = queue.popleft()
            for u in self._near(v):
                if u in path or u == c or self.m[u, v] != ARROW:
                    continue
                if not self.m[u, c]:
                    return u
                if self.m[v, u] == ARROW and self.m[u, c] == ARROW and self.m[c, u] == TAIL:
                    queue.append((u, (*path, u)))
        return None

    def _r8(self) -> bool:
        """a --> b --> c with a o-> c: a --> c."""
        changed = False
        for a, c in self._half_arrows():
            for b in self._near(a):
                if b != c and self.m[b, c] and self._arrow(a, b) and self._arrow(b, c):
                    changed |= self._set(c, a, TAIL)
                    break
        return changed

    def _r9(self) -> bool:
        """a o-> c with an uncovered path from a that may lead to c, whose second node is apart from c: a --> c."""
        changed = False
        for a, c in self._half_arrows():
            starts = [b for b in self._near(a) if b != c and not self.m[b, c] and self._may(a, b)]
            if any(self._leads((a, b), c) for b in starts):
                changed |= self._set(c, a, TAIL)
        return changed

    def _r10(self) -> bool:
        """a o-> c, b --> c <-- d, and uncovered paths from a that may lead to b and to d and part at once: a --> c."""
        changed = False
        for a, c in self._half_arrows():
            into = [b for b in self._near(c) if b != a and self._arrow(b, c)]
            for b, d in combinations(into, 2):
                first = [u for u in self._near(a) if u != c and self._may(a, u) and (u == b or self._leads((a, u), b))]
                other = [w for w in self._near(a) if w != c and self._may(a, w) and (w == d or self._leads((a, w), d))]
                if any(u != w and not self.m[u, w] for u in first for w in other):
                    changed |= self._set(c, a, TAIL)
                    break
        return changed

    def _arrow(self, a: int, b: int) -> bool:
        return bool(self.m[a, b] == ARROW and self.m[b, a] == TAIL)

    def _may(self, a: int, b: int) -> bool:
        """Whether the edge could be a --> b."""
        return bool(self.m[a, b] in (CIRCLE, ARROW) and self.m[b, a] in (CIRCLE, TAIL))

    def _half_arrows(self) -> Iterator[tuple[int, int]]:
        for a in range(self.n):
            for c in self._near(a):
                if self.m[a, c] == ARROW and self.m[c, a] == CIRCLE:
                    yield a, c

    def _leads(self, path: tuple[int, ...], end: int) -> bool:
        """Whether the path goes on to `end`, uncovered (each node apart from the one after the next), all ways open."""
        before, v = path[-2:]
        for u in self._near(v):
            if u in path or self.m[before, u] or not self._may(v, u):
                continue
            if u == end or self._leads((*path, u), end):
                return True
        return False


def _ordered_pairs(nodes: list[int]) -> Iterator[tuple[int, int]]:
    for a in nodes:
        for b in nodes:
            if a != b:
                yield a, b
