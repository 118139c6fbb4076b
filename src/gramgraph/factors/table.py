"""Tables: factors over discrete variables, one axis per variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var, join


def aligned(values: FloatArray, scope: Sequence[Any], target: Sequence[Any]) -> FloatArray:
    """A view of `values` with its axes in the order of `target`, of length one where it lacks a variable."""
    order = [scope.index(var) for var in target if var in scope]
    return values.transpose(order)[tuple(slice(None) if var in scope else None for var in target)]


@dataclass(frozen=True, eq=False)
class TableFactor:
    """f(x) = exp(log_scale) · values[x] on discrete variables.

    Values are kept with their largest entry near one and the scale as a logarithm, so that a product of
    thousands of small numbers neither underflows nor becomes "impossible".

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    values : not negative, one axis per variable.
    log_scale : logarithm of the scale.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> a, b = binary("a"), binary("b")
    >>> f = TableFactor((a,), np.array([0.4, 0.6])).product(TableFactor((a, b), np.array([[0.5, 0.5], [0.1, 0.9]])))
    >>> belief, log_z = f.marginalize([a]).normalize()
    >>> belief.values.round(2).tolist(), abs(round(log_z, 12))
    ([0.26, 0.74], 0.0)
    """

    scope: tuple[Var, ...]
    values: FloatArray
    log_scale: float = 0.0

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        shape = tuple(var.size for var in self.scope)
        if values.shape != shape:
            names = ", ".join(map(repr, self.scope))
            raise ModelError(f"table over ({names}) must have shape {shape}, not {values.shape}")
        values = values.view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @classmethod
    def unit(cls) -> Self:
        """The constant one."""
        return cls((), np.ones(()))

    @classmethod
    def from_log(cls, scope: tuple[Var, ...], log_values: Array) -> Self:
        """exp(log_values) without overflow: the largest entry becomes the scale."""
        logs = np.asarray(log_values, dtype=np.float64)
        top = float(logs.max(initial=-np.inf))
        if not np.isfinite(top):
            top = 0.0
        return cls(scope, np.exp(logs - top), top)

    def product(self, other: Self, /) -> Self:
        """f · g on the union of the scopes, in O(size of the result)."""
        f, g = self._rescaled(), other._rescaled()  # two tiny tables must not underflow before the new scale is taken
        scope = join(f.scope, g.scope)
        values = aligned(f.values, f.scope, scope) * aligned(g.values, g.scope, scope)
        return type(self)(scope, values, f.log_scale + g.log_scale)._rescaled()

    def marginalize(self, out: Collection[Var], /) -> Self:
        """Σ over the variables `out`."""
        axes = tuple(i for i, var in enumerate(self.scope) if var in out)
        keep = tuple(var for var in self.scope if var not in out)
        return type(self)(keep, self.values.sum(axis=axes), self.log_scale)._rescaled()

    def maximize(self, out: Collection[Var], /) -> Self:
        """max over the variables `out`."""
        axes = tuple(i for i, var in enumerate(self.scope) if var in out)
        keep = tuple(var for var in self.scope if var not in out)
        return type(self)(keep, self.values.max(axis=axes), self.log_scale)._rescaled()

    def condition(self, evidence: Mapping[Var, int], /) -> Self:
        """f(·, e) for observed state indices; variables outside the scope are ignored."""
        index = tuple(evidence.get(var, slice(None)) for var in self.scope)
        keep = tuple(var for var in self.scope if var not in evidence)
        # A slice may be tiny beside the rest of the table: without a new scale, a product of two would underflow.
        return type(self)(keep, self.values[index], self.log_scale)._rescaled()

    def normalize(self) -> tuple[Self, float]:
        """(f / Z, log Z); a table of zeros is returned unchanged, with log Z = -inf."""
        scaled = self._rescaled()  # a sum of large entries must not overflow
        total = float(scaled.values.sum())
        if total <= 0.0:
            return self, -np.inf
        return type(self)(self.scope, scaled.values / total, 0.0), scaled.log_scale + float(np.log(total))

    def reorder(self, scope: tuple[Var, ...]) -> Self:
        """The same function with its axes in another order."""
        return type(self)(scope, self.values.transpose([self.scope.index(var) for var in scope]), self.log_scale)

    def log_values(self) -> FloatArray:
        """log f(x), with -inf where f is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.values) + self.log_scale

    def _rescaled(self) -> Self:
        top = float(self.values.max(initial=0.0))
        if top <= 0.0 or top == 1.0:
            return self
        return type(self)(self.scope, self.values / top, self.log_scale + float(np.log(top)))
