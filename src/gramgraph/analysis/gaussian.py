"""A linear-Gaussian model as a whole: its joint distribution, and correlations of pairs given all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.answers.rows import frame_of
from gramgraph.distributions.gaussian import Gaussian
from gramgraph.engines.gaussian.lower import joint_moments, sparse_precision
from gramgraph.exceptions import ModelError

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


def to_gaussian(model: GraphicalModel) -> Gaussian:
    """The joint distribution as a `Gaussian`; O(n²) memory."""
    _need_gaussian(model, "to_gaussian()")
    mean, cov, _ = joint_moments(model)
    return Gaussian(mean, cov)


def partial_correlations(model: GraphicalModel) -> Any:
    """−P_ij / √(P_ii P_jj) as a data frame."""
    import pandas as pd

    _need_gaussian(model, "partial_correlations()")
    P = sparse_precision(model).P.toarray()
    root = np.sqrt(np.diagonal(P))
    R = -P / np.outer(root, root)
    np.fill_diagonal(R, 1.0)
    names = list(frame_of(model, None, np.zeros((0, len(P)))).columns)
    return pd.DataFrame(R + 0.0, index=names, columns=names)


def _need_gaussian(model: GraphicalModel, what: str) -> None:
    if model.kind != "gaussian":
        raise ModelError(f"{what} needs a model whose variables are all real-valued and linear-Gaussian")
