"""Networks from counts: rows divided by their sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.conditionals import Table
from gramgraph.exceptions import ModelError
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Var

__all__ = ["tables_from"]


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
