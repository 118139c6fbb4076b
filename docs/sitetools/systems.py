"""The table of systems: what the texts describe, and the pages, names and tests that hold it (`docs/systems.toml`)."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sitetools import reference

__all__ = ["GROUPS", "System", "gallery_scripts", "page", "systems", "write"]

DOCS = Path(__file__).resolve().parents[1]
GROUPS = {
    "A": "Probability and exponential families",
    "B": "Graphs and models",
    "C": "Inference",
    "D": "Learning",
    "E": "Linear and sequence models",
    "F": "Kernels",
    "G": "Kernel graphical models",
    "H": "Boosting and vision",
}
LETTERS = {"Z": "Zhu", "T": "Triebel", "P": "Parikh", "H": "Hennig", "O": "OuYang"}


@dataclass(frozen=True)
class System:
    """One row of the table."""

    id: str
    name: str
    texts: str
    gallery: tuple[int, ...]
    reference: tuple[str, ...]
    tests: tuple[str, ...]
    numbers: tuple[str, ...]


def systems() -> tuple[System, ...]:
    """The rows, in order."""
    rows = tomllib.loads((DOCS / "systems.toml").read_text(encoding="utf-8"))["system"]
    return tuple(System(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}) for row in rows)


def gallery_scripts() -> dict[int, Path]:
    """Number → script of the gallery."""
    return {int(path.name.split("_")[1]): path for path in sorted((DOCS / "gallery").glob("*/plot_*.py"))}


def _gallery_link(number: int, script: Path) -> str:
    target = f"auto_gallery/{script.parent.name}/{script.stem}.rst"
    return f"[{number}]({target})"


def _row(system: System, scripts: dict[int, Path]) -> str:
    pages = ", ".join(_gallery_link(n, scripts[n]) if n in scripts else str(n) for n in system.gallery)
    names = ", ".join(f"[{name}](reference/names/{reference.page_of(name)}.rst)" for name in system.reference)
    tests = ", ".join(f"`{test.removeprefix('tests/')}`" for test in system.tests)
    numbers = ", ".join(system.numbers) or "–"
    return f"| {system.id} | {system.name} | {system.texts} | {pages} | {names} | {numbers} | {tests} |"


def page() -> str:
    """The page, as Markdown."""
    scripts = gallery_scripts()
    letters = ", ".join(f"{letter} {name}" for letter, name in LETTERS.items())
    text = "# What the texts describe\n\nFive texts are the specification of this library, system by system. "
    text += f"Texts: {letters}. A number is a page of the [gallery](auto_gallery/index.rst); worked numbers are "
    text += "asserted in the tests or on the pages of the row.\n"
    for letter, title in GROUPS.items():
        text += f"\n## {title}\n\n| | system | texts | gallery | reference | numbers | tests |\n"
        text += "|:--|:--|:--|:--|:--|:--|:--|\n"
        text += "".join(_row(system, scripts) + "\n" for system in systems() if system.id.startswith(letter))
    return text


def write(file: Path) -> None:
    """Write the page, if it changed."""
    text = page()
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.stdout.write(page())
