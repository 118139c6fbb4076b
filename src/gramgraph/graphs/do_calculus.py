"""Whether p(y | do(x)) follows from what is observed when some causes are not: the complete algorithm, and its formula.

Source: I. Shpitser and J. Pearl, Identification of joint interventional distributions, AAAI 2006.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gramgraph.graphs.directed import Digraph, topological_order


@dataclass(frozen=True)
class Probability:
    """p(what | given), of observed variables by position."""

    what: tuple[int, ...]
    given: tuple[int, ...] = ()


@dataclass(frozen=True)
class Product:
    """The product of formulas."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Sum:
    """The sum of a formula over all values of some variables."""

    over: tuple[int, ...]
    inner: Formula


@dataclass(frozen=True)
class Quotient:
    """A formula divided by another."""

    above: Formula
    below: Formula


Formula: TypeAlias = Probability | Product | Sum | Quotient


@dataclass(frozen=True)
class Hedge:
    """Why an effect does not follow: two sets of variables, one inside the other, tied by unobserved causes.

    Two models can agree on everything observed among `whole` and yet differ in what an action does to `part`.
    """

    whole: tuple[int, ...]
    part: tuple[int, ...]


@dataclass(frozen=True)
class Mixed:
    """A graph of observed nodes: the `parents` of each, and `tied`, those that share an unobserved cause with it."""

    nodes: tuple[int, ...]  # in topological order
    parents: dict[int, frozenset[int]]
    tied: dict[int, frozenset[int]]

    def keep(self, nodes: Iterable[int]) -> Mixed:
        """The graph of some nodes and the edges between them."""
        kept = frozenset(nodes)
        return Mixed(
            tuple(v for v in self.nodes if v in kept),
            {v: self.parents[v] & kept for v in self.nodes if v in kept},
            {v: self.tied[v] & kept for v in self.nodes if v in kept},
        )

    def above(self, nodes: Iterable[int], without_into: frozenset[int] = frozenset()) -> frozenset[int]:
        """The nodes and all their ancestors; edges into `without_into` do not count."""
        found, rest = set(nodes), list(nodes)
        while rest:
            v = rest.pop()
            new = set() if v in without_into else self.parents[v] - found
            found |= new
            rest += new
        return frozenset(found)

    def districts(self) -> list[frozenset[int]]:
        """The sets of nodes that chains of unobserved causes hold together, in the order of their first nodes."""
        out: list[frozenset[int]] = []
        for v in self.nodes:
            if not any(v in found for found in out):
                found, rest = {v}, [v]
                while rest:
                    new = self.tied[rest.pop()] - found
                    found |= new
                    rest += new
                out.append(frozenset(found))
        return out


def project(graph: Digraph, unseen: Iterable[int]) -> Mixed:
    """The graph of what is observed: edges through unobserved nodes become direct, common unobserved causes ties.

    Examples
    --------
    >>> found = project(Digraph.from_edges(3, [(0, 1), (0, 2), (1, 2)]), [0])
    >>> found.nodes, sorted(found.parents[2]), sorted(found.tied[1])
    ((1, 2), [1], [2])
    """
    hidden = frozenset(unseen)
    seen = [v for v in topological_order(graph) if v not in hidden]
    reach = {u: _first_seen(graph, u, hidden) for u in (*seen, *hidden)}
    parents: dict[int, set[int]] = {v: set() for v in seen}
    tied: dict[int, set[int]] = {v: set() for v in seen}
    for v in seen:
        for child in reach[v]:
            parents[child].add(v)
    for u in hidden:
        for v in reach[u]:
            tied[v] |= reach[u] - {v}
    return Mixed(
        tuple(seen), {v: frozenset(row) for v, row in parents.items()}, {v: frozenset(row) for v, row in tied.items()}
    )


def _first_seen(graph: Digraph, start: int, hidden: frozenset[int]) -> frozenset[int]:
    """Observed nodes to which a path leads from `start` through unobserved nodes alone."""
    found: set[int] = set()
    rest, done = [start], {start}
    while rest:
        for child in graph.children[rest.pop()]:
            if child not in hidden:
                found.add(child)
            elif child not in done:
                done.add(child)
                rest.append(child)
    return frozenset(found)


def identify_effect(graph: Digraph, x: int, y: int, *, hidden: Iterable[int] = ()) -> Formula | Hedge:
    """A formula for p(y | do(x)) in what is observed, or the hedge that shows that there is none.

    Parameters
    ----------
    graph : the graph, on positions; unobserved common causes are nodes of it.
    x : position of what is set.
    y : position of what is asked about.
    hidden : nodes that are not observed.

    Examples
    --------
    >>> identify_effect(Digraph.from_edges(2, [(0, 1)]), 0, 1)
    Probability(what=(1,), given=(0,))
    >>> identify_effect(Digraph.from_edges(3, [(0, 1), (2, 0), (2, 1)]), 0, 1, hidden=[2])
    Hedge(whole=(0, 1), part=(1,))
    """
    mixed = project(graph, hidden)
    return _identify(frozenset([y]), frozenset([x]), None, mixed)


def _identify(y: frozenset[int], x: frozenset[int], p: Formula | None, graph: Mixed) -> Formula | Hedge:
    """One step; `p` is the distribution of the graph's nodes, None where it is the observed one itself."""
    nodes = frozenset(graph.nodes)
    if not x:
        return _margin(p, graph, y)
    above = graph.above(y)
    if above != nodes:  # what y does not depend on is summed out
        inner = None if p is None else _summed(p, graph.nodes, nodes - above)
        return _identify(y, x & above, inner, graph.keep(above))
    idle = (nodes - x) - graph.above(y, without_into=x)
    if idle:  # setting these as well changes nothing
        return _identify(y, x | idle, p, graph)
    districts = graph.keep(nodes - x).districts()
    if len(districts) > 1:
        parts: list[Formula] = []
        for district in districts:
            found = _identify(district, nodes - district, p, graph)
            if isinstance(found, Hedge):
                return found
            parts.append(found)
        return _summed(_product(parts), graph.nodes, nodes - (y | x))
    (district,) = districts
    whole = graph.districts()
    if len(whole) == 1:
        return Hedge(graph.nodes, tuple(v for v in graph.nodes if v in district))
    (around,) = (found for found in whole if district <= found)
    chain = _product([_given_before(v, p, graph) for v in graph.nodes if v in around])
    if around == district:
        return _summed(chain, graph.nodes, district - y)
    return _identify(y, x & around, chain, graph.keep(around))


def _given_before(v: int, p: Formula | None, graph: Mixed) -> Formula:
    """p(v | the nodes before it), of those only what matters where the distribution is the observed one."""
    at = graph.nodes.index(v)
    before, after = graph.nodes[:at], graph.nodes[at + 1 :]
    if p is None:
        first = graph.keep((*before, v))
        (district,) = (found for found in first.districts() if v in found)
        near = frozenset().union(district, *(graph.parents[w] for w in district))
        return Probability((v,), tuple(w for w in before if w in near))
    above = _summed(p, graph.nodes, after)
    return Quotient(above, _summed(above, graph.nodes, [v])) if before else above


def _margin(p: Formula | None, graph: Mixed, y: frozenset[int]) -> Formula:
    if p is None:
        return Probability(tuple(v for v in graph.nodes if v in y))
    return _summed(p, graph.nodes, frozenset(graph.nodes) - y)


def _product(parts: Sequence[Formula]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        flat += part.parts if isinstance(part, Product) else (part,)
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def _summed(inner: Formula, order: Sequence[int], over: Iterable[int]) -> Formula:
    """The sum over some nodes; factors that only say how one of them is distributed sum to one and are left out."""
    left = set(over)
    parts = list(inner.parts) if isinstance(inner, Product) else [inner]
    again = True
    while again:
        again = False
        for part in parts:
            if isinstance(part, Probability) and set(part.what) <= left:
                others = [other for other in parts if other is not part]
                if not any(set(part.what) & free_variables(other) for other in others):
                    parts, again = others, True
                    left -= set(part.what)
                    break
    if not parts:
        return Product(())
    rest = tuple(v for v in order if v in left)
    body = _product(parts)
    if not rest:
        return body
    if isinstance(body, Probability) and not set(rest) & set(body.given):
        return Probability(tuple(v for v in body.what if v not in rest), body.given)
    return Sum((*rest, *body.over), body.inner) if isinstance(body, Sum) else Sum(rest, body)


def free_variables(formula: Formula) -> frozenset[int]:
    """The variables that a formula is a function of."""
    if isinstance(formula, Probability):
        return frozenset((*formula.what, *formula.given))
    if isinstance(formula, Sum):
        return free_variables(formula.inner) - frozenset(formula.over)
    parts = formula.parts if isinstance(formula, Product) else (formula.above, formula.below)
    return frozenset().union(*map(free_variables, parts))


def all_variables(formula: Formula) -> frozenset[int]:
    """All variables that stand in a formula, those summed over as well."""
    if isinstance(formula, Probability):
        return frozenset((*formula.what, *formula.given))
    if isinstance(formula, Sum):
        return all_variables(formula.inner) | frozenset(formula.over)
    parts = formula.parts if isinstance(formula, Product) else (formula.above, formula.below)
    return frozenset().union(*map(all_variables, parts))
