"""Where the nodes of a plate model stand: strips side by side, so that every plate is one rectangle.

Variables in the same plates share a strip; strips are ordered so that those of a plate stand next to each other, and
the rectangle of a plate spans them. Inside a strip parents stand above their children.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

from gramgraph.plot.layout import Layout

PAD, LABEL, GAP_X, GAP_Y = 10.0, 14.0, 14.0, 36.0
#: All orders of so many strips are tried.
FEW_STRIPS = 7


@dataclass(frozen=True)
class Frame:
    """The rectangle of a plate, with its label in the lower right corner."""

    label: str
    x: float
    y: float
    width: float
    height: float


def place_plates(model: Any, widths: Sequence[float], heights: Sequence[float]) -> tuple[Layout, tuple[Frame, ...]]:
    """Centers of the boxes of all variables, straight edges between them, and the frames, outer ones first."""
    names = model.variables
    layers = _layers(model)
    strips = [model.plates_of(name) for name in names]
    first = min((layers[v] for v, strip in enumerate(strips) if strip), default=0)
    above = [v for v, strip in enumerate(strips) if not strip and layers[v] < first and model.children(names[v])]
    order = _ordered(list(dict.fromkeys(s for v, s in enumerate(strips) if v not in above)), list(model.plates))
    margin = 2 * PAD * max((len(model.template.chain(p)) for p in model.plates), default=0)
    xs, left = [0.0] * len(names), margin
    spans: dict[tuple[str, ...], tuple[float, float]] = {}
    depth = max((len(s) for s in order), default=0)
    for strip in order:
        rows: dict[int, list[int]] = {}
        for v, own in enumerate(strips):
            if own == strip and v not in above:
                rows.setdefault(layers[v], []).append(v)
        wide = max(sum(widths[v] for v in row) + GAP_X * (len(row) - 1) for row in rows.values())
        for row in rows.values():
            x = left + (wide - sum(widths[v] for v in row) - GAP_X * (len(row) - 1)) / 2
            for v in row:
                xs[v] = x + widths[v] / 2
                x += widths[v] + GAP_X
        spans[strip] = (left, left + wide)
        left += wide + GAP_X + 2 * PAD * max(depth, 1)
    _place_above(model, above, layers, xs, widths)
    ys = _heights(layers, heights, margin)
    frames = tuple(_frames(model, strips, spans, ys, heights))
    centers = tuple(zip(xs, ys, strict=True))
    right = max([x + widths[v] / 2 for v, x in enumerate(xs)] + [f.x + f.width for f in frames], default=0.0)
    bottom = max([y + heights[v] / 2 for v, y in enumerate(ys)] + [f.y + f.height for f in frames], default=0.0)
    routes = []
    for child, row in enumerate(model.parent_positions):
        for parent in row:
            start = (xs[parent], ys[parent] + heights[parent] / 2)
            routes.append((start, (xs[child], ys[child] - heights[child] / 2)))
    return Layout(centers, tuple(routes), right + 4.0, bottom + 4.0), frames


def _layers(model: Any) -> list[int]:
    """The longest way from above; a variable without parents stands just above its children."""
    out = [0] * len(model)
    for name in model.topological_order():
        v = model.index(name)
        out[v] = max((out[p] + 1 for p in model.parent_positions[v]), default=0)
    for name in reversed(model.topological_order()):
        v = model.index(name)
        children = [out[model.index(c)] for c in model.children(name)]
        if children and not model.parent_positions[v]:
            out[v] = min(children) - 1
    return out


def _place_above(model: Any, above: list[int], layers: list[int], xs: list[float], widths: Sequence[float]) -> None:
    """Variables above all plates stand over their children, apart from each other."""
    for layer in sorted({layers[v] for v in above}, reverse=True):
        row = [v for v in above if layers[v] == layer]
        for v in row:
            children = [xs[model.index(c)] for c in model.children(model.variables[v])]
            xs[v] = sum(children) / len(children)
        row.sort(key=lambda v: xs[v])
        for a, b in pairwise(row):
            xs[b] = max(xs[b], xs[a] + (widths[a] + widths[b]) / 2 + GAP_X)
        low = min(xs[v] - widths[v] / 2 for v in row)
        for v in row:
            xs[v] += max(0.0, -low)


def _ordered(strips: list[tuple[str, ...]], plates: list[str]) -> list[tuple[str, ...]]:
    """Strips so that those of each plate are neighbors, as far as that is possible."""

    def gaps(order: Iterable[tuple[str, ...]]) -> int:
        total = 0
        for plate in plates:
            at = [i for i, strip in enumerate(order) if plate in strip]
            total += at[-1] - at[0] + 1 - len(at) if at else 0
        return total

    if len(strips) <= FEW_STRIPS:
        return list(min(permutations(strips), key=gaps))
    return sorted(strips, key=lambda strip: [plates.index(p) for p in strip])


def _heights(layers: list[int], heights: Sequence[float], top: float) -> list[float]:
    """The middle of each variable's layer."""
    out, y = [0.0] * len(layers), top
    for layer in range(max(layers, default=0) + 1):
        members = [v for v, own in enumerate(layers) if own == layer]
        tall = max((heights[v] for v in members), default=0.0)
        for v in members:
            out[v] = y + tall / 2
        y += tall + GAP_Y
    return out


def _frames(
    model: Any, strips: list[tuple[str, ...]], spans: dict[tuple[str, ...], tuple[float, float]], ys: list[float],
    heights: Sequence[float],
) -> list[Frame]:  # fmt: skip
    """Rectangles around the members; an outer plate leaves room for those inside it."""
    out = []
    inside = {p: _levels(model, p) for p in model.plates}
    for plate in sorted(model.plates, key=lambda p: len(model.template.chain(p))):
        members = [v for v, strip in enumerate(strips) if plate in strip]
        crossed = [
            p for p in model.plates if p not in model.template.chain(plate) and any(p in strips[v] for v in members)
        ]
        crossed = [p for p in crossed if plate not in model.template.chain(p)]
        more = 5.0 if any(list(model.plates).index(p) < list(model.plates).index(plate) for p in crossed) else 0.0
        pad = PAD * inside[plate]
        left = min(spans[strips[v]][0] for v in members) - pad
        right = max(spans[strips[v]][1] for v in members) + pad
        top = min(ys[v] - heights[v] / 2 for v in members) - pad - more
        bottom = (
            max(ys[v] + heights[v] / 2 for v in members)
            + PAD * inside[plate]
            + (LABEL - 4.0) * inside[plate]
            + 3 * more
        )
        size = model.plates[plate].size or model.template.chosen_sizes().get(plate)
        label = plate if size is None else f"{plate}: {size}"
        out.append(Frame(label, left, top, right - left, bottom - top))
    return out


def _levels(model: Any, plate: str) -> int:
    """How many plates are nested in one, itself included."""
    inner = [p for p in model.plates if model.plates[p].outer == plate]
    return 1 + max((_levels(model, p) for p in inner), default=0)
