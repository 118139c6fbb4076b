"""Kernels of directions and angles: on spheres, circles, tori and the globe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, parameter
from gramgraph.typing import FloatArray


def _unit(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows divided by their lengths, and the lengths (n, 1)."""
    length = np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    return X / length, length


def _unit_pull(bar_P: FloatArray, P: FloatArray, length: FloatArray) -> FloatArray:
    """Gradient by vectors from the gradient by their directions: the part along the sphere."""
    out: FloatArray = (bar_P - np.einsum("ij,ij->i", bar_P, P)[:, None] * P) / length
    return out


def _check_directions(points: FloatArray, kind: str) -> FloatArray:
    zero = ~points.any(axis=1)
    if zero.any():
        raise KernelError(f"{kind}: a vector of zeros has no direction; row {int(zero.argmax())} is one.")
    return points


@dataclass(frozen=True, eq=False, repr=False)
class Directional(Kernel):
    """k(p, q) = exp(κ pᵀq) on unit vectors: directions in the plane, in space, in any dimension.

    Rows are divided by their length, so that any nonzero vector stands for its direction. Cost O(n m d).
    The diagonal is e^κ; `.normalized()` makes it 1.

    Parameters
    ----------
    kappa : κ, one number or one a column.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Directional(kappa=2.0).gram([[1.0, 0.0]], [[0.0, 5.0], [3.0, 0.0]]).round(4)
    array([[1.    , 7.3891]])
    """

    kappa: float = parameter(1.0, bounds=(1e-5, 500.0))

    def prepare(self, X: Any) -> FloatArray:
        """Vectors, none of them 0."""
        return _check_directions(super().prepare(X), "Directional")

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), np.exp(self.kappa))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        P, p_length = _unit(X)
        Q, q_length = (P, p_length) if Y is None else _unit(Y)
        cosine = P @ Q.T
        if Y is None:
            np.fill_diagonal(cosine, 1.0)
        K = np.exp(self.kappa * cosine)

        def pull(bar: FloatArray) -> Cotangent:
            W = bar * K
            by_kappa = np.vdot(W, cosine)
            if not inputs:
                return self.cotangent({"kappa": by_kappa})
            W *= self.kappa
            bar_X, bar_Y = _unit_pull(W @ Q, P, p_length), _unit_pull(W.T @ P, Q, q_length)
            points = (bar_X + bar_Y,) if Y is None else (bar_X, bar_Y)
            return self.cotangent({"kappa": by_kappa}, *points)

        return K, pull


@dataclass(frozen=True, eq=False, repr=False)
class Angular(Kernel):
    """k(x, x′) = exp(Σ_j κ_j cos(x_j − x′_j)) on angles in radians: a product over the columns.

    One column is the circle, several a torus; κ is one number, or one per column. On one angle it is
    `Directional(κ)` at (cos x, sin x). Cost O(n m d) by cos(x − x′) = cos x cos x′ + sin x sin x′.

    Parameters
    ----------
    kappa : κ, one number or one a column.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> Angular(kappa=1.0).gram([0.0], [2 * np.pi, np.pi]).round(4)
    array([[2.7183, 0.3679]])
    """

    kappa: float | FloatArray = parameter(1.0, bounds=(1e-5, 500.0), max_ndim=1)

    def prepare(self, X: Any) -> FloatArray:
        """Angles (n, d), with as many columns as κ has numbers."""
        points = super().prepare(X)
        if np.ndim(self.kappa) == 1 and points.shape[1] != np.size(self.kappa):
            raise KernelError(
                f"Angular: kappa has {np.size(self.kappa)} numbers, one per column; the shape of X is {points.shape}."
            )
        return points

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), np.exp(np.broadcast_to(self.kappa, X.shape[1]).sum()))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        d = X.shape[1]
        kappa = np.broadcast_to(self.kappa, d)
        P = np.hstack([np.cos(X), np.sin(X)])
        Q = P if Y is None else np.hstack([np.cos(Y), np.sin(Y)])
        exponent = (P * np.tile(kappa, 2)) @ Q.T
        if Y is None:
            exponent = 0.5 * (exponent + exponent.T)
            np.fill_diagonal(exponent, kappa.sum())
        K = np.exp(exponent)

        def pull(bar: FloatArray) -> Cotangent:
            W = bar * K
            WQ = W @ Q
            by_column = np.einsum("ij,ij->j", P, WQ).reshape(2, d).sum(0)
            found = {"kappa": by_column if np.ndim(self.kappa) else by_column.sum()}
            if not inputs:
                return self.cotangent(found)
            bar_X = kappa * (P[:, :d] * WQ[:, d:] - P[:, d:] * WQ[:, :d])
            WP = W.T @ P
            bar_Y = kappa * (Q[:, :d] * WP[:, d:] - Q[:, d:] * WP[:, :d])
            return self.cotangent(found, *((bar_X + bar_Y,) if Y is None else (bar_X, bar_Y)))

        return K, pull


@dataclass(frozen=True, eq=False, repr=False)
class GreatCircle(Kernel):
    """k(p, q) = exp(−θ(p, q) / length_scale), θ the great-circle distance in radians: positive definite on any sphere.

    (The squared exponential of θ is not.) `coordinates` is "vector" for rows that are directions of any dimension, or
    "latlon" for rows (latitude, longitude) in radians. On the Earth a distance is 6371 km · θ. The function has kinks
    at θ = 0 and θ = π; input gradients there are taken as 0. Cost O(n m d).

    Parameters
    ----------
    length_scale : distance over which values are alike; one number, or one a column.
    coordinates : "vector" or "latlon".
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> paris, lima = np.radians([[48.9, 2.4], [-12.0, -77.0]])
    >>> k = GreatCircle(length_scale=1.0, coordinates="latlon")
    >>> round(float(-6371 * np.log(k.gram([paris], [lima])[0, 0])))
    10252
    """

    length_scale: float = parameter(1.0)
    coordinates: str = "vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coordinates not in ("vector", "latlon"):
            raise KernelError(f"GreatCircle.coordinates: expected 'vector' or 'latlon', got {self.coordinates!r}.")

    def prepare(self, X: Any) -> FloatArray:
        """Directions, or (latitude, longitude) with latitudes from −π/2 to π/2."""
        points = super().prepare(X)
        if self.coordinates == "vector":
            return _check_directions(points, "GreatCircle")
        if points.shape[1] != 2 or (len(points) and np.abs(points[:, 0]).max() > np.pi / 2 + 1e-4):
            raise KernelError(
                "GreatCircle with coordinates='latlon': expected rows (latitude, longitude) in radians, latitudes from "
                f"−π/2 to π/2; got shape {points.shape}"
                + (f" and latitudes up to {np.abs(points[:, 0]).max():.4g}" if len(points) else "")
                + ". Try: np.radians(degrees)."
            )
        return points

    def _directions(self, X: FloatArray) -> FloatArray:
        if self.coordinates == "vector":
            return _unit(X)[0]
        lat, lon = X.T
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)

    def _directions_pull(self, bar_P: FloatArray, X: FloatArray) -> FloatArray:
        if self.coordinates == "vector":
            return _unit_pull(bar_P, *_unit(X))
        (lat, lon), (bx, by, bz) = X.T, bar_P.T
        along = bx * np.cos(lon) + by * np.sin(lon)
        across = by * np.cos(lon) - bx * np.sin(lon)
        return np.stack([bz * np.cos(lat) - along * np.sin(lat), across * np.cos(lat)], axis=1)

    def _diag(self, X: FloatArray) -> FloatArray:
        return np.ones(len(X))

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        P = self._directions(X)
        Q = P if Y is None else self._directions(Y)
        # squared chords column by column: 2 − 2 pᵀq would lose half of the digits of small angles
        chord = np.zeros((len(P), len(Q)))
        for j in range(P.shape[1]):
            chord += np.square(P[:, j, None] - Q[None, :, j])
        np.clip(chord, 0.0, 4.0, out=chord)
        angle = 2.0 * np.arctan2(np.sqrt(chord), np.sqrt(4.0 - chord))
        K = np.exp(-angle / self.length_scale)

        def pull(bar: FloatArray) -> Cotangent:
            W = bar * K
            found = {"length_scale": np.vdot(W, angle) / self.length_scale**2}
            if not inputs:
                return self.cotangent(found)
            sine = np.sin(angle)
            with np.errstate(divide="ignore", invalid="ignore"):  # dθ/d(pᵀq) = −1/sin θ
                W = np.where((sine > 1e-12) & (angle > 0), W / (self.length_scale * sine), 0.0)
            # directions move on the sphere only: what W @ Q holds along p is dropped by the tangent projection
            bar_X, bar_Y = self._on_points(W @ Q, P, X), self._on_points(W.T @ P, Q, X if Y is None else Y)
            return self.cotangent(found, *((bar_X + bar_Y,) if Y is None else (bar_X, bar_Y)))

        return K, pull

    def _on_points(self, bar_P: FloatArray, P: FloatArray, X: FloatArray) -> FloatArray:
        tangent = bar_P - np.einsum("ij,ij->i", bar_P, P)[:, None] * P
        return self._directions_pull(tangent, X)
