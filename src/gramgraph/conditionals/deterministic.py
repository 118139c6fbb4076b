"""A child that is a function of its parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.base import Conditional
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False, repr=False)
class Deterministic(Conditional):
    """p(child | parents) = 1 where child = f(parents), else 0.

    `outcomes` is the function f, called with one label (text) per parent and returning a state of the child, or
    the child's state indices as an array of shape (*parent sizes). The function is evaluated once, for every
    combination, and not kept: what is saved is its table.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    outcomes : the function of the parents' labels, or an array of state numbers.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> same = Deterministic(binary("same"), (binary("a"), binary("b")), lambda a, b: "yes" if a == b else "no")
    >>> same.table()[..., 1].tolist(), same.n_parameters
    ([[1.0, 0.0], [0.0, 1.0]], 0)
    """

    kind: ClassVar[str] = "deterministic"
    child: Var
    parents: tuple[Var, ...]
    outcomes: IntArray | Callable[..., Any]

    def __post_init__(self) -> None:
        shape = tuple(var.size for var in self.parents)
        wrong: list[str] = []
        if callable(self.outcomes):
            found = _evaluate(self.outcomes, self.child, self.parents, wrong)
        else:
            found = np.array(self.outcomes, dtype=np.int64)
            if found.size == int(np.prod(shape)) and found.shape != shape:
                found = found.reshape(shape)
            if found.shape != shape:
                raise ModelError(f"the outcomes of {self.child.name} must have shape {shape}, not {found.shape}")
            for at in np.argwhere((found < 0) | (found >= self.child.size)):
                wrong.append(_no_state(self.child, self.parents, at, int(found[tuple(at)])))
        found.flags.writeable = False
        object.__setattr__(self, "outcomes", found)
        object.__setattr__(self, "_wrong", tuple(wrong))

    def table(self) -> FloatArray:
        """Ones at the outcomes, zeros elsewhere."""
        if self.faults():
            raise ModelError(self.faults())
        return np.eye(self.child.size)[np.asarray(self.outcomes)]

    @property
    def n_parameters(self) -> int:
        """None: nothing is left free."""
        return 0

    def faults(self) -> list[str]:
        """Combinations of the parents' states at which the function gave no state of the child."""
        wrong: tuple[str, ...] = self._wrong  # type: ignore[attr-defined]
        if len(wrong) > 20:
            return [*wrong[:20], f"… and {len(wrong) - 20} more combinations without a state of {self.child.name}"]
        return list(wrong)

    def to_fields(self) -> dict[str, Any]:
        """`outcomes`: the child's state index at every combination, last parent fastest."""
        return {**self._head(), "outcomes": np.ravel(np.asarray(self.outcomes)).tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, np.asarray(fields["outcomes"], dtype=np.int64))


def _evaluate(f: Callable[..., Any], child: Var, parents: tuple[Var, ...], wrong: list[str]) -> IntArray:
    """State indices of f at every combination, -1 where it gave none; what went wrong is added to `wrong`."""
    shape = tuple(var.size for var in parents)
    out = np.full(shape, -1, dtype=np.int64)
    for at in product(*map(range, shape)):
        labels = [var.states[i] for var, i in zip(parents, at, strict=True)]
        try:
            value = f(*labels)
        except Exception as error:
            where = ", ".join(f"{var.name}={label}" for var, label in zip(parents, labels, strict=True))
            wrong.append(f"the function of {child.name} failed at {where}: {type(error).__name__}: {error}")
            continue
        out[at] = child.discrete.find(value)
        if out[at] < 0:
            wrong.append(_no_state(child, parents, at, value))
    return out


def _no_state(child: Var, parents: tuple[Var, ...], at: Any, value: Any) -> str:
    where = ", ".join(f"{var.name}={var.states[i]}" for var, i in zip(parents, at, strict=True))
    states = ", ".join(child.states)
    return f"the function of {child.name} gave {value!r} at {where}, which is not one of its states ({states})"
