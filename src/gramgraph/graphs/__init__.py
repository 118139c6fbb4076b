"""Pure graph algorithms on nodes 0..n-1: separation, moral graphs, triangulation, junction trees, equivalence, maps.

Graphs are frozen values; results are tuples in a fixed order, so that nothing depends on hashing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramgraph._lazy import lazy_names

if TYPE_CHECKING:
    from gramgraph.graphs.causal import *
    from gramgraph.graphs.convert import *
    from gramgraph.graphs.directed import *
    from gramgraph.graphs.equivalence import *
    from gramgraph.graphs.junction import *
    from gramgraph.graphs.maps import *
    from gramgraph.graphs.separation import *
    from gramgraph.graphs.separators import *
    from gramgraph.graphs.trails import *
    from gramgraph.graphs.undirected import *

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "causal": "adjustment_set adjustment_sets front_door_set is_adjustment_set",
        "convert": "digraph_from_networkx to_networkx undirected_from_networkx",
        "directed": (
            "ancestors ancestral_graph ancestral_set descendants Digraph find_cycle is_acyclic is_polytree "
            "markov_blanket topological_order"
        ),
        "equivalence": (
            "consistent_extension cpdag markov_equivalent meek_closure PartialDigraph skeleton v_structures"
        ),
        "junction": "induced_width junction_tree JunctionTree search_order triangulate Triangulation",
        "maps": (
            "dependence Independence independencies is_d_map is_i_map is_independent is_perfect_map "
            "joint_independencies"
        ),
        "separation": (
            "active_trail barren d_separated minimal_d_separator open_path reachable Requisite requisite separated"
        ),
        "separators": "minimal_separators",
        "trails": "active_trails Openness openness",
        "undirected": (
            "connected_components is_chordal maximal_cliques moralize perfect_elimination_order UndirectedGraph"
        ),
    },
)
