"""A density of one family for each state of a discrete parent: Poisson, gamma, von Mises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.continuous import Draws, RealConditional, as_parents, as_var, check_real_child
from gramgraph.distributions._columns import FAMILIES
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

_NAMES = ("gaussian", "poisson", "gamma", "von_mises")


@dataclass(frozen=True, eq=False, repr=False)
class Grouped(RealConditional):
    """p(child | state) of one family, with parameters (states, p): "poisson" (rate), "gamma" (shape, rate), "von_mises"
    (mean direction, concentration) or "gaussian" (mean, variance). A Poisson child holds counts as numbers.

    Inference is by weighted draws.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    family : "poisson", "gamma", "von_mises" or "gaussian".
    parameters : of the family, one row for each state of the parent.

    Examples
    --------
    >>> import gramgraph as gg
    >>> from gramgraph.variables import discrete, real
    >>> day = discrete("day", ["quiet", "busy"])
    >>> calls = Grouped(real("calls"), (day,), "poisson", [[2.0], [9.0]])
    >>> net = gg.BayesianNetwork.from_parts((day, calls.child), [gg.Table(day, (), [0.5, 0.5]), calls])
    >>> net.query("day", {"calls": 8.0}, random_state=0)["day"].prob("busy") > 0.9
    True
    """

    kind: ClassVar[str] = "grouped"
    child: Var
    parents: tuple[Var, ...]
    family: str
    parameters: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "child", as_var(self.child))
        object.__setattr__(self, "parents", as_parents(self.parents))
        check_real_child(self.child, self.kind)
        name = self.child.name
        if self.family not in _NAMES:
            raise ModelError(
                f"the family of {name} is one of {', '.join(_NAMES)}, not {self.family!r}."
                f"{did_you_mean(self.family, _NAMES)}"
            )
        if len(self.parents) != 1 or not self.parents[0].is_discrete or self.child.dimension != 1:
            raise ModelError(f"{name} must be one number with one discrete parent")
        values = np.array(self.parameters, dtype=np.float64)
        shape = (self.parents[0].size, FAMILIES[self.family].n_parameters)
        if values.shape != shape:
            raise ModelError(f"the parameters of {name} must have shape {shape}, not {values.shape}")
        values.flags.writeable = False
        object.__setattr__(self, "parameters", values)

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(child | state) of every case."""
        family = FAMILIES[self.family]()
        x = np.asarray(values[self.child], dtype=np.float64).reshape(-1)
        (state,) = self._rows(values)
        logs = np.full(len(x), -np.inf)
        at = np.flatnonzero(family.inside(x))
        logs[at] = family.logs(x[at], self.parameters)[np.arange(len(at)), state[at]]
        return logs

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> FloatArray:
        """A number for each of n cases."""
        (state,) = self._rows(values)
        return FAMILIES[self.family]().draw(self.parameters[state], rng)[:, None]

    @property
    def n_parameters(self) -> int:
        """Numbers that are stored."""
        return int(self.parameters.size)

    def faults(self) -> list[str]:
        """Numbers out of range."""
        found = self.parameters
        positive = {"gaussian": found[:, 1:], "poisson": found, "gamma": found}.get(self.family, found[:, :0])
        if not np.isfinite(found).all() or (positive < 0.0).any():
            return [f"the parameters of {self.child.name} must be finite, and rates, shapes and variances positive"]
        return []

    def to_fields(self) -> dict[str, Any]:
        """`family` and `parameters`."""
        return {**self._head(), "family": self.family, "parameters": self.parameters.tolist()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, fields["family"], fields["parameters"])

    def _equal_numbers(self, other: Any) -> bool:
        return bool(self.family == other.family and np.array_equal(self.parameters, other.parameters))
