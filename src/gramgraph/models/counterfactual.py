"""What would have happened: two worlds that share what the action does not touch, and the chance behind the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph import graphs
from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, LinearGaussian, Table
from gramgraph.exceptions import ModelError
from gramgraph.models.variants import intervene
from gramgraph.variables import Var, discrete, real

if TYPE_CHECKING:
    from gramgraph.answers import Answer
    from gramgraph.models.bayesian_network import BayesianNetwork

#: Behind the names of the world that was observed, where the other world differs.
OBSERVED = " (observed)"
_MOST_CELLS = 20_000_000


def counterfactual(
    net: Any, observed: Mapping[str, Any], do: Mapping[str, Any], targets: Any = None, **options: Any
) -> Answer:
    """Beliefs about the world in which `do` was done, given what was observed in the world in which it was not."""
    if not isinstance(observed, Mapping) or not isinstance(do, Mapping):
        raise ModelError('a counterfactual takes two dicts, as in net.counterfactual({"y": "no"}, do={"x": "yes"})')
    changed = set(net.descendants(list(do))) | set(do)
    twin = twin_network(net, do)
    evidence = {(name + OBSERVED if name in changed else name): value for name, value in observed.items()}
    for name in observed:
        net.index(name)
    if targets is None:
        targets = [n for n in net.variables if n not in do and (n in changed or n not in observed)]
    return twin.query(targets, evidence, **options)


def twin_network(net: BayesianNetwork, do: Mapping[str, Any]) -> BayesianNetwork:
    """Both worlds in one network: the one that was observed, its names marked, and the one in which `do` was done.

    What the action does not touch stands once. Below it, each variable is a function of its parents and of a chance of
    its own, which both worlds share: of states, the inverse of the distribution function (states in their order); of
    numbers, mean and noise.
    """
    if not net.has_tables:
        net.check_model()
    below = set(graphs.descendants(net.graph, net.positions_of(list(do))))
    acted = intervene(net, do)
    twin = _Twin()
    for v in graphs.topological_order(net.graph):
        var, c, parents = net.vars[v], net.conditionals[v], net.parents(net.vars[v].name)
        assert c is not None
        if var.name in do:
            made = acted.conditionals[v]
            assert made is not None
            twin.add(_renamed(c, {n: twin.seen(n) for n in (*parents, var.name)} | {var.name: twin.split(var)}))
            twin.add(made)
        elif v in below:
            _share(twin, c, var, parents)
        else:
            twin.add(c)
    return type(net).from_parts([c.child for c in twin.parts], twin.parts, name=net.name)


@dataclass
class _Twin:
    """The two worlds on their way: conditionals in order, and the marked copies."""

    parts: list[Conditional] = field(default_factory=list)
    copies: dict[str, Var] = field(default_factory=dict)

    def add(self, c: Conditional) -> None:
        self.parts.append(c)

    def split(self, var: Var) -> Var:
        """The variable of the observed world."""
        return self.copies.setdefault(var.name, replace(var, name=var.name + OBSERVED))

    def seen(self, name: str) -> Any:
        return self.copies.get(name)


def _renamed(c: Conditional, copies: Mapping[str, Var | None]) -> Conditional:
    """The conditional with some of its variables replaced by their copies."""
    swap = {name: var for name, var in copies.items() if var is not None}
    return replace(c, child=swap.get(c.child.name, c.child), parents=tuple(swap.get(p.name, p) for p in c.parents))  # type: ignore[type-var]


def _share(twin: _Twin, c: Conditional, var: Var, parents: tuple[str, ...]) -> None:
    """The variable in both worlds, as the same function of its parents and of one chance."""
    noise, function = _as_function(c, var)
    copies = {name: twin.seen(name) for name in parents}
    twin.add(noise)
    twin.add(_renamed(function, copies | {var.name: twin.split(var)}))
    twin.add(function)


def _as_function(c: Conditional, var: Var) -> tuple[Conditional, Conditional]:
    """(distribution of the chance, the variable as a function of its parents and of it)."""
    name = f"chance of {var.name}"
    if isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
        k = var.dimension
        chance = real(name, k)
        root = symmetric_root(np.asarray(c.covariance))
        slopes = np.concatenate([np.asarray(c.coefficients), root], axis=-1)
        function = type(c)(var, (*c.parents, chance), slopes, c.intercept, np.zeros_like(c.covariance))
        return LinearGaussian(chance, (), (), np.zeros(k), np.eye(k)), function
    if all(x.is_discrete for x in c.scope):
        table = c.table()
        steps = np.unique(np.concatenate([[0.0, 1.0], np.cumsum(table, axis=-1)[..., :-1].ravel().clip(0.0, 1.0)]))
        if table.size * (len(steps) - 1) > _MOST_CELLS:
            raise ModelError(f"the table of {var.name} has too many different rows for a counterfactual")
        chance = discrete(name, len(steps) - 1)
        middles = (steps[1:] + steps[:-1]) / 2
        reached = np.cumsum(table, axis=-1)[..., np.newaxis, :-1] <= middles[:, np.newaxis]
        states = reached.sum(axis=-1)  # the state in which the middle of each step falls
        return Table(chance, (), np.diff(steps)), Table(var, (*c.parents, chance), np.eye(var.size)[states])
    kinds = "tables and linear Gaussians"
    raise ModelError(f"a counterfactual needs {kinds}; {var.name} is {type(c).__name__}, whose chance is not known")
