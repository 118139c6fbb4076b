"""Every page of the gallery runs; the numbers of the texts are assertions in the scripts themselves."""

from __future__ import annotations

import ast
import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*/plot_*.py"))
#: Numbers of pages that take more than about three seconds of a processor: `make test-all` runs them.
SLOW = {
    22,
    24,
    28,
    29,
    30,
    31,
    32,
    33,
    37,
    42,
    43,
    45,
    46,
    47,
    48,
    50,
    51,
    52,
    54,
    57,
    59,
    61,
    62,
    63,
    64,
    66,
    67,
    68,
    69,
    70,
    72,
    73,
}


def number(script: Path) -> int:
    return int(script.name.split("_")[1])


def marked(script: Path):
    return pytest.param(script, id=script.stem, marks=[pytest.mark.slow] if number(script) in SLOW else [])


@pytest.mark.parametrize("script", [marked(script) for script in SCRIPTS])
def test_the_script_runs(script, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg", force=True)
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)  # what a script writes is gone afterwards
    if "GRAMGRAPH_DATA" not in os.environ and (ROOT.parent / "shared" / "data").is_dir():
        monkeypatch.setenv("GRAMGRAPH_DATA", str(ROOT.parent / "shared" / "data"))
    with matplotlib.rc_context():
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:
            plt.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_is_a_page(script):
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, *rest = (ast.get_docstring(tree) or "\n").splitlines()
    assert title and set(line) == {"="} and len(line) >= len(title), "a title, underlined"
    assert len("\n".join(rest).strip().split("\n\n")) >= 2, "two paragraphs: what the text says, what we see"
    assert "# %%" in text
    assert not re.search(r"\bgramgraph\._|from gramgraph\.\w+\._", text), "public names only"


def test_numbers_are_given_once():
    numbers = [number(script) for script in SCRIPTS]
    assert len(set(numbers)) == len(numbers)
    assert all((script.parent / "README.txt").exists() for script in SCRIPTS)
