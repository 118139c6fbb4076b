"""What the graph says about dependence: d-separation, active trails, separators, requisite nodes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gramgraph.exceptions import ModelError
from gramgraph.graphs._nodes import Nodes, as_nodes, flags, marked
from gramgraph.graphs.directed import Digraph, ancestral_set
from gramgraph.graphs.undirected import UndirectedGraph

# A ball is at a node and came either from a child (it travels up) or from a parent (it travels down).
_UP, _DOWN = 0, 1


def reachable(graph: Digraph, sources: Nodes, given: Nodes = ()) -> tuple[int, ...]:
    """All unobserved nodes that an active trail joins to a source when ``given`` is observed, ascending.

    A trail is active if each collider on it is in ``given`` or has a descendant there, and no other node of it is in
    ``given``.  Unobserved sources reach themselves; an observed source reaches nothing.  Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.
    sources : nodes where trails begin.
    given : nodes that are observed.

    Examples
    --------
    >>> from gramgraph.graphs import Digraph
    >>> alarm = Digraph.from_edges(3, [(0, 2), (1, 2)])
    >>> reachable(alarm, 0), reachable(alarm, 0, given=2)
    ((0, 2), (0, 1))
    """
    n = graph.n
    observed = flags(as_nodes(given, n), n)
    opened = flags(ancestral_set(graph, marked(observed)), n)
    seen = (bytearray(n), bytearray(n))
    stack = [(v, _UP) for v in as_nodes(sources, n) if not observed[v]]
    while stack:
        v, direction = stack.pop()
        if seen[direction][v]:
            continue
        seen[direction][v] = 1
        if not observed[v]:
            stack.extend((child, _DOWN) for child in graph.children[v])
        if (direction == _UP and not observed[v]) or (direction == _DOWN and opened[v]):
            stack.extend((parent, _UP) for parent in graph.parents[v])
    return tuple(v for v in range(n) if (seen[_UP][v] or seen[_DOWN][v]) and not observed[v])


def d_separated(graph: Digraph, xs: Nodes, ys: Nodes, given: Nodes = ()) -> bool:
    """Whether every trail between ``xs`` and ``ys`` is blocked by ``given``: then xs and ys are independent given it.

    Observed members of ``xs`` and ``ys`` count as constants; an unobserved node is never separated from itself.
    Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.
    xs : nodes on one side.
    ys : nodes on the other side.
    given : nodes that are observed.

    Examples
    --------
    >>> alarm = Digraph.from_edges(3, [(0, 2), (1, 2)])  # burglary -> alarm <- earthquake
    >>> d_separated(alarm, 0, 1), d_separated(alarm, 0, 1, given=2)
    (True, False)
    """
    reached = flags(reachable(graph, xs, given), graph.n)
    return not any(reached[y] for y in as_nodes(ys, graph.n))


def active_trail(graph: Digraph, sources: Nodes, targets: Nodes, given: Nodes = ()) -> tuple[int, ...] | None:
    """A shortest active trail from a source to a target as its node list, or None if they are d-separated.

    Breadth first over (node, direction).  A shortest such walk visits no node twice: a loop could be cut out, since
    a walk that goes down from v and comes back has a collider below v that is open, which opens v too.  Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.
    sources : nodes where trails begin.
    targets : nodes that are asked for.
    given : nodes that are observed.

    Examples
    --------
    >>> active_trail(Digraph.from_edges(4, [(0, 1), (2, 1), (1, 3)]), 0, 2, given=3)
    (0, 1, 2)
    """
    n = graph.n
    observed = flags(as_nodes(given, n), n)
    opened = flags(ancestral_set(graph, marked(observed)), n)
    wanted = flags(as_nodes(targets, n), n)
    came_from: dict[tuple[int, int], tuple[int, int] | None] = {}
    queue: deque[tuple[int, int]] = deque()
    for v in as_nodes(sources, n):
        if not observed[v]:
            came_from[v, _UP] = None
            queue.append((v, _UP))
    while queue:
        state = queue.popleft()
        v, direction = state
        if wanted[v] and not observed[v]:
            trail = []
            at: tuple[int, int] | None = state
            while at is not None:
                trail.append(at[0])
                at = came_from[at]
            return tuple(reversed(trail))
        following = []
        if (direction == _UP and not observed[v]) or (direction == _DOWN and opened[v]):
            following += [(parent, _UP) for parent in graph.parents[v]]
        if not observed[v]:
            following += [(child, _DOWN) for child in graph.children[v]]
        for after in following:
            if after not in came_from:
                came_from[after] = state
                queue.append(after)
    return None


def _moral_contact(graph: Digraph, sources: Nodes, walls: bytearray, inside: bytearray) -> bytearray:
    """Flags of the nodes that the sources touch in the moral graph of ``inside`` without passing through ``walls``.

    A wall that is touched is flagged too.  The marriage of co-parents is a step down to a common child and up again,
    so the moral graph, whose cliques can be large, is not built.
    """
    seen = (bytearray(graph.n), bytearray(graph.n))
    touched = bytearray(graph.n)
    stack = [(v, _UP) for v in as_nodes(sources, graph.n)]
    while stack:
        v, direction = stack.pop()
        if seen[direction][v] or not inside[v]:
            continue
        seen[direction][v] = 1
        touched[v] = 1
        if not walls[v]:
            stack.extend((child, _DOWN) for child in graph.children[v])
        if direction == _DOWN or not walls[v]:
            stack.extend((parent, _UP) for parent in graph.parents[v])
    return touched


def minimal_d_separator(
    graph: Digraph, xs: Nodes, ys: Nodes, *, required: Nodes = (), allowed: Nodes | None = None
) -> tuple[int, ...] | None:
    """A set that d-separates ``xs`` from ``ys`` and none of whose members can be left out; None if there is none.

    ``required`` nodes are always in it, other members come from ``allowed`` (default: all nodes but xs and ys).
    Whenever a separator exists within these bounds, the allowed ancestors of ``xs``, ``ys`` and ``required`` are one;
    of these only the nodes touched from one side, and of those only the nodes touched from the other, are kept.  The
    smaller of the separators near xs and near ys is returned (ties: near xs).  Cost O(n + m).

    Parameters
    ----------
    graph : the graph, on positions.
    xs : nodes on one side.
    ys : nodes on the other side.
    required : nodes that must stand in the set.
    allowed : nodes that may stand in the set.

    Examples
    --------
    >>> minimal_d_separator(Digraph.from_edges(5, [(0, 1), (1, 2), (0, 3), (3, 2), (2, 4)]), 0, 4)
    (2,)
    """
    n = graph.n
    xs, ys, required = as_nodes(xs, n), as_nodes(ys, n), as_nodes(required, n)
    ends = flags((*xs, *ys), n)
    if any(ends[v] for v in required):
        raise ModelError("A separator cannot contain the nodes it separates: `required` overlaps `xs` or `ys`.")
    inside = flags(ancestral_set(graph, (*xs, *ys, *required)), n)
    must = flags(required, n)
    may = flags(range(n) if allowed is None else as_nodes(allowed, n), n)
    walls = bytearray(n)
    for v in range(n):
        walls[v] = must[v] or (may[v] and inside[v] and not ends[v])
    from_xs = _moral_contact(graph, xs, walls, inside)
    if any(from_xs[y] for y in ys):
        return None

    def near(side: Nodes, other: Nodes) -> tuple[int, ...]:
        kept = walls
        for sources in (side, other):
            touched = _moral_contact(graph, sources, kept, inside)
            kept = bytearray(must[v] or (kept[v] and touched[v]) for v in range(n))
        return marked(kept)

    return min(near(xs, ys), near(ys, xs), key=len)


def open_path(graph: UndirectedGraph, sources: Nodes, targets: Nodes, given: Nodes = ()) -> tuple[int, ...] | None:
    """A shortest path from a source to a target around ``given`` as its node list, or None if they are separated.

    Parameters
    ----------
    graph : the graph, on positions.
    sources : nodes where trails begin.
    targets : nodes that are asked for.
    given : nodes that are observed.

    Examples
    --------
    >>> square = UndirectedGraph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> open_path(square, 0, 2, given=1), open_path(square, 0, 2, given=[1, 3])
    ((0, 3, 2), None)
    """
    closed = flags(as_nodes(given, graph.n), graph.n)
    wanted = flags(as_nodes(targets, graph.n), graph.n)
    came_from: dict[int, int] = {v: v for v in as_nodes(sources, graph.n) if not closed[v]}
    queue = deque(came_from)
    while queue:
        v = queue.popleft()
        if wanted[v]:
            path = [v]
            while came_from[path[-1]] != path[-1]:
                path.append(came_from[path[-1]])
            return tuple(reversed(path))
        for u in graph.neighbors[v]:
            if not closed[u] and u not in came_from:
                came_from[u] = v
                queue.append(u)
    return None


def separated(graph: UndirectedGraph, xs: Nodes, ys: Nodes, given: Nodes = ()) -> bool:
    """Whether every path between ``xs`` and ``ys`` passes through ``given``.  Cost O(n + m).

    Observed members of ``xs`` and ``ys`` count as constants; an unobserved node is never separated from itself.

    Parameters
    ----------
    graph : the graph, on positions.
    xs : nodes on one side.
    ys : nodes on the other side.
    given : nodes that are observed.

    Examples
    --------
    >>> separated(UndirectedGraph.from_edges(3, [(0, 1), (1, 2)]), 0, 2, given=1)
    True
    """
    closed = flags(as_nodes(given, graph.n), graph.n)
    stack = [v for v in as_nodes(xs, graph.n) if not closed[v]]
    wanted = flags((v for v in as_nodes(ys, graph.n) if not closed[v]), graph.n)
    for v in stack:
        closed[v] = 1
    while stack:
        v = stack.pop()
        if wanted[v]:
            return False
        for u in graph.neighbors[v]:
            if not closed[u]:
                closed[u] = 1
                stack.append(u)
    return True


@dataclass(frozen=True, slots=True)
class Requisite:
    """What a question p(targets | evidence) can depend on: see `requisite`.

    Parameters
    ----------
    tables : nodes whose conditional tables matter.
    evidence : observations that matter.
    irrelevant : nodes that are independent of the targets given the evidence, or known by it.

    Examples
    --------
    >>> from gramgraph.graphs import Digraph
    >>> found = requisite(Digraph.from_edges(3, [(0, 1), (1, 2)]), 0, 1)
    >>> found.tables, found.evidence, found.irrelevant
    ((0, 1), (1,), (1, 2))
    """

    tables: tuple[int, ...]  # nodes whose conditional tables matter
    evidence: tuple[int, ...]  # observations that matter
    irrelevant: tuple[int, ...]  # nodes that are independent of the targets given the evidence, or known by it


def requisite(graph: Digraph, targets: Nodes, evidence: Nodes = (), *, deterministic: Nodes = ()) -> Requisite:
    """The nodes whose tables, and the observations whose values, p(targets | evidence) can depend on.

    Bayes ball: balls start upward at the targets.  An unobserved node sends a ball from a child on to its parents and
    its children, and one from a parent on to its children; an observed node stops balls from children and returns
    those from parents to all its parents.  A node that has sent balls up needs its table; an observed node that was
    hit needs its value.  ``deterministic`` nodes (functions of their parents) do not reflect balls from children.
    Observed targets are left out.  Cost O(n + m).  Source: R. Shachter, Bayes-Ball, UAI 1998.

    Parameters
    ----------
    graph : the graph, on positions.
    targets : nodes that are asked for.
    evidence : nodes that are observed.
    deterministic : nodes that are functions of their parents.

    Examples
    --------
    >>> chain = Digraph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    >>> requisite(chain, 2, evidence=1)
    Requisite(tables=(2,), evidence=(1,), irrelevant=(0, 1))
    """
    n = graph.n
    observed = flags(as_nodes(evidence, n), n)
    functional = flags(as_nodes(deterministic, n), n)
    hit, top, bottom = bytearray(n), bytearray(n), bytearray(n)
    stack = [(v, _UP) for v in as_nodes(targets, n) if not observed[v]]
    while stack:
        v, direction = stack.pop()
        hit[v] = 1
        goes_up = direction == (_DOWN if observed[v] else _UP)
        goes_down = not observed[v] and (direction == _DOWN or not functional[v])
        if goes_up and not top[v]:
            top[v] = 1
            stack.extend((parent, _UP) for parent in graph.parents[v])
        if goes_down and not bottom[v]:
            bottom[v] = 1
            stack.extend((child, _DOWN) for child in graph.children[v])
    return Requisite(
        tables=marked(top),
        evidence=tuple(v for v in range(n) if observed[v] and hit[v]),
        irrelevant=tuple(v for v in range(n) if not bottom[v]),
    )


def barren(graph: Digraph, targets: Nodes, evidence: Nodes = ()) -> tuple[int, ...]:
    """Nodes that sum to one in p(targets, evidence): neither asked, nor observed, nor ancestor of such a node.

    Parameters
    ----------
    graph : the graph, on positions.
    targets : nodes that are asked for.
    evidence : nodes that are observed.

    Examples
    --------
    >>> from gramgraph.graphs import Digraph
    >>> barren(Digraph.from_edges(3, [(0, 1), (1, 2)]), 0, 1)
    (2,)
    """
    n = graph.n
    needed = flags(ancestral_set(graph, (*as_nodes(targets, n), *as_nodes(evidence, n))), n)
    return tuple(v for v in range(n) if not needed[v])
