"""Finite features of a sample: incomplete Cholesky, Nyström or random, behind one small interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gramgraph._validation import check_choice, check_count
from gramgraph.exceptions import OptionError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray, RandomState

#: How features are made: to rounding, by incomplete Cholesky, from landmarks, or at random.
APPROXIMATIONS = ("exact", "cholesky", "nystrom", "features")
_TOL = {"exact": 0.0, "cholesky": 1e-9}


class FeatureMap(Protocol):
    """φ with φ(x)ᵀφ(x′) ≈ k(x, x′)."""

    def transform(self, X: Any, /) -> FloatArray:
        """φ(X), (n, r)."""
        ...


def feature_map(
    kernel: Kernel, X: Any, approx: str, *, n_components: int = 300, random_state: RandomState = None
) -> FeatureMap:
    """The map of the prepared points X; `n_components` bounds the number of features except for "exact"."""
    from gramgraph.linalg.blocks import select
    from gramgraph.linalg.nystrom import NystromMap, nystrom
    from gramgraph.linalg.pivoted import pivoted_cholesky

    check_choice("approx", approx, APPROXIMATIONS)
    check_count("n_components", n_components)
    if approx == "features":
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise OptionError("approx='features' needs points that are vectors. Try: approx='nystrom'.")
        return kernel.spectral_sample(int(n_components), X.shape[1], random_state)
    if approx == "nystrom":
        return nystrom(kernel, X, int(n_components), method="uniform", random_state=random_state)
    rank = count(X) if approx == "exact" else int(n_components)
    pivots = pivoted_cholesky(kernel, X, tol=_TOL[approx], max_rank=rank).pivots
    return NystromMap.of(kernel, select(X, pivots))


def principal_features(kernel: Kernel, X: Any, most: int) -> FloatArray:
    """The leading `most` centered principal components of the sample, (n, ≤ most), scaled as in feature space."""
    from gramgraph.linalg import pivoted_cholesky

    L = pivoted_cholesky(kernel, X, tol=1e-6, max_rank=100).L
    scale = float(np.vdot(L, L))  # before centering: what a constant leaves behind is rounding
    L = L - L.mean(axis=0)
    values, V = np.linalg.eigh(L.T @ L)
    keep = np.flatnonzero(values > 1e-10 * scale)[::-1][:most]
    return L @ V[:, keep]


@dataclass(frozen=True, eq=False)
class RidgeSpectrum:
    """Ridge regression on centered features, for every penalty at once: Φ − mean = U diag(√values) Vᵀ.

    The hat matrix of penalty nλ, free intercept included, is 1/n + U diag(values / (values + nλ)) Uᵀ. With weights wᵢ
    that add up to one, means are weighted and U are left singular vectors of √(n w) (Φ − mean).
    """

    mean: FloatArray  # (r,)
    U: FloatArray  # (n, q)
    V: FloatArray  # (r, q)
    values: FloatArray  # (q,), of ΦᵀΦ

    @classmethod
    def of(cls, Phi: FloatArray, *, center: bool = True, weights: FloatArray | None = None) -> RidgeSpectrum:
        """n r² operations and an eigendecomposition (r, r); directions at the level of rounding are left out."""
        n, r = Phi.shape
        root = None if weights is None else np.sqrt(n * weights)[:, None]
        scale = float(np.vdot(Phi, Phi))
        mean = np.zeros(r) if not center else Phi.mean(axis=0) if weights is None else weights @ Phi
        Phi = Phi - mean
        Phi = Phi if root is None else Phi * root
        values, V = np.linalg.eigh(Phi.T @ Phi)
        keep = values > max(n, r) * float(np.finfo(float).eps) * scale
        values, V = values[keep], V[:, keep]
        return cls(mean, (Phi @ V) / np.sqrt(values), V, values)

    def shrinkage(self, reg: float) -> FloatArray:
        """values / (values + n·reg), what is kept of every direction."""
        return self.values / (self.values + len(self.U) * reg)

    def loo_errors(self, B: FloatArray, regs: FloatArray, *, center: bool = True, rows: Any = None) -> FloatArray:
        """Mean squared leave-one-out error of the targets B (n, s), one number a penalty, in closed form.

        Rᵢ / (1 − hᵢᵢ) is exact for ridge regression with a free intercept. `rows` restricts the mean to some of them;
        then a penalty costs rows × q × s operations.
        """
        n = len(self.U)
        base = B - B.mean(axis=0) if center else B
        coef = self.U.T @ base
        U = self.U if rows is None else self.U[rows]
        base = base if rows is None else base[rows]
        squares, out = U**2, np.empty(len(regs))
        for i, reg in enumerate(regs):
            keep = self.shrinkage(float(reg))
            rest = base - (U * keep) @ coef
            free = 1.0 - squares @ keep - (1.0 / n if center else 0.0)
            out[i] = float((np.einsum("ij,ij->i", rest, rest) / np.maximum(free, 1e-8) ** 2).mean())
        return out
