"""The posterior of any method that can solve with Σ = K + noise: grids, Toeplitz matrices, conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.gp._shown import OneLine
from gramgraph.gp.evidence import Profile
from gramgraph.gp.markov import NoiseSplit
from gramgraph.gp.methods import Data
from gramgraph.gp.posterior import draw_columns
from gramgraph.gp.row_blocks import row_blocks
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False, repr=False)
class SolvePosterior(OneLine):
    """f | y through Σ⁻¹ [R, H] and a function that solves with Σ."""

    kernel: Kernel
    data: Data
    split: NoiseSplit
    solve: Callable[[FloatArray], FloatArray]
    solved: FloatArray  # (n, q + k)
    result: Profile
    shift: FloatArray  # (k, q)
    jitter: float = 0.0

    @property
    def log_evidence(self) -> float:
        """log p(Y)."""
        return self.result.value

    def _rows(self) -> int:
        return max(16, int(4e6) // max(self.data.n, 1))

    def mean(self, X: Any) -> FloatArray:
        """E f(x), (m, q)."""
        q = self.data.Y.shape[1]
        alpha = self.solved[:, :q] - self.solved[:, q:] @ self.result.coef
        fixed = self.data.mean.fixed(X)
        out = np.zeros((count(X), q)) if fixed is None else fixed.reshape(count(X), -1) + np.zeros(q)
        for rows, part in row_blocks(X, self._rows()):
            out[rows] += self.kernel.gram(part, self.data.X) @ alpha
            out[rows] += self.data.mean.basis(part) @ (self.result.coef + self.shift)
        return out

    def _rest(self, X: Any, K: FloatArray) -> FloatArray:
        return self.data.mean.basis(X) - K.T @ self.solved[:, self.data.Y.shape[1] :]

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Var f(x), (m,): one solution per point."""
        smooth = self.split.smooth
        assert smooth is not None
        out = smooth.diag(X) + (0.0 if latent else self.split.noise)
        for rows, part in row_blocks(X, self._rows()):
            K = smooth.gram(self.data.X, part)
            rest = self._rest(part, K)
            out[rows] -= np.einsum("ij,ij->j", K, self.solve(K))
            out[rows] += np.einsum("ij,jk,ik->i", rest, self.result.cov, rest)
        return np.maximum(out, 0.0)

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Cov f(x), (m, m)."""
        smooth = self.split.smooth
        assert smooth is not None
        K = smooth.gram(self.data.X, X)
        rest = self._rest(X, K)
        C = smooth.gram(X) - K.T @ self.solve(K) + rest @ self.result.cov @ rest.T
        diagonal = np.diag_indices_from(C)
        if not latent:
            C[diagonal] += self.split.noise
        C[diagonal] = np.maximum(C[diagonal], 0.0)  # as in `var`: solutions by iteration are off by their tolerance
        return 0.5 * (C + C.T)

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Draws, (m, q, n_samples)."""
        return draw_columns(self.mean(X), self.cov(X), n_samples, random_state)
