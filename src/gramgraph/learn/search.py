"""Hill climbing and tabu search over directed acyclic graphs, on integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.learn.checkpoint import Checkpoint, digest
from gramgraph.learn.ties import least_gain, slack
from gramgraph.learn.turning import Turns
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["Constraints", "Move", "Search", "hill_climb"]

#: Kind (add, remove, reverse), parent, child.
Step = tuple[str, int, int]


class Scores(Protocol):
    """What a search asks for."""

    def family(self, child: int, parents: tuple[int, ...]) -> float: ...


@dataclass(frozen=True)
class Constraints:
    """Which edges may, must and must not be there; entry [parent, child]."""

    required: Array
    forbidden: Array
    max_parents: int

    @classmethod
    def none(cls, n: int) -> Constraints:
        """Any graph."""
        return cls(np.zeros((n, n), bool), np.eye(n, dtype=bool), n)

    def digest(self) -> str:
        """A short text that tells constraints apart."""
        return digest((self.required.tolist(), self.forbidden.tolist(), self.max_parents))


@dataclass(frozen=True)
class Move:
    """One step: `kind` is add, remove or reverse; the edge as it was before a reversal."""

    kind: str
    parent: int
    child: int
    gain: float
    score: float


@dataclass
class Search:
    """A graph on its way: parents of every node, gains of every toggled edge, which nodes can be reached from which.

    The best edge to add is kept for every child, so that a step looks anew only where something changed: O(n) and the
    scores of one or two children.
    """

    scores: Scores
    constraints: Constraints
    parents: list[tuple[int, ...]]
    moves: list[Move] = field(default_factory=list)
    interrupted: bool = False  # whether Ctrl-C ended it

    def __post_init__(self) -> None:
        n = len(self.parents)
        self.least = least_gain(self.scores)  # gains up to this are rounding
        self.additions = getattr(self.scores, "additions", None) or partial(_one_by_one, self.scores)
        self._edges = np.array(sorted(p * n + c for c, now in enumerate(self.parents) for p in now), np.int64)
        self.below = np.eye(n, dtype=bool)  # [a, b]: b is a or can be reached from it
        self._descend(np.array(_children_first(self.parents), np.int64))
        self.local = np.array([self.scores.family(c, self.parents[c]) for c in range(n)])
        self.gain: FloatArray = np.full((n, n), -np.inf)  # [child, parent]
        self._top, self._top_gain = np.zeros(n, np.int64), np.full(n, -np.inf)
        self._stale = set(range(n))  # children whose best edge is to be looked for
        for child in range(n):
            self._refresh(child)
        self._turns = Turns(self) if getattr(self.scores, "equivalent", False) else None

    @property
    def score(self) -> float:
        """Score of the graph."""
        return float(self.local.sum())

    def _refresh(self, child: int) -> None:
        """Gain of toggling each parent of `child`."""
        now, row = self.parents[child], self.gain[child]
        row.fill(-np.inf)
        self._stale.add(child)
        if len(now) < self.constraints.max_parents:
            free = ~self.constraints.forbidden[:, child]
            free[list(now)] = False
            more = np.flatnonzero(free)
            row[more] = self.additions(child, now, more)
        for p in now:
            if not self.constraints.required[p, child]:
                row[p] = self.scores.family(child, _without(now, p))
        row -= self.local[child]

    def best(self, excluded: AbstractSet[Step] = frozenset()) -> tuple[float, str, int, int] | None:
        """The best legal step (gain, kind, parent, child) that is not excluded.

        Where gains are equal but for rounding, additions come first, then lower positions.
        """
        for child in self._stale:
            self._top[child], self._top_gain[child] = self._best_parent(child, ())
        self._stale.clear()
        if not len(self.parents):
            return None
        tops, gains = self._without_excluded(excluded)
        top = float(gains.max())
        if top == -np.inf:
            return self._best_change(top, excluded)
        near = slack(top, self.least)
        tied = np.flatnonzero(gains >= top - near)
        child = int(tied[tops[tied].argmin()])
        parent = int(tops[child])
        return self._best_change(top + near, excluded) or (float(self.gain[child, parent]), "add", parent, child)

    def _best_parent(self, child: int, excluded: Sequence[int]) -> tuple[int, float]:
        """The best edge into `child` that makes no cycle, the first of equals, and the largest gain."""
        row = np.where(self.below[child], -np.inf, self.gain[child])
        row[[*self.parents[child], *excluded]] = -np.inf
        top = float(row.max())
        return (int((row >= top - slack(top, self.least)).argmax()) if top > -np.inf else 0), top

    def _without_excluded(self, excluded: AbstractSet[Step]) -> tuple[IntArray, FloatArray]:
        """For each child its best parent and the largest gain, where the excluded ones do not count."""
        passed: dict[int, list[int]] = {}
        for kind, p, c in excluded:
            if kind == "add":
                passed.setdefault(c, []).append(p)
        if not passed:
            return self._top, self._top_gain
        tops, gains = self._top.copy(), self._top_gain.copy()
        for child, found in passed.items():
            if tops[child] in found:
                tops[child], gains[child] = self._best_parent(child, found)
        return tops, gains

    def _best_change(self, least: float, excluded: AbstractSet[Step]) -> tuple[float, str, int, int] | None:
        """The best edge to remove or reverse, the first of equals, if it gains more than `least`."""
        n = len(self.parents)
        parent, child = np.divmod(self._edges, n)
        gains = self.gain[child, parent]
        gains = np.stack([gains, gains + self.gain[parent, child]], axis=1).ravel()  # remove, reverse, of each edge
        better = np.flatnonzero(gains > least)
        first, found, floor = len(gains), None, -np.inf
        for i in better[np.argsort(-gains[better], kind="stable")].tolist():
            if gains[i] < floor:
                break
            kind, p, c = ("remove", "reverse")[i % 2], int(parent[i // 2]), int(child[i // 2])
            legal = kind == "remove" or not any(x != p and self.below[p, x] for x in self.parents[c])
            if legal and i < first and (kind, p, c) not in excluded:
                if found is None:
                    floor = gains[i] - slack(gains[i], self.least)
                first, found = i, (float(gains[i]), kind, p, c)
        return found

    def turned(self, least: float) -> list[tuple[float, str, int, int]] | None:
        """Steps to an equivalent graph, and one from there that gains more than `least`; None if there are none."""
        return None if self._turns is None else self._turns.best(least)

    def take(self, step: tuple[float, str, int, int]) -> None:
        """Do a step."""
        gain, kind, p, c = step
        if kind == "add":
            self._connect(p, c)
        else:
            self._part(p, c)
        if kind == "reverse":
            self._connect(c, p)
        others = (c, p) if kind == "reverse" else (c,)
        for child in others:
            self.local[child] = self.scores.family(child, self.parents[child])
            self._refresh(child)
        if self._turns is not None:
            self._turns.changed(others)
        self.moves.append(Move(kind, p, c, gain, self.score))

    def _connect(self, p: int, c: int) -> None:
        """A new edge: everything above it reaches more, and some edges would now close a cycle."""
        self.parents[c] = (*self.parents[c], p)
        key = p * len(self.parents) + c
        self._edges = np.insert(self._edges, np.searchsorted(self._edges, key), key)
        if self._turns is not None:
            self._turns.children[p].add(c)
        above = np.flatnonzero(self.below[:, p])
        self.below[above] |= self.below[c]
        self._stale.update(above[self.below[above, self._top[above]]].tolist())

    def _part(self, p: int, c: int) -> None:
        """An edge less: everything above it may reach less."""
        self.parents[c] = _without(self.parents[c], p)
        self._edges = np.delete(self._edges, np.searchsorted(self._edges, p * len(self.parents) + c))
        above = np.flatnonzero(self.below[:, p])
        if self._turns is not None:
            self._turns.children[p].discard(c)
            self._turns.freed(above)
        self._descend(above[np.argsort(self.below[above].sum(axis=1), kind="stable")])
        self._stale.update(above.tolist())

    def _descend(self, nodes: IntArray) -> None:
        """What these nodes reach, children before their parents."""
        n = len(self.parents)
        begins, ends = np.searchsorted(self._edges, nodes * n), np.searchsorted(self._edges, (nodes + 1) * n)
        for v, begin, end in zip(nodes.tolist(), begins.tolist(), ends.tolist(), strict=True):
            self.below[v] = self.below[self._edges[begin:end] - v * n].any(axis=0)
            self.below[v, v] = True


def _one_by_one(scores: Any, child: int, parents: tuple[int, ...], more: IntArray) -> list[float]:
    """The scores of a child with its parents and one more, for scores that know families alone."""
    sets = [(*parents, p) for p in more.tolist()]
    announce = getattr(scores, "prefetch", None)
    if announce is not None:
        announce(child, sets)
    return [scores.family(child, found) for found in sets]


def _children_first(parents: Sequence[tuple[int, ...]]) -> list[int]:
    """The nodes in an order in which every one comes before its parents."""
    waiting = np.zeros(len(parents), np.int64)
    for now in parents:
        waiting[list(now)] += 1
    ready = np.flatnonzero(waiting == 0).tolist()
    for v in ready:
        for p in parents[v]:
            waiting[p] -= 1
            if not waiting[p]:
                ready.append(p)
    return ready


def _without(parents: tuple[int, ...], p: int) -> tuple[int, ...]:
    return tuple(x for x in parents if x != p)


def _ways_back(search: Search, steps: int) -> set[Step]:
    """The steps that lead to a graph as it was up to so many steps ago."""
    found: set[Step] = set()
    toggled: set[tuple[int, int]] = set()
    for move in search.moves[len(search.moves) - steps :][::-1]:
        ends = (move.parent, move.child)
        toggled ^= {ends, ends[::-1]} if move.kind == "reverse" else {ends}
        there = [(p, c) for p, c in toggled if p in search.parents[c]]
        if len(toggled) == 1:
            ((p, c),) = toggled
            found.add(("remove" if there else "add", p, c))
        elif len(toggled) == 2 and len(there) == 1 and there[0][::-1] in toggled:
            found.add(("reverse", *there[0]))
    return found


@interruptible()
def hill_climb(
    search: Search,
    *,
    patience: int = 0,
    max_steps: int | None = None,
    tell: Callable[[int], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[tuple[int, ...]]:
    """Take the best step while it helps; the parents of the best graph seen are returned.

    Where equivalent graphs score the same, steps are looked for behind arrows that turn around for free as well.
    With `patience` > 0, up to that many steps in a row may be the least bad ones, and the graphs of as many steps back
    are not visited again (tabu search). Ctrl-C ends the search with the best graph so far. With a checkpoint the search
    begins where the noted one stood.
    """
    at = _Progress(search.score, list(search.parents))
    if checkpoint is not None:
        at = _resumed(search, checkpoint, at)
    noted = _noted(search, at)
    try:
        while max_steps is None or at.steps < max_steps:
            check_interrupt()
            step = search.best(_ways_back(search, min(patience, at.steps)))
            turned = search.turned(max(step[0], search.least) if step else search.least)
            if turned is not None and (max_steps is None or at.steps + len(turned) <= max_steps):
                steps = turned
            elif step is None or (step[0] <= search.least and at.idle >= patience):
                break
            else:
                steps = [step]
            for one in steps:
                search.take(one)
            at = at.after(search, len(steps))
            if checkpoint is not None:
                noted = _noted(search, at)
                checkpoint.save(noted)
            if tell:
                tell(at.steps)
    except KeyboardInterrupt:
        search.interrupted = True
    if checkpoint is not None:
        checkpoint.save(noted, now=True)
    return at.best_parents


@dataclass(frozen=True)
class _Progress:
    """The best graph so far, steps without gain, steps."""

    best_score: float
    best_parents: list[tuple[int, ...]]
    idle: int = 0
    steps: int = 0

    def after(self, search: Search, steps: int) -> _Progress:
        """So many steps later."""
        if (score := search.score) > self.best_score + search.least:
            return _Progress(score, list(search.parents), 0, self.steps + steps)
        return _Progress(self.best_score, self.best_parents, self.idle + 1, self.steps + steps)


def _noted(search: Search, at: _Progress) -> Callable[[], dict[str, Any]]:
    """What a checkpoint keeps; numbers are written when it asks for them."""
    parents, moves, count = list(search.parents), search.moves, len(search.moves)

    def state() -> dict[str, Any]:
        steps = [(m.kind, m.parent, m.child, m.gain, m.score) for m in moves[:count]]
        return {"parents": parents, "moves": steps, "best": at.best_parents, "best_score": at.best_score,
                "idle": at.idle, "steps": at.steps}  # fmt: skip

    return state


def _resumed(search: Search, checkpoint: Checkpoint, at: _Progress) -> _Progress:
    """The search as it was noted, or as it is where nothing was."""
    state = checkpoint.begin()
    if state is None:
        return at
    n = len(search.parents)

    def graph(rows: Any) -> list[tuple[int, ...]]:
        found = [tuple(map(int, row)) for row in rows]
        if len(found) != n or any(not 0 <= p < n for row in found for p in row):
            raise checkpoint.damaged()
        return found

    try:
        search.parents = graph(state["parents"])
        search.moves[:] = [Move(str(k), int(p), int(c), float(g), float(s)) for k, p, c, g, s in state["moves"]]
        at = _Progress(float(state["best_score"]), graph(state["best"]), int(state["idle"]), int(state["steps"]))
    except (KeyError, TypeError, ValueError):
        raise checkpoint.damaged() from None
    search.__post_init__()
    return at
