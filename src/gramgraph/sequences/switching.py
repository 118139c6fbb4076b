"""Switching linear dynamics: a hidden Markov chain chooses the matrices of a linear-Gaussian state space."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from gramgraph._numerics.gaussian.root import root
from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import check_rows
from gramgraph.sequences._state_space import Stacks, covariance, series_of
from gramgraph.sequences._switching_stream import SwitchingStream
from gramgraph.typing import FloatArray, IntArray


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


@dataclass(eq=False, repr=False)
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
    start : (K,) p(first state).

    Notes
    -----
    NaN entries of y were not observed.

    Examples
    --------
    >>> model = SwitchingKalmanFilter([[0.95, 0.05], [0.05, 0.95]], A=1.0, Q=[0.01, 4.0], R=0.1, m0=0.0, P0=1.0)
    >>> model.filter([0.0, 0.1, 0.1, 3.0]).modes[:, 1].round(2).tolist()
    [0.5, 0.18, 0.05, 1.0]
    """

    transition: Any
    A: Any = 1.0
    Q: Any = 1.0
    H: Any = 1.0
    R: Any = 1.0
    m0: Any = 0.0
    P0: Any = 1.0
    _: KW_ONLY
    start: Any = None
    method: str = "imm"
    n_particles: int = 1000
    random_state: Any = None

    def _stacks(self) -> Stacks:
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
        return Stacks(W, start, A, Q, H, R, m0, covariance("P0", P0))

    def filter(self, y: Any) -> SwitchedStates:
        """Modes and states given the observations so far."""
        stream = self.stream()
        y = series_of(y, stream.n_outputs)
        rows = [(stream._take(row), stream.modes, stream.mean, stream.covariance) for row in y]
        logs, modes, means, covs = (np.array(part) for part in zip(*rows, strict=True))
        return SwitchedStates(modes, means, covs, logs)

    def stream(self, *, state: dict[str, Any] | None = None) -> SwitchingStream:
        """Take observations one at a time, in constant memory; `state` continues an earlier stream.

        >>> model = SwitchingKalmanFilter([[0.95, 0.05], [0.05, 0.95]], A=1.0, Q=[0.01, 4.0], R=0.1, m0=0.0, P0=1.0)
        >>> stream = model.stream()
        >>> [round(float(stream.update(y)[1]), 2) for y in (0.0, 0.1, 0.1, 3.0)]
        [0.5, 0.18, 0.05, 1.0]
        """
        if self.method not in ("imm", "particles"):
            raise ModelError(f'method is "imm" or "particles", not {self.method!r}.')
        n = None if self.method == "imm" else check_count("n_particles", self.n_particles)
        return SwitchingStream(self._stacks(), n, generator(self.random_state), state)

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
