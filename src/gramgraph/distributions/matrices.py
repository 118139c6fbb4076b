"""Families on positive definite matrices: Wishart for precisions, inverse Wishart for covariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import covariance_like, frozen, number, vector
from gramgraph.distributions._moments import multi_digamma, multi_trigamma, shape_from_gap
from gramgraph.distributions._pack import pack, pack_dual, packed_cov, side_of, unpack, unpack_dual
from gramgraph.distributions._root import Root, psd_root, symmetric
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class _OnMatrices(ExponentialFamily):
    """What both families share: degrees of freedom ν > d − 1 and a positive definite scale (d, d)."""

    support = "positive_definite"
    event_ndim = 2
    dof: float
    scale: FloatArray

    def __post_init__(self) -> None:
        scale = np.asarray(self.scale)
        d = 1 if scale.ndim == 0 else len(scale)
        C = covariance_like("scale", self.scale, d)
        root = psd_root(C, "scale")
        if not root.full:
            raise ModelError(f"scale must be positive definite; its rank is {root.rank} of {d}.")
        object.__setattr__(self, "dof", number("dof", self.dof, low=d - 1.0))
        object.__setattr__(self, "scale", frozen(C))
        self.__dict__["_root"] = root

    @cached_property
    def _root(self) -> Root:
        return psd_root(self.scale, "scale")

    @property
    def dim(self) -> int:
        """d, the side of the matrices."""
        return len(self.scale)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(d, d)."""
        return self.scale.shape

    @property
    def _half(self) -> float:
        return 0.5 * self.dof


@dataclass(frozen=True, eq=False)
class Wishart(_OnMatrices):
    """p(X) ∝ |X|^((ν−d−1)/2) exp(−½ tr V⁻¹X), the distribution of Σ zzᵀ over ν draws z ~ N(0, V).

    φ = (log |X|, X), θ = ((ν − d − 1)/2, −½ V⁻¹), A = log Γ_d(ν/2) + (ν/2) log |2V|. X enters φ as its upper triangle,
    and off-diagonal entries of θ are doubled accordingly.

    Parameters
    ----------
    dof : ν > d − 1
    scale : V, (d, d) positive definite

    Examples
    --------
    >>> Wishart(5.0, [[2.0, 0.0], [0.0, 1.0]]).mean.tolist()
    [[10.0, 0.0], [0.0, 5.0]]
    """

    @property
    def mean(self) -> FloatArray:
        """ν V."""
        return self.dof * self.scale

    @property
    def natural_parameters(self) -> FloatArray:
        """((ν − d − 1)/2, −½ V⁻¹ packed)."""
        first = 0.5 * (self.dof - self.dim - 1.0)
        return np.concatenate([[first], pack_dual(-0.5 * self._root.inverse())])

    @property
    def log_partition(self) -> float:
        """log Γ_d(ν/2) + (ν/2) log |2V|."""
        from scipy.special import multigammaln

        return float(multigammaln(self._half, self.dim) + self._half * self._log_det_2v)

    @property
    def _log_det_2v(self) -> float:
        return self._root.log_det + self.dim * float(np.log(2.0))

    @property
    def mean_parameters(self) -> FloatArray:
        """(E log |X|, E X) = (ψ_d(ν/2) + log |2V|, ν V)."""
        first = multi_digamma(self._half, self.dim) + self._log_det_2v
        return np.concatenate([[first], pack(self.mean)])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """Variance ψ_d′(ν/2), covariances 2V, and ν (V_ik V_jl + V_il V_jk)."""
        H = np.empty((1 + self.dim * (self.dim + 1) // 2,) * 2)
        H[0, 0] = multi_trigamma(self._half, self.dim)
        H[0, 1:] = H[1:, 0] = pack(2.0 * self.scale)
        H[1:, 1:] = self.dof * packed_cov(self.scale)
        return H

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """ν = 2θ₁ + d + 1, V = −½ Θ⁻¹."""
        t = vector("theta", theta)
        d = side_of(len(t), "theta", extra=1)
        P = unpack_dual(-2.0 * t[1:], d)
        return cls(2.0 * float(t[0]) + d + 1.0, _inverse(P, "−2Θ = V⁻¹"))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Solves d log n − ψ_d(n) = log |E X| − E log |X| for n = ν/2; V = E X / ν."""
        m = vector("mu", mu)
        d = side_of(len(m), "mu", extra=1)
        M = unpack(m[1:], d)
        root = psd_root(M, "E X")
        if not root.full:
            raise ModelError(f"E X must be positive definite; its rank is {root.rank} of {d}.")
        dof = 2.0 * shape_from_gap(root.log_det - float(m[0]), d, "matrices")
        return cls(dof, M / dof)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.concatenate([np.linalg.slogdet(x)[1][..., None], pack(x)], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n, d, d), by Bartlett's decomposition."""
        F = self._root.F @ _bartlett(self.dof, self.dim, count_of_draws(n), generator(random_state))
        return F @ np.swapaxes(F, -1, -2)


@dataclass(frozen=True, eq=False)
class InverseWishart(_OnMatrices):
    """p(X) ∝ |X|^(−(ν+d+1)/2) exp(−½ tr ΨX⁻¹): X⁻¹ is Wishart(ν, Ψ⁻¹).

    φ = (log |X|, X⁻¹), θ = (−(ν + d + 1)/2, −½ Ψ), A = log Γ_d(ν/2) − (ν/2) log |Ψ/2|. X⁻¹ enters φ as its upper
    triangle, and off-diagonal entries of θ are doubled accordingly.

    Parameters
    ----------
    dof : ν > d − 1
    scale : Ψ, (d, d) positive definite

    Examples
    --------
    >>> InverseWishart(6.0, [[3.0, 0.0], [0.0, 6.0]]).mean.tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """

    @property
    def mean(self) -> FloatArray:
        """Ψ / (ν − d − 1); infinite for ν ≤ d + 1."""
        room = self.dof - self.dim - 1.0
        return self.scale / room if room > 0.0 else np.full_like(self.scale, np.inf)

    @property
    def natural_parameters(self) -> FloatArray:
        """(−(ν + d + 1)/2, −½ Ψ packed)."""
        return np.concatenate([[-0.5 * (self.dof + self.dim + 1.0)], pack_dual(-0.5 * self.scale)])

    @property
    def log_partition(self) -> float:
        """log Γ_d(ν/2) − (ν/2) log |Ψ/2|."""
        from scipy.special import multigammaln

        return float(multigammaln(self._half, self.dim) - self._half * self._log_det_half)

    @property
    def _log_det_half(self) -> float:
        return self._root.log_det - self.dim * float(np.log(2.0))

    @property
    def mean_parameters(self) -> FloatArray:
        """(E log |X|, E X⁻¹) = (log |Ψ/2| − ψ_d(ν/2), ν Ψ⁻¹)."""
        first = self._log_det_half - multi_digamma(self._half, self.dim)
        return np.concatenate([[first], pack(self.dof * self._root.inverse())])

    @property
    def log_partition_hessian(self) -> FloatArray:
        """Variance ψ_d′(ν/2), covariances −2Ψ⁻¹, and ν (W_ik W_jl + W_il W_jk) with W = Ψ⁻¹."""
        W = self._root.inverse()
        H = np.empty((1 + self.dim * (self.dim + 1) // 2,) * 2)
        H[0, 0] = multi_trigamma(self._half, self.dim)
        H[0, 1:] = H[1:, 0] = pack(-2.0 * W)
        H[1:, 1:] = self.dof * packed_cov(W)
        return H

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """ν = −2θ₁ − d − 1, Ψ = −2Θ."""
        t = vector("theta", theta)
        d = side_of(len(t), "theta", extra=1)
        return cls(-2.0 * float(t[0]) - d - 1.0, unpack_dual(-2.0 * t[1:], d))

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """As for the Wishart distribution of X⁻¹."""
        m = vector("mu", mu)
        twin = Wishart.from_mean(np.concatenate([[-m[0]], m[1:]]))
        return cls(twin.dof, twin._root.inverse())

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        return np.concatenate([np.linalg.slogdet(x)[1][..., None], pack(np.asarray(np.linalg.inv(x)))], axis=-1)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws, (n, d, d): with X⁻¹ = F B Bᵀ Fᵀ, X = (F B)⁻ᵀ (F B)⁻¹."""
        T = _bartlett(self.dof, self.dim, count_of_draws(n), generator(random_state))
        # Ψ = L Lᵀ, so L⁻ᵀ T Tᵀ L⁻¹ is Wishart(ν, Ψ⁻¹) and its inverse is (L T⁻ᵀ)(L T⁻ᵀ)ᵀ
        F = self._root.F @ np.swapaxes(np.linalg.inv(T), -1, -2)
        return F @ np.swapaxes(F, -1, -2)


def _bartlett(dof: float, d: int, n: int, rng: np.random.Generator) -> FloatArray:
    """n lower triangular T (d, d) with T Tᵀ ~ Wishart(ν, I)."""
    T = np.tril(rng.standard_normal((n, d, d)), -1)
    at = np.arange(d)
    T[:, at, at] = np.sqrt(rng.chisquare(dof - at, size=(n, d)))
    return T


def _inverse(P: FloatArray, what: str) -> FloatArray:
    root = psd_root(P, what)
    if not root.full:
        raise ModelError(f"{what} must be positive definite; its rank is {root.rank} of {len(P)}.")
    return symmetric(root.inverse())
