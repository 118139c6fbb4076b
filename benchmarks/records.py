"""Result files: what a run measured, on which machine and with which versions, as JSON (the site's pages read them)."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.harness import Cell, Failure, Measurement

__all__ = ["busy", "machine", "record", "write_json"]

FORMAT = 2
METHOD = (
    "CPU seconds a unit of the best repeat; all contestants one after the other in one child process, one thread, "
    "same data, answers compared"
)
OURS = ("gramgraph", "numpy", "scipy", "numba", "scikit-learn", "pandas")


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "tier": os.environ.get("GRAMGRAPH_TIER", "auto"),  # whether loops were compiled before they were measured
    }


def busy() -> float:
    """How many jobs wanted a core during the last minute: above the number of cores, other work was in the way."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _versions(contestants: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in dict.fromkeys([*OURS, *contestants]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def record(cell: Cell, result: Measurement | Failure) -> dict[str, Any]:
    """One figure, or why there is none."""
    out: dict[str, Any] = {"row": cell.row, "task": cell.task, "contestant": cell.contestant}
    if isinstance(result, Failure):
        kind = "not run" if not result.tried else "failure" if result.limit is None else "stopped"
        return out | {kind: result.reason if result.limit is None else result.limit}
    values = {key: value for key, value in result.values.items() if math.isfinite(value)}
    if not result.repeats:
        return out | {"not run": result.note or "nothing to do"} | ({"values": values} if values else {})
    out |= {"cpu": result.cpu, "wall": result.wall, "repeats": result.repeats, "units": result.units}
    return out | ({"peak": result.peak} if result.peak else {}) | ({"values": values} if values else {})


def write_json(
    name: str,
    records: Sequence[tuple[Cell, Measurement | Failure]],
    text: str,
    faults: Sequence[str],
    *,
    load: float,
    folder: Path | None = None,
) -> Path:
    """Write NAME.json into `folder` (benchmarks/results); `load` is the machine's before the run."""
    folder = folder or Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True, parents=True)
    contestants = [word for cell, _ in records for word in (cell.contestant, cell.contestant.split()[0])]
    content = {
        "format": FORMAT,
        "module": name,
        "method": METHOD,
        "machine": machine() | {"load": [round(load, 1), round(busy(), 1)]},
        "versions": _versions(contestants),
        "faults": list(faults),
        "report": text,
        "cells": [record(cell, result) for cell, result in records],
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
