"""Shared base of conditionals that involve real-valued variables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from gramgraph.conditionals.base import Conditional
from gramgraph.conditionals.laws import CaseLaws, Laws
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray
from gramgraph.variables import Circle, Positive, Real, Sphere, Var, real

#: Values of many cases: (n, dimension) numbers of a real variable, (n,) state codes of a discrete one.
Draws: TypeAlias = Mapping[Var, Array]


class RealConditional(Conditional):
    """p(child | parents) with a real-valued child, or real-valued parents: a density that can be drawn from.

    Subclasses give `log_density` and `draw` for many cases at once, beside `faults`, `to_fields` and `from_fields`.

    Examples
    --------
    >>> from gramgraph.conditionals import LinearGaussian
    >>> p = LinearGaussian("y", ("x",), 2.0, 1.0, sd=0.5)
    >>> isinstance(p, RealConditional), p.child.name
    (True, 'y')
    """

    tabular: ClassVar[bool] = False

    @property
    def discrete_parents(self) -> tuple[Var, ...]:
        """The parents with labelled states, in order."""
        return tuple(var for var in self.parents if var.is_discrete)

    @property
    def real_parents(self) -> tuple[Var, ...]:
        """The real-valued parents, in order."""
        return tuple(var for var in self.parents if not var.is_discrete)

    @abstractmethod
    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(child | parents) of every case; `values` holds child and parents."""

    @abstractmethod
    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A value of the child for each of n cases; `values` holds the parents."""

    def laws(self, values: Draws, n: int, /) -> Laws:
        """The distributions of a scalar child for n cases of the parents; kinds that know a quicker way give it."""
        return CaseLaws(self, values, n)

    def support(self, values: Draws, /) -> dict[str, FloatArray]:
        """How near observed values lie to what was learned from, by variable: 1 among the data, 0 far away.

        `values` may hold some of the variables only. Kinds without data say nothing.
        """
        return {}

    def table(self) -> NoReturn:
        """Not available: a real-valued variable is involved."""
        raise ModelError(f"{self.child.name} or one of its parents is real-valued: its conditional has no table")

    def factors(self) -> Any:
        """Factors of the algebra, where the kind has them."""
        raise ModelError(f"the {self.kind} conditional of {self.child.name} is not a factor of one kind")

    @property
    def size(self) -> int:
        """Number of parameters that are stored."""
        return self.n_parameters

    def prob_at(self, states: Any, /) -> NoReturn:
        """There are no cells."""
        self.table()

    def equals(self, other: Conditional, /) -> bool:
        """The same kind, child, parents in the same order, and exactly the same numbers."""
        return self is other or (type(self) is type(other) and self.scope == other.scope and self._equal_numbers(other))

    def _rows(self, values: Draws) -> tuple[IntArray, ...]:
        """State codes of the discrete parents, as an index into arrays whose first axes are theirs."""
        return tuple(np.asarray(values[var]) for var in self.discrete_parents)


def as_var(given: Var | str) -> Var:
    """A variable, or a real-valued one of this name."""
    return given if isinstance(given, Var) else real(str(given))


def as_parents(given: Var | str | Sequence[Var | str]) -> tuple[Var, ...]:
    """Several of them; one alone counts as a sequence of one."""
    return (as_var(given),) if isinstance(given, (Var, str)) else tuple(as_var(var) for var in given)


def check_real_child(child: Var, kind: str) -> None:
    """A `ModelError` unless the child is real-valued."""
    if not isinstance(child.domain, Real):
        raise ModelError(f"a {kind} conditional is one of a real-valued variable; {child.name} is {child!r}")


def check_plain_line(child: Var, parents: Sequence[Var], kind: str) -> None:
    """A `ModelError` where sums of the values would leave their domain."""
    if isinstance(child.domain, (Circle, Positive, Sphere)):
        raise ModelError(
            f"a {kind} conditional takes values on the whole line; {child.name} is {child!r}. "
            f"Use gg.KernelConditional() instead, or write {child.name}{{real}}"
        )
    for var in parents:
        if isinstance(var.domain, Circle):
            raise ModelError(
                f"a {kind} conditional of {child.name} would jump where the angle {var.name} closes. "
                "Use gg.KernelConditional() or a Predictor instead, which know the circle"
            )


def stack_features(parents: Sequence[Var], values: Draws, n: int) -> FloatArray:
    """As `stack_real`, with an angle as its cosine and sine."""
    parts = []
    for var in parents:
        x = np.asarray(values[var], dtype=np.float64).reshape(n, -1)
        parts.append(np.hstack([np.cos(x), np.sin(x)]) if isinstance(var.domain, Circle) else x)
    return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))


def n_features(var: Var) -> int:
    """Number of columns that `stack_features` makes of a variable."""
    return 2 if isinstance(var.domain, Circle) else var.dimension


def stack_real(parents: Sequence[Var], values: Draws, n: int) -> FloatArray:
    """The real-valued variables of all cases side by side, (n, sum of dimensions)."""
    parts = [np.asarray(values[var], dtype=np.float64).reshape(n, -1) for var in parents]
    return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))


def log_density(conditional: Conditional, values: Draws) -> FloatArray:
    """log p(child | parents) of every case, for a conditional of any kind."""
    if isinstance(conditional, RealConditional):
        return conditional.log_density(values)
    table = conditional.table()
    with np.errstate(divide="ignore"):
        return np.log(table[tuple(np.asarray(values[var]) for var in conditional.scope)])


def draw(conditional: Conditional, values: Draws, n: int, rng: np.random.Generator) -> Array:
    """A value of the child for each of n cases, for a conditional of any kind."""
    if isinstance(conditional, RealConditional):
        return conditional.draw(values, n, rng)
    table = conditional.table()
    rows = table[tuple(np.asarray(values[var]) for var in conditional.parents)]
    return draw_states(np.broadcast_to(rows, (n, rows.shape[-1])), rng)


def draw_states(p: FloatArray, rng: np.random.Generator) -> IntArray:
    """One state code for each row of probabilities."""
    cumulative = np.cumsum(p, axis=1)
    u = rng.random(len(p)) * cumulative[:, -1]
    return np.minimum((cumulative <= u[:, None]).sum(axis=1), p.shape[1] - 1)
