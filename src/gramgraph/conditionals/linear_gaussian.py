"""A real-valued child that is a linear function of its real parents plus Gaussian noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.conditionals.base import row_name
from gramgraph.conditionals.continuous import (
    Draws,
    RealConditional,
    as_parents,
    as_var,
    check_plain_line,
    check_real_child,
    stack_real,
)
from gramgraph.conditionals.laws import Laws, NormalLaws
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.factors.gaussian import LOG_2PI, GaussianFactor
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: A covariance whose smallest eigenvalue is above −this times its largest counts as positive semidefinite.
_SLACK = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class _Linear(RealConditional):
    """child = intercept + coefficients · real parents + noise, with numbers that discrete parents may choose."""

    child: Var
    parents: tuple[Var, ...] = ()
    coefficients: Any = 0.0  # (*discrete sizes, k, m)
    intercept: Any = 0.0  # (*discrete sizes, k)
    covariance: Any = 1.0  # (*discrete sizes, k, k)
    sd: InitVar[Any] = None

    def __post_init__(self, sd: Any) -> None:
        object.__setattr__(self, "child", as_var(self.child))
        object.__setattr__(self, "parents", as_parents(self.parents))
        self._check_parents()
        check_real_child(self.child, self.kind)
        coefficients, covariance = self.coefficients, self.covariance
        k, m = self.child.dimension, sum(var.dimension for var in self.real_parents)
        sizes = tuple(var.size for var in self.discrete_parents)
        if isinstance(coefficients, Mapping):
            coefficients = self._by_parent(coefficients, sizes)
        if sd is not None:
            deviations = self._numbers(sd, "sd")
            if (deviations < 0).any():
                raise ModelError(f"the standard deviation of {self.child.name} must not be negative, got {sd!r}")
            covariance = _squares(deviations, k, sizes)
        object.__setattr__(self, "coefficients", self._shaped(coefficients, (*sizes, k, m), "coefficients"))
        object.__setattr__(self, "intercept", self._shaped(self.intercept, (*sizes, k), "intercept"))
        object.__setattr__(self, "covariance", self._shaped(covariance, (*sizes, k, k), "covariance"))
        if self.parents or np.any(self.covariance):  # a value for sure, as interventions set it, lies on any line
            check_plain_line(self.child, self.real_parents, self.kind)

    def _check_parents(self) -> None:
        """`ModelError` for parents of a kind that the conditional does not take."""

    def _numbers(self, given: Any, what: str) -> FloatArray:
        try:
            return np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the {what} of {self.child.name} must be numbers, not {given!r:.80}") from None

    def _by_parent(self, given: Mapping[Any, Any], sizes: tuple[int, ...]) -> FloatArray:
        """Coefficients from a dict {parent: number, vector or matrix}; a parent left out has coefficient zero."""
        k = self.child.dimension
        named = {key.name if isinstance(key, Var) else key: value for key, value in given.items()}
        known = [var.name for var in self.real_parents]
        for name in named:
            if name not in known:
                raise VariableError(
                    f"coefficients of {self.child.name}: {name!r} is none of its real parents ({listing(known)})"
                )
        blocks = []
        for var in self.real_parents:
            block = self._numbers(named.get(var.name, 0.0), f"coefficient of {var.name}")
            blocks.append(_fitted(block, (*sizes, k, var.dimension)))
            if blocks[-1] is None:
                raise ModelError(
                    f"the coefficient of {var.name} in {self.child.name} must have shape "
                    f"{(*sizes, k, var.dimension)}, not {block.shape}"
                )
        return np.concatenate(blocks, axis=-1) if blocks else np.zeros((*sizes, k, 0))

    def _shaped(self, given: Any, shape: tuple[int, ...], what: str) -> FloatArray:
        values = self._numbers(given, what)
        found = _fitted(values, shape)
        if found is None:
            parents = f" (parents {listing(map(repr, self.parents))})" if self.parents else ""
            raise ModelError(
                f"the {what} of {self.child.name} must have shape {shape}, not {values.shape}: "
                f"it is {self.child!r}{parents}"
            )
        found = np.ascontiguousarray(found)
        found.flags.writeable = False
        return found

    # ------------------------------------------------------------------------------------------ numbers

    @property
    def noise_sd(self) -> FloatArray:
        """Standard deviation of the noise, for each component."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    @property
    def n_parameters(self) -> int:
        """Coefficients, intercepts and the free part of the covariances."""
        k = self.child.dimension
        return prod(var.size for var in self.discrete_parents) * (
            k * self.coefficients.shape[-1] + k + k * (k + 1) // 2
        )

    def mean(self, values: Draws, n: int) -> FloatArray:
        """E[child | parents] of every case, (n, k)."""
        at = self._rows(values)
        W, b = self.coefficients[at], self.intercept[at]
        x = stack_real(self.real_parents, values, n)
        if at:
            return np.asarray(b + np.einsum("nkm,nm->nk", W, x))
        return np.asarray(b + x @ W.T)

    def log_density(self, values: Draws, /) -> FloatArray:
        """log N(child; mean, covariance) of every case; without noise, 0 at the mean and −inf elsewhere."""
        y = np.asarray(values[self.child], dtype=np.float64).reshape(-1, self.child.dimension)
        r = y - self.mean(values, len(y))
        S = np.broadcast_to(self.covariance[self._rows(values)], (len(y), r.shape[1], r.shape[1]))
        if r.shape[1] == 1:
            s = S[:, 0, 0]
            with np.errstate(divide="ignore", invalid="ignore"):
                out = -0.5 * (r[:, 0] ** 2 / s + np.log(s) + LOG_2PI)
            still = np.abs(r[:, 0]) <= 1e-9 * (1.0 + np.abs(y[:, 0]))  # on the line, up to rounding
            return np.where(s > 0, out, np.where(still, 0.0, -np.inf))
        L = np.linalg.cholesky(S)
        z = np.linalg.solve(L, r[..., None])[..., 0]
        log_det = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(-0.5 * ((z**2).sum(axis=1) + log_det + r.shape[1] * LOG_2PI))

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Normal distributions."""
        if self.child.dimension > 1:
            return super().laws(values, n)
        sd = np.sqrt(np.broadcast_to(self.covariance[self._rows(values)], (n, 1, 1))[:, 0, 0])
        return NormalLaws(self.mean(values, n)[:, 0], sd)

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> FloatArray:
        """mean + noise, (n, k)."""
        z = rng.standard_normal((n, self.child.dimension))
        root = _square_roots(self.covariance)[self._rows(values)]
        noise = np.einsum("nij,nj->ni", root, z) if root.ndim == 3 else z @ root.T
        return self.mean(values, n) + noise

    def faults(self) -> list[str]:
        """Numbers that are not finite, and noise covariances that are not symmetric positive semidefinite."""
        found = []
        for what in ("coefficients", "intercept", "covariance"):
            if not np.isfinite(getattr(self, what)).all():
                found.append(f"the {what} of {self.child.name} has entries that are not finite numbers")
        if found:
            return found
        k = self.child.dimension
        for at in np.ndindex(self.covariance.shape[:-2]):
            S = self.covariance[at]
            where = row_name(self.child, self.discrete_parents, at)
            if not np.allclose(S, S.T, rtol=1e-8, atol=1e-12 * max(1.0, float(np.abs(S).max()))):
                found.append(f"{where}: the noise covariance is not symmetric")
                continue
            low, high = (float(S[0, 0]), float(S[0, 0])) if k == 1 else np.linalg.eigvalsh(S)[[0, -1]].tolist()
            if low < -_SLACK * max(high, 0.0) or high < 0.0:
                what = "variance is negative" if k == 1 else "covariance is not positive semidefinite"
                found.append(f"{where}: the noise {what} (smallest eigenvalue {low:.3g})")
        return found

    def to_fields(self) -> dict[str, Any]:
        """`coefficients`, `intercept` and `covariance` as nested lists, discrete parents first."""
        return {
            **self._head(),
            "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept.tolist(),
            "covariance": self.covariance.tolist(),
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        numbers = (fields["coefficients"], fields["intercept"], fields["covariance"])
        return cls(child, parents, *numbers)  # type: ignore[call-arg]

    def _equal_numbers(self, other: Any) -> bool:
        names = ("coefficients", "intercept", "covariance")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True, eq=False, repr=False)
class LinearGaussian(_Linear):
    """p(y | x) = N(y; intercept + coefficients · x, covariance) for real parents x, scalars or vectors.

    `coefficients` has one column for each component of the parents in order, or is a dict {parent: number or
    matrix}; `covariance` is that of the noise, `sd=` may stand in its place. Names stand for scalar variables.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    coefficients : one column for each component of the real parents, or a dict {parent: numbers}.
    intercept : the mean where all real parents are 0.
    covariance : of the noise.
    sd : its standard deviation, in place of `covariance`.

    Examples
    --------
    >>> bmi = LinearGaussian("bmi", ("age", "height"), {"age": 0.1}, 20.0, sd=4.0)
    >>> bmi.coefficients.tolist(), bmi.intercept.tolist(), bmi.covariance.tolist()
    ([[0.1, 0.0]], [20.0], [[16.0]])
    """

    kind: ClassVar[str] = "linear_gaussian"

    def _check_parents(self) -> None:
        if self.discrete_parents:
            names = listing(var.name for var in self.discrete_parents)
            raise ModelError(
                f"{self.child.name} has discrete parents ({names}): use ConditionalLinearGaussian, with one row of "
                "numbers for each of their states"
            )

    def factors(self) -> tuple[GaussianFactor, ...]:  # type: ignore[override]
        """One Gaussian factor; the noise must not be degenerate."""
        return (
            GaussianFactor.from_linear(self.child, self.parents, self.coefficients, self.intercept, self.covariance),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalLinearGaussian(_Linear):
    """p(y | x, d) = N(y; intercept_d + coefficients_d · x, covariance_d): discrete parents d choose the numbers.

    Parents stand in any order. The numbers have the discrete parents' axes in front; what has none of them is the
    same in all configurations. A dict {parent: numbers} may give the coefficients, `sd=` the noise.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    coefficients : one column for each component of the real parents, or a dict {parent: numbers}.
    intercept : the mean where all real parents are 0.
    covariance : of the noise.
    sd : its standard deviation, in place of `covariance`.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> y = ConditionalLinearGaussian("y", (binary("d"), "x"), {"x": [1.0, 2.0]}, [0.0, 5.0], sd=[1.0, 0.5])
    >>> y.coefficients[1].tolist(), y.intercept[1].tolist(), y.covariance[1].tolist()
    ([[2.0]], [5.0], [[0.25]])
    """

    kind: ClassVar[str] = "conditional_linear_gaussian"

    @classmethod
    def from_configurations(
        cls, child: Var | str, parents: Sequence[Var | str], rows: Mapping[Any, Mapping[str, Any]]
    ) -> Self:
        """From {labels of the discrete parents: {"intercept": …, "coefficients": …, "sd": … or "covariance": …}}.

        >>> from gramgraph.variables import binary
        >>> rows = {"no": {"intercept": 1.0, "sd": 1.0}, "yes": {"intercept": 2.0, "sd": 0.1}}
        >>> ConditionalLinearGaussian.from_configurations("y", (binary("d"),), rows).intercept.tolist()
        [[1.0], [2.0]]
        """
        blank = cls(as_var(child), as_parents(parents))
        arrays = [np.full_like(blank.coefficients, np.nan), np.full_like(blank.intercept, np.nan)]
        arrays.append(np.full_like(blank.covariance, np.nan))
        found = np.zeros(arrays[0].shape[:-2], bool)
        for labels, row in rows.items():
            given = labels if isinstance(labels, (tuple, list)) else (labels,)
            if len(given) != len(blank.discrete_parents):
                names = listing(var.name for var in blank.discrete_parents)
                raise ModelError(
                    f"a configuration of {blank.child.name} has one label for each of ({names}): {labels!r}"
                )
            at = tuple(var.index(label) for var, label in zip(blank.discrete_parents, given, strict=True))
            one = LinearGaussian(blank.child, blank.real_parents, **row)
            for array, part in zip(arrays, (one.coefficients, one.intercept, one.covariance), strict=True):
                array[at] = part
            found[at] = True
        if not found.all():
            first = np.argwhere(~found)[0]
            raise ModelError(f"no numbers for {row_name(blank.child, blank.discrete_parents, first)}")
        return cls(blank.child, blank.parents, *arrays)


def _fitted(values: FloatArray, shape: tuple[int, ...]) -> Any:
    """The array in this shape, where ones may have been left out and leading axes are repeated; else None."""
    if values.shape == shape:
        return values
    if values.size == prod(shape):
        plain = tuple(n for n in values.shape if n != 1)
        if plain == tuple(n for n in shape if n != 1):
            return values.reshape(shape)
    if 0 in shape:
        return np.zeros(shape) if values.size in (0, 1) else None
    if values.ndim == 0 and len(shape) >= 2 and shape[-1] == shape[-2] > 1:
        return np.broadcast_to(float(values) * np.eye(shape[-1]), shape)
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        return None


def _squares(sd: FloatArray, k: int, sizes: tuple[int, ...]) -> FloatArray:
    """Covariances from standard deviations of the components."""
    if k == 1:
        return sd**2
    spread = np.broadcast_to(sd if sd.shape[-1:] == (k,) else sd[..., None], (*sizes, k))
    return np.asarray((spread**2)[..., None] * np.eye(k))


def _square_roots(S: FloatArray) -> FloatArray:
    """Matrices R with R Rᵀ = S, also for singular S."""
    if S.shape[-1] == 1:
        return np.sqrt(np.maximum(S, 0.0))
    return symmetric_root(S)
