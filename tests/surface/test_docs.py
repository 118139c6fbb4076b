"""The pages in docs/ are true: files that they name exist, links lead somewhere, pictures are what scripts draw."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
FILE = re.compile(r"`((?:src|docs|tests|benchmarks|examples)/[\w./-]*)`|`([\w./-]+\.(?:py|svg|toml|md))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            file, _, heading = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.exists(), target
            assert not heading or heading in anchors(linked), target


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_of_the_readme_meet_headings():
    for file, heading in re.findall(r"\]\((docs/[\w.]+)#([\w-]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert heading in anchors(ROOT / file), f"{file}#{heading}"


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


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 70
