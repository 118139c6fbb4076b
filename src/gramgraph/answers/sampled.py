"""Beliefs from weighted draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph._validation import generator
from gramgraph.answers._gaussians import log_mixture
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.words import shares
from gramgraph.cells.columns import values_of
from gramgraph.exceptions import VariableError
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Circle, Var


class SampledBelief(RealBelief):
    """Weighted draws: p(x) ≈ Σ_i w_i δ(x − x_i). Every number carries a Monte Carlo error (`standard_error`).

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    values : (n, d) draws.
    weights : (n,) that sum to one.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.
    error : standard error of the mean of each component, or None where draws are independent.

    Examples
    --------
    >>> from gramgraph.variables import real
    >>> belief = SampledBelief((real("x"),), np.array([[1.0], [3.0]]), np.array([0.5, 0.5]))
    >>> belief.mean(), belief.var()
    (2.0, 1.0)
    """

    values: FloatArray
    weights: FloatArray
    _error: FloatArray | None

    def __init__(
        self,
        scope: tuple[Var, ...],
        values: FloatArray,  # (n, d)
        weights: FloatArray,  # (n,), summing to one
        *,
        diagnostics: Mapping[str, Any] | None = None,
        error: FloatArray | None = None,  # (d,) of the mean, where the draws are not independent
    ) -> None:
        self._hold(scope=scope, values=values, weights=weights, batched=False)
        self._hold(_error=error, diagnostics=diagnostics or {})

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        mean = self.weights @ self.values
        off = self.values - mean
        for k in self._angles:  # an angle has a direction, and lies around it
            z = complex(self.weights @ np.exp(1j * self.values[:, k]))
            mean[k] = np.angle(z)
            off[:, k] = np.angle(np.exp(1j * (self.values[:, k] - mean[k])))
        cov = off.T @ (self.weights[:, None] * off)
        if self.is_scalar and self._angles:
            cov = np.full((1, 1), -2.0 * np.log(np.clip(abs(z), 1e-12, 1.0)))
        return mean[None], cov[None]

    @cached_property
    def _angles(self) -> list[int]:
        """Components that are angles."""
        domains = [var.domain for var in self.scope if not var.is_discrete for _ in range(var.dimension)]
        return [k for k, domain in enumerate(domains) if isinstance(domain, Circle)]

    def mean_direction(self) -> Any:
        """The angle of E[exp(i x)], of a variable on the circle; `mean` is the same there."""
        self._need_angle("mean_direction()")
        return self.mean()

    def resultant_length(self) -> Any:
        """|E[exp(i x)]| in [0, 1], of a variable on the circle: 1 when it is certain, 0 when all angles are alike."""
        self._need_angle("resultant_length()")
        return float(np.abs(self.weights @ np.exp(1j * self.values[:, 0])))

    def _need_angle(self, what: str) -> None:
        if not (self.is_scalar and self._angles):
            raise VariableError(f"{what} needs a single variable on the circle")

    def standard_error(self) -> Any:
        """Standard error of the mean, √Σ w_i² (x_i − mean)²; of chains, from the means of the chains."""
        if self._error is not None:
            return self._shaped(np.atleast_1d(self._error)[None])
        mean = self._moments()[0][0]
        off = self.values - mean
        for k in self._angles:
            off[:, k] = np.angle(np.exp(1j * off[:, k]))
        return self._shaped(np.sqrt(((self.weights[:, None] * off) ** 2).sum(axis=0))[None])

    def cdf(self, x: Any) -> Any:
        """Weight of the draws at or below x."""
        self._need_scalar("cdf()")
        at = np.asarray(x, dtype=np.float64)
        order = np.argsort(self.values[:, 0], kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        found = total[np.searchsorted(self.values[order, 0], at, side="right")]
        return float(found) if at.ndim == 0 else found

    def quantile(self, q: Any) -> Any:
        """The smallest draw at or below which a share q lies."""
        self._need_scalar("quantile()")
        share = shares(q)
        order = np.argsort(self.values[:, 0], kind="stable")
        at = np.searchsorted(np.cumsum(self.weights[order]), share * (1 - 1e-15), side="left")
        found = self.values[order, 0][np.minimum(at, len(order) - 1)]
        return float(found) if share.ndim == 0 else found

    def density(self, x: Any) -> Any:
        """A Gaussian kernel estimate (Scott's bandwidth on the effective number of draws)."""
        d = self.values.shape[1]
        at = np.asarray(x, dtype=np.float64)
        points = at.reshape(-1, d)
        n_eff = 1.0 / float((self.weights**2).sum())
        S = self._moments()[1][0] * n_eff ** (-2.0 / (d + 4)) + 1e-300 * np.eye(d)
        keep = self.weights > 0
        logs = log_mixture(points, self.weights[keep], self.values[keep], np.broadcast_to(S, (keep.sum(), d, d)))
        shape = at.shape if self.is_scalar else at.shape[:-1]
        return float(np.exp(logs[0])) if shape == () else np.exp(logs).reshape(shape)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws of the draws, by their weights."""
        rng = generator(random_state)
        found = self.values[rng.choice(len(self.weights), size=n, p=self.weights)]
        return found[:, 0] if self.is_scalar else found

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """Σ w_i f(x_i)."""
        values = self.values[:, 0] if self.is_scalar else self.values
        return float(self.weights @ values_of(f, values))

    def _thinned(self, n: int) -> SampledBelief:
        """At most about n draws that stand for all."""
        if len(self.weights) <= n or not np.isfinite(self.weights).all():
            return self
        at = np.searchsorted(np.cumsum(self.weights), (np.arange(n) + 0.5) / n)
        return SampledBelief(self.scope, self.values[np.minimum(at, len(self.weights) - 1)], np.full(n, 1 / n))

    def _entropies(self) -> FloatArray:
        """−Σ w log of the density estimate, over draws that stand for all."""
        thin = self._thinned(2000)
        with np.errstate(divide="ignore"):
            logs = np.log(thin.density(thin.values[:, 0] if self.is_scalar else thin.values))
        return np.array([-float(thin.weights @ np.where(thin.weights > 0, logs, 0.0))])

    def mode(self) -> Any:
        """The draw at which the density estimate is largest; of many draws, some thousand speak for all."""
        thin = self._thinned(4000)
        values, weights = thin.values, thin.weights
        few = np.argsort(-weights, kind="stable")[:: max(1, len(weights) // 800)]
        points = values[few]
        best = points[int(np.argmax(thin.density(points[:, 0] if self.is_scalar else points)))]
        return self._shaped(best[None])
