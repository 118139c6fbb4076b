"""Comparing answers, and printing what was measured as Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import NOT_ASKED, Failure, Measurement

__all__ = ["Ratio", "Target", "best_of", "difference", "markdown", "ratio_of", "seconds", "size", "summary", "write"]

Result = Measurement | Failure


@dataclass(frozen=True)
class Ratio:
    """Peer's time over ours; `bound`: the peer was stopped, so that the true ratio is larger."""

    value: float
    bound: bool = False

    def __str__(self) -> str:
        digits = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:.3g}"
        return f"{'> ' if self.bound else ''}{digits}×"


@dataclass(frozen=True)
class Target:
    """What a table should show: the median and the smallest ratio."""

    median: float | None = None
    each: float | None = None


def difference(ours: Measurement, peer: Measurement) -> float:
    """Largest absolute difference over the cases both answered; NaN where a shape or a NaN differs, 0.0 without any."""
    worst = 0.0
    for a, b in zip(ours.answers, peer.answers, strict=False):
        if a.shape != b.shape:
            return math.nan
        same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities of the same sign agree
        gap = np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b))
        worst = max(worst, float(gap.max(initial=0.0)))
    return worst


def best_of(results: Iterable[Result | None]) -> Result | None:
    """The fastest by CPU time; a stopped one only when all were stopped; then any other failure."""
    present = [r for r in results if r is not None]
    done = [r for r in present if isinstance(r, Measurement)]
    if done:
        return min(done, key=lambda r: r.cpu)
    stopped = [r for r in present if isinstance(r, Failure) and r.limit is not None]
    return stopped[0] if stopped else (present[0] if present else None)


def ratio_of(ours: Result | None, peer: Result | None) -> Ratio | None:
    """Peer's CPU time per unit over ours.

    What a stopped peer had used is the time of a whole cell, of which nobody knows how many units were done: it stands
    against the time of all of our units.
    """
    if not isinstance(ours, Measurement) or peer is None:
        return None
    if isinstance(peer, Measurement):
        return Ratio(peer.cpu / max(ours.cpu, 1e-12))
    if peer.limit is not None:
        return Ratio(peer.limit / max(ours.cpu * ours.units, 1e-12), bound=True)
    return None


def seconds(value: float) -> str:
    """1.23e-5 → 12.3 µs."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def size(value: float | None) -> str:
    """Bytes for reading."""
    if value is None:
        return ""
    for factor, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} B"


def shown(result: Result | None) -> str:
    """A cell of the table: CPU time, with the wall time where it differs by more than a tenth."""
    if result is None:
        return ""
    if isinstance(result, Failure):
        return result.reason
    text = seconds(result.cpu)
    if result.wall > 1.1 * result.cpu + 1e-6:
        text += f" (wall {seconds(result.wall)})"
    return f"{text} {result.note}".strip()


def summary(ratios: Sequence[Ratio], target: Target) -> str:
    """Median and minimum, with the targets beside them."""
    if not ratios:
        return "no ratios"
    values = [r.value for r in ratios]
    out = []
    for name, value, wanted in (
        ("median", statistics.median(values), target.median),
        ("smallest", min(values), target.each),
    ):
        text = f"{name} {value:.4g}×"
        if wanted is not None:
            text += f" (target ≥ {wanted:g}×: {'met' if value >= wanted else 'missed'})"
        out.append(text)
    return f"{', '.join(out)}, over {len(values)} rows"


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]], *, texts: int = 1) -> str:
    """A table, without the rows that were not asked for; the first columns, which are texts, are set to the left."""
    marks = [":--"] * texts + ["--:"] * (len(header) - texts)
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(marks) + "|"]
    shown = [[str(cell) for cell in row] for row in rows]
    lines += [f"| {' | '.join(row)} |" for row in shown if NOT_ASKED.reason not in row]
    return "\n".join(lines)


def write(name: str, text: str, *, folder: Path | None = None) -> Path:
    """Write `text` to benchmarks/results/NAME.md."""
    folder = folder or Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


def failures(results: Mapping[tuple[str, str, str], Result]) -> list[str]:
    """Everything that went wrong on our side, one line each."""
    return [
        f"{row}, {task}: {result.reason} {result.detail.splitlines()[0] if result.detail else ''}".strip()
        for (row, task, contestant), result in results.items()
        if contestant.split()[0] == "gramgraph" and isinstance(result, Failure) and result.tried
    ]
