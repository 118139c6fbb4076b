"""What README, guide and "moving from" pages show works: Python blocks print what they say; commands end well."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest
from sitetools import blocks

import gramgraph as gg
from gramgraph.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("moving/*.md")),
]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in FILES
    if path.name not in ("systems.md", "measured.md")  # made when the site is built
}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [page for page, text in PAGES.items() if blocks.blocks(text)]


def commands():
    found = [fence for text in PAGES.values() for fence in FENCE.findall(text)]
    lines = [line for language, code in found if language in ("bash", "sh", "console") for line in code.splitlines()]
    lines = [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]
    return [line for line in lines if line.startswith("gramgraph ")]


def test_pages_have_code_and_commands():
    assert len(WITH_CODE) > 20
    assert blocks.blocks(README)
    assert commands()


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.startswith(("docs/guide/", "docs/moving/")) and "index" not in p]
)
def test_every_page_has_a_question_or_a_table_of_words(page):
    text = PAGES[page]
    assert re.search(r"\*[^*]+\?[^*]*\*", text) if "guide" in page else "|:--|" in text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cases.csv").write_text("smoke,xray\nyes,no\nno,\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("page", WITH_CODE)
def test_python_blocks_print_what_stands_below_them(page, folder):
    with warnings.catch_warnings():
        for block, said in blocks.run_page(PAGES[page], page):
            if block.said is None:
                assert not said.strip(), f"line {block.line} prints, but the page shows nothing"
            else:
                assert said.rstrip() == block.said.rstrip(), f"line {block.line} of {page}"


def test_a_difference_is_seen():
    text = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    (block, said) = next(iter(blocks.run_page(text)))
    assert not blocks.same(block.said, said)
    assert "```text\n1\n```" in blocks.renewed(text, "page")


def test_blocks_that_need_a_package_wait_for_it():
    text = "<!-- needs: no_such_package -->\n\n```python\nraise SystemExit\n```\n"
    assert blocks.blocks(text)[0].needs == ("no_such_package",)
    assert list(blocks.run_page(text)) == []


@pytest.mark.parametrize("line", commands())
def test_commands_end_well(line, folder, capsys):
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


def test_picture_is_what_the_library_draws():
    net, e = gg.datasets.asia(), {"smoke": "yes", "xray": "yes"}
    assert (DOCS / "asia.svg").read_text(encoding="utf-8") == gg.plot.network_svg(
        net, net.query(evidence=e), evidence=e
    )


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


#: Pages that exist in the built site only; `make docs` checks links to them.
BUILT = ("auto_gallery/", "reference/", "systems.md", "measured.md")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    here = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", PAGES[page])):
        if target.startswith("http") or any(part in target for part in BUILT):
            continue
        file, _, heading = target.partition("#")
        linked = here.parent / file if file else here
        assert linked.exists(), target
        assert not heading or heading in anchors(linked), target


def test_make_targets_exist():
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"demo", "test", "bench", "docs"} <= asked <= rules


def test_the_readme_is_one_screen():
    assert len(README.splitlines()) <= 70
    assert "```\n\n```text\n" in README


def test_every_page_of_the_site_stands_in_its_tree():
    listed = {
        (path.parent / name).resolve()
        for path in FILES
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        for name in tree.split()
        if not name.startswith(":")
    }
    own = [DOCS / page.removeprefix("docs/") for page in PAGES if page.startswith("docs/") and page != "docs/index.md"]
    assert [str(page) for page in own if page.with_suffix("").resolve() not in listed] == []
