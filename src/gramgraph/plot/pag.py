"""Pictures of graphs with marks at both ends of every edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._show import shorten
from gramgraph.models.pag import PAG
from gramgraph.plot.axes import axes, plain
from gramgraph.plot.drawing import FONT, HEADER, MAX_NAME, PAD, text_length
from gramgraph.plot.layout import layered_layout

_LINE, _FILL, _RIM = "#7b8794", "#e4e9f0", "#9aa5b1"


def plot_pag(graph: PAG, *, ax: Any = None) -> Any:
    """A partial ancestral graph with arrowheads, tails and circles (unknown) at the ends of its edges.

    Parameters
    ----------
    graph : the partial ancestral graph.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> ax = plot_pag(gg.learn.PAG(("a", "b"), (("a", "o", ">", "b"),)))  # doctest: +SKIP
    """
    at = {name: i for i, name in enumerate(graph.nodes)}
    order = _ranks(graph, at)
    edges = [tuple(sorted((at[a], at[b]), key=lambda v: (order[v], v))) for a, _, _, b in graph.edges]
    labels = [shorten(name, MAX_NAME) for name in graph.nodes]
    widths = [max(text_length(label, FONT) + 2 * PAD, 34.0) for label in labels]
    heights = [HEADER + 4.0] * len(labels)
    layout = layered_layout(len(labels), [(u, v) for u, v in edges], widths=widths, heights=heights)
    ax = axes(ax)
    centers = np.array(layout.centers, dtype=np.float64).reshape(-1, 2) * (1.0, -1.0)
    for a, mark_a, mark_b, b in graph.edges:
        _edge(ax, centers, widths, heights, (at[a], at[b]), (mark_a, mark_b))
    for (x, y), label in zip(centers, labels, strict=True):
        box = {"boxstyle": "round,pad=0.4", "facecolor": _FILL, "edgecolor": _RIM}
        ax.text(x, y, plain(label), ha="center", va="center", bbox=box, zorder=3)
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.axis("off")
    return ax


def _ranks(graph: PAG, at: dict[str, int]) -> list[int]:
    """Causes before effects, as far as arrowheads say so."""
    rank = [0] * len(at)
    for _ in graph.nodes:
        for a, mark_a, mark_b, b in graph.edges:
            if mark_b == ">" and mark_a != ">":
                rank[at[b]] = min(max(rank[at[b]], rank[at[a]] + 1), len(at))
            elif mark_a == ">" and mark_b != ">":
                rank[at[a]] = min(max(rank[at[a]], rank[at[b]] + 1), len(at))
    return rank


def _edge(
    ax: Any, centers: Any, widths: list[float], heights: list[float], ends: tuple[int, int], marks: tuple[str, str]
) -> None:
    tips = [_rim(centers[u], centers[v], widths[u], heights[u]) for u, v in (ends, ends[::-1])]
    style = f"{'<|' if marks[0] == '>' else ''}-{'|>' if marks[1] == '>' else ''}"
    ax.annotate(
        "",
        xy=tips[1],
        xytext=tips[0],
        arrowprops={"arrowstyle": style, "color": _LINE, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13},
        zorder=1,
    )
    for tip, mark in zip(tips, marks, strict=True):
        if mark == "o":
            ax.plot(*tip, "o", markersize=6, markerfacecolor="white", markeredgecolor=_LINE, zorder=2)


def _rim(center: Any, other: Any, width: float, height: float) -> Any:
    """Where the line to another node leaves the box, with a little room."""
    away = np.asarray(other) - center
    reach = min(
        (width / 2 + 8) / max(abs(float(away[0])), 1e-9), (height / 2 + 8) / max(abs(float(away[1])), 1e-9), 0.45
    )
    return center + reach * away
