"""Kernel potentials: what undirected networks of numbers, angles, directions and categories are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramgraph.cells.axes import Axis, Placed
from gramgraph.cells.columns import column_of
from gramgraph.conditionals.base import _Kinds
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False)
class KernelPotential(metaclass=_Kinds):
    """exp(u(x)ᵀ A v(y)) of two variables, or exp(b·u(x)) of one; u and v are eigenfunctions of kernels on cells.

    `gg.learn_markov` makes them. They stand in a `MarkovNetwork` or a `FactorGraph`, beside tables of categories; the
    measure of every variable is its own kernel density. Without numbers, `gg.KernelPotential()` is a kind to be fitted.

    Parameters
    ----------
    *args : the variables and the numbers, as `gg.learn_markov` gives them; none for a kind to be fitted.
    **options : the same by name, or options of the fit.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> net = gg.learn_markov({"x": x, "y": x + 0.5 * rng.normal(size=500)}, "x - y", rank=2, penalty=0.01)
    >>> f = net.potential("x", "y")
    >>> bool(f.log_value([1.0], [1.0])[0] > f.log_value([1.0], [-1.0])[0])
    True
    """

    kind: ClassVar[str] = "kernel_potential"
    needs: ClassVar[str] = "axes"
    axes: tuple[Axis, ...]  # one or two
    features: tuple[FloatArray, ...]  # (m, r) of each
    A: FloatArray  # (r, s), or (r,) of one variable

    def __post_init__(self) -> None:
        sizes = tuple(F.shape[1] for F in self.features)
        fit = len(self.axes) == len(self.features) and np.shape(self.A) == sizes and len(self.axes) in (1, 2)
        if not fit or any(F.shape[0] != axis.m for F, axis in zip(self.features, self.axes, strict=True)):
            raise ModelError(
                f"a potential of {', '.join(a.name for a in self.axes)} whose features do not fit its cells"
            )
        if not all(np.isfinite(part).all() for part in (*self.features, self.A)):
            raise ModelError(f"a potential of {', '.join(a.name for a in self.axes)} with numbers that are not finite")

    @property
    def scope(self) -> tuple[Var, ...]:
        """Its variables."""
        return tuple(axis.var for axis in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its variables."""
        return tuple(axis.name for axis in self.axes)

    @property
    def log_table(self) -> FloatArray:
        """The logarithm on the cells, (m,) or (m, p)."""
        if len(self.axes) == 1:
            return np.asarray(self.features[0] @ self.A)
        return np.asarray(self.features[0] @ self.A @ self.features[1].T)

    def log_value(self, *values: Any) -> FloatArray:
        """The logarithm at columns of values, one of each variable; features are linear between cells."""
        return self.log_at(*(axis.place(column_of(z)) for axis, z in zip(self.axes, values, strict=True)))

    def log_at(self, *placed: Placed) -> FloatArray:
        """The same at rows on cells."""
        u = [between(F, at) for F, at in zip(self.features, placed, strict=True)]
        return np.asarray(u[0] @ self.A) if len(u) == 1 else np.einsum("nr,rs,ns->n", u[0], self.A, u[1])

    def along(self, name: str, at: Placed) -> FloatArray:
        """The logarithm on the cells of the other variable where one is at rows on cells, (n, m)."""
        here = self.names.index(name)
        A = self.A if here == 0 else self.A.T
        return np.asarray(between(self.features[here], at) @ A @ self.features[1 - here].T)

    def equals(self, other: KernelPotential) -> bool:
        """The same variables, cells and numbers."""
        pairs = [*zip(self.features, other.features, strict=False), (self.A, other.A)]
        same = len(self.axes) == len(other.axes) and all(np.array_equal(a, b) for a, b in pairs)
        return same and all(same_axis(a, b) for a, b in zip(self.axes, other.axes, strict=True))

    def to_fields(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Names, and arrays; the axes are saved with the model."""
        arrays = {f"features{i}": F for i, F in enumerate(self.features)} | {"A": self.A}
        return {"names": list(self.names)}, arrays

    @classmethod
    def from_fields(
        cls, fields: Mapping[str, Any], arrays: Mapping[str, Array], axes: Mapping[str, Axis]
    ) -> KernelPotential:
        """The potential that `to_fields` wrote."""
        own = tuple(axes[str(name)] for name in fields["names"])
        F = tuple(np.asarray(arrays[f"features{i}"], np.float64) for i in range(len(own)))
        return cls(own, F, np.asarray(arrays["A"], np.float64))


def between(F: FloatArray, at: Placed) -> FloatArray:
    """Functions on cells at rows, linear between them, (n, r)."""
    return np.asarray(F[at.a] * (1.0 - at.f)[:, None] + F[at.b] * at.f[:, None])


def same_axis(a: Axis, b: Axis) -> bool:
    """Whether two axes have the same cells."""
    if a is b:
        return True
    (one, first), (two, second) = a.to_fields(), b.to_fields()
    return one == two and all(np.array_equal(first[key], second[key]) for key in first)
