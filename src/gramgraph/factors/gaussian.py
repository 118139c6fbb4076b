"""Gaussian factors: exponentials of quadratic functions of real variables, in canonical form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gramgraph.exceptions import ModelError, listing
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var, join

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """f(x) = exp(log_scale + hᵀx − ½ xᵀPx) on real variables, scalars or vectors.

    P (`precision`) is symmetric and need not be invertible: P = 0 and h = 0 say nothing about x. Variables in
    `pinned` are known exactly (infinite precision): f is zero unless they have these values. P and h range over the
    other variables in the order of the scope, vectors component by component. A product adds P, h and log_scale;
    integrating or maximizing a variable out is a Schur complement, O(d³) for d components.

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    precision : P, (d, d).
    shift : h, (d,).
    log_scale : logarithm of the scale.
    pinned : values of variables that are known exactly.

    Examples
    --------
    >>> from gramgraph.variables import real
    >>> x, y = real("x"), real("y")
    >>> prior = GaussianFactor.from_moments((x,), [1.0], [[4.0]])
    >>> noisy = GaussianFactor.from_linear(y, (x,), [[1.0]], [0.0], [[1.0]])
    >>> belief, log_z = prior.product(noisy).condition({y: 2.0}).normalize()
    >>> mean, cov = belief.moments()
    >>> mean.round(3).tolist(), cov.round(3).tolist(), round(log_z, 4)
    ([1.8], [[0.8]], -1.8237)
    """

    scope: tuple[Var, ...]
    precision: FloatArray  # (d, d)
    shift: FloatArray  # (d,)
    log_scale: float = 0.0
    pinned: Mapping[Var, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        d = sum(var.dimension for var in self.scope if var not in self.pinned)
        P = np.array(self.precision, dtype=np.float64, ndmin=2) if d else np.zeros((0, 0))
        h = np.array(self.shift, dtype=np.float64, ndmin=1) if d else np.zeros(0)
        if P.shape != (d, d) or h.shape != (d,):
            raise ModelError(
                f"a Gaussian factor over ({listing(map(repr, self.scope))}) needs a precision of shape {(d, d)} and a "
                f"shift of length {d}, not {np.shape(self.precision)} and {np.shape(self.shift)}"
            )
        P.flags.writeable = h.flags.writeable = False
        pinned = {var: var.domain.read(value, var.name) for var, value in self.pinned.items()}  # type: ignore[attr-defined]
        object.__setattr__(self, "precision", P)
        object.__setattr__(self, "shift", h)
        object.__setattr__(self, "pinned", pinned)

    # ------------------------------------------------------------------------------------------ making

    @classmethod
    def unit(cls) -> Self:
        """The constant one."""
        return cls((), np.zeros((0, 0)), np.zeros(0))

    @classmethod
    def flat(cls, scope: tuple[Var, ...]) -> Self:
        """The constant one on a scope: a factor that holds no information."""
        d = sum(var.dimension for var in scope)
        return cls(scope, np.zeros((d, d)), np.zeros(d))

    @classmethod
    def at(cls, values: Mapping[Var, Any]) -> Self:
        """Infinite precision: one where every variable has its value, zero elsewhere."""
        return cls(tuple(values), np.zeros((0, 0)), np.zeros(0), 0.0, dict(values))

    @classmethod
    def from_moments(cls, scope: tuple[Var, ...], mean: Any, covariance: Any) -> Self:
        """The density N(x; mean, covariance); the covariance must be positive definite."""
        mu = np.asarray(mean, dtype=np.float64).reshape(-1)
        S = np.asarray(covariance, dtype=np.float64).reshape(len(mu), -1)
        P, log_det = _inverse(S, f"the covariance over ({listing(var.name for var in scope)})")
        h = P @ mu
        return cls(scope, P, h, -0.5 * (float(mu @ h) + log_det + len(mu) * LOG_2PI))

    @classmethod
    def from_linear(
        cls, child: Var, parents: tuple[Var, ...], coefficients: Any, intercept: Any, covariance: Any
    ) -> Self:
        """The density N(child; intercept + coefficients · parents, covariance) as a function of child and parents."""
        k = child.dimension
        W = np.asarray(coefficients, dtype=np.float64).reshape(k, -1)
        b = np.asarray(intercept, dtype=np.float64).reshape(k)
        S = np.asarray(covariance, dtype=np.float64).reshape(k, k)
        Q, log_det = _inverse(S, f"the noise covariance of {child.name}")
        M = np.hstack([-W, np.eye(k)])  # child − W parents − b is the noise
        scale = -0.5 * (float(b @ Q @ b) + log_det + k * LOG_2PI)
        return cls((*parents, child), M.T @ Q @ M, M.T @ (Q @ b), scale)

    # ------------------------------------------------------------------------------------------ algebra

    def product(self, other: Self, /) -> Self:
        """f · g on the union of the scopes; a variable that one of them pins is pinned."""
        scope = join(self.scope, other.scope)
        for var, value in self.pinned.items():
            if var in other.pinned and not np.array_equal(value, other.pinned[var]):
                zero = {var: value, **dict(other.pinned), **dict(self.pinned)}
                return self._zero(scope, zero)
        pinned = {**other.pinned, **self.pinned}
        f, g = self._pin(other.pinned), other._pin(self.pinned)
        place, d = _offsets(var for var in scope if var not in pinned)
        P, h = np.zeros((d, d)), np.zeros(d)
        for part in (f, g):
            at = _components(part._free, place)
            P[np.ix_(at, at)] += part.precision
            h[at] += part.shift
        return type(self)(scope, P, h, f.log_scale + g.log_scale, pinned)

    def marginalize(self, out: Collection[Var], /) -> Self:
        """∫ f over the variables `out`; a `ModelError` where the integral does not exist."""
        return self._reduce(out, integrate=True)

    def maximize(self, out: Collection[Var], /) -> Self:
        """max of f over the variables `out`; a `ModelError` where there is none."""
        return self._reduce(out, integrate=False)

    def _reduce(self, out: Collection[Var], *, integrate: bool) -> Self:
        keep = tuple(var for var in self.scope if var not in out)
        pinned = {var: value for var, value in self.pinned.items() if var not in out}
        gone = tuple(var for var in self._free if var in out)
        if not gone or self.log_scale == -np.inf:
            return self._zero(keep, pinned) if gone else self._with(keep, pinned)
        place, _ = _offsets(self._free)
        a = _components([var for var in self._free if var not in out], place)
        b = _components(gone, place)
        Q, log_det = self._inverse_block(b, gone)
        G = self.precision[np.ix_(a, b)] @ Q
        P = self.precision[np.ix_(a, a)] - G @ self.precision[np.ix_(b, a)]
        h = self.shift[a] - G @ self.shift[b]
        scale = self.log_scale + 0.5 * float(self.shift[b] @ Q @ self.shift[b])
        if integrate:
            scale += 0.5 * (len(b) * LOG_2PI + log_det)
        return type(self)(keep, 0.5 * (P + P.T), h, scale, pinned)

    def condition(self, evidence: Mapping[Var, Any], /) -> Self:
        """f(·, e) for observed values, by variable or by name; variables outside the scope are ignored."""
        names = {var.name: var for var in self.scope}
        given = {names.get(key, key) if isinstance(key, str) else key: value for key, value in evidence.items()}
        seen = {var: value for var, value in given.items() if var in self.scope}
        if not seen:
            return self
        keep = tuple(var for var in self.scope if var not in seen)
        values = {var: var.domain.read(value, var.name) for var, value in seen.items()}  # type: ignore[attr-defined]
        pinned = {var: value for var, value in self.pinned.items() if var not in seen}
        if any(not np.array_equal(self.pinned[var], values[var]) for var in seen if var in self.pinned):
            return self._zero(keep, pinned)
        made = self._pin({var: value for var, value in values.items() if var not in self.pinned})
        return type(self)(keep, made.precision, made.shift, made.log_scale, pinned)

    def normalize(self) -> tuple[Self, float]:
        """(f / Z, log Z); a `ModelError` where the integral does not exist."""
        if self.log_scale == -np.inf:
            return self, -np.inf
        total = self.marginalize(self.scope).log_scale
        return type(self)(self.scope, self.precision, self.shift, self.log_scale - total, self.pinned), total

    # ------------------------------------------------------------------------------------------ reading

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of f / Z, over all components of the scope; pinned ones have variance zero."""
        place, d = _offsets(self.scope)
        mean, cov = np.zeros(d), np.zeros((d, d))
        for var, value in self.pinned.items():
            mean[_components([var], place)] = value
        if self._free:
            at = _components(self._free, place)
            S, _ = self._inverse_block(np.arange(len(self.shift)), self._free)
            cov[np.ix_(at, at)] = S
            mean[at] = S @ self.shift
        return mean, cov

    def log_value(self, values: Mapping[Var, Any]) -> float:
        """log f at a point."""
        return self.condition({var: values[var] for var in self.scope}).log_scale

    def reorder(self, scope: tuple[Var, ...]) -> Self:
        """The same function with its variables in another order."""
        place, _ = _offsets(self._free)
        at = _components([var for var in scope if var not in self.pinned], place)
        P, h = self.precision[np.ix_(at, at)], self.shift[at]
        return type(self)(scope, P, h, self.log_scale, self.pinned)

    # ------------------------------------------------------------------------------------------ helpers

    @property
    def _free(self) -> tuple[Var, ...]:
        """The variables over which P and h range."""
        return tuple(var for var in self.scope if var not in self.pinned)

    def _with(self, scope: tuple[Var, ...], pinned: Mapping[Var, FloatArray]) -> Self:
        return type(self)(scope, self.precision, self.shift, self.log_scale, pinned)

    def _zero(self, scope: tuple[Var, ...], pinned: Mapping[Var, FloatArray]) -> Self:
        """The constant zero."""
        d = sum(var.dimension for var in scope if var not in pinned)
        return type(self)(scope, np.zeros((d, d)), np.zeros(d), -np.inf, pinned)

    def _pin(self, values: Mapping[Var, FloatArray]) -> Self:
        """P and h with some free variables at known values; the scope loses them."""
        seen = [var for var in self._free if var in values]
        if not seen:
            return self
        place, _ = _offsets(self._free)
        a = _components([var for var in self._free if var not in values], place)
        b = _components(seen, place)
        x = np.concatenate([values[var] for var in seen])
        P_bb, h_b = self.precision[np.ix_(b, b)], self.shift[b]
        scale = self.log_scale + float(h_b @ x) - 0.5 * float(x @ P_bb @ x)
        keep = tuple(var for var in self.scope if var not in seen)
        h = self.shift[a] - self.precision[np.ix_(a, b)] @ x
        return type(self)(keep, self.precision[np.ix_(a, a)], h, scale, self.pinned)

    def _inverse_block(self, at: IntArray, names: tuple[Var, ...]) -> tuple[FloatArray, float]:
        """(inverse, log determinant of the inverse) of a block of the precision."""
        what = f"the factor does not determine ({listing(var.name for var in names)}): its precision"
        inverse, log_det = _inverse(self.precision[np.ix_(at, at)], what)
        return inverse, -log_det


def _inverse(A: FloatArray, what: str) -> tuple[FloatArray, float]:
    """(A⁻¹, log |A|) of a symmetric positive definite matrix; a `ModelError` otherwise."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(A).min()) if np.isfinite(A).all() else np.nan
        raise ModelError(f"{what} is not positive definite (smallest eigenvalue {smallest:.3g})") from None
    half = np.linalg.inv(L)
    return half.T @ half, 2.0 * float(np.log(np.diagonal(L)).sum())


def _offsets(scope: Any) -> tuple[dict[Var, int], int]:
    """First component of each variable, and the number of components."""
    place: dict[Var, int] = {}
    at = 0
    for var in scope:
        place[var] = at
        at += var.dimension
    return place, at


def _components(scope: Any, place: Mapping[Var, int]) -> IntArray:
    """Positions of the components of some variables."""
    parts = [np.arange(place[var], place[var] + var.dimension) for var in scope]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
