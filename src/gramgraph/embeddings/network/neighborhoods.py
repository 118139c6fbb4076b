"""Neighbors in an undirected kernel network: a group lasso on the matrices of all pairs, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals.potential import between
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.node_problem import features_of, penalty_of, solve_node
from gramgraph.typing import FloatArray

_SHARES = (0.7, 0.5, 0.35, 0.25, 0.17, 0.11, 0.07)  # of the penalty at which no neighbor is left
_ROWS = 1500
_STEPS = 40


def find_neighbors(
    ends: Sequence[End], rows: Any, rank: int, width: float, rng: np.random.Generator
) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    """(pairs of neighbors, what was chosen): for each node the pseudo-likelihood less λ Σⱼ ‖Aᵢⱼ‖, along a path of λ.

    Every set of neighbors on the path is fitted again without λ, and judged by a third of the rows; the smallest within
    one standard error of the best is taken. An edge stands where both ends choose it; a column of one value has none.
    O(nodes² × rows × rank²) a step.
    """
    picked = rng.permutation(rows)[:_ROWS]
    held, used = picked[: len(picked) // 3], picked[len(picked) // 3 :]
    F, S = zip(*[features_of(end, rank, width) for end in ends], strict=True)
    learned = [between(f, end.placed.take(used)) for f, end in zip(F, ends, strict=True)]
    judged = [between(f, end.placed.take(held)) for f, end in zip(F, ends, strict=True)]
    chosen = [_neighbors(i, end, F, S, learned, judged) if F[i].size else () for i, end in enumerate(ends)]
    links = [(i, j) for i in range(len(ends)) for j in chosen[i] if i < j and i in chosen[j]]
    return sorted(links), {"one_sided": sum(len(c) for c in chosen) - 2 * len(links)}


def _neighbors(
    i: int,
    end: End,
    F: Sequence[FloatArray],
    S: Sequence[FloatArray],
    learned: Sequence[FloatArray],
    judged: Sequence[FloatArray],
) -> tuple[int, ...]:
    """The neighbors of one node."""
    others = [j for j in range(len(F)) if j != i]
    blocks = np.repeat(np.arange(len(others) + 1), [1, *(F[j].shape[1] for j in others)])
    part = (_side_by_side(learned, others), learned[i], F[i], end.axis.q)
    found, most = np.zeros((len(blocks), F[i].shape[1])), _largest(part, blocks)
    supports: dict[tuple[int, ...], FloatArray] = {}
    for share in (1.0, *_SHARES):
        found = _group_lasso(part, blocks, share * most, found)
        norms = np.sqrt(np.bincount(blocks, (found**2).sum(axis=1)))
        own = tuple(others[b - 1] for b in range(1, len(norms)) if norms[b] > 0.0)
        if own not in supports:
            again = (_side_by_side(learned, own), learned[i], F[i], end.axis.q)
            B = solve_node([again], penalty_of(1e-2, [S[j] for j in own], S[i]))
            supports[own] = _log_p((_side_by_side(judged, own), judged[i], F[i], end.axis.q), B)
    scores = np.stack(list(supports.values()))
    gaps = scores[scores.mean(axis=1).argmax()] - scores
    close = gaps.mean(axis=1) <= gaps.std(axis=1) / np.sqrt(scores.shape[1])
    return min((own for own, ok in zip(supports, close, strict=True) if ok), key=len)


def _side_by_side(U: Sequence[FloatArray], which: Sequence[int]) -> FloatArray:
    return np.hstack([np.ones((len(U[0]), 1)), *(U[j] for j in which)])


def _log_p(part: Any, B: FloatArray) -> FloatArray:
    """log p(row | its neighbors) by its density alone, one number a row."""
    X, U, F, q = part
    theta = X @ B
    logs = theta @ F.T + np.log(np.maximum(q, 1e-300))
    top = logs.max(axis=1)
    norm = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
    return np.asarray(np.einsum("nr,nr->n", theta, U) - norm)


def _slope(part: Any, B: FloatArray) -> tuple[float, FloatArray]:
    """Minus the mean of `_log_p`, and its gradient."""
    X, U, F, q = part
    theta = X @ B
    logs = theta @ F.T + np.log(np.maximum(q, 1e-300))
    top = logs.max(axis=1, keepdims=True)
    p = np.exp(logs - top)
    total = p.sum(axis=1, keepdims=True)
    value = float((np.log(total) + top).mean() - np.einsum("nr,nr->", theta, U) / len(X))
    return value, X.T @ ((p / total) @ F - U) / len(X)


def _largest(part: Any, blocks: Any) -> float:
    """The penalty from which on no neighbor is left."""
    X, _, F, _ = part
    start = np.zeros((X.shape[1], F.shape[1]))
    alone = _group_lasso(part, blocks, np.inf, start)
    _, slope = _slope(part, alone)
    norms = np.sqrt(np.bincount(blocks, (slope**2).sum(axis=1)))
    return float(norms[1:].max(initial=0.0))


def _group_lasso(part: Any, blocks: Any, penalty: float, B: FloatArray) -> FloatArray:
    """Proximal gradient steps with momentum from B; the field (block 0) is not penalized."""
    step, moved, t = 1.0, B, 1.0
    for _ in range(_STEPS):
        value, slope = _slope(part, moved)
        while True:
            after = _shrunk(moved - step * slope, blocks, step * penalty)
            off = after - moved
            if (
                _slope(part, after)[0]
                <= value + float((slope * off).sum()) + 0.5 / step * float((off**2).sum()) + 1e-12
            ):
                break
            step *= 0.5
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        change = after - B
        moved, B, t = after + (t - 1.0) / later * change, after, later
        if float(np.abs(change).max()) < 1e-3 * max(float(np.abs(after).max()), 1e-3):
            break
    return B


def _shrunk(B: FloatArray, blocks: Any, by: float) -> FloatArray:
    norms = np.sqrt(np.bincount(blocks, (B**2).sum(axis=1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        keep = np.where(norms > by, 1.0 - by / norms, 0.0)
    keep[0] = 1.0
    return np.asarray(B * keep[blocks][:, None])
