"""Questions about a network's graph, by name: they need no numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gramgraph import graphs
from gramgraph.models.named import NamedGraph, NamedJunctionTree, name_tree
from gramgraph.models.notation import CONFOUNDER
from gramgraph.models.statements import GraphStatements

if TYPE_CHECKING:
    from gramgraph.answers import Answer
    from gramgraph.models.identification import Identification


class DirectedModel(GraphStatements):
    """A model whose variables form a directed acyclic graph; results follow the order of `variables`."""

    parent_positions: tuple[tuple[int, ...], ...]

    @cached_property
    def graph(self) -> graphs.Digraph:
        """The graph on positions in `variables`, for the functions of `gramgraph.graphs`."""
        return graphs.Digraph(self.parent_positions)

    def parents(self, name: str) -> tuple[str, ...]:
        """Names of the parents, in the order of the table's axes."""
        return tuple(self.vars[p].name for p in self.parent_positions[self.index(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """Names of the children."""
        return self.names_of(self.graph.children[self.index(name)])

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs (parent, child), child by child."""
        names = self.variables
        return tuple((names[p], names[v]) for v, row in enumerate(self.parent_positions) for p in row)

    @property
    def roots(self) -> tuple[str, ...]:
        """Variables without parents."""
        return self.names_of(v for v, row in enumerate(self.parent_positions) if not row)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Variables without children."""
        return self.names_of(v for v, row in enumerate(self.graph.children) if not row)

    def ancestors(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """All variables from which a directed path leads into `names`."""
        return self.names_of(graphs.ancestors(self.graph, self.positions_of(names)))

    def descendants(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """All variables to which a directed path leads from `names`."""
        return self.names_of(graphs.descendants(self.graph, self.positions_of(names)))

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Parents, children and the children's other parents: given these, all others say nothing about `name`."""
        return self.names_of(graphs.markov_blanket(self.graph, self.index(name)))

    def topological_order(self) -> tuple[str, ...]:
        """All variables, parents before children: the order of ancestral sampling."""
        return self.names_of(graphs.topological_order(self.graph))

    def is_dseparated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether observing `given` blocks every trail between the variables `a` and `b`. O(n + edges)."""
        return graphs.d_separated(self.graph, self.positions_of(a), self.positions_of(b), self.positions_of(given))

    def is_dconnected(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether some trail between `a` and `b` stays active when `given` is observed.

        >>> import gramgraph as gg
        >>> net = gg.datasets.asia()
        >>> net.is_dconnected("asia", "smoke"), net.is_dconnected("asia", "smoke", given=["dysp"])
        (False, True)
        """
        return not self.is_dseparated(a, b, given)

    def active_trail(
        self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> tuple[str, ...] | None:
        """A shortest active trail from `a` to `b`, or None if they are d-separated."""
        found = graphs.active_trail(self.graph, self.positions_of(a), self.positions_of(b), self.positions_of(given))
        return None if found is None else self.names_of(found)

    def minimal_dseparator(
        self,
        a: str | Iterable[str],
        b: str | Iterable[str],
        *,
        required: str | Iterable[str] = (),
        allowed: str | Iterable[str] | None = None,
    ) -> tuple[str, ...] | None:
        """A set whose observation d-separates `a` and `b`, none of which can be left out; None if there is none."""
        found = graphs.minimal_d_separator(
            self.graph,
            self.positions_of(a),
            self.positions_of(b),
            required=self.positions_of(required),
            allowed=None if allowed is None else self.positions_of(allowed),
        )
        return None if found is None else self.names_of(found)

    @property
    def hidden_causes(self) -> tuple[str, ...]:
        """Names of the unobserved common causes that `a <-> b` wrote."""
        return tuple(name for name in self.variables if CONFOUNDER in name)

    def adjustment_sets(
        self, x: str, y: str, *, hidden: str | Iterable[str] = (), confounded: Iterable[tuple[str, str]] = ()
    ) -> tuple[tuple[str, ...], ...]:
        """All sets Z with p(y | do(x)) = Σ_z p(y | x, z) p(z) of which no member can be left out, smaller ones first.

        `hidden` variables are not observed; `confounded` are pairs with an unobserved common cause, which can also be
        written `a <-> b`. An empty result says that no adjustment works; `identify` knows one more way. At most 1,000
        sets are looked for.

        >>> import gramgraph as gg
        >>> net = gg.BayesianNetwork("age -> diet -> weight; age -> sport -> weight; diet -> sport")
        >>> net.adjustment_sets("diet", "weight"), net.adjustment_sets("diet", "weight", hidden="age")
        ((('age',),), ())
        """
        from gramgraph.models.identification import causal_question

        asked = causal_question(self, x, y, hidden, confounded)
        found = graphs.adjustment_sets(asked.graph, asked.x, asked.y, hidden=asked.unseen)
        return tuple(map(self.names_of, found))

    def identify(
        self, outcome: str, *, do: str, hidden: str | Iterable[str] = (), confounded: Iterable[tuple[str, str]] = ()
    ) -> Identification:
        """Whether and how p(outcome | do(…)) follows from what is observed; words as in `adjustment_sets`.

        >>> import gramgraph as gg
        >>> gg.BayesianNetwork("smoking -> tar -> cancer; smoking <-> cancer").identify("cancer", do="smoking").kind
        'front door'
        """
        from gramgraph.models.identification import identify

        return identify(self, do, outcome, hidden=hidden, confounded=confounded)

    def counterfactual(self, observed: Any, do: Any, targets: Any = None, **options: Any) -> Answer:
        """What would have been, had `do` been done: beliefs given what was observed without it.

        Each variable below the action is taken as a function of its parents and of a chance of its own that both
        worlds share: a number is its mean plus its noise, a state the inverse of the distribution function at that
        chance, with states in their order. For numbers this is what a linear model means; for states it is an
        assumption that tables alone do not settle.

        Parameters
        ----------
        observed : what was observed, {name: value}.
        do : what would have been done instead, {name: value}.
        targets : names, as in `query`; None for every variable that could differ or was not observed.
        options : of `query`.

        Examples
        --------
        >>> import gramgraph as gg
        >>> net = gg.BayesianNetwork("dose -> cure", cpds={"dose": 0.5, "cure": {"no": 0.2, "yes": 0.6}})
        >>> answer = net.counterfactual({"dose": "no", "cure": "no"}, do={"dose": "yes"})
        >>> round(answer["cure"].prob("yes"), 3)  # 0.4 of the 0.8 that were not cured
        0.5
        """
        from gramgraph.models.counterfactual import counterfactual

        return counterfactual(self, observed, do, targets, **options)

    def v_structures(self) -> tuple[tuple[str, str, str], ...]:
        """All (a, c, b) with a -> c <- b and no edge between a and b.

        >>> import gramgraph as gg
        >>> gg.datasets.asia().v_structures()
        (('tub', 'either', 'lung'), ('either', 'dysp', 'bronc'))
        """
        return tuple(map(self.names_of, graphs.v_structures(self.graph)))  # type: ignore[arg-type]

    def is_polytree(self) -> bool:
        """Whether at most one undirected path joins any two variables."""
        return graphs.is_polytree(self.graph)

    def moralize(self) -> NamedGraph:
        """The undirected graph in which every family is a clique."""
        links = graphs.moralize(self.graph).edges()
        return NamedGraph(self.variables, links=tuple(self._pair(edge) for edge in links))

    def cpdag(self) -> NamedGraph:
        """The edges whose direction all Markov-equivalent graphs share as arrows, the others as links."""
        found = graphs.cpdag(self.graph)
        return NamedGraph(
            self.variables, tuple(map(self._pair, found.directed)), tuple(map(self._pair, found.undirected))
        )

    def is_equivalent(self, other: DirectedModel) -> bool:
        """Whether both graphs state the same independencies (same variables, skeleton and v-structures)."""
        if sorted(self.variables) != sorted(other.variables):
            return False
        rows = [[self.index(p) for p in other.parents(name)] for name in self.variables]
        return graphs.markov_equivalent(self.graph, graphs.Digraph(tuple(map(tuple, rows))))

    def to_junction_tree(self, *, heuristic: Any = "min_fill", tries: int = 1) -> NamedJunctionTree:
        """Moralize, triangulate, and join the cliques as a tree.

        >>> import gramgraph as gg
        >>> gg.BayesianNetwork("A -> B -> D; A -> C -> D").to_junction_tree().cliques
        (('A', 'B', 'C'), ('B', 'D', 'C'))
        """
        tree = graphs.junction_tree(graphs.moralize(self.graph), self._sizes(), heuristic=heuristic, tries=tries)
        return name_tree(tree, self.variables)

    def to_networkx(self) -> Any:
        """A networkx DiGraph; nodes carry the attribute `states`."""
        import networkx as nx

        out = nx.DiGraph(name=self.name)
        out.add_nodes_from(
            (var.name, {"states": var.states} if var.is_discrete else {"real": var.dimension}) for var in self.vars
        )
        out.add_edges_from(self.edges)
        return out

    def _pair(self, edge: tuple[int, int]) -> tuple[str, str]:
        return self.vars[edge[0]].name, self.vars[edge[1]].name
