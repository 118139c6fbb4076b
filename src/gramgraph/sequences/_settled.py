"""Long series without gaps: when covariances have settled, filter and smoother are recursions with constant gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramgraph._numerics.hmm import affine_rows
from gramgraph.sequences._state_space import Model
from gramgraph.typing import FloatArray

__all__ = ["Settled", "SettledStates"]

_SAME = 1e-14  # relative change of a covariance that counts as none …
_APART = 32  # … over so many steps: slow ones still move
_LOG_2PI = float(np.log(2.0 * np.pi))


class SettledStates(NamedTuple):
    """Smoothed moments, Cov(x_t, x_{t+1} | y), and log p(y)."""

    means: FloatArray
    covariances: FloatArray
    cross: FloatArray
    log_likelihood: float


@dataclass(frozen=True)
class Settled:
    """A filter after its first n steps: gains and covariances stay as they are there; O(T s²) for all later steps."""

    model: Model
    first: Any  # FilteredStates of n steps
    gain: FloatArray  # (s, o) K = P Hᵀ S⁻¹
    spread: FloatArray  # (o, o) S = H P Hᵀ + R
    predicted: FloatArray  # (s, s) P
    back: FloatArray  # (s, s) gain of the smoother, P_filtered Aᵀ P⁻¹

    @classmethod
    def of(cls, model: Model, first: Any) -> Settled | None:
        """From the first steps; None where covariances still move, or where P is nearly singular."""
        P, before = first.predicted_covariances[-1], first.predicted_covariances[-_APART]
        if np.abs(P - before).max() > _SAME * np.abs(P).max():
            return None
        values = np.linalg.eigvalsh(P)
        if not values[0] > 1e-10 * values[-1]:
            return None
        S = model.H @ P @ model.H.T + model.R
        gain = np.linalg.solve(S, model.H @ P).T
        back = np.linalg.solve(P, model.A @ first.covariances[-1]).T
        return cls(model, first, gain, S, P, back)

    def _filter(self, y: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Filtered and predicted means (T, s), and log p(y)."""
        n, model = len(self.first.means), self.model
        move = model.A - self.gain @ model.H @ model.A
        means = np.empty((len(y), model.n_states))
        means[:n] = self.first.means
        means[n:] = y[n:] @ self.gain.T
        affine_rows(np.ascontiguousarray(move.T), means[n - 1 :])
        predicted = np.empty_like(means)
        predicted[:n] = self.first.predicted_means
        predicted[n:] = means[n - 1 : -1] @ model.A.T
        v = y[n:] - predicted[n:] @ model.H.T
        L = np.linalg.cholesky(self.spread)
        z = np.linalg.solve(L, v.T)
        constant = len(L) * _LOG_2PI + 2.0 * float(np.log(np.diagonal(L)).sum())
        total = self.first.log_likelihood - 0.5 * (float((z * z).sum()) + len(v) * constant)
        return means, predicted, total

    def log_likelihood(self, y: FloatArray) -> float:
        """log p(y)."""
        return self._filter(y)[2]

    def smooth(self, y: FloatArray) -> SettledStates:
        """Backward with the constant gain; covariances are constant but near both ends."""
        n, T, G = len(self.first.means), len(y), self.back
        means, predicted, total = self._filter(y)
        turned = np.empty((T - n + 1, self.model.n_states))  # rows T − 1, T − 2, …, n − 1
        turned[0] = means[-1]
        turned[1:] = (means[n - 1 : -1] - predicted[n:] @ G.T)[::-1]
        affine_rows(np.ascontiguousarray(G.T), turned)
        means[n - 1 :] = turned[::-1]
        covs = np.empty((T, len(G), len(G)))
        cross = np.empty((T - 1, len(G), len(G)))
        covs[-1] = self.first.covariances[-1]
        t = T - 2
        while t >= n - 1:
            new = self.first.covariances[-1] + G @ (covs[t + 1] - self.predicted) @ G.T
            covs[t] = 0.5 * (new + new.T)
            cross[t] = G @ covs[t + 1]
            last = covs[t]
            far = covs[min(t + _APART, T - 1)]
            same = t + _APART < T and np.abs(last - far).max() <= _SAME * np.abs(last).max()
            t -= 1
            if same and t >= n:
                covs[n - 1 : t + 1] = last
                cross[n - 1 : t + 1] = G @ last
                break
        self._early(means, covs, cross)
        return SettledStates(means, covs, cross, total)

    def _early(self, means: FloatArray, covs: FloatArray, cross: FloatArray) -> None:
        """The first steps, whose gains still move, one by one."""
        first, A = self.first, self.model.A
        for t in range(len(first.means) - 2, -1, -1):
            P = first.predicted_covariances[t + 1]
            G = np.linalg.solve(P, A @ first.covariances[t]).T
            means[t] = first.means[t] + G @ (means[t + 1] - first.predicted_means[t + 1])
            new = first.covariances[t] + G @ (covs[t + 1] - P) @ G.T
            covs[t] = 0.5 * (new + new.T)
            cross[t] = G @ covs[t + 1]
