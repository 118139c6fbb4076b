"""Noise whose variance is learned as a function of x: log σ²(x) is a second latent process.

log σ²(x) = c + v(x)ᵀw with v(x) = L⁻¹ k_n(Z, x) at m places Z of the data and w ~ N(0, I): a process with the kernel
k_n, seen through Z. c, w and the parameters of the first kernel are those of the largest p(y | theta, c, w) N(w; 0, I),
found by L-BFGS with the exact gradient, which the evidence gives by the noise of every point. So the noise process is a
point estimate (its own uncertainty is left out), and k_n is not learned. O(n³) a step, as without it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.evidence import exact_evidence
from gramgraph.gp.hyper import Search, ascend, random_starts
from gramgraph.gp.methods import Data
from gramgraph.gp.posterior import ExactPosterior, fit_exact
from gramgraph.gp.sparse import select_inducing
from gramgraph.kernels.inputs import count
from gramgraph.linalg.base import MAX_JITTER, PositiveDefiniteError
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_PLACES = 50
_RANGE = 1e-8, 1e3  # of the noise variance, in variances of y


@dataclass(frozen=True, eq=False)
class NoiseProcess:
    """log σ²(x) = level + v(x)ᵀ weights.

    Parameters
    ----------
    kernel : of log σ².
    Z : (m, d) places.
    root : of the kernel's matrix there.
    level : mean of log σ².
    weights : (m,) of the features.
    low : least log σ².
    high : largest log σ².

    Examples
    --------
    >>> from gramgraph import GaussianProcessRegressor
    >>> x = np.linspace(0.0, 1.0, 60)[:, None]
    >>> y = x[:, 0] + np.where(x[:, 0] < 0.5, 0.01, 1.0) * np.random.default_rng(0).normal(size=60)
    >>> process = GaussianProcessRegressor(noise="learned").fit(x, y).posterior_.noise_process
    >>> bool(process.variance([[0.9]]) > 100 * process.variance([[0.1]]))
    True
    """

    kernel: Kernel
    Z: Any
    root: DenseFactor
    level: float
    weights: FloatArray  # (m,)
    low: float  # log σ² is kept between these
    high: float

    def project(self, X: Any) -> FloatArray:
        """v(x) of every point, (n, m)."""
        return self.root.half_solve(self.kernel.gram(X, self.Z).T).T

    def log_variance(self, X: Any) -> FloatArray:
        """log σ²(x), (n,)."""
        return np.clip(self.level + self.project(X) @ self.weights, self.low, self.high)

    def variance(self, X: Any) -> FloatArray:
        """σ²(x), (n,)."""
        return np.exp(self.log_variance(X))


def noise_kernel(X: Any) -> Kernel:
    """The kernel of log σ² when none is given: deviations by a factor e, over one standard deviation of each column.

    >>> noise_kernel(np.array([[0.0, 5.0], [2.0, 5.0]]))
    1 * RBF(length_scale=[1, 1])
    """
    from gramgraph.kernels import RBF

    if not isinstance(X, np.ndarray) or X.ndim != 2:
        raise ModelError("noise='learned' needs points that are vectors; give the kernel of log σ² as noise=… instead.")
    spread = X.std(0)
    return 1.0 * RBF(np.where(spread > 0.0, spread, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class NoisyPosterior(ExactPosterior):
    """`ExactPosterior` with the learned noise at new points: part of `var` and `cov` unless `latent`."""

    noise_process: NoiseProcess | None = None

    def noise_variance(self, X: Any) -> FloatArray:
        """σ²(x), (m,)."""
        assert self.noise_process is not None
        return self.noise_process.variance(X)

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Var y(x), (m,); of f(x) alone with `latent`."""
        found = super().var(X, latent=latent)
        return found if latent else found + self.noise_variance(X)

    def cov(self, X: Any, Z: Any | None = None, *, latent: bool = False) -> FloatArray:
        """Cov of y at X, (m, m); of f alone with `latent`, or between X and Z."""
        C = super().cov(X, Z, latent=latent)
        if Z is None and not latent:
            C[np.diag_indices_from(C)] += self.noise_variance(X)
        return C

    def condition(self, X: Any, Y: Any, *, noise: float | FloatArray = 0.0) -> NoisyPosterior:
        """The posterior after more points, with the learned noise added to theirs."""
        return with_noise(super().condition(X, Y, noise=noise + self.noise_variance(X)), self.noise_process)


def with_noise(posterior: ExactPosterior, process: NoiseProcess | None) -> NoisyPosterior:
    """The posterior, which knows the noise at new points."""
    values = {f.name: getattr(posterior, f.name) for f in fields(ExactPosterior)}
    return NoisyPosterior(**values, noise_process=process)


class LearnedNoise:
    """The method behind `noise="learned"`: learns the kernel and the noise process together.

    >>> from gramgraph.gp.means import Mean
    >>> from gramgraph.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.sin(6 * x) + np.where(x < 0.5, 0.05, 0.5) * rng.normal(size=x.shape)
    >>> method = LearnedNoise(Data(x, y, np.zeros(200), Mean()), None, rng)
    >>> method.start(1.0 * RBF(0.3), True, (1.0 * RBF()).bounds, rng, 0)
    >>> np.sqrt(method.process.variance([[0.1], [0.9]])).round(1)
    array([0. , 0.5])
    """

    name = "exact"
    exact = True

    def __init__(self, data: Data, kernel: Kernel | None, rng: np.random.Generator) -> None:
        self.data = data
        own = noise_kernel(data.X) if kernel is None else kernel
        Z = select_inducing(own, data.X, min(_PLACES, data.n), rng)
        K = np.ascontiguousarray(own.gram(Z))
        root = DenseFactor(*factor_lower(K, max_jitter=MAX_JITTER, what="The Gram matrix of the noise's places"))
        scale = max(float(data.Y.var()), 1e-12)
        low, high = (float(np.log(f * scale)) for f in _RANGE)
        self.process = NoiseProcess(own, Z, root, float(np.log(0.1 * scale)), np.zeros(count(Z)), low, high)
        self.search: Search | None = None

    def start(self, kernel: Kernel, learn: bool, bounds: FloatArray, rng: np.random.Generator, restarts: int) -> None:
        """Learn the kernel's parameters (if `learn`) and the noise, from the given kernel on."""
        p, d = len(kernel.theta) if learn else 0, self.data
        V, process = self.process.project(d.X), self.process

        def objective(v: FloatArray, gradient: bool) -> tuple[float, FloatArray | None]:
            raw = v[p] + V @ v[p + 1 :]
            inside = (raw > process.low) & (raw < process.high)
            variance = np.exp(np.clip(raw, process.low, process.high))
            here = kernel.with_theta(v[:p]) if learn else kernel
            try:
                found = exact_evidence(here, d.X, d.Y, noise=d.noise + variance, mean=d.mean, gradient=True)
            except PositiveDefiniteError:
                return -np.inf, None
            assert found.theta is not None and found.noise is not None
            slope = np.where(inside, found.noise * variance, 0.0)
            by_weights = slope @ V - v[p + 1 :]
            value = found.value - 0.5 * float(v[p + 1 :] @ v[p + 1 :])
            return value, np.concatenate([found.theta[:p], [slope.sum()], by_weights])

        rest = np.concatenate([[process.level], process.weights])
        box = np.concatenate([bounds[:p], [[process.low, process.high]], np.full((len(rest) - 1, 2), [-8.0, 8.0])])
        theta = kernel.theta[:p]
        starts = [theta, *(random_starts(theta, bounds, restarts, rng) if learn else [])]
        found = [ascend(objective, np.concatenate([t, rest]), box) for t in starts]
        best = max(found, key=lambda s: s.value)
        self.search = replace(best, evaluations=sum(s.evaluations for s in found))
        self.kernel = kernel.with_theta(best.theta[:p]) if learn else kernel
        self.process = replace(process, level=float(best.theta[p]), weights=best.theta[p + 1 :])

    def _noise(self) -> FloatArray:
        return self.data.noise + self.process.variance(self.data.X)

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y) with the noise as learned."""
        d = self.data
        found = exact_evidence(kernel, d.X, d.Y, noise=self._noise(), mean=d.mean, gradient=gradient)
        return found.value, found.theta

    def posterior(self, kernel: Kernel) -> NoisyPosterior:
        """The process given the data and the noise."""
        d = self.data
        return with_noise(fit_exact(kernel, d.X, d.Y, noise=self._noise(), mean=d.mean), self.process)

    def with_data(self, data: Data) -> LearnedNoise:
        """For other data, parameters kept."""
        new = object.__new__(LearnedNoise)
        new.data, new.process, new.search, new.kernel = data, self.process, self.search, self.kernel
        return new
