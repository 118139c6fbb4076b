"""Where everything stands on the page: sizes of nodes, layers, paths of edges. The page only draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gramgraph._show import clean
from gramgraph.plot.drawing import text_length
from gramgraph.plot.layout import Layout, curve, layered_layout, orient

#: Models up to so many variables are drawn with bars, or compact; larger ones by neighborhoods.
BAR_NODES, COMPACT_NODES, NEAR_NODES = 120, 300, 150

HEADER, ROW, FOOT = 30, 24, 6
CURVE = (216, 136)
COMPACT = (104, 48)
MOST_ROWS = 7
LABEL = 84.0
TIP = 7.0
#: Width of the narrowest letters, in sizes of the font.
NARROWEST = 0.3


def fitted(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it takes more than `room` pixels."""
    text = clean(text[: int(room / (NARROWEST * size)) + 2])  # of a name without end, what could fit at all
    if text_length(text, size, bold=bold) <= room:
        return text
    while text and text_length(text + "…", size, bold=bold) > room:
        text = text[:-1]
    return text + "…"


def bar_size(node: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a node with bars, a curve or a ring."""
    if node["kind"] in ("real", "circle"):
        return CURVE
    title = text_length(clean(node["name"]), 13, bold=True) + 52
    if node["kind"] == "other":
        return _step(max(title, 160.0)), HEADER + ROW + FOOT
    label = min(max(text_length(clean(s), 12, bold=True) for s in node["states"]), LABEL)
    rows = min(len(node["states"]), MOST_ROWS)
    if len(node["states"]) > MOST_ROWS:
        label = max(label, text_length("99 more", 12))
    return _step(max(title, 12 + label + 8 + 72 + 56)), HEADER + ROW * rows + FOOT


def compact_size(node: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a compact node."""
    return min(max(COMPACT[0], 8 * -(-(text_length(clean(node["name"]), 12, bold=True) + 32) // 8)), 184.0), COMPACT[1]


def _step(width: float) -> float:
    return float(min(max(8 * -(-width // 8), 160), 232))


def draw(nodes: Sequence[dict[str, Any]], edges: Sequence[tuple[int, int]], *, directed: bool, full: bool) -> Any:
    """Positions of the nodes (left, top, width, height), texts cut to fit, and paths of the edges."""
    sizes = [bar_size(node) if full else compact_size(node) for node in nodes]
    arrows = list(edges) if directed else orient(len(nodes), edges)
    gaps = (40.0, 52.0) if full else (18.0, 30.0)
    lay = layered_layout(
        len(nodes), arrows, widths=[w for w, _ in sizes], heights=[h for _, h in sizes], gap_x=gaps[0], gap_y=gaps[1]
    )
    return {
        "w": round(lay.width, 1),
        "h": round(lay.height, 1),
        "nodes": [
            [round(x - w / 2, 1), round(y - h / 2, 1), w, h] for (x, y), (w, h) in zip(lay.centers, sizes, strict=True)
        ],
        "names": [
            fitted(node["name"], 13 if full else 12, w - (52 if full else 28), bold=True)
            for node, (w, _) in zip(nodes, sizes, strict=True)
        ],
        "labels": [_labels(node, w) if full else [] for node, (w, _) in zip(nodes, sizes, strict=True)],
        "edges": paths(lay, directed),
    }


def _labels(node: dict[str, Any], width: float) -> list[Any]:
    """Labels as they are written, and where the bars begin."""
    if node["kind"] != "discrete":
        return []
    texts = [fitted(state, 12, LABEL, bold=True) for state in node["states"]]
    room = max(text_length(text, 12, bold=True) for text in texts)
    if len(texts) > MOST_ROWS:
        room = max(room, text_length("99 more", 12))
    return [round(12 + min(room, LABEL) + 8, 1), texts]


def paths(lay: Layout, directed: bool) -> list[Any]:
    """Of each edge the path, and the point and direction (1 down, −1 up) of its head."""
    out: list[Any] = []
    for route in lay.routes:
        if len(route) < 2:
            out.append(["", 0, 0, 1])
            continue
        (x0, y0), (xn, yn) = route[0], route[-1]
        down = 1.0 if yn >= y0 else -1.0
        end = yn - down * (TIP if directed else 0.0)
        rim = min(route[-2][1], end) if down > 0 else max(route[-2][1], end)
        text = f"M{x0:.1f} {y0:.1f}"
        for (xa, ya), (xb, yb), (x, y) in curve([*route[:-2], (route[-2][0], rim), (xn, end)]):
            text += f"C{xa:.1f} {ya:.1f} {xb:.1f} {yb:.1f} {x:.1f} {y:.1f}"
        out.append([text, round(xn, 1), round(yn, 1), int(down), round(x0, 1), round(y0, 1)])
    return out
