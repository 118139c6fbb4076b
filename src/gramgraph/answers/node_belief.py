"""Beliefs on nodes: a density by its values at points that stand for boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.words import shares, tails
from gramgraph.cells.columns import values_of
from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Circle, Var


class NodeBelief(RealBelief):
    """p(x | e) of a number or an angle on nodes, each in the middle of a box; of one case, or of many (first axis).

    Between nodes the density is linear. `error` is the stated error of the mean: four times its difference to the
    answer with half as many nodes. Boxes may leave gaps, where there is nothing.

    Parameters
    ----------
    var : the variable.
    nodes : (cases, m) places.
    low : (cases, m) left ends of the boxes.
    high : (cases, m) right ends of the boxes.
    masses : (cases, m) probabilities of the boxes.
    batched : whether the first axis is that of cases.
    error : stated error of the mean of each case, or None.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.

    Examples
    --------
    >>> from gramgraph.variables import real
    >>> low, high = np.array([[0.0, 1.0]]), np.array([[1.0, 2.0]])
    >>> belief = NodeBelief(real("x"), np.array([[0.5, 1.5]]), low, high, np.array([[0.5, 0.5]]))
    >>> belief.mean(), belief.cdf(1.0), belief.density(0.75)
    (1.0, 0.5, 0.5)
    """

    nodes: FloatArray
    low: FloatArray
    high: FloatArray
    masses: FloatArray
    error: FloatArray

    def __init__(
        self,
        var: Var,
        nodes: FloatArray,  # (cases, m) increasing
        low: FloatArray,  # (cases, m) lower ends of the boxes
        high: FloatArray,  # (cases, m)
        masses: FloatArray,  # (cases, m), summing to one
        *,
        batched: bool = False,
        error: FloatArray | None = None,  # (cases,)
        diagnostics: Mapping[str, Any] | None = None,
    ) -> None:
        self._hold(scope=(var,), nodes=nodes, low=low, high=high, masses=masses, batched=batched)
        self._hold(error=np.zeros(len(nodes)) if error is None else error, diagnostics=diagnostics or {})

    @property
    def circle(self) -> bool:
        """Whether it is a belief about an angle."""
        return isinstance(self.scope[0].domain, Circle)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        p = self.masses
        if self.circle:
            c, s = (p * np.cos(self.nodes)).sum(axis=1), (p * np.sin(self.nodes)).sum(axis=1)
            length = np.clip(np.hypot(c, s), 1e-12, 1.0)
            return np.arctan2(s, c)[:, None], (-2.0 * np.log(length))[:, None, None]
        mean = (p * self.nodes).sum(axis=1)
        var = (p * (self.nodes - mean[:, None]) ** 2).sum(axis=1)
        return mean[:, None], var[:, None, None]

    def standard_error(self) -> Any:
        """The stated error of the mean."""
        return self._shaped(self.error[:, None])

    def mean_direction(self) -> Any:
        """The angle of E[exp(i x)], of a variable on the circle; `mean` is the same there."""
        self._need_circle("mean_direction()")
        return self.mean()

    def resultant_length(self) -> Any:
        """|E[exp(i x)]| in [0, 1], of a variable on the circle: 1 when it is certain, 0 when all angles are alike."""
        self._need_circle("resultant_length()")
        found = np.exp(-0.5 * self._moments()[1][:, 0, 0])
        return found if self.batched else float(found[0])

    def _need_circle(self, what: str) -> None:
        if not self.circle:
            name = self.scope[0].name
            raise VariableError(f"{what} needs an angle; write {name}{{circle}} if {name} is one")

    @cached_property
    def _heights(self) -> FloatArray:
        """Densities at the nodes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.masses / (self.high - self.low)
        return np.where(self.high > self.low, found, 0.0)

    def density(self, x: Any) -> Any:
        """p(x | e); an array of points gives an array, with the cases in front."""
        at = np.asarray(x, dtype=np.float64)
        points = at.ravel()
        if self.circle:
            points = np.mod(points + np.pi, 2.0 * np.pi) - np.pi
        found = np.array([self._between(i, points) for i in range(len(self.nodes))]).reshape(-1, *at.shape)
        return found if self.batched else (float(found[0]) if at.ndim == 0 else found[0])

    def _between(self, i: int, x: FloatArray) -> FloatArray:
        """The density of one case: linear between nodes whose boxes meet, constant to the ends of others."""
        nodes, low, high, f = self.nodes[i], self.low[i], self.high[i], self._heights[i]
        k = np.clip(np.searchsorted(high, x, side="left"), 0, len(nodes) - 1)
        other = np.clip(np.where(x < nodes[k], k - 1, k + 1), 0, len(nodes) - 1)
        meets = np.where(other < k, np.isclose(high[other], low[k]), np.isclose(low[other], high[k])) & (other != k)
        gap = np.where(meets, nodes[other] - nodes[k], 1.0)
        slope = np.where(meets, (f[other] - f[k]) / np.where(gap == 0.0, 1.0, gap), 0.0)
        found = f[k] + slope * (x - nodes[k])
        return np.where((x >= low[k]) & (x <= high[k]), np.maximum(found, 0.0), 0.0)

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.cumsum(self.masses, axis=1)

    def _ends(self, i: int) -> tuple[FloatArray, FloatArray]:
        """Ends of boxes and the mass below them."""
        total = self._cumulative[i]
        ends = np.stack([self.low[i], self.high[i]], axis=1).ravel()
        below = np.stack([total - self.masses[i], total], axis=1).ravel()
        return ends, below

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x); on the circle from −π on."""
        points = np.broadcast_to(np.asarray(x, dtype=np.float64), (len(self.nodes),) if self.batched else np.shape(x))
        if self.batched:
            return np.array([np.interp(points[i], *self._ends(i)) for i in range(len(self.nodes))])
        found = np.interp(points, *self._ends(0))
        return float(found) if np.ndim(x) == 0 else found

    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies; an array of q gives an array (last axis). On the circle from −π on."""
        levels = np.atleast_1d(shares(q))
        out = np.empty((len(self.nodes), len(levels)))
        for i in range(len(out)):
            ends, below = self._ends(i)
            out[i] = np.interp(levels, below / below[-1], ends)
        out = out[:, 0] if np.ndim(q) == 0 else out
        return out if self.batched else (float(out[0]) if np.ndim(q) == 0 else out[0])

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) with equal tails outside; of an angle the arc around its mean direction with this mass and
        equal tails, upper above lower (and perhaps above π)."""
        if not self.circle:
            return super().interval(level)
        tail = tails(level)
        center = self._moments()[0][:, 0]
        out = np.empty((len(self.nodes), 2))
        for i, c in enumerate(center):
            off = np.mod(self.nodes[i] - c + np.pi, 2.0 * np.pi) - np.pi
            order = np.argsort(off, kind="stable")
            total = np.cumsum(self.masses[i][order]) - 0.5 * self.masses[i][order]
            out[i] = c + np.interp(tail, total, off[order])
        return out if self.batched else (float(out[0, 0]), float(out[0, 1]))

    def mode(self) -> Any:
        """Where the density is largest, between nodes by a parabola."""
        rows = np.arange(len(self.nodes))
        k = self._heights.argmax(axis=1)
        inner = np.clip(k, 1, self.nodes.shape[1] - 2)
        a, b, c = (self._heights[rows, np.clip(inner + j, 0, self.nodes.shape[1] - 1)] for j in (-1, 0, 1))
        h = self.high[rows, inner] - self.low[rows, inner]
        curve = a - 2.0 * b + c
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where((inner == k) & (curve < 0.0), 0.5 * (a - c) / curve, 0.0)
        found = self.nodes[rows, k] + np.clip(shift, -0.5, 0.5) * h
        return found if self.batched else float(found[0])

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)], by f at the nodes."""
        found = np.array([p @ values_of(f, x) for x, p in zip(self.nodes, self.masses, strict=True)])
        return found if self.batched else float(found[0])

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws of one case."""
        self._need_one_case("sample()")
        return np.asarray(self.quantile(generator(random_state).random(n)))

    def _entropies(self) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.masses > 0.0, np.log(self._heights), 0.0)
        return np.asarray(-(self.masses * logs).sum(axis=1))
