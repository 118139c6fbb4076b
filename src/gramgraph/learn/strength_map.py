"""A monotone map from the strength of an edge to the probability that it is true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramgraph.typing import Array, FloatArray

#: How much the map is held at the strengths themselves: as if about so many pairs had shown that.
HOLD = np.array([1.0, 1.0, 0.2])
#: Slopes are not below: the map stays monotone.
LEAST_SLOPE = 0.05


@dataclass(frozen=True)
class StrengthMap:
    """logit p = a log s - b log(1 - s) + c for a strength s, counted on `n` graphs; fitted to `pairs` pairs.

    s is (hits + 1/2) / (n + 1), so that 0 and 1 have a place. a = b = 1, c = 0 leaves strengths almost as they are.

    >>> same = StrengthMap(1.0, 1.0, 0.0, pairs=0)
    >>> same(np.array([0.0, 0.5, 1.0]), 99).round(3).tolist()
    [0.005, 0.5, 0.995]
    """

    a: float
    b: float
    c: float
    pairs: int

    def __call__(self, strengths: FloatArray, n: int) -> FloatArray:
        """Probabilities for strengths counted on n graphs."""
        out: FloatArray = 1.0 / (1.0 + np.exp(-(_features(strengths, n) @ np.array([self.a, self.b, self.c]))))
        return out

    @classmethod
    def fit(cls, strengths: FloatArray, true: Array, n: int) -> StrengthMap:
        """Logistic regression with a ≥ 0.05, b ≥ 0.05 and a weak pull to a = b = 1, c = 0."""
        from scipy.optimize import minimize

        x, y, same = _features(strengths, n), np.asarray(true, np.float64), np.array([1.0, 1.0, 0.0])

        def loss(w: FloatArray) -> tuple[float, FloatArray]:
            z = x @ w
            value = float(np.sum(np.logaddexp(0.0, z) - y * z) + HOLD @ (w - same) ** 2)
            return value, x.T @ (1.0 / (1.0 + np.exp(-z)) - y) + 2.0 * HOLD * (w - same)

        bounds = [(LEAST_SLOPE, None), (LEAST_SLOPE, None), (None, None)]
        a, b, c = minimize(loss, same, jac=True, bounds=bounds, method="L-BFGS-B").x
        return cls(float(a), float(b), float(c), len(y))


def _features(strengths: FloatArray, n: int) -> FloatArray:
    s = (np.asarray(strengths, np.float64) * n + 0.5) / (n + 1.0)
    return np.stack([np.log(s), -np.log1p(-s), np.ones_like(s)], axis=-1)
