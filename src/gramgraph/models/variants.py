"""New networks from old ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gramgraph.conditionals import Conditional, LinearGaussian, Table
from gramgraph.exceptions import ModelError
from gramgraph.models.contexts import row_values
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.bayesian_network import BayesianNetwork

Net = TypeVar("Net", bound="BayesianNetwork")


def intervene(net: Net, interventions: Mapping[str, Any]) -> Net:
    """Graph surgery: each set variable loses its parents and gets its new distribution; all else stays."""
    if not isinstance(interventions, Mapping):
        raise ModelError(f"do takes {{name: state}}, or a name and a state; got {interventions!r}")
    conditionals, parents = list(net.conditionals), list(net.parent_positions)
    for name, value in interventions.items():
        i = net.index(name)
        var = net.vars[i]
        if value is None:
            shown = f'"{var.states[-1]}"' if var.is_discrete else "1.0"
            raise ModelError(f'do needs a value: do({{"{name}": {shown}}})')
        made: Conditional = Table(var, (), _distribution(var, value)) if var.is_discrete else _fixed(var, value)
        wrong = made.faults()
        if wrong:
            raise ModelError([f"do({name}): {fault}" for fault in wrong])
        conditionals[i], parents[i] = made, ()
    metadata = dict(net.metadata)
    cut = type(net).from_parts(net.vars, conditionals, parents=parents, name=net.name, metadata=metadata, check=False)
    cut.interventions = {**net.interventions, **interventions}
    return cut


def _distribution(var: Var, value: Any) -> FloatArray:
    """A point mass at a state, or the distribution that was given."""
    if isinstance(value, Mapping | list | tuple | np.ndarray):
        return row_values(value, var, f"do({var.name})")
    return np.eye(var.size)[var.index(value)]


def _fixed(var: Var, value: Any) -> LinearGaussian:
    """A real variable at a value; a pair (mean, sd) sets it at random."""
    if var.dimension == 1 and isinstance(value, tuple) and len(value) == 2:
        return LinearGaussian(var, (), (), value[0], sd=value[1])
    return LinearGaussian(var, (), (), var.domain.read(value, var.name), 0.0)  # type: ignore[attr-defined]


def with_random_tables(net: Net, random_state: RandomState, concentration: float) -> Net:
    """Every row drawn from Dirichlet(concentration, …, concentration); one is uniform over all distributions."""
    if not concentration > 0.0:
        raise ModelError(f"concentration must be a positive number, not {concentration!r}")
    if not net.is_discrete:
        names = [var.name for var in net.vars if not var.is_discrete]
        raise ModelError(f"random tables are those of discrete variables; {', '.join(names[:5])} is real-valued")
    rng = np.random.default_rng(random_state)
    conditionals = []
    for var, row in zip(net.vars, net.parent_positions, strict=True):
        parents = tuple(net.vars[p] for p in row)
        shape = tuple(p.size for p in parents)
        values = rng.dirichlet(np.full(var.size, float(concentration)), size=shape)
        conditionals.append(Table(var, parents, values))
    metadata = dict(net.metadata)
    return type(net).from_parts(
        net.vars, conditionals, parents=net.parent_positions, name=net.name, metadata=metadata, check=False
    )
