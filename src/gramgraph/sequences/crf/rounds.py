"""Beliefs after a few sweeps of propagation on a field of pairs, settled or not, and the way back to its tables.

Weights that are learned through the very sweeps that answer later need no messages that settle, and no bound on log Z
(Domke 2013, "Learning graphical model parameters with approximate marginal inference").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramgraph._numerics.messages.pairs import rounds_of_pairs, rounds_of_pairs_pull
from gramgraph.exceptions import ModelError
from gramgraph.sequences.crf.fields import Field, PairTables
from gramgraph.typing import FloatArray

#: Sweeps; each carries what a node says through a whole row and a whole column of a grid, in both directions.
ROUNDS = 6


class Rounds:
    """Sweeps over the log tables of nodes (n, K) and of each kind of pairs (m, K, K); `beliefs` (n, K) of nodes."""

    def __init__(self, field: Field, local: FloatArray, tables: Sequence[FloatArray]) -> None:
        if any(c.members.shape[1] != 2 for c in field.cliques):
            raise ModelError('method="marginal" learns pairs; use "pseudo", "loopy" or "exact" for larger cliques.')
        self._given, (n, K) = PairTables.of(field, local, tables), local.shape
        self._sizes = [len(c.members) for c in field.cliques]
        m = len(self._given.edges)
        self._state = np.ones((m, 2, K)), np.empty((n, K)), np.empty((2 * ROUNDS, m, K - 1))
        rounds_of_pairs(self._given.edges, self._given.psi, self._given.unary, ROUNDS, *self._state)
        products = self._state[1]
        self.beliefs = products / products.sum(axis=1, keepdims=True)

    def pull(self, bar_beliefs: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Slopes for the tables of nodes and pairs, given those for the beliefs; to be asked once."""
        b, given = self.beliefs, self._given
        bar = b * (bar_beliefs - (b * bar_beliefs).sum(axis=1, keepdims=True))
        bar_products, bar_psi = np.ascontiguousarray(bar[:, :-1]), np.zeros_like(given.psi)
        rounds_of_pairs_pull(given.edges, given.psi, given.unary, ROUNDS, *self._state, bar_products, bar_psi)
        bar_local = np.concatenate([bar_products, -bar_products.sum(axis=1, keepdims=True)], axis=1)
        return bar_local, np.split(bar_psi, np.cumsum(self._sizes)[:-1]) if self._sizes else []
