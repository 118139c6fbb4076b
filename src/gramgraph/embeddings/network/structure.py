"""Which pairs share an edge: Chow–Liu over columns of any kinds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramgraph._threads import in_threads
from gramgraph.cells.axes import StateAxis
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.edge_mixture import fit_edge
from gramgraph.typing import Array, FloatArray

_FEATURES = 12
_PARTNERS = 3  # of each variable, whose pairs are looked at closely


def screen_features(end: End, most: int = _FEATURES) -> FloatArray:
    """Leading eigenfunctions of a column's kernel at its rows, whitened: (n, r), zero where the row is not known."""
    axis = end.axis
    if axis.m < 2:
        return np.zeros((len(end.placed.a), 0))
    s, V = end.spectrum(axis.widths[len(axis.widths) // 2])
    order = np.argsort(-s, kind="stable")[: None if isinstance(axis, StateAxis) else most]
    kept = V[:, order] * np.sqrt(s[order] / (s[order] + 1e-3))
    p = end.placed
    U = kept[p.a] * (1.0 - p.f)[:, None] + kept[p.b] * p.f[:, None]
    U[~p.known] = 0.0
    return np.asarray(U)


def informations(ends: Sequence[End], n_jobs: int = 1) -> FloatArray:
    """Squared-loss mutual information ½ (E r − 1) of every pair, from ½ ⟨M₁, M₂⟩ of two halves of the rows.

    The halves are the even and the odd rows, so that the upward bias of ½ ‖M‖² does not favor columns with many
    features. All pairs are two matrix products, O(n R²) with R features in all.
    """
    blocks = in_threads(lambda end: screen_features(end).astype(np.float32), ends, n_jobs)
    part = np.repeat(np.arange(len(ends)), [block.shape[1] for block in blocks])
    U = np.hstack(blocks)
    products = []
    for half in (U[::2], U[1::2]):
        half = half - half.mean(axis=0)
        products.append(half.T @ half / len(half))
    both = (products[0] * products[1]).astype(np.float64)
    member: Array = (part[:, None] == np.arange(len(ends))).astype(np.float64)
    out = 0.5 * member.T @ both @ member
    np.fill_diagonal(out, 0.0)
    return np.asarray(0.5 * (out + out.T))


def best_tree(ends: Sequence[End], edge: str, floor: float, n_jobs: int) -> list[tuple[int, int]]:
    """Pairs of the heaviest tree: left-out likelihood among the pairs that the squared-loss information proposes.

    A pair that predicts no better than independence stays out, so that the result may be a forest.
    """
    from gramgraph.graphs.spanning import spanning_tree

    n = len(ends)
    if n < 2:
        return []
    weights = informations(ends, n_jobs)
    first = spanning_tree(weights, list(range(n)), 0)
    proposed = dict.fromkeys(tuple(sorted(pair)) for pair in first.items())
    for v in range(n):
        partners = [int(u) for u in np.argsort(-weights[v], kind="stable") if u != v][:_PARTNERS]
        proposed.update(dict.fromkeys((min(u, v), max(u, v)) for u in partners))
    gains = np.full((n, n), -1.0)
    pairs = list(proposed)
    found_gains = in_threads(
        lambda ab: fit_edge(Pair(ends[ab[0]], ends[ab[1]]), edge, floor=floor, quick=True).gain, pairs, n_jobs
    )
    for (a, b), gain in zip(pairs, found_gains, strict=True):
        gains[a, b] = gains[b, a] = gain
    found = spanning_tree(gains, list(range(n)), 0)
    return [(parent, child) for child, parent in found.items() if gains[parent, child] > 0.0]
