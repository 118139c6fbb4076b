"""Kernels with frequencies: periodic and spectral mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.kernels.base import Cotangent, Kernel, Pull, parameter
from gramgraph.kernels.inputs import KernelError
from gramgraph.kernels.stationary import pull_squared
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Periodic(Kernel):
    """exp(−2 Σ_c sin²(π (x_c − x′_c) / period) / ℓ²): the RBF kernel of points laid on circles.

    Parameters
    ----------
    length_scale : distance over which values are alike; one number, or one a column.
    period : after which values repeat.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Periodic(period=2.0).gram([0.0, 2.0]).round(4)
    array([[1., 1.],
           [1., 1.]])
    """

    length_scale: float = parameter(1.0)
    period: float = parameter(1.0)

    def _circle(self, X: FloatArray) -> FloatArray:
        angle = X * (2.0 * np.pi / self.period)
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / self.length_scale

    def _diag(self, X: Any) -> FloatArray:
        return np.ones(len(X))

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        from gramgraph._numerics.gram.grams import rbf_gram

        return rbf_gram(self._circle(X), None if Y is None else self._circle(Y))

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        A, B = self._circle(X), None if Y is None else self._circle(Y)
        K = self._gram(X, Y)
        rate = 2.0 * np.pi / self.period

        def along(U: FloatArray, bar: FloatArray) -> FloatArray:
            d = U.shape[1] // 2
            return rate * (U[:, :d] * bar[:, d:] - U[:, d:] * bar[:, :d])

        def pull(bar_K: FloatArray) -> Cotangent:
            W = bar_K * K
            W *= -0.5
            total, A_bar, B_bar = pull_squared(W, A, B, False, True)
            X_bar = along(A, A_bar)  # type: ignore[arg-type]
            by_period = -float((X_bar * X).sum()) / self.period
            Y_bar = None
            if Y is not None and B is not None and B_bar is not None:
                Y_bar = along(B, B_bar)
                by_period -= float((Y_bar * Y).sum()) / self.period
            gradients = {"length_scale": -2.0 * total / self.length_scale, "period": by_period}
            return self.cotangent(gradients, *((X_bar, Y_bar) if inputs else (None, None)))

        return K, pull

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """Whole multiples of 2π/period, with the masses of the cosine series exp(−1/ℓ²) I_n(1/ℓ²); d = 1 only."""
        from scipy.special import ive

        from gramgraph.kernels.spectral import fourier_features

        if d != 1:
            raise KernelError(f"Periodic.spectral_sample: expected d = 1, got {d}.")
        rng = generator(random_state)
        harmonics = np.arange(2000)
        mass = ive(harmonics, 1.0 / self.length_scale**2) * np.where(harmonics == 0, 1.0, 2.0)
        drawn = rng.choice(harmonics, size=n_features, p=mass / mass.sum())
        return fourier_features(drawn[:, None] * (2.0 * np.pi / self.period), rng)


@dataclass(frozen=True, eq=False, repr=False)
class SpectralMixture(Kernel):
    """Σ_q w_q exp(−2π² Σ_c σ_qc² τ_c²) cos(2π μ_qᵀτ), τ = x − x′: a mixture of Gaussians as spectral density.

    Parameters
    ----------
    weights : w, (q,).
    frequencies : μ, (q, d).
    widths : σ, (q, d).
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> SpectralMixture([1.0], [[0.5]], [[1e-3]]).gram([0.0, 1.0, 2.0]).round(2)
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    weights: FloatArray = parameter(max_ndim=1)
    frequencies: FloatArray = parameter(bounds=(-1e5, 1e5), transform="identity", max_ndim=2)
    widths: FloatArray = parameter(max_ndim=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = [np.shape(v) for v in (self.weights, self.frequencies, self.widths)]
        if len(shapes[0]) != 1 or len(shapes[1]) != 2 or shapes[1] != shapes[2] or shapes[0][0] != shapes[1][0]:
            raise KernelError(f"SpectralMixture: expected shapes (q,), (q, d), (q, d); got {shapes}.")

    def prepare(self, X: Any) -> Any:
        """Points with as many columns as the frequencies have."""
        X = super().prepare(X)
        if X.shape[1] != self.frequencies.shape[1]:
            raise KernelError(f"SpectralMixture: expected {self.frequencies.shape[1]} columns, got {X.shape}.")
        return X

    def _diag(self, X: Any) -> FloatArray:
        return np.full(len(X), self.weights.sum())

    def _part(self, X: Any, Y: Any | None, q: int) -> tuple[FloatArray, FloatArray]:
        """The envelope and the wave of component q."""
        from gramgraph._numerics.gram.grams import rbf_gram

        size = 2.0 * np.pi * self.widths[q]
        U = self._wave(X, q)
        V = U if Y is None else self._wave(Y, q)
        return rbf_gram(X * size, None if Y is None else Y * size), U @ V.T

    def _wave(self, X: FloatArray, q: int) -> FloatArray:
        angle = X @ (2.0 * np.pi * self.frequencies[q])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        K = np.zeros((len(X), len(X if Y is None else Y)))
        for q, w in enumerate(self.weights):
            envelope, wave = self._part(X, Y, q)
            envelope *= wave
            envelope *= w
            K += envelope
        return K

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        def pull(bar_K: FloatArray) -> Cotangent:
            found = [self._pull_part(X, Y, q, bar_K) for q in range(len(self.weights))]
            names = ("weights", "frequencies", "widths")
            gradients = {name: np.array([f[i] for f in found]) for i, name in enumerate(names)}
            if not inputs:
                return self.cotangent(gradients)
            X_bar, Y_bar = sum(f[3] for f in found), sum(f[4] for f in found)
            return self.cotangent(gradients, X_bar + Y_bar if Y is None else X_bar, None if Y is None else Y_bar)

        return self._gram(X, Y), pull

    def _pull_part(self, X: Any, Y: Any | None, q: int, bar_K: FloatArray) -> tuple[Any, ...]:
        Z = X if Y is None else Y
        envelope, wave = self._part(X, Y, q)
        U, V = self._wave(X, q), self._wave(Z, q)
        envelope *= bar_K  # ∂loss/∂wave, but for the weight
        w, size = self.weights[q], 2.0 * np.pi * self.widths[q]
        left, right = envelope @ V, envelope.T @ U
        by_angle = w * (U[:, 0] * left[:, 1] - U[:, 1] * left[:, 0])
        by_other = w * (V[:, 0] * right[:, 1] - V[:, 1] * right[:, 0])
        wave *= envelope
        by_weight = float(wave.sum())
        wave *= -0.5 * w
        moments, A_bar, B_bar = pull_squared(wave, X * size, Z * size, True, True)
        turn = 2.0 * np.pi * self.frequencies[q]
        return (
            by_weight,
            2.0 * np.pi * (by_angle @ X + by_other @ Z),
            2.0 * moments / self.widths[q],
            A_bar * size + by_angle[:, None] * turn,  # type: ignore[operator]
            B_bar * size + by_other[:, None] * turn,  # type: ignore[operator]
        )

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> Any:
        """Frequencies from the mixture."""
        from gramgraph.kernels.spectral import fourier_features

        if d != self.frequencies.shape[1]:
            raise KernelError(f"SpectralMixture.spectral_sample: expected d = {self.frequencies.shape[1]}, got {d}.")
        rng = generator(random_state)
        total = float(self.weights.sum())
        q = rng.choice(len(self.weights), size=n_features, p=self.weights / total)
        cycles = self.frequencies[q] + self.widths[q] * rng.standard_normal((n_features, d))
        return fourier_features(2.0 * np.pi * cycles, rng, total)
