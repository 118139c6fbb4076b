"""Nodes of one variable: panels of equally spaced boxes, moved to where the posterior has its mass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Circle, Positive, Var

#: A box with less than 10⁻¹⁰ of the mass holds nothing of the posterior, one with less than 10⁻⁶ where nodes are few:
#: far tails would then take the nodes that the bulk needs.
_MANY, _FEW, _STRICT, _LOOSE = 64, 24, 10.0, 6.0
#: A box at the end of the line with so many times that share tells that the line goes on.
_AT_THE_END = 100.0
#: Boxes whose density is above this share of the largest are the bulk, which has nodes of its own where it is narrow.
_BULK, _NARROW, _BULK_SHARE = 1e-4, 0.4, 0.75
_LEAST = 4
#: Panels are at least so many times as wide as their numbers are large: what has no noise stands in boxes of any size.
_FINEST = 1e-9


@dataclass(frozen=True, eq=False)
class Grid:
    """Panels (low, high, boxes) in the coordinate t: x itself, its logarithm for positive numbers, or an angle.

    A node is the middle of its box and weighs the length of the box in x. Sums over nodes converge faster than any
    power of their number for smooth functions that vanish at the ends.

    >>> from gramgraph.variables import real
    >>> grid = Grid(real("x"), ((0.0, 1.0, 4),))
    >>> grid.x.tolist(), grid.weights.tolist()
    ([0.125, 0.375, 0.625, 0.875], [0.25, 0.25, 0.25, 0.25])
    """

    var: Var
    panels: tuple[tuple[float, float, int], ...]

    @classmethod
    def around(cls, var: Var, draws: FloatArray, n: int) -> Grid:
        """One panel over draws from the prior, 1.5 standard deviations wider on both sides."""
        if isinstance(var.domain, Circle):
            return cls(var, ((-np.pi, np.pi, n),))
        t = np.log(np.maximum(draws, 1e-300)) if isinstance(var.domain, Positive) else draws
        low, high = float(t.min()), float(t.max())
        sd = float(t.std())
        if not sd > 0.0:
            sd = max(1e-6 * abs(low), 1e-9)
        return cls(var, ((low - 1.5 * sd, high + 1.5 * sd, n),))

    @property
    def circle(self) -> bool:
        """Whether the ends meet."""
        return isinstance(self.var.domain, Circle)

    def _x(self, t: FloatArray) -> FloatArray:
        return np.exp(t) if isinstance(self.var.domain, Positive) else t

    @cached_property
    def lengths(self) -> FloatArray:
        """Length of every box in t."""
        return np.concatenate([np.full(n, (high - low) / n) for low, high, n in self.panels])

    @cached_property
    def t(self) -> FloatArray:
        """Middles of the boxes."""
        return np.concatenate([low + (high - low) / n * (np.arange(n) + 0.5) for low, high, n in self.panels])

    @cached_property
    def x(self) -> FloatArray:
        """The nodes."""
        return self._x(self.t)

    @cached_property
    def low(self) -> FloatArray:
        """Lower ends of the boxes in x."""
        return self._x(self.t - 0.5 * self.lengths)

    @cached_property
    def high(self) -> FloatArray:
        """Upper ends of the boxes in x."""
        return self._x(self.t + 0.5 * self.lengths)

    @cached_property
    def weights(self) -> FloatArray:
        """What a node weighs: dx."""
        return self.lengths * self.x if isinstance(self.var.domain, Positive) else self.lengths

    def inside(self, r: int) -> FloatArray:
        """r points in every box, one box after the other."""
        if r == 1:
            return self.x
        part = (np.arange(r) + 0.5) / r - 0.5
        return self._x((self.t[:, None] + self.lengths[:, None] * part).ravel())

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(n for _, _, n in self.panels)

    @property
    def span(self) -> float:
        """Length of all panels."""
        return sum(high - low for low, high, _ in self.panels)

    def times(self, factor: float) -> Grid:
        """Another number of nodes in the same panels."""
        return replace(self, panels=tuple((low, high, max(round(n * factor), 2)) for low, high, n in self.panels))


def negligible(n: int) -> float:
    """The share of the mass below which a box holds nothing, where a variable has n nodes."""
    part = (min(max(n, _FEW), _MANY) - _FEW) / (_MANY - _FEW)
    return float(10.0 ** -(_LOOSE + part * (_STRICT - _LOOSE)))


def refined(grid: Grid, p: FloatArray, n: int) -> tuple[Grid, bool]:
    """(the grid of the next pass from the masses of the boxes, whether it differs enough to be worth one).

    Panels are the connected pieces of the boxes that hold mass, a box wider at both ends; where the bulk is narrow
    against its piece it has a panel of its own. Where mass lies at an end, the line becomes twice as long there.
    """
    p = p / p.sum()
    keep = p > negligible(n)
    ends = _ends(grid, p, _AT_THE_END * negligible(n))
    if any(ends):
        span = grid.panels[-1][1] - grid.panels[0][0]
        low, high = grid.panels[0][0] - ends[0] * span, grid.panels[-1][1] + ends[1] * span
        return Grid(grid.var, ((low, high, n),)), True
    if grid.circle and keep.all() and not _is_narrow(grid, p, keep):
        return _same(grid, n), False
    pieces = _pieces(grid, keep)
    bulk = p / grid.lengths > _BULK * (p / grid.lengths).max()
    if _is_narrow(grid, p, keep):
        inner = _pieces(grid, bulk)
        panels = _split(pieces, inner, n)
    else:
        panels = _shared(pieces, n)
    made = Grid(grid.var, panels)
    change = made.span / grid.span
    finer = float(made.lengths[_at(made, grid, p)]) < 0.8 * float(grid.lengths[p.argmax()])
    return made, bool(change < 0.8 or finer)


def _at(made: Grid, grid: Grid, p: FloatArray) -> int:
    """The new box in which the heaviest old one has its middle."""
    return int(np.abs(made.t - grid.t[p.argmax()]).argmin())


def _is_narrow(grid: Grid, p: FloatArray, keep: Array) -> bool:
    density = p / grid.lengths
    bulk = density > _BULK * density.max()
    return bool(grid.lengths[bulk].sum() < _NARROW * grid.lengths[keep].sum())


def _ends(grid: Grid, p: FloatArray, share: float) -> tuple[bool, bool]:
    """Whether the line is to be longer at its lower and upper end."""
    if grid.circle:
        return False, False
    return bool(p[0] > share), bool(p[-1] > share)


def _pieces(grid: Grid, keep: Array) -> list[tuple[float, float]]:
    """Connected runs of boxes, a box wider at both ends; runs that then meet are one."""
    low, high = grid.t - 0.5 * grid.lengths, grid.t + 0.5 * grid.lengths
    h = np.maximum(grid.lengths, _FINEST * np.abs(grid.t).max())
    found: list[list[float]] = []
    for i in np.flatnonzero(keep):
        a, b = float(low[i] - h[i]), float(high[i] + h[i])
        if found and a <= found[-1][1]:
            found[-1][1] = max(found[-1][1], b)
        else:
            found.append([a, b])
    if grid.circle:
        found = [[max(a, -np.pi), min(b, np.pi)] for a, b in found]
    return [(a, b) for a, b in found]


def _even(n: float) -> int:
    return max(2 * round(n / 2), _LEAST)


def _shared(pieces: list[tuple[float, float]], n: int) -> tuple[tuple[float, float, int], ...]:
    """Nodes by the square root of length, twice as many where there is more than one piece."""
    roots = np.sqrt([b - a for a, b in pieces])
    total = n if len(pieces) == 1 else 2 * n
    return tuple((a, b, _even(total * r / roots.sum())) for (a, b), r in zip(pieces, roots, strict=True))


def _split(
    pieces: list[tuple[float, float]], inner: list[tuple[float, float]], n: int
) -> tuple[tuple[float, float, int], ...]:
    """Panels of the bulk with most of the nodes, and of what lies between."""
    outer: list[tuple[float, float]] = []
    for a, b in pieces:
        at = a
        for c, d in inner:
            if c >= b or d <= a:
                continue
            if c > at:
                outer.append((at, c))
            at = max(at, d)
        if b > at:
            outer.append((at, b))
    inside = [(max(c, pieces[0][0]), min(d, pieces[-1][1])) for c, d in inner]
    panels = [*_shared(inside, round(_BULK_SHARE * n)), *_shared(outer, round((1.0 - _BULK_SHARE) * n))]
    return tuple(sorted(panels))


def _same(grid: Grid, n: int) -> Grid:
    return Grid(grid.var, ((-np.pi, np.pi, n),)) if grid.circle and len(grid.panels) == 1 else grid
