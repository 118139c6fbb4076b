"""State-space forms of kernels on the line: a Gaussian process as a stochastic differential equation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph.kernels.inputs import KernelError
from gramgraph.typing import FloatArray

__all__ = ["StateSpace", "add_models", "constant_model", "matern_model", "multiply_models"]


class StateSpace(NamedTuple):
    """dx = F x dt + L dw with noise density q, f = H x; k(t, t′) = H exp(F |t − t′|) Pinf Hᵀ."""

    F: FloatArray  # (s, s)
    L: FloatArray  # (s, r)
    H: FloatArray  # (1, s)
    Pinf: FloatArray  # (s, s) stationary covariance
    q: FloatArray  # (r, r)

    def scaled(self, variance: float) -> StateSpace:
        """The process of variance · k."""
        return self._replace(Pinf=variance * self.Pinf, q=variance * self.q)


def constant_model(value: float) -> StateSpace:
    """A state that keeps its first value."""
    one = np.ones((1, 1))
    return StateSpace(0 * one, one, one, value * one, 0 * one)


def matern_model(nu: float, length_scale: float) -> StateSpace:
    """Matérn 1/2, 3/2, 5/2: companion form with the root −λ, λ = √(2ν)/ℓ."""
    lam = np.sqrt(2.0 * nu) / length_scale
    if nu == 0.5:
        F, P, q = np.array([[-lam]]), np.eye(1), 2.0 * lam
    elif nu == 1.5:
        F, P, q = np.array([[0.0, 1.0], [-(lam**2), -2.0 * lam]]), np.diag([1.0, lam**2]), 4.0 * lam**3
    elif nu == 2.5:
        F = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-(lam**3), -3.0 * lam**2, -3.0 * lam]])
        kappa = lam**2 / 3.0
        P = np.array([[1.0, 0.0, -kappa], [0.0, kappa, 0.0], [-kappa, 0.0, lam**4]])
        q = 16.0 / 3.0 * lam**5
    else:
        raise KernelError(f"Matern.state_space: expected nu 1/2, 3/2 or 5/2, got {nu:g}.")
    s = len(F)
    return StateSpace(F, np.eye(s)[:, -1:], np.eye(s)[:1], P, np.array([[q]]))


def add_models(a: StateSpace, b: StateSpace) -> StateSpace:
    """Two independent processes side by side, observed as their sum."""

    def stack(A: FloatArray, B: FloatArray) -> FloatArray:
        top = np.concatenate([A, np.zeros((len(A), B.shape[1]))], axis=1)
        return np.concatenate([top, np.concatenate([np.zeros((len(B), A.shape[1])), B], axis=1)])

    H = np.concatenate([a.H, b.H], axis=1)
    return StateSpace(stack(a.F, b.F), stack(a.L, b.L), H, stack(a.Pinf, b.Pinf), stack(a.q, b.q))


def multiply_models(a: StateSpace, b: StateSpace) -> StateSpace:
    """The process whose covariance is the product: F₁ ⊕ F₂, P₁ ⊗ P₂; the noise follows from stationarity."""
    F = np.kron(a.F, np.eye(len(b.F))) + np.kron(np.eye(len(a.F)), b.F)
    P: FloatArray = np.kron(a.Pinf, b.Pinf).astype(np.float64)
    drift = F @ P
    return StateSpace(F, np.eye(len(F)), np.kron(a.H, b.H).astype(np.float64), P, -(drift + drift.T))
