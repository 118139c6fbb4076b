"""Greedy equivalence search: steps between classes of Markov equivalent graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from threading import Event

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.graphs.directed import Digraph
from gramgraph.graphs.equivalence import PartialDigraph, consistent_extension, cpdag, meek_closure
from gramgraph.learn.parent_sets import members
from gramgraph.learn.search import Constraints, Move, Scores
from gramgraph.learn.ties import best_first, least_gain

#: Of the neighbors that a step may direct, at most so many are tried in all combinations.
MAX_LOOSE = 10


@interruptible()
def ges(
    scores: Scores,
    constraints: Constraints,
    start: list[tuple[int, ...]],
    *,
    max_steps: int | None = None,
    tell: Callable[[int], object] | None = None,
    ended: Event | None = None,
) -> tuple[list[tuple[int, ...]], list[Move]]:
    """Parents in a graph of the best class found, and the steps.

    From the class of `start`: insert edges while that helps, then delete, then turn (delete an edge and insert it the
    other way), and again until nothing helps. Insert(x, y, T) is valid when T and the neighbors of y that are adjacent
    to x form a clique that blocks every semi-directed path from y to x; Delete(x, y, H) when what H leaves of them is a
    clique. Its gain is the difference of two families of y, so that every decomposable score will do; with one that is
    equal for equivalent graphs and enough data the class that generated them is found. With constraints, classes
    without a member that keeps them are passed over. Ctrl-C ends the search with the best class so far and sets
    `ended`.
    Sources: D. Chickering, JMLR 2002; A. Hauser and P. Bühlmann, JMLR 2012, for turning.
    """
    search = _Search(scores, constraints, _class_of(start), list(start))
    limit = np.inf if max_steps is None else max_steps
    try:
        while True:
            before = len(search.moves)
            for phase in (search.inserts, search.deletes):
                while len(search.moves) < limit and search.improve(phase()):
                    check_interrupt()
                    if tell:
                        tell(len(search.moves))
            if len(search.moves) < limit and search.turn():
                continue
            if len(search.moves) in (before, limit):
                break
    except KeyboardInterrupt:
        if ended is not None:
            ended.set()
    return search.parents, search.moves


#: (gain, kind, x, y, the set that the step directs as a bit mask)
Step = tuple[float, str, int, int, int]


@dataclass
class _Search:
    """A class of graphs on its way, with one member."""

    scores: Scores
    constraints: Constraints
    graph: PartialDigraph
    parents: list[tuple[int, ...]]
    moves: list[Move] = field(default_factory=list)
    _gains: dict[tuple[int, int], tuple[tuple[int, ...], list[Step]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.least = least_gain(self.scores)  # gains up to this are rounding
        self._read()

    def _read(self) -> None:
        """Bit masks of the parents, children and neighbors."""
        n = self.graph.n
        self.into, self.out, self.near = [0] * n, [0] * n, [0] * n
        for a, b in self.graph.directed:
            self.into[b] |= 1 << a
            self.out[a] |= 1 << b
        for a, b in self.graph.undirected:
            self.near[a] |= 1 << b
            self.near[b] |= 1 << a
        self.adjacent = [i | o | u for i, o, u in zip(self.into, self.out, self.near, strict=True)]

    @property
    def score(self) -> float:
        return self._total(self.parents)

    # ------------------------------------------------------------------------------------------ steps

    def inserts(self) -> list[Step]:
        """All insertions that gain something, the best first, equals by position; the paths are not looked at yet."""
        out: list[Step] = []
        for y in range(self.graph.n):
            for x in range(self.graph.n):
                if x != y and not self.adjacent[y] >> x & 1:
                    out.extend(self._inserts_of(x, y))
        return self._best_first(out)

    def _inserts_of(self, x: int, y: int, *, all_gains: bool = False) -> list[Step]:
        check_interrupt()
        common = self.near[y] & self.adjacent[x]
        state = (self.near[y], self.into[y], common)
        known = self._gains.get((x, y))
        if not all_gains and known is not None and known[0] == state:
            return known[1]
        found = []
        if not (self.constraints.forbidden[x, y] and self.constraints.forbidden[y, x]):
            for more in _subsets(self.near[y] & ~self.adjacent[x]):
                given = common | more | self.into[y]
                if given.bit_count() + 1 <= self.constraints.max_parents:
                    gain = self._family(y, given | 1 << x) - self._family(y, given)
                    if gain > (-np.inf if all_gains else self.least):
                        found.append((gain, "insert", x, y, more))
        if not all_gains:
            self._gains[x, y] = (state, found)
        return found

    def deletes(self, *, all_gains: bool = False) -> list[Step]:
        """All deletions that gain something, the best first, equals by position."""
        out: list[Step] = []
        for y in range(self.graph.n):
            for x in members(self.into[y] | self.near[y]):
                if self.constraints.required[x, y] or self.constraints.required[y, x]:
                    continue
                common = self.near[y] & self.adjacent[x]
                for fewer in _subsets(common):
                    kept = common & ~fewer
                    if not self._is_clique(kept):
                        continue
                    given = (kept | self.into[y]) & ~(1 << x)
                    gain = self._family(y, given) - self._family(y, given | 1 << x)
                    if gain > (-np.inf if all_gains else self.least):
                        out.append((gain, "delete", x, y, fewer))
        return self._best_first(out)

    def improve(self, steps: list[Step]) -> bool:
        """Take the first valid step that helps (a score that differs within classes may think otherwise of it)."""
        for step in steps:
            after = self.after(step)
            if after is not None and (total := self._total(after[1])) > self.score + self.least:
                self._take(step[1], step[2], step[3], total - self.score, *after)
                return True
        return False

    def _best_first(self, steps: list[Step]) -> list[Step]:
        return best_first(steps, lambda step: step[0], lambda step: step[2:], self.least)

    def _total(self, parents: list[tuple[int, ...]]) -> float:
        return float(sum(self.scores.family(v, found) for v, found in enumerate(parents)))

    def after(self, step: Step) -> tuple[PartialDigraph, list[tuple[int, ...]]] | None:
        """The class that a step leads to with an allowed member; None when the step is not valid."""
        _, kind, x, y, chosen = step
        if kind == "insert":
            wall = (self.near[y] & self.adjacent[x]) | chosen
            if not self._is_clique(wall) or self._passes(y, x, wall):
                return None
            arrows = [(x, y), *((t, y) for t in members(chosen))]
            gone: tuple[tuple[int, int], ...] = ()
        else:
            arrows = [(y, h) for h in members(chosen)] + [(x, h) for h in members(chosen & self.near[x])]
            gone = ((x, y), (y, x))
        fixed = {*arrows, *((b, a) for a, b in arrows), *gone}
        directed = [edge for edge in self.graph.directed if edge not in fixed] + arrows
        loose = [edge for edge in self.graph.undirected if edge not in fixed]
        member = consistent_extension(PartialDigraph.from_edges(self.graph.n, directed=directed, undirected=loose))
        if member is None:
            return None
        made = cpdag(member)
        parents = allowed_member(made, self.constraints, list(member.parents))
        return None if parents is None else (made, parents)

    def turn(self) -> bool:
        """Delete an edge and insert it again, the other way or with other neighbors directed: the best such pair, the
        first of equals. The score of the member must rise, so that no round of turns leads back."""
        best: tuple[float, int, int, PartialDigraph, list[tuple[int, ...]]] | None = None
        for step in self.deletes(all_gains=True):
            there = self._between(step)
            if there is None:
                continue
            for x, y in ((step[2], step[3]), (step[3], step[2])):
                for back in self._best_first(there._inserts_of(x, y, all_gains=True)):
                    gain = step[0] + back[0]
                    if not self.least + (0.0 if best is None else best[0]) < gain < np.inf:
                        break
                    after = there.after(back)
                    if after is not None and self._total(after[1]) > self.score + max(gain - self.least, self.least):
                        best = (gain, x, y, *after)
                        break
        if best is None:
            return False
        self._take("turn", best[1], best[2], best[0], best[3], best[4])
        return True

    def _between(self, step: Step) -> _Search | None:
        """The class after a deletion, whether or not its members are allowed."""
        free = Constraints.none(self.graph.n)
        after = _Search(self.scores, free, self.graph, self.parents).after(step)
        return None if after is None else _Search(self.scores, self.constraints, *after)

    def _take(
        self, kind: str, x: int, y: int, gain: float, graph: PartialDigraph, parents: list[tuple[int, ...]]
    ) -> None:
        self.graph, self.parents = graph, parents
        self._read()
        self.moves.append(Move(kind, x, y, gain, self.score))

    # ------------------------------------------------------------------------------------------ conditions

    def _family(self, child: int, mask: int) -> float:
        return self.scores.family(child, members(mask))

    def _is_clique(self, mask: int) -> bool:
        return all(mask & ~(1 << v) & ~self.adjacent[v] == 0 for v in members(mask))

    def _passes(self, start: int, end: int, wall: int) -> bool:
        """Whether a path along arrows and links leads from start to end around the wall."""
        seen = 1 << start
        stack = [start]
        while stack:
            v = stack.pop()
            if v == end:
                return True
            fresh = (self.out[v] | self.near[v]) & ~wall & ~seen
            seen |= fresh
            stack.extend(members(fresh))
        return False


def _subsets(mask: int) -> Iterator[int]:
    """All subsets, small ones first; of many elements the first few only."""
    elements = members(mask)[:MAX_LOOSE]
    for size in range(len(elements) + 1):
        for chosen in combinations(elements, size):
            yield sum(1 << v for v in chosen)


def _class_of(parents: list[tuple[int, ...]]) -> PartialDigraph:
    return cpdag(Digraph.from_edges(len(parents), [(p, v) for v, found in enumerate(parents) for p in found]))


def allowed_member(
    graph: PartialDigraph, constraints: Constraints, member: list[tuple[int, ...]]
) -> list[tuple[int, ...]] | None:
    """Parents in a graph of the class that keeps the constraints (`member`, if it does); None if there is none."""
    must, never = constraints.required, constraints.forbidden

    def fine(parents: list[tuple[int, ...]]) -> bool:
        if max(map(len, parents), default=0) > constraints.max_parents:
            return False
        there = np.zeros_like(must)
        for v, found in enumerate(parents):
            there[list(found), v] = True
        return not (there & never).any() and not (must & ~there).any()

    if fine(member):
        return member
    arrows = list(graph.directed)
    loose = []
    for a, b in graph.undirected:
        if must[a, b] or (never[b, a] and not never[a, b]):
            arrows.append((a, b))
        elif must[b, a] or (never[a, b] and not never[b, a]):
            arrows.append((b, a))
        else:
            loose.append((a, b))
    made = meek_closure(PartialDigraph.from_edges(graph.n, directed=arrows, undirected=loose))
    found = consistent_extension(made)
    return list(found.parents) if found is not None and fine(list(found.parents)) else None
