"""Networks from counts: rows divided by their sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.conditionals import Table
from gramgraph.exceptions import ModelError
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray
from gramgraph.variables import Var


def tables_from(net: BayesianNetwork, variables: tuple[Var, ...], numbers: list[Any]) -> BayesianNetwork:
    """The network whose rows are the given numbers divided by their sums; a row of zeros becomes uniform."""
    conditionals = []
    for v, values in enumerate(numbers):
        sums = values.sum(axis=-1, keepdims=True)
        if not np.isfinite(sums).all():
            raise ModelError(f"the counts of {variables[v].name} are not finite")
        rows = np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), 1.0 / variables[v].size)
        rows.flags.writeable = False
        conditionals.append(Table(variables[v], tuple(variables[p] for p in net.parent_positions[v]), rows))
    return BayesianNetwork.from_parts(variables, conditionals, name=net.name, metadata=dict(net.metadata), check=False)


def draw_rows(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows drawn from Dirichlet distributions, in logarithms: small parameters give numbers that would be zero.

    A Gamma(a) variable is a Gamma(a + 1) variable times U^(1/a).
    """
    with np.errstate(divide="ignore"):
        log_g = np.log(rng.standard_gamma(alpha + 1.0)) + np.log(rng.random(alpha.shape)) / alpha
    log_g[alpha == 0] = -np.inf
    g = np.exp(log_g - log_g.max(axis=-1, keepdims=True))
    return g / g.sum(axis=-1, keepdims=True)
