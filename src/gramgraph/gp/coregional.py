"""Several outputs that learn from each other: covariance B ⊗ k + diag(noise) ⊗ I, all of it learned.

With D = diag(noise) and D^-½ B D^-½ = U diag(s) Uᵀ the columns of Y D^-½ U are independent processes of kernels
s_i k + δ, so that one eigendecomposition of K serves all of them: O(n³ + n² t) instead of O(n³ t³).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError
from gramgraph.gp._shown import OneLine
from gramgraph.gp.hyper import Search, ascend, random_starts
from gramgraph.gp.methods import Data
from gramgraph.kernels.inputs import count
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class _Parts:
    value: float
    s: FloatArray  # (t,)
    M: FloatArray  # (t, t) D^-½ U
    lam: FloatArray  # (n,) eigenvalues of K
    Q: FloatArray  # (n, n) eigenvectors
    a: FloatArray  # (n, t): (B ⊗ K + D ⊗ I)⁻¹ vec Y


def _parts(K: FloatArray, Y: FloatArray, B: FloatArray, noise: FloatArray) -> _Parts:
    from scipy.linalg import eigh

    root = 1.0 / np.sqrt(noise)
    s, U = np.linalg.eigh(root[:, None] * B * root)
    s = np.maximum(s, 0.0)
    lam, Q = eigh(K, check_finite=False)
    lam = np.maximum(lam, 0.0)
    M = root[:, None] * U
    inner = Q.T @ Y @ M
    scale = lam[:, None] * s + 1.0  # (n, t)
    n, t = Y.shape
    fit = -0.5 * float((inner**2 / scale).sum())
    value = fit - 0.5 * float(np.log(scale).sum()) - 0.5 * n * float(np.log(noise).sum()) - 0.5 * n * t * _LOG_2PI
    return _Parts(value, s, M, lam, Q, Q @ (inner / scale) @ M.T)


def coregional_evidence(
    kernel: Kernel, X: Any, Y: FloatArray, B: FloatArray, noise: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """log p(Y) and its gradients by theta, by B (t, t) and by the noise (t,); one eigendecomposition."""
    K, pull = kernel.pullback(X)
    p = _parts(K.copy(), Y, B, noise)
    scale = p.lam[:, None] * p.s + 1.0
    weight = (p.s / scale).sum(1)  # (n,)
    bar_K = 0.5 * (p.a @ B @ p.a.T - (p.Q * weight) @ p.Q.T)
    traces = (p.lam[:, None] / scale).sum(0)
    bar_B = 0.5 * (p.a.T @ (K @ p.a) - (p.M * traces) @ p.M.T)
    bar_noise = 0.5 * ((p.a**2).sum(0) - ((p.M * (1.0 / scale).sum(0)) * p.M).sum(1))
    return p.value, pull(bar_K).theta, bar_B, bar_noise


class Coregional:
    """The method behind `coregionalization=rank`: learns the kernel, B = W Wᵀ + diag(κ) and one noise an output.

    Its limits: all outputs are seen at all points (no gaps in Y), the noise of an output is the same everywhere, one
    kernel serves all outputs (a single B), there is no mean function, and `alpha` is added to every learned noise.
    """

    name = "coregional"
    exact = True

    def __init__(self, data: Data, rank: int) -> None:
        check_count("coregionalization, the rank of W,", rank, 0)
        if data.mean.basis(data.X).shape[1] or data.mean.fixed(data.X) is not None:
            raise ModelError("coregionalization has no mean functions. Try: normalize_y=True.")
        if data.equal_noise is None:
            raise ModelError(
                "coregionalization has one noise variance an output, the same for all points: alpha must be a number."
            )
        self.data, self.rank = data, int(rank)

    def _unpack(self, extra: FloatArray, t: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        W = extra[: t * self.rank].reshape(t, self.rank)
        kappa, noise = np.exp(extra[t * self.rank : t * (self.rank + 1)]), np.exp(extra[t * (self.rank + 1) :])
        return W, kappa, noise, W @ W.T + np.diag(kappa)

    def start(self, kernel: Kernel, learn: bool, bounds: FloatArray, rng: np.random.Generator, restarts: int) -> None:
        """Learn all parameters from the given kernel on."""
        Y = self.data.Y
        t, p = Y.shape[1], len(kernel.theta)
        spread = np.maximum(Y.var(0), 1e-10)
        extra = np.concatenate(
            [
                (np.sqrt(spread)[:, None] * (0.5 + 0.3 * rng.standard_normal((t, self.rank)))).ravel(),
                np.log(0.5 * spread),
                np.log(0.1 * spread),
            ]
        )
        floor = np.log(1e-8 * spread)
        low = np.concatenate([np.full(t * self.rank, -np.inf), floor, floor])
        high = np.concatenate([np.full(t * self.rank, np.inf), np.log(1e6 * spread), np.log(1e3 * spread)])
        box = np.concatenate([bounds, np.column_stack([low, high])])

        def objective(all_: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
            W, kappa, noise, B = self._unpack(all_[p:], t)
            value, theta, bar_B, bar_noise = coregional_evidence(
                kernel.with_theta(all_[:p]), self.data.X, Y, B, noise + self.data.noise.mean()
            )
            sym = bar_B + bar_B.T
            return value, np.concatenate([theta, (sym @ W).ravel(), np.diag(bar_B) * kappa, bar_noise * noise])

        first = np.concatenate([kernel.theta, extra])
        starts = [first, *random_starts(first, box, restarts, rng)] if learn else []
        found = [ascend(objective, start, box) for start in starts]
        self.search: Search | None = max(found, key=lambda s: s.value) if found else None
        best = first if self.search is None else self.search.theta
        self.kernel = kernel.with_theta(best[:p])
        self.W, self.kappa, self.noise, self.B = self._unpack(best[p:], t)

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y) with B and the noise as learned."""
        noise = self.noise + self.data.noise.mean()
        value, theta, _, _ = coregional_evidence(kernel, self.data.X, self.data.Y, self.B, noise)
        return value, theta if gradient else None

    def posterior(self, kernel: Kernel) -> CoregionalPosterior:
        """The process of all outputs."""
        noise = self.noise + self.data.noise.mean()
        parts = _parts(kernel.gram(self.data.X), self.data.Y, self.B, noise)
        return CoregionalPosterior(kernel, self.data.X, self.B, self.noise, parts)

    def with_data(self, data: Data) -> Coregional:
        """For other data, parameters kept."""
        new = Coregional(data, self.rank)
        new.kernel, new.B, new.noise, new.W, new.kappa = self.kernel, self.B, self.noise, self.W, self.kappa
        new.search = self.search
        return new


@dataclass(frozen=True, eq=False, repr=False)
class CoregionalPosterior(OneLine):
    """Outputs f_j with Cov(f_i(x), f_j(x′)) = B_ij k(x, x′), given noisy values of all of them."""

    kernel: Kernel
    X: Any
    B: FloatArray  # (t, t)
    noise: FloatArray  # (t,)
    parts: _Parts
    jitter: float = 0.0

    @property
    def log_evidence(self) -> float:
        """log p(Y)."""
        return self.parts.value

    def mean(self, X: Any) -> FloatArray:
        """(m, t)."""
        return self.kernel.gram(X, self.X) @ self.parts.a @ self.B

    def _shrink(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Rows of k(x, X) Q, and the (n, t, t) weights B Σ⁻¹ B of every eigenvalue."""
        p = self.parts
        BM = self.B @ p.M
        weights = np.einsum("ip,np,jp->nij", BM, 1.0 / (p.lam[:, None] * p.s + 1.0), BM)
        return self.kernel.gram(X, self.X) @ p.Q, weights

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """(m, t); with the noise of the outputs unless `latent`."""
        KQ, weights = self._shrink(X)
        own = np.einsum("nii->ni", weights)
        out = np.outer(self.kernel.diag(X), np.diag(self.B)) - (KQ**2) @ own
        return np.maximum(out + (0.0 if latent else self.noise), 0.0)

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Covariance between points of every output by itself, (m, m, t)."""
        KQ, weights = self._shrink(X)
        own = np.einsum("nii->ni", weights)
        out = self.kernel.gram(X)[:, :, None] * np.diag(self.B) - np.einsum("an,bn,nt->abt", KQ, KQ, own, optimize=True)
        if not latent:
            at = np.arange(count(X))
            out[at, at] += self.noise
        return out

    def joint(self, X: Any) -> FloatArray:
        """Covariance of all outputs at all points, latent, (m t, m t), outputs running fastest."""
        KQ, weights = self._shrink(X)
        m, t = len(KQ), len(self.B)
        first = np.einsum("ab,ij->aibj", self.kernel.gram(X), self.B)
        C = first - np.einsum("an,bn,nij->aibj", KQ, KQ, weights, optimize=True)
        return C.reshape(m * t, m * t)

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Joint draws of the latent outputs, (m, t, n_samples)."""
        rng = generator(random_state)
        half = symmetric_root(self.joint(X))
        mean = self.mean(X)
        return mean[:, :, None] + (half @ rng.standard_normal((half.shape[1], n_samples))).reshape(
            *mean.shape, n_samples
        )
