"""What to observe to learn the effect of an action: adjustment sets and front-door sets."""

from __future__ import annotations

from itertools import combinations

from gramgraph.graphs._nodes import Nodes, as_nodes
from gramgraph.graphs.directed import Digraph, ancestral_set, descendants
from gramgraph.graphs.separation import d_separated, minimal_d_separator

__all__ = ["adjustment_set", "front_door_set", "is_adjustment_set"]


def _backdoor_graph(graph: Digraph, x: int, y: int) -> tuple[Digraph, set[int]]:
    """(the graph without the first edges of directed paths from x to y, nodes that must not be adjusted for)."""
    below = set(descendants(graph, x))
    between = {v for v in below if v in set(ancestral_set(graph, y))}  # on a directed path from x to y
    never = {x, y, *between}
    for v in sorted(between):
        never.update(descendants(graph, v))
    parents = [tuple(p for p in row if not (p == x and v in between)) for v, row in enumerate(graph.parents)]
    return Digraph(tuple(parents)), never


def is_adjustment_set(graph: Digraph, x: int, y: int, given: Nodes) -> bool:
    """Whether p(y | do(x)) = Σ_z p(y | x, z) p(z) for z = ``given``, whatever the numbers.

    It holds if no member lies below a node of a directed path from x to y, and if ``given`` blocks all other trails
    between them.  Source: I. Shpitser, T. VanderWeele and J. Robins, UAI 2010.

    >>> confounded = Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)])  # 0 acts on 1 and 2, 1 on 2
    >>> is_adjustment_set(confounded, 1, 2, 0), is_adjustment_set(confounded, 1, 2, ())
    (True, False)
    """
    rest, never = _backdoor_graph(graph, x, y)
    chosen = as_nodes(given, graph.n)
    return not never.intersection(chosen) and d_separated(rest, x, y, chosen)


def adjustment_set(graph: Digraph, x: int, y: int, *, observed: Nodes | None = None) -> tuple[int, ...] | None:
    """A set as above of which no member can be left out, among the ``observed`` nodes; None if there is none.

    >>> adjustment_set(Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)]), 1, 2)
    (0,)
    """
    rest, never = _backdoor_graph(graph, x, y)
    usable = range(graph.n) if observed is None else as_nodes(observed, graph.n)
    return minimal_d_separator(rest, x, y, allowed=[v for v in usable if v not in never])


def front_door_set(
    graph: Digraph, x: int, y: int, *, observed: Nodes | None = None, most: int = 3
) -> tuple[int, ...] | None:
    """A smallest set of up to ``most`` observed nodes that carries the whole effect of x on y, free of confounding.

    It cuts all directed paths from x to y, x has no open back door to it, and x closes all back doors from it to y.

    >>> hidden = Digraph.from_edges(4, [(0, 1), (0, 3), (1, 2), (2, 3)])  # 0 is not observed
    >>> front_door_set(hidden, 1, 3, observed=[1, 2, 3])
    (2,)
    """
    usable = range(graph.n) if observed is None else as_nodes(observed, graph.n)
    between = set(descendants(graph, x)).intersection(ancestral_set(graph, y)) - {y}
    candidates = [v for v in usable if v in between]
    without_x = Digraph(tuple(tuple(p for p in row if p != x) for row in graph.parents))
    for size in range(1, most + 1):
        for chosen in combinations(candidates, size):
            cut = Digraph(tuple(() if v in chosen else row for v, row in enumerate(graph.parents)))
            if y in descendants(cut, x):  # a directed path goes around the set
                continue
            if not d_separated(without_x, x, chosen):
                continue
            no_effects = Digraph(tuple(tuple(p for p in row if p not in chosen) for row in graph.parents))
            if d_separated(no_effects, chosen, y, x):
                return tuple(chosen)
    return None
