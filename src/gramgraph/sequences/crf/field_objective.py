"""Objectives of fields: likelihood (exact or by loopy propagation) and pseudo-likelihood, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramgraph.sequences.crf.fields import Field, loopy_beliefs, network_of
from gramgraph.sequences.crf.rounds import Rounds
from gramgraph.typing import FloatArray, IntArray

#: A share of labels that may be wrong: no single node counts for more than log(K / _WRONG).
_WRONG = 0.02


@dataclass(frozen=True)
class FieldWeights:
    """nodes (d, K) and, for each kind of clique, (f, K, …, K)."""

    nodes: FloatArray
    cliques: tuple[FloatArray, ...]

    def couplings(self) -> FloatArray:
        """The weights of all kinds of cliques in a row."""
        return np.concatenate([np.empty(0), *(w.ravel() for w in self.cliques)])

    def tables(self, field: Field) -> tuple[FloatArray, list[FloatArray]]:
        """Log tables of nodes (n, K) and cliques (m, K, …, K)."""
        return field.nodes @ self.nodes, [
            np.tensordot(c.features, w, axes=1) for c, w in zip(field.cliques, self.cliques, strict=True)
        ]


def label_loss(beliefs: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """(−log of the probability of each node's label, its derivative for the beliefs (n, K)), errors in labels allowed.

    A label that is drawn at random with probability η has probability (1 − η) b(y) + η / K.
    """
    n, K = beliefs.shape
    at = np.arange(n), y
    chance = (1.0 - _WRONG) * beliefs[at] + _WRONG / K
    slope = np.zeros((n, K))
    slope[at] = -(1.0 - _WRONG) / chance
    return -np.log(chance), slope


class FieldObjective:
    """f(w) = −log p(y | x) (or what stands for it) + c2 ‖w‖², over one field that holds all the data.

    "pseudo": −Σ_i log p(y_i | neighbors), O(cliques · r · K). "exact": the junction tree of the field. "loopy": Bethe's
    log Z and beliefs, a gradient that is exact on trees; infinite where messages do not settle. "marginal": −Σ_i log
    b_i(y_i) with the beliefs b after a few sweeps of propagation, and the exact gradient of that. Pairs may be
    `symmetric`: then w[f, a, b] = w[f, b, a]. Where the weights of `nodes` are given, w has those of cliques alone.
    """

    def __init__(
        self, field: Field, y: IntArray, K: int, *, method: str, c2: float, symmetric: bool, states: Sequence[str],
        nodes: FloatArray | None = None,
    ) -> None:  # fmt: skip
        self.field, self.y, self.K, self.method, self.c2 = field, y, K, method, c2
        self.symmetric, self.states, self._nodes = symmetric, states, nodes
        self._messages: FloatArray | None = None
        cliques = [(c.features.shape[1], *(K,) * c.members.shape[1]) for c in field.cliques]
        self.shapes = cliques if nodes is not None else [(field.nodes.shape[1], K), *cliques]
        self.size = sum(int(np.prod(shape)) for shape in self.shapes)

    def weights(self, w: FloatArray) -> FieldWeights:
        """The vector as arrays."""
        parts, at = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            part = w[at : at + size].reshape(shape)
            parts.append(0.5 * (part + part.transpose(0, 2, 1)) if self._tied(shape) else part)
            at += size
        nodes = parts.pop(0) if self._nodes is None else self._nodes
        return FieldWeights(nodes, tuple(parts))

    def _tied(self, shape: tuple[int, ...]) -> bool:
        return self.symmetric and len(shape) == 3

    def _vector(self, parts: Sequence[FloatArray]) -> FloatArray:
        free = parts if self._nodes is None else parts[1:]
        tied = [0.5 * (g + g.transpose(0, 2, 1)) if self._tied(g.shape) else g for g in free]
        return np.concatenate([np.empty(0), *(g.ravel() for g in tied)])

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """(f, gradient)."""
        local, tables = self.weights(w).tables(self.field)
        terms = {"pseudo": self._pseudo, "marginal": self._marginal}.get(self.method, self._likelihood)
        value, parts = terms(local, tables)
        return value + self.c2 * float(w @ w), self._vector(parts) + 2.0 * self.c2 * w

    def _likelihood(self, local: FloatArray, tables: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        field, y = self.field, self.y
        if self.method == "exact":
            log_z, nodes, cliques = self._exact(local, tables)
        else:
            found = loopy_beliefs(field, local, tables, start=self._messages)
            log_z, nodes, cliques = found.log_z, found.nodes, found.cliques
            if found.settled:
                self._messages = found.messages  # weights move little from step to step, and so do messages
            else:  # the objective means something only where messages settle: a descent stays there
                log_z = np.inf
        value = log_z - float(local[np.arange(len(y)), y].sum())
        nodes = nodes.copy()
        nodes[np.arange(len(y)), y] -= 1.0
        parts = [field.nodes.T @ nodes]
        for c, table, belief in zip(field.cliques, tables, cliques, strict=True):
            at = (np.arange(len(c.members)), *y[c.members].T)
            value -= float(table[at].sum())
            off = belief.copy()
            off[at] -= 1.0
            parts.append(np.tensordot(c.features.T, off, axes=1))
        return value, parts

    def _marginal(self, local: FloatArray, tables: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        """The label loss of beliefs after a few sweeps, and its gradient through these sweeps."""
        run = Rounds(self.field, local, tables)
        loss, slope = label_loss(run.beliefs, self.y)
        bar_local, bar_tables = run.pull(slope)
        parts = [self.field.nodes.T @ bar_local]
        for c, bar in zip(self.field.cliques, bar_tables, strict=True):
            parts.append(np.tensordot(c.features.T, bar, axes=1))
        return float(loss.sum()), parts

    def _exact(self, local: FloatArray, tables: list[FloatArray]) -> tuple[float, FloatArray, list[FloatArray]]:
        """(log Z, beliefs) by the library's exact engine."""
        net = network_of(self.field, local, tables, self.states)
        names = [[tuple(f"n{i}" for i in row) for row in c.members.tolist()] for c in self.field.cliques]
        answer = net.query([*net.variables, *(name for kind in names for name in kind)])
        nodes = np.array([answer[name].probabilities for name in net.variables])
        cliques = [
            np.array([answer[name].probabilities for name in kind]).reshape(table.shape)
            for kind, table in zip(names, tables, strict=True)
        ]
        return float(answer.log_evidence), nodes, cliques

    def _pseudo(self, local: FloatArray, tables: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        """Every node given its neighbors: a logistic regression whose inputs are the labels around."""
        field, y, K = self.field, self.y, self.K
        scores = local.copy()
        slices = []
        for c, table in zip(field.cliques, tables, strict=True):
            for slot in range(c.members.shape[1]):
                at = self._around(c.members, slot)
                np.add.at(scores, c.members[:, slot], table[at])
                slices.append(at)
        top = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - top)
        total = p.sum(axis=1, keepdims=True)
        value = float((np.log(total) + top).sum() - scores[np.arange(len(y)), y].sum())
        p /= total
        p[np.arange(len(y)), y] -= 1.0
        parts, used = [field.nodes.T @ p], iter(slices)
        for c, table in zip(field.cliques, tables, strict=True):
            off = np.zeros_like(table)
            for slot in range(c.members.shape[1]):
                off[next(used)] += p[c.members[:, slot]]
            parts.append(np.tensordot(c.features.T, off, axes=1))
        assert p.shape[1] == K
        return value, parts

    def _around(self, members: IntArray, slot: int) -> tuple[IntArray, ...]:
        """The index that takes from every table the row over the label of `slot`, the others as in the data."""
        m, r = members.shape
        every = np.arange(self.K)[None, :]
        others = [every if s == slot else self.y[members[:, s]][:, None] for s in range(r)]
        return (np.arange(m)[:, None], *others)
