"""Random Fourier features: a stationary kernel as an average of cosines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.inputs import KernelError, as_points
from gramgraph.typing import FloatArray


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """z(x)_j = √(2 mass_j) cos(ω_jᵀx + phase_j), so that z(x)ᵀz(x′) ≈ k(x, x′); the masses add up to k(x, x)."""

    frequencies: FloatArray  # (m, d)
    phases: FloatArray  # (m,)
    masses: FloatArray  # (m,)

    def transform(self, X: Any) -> FloatArray:
        """Features of the points, shape (n, m); O(n m d)."""
        X = as_points(X)
        if X.shape[1] != self.frequencies.shape[1]:
            raise KernelError(f"features of points with {self.frequencies.shape[1]} columns; got {X.shape}.")
        Z = X @ self.frequencies.T
        Z += self.phases
        np.cos(Z, out=Z)
        Z *= np.sqrt(2.0 * self.masses)
        return Z

    def scaled(self, variance: float) -> FourierFeatures:
        """Features of variance · k."""
        return FourierFeatures(self.frequencies, self.phases, variance * self.masses)


def fourier_features(frequencies: FloatArray, rng: np.random.Generator, variance: float = 1.0) -> FourierFeatures:
    """Features with equal masses and random phases."""
    m = len(frequencies)
    return FourierFeatures(frequencies, rng.uniform(0.0, 2.0 * np.pi, m), np.full(m, variance / m))


def side_by_side(parts: Sequence[FourierFeatures]) -> FourierFeatures:
    """Features of a sum of kernels."""
    return FourierFeatures(
        np.concatenate([p.frequencies for p in parts]),
        np.concatenate([p.phases for p in parts]),
        np.concatenate([p.masses for p in parts]),
    )


def frequency_sum(parts: Sequence[FourierFeatures], rng: np.random.Generator) -> FourierFeatures:
    """Features of a product of kernels: densities convolve, so drawn frequencies add, with random signs."""
    m = max(len(p.masses) for p in parts)
    total: Any = 0.0
    for p in parts:
        drawn = rng.choice(len(p.masses), size=m, p=p.masses / p.masses.sum())
        total = total + rng.choice([-1.0, 1.0], size=(m, 1)) * p.frequencies[drawn]
    return fourier_features(total, rng, float(np.prod([p.masses.sum() for p in parts])))
