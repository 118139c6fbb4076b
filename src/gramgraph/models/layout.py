"""Where the components of a model's real-valued variables stand in one long vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gramgraph.typing import IntArray
from gramgraph.variables import Real, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the components of the real variables stand in one long vector."""

    variables: tuple[Var, ...]
    first: IntArray  # (variables,) first component; -1 for a discrete variable
    owner: IntArray  # (components,) position of the variable
    scalar: bool  # whether every real variable has one component

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(var.name for var in self.variables)

    @property
    def size(self) -> int:
        """Number of components."""
        return len(self.owner)

    def components(self, v: int) -> IntArray:
        """Components of the variable at position v."""
        return np.arange(self.first[v], self.first[v] + self.variables[v].dimension)

    def of(self, positions: Sequence[int]) -> IntArray:
        """Components of several variables, one after the other."""
        if self.scalar:
            return self.first[list(positions)] if len(positions) else np.zeros(0, np.int64)
        parts = [self.components(v) for v in positions]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def layout_of(model: GraphicalModel) -> Layout:
    """The model's layout, made once."""
    found: Layout | None = model.plans.get(("lowered", "layout"))
    if found is None:
        first = np.full(len(model.vars), -1, np.int64)
        owner: list[int] = []
        for v, var in enumerate(model.vars):
            if isinstance(var.domain, Real):
                first[v] = len(owner)
                owner += [v] * var.domain.dimension
        found = model.plans[("lowered", "layout")] = Layout(
            model.vars, first, np.array(owner, np.int64), len(owner) == int((first >= 0).sum())
        )
    return found
