"""Linear Gaussian networks from files larger than memory: one pass for the moments, then regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._progress import Progress
from gramgraph.conditionals import LinearGaussian
from gramgraph.data.moments import moments_of
from gramgraph.data.stream import is_stream, stream_names
from gramgraph.exceptions import VariableError
from gramgraph.learn.linear import LinearGaussianPrior, Reference, regress
from gramgraph.linalg.floors import at_least
from gramgraph.models import BayesianNetwork


def fit_gaussian_stream(
    net: BayesianNetwork, data: Any, *, prior: Any, weights: Any, client: Any, progress: Progress
) -> BayesianNetwork | None:
    """The fitted network, or None where moments do not suffice (labels, vectors, gaps, weights, other conditionals)."""
    plain = all(
        not var.is_discrete and var.dimension == 1 and (c is None or type(c) is LinearGaussian)
        for var, c in zip(net.vars, net.conditionals, strict=True)
    )
    known = prior is None or isinstance(prior, LinearGaussianPrior)
    one_pass = isinstance(data, str) or hasattr(data, "__fspath__") or hasattr(data, "to_delayed")
    if not (is_stream(data) and plain and known and one_pass and weights is None):
        return None
    names = stream_names(data)
    if any(name not in names for name in net.variables):
        return None
    found = moments_of(data, columns=net.variables, client=client, progress=progress)
    if found.left_out:
        return None
    if not found.n:
        raise VariableError("there are no rows to learn from")
    made = []
    for v, var in enumerate(net.vars):
        at = [*net.parent_positions[v], v]
        mean, scatter = found.mean[at], found.scatter[np.ix_(at, at)]
        W, b, S = regress(float(found.n), mean, scatter, 1, prior)
        if prior is None:
            S = at_least(S, Reference.of(mean, scatter / found.n, 1, found.n).floor)
        made.append(LinearGaussian(var, tuple(net.vars[p] for p in net.parent_positions[v]), W, b, S))
    return BayesianNetwork.from_parts(
        net.vars, made, parents=net.parent_positions, name=net.name, metadata=dict(net.metadata), check=False
    )
