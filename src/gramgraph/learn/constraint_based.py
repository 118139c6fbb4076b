"""The PC algorithm in its order-independent form: edges by independence tests, arrows by colliders and Meek's rules."""

from __future__ import annotations

from itertools import combinations

from gramgraph.graphs.equivalence import PartialDigraph, consistent_extension, meek_closure
from gramgraph.learn.independence import IndependenceTester
from gramgraph.learn.search import Constraints

Separators = dict[tuple[int, int], tuple[int, ...]]


def skeleton_of(
    tester: IndependenceTester, constraints: Constraints, *, alpha: float, max_given: int
) -> tuple[list[set[int]], Separators]:
    """Neighbors of every node, and what separates the pairs that are none.

    Level by level, pairs are tested given ever more neighbors; the neighbors are those of the start of the level, so
    that the order of the columns does not matter.
    """
    n = len(constraints.required)
    never = constraints.forbidden & constraints.forbidden.T
    near = [{b for b in range(n) if b != a and not never[a, b]} for a in range(n)]
    separators: Separators = {}
    size = 0
    while size <= max_given and any(len(found) > size for found in near):
        before = [sorted(found) for found in near]
        for a in range(n):
            for b in before[a]:
                if b not in near[a] or constraints.required[a, b] or constraints.required[b, a]:
                    continue
                for given in combinations([v for v in before[a] if v != b], size):
                    if tester(a, b, given).separates(alpha, given):
                        near[a].discard(b)
                        near[b].discard(a)
                        separators[min(a, b), max(a, b)] = given
                        break
        size += 1
    return near, separators


def pc_stable(
    tester: IndependenceTester, constraints: Constraints, *, alpha: float = 0.05, max_given: int = 3
) -> tuple[PartialDigraph, list[tuple[int, ...]]]:
    """The partially directed graph that the tests support, and the parents in one graph of its class."""
    n = len(constraints.required)
    near, separators = skeleton_of(tester, constraints, alpha=alpha, max_given=max_given)
    arrows: dict[tuple[int, int], None] = {}
    for a in range(n):  # what the user knows comes first
        for b in sorted(near[a]):
            if constraints.required[a, b] or (constraints.forbidden[b, a] and not constraints.forbidden[a, b]):
                arrows[a, b] = None
    for c in range(n):
        for a, b in combinations(sorted(near[c]), 2):
            if b in near[a] or c in separators.get((a, b), (c,)):
                continue
            for x in (a, b):
                if (c, x) not in arrows and not constraints.forbidden[x, c]:
                    arrows[x, c] = None
    directed = [(a, b) for a, b in arrows if (b, a) not in arrows]
    fixed = {frozenset(edge) for edge in directed}
    links = [(a, b) for a in range(n) for b in sorted(near[a]) if a < b and frozenset((a, b)) not in fixed]
    graph = meek_closure(PartialDigraph.from_edges(n, directed=directed, undirected=links))
    found = consistent_extension(graph)
    if found is not None and _allowed(list(found.parents), constraints):
        return graph, list(found.parents)
    return graph, _ordered(graph, n, constraints)


def _allowed(parents: list[tuple[int, ...]], constraints: Constraints) -> bool:
    """Whether all required edges are there and no forbidden one."""
    edges = {(p, v) for v, found in enumerate(parents) for p in found}
    required = set(zip(*(at.tolist() for at in constraints.required.nonzero()), strict=True))
    return required <= edges and not any(constraints.forbidden[a, b] for a, b in edges)


def _ordered(graph: PartialDigraph, n: int, constraints: Constraints) -> list[tuple[int, ...]]:
    """Contradictory tests may leave no consistent graph: then required arrows come first, and the others one by one,
    turned around where they would close a cycle or are forbidden, left out where that does not help either."""
    parents: list[list[int]] = [[] for _ in range(n)]

    def reaches(a: int, b: int) -> bool:
        stack, seen = [b], {b}
        while stack:
            v = stack.pop()
            if v == a:
                return True
            for p in parents[v]:
                if p not in seen:
                    seen.add(p)
                    stack.append(p)
        return False

    must, never = constraints.required, constraints.forbidden
    for a, b in zip(*(at.tolist() for at in must.nonzero()), strict=True):
        parents[b].append(a)
    for a, b in [*graph.directed, *graph.undirected]:
        if must[a, b] or must[b, a]:
            continue
        for one, other in ((a, b), (b, a)):
            if not never[one, other] and not reaches(other, one):
                parents[other].append(one)
                break
    return [tuple(found) for found in parents]
