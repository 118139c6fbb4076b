"""Gaussian beliefs, and mixtures of Gaussians, beside discrete variables or alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import generator
from gramgraph.answers._gaussians import entropy_of, highest_peak, log_mixture
from gramgraph.answers.belief import Belief
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.words import shares
from gramgraph.cells.columns import values_of
from gramgraph.exceptions import StateError, VariableError, listing
from gramgraph.typing import FloatArray, IntArray, RandomState
from gramgraph.variables import Var


class MixtureBelief(RealBelief):
    """A Gaussian, or a mixture of Gaussians: p(x) = Σ_k w_k N(x; m_k, S_k).

    `codes` says which states of the discrete variables of the scope each component belongs to.

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    weights : (cases, k), of the components.
    means : (cases, k, d).
    covariances : (cases or 1, k, d, d).
    batched : whether the first axis is that of cases.
    codes : states of the discrete variables of the scope for each component, or None.
    diagnostics : how the numbers were found, by name, or what makes it when it is asked for.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> x = net.query("x", {"y": 2.0})["x"]
    >>> round(x.mean(), 6), round(x.var(), 6), tuple(round(v, 3) for v in x.interval(0.95))
    (0.8, 0.2, (-0.077, 1.677))
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    codes: IntArray | None

    def __init__(
        self,
        scope: tuple[Var, ...],
        weights: FloatArray,  # (cases, k)
        means: FloatArray,  # (cases, k, d)
        covariances: FloatArray,  # (cases or 1, k, d, d)
        *,
        batched: bool = False,
        codes: IntArray | None = None,  # (k, number of discrete variables)
        diagnostics: Mapping[str, Any] | None = None,
    ) -> None:
        self._hold(scope=scope, weights=weights, means=means, covariances=covariances)
        self._hold(batched=batched, codes=codes, diagnostics=diagnostics or {})

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        if self.weights.shape[1] == 1:
            shape = (len(self.means), *self.covariances.shape[2:])
            return self.means[:, 0], np.broadcast_to(self.covariances[:, 0], shape)
        w, first = self.weights, self.means[:, :1]
        mean = first[:, 0] + np.einsum("ck,ckd->cd", w, self.means - first)  # exact where all components agree
        off = self.means - mean[:, None]
        cov = np.einsum("ck,ckd,cke->cde", w, off, off)
        spread = np.broadcast_to(self.covariances, (len(w), *self.covariances.shape[1:]))
        return mean, cov + np.einsum("ck,ckde->cde", w, spread)

    def mean(self) -> Any:
        """Σ w_k m_k."""
        return self._shaped(self.means[:, 0] if self.weights.shape[1] == 1 else self._moments()[0])

    def cdf(self, x: Any) -> Any:
        """P(X ≤ x) = Σ w_k Φ((x − m_k) / s_k)."""
        self._need_scalar("cdf()")
        at = np.asarray(x, dtype=np.float64)
        if self.batched:
            return self._cdf(np.broadcast_to(at, (len(self.means),))[:, None])[:, 0]
        found = self._cdf(at.reshape(1, -1))[0].reshape(at.shape)
        return float(found) if at.ndim == 0 else found

    def _cdf(self, x: FloatArray) -> FloatArray:
        """x: (cases, p) → (cases, p)."""
        from scipy.special import ndtr

        m, s = self.means[:, :, 0], np.sqrt(np.maximum(self.covariances[:, :, 0, 0], 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (x[:, None, :] - m[:, :, None]) / s[:, :, None]
        z = np.where(np.isnan(z), np.inf, z)  # a point mass: all of it lies at or below itself
        return np.einsum("ck,ckp->cp", self.weights, ndtr(z))

    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies."""
        from scipy.special import ndtri

        self._need_scalar("quantile()")
        share = shares(q)
        flat = share.reshape(1, -1)
        m, s = self.means[:, :, :1], np.sqrt(np.maximum(self.covariances[:, :, 0, :1], 0.0))
        ends = m + s * ndtri(flat)[:, None, :]
        low, high = ends.min(axis=1), ends.max(axis=1)  # the mixture's quantile lies between those of its parts
        if self.weights.shape[1] > 1:
            for _ in range(200 if np.isfinite([low, high]).all() else 0):
                middle = 0.5 * (low + high)
                below = self._cdf(middle) < flat
                low, high = np.where(below, middle, low), np.where(below, high, middle)
                if (high - low <= 1e-14 * (np.abs(low) + np.abs(high)) + 1e-300).all():
                    break
        found = 0.5 * (low + high)
        found = np.broadcast_to(found, (len(self.means), flat.shape[1]))
        if self.batched:
            return found[:, 0] if share.ndim == 0 else found
        return float(found[0, 0]) if share.ndim == 0 else found[0].reshape(share.shape)

    def log_density(self, x: Any) -> Any:
        """log of the density at x."""
        at = np.asarray(x, dtype=np.float64)
        d = self.dimension
        self._need_one_case("density()") if not self.is_scalar else None
        if self.is_scalar:
            points = at.reshape(-1, 1) if not self.batched else np.broadcast_to(at, (len(self.means),))[:, None]
        else:
            if at.shape[-1:] != (d,):
                raise StateError(f"points of {d} components are expected (last axis), not shape {at.shape}")
            points = at.reshape(-1, d)
        if self.batched:
            logs = np.array([log_mixture(points[c : c + 1], *self._case(c))[0] for c in range(len(self.means))])
            return logs
        logs = log_mixture(points, *self._case(0))
        shape = at.shape if self.is_scalar else at.shape[:-1]
        return float(logs[0]) if shape == () else logs.reshape(shape)

    def density(self, x: Any) -> Any:
        """Σ w_k N(x; m_k, S_k)."""
        found = np.exp(self.log_density(x))
        return float(found) if np.ndim(found) == 0 else found

    def _case(self, c: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.weights[c], self.means[c], self.covariances[min(c, len(self.covariances) - 1)]

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Independent draws."""
        self._need_one_case("sample()")
        rng = generator(random_state)
        w, m, S = self._case(0)
        pick = rng.choice(len(w), size=n, p=w / w.sum())
        roots = symmetric_root(S)
        out = m[pick] + np.einsum("nij,nj->ni", roots[pick], rng.standard_normal((n, m.shape[1])))
        return out[:, 0] if self.is_scalar else out

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)]: Gauss–Hermite quadrature with 96 nodes a component; 20,000 draws where d > 1."""
        self._need_one_case("expect()")
        if not self.is_scalar:
            return float(np.mean(values_of(f, self.sample(20_000, 0))))
        nodes, weights = np.polynomial.hermite_e.hermegauss(96)
        w, m, S = self._case(0)
        x = m[:, :1] + np.sqrt(np.maximum(S[:, 0, :1], 0.0)) * nodes
        values = values_of(f, x.reshape(-1)).reshape(x.shape)
        return float(w @ (values @ weights)) / float(np.sqrt(2 * np.pi))

    def mode(self) -> Any:
        """The mean of a Gaussian; of a mixture the highest of the peaks that are reached from its components."""
        if self.weights.shape[1] == 1:
            return self.mean()
        found = np.array([highest_peak(*self._case(c)) for c in range(len(self.means))])
        return self._shaped(found)

    def _entropies(self) -> FloatArray:
        labels = np.zeros((self.weights.shape[1], 0), np.int64) if self.codes is None else self.codes
        out = np.zeros(len(self.means))
        for c in range(len(out)):
            w, m, S = self._case(c)
            for at in np.unique(labels, axis=0):
                own = np.flatnonzero((labels == at).all(axis=1) & (w > 0))
                p = float(w[own].sum())
                if p > 0.0:  # the entropy of the states, and that of the numbers in each of them
                    out[c] += p * (entropy_of(w[own] / p, m[own], S[own]) - np.log(p))
        return out

    @property
    def discrete(self) -> Belief:
        """p of the discrete variables of the scope."""
        scope = tuple(var for var in self.scope if var.is_discrete)
        if self.codes is None or not scope:
            raise VariableError("this belief has no discrete variables")
        p = np.zeros((len(self.weights), *(var.size for var in scope)))
        for k, at in enumerate(self.codes):
            p[(slice(None), *at)] += self.weights[:, k]
        return Belief(scope, p if self.batched else p[0], batched=self.batched)

    def given(self, states: Mapping[str, Any]) -> MixtureBelief:
        """The belief when these discrete variables of a joint are in these states."""
        scope = tuple(var for var in self.scope if var.is_discrete)
        names = [var.name for var in scope]
        keep = np.ones(self.weights.shape[1], bool)
        for name, state in states.items():
            if name not in names or self.codes is None:
                raise VariableError(f"{name!r} is not a discrete variable of this joint ({listing(names)})")
            i = names.index(name)
            keep &= self.codes[:, i] == scope[i].index(state)
        w = self.weights[:, keep]
        left = tuple(var for var in self.scope if var.name not in states)
        at = [i for i, name in enumerate(names) if name not in states]
        codes = None if self.codes is None or not at else self.codes[keep][:, at]
        with np.errstate(invalid="ignore", divide="ignore"):
            w = w / w.sum(axis=1, keepdims=True)
        return MixtureBelief(left, w, self.means[:, keep], self.covariances[:, keep], batched=self.batched, codes=codes)
