"""Gaussian groups as a Bayesian network: a label, and columns that depend on it."""

from __future__ import annotations

import numpy as np

from gramgraph.conditionals import ConditionalLinearGaussian, Table
from gramgraph.exceptions import ModelError
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, real


def gaussian_network(
    label: Var,
    weights: FloatArray,  # (k,)
    means: FloatArray,  # (k, d)
    C: FloatArray,  # (k, d, d)
    names: list[str] | None,
    *,
    dense: bool = True,
) -> BayesianNetwork:
    """The network "label -> x" with a vector x, or with `names` one variable for each column.

    Columns form a chain of regressions, p(x_j | label, x_0, …, x_{j−1}), whose product is the density of the group;
    with `dense=False` they are independent given the label.
    """
    first = Table(label, (), weights / weights.sum())
    if names is None:
        x = real("x", means.shape[1])
        return BayesianNetwork.from_parts((label, x), [first, ConditionalLinearGaussian(x, (label,), 0.0, means, C)])
    columns = [real(name) for name in names]
    made = [_column(columns, j, label, means, C, dense) for j in range(len(columns))]
    return BayesianNetwork.from_parts((label, *columns), [first, *made])


def _column(
    columns: list[Var], j: int, label: Var, means: FloatArray, C: FloatArray, dense: bool
) -> ConditionalLinearGaussian:
    before = slice(0, j if dense else 0)
    B = np.linalg.solve(C[:, before, before], C[:, before, j][:, :, None])[:, :, 0]
    left = C[:, j, j] - np.einsum("ki,ki->k", B, C[:, before, j])
    if not (left > 0.0).all():
        raise ModelError(f"{columns[j].name} is a linear function of the columns before it: leave one of them out")
    intercept = means[:, j] - np.einsum("ki,ki->k", B, means[:, before])
    return ConditionalLinearGaussian(
        columns[j], (label, *columns[before]), B[:, None, :], intercept[:, None], left[:, None, None]
    )
