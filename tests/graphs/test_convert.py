import subprocess
import sys

import networkx as nx
import pytest

from gramgraph.exceptions import ModelError
from gramgraph.graphs import (
    Digraph,
    UndirectedGraph,
    digraph_from_networkx,
    junction_tree,
    to_networkx,
    undirected_from_networkx,
)


def test_directed_round_trip_with_names():
    graph = Digraph.from_edges(4, [(2, 0), (0, 3)])
    there = to_networkx(graph, labels=["a", "b", "c", "d"])
    assert sorted(there.edges) == [("a", "d"), ("c", "a")]
    assert list(there.nodes) == ["a", "b", "c", "d"]
    assert digraph_from_networkx(there) == (graph, ("a", "b", "c", "d"))


def test_undirected_round_trip():
    graph = UndirectedGraph.from_edges(4, [(2, 0), (0, 3)])
    assert undirected_from_networkx(to_networkx(graph)) == (graph, (0, 1, 2, 3))
    assert undirected_from_networkx(nx.MultiGraph([("x", "y"), ("y", "x")]))[0].edges() == ((0, 1),)


def test_the_wrong_kind_is_refused_with_the_right_name():
    with pytest.raises(ModelError, match="undirected_from_networkx"):
        digraph_from_networkx(nx.Graph())
    with pytest.raises(ModelError, match="digraph_from_networkx"):
        undirected_from_networkx(nx.DiGraph())
    with pytest.raises(ModelError, match="2 different labels"):
        to_networkx(Digraph.from_edges(2, []), labels=["a", "a"])


def test_junction_tree_carries_its_separators():
    tree = junction_tree(UndirectedGraph.from_edges(3, [(0, 1), (1, 2)]))
    there = to_networkx(tree, labels="abc")
    assert set(there.nodes) == {("a", "b"), ("b", "c")}
    assert [d["separator"] for _, _, d in there.edges(data=True)] == [("b",)]


def test_importing_graphs_loads_neither_numba_nor_networkx():
    code = "import sys, gramgraph.graphs; print({'numba', 'networkx', 'scipy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_with_path())
    assert done.stdout.strip() == "set()"


def _with_path():
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
