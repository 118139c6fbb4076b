"""Real variables without noise: numbers that depend on others for sure, which draws and nodes do not meet by chance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian
from gramgraph.exceptions import ModelError
from gramgraph.graphs import Digraph, topological_order
from gramgraph.typing import Array
from gramgraph.variables import Var

if TYPE_CHECKING:
    from collections.abc import Mapping


class Silent(NamedTuple):
    """A variable without noise in some configuration of the states that are not observed."""

    child: Var
    hidden: tuple[Var, ...]  # real parents that are not observed
    always: bool  # in every configuration


def silent_parts(model: Any, known: Mapping[Var, Array]) -> list[Silent]:
    """Variables of a network without noise, where `known` are observed, parents before children.

    >>> import gramgraph as gg
    >>> from gramgraph.variables import real
    >>> x, y = real("x"), real("y")
    >>> net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), gg.LinearGaussian(y, (x,), [2.0], sd=0.0)])
    >>> [(part.child.name, part.hidden) for part in silent_parts(net, {x: np.zeros((1, 1))})]
    [('y', ())]
    """
    out = []
    for v in topological_order(Digraph(model.parent_positions)):
        c = model.conditionals[v]
        if not isinstance(c, (LinearGaussian, ConditionalLinearGaussian)):
            continue
        at = tuple(int(known[var][0]) if var in known else slice(None) for var in c.discrete_parents)
        variances = np.diagonal(c.covariance[at], axis1=-2, axis2=-1)
        if not variances.all():
            hidden = tuple(var for var in c.real_parents if var not in known)
            out.append(Silent(c.child, hidden, not variances.any()))
    return out


def refuse_functions(parts: Iterable[Silent], known: Iterable[Var]) -> None:
    """A `ModelError` where an observed variable is a function of real numbers that vary: no draw of them meets it."""
    settled = set(known)
    observed = frozenset(settled)
    for part in parts:
        varying = [var.name for var in part.hidden if var not in settled]
        if part.child in observed and varying:
            raise ModelError(
                f"{part.child.name} is observed, and a function of {', '.join(varying)} without noise: draws of "
                f"{', '.join(varying)} meet what was observed with probability zero. Ask with an exact engine, or give "
                f"{part.child.name} a small variance"
            )
        if part.always and not varying:
            settled.add(part.child)
