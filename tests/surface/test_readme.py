"""What the README and the guide show works: Python blocks run and print what they say; commands end well."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

import gramgraph as gg
from gramgraph.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {"README.md": README, "docs/guide.md": (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(text):
    return [code for language, code in BLOCK.findall(text) if language == "python"]


def commands():
    blocks = [block for text in PAGES.values() for block in BLOCK.findall(text)]
    lines = [line for language, code in blocks if language in ("bash", "sh", "console") for line in code.splitlines()]
    lines = [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]
    return [line for line in lines if line.startswith("gramgraph ")]


def test_pages_have_code_and_commands():
    assert all(python_blocks(text) for text in PAGES.values())
    assert commands()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cases.csv").write_text("smoke,xray\nyes,no\nno,\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_one_after_the_other(page, folder):
    space: dict[str, object] = {}
    for code in python_blocks(PAGES[page]):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, page, "exec"), space)
        # Where a block of text follows, it must be what was printed.
        following = re.match(r"```\n\n```text\n(.*?)```", PAGES[page].split(code, 1)[1], re.DOTALL)
        if following:
            assert said.getvalue().rstrip() == following[1].rstrip()


def test_readme_shows_output():
    assert "```\n\n```text\n" in README


@pytest.mark.parametrize("line", commands())
def test_commands_end_well(line, folder, capsys):
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


def test_picture_is_what_the_library_draws():
    net, e = gg.datasets.asia(), {"smoke": "yes", "xray": "yes"}
    assert (ROOT / "docs" / "asia.svg").read_text(encoding="utf-8") == gg.plot.network_svg(
        net, net.query(evidence=e), evidence=e
    )


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_make_targets_exist():
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"demo", "test", "bench"} <= asked <= rules
