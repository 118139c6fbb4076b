"""Densities by their values at nodes that stand for boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Boxes:
    """Masses of boxes, with a node in the middle of each: a density of one case, linear between nodes.

    Boxes may leave gaps, where there is nothing. One without width is a value that is certain.

    Parameters
    ----------
    nodes : (m,) places, increasing.
    low : (m,) left ends of the boxes.
    high : (m,) right ends of the boxes.
    masses : (m,) probabilities of the boxes, summing to one.
    circle : whether they are angles.

    Examples
    --------
    >>> two = Boxes(np.array([0.5, 1.5]), np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    >>> two.moments()[0], two.cdf(np.array([1.0])).tolist(), two.density(np.array([0.75, 3.0])).tolist()
    (1.0, [0.5], [0.5, 0.0])
    """

    nodes: FloatArray
    low: FloatArray
    high: FloatArray
    masses: FloatArray
    circle: bool = False

    def moments(self) -> tuple[float, float]:
        """Mean and variance; of angles the mean direction and −2 log R, R the resultant length."""
        p = self.masses
        if self.circle:
            c, s = (p * np.cos(self.nodes)).sum(), (p * np.sin(self.nodes)).sum()
            length = np.clip(np.hypot(c, s), 1e-12, 1.0)
            return float(np.arctan2(s, c)), float(-2.0 * np.log(length))
        mean = (p * self.nodes).sum()
        return float(mean), float((p * (self.nodes - mean) ** 2).sum())

    @cached_property
    def _heights(self) -> FloatArray:
        """Densities at the nodes."""
        width = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.masses > 0.0, self.masses / width, 0.0 * self.masses)

    def points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The nodes, their masses and the density there, for integrals."""
        return self.nodes, self.masses, self._heights

    def density(self, x: FloatArray) -> FloatArray:
        """p(x): linear between nodes whose boxes meet, constant to the ends of others."""
        if self.circle:
            x = np.mod(x + np.pi, 2.0 * np.pi) - np.pi
        nodes, low, high, f = self.nodes, self.low, self.high, self._heights
        k = np.clip(np.searchsorted(high, x, side="left"), 0, len(nodes) - 1)
        other = np.clip(np.where(x < nodes[k], k - 1, k + 1), 0, len(nodes) - 1)
        meets = np.where(other < k, np.isclose(high[other], low[k]), np.isclose(low[other], high[k])) & (other != k)
        gap = np.where(meets, nodes[other] - nodes[k], 1.0)
        rise = np.where(meets, f[other] - f[k], 0.0)
        found = f[k] + rise / np.where(gap == 0.0, 1.0, gap) * (x - nodes[k])
        return np.where((x >= low[k]) & (x <= high[k]), np.maximum(found, 0.0), 0.0)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of boxes and the mass below them."""
        total = np.cumsum(self.masses)
        ends = np.stack([self.low, self.high], axis=1).ravel()
        return ends, np.stack([total - self.masses, total], axis=1).ravel()

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X ≤ x); on the circle from −π on."""
        return np.interp(x, *self._ends)

    def quantile(self, q: FloatArray) -> FloatArray:
        """The value below which a share q lies; on the circle from −π on."""
        ends, below = self._ends
        return np.interp(q, below / below[-1], ends)

    def mode(self) -> float:
        """Where the density is largest, between nodes by a parabola."""
        f = self._heights
        k = int(f.argmax())
        shift = 0.0
        if 0 < k < len(f) - 1:
            curve = f[k - 1] - 2.0 * f[k] + f[k + 1]
            shift = 0.5 * (f[k - 1] - f[k + 1]) / curve if curve < 0.0 else 0.0
        return float(self.nodes[k] + np.clip(shift, -0.5, 0.5) * (self.high[k] - self.low[k]))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n values, by the inverse distribution function."""
        return self.quantile(rng.random(n))
