"""Fields and couplings of a network of two-state variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models.undirected import FactorModel


def ising_parameters(net: FactorModel) -> tuple[FloatArray, FloatArray]:
    """(J, h) with p(x) ∝ exp(½ xᵀJx + hᵀx), x = -1 for the first state of a variable and +1 for the second.

    J is symmetric with a zero diagonal: what `boltzmann_machine(J, h, spins=True)` takes. Factors over one or two
    variables with two states each and positive tables are needed.

    Parameters
    ----------
    net : the network.

    Examples
    --------
    >>> from gramgraph.models import ising_grid
    >>> J, h = ising_parameters(ising_grid(1, 3, coupling=0.3, field=-0.1))
    >>> J.round(12).tolist(), h.round(12).tolist()
    ([[0.0, 0.3, 0.0], [0.3, 0.0, 0.3], [0.0, 0.3, 0.0]], [-0.1, -0.1, -0.1])
    """
    n = len(net)
    J, h = np.zeros((n, n)), np.zeros(n)
    wrong = [var.name for var in net.vars if not var.is_discrete or var.size != 2]
    if wrong:
        raise ModelError(f"an Ising model has two states per variable; {wrong[0]} is {net.var(wrong[0])!r}")
    for factor in net.stored_factors:
        at = [net.positions[var.name] for var in factor.scope]
        if len(at) > 2 or not factor.values.all():
            why = "joins more than two variables" if len(at) > 2 else "has zeros"
            names = ", ".join(var.name for var in factor.scope)
            raise ModelError(f"the factor over ({names}) {why}: it has no fields and couplings")
        t = factor.log_values()
        if len(at) == 1:
            h[at[0]] += (t[1] - t[0]) / 2
        elif len(at) == 2:
            h[at[0]] += (t[1, 0] + t[1, 1] - t[0, 0] - t[0, 1]) / 4
            h[at[1]] += (t[0, 1] + t[1, 1] - t[0, 0] - t[1, 0]) / 4
            J[at[0], at[1]] += (t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]) / 4
            J[at[1], at[0]] = J[at[0], at[1]]
    return J, h
