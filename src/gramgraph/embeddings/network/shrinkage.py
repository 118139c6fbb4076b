"""How much of each order a pairwise network keeps: penalties that all of its edges tell together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.embeddings.network.node_problem import Part, solve_node, spread_of
from gramgraph.typing import FloatArray

_ROUNDS = 6
_NODES = 16  # that tell; the others have the same penalties
#: The first penalty, divided by eigenvalues; it counts as one more edge or node, so that few edges are steady too.
_FIRST, _FIRST_FIELD = 1e-2, 1e-3


@dataclass(frozen=True, eq=False)
class Penalties:
    """Ridges on fields by order, (r,), and on potentials by the orders of both ends, (r, r), symmetric."""

    fields: FloatArray
    pairs: FloatArray

    @classmethod
    def first(cls, S: Sequence[FloatArray]) -> Penalties:
        """By the eigenvalues S of all axes, before anything is learned."""
        r = max(len(s) for s in S)
        s = np.array([np.mean([s[k] for s in S if len(s) > k]) for k in range(r)])
        return cls(np.full(r, _FIRST_FIELD), _FIRST / np.outer(s, s))

    def of(self, own: int, others: Sequence[int]) -> FloatArray:
        """Of all unknowns of a node, (features, r), from the numbers of orders of both ends."""
        return np.vstack([self.fields[:own], *(self.pairs[:other, :own] for other in others)])


def learn_penalties(nodes: Sequence[tuple[Sequence[Part], Sequence[int]]], first: Penalties) -> Penalties:
    """One penalty for every pair of orders: the variance of its coefficients over all edges, 1 / (n λ).

    The marginal likelihood of all nodes climbs by EM: the variance is the mean of squares of the coefficients plus
    their own uncertainty, by the curvature of each node. Orders in which the edges show nothing but noise are pressed
    to zero, strong ones are left alone, and signs of eigenfunctions do not matter. `nodes` hold the parts of each
    problem and the numbers of orders of its neighbors; some of them, and some of many parts, speak for all.
    O(nodes × rows × unknowns²) a round.
    """
    if not nodes:
        return first
    picked = [(_some(parts), others) for parts, others in _some(nodes)]
    share = len(picked[0][0]) / len(nodes[0][0])  # of the rows that the fit will have
    found = first
    starts: list[FloatArray | None] = [None] * len(picked)
    for _ in range(_ROUNDS):
        fields, pairs = 1.0 / first.fields, 1.0 / first.pairs
        seen, edges = np.ones_like(fields), np.ones_like(pairs)
        for k, (parts, others) in enumerate(picked):
            own, n = parts[0][2].shape[1], sum(len(X) for X, *_ in parts)
            penalty = found.of(own, others)
            B = solve_node(parts, penalty, starts[k])
            starts[k] = B
            square = n * B**2 + spread_of(parts, B, penalty)
            fields[:own] += square[0]
            seen[:own] += 1.0
            for other, block in zip(others, np.split(square[1:], np.cumsum(others)[:-1]), strict=True):
                for at, add in (((slice(other), slice(own)), block), ((slice(own), slice(other)), block.T)):
                    pairs[at] += 0.5 * add
                    edges[at] += 0.5
        found = Penalties(seen / fields, edges / pairs)
    return Penalties(share * found.fields, share * found.pairs)


def _some(things: Sequence[Any]) -> list[Any]:
    return [things[k] for k in np.unique(np.linspace(0, len(things) - 1, _NODES).astype(np.int64))]
