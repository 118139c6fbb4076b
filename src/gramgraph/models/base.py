"""What every graphical model has: variables with states, factors, and a place for compiled plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np

from gramgraph._drawn import Drawn
from gramgraph._other_words import OtherWords
from gramgraph.cells.axes import Axis
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.factors import TableFactor
from gramgraph.models.asking import Asking
from gramgraph.models.mixed import joint_log_density, kind_of_real
from gramgraph.variables import Discrete, Var


class GraphicalModel(OtherWords, Drawn, Asking, ABC):
    """A set of variables and a product of factors over them; a value that never changes once built.

    Examples
    --------
    >>> import gramgraph as gg
    >>> isinstance(gg.datasets.asia(), GraphicalModel), len(gg.datasets.asia())
    (True, 8)
    """

    vars: tuple[Var, ...]
    positions: dict[str, int]
    is_discrete: bool  # whether all variables have labelled states
    cell_axes: tuple[Axis, ...] = ()  # of the variables of a model on cells
    name: str
    metadata: dict[str, Any]  # what a file said about the model beside its numbers (properties, positions)

    def _set_variables(self, variables: Iterable[Var]) -> None:
        self.vars = tuple(variables)
        self.positions = {var.name: i for i, var in enumerate(self.vars)}
        self.is_discrete = {type(var.domain) for var in self.vars} <= {Discrete}
        self.plans: dict[Any, Any] = {}  # compiled structures, filled by the engines
        self.lock = RLock()
        if len(self.positions) != len(self.vars):
            counts = Counter(var.name for var in self.vars)
            twice = sorted(name for name, count in counts.items() if count > 1)
            raise ModelError([f"variable {name!r} is defined more than once" for name in twice])

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("plans", "lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, plans={}, lock=RLock())

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in the order in which they were written."""
        return tuple(self.positions)

    @property
    def kind(self) -> str:
        """What decides about engines: "tables" (all discrete), "gaussian" (all real, linear), "mixed" (discrete
        variables choose linear Gaussians) or "general"."""
        if self.is_discrete:
            return "tables"
        found: str | None = self.plans.get(("lowered", "kind"))
        if found is None:
            found = self.plans[("lowered", "kind")] = kind_of_real(self)
        return found

    def __len__(self) -> int:
        return len(self.vars)

    def __contains__(self, name: object) -> bool:
        return name in self.positions

    def var(self, name: str) -> Var:
        """The variable of this name."""
        return self.vars[self.index(name)]

    def index(self, name: str) -> int:
        """Position of a variable; `VariableError` with the nearest name when there is none."""
        try:
            return self.positions[name]
        except (KeyError, TypeError):
            raise VariableError.unknown(name, self.variables) from None

    def states(self, name: str) -> tuple[str, ...]:
        """Labels of a variable's states."""
        return self.var(name).states

    @abstractmethod
    def factors(self, *, structured: bool = True) -> tuple[TableFactor, ...]:
        """The factors whose product is the model.

        With `structured`, conditionals may add hidden variables where that is cheaper; without it every factor
        is over the model's own variables (what maximization needs).
        """

    @abstractmethod
    def faults(self) -> list[str]:
        """Everything that is wrong with the model, one sentence each; empty when it can be used."""

    def check_model(self) -> bool:
        """True, or a `ModelError` that lists every fault."""
        found = self.faults()
        if found:
            raise ModelError(found)
        return True

    def joint_log_prob(self, assignment: Mapping[str, Any]) -> float:
        """log of the product of all factors at a full assignment, not normalized (for a Bayesian network: log p(x))."""
        if not self.is_discrete:
            return joint_log_density(self, assignment)
        at = self._full(assignment)
        total = 0.0
        for factor in self.factors(structured=False):
            value = factor.values[tuple(at[self.positions[var.name]] for var in factor.scope)]
            if value <= 0.0:
                return -np.inf
            total += float(np.log(value)) + factor.log_scale
        return total

    def _full(self, assignment: Mapping[str, Any]) -> list[int]:
        """State indices in the order of the variables; every variable needs a value, and only these."""
        self._check_full(assignment)
        return [var.index(assignment[var.name]) for var in self.vars]

    def _check_full(self, assignment: Mapping[str, Any]) -> None:
        """Every variable needs a value, and only these."""
        for name in assignment:
            self.index(name)
        missing = [name for name in self.positions if name not in assignment]
        if missing:
            raise VariableError(f"a full assignment is needed; no value for {listing(missing)}")

    def _sizes(self) -> list[int]:
        """Numbers of states, as weights of triangulation; a real-valued variable counts as two."""
        return [var.size if var.is_discrete else 2 for var in self.vars]

    def positions_of(self, names: str | Iterable[str]) -> tuple[int, ...]:
        """Positions of one name or several."""
        if not isinstance(names, Iterable):
            raise VariableError(f"a name or several names are needed here, not {names!r}")
        return tuple(map(self.index, (names,) if isinstance(names, str) else names))

    def names_of(self, positions: Iterable[int]) -> tuple[str, ...]:
        """Names of the variables at these positions."""
        return tuple(self.vars[i].name for i in positions)


def scopes_of(factors: Sequence[TableFactor]) -> tuple[Var, ...]:
    """All variables of the factors, in first-seen order."""
    return tuple(dict.fromkeys(var for factor in factors for var in factor.scope))
