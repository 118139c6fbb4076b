"""Pure graph algorithms on nodes 0..n-1: separation, moral graphs, triangulation, junction trees, equivalence, maps.

Graphs are frozen values; results are tuples in a fixed order, so that nothing depends on hashing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name

if TYPE_CHECKING:
    from gramgraph.graphs.causal import adjustment_set, adjustment_sets, front_door_set, is_adjustment_set
    from gramgraph.graphs.convert import digraph_from_networkx, to_networkx, undirected_from_networkx
    from gramgraph.graphs.directed import (
        Digraph,
        ancestors,
        ancestral_graph,
        ancestral_set,
        descendants,
        find_cycle,
        is_acyclic,
        is_polytree,
        markov_blanket,
        topological_order,
    )
    from gramgraph.graphs.equivalence import (
        PartialDigraph,
        consistent_extension,
        cpdag,
        markov_equivalent,
        meek_closure,
        skeleton,
        v_structures,
    )
    from gramgraph.graphs.junction import (
        JunctionTree,
        Triangulation,
        induced_width,
        junction_tree,
        search_order,
        triangulate,
    )
    from gramgraph.graphs.maps import (
        Independence,
        dependence,
        independencies,
        is_d_map,
        is_i_map,
        is_independent,
        is_perfect_map,
        joint_independencies,
    )
    from gramgraph.graphs.separation import (
        Requisite,
        active_trail,
        barren,
        d_separated,
        minimal_d_separator,
        open_path,
        reachable,
        requisite,
        separated,
    )
    from gramgraph.graphs.separators import minimal_separators
    from gramgraph.graphs.trails import Openness, active_trails, openness
    from gramgraph.graphs.undirected import (
        UndirectedGraph,
        connected_components,
        is_chordal,
        maximal_cliques,
        moralize,
        perfect_elimination_order,
    )

__all__ = [
    "Digraph",
    "Independence",
    "JunctionTree",
    "Openness",
    "PartialDigraph",
    "Requisite",
    "Triangulation",
    "UndirectedGraph",
    "active_trail",
    "active_trails",
    "adjustment_set",
    "adjustment_sets",
    "ancestors",
    "ancestral_graph",
    "ancestral_set",
    "barren",
    "connected_components",
    "consistent_extension",
    "cpdag",
    "d_separated",
    "dependence",
    "descendants",
    "digraph_from_networkx",
    "find_cycle",
    "front_door_set",
    "independencies",
    "induced_width",
    "is_acyclic",
    "is_adjustment_set",
    "is_chordal",
    "is_d_map",
    "is_i_map",
    "is_independent",
    "is_perfect_map",
    "is_polytree",
    "joint_independencies",
    "junction_tree",
    "markov_blanket",
    "markov_equivalent",
    "maximal_cliques",
    "meek_closure",
    "minimal_d_separator",
    "minimal_separators",
    "moralize",
    "open_path",
    "openness",
    "perfect_elimination_order",
    "reachable",
    "requisite",
    "search_order",
    "separated",
    "skeleton",
    "to_networkx",
    "topological_order",
    "triangulate",
    "undirected_from_networkx",
    "v_structures",
]

#: Public name → module that defines it; loaded on first use.
_HOMES: dict[str, str] = {
    "adjustment_set": "causal",
    "adjustment_sets": "causal",
    "front_door_set": "causal",
    "is_adjustment_set": "causal",
    "digraph_from_networkx": "convert",
    "to_networkx": "convert",
    "undirected_from_networkx": "convert",
    "Digraph": "directed",
    "ancestors": "directed",
    "ancestral_graph": "directed",
    "ancestral_set": "directed",
    "descendants": "directed",
    "find_cycle": "directed",
    "is_acyclic": "directed",
    "is_polytree": "directed",
    "markov_blanket": "directed",
    "topological_order": "directed",
    "PartialDigraph": "equivalence",
    "consistent_extension": "equivalence",
    "cpdag": "equivalence",
    "markov_equivalent": "equivalence",
    "meek_closure": "equivalence",
    "skeleton": "equivalence",
    "v_structures": "equivalence",
    "JunctionTree": "junction",
    "Triangulation": "junction",
    "induced_width": "junction",
    "junction_tree": "junction",
    "search_order": "junction",
    "triangulate": "junction",
    "Independence": "maps",
    "dependence": "maps",
    "independencies": "maps",
    "is_d_map": "maps",
    "is_i_map": "maps",
    "is_independent": "maps",
    "is_perfect_map": "maps",
    "joint_independencies": "maps",
    "Requisite": "separation",
    "active_trail": "separation",
    "barren": "separation",
    "d_separated": "separation",
    "minimal_d_separator": "separation",
    "open_path": "separation",
    "reachable": "separation",
    "requisite": "separation",
    "separated": "separation",
    "minimal_separators": "separators",
    "Openness": "trails",
    "active_trails": "trails",
    "openness": "trails",
    "UndirectedGraph": "undirected",
    "connected_components": "undirected",
    "is_chordal": "undirected",
    "maximal_cliques": "undirected",
    "moralize": "undirected",
    "perfect_elimination_order": "undirected",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
