"""Hill climbing and tabu search over directed acyclic graphs, on integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph.learn.checkpoint import Checkpoint, digest
from gramgraph.typing import Array, FloatArray

__all__ = ["Constraints", "Move", "Search", "hill_climb"]

#: Gains below this are rounding.
LEAST_GAIN = 1e-9


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


def _ranked(gain: Any) -> Any:
    """Gains to nine digits. Arrows of equal score differ by rounding, which depends on how the data were added up:
    position decides between them instead."""
    part, power = np.frexp(gain)
    return np.ldexp(np.round(np.ldexp(part, 30)), power - 30)


@dataclass
class Search:
    """A graph on its way: parents of every node, gains of every toggled edge, ancestors as bit masks."""

    scores: Scores
    constraints: Constraints
    parents: list[tuple[int, ...]]
    moves: list[Move] = field(default_factory=list)
    interrupted: bool = False  # whether Ctrl-C ended it

    def __post_init__(self) -> None:
        n = len(self.parents)
        every_pair = getattr(self.scores, "all_pairs", None)
        if every_pair is not None:
            every_pair()
        self.local = np.array([self.scores.family(c, self.parents[c]) for c in range(n)])
        self.gain: FloatArray = np.full((n, n), -np.inf)
        for child in range(n):
            self._refresh(child)
        self._ancestors = self._all_ancestors()

    @property
    def score(self) -> float:
        """Score of the graph."""
        return float(self.local.sum())

    def _refresh(self, child: int) -> None:
        """Gain of toggling each parent of `child`."""
        now = self.parents[child]
        forbidden, required = self.constraints.forbidden[:, child], self.constraints.required[:, child]
        full = len(now) >= self.constraints.max_parents
        after: dict[int, tuple[int, ...]] = {}
        for p in range(len(self.parents)):
            if p in now:
                if not required[p]:
                    after[p] = tuple(x for x in now if x != p)
            elif not forbidden[p] and not full:
                after[p] = (*now, p)
        announce = getattr(self.scores, "prefetch", None)
        if announce is not None:
            announce(child, list(after.values()))
        self.gain[:, child] = -np.inf
        for p, parents in after.items():
            self.gain[p, child] = self.scores.family(child, parents) - self.local[child]

    def _all_ancestors(self) -> list[int]:
        """Bit mask of the ancestors of every node."""
        n = len(self.parents)
        found = [-1] * n
        for start in range(n):
            stack = [start]
            while stack:
                v = stack[-1]
                waiting = [p for p in self.parents[v] if found[p] < 0]
                if waiting:
                    stack.extend(waiting)
                    continue
                stack.pop()
                mask = 0
                for p in self.parents[v]:
                    mask |= found[p] | (1 << p)
                found[v] = mask
        return found

    def candidates(self) -> list[tuple[float, str, int, int]]:
        """All legal steps (gain, kind, parent, child), the best first."""
        n = len(self.parents)
        above = self._ancestors
        out = []
        for child in range(n):
            now = self.parents[child]
            column = self.gain[:, child].tolist()
            for p in range(n):
                g = column[p]
                if p in now:
                    if g > -np.inf:
                        out.append((g, "remove", p, child))
                        back = self.gain[child, p]
                        if back > -np.inf and not any(x != p and above[x] >> p & 1 for x in now):
                            out.append((g + float(back), "reverse", p, child))
                elif g > -np.inf and not above[p] >> child & 1:
                    out.append((g, "add", p, child))
        out.sort(key=lambda step: (-_ranked(step[0]), step[2], step[3], step[1]))
        return out

    def best(self, allowed: Callable[[str, int, int], bool] | None = None) -> tuple[float, str, int, int] | None:
        """The best legal step that is allowed; ties go to the lower positions."""
        first = self._best_by_arrays()
        if first is None or allowed is None or allowed(*first[1:]):
            return first
        return next((step for step in self.candidates() if allowed(*step[1:])), None)

    def _best_by_arrays(self) -> tuple[float, str, int, int] | None:
        """The best of `candidates`, found without listing them."""
        n = len(self.parents)
        present = np.zeros((n, n), bool)
        for child, now in enumerate(self.parents):
            present[list(now), child] = True
        above = np.array([[mask >> a & 1 for a in range(n)] for mask in self._ancestors], bool)  # [node, ancestor]
        adds = np.where(present | above, -np.inf, self.gain)
        best: tuple[float, str, int, int] = (-np.inf, "", -1, -1)
        top = int(_ranked(adds).argmax())
        if adds.flat[top] > -np.inf:
            best = (float(adds.flat[top]), "add", top // n, top % n)
        for p, c in np.argwhere(present).tolist():
            g = float(self.gain[p, c])
            if g == -np.inf:
                continue
            if _ranked(g) > _ranked(best[0]):
                best = (g, "remove", p, c)
            back = float(self.gain[c, p])
            if (
                back > -np.inf
                and _ranked(g + back) > _ranked(best[0])
                and not any(x != p and above[x, p] for x in self.parents[c])
            ):
                best = (g + back, "reverse", p, c)
        return best if best[1] else None

    def take(self, step: tuple[float, str, int, int]) -> None:
        """Do a step."""
        gain, kind, p, c = step
        if kind == "add":
            self.parents[c] = (*self.parents[c], p)
        else:
            self.parents[c] = tuple(x for x in self.parents[c] if x != p)
        if kind == "reverse":
            self.parents[p] = (*self.parents[p], c)
        for child in (c, p) if kind == "reverse" else (c,):
            self.local[child] = self.scores.family(child, self.parents[child])
            self._refresh(child)
        self._ancestors = self._all_ancestors()
        self.moves.append(Move(kind, p, c, gain, self.score))


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

    With `patience` > 0, up to that many steps in a row may be the least bad ones, and the graphs of as many steps back
    are not visited again (tabu search). Ctrl-C ends the search with the best graph so far. With a checkpoint the search
    begins where the noted one stood.
    """
    at = _Progress(search.score, list(search.parents), [_graph(search.parents)])
    if checkpoint is not None:
        at = _resumed(search, checkpoint, at)
    noted = _noted(search, at)
    try:
        while max_steps is None or at.steps < max_steps:
            check_interrupt()
            step = search.best(_elsewhere(search, at.seen) if patience else None)
            if step is None or (step[0] <= LEAST_GAIN and at.idle >= patience):
                break
            search.take(step)
            at = at.after(search, patience)
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
    """The best graph so far, the graphs of the last steps, steps without gain, steps."""

    best_score: float
    best_parents: list[tuple[int, ...]]
    seen: list[tuple[tuple[int, ...], ...]]
    idle: int = 0
    steps: int = 0

    def after(self, search: Search, patience: int) -> _Progress:
        """One step later."""
        seen = [*self.seen, _graph(search.parents)][-(patience + 1) :]
        if search.score > self.best_score + LEAST_GAIN:
            return _Progress(search.score, list(search.parents), seen, 0, self.steps + 1)
        return _Progress(self.best_score, self.best_parents, seen, self.idle + 1, self.steps + 1)


def _noted(search: Search, at: _Progress) -> Callable[[], dict[str, Any]]:
    """What a checkpoint keeps; numbers are written when it asks for them."""
    parents, moves, count = list(search.parents), search.moves, len(search.moves)

    def state() -> dict[str, Any]:
        steps = [(m.kind, m.parent, m.child, m.gain, m.score) for m in moves[:count]]
        return {"parents": parents, "moves": steps, "best": at.best_parents, "best_score": at.best_score,
                "seen": at.seen, "idle": at.idle, "steps": at.steps}  # fmt: skip

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
        seen = [tuple(graph(rows)) for rows in state["seen"]]
        at = _Progress(float(state["best_score"]), graph(state["best"]), seen, int(state["idle"]), int(state["steps"]))
    except (KeyError, TypeError, ValueError):
        raise checkpoint.damaged() from None
    search.__post_init__()
    return at


def _graph(parents: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(sorted(found)) for found in parents)


def _elsewhere(search: Search, seen: list[tuple[tuple[int, ...], ...]]) -> Callable[[str, int, int], bool]:
    """Whether a step leads to a graph that was not seen lately."""
    return lambda kind, p, c: _after(search, (kind, p, c)) not in seen


def _after(search: Search, move: tuple[str, int, int]) -> tuple[tuple[int, ...], ...]:
    kind, p, c = move
    parents = list(search.parents)
    parents[c] = (*parents[c], p) if kind == "add" else tuple(x for x in parents[c] if x != p)
    if kind == "reverse":
        parents[p] = (*parents[p], c)
    return _graph(parents)
