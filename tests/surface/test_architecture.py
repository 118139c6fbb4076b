"""What layers cannot say: engines are chosen in one place, imports have no cycles, what is private stays at home."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import networkx as nx

import gramgraph
from gramgraph.engines.registry import ENGINES
from tests.surface.test_layers import CONTRACT, LAYERS

ROOT = Path(gramgraph.__file__).parent


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Every file of the package, parsed when the first test asks: whoever only collects tests does not wait for it."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def name_of(path: Path) -> str:
    return ".".join(["gramgraph", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


@functools.cache
def modules() -> dict[str, ast.Module]:
    return {name_of(path): tree for path, tree in trees().items()}


# --------------------------------------------------------------------------------------------- names of engines


def branches(tree: ast.AST) -> list[int]:
    """Lines that compare something called an engine, or its name, with the name of one."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            if words & {*ENGINES, "auto"}:
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                if any(re.search(r"engine\b|\bname\b|worker", side) for side in sides):
                    found.append(node.lineno)
    return found


def test_no_branch_on_the_name_of_an_engine() -> None:
    found = {name: lines for name, tree in modules().items() if (lines := branches(tree))}
    found.pop("gramgraph.engines.registry", None)
    assert not found, f"let the registry choose: {found}"
    assert branches(ast.parse('if engine in ("auto", "cells"): pass')) == [1]
    assert branches(ast.parse('x = answer.engine == "bp"')) == [1]


# --------------------------------------------------------------------------------------------- cycles of imports


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of the package that are imported anywhere in a module, functions included; not those for types alone."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in modules() else node.module
        todo += ast.iter_child_nodes(node)


def is_door(above: str, below: str) -> bool:
    doors = [line.split(" -> ") for line in CONTRACT["ignore_imports"]]
    return any(fnmatchcase(above, a) and fnmatchcase(below, b) for a, b in doors)


@functools.cache
def graph() -> nx.DiGraph:
    """Imports between modules, but for the doors, and for `gramgraph` itself, whose names are loaded late."""
    found = nx.DiGraph()
    for name, tree in modules().items():
        found.add_edges_from((name, other) for other in imports(tree) if other in modules() and other != name)
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


def test_no_cycle_of_modules_beyond_those_that_are_named() -> None:
    known = [{f"gramgraph.{name}" for name in part} for part in TOGETHER]
    found = cycles(graph())
    more = [sorted(part) for part in found if not any(part <= own for own in known)]
    assert not more, f"move what both need below them: {more}"
    gone = [sorted(own) for own in known if not any(part <= own for part in found)]
    assert not gone, f"no longer a cycle, take it out of the list: {gone}"


def test_no_cycle_of_packages() -> None:
    """Modules that stand in layers of their own count for themselves."""

    def unit(name: str) -> str:
        parts = name.split(".")[1:]
        long = ".".join(parts[:2])
        return long if long in LAYERS else parts[0]

    found = nx.DiGraph((unit(a), unit(b)) for a, b in graph().edges if unit(a) != unit(b))
    assert not cycles(found), f"packages import each other: {[sorted(part) for part in cycles(found)]}"


# --------------------------------------------------------------------------------------------- what is private


def package(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else ""


def own_names(tree: ast.AST) -> set[str]:
    """Everything that a module defines or sets."""
    found = set()
    for node in ast.walk(tree):
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


def strangers(tree: ast.AST, own: set[str], others: set[str]) -> set[str]:
    """Private attributes that are read of something that another package defines."""
    found = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)):
            continue
        if node.attr in others and node.attr not in own and ast.unparse(node.value) not in ("self", "cls", "super()"):
            found.add(node.attr)
    return found


#: Private attributes that other packages still read: none. Never to grow.
READ_ELSEWHERE: dict[str, set[str]] = {}


def test_private_attributes_stay_in_their_package() -> None:
    own: dict[str, set[str]] = {}
    for path, tree in trees().items():
        own.setdefault(package(path), set()).update(own_names(tree))
    others = {here: set().union(*(names for name, names in own.items() if name != here)) for here in own}
    found: dict[str, set[str]] = {}
    for path, tree in trees().items():
        here = package(path)
        found.setdefault(here, set()).update(strangers(tree, own[here], others[here]))
    more = {name: names for name, own in found.items() if (names := own - READ_ELSEWHERE.get(name, set()))}
    assert not more, f"give it a public name where it is defined: {more}"
    gone = {name: names for name, own in READ_ELSEWHERE.items() if (names := own - found[name])}
    assert not gone, f"no longer read elsewhere, take it out of the list: {gone}"
    assert strangers(ast.parse("model._vars"), set(), {"_vars"}) == {"_vars"}
