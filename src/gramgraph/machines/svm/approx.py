"""Large n for support vector machines: the same dual on features φ with φ(x)ᵀφ(x′) ≈ k(x, x′).

With K = ΦΦᵀ a product Kβ is Φ(Φᵀβ), O(n m) for m features whatever the number of points that moved, and a decision is
φ(x)ᵀw + b, O(m) whatever the number of support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.kernels.tables import Table, joined_tables
from gramgraph.machines.svm.kernel import ChosenKernel
from gramgraph.machines.svm.rows import Source
from gramgraph.typing import Array, FloatArray, IntArray

_ROWS = 2048  # points whose features are made at a time


class FeatureRows(Source):
    """Rows of ΦΦᵀ for features Φ (n, m)."""

    def __init__(self, Phi: Array) -> None:
        self.Phi = np.ascontiguousarray(Phi)
        self.n = len(Phi)
        self.diag = np.einsum("ij,ij->i", Phi, Phi).astype(np.float64)
        self._chosen: tuple[IntArray, Array] | None = None

    def settle(self, dtype: Any) -> None:
        """Keep the features in the precision that is wanted; what was single stays single."""
        if self.Phi.dtype != dtype and dtype == np.float32:
            self.Phi, self._chosen = self.Phi.astype(dtype), None

    def block(self, rows: IntArray, columns: IntArray) -> Array:
        """K[rows][:, columns]."""
        return self.Phi[rows] @ self.Phi[columns].T

    def arrange(self, columns: IntArray) -> None:
        """Take the features of the columns once."""
        self._columns = columns
        self._across = np.ascontiguousarray(self.Phi[columns].T)

    def rows_of(self, rows: IntArray, start: int = 0) -> Array:
        """K[rows][:, columns[start:]] for the announced columns."""
        return self.Phi[rows] @ self._across[:, start:]

    def subset(self, points: IntArray) -> FeatureRows:
        """The same features of some of the points."""
        return FeatureRows(self.Phi[points])

    def full(self, dtype: Any, n_jobs: int = 1) -> Array:
        """The whole matrix."""
        Phi = self.Phi.astype(dtype, copy=False)
        return Phi @ Phi.T

    def times(self, rows: IntArray, columns: IntArray, v: FloatArray) -> FloatArray:
        """K[rows][:, columns] @ v through the m features: O((rows + columns) m)."""
        w = self.Phi[columns].T @ v.astype(self.Phi.dtype)
        if len(rows) == self.n and bool(np.all(rows == np.arange(self.n))):
            return np.asarray(self.Phi @ w, dtype=np.float64)
        if self._chosen is None or self._chosen[0] is not rows:  # a search asks for the same rows many times
            self._chosen = rows, self.Phi[rows]
        return np.asarray(self._chosen[1] @ w, dtype=np.float64)


@dataclass(frozen=True)
class Memory:
    """What `partial_fit` carries from block to block: the support vectors so far."""

    points: Any
    Phi: FloatArray
    target: Array
    weight: FloatArray
    number: IntArray  # of the point in the stream
    seen: int  # points in all blocks so far
    total: float  # their weight


def joined(a: Any, b: Any) -> Any:
    """Points of two blocks, one after the other."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.concatenate([a, b])
    if isinstance(a, tuple):
        return tuple(joined(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Table):
        return joined_tables(a, b)
    return [*a, *b]


def kernel_value(chosen: ChosenKernel, approx: str) -> Any:
    """The kernel as a value of `gramgraph.kernels`, which has features."""
    from gramgraph import kernels

    if chosen.kind == "value":
        return chosen.function
    if chosen.kind == "rbf":
        return kernels.RBF(length_scale=float(1.0 / np.sqrt(2.0 * chosen.gamma)))
    if chosen.kind == "linear":
        return kernels.Linear()
    if chosen.kind == "poly":
        return kernels.Polynomial(degree=chosen.degree, offset=chosen.coef0, scale=chosen.gamma)
    if chosen.kind == "sigmoid":
        raise ModelError(
            f"approx={approx!r} needs a positive definite kernel, which 'sigmoid' is not. Try: approx=None, or "
            "another kernel."
        )
    raise ModelError(
        f"approx={approx!r} needs a kernel value or name, as it is evaluated at new pairs of points; kernel is "
        f"{'a precomputed matrix' if chosen.kind == 'precomputed' else 'a function'}. Try: approx=None, or a "
        "kernel of gramgraph.kernels."
    )


def make_features(kernel: Any, X: Any, approx: str, n_components: Any, landmarks: str, random_state: Any) -> Any:
    """The map φ: Nyström features through landmarks among X, or random Fourier features."""
    if isinstance(n_components, bool) or n_components != int(n_components) or n_components < 1:
        raise ModelError(f"n_components must be an integer of at least 1; it is {n_components!r}.")
    seed = random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state
    if approx == "features":
        d = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else 1
        return kernel.spectral_sample(int(n_components), d, random_state=seed)
    from gramgraph.linalg.nystrom import nystrom

    return nystrom(kernel, X, int(n_components), method=landmarks, random_state=seed)  # type: ignore[arg-type]


def features_of(features: Any, X: Any) -> FloatArray:
    """φ of all points, some rows at a time."""
    from gramgraph.kernels.inputs import count, take

    n = count(X)
    found = np.empty((n, features.rank if hasattr(features, "rank") else len(features.masses)))
    for start in range(0, n, _ROWS):
        here = slice(start, min(n, start + _ROWS))
        found[here] = features.transform(take(X, here))
    return found
