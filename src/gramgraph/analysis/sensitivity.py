"""How an answer depends on the numbers of the network.

Both p(e) and p(target, e) are linear in one parameter θ = p(x = i | parents = j) while the rest of its row gives way in
proportion, so the answer is a quotient of two lines in θ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.analysis.on_cells import cell_of, on_tables
from gramgraph.analysis.real_sensitivity import real_sensitivity
from gramgraph.answers import Answer
from gramgraph.conditionals import Conditional, Table
from gramgraph.engines.exact.impossible import raise_impossible
from gramgraph.engines.exact.one_case import Case, ask, free_positions, one_case, with_cases
from gramgraph.exceptions import VariableError
from gramgraph.models.base import GraphicalModel
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SensitivityFunction:
    """f(θ) = (a θ + b) / (c θ + d): p(target = state | evidence) as a function of one parameter.

    Numerator and denominator are scaled so that the denominator is one at the present `value` of θ.
    """

    a: float
    b: float
    c: float
    d: float
    value: float
    parameter: str

    def __call__(self, theta: float | Array) -> Any:
        """The answer when the parameter is `theta`."""
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            out = (self.a * theta + self.b) / (self.c * theta + self.d)
        return float(out) if out.ndim == 0 else out

    def derivative(self, theta: float | None = None) -> float:
        """f'(θ) = (a d - b c) / (c θ + d)², by default at the present value."""
        at = self.value if theta is None else theta
        return (self.a * self.d - self.b * self.c) / (self.c * at + self.d) ** 2

    def solve(self, probability: float) -> float | None:
        """The θ in [0, 1] at which the answer is `probability`; None when there is none."""
        slope = self.a - probability * self.c
        if slope == 0.0:
            return None
        theta = (probability * self.d - self.b) / slope
        return theta if 0.0 <= theta <= 1.0 else None

    def __str__(self) -> str:
        return f"f(θ) = ({self.a:.6g} θ + {self.b:.6g}) / ({self.c:.6g} θ + {self.d:.6g}), θ = {self.parameter}"


def sensitivity(
    model: GraphicalModel,
    target: str,
    state: Any,
    evidence: Case = None,
    *,
    parameters: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Derivative of p(target = state | evidence) by every parameter p(x = i | parents = j), the strongest first.

    When θ moves, the rest of its row keeps its proportions (a row that is all on i: the rest shares equally). From the
    joints of the families given e and given e with the target: with P the joint given e and θ its parameter,
    ∂ log p(e) / ∂θ = P(i, j) / θ - P(not i, j) / (1 - θ). Cost: one query of two cases, and a further one for each
    variable that has zeros in its table. `parameters` names the variables whose tables are looked at (default: all).
    Columns: variable, state, given, value, derivative.
    """
    import pandas as pd

    if isinstance(model, CellModel):
        if state is None:
            raise VariableError(f"give a value: the sensitivity is that of p({target} in the cell of the value)")
        state = cell_of(model, target, state)
        model, evidence = on_tables(model, evidence, target)
    if not model.is_discrete:
        return real_sensitivity(model, target, state, evidence, parameters)
    ctx = _Context.make(model, target, state, evidence)
    names = model.variables if parameters is None else [model.var(name).name for name in parameters]
    parts = [_frame_columns(ctx.model.conditional(name), ctx.derivatives(name)) for name in names]
    frame = pd.DataFrame(
        {
            "variable": np.repeat(np.array(names, dtype=object), [len(part[2]) for part in parts]),
            "state": [label for part in parts for label in part[0]],
            "given": [label for part in parts for label in part[1]],
            "value": np.concatenate([part[2] for part in parts]) if parts else np.zeros(0),
            "derivative": np.concatenate([part[3] for part in parts]) if parts else np.zeros(0),
        }
    )
    strongest = np.argsort(-np.abs(frame["derivative"].to_numpy()), kind="stable")
    return frame.iloc[strongest].reset_index(drop=True)


def sensitivity_function(
    model: GraphicalModel,
    target: str,
    state: Any,
    evidence: Case = None,
    *,
    variable: str,
    value: Any,
    given: Mapping[str, Any] | None = None,
) -> SensitivityFunction:
    """p(target = state | evidence) as a function of θ = p(variable = value | given).

    `given` holds one state for each parent of the variable.

    >>> from gramgraph.variables import binary
    >>> rain, wet = binary("rain"), binary("wet")
    >>> cpds = [Table(rain, (), np.array([0.8, 0.2])), Table(wet, (rain,), np.array([[0.9, 0.1], [0.2, 0.8]]))]
    >>> net = BayesianNetwork.from_parts([rain, wet], cpds)
    >>> f = sensitivity_function(net, "rain", "yes", {"wet": "yes"}, variable="rain", value="yes")
    >>> round(f(0.2), 4), round(f(0.5), 4)
    (0.6667, 0.8889)
    """
    if isinstance(model, CellModel):
        state, value = cell_of(model, target, state), cell_of(model, variable, value)
        given = {name: cell_of(model, name, own) for name, own in (given or {}).items()}
        model, evidence = on_tables(model, evidence, target)
    ctx = _Context.make(model, target, state, evidence)
    conditional = ctx.model.conditional(variable)
    at = (*_row(conditional, given or {}), conditional.child.index(value))
    table = conditional.table()
    numerator, denominator = (_covary(table, weights)[at] for weights in ctx.weights(variable))
    theta = float(table[at])
    others = ", ".join(f"{var.name}={var.states[i]}" for var, i in zip(conditional.parents, at, strict=False))
    label = f"p({variable}={conditional.child.states[at[-1]]}{' | ' if others else ''}{others})"
    return SensitivityFunction(
        a=float(numerator),
        b=ctx.probability - float(numerator) * theta,
        c=float(denominator),
        d=1.0 - float(denominator) * theta,
        value=theta,
        parameter=label,
    )


@dataclass(frozen=True)
class _Context:
    """The two cases (e, and e with the target) of a question about a network."""

    model: BayesianNetwork
    question: Question  # case 0: e; case 1: e and target = state
    answer: Answer  # joints of all families that matter
    relevant: frozenset[int]
    log_evidence: float
    probability: float  # p(target = state | e)

    @classmethod
    def make(cls, model: GraphicalModel, target: str, state: Any, evidence: Case) -> _Context:
        """Ask for the families of all variables whose tables can matter."""
        if not isinstance(model, BayesianNetwork):
            raise VariableError("sensitivity is about the tables of a Bayesian network; this model has none")
        question = one_case(model, evidence)
        (wanted,) = free_positions(model, target, question)
        cases = with_cases(question, [(wanted, model.vars[wanted].index(state))])
        relevant = _relevant(model, wanted, question)
        families = tuple((*model.parent_positions[i], i) for i in relevant)
        answer = ask(model, replace(cases, joints=families))
        logs = np.asarray(answer.log_evidence)
        if logs[0] == -np.inf:
            raise_impossible(model, question)
        return cls(model, cases, answer, frozenset(relevant), float(logs[0]), float(np.exp(logs[1] - logs[0])))

    def weights(self, name: str) -> tuple[FloatArray, FloatArray]:
        """∂p(target, e)/∂θ and ∂p(e)/∂θ of every entry of a table, both divided by p(e); entries taken as free."""
        conditional = self.model.conditional(name)
        table = conditional.table()
        i = self.model.index(name)
        if i not in self.relevant:
            # The answer does not depend on this table; what p(e) may lose, p(target, e) loses in proportion.
            return np.zeros_like(table), np.zeros_like(table)
        if table.all():
            joints = _families(self.model, self.answer, i)
            logs = np.asarray(self.answer.log_evidence)
            found = [
                joint * np.exp(log_p - self.log_evidence) / table for joint, log_p in zip(joints, logs, strict=True)
            ]
        else:
            found = self._weights_without(i, conditional)
        return found[1], found[0]

    def derivatives(self, name: str) -> FloatArray:
        """d p(target | e) / dθ under proportional covariation, for every entry of the table."""
        table = self.model.conditional(name).table()
        numerator, denominator = (_covary(table, weights) for weights in self.weights(name))
        return np.asarray(numerator - self.probability * denominator)

    def _weights_without(self, i: int, conditional: Conditional) -> list[FloatArray]:
        """As `weights`, for a table with zeros: the weight of an entry does not depend on the table itself, so it can
        be read off a network in which all entries are equal."""
        flat = Table(
            conditional.child, conditional.parents, np.full(conditional.table().shape, 1.0 / conditional.child.size)
        )
        own = [flat if k == i else c for k, c in enumerate(self.model.conditionals)]
        other = BayesianNetwork.from_parts(self.model.vars, own, parents=self.model.parent_positions, check=False)
        answer = ask(other, replace(self.question, joints=((*self.model.parent_positions[i], i),)))
        scales = np.exp(np.asarray(answer.log_evidence) - self.log_evidence) * conditional.child.size
        return [joint * scale for joint, scale in zip(_families(other, answer, i), scales, strict=True)]


def _families(model: BayesianNetwork, answer: Answer, i: int) -> FloatArray:
    """Joint of a family in both cases, zero where the case is impossible."""
    names = tuple(model.vars[k].name for k in (*model.parent_positions[i], i))
    return np.nan_to_num(answer[names].probabilities, nan=0.0)


def _relevant(model: BayesianNetwork, target: int, question: Question) -> list[int]:
    """Variables whose tables p(target | e) can depend on (Bayes ball); a likelihood is an observed child."""
    from gramgraph.graphs.directed import Digraph
    from gramgraph.graphs.separation import requisite

    n = len(model)
    weighted = [(var,) for var, _ in question.likelihoods]
    graph = Digraph((*model.parent_positions, *weighted))
    seen = (*question.hard_evidence(0), *range(n, n + len(weighted)))
    return [i for i in requisite(graph, target, seen).tables if i < n]


def _covary(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Slope along θ when the rest of its row gives way in proportion: w_i - Σ_{k≠i} w_k θ_k / (1 - θ_i)."""
    states = table.shape[-1]
    if states == 1:
        return np.zeros_like(table)
    rest = 1.0 - table
    full = rest <= 1e-15  # a row that is all on one state has no proportions: the others share equally
    inner = (weights * table).sum(axis=-1, keepdims=True) - weights * table
    equal = (weights.sum(axis=-1, keepdims=True) - weights) / (states - 1)
    return np.asarray(weights - np.where(full, equal, inner / np.where(full, 1.0, rest)))


def _row(conditional: Conditional, given: Mapping[str, Any]) -> tuple[int, ...]:
    """States of the parents, in their order."""
    names = [var.name for var in conditional.parents]
    for name in given:
        if name not in names:
            raise VariableError(
                f"{name} is not a parent of {conditional.child.name}. Parents: {', '.join(names) or 'none'}"
            )
    missing = [name for name in names if name not in given]
    if missing:
        raise VariableError(
            f"a state for each parent of {conditional.child.name} is needed; none for {', '.join(missing)}"
        )
    return tuple(var.index(given[var.name]) for var in conditional.parents)


def _frame_columns(
    conditional: Conditional, derivative: FloatArray
) -> tuple[list[str], list[str], FloatArray, FloatArray]:
    """state, given, value, derivative of every entry of a table, row after row."""
    rows = product(*([f"{var.name}={label}" for label in var.states] for var in conditional.parents))
    states = conditional.child.states
    given = [text for row in rows for text in [", ".join(row)] * len(states)]
    table = conditional.table()
    return list(states) * (len(given) // max(len(states), 1)), given, table.reshape(-1), derivative.reshape(-1)
