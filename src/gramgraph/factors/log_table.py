"""Tables of logarithms: the factor algebra where no ratio of numbers is too large."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.factors.table import TableFactor
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, join


def log_sum_exp(logs: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """log Σ exp(logs) over `axes`, with -inf for a sum of zeros and no overflow.

    >>> float(log_sum_exp(np.array([1000.0, 1000.0]), (0,)).round(6))
    1000.693147
    """
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axes)) + top.squeeze(axis=axes))


@dataclass(frozen=True, eq=False)
class LogTable:
    """f(x) = exp(logs[x]) on discrete variables; product is a sum, Σ is log-sum-exp, max is max.

    Some ten times slower than `TableFactor`, and right where the entries of one table differ by more than the 10³⁰⁰
    that linear numbers can hold. Maximization (max-sum) is done with these.

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    logs : logarithms, one axis per variable.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> f = LogTable((binary("a"),), np.array([-1000.0, -2000.0]))
    >>> f.product(f).maximize([binary("a")]).logs.tolist()
    -2000.0
    """

    scope: tuple[Var, ...]
    logs: FloatArray

    def __post_init__(self) -> None:
        logs = np.asarray(self.logs, dtype=np.float64)
        shape = tuple(var.size for var in self.scope)
        if logs.shape != shape:
            names = ", ".join(map(repr, self.scope))
            raise ModelError(f"table over ({names}) must have shape {shape}, not {logs.shape}")
        logs = logs.view()
        logs.flags.writeable = False
        object.__setattr__(self, "logs", logs)

    @property
    def log_scale(self) -> float:
        """Zero: the logarithms carry the scale."""
        return 0.0

    @classmethod
    def unit(cls) -> Self:
        """The constant one."""
        return cls((), np.zeros(()))

    @classmethod
    def from_table(cls, factor: TableFactor) -> Self:
        """The same function as a linear table."""
        return cls(factor.scope, factor.log_values())

    def product(self, other: Self, /) -> Self:
        """f · g on the union of the scopes."""
        scope = join(self.scope, other.scope)
        return type(self)(scope, _aligned(self, scope) + _aligned(other, scope))

    def marginalize(self, out: Collection[Var], /) -> Self:
        """Σ over the variables `out`."""
        axes, keep = self._split(out)
        return type(self)(keep, log_sum_exp(self.logs, axes))

    def maximize(self, out: Collection[Var], /) -> Self:
        """max over the variables `out`."""
        axes, keep = self._split(out)
        return type(self)(keep, self.logs.max(axis=axes))

    def condition(self, evidence: Mapping[Var, int], /) -> Self:
        """f(·, e) for observed state indices; variables outside the scope are ignored."""
        index = tuple(evidence.get(var, slice(None)) for var in self.scope)
        return type(self)(tuple(var for var in self.scope if var not in evidence), self.logs[index])

    def normalize(self) -> tuple[Self, float]:
        """(f / Z, log Z); a table of zeros is returned unchanged, with log Z = -inf."""
        log_z = float(log_sum_exp(self.logs, tuple(range(self.logs.ndim))))
        if log_z == -np.inf:
            return self, log_z
        return type(self)(self.scope, self.logs - log_z), log_z

    def argmax(self) -> dict[Var, int]:
        """The states of the largest entry, the first one in case of ties."""
        at = np.unravel_index(int(self.logs.argmax()), self.logs.shape)
        return {var: int(i) for var, i in zip(self.scope, at, strict=True)}

    def to_table(self) -> TableFactor:
        """The same function as a scaled linear table."""
        return TableFactor.from_log(self.scope, self.logs)

    def _split(self, out: Collection[Var]) -> tuple[tuple[int, ...], tuple[Var, ...]]:
        axes = tuple(i for i, var in enumerate(self.scope) if var in out)
        return axes, tuple(var for var in self.scope if var not in out)


def _aligned(factor: LogTable, target: tuple[Var, ...]) -> FloatArray:
    """The logarithms with axes in the order of `target`, of length one where the factor lacks a variable."""
    order = [factor.scope.index(var) for var in target if var in factor.scope]
    shape = [var.size if var in factor.scope else 1 for var in target]
    return factor.logs.transpose(order).reshape(shape)
