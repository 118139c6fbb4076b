"""The Gibbs sampler of a small model as a matrix: what one sweep does to every state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.exact.one_case import one_case
from gramgraph.exceptions import BudgetError, ImpossibleEvidenceError, ModelError, OptionError, VariableError, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

#: States of the chain, at most: the matrix has their square.
MOST_STATES = 4096


@dataclass(frozen=True, eq=False)
class GibbsKernel:
    """One sweep of Gibbs sampling: `matrix[x, y]` is the probability of y after the sweep that began at x.

    States are all combinations of the `variables`, in the order of `states` (the last variable runs quickest).
    `stationary` is p(states | evidence), which the sweep leaves as it is: πT = π.

    >>> import gramgraph as gg
    >>> kernel = gibbs_kernel(gg.BayesianNetwork("a -> b", cpds={"a": 0.3, "b": [[0.9, 0.1], [0.2, 0.8]]}))
    >>> kernel.matrix.shape, bool(np.allclose(kernel.stationary @ kernel.matrix, kernel.stationary))
    ((4, 4), True)
    """

    vars: tuple[Var, ...]
    order: tuple[str, ...]
    matrix: FloatArray  # (states, states), rows sum to 1
    stationary: FloatArray  # (states,)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the chain moves."""
        return tuple(var.name for var in self.vars)

    @property
    def states(self) -> list[tuple[str, ...]]:
        """The labels of every state of the chain."""
        return list(product(*(var.states for var in self.vars)))

    def marginal(self, name: str, p: Any = None) -> dict[str, float]:
        """Probabilities of one variable under a distribution of states, by default the stationary one."""
        if name not in self.variables:
            raise VariableError.unknown(name, self.variables)
        axis = self.variables.index(name)
        table = np.asarray(self.stationary if p is None else p).reshape([var.size for var in self.vars])
        kept = table.sum(axis=tuple(i for i in range(len(self.vars)) if i != axis))
        return dict(zip(self.vars[axis].states, kept.tolist(), strict=True))

    def after(self, start: Mapping[str, Any], sweeps: int = 1) -> FloatArray:
        """The distribution of the states after some sweeps from one state."""
        at = [var.index(start[var.name]) for var in self.vars]
        p = np.zeros(len(self.stationary))
        p[int(np.ravel_multi_index(at, [var.size for var in self.vars]))] = 1.0
        for _ in range(sweeps):
            p = p @ self.matrix
        return p

    @property
    def second_eigenvalue(self) -> float:
        """The largest absolute eigenvalue but 1: how slowly the chain forgets where it began."""
        values = np.sort(np.abs(np.linalg.eigvals(self.matrix)))
        return float(values[-2]) if len(values) > 1 else 0.0


def gibbs_kernel(
    model: GraphicalModel, evidence: Mapping[str, Any] | None = None, *, order: Sequence[str] | None = None
) -> GibbsKernel:
    """The transition matrix of a Gibbs sweep over the unobserved variables in `order`.

    A sweep is a product T = T₁ T₂ … of updates, T_i(x, y) = p(y_i | the others of x) where y differs from x in variable
    i alone. A state whose neighbors along a variable all have probability 0 stays. Cost: O(variables · states²); at
    most 4,096 states.

    Parameters
    ----------
    model : the model.
    evidence : what is known, as `query` takes it: values by variable, or None.
    order : in which the variables are updated; None for that of the model.

    Examples
    --------
    >>> import gramgraph as gg
    >>> seen = {"earthquake": "yes", "mary": "yes"}
    >>> kernel = gibbs_kernel(gg.datasets.burglary(), seen, order=["burglary", "alarm", "john"])
    >>> round(kernel.marginal("burglary")["yes"], 7)
    0.0031607
    """
    if not model.is_discrete:
        raise ModelError("the matrix of a Gibbs sampler is one of discrete variables")
    question = one_case(model, evidence)
    seen = question.hard_evidence(0)
    free = [v for v in range(len(model.vars)) if v not in seen]
    names = [model.vars[v].name for v in free]
    moves = tuple(names if order is None else order)
    if sorted(moves) != sorted(names):
        raise OptionError(
            f"order names every unobserved variable once: {listing(names)}; got {listing(moves) or 'none'}"
        )
    free = [model.index(name) for name in moves] if order is not None else free
    sizes = [model.vars[v].size for v in free]
    total = float(np.prod([float(size) for size in sizes]))
    if total > MOST_STATES:
        raise BudgetError(
            f"the chain has {total:.3g} states, and the matrix their square",
            clique=tuple(names),
            bytes=8.0 * total**2,
            remedies=("observe more variables", 'draw with engine="gibbs"'),
        )
    joint = _joint(model, free, seen, question)
    made = tuple(model.vars[v] for v in free)
    matrix = np.eye(int(total))
    for axis in range(len(free)):
        matrix = _updated(matrix, joint, axis)
    return GibbsKernel(made, moves, matrix, joint.ravel())


def _joint(model: GraphicalModel, free: list[int], seen: Mapping[int, int], question: Any) -> FloatArray:
    """p(free variables | evidence), an axis each."""
    logs = np.zeros([model.vars[v].size for v in free])
    with np.errstate(divide="ignore"):
        for factor in model.factors(structured=False):
            scope = [model.index(var.name) for var in factor.scope]
            part = factor.values[tuple(seen.get(v, slice(None)) for v in scope)]
            kept = [v for v in scope if v not in seen]
            order = sorted(range(len(kept)), key=lambda i: free.index(kept[i]))
            part = np.transpose(part, order)
            shape = [model.vars[v].size if v in kept else 1 for v in free]
            logs = logs + np.log(part).reshape(shape)
        for v, w in question.soft_logs(0).items():
            logs = logs + w.reshape([-1 if u == v else 1 for u in free])
    top = logs.max()
    if top == -np.inf:
        raise ImpossibleEvidenceError("the evidence has probability zero", conflict=model.names_of(seen))
    p = np.exp(logs - top)
    return np.asarray(p / p.sum())


def _updated(matrix: FloatArray, joint: FloatArray, axis: int) -> FloatArray:
    """matrix · T of the update of one variable: mass on each line along its axis is spread as p(variable | others)."""
    n = matrix.shape[0]
    whole = joint.sum(axis=axis, keepdims=True)
    share = np.divide(joint, whole, out=np.zeros_like(joint), where=whole > 0.0)
    mass = matrix.reshape(n, *joint.shape)
    spread = mass.sum(axis=axis + 1, keepdims=True) * share[None]
    return np.asarray(np.where(whole[None] > 0.0, spread, mass).reshape(n, n))
