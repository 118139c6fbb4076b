"""Hidden Markov models as networks: what hangs below a state, and the network of a chain with it.

Networks are imported where one is made: a chain that is fitted and asked needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.models import BayesianNetwork
    from gramgraph.variables import Var


def table_node(z: Var, name: str, values: FloatArray, labels: Sequence[Any] | None = None) -> tuple[Var, Conditional]:
    """A symbol below the state z: values (K, M)."""
    from gramgraph.conditionals import Table
    from gramgraph.variables import Discrete, Var

    shown = [str(label) for label in (range(values.shape[1]) if labels is None else labels)]
    x = Var(name, Discrete(tuple(shown)))
    return x, Table(x, (z,), values)


def gaussian_node(z: Var, name: str, means: FloatArray, covariances: FloatArray) -> tuple[Var, Conditional]:
    """A vector below the state z: means (K, d), covariances (K, d, d)."""
    from gramgraph.conditionals import ConditionalLinearGaussian
    from gramgraph.variables import real

    x = real(name, means.shape[1])
    return x, ConditionalLinearGaussian(x, (z,), intercept=means, covariance=covariances)


def state_chain(length: int, prefix: str, start: FloatArray, transitions: FloatArray) -> list[tuple[Var, Conditional]]:
    """z1 -> z2 -> …; transitions (length − 1, K, K), or (K, K) for all steps."""
    from gramgraph.conditionals import Table
    from gramgraph.variables import Discrete, Var

    domain = Discrete(tuple(str(k) for k in range(len(start))))
    zs = [Var(f"{prefix}{t}", domain) for t in range(1, length + 1)]
    steps = np.broadcast_to(transitions, (length - 1, len(start), len(start)))
    later = [(z, Table(z, (before,), A)) for before, z, A in zip(zs, zs[1:], steps, strict=False)]
    return [(zs[0], Table(zs[0], (), start)), *later]


def unrolled(
    hidden: list[tuple[Var, Conditional]], emitting: Sequence[Var], emission: Any, prefix: str, name: str
) -> BayesianNetwork:
    """The network of the hidden variables with the emission below each of `emitting`, counted from 1."""
    from gramgraph.models import BayesianNetwork

    nodes = getattr(emission, "nodes", None)
    if nodes is None:
        raise ModelError(f"a network has no conditional for {type(emission).__name__}.")
    below = [pair for t, z in enumerate(emitting, 1) for pair in nodes(z, f"{prefix}{t}")]
    everything = [*hidden, *below]
    return BayesianNetwork.from_parts([var for var, _ in everything], [c for _, c in everything], name=name)
