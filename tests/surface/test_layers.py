"""The layers contract covers what import-linter cannot see: packages whose modules stand in lines of their own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import gramgraph

SOURCE = Path(gramgraph.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
[CONTRACT] = PROJECT["tool"]["importlinter"]["contracts"]
LAYERS = {name for line in CONTRACT["layers"] for name in re.findall(r"[\w.]+", line)}


def test_no_module_stands_outside() -> None:
    assert CONTRACT["exhaustive"] and CONTRACT["unmatched_ignore_imports_alerting"] == "error"
    for package in CONTRACT.get("exhaustive_ignores", []):
        modules = {f"{package}.{path.stem}" for path in (SOURCE / package).glob("*.py") if path.stem != "__init__"}
        assert modules <= LAYERS, f"in no layer: {modules - LAYERS}"


def test_there_are_two_doors_upward() -> None:
    """Models ask and learn; values draw themselves. Each door is one module."""
    doors = {line.split(" -> ")[0] for line in CONTRACT["ignore_imports"]}
    assert doors == {"gramgraph._asking", "gramgraph._pictures"}, f"another door: {doors}"
