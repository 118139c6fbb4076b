"""Many factors with few tables: what grids are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gramgraph.factors.table import TableFactor
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False)
class SharedTables:
    """n factors over k variables each, in arrays: factor i is exp(log_scales[l]) · tables[l] with l = level[i].

    A grid has hundreds of thousands of factors, and often a handful of different tables. Engines read the arrays;
    factors as values are made when somebody asks for them.

    Parameters
    ----------
    scopes : (n, k) positions of variables.
    tables : (levels, …) one axis more for each of the k variables.
    log_scales : (levels,).
    level : (n,).

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> same = SharedTables.from_log(np.array([[0, 1], [1, 2]]), np.array([0.5, 0.5]), np.eye(2))
    >>> len(same.tables), [f.scope for f in same.factors([binary(v) for v in "abc"])]
    (1, [(a{no|yes}, b{no|yes}), (b{no|yes}, c{no|yes})])
    """

    scopes: IntArray  # (n, k) positions of variables
    tables: FloatArray  # (levels, …) one axis more for each of the k variables
    log_scales: FloatArray  # (levels,)
    level: IntArray  # (n,)

    @classmethod
    def from_log(cls, scopes: IntArray, strengths: FloatArray, pattern: FloatArray) -> Self:
        """exp(strengths[i] · pattern) over every scope; equal strengths share a table."""
        levels, which = np.unique(strengths, return_inverse=True)
        return cls.from_logs(scopes, np.multiply.outer(levels, pattern), which)

    @classmethod
    def from_logs(cls, scopes: IntArray, logs: FloatArray, level: IntArray) -> Self:
        """exp(logs[level[i]]) over every scope, without overflow: the largest entries become the scales."""
        tops = logs.max(axis=tuple(range(1, logs.ndim)), initial=-np.inf)
        tops[~np.isfinite(tops)] = 0.0
        tables = np.exp(logs - tops.reshape(-1, *[1] * (logs.ndim - 1)))
        tables.flags.writeable = False
        return cls(scopes, tables, tops, level.reshape(-1))

    def factors(self, variables: Sequence[Var]) -> list[TableFactor]:
        """The factors as values; shapes are known to be right and are not looked at again."""
        rows, scales, new = list(self.tables), self.log_scales.tolist(), object.__new__
        made = []
        for scope, l in zip(self.scopes.tolist(), self.level.tolist(), strict=True):
            factor = new(TableFactor)
            named = tuple([variables[v] for v in scope])
            for name, value in (("scope", named), ("values", rows[l]), ("log_scale", scales[l])):
                object.__setattr__(factor, name, value)
            made.append(factor)
        return made
