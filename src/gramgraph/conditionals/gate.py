"""Logic of many inputs: parity, or, and, counting, without the table of all their states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.base import Conditional
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.factors import TableFactor
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, discrete

#: Rule → what two partial results make; each parent brings 1 in its last state, else 0.
RULES: dict[str, Callable[[int, int], int]] = {
    "xor": lambda a, b: a ^ b,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "count": lambda a, b: a + b,
}


@dataclass(frozen=True, eq=False, repr=False)
class Gate(Conditional):
    """The child is a function of how many parents are in their last state: "xor", "or", "and", or "count".

    "xor" (parity), "or" and "and" take a child with two states, off and on; the state of a "count" is the number of
    parents that are on, its last state that number or more: three states for "none, one, several". An observed child
    makes a constraint of it: a parity check, or exactly k of n. `factors` pairs the parents with hidden partial
    results, a tree of n − 1 small tables: all messages of a gate cost O(n), those of a count up to k O(n k²), not 2ⁿ.

    A parity check of 30 bits, each received with an error rate of 0.1; the first was lost:

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    rule : "xor", "or", "and" or "count".

    Examples
    --------
    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary
    >>> bits = [binary(f"b{i}") for i in range(30)]
    >>> received = [[0.5, 0.5], [0.1, 0.9], *[[0.999, 0.001]] * 28]  # p(no), p(yes) of each bit
    >>> tables = [gg.Table(bit, (), row) for bit, row in zip(bits, received)]
    >>> check = Gate(binary("odd"), bits, "xor")
    >>> code = gg.BayesianNetwork.from_parts([*bits, check.child], [*tables, check])
    >>> round(code.query("b0", {"odd": "no"}, engine="bp")["b0"].prob("yes"), 4)  # 2^30 states, 29 tables of 8
    0.8783
    """

    kind: ClassVar[str] = "gate"
    functional: ClassVar[bool] = True
    child: Var
    parents: tuple[Var, ...]
    rule: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(self.parents))
        name = self.child.name
        if self.rule not in RULES:
            known = ", ".join(RULES)
            raise ModelError(
                f"the gate of {name} is one of {known}, not {self.rule!r}.{did_you_mean(self.rule, RULES)}"
            )
        if self.rule != "count" and self.child.size != 2:
            raise ModelError(f"the {self.rule} gate {name} has two states, off and on, not {self.child.size}")

    def _merged(self, a: int, b: int) -> int:
        """What two partial results make; counts stop at the child's last state."""
        return min(RULES[self.rule](a, b), self.child.size - 1)

    def _outcome(self, states: Sequence[int]) -> int:
        on = sum(state == var.size - 1 for state, var in zip(states, self.parents, strict=True))
        found = {"xor": on % 2, "or": on > 0, "and": on == len(self.parents), "count": on}[self.rule]
        return min(int(found), self.child.size - 1)

    def prob_at(self, states: Sequence[int], /) -> float:
        """p at one cell in O(parents), without the table."""
        return float(self._outcome(states[:-1]) == states[-1])

    def table(self) -> FloatArray:
        """Ones at the outcomes, zeros elsewhere; `BudgetError` where it would be too large to be made."""
        self._check_size()
        on = np.zeros([1] * len(self.parents), np.int64)
        for i, var in enumerate(self.parents):
            shape = [1] * len(self.parents)
            shape[i] = var.size
            on = on + (np.arange(var.size) == var.size - 1).astype(np.int64).reshape(shape)
        n = len(self.parents)
        found = {"xor": on % 2, "or": on > 0, "and": on == n, "count": on}[self.rule].astype(np.int64)
        return np.eye(self.child.size)[np.minimum(found, self.child.size - 1)]

    @property
    def n_parameters(self) -> int:
        """None: nothing is left free."""
        return 0

    @property
    def is_structured(self) -> bool:
        """Whether the small factors hold fewer numbers than the table."""
        return len(self.parents) > 1 and sum(a.size * b.size * made.size for a, b, made in self._pairs()) < self.size

    def _pairs(self) -> list[tuple[Var, Var, Var]]:
        """Who is paired with whom, and the partial result: parents first, then partial results, the child last."""
        row, tops = list(self.parents), [1] * len(self.parents)
        out: list[tuple[Var, Var, Var]] = []
        while len(row) > 1:
            paired, reach = [], []
            for k in range(0, len(row) - 1, 2):
                top = self._merged(tops[k], tops[k + 1]) if self.rule == "count" else 1
                made = self.child if len(row) == 2 else discrete(f"{self.child.name}·{len(out) + 1}", top + 1)
                out.append((row[k], row[k + 1], made))
                paired.append(made)
                reach.append(top)
            odd = len(row) - len(row) % 2
            row, tops = [*paired, *row[odd:]], [*reach, *tops[odd:]]
        return out

    def factors(self) -> tuple[TableFactor, ...]:
        """Partial results of two, four, … parents, the last one being the child."""
        if not self.is_structured:
            return super().factors()
        own, out = set(self.parents), []
        for a, b, made in self._pairs():
            # what a state brings: a parent in its last state one, a partial result its number
            x, y = (np.arange(v.size) == v.size - 1 if v in own else np.arange(v.size) for v in (a, b))
            merged = np.array([[self._merged(int(i), int(j)) for j in y] for i in x])
            out.append(TableFactor((a, b, made), np.eye(made.size)[merged]))
        return tuple(out)

    def faults(self) -> list[str]:
        """None: a gate has no numbers."""
        return []

    def to_fields(self) -> dict[str, Any]:
        """`rule`."""
        return {**self._head(), "rule": self.rule}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, str(fields["rule"]))
