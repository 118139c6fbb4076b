"""What a node of a Bayesian network holds: p(child | parents)."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph._show import Listing, Shown
from gramgraph._signatures import InitSignature
from gramgraph.conditionals.showing import context_rows, value_text
from gramgraph.exceptions import BudgetError, ModelError, VariableError
from gramgraph.factors import TableFactor
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

#: Rows whose sum is off by less than this count as rounded, not as wrong.
ROW_TOLERANCE = 1e-6
#: Cells of a dense table that a conditional makes, at most.
MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class Kind:
    """A kind of conditional without numbers, to be fitted: what `gg.Softmax()` gives, with options of its fit.

    Parameters
    ----------
    options : of its fit.

    Examples
    --------
    >>> from gramgraph.conditionals import Softmax
    >>> Softmax()
    Softmax()
    """

    cls: Any  # the class of conditionals
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.cls.__name__}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


class _Kinds(ABCMeta):
    """Calling a class of conditionals without a child names the kind that is to be fitted."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if not args and cls.needs and cls.needs not in options and not cls.__abstractmethods__:  # type: ignore[attr-defined]
            return Kind(cls, options)
        return super().__call__(*args, **options)


class Conditional(Shown, metaclass=_Kinds):
    """p(child | parents) as a frozen value.

    A kind of conditional says how its table is made (`table`), and, where a product of smaller factors with
    hidden variables is cheaper than the table, offers that product (`factors`). It saves itself as plain fields
    (`to_fields`, `from_fields`) under its `kind`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> p = gg.datasets.asia().conditional("lung")
    >>> isinstance(p, Conditional), p.kind, p.child.name, [parent.name for parent in p.parents]
    (True, 'table', 'lung', ['smoke'])
    """

    __signature__ = InitSignature()
    kind: ClassVar[str] = ""  # the word that stands in saved files
    #: Without this argument the class stands for a kind to be fitted; empty for one that is such a kind by itself.
    needs: ClassVar[str] = "child"
    tabular: ClassVar[bool] = True  # whether it is a table over labelled states
    #: Whether hidden variables of `factors` are functions of the parents: the product then serves for a maximum too.
    functional: ClassVar[bool] = False
    child: Var
    parents: tuple[Var, ...]

    def _shown(self) -> Listing:
        given = f" | {', '.join(var.name for var in self.parents)}" if self.parents else ""
        title = f"p({self.child.name}{given}), {type(self).__name__}"
        if self.kind == "table":
            header, rows, left = context_rows(self.parents, self.child, self.table())
            return Listing(title, header, rows, left)
        own = [f.name for f in fields(self) if f.init and f.name not in ("child", "parents")]  # type: ignore[arg-type]
        return Listing(title, ("parameter", "value"), [(name, value_text(getattr(self, name))) for name in own])

    @property
    def scope(self) -> tuple[Var, ...]:
        """Parents in order, then the child: the order of the table's axes."""
        return (*self.parents, self.child)

    @abstractmethod
    def table(self) -> FloatArray:
        """The dense table, shape (*parent sizes, child size): rows over the child sum to one."""

    def _check_size(self) -> None:
        """`BudgetError` where the dense table would be too large to be made."""
        if self.size > MOST_CELLS:
            raise BudgetError(
                f"the dense table of {self.child.name} given its {len(self.parents)} parents has {self.size:.3g} cells",
                clique=tuple(var.name for var in self.scope),
                bytes=8.0 * self.size,
                remedies=('ask engines that take its small factors: "auto", "bp", "join_graph" or "importance"',),
            )

    def factors(self) -> tuple[TableFactor, ...]:
        """Factors whose product, summed over variables outside `scope`, is the table.

        Hidden variables must have names that no user writes: `f"{child}·{number}"`.
        """
        return (TableFactor(self.scope, self.table()),)

    @property
    def is_structured(self) -> bool:
        """Whether `factors` offers something other than the dense table."""
        return False

    def factors_of_maximum(self) -> tuple[TableFactor, ...]:
        """Factors whose product, maximized over variables outside `scope`, is the table."""
        return self.factors() if self.functional else (TableFactor(self.scope, self.table()),)

    @property
    def size(self) -> int:
        """Number of cells of the dense table, without making it."""
        return prod(var.size for var in self.scope)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return prod(var.size for var in self.parents) * (self.child.size - 1)

    def prob_at(self, states: Sequence[int], /) -> float:
        """p at one cell: state indices of the parents in order, then of the child."""
        return float(self.table()[tuple(states)])

    @abstractmethod
    def faults(self) -> list[str]:
        """Everything that is wrong with the numbers, one sentence each; empty when nothing is."""

    @abstractmethod
    def to_fields(self) -> dict[str, Any]:
        """Everything that makes the conditional, as a dict that JSON can hold; `kind`, `child`, `parents` and more."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote; `variables` maps names to variables."""

    def equals(self, other: Conditional, /) -> bool:
        """The same child, parents in the same order, and exactly the same numbers.

        Two kinds are compared by their dense tables.
        """
        if self is other:
            return True
        if self.scope != other.scope:
            return False
        if type(self) is type(other):
            return self._equal_numbers(other)
        return bool(np.array_equal(self.table(), other.table()))

    def _equal_numbers(self, other: Any) -> bool:
        """Whether another conditional of the same kind and scope holds the same numbers."""
        return bool(self.to_fields() == other.to_fields())

    def _head(self) -> dict[str, Any]:
        """The fields that every kind has."""
        return {"kind": self.kind, "child": self.child.name, "parents": [var.name for var in self.parents]}

    @staticmethod
    def _family(fields: Mapping[str, Any], variables: Mapping[str, Var]) -> tuple[Var, tuple[Var, ...]]:
        """Child and parents of saved fields."""
        missing = [key for key in ("child", "parents") if key not in fields]
        if missing:
            raise ModelError(f"the fields of a conditional lack {', '.join(missing)}")
        for name in (fields["child"], *fields["parents"]):
            if name not in variables:
                raise VariableError.unknown(name, list(variables))
        return variables[fields["child"]], tuple(variables[name] for name in fields["parents"])


def row_name(child: Var, parents: Sequence[Var], states: Sequence[int]) -> str:
    """`p(child | A=yes, B=no)`: one row of a table, for messages."""
    at = ", ".join(f"{var.name}={var.states[i]}" for var, i in zip(parents, states, strict=True))
    return f"p({child.name} | {at})" if at else f"p({child.name})"
