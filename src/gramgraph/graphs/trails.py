"""Which ways stay open between variables when some are observed: all active trails, and where the others stop."""

from __future__ import annotations

from dataclasses import dataclass

from gramgraph.graphs._nodes import Nodes, as_nodes, flags, marked
from gramgraph.graphs.directed import Digraph, ancestral_set
from gramgraph.graphs.separation import reachable
from gramgraph.graphs.undirected import UndirectedGraph

Move = tuple[int, int]  # from a node to its neighbor

#: Steps after which the search for trails ends: their number can grow exponentially with the graph.
MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Openness:
    """What a source still tells about the others: see `openness`.

    Parameters
    ----------
    reached : nodes that an active trail joins to the source.
    edges : edges of the graph, as it has them, that lie on active trails.
    observed : observed nodes that trails do not get past.
    closed : common effects that trails do not get past, as nothing at or below them is observed.

    Examples
    --------
    >>> from gramgraph.graphs import Digraph
    >>> found = openness(Digraph.from_edges(3, [(0, 2), (1, 2)]), 0)
    >>> found.reached, found.closed
    ((2,), (2,))
    """

    reached: tuple[int, ...]  # nodes that an active trail joins to the source
    edges: tuple[Move, ...]  # edges of the graph, as it has them, that lie on active trails
    observed: tuple[int, ...]  # observed nodes that trails do not get past
    closed: tuple[int, ...]  # common effects that trails do not get past, as nothing at or below them is observed


class _Moves:
    """Steps from node to neighbor, and which step may follow which; no step goes straight back."""

    def __init__(self, graph: Digraph | UndirectedGraph, given: Nodes) -> None:
        self.observed = flags(as_nodes(given, graph.n), graph.n)
        self.parents: tuple[frozenset[int], ...] = ()
        if isinstance(graph, Digraph):
            self.opened = flags(ancestral_set(graph, marked(self.observed)), graph.n)
            self.parents = tuple(frozenset(row) for row in graph.parents)
            self.near = [sorted({*graph.parents[v], *graph.children[v]}) for v in range(graph.n)]
        else:
            self.near = [sorted(row) for row in graph.neighbors]

    def collides(self, u: int, v: int, w: int) -> bool:
        """Whether u -> v <- w."""
        return bool(self.parents) and u in self.parents[v] and w in self.parents[v]

    def passes(self, u: int, v: int, w: int) -> bool:
        """Whether a trail u, v, w is open at v."""
        return bool(self.opened[v]) if self.collides(u, v, w) else not self.observed[v]

    def after(self, move: Move) -> list[Move]:
        """The steps that may follow."""
        u, v = move
        return [(v, w) for w in self.near[v] if w != u and self.passes(u, v, w)]

    def from_source(self, source: int) -> dict[Move, list[Move]]:
        """All steps that a trail from the source may take, each with those that may follow."""
        out: dict[Move, list[Move]] = {}
        todo = [] if self.observed[source] else [(source, w) for w in self.near[source]]
        while todo:
            move = todo.pop()
            if move not in out:
                out[move] = self.after(move)
                todo += out[move]
        return out


def openness(graph: Digraph | UndirectedGraph, source: int, given: Nodes = ()) -> Openness:
    """Where active trails from a source lead when `given` is observed, over which edges, and where others stop.

    An observed node is never reached; an edge into one counts where a trail goes on from it (a common effect that is
    observed). Cost O(Σ degree²).

    Parameters
    ----------
    graph : the graph, on positions.
    source : where trails begin.
    given : nodes that are observed.

    Examples
    --------
    >>> openness(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 0)
    Openness(reached=(2, 3), edges=((0, 2), (2, 3)), observed=(), closed=(2,))
    >>> openness(Digraph.from_edges(4, [(0, 2), (1, 2), (2, 3)]), 0, given=2)
    Openness(reached=(1,), edges=((0, 2), (1, 2)), observed=(2,), closed=())
    """
    moves = _Moves(graph, given)
    steps = moves.from_source(source)
    useful = [
        m for m, after in steps.items() if not moves.observed[m[1]] or any(not moves.observed[w] for _, w in after)
    ]
    lines = {frozenset(move) for move in useful}
    edges = tuple(edge for edge in graph.edges() if frozenset(edge) in lines)
    if isinstance(graph, Digraph):
        reached = tuple(v for v in reachable(graph, source, given) if v != source)
    else:
        reached = tuple(sorted({v for _, v in steps if not moves.observed[v] and v != source}))
    walls: set[int] = set()
    shut: set[int] = set()
    for u, v in steps:
        for w in moves.near[v]:
            if w != u and w != source and not moves.passes(u, v, w):
                (shut if moves.collides(u, v, w) else walls).add(v)
    return Openness(reached, edges, tuple(sorted(walls)), tuple(sorted(shut)))


def active_trails(
    graph: Digraph | UndirectedGraph, a: int, b: int, given: Nodes = (), *, limit: int = 1000
) -> tuple[tuple[int, ...], ...]:
    """All active trails from a to b as node lists, shorter ones first, at most `limit` (and none that needs more than
    MOST_STEPS steps to find: their number can grow exponentially).

    Parameters
    ----------
    graph : the graph, on positions.
    a : where trails begin.
    b : where they end.
    given : nodes that are observed.
    limit : the most that are listed.

    Examples
    --------
    >>> active_trails(Digraph.from_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3)]), 0, 3)
    ((0, 1, 3), (0, 2, 3))
    """
    moves = _Moves(graph, given)
    if a == b or moves.observed[a] or moves.observed[b]:
        return ()
    steps = moves.from_source(a)
    leads = _leading_to(steps, b)
    found: list[tuple[int, ...]] = []
    layer: list[tuple[int, ...]] = [(a, w) for w in moves.near[a] if (a, w) in leads]
    taken = 0
    while layer and len(found) < limit and taken < MOST_STEPS:
        following = []
        for trail in layer:
            taken += 1
            if trail[-1] == b:
                found.append(trail)
                continue
            move = (trail[-2], trail[-1])
            following += [(*trail, w) for _, w in steps[move] if (trail[-1], w) in leads and w not in trail]
        layer = following[: MOST_STEPS - taken] if taken < MOST_STEPS else []
    return tuple(found[:limit])


def _leading_to(steps: dict[Move, list[Move]], b: int) -> set[Move]:
    """The steps from which b can still be reached."""
    before: dict[Move, list[Move]] = {}
    for move, after in steps.items():
        for other in after:
            before.setdefault(other, []).append(move)
    todo = [move for move in steps if move[1] == b]
    out = set(todo)
    while todo:
        for move in before.get(todo.pop(), ()):
            if move not in out:
                out.add(move)
                todo.append(move)
    return out
