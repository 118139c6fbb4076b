"""A conditional probability table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.base import ROW_TOLERANCE, Conditional, row_name
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["ROW_TOLERANCE", "Table"]


@dataclass(frozen=True, eq=False, repr=False)
class Table(Conditional):
    """p(child | parents) as numbers, shape (*parent sizes, child size).

    The numbers may also come flat, or as a matrix with one row per combination of the parents' states (the last
    parent runs fastest).

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    values : the numbers, shape (*parent sizes, child size), flat, or one row per combination.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> Table(binary("wet"), (binary("rain"),), np.array([[0.9, 0.1], [0.2, 0.8]])).n_parameters
    2
    """

    kind: ClassVar[str] = "table"
    child: Var
    parents: tuple[Var, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        shape = (*[var.size for var in self.parents], self.child.size)
        if values.shape != shape:
            values = self._shaped(values, shape)
        if values.flags.writeable:  # the caller's own array: what he does to it later must not change a value
            values = values.copy()
            values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def _shaped(self, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        rows = self.size // shape[-1] if shape[-1] else 0
        if values.size == self.size and values.shape in ((self.size,), (rows, shape[-1])):
            return values.reshape(shape)
        given = f"{values.size} numbers" if values.ndim == 1 else f"shape {values.shape}"
        order = ", ".join(f"{var.name} ({var.size})" for var in self.scope)
        text = f"the table of {self.child.name} must have shape {shape} [{order}], not {given}"
        if values.shape == (shape[-1], rows):
            text += "; it looks transposed: one row per combination of the parents' states is expected"
        raise ModelError(text)

    def table(self) -> FloatArray:
        """The numbers."""
        return self.values

    def prob_at(self, states: Any, /) -> float:
        """p at one cell."""
        return float(self.values[tuple(states)])

    def faults(self) -> list[str]:
        """Negative or non-finite entries, and rows that do not sum to one, each row named by its parents' states."""
        if not np.isfinite(self.values).all():
            return [f"the table of {self.child.name} has entries that are not finite numbers"]
        found = []
        if (self.values < 0).any():
            found.append(f"the table of {self.child.name} has negative entries (smallest {self.values.min():g})")
        sums = self.values.sum(axis=-1)
        wrong = np.argwhere(np.abs(sums - 1.0) > ROW_TOLERANCE)
        for row in wrong[:20]:
            found.append(f"{row_name(self.child, self.parents, row)} sums to {sums[tuple(row)]:.6g}, not 1")
        if len(wrong) > 20:
            found.append(f"… and {len(wrong) - 20} more rows of {self.child.name} do not sum to 1")
        return found

    def normalized(self) -> Self:
        """The table with every row divided by its sum; rows of zeros stay."""
        sums = self.values.sum(axis=-1, keepdims=True)
        return replace(self, values=self.values / np.where(sums > 0, sums, 1.0))

    def to_fields(self) -> dict[str, Any]:
        """`values` as a flat list, child fastest."""
        return {**self._head(), "values": self.values.ravel().tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The table that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, np.asarray(fields["values"], dtype=np.float64))

    def _equal_numbers(self, other: Any) -> bool:
        return bool(np.array_equal(self.values, other.values))
