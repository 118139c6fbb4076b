"""The Boltzmann machine without hidden units, small enough that its states can be counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gramgraph._validation import generator
from gramgraph.distributions._check import frozen, matrix, vector
from gramgraph.distributions._pack import pairs, side_of
from gramgraph.distributions.base import ExponentialFamily, count_of_draws
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.typing import Array, FloatArray, RandomState

_LARGEST = 18  # 2^18 states of 171 statistics are 360 MB; beyond that a Markov network is the better form


@dataclass(frozen=True, eq=False)
class Boltzmann(ExponentialFamily):
    """p(x) ∝ exp(bᵀx + Σ_{i<j} W_ij x_i x_j) on x ∈ {0, 1}^d, by counting all 2^d states (d ≤ 18).

    φ = (x_i x_j for i ≤ j): the diagonal is x itself. For larger models use `gg.MarkovNetwork`.

    Parameters
    ----------
    bias : b, (d,)
    weights : W, (d, d) symmetric; its diagonal must be zero

    Examples
    --------
    >>> pair = Boltzmann([0.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])
    >>> round(pair.density([1, 1]), 4), round(float(np.e / (np.e + 3)), 4)
    (0.4754, 0.4754)
    """

    bias: FloatArray  # (d,)
    weights: FloatArray  # (d, d)
    support = "binary_vector"
    event_ndim = 1

    def __post_init__(self) -> None:
        b = vector("bias", self.bias)
        W = matrix("weights", self.weights, (len(b), len(b)))
        if not np.allclose(W, W.T, rtol=1e-10, atol=1e-12) or np.diagonal(W).any():
            raise ModelError("weights must be symmetric with a zero diagonal; what x_i weighs alone belongs in bias.")
        _affordable(len(b))
        object.__setattr__(self, "bias", frozen(b))
        object.__setattr__(self, "weights", frozen(0.5 * (W + W.T)))

    @property
    def dim(self) -> int:
        """d, the number of units."""
        return len(self.bias)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(d,)."""
        return self.bias.shape

    @cached_property
    def _table(self) -> tuple[FloatArray, float]:
        """Probabilities of all states, (2^d,), and A."""
        energies = _states(self.dim)
        total = energies @ self.bias + 0.5 * np.einsum("si,si->s", energies @ self.weights, energies)
        top = float(total.max())
        p = np.exp(total - top)
        return p / p.sum(), top + float(np.log(p.sum()))

    @property
    def mean(self) -> FloatArray:
        """E x, the chance of each unit to be on, (d,)."""
        return self._table[0] @ _states(self.dim)

    @property
    def natural_parameters(self) -> FloatArray:
        """b on the diagonal and W above it, packed."""
        i, j = pairs(self.dim)
        return np.where(i == j, self.bias[i], self.weights[i, j])

    @property
    def log_partition(self) -> float:
        """log Σ_x exp(θᵀφ(x))."""
        return self._table[1]

    @property
    def mean_parameters(self) -> FloatArray:
        """E x_i x_j for i ≤ j, packed."""
        x = _states(self.dim)
        i, j = pairs(self.dim)
        return (x.T @ (self._table[0][:, None] * x))[i, j]

    @property
    def log_partition_hessian(self) -> FloatArray:
        """Covariances of all pairs of statistics."""
        phi = self._phi(_states(self.dim))
        p = self._table[0]
        m = p @ phi
        return (phi * p[:, None]).T @ phi - np.outer(m, m)

    @classmethod
    def from_natural(cls, theta: Any, /, **known: Any) -> Self:
        """b and W from their packed form."""
        t = vector("theta", theta)
        d = side_of(len(t), "theta")
        i, j = pairs(d)
        W = np.zeros((d, d))
        W[i, j] = W[j, i] = np.where(i == j, 0.0, t)
        return cls(t[i == j], W)

    @classmethod
    def from_mean(cls, mu: Any, /, **known: Any) -> Self:
        """Newton's method on the concave θᵀμ − A(θ); every moment must be possible strictly."""
        m = vector("mu", mu)
        d = side_of(len(m), "mu")
        _affordable(d)
        phi = cls._phi(_states(d))
        theta = np.zeros(len(m))
        p, value = _gibbs(phi, theta)
        for _ in range(200):
            miss = m - p @ phi
            mean = p @ phi
            H = (phi * p[:, None]).T @ phi - np.outer(mean, mean)
            step = np.linalg.lstsq(H, miss, rcond=1e-14)[0]
            if np.abs(miss).max() <= 1e-13:
                break
            pace = 1.0
            while pace > 1e-12:  # θᵀμ − A must rise
                q, new = _gibbs(phi, theta + pace * step)
                if pace * (step @ m) - new + value >= -1e-15:
                    break
                pace *= 0.5
            theta, p, value = theta + pace * step, q, new
        if np.abs(m - p @ phi).max() > 1e-8 or float(np.linalg.eigvalsh(H)[0]) < 1e-11:
            raise ModelError(
                "No finite parameters have these moments: some combination of units is always or never seen. What "
                "helps: more data, or add half a count to every state."
            )
        return cls.from_natural(theta)

    @classmethod
    def _phi(cls, x: FloatArray, **known: Any) -> FloatArray:
        i, j = pairs(x.shape[-1])
        return x[..., i] * x[..., j]

    def sample(self, n: int = 1, random_state: RandomState = None) -> Array:
        """n states of 0 and 1, (n, d)."""
        p = self._table[0]
        codes = generator(random_state).choice(len(p), size=count_of_draws(n), p=p)
        return ((codes[:, None] >> np.arange(self.dim)) & 1).astype(np.int64)


def _states(d: int) -> FloatArray:
    """All of {0, 1}^d, (2^d, d); unit i is bit i."""
    return ((np.arange(1 << d)[:, None] >> np.arange(d)) & 1).astype(np.float64)


def _gibbs(phi: FloatArray, theta: FloatArray) -> tuple[FloatArray, float]:
    total = phi @ theta
    top = float(total.max())
    p = np.exp(total - top)
    return p / p.sum(), top + float(np.log(p.sum()))


def _affordable(d: int) -> None:
    if d > _LARGEST:
        raise BudgetError(
            f"A Boltzmann distribution counts all 2^d states; d = {d} is above {_LARGEST}.",
            bytes=8.0 * 2.0**d * d,
            remedies=["gg.MarkovNetwork holds the same model as factors over pairs and never counts all states"],
        )
