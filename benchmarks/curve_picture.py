"""docs/curves.svg: the cost curves of docs/measured/curves.json, one small log–log drawing each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.curves import CURVES, Curve, cliffs, exponent
from benchmarks.tables import markdown, seconds

__all__ = ["curve_table", "picture", "points_of"]

Points = Sequence[tuple[float, float]]  # (size, seconds)
ACROSS, WIDE, HIGH = 2, 440, 250
LEFT, RIGHT, TOP, BOTTOM = 70, 44, 46, 48
#: Dark ink on white: readable on light and on dark pages, which show pictures on their own ground.
INK, CURVE, ORDER = "#222222", "#0072b2", "#b04a00"


def points_of(file: Mapping[str, Any] | None) -> dict[str, Points]:
    """Curve → its points in order of size, of those that were measured."""
    found: dict[str, list[tuple[float, float]]] = {}
    for cell in () if file is None else file["cells"]:
        if "cpu" in cell and cell["task"] in CURVES:
            found.setdefault(cell["task"], []).append((cell["values"]["size"], cell["cpu"]))
    return {name: sorted(found[name]) for name in CURVES if len(found.get(name, ())) > 1}


def curve_table(file: Mapping[str, Any] | None) -> str:
    """Sizes, times, exponents, cliffs; what was not measured says so."""
    points, lines = points_of(file), []
    for name, curve in CURVES.items():
        if name not in points:
            lines.append([curve.title, curve.axis, "not measured", "", f"{curve.order:g}", ""])
            continue
        sizes, times = zip(*points[name], strict=True)
        steep = [f"{sizes[i]:,.0f}" for i in cliffs(sizes, times, curve.order)]
        ends = " to ".join(f"{seconds(times[i])} at {sizes[i]:,.0f}" for i in (0, -1))
        told = [f"{exponent(sizes, times):.2f}", f"{curve.order:g}", ", ".join(steep) or "none"]
        lines.append([curve.title, curve.axis, ends, *told])
    return markdown(["what", "against", "CPU time", "exponent", "order of the work", "cliffs before"], lines, texts=3)


def _decades(values: Sequence[float]) -> list[int]:
    return list(range(math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9) + 1))


def _panel(curve: Curve, points: Points) -> str:
    sizes, times = zip(*points, strict=True)
    across, up = _decades(sizes), _decades(times)

    def at(size: float, time: float) -> tuple[float, float]:
        x = (math.log10(size) - across[0]) / max(across[-1] - across[0], 1)
        y = (math.log10(time) - up[0]) / max(up[-1] - up[0], 1)
        return LEFT + x * (WIDE - LEFT - RIGHT), HIGH - BOTTOM - y * (HIGH - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="22" class="title">{curve.title}: exponent {exponent(sizes, times):.2f}</text>']
    for k in across:
        x = at(10.0**k, times[0])[0]
        parts.append(f'<path d="M{x:.1f},{TOP} V{HIGH - BOTTOM}" class="grid"/>')
        parts.append(f'<text x="{x:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">{10**k:,}</text>')
    for k in up[:: max(1, len(up) // 4)]:
        y = at(sizes[0], 10.0**k)[1]
        parts.append(f'<path d="M{LEFT},{y:.1f} H{WIDE - RIGHT}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{seconds(10.0**k)}</text>')
    last = points[-1]
    lowest = max(sizes[0], last[0] * (10.0 ** up[0] / last[1]) ** (1.0 / curve.order))
    (x0, y0), (x1, y1) = at(lowest, last[1] * (lowest / last[0]) ** curve.order), at(*last)
    parts.append(f'<path d="M{x0:.1f},{y0:.1f} L{x1:.1f},{y1:.1f}" class="order"/>')
    places = [at(*point) for point in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline points="{line}" class="curve"/>')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="point"/>' for x, y in places]
    parts.append(f'<text x="{(LEFT + WIDE - RIGHT) / 2:.0f}" y="{HIGH - 10}" text-anchor="middle">{curve.axis}</text>')
    return "".join(parts)


def picture(file: Mapping[str, Any] | None) -> str:
    """The drawing as SVG."""
    points = points_of(file)
    down = -(-len(points) // ACROSS)
    width, height = ACROSS * WIDE, down * HIGH + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<style>text{{fill:{INK}}}.title{{font-size:14px}}.grid{{stroke:#dddddd;fill:none}}"
        f".curve{{fill:none;stroke:{CURVE};stroke-width:2}}.point{{fill:{CURVE}}}"
        f".order{{fill:none;stroke:{ORDER};stroke-width:1.4;stroke-dasharray:5 4}}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (name, found) in enumerate(points.items()):
        x, y = number % ACROSS * WIDE, number // ACROSS * HIGH
        out.append(f'<g transform="translate({x},{y})">{_panel(CURVES[name], found)}</g>')
    note = "CPU time against size, both logarithmic; dashed: the order of the work, through the last point"
    out.append(f'<text x="{LEFT}" y="{height - 10}">{note}</text></svg>')
    return "\n".join(out) + "\n"
