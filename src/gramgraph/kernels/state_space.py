"""State-space forms of kernels on the line: a Gaussian process as a stochastic differential equation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gramgraph.kernels.inputs import KernelError
from gramgraph.typing import FloatArray


class StateSpace(NamedTuple):
    """dx = F x dt + L dw with noise density q, f = H x.

    A stationary process (`origin` None) has the covariance Pinf at all times, and k(t, t′) = H exp(F |t − t′|) Pinf Hᵀ.
    One that starts at an origin (Wiener) has the covariance Pinf there, and `covariance(t)` later.
    """

    F: FloatArray  # (s, s)
    L: FloatArray  # (s, r)
    H: FloatArray  # (1, s)
    Pinf: FloatArray  # (s, s) covariance of the state: at all times, or at the origin
    q: FloatArray  # (r, r)
    origin: float | None = None

    def scaled(self, variance: float) -> StateSpace:
        """The process of variance · k."""
        return self._replace(Pinf=variance * self.Pinf, q=variance * self.q)

    @property
    def noise(self) -> FloatArray:
        """L q Lᵀ, (s, s)."""
        return self.L @ self.q @ self.L.T

    def step(self, dt: float) -> tuple[FloatArray, FloatArray]:
        """A and Q of x(t + dt) = A x(t) + e, e ~ N(0, Q). O(s³), and O(s⁶) for a process that starts at an origin."""
        from scipy.linalg import expm

        s = len(self.F)
        A = np.asarray(expm(self.F * dt))
        if self.origin is None:  # stationarity leaves this for the noise
            return A, self.Pinf - A @ self.Pinf @ A.T
        # Q′ = F Q + Q Fᵀ + L q Lᵀ from 0 as one linear system: nothing in it grows where F is stable
        M = np.zeros((s * s + 1, s * s + 1))
        M[:-1, :-1] = np.kron(self.F, np.eye(s)) + np.kron(np.eye(s), self.F)
        M[:-1, -1] = self.noise.ravel()
        return A, np.asarray(expm(M * dt))[:-1, -1].reshape(s, s)

    def covariance(self, t: float) -> FloatArray:
        """Covariance of the state at time t, (s, s): where a filter that begins at t starts."""
        if self.origin is None:
            return self.Pinf
        if t < self.origin:
            raise KernelError(f"StateSpace.covariance: expected a time ≥ origin = {self.origin}, got {t}.")
        A, Q = self.step(t - self.origin)
        return A @ self.Pinf @ A.T + Q

    def gram(self, X: Any, Y: Any | None = None, /) -> FloatArray:
        """k at times X and Y by the definition, one matrix exponential per pair: the slow reference.

        >>> from gramgraph.kernels import Wiener
        >>> Wiener().state_space().gram([1.0, 2.0]).round(6)
        array([[1., 1.],
               [1., 2.]])
        """
        x = np.ravel(np.asarray(X, dtype=np.float64))
        y = x if Y is None else np.ravel(np.asarray(Y, dtype=np.float64))
        K = np.empty((len(x), len(y)))
        for i, j in np.ndindex(K.shape):
            low, high = sorted((float(x[i]), float(y[j])))
            P = self.step(high - low)[0] @ self.covariance(low)
            K[i, j] = (self.H @ P @ self.H.T).item()
        return K


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


def wiener_model(order: int, origin: float) -> StateSpace:
    """Brownian motion integrated `order` times: a chain of integrators that starts at 0 at the origin."""
    s = order + 1
    F = np.diag(np.ones(order), 1)
    return StateSpace(F, np.eye(s)[:, -1:], np.eye(s)[:1], np.zeros((s, s)), np.ones((1, 1)), float(origin))


def _origin(a: StateSpace, b: StateSpace) -> float | None:
    """Where both start; a stationary process can be looked at from any time on."""
    if a.origin is not None and b.origin is not None and a.origin != b.origin:
        raise KernelError(
            f"state_space: expected processes that start at one origin, got {a.origin} and {b.origin}. "
            "Try: the smaller origin for both."
        )
    return b.origin if a.origin is None else a.origin


def add_models(a: StateSpace, b: StateSpace) -> StateSpace:
    """Two independent processes side by side, observed as their sum."""

    def stack(A: FloatArray, B: FloatArray) -> FloatArray:
        top = np.concatenate([A, np.zeros((len(A), B.shape[1]))], axis=1)
        return np.concatenate([top, np.concatenate([np.zeros((len(B), A.shape[1])), B], axis=1)])

    H = np.concatenate([a.H, b.H], axis=1)
    return StateSpace(stack(a.F, b.F), stack(a.L, b.L), H, stack(a.Pinf, b.Pinf), stack(a.q, b.q), _origin(a, b))


def multiply_models(a: StateSpace, b: StateSpace) -> StateSpace:
    """The process whose covariance is the product: F₁ ⊕ F₂, P₁ ⊗ P₂; the noise follows from stationarity.

    A process that starts at an origin can be multiplied with a constant one only: the noise of other products,
    Q₁ ⊗ P₂(t) + P₁(t) ⊗ Q₂, changes with time.
    """
    F = np.kron(a.F, np.eye(len(b.F))) + np.kron(np.eye(len(a.F)), b.F)
    P: FloatArray = np.kron(a.Pinf, b.Pinf).astype(np.float64)
    H: FloatArray = np.kron(a.H, b.H).astype(np.float64)
    if a.origin is None and b.origin is None:
        drift = F @ P
        return StateSpace(F, np.eye(len(F)), H, P, -(drift + drift.T))
    started, other = (a, b) if a.origin is not None else (b, a)
    if other.origin is not None or other.noise.any() or other.F.any():
        raise KernelError(
            "state_space: a process that starts at an origin (Wiener) times another one has noise that changes with "
            "time. Try: a product with numbers, or a sum."
        )
    q: FloatArray = (np.kron(a.noise, b.Pinf) if started is a else np.kron(a.Pinf, b.noise)).astype(np.float64)
    return StateSpace(F, np.eye(len(F)), H, P, q, started.origin)
