"""CONTRIBUTING names files, folders and names that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gramgraph

ROOT = Path(__file__).parents[2]
SOURCE = Path(gramgraph.__file__).parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def paths(text: str) -> list[str]:
    """What stands in backquotes and looks like a file or a folder."""
    quoted = re.findall(r"`([\w./<>]+)`", text)
    return sorted(
        {
            q
            for q in quoted
            if "<" not in q and (re.search(r"\.(py|md|toml)$", q) or "/" in q.strip("/") or q.endswith("/"))
        }
    )


@pytest.mark.parametrize("name", paths(TEXT))
def test_files_exist(name: str) -> None:
    assert any((root / name).exists() for root in (ROOT, SOURCE, ROOT / "tests")), f"CONTRIBUTING names {name}"


def test_every_package_stands_in_the_layers() -> None:
    listed = re.findall(r"\w+", TEXT.split("```")[1])
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert packages <= set(listed), f"CONTRIBUTING leaves out {packages - set(listed)}"


def test_every_kind_of_addition_has_a_recipe() -> None:
    recipes = " ".join(re.findall(r"^## Add (.*) in \d steps$", TEXT, re.M))
    for kind in (
        "kernel",
        "conditional",
        "factor",
        "engine",
        "distribution",
        "emission",
        "estimator",
        "score",
        "format",
    ):
        assert kind in recipes
