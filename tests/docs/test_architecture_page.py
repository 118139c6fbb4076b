"""The page of the architecture is true: files that it names exist, its picture is what the script draws."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FILE = re.compile(r"`((?:src|docs|tests|benchmarks|examples)/[\w./-]*)`|`([\w./-]+\.(?:py|svg|toml|md))`")


def test_every_file_that_the_architecture_names_exists():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = [path or bare for path, bare in FILE.findall(text)]
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []


def load_script():
    spec = importlib.util.spec_from_file_location("draw_architecture", DOCS / "draw_architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn_by_its_script():
    assert (DOCS / "architecture.svg").read_text(encoding="utf-8") == load_script().picture()


def test_stations_are_packages_and_journeys_visit_them():
    script = load_script()
    for station in script.STATIONS:
        for name in station.split(", "):
            assert (ROOT / "src" / "gramgraph" / name / "__init__.py").exists(), name
    visited = {station for _, stations in script.JOURNEYS.values() for station in stations}
    assert visited == set(script.STATIONS)
