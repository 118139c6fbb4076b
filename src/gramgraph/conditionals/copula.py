"""Dependence by a Gaussian copula: any margins, joined by correlations of their normal scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.continuous import Draws, RealConditional, as_parents, as_var, check_real_child
from gramgraph.conditionals.grid_density import GridDensity
from gramgraph.conditionals.laws import Laws, NormalLaws
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Circle, Positive, Var

#: Levels of a distribution function that are told from 0 and 1: scores and draws stay finite wherever parents stand.
_LEVELS = (1e-300, 1.0 - 1e-16)
#: Where the values that were learned from end, and how far beyond, in standard deviations, a value stops to count.
_OUTERMOST, _REACH = np.array([1e-4, 1.0 - 1e-4]), 0.25


@dataclass(frozen=True, eq=False)
class Margin:
    """The distribution of one variable by itself: one of scipy.stats by name, a `GridDensity`, or that of observed
    values, whose density has a spike between any two of them (`Margin.of` smooths it).

    From values x_(1) ≤ … ≤ x_(n): F(x_(i)) = i / (n + 1), linear between them, exponential tails outside.

    Parameters
    ----------
    name : of a distribution of scipy.stats, or "".
    parameters : of that distribution.
    values : sorted values that were observed, in place of a name.
    density : a `GridDensity`, in place of a name.

    Examples
    --------
    >>> Margin("gamma", {"a": 2.0}).cdf(np.array([2.0])).round(4).tolist()
    [0.594]
    >>> Margin(values=[3.0, 1.0, 2.0]).quantile(np.array([0.25, 0.5])).tolist()
    [1.0, 2.0]
    """

    name: str = ""
    parameters: Any = None
    values: Any = None
    density: Any = None  # a GridDensity

    @classmethod
    def of(cls, values: Any, domain: str = "real") -> Self:
        """The margin of a sample: a mixture of kernel densities."""
        return cls(density=GridDensity.of(values, domain))

    def __post_init__(self) -> None:
        if (self.values is not None) + bool(self.name) + (self.density is not None) != 1:
            raise ModelError("a margin is a name of scipy.stats with its parameters, a density, or observed values")
        if self.density is not None:
            if not isinstance(self.density, GridDensity):
                object.__setattr__(self, "density", GridDensity.from_fields(self.density))
            return
        if self.values is not None:
            x = np.unique(np.asarray(self.values, dtype=np.float64).reshape(-1))
            if len(x) < 2 or not np.isfinite(x).all():
                raise ModelError("a margin of observed values needs two or more different finite numbers")
            x.flags.writeable = False
            object.__setattr__(self, "values", x)
            return
        object.__setattr__(self, "parameters", dict(self.parameters or {}))
        self._frozen  # noqa: B018  parameters are checked here, and the distribution kept

    @cached_property
    def _frozen(self) -> Any:
        from scipy import stats

        found = getattr(stats, self.name, None) if self.name.isidentifier() else None
        if not isinstance(found, stats.rv_continuous):
            raise ModelError(f"{self.name!r} is not a continuous distribution of scipy.stats")
        try:
            made = found(**self.parameters)
            if not np.isfinite(made.ppf(0.5)):
                raise ValueError
        except (TypeError, ValueError):
            raise ModelError(f"{self.name} does not take the parameters {self.parameters}") from None
        return made

    def _tail(self) -> tuple[float, float]:
        """Mass of each tail and its scale."""
        n = len(self.values)
        return 1.0 / (n + 1), float(self.values[-1] - self.values[0]) / (n - 1)

    def cdf(self, x: FloatArray) -> FloatArray:
        """F(x)."""
        if self.density is not None:
            return np.asarray(self.density.cdf(x))
        if self.values is None:
            return np.asarray(self._frozen.cdf(x))
        mass, scale = self._tail()
        inside = np.interp(x, self.values, np.arange(1, len(self.values) + 1) * mass)
        low = mass * np.exp(np.minimum(x - self.values[0], 0.0) / scale)
        high = 1.0 - mass * np.exp(-np.maximum(x - self.values[-1], 0.0) / scale)
        return np.where(x < self.values[0], low, np.where(x > self.values[-1], high, inside))

    def quantile(self, u: FloatArray) -> FloatArray:
        """F⁻¹(u)."""
        if self.density is not None:
            return np.asarray(self.density.quantile(u))
        if self.values is None:
            return np.asarray(self._frozen.ppf(u))
        mass, scale = self._tail()
        inside = np.interp(u, np.arange(1, len(self.values) + 1) * mass, self.values)
        with np.errstate(divide="ignore"):
            low = self.values[0] + scale * np.log(np.minimum(u / mass, 1.0))
            high = self.values[-1] - scale * np.log(np.minimum((1.0 - u) / mass, 1.0))
        return np.where(u < mass, low, np.where(u > 1.0 - mass, high, inside))

    def log_density(self, x: FloatArray) -> FloatArray:
        """log F′(x)."""
        if self.density is not None:
            return np.asarray(self.density.log_density(x))
        if self.values is None:
            return np.asarray(self._frozen.logpdf(x))
        mass, scale = self._tail()
        at = np.clip(np.searchsorted(self.values, x, side="right") - 1, 0, len(self.values) - 2)
        inside = np.log(mass / np.diff(self.values))[at]
        outside = np.log(mass / scale) - np.maximum(self.values[0] - x, x - self.values[-1]) / scale
        return np.where((x < self.values[0]) | (x > self.values[-1]), outside, inside)

    def scores(self, x: FloatArray) -> FloatArray:
        """Normal scores Φ⁻¹(F(x))."""
        from scipy.special import ndtri

        return np.asarray(ndtri(np.clip(self.cdf(x), *_LEVELS)))

    def nearness(self, x: FloatArray) -> FloatArray:
        """1 among the values it was learned from, falling to 0 within a standard deviation beyond them; 1 everywhere
        for a distribution that was named."""
        if self.name:
            return np.ones(np.shape(x))
        low, high = self.quantile(_OUTERMOST)
        sd = float(np.std(self.values)) if self.density is None else self.density.sd
        off = np.maximum(np.maximum(low - x, x - high), 0.0) / max(_REACH * sd, 1e-300)
        return np.asarray(np.exp(-0.5 * np.minimum(off, 30.0) ** 2))

    def to_fields(self) -> dict[str, Any]:
        """As a dict that JSON can hold."""
        if self.density is not None:
            return {"density": self.density.to_fields()}
        if self.values is not None:
            return {"values": self.values.tolist()}
        return {"name": self.name, "parameters": dict(self.parameters)}


@dataclass(frozen=True, eq=False)
class _CopulaLaws:
    """Distributions of a child whose scores are normal."""

    margin: Margin
    scores: NormalLaws

    @property
    def spiky(self) -> bool:
        return self.margin.values is not None

    def log_density(self, y: FloatArray, /) -> FloatArray:
        z = self.margin.scores(y)
        return self.scores.log_density(z) + self.margin.log_density(y) + 0.5 * (z**2 + LOG_2PI)

    def log_masses(self, low: FloatArray, high: FloatArray, /) -> FloatArray:
        return self.scores.log_masses(self.margin.scores(low), self.margin.scores(high))

    def sharpness(self) -> None:
        return None


@dataclass(frozen=True, eq=False, repr=False)
class GaussianCopula(RealConditional):
    """p(y | x) where the normal scores of y and of its real, scalar parents x are jointly Gaussian.

    `margins` maps every variable of the family to its `Margin` (or to observed values); `correlation` is a number
    for one parent, else the matrix over parents in order and child. With scores z = Φ⁻¹(F(·)):
    z_y | z_x ~ N(r R⁻¹ z_x, 1 − r R⁻¹ rᵀ). A parent keeps its margin only if its own conditional has it.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    correlation : of the normal scores: a number for one parent, else a matrix over parents and child.
    margins : the `Margin` of every variable of the family by name, or values that were observed.

    Examples
    --------
    >>> margins = {"x": Margin("norm"), "y": Margin("expon")}
    >>> wait = GaussianCopula("y", ("x",), 0.8, margins)
    >>> x, y = wait.parents[0], wait.child
    >>> wait.log_density({x: np.array([[0.0]]), y: np.array([[0.7]])}).round(3).tolist()
    [-0.189]
    """

    kind: ClassVar[str] = "gaussian_copula"
    child: Var
    parents: tuple[Var, ...]
    correlation: Any
    margins: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "child", as_var(self.child))
        object.__setattr__(self, "parents", as_parents(self.parents))
        check_real_child(self.child, "copula")
        for var in self.scope:
            if var.is_discrete or var.dimension != 1 or isinstance(var.domain, Circle):
                raise ModelError(
                    f"a copula joins real scalars; {var.name} in the family of {self.child.name} is {var!r}"
                )
        n = len(self.scope)
        R = np.array(self.correlation, dtype=np.float64)
        if R.ndim == 0 and n == 2:
            R = np.array([[1.0, float(R)], [float(R), 1.0]])
        if n == 1 and R.size <= 1:
            R = np.ones((1, 1))
        if R.shape != (n, n):
            raise ModelError(f"the correlation of {self.child.name} must be a matrix of shape {(n, n)}, not {R.shape}")
        R.flags.writeable = False
        object.__setattr__(self, "correlation", R)
        missing = [var.name for var in self.scope if var.name not in self.margins]
        if missing:
            raise ModelError(f"the copula of {self.child.name} has no margin for {listing(missing)}")
        made = {}
        for var in self.scope:
            given = self.margins[var.name]
            made[var.name] = given if isinstance(given, Margin) else Margin(values=given)
        object.__setattr__(self, "margins", made)

    @classmethod
    def fit(cls, child: Var | str, parents: Any, data: Any) -> Self:
        """Kernel densities of the observed values as margins, and correlations from Kendall's τ: sin(π τ / 2)."""
        from scipy.stats import kendalltau

        own, given = as_var(child), as_parents(parents)
        columns = [np.asarray(data[var.name], dtype=np.float64) for var in (*given, own)]
        n = len(columns)
        R = np.eye(n)
        for i in range(n):
            for j in range(i):
                R[i, j] = R[j, i] = np.sin(0.5 * np.pi * np.nan_to_num(kendalltau(columns[i], columns[j]).statistic))
        values, vectors = np.linalg.eigh(R)
        R = (vectors * np.maximum(values, 1e-6)) @ vectors.T  # pairwise numbers need not fit together
        root = np.sqrt(np.diagonal(R))
        margins = {
            var.name: Margin.of(x, "positive" if isinstance(var.domain, Positive) else "real")
            for var, x in zip((*given, own), columns, strict=True)
        }
        return cls(own, given, R / np.outer(root, root), margins)

    def _regression(self) -> tuple[FloatArray, float]:
        """Coefficients of the parents' scores, and the standard deviation of what they leave open."""
        R, r = self.correlation[:-1, :-1], self.correlation[-1, :-1]
        beta = np.linalg.solve(R, r) if len(r) else np.zeros(0)
        return beta, float(np.sqrt(1.0 - r @ beta))

    def _center(self, values: Draws, n: int, beta: FloatArray) -> FloatArray:
        center = np.zeros(n)
        for var, b in zip(self.parents, beta, strict=True):
            center = center + b * self.margins[var.name].scores(np.asarray(values[var]).reshape(-1))
        return center

    def log_density(self, values: Draws, /) -> FloatArray:
        """log f(y) + log N(z_y; center, s²) − log N(z_y; 0, 1)."""
        y = np.asarray(values[self.child], dtype=np.float64).reshape(-1)
        margin = self.margins[self.child.name]
        beta, s = self._regression()
        z = margin.scores(y)
        off = (z - self._center(values, len(y), beta)) / s
        return np.asarray(margin.log_density(y) - 0.5 * off**2 - np.log(s) - 0.5 * LOG_2PI + 0.5 * (z**2 + LOG_2PI))

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Normal distributions of the child's score."""
        beta, s = self._regression()
        return _CopulaLaws(self.margins[self.child.name], NormalLaws(self._center(values, n, beta), np.full(n, s)))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A value of the child for each of n cases, (n, 1)."""
        from scipy.special import ndtr

        beta, s = self._regression()
        z = self._center(values, n, beta) + s * rng.standard_normal(n)
        return self.margins[self.child.name].quantile(np.clip(ndtr(z), *_LEVELS))[:, None]

    def support(self, values: Draws, /) -> dict[str, FloatArray]:
        """How near the values of every variable lie to those its margin was learned from."""
        here = {var.name: np.asarray(values[var], dtype=np.float64) for var in self.scope if var in values}
        learned = {name: x.reshape(-1) for name, x in here.items() if not self.margins[name].name}
        return {name: self.margins[name].nearness(x) for name, x in learned.items()}

    @property
    def n_parameters(self) -> int:
        """Correlations with the child."""
        return len(self.parents)

    def faults(self) -> list[str]:
        """A correlation matrix that is none."""
        R = self.correlation
        if not np.isfinite(R).all() or not np.allclose(R, R.T, atol=1e-10) or not np.allclose(np.diagonal(R), 1.0):
            return [f"the correlation of {self.child.name} must be symmetric with ones on its diagonal"]
        low = float(np.linalg.eigvalsh(R)[0])
        return (
            [] if low > 0 else [f"the correlation of {self.child.name} is not positive definite (eigenvalue {low:.3g})"]
        )

    def to_fields(self) -> dict[str, Any]:
        """`correlation` as a nested list, `margins` by name."""
        margins = {name: margin.to_fields() for name, margin in self.margins.items()}
        return {**self._head(), "correlation": self.correlation.tolist(), "margins": margins}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        margins = {name: Margin(**given) for name, given in fields["margins"].items()}
        return cls(child, parents, fields["correlation"], margins)
