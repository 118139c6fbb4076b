"""How strong the couplings of a field may be: scales and penalties that held-out graphs choose.

Where neighbors nearly always agree, pseudo-likelihood overrates the couplings: given the labels around it, a pixel is
hardly ever wrong, and the best labeling of all pixels together becomes constant. What counts is how probable the right
label of each node is when no label is given: log p(y_i | x), from loopy propagation, on graphs that were held out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramgraph.sequences.crf.field_objective import FieldObjective, FieldWeights
from gramgraph.sequences.crf.fields import Field, joined_fields, loopy_beliefs
from gramgraph.sequences.crf.optimize import minimize
from gramgraph.typing import FloatArray, IntArray

__all__ = ["best_penalty", "calibrated", "label_likelihood"]

#: Shares of the couplings that are tried; 0 is the classifier of single nodes.
SCALES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
#: Shares of the classes' log frequencies that are taken off the nodes: couplings bring a part of them again.
SHIFTS = (0.0, 0.5, 1.0)
#: Penalties that c2="auto" tries.
PENALTIES = (0.1, 1.0, 10.0, 100.0)
_FOLDS = 3
_LEAST = 1e-12


def label_likelihood(weights: FieldWeights, fields: Sequence[Field], labels: Sequence[IntArray]) -> float:
    """Σ log p(label | graph) over all nodes, by loopy propagation."""
    total = 0.0
    for field, y in zip(fields, labels, strict=True):
        beliefs = loopy_beliefs(field, *weights.tables(field))[1]
        total += float(np.log(np.maximum(beliefs[np.arange(len(y)), y], _LEAST)).sum())
    return total


def folds(n: int) -> list[tuple[list[int], list[int]]]:
    """(graphs to learn from, graphs to judge by); one graph alone is both."""
    if n == 1:
        return [([0], [0])]
    k = min(_FOLDS, n)
    return [([i for i in range(n) if i % k != f], [i for i in range(n) if i % k == f]) for f in range(k)]


def calibrated(
    weights: FieldWeights,
    fields: Sequence[Field],
    labels: Sequence[IntArray],
    objective: Callable[..., FieldObjective],
    *,
    trusted: bool = True,
) -> tuple[FieldWeights, float]:
    """(weights, scale of the couplings): the best of the given weights and of a classifier of nodes with couplings.

    The classifier of single nodes is learned without couplings, some of its bias is taken off, and a share of the
    given couplings is added: what makes held-out labels most probable, first on a coarse grid, then around its best.
    Weights that are not `trusted` (of pseudo-likelihood) are not taken as they are.
    """
    none = tuple(0.0 * w for w in weights.cliques)
    parts = []
    for train, test in folds(len(fields)):
        nodes = _nodes_given(none, [fields[i] for i in train], [labels[i] for i in train], objective)
        parts.append((nodes, [fields[i] for i in test], [labels[i] for i in test]))
    bias, priors = _bias(fields, labels, weights.nodes.shape[1])
    known: dict[tuple[float, float], float] = {}

    def made(nodes: FloatArray, scale: float, shift: float) -> FieldWeights:
        moved = nodes.copy()
        if bias is not None:
            moved[bias] -= shift * priors
        return FieldWeights(moved, tuple(scale * w for w in weights.cliques))

    def score(at: tuple[float, float]) -> float:
        if at not in known:
            known[at] = sum(label_likelihood(made(nodes, *at), test, y) for nodes, test, y in parts)
        return known[at]

    shifts = SHIFTS if bias is not None else (0.0,)
    best = max([(0.0, 0.0), *((s, r) for s in SCALES[1:] for r in shifts)], key=score)
    s, r = best
    if s > 0:
        near = [(s * f, r) for f in (0.75, 1.33)]
        near += [(s, r + d) for d in (-0.25, 0.25)] if bias is not None else []
        best = max([best, *near], key=score)
    if trusted and label_likelihood(weights, fields, labels) > score(best):
        return weights, 1.0
    return made(_nodes_given(none, fields, labels, objective), *best), best[0]


def _bias(fields: Sequence[Field], labels: Sequence[IntArray], K: int) -> tuple[int | None, FloatArray]:
    """(the feature of nodes that is always 1, if there is one; log frequencies of the classes, centered)."""
    constant = [j for j in range(fields[0].nodes.shape[1]) if all((f.nodes[:, j] == 1.0).all() for f in fields)]
    shares = np.bincount(np.concatenate(labels), minlength=K) + 0.5
    logs = np.log(shares / shares.sum())
    return (constant[-1] if constant else None), logs - logs.mean()


def _nodes_given(
    cliques: tuple[FloatArray, ...], fields: Sequence[Field], labels: Sequence[IntArray], objective: Any
) -> FloatArray:
    """Weights of the nodes by pseudo-likelihood, with couplings that stay as they are: a convex problem."""
    whole = objective(joined_fields(fields)[0], np.concatenate(labels), "pseudo")
    rest = np.concatenate([np.zeros(0), *(w.ravel() for w in cliques)])
    size = whole.size - len(rest)

    def evaluate(nodes: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = whole(np.concatenate([nodes, rest]))
        return value, gradient[:size]

    found = minimize(evaluate, np.zeros(size), memory=10, max_iter=100, epsilon=1e-5, delta=1e-7)
    return found.w.reshape(whole.shapes[0])


def best_penalty(fields: Sequence[Field], labels: Sequence[IntArray], learn: Callable[..., FieldWeights]) -> float:
    """The c2 of `PENALTIES` whose weights make held-out labels most probable; 1 where there is one graph."""
    if len(fields) == 1:
        return 1.0
    train, test = folds(len(fields))[0]

    def score(c2: float) -> float:
        weights = learn([fields[i] for i in train], [labels[i] for i in train], c2)
        return label_likelihood(weights, [fields[i] for i in test], [labels[i] for i in test])

    return max(PENALTIES, key=score)
