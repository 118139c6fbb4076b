"""Graphs and trees with names, as models hand them out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gramgraph._show import Listing, Shown
from gramgraph.exceptions import VariableError, listing

if TYPE_CHECKING:
    from gramgraph.graphs import JunctionTree


@dataclass(frozen=True)
class NamedGraph(Shown):
    """A graph on names: `arrows` (a, b) with direction, `links` (a, b) without.

    Parameters
    ----------
    nodes : the names.
    arrows : pairs (a, b), a -> b.
    links : pairs without direction.

    Examples
    --------
    >>> g = NamedGraph(("a", "b", "c"), links=(("a", "b"), ("b", "c")))
    >>> g.neighbors("b"), g
    (('a', 'c'), NamedGraph('a - b; b - c'))
    """

    nodes: tuple[str, ...]
    arrows: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All edges, those with direction first."""
        return self.arrows + self.links

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Nodes that an edge of either kind joins to `name`, in the order of `nodes`."""
        if name not in self.nodes:
            raise VariableError.unknown(name, self.nodes)
        near = {b if a == name else a for a, b in self.edges if name in (a, b)}
        return tuple(node for node in self.nodes if node in near)

    def has_edge(self, a: str, b: str) -> bool:
        """Whether a -> b, or a - b in either order, is an edge."""
        return (a, b) in self.arrows or (a, b) in self.links or (b, a) in self.links

    def to_networkx(self) -> Any:
        """A networkx Graph, or a DiGraph (links in both directions) when there are arrows."""
        import networkx as nx

        out = nx.DiGraph() if self.arrows else nx.Graph()
        out.add_nodes_from(self.nodes)
        out.add_edges_from(self.arrows)
        out.add_edges_from(self.links)
        if self.arrows:
            out.add_edges_from((b, a) for a, b in self.links)
        return out

    def __repr__(self) -> str:
        touched = {name for edge in self.edges for name in edge}
        pieces = [f"{a} -> {b}" for a, b in self.arrows] + [f"{a} - {b}" for a, b in self.links]
        pieces += [name for name in self.nodes if name not in touched]
        shown = "; ".join(pieces[:12]) + ("; …" if len(pieces) > 12 else "")
        return f"NamedGraph({shown!r})"

    def _shown(self) -> Listing:
        rows = [(a, "->", b) for a, b in self.arrows] + [(a, "-", b) for a, b in self.links]
        title = f"{len(self.nodes)} variables, {len(self.arrows)} arrows, {len(self.links)} links without direction"
        return Listing(title, ("from", "", "to"), rows[:200], max(len(rows) - 200, 0))


@dataclass(frozen=True)
class NamedJunctionTree(Shown):
    """Cliques of variables joined as a tree (a forest, if the model falls apart) with running intersection.

    `edges` are pairs of positions in `cliques`; `separators[i]` is what the two cliques of `edges[i]` share.

    Parameters
    ----------
    cliques : names of each clique.
    edges : pairs of positions in `cliques`.
    separators : what the two cliques of each edge share.

    Examples
    --------
    >>> import gramgraph as gg
    >>> tree = gg.datasets.sprinkler().to_junction_tree()
    >>> len(tree.cliques), len(tree.separators)
    (2, 1)
    """

    cliques: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int], ...]
    separators: tuple[tuple[str, ...], ...]

    @property
    def width(self) -> int:
        """Size of the largest clique less one."""
        return max(map(len, self.cliques), default=0) - 1

    @property
    def largest_clique(self) -> tuple[str, ...]:
        """The clique with most variables, the first of equals."""
        return max(self.cliques, key=len, default=())

    def clique_with(self, names: Iterable[str]) -> tuple[str, ...]:
        """The smallest clique that holds all these variables; `VariableError` when no clique does."""
        wanted = [names] if isinstance(names, str) else list(names)
        holders = [clique for clique in self.cliques if all(name in clique for name in wanted)]
        if not holders:
            raise VariableError(f"no clique holds {listing(wanted)} together")
        return min(holders, key=len)

    def to_networkx(self) -> Any:
        """A networkx Graph on the cliques; edges carry the attribute `separator`."""
        import networkx as nx

        out = nx.Graph()
        out.add_nodes_from(self.cliques)
        for (a, b), separator in zip(self.edges, self.separators, strict=True):
            out.add_edge(self.cliques[a], self.cliques[b], separator=separator)
        return out

    def __str__(self) -> str:
        lines = [f"{i}: {', '.join(clique)}" for i, clique in enumerate(self.cliques)]
        joins = zip(self.edges, self.separators, strict=True)
        return "\n".join(lines + [f"{a} - {b}: {', '.join(shared) or '(nothing)'}" for (a, b), shared in joins])

    def __repr__(self) -> str:
        return f"NamedJunctionTree({len(self.cliques)} cliques, width {self.width})"

    def _shown(self) -> Listing:
        rows = [(i, ", ".join(clique)) for i, clique in enumerate(self.cliques[:200])]
        return Listing(repr(self), ("", "clique"), rows, max(len(self.cliques) - 200, 0))


def name_tree(tree: JunctionTree, names: tuple[str, ...]) -> NamedJunctionTree:
    """A tree on integers with the names put in."""

    def named(nodes: Iterable[int]) -> tuple[str, ...]:
        return tuple(names[v] for v in nodes)

    below = [child for _, child in tree.edges()]
    return NamedJunctionTree(
        tuple(map(named, tree.cliques)), tree.edges(), tuple(named(tree.separators[child]) for child in below)
    )
