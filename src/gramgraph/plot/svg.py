"""Pictures as SVG text: no dependency, safe to put in a page (every name is escaped, nothing is loaded)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gramgraph._show import clean, probability_text, shorten
from gramgraph.answers import Answer
from gramgraph.models import GraphicalModel
from gramgraph.plot import drawing as d
from gramgraph.plot.layout import Point, curve
from gramgraph.plot.plates import Frame

_MARGIN = 16.0
_STYLE = (
    ".gg text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1f2933}"
    ".gg .box{fill:#fff;stroke:#9aa5b1;stroke-width:1}"
    ".gg .head{fill:#e4e9f0}"
    ".gg .seen .box{stroke:#c98a1b;stroke-width:1.4}"
    ".gg .seen .head{fill:#fbe3b5}"
    ".gg .edge{fill:none;stroke:#7b8794;stroke-width:1.2}"
    ".gg .tip{fill:#7b8794;stroke:none}"
    ".gg .name{font-size:12px;font-weight:600;text-anchor:middle}"
    ".gg .line{font-size:12px;text-anchor:middle}"
    ".gg .state{font-size:10.5px}"
    ".gg .mid{font-size:10.5px;text-anchor:middle}"
    ".gg .num{font-size:10px;text-anchor:end;fill:#52606d}"
    ".gg .track{fill:#eef1f5}"
    ".gg .bar{fill:#4c78a8}"
    ".gg .seen .bar{fill:#dd9a27}"
    ".gg .sep{font-size:10px;text-anchor:middle;fill:#52606d}"
    ".gg .paper{fill:#fff}"
    ".gg .plate{fill:none;stroke:#9aa5b1;stroke-width:1.2}"
    ".gg .dot{fill:#1f2933}"
)


def network_svg(
    model: GraphicalModel, answer: Answer | None = None, *, evidence: Mapping[str, Any] | None = None
) -> str:
    """The graph of a model as an SVG picture, with bars for the beliefs of `answer`, observed nodes marked.

    Parents stand above their children; an undirected model is drawn from a node in its middle. The text depends on
    nothing but the arguments.

    Parameters
    ----------
    model : the network or other graphical model.
    answer : beliefs that are drawn as bars, or None.
    evidence : what was observed, or None.

    Examples
    --------
    >>> import gramgraph as gg
    >>> text = network_svg(gg.datasets.asia())
    >>> text.startswith("<svg"), text.count('class="head"')
    (True, 8)
    """
    return _render(d.draw_model(model, answer, evidence))


def junction_tree_svg(cliques: Sequence[Sequence[str]], edges: Sequence[tuple[int, int]]) -> str:
    """A tree of cliques as an SVG picture, with separators on the edges.

    Parameters
    ----------
    cliques : names of each clique.
    edges : pairs of positions in `cliques`.

    Examples
    --------
    >>> "B, C" in junction_tree_svg([("A", "B", "C"), ("B", "C", "D")], [(0, 1)])
    True
    """
    return _render(d.draw_junction_tree(cliques, edges))


def _render(drawing: d.Drawing) -> str:
    layout = drawing.layout
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#fff"/>',
        f'<g transform="translate({_MARGIN:.0f},{_MARGIN:.0f})">',
    ]
    parts += [_frame(frame) for frame in drawing.frames]
    parts += [_edge(route, drawing.directed) for route in layout.routes]
    parts += [_separator(route, label) for route, label in zip(layout.routes, drawing.labels, strict=True) if label]
    parts += [_box(box, center) for box, center in zip(drawing.boxes, layout.centers, strict=True)]
    parts.append("</g></svg>")
    return "\n".join(parts)


def _frame(frame: Frame) -> str:
    """The rectangle of a plate."""
    x, y = frame.x + frame.width - 5, frame.y + frame.height - 4
    return (
        f'<rect class="plate" x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" '
        f'height="{frame.height:.1f}" rx="6"/>'
        f'<text class="num" x="{x:.1f}" y="{y:.1f}">{escape(clean(frame.label))}</text>'
    )


def _dot(box: d.Box, center: Point) -> str:
    """A hyper-parameter: a dot at the lower end of its box, the name above it."""
    x, y = center[0], center[1] + box.height / 2 - 4
    name = escape(shorten(box.name, d.MAX_NAME))
    return (
        f'<g class="hyper"><title>{escape(clean(box.name))}</title>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        f'<text class="name" x="{x:.1f}" y="{y - 8:.1f}">{name}</text></g>'
    )


def _edge(route: tuple[Point, ...], directed: bool) -> str:
    if len(route) < 2:
        return ""
    (x0, y0), (xn, yn) = route[0], route[-1]
    tip = 7.0 if directed else 0.0
    down = 1.0 if yn >= y0 else -1.0
    path = [f"M{x0:.1f} {y0:.1f}"]
    end = yn - down * tip  # the line ends where the arrowhead begins
    rim = min(route[-2][1], end) if down > 0 else max(route[-2][1], end)
    for (xa, ya), (xb, yb), (x, y) in curve([*route[:-2], (route[-2][0], rim), (xn, end)]):
        path.append(f"C{xa:.1f} {ya:.1f} {xb:.1f} {yb:.1f} {x:.1f} {y:.1f}")
    out = f'<path class="edge" d="{"".join(path)}"/>'
    if directed:
        back = yn - down * (tip + 1)
        out += f'<path class="tip" d="M{xn:.1f} {yn:.1f}L{xn - 3.6:.1f} {back:.1f}L{xn + 3.6:.1f} {back:.1f}Z"/>'
    return out


def _separator(route: tuple[Point, ...], label: str) -> str:
    (xa, ya), (xb, yb) = route[0], route[-1]
    x, y, width = (xa + xb) / 2, (ya + yb) / 2, d.text_length(label, 10) + 6
    return (
        f'<rect class="paper" x="{x - width / 2:.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14" rx="3"/>'
        f'<text class="sep" x="{x:.1f}" y="{y + 3.5:.1f}">{escape(clean(label))}</text>'
    )


def _box(box: d.Box, center: Point) -> str:
    if box.dot:
        return _dot(box, center)
    left, top = center[0] - box.width / 2, center[1] - box.height / 2
    kind = "node seen" if box.observed is not None else "node"
    parts = [
        f'<g class="{kind}" transform="translate({left:.1f},{top:.1f})"><title>{escape(clean(_tooltip(box)))}</title>',
        f'<rect class="box" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"/>',
    ]
    middle = box.width / 2
    if box.lines:
        parts += [
            f'<text class="line" x="{middle:.1f}" y="{d.ROW * (k + 1):.1f}">{escape(clean(line))}</text>'
            for k, line in enumerate(box.lines)
        ]
        return "".join(parts) + "</g>"
    plain = not box.rows and box.observed is None
    head = box.height if plain else d.HEADER
    name = escape(shorten(box.name, d.MAX_NAME))
    parts.append(_head(box.width, head, plain))
    parts.append(f'<text class="name" x="{middle:.1f}" y="{head / 2 + 4.2:.1f}">{name}</text>')
    if box.rows:
        parts += [_row(box, k, label, p) for k, (label, p) in enumerate(box.rows)]
    elif box.observed is not None:
        seen = escape(shorten(box.observed, d.MAX_NAME))
        parts.append(f'<text class="mid" x="{middle:.1f}" y="{d.HEADER + 14:.1f}">{seen}</text>')
    return "".join(parts) + "</g>"


def _head(width: float, height: float, whole: bool) -> str:
    """The colored part of a box; its lower corners are round only where the box ends with it."""
    w, h, r = width - 1, height - (1 if whole else 0.5), 4.5
    if whole:
        return f'<rect class="head" x=".5" y=".5" width="{w:.1f}" height="{h:.1f}" rx="{r}"/>'
    return (
        f'<path class="head" d="M.5 {h:.1f}V{r + 0.5}A{r} {r} 0 0 1 {r + 0.5} .5H{w + 0.5 - r:.1f}'
        f'A{r} {r} 0 0 1 {w + 0.5:.1f} {r + 0.5}V{h:.1f}Z"/>'
    )


def _row(box: d.Box, k: int, label: str, p: float) -> str:
    y = d.HEADER + 3 + d.ROW * k
    x = box.width - d.NUMBER - d.BAR - 2
    fill = d.BAR * min(max(p, 0.0), 1.0) if p == p else 0.0
    return (
        f'<text class="state" x="{d.PAD}" y="{y + 11:.1f}">{escape(shorten(label, d.MAX_LABEL))}</text>'
        f'<rect class="track" x="{x:.1f}" y="{y + 3:.1f}" width="{d.BAR}" height="9" rx="1.5"/>'
        f'<rect class="bar" x="{x:.1f}" y="{y + 3:.1f}" width="{fill:.1f}" height="9" rx="1.5"/>'
        f'<text class="num" x="{box.width - 5:.1f}" y="{y + 11:.1f}">{escape(d.percent_text(p))}</text>'
    )


def _tooltip(box: d.Box) -> str:
    seen = f" = {box.observed} (observed)" if box.observed is not None else ""
    rows = "; ".join(f"{label}: {probability_text(p)}" for label, p in box.rows)
    return f"{box.name}{seen}" + (f" — {rows}" if rows else "")
