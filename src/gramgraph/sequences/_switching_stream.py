"""Switching linear dynamics one observation at a time: mixed Gaussians, or particles with a Kalman filter each."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences._reading import one_row, plain_generator, restored_generator, saved_numbers
from gramgraph.sequences._state_space import Stacks
from gramgraph.sequences.particle import systematic
from gramgraph.typing import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


class SwitchingStream:
    """What a `SwitchingKalmanFilter` knows between two observations: a mixture of Gaussians, some of every mode.

    `state` holds everything as plain numbers (JSON keeps them bit by bit), the generator's place included:
    `filter.stream(state=saved)` goes on exactly where it was.
    """

    def __init__(
        self, stacks: Stacks, n: int | None, rng: np.random.Generator, state: dict[str, Any] | None = None
    ) -> None:
        self._stacks, self._n, self._rng = stacks, n, rng
        K = len(stacks.start)
        count = K if n is None else n
        self._m, self._P = np.tile(stacks.m0, (count, 1)), np.tile(stacks.P0, (count, 1, 1))
        self._p = stacks.start.copy()  # (K,) of the modes
        self._c = np.zeros(0 if n is None else n)  # modes of the particles
        self._moments = stacks.m0, stacks.P0
        self.log_likelihood, self.steps = 0.0, 0
        if state is not None:
            names = "means", "covariances", "modes", "particles", "mean", "covariance"
            m, P, p, c, mean, cov, self.log_likelihood, self.steps = saved_numbers(state, *names)
            mine = (self._m, self._P, self._p, self._c, *self._moments)
            if any(new.shape != old.shape for new, old in zip((m, P, p, c, mean, cov), mine, strict=True)):
                raise ModelError(
                    f"state belongs to a filter with {np.size(p)} modes and {np.size(m)} numbers in the means of its "
                    f"Gaussians, not {K} and {count} × {len(stacks.m0)}."
                )
            self._m, self._P, self._p, self._c, self._moments = m, P, p, c, (mean, cov)
            self._rng = restored_generator(state.get("generator"))

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the stream remembers."""
        return {
            "means": self._m.tolist(),
            "covariances": self._P.tolist(),
            "modes": self._p.tolist(),
            "particles": self._c.tolist(),
            "mean": self._moments[0].tolist(),
            "covariance": self._moments[1].tolist(),
            "log_likelihood": self.log_likelihood,
            "steps": self.steps,
            "generator": plain_generator(self._rng),
        }

    @property
    def n_outputs(self) -> int:
        """Numbers of an observation."""
        return int(self._stacks.H.shape[1])

    @property
    def modes(self) -> FloatArray:
        """p(mode | y so far), (K,)."""
        return self._p.copy()

    @property
    def mean(self) -> FloatArray:
        """E[x | y so far], (s,)."""
        return self._moments[0].copy()

    @property
    def covariance(self) -> FloatArray:
        """Cov[x | y so far], (s, s)."""
        return self._moments[1].copy()

    def update(self, y: Any) -> FloatArray:
        """Take the next observation (NaN or None where there is none) and return p(mode | y so far), (K,)."""
        self._take(one_row(y, self.n_outputs)[0])
        return self.modes

    def _take(self, y: FloatArray) -> float:
        """One checked observation; log p(y | y before)."""
        log = self._mixed(y) if self._n is None else self._drawn(y)
        self.log_likelihood += log
        self.steps += 1
        return log

    def _mixed(self, y: FloatArray) -> float:
        """Blom and Bar-Shalom: K Gaussians are mixed by p(mode before | mode now), then do a Kalman step each."""
        z, m, P, p = self._stacks, self._m, self._P, self._p
        if self.steps:
            joint = p[:, None] * z.transition  # (before, now)
            p = joint.sum(axis=0)
            mix = joint / np.where(p > 0.0, p, 1.0)
            middle = mix.T @ m
            gaps = m[:, None] - middle[None]  # (before, now, s)
            P = np.einsum("ij,iab->jab", mix, P) + np.einsum("ij,ija,ijb->jab", mix, gaps, gaps)
            m = np.einsum("kab,kb->ka", z.A, middle)
            P = z.A @ P @ z.A.transpose(0, 2, 1) + z.Q
        m, P, logs = _kalman(m, P, z.H, z.R, y, self.steps)
        with np.errstate(divide="ignore"):
            both = np.log(p) + logs
        p, log = self._normalized(both)
        self._m, self._P, self._p, self._moments = m, P, p, _collapsed(p, m, P)
        return log

    def _drawn(self, y: FloatArray) -> float:
        """Each particle is a history of modes with its exact Gaussian; the next mode is drawn given the observation."""
        z, m, P, n = self._stacks, self._m, self._P, len(self._m)
        first = self.steps == 0
        prior = np.tile(z.start[:, None], (1, n)) if first else z.transition[self._c.astype(np.int64)].T
        found = []
        for k in range(len(z.start)):  # every particle tries every mode
            mk, Pk = (m, P) if first else (m @ z.A[k].T, z.A[k] @ P @ z.A[k].T + z.Q[k])
            found.append(_kalman(mk, Pk, z.H[k][None], z.R[k][None], y, self.steps))
        with np.errstate(divide="ignore"):
            both = np.log(prior) + np.stack([part[2] for part in found], axis=0) - np.log(n)
        share, log = self._normalized(both)  # (K, n): systematic draws must not meet the modes of a particle in turn
        m, P = np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
        pick = systematic(share.ravel(), n, self._rng.random())
        self._p, self._moments = share.sum(axis=1), _collapsed(share.ravel(), m, P)
        self._m, self._P, self._c = m[pick], P[pick], (pick // n).astype(np.float64)
        return log

    def _normalized(self, logs: FloatArray) -> tuple[FloatArray, float]:
        """exp(logs) with sum one, and the log of what it summed to."""
        top = float(logs.max())
        if not np.isfinite(top):
            raise ImpossibleEvidenceError(
                f"observation {self.steps} is so far from every mode that its density underflows. The belief stays as "
                f"it was."
            )
        p = np.exp(logs - top)
        total = float(p.sum())
        return p / total, top + float(np.log(total))


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
