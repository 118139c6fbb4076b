"""The page of measured figures, from result files (`python -m benchmarks MODULE --json --out docs/measured`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["page", "results", "write"]

DOCS = Path(__file__).resolve().parents[1]
FORMAT = 2


def results(folder: Path = DOCS / "measured") -> list[dict[str, Any]]:
    """Result files, by name; one that a newer or older run wrote otherwise ends the build."""
    found = []
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if result.get("format") != FORMAT:
            raise ValueError(
                f"{path.name} has format {result.get('format')!r}, not {FORMAT}: measure again with --json"
            )
        found.append(result)
    return found


def _title(result: dict[str, Any]) -> str:
    return str(result["module"]).replace("_", " ").capitalize()


def _contents(found: list[dict[str, Any]]) -> str:
    """One row for each file: what was measured, on what, and whether anything went wrong."""
    head = ("figures", "processor", "load", "cells", "stopped or failed", "not run", "faults")
    text = f"| {' | '.join(head)} |\n|:--|:--|--:|--:|--:|--:|--:|\n"
    for result in found:
        link = f"[{_title(result)}](#measured-{result['module']})"
        machine, (failed, absent) = result["machine"], _without(result)
        text += f"| {link} | {machine['processor']} | {machine['load'][0]:g} to {machine['load'][1]:g} "
        text += f"| {len(result['cells'])} | {failed or ''} | {absent or ''} | {len(result['faults']) or ''} |\n"
    return text


def _without(result: dict[str, Any]) -> tuple[int, int]:
    """How many cells were stopped or failed, and how many were not run: nobody asked, or a peer does not offer it."""
    failed = sum("failure" in cell or "stopped" in cell for cell in result["cells"])
    return failed, sum("not run" in cell for cell in result["cells"])


def _below(report: str, level: int) -> str:
    """The report with its headings below one of this level, and none more than one below the last."""
    used = sorted({len(marks) for marks in re.findall(r"^(#+) ", report, flags=re.MULTILINE)})
    last = level

    def moved(found: re.Match[str]) -> str:
        nonlocal last
        last = min(level + 1 + used.index(len(found[1])), last + 1)
        return "#" * last + " "

    return re.sub(r"^(#+) ", moved, report, flags=re.MULTILINE)


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    text = f"(measured-{result['module']})=\n\n## {_title(result)}\n\n"
    text += f"`python -m benchmarks {result['module']}`: {machine['processor']}, {machine['cores']} cores, "
    text += f"{machine['system']}, Python {machine['python']}; {versions}. Tier of loops: {machine['tier']}; "
    text += f"load {machine['load'][0]:g} to {machine['load'][1]:g}. "
    text += f"{result['method']}.\n\n"
    text += _below(result["report"], 2).strip() + "\n"
    if result["faults"]:
        text += "\nFaults:\n\n" + "".join(f"* {fault}\n" for fault in result["faults"])
    failed, absent = _without(result)
    return text + f"\n{len(result['cells'])} cells, {failed} of them stopped or failed, {absent} not run.\n"


def page(found: list[dict[str, Any]] | None = None) -> str:
    """The page, as Markdown: a table of contents, then each file with its machine, versions and method."""
    found = results() if found is None else found
    text = "# Measured figures\n\nMade from result files: `python -m benchmarks MODULE --json --out docs/measured` "
    text += "writes one, with the machine, the versions and every figure in it. "
    text += "The [summary](benchmarks.md) tells them in words.\n\n"
    return text + _contents(found) + "\n" + "\n".join(_section(result) for result in found)


def write(file: Path) -> None:
    """Write the page, if it changed."""
    text = page()
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
