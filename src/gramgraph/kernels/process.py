"""Kernels of processes that start at an origin: Wiener, integrated Wiener, cubic spline."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull
from gramgraph.kernels.parameters import is_whole
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.state_space import StateSpace


@dataclass(frozen=True, eq=False, repr=False)
class _FromOrigin(Kernel):
    """Points right of an origin on the line; with several columns the product over them (a sheet)."""

    origin: float = 0.0

    def prepare(self, X: Any) -> FloatArray:
        """Points whose coordinates are all ≥ origin."""
        points = super().prepare(X)
        if points.size and points.min() < self.origin:
            row, column = (int(i) for i in np.unravel_index(points.argmin(), points.shape))
            raise KernelError(
                f"{type(self).__name__}: expected coordinates ≥ origin = {self.origin}; X[{row}, {column}] is "
                f"{points[row, column]}. Try: origin={points.min()} or less."
            )
        return points

    def _value(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """k at min(x, x′) − origin = s and max(x, x′) − origin = t."""
        raise NotImplementedError

    def _slopes(self, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives of `_value` by s and by t."""
        raise NotImplementedError

    def _ends(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        x, y = x[:, None] - self.origin, y[None, :] - self.origin
        return np.minimum(x, y), np.maximum(x, y)

    def _diag(self, X: FloatArray) -> FloatArray:
        t = X - self.origin
        return self._value(t, t).prod(axis=1)

    def _gram(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        Z = X if Y is None else Y
        K = self._value(*self._ends(X[:, 0], Z[:, 0]))
        for j in range(1, X.shape[1]):
            K *= self._value(*self._ends(X[:, j], Z[:, j]))
        return K

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        Z = X if Y is None else Y

        def pull(bar: FloatArray) -> Cotangent:
            if not inputs:
                return self.cotangent({})
            bar_X, bar_Z = np.empty_like(X), np.empty_like(Z)
            for j in range(X.shape[1]):
                others = bar
                for i in range(X.shape[1]):  # not K / factor: a factor is 0 at the origin
                    if i != j:
                        others = others * self._value(*self._ends(X[:, i], Z[:, i]))
                by_s, by_t = self._slopes(*self._ends(X[:, j], Z[:, j]))
                first = 0.5 * (1.0 + np.sign(Z[None, :, j] - X[:, None, j]))  # 1 where x is the smaller, ½ where equal
                bar_X[:, j] = (others * (by_s * first + by_t * (1.0 - first))).sum(1)
                bar_Z[:, j] = (others * (by_t * first + by_s * (1.0 - first))).sum(0)
            return self.cotangent({}, bar_X + bar_Z) if Y is None else self.cotangent({}, bar_X, bar_Z)

        return self._gram(X, Y), pull


@dataclass(frozen=True, eq=False, repr=False)
class Wiener(_FromOrigin):
    """k(x, x′) = min(x, x′) − origin: Brownian motion, the limit of step features. Product over several columns.

    The slope by an input has a kink at x = x′; half of each side is taken there. Cost O(n m d).

    Parameters
    ----------
    origin : where the process begins.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Wiener().gram([1.0, 2.0, 4.0])
    array([[1., 1., 1.],
           [1., 2., 2.],
           [1., 2., 4.]])
    """

    def _value(self, s: FloatArray, t: FloatArray) -> FloatArray:
        return s

    def _slopes(self, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(s), np.zeros_like(t)

    def state_space(self) -> StateSpace:
        """dx = dw from 0 at the origin."""
        from gramgraph.kernels.state_space import wiener_model

        return wiener_model(0, self.origin)


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedWiener(_FromOrigin):
    """Brownian motion integrated q times: k(x, x′) = ∫₀^min (x − u)^q (x′ − u)^q du / (q!)², from the origin on.

    Order 1 is min³/3 + |x − x′| min²/2, the limit of ramp features. Product over several columns. Cost O(n m d q).

    Parameters
    ----------
    origin : where the process begins.
    order : how often it is integrated.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> IntegratedWiener().gram([1.0, 2.0]).round(4)
    array([[0.3333, 0.8333],
           [0.8333, 2.6667]])
    """

    order: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.order) or not 0 <= self.order <= 8:
            raise KernelError(f"IntegratedWiener.order: expected a whole number from 0 to 8, got {self.order!r}.")

    def state_space(self) -> StateSpace:
        """A chain of order + 1 integrators, driven by noise at its end, from 0 at the origin."""
        from gramgraph.kernels.state_space import wiener_model

        return wiener_model(int(self.order), self.origin)

    def _terms(self) -> list[tuple[float, int, int]]:
        """(coefficient, power of t − s, power of s) of the integral, by v = s − u and the binomial theorem."""
        q = self.order
        return [(comb(q, j) / (q + j + 1) / factorial(q) ** 2, q - j, q + j + 1) for j in range(q + 1)]

    def _value(self, s: FloatArray, t: FloatArray) -> FloatArray:
        gap = t - s
        return sum((c * gap**a * s**b for c, a, b in self._terms()), start=np.zeros_like(s))

    def _slopes(self, s: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        gap = t - s
        by_gap, by_s = np.zeros_like(s), np.zeros_like(s)
        for c, a, b in self._terms():
            by_s += c * b * gap**a * s ** (b - 1)
            if a:
                by_gap += c * a * gap ** (a - 1) * s**b
        return by_s - by_gap, by_gap


@dataclass(frozen=True, eq=False, repr=False)
class CubicSpline(IntegratedWiener):
    """k(x, x′) = min³/3 + |x − x′| min²/2, distances from the origin: draws and regressions are cubic splines.

    The limit of ramp features max(0, x − c) with knots c from the origin on; it is `IntegratedWiener(order=1)`. The
    smoothing spline, whose straight line is free, is `CubicSpline() + c₁ * Linear() + c₀`.

    Parameters
    ----------
    origin : where the process begins.
    order : how often it is integrated.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> CubicSpline().gram([1.0], [2.0]).round(4)
    array([[0.8333]])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order != 1:
            raise KernelError(
                f"CubicSpline: its order is 1, got {self.order!r}. Other orders: IntegratedWiener(order=…)."
            )
