"""Switching linear dynamics: a hidden Markov chain chooses the matrices of a linear-Gaussian state space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gramgraph._numerics.gaussian_root import root
from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import check_count, check_rows
from gramgraph.sequences._state_space import covariance, series_of
from gramgraph.sequences.hmm import generator
from gramgraph.sequences.particle import systematic
from gramgraph.typing import FloatArray, IntArray

__all__ = ["SwitchedStates", "SwitchingKalmanFilter"]

_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class SwitchedStates:
    """p(mode_t | y up to t), moments of p(x_t | y up to t), and log p(y_t | y before t), approximately."""

    modes: FloatArray  # (T, K)
    means: FloatArray  # (T, s)
    covariances: FloatArray  # (T, s, s)
    log_likelihoods: FloatArray  # (T,)

    @property
    def log_likelihood(self) -> float:
        """log p(y)."""
        return float(self.log_likelihoods.sum())


@dataclass(frozen=True)
class _Stacks:
    """Checked matrices, one a mode."""

    transition: FloatArray  # (K, K)
    start: FloatArray  # (K,)
    A: FloatArray  # (K, s, s)
    Q: FloatArray
    H: FloatArray  # (K, o, s)
    R: FloatArray  # (K, o, o)
    m0: FloatArray  # (s,)
    P0: FloatArray  # (s, s)


class SwitchingKalmanFilter(BaseEstimator):
    """c_t is a Markov chain; x_t = A[c_t] x_{t−1} + N(0, Q[c_t]), y_t = H[c_t] x_t + N(0, R[c_t]), x_0 ~ N(m0, P0).

    Parameters
    ----------
    transition : (K, K) p(next mode | mode). start : (K,), None: uniform
    A, Q, H, R : stacks (K, …) of matrices, or one matrix for all modes; numbers stand for 1 × 1
    m0, P0 : moments of the first state
    method : "imm" mixes the K Gaussians before each step (interacting multiple models), O(T K (s³ + o³)); "particles"
        draws modes and keeps a Kalman filter a particle (Rao–Blackwellized), exact as `n_particles` grows
    n_particles, random_state : of "particles"

    NaN entries of y were not observed.

    >>> model = SwitchingKalmanFilter([[0.95, 0.05], [0.05, 0.95]], A=1.0, Q=[0.01, 4.0], R=0.1, m0=0.0, P0=1.0)
    >>> model.filter([0.0, 0.1, 0.1, 3.0]).modes[:, 1].round(2).tolist()
    [0.5, 0.18, 0.05, 1.0]
    """

    def __init__(
        self,
        transition: Any,
        A: Any = 1.0,
        Q: Any = 1.0,
        H: Any = 1.0,
        R: Any = 1.0,
        m0: Any = 0.0,
        P0: Any = 1.0,
        *,
        start: Any = None,
        method: str = "imm",
        n_particles: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.transition = transition
        self.A = A
        self.Q = Q
        self.H = H
        self.R = R
        self.m0 = m0
        self.P0 = P0
        self.start = start
        self.method = method
        self.n_particles = n_particles
        self.random_state = random_state

    def _stacks(self) -> _Stacks:
        W = check_rows("transition", self.transition, 2)
        K = len(W)
        start = np.full(K, 1.0 / K) if self.start is None else check_rows("start", self.start, 1)
        m0 = np.array(self.m0, dtype=np.float64).reshape(-1)
        s = len(m0)
        H = _stack("H", self.H, K, (None, s))
        o = H.shape[1]
        A, Q, R = _stack("A", self.A, K, (s, s)), _stack("Q", self.Q, K, (s, s)), _stack("R", self.R, K, (o, o))
        P0 = _stack("P0", self.P0, 1, (s, s))[0]
        if W.shape != (K, K) or start.shape != (K,):
            raise ModelError(f"transition must be square and start have {K} entries; they are {W.shape}, {start.shape}")
        Q, R = (np.array([covariance(name, S) for S in stack]) for name, stack in (("Q", Q), ("R", R)))
        return _Stacks(W, start, A, Q, H, R, m0, covariance("P0", P0))

    def filter(self, y: Any) -> SwitchedStates:
        """Modes and states given the observations so far."""
        stacks = self._stacks()
        y = series_of(y, stacks.H.shape[1])
        if self.method == "imm":
            return _interacting(stacks, y)
        if self.method == "particles":
            return _particles(stacks, y, check_count("n_particles", self.n_particles), generator(self.random_state))
        raise ModelError(f'method is "imm" or "particles", not {self.method!r}.')

    def log_likelihood(self, y: Any) -> float:
        """log p(y), approximately."""
        return self.filter(y).log_likelihood

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[FloatArray, FloatArray, IntArray]:
        """(y (T, o), states (T, s), modes (T,)) drawn from the model."""
        z, T = self._stacks(), check_count("n_samples", n_samples)
        rng = generator(random_state)
        modes = np.empty(T, np.int64)
        x, y = np.empty((T, len(z.m0))), np.empty((T, z.H.shape[1]))
        noise, seen = [root(S) for S in z.Q], [root(S) for S in z.R]
        for t in range(T):
            c = modes[t] = rng.choice(len(z.start), p=z.start if t == 0 else z.transition[modes[t - 1]])
            e = rng.standard_normal(len(z.m0))
            x[t] = z.m0 + root(z.P0) @ e if t == 0 else z.A[c] @ x[t - 1] + noise[c] @ e
            y[t] = z.H[c] @ x[t] + seen[c] @ rng.standard_normal(y.shape[1])
        return y, x, modes


def _stack(name: str, value: Any, K: int, shape: tuple[int | None, int]) -> FloatArray:
    """K matrices of this shape from a stack, one matrix, K numbers or one number."""
    M = np.array(value, dtype=np.float64)
    rows, cols = shape
    if M.ndim == 0:
        M = M.reshape(1, 1, 1)
    elif M.ndim == 1:
        M = M.reshape(-1, 1, 1) if cols == 1 and len(M) == K else M.reshape(1, 1, -1)
    elif M.ndim == 2:
        M = M[None]
    if M.ndim != 3 or M.shape[0] not in (1, K) or M.shape[2] != cols or (rows is not None and M.shape[1] != rows):
        wanted = f"({'o' if rows is None else rows}, {cols})"
        raise ModelError(f"{name} must be {K} matrices of shape {wanted}, or one for all modes; got shape {M.shape}.")
    if not np.isfinite(M).all():
        raise ModelError(f"{name} holds NaN or infinity.")
    return np.ascontiguousarray(np.broadcast_to(M, (K, *M.shape[1:])))


def _interacting(z: _Stacks, y: FloatArray) -> SwitchedStates:
    """Blom and Bar-Shalom: K Gaussians are mixed by p(mode before | mode now), then each mode does one Kalman step."""
    T, K, s = len(y), len(z.start), len(z.m0)
    modes, means, covs, logs = np.empty((T, K)), np.empty((T, s)), np.empty((T, s, s)), np.zeros(T)
    m, P, p = np.tile(z.m0, (K, 1)), np.tile(z.P0, (K, 1, 1)), z.start
    for t in range(T):
        if t:
            joint = p[:, None] * z.transition  # (before, now)
            p = joint.sum(axis=0)
            mix = joint / np.where(p > 0.0, p, 1.0)
            middle = mix.T @ m
            gaps = m[:, None] - middle[None]  # (before, now, s)
            P = np.einsum("ij,iab->jab", mix, P) + np.einsum("ij,ija,ijb->jab", mix, gaps, gaps)
            m = np.einsum("kab,kb->ka", z.A, middle)
            P = z.A @ P @ z.A.transpose(0, 2, 1) + z.Q
        m, P, log = _kalman(m, P, z.H, z.R, y[t], t)
        with np.errstate(divide="ignore"):
            both = np.log(p) + log
        top = float(both.max())
        p = np.exp(both - top)
        logs[t] = top + float(np.log(p.sum()))
        p = p / p.sum()
        modes[t], (means[t], covs[t]) = p, _collapsed(p, m, P)
    return SwitchedStates(modes, means, covs, logs)


def _particles(z: _Stacks, y: FloatArray, n: int, rng: np.random.Generator) -> SwitchedStates:
    """Each particle is a history of modes with its exact Gaussian; the next mode is drawn given the observation."""
    T, K, s = len(y), len(z.start), len(z.m0)
    modes, means, covs, logs = np.empty((T, K)), np.empty((T, s)), np.empty((T, s, s)), np.zeros(T)
    m, P, w = np.tile(z.m0, (n, 1)), np.tile(z.P0, (n, 1, 1)), np.full(n, 1.0 / n)
    c = np.zeros(n, np.int64)
    for t in range(T):
        prior = np.tile(z.start[:, None], (1, n)) if t == 0 else z.transition[c].T
        found = []
        for k in range(K):  # every particle tries every mode
            mk, Pk = (m, P) if t == 0 else (m @ z.A[k].T, z.A[k] @ P @ z.A[k].T + z.Q[k])
            found.append(_kalman(mk, Pk, z.H[k][None], z.R[k][None], y[t], t))
        log = np.stack([part[2] for part in found], axis=0)
        with np.errstate(divide="ignore"):
            both = np.log(prior) + log + np.log(w)
        top = float(both.max())
        share = np.exp(both - top)  # (K, n): systematic draws must not meet the modes of a particle in turn
        total = float(share.sum())
        logs[t] = top + float(np.log(total))
        share /= total
        m, P = np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
        modes[t] = share.sum(axis=1)
        means[t], covs[t] = _collapsed(share.ravel(), m, P)
        pick = systematic(share.ravel(), n, rng.random())
        m, P, c = m[pick], P[pick], pick // n
        w = np.full(n, 1.0 / n)
    return SwitchedStates(modes, means, covs, logs)


def _kalman(
    m: FloatArray, P: FloatArray, H: FloatArray, R: FloatArray, y: FloatArray, t: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One observation for a batch of Gaussians: moments and log p(y)."""
    shown = ~np.isnan(y)
    if not shown.any():
        return m, P, np.zeros(len(m))
    H, R = H[:, shown], R[:, shown][:, :, shown]
    C = P @ H.transpose(0, 2, 1)
    try:
        L = np.linalg.cholesky(H @ C + R)
    except np.linalg.LinAlgError:
        raise ModelError(f"the covariance of the observation at step {t} is not positive definite: add to R.") from None
    v = y[shown] - np.einsum("koa,ka->ko", np.broadcast_to(H, (len(m), *H.shape[1:])), m)
    z = np.linalg.solve(L, v[..., None])
    W = np.linalg.solve(L, C.transpose(0, 2, 1))
    logs = -0.5 * (shown.sum() * _LOG_2PI + (z[..., 0] ** 2).sum(axis=1))
    logs -= np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    back = W.transpose(0, 2, 1)
    return m + (back @ z)[..., 0], P - back @ W, logs


def _collapsed(p: FloatArray, m: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Moments of a mixture of Gaussians."""
    mean = p @ m
    gaps = m - mean
    return mean, np.tensordot(p, P, axes=1) + (gaps * p[:, None]).T @ gaps
