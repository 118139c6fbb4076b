"""What to observe to learn the effect of an action: adjustment sets and front-door sets."""

from __future__ import annotations

import warnings
from itertools import combinations, islice

from gramgraph.graphs._nodes import Nodes, as_nodes
from gramgraph.graphs.directed import Digraph, ancestral_set, descendants
from gramgraph.graphs.separation import d_separated, minimal_d_separator
from gramgraph.graphs.separators import minimal_separators
from gramgraph.graphs.undirected import moralize


def _usable(graph: Digraph, hidden: Nodes, observed: Nodes | None) -> list[int]:
    """The nodes that are observed."""
    if observed is not None:
        text = "observed=… is the old way to say it. Use hidden=…, the nodes that are not observed, instead; the old "
        warnings.warn(f"{text}keyword works until 0.4", DeprecationWarning, stacklevel=3)
        return list(as_nodes(observed, graph.n))
    unseen = set(as_nodes(hidden, graph.n))
    return [v for v in range(graph.n) if v not in unseen]


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

    Parameters
    ----------
    graph : the graph, on positions.
    x : position of the first node.
    y : position of the second node.
    given : nodes that are observed.

    Examples
    --------
    >>> confounded = Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)])  # 0 acts on 1 and 2, 1 on 2
    >>> is_adjustment_set(confounded, 1, 2, 0), is_adjustment_set(confounded, 1, 2, ())
    (True, False)
    """
    rest, never = _backdoor_graph(graph, x, y)
    chosen = as_nodes(given, graph.n)
    return not never.intersection(chosen) and d_separated(rest, x, y, chosen)


def adjustment_set(
    graph: Digraph, x: int, y: int, *, hidden: Nodes = (), observed: Nodes | None = None
) -> tuple[int, ...] | None:
    """A set as above of which no member can be left out, without the ``hidden`` nodes; None if there is none.

    Parameters
    ----------
    graph : the graph, on positions.
    x : position of the first node.
    y : position of the second node.
    hidden : nodes that cannot be measured.
    observed : nodes that can be measured.

    Examples
    --------
    >>> adjustment_set(Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)]), 1, 2)
    (0,)
    """
    rest, never = _backdoor_graph(graph, x, y)
    return minimal_d_separator(rest, x, y, allowed=[v for v in _usable(graph, hidden, observed) if v not in never])


def adjustment_sets(
    graph: Digraph, x: int, y: int, *, hidden: Nodes = (), limit: int = 1000
) -> tuple[tuple[int, ...], ...]:
    """All sets as above of which no member can be left out, without the ``hidden`` nodes; smaller ones first.

    Their number can grow exponentially with the graph: no more than ``limit`` are looked for, those near x first.

    Parameters
    ----------
    graph : the graph, on positions.
    x : position of the first node.
    y : position of the second node.
    hidden : nodes that cannot be measured.
    limit : the most that are listed.

    Examples
    --------
    >>> adjustment_sets(Digraph.from_edges(4, [(0, 1), (1, 2), (0, 3), (2, 3)]), 2, 3)  # 0 -> 1 -> 2 -> 3 <- 0
    ((0,), (1,))
    """
    rest, never = _backdoor_graph(graph, x, y)
    inside = ancestral_set(rest, (x, y))  # what blocks a trail lies above one of its ends, else it can be left out
    place = {v: i for i, v in enumerate(inside)}
    allowed = [place[v] for v in _usable(graph, hidden, None) if v in place and v not in never]
    found = minimal_separators(moralize(rest.subgraph(inside)), place[x], place[y], allowed)
    return tuple(sorted((tuple(inside[i] for i in row) for row in islice(found, limit)), key=lambda r: (len(r), r)))


def front_door_set(
    graph: Digraph, x: int, y: int, *, hidden: Nodes = (), most: int = 3, observed: Nodes | None = None
) -> tuple[int, ...] | None:
    """A smallest set of up to ``most`` observed nodes that carries the whole effect of x on y, free of confounding.

    It cuts all directed paths from x to y, x has no open back door to it, and x closes all back doors from it to y.

    Parameters
    ----------
    graph : the graph, on positions.
    x : position of the first node.
    y : position of the second node.
    hidden : nodes that cannot be measured.
    most : most nodes of the set.
    observed : nodes that can be measured.

    Examples
    --------
    >>> front_door_set(Digraph.from_edges(4, [(0, 1), (0, 3), (1, 2), (2, 3)]), 1, 3, hidden=0)
    (2,)
    """
    usable = _usable(graph, hidden, observed)
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
