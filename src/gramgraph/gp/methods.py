"""The ways to compute one and the same posterior, and which of them fits a kernel and its points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gramgraph.gp.evidence import exact_evidence
from gramgraph.gp.means import Mean
from gramgraph.gp.posterior import fit_exact
from gramgraph.kernels.inputs import count
from gramgraph.linalg.blocks import select
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Data:
    """What the process is conditioned on: y = f(X) + noise."""

    X: Any
    Y: FloatArray  # (n, q)
    noise: FloatArray  # (n,)
    mean: Mean
    cross: FloatArray | None = None  # (n, n) covariances of the noise between points, zero on the diagonal

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.Y)

    def rows(self, at: Any) -> Data:
        """Some of the points."""
        cross = None if self.cross is None else self.cross[at][:, at]
        return Data(select(self.X, at), self.Y[at], self.noise[at], self.mean, cross)

    def joined(self, other: Data) -> Data:
        """These points and then the others."""
        from gramgraph.gp.posterior import _stack, side_by_side

        return Data(
            _stack(self.X, other.X),
            np.concatenate([self.Y, other.Y]),
            np.concatenate([self.noise, other.noise]),
            self.mean,
            side_by_side(self.cross, other.cross, self.n, other.n),
        )

    @property
    def equal_noise(self) -> float | None:
        """The noise variance when all points share it, else None."""
        return float(self.noise[0]) if self.cross is None and np.all(self.noise == self.noise[0]) else None


class Posterior(Protocol):
    """What every posterior answers; `var` is (m,), or (m, q) where outputs differ."""

    @property
    def log_evidence(self) -> float:
        """log p(Y), or its bound or approximation."""
        ...

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal."""
        ...

    def mean(self, X: Any) -> FloatArray:
        """(m, q)."""
        ...

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Variance of every point."""
        ...

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """(m, m), or (m, m, q) where outputs differ."""
        ...

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """(m, q, n_samples)."""
        ...


class Method(Protocol):
    """A way to the evidence and the posterior of given data, for any parameters of the kernel."""

    @property
    def name(self) -> str:
        """The word for it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it approximates nothing."""
        ...

    @property
    def data(self) -> Data:
        """What it was made for."""
        ...

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y) (or its bound) and its gradient by theta."""
        ...

    def posterior(self, kernel: Kernel) -> Any:
        """The process given the data."""
        ...

    def with_data(self, data: Data) -> Method:
        """The same way for other data."""
        ...


@dataclass(frozen=True, eq=False)
class Exact:
    """Cholesky of the (n, n) matrix: O(n³) time, O(n²) memory."""

    data: Data
    name = "exact"
    exact = True

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y)."""
        d = self.data
        found = exact_evidence(kernel, d.X, d.Y, noise=d.noise, cross=d.cross, mean=d.mean, gradient=gradient)
        return found.value, found.theta

    def posterior(self, kernel: Kernel) -> Any:
        """`ExactPosterior`."""
        d = self.data
        return fit_exact(kernel, d.X, d.Y, noise=d.noise, cross=d.cross, mean=d.mean)

    def with_data(self, data: Data) -> Exact:
        """For other data."""
        return replace(self, data=data)


def subset(data: Data, size: int, rng: np.random.Generator) -> Data:
    """A random part of the data, in its order."""
    rows = np.sort(rng.choice(count(data.X), size=min(size, data.n), replace=False))
    return data.rows(rows)
