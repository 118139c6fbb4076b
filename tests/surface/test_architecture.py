"""What layers cannot say: engines are chosen in one place, imports have no cycles, what is private stays at home.

And calls can be read: none hands over more than eight arguments by position alone, but for those of compiled loops.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import networkx as nx
import pytest

import gramgraph
from gramgraph.engines.registry import ENGINES
from tests.surface.test_layers import CONTRACT, LAYERS

ROOT = Path(gramgraph.__file__).parent


Nodes = list[ast.AST]


def nodes_of(text: str) -> Nodes:
    """Everything in a source; the module itself comes first."""
    return list(ast.walk(ast.parse(text)))


@pytest.fixture(scope="module")
def sources() -> Iterator[dict[Path, Nodes]]:
    """Every file of the package, read and walked through once for all tests of this file."""
    gc.disable()  # more than a million nodes, and none of them is garbage
    found = {path: nodes_of(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    gc.enable()
    yield found
    found.clear()


def name_of(path: Path) -> str:
    return ".".join(["gramgraph", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


# --------------------------------------------------------------------------------------------- names of engines


def branches(nodes: Nodes) -> list[int]:
    """Lines that compare something called an engine, or its name, with the name of one."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Compare):
            words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            if words & {*ENGINES, "auto"}:
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                if any(re.search(r"engine\b|\bname\b|worker", side) for side in sides):
                    found.append(node.lineno)
    return found


def test_no_branch_on_the_name_of_an_engine(sources: dict[Path, Nodes]) -> None:
    found = {name_of(path): lines for path, nodes in sources.items() if (lines := branches(nodes))}
    found.pop("gramgraph.engines.registry", None)
    assert not found, f"let the registry choose: {found}"
    assert branches(nodes_of('if engine in ("auto", "cells"): pass')) == [1]
    assert branches(nodes_of('x = answer.engine == "bp"')) == [1]


# --------------------------------------------------------------------------------------------- cycles of imports


def for_types(nodes: Nodes) -> Iterator[ast.AST]:
    """What is read by type checkers alone."""
    for node in nodes:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from ast.walk(statement)


def imports(nodes: Nodes, modules: set[str]) -> Iterator[str]:
    """Modules of the package that are imported anywhere in a module, functions included; not those for types alone."""
    left_out = {id(node) for node in for_types(nodes)}
    for node in nodes:
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules else node.module


def is_door(above: str, below: str) -> bool:
    doors = [line.split(" -> ") for line in CONTRACT["ignore_imports"]]
    return any(fnmatchcase(above, a) and fnmatchcase(below, b) for a, b in doors)


@pytest.fixture(scope="module")
def graph(sources: dict[Path, Nodes]) -> nx.DiGraph:
    """Imports between modules, but for the doors, and for `gramgraph` itself, whose names are loaded late."""
    modules = {name_of(path): nodes for path, nodes in sources.items()}
    found = nx.DiGraph()
    for name, nodes in modules.items():
        found.add_edges_from(
            (name, other) for other in imports(nodes, set(modules)) if other in modules and other != name
        )
    found.remove_edges_from([edge for edge in found.edges if is_door(*edge) or "gramgraph" in edge])
    return found


def cycles(found: nx.DiGraph) -> set[frozenset[str]]:
    return {frozenset(part) for part in nx.strongly_connected_components(found) if len(part) > 1}


#: Classes whose methods make values that stand in a module above them: a kernel its sums, a model its files and its
#: learner. None of these crosses a package. To be shortened, never to grow.
TOGETHER = [
    {"models.factor_graph", "models.markov_network", "models.of_potentials"},
    {f"kernels.{name}" for name in ("algebra", "base", "feature_space", "input_maps", "stationary", "tables")},
    {f"embeddings.network.{name}" for name in ("dag", "files", "grid", "learn", "spectral", "tree")},
    {"sequences.crf.chain", "sequences.crf.storage"},
    {"io.native", "io.sequence_files"},
]


def test_no_cycle_of_modules_beyond_those_that_are_named(graph: nx.DiGraph) -> None:
    known = [{f"gramgraph.{name}" for name in part} for part in TOGETHER]
    found = cycles(graph)
    more = [sorted(part) for part in found if not any(part <= own for own in known)]
    assert not more, f"move what both need below them: {more}"
    gone = [sorted(own) for own in known if not any(part <= own for part in found)]
    assert not gone, f"no longer a cycle, take it out of the list: {gone}"


def test_no_cycle_of_packages(graph: nx.DiGraph) -> None:
    """Modules that stand in layers of their own count for themselves."""

    def unit(name: str) -> str:
        parts = name.split(".")[1:]
        long = ".".join(parts[:2])
        return long if long in LAYERS else parts[0]

    found = nx.DiGraph((unit(a), unit(b)) for a, b in graph.edges if unit(a) != unit(b))
    assert not cycles(found), f"packages import each other: {[sorted(part) for part in cycles(found)]}"


# --------------------------------------------------------------------------------------------- what is private


def package(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


def own_names(nodes: Nodes) -> set[str]:
    """Everything that a module defines or sets."""
    found = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def strangers(nodes: Nodes, own: set[str], others: set[str]) -> set[str]:
    """Private attributes that are read of something that another package defines."""
    found = set()
    for node in nodes:
        if not (isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)):
            continue
        if node.attr in others and node.attr not in own and ast.unparse(node.value) not in ("self", "cls", "super()"):
            found.add(node.attr)
    return found


#: Private attributes that other packages still read: none. Never to grow.
READ_ELSEWHERE: dict[str, set[str]] = {}


def test_private_attributes_stay_in_their_package(sources: dict[Path, Nodes]) -> None:
    own: dict[str, set[str]] = {}
    for path, nodes in sources.items():
        own.setdefault(package(path), set()).update(own_names(nodes))
    others = {here: set().union(*(names for name, names in own.items() if name != here)) for here in own}
    found: dict[str, set[str]] = {}
    for path, nodes in sources.items():
        here = package(path)
        found.setdefault(here, set()).update(strangers(nodes, own[here], others[here]))
    more = {name: names for name, own in found.items() if (names := own - READ_ELSEWHERE.get(name, set()))}
    assert not more, f"give it a public name where it is defined: {more}"
    gone = {name: names for name, own in READ_ELSEWHERE.items() if (names := own - found[name])}
    assert not gone, f"no longer read elsewhere, take it out of the list: {gone}"
    assert strangers(nodes_of("model._vars"), set(), {"_vars"}) == {"_vars"}


# ------------------------------------------------------------------------------------------------ calls to be read

MOST = 8
COMPILED = "gramgraph._numerics"


def long_calls(nodes: Nodes) -> list[tuple[int, int]]:
    """(line, number) of the calls with too many positional arguments.

    Compiled loops are left out, inside `_numerics` and where they are called: they take arrays one after the other.
    """
    compiled = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(COMPILED)
        for alias in node.names
    }
    calls = [node for node in nodes if isinstance(node, ast.Call) and len(node.args) > MOST]
    return [(call.lineno, len(call.args)) for call in calls if _head(call.func) not in compiled]


def _head(function: ast.expr) -> str:
    """The first name of a.b.c; "" where the function is looked up in a table, as those of BLAS are."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def test_no_call_with_more_than_eight_positional_arguments(sources: dict[Path, Nodes]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} has {n}"
        for path, nodes in sources.items()
        if "_numerics" not in path.parts and path.name != "blocked.py"  # which calls BLAS by its addresses
        for line, n in long_calls(nodes)
    ]
    assert not found, f"name the arguments, or gather them in a value: {found}"


def test_long_calls_are_seen() -> None:
    def seen(text: str) -> list[tuple[int, int]]:
        return long_calls(nodes_of(text))

    assert seen("f(1, 2, 3, 4, 5, 6, 7, 8)\nf(1, 2, 3, 4, 5, 6, 7, 8, x=9)") == []
    assert seen("\nx = g(a.f(1, 2, 3, 4, 5, 6, 7, 8, 9))") == [(2, 9)]
    assert seen("from gramgraph._numerics.x import f\nf(1, 2, 3, 4, 5, 6, 7, 8, 9)") == []
