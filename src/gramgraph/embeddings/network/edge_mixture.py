"""An edge: the mixture of density-ratio estimates that predicts left-out rows best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph.cells.axes import StateAxis
from gramgraph.cells.mixture_weights import mixture_weights
from gramgraph.embeddings.network.candidates import Candidate, Pair, balanced, candidates
from gramgraph.typing import FloatArray

_LEAST = 0.003  # a part with less weight than this is left out
_ERRORS = 1.0  # standard errors by which a mixture must beat the copula
_SMALL = 4096  # tables of so many cells are kept in double precision


@dataclass(frozen=True, eq=False)
class Edge:
    """p(x, y) = p(x) p(y) r(x, y), with r a table R on the cells of both, linear between them.

    R ≥ 0 with R q_y = 1 and Rᵀ q_x = 1. `gain` is the mean of log r over rows that were left out: a lower estimate of
    the mutual information in nats. `parts` says which estimates were mixed, with their weights.

    >>> Edge("a", "b", np.ones((2, 2)), 0.0, {"independent": 1.0})
    Edge(a - b, gain 0 nats, independent 1.00)
    """

    x: str
    y: str
    R: Any  # (m, p), float32 where it is large
    gain: float
    parts: Mapping[str, float] = field(default_factory=dict)
    negative_mass: float = 0.0  # of the estimates before they were floored, on average

    def __repr__(self) -> str:
        shown = ", ".join(f"{k} {v:.2f}" for k, v in sorted(self.parts.items(), key=lambda kv: -kv[1])[:3])
        return f"Edge({self.x} - {self.y}, gain {self.gain:.3g} nats, {shown})"

    @property
    def kinds(self) -> dict[str, float]:
        """Weight of each kind of estimate: ridge, kernel, regress, torus, copula, table, blocks, independent."""
        out: dict[str, float] = {}
        for name, weight in self.parts.items():
            kind = name.split()[0]
            out[kind] = out.get(kind, 0.0) + weight
        return out


def fit_edge(pair: Pair, edge: str, *, floor: float = 1e-3, quick: bool = False) -> Edge:
    """Mix the candidates of an edge by EM on left-out (and held-out) values, then balance the table.

    `floor` is the least weight of independence, which bounds r away from 0; with 0, "table" edges are the plain tables.
    """
    x, y = pair.x.axis, pair.y.axis
    lines = not (isinstance(x, StateAxis) and isinstance(y, StateAxis))
    constant = min(x.m, y.m) == 1 or pair.n < (5 if lines else 1)
    found = [] if constant else list(candidates(pair, edge, quick=quick))
    alone = floor == 0.0 and len(found) == 1
    if not alone:
        found.insert(0, Candidate("independent", np.ones((x.m, y.m)), np.ones(pair.n)))
    L, w = _weights(found, pair)
    if edge == "auto" and not quick:
        w = _simpler(found, L, w)
    if not alone and floor > 0.0 and w[0] < floor and len(found) > 1:
        w[1:] *= (1.0 - floor) / w[1:].sum()
        w[0] = floor
    gain = float(np.log(np.maximum(w @ L, 1e-300)).mean()) if L.size else 0.0
    if quick:
        return Edge(x.name, y.name, None, gain)
    R = np.zeros((x.m, y.m))
    for part, weight in zip(found, w, strict=True):
        if weight > 0.0:
            R += weight * part.R
    if not alone:
        R = balanced(R, x.q, y.q, tol=1e-11, sweeps=500)[0]
    negative = float(sum(weight * part.negative for part, weight in zip(found, w, strict=True)))
    parts = {part.name: float(weight) for part, weight in zip(found, w, strict=True) if weight > 0.0}
    kept = R if R.size <= _SMALL else R.astype(np.float32)
    return Edge(x.name, y.name, kept, gain, parts, negative)


def _weights(found: list[Candidate], pair: Pair) -> tuple[FloatArray, FloatArray]:
    """(values of the candidates at left-out rows (k, rows), weights)."""
    L = np.stack([np.concatenate([part.left_out, pair.held_out(part.R)]) for part in found])
    if len(found) == 1 or not L.size:
        return L, np.full(len(found), 1.0 / len(found))
    w = mixture_weights(np.maximum(L, 1e-30).astype(np.float32))
    w[(w < _LEAST) & (np.arange(len(w)) > 0)] = 0.0
    return L, w / w.sum()


def _simpler(found: list[Candidate], L: FloatArray, w: FloatArray) -> FloatArray:
    """The copula alone where the mixture is not better than it by more than one standard error."""
    at = [i for i, part in enumerate(found) if part.name == "copula"]
    if not at:
        return w
    gap = np.log(np.maximum(w @ L, 1e-300)) - np.log(np.maximum(L[at[0]], 1e-300))
    if gap.mean() > _ERRORS * gap.std() / np.sqrt(len(gap)):
        return w
    out = np.zeros(len(w))
    out[at[0]] = 1.0
    return out
