"""Pictures with matplotlib: every function takes `ax=` and returns the axes it drew on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph._show import clean, joined, shorten
from gramgraph.answers import Answer, Belief
from gramgraph.models import GraphicalModel
from gramgraph.plot import drawing as d
from gramgraph.plot.axes import axes
from gramgraph.plot.layout import curve
from gramgraph.plot.plates import Frame

_BLUE, _AMBER, _GRAY = "#4c78a8", "#dd9a27", "#7b8794"
_TEXT = "#52606d"  # contrast 6.5 on white
_LARGEST = 60.0  # inches; a larger drawing is shrunk


def plot_beliefs(answer: Answer | Belief, *, ax: Any = None) -> Any:
    """Horizontal bars, one per state, grouped by variable; for a table of cases an image with one row per case.

    Parameters
    ----------
    answer : what a query gave.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> ax = plot_beliefs(gg.datasets.asia().query("bronc"))  # doctest: +SKIP
    """
    beliefs = _named(answer)
    if any(belief.batched for _, belief in beliefs):
        return _plot_cases(beliefs, ax)
    labels: list[str] = []
    values: list[float] = []
    at: list[float] = []
    heads: list[tuple[float, str]] = []
    y = 0.0
    for name, belief in beliefs:
        heads.append((y, name))
        y += 1.0
        for label, p in zip(belief._labels(), belief.probabilities.ravel().tolist(), strict=True):
            labels.append(shorten(joined(label), 28))
            values.append(p)
            at.append(y)
            y += 1.0
        y += 0.4
    ax = _axes(ax, size=(5.0, max(1.2, 0.24 * y + 0.5)))
    ax.barh(at, values, height=0.72, color=_BLUE)
    for where, p in zip(at, values, strict=True):
        ax.text(min(p, 1.0) + 0.01 if p == p else 0.01, where, f"{p:.3f}", va="center", fontsize=8, color=_TEXT)
    for where, name in heads:
        ax.text(0.008, where + 0.1, _plain(shorten(name, 40)), va="center", fontsize=9, fontweight="bold")
    ax.set_yticks(at, [_plain(label) for label in labels], fontsize=8)
    ax.set_ylim(y - 0.2, -0.8)
    ax.set_xlim(0.0, 1.12)
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel("probability", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_network(
    model: GraphicalModel,
    answer: Answer | None = None,
    *,
    evidence: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """The graph of a model with bars for the beliefs of `answer`; the same picture as `network_svg`.

    Parameters
    ----------
    model : the network or other graphical model.
    answer : beliefs that are drawn as bars, or None.
    evidence : what was observed, or None.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.sprinkler()
    >>> len(plot_network(net, net.query(None, {"wet": "yes"})).texts) > 0
    True
    """
    return _draw(d.draw_model(model, answer, evidence), ax)


def plot_comparison(found: Any, *, ax: Any = None) -> Any:
    """Two graphs in one picture: what `gg.compare` found; edges that differ say how.

    Parameters
    ----------
    found : a `Comparison`.
    ax : axes to draw on; None makes some.

    Examples
    --------
    >>> import gramgraph as gg
    >>> ax = plot_comparison(gg.compare("a -> b", "b -> a"))  # doctest: +SKIP
    """
    return _draw(d.draw_comparison(found), ax)


def plot_junction_tree(tree: Any, *, ax: Any = None) -> Any:
    """The cliques of a junction tree and their separators; a model is turned into its junction tree first.

    Parameters
    ----------
    tree : a junction tree, or a model.
    ax : axes to draw on; None makes new ones.

    Examples
    --------
    >>> import gramgraph as gg
    >>> len(plot_junction_tree(gg.datasets.sprinkler()).texts) > 0
    True
    """
    return _draw(d.draw_junction_tree(*d.tree_parts(tree)), ax)


def _axes(ax: Any, *, size: tuple[float, float]) -> Any:
    return axes(ax, size=size, instead=" (network_svg needs nothing)")


def _plain(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar sign would start a formula."""
    return clean(text).replace("$", r"\$")


def _named(answer: Answer | Belief) -> list[tuple[str, Belief]]:
    if isinstance(answer, Belief):
        return [(", ".join(var.name for var in answer.scope), answer)]
    return [(joined(key), answer[key]) for key in answer]


def _plot_cases(beliefs: list[tuple[str, Belief]], ax: Any) -> Any:
    image = np.concatenate(
        [b.probabilities.reshape(len(b.probabilities), len(b._labels())) for _, b in beliefs], axis=1
    )
    columns = [f"{name} = {joined(label)}" for name, belief in beliefs for label in belief._labels()]
    ax = _axes(ax, size=(max(3.0, 0.35 * len(columns) + 1.5), 4.5))
    drawn = ax.imshow(image, aspect="auto", vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest")
    if len(columns) <= 60:
        ax.set_xticks(range(len(columns)), [_plain(shorten(c, 28)) for c in columns], rotation=90, fontsize=8)
    ax.set_ylabel("case", fontsize=9)
    ax.figure.colorbar(drawn, ax=ax, label="probability")
    return ax


def _draw(drawing: d.Drawing, ax: Any) -> Any:
    """A unit of the layout is a point on paper, unless the axes are smaller; the fonts follow."""
    width, height = drawing.layout.width + 16, drawing.layout.height + 16
    unit, own = min(1.0, 72 * _LARGEST / max(width, height)), ax is None
    ax = _axes(ax, size=(max(width * unit / 72 + 0.2, 1.5), max(height * unit / 72 + 0.2, 1.0)))
    ax.set_xlim(-8, width - 8)
    ax.set_ylim(height - 8, -8)
    ax.set_aspect("equal")
    ax.set_axis_off()
    if not own:
        frame, points = ax.get_window_extent(), 72.0 / ax.figure.dpi
        unit = min(1.0, frame.width * points / width, frame.height * points / height)
    pen = _Pen(ax, unit)
    for frame in drawing.frames:
        pen.frame(frame)
    for route, label in zip(drawing.layout.routes, drawing.labels, strict=True):
        if len(route) > 1:
            pen.edge(route, drawing.directed)
        if label:
            x, y = (np.asarray(route[0]) + np.asarray(route[-1])) / 2
            pen.text(x, y, label, size=8.5, color=_TEXT, backgroundcolor="white")
    for box, (x, y) in zip(drawing.boxes, drawing.layout.centers, strict=True):
        if box.dot:
            pen.dot(box, x, y)
        else:
            pen.box(box, x - box.width / 2, y - box.height / 2)
    return ax


class _Pen:
    """Draws on axes; `unit` is the size of a unit of the layout in points."""

    def __init__(self, ax: Any, unit: float) -> None:
        self.ax, self.unit = ax, unit

    def text(self, x: float, y: float, text: str, *, size: float, **style: Any) -> None:
        style = {"ha": "center", "va": "center", "zorder": 6} | style
        self.ax.text(x, y, _plain(text), fontsize=size * self.unit, **style)

    def rectangle(self, x: float, y: float, width: float, height: float, color: str, *, zorder: int = 4) -> None:
        from matplotlib.patches import Rectangle

        self.ax.add_patch(Rectangle((x, y), width, height, fc=color, ec="none", zorder=zorder))

    def frame(self, frame: Frame) -> None:
        """The rectangle of a plate."""
        from matplotlib.patches import FancyBboxPatch

        at, style = (frame.x, frame.y), "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch(at, frame.width, frame.height, boxstyle=style, fc="none", ec="#9aa5b1", lw=self.unit)
        self.ax.add_patch(patch)
        x, y = frame.x + frame.width - 5, frame.y + frame.height - 4
        self.text(x, y, frame.label, size=8.5, ha="right", va="bottom", color=_TEXT)

    def dot(self, box: d.Box, x: float, y: float) -> None:
        """A hyper-parameter."""
        from matplotlib.patches import Circle

        self.ax.add_patch(Circle((x, y + box.height / 2 - 4), 3.5, fc="#1f2933", ec="none", zorder=4))
        self.text(x, y + box.height / 2 - 16, shorten(box.name, d.MAX_NAME), size=10, fontweight="bold")

    def edge(self, route: tuple[tuple[float, float], ...], directed: bool) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        points, codes = [route[0]], [Path.MOVETO]
        for piece in curve(route):
            points += piece
            codes += [Path.CURVE4] * 3
        self.ax.add_patch(
            FancyArrowPatch(
                path=Path(points, codes),
                arrowstyle="-|>" if directed else "-",
                mutation_scale=9 * self.unit,
                color=_GRAY,
                lw=self.unit,
            )
        )

    def box(self, box: d.Box, left: float, top: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        seen = box.observed is not None
        style, color = "round,pad=0,rounding_size=4", _AMBER if seen else "#9aa5b1"
        self.ax.add_patch(
            FancyBboxPatch(
                (left, top), box.width, box.height, boxstyle=style, fc="white", ec=color, lw=self.unit, zorder=3
            )
        )
        middle = left + box.width / 2
        for k, line in enumerate(box.lines):
            self.text(middle, top + d.ROW * (k + 0.8), line, size=10)
        if box.lines:
            return
        head = box.height if not box.rows and not seen else d.HEADER
        self.rectangle(left + 1, top + 1, box.width - 2, head - 2, "#fbe3b5" if seen else "#e4e9f0")
        self.text(middle, top + head / 2, shorten(box.name, d.MAX_NAME), size=10, fontweight="bold")
        if not box.rows and box.observed is not None:
            self.text(middle, top + d.HEADER + 9, shorten(box.observed, d.MAX_NAME), size=9)
        for k, (label, p) in enumerate(box.rows):
            self.row(box, left, top + d.HEADER + 3 + d.ROW * k, label, p)

    def row(self, box: d.Box, left: float, y: float, label: str, p: float) -> None:
        x = left + box.width - d.NUMBER - d.BAR - 2
        fill = d.BAR * min(max(p, 0.0), 1.0) if p == p else 0.0
        self.rectangle(x, y + 3, d.BAR, 9, "#eef1f5")
        self.rectangle(x, y + 3, fill, 9, _AMBER if box.observed is not None else _BLUE, zorder=5)
        self.text(left + d.PAD, y + 7.5, shorten(label, d.MAX_LABEL), size=9, ha="left")
        self.text(left + box.width - 5, y + 7.5, d.percent_text(p), size=8.5, ha="right")
