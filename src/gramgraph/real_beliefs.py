"""Beliefs about real-valued variables: Gaussians, mixtures of Gaussians, weighted draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph import _show
from gramgraph._cells import cell_frame, cell_text, is_mixed
from gramgraph._mixtures import highest_peak, log_mixture, square_roots
from gramgraph.answers import Belief
from gramgraph.exceptions import OptionError, StateError, VariableError, listing
from gramgraph.typing import FloatArray, IntArray, RandomState
from gramgraph.variables import Var

__all__ = ["MixtureBelief", "RealBelief", "SampledBelief"]


class RealBelief(ABC):
    """p(X | evidence) of a real-valued variable, or of several jointly; of one case, or of many (first axis).

    `mean()` and `var()` are numbers for a scalar variable, arrays with one entry a component for vectors and joints;
    for a table of cases they have the cases in front.

    >>> import gramgraph as gg
    >>> belief = gg.BayesianNetwork("x{real}", cpds={"x": (1.0, 2.0)}).query("x")["x"]
    >>> isinstance(belief, RealBelief), belief.mean(), belief.sd(), round(belief.quantile(0.975), 2)
    (True, 1.0, 2.0, 4.92)
    """

    scope: tuple[Var, ...]
    batched: bool
    diagnostics: Mapping[str, Any]

    # ------------------------------------------------------------------------------------------ what kinds give

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Means (cases, d) and covariances (cases, d, d)."""

    @abstractmethod
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x) of a scalar variable; x is a number or an array (for many cases: one entry a case)."""

    @abstractmethod
    def density(self, x: Any) -> Any:
        """The density at x: numbers for a scalar variable, rows of components for several."""

    @abstractmethod
    def quantile(self, q: Any) -> Any:
        """The value below which a share q lies, of a scalar variable; an array of q gives an array (last axis)."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """n draws: (n,) of a scalar variable, else (n, d); of one case."""

    @abstractmethod
    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)] of one case; f takes an array of values (n,), or (n, d), and returns n numbers."""

    @abstractmethod
    def mode(self) -> Any:
        """Where the density is largest."""

    # ------------------------------------------------------------------------------------------ derived

    @property
    def dimension(self) -> int:
        """Number of real components."""
        return sum(var.dimension for var in self.scope if not var.is_discrete)

    @cached_property
    def _scalar(self) -> bool:
        reals = [var for var in self.scope if not var.is_discrete]
        return len(reals) == 1 and reals[0].dimension == 1

    def _shaped(self, values: FloatArray) -> Any:
        """(cases, d) as the user sees it."""
        if self._scalar:
            values = values[:, 0]
        if self.batched:
            return values
        return float(values[0]) if self._scalar else values[0]

    def mean(self) -> Any:
        """E[X]."""
        return self._shaped(self._moments()[0])

    def var(self) -> Any:
        """Variance of each component."""
        return self._shaped(np.diagonal(self._moments()[1], axis1=1, axis2=2).copy())

    def sd(self) -> Any:
        """Standard deviation of each component."""
        return self._shaped(np.sqrt(np.diagonal(self._moments()[1], axis1=1, axis2=2)))

    def cov(self) -> FloatArray:
        """Covariance of the components, (d, d) or (cases, d, d)."""
        found = self._moments()[1]
        return found if self.batched else found[0]

    def interval(self, level: float = 0.9) -> Any:
        """(lower, upper) of a scalar variable, with equal tails outside; for many cases an array (cases, 2)."""
        if not 0.0 < level < 1.0:
            raise OptionError(f"the level of an interval lies between 0 and 1, not {level!r}")
        found = self.quantile(np.array([0.5 - level / 2, 0.5 + level / 2]))
        return found if self.batched else (float(found[0]), float(found[1]))

    def _need_scalar(self, what: str) -> None:
        if not self._scalar:
            names = listing(var.name for var in self.scope)
            raise VariableError(f"{what} is one of a scalar variable; this is a belief of ({names})")

    def _need_one_case(self, what: str) -> None:
        if self.batched:
            raise VariableError(f"{what} is one of a single case; ask with evidence as a dict, or take one row")

    def _components(self) -> list[str]:
        """Names of the components: x, or x[0], x[1], … of a vector."""
        out = []
        for var in self.scope:
            if not var.is_discrete:
                k = var.dimension
                out += [var.name] if k == 1 else [f"{var.name}[{i}]" for i in range(k)]
        return out

    def to_frame(self) -> Any:
        """A DataFrame: one row a component with mean and sd; for a table of cases pairs of columns.

        A joint with discrete variables has a row for each of their configurations too, with state and probability.
        """
        import pandas as pd

        if is_mixed(self) and not self.batched:
            return cell_frame(self)  # type: ignore[arg-type]
        names = self._components()
        mean, cov = self._moments()
        sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        if not self.batched:
            return pd.DataFrame({"variable": names, "mean": mean[0], "sd": sd[0]})
        columns = pd.MultiIndex.from_product([names, ["mean", "sd"]], names=["variable", "value"])
        table = np.stack([mean, np.broadcast_to(sd, mean.shape)], axis=2).reshape(len(mean), 2 * len(names))
        return pd.DataFrame(table, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """`mean` and `sd` as plain numbers, or as lists with one entry a component (or a case)."""
        mean, sd = self.mean(), self.sd()
        return {"mean": np.asarray(mean).tolist(), "sd": np.asarray(sd).tolist()}

    def plot(self, ax: Any = None) -> Any:
        """The density of a scalar variable, or ellipses of two components; the axes are returned."""
        from gramgraph.plot.real import plot_density

        return plot_density(self, ax=ax)

    def _lines(self) -> list[tuple[str, ...]]:
        """Rows of text: component, mean, sd, 90 % interval."""
        mean, cov = self._moments()
        rows: list[tuple[str, ...]] = []
        for i, name in enumerate(self._components()):
            low, high = self.interval(0.9) if self._scalar else (np.nan, np.nan)
            ends = f"[{low:.5g}, {high:.5g}]" if self._scalar else ""
            rows.append((_show.clean(name), f"{mean[0, i]:.6g}", f"{np.sqrt(max(cov[0, i, i], 0.0)):.4g}", ends))
        return rows

    def __repr__(self) -> str:
        if self.batched:
            name = _show.clean(", ".join(var.name for var in self.scope))
            return f"Belief of {name} in {len(self._moments()[0])} cases: .to_frame() shows them"
        if is_mixed(self):
            return cell_text(self)  # type: ignore[arg-type]
        return _show.text_table(("", "mean", "sd", "90 %"), self._lines(), right=range(1, 3))

    def _repr_html_(self) -> str:
        return str(self.to_frame()._repr_html_())


class MixtureBelief(RealBelief):
    """A Gaussian, or a mixture of Gaussians: p(x) = Σ_k w_k N(x; m_k, S_k).

    `codes` says which states of the discrete variables of the scope each component belongs to.

    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}})
    >>> x = net.query("x", {"y": 2.0})["x"]
    >>> round(x.mean(), 6), round(x.var(), 6), tuple(round(v, 3) for v in x.interval(0.95))
    (0.8, 0.2, (-0.077, 1.677))
    """

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
        self.scope = scope
        self.weights, self.means, self.covariances = weights, means, covariances
        self.batched = batched
        self.codes = codes
        self.diagnostics = diagnostics or {}

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
        self._need_scalar("a distribution function")
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

        self._need_scalar("a quantile")
        share = np.asarray(q, dtype=np.float64)
        if (share <= 0).any() or (share >= 1).any():
            raise OptionError(f"a quantile's share lies between 0 and 1, not {q!r}")
        flat = share.reshape(1, -1)
        m, s = self.means[:, :, :1], np.sqrt(np.maximum(self.covariances[:, :, 0, :1], 0.0))
        ends = m + s * ndtri(flat)[:, None, :]
        low, high = ends.min(axis=1), ends.max(axis=1)  # the mixture's quantile lies between those of its parts
        if self.weights.shape[1] > 1:
            for _ in range(200):
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
        self._need_one_case("a density") if not self._scalar else None
        if self._scalar:
            points = at.reshape(-1, 1) if not self.batched else np.broadcast_to(at, (len(self.means),))[:, None]
        else:
            if at.shape[-1:] != (d,):
                raise StateError(f"points of {d} components are expected (last axis), not shape {at.shape}")
            points = at.reshape(-1, d)
        if self.batched:
            logs = np.array([log_mixture(points[c : c + 1], *self._case(c))[0] for c in range(len(self.means))])
            return logs
        logs = log_mixture(points, *self._case(0))
        shape = at.shape if self._scalar else at.shape[:-1]
        return float(logs[0]) if shape == () else logs.reshape(shape)

    def density(self, x: Any) -> Any:
        """Σ w_k N(x; m_k, S_k)."""
        found = np.exp(self.log_density(x))
        return float(found) if np.ndim(found) == 0 else found

    def _case(self, c: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.weights[c], self.means[c], self.covariances[min(c, len(self.covariances) - 1)]

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Independent draws."""
        self._need_one_case("sampling")
        rng = np.random.default_rng(random_state)
        w, m, S = self._case(0)
        pick = rng.choice(len(w), size=n, p=w / w.sum())
        roots = square_roots(S)
        out = m[pick] + np.einsum("nij,nj->ni", roots[pick], rng.standard_normal((n, m.shape[1])))
        return out[:, 0] if self._scalar else out

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """E[f(X)]: Gauss–Hermite quadrature with 96 nodes a component; 20,000 draws where d > 1."""
        self._need_one_case("an expectation")
        if not self._scalar:
            return float(np.mean(np.asarray(f(self.sample(20_000, 0)), dtype=np.float64)))
        nodes, weights = np.polynomial.hermite_e.hermegauss(96)
        w, m, S = self._case(0)
        x = m[:, :1] + np.sqrt(np.maximum(S[:, 0, :1], 0.0)) * nodes
        values = np.asarray(f(x.reshape(-1)), dtype=np.float64).reshape(x.shape)
        return float(w @ (values @ weights)) / float(np.sqrt(2 * np.pi))

    def mode(self) -> Any:
        """The mean of a Gaussian; of a mixture the highest of the peaks that are reached from its components."""
        if self.weights.shape[1] == 1:
            return self.mean()
        found = np.array([highest_peak(*self._case(c)) for c in range(len(self.means))])
        return self._shaped(found)

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
                raise VariableError(f"{name!r} is no discrete variable of this joint ({listing(names)})")
            i = names.index(name)
            keep &= self.codes[:, i] == scope[i].index(state)
        w = self.weights[:, keep]
        left = tuple(var for var in self.scope if var.name not in states)
        at = [i for i, name in enumerate(names) if name not in states]
        codes = None if self.codes is None or not at else self.codes[keep][:, at]
        with np.errstate(invalid="ignore", divide="ignore"):
            w = w / w.sum(axis=1, keepdims=True)
        return MixtureBelief(left, w, self.means[:, keep], self.covariances[:, keep], batched=self.batched, codes=codes)


class SampledBelief(RealBelief):
    """Weighted draws: p(x) ≈ Σ_i w_i δ(x − x_i). Every number carries a Monte Carlo error (`standard_error`).

    >>> from gramgraph.variables import real
    >>> belief = SampledBelief((real("x"),), np.array([[1.0], [3.0]]), np.array([0.5, 0.5]))
    >>> belief.mean(), belief.var()
    (2.0, 1.0)
    """

    def __init__(
        self,
        scope: tuple[Var, ...],
        values: FloatArray,  # (n, d)
        weights: FloatArray,  # (n,), summing to one
        *,
        diagnostics: Mapping[str, Any] | None = None,
        error: FloatArray | None = None,  # (d,) of the mean, where the draws are not independent
    ) -> None:
        self.scope, self.values, self.weights = scope, values, weights
        self.batched = False
        self._error = error
        self.diagnostics = diagnostics or {}

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        mean = self.weights @ self.values
        off = self.values - mean
        return mean[None], (off.T @ (self.weights[:, None] * off))[None]

    def standard_error(self) -> Any:
        """Standard error of the mean, √Σ w_i² (x_i − mean)²; of chains, from the means of the chains."""
        if self._error is not None:
            return self._shaped(np.atleast_1d(self._error)[None])
        off = self.values - self.weights @ self.values
        return self._shaped(np.sqrt(((self.weights[:, None] * off) ** 2).sum(axis=0))[None])

    def cdf(self, x: Any) -> Any:
        """Weight of the draws at or below x."""
        self._need_scalar("a distribution function")
        at = np.asarray(x, dtype=np.float64)
        order = np.argsort(self.values[:, 0], kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        found = total[np.searchsorted(self.values[order, 0], at, side="right")]
        return float(found) if at.ndim == 0 else found

    def quantile(self, q: Any) -> Any:
        """The smallest draw at or below which a share q lies."""
        self._need_scalar("a quantile")
        share = np.asarray(q, dtype=np.float64)
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
        shape = at.shape if self._scalar else at.shape[:-1]
        return float(np.exp(logs[0])) if shape == () else np.exp(logs).reshape(shape)

    def sample(self, n: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws of the draws, by their weights."""
        rng = np.random.default_rng(random_state)
        found = self.values[rng.choice(len(self.weights), size=n, p=self.weights)]
        return found[:, 0] if self._scalar else found

    def expect(self, f: Callable[[FloatArray], Any]) -> Any:
        """Σ w_i f(x_i)."""
        values = self.values[:, 0] if self._scalar else self.values
        return float(self.weights @ np.asarray(f(values), dtype=np.float64))

    def mode(self) -> Any:
        """The draw at which the density estimate is largest; of many draws, some thousand speak for all."""
        values, weights = self.values, self.weights
        if len(weights) > 4000 and np.isfinite(weights).all():
            at = np.searchsorted(np.cumsum(weights), (np.arange(4000) + 0.5) / 4000)
            values, weights = values[np.minimum(at, len(weights) - 1)], np.full(4000, 1 / 4000)
        few = np.argsort(-weights, kind="stable")[:: max(1, len(weights) // 800)]
        points = values[few]
        thin = SampledBelief(self.scope, values, weights)
        best = points[int(np.argmax(thin.density(points[:, 0] if self._scalar else points)))]
        return self._shaped(best[None])
