"""Beliefs about numbers and angles on cells: a marginal density times a function that is linear between cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.answers import RealBelief
from gramgraph.answers.words import shares, tails
from gramgraph.cells.axes import Axis, LineAxis
from gramgraph.cells.columns import values_of
from gramgraph.exceptions import VariableError
from gramgraph.typing import Array, FloatArray, RandomState


class LineBelief(RealBelief):
    """p(x | e) ∝ p(x) w(x), with w given on cells and linear between them; of one case, or of many (first axis).

    Observed cases stand at their value. `diagnostics` has the effective sample size, how near to the data the
    evidence was (`support`, 1 inside, 0 far away), the observations that were too far to count (`outside`), and the
    mass of the edges that had to be lifted from below zero.

    Parameters
    ----------
    axis : the cells of the variable, where it is a number or an angle.
    weights : masses of the cells, with the axis of cases first where there are many.
    batched : whether the first axis is that of cases.
    observed : what is known of each case, or None.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> net = gg.learn_tree({"x": x, "y": x**2 + 0.1 * rng.normal(size=1000)})
    >>> belief = net.query("y", {"x": 1.5})["y"]
    >>> round(belief.mean(), 1), belief.sd() < 0.2, belief.interval(0.9)[0] > 1.8
    (2.2, True, True)
    """

    axis: LineAxis
    weights: Array
    _observed: FloatArray | None
    _tell: Callable[[LineBelief], Mapping[str, Any]] | None

    def __init__(
        self,
        axis: LineAxis,
        weights: Array,  # (cases, m) posterior masses of the cells
        *,
        batched: bool,
        observed: FloatArray | None = None,  # (cases,), NaN where it was not
        diagnostics: Callable[[LineBelief], Mapping[str, Any]] | None = None,
    ) -> None:
        self._hold(axis=axis, scope=(axis.var,), weights=weights, batched=batched)
        self._hold(_observed=observed, _tell=diagnostics)

    @cached_property
    def diagnostics(self) -> Mapping[str, Any]:  # type: ignore[override]
        """How far this belief can be trusted."""
        return {} if self._tell is None else self._tell(self)

    @cached_property
    def _seen(self) -> Array:
        """Whether each case observed this variable."""
        return np.zeros(len(self.weights), dtype=bool) if self._observed is None else ~np.isnan(self._observed)

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation (E cos x and E sin x on the circle) of every case."""
        first, second = self.axis.moments(self.weights)
        if self._observed is not None and self._seen.any():
            x = self._observed[self._seen]
            first[self._seen], second[self._seen] = (np.cos(x), np.sin(x)) if self.axis.circle else (x, 0.0)
        return first, second

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        first, second = self._parts
        if self.axis.circle:
            length = np.minimum(np.hypot(first, second), 1.0)
            mean = np.arctan2(second, first)
            var = np.where(self._seen, 0.0, -2.0 * np.log(np.maximum(length, 1e-12)))
        else:
            with np.errstate(over="ignore"):
                mean, var = first, second**2
        return mean[:, None], var[:, None, None]

    def sd(self) -> Any:
        """Standard deviation; of angles √(−2 log R), R the resultant length."""
        return super().sd() if self.axis.circle else self._shaped(self._parts[1][:, None])

    def mean_direction(self) -> Any:
        """The angle of E[exp(i x)], of a variable on the circle; `mean` is the same there."""
        self._need_circle()
        return self.mean()

    def resultant_length(self) -> Any:
        """|E[exp(i x)]| in [0, 1], of a variable on the circle: 1 when it is certain, 0 when all angles are alike."""
        self._need_circle()
        length = np.hypot(*self._parts)
        return length if self.batched else float(length[0])

    def _need_circle(self) -> None:
        if not self.axis.circle:
            raise VariableError(f"{self.axis.name} is not an angle; use domains={{{self.axis.name!r}: 'circle'}}.")

    # ------------------------------------------------------------------------------------------ the density

    @cached_property
    def _ratio(self) -> FloatArray:
        """w on the grid, (cases, G)."""
        low, high, share = self.axis.hats
        w = np.asarray(self.weights, dtype=np.float64) / self.axis.q
        return np.asarray(w[:, low] * (1.0 - share) + w[:, high] * share)

    @cached_property
    def _heights(self) -> FloatArray:
        """w at the anchors, (cases, m), for which ∫ p(x) w(x) dx = 1 with p linear between the points of its grid.

        The masses of cells are sums over that grid: by themselves they leave an integral of 1 up to some 1e-5.
        """
        w = np.asarray(self.weights, dtype=np.float64) / self.axis.q
        with np.errstate(invalid="ignore"):
            return np.asarray(w / (w @ self.axis.hat_masses)[:, None])

    @cached_property
    def _masses(self) -> FloatArray:
        """Probability of every grid point, (cases, G)."""
        p = self._ratio * self.axis.density.masses
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def density(self, x: Any) -> Any:
        """p(x | e); an array of points gives an array, with the cases in front; inf at an observed value.

        0 outside the domain (±inf, or below 0 for positive numbers), NaN at NaN.
        """
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        given = points.ravel()
        inside = np.isfinite(given) & ((given > 0.0) | (self.axis.domain != "positive"))
        flat = np.where(inside, given, self.axis.unit[0])
        at = self.axis.place(flat)
        base = np.exp(self.axis.log_base(flat))
        w = self._heights
        values = (w[:, at.a] * (1.0 - at.f) + w[:, at.b] * at.f) * base
        for i in np.flatnonzero(self._seen):
            assert self._observed is not None
            values[i] = np.where(flat == self._observed[i], np.inf, 0.0)
        values[:, ~inside] = np.where(np.isnan(given[~inside]), np.nan, 0.0)
        values = values.reshape(len(w), *points.shape)
        if np.ndim(x) == 0:
            values = values[:, 0]
        if self.batched:
            return values
        return float(values[0]) if np.ndim(x) == 0 else values[0]

    def log_score(self, x: Any) -> FloatArray:
        """log p(x_i | e_i) of one value a case."""
        given = np.atleast_1d(np.asarray(x, dtype=np.float64))
        at = self.axis.place(given)
        w = self._heights
        rows = np.arange(len(w))
        ratio = w[rows, at.a] * (1.0 - at.f) + w[rows, at.b] * at.f
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(ratio) + self.axis.log_base(given))

    @cached_property
    def _edges(self) -> FloatArray:
        """Values of x between the grid points: cell g of the grid lies between entries g and g + 1."""
        t = self.axis.density
        ends = t.first + t.step * (np.arange(len(t.values) + 1) - 0.5)
        if not self.axis.circle:
            ends[0] -= 2.0 * t.tail
            ends[-1] += 2.0 * t.tail
            return t.coordinate.backward(np.asarray(ends))
        return np.asarray(ends)

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.concatenate([np.zeros((len(self._masses), 1)), np.cumsum(self._masses, axis=1)], axis=1)

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x); on the circle from −π on."""
        points = np.broadcast_to(np.asarray(x, dtype=np.float64), (len(self.weights),) if self.batched else np.shape(x))
        if not self.batched:
            out = np.interp(points, self._edges, self._cumulative[0])
            if self._seen[0]:
                assert self._observed is not None
                out = (points >= self._observed[0]).astype(np.float64)
            return float(out) if np.ndim(x) == 0 else out
        found = np.array([np.interp(p, self._edges, c) for p, c in zip(points, self._cumulative, strict=True)])
        if self._observed is not None:
            found = np.where(self._seen, points >= self._observed, found)
        return found

    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies; an array of q gives an array (last axis). On the circle from −π on."""
        levels = np.atleast_1d(shares(q))
        out = _inverse(self._cumulative, levels, self._edges)
        if self._observed is not None:
            out[self._seen] = self._observed[self._seen, None]
        out = out[:, 0] if np.ndim(q) == 0 else out
        if self.batched:
            return out
        return float(out[0]) if np.ndim(q) == 0 else out[0]

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) with equal tails outside; on the circle the arc of this probability around the mean direction
        that has equal parts on both sides, upper above lower (and perhaps above π)."""
        if not self.axis.circle:
            return super().interval(level)
        tails(level)
        center = self._moments()[0][:, 0]
        out = np.empty((len(self.weights), 2))
        size = len(self.axis.density.values)
        for i, c in enumerate(center):
            if self._seen[i]:
                out[i] = c
                continue
            shift = round((c + np.pi) / (2.0 * np.pi) * size) - size // 2  # the grid, cut opposite to the center
            cumulative = np.concatenate([[0.0], np.cumsum(np.roll(self._masses[i], -shift))])
            middle = float(np.interp(c, self._edges + shift * self.axis.density.step, cumulative))
            below = np.clip(0.5 * level + max(0.5 * level - (1.0 - middle), 0.0), 0.0, middle)
            ends = np.interp([middle - below, min(middle - below + level, 1.0)], cumulative, self._edges)
            out[i] = ends + shift * self.axis.density.step
        return out if self.batched else (float(out[0, 0]), float(out[0, 1]))

    def mode(self) -> Any:
        """Where the density is largest, on the grid of the variable."""
        x = self.axis.grid_values
        height = np.log(self.axis.density.values) + self.axis.density.coordinate.log_slope(x)
        with np.errstate(divide="ignore"):
            found = x[(np.log(self._ratio) + height).argmax(axis=1)]
        if self._observed is not None:
            found = np.where(self._seen, self._observed, found)
        return found if self.batched else float(found[0])

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)], f at the grid points; of all cases at once. f takes an array, or else one number at a time."""
        values = values_of(f, self.axis.grid_values)
        out = self._masses @ values
        if self._observed is not None and self._seen.any():
            out[self._seen] = values_of(f, self._observed[self._seen])
        return out if self.batched else float(out[0])

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws of one case."""
        self._need_one_case("sample()")
        rng = np.random.default_rng(random_state)
        if self._seen[0]:
            assert self._observed is not None
            return np.full(n, self._observed[0])
        return np.asarray(_inverse(self._cumulative, rng.random(n), self._edges)[0])

    def _entropies(self) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self._ratio / (self._ratio @ self.axis.density.masses)[:, None])
            logs = ratio + self.axis.log_base(self.axis.grid_values)
            found = 0.0 - np.where(self._masses > 0.0, self._masses * logs, 0.0).sum(axis=1)
        return np.where(self._seen, -np.inf, found)


def effective_size(axes: Sequence[Axis], weights: Array, n: int) -> FloatArray:
    """n / E[w²]: how many of n rows a belief with these masses rests on, one number per case."""
    q = np.ones(())
    for axis in axes:
        q = np.multiply.outer(q, np.maximum(axis.q, 1e-300))
    w = np.asarray(weights, dtype=np.float64)
    return np.asarray(n / np.maximum((w**2 / q).reshape(len(w), -1).sum(axis=1), 1e-300))


def _inverse(cumulative: FloatArray, levels: FloatArray, ends: FloatArray) -> FloatArray:
    """x with F(x) = level of every case, (cases, levels)."""
    from gramgraph._numerics.cells.shares import inverse_cdf

    out = np.empty((len(cumulative), len(levels)))
    inverse_cdf(cumulative, levels, ends, out)
    return out
