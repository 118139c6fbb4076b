"""The page of measured figures, from result files (`python -m benchmarks MODULE --json --out docs/measured`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["page", "results", "write"]

DOCS = Path(__file__).resolve().parents[1]


def results() -> list[dict[str, Any]]:
    """Result files, by name."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((DOCS / "measured").glob("*.json"))]


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    title = result["module"].replace("_", " ")
    text = f"## {title.capitalize()}\n\n"
    text += f"`python -m benchmarks {result['module']}`, {result['date']}: {machine['processor']}, "
    text += f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}; {versions}. "
    text += f"{result['method']}.\n\n"
    report = re.sub(r"^(#+) ", lambda m: "#" * max(3, len(m[1]) + 1) + " ", result["report"], flags=re.MULTILINE)
    text += report.strip() + "\n"
    if result["faults"]:
        text += "\nFaults:\n\n" + "".join(f"* {fault}\n" for fault in result["faults"])
    failed = [cell for cell in result["cells"] if "failure" in cell]
    text += f"\n{len(result['cells'])} cells were measured"
    return text + (f", {len(failed)} of them without a figure.\n" if failed else ".\n")


def page() -> str:
    """The page, as Markdown."""
    text = "# Measured figures\n\nMade from result files: `python -m benchmarks MODULE --json --out docs/measured` "
    text += "writes one, with the machine, the versions and every figure in it. "
    text += "The [summary](benchmarks.md) tells them in words.\n\n"
    return text + "\n".join(_section(result) for result in results())


def write(file: Path) -> None:
    """Write the page, if it changed."""
    text = page()
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
