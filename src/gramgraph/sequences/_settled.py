"""Long series without gaps: when covariances have settled, filter and smoother are recursions with constant gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramgraph._numerics.hmm.recursions import affine_rows
from gramgraph.sequences._state_space import Model
from gramgraph.typing import FloatArray

_SAME = 1e-14  # relative change of a covariance that counts as none …
_APART = 32  # … over so many steps: slow ones still move
_LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Repeated:
    """A stack of matrices, one of them many times: head, `count` times the middle, tail."""

    head: FloatArray  # (a, s, s)
    middle: FloatArray  # (s, s)
    count: int
    tail: FloatArray  # (b, s, s)

    def after(self, more: FloatArray) -> Repeated:
        """With more matrices before the first."""
        return Repeated(np.concatenate([more, self.head]), self.middle, self.count, self.tail)

    def array(self) -> FloatArray:
        """All of them, (a + count + b, s, s)."""
        out = np.empty((len(self.head) + self.count + len(self.tail), *self.middle.shape))
        out[: len(self.head)] = self.head
        out[len(self.head) : len(out) - len(self.tail)] = self.middle
        out[len(out) - len(self.tail) :] = self.tail
        return out


class SettledStates(NamedTuple):
    """Smoothed moments, Cov(x_t, x_{t+1} | y), and log p(y)."""

    means: FloatArray
    covariances: Repeated
    cross: Repeated
    log_likelihood: float


class SettledFilter(NamedTuple):
    """Filtered and predicted moments, and log p(y_t | y before t)."""

    means: FloatArray
    covariances: Repeated
    predicted_means: FloatArray
    predicted_covariances: Repeated
    log_likelihoods: FloatArray


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

    def filter(self, y: FloatArray) -> SettledFilter:
        """Forward with the constant gain."""
        n, model, first = len(self.first.means), self.model, self.first
        move = model.A - self.gain @ model.H @ model.A
        means = np.empty((len(y), model.n_states))
        means[:n] = first.means
        means[n:] = y[n:] @ self.gain.T
        affine_rows(np.ascontiguousarray(move.T), means[n - 1 :])
        predicted = np.empty_like(means)
        predicted[:n] = first.predicted_means
        predicted[n:] = means[n - 1 : -1] @ model.A.T
        v = y[n:] - predicted[n:] @ model.H.T
        L = np.linalg.cholesky(self.spread)
        z = np.linalg.solve(L, v.T)
        constant = len(L) * _LOG_2PI + 2.0 * float(np.log(np.diagonal(L)).sum())
        logs = np.concatenate([first.log_likelihoods, -0.5 * ((z * z).sum(axis=0) + constant)])
        later, none = len(y) - n, np.empty((0, *self.predicted.shape))
        covs = Repeated(first.covariances, first.covariances[-1], later, none)
        ahead = Repeated(first.predicted_covariances, self.predicted, later, none)
        return SettledFilter(means, covs, predicted, ahead, logs)

    def log_likelihood(self, y: FloatArray) -> float:
        """log p(y)."""
        return float(self.filter(y).log_likelihoods.sum())

    def smooth(self, y: FloatArray) -> SettledStates:
        """Backward with the constant gain; covariances are constant but near both ends."""
        n, T, G = len(self.first.means), len(y), self.back
        means, _, predicted, _, logs = self.filter(y)
        turned = np.empty((T - n + 1, self.model.n_states))  # rows T − 1, T − 2, …, n − 1
        turned[0] = means[-1]
        turned[1:] = (means[n - 1 : -1] - predicted[n:] @ G.T)[::-1]
        affine_rows(np.ascontiguousarray(G.T), turned)
        means[n - 1 :] = turned[::-1]
        end = [self.first.covariances[-1]]  # from the last step backward
        while len(end) <= T - n and not self._still(end):
            new = self.first.covariances[-1] + G @ (end[-1] - self.predicted) @ G.T
            end.append(0.5 * (new + new.T))
        middle, count = end[-1], T - n - len(end) + 1  # steps n − 1 … are settled, or all of `end`
        head, head_cross = self._early(means, middle)
        tail = np.array(end[::-1])
        across = np.array([G @ P for P in tail[1:]]).reshape(-1, *G.shape)
        covs = Repeated(head, middle, count, tail)
        cross = Repeated(head_cross, G @ middle, count, across)
        return SettledStates(means, covs, cross, float(logs.sum()))

    @staticmethod
    def _still(end: list[FloatArray]) -> bool:
        if len(end) <= _APART:
            return False
        return bool(np.abs(end[-1] - end[-1 - _APART]).max() <= _SAME * np.abs(end[-1]).max())

    def _early(self, means: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first steps, whose gains still move, one by one: their covariances, and those with the next step."""
        first, A = self.first, self.model.A
        n = len(first.means)
        covs, cross = np.empty((n - 1, *A.shape)), np.empty((n - 1, *A.shape))
        for t in range(n - 2, -1, -1):
            P = first.predicted_covariances[t + 1]
            G = np.linalg.solve(P, A @ first.covariances[t]).T
            means[t] = first.means[t] + G @ (means[t + 1] - first.predicted_means[t + 1])
            new = first.covariances[t] + G @ (after - P) @ G.T
            cross[t] = G @ after
            covs[t] = after = 0.5 * (new + new.T)
        return covs, cross
