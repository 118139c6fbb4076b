"""Covariances of features from data of any length: read in parts, added up, merged between machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.embeddings.features import FeatureMap, feature_map
from gramgraph.exceptions import ModelError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import check_pairs, sample_of
from gramgraph.rkhs import SpaceError
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class FeatureCovariance:
    """Sums over pairs of features φ(x), ψ(y): n, Σφ, Σψ, Σφφᵀ, Σφψᵀ, Σψψᵀ. Memory O(r²), whatever the rows.

    `update` adds rows and `merge` adds two of them; both give new values. Without a kernel of y, ψ(y) are its numbers
    themselves and `predict` is E[y | x].

    Parameters
    ----------
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    x : features of x.
    y : features of y, or None.
    n : number of rows.
    sum_x : Σφ.
    sum_y : Σψ.
    xx : Σφφᵀ.
    xy : Σφψᵀ.
    yy : Σψψᵀ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> parts = [(x, np.sin(x)) for x in rng.uniform(-3, 3, size=(20, 500))]
    >>> sums = stream_covariance(parts)
    >>> sums.n, sums.predict([0.0, 1.0], reg=1e-6).round(2)[:, 0] + 0.0
    (10000, array([0.  , 0.84]))
    """

    kernel_x: Kernel
    kernel_y: Kernel | None
    x: FeatureMap
    y: FeatureMap | None
    n: int
    sum_x: FloatArray  # (r,)
    sum_y: FloatArray  # (s,)
    xx: FloatArray  # (r, r)
    xy: FloatArray  # (r, s)
    yy: FloatArray  # (s, s)

    def __repr__(self) -> str:
        return f"FeatureCovariance({self.n} rows, {len(self.sum_x)} and {len(self.sum_y)} features)"

    def _features(self, X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
        Phi = np.asarray(self.x.transform(self.kernel_x.prepare(X)))
        if self.y is None or self.kernel_y is None:
            Psi = np.asarray(Y, dtype=np.float64)
            Psi = Psi[:, None] if Psi.ndim == 1 else Psi
        else:
            Psi = np.asarray(self.y.transform(self.kernel_y.prepare(Y)))
        check_pairs(len(Phi), len(Psi))
        if not np.isfinite(Psi).all():
            raise ModelError("Y must be finite numbers; leave out rows that are missing.")
        return Phi, Psi

    def update(self, X: Any, Y: Any) -> Self:
        """With the rows of one more part; O(rows · r (r + s))."""
        Phi, Psi = self._features(X, Y)
        return replace(
            self,
            n=self.n + len(Phi),
            sum_x=self.sum_x + Phi.sum(axis=0),
            sum_y=self.sum_y + Psi.sum(axis=0),
            xx=self.xx + Phi.T @ Phi,
            xy=self.xy + Phi.T @ Psi,
            yy=self.yy + Psi.T @ Psi,
        )

    def merge(self, other: FeatureCovariance) -> Self:
        """The sums of both, which must have the same features (as after `empty`)."""
        if other.x is not self.x or other.y is not self.y:
            raise SpaceError("sums of different features cannot be added. Try: begin all parts with one.empty().")
        return replace(
            self,
            n=self.n + other.n,
            sum_x=self.sum_x + other.sum_x,
            sum_y=self.sum_y + other.sum_y,
            xx=self.xx + other.xx,
            xy=self.xy + other.xy,
            yy=self.yy + other.yy,
        )

    def empty(self) -> Self:
        """The same features without rows: where another worker begins."""
        zero = {name: np.zeros_like(getattr(self, name)) for name in ("sum_x", "sum_y", "xx", "xy", "yy")}
        return replace(self, n=0, **zero)

    def covariance(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centered C_XX (r, r), C_XY (r, s), C_YY (s, s)."""
        if not self.n:
            raise ModelError("there are no rows yet: call update first.")
        mx, my = self.sum_x / self.n, self.sum_y / self.n
        return (
            self.xx / self.n - np.outer(mx, mx),
            self.xy / self.n - np.outer(mx, my),
            self.yy / self.n - np.outer(my, my),
        )

    def hsic(self) -> float:
        """‖C_XY‖², the Hilbert–Schmidt independence criterion of these features; 0 for independent variables."""
        return float(np.sum(self.covariance()[1] ** 2))

    def smi(self, reg: float = 1e-3) -> float:
        """Squared-loss mutual information ½ ‖(C_XX + λ)^−½ C_XY (C_YY + λ)^−½‖²."""
        check_positive("reg", reg)
        xx, xy, yy = self.covariance()
        left = np.linalg.solve(xx + reg * np.eye(len(xx)), xy)
        return 0.5 * float(np.sum(left * np.linalg.solve(yy + reg * np.eye(len(yy)), xy.T).T))

    def predict(self, X: Any, *, reg: float = 1e-4) -> FloatArray:
        """E[ψ(y) | x] by centered ridge regression, (points, s): the conditional embedding in features."""
        check_positive("reg", reg)
        xx, xy, _ = self.covariance()
        coef = np.linalg.solve(xx + reg * np.eye(len(xx)), xy)
        Phi = np.asarray(self.x.transform(self.kernel_x.prepare(X)))
        return np.asarray((Phi - self.sum_x / self.n) @ coef + self.sum_y / self.n)


def stream_covariance(
    parts: Iterable[tuple[Any, Any]],
    *,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    approx: str = "nystrom",
    n_components: int = 200,
    random_state: RandomState = 0,
) -> FeatureCovariance:
    """Add up feature covariances over parts (X, Y), read one after the other; each part is looked at once.

    Features are fixed by the first part: its default kernel unless one is given, and landmarks among its rows
    (approx="nystrom", "cholesky"), or random Fourier features ("features"). Y without a kernel is taken as numbers.

    Parameters
    ----------
    parts : pairs (X, Y), read once.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    approx : None for all rows, "nystrom", "cholesky" or "features" for a smaller basis.
    n_components : size of that basis.
    random_state : seed, or a generator.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> parts = [(rng.normal(size=(20, 1)), rng.normal(size=20)) for _ in range(3)]
    >>> stream_covariance(parts, kernel_x=RBF(), n_components=5).n
    60
    """
    found: FeatureCovariance | None = None
    for X, Y in parts:
        found = _begin(X, Y, kernel_x, kernel_y, approx, n_components, random_state) if found is None else found
        found = found.update(X, Y)
    if found is None:
        raise ModelError("there is no part to learn from.")
    return found


def _begin(
    X: Any, Y: Any, kernel_x: Kernel | None, kernel_y: Kernel | None, approx: str, number: int, seed: RandomState
) -> FeatureCovariance:
    kernel_x, points, n = sample_of(X, kernel_x, None, name="X")
    x = feature_map(kernel_x, points, approx, n_components=min(number, n), random_state=seed)
    r = np.asarray(x.transform(points)).shape[1]
    y: FeatureMap | None = None
    if kernel_y is None:
        s = 1 if np.ndim(Y) == 1 else np.shape(Y)[1]
    else:
        kernel_y, outcomes, m = sample_of(Y, kernel_y, None, name="Y")
        y = feature_map(kernel_y, outcomes, approx, n_components=min(number, m), random_state=seed)
        s = np.asarray(y.transform(outcomes)).shape[1]
    zero = np.zeros
    return FeatureCovariance(
        kernel_x, kernel_y, x, y, n=0, sum_x=zero(r), sum_y=zero(s), xx=zero((r, r)), xy=zero((r, s)), yy=zero((s, s))
    )
