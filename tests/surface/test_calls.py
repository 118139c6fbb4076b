"""Calls that can be read: no call in the package hands over more than eight arguments by position alone.

Compiled loops are left out, inside `_numerics` and where they are called: they take arrays one after the other.
"""

from __future__ import annotations

import ast
from pathlib import Path

import gramgraph

ROOT = Path(gramgraph.__file__).parent
MOST = 8
COMPILED = "gramgraph._numerics"


def long_calls(text: str) -> list[tuple[int, int]]:
    """(line, number) of the calls with too many positional arguments."""
    tree = ast.parse(text)
    compiled = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(COMPILED)
        for alias in node.names
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > MOST]
    return [(call.lineno, len(call.args)) for call in calls if _head(call.func) not in compiled]


def _head(function: ast.expr) -> str:
    """The first name of a.b.c; "" where the function is looked up in a table, as those of BLAS are."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def test_no_call_with_more_than_eight_positional_arguments() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} has {n}"
        for path in sorted(ROOT.rglob("*.py"))
        if "_numerics" not in path.parts and path.name != "blocked.py"  # which calls BLAS by its addresses
        for line, n in long_calls(path.read_text())
    ]
    assert not found, f"name the arguments, or gather them in a value: {found}"


def test_long_calls_are_seen() -> None:
    assert long_calls("f(1, 2, 3, 4, 5, 6, 7, 8)\nf(1, 2, 3, 4, 5, 6, 7, 8, x=9)") == []
    assert long_calls("\nx = g(a.f(1, 2, 3, 4, 5, 6, 7, 8, 9))") == [(2, 9)]
    assert long_calls("from gramgraph._numerics.x import f\nf(1, 2, 3, 4, 5, 6, 7, 8, 9)") == []
