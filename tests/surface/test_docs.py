"""The pages in docs/ are true: links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


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


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 70
