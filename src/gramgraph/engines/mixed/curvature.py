"""Values, slopes and curvatures of log p(child | parents) in its real-valued variables, for many cases at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Softmax
from gramgraph.conditionals.continuous import log_density
from gramgraph.engines.mixed.blankets import Linear, without_noise
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Var

_STEP = 1e-3  # of a difference, in standard deviations of the variable


class Curve:
    """One conditional as a function of the unobserved real components of its family, by differences.

    `derivatives` gives (values (n,), slopes (n, k), Hessians (n, k, k)). Second-order differences: 1 + 2k² evaluations.
    """

    def __init__(self, part: Conditional, places: Mapping[Var, IntArray], scale: FloatArray) -> None:
        self.part = part
        self.variables = tuple(var for var in part.scope if var in places)
        own = [places[var] for var in self.variables]
        self.at = np.concatenate(own).astype(np.int64) if own else np.zeros(0, np.int64)
        self.step = _STEP * scale[self.at]

    def value(self, values: Mapping[Var, Array]) -> FloatArray:
        """log p of every case."""
        with np.errstate(all="ignore"):
            return log_density(self.part, values)

    def derivatives(self, values: Mapping[Var, Array]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, slope and Hessian of every case."""
        k, h = len(self.at), self.step
        n = len(next(iter(values.values())))
        moves = [np.zeros(k)]
        for i in range(k):
            moves += [h[i] * np.eye(k)[i], -h[i] * np.eye(k)[i]]
        pairs = [(i, j) for i in range(k) for j in range(i)]
        for i, j in pairs:
            both, apart = h * (np.eye(k)[i] + np.eye(k)[j]), h * (np.eye(k)[i] - np.eye(k)[j])
            moves += [both, -both, apart, -apart]
        f = self._moved(values, np.array(moves), n)  # (moves, n)
        slope, H = np.empty((n, k)), np.empty((n, k, k))
        for i in range(k):
            up, down = f[1 + 2 * i], f[2 + 2 * i]
            slope[:, i] = (up - down) / (2 * h[i])
            H[:, i, i] = (up - 2 * f[0] + down) / h[i] ** 2
        for number, (i, j) in enumerate(pairs):
            a, b, c, d = f[1 + 2 * k + 4 * number : 5 + 2 * k + 4 * number]
            H[:, i, j] = H[:, j, i] = (a + b - c - d) / (4 * h[i] * h[j])
        return f[0], slope, H

    def _moved(self, values: Mapping[Var, Array], moves: FloatArray, n: int) -> FloatArray:
        m, start = len(moves), 0
        many: dict[Var, Array] = {}
        for var in self.part.scope:
            x = np.asarray(values[var])
            many[var] = np.tile(x, (m, 1)) if x.ndim == 2 else np.tile(x, m)
        for var in self.variables:
            stop = start + var.dimension
            many[var] = many[var] + np.repeat(moves[:, start:stop], n, axis=0)
            start = stop
        with np.errstate(all="ignore"):
            return log_density(self.part, many).reshape(m, n)


class LinearCurve(Curve):
    """A linear Gaussian: with residual r = y − b − W x and J = (−W, I), slope −Jᵀ S⁻¹ r, Hessian −Jᵀ S⁻¹ J."""

    def __init__(self, part: Conditional, places: Mapping[Var, IntArray], scale: FloatArray) -> None:
        super().__init__(part, places, scale)
        linear: Any = part
        if not (np.linalg.eigvalsh(linear.covariance)[..., 0] > 0.0).all():
            raise without_noise(part)
        self.inverse = np.linalg.inv(linear.covariance)
        blocks, start = {}, 0
        for var in linear.real_parents:
            blocks[var] = -linear.coefficients[..., start : start + var.dimension]
            start += var.dimension
        k = part.child.dimension
        blocks[part.child] = np.broadcast_to(np.eye(k), (*linear.covariance.shape[:-2], k, k))
        self.J = np.concatenate([blocks[var] for var in self.variables], axis=-1)

    def derivatives(self, values: Mapping[Var, Array]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, slope and Hessian of every case."""
        linear: Any = self.part
        y = np.asarray(values[linear.child], dtype=np.float64)
        n = len(y)
        rows = linear._rows(values)
        J, R = self.J[rows], self.inverse[rows]
        r = y - linear.mean(values, n)
        weighted = np.swapaxes(J, -1, -2) @ R
        H = np.broadcast_to(-weighted @ J, (n, len(self.at), len(self.at)))
        return self.value(values), -(weighted @ r[..., None])[..., 0], H


class SoftmaxCurve(Curve):
    """A softmax with weights W: slope W_s − Σ p_t W_t, Hessian −(Σ p_t W_t W_tᵀ − w̄ w̄ᵀ)."""

    def __init__(self, part: Conditional, places: Mapping[Var, IntArray], scale: FloatArray) -> None:
        super().__init__(part, places, scale)
        columns, start = [], 0
        soft: Any = part
        for var in soft.real_parents:
            if var in places:
                columns += list(range(start, start + var.dimension))
            start += var.dimension
        self.W = soft.weights[..., columns]

    def derivatives(self, values: Mapping[Var, Array]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, slope and Hessian of every case."""
        soft: Any = self.part
        states = np.asarray(values[soft.child])
        n = len(states)
        W = np.broadcast_to(self.W[soft._rows(values)], (n, *self.W.shape[-2:]))
        p = soft.probabilities(values, n)
        mean = np.einsum("ns,nsk->nk", p, W)
        off = W - mean[:, None]
        H = -np.einsum("ns,nsj,nsk->njk", p, off, off)
        return self.value(values), W[np.arange(n), states] - mean, H


def curve_of(part: Conditional, places: Mapping[Var, IntArray], scale: FloatArray) -> Curve:
    """The way to differentiate a conditional: in closed form where it has one."""
    if not any(var in places for var in part.scope):
        return Curve(part, places, scale)  # a constant
    if isinstance(part, Linear):
        return LinearCurve(part, places, scale)
    if isinstance(part, Softmax):
        return SoftmaxCurve(part, places, scale)
    return Curve(part, places, scale)
